"""What stands in for a frame while a program is traced."""

from collections.abc import Callable
from typing import Any

from privug.model.framed import Framed
from privug.model.plated_tables import PlatedTable, RaggedTable
from privug.model.plates import Plate
from privug.model.sparse import SparseDict, SparseFrame, SparseList, values_in
from privug.model.variable import RandomVariable, refuse
from privug.program.traced.dictionaries import MaskedDict
from privug.program.traced.frames.cells import cell_of
from privug.program.traced.frames.pandas.frame import Frame
from privug.program.traced.frames.pandas.values import with_timestamps
from privug.program.traced.frames.polars.frame import Frame as PolarsFrame
from privug.program.traced.frames.rows import Axis, Rows
from privug.program.traced.masks import MaskedList

FRAMES: dict[str, Callable[..., Any]] = {"pandas": Frame.of_cells, "polars": PolarsFrame.of_cells}
"""What stands for the frames of a library."""


def stand_in(value: Any) -> Any:
    """Return what a traced program gets for a frame; anything else as it is.

    A dict of columns is one of random arrays, and a table of rows has what a structured array has: columns by name and
    rows by position. An output of which some entries may be absent is a dictionary of random keys again.
    """
    if isinstance(value, SparseFrame):
        return (
            {name: _list(column) for name, column in value.items()}
            if not (value.optional or value.places or value.is_open)
            else refuse("a table whose columns may be absent, or stand in another order")
        )
    if isinstance(value, SparseList):
        return _list(value)
    if isinstance(value, SparseDict):
        return _dictionary(value)
    if not isinstance(value, Framed):
        return value
    if value.form == "columns":
        return {name: value.table[name] for name in value.names}
    if value.form == "structured":
        return value.table
    return _frame(value) if value.form in FRAMES else refuse(f"a frame of {value.form}")


def _frame(value: Framed) -> Any:
    table = value.table
    segments = table.segments if isinstance(table, PlatedTable) else list(table)
    plates = tuple(segment if isinstance(segment, Plate) else None for segment in segments)
    rows = [segment.row if isinstance(segment, Plate) else segment for segment in segments]
    data = {name: [cell_of(row[name]) for row in rows] for name in value.names}
    if value.form == "pandas":
        data = {name: with_timestamps(cells) for name, cells in data.items()}
    there = table.conditions if isinstance(table, PlatedTable) else (True,) * len(plates)
    outline = table.outline if isinstance(table, RaggedTable) else None
    return FRAMES[value.form](data, Rows(Axis(plates, outline=outline), there))


def _list(value: SparseList) -> Any:
    """Return the list of those items that are there."""
    return MaskedList.of_pairs((_present(item), _there(values_in(item)[0])) for item in value)


def _there(value: Any) -> Any:
    absent = isinstance(value, RandomVariable) and SparseDict.is_absent(value)
    return RandomVariable(value.node.parents[0]) if absent else True


def _present(item: Any) -> Any:
    if isinstance(item, tuple):
        return tuple(map(_present, item))
    if isinstance(item, dict):
        return {name: _present(part) for name, part in item.items()}
    return RandomVariable(item.node.parents[1]) if _there(item) is not True else item


def _dictionary(value: SparseDict) -> Any:
    if any(isinstance(part, SparseDict) for part in value.values()):
        refuse("a table of which some columns may be absent")
    made = MaskedDict()
    for key, part in value.items():
        cell = part.node.parents if isinstance(part, RandomVariable) and value.is_absent(part) else None
        made.put(
            key, part if cell is None else RandomVariable(cell[1]), True if cell is None else RandomVariable(cell[0])
        )
    if value.places:
        made.ranks = dict(zip(value, value.places, strict=True))
    return made
