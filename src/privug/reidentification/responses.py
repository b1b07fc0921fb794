"""Expected values of functions of the number of matching rows, when that is binomial given the person's own values.

Let x be the chance that another row matches the person's. It is a product of independent factors, one for each
block of columns, so that E[x^-s] is a product too. A function h(x) with h(0) = 1 is the integral

    h(x) = 1 + 1/(2 pi i) * integral over Re s = -1/2 of K(s) x^-s ds

with the Mellin transform K of h - 1. So E[h(x)] needs no list of all combinations of values: the integrand falls off
exponentially along the line, and the trapezoidal rule has all digits. Where combinations are few they are listed.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce
from itertools import pairwise

import numpy as np
import scipy

from privug.model.node import Array
from privug.reidentification.laws import NoClosedForm

STEP = 0.06  # images of the trapezoidal rule are smaller by exp(-pi / STEP)
NODES = np.arange(500) * STEP
LINE = -0.5 + 1j * NODES
FEWEST_ROWS = 100  # with fewer, the transform falls off too slowly
MOST_AT_ONCE = 2_000
MOST_LISTED = 4_000_000
MOST_TERMS = 200_000_000


@dataclass(frozen=True, eq=False)
class Factor:
    """Values of a block of columns: how likely the person has them, and the chance that a row of each kind does."""

    weights: Array
    chances: Array  # a line for each value, a column for each kind of rows

    def merged(self) -> "Factor":
        """Return the factor with values of equal chances taken together, up to rounding."""
        if len(self.weights) == 1 or self.chances.shape[1] > 4:
            return self
        mantissa, exponent = np.frexp(self.chances)
        rounded = np.ldexp(np.round(mantissa * 2.0**40), exponent)
        if rounded.shape[1] == 1:
            rounded = rounded[:, 0]
        _, first, inverse = np.unique(rounded, axis=0, return_index=True, return_inverse=True)
        return Factor(np.bincount(inverse.reshape(-1), self.weights, len(first)), self.chances[first])

    @cached_property
    def moments(self) -> Array:
        """E[x^-s] along the line of integration, for one kind of rows."""
        x = self.chances[:, 0]
        held = x > 0
        logs = np.log(x[held])
        total = np.zeros(len(LINE), complex)
        for start in range(0, len(logs), 4096):
            part = slice(start, start + 4096)
            total += (self.weights[held][part] * np.exp(0.5 * logs[part])) @ np.exp(-1j * np.outer(logs[part], NODES))
        return total

    @cached_property
    def mean(self) -> Array:
        """The expected chance, for each kind of rows."""
        return np.asarray(self.weights @ self.chances)


def product(factors: Sequence[Factor]) -> Factor:
    """Return all combinations of the values of some factors."""
    kinds = factors[0].chances.shape[1]
    if math.prod(len(factor.weights) for factor in factors) * kinds > MOST_LISTED * 2:
        raise NoClosedForm("the columns have too many combinations of values to list")

    def both(left: Factor, right: Factor) -> Factor:
        weights = np.multiply.outer(left.weights, right.weights).reshape(-1)
        chances = left.chances[:, None, :] * right.chances[None, :, :]
        return Factor(weights, chances.reshape(len(weights), -1)).merged()

    return reduce(both, factors)


class Response(ABC):
    """A function of how many rows there are of each kind and of their chances to match; one where these are zero."""

    @abstractmethod
    def of_chances(self, counts: Array, chances: Array) -> Array:
        """Return its values for lines of chances, all kinds of rows together."""

    @abstractmethod
    def transform(self, rows: int) -> Array:
        """Return its Mellin transform, less one, along the line, for a number of rows of one kind."""

    def expected(self, factors: Sequence[Factor], counts: Array, chances: Array) -> float:
        """Return its expected value over the person's values and the numbers of rows."""
        combinations = math.prod(len(factor.weights) for factor in factors)
        if combinations > MOST_AT_ONCE and counts.shape[1] == 1 and int(counts.min()) >= FEWEST_ROWS:
            return self._by_transform(factors, counts[:, 0], chances)
        if combinations * counts.size > MOST_TERMS:
            raise NoClosedForm("the columns have too many combinations of values to list")
        everything = product(factors)
        values = [
            chance * self.of_chances(line, everything.chances) for line, chance in zip(counts, chances, strict=True)
        ]
        return min(1.0, float(everything.weights @ np.sum(values, axis=0)))

    def _by_transform(self, factors: Sequence[Factor], rows: Array, chances: Array) -> float:
        kernel = np.sum([chance * self.transform(int(n)) for n, chance in zip(rows, chances, strict=True)], axis=0)
        integrand = (kernel * np.prod([factor.moments for factor in factors], axis=0)).real
        total = float(np.prod([factor.weights.sum() for factor in factors]))
        return min(1.0, max(0.0, total + STEP / math.pi * float(integrand.sum() - integrand[0] / 2)))


