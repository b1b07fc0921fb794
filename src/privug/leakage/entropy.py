"""Entropies of one belief: how uncertain the attacker is about the quantity, in bits or in guesses."""

import math
from dataclasses import replace

import numpy as np
import scipy

from privug.arguments import kinds_checked, shown
from privug.digits import how_many, number_text, percent_text
from privug.errors import ArgumentError
from privug.estimate import Estimate
from privug.inference.belief import Belief
from privug.inference.joint import Joint
from privug.leakage.continuous import equally_weighted, kernel_entropy, minus_infinite, neighbour_entropy
from privug.leakage.finite import Shares, alike_shares
from privug.leakage.plugin import (
    Dependence,
    bias,
    exact_estimate,
    fewest_samples,
    linear_variance,
    quantile,
    rarest_missed,
    seen_once,
    undersampled,
    variance,
)
from privug.leakage.ranges import (
    Of,
    Row,
    entropy_range,
    guesses_range,
    measure,
    min_entropy_range,
    ranging,
    renyi_range,
)
from privug.leakage.strategy import unseen_output
from privug.leakage.vulnerability import bayes_vulnerability, posterior_guessing_entropy
from privug.model.node import Array, Kind

LN2 = math.log(2)

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


@measure(Of.BELIEF, entropy_range, Row(41, "before", _uncertainty))
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


@measure(Of.BELIEF, min_entropy_range, Row(10, "here", _best_guess_here, discrete=True))
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
    chance = bayes_vulnerability(belief)
    low, value, high = (_surprisal(p) for p in (chance.high, chance.value, chance.low))
    return replace(chance, value=value, low=low, high=high, unit="bit", method=_turned(chance.method))


@measure(Of.BELIEF, guesses_range)
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
@ranging(renyi_range)
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
        return exact_estimate(max(0.0, shares.summed(scipy.special.entr(p))) / LN2, [shares], [slope])
    value = shannon(p)
    if len(p) == 1:
        return _never_varied(shares, shannon(_with_another(shares)), "Miller-Madow")
    dependence = Dependence(shares, slope, np.full(len(p), -1 / LN2))
    half = quantile(shares.samples) * math.sqrt(variance([dependence]))
    return _with_unseen(value - bias(dependence), half, BITS_PER_UNSEEN * seen_once(shares), shares, "Miller-Madow")


def _renyi(shares: Shares, order: float) -> Estimate:
    logarithms = np.log(shares.probability)
    value, name = _renyi_value(logarithms, order, shares.copies), f"order {order:g}"
    # The derivatives of log2(sum p^order) / (1 - order), by way of p^(order - 1) relative to the sum of p^order.
    relative = np.exp((order - 1) * logarithms - (1 - order) * LN2 * value)
    slope = order / (1 - order) / LN2 * relative
    if shares.exact:
        return exact_estimate(value, [shares], [slope])
    if len(shares) == 1:
        return _never_varied(shares, _renyi_value(np.log(_with_another(shares)), order), name)
    dependence = Dependence(shares, slope, -order / LN2 * relative)
    value -= bias(dependence) - (1 - order) * LN2 / 2 * linear_variance(dependence)
    half = quantile(shares.samples) * math.sqrt(variance([dependence]))
    allowance = BITS_PER_UNSEEN * seen_once(shares) * max(0.0, 2 - order)
    if order < 1 and fewest_samples(shares) < FEWEST_OF_EACH:
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
    missed = rarest_missed(shares)
    return np.array([1 - missed, missed])


def _never_varied(shares: Shares, high: float, name: str) -> Estimate:
    """Return zero for samples that are all the same; the upper end allows for another value."""
    high = high if rarest_missed(shares) < 0.5 else math.inf
    return Estimate(0.0, 0.0, high, "bit", f"{name}, {shares.method}")


def _with_unseen(value: float, half: float, allowance: float, shares: Shares, name: str) -> Estimate:
    low = max(0.0, value - half)
    if math.isinf(allowance) or undersampled(shares):
        method = f"lower bound: some values were seen only a few times, so there may be others, {shares.method}"
        return Estimate(max(0.0, value), low, math.inf, "bit", method)
    most = math.inf if allowance else math.log2(len(shares))
    value, high = min(max(0.0, value), most), value + half + allowance
    return Estimate(value, min(low, value), max(high, value), "bit", f"{name}, {shares.method}")


def _surprisal(probability: float) -> float:
    return max(0.0, -math.log2(probability)) if probability > 0 else math.inf


def _turned(method: str) -> str:
    """Return the method of a falling function: a lower bound becomes an upper one."""
    words = {"lower bound": "upper bound", "upper bound": "lower bound"}
    for word, opposite in words.items():
        if method.startswith(word):
            return opposite + method.removeprefix(word)
    return method
