"""What stands for a Series of pandas while a program is traced, its labels and its accessors."""

import importlib
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from typing import Any

import numpy as np

from privug.model.variable import RandomVariable, refuse
from privug.prior.frame import is_missing
from privug.program.traced.dictionaries import MaskedDict
from privug.program.traced.frames import cells as of_cells
from privug.program.traced.frames import reductions
from privug.program.traced.frames.cells import (
    MISSING,
    Cell,
    cell_of,
    chosen,
    computed,
    is_truth,
    kind,
    mapped,
    refuse_mixed,
    with_gaps,
)
from privug.program.traced.frames.columns import (
    COMPARISONS,
    Column,
    Method,
    arithmetic,
    compared,
    comparison,
    conjunction,
    disjunction,
    divided,
    division,
    exclusive,
    with_methods,
)
from privug.program.traced.frames.dialects import PANDAS
from privug.program.traced.frames.pandas.values import (
    Found,
    Labels,
    are_floats,
    beside_timestamps,
    demanded,
    element,
    filled,
    found_at,
    missing_ones,
    native,
    number,
    of_one_type,
    or_none,
    renamed,
)
from privug.program.traced.frames.reductions import positive
from privug.program.traced.frames.relations import Groups, Key, Relation, RowSequence, in_random_order, looked_up
from privug.program.traced.frames.rows import (
    Axis,
    InAnyOrder,
    Rows,
    Turns,
    as_list,
    called,
    first_of,
    only_cell,
    released,
    renumbered,
    row_of_random_table,
    singled_out,
    total_of,
)
from privug.program.traced.keys import alternatives
from privug.program.traced.masks import (
    Mask,
    MaskedList,
    OfStanding,
    Standing,
    any_of,
    both,
    current,
    either,
    fail_where,
    negated,
    truth,
)

MOST_COMPARED = 32
"""How many rows may be compared with each other, each with all."""
_OF_ITS_TYPE = {"sum", "min", "max", "first", "last"}
"""What is a number of the column's own type."""


def _each(function: Callable[..., Cell]) -> Any:
    """Return the method that computes a column cell by cell."""
    return lambda self, *arguments, **options: self.each(lambda cell: function(cell, *arguments, **options))


def _extreme_place(sign: int) -> Any:
    """Return the method that says at which position the largest or the smallest value is."""

    def method(self: "Series") -> Any:
        if not self.rows.are_all or not self.rows.axis.sorted or not self.is_known:
            refuse("argmax() or argmin() of a random number of rows")
        return reductions.place_of_extreme(self.column, sign)[0]

    return method


def _extreme_label(sign: int) -> Any:
    """Return the method that says at which label the largest or the smallest value is."""

    def method(self: "Series") -> Any:
        axis = self.rows.axis
        if not axis.sorted and not axis.anonymous and axis.labels is not None:
            return self.first_in_turn(np.greater if sign > 0 else np.less)
        if not axis.sorted or axis.anonymous:
            refuse("idxmax() or idxmin() among equals whose order is random")
        place, known = reductions.place_of_extreme(self.column, sign)
        fail_where(negated(known), ValueError("attempt to get argmax of an empty sequence"))
        if axis.labels is None:
            return native(Cell(place))
        from_labels: Any = axis.whole(list(axis.labels))[place]
        return from_labels

    return method


