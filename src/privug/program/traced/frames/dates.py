"""Dates in traced columns of pandas: the timestamps that they are there, beside texts too."""

import datetime
import importlib
from collections.abc import Sequence
from typing import Any

from privug.model.categories import map_levels
from privug.model.variable import RandomVariable, refuse
from privug.program.traced.frames.cells import Cell, cell_of, is_category


def with_timestamps(cells: Sequence[Cell]) -> list[Cell]:
    """Return a column whose dates are timestamps of pandas, if it holds nothing but dates."""
    values = [value for cell in cells if cell.known is not False for value in _values(cell)]
    if not values or not all(isinstance(value, datetime.date) for value in values):
        return list(cells)
    return [cell if cell.known is False else Cell(_stamped(cell.value), cell.known) for cell in cells]


def _values(cell: Cell) -> tuple[Any, ...]:
    return cell.value.node.levels if is_category(cell.value) else (cell.value,)


def _stamped(value: Any) -> Any:
    stamp = importlib.import_module("pandas").Timestamp
    return RandomVariable(map_levels(value.node, stamp)) if is_category(value) else stamp(value)


def are_timestamps(cell: Cell) -> bool:
    """Say whether a cell holds timestamps."""
    return cell.known is not False and all(hasattr(value, "to_pydatetime") for value in _values(cell))


def beside_timestamps(cells: Sequence[Cell], other: Any) -> Any:
    """Return what a column is compared with: beside timestamps, a text is read as one."""
    if not isinstance(other, str) or not any(map(are_timestamps, cells)):
        return other
    try:
        return importlib.import_module("pandas").Timestamp(other)
    except ValueError:
        return refuse("a comparison of dates with a text that is none")


def no_text_beside_timestamps(left: Any, right: Any) -> None:
    """Refuse a comparison of dates with a text, where pandas has rules of its own: in query()."""
    for one, other in ((left, right), (right, left)):
        cells = getattr(one, "cells", None)
        if cells is not None and any(map(are_timestamps, cells)) and isinstance(other, str | list):
            refuse("query() of dates and texts")


def missing_ones(cell: Cell, values: Sequence[Any]) -> bool:
    """Say whether isin() of some values holds of a missing cell; refuse what pandas has no clear rule for."""
    gaps = [value for value in values if not isinstance(value, RandomVariable) and cell_of(value).known is False]
    if not gaps or cell.known is True:
        return False
    if is_category(cell.value) or isinstance(cell.value, str):
        return refuse("isin() of missing dates") if are_timestamps(cell) else True
    if any(not isinstance(value, float) for value in gaps):
        refuse("isin() of None among numbers")
    return True
