"""Expressions of polars while a program is traced, and the functions of the library that make them."""

import inspect
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from privug.model.variable import refuse
from privug.program.traced.frames.cells import Cell, applied, chosen
from privug.program.traced.frames.columns import Column, as_column, combined, is_truths, single, with_methods
from privug.program.traced.frames.dialects import POLARS
from privug.program.traced.frames.polars.column import (
    ACCESSORS,
    METHODS,
    OPERATORS,
    REFLECTED,
    chosen_between,
    fill_null,
    is_plain,
    polars,
)
from privug.program.traced.frames.relations import Groups
from privug.program.traced.frames.rows import Rows
from privug.program.traced.masks import OfStanding, Standing

_FROM_OUTSIDE = "an expression that was made outside of the program, or by pl.col.name,"


@dataclass(frozen=True, eq=False)
class Scope:
    """What an expression is computed of: the columns of a frame, or of those of its rows that form a group."""

    columns: Mapping[str, Column]
    rows: Rows
    lost: frozenset[str] = frozenset()
    """Columns whose values are not known."""
    optional: frozenset[str] = frozenset()
    """Columns that may be absent."""

    def on(self, rows: Rows) -> "Scope":
        """Return the same columns in other rows."""
        return replace(self, columns={name: column.on(rows) for name, column in self.columns.items()}, rows=rows)

    def all_columns(self) -> list[Column]:
        """Return all columns."""
        return refuse("all columns, of which some may be absent,") if self.optional else list(self.columns.values())

    def column(self, name: str) -> Column:
        """Return a column by its name."""
        if name in self.lost:
            refuse(f"the column {name!r} of top_k(), which polars takes of any of equal rows,")
        if name not in self.columns:
            raise KeyError(name)
        return refuse("a column that may be absent") if name in self.optional else self.columns[name]


class Derivable(Standing):
    """What has the methods of columns: a series, or an expression."""

    @abstractmethod
    def derived(self, method: Callable[..., Column], name: str, arguments: Sequence[Any], options: Any) -> Any:
        """Return what a method gives."""

    def __getattr__(self, name: str) -> Any:
        return Accessor(self, name) if name in ACCESSORS else super().__getattr__(name)


class HasColumns(Derivable):
    """What has a column of its own already: a series."""

    column: Column


class Call(NamedTuple):
    """How the library itself makes an expression: a function of its own, or a method of another expression."""

    name: str
    arguments: Sequence[Any] = ()
    options: Mapping[str, Any] = {}
    owner: Any = None

    def made(self) -> Any:
        """Return what the library makes, where frames are not random."""
        made = polars() if self.owner is None else self.owner.call.made()
        for part in self.name.split("."):
            made = getattr(made, part)
        return made(*map(real, self.arguments), **{key: real(value) for key, value in self.options.items()})


class Expr(Derivable):
    """An expression: a function of the columns at hand, and how the library itself would make it."""

    kind = "Expr"

    def __init__(self, columns: Callable[[Scope], list[Column]], call: Call) -> None:
        self.columns = columns
        self.call = call

    def listing(self) -> Any:
        return refuse("iteration over an expression")

    def one(self, scope: Scope) -> Column:
        """Return the one column that it stands for."""
        found = self.columns(scope)
        return found[0] if len(found) == 1 else refuse("an expression of several columns in such a place")

    def derived(self, method: Callable[..., Column], name: str, arguments: Sequence[Any], options: Any) -> "Expr":
        """Return the expression of a method on this one."""
        check_call(f"Expr.{name}", method, arguments, options)

        def columns(scope: Scope) -> list[Column]:
            given = [resolved(argument, scope) for argument in arguments]
            named = {key: resolved(argument, scope) for key, argument in options.items()}
            return [method(column, *given, **named) for column in self.columns(scope)]

        return Expr(columns, Call(name, arguments, options, self))

    def over(self, partition_by: Any, *more: Any) -> "Expr":
        """Compute an expression in each group of rows, for each row of the group."""
        keys = expressions([partition_by, *more], {})

        def columns(scope: Scope) -> list[Column]:
            by = [column for key in keys for column in key.columns(scope)]
            groups = Groups(POLARS, by, scope.rows)
            parts = [self.columns(scope.on(rows)) for _, rows in groups.members]
            if not parts:  # nobody is there
                return [column.taken([None] * len(scope.rows.there), scope.rows) for column in self.columns(scope)]
            return [groups.over(several) for several in zip(*parts, strict=True)]

        return Expr(columns, Call("over", (partition_by, *more), owner=self))

    def exclude(self, *names: str) -> "Expr":
        """Leave some of several columns out."""
        left = [*_flat(names)]
        return Expr(
            lambda scope: [column for column in self.columns(scope) if column.name not in left],
            Call("exclude", names, owner=self),
        )


