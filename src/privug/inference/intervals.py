"""Confidence intervals of estimates from weighted samples, and what heavy tails leave undefined."""

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy

from privug.errors import ArgumentError
from privug.estimate import CONFIDENCE, Estimate
from privug.inference.diagnostics import FEWEST_IN_TAIL, LARGEST_PARETO_K, tail_shape
from privug.model.integers import FLOAT_LIMIT, apart, largest
from privug.model.node import Array
from privug.prior.family import UNKNOWN, Reach

MOMENTS = {1: "the mean", 2: "the standard deviation"}
HEAVIEST = {1: LARGEST_PARETO_K, 2: 1.0}
"""Of what is averaged: beyond, a mean cannot be told; a deviation is given as long as there may be one."""
ENDLESS = 1.0  # a tail as heavy as that has no mean
MOST_TIED = 0.5  # of the values in a tail: those of few values have no tail
SKEWED = 0.1  # skewness of a mean beyond which Student's t is off by more than a percent
TABLE = 100  # single values, and as many groups of others, that stand for all
DRAWS = 4000
MOST_IN_RANGE = 0.1  # of an interval's half-width that what was not seen may add to it


class Groups(NamedTuple):
    """In how many groups samples come that depend on each other, and how many independent ones all are worth."""

    number: int
    worth: float


class Weighting(NamedTuple):
    """How much values weigh: their weights, None if all weigh the same, and in which groups they come.

    Values that stand for several samples each have `squares`: the sums of the squared weights of those.
    """

    weights: Array | None = None
    groups: Groups | None = None
    squares: Array | None = None

    @property
    def squared(self) -> Array:
        """The sums of the squared weights of the samples of each value."""
        assert self.weights is not None
        return self.weights**2 if self.squares is None else self.squares


def shares_of(values: Array, weights: Array | None) -> Array:
    """Return the weight of each value, the same for all unless they have their own."""
    return np.full(len(values), 1 / len(values)) if weights is None else weights


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


def is_skewed(values: Array, weighting: Weighting, samples: float, half: float, reach: tuple[float, float]) -> bool:
    """Say whether Student's t is no good for the mean of so many effective samples, or leaves out too much."""
    shares, seen = shares_of(values, weighting.weights), (float(values.min()), float(values.max()))
    return is_lopsided(values, shares, samples, weighting.squares) or leaves_out(seen, samples, half, reach)


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
    places, counts = _table(values, shares_of(values, weights))
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


CONSTANT = 2.0**-44  # how far, relative to their size, samples of one number may be apart for rounding


def proportion_estimate(share: float, samples: float, method: str, confidence: float = CONFIDENCE) -> Estimate:
    """Return a proportion with its exact binomial interval (Clopper and Pearson, 1934).

    `samples` may be an effective number, as for survey weights (Korn and Graubard, 1998). The interval
    errs on the side of being too wide.
    """
    _check_confidence(confidence)
    tail = (1 - confidence) / 2
    hits, misses = share * samples, (1 - share) * samples
    low = float(scipy.special.betaincinv(hits, misses + 1, tail)) if hits > 0 else 0.0
    high = float(scipy.special.betaincinv(hits + 1, misses, 1 - tail)) if misses > 0 else 1.0
    return Estimate(share, min(low, share), max(high, share), method=method, confidence=confidence)


def effective_size(values: Array, weights: Array | None, groups: int) -> float:
    """Return how many independent samples would know the mean of values as well; at most what the weights allow.

    >>> once_moved = np.repeat([0.0, 1.0], 50)
    >>> round(effective_size(once_moved, None, groups=10), 9)
    9.0
    """
    shares = shares_of(values, weights)
    most = 1.0 / float((shares**2).sum())
    deviations = values - float(shares @ values)
    spread, error = float(shares @ deviations**2), _variance_between(shares * deviations, groups)
    return float(np.clip(spread / error, 1.0, most)) if error > 0 and math.isfinite(spread) else most