class Series(Standing):
    """Cells in rows, some of which may not be there: a column of a frame, or one by itself."""

    kind = "Series"
    frame: Any = None
    """What stands for frames, of which it may be a column."""

    def __init__(self, column: Column) -> None:
        self.column = column

    cells = property(lambda self: self.column.cells)
    rows = property(lambda self: self.column.rows)
    is_known = property(lambda self: self.column.is_known)

    @property
    def name(self) -> Any:
        """What it is called."""
        return self.column.name

    @name.setter
    def name(self, name: Any) -> None:
        self.column = self.column.named(name)

    def with_cells(self, cells: Sequence[Cell]) -> "Series":
        """Return a column of other cells in the same rows."""
        return Series(self.column.with_cells(cells))

    def each(self, function: Callable[[Cell], Cell]) -> "Series":
        """Return a column computed of this one."""
        return Series(self.column.each(function))

    def on(self, rows: Rows) -> "Series":
        """Return the cells of other rows of the same axis."""
        return Series(self.column.on(rows))

    @property
    def is_numeric(self) -> bool:
        """Whether it holds numbers or truth values, of which none is missing: else those are objects."""
        if not self.is_known and any(is_truth(cell.value) for cell in self.cells):
            return False
        return not any(isinstance(cell.value, str) or kind(cell.value) == "O" for cell in self.cells)

    def in_order(self, what: str) -> None:
        """Refuse what depends on the order of rows, where that is random."""
        if not self.rows.axis.sorted:
            refuse(f"{what} of a Series whose order is random")

    # What it comes to.
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
            found = reduction(self.column, *arguments, **options)
        except TypeError:
            self.unknown(f"{how}() with options")
        return with_gaps(found) if how in _OF_ITS_TYPE and are_floats(self.cells) else found

    def first_in_turn(self, better: np.ufunc) -> Any:
        """Return the label of the largest or smallest value of rows in a random order, of equal ones the first."""
        best, place, label = MISSING, MISSING, MISSING
        axis, masks = self.rows.axis, self.column.masks
        for own, cell, there, turn in zip(axis.labels or (), self.cells, masks, axis.in_turn(), strict=True):
            ahead = truth(compared(PANDAS, better, cell, best).value)
            equal = truth(compared(PANDAS, np.equal, cell, best).value)
            before = truth(compared(PANDAS, np.less, Cell(turn), place).value)
            first = both(there, either(negated(best.known), either(ahead, both(equal, before))))
            best, place = chosen(first, Cell(cell.value), best), chosen(first, Cell(turn), place)
            label = chosen(first, Cell(own), label)
        fail_where(negated(label.known), ValueError("attempt to get argmax of an empty sequence"))
        return element(Cell(label.value))

    idxmax, idxmin = _extreme_label(1), _extreme_label(-1)
    argmax, argmin = _extreme_place(1), _extreme_place(-1)
    size: Any = property(lambda self: native(Cell(self.rows.count)))
    """How many cells there are, missing ones too."""
    shape: Any = property(lambda self: (self.size,))
    """How many cells there are."""
    empty: Any = property(lambda self: negated(positive(self.rows.count)))
    """Whether no cell is there."""

    def length(self) -> Any:
        return self.rows.count

    def agg(self, spec: Any) -> Any:
        if isinstance(spec, str):
            return element(self.summary(spec))
        if callable(spec):
            return spec(self)
        return labelled(list(spec), [self.summary(how) for how in spec], self.name)

    aggregate = agg

    def describe(self) -> "Series":
        """Return the eight numbers of describe(), all of them floats."""
        cells = [self.summary(how) for how in ("count", "mean", "std", "min")]
        cells += [self.summary("quantile", q) for q in (0.25, 0.5, 0.75)]
        labels = ("count", "mean", "std", "min", "25%", "50%", "75%", "max")
        return labelled(labels, [with_gaps(cell) for cell in (*cells, self.summary("max"))], self.name)

    # As lists, arrays and outputs.
    def listing(self) -> Any:
        """Return the values as a list; many rows stay together."""
        self.in_order("iteration")
        return as_list([native(cell) for cell in of_one_type(self.cells)], self.rows)

    tolist = to_list = listing

    def plain(self) -> Any:
        return released(self.cells, self.rows)

    def to_numpy(self) -> Any:
        """Return the column as an array, or as some elements of one."""
        if not self.rows.axis.sorted:
            refuse("an array of rows in a random order")
        if not self.is_known:
            return reductions.selection(self.column.each(lambda cell: Cell(number(cell))))
        return self.column.whole if self.rows.are_all else reductions.selection(self.column)

    values = array = property(to_numpy)
    """The column as an array."""

    def _labelled_cells(self) -> list[tuple[Any, Cell, Mask]]:
        """Return each single cell with its label, and when it is there."""
        cells, there = singled_out(of_one_type(self.cells), self.rows)
        axis = self.rows.axis
        return list(zip(axis.labels or range(axis.size), cells, there, strict=True))

    def to_dict(self) -> Any:
        """Return the values by their labels."""
        axis = self.rows.axis
        if axis.anonymous:
            refuse("the labels of rows in a random order")
        found = self._labelled_cells()
        if all(mask is True for _, _, mask in found) and axis.sorted:
            return {label: native(cell) for label, cell, _ in found}
        made = MaskedDict()
        for label, cell, mask in found:
            made.put(label, native(cell), mask)
        if not axis.sorted:
            made.ranks = Turns([label for label, _, _ in found], axis)
        return made

    def items(self) -> Any:
        if not self.rows.axis.sorted:
            return self.to_dict().items()
        return MaskedList.of_pairs(((label, native(cell)), mask) for label, cell, mask in self._labelled_cells())

    def item(self) -> Any:
        """Return the only value."""
        return native(only_cell(of_one_type(self.cells), self.rows))

    def unique(self) -> Any:
        if not self.is_known:
            refuse("unique() of missing values")
        groups, made = Groups(PANDAS, [self.column], self.rows), InAnyOrder()
        for (level, _), there in zip(groups.members, groups.there, strict=True):
            made.add(element(cell_of(level)), there)
        return made

    # Beside other columns.
    def beside(self, other: Any, exactly: bool = False) -> list[Cell]:
        """Return the cells that stand beside these: of another column of the same rows, or the same value for all.

        The other column may have more rows, unless it is to have exactly these.
        """
        if isinstance(other, Series):
            self.beside_rows(other)
            if exactly and not self.rows.same_as(other.rows):
                refuse("two columns of different rows together")
            return list(other.column.cells)
        if isinstance(other, np.ndarray | list | tuple) or (isinstance(other, RandomVariable) and other.shape):
            return self.in_these_rows(other)
        return [cell_of(other)] * len(self.cells)

    def beside_rows(self, other: "Series") -> None:
        """Refuse a column of other rows."""
        if not self.rows.same_as(other.rows) and not (other.rows.are_all and other.rows.axis is self.rows.axis):
            refuse("two columns of different rows together")

    def in_these_rows(self, values: Any) -> list[Cell]:
        """Return the values of a list or an array, one for each row, as cells."""
        if not self.rows.are_all:
            refuse("a list beside a random number of rows")
        if len(values) != self.rows.axis.size:
            raise ValueError(f"{len(values)} values for {self.rows.axis.size} rows")
        if not isinstance(values, np.ndarray | RandomVariable):
            if not self.rows.has_plates:
                return [computed(value) for value in values]
            values = (
                np.array(values) if not any(isinstance(v, RandomVariable) for v in values) else refuse("such a list")
            )
        return [computed(part) for part in self.rows.axis.parts(values)]

    def combined(self, method: Method, other: Any, swapped: bool = False, alike: bool = False) -> "Series":
        """Return a column computed of this one and another, which may have other labels, or a single value."""
        one, two = (self, other) if alike else self.aligned(other)
        name = self.name if not isinstance(two, Series) or two.name == self.name else None
        left, right = one.column, Column(one.beside(two, exactly=True), one.rows)
        return Series((method(right, left) if swapped else method(left, right)).named(name))

    def aligned(self, other: Any) -> tuple[Any, Any]:
        """Return two columns of labels with those of both; what only one has is missing in the other."""
        other = self.standing_for(other)
        if not isinstance(other, Series) or self.rows.same_as(other.rows):
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
        return Series(Column([cell_of(value) for value in other.tolist()], Rows.all_of(axis), other.name))

    def _at_labels(self, rows: Rows) -> "Series":
        own = {
            label: Cell(cell.value, both(there, cell.known))
            for label, cell, there in zip(self.rows.axis.labels or (), self.cells, self.rows.there, strict=True)
        }
        return Series(Column([own.get(label, MISSING) for label in rows.axis.labels or ()], rows, self.name))

    def masks(self) -> list[Mask]:
        """Return a column of truth values as conditions."""
        if not all(is_truth(cell.value) and cell.known is True for cell in self.cells):
            refuse("a mask of anything but truth values")
        return [truth(cell.value) for cell in self.cells]

    def masks_of(self, condition: Any) -> list[Mask]:
        """Return a condition on the same rows, or a function that gives one, as conditions."""
        column = condition(self) if callable(condition) else condition
        if not isinstance(column, Series):
            refuse("a condition that is not a Series")
        self.beside(column)
        return column.masks()

    # Cells by labels and positions.
    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, Series):
            return self.filtered(key)
        if isinstance(key, slice):
            return self.iloc[key]
        axis = self.rows.axis
        if axis.renumbered and type(key) is int and key >= 0:
            fail_where(negated(truth(self.rows.count > key)), KeyError(key))
            return self.iloc[key]
        return self.loc[key]

    def filtered(self, key: "Series") -> "Series":
        """Return those cells for which another column is true."""
        self.beside(key)
        return self.on(self.rows.among(key.masks()))

    loc: Any = property(lambda self: Places(self, by_label=True))
    """Cells by their labels."""
    iloc: Any = property(lambda self: Places(self, by_label=False))
    """Cells by their positions."""
    at, iat = loc, iloc

    def at_label(self, label: Any) -> Any:
        """Return the value at a label; an error where it is not there."""
        cell, there = self.look_up(label)
        fail_where(negated(there), KeyError(label))
        return element(cell)

    def at_place(self, position: Any) -> Any:
        """Return the value at a position in a table of random size, of which no rows were left out."""
        outline = self.rows.axis.outline
        if outline is None or not all(map(operator.is_, self.rows.there, outline.there)):
            refuse("a position among some rows of a table of random size")
        cell, there = row_of_random_table(of_one_type(self.cells), self.rows, position)
        fail_where(negated(there), IndexError("single positional indexer is out-of-bounds"))
        return element(cell)

    def at_random(self, position: RandomVariable) -> Any:
        """Return the value at a random position, among rows called by their positions."""
        axis = self.rows.axis
        if axis.labels is not None or not self.is_known or position.shape or position.node.levels is not None:
            refuse("a row at a random place")
        if not self.rows.are_all:
            fail_where(negated(self.rows.mask[position]), KeyError("a random label"))
        return self.column.whole[position]

    def look_up(self, label: Any) -> tuple[Cell, Mask]:
        """Return the cell at a label, and whether it is there."""
        axis = self.rows.axis
        if axis.outline is not None:
            return row_of_random_table(of_one_type(self.cells), self.rows, label)
        if axis.anonymous:
            refuse("the labels of rows in a random order")
        found = ((cell, there) for own, cell, there in self._labelled_cells() if own == label)
        return next(found, (MISSING, False))

    def get(self, label: Any, default: Any = None) -> Any:
        cell, there = self.look_up(label)
        if isinstance(there, bool):
            return element(cell) if there else default
        if default is None and not of_cells.surely_known(cell, there):
            refuse("get() of what may be missing")
        return or_none(chosen(there, cell, cell_of(default)), default is None)

    def rename(self, name: Any = None, *, index: Any = None) -> Any:
        """Give another name, or, by a table or a function, other labels."""
        names = name if index is None else index
        if not isinstance(names, Mapping) and not callable(names):
            return Series(self.column.named(name))
        rows = self.rows
        return self.on(rows.called_otherwise(renamed(rows.axis.labels or (), names)))

    def _taken(self, listed: Any, taken: Callable[[Labels, Found], list[Cell]]) -> "Series":
        """Return what is taken of the cells found at some labels."""
        labels = Labels.of(listed)
        cells = taken(labels, found_at(labels, self.cells, self.rows))
        return Series(Column(cells, labels.rows(self.rows.axis.names), self.name))

    def reindex(self, index: Any, *, fill_value: Any = None) -> Any:
        """Return the cells at some labels, and another value where there are none."""
        return self._taken(index, lambda labels, found: filled(found, cell_of(fill_value)))

    def at_labels(self, listed: Any) -> Any:
        """Return the cells at some labels; an error where one of them is not there."""
        return self._taken(listed, demanded)

    def __setitem__(self, label: Any, value: Any) -> None:
        """Put a value under a label of its own below the others."""
        axis = self.rows.axis
        new, labels = cell_of(value), axis.labels
        if labels is None or not axis.sorted or axis.anonymous or label in labels or current() is not True:
            refuse("an assignment to anything but a new label")
        pairs = zip(self.cells, self.rows.there, strict=True)
        known = new.known is True and all(of_cells.surely_known(cell, there) for cell, there in pairs)
        if not known or {kind(cell.value) for cell in self.cells} != {kind(new.value)}:
            refuse("an assignment of a value of another type")
        Labels.of([label])
        self.column = Column([*self.cells, new], self.rows.with_label(label), self.name)

    index: Any = property(lambda self: Index(self.rows))
    """The labels of the rows."""

    # Arithmetic and functions of NumPy.
    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        if method != "__call__" or options or ufunc.nout != 1:
            refuse(f"np.{ufunc.__name__}.{method} of a Series")
        if ufunc in (np.true_divide, np.divide) and len(inputs) == 2:
            return self / inputs[1] if inputs[0] is self else inputs[0] / self
        if len(inputs) == 2 and ufunc in COMPARISONS.values():
            other, swapped = (inputs[1], False) if inputs[0] is self else (inputs[0], True)
            return self.combined(comparison(PANDAS, ufunc), other, swapped)
        columns = [self.beside(one, exactly=True) for one in inputs]
        if ufunc.__name__ in _SEEING_GAPS and not self.is_known:
            refuse(f"np.{ufunc.__name__} of missing values")
        made = [of_cells.applied(ufunc, *several) for several in zip(*columns, strict=True)]
        return self.with_cells([of_cells.without_nan(cell) for cell in made])

    def __array_function__(self, function: Any, types: Any, arguments: Any, options: Any) -> Any:
        if function is np.where and len(arguments) == 3 and not options:
            mask, yes, no = arguments
            column = next(one for one in arguments if isinstance(one, Series))
            sides = [column.beside(one, exactly=True) for one in (mask, yes, no)]
            picked = [chosen(verdict(m), a, b) for m, a, b in zip(*sides, strict=True)]
            return _array_like(column.with_cells(picked))
        if function.__name__ in _SAME_AS_METHODS and arguments[0] is self:
            if function.__name__ in ("median", "quantile") and not self.is_known:
                refuse(f"np.{function.__name__} of missing values")
            if function.__name__ in ("std", "var"):
                options = {"ddof": 0, **options}
            return getattr(self, function.__name__)(*arguments[1:], **options)
        return super().__array_function__(function, types, arguments, options)

    def __invert__(self) -> Any:
        if any(of_cells.was_filled(cell) for cell in self.cells):
            refuse("~ of truth values that had gaps, which are objects")
        return self.with_cells([Cell(negated(mask)) for mask in self.masks()])

    __neg__ = _each(partial(of_cells.applied, np.negative))
    __abs__ = abs = _each(partial(of_cells.applied, np.absolute))
    __round__ = round = _each(lambda cell, decimals=0: of_cells.rounded(cell, decimals))
    isna = isnull = _each(lambda cell: Cell(negated(cell.known)))
    notna = notnull = _each(lambda cell: Cell(cell.known))
    astype = _each(lambda cell, dtype: of_cells.converted(cell, dtype))

    # Other values.
    def where(self, condition: Any, other: Any = None) -> Any:
        triples = zip(self.masks_of(condition), self.cells, self.beside(other), strict=True)
        return self.with_cells([chosen(mask, yes, no) for mask, yes, no in triples])

    def mask(self, condition: Any, other: Any = None) -> Any:
        triples = zip(self.masks_of(condition), self.cells, self.beside(other), strict=True)
        return self.with_cells([chosen(mask, no, yes) for mask, yes, no in triples])

    def clip(self, lower: Any = None, upper: Any = None) -> Any:
        found = self if lower is None else np.maximum(self, lower)
        return found if upper is None else np.minimum(found, upper)

    def between(self, left: Any, right: Any, inclusive: str = "both") -> Any:
        low = self >= left if inclusive in ("both", "left") else self > left
        return low & (self <= right if inclusive in ("both", "right") else self < right)

    def isin(self, values: Any) -> Any:
        listed = list(values.plain() if isinstance(values, MaskedList) else values)
        wanted = [cell_of(value) for value in listed]
        if any(isinstance(one.known, RandomVariable) for one in wanted):
            refuse("isin() of values that may be missing")

        def among(cell: Cell) -> Cell:
            hits = [truth(compared(PANDAS, np.equal, cell, one).value) for one in wanted]
            return Cell(any_of([*hits, negated(cell.known)] if missing_ones(cell, listed) else hits))

        return self.each(among)

    def fillna(self, value: Any) -> Any:
        cells, others = of_one_type(self.cells), self.beside(value)
        if any(kind(cell.value) == "f" for cell in cells):
            others = [with_gaps(other) for other in others]
        pairs = zip(cells, others, strict=True)
        return self.with_cells([chosen(cell.known, Cell(cell.value), other) for cell, other in pairs])

    def map(self, function: Any, na_action: Any = None) -> Any:
        if isinstance(function, Series):
            axis = function.rows.axis
            if axis.labels is None or axis.anonymous:
                refuse("map() by a Series without fixed labels")
            return self.with_cells(looked_up(self.cells, axis.labels, function.cells, function.rows.there))
        if isinstance(function, Mapping):
            table = self._of_known_keys(function)
            return self.each(lambda cell: mapped(table.get, cell))
        if na_action is not None and not self.is_known:
            refuse("map() that leaves missing values as they are")
        return self.apply(function)

    def _of_known_keys(self, table: Mapping[Any, Any]) -> dict[Any, Any]:
        if not self.is_known and any(map(is_missing, table)):
            refuse("other values in the place of missing ones, by a table")
        return dict(table)

    def replace(self, old: Any, new: Any = None) -> Any:
        table = self._of_known_keys(old if isinstance(old, Mapping) else {old: new})
        return self.each(lambda cell: mapped(lambda value: table.get(value, value), cell))

    def apply(self, function: Any) -> Any:
        """Call a function on each value; it is traced once for rows that are alike."""
        return self.with_cells(called(function, of_one_type(self.cells), self.rows, native))

    # Other rows, and rows compared with each other.
    def squeeze(self) -> Any:
        certain = type(self.rows.count) is int and self.rows.count == 1
        return self.iloc[0] if certain else refuse("squeeze() of a random number of rows")

    def sort_index(self, ascending: bool = True) -> Any:
        axis = self.rows.axis
        if axis.labels is None or axis.anonymous or not ascending:
            return refuse("sort_index()")
        order = list(range(len(axis.labels)))
        if not axis.ascending:
            order.sort(key=axis.labels.__getitem__)
        made = Axis(axis.plates, tuple(axis.labels[k] for k in order), axis.names, ascending=True)
        return Series(self.column.taken(order, Rows(made, tuple(self.rows.there[k] for k in order))))

    def sort_values(self, ascending: bool = True, most: int | None = None) -> Any:
        columns, rows = sorted_rows({0: self.column}, self.rows, [self.column], [ascending], most)
        return Series(columns[0].on(rows))

    def reset_index(self, drop: bool = False, name: Any = None) -> Any:
        if not drop:
            return self.to_frame(name).reset_index()
        if self.rows.axis.sorted and not self.rows.has_plates:
            return self.on(renumbered(self.rows))
        return self if self.rows.axis.labels is None and self.rows.are_all else refuse("reset_index() of such rows")

    def shift(self, periods: int = 1) -> Any:
        """Return the cells some rows further down; where nothing comes from, they are missing."""
        if not isinstance(periods, int) or not self.rows.are_all or not self.rows.axis.sorted:
            refuse("shift() of a random number of rows")
        if self.rows.has_plates:
            refuse("shift() of many rows")
        size = len(self.cells)
        cells = [with_gaps(cell) for cell in self.cells] if periods else self.cells
        return self.with_cells([cells[k - periods] if 0 <= k - periods < size else cell_of(None) for k in range(size)])

    def rank(self, method: str = "average", ascending: bool = True, pct: bool = False) -> Any:
        """Return the rank of each value among those that are known: one for the first, equal ones alike."""
        few_rows(self.rows, "rank")
        if method not in ("average", "min", "max"):
            refuse(f"rank() by {method!r}")
        turns = RowSequence(PANDAS, self.rows, (), ((self.column, not ascending, PANDAS.nulls_last),))
        number = total_of(self.column.masks)
        found = []
        for cell, ahead, peers in zip(self.cells, turns.ahead, turns.peers, strict=True):
            smaller, equal = total_of(ahead), total_of(peers)
            rank = {"min": smaller + 1, "max": smaller + equal, "average": smaller + (equal + 1) / 2}[method]
            several = max(number, 1) if isinstance(number, int) else np.maximum(number, 1)
            found.append(Cell(rank / several if pct else rank * 1.0, cell.known))
        return self.with_cells(found)

    # Groups.
    def groupby(self, by: Any, **options: Any) -> Any:
        if not all(isinstance(key, Series) for key in (by if isinstance(by, list) else [by])):
            refuse("groupby() of a Series by its labels")
        return self.to_frame().groupby(by, **options)[self.name]

    def mode(self) -> Any:
        groups = Groups(PANDAS, [self.column], self.rows)
        counts = [rows.count for _, rows in groups.members]
        most = reduce(np.maximum, counts)
        there = tuple(both(mask, truth(one == most)) for mask, one in zip(groups.there, counts, strict=True))
        axis = Axis((None,) * len(there), tuple(range(len(there))), anonymous=True, renumbered=True)
        return Series(Column([cell_of(level) for level, _ in groups.members], Rows(axis, there), self.name))


