"""Sums of independent, equally distributed vectors of whole numbers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy

from privug.model.node import Array
from privug.prior.choice import ChoiceFamily

LOST = 1e-16
MOST_COUNTS = 1 << 20
MOST_KEPT = 1 << 16  # up to so many counts, far tails are kept: what is rare can be seen all the same
MOST_CELLS = 1 << 24
NOISE = 4e-16  # what is smaller after a Fourier transform may be rounding


class SumLaw(NamedTuple):
    """The values of a sum, a line for each, their probabilities, and how much probability may be misplaced."""

    values: Array
    probabilities: Array
    lost: float = 0.0


@dataclass(frozen=True)
class SumFamily(ChoiceFamily):
    """The distribution of a sum over rows; a probability of `lost` may be misplaced."""

    lost: float = 0.0

    name = "Sum"


def sum_law(values: Array, probabilities: Array, count: int) -> SumLaw | None:
    """Return the distribution of the sum of `count` independent vectors.

    `values` holds whole numbers, a line for each possible vector. Far tails of less than 1e-16 are left out
    where there are many. None if the sums have too many values.

    >>> law = sum_law(np.array([[0], [1]]), np.array([0.5, 0.5]), 3)
    >>> law.values[:, 0].tolist(), law.probabilities.round(6).tolist()
    ([0, 1, 2, 3], [0.125, 0.375, 0.375, 0.125])
    """
    order = np.argsort(-probabilities, kind="stable")
    order = order[probabilities[order] > 0]
    values, probabilities = values[order], probabilities[order]
    ranges = [(0, count)] * (len(probabilities) - 1)
    if (count + 1.0) ** len(ranges) > MOST_KEPT:
        ranges = [_range(np.array([0, 1]), np.array([1 - p, p]), count) for p in probabilities[1:]]
    if math.prod(high - low + 1 for low, high in ranges) <= MOST_COUNTS:
        return _by_counts(values, probabilities, count, ranges)
    return _by_transform(values, probabilities, count)


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
        chances = chances[owner] * scipy.stats.binom.pmf(times, left[owner], min(1.0, chance / share))
        sums = sums[owner] + times[:, np.newaxis] * (value - values[0])
        left, share = left[owner] - times, share - chance
    distinct, codes = np.unique(sums, axis=0, return_inverse=True)
    total = np.bincount(codes.reshape(-1), chances, len(distinct))
    cut = sum(LOST for low, high in ranges if (low, high) != (0, count))
    return SumLaw(distinct[total > 0], total[total > 0] / total.sum(), cut)


def _by_transform(values: Array, probabilities: Array, count: int) -> SumLaw | None:
    """Raise the Fourier transform of one vector's distribution to a power."""
    lowest = values.min(axis=0)
    steps = (values - lowest).astype(np.int64)
    units = np.array([max(1, int(np.gcd.reduce(column))) for column in steps.T])
    steps //= units
    starts, ends = zip(*(_range(column, probabilities, count) for column in steps.T), strict=True)
    shape = tuple(end - start + 1 for start, end in zip(starts, ends, strict=True))
    if math.prod(shape) > MOST_CELLS:
        return None
    box = np.zeros(shape)
    np.add.at(box, tuple((steps % np.array(shape)).T), probabilities)
    pmf = np.fft.irfftn(np.fft.rfftn(box) ** count, shape, axes=range(len(shape)))
    # The transform wraps around: position k of an axis stands for the sum in its range that is k modulo its length.
    cells = np.argwhere(pmf > NOISE)
    chances = pmf[tuple(cells.T)]
    offsets = np.array(starts)
    sums = offsets + (cells - offsets) % np.array(shape)
    return SumLaw(sums * units + lowest * count, chances / chances.sum(), NOISE * math.prod(shape))


def _range(steps: Array, probabilities: Array, count: int) -> tuple[int, int]:
    """Return the sums between which all but a negligible probability lies, by Bernstein's inequality."""
    mean, largest = float(probabilities @ steps), int(steps.max())
    variance = float(probabilities @ (steps - mean) ** 2)
    exponent = math.log(4 / LOST)
    reach = exponent * largest / 3 + math.sqrt((exponent * largest / 3) ** 2 + 2 * exponent * count * variance)
    return max(0, math.floor(count * mean - reach)), min(count * largest, math.ceil(count * mean + reach))
