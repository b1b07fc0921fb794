"""The distribution of a sum of independent quantities, each known as a curve.

Normals add in closed form, atoms by a discrete convolution, and atoms shift densities. Few densities are convolved on
panels, which keeps their kinks; many are multiplied as characteristic functions; Laplace noise is a filter.

Panels: where both densities are polynomials of degree 23, their product is integrated exactly by 24 nodes. Panels of
one density that lie within one panel of the other are taken together: against a polynomial they count by as many
moments as it has coefficients. What is left are stretches at the ends of panels, integrated in the coordinate of the
narrower one, so that a singular end keeps its digits however far from zero the sum is.

Laplace noise: at w the density is (A(w) + B(w)) / 2b, where A(w) = E[exp(-(w - x) / b); x <= w] solves A' = f - A / b
from the left, and B the same from the right: on each panel a small linear system, whatever the ratio of the scales.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import scipy

from privug.inference.measure.curve import MOST_PARTS, Curve, discrete_part, smooth_part
from privug.inference.measure.density import (
    ANALYSIS,
    NODES,
    POINTS,
    WEIGHTS,
    Analytic,
    Tabulated,
    clenshaw,
    panel_nodes,
    split_panels,
)
from privug.inference.measure.piecewise_polynomial import (
    ROUNDING,
    SMOOTH,
    Kink,
    PiecewisePolynomial,
    apart,
    merged,
    panels_of,
    refined,
)
from privug.inference.measure.transforms import SumTerm, inverted_sum
from privug.inference.workload import spend
from privug.model.batch import repeated
from privug.model.node import Array
from privug.prior.standard import StandardNormal, StandardUniform, UniformPlusNormal

CHUNK = 1 << 9  # stretches whose values at the nodes stay in the processor's cache
COST_OF_STRETCH = 5000.0  # elementary operations
MOST_EDGES = 1 << 20  # that are compared at a time
CROWDED = 0.5  # edges closer than this share of the panels that they come from are left out
LONGEST = 64  # panels that are taken together
FAINT = 1e-4  # narrow panels with less of the mass show by themselves, as they are halved towards a singular end
UNSEEN = 1e-19  # of the density: stretches with less are left out
NARROW = 0.02  # of the width of the body
NARROWEST = 0.25  # deviations: differences over less lose digits


class Stretches(NamedTuple):
    """Pairs of a panel of each density, by the place of the sum at which they meet."""

    point: Array
    left: Array
    right: Array


class Clusters(NamedTuple):
    """Panels of one density between two of its edges, within one panel of the other, by the place of the sum."""

    point: Array
    first: Array
    last: Array
    other: Array


def convolved(left: PiecewisePolynomial, right: PiecewisePolynomial) -> PiecewisePolynomial:
    """Return the density of the sum of two independent quantities."""
    kinks = summed_kinks(left.kinks, right.kinks)
    ends = left.open_ends[0] or right.open_ends[0], left.open_ends[1] or right.open_ends[1]
    edges, values, missed = refined(lambda x: _values(left, right, x), _edges(left, right, kinks))
    fine = left.fine[0] + right.fine[0] + 1e-10, left.fine[1] + right.fine[1] + 1e-20
    error = left.error + right.error + missed / max(left.mass * right.mass, 1e-300)
    made = PiecewisePolynomial(edges, values, kinks, ends, error, fine)
    return merged(made, np.array([place for place, _ in kinks]))


def summed_kinks(left: tuple[Kink, ...], right: tuple[Kink, ...]) -> tuple[Kink, ...]:
    """Return the kinks of a convolution: sums of places, whose orders add, plus one."""
    pairs = [(a + b, m + n + 1) for a, m in left for b, n in right if m + n + 1 < SMOOTH]
    return _together(pairs, lambda kept, places: np.maximum(np.searchsorted(kept, places, side="right") - 1, 0))


def _together(kinks: Sequence[Kink], nearest: Callable[[Array, Array], Array]) -> tuple[Kink, ...]:
    """Make one kink, as rough as the roughest, of those whose places only rounding tells apart."""
    if not kinks:
        return ()
    places = np.array([place for place, _ in kinks])
    kept = apart(places)
    orders = np.full(len(kept), np.inf)
    np.minimum.at(orders, nearest(kept, places), [order for _, order in kinks])
    return tuple(zip(kept.tolist(), orders.tolist(), strict=True))


def _edges(left: PiecewisePolynomial, right: PiecewisePolynomial, kinks: tuple[Kink, ...]) -> Array:
    """Return where to begin: sums of kinks, and around each kink the panels of the other, unless they crowd."""
    places: list[Array] = []
    gaps: list[Array] = []
    for one, other in ((left, right), (right, left)):
        starts = list(one.places)
        if not starts and (other.kinks or one.body <= other.body):
            starts = [one.median]  # a narrow density leaves the other as it is
        starts.extend(one.peaks)
        gap = _gaps(other.edges)
        mass = np.maximum(np.append(other.masses, 0.0), np.append(0.0, other.masses))
        seen = (mass > FAINT * other.mass) | (gap > NARROW * other.body)
        places.extend(start + other.edges[seen] for start in starts)
        gaps.extend([gap[seen]] * len(starts))
    order = np.argsort(np.concatenate(places), kind="stable")
    candidates, widths = np.concatenate(places)[order], np.concatenate(gaps)[order]
    low, high = left.edges[0] + right.edges[0], left.edges[-1] + right.edges[-1]
    fixed = apart(np.array([low, *(place for place, _ in kinks if low < place < high), high]))
    fixed[0], fixed[-1] = low, high
    there = (low < candidates) & (candidates < high)
    room = np.abs(candidates[:, np.newaxis] - fixed).min(axis=1)
    return _uncrowded(fixed, candidates[there], widths[there], room[there])


def _uncrowded(fixed: Array, candidates: Array, widths: Array, room: Array) -> Array:
    """Return edges, with further ones in order that do not crowd: for their widths, and with room to the others."""
    kept, last = [], -np.inf
    for place, width, space in zip(candidates.tolist(), widths.tolist(), room.tolist(), strict=True):
        if space > CROWDED * width and place - last > CROWDED * width:
            kept.append(place)
            last = place
    return np.unique(np.concatenate([fixed, kept]))


def _gaps(edges: Array) -> Array:
    """Return for each edge how wide the narrower panel beside it is."""
    widths = np.diff(edges)
    return np.asarray(np.minimum(np.append(widths, np.inf), np.append(np.inf, widths)))


def _values(left: PiecewisePolynomial, right: PiecewisePolynomial, x: Array) -> tuple[Array, Array]:
    """Return the convolution at some places, and its rounding errors."""
    total, noise = np.zeros(len(x)), np.zeros(len(x))
    step = max(1, MOST_EDGES // len(left.edges))
    for start in range(0, len(x), step):
        part = slice(start, start + step)
        few = x[part]
        within_right, within_left, rest = _met(left, right, few)
        _add(total[part], noise[part], within_right, partial(_clustered, left, right, few))
        _add(total[part], noise[part], within_left, partial(_clustered, right, left, few))
        met = _seen(left, right, rest, total[part])
        _add(total[part], noise[part], met, partial(_integrated, left, right, few))
    return total, ROUNDING * noise


def _add(total: Array, noise: Array, met: Clusters | Stretches, integrated: Callable[..., tuple[Array, Array]]) -> None:
    """Add what panels that meet at places of the sum contribute there, with its rounding, some of them at a time."""
    found, rounding = np.zeros(len(total)), np.zeros(len(total))
    for start in range(0, len(met.point), CHUNK):
        some = [array[start : start + CHUNK] for array in met]
        values, errors = integrated(*some)
        found += np.bincount(some[0], values, len(total))
        rounding += np.bincount(some[0], errors, len(total))
    total += found
    noise += rounding


def _met(left: PiecewisePolynomial, right: PiecewisePolynomial, x: Array) -> tuple[Clusters, Clusters, Stretches]:
    """Return the panels of the left within one of the right, those of the right within one of the left, and the rest.

    All follow from how many edges of the right lie below the sum minus each edge of the left, so none is met twice.
    """
    below = np.searchsorted(right.edges, x[:, np.newaxis] - left.edges, side="right")
    panels = len(right.edges) - 1
    before, after = below[:, 1:], below[:, :-1]
    same = before == after
    padded = np.pad(same, ((0, 0), (1, 1)))
    row, first = np.nonzero(padded[:, 1:] & ~padded[:, :-1])
    last = np.nonzero(padded[:, :-1] & ~padded[:, 1:])[1]
    other = below[row, first] - 1
    inside = (other >= 0) & (other < panels)
    within_right = _chopped(Clusters(row[inside], first[inside], last[inside], other[inside]))
    row, i = np.nonzero(~same)
    low, high = before[row, i], after[row, i]
    whole = np.minimum(high - 1, panels) > low
    within_left = _chopped(Clusters(row[whole], low[whole], np.minimum(high[whole] - 1, panels), i[whole]))
    point, mine, theirs = np.tile(row, 2), np.tile(i, 2), np.concatenate([high - 1, low - 1])
    there = (theirs >= 0) & (theirs < panels)
    return within_right, within_left, Stretches(point[there], mine[there], theirs[there])


def _chopped(met: Clusters) -> Clusters:
    """Cut long clusters into several."""
    pieces = -(-(met.last - met.first) // LONGEST)
    if not len(pieces) or pieces.max() == 1:
        return met
    which, number = repeated(pieces)
    first = met.first[which] + LONGEST * number
    return Clusters(met.point[which], first, np.minimum(first + LONGEST, met.last[which]), met.other[which])


def _clustered(
    many: PiecewisePolynomial, one: PiecewisePolynomial, x: Array, point: Array, first: Array, last: Array, other: Array
) -> tuple[Array, Array]:
    """Return what panels of `many` within a panel of `one` contribute, and what its rounding is relative to."""
    low, high, a, b = many.edges[first], many.edges[last], one.edges[other], one.edges[other + 1]
    # In the coordinate of the wider panel: 2 (x - y) - a - b over its width.
    scale = (high - low) / (b - a)
    origin = (2 * x[point] - low - high - a - b) / (b - a)
    t = np.clip(origin[:, np.newaxis] - scale[:, np.newaxis] * POINTS, -1.0, 1.0)
    mass = clusters(many)[first, last - first - 1]
    found = _polynomial(one.columns[:, other], t)
    return (found * mass).sum(axis=1), one.largest[other] * np.abs(mass).sum(axis=1)


def clusters(panels: PiecewisePolynomial) -> Array:
    """Return, for panels from each edge on, the masses at 24 nodes that act on polynomials as their density does.

    Those of a longer stretch follow from those of one shorter by a panel, and of that panel.
    """
    if "clusters" in panels.__dict__:
        return np.asarray(panels.__dict__["clusters"])
    edges, count = panels.edges, len(panels.edges) - 1
    table = np.zeros((count, min(count, LONGEST), NODES))
    single = panels.values * (np.diff(edges) / 2)[:, np.newaxis] * WEIGHTS
    table[:, 0] = single
    for length in range(2, table.shape[1] + 1):
        first = np.arange(count - length + 1)
        last = first + length
        low, middle, high = edges[first], edges[last - 1], edges[last]
        width = (high - low)[:, np.newaxis]
        shorter = ((middle - low)[:, np.newaxis] * (POINTS + 1)) / width - 1
        added = 1 - ((high - middle)[:, np.newaxis] * (1 - POINTS)) / width
        masses = np.concatenate([table[first, length - 2], single[last - 1]], axis=1)
        vander = np.polynomial.legendre.legvander(np.concatenate([shorter, added], axis=1), NODES - 1)
        moments = np.matmul(masses[:, np.newaxis, :], vander)[:, 0] * (np.arange(NODES) + 0.5)
        table[first, length - 1] = (moments @ _VANDER.T) * WEIGHTS
    panels.__dict__["clusters"] = table
    return table


_VANDER = np.polynomial.legendre.legvander(POINTS, NODES - 1)


def _seen(left: PiecewisePolynomial, right: PiecewisePolynomial, met: Stretches, total: Array) -> Stretches:
    """Return the stretches that show beside what is known of the density."""
    width = np.minimum(np.diff(left.edges)[met.left], np.diff(right.edges)[met.right])
    bound = width * left.largest[met.left] * right.largest[met.right]
    kept = bound > UNSEEN * np.maximum(total, 0.0)[met.point]
    return Stretches(*(array[kept] for array in met))


def _integrated(
    left: PiecewisePolynomial, right: PiecewisePolynomial, places: Array, point: Array, i: Array, j: Array
) -> tuple[Array, Array]:
    """Return the integral over each stretch, and what its rounding is relative to."""
    spend(COST_OF_STRETCH * len(i))
    x, a, b, c, d = places[point], left.edges[i], left.edges[i + 1], right.edges[j], right.edges[j + 1]
    narrow = d - c < b - a  # whether the right panel is the narrower one
    near, far, start, end = (np.where(narrow, *pair) for pair in ((c, a), (d, b), (a, c), (b, d)))
    low, high = np.maximum(near, x - end), np.minimum(far, x - start)
    half = np.maximum(high - low, 0.0)[:, np.newaxis] / 2
    place = ((low + high) / 2)[:, np.newaxis] + half * POINTS
    own = (2 * place - (near + far)[:, np.newaxis]) / (far - near)[:, np.newaxis]
    across = (2 * (x[:, np.newaxis] - place) - (start + end)[:, np.newaxis]) / (end - start)[:, np.newaxis]
    swap = narrow[:, np.newaxis]
    f = _polynomial(left.columns[:, i], np.clip(np.where(swap, across, own), -1.0, 1.0))
    g = _polynomial(right.columns[:, j], np.clip(np.where(swap, own, across), -1.0, 1.0))
    weights = half * WEIGHTS
    rough = left.largest[i] * (np.abs(g) * weights).sum(axis=1) + right.largest[j] * (np.abs(f) * weights).sum(axis=1)
    return (f * g * weights).sum(axis=1), rough


def _polynomial(columns: Array, t: Array) -> Array:
    """Return polynomials, a column of coefficients for each row of places, by Clenshaw's rule."""
    degree = max(1, int(np.flatnonzero(columns.any(axis=1)).max(initial=0)))
    return clenshaw(lambda k: columns[k][:, np.newaxis], degree, t)


