"""Discrete distributions of integers, the discrete normal among them.

SciPy has no such distribution. Canonne, Kamath and Steinke, The Discrete Gaussian for Differential Privacy, 2020.
"""

import math
from typing import Any

import numpy as np
import scipy

from privug.arguments import shown
from privug.errors import PriorError
from privug.model.integers import apart
from privug.model.node import Array, Kind, Shape
from privug.model.variable import RandomVariable
from privug.prior.continuous import Beta, Gamma
from privug.prior.family import NUMPY, draw
from privug.prior.scalar import (
    COUNT,
    JEFFREYS,
    MODERATE,
    MOST_TRIALS,
    POSITIVE_PROBABILITY,
    PROBABILITY,
    WHOLE,
    Constraint,
    Fitted,
    ScalarFamily,
)
from privug.prior.standard import BinomialCounts

COUNTS = Constraint(lambda x: (x >= 0) & (x == np.floor(x)), "whole numbers from 0 on")
WHOLE_NUMBERS = Constraint(lambda x: x == np.floor(x), "whole numbers")
LARGEST = np.nextafter(2.0**63, 0.0)  # the largest float that is a whole number of 64 bits

BERNOULLI = ScalarFamily(
    "Bernoulli",
    (("p", PROBABILITY),),
    lambda rng, size, p: (rng.random(size) < p).astype(np.int64),
    lambda p: scipy.stats.bernoulli(p),
    Kind.DISCRETE,
    ends=(0, 1),
    shaped=lambda normals, p: ((scipy.special.ndtr(-normals) < p) | (p >= 1)).astype(np.int64),
    largest=lambda p: 1,
    likely=lambda exponent, p: (np.where(p < 1, 0.0, 1.0), np.where(p > 0, 1.0, 0.0)),
    mass=lambda values, p: np.where(values == 1, p, 1 - p),
    pymc=lambda p: ("Bernoulli", {"p": p}),
    numpyro=lambda p: ("BernoulliProbs", {"probs": p}),
    data=Constraint(lambda x: (x == 0) | (x == 1), "values 0 and 1, or booleans"),
    fitted=lambda numbers: _fitted_bernoulli(numbers),
)
BINOMIAL = ScalarFamily(
    "Binomial",
    (("n", COUNT), ("p", PROBABILITY)),
    lambda rng, size, n, p: rng.binomial(np.asarray(n, np.int64), p, size),
    BinomialCounts,
    Kind.DISCRETE,
    ends=(0, "n"),
    largest=lambda n, p: n,
    likely=lambda exponent, n, p: likely_successes(exponent, n, p),
    trials="n",
    pymc=lambda n, p: ("Binomial", {"n": n, "p": p}),
    numpyro=lambda n, p: ("BinomialProbs", {"probs": p, "total_count": n}),
    data=COUNTS,
    fitted=lambda numbers, n=None: _fitted_binomial(numbers, n),
    given=("n",),
)
POISSON = ScalarFamily(
    "Poisson",
    (("rate", MODERATE),),
    lambda rng, size, rate: rng.poisson(rate, size),
    lambda rate: scipy.stats.poisson(rate),
    Kind.DISCRETE,
    ends=(0, math.inf),
    likely=lambda exponent, rate: _likely_events(exponent, rate),
    pymc=lambda rate: ("Poisson", {"mu": rate}),
    numpyro=lambda rate: ("Poisson", {"rate": rate}),
    data=COUNTS,
    fitted=lambda numbers: _fitted_poisson(numbers),
    log_concave=True,
)
GEOMETRIC = ScalarFamily(
    "Geometric",
    (("p", POSITIVE_PROBABILITY),),
    lambda rng, size, p: rng.geometric(p, size),
    lambda p: scipy.stats.geom(p),
    Kind.DISCRETE,
    ends=(1, math.inf),
    likely=lambda exponent, p: (np.ones_like(p), _likely_trials(exponent, p)),
    pymc=lambda p: ("Geometric", {"p": p}),
    formula=lambda xp, value, p: xp.xlog1py(value - 1, -p) + xp.log(p),
    data=Constraint(lambda x: (x >= 1) & (x == np.floor(x)), "whole numbers from 1 on"),
    fitted=lambda numbers: _fitted_geometric(numbers),
    log_concave=True,
    log_linear_tails=True,
)
DISCRETE_UNIFORM = ScalarFamily(
    "DiscreteUniform",
    (("low", WHOLE), ("high", WHOLE)),
    lambda rng, size, low, high: rng.integers(
        np.asarray(low, np.int64), np.asarray(high, np.int64), size, endpoint=True
    ),
    lambda low, high: scipy.stats.randint(low, high + 1),
    Kind.DISCRETE,
    ordered=("low", "high"),
    ends=("low", "high"),
    shaped=lambda normals, low, high: _equally_likely(normals, np.asarray(low, np.int64), np.asarray(high, np.int64)),
    largest=lambda low, high: np.maximum(np.abs(low), np.abs(high)),
    mass=lambda values, low, high: np.broadcast_to(1.0 / (apart(high, low) + 1.0), values.shape).copy(),
    pymc=lambda low, high: ("DiscreteUniform", {"lower": low, "upper": high}),
    numpyro=lambda low, high: ("DiscreteUniform", {"low": low, "high": high}),
    data=WHOLE_NUMBERS,
    fitted=lambda numbers: _fitted_discrete_uniform(numbers),
)
DISCRETE_LAPLACE = ScalarFamily(
    "DiscreteLaplace",
    (("scale", MODERATE),),
    # The difference of two equal geometric variables has this distribution.
    lambda rng, size, scale: (
        rng.geometric(-np.expm1(-1.0 / scale), size) - rng.geometric(-np.expm1(-1.0 / scale), size)
    ),
    lambda scale: scipy.stats.dlaplace(1.0 / scale),
    Kind.DISCRETE,
    likely=lambda exponent, scale: (-scale * (exponent + 1), scale * (exponent + 1)),
    formula=lambda xp, value, scale: xp.log(xp.tanh(0.5 / scale)) - xp.absolute(value) / scale,
    log_densities=lambda values, scale: _two_sided_geometric(values, scale),
    data=WHOLE_NUMBERS,
    start=lambda x: (float(np.abs(x).mean()) + 0.1,),
    log_concave=True,
    log_linear_tails=True,
)


