"""Distributions with the methods of SciPy's frozen ones, for those that every analysis meets: SciPy takes long to load.

Binomial probabilities are Loader's: Fast and accurate computation of binomial probabilities, 2000.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from privug.model.node import Array

MOST_STEPS, CLOSE, LEAST_DENSITY = 100, 1e-15, 1e-300
FARTHEST = 39.0  # deviations: beyond, nothing is left in floats
FAR_BELOW, TERMS = 5.0, 26


@dataclass(frozen=True)
class StandardNormal:
    """The normal distribution of mean 0 and deviation 1, as far as it is needed here."""

    of_scipy = "norm"

    def pdf(self, x: Array) -> Array:
        density = np.asarray(np.square(x, dtype=float))  # in place: tables of pairs ask for millions
        density *= -0.5
        np.exp(density, out=density)
        density /= math.sqrt(2 * math.pi)
        return density

    def logpdf(self, x: Array) -> Array:
        return np.asarray(-0.5 * np.square(x) - 0.5 * math.log(2 * math.pi))

    def cdf(self, x: Array) -> Array:
        return np.asarray(scipy.special.ndtr(x))

    def sf(self, x: Array) -> Array:
        return np.asarray(scipy.special.ndtr(np.negative(x)))

    def ppf(self, p: Array) -> Array:
        return np.asarray(scipy.special.ndtri(p))

    def isf(self, p: Array) -> Array:
        return -self.ppf(p)

    def support(self) -> tuple[float, float]:
        return -math.inf, math.inf

    def mean(self) -> float:
        return 0.0

    def std(self) -> float:
        return 1.0


@dataclass(frozen=True)
class StandardUniform:
    """The uniform distribution between 0 and 1, as far as it is needed here."""

    of_scipy = "uniform"

    def pdf(self, x: Array) -> Array:
        return np.where((np.asarray(x) >= 0) & (np.asarray(x) <= 1), 1.0, 0.0)

    def logpdf(self, x: Array) -> Array:
        return np.where((np.asarray(x) >= 0) & (np.asarray(x) <= 1), 0.0, -np.inf)

    def cdf(self, x: Array) -> Array:
        return np.clip(x, 0.0, 1.0)

    def sf(self, x: Array) -> Array:
        return np.clip(np.subtract(1.0, x), 0.0, 1.0)

    def ppf(self, p: Array) -> Array:
        return np.clip(p, 0.0, 1.0)

    def isf(self, p: Array) -> Array:
        return self.ppf(np.subtract(1.0, p))

    def support(self) -> tuple[float, float]:
        return 0.0, 1.0

    def mean(self) -> float:
        return 0.5

    def std(self) -> float:
        return math.sqrt(1 / 12)


@dataclass(frozen=True)
class UniformPlusNormal:
    """The sum of a standard normal quantity and one that is uniform between 0 and a width (Bhattacharjee, 1963).

    With G(z) = z Phi(z) + phi(z), the integral of Phi, its distribution function is (G(x) - G(x - width)) / width.
    """

    width: float

    def pdf(self, x: Array) -> Array:
        side = np.where(np.asarray(x) > self.width / 2, -1.0, 1.0)  # differences from the nearer end
        ends = scipy.special.ndtr(side * x) - scipy.special.ndtr(side * np.subtract(x, self.width))
        return np.asarray(np.abs(ends) / self.width)

    def logpdf(self, x: Array) -> Array:
        nearer = np.minimum(x, np.subtract(self.width, x))
        above, below = scipy.special.log_ndtr(nearer), scipy.special.log_ndtr(nearer - self.width)
        return np.asarray(above + np.log1p(-np.exp(below - above)) - math.log(self.width))

    def cdf(self, x: Array) -> Array:
        nearer = np.minimum(x, np.subtract(self.width, x))
        tail = (_integral(nearer) - _integral(nearer - self.width)) / self.width
        return np.where(np.asarray(x) > self.width / 2, 1 - tail, tail)

    def sf(self, x: Array) -> Array:
        return self.cdf(np.subtract(self.width, x))

    def ppf(self, p: Array) -> Array:
        p = np.asarray(p, float)
        upper = p > 0.5
        x = self._lower_quantile(np.where(upper, 1 - p, p))
        return np.where(upper, self.width - x, x)

    def _lower_quantile(self, p: Array) -> Array:
        """Solve for the logarithm of the distribution function, which is concave: steps come from below, by Newton."""
        close = CLOSE * (1 + 1 / self.width)  # differences over a narrow width lose digits
        with np.errstate(divide="ignore", invalid="ignore"):
            least, x = np.maximum(scipy.special.ndtri(p), -FARTHEST), p * self.width
            for _ in range(MOST_STEPS):
                below = self.cdf(x)
                step = (np.log(p) - np.log(below)) * below / np.maximum(self.pdf(x), LEAST_DENSITY)
                before, x = x, np.maximum(x + step, least)
                if not np.any(np.abs(x - before) > close * np.maximum(1.0, np.abs(x))):
                    break
        return np.where(p > 0, x, -math.inf)

    def isf(self, p: Array) -> Array:
        return self.width - self.ppf(p)

    def support(self) -> tuple[float, float]:
        return -math.inf, math.inf

    def mean(self) -> float:
        return self.width / 2

    def std(self) -> float:
        return math.sqrt(1 + self.width**2 / 12)


def _integral(z: Array) -> Array:
    """Return the integral of the normal distribution function up to some places: phi(z) + z Phi(z).

    In the lower tail, where its two terms cancel, it is the density times 1 - a M(a), a = -z, with the ratio M of tail
    and density (Mills): by the scaled error function where few digits cancel, and by a continued fraction beyond.
    """
    z = np.asarray(np.maximum(z, -FARTHEST))
    density = np.exp(-0.5 * np.square(z)) / math.sqrt(2 * math.pi)
    below = np.clip(-z, 0.0, FAR_BELOW)
    tail = np.asarray(1 - below * math.sqrt(math.pi / 2) * scipy.special.erfcx(below / math.sqrt(2)))
    far = (z < -FAR_BELOW) & (density > 0)
    if far.any():
        tail[far] = _far_ratio(-z[far])
    return np.asarray(density * tail + np.maximum(z, 0.0) * scipy.special.ndtr(z))


def _far_ratio(a: Array) -> Array:
    """Return 1 - a M(a) for Mills' ratio M = 1 / (a + 1 / (a + 2 / (a + ...))), from the end of the fraction."""
    fraction = a
    for term in range(TERMS, 1, -1):
        fraction = a + term / fraction
    return 1 / (1 + a * fraction)


