"""Laws on a lattice: sums of independent, equally distributed vectors of integers."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy

from privug.model.batch import grouped
from privug.model.node import Array
from privug.prior.standard import binomial

LOST = 1e-16
MOST_COUNTS = 1 << 20
MOST_KEPT = 1 << 16  # up to so many counts, far tails are kept: what is rare can be seen all the same
MOST_CELLS = 1 << 24
MOST_PRODUCTS = 2e8  # of a convolution term by term, which keeps all digits of far tails
NOISE = 4e-16  # what is smaller after a Fourier transform may be rounding


class SumLaw(NamedTuple):
    """The values of a sum, a line for each, their probabilities, and how much probability may be misplaced."""

    values: Array
    probabilities: Array
    lost: float = 0.0


def sum_law(values: Array, probabilities: Array, count: int, most: float = MOST_CELLS) -> SumLaw | None:
    """Return the distribution of the sum of `count` independent vectors.

    `values` holds whole numbers, a line for each possible vector. Far tails of less than 1e-16 are left out
    where there are many. None, at once, if the sums have more values than there may be at `most`.

    >>> law = sum_law(np.array([[0], [1]]), np.array([0.5, 0.5]), 3)
    >>> law.values[:, 0].tolist(), law.probabilities.round(6).tolist()
    ([0, 1, 2, 3], [0.125, 0.375, 0.375, 0.125])
    """
    order = np.argsort(-probabilities, kind="stable")
    order = order[probabilities[order] > 0]
    values, probabilities = values[order], probabilities[order]
    if len(values) == 1:
        return SumLaw((values * count).astype(np.int64), np.ones(1))
    steps = values - values.min(axis=0)
    cells = float(np.prod(steps.max(axis=0) // _units(steps) * float(count) + 1))
    if cells**2 <= MOST_PRODUCTS:
        return _by_squaring(SumLaw(values, probabilities), count)
    ranges = _counted(probabilities, count)
    if ranges is not None:
        return _by_counts(values, probabilities, count, ranges)
    if cells**2 <= 4 * MOST_PRODUCTS:
        return _by_squaring(SumLaw(values, probabilities), count)
    return _by_transform(values, probabilities, count, most)


def _counted(probabilities: Array, count: int) -> list[tuple[int, int]] | None:
    """Return how often each vector but the likeliest can come up; None if these are too many combinations."""
    ranges = [(0, count)] * (len(probabilities) - 1)
    if len(ranges) * math.log(2) > math.log(MOST_COUNTS):  # each can come up or not, at least
        return None
    if len(ranges) * math.log(count + 1) > math.log(MOST_KEPT):
        ranges = [_range(np.array([0, 1]), np.array([1 - p, p]), count) for p in probabilities[1:]]
    return ranges if sum(math.log(high - low + 1) for low, high in ranges) <= math.log(MOST_COUNTS) else None


def _by_squaring(law: SumLaw, count: int) -> SumLaw | None:
    """Add two equal sums, then two of these, and so on."""
    power, chosen = law, list[SumLaw]()
    while True:
        if count & 1:
            chosen.append(power)
        count >>= 1
        if not count:
            return total_law(chosen)
        doubled = total_law([power, power])
        if doubled is None:
            return None
        power = doubled


def _by_counts(values: Array, probabilities: Array, count: int, ranges: Sequence[tuple[int, int]]) -> SumLaw:
    """Go through how often each vector but the likeliest comes up: these numbers are multinomial."""
    sums = (values[:1] * count).astype(np.int64)
    chances, left, share = np.ones(1), np.full(1, count), 1.0
    for value, chance, (low, high) in zip(values[1:], probabilities[1:], ranges, strict=True):
        numbers = np.arange(low, high + 1)
        owner, times = np.repeat(np.arange(len(chances)), len(numbers)), np.tile(numbers, len(chances))
        fits = times <= left[owner]
        owner, times = owner[fits], times[fits]
        # Given how often the earlier ones came up, this one is binomial among the rest.
        chances = chances[owner] * binomial(times, left[owner], min(1.0, chance / share))
        sums = sums[owner] + times[:, np.newaxis] * (value - values[0])
        left, share = left[owner] - times, share - chance
    distinct, total = grouped(sums, chances)
    cut = sum(LOST for low, high in ranges if (low, high) != (0, count))
    return SumLaw(distinct[total > 0], total[total > 0] / total.sum(), cut)


def _by_transform(values: Array, probabilities: Array, count: int, most: float) -> SumLaw | None:
    """Raise the Fourier transform of one vector's distribution to a power."""
    lowest = values.min(axis=0)
    steps = (values - lowest).astype(np.int64)
    moving = _moving(steps.max(axis=0))
    steps, units = steps[:, moving], _units(steps)[moving]
    steps //= units
    starts, ends = zip(*(_range(column, probabilities, count) for column in steps.T), strict=True)
    if math.prod(end - start + 1.0 for start, end in zip(starts, ends, strict=True)) > most:
        return None
    # Transforms of lengths with large prime factors take many times as long.
    shape = tuple(scipy.fft.next_fast_len(e - s + 1, real=True) for s, e in zip(starts, ends, strict=True))
    box = np.zeros(shape)
    np.add.at(box, tuple((steps % np.array(shape)).T), probabilities)
    pmf = np.fft.irfftn(np.fft.rfftn(box) ** count, shape, axes=range(len(shape)))
    # The transform wraps around: position k of an axis stands for the sum in its range that is k modulo its length.
    cells = np.argwhere(pmf > NOISE)
    chances = pmf[tuple(cells.T)]
    offsets = np.array(starts)
    sums = offsets + (cells - offsets) % np.array(shape)
    return SumLaw(_filled(lowest * count, moving, sums * units), chances / chances.sum(), NOISE * math.prod(shape))


