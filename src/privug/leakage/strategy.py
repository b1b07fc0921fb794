"""Strategies: what an attacker guesses after each output, and what the guesses are worth."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import scipy

from privug.errors import TooFewSamples
from privug.estimate import CONFIDENCE, Estimate
from privug.inference.belief import NEGLIGIBLE, Belief
from privug.inference.intervals import proportion_estimate, student
from privug.inference.joint import Joint
from privug.leakage.finite import Pairs, alike_pairs, distinct_values, pairs_of
from privug.model.batch import Batch
from privug.model.node import Array, Kind

CELLS = 1 << 20  # most entries of a temporary matrix


class Gain(ABC):
    """What a guess is worth to the attacker, by the secret that it meets."""

    @abstractmethod
    def on(self, joint: Joint) -> "tuple[Joint, Strategy]":
        """Return the joint that guesses are learned on, and the way to learn them."""


class Strategy(Gain):
    """A gain with a way to find the best guess for each output."""

    binary: ClassVar[bool] = False
    """Whether a guess is worth either nothing or one."""
    by_value: ClassVar[bool] = False
    """Whether it matters what the secrets are, so that those that are alike cannot be counted together."""

    @property
    def lowest(self) -> float:
        """The least that a guess can be worth."""
        return 0.0

    @property
    def highest(self) -> float:
        """The most that a guess can be worth."""
        return 1.0

    @property
    def certain(self) -> float:
        """What some guess is worth whatever the secret is."""
        return self.lowest

    @property
    def span(self) -> float:
        """How far apart the most and the least are."""
        return self.highest - self.lowest

    @abstractmethod
    def earned(self, pairs: Pairs, weights: Array) -> Array:
        """Return for each pair what the guesses earn there that are best for these weights of the pairs.

        Pairs without weight must not change the guesses: they may come from samples that the guesses are judged by. Of
        a pair that stands for several secrets it is the average over these.
        """

    def on(self, joint: Joint) -> "tuple[Joint, Strategy]":
        return joint, self


@dataclass(frozen=True)
class Tries(Strategy):
    """One if the secret is among the first guesses."""

    count: int
    binary = True

    def earned(self, pairs: Pairs, weights: Array) -> Array:
        if self.count == 1:
            return np.asarray(first_guesses(pairs, weights) / pairs.each)
        return np.asarray(np.clip(self.count - guessed_before(pairs, weights), 0, pairs.each) / pairs.each)


@dataclass(frozen=True)
class Patience(Strategy):
    """Minus the number of guesses until the secret is found, for a number of possible secrets."""

    secrets: int

    @property
    def lowest(self) -> float:
        return -float(self.secrets)

    @property
    def highest(self) -> float:
        return -1.0

    @property
    def certain(self) -> float:
        return -(self.secrets + 1) / 2

    def earned(self, pairs: Pairs, weights: Array) -> Array:
        return -(guessed_before(pairs, weights) + (pairs.each + 1) / 2)


@dataclass(frozen=True)
class Abstention(Strategy):
    """One for a right guess, minus the penalty for a wrong one, nothing for none."""

    penalty: float

    @property
    def lowest(self) -> float:
        return -self.penalty

    @property
    def certain(self) -> float:
        return 0.0

    def earned(self, pairs: Pairs, weights: Array) -> Array:
        right = first_guesses(pairs, weights) / pairs.each
        overall = np.bincount(pairs.secret, weights, len(pairs.secrets))
        total = np.add.reduceat(weights * pairs.each, pairs.starts)
        best = np.where(total > 0, np.maximum.reduceat(weights, pairs.starts), overall.max())
        total = np.where(total > 0, total, overall.sum())
        # A guess that is worth nothing but for rounding is not made.
        worthwhile = best * (1 + self.penalty) > total * self.penalty * (1 + 1e-12)
        return np.where(worthwhile[pairs.output], right - (1 - right) * self.penalty, 0.0)


@dataclass(frozen=True)
class Worths(Strategy):
    """The worth of each guess (row) against each secret (column) of the joint it is used on."""

    table: Array
    by_value = True

    @property
    def lowest(self) -> float:
        return float(self.table.min())

    @property
    def highest(self) -> float:
        return float(self.table.max())

    @property
    def certain(self) -> float:
        return float(self.table.min(axis=1).max())

    def earned(self, pairs: Pairs, weights: Array) -> Array:
        overall = np.bincount(pairs.secret, weights, len(pairs.secrets))
        best = np.full(len(pairs.outputs), int(np.argmax(self.table @ overall)))
        bounds = np.append(pairs.starts, len(pairs.output))
        joint = scipy.sparse.csc_array((weights, pairs.secret, bounds), shape=(len(overall), len(best)))
        step = max(1, CELLS // len(self.table))
        for start in range(0, len(best), step):
            part = joint[:, start : start + step]
            seen = part.sum(axis=0) > 0
            best[start : start + step][seen] = np.argmax(self.table @ part, axis=0)[seen]
        return np.asarray(self.table[best[pairs.output], pairs.secret])


def first_guesses(pairs: Pairs, weights: Array) -> Array:
    """Say of each pair whether its secret is the best guess for its output, given weights of the pairs.

    Secrets that are equally good for an output are told apart by their weight over all outputs. That weight alone
    decides for an output without any.
    """
    place = _overall_places(pairs, weights)
    best = np.maximum.reduceat(weights, pairs.starts)
    tied = (weights == best[pairs.output]) & (weights > 0)
    foremost = np.minimum.reduceat(np.where(tied, place, len(pairs.secrets)), pairs.starts)
    return np.asarray(np.where(best > 0, foremost, 0)[pairs.output] == place)


def guessed_before(pairs: Pairs, weights: Array) -> Array:
    """Return for each pair how many secrets are guessed before the first of those that it stands for."""
    if pairs.copies is None:
        return guess_ranks(pairs, weights) - 1
    order = np.lexsort((-weights, pairs.output))
    copies = pairs.copies[pairs.secret[order]]
    earlier = np.cumsum(copies) - copies
    before = np.empty(len(order), np.int64)
    before[order] = earlier - earlier[pairs.starts[pairs.output[order]]]
    return before


def guess_ranks(pairs: Pairs, weights: Array) -> Array:
    """Return for each pair at which guess its secret is found: 1 for the best guess for the output, and so on.

    Secrets without weight for an output come last, in the order of their weight over all outputs.
    """
    place = _overall_places(pairs, weights)
    order = np.lexsort((place, -weights, pairs.output))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order)) - pairs.starts[pairs.output[order]] + 1
    unseen = weights <= 0
    if not unseen.any():
        return rank
    # An unseen secret follows the seen ones of its output, and those unseen ones that are more likely overall.
    order = np.lexsort((-place, pairs.output))
    seen: Array = np.cumsum(~unseen[order])
    earlier = (seen - ~unseen[order])[pairs.starts]
    less_likely = np.empty(len(order), np.int64)
    less_likely[order] = seen - earlier[pairs.output[order]]
    rank[unseen] = (place + 1 + less_likely)[unseen]
    return rank


def _overall_places(pairs: Pairs, weights: Array) -> Array:
    """Return for each pair the place of its secret, from 0 on, in the order of the weight over all outputs."""
    overall = np.bincount(pairs.secret, weights, len(pairs.secrets))
    place = np.empty(len(overall), np.int64)
    place[np.argsort(-overall, kind="stable")] = np.arange(len(overall))
    return np.asarray(place[pairs.secret])


FOLDS = 5

# Strategies learned on overlapping samples agree by chance. Where two secrets tie, that multiplies the variance by
# 1 + (FOLDS - 1) 0.45 / sqrt(FOLDS - 2) = 2.04, elsewhere by less, often by 1. With 1.5 the lower end is above the
# truth in 4.7 % of cases for a tie and in 0.8 % for none.
SHARED_LEARNING = 1.5
TAIL = (1 - CONFIDENCE) / 2
TELLING_DIGITS = 1e-9  # an error from which on a number is not called exact

ONE, HELD_OUT, HINDSIGHT, OPTIMISTIC, PRIOR_HELD_OUT, PRIOR_HINDSIGHT = range(6)


@dataclass(frozen=True)
class Trial:
    """What guesses earned, after seeing the output and without seeing it.

    `mean` holds the averages of six quantities: one; what is earned on samples not learned from, in hindsight, and by
    guesses that differ from those without the output wherever that may be better; and the first two without the output.
    `second` holds their second moments under the squared weights of the samples, so that every linear combination has
    its standard error. `unusual` bounds the probability of all outputs but the commonest, without which nothing leaks:
    the output then adds at most that probability to the chance of a guess.
    """

    mean: Array
    second: Array
    samples: float
    method: str
    gain: Strategy
    error: float = 0.0
    unusual: float = 1.0

    @classmethod
    def exactly(cls, after: float, before: float, gain: Strategy, error: float = 0.0) -> "Trial":
        """Make a trial of guesses known to be the best; `error` bounds the error of what they earn."""
        method = "exact" if error <= NEGLIGIBLE else f"exact to {error:.0e}"
        mean = np.array([1.0, after, after, after, before, before])
        return cls(mean, np.zeros((6, 6)), math.inf, method, gain, error)

    @property
    def exact(self) -> bool:
        """Whether the best strategy is known."""
        return math.isinf(self.samples)

    @property
    def after(self) -> float:
        """What guesses earn after the output was seen."""
        return float(self.mean[HELD_OUT])

    @property
    def before(self) -> float:
        """What guesses earn without the output."""
        return float(self.mean[PRIOR_HELD_OUT])

    def vulnerability(self) -> Estimate:
        """Return what the best strategy earns on average."""
        if self.exact:
            return self._known(lambda after, before: after)
        low, high = self._end(HELD_OUT, lower=True), self._end(HINDSIGHT, lower=False)
        return self.estimate(max(self.after, self.before, self.gain.certain), low, high, "lower")

    def difference(self) -> Estimate:
        """Return how much more is earned with the output than without it; never less than nothing."""
        if self.exact:
            return self._known(lambda after, before: max(0.0, after - before))
        low, high = (
            self.mean[a] - self.mean[b] + sign * self.half_width({a: 1.0, b: -1.0}, self.gain.span)
            for a, b, sign in ((HELD_OUT, PRIOR_HINDSIGHT, -1), (HINDSIGHT, PRIOR_HELD_OUT, 1))
        )
        value = self.after - self.before
        return self.estimate(max(0.0, value), max(0.0, low), min(max(0.0, high), self._most), "lower")

    def ratio(self) -> Estimate:
        """Return how many times as much is earned with the output as without it; never less than one."""
        if self.exact:
            return self._known(multiplied)
        low, high = self._scaled(HELD_OUT, PRIOR_HINDSIGHT, -1), self._scaled(HINDSIGHT, PRIOR_HELD_OUT, 1)
        value = self.after / self.before if self.before > 0 else low
        least = self._end(PRIOR_HELD_OUT, lower=True)
        high = min(high, 1 + self._most / least if least > 0 else math.inf)
        return self.estimate(max(1.0, value), max(1.0, low), max(1.0, high), "lower")

    def security(self) -> Estimate:
        """Return which share of the wrong guesses stay wrong once the output is seen."""
        if self.exact:
            return self._known(remaining)
        low, high = self._surviving(HINDSIGHT, PRIOR_HELD_OUT, -1), self._surviving(HELD_OUT, PRIOR_HINDSIGHT, 1)
        wrong = 1 - self._end(PRIOR_HINDSIGHT, lower=False)
        low = max(low, 1 - self._most / wrong if wrong > 0 else 0.0)
        return self.estimate(remaining(self.after, self.before), low, high, "upper")

    @property
    def _most(self) -> float:
        """The most that seeing the output can be worth."""
        return self.gain.span * self.unusual

    def half_width(self, coefficients: dict[int, float], span: float) -> float:
        """Return the half-width of the interval of a linear combination whose values differ by at most `span`.

        It allows for what no sample has shown yet: a share of 3.7 / n is missed by n samples in one of 40 cases. The
        best guesses in truth may vary more than those that are best in hindsight, such as where these ignore the
        output: then the optimistic ones say how much.
        """
        optimistic = {OPTIMISTIC if position == HINDSIGHT else position: c for position, c in coefficients.items()}
        variance = max(self._variance(coefficients), self._variance(optimistic)) * self.samples / (self.samples - 1)
        variance *= SHARED_LEARNING if HELD_OUT in coefficients else 1.0
        return math.hypot(student(self.samples - 1) * math.sqrt(variance), span * math.log(TAIL) / self.samples)

    def estimate(self, value: float, low: float, high: float, bound: str) -> Estimate:
        """Return an estimate that says if it is rather a bound, because the best guesses could not be learned."""
        method = f"held-out guesses, {self.method}"
        if self.mean[HINDSIGHT] - self.half_width({HINDSIGHT: 1.0}, self.gain.span) > self.mean[HELD_OUT]:
            method = f"{bound} bound: too few samples to learn the best guesses, {self.method}"
        low, high = min(low, high), max(low, high)
        return Estimate(min(max(value, low), high), low, high, method=method)

    def _known(self, measure: Callable[[float, float], float]) -> Estimate:
        value = measure(self.after, self.before)
        if self.error <= NEGLIGIBLE:
            return Estimate.exactly(value)
        ends = [measure(self.after + sign * self.error, self.before - sign * self.error) for sign in (-1, 1)]
        exact = self.error < TELLING_DIGITS
        return Estimate(value, min(value, *ends), max(value, *ends), method=self.method, exact=exact)

    def _variance(self, coefficients: dict[int, float]) -> float:
        centred = np.zeros(len(self.mean))
        for position, coefficient in coefficients.items():
            centred[position] = coefficient
        centred[ONE] -= centred @ self.mean
        return max(0.0, float(centred @ self.second @ centred))

    def _end(self, which: int, *, lower: bool) -> float:
        mean = float(self.mean[which])
        if not self.gain.binary:
            half = self.half_width({which: 1.0}, self.gain.span)
            return max(mean - half, self.gain.certain) if lower else min(mean + half, self.gain.highest)
        mean = min(max(mean, 0.0), 1.0)
        variance = self._variance({which: 1.0})
        samples = min(self.samples, mean * (1 - mean) / variance) if variance > 0 else self.samples
        interval = proportion_estimate(mean, samples / (SHARED_LEARNING if lower else 1.0), "")
        return interval.low if lower else interval.high

    def _surviving(self, after: int, before: int, sign: int) -> float:
        wrong, wrong_before = 1 - float(self.mean[after]), 1 - float(self.mean[before])
        if wrong_before <= 0:
            return 0.0 if sign < 0 else 1.0
        share = wrong / wrong_before
        half = self.half_width({after: -1 / wrong_before, before: share / wrong_before}, 1 / wrong_before)
        return min(1.0, max(0.0, share + sign * half))

    def _scaled(self, above: int, below: int, sign: int) -> float:
        """Return an end of the interval of a ratio, found on its logarithm."""
        over, under = float(self.mean[above]), float(self.mean[below])
        if over <= 0 or under <= 0:
            return 1.0 if sign < 0 or over <= 0 else math.inf
        half = self.half_width({above: 1 / over, below: -1 / under}, self.gain.span / min(over, under))
        return over / under * math.exp(min(sign * half, 700.0))


def multiplied(after: float, before: float) -> float:
    """Return how many times the earnings before seeing an output those after it are, if never less."""
    return max(1.0, after / before) if before > 0 else math.inf


def remaining(after: float, before: float) -> float:
    """Return which share of the wrong guesses before seeing an output are wrong after it, if never more."""
    return min(1.0, max(0.0, 1 - after) / (1 - before)) if before < 1 else 1.0


REPEATS = 4
REPEATED_UP_TO = 100_000  # samples
PAIRS_AT_ONCE = 1 << 18  # pairs that are summed at once
NORMAL = 1.96


def try_guesses(joint: Joint, gain: Gain) -> Trial:
    """Learn the best guesses of a joint and see what they earn."""
    joint, strategy = gain.on(_weighing(joint))
    pairs = pairs_of(joint) if strategy.by_value else alike_pairs(joint)
    alone = without_output(pairs)
    if joint.exact:
        after, before = (float((p.total * strategy.earned(p, p.probability)).sum()) for p in (pairs, alone))
        error = max(joint.secret.error, joint.output.error) * strategy.span
        if joint.output.kind is not Kind.DISCRETE:
            error += _kinks(joint, pairs, strategy)
        return Trial.exactly(after, before, strategy, error)
    if pairs.samples < 2 - 1e-9:
        raise TooFewSamples("guesses need samples to be learned from and others to be judged by; one is too few")
    mean, second = _moments(joint, pairs, alone, strategy)
    # The commonest output was chosen among all of them (Bonferroni).
    confidence = 1 - (1 - CONFIDENCE) / len(pairs.outputs)
    usual = proportion_estimate(min(1.0, float(pairs.marginal.max())), pairs.samples, "", confidence).low
    return Trial(mean, second, pairs.samples, pairs.method, strategy, unusual=1 - usual)


def _kinks(joint: Joint, pairs: Pairs, strategy: Strategy) -> float:
    """Bound the error of sums over cells of a density where another guess becomes the best from one cell to the next.

    There the earnings have a kink, which quadrature does not follow; what the guess of the next cell would lose in a
    cell is more than that is worth. Where another secret becomes the likeliest there is an edge between cells, so the
    sums are right.
    """
    dense = pairs.matrix()
    atoms = np.empty(0) if joint.output.curve is None else joint.output.curve.atoms
    smooth = ~np.isin(np.asarray(pairs.outputs, float), atoms)
    likeliest = dense.argmax(axis=0)
    best = strategy.earned(pairs, pairs.probability)
    lost = 0.0
    for neighbour in (1, -1):
        theirs = np.roll(dense, neighbour, axis=1)[pairs.secret, pairs.output]
        inside = smooth & np.roll(smooth, neighbour) & (likeliest == np.roll(likeliest, neighbour))
        inside[0 if neighbour > 0 else -1] = False
        loss = pairs.probability * (best - strategy.earned(pairs, theirs))
        lost += float(np.bincount(pairs.output, loss, len(smooth))[inside].sum())
    return lost


def unseen_output(belief: Belief) -> Joint:
    """Return the joint of a secret and an output that says nothing."""
    constant = Batch.of_values(np.broadcast_to(np.int64(0), len(belief.batch)))
    return Joint(belief, Belief(constant, belief.weights, belief.exact, spread=Kind.DISCRETE, squares=belief.squares))


def without_output(pairs: Pairs) -> Pairs:
    """Return the pairs that are left if the output is not seen."""
    secrets = len(pairs.secrets)
    return replace(
        pairs,
        secret=np.arange(secrets),
        output=np.zeros(secrets, np.int64),
        probability=pairs.prior,
        outputs=[None],
        squares=np.bincount(pairs.secret, pairs.squares, secrets),
    )


def _weighing(joint: Joint) -> Joint:
    """Leave out the samples that weigh nothing."""
    weights = None if joint.exact else joint.weights
    if weights is None or weights.all():
        return joint
    held = weights > 0
    kept = weights[held] / weights[held].sum()
    secret, output = (replace(s, batch=s.batch.take(held), weights=kept) for s in (joint.secret, joint.output))
    return Joint(secret, output)


def _moments(joint: Joint, pairs: Pairs, alone: Pairs, gain: Strategy) -> tuple[Array, Array]:
    mean, second = np.zeros(6), np.zeros((6, 6))
    hindsight = gain.earned(pairs, pairs.probability)
    prior_hindsight = gain.earned(alone, alone.probability)
    missed = (gain.highest - prior_hindsight[pairs.secret]) / gain.span if gain.span > 0 else 0.0
    # Two pairs of the same probability differ in the samples by less than this in 19 of 20 cases.
    doubt = NORMAL * np.sqrt(2 * pairs.squares)
    optimistic = gain.earned(pairs, pairs.probability + doubt * missed)
    repeats = REPEATS if len(joint.secret.batch) <= REPEATED_UP_TO else 1
    for fold in _folds(joint, pairs, repeats):
        held_out = gain.earned(pairs, fold.rest)
        prior_held_out = gain.earned(alone, np.bincount(pairs.secret, fold.rest, len(pairs.secrets)))
        for start in range(0, len(held_out), PAIRS_AT_ONCE):
            part = slice(start, start + PAIRS_AT_ONCE)
            secret = pairs.secret[part]
            after = (held_out[part], hindsight[part], optimistic[part])
            columns = np.stack([np.ones(len(secret)), *after, prior_held_out[secret], prior_hindsight[secret]])
            mean += columns @ fold.weights[part]
            second += (columns * fold.squares[part]) @ columns.T
    return mean / repeats, second / repeats


@dataclass(frozen=True)
class _Fold:
    """The weights of the pairs in one part of the samples and in the rest, and the part's squared weights."""

    weights: Array
    squares: Array
    rest: Array


