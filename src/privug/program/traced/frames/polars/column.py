"""Methods of columns by the names of polars: arithmetic, logic, replacing, summaries, texts and dates."""

import importlib
import inspect
import itertools
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from privug.model.maybe import maybe
from privug.model.variable import RandomVariable, as_node, as_python, refuse
from privug.program.logic import where
from privug.program.traced.frames import reductions
from privug.program.traced.frames.cells import Cell, applied, cell_of, chosen, mapped, rounded, without_nan
from privug.program.traced.frames.columns import (
    COMPARISONS,
    UNSIGNED,
    Column,
    Method,
    arithmetic,
    as_column,
    beside,
    combined,
    common_largest,
    compared,
    comparison,
    conjunction,
    could_be_nan,
    disjunction,
    division,
    exclusive,
    family,
    has_truths,
    inverted,
    is_truths,
    is_whole,
    masks_of,
    refuse_nan,
)
from privug.program.traced.frames.dialects import POLARS
from privug.program.traced.frames.reductions import count, positive
from privug.program.traced.frames.rows import banded, called
from privug.program.traced.masks import any_of, both, either, negated, truth


def polars() -> Any:
    """Return the library, which whoever gets here has installed."""
    return importlib.import_module("polars")


def is_plain(value: Any, *kinds: str) -> bool:
    """Say whether something is of one of some classes of the library itself."""
    return any(isinstance(value, getattr(polars(), kind)) for kind in kinds)


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


# Arithmetic.
true_quotient = division(POLARS)


def whole_quotient(left: Column, right: Any) -> Column:
    """Divide and round down."""
    if is_whole(left) and is_whole(as_column(right)):
        return arithmetic(np.floor_divide)(left, right)
    return true_quotient(left, right).each(lambda cell: applied(np.floor, cell))


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
    if column.largest is not None or has_truths(column):
        refuse("the negative of a count")
    return column.each(lambda cell: applied(np.negative, cell))


def clipped(column: Column, lower_bound: Any = None, upper_bound: Any = None) -> Column:
    """Return numbers between two bounds."""
    found = column
    for bound, function in ((lower_bound, np.maximum), (upper_bound, np.minimum)):
        if bound is not None:
            sides = found, as_column(bound)
            found = combined(lambda a, b, f=function: applied(f, a, b), *sides, largest=common_largest(*sides))
    return found


def is_in(column: Column, values: Any) -> Column:
    """Say which values are among some plain ones."""
    if isinstance(values, Column) or not isinstance(values, Sequence | set | frozenset):
        refuse("is_in() of anything but plain values")
    wanted = [cell_of(value) for value in values if value is not None]
    if len({family(one.value) for one in (*wanted, *(c for c in column.cells if c.known is not False))}) > 1:
        refuse("is_in() of values of another type")

    def among(cell: Cell) -> Cell:
        return Cell(
            any_of([truth(compared(POLARS, np.equal, Cell(cell.value), one).value) for one in wanted]), cell.known
        )

    return column.each(lambda cell: cell if cell.known is False else among(cell))


def is_between(column: Column, lower_bound: Any, upper_bound: Any, closed: str = "both") -> Column:
    """Say which values lie between two bounds."""
    low = np.greater_equal if closed in ("both", "left") else np.greater
    high = np.less_equal if closed in ("both", "right") else np.less
    return conjunction(comparison(POLARS, low)(column, lower_bound), comparison(POLARS, high)(column, upper_bound))


def function_of_numbers(function: np.ufunc) -> Method:
    """Return a function of numbers."""

    def method(column: Column) -> Column:
        if column.is_text:
            refuse(f"{function.__name__}() of texts")
        return column.each(lambda cell: applied(function, cell))

    return method


OPERATORS: dict[str, Method] = {
    "add": arithmetic(np.add), "sub": arithmetic(np.subtract), "mul": arithmetic(np.multiply), "truediv": true_quotient,
    "floordiv": whole_quotient, "mod": remainder, "pow": power,
    "and": conjunction, "or": disjunction, "xor": exclusive,
    **{name: comparison(POLARS, function) for name, function in COMPARISONS.items()},
}  # fmt: skip
"""By the names of Python."""
REFLECTED = ("add", "sub", "mul", "truediv", "floordiv", "mod", "and", "or", "xor")
"""Operators whose first side may be a plain value."""
ARITHMETIC: dict[str, Method] = {
    **{f"__{name}__": method for name, method in OPERATORS.items()},
    **{f"{name}_" if name in ("and", "or") else name: method for name, method in OPERATORS.items()},
    **dict.fromkeys(("__neg__", "neg"), negative), "__invert__": inverted, "not_": inverted,
    **dict.fromkeys(("__abs__", "abs"), lambda column: (
        column if column.largest is not None else column.each(lambda cell: applied(np.absolute, cell)))),
    "round": lambda column, decimals=0: (
        column if is_whole(column) else column.each(lambda cell: rounded(cell, decimals))),
    "clip": clipped, "is_in": is_in, "is_between": is_between,
    "floor": function_of_numbers(np.floor), "ceil": function_of_numbers(np.ceil), "exp": function_of_numbers(np.exp),
    "sqrt": function_of_numbers(np.sqrt),
}  # fmt: skip
"""By the names of polars."""


