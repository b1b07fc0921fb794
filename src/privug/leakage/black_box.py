"""Bayes risk of a black box: an attacker who has only seen examples learns to guess, and the guesses are judged.

F-BLEAU's estimators (Cherubin, Chatzikokolakis and Palamidessi, S&P 2019): count what each output meant, or ask the
nearest outputs. Half of the examples teach, the other half judges, so a guess is never judged on what taught it; which
estimator is best is settled among the teaching half alone, so taking the best of several does not flatter it.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy

from privug import settings
from privug.arguments import kinds_checked
from privug.errors import ArgumentError, TooFewSamples
from privug.estimate import CONFIDENCE, Estimate
from privug.inference.belief import Belief
from privug.inference.intervals import proportion_estimate
from privug.inference.joint import Joint
from privug.leakage.finite import check_joint, equally_weighing, number_columns
from privug.leakage.neighbours import check_neighbours
from privug.leakage.register import ranging, risk_range
from privug.model.batch import Batch, ranked
from privug.model.node import Array, Kind
from privug.pictures import plots

CELLS = 1 << 21  # most entries of a temporary matrix
FARTHEST = {1: 1e307, 2: 1e150}  # beyond it distances, or their squares, could overflow; infinite values are moved here


class Votes(NamedTuple):
    """The label that wins at each test point, and its share of the votes there."""

    label: Array
    share: Array


def nearest_votes(train: Array, labels: Array, test: Array, k: int) -> Votes:
    """Let the k nearest training points vote at each test point.

    `train` and `test` hold a number or a row of coordinates for each point, `labels` whole numbers from zero on.
    The time grows with the number of labels, unless k is smaller. Distances are Euclidean.

    >>> nearest_votes(np.array([0.0, 1.0, 5.0]), np.array([0, 1, 1]), np.array([0.2, 4.0]), k=2).share
    array([0.5, 1. ])
    """
    known, codes, asked = _checked(train, labels, test, k)
    if known.ndim == 1:
        return _votes_on_line(known, codes, asked, min(k, len(known)))
    label, share = np.empty(len(asked), np.int64), np.empty(len(asked))
    for part, votes in _votes_in_space(known, codes, asked, min(k, len(known))):
        label[part] = votes.argmax(axis=1)
        share[part] = votes.max(axis=1) / votes.sum(axis=1)
    return Votes(label, share)


def nearest_support(train: Array, labels: Array, test: Array, claims: Array, k: int) -> Array:
    """Return the share of the k nearest training points' votes that each test point's own label, its claim, gets.

    >>> nearest_support(np.array([0.0, 1.0, 5.0]), np.array([0, 1, 1]), np.array([0.2, 4.0]), np.array([0, 0]), k=2)
    array([0.5, 0. ])
    """
    known, codes, asked = _checked(train, labels, test, k)
    if known.ndim == 1:
        return _support_on_line(known, codes, asked, claims, min(k, len(known)))
    support = np.zeros(len(asked))
    for part, votes in _votes_in_space(known, codes, asked, min(k, len(known))):
        present = np.flatnonzero(claims[part] < votes.shape[1])
        support[part][present] = votes[present, claims[part][present]] / votes[present].sum(axis=1)
    return support


def _checked(train: Array, labels: Array, test: Array, k: int) -> tuple[Array, Array, Array]:
    check_neighbours(k)
    known, asked = _points(train, "train"), _points(test, "test")
    if len(known) != len(labels) or known.shape[1:] != asked.shape[1:]:
        raise ArgumentError(
            f"train, labels and test must fit together, not have shapes {train.shape}, {labels.shape}, {test.shape}"
        )
    if not len(known):
        raise ArgumentError("train must hold at least one point")
    return known, labels.astype(np.int64, copy=False), asked


def _points(values: Array, name: str) -> Array:
    points = np.asarray(values, float)
    points = points[:, 0] if points.ndim == 2 and points.shape[1] == 1 else points
    if points.ndim not in (1, 2) or np.isnan(points).any():
        raise ArgumentError(f"{name} must hold a number or a row of numbers for each point, none of them missing")
    farthest = FARTHEST[points.ndim]
    return np.asarray(np.clip(points, -farthest, farthest))


def _votes_on_line(train: Array, labels: Array, test: Array, k: int) -> Votes:
    voters, low, high, place = _electorates(train, labels, test, k)
    label, share = np.empty(len(test), voters.dtype), np.empty(len(test))
    label[place], count = _winners(voters, low, high)
    share[place] = count / (high - low)
    return Votes(label, share)


def _support_on_line(train: Array, labels: Array, test: Array, claims: Array, k: int) -> Array:
    voters, low, high, place = _electorates(train, labels, test, k)
    claimed, found, support = claims[place], np.zeros(len(test)), np.empty(len(test))
    for label in np.unique(claimed):
        mine = np.flatnonzero(claimed == label)
        before = np.append(0, np.cumsum(voters == label))
        found[mine] = (before[high[mine]] - before[low[mine]]) / (high - low)[mine]
    support[place] = found
    return support


def _electorates(train: Array, labels: Array, test: Array, k: int) -> tuple[Array, Array, Array, Any]:
    """Return labels in the order of their points, where voters begin and end for each test point, and its place."""
    order, place = _ascending(train), _ascending(test)
    return labels[order], *_windows(train[order], test[place], k), place


def _ascending(values: Array) -> Any:
    """Return the order in which values ascend, as they stand if they do so already."""
    return slice(None) if np.all(values[1:] >= values[:-1]) else np.argsort(values)


def _windows(train: Array, test: Array, k: int) -> tuple[Array, Array]:
    """Return where the voters of each test point begin and end in the training points; both are sorted.

    A window of k starts after every point that lies farther away than the point k places later, that is, after as
    many points as there are such pairs with their middle below the test point.
    """
    last = len(train) - 1
    low = np.searchsorted((train[:-k] + train[k:]) / 2, test)
    high = low + k
    left, right = test - train[low], train[high - 1] - test
    radius = np.maximum(left, right)
    tied = np.flatnonzero((left == radius) & (train[np.maximum(low - 1, 0)] == train[low]))
    following = train[np.minimum(high, last)]
    beyond = np.flatnonzero((high <= last) & (following - test <= radius))
    low[tied] = np.searchsorted(train, train[low[tied]], "left")
    high[beyond] = np.searchsorted(train, following[beyond], "right")
    return low, high


def _winners(labels: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """Return the most frequent label in each window of the sorted training points, and how often it occurs."""
    sizes = high - low
    winner, count = labels[low], np.ones(len(low), np.int64)
    many = np.flatnonzero(sizes > 1)
    if not len(many):
        return winner, count
    narrow = sizes[many] < int(labels.max()) + 1
    for chosen, vote in ((many[narrow], _vote_by_runs), (many[~narrow], _vote_by_label)):
        if len(chosen):
            winner[chosen], count[chosen] = vote(labels, low[chosen], high[chosen])
    return winner, count


def _vote_by_label(labels: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """Count each label in all windows at once by differences of its cumulative count."""
    winner, count = np.zeros(len(low), np.int64), np.zeros(len(low), np.int64)
    before: Array = np.zeros(len(labels) + 1, np.int32 if len(labels) < 2**31 else np.int64)
    for label in np.flatnonzero(np.bincount(labels)):
        np.cumsum(labels == label, out=before[1:])
        votes = before[high] - before[low]
        better = votes > count
        np.copyto(winner, label, where=better)
        np.copyto(count, votes, where=better)
    return winner, count


def _vote_by_runs(labels: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """Sort the labels of each window, narrower than there are labels, and find the longest run."""
    winner, count = np.zeros(len(low), np.int64), np.zeros(len(low), np.int64)
    width = int((high - low).max())
    step = max(1, CELLS // width)
    for start in range(0, len(low), step):
        part = slice(start, start + step)
        places = low[part, np.newaxis] + np.arange(width)
        inside = places < high[part, np.newaxis]
        # Places beyond a window's end hold labels of their own that never win.
        filled = np.where(inside, labels[np.minimum(places, len(labels) - 1)], -1 - np.arange(width))
        ordered = np.sort(filled, axis=1).T.copy()
        run = np.zeros(ordered.shape[1], np.int64)
        for place, row in enumerate(ordered):
            run = np.where((row == ordered[place - 1]) & (place > 0), run + 1, 1)
            better = (run > count[part]) & (row >= 0)
            np.copyto(winner[part], row, where=better)
            np.copyto(count[part], run, where=better)
    return winner, count


def _votes_in_space(train: Array, labels: Array, test: Array, k: int) -> Iterator[tuple[slice, Array]]:
    """Search a tree of the distinct training points; equal points vote together. Yields votes for each label in parts.

    Distinct points at the same distance beyond the k-th vote only as far as the search met them.
    """
    points, place = np.unique(train, axis=0, return_inverse=True)
    place = place.reshape(-1)
    classes = int(labels.max()) + 1
    ballots = scipy.sparse.csr_array((np.ones(len(labels)), (place, labels)), shape=(len(points), classes))
    counts = np.bincount(place)
    tree = scipy.spatial.cKDTree(points)
    nearest = np.arange(1, min(k, len(points)) + 1)
    step = max(1, CELLS // max(len(nearest), classes))
    for start in range(0, len(test), step):
        part = slice(start, start + step)
        answer = tree.query(test[part], nearest, workers=settings.current().workers)
        distance, found = np.asarray(answer[0]), np.asarray(answer[1])
        reached = np.argmax(np.cumsum(counts[found], axis=1) >= k, axis=1)
        voting = distance <= np.take_along_axis(distance, reached[:, np.newaxis], axis=1)
        rows = np.arange(0, found.size + 1, len(nearest))
        shape = (len(found), len(points))
        voters = scipy.sparse.csr_array((voting.reshape(-1).astype(float), found.reshape(-1), rows), shape=shape)
        yield part, (voters @ ballots).toarray()


MOST_ONE_BY_ONE = 1 << 20


@dataclass(frozen=True)
class Examples:
    """Pairs as arrays: the secret's and the output's number among the distinct values, and the output's coordinates.

    `points` is None for outputs that are not numbers. Several coordinates are ranks, so their units do not matter.
    """

    labels: Array
    outputs: Array
    points: Array | None
    secrets: int
    kind: Kind

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, which: Array) -> "Examples":
        """Return the chosen examples."""
        points = None if self.points is None else self.points[which]
        return replace(self, labels=self.labels[which], outputs=self.outputs[which], points=points)


def examples_of(joint: Joint, what: str, seed: int) -> Examples:
    """Return the samples of a joint with a discrete secret as examples, thinned if they are weighted."""
    check_sampled(joint, what)
    if joint.secret.kind is not Kind.DISCRETE:
        raise ArgumentError(
            f"{what}: the secret is {joint.secret.kind.value}, so no guess is ever exactly right and the risk is 1; "
            "ask for mutual_information, or make the secret a range or a yes-or-no question"
        )
    plain = thinned(joint, seed)
    labels, secrets = plain.secret.batch.factorized()
    return Examples(
        labels, plain.output.batch.factorized()[0], coordinates(plain.output.batch), len(secrets), joint.output.kind
    )


def pooled_examples(joint: Joint, test: Joint, what: str, seed: int) -> tuple[Examples, Examples]:
    """Return the examples of two joints about the same secret and output, numbered alike."""
    for part in (joint, test):
        check_sampled(part, what)
    first, second = thinned(joint, seed), thinned(test, seed)
    both = examples_of(_joined(first, second), what, seed)
    return both.take(np.arange(len(first.secret.batch))), both.take(np.arange(len(first.secret.batch), len(both)))


def _joined(first: Joint, second: Joint) -> Joint:
    def end_to_end(left: Belief, right: Belief) -> Belief:
        spread = left.spread if left.spread is right.spread else None
        return Belief(Batch.concatenate([left.batch, right.batch]), spread=spread)

    return Joint(end_to_end(first.secret, second.secret), end_to_end(first.output, second.output))


def check_sampled(joint: Joint, what: str) -> None:
    """Refuse what is not a joint of samples."""
    check_joint(joint, what, "Joint.from_samples(secrets, outputs)")
    if joint.exact:
        raise ArgumentError(
            f"{what} learns from samples, but this joint is exact; use bayes_risk(joint), which is exact"
        )


def thinned(joint: Joint, seed: int) -> Joint:
    """Return equally weighted samples: each is kept with a probability proportional to its weight, and none twice."""
    if joint.weights is None or joint.secret.squares is not None:
        return one_by_one(joint)
    return _of_some(joint, equally_weighing(joint.weights, np.random.default_rng((seed, 2))))


def one_by_one(joint: Joint) -> Joint:
    """Return equally weighted samples of a joint whose pairs stand for several each: all of them, or a million."""
    if joint.weights is None or joint.secret.squares is None:
        return joint
    samples = round(joint.effective_samples)
    counts = np.rint(joint.weights * samples).astype(np.int64)
    if samples > MOST_ONE_BY_ONE:
        counts = np.random.default_rng(0).multinomial(MOST_ONE_BY_ONE, joint.weights)
    return _of_some(joint, np.repeat(np.arange(len(counts)), counts))


def _of_some(joint: Joint, which: Array) -> Joint:
    """Return the joint of some samples, equally weighted."""
    secret, output = (Belief(side.batch.take(which), spread=side.spread) for side in (joint.secret, joint.output))
    return Joint(secret, output)


def coordinates(batch: Batch) -> Array | None:
    """Return a number or a row of ranks for each sample; None if some part is not a number."""
    table = number_columns(batch)
    if table is None:
        return None
    if np.isnan(table).any():
        raise ArgumentError("some values are not a number (NaN); leave those samples out")
    return table[:, 0] if table.shape[1] == 1 else np.column_stack([_ranks(column) for column in table.T])


def _ranks(values: Array) -> Array:
    ordered = np.sort(values)
    return np.asarray((np.searchsorted(ordered, values, "left") + np.searchsorted(ordered, values, "right")) / 2)


NEAREST = ("nearest", "knn-log10", "knn-ln", "knn-sqrt")  # from few neighbours to many
METHODS = ("auto", "frequentist", *NEAREST)
MOST_FOUND = 1 << 22  # neighbours to search for in several dimensions
MOST_TO_CHOOSE = 1 << 19  # examples by which a method is chosen: what differs by less matters little
MOST_BLUR = 4.0  # no more times the loss of agreement: near chance the factor only multiplies noise


class Split(NamedTuple):
    """Examples to learn from and examples to judge by."""

    train: Examples
    judge: Examples

    @classmethod
    def of(cls, train: Examples, judge: Examples, method: str = "knn-sqrt") -> "Split":
        """Make a split with no more to judge by than a method can search for in reasonable time."""
        several = train.points is not None and train.points.ndim > 1 and train.points.shape[1] > 1
        most = MOST_FOUND // neighbours(method, len(train)) if several else len(judge)
        return cls(train, judge if len(judge) <= most else judge.take(np.arange(most)))


class Guesser(NamedTuple):
    """A method of guessing, and whether it seems no better than always guessing the likeliest secret."""

    method: str
    useless: bool = False


def neighbours(method: str, samples: int) -> int:
    """Return how many neighbours a method asks: an odd number, so that two secrets cannot tie.

    >>> [neighbours(method, 1000) for method in NEAREST]
    [1, 3, 7, 33]
    """
    counts = {"nearest": 1.0, "knn-log10": math.log10(samples), "knn-ln": math.log(samples)}
    count = max(1, math.ceil(counts.get(method, math.sqrt(samples))))
    return count + (count % 2 == 0)


def guesses(method: str, train: Examples, test: Examples) -> Votes:
    """Guess the secret of each test example from its output, as learnt from the training examples."""
    if method == "prior":
        prior = np.bincount(train.labels) / len(train)
        return Votes(np.full(len(test), prior.argmax()), np.full(len(test), prior.max()))
    if method == "frequentist":
        return _looked_up(train, test)
    return nearest_votes(
        _points_of_examples(train), train.labels, _points_of_examples(test), neighbours(method, len(train))
    )


def wrong_guesses(method: str, split: Split) -> Array:
    """Say for each judging example whether the guess of its secret is wrong."""
    return np.asarray(guesses(method, *split).label != split.judge.labels)


def blur(method: str, split: Split, success: float) -> float:
    """Return how much of the chance of success is lost because the secret changes within the reach of the neighbours.

    All neighbours share the secret of an example less often than the nearest one, by d. Where they mix what should be
    apart, chances fall from p to 1/c for c secrets, and the shares, sums of squared probabilities, by
    (p - 1/c)^2 c/(c-1); so d stands for a loss of d (c-1)/c / (p - 1/c), taken at the guesser's average chance p.
    """
    train, judge = split
    reach = neighbours(method, len(train))
    support = nearest_support(_points_of_examples(train), train.labels, _points_of_examples(judge), judge.labels, reach)
    nearest = nearest_support(_points_of_examples(train), train.labels, _points_of_examples(judge), judge.labels, 1)
    chance = 1 / train.secrets
    factor = min(MOST_BLUR, (1 - chance) / (success - chance)) if success > chance else MOST_BLUR
    return factor * max(0.0, float((nearest - support).mean()))


def best_guesser(split: Split, seed: int) -> Guesser:
    """Choose a method by the errors within the training examples; those that judge take no part.

    Of methods that differ by less than a standard error the one with most voters is taken: it is the steadiest.
    """
    train = split.train
    methods = [*(NEAREST if train.points is not None else ()), *_counting(train)]
    order = np.random.default_rng((seed, 1)).permutation(len(train))[:MOST_TO_CHOOSE]
    inner = Split.of(train.take(order[: len(order) // 2]), train.take(order[len(order) // 2 :]))
    wrong = {method: wrong_guesses(method, inner) for method in ("prior", *methods)}
    best = min(methods, key=lambda method: wrong[method].mean())
    chosen = [method for method in methods if _not_worse(wrong[method], wrong[best])][-1]
    return Guesser(chosen, useless=bool(wrong["prior"].mean() <= wrong[chosen].mean()))


def check_method(train: Examples, method: str, what: str) -> None:
    """Refuse a method that does not exist or cannot learn from such outputs."""
    if method not in METHODS:
        raise ArgumentError(f"{what}: method must be one of {', '.join(METHODS)}, not {method!r}")
    if method == "frequentist" and not _counting(train):
        raise ArgumentError(f"{what}: a continuous output never repeats, so frequentist learns nothing; use knn-sqrt")
    if method in NEAREST and train.points is None:
        raise ArgumentError(f"{what}: these outputs have no distances; use method='frequentist'")
    if train.points is None and not _counting(train):
        raise ArgumentError(f"{what}: the outputs mix continuous numbers with other values; give their numbers alone")


def _counting(train: Examples) -> tuple[str, ...]:
    return ("frequentist",) if train.kind is Kind.DISCRETE else ()


def _points_of_examples(examples: Examples) -> Array:
    assert examples.points is not None
    return examples.points


def _not_worse(wrong: Array, best: Array) -> bool:
    difference = wrong.astype(float) - best
    return bool(difference.mean() <= difference.std() / math.sqrt(len(difference)))


def pair_counts(examples: Examples) -> tuple[Array, Array]:
    """Return the pairs of output and secret that occur, each as one number in ascending order, and how often."""
    codes, cells = ranked(examples.outputs * examples.secrets + examples.labels)
    return cells, np.bincount(codes)


def _looked_up(train: Examples, test: Examples) -> Votes:
    """Guess the secret seen most often with the output; with an output never seen, the likeliest secret."""
    cells, counts = pair_counts(train)
    output = cells // train.secrets
    order = np.lexsort((cells, -counts, output))
    first = order[np.flatnonzero(np.diff(output[order], prepend=-1))]
    prior = np.bincount(train.labels) / len(train)
    outputs = int(max(output.max(), test.outputs.max(initial=0))) + 1
    label, share = np.full(outputs, prior.argmax()), np.full(outputs, prior.max())
    label[output[first]] = (cells % train.secrets)[first]
    share[output[first]] = counts[first] / np.bincount(output, counts)[output[first]]
    return Votes(label[test.outputs], share[test.outputs])


FEWEST = 5  # samples to learn from, and to judge by
MOST_JUDGES = 100_000  # of each point of a convergence curve


@kinds_checked
@ranging(risk_range)
def estimate_bayes_risk(joint: Joint, method: str = "auto", *, test: Joint | None = None, seed: int = 0) -> Estimate:
    """The probability that the best guess of the secret, made after seeing the output, is wrong; from samples alone.

    R* = 1 - E[max_s P(s | output)], between 0 and 1. The value is the error of a guesser learnt from one half of the
    samples (all of them, if a joint `test` is given) and judged on the other. It is no better than the best guesser,
    so the value is an upper estimate: a mistake looks safer than the truth.

    The interval holds R* with 95 %. Its upper end bounds the guesser's error. Its lower end comes from the guesser's
    own opinion of its chances, which is too high on average: for discrete outputs without any assumption; for `knn`
    methods and continuous outputs if outputs as near as nearest neighbours tell the same. No method can do without
    that there, as no number of samples shows what happens between them. For `nearest` the lower end
    follows Cover and Hart: R* >= (c-1)/c (1 - sqrt(1 - c/(c-1) R_nn)) for c secrets (IEEE Trans. Inf. Theory 13, 21).

    `method` is one of auto, frequentist, nearest, knn-log10, knn-ln, knn-sqrt; the last three ask as many neighbours as
    that function of the number of samples says. Weighted samples are thinned to equally weighted ones.

    >>> rng = np.random.default_rng(1)
    >>> secret = rng.integers(0, 2, 20_000)
    >>> risk = estimate_bayes_risk(Joint.from_samples(secret, rng.normal(size=20_000) + 2 * secret))
    >>> 0.15866 in risk, risk.high - risk.low < 0.02
    (True, True)
    """
    split = _split(joint, test, method, "estimate_bayes_risk", seed)
    guesser = best_guesser(split, seed) if method == "auto" else Guesser(method)
    return _bounded(split, guesser, rigorous=split.train.kind is Kind.DISCRETE and method in ("auto", "frequentist"))


def cover_hart(error: float, secrets: int) -> float:
    """Return the least Bayes risk that the error of the nearest-neighbour guess allows, for a number of secrets.

    >>> round(cover_hart(0.5, 2), 6), round(cover_hart(0.18, 2), 6)
    (0.5, 0.1)
    """
    if secrets < 2:
        return 0.0
    chance = (secrets - 1) / secrets
    return chance * (1 - math.sqrt(max(0.0, 1 - error / chance)))


def _split(joint: Joint, test: Joint | None, method: str, what: str, seed: int) -> Split:
    if test is not None:
        split = Split.of(*pooled_examples(joint, test, what, seed))
    else:
        examples = examples_of(joint, what, seed)
        order = np.random.default_rng(seed).permutation(len(examples))
        half = len(examples) // 2
        split = Split.of(examples.take(order[half:]), examples.take(order[:half]))
    fewest = min(len(split.train), len(split.judge))
    if fewest < FEWEST:
        raise TooFewSamples(f"{what}: {fewest} samples to learn from or to judge by are too few; {FEWEST} are needed")
    check_method(split.train, method, what)
    return split


def _bounded(split: Split, guesser: Guesser, *, rigorous: bool) -> Estimate:
    """Turn the guesser's error and its opinion of its own chances into an interval for the Bayes risk."""
    votes = guesses(guesser.method, split.train, split.judge)
    own = float((votes.label != split.judge.labels).mean())
    error = float(wrong_guesses("prior", split).mean()) if guesser.useless else own
    judged = len(split.judge)
    if rigorous:
        lower = _Lower(_resubstituted(split), len(split.train) + judged)
    elif guesser.method == "nearest":
        lower = _Lower(own, judged, split.train.secrets)
    else:
        success = float(votes.share.mean())
        success += blur(guesser.method, split, success)
        lower = _Lower(max(0.0, 1 - success), min(len(split.train), judged))
    confidence = _each_end(lower, error, judged)
    high = proportion_estimate(error, judged, "", confidence).high
    return Estimate(error, min(lower.end(confidence), error), high, method=_described(split, guesser, rigorous))