with_methods(Series, {
    "to_frame": lambda self, name=None: self.frame({self.name if name is None else name: self.column}, self.rows),
    "keys": lambda self: self.index,
    "pipe": lambda self, function, *arguments, **named: function(self, *arguments, **named),
    "copy": lambda self, deep=True: self.on(self.rows),
    "dropna": lambda self: self.on(self.rows.among([cell.known for cell in self.cells])),
    "head": lambda self, n=5: self.iloc[:n] if self.rows.are_all else self.on(first_of(self.rows, n)),
    "nlargest": lambda self, n=5: self.sort_values(False, n),
    "nsmallest": lambda self, n=5: self.sort_values(True, n),
    "cumsum": lambda self: self.with_cells(reductions.cumulative(self.column)),
    "diff": lambda self, periods=1: self - self.shift(periods),
    "duplicated": lambda self, keep="first": (
        self.with_cells([Cell(mask) for mask in repeated([self.column], self.rows, keep)])),
    "value_counts": lambda self, normalize=False, sort=True, ascending=False: (
        counted_values([self.column], self.rows, normalize, descending=sort and not ascending)),
    "unstack": lambda self, fill_value=None: self.frame._unstacked(self, fill_value),
})  # fmt: skip


def _summary(name: str) -> Any:
    given = native if name == "nunique" else element
    return lambda self, *arguments, **options: given(self.summary(name, *arguments, **options))


