"""Joins of a frame of polars with a table that is not random."""

from collections.abc import Mapping
from typing import Any

from privug.model.variable import refuse
from privug.program.traced.frames.cells import mapped
from privug.program.traced.frames.polars.column import Column
from privug.program.traced.frames.polars.library import is_plain_frame
from privug.program.traced.frames.rows import Rows
from privug.program.traced.masks import both, negated, truth


def joined(
    columns: Mapping[str, Column], rows: Rows, other: Any, left: Any, right: Any, how: str
) -> tuple[dict[str, Column], Rows]:
    """Return columns with those of a fixed table beside them, in the rows that have a counterpart there."""
    left, right = (key[0] if isinstance(key, list) and len(key) == 1 else key for key in (left, right))
    if not (isinstance(left, str) and isinstance(right, str) and is_plain_frame(other)):
        refuse("join() with anything but a fixed table, on one column")
    if how not in ("inner", "left", "semi", "anti") or left not in columns:
        refuse(f"join() with how={how!r}")
    table = other.lazy().collect().drop_nulls(right)
    if table[right].n_unique() < table.height and how in ("inner", "left"):
        refuse("join() with a table of repeated keys")
    keys, found = table[right].to_list(), columns[left]
    there = [mapped(lambda level: level in keys, cell) for cell in found.cells]
    matching = [both(cell.known, truth(cell.value)) for cell in there]
    if how == "anti":
        matching = [negated(mask) for mask in matching]
    kept = rows if how == "left" else rows.among(matching)
    made = {name: column.on(kept) for name, column in columns.items()}
    if how in ("semi", "anti"):
        return made, kept
    for name in table.columns:
        if name == right:
            continue
        if name in columns:
            refuse("join() with a table of columns of the same name")
        values = dict(zip(keys, table[name].to_list(), strict=True))
        cells = tuple(mapped(values.get, cell) for cell in found.cells)
        made[name] = Column(cells, kept, name)
    return made, kept
