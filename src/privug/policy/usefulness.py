"""What a repair costs: how much of the original output is still in what is released."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from privug import leakage
from privug.attack import Attack
from privug.errors import PrivugError
from privug.estimate import Estimate
from privug.inference.belief import Belief
from privug.inference.joint import Joint
from privug.model.batch import Batch
from privug.model.node import Kind
from privug.model.structure import random_leaves
from privug.observation.likelihood import equal_values
from privug.policy.checking import Effort
from privug.policy.merging import Merged
from privug.program.logic import where
from privug.program.staged import Staged, called

Release = Callable[[Any], Any]


@dataclass(frozen=True)
class Utility:
    """What is left of the original output in what is released, on average over the attacker's prior.

    `information` is the mutual information of the two, of which there were `available` bits, the entropy of the
    original output; `unchanged` is the probability that an output is released as it is: alone in its class, or as the
    same number; `error` is the expected distance of single numbers. What cannot be told is None.

    >>> import privug as pv
    >>> attack = pv.Attack(lambda a, b: a + b, {"a": pv.Bernoulli(0.5), "b": pv.Bernoulli(0.5)}, secret="a")
    >>> mended = pv.policy.enforce(attack, pv.policy.max_belief(at_most=0.7), repair="merge")
    >>> round(mended.utility.information.value, 4), mended.utility.available.value
    (1.0, 1.5)
    """

    information: Estimate | None = None
    available: Estimate | None = None
    unchanged: Estimate | None = None
    error: Estimate | None = None

    def __str__(self) -> str:
        told = []
        if self.information is not None:
            of_all = "" if self.available is None else f" of {self.available.number()}"
            told.append(f"{self.information.number()}{of_all} bits of the output are still told")
        if self.unchanged is not None:
            told.append(f"it is released unchanged with probability {self.unchanged.number()}")
        if self.error is not None:
            told.append(f"it is off by {self.error.number()} on average")
        return "; ".join(told)


@dataclass(frozen=True, eq=False)
class _Beside:
    """The release of an output together with itself."""

    release: Release

    def __call__(self, output: Any) -> Any:
        return output, called(self.release, output)


@dataclass(frozen=True, eq=False)
class _Distance:
    """The release of by how much a single number changes."""

    release: Release

    def __call__(self, output: Any) -> Any:
        difference = called(self.release, output) - output
        return where(difference < 0, -difference, difference) if random_leaves(difference) else abs(difference)


def utility_of(attack: Attack, release: Release, effort: Effort) -> Utility:
    """Measure what a release leaves of an attack's output."""
    try:
        belief = effort.run(_released(attack, release, _Beside), None).prediction
        if belief.kind is Kind.DISCRETE:
            return _of_pairs(belief, release)
    except PrivugError:  # outputs that cannot be told together with themselves; distances may be known all the same
        pass
    return Utility(error=_error(attack, release, effort))


def _released(attack: Attack, release: Release, how: Callable[[Release], Release]) -> Attack:
    return attack.replace(program=Staged(attack.question.program, how(release)), observe=None, questions=None)


def _of_pairs(belief: Belief, release: Release) -> Utility:
    """Measure pairs of an output and what was released in its place."""
    originals, released = zip(*belief.batch.values(), strict=True)
    before, after = (_alike(belief, Batch.of_values(list(values))) for values in (originals, released))
    merges = isinstance(release, Merged)
    alone = set(release.alone) if isinstance(release, Merged) else set()
    unchanged = belief.probability(lambda pair: pair[1] in alone if merges else equal_values(*pair))
    error = None
    if not merges and all(isinstance(value, int | float) for value in (*originals, *released)):
        distances = np.abs(np.subtract(released, originals, dtype=float))
        error = _alike(belief, Batch.of_values(distances)).mean()
    return Utility(leakage.mutual_information(Joint(before, after)), leakage.entropy(before), unchanged, error)


def _alike(belief: Belief, batch: Batch) -> Belief:
    """Return a belief about something else on the same samples or states."""
    kept = belief.weights, belief.exact, belief.label
    return Belief(batch, *kept, Kind.DISCRETE, error=belief.error, groups=belief.groups)


def _error(attack: Attack, release: Release, effort: Effort) -> Estimate | None:
    """Return the expected distance of single numbers; None if they are none."""
    try:
        belief = effort.run(_released(attack, release, _Distance), None).prediction
        return None if belief.batch.numbers() is None else belief.mean()
    except (PrivugError, TypeError):
        return None
