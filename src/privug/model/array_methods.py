"""What an array of numbers offers as methods, by way of the NumPy functions of the same names."""

from collections.abc import Callable
from typing import Any, Self

import numpy as np


class ArrayMethods:
    """The methods of a NumPy array, for a class on which NumPy's functions work."""

    __slots__ = ()

    @property
    def T(self) -> Self:
        """The transpose of one value."""
        return self._call(np.transpose)

    def _call(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Self:
        result: Self = function(self, *arguments, **options)
        return result

    def sum(self, axis: Any = None) -> Self:
        """Return the sum of the elements."""
        return self._call(np.sum, axis=axis)

    def mean(self, axis: Any = None) -> Self:
        """Return the mean of the elements."""
        return self._call(np.mean, axis=axis)

    def std(self, axis: Any = None, ddof: int = 0) -> Self:
        """Return the standard deviation of the elements."""
        return self._call(np.std, axis=axis, ddof=ddof)

    def var(self, axis: Any = None, ddof: int = 0) -> Self:
        """Return the variance of the elements."""
        return self._call(np.var, axis=axis, ddof=ddof)

    def min(self, axis: Any = None) -> Self:
        """Return the smallest element."""
        return self._call(np.min, axis=axis)

    def max(self, axis: Any = None) -> Self:
        """Return the largest element."""
        return self._call(np.max, axis=axis)

    def prod(self, axis: Any = None) -> Self:
        """Return the product of the elements."""
        return self._call(np.prod, axis=axis)

    def any(self, axis: Any = None) -> Self:
        """Say whether any element is true."""
        return self._call(np.any, axis=axis)

    def all(self, axis: Any = None) -> Self:
        """Say whether all elements are true."""
        return self._call(np.all, axis=axis)

    def cumsum(self, axis: Any = None) -> Self:
        """Return the running sums of the elements."""
        return self._call(np.cumsum, axis=axis)

    def argmin(self) -> Self:
        """Return the position of the smallest element."""
        return self._call(np.argmin)

    def argmax(self) -> Self:
        """Return the position of the largest element."""
        return self._call(np.argmax)

    def dot(self, other: Any) -> Self:
        """Return the dot product with another array."""
        return self._call(np.dot, other)

    def clip(self, low: Any = None, high: Any = None) -> Self:
        """Return the value, or the bound it lies beyond."""
        return self._call(np.clip, low, high)

    def round(self, decimals: int = 0) -> Self:
        """Return the value rounded as NumPy rounds."""
        return self._call(np.round, decimals)

    def reshape(self, *shape: Any) -> Self:
        """Return the elements in another shape."""
        return self._call(np.reshape, shape[0] if len(shape) == 1 else shape)

    def ravel(self) -> Self:
        """Return the elements in one row."""
        return self._call(np.ravel)

    def copy(self) -> Self:
        """Return the same quantity: random variables never change."""
        return self
