"""What polars does with columns cell by cell: arithmetic, comparisons, logic with missing values, replacing."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from privug.model.operations import almost_never_zero
from privug.model.propositions import implies
from privug.model.variable import RandomVariable, as_node, refuse
from privug.program.logic import where
from privug.program.traced.frames.cells import Cell, applied, cell_of, harmless, kind
from privug.program.traced.frames.polars.column import (
    UNSIGNED,
    Column,
    as_column,
    beside,
    combined,
    common_largest,
    could_be_nan,
    is_truths,
    is_whole,
    masks_of,
)
from privug.program.traced.masks import Mask, any_of, both, either, negated, truth

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
