"""Traced cross tables: pivot tables and counts by two keys, with margins and shares."""

from collections.abc import Sequence
from typing import Any

from privug.model.variable import RandomVariable, refuse
from privug.program.traced.frames.cells import Cell, divided
from privug.program.traced.frames.grouping import GroupBy, unstacked
from privug.program.traced.frames.rows import Axis, Rows
from privug.program.traced.masks import Mask, any_of, both

Crossed = tuple[dict[Any, list[Cell]], Rows, dict[Any, Mask]]
"""The columns of a table, its rows, and when columns are there."""

_SKIPPING = {"sum", "mean", "count", "min", "max", "median", "std", "var", "nunique"}
"""What makes nothing of missing values: margins leave out rows in which any is missing."""


def pivoted(frame: Any, values: Any, keys: Sequence[str], aggfunc: Any, fill_value: Any, total: str | None) -> Crossed:
    """Return a table of what a column comes to, by the values of two others; if it is named, with a total."""
    groups = frame.groupby(list(keys))
    crossed: Crossed = groups.pivoted(values, aggfunc, fill_value)
    if total is None:
        return crossed
    if aggfunc not in _SKIPPING or not frame.column(values).is_known:
        refuse("pivot_table() with margins of such values")
    known = _of_known_keys(frame, keys)
    sides = [dict(_by_one_key(known, values, key, aggfunc)) for key in keys]
    return with_margins(crossed, sides[0], sides[1], known.column(values).summary(aggfunc), total, known.rows)


def _of_known_keys(frame: Any, keys: Sequence[str]) -> Any:
    pairs = zip(frame.column(keys[0]).cells, frame.column(keys[1]).cells, strict=True)
    known = type(frame)(frame.data, frame.rows.among([both(one.known, two.known) for one, two in pairs]))
    return known._with_hits(frame)


def _by_one_key(frame: Any, values: Any, key: str, aggfunc: Any) -> list[tuple[Any, Cell]]:
    groups: GroupBy = frame.groupby(key)
    return list(zip((label for label, _ in groups.groups_of_rows), groups.summaries(values, aggfunc), strict=True))


def with_margins(
    crossed: Crossed, by_row: dict[Any, Cell], by_column: dict[Any, Cell], whole: Cell, total: str, counted_rows: Rows
) -> Crossed:
    """Return a table with a row and a column more, of what the others come to together."""
    data, rows, present = crossed
    if isinstance(counted_rows.count, RandomVariable) or not counted_rows.count:
        refuse("margins of a table that may have no rows")
    labels = rows.axis.labels or ()
    if total in labels or total in data:
        refuse("margins under a name that is taken")
    made = {name: [*cells, by_column[name]] for name, cells in data.items()}
    made[total] = [*(by_row[label] for label in labels), whole]
    axis = Axis((None,) * (len(labels) + 1), (*labels, total), rows.axis.names)
    return made, Rows(axis, (*rows.there, True)), {**present, total: True}


def cross_counted(frame: Any, normalize: Any, total: str | None) -> Crossed:
    """Return how often the values of two columns, called 0 and 1, occur together; as shares, or with margins."""
    crossed = unstacked(frame.groupby([0, 1], observed=True).size(), 0)
    if total is not None:
        if normalize is not False:
            refuse("pd.crosstab of shares with margins")
        known = _of_known_keys(frame, (0, 1))  # type: ignore[arg-type]
        sides = [{label: Cell(rows.count) for label, rows in known.groupby(key).groups_of_rows} for key in (0, 1)]
        return with_margins(crossed, sides[0], sides[1], Cell(known.rows.count), total, known.rows)
    return crossed if normalize is False else _as_shares(crossed, normalize)


def _as_shares(crossed: Crossed, normalize: Any) -> Crossed:
    """Return counts as shares of all, of their row or of their column."""
    data, rows, present = crossed
    columns = list(data.values())
    if normalize is True or normalize == "all":
        whole = _sum([cell for column in columns for cell in column])
        totals, there = [[whole] * len(column) for column in columns], [[any_of(rows.there)] * len(c) for c in columns]
    elif normalize in ("columns", 1):
        totals = [[_sum(column)] * len(column) for column in columns]
        there = [[present[name]] * len(data[name]) for name in data]
    elif normalize in ("index", 0):
        by_row = [_sum([column[k] for column in columns]) for k in range(len(rows.there))]
        totals, there = [by_row for _ in columns], [list(rows.there) for _ in columns]
    else:
        refuse("such shares of a cross table")
    shares = {
        name: [divided(*triple) for triple in zip(data[name], total, mask, strict=True)]
        for name, total, mask in zip(data, totals, there, strict=True)
    }
    return shares, rows, present


def _sum(cells: Sequence[Cell]) -> Cell:
    total: Any = 0
    for cell in cells:
        total = total + cell.value
    return Cell(total)
