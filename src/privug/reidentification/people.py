"""What can be asked about a person in a table, whichever way it is answered."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from privug.estimate import Estimate
from privug.inference.belief import Belief


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
