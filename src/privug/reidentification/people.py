"""What can be asked about a person in a table, whichever way it is answered."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from privug.errors import ImpossibleObservation
from privug.estimate import Estimate
from privug.inference.belief import Belief
from privug.model.batch import Batch
from privug.model.node import Array


class People(Protocol):
    """A person among the rows of a table. The person's own row counts as matching."""

    def matching(self, columns: Sequence[str]) -> Belief:
        """Return the number of rows that have the person's values in the columns."""

    def expected(self, columns: Sequence[str]) -> Estimate:
        """Return the expected number of matching rows."""

    def unique(self, columns: Sequence[str]) -> Estimate:
        """Return the probability that no other row matches."""

    def linked(self, columns: Sequence[str]) -> Estimate:
        """Return the probability that a matching row taken at random is the person's."""

    def disclosed(self, columns: Sequence[str], secret: str) -> Estimate:
        """Return the probability that all matching rows have the person's secret."""

    def guessed(self, columns: Sequence[str], secret: str) -> Estimate:
        """Return the probability that a matching row taken at random has the person's secret."""

    def sharing(self, columns: Sequence[str], secret: str, matching: int | None) -> Belief:
        """Return the number of matching rows with the person's secret, given the number of matching rows."""

    def posterior(self, columns: Sequence[str], secret: str, seen: Mapping[Any, int]) -> Belief:
        """Return the belief about the person's secret, given how many matching rows have each value."""


class ListedPeople(ABC):
    """A person who may be one of several, which are listed; the rows that match each of these are counted."""

    method = "exact"
    impossible = "matching: {} rows has probability zero"
    """What is said of a number of matching rows that nobody has."""

    @abstractmethod
    def listed(self, columns: Sequence[str], secret: str | None = None) -> tuple[Array, Array, Array | None]:
        """Return the numbers of rows that match each, and that share the secret as well, and how likely each is.

        The latter is None if all are equally likely.
        """

    def _mean(
        self,
        measure: Callable[[Array, Array], Array],
        columns: Sequence[str],
        secret: str | None = None,
        unit: str = "",
    ) -> Estimate:
        matching, sharing, weights = self.listed(columns, secret)
        numbers = measure(matching, sharing)
        return Estimate.exactly(float(numbers.mean() if weights is None else weights @ numbers), unit, self.method)

    def unique(self, columns: Sequence[str]) -> Estimate:
        """Return the probability that no other row matches."""
        return self._mean(lambda matching, _: matching == 1, columns)

    def expected(self, columns: Sequence[str]) -> Estimate:
        """Return the expected number of matching rows."""
        return self._mean(lambda matching, _: matching, columns, unit="rows")

    def linked(self, columns: Sequence[str]) -> Estimate:
        """Return the expected value of one over the number of matching rows."""
        return self._mean(lambda matching, _: 1 / matching, columns)

    def disclosed(self, columns: Sequence[str], secret: str) -> Estimate:
        """Return the probability that all matching rows have the person's secret."""
        return self._mean(lambda matching, sharing: matching == sharing, columns, secret)

    def guessed(self, columns: Sequence[str], secret: str) -> Estimate:
        """Return the expected share of matching rows that have the person's secret."""
        return self._mean(lambda matching, sharing: sharing / matching, columns, secret)

    def matching(self, columns: Sequence[str]) -> Belief:
        """Return the number of matching rows."""
        matching, _, weights = self.listed(columns)
        return belief_of(matching, weights)

    def sharing(self, columns: Sequence[str], secret: str, matching: int | None) -> Belief:
        """Return the number of matching rows with the person's secret."""
        numbers, sharing, weights = self.listed(columns, secret)
        agrees = np.ones(len(numbers), bool) if matching is None else numbers == matching
        if not (agrees if weights is None else weights[agrees]).any():
            raise ImpossibleObservation(self.impossible.format(matching))
        return belief_of(sharing[agrees], None if weights is None else weights[agrees])


def belief_of(values: Any, weights: Array | None = None) -> Belief:
    """Make the exact belief of values with weights; without, all are equally likely."""
    codes, distinct = Batch.of_values(values).factorized()
    total = np.bincount(codes, weights, len(distinct))
    there = np.flatnonzero(total > 0)
    batch = Batch.of_values([distinct[place] for place in there])
    return Belief.listed(batch, total[there] / total.sum())