def _range(steps: Array, probabilities: Array, count: int) -> tuple[int, int]:
    """Return the sums between which all but a negligible probability lies, by Bernstein's inequality."""
    mean, largest = float(probabilities @ steps), int(steps.max())
    variance = float(probabilities @ (steps - mean) ** 2)
    exponent = math.log(4 / LOST)
    reach = exponent * largest / 3 + math.sqrt((exponent * largest / 3) ** 2 + 2 * exponent * count * variance)
    return max(0, math.floor(count * mean - reach)), min(count * largest, math.ceil(count * mean + reach))


def total_law(laws: Sequence[SumLaw]) -> SumLaw | None:
    """Return the distribution of the sum of independent vectors, each with a law of its own; None if it is too large.

    >>> half = SumLaw(np.array([[0], [1]]), np.array([0.5, 0.5]))
    >>> total_law([half, half, half]).probabilities.tolist()
    [0.125, 0.375, 0.375, 0.125]
    """
    lows = np.sum([law.values.min(axis=0) for law in laws], axis=0)
    steps = np.concatenate([law.values - law.values.min(axis=0) for law in laws])
    units = _units(steps)
    reach = np.sum([np.ptp(law.values, axis=0) // units for law in laws], axis=0) + 1
    if float(np.prod(reach.astype(float))) > MOST_CELLS:
        return None
    moving = _moving(reach - 1)
    boxes, lost = [_box(law, units, moving) for law in laws], sum(law.lost for law in laws)
    while len(boxes) > 1:
        pairs = [boxes[k : k + 2] for k in range(0, len(boxes), 2)]
        made = [_convolved(*pair) if len(pair) == 2 else (pair[0], 0.0) for pair in pairs]
        boxes = [box for box, _ in made]
        lost += sum(noise for _, noise in made)
    cells = np.argwhere(boxes[0] > 0)
    chances = boxes[0][tuple(cells.T)]
    return SumLaw(_filled(lows, moving, cells * units[moving]), chances / chances.sum(), lost)


def _moving(steps: Array) -> Array:
    """Return which parts of vectors take steps, or the first: arrays have a dimension for each, and 64 at most.

    Where the sums are few enough to be listed, so many parts do not move.
    """
    moving: Array = np.flatnonzero(steps)
    return moving if len(moving) else np.arange(1)


def _filled(lows: Array, moving: Array, above: Array) -> Array:
    """Return vectors of which only some parts lie above the lowest."""
    values = np.repeat(lows[np.newaxis], len(above), axis=0)
    values[:, moving] += above
    return values


def _units(steps: Array) -> Array:
    """Return the numbers of which all steps in each direction are multiples."""
    return np.array([max(1, int(np.gcd.reduce(column))) for column in steps.T])


def _box(law: SumLaw, units: Array, moving: Array) -> Array:
    """Lay the probabilities of vectors out by the distance of their moving parts from the smallest."""
    places = ((law.values - law.values.min(axis=0)) // units)[:, moving]
    box = np.zeros(places.max(axis=0) + 1)
    np.add.at(box, tuple(places.T), law.probabilities)
    return box


def _convolved(left: Array, right: Array) -> tuple[Array, float]:
    """Return the distribution of a sum, and how much of it may be misplaced: nothing but rounding if it is short."""
    if left.size < right.size:
        left, right = right, left
    shape = tuple(a + b - 1 for a, b in zip(left.shape, right.shape, strict=True))
    if left.ndim == 1 and float(left.size) * right.size <= MOST_PRODUCTS:
        return np.convolve(left, right), 0.0
    there = np.argwhere(right > 0)
    if float(left.size) * len(there) <= MOST_PRODUCTS:
        total = np.zeros(shape)
        for place in there:
            total[tuple(slice(p, p + size) for p, size in zip(place, left.shape, strict=True))] += (
                left * right[tuple(place)]
            )
        return total, 0.0
    axes = range(len(shape))
    product = np.fft.irfftn(np.fft.rfftn(left, shape, axes) * np.fft.rfftn(right, shape, axes), shape, axes)
    product[product < NOISE] = 0.0
    return product, NOISE * product.size
