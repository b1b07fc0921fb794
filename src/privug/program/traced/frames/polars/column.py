"""Columns of polars as values: arithmetic, logic, replacing, summaries, texts and dates."""

import importlib
import inspect
import itertools
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from privug.model.maybe import maybe
from privug.model.operations import almost_never_zero
from privug.model.propositions import implies
from privug.model.variable import RandomVariable, as_node, as_python, refuse
from privug.program.logic import where
from privug.program.traced.frames import reductions
from privug.program.traced.frames.cells import (
    Cell,
    applied,
    cell_of,
    chosen,
    harmless,
    hits_of,
    is_category,
    kind,
    mapped,
    without_nan,
)
from privug.program.traced.frames.pandas.column import called
from privug.program.traced.frames.reductions import count, positive
from privug.program.traced.frames.rows import Axis, Rows, banded, counted
from privug.program.traced.masks import Mask, any_of, both, either, negated, truth


def polars() -> Any:
    """Return the library, which whoever gets here has installed."""
    return importlib.import_module("polars")


def interval_names(breaks: list[Any], left_closed: bool) -> list[str]:
    """Return what cut() calls its bands."""
    inside = [breaks[0] - 1, *((low + high) / 2 for low, high in itertools.pairwise(breaks))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # cut() has another name in later versions
        found = polars().Series([*map(float, inside), float(breaks[-1] + 1)]).cut(breaks, left_closed=left_closed)
    names: list[str] = found.to_list()
    return names


def out_of_bounds(index: int) -> Exception:
    """Return the error of a row that is not there."""
    error: Exception = polars().exceptions.OutOfBoundsError(f"index {index} is out of bounds")
    return error


def is_plain_frame(value: Any) -> bool:
    """Say whether something is a frame of the library itself."""
    return isinstance(value, polars().DataFrame | polars().LazyFrame)


def is_plain_series(value: Any) -> bool:
    """Say whether something is a series of the library itself."""
    return isinstance(value, polars().Series)


def is_plain_expression(value: Any) -> bool:
    """Say whether something is an expression of the library itself."""
    return isinstance(value, polars().Expr)


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


Method = Callable[..., Column]


# Arithmetic.
def arithmetic(function: np.ufunc) -> Method:
    """Return an operation on numbers."""

    def method(left: Column, right: Any) -> Column:
        other = as_column(right)
        largest = common_largest(left, other)
        if largest is None:
            return combined(lambda a, b: applied(function, harmless(a), harmless(b)), left, other)
        return _of_counts(function, left, other)

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


def divided(left: Column, right: Any) -> Column:
    """Divide: zero by zero is NaN, which is not missing."""
    other = as_column(right)
    rows, alone, (one, two) = beside(left, other)
    cells = [_quotient(a, b, there) for a, b, there in zip(one, two, rows.there, strict=True)]
    return Column(tuple(cells), rows, left.name, alone)


def _quotient(left: Cell, right: Cell, there: Mask) -> Cell:
    divisor = right.value
    if not isinstance(divisor, RandomVariable):
        with np.errstate(all="ignore"):
            return applied(np.true_divide, left, Cell(np.float64(divisor), right.known))
    if not almost_never_zero(divisor.node):
        zero = divisor != 0
        needed = both(there, both(left.known, right.known))
        if isinstance(needed, RandomVariable) and any(implies(needed.node, one) for one in _nonzero(divisor)):
            right = Cell(where(zero, divisor, 1), right.known)  # is never zero where there is a row
    return applied(np.true_divide, left, right)


def _nonzero(divisor: RandomVariable) -> list[Any]:
    return [as_node(divisor > 0), as_node(divisor != 0)]


def whole_quotient(left: Column, right: Any) -> Column:
    """Divide and round down."""
    if is_whole(left) and is_whole(as_column(right)):
        return arithmetic(np.floor_divide)(left, right)
    return divided(left, right).each(lambda cell: applied(np.floor, cell))


def remainder(left: Column, right: Any) -> Column:
    """Return what a whole division leaves."""
    if not (is_whole(left) and is_whole(as_column(right))):
        refuse("a remainder of numbers that are not whole")
    return arithmetic(np.remainder)(left, right)


def power(left: Column, right: Any) -> Column:
    """Return a power with a plain exponent."""
    if not isinstance(right, int | float) or isinstance(right, bool) or right < 0 or left.largest is not None:
        refuse("such a power")
    return combined(lambda a, b: applied(np.power, a, b), left, as_column(right))


def negative(column: Column) -> Column:
    """Return numbers with the other sign."""
    if column.largest is not None or is_truths(column):
        refuse("the negative of a count")
    return column.each(lambda cell: applied(np.negative, cell))


def absolute(column: Column) -> Column:
    """Return numbers without their sign."""
    found = column.each(lambda cell: applied(np.absolute, cell))
    return column if column.largest is not None else found


def rounded(column: Column, decimals: int = 0) -> Column:
    """Round as NumPy does; whole numbers stay as they are."""
    if is_whole(column):
        return column
    return column.each(lambda cell: cell if cell.known is False else Cell(np.round(cell.value, decimals), cell.known))


def clipped(column: Column, lower_bound: Any = None, upper_bound: Any = None) -> Column:
    """Return numbers between two bounds."""
    found = column
    for bound, function in ((lower_bound, np.maximum), (upper_bound, np.minimum)):
        if bound is not None:
            sides = found, as_column(bound)
            found = combined(lambda a, b, f=function: applied(f, a, b), *sides, largest=common_largest(*sides))
    return found


# Comparisons and logic.
def comparison(function: np.ufunc) -> Method:
    """Return a comparison, which is missing where a side is."""

    def method(left: Column, right: Any) -> Column:
        return combined(lambda a, b: compared(function, a, b), left, as_column(right))

    return method


def compared(function: np.ufunc, left: Cell, right: Cell) -> Cell:
    """Compare two cells."""
    if could_be_nan(left) or could_be_nan(right):
        refuse("a comparison of what may be NaN")
    if left.known is not False and right.known is not False and _are_unlike(left.value, right.value):
        refuse("a comparison of values of different types")
    held, known = applied(function, left, right)
    return Cell(held if isinstance(held, RandomVariable) else bool(held), known)


def _are_unlike(left: Any, right: Any) -> bool:
    """Say whether polars would not compare two values: dates and texts, truth values and numbers."""
    families = {_family(left), _family(right)}
    return len(families) > 1 and not families <= {"i", "f"}


def _both(left: Cell, right: Cell) -> Cell:
    (yes, no), (other_yes, other_no) = _verdicts(left), _verdicts(right)
    return _verdict(both(yes, other_yes), either(no, other_no), left, right)


def _either(left: Cell, right: Cell) -> Cell:
    (yes, no), (other_yes, other_no) = _verdicts(left), _verdicts(right)
    return _verdict(either(yes, other_yes), both(no, other_no), left, right)


def _one_of_two(left: Cell, right: Cell) -> Cell:
    (yes, no), (other_yes, other_no) = _verdicts(left), _verdicts(right)
    return Cell(either(both(yes, other_no), both(no, other_yes)), both(left.known, right.known))


def _verdicts(cell: Cell) -> tuple[Mask, Mask]:
    held = truth(cell.value)
    return both(cell.known, held), both(cell.known, negated(held))


def _verdict(yes: Mask, no: Mask, left: Cell, right: Cell) -> Cell:
    return Cell(yes, True if left.known is True and right.known is True else either(yes, no))


def connective(function: Callable[[Cell, Cell], Cell]) -> Method:
    """Return an operation of logic, in which something missing may be either."""

    def method(left: Column, right: Any) -> Column:
        other = as_column(right)
        if not (is_truths(left) and is_truths(other)):
            refuse("logic of anything but truth values")
        return combined(function, left, other)

    return method


def inverted(column: Column) -> Column:
    """Return what is not so."""
    masks_of(column)
    return column.each(lambda cell: Cell(negated(truth(cell.value)), cell.known))


def _family(value: Any) -> Any:
    """Return what polars takes for the type of a value, as far as comparing it goes."""
    if kind(value) in "bif":
        return kind(value)
    levels = value.node.levels if isinstance(value, RandomVariable) else (value,)
    return frozenset(map(type, levels or ()))


def is_in(column: Column, values: Any) -> Column:
    """Say which values are among some plain ones."""
    if isinstance(values, Column) or not isinstance(values, Sequence | set | frozenset):
        refuse("is_in() of anything but plain values")
    wanted = [cell_of(value) for value in values if value is not None]
    if len({_family(one.value) for one in (*wanted, *(c for c in column.cells if c.known is not False))}) > 1:
        refuse("is_in() of values of another type")

    def among(cell: Cell) -> Cell:
        return Cell(any_of([truth(compared(np.equal, Cell(cell.value), one).value) for one in wanted]), cell.known)

    return column.each(lambda cell: cell if cell.known is False else among(cell))


def is_between(column: Column, lower_bound: Any, upper_bound: Any, closed: str = "both") -> Column:
    """Say which values lie between two bounds."""
    low = np.greater_equal if closed in ("both", "left") else np.greater
    high = np.less_equal if closed in ("both", "right") else np.less
    return connective(_both)(comparison(low)(column, lower_bound), comparison(high)(column, upper_bound))


def function_of_numbers(function: np.ufunc) -> Method:
    """Return a function of numbers."""

    def method(column: Column) -> Column:
        if column.is_text:
            refuse(f"{function.__name__}() of texts")
        return column.each(lambda cell: applied(function, cell))

    return method


ARITHMETIC: dict[str, Method] = {
    "__add__": arithmetic(np.add), "__sub__": arithmetic(np.subtract), "__mul__": arithmetic(np.multiply),
    "__truediv__": divided, "__floordiv__": whole_quotient, "__mod__": remainder, "__pow__": power,
    "__eq__": comparison(np.equal), "__ne__": comparison(np.not_equal), "__lt__": comparison(np.less),
    "__le__": comparison(np.less_equal), "__gt__": comparison(np.greater), "__ge__": comparison(np.greater_equal),
    "__and__": connective(_both), "__or__": connective(_either), "__xor__": connective(_one_of_two),
    "__neg__": negative, "__invert__": inverted, "__abs__": absolute, "abs": absolute, "not_": inverted,
    "round": rounded, "clip": clipped, "is_in": is_in, "is_between": is_between,
    "floor": function_of_numbers(np.floor), "ceil": function_of_numbers(np.ceil), "exp": function_of_numbers(np.exp),
}  # fmt: skip
"""By the names of polars."""
for _name, _operator in (
    ("add", "__add__"), ("sub", "__sub__"), ("mul", "__mul__"), ("truediv", "__truediv__"), ("pow", "__pow__"),
    ("floordiv", "__floordiv__"), ("mod", "__mod__"), ("eq", "__eq__"), ("ne", "__ne__"), ("lt", "__lt__"),
    ("le", "__le__"), ("gt", "__gt__"), ("ge", "__ge__"), ("and_", "__and__"), ("or_", "__or__"), ("xor", "__xor__"),
):  # fmt: skip
    ARITHMETIC[_name] = ARITHMETIC[_operator]
REFLECTED = ("add", "sub", "mul", "truediv", "floordiv", "mod", "and", "or", "xor")
"""Operators whose first side may be a plain value."""


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


def replaced(column: Column, old: Any, new: Any = None) -> Column:
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
    "replace": replaced, "replace_strict": replace_strict, "map_elements": map_elements, "cut": cut,
    "bin_intervals": bin_intervals, "cast": cast, "alias": Column.named,
}  # fmt: skip
"""By the names of polars."""


