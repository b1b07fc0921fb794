"""What columns come to: sums, means, extremes and the like of those cells that are there and known."""

from collections.abc import Callable
from typing import Any

import numpy as np

from privug.model.plates import Plate, fold
from privug.model.variable import RandomVariable, as_element, as_node, refuse
from privug.program.logic import where
from privug.program.traced.frames.cells import MISSING, Cell, applied, chosen, is_category, is_truth, kind
from privug.program.traced.frames.columns import Column
from privug.program.traced.frames.rows import counted, exceeds
from privug.program.traced.masks import Mask, both, negated, truth
from privug.program.traced.selections import Selection

_LARGEST = int(np.iinfo(np.int64).max)
Held = list[tuple[Any, Mask, Plate | None]]


def held(column: Column) -> Held:
    """Return the values of a column, each with the condition under which it is there and known, and its plate."""
    values = [cell.value for cell in column.cells]
    found = zip(values, column.masks, column.rows.axis.plates, strict=True)
    return [one for one in found if one[1] is not False]


def count(column: Column) -> Any:
    """Return how many values are known."""
    return column.rows.count if column.is_known else counted(column.masks, column.rows.axis.plates)


def positive(number: Any) -> Mask:
    """Return whether a count is above zero."""
    return exceeds(number, 0)


def total(column: Column) -> Cell:
    """Return the sum; of nothing, zero."""
    return Cell(_summed(held(column)))


def _summed(values: Held) -> Any:
    known: Any = 0
    result: Any = None
    for value, mask, plate in values:
        if isinstance(value, str) or is_category(value):
            refuse("a sum of texts")
        term = _term(value, mask)
        if not isinstance(term, RandomVariable):
            known = known + term * (1 if plate is None else plate.size)
            continue
        more: Any = fold(plate, "sum", term) if plate is not None else np.multiply(term, 1) if is_truth(term) else term
        result = more if result is None else np.add(result, more)
    return known if result is None else as_element(as_node(np.add(result, known)))


def _term(value: Any, mask: Mask) -> Any:
    if mask is True:
        return int(value) if isinstance(value, bool) else value
    return both(mask, value) if is_truth(value) else where(mask, value, 0)


def mean(column: Column) -> Cell:
    """Return the mean; of nothing, there is none."""
    return _ratio(_summed(held(column)), count(column), 0)


def _ratio(numerator: Any, number: Any, less: int) -> Cell:
    """Divide by a count less some, if that is above zero."""
    if not isinstance(number, RandomVariable):
        return MISSING if number <= less else applied(np.true_divide, Cell(numerator), Cell(number - less))
    enough = exceeds(number, less)
    divisor = number - less if enough is True else where(enough, number - less, 1)
    return Cell(np.true_divide(numerator, divisor), enough)


def variance(column: Column, ddof: int = 1) -> Cell:
    """Return the variance; of too few, there is none."""
    middle, number = mean(column), count(column)
    squares = []
    for value, mask, plate in held(column):
        apart = applied(np.subtract, Cell(value), Cell(middle.value)).value
        squares.append((apart * apart, mask, plate))
    return _ratio(_summed(squares), number, ddof)


def deviation(column: Column, ddof: int = 1) -> Cell:
    """Return the standard deviation; of too few, there is none."""
    found = variance(column, ddof)
    return found if found.known is False else applied(np.sqrt, found)


def standard_error(column: Column, ddof: int = 1) -> Cell:
    """Return the standard error of the mean."""
    spread, number = deviation(column, ddof), count(column)
    size = where(number > 0, number, 1) if isinstance(number, RandomVariable) else max(number, 1)
    return spread if spread.known is False else applied(np.true_divide, spread, applied(np.sqrt, Cell(size)))


def smallest(column: Column) -> Cell:
    """Return the smallest value; of nothing, there is none."""
    return _extreme(column, "min", np.minimum, 1)


def largest(column: Column) -> Cell:
    """Return the largest value; of nothing, there is none."""
    return _extreme(column, "max", np.maximum, -1)


def _extreme(column: Column, how: str, better: np.ufunc, sign: int) -> Cell:
    best: Any = None
    values = held(column)
    fractional = any(kind(value) == "f" for value, _, _ in values)
    for value, mask, plate in values:
        if kind(value) not in "if":
            refuse(f"{how}() of anything but numbers")
        last = sign * (np.inf if fractional else _LARGEST)
        term = value if mask is True else where(mask, value, last)
        if plate is not None and (plate.is_ragged or isinstance(term, RandomVariable)):
            term = fold(plate, how, term)
        best = term if best is None else better(best, term)
    if best is None:
        return MISSING
    return Cell(best.item() if isinstance(best, np.generic) else best, positive(count(column)))


