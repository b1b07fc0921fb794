"""Integrals of positive functions given by their logarithms, with all relative digits however small they are.

Panels of Gauss-Legendre nodes begin at kinks and are halved until two rules agree.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from privug.model.node import Array

NODES = 24
SAME = 1e-13  # by how much two rules on one panel may differ, relative to it
NEGLIGIBLE = 50.0  # a panel whose logarithm lies so far below that of the largest one is left as it is
MOST_PANELS = 40_000
DOUBLINGS = 64  # of the distance to the outermost kink: beyond 1e16 scales even Cauchy's tails are gone

LogFunction = Callable[[Array], Array]


class Unintegrable(Exception):
    """An integral takes more panels than can be afforded."""


@lru_cache(maxsize=1)
def _rule() -> tuple[Array, Array]:
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    return (nodes + 1) / 2, np.log(weights / 2)


def log_sum(logs: Array, axis: int = -1) -> Array:
    """Return the logarithm of a sum of numbers given by their logarithms; that of nothing is minus infinity."""
    largest = np.max(logs, axis=axis, keepdims=True, initial=-np.inf)
    shift = np.where(np.isfinite(largest), largest, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.exp(logs - shift).sum(axis=axis)) + np.squeeze(shift, axis))


def log_difference(large: Array, small: Array) -> Array:
    """Return the logarithm of the difference of two numbers given by their logarithms, zero where it is negative."""
    with np.errstate(divide="ignore", invalid="ignore"):
        less = np.where(np.isneginf(small), 0.0, np.exp(np.minimum(small - large, 0.0)))
        return np.asarray(np.where(np.isneginf(large), -np.inf, large + np.log1p(-less)))


def log_integrals(function: LogFunction, low: Array, high: Array) -> Array:
    """Return the logarithms of the integrals over some stretches, each by one rule; empty ones have none."""
    nodes, log_weights = _rule()
    width = np.maximum(high - low, 0.0)
    points = low[:, np.newaxis] + width[:, np.newaxis] * nodes
    logs = function(points.reshape(-1)).reshape(points.shape)
    with np.errstate(divide="ignore"):
        return np.asarray(log_sum(logs + log_weights) + np.log(width))


@dataclass(frozen=True)
class Outline:
    """Where a function is integrated: its kinks, its ends, which may be infinite, and how wide its features are.

    Panels go so far out that what is left out is smaller by a factor of exp(-reach), and at least as far as the places
    to `cover`. What is smaller than the largest panel by a factor of exp(-negligible) is not looked at any closer.
    """

    kinks: Array
    ends: tuple[float, float]
    scale: float
    cover: tuple[float, ...] = ()
    reach: float = 2 * NEGLIGIBLE
    negligible: float = NEGLIGIBLE

    def edges(self, function: LogFunction) -> Array:
        """Return the kinks between the ends, and edges at growing distances from the outermost ones."""
        inner = np.unique(np.clip(self.kinks[np.isfinite(self.kinks)], *self.ends))
        steps = self.scale * 2.0 ** np.arange(-1, DOUBLINGS)
        below, above = inner[0] - steps, inner[-1] + steps
        edges = np.unique(np.concatenate([below, inner, above, self.ends, self.cover]))
        edges = edges[np.isfinite(edges) & (edges >= self.ends[0]) & (edges <= self.ends[1])]
        with np.errstate(divide="ignore"):
            heights = function(np.concatenate([edges, edges[:-1] + np.diff(edges) / 2]))
            at, between = heights[: len(edges)], heights[len(edges) :]
            sizes = np.maximum(np.maximum(at[:-1], at[1:]), between) + np.log(np.diff(edges))
        there = np.flatnonzero(sizes >= np.max(sizes) - self.reach)
        needed = np.clip(np.concatenate([inner, self.cover]), *self.ends)
        first = min(there[0] - 1, np.searchsorted(edges, needed.min()))
        last = max(there[-1] + 2, np.searchsorted(edges, needed.max()))
        return np.asarray(edges[max(0, first) : last + 1])


def panels(function: LogFunction, outline: Outline) -> tuple[Array, Array]:
    """Return the edges of panels, and the logarithms of the integrals over them."""
    edges = outline.edges(function)
    low, high = edges[:-1], edges[1:]
    whole = log_integrals(function, low, high)
    starts, logs, largest = [np.empty(0)], [np.empty(0)], -np.inf
    while len(low):
        middle = low + (high - low) / 2
        left, right = log_integrals(function, low, middle), log_integrals(function, middle, high)
        both = np.logaddexp(left, right)
        largest = max(largest, float(np.max(both)))
        with np.errstate(invalid="ignore"):
            fine = np.abs(whole - both) <= SAME + 4 * np.spacing(np.abs(both))
        fine |= (both < largest - outline.negligible) | np.isneginf(both)
        fine |= high - low <= 8 * np.spacing(np.maximum(np.abs(low), np.abs(high)))
        starts.append(low[fine])
        logs.append(both[fine])
        low, high = np.concatenate([low[~fine], middle[~fine]]), np.concatenate([middle[~fine], high[~fine]])
        whole = np.concatenate([left[~fine], right[~fine]])
        if sum(map(len, starts)) + len(low) > MOST_PANELS:
            raise Unintegrable("quantities that are compared lie too far apart, or have too many steps")
    order = np.argsort(np.concatenate(starts))
    return np.append(np.concatenate(starts)[order], edges[-1]), np.concatenate(logs)[order]