class Shifts(NamedTuple):
    """A density of mass one, how far it is shifted, and the share of each shift."""

    panels: PiecewisePolynomial
    by: Array
    shares: Array


def blended(mixture: list[Shifts]) -> PiecewisePolynomial:
    """Return the density of a mixture of shifted densities, whose mass is the sum of the shares."""
    kinks = _mixture_kinks(mixture)
    edges, values, missed = refined(lambda x: _mixture_values(mixture, x), _mixture_edges(mixture, kinks))
    ends = any(one.panels.open_ends[0] for one in mixture), any(one.panels.open_ends[1] for one in mixture)
    weights = [float(one.shares.sum()) for one in mixture]
    error = missed + sum(weight * one.panels.error for weight, one in zip(weights, mixture, strict=True))
    fine = (0.0, 1e-20)
    for weight, one in zip(weights, mixture, strict=True):
        known = one.panels.fine
        fine = (max(fine[0], known[0] + 1e-10), fine[1] + weight * known[1])
    made = PiecewisePolynomial(edges, values, kinks, ends, error, fine)
    return merged(made, np.array([place for place, _ in kinks]))


def _mixture_kinks(mixture: list[Shifts]) -> tuple[Kink, ...]:
    pairs = [(place + by, order) for one in mixture for by in one.by.tolist() for place, order in one.panels.kinks]
    return _together(pairs, lambda kept, places: np.argmin(np.abs(kept[:, np.newaxis] - places), axis=0))


