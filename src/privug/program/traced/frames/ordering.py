"""The values that columns may have, and rows in the order of a column: whatever library the columns are of."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from privug.model.categories import map_levels
from privug.model.operations import ArrayFunction, array_function, gather
from privug.model.variable import RandomVariable, as_node, refuse
from privug.program.traced.frames.cells import Cell, cell_of, chosen, compared, hits_of
from privug.program.traced.frames.rows import Axis, Rows
from privug.program.traced.masks import Mask, both, truth
from privug.program.traced.selections import Selection

MOST_SORTED = 200


class Keys(Protocol):
    """A column whose values may be keys."""

    @property
    def cells(self) -> Sequence[Cell]:
        """What is in its rows."""

    @property
    def hits(self) -> list[dict[Any, Mask]] | None:
        """When cells have each of their values, if that is known already."""


def hits_in(columns: Sequence[Keys], rows: Rows) -> list[dict[Any, Mask]]:
    """Return for each segment of rows the values that columns may have there, each with its condition."""
    per_column = [column.hits or [hits_of(cell) for cell in column.cells] for column in columns]
    if len(columns) == 1:
        return per_column[0]
    found = []
    for several in zip(*per_column, strict=True):
        joined: dict[Any, Mask] = {(): True}
        for hits in several:
            joined = {(*a, b): both(m, n) for a, m in joined.items() for b, n in hits.items()}
        found.append({label: mask for label, mask in joined.items() if mask is not False})
    return found


def all_labels(columns: Sequence[Keys], several: Sequence[Mapping[Any, Mask]]) -> list[Any]:
    """Return all values in ascending order; those of pd.cut in the order of its bins."""
    labels = list(dict.fromkeys(label for hits in several for label in hits))
    try:
        return sorted(labels, key=lambda label: _places(columns, label))
    except (TypeError, ValueError):
        return refuse("groups whose order is not known")


def _places(columns: Sequence[Keys], label: Any) -> tuple[Any, ...]:
    parts = label if len(columns) > 1 else (label,)
    pairs = zip(columns, parts, strict=True)
    return tuple(part if column.hits is None else list(column.hits[0]).index(part) for column, part in pairs)


def banded(
    cells: Sequence[Cell], bands: Sequence[tuple[Any, Any, Any]], right: bool, lowest: bool = False
) -> tuple[list[Cell], list[dict[Any, Mask]]]:
    """Return in which of some bands cells lie, each a name and two bounds, and when each is in each.

    The bound on the right belongs to a band, or else the one on the left; both belong to the lowest, if so asked.
    """
    found, hits = [], []
    for cell in cells:
        own: dict[Any, Mask] = {}
        for place, (name, low, high) in enumerate(bands):
            after = np.greater_equal if not right or (lowest and place == 0) else np.greater
            before = np.less_equal if right else np.less
            sides = [(after, bound) for after, bound in ((after, low), (before, high)) if not np.isinf(bound)]
            own[name] = cell.known
            for function, bound in sides:
                own[name] = both(own[name], truth(compared(function, cell, cell_of(bound)).value))
        total = Cell(0.0, False)
        for name, mask in own.items():
            total = chosen(mask, Cell(name), total)
        found.append(total)
        hits.append(own)
    return found, hits


def sorted_rows(
    data: Mapping[Any, Sequence[Cell]],
    rows: Rows,
    by: Sequence[Sequence[Cell]],
    ascending: Sequence[bool],
    most: int | None,
) -> tuple[dict[Any, list[Cell]], Rows]:
    """Return rows in the order of one column or several, equal ones as they stood; some of the first."""
    axis = rows.axis
    if axis.size > MOST_SORTED or not axis.sorted or any(cell.known is not True for cells in by for cell in cells):
        refuse("an order of so many rows, or of missing values")
    keys = [_order_of(axis, cells, upwards) for cells, upwards in zip(by, ascending, strict=True)]
    if not rows.are_all:
        keys[0] = Selection(keys[0].astype(float), rows.mask).filled(np.inf)
    order = _stable_order if len(keys) == 1 else _lexical_order
    places = RandomVariable(array_function(ArrayFunction("argsort", order), [key.node for key in keys]))
    size = axis.size if most is None else min(most, axis.size)
    number = rows.count
    there = tuple(truth(number > place) for place in range(size))
    found = {name: _gathered(cells, axis, places, size) for name, cells in data.items()}
    return found, Rows(Axis((None,) * size, tuple(range(size)), anonymous=True, leading=there), there)


def _order_of(axis: Axis, cells: Sequence[Cell], ascending: bool) -> Any:
    """Return a column as numbers in the order of which rows are to stand."""
    if not isinstance(ascending, bool):
        refuse("sort_values() in a random direction")
    key = axis.whole([cell.value for cell in cells])
    if key.node.levels is not None:
        if not all(isinstance(level, str) for level in key.node.levels):
            refuse("an order of texts and other values")
        ranks = {level: rank for rank, level in enumerate(sorted(key.node.levels))}
        key = RandomVariable(map_levels(key.node, ranks.__getitem__))
    if key.node.dtype.kind == "b":
        key = key.astype(int)
    return key if ascending else -key


def _lexical_order(*keys: Any) -> Any:
    return np.lexsort(np.broadcast_arrays(*reversed(keys)), axis=-1)


def _stable_order(keys: Any) -> Any:
    return np.argsort(keys, axis=-1, kind="stable")


def _gathered(cells: Sequence[Cell], axis: Axis, places: Any, size: int) -> list[Cell]:
    values = axis.whole([cell.value for cell in cells])
    known = None
    if any(cell.known is not True for cell in cells):
        known = axis.whole([RandomVariable(as_node(cell.known)) for cell in cells])
    found = []
    for place in range(size):
        position = places[place].node
        mask: Mask = True if known is None else RandomVariable(gather(known.node, position))
        found.append(Cell(RandomVariable(gather(values.node, position)), mask))
    return found
