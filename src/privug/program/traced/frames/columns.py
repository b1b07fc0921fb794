"""Columns of relations: cells in rows, of which some may be missing, and what is computed of them cell by cell.

What is computed of something missing is missing; what comparisons and divisions give otherwise, a dialect says.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from privug.model.operations import almost_never_zero
from privug.model.propositions import implies
from privug.model.variable import RandomVariable, as_node, refuse
from privug.program.logic import where
from privug.program.traced.frames.cells import (
    MISSING,
    Cell,
    applied,
    cell_of,
    harmless,
    hits_of,
    is_category,
    kind,
    without_nan,
)
from privug.program.traced.frames.dialects import Dialect
from privug.program.traced.frames.rows import Axis, Rows
from privug.program.traced.masks import Mask, both, either, negated, truth

ONE = Rows.all_of(Axis((None,)))
"""The row of a single value."""

UNSIGNED = 2**32
"""Counts are whole numbers of 32 bits in polars, without a sign."""


@dataclass(frozen=True, eq=False)
class Column:
    """A column of a frame, what an expression gives, or a series."""

    cells: Sequence[Cell]
    rows: Rows
    name: Any = "literal"
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

    def named(self, name: Any) -> "Column":
        """Return it under another name."""
        return replace(self, name=name)

    def on(self, rows: Rows) -> "Column":
        """Return the cells of other rows of the same axis; one value stands in all of them."""
        if self.single:
            return self.beside_rows(rows)
        return self if self.rows is rows else replace(self, rows=rows)

    def moved(self, cells: Sequence[Cell], rows: Rows) -> "Column":
        """Return cells of the same type in other rows."""
        return Column(cells, rows, self.name, largest=self.largest, levels=self.levels)

    def taken(self, places: Sequence[int | None], rows: Rows) -> "Column":
        """Return the cells at some positions in other rows; where there is no position, one is missing."""
        gap = Cell(self.example, False) if None in places else MISSING
        found = self.moved([gap if place is None else self.cells[place] for place in places], rows)
        if self.known_hits is None:
            return found
        hits = tuple({} if place is None else self.known_hits[place] for place in places)
        return replace(found, known_hits=hits)

    @property
    def example(self) -> Any:
        """A plain value of its kind."""
        value: Any = next((cell.value for cell in self.cells if cell.known is not False), 0.0)
        if is_category(value):
            return value.node.levels[0]
        return {"b": False, "i": 0, "f": 0.0}[kind(value)] if isinstance(value, RandomVariable) else value

    def without_gaps(self) -> "Column":
        """Return its values as if none was missing."""
        return replace(self, cells=[Cell(cell.value) for cell in self.cells])

    def with_cells(self, cells: Sequence[Cell], largest: int | None = None) -> "Column":
        """Return a column of other cells in the same rows."""
        return Column(cells, self.rows, self.name, self.single, largest=largest)

    def each(self, function: Callable[[Cell], Cell]) -> "Column":
        """Return a column computed cell by cell."""
        return self.with_cells([function(cell) for cell in self.cells])

    def summary(self, cell: Cell, largest: int | None = None) -> "Column":
        """Return what it comes to: one value for all rows."""
        return Column((cell,), ONE, self.name, single=True, largest=largest)

    def beside_rows(self, rows: Rows) -> "Column":
        """Return it in some rows: one value stands in all of them."""
        if not self.single:
            return self if self.rows.same_as(rows) else refuse("columns of different rows together")
        cells = [*self.cells] * len(rows.there)
        return replace(self, cells=cells, rows=rows, single=False, literal=False, known_hits=None)

    @property
    def whole(self) -> RandomVariable:
        """The values as one array over rows."""
        return self.rows.axis.whole([cell.value for cell in self.cells])

    @cached_property
    def masks(self) -> list[Mask]:
        """When cells are there and known."""
        return [both(there, cell.known) for cell, there in zip(self.cells, self.rows.there, strict=True)]

    @property
    def is_known(self) -> bool:
        """Whether nothing is missing."""
        return all(cell.known is True for cell in self.cells)

    def hits(self, with_null: bool) -> list[dict[Any, Mask]]:
        """Return for each segment of rows the values that its cells may have; None where one is missing, if asked."""
        several = self.known_hits or tuple(hits_of(cell) for cell in self.cells)
        if not with_null:
            return list(several)
        refuse_nan(self, "groups")
        pairs = zip(self.cells, several, strict=True)
        return [hits if cell.known is True else {None: negated(cell.known), **hits} for cell, hits in pairs]

    @property
    def is_text(self) -> bool:
        """Whether it holds texts, dates or the like."""
        return any(is_category(cell.value) or not isinstance(cell.value, RandomVariable | int | float | np.generic)
                   for cell in self.cells if cell.known is not False)  # fmt: skip

    @property
    def is_fixed(self) -> bool:
        """Whether nothing in it is random."""
        return not any(isinstance(part, RandomVariable) for cell in self.cells for part in cell)

    def place_of(self, value: Any) -> Any:
        """Return what a value is sorted by: missing ones are first, those of cut() in its order."""
        if value is None:
            return (0, 0)
        return (1, value if self.levels is None else self.levels.index(value))


def single(cell: Cell, name: str = "") -> Column:
    """Return one value for all rows."""
    return Column((cell,), ONE, name, single=True)


def as_column(value: Any) -> Column:
    """Return a column as it is, and anything else as a literal."""
    if isinstance(value, Column):
        return value
    if isinstance(value, float) and value != value:
        refuse("NaN among literals")
    if isinstance(value, list | dict | set | np.ndarray):
        refuse(f"a literal of type {type(value).__name__}")
    return Column((cell_of(value),), ONE, single=True, literal=True)


def beside(*columns: Column) -> tuple[Rows, bool, list[Sequence[Cell]]]:
    """Return columns in the same rows: those rows, whether it is one value only, and the cells of each."""
    long = [column for column in columns if not column.single]
    if not long:
        return ONE, True, [column.cells for column in columns]
    return long[0].rows, False, [column.beside_rows(long[0].rows).cells for column in columns]


def combined(function: Callable[..., Cell], *columns: Column, largest: int | None = None) -> Column:
    """Return a column computed of several, under the name of the first."""
    rows, alone, cells = beside(*columns)
    made = [function(*several) for several in zip(*cells, strict=True)]
    literal = all(column.literal for column in columns)
    return Column(made, rows, columns[0].name, alone, literal, largest)


def with_methods(kind: Any, methods: Mapping[str, Callable[..., Any]]) -> None:
    """Give a class methods by their names in a library."""
    for name, method in methods.items():
        method.__name__ = name
        setattr(kind, name, method)


# Types.
def is_whole(column: Column) -> bool:
    """Say whether a column holds whole numbers or truth values."""
    return all(kind(cell.value) in "bi" for cell in column.cells if cell.known is not False)


def is_truths(column: Column) -> bool:
    """Say whether a column holds truth values."""
    return all(kind(cell.value) == "b" for cell in column.cells if cell.known is not False)


def are_alike(*columns: Column) -> bool:
    """Say whether all values are of one type, as far as comparing them goes."""
    families = {family(cell.value) for column in columns for cell in column.cells if cell.known is not False}
    return len(families) < 2 or families <= {"i", "f"}


def has_truths(column: Column) -> bool:
    """Say whether a column holds a truth value: one of which all is missing may be of any type."""
    return any(kind(cell.value) == "b" for cell in column.cells if cell.known is not False)


def family(value: Any) -> Any:
    """Return what polars takes for the type of a value, as far as comparing it goes."""
    if kind(value) in "bif":
        return kind(value)
    levels = value.node.levels if isinstance(value, RandomVariable) else (value,)
    return frozenset(map(type, levels or ()))


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


def refuse_nan(column: Column, what: str) -> None:
    """Refuse numbers that may be NaN, where that is a value of its own."""
    if any(could_be_nan(cell) for cell in column.cells):
        refuse(f"{what} of what may be NaN")


# Arithmetic.
Method = Callable[..., Column]


def arithmetic(function: np.ufunc) -> Method:
    """Return an operation on numbers."""

    def method(left: Column, right: Any) -> Column:
        other = as_column(right)
        if common_largest(left, other) is not None:
            return _of_counts(function, left, other)
        return combined(lambda a, b: applied(function, harmless(a), harmless(b)), left, other)

    return method


def _of_counts(function: np.ufunc, left: Column, right: Column) -> Column:
    """Compute with counts as polars does: what is below zero starts again from 2**32."""
    tops = [side.largest if side.largest is not None else int(side.cells[0].value) for side in (left, right)]
    if function is np.subtract:
        return combined(lambda a, b: _wrapped(applied(function, a, b)), left, right, largest=UNSIGNED - 1)
    top = int(function(tops[0], tops[1])) if function in (np.add, np.multiply) else tops[0]
    if top >= UNSIGNED:
        refuse("counts beyond 32 bits")
    return combined(lambda a, b: applied(function, a, b), left, right, largest=top)


def _wrapped(cell: Cell) -> Cell:
    value = cell.value
    if isinstance(value, RandomVariable):
        return Cell(where(value < 0, value + UNSIGNED, value), cell.known)
    return Cell(value % UNSIGNED, cell.known)


def division(dialect: Dialect) -> Method:
    """Return the division of numbers: zero by zero is NaN, or missing."""

    def method(left: Column, right: Any) -> Column:
        rows, alone, (one, two) = beside(left, as_column(right))
        cells = [divided(dialect, a, b, there) for a, b, there in zip(one, two, rows.there, strict=True)]
        return Column(cells, rows, left.name, alone)

    return method


def divided(dialect: Dialect, left: Cell, right: Cell, there: Mask = True) -> Cell:
    """Divide two cells of a row."""
    divisor = right.value
    if not isinstance(divisor, RandomVariable):
        if dialect.nan_is_missing and divisor == 0:
            left = Cell(left.value, both(left.known, truth(left.value != 0)))
        with np.errstate(all="ignore"):
            return applied(np.true_divide, left, Cell(np.float64(divisor), right.known))
    if not almost_never_zero(divisor.node):
        zero = divisor != 0
        needed = both(there, both(left.known, right.known))
        if isinstance(needed, RandomVariable) and any(
            implies(needed.node, as_node(one)) for one in (divisor > 0, divisor != 0)
        ):
            right = Cell(where(zero, divisor, 1), right.known)  # is never zero where there is a row
        elif dialect.nan_is_missing:
            fine = either(either(truth(left.value > 0), truth(left.value < 0)), zero)
            right = Cell(divisor, both(right.known, fine))
    return applied(np.true_divide, left, right)


# Comparisons and logic.
COMPARISONS = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip


def comparison(dialect: Dialect, function: np.ufunc) -> Method:
    """Return a comparison of columns."""
    return lambda left, right: combined(lambda a, b: compared(dialect, function, a, b), left, as_column(right))


def compared(dialect: Dialect, function: np.ufunc, left: Cell, right: Cell) -> Cell:
    """Compare two cells: something missing is unlike anything, or else it is unknown what it is like."""
    if not dialect.nan_is_missing and (could_be_nan(left) or could_be_nan(right)):
        refuse("a comparison of what may be NaN")
    families = {family(cell.value) for cell in (left, right) if cell.known is not False}
    if not dialect.mixed_types_compare and len(families) > 1 and not families <= {"i", "f"}:
        refuse("a comparison of values of different types")
    told = _unlike_kinds(function, left.value, right.value) if dialect.mixed_types_compare else None
    held, known = applied(function, left, right) if told is None else (told, True)
    if not dialect.missing_compares:
        return Cell(held if isinstance(held, RandomVariable) else bool(held), known)
    known = True if known is True else both(left.known, right.known)
    verdict = truth(held) if known is not False else False
    return Cell(either(negated(known), verdict) if function is np.not_equal else both(known, verdict))


def _unlike_kinds(function: np.ufunc, left: Any, right: Any) -> bool | None:
    """Compare a text with a number: they are never equal."""
    if is_category(left) == is_category(right) or function not in (np.equal, np.not_equal):
        return None
    other, texts = (right, left.node.levels) if is_category(left) else (left, right.node.levels)
    if isinstance(other, int | float) and all(isinstance(level, str) for level in texts):
        return function is np.not_equal
    return None


def connective(function: Callable[..., tuple[Mask, Mask]]) -> Method:
    """Return an operation of logic on when two sides are true and when false: something missing may be either."""

    def cell(left: Cell, right: Cell) -> Cell:
        held = [both(side.known, truth(side.value)) for side in (left, right)]
        failed = [both(side.known, negated(truth(side.value))) for side in (left, right)]
        yes, no = function(*held, *failed)
        return Cell(yes, True if left.known is True and right.known is True else either(yes, no))

    def method(left: Column, right: Any) -> Column:
        other = as_column(right)
        if not (is_truths(left) and is_truths(other)):
            refuse("logic of anything but truth values")
        return combined(cell, left, other)

    return method


conjunction = connective(lambda one, two, not_one, not_two: (both(one, two), either(not_one, not_two)))
disjunction = connective(lambda one, two, not_one, not_two: (either(one, two), both(not_one, not_two)))
exclusive = connective(
    lambda one, two, not_one, not_two: (
        either(both(one, not_two), both(not_one, two)),
        either(both(one, two), both(not_one, not_two)),
    )
)


def inverted(column: Column) -> Column:
    """Return what is not so."""
    masks_of(column)
    return column.each(lambda cell: Cell(negated(truth(cell.value)), cell.known))


def masks_of(column: Column) -> list[Mask]:
    """Return when cells are true: a missing one is not."""
    if not is_truths(column):
        refuse("a condition of anything but truth values")
    return [both(cell.known, truth(cell.value)) for cell in column.cells]