with_methods(Series, {name: _summary(name) for name in reductions.SUMMARIES})

_SEEING_GAPS = {"isnan", "isfinite", "isinf", "signbit", "logical_not", "logical_and", "logical_or", "logical_xor",
                "fmax", "fmin"}  # fmt: skip
_SAME_AS_METHODS = {"sum", "mean", "min", "max", "amin", "amax", "std", "var", "median", "quantile", "any", "all",
                    "round"}  # fmt: skip


def _array_like(column: Series) -> Any:
    """Return a column as an array of NumPy is: without labels, and without a mark for what is missing."""
    axis = column.rows.axis
    if not column.is_known:
        return column.to_numpy() if column.is_numeric and column.rows.are_all else refuse("an array with gaps")
    if axis.labels is None:
        return column
    return column.on(Rows(Axis(axis.plates, anonymous=True, sorted=axis.sorted), column.rows.there)).rename(None)


def verdict(cell: Cell) -> Mask:
    """Return a cell of truth values as a condition."""
    if cell.known is not True or not is_truth(cell.value):
        refuse("logic of anything but truth values that are known")
    return truth(cell.value)


def _bit(cell: Cell) -> Mask:
    """Return a truth value, or a number that is zero or one, as a condition: what pandas has in logic beside others."""
    if is_truth(cell.value) or cell.known is not True or kind(cell.value) != "i":
        return verdict(cell)
    if not set(alternatives(cell.value)) <= {0, 1}:
        refuse("logic of numbers other than zero and one")
    return truth(cell.value == 1)


