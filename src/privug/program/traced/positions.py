"""Positions of rows: loops over `range(len(rows))` and `enumerate(rows)`, once for all rows that are alike."""

from collections.abc import Callable, Sequence
from typing import Any

from privug.model.plated_table import PlatedTable
from privug.model.plates import Plate, current_plate
from privug.model.ragged import RaggedTable
from privug.model.variable import RandomVariable, refuse
from privug.program.traced.accumulators import Accumulator
from privug.program.traced.iteration import PlatedList, Segment, Stream
from privug.program.traced.kept import State


def positions_in(items: Any, tables: Sequence[Callable[[], Any]]) -> Any:
    """Return the positions of a range as those of a table's rows, if the table has many that are alike."""
    if type(items) is not range or items.step != 1 or items.start < 0:
        return items
    for table in tables:
        try:
            rows = table()
        except NameError:  # it is made inside the loop
            continue
        if is_numbered(rows) and items.start < items.stop <= len(rows):
            held = _numbered(rows, rows[items.start : items.stop].segments, items.start)
            return Stream(PlatedList([(place, True, plate) for place, _, plate in held]))
    return items


def enumerated(rows: PlatedTable, start: int) -> Stream:
    """Return the rows of a table with many that are alike, each with its position."""
    if not is_numbered(rows) or start:
        refuse("enumerate() of such a table with many rows")
    held = _numbered(rows, rows.segments, 0)
    return Stream(PlatedList([((place, row), True, plate) for place, row, plate in held]))


def is_numbered(rows: Any) -> bool:
    """Say whether something is a table with many rows that are alike, each at a known position."""
    return isinstance(rows, PlatedTable) and not isinstance(rows, RaggedTable)


def _numbered(table: PlatedTable, segments: Sequence[Any], first: int) -> list[Segment]:
    """Return positions in a table and rows, in the order of the segments; plates beside those that stand for many."""
    held: list[Segment] = []
    for part in segments:
        if isinstance(part, Plate):
            held.append((part.position_in(table, first), part.row, part))
            first += part.size
        else:
            held.append((first, part, None))
            first += 1
    return held


def row_at(table: PlatedTable, key: Any) -> Any:
    """Return the row at a position, which may be that of the row at hand or of one that an earlier row left."""
    plate = current_plate.get()
    if isinstance(key, Accumulator) and isinstance(key.origin, State) and not key.terms:
        return key.origin.row_of(table, row_at)
    if isinstance(key, RandomVariable) and plate is not None and plate.is_position_in(table, key):
        return plate.row
    return table[key]