def selection(column: Column) -> Selection | RandomVariable:
    """Return the numbers that are there and known: as an array, or as some elements of one."""
    array = column.whole
    if array.node.levels is not None:
        refuse("an array of texts")
    if all(mask is True for mask in column.masks):
        return array
    return Selection(array, column.rows.axis.whole([RandomVariable(as_node(mask)) for mask in column.masks]))


def quantile(column: Column, q: Any = 0.5) -> Cell:
    """Return a quantile, between two values as NumPy does by default; of nothing, there is none."""
    if isinstance(q, RandomVariable) or not isinstance(q, int | float):
        refuse("quantile() at several places")
    known = positive(count(column))
    if known is False:
        return MISSING
    values = selection(column)
    found: Any = values.quantile(q) if isinstance(values, Selection) else np.quantile(values, q)
    return Cell(found, known)


def nearest(column: Column, q: float) -> Cell:
    """Return the value closest to a quantile, the larger of two as close; of nothing, there is none."""
    number, array = count(column), selection(column)
    known = positive(number)
    if known is False:
        return MISSING
    place: Any = np.floor(float(q) * (number - 1) + 0.5)
    if isinstance(array, Selection):
        ordered = np.sort(array.filled(np.inf))
        return Cell(ordered[np.where(known, place, 0.0).astype(int)], known)
    return Cell(np.sort(array)[int(place)], known)


def middle(column: Column) -> Cell:
    """Return the median; of nothing, there is none."""
    return quantile(column, 0.5)


def cumulative(column: Column) -> list[Cell]:
    """Return the sums of all values so far."""
    rows = column.rows
    if not rows.are_all or not column.is_known or not rows.axis.sorted:
        refuse("sums so far of a random number of rows")
    summed: Any = np.cumsum(column.whole)
    return [Cell(part) for part in rows.axis.parts(summed)]


def distinct(column: Column, null_counts: bool = False) -> tuple[Cell, int]:
    """Return how many different values there are, and how many there may be."""
    hits = column.hits(null_counts)
    levels = dict.fromkeys(level for own in hits for level in own)
    found = [positive(column.rows.among([own.get(level, False) for own in hits]).count) for level in levels]
    known = sum(1 for one in found if one is True)
    uncertain: Held = [(one, True, None) for one in found if isinstance(one, RandomVariable)]
    return Cell(known if not uncertain else _summed(uncertain) + known), len(levels)


def _one_of(order: int, known: bool) -> Callable[..., Cell]:
    """Return the summary that is the first of values, or the last; missing ones count unless they are to be known."""

    def reduction(column: Column) -> Cell:
        if column.rows.has_plates or not column.rows.axis.sorted:
            refuse("the first or last of many rows")
        masks = column.masks if known else column.rows.there
        found = MISSING
        for cell, mask in list(zip(column.cells, masks, strict=True))[::-order]:
            found = chosen(mask, Cell(cell.value) if known else cell, found)
        return found

    return reduction


first_row, last_row = _one_of(1, known=False), _one_of(-1, known=False)


def some(column: Column) -> Cell:
    """Say whether any value is true."""
    verdicts = [both(mask, truth(cell.value)) for mask, cell in zip(column.masks, column.cells, strict=True)]
    return Cell(positive(counted(verdicts, column.rows.axis.plates)))


def every(column: Column) -> Cell:
    """Say whether all values are true."""
    failing = [both(mask, negated(truth(cell.value))) for mask, cell in zip(column.masks, column.cells, strict=True)]
    return Cell(negated(positive(counted(failing, column.rows.axis.plates))))


def place_of_extreme(column: Column, sign: int) -> tuple[Any, Mask]:
    """Return the position of the largest value (of the smallest, if the sign is negative), and whether there is one."""
    array = selection(column)
    if isinstance(array, Selection):
        array = Selection(array.values.astype(float), array.mask).filled(-sign * np.inf)
    place: Any = np.argmax(array) if sign > 0 else np.argmin(array)
    return place, positive(count(column))


Reduction = Callable[..., Cell]

REDUCTIONS: dict[str, Reduction] = {
    "sum": total, "mean": mean, "average": mean, "min": smallest, "max": largest, "std": deviation, "var": variance,
    "sem": standard_error, "median": middle, "quantile": quantile, "first": _one_of(1, known=True),
    "last": _one_of(-1, known=True), "nunique": lambda column: distinct(column)[0],
    "any": some, "all": every, "count": lambda column: Cell(count(column)),
    "size": lambda column: Cell(column.rows.count),
}  # fmt: skip
"""By the names of pandas."""
SUMMARIES = tuple(name for name in REDUCTIONS if name not in ("size", "average", "first", "last"))
"""Those that are methods of columns and frames."""
