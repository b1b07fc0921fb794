"""The density of a measure as polynomials on panels, and where it is rough.

The order of a kink says how rough: -1/2 an inverse square root, 0 a jump, 1 a bend, 2 a jump of the second derivative.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from privug.inference.measure.curve import Curve, Density
from privug.inference.measure.density import (
    NODES,
    Fine,
    Tabulated,
    coefficients,
    halved,
    integrals,
    legendre_values,
    located,
    panel_nodes,
    panel_nodes_between,
    rounding_of_nodes,
)
from privug.inference.workload import spend
from privug.model.node import Array

SMOOTH = 9.0  # kinks of this order or more need no edge: a polynomial of degree 23 does not see them
ROUGHEST = -0.875  # order: a density cannot be much rougher
ISOLATED = 30.0  # times its width: what is so far from everything else is a peak of its own
SEEN = 1e-7  # of the mass, that a peak has
MOST_PEAKS = 64
COST_OF_ROUND, COST_OF_PANEL = 7e5, 1.7e4  # elementary operations
ROUNDING = 2e-16  # of one term, relative to it
LAST = 20.0  # a panel's last coefficients may be so many times the rounding
RELATIVE = 1e-14  # of the largest coefficient: smaller ones are rounding
ABSOLUTE = 1e-17  # of the mass: what is less is not refined any more
MERGED = 4e-14  # the same for panels that were halved for no need
CHOPPED = 1e-16  # of the largest value, times the degree: the rounding of a coefficient
STEEPEST = 1e-5  # of the largest value on a panel: smaller ones have fewer digits than they could have
FAINTEST = 1e-18  # of the mass: panels with less may be steep
HALVINGS = 12  # of steep panels
DEEPEST = 120
EXHAUSTED = 1 / 16  # of a panel: nodes that are rounded by so much say nothing
MOST_PANELS = 1 << 11
NEGLIGIBLE = 1e-9  # of the mass, next to a singular end: where exactly it lies shows by its square
VANISHED = 1e-30
LARGEST = 1e300  # a density next to a singular end
CLOSE = 1e-5  # of the width of the body: how near to a kink its order is told

Kink = tuple[float, float]
Measured = Callable[[Array], tuple[Array, Array]]


@dataclass(frozen=True, eq=False)
class PiecewisePolynomial:
    """A density by its values at the nodes of panels; `kinks` are places and orders, `error` is that of the mass."""

    edges: Array
    values: Array
    kinks: tuple[Kink, ...] = ()
    open_ends: tuple[bool, bool] = (False, False)
    error: float = 0.0
    fine: Fine = (0.0, 0.0)

    @cached_property
    def columns(self) -> Array:
        """The coefficients of Legendre polynomials, a column for each panel, without those that are rounding."""
        found = coefficients(self.values)
        noise = CHOPPED * (np.arange(NODES) + 1.0) * self.largest[:, np.newaxis]
        return np.ascontiguousarray(np.where(np.abs(found) > noise, found, 0.0).T)

    @cached_property
    def largest(self) -> Array:
        """The largest value on each panel."""
        return np.asarray(np.abs(self.values).max(axis=1))

    @cached_property
    def masses(self) -> Array:
        """The mass of each panel."""
        return integrals(self.edges, self.values)

    @cached_property
    def mass(self) -> float:
        """The mass of all panels."""
        return math.fsum(self.masses)

    @cached_property
    def median(self) -> float:
        """An edge with half of the mass below it, about."""
        below = np.concatenate([[0.0], np.cumsum(self.masses)])
        return float(np.interp(0.5 * self.mass, below, self.edges))

    @cached_property
    def body(self) -> float:
        """The width of the range that has most of the mass."""
        below = np.concatenate([[0.0], np.cumsum(self.masses)])
        low, high = np.interp(np.array([0.05, 0.95]) * self.mass, below, self.edges)
        return float(high - low)

    @property
    def places(self) -> Array:
        """Where the density is rough."""
        return np.array([place for place, _ in self.kinks])

    @cached_property
    def peaks(self) -> list[float]:
        """Places of narrow parts of the density that are far from its kinks, or from its median if it has none."""
        found: list[float] = []
        known = self.places if self.kinks else np.array([self.median])
        widths, middles = np.diff(self.edges), (self.edges[1:] + self.edges[:-1]) / 2
        for panel in np.argsort(widths, kind="stable"):
            alone = np.abs(np.append(known, found) - middles[panel]).min() > ISOLATED * widths[panel]
            if alone and self.masses[panel] > SEEN * self.mass and len(found) < MOST_PEAKS:
                found.append(float(middles[panel]))
        return found

    def at(self, x: Array) -> Array:
        """Return the density, which is zero outside of the panels."""
        inside = (x >= self.edges[0]) & (x <= self.edges[-1])
        return np.where(inside, legendre_values(self.columns, *located(self.edges, x)), 0.0)

    def shifted(self, by: float) -> "PiecewisePolynomial":
        """Return the density of the quantity plus a number; panels too narrow to be told apart then join others."""
        kinks = tuple((place + by, order) for place, order in self.kinks)
        edges, values = self.edges + by, self.values
        widths = np.diff(edges)
        wide = widths > 4 * np.spacing(np.maximum(np.abs(edges[1:]), np.abs(edges[:-1])))
        if not wide.all():
            index = np.flatnonzero(wide)
            nearest = index[np.argmin(np.abs(np.flatnonzero(~wide)[:, np.newaxis] - index), axis=1)]
            gained = np.bincount(nearest, self.masses[~wide], len(widths)) / np.where(wide, widths, 1.0)
            edges = np.concatenate([edges[:1], edges[index[1:]], edges[-1:]])
            values = (values + gained[:, np.newaxis])[index]
        return replace(self, edges=edges, values=values, kinks=kinks)

    def curve(self) -> Curve:
        """Return the distribution, of which the mass says how far off it is."""
        values = np.maximum(self.values, 0.0)
        table = Tabulated(self.edges, values, tuple(place for place, _ in self.kinks), self.open_ends)
        error = self.error + abs(1 - float(integrals(self.edges, values).sum()))
        return Curve(((1.0, table),), error=error, fine=self.fine)

    def scaled(self, factor: float) -> "PiecewisePolynomial":
        """Return the density times a number."""
        return replace(self, values=self.values * factor, error=self.error * factor)


def panels_of(curve: Curve) -> PiecewisePolynomial:
    """Return the part of a curve that has a density, as one measure of mass one."""
    edges = apart(np.concatenate([part.edges for _, part in curve.parts]))
    share = curve.continuous_share
    nodes, widths = panel_nodes(edges)
    values = np.zeros(nodes.shape)
    for weight, part in curve.parts:
        values += weight / share * _on_panels(part, edges, nodes, widths)
    ends = bool(np.isinf(curve.breaks[0])), bool(np.isinf(curve.breaks[-1]))
    trimmed = _trimmed(PiecewisePolynomial(edges, values, (), ends, curve.error))
    made = merged(trimmed, curve.breaks)
    finite = [float(place) for place in curve.breaks if edges[0] <= place <= edges[-1]]
    kinks = tuple((place, _order(curve, place, _width_at(made.edges, place))) for place in finite)
    blunt = NEGLIGIBLE**2 if len(trimmed.edges) < len(edges) else 0.0
    fine = (0.0, blunt) if curve.error == 0 else curve.fine
    return replace(made, kinks=tuple(kink for kink in kinks if kink[1] < SMOOTH), fine=fine)


def _on_panels(part: Density, edges: Array, nodes: Array, widths: Array) -> Array:
    """Return a density at nodes, in panels with a singular end such that the mass is right."""
    low, high = part.edges[0], part.edges[-1]
    middles = (edges[1:] + edges[:-1]) / 2
    inside = (middles > low) & (middles < high)
    values = np.zeros(nodes.shape)
    with np.errstate(all="ignore"):
        found = np.asarray(part.pdf(nodes[inside].reshape(-1)), float).reshape(-1, NODES)
    found = np.where(np.abs(found) < 1e300, found, 0.0)
    sums = (found * widths[inside]).sum(axis=1)
    known = np.asarray(part.mass(edges[:-1][inside], edges[1:][inside]), float)
    off = (np.abs(known - sums) > 1e-11 * known) & (np.abs(known - sums) > 1e-15) & (sums > 0)
    values[inside] = found * np.where(off, known / np.where(sums > 0, sums, 1.0), 1.0)[:, np.newaxis]
    return values


def _trimmed(panels: PiecewisePolynomial) -> PiecewisePolynomial:
    """Make one panel of those next to an end that have little mass, where a singular density has been halved."""
    below, above = np.cumsum(panels.masses), np.cumsum(panels.masses[::-1])
    first = int(np.searchsorted(below, NEGLIGIBLE * panels.mass)) if not panels.open_ends[0] else 0
    last = int(np.searchsorted(above, NEGLIGIBLE * panels.mass)) if not panels.open_ends[1] else 0
    edges, values = panels.edges, panels.values
    if first > 1:
        edges, values = np.delete(edges, slice(1, first)), np.delete(values, slice(1, first), axis=0)
    if last > 1:
        edges, values = np.delete(edges, slice(-last, -1)), np.delete(values, slice(-last, -1), axis=0)
    if first > 1:
        values[0] = below[first - 1] / (edges[1] - edges[0])
    if last > 1:
        values[-1] = above[last - 1] / (edges[-1] - edges[-2])
    return replace(panels, edges=edges, values=values)


def merged(panels: PiecewisePolynomial, breaks: Array, noise: Array | None = None) -> PiecewisePolynomial:
    """Make one panel of two as long as one polynomial is enough; edges at breaks stay.

    `noise` is the rounding of each panel's values, if it is more than that of its largest one.
    """
    kept = np.isin(panels.edges, breaks)
    noise = np.zeros(len(panels.values)) if noise is None else noise
    turn, failed = 0, 0
    while failed < 2 and len(panels.edges) > 2:
        middles = np.arange(1 + turn, len(panels.edges) - 1, 2)
        middles = middles[~kept[middles]]
        turn = 1 - turn
        low, high = panels.edges[middles - 1], panels.edges[middles + 1]
        points = panel_nodes_between(low, high)
        values = panels.at(points.reshape(-1)).reshape(points.shape)
        sizes, worst = np.abs(coefficients(values)), np.maximum(noise[middles - 1], noise[middles])
        tolerance = np.maximum(MERGED * sizes.max(axis=1, initial=0.0), LAST * worst)
        largest = values.max(axis=1, initial=0.0)
        good = sizes[:, -4:].max(axis=1, initial=0.0) <= tolerance
        good &= (values.min(axis=1, initial=np.inf) >= STEEPEST * largest) | (largest <= LAST * worst)
        old, new = panels.masses[middles - 1] + panels.masses[middles], sizes[:, 0] * (high - low)
        good &= np.abs(new - old) <= MERGED * np.abs(old) + LAST * worst * (high - low)
        values = values * np.where(new > 0, old / np.where(new > 0, new, 1.0), 1.0)[:, np.newaxis]
        failed = 0 if good.any() else failed + 1
        chosen = middles[good]
        table = panels.values.copy()
        table[chosen - 1], noise[chosen - 1] = values[good], worst[good]
        kept, noise = np.delete(kept, chosen), np.delete(noise, chosen)
        panels = replace(panels, edges=np.delete(panels.edges, chosen), values=np.delete(table, chosen, axis=0))
    return panels


def apart(points: Array) -> Array:
    """Return different points in order; those that only rounding tells apart are one."""
    ordered = np.unique(points)
    kept = ordered[np.diff(ordered, prepend=-math.inf) > 16 * np.spacing(np.abs(ordered))]
    kept[-1] = ordered[-1]
    return np.asarray(kept)


def _width_at(edges: Array, place: float) -> float:
    """Return the width of the narrower panel at an edge."""
    near = int(np.argmin(np.abs(edges - place)))
    return float(np.diff(edges[max(near - 1, 0) : near + 2]).min())


def _order(curve: Curve, place: float, width: float) -> float:
    """Return how rough a density is at a place, from its values nearby; rather too rough than too smooth."""
    steps = CLOSE * max(width, 1e4 * abs(np.spacing(place))) * np.array([1.0, 2.0])
    with np.errstate(all="ignore"):
        near = [np.minimum(curve.pdf(place + side * steps), LARGEST) for side in (-1.0, 1.0)]
    largest = max(float(near[0][1]), float(near[1][1]))
    if largest * width <= VANISHED:
        return SMOOTH
    inside = [values for values in near if values[1] > VANISHED * largest]
    if len(inside) == 1:
        return _slope(inside[0])
    jump = abs(float(near[0][0] - near[1][0])) > 10 * CLOSE * largest
    return min(0.0 if jump else 1.0, *(min(0.0, _slope(values)) for values in inside))


def _slope(values: Array) -> float:
    """Return the power of the distance that a density follows, from two values, rounded down."""
    if not (min(values) > 0 and math.isfinite(max(values))):
        return SMOOTH if values[0] <= 0 < values[1] else -0.5
    return max(ROUGHEST, math.floor(8 * math.log2(values[1] / values[0]) + 0.1) / 8)


def refined(function: Measured, edges: Array) -> tuple[Array, Array, float]:
    """Halve panels until a function is a polynomial on each but for its own rounding, which it returns with its values.

    Returns the edges, the values at the nodes, and a bound on the error of the integral.
    """
    total = error = 0.0

    def judged(low: Array, high: Array, depth: int) -> tuple[Array, Array]:
        nonlocal total, error
        spend(COST_OF_ROUND + COST_OF_PANEL * len(low))
        points, width, placed = panel_nodes_between(low, high), high - low, rounding_of_nodes(low, high)
        values, noise = (found.reshape(points.shape) for found in function(points.reshape(-1)))
        sizes = np.abs(coefficients(values))
        tails, rounding = sizes[:, -3:].max(axis=1), noise.max(axis=1)
        shares = sizes[:, 0] * width
        rough = tails > np.maximum(LAST * rounding, np.maximum(RELATIVE, placed) * sizes.max(axis=1))
        rough &= tails * width > ABSOLUTE * (total + shares.sum())
        steep = values.min(axis=1) < STEEPEST * values.max(axis=1)
        rough |= steep & (shares > FAINTEST * (total + shares.sum())) & (depth < HALVINGS)
        done = ~rough | (placed > EXHAUSTED) | (depth == DEEPEST - 1) | (len(low) > MOST_PANELS)
        error += float(((tails + rounding) * width)[done].sum())
        total += float(shares[done].sum())
        return done, values

    return *halved(judged, edges), error
