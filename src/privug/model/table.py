"""Rows and tables as a program sees them. Cells may be plain values or random variables."""

import operator
from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from privug.arguments import listed_names, refuse_code, represented
from privug.errors import PriorError
from privug.model.node import Node, trace_budget
from privug.model.variable import RandomVariable, as_node, items_at, stack_values


class NoColumn(Exception):
    """A row or a table was asked for a column that it does not have; what Python raises there, and this."""

    def __init__(self, name: str, columns: Sequence[str]) -> None:
        super().__init__(name, tuple(columns))

    def __str__(self) -> str:
        name, columns = self.args
        there = f"there are {listed_names(columns, name)}" if columns else "the table has no rows"
        return f"there is no column {name!r}; {there}"


class NoColumnAttribute(NoColumn, AttributeError):
    """Asked for as an attribute."""


class NoColumnKey(NoColumn, KeyError):
    """Asked for by its name in brackets."""


class Row(tuple[Any, ...]):
    """One row of a table: `row.age`, `row["age"]`, `row[1]` and `name, age = row` all work.

    >>> row = Row(name="Alice", age=42)
    >>> name, age = row
    >>> row.age == row["age"] == row[1] == age
    True
    >>> row
    Row(name='Alice', age=42)
    """

    __slots__ = ()
    _fields: tuple[str, ...] = ()
    _places: dict[str, int] = {}

    def __new__(cls, /, **columns: Any) -> "Row":
        if not columns:
            raise PriorError("a row needs at least one column: write Row(name=..., age=...)")
        for name, cell in columns.items():
            refuse_code(f"Row: column {name!r}", cell, PriorError)
        return row_maker(tuple(columns))(columns.values())

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            if key not in self._places:
                raise NoColumnKey(key, self._fields)
            key = self._places[key]
        return tuple.__getitem__(self, key)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        raise NoColumnAttribute(name, self._fields)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild_row, (self._fields, tuple(self))

    def __repr__(self) -> str:
        return f"Row({', '.join(f'{name}={represented(value)}' for name, value in self._asdict().items())})"

    def keys(self) -> tuple[str, ...]:
        """Return the names of the columns."""
        return self._fields

    def _asdict(self) -> dict[str, Any]:
        """Return the row as a dictionary, as a named tuple does."""
        return dict(zip(self._fields, self, strict=True))


def like_row(value: tuple[Any, ...], parts: Iterable[Any]) -> Any:
    """Return a row of the same columns as another, or a tuple of its type, with other parts."""
    made: Any = row_maker(value.keys()) if isinstance(value, Row) else getattr(value, "_make", type(value))
    return made(parts)


@lru_cache(maxsize=1024)
def row_maker(names: tuple[str, ...]) -> Callable[[Iterable[Any]], Row]:
    """Return a fast constructor of rows with these columns from their values."""
    # A named tuple's attributes are read in C, several times faster than a property. The class must stay
    # alive while its attributes are taken: the garbage collector empties classes that nobody holds.
    fields = [f"column_{position}" for position in range(len(names))]
    donor = namedtuple("donor", fields)  # type: ignore[misc]
    columns = {name: vars(donor)[f"column_{k}"] for k, name in enumerate(names) if name not in vars(Row)}
    places = {name: place for place, name in enumerate(names)}
    row_type = type("Row", (Row,), {"__slots__": (), "_fields": names, "_places": places, **columns})
    return partial(tuple.__new__, row_type)


def _rebuild_row(names: tuple[str, ...], values: tuple[Any, ...]) -> Row:
    return row_maker(names)(values)


class Table(list[Row]):
    """A list of rows whose columns can also be had as arrays: `table.age` or `table["age"]`.

    >>> table = Table([Row(name="Alice", age=42), Row(name="Bob", age=25)])
    >>> table.age.mean()
    np.float64(33.5)
    >>> table[1:]
    [Row(name='Bob', age=25)]
    """

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        if not self and not name.startswith("_"):
            return np.empty(0)  # any column of no rows
        if name.startswith("__") or not self or name not in self[0]._fields:
            raise NoColumnAttribute(name, self[0]._fields if self else ())
        return self._column(name)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            return self._column(key)
        if isinstance(key, slice):
            return Table(list.__getitem__(self, key))
        if isinstance(key, RandomVariable):
            columns = self._nodes_of_columns()
            return Row(**dict(zip(columns, items_at(list(columns.values()), key), strict=True)))
        return list.__getitem__(self, key)

    def __iter__(self) -> Iterator[Row]:
        return list.__iter__(self)

    def _cells(self, name: str) -> list[Any]:
        return [row[name] for row in self]

    def _nodes_of_columns(self) -> dict[str, Node]:
        """Return the columns as nodes; the same ones as long as one trace goes on and no row changes."""
        budget = trace_budget.get()
        _, rows, columns = (None, None, {}) if budget is None else budget.columns.get(id(self), (None, None, {}))
        if rows is None or len(rows) != len(self) or not all(map(operator.is_, rows, self)):
            columns = {name: _node_of_column(self._cells(name)) for name in self[0]._fields}
            if budget is not None:
                budget.columns[id(self)] = self, list(self), columns
        return columns

    def _column(self, name: str) -> Any:
        if not self:
            return np.empty(0)
        if name not in self[0]._fields:
            raise NoColumnKey(name, self[0]._fields)
        cells = self._cells(name)
        if any(isinstance(cell, RandomVariable) for cell in cells):
            return RandomVariable(stack_values(cells))
        return plain_column(cells)


def _node_of_column(cells: list[Any]) -> Node:
    return stack_values(cells) if any(isinstance(cell, RandomVariable) for cell in cells) else as_node(cells)


def plain_column(cells: list[Any]) -> np.ndarray[Any, Any]:
    """Return plain cells as an array: of numbers or strings where they all are, else of objects."""
    if all(isinstance(cell, bool | int | float | str | np.generic) for cell in cells):
        return np.array(cells)
    column = np.empty(len(cells), object)
    column[:] = cells
    return column
