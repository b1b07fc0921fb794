"""Whether the output is, in some samples, the secret itself: the information of continuous quantities is then infinite.

A median, or the third largest of many, is the secret in a few samples only. Those lie on one line, but for rounding,
whatever is added to the output or multiplied with it; in logarithms powers and roots are lines too. Continuous
quantities do not meet by chance, so a handful of samples on a line is proof.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
import scipy

from privug import settings
from privug.leakage.sides import Side, normal_scores
from privug.model.node import Array

FEWEST = 5  # samples on one line: of quantities with a density even three would be a miracle
MOST = 20_000  # samples looked at
NEIGHBOURS = 8  # of a sample, with which it may lie on a line
SAME = 1e-6  # by which angle and distance of one line may differ, as taken from samples close to each other
TIED = 1e-10  # by which ratios of one line may differ
ULPS = 16  # units in the last place that arithmetic may have changed a number by
FARTHER = 100.0
MOSTLY = 0.5  # of the samples within so many times the rounding must lie on the line
SPOT = 1e-6  # in units of the spread: wide beside the rounding that is allowed for
MOST_LINES = 32


def is_tied(secret: Side, output: Side) -> bool:
    """Say whether, with some probability, a number of the output is a line or a power of a number of the secret."""
    step = -(-len(secret.raw) // MOST) or 1
    return any(_share_a_line(x[::step], y[::step]) for x in secret.raw.T for y in output.raw.T)


@dataclass(frozen=True)
class _Numbers:
    """Numbers in units of their spread, and how much rounding may have changed each by, in the same units."""

    values: Array
    rounding: Array

    @classmethod
    def of(cls, x: Array, size: float = 0.0) -> "_Numbers":
        low, middle, high = np.quantile(x, (0.25, 0.5, 0.75))
        unit = (high - low) or 1.0
        return cls((x - middle) / unit, ULPS * np.finfo(float).eps * (np.abs(x) + size) / unit)


def _share_a_line(x: Array, y: Array) -> bool:
    kept = _single(x) & _single(y)
    x, y = x[kept], y[kept]
    if len(x) < FEWEST:
        return False
    ratios = y / np.where(x == 0, 1.0, x)
    # Equality, and all else that is a multiple, shows in any two samples; other lines only in those that are close.
    if _has_line(_Numbers.of(x), _Numbers.of(y), np.arange(len(x)), ratios, TIED * np.abs(ratios)):
        return True
    scores = np.column_stack((normal_scores(x), normal_scores(y)))
    wanted = min(NEIGHBOURS + 1, len(x))
    near = scipy.spatial.cKDTree(scores).query(scores, wanted, workers=settings.current().workers)[1]
    around = np.asarray(near)[:, 1:]
    pairs = product(_scales(x), _scales(y))
    return any(_has_line(left, right, *_directions(left.values, right.values, around)) for left, right in pairs)


def _single(x: Array) -> Array:
    """Say which samples hold a finite number that no other sample holds: equal ones have a probability of their own."""
    _, inverse, counts = np.unique(x, return_inverse=True, return_counts=True)
    return np.asarray(np.isfinite(x) & (counts[inverse.reshape(-1)] == 1))


def _scales(x: Array) -> Iterator[_Numbers]:
    """Give numbers and their logarithms."""
    yield _Numbers.of(x)
    yield _Numbers.of(np.log(np.abs(x), out=np.zeros(len(x)), where=x != 0), 1.0)


def _directions(x: Array, y: Array, around: Array) -> tuple[Array, Array, Array]:
    """Return samples, the lines through them and a neighbour, each as a number, and how far equal ones may differ."""
    samples = np.repeat(np.arange(len(x)), around.shape[1])
    with np.errstate(all="ignore"):
        slopes = ((y[around] - y[:, np.newaxis]) / (x[around] - x[:, np.newaxis])).reshape(-1)
        distances = (y[samples] - slopes * x[samples]) / np.hypot(1.0, slopes)
    tilted = np.flatnonzero(np.isfinite(distances) & (np.abs(slopes) > SAME) & (np.abs(slopes) < 1 / SAME))
    # Angles lie within pi of each other, so these numbers are equal where both angle and distance are.
    lines = np.arctan(slopes[tilted]) + np.pi * np.rint(distances[tilted] / SAME)
    return samples[tilted], lines, np.full(len(tilted), SAME)


def _has_line(x: _Numbers, y: _Numbers, samples: Array, lines: Array, slack: Array) -> bool:
    """Say whether several samples lie on one of the lines that they are said to lie on."""
    codes, counts = _counts(lines, slack)
    likely = np.flatnonzero(counts >= FEWEST)
    for line in likely[np.argsort(-counts[likely], kind="stable")][:MOST_LINES]:
        on = np.unique(samples[codes == line])
        if _are_tied(x, y, on[np.argmin(x.values[on])], on[np.argmax(x.values[on])]):
            return True
    return False


def _counts(numbers: Array, slack: Array) -> tuple[Array, Array]:
    """Return a code for each number, the same for those equal within some slack, and how often each code occurs."""
    order = np.argsort(numbers)
    apart = np.diff(numbers[order], prepend=-np.inf) > slack[order]
    codes = np.empty(len(numbers), np.intp)
    codes[order] = np.cumsum(apart) - 1
    return codes, np.bincount(codes)


def _are_tied(x: _Numbers, y: _Numbers, first: int, last: int) -> bool:
    """Say whether samples lie on the line through two of them but for rounding, and few only near it.

    Narrow noise has more samples the farther one looks. What lies together in one spot counts once.
    """
    with np.errstate(all="ignore"):
        slope = (y.values[last] - y.values[first]) / (x.values[last] - x.values[first])
        off = np.abs(y.values - y.values[first] - slope * (x.values - x.values[first]))
        allowed = y.rounding + y.rounding[first] + np.abs(slope) * (x.rounding + x.rounding[first])
        on = off <= allowed
        around = int((off <= FARTHER * allowed).sum())
    spots = min(len(np.unique(np.rint(side.values[on] / SPOT))) for side in (x, y))
    return spots >= max(FEWEST, MOSTLY * around)