def _sure(column: Column) -> None:
    """Refuse numbers that may be NaN, where polars puts those behind all others."""
    if any(could_be_nan(cell) for cell in column.cells):
        refuse("an order of what may be NaN")


def counting(column: Column, number: Any) -> Column:
    """Return a count of rows or values."""
    return single(Cell(number), column.name, column.rows.axis.size)


def total(column: Column) -> Column:
    """Return the sum; of nothing, zero."""
    largest = 1 if is_truths(column) else column.largest
    if largest is not None and largest * column.rows.axis.size >= UNSIGNED:
        refuse("counts beyond 32 bits")
    found = reductions.total(column.cells, column.rows)
    return single(found, column.name, None if largest is None else largest * column.rows.axis.size)


def quantile(column: Column, quantile: Any, interpolation: str = "nearest") -> Column:
    """Return a quantile, the nearest value by default."""
    _sure(column)
    if interpolation not in ("nearest", "linear") or not isinstance(quantile, int | float):
        refuse(f"quantile() with interpolation={interpolation!r}")
    how = reductions.nearest if interpolation == "nearest" else reductions.quantile
    found = how(column.cells, column.rows, quantile)
    return single(found if found.known is False else applied(np.multiply, found, Cell(1.0)), column.name)


def median(column: Column) -> Column:
    """Return the median, the middle between two if there are two."""
    _sure(column)
    return single(reductions.middle(column.cells, column.rows), column.name)


