"""Mutual information and conditional entropy: what the output tells about the secret, averaged over outputs."""

import math
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from privug.arguments import kinds_checked, shown
from privug.digits import how_many, number_text
from privug.errors import ArgumentError, TooFewSamples
from privug.estimate import Estimate
from privug.inference.belief import Belief
from privug.inference.joint import Joint
from privug.leakage.black_box import one_by_one
from privug.leakage.entropy import entropy
from privug.leakage.finite import Pairs, alike_pairs, pairs_of, shares_of
from privug.leakage.neighbours import LABEL_DRIFT, finest, labelled_information, point_information, settled
from privug.leakage.plugin import (
    PluginEstimate,
    counted_conditional_entropy,
    counted_information,
    exact_conditional_entropy,
    exact_information,
    information_by_chance,
    sides_seen_once,
    sparse_information,
)
from privug.leakage.ranges import Of, Row, information_range, measure, rest_range
from privug.leakage.sides import Side, continuous_side, is_discrete, is_singular, is_smooth, is_tied, side_of, thinned
from privug.model.node import Array, Kind

FEWEST = 10  # samples below which nothing is said
FEWEST_SMOOTH = 64  # samples from which a table of numbers may be seen as smooth
MOST_SINGLE = 0.5  # of the samples may hold a value that no other has
BLIND = 0.7  # bits below the most that neighbours can show, from where there may be any more
DETERMINED = "the output determines the secret without noise, or the other way round"
SOMETIMES = "with some probability the output gives the secret away to the last digit"


def _told(estimate: Estimate, prior: Belief) -> str:
    if estimate.value == float("inf"):
        return f"The output tells the secret to any precision: {estimate.method}."
    if estimate.high <= 1e-12:
        return "The output tells nothing about the secret."
    return f"On average an output tells {how_many(number_text(estimate.value), 'bit')} about the secret."


def _left(estimate: Estimate, prior: Belief) -> str:
    if prior.kind is Kind.DISCRETE:
        left = number_text(estimate.value)
        are = "is" if left == "1" else "are"
        return f"After seeing an output, some {how_many(left, 'such question')} {are} left on average."
    return "After seeing an output, on the same scale and on average."


@kinds_checked
@measure(Of.JOINT, information_range, Row(30, "", _told), difference=True)
def mutual_information(joint: Joint, k: int = 3) -> Estimate:
    """Mutual information of secret and output: how many bits about the secret the output tells on average.

    I = sum p(s, o) log2(p(s, o) / (p(s) p(o))), from 0 to the smaller entropy; infinite if continuous quantities
    determine each other, be it only now and then, as a median is sometimes the secret itself. Exact joints are
    summed. On samples the estimator follows from the two sides: a corrected plug-in for discrete ones
    (Chatzikokolakis, Chothia and Guha, 2010), Kraskov, Stögbauer and Grassberger (2004) for continuous ones, Ross
    (2014) for one of each, Gao et al. (2017) for atoms and densities at once. Discrete numbers of too many values for
    a table are made continuous by noise within their steps, which changes nothing. Estimates from neighbours err
    towards zero (safer than the truth) where the relation is finer than the distances between samples, those from
    sparse tables away from zero; the interval allows for both. `k` is the least number of neighbours.

    >>> print(mutual_information(Joint.from_channel([0.5, 0.5], [[1, 0], [0, 1]])))
    1 bit (exact)
    >>> rng = np.random.default_rng(1)
    >>> secret, noise = rng.normal(size=(2, 5000))
    >>> 0.5 in mutual_information(Joint.from_samples(secret, secret + noise))
    True
    """
    _check(joint, k, "mutual_information")
    if joint.information is not None:
        return joint.information
    if joint.channel is not None:
        return _exact(joint, joint.channel.mutual_information(), np.zeros(1))
    if joint.exact:
        return _exact(joint, *exact_information(alike_pairs(joint)))
    sampled = _sampled(joint)
    if sampled.discrete:
        return _of_table(sampled, k)
    if is_singular(sampled.secret, sampled.output):
        return Estimate(math.inf, math.inf, math.inf, "bit", f"{DETERMINED}; {sampled.method}")
    if is_tied(sampled.secret, sampled.output):
        return Estimate(math.inf, math.inf, math.inf, "bit", f"{SOMETIMES}; {sampled.method}")
    return _capped(_by_neighbours(sampled, k), sampled)


