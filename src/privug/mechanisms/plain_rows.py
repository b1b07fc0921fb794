"""Plain tables, whatever they are made of: rows (`pv.Row`, dictionaries, named tuples, data classes) or data frames."""

import dataclasses
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from privug.arguments import shown
from privug.errors import ArgumentError
from privug.model.table import Row, Table, row_maker
from privug.model.variable import RandomVariable, refuse
from privug.program.traced.masks import Standing


def is_frame(records: Any) -> bool:
    """Return whether a table is a data frame of pandas or polars, or stands for one while a program is traced."""
    return isinstance(records, Standing) or (hasattr(records, "columns") and hasattr(records, "shape"))


def rows_of(records: Any) -> list[Any]:
    """Return the rows of a table: of a list as they are, of a data frame as `pv.Row`."""
    if isinstance(records, Standing):
        refuse("the rows of a frame one by one")
    if is_frame(records):
        names = tuple(map(str, records.columns))
        if len(set(names)) < len(names):
            raise ArgumentError(f"records: every column needs a name of its own; they are called {', '.join(names)}")
        make = row_maker(names)
        return [make(cells) for cells in zip(*(list(records[name]) for name in records.columns), strict=True)]
    is_single = isinstance(records, str | bytes | Mapping) or getattr(records, "shape", None) == ()
    if is_single or not isinstance(records, Iterable):
        raise ArgumentError(f"records must be a list of rows or a data frame, not {shown(records)}")
    return list(records)


def names_of(row: Any) -> tuple[str, ...]:
    """Return the names of a row's columns."""
    if isinstance(row, Mapping):
        return tuple(row)
    if dataclasses.is_dataclass(row) and not isinstance(row, type):
        return tuple(field.name for field in dataclasses.fields(row))
    fields = getattr(row, "_fields", None)
    if isinstance(fields, tuple):
        return fields
    raise ArgumentError(
        f"records must hold rows with named columns (pv.Row, dict, named tuple or data class), not {shown(row)}"
    )


def cell(row: Any, name: str) -> Any:
    """Return one cell of a row."""
    try:
        return row[name] if isinstance(row, Mapping) else getattr(row, name)
    except (KeyError, AttributeError):
        raise ArgumentError(f"records: all rows must have the same columns, but {shown(row)} has no {name!r}") from None


def column(records: Sequence[Any], name: str) -> list[Any]:
    """Return the cells of one column."""
    if len(set(map(type, records))) == 1 and not isinstance(records[0], Mapping):
        return list(map(attrgetter(name), records))
    return [cell(row, name) for row in records]


def changed(row: Any, cells: Mapping[str, Any]) -> Any:
    """Return a row of the same kind in which some cells have other values."""
    if isinstance(row, Row):
        return row_maker(row.keys())(cells.get(name, value) for name, value in row._asdict().items())
    if isinstance(row, Mapping):
        return {**row, **cells}
    if dataclasses.is_dataclass(row) and not isinstance(row, type):
        return dataclasses.replace(row, **cells)
    return row._replace(**cells)


def with_columns(records: Any, rows: list[Any], columns: Mapping[str, Sequence[Any]]) -> Any:
    """Return a table of the same kind as some records, which have these rows, with other cells in some columns."""
    if is_frame(records):
        return _frame_with(records, columns)
    if not rows or not columns:
        return like(records, rows)
    if isinstance(rows[0], tuple) and len(set(map(type, rows))) == 1:  # a table's worth of rows at once
        names = names_of(rows[0])
        make = row_maker(names) if isinstance(rows[0], Row) else type(rows[0])._make  # type: ignore[attr-defined]
        own = zip(names, zip(*rows, strict=True), strict=True)
        made = map(make, zip(*(columns.get(name, values) for name, values in own), strict=True))
        return like(records, list(made))
    lines = zip(*columns.values(), strict=True)
    changes = (dict(zip(columns, line, strict=True)) for line in lines)
    return like(records, [changed(row, cells) for row, cells in zip(rows, changes, strict=True)])


def like(records: Any, rows: list[Any]) -> Any:
    """Return rows as the table they come from: a table whose columns can be had is one again, else they are a list."""
    return Table(rows) if isinstance(records, Table) else rows


def _frame_with(frame: Any, columns: Mapping[str, Sequence[Any]]) -> Any:
    """Return a data frame with other cells in some columns; all else, such as its index, stays."""
    if hasattr(frame, "with_columns"):  # of polars, which has one type to a column
        return frame.with_columns(type(frame[name])(name, list(cells), strict=False) for name, cells in columns.items())
    made = frame.copy()
    for name in frame.columns:
        if str(name) in columns:
            made[name] = list(columns[str(name)])
    return made


def taken(records: Any, rows: list[Any], places: Sequence[int]) -> Any:
    """Return a table of the same kind as some records that has some of their rows, by position."""
    if is_frame(records):
        return records.iloc[list(places)] if hasattr(records, "iloc") else records[list(places)]
    return like(records, [rows[place] for place in places])


def reduced(row: Any, names: Sequence[str]) -> Any:
    """Return a row that has only some columns: a dictionary of a dictionary, else a `pv.Row`."""
    if isinstance(row, Mapping):
        return {name: row[name] for name in names}
    return row_maker(tuple(names))(cell(row, name) for name in names)


def listed_names(columns: Any, what: str = "columns") -> tuple[str, ...]:
    """Return names as a tuple; one may be given without a list."""
    if isinstance(columns, str):
        return (columns,)
    if not isinstance(columns, Iterable) or len(getattr(columns, "shape", (1,))) != 1:
        raise ArgumentError(f"{what} must be a list of names, not {shown(columns)}")
    names = tuple(columns)
    if not all(isinstance(name, Hashable) for name in names):
        raise ArgumentError(f"{what} must be a list of names, not {shown(names)}")
    return names


def checked_columns(records: Any, columns: Any, what: str = "columns") -> tuple[str, ...]:
    """Return the names of some columns of a table; one may be given without a list."""
    names = listed_names(columns, what)
    if not names:
        raise ArgumentError(f"{what} must name at least one column")
    known = tuple(map(str, records.columns)) if is_frame(records) else names_of(records[0]) if records else names
    for name in names:
        if name not in known:
            raise ArgumentError(f"{what}: there is no column {shown(name)}; the table has {', '.join(map(str, known))}")
    return names


def labels_of(cells: Sequence[Any], name: str) -> Sequence[Any]:
    """Return the cells of a column as keys that can be looked up: what is missing looks the same in every row."""
    for value in cells:
        if isinstance(value, RandomVariable):
            refuse("finding rows that are alike")
        if not isinstance(value, Hashable):
            raise ArgumentError(f"column {name!r} must hold numbers, strings or other labels, not {value!r}")
    return [None if isinstance(value, float) and value != value else value for value in cells]


def groups(records: Sequence[Any], columns: Sequence[str]) -> dict[tuple[Any, ...], list[int]]:
    """Return the positions of the rows that agree in some columns, by their values there."""
    found: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for position, key in enumerate(zip(*(labels_of(column(records, name), name) for name in columns), strict=True)):
        found[key].append(position)
    return found
