"""The values that discrete distributions can take, with their probabilities, for many parameters at once."""

from typing import NamedTuple

from privug.model.node import Array


class Support(NamedTuple):
    """Values with their probabilities; `owner` is the row of parameters that each belongs to."""

    owner: Array
    values: Array
    probabilities: Array

    def possible(self) -> "Support":
        """Return the values of positive probability."""
        there = self.probabilities > 0
        return self if there.all() else Support(*(part[there] for part in self))
