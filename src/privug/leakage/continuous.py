"""Continuous beliefs as points, and differential entropies from them."""

import math

import numpy as np
import scipy

from privug.arguments import shown
from privug.digits import how_many
from privug.errors import ArgumentError, TooFewSamples
from privug.estimate import Estimate
from privug.inference.belief import Belief
from privug.inference.intervals import mean_estimate
from privug.inference.measure.curve import Curve
from privug.leakage.finite import Shares
from privug.leakage.neighbours import knn_divergence, kozachenko_leonenko
from privug.leakage.plugin import quantile
from privug.model.node import Array

# The neighbourhoods of neighbours overlap, so their distances vary together. Of uniform samples the variance is 1.31
# (k=1) to 1.76 (k=20) times trigamma(k), measured in 1 to 5 dimensions, where independent ones would have it once.
OVERLAP = 0.75
BINS_PER_BANDWIDTH = 16
FARTHEST = 6  # bandwidths: the kernel is 1e-8 of its height there
SAMPLES_OF_CURVE = 20_000
FEWEST = 10  # equally weighted samples of which anything is said
MOST_OWN_BITS = 4  # by which a lonely point may be more surprising than it looks
BLOCKS = 10
FEWEST_NEAR = 40  # samples of the prior that must be worth something where the posterior is
NEIGHBOURS = 5  # of a divergence


def coordinates(belief: Belief, what: str) -> Array:
    """Return a row of numbers for each sample."""
    columns = belief.batch.columns
    if any(column.levels is not None or column.array.dtype.kind not in "bif" for column in columns):
        raise ArgumentError(f"{what}: a continuous belief must be about numbers, not {shown(belief.batch.values()[0])}")
    points = np.column_stack([column.array.reshape(len(belief.batch), -1).astype(float) for column in columns])
    if not np.all(np.isfinite(points)):
        raise ArgumentError(f"{what}: some samples are infinite or not a number; exclude them from the output")
    return points


def equally_weighted(belief: Belief, what: str = "differential_entropy") -> tuple[Array, str]:
    """Return independent samples of equal weight, one row each, and how they came about.

    Weighted samples are thinned: each is kept with a probability proportional to its weight. Resampling would repeat
    some, and equal points have no distance.
    """
    if belief.curve is not None:
        drawn = belief.curve.sample(SAMPLES_OF_CURVE, np.random.default_rng(0))
        return drawn.reshape(-1, 1), f"n={SAMPLES_OF_CURVE} sampled from an exact belief"
    points = coordinates(belief, what)
    if belief.groups is not None:
        return _unrelated(points, belief)
    if belief.weights is None:
        return points, belief.method
    kept = np.random.default_rng(0).random(len(points)) * belief.weights.max() < belief.weights
    if kept.sum() < FEWEST:
        raise TooFewSamples(
            f"{what}: the weights are so uneven that {int(kept.sum())} equally weighted samples are left of "
            f"{len(points)}; draw more samples, or choose another engine"
        )
    return points[kept], f"n={int(kept.sum())} thinned from {how_many(len(points), 'weighted sample')}"


def neighbour_entropy(points: Array, method: str, k: int) -> Estimate:
    """Return the differential entropy by the distances to the k-th neighbours, with its interval."""
    method = f"differential entropy, Kozachenko-Leonenko k={k}, {method}"
    value, terms = kozachenko_leonenko(points, k)
    if math.isinf(value) or _is_flat(points):
        return minus_infinite("the samples lie on single values or in a plane", method)
    half = _half_width(terms, k) + (_drift(points, value, k) if points.shape[1] > 1 else 0.0)
    return Estimate(value, value - half, value + half, "bit", method)


def _half_width(terms: Array, k: int) -> float:
    overlap = OVERLAP * float(scipy.special.polygamma(1, k)) / math.log(2) ** 2
    with np.errstate(over="ignore"):
        spread = float(terms.var(ddof=1))
    return quantile(len(terms)) * math.sqrt((spread + overlap) / len(terms))


def _unrelated(points: Array, belief: Belief) -> tuple[Array, str]:
    """Return so few of samples that depend on each other that they hardly do, and none of them twice."""
    weights = _weights(belief)
    kept = np.flatnonzero(np.random.default_rng(0).random(len(points)) * weights.max() < weights)
    kept = kept[:: math.ceil(belief.inflation)]
    _, first = np.unique(points[kept], axis=0, return_index=True)
    return points[kept[np.sort(first)]], f"n={len(first)} thinned from {how_many(len(points), 'dependent sample')}"


def _is_flat(points: Array) -> bool:
    """Say whether some coordinate is a linear function of the others."""
    centred = points - points.mean(axis=0)
    scale = np.abs(centred).max(axis=0)
    return bool(np.any(scale == 0)) or int(np.linalg.matrix_rank(centred / scale)) < points.shape[1]