class Accessor(OfStanding):
    """`expr.str`, `series.dt` and the like."""

    def __init__(self, owner: Any, name: str) -> None:
        self._owner = owner
        self._name = name

    def __getattr__(self, name: str) -> Any:
        method = ACCESSORS[self._name].get(name)
        if method is None:
            refuse(f"{self._owner.kind}.{self._name}.{name}")
        full = f"{self._name}.{name}"
        return lambda *arguments, **options: self._owner.derived(method, full, arguments, options)


def check_call(name: str, method: Callable[..., Any], arguments: Sequence[Any], options: Mapping[str, Any]) -> None:
    """Refuse arguments that a method does not know."""
    try:
        inspect.signature(method).bind(None, *arguments, **options)
    except TypeError:
        refuse(f"{name}() with {', '.join(options) or 'such arguments'}")


def resolved(argument: Any, scope: Scope | None) -> Any:
    """Return an argument of a method with columns in the place of expressions and series."""
    if isinstance(argument, Expr):
        return argument.one(scope) if scope is not None else refuse("an expression as argument of a series")
    if isinstance(argument, HasColumns):
        return argument.column
    if isinstance(argument, Standing):
        refuse(f"{argument.kind} as an argument")
    if isinstance(argument, list):
        return [resolved(part, scope) for part in argument]
    if is_plain(argument, "Series"):
        return argument.to_list()
    return refuse(_FROM_OUTSIDE) if is_plain(argument, "Expr") else argument


def real(argument: Any, what: str = "a plain expression") -> Any:
    """Return an argument of something as the library itself takes it, where frames are not random."""
    if isinstance(argument, Expr):
        return argument.call.made()
    if isinstance(argument, Standing):
        refuse(f"{what} of a {argument.kind}")
    return [real(part, what) for part in argument] if isinstance(argument, list) else argument


def column_of(names: Sequence[str]) -> Expr:
    """Return the expression of some columns."""
    if any(not isinstance(name, str) or name.startswith("^") for name in names):
        refuse("pl.col() of anything but names")
    if list(names) == ["*"]:
        return Expr(Scope.all_columns, Call("all"))
    return Expr(lambda scope: [scope.column(name) for name in names], Call("col", names))


def literal(value: Any) -> Expr:
    """Return the expression of a value."""
    column = value.column if isinstance(value, HasColumns) else as_column(value)
    return Expr(lambda scope: [column], Call("lit", [value]))


def _flat(arguments: Iterable[Any]) -> Iterable[Any]:
    for argument in arguments:
        if isinstance(argument, list | tuple):
            yield from argument
        else:
            yield argument