def _operator(method: Method, swapped: bool = False) -> Any:
    return lambda self, other: self.combined(method, other, swapped)


def _without_nan(method: Method) -> Method:
    return lambda left, right: method(left, right).each(of_cells.without_nan)


def _comparison(method: Method) -> Any:
    return lambda self, other: self.combined(method, beside_timestamps(self.cells, other), alike=True)


def _of_known(method: Method) -> Method:
    """Return logic in which nothing may be missing, and zero and one stand beside truth values."""

    def known(left: Column, right: Column) -> Column:
        if not any(is_truth(cell.value) for cell in (*left.cells, *right.cells)):
            refuse("logic of numbers, bit by bit")
        return method(*(side.each(lambda cell: Cell(_bit(cell))) for side in (left, right)))

    return known


_ARITHMETIC: dict[str, Method] = {
    **{name: _without_nan(arithmetic(function)) for name, function in (
        ("add", np.add), ("sub", np.subtract), ("mul", np.multiply), ("pow", np.power), ("floordiv", np.floor_divide),
        ("mod", np.remainder), ("subtract", np.subtract), ("multiply", np.multiply))},
    **dict.fromkeys(("truediv", "div", "divide"), division(PANDAS)),
}  # fmt: skip
_LOGIC = {"and": conjunction, "or": disjunction, "xor": exclusive}
_OPERATORS = {**_ARITHMETIC, **{name: _of_known(method) for name, method in _LOGIC.items()}}
_COMPARISONS = {name: comparison(PANDAS, function) for name, function in COMPARISONS.items()}
with_methods(Series, {name: _operator(method) for name, method in _ARITHMETIC.items()})
with_methods(Series, {f"r{name}": _operator(method, swapped=True) for name, method in _ARITHMETIC.items()})
with_methods(Series, {f"__{name}__": _operator(method) for name, method in _OPERATORS.items()})
with_methods(Series, {f"__r{name}__": _operator(method, swapped=True) for name, method in _OPERATORS.items()})
with_methods(Series, {name: _comparison(method) for name, method in _COMPARISONS.items()})
with_methods(Series, {f"__{name}__": _comparison(method) for name, method in _COMPARISONS.items()})
Series.__hash__ = None  # type: ignore[assignment]


