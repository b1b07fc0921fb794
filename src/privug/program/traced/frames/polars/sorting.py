"""Rows of polars in the order of some columns."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from privug.model.variable import RandomVariable, refuse
from privug.program.traced.frames.cells import Cell, applied, chosen, mapped
from privug.program.traced.frames.ordering import sorted_rows
from privug.program.traced.frames.polars.column import Column, could_be_nan
from privug.program.traced.frames.rows import Axis, Rows

Columns = dict[str, Column]
Key = tuple[Column, bool, bool]
"""What rows are sorted by, whether downwards, and whether missing values are last."""


def is_fixed(column: Column) -> bool:
    """Say whether nothing in a column is random."""
    return not any(isinstance(part, RandomVariable) for cell in column.cells for part in cell)


def fixed_order(keys: Sequence[Column], descending: Sequence[bool], nulls_last: Sequence[bool]) -> list[int]:
    """Return the places of rows in the order of columns of plain values, equal ones as they stand."""
    order = list(range(len(keys[0].cells)))
    for key, down, last in reversed(list(zip(keys, descending, nulls_last, strict=True))):
        values = [cell.value if cell.known else None for cell in key.cells]
        order.sort(key=lambda place: key.rank(values[place]), reverse=down)
        order.sort(key=lambda place: (values[place] is None) == last)
    return order


def in_fixed_order(
    columns: Mapping[str, Column], rows: Rows, keys: Sequence[Column], descending: Sequence[bool], nulls: Sequence[bool]
) -> tuple[Columns, Rows]:
    """Return rows in the order of columns of plain values; equal ones are in a known order only if they were before."""
    order = fixed_order(keys, descending, nulls)
    labels = {tuple(key.cells[place] for key in keys) for place in order}
    axis = Axis((None,) * len(order), sorted=rows.axis.sorted or len(labels) == len(order))
    made = Rows(axis, tuple(rows.there[place] for place in order))
    found = {}
    for name, column in columns.items():
        hits = column.known_hits and tuple(column.known_hits[place] for place in order)
        cells = tuple(column.cells[place] for place in order)
        found[name] = replace(column, cells=cells, rows=made, known_hits=hits)
    return found, made


def in_order(
    columns: Mapping[str, Column], rows: Rows, keys: Sequence[Column], descending: Sequence[bool], nulls: Sequence[bool]
) -> tuple[Columns, Rows]:
    """Return rows in the order of columns, random or plain."""
    fixed = all(map(is_fixed, keys)) and all(plate is None for plate in rows.axis.plates)
    return (in_fixed_order if fixed else in_random_order)(columns, rows, keys, descending, nulls)


def with_open_order(rows: Rows) -> Rows:
    """Return rows of which those that are equal in what they are sorted by may change places."""
    return replace(rows, axis=replace(rows.axis, ranks=_equals_in_any_order))


def tell_apart(keys: Sequence[Column]) -> bool:
    """Say whether those of some columns that are not random differ from row to row."""
    fixed = [key for key in keys if is_fixed(key)]
    labels = {tuple(key.cells[place] for key in fixed) for place in range(len(keys[0].cells))}
    return len(labels) == len(keys[0].cells)


def in_random_order(
    columns: Mapping[str, Column], rows: Rows, keys: Sequence[Column], descending: Sequence[bool], nulls: Sequence[bool]
) -> tuple[Columns, Rows]:
    """Return rows in the order of random columns, equal ones as they stand."""
    rows = replace(rows, axis=replace(rows.axis, sorted=True, ranks=None))
    data: Any = {("column", name): column.cells for name, column in columns.items()}
    for place, (key, down, last) in enumerate(zip(keys, descending, nulls, strict=True)):
        data["key", place] = _numbers(key, down, last)
    by = [data["key", place] for place in range(len(keys))]
    data, rows = sorted_rows(data, rows, by, [True] * len(by), None)
    made = Rows(Axis(rows.axis.plates, leading=rows.there), rows.there)
    return {
        name: Column(tuple(data["column", name]), made, name, largest=column.largest, levels=column.levels)
        for name, column in columns.items()
    }, made


def _numbers(key: Column, descending: bool, nulls_last: bool) -> list[Cell]:
    """Return numbers that are in the order of a column: missing values before or behind all others."""
    if any(could_be_nan(cell) for cell in key.cells):
        refuse("an order of what may be NaN")
    cells = list(key.cells)
    if key.is_text:
        ranks = {value: place for place, value in enumerate(_levels(key))}
        cells = [mapped(ranks.__getitem__, cell) for cell in cells]
    sign, last = Cell(-1 if descending else 1), Cell(np.finfo(float).max if nulls_last else -np.inf)
    found = [cell if cell.known is False else applied(np.multiply, cell, sign) for cell in cells]
    if all(cell.known is True for cell in found):
        return found
    return [last if cell.known is False else chosen(cell.known, _as_float(cell), last) for cell in found]


def _as_float(cell: Cell) -> Cell:
    value = cell.value
    return Cell(value.astype(float) if isinstance(value, RandomVariable) else float(value))


def _equals_in_any_order() -> Sequence[Any]:
    return refuse("rows after sort() by columns in which some are equal, which polars leaves in any order,")


def _levels(key: Column) -> list[Any]:
    values = {value for hits in key.hits for value in hits if value is not None}
    return sorted(values, key=key.rank)
