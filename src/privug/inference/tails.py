"""What samples tell about moments when tails are heavy or rare values decide: whether there is one, and its interval.

A mean is told from samples if the tail of what is averaged is light enough: a generalised Pareto distribution is fitted
to it, as to importance weights (`diagnostics`). Intervals of skewed samples follow from Dirichlet shares of what was
seen and of the end of the range, which may not have been seen (Gaffke, 2005; for two values they are those of Clopper
and Pearson).
"""

import math

import numpy as np

from privug.inference.diagnostics import FEWEST_IN_TAIL, LARGEST_PARETO_K, tail_shape
from privug.model.node import Array

HEAVIEST = {1: LARGEST_PARETO_K, 2: 1.0}
"""Of what is averaged: beyond, a mean cannot be told; a deviation is given as long as there may be one."""
MOST_TIED = 0.5  # of the values in a tail: those of few values have no tail
SKEWED = 0.1  # skewness of a mean beyond which Student's t is off by more than a percent
TABLE = 100  # single values, and as many groups of others, that stand for all
DRAWS = 4000
MOST_IN_RANGE = 0.1  # of an interval's half-width that what was not seen may add to it


def is_too_heavy(values: Array, weights: Array | None, order: int) -> bool:
    """Say whether the tails leave it open that a moment does not exist: the fitted shape, plus its standard error.

    >>> places = (np.arange(10_000) + 0.5) / 10_000
    >>> is_too_heavy(np.tan(np.pi * (places - 0.5)), None, 1), is_too_heavy(-np.log(places), None, 2)
    (True, False)
    """
    terms = np.abs(values - np.median(values)) ** order * (1.0 if weights is None else weights * len(values))
    return is_heavy_tail(terms, len(terms), order)


def is_heavy_tail(terms: Array, samples: int, order: int) -> bool:
    """Say the same from the largest of the terms that so many samples add to a moment of that order."""
    count = min(math.ceil(min(0.2 * samples, 3 * math.sqrt(samples))), len(terms) - 1)
    if count < FEWEST_IN_TAIL:
        return False
    largest = np.sort(np.partition(terms, len(terms) - count - 1)[-count - 1 :])
    if largest[-1] <= 0 or len(np.unique(largest)) < MOST_TIED * count:
        return False
    shape = tail_shape((largest[1:] - largest[0]) / largest[-1])
    return shape + (1 + shape) / math.sqrt(count) > HEAVIEST[order]


def is_skewed(values: Array, weights: Array | None, samples: float, half: float, reach: tuple[float, float]) -> bool:
    """Say whether Student's t is no good for the mean of so many effective samples, or leaves out too much."""
    shares = np.full(len(values), 1 / len(values)) if weights is None else weights
    deviations = values - float(shares @ values) if np.ptp(values) > 0 else np.zeros(len(values))
    spread = math.sqrt(float(shares @ deviations**2))
    if spread > 0 and abs(float(shares @ (deviations / spread) ** 3)) > SKEWED * math.sqrt(samples):
        return True
    beyond = [end for end in (float(values.min()) - reach[0], reach[1] - float(values.max())) if math.isfinite(end)]
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
