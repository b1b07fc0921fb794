"""One case of a question made ready for evaluation: what to compute, and how to read it off the arrays."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privug.errors import ProgramError
from privug.inference.question import Case
from privug.inference.solving import solve
from privug.model.batch import Batch, Column
from privug.model.node import Array, Context, Node, Operation
from privug.model.operations import SampleFailure
from privug.model.plan import Plan
from privug.model.structure import LEAF, Structure, flatten
from privug.model.variable import as_node
from privug.observation.likelihood import Likelihood
from privug.observation.observations import Observation
from privug.program.calls import FAILED


class NotFailed(Operation):
    """Whether a program called sample by sample returned, rather than raised."""

    def evaluate(self, arguments: Sequence[Array], context: Context) -> Array:
        return np.fromiter((value is not FAILED for value in arguments[0]), bool, len(arguments[0]))


@dataclass(frozen=True)
class Quantity:
    """A possibly nested quantity taken apart into nodes."""

    structure: Structure
    nodes: tuple[Node, ...]

    @classmethod
    def of(cls, value: Any) -> "Quantity":
        """Take a nested value apart."""
        structure, leaves = flatten(value)
        return cls(structure, tuple(as_node(leaf) for leaf in leaves))

    def batch(self, arrays: Sequence[Array], samples: int) -> Batch:
        """Return the values of this quantity from the arrays of its nodes."""
        columns = tuple(Column(array, node.levels) for array, node in zip(arrays, self.nodes, strict=True))
        return Batch(self.structure, columns, samples)


@dataclass(frozen=True)
class Kept:
    """What one block of samples left behind: the samples that agree with the observation."""

    positions: Array
    quantities: tuple[Batch, ...]
    log_weights: Array | None
    excluded: int


class CasePlan:
    """The evaluation of one case: secret, output and further quantities, conditioned on an observation."""

    def __init__(
        self, case: Case, observation: Observation | None, extra: Sequence[Any], known: Sequence[Node], exclude: bool
    ) -> None:
        self.quantities = [Quantity.of(value) for value in (case.secret, case.output, *extra)]
        likelihood = observation.likelihood(case.output) if observation is not None else Likelihood()
        self.impossible = likelihood.impossible
        targets = [node for quantity in self.quantities for node in quantity.nodes]
        likelihood, targets = solve(likelihood, targets)
        self._conditions = len(likelihood.conditions)
        self._weights = len(likelihood.log_weights)
        self._exclude = exclude
        judged = sum(len(quantity.nodes) for quantity in self.quantities[:2])
        failures = [Node(NotFailed(), (n,), (), np.dtype(bool)) for n in targets[:judged] if n.dtype == object]
        self._checks = len(failures) if exclude else 0
        primary = [*targets[:judged], *likelihood.conditions, *likelihood.log_weights, *failures[: self._checks]]
        self._split = judged, len(primary)
        # Further quantities come last and do not change the size of a block: the samples stay the same.
        self.plan = Plan([*primary, *targets[judged:]], known)
        self.block = self.plan.block if not extra else Plan(primary, known).block

    @property
    def is_weighted(self) -> bool:
        """Whether samples have weights, rather than only agreeing or not."""
        return self._weights > 0

    def run(
        self, rng: np.random.Generator, positions: Array, known: Mapping[Node, Array], *, forgiving: bool = False
    ) -> Kept:
        """Evaluate one block and keep the samples that agree with the observation."""
        samples = len(positions)
        arrays = self.plan.run(samples, rng, known, forgiving=forgiving)
        judged, primary = self._split
        checks = arrays[judged + self._conditions + self._weights : primary]
        log_weights = self._log_weights(arrays[judged + self._conditions :][: self._weights], samples)
        kept = np.ones(samples, bool)
        for condition in arrays[judged : judged + self._conditions]:
            kept &= condition
        valid = np.ones(samples, bool)
        for check in checks:
            valid &= check
        if not forgiving:
            valid &= ~self._not_a_number(arrays[:judged], kept & valid)
        kept &= valid
        if log_weights is not None:
            kept &= log_weights > -np.inf
        values = [array[kept] for array in (*arrays[:judged], *arrays[primary:])]
        weights = log_weights[kept] if log_weights is not None else None
        return Kept(positions[kept], self._batches(values, int(kept.sum())), weights, int((~valid).sum()))

    @staticmethod
    def _log_weights(arrays: Sequence[Array], samples: int) -> Array | None:
        if not arrays:
            return None
        total = np.zeros(samples)
        for array in arrays:
            total += array
        total[np.isnan(total)] = -np.inf
        return total

    def _not_a_number(self, arrays: Sequence[Array], kept: Array) -> Array:
        """Find samples whose secret or output is NaN: an error of the program, unless those are excluded."""
        bad = np.zeros(len(kept), bool)
        for array in arrays:
            if array.dtype.kind == "f":
                bad |= np.isnan(array.reshape(len(array), -1)).any(axis=1) & kept
            elif array.dtype == object:
                bad |= np.fromiter((isinstance(x, float) and x != x for x in array), bool, len(array)) & kept
        if bad.any() and not self._exclude:
            raise SampleFailure(int(np.flatnonzero(bad)[0]), ProgramError("the result is NaN, not a number"))
        return bad

    def _batches(self, arrays: Sequence[Array], samples: int) -> tuple[Batch, ...]:
        remaining = iter(arrays)
        return tuple(quantity.batch([next(remaining) for _ in quantity.nodes], samples) for quantity in self.quantities)


def settled(batch: Batch) -> Batch:
    """Give the outputs of programs called sample by sample the best form that their values allow."""
    if batch.structure == LEAF and batch.columns[0].array.dtype == object:
        return Batch.of_values(list(batch.columns[0].array))
    return batch
