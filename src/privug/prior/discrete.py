"""Discrete distributions of whole numbers."""

import math
from typing import Any

import numpy as np
import scipy

from privug.arguments import shown
from privug.errors import PriorError
from privug.model.node import Array, Kind
from privug.model.variable import RandomVariable
from privug.model.whole_numbers import apart
from privug.prior.continuous import Beta
from privug.prior.family import draw
from privug.prior.fitted import JEFFREYS, Fitted
from privug.prior.parameters import COUNT, MODERATE, POSITIVE_PROBABILITY, PROBABILITY, WHOLE, Constraint
from privug.prior.positive import Gamma
from privug.prior.scalar import MOST_TRIALS, ScalarFamily

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
    lambda n, p: scipy.stats.binom(n, p),
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
