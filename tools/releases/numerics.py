"""Quadrature, and sums of bounded quantities that may sit at their ends: what closed values need beyond SciPy."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy.polynomial.legendre import leggauss, legval, legvander
from scipy.special import ndtr

legendre = cache(leggauss)
Function = Callable[[np.ndarray], np.ndarray]


def nodes(*edges: float, count: int = 64) -> tuple[np.ndarray, np.ndarray]:
    """Return the nodes and weights of Gauss-Legendre quadrature between each two neighbours of the edges."""
    unit, weights = legendre(count)
    starts, lengths = np.array(edges[:-1], float), np.diff(edges)
    x = starts[:, None] + lengths[:, None] * (unit + 1) / 2
    return x.ravel(), (lengths[:, None] * weights / 2).ravel()


def integral(f: Function, *edges: float) -> float:
    x, w = nodes(*edges)
    return float(w @ f(x))


def normal(x, mean=0.0, sd=1.0):
    return np.exp(-(((x - mean) / sd) ** 2) / 2) / (sd * np.sqrt(2 * np.pi))


def normal_window(low, high, mean, sd):
    """Return the probability of a normal quantity between two numbers, from the nearer end."""
    low, high = (np.asarray(low) - mean) / sd, (np.asarray(high) - mean) / sd
    flipped = low > 0
    return np.where(flipped, ndtr(-low) - ndtr(-high), ndtr(high) - ndtr(low))


def laplace_cdf(x, scale):
    tail = np.exp(-np.abs(x) / scale) / 2
    return np.where(x < 0, tail, 1 - tail)


def laplace_window(low, high, centre, scale):
    low, high = np.asarray(low) - centre, np.asarray(high) - centre
    flipped = low > 0
    return np.where(
        flipped,
        laplace_cdf(-low, scale) - laplace_cdf(-high, scale),
        laplace_cdf(high, scale) - laplace_cdf(low, scale),
    )


@cache
def _to_coefficients(degree: int) -> np.ndarray:
    """Return the matrix from values at Gauss-Legendre nodes to Legendre coefficients."""
    x, w = legendre(degree)
    return (legvander(x, degree - 1) * w[:, None]).T * (np.arange(degree) + 0.5)[:, None]


def _interpolation(degree: int, at: np.ndarray) -> np.ndarray:
    """Return the matrix from values at Gauss-Legendre nodes in [-1, 1] to values of their polynomial elsewhere."""
    return legvander(at, degree - 1) @ _to_coefficients(degree)


@dataclass
class BoundedSum:
    """The sum of n alike quantities in [low, low + width]: atoms at n low + m width, smooth densities in between.

    Every kink of the sum is at an atom's place, so a density on each panel is a polynomial through Gauss-Legendre
    nodes, and adding one more quantity is two fixed matrices: from the same panel and from the one before.
    """

    low: float
    width: float
    atoms: np.ndarray  # n + 1 of them
    panels: np.ndarray  # n panels, a row each

    @classmethod
    def of(cls, n: int, low: float, high: float, density: Function, at_low=0.0, at_high=0.0, degree=64) -> "BoundedSum":
        width = high - low
        x, _ = legendre(degree)
        u = width * (x + 1) / 2
        same, before = np.zeros((degree, degree)), np.zeros((degree, degree))
        for i in range(degree):
            t, w = nodes(0, u[i], count=degree + 16)
            same[i] = (w * density(low + t)) @ _interpolation(degree, 2 * (u[i] - t) / width - 1)
            t, w = nodes(u[i], width, count=degree + 16)
            before[i] = (w * density(low + t)) @ _interpolation(degree, 2 * (width + u[i] - t) / width - 1)
        atoms, panels, one = np.ones(1), np.zeros((0, degree)), density(low + u)
        for _ in range(n):
            more = np.zeros((len(panels) + 1, degree))
            more[:-1] += panels @ same.T + at_low * panels
            more[1:] += panels @ before.T + at_high * panels
            more += atoms[:, None] * one
            atoms, panels = np.convolve(atoms, [at_low, at_high]), more
        return cls(n * low, width, atoms, panels)

    def places(self) -> np.ndarray:
        return self.low + self.width * np.arange(len(self.atoms))

    @cached_property
    def coefficients(self) -> np.ndarray:
        """The Legendre coefficients of each panel's density, a column each."""
        return _to_coefficients(self.panels.shape[1]) @ self.panels.T

    def density(self, s: np.ndarray, panel: int = 0) -> np.ndarray:
        """Return the density at places within a panel."""
        return legval(2 * (s - self.places()[panel]) / self.width - 1, self.coefficients[:, panel])

    def expected(self, g: Function, cuts: Iterable[float] = ()) -> float:
        """Return the mean of a function of the sum that is smooth except at the cuts."""
        places = self.places()
        total = float(self.atoms @ g(places))
        for panel, start in enumerate(places[:-1]):
            inside = [cut for cut in cuts if start < cut < start + self.width]
            s, w = nodes(start, *sorted(inside), start + self.width, count=self.panels.shape[1])
            total += float((w * g(s)) @ self.density(s, panel))
        return total

    def window(self, low: float, high: float) -> float:
        """Return the probability that the sum lies between two numbers."""
        places = self.places()
        total = float(self.atoms[(places >= low) & (places <= high)].sum())
        for panel, start in enumerate(places[:-1]):
            left, right = max(low, start), min(high, start + self.width)
            if left < right:
                s, w = nodes(left, right)
                total += float(w @ self.density(s, panel))
        return total
