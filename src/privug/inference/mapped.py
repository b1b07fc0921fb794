"""The density of a monotone function of a quantity whose density is known."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from privug.errors import ArgumentError
from privug.inference.density import Analytic, Tabulated, followed, resolved
from privug.model.node import Array

FARTHEST = 1e100  # values beyond are those of an endless tail
SAME_POWER = 1e-6  # by which the powers that a tail follows at two places may differ
STEEPER = 1e-3  # than 1 / x: that a tail must be to be sure of its integral
FADED = 1e-12  # a density times the width of its range that is as good as none

Function = Callable[[Array], Array]


class NoSuchMoment(ArgumentError):
    """An expected value that does not exist."""


def beyond(function: Function, end: float) -> float:
    """Return the integral of a function beyond a far end, where it falls like a power of the distance from zero."""
    values = np.asarray(function(end * 0.5 ** np.arange(3)), float)
    with np.errstate(divide="ignore", invalid="ignore"):
        powers = np.log2(np.abs(values[:-1] / values[1:]))
    if not (abs(powers[0] - powers[1]) < SAME_POWER and powers[0] < -1 - STEEPER):
        raise NoSuchMoment("this expected value does not exist: the tails are too heavy; ask for median()")
    return float(abs(end) * values[0] / (-1 - powers[0]))


@dataclass(frozen=True, eq=False)
class Mapped:
    """The distribution of an increasing or decreasing function of a quantity, which has a density.

    `inverse` takes values of the function back; `slope` is its derivative at values of the quantity. The result is
    stretched by `scale`, which may be negative, and shifted.
    """

    base: "Analytic | Tabulated"
    function: Function
    inverse: Function
    slope: Function
    rising: bool
    scale: float = 1.0
    shift: float = 0.0

    @property
    def _upward(self) -> bool:
        return self.rising == (self.scale > 0)

    def _image(self, x: Array) -> Array:
        low, high = self.base.edges[0], self.base.edges[-1]
        return self.shift + self.scale * self.function(np.clip(x, low, high))

    def _back(self, y: Array) -> Array:
        return self.inverse((y - self.shift) / self.scale)

    @cached_property
    def support(self) -> tuple[float, float]:
        """The smallest and the largest value."""
        low, high = np.sort(self._image(np.array([self.base.edges[0], self.base.edges[-1]])))
        return float(low), float(high)

    def pdf(self, y: Array) -> Array:
        """Return the density."""
        with np.errstate(over="ignore"):  # a density may be infinite at an end
            return np.asarray(np.exp(self.logpdf(y)))

    def logpdf(self, y: Array) -> Array:
        """Return the natural logarithm of the density."""
        flat = np.asarray(y, float).reshape(-1)
        inside = (flat >= self.support[0]) & (flat <= self.support[1])
        logs = np.full(flat.shape, -np.inf)
        x = self._back(flat[inside])
        with np.errstate(divide="ignore"):
            found = self.base.logpdf(x) - np.log(np.abs(self.slope(x) * self.scale))
        logs[inside] = np.where(np.isnan(found), -np.inf, found)
        return logs.reshape(np.shape(y))

    def mass(self, low: Array, high: Array) -> Array:
        """Return the probability of the interval from `low` to `high`."""
        start, end = np.broadcast_arrays(np.asarray(low, float), np.asarray(high, float))
        ends = [self._back(np.clip(side, *self.support).reshape(-1)) for side in (start, end)]
        first, last = ends if self._upward else ends[::-1]
        share = np.where((end < start).reshape(-1), 0.0, self.base.mass(first, np.maximum(first, last)))
        return np.asarray(share.reshape(start.shape))

    def quantile(self, p: Array) -> Array:
        """Return the value that is not exceeded with probability p."""
        p = np.asarray(p, float)
        return self._image(np.asarray(self.base.quantile(p if self._upward else 1 - p)))

    def mean(self) -> float | None:
        """Return nothing: the mean follows from the panels."""
        return None

    def std(self) -> float | None:
        """Return nothing: the standard deviation follows from the panels."""
        return None

    @cached_property
    def breaks(self) -> Array:
        """The points between which the density is smooth, infinite ends included."""
        inner = np.unique(self._image(self.base.breaks))
        ends = self.base.edges[[0, -1]]
        # A table that has faded at its end stands for a tail that goes on: moments need not exist.
        faded = self.base.pdf(ends) * (ends[1] - ends[0]) < FADED
        endless = (np.isinf(self.base.breaks[[0, -1]]) | faded)[:: 1 if self._upward else -1]
        first, last = -np.inf if endless[0] else inner[0], np.inf if endless[1] else inner[-1]
        return np.array([first, *inner[1:-1], last])

    @cached_property
    def edges(self) -> Array:
        """The panels on which the density is a polynomial but for rounding."""
        known = np.unique(self._image(self.base.edges))
        around = known[np.abs(known) < FARTHEST]
        ends = np.where(np.abs(self.support) < FARTHEST, self.support, [-np.inf, np.inf])
        if np.isfinite(ends).all():
            return resolved(self.pdf, around)[0]
        return resolved(self.pdf, np.union1d(around, followed(self, np.array([ends[0], *around, ends[1]]))))[0]

    def affine(self, scale: float, shift: float) -> "Mapped":
        """Return the distribution of a linear function."""
        return Mapped(
            self.base,
            self.function,
            self.inverse,
            self.slope,
            self.rising,
            self.scale * scale,
            shift + scale * self.shift,
        )

    def restricted(self, low: float, high: float) -> "Mapped | None":
        """Return the distribution given an interval; None if that has no probability."""
        low, high = max(low, self.support[0]), min(high, self.support[1])
        if not low < high:
            return None
        start, end = sorted(float(x) for x in self._back(np.array([low, high])))
        base = self.base.restricted(start, end)
        if base is None:
            return None
        return Mapped(base, self.function, self.inverse, self.slope, self.rising, self.scale, self.shift)


Density = Analytic | Tabulated | Mapped
