"""Columns and frames of polars as Python has them: lists, rows and single values, and as outputs of a program."""

import operator
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from privug.model.sparse import Labels, SparseFrame, SparseList
from privug.model.variable import RandomVariable, refuse
from privug.program.traced.frames.cells import Cell, chosen, without_nan
from privug.program.traced.frames.polars.column import Column, python_value
from privug.program.traced.frames.polars.sorting import Key, in_random_order
from privug.program.traced.frames.released import leaf, singled_out
from privug.program.traced.frames.rows import Axis, Rows, spelled_out
from privug.program.traced.iteration import PlatedList, order_left_open
from privug.program.traced.masks import Mask, MaskedList, both, fail_where, places_of, truth

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
    if any(plate is not None for plate in rows.axis.plates):
        return PlatedList(list(zip(items, rows.there, rows.axis.plates, strict=True)))
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
    number = column.rows.count
    wrong = number != 1
    fail_where(wrong if isinstance(wrong, RandomVariable) else bool(wrong), ValueError("not one value"))
    cells, there = singled_out(column.cells, column.rows)
    found = Cell(0.0, False)
    for cell, mask in zip(cells, there, strict=True):
        found = chosen(mask, cell, found)
    return python_value(Cell(found.value, True if all(cell.known is True for cell in cells) else found.known))


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


def some_rows(
    columns: Mapping[str, Column], rows: Rows, offset: int, number: int | None
) -> tuple[dict[str, Column], Rows]:
    """Return some rows of those that are there, after as many others as the offset says."""
    if not rows.axis.sorted:
        refuse("the first of rows whose order polars leaves open")
    there = singled_out([Cell(0)] * len(rows.there), rows)[1]
    cells = {name: singled_out(column.cells, rows)[0] for name, column in columns.items()}
    end = len(there) if number is None else offset + number
    leading = rows.axis.leading
    if leading is not None and all(map(operator.is_, there, leading)):
        kept = {place: mask for place, mask in enumerate(there) if offset <= place < end}
    else:
        kept = dict(enumerate(_counted_off(there, offset, end)))
    places = [place for place, mask in kept.items() if mask is not False]
    made = Rows(Axis((None,) * len(places)), tuple(kept[place] for place in places))
    return {
        name: Column(
            tuple(cells[name][place] for place in places), made, name, largest=column.largest, levels=column.levels
        )
        for name, column in columns.items()
    }, made


def _counted_off(there: Sequence[Mask], offset: int, end: int) -> list[Mask]:
    before: Any = 0
    masks: list[Mask] = []
    for mask in there:
        masks.append(both(mask, both(truth(before >= offset), truth(before < end))))
        before = before + (int(mask) if isinstance(mask, bool) else mask * 1)
    return masks


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
        columns, rows = in_random_order(columns, rows, *map(list, zip(*ordering, strict=True)))
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
    fixed = {
        name: [cell.value if cell.known else None for cell in column.cells]
        for name, column in columns.items()
        if not any(isinstance(part, RandomVariable) for cell in column.cells for part in cell)
    }
    labels = tuple(tuple(values[place] for values in fixed.values()) for place in range(len(rows.there)))
    if len(set(labels)) < len(labels):
        refuse("rows whose order polars leaves open, without sort(),")
    return Labels(tuple(fixed), labels)
