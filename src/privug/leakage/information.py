"""Mutual information and conditional entropy: what the output tells about the secret, averaged over outputs.

Information does not change when a quantity is relabelled. So numbers become normal scores: the place of each among all
as a quantile of the normal distribution, which no unit, outlier or infinite value disturbs. A discrete quantity with
many ordered values becomes continuous by a uniform random number within its step (information does not change: the
step tells the value). Other discrete values stand farther apart than any two numbers.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import product
from typing import Any

import numpy as np
import scipy

from privug import settings
from privug.arguments import kinds_checked
from privug.digits import how_many, number_text
from privug.errors import ArgumentError, TooFewSamples
from privug.estimate import Estimate
from privug.inference.belief import Belief
from privug.inference.joint import Joint
from privug.leakage import finite, neighbours
from privug.leakage.black_box import one_by_one
from privug.leakage.entropy import entropy
from privug.leakage.finite import Pairs, alike_pairs, check_joint, distinct_values, pairs_of, shares_of
from privug.leakage.plugin import difference
from privug.leakage.register import Of, Placement, information_range, measure, rest_range
from privug.model.batch import Batch, Column
from privug.model.node import Array, Kind

APART = 1000.0  # normal scores of any number of samples lie within 40 of zero
FEWEST_STEPS = 16  # ordered values from which a quantity may be seen as a rough continuous one


@dataclass(frozen=True)
class Side:
    """One side: a code for each sample's value if discrete, else its coordinates; a row for each sample.

    `raw` holds the coordinates that vary continuously, as they were but for a factor. `steps` are the values of a
    discrete side that is a single number.
    """

    kind: Kind
    codes: Array
    points: Array
    raw: Array
    steps: Array | None = None
    dithered: bool = False

    @property
    def levels(self) -> int:
        """How many distinct values there are."""
        return int(self.codes.max()) + 1

    def take(self, which: Array) -> "Side":
        """Return the chosen samples."""
        codes = np.unique(self.codes[which], return_inverse=True)[1].reshape(-1)
        steps = None if self.steps is None else self.steps[which]
        return replace(self, codes=codes, points=self.points[which], raw=self.raw[which], steps=steps)

    def as_continuous(self, rng: np.random.Generator) -> "Side":
        """Return a discrete side of ordered values as a continuous one."""
        assert self.steps is not None
        ranks = np.unique(self.steps, return_inverse=True)[1].reshape(-1)
        points = normal_scores(ranks + rng.random(len(ranks)))
        return replace(self, kind=Kind.CONTINUOUS, points=points[:, np.newaxis], dithered=True)


def is_discrete(belief: Belief) -> bool:
    """Say whether all parts of a quantity are discrete."""
    return set(_kinds(belief, _all_parts(belief))) <= {Kind.DISCRETE}


def _all_parts(belief: Belief) -> list[tuple[Array, bool]]:
    return [part for column in belief.batch.columns for part in _parts(column, len(belief.batch))]


def _kinds(belief: Belief, parts: list[tuple[Array, bool]]) -> list[Kind]:
    spread = None if belief.spread is Kind.MIXED else belief.spread
    batch = belief.batch if belief.batch.numbers() is not None else None
    return [Kind.DISCRETE if labels else spread or _kind(x, batch or Batch.of_values(x)) for x, labels in parts]


def side_of(belief: Belief) -> Side:
    """Describe one side of a sampled joint."""
    parts = _all_parts(belief)
    kinds = _kinds(belief, parts)
    if set(kinds) <= {Kind.DISCRETE}:
        numbers = belief.batch.numbers()
        codes = distinct_values(belief.batch)[0]
        return Side(Kind.DISCRETE, codes, _scattered(codes)[:, np.newaxis], np.zeros((len(codes), 0)), numbers)
    kind = Kind.CONTINUOUS if set(kinds) == {Kind.CONTINUOUS} else Kind.MIXED
    points = [_scattered(x) if labels else normal_scores(x) for x, labels in parts]
    raw = [x for (x, _), kind in zip(parts, kinds, strict=True) if kind is not Kind.DISCRETE]
    codes = np.arange(len(belief.batch))
    return Side(kind, codes, np.column_stack(points), np.column_stack([_of_unit_size(x) for x in raw]))


def _parts(column: Column, samples: int) -> list[tuple[Array, bool]]:
    """Return the single quantities that a column is made of, and whether each is a label rather than a number."""
    levels = column.levels
    if levels and column.array.ndim == 1 and all(isinstance(x, tuple) and len(x) == len(levels[0]) for x in levels):
        return [_part(values, column.array) for values in zip(*levels, strict=True)]
    if levels is not None or column.array.dtype.kind not in "bif":
        return [(column.distinct()[0], True)]
    return [(part, False) for part in column.array.reshape(samples, -1).T]


def _part(values: tuple[Any, ...], codes: Array) -> tuple[Array, bool]:
    """Return one place of tuples, of which codes name one for each sample."""
    if all(isinstance(value, int | float) for value in values):
        return np.array(values)[codes], False
    places: dict[Any, int] = {}
    return np.array([places.setdefault(value, len(places)) for value in values])[codes], True


def _kind(values: Array, batch: Batch) -> Kind:
    """Say how numbers are spread: values that occur once, and hardly any that occur twice, come from a density."""
    if values.dtype.kind != "f" or batch.distinct() < max(2, 0.1 * len(values)):
        return Kind.DISCRETE
    counts = batch.counts()
    if len(counts) == len(values):
        return Kind.CONTINUOUS
    once, twice = int((counts == 1).sum()), int((counts == 2).sum())
    return Kind.MIXED if once >= 0.1 * len(values) and twice <= 0.02 * once else Kind.DISCRETE


def _scattered(codes: Array) -> Array:
    return APART * codes.astype(float)


def _of_unit_size(values: Array) -> Array:
    """Return numbers divided by a power of two, so that no difference overflows."""
    numbers = values.astype(float)
    largest = np.abs(numbers[np.isfinite(numbers)]).max(initial=1.0)
    return np.asarray(np.ldexp(numbers, -int(np.frexp(largest)[1])))


def normal_scores(values: Array) -> Array:
    """Return the normal quantile of each value's place among all; equal values share the middle of their places."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    middle = (np.cumsum(counts) - counts / 2) / len(values)
    return np.asarray(scipy.special.ndtri(middle)[inverse.reshape(-1)])