# Other values in the place of some.
def fill_null(column: Column, value: Any) -> Column:
    """Put something in the place of what is missing."""
    sides = column, other = column, as_column(value)
    unlike = is_truths(column) != is_truths(other) and not all(cell.known is False for cell in column.cells)
    if column.is_text != other.is_text or unlike:
        refuse("fill_null() with a value of another type")
    return combined(lambda a, b: chosen(a.known, Cell(a.value), b), *sides, largest=common_largest(*sides))


def fill_nan(column: Column, value: Any) -> Column:
    """Put something in the place of NaN."""

    def filled(cell: Cell, other: Cell) -> Cell:
        return chosen(truth(np.isnan(cell.value)), other, cell) if could_be_nan(cell) else cell

    return combined(filled, column, as_column(value))


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
    return Column(found, rows, values[0].name, alone, largest=largest)


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
    number = "Boolean" if is_truths(made) else "Int64" if is_whole(made) else "Float64"
    if return_dtype is not None and type_name(return_dtype) != ("String" if made.is_text else number):
        refuse("map_elements() with a return_dtype that is not the type of what the function returns")
    return made


def cut(column: Column, breaks: Any, *, labels: Any = None, left_closed: bool = False) -> Column:
    """Return in which of some bands numbers lie."""
    bounds = [float("-inf"), *map(float, breaks), float("inf")]
    names = list(labels) if labels is not None else _interval_names(list(breaks), left_closed)
    if len(names) != len(bounds) - 1 or not all(isinstance(name, str) for name in names):
        refuse("cut() with such labels")
    bands = list(zip(names, bounds[:-1], bounds[1:], strict=True))
    cells, hits = banded(column.cells, bands, not left_closed)
    known = [Cell(new.value, old.known) for new, old in zip(cells, column.cells, strict=True)]
    return replace(column.with_cells(known), levels=tuple(names), known_hits=tuple(hits))


def _interval_names(breaks: list[Any], left_closed: bool) -> list[str]:
    """Return what cut() calls its bands."""
    inside = [breaks[0] - 1, *((low + high) / 2 for low, high in itertools.pairwise(breaks))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # cut() has another name in later versions
        found = polars().Series([*map(float, inside), float(breaks[-1] + 1)]).cut(breaks, left_closed=left_closed)
    names: list[str] = found.to_list()
    return names


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
    if kind is int:
        refuse_nan(column, "cast()")

    def converted(cell: Cell) -> Cell:
        random = isinstance(cell.value, RandomVariable)
        return Cell(cell.value.astype(kind) if random else kind(cell.value), cell.known)

    return column.each(converted)


def type_name(dtype: Any) -> str:
    """Return what polars calls a type, of its own or of Python."""
    of_python = {int: "Int64", float: "Float64", str: "String", bool: "Boolean"}
    if dtype in of_python:
        return of_python[dtype]
    name = str(dtype() if isinstance(dtype, type) else dtype)
    return "String" if name == "Utf8" else name


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
    "is_null": lambda column: column.each(lambda cell: Cell(negated(cell.known))),
    "is_not_null": lambda column: column.each(lambda cell: Cell(cell.known)),
    "is_nan": lambda column: column.each(
        lambda cell: Cell(truth(np.isnan(cell.value)) if could_be_nan(cell) else False, cell.known)),
    "fill_null": fill_null, "fill_nan": fill_nan, "replace": replaced, "replace_strict": replace_strict,
    "map_elements": map_elements, "cut": cut, "bin_intervals": bin_intervals, "cast": cast, "alias": Column.named,
}  # fmt: skip
"""By the names of polars."""


# Summaries.
def counting(column: Column, number: Any) -> Column:
    """Return a count of rows or values."""
    return column.summary(Cell(number), column.rows.axis.size)


def total(column: Column) -> Column:
    """Return the sum; of nothing, zero."""
    largest = 1 if has_truths(column) else column.largest
    if largest is not None and largest * column.rows.axis.size >= UNSIGNED:
        refuse("counts beyond 32 bits")
    found = reductions.total(column)
    return column.summary(found, None if largest is None else largest * column.rows.axis.size)


