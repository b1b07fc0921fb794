"""Cells as pandas hands them out: numbers of Python or of NumPy, in the type of their column or row."""

import contextlib
import importlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from privug.model.categories import constant_category
from privug.model.maybe import maybe
from privug.model.plates import going_through
from privug.model.variable import RandomVariable, as_element, as_node, as_python
from privug.program.logic import where
from privug.program.traced.frames.cells import (
    Cell,
    computed,
    is_category,
    is_mixed,
    is_number,
    is_truth,
    kind,
    with_gaps,
)
from privug.program.traced.frames.rows import Rows
from privug.program.traced.masks import under


def number(cell: Cell) -> Any:
    """Return a cell as a single value: a number of NumPy or a text, NaN where it is missing, NaT among dates."""
    if cell.known is True:
        return as_element(as_node(np.positive(cell.value))) if is_number(cell.value) else cell.value
    if cell.known is False:
        return np.nan
    if is_category(cell.value) or not isinstance(cell.value, RandomVariable | int | float):
        levels = cell.value.node.levels if is_category(cell.value) else (cell.value,)
        gap = np.nan if not any(hasattr(level, "to_pydatetime") for level in levels) else _not_a_time()
        return where(cell.known, cell.value, RandomVariable(constant_category(gap)))
    value = cell.value.astype(float) if isinstance(cell.value, RandomVariable) else float(cell.value)
    return as_element(as_node(where(cell.known, value, np.nan)))


def element(cell: Cell) -> Any:
    """Return a cell as pandas hands out single ones: numbers and truth values of NumPy."""
    value = number(cell)
    if isinstance(value, bool | int | float):
        return np.asarray(value)[()]
    if isinstance(value, RandomVariable) and is_truth(value):
        return as_element(as_node(np.logical_and(value, True)))
    return value


def native(cell: Cell) -> Any:
    """Return a cell as pandas hands out one after the other: numbers and truth values of Python."""
    if cell.known is True and is_number(cell.value):
        return as_python(cell.value)
    value = number(cell)
    random_number = isinstance(value, RandomVariable) and value.node.levels is None and not is_mixed(value)
    return as_python(value) if random_number else value


def of_one_type(cells: Sequence[Cell]) -> list[Cell]:
    """Return the cells of a column in its type: whole numbers beside gaps or other numbers are floats."""
    return [with_gaps(cell) for cell in cells] if are_floats(cells) else list(cells)


def are_floats(cells: Sequence[Cell]) -> bool:
    """Say whether the numbers of a column are floats in pandas: because some are, or some are missing."""
    kinds = {kind(cell.value) for cell in cells if cell.known is not False}
    return kinds <= {"i", "f"} and ("f" in kinds or any(cell.known is not True for cell in cells))


def as_rows(columns: Iterable[Sequence[Cell]]) -> tuple[list[list[Cell]], bool]:
    """Return columns as rows hold them, and whether all are of one type there: else they are objects."""
    typed = [of_one_type(cells) for cells in columns]
    every = [cell for cells in typed for cell in cells]
    if are_floats(every):
        return [[with_gaps(cell) for cell in cells] for cells in typed], True
    alike = len({kind(cell.value) for cell in every}) == 1 and all(cell.known is True for cell in every)
    return typed, alike


def _not_a_time() -> Any:
    return importlib.import_module("pandas").NaT


def or_none(cell: Cell, none: bool) -> Any:
    """Return a cell as a single value: where it is missing None, or NaN."""
    if none and isinstance(cell.known, RandomVariable):
        return RandomVariable(maybe(cell.known.node, as_node(element(Cell(cell.value))), None))
    return element(cell)


def called(
    function: Callable[[Any], Any], cells: Sequence[Cell], rows: Rows, given: Callable[[Cell], Any] = native
) -> list[Cell]:
    """Call a function of the program's on what is given of each cell, once for rows that are alike."""
    found = []
    for cell, there, plate in zip(cells, rows.there, rows.axis.plates, strict=True):
        if there is False:
            found.append(Cell(0.0, False))
            continue
        with contextlib.nullcontext() if plate is None else going_through(plate), under(there):
            found.append(computed(function(given(cell))))
    return found
