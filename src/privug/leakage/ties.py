"""Whether the output is, in some samples, the secret itself: the information of continuous quantities is then infinite.

A median, or the third largest of many, is the secret in a few samples only. Those lie on one line, but for rounding,
whatever is added to the output or multiplied with it; in logarithms powers and roots are lines too. Continuous
quantities do not meet by chance, so a handful of samples on a line is proof.
"""

from collections.abc import Iterator
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
TIED = 1e-10  # relative distance from a line within which samples lie on it but for rounding
SPOT = 1e-6  # in units of the spread: wide beside the rounding that is allowed for
MOST_LINES = 32


def is_tied(secret: Side, output: Side) -> bool:
    """Say whether, with some probability, a number of the output is a line or a power of a number of the secret."""
    step = -(-len(secret.raw) // MOST) or 1
    return any(_share_a_line(x[::step], y[::step]) for x in secret.raw.T for y in output.raw.T)


def _share_a_line(x: Array, y: Array) -> bool:
    kept = _single(x) & _single(y)
    x, y = x[kept], y[kept]
    if len(x) < FEWEST:
        return False
    ratios = y / np.where(x == 0, 1.0, x)
    # Equality, and all else that is a multiple, shows in any two samples; other lines only in those that are close.
    if _has_line(_centred(x), _centred(y), np.arange(len(x)), ratios, TIED * np.abs(ratios)):
        return True
    scores = np.column_stack((normal_scores(x), normal_scores(y)))
    wanted = min(NEIGHBOURS + 1, len(x))
    near = scipy.spatial.cKDTree(scores).query(scores, wanted, workers=settings.current().workers)[1]
    around = np.asarray(near)[:, 1:]
    return any(
        _has_line(*left_right, *_directions(*left_right, around)) for left_right in product(_scales(x), _scales(y))
    )


def _single(x: Array) -> Array:
    """Say which samples hold a finite number that no other sample holds: equal ones have a probability of their own."""
    _, inverse, counts = np.unique(x, return_inverse=True, return_counts=True)
    return np.asarray(np.isfinite(x) & (counts[inverse.reshape(-1)] == 1))


def _scales(x: Array) -> Iterator[Array]:
    """Give numbers and their logarithms, in units of their spread."""
    yield _centred(x)
    yield _centred(np.log(np.abs(x), out=np.zeros(len(x)), where=x != 0))


def _centred(x: Array) -> Array:
    low, middle, high = np.quantile(x, (0.25, 0.5, 0.75))
    return np.asarray((x - middle) / ((high - low) or 1.0))


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


def _has_line(x: Array, y: Array, samples: Array, lines: Array, slack: Array) -> bool:
    """Say whether several samples lie on one of the lines that they are said to lie on."""
    codes, counts = _counts(lines, slack)
    likely = np.flatnonzero(counts >= FEWEST)
    for line in likely[np.argsort(-counts[likely], kind="stable")][:MOST_LINES]:
        on = np.unique(samples[codes == line])
        if _count_on(x, y, on[np.argmin(x[on])], on[np.argmax(x[on])]) >= FEWEST:
            return True
    return False


def _counts(numbers: Array, slack: Array) -> tuple[Array, Array]:
    """Return a code for each number, the same for those equal within some slack, and how often each code occurs."""
    order = np.argsort(numbers)
    apart = np.diff(numbers[order], prepend=-np.inf) > slack[order]
    codes = np.empty(len(numbers), np.intp)
    codes[order] = np.cumsum(apart) - 1
    return codes, np.bincount(codes)


def _count_on(x: Array, y: Array, first: int, last: int) -> int:
    """Count the samples on the line through two of them; what lies together in one spot counts once."""
    with np.errstate(all="ignore"):
        slope = (y[last] - y[first]) / (x[last] - x[first])
        off = np.abs(y - y[first] - slope * (x - x[first]))
        on = off <= TIED * (1.0 + np.abs(slope * x) + np.abs(y))
    return min(len(np.unique(np.rint(side[on] / SPOT))) for side in (x, y))