def _mixture_edges(mixture: list[Shifts], kinks: tuple[Kink, ...]) -> Array:
    """Return where to begin: at the kinks and, unless they crowd, at the edges of every density."""
    every = np.concatenate([np.add.outer(one.by, one.panels.edges).reshape(-1) for one in mixture])
    widths = np.concatenate([np.tile(_gaps(one.panels.edges), len(one.by)) for one in mixture])
    order = np.argsort(every, kind="stable")
    fixed = apart(np.array([every.min(), *(place for place, _ in kinks), every.max()]))
    every, widths = every[order], widths[order]
    following = np.clip(np.searchsorted(fixed, every), 1, len(fixed) - 1)
    room = np.minimum(np.abs(every - fixed[following]), np.abs(every - fixed[following - 1]))
    return _uncrowded(fixed, every, widths, room)


def _mixture_values(mixture: list[Shifts], x: Array) -> tuple[Array, Array]:
    """Return the density at some places, and its rounding errors."""
    order = np.argsort(x)
    points = x[order]
    total, noise = np.zeros(len(x)), np.zeros(len(x))
    for one in mixture:
        low, high = one.by + one.panels.edges[0], one.by + one.panels.edges[-1]
        starts, stops = np.searchsorted(points, low), np.searchsorted(points, high, side="right")
        which, number = repeated(np.maximum(stops - starts, 0))
        point = number + starts[which]
        places = points[point] - one.by[which]
        total += np.bincount(point, one.shares[which] * one.panels.at(places), len(x))
        panel = np.clip(np.searchsorted(one.panels.edges, places) - 1, 0, len(one.panels.largest) - 1)
        noise += np.bincount(point, one.shares[which] * one.panels.largest[panel], len(x))
    result, rounding = np.empty(len(x)), np.empty(len(x))
    result[order], rounding[order] = total, 2 * ROUNDING * noise
    return result, rounding


