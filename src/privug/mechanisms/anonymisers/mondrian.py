"""Mondrian: k-anonymity by cutting the table into boxes of at least k rows."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from privug.arguments import kinds_checked
from privug.mechanisms.tables import checked_columns, checked_size, column, labels_of, rows_of, with_columns
from privug.model.node import Array

Ranks = dict[str, tuple[list[Any], Array]]


@kinds_checked
def mondrian(records: Any, k: int, columns: Any) -> Any:
    """Cut the rows in halves at the median of one column after the other, as long as both halves hold k rows.

    The cells of the columns become what the rows of a box have in common: the pair of the smallest and the largest
    value, or for labels the tuple of all that occur. The order of the rows stays. LeFevre and others, 2006.

    >>> ages = [{"age": age} for age in (20, 22, 40, 44)]
    >>> mondrian(ages, 2, "age")
    [{'age': (20, 22)}, {'age': (20, 22)}, {'age': (40, 44)}, {'age': (40, 44)}]
    """
    rows = rows_of(records)
    names = checked_columns(rows, columns)
    checked_size(k, "k")
    if not rows:
        return with_columns(records, rows, {})
    ranks = {name: _ranked(labels_of(column(rows, name), name)) for name in names}
    cells: dict[str, list[Any]] = {name: [None] * len(rows) for name in names}
    for box in _boxes(np.arange(len(rows)), ranks, k):
        for name, (values, places) in ranks.items():
            common = _common([values[rank] for rank in np.unique(places[box])])
            for place in box:
                cells[name][place] = common
    return with_columns(records, rows, cells)


def _ranked(cells: Sequence[Any]) -> tuple[list[Any], Array]:
    """Return the distinct values in order and the rank of each cell among them."""
    numeric = all(isinstance(cell, int | float | np.number) and not isinstance(cell, bool) for cell in cells)
    values = sorted(set(cells)) if numeric else sorted(set(cells), key=lambda value: (str(type(value)), str(value)))
    ranks = {value: rank for rank, value in enumerate(values)}
    return values, np.array([ranks[cell] for cell in cells], np.int64)


def _common(values: Sequence[Any]) -> tuple[Any, ...]:
    numeric = all(isinstance(value, int | float | np.number) and not isinstance(value, bool) for value in values)
    return (values[0], values[-1]) if numeric else tuple(values)


def _boxes(rows: Array, ranks: Ranks, k: int) -> list[Array]:
    """Return the rows in boxes that cannot be cut any more."""
    done, waiting = [], [rows]
    while waiting:
        box = waiting.pop()
        halves = _halves(box, ranks, k)
        if halves is None:
            done.append(box)
        else:
            waiting.extend(halves)
    return [box for box in done if len(box)]


def _halves(box: Array, ranks: Ranks, k: int) -> tuple[Array, Array] | None:
    """Cut a box at the median of its widest column that allows it, relative to the whole table."""
    widths = {
        name: float(np.ptp(places[box])) / max(1, len(values) - 1)
        for name, (values, places) in ranks.items()
        if len(box)
    }
    for name in sorted(widths, key=lambda name: -widths[name]):
        places = ranks[name][1][box]
        lower = places <= np.sort(places)[(len(box) - 1) // 2]
        if k <= int(lower.sum()) <= len(box) - k:
            return box[lower], box[~lower]
    return None