def _extreme(how: Callable[..., Cell], of_truths: Callable[..., Cell]) -> Callable[[Column], Column]:
    def method(column: Column) -> Column:
        known = positive(count(column.cells, column.rows))
        if is_truths(column) and known is not False:
            return single(Cell(of_truths(column.cells, column.rows).value, known), column.name)
        if not any(could_be_nan(cell) for cell in column.cells):
            return single(how(column.cells, column.rows), column.name, column.largest)
        best = how([without_nan(cell) for cell in column.cells], column.rows)  # NaN only if there is nothing else
        return single(Cell(where(best.known, best.value, np.nan), known), column.name)

    return method


def n_unique(column: Column) -> Column:
    """Return how many different values there are, of which missing is one."""
    _sure(column)
    several = column.hits
    levels = list(dict.fromkeys(level for hits in several for level in hits))
    there = [positive(column.rows.among([hits.get(level, False) for hits in several]).count) for level in levels]
    known: Any = sum(1 for one in there if one is True)
    for one in there:
        known = known + np.multiply(one, 1) if isinstance(one, RandomVariable) else known
    return single(Cell(known), column.name, max(len(levels), 1))


def null_count(column: Column) -> Column:
    """Return how many values are missing."""
    missing = [negated(cell.known) for cell in column.cells]
    rows = column.rows.among(missing)
    return counting(column, counted(rows.there, rows.axis.plates))


