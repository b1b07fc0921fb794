"""A person among rows that are independent of one another: everything in closed form."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from privug.arguments import shown
from privug.errors import ImpossibleObservation
from privug.estimate import Estimate
from privug.inference.belief import Belief
from privug.model.batch import Batch
from privug.model.node import Array
from privug.prior.table import Records
from privug.reidentification.crowd import Crowd
from privug.reidentification.laws import Coding
from privug.reidentification.responses import Factor, NoneMatches, OneOfMatching
from privug.reidentification.scenes import Person, scenes_of

METHOD = "exact"


class IndependentRows:
    """A person in a table whose rows are independent.

    Given the person's own values, every other row matches them independently of the rest, so that the number of
    matching rows is a sum of binomial numbers; this is averaged over what the person's values may be.
    """

    def __init__(self, records: Records, person: Person) -> None:
        self._coding = Coding()
        self._crowds = [Crowd(scene, self._coding) for scene in scenes_of(records, person, self._coding)]

    def unique(self, columns: Sequence[str]) -> Estimate:
        """Return the probability that no other row matches."""
        return self._average(lambda crowd: crowd.expected(NoneMatches(), crowd.factors(columns)))

    def disclosed(self, columns: Sequence[str], secret: str) -> Estimate:
        """Return the probability that no other row matches and has another secret."""
        return self._average(lambda crowd: crowd.expected(NoneMatches(), crowd.factors(columns, secret, "differs")))

    def linked(self, columns: Sequence[str]) -> Estimate:
        """Return the expected value of one over the number of matching rows."""
        return self._average(lambda crowd: crowd.expected(OneOfMatching(), crowd.factors(columns)))

    def guessed(self, columns: Sequence[str], secret: str) -> Estimate:
        """Return the expected share of matching rows that have the person's secret."""
        return self._average(lambda crowd: crowd.share(columns, secret))

    def expected(self, columns: Sequence[str]) -> Estimate:
        """Return the expected number of matching rows."""
        return self._average(lambda crowd: 1.0 + crowd.mean(columns), "rows")

    def _average(self, answer: Callable[[Crowd], float], unit: str = "") -> Estimate:
        value = float(sum(crowd.weight * answer(crowd) for crowd in self._crowds))
        return Estimate.exactly(value if unit else min(1.0, max(0.0, value)), unit, METHOD)

    def matching(self, columns: Sequence[str]) -> Belief:
        """Return the number of matching rows."""
        return self._counted(lambda crowd: crowd.factors(columns))

    def sharing(self, columns: Sequence[str], secret: str, matching: int | None) -> Belief:
        """Return the number of matching rows with the person's secret."""
        if matching is None:
            return self._counted(lambda crowd: crowd.factors(columns, secret, "shares"))
        parts = [crowd.weight * crowd.sharing(columns, secret, matching - 1) for crowd in self._crowds]
        return _belief(np.sum(parts, axis=0), f"{matching} matching rows")

    def _counted(self, factors: Callable[[Crowd], list[Factor]]) -> Belief:
        parts = [crowd.weight * crowd.distribution(factors(crowd)) for crowd in self._crowds]
        total = np.zeros(max(map(len, parts)))
        for part in parts:
            total[: len(part)] += part
        return _belief(total, "that many rows")

    def posterior(self, columns: Sequence[str], secret: str, seen: Mapping[Any, int]) -> Belief:
        """Return the belief about the person's secret."""
        numbers = {self._coding.code(secret, value): count for value, count in seen.items()}
        parts = [crowd.weight * crowd.posterior(columns, secret, numbers) for crowd in self._crowds]
        weights = np.sum(parts, axis=0)
        if weights.sum() <= 0:
            raise ImpossibleObservation(f"seen: {shown(dict(seen))} has probability zero")
        there = np.flatnonzero(weights > 0)
        values = self._coding.values(secret)
        batch = Batch.of_values([values[place] for place in there])
        return Belief.listed(batch, weights[there] / weights.sum())


def _belief(probabilities: Array, what: str) -> Belief:
    """Make the belief about one plus a number from the probabilities of 0, 1, and so on."""
    total = float(probabilities.sum())
    if total <= 0:
        raise ImpossibleObservation(f"matching: {what} have probability zero")
    there = np.flatnonzero(probabilities > 0)
    return Belief.listed(Batch.of_values(there + 1), probabilities[there] / total)
