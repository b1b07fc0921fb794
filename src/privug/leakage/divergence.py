"""How far one observation moved the attacker's belief.

A divergence is that of the posterior from the prior: the posterior comes first, as in D(posterior || prior). A change
leads from the prior to the posterior: the prior comes first.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from privug.arguments import kinds_checked
from privug.digits import how_many, number_text
from privug.errors import ArgumentError
from privug.estimate import Estimate
from privug.inference.belief import Belief
from privug.inference.intervals import student
from privug.inference.measure.curve import Curve
from privug.leakage import plugin
from privug.leakage.entropy import (
    BITS_PER_UNSEEN,
    binned,
    checked,
    differential_entropy,
    divergence_from_curve,
    entropy,
    neighbour_divergence,
    of_both,
)
from privug.leakage.finite import LN2, Shares, aligned, shares_of
from privug.leakage.register import (
    ANY,
    CHANGE,
    NOTHING,
    PROBABILITY,
    Of,
    Placement,
    drop_range,
    kl_range,
    measure,
    ranging,
)
from privug.model.node import Array, Kind

POINTS_PER_PANEL = 64
HALVINGS = 60


def curve_of(belief: Belief) -> Curve | None:
    """Return the distribution of an exact belief about a number; None if it is not exact or not a number."""
    if belief.curve is not None or not belief.exact:
        return belief.curve
    numbers = belief.batch.numbers()
    if numbers is None or not np.all(np.isfinite(numbers)):
        return None
    return Curve.discrete(numbers, belief.shares, belief.error)


def kl_of_curves(posterior: Curve, prior: Curve) -> Estimate:
    """Return the Kullback-Leibler divergence in bits."""
    value = posterior.kl_to(prior)
    if math.isinf(value):
        return Estimate.exactly(value, "bit", "infinite: the posterior allows what the prior rules out")
    return _estimate(value, _bits(posterior, prior), "bit", posterior, prior)


def js_of_curves(posterior: Curve, prior: Curve) -> Estimate:
    """Return the Jensen-Shannon divergence in bits."""
    middle = Curve.mixture([0.5, 0.5], [posterior, prior])
    value = min(1.0, (posterior.kl_to(middle) + prior.kl_to(middle)) / 2)
    return _estimate(value, _bits(posterior, prior), "bit", posterior, prior)


def tv_of_curves(posterior: Curve, prior: Curve) -> Estimate:
    """Return the total variation: the difference in probability of where the posterior has more density."""
    atoms = np.union1d(posterior.atoms, prior.atoms)
    gained = _masses(posterior, atoms) - _masses(prior, atoms)
    total = float(np.maximum(gained, 0.0).sum())
    edges = np.union1d(posterior.edges, prior.edges)
    if len(edges) > 1:
        grid = np.append(np.unique(np.linspace(edges[:-1], edges[1:], POINTS_PER_PANEL, endpoint=False)), edges[-1])
        ends = _with_crossings(posterior, prior, grid)
        densities = [sum(w * part.mass(ends[:-1], ends[1:]) for w, part in curve.parts) for curve in (posterior, prior)]
        total += float(np.maximum(np.asarray(densities[0] - densities[1]), 0.0).sum())
        total += _outside(posterior, edges)
    return _estimate(min(1.0, total), posterior.error + prior.error, "", posterior, prior)


def _with_crossings(posterior: Curve, prior: Curve, grid: Array) -> Array:
    """Add to a grid the points between its own where the two densities cross."""

    def more(x: Array) -> Array:
        return np.asarray(posterior.pdf(x) > prior.pdf(x))

    before = more(grid[:-1])
    places = np.flatnonzero(before != more(grid[1:]))
    low, high, side = grid[places], grid[places + 1], before[places]
    for _ in range(HALVINGS):
        middle = low / 2 + high / 2
        same = more(middle) == side
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    return np.union1d(grid, high)


def _masses(curve: Curve, atoms: Array) -> Array:
    """Return the probability of each single value."""
    masses = np.zeros(len(atoms))
    masses[np.searchsorted(atoms, curve.atoms)] = curve.masses
    return masses


def _outside(curve: Curve, edges: Array) -> float:
    """Return the probability of a density beyond the panels, where next to nothing is."""
    inside = sum(weight * float(part.mass(edges[:1], edges[-1:])[0]) for weight, part in curve.parts)
    return max(0.0, curve.continuous_share - inside)


def _bits(posterior: Curve, prior: Curve) -> float:
    """Return how far off a divergence in bits may be where probabilities are known to an error."""
    return sum(error * -math.log2(error) for error in (posterior.error, prior.error) if error > 0)


def _estimate(value: float, off: float, unit: str, posterior: Curve, prior: Curve) -> Estimate:
    error = max(posterior.error, prior.error)
    method = "exact" if error <= 1e-12 else f"exact to {error:.0e}"
    return Estimate(value, value - off, value + off, unit, method, exact=True)


def _moved(estimate: Estimate, prior: Belief) -> str:
    if estimate.value <= NOTHING:
        return "The belief after this observation is the one before."
    if math.isinf(estimate.value):
        return "The belief after this observation is on single values that had no probability of their own before."
    bits = how_many(number_text(estimate.value), "bit")
    return f"The belief after this observation is {bits} away from the one before."


def _dropped(estimate: Estimate, prior: Belief) -> str:
    if abs(estimate.value) <= NOTHING:
        return "This observation leaves the attacker as uncertain as before."
    if estimate.value == math.inf:
        return "This observation leaves the attacker no uncertainty: the secret is known to any precision."
    bits = number_text(abs(estimate.value))
    if estimate.value > 0:
        return f"This observation leaves the attacker {how_many(bits, 'bit')} less uncertain."
    return f"The belief is spread wider, by {how_many(bits, 'bit')}, which does not mean that nothing was learned."


@measure(Of.BELIEFS, kl_range, Placement(12, "here", _moved), difference=True)
def kl_divergence(posterior: Belief, prior: Belief) -> Estimate:
    """Kullback-Leibler divergence of the posterior from the prior: how surprising the posterior is to the prior.

    D(posterior || prior) = sum p(x) log2(p(x) / q(x)), or the integral over densities, in bits, from 0 on; infinite if
    the posterior allows what the prior rules out. On discrete samples it is corrected for bias; what is left of it is
    upwards, so a mistake looks riskier than the truth. If the prior's samples lack values of the posterior, the
    estimate is a lower bound and says so. Continuous samples are compared by the distances to their neighbours (Wang,
    Kulkarni and Verdú, 2009), which is too low where the prior has few samples. Kullback and Leibler (1951).

    >>> before = Belief.of(list("abcd"), probabilities=[1 / 4] * 4)
    >>> print(kl_divergence(Belief.of(list("ab"), probabilities=[1 / 2, 1 / 2]), before))
    1 bit (exact)
    """
    curves = _curves(posterior, prior, "kl_divergence")
    if curves is not None:
        return kl_of_curves(*curves)
    kinds = posterior.kind, prior.kind
    if kinds == (Kind.DISCRETE, Kind.DISCRETE):
        return _discrete_kl(*aligned([shares_of(posterior), shares_of(prior)]))
    if Kind.DISCRETE in kinds and Kind.MIXED not in kinds:
        exact = posterior.exact and prior.exact
        return _infinite(f"no density compares a {kinds[0].value} posterior with a {kinds[1].value} prior", exact)
    if kinds[0] is Kind.MIXED and kinds[1] is Kind.CONTINUOUS:
        return _infinite("the posterior sits partly on single values, of which the prior gives none a probability")
    if prior.curve is not None and prior.kind is Kind.CONTINUOUS:
        return divergence_from_curve(posterior, prior.curve)
    return neighbour_divergence(posterior, prior)


@measure(
    Of.BELIEFS,
    PROBABILITY,
    Placement(11, "here", "This observation moves {percent} of the attacker's belief to other values.", discrete=True),
    difference=True,
)
def total_variation(posterior: Belief, prior: Belief) -> Estimate:
    """Total variation: the most by which the probability of any event changed.

    TV = 1/2 sum |p(x) - q(x)| = max over sets of P(set) - Q(set): a probability. On samples the set is chosen by all of
    them, which makes it too high, and by half of them, judged by the others, which makes it too low: the value is the
    middle, and the interval holds both. Samples of continuous numbers are put in bins first, which can only hide
    change: a lower bound, safer than the truth. Levin, Peres and Wilmer, Markov Chains and Mixing Times, chapter 4.

    >>> before = Belief.of(list("abcd"), probabilities=[1 / 4] * 4)
    >>> print(total_variation(Belief.of(list("ab"), probabilities=[1 / 2, 1 / 2]), before))
    0.5 (exact)
    """
    return _compared(posterior, prior, "total_variation", tv_of_curves, _discrete_tv)


@measure(Of.BELIEFS, PROBABILITY, difference=True)
def jensen_shannon(posterior: Belief, prior: Belief) -> Estimate:
    """Jensen-Shannon divergence: what one draw says about which of the two beliefs it came from.

    JS = D(p || m) / 2 + D(q || m) / 2 with m = (p + q) / 2, in bits from 0 to 1; the same both ways, never infinite.
    On samples it is corrected for bias; what is left of it is upwards, so a mistake looks riskier than the truth.
    Samples of continuous numbers are put in bins first, which can only hide change: a lower bound, safer than the
    truth. J. Lin, IEEE Trans. Inf. Theory 37, 145 (1991).

    >>> even = [1 / 2, 1 / 2]
    >>> print(jensen_shannon(Belief.of(list("ab"), probabilities=even), Belief.of(list("cd"), probabilities=even)))
    1 bit (exact)
    """
    return _compared(posterior, prior, "jensen_shannon", js_of_curves, _discrete_js)


@kinds_checked
@ranging(CHANGE, difference=True)
def probability_change(prior: Belief, posterior: Belief, predicate: Callable[[Any], Any]) -> Estimate:
    """Probability change: by how much the observation raised the probability of a statement.

    P(statement | observation) - P(statement), from -1 to 1; negative if the attacker now holds it for less likely. On
    samples unbiased, with the exact binomial intervals of both sides combined (Newcombe, Stat. Med. 17, 873, 1998).

    >>> die = Belief.of([1, 2, 3, 4, 5, 6], probabilities=[1 / 6] * 6)
    >>> print(probability_change(die, Belief.of([4, 5, 6], probabilities=[1 / 3] * 3), lambda face: face > 5))
    0.167 (exact)
    """
    for belief in (posterior, prior):
        checked(belief, "probability_change")
    return plugin.difference(posterior.probability(predicate), prior.probability(predicate), "")


@measure(Of.BELIEFS, drop_range, Placement(40, "here", _dropped), difference=True)
def entropy_drop(prior: Belief, posterior: Belief) -> Estimate:
    """Entropy drop: how many bits of uncertainty the observation took away.

    H(prior) - H(posterior), in bits; negative if the attacker is less certain than before. Of continuous beliefs it is
    the difference of differential entropies, which does not depend on the unit; infinite if the posterior has come
    down to single values. What bias is left in the entropies on samples cancels in part. Shannon (1948).

    >>> coins = Belief.of([0, 1, 2], probabilities=[1 / 4, 1 / 2, 1 / 4])
    >>> print(entropy_drop(coins, Belief.of([2], probabilities=[1.0])))
    1.5 bit (exact)
    """
    for belief in (posterior, prior):
        checked(belief, "entropy_drop")
    if prior.kind is Kind.MIXED or (prior.kind is Kind.DISCRETE and posterior.kind is not Kind.DISCRETE):
        raise ArgumentError(
            f"entropy_drop: the entropies of a {prior.kind.value} prior and a {posterior.kind.value} posterior cannot "
            "be compared; ask for kl_divergence or total_variation"
        )
    if prior.kind is Kind.DISCRETE:
        return plugin.difference(entropy(prior), entropy(posterior))
    if posterior.kind is not Kind.CONTINUOUS:
        exact = posterior.exact and prior.exact
        return _infinite("the posterior has come down to single values of a continuous quantity", exact)
    before, after = differential_entropy(prior), differential_entropy(posterior)
    if math.isinf(before.value):
        raise ArgumentError(f"entropy_drop: the prior has no density ({before.method})")
    return _infinite(after.method) if math.isinf(after.value) else plugin.difference(before, after)


@measure(Of.BELIEFS, ANY)
def cohens_d(prior: Belief, posterior: Belief) -> Estimate:
    """Cohen's d: by how many standard deviations the mean moved.

    d = (mean of the posterior - mean of the prior) / sqrt((var of the posterior + var of the prior) / 2), without unit
    and of either sign. On samples almost unbiased (by 3 / (4 n) of itself, away from zero). It sees a shift of the
    mean alone: a posterior that only became narrower has d = 0. J. Cohen, Statistical Power Analysis (1988).

    >>> before, after = (Belief.of([m - 1, m + 1], probabilities=[1 / 2, 1 / 2]) for m in (0, 3))
    >>> print(cohens_d(before, after))
    3 standard deviations (exact)
    """
    beliefs, unit = (posterior, prior), _size(prior, posterior)
    moments = [_moments(belief, unit) for belief in beliefs]
    shift = moments[0][0] - moments[1][0]
    pooled = math.sqrt((moments[0][1] ** 2 + moments[1][1] ** 2) / 2)
    method = of_both(posterior.method, prior.method)
    if pooled == 0:
        value = math.copysign(math.inf, shift) if shift else 0.0
        return Estimate(value, value, value, "standard deviations", f"neither belief varies, {method}")
    value = shift / pooled
    if posterior.exact and prior.exact:
        return Estimate.exactly(value, "standard deviations", method)
    samples = min(belief.effective_samples for belief in beliefs)
    if samples < 2:
        return Estimate(value, -math.inf, math.inf, "standard deviations", method)
    variances = [
        _influence(belief, unit, *moment, pooled, sign * value)
        for belief, moment, sign in zip(beliefs, moments, (1, -1), strict=True)
    ]
    half = student(samples - 1) * math.sqrt(sum(variances))
    return Estimate(value, value - half, value + half, "standard deviations", method)


def _curves(posterior: Belief, prior: Belief, name: str) -> Any:
    """Return the exact curves of both beliefs if at least one has a density and both are known exactly."""
    for belief in (posterior, prior):
        checked(belief, name)
    if posterior.curve is None and prior.curve is None:
        return None
    curves = curve_of(posterior), curve_of(prior)
    return None if None in curves else curves


def _discrete_kl(p: Shares, r: Shares) -> Estimate:
    method = of_both(p.method, r.method)
    missing = (p.probability > 0) & (r.probability == 0)
    lost = float(p.probability[missing].sum())
    if lost and r.exact:
        return _infinite(f"the posterior gives {lost:.2g} to values that the prior rules out", p.exact)
    common = (p.probability > 0) & ~missing
    ratio = np.divide(p.probability, r.probability, out=np.ones_like(p.probability), where=common)
    logarithms = np.log2(ratio)
    value = float(p.probability @ logarithms)
    if lost:
        logarithms[missing] = math.log2(lost / plugin.most_unseen(r))
        value += lost * math.log2(lost / plugin.most_unseen(r))
    slopes = [logarithms, np.where(common, -ratio / LN2, 0.0)]
    if p.exact and r.exact:
        return plugin.exact_estimate(max(0.0, value), [p, r], slopes)
    curvatures = [np.where(common, 1 / LN2, 0.0), -slopes[1]]
    value, half = _smoothly(value, [p, r], slopes, curvatures, np.where(common, -np.sqrt(ratio) / LN2, 0.0))
    missed = plugin.missed_entropy(p)
    low = max(0.0, value - half - BITS_PER_UNSEEN * plugin.seen_once(p) - missed)
    high = _upper_end(value, half) + missed * max(1.0, -math.log2(r.probability[r.probability > 0].min()))
    if lost:
        method = f"lower bound: {lost:.0%} of the posterior lies on values unseen among samples of the prior, {method}"
        high = math.inf
    elif not p.exact and plugin.undersampled(p):
        method, low = f"upper bound: many values of the posterior were seen only once, {method}", 0.0
    return _clipped(value, low, high, "bit", method)


def _discrete_js(p: Shares, r: Shares) -> Estimate:
    probabilities = [p.probability, r.probability]
    middle = (p.probability + r.probability) / 2
    ratios = [np.divide(some, middle, out=np.zeros_like(some), where=middle > 0) for some in probabilities]
    slopes = [np.log2(ratio, out=np.zeros_like(ratio), where=ratio > 0) / 2 for ratio in ratios]
    value = float(sum(some @ slope for some, slope in zip(probabilities, slopes, strict=True)))
    if p.exact and r.exact:
        return plugin.exact_estimate(min(1.0, max(0.0, value)), [p, r], slopes)
    curvatures = [np.where(ratio > 0, (1 - ratio / 2) / (2 * LN2), 0.0) for ratio in ratios]
    twist = -np.sqrt(ratios[0] * ratios[1]) / (4 * LN2)
    value, half = _smoothly(value, [p, r], slopes, curvatures, twist)
    half += plugin.missed_entropy(p) + plugin.missed_entropy(r)
    # Values that were seen on one side only by chance look like a difference.
    method, low = of_both(p.method, r.method), max(0.0, value - half - plugin.seen_once(p) - plugin.seen_once(r))
    if any(not shares.exact and plugin.undersampled(shares) for shares in (p, r)):
        method, low = f"upper bound: many values were seen only once, {method}", 0.0
    return _clipped(min(1.0, value), low, min(1.0, _upper_end(value, half)), "bit", method)


def _discrete_tv(p: Shares, r: Shares) -> Estimate:
    if p.exact and r.exact:
        value = min(1.0, float(np.abs(p.probability - r.probability).sum()) / 2)
        return plugin.exact_estimate(value, [p, r], _larger([p.probability, r.probability]), "")
    choice, method = plugin.best_choice([p, r], _larger), of_both(p.method, r.method)
    half = student(min(p.samples, r.samples) - 1) * choice.error + plugin.rarest_missed(p) + plugin.rarest_missed(r)
    low, high = max(0.0, choice.judged - half), min(1.0, choice.chosen + half)
    return _clipped(min(1.0, choice.value), low, high, "", method)


def _larger(probabilities: Sequence[Array]) -> Sequence[Array]:
    """Return the set on which the first belief has more probability than the second, once for and once against."""
    chosen = (probabilities[0] > probabilities[1]).astype(float)
    return chosen, -chosen


def _smoothly(
    value: float, beliefs: Sequence[Shares], slopes: Sequence[Array], curvatures: Sequence[Array], twist: Array
) -> tuple[float, float]:
    """Return a smooth function of two beliefs without its bias, and the half-width of its interval."""
    dependences = [
        plugin.Dependence(*described)
        for described in zip(beliefs, slopes, curvatures, strict=True)
        if not described[0].exact
    ]
    samples = min(shares.samples for shares in beliefs)
    half = student(samples - 1) * math.sqrt(plugin.variance(dependences, twist))
    return value - sum(plugin.bias(dependence) for dependence in dependences), half


def _upper_end(value: float, half: float) -> float:
    """Return the upper end of an interval around a divergence.

    Near zero it is the square of something that varies evenly, so the end is taken on the root, within limits.
    """
    value = max(0.0, value)
    return value + half + half**2 / (4 * max(value, half / 4)) if half > 0 else value


def _compared(
    posterior: Belief,
    prior: Belief,
    name: str,
    of_curves: Callable[[Curve, Curve], Estimate],
    of_shares: Callable[[Shares, Shares], Estimate],
) -> Estimate:
    """Compare exact curves, discrete beliefs by their values, others by bins, in which some of the change is lost."""
    curves = _curves(posterior, prior, name)
    if curves is not None:
        return of_curves(*curves)
    if posterior.kind is Kind.DISCRETE and prior.kind is Kind.DISCRETE:
        return of_shares(*aligned([shares_of(posterior), shares_of(prior)]))
    shares, bins = binned(posterior, prior, name)
    estimate = of_shares(*shares)
    return replace(estimate, high=1.0, method=f"lower bound: in {bins} bins, {estimate.method}", exact=False)


def _size(*beliefs: Belief) -> float:
    """Return a unit in which the squares of all numbers can be had."""
    sizes = []
    for belief in beliefs:
        numbers = checked(belief, "cohens_d").batch.numbers()
        if numbers is None or not np.all(np.isfinite(numbers)):
            raise ArgumentError("cohens_d: only beliefs about single finite numbers have means that can be compared")
        sizes.append(float(np.abs(numbers.astype(float)).max()))
    return max(sizes) or 1.0


def _moments(belief: Belief, unit: float) -> tuple[float, float]:
    """Return the mean and the standard deviation, in a unit."""
    numbers = belief.batch.numbers()
    if belief.curve is not None or numbers is None:
        return float(belief.mean()) / unit, float(belief.std()) / unit
    scaled, samples = numbers / unit, belief.effective_samples
    mean = float(np.average(scaled, weights=belief.weights))
    spread = float(np.average((scaled - mean) ** 2, weights=belief.weights))
    return mean, math.sqrt(spread * (samples / (samples - 1) if 2 <= samples < math.inf else 1.0))


def _influence(belief: Belief, unit: float, mean: float, std: float, pooled: float, value: float) -> float:
    """Return the variance that one belief's samples bring into Cohen's d."""
    numbers = belief.batch.numbers()
    if belief.exact or numbers is None:
        return 0.0
    standard = (numbers / unit - mean) / pooled
    squares = (standard - value / 4 * (standard**2 - (std / pooled) ** 2)) ** 2
    if belief.weights is None:
        return float(squares.mean() / len(numbers)) * belief.inflation
    weights = belief.weights**2 if belief.squares is None else belief.squares
    return float(weights @ squares) * belief.inflation


def _clipped(value: float, low: float, high: float, unit: str, method: str) -> Estimate:
    value = max(0.0, value)
    return Estimate(value, min(low, value), max(high, value), unit, method)


def _infinite(reason: str, exact: bool = False) -> Estimate:
    return Estimate(math.inf, math.inf, math.inf, "bit", f"exact: {reason}" if exact else reason, exact)