def thinned(weights: Array) -> Array:
    """Return positions of samples that count equally and are all different, as many as the weights allow.

    Each sample is kept with a probability proportional to its weight, up to one. What the heaviest then lack stays
    below a twentieth of the random error; repeating them instead would tie points and feign dependence.
    """
    size = 1 / float(weights.max())
    most = 1 / float((weights**2).sum())
    while 2 * size <= most and float(np.maximum(0, weights - 0.5 / size).sum()) <= 0.05 / (2 * size) ** 0.5:
        size *= 2
    return np.flatnonzero(np.random.default_rng(0).random(len(weights)) < size * weights)


FEWEST_SAMPLES = 64  # samples below which nothing is said
LOOKED_AT = 400
SHARE = 0.1  # of the samples that must lie on the relation
ROUNDING = 1e-7
CLOSER = 0.6  # the angle in all samples, relative to that in an eighth of them: an eighth on a smooth curve


def is_singular(secret: Side, output: Side) -> bool:
    """Say whether part of the joint lies on a smooth relation of both sides, so that their information is infinite."""
    if not (secret.raw.size and output.raw.size):
        return False
    loose = np.flatnonzero(np.logical_and.reduce([_single(part) for side in (secret, output) for part in side.raw.T]))
    if len(loose) < max(FEWEST_SAMPLES, SHARE * len(secret.raw)):
        return False
    order = np.random.default_rng(0).permutation(loose)
    some = order[: len(order) // 8 if len(order) >= 8 * FEWEST_SAMPLES else len(order) // 4]
    fine, coarse = (float(np.quantile(_sines(secret, output, rows), SHARE)) for rows in (order, some))
    return fine < ROUNDING or (fine < 0.2 and fine < CLOSER * coarse)


def _sines(secret: Side, output: Side, rows: Array) -> Array:
    """Return the sine of the smallest angle between the spans of both sides among the neighbours of some rows."""
    points = np.hstack((secret.points[rows], output.points[rows]))
    wanted = 2 * (secret.raw.shape[1] + output.raw.shape[1]) + 2
    tree = scipy.spatial.cKDTree(points)
    around = tree.query(points[:LOOKED_AT], wanted + 1, p=np.inf, workers=settings.current().workers)[1]
    around = rows[np.asarray(around)]
    left, right = (_span(side.raw[around[:, 1:]] - side.raw[around[:, :1]]) for side in (secret, output))
    rest = right - left @ (np.swapaxes(left, 1, 2) @ right)
    return np.asarray(np.linalg.svd(rest, compute_uv=False).min(axis=1))


def _span(steps: Array) -> Array:
    """Return an orthonormal basis of the columns of each matrix; columns are scaled first, so that units are equal."""
    largest = np.abs(steps).max(axis=1, keepdims=True)
    return np.asarray(np.linalg.svd(steps / np.where(largest > 0, largest, 1), full_matrices=False)[0])


REMAINDERS = (2, 3, 5, 7)
PLENTY = 32  # samples of a value for each neighbour, from which its label serves better than its place among others
MOST_SHARE = 0.9  # of the samples
DOUBT = 1e-6  # probability of refusing independent remainders


def continuous_side(side: Side, k: int, rng: np.random.Generator, *, table: bool = False) -> Side | None:
    """Return a discrete side as its neighbours see it: continuous, or labels that each have enough samples.

    In a sparse table every ordered side is made continuous, else only one whose values have too few samples. None
    means that it is neither ordered nor known well enough.
    """
    ordered = side.steps is not None and np.issubdtype(side.steps.dtype, np.number) and side.levels >= FEWEST_STEPS
    counts = np.bincount(side.codes)[side.codes]
    if ordered and (table or float((counts > PLENTY * k).mean()) < MOST_SHARE):
        return side.as_continuous(rng)
    return side if float((counts > k).mean()) >= MOST_SHARE else None


def is_smooth(secret: Side, output: Side, terms: Array) -> bool:
    """Say whether equal pairs are as rare as the information at each sample says, and remainders independent.

    Two samples fall on the pair of sample i with a probability of p(s) p(o) 2^i, where i is its information.
    """
    samples = len(terms)
    pairs = np.unique(secret.codes * output.levels + output.codes, return_counts=True)[1]
    repeated = float((pairs * (pairs - 1)).sum()) / 2
    others = [np.bincount(side.codes)[side.codes] - 1.0 for side in (secret, output)]
    expected = float((others[0] * others[1] * np.exp2(terms)).sum()) / (samples - 1) / 2
    if repeated > 1.25 * expected + 3 * math.sqrt(expected) + 2:
        return False
    lattices = [_lattice(side) for side in (secret, output)]
    return all(_independent(lattices[0] % m, lattices[1] % m, m) for m in REMAINDERS)


def _lattice(side: Side) -> Array:
    """Return each value as a multiple of the smallest difference between two; zeros if it is none."""
    steps, nothing = side.steps, np.zeros(len(side.codes), np.int64)
    if steps is None:
        return nothing
    with np.errstate(all="ignore"):
        # Differences of whole numbers are right modulo 2^64, and so as they are; as floats they might all be zero.
        numbers = steps.astype(np.uint64 if steps.dtype.kind in "iu" else float)
        offsets = (numbers - numbers[steps.argmin()]).astype(float)
        gaps = np.diff(np.unique(offsets))
        if not len(gaps):
            return nothing
        multiples = offsets / gaps.min()
        whole = np.round(multiples)
        fits = np.all(np.isfinite(multiples)) and np.all(np.abs(multiples - whole) < 1e-3) and whole.max() < 2**53
    return whole.astype(np.int64) if fits else nothing


def _independent(left: Array, right: Array, base: int) -> bool:
    """Say whether the remainders show no dependence, by the statistic of the likelihood ratio."""
    table = np.bincount(left * base + right, minlength=base**2).reshape(base, base).astype(float)
    table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    content = scipy.special.xlogy
    twice = 2 * float(content(table, table).sum() + content(table.sum(), table.sum()))
    twice -= 2 * float(content(table.sum(axis=0), table.sum(axis=0)).sum())
    twice -= 2 * float(content(table.sum(axis=1), table.sum(axis=1)).sum())
    freedom = (table.shape[0] - 1) * (table.shape[1] - 1)
    return freedom == 0 or float(scipy.special.chdtrc(freedom, max(0.0, twice))) > DOUBT


FEWEST_ON_LINE = 5  # samples on one line: of quantities with a density even three would be a miracle
MOST_LOOKED_AT = 20_000  # samples looked at
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
    step = -(-len(secret.raw) // MOST_LOOKED_AT) or 1
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
    if len(x) < FEWEST_ON_LINE:
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
    likely = np.flatnonzero(counts >= FEWEST_ON_LINE)
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
    return spots >= max(FEWEST_ON_LINE, MOSTLY * around)


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
@measure(Of.JOINT, information_range, Placement(30, "", _told), difference=True)
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
        return _exact(joint, *finite.exact_information(alike_pairs(joint)))
    sampled = _sampled(joint)
    if sampled.discrete:
        return _of_table(sampled, k)
    if is_singular(sampled.secret, sampled.output):
        return Estimate(math.inf, math.inf, math.inf, "bit", f"{DETERMINED}; {sampled.method}")
    if is_tied(sampled.secret, sampled.output):
        return Estimate(math.inf, math.inf, math.inf, "bit", f"{SOMETIMES}; {sampled.method}")
    return _capped(_by_neighbours(sampled, k), sampled)


@kinds_checked
@measure(Of.JOINT, rest_range, Placement(42, "after", _left))
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
    return _rest(before, mutual_information(joint, k), positive=secret.kind is Kind.DISCRETE)


def _as_known(secret: Belief, prior: Belief | None) -> Belief:
    """Return the prior in the place of samples of it, if it is known to tell its own entropy."""
    if prior is None or not prior.exact or prior.kind is not secret.kind:
        return secret
    return prior if prior.kind is Kind.DISCRETE or prior.curve is not None else secret


def _exact_rest(joint: Joint, k: int) -> Estimate:
    _refuse_mixed(joint.secret.kind)
    if joint.secret.kind is Kind.CONTINUOUS or not joint.exact:
        positive = joint.secret.kind is Kind.DISCRETE
        return _rest(entropy(joint.secret), mutual_information(joint, k), positive=positive)
    if joint.channel is not None:
        summary = joint.channel.summary
        return _exact(joint, max(0.0, summary.joint_entropy - summary.output_entropy), np.zeros(1))
    return _exact(joint, *finite.exact_conditional_entropy(alike_pairs(joint)))


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
    counted = finite.counted_information(pairs)
    if counted.sparse or max(finite.sides_seen_once(pairs)) > MOST_SINGLE:
        smooth = _smoothed(sampled, k)
        if smooth is not None:
            return _capped(smooth, sampled)
        _refuse_single(pairs)
    return _capped(_below_chance(_described(counted, pairs), sampled), sampled)


def _rest_of_table(sampled: _Sampled, k: int) -> Estimate:
    pairs = pairs_of(sampled.joint)
    counted = finite.counted_conditional_entropy(pairs)
    whole = entropy(sampled.joint.secret)
    if counted.sparse or _small_for(sampled):
        return _rest(whole, _of_table(sampled, k), positive=True)
    return _below(_described(counted, pairs), [whole])


def _small_for(sampled: _Sampled) -> bool:
    """Say whether the samples are few for the table of all pairs."""
    return sampled.samples < 8 * math.prod(len(shares_of(belief)) for belief in sampled.beliefs)


def _below_chance(estimate: Estimate, sampled: _Sampled) -> Estimate:
    """Where samples are few and shuffled ones may show as much information, the interval begins at zero."""
    if not _small_for(sampled):
        return estimate
    secret, output = sampled.secret.codes, sampled.output.codes
    pairs = secret * sampled.output.levels + output
    shown = float(finite.sparse_information(pairs[np.newaxis], *map(np.bincount, (secret, output)))[0])
    mean, limit = finite.information_by_chance(secret, output)
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
        estimator = partial(neighbours.labelled_information, label.codes, other.points)
        found = neighbours.settled(
            estimator, k, samples, dimension=other.points.shape[1], more=1, noise=neighbours.LABEL_DRIFT
        )
        # Surroundings that hold a good part of a label's samples reach too far: up to a bit times that part, measured.
        found, name = replace(found, low=found.low - k * label.levels / samples), "Ross"
    else:
        dimension = secret.points.shape[1] + output.points.shape[1]
        found = neighbours.settled(
            partial(neighbours.point_information, secret.points, output.points), k, samples, dimension=dimension
        )
        name = "KSG" if kinds == {Kind.CONTINUOUS} else "Gao"
        if Kind.DISCRETE not in kinds and float(found.terms.mean()) > neighbours.finest(found.k, samples) - BLIND:
            found = replace(found, high=math.inf)
    if secret.dithered or output.dithered:
        name = f"dithered {name}"
    # A value below zero is off by that much at least.
    low, value, high = max(0.0, found.low), max(0.0, found.value), max(found.high, abs(min(0.0, found.value)))
    return Estimate(value, low, high, "bit", f"{name} k={found.k}, {sampled.method}"), found.terms


def _described(counted: finite.PluginEstimate, pairs: Pairs) -> Estimate:
    few = (
        f"{how_many(len(pairs.probability), 'different pair')}: too few samples for the table, "
        if counted.sparse
        else ""
    )
    return Estimate(counted.value, counted.low, counted.high, "bit", f"plug-in, {few}{pairs.method}")


def _refuse_single(pairs: Pairs) -> None:
    for name, share in zip(("secret", "output"), finite.sides_seen_once(pairs), strict=True):
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


def _rest(whole: Estimate, told: Estimate, *, positive: bool) -> Estimate:
    """Return what is left of an entropy."""
    if math.isinf(told.value) or math.isinf(whole.value):
        return Estimate(-math.inf, -math.inf, -math.inf, "bit", told.method, exact=told.exact)
    method = told.method if positive else f"differential entropy, {told.method}"
    if whole.method.startswith("lower bound"):
        method = f"lower bound, as many secrets were seen once; {method}"
    return replace(difference(whole, told).clipped(0.0 if positive else -math.inf, math.inf), method=method)


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
    check_joint(joint, name)
    neighbours.check_neighbours(k, f"{name}: ")
