"""Columns of polars as values: cells in rows, or one cell for all rows, with what polars knows of their types."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from privug.model.maybe import maybe
from privug.model.variable import RandomVariable, as_node, as_python, refuse
from privug.program.traced.frames.cells import Cell, cell_of, hits_of, is_category, without_nan
from privug.program.traced.frames.rows import Axis, Rows
from privug.program.traced.masks import Mask, both, negated

ONE = Rows.all_of(Axis((None,)))
"""The row of a single value."""

UNSIGNED = 2**32
"""Counts are whole numbers of 32 bits in polars, without a sign."""


@dataclass(frozen=True, eq=False)
class Column:
    """A column of a frame, what an expression gives, or a series."""

    cells: tuple[Cell, ...]
    rows: Rows
    name: str = "literal"
    single: bool = False
    """Whether it is one value that stands beside any number of rows: a summary or a literal."""
    literal: bool = False
    """Whether it is a plain value as written, which takes the type of what stands beside it."""
    largest: int | None = None
    """Of counts, the largest number that they can be."""
    levels: tuple[Any, ...] | None = None
    """The values of a column made by cut(), in their order."""
    known_hits: tuple[dict[Any, Mask], ...] | None = None
    """Of a column made by cut(), when cells have each of their values."""

    def named(self, name: str) -> "Column":
        """Return it under another name."""
        return replace(self, name=name)

    def on(self, rows: Rows) -> "Column":
        """Return the cells of other rows of the same axis."""
        return replace(self, rows=rows)

    def with_cells(self, cells: Sequence[Cell], largest: int | None = None) -> "Column":
        """Return a column of other cells in the same rows."""
        return Column(tuple(cells), self.rows, self.name, self.single, largest=largest)

    def each(self, function: Callable[[Cell], Cell]) -> "Column":
        """Return a column without_nan cell by cell."""
        return self.with_cells([function(cell) for cell in self.cells])

    @cached_property
    def hits(self) -> list[dict[Any, Mask]]:
        """For each segment of rows the values that its cells may have, None where one is missing."""
        several = self.known_hits or tuple(hits_of(cell) for cell in self.cells)
        found = []
        for cell, hits in zip(self.cells, several, strict=True):
            if could_be_nan(cell):
                refuse("groups of what may be NaN")
            found.append(hits if cell.known is True else {None: negated(cell.known), **hits})
        return found

    @property
    def is_text(self) -> bool:
        """Whether it holds texts, dates or the like."""
        return any(is_category(cell.value) or not isinstance(cell.value, RandomVariable | int | float | np.generic)
                   for cell in self.cells if cell.known is not False)  # fmt: skip

    def rank(self, value: Any) -> Any:
        """Return what a value is sorted by: missing ones are first, those of cut() in its order."""
        if value is None:
            return (0, 0)
        return (1, value if self.levels is None else self.levels.index(value))


def single(cell: Cell, name: str, largest: int | None = None) -> Column:
    """Return one value for all rows."""
    return Column((cell,), ONE, name, single=True, largest=largest)


def as_column(value: Any) -> Column:
    """Return a column as it is, and anything else as a literal."""
    if isinstance(value, Column):
        return value
    if isinstance(value, float) and value != value:
        refuse("NaN among literals")
    if isinstance(value, list | dict | set | np.ndarray):
        refuse(f"a literal of type {type(value).__name__}")
    return Column((cell_of(value),), ONE, single=True, literal=True)


def beside(*columns: Column) -> tuple[Rows, bool, list[tuple[Cell, ...]]]:
    """Return columns in the same rows: those rows, whether it is one value only, and the cells of each."""
    long = [column for column in columns if not column.single]
    if not long:
        return ONE, True, [column.cells for column in columns]
    rows = long[0].rows
    if any(not rows.same_as(column.rows) for column in long):
        refuse("columns of different rows together")
    size = len(rows.there)
    return rows, False, [column.cells * size if column.single else column.cells for column in columns]


def combined(function: Callable[..., Cell], *columns: Column, largest: int | None = None) -> Column:
    """Return a column without_nan of several, under the name of the first."""
    rows, alone, cells = beside(*columns)
    made = tuple(function(*several) for several in zip(*cells, strict=True))
    literal = all(column.literal for column in columns)
    return Column(made, rows, columns[0].name, alone, literal, largest)


def is_whole(column: Column) -> bool:
    """Say whether a column holds whole numbers or truth values."""
    return all(_kind(cell.value) in "bi" for cell in column.cells if cell.known is not False)


def is_truths(column: Column) -> bool:
    """Say whether a column holds truth values."""
    return all(_kind(cell.value) == "b" for cell in column.cells if cell.known is not False)


def _kind(value: Any) -> str:
    if isinstance(value, RandomVariable):
        return "O" if value.node.levels is not None else value.node.dtype.kind
    return np.asarray(value).dtype.kind


def common_largest(*columns: Column) -> int | None:
    """Return the largest number of columns that may stand for each other, if together they are counts."""
    found = [column.largest if column.largest is not None else _literal_count(column) for column in columns]
    counts = any(column.largest is not None for column in columns)
    return max(one for one in found if one is not None) if counts and None not in found else None


def _literal_count(column: Column) -> int | None:
    """Return a literal beside counts, if it is one; a negative number makes them numbers with a sign."""
    if not column.literal:
        return None
    value, known = column.cells[0]
    if known is False:
        return 0
    if isinstance(value, RandomVariable):
        refuse("a random number beside a count")
    return value if type(value) is int and value >= 0 else None


def could_be_nan(cell: Cell) -> bool:
    """Say whether a number may be NaN, which is not the same as missing: zero divided by zero."""
    return without_nan(cell) is not cell


def masks_of(column: Column) -> list[Mask]:
    """Return when cells are true: a missing one is not."""
    if not is_truths(column):
        refuse("a condition of anything but truth values")
    return [both(cell.known, _truth(cell.value)) for cell in column.cells]


def _truth(value: Any) -> Mask:
    return value if isinstance(value, RandomVariable) else bool(value)


def python_value(cell: Cell) -> Any:
    """Return a cell as polars hands it to Python: None where it is missing, numbers as Python's own."""
    value = cell.value
    if isinstance(value, np.generic):
        value = value.item()
    if cell.known is False:
        return None
    if isinstance(value, RandomVariable) and value.node.levels is None:
        value = as_python(value)
    return value if cell.known is True else RandomVariable(maybe(cell.known.node, as_node(value), None))
