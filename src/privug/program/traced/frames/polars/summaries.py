"""What columns of polars come to: one value each, which is missing where there is nothing to come from."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from privug.model.variable import RandomVariable, refuse
from privug.program.logic import where
from privug.program.traced.frames import reductions
from privug.program.traced.frames.cells import Cell, applied, without_nan
from privug.program.traced.frames.polars.column import (
    UNSIGNED,
    Column,
    could_be_nan,
    is_truths,
    masks_of,
    single,
)
from privug.program.traced.frames.reductions import count, positive
from privug.program.traced.frames.rows import counted
from privug.program.traced.masks import either, negated


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


def _verdict(how: Callable[..., Cell]) -> Callable[..., Column]:
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
    if not column.rows.are_all or any(cell.known is not True for cell in column.cells) or column.largest is not None:
        refuse("cum_sum() of a random number of rows")
    summed: Any = np.cumsum(column.rows.axis.whole([cell.value for cell in column.cells]))
    return column.with_cells([Cell(part) for part in column.rows.axis.parts(summed)])


SUMMARIES: dict[str, Callable[..., Column]] = {
    "sum": total, "mean": lambda column: single(reductions.mean(column.cells, column.rows), column.name),
    "min": _extreme(reductions.smallest, reductions.every), "max": _extreme(reductions.largest, reductions.some),
    "median": median, "quantile": quantile, "std": _spread(reductions.deviation), "var": _spread(reductions.variance),
    "n_unique": n_unique, "null_count": null_count, "first": first, "last": last,
    "count": lambda column: counting(column, count(column.cells, column.rows)),
    "len": lambda column: counting(column, column.rows.count),
    "any": _verdict(reductions.some), "all": _verdict(reductions.every),
}  # fmt: skip
"""By the names of polars."""

OTHERS: dict[str, Callable[..., Column]] = {
    "filter": filtered, "drop_nulls": drop_nulls, "drop_nans": drop_nans, "cum_sum": cum_sum,
}  # fmt: skip
"""Methods that give other rows, or look at all of them for each."""