class Places(OfStanding):
    """The cells of a column by their labels or positions: `series.loc` and `series.iloc`."""

    def __init__(self, column: Series, by_label: bool) -> None:
        self._column = column
        self._by_label = by_label

    def __getitem__(self, key: Any) -> Any:
        column, axis = self._column, self._column.rows.axis
        if isinstance(key, Series):
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
                return Series(Column(cells[key], Rows.all_of(axis.sliced(key)), column.name))
            return element(cells[key])
        if not all(cell.known is True for cell in cells):
            refuse("a position among rows of a random number")
        found = MaskedList.of_pairs(zip([native(cell) for cell in cells], there, strict=True))[key]
        return found if isinstance(key, slice) else element(cell_of(found))


class Index(Series):
    """The labels of rows."""

    kind = "Index"

    def __init__(self, rows: Rows) -> None:
        super().__init__(Column([cell_of(label) for label in rows.axis.called()], rows, None))
        if rows.axis.anonymous:
            refuse("the labels of rows in a random order")

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, Series):
            return self.filtered(key)
        found = self.iloc[key]
        return found if self.rows.axis.labels is not None or isinstance(key, slice) else native(cell_of(found))

    def contains(self, item: Any) -> Mask:
        if self.rows.has_plates:
            refuse("a look for a label among many rows")
        pairs = zip(self.cells, self.rows.there, strict=True)
        return any_of(
            [both(there, truth(compared(PANDAS, np.equal, cell, cell_of(item)).value)) for cell, there in pairs]
        )


