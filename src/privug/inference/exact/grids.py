"""Secret and output together as cells of quadrature: what the measures of a joint sum over."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from privug.errors import UnsuitableEngine
from privug.inference.curve import Curve
from privug.inference.density import NODES, apart, panel_nodes, united
from privug.inference.exact.image import Image
from privug.inference.exact.refinement import best_guess_changes, refined
from privug.inference.exact.shifts import Kernel, Largest, Shift
from privug.model.node import Array

MOST_PAIRS = 20_000_000
BLOCK = 1 << 18  # densities computed in one go
FAR = 1e-14  # the probability of the tails that the joint's quadrature leaves out
ROUNDING = 1e-13
MOST_BENDS = 64
MOST_MISSED = 1e-3  # the probability that sums over cells may miss, and say so
MOST_KINKS = 16_384
PANEL = 3.0
"""How many deviations of the rest a panel of the joint's quadrature spans: 24 nodes resolve a normal density there."""

TOO_FINE = "engine='exact' would need too fine a grid for the joint of secret and output; engine='sample' can serve"


Classes = Callable[[Array], Array]


@dataclass(frozen=True, eq=False)
class Outline:
    """What else is asked for than the secret's root and the sum or extreme themselves.

    `edges` are values of the root at which panels must end; `classes` numbers the values of a secret that is a discrete
    function of the root; `outer` is the output as a function of the sum or extreme.
    """

    edges: Array
    classes: Classes | None = None
    outer: Image | None = None


@dataclass(frozen=True, eq=False)
class Grid:
    """Values of the secret's root, or numbers of its classes, outputs, and the probabilities of their pairs."""

    secrets: Array
    outputs: Array
    probabilities: Array
    error: float = 0.0
    """Of the information, as far as the panels of the outputs tell."""
    missed: float = 0.0
    """The probability by which sums over outputs missed that of the secrets."""


def cells(prior: Curve, kernels: Sequence[Kernel], outline: Outline, coarseness: float = 1.0) -> Grid:
    """Return the cells of a secret and an output that has a density, a row a secret."""
    fine = PANEL * min(min(spread(kernel) for kernel in kernels), _crossing_spread(prior, kernels))
    width = coarseness * fine
    steepest = max(abs(kernel.slope) for kernel in kernels)
    secrets, weights = nodes(prior, width / steepest if steepest else math.inf, outline.edges)
    cuts = secret_panels(prior, width / steepest if steepest else math.inf, outline.edges)
    whole = _Table(prior, kernels, outline.classes, secrets, weights, cuts)
    ends = [float(min(cuts[0], secrets.min())), float(max(cuts[-1], secrets.max()))]
    low, high = reach(kernels, ends)
    kinks = _output_kinks(prior, kernels, outline, low, high)
    error = 0.0
    if prior.parts:
        edges = panels(np.union1d(kinks, _narrow_panels(kernels, ends, fine, coarseness, (low, high))), width)
    else:
        edges = np.union1d(kinks, _tracks(prior, kernels, low, high))
        edges, error = refined(whole.densities, whole.priors, edges, MOST_PAIRS)
    if len(secrets) * NODES * len(edges) * len(kernels) > MOST_PAIRS * coarseness:
        raise UnsuitableEngine(TOO_FINE)
    if not prior.parts or outline.classes is not None:
        edges = np.union1d(edges, best_guess_changes(whole.densities, panel_nodes(edges)[0]))
    grid, widths = panel_nodes(edges)
    outputs, steps = grid.reshape(-1), widths.reshape(-1)
    table = whole.densities(outputs) * steps
    atoms = _atoms(prior, kernels)
    slack = ROUNDING * np.maximum(1.0, np.abs(atoms))
    table = np.concatenate([whole.masses(atoms - slack, atoms + slack), table], axis=1)
    outputs = np.concatenate([atoms, outputs])
    if outline.outer is not None:
        outputs, table = _mapped(outline.outer, whole, outputs, table)
    missed = _missed(whole, table)
    if not missed <= MOST_MISSED:
        raise UnsuitableEngine(TOO_FINE)
    return Grid(whole.rows, outputs, table / table.sum(), error, missed)


def _missed(whole: "_Table", table: Array) -> float:
    """Return the probability by which sums over outputs miss that of the secrets."""
    if not whole.prior.parts or whole.classes is not None:
        return float(np.abs(table.sum(axis=1) - whole.priors).sum())
    if any(kernel.slope and len(_own(kernel).atoms) for kernel in whole.kernels):
        return 0.0  # the output that is the secret itself is in no cell
    # Given one value of a continuous secret the density may have kinks inside of panels; on average that is little.
    return abs(float(table.sum()) - 1)


