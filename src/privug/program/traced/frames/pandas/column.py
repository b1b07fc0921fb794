"""A traced column of pandas as such: its cells as pandas hands them out, its labels, and what it comes to."""

import datetime
import importlib
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privug.model.categories import constant_category, map_levels
from privug.model.maybe import maybe
from privug.model.variable import RandomVariable, as_element, as_node, as_python, refuse
from privug.prior.frame import is_missing
from privug.program.logic import where
from privug.program.traced.dictionaries import MaskedDict
from privug.program.traced.frames import cells as of_cells
from privug.program.traced.frames import reductions
from privug.program.traced.frames.cells import (
    Cell,
    cell_of,
    chosen,
    computed,
    is_category,
    is_mixed,
    is_number,
    is_truth,
    kind,
    refuse_mixed,
    with_gaps,
)
from privug.program.traced.frames.rows import Axis, Rows, Turns, only_cell, released, row_of_random_table, singled_out
from privug.program.traced.iteration import PlatedList
from privug.program.traced.masks import (
    Mask,
    MaskedList,
    OfStanding,
    Standing,
    both,
    current,
    either,
    fail_where,
    negated,
    truth,
)


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


_OF_ITS_TYPE = {"sum", "min", "max", "first", "last"}
"""What is a number of the column's own type."""


class Summaries(Standing):
    """The summaries of a column."""

    cells: list[Cell]
    rows: Rows

    def summary(self, how: str, *arguments: Any, **options: Any) -> Cell:
        """Return what the column comes to, by a name of pandas."""
        if how not in ("count", "size"):
            refuse_mixed(*(cell.value for cell in self.cells))
        reduction = reductions.REDUCTIONS.get(how)
        if reduction is None:
            self.unknown(f"{how}()")
        if options.pop("skipna", True) is not True or options.pop("numeric_only", False):
            self.unknown(f"{how}() with options")
        try:
            found = reduction(self.cells, self.rows, *arguments, **options)
        except TypeError:
            self.unknown(f"{how}() with options")
        return with_gaps(found) if how in _OF_ITS_TYPE and are_floats(self.cells) else found

    def idxmax(self) -> Any:
        return self._place(1)

    def idxmin(self) -> Any:
        return self._place(-1)

    def argmax(self) -> Any:
        return self._position(1)

    def argmin(self) -> Any:
        return self._position(-1)

    def _position(self, sign: int) -> Any:
        if not self.rows.are_all or not self.rows.axis.sorted or any(cell.known is not True for cell in self.cells):
            refuse("argmax() or argmin() of a random number of rows")
        return reductions.place_of_extreme(self.cells, self.rows, sign)[0]

    def _place(self, sign: int) -> Any:
        axis = self.rows.axis
        if not axis.sorted or axis.anonymous:
            refuse("idxmax() or idxmin() among equals whose order is random")
        place, known = reductions.place_of_extreme(self.cells, self.rows, sign)
        fail_where(negated(known), ValueError("attempt to get argmax of an empty sequence"))
        if axis.labels is None:
            return native(Cell(place))
        from_labels: Any = axis.whole(list(axis.labels))[place]
        return from_labels

    @property
    def size(self) -> Any:
        """How many cells there are, missing ones too."""
        return native(Cell(self.rows.count))

    @property
    def shape(self) -> tuple[Any, ...]:
        """How many cells there are."""
        return (self.size,)

    @property
    def empty(self) -> Any:
        """Whether no cell is there."""
        return negated(reductions.positive(self.rows.count))

    def length(self) -> Any:
        return self.rows.count

    def to_numpy(self) -> Any:
        """Return the column as an array, or as some elements of one."""
        if not self.rows.axis.sorted:
            refuse("an array of rows in a random order")
        if all(cell.known is True for cell in self.cells):
            if self.rows.are_all:
                return self.rows.axis.whole([cell.value for cell in self.cells])
            return reductions.selection(self.cells, self.rows)
        whole = [number(cell) for cell in self.cells]
        return reductions.selection([Cell(value) for value in whole], self.rows)

    @property
    def values(self) -> Any:
        """The column as an array."""
        return self.to_numpy()

    @property
    def array(self) -> Any:
        """The column as an array."""
        return self.to_numpy()


def _summary(name: str) -> Any:
    def method(self: Summaries, *arguments: Any, **options: Any) -> Any:
        given = native if name == "nunique" else element
        return given(self.summary(name, *arguments, **options))

    method.__name__ = name
    return method


for _name in reductions.REDUCTIONS:
    if _name not in ("size", "average", "first", "last"):
        setattr(Summaries, _name, _summary(_name))