MOST_PANELS = 300
WIDEST = 2.0  # scales of the noise in a panel
TAIL = 10.0  # the same beyond the values of the quantity, where the density is exponential
TAILS = 10  # so many panels on each side: beyond, there is less than 1e-43
ERROR = 4e-15  # what rounding leaves of the mass


def _integration() -> Array:
    """Return the matrix from values at the nodes to integrals from the left end up to each node."""
    legendre = np.polynomial.legendre
    integrals = np.array([legendre.legval(POINTS, legendre.legint(row, lbnd=-1)) for row in np.eye(NODES)])
    return np.asarray(integrals.T @ ANALYSIS)


_INTEGRATION = _integration()


def blurred(
    panels: PiecewisePolynomial | None, share: float, atoms: Array, masses: Array, scale: float
) -> PiecewisePolynomial | None:
    """Add Laplace noise of mean zero to a density, which has a share, and atoms; nothing if it is too narrow."""
    grid = _grid(panels, atoms, scale)
    if grid is None:
        return None
    nodes = panel_nodes(grid)[0]
    values = np.zeros(nodes.shape)
    if panels is not None:
        values = share * panels.at(nodes.reshape(-1)).reshape(nodes.shape)
    here = np.zeros(len(grid))
    np.add.at(here, np.argmin(np.abs(grid[:, np.newaxis] - atoms), axis=0), masses)
    below, above = _filtered(grid, values, here, scale), _filtered(-grid[::-1], values[::-1, ::-1], here[::-1], scale)
    inner = below[0] + above[0][::-1, ::-1]
    steps = TAIL * scale * np.arange(TAILS + 1)
    left, right = grid[0] - steps[::-1], grid[-1] + steps
    outer = [
        end * np.exp(-np.abs(panel_nodes(side)[0] - start) / scale)
        for end, side, start in ((above[1], left, grid[0]), (below[1], right, grid[-1]))
    ]
    edges = np.concatenate([left[:-1], grid, right[1:]])
    table = np.concatenate([outer[0], inner, outer[1]]) / (2 * scale)
    error, fine = (panels.error, panels.fine) if panels is not None else (0.0, (0.0, 0.0))
    better = fine[0] + 1e-10, fine[1] + 1e-20
    return PiecewisePolynomial(edges, table, _kinks(panels, atoms), (True, True), share * error + ERROR, better)