def _mapped(outer: Image, whole: "_Table", x: Array, table: Array) -> tuple[Array, Array]:
    """Return outputs for cells of the sum or extreme; those on which the output is one value become one."""
    piece = np.clip(np.searchsorted(outer.edges, x, side="right") - 1, 0, len(outer.edges) - 2)
    moving = ~outer.steps[piece]
    low, high = (end[outer.steps] for end in outer.bounds)
    values, codes = np.unique(outer.middles[outer.steps].astype(float), return_inverse=True)
    flat = np.zeros((len(table), len(values)))
    np.add.at(flat.T, codes.reshape(-1), whole.masses(low, high).T)
    outputs = np.concatenate([values, outer.values(x[moving]).astype(float)])
    return outputs, np.concatenate([flat, table[:, moving]], axis=1)


def merged(grid: Grid, classes: Classes | None) -> Grid:
    """Return a grid with the rows of each class put together."""
    if classes is None:
        return grid
    codes = classes(grid.secrets)
    count = int(codes.max()) + 1
    return replace(grid, secrets=np.arange(count), probabilities=_summed(codes, count, grid.probabilities))


def _summed(codes: Array, count: int, table: Array) -> Array:
    total = np.zeros((count, table.shape[1]))
    np.add.at(total, codes, table)
    return total


