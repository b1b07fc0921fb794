"""Data sets as an attacker's knowledge: what the columns hold, whatever library or file they come from."""

import datetime
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from privug.arguments import as_names, is_one_of, shown
from privug.errors import PriorError
from privug.model.node import Array
from privug.model.table import Row, row_maker
from privug.prior.reading import Values, read_columns

MISSING = ("refuse", "drop", "keep")
MISSING_TYPES = ("NAType", "NaTType")  # of pandas, which is not imported for them


@dataclass(frozen=True, eq=False)
class Column:
    """One column: its different values, and for each row the position of its value among them."""

    name: str
    values: tuple[Any, ...]
    codes: Array

    @classmethod
    def of(cls, name: str, cells: Values, possible: Iterable[Any] = ()) -> "Column":
        """Make a column of its cells; `possible` values are listed whether or not they occur."""
        if isinstance(cells, np.ndarray):
            distinct, codes = np.unique(cells, return_inverse=True)
            return cls(name, tuple(distinct.tolist()), codes)
        keys: dict[Any, int] = {}
        codes = np.fromiter((keys.setdefault(_key(cell), len(keys)) for cell in cells), np.int64, len(cells))
        for value in possible:
            keys.setdefault(_key(value), len(keys))
        values = [value for _, value in keys]
        if all(isinstance(value, int | float) for value in values):
            order = np.argsort(np.array(values), kind="stable")
            return cls(name, tuple(values[place] for place in order), np.argsort(order)[codes])
        return cls(name, tuple(values), codes)

    @property
    def is_number(self) -> bool:
        """Whether all values are numbers; yes and no are none."""
        return all(isinstance(value, int | float) and not isinstance(value, bool) for value in self.values)

    @cached_property
    def counts(self) -> Array:
        """How often each value occurs."""
        return np.bincount(self.codes, minlength=len(self.values)).astype(float)

    def cell(self, row: int) -> Any:
        """Return the value in a row."""
        return self.values[self.codes[row]]

    def cells(self) -> list[Any]:
        """Return the values of all rows."""
        return [self.values[code] for code in self.codes]

    def numbers(self) -> Array:
        """Return the cells of a column of numbers."""
        return np.array(self.values, float)[self.codes]

    def code_of(self, value: Any) -> int | None:
        """Return the position of a value; None if the column does not know it."""
        known = {_key(own): place for place, own in enumerate(self.values)}
        return known.get(_key(_plain(value)))


def _key(value: Any) -> tuple[bool, Any]:
    """Keep 1 and True apart, but not 1 and 1.0."""
    return isinstance(value, bool), value


@dataclass(frozen=True, eq=False)
class Frame:
    """A data set: columns of plain values, equally long."""

    columns: tuple[Column, ...]

    def __len__(self) -> int:
        return len(self.columns[0].codes)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)

    def __getitem__(self, name: str) -> Column:
        return self.columns[self.names.index(name)]

    def row(self, position: int) -> Row:
        """Return a row as plain values."""
        return row_maker(self.names)([column.cell(position) for column in self.columns])

    def without(self, position: int) -> "Frame":
        """Return the data set without one row; values that only this row has are forgotten."""
        return Frame(tuple(_without_cell(column, position) for column in self.columns))

    def extended(self, possible: Mapping[str, Iterable[Any]]) -> "Frame":
        """Return the data set with further values that a column may have."""
        self.check_names(possible, "values")
        wide = [
            _extended(column, possible[column.name]) if column.name in possible else column for column in self.columns
        ]
        return Frame(tuple(wide))

    def check_names(self, names: Iterable[str], argument: str) -> None:
        """Raise PriorError if an argument names a column that is not there."""
        if not isinstance(names, Iterable):
            raise PriorError(f"from_frame: {argument} must name columns, not be {shown(names)}")
        for name in names:
            if name not in self.names:
                known = ", ".join(self.names)
                raise PriorError(f"from_frame: {argument} names {name!r}, but the columns are {known}")


def _without_cell(column: Column, position: int) -> Column:
    present, codes = np.unique(np.delete(column.codes, position), return_inverse=True)
    return Column(column.name, tuple(column.values[code] for code in present), codes)


def _extended(column: Column, possible: Iterable[Any]) -> Column:
    if isinstance(possible, str) or not isinstance(possible, Iterable):
        raise PriorError(f"from_frame: values must list what {column.name!r} may be, not {shown(possible)}")
    return Column.of(column.name, column.cells(), _checked(column.name, [*column.values, *possible]))


def frame_of(
    data: Any, columns: Sequence[str] | None = None, labels: Sequence[str] = (), missing: str = "refuse"
) -> Frame:
    """Make a data set of a pandas or polars frame, a dict of columns, a list of rows, or the path of a file."""
    if not is_one_of(missing, MISSING):
        raise PriorError(f"from_frame: missing must be 'refuse', 'drop' or 'keep', not {shown(missing)}")
    cells = _cells_of(data, columns, labels, missing)
    if not cells or not all(len(values) for values in cells.values()):
        raise PriorError("from_frame: the data must have at least one column and one row")
    lengths = {len(values) for values in cells.values()}
    if len(lengths) > 1:
        raise PriorError(f"from_frame: the columns must be equally long, not of {sorted(lengths)} rows")
    absent = _absent(cells, missing) if missing != "keep" else set()
    listed = {name: _without(values, absent) for name, values in cells.items()} if absent else dict(cells)
    for name in labels:
        if name not in listed:
            raise PriorError(f"from_frame: labels names {name!r}, but the columns are {', '.join(listed)}")
        listed[name] = [str(_plain(value)) for value in listed[name]]
    kept = {name: _with_holes(values) if missing == "keep" else values for name, values in listed.items()}
    return Frame(tuple(Column.of(name, _checked(name, values)) for name, values in kept.items()))


