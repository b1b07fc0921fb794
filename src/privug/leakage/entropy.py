"""Entropies of one belief, discrete or continuous: how uncertain the attacker is, in bits or in guesses."""

import math

import numpy as np
import scipy

from privug.arguments import kinds_checked, shown
from privug.digits import how_many, number_text, percent_text
from privug.errors import ArgumentError, TooFewSamples
from privug.estimate import Estimate
from privug.inference.belief import Belief
from privug.inference.intervals import Weighting, mean_estimate, student
from privug.inference.joint import Joint
from privug.inference.measure.curve import Curve
from privug.leakage import plugin, register
from privug.leakage.finite import LN2, Shares, alike_shares, equally_weighing, number_columns
from privug.leakage.neighbours import knn_divergence, kozachenko_leonenko
from privug.leakage.register import Of, Placement, measure, ranging
from privug.leakage.strategy import unseen_output
from privug.leakage.vulnerability import bayes_vulnerability, posterior_guessing_entropy
from privug.model.node import Array, Kind

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
    points = number_columns(belief.batch)
    if points is None:
        raise ArgumentError(f"{what}: a continuous belief must be about numbers, not {shown(belief.batch.values()[0])}")
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
    kept = equally_weighing(belief.weights, np.random.default_rng(0))
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
    return student(len(terms) - 1) * math.sqrt((spread + overlap) / len(terms))


def _unrelated(points: Array, belief: Belief) -> tuple[Array, str]:
    """Return so few of samples that depend on each other that they hardly do, and none of them twice."""
    kept = np.flatnonzero(equally_weighing(belief.shares, np.random.default_rng(0)))[:: math.ceil(belief.inflation)]
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
    held, samples = belief.shares > 0, belief.effective_samples
    if samples < FEWEST:
        raise TooFewSamples(f"differential_entropy: {samples:.3g} effective samples are too few; draw {FEWEST} or more")
    values, weights = points[held, 0], belief.shares[held]
    middle, spread = _location_and_spread(values, weights)
    method = f"differential entropy, kernel estimate, {belief.method}"
    if spread == 0:
        return minus_infinite("the samples do not vary", method)
    bandwidth = 0.9 * samples**-0.2
    standard = (values - middle) / spread
    terms, alone = _surprisals(standard, weights, bandwidth)
    smoother, _ = _surprisals(standard, weights, bandwidth * math.sqrt(2))
    estimate = mean_estimate(terms, Weighting(None if belief.weights is None else weights), method, binary=False)
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
    half = student(BLOCKS - 1) * float(np.std(parts, ddof=1)) / math.sqrt(BLOCKS)
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
    return rng.permutation(first), rng.permutation(second), of_both(before, after)


def of_both(posterior: str, prior: str) -> str:
    """Return the method of what was computed from both beliefs."""
    return posterior if posterior == prior else f"posterior {posterior}, prior {prior}"


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
    weights = np.concatenate([belief.shares for belief in beliefs])
    order = np.argsort(values)
    # As many bins as balance what they hide against what chance adds to each.
    wanted = max(2, round(min(belief.effective_samples for belief in beliefs) ** 0.4))
    places = np.searchsorted(np.cumsum(weights[order]), 2 * np.arange(1, wanted) / wanted)
    edges = np.unique(values[order][np.minimum(places, len(values) - 1)])
    shares = [_in_bins(belief, some[:, 0], edges) for belief, some in zip(beliefs, points, strict=True)]
    return shares, len(edges) + 1


def _in_bins(belief: Belief, values: Array, edges: Array) -> Shares:
    bins = len(edges) + 1
    codes, weights = np.searchsorted(edges, values, side="left"), belief.shares
    probability: Array = np.bincount(codes, weights, bins)
    if belief.curve is not None:
        probability = np.diff(belief.curve.cdf(edges), prepend=0.0, append=1.0)
    squares = np.zeros(bins) if belief.exact else belief.inflation * np.bincount(codes, weights**2, bins)
    return Shares(list(range(bins)), probability, squares, belief.effective_samples, belief.method)