def _two_sided_geometric(values: Array, scale: Array) -> Array:
    """Return log probabilities far out, too, where SciPy takes the log of zero."""
    whole = values == np.floor(values)
    return np.where(whole, np.log(np.tanh(0.5 / scale)) - np.abs(values) / scale, -np.inf)


def _likely_events(exponent: float, rate: Array) -> tuple[Array, Array]:
    # Bernstein's inequality: P(X >= rate + t) <= exp(-t^2 / (2 rate + 2 t / 3)), and t / 3 less below.
    above = exponent / 3 + np.sqrt(exponent**2 / 9 + 2 * exponent * rate)
    return np.maximum(0.0, rate - np.sqrt(2 * exponent * rate)), rate + above


def likely_successes(exponent: float, n: Array, p: Array) -> tuple[Array, Array]:
    """Return between which numbers successes lie, but for a probability of exp(-exponent) on each side (Bernstein)."""
    spread = exponent / 3 + np.sqrt(exponent**2 / 9 + 2 * exponent * n * p * (1 - p))
    few = n <= MOST_TRIALS
    return np.where(few, 0.0, np.maximum(0.0, n * p - spread)), np.where(few, n, np.minimum(n, n * p + spread))


def _likely_trials(exponent: float, p: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.maximum(1.0, exponent / -np.log1p(-p))


def _equally_likely(normals: Array, low: Array, high: Array) -> Array:
    """Return whole numbers from low to high, each for an equal share of standard normal numbers."""
    steps = np.floor(scipy.special.ndtr(normals) * (apart(high, low) + 1.0))
    result: Array = low + np.minimum(steps, LARGEST).astype(np.int64)
    return np.minimum(result, high)


def _fitted_bernoulli(numbers: Array) -> Fitted:
    ones, count = float(numbers.sum()), len(numbers)
    return Fitted(
        lambda: Bernoulli(ones / count),
        lambda: Bernoulli(Beta(ones + JEFFREYS, count - ones + JEFFREYS)),
        lambda: Bernoulli((ones + JEFFREYS) / (count + 2 * JEFFREYS)),
    )


def _fitted_binomial(numbers: Array, n: Any) -> Fitted:
    if isinstance(n, bool) or not isinstance(n, int) or not max(1, int(numbers.max())) <= n <= int(LARGEST):
        raise PriorError(f"fit: Binomial needs n=, a whole number of trials no smaller than the data, not {shown(n)}")
    ones, trials = float(numbers.sum()), len(numbers) * n
    return Fitted(
        lambda: Binomial(n, ones / trials), lambda: Binomial(n, Beta(ones + JEFFREYS, trials - ones + JEFFREYS))
    )


def _fitted_poisson(numbers: Array) -> Fitted:
    total, count = float(numbers.sum()), len(numbers)

    def most() -> RandomVariable:
        if not total > 0:
            raise PriorError("fit: Poisson with a rate of 0: every value is 0; write uncertainty=True")
        return Poisson(total / count)

    return Fitted(most, lambda: Poisson(Gamma(total + JEFFREYS, rate=count)))


def _fitted_geometric(numbers: Array) -> Fitted:
    trials, count = float(numbers.sum()), len(numbers)
    return Fitted(lambda: Geometric(count / trials), lambda: Geometric(Beta(count, trials - count + JEFFREYS)))


def _fitted_discrete_uniform(numbers: Array) -> Fitted:
    low, high = int(numbers.min()), int(numbers.max())
    return Fitted(lambda: DiscreteUniform(low, high), "its ends have no such posterior; write uncertainty=False")


def Bernoulli(p: Any) -> RandomVariable:
    """One with probability `p`, zero otherwise.

    >>> import privug as pv
    >>> ill = pv.Attack(lambda x: x, prior={"x": pv.Bernoulli(0.2)}, secret="x").run().prior
    >>> round(ill.probability(lambda x: x == 1).value, 4)
    0.2
    """
    return draw(BERNOULLI, (p,))


def Binomial(n: Any, p: Any) -> RandomVariable:
    """The number of successes in `n` independent trials of probability `p`.

    >>> import privug as pv
    >>> ill = pv.Attack(lambda x: x, prior={"x": pv.Binomial(10, 0.2)}, secret="x").run().prior
    >>> round(ill.probability(lambda x: x == 0).value, 4)
    0.1074
    """
    return draw(BINOMIAL, (n, p))


def Poisson(rate: Any) -> RandomVariable:
    """The number of independent rare events, `rate` on average.

    >>> import privug as pv
    >>> visits = pv.Attack(lambda x: x, prior={"x": pv.Poisson(2)}, secret="x").run().prior
    >>> round(visits.probability(lambda x: x == 0).value, 4)
    0.1353
    """
    return draw(POISSON, (rate,))


def Geometric(p: Any) -> RandomVariable:
    """The number of trials up to and including the first success: 1, 2, 3, ...

    >>> import privug as pv
    >>> tries = pv.Attack(lambda x: x, prior={"x": pv.Geometric(0.5)}, secret="x").run().prior
    >>> round(tries.probability(lambda x: x > 3).value, 4)
    0.125
    """
    return draw(GEOMETRIC, (p,))


def DiscreteUniform(low: Any, high: Any) -> RandomVariable:
    """Every whole number from `low` to `high`, both included, equally likely.

    >>> import privug as pv
    >>> die = pv.Attack(lambda x: x, prior={"x": pv.DiscreteUniform(1, 6)}, secret="x").run().prior
    >>> round(die.probability(lambda x: x >= 5).value, 4)
    0.3333
    """
    return draw(DISCRETE_UNIFORM, (low, high))


def DiscreteLaplace(scale: Any) -> RandomVariable:
    """Two-sided geometric noise: P(k) is proportional to exp(-|k| / scale).

    >>> import privug as pv
    >>> noise = pv.Attack(lambda x: x, prior={"x": pv.DiscreteLaplace(1)}, secret="x").run().prior
    >>> round(noise.probability(lambda x: x == 0).value, 4)
    0.4621
    """
    return draw(DISCRETE_LAPLACE, (scale,))


# From here on the sum over the whole numbers up to one is its integral with the corrections of Euler and Maclaurin.
SMOOTH = 50.0
REACH = 39.0  # deviations beyond which densities are below the smallest double
WIDEST = 1e15

DEVIATION = Constraint(lambda x: (x > 0) & (x <= WIDEST), "a positive number up to 1e15")


class DiscreteNormal:
    """A discrete normal distribution with given parameters, and the methods of SciPy's frozen ones."""

    def __init__(self, sd: Any) -> None:
        self.sd = np.asarray(sd, float)

    def logpmf(self, k: Any) -> Array:
        k = np.asarray(k, float)
        with np.errstate(divide="ignore", over="ignore", under="ignore"):
            logs = _formula(NUMPY, k, self.sd)
        return np.where(k == np.floor(k), logs, -np.inf)

    def pmf(self, k: Any) -> Array:
        return np.asarray(np.exp(self.logpmf(k)))

    def cdf(self, k: Any) -> Array:
        k, sd = np.broadcast_arrays(np.floor(np.asarray(k, float)), self.sd)
        results = np.empty(k.shape)
        smooth = sd >= SMOOTH
        results[smooth] = _smooth_cdf(k[smooth], sd[smooth])
        for deviation in np.unique(sd[~smooth]):
            here = ~smooth & (sd == deviation)
            results[here] = _summed_cdf(k[here], float(deviation))
        return results

    def sf(self, k: Any) -> Array:
        return self.cdf(-np.floor(np.asarray(k, float)) - 1)

    def ppf(self, p: Any) -> Array:
        p, sd = np.broadcast_arrays(np.asarray(p, float), self.sd)
        with np.errstate(invalid="ignore"):
            guess = np.ceil(sd * scipy.special.ndtri(p) - 0.5)
        inside = np.isfinite(guess)
        k, own, wanted = guess[inside], DiscreteNormal(sd[inside]), p[inside]
        for _ in range(8):  # the normal quantile is off by one or two
            k = np.where(own.cdf(k - 1) >= wanted, k - 1, np.where(own.cdf(k) < wanted, k + 1, k))
        results = np.array(guess)
        results[inside] = k + 0.0  # no negative zero
        return results

    def isf(self, p: Any) -> Array:
        return np.asarray(0.0 - self.ppf(p))

    def support(self) -> tuple[float, float]:
        return -np.inf, np.inf

    def mean(self) -> Array:
        return np.zeros(self.sd.shape)

    def var(self) -> Array:
        results = np.array(self.sd**2, ndmin=1)
        for position, deviation in enumerate(np.ravel(self.sd)):
            if deviation < SMOOTH:
                k = _values(float(deviation))
                results.reshape(-1)[position] = float((k**2 * DiscreteNormal(deviation).pmf(k)).sum())
        return results.reshape(self.sd.shape)

    def std(self) -> Array:
        return np.sqrt(self.var())


def _log_total(xp: Any, sd: Any) -> Any:
    """Return the log of the sum of exp(-k^2 / (2 sd^2)), directly or, where that is quicker, by Poisson's formula."""
    k = np.arange(1, 9).reshape(-1, *(1,) * np.ndim(sd))
    direct = xp.log1p(2 * xp.exp(-0.5 * (k / xp.minimum(sd, 1.0)) ** 2).sum(axis=0))
    transformed = xp.log1p(2 * xp.exp(-2 * (math.pi * k * xp.maximum(sd, 0.5)) ** 2).sum(axis=0))
    return xp.where(sd < 0.7, direct, transformed + xp.log(sd) + 0.5 * math.log(2 * math.pi))


def _values(sd: float) -> Array:
    reach = np.ceil(REACH * sd) + 1
    return np.arange(-reach, reach + 1)


def _summed_cdf(k: Array, sd: float) -> Array:
    values = _values(sd)
    sums = np.concatenate([[0.0], np.cumsum(DiscreteNormal(sd).pmf(values))])
    sums = np.minimum(1.0, sums / sums[-1])
    return np.asarray(sums[np.clip(k - values[0] + 1, 0, len(values)).astype(np.int64)])


def _smooth_cdf(k: Array, sd: Array) -> Array:
    x = (k + 0.5) / sd
    density = np.exp(-0.5 * x**2) / np.sqrt(2 * np.pi)
    first, third = -x * density, (3 * x - x**3) * density
    corrected = scipy.special.ndtr(x) - first / (24 * sd**2) + 7 * third / (5760 * sd**4)
    return np.asarray(np.clip(corrected, 0.0, 1.0))


def _drawn(rng: np.random.Generator, size: Shape, sd: Any) -> Array:
    """Draw by rejection from two-sided geometric numbers, so that no tail is cut off."""
    deviation = np.broadcast_to(np.asarray(sd, float), size).reshape(-1)
    results = np.zeros(deviation.shape, np.int64)
    waiting = np.arange(len(deviation))
    while len(waiting):
        own = deviation[waiting]
        scale = np.floor(own) + 1
        p = -np.expm1(-1.0 / scale)
        tried = rng.geometric(p, len(waiting)) - rng.geometric(p, len(waiting))
        with np.errstate(over="ignore"):
            odds = np.exp(-0.5 * ((np.abs(tried) - own * (own / scale)) / own) ** 2)
        accepted = rng.random(len(waiting)) < odds
        results[waiting[accepted]] = tried[accepted]
        waiting = waiting[~accepted]
    return results.reshape(size)


def _formula(xp: Any, value: Any, sd: Any) -> Any:
    return -0.5 * (value / sd) ** 2 - _log_total(xp, sd)


def _likely(exponent: float, sd: Array) -> tuple[Array, Array]:
    reach = sd * math.sqrt(2 * exponent) + 1
    return -reach, reach


DISCRETE_GAUSSIAN = ScalarFamily(
    "DiscreteGaussian",
    (("sd", DEVIATION),),
    _drawn,
    DiscreteNormal,
    Kind.DISCRETE,
    likely=_likely,
    formula=_formula,
    log_concave=True,
)


def DiscreteGaussian(sd: Any) -> RandomVariable:
    """Normal noise on the whole numbers: P(k) is proportional to exp(-k**2 / (2 sd**2)).

    >>> import numpy as np
    >>> probability = DiscreteNormal(1.0).pmf([0, 1])
    >>> bool(np.isclose(probability[1] / probability[0], np.exp(-0.5)))
    True
    """
    return draw(DISCRETE_GAUSSIAN, (sd,))