def quantile(column: Column, quantile: Any, interpolation: str = "nearest") -> Column:
    """Return a quantile, the nearest value by default."""
    refuse_nan(column, "an order")
    if interpolation not in ("nearest", "linear") or not isinstance(quantile, int | float):
        refuse(f"quantile() with interpolation={interpolation!r}")
    how = reductions.nearest if interpolation == "nearest" else reductions.quantile
    found = how(column, quantile)
    return column.summary(found if found.known is False else applied(np.multiply, found, Cell(1.0)))


def median(column: Column) -> Column:
    """Return the median, the middle between two if there are two."""
    refuse_nan(column, "an order")
    return column.summary(reductions.middle(column))


def _extreme(how: Callable[..., Cell], of_truths: Callable[..., Cell]) -> Callable[[Column], Column]:
    def method(column: Column) -> Column:
        known = positive(count(column))
        if is_truths(column) and known is not False:
            return column.summary(Cell(of_truths(column).value, known))
        if not any(could_be_nan(cell) for cell in column.cells):
            return column.summary(how(column), column.largest)
        best = how(column.each(without_nan))  # NaN only if there is nothing else
        return column.summary(Cell(where(best.known, best.value, np.nan), known))

    return method


def n_unique(column: Column) -> Column:
    """Return how many different values there are, of which missing is one."""
    refuse_nan(column, "an order")
    found, levels = reductions.distinct(column, null_counts=True)
    return column.summary(found, max(levels, 1))


def _of_cells(how: Callable[..., Cell], keeps_type: bool = False) -> Callable[..., Column]:
    return lambda column: column.summary(how(column), column.largest if keeps_type else None)


def _deviation(how: Callable[..., Cell]) -> Callable[..., Column]:
    return lambda column, ddof=1: column.summary(how(column, ddof))


def _all_or_any(how: Callable[..., Cell]) -> Callable[..., Column]:
    def method(column: Column, *, ignore_nulls: bool = True) -> Column:
        if not ignore_nulls:
            refuse("any() or all() of missing values")
        masks_of(column)
        return column.summary(how(column))

    return method


SUMMARIES: dict[str, Callable[..., Column]] = {
    "sum": total, "mean": _of_cells(reductions.mean), "median": median, "quantile": quantile, "n_unique": n_unique,
    "min": _extreme(reductions.smallest, reductions.every), "max": _extreme(reductions.largest, reductions.some),
    "std": _deviation(reductions.deviation), "var": _deviation(reductions.variance),
    "first": _of_cells(reductions.first_row, True), "last": _of_cells(reductions.last_row, True),
    "count": lambda column: counting(column, count(column)),
    "null_count": lambda column: counting(
        column, column.rows.among([negated(cell.known) for cell in column.cells]).count),
    "len": lambda column: counting(column, column.rows.count),
    "any": _all_or_any(reductions.some), "all": _all_or_any(reductions.every),
}  # fmt: skip
"""By the names of polars."""


# Other rows.
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
    return column.without_gaps().on(rows)


def drop_nans(column: Column) -> Column:
    """Return what is not NaN."""
    there = [negated(np.isnan(cell.value)) if could_be_nan(cell) else True for cell in column.cells]
    masks = [either(negated(cell.known), mask) for cell, mask in zip(column.cells, there, strict=True)]
    return column.on(column.rows.among(masks))


def cum_sum(column: Column) -> Column:
    """Return the sums of all values so far."""
    if column.largest is not None:
        refuse("cum_sum() of counts")
    return column.with_cells(reductions.cumulative(column))


METHODS: dict[str, Method] = {
    **ARITHMETIC, **REPLACING, **SUMMARIES,
    "filter": filtered, "drop_nulls": drop_nulls, "drop_nans": drop_nans, "cum_sum": cum_sum,
}  # fmt: skip


# Texts, dates and names.
_PATTERNS = ".^$*+?{}[]\\|()"


def _plain(pattern: Any, literal: bool) -> str:
    if not isinstance(pattern, str) or (not literal and any(letter in pattern for letter in _PATTERNS)):
        refuse("a pattern of texts")
    return pattern


def _slice(text: str, offset: int, length: int | None = None) -> str:
    start = offset if offset >= 0 else max(len(text) + offset, 0)
    return text[start:] if length is None else text[start : start + length]


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
    "contains": lambda text, pattern, *, literal=False: _plain(pattern, literal) in text,
    "replace": lambda text, pattern, value, *, literal=False: text.replace(_plain(pattern, literal), value, 1),
    "replace_all": lambda text, pattern, value, *, literal=False: text.replace(_plain(pattern, literal), value),
    "len_chars": len, "to_integer": _whole_number,
    "len_bytes": lambda text: len(text.encode()), "zfill": lambda text, length: text.zfill(length),
    "strip_chars": lambda text, characters=None: text.strip(characters),
    "strip_chars_start": lambda text, characters=None: text.lstrip(characters),
    "strip_chars_end": lambda text, characters=None: text.rstrip(characters),
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
