"""The standard normal distribution."""

import math

import numpy as np
import scipy

from privug.model.node import Array


class StandardNormal:
    """The normal distribution of mean 0 and deviation 1, as far as it is needed here, without the weight of SciPy's."""

    def pdf(self, x: Array) -> Array:
        """Return the density."""
        return np.asarray(np.exp(-0.5 * np.square(x)) / math.sqrt(2 * math.pi))

    def logpdf(self, x: Array) -> Array:
        """Return the natural logarithm of the density."""
        return np.asarray(-0.5 * np.square(x) - 0.5 * math.log(2 * math.pi))

    def cdf(self, x: Array) -> Array:
        """Return the probability of values up to x."""
        return np.asarray(scipy.special.ndtr(x))

    def sf(self, x: Array) -> Array:
        """Return the probability of values above x."""
        return np.asarray(scipy.special.ndtr(np.negative(x)))

    def ppf(self, p: Array) -> Array:
        """Return quantiles."""
        return np.asarray(scipy.special.ndtri(p))

    def isf(self, p: Array) -> Array:
        """Return quantiles counted from above."""
        return -self.ppf(p)

    def support(self) -> tuple[float, float]:
        """Return the smallest and the largest value."""
        return -math.inf, math.inf

    def mean(self) -> float:
        """Return the expected value."""
        return 0.0

    def std(self) -> float:
        """Return the standard deviation."""
        return 1.0
