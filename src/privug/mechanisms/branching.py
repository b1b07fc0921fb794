"""How far apart the outputs for two inputs are, path by path through a program that draws with `pv.sample`."""

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privug.estimate import Estimate
from privug.mechanisms.comparison import compare_log_masses, hashable
from privug.mechanisms.guarantee import Guarantee
from privug.mechanisms.paths.comparisons import Conditions, Forest, Uncomparable
from privug.mechanisms.paths.log_laws import Unintegrable
from privug.mechanisms.paths.path_density import PathDensity, largest_log_ratio
from privug.model.node import Array
from privug.model.structure import flatten
from privug.model.variable import RandomVariable
from privug.program.paths import NotFollowed, Path, paths

Arguments = tuple[Sequence[Any], Mapping[str, Any]]


class _Released:
    """Stands for a number with a density in an output."""


@dataclass(frozen=True)
class Outcome:
    """The paths that lead to one output, numbers with a density aside: those paths share these."""

    log_probability: float
    paths: tuple[Path, ...]
    moving: bool


class Outcomes:
    """What a program may return for one input."""

    def __init__(self, program: Callable[..., Any], arguments: Arguments) -> None:
        self._conditions = Conditions()
        self.all: dict[Hashable, Outcome] = {}
        for path in paths(program, *arguments, self._conditions.possible):
            log = Forest.of(self._conditions, path.decisions).log_probability()
            if np.isneginf(log):
                continue
            structure, leaves = flatten(path.output)
            moving = any(isinstance(leaf, RandomVariable) for leaf in leaves)
            plain = [_Released if isinstance(leaf, RandomVariable) else hashable(leaf) for leaf in leaves]
            key = structure, tuple(plain)
            known = self.all.get(key, Outcome(-math.inf, (), moving))
            self.all[key] = Outcome(float(np.logaddexp(known.log_probability, log)), (*known.paths, path), moving)

    def logs(self, keys: Iterable[Hashable]) -> Array:
        """Return the logarithms of the probabilities of some outputs."""
        return np.array([self.all[key].log_probability if key in self.all else -np.inf for key in keys])

    def density(self, key: Hashable) -> PathDensity:
        """Return the density of an output's numbers."""
        outcome = self.all[key]
        if len(outcome.paths) > 1:
            raise Uncomparable("several paths release numbers in the same form")
        path = outcome.paths[0]
        released = [leaf.node for leaf in flatten(path.output)[1] if isinstance(leaf, RandomVariable)]
        return PathDensity.of(self._conditions, path.decisions, released)


def compare_paths(program: Callable[..., Any], one: Arguments, other: Arguments, promise: Guarantee) -> Estimate | str:
    """Return how far apart the outputs for two inputs are by the measure of a promise, or why that is not known."""
    try:
        first, second = Outcomes(program, one), Outcomes(program, other)
        keys = dict.fromkeys([*first.all, *second.all])
        outcomes = [first.all.get(key) or second.all[key] for key in keys]
        moving = [key for key, outcome in zip(keys, outcomes, strict=True) if outcome.moving]
        p, q = first.logs(keys), second.logs(keys)
        if not moving or np.isneginf([p, q]).any():
            return compare_log_masses(p, q, promise)
        if promise.delta > 0 or (math.isinf(promise.epsilon) and promise.rho is not None):
            return "numbers with a density are compared by epsilon alone"
        within = [place for place, outcome in enumerate(outcomes) if not outcome.moving]
        largest = compare_log_masses(p[within], q[within], promise).value
        for key in moving:
            densities = first.density(key), second.density(key)
            largest = max(largest, largest_log_ratio(*densities), largest_log_ratio(*densities[::-1]))
        return Estimate.exactly(largest, "nat")
    except (NotFollowed, Uncomparable, Unintegrable) as problem:
        return str(problem)
