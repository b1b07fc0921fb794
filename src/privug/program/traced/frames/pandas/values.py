"""Cells as pandas hands them out and reads them: types of NumPy, gaps that make floats, timestamps, and labels."""

import datetime
import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privug.model.categories import constant_category, map_levels
from privug.model.maybe import maybe
from privug.model.variable import RandomVariable, as_element, as_node, as_python, refuse
from privug.prior.frame import is_missing
from privug.program.logic import where
from privug.program.traced.frames.cells import (
    MISSING,
    Cell,
    cell_of,
    chosen,
    is_category,
    is_mixed,
    is_number,
    is_truth,
    kind,
    with_gaps,
)
from privug.program.traced.frames.columns import Column
from privug.program.traced.frames.rows import Axis, Rows, singled_out
from privug.program.traced.masks import Mask, fail_where, negated


def number(cell: Cell) -> Any:
    """Return a cell as a single value: a number of NumPy or a text, NaN where it is missing, NaT among dates."""
    if cell.known is True:
        return as_element(as_node(np.positive(cell.value))) if is_number(cell.value) else cell.value
    if cell.known is False:
        return np.nan
    if is_category(cell.value) or not isinstance(cell.value, RandomVariable | int | float):
        levels = cell.value.node.levels if is_category(cell.value) else (cell.value,)
        of_dates = any(hasattr(level, "to_pydatetime") for level in levels)
        gap = importlib.import_module("pandas").NaT if of_dates else np.nan
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


def as_rows(columns: Iterable[Column]) -> tuple[list[list[Cell]], bool]:
    """Return columns as rows hold them, and whether all are of one type there: else they are objects."""
    typed = [of_one_type(column.cells) for column in columns]
    every = [cell for cells in typed for cell in cells]
    if are_floats(every):
        return [[with_gaps(cell) for cell in cells] for cells in typed], True
    alike = len({kind(cell.value) for cell in every}) == 1 and all(cell.known is True for cell in every)
    return typed, alike


def or_none(cell: Cell, none: bool) -> Any:
    """Return a cell as a single value: where it is missing None, or NaN."""
    if none and isinstance(cell.known, RandomVariable):
        return RandomVariable(maybe(cell.known.node, as_node(element(Cell(cell.value))), None))
    return element(cell)


def with_timestamps(cells: Sequence[Cell]) -> list[Cell]:
    """Return a column whose dates are timestamps of pandas, if it holds nothing but dates."""
    values = [value for cell in cells if cell.known is not False for value in _values(cell)]
    if not values or not all(isinstance(value, datetime.date) for value in values):
        return list(cells)
    return [cell if cell.known is False else Cell(_stamped(cell.value), cell.known) for cell in cells]


def _values(cell: Cell) -> tuple[Any, ...]:
    return cell.value.node.levels if is_category(cell.value) else (cell.value,)


def _stamped(value: Any) -> Any:
    stamp = importlib.import_module("pandas").Timestamp
    return RandomVariable(map_levels(value.node, stamp)) if is_category(value) else stamp(value)


def are_timestamps(cell: Cell) -> bool:
    """Say whether a cell holds timestamps."""
    return cell.known is not False and all(hasattr(value, "to_pydatetime") for value in _values(cell))


def beside_timestamps(cells: Sequence[Cell], other: Any) -> Any:
    """Return what a column is compared with: beside timestamps, a text is read as one."""
    if not isinstance(other, str) or not any(map(are_timestamps, cells)):
        return other
    try:
        return importlib.import_module("pandas").Timestamp(other)
    except ValueError:
        return refuse("a comparison of dates with a text that is none")


def no_text_beside_timestamps(left: Any, right: Any) -> None:
    """Refuse a comparison of dates with a text, where pandas has rules of its own: in query()."""
    for one, other in ((left, right), (right, left)):
        cells = getattr(one, "cells", None)
        if cells is not None and any(map(are_timestamps, cells)) and isinstance(other, str | list):
            refuse("query() of dates and texts")