def _spread(how: Callable[..., Cell]) -> Callable[..., Column]:
    def method(column: Column, ddof: int = 1) -> Column:
        return single(how(column.cells, column.rows, ddof), column.name)

    return method


def _all_or_any(how: Callable[..., Cell]) -> Callable[..., Column]:
    def method(column: Column, *, ignore_nulls: bool = True) -> Column:
        if not ignore_nulls:
            refuse("any() or all() of missing values")
        masks_of(column)
        return single(how(column.cells, column.rows), column.name)

    return method


def first(column: Column) -> Column:
    """Return the first value, missing or not."""
    return single(reductions.first(column.cells, column.rows, known=False), column.name, column.largest)


def last(column: Column) -> Column:
    """Return the last value, missing or not."""
    return single(reductions.last(column.cells, column.rows, known=False), column.name, column.largest)


def filtered(column: Column, *predicates: Column) -> Column:
    """Return those cells for which conditions hold."""
    rows = column.rows
    for predicate in predicates:
        if not column.rows.same_as(predicate.rows):
            refuse("a filter by a column of other rows")
        rows = rows.among(masks_of(predicate))
    return column.on(rows)


def drop_nulls(column: Column) -> Column:
    """Return what is not missing."""
    rows = column.rows.among([cell.known for cell in column.cells])
    return replace(column, cells=tuple(Cell(cell.value) for cell in column.cells), rows=rows)


def drop_nans(column: Column) -> Column:
    """Return what is not NaN."""
    there = [negated(np.isnan(cell.value)) if could_be_nan(cell) else True for cell in column.cells]
    masks = [either(negated(cell.known), mask) for cell, mask in zip(column.cells, there, strict=True)]
    return column.on(column.rows.among(masks))


def cum_sum(column: Column) -> Column:
    """Return the sums of all values so far."""
    if column.largest is not None:
        refuse("cum_sum() of counts")
    return column.with_cells(reductions.cumulative(column.cells, column.rows))


SUMMARIES: dict[str, Callable[..., Column]] = {
    "sum": total, "mean": lambda column: single(reductions.mean(column.cells, column.rows), column.name),
    "min": _extreme(reductions.smallest, reductions.every), "max": _extreme(reductions.largest, reductions.some),
    "median": median, "quantile": quantile, "std": _spread(reductions.deviation), "var": _spread(reductions.variance),
    "n_unique": n_unique, "null_count": null_count, "first": first, "last": last,
    "count": lambda column: counting(column, count(column.cells, column.rows)),
    "len": lambda column: counting(column, column.rows.count),
    "any": _all_or_any(reductions.some), "all": _all_or_any(reductions.every),
}  # fmt: skip
"""By the names of polars."""