def _kinks(panels: PiecewisePolynomial | None, atoms: Array) -> tuple[Kink, ...]:
    known = dict.fromkeys(atoms.tolist(), 1.0)
    for place, order in panels.kinks if panels is not None else ():
        known.setdefault(place, order + 2)
    return tuple((place, order) for place, order in sorted(known.items()) if order < SMOOTH)


def _grid(panels: PiecewisePolynomial | None, atoms: Array, scale: float) -> Array | None:
    """Return the panels, and gaps between atoms, cut to the scale of the noise; nothing if those are too many."""
    edges = apart(np.concatenate([atoms, panels.edges if panels is not None else atoms[:0]]))
    with np.errstate(over="ignore"):
        pieces = np.ceil(np.diff(edges) / (WIDEST * scale))
    if len(edges) < 2 or not pieces.sum() <= MOST_PANELS:
        return None
    return split_panels(edges, np.maximum(pieces, 1).astype(int))


def _filtered(grid: Array, values: Array, atoms: Array, scale: float) -> tuple[Array, float]:
    """Return E[exp(-(w - x) / scale); x <= w] at the nodes and at the last edge, of densities and atoms at edges."""
    half = np.diff(grid) / 2
    angle = half / scale
    system = np.eye(NODES) + angle[:, np.newaxis, np.newaxis] * _INTEGRATION
    own = np.linalg.solve(system, (half[:, np.newaxis] * (values @ _INTEGRATION.T))[:, :, np.newaxis])[:, :, 0]
    ends = (half[:, np.newaxis] * values - angle[:, np.newaxis] * own) @ WEIGHTS
    starts, carried = np.empty(len(half)), 0.0
    for i, (end, left) in enumerate(zip(ends.tolist(), angle.tolist(), strict=True)):
        starts[i] = carried + atoms[i]
        carried = end + starts[i] * math.exp(-2 * left)
    fading = np.exp(-angle[:, np.newaxis] * (1 + POINTS))
    return own + starts[:, np.newaxis] * fading, carried + float(atoms[-1])


LARGEST_ERROR = 1e-9  # of a probability that is still called exact
FEW_FREQUENCIES = 512  # with which a transform is faster than panels
MOST_FREQUENCIES = 8192
MANY = 5  # so many quantities are tried as characteristic functions
MOST_PAIRS = 1 << 24  # of atoms that are added at a time
MOST_SHIFTED_EDGES = 1 << 17  # of densities that are shifted by atoms
SAME = 1e-13  # atoms that differ by less, relative to the largest, are equal but for rounding
NEAR = 100.0  # times its width: so far from zero a density keeps its digits
NOTHING = 1e-20  # shares of a mixture that are left out

_known: "WeakKeyDictionary[Curve, PiecewisePolynomial]" = WeakKeyDictionary()
"""The panels of the densities of curves; of those computed here the orders of the kinks are known."""

