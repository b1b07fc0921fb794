"""Other values in the place of some: of missing ones, by conditions, by tables and functions, in other types."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from privug.model.variable import RandomVariable, refuse
from privug.program.traced.frames.cells import Cell, cell_of, chosen, mapped
from privug.program.traced.frames.handing import called
from privug.program.traced.frames.ordering import banded
from privug.program.traced.frames.polars.column import (
    Column,
    as_column,
    beside,
    combined,
    common_largest,
    could_be_nan,
    is_truths,
    is_whole,
    python_value,
)
from privug.program.traced.frames.polars.library import interval_names
from privug.program.traced.masks import both, negated, truth


def is_null(column: Column) -> Column:
    """Say what is missing."""
    return column.each(lambda cell: Cell(negated(cell.known)))


def is_not_null(column: Column) -> Column:
    """Say what is not missing."""
    return column.each(lambda cell: Cell(cell.known))


def fill_null(column: Column, value: Any) -> Column:
    """Put something in the place of what is missing."""
    other = as_column(value)
    if column.is_text != other.is_text:
        refuse("fill_null() with a value of another type")
    if is_truths(column) != is_truths(other) and not all(cell.known is False for cell in column.cells):
        refuse("fill_null() with a value of another type")
    sides = column, other
    return combined(lambda a, b: chosen(a.known, Cell(a.value), b), *sides, largest=common_largest(*sides))


def fill_nan(column: Column, value: Any) -> Column:
    """Put something in the place of NaN."""

    def filled(cell: Cell, other: Cell) -> Cell:
        return chosen(truth(np.isnan(cell.value)), other, cell) if could_be_nan(cell) else cell

    return combined(filled, column, as_column(value))


def is_nan(column: Column) -> Column:
    """Say what is NaN."""
    return column.each(lambda cell: Cell(truth(np.isnan(cell.value)) if could_be_nan(cell) else False, cell.known))


# Other values in the place of some.
def chosen_between(branches: Sequence[tuple[Column, Column]], otherwise: Column) -> Column:
    """Return the value of the first of some branches whose condition holds."""
    values = [value for _, value in branches]
    largest = common_largest(*values, otherwise)
    rows, alone, cells = beside(*(part for branch in branches for part in branch), otherwise)
    found = []
    for several in zip(*cells, strict=True):
        result = several[-1]
        for condition, value in zip(several[-3::-2], several[-2::-2], strict=True):
            result = chosen(both(condition.known, truth(condition.value)), value, result)
        found.append(result)
    return Column(tuple(found), rows, values[0].name, alone, largest=largest)


def replace(column: Column, old: Any, new: Any = None) -> Column:
    """Put other values in the place of some."""
    table = _table(old, new)
    return column.each(lambda cell: mapped(lambda value: table.get(value, value), cell))


def replace_strict(
    column: Column, old: Any, new: Any = None, *, default: Any = ..., return_dtype: Any = None
) -> Column:
    """Put other values in the place of all; a default for those that are not named, or else an error."""
    if return_dtype is not None:
        return cast(replace_strict(column, old, new, default=default), return_dtype)
    table = _table(old, new)
    if default is ...:
        return column.each(lambda cell: mapped(lambda value: table[value], cell))
    if isinstance(default, Column):
        refuse("replace_strict() with a column as default")
    other = cell_of(default)
    named = column.each(lambda cell: mapped(lambda value: table.get(value, default), cell))
    return combined(lambda a, b: chosen(a.known, b, other), column, named)


def _table(old: Any, new: Any) -> dict[Any, Any]:
    if not isinstance(old, Mapping):
        old = dict(zip(old, new, strict=True)) if isinstance(old, list) and isinstance(new, list) else {old: new}
    if any(key is None or isinstance(key, Column) for key in old):
        refuse("replace() of missing values or of columns")
    return dict(old)


def map_elements(column: Column, function: Any, return_dtype: Any = None, *, skip_nulls: bool = True) -> Column:
    """Call a function on each value that is not missing; it is traced once for rows that are alike."""
    if not skip_nulls:
        refuse("map_elements() of missing values")
    rows = column.rows.among([cell.known for cell in column.cells])
    cells = called(function, [Cell(cell.value) for cell in column.cells], rows, python_value)
    found = zip(cells, column.cells, strict=True)
    made = column.with_cells([Cell(new.value, both(old.known, new.known)) for new, old in found])
    if return_dtype is not None and type_name(return_dtype) != _own_type(made):
        refuse("map_elements() with a return_dtype that is not the type of what the function returns")
    return made


def _own_type(column: Column) -> str:
    """Return the name of the type that polars gives to values that are not converted."""
    if column.is_text:
        return "String"
    return "Boolean" if is_truths(column) else "Int64" if is_whole(column) else "Float64"


def cut(column: Column, breaks: Any, *, labels: Any = None, left_closed: bool = False) -> Column:
    """Return in which of some bands numbers lie."""
    bounds = [float("-inf"), *map(float, breaks), float("inf")]
    names = list(labels) if labels is not None else interval_names(list(breaks), left_closed)
    if len(names) != len(bounds) - 1 or not all(isinstance(name, str) for name in names):
        refuse("cut() with such labels")
    bands = list(zip(names, bounds[:-1], bounds[1:], strict=True))
    cells, hits = banded(column.cells, bands, not left_closed)
    known = [Cell(new.value, old.known) for new, old in zip(cells, column.cells, strict=True)]
    return Column(tuple(known), column.rows, column.name, column.single, levels=tuple(names), known_hits=tuple(hits))


def bin_intervals(column: Column, intervals: Any, *, labels: Any, right_closed: bool = False) -> Column:
    """Return in which of some bands numbers lie, under their labels."""
    if labels is False or isinstance(intervals, int):
        refuse("bin_intervals() without labels or bounds")
    return cut(column, intervals, labels=labels, left_closed=not right_closed)


_NUMBER = re.compile(r"[-+]?\d+(\.\d*)?")


def cast(column: Column, dtype: Any, *, strict: bool = True) -> Column:
    """Return a column in another type."""
    name = type_name(dtype)
    if name == "String":
        return column.each(lambda cell: mapped(_as_text, cell))
    if name in ("Categorical", "Enum"):
        return column
    kinds = {"Int64": int, "Float64": float, "Boolean": bool}
    if name not in kinds or (kinds[name] is bool and not is_whole(column)):
        refuse(f"cast() to {name}")
    kind = kinds[name]
    if column.is_text:
        return column.each(lambda cell: mapped(lambda text: _as_number(text, kind, strict), cell))
    if kind is int and any(could_be_nan(cell) for cell in column.cells):
        refuse("cast() of what may be NaN")
    return column.each(lambda cell: _converted(cell, kind))


def type_name(dtype: Any) -> str:
    """Return what polars calls a type, of its own or of Python."""
    of_python = {int: "Int64", float: "Float64", str: "String", bool: "Boolean"}
    if dtype in of_python:
        return of_python[dtype]
    name = str(dtype() if isinstance(dtype, type) else dtype)
    return "String" if name == "Utf8" else name


def _converted(cell: Cell, kind: type) -> Cell:
    value = cell.value
    return Cell(value.astype(kind) if isinstance(value, RandomVariable) else kind(value), cell.known)


def _as_text(value: Any) -> str:
    if isinstance(value, float):
        refuse("text made of numbers that are not whole")
    return str(value).lower() if isinstance(value, bool) else str(value)


def _as_number(text: str, kind: type, strict: bool) -> Any:
    if _NUMBER.fullmatch(text) and (kind is float or "." not in text):
        return kind(text)
    if strict:
        raise ValueError(f"conversion of {text!r} failed")
    return None


REPLACING: dict[str, Callable[..., Column]] = {
    "is_null": is_null, "is_not_null": is_not_null, "fill_null": fill_null, "fill_nan": fill_nan, "is_nan": is_nan,
    "replace": replace, "replace_strict": replace_strict, "map_elements": map_elements, "cut": cut,
    "bin_intervals": bin_intervals, "cast": cast, "alias": Column.named,
}  # fmt: skip
"""By the names of polars."""
