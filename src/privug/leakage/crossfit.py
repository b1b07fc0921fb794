"""Learning guesses from most of the samples and judging them by the others, in turn.

Only the distinct pairs are looked at, so that ten million samples cost what their distinct pairs do.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from privug.errors import TooFewSamples
from privug.estimate import CONFIDENCE
from privug.inference.belief import Belief
from privug.inference.intervals import proportion_estimate
from privug.inference.joint import Joint
from privug.leakage.alike import alike_pairs
from privug.leakage.equal_values import distinct_values
from privug.leakage.finite import Pairs, pairs_of
from privug.leakage.strategy import Gain, Strategy
from privug.leakage.trial import FOLDS, Trial
from privug.model.batch import Batch
from privug.model.node import Array, Kind

REPEATS = 4
REPEATED_UP_TO = 100_000  # samples
CELLS = 1 << 18  # pairs that are summed at once
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
        for start in range(0, len(held_out), CELLS):
            part = slice(start, start + CELLS)
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
