"""The density of a sum of many quantities, from the product of their characteristic functions.

A Fourier series has the same absolute error everywhere, which leaves nothing of a density of 1e-13. So the sum is also
computed with every term tilted exponentially, once for each tail: at the saddlepoint, where the tilted sum has its
mean at a value of small probability. Tilting back gives digits there; each place takes the value of least error.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from privug.inference.density import panel_nodes
from privug.inference.exact.curves.panels import Panels, merged
from privug.inference.exact.curves.transforms import Term, product
from privug.model.node import Array

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

    terms: tuple[Term, ...]
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
    def _tilted(self) -> list[Term]:
        return [term.tilted(self.exponent) for term in self.terms]


def inverted_sum(terms: Sequence[Term], most: int) -> Panels | None:
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
) -> Panels:
    """Return the density within a window, with what is known about its error."""
    low, high = window
    worst = np.where(np.isfinite(noise), noise, 0.0).max(axis=1)
    panels = merged(Panels(edges, np.maximum(density, 0.0)), np.empty(0), worst)
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
    fine: tuple[float, float] | None = (2 * TRUSTED, lost)
    for count, one in given:
        fine = (
            None if fine is None or one.fine is None else (fine[0] + count * one.fine[0], fine[1] + count * one.fine[1])
        )
    ends = math.isinf(plain.support[0]), math.isinf(plain.support[1])
    kinks = tuple((end, 9.0) for end in plain.support if math.isfinite(end))
    return Panels(cut, values, kinks, ends, error, fine)


def _to_the_ends(edges: Array, values: Array, support: tuple[float, float]) -> tuple[Array, Array]:
    """Append empty panels up to the smallest and the largest value of the sum."""
    nothing = np.zeros((1, values.shape[1]))
    if math.isfinite(support[0]) and support[0] < edges[0]:
        edges, values = np.append(support[0], edges), np.concatenate([nothing, values])
    if math.isfinite(support[1]) and support[1] > edges[-1]:
        edges, values = np.append(edges, support[1]), np.concatenate([values, nothing])
    return edges, values