@dataclass(frozen=True, eq=False)
class _Table:
    """The densities and probabilities of outputs together with each secret, or with each class of secrets."""

    prior: Curve
    kernels: Sequence[Kernel]
    classes: Classes | None
    secrets: Array
    weights: Array
    panels: Array

    @cached_property
    def _codes(self) -> Array | None:
        return None if self.classes is None else self.classes(self.secrets)

    @cached_property
    def rows(self) -> Array:
        """The secrets, or the numbers of their classes."""
        return self.secrets if self._codes is None else np.arange(int(self._codes.max()) + 1)

    @cached_property
    def priors(self) -> Array:
        """The probability of each row."""
        return self._merged(np.ones((len(self.secrets), 1)))[:, 0]

    def _merged(self, table: Array) -> Array:
        weighted = table * self.weights[:, np.newaxis]
        return weighted if self._codes is None else _summed(self._codes, len(self.rows), weighted)

    def densities(self, outputs: Array) -> Array:
        """Return the density of outputs together with each row."""
        if self.classes is not None and self.prior.parts:
            found = self._crossing(self.classes, outputs)
            for kernel in self.kernels:
                found += self._integrated(kernel, [outputs], kernel.density)
            return found
        table = np.zeros((len(self.secrets), len(outputs)))
        step = max(1, BLOCK // max(1, len(outputs)))
        for kernel in self.kernels:
            for start in range(0, len(self.secrets), step):
                rows = slice(start, start + step)
                table[rows] += kernel.probability * kernel.density(outputs, self.secrets[rows, np.newaxis])
        return self._merged(table)

    def _integrated(self, kernel: Kernel, places: Sequence[Array], function: Callable[..., Array]) -> Array:
        """Integrate a function of outputs and of the secret's root over each class, between all kinks of it."""
        assert self.classes is not None
        total = np.zeros((len(self.rows), len(places[0])))
        kinks = [np.asarray(kernel.kinks(place)) for place in places]
        width = len(self.panels) + sum(part.shape[-1] if part.ndim > 1 else 0 for part in kinks)
        step = max(1, BLOCK // (24 * width))
        low, high = self.panels[0], self.panels[-1]
        for start in range(0, len(places[0]), step):
            part = slice(start, start + step)
            own = [np.clip(found[part], low, high) for found in kinks if found.ndim > 1]
            count = len(places[0][part])
            edges = np.sort(np.concatenate([np.broadcast_to(self.panels, (count, len(self.panels))), *own], axis=1))
            grid, steps = panel_nodes(edges.reshape(-1))
            inside = np.arange(edges.size - 1).reshape(1, -1)[0] % edges.shape[1] != edges.shape[1] - 1
            grid, steps = (array[inside].reshape(count, -1, array.shape[1]) for array in (grid, steps))
            here = [place[part][:, np.newaxis, np.newaxis] for place in places]
            shares = (function(*here, grid) * self.prior.pdf(grid) * steps).sum(axis=2)
            codes = self.classes(((edges[:, :-1] + edges[:, 1:]) / 2).reshape(-1)).reshape(shares.shape)
            columns = np.broadcast_to(np.arange(start, start + count)[:, np.newaxis], shares.shape)
            np.add.at(total, (codes, columns), kernel.probability * shares)
        return total

    def _crossing(self, classes: Classes, outputs: Array) -> Array:
        """Return the density that the secret's root gives outputs all by itself, for each class."""
        total = np.zeros((len(self.rows), len(outputs)))
        columns = np.arange(len(outputs))
        for kernel in self.kernels if self.prior.parts else ():
            for place, share in kernel.crossings(outputs):
                low, high = self.secrets.min(), self.secrets.max()
                weights = kernel.probability * share * self.prior.pdf(place)
                np.add.at(total, (classes(np.clip(place, low, high)), columns), weights)
        return total

    def masses(self, low: Array, high: Array) -> Array:
        """Return the probability of ranges together with each row."""
        if self.classes is not None and self.prior.parts:
            found = np.zeros((len(self.rows), len(low)))
            for kernel in self.kernels:
                found += self._integrated(kernel, [low, high], kernel.mass)
            return found
        shape = (len(self.secrets), len(low))
        parts = (k.probability * k.mass(low, high, self.secrets[:, np.newaxis]) for k in self.kernels)
        return self._merged(sum(parts, np.zeros(shape)))


def points(prior: Curve, kernels: Sequence[Kernel], edges: Array) -> tuple[Array, Array, Array]:
    """Return secrets with the sums or extremes that follow from them alone, and the probabilities of that."""
    secrets, weights = nodes(prior, math.inf, edges)
    found = []
    for kernel in kernels:
        sign = kernel.sign if isinstance(kernel, Largest) else 1.0
        for atom, mass in zip(_own(kernel).atoms, _own(kernel).masses, strict=True) if kernel.slope else ():
            here = kernel.start + kernel.slope * secrets + atom
            larger = kernel.rest.cdf(here) if isinstance(kernel, Largest) else np.ones(len(here))
            found.append((secrets, sign * here, kernel.probability * weights * mass * larger))
    s, o, shares = (np.concatenate(part) for part in zip(*found, strict=True))
    return s[shares > 0], o[shares > 0], shares[shares > 0]


def _crossing_spread(prior: Curve, kernels: Sequence[Kernel]) -> float:
    """Return how wide the density is that the secret's root gives the output all by itself."""
    alone = [abs(kernel.slope) for kernel in kernels if kernel.slope and len(_own(kernel).atoms)]
    return prior.std() * min(alone) if alone and prior.parts else math.inf


def _own(kernel: Kernel) -> Curve:
    return kernel.own if isinstance(kernel, Largest) else kernel.rest


def spread(kernel: Kernel) -> float:
    """Return how wide the narrowest density of a kernel is."""
    curves = [kernel.rest] if isinstance(kernel, Shift) else [kernel.own, kernel.rest]
    return min((curve.std() for curve in curves if curve.parts), default=math.inf)


def reach(kernels: Sequence[Kernel], ends: Sequence[float]) -> tuple[float, float]:
    """Return between what numbers all outputs lie, but for a negligible probability."""
    lows, highs = [], []
    for kernel in kernels:
        here = [kernel.start + kernel.slope * end for end in ends]
        if isinstance(kernel, Shift):
            low, high = _extent(kernel.rest)
            lows.append(min(here) + low)
            highs.append(max(here) + high)
            continue
        own, rest = _extent(kernel.own), _extent(kernel.rest)
        bounds = max(min(here) + own[0], rest[0]), max(max(here) + own[1], rest[1])
        lows.append(min(kernel.sign * bound for bound in bounds))
        highs.append(max(kernel.sign * bound for bound in bounds))
    return float(min(lows)), float(max(highs))


def _extent(curve: Curve) -> tuple[float, float]:
    """Return the panels' edges, or atoms, between which a quantity lies but for a negligible probability."""
    edges = np.union1d(curve.edges, curve.atoms)
    endless = np.full(len(edges), np.inf)
    start = np.flatnonzero(curve.mass(-endless, edges) <= FAR)
    stop = np.flatnonzero(curve.mass(edges, endless) <= FAR)
    return float(edges[start[-1] if len(start) else 0]), float(edges[stop[0] if len(stop) else -1])


def _atoms(prior: Curve, kernels: Sequence[Kernel]) -> Array:
    """Return the sums or extremes that have a probability of their own."""
    found: list[Array] = [np.empty(0)]
    for kernel in kernels:
        sign = kernel.sign if isinstance(kernel, Largest) else 1.0
        known = prior.atoms if kernel.slope else np.zeros(1)
        found.append(sign * np.add.outer(kernel.start + kernel.slope * known, _own(kernel).atoms).reshape(-1))
        found += [sign * kernel.rest.atoms] if isinstance(kernel, Largest) else []
    everything = np.unique(np.concatenate(found))
    apart = np.diff(everything, prepend=-np.inf) > ROUNDING * np.maximum(1.0, np.abs(everything))
    return np.asarray(everything[apart])


def nodes(prior: Curve, width: float, kinks: Sequence[float] | Array = ()) -> tuple[Array, Array]:
    """Return values that stand for the prior in sums, close enough to each other, and their probabilities."""
    if not prior.parts:
        return prior.atoms, prior.masses
    grid, steps = panel_nodes(secret_panels(prior, width, kinks))
    weights = prior.pdf(grid.reshape(-1)) * steps.reshape(-1)
    values = np.concatenate([prior.atoms, grid.reshape(-1)])
    shares = np.concatenate([prior.masses, weights * (prior.continuous_share / weights.sum())])
    return values, shares / shares.sum()


def secret_panels(prior: Curve, width: float, kinks: Sequence[float] | Array = ()) -> Array:
    """Return the edges of panels between which the prior and what follows from it are smooth."""
    if not prior.parts:
        return prior.atoms
    low, high = prior.quantiles(np.array([FAR, 1 - FAR]))
    inner = np.unique(np.concatenate([prior.breaks, np.asarray(kinks, float)]))
    inner = inner[(inner > low) & (inner < high)]
    return panels(np.array([low, *inner, high]), min(width, prior.std()))


def _output_kinks(prior: Curve, kernels: Sequence[Kernel], outline: Outline, low: float, high: float) -> Array:
    """Return the ends of the outputs' range, and where their density given a secret, or a class, has a kink."""
    kinks = [low, high, *(() if outline.outer is None else outline.outer.edges)]
    known = prior.atoms if not prior.parts else np.concatenate([prior.breaks, outline.edges])
    known = known[np.isfinite(known)]
    for kernel in kernels:
        own, sign = _own(kernel), kernel.sign if isinstance(kernel, Largest) else 1.0
        points = [*own.breaks[np.isfinite(own.breaks)], *own.atoms] if not prior.parts else [*own.atoms]
        if len(known) * len(points) * len(kernels) <= MOST_KINKS:
            kinks += [sign * (kernel.start + kernel.slope * value + point) for value in known for point in points]
        if isinstance(kernel, Largest):
            kinks += [kernel.sign * point for point in (*kernel.rest.breaks, *kernel.rest.atoms)]
    return np.union1d([low, high], apart(np.array([kink for kink in kinks if low < kink < high])))


def _tracks(prior: Curve, kernels: Sequence[Kernel], low: float, high: float) -> Array:
    """Return where the densities of outputs begin and end, and their panels, for each of finitely many secrets."""
    tracks: list[Array] = []
    for kernel in kernels:
        sign = kernel.sign if isinstance(kernel, Largest) else 1.0
        own = _own(kernel).edges
        if len(own) * len(prior.atoms) * len(kernels) > MOST_PAIRS / 24:
            raise UnsuitableEngine(TOO_FINE)
        tracks += [np.sort(sign * (kernel.start + kernel.slope * s + own)) for s in prior.atoms if len(own)]
        if isinstance(kernel, Largest) and len(kernel.rest.edges):
            tracks.append(np.sort(sign * kernel.rest.edges))
    edges = united(tracks) if tracks else np.empty(0)
    return edges[(edges > low) & (edges < high)]


def _narrow_panels(
    kernels: Sequence[Kernel], ends: Sequence[float], width: float, coarseness: float, within: tuple[float, float]
) -> Array:
    """Return the edges of panels narrower than a width on which the rest was tabulated, where the outputs have them.

    Wide noise on a narrow quantity is smooth but for a narrow bend in its middle.
    """
    edges: list[float] = []
    for kernel in kernels:
        own = kernel.rest.edges if isinstance(kernel, Shift) else np.empty(0)
        bends = own[:-1][np.diff(own) < width / 4]
        if 0 < len(bends) * len(kernels) <= MOST_BENDS:
            start, stop = sorted(kernel.start + kernel.slope * end for end in ends)
            finest = coarseness * max(np.diff(bends).min(initial=width), width / 256)
            pieces = math.ceil((stop - start + bends[-1] - bends[0]) / finest)
            most = math.ceil(MOST_BENDS / coarseness)
            edges += list(np.linspace(start + bends[0], stop + bends[-1], min(pieces, most) + 1))
    return np.array([edge for edge in edges if within[0] < edge < within[1]])


def panels(kinks: Array, width: float) -> Array:
    """Cut the ranges between kinks into panels of some width at most."""
    if sum(max(1.0, (end - start) / width) for start, end in pairwise(kinks)) > MOST_PAIRS / 24:
        raise UnsuitableEngine(TOO_FINE)
    parts = [
        np.linspace(start, end, max(1, math.ceil((end - start) / width)) + 1)[:-1] for start, end in pairwise(kinks)
    ]
    return np.append(np.concatenate(parts), kinks[-1])


def information(probabilities: Array) -> float:
    """Return the mutual information of rows and columns in bits."""
    sides = probabilities.sum(axis=1), probabilities.sum(axis=0)
    row, column = np.nonzero(probabilities)
    shares = probabilities[row, column]
    # Logarithms apart: the product of two small probabilities would vanish.
    logs = np.log2(shares) - np.log2(sides[0][row]) - np.log2(sides[1][column])
    return max(0.0, float(shares @ logs))