class Located:
    """A standard distribution, stretched and shifted; what is asked for seldom, SciPy answers."""

    def __init__(self, standard: Any, scale: Any, shift: Any) -> None:
        self.standard, self.scale, self.shift = standard, scale, shift

    def _of_standard(self, x: Any) -> Array:
        return np.asarray((np.asarray(x) - self.shift) / self.scale)

    def pdf(self, x: Any) -> Array:
        return np.asarray(self.standard.pdf(self._of_standard(x)) / self.scale)

    def logpdf(self, x: Any) -> Array:
        return np.asarray(self.standard.logpdf(self._of_standard(x)) - np.log(self.scale))

    def cdf(self, x: Any) -> Array:
        return np.asarray(self.standard.cdf(self._of_standard(x)))

    def sf(self, x: Any) -> Array:
        return np.asarray(self.standard.sf(self._of_standard(x)))

    def ppf(self, p: Any) -> Array:
        return np.asarray(self.standard.ppf(p) * self.scale + self.shift)

    def isf(self, p: Any) -> Array:
        return np.asarray(self.standard.isf(p) * self.scale + self.shift)

    def support(self) -> tuple[Any, Any]:
        low, high = self.standard.support()
        return low * self.scale + self.shift, high * self.scale + self.shift

    def mean(self) -> Any:
        return self.standard.mean() * self.scale + self.shift

    def std(self) -> Any:
        return self.standard.std() * self.scale

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(getattr(scipy.stats, self.standard.of_scipy)(self.shift, self.scale), name)