def observes_by_default() -> bool:
    """Say whether groups that do not occur are left out unless it is said otherwise, as pandas does from 3.0 on."""
    return int(importlib.import_module("pandas").__version__.partition(".")[0]) >= 3


def few_rows(rows: Rows, what: str) -> None:
    """Refuse rows that are too many to be compared with each other, or stand for many."""
    if rows.has_plates or len(rows.there) > MOST_COMPARED:
        refuse(f"{what}() of many rows")


def repeated(columns: Sequence[Column], rows: Rows, keep: Any) -> list[Mask]:
    """Return for each row whether it is like one before, or one behind, or (`keep=False`) any other."""
    few_rows(rows, "duplicated")
    if keep not in ("first", "last") and keep is not False:
        refuse("duplicated() that keeps something else")
    alike = RowSequence(PANDAS, rows, columns).together
    places = range(len(rows.there))
    others = [[k for k in places if k != own and (keep is False or (k < own) is (keep == "first"))] for own in places]
    return [any_of([alike[own][k] for k in several]) for own, several in zip(places, others, strict=True)]


def labelled(
    labels: Sequence[Any], cells: Sequence[Cell], name: Any = None, there: Sequence[Mask] | None = None
) -> Series:
    """Return a column of cells under fixed labels, all of which are there unless it is said when each is."""
    if len(set(labels)) < len(labels):
        refuse("labels that stand for several cells")
    axis = Axis((None,) * len(labels), tuple(labels))
    return Series(Column(cells, Rows.all_of(axis) if there is None else Rows(axis, tuple(there)), name))