@kinds_checked
@measure(Of.JOINT, rest_range, Row(42, "after", _left))
def conditional_entropy(joint: Joint, k: int = 3) -> Estimate:
    """Entropy of the secret given the output: how uncertain the attacker still is on average.

    H(S | O) = H(S) - I(S; O), in bits, from 0 to the entropy of the secret; for a continuous secret the differential
    one, h(S) - I(S; O), which may be negative, or minus infinite if the output determines the secret. Estimated as
    `mutual_information` is, with errors in the other direction: too high (safer than the truth) where the relation is
    finer than the distances between samples.

    >>> print(conditional_entropy(Joint.from_channel([0.5, 0.5], [[0.5, 0.5], [0, 1]])))
    0.689 bit (exact)
    """
    _check(joint, k, "conditional_entropy")
    if joint.exact or joint.information is not None:
        return _exact_rest(joint, k)
    sampled = _sampled(joint)
    if sampled.discrete:
        return _rest_of_table(sampled, k)
    secret = replace(joint.secret, spread=sampled.secret.kind)
    _refuse_mixed(secret.kind)
    before = entropy(_as_known(secret, joint.prior))
    return _difference(before, mutual_information(joint, k), positive=secret.kind is Kind.DISCRETE)


def _as_known(secret: Belief, prior: Belief | None) -> Belief:
    """Return the prior in the place of samples of it, if it is known to tell its own entropy."""
    if prior is None or not prior.exact or prior.kind is not secret.kind:
        return secret
    return prior if prior.kind is Kind.DISCRETE or prior.curve is not None else secret


def _exact_rest(joint: Joint, k: int) -> Estimate:
    _refuse_mixed(joint.secret.kind)
    if joint.secret.kind is Kind.CONTINUOUS or not joint.exact:
        positive = joint.secret.kind is Kind.DISCRETE
        return _difference(entropy(joint.secret), mutual_information(joint, k), positive=positive)
    if joint.channel is not None:
        summary = joint.channel.summary
        return _exact(joint, max(0.0, summary.joint_entropy - summary.output_entropy), np.zeros(1))
    return _exact(joint, *exact_conditional_entropy(alike_pairs(joint)))


def _refuse_mixed(kind: Kind) -> None:
    if kind is Kind.MIXED:
        raise ArgumentError(
            "conditional_entropy: the secret has atoms and a density, so it has no finite entropy of either kind; ask "
            "for mutual_information"
        )


@dataclass(frozen=True)
class _Sampled:
    """A sampled joint, and its sides in samples that count equally; a table of pairs may do without the latter."""

    joint: Joint
    beliefs: tuple[Belief, Belief]

    @cached_property
    def discrete(self) -> bool:
        return all(is_discrete(belief) for belief in self.beliefs)

    @cached_property
    def secret(self) -> Side:
        return side_of(self.beliefs[0])

    @cached_property
    def output(self) -> Side:
        return side_of(self.beliefs[1])

    @property
    def samples(self) -> float:
        counted = self.joint.secret.squares is not None
        return self.joint.effective_samples if counted else len(self.beliefs[0].batch)

    @property
    def method(self) -> str:
        if self.joint.weights is None or self.joint.secret.squares is not None:
            return self.joint.secret.method
        return f"n={self.samples} thinned from {how_many(len(self.joint.secret.batch), 'weighted sample')}"


def _sampled(joint: Joint) -> _Sampled:
    if joint.effective_samples < FEWEST:
        raise TooFewSamples(
            f"{joint.effective_samples:.3g} effective samples say nothing about information; draw at least {FEWEST}"
        )
    if joint.weights is None or joint.secret.squares is not None:
        plain = one_by_one(joint)
        return _Sampled(joint, (plain.secret, plain.output))
    kept = thinned(joint.weights)
    secret, output = (replace(side, batch=side.batch.take(kept), weights=None) for side in (joint.secret, joint.output))
    return _Sampled(joint, (secret, output))


def _of_table(sampled: _Sampled, k: int) -> Estimate:
    pairs = pairs_of(sampled.joint)
    counted = counted_information(pairs)
    if counted.sparse or max(sides_seen_once(pairs)) > MOST_SINGLE:
        smooth = _smoothed(sampled, k)
        if smooth is not None:
            return _capped(smooth, sampled)
        _refuse_single(pairs)
    return _capped(_below_chance(_described(counted, pairs), sampled), sampled)


