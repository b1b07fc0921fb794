"""What columns come to: sums, means, extremes and the like of those cells that are there and known."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from privug.model.plates import Plate, fold
from privug.model.variable import RandomVariable, as_element, as_node, refuse
from privug.program.logic import where
from privug.program.traced.frames.cells import Cell, applied, chosen, divided, hits_of, is_category, is_truth, kind
from privug.program.traced.frames.rows import Rows, counted, exceeds
from privug.program.traced.masks import Mask, both, negated, truth
from privug.program.traced.selections import Selection

_LARGEST = int(np.iinfo(np.int64).max)
Held = list[tuple[Any, Mask, Plate | None]]


def held(cells: Sequence[Cell], rows: Rows) -> Held:
    """Return the values of a column, each with the condition under which it is there and known, and its plate."""
    found = [
        (cell.value, both(there, cell.known), plate)
        for cell, there, plate in zip(cells, rows.there, rows.axis.plates, strict=True)
    ]
    return [one for one in found if one[1] is not False]


def _masks(cells: Sequence[Cell], rows: Rows) -> list[Mask]:
    return [both(there, cell.known) for cell, there in zip(cells, rows.there, strict=True)]


def count(cells: Sequence[Cell], rows: Rows) -> Any:
    """Return how many values are known."""
    if all(cell.known is True for cell in cells):
        return rows.count
    return counted(_masks(cells, rows), rows.axis.plates)


def positive(number: Any) -> Mask:
    """Return whether a count is above zero."""
    return exceeds(number, 0)


def total(cells: Sequence[Cell], rows: Rows) -> Cell:
    """Return the sum; of nothing, zero."""
    return Cell(_summed(held(cells, rows)))


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


def mean(cells: Sequence[Cell], rows: Rows) -> Cell:
    """Return the mean; of nothing, there is none."""
    return _ratio(_summed(held(cells, rows)), count(cells, rows), 0)


def _ratio(numerator: Any, number: Any, less: int) -> Cell:
    """Divide by a count less some, if that is above zero."""
    if not isinstance(number, RandomVariable):
        return Cell(0.0, False) if number <= less else divided(Cell(numerator), Cell(number - less), True)
    enough = exceeds(number, less)
    divisor = number - less if enough is True else where(enough, number - less, 1)
    return Cell(np.true_divide(numerator, divisor), enough)


def variance(cells: Sequence[Cell], rows: Rows, ddof: int = 1) -> Cell:
    """Return the variance; of too few, there is none."""
    middle, number = mean(cells, rows), count(cells, rows)
    squares = []
    for value, mask, plate in held(cells, rows):
        apart = applied(np.subtract, Cell(value), Cell(middle.value)).value
        squares.append((apart * apart, mask, plate))
    return _ratio(_summed(squares), number, ddof)


def deviation(cells: Sequence[Cell], rows: Rows, ddof: int = 1) -> Cell:
    """Return the standard deviation; of too few, there is none."""
    found = variance(cells, rows, ddof)
    return found if found.known is False else applied(np.sqrt, found)


def standard_error(cells: Sequence[Cell], rows: Rows, ddof: int = 1) -> Cell:
    """Return the standard error of the mean."""
    spread, number = deviation(cells, rows, ddof), count(cells, rows)
    size = where(number > 0, number, 1) if isinstance(number, RandomVariable) else max(number, 1)
    return spread if spread.known is False else applied(np.true_divide, spread, applied(np.sqrt, Cell(size)))


def smallest(cells: Sequence[Cell], rows: Rows) -> Cell:
    """Return the smallest value; of nothing, there is none."""
    return _extreme(cells, rows, "min", np.minimum, 1)


def largest(cells: Sequence[Cell], rows: Rows) -> Cell:
    """Return the largest value; of nothing, there is none."""
    return _extreme(cells, rows, "max", np.maximum, -1)


def _extreme(cells: Sequence[Cell], rows: Rows, how: str, better: np.ufunc, sign: int) -> Cell:
    best: Any = None
    values = held(cells, rows)
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
        return Cell(0.0, False)
    return Cell(best.item() if isinstance(best, np.generic) else best, positive(count(cells, rows)))


def selection(cells: Sequence[Cell], rows: Rows) -> Selection | RandomVariable:
    """Return the numbers that are there and known: as an array, or as some elements of one."""
    array = rows.axis.whole([cell.value for cell in cells])
    if array.node.levels is not None:
        refuse("an array of texts")
    masks = _masks(cells, rows)
    if all(mask is True for mask in masks):
        return array
    return Selection(array, rows.axis.whole([RandomVariable(as_node(mask)) for mask in masks]))


def quantile(cells: Sequence[Cell], rows: Rows, q: Any = 0.5) -> Cell:
    """Return a quantile, between two values as NumPy does by default; of nothing, there is none."""
    if isinstance(q, RandomVariable) or not isinstance(q, int | float):
        refuse("quantile() at several places")
    known = positive(count(cells, rows))
    if known is False:
        return Cell(0.0, False)
    values = selection(cells, rows)
    found: Any = values.quantile(q) if isinstance(values, Selection) else np.quantile(values, q)
    return Cell(found, known)


def nearest(cells: Sequence[Cell], rows: Rows, q: float) -> Cell:
    """Return the value closest to a quantile, the larger of two as close; of nothing, there is none."""
    number, array = count(cells, rows), selection(cells, rows)
    known = positive(number)
    if known is False:
        return Cell(0.0, False)
    place: Any = np.floor(float(q) * (number - 1) + 0.5)
    if isinstance(array, Selection):
        ordered = np.sort(array.filled(np.inf))
        return Cell(ordered[np.where(known, place, 0.0).astype(int)], known)
    return Cell(np.sort(array)[int(place)], known)


def middle(cells: Sequence[Cell], rows: Rows) -> Cell:
    """Return the median; of nothing, there is none."""
    return quantile(cells, rows, 0.5)


def cumulative(cells: Sequence[Cell], rows: Rows) -> list[Cell]:
    """Return the sums of all values so far."""
    if not rows.are_all or any(cell.known is not True for cell in cells) or not rows.axis.sorted:
        refuse("sums so far of a random number of rows")
    summed: Any = np.cumsum(rows.axis.whole([cell.value for cell in cells]))
    return [Cell(part) for part in rows.axis.parts(summed)]


def distinct(hits: Sequence[Mapping[Any, Mask]], rows: Rows) -> tuple[Cell, int]:
    """Return how many different values there are, and there may be: of those that are found in each segment of rows."""
    levels = dict.fromkeys(level for own in hits for level in own)
    found = [positive(rows.among([own.get(level, False) for own in hits]).count) for level in levels]
    known = sum(1 for one in found if one is True)
    uncertain: Held = [(one, True, None) for one in found if isinstance(one, RandomVariable)]
    return Cell(known if not uncertain else _summed(uncertain) + known), len(levels)


def _one_of(order: int, known: bool) -> Callable[..., Cell]:
    """Return the summary that is the first of values, or the last; missing ones count unless they are to be known."""

    def reduction(cells: Sequence[Cell], rows: Rows) -> Cell:
        if rows.has_plates or not rows.axis.sorted:
            refuse("the first or last of many rows")
        masks = _masks(cells, rows) if known else rows.there
        found = Cell(0.0, False)
        for cell, mask in list(zip(cells, masks, strict=True))[::-order]:
            found = chosen(mask, Cell(cell.value) if known else cell, found)
        return found

    return reduction


first_row, last_row = _one_of(1, known=False), _one_of(-1, known=False)


def some(cells: Sequence[Cell], rows: Rows) -> Cell:
    """Say whether any value is true."""
    verdicts = [both(mask, truth(cell.value)) for mask, cell in zip(_masks(cells, rows), cells, strict=True)]
    return Cell(positive(counted(verdicts, rows.axis.plates)))


def every(cells: Sequence[Cell], rows: Rows) -> Cell:
    """Say whether all values are true."""
    failing = [both(mask, negated(truth(cell.value))) for mask, cell in zip(_masks(cells, rows), cells, strict=True)]
    return Cell(negated(positive(counted(failing, rows.axis.plates))))


def place_of_extreme(cells: Sequence[Cell], rows: Rows, sign: int) -> tuple[Any, Mask]:
    """Return the position of the largest value (of the smallest, if the sign is negative), and whether there is one."""
    known = positive(count(cells, rows))
    array = rows.axis.whole([cell.value for cell in cells])
    masks = _masks(cells, rows)
    if array.node.levels is not None:
        refuse("the largest of texts")
    if not all(mask is True for mask in masks):
        mask = rows.axis.whole([RandomVariable(as_node(one)) for one in masks])
        array = Selection(array.astype(float), mask).filled(-sign * np.inf)
    place: Any = np.argmax(array) if sign > 0 else np.argmin(array)
    return place, known


Reduction = Callable[..., Cell]

REDUCTIONS: dict[str, Reduction] = {
    "sum": total, "mean": mean, "average": mean, "min": smallest, "max": largest, "std": deviation, "var": variance,
    "sem": standard_error, "median": middle, "quantile": quantile, "first": _one_of(1, known=True),
    "last": _one_of(-1, known=True), "nunique": lambda cells, rows: distinct([*map(hits_of, cells)], rows)[0],
    "any": some, "all": every, "count": lambda cells, rows: Cell(count(cells, rows)),
    "size": lambda cells, rows: Cell(rows.count),
}  # fmt: skip
"""By the names of pandas."""