_origins: "WeakKeyDictionary[Curve, tuple[PiecewisePolynomial, float]]" = WeakKeyDictionary()
"""The same about zero, and how far they were moved there."""


class Unsummable(Exception):
    """The distribution of a sum could not be had; the message says why."""


class ShiftedCurve(NamedTuple):
    """A curve without atoms, how far it is shifted, and the share of each shift in a mixture."""

    curve: Curve
    by: Array
    shares: Array


class Powers:
    """The laws of sums of k independent copies of one quantity; each is computed once."""

    def __init__(self, curve: Curve) -> None:
        self._curve = curve
        self._sums: dict[int, Curve] = {0: Curve.point(0.0), 1: curve}

    @property
    def known(self) -> list[Curve]:
        """The laws that were computed."""
        split = self.__dict__.get("_split", ())
        return [*self._sums.values(), *(law for powers in split for law in powers.known)]

    def sum(self, k: int) -> Curve:
        """Return the law of the sum of k copies."""
        if k not in self._sums:
            self._sums[k] = self._sum(k)
        return self._sums[k]

    def _sum(self, k: int) -> Curve:
        curve = self._curve
        closed = _closed([(curve, k)])
        if closed is not None:
            return closed
        if curve.parts and k >= MANY:
            made = _transformed(curve, k, MOST_FREQUENCIES if len(curve.atoms) else FEW_FREQUENCIES)
            if made is not None:
                return made
        if curve.parts and len(curve.atoms):
            return self._classes(k)
        half = k // 2 if k > 3 else k - 1
        return added(self.sum(half), self.sum(k - half))

    def _classes(self, k: int) -> Curve:
        """Return the law of a sum by how many of the quantities lie at atoms."""
        smooth, discrete = self._split
        share = self._curve.continuous_share
        pieces = []
        for j in range(1, k + 1):
            weight = math.exp(_log_binomial(k, j, share))
            if weight > NOTHING:
                atoms = discrete.sum(k - j)
                pieces.append(ShiftedCurve(smooth.sum(j), atoms.atoms, weight * atoms.masses))
        last = discrete.sum(k)
        return _mixed(pieces, last.atoms, (1 - share) ** k * last.masses)

    @cached_property
    def _split(self) -> "tuple[Powers, Powers]":
        return Powers(_smooth(self._curve)), Powers(discrete_part(self._curve))


def added(left: Curve, right: Curve) -> Curve:
    """The law of the sum of two independent quantities."""
    for one, other in ((left, right), (right, left)):
        if not one.parts and len(one.atoms) == 1:
            return _moved(other, float(one.atoms[0]))
    closed = _closed([(left, 1), (right, 1)])
    for one, other in ((left, right), (right, left)):
        closed = closed or _with_noise(one, other) or _with_uniform(one, other)
    if closed is not None:
        return closed
    if not left.parts and not right.parts:
        return _atoms_added(left, right)
    pieces = []
    for one, other in ((left, right), (right, left)):
        if one.parts and len(other.atoms):
            pieces.append(ShiftedCurve(_smooth(one), other.atoms, one.continuous_share * other.masses))
    if left.parts and right.parts:
        share = left.continuous_share * right.continuous_share
        both = _densities_added(_smooth(left), _smooth(right))
        if not pieces:
            return both
        pieces.append(ShiftedCurve(both, np.zeros(1), np.array([share])))
    if not len(left.atoms) or not len(right.atoms):
        return _mixed(pieces, np.empty(0), np.empty(0))
    atoms = _atoms_added(discrete_part(left), discrete_part(right))
    share = (1 - left.continuous_share) * (1 - right.continuous_share)
    return _mixed(pieces, atoms.atoms, share * atoms.masses)


def _family(curve: Curve) -> str | None:
    """Return the name of the family of a curve that is of one, and not cut."""
    if len(curve.parts) != 1 or len(curve.atoms):
        return None
    part = curve.parts[0][1]
    if not isinstance(part, Analytic) or part.is_cut:
        return None
    if isinstance(part.frozen, StandardNormal):
        return "normal"
    return getattr(getattr(part.frozen, "dist", None), "name", None)


def _closed(curves: Sequence[tuple[Curve, int]]) -> Curve | None:
    """Return the law of a sum of normal quantities, or of Cauchy's, with their numbers of copies."""
    names = {_family(curve) for curve, _ in curves}
    if names == {"normal"}:
        parts = [(_analytic(curve), count) for curve, count in curves]
        var = math.fsum(count * part.scale**2 for part, count in parts)
        return Curve.normal(math.fsum(count * part.shift for part, count in parts), math.sqrt(var))
    if names == {"cauchy"}:
        middle = math.fsum(count * curve.quantile(0.5) for curve, count in curves)
        half = math.fsum(count * (curve.quantile(0.75) - curve.quantile(0.5)) for curve, count in curves)
        return Curve(((1.0, Analytic(scipy.stats.cauchy(), half, middle)),))
    return None


