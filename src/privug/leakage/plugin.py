"""Functions of probabilities that are only known from samples: what their plug-in value misses, and how sure it is.

Smooth functions, such as an entropy, are expanded to second order around the shares that were seen: the second order
gives the bias, and the variance where the first order vanishes, as it does for a uniform belief. Functions that choose
the best of many (the best order of guesses, the set that differs most) flatter themselves on the samples they chose
by; what was chosen on one half of the samples and is judged by the other half errs the other way.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy

from privug.estimate import CONFIDENCE, Estimate
from privug.leakage.finite import Shares
from privug.model.node import Array

SPLITS = 4

Chooser = Callable[[Sequence[Array]], Sequence[Array]]
"""From the probabilities of each belief to the coefficients of the best linear function of them."""


@dataclass(frozen=True)
class Dependence:
    """How a function depends on the probabilities of one sampled belief.

    `slope` is its derivative by each probability, `curvature` its second derivative times that probability.
    """

    shares: Shares
    slope: Array
    curvature: Array


def bias(dependence: Dependence) -> float:
    """Return by how much the plug-in value exceeds the truth on average (Miller, 1955, for any weights)."""
    shares, total = dependence.shares, float(dependence.shares.squares.sum())
    p, per_probability = shares.probability, _ratio(shares.squares, shares.probability)
    spread = per_probability * (1 - 2 * p) + p * total
    # Weights that are divided by their sum pull each share towards the values of small weight.
    drift = float(dependence.slope @ (p * total - shares.squares))
    return drift + float(dependence.curvature @ spread) / 2


def linear_variance(dependence: Dependence) -> float:
    """Return the variance of the plug-in value to first order."""
    shares, slope = dependence.shares, dependence.slope
    return float(shares.squares @ (slope - float(slope @ shares.probability)) ** 2)


def variance(dependences: Sequence[Dependence], twist: Array | None = None) -> float:
    """Return the variance of the plug-in value to second order.

    `twist` is the mixed derivative by the probabilities of two independent beliefs, times the root of both. Measured
    slopes vary even where the true one is flat, which makes the first order too large by twice the second.
    """
    linear = sum(linear_variance(dependence) for dependence in dependences)
    quadratic = sum(_trace(d.curvature, d.shares, d.shares) for d in dependences) / 2
    if twist is not None and len(dependences) == 2:
        quadratic += _trace(twist, *(dependence.shares for dependence in dependences))
    return linear + max(0.0, quadratic)


def _trace(scaled: Array, first: Shares, second: Shares) -> float:
    """Return the trace of the square of a diagonal second derivative times the covariance of the shares."""
    p, r = first.probability, second.probability
    diagonal = float((scaled**2) @ (1 - p - r))
    return (diagonal + float(scaled @ np.sqrt(p * r)) ** 2) / (first.samples * second.samples)


def exact_estimate(value: float, beliefs: Sequence[Shares], slopes: Sequence[Array], unit: str = "bit") -> Estimate:
    """Return an exact value; where probabilities are known to an error, with what that can change to first order."""
    off = sum(
        shares.error * float(np.ptp(slope)) for shares, slope in zip(beliefs, slopes, strict=True) if shares.error
    )
    method = max((shares.method for shares in beliefs), key=len)
    return Estimate(value, value - off, value + off, unit, method, exact=True)


def difference(first: Estimate, second: Estimate, unit: str = "bit") -> Estimate:
    """Subtract two independent estimates; their distances to the ends add as squares."""
    value = first.value - second.value
    low = value - math.hypot(first.value - first.low, second.high - second.value)
    high = value + math.hypot(first.high - first.value, second.value - second.low)
    method = first.method if first.method == second.method else f"{first.method}; {second.method}"
    return Estimate(value, low, high, unit, method, first.exact and second.exact)


def falling(estimate: Estimate, function: Callable[[float], float], unit: str) -> Estimate:
    """Return what a falling function makes of an estimate: a lower bound becomes an upper bound."""
    words = {"lower bound": "upper bound", "upper bound": "lower bound"}
    start = estimate.method[: len("lower bound")]
    method = words.get(start, start) + estimate.method[len(start) :]
    value, low, high = map(function, (estimate.value, estimate.high, estimate.low))
    return replace(estimate, value=value, low=low, high=high, unit=unit, method=method)


def _ratio(above: Array, below: Array) -> Array:
    return np.divide(above, below, out=np.zeros_like(below), where=below > 0)


def seen_once(shares: Shares) -> float:
    """Return the share of values that were seen once: about the probability of all values not seen at all.

    I. J. Good, Biometrika 40, 237 (1953).
    """
    return float(shares.probability[_alone(shares)].sum())


def undersampled(shares: Shares) -> bool:
    """Say whether so many values were seen only once that little is known of how many there are.

    That is a tenth of all samples, or two fifths of those that do not hold the commonest value.
    """
    alone = _alone(shares)
    share, others = float(shares.probability[alone].sum()), 1 - float(shares.probability.max())
    return share > 0.1 or (share > 0.4 * others and int(alone.sum()) > 1)


def fewest_samples(shares: Shares) -> float:
    """Return of how many equally weighted samples the least known share is worth."""
    return float((1 / _ratio(shares.squares, shares.probability**2)).min())


def _alone(shares: Shares) -> Array:
    squared = shares.probability**2
    return np.asarray(shares.squares >= (1 - 1e-9) * squared) & (squared > 0) & (not shares.exact)


def rarest_missed(shares: Shares) -> float:
    """Return the probability from which on a value would be missed by all samples in less than one of 40 cases."""
    return 0.0 if shares.exact else 1 - ((1 - CONFIDENCE) / 2) ** (1 / shares.samples)


def most_unseen(shares: Shares) -> float:
    """Return a probability that all values not seen together hardly exceed."""
    once = seen_once(shares)
    return min(1.0, once + 2 * math.sqrt(once / shares.samples) + rarest_missed(shares))


def missed_entropy(shares: Shares) -> float:
    """Return how much entropy samples that are all the same may have missed; zero if they vary or are exact."""
    if shares.exact or np.count_nonzero(shares.probability) > 1:
        return 0.0
    missed = min(0.5, rarest_missed(shares))
    return float(scipy.special.entr([missed, 1 - missed]).sum() / math.log(2))


@dataclass(frozen=True)
class Choice:
    """The best of many linear functions: its value on the samples it was chosen by, on others, and the error of both.

    The first errs towards the better on average, the second towards the worse.
    """

    chosen: float
    judged: float
    error: float

    @property
    def value(self) -> float:
        """The middle of the two."""
        return (self.chosen + self.judged) / 2


def best_choice(beliefs: Sequence[Shares], choose: Chooser) -> Choice:
    """Choose by all samples, and again by one half to be judged by the other."""
    rng = np.random.default_rng(0)
    everything = [shares.probability for shares in beliefs]
    coefficients = choose(everything)
    chosen = _applied(coefficients, everything)
    if all(shares.exact for shares in beliefs):
        return Choice(chosen, chosen, 0.0)
    judged, variances = [], [_spread(beliefs, coefficients)]
    for _ in range(SPLITS):
        some, others = zip(*(_halves(shares, rng) for shares in beliefs), strict=True)
        for chosen_by, judged_by in ((some, others), (others, some)):
            coefficients = choose(chosen_by)
            judged.append(_applied(coefficients, judged_by))
            variances.append(_spread(beliefs, coefficients))
    return Choice(chosen, float(np.mean(judged)), math.sqrt(max(variances)))


def _spread(beliefs: Sequence[Shares], coefficients: Sequence[Array]) -> float:
    return sum(linear_variance(Dependence(s, c, c)) for s, c in zip(beliefs, coefficients, strict=True))


def _applied(coefficients: Sequence[Array], probabilities: Sequence[Array]) -> float:
    return float(sum(c @ p for c, p in zip(coefficients, probabilities, strict=True)))


def _halves(shares: Shares, rng: np.random.Generator) -> tuple[Array, Array]:
    """Send each sample to one of two halves by the toss of a coin."""
    p = shares.probability
    if shares.exact:
        return p, p
    # A value whose samples weigh differently is worth fewer of them.
    counts = np.maximum(np.round(_ratio(p**2, shares.squares)), 1).astype(np.int64)
    some = p * rng.binomial(counts, 0.5) / counts
    halves = [half / half.sum() if half.sum() > 0 else p for half in (some, p - some)]
    return halves[0], halves[1]
