"""The rows of a traced frame: what stands for each or for many of them, their labels, and which are there."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from privug.model.node import ConstantValue, Node
from privug.model.operations import Elementwise
from privug.model.plates import Plate, fold
from privug.model.propositions import implies
from privug.model.ragged import Outline
from privug.model.variable import RandomVariable, as_element, as_node, as_python, refuse, stack_values
from privug.program.traced.accumulators import LOST
from privug.program.traced.masks import Mask, both

MOST_SPELLED_OUT = 256
"""How many rows may be taken one by one."""


@dataclass(frozen=True, eq=False)
class Axis:
    """Positions along a column: for each a single row, or a plate of rows that are alike."""

    plates: tuple[Plate | None, ...]
    labels: tuple[Any, ...] | None = None
    """The labels of single rows; None if rows are called by their positions."""
    names: tuple[Any, ...] = (None,)
    sorted: bool = True
    """Whether rows stand in this order; else their order is random, and only their labels tell them apart."""
    anonymous: bool = False
    """Whether rows stand in this order under other labels, which are not known."""
    ascending: bool = False
    """Whether labels are known to be in ascending order: of names of bands, in that of the bands."""
    bands: tuple[tuple[Any, ...] | None, ...] = ()
    """Of groups, for each of their keys: the names of the bands that it is one of, in their order."""
    ranks: Callable[[], Sequence[Any]] | None = None
    """Of rows in a random order: by which numbers they stand in turn, if that is known."""
    leading: tuple[Mask, ...] | None = None
    """Of rows that were put in order: when they are there, those that are before all others."""
    renumbered: bool = False
    """Whether rows that are there were given the numbers from zero on as labels."""
    outline: Outline | None = None
    """Of a table of random size, called by positions: where its segments begin."""

    @cached_property
    def starts(self) -> list[int]:
        """The position of the first row of each segment, and the number of rows."""
        if any(plate is not None and plate.is_ragged for plate in self.plates):
            refuse("the places of rows in a table of random size")
        sizes = [1 if plate is None else plate.size for plate in self.plates]
        return [0, *np.cumsum(sizes, dtype=int).tolist()]

    @property
    def size(self) -> int:
        """How many rows there may be."""
        return self.starts[-1]

    def whole(self, cells: Sequence[Any]) -> RandomVariable:
        """Return the cells of a column as one array over rows."""
        if any(isinstance(cell, RandomVariable) and cell.node.dtype.kind == "O" for cell in cells):
            refuse("an array of numbers and texts")
        if all(plate is None for plate in self.plates):
            return RandomVariable(stack_values(list(cells)))
        parts: list[Any] = [
            RandomVariable(stack_values([cell])) if plate is None else _mapped(plate, cell)
            for cell, plate in zip(cells, self.plates, strict=True)
        ]
        joined: Any = parts[0] if len(parts) == 1 else np.concatenate(parts)
        assert isinstance(joined, RandomVariable)
        return joined

    def parts(self, array: Any) -> list[Any]:
        """Return an array over rows as the cells of a column."""
        cells: list[Any] = []
        for place, plate in enumerate(self.plates):
            start = self.starts[place]
            if plate is None:
                cells.append(array[start])
            else:
                cells.append(Plate(("cell",), (array[start : start + plate.size],), plate.size).row[0])
        return cells

    def positions(self) -> list[Any]:
        """Return the positions of rows, as the cells of a column."""
        return self.parts(np.arange(self.size))

    def sliced(self, places: slice) -> "Axis":
        """Return single rows at some of the positions, which keep their labels."""
        labels = (self.labels or tuple(range(self.size)))[places]
        own = None if self.labels is None and labels == tuple(range(len(labels))) else labels
        return Axis((None,) * len(labels), own, self.names, anonymous=self.anonymous)

    def in_turn(self) -> Sequence[Any]:
        """Return by which numbers rows in a random order stand in turn."""
        return refuse("rows in a random order, one after the other,") if self.ranks is None else self.ranks()

    def called(self) -> list[Any]:
        """Return what rows are called, as the cells of a column."""
        if self.anonymous:
            return [LOST] * len(self.plates)
        if self.labels is not None:
            return list(self.labels)
        return [as_python(place) if isinstance(place, RandomVariable) else int(place) for place in self.positions()]


def _mapped(plate: Plate, cell: Any) -> Any:
    if isinstance(cell, RandomVariable):
        return fold(plate, "map", cell)
    return RandomVariable(as_node(np.array([cell] * plate.size)))


@dataclass(frozen=True, eq=False)
class Rows:
    """Those rows of an axis that are there, each under a condition."""

    axis: Axis
    there: tuple[Mask, ...]
    inhabited: bool = False
    """Whether it is known that some row is there, whichever."""

    @staticmethod
    def all_of(axis: Axis) -> "Rows":
        """Return all rows of an axis."""
        return Rows(axis, (True,) * len(axis.plates))

    @property
    def segments(self) -> list[tuple[Mask, Plate | None]]:
        """For each segment, when its rows are there, and the plate that they form."""
        return list(zip(self.there, self.axis.plates, strict=True))

    @property
    def are_all(self) -> bool:
        """Whether all rows are there for sure."""
        return all(there is True for there in self.there)

    def among(self, masks: Sequence[Mask]) -> "Rows":
        """Return those rows for which a further condition holds."""
        return Rows(self.axis, tuple(both(there, mask) for there, mask in zip(self.there, masks, strict=True)))

    def same_as(self, other: "Rows") -> bool:
        """Say whether two are the same rows for sure."""
        if self is other or (self.are_all and other.are_all and self.is_labelled_as(other)):
            return True
        alike = self.axis is other.axis or (self.axis.sorted and other.axis.sorted and self.is_labelled_as(other))
        return alike and all(map(same_mask, self.there, other.there))

    @property
    def never_empty(self) -> bool:
        """Whether some row is there for sure."""
        return self.inhabited or any(there is True for there in self.there)

    def is_labelled_as(self, other: "Rows") -> bool:
        """Say whether two axes have single rows of the same labels."""
        one, two = self.axis, other.axis
        fixed = one.labels is not None and not one.anonymous and not two.anonymous
        return one is two or (fixed and one.plates == two.plates and one.labels == two.labels)

    def called_otherwise(self, names: Mapping[Any, Any]) -> "Rows":
        """Return the same rows under other labels."""
        axis = self.axis
        if axis.labels is None or axis.anonymous or not axis.sorted or any(band is not None for band in axis.bands):
            refuse("rename() of such labels")
        labels = tuple(names[label] for label in axis.labels)
        return Rows(Axis(axis.plates, labels, axis.names), self.there, self.inhabited)

    def with_label(self, label: Any) -> "Rows":
        """Return the same rows and one more below them."""
        labels = (*(self.axis.labels or ()), label)
        return Rows(Axis((*self.axis.plates, None), labels, self.axis.names), (*self.there, True))

    @cached_property
    def count(self) -> Any:
        """How many rows are there: a number of NumPy, if it is random."""
        return counted(self.there, self.axis.plates)

    @property
    def mask(self) -> RandomVariable:
        """Which rows are there, as one array over rows."""
        return self.axis.whole([RandomVariable(as_node(there)) for there in self.there])


def same_mask(one: Mask, two: Mask) -> bool:
    """Say whether two conditions are the same for sure."""
    if one is two or not (isinstance(one, RandomVariable) and isinstance(two, RandomVariable)):
        return one is two
    return implies(one.node, two.node) and implies(two.node, one.node)


def counted(masks: Sequence[Mask], plates: Sequence[Plate | None]) -> Any:
    """Return for how many rows a condition holds."""
    known, total = 0, None
    for mask, plate in zip(masks, plates, strict=True):
        if isinstance(mask, bool) and not (plate and plate.is_ragged):
            known += int(mask) * (1 if plate is None else plate.size)
            continue
        more: Any = np.multiply(mask, 1) if plate is None else fold(plate, "sum", mask if mask is not True else 1)
        total = more if total is None else total + more
    if total is None:
        return known
    return as_element(np.add(total, known).node)


def exceeds(number: Any, less: int) -> Mask:
    """Return whether a count is above a number: for sure, if so many rows are there for sure."""
    if not isinstance(number, RandomVariable):
        return bool(number > less)
    constants = [parent.operation for parent in number.node.parents if isinstance(parent.operation, ConstantValue)]
    surely = constants[0].array.item() if len(constants) == 1 and _is_sum(number.node) else 0
    return True if surely > less else number > less


def _is_sum(node: Node) -> bool:
    return isinstance(node.operation, Elementwise) and node.operation.traits.weights == (1, 1)


def renumbered(rows: Rows) -> Rows:
    """Return rows whose labels are counted anew, so that they are not known where some are gone."""
    axis = rows.axis
    if rows.are_all:
        return (
            rows
            if axis.labels is None and not axis.anonymous
            else Rows(Axis(axis.plates, sorted=axis.sorted), rows.there)
        )
    return Rows(Axis(axis.plates, anonymous=True, renumbered=True, sorted=axis.sorted), rows.there)


def first_of(rows: Rows, number: Any) -> Rows:
    """Return the first of those rows that are there."""
    axis = rows.axis
    if type(number) is not int or number < 0 or not axis.sorted or any(plate is not None for plate in axis.plates):
        refuse("the first of such rows")
    if axis.leading is not None and all(a is b for a, b in zip(rows.there, axis.leading, strict=True)):
        return Rows(axis, tuple(mask if place < number else False for place, mask in enumerate(rows.there)))
    before: Any = 0
    found: list[Mask] = []
    for mask in rows.there:
        early = before < number
        found.append(both(mask, early if isinstance(early, RandomVariable) else bool(early)))
        before = before + (int(mask) if isinstance(mask, bool) else np.multiply(mask, 1))
    return Rows(axis, tuple(found))


def spelled_out(rows: Rows) -> None:
    """Refuse rows that are too many to be taken one by one."""
    if rows.axis.size > MOST_SPELLED_OUT:
        refuse(f"more than {MOST_SPELLED_OUT} rows, one by one,")