def expression(value: Any) -> Expr:
    """Return what may stand in the place of an expression as one: a name is that of a column."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, str):
        return column_of([value])
    if is_plain(value, "Expr"):
        refuse(_FROM_OUTSIDE)
    if isinstance(value, Standing) and not isinstance(value, HasColumns):
        refuse(f"{value.kind} as an expression")
    return literal(value)


def expressions(arguments: Iterable[Any], named: Mapping[str, Any]) -> list[Expr]:
    """Return all arguments as expressions, with the names they are given."""
    found = [expression(argument) for argument in _flat(arguments)]
    return [*found, *(expression(value).alias(name) for name, value in named.items())]


class When(Standing):
    """`pl.when(...)`, before it is known what then."""

    kind = "When"

    def __init__(self, conditions: Sequence[Any], before: "Then | None" = None) -> None:
        self._condition, self._before = every(conditions), before
        self.call = Call("when", conditions, owner=before)

    def listing(self) -> Any:
        return refuse("iteration over an expression")

    def then(self, value: Any) -> "Then":
        """Say what the value is where the condition holds."""
        branches = [] if self._before is None else self._before.branches
        return Then([*branches, (self._condition, expression(value))], Call("then", [value], owner=self))


class Then(Expr):
    """`pl.when(...).then(...)`, missing where no condition holds."""

    def __init__(self, branches: Sequence[tuple[Expr, Expr]], call: Call) -> None:
        super().__init__(case(branches, literal(None)).columns, call)
        self.branches = branches

    def otherwise(self, value: Any) -> Expr:
        """Say what the value is where no condition holds."""
        return Expr(case(self.branches, expression(value)).columns, Call("otherwise", [value], owner=self))

    def when(self, *conditions: Any) -> When:
        """Add another condition."""
        return When(conditions, self)


def case(branches: Sequence[tuple[Expr, Expr]], rest: Expr) -> Expr:
    """Return the value of the first branch whose condition holds."""

    def columns(scope: Scope) -> list[Column]:
        return [chosen_between([(c.one(scope), v.one(scope)) for c, v in branches], rest.one(scope))]

    return Expr(columns, Call("case"))


def every(conditions: Sequence[Any]) -> Expr:
    """Return one condition for several."""
    return reduce(lambda one, two: one.derived(OPERATORS["and"], "__and__", [two], {}), expressions(conditions, {}))


def reflected(method: Callable[..., Column]) -> Callable[..., Column]:
    """Return an operator with its sides exchanged."""
    return lambda column, other: method(as_column(other), column)


def with_column_methods(kind: Any) -> None:
    """Give a class that knows how to derive something from itself all methods of columns."""

    def made(name: str, method: Callable[..., Column]) -> Any:
        return lambda self, *arguments, **options: self.derived(method, name, arguments, options)

    with_methods(kind, {name: made(name, method) for name, method in METHODS.items()})
    with_methods(kind, {f"__r{name}__": made(f"__r{name}__", reflected(OPERATORS[name])) for name in REFLECTED})
    kind.__hash__ = None


with_column_methods(Expr)


def rows_expression() -> Expr:
    """Return `pl.len()`: how many rows there are."""
    return Expr(
        lambda scope: [replace(single(Cell(scope.rows.count), "len"), largest=scope.rows.axis.size)],
        Call("len"),
    )


def _col(name: Any, *more: Any) -> Expr:
    return column_of([*(name if isinstance(name, list | tuple) else [name]), *more])


def _summary(name: str) -> Callable[..., Expr]:
    def function(*names: Any, **options: Any) -> Expr:
        found: Expr = getattr(_col(*names), name)(**options)
        return found

    return function


def _across(name: str, joined: Callable[[Sequence[Column]], Column]) -> Callable[..., Expr]:
    def function(*parts: Any) -> Expr:
        several = expressions(parts, {})

        def columns(scope: Scope) -> list[Column]:
            return [joined([column for one in several for column in one.columns(scope)])]

        return Expr(columns, Call(name, parts))

    return function


def _summed(columns: Sequence[Column]) -> Column:
    if any(is_truths(column) or column.is_text for column in columns):
        refuse("sum_horizontal() of anything but numbers")
    filled = [fill_null(column, 0) for column in columns]
    return reduce(OPERATORS["add"], filled)


def _farthest(function: np.ufunc) -> Callable[[Sequence[Column]], Column]:
    def farther(left: Cell, right: Cell) -> Cell:
        both_there = applied(function, left, right)
        return chosen(right.known, chosen(left.known, Cell(both_there.value), Cell(right.value)), left)

    return lambda columns: reduce(lambda one, two: combined(farther, one, two), columns)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "col": _col, "lit": literal, "len": rows_expression,
    "all": lambda *names: _summary("all")(*names) if names else column_of(["*"]),
    "count": lambda *names: (
        _summary("count")(*names) if names else rows_expression().derived(Column.named, "alias", ["count"], {})),
    "when": lambda *conditions: When(conditions),
    **{name: _summary(name) for name in ("sum", "mean", "min", "max", "median", "first", "last", "n_unique", "std",
                                         "var", "quantile")},
    "sum_horizontal": _across("sum_horizontal", _summed),
    "max_horizontal": _across("max_horizontal", _farthest(np.maximum)),
    "min_horizontal": _across("min_horizontal", _farthest(np.minimum)),
    "any_horizontal": _across("any_horizontal", lambda columns: reduce(OPERATORS["or"], columns)),
    "all_horizontal": _across("all_horizontal", lambda columns: reduce(OPERATORS["and"], columns)),
}  # fmt: skip
"""By the names they have in polars."""