def _folds(joint: Joint, pairs: Pairs, repeats: int) -> Iterator[_Fold]:
    rng = np.random.default_rng(0)
    if joint.weights is None or joint.secret.squares is not None:
        samples: Array | float = len(joint.secret.batch)
        if joint.weights is not None:  # as many samples of one weight as are worth what those of the pair are
            samples = pairs.probability / pairs.squares
        counts = np.maximum(1, np.rint(pairs.probability * samples)).astype(np.int64)
        for _ in range(repeats):
            yield from _split_counts(counts, pairs.probability / counts, rng)
    else:
        secret, output = (distinct_values(side.batch)[0] for side in (joint.secret, joint.output))
        index = np.searchsorted(pairs.output * len(pairs.secrets) + pairs.secret, output * len(pairs.secrets) + secret)
        for _ in range(repeats):
            yield from _split_weights(index, joint.weights, len(pairs.secret), rng)


def _split_counts(counts: Array, weight: Array, rng: np.random.Generator) -> Iterator[_Fold]:
    left = counts
    for folds in range(FOLDS, 0, -1):
        part = rng.binomial(left, 1 / folds)
        left = left - part
        yield _Fold(part * weight, part * weight**2, (counts - part) * weight)


def _split_weights(index: Array, weights: Array, pairs: int, rng: np.random.Generator) -> Iterator[_Fold]:
    fold = rng.permutation(len(index)) % FOLDS
    for number in range(FOLDS):
        held = fold == number
        sums, squares = (np.bincount(index[held], weights[held] ** power, pairs) for power in (1, 2))
        # The rest is summed anew: as a difference it would keep traces of pairs that it does not hold.
        yield _Fold(sums, squares, np.bincount(index[~held], weights[~held], pairs))
