"""Rows of tables of many sizes in one flat array, sample after sample: which rows are whose."""

import itertools
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np

from privug.model.node import Array


class Segments:
    """How many rows each sample has, and so where its rows begin and end."""

    def __init__(self, sizes: Array, samples: int | None = None) -> None:
        self.sizes = np.broadcast_to(sizes, len(sizes) if samples is None else samples)

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
        part = Segments(self.sizes[picked])
        return np.take(array, np.repeat(self.starts[picked], part.sizes) + part.positions, axis=0)

    def split(self, array: Array) -> list[Array]:
        """Return the values of rows sample by sample."""
        return np.split(array, self.ends[:-1]) if len(self.sizes) else []

    def parts(self, rows: int) -> Iterator[tuple[slice, slice, "Segments"]]:
        """Cut into runs of samples of about so many rows; yield which samples and which rows, and their segments."""
        cuts = np.searchsorted(self.ends, np.arange(rows, self.total, rows)).tolist()
        edges = sorted({0, *cuts, len(self.sizes)})
        starts = self.starts
        for first, last in itertools.pairwise(edges):
            yield slice(first, last), slice(starts[first], self.ends[last - 1]), Segments(self.sizes[first:last])

    def groups(self) -> Iterator[tuple[Any, Any, tuple[int, int]]]:
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
        for members, rows, shape in self.groups():
            part = function(*(term[rows].reshape(*shape, *term.shape[1:]) for term in terms))
            if result is None:
                result = np.empty((len(self.sizes), *part.shape[1:]), part.dtype)
            result[members] = part
        assert result is not None
        return result
