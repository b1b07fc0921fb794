"""The density of a sum of many quantities, from the product of their characteristic functions.

On a panel the transform of a Legendre polynomial is a spherical Bessel function, so that it is known at every
frequency, however fast the oscillation. A Fourier series has the same absolute error everywhere, which leaves nothing
of a density of 1e-13. So the sum is also computed with every term tilted exponentially, once for each tail: at the
saddlepoint, where the tilted sum has its mean at a value of small probability. Tilting back gives digits there; each
place takes the value of least error.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from privug.inference.measure.density import NODES, POINTS, WEIGHTS, coefficients, panel_nodes, split_panels
from privug.inference.measure.piecewise_polynomial import PiecewisePolynomial, merged
from privug.inference.workload import spend
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


@dataclass(frozen=True, eq=False)
class SumTerm:
    """Independent copies of a quantity with a density, which has a share of the probability, and with atoms."""

    panels: PiecewisePolynomial | None
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

    def tilted(self, u: float) -> "SumTerm":
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
        return SumTerm(replace(panels, values=panels.values * (self.share / total)), 1.0, self.atoms, atoms, self.count)

    def transform(self, t: Array) -> Array:
        """Return the characteristic function of one copy."""
        result = np.exp(1j * np.multiply.outer(t, self.atoms)) @ self.masses.astype(complex)
        if self.panels is not None:
            result = result + self.share * panel_transform(self.panels, t)
        return np.asarray(result)


def _tilted(panels: PiecewisePolynomial, u: float, largest: float) -> PiecewisePolynomial:
    """Return panels times exp(u x - largest), halved where that is no polynomial; elsewhere nodes keep their digits."""
    values = panels.values * np.exp(u * panel_nodes(panels.edges)[0] - largest)
    sizes = np.abs(coefficients(values))
    rough = sizes[:, -3:].max(axis=1) > RELATIVE * sizes.max(axis=1)
    rough &= sizes[:, 0] * np.diff(panels.edges) > NOTHING
    if not rough.any():
        return replace(panels, values=values)
    widths = np.diff(panels.edges)
    pieces = np.where(rough, np.minimum(np.maximum(2, np.ceil(np.abs(u) * widths / STEEP)), MOST_PIECES), 1).astype(int)
    edges = split_panels(panels.edges, pieces)
    nodes = panel_nodes(edges)[0]
    table = np.repeat(values, pieces, axis=0)
    fresh = np.repeat(rough, pieces)
    found = panels.at(nodes[fresh].reshape(-1)).reshape(-1, NODES)
    table[fresh] = np.maximum(found, 0.0) * np.exp(u * nodes[fresh] - largest)
    return replace(panels, edges=edges, values=table)


def product(terms: Sequence[SumTerm], t: Array) -> Array:
    """Return the characteristic function of the sum of all copies of all terms."""
    result = np.ones(len(t), complex)
    for term in terms:
        result *= term.transform(t) ** term.count
    return result


def panel_transform(panels: PiecewisePolynomial, t: Array) -> Array:
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


def _oscillating(panels: PiecewisePolynomial, index: Array, angle: Array) -> Array:
    """Return the mean over each panel of the density times exp(i angle s), s from -1 to 1."""
    size = np.abs(angle)
    result = np.empty(angle.shape, complex)
    column = np.broadcast_to(index, angle.shape)
    slow, fast = size < SLOW, size > FAST
    for where, rule in ((slow, _by_moments), (fast, _upwards), (~slow & ~fast, _downwards)):
        if where.any():
            result[where] = rule(panels, column[where], size[where])
    return np.where(angle < 0, np.conj(result), result)


def _by_moments(panels: PiecewisePolynomial, column: Array, angle: Array) -> Array:
    powers = POINTS[:, np.newaxis] ** np.arange(MOMENTS)
    moments = (panels.values @ (powers * (WEIGHTS / 2)[:, np.newaxis])) / [math.factorial(m) for m in range(MOMENTS)]
    moments = np.ascontiguousarray(moments.T)
    even, odd = np.zeros(len(angle)), np.zeros(len(angle))
    square = -(angle**2)
    for m in range(MOMENTS - 2, -2, -2):
        even = even * square + moments[m][column]
        odd = odd * square + moments[m + 1][column]
    return np.asarray(even + 1j * angle * odd)


_SIGNS = np.array([1.0, 1.0, -1.0, -1.0])  # of i^k, real for even k


def _upwards(panels: PiecewisePolynomial, column: Array, angle: Array) -> Array:
    parts = [np.zeros(len(angle)), np.zeros(len(angle))]
    sine, inverse = np.sin(angle), 1 / angle
    before = np.cos(angle) * inverse  # the spherical Bessel function of order -1
    now = sine * inverse
    for k in range(NODES):
        parts[k % 2] += _SIGNS[k % 4] * panels.columns[k][column] * now
        before, now = now, (2 * k + 1) * inverse * now - before
    return np.asarray(parts[0] + 1j * parts[1])


def _downwards(panels: PiecewisePolynomial, column: Array, angle: Array) -> Array:
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


VANISHING = 1e-17  # a characteristic function below this does not show in the density
BEYOND = 50.0  # windows leave out a probability of exp(-50), about 2e-22
RARE = (29.0, 75.0)  # tails are tilted to where they have a probability of exp(-29), about 3e-13, and further out
FARTHEST = 100.0  # densities reach out to where no more than exp(-100) lies beyond
FREQUENCIES = (128, 256, 512, 1024, 2048, 4096, 8192, 16384)
PROBES = 41
ROUNDING = 1e-15  # of one term of the series, relative to it
TRUSTED = 1e-9  # relative errors up to here make a density worth having
LOOSE = 0.05  # how far off the exponents of windows and tilts may be
SEARCHES = 60


@dataclass(frozen=True, eq=False)
class Tilted:
    """A sum all of whose terms are tilted by an exponent, and the window that holds its probability."""

    terms: tuple[SumTerm, ...]
    exponent: float

    def cumulant(self, u: float) -> tuple[float, float, float]:
        """Return log E exp(u x) of the sum before tilting, and its first two derivatives."""
        found = np.array([term.cumulant(u) for term in self.terms]).sum(axis=0)
        return float(found[0]), float(found[1]), float(found[2])

    @cached_property
    def level(self) -> float:
        """The logarithm of what the density was divided by."""
        return self.cumulant(self.exponent)[0]

    @cached_property
    def support(self) -> tuple[float, float]:
        """The smallest and the largest value of the sum."""
        ends = [term.support for term in self.terms]
        low = sum(term.count * end[0] for term, end in zip(self.terms, ends, strict=True))
        return low, sum(term.count * end[1] for term, end in zip(self.terms, ends, strict=True))

    def saddlepoint(self, side: float, rate: float) -> tuple[float, float]:
        """Return a further exponent and its mean, beyond which the tilted sum has a probability of exp(-rate) at most.

        By Chernoff's bound. If there is no such mean, the exponent is infinite and the mean is the end of the values.
        """
        start, level = self.exponent, self.level
        end = self.support[0 if side < 0 else 1]
        spread = self.cumulant(start)[2]
        if not spread > 0:
            return math.inf, end
        step, low, high = math.sqrt(2 * rate / spread), 0.0, math.inf
        mean = end
        for _ in range(SEARCHES):
            value, mean, now = self.cumulant(start + side * step)
            found = side * step * mean - (value - level)
            if abs(found / rate - 1) < LOOSE:
                return start + side * step, mean
            if found < rate:
                if now <= 1e-14 * spread:
                    return math.inf, end if math.isfinite(end) else mean
                low = step
            else:
                high = step
            step = 2 * low if math.isinf(high) else (low + high) / 2
        return (start + side * high, mean) if math.isfinite(high) else (math.inf, end)

    @cached_property
    def window(self) -> tuple[float, float]:
        """Where the tilted sum lies, but for a negligible probability."""
        return self.within(BEYOND)

    def within(self, rate: float) -> tuple[float, float]:
        """Return numbers outside of which the tilted sum has a probability of exp(-rate) at most on either side."""
        low, high = (self.saddlepoint(side, rate)[1] for side in (-1.0, 1.0))
        return max(low, self.support[0]), min(high, self.support[1])

    def transform(self, t: Array) -> Array:
        """Return the characteristic function of the tilted sum."""
        return product(self._tilted, t)

    @cached_property
    def _tilted(self) -> list[SumTerm]:
        return [term.tilted(self.exponent) for term in self.terms]


def inverted_sum(terms: Sequence[SumTerm], most: int) -> PiecewisePolynomial | None:
    """Return the density of a sum; nothing if more than so many frequencies are needed for it."""
    plain = Tilted(tuple(terms), 0.0)
    width = plain.window[1] - plain.window[0]
    if not (math.isfinite(width) and width > 0) or _needed(plain, width, most) is None:
        return None
    tails = [plain.saddlepoint(side, rate)[0] for rate in RARE for side in (-1.0, 1.0)]
    sums = [plain, *(Tilted(plain.terms, u) for u in tails if math.isfinite(u))]
    whole = plain.within(FARTHEST)
    period = 1.02 * max(whole[1] - whole[0], *(one.window[1] - one.window[0] for one in sums))
    needed = [_needed(one, period, 2 * most) for one in sums]
    if needed[0] is None:
        return None
    panels = max(8, math.ceil(max(number for number in needed if number is not None) / 3))
    edges = np.linspace(whole[0], whole[0] + period, panels + 1)
    nodes = panel_nodes(edges)[0]
    density, noise = np.zeros(nodes.shape), np.full(nodes.shape, np.inf)
    absolute = 0.0
    for one, number in zip(sums, needed, strict=True):
        if number is None:
            continue
        found, rounding = _series(one, edges, period, number)
        absolute = absolute or rounding * width
        inside = (nodes >= one.window[0]) & (nodes <= one.window[1])
        factor = np.exp(np.where(inside, one.level - one.exponent * nodes, 0.0))
        better = inside & (rounding * factor < noise)
        density = np.where(better, found * factor, density)
        noise = np.where(better, rounding * factor, noise)
    return _told(plain, whole, edges, density, noise, absolute)


def _needed(one: Tilted, period: float, most: int) -> int | None:
    """Return how many frequencies a sum needs; nothing if too many."""
    numbers = np.array([number for number in FREQUENCIES if number <= most])
    probes = np.multiply.outer(numbers, np.linspace(0.7, 1.0, PROBES)) * (2 * np.pi / period)
    sizes = np.abs(one.transform(probes.reshape(-1))).reshape(probes.shape).max(axis=1)
    enough = np.flatnonzero(sizes < VANISHING)
    return int(numbers[enough[0]]) if len(enough) else None


def _series(one: Tilted, edges: Array, period: float, number: int) -> tuple[Array, float]:
    """Return the tilted density at the nodes of equal panels that make up a period, and its rounding."""
    panels = len(edges) - 1
    frequencies = 2 * np.pi / period * np.arange(number)
    coefficients = one.transform(frequencies) * np.exp(-1j * frequencies * edges[0])
    # The nodes at one place in each of the panels form a grid, on which the series is a transform.
    places = panel_nodes(edges[:2])[0][0] - edges[0]
    halved = np.concatenate([0.5 * coefficients[:1], coefficients[1:]])
    terms = halved * np.exp(-1j * np.multiply.outer(places, frequencies))
    folded = np.pad(terms, ((0, 0), (0, -number % panels))).reshape(len(places), -1, panels).sum(axis=1)
    density = np.fft.fft(folded, axis=1).real.T * (2 / period)
    return density, ROUNDING * float(np.abs(coefficients).sum()) * 2 / period


def _told(
    plain: Tilted, window: tuple[float, float], edges: Array, density: Array, noise: Array, absolute: float
) -> PiecewisePolynomial:
    """Return the density within a window, with what is known about its error."""
    low, high = window
    worst = np.where(np.isfinite(noise), noise, 0.0).max(axis=1)
    panels = merged(PiecewisePolynomial(edges, np.maximum(density, 0.0)), np.empty(0), worst)
    inner = panels.edges[(panels.edges > low) & (panels.edges < high)]
    cut = np.concatenate([[low], inner, [high]])
    nodes = panel_nodes(cut)[0]
    values = np.maximum(panels.at(nodes.reshape(-1)).reshape(nodes.shape), 0.0)
    cut, values = _to_the_ends(cut, values, plain.support)
    weights = panel_nodes(edges)[1]
    doubtful = (noise > TRUSTED * np.maximum(density, 0.0)) & np.isfinite(noise)
    lost = float((noise * weights)[doubtful].sum()) + math.exp(-FARTHEST * (1 - LOOSE))
    given = [(term.count, term.panels) for term in plain.terms if term.panels is not None]
    error = absolute + math.exp(-BEYOND * (1 - LOOSE)) + sum(count * panels.error for count, panels in given)
    fine = (2 * TRUSTED, lost)
    for count, one in given:
        fine = (fine[0] + count * one.fine[0], fine[1] + count * one.fine[1])
    ends = math.isinf(plain.support[0]), math.isinf(plain.support[1])
    kinks = tuple((end, 9.0) for end in plain.support if math.isfinite(end))
    return PiecewisePolynomial(cut, values, kinks, ends, error, fine)


def _to_the_ends(edges: Array, values: Array, support: tuple[float, float]) -> tuple[Array, Array]:
    """Append empty panels up to the smallest and the largest value of the sum."""
    nothing = np.zeros((1, values.shape[1]))
    if math.isfinite(support[0]) and support[0] < edges[0]:
        edges, values = np.append(support[0], edges), np.concatenate([nothing, values])
    if math.isfinite(support[1]) and support[1] > edges[-1]:
        edges, values = np.append(edges, support[1]), np.concatenate([values, nothing])
    return edges, values
