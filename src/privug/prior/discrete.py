"""Discrete distributions of whole numbers."""

import math
from typing import Any

import numpy as np
import scipy

from privug.model.node import Array, Kind
from privug.model.variable import RandomVariable
from privug.model.whole_numbers import apart
from privug.prior.family import draw
from privug.prior.scalar import (
    COUNT,
    MODERATE,
    MOST_TRIALS,
    POSITIVE_PROBABILITY,
    PROBABILITY,
    WHOLE,
    ScalarFamily,
)

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
)
BINOMIAL = ScalarFamily(
    "Binomial",
    (("n", COUNT), ("p", PROBABILITY)),
    lambda rng, size, n, p: rng.binomial(np.asarray(n, np.int64), p, size),
    lambda n, p: scipy.stats.binom(n, p),
    Kind.DISCRETE,
    ends=(0, "n"),
    largest=lambda n, p: n,
    likely=lambda exponent, n, p: _likely_successes(exponent, n, p),
    trials="n",
    pymc=lambda n, p: ("Binomial", {"n": n, "p": p}),
    numpyro=lambda n, p: ("BinomialProbs", {"probs": p, "total_count": n}),
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
)


def _likely_events(exponent: float, rate: Array) -> tuple[Array, Array]:
    # Bernstein's inequality: P(X >= rate + t) <= exp(-t^2 / (2 rate + 2 t / 3)), and t / 3 less below.
    above = exponent / 3 + np.sqrt(exponent**2 / 9 + 2 * exponent * rate)
    return np.maximum(0.0, rate - np.sqrt(2 * exponent * rate)), rate + above


def _likely_successes(exponent: float, n: Array, p: Array) -> tuple[Array, Array]:
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


def Bernoulli(p: Any) -> RandomVariable:
    """One with probability `p`, zero otherwise."""
    return draw(BERNOULLI, (p,))


def Binomial(n: Any, p: Any) -> RandomVariable:
    """The number of successes in `n` independent trials of probability `p`."""
    return draw(BINOMIAL, (n, p))


def Poisson(rate: Any) -> RandomVariable:
    """The number of independent rare events, `rate` on average."""
    return draw(POISSON, (rate,))


def Geometric(p: Any) -> RandomVariable:
    """The number of trials up to and including the first success: 1, 2, 3, ..."""
    return draw(GEOMETRIC, (p,))


def DiscreteUniform(low: Any, high: Any) -> RandomVariable:
    """Every whole number from `low` to `high`, both included, equally likely."""
    return draw(DISCRETE_UNIFORM, (low, high))


def DiscreteLaplace(scale: Any) -> RandomVariable:
    """Two-sided geometric noise: P(k) is proportional to exp(-|k| / scale)."""
    return draw(DISCRETE_LAPLACE, (scale,))
