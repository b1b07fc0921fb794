"""A series of polars while a program is traced: a column that answers at once."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from privug.model.variable import refuse
from privug.program.traced.frames import reductions
from privug.program.traced.frames.cells import Cell
from privug.program.traced.frames.handing import number
from privug.program.traced.frames.polars.accessors import ACCESSORS
from privug.program.traced.frames.polars.cellwise import REFLECTED, compared
from privug.program.traced.frames.polars.column import Column, as_column, python_value
from privug.program.traced.frames.polars.expressions import (
    METHODS,
    Accessor,
    HasColumns,
    check_call,
    reflected,
    resolved,
)
from privug.program.traced.frames.polars.groups import Groups
from privug.program.traced.frames.polars.outputs import only_value, released_column, some_rows, value_at, values_of
from privug.program.traced.frames.polars.sorting import in_random_order
from privug.program.traced.masks import Mask, any_of, both, negated, truth


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
    def name(self) -> str:
        """What it is called."""
        return self.column.name

    def rename(self, name: str) -> "Series":
        return Series(self.column.named(name))

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

    def is_empty(self) -> Any:
        return negated(reductions.positive(self.column.rows.count))

    def to_list(self) -> Any:
        return values_of(self.column)

    def item(self, index: int | None = None) -> Any:
        return only_value(self.column) if index is None else value_at(self.column, index)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, int):
            return value_at(self.column, key)
        if isinstance(key, slice) and key.start is None and key.step is None and isinstance(key.stop, int):
            return self.head(key.stop)
        return refuse("such a subscript of a Series")

    def contains(self, item: Any) -> Mask:
        hits = [compared(np.equal, cell, as_column(item).cells[0]) for cell in self.column.cells]
        masks = [both(hit.known, truth(hit.value)) for hit in hits]
        if any(plate is not None for plate in self.column.rows.axis.plates):
            return reductions.positive(self.column.rows.among(masks).count)
        return any_of([both(mask, there) for mask, there in zip(masks, self.column.rows.there, strict=True)])

    def head(self, n: int = 10) -> "Series":
        return Series(some_rows({"": self.column}, self.column.rows, 0, n)[0][""].named(self.name))

    def sort(self, *, descending: bool = False, nulls_last: bool = False) -> "Series":
        """Return the values in order."""
        column, name = self.column, self.name  # equal values are the same, in whatever order they stood
        return Series(in_random_order({name: column}, column.rows, [column], [descending], [nulls_last])[0][name])

    def top_k(self, k: int = 5) -> "Series":
        return self.sort(descending=True, nulls_last=True).head(k)

    def bottom_k(self, k: int = 5) -> "Series":
        return self.sort(nulls_last=True).head(k)

    def unique(self) -> "Series":
        """Return the values that occur, in an order that polars leaves open."""
        return Series(Groups([self.column], self.column.rows).key_columns()[0])

    def to_numpy(self) -> Any:
        """Return the values as an array, or as some elements of one; NaN where one is missing."""
        column = self.column
        if not column.rows.axis.sorted:
            refuse("an array of rows whose order polars leaves open")
        if all(cell.known is True for cell in column.cells) and column.rows.are_all:
            return column.rows.axis.whole([cell.value for cell in column.cells])
        return reductions.selection([Cell(number(cell)) for cell in column.cells], column.rows)

    def __getattr__(self, name: str) -> Any:
        if name in ACCESSORS:
            return Accessor(self, name)
        return super().__getattr__(name)


def _at_once(name: str, method: Callable[..., Column]) -> Any:
    def made(self: Series, *arguments: Any, **options: Any) -> Any:
        return self.derived(method, name, arguments, options)

    made.__name__ = name
    return made


for _name, _method in METHODS.items():
    setattr(Series, _name, _at_once(_name, _method))
for _name in REFLECTED:
    setattr(Series, f"__r{_name}__", _at_once(f"__r{_name}__", reflected(METHODS[f"__{_name}__"])))
Series.__hash__ = None  # type: ignore[assignment]
