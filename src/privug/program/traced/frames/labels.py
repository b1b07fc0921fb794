"""Rows and columns of traced tables by lists of labels: some of them, further ones, and other names."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privug.model.variable import RandomVariable, refuse
from privug.prior.frame import is_missing
from privug.program.traced.frames.cells import Cell, chosen
from privug.program.traced.frames.handing import of_one_type
from privug.program.traced.frames.released import singled_out
from privug.program.traced.frames.rows import Axis, Rows
from privug.program.traced.masks import Mask, fail_where, negated


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
    return [Cell(0.0, False) if one is None else one[0] for one in found]


def renamed(labels: Iterable[Any], names: Any) -> dict[Any, Any]:
    """Return the new names of labels, by a table or a function."""
    if not isinstance(names, Mapping) and not callable(names):
        refuse("rename() by anything but a table or a function")
    new: Callable[[Any], Any] = (lambda label: names.get(label, label)) if isinstance(names, Mapping) else names
    made = {label: new(label) for label in labels}
    if any(isinstance(name, RandomVariable) for name in made.values()) or len(set(made.values())) < len(made):
        refuse("rename() to random names, or to one that is taken")
    return made
