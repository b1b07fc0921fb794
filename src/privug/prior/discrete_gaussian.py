"""The discrete normal distribution: P(k) proportional to exp(-k^2 / (2 sd^2)) on the whole numbers.

SciPy has no such distribution. Canonne, Kamath and Steinke, The Discrete Gaussian for Differential Privacy, 2020.
"""

import math
from typing import Any

import numpy as np
import scipy

from privug.model.node import Array, Kind, Shape
from privug.model.variable import RandomVariable
from privug.prior.family import NUMPY, draw
from privug.prior.parameters import Constraint
from privug.prior.scalar import ScalarFamily

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
