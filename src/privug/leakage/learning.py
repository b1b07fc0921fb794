"""How an attacker learns to guess the secret from examples: by counting outputs, or by asking the nearest ones."""

import math
from typing import NamedTuple

import numpy as np

from privug.errors import ArgumentError
from privug.leakage.examples import Examples
from privug.leakage.nearest import Votes, nearest_support, nearest_votes
from privug.model.distinct import ranked
from privug.model.node import Array, Kind

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
        most = MOST_FOUND // neighbours(method, len(train)) if _dimensions(train) > 1 else len(judge)
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
    return nearest_votes(_points(train), train.labels, _points(test), neighbours(method, len(train)))


def wrong_guesses(method: str, split: Split) -> Array:
    """Say for each judging example whether the guess of its secret is wrong."""
    wrong: Array = guesses(method, *split).label != split.judge.labels
    return wrong


def blur(method: str, split: Split, success: float) -> float:
    """Return how much of the chance of success is lost because the secret changes within the reach of the neighbours.

    All neighbours share the secret of an example less often than the nearest one, by d. Where they mix what should be
    apart, chances fall from p to 1/c for c secrets, and the shares, sums of squared probabilities, by
    (p - 1/c)^2 c/(c-1); so d stands for a loss of d (c-1)/c / (p - 1/c), taken at the guesser's average chance p.
    """
    train, judge = split
    reach = neighbours(method, len(train))
    support = nearest_support(_points(train), train.labels, _points(judge), judge.labels, reach)
    nearest = nearest_support(_points(train), train.labels, _points(judge), judge.labels, 1)
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


def _dimensions(examples: Examples) -> int:
    return 1 if examples.points is None or examples.points.ndim == 1 else examples.points.shape[1]


def _points(examples: Examples) -> Array:
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