def _rest_of_table(sampled: _Sampled, k: int) -> Estimate:
    pairs = pairs_of(sampled.joint)
    counted = counted_conditional_entropy(pairs)
    whole = entropy(sampled.joint.secret)
    if counted.sparse or _small_for(sampled):
        return _difference(whole, _of_table(sampled, k), positive=True)
    return _below(_described(counted, pairs), [whole])


def _small_for(sampled: _Sampled) -> bool:
    """Say whether the samples are few for the table of all pairs."""
    return sampled.samples < 8 * math.prod(len(shares_of(belief)) for belief in sampled.beliefs)


def _below_chance(estimate: Estimate, sampled: _Sampled) -> Estimate:
    """Where samples are few and shuffled ones may show as much information, the interval begins at zero."""
    if not _small_for(sampled):
        return estimate
    secret, output = sampled.secret.codes, sampled.output.codes
    shown = float(
        sparse_information((secret * sampled.output.levels + output)[np.newaxis], *map(np.bincount, (secret, output)))[
            0
        ]
    )
    mean, limit = information_by_chance(secret, output)
    if shown > limit:
        return estimate
    return replace(estimate, value=min(estimate.high, max(0.0, shown - mean)), low=0.0)


def _smoothed(sampled: _Sampled, k: int) -> Estimate | None:
    """Return the information of a sparse table of numbers seen as steps of continuous ones, unless they jump."""
    rng = np.random.default_rng(0)
    sides = [continuous_side(side, k, rng, table=True) for side in (sampled.secret, sampled.output)]
    few = sampled.samples < max(FEWEST_SMOOTH, _needed(k))
    if few or sides[0] is None or sides[1] is None or sides[0].kind is sides[1].kind is Kind.DISCRETE:
        return None
    kept = _with_neighbours(sides[0], sides[1])
    estimate, terms = _by_distances(sides[0].take(kept), sides[1].take(kept), k, sampled)
    if not is_smooth(sampled.secret.take(kept), sampled.output.take(kept), terms):
        return None
    return _without_some(estimate, len(kept), sampled)


def _by_neighbours(sampled: _Sampled, k: int) -> Estimate:
    rng = np.random.default_rng(0)
    sides = [s if s.kind is not Kind.DISCRETE else continuous_side(s, k, rng) for s in (sampled.secret, sampled.output)]
    if sampled.samples < _needed(k):
        raise TooFewSamples(
            f"mutual_information: k={k} needs {how_many(_needed(k), 'sample')}, but there are {sampled.samples}"
        )
    if sides[0] is None or sides[1] is None:
        raise TooFewSamples(
            f"mutual_information: a tenth of the samples or more hold a value of the "
            f"{'output' if sides[0] else 'secret'} that at most {k} have; group its values, or draw more samples"
        )
    kept = _with_neighbours(sides[0], sides[1])
    estimate, _ = _by_distances(sides[0].take(kept), sides[1].take(kept), k, sampled)
    return _without_some(estimate, len(kept), sampled)


def _needed(k: int) -> int:
    return max(FEWEST, 4 * k + 4)


def _with_neighbours(secret: Side, output: Side) -> Array:
    """Return the samples without those of a label that no other sample has: it has no neighbours."""
    for side in (secret, output):
        if side.kind is Kind.DISCRETE:
            return np.flatnonzero(np.bincount(side.codes)[side.codes] > 1)
    return np.arange(len(secret.codes))


def _without_some(estimate: Estimate, kept: int, sampled: _Sampled) -> Estimate:
    """Allow for samples that were left out: they may hold nothing, or all that samples can show."""
    lost = 1 - kept / sampled.samples
    return replace(estimate, low=estimate.low * (1 - lost), high=estimate.high + lost * math.log2(sampled.samples))


