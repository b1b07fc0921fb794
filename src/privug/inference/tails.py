"""What samples tell about moments when tails are heavy or rare values decide: whether there is one, and its interval.

Means and deviations go by one rule: a deviation is the root of the mean of the squared distances. A mean is told from
samples if the tail of what is averaged is light enough: a generalised Pareto distribution is fitted to it, as to
importance weights (`diagnostics`). Intervals of skewed samples follow from Dirichlet shares of what was seen and of the
end of the range, which may not have been seen (Gaffke, 2005; for two values they are those of Clopper and Pearson).
Where the range is endless, its end is where the fitted tail is expected to lie beyond the furthest that was seen.
"""

import math

import numpy as np

from privug.estimate import Estimate
from privug.inference.diagnostics import FEWEST_IN_TAIL, LARGEST_PARETO_K, tail_shape
from privug.model.node import Array
from privug.prior.reach import UNKNOWN, Reach

MOMENTS = {1: "the mean", 2: "the standard deviation"}
HEAVIEST = {1: LARGEST_PARETO_K, 2: 1.0}
"""Of what is averaged: beyond, a mean cannot be told; a deviation is given as long as there may be one."""
ENDLESS = 1.0  # a tail as heavy as that has no mean
MOST_TIED = 0.5  # of the values in a tail: those of few values have no tail
SKEWED = 0.1  # skewness of a mean beyond which Student's t is off by more than a percent
TABLE = 100  # single values, and as many groups of others, that stand for all
DRAWS = 4000
MOST_IN_RANGE = 0.1  # of an interval's half-width that what was not seen may add to it


def heaviness(values: Array, weights: Array | None, order: int, reach: Reach = UNKNOWN) -> float:
    """Return the shape of the tail of what a moment averages, plus its standard error; zero if there is no tail.

    What lies within the core of the reach needs no tail to be expected.

    >>> places = (np.arange(10_000) + 0.5) / 10_000
    >>> heaviness(np.tan(np.pi * (places - 0.5)), None, 1) >= HEAVIEST[1]
    True
    >>> heaviness(-np.log(places), None, 2) >= HEAVIEST[2]
    False
    """
    known = known_heaviness(order, reach, weighted=weights is not None)
    if known is not None:
        return known
    terms = distances(values, starts(values, reach)) ** order
    return heaviness_of_terms(terms * (1.0 if weights is None else weights * len(values)), len(values))


def starts(values: Array, reach: Reach) -> tuple[float, float]:
    """Return where the tails begin: at the core of the reach, else in the middle of the values."""
    low, high = reach.core
    middle = float(np.median(values))
    return (low, high) if math.isfinite(high - low) else (middle, middle)


def distances(values: Array, start: tuple[float, float]) -> Array:
    """Return how far in its tails each value lies; zero between them."""
    return np.asarray(np.maximum(np.maximum(values - start[1], start[0] - values), 0.0))


def known_heaviness(order: int, reach: Reach, *, weighted: bool) -> float | None:
    """Return the shape of that tail if the reach tells it: there is none, or moments end at a known order."""
    if reach.is_bounded:
        return 0.0
    return order / reach.least if not weighted and reach.least == reach.most < math.inf else None


def heaviness_of_terms(terms: Array, samples: int) -> float:
    """Return the same from the largest of the terms that so many samples add to a moment."""
    count = min(math.ceil(min(0.2 * samples, 3 * math.sqrt(samples))), len(terms) - 1)
    if count < FEWEST_IN_TAIL:
        return 0.0
    largest = np.sort(np.partition(terms, len(terms) - count - 1)[-count - 1 :])
    if largest[-1] <= 0 or len(np.unique(largest)) < MOST_TIED * count:
        return 0.0
    shape = tail_shape((largest[1:] - largest[0]) / largest[-1])
    return max(0.0, shape + (1 + shape) / math.sqrt(count)) if shape > -math.inf else 0.0


def missing(order: int, reach: Reach, heavy: float, source: str, instead: str) -> Estimate | None:
    """Return why there is no moment of that order, if there is none or its `source` cannot tell it."""
    low, heavy_tails = 0.0 if order == 2 else -math.inf, f"the tails are too heavy; {instead}"
    if reach.has(1) is False:
        return Estimate.undefined(f"{MOMENTS[order]} does not exist: {heavy_tails}", low)
    if reach.has(order) is False:
        return Estimate.exactly(math.inf, method=f"infinite by definition: {heavy_tails}")
    if heavy >= (ENDLESS if reach.has(order) else HEAVIEST[order]):
        return Estimate.undefined(f"{source} cannot tell {MOMENTS[order]}: {heavy_tails}", low)
    return None