def _analytic(curve: Curve) -> Analytic:
    part = curve.parts[0][1]
    assert isinstance(part, Analytic)
    return part


def _with_noise(curve: Curve, noise: Curve) -> Curve | None:
    """Add Laplace noise; nothing if it is none, or too narrow for a filter."""
    if _family(noise) != "laplace" or _family(curve) == "laplace":
        return None
    if not curve.parts and len(curve.atoms) <= MOST_PARTS:
        return None
    part: Any = _analytic(noise)
    scale = abs(part.scale) * float(part.frozen.std()) / math.sqrt(2)
    panels = _panels(curve) if curve.parts else None
    made = blurred(panels, curve.continuous_share, curve.atoms, curve.masses, scale)
    return None if made is None else _told(made.shifted(float(part.mean())))


def _with_uniform(normal: Curve, uniform: Curve) -> Curve | None:
    """Add a uniform quantity to a normal one; nothing if they are none, or it is so narrow that digits would be lost.

    Tables of random size ask for such a sum for every size.
    """
    if _family(normal) != "normal" or len(uniform.parts) != 1 or len(uniform.atoms):
        return None
    bell, window = _analytic(normal), uniform.parts[0][1]
    if not isinstance(window, Analytic) or window.is_cut or not isinstance(window.frozen, StandardUniform):
        return None
    sd, width = abs(bell.scale), abs(window.scale)
    if width < NARROWEST * sd:
        return None
    low = min(window.shift, window.shift + window.scale)
    return Curve(((1.0, Analytic(UniformPlusNormal(width / sd), sd, bell.shift + low)),))


def _transformed(curve: Curve, count: int, most: int) -> Curve | None:
    """Return the law of a sum from its characteristic function; nothing if it is not smooth, or all may be atoms."""
    if curve.parts and curve.error > 0 and math.isinf(curve.fine[0]):
        most = min(most, FEW_FREQUENCIES)
    if len(curve.atoms) and count * math.log(max(1 - curve.continuous_share, 1e-300)) > math.log(NOTHING):
        return None
    panels = _panels(curve) if curve.parts else None
    made = inverted_sum([SumTerm(panels, curve.continuous_share, curve.atoms, curve.masses, count)], most)
    return None if made is None else _told(made)


def _log_binomial(k: int, j: int, share: float) -> float:
    ways = math.lgamma(k + 1) - math.lgamma(j + 1) - math.lgamma(k - j + 1)
    return ways + j * math.log(share) + (k - j) * math.log1p(-share)


def _smooth(curve: Curve) -> Curve:
    """Return the law given that the value is no atom."""
    if not len(curve.atoms):
        return curve
    made = smooth_part(curve)
    _known[made] = _panels(curve)
    if curve in _origins:
        _origins[made] = _origins[curve]
    return made


def _moved(curve: Curve, by: float) -> Curve:
    if by == 0:
        return curve
    made = curve.affine(1.0, by)
    if curve in _known:
        _known[made] = _known[curve].shifted(by)
    if curve in _origins:
        panels, origin = _origins[curve]
        _origins[made] = panels, origin + by
    return made


def _mixed(pieces: Sequence[ShiftedCurve], atoms: Array, masses: Array) -> Curve:
    """Return a mixture of shifted curves and atoms: few as they are, more on panels of their own."""
    if sum(len(piece.by) * len(piece.curve.parts) for piece in pieces) <= MOST_PARTS:
        return _listed(pieces, atoms, masses)
    found = [(piece, *_anchored(piece.curve)) for piece in pieces]
    origin = found[0][2] + float(found[0][0].by[0])
    shifts = [Shifts(panels, piece.by + (start - origin), piece.shares) for piece, panels, start in found]
    if sum(len(one.by) * len(one.panels.edges) for one in shifts) > MOST_SHIFTED_EDGES:
        raise Unsummable("a sum of point masses and densities has too many peaks to be followed")
    share = math.fsum(float(piece.shares.sum()) for piece in pieces)
    panels = blended(shifts).scaled(1 / share)
    curve = _told(panels.shifted(origin))
    table = curve.parts[0][1]
    there = masses > 0
    made = replace(curve, parts=((share, table),), atoms=atoms[there], masses=masses[there])
    _known[made], _origins[made] = _known[curve], (panels, origin)
    return made