def _by_distances(secret: Side, output: Side, k: int, sampled: _Sampled) -> tuple[Estimate, Array]:
    """Return the estimate by neighbours, and each sample's information."""
    kinds, samples = {secret.kind, output.kind}, len(secret.codes)
    if kinds == {Kind.CONTINUOUS, Kind.DISCRETE}:
        label, other = (secret, output) if secret.kind is Kind.DISCRETE else (output, secret)
        estimator = partial(labelled_information, label.codes, other.points)
        found = settled(estimator, k, samples, dimension=other.points.shape[1], more=1, noise=LABEL_DRIFT)
        # Surroundings that hold a good part of a label's samples reach too far: up to a bit times that part, measured.
        found, name = replace(found, low=found.low - k * label.levels / samples), "Ross"
    else:
        dimension = secret.points.shape[1] + output.points.shape[1]
        found = settled(partial(point_information, secret.points, output.points), k, samples, dimension=dimension)
        name = "KSG" if kinds == {Kind.CONTINUOUS} else "Gao"
        if Kind.DISCRETE not in kinds and float(found.terms.mean()) > finest(found.k, samples) - BLIND:
            found = replace(found, high=math.inf)
    if secret.dithered or output.dithered:
        name = f"dithered {name}"
    # A value below zero is off by that much at least.
    low, value, high = max(0.0, found.low), max(0.0, found.value), max(found.high, abs(min(0.0, found.value)))
    return Estimate(value, low, high, "bit", f"{name} k={found.k}, {sampled.method}"), found.terms


def _described(counted: PluginEstimate, pairs: Pairs) -> Estimate:
    few = (
        f"{how_many(len(pairs.probability), 'different pair')}: too few samples for the table, "
        if counted.sparse
        else ""
    )
    return Estimate(counted.value, counted.low, counted.high, "bit", f"plug-in, {few}{pairs.method}")


def _refuse_single(pairs: Pairs) -> None:
    for name, share in zip(("secret", "output"), sides_seen_once(pairs), strict=True):
        if share > MOST_SINGLE:
            raise TooFewSamples(
                f"{share:.0%} of the samples hold a value of the {name} that no other sample has: a table of such "
                "values shows information where there may be none; group or round the values, or draw more samples"
            )


def _capped(estimate: Estimate, sampled: _Sampled) -> Estimate:
    """Information is at most the entropy of either side."""
    sides = zip((sampled.joint.secret, sampled.joint.output), sampled.beliefs, strict=True)
    discrete = [replace(whole, spread=Kind.DISCRETE) for whole, belief in sides if is_discrete(belief)]
    return _below(estimate, [entropy(side) for side in discrete])


def _below(estimate: Estimate, limits: list[Estimate]) -> Estimate:
    value = min([estimate.value, *(limit.value if math.isfinite(limit.high) else math.inf for limit in limits)])
    high = min([estimate.high, *(limit.high for limit in limits)])
    return replace(estimate, value=value, low=min(estimate.low, value), high=max(high, value))


def _difference(whole: Estimate, told: Estimate, *, positive: bool) -> Estimate:
    """Return what is left of an entropy; independent errors add in squares."""
    if math.isinf(told.value) or math.isinf(whole.value):
        return Estimate(-math.inf, -math.inf, -math.inf, "bit", told.method, exact=told.exact)
    value = whole.value - told.value
    below = math.hypot(whole.value - whole.low, told.high - told.value)
    above = math.hypot(whole.high - whole.value, told.value - told.low)
    floor = 0.0 if positive else -math.inf
    ends = [max(floor, end) for end in (value - below, value, value + above)]
    method = told.method if positive else f"differential entropy, {told.method}"
    if whole.method.startswith("lower bound"):
        method = f"lower bound, as many secrets were seen once; {method}"
    return Estimate(ends[1], ends[0], ends[2], "bit", method, exact=whole.exact and told.exact)


def _exact(joint: Joint, value: float, contributions: Array) -> Estimate:
    """Return an exact sum, with what a known error of the probabilities can change."""
    off = joint.secret.error * float(np.ptp(contributions))
    return Estimate(value, max(0.0, value - off), value + off, "bit", joint.secret.method, exact=True)


def _check(joint: Joint | Belief, k: int, name: str) -> None:
    if isinstance(joint, Belief):
        raise ArgumentError(
            f"{name} averages over outputs and needs a Joint such as result.joint; of one belief ask for entropy, of a "
            "prior and a posterior for entropy_drop or kl_divergence"
        )
    if not isinstance(joint, Joint):
        raise ArgumentError(f"{name} needs a Joint such as result.joint, not {shown(joint)}")
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise ArgumentError(f"{name}: k must be a positive whole number of neighbours, not {k!r}")
