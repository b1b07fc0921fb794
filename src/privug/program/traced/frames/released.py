"""Traced columns as outputs: as a plain call's frames are taken apart, with entries that may be absent."""

from collections.abc import Sequence
from typing import Any

from privug.model.graph import substitute
from privug.model.maybe import maybe
from privug.model.plates import Lane, dependent_on_lanes
from privug.model.ragged import RaggedPlate
from privug.model.sparse import ABSENT, SparseDict
from privug.model.variable import RandomVariable, as_node, refuse
from privug.program.traced.frames.cells import Cell, surely_known
from privug.program.traced.frames.rows import Axis, Rows, spelled_out
from privug.program.traced.masks import Mask, MaskedList, both, places_of


class Turns(dict[Any, Any]):
    """By which numbers rows in a random order stand in turn, by their labels: found out when it is asked for."""

    def __init__(self, labels: Sequence[Any], axis: Axis) -> None:
        super().__init__()
        self._labels = labels
        self._axis = axis

    def __getitem__(self, label: Any) -> Any:
        self.values()
        return super().__getitem__(label)

    def values(self) -> Any:
        if not len(self):
            self.update(zip(self._labels, self._axis.in_turn(), strict=True))
        return super().values()


class InAnyOrder(MaskedList):
    """A list of items that are there under conditions, in an order that is not known."""

    def pairs(self) -> list[tuple[Any, Mask]]:
        return refuse("values in the order of their first rows")

    def unordered(self) -> list[tuple[Any, Mask]]:
        return super().pairs()

    def plain(self) -> Any:
        return refuse("values in the order of their first rows")

    def __len__(self) -> int:
        return list.__len__(self) if self.is_certain else refuse("a random number of values")


def released(cells: Sequence[Cell], rows: Rows) -> Any:
    """Return a column as an output: a dict by its labels, or a list where rows are called by their positions."""
    axis = rows.axis
    if axis.anonymous:
        refuse("the labels of rows in a random order")
    if axis.labels is None:
        if not rows.are_all:
            refuse("a random number of rows as output")
        spelled_out(rows)
        return [leaf(cell, True) for cell in singled_out(cells, rows)[0]]
    leaves = [leaf(cell, there) for cell, there in zip(cells, rows.there, strict=True)]
    triples = list(zip(axis.labels, leaves, rows.there, strict=True))
    entries = {label: one for label, one, there in triples if there is not False}
    if axis.sorted or len(entries) < 2:
        return entries if rows.are_all else SparseDict(entries)
    kept = [(rank, there) for rank, there in zip(axis.in_turn(), rows.there, strict=True) if there is not False]
    return SparseDict(entries, places_of([rank for rank, _ in kept], [there for _, there in kept]))


def leaf(cell: Cell, there: Mask) -> Any:
    """Return one part of an output: None where it is missing, absent where it is not there."""
    value = cell.value
    known = cell.known
    if isinstance(known, RandomVariable) and surely_known(cell, there):
        known = True
    if known is False:
        value = None
    elif known is not True:
        value = RandomVariable(maybe(known.node, as_node(value), None))
    return value if there is True else RandomVariable(maybe(as_node(there), as_node(value), ABSENT))


def singled_out(cells: Sequence[Cell], rows: Rows) -> tuple[list[Cell], list[Mask]]:
    """Return the cells of every row by itself, and the conditions under which rows are there."""
    axis = rows.axis
    if all(plate is None for plate in axis.plates):
        return list(cells), list(rows.there)
    spelled_out(rows)
    found: list[Cell] = []
    there: list[Mask] = []
    for place, plate in enumerate(axis.plates):
        if plate is None:
            found.append(cells[place])
            there.append(rows.there[place])
            continue
        parts = [_each(axis_part, plate.size, axis, place) for axis_part in (*cells[place], rows.there[place])]
        found += [Cell(value, known) for value, known in zip(parts[0], parts[1], strict=True)]
        there += parts[2]
    return found, there


def row_of_random_table(cells: Sequence[Cell], rows: Rows, position: Any) -> tuple[Cell, Mask]:
    """Return a cell by its position in a table of random size, and whether that row is there."""
    outline = rows.axis.outline
    if outline is None or type(position) is not int or position < 0:
        refuse("such a row of a table of random size")
    place, inside = outline.find(position)
    plate = rows.axis.plates[place]
    if plate is None:
        return (cells[place], rows.there[place]) if inside == 0 else (Cell(0.0, False), False)
    assert isinstance(plate, RaggedPlate)
    value, known, mask = (_in_row(part, plate, inside) for part in (*cells[place], rows.there[place]))
    return Cell(value, known), both(plate.size > inside, mask)


def _in_row(part: Any, plate: RaggedPlate, position: int) -> Any:
    """Return what a quantity is in one of the rows for which it was computed at once."""
    if not isinstance(part, RandomVariable):
        return part
    lanes = [node for node in dependent_on_lanes(part.node).values() if isinstance(node.operation, Lane)]
    columns = [lane.operation.column for lane in lanes if isinstance(lane.operation, Lane)]
    found = [plate.cell_at(RandomVariable(column), position).node for column in columns]
    return RandomVariable(substitute([part.node], dict(zip(lanes, found, strict=True)))[0])


def _each(part: Any, size: int, axis: Any, place: int) -> list[Any]:
    if not isinstance(part, RandomVariable):
        return [part] * size
    whole = axis.__class__((axis.plates[place],)).whole([part])
    return [whole[row] for row in range(size)]