def _variance_between(terms: Array, groups: int) -> float:
    """Return the variance of the sum of terms whose sum is zero, from the sums of each group."""
    count = min(groups, len(terms))
    if count < 2:
        return 0.0
    sums = np.add.reduceat(terms, np.arange(count) * len(terms) // count)
    return float((sums**2).sum()) * count / (count - 1)


def share_estimate(hits: Array, weighting: Weighting, method: str, confidence: float = CONFIDENCE) -> Estimate:
    """Return the share of hits with its binomial interval on the effective sample size."""
    return proportion_estimate(*_known_share(hits, weighting, confidence), method, confidence)


def _known_share(hits: Array, weighting: Weighting, confidence: float) -> tuple[float, float]:
    """Return the share of hits and the size of the independent sample whose binomial interval is wide enough.

    Where hits or misses are fewer than groups, those cannot tell how much is known: the worth of all samples bounds it.
    For few groups the size shrinks by the ratio of Student's quantiles (Korn and Graubard, 1998).
    """
    weights, groups, _ = weighting
    if weights is None:
        share, samples = float(hits.mean()), float(len(hits))
    else:
        squares = weighting.squared
        share, samples = share_of_sums(
            float(weights[hits].sum()), float(squares[hits].sum()), float(squares[~hits].sum())
        )
    if groups is None:
        return share, samples
    samples = min(samples, effective_size(hits.astype(float), weights, groups.number))
    if min(share, 1 - share) * len(hits) < groups.number:
        samples = min(samples, groups.worth)
    return share, samples * _few_groups(samples, groups, confidence)


def _few_groups(samples: float, groups: Groups | None, confidence: float) -> float:
    """Return by what factor the size of a sample shrinks because only few groups tell what it is."""
    ratio = student(samples - 1, confidence) / student(_degrees(samples, groups), confidence)
    return min(1.0, ratio) ** 2


def _degrees(samples: float, groups: Groups | None) -> float:
    return (samples if groups is None else min(samples, groups.number)) - 1


def share_of_sums(share: float, of_hits: float, of_misses: float) -> tuple[float, float]:
    """Return a share of hits and the number of independent samples that would know it as well.

    Told are the sums of the squared weights of hits and misses.
    """
    share, effective = min(1.0, share), 1.0 / (of_hits + of_misses)
    if not 0 < share < 1:
        return share, effective
    variance = of_hits * (1 - share) ** 2 + of_misses * share**2
    # A few hits of small weight can make the share look better known than it is: never trust more than the whole.
    return share, min(effective, share * (1 - share) / variance) if variance > 0 else effective


def mean_estimate(
    values: Array,
    weighting: Weighting,
    method: str = "",
    confidence: float = CONFIDENCE,
    *,
    binary: bool = True,
    reach: tuple[float, float] | None = None,
) -> Estimate:
    """Return a mean with its interval from the central limit theorem, by Student's t on the effective sample size.

    With `binary`, a mean of zeros and ones is taken as the proportion that it is. With `reach`, the range of the
    quantity as far as it is known, intervals of skewed samples account for what was seen seldom or not at all.
    """
    values, shift = shifted(values)
    if not np.all(np.isfinite(values)):
        return infinite_mean(bool(np.isneginf(values).any()), bool(np.isposinf(values).any()), method, confidence)
    within = None if shift else reach  # whole numbers beyond floats are counted from the least
    beyond = within is not None and _is_finite_beyond(values, within)
    if binary and not shift and np.all((values == 0) | (values == 1)) and not beyond:
        return share_estimate(values == 1, weighting, method, confidence)
    if is_constant(values, several=weighting.squares is not None) and not beyond:
        return _constant(values, method, confidence)
    mean, variance, samples = _mean_and_error(values, weighting)
    mean += shift
    if samples <= 1:
        return Estimate(mean, -math.inf, math.inf, method=method, confidence=confidence)
    half = student(_degrees(samples, weighting.groups), confidence) * math.sqrt(variance)
    low, high = mean - half, mean + half
    if within is not None and is_skewed(values, weighting, samples, half, within):
        known = samples * _few_groups(samples, weighting.groups, confidence)
        low, high = skewed_interval(values, weighting.weights, known, within, confidence)
    return Estimate(mean, min(low, mean), max(high, mean), method=method, confidence=confidence)


def shifted(values: Array) -> tuple[Array, int]:
    """Return numbers as floats, and what was taken off them: whole numbers beyond 2**53 lose their last digits else."""
    if values.dtype.kind != "i" or not len(values) or largest(values) <= FLOAT_LIMIT:
        return values.astype(float), 0
    least = values.min()
    return apart(values, least), int(least)


def std_estimate(
    values: Array,
    weighting: Weighting,
    method: str = "",
    confidence: float = CONFIDENCE,
    reach: tuple[float, float] | None = None,
) -> Estimate:
    """Return a standard deviation with its interval; `reach` is as for means."""
    values, shift = shifted(values)
    if not np.all(np.isfinite(values)):
        return Estimate(math.inf, math.inf, math.inf, method=f"some values are infinite; {method}")
    low, high = (values.min(), values.max()) if reach is None or shift else reach
    if is_constant(values, several=weighting.squares is not None) and is_constant(np.array([values[0], low, high])):
        return Estimate(0.0, 0.0, 0.0, method=method, confidence=confidence)
    mean, _, samples = _mean_and_error(values, weighting)
    terms, degrees = (values - mean) ** 2, _degrees(samples, weighting.groups)
    average, variance, known = _mean_and_error(terms, weighting)
    found = spread_estimate(average, variance, samples, degrees, method, confidence)
    ends = float(terms.min()), max(mean - low, high - mean) ** 2
    half = student(degrees, confidence) * math.sqrt(variance)
    if samples <= 2 or reach is None or not is_skewed(terms, weighting, known, half, ends):
        return found
    known *= _few_groups(known, weighting.groups, confidence)
    return spread_within(found, skewed_interval(terms, weighting.weights, known, ends, confidence))


def spread_estimate(
    average: float, variance: float, samples: float, degrees: float, method: str, confidence: float
) -> Estimate:
    """Return a standard deviation with an interval by the delta method on its logarithm.

    `average` is that of the squared distances from the mean, and `variance` how uncertain it is to first order. The
    variance of a variance has a second term, 2 sd^4 / n^2, which is all there is if every value lies as far from the
    mean as the others, as those of a fair coin do.
    """
    deviation = math.sqrt(average * (samples / (samples - 1) if samples > 1 else 1.0))
    if samples <= 2 or not average:
        return Estimate(deviation, 0.0, math.inf, method=method, confidence=confidence)
    error = math.sqrt(variance + 2 * (average / samples) ** 2)
    half = student(degrees, confidence) * error / (2 * average)
    ends = deviation * math.exp(-half), deviation * math.exp(half)
    return Estimate(deviation, *ends, method=method, confidence=confidence)


def spread_within(found: Estimate, squares: tuple[float, float]) -> Estimate:
    """Return a standard deviation with the interval that one of the mean of the squared distances gives."""
    low, high = map(math.sqrt, squares)
    return replace(found, low=min(low, found.value), high=max(high, found.value))


def quantile_estimate(
    values: Array, weighting: Weighting, level: float, method: str = "", confidence: float = CONFIDENCE
) -> Estimate:
    """Return a quantile with its interval from order statistics: distribution-free, never too narrow in theory."""
    order, weights = np.argsort(values, kind="stable"), weighting.weights
    ordered = values[order]
    cumulative = (np.arange(1, len(values) + 1) / len(values)) if weights is None else np.cumsum(weights[order])

    def at(share: float) -> float:
        # A share that equals a cumulative sum but for rounding belongs to that sum's value.
        position = int(np.searchsorted(cumulative, share - 1e-12))
        return _number(ordered[min(position, len(ordered) - 1)])

    value = at(level)
    _, samples = _known_share(values <= value, weighting, confidence)
    band = proportion_estimate(level, samples, "", confidence)
    if band.low * samples < 1:
        low = -math.inf if level * samples < _fewest_for_bound(confidence) else _number(ordered[0])
    else:
        low = at(band.low)
    high = math.inf if (1 - level) * samples < _fewest_for_bound(confidence) else at(band.high)
    return Estimate(value, min(low, value), max(high, value), method=method, confidence=confidence)


def _number(value: Any) -> float:
    """Return a number of an array as a float, or as the whole number that it is where floats do not reach."""
    plain = value.item()
    return plain if isinstance(plain, int) and abs(plain) > FLOAT_LIMIT else float(plain)


def _fewest_for_bound(confidence: float) -> float:
    """Return how many samples must be expected beyond a quantile for the extreme sample to bound it."""
    return -math.log((1 - confidence) / 2)


def infinite_mean(below: bool, above: bool, method: str, confidence: float) -> Estimate:
    """Return the mean of a quantity that is infinite now and then."""
    if below and above:
        return Estimate.undefined("the mean does not exist: the quantity is infinite in both directions")
    value = math.inf if above else -math.inf
    return Estimate(value, value, value, method=f"some values are infinite; {method}", confidence=confidence)


def is_constant(values: Array, *, several: bool = False) -> bool:
    """Say whether several samples are all the same but for rounding: then there is nothing to average.

    One value may stand for `several`.
    """
    if len(values) < 2:
        return several
    low, high = float(values.min()), float(values.max())
    return high - low <= CONSTANT * max(abs(low), abs(high))


def _constant(values: Array, method: str, confidence: float) -> Estimate:
    distinct, counts = np.unique(values, return_counts=True)
    value = float(distinct[int(np.argmax(counts))])
    return Estimate(value, value, value, method=method, confidence=confidence)


def _is_finite_beyond(values: Array, reach: tuple[float, float]) -> bool:
    """Say whether a quantity is known to take other values than zero and one, or than the one that was seen."""
    low, high = min(0.0, float(values.min())), max(1.0, float(values.max()))
    return reach[0] < reach[1] and (-math.inf < reach[0] < low or high < reach[1] < math.inf)


def _mean_and_error(values: Array, weighting: Weighting) -> tuple[float, float, float]:
    """Return the mean, the variance of that mean, and the effective sample size."""
    weights, groups, _ = weighting
    if weights is None:
        samples = float(len(values))
        mean, variance = float(values.mean()), float(values.var(ddof=1)) / len(values) if samples > 1 else math.inf
    else:
        mean, squares = float(weights @ values), weighting.squared
        variance, samples = float(squares @ (values - mean) ** 2), 1.0 / float(squares.sum())
    if groups is None or samples <= 1:
        return mean, variance, samples
    effective = effective_size(values, weights, groups.number)
    return mean, variance * samples / effective, effective


def _check_confidence(confidence: float) -> None:
    if isinstance(confidence, bool) or not isinstance(confidence, int | float) or not 0 < confidence < 1:
        raise ArgumentError(f"confidence must lie between 0 and 1, such as 0.95, not {confidence!r}")


def student(degrees: float, confidence: float = CONFIDENCE) -> float:
    """Return how many standard errors an interval reaches to either side, by Student's t."""
    _check_confidence(confidence)
    return float(scipy.special.stdtrit(max(degrees, 1.0), 0.5 + confidence / 2))
