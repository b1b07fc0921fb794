"""Rows of polars in an order, and columns and frames as Python has them: lists, rows, single values, outputs."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from privug.model.sparse import Labels, SparseFrame, SparseList
from privug.model.variable import refuse
from privug.program.traced.frames.cells import Cell, without_nan
from privug.program.traced.frames.columns import Column
from privug.program.traced.frames.polars.column import python_value
from privug.program.traced.frames.relations import Key, Relation, in_random_order, unrolled
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
from privug.program.traced.masks import Mask, MaskedList, both, places_of

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