def furthest(values: Array, weights: Array | None, samples: float) -> tuple[float, float]:
    """Return the least and the largest of values; of weighted ones those that so many effective samples would show."""
    if weights is None:
        return float(values.min()), float(values.max())
    order = np.argsort(values)
    low, high = np.searchsorted(np.cumsum(weights[order]), [0.5 / samples, 1 - 0.5 / samples])
    return float(values[order[low]]), float(values[order[min(high, len(order) - 1)]])


def ends(seen: tuple[float, float], centre: float, reach: Reach, heavy: float, order: int) -> tuple[float, float]:
    """Return the ends of the range of a quantity; of an endless one, where what was not seen is expected to lie.

    Beyond the furthest that was seen, at a distance d, a Pareto tail of shape k has the mean d / (1 - k).
    """
    stretch = (1 - heavy) ** (-1 / order)
    low, high = (end + (stretch - 1) * (end - centre) for end in seen)
    first, last = (one if math.isfinite(one) else end for one, end in zip(reach.core, (low, high), strict=True))
    return (
        reach.low if math.isfinite(reach.low) else min(low, first),
        reach.high if math.isfinite(reach.high) else max(high, last),
    )


def is_skewed(
    values: Array,
    weights: Array | None,
    samples: float,
    half: float,
    reach: tuple[float, float],
    squares: Array | None = None,
) -> bool:
    """Say whether Student's t is no good for the mean of so many effective samples, or leaves out too much."""
    shares = np.full(len(values), 1 / len(values)) if weights is None else weights
    seen = float(values.min()), float(values.max())
    return is_lopsided(values, shares, samples, squares) or leaves_out(seen, samples, half, reach)


def is_lopsided(values: Array, shares: Array, samples: float, squares: Array | None = None) -> bool:
    """Say whether the skewness of values shows in their mean, to which each adds as much as it weighs."""
    each = shares if squares is None else squares / shares  # the weight of a single sample
    deviations = values - float(shares @ values) if np.ptp(values) > 0 else np.zeros(len(values))
    spread = math.sqrt(float(shares * each @ deviations**2) / float(shares @ each))
    if not spread > 0:
        return False
    skewness = float(shares * each**2 @ (deviations / spread) ** 3) / float(shares @ each) ** 2
    return abs(skewness) > SKEWED * math.sqrt(samples)


def leaves_out(seen: tuple[float, float], samples: float, half: float, reach: tuple[float, float]) -> bool:
    """Say whether what was not seen may add much to the half-width of an interval."""
    beyond = [end for end in (seen[0] - reach[0], reach[1] - seen[1]) if math.isfinite(end)]
    return max(beyond, default=0.0) * -math.log(0.025) / samples > MOST_IN_RANGE * half


def skewed_interval(
    values: Array, weights: Array | None, samples: float, reach: tuple[float, float], confidence: float
) -> tuple[float, float]:
    """Return an interval of the mean of a quantity within `reach`, from so many effective samples."""
    places, counts = _table(values, np.full(len(values), 1 / len(values)) if weights is None else weights)
    rng = np.random.Generator(np.random.SFC64(0))
    shares = rng.standard_gamma(np.maximum(counts * samples, 1e-12), (DRAWS, len(counts)))
    unseen = rng.standard_exponential(DRAWS)
    total, seen = shares.sum(axis=1) + unseen, shares @ places
    ends = [end if math.isfinite(end) else edge for end, edge in zip(reach, (places[0], places[-1]), strict=True)]
    tail = (1 - confidence) / 2
    low, high = (np.quantile((seen + unseen * e) / total, p) for e, p in zip(ends, (tail, 1 - tail), strict=True))
    return float(low), float(high)


def _table(values: Array, shares: Array) -> tuple[Array, Array]:
    """Return few values in ascending order, and their shares: the furthest one by one, the others in groups."""
    distinct, codes = np.unique(values, return_inverse=True)
    weights = np.bincount(codes.reshape(-1), shares, len(distinct))
    if len(distinct) <= 2 * TABLE:
        return distinct, weights
    far = np.argsort(np.abs(distinct - shares @ values))[-TABLE:]
    label = np.zeros(len(distinct), np.int64)
    label[far] = 1 + np.arange(len(far))
    near = np.flatnonzero(label == 0)
    label[near] = -(np.arange(len(near)) * TABLE // len(near)) - 1
    _, group = np.unique(label, return_inverse=True)
    masses = np.bincount(group.reshape(-1), weights)
    means = np.bincount(group.reshape(-1), weights * distinct) / masses
    order = np.argsort(means)
    return means[order], masses[order]
