"""The functions of polars itself while a program is traced: they make expressions."""

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from privug.model.variable import refuse
from privug.program.traced.frames.cells import Cell, applied, chosen
from privug.program.traced.frames.polars.cellwise import ARITHMETIC
from privug.program.traced.frames.polars.column import Column, combined, is_truths
from privug.program.traced.frames.polars.expressions import (
    Expr,
    Scope,
    When,
    column_of,
    every,
    expressions,
    literal,
    real,
    rows_expression,
)
from privug.program.traced.frames.polars.library import polars
from privug.program.traced.frames.polars.replacing import fill_null


def _col(name: Any, *more: Any) -> Expr:
    names = [*(name if isinstance(name, list | tuple) else [name]), *more]
    return column_of(names, lambda: polars().col(name, *more))


def _lit(value: Any) -> Expr:
    return literal(value, lambda: polars().lit(value))


def _all(*names: str) -> Expr:
    return _summary("all")(*names) if names else column_of(["*"], lambda: polars().all())


def _len() -> Expr:
    return rows_expression()


def _count(*names: str) -> Expr:
    return _summary("count")(*names) if names else rows_expression().derived(Column.named, "alias", ["count"], {})


def _summary(name: str) -> Callable[..., Expr]:
    def function(*names: Any, **options: Any) -> Expr:
        found: Expr = getattr(_col(*names), name)(**options)
        return found

    return function


def _when(*conditions: Any) -> When:
    return When([], every(conditions))


def _across(name: str, joined: Callable[[Sequence[Column]], Column]) -> Callable[..., Expr]:
    def function(*parts: Any) -> Expr:
        several = expressions(parts, {})

        def columns(scope: Scope) -> list[Column]:
            return [joined([column for one in several for column in one.columns(scope)])]

        return Expr(columns, lambda: getattr(polars(), name)(*map(real, parts)))

    return function


def _summed(columns: Sequence[Column]) -> Column:
    if any(is_truths(column) or column.is_text for column in columns):
        refuse("sum_horizontal() of anything but numbers")
    filled = [fill_null(column, 0) for column in columns]
    return reduce(ARITHMETIC["__add__"], filled)


def _farthest(function: np.ufunc) -> Callable[[Sequence[Column]], Column]:
    def farther(left: Cell, right: Cell) -> Cell:
        both_there = applied(function, left, right)
        return chosen(right.known, chosen(left.known, Cell(both_there.value), Cell(right.value)), left)

    return lambda columns: reduce(lambda one, two: combined(farther, one, two), columns)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "col": _col, "lit": _lit, "all": _all, "len": _len, "count": _count, "when": _when,
    **{name: _summary(name) for name in ("sum", "mean", "min", "max", "median", "first", "last", "n_unique", "std",
                                         "var", "quantile")},
    "sum_horizontal": _across("sum_horizontal", _summed),
    "max_horizontal": _across("max_horizontal", _farthest(np.maximum)),
    "min_horizontal": _across("min_horizontal", _farthest(np.minimum)),
    "any_horizontal": _across("any_horizontal", lambda columns: reduce(ARITHMETIC["__or__"], columns)),
    "all_horizontal": _across("all_horizontal", lambda columns: reduce(ARITHMETIC["__and__"], columns)),
}  # fmt: skip
"""By the names they have in polars."""