class BinomialCounts:
    """The binomial distribution; what is asked for seldom, SciPy answers."""

    def __init__(self, trials: Any, chance: Any) -> None:
        self.trials, self.chance = trials, chance

    def pmf(self, successes: Any) -> Array:
        return np.asarray(np.exp(self.logpmf(successes)))

    def logpmf(self, successes: Any) -> Array:
        return log_binomial(successes, self.trials, self.chance)

    def support(self) -> tuple[Any, Any]:
        return np.zeros_like(self.trials), self.trials

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(scipy.stats.binom(self.trials, self.chance), name)


def binomial(successes: Any, trials: Any, chance: Any) -> Array:
    """Return the probability of so many successes."""
    return np.asarray(np.exp(log_binomial(successes, trials, chance)))


def log_binomial(successes: Any, trials: Any, chance: Any) -> Array:
    """Return the logarithm of a binomial probability to nearly all digits of the probability, by saddle points."""
    x, n, p = np.broadcast_arrays(*(np.asarray(number, float) for number in (successes, trials, chance)))
    possible = (x >= 0) & (x <= n) & (x == np.floor(x))
    x, q = np.where(possible, x, 0.0), 1 - p
    with np.errstate(divide="ignore", invalid="ignore"):
        rest = n - x
        logs = _stirling_error(n) - _stirling_error(x) - _stirling_error(rest) - _deviance(x, n * p)
        logs += -_deviance(rest, n * q) - 0.5 * (math.log(2 * math.pi) + np.log(x) + np.log1p(-x / n))
        at_ends = scipy.special.xlog1py(n, -p), scipy.special.xlogy(n, p)
    logs = np.where(x == 0, at_ends[0], np.where(rest == 0, at_ends[1], logs))
    logs = np.where((p > 0) & (p < 1) | (x == n * p), logs, -math.inf)
    return np.where(possible, logs, -math.inf)


STIRLING_ERRORS = np.array([
    0.0, 0.08106146679532726, 0.0413406959554093, 0.02767792568499834, 0.020790672103765093, 0.016644691189821193,
    0.013876128823070748, 0.01189670994589177, 0.010411265261972096, 0.009255462182712733, 0.00833056343336287,
    0.007573675487951841, 0.00694284010720953, 0.006408994188004207, 0.0059513701127588475, 0.005554733551962801,
])  # fmt: skip
"""The first ones; for larger numbers there is a series."""
FEW_FACTORS = len(STIRLING_ERRORS)
NEAR_MEAN = 0.1
ODD_SHARES = np.array([0.0, *(1 / np.arange(3.0, 20.0, 2.0))])


def _stirling_error(n: Array) -> Array:
    """Return the logarithm of n! over Stirling's approximation of it."""
    square = 1 / np.square(np.maximum(n, FEW_FACTORS))
    series = 1 / 12 - square * (1 / 360 - square * (1 / 1260 - square * (1 / 1680 - square / 1188)))
    small = STIRLING_ERRORS[np.minimum(n, FEW_FACTORS - 1).astype(int)]
    return np.where(n < FEW_FACTORS, small, series / np.maximum(n, FEW_FACTORS))


def _deviance(x: Array, mean: Array) -> Array:
    """Return x log(x / mean) + mean - x, without the loss of digits where the two are near each other."""
    ratio = (x - mean) / (x + mean)
    series = np.polynomial.polynomial.polyval(np.square(ratio), ODD_SHARES)
    near = (x - mean) * ratio + 2 * x * ratio * series
    return np.where(np.abs(ratio) < NEAR_MEAN, near, scipy.special.xlogy(x, x / mean) + mean - x)
