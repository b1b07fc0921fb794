"""Characteristic functions of measures on panels, and of their exponentially tilted ones.

On a panel the transform of a Legendre polynomial is a spherical Bessel function, so that it is known at every
frequency, however fast the oscillation.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from privug.inference.density import NODES, coefficients, panel_nodes
from privug.inference.effort import spend
from privug.inference.exact.curves.panels import Panels
from privug.model.node import Array

SLOW = 0.05  # half a panel times the frequency: below, moments are enough
FAST = 24.0  # the same: above, the recurrence of Bessel functions runs upwards
MOMENTS = 10
FIRST_ORDER = 64  # from which the recurrence runs downwards
SMALL = 1e-150  # what it starts with
STEEP = 4.0  # by how much an exponent may change on a panel
MOST_PIECES = 64
RELATIVE = 1e-13  # of the largest coefficient: what is more in the last ones is no polynomial
NOTHING = 1e-20  # of a tilted probability
COST_OF_ANGLE = 500.0  # elementary operations
MOST_ENTRIES = 1 << 20

_STANDARD, _WEIGHTS = (array[0] for array in panel_nodes(np.array([-1.0, 1.0])))


@dataclass(frozen=True, eq=False)
class Term:
    """Independent copies of a quantity with a density, which has a share of the probability, and with atoms."""

    panels: Panels | None
    share: float
    atoms: Array
    masses: Array
    count: int

    @cached_property
    def _cells(self) -> tuple[Array, Array]:
        """Values and probabilities that stand for the distribution under smooth functions."""
        if self.panels is None:
            return self.atoms, self.masses
        nodes, widths = panel_nodes(self.panels.edges)
        masses = self.share * np.maximum(self.panels.values, 0.0) * widths
        values, shares = np.append(nodes.reshape(-1), self.atoms), np.append(masses.reshape(-1), self.masses)
        return values[shares > 0], shares[shares > 0]

    @property
    def support(self) -> tuple[float, float]:
        """The smallest and the largest value of one copy; infinite if the tails go on."""
        ends = [(float(self.atoms[0]), float(self.atoms[-1]))] if len(self.atoms) else []
        if self.panels is not None:
            low, high = self.panels.open_ends
            edges = self.panels.edges
            ends.append((-math.inf if low else float(edges[0]), math.inf if high else float(edges[-1])))
        return min(low for low, _ in ends), max(high for _, high in ends)

    def cumulant(self, u: float) -> tuple[float, float, float]:
        """Return log E exp(u x) of all copies, and its first two derivatives."""
        values, masses = self._cells
        exponents = u * values
        largest = float(exponents.max())
        weights = masses * np.exp(exponents - largest)
        total = float(weights.sum())
        mean = float(weights @ values) / total
        spread = float(weights @ (values - mean) ** 2) / total
        return self.count * (largest + math.log(total)), self.count * mean, self.count * spread

    def tilted(self, u: float) -> "Term":
        """Return the distribution whose density is proportional to exp(u x) times the density."""
        if u == 0:
            return self
        values, masses = self._cells
        largest = float((u * values).max())
        total = float(masses @ np.exp(u * values - largest))
        atoms = self.masses * np.exp(u * self.atoms - largest) / total
        if self.panels is None:
            return replace(self, masses=atoms)
        panels = _tilted(self.panels, u, largest)
        return Term(replace(panels, values=panels.values * (self.share / total)), 1.0, self.atoms, atoms, self.count)

    def transform(self, t: Array) -> Array:
        """Return the characteristic function of one copy."""
        result = np.exp(1j * np.multiply.outer(t, self.atoms)) @ self.masses.astype(complex)
        if self.panels is not None:
            result = result + self.share * panel_transform(self.panels, t)
        return np.asarray(result)


def _tilted(panels: Panels, u: float, largest: float) -> Panels:
    """Return panels times exp(u x - largest), halved where that is no polynomial; elsewhere nodes keep their digits."""
    values = panels.values * np.exp(u * panel_nodes(panels.edges)[0] - largest)
    sizes = np.abs(coefficients(values))
    rough = sizes[:, -3:].max(axis=1) > RELATIVE * sizes.max(axis=1)
    rough &= sizes[:, 0] * np.diff(panels.edges) > NOTHING
    if not rough.any():
        return replace(panels, values=values)
    widths = np.diff(panels.edges)
    pieces = np.where(rough, np.minimum(np.maximum(2, np.ceil(np.abs(u) * widths / STEEP)), MOST_PIECES), 1).astype(int)
    steps = np.arange(pieces.sum()) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    starts = np.repeat(panels.edges[:-1], pieces) + steps * np.repeat(widths / pieces, pieces)
    edges = np.append(starts, panels.edges[-1])
    nodes = panel_nodes(edges)[0]
    table = np.repeat(values, pieces, axis=0)
    fresh = np.repeat(rough, pieces)
    found = panels.at(nodes[fresh].reshape(-1)).reshape(-1, NODES)
    table[fresh] = np.maximum(found, 0.0) * np.exp(u * nodes[fresh] - largest)
    return replace(panels, edges=edges, values=table)


def product(terms: Sequence[Term], t: Array) -> Array:
    """Return the characteristic function of the sum of all copies of all terms."""
    result = np.ones(len(t), complex)
    for term in terms:
        result *= term.transform(t) ** term.count
    return result


def panel_transform(panels: Panels, t: Array) -> Array:
    """Return the Fourier transform of a density on panels."""
    spend(COST_OF_ANGLE * len(t) * len(panels.edges))
    result = np.zeros(len(t), complex)
    half, middle = np.diff(panels.edges) / 2, (panels.edges[1:] + panels.edges[:-1]) / 2
    step = max(1, MOST_ENTRIES // max(len(t), 1))
    for start in range(0, len(half), step):
        few = slice(start, start + step)
        angle = np.multiply.outer(t, half[few])
        found = _oscillating(panels, np.arange(len(half))[few], angle)
        result += ((2 * half[few]) * found * np.exp(1j * np.multiply.outer(t, middle[few]))).sum(axis=1)
    return result


def _oscillating(panels: Panels, index: Array, angle: Array) -> Array:
    """Return the mean over each panel of the density times exp(i angle s), s from -1 to 1."""
    size = np.abs(angle)
    result = np.empty(angle.shape, complex)
    column = np.broadcast_to(index, angle.shape)
    slow, fast = size < SLOW, size > FAST
    for where, rule in ((slow, _by_moments), (fast, _upwards), (~slow & ~fast, _downwards)):
        if where.any():
            result[where] = rule(panels, column[where], size[where])
    return np.where(angle < 0, np.conj(result), result)


def _by_moments(panels: Panels, column: Array, angle: Array) -> Array:
    powers = _STANDARD[:, np.newaxis] ** np.arange(MOMENTS)
    moments = (panels.values @ (powers * (_WEIGHTS / 2)[:, np.newaxis])) / [math.factorial(m) for m in range(MOMENTS)]
    moments = np.ascontiguousarray(moments.T)
    even, odd = np.zeros(len(angle)), np.zeros(len(angle))
    square = -(angle**2)
    for m in range(MOMENTS - 2, -2, -2):
        even = even * square + moments[m][column]
        odd = odd * square + moments[m + 1][column]
    return np.asarray(even + 1j * angle * odd)


_SIGNS = np.array([1.0, 1.0, -1.0, -1.0])  # of i^k, real for even k


def _upwards(panels: Panels, column: Array, angle: Array) -> Array:
    parts = [np.zeros(len(angle)), np.zeros(len(angle))]
    sine, inverse = np.sin(angle), 1 / angle
    before = np.cos(angle) * inverse  # the spherical Bessel function of order -1
    now = sine * inverse
    for k in range(NODES):
        parts[k % 2] += _SIGNS[k % 4] * panels.columns[k][column] * now
        before, now = now, (2 * k + 1) * inverse * now - before
    return np.asarray(parts[0] + 1j * parts[1])


def _downwards(panels: Panels, column: Array, angle: Array) -> Array:
    """Sum from high orders down, where the recurrence is stable; its scale follows from sum (2k + 1) j_k^2 = 1."""
    parts = [np.zeros(len(angle)), np.zeros(len(angle))]
    inverse = 1 / angle
    above, now, norm = np.zeros(len(angle)), np.full(len(angle), SMALL), np.zeros(len(angle))
    for k in range(FIRST_ORDER, -1, -1):
        norm += (2 * k + 1) * now * now
        if k < NODES:
            parts[k % 2] += _SIGNS[k % 4] * panels.columns[k][column] * now
        above, now = now, (2 * k + 1) * inverse * now - above
    return np.asarray((parts[0] + 1j * parts[1]) / np.sqrt(norm))