class _Lower(NamedTuple):
    """A share of wrong guesses, too low on average, the samples behind it, and the secrets if Cover and Hart apply."""

    share: float
    samples: int
    secrets: int | None = None

    @property
    def value(self) -> float:
        return self.share if self.secrets is None else cover_hart(self.share, self.secrets)

    def end(self, confidence: float) -> float:
        low = proportion_estimate(self.share, self.samples, "", confidence).low
        return low if self.secrets is None else cover_hart(low, self.secrets)


def _resubstituted(split: Split) -> float:
    """Return how often the frequentist guess is wrong on the very examples that taught it: too seldom on average."""
    parts = [pair_counts(part) for part in split]
    cells, places = np.unique(np.concatenate([cells for cells, _ in parts]), return_inverse=True)
    counts = np.bincount(places.reshape(-1), np.concatenate([counts for _, counts in parts]))
    starts = np.flatnonzero(np.diff(cells // split.train.secrets, prepend=-1))
    return 1 - float(np.maximum.reduceat(counts, starts).sum()) / (len(split.train) + len(split.judge))


def _each_end(lower: _Lower, upper: float, judged: int) -> float:
    """Return the confidence of each end's own interval at which both ends together hold the truth with 95 %.

    If the ends are far apart the truth can only be missed on one side, so each may err in 5 % of cases; if they fall
    together, in 2.5 %. In between: Imbens and Manski, Econometrica 72 (2004), 1845.
    """
    errors = (math.sqrt(max(p * (1 - p), 0.25 / n) / n) for p, n in ((lower.share, lower.samples), (upper, judged)))
    gap = max(0.0, upper - lower.value) / max(errors)
    normal = scipy.special.ndtr
    z = float(scipy.optimize.brentq(lambda z: normal(z + gap) - normal(-z) - CONFIDENCE, 0.0, 3.0))
    return float(normal(z) - normal(-z))


def _described(split: Split, guesser: Guesser, rigorous: bool) -> str:
    name = guesser.method
    if name in NEAREST:
        name = f"{name} k={neighbours(name, len(split.train))}"
    if guesser.useless:
        name += ", no better than the prior"
    sizes = f"{len(split.train)} samples to learn, {len(split.judge)} to judge"
    return f"{name}, {sizes}" + ("" if rigorous else ", near outputs taken as alike")


@dataclass(frozen=True)
class Convergence:
    """How the estimate of the Bayes risk changed as more and more examples taught the guesser.

    `stopped_at` is the first number of examples over whose last `q` the risk varied by at most `delta`, where a
    patient user would have stopped; None if there is none. `settled` says whether that holds at the end.

    >>> import numpy as np
    >>> import privug as pv
    >>> secrets = np.random.default_rng(1).integers(0, 2, 500)
    >>> found = pv.leakage.convergence(pv.Joint.from_samples(secrets, secrets))
    >>> found.risks[-1]
    0.0
    """

    samples: tuple[int, ...]
    risks: tuple[float, ...]
    method: str
    delta: float
    q: int
    relative: bool
    stopped_at: int | None
    settled: bool

    def plot(self, ax: Any = None) -> Any:
        """Draw the risk over the number of examples; `ax` is matplotlib axes or the path of a picture to write."""
        return plots().convergence(self.samples, self.risks, ax, "Bayes risk", "number of examples")

    def __str__(self) -> str:
        amount = f"{self.delta:.0%} of its value" if self.relative else f"{self.delta:g}"
        if self.settled:
            return f"converged: the last {self.q} of {self.samples[-1]} examples changed the risk by at most {amount}"
        return (
            f"not converged: the last {self.q} of {self.samples[-1]} examples still changed the risk by more than "
            f"{amount}; with more samples it may fall further, so the system may leak more than this says"
        )


@kinds_checked
def convergence(
    joint: Joint,
    method: str = "auto",
    *,
    test: Joint | None = None,
    delta: float = 0.05,
    q: int | None = None,
    relative: bool = True,
    points: int = 50,
    seed: int = 0,
) -> Convergence:
    """Estimate the Bayes risk from more and more examples, and say whether it has stopped changing.

    As F-BLEAU: (delta, q)-convergence holds once the estimate varied by at most `delta` (a share of its value, unless
    `relative` is false) over the last `q` examples, by default a tenth of them. A curve that has settled is no proof:
    it may fall again later, so it looked safer than the truth. One that has not settled shows too few samples.

    >>> joint = Joint.from_samples([0, 1] * 500, [0, 1] * 500)
    >>> convergence(joint).risks[-1], convergence(joint).settled
    (0.0, True)
    """
    if not 0 < delta < math.inf or points < 2 or (q is not None and q < 1):
        raise ArgumentError(f"convergence: delta, q must be positive and points at least 2, not {delta}, {q}, {points}")
    split = _split(joint, test, method, "convergence", seed)
    chosen = best_guesser(split, seed).method if method == "auto" else method
    judge = split.judge.take(np.arange(min(len(split.judge), MOST_JUDGES)))
    sizes = np.unique(np.linspace(0, len(split.train), points + 1).astype(int)[1:])
    sizes = sizes[sizes > 0]
    risks = [float(wrong_guesses(chosen, Split(split.train.take(np.arange(n)), judge)).mean()) for n in sizes]
    last = max(1, len(split.train) // 10) if q is None else q
    stable = _stable(sizes, np.array(risks), delta, last, relative)
    stopped = int(sizes[stable.argmax()]) if stable.any() else None
    return Convergence(tuple(sizes.tolist()), tuple(risks), chosen, delta, last, relative, stopped, bool(stable[-1]))


def _stable(sizes: Array, risks: Array, delta: float, q: int, relative: bool) -> Array:
    """Say for each size whether the risk varied little over the last q examples."""
    stable = np.zeros(len(sizes), bool)
    for place, size in enumerate(sizes):
        window = risks[: place + 1][sizes[: place + 1] >= size - q]
        spread = np.abs(window - risks[place]).max()
        stable[place] = size > q and len(window) > 1 and spread <= delta * (risks[place] if relative else 1.0)
    return stable
