"""A traced column as such: its cells and rows, and where they are found."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from privug.model.variable import RandomVariable, refuse
from privug.program.traced.dictionaries import MaskedDict
from privug.program.traced.frames import cells as of_cells
from privug.program.traced.frames import handing
from privug.program.traced.frames.cells import Cell, cell_of, chosen, computed, is_truth
from privug.program.traced.frames.handing import element, native, of_one_type
from privug.program.traced.frames.labels import Labels, demanded, filled, found_at, renamed
from privug.program.traced.frames.released import Turns, released, row_of_random_table, singled_out
from privug.program.traced.frames.rows import Axis, Rows
from privug.program.traced.frames.summaries import Summaries
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
        return handing.or_none(chosen(there, cell, cell_of(default)), default is None)

    def item(self) -> Any:
        """Return the only value."""
        number_there = self.rows.count
        wrong = number_there != 1
        fail_where(wrong if isinstance(wrong, RandomVariable) else bool(wrong), ValueError("not one value"))
        found = Cell(0.0, False)
        cells, there = singled_out(of_one_type(self.cells), self.rows)
        for cell, mask in zip(cells, there, strict=True):
            found = chosen(mask, cell, found)
        return native(Cell(found.value, True if all(cell.known is True for cell in cells) else found.known))

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
