"""Tallies: the total weight of each distinct value, or combination of values, merged while states come in."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from privug.inference.case_plan import settled
from privug.model.batch import Batch, codes_of, first_places
from privug.model.node import Array
from privug.model.structure import LEAF

LARGEST_SPAN = 1 << 22
MOST_PENDING = 1 << 21


class WeightedCounter:
    """The weights of the distinct values of some quantities together; those that come `each_once` need no merging."""

    def __init__(self, *, each_once: bool = False) -> None:
        self._each_once = each_once
        self._pending: list[tuple[tuple[Batch, ...], Array]] = []
        self._rows = 0
        self._most = MOST_PENDING
        self._grid: Grid | None = Grid()

    def add(self, quantities: Sequence[Batch], weights: Array) -> None:
        """Count the values of some states."""
        if not len(weights):
            return
        quantities = [settled(batch) for batch in quantities]
        if self._each_once:
            self._append(tuple(quantities), weights)
            return
        if self._grid is not None and len(quantities) == 1:
            if self._grid.add(quantities[0], weights):
                return
            self._pending.extend(self._grid.merged())
        self._grid = None
        self._append(*_merged(quantities, weights))
        if self._rows > self._most:
            self._condense()
            self._most = max(MOST_PENDING, 2 * self._rows)  # what is all distinct is not gone through again and again

    def scale(self, factor: float) -> None:
        """Multiply all weights so far."""
        self._pending = [(quantities, weights * factor) for quantities, weights in self._pending]
        if self._grid is not None:
            self._grid.weights *= factor

    def _append(self, quantities: tuple[Batch, ...], weights: Array) -> None:
        self._pending.append((quantities, weights))
        self._rows += len(weights)

    def _condense(self) -> None:
        if len(self._pending) > 1:
            quantities = [Batch.concatenate(parts) for parts in zip(*(q for q, _ in self._pending), strict=True)]
            weights = np.concatenate([weights for _, weights in self._pending])
            self._pending, self._rows = [], 0
            self._append(*((tuple(quantities), weights) if self._each_once else _merged(quantities, weights)))

    def result(self) -> tuple[tuple[Batch, ...], Array]:
        """Return the distinct values, in ascending order if ordered, and their weights."""
        if self._grid is not None:
            self._pending.extend(self._grid.merged())
            self._grid = None
        self._condense()
        quantities, weights = self._pending[0]
        there = weights > 0
        if not there.all():
            quantities, weights = tuple(batch.take(there) for batch in quantities), weights[there]
        return tuple(replace(batch, each_once=self._each_once) for batch in quantities), weights


class Grid:
    """The weights of whole numbers of a moderate range, by their distance from the smallest."""

    def __init__(self) -> None:
        self._like: Batch | None = None
        self._low = 0
        self.weights: Array = np.zeros(0)

    def add(self, batch: Batch, weights: Array) -> bool:
        """Count some numbers; say whether that could be done."""
        column = batch.columns[0] if batch.structure is LEAF else None
        if column is None or column.array.dtype.kind not in "bi" or column.array.ndim > 1:
            return False
        like = self._like.columns[0] if self._like is not None else column
        if (like.levels, like.array.dtype) != (column.levels, column.array.dtype):
            return False
        low, high = int(column.array.min()), int(column.array.max())
        start, stop = low, high + 1
        if len(self.weights):
            start, stop = min(low, self._low), max(stop, self._low + len(self.weights))
        if stop - start > LARGEST_SPAN:
            return False
        if stop - start > len(self.weights):
            grown = np.zeros(stop - start)
            grown[self._low - start : self._low - start + len(self.weights)] = self.weights
            self.weights, self._low = grown, start
        counts = np.bincount(np.subtract(column.array, low, dtype=np.intp), weights, high - low + 1)
        self.weights[low - self._low : high + 1 - self._low] += counts
        self._like = batch.take(np.zeros(1, np.intp))
        return True

    def merged(self) -> list[tuple[tuple[Batch, ...], Array]]:
        """Return the numbers that have weight, with it."""
        if self._like is None:
            return []
        held = np.flatnonzero(self.weights)
        column = self._like.columns[0]
        numbers = (held + self._low).astype(column.array.dtype)
        batch = Batch(LEAF, (type(column)(numbers, column.levels),), len(numbers))
        return [((batch,), self.weights[held])]


def marginal(quantities: Sequence[Batch], weights: Array, position: int) -> tuple[tuple[Batch, ...], Array]:
    """Return the distinct values of one of several quantities, with their weights."""
    tally = WeightedCounter()
    tally.add([quantities[position]], weights)
    return tally.result()


def _merged(quantities: Sequence[Batch], weights: Array) -> tuple[tuple[Batch, ...], Array]:
    """Merge equal combinations of values."""
    codes = codes_of(quantities, len(weights))
    first = first_places(codes)
    return tuple(batch.take(first) for batch in quantities), np.bincount(codes, weights, len(first))