def _drift(points: Array, value: float, k: int) -> float:
    """Return how much bias may be left in several dimensions, from how the value changes with half the samples.

    It falls with the number of samples at least like the distance between neighbours, n^(-1/d).
    """
    order = np.random.default_rng(0).permutation(len(points))
    halves = [kozachenko_leonenko(points[order[start::2]], k)[0] for start in (0, 1)]
    change = abs(float(np.mean(halves)) - value)
    return float(change / (2 ** (1 / points.shape[1]) - 1)) if math.isfinite(change) else math.inf


def kernel_entropy(belief: Belief) -> Estimate:
    """Return the differential entropy of single numbers by a normal kernel, with its interval (Ahmad and Lin, 1976).

    The bandwidth is Silverman's. Points are put in bins of a sixteenth of it: time and memory grow with their number.
    Smoothing makes the value too high, as the value at a larger bandwidth tells; that every point counts as its own
    neighbour makes it too low. The interval allows for both.
    """
    points = coordinates(belief, "differential_entropy")
    if points.shape[1] != 1:
        raise ArgumentError("differential_entropy: the kernel estimator is for single numbers; use kozachenko-leonenko")
    held, samples = _weights(belief) > 0, belief.effective_samples
    if samples < FEWEST:
        raise TooFewSamples(f"differential_entropy: {samples:.3g} effective samples are too few; draw {FEWEST} or more")
    values, weights = points[held, 0], _weights(belief)[held]
    middle, spread = _location_and_spread(values, weights)
    method = f"differential entropy, kernel estimate, {belief.method}"
    if spread == 0:
        return minus_infinite("the samples do not vary", method)
    bandwidth = 0.9 * samples**-0.2
    standard = (values - middle) / spread
    terms, alone = _surprisals(standard, weights, bandwidth)
    smoother, _ = _surprisals(standard, weights, bandwidth * math.sqrt(2))
    estimate = mean_estimate(terms, None if belief.weights is None else weights, method, binary=False)
    estimate = estimate.widened(math.sqrt(belief.inflation))
    smoothing = 3 * max(0.0, float(weights @ (smoother - terms)))
    own = float(weights @ np.minimum(-np.log2(1 - np.minimum(alone, 0.999)), MOST_OWN_BITS))
    ends = [end + math.log2(spread) for end in (estimate.value, estimate.low - smoothing, estimate.high + own)]
    return Estimate(ends[0], ends[1], ends[2], "bit", method)


def _location_and_spread(values: Array, weights: Array) -> tuple[float, float]:
    """Return the median and Silverman's spread: the deviation, or the quartiles' if those are closer."""
    order = np.argsort(values)
    cumulative = np.cumsum(weights[order])
    places = np.minimum(np.searchsorted(cumulative, [0.25, 0.5, 0.75]), len(values) - 1)
    low, middle, high = values[order][places]
    unit = max(float(np.abs(values - middle).max()), np.finfo(float).tiny)
    scaled = (values - middle) / unit
    deviation = unit * math.sqrt(max(0.0, float(weights @ scaled**2) - float(weights @ scaled) ** 2))
    between = float(high - low) / 1.349
    return float(middle), min(deviation, between) if between > 0 else deviation


def _surprisals(values: Array, weights: Array, bandwidth: float) -> tuple[Array, Array]:
    """Return minus the logarithm of the smoothed density at each value, in bits, and its own share in that density."""
    width = bandwidth / BINS_PER_BANDWIDTH
    bins = np.round(values / width)
    occupied, inverse = np.unique(bins, return_inverse=True)
    masses = np.bincount(inverse.reshape(-1), weights, len(occupied))
    density: Array = masses.copy()
    for step in range(1, FARTHEST * BINS_PER_BANDWIDTH + 1):
        place = np.minimum(np.searchsorted(occupied, occupied + step), len(occupied) - 1)
        left = np.flatnonzero(occupied[place] == occupied + step)
        height = math.exp(-0.5 * (step / BINS_PER_BANDWIDTH) ** 2)
        density[left] += height * masses[place[left]]
        density[place[left]] += height * masses[left]
    logarithms = np.log2(density / (bandwidth * math.sqrt(2 * math.pi)))
    return -logarithms[inverse.reshape(-1)], weights / density[inverse.reshape(-1)]


