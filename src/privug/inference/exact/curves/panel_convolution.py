"""The convolution of two densities on panels.

Where both are polynomials of degree 23, their product is integrated exactly by 24 nodes. Panels of one density that
lie within one panel of the other are taken together: against a polynomial they count by as many moments as it has
coefficients. What is left are stretches at the ends of panels, integrated in the coordinate of the narrower one, so
that a singular end keeps its digits however far from zero the sum is.
"""

from typing import NamedTuple

import numpy as np

from privug.inference.density import NODES, panel_nodes
from privug.inference.effort import spend
from privug.inference.exact.curves.panels import ROUNDING, SMOOTH, Kink, Panels, apart, merged, refined
from privug.model.node import Array

CHUNK = 1 << 9  # stretches whose values at the nodes stay in the processor's cache
COST_OF_STRETCH = 5000.0  # elementary operations
MOST_EDGES = 1 << 20  # that are compared at a time
CROWDED = 0.5  # edges closer than this share of the panels that they come from are left out
LONGEST = 64  # panels that are taken together
FAINT = 1e-4  # narrow panels with less of the mass show by themselves, as they are halved towards a singular end
UNSEEN = 1e-19  # of the density: stretches with less are left out
NARROW = 0.02  # of the width of the body

_STANDARD, _WEIGHTS = (array[0] for array in panel_nodes(np.array([-1.0, 1.0])))


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


def convolved(left: Panels, right: Panels) -> Panels:
    """Return the density of the sum of two independent quantities."""
    kinks = summed_kinks(left.kinks, right.kinks)
    ends = left.open_ends[0] or right.open_ends[0], left.open_ends[1] or right.open_ends[1]
    edges, values, missed = refined(lambda x: _values(left, right, x), _edges(left, right, kinks))
    fine = None
    if left.fine is not None and right.fine is not None:
        fine = left.fine[0] + right.fine[0] + 1e-10, left.fine[1] + right.fine[1] + 1e-20
    error = left.error + right.error + missed / max(left.mass * right.mass, 1e-300)
    made = Panels(edges, values, kinks, ends, error, fine)
    return merged(made, np.array([place for place, _ in kinks]))


def summed_kinks(left: tuple[Kink, ...], right: tuple[Kink, ...]) -> tuple[Kink, ...]:
    """Return the kinks of a convolution: sums of places, whose orders add, plus one."""
    pairs = [(a + b, m + n + 1) for a, m in left for b, n in right if m + n + 1 < SMOOTH]
    if not pairs:
        return ()
    places = np.array([place for place, _ in pairs])
    kept = apart(places)
    nearest = np.searchsorted(kept, places, side="right") - 1
    orders = np.full(len(kept), SMOOTH)
    np.minimum.at(orders, np.maximum(nearest, 0), [order for _, order in pairs])
    return tuple(zip(kept.tolist(), orders.tolist(), strict=True))


def _edges(left: Panels, right: Panels, kinks: tuple[Kink, ...]) -> Array:
    """Return where to begin: sums of kinks, and around each kink the panels of the other, unless they crowd."""
    places: list[Array] = []
    gaps: list[Array] = []
    for one, other in ((left, right), (right, left)):
        starts = list(one.places)
        if not starts and (other.kinks or one.body <= other.body):
            starts = [one.median]  # a narrow density leaves the other as it is
        starts.extend(one.peaks)
        widths = np.diff(other.edges)
        gap = np.minimum(np.append(widths, np.inf), np.append(np.inf, widths))
        mass = np.maximum(np.append(other.masses, 0.0), np.append(0.0, other.masses))
        seen = (mass > FAINT * other.mass) | (gap > NARROW * other.body)
        places.extend(start + other.edges[seen] for start in starts)
        gaps.extend([gap[seen]] * len(starts))
    order = np.argsort(np.concatenate(places), kind="stable")
    candidates, widths = np.concatenate(places)[order], np.concatenate(gaps)[order]
    low, high = left.edges[0] + right.edges[0], left.edges[-1] + right.edges[-1]
    fixed = apart(np.array([low, *(place for place, _ in kinks if low < place < high), high]))
    fixed[0], fixed[-1] = low, high
    room = np.abs(candidates[:, np.newaxis] - fixed).min(axis=1)
    kept: list[float] = []
    last = -np.inf
    for place, width, space in zip(candidates.tolist(), widths.tolist(), room.tolist(), strict=True):
        if low < place < high and space > CROWDED * width and place - last > CROWDED * width:
            kept.append(place)
            last = place
    return np.unique(np.concatenate([fixed, kept]))


