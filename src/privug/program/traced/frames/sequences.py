"""What a traced column is row by row: ranks, differences from the row before, and whether it was there before."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from privug.model.variable import refuse
from privug.program.logic import where
from privug.program.traced.frames.cells import EQUAL, Cell, cell_of, compared, with_gaps
from privug.program.traced.frames.rows import Rows
from privug.program.traced.masks import Mask, any_of, both, either, negated, truth

MOST_COMPARED = 32
"""How many rows may be compared with each other, each with all."""


def few_rows(rows: Rows, what: str) -> None:
    """Refuse rows that are too many to be compared with each other, or stand for many."""
    if any(plate is not None for plate in rows.axis.plates) or len(rows.there) > MOST_COMPARED:
        refuse(f"{what}() of many rows")


def same_cell(left: Cell, right: Cell) -> Mask:
    """Return whether two cells are alike; missing ones are."""
    missing = both(negated(left.known), negated(right.known))
    return either(missing, truth(compared(EQUAL, left, right).value))


def repeated(columns: Sequence[Sequence[Cell]], rows: Rows, keep: Any) -> list[Mask]:
    """Return for each row whether it is like one before, or one behind, or (`keep=False`) any other."""
    few_rows(rows, "duplicated")
    if keep not in ("first", "last") and keep is not False:
        refuse("duplicated() that keeps something else")
    places = range(len(rows.there))
    found = []
    for place in places:
        others = [k for k in places if k != place and (keep is False or (k < place) is (keep == "first"))]
        found.append(any_of([both(rows.there[k], _alike(columns, k, place)) for k in others]))
    return found


def _alike(columns: Sequence[Sequence[Cell]], one: int, two: int) -> Mask:
    alike: Mask = True
    for cells in columns:
        alike = both(alike, same_cell(cells[one], cells[two]))
    return alike


def shifted(cells: Sequence[Cell], rows: Rows, periods: int) -> list[Cell]:
    """Return the cells some rows further down; where nothing comes from, they are missing."""
    if not isinstance(periods, int) or not rows.are_all or not rows.axis.sorted:
        refuse("shift() of a random number of rows")
    if any(plate is not None for plate in rows.axis.plates):
        refuse("shift() of many rows")
    size = len(cells)
    cells = [with_gaps(cell) for cell in cells] if periods else cells
    return [cells[k - periods] if 0 <= k - periods < size else cell_of(None) for k in range(size)]


def ranked(cells: Sequence[Cell], rows: Rows, method: str, ascending: bool, pct: bool) -> list[Cell]:
    """Return the rank of each cell among those that are known: one for the first, equal ones alike."""
    few_rows(rows, "rank")
    if method not in ("average", "min", "max"):
        refuse(f"rank() by {method!r}")
    before = np.less if ascending else np.greater
    known = [both(there, cell.known) for cell, there in zip(cells, rows.there, strict=True)]
    number = _count(known)
    found = []
    for cell in cells:
        smaller = _count([both(k, truth(compared(before, o, cell).value)) for o, k in zip(cells, known, strict=True)])
        equal = _count([both(k, truth(compared(EQUAL, o, cell).value)) for o, k in zip(cells, known, strict=True)])
        rank = {"min": smaller + 1, "max": smaller + equal, "average": smaller + (equal + 1) / 2}[method]
        rank = rank / where_positive(number) if pct else rank * 1.0
        found.append(Cell(rank, cell.known))
    return found


def where_positive(number: Any) -> Any:
    """Return a number, or one where it is zero."""
    return max(number, 1) if isinstance(number, int) else np.maximum(number, 1)


def _count(masks: Sequence[Mask]) -> Any:
    total: Any = 0
    for mask in masks:
        total = total + (int(mask) if isinstance(mask, bool) else where(mask, 1, 0))
    return total
