"""How far weighted sums over rows reach: functions of them are followed that far."""

import math
from collections.abc import Sequence

import numpy as np

from privug.inference.curve import Curve
from privug.inference.exact.rows.cells import Cell
from privug.inference.exact.rows.likelihood import Own
from privug.inference.exact.rows.tally import MovingClass, Tally
from privug.inference.mapped import NoSuchMoment
from privug.model.node import Array

WIDEST = 38.0  # deviations from the mean within which functions of sums are followed


class Reaching:
    """Between what numbers weighted sums lie, but for a negligible probability."""

    def __init__(self, tally: Tally, cells: Sequence[Cell]) -> None:
        self._tally = tally
        self._cells = cells
        self._known: dict[tuple[float, ...], tuple[float, float]] = {}
        self._sizes: dict[MovingClass, tuple[Array, float, float]] = {}

    def reach(self, weights: Array) -> tuple[float, float]:
        """Return the ends of a weighted sum of everything that rows add, the row at hand included."""
        key = tuple(weights.tolist())
        if key not in self._known:
            self._known[key] = self._found(weights)
        return self._known[key]

    def _found(self, weights: Array) -> tuple[float, float]:
        flats = self._tally.flats @ weights
        low, high = float(flats.min()), float(flats.max())
        most = self._tally.counts.max(axis=0) if len(self._tally.classes) else []
        attained = not all(_is_smooth(cell, weights) for cell in self._cells)
        for one, count in zip(self._tally.classes, most, strict=True):
            scale = float(np.dot(weights, one.direction))
            if not scale or not count:
                continue
            ends, mean, deviation = self._size(one)
            ends, mean, deviation = np.sort(scale * ends), scale * mean, abs(scale) * deviation
            wide = WIDEST * deviation * math.sqrt(count) + max(abs(ends[0] - mean), abs(ends[1] - mean))
            fewest = int(self._tally.counts[:, list(self._tally.classes).index(one)].min())
            means = sorted((fewest * mean, count * mean))
            low += max(min(fewest * ends[0], count * ends[0]), means[0] - wide)
            high += min(max(fewest * ends[1], count * ends[1]), means[1] + wide)
            attained &= fewest == 0 or len(one.powers.sum(1).atoms) > 0
        own = np.concatenate([_own_ends(cell, weights) for cell in self._cells]) if self._cells else np.zeros(1)
        low, high = low + float(own.min()), high + float(own.max())
        slack = (1e-9 * (high - low) or 1.0) if attained else 0.0
        return low - slack, high + slack

    def _size(self, one: MovingClass) -> tuple[Array, float, float]:
        """Return the ends of what a row of a class adds, its mean and its deviation."""
        if one not in self._sizes:
            curve = one.powers.sum(1)
            try:
                self._sizes[one] = np.array(_ends(curve)), curve.mean(), curve.std()
            except NoSuchMoment:
                self._sizes[one] = np.array(_ends(curve)), 0.0, math.inf
        return self._sizes[one]


def _is_smooth(cell: Cell, weights: Array) -> bool:
    """Say whether what a row in a cell adds to a weighted sum has a density, and no value with a probability."""
    return cell.curve is not None and not len(cell.curve.atoms) and not Own(cell, weights).is_flat


def _own_ends(cell: Cell, weights: Array) -> Array:
    """Return the ends of what a row in a cell adds to a weighted sum."""
    own, flat = Own(cell, weights), float(cell.flats @ weights)
    if own.is_flat or cell.curve is None:
        return np.array([flat])
    return flat + own.at(np.array(_ends(cell.curve)))


def _ends(curve: Curve) -> tuple[float, float]:
    low, high = curve.support
    if not (math.isfinite(low) and math.isfinite(high)):
        below, above = curve.quantiles(np.array([1e-15, 1 - 1e-15]))
        low, high = max(low, float(below)), min(high, float(above))
    return float(low), float(high)