def columns_of(data: Mapping[Any, Sequence[Cell]], rows: Rows) -> dict[Any, Column]:
    """Return cells as columns of some rows."""
    return {name: Column(cells, rows, name) for name, cells in data.items()}


def sorted_rows(
    columns: Mapping[Any, Column], rows: Rows, by: Sequence[Column], ascending: Sequence[bool], most: int | None = None
) -> Relation:
    """Return rows in the order of columns, equal ones as they stood; some of the first. Their labels are lost."""
    if not rows.axis.sorted or not all(isinstance(upwards, bool) for upwards in ascending):
        refuse("an order of rows in a random order, or in a random direction")
    keys: list[Key] = [(key, not upwards, PANDAS.nulls_last) for key, upwards in zip(by, ascending, strict=True)]
    found, made = in_random_order(columns, rows, keys, most)
    axis = replace(made.axis, labels=tuple(range(len(made.there))), anonymous=True)
    return found, replace(made, axis=axis)


def counted_values(columns: Sequence[Column], rows: Rows, normalize: bool, descending: bool = True) -> Series:
    """Return how often each value occurs, in a random order: the descending one, if not another that is not known."""
    everything = len(columns) == 1 and columns[0].levels is not None
    groups = Groups(PANDAS, columns, rows, everything)
    there: list[Mask] = [everything or one for one in groups.there]
    turns = None
    if len(columns) == 1 and not everything and descending:
        turns = partial(_turns, groups)
    labels, names = tuple(label for label, _ in groups.members), tuple(column.name for column in columns)
    axis = Axis((None,) * len(labels), labels, names, sorted=False, ascending=True, ranks=turns)
    total = rows.count if all(column.is_known for column in columns) else None
    if normalize and total is None:
        total = rows.among([any_of(list(hits.values())) for hits in groups.hits]).count
    counts = [Cell(own.count) for _, own in groups.members]
    if normalize:
        counts = [divided(PANDAS, n, Cell(total), one) for n, one in zip(counts, there, strict=True)]
    return Series(Column(counts, Rows(axis, tuple(there)), "proportion" if normalize else "count"))


def _turns(groups: Groups) -> list[Any]:
    """Return numbers by which values stand in turn: the most frequent first, of equally many the first to be seen."""
    size = groups.rows.axis.size
    pairs = zip(groups.first_places(), groups.members, strict=True)
    return [np.minimum(first, size) - rows.count * (size + 1) for first, (_, rows) in pairs]
