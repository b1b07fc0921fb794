"""The rows of a traced frame: which are there, their labels and order, and what they are as outputs."""

import contextlib
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from privug.model.graph import substitute
from privug.model.maybe import maybe
from privug.model.node import ConstantValue
from privug.model.operations import Elementwise
from privug.model.plated_tables import Outline
from privug.model.plates import Lane, Plate, dependent_on_lanes, fold, going_through
from privug.model.propositions import implies
from privug.model.sparse import ABSENT, SparseDict
from privug.model.variable import RandomVariable, as_element, as_node, as_python, refuse, stack_values
from privug.program.logic import where
from privug.program.traced.frames.cells import MISSING, Cell, applied, cell_of, chosen, computed, surely_known
from privug.program.traced.iteration import PlatedList
from privug.program.traced.masks import Mask, MaskedList, both, fail_where, places_of, truth, under
from privug.program.traced.slots import LOST

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
    def has_plates(self) -> bool:
        """Whether some segments stand for many rows."""
        return any(plate is not None for plate in self.axis.plates)

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
    operation = number.node.operation
    is_sum = isinstance(operation, Elementwise) and operation.traits.weights == (1, 1)
    surely = constants[0].array.item() if len(constants) == 1 and is_sum else 0
    return True if surely > less else number > less


def renumbered(rows: Rows) -> Rows:
    """Return rows whose labels are counted anew, so that they are not known where some are gone."""
    axis = rows.axis
    if rows.are_all:
        named = axis.labels is not None or axis.anonymous
        return Rows(Axis(axis.plates, sorted=axis.sorted), rows.there) if named else rows
    return Rows(Axis(axis.plates, anonymous=True, renumbered=True, sorted=axis.sorted), rows.there)


def first_of(rows: Rows, number: Any) -> Rows:
    """Return the first of those rows that are there."""
    if type(number) is not int or number < 0 or not rows.axis.sorted or rows.has_plates:
        refuse("the first of such rows")
    return Rows(rows.axis, tuple(counted_off(rows.there, rows.axis.leading, 0, number)))


def counted_off(there: Sequence[Mask], leading: Sequence[Mask] | None, first: int, end: int) -> list[Mask]:
    """Return when single rows are there and stand at places from one to another among those that are."""
    if leading is not None and all(map(operator.is_, there, leading)):
        return [mask if first <= place < end else False for place, mask in enumerate(there)]
    before: Any = 0
    masks: list[Mask] = []
    for mask in there:
        late = True if first == 0 else truth(before >= first)
        masks.append(both(mask, both(late, truth(before < end))))
        before = before + (int(mask) if isinstance(mask, bool) else np.multiply(mask, 1))
    return masks


def total_of(masks: Sequence[Mask]) -> Any:
    """Return how many conditions hold."""
    total: Any = 0
    for mask in masks:
        total = total + (int(mask) if isinstance(mask, bool) else where(mask, 1, 0))
    return total


def spelled_out(rows: Rows) -> None:
    """Refuse rows that are too many to be taken one by one."""
    if rows.axis.size > MOST_SPELLED_OUT:
        refuse(f"more than {MOST_SPELLED_OUT} rows, one by one,")


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


def as_list(items: Sequence[Any], rows: Rows) -> Any:
    """Return one item for each row as a list; many rows stay together."""
    if rows.has_plates:
        return PlatedList(list(zip(items, rows.there, rows.axis.plates, strict=True)))
    return MaskedList.of_pairs(zip(items, rows.there, strict=True))


def called(
    function: Callable[[Any], Any], cells: Sequence[Cell], rows: Rows, given: Callable[[Cell], Any]
) -> list[Cell]:
    """Call a function of the program's on what is given of each cell, once for rows that are alike."""
    found = []
    for cell, there, plate in zip(cells, rows.there, rows.axis.plates, strict=True):
        if there is False:
            found.append(MISSING)
            continue
        with contextlib.nullcontext() if plate is None else going_through(plate), under(there):
            found.append(computed(function(given(cell))))
    return found


def only_cell(cells: Sequence[Cell], rows: Rows) -> Cell:
    """Return the only cell of a column; an error where there is not one."""
    fail_where(truth(rows.count != 1), ValueError("not one value"))
    single, there = singled_out(cells, rows)
    found = MISSING
    for cell, mask in zip(single, there, strict=True):
        found = chosen(mask, cell, found)
    return Cell(found.value, True if all(cell.known is True for cell in single) else found.known)


def row_of_random_table(cells: Sequence[Cell], rows: Rows, position: Any) -> tuple[Cell, Mask]:
    """Return a cell by its position in a table of random size, and whether that row is there."""
    outline = rows.axis.outline
    if outline is None or type(position) is not int or position < 0:
        refuse("such a row of a table of random size")
    place, inside = outline.find(position)
    plate = rows.axis.plates[place]
    if plate is None:
        return (cells[place], rows.there[place]) if inside == 0 else (MISSING, False)
    value, known, mask = (_in_row(part, plate, inside) for part in (*cells[place], rows.there[place]))
    return Cell(value, known), both(plate.size > inside, mask)


def _in_row(part: Any, plate: Plate, position: int) -> Any:
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


def banded(
    cells: Sequence[Cell], bands: Sequence[tuple[Any, Any, Any]], right: bool, lowest: bool = False
) -> tuple[list[Cell], list[dict[Any, Mask]]]:
    """Return in which of some bands cells lie, each a name and two bounds, and when each is in each.

    The bound on the right belongs to a band, or else the one on the left; both belong to the lowest, if so asked.
    """
    found, hits = [], []
    for cell in cells:
        own: dict[Any, Mask] = {}
        for place, (name, low, high) in enumerate(bands):
            after = np.greater_equal if not right or (lowest and place == 0) else np.greater
            before = np.less_equal if right else np.less
            sides = [(after, bound) for after, bound in ((after, low), (before, high)) if not np.isinf(bound)]
            own[name] = cell.known
            for function, bound in sides:
                own[name] = both(own[name], truth(applied(function, cell, cell_of(bound)).value))
        total = MISSING
        for name, mask in own.items():
            total = chosen(mask, Cell(name), total)
        found.append(total)
        hits.append(own)
    return found, hits
