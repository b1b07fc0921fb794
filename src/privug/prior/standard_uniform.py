"""The standard uniform distribution."""

import math

import numpy as np

from privug.model.node import Array


class StandardUniform:
    """The uniform distribution between 0 and 1, as far as it is needed here, without the weight of SciPy's."""

    def pdf(self, x: Array) -> Array:
        """Return the density."""
        return np.where((np.asarray(x) >= 0) & (np.asarray(x) <= 1), 1.0, 0.0)

    def logpdf(self, x: Array) -> Array:
        """Return the natural logarithm of the density."""
        return np.where((np.asarray(x) >= 0) & (np.asarray(x) <= 1), 0.0, -np.inf)

    def cdf(self, x: Array) -> Array:
        """Return the probability of values up to x."""
        return np.clip(x, 0.0, 1.0)

    def sf(self, x: Array) -> Array:
        """Return the probability of values above x."""
        return np.clip(np.subtract(1.0, x), 0.0, 1.0)

    def ppf(self, p: Array) -> Array:
        """Return quantiles."""
        return np.clip(p, 0.0, 1.0)

    def isf(self, p: Array) -> Array:
        """Return quantiles counted from above."""
        return self.ppf(np.subtract(1.0, p))

    def support(self) -> tuple[float, float]:
        """Return the smallest and the largest value."""
        return 0.0, 1.0

    def mean(self) -> float:
        """Return the expected value."""
        return 0.5

    def std(self) -> float:
        """Return the standard deviation."""
        return math.sqrt(1 / 12)