class Column(Summaries):
    """Cells in rows, some of which may not be there."""

    kind = "Series"

    @abstractmethod
    def made(self, cells: Sequence[Cell], rows: Rows, name: Any = None) -> Any:
        """Return another column."""

    def __init__(self, cells: Sequence[Cell], rows: Rows, name: Any = None) -> None:
        self.cells = list(cells)
        self.rows = rows
        self.name = name
        self.hits: list[dict[Any, Mask]] | None = None
        """Of a column made by pd.cut, when cells have each of their values."""
        self.categorical = False
        """Whether the values that do not occur count as well."""

    def place_of(self, value: Any) -> Any:
        """Return what a value is sorted by as a key: bands of pd.cut stand in their order."""
        return value if self.hits is None else list(self.hits[0]).index(value)

    @property
    def is_numeric(self) -> bool:
        """Whether it holds numbers or truth values, of which none is missing: else those are objects."""
        if not self.is_known and any(is_truth(cell.value) for cell in self.cells):
            return False
        return not any(isinstance(cell.value, str) or of_cells.kind(cell.value) == "O" for cell in self.cells)

    @property
    def is_known(self) -> bool:
        """Whether nothing is missing."""
        return all(cell.known is True for cell in self.cells)

    def listing(self) -> Any:
        """Return the values as a list; many rows stay together."""
        self.in_order("iteration")
        values = [native(cell) for cell in of_one_type(self.cells)]
        plates = self.rows.axis.plates
        if any(plate is not None for plate in plates):
            return PlatedList(list(zip(values, self.rows.there, plates, strict=True)))
        return MaskedList.of_pairs(zip(values, self.rows.there, strict=True))

    def in_order(self, what: str) -> None:
        """Refuse what depends on the order of rows, where that is random."""
        if not self.rows.axis.sorted:
            refuse(f"{what} of a Series whose order is random")

    def tolist(self) -> Any:
        return self.listing()

    to_list = tolist

    def plain(self) -> Any:
        return released(self.cells, self.rows)

    def to_dict(self) -> Any:
        """Return the values by their labels."""
        cells, there = singled_out(of_one_type(self.cells), self.rows)
        axis = self.rows.axis
        if axis.anonymous:
            refuse("the labels of rows in a random order")
        labels = axis.labels or tuple(range(axis.size))
        if all(mask is True for mask in there) and axis.sorted:
            return {label: native(cell) for label, cell in zip(labels, cells, strict=True)}
        made = MaskedDict()
        for label, cell, mask in zip(labels, cells, there, strict=True):
            made.put(label, native(cell), mask)
        if not axis.sorted:
            made.ranks = Turns(labels, axis)
        return made

    def with_cells(self, cells: Sequence[Cell], name: Any = None) -> Any:
        """Return a column of other cells in the same rows."""
        return self.made(cells, self.rows, self.name if name is None else name)

    def beside(self, other: Any, exactly: bool = False) -> list[Cell]:
        """Return the cells that stand beside these: of another column of the same rows, or the same value for all.

        The other column may have more rows, unless it is to have exactly these.
        """
        if isinstance(other, Column):
            self.beside_rows(other)
            if exactly and not self.rows.same_as(other.rows):
                refuse("two columns of different rows together")
            return other.cells
        if isinstance(other, np.ndarray | list | tuple) or (isinstance(other, RandomVariable) and other.shape):
            return self.in_these_rows(other)
        return [cell_of(other)] * len(self.cells)

    def beside_rows(self, other: "Column") -> None:
        """Refuse a column of other rows."""
        if not self.rows.same_as(other.rows) and not (other.rows.are_all and other.rows.axis is self.rows.axis):
            refuse("two columns of different rows together")

    def in_these_rows(self, values: Any) -> list[Cell]:
        """Return the values of a list or an array, one for each row, as cells."""
        if not self.rows.are_all:
            refuse("a list beside a random number of rows")
        if len(values) != self.rows.axis.size:
            raise ValueError(f"{len(values)} values for {self.rows.axis.size} rows")
        array = values if isinstance(values, np.ndarray | RandomVariable) else list(values)
        if isinstance(array, list):
            plates = self.rows.axis.plates
            if all(plate is None for plate in plates):
                return [computed(value) for value in array]
            array = np.array(array) if not any(isinstance(v, RandomVariable) for v in array) else refuse("such a list")
        return [computed(part) for part in self.rows.axis.parts(array)]

    def combined(self, function: Callable[[Cell, Cell], Cell], other: Any, alike: bool = False) -> Any:
        """Return a column computed of this one and another, which may have other labels, or a single value."""
        one, two = (self, other) if alike else self.aligned(other)
        name = self.name if not isinstance(two, Column) or two.name == self.name else None
        return self.made(
            [function(a, b) for a, b in zip(one.cells, one.beside(two, exactly=True), strict=True)], one.rows, name
        )

    def aligned(self, other: Any) -> tuple[Any, Any]:
        """Return two columns of labels with those of both; what only one has is missing in the other."""
        other = self.standing_for(other)
        if not isinstance(other, Column) or self.rows.same_as(other.rows):
            return self, other
        one, two = self.rows, other.rows
        if one.axis is two.axis or one.axis.labels is None or two.axis.labels is None:
            return self, other
        if one.axis.anonymous or two.axis.anonymous:
            refuse("columns in a random order together")
        union = sorted({*one.axis.labels, *two.axis.labels})
        sides = [dict(zip(rows.axis.labels or (), rows.there, strict=True)) for rows in (one, two)]
        there = tuple(either(sides[0].get(label, False), sides[1].get(label, False)) for label in union)
        in_order = one.axis.sorted and two.axis.sorted  # pandas keeps the order of labels that are the same in both
        rows = Rows(Axis((None,) * len(union), tuple(union), one.axis.names, sorted=in_order), there)
        return self._at_labels(rows), other._at_labels(rows)

    def standing_for(self, other: Any) -> Any:
        """Return a plain Series of pandas as a column of constants; anything else as it is."""
        if isinstance(other, Standing) or not hasattr(other, "to_dict") or not hasattr(other, "index"):
            return other
        labels = tuple(other.index.tolist())
        axis = Axis((None,) * len(labels), labels, tuple(other.index.names))
        return self.made([cell_of(value) for value in other.tolist()], Rows.all_of(axis), other.name)

    def _at_labels(self, rows: Rows) -> Any:
        own = {
            label: Cell(cell.value, both(there, cell.known))
            for label, cell, there in zip(self.rows.axis.labels or (), self.cells, self.rows.there, strict=True)
        }
        return self.made([own.get(label, Cell(0.0, False)) for label in rows.axis.labels or ()], rows, self.name)

    def each(self, function: Callable[[Cell], Cell]) -> Any:
        """Return a column computed of this one."""
        return self.with_cells([function(cell) for cell in self.cells])

    def masks(self) -> list[Mask]:
        """Return a column of truth values as conditions."""
        if not all(is_truth(cell.value) and cell.known is True for cell in self.cells):
            refuse("a mask of anything but truth values")
        return [truth(cell.value) for cell in self.cells]

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, Column):
            return self.filtered(key)
        if isinstance(key, slice):
            return self.iloc[key]
        axis = self.rows.axis
        if axis.renumbered and type(key) is int and key >= 0:
            fail_where(negated(truth(self.rows.count > key)), KeyError(key))
            return self.iloc[key]
        return self.loc[key]

    def filtered(self, key: "Column") -> Any:
        """Return those cells for which another column is true."""
        self.beside(key)
        return self.made(self.cells, self.rows.among(key.masks()), self.name)

    def on(self, rows: Rows) -> Any:
        """Return the cells of other rows of the same axis."""
        return self.made(self.cells, rows, self.name)

    @property
    def loc(self) -> Any:
        """Cells by their labels."""
        return Places(self, by_label=True)

    @property
    def iloc(self) -> Any:
        """Cells by their positions."""
        return Places(self, by_label=False)

    at, iat = loc, iloc

    def at_label(self, label: Any) -> Any:
        """Return the value at a label; an error where it is not there."""
        cell, there = self.look_up(label)
        fail_where(negated(there), KeyError(label))
        return element(cell)

    def at_place(self, position: Any) -> Any:
        """Return the value at a position in a table of random size, of which no rows were left out."""
        rows = self.rows
        if rows.axis.outline is None or any(
            a is not b for a, b in zip(rows.there, rows.axis.outline.there, strict=True)
        ):
            refuse("a position among some rows of a table of random size")
        cell, there = row_of_random_table(of_one_type(self.cells), rows, position)
        fail_where(negated(there), IndexError("single positional indexer is out-of-bounds"))
        return element(cell)

    def at_random(self, position: RandomVariable) -> Any:
        """Return the value at a random position, among rows called by their positions."""
        axis = self.rows.axis
        if axis.labels is not None or not self.is_known or position.shape or position.node.levels is not None:
            refuse("a row at a random place")
        if not self.rows.are_all:
            fail_where(negated(self.rows.mask[position]), KeyError("a random label"))
        return axis.whole([cell.value for cell in self.cells])[position]

    def look_up(self, label: Any) -> tuple[Cell, Mask]:
        """Return the cell at a label, and whether it is there."""
        axis = self.rows.axis
        if axis.outline is not None:
            return row_of_random_table(of_one_type(self.cells), self.rows, label)
        if axis.anonymous:
            refuse("the labels of rows in a random order")
        cells, there = singled_out(of_one_type(self.cells), self.rows)
        labels = list(range(axis.size)) if axis.labels is None else list(axis.labels)
        place = labels.index(label) if label in labels else None
        return (Cell(0.0, False), False) if place is None else (cells[place], there[place])

    def get(self, label: Any, default: Any = None) -> Any:
        cell, there = self.look_up(label)
        if isinstance(there, bool):
            return element(cell) if there else default
        if default is None and not of_cells.surely_known(cell, there):
            refuse("get() of what may be missing")
        return or_none(chosen(there, cell, cell_of(default)), default is None)

    def item(self) -> Any:
        """Return the only value."""
        return native(only_cell(of_one_type(self.cells), self.rows))

    def copy(self, deep: bool = True) -> Any:
        return self.made(self.cells, self.rows, self.name)

    def rename(self, name: Any = None, *, index: Any = None) -> Any:
        """Give another name, or, by a table or a function, other labels."""
        names = name if index is None else index
        if not isinstance(names, Mapping) and not callable(names):
            return self._renamed(name)
        rows = self.rows
        return self.made(self.cells, rows.called_otherwise(renamed(rows.axis.labels or (), names)), self.name)

    def reindex(self, index: Any, *, fill_value: Any = None) -> Any:
        """Return the cells at some labels, and another value where there are none."""
        labels = Labels.of(index)
        cells = filled(found_at(labels, self.cells, self.rows), cell_of(fill_value))
        return self.made(cells, labels.rows(self.rows.axis.names), self.name)

    def at_labels(self, listed: Any) -> Any:
        """Return the cells at some labels; an error where one of them is not there."""
        labels = Labels.of(listed)
        cells = demanded(labels, found_at(labels, self.cells, self.rows))
        return self.made(cells, labels.rows(self.rows.axis.names), self.name)

    def __setitem__(self, label: Any, value: Any) -> None:
        """Put a value under a label of its own below the others."""
        axis = self.rows.axis
        new, labels = cell_of(value), axis.labels
        if labels is None or not axis.sorted or axis.anonymous or label in labels or current() is not True:
            refuse("an assignment to anything but a new label")
        pairs = zip(self.cells, self.rows.there, strict=True)
        known = new.known is True and all(of_cells.surely_known(cell, there) for cell, there in pairs)
        if not known or {of_cells.kind(cell.value) for cell in self.cells} != {of_cells.kind(new.value)}:
            refuse("an assignment of a value of another type")
        Labels.of([label])
        self.cells = [*self.cells, new]
        self.rows = self.rows.with_label(label)

    def _renamed(self, name: Any) -> Any:
        return self.made(self.cells, self.rows, name)

    def pipe(self, function: Any, *arguments: Any, **named: Any) -> Any:
        return function(self, *arguments, **named)


