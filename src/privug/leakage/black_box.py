"""Bayes risk of a black box: an attacker who has only seen examples learns to guess, and the guesses are judged.

F-BLEAU's estimators (Cherubin, Chatzikokolakis and Palamidessi, S&P 2019): count what each output meant, or ask the
nearest outputs. Half of the examples teach, the other half judges, so a guess is never judged on what taught it; which
estimator is best is settled among the teaching half alone, so taking the best of several does not flatter it.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy

from privug.arguments import kinds_checked
from privug.errors import ArgumentError, TooFewSamples
from privug.estimate import CONFIDENCE, Estimate
from privug.inference.intervals import proportion_estimate
from privug.inference.joint import Joint
from privug.leakage.examples import examples_of, pooled_examples
from privug.leakage.learning import (
    NEAREST,
    Guesser,
    Split,
    best_guesser,
    blur,
    check_method,
    guesses,
    neighbours,
    pair_counts,
    wrong_guesses,
)
from privug.leakage.ranges import ranging, risk_range
from privug.model.node import Array, Kind
from privug.pictures import plots

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
