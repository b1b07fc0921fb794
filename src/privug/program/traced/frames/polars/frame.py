"""A frame and a series of polars while a program is traced: columns of the same rows, each there under a condition."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np

from privug.model.node import Kind
from privug.model.sparse import Labels, SparseFrame, SparseList
from privug.model.variable import RandomVariable, refuse
from privug.program.traced.frames import reductions
from privug.program.traced.frames.cells import Cell, cell_of, chosen, without_nan
from privug.program.traced.frames.columns import ONE, Column, as_column, compared, is_truths, masks_of, with_methods
from privug.program.traced.frames.dialects import POLARS
from privug.program.traced.frames.pandas.values import number
from privug.program.traced.frames.polars.column import (
    OPERATORS,
    SUMMARIES,
    fill_null,
    is_plain,
    polars,
    python_value,
    true_quotient,
)
from privug.program.traced.frames.polars.expressions import (
    Call,
    Expr,
    HasColumns,
    Scope,
    check_call,
    every,
    expression,
    expressions,
    resolved,
    rows_expression,
    with_column_methods,
)
from privug.program.traced.frames.reductions import positive
from privug.program.traced.frames.relations import (
    LOOKED_UP,
    Groups,
    Key,
    Relation,
    can_look_up,
    in_order,
    in_random_order,
    joined,
    joined_by_lookup,
    largest_of,
    unrolled,
)
from privug.program.traced.frames.rows import (
    Axis,
    Rows,
    as_list,
    counted_off,
    leaf,
    only_cell,
    singled_out,
    spelled_out,
)
from privug.program.traced.iteration import order_left_open
from privug.program.traced.masks import Mask, MaskedList, Standing, any_of, both, fail_where, negated, places_of, truth


class Series(HasColumns):
    """A column by itself."""

    kind = "Series"

    def __init__(self, column: Column) -> None:
        self.column = column

    def derived(self, method: Callable[..., Column], name: str, arguments: Sequence[Any], options: Any) -> Any:
        """Return what a method gives: another series, or a value of Python."""
        check_call(f"Series.{name}", method, arguments, options)
        given = [resolved(argument, None) for argument in arguments]
        found = method(self.column, *given, **{key: resolved(value, None) for key, value in options.items()})
        return python_value(found.cells[0]) if found.single else Series(found)

    @property
    def name(self) -> Any:
        """What it is called."""
        return self.column.name

    def listing(self) -> Any:
        return values_of(self.column)

    def plain(self) -> Any:
        return released_column(self.column)

    def length(self) -> Any:
        return python_value(Cell(self.column.rows.count))

    @property
    def shape(self) -> tuple[Any, ...]:
        """How many values there are."""
        return (self.length(),)

    to_list = listing

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, int):
            return value_at(self.column, key)
        if isinstance(key, slice) and key.start is None and key.step is None and isinstance(key.stop, int):
            return self.head(key.stop)
        return refuse("such a subscript of a Series")

    def contains(self, item: Any) -> Mask:
        hits = [compared(POLARS, np.equal, cell, as_column(item).cells[0]) for cell in self.column.cells]
        masks = [both(hit.known, truth(hit.value)) for hit in hits]
        found = self.column.rows.among(masks)
        return positive(found.count) if found.has_plates else any_of(found.there)

    def sort(self, *, descending: bool = False, nulls_last: bool = False) -> "Series":
        """Return the values in order."""
        column, name = self.column, self.name  # equal values are the same, in whatever order they stood
        return Series(in_random_order({name: column}, closed(column.rows), [(column, descending, nulls_last)])[0][name])

    def unique(self) -> "Series":
        """Return the values that occur, in an order that polars leaves open."""
        return Series(Groups(POLARS, [self.column], self.column.rows).key_columns()[0])

    def value_counts(self, *, sort: bool = False, name: str | None = None, normalize: bool = False) -> "Frame":
        """Return how often each value occurs, in an order that polars leaves open among equals."""
        called = name if name is not None else "proportion" if normalize else "count"
        counts: Frame = self.to_frame().group_by(self.name).len(called)
        if normalize:
            share = true_quotient(counts.held[called], as_column(Cell(self.column.rows.count).value))
            counts = counts._made({**counts.held, called: share}, counts.kept)
        return counts.sort(called, descending=True) if sort else counts

    def to_numpy(self) -> Any:
        """Return the values as an array, or as some elements of one; NaN where one is missing."""
        column = self.column
        if not column.rows.axis.sorted:
            refuse("an array of rows whose order polars leaves open")
        if column.is_known and column.rows.are_all:
            return column.whole
        return reductions.selection(column.each(lambda cell: Cell(number(cell))))


with_methods(Series, {
    "rename": lambda self, name: Series(self.column.named(name)),
    "is_empty": lambda self: negated(positive(self.column.rows.count)),
    "clone": lambda self: self,
    "item": lambda self, index=None: only_value(self.column) if index is None else value_at(self.column, index),
    "head": lambda self, n=10: Series(some_rows({"": self.column}, self.column.rows, 0, n)[0][""].named(self.name)),
    "top_k": lambda self, k=5: self.sort(descending=True, nulls_last=True).head(k),
    "bottom_k": lambda self, k=5: self.sort(nulls_last=True).head(k),
    "to_frame": lambda self, name=None: Frame({name or self.name: self.column}, self.column.rows),
})  # fmt: skip


with_column_methods(Series)


def standing(table: Any) -> "Frame":
    """Return a plain frame as one of constants; one that is not plain as it is."""
    if isinstance(table, Frame):
        return table
    if not is_plain(table, "DataFrame", "LazyFrame"):
        refuse("a table that is no frame")
    plain = table.lazy().collect()
    data = {name: [cell_of(value) for value in plain[name].to_list()] for name in plain.columns}
    return Frame.of_cells(data, Rows.all_of(Axis((None,) * plain.height)))


class GroupBy(Standing):
    """The groups of a frame."""

    kind = "GroupBy"

    def __init__(self, frame: Any, groups: Groups, maintain_order: bool) -> None:
        self.frame = frame
        self.groups = groups
        self.maintain_order = maintain_order

    def listing(self) -> Any:
        """Return the groups with the values of their keys, as a loop over a group-by gives them."""
        if self.maintain_order:
            refuse("a loop over groups in the order of their first rows")
        made: MaskedList = UnorderedList()
        for (label, rows), there in zip(self.groups.members, self.groups.there, strict=True):
            made.add((self.groups.parts(label), self.frame._on(rows)), there)
        return made

    def agg(self, *arguments: Any, **named: Any) -> Any:
        """Return what expressions come to in each group."""
        wanted = expressions(arguments, named)
        scope, rows = self.frame.scope, self.groups.as_rows
        nobody = scope.on(scope.rows.among([False] * len(scope.rows.there)))
        names = [column for one in wanted for column in one.columns(nobody)]
        parts = [
            [column for one in wanted for column in one.columns(scope.on(members))]
            for _, members in self.groups.members
        ]
        columns = self.groups.key_columns()
        for place, column in enumerate(names):
            several = [part[place] for part in parts]
            if not all(part.single for part in (column, *several)):
                refuse("agg() of lists")
            cells = [part.cells[0] for part in several]
            columns.append(Column(cells, rows, column.name, largest=largest_of(several)))
        found = {column.name: column for column in columns}
        if len(found) < len(columns):
            raise ValueError("a column name that occurs twice")
        return self._in_order(found, rows)

    def _in_order(self, columns: dict[str, Column], rows: Rows) -> Any:
        if not self.maintain_order or not self.groups.rows.axis.sorted:
            return type(self.frame)(columns, rows)
        made = Rows(Axis(rows.axis.plates), rows.there)
        first = Column([*map(Cell, self.groups.first_places())], made)
        placed = {name: column.on(made) for name, column in columns.items()}
        return type(self.frame)(*in_random_order(placed, made, [(first, False, False)]))

    def len(self, name: str = "len") -> Any:
        return self.agg(rows_expression().derived(Column.named, "alias", [name], {}))


def _summary_of_groups(name: str) -> Callable[..., Any]:
    def method(self: GroupBy, *arguments: Any) -> Any:
        keys = {key.name for key in self.groups.keys}
        return self.agg(*(getattr(expression(one), name)(*arguments) for one in self.frame.data if one not in keys))

    return method


with_methods(GroupBy, {name: _summary_of_groups(name) for name in (
    "sum", "mean", "min", "max", "median", "first", "last", "n_unique", "quantile")})  # fmt: skip


def pivoted(frame: Any, on: Any, index: Any, values: Any, how: Any, sort_columns: bool, maintain_order: bool) -> Any:
    """Return a table: rows by the values of some columns, columns by those of another."""
    names = index if isinstance(index, list) else [index]
    if not all(isinstance(name, str) for name in (on, values, *names)) or isinstance(how, Expr):
        refuse("pivot() without names for on, index and values")
    if how is not None and how not in SUMMARIES:
        refuse(f"pivot() with aggregate_function={how!r}")
    across = Groups(POLARS, [frame.scope.column(on)], frame.kept)
    down = GroupBy(frame, Groups(POLARS, [frame.scope.column(name) for name in names], frame.kept), maintain_order)
    parts = [(_column_name(label), members) for label, members in across.members]

    def at(name: str, masks: Sequence[Mask]) -> Expr:
        return Expr(
            lambda scope: [_pivot_cell(scope.column(values).on(scope.rows.among(masks)), how).named(name)],
            Call("pivot"),
        )

    made = down.agg(*(at(name, members.there) for name, members in parts))
    there = {name: positive(members.count) for name, members in parts}
    made.present = {name: mask for name, mask in there.items() if mask is not True}
    if not sort_columns:
        firsts = across.first_places() if across.rows.axis.sorted else [None] * len(there)
        made.discovered = dict(zip(there, firsts, strict=True))
    return made


def _pivot_cell(column: Column, how: str | None) -> Column:
    if how is not None:
        return SUMMARIES[how](column)
    fail_where(truth(column.rows.count > 1), ValueError("several values"))
    if column.rows.has_plates:
        refuse("pivot() of many rows without aggregate_function")
    found = Cell(column.cells[0].value if column.cells else 0.0, False)
    for cell, mask in zip(column.cells, column.rows.there, strict=True):
        found = chosen(mask, cell, found)
    return column.summary(found)


def _column_name(label: Any) -> str:
    if label is None:
        return "null"
    return str(label).lower() if isinstance(label, bool) else str(label)


class Frame(Standing):
    """A frame, eager or lazy."""

    kind = "DataFrame"

    def __init__(self, columns: Mapping[str, Column], rows: Rows) -> None:
        self.held = {name: column.on(rows).named(name) for name, column in columns.items()}
        """The columns, those that may be absent as well."""
        self.kept = rows
        self.present: Mapping[str, Mask] = {}
        """Columns that are there under a condition."""
        self.discovered: Mapping[str, Any] = {}
        """Columns in the order in which their names came up: at which row each did, or None if that is left open."""
        self.ordering: tuple[Key, ...] = ()
        """What rows are sorted by whose order among equals polars leaves open."""
        self.lost: frozenset[str] = frozenset()
        """Columns of which it is not known from which of equal rows polars takes them."""

    @staticmethod
    def of_cells(data: Mapping[str, Sequence[Cell]], rows: Rows) -> "Frame":
        """Return the frame of some cells."""
        return Frame({name: Column(cells, rows, name) for name, cells in data.items()}, rows)

    def _made(self, columns: Mapping[str, Column], rows: Rows) -> "Frame":
        made = Frame(columns, rows)
        made.present = {name: mask for name, mask in self.present.items() if name in columns}
        made.discovered = {name: first for name, first in self.discovered.items() if name in columns}
        made.ordering, made.lost = self.ordering, self.lost - columns.keys()
        return made

    @property
    def data(self) -> dict[str, Column]:
        """The columns, all of which are there for sure."""
        return refuse("a table of which some columns may be absent") if self.present else self.held

    def _in_fixed_order(self) -> None:
        if len(self.discovered) > 1:
            refuse("columns in the order in which their names came up")

    @property
    def scope(self) -> Scope:
        """What expressions on it are computed of."""
        return Scope(self.held, self.kept, self.lost, frozenset(self.present))

    def listing(self) -> Any:
        self._in_fixed_order()
        return MaskedList([Series(column) for column in self.data.values()])

    def contains(self, name: Any) -> Mask:
        return name in self.held and self.present.get(name, True)

    def length(self) -> Any:
        return python_value(Cell(self.kept.count))

    def plain(self) -> Any:
        self._whole()
        return released_frame(self.held, self.kept, self.present, self.discovered, self.ordering)

    def _whole(self) -> None:
        if self.lost:
            refuse("the other columns of top_k(), which polars takes of any of equal rows,")

    # What there is.
    @property
    def height(self) -> Any:
        """How many rows there are."""
        return self.length()

    @property
    def width(self) -> int:
        """How many columns there are."""
        return len(self.columns)

    @property
    def shape(self) -> tuple[Any, int]:
        """How many rows and columns there are."""
        return self.height, self.width

    @property
    def columns(self) -> Any:
        """The names of the columns."""
        self._whole()
        self._in_fixed_order()
        return MaskedList(list(self.data))

    def get_column(self, name: str) -> Series:
        """Return a column."""
        return Series(self.scope.column(name))

    def __getitem__(self, key: Any) -> Any:
        match key:
            case str():
                return self.get_column(key)
            case list() if all(isinstance(name, str) for name in key):
                return self.select(*key)
            case int(), (str() | int()) as column if self.kept.are_all:  # of nothing, polars gives a series
                return self.item(key[0], column)
            case slice(start=None, stop=int() as stop, step=None):
                return self.head(stop)
        return refuse("such a subscript of a DataFrame")

    def item(self, row: int | None = None, column: Any = None) -> Any:
        """Return the only value, or one at a place."""
        if row is None and column is None:
            return only_value(self.to_series().column) if self.width == 1 else refuse("item() of several columns")
        if not isinstance(row, int) or not isinstance(column, int | str):
            refuse("item() at such a place")
        series = self.to_series(column) if isinstance(column, int) else self.get_column(column)
        return value_at(series.column, row)

    def rows(self, *, named: bool = False) -> Any:
        """Return the rows as tuples or dicts, one for rows that are alike."""
        columns = [[python_value(cell) for cell in column.cells] for column in self.held.values()]
        names, tuples = list(self.columns), list(zip(*columns, strict=True))
        return listed([dict(zip(names, row, strict=True)) for row in tuples] if named else tuples, self.kept)

    def row(self, index: int, *, named: bool = False) -> Any:
        if not isinstance(index, int):
            refuse("row() by anything but a position")
        enough = self.kept.count > (index if index >= 0 else -1 - index)
        error: Exception = polars().exceptions.OutOfBoundsError(f"index {index} is out of bounds")
        fail_where(negated(truth(enough)), error)
        values = [value_at(self.held[name], index) for name in self.columns]
        return dict(zip(self.held, values, strict=True)) if named else tuple(values)

    # Other columns.
    def _columns_of(self, arguments: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Column]:
        parts = [one.columns(self.scope) for one in expressions(arguments, named)]
        if any(len(part) > 1 for part in parts):
            self._in_fixed_order()
        several = [column for part in parts for column in part]
        found = {column.name: column for column in several}
        if len(found) < len(several):
            raise ValueError("a column name that occurs twice")
        return found

    def select(self, *arguments: Any, **named: Any) -> "Frame":
        found = self._columns_of(arguments, named)
        long = [column for column in found.values() if not column.single]
        rows = long[0].rows if long else ONE
        made = {name: column.beside_rows(rows) for name, column in found.items()}
        if not long or not rows.same_as(self.kept):
            return Frame(made, rows)
        found_here = self._made(made, rows)
        found_here.lost, found_here.discovered = frozenset(), {}
        return found_here

    def with_columns(self, *arguments: Any, **named: Any) -> "Frame":
        found = self._columns_of(arguments, named)
        if self.present.keys() & found.keys():
            refuse("a new column in the place of one that may be absent")
        made = {name: column.beside_rows(self.kept) for name, column in found.items()}
        return self._made({**self.held, **made}, self.kept)

    def drop(self, *names: Any, strict: bool = True) -> "Frame":
        left = [one for name in names for one in (name if isinstance(name, list) else [name])]
        if not all(isinstance(name, str) for name in left):
            refuse("drop() of anything but names")
        if strict and self.present.keys() & set(left):
            refuse("drop() of a column that may be absent")
        made = self._made({name: column for name, column in self.held.items() if name not in left}, self.kept)
        made.lost = self.lost - set(left)
        return made

    def rename(self, mapping: Mapping[str, str]) -> "Frame":
        if not isinstance(mapping, Mapping) or self.discovered:
            refuse("rename() of such columns")
        return self._made({mapping.get(name, name): column for name, column in self.data.items()}, self.kept)

    def fill_null(self, value: Any) -> "Frame":
        """Put something in the place of what is missing, in columns of its type."""
        other = expression(value) if not isinstance(value, str) else refuse("fill_null() with a text")
        given = other.one(self.scope)
        fitting = [
            name
            for name, column in self.held.items()
            if column.is_text == given.is_text and is_truths(column) == is_truths(given)
        ]
        made = {name: fill_null(self.held[name], given) for name in fitting}
        return self._made({**self.held, **made}, self.kept)

    def with_row_index(self, name: str = "index") -> "Frame":
        if not self.kept.are_all or not self.kept.axis.sorted:
            refuse("with_row_index() of a random number of rows")
        cells = [Cell(place) for place in self.kept.axis.positions()]
        return self._made({name: Column(cells, self.kept, name, largest=self.kept.axis.size), **self.held}, self.kept)

    # Other rows.
    def _on(self, rows: Rows) -> "Frame":
        return self._made(self.held, rows)

    def filter(self, *predicates: Any, **values: Any) -> "Frame":
        conditions = [*predicates, *(expression(name) == value for name, value in values.items())]
        if not conditions:
            return self
        if self.present:
            refuse("some rows of a table of which some columns may be absent")
        column = every(conditions).one(self.scope).beside_rows(self.kept)
        return self._on(self.kept.among(masks_of(column)))

    def drop_nulls(self, subset: Any = None) -> "Frame":
        names = list(self.data) if subset is None else subset if isinstance(subset, list) else [subset]
        rows = self.kept
        for name in names:
            rows = rows.among([cell.known for cell in self.scope.column(name).cells])
        known = {name: self.held[name].without_gaps() for name in names}
        return self._made({**self.held, **known}, rows)

    def sort(
        self, by: Any, *more: Any, descending: Any = False, nulls_last: Any = False, maintain_order: bool = False
    ) -> "Frame":
        keys = [one.one(self.scope).beside_rows(self.kept) for one in expressions([by, *more], {})]
        down, last = ([flag] * len(keys) if isinstance(flag, bool) else list(flag) for flag in (descending, nulls_last))
        order = list(zip(keys, down, last, strict=True))
        if not self.kept.axis.sorted and not tell_apart(keys):
            made = self._on(with_open_order(self.kept))
            made.ordering = (*order, *(self.ordering if maintain_order else ()))
            return made
        made = self._made(*in_order(self.held, closed(self.kept), order))
        made.ordering = ()
        return made

    def head(self, n: int = 5) -> "Frame":
        if self.present or self.ordering:
            refuse("the first of rows whose order polars leaves open")
        return self._made(*some_rows(self.held, self.kept, 0, n))

    limit = head

    def slice(self, offset: int, length: int | None = None) -> "Frame":
        if self.present or self.ordering or offset < 0:
            refuse("some of rows whose order polars leaves open, or counted from the end,")
        return self._made(*some_rows(self.held, self.kept, offset, length))

    def _extremes(self, k: int, by: Any, descending: bool) -> "Frame":
        """Return the rows with the largest values: of others, polars takes any among equals."""
        keys = expressions([by], {})
        if len(keys) > 1:
            refuse("top_k() by several columns")
        key = keys[0].one(self.scope)
        found = self.sort(keys[0], descending=descending, nulls_last=True).head(k)
        if all(isinstance(one.value, RandomVariable) and one.value.node.kind is Kind.CONTINUOUS for one in key.cells):
            return found
        made = found.select(key.name)
        made.lost = self.lost | (frozenset(self.held) - {key.name})
        return made

    def unique(self, subset: Any = None, *, keep: str = "any", maintain_order: bool = False) -> "Frame":
        self._in_fixed_order()
        names = list(self.data) if subset is None else subset if isinstance(subset, list) else [subset]
        others = [name for name in self.data if name not in names]
        if keep not in ("any", "first") or (others and keep != "first"):
            refuse(f"unique() with keep={keep!r}")
        groups = GroupBy(self, Groups(POLARS, [self.scope.column(name) for name in names], self.kept), maintain_order)
        found: Frame = groups.agg(*(expression(name).first() for name in others))
        return found.select(*self.data)

    def join(
        self, other: Any, on: Any = None, how: str = "inner", *, left_on: Any = None, right_on: Any = None,
        maintain_order: Any = None, validate: str = "m:m", coalesce: Any = None,
    ) -> "Frame":  # fmt: skip
        table = standing(other)
        table._in_fixed_order()
        pairs = [key if isinstance(key, list) else [key] for key in ((left_on, right_on) if on is None else (on, on))]
        others = {name: column for name, column in table.data.items() if name not in pairs[1]}
        if how not in LOOKED_UP or not all(isinstance(name, str) for key in pairs for name in key):
            refuse(f"join() with how={how!r}, or by anything but names")
        if how in ("inner", "left") and self.held.keys() & others.keys():
            refuse("join() with a table of columns of the same name")
        keys = [[self.scope.column(name) for name in pairs[0]], [table.scope.column(name) for name in pairs[1]]]
        left, right = (self.data, self.kept), (others, table.kept)
        if len(keys[0]) == 1 and can_look_up(keys[0][0], keys[1][0]):
            columns, rows = joined_by_lookup(left, right, keys[0][0], keys[1][0], how)
        else:
            keyed = {**others, **{f"#{k}": column for k, column in enumerate(keys[1])}}
            columns, rows = joined(left, (keyed, table.kept), lambda at, _: _equal(at, pairs[0]), how)
        if how == "inner" and maintain_order not in ("left", "left_right"):
            rows = Rows(replace(rows.axis, sorted=False), rows.there)
        return self._made({name: column for name, column in columns.items() if name[:1] != "#"}, rows)

    # Groups.
    def group_by(self, *by: Any, maintain_order: bool = False, **named: Any) -> GroupBy:
        self._in_fixed_order()
        keys = [column for one in expressions(by, named) for column in one.columns(self.scope)]
        return GroupBy(self, Groups(POLARS, keys, self.kept), maintain_order)

    def pivot(
        self, on: Any, *, index: Any = None, values: Any = None, aggregate_function: Any = None,
        sort_columns: bool = False, maintain_order: bool = True,
    ) -> "Frame":  # fmt: skip
        table: Frame = pivoted(self, on, index, values, aggregate_function, sort_columns, maintain_order)
        return table

    def describe(self) -> "Frame":
        """Return the table of nine summaries of each column of numbers."""
        self._in_fixed_order()
        if any(column.is_text or is_truths(column) for column in self.data.values()):
            refuse("describe() of anything but numbers")
        parts = [("count", ()), ("null_count", ()), ("mean", ()), ("std", ()), ("min", ())]
        parts += [("quantile", (0.25,)), ("quantile", (0.5,)), ("quantile", (0.75,)), ("max", ())]  # type: ignore[list-item]
        names = ("count", "null_count", "mean", "std", "min", "25%", "50%", "75%", "max")
        data = {"statistic": [Cell(name) for name in names]}
        for name, column in self.held.items():
            data[name] = [SUMMARIES[how](column, *arguments).cells[0] for how, arguments in parts]
        return Frame.of_cells(data, Rows.all_of(Axis((None,) * len(names))))


with_methods(Frame, {
    "is_empty": lambda self: negated(positive(self.kept.count)),
    **dict.fromkeys(("lazy", "collect", "clone"), lambda self: self),
    "get_columns": lambda self: self.listing(),
    "to_series": lambda self, index=0: self.get_column(list(self.columns)[index]),
    "to_dicts": lambda self: self.rows(named=True),
    "iter_rows": lambda self, *, named=False: self.rows(named=named),
    "to_dict": lambda self, *, as_series=True: (
        {name: (Series if as_series else values_of)(self.held[name]) for name in self.columns}),
    "top_k": lambda self, k, *, by: self._extremes(k, by, True),
    "bottom_k": lambda self, k, *, by: self._extremes(k, by, False),
    "n_unique": lambda self: self.unique().height,
    "pipe": lambda self, function, *arguments, **named: function(self, *arguments, **named),
})  # fmt: skip


def _equal(columns: Mapping[str, Column], names: Sequence[str]) -> list[Mask]:
    """Return in which pairs of rows all keys are equal."""
    equal = [OPERATORS["eq"](columns[name], columns[f"#{place}"]) for place, name in enumerate(names)]
    return masks_of(reduce(OPERATORS["and"], equal))


def _summary(name: str) -> Callable[..., Frame]:
    def method(self: Frame, *arguments: Any, **options: Any) -> Frame:
        summary = SUMMARIES[name]
        found = {one: summary(self.held[one], *arguments, **options) for one in self.columns}
        return Frame(found, ONE)

    return method


with_methods(Frame, {name: _summary(name) for name in (
    "sum", "mean", "min", "max", "median", "std", "var", "null_count", "count", "quantile")})  # fmt: skip


# Rows in an order, and what is released of them.
_EQUALS = "rows after sort() by columns in which some are equal, which polars leaves in any order,"


def with_open_order(rows: Rows) -> Rows:
    """Return rows of which those that are equal in what they are sorted by may change places."""
    return replace(rows, axis=replace(rows.axis, ranks=lambda: refuse(_EQUALS)))


def closed(rows: Rows) -> Rows:
    """Return rows as if they stood in this order: where what follows is the same in any order."""
    return replace(rows, axis=replace(rows.axis, sorted=True, ranks=None))


def tell_apart(keys: Sequence[Column]) -> bool:
    """Say whether those of some columns that are not random differ from row to row."""
    fixed = [key for key in keys if key.is_fixed]
    labels = {tuple(key.cells[place] for key in fixed) for place in range(len(keys[0].cells))}
    return len(labels) == len(keys[0].cells)


BEHIND_ROWS = 2**52
"""A number above that of any row, with room for others that are told from it."""


class RowList(MaskedList):
    """A list made of rows of a frame, as many as there are."""

    def released(self) -> Any:
        """Return what stands for it in an output: items that may be absent."""
        if self.is_certain:
            return self.plain()
        return SparseList([_absent_unless(item, there) for item, there in self.pairs()])


class UnorderedList(MaskedList):
    """A list made of rows whose order polars leaves open."""

    def pairs(self) -> list[tuple[Any, Mask]]:
        found = super().pairs()
        if len(found) > 1:
            order_left_open.set(True)
        return found

    def unordered(self) -> list[tuple[Any, Mask]]:
        return super().pairs()

    def released(self) -> Any:
        """Refuse it as an output, which would be another one in each call."""
        return refuse("a list of rows whose order polars leaves open, without sort(),")

    def __getitem__(self, key: Any) -> Any:
        return refuse("a place in a list of rows whose order polars leaves open, without sort(),")


def _absent_unless(item: Any, there: Mask) -> Any:
    if isinstance(item, tuple):
        return tuple(_absent_unless(part, there) for part in item)
    if isinstance(item, dict):
        return {name: _absent_unless(part, there) for name, part in item.items()}
    return leaf(Cell(item), there)


def listed(items: Sequence[Any], rows: Rows) -> Any:
    """Return one item for each row as a list; many rows stay together."""
    if rows.has_plates:
        return as_list(items, rows)
    if rows.axis.ranks is not None:
        rows.axis.in_turn()
    made: MaskedList = RowList() if rows.axis.sorted else UnorderedList()
    for item, there in zip(items, rows.there, strict=True):
        made.add(item, there)
    return made


def values_of(column: Column) -> Any:
    """Return the values of a column as a list."""
    return listed([python_value(cell) for cell in column.cells], column.rows)


def only_value(column: Column) -> Any:
    """Return the only value of a column; an error where there is not one."""
    return python_value(only_cell(column.cells, column.rows))


def value_at(column: Column, place: int) -> Any:
    """Return the value at a position among the rows that are there."""
    if not column.rows.axis.sorted:
        refuse("a position among rows whose order polars leaves open")
    cells, there = singled_out(column.cells, column.rows)
    if all(mask is True for mask in there):
        return python_value(cells[place])
    if not all(cell.known is True for cell in cells):
        refuse("a position among rows of a random number, some of them missing")
    return MaskedList.of_pairs(zip([python_value(cell) for cell in cells], there, strict=True))[place]


def some_rows(columns: Mapping[str, Column], rows: Rows, offset: int, number: int | None) -> Relation:
    """Return some rows of those that are there, after as many others as the offset says."""
    if not rows.axis.sorted:
        refuse("the first of rows whose order polars leaves open")
    columns, rows = unrolled(columns, rows)
    end = len(rows.there) if number is None else offset + number
    kept = counted_off(rows.there, rows.axis.leading, offset, end)
    places = [place for place, mask in enumerate(kept) if mask is not False]
    made = Rows(Axis((None,) * len(places)), tuple(kept[place] for place in places))
    return {name: one.taken(places, made) for name, one in columns.items()}, made


def released_column(column: Column) -> Any:
    """Return a series as an output."""
    if not column.rows.axis.sorted:
        refuse("a series whose order polars leaves open, without sort(),")
    cells, there = _single_rows(column)
    leaves = [leaf(without_nan(cell), mask) for cell, mask in zip(cells, there, strict=True)]
    return leaves if column.rows.are_all else SparseList(leaves)


def _single_rows(column: Column) -> tuple[list[Cell], list[Mask]]:
    spelled_out(column.rows)
    cells, there = singled_out(column.cells, column.rows)
    kept = [(cell, mask) for cell, mask in zip(cells, there, strict=True) if mask is not False]
    return [cell for cell, _ in kept], [mask for _, mask in kept]


def released_frame(
    columns: Mapping[str, Column],
    rows: Rows,
    present: Mapping[str, Mask],
    discovered: Mapping[str, Any],
    ordering: Sequence[Key],
) -> Any:
    """Return a frame as an output: its columns, each a list of those rows that are there.

    Rows whose order polars leaves open are in the ascending order of those columns that tell them apart. Columns that
    were `discovered` one after the other, each at some row, stand at places of their own.
    """
    order = None if rows.axis.sorted else _labels(columns, rows)
    if order is not None and ordering:
        order = replace(order, keys=tuple(_published(key, columns) for key, _, _ in ordering))
        columns, rows = in_random_order(columns, closed(rows), ordering)
    if rows.are_all and order is None and not present and len(discovered) < 2:
        return {name: released_column(column) for name, column in columns.items()}
    lists = {}
    for name, column in columns.items():
        cells, there = _single_rows(column)
        masks = [both(mask, present.get(name, True)) for mask in there]
        lists[name] = SparseList(leaf(without_nan(cell), mask) for cell, mask in zip(cells, masks, strict=True))
    is_open = len(discovered) > 1 and any(first is None for first in discovered.values())
    places = _places(list(columns), present, discovered) if len(discovered) > 1 and not is_open else ()
    return SparseFrame(lists, order, frozenset(present), places, is_open)


def _published(key: Column, columns: Mapping[str, Column]) -> str:
    """Return the name of a column that rows are in the order of."""
    found = [name for name, column in columns.items() if column.cells is key.cells]
    return found[0] if found else refuse("an order of rows by a column that is not published")


def _places(names: Sequence[str], present: Mapping[str, Mask], discovered: Mapping[str, Any]) -> list[Any]:
    """Return at which place each column stands: the discovered ones next to each other, others before or behind."""
    begin = min(map(names.index, discovered))
    ranks = [
        discovered.get(name, place - len(names) if place < begin else BEHIND_ROWS + place)
        for place, name in enumerate(names)
    ]
    return places_of(ranks, [present.get(name, True) for name in names])


def _labels(columns: Mapping[str, Column], rows: Rows) -> Labels:
    """Return what tells rows apart: the columns of plain values."""
    plain = {name: column for name, column in columns.items() if column.is_fixed}
    fixed = {name: [cell.value if cell.known else None for cell in one.cells] for name, one in plain.items()}
    labels = tuple(tuple(values[place] for values in fixed.values()) for place in range(len(rows.there)))
    if len(set(labels)) < len(labels):
        refuse("rows whose order polars leaves open, without sort(),")
    return Labels(tuple(fixed), labels)
