"""A quantity plus a discrete one: a mixture of shifted densities, put on panels of its own."""

from typing import NamedTuple

import numpy as np

from privug.inference.exact.curves.panels import ROUNDING, Kink, Panels, apart, merged, refined
from privug.model.node import Array

CROWDED = 0.5  # edges closer than this share of the panels that they come from are left out


class Shifts(NamedTuple):
    """A density of mass one, how far it is shifted, and the share of each shift."""

    panels: Panels
    by: Array
    shares: Array


def blended(mixture: list[Shifts]) -> Panels:
    """Return the density of a mixture of shifted densities, whose mass is the sum of the shares."""
    kinks = _kinks(mixture)
    edges, values, missed = refined(lambda x: _values(mixture, x), _edges(mixture, kinks))
    ends = any(one.panels.open_ends[0] for one in mixture), any(one.panels.open_ends[1] for one in mixture)
    weights = [float(one.shares.sum()) for one in mixture]
    error = missed + sum(weight * one.panels.error for weight, one in zip(weights, mixture, strict=True))
    fine: tuple[float, float] | None = (0.0, 1e-20)
    for weight, one in zip(weights, mixture, strict=True):
        known = one.panels.fine
        fine = None if fine is None or known is None else (max(fine[0], known[0] + 1e-10), fine[1] + weight * known[1])
    made = Panels(edges, values, kinks, ends, error, fine)
    return merged(made, np.array([place for place, _ in kinks]))


def _kinks(mixture: list[Shifts]) -> tuple[Kink, ...]:
    pairs = [(place + by, order) for one in mixture for by in one.by.tolist() for place, order in one.panels.kinks]
    if not pairs:
        return ()
    places = np.array([place for place, _ in pairs])
    kept = apart(places)
    orders = np.full(len(kept), np.inf)
    nearest = np.argmin(np.abs(kept[:, np.newaxis] - places), axis=0)
    np.minimum.at(orders, nearest, [order for _, order in pairs])
    return tuple(zip(kept.tolist(), orders.tolist(), strict=True))


def _edges(mixture: list[Shifts], kinks: tuple[Kink, ...]) -> Array:
    """Return where to begin: at the kinks and, unless they crowd, at the edges of every density."""
    places, gaps = [], []
    for one in mixture:
        widths = np.diff(one.panels.edges)
        gap = np.minimum(np.append(widths, np.inf), np.append(np.inf, widths))
        places.append(np.add.outer(one.by, one.panels.edges).reshape(-1))
        gaps.append(np.tile(gap, len(one.by)))
    every, widths = np.concatenate(places), np.concatenate(gaps)
    order = np.argsort(every, kind="stable")
    fixed = apart(np.array([every.min(), *(place for place, _ in kinks), every.max()]))
    every, widths = every[order], widths[order]
    following = np.clip(np.searchsorted(fixed, every), 1, len(fixed) - 1)
    room = np.minimum(np.abs(every - fixed[following]), np.abs(every - fixed[following - 1]))
    kept, last = [], -np.inf
    for place, width, space in zip(every.tolist(), widths.tolist(), room.tolist(), strict=True):
        if space > CROWDED * width and place - last > CROWDED * width:
            kept.append(place)
            last = place
    return np.unique(np.concatenate([fixed, kept]))


def _values(mixture: list[Shifts], x: Array) -> tuple[Array, Array]:
    """Return the density at some places, and its rounding errors."""
    order = np.argsort(x)
    points = x[order]
    total, noise = np.zeros(len(x)), np.zeros(len(x))
    for one in mixture:
        low, high = one.by + one.panels.edges[0], one.by + one.panels.edges[-1]
        starts, stops = np.searchsorted(points, low), np.searchsorted(points, high, side="right")
        counts = np.maximum(stops - starts, 0)
        which = np.repeat(np.arange(len(counts)), counts)
        point = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts) + starts[which]
        places = points[point] - one.by[which]
        total += np.bincount(point, one.shares[which] * one.panels.at(places), len(x))
        panel = np.clip(np.searchsorted(one.panels.edges, places) - 1, 0, len(one.panels.largest) - 1)
        noise += np.bincount(point, one.shares[which] * one.panels.largest[panel], len(x))
    result, rounding = np.empty(len(x)), np.empty(len(x))
    result[order], rounding[order] = total, 2 * ROUNDING * noise
    return result, rounding
