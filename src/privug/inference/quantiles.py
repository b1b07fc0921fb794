"""Quantiles of densities and atoms put together."""

from collections.abc import Sequence

import numpy as np

from privug.inference.mapped import Density
from privug.model.node import Array

SLACK = 1e-15  # by which a probability may fall short of a level, for rounding
MOST_STEPS = 1100  # enough to halve any range of doubles to its last bit

Parts = Sequence[tuple[float, Density]]


def quantiles(parts: Parts, atoms: Array, masses: Array, p: Array) -> Array:
    """Return the smallest values that are not exceeded with the given probabilities.

    Between two atoms, what the atoms before have is certain: the rest is a quantile of the densities alone.
    """
    if not len(atoms):
        return _of_densities(parts, p)
    before = np.concatenate([[0.0], np.cumsum(masses)])
    below = np.maximum.accumulate(_below(parts, atoms))
    place = np.searchsorted(below + before[1:], p - SLACK)
    here = np.minimum(place, len(atoms) - 1)
    if not parts:
        return np.asarray(atoms[here])
    on_atom = (place < len(atoms)) & (below[here] + before[here] < p - SLACK)
    share = sum(weight for weight, _ in parts)
    between = _of_densities(parts, np.clip((p - before[place]) / share, 0.0, 1.0))
    bounds = np.concatenate([[-np.inf], atoms, [np.inf]])
    return np.where(on_atom, atoms[here], np.clip(between, bounds[place], bounds[place + 1]))


def _below(parts: Parts, x: Array) -> Array:
    endless = np.full(x.shape, -np.inf)
    return sum((weight * part.mass(endless, x) for weight, part in parts), np.zeros(x.shape))


def _above(parts: Parts, x: Array) -> Array:
    endless = np.full(x.shape, np.inf)
    return sum((weight * part.mass(x, endless) for weight, part in parts), np.zeros(x.shape))


def _of_densities(parts: Parts, p: Array) -> Array:
    """Return quantiles of a mixture: by Newton's steps, halving where those leave the range."""
    ends = [np.asarray(part.quantile(p), float) for _, part in parts]
    if len(parts) == 1:
        return ends[0]
    low, high = np.min(ends, axis=0), np.max(ends, axis=0)
    known = (p <= 0) | (p >= 1) | (low == high)
    found: Array = np.where(p >= 1, high, low)
    if not known.all():
        found[~known] = _solved(parts, p[~known], low[~known], high[~known])
    return found


def _solved(parts: Parts, p: Array, low: Array, high: Array) -> Array:
    share = sum(weight for weight, _ in parts)
    x = low / 2 + high / 2
    for _ in range(MOST_STEPS):
        excess = np.where(p > 0.5, (1 - p) - _above(parts, x) / share, _below(parts, x) / share - p)
        reached = excess >= -SLACK
        low, high = np.where(reached, low, x), np.where(reached, x, high)
        density = sum((weight * part.pdf(x) for weight, part in parts), np.zeros(x.shape)) / share
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            step = x - excess / density
        inside = (step > low) & (step < high)
        before, x = x, np.where(inside, step, low / 2 + high / 2)
        closed = high - low <= 2 * np.spacing(np.maximum(np.abs(low), np.abs(high)))
        if np.all(closed | (np.abs(x - before) <= np.spacing(np.abs(x)))):
            break
    return x