class NoneMatches(Response):
    """The probability that none of the rows matches: the product of (1 - x)^n over the kinds."""

    def of_chances(self, counts: Array, chances: Array) -> Array:
        return np.asarray(np.exp(scipy.special.xlog1py(counts, -chances).sum(axis=1)))

    def transform(self, rows: int) -> Array:
        return _beta(0, rows + 1)


class OneOfMatching(Response):
    """The expected value of 1 / (1 + m) for m matching rows: (1 - (1 - x)^(n + 1)) / ((n + 1) x) for one kind."""

    def of_chances(self, counts: Array, chances: Array) -> Array:
        if counts.size > 1:
            return self._integrated(counts, chances)
        n, x = int(counts[0]), chances[:, 0]
        with np.errstate(divide="ignore", invalid="ignore"):
            values = -np.expm1(scipy.special.xlog1py(n + 1, -x)) / ((n + 1) * x)
        return np.where(x > 0, values, 1.0)

    @staticmethod
    def _integrated(counts: Array, chances: Array) -> Array:
        """Integrate the probability generating function of the number of matching rows from 0 to 1."""
        return np.asarray(sum(weight * _generating(z, counts, chances) for z, weight in _quadrature()))

    def transform(self, rows: int) -> Array:
        return -_beta(-1, rows + 2) / (rows + 1)


@lru_cache(maxsize=512)
def _beta(shift: int, n: int) -> Array:
    """Return the beta function B(s + shift, n) along the line, for n of 100 or more."""
    # The difference of two log gamma functions of large numbers would have few digits.
    s = LINE + shift
    drop = (n - 0.5) * scipy.special.log1p(s / n) + s * np.log(n + s) - s + _stirling(n + s) - _stirling(n)
    return np.asarray(np.exp(scipy.special.loggamma(s) - drop))


def _stirling(z: Array | int) -> Array:
    """Return what Stirling's formula leaves out of the log gamma function."""
    inverse = 1.0 / np.asarray(z)
    return inverse * (1 / 12 - inverse**2 * (1 / 360 - inverse**2 * (1 / 1260 - inverse**2 / 1680)))


def expected_share(counts: Array, matches: Array, shares: Array) -> Array:
    """Return the expected share of matching rows that have the person's secret, for lines of chances of each kind.

    The person's own row counts. With k of the others of one kind sharing the secret, E[k / (1 + m)] is the integral of
    z times the generating function of the rest.
    """
    total = np.zeros(len(matches))
    for z, weight in _quadrature():
        others = np.where(counts > 0, shares / (1 - matches * (1 - z)), 0.0) @ counts
        total += weight * _generating(z, counts, matches) * (1 + z * others)
    return np.minimum(total, 1.0)


def _generating(z: float, counts: Array, chances: Array) -> Array:
    """Return E[z^m] for m matching rows."""
    return np.asarray(np.exp(scipy.special.xlog1py(counts, -(1 - z) * chances).sum(axis=1)))


@lru_cache(maxsize=1)
def _quadrature() -> tuple[tuple[float, float], ...]:
    """Return nodes and weights from 0 to 1, in panels that halve towards 1, where a function of many rows is steep."""
    points, weights = np.polynomial.legendre.leggauss(24)
    edges = [0.0, *(1 - 0.5 ** np.arange(1, 36)), 1.0]
    return tuple(
        (float(low + (high - low) * (point + 1) / 2), float(weight * (high - low) / 2))
        for low, high in pairwise(edges)
        for point, weight in zip(points, weights, strict=True)
    )
