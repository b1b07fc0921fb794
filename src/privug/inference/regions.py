"""Where on the real line a predicate holds: found on a grid, at the numbers it is written with, and by bisection."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from privug.errors import ArgumentError
from privug.model.batch import Batch
from privug.model.node import Array
from privug.program.predicates import holds

INNER = 15  # points put between two that differ, in each round
MOST_CHANGES = 20_000
MOST_NUMBERS = 24

Interval = tuple[float, float]


def true_intervals(
    predicate: Callable[[Any], Any], grid: Array, checks: Array, ends: Interval
) -> list[Interval] | None:
    """Return the intervals on which a predicate holds, or None if it changes too often to be followed.

    `grid` are the points to start from, in order; `checks` are further points at which the answer must be right.
    All values lie between the `ends`.
    """
    points, verdicts = _start(predicate, grid, ends)
    for _ in range(64):
        changes = np.flatnonzero(verdicts[1:] != verdicts[:-1])
        if len(changes) > MOST_CHANGES:
            return None
        gaps = points[changes + 1] - points[changes]
        wide = changes[gaps > 4 * np.spacing(np.maximum(np.abs(points[changes]), np.abs(points[changes + 1])))]
        if not len(wide):
            break
        shares = np.arange(1, INNER + 1) / (INNER + 1)
        inner = points[wide, np.newaxis] + (points[wide + 1] - points[wide])[:, np.newaxis] * shares
        points, verdicts = _merged(points, verdicts, inner.reshape(-1), _judged(predicate, inner.reshape(-1)))
    predicted = verdicts[np.clip(np.searchsorted(points, checks) - 1, 0, len(points) - 1)]
    settled = np.isin(checks, points)
    if np.any((predicted != _judged(predicate, checks)) & ~settled):
        return None
    return _intervals(points, verdicts)


def _judged(predicate: Callable[[Any], Any], points: Array) -> Array:
    return holds(predicate, Batch.of_values(points))


def _start(predicate: Callable[[Any], Any], grid: Array, ends: Interval) -> tuple[Array, Array]:
    """Evaluate the predicate on the grid and around the numbers it names, unless it fails at those."""
    named = _named_points(predicate, *ends)
    try:
        points = np.unique(np.concatenate([grid, named]))
        return points, _judged(predicate, points)
    except ArgumentError:
        if not len(named):
            raise
        return grid, _judged(predicate, grid)


def _named_points(predicate: Callable[[Any], Any], low: float, high: float) -> Array:
    """Return the numbers that stand in a predicate, their sums and differences, and points between them."""
    numbers = np.unique(_numbers(predicate))[:MOST_NUMBERS]
    sums = [a + sign * b for a, b in itertools.product(numbers, repeat=2) for sign in (1.0, -1.0)]
    known = np.unique([*numbers, *sums]) if len(numbers) else np.empty(0)
    known = known[(known > low) & (known < high)]
    around = [known, np.nextafter(known, -math.inf), np.nextafter(known, math.inf)]
    return np.concatenate([*around, (known[1:] + known[:-1]) / 2])


def _numbers(predicate: Callable[[Any], Any]) -> list[float]:
    code = getattr(predicate, "__code__", None)
    if code is None:
        return []
    outer = getattr(predicate, "__globals__", {})
    cells = [cell.cell_contents for cell in getattr(predicate, "__closure__", None) or () if _is_filled(cell)]
    candidates = [*code.co_consts, *cells, *(outer.get(name) for name in code.co_names)]
    numbers = [float(value) for value in candidates if isinstance(value, int | float) and not isinstance(value, bool)]
    return [number for number in numbers if math.isfinite(number)]


def _is_filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def _merged(points: Array, verdicts: Array, new: Array, judged: Array) -> tuple[Array, Array]:
    everything, first = np.unique(np.concatenate([points, new]), return_index=True)
    return everything, np.concatenate([verdicts, judged])[first]


def _intervals(points: Array, verdicts: Array) -> list[Interval]:
    changes = np.flatnonzero(verdicts[1:] != verdicts[:-1])
    bounds = [-math.inf, *((points[changes] + points[changes + 1]) / 2), math.inf]
    held = [bool(verdicts[0]), *(bool(verdict) for verdict in verdicts[changes + 1])]
    return [(float(low), float(high)) for low, high, yes in zip(bounds, bounds[1:], held, strict=False) if yes]
