"""Many values of one quantity, column by column, and the distinct numbers among them.

Sorting would do; the cases that matter are much quicker. Whole numbers of a small range are told apart by their
distance from the smallest, and numbers with few distinct values by a hash table, in parts that stay in the cache.
Combinations of numbers are one number each, in a mixed radix.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from privug.errors import ArgumentError
from privug.model.categories import encode
from privug.model.node import Array, Node, Whole
from privug.model.structure import LEAF, Structure
from privug.model.values import key_of, retyped

PART = 1 << 15
PROBE = 1 << 16
MOST_TABLED = 1 << 14
LARGEST_KEY = 1 << 62
MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2^64 divided by the golden ratio: Fibonacci hashing


def ranked(array: Array) -> tuple[Array, Array]:
    """Return the place of each number among the distinct ones, and those in ascending order; not-a-number is one.

    Python's objects, such as numbers some of which are None, have no order: they come as they are first met.
    """
    if array.dtype == object:
        seen: dict[Any, int] = {}
        codes = np.fromiter((seen.setdefault(key_of(value), len(seen)) for value in array), np.intp, len(array))
        _, first = np.unique(codes, return_index=True)
        return codes, array[first]
    span = _small_span(array)
    if span is not None:
        return _by_offset(array, *span)
    tabled = _by_table(array) if array.dtype.itemsize == 8 and len(array) > PROBE else None
    if tabled is not None:
        return tabled
    numbers, places = np.unique(array, return_inverse=True)
    return places.reshape(-1), numbers


class Digits(NamedTuple):
    """Whole numbers from zero up to a width, in the order of the values that they stand for."""

    codes: Array
    width: int


def digits(array: Array) -> Digits:
    """Return a digit for each number of an array: its distance from the smallest one, or its place among all."""
    span = _small_span(array)
    if span is not None:
        low, width = span
        return Digits(np.subtract(array, low, dtype=np.intp), width)
    if array.dtype.kind == "f" and len(array) and array.min() == array.max():
        return Digits(np.zeros(len(array), np.intp), 1)
    codes, numbers = ranked(array)
    return Digits(codes, len(numbers))


def combined(several: Iterable[Digits]) -> Array:
    """Return one code for each combination of digits, from zero on and in the order of the first, the second, ..."""
    keys: Array | None = None
    total = 1
    for codes, width in several:
        if keys is None:
            keys, total = codes, width
            continue
        if total * width > LARGEST_KEY:
            keys, distinct = ranked(keys)
            total = len(distinct)
        keys, total = keys * width + codes, total * width
    assert keys is not None
    return ranked(keys)[0]


def _small_span(array: Array) -> tuple[int, int] | None:
    """Return the smallest of some whole numbers and how wide their range is, if that is not much wider than many."""
    if array.dtype.kind not in "biu" or array.dtype == np.uint64 or not len(array):
        return None
    low, high = int(array.min()), int(array.max())
    return (low, high - low + 1) if high - low < 4 * len(array) + 1024 else None


def is_varied(array: Array) -> bool:
    """Say whether a sample of an array shows so many distinct numbers that a table of them would not pay."""
    return len(array) > PROBE and len(_probed(array)) > MOST_TABLED


def _probed(array: Array) -> Array:
    return np.unique(array[:: max(1, len(array) // PROBE)])


def _parts(length: int) -> Iterator[slice]:
    return (slice(start, start + PART) for start in range(0, length, PART))


def _by_offset(array: Array, low: int, span: int) -> tuple[Array, Array]:
    places = np.empty(len(array), np.intp)
    present = np.zeros(span, bool)
    for part in _parts(len(array)):
        np.subtract(array[part], low, out=places[part], dtype=np.intp)
        present[places[part]] = True
    numbers = np.flatnonzero(present)
    if len(numbers) < span:
        _replace(places, np.cumsum(present) - 1)
    return places, (numbers + low).astype(array.dtype)


def _replace(places: Array, table: Array) -> None:
    for part in _parts(len(places)):
        places[part] = table.take(places[part])


class _Table:
    """A hash table from the bits of some numbers to their places."""

    def __init__(self, numbers: Array) -> None:
        size = max(8, (4 * len(numbers)).bit_length())
        self._shift = np.uint64(64 - size)
        self._last = np.intp((1 << size) - 1)
        self._places = np.full(1 << size, -1, np.intp)
        self._bits = np.zeros(1 << size, np.uint64)
        bits = numbers.view(np.uint64)
        waiting = np.arange(len(numbers))
        slots = self._slots(bits)
        while len(waiting):
            free = self._places[slots] < 0
            self._places[slots[free]] = waiting[free]
            settled = self._places[slots] == waiting
            self._bits[slots[settled]] = bits[waiting[settled]]
            waiting, slots = waiting[~settled], (slots[~settled] + 1) & self._last

    def _slots(self, bits: Array) -> Array:
        hashed = bits * MULTIPLIER
        hashed >>= self._shift
        return hashed.view(np.intp)

    def places(self, bits: Array) -> Array:
        """Return the place of each number, or -1 for those not in the table."""
        slots = self._slots(bits)
        places: Array = self._places.take(slots)
        wrong = np.flatnonzero(self._bits.take(slots) != bits)
        slots = slots[wrong]
        while len(wrong):
            slots = (slots + 1) & self._last
            places[wrong] = self._places[slots]
            further = (self._bits[slots] != bits[wrong]) & (places[wrong] >= 0)
            wrong, slots = wrong[further], slots[further]
        return places


def _by_table(array: Array) -> tuple[Array, Array] | None:
    """Look each number up among those of a sample; give up if the sample shows too many or knows too few."""
    numbers = _probed(array)
    if len(numbers) > MOST_TABLED:
        return None
    table, places = _Table(numbers), np.empty(len(array), np.intp)
    unknown: list[Array] = []
    patience = len(array) // 8
    for part in _parts(len(array)):
        values = array[part] + 0 if array.dtype.kind == "f" else array[part]  # minus zero is zero
        places[part] = found = table.places(np.ascontiguousarray(values).view(np.uint64))
        if found.min() < 0:
            unknown.append(part.start + np.flatnonzero(found < 0))
            patience -= len(unknown[-1])
            if patience < 0:
                return None
    if unknown:
        numbers = _with_unknown(array, places, numbers, np.concatenate(unknown))
    return places, numbers


def _with_unknown(array: Array, places: Array, numbers: Array, unknown: Array) -> Array:
    """Place the numbers that the table did not know, and return all distinct ones."""
    others, among = np.unique(array[unknown], return_inverse=True)
    places[unknown] = len(numbers) + among.reshape(-1)
    merged, table = np.unique(np.concatenate([numbers, others]), return_inverse=True)
    _replace(places, table.reshape(-1))
    return merged


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
        decoded = self.decoded_array()
        return decoded.tolist() if decoded.ndim == 1 else list(decoded)

    def decoded_array(self) -> Array:
        """Return the values as an array: numbers, or the labels that codes stand for."""
        if self.levels is None:
            return self.array
        labels = np.empty(len(self.levels), object)
        labels[:] = self.levels
        decoded: Array = labels[self.array]
        return decoded

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
            codes = combined(map(digits, parts)) if len(parts) else np.zeros(len(self.array), np.intp)
        else:
            seen: dict[Any, int] = {}
            keys = (seen.setdefault(key_of(value), len(seen)) for value in self.array)
            codes = np.fromiter(keys, np.intp, len(self.array))
        return codes, self.take(first_places(codes))

    def digits(self) -> Digits:
        """Return a digit for each sample, equal where values are, to be combined with those of other columns."""
        if self.array.ndim == 1 and self.array.dtype != object:
            return digits(self.array)
        codes, distinct = self.distinct()
        return Digits(codes, len(distinct.array))


def first_places(codes: Array) -> Array:
    """Return where each code stands first."""
    first = np.empty(int(codes.max(initial=-1)) + 1, np.intp)
    first[codes[::-1]] = np.arange(len(codes))[::-1]  # of several positions the last one written stays
    return first


def grouped(values: Array, weights: Array) -> tuple[Array, Array]:
    """Return the distinct numbers, or lines of a table, in order, and the total weight of each."""
    distinct, codes = np.unique(values, axis=0 if values.ndim > 1 else None, return_inverse=True)
    return distinct, np.bincount(codes.reshape(-1), weights, len(distinct))


def repeated(counts: Array) -> tuple[Array, Array]:
    """Return each position as often as its count says, and for each position numbers from zero on."""
    owner = np.repeat(np.arange(len(counts)), counts)
    return owner, np.arange(len(owner)) - (np.cumsum(counts) - counts)[owner]


@dataclass(frozen=True, slots=True)
class Batch:
    """Many values of one possibly nested quantity."""

    structure: Structure
    columns: tuple[Column, ...]
    samples: int
    each_once: bool = False
    """Whether it is known that no two of the values are equal."""
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
        is_mask = which.dtype == bool
        samples = int(np.count_nonzero(which)) if is_mask else len(which)
        columns = tuple(column.take(which) for column in self.columns)
        return Batch(self.structure, columns, samples, self.each_once and is_mask)

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
        codes, distinct = self.coded()
        return codes, distinct.values()

    def coded(self) -> tuple[Array, "Batch"]:
        """Return a code for each sample and a batch of the distinct values, in ascending order if ordered."""
        if len(self.columns) == 1:
            codes, column = self.columns[0].distinct()
            return codes, Batch(self.structure, (column,), len(column.array))
        codes = codes_of([self], self.samples)
        return codes, self.take(first_places(codes))

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
        if self.each_once:
            return self.samples
        if "factorized" in self._found:
            return len(self._found["factorized"][1])
        return len(self.coded()[1] if self._many_numbers() is None else self.counts())

    def _many_numbers(self) -> Array | None:
        numbers = self.numbers()
        return None if numbers is None or "factorized" in self._found or not is_varied(numbers) else numbers

    def has_layout_of(self, other: "Batch") -> bool:
        """Say whether values are made of the same columns as those of another batch."""
        return self.structure == other.structure and all(
            (a.levels, a.whole, a.array.shape[1:], a.array.dtype)
            == (b.levels, b.whole, b.array.shape[1:], b.array.dtype)
            for a, b in zip(self.columns, other.columns, strict=True)
        )

    @staticmethod
    def concatenate(batches: Sequence["Batch"]) -> "Batch":
        """Join batches of one quantity end to end."""
        first = batches[0]
        if len(batches) == 1:
            return first
        if not all(other.has_layout_of(first) for other in batches):
            return Batch.of_values([value for batch in batches for value in batch.values()])
        columns = tuple(
            replace(column, array=np.concatenate([batch.columns[position].array for batch in batches]))
            for position, column in enumerate(first.columns)
        )
        return Batch(first.structure, columns, sum(len(batch) for batch in batches))


class DeferredBatch(Batch):
    """A batch whose columns are made when they are asked for: of some of its values, or of all of them."""

    def __init__(
        self, structure: Structure, samples: int, make: Callable[[Array | None], Batch], each_once: bool = False
    ) -> None:
        """Make ready; `make` gives the values at some places, or all of them."""
        values = {"structure": structure, "samples": samples, "each_once": each_once, "_found": {"make": make}}
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @staticmethod
    def chosen(batch: Batch, places: Array) -> "DeferredBatch":
        """Return the values of another batch at some places."""
        return DeferredBatch(
            batch.structure, len(places), lambda some: batch.take(places if some is None else places[some])
        )

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns, made now if nobody has asked for them yet."""
        if "columns" not in self._found:
            self._found["columns"] = self._found["make"](None).columns
        columns: tuple[Column, ...] = self._found["columns"]
        return columns

    def take(self, which: Array) -> Batch:
        """Return the chosen samples, by positions or by a mask; no others are made."""
        if "columns" in self._found:
            return Batch.take(self, which)
        is_mask = which.dtype == bool
        made: Batch = self._found["make"](np.flatnonzero(which) if is_mask else which)
        return replace(made, each_once=self.each_once and is_mask)

    def __reduce__(self) -> tuple[Any, ...]:
        return Batch, (self.structure, self.columns, self.samples, self.each_once)


class Values(Sequence[Any]):
    """The plain values of a batch, each made when it is asked for."""

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self._made: list[Any] | None = None

    def __len__(self) -> int:
        return len(self.batch)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice) or self._made is not None:
            return self._all()[place]
        return self.batch.take(np.array([range(len(self))[place]])).values()[0]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._all())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._all() == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self._all())

    def _all(self) -> list[Any]:
        if self._made is None:
            self._made = self.batch.values()
        return self._made


def codes_of(quantities: Sequence[Batch], samples: int) -> Array:
    """Return whole numbers from zero on that are equal where all quantities are, in ascending order if ordered."""
    columns = [column for batch in quantities for column in batch.columns]
    if not columns:
        return np.zeros(samples, np.intp)
    return combined(column.digits() for column in columns)
