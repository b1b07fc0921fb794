"""Standard distributions with the methods of SciPy's frozen ones, but without their weight."""

import math
from typing import Any

import numpy as np
import scipy

from privug.model.node import Array


class StandardNormal:
    """The normal distribution of mean 0 and deviation 1, as far as it is needed here."""

    def pdf(self, x: Array) -> Array:
        return np.asarray(np.exp(-0.5 * np.square(x)) / math.sqrt(2 * math.pi))

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


def density_of(distribution: Any, values: Array) -> Array:
    """Return the density of one of SciPy's distributions, infinite where it is too large for a float."""
    try:
        return np.asarray(distribution.pdf(values))
    except OverflowError:  # raised for betas that are nearly all at their ends
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(distribution.logpdf(values)))