def missing_ones(cell: Cell, values: Sequence[Any]) -> bool:
    """Say whether isin() of some values holds of a missing cell; refuse what pandas has no clear rule for."""
    gaps = [value for value in values if not isinstance(value, RandomVariable) and cell_of(value).known is False]
    if not gaps or cell.known is True:
        return False
    if is_category(cell.value) or isinstance(cell.value, str):
        return refuse("isin() of missing dates") if are_timestamps(cell) else True
    if any(not isinstance(value, float) for value in gaps):
        refuse("isin() of None among numbers")
    return True


@dataclass(frozen=True)
class Labels:
    """Labels that are asked for, in their order."""

    listed: tuple[Any, ...]
    names: tuple[Any, ...] | None = None
    """What an index of pandas calls them, if they come from one."""
    numbered: bool = False
    """Whether they are the numbers from zero on, as a range: rows are then called by their positions."""

    @staticmethod
    def of(value: Any) -> "Labels":
        """Read a list, a range, an array or an index of pandas."""
        is_index = hasattr(value, "names") and hasattr(value, "tolist")
        if not is_index and not isinstance(value, list | tuple | range | np.ndarray):
            refuse("labels that are not a list")
        listed = tuple(value.tolist() if hasattr(value, "tolist") else value)
        parts = [part for label in listed for part in (label if isinstance(label, tuple) else (label,))]
        if not listed or any(not isinstance(part, str | int | float) or is_missing(part) for part in parts):
            refuse("labels that are not texts and numbers")
        if len(set(listed)) < len(listed):
            refuse("labels that stand for several cells")
        in_turn = isinstance(value, range) or type(value).__name__ == "RangeIndex"
        numbered = in_turn and listed == tuple(range(len(listed)))
        return Labels(listed, tuple(value.names) if is_index else None, numbered)

    def places_in(self, own: Sequence[Any]) -> list[int | None]:
        """Return where each label stands among others; True is not one, unlike in Python."""
        places = {label: place for place, label in enumerate(own)}
        found = [places.get(label) for label in self.listed]
        for label, place in zip(self.listed, found, strict=True):
            if place is not None and not _same_label(label, own[place]):
                refuse("labels that are truth values by numbers")
        return found

    def rows(self, names: tuple[Any, ...]) -> Rows:
        """Return rows of these labels; by themselves they are called as others were."""
        labels = None if self.numbered else self.listed
        return Rows.all_of(Axis((None,) * len(self.listed), labels, self.names or names))


def _same_label(one: Any, two: Any) -> bool:
    ones, twos = (label if isinstance(label, tuple) else (label,) for label in (one, two))
    return [isinstance(part, bool) for part in ones] == [isinstance(part, bool) for part in twos]


Found = list[tuple[Cell, Mask] | None]
"""For each label its cell and when it is there, if it may be."""


def found_at(labels: Labels, cells: Sequence[Cell], rows: Rows) -> Found:
    """Return the cells of a column at labels."""
    axis = rows.axis
    if axis.anonymous or axis.outline is not None or any(band is not None for band in axis.bands):
        refuse("rows of such labels by a list")
    single, there = singled_out(of_one_type(cells), rows)
    places = labels.places_in(axis.labels or tuple(range(axis.size)))
    return [None if place is None else (single[place], there[place]) for place in places]


def filled(found: Found, filling: Cell) -> list[Cell]:
    """Return what was found at labels, and something else where a label is not there."""
    return [filling if one is None else chosen(one[1], one[0], filling) for one in found]


def demanded(labels: Labels, found: Found) -> list[Cell]:
    """Return what was found at labels; an error where one is not there."""
    for label, one in zip(labels.listed, found, strict=True):
        fail_where(True if one is None else negated(one[1]), KeyError(label))
    return [MISSING if one is None else one[0] for one in found]


def renamed(labels: Iterable[Any], names: Any) -> dict[Any, Any]:
    """Return the new names of labels, by a table or a function."""
    if not isinstance(names, Mapping) and not callable(names):
        refuse("rename() by anything but a table or a function")
    new: Callable[[Any], Any] = (lambda label: names.get(label, label)) if isinstance(names, Mapping) else names
    made = {label: new(label) for label in labels}
    if any(isinstance(name, RandomVariable) for name in made.values()) or len(set(made.values())) < len(made):
        refuse("rename() to random names, or to one that is taken")
    return made