def minus_infinite(reason: str, method: str) -> Estimate:
    """Return the differential entropy of what has no density."""
    return Estimate(-math.inf, -math.inf, -math.inf, "bit", f"{reason}; {method}")


# Values not seen at all make an entropy too low: by one to four bits times the share of values seen once, measured on
# uniform, Zipf, geometric and mixed distributions.
BITS_PER_UNSEEN = 3.0
FEWEST_OF_EACH = 5  # samples of every value, or orders below one depend on values that were not seen


def _uncertainty(estimate: Estimate, prior: Belief) -> str:
    if prior.kind is Kind.DISCRETE:
        questions = how_many(number_text(estimate.value), "yes-or-no question")
        return f"Before, finding the person's value takes some {questions}."
    return "Before: the differential entropy of the secret, on a scale whose zero is one unit of the secret."


def _best_guess_here(estimate: Estimate, prior: Belief) -> str:
    return f"After this observation the best guess is right with probability {percent_text(2.0**-estimate.value)}."


@measure(Of.BELIEF, register.entropy_range, Placement(41, "before", _uncertainty))
def entropy(belief: Belief) -> Estimate:
    """Shannon entropy of a discrete belief; the differential entropy, and called so, of a continuous one.

    H = -sum p(x) log2 p(x), in bits, from 0 to the logarithm of the number of values. On samples it is corrected for
    bias (Miller and Madow); what bias is left makes the attacker look more certain than they are, which errs on the
    risky side for a posterior, and the upper end of the interval allows for it. If many values were seen only once, the
    estimate is a lower bound and says so. G. A. Miller, Information Theory in Psychology (1955).

    >>> print(entropy(Belief.of(list("abcd"), probabilities=[1 / 2, 1 / 4, 1 / 8, 1 / 8])))
    1.75 bit (exact)
    """
    kind = checked(belief, "entropy").kind
    if kind is Kind.DISCRETE:
        return _shannon(alike_shares(belief))
    if kind is Kind.MIXED:
        raise ArgumentError(
            "entropy: some values of this belief repeat and others do not, as if it had atoms and a density: it has no "
            "finite entropy of either kind. Ask for min_entropy, or for the probability of single values; if the "
            "quantity is discrete with many values, draw more samples, or round it"
        )
    return differential_entropy(belief)


@kinds_checked
def differential_entropy(belief: Belief, estimator: str = "kozachenko-leonenko", k: int = 3) -> Estimate:
    """Differential entropy of a continuous belief: the entropy of its density, which may be negative.

    h = -integral f(x) log2 f(x) dx, in bits relative to the unit of x. On samples the estimator is that of Kozachenko
    and Leonenko (1987) from the distances to the k-th neighbours, or "kernel", the resubstitution estimate of Ahmad
    and Lin (1976), for single numbers. Both come out too high near sharp edges, and the kernel one on fine structure
    too: then the attacker looks less certain than they are, which errs on the safe side for a posterior. It is minus
    infinite if part of the belief sits on single values.

    >>> rng = np.random.default_rng(1)
    >>> print(differential_entropy(Belief.of(rng.uniform(0, 8, 10_000))))  # three bits
    3.00 ± 0.02 bit (differential entropy, Kozachenko-Leonenko k=3, n=10000)
    """
    kind = checked(belief, "differential_entropy").kind
    if estimator not in ("kozachenko-leonenko", "kernel"):
        raise ArgumentError(
            f"differential_entropy: the estimator must be 'kozachenko-leonenko' or 'kernel', not {estimator!r}"
        )
    if kind is Kind.DISCRETE:
        raise ArgumentError("differential_entropy: a discrete belief has no density; ask for entropy")
    if kind is Kind.MIXED:
        return minus_infinite("part of the belief sits on single values", f"differential entropy, {belief.method}")
    if belief.exact:
        return _of_curve(belief)
    if estimator == "kernel":
        return kernel_entropy(belief)
    return neighbour_entropy(*equally_weighted(belief), k)


