"""Discrete distributions of whole numbers."""

from typing import Any

import numpy as np
import scipy

from privug.model.node import Array, Kind
from privug.model.variable import RandomVariable
from privug.model.whole_numbers import apart
from privug.prior.family import COUNT, MODERATE, POSITIVE_PROBABILITY, PROBABILITY, WHOLE, ScalarFamily, draw

MOST_STEPS = np.nextafter(2.0**63, 0.0)  # the largest float that is a whole number of 64 bits

BERNOULLI = ScalarFamily(
    "Bernoulli",
    (("p", PROBABILITY),),
    lambda rng, size, p: (rng.random(size) < p).astype(np.int64),
    lambda p: scipy.stats.bernoulli(p),
    Kind.DISCRETE,
    largest=lambda p: 1,
    shaped=lambda normals, p: ((scipy.special.ndtr(-normals) < p) | (p >= 1)).astype(np.int64),
)
BINOMIAL = ScalarFamily(
    "Binomial",
    (("n", COUNT), ("p", PROBABILITY)),
    lambda rng, size, n, p: rng.binomial(np.asarray(n, np.int64), p, size),
    lambda n, p: scipy.stats.binom(n, p),
    Kind.DISCRETE,
    largest=lambda n, p: n,
)
POISSON = ScalarFamily(
    "Poisson",
    (("rate", MODERATE),),
    lambda rng, size, rate: rng.poisson(rate, size),
    lambda rate: scipy.stats.poisson(rate),
    Kind.DISCRETE,
)
GEOMETRIC = ScalarFamily(
    "Geometric",
    (("p", POSITIVE_PROBABILITY),),
    lambda rng, size, p: rng.geometric(p, size),
    lambda p: scipy.stats.geom(p),
    Kind.DISCRETE,
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
    largest=lambda low, high: np.maximum(np.abs(low), np.abs(high)),
    shaped=lambda normals, low, high: _equally_likely(normals, np.asarray(low, np.int64), np.asarray(high, np.int64)),
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
)


def _equally_likely(normals: Array, low: Array, high: Array) -> Array:
    """Return whole numbers from low to high, each for an equal share of standard normal numbers."""
    steps = np.floor(scipy.special.ndtr(normals) * (apart(high, low) + 1.0))
    result: Array = low + np.minimum(steps, MOST_STEPS).astype(np.int64)
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