def _with_holes(values: Values) -> Values:
    """Return a column with None in the place of what is missing."""
    holes = set(_holes(values))
    return [None if place in holes else _plain(value) for place, value in enumerate(values)] if holes else values


def _cells_of(data: Any, wanted: Sequence[str] | None, labels: Sequence[str], missing: str) -> Mapping[str, Values]:
    for argument, names in (("columns", () if wanted is None else wanted), ("labels", labels)):
        as_names(f"from_frame: {argument}", names, PriorError)
    if isinstance(data, str | Path):
        # A table has a header even if its columns are called by numbers.
        layout = "parquet" if str(data).endswith(".parquet") else "csv"
        return read_columns(data, wanted, labels=labels, layout=layout, missing=missing)
    found = _named_columns(data)
    names = [str(name) for name, _ in found]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise PriorError(f"from_frame: the data has more than one column {twice!r}")
    table = dict(zip(names, (values for _, values in found), strict=True))
    for name in wanted or ():
        if name not in table:
            raise PriorError(f"from_frame: columns names {name!r}, but the data has {', '.join(names)}")
    return {name: _listed(name, table[name]) for name in (names if wanted is None else wanted)}


def _named_columns(data: Any) -> list[tuple[Any, Any]]:
    if hasattr(data, "collect_schema") and hasattr(data, "collect"):
        data = data.collect()  # a lazy frame of polars
    if hasattr(data, "columns") and hasattr(data, "iloc"):
        return [(name, data.iloc[:, place]) for place, name in enumerate(data.columns)]
    if hasattr(data, "get_columns") and hasattr(data, "columns"):
        return [(series.name, series) for series in data.get_columns()]
    if isinstance(data, Mapping):
        return list(data.items())
    if isinstance(data, Sequence) and data and all(isinstance(row, Row | Mapping) for row in data):
        rows = [row._asdict() if isinstance(row, Row) else dict(row) for row in data]
        if any(row.keys() != rows[0].keys() for row in rows):
            raise PriorError("from_frame: all rows must have the same columns")
        return [(name, [row[name] for row in rows]) for name in rows[0]]
    raise PriorError(
        "from_frame: data must be a pandas or polars data frame, a dict of columns, a list of rows, or the path of a "
        f"CSV or Parquet file, not {type(data).__name__}"
    )


def _listed(name: str, values: Any) -> Values:
    """Return a column as an array if it holds nothing but numbers or booleans, else as a list."""
    if hasattr(values, "to_numpy") and hasattr(values, "to_list"):
        array = values.to_numpy()
        return array if array.dtype.kind in "bif" else list(values.to_list())
    if isinstance(values, np.ndarray) and values.ndim == 1:
        return values if values.dtype.kind in "bif" and not np.ma.is_masked(values) else list(values.tolist())
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise PriorError(f"from_frame: column {name!r} must be a list of values, not {shown(values)}")
    return [_plain(value) for value in values]


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def is_missing(value: Any) -> bool:
    """Say whether a cell stands for a value that is not there: None, NaN and what pandas has for them."""
    if value is None or type(value).__name__ in MISSING_TYPES:
        return True
    return isinstance(value, float) and math.isnan(value)


def _without(values: Values, absent: set[int]) -> Values:
    if isinstance(values, np.ndarray):
        return np.delete(values, sorted(absent))
    return [value for place, value in enumerate(values) if place not in absent]


def _absent(cells: Mapping[str, Values], missing: str) -> set[int]:
    """Return the positions of the rows in which something is missing."""
    absent: set[int] = set()
    for name, values in cells.items():
        places = _holes(values)
        if places and missing == "refuse":
            raise PriorError(
                f"from_frame: column {name!r} has {len(places)} missing values, the first in row {places[0]}; write "
                "missing='drop' to leave such rows out, or fill them"
            )
        absent.update(places)
    if len(absent) == len(next(iter(cells.values()))):
        raise PriorError("from_frame: every row of the data has a missing value; choose columns=, or fill them")
    return absent


def _holes(values: Values) -> list[int]:
    if isinstance(values, np.ndarray):
        return np.flatnonzero(np.isnan(values)).tolist() if values.dtype.kind == "f" else []
    return [place for place, value in enumerate(values) if is_missing(value)]


def _checked(name: str, values: Values) -> Values:
    """Return the cells of a column if they are of one kind that a model can be made of."""
    if isinstance(values, np.ndarray):
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            wrong = values[~np.isfinite(values)][0]
            raise PriorError(f"from_frame: column {name!r} holds {wrong}; its numbers must be finite")
        return values
    plain = [_plain(value) for value in values]
    for value in plain:
        if isinstance(value, float) and not math.isfinite(value):
            raise PriorError(f"from_frame: column {name!r} holds {value}; its numbers must be finite")
        if not isinstance(value, bool | int | float | str | Enum | tuple | datetime.date | None):
            raise PriorError(f"from_frame: column {name!r} holds {shown(value)}, of which no model is made; convert it")
    kinds = {_kind_of(value) for value in plain if value is not None}
    if len(kinds) > 1:
        found = " and ".join(sorted(kinds))
        raise PriorError(f"from_frame: column {name!r} holds {found}; convert it, or write labels=[{name!r}]")
    if kinds == {"numbers"} and any(isinstance(value, float) for value in plain):
        return [value if value is None else float(value) for value in plain]
    return plain


def _kind_of(value: Any) -> str:
    if isinstance(value, bool):
        return "booleans"
    return "numbers" if isinstance(value, int | float) and not isinstance(value, Enum) else "labels"