OTHERS: dict[str, Callable[..., Column]] = {
    "filter": filtered, "drop_nulls": drop_nulls, "drop_nans": drop_nans, "cum_sum": cum_sum,
}  # fmt: skip
"""Methods that give other rows, or look at all of them for each."""


_PATTERNS = ".^$*+?{}[]\\|()"


def _plain(pattern: Any, literal: bool) -> str:
    if not isinstance(pattern, str) or (not literal and any(letter in pattern for letter in _PATTERNS)):
        refuse("a pattern of texts")
    return pattern


def _slice(text: str, offset: int, length: int | None = None) -> str:
    start = offset if offset >= 0 else max(len(text) + offset, 0)
    return text[start:] if length is None else text[start : start + length]


def _contains(text: str, pattern: str, *, literal: bool = False) -> bool:
    return _plain(pattern, literal) in text


def _replace(text: str, pattern: str, value: str, *, literal: bool = False) -> str:
    return text.replace(_plain(pattern, literal), value, 1)


def _replace_all(text: str, pattern: str, value: str, *, literal: bool = False) -> str:
    return text.replace(_plain(pattern, literal), value)


def _whole_number(text: str, *, base: int = 10, strict: bool = True) -> int | None:
    digits = text.removeprefix("-").removeprefix("+")
    if base == 10 and digits.isascii() and digits.isdigit():
        return int(text)
    return refuse("to_integer() of such texts") if strict else None


TEXTS: dict[str, Callable[..., Any]] = {
    "to_uppercase": lambda text: text.upper(), "to_lowercase": lambda text: text.lower(), "slice": _slice,
    "head": lambda text, n: text[:n], "tail": lambda text, n: text[-n:] if n else "",
    "starts_with": lambda text, prefix: text.startswith(prefix),
    "ends_with": lambda text, suffix: text.endswith(suffix),
    "contains": _contains, "replace": _replace, "replace_all": _replace_all, "len_chars": len,
    "len_bytes": lambda text: len(text.encode()), "zfill": lambda text, length: text.zfill(length),
    "strip_chars": lambda text, characters=None: text.strip(characters), "to_integer": _whole_number,
    "strip_prefix": lambda text, prefix: text.removeprefix(prefix),
    "strip_suffix": lambda text, suffix: text.removesuffix(suffix),
    "pad_start": lambda text, length, fill_char=" ": text.rjust(length, fill_char),
    "pad_end": lambda text, length, fill_char=" ": text.ljust(length, fill_char),
}  # fmt: skip

DATES: dict[str, Callable[..., Any]] = {
    "year": lambda date: date.year, "month": lambda date: date.month, "day": lambda date: date.day,
    "quarter": lambda date: (date.month + 2) // 3, "weekday": lambda date: date.isoweekday(),
    "iso_year": lambda date: date.isocalendar()[0], "week": lambda date: date.isocalendar()[1],
    "ordinal_day": lambda date: date.timetuple().tm_yday, "to_string": lambda date, pattern: date.strftime(pattern),
    "strftime": lambda date, pattern: date.strftime(pattern), "month_start": lambda date: date.replace(day=1),
}  # fmt: skip

NAMES: dict[str, Callable[..., str]] = {
    "suffix": lambda name, suffix: name + suffix, "prefix": lambda name, prefix: prefix + name,
    "to_uppercase": lambda name: name.upper(), "to_lowercase": lambda name: name.lower(),
}  # fmt: skip


def of_values(function: Callable[..., Any]) -> Callable[..., Column]:
    """Return the method of columns that applies a function to each of the values that there may be."""

    def method(column: Column, *arguments: Any, **options: Any) -> Column:
        if any(isinstance(argument, Column) for argument in (*arguments, *options.values())):
            refuse("texts or dates with another column as argument")
        return column.each(lambda cell: mapped(lambda value: function(value, *arguments, **options), cell))

    method.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    return method


def _of_name(function: Callable[..., str]) -> Callable[..., Column]:
    def method(column: Column, *arguments: Any) -> Column:
        return column.named(function(column.name, *arguments))

    method.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    return method


ACCESSORS: dict[str, dict[str, Callable[..., Column]]] = {
    "str": {name: of_values(function) for name, function in TEXTS.items()},
    "dt": {name: of_values(function) for name, function in DATES.items()},
    "name": {name: _of_name(function) for name, function in NAMES.items()},
}
"""The methods of each accessor, by their names."""
