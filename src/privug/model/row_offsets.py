"""Where the rows of samples stand in a flat array: equally many of each sample, or a number of its own."""

import itertools
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np

from privug.model.node import Array


class EqualRows:
    """The rows of samples that all have equally many; columns are arrays of samples by rows.

    `chosen` are the samples at hand, out of so many; a column or a quantity of length one is the same for all.
    """

    def __init__(self, size: int, samples: int, chosen: slice | None = None) -> None:
        self.size, self.samples = size, samples
        self.chosen = slice(0, samples) if chosen is None else chosen
        self.count = self.chosen.stop - self.chosen.start
        self.total = self.count * size
        self.largest = size

    def parts(self, rows: int) -> Iterator["EqualRows"]:
        """Cut into runs of samples of about so many rows."""
        step = max(1, rows // self.size)
        for start in range(0, max(1, self.samples), step):
            yield EqualRows(self.size, self.samples, slice(start, min(start + step, self.samples)))

    def _part(self, array: Array) -> Array:
        return array[self.chosen] if len(array) == self.samples else array

    def own(self, column: Array) -> Array:
        """Return the values that each row has of a column."""
        part = self._part(column)
        repeated = part if len(part) == self.count else np.repeat(part, self.count, axis=0)
        return repeated.reshape(-1, *part.shape[2:])

    def shared(self, array: Array) -> Array:
        """Return values of samples as values of rows; one for all stays one."""
        part = self._part(array)
        return np.repeat(part, self.size, axis=0) if len(part) > 1 else part

    def owners_of(self, rows: Any) -> Any:
        """Return the samples that some rows belong to."""
        return self.chosen.start + rows // self.size

    def reduced(self, function: Callable[..., Array], *terms: Array) -> Array:
        """Apply a function of arrays of samples by rows."""
        return function(*(term.reshape(self.count, self.size, *term.shape[1:]) for term in terms))


class RowOffsets:
    """How many rows each sample has, and so where its rows begin and end in a flat array.

    As a part of others, `first_sample` and `first_row` say where it begins.
    """

    def __init__(self, sizes: Array, samples: int | None = None, first_sample: int = 0, first_row: int = 0) -> None:
        self.sizes = np.broadcast_to(sizes, len(sizes) if samples is None else samples)
        self.first_sample, self.first_row = first_sample, first_row

    @cached_property
    def ends(self) -> Array:
        """The position after each sample's last row."""
        return np.cumsum(self.sizes, dtype=np.int64)

    @property
    def starts(self) -> Array:
        """The position of each sample's first row, if it has any."""
        starts: Array = self.ends - self.sizes
        return starts

    @property
    def total(self) -> int:
        """How many rows there are."""
        return int(self.ends[-1]) if len(self.sizes) else 0

    @property
    def largest(self) -> int:
        """How many rows a sample has at most."""
        return int(self.sizes.max(initial=0))

    @property
    def owners(self) -> Array:
        """The sample that each row belongs to."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    @property
    def positions(self) -> Array:
        """Where each row stands among those of its sample."""
        positions: Array = np.arange(self.total) - np.repeat(self.starts, self.sizes)
        return positions

    def spread(self, array: Array) -> Array:
        """Return values of samples as values of rows; one for all stays one."""
        return array if len(array) == 1 else np.repeat(array, self.sizes, axis=0)

    def chosen(self, array: Array, which: Any) -> Array:
        """Return the values of the rows of some samples, in the order in which those are given."""
        if isinstance(which, slice) and which == slice(None):
            return array
        picked = np.arange(len(self.sizes))[which]
        part = RowOffsets(self.sizes[picked])
        return np.take(array, np.repeat(self.starts[picked], part.sizes) + part.positions, axis=0)

    def split(self, array: Array) -> list[Array]:
        """Return the values of rows sample by sample."""
        return np.split(array, self.ends[:-1]) if len(self.sizes) else []

    def parts(self, rows: int) -> Iterator["RowOffsets"]:
        """Cut into runs of samples of about so many rows."""
        cuts = np.searchsorted(self.ends, np.arange(rows, self.total, rows)).tolist()
        edges, starts = sorted({0, *cuts, len(self.sizes)}), self.starts
        for first, last in itertools.pairwise(edges):
            yield RowOffsets(self.sizes[first:last], None, first, int(starts[first]))

    def own(self, column: Array) -> Array:
        """Return the values that each row of this part has of a whole column."""
        return column[self.first_row : self.first_row + self.total]

    def shared(self, array: Array) -> Array:
        """Return values of all samples as values of the rows of this part; one for all stays one."""
        part = array if len(array) == 1 else array[self.first_sample : self.first_sample + len(self.sizes)]
        return self.spread(part)

    def owners_of(self, rows: Any) -> Any:
        """Return the samples that some rows of this part belong to, counted from the first of all."""
        return self.first_sample + self.owners[rows]

    def _groups(self) -> Iterator[tuple[Any, Any, tuple[int, int]]]:
        """Yield samples with equally many rows: which they are, where their rows are, and how many of both."""
        order = None if (self.sizes[1:] >= self.sizes[:-1]).all() else np.argsort(self.sizes, kind="stable")
        sizes = self.sizes if order is None else self.sizes[order]
        edges = [0, *(np.flatnonzero(np.diff(sizes)) + 1).tolist(), len(sizes)]
        starts = self.starts
        for first, last in itertools.pairwise(edges):
            shape = last - first, int(sizes[first])
            if order is None:
                yield slice(first, last), slice(starts[first], self.ends[last - 1]), shape
            else:
                members = order[first:last]
                yield members, (starts[members, np.newaxis] + np.arange(shape[1])).reshape(-1), shape

    def reduced(self, function: Callable[..., Array], *terms: Array) -> Array:
        """Apply a function of arrays of samples by rows, whose samples have equally many rows, to each group."""
        result: Array | None = None
        for members, rows, shape in self._groups():
            part = function(*(term[rows].reshape(*shape, *term.shape[1:]) for term in terms))
            if result is None:
                result = np.empty((len(self.sizes), *part.shape[1:]), part.dtype)
            result[members] = part
        assert result is not None
        return result
