"""Numbers that a policy limits, with proven bounds on stretches of outputs that cannot be listed one by one."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Self

import numpy as np

from privug.attack import Attack, Result
from privug.errors import InferenceError, UnsuitableEngine
from privug.inference.belief import Belief
from privug.inference.derived_questions import QuestionOfLocation, added_noise
from privug.inference.engines import ENGINES
from privug.leakage.finite import pairs_of
from privug.model.node import Array, Kind
from privug.policy.levels import Levels
from privug.policy.mixtures import Mixture
from privug.policy.policies import Clause, Policy
from privug.policy.verdict import Status

UNKNOWN: Mapping[Status, tuple[float, float]] = {
    Status.HOLDS: (-np.inf, -np.inf),
    Status.VIOLATED: (np.inf, np.inf),
    Status.UNDECIDED: (-np.inf, np.inf),
}
"""Bounds of by how much a part is broken after each output, of which no more than its status is known."""


@dataclass(frozen=True, eq=False)
class Bounded:
    """The number of a clause after outputs that are a finite quantity plus noise; times -1 if it is turned around."""

    clause: Clause
    mixture: Mixture
    secrets: Sequence[Any]
    prior: Belief
    sign: int = 1

    @property
    def size(self) -> int:
        """How many densities are computed for one output."""
        return len(self.mixture.location)

    @property
    def turned(self) -> Self:
        """The same number times -1."""
        return replace(self, sign=-self.sign)

    def on(self, begin: Array, end: Array) -> Levels:
        """Return bounds of the number on each stretch of outputs."""
        return self._between(*self.mixture.bounds(begin, end))

    def at(self, outputs: Array) -> Levels:
        """Return the number at each output; not a number where the output cannot be."""
        shares = self.mixture.shares(outputs)
        there = np.isfinite(shares).all(axis=1)
        found = Levels(*(np.full(len(outputs), np.nan) for _ in range(3)))
        for numbers, known in zip(found, self._between(shares[there], shares[there]), strict=True):
            numbers[there] = known
        return found

    def _between(self, low: Array, high: Array) -> Levels:
        levels = self.clause.between(low, high, self.secrets, self.prior)
        assert levels is not None
        return levels if self.sign > 0 else Levels(-levels.value, -levels.high, -levels.low)


def bounded(question: Attack, clause: Clause, result: Result, kind: Kind) -> Bounded | None:
    """Return the number of a clause with its bounds, where the output is a finite quantity plus noise of a kind."""
    noise = added_noise(question.question, kind)
    if noise is None:
        return None
    try:
        answer = ENGINES["exact"](QuestionOfLocation.of(question.question, noise), None, samples=1, seed=0)
        pairs = pairs_of(answer.joint())
    except (InferenceError, UnsuitableEngine):
        return None
    anything = np.ones((1, len(pairs.secrets)))
    if clause.between(anything, anything, pairs.secrets, result.prior) is None:
        return None
    return Bounded(clause, Mixture.of(noise, pairs), pairs.secrets, result.prior)


@dataclass(frozen=True, eq=False)
class Excess:
    """By how much a policy of several parts is broken after each output: not positive where it is kept.

    Of each clause there is a part for each person: its number with bounds, or its status, where that is the same after
    all outputs.
    """

    policy: Policy
    parts: Mapping[Clause, Sequence[Bounded | Status]]
    mixture: Mixture

    @classmethod
    def of(cls, policy: Policy, parts: Mapping[Clause, Sequence[Bounded | Status]]) -> Self | None:
        """Join the parts of a policy; None if there are no bounds of any, or if they are about different outputs."""
        known = [part for several in parts.values() for part in several if isinstance(part, Bounded)]
        if not known:
            return None
        first = known[0].mixture
        if any(part.mixture.aligned(first) is None for part in known):
            return None
        return cls(policy, {clause: [_aligned(part, first) for part in parts[clause]] for clause in parts}, first)

    @property
    def size(self) -> int:
        """How many densities are computed for one output."""
        return sum(part.size for several in self.parts.values() for part in several if isinstance(part, Bounded))

    def on(self, begin: Array, end: Array) -> Levels:
        """Return bounds of the excess on each stretch of outputs."""
        return self._joined(lambda part: part.on(begin, end), len(begin))

    def at(self, outputs: Array) -> Levels:
        """Return bounds of the excess at each output; not a number where the output cannot be."""
        return self._joined(lambda part: part.at(outputs), len(outputs))

    def _joined(self, levels: Callable[[Bounded], Levels], count: int) -> Levels:
        found = {clause: [_beyond(part, levels, count) for part in several] for clause, several in self.parts.items()}
        least = self.policy.excess(lambda clause: reduce(np.maximum, [low for low, _ in found[clause]]))
        most = self.policy.excess(lambda clause: reduce(np.maximum, [high for _, high in found[clause]]))
        return Levels(least, least, most)


def _aligned(part: Bounded | Status, mixture: Mixture) -> Bounded | Status:
    if isinstance(part, Status):
        return part
    own = part.mixture.aligned(mixture)
    assert own is not None
    return replace(part, mixture=own)


def _beyond(part: Bounded | Status, levels: Callable[[Bounded], Levels], count: int) -> tuple[Array, Array]:
    if isinstance(part, Status):
        least, most = UNKNOWN[part]
        return np.full(count, least), np.full(count, most)
    found = levels(part)
    return part.clause.limit.beyond(found.low, found.high)