@measure(Of.BELIEF, register.min_entropy_range, Placement(10, "here", _best_guess_here, discrete=True))
def min_entropy(belief: Belief) -> Estimate:
    """Min-entropy: how hard it is to guess the value in one try.

    H = -log2 max p(x), in bits, from 0 on; infinite for a continuous belief. It is minus the logarithm of the Bayes
    vulnerability, and so on samples too high on average, which makes a mistake look safer than the truth; the interval
    allows for it. G. Smith, On the Foundations of Quantitative Information Flow (2009).

    >>> print(min_entropy(Belief.of(list("abc"), probabilities=[1 / 4, 1 / 4, 1 / 2])))
    1 bit (exact)
    """
    kind = checked(belief, "min_entropy").kind
    if belief.curve is not None and kind is Kind.MIXED:
        return Estimate.exactly(_surprisal(float(belief.curve.masses.max())), "bit", belief.method)
    return plugin.falling(bayes_vulnerability(belief), _surprisal, "bit")


@measure(Of.BELIEF, register.guesses_range)
def guessing_entropy(belief: Belief) -> Estimate:
    """Guessing entropy: the number of guesses the attacker needs on average, the likeliest value first.

    G = sum i p_i with p_1 >= p_2 >= ..., from 1 to half the number of values plus one half; counted from 1. Infinite
    for a belief with a continuous part. On samples the order is found on some and judged on others, which takes too
    many guesses on average and looks safer than the truth; the interval allows for it. J. L. Massey, ISIT (1994).

    >>> print(guessing_entropy(Belief.of(list("abc"), probabilities=[1 / 4, 1 / 4, 1 / 2])))
    1.75 guesses (exact)
    """
    if checked(belief, "guessing_entropy").kind is not Kind.DISCRETE:
        reason = f"a {belief.kind.value} belief has endlessly many values"
        return Estimate(math.inf, math.inf, math.inf, "guesses", reason)
    return posterior_guessing_entropy(unseen_output(belief))


@kinds_checked
@ranging(register.renyi_range)
def renyi_entropy(belief: Belief, order: float) -> Estimate:
    """Rényi entropy of a discrete belief: order 0 counts values, 1 is Shannon's, 2 the collision entropy.

    H = log2(sum p(x)^order) / (1 - order), in bits, from 0 on, falling with the order down to the min-entropy at
    infinity. On samples of orders below 1 the unseen values matter most: with any value seen less than five times
    the estimate is a lower bound. The bias that is left makes the attacker look more certain than they are.
    A. Rényi, On Measures of Entropy and Information (1961).

    >>> print(renyi_entropy(Belief.of(list("abc"), probabilities=[1 / 2, 1 / 4, 1 / 4]), 2))
    1.42 bit (exact)
    """
    if isinstance(order, bool) or not isinstance(order, int | float) or not order >= 0:
        raise ArgumentError(f"renyi_entropy: the order must be a number from 0 to infinity, not {order!r}")
    if order == 1:
        return entropy(belief)
    if order == math.inf:
        return min_entropy(belief)
    if checked(belief, "renyi_entropy").kind is not Kind.DISCRETE:
        raise ArgumentError(
            f"renyi_entropy: of a {belief.kind.value} belief it is infinite or depends on the unit; ask for "
            "differential_entropy or min_entropy"
        )
    return _renyi(alike_shares(belief), float(order))


def checked(belief: Belief | Joint, name: str) -> Belief:
    """Refuse what is not a belief, and say what to use instead."""
    if isinstance(belief, Joint):
        raise ArgumentError(
            f"{name} is about one quantity: give joint.secret or joint.output, or ask for conditional_entropy or "
            "mutual_information of the joint"
        )
    if not isinstance(belief, Belief):
        raise ArgumentError(f"{name} needs a Belief such as result.posterior, not {shown(belief)}")
    return belief


def _of_curve(belief: Belief) -> Estimate:
    if belief.curve is None:
        raise ArgumentError(
            "differential_entropy: this exact belief gives probabilities of cells, not a density; take samples of it"
        )
    value = belief.curve.differential_entropy()
    # A probability that is off by the error is off by at most so many bits as the cells differ in surprisal.
    error = belief.error * -math.log2(belief.error / len(belief.batch)) if belief.error > 0 else 0.0
    method = f"{belief.method}, differential entropy"
    return Estimate(value, value - error, value + error, "bit", method, exact=True)