def _values(left: Panels, right: Panels, x: Array) -> tuple[Array, Array]:
    """Return the convolution at some places, and its rounding errors."""
    total, noise = np.zeros(len(x)), np.zeros(len(x))
    step = max(1, MOST_EDGES // len(left.edges))
    for start in range(0, len(x), step):
        part = slice(start, start + step)
        few = x[part]
        within_right, within_left, partial = _met(left, right, few)
        for many, one, met in ((left, right, within_right), (right, left, within_left)):
            found = _clustered(many, one, few, met)
            total[part] += found[0]
            noise[part] += found[1]
        found = _partial(left, right, few, _seen(left, right, partial, total[part]))
        total[part] += found[0]
        noise[part] += found[1]
    return total, ROUNDING * noise


def _met(left: Panels, right: Panels, x: Array) -> tuple[Clusters, Clusters, Stretches]:
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
    which = np.repeat(np.arange(len(pieces)), pieces)
    first = met.first[which] + LONGEST * (np.arange(len(which)) - np.repeat(np.cumsum(pieces) - pieces, pieces))
    return Clusters(met.point[which], first, np.minimum(first + LONGEST, met.last[which]), met.other[which])


def _clustered(many: Panels, one: Panels, x: Array, met: Clusters) -> tuple[Array, Array]:
    """Return what panels of `many` within a panel of `one` contribute to each place."""
    total, noise = np.zeros(len(x)), np.zeros(len(x))
    weights = clusters(many)
    for start in range(0, len(met.point), CHUNK):
        point, first, last, other = (array[start : start + CHUNK] for array in met)
        low, high, a, b = many.edges[first], many.edges[last], one.edges[other], one.edges[other + 1]
        # In the coordinate of the wider panel: 2 (x - y) - a - b over its width.
        scale = (high - low) / (b - a)
        origin = (2 * x[point] - low - high - a - b) / (b - a)
        t = np.clip(origin[:, np.newaxis] - scale[:, np.newaxis] * _STANDARD, -1.0, 1.0)
        mass = weights[first, last - first - 1]
        found = _polynomial(one.columns[:, other], t)
        total += np.bincount(point, (found * mass).sum(axis=1), len(x))
        noise += np.bincount(point, one.largest[other] * np.abs(mass).sum(axis=1), len(x))
    return total, noise


def clusters(panels: Panels) -> Array:
    """Return, for panels from each edge on, the masses at 24 nodes that act on polynomials as their density does.

    Those of a longer stretch follow from those of one shorter by a panel, and of that panel.
    """
    if "clusters" in panels.__dict__:
        return np.asarray(panels.__dict__["clusters"])
    edges, count = panels.edges, len(panels.edges) - 1
    table = np.zeros((count, min(count, LONGEST), NODES))
    single = panels.values * (np.diff(edges) / 2)[:, np.newaxis] * _WEIGHTS
    table[:, 0] = single
    for length in range(2, table.shape[1] + 1):
        first = np.arange(count - length + 1)
        last = first + length
        low, middle, high = edges[first], edges[last - 1], edges[last]
        width = (high - low)[:, np.newaxis]
        shorter = ((middle - low)[:, np.newaxis] * (_STANDARD + 1)) / width - 1
        added = 1 - ((high - middle)[:, np.newaxis] * (1 - _STANDARD)) / width
        masses = np.concatenate([table[first, length - 2], single[last - 1]], axis=1)
        vander = np.polynomial.legendre.legvander(np.concatenate([shorter, added], axis=1), NODES - 1)
        moments = np.matmul(masses[:, np.newaxis, :], vander)[:, 0] * (np.arange(NODES) + 0.5)
        table[first, length - 1] = (moments @ _VANDER.T) * _WEIGHTS
    panels.__dict__["clusters"] = table
    return table


_VANDER = np.polynomial.legendre.legvander(_STANDARD, NODES - 1)


def _seen(left: Panels, right: Panels, met: Stretches, total: Array) -> Stretches:
    """Return the stretches that show beside what is known of the density."""
    width = np.minimum(np.diff(left.edges)[met.left], np.diff(right.edges)[met.right])
    bound = width * left.largest[met.left] * right.largest[met.right]
    kept = bound > UNSEEN * np.maximum(total, 0.0)[met.point]
    return Stretches(*(array[kept] for array in met))


def _partial(left: Panels, right: Panels, x: Array, met: Stretches) -> tuple[Array, Array]:
    """Return what pairs of panels contribute of which neither lies within the other."""
    total, noise = np.zeros(len(x)), np.zeros(len(x))
    for start in range(0, len(met.point), CHUNK):
        point, i, j = (array[start : start + CHUNK] for array in met)
        value, rounding = _integrated(left, right, x[point], i, j)
        total += np.bincount(point, value, len(x))
        noise += np.bincount(point, rounding, len(x))
    return total, noise


def _integrated(left: Panels, right: Panels, x: Array, i: Array, j: Array) -> tuple[Array, Array]:
    """Return the integral over each stretch, and what its rounding is relative to."""
    spend(COST_OF_STRETCH * len(i))
    a, b, c, d = left.edges[i], left.edges[i + 1], right.edges[j], right.edges[j + 1]
    narrow = d - c < b - a  # whether the right panel is the narrower one
    near, far, start, end = (np.where(narrow, *pair) for pair in ((c, a), (d, b), (a, c), (b, d)))
    low, high = np.maximum(near, x - end), np.minimum(far, x - start)
    half = np.maximum(high - low, 0.0)[:, np.newaxis] / 2
    place = ((low + high) / 2)[:, np.newaxis] + half * _STANDARD
    own = (2 * place - (near + far)[:, np.newaxis]) / (far - near)[:, np.newaxis]
    across = (2 * (x[:, np.newaxis] - place) - (start + end)[:, np.newaxis]) / (end - start)[:, np.newaxis]
    swap = narrow[:, np.newaxis]
    f = _polynomial(left.columns[:, i], np.clip(np.where(swap, across, own), -1.0, 1.0))
    g = _polynomial(right.columns[:, j], np.clip(np.where(swap, own, across), -1.0, 1.0))
    weights = half * _WEIGHTS
    rough = left.largest[i] * (np.abs(g) * weights).sum(axis=1) + right.largest[j] * (np.abs(f) * weights).sum(axis=1)
    return (f * g * weights).sum(axis=1), rough


def _polynomial(columns: Array, t: Array) -> Array:
    """Return polynomials, a column of coefficients for each row of places, by Clenshaw's rule."""
    degree = max(1, int(np.flatnonzero(columns.any(axis=1)).max(initial=0)))
    c = columns[:, :, np.newaxis]
    above, below = np.empty_like(t), np.empty_like(t)
    above[:], below[:] = c[degree], c[degree - 1]
    scaled = np.empty_like(t)
    for k in range(degree, 1, -1):
        np.multiply(above, t, out=scaled)
        scaled *= (2 * k - 1) / k
        scaled += below
        above *= -(k - 1) / k
        above += c[k - 2]
        below, above, scaled = above, scaled, below
    return np.asarray(below + above * t)