def _listed(pieces: Sequence[ShiftedCurve], atoms: Array, masses: Array) -> Curve:
    shares = [float(share) for piece in pieces for share in piece.shares]
    curves = [_moved(piece.curve, float(by)) for piece in pieces for by in piece.by]
    if len(atoms):
        shares.append(float(masses.sum()))
        curves.append(Curve((), atoms, masses / masses.sum()))
    made = Curve.mixture(shares, curves)
    fine = [(0.0, 0.0) if curve.error == 0 else curve.fine for curve in curves]
    return replace(made, fine=(max(pair[0] for pair in fine), max(pair[1] for pair in fine)))


def _atoms_added(left: Curve, right: Curve) -> Curve:
    """Add two discrete quantities; sums that are equal but for rounding are one."""
    if len(left.atoms) * len(right.atoms) > MOST_PAIRS:
        raise Unsummable("a sum of discrete quantities has too many values")
    sums = np.add.outer(left.atoms, right.atoms).reshape(-1)
    masses = np.multiply.outer(left.masses, right.masses).reshape(-1)
    order = np.argsort(sums, kind="stable")
    sums, masses = sums[order], masses[order]
    tolerance = SAME * float(np.abs(sums).max())
    codes = np.cumsum(np.diff(sums, prepend=sums[0]) > tolerance)
    values = sums[np.searchsorted(codes, np.arange(codes[-1] + 1))]
    return Curve.discrete(values, np.bincount(codes, masses), left.error + right.error)


def _densities_added(left: Curve, right: Curve) -> Curve:
    closed = _closed([(left, 1), (right, 1)])
    if closed is not None:
        return closed
    keys = _value_of(left), _value_of(right)
    if None in keys:
        return _convolved(left, right)
    return _remembered(_ByValue(keys[0], left), _ByValue(keys[1], right))


@dataclass(frozen=True)
class _ByValue:
    """A curve that is known by its family and parameters."""

    value: tuple[Any, ...] | None
    curve: Curve = field(compare=False)


def _value_of(curve: Curve) -> tuple[Any, ...] | None:
    """Return what tells a curve of one standard distribution, stretched and shifted, from others."""
    if len(curve.parts) != 1 or len(curve.atoms) or curve.error:
        return None
    part = curve.parts[0][1]
    if not isinstance(part, Analytic) or not isinstance(part.frozen, StandardNormal | StandardUniform):
        return None
    return type(part.frozen), part.scale, part.shift, part.low, part.high, part.kinks


@lru_cache(maxsize=512)  # tables of random size ask for one sum a size, with and without an observation
def _remembered(left: _ByValue, right: _ByValue) -> Curve:
    return _convolved(left.curve, right.curve)


def _convolved(left: Curve, right: Curve) -> Curve:
    one, other = _anchored(left), _anchored(right)
    panels, origin = convolved(one[0], other[0]), one[1] + other[1]
    curve = _told(panels.shifted(origin) if origin else panels)
    _origins[curve] = panels, origin
    return curve


def _anchored(curve: Curve) -> tuple[PiecewisePolynomial, float]:
    """Return panels about zero, where floats are dense, with a singular end just there; and how far they were moved."""
    if curve not in _origins:
        panels = _panels(curve)
        places = [place for place, order in panels.kinks if order < 0]
        origin = 0.0
        if places:
            origin = 0.0 if 0.0 in places else places[0]
        elif abs(panels.median) > panels.body:
            origin = panels.median
        moved = panels.shifted(-origin) if origin else panels
        if origin and _is_placed(curve, origin, panels.body):
            moved = replace(panels_of(curve.affine(1.0, -origin)), kinks=moved.kinks)
        _origins[curve] = moved, origin
    return _origins[curve]


def _is_placed(curve: Curve, origin: float, width: float) -> bool:
    """Say whether densities are shifted to where they are: moved back, they keep digits that rounding takes there."""
    shifts = [part.shift for _, part in curve.parts if not isinstance(part, Tabulated)]
    return len(shifts) == len(curve.parts) and all(abs(origin - shift) <= NEAR * width for shift in shifts)


def _panels(curve: Curve) -> PiecewisePolynomial:
    if curve not in _known:
        _known[curve] = panels_of(curve)
    return _known[curve]


def _told(panels: PiecewisePolynomial) -> Curve:
    """Return the curve of panels, unless it is not right."""
    curve = panels.curve()
    if not curve.error < LARGEST_ERROR:
        raise Unsummable(f"the distribution of a sum is known to {curve.error:.0e} only")
    _known[curve] = panels
    return curve
