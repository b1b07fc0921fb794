"""Group-bys and pivots of polars while a program is traced."""

from collections.abc import Callable, Sequence
from typing import Any

from privug.model.variable import RandomVariable, refuse
from privug.program.traced.frames.cells import Cell, chosen
from privug.program.traced.frames.polars.column import SUMMARIES, Column
from privug.program.traced.frames.polars.expressions import Expr, expression, expressions, rows_expression
from privug.program.traced.frames.polars.relations import Groups
from privug.program.traced.frames.polars.sorting import UnorderedList, in_random_order
from privug.program.traced.frames.reductions import positive
from privug.program.traced.frames.rows import Axis, Rows
from privug.program.traced.masks import Mask, MaskedList, Standing, fail_where


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
        for (values, rows), there in zip(self.groups.members, self.groups.as_rows.there, strict=True):
            made.add((values, self.frame._on(rows)), there)
        return made

    def agg(self, *arguments: Any, **named: Any) -> Any:
        """Return what expressions come to in each group."""
        several = expressions(arguments, named)
        scope, rows = self.frame.scope, self.groups.as_rows
        nobody = scope.on(scope.rows.among([False] * len(scope.rows.there)))
        names = [column for one in several for column in one.columns(nobody)]
        parts = [
            [column for one in several for column in one.columns(scope.on(members))]
            for _, members in self.groups.members
        ]
        columns = self.groups.key_columns()
        for place, column in enumerate(names):
            columns.append(_of_groups([part[place] for part in parts], column, rows))
        found = {column.name: column for column in columns}
        if len(found) < len(columns):
            raise ValueError("a column name that occurs twice")
        return self._in_order(found, rows)

    def _in_order(self, columns: dict[str, Column], rows: Rows) -> Any:
        if not self.maintain_order or not self.groups.rows.axis.sorted:
            return type(self.frame)(columns, rows)
        made = Rows(Axis(rows.axis.plates), rows.there)
        placed = {name: column.on(made) for name, column in columns.items()}
        first = Column(tuple(self.groups.first_places()), made)
        return type(self.frame)(*in_random_order(placed, made, [first], [False], [False]))

    def len(self, name: str = "len") -> Any:
        return self.agg(rows_expression().derived(Column.named, "alias", [name], {}))

    def _others(self) -> list[str]:
        keys = {key.name for key in self.groups.keys}
        return [name for name in self.frame.data if name not in keys]


def _of_groups(parts: Sequence[Column], example: Column, rows: Rows) -> Column:
    if not all(part.single for part in (example, *parts)):
        refuse("agg() of lists")
    tops = [part.largest for part in parts]
    largest = None if None in tops else max((top for top in tops if top is not None), default=None)
    return Column(tuple(part.cells[0] for part in parts), rows, example.name, largest=largest)


def _summary(name: str) -> Callable[..., Any]:
    def method(self: GroupBy, *arguments: Any) -> Any:
        return self.agg(*(getattr(expression(one), name)(*arguments) for one in self._others()))

    method.__name__ = name
    return method


for _name in ("sum", "mean", "min", "max", "median", "first", "last", "n_unique", "quantile"):
    setattr(GroupBy, _name, _summary(_name))


def pivoted(frame: Any, on: Any, index: Any, values: Any, how: Any, sort_columns: bool, maintain_order: bool) -> Any:
    """Return a table: rows by the values of some columns, columns by those of another."""
    names = index if isinstance(index, list) else [index]
    if not all(isinstance(name, str) for name in (on, values, *names)) or isinstance(how, Expr):
        refuse("pivot() without names for on, index and values")
    if how is not None and how not in SUMMARIES:
        refuse(f"pivot() with aggregate_function={how!r}")
    scope = frame.scope
    across = Groups([scope.column(on)], frame.kept)
    down = GroupBy(frame, Groups([scope.column(name) for name in names], frame.kept), maintain_order)
    columns = down.groups.key_columns()
    for (label,), members in across.members:
        masks = members.there
        cells = [
            _pivot_cell(scope.column(values).on(rows.among(masks)), how, there)
            for (_, rows), there in zip(down.groups.members, down.groups.as_rows.there, strict=True)
        ]
        columns.append(Column(tuple(cells), down.groups.as_rows, _column_name(label)))
    made = down._in_order({column.name: column for column in columns}, down.groups.as_rows)
    there = {_column_name(label): positive(members.count) for (label,), members in across.members}
    made.present = {name: mask for name, mask in there.items() if mask is not True}
    if not sort_columns:
        known = across.rows.axis.sorted
        firsts = [cell.value for cell in across.first_places()] if known else [None] * len(there)
        made.discovered = dict(zip(there, firsts, strict=True))
    return made


def _pivot_cell(column: Column, how: str | None, there: Mask) -> Cell:
    if how is not None:
        return SUMMARIES[how](column).cells[0]
    number = column.rows.count
    several = number > 1
    fail_where(several if isinstance(several, RandomVariable) else bool(several), ValueError("several values"))
    found = Cell(column.cells[0].value if column.cells else 0.0, False)
    if column.rows.has_plates:
        refuse("pivot() of many rows without aggregate_function")
    for cell, mask in zip(column.cells, column.rows.there, strict=True):
        found = chosen(mask, cell, found)
    return found


def _column_name(label: Any) -> str:
    if label is None:
        return "null"
    return str(label).lower() if isinstance(label, bool) else str(label)