class Places(OfStanding):
    """The cells of a column by their labels or positions: `series.loc` and `series.iloc`."""

    def __init__(self, column: Column, by_label: bool) -> None:
        self._column = column
        self._by_label = by_label

    def __getitem__(self, key: Any) -> Any:
        column, axis = self._column, self._column.rows.axis
        if isinstance(key, Column):
            return column.filtered(key)
        if isinstance(key, RandomVariable):
            return column.at_random(key)
        if self._by_label and not isinstance(key, slice):
            return column.at_labels(key) if isinstance(key, list) else column.at_label(key)
        column.in_order("a position")
        if isinstance(key, list):
            refuse("several rows by a list")
        if isinstance(key, slice) and self._by_label:
            refuse("a slice by labels")
        if axis.outline is not None:
            return column.at_place(key)
        cells, there = singled_out(of_one_type(column.cells), column.rows)
        if all(mask is True for mask in there):
            if isinstance(key, slice):
                return column.made(cells[key], Rows.all_of(axis.sliced(key)), column.name)
            return element(cells[key])
        if not all(cell.known is True for cell in cells):
            refuse("a position among rows of a random number")
        found = MaskedList.of_pairs(zip([native(cell) for cell in cells], there, strict=True))[key]
        return found if isinstance(key, slice) else element(cell_of(found))
