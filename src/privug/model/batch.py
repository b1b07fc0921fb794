"""Many values of one quantity, column by column."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

import numpy as np

from privug.errors import ArgumentError
from privug.model.categories import encode
from privug.model.distinct import is_varied, ranked
from privug.model.keys import key_of
from privug.model.node import Array, Node, Whole
from privug.model.structure import LEAF, Structure
from privug.model.value_types import retyped


@dataclass(frozen=True, slots=True)
class Column:
    """The values of one leaf: numbers, codes into `levels`, or Python objects."""

    array: Array
    levels: tuple[Any, ...] | None = None
    whole: Whole = False
    """Which of floats are whole numbers to a program."""

    @staticmethod
    def of(node: Node, array: Array) -> "Column":
        """Make the column of the values of a node."""
        return Column(array, node.levels, node.whole)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.decoded())

    def decoded(self) -> list[Any]:
        """Return plain Python values, one for each sample."""
        if self.whole and self.array.ndim == 1:
            return retyped(self.array.tolist(), self.whole)
        if self.levels is not None:
            labels = np.empty(len(self.levels), object)
            labels[:] = self.levels
            decoded = labels[self.array]
            return decoded.tolist() if decoded.ndim == 1 else list(decoded)
        return self.array.tolist() if self.array.ndim == 1 else list(self.array)

    def take(self, which: Array) -> "Column":
        """Return the chosen values."""
        return replace(self, array=self.array[which])

    def distinct(self) -> tuple[Array, "Column"]:
        """Return a code for each sample and the distinct values the codes stand for, in ascending order if ordered."""
        if self.array.ndim == 1 and self.array.dtype != object:
            codes, numbers = ranked(self.array)
            return codes, replace(self, array=numbers)
        if self.array.ndim > 1:
            parts = self.array.reshape(len(self.array), math.prod(self.array.shape[1:])).T
            codes = combined(ranked(part)[0] for part in parts) if len(parts) else np.zeros(len(self.array), np.intp)
        else:
            seen: dict[Any, int] = {}
            keys = (seen.setdefault(key_of(value), len(seen)) for value in self.array)
            codes = np.fromiter(keys, np.intp, len(self.array))
        return codes, self.take(first_places(codes))


def combined(several: Iterable[Array]) -> Array:
    """Return one code for each combination of codes, in the order of the first code, then of the second, and so on."""

    def both(codes: Array, inner: Array) -> Array:
        return ranked(codes * (int(inner.max(initial=0)) + 1) + inner)[0]

    return reduce(both, several)


def first_places(codes: Array) -> Array:
    """Return where each code stands first."""
    first = np.empty(int(codes.max(initial=-1)) + 1, np.intp)
    first[codes[::-1]] = np.arange(len(codes))[::-1]  # of several positions the last one written stays
    return first


@dataclass(frozen=True, slots=True)
class Batch:
    """Many values of one possibly nested quantity."""

    structure: Structure
    columns: tuple[Column, ...]
    samples: int
    _found: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __len__(self) -> int:
        return self.samples

    @staticmethod
    def of_values(values: Sequence[Any] | Array) -> "Batch":
        """Make a batch of plain Python values: numbers if they all are, categories if they are all hashable."""
        if isinstance(values, np.ndarray) and values.dtype.kind in "bif" and values.ndim >= 1:
            return Batch(LEAF, (Column(values),), len(values))
        listed = list(values)
        try:
            column = Column(*encode(listed))
        except ArgumentError:
            column = Column(np.empty(len(listed), object))
            column.array[:] = listed
        return Batch(LEAF, (column,), len(listed))

    def take(self, which: Array) -> "Batch":
        """Return the chosen samples, by positions or by a mask."""
        samples = int(which.sum()) if which.dtype == bool else len(which)
        return Batch(self.structure, tuple(column.take(which) for column in self.columns), samples)

    def values(self) -> list[Any]:
        """Return the plain Python values."""
        return list(self.structure.build_each(iter(self.columns), self.samples))

    def numbers(self) -> Array | None:
        """Return the values as one array of numbers, or None if they are not single numbers."""
        if self.structure is not LEAF or self.columns[0].levels is not None:
            return None
        array = self.columns[0].array
        return array if array.ndim == 1 and array.dtype.kind in "bif" else None

    def factorized(self) -> tuple[Array, list[Any]]:
        """Return a code for each sample and the distinct values the codes stand for, in ascending order if ordered."""
        if "factorized" not in self._found:
            self._found["factorized"] = self._factorized()
        codes, values = self._found["factorized"]
        return codes, list(values)

    def _factorized(self) -> tuple[Array, list[Any]]:
        if len(self.columns) == 1:
            codes, column = self.columns[0].distinct()
            return codes, Batch(self.structure, (column,), len(column.array)).values()
        several = (column.distinct()[0] for column in self.columns)
        codes = combined(several) if self.columns else np.zeros(self.samples, np.intp)
        return codes, self.take(first_places(codes)).values()

    def counts(self) -> Array:
        """Return how often each distinct value occurs, in the order of `factorized`."""
        if "counts" not in self._found:
            numbers = self._many_numbers()
            # Sorting numbers is quicker than finding their codes.
            self._found["counts"] = (
                np.bincount(self.factorized()[0]) if numbers is None else np.unique(numbers, return_counts=True)[1]
            )
        counts: Array = self._found["counts"]
        return counts

    def distinct(self) -> int:
        """Return how many distinct values there are."""
        return len(self.factorized()[1] if self._many_numbers() is None else self.counts())

    def _many_numbers(self) -> Array | None:
        numbers = self.numbers()
        return None if numbers is None or "factorized" in self._found or not is_varied(numbers) else numbers

    @staticmethod
    def concatenate(batches: Sequence["Batch"]) -> "Batch":
        """Join batches of one quantity end to end."""
        first = batches[0]
        if len(batches) == 1:
            return first
        if any(not _same_layout(first, other) for other in batches):
            return Batch.of_values([value for batch in batches for value in batch.values()])
        columns = tuple(
            replace(column, array=np.concatenate([batch.columns[position].array for batch in batches]))
            for position, column in enumerate(first.columns)
        )
        return Batch(first.structure, columns, sum(len(batch) for batch in batches))


def _same_layout(left: Batch, right: Batch) -> bool:
    return left.structure == right.structure and all(
        (a.levels, a.whole, a.array.shape[1:], a.array.dtype) == (b.levels, b.whole, b.array.shape[1:], b.array.dtype)
        for a, b in zip(left.columns, right.columns, strict=True)
    )
