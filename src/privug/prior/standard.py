"""Standard distributions with the methods of SciPy's frozen ones, but without their weight."""

import math
from typing import Any

import numpy as np
import scipy

from privug.model.node import Array

MOST_STEPS, CLOSE, LEAST_DENSITY = 100, 4e-16, 1e-300
FARTHEST = 39.0  # deviations: beyond, nothing is left in floats


class StandardNormal:
    """The normal distribution of mean 0 and deviation 1, as far as it is needed here."""

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


class StandardUniform:
    """The uniform distribution between 0 and 1, as far as it is needed here."""

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


class UniformPlusNormal:
    """The sum of a standard normal quantity and one that is uniform between 0 and a width (Bhattacharjee, 1963).

    With G(z) = z Phi(z) + phi(z), the integral of Phi, its distribution function is (G(x) - G(x - width)) / width.
    """

    def __init__(self, width: float) -> None:
        self.width = width

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
        low = np.clip(scipy.special.ndtri(p), -FARTHEST, FARTHEST)
        high = low + self.width
        x = low + p * self.width
        for _ in range(MOST_STEPS):  # Newton's, within what is left of the interval
            excess = self.cdf(x) - p
            low, high = np.where(excess < 0, x, low), np.where(excess < 0, high, x)
            step = x - excess / np.maximum(self.pdf(x), LEAST_DENSITY)
            step = np.where((low < step) & (step < high), step, low + (high - low) / 2)
            if np.all(np.abs(step - x) <= CLOSE * np.maximum(1.0, np.abs(x))):
                break
            x = step
        return np.where(p > 0, np.where(p < 1, x, math.inf), -math.inf)

    def isf(self, p: Array) -> Array:
        return self.width - self.ppf(p)

    def support(self) -> tuple[float, float]:
        return -math.inf, math.inf

    def mean(self) -> float:
        return self.width / 2

    def std(self) -> float:
        return math.sqrt(1 + self.width**2 / 12)


def _integral(z: Array) -> Array:
    """Return the integral of the normal distribution function up to some places.

    In the lower tail, where its two terms cancel, it is a parabolic cylinder function.
    """
    z = np.maximum(z, -FARTHEST)
    whole = z * scipy.special.ndtr(z) + np.exp(-0.5 * np.square(z)) / math.sqrt(2 * math.pi)
    tail = np.exp(-0.25 * np.square(z)) / math.sqrt(2 * math.pi) * scipy.special.pbdv(-2.0, np.maximum(-z, 1.0))[0]
    return np.where(z < -1.0, tail, whole)


def density_of(distribution: Any, values: Array) -> Array:
    """Return the density of one of SciPy's distributions, infinite where it is too large for a float."""
    try:
        return np.asarray(distribution.pdf(values))
    except OverflowError:  # raised for betas that are nearly all at their ends
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(distribution.logpdf(values)))