def shannon(probability: Array) -> float:
    """Return the entropy of probabilities as they stand, in bits."""
    return max(0.0, float(scipy.special.entr(probability).sum())) / LN2


def _shannon(shares: Shares) -> Estimate:
    p = shares.probability
    slope = -np.log2(p)
    if shares.exact:
        return plugin.exact_estimate(max(0.0, shares.summed(scipy.special.entr(p))) / LN2, [shares], [slope])
    value = shannon(p)
    if len(p) == 1:
        return _never_varied(shares, shannon(_with_another(shares)), "Miller-Madow")
    dependence = plugin.Dependence(shares, slope, np.full(len(p), -1 / LN2))
    half = student(shares.samples - 1) * math.sqrt(plugin.variance([dependence]))
    return _with_unseen(
        value - plugin.bias(dependence), half, BITS_PER_UNSEEN * plugin.seen_once(shares), shares, "Miller-Madow"
    )


def _renyi(shares: Shares, order: float) -> Estimate:
    logarithms = np.log(shares.probability)
    value, name = _renyi_value(logarithms, order, shares.copies), f"order {order:g}"
    # The derivatives of log2(sum p^order) / (1 - order), by way of p^(order - 1) relative to the sum of p^order.
    relative = np.exp((order - 1) * logarithms - (1 - order) * LN2 * value)
    slope = order / (1 - order) / LN2 * relative
    if shares.exact:
        return plugin.exact_estimate(value, [shares], [slope])
    if len(shares) == 1:
        return _never_varied(shares, _renyi_value(np.log(_with_another(shares)), order), name)
    dependence = plugin.Dependence(shares, slope, -order / LN2 * relative)
    value -= plugin.bias(dependence) - (1 - order) * LN2 / 2 * plugin.linear_variance(dependence)
    half = student(shares.samples - 1) * math.sqrt(plugin.variance([dependence]))
    allowance = BITS_PER_UNSEEN * plugin.seen_once(shares) * max(0.0, 2 - order)
    if order < 1 and plugin.fewest_samples(shares) < FEWEST_OF_EACH:
        allowance = math.inf
    return _with_unseen(value, half, allowance, shares, name)


def _renyi_value(logarithms: Array, order: float, copies: Array | None = None) -> float:
    each = np.ones(len(logarithms)) if copies is None else copies
    if abs(order - 1) < 0.01:  # the sum is almost one, and its distance from one is known better than itself
        gathered = math.log1p(float((each * np.exp(logarithms)) @ np.expm1((order - 1) * logarithms)))
    else:
        gathered = float(scipy.special.logsumexp(order * logarithms, b=copies))
    return max(0.0, gathered / (1 - order)) / LN2


def _with_another(shares: Shares) -> Array:
    """Return the probabilities if there were another value, as likely as it can be to have been missed."""
    missed = plugin.rarest_missed(shares)
    return np.array([1 - missed, missed])


def _never_varied(shares: Shares, high: float, name: str) -> Estimate:
    """Return zero for samples that are all the same; the upper end allows for another value."""
    high = high if plugin.rarest_missed(shares) < 0.5 else math.inf
    return Estimate(0.0, 0.0, high, "bit", f"{name}, {shares.method}")


def _with_unseen(value: float, half: float, allowance: float, shares: Shares, name: str) -> Estimate:
    low = max(0.0, value - half)
    if math.isinf(allowance) or plugin.undersampled(shares):
        method = f"lower bound: some values were seen only a few times, so there may be others, {shares.method}"
        return Estimate(max(0.0, value), low, math.inf, "bit", method)
    most = math.inf if allowance else math.log2(len(shares))
    value, high = min(max(0.0, value), most), value + half + allowance
    return Estimate(value, min(low, value), max(high, value), "bit", f"{name}, {shares.method}")


def _surprisal(probability: float) -> float:
    return max(0.0, -math.log2(probability)) if probability > 0 else math.inf
