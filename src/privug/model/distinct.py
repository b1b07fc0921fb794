"""The distinct numbers of an array, and for each number its place among them.

Sorting would do; the cases that matter are much quicker. Whole numbers of a small range are told apart by their
distance from the smallest, and numbers with few distinct values by a hash table, in parts that stay in the cache.
Combinations of numbers are one number each, in a mixed radix.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from privug.model.keys import key_of
from privug.model.node import Array

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