def neighbour_divergence(posterior: Belief, prior: Belief) -> Estimate:
    """Return the divergence of two continuous beliefs by the distances to their neighbours, with its interval.

    The interval comes from the variance between blocks of samples: each side's errors are in it.
    """
    first, second, method = independent(posterior, prior, "kl_divergence")
    method = f"Wang-Kulkarni-Verdú k={NEIGHBOURS}, {method}"
    size = min(len(first), len(second)) // BLOCKS
    if size < 2 * NEIGHBOURS:
        raise TooFewSamples(
            f"kl_divergence: {min(len(first), len(second))} samples are too few to compare continuous beliefs; "
            f"at least {2 * NEIGHBOURS * BLOCKS} are needed of each"
        )
    value, terms = knn_divergence(first, second, NEIGHBOURS)
    if math.isinf(value):
        return Estimate(value, value, value, "bit", f"the posterior has values that the prior lacks, {method}")
    parts = [knn_divergence(first[k::BLOCKS], second[k::BLOCKS], NEIGHBOURS)[0] for k in range(BLOCKS)]
    half = quantile(BLOCKS) * float(np.std(parts, ddof=1)) / math.sqrt(BLOCKS)
    near = len(second) / float(np.exp2(terms).mean())
    if near < FEWEST_NEAR:
        half = math.hypot(half, 2 / (math.log(2) * math.sqrt(near)))
        method = f"lower bound: the prior has hardly any samples where the posterior is, {method}"
    value = max(0.0, value)
    high = math.inf if near < FEWEST_NEAR else value + half
    return Estimate(value, max(0.0, value - half), high, "bit", method)


def divergence_from_curve(posterior: Belief, prior: Curve) -> Estimate:
    """Return the divergence of a sampled continuous belief from one whose density is known."""
    points, method = equally_weighted(posterior, "kl_divergence")
    method = f"Kozachenko-Leonenko k={NEIGHBOURS} against an exact prior, {method}"
    entropy, terms = kozachenko_leonenko(points, NEIGHBOURS)
    expected = -prior.logpdf(points[:, 0]) / math.log(2)
    value = float(expected.mean()) - entropy
    if math.isinf(value):
        return Estimate(value, value, value, "bit", f"the posterior allows what the prior rules out, {method}")
    half = _half_width(expected - terms, NEIGHBOURS)
    return Estimate(max(0.0, value), max(0.0, value - half), max(0.0, value + half), "bit", method)


def independent(posterior: Belief, prior: Belief, what: str) -> tuple[Array, Array, str]:
    """Return samples of both beliefs, no point of which is a sample of both, in random order.

    Beliefs of one run may share draws, and a point is no neighbour of itself.
    """
    (first, before), (second, after) = equally_weighted(posterior, what), equally_weighted(prior, what)
    if first.shape[1] != second.shape[1]:
        raise ArgumentError(f"{what}: the beliefs are about {first.shape[1]} and {second.shape[1]} numbers")
    shared = np.isin(first[:, 0], second[:, 0])
    if shared.mean() > 0.5:
        first, second = first[_coin(first)], second[~_coin(second)]
    else:
        first = first[~shared]
    rng = np.random.default_rng(0)
    method = before if before == after else f"posterior {before}, prior {after}"
    return rng.permutation(first), rng.permutation(second), method


def _coin(points: Array) -> Array:
    """Toss a coin for each point that falls the same way for equal points."""
    bits = np.ascontiguousarray(points[:, 0]).view(np.uint64)
    with np.errstate(over="ignore"):
        return np.asarray((bits * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(63), bool)


def binned(posterior: Belief, prior: Belief, what: str) -> tuple[list[Shares], int]:
    """Return two beliefs about numbers as shares of bins that hold equally much of both together."""
    beliefs = (posterior, prior)
    points = [coordinates(belief, what) for belief in beliefs]
    if any(some.shape[1] != 1 for some in points):
        raise ArgumentError(f"{what}: only single continuous numbers can be compared; ask for kl_divergence")
    values = np.concatenate([some[:, 0] for some in points])
    weights = np.concatenate([_weights(belief) for belief in beliefs])
    order = np.argsort(values)
    # As many bins as balance what they hide against what chance adds to each.
    wanted = max(2, round(min(belief.effective_samples for belief in beliefs) ** 0.4))
    places = np.searchsorted(np.cumsum(weights[order]), 2 * np.arange(1, wanted) / wanted)
    edges = np.unique(values[order][np.minimum(places, len(values) - 1)])
    shares = [_in_bins(belief, some[:, 0], edges) for belief, some in zip(beliefs, points, strict=True)]
    return shares, len(edges) + 1


def _weights(belief: Belief) -> Array:
    return np.full(len(belief.batch), 1 / len(belief.batch)) if belief.weights is None else belief.weights


def _in_bins(belief: Belief, values: Array, edges: Array) -> Shares:
    bins = len(edges) + 1
    codes, weights = np.searchsorted(edges, values, side="left"), _weights(belief)
    probability: Array = np.bincount(codes, weights, bins)
    if belief.curve is not None:
        probability = np.diff(belief.curve.cdf(edges), prepend=0.0, append=1.0)
    squares = np.zeros(bins) if belief.exact else belief.inflation * np.bincount(codes, weights**2, bins)
    return Shares(list(range(bins)), probability, squares, belief.effective_samples, belief.method)


def minus_infinite(reason: str, method: str) -> Estimate:
    """Return the differential entropy of what has no density."""
    return Estimate(-math.inf, -math.inf, -math.inf, "bit", f"{reason}; {method}")
