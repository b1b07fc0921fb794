"""A traced frame with its order, groups and summaries: the stand-in of a DataFrame."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from privug.model.node import Kind
from privug.model.variable import RandomVariable, refuse
from privug.program.traced.frames import handing, reductions
from privug.program.traced.frames.cells import Cell, cell_of, is_truth
from privug.program.traced.frames.dates import are_timestamps
from privug.program.traced.frames.grouping import GroupBy
from privug.program.traced.frames.handing import as_rows, element, of_one_type
from privug.program.traced.frames.joins import is_frame, merged
from privug.program.traced.frames.margins import pivoted
from privug.program.traced.frames.ordering import sorted_rows
from privug.program.traced.frames.rows import Axis, Rows, renumbered, same_mask
from privug.program.traced.frames.sequences import repeated
from privug.program.traced.frames.series import Series
from privug.program.traced.frames.shapes import counted_values, described, labelled, observes_by_default
from privug.program.traced.frames.table import Table
from privug.program.traced.masks import Mask, MaskedList, Standing, both, under

_BY_ROWS = {"sum", "mean", "count", "min", "max", "any", "all"}
"""What rows come to as columns do."""


class Frame(Table):
    """A frame."""

    def made(self, data: Mapping[Any, Sequence[Cell]], rows: Rows, present: Mapping[Any, Mask] | None = None) -> Any:
        made = Frame(data, rows, present)
        made.lost = self.lost & made.held.keys()
        return made

    def sort_values(self, by: Any, ascending: Any = True, kind: str = "quicksort") -> Any:
        names = by if isinstance(by, list) else [by]
        upwards = list(ascending) if isinstance(ascending, list) else [ascending] * len(names)
        if len(upwards) != len(names):
            raise ValueError(f"{len(upwards)} directions for {len(names)} columns")
        keys = [self.column(name).cells for name in names]
        self.whole()
        made = Frame(*sorted_rows(self.data, self.rows, keys, upwards, None))
        if len(keys) == 1 and kind not in ("stable", "mergesort") and not _all_differ(keys[0]):
            made.lost = frozenset(self.data) - {names[0]}
        return made

    def nlargest(self, n: int, columns: Any) -> Any:
        self.whole()
        return Frame(*sorted_rows(self.data, self.rows, [self.column(columns).cells], [False], n))

    def nsmallest(self, n: int, columns: Any) -> Any:
        self.whole()
        return Frame(*sorted_rows(self.data, self.rows, [self.column(columns).cells], [True], n))

    def sort_index(self) -> Any:
        return self if self.rows.axis.sorted else refuse("sort_index()")

    def reset_index(self, drop: bool = False) -> Any:
        self.whole()
        axis = self.rows.axis
        if axis.labels is None and self.rows.are_all and drop:
            return self.copy()
        names = axis.names
        keys = (
            {}
            if drop
            else {
                name: [Cell(_part(label, k, len(names))) for label in axis.labels or ()] for k, name in enumerate(names)
            }
        )
        if axis.labels is None or any(name is None for name in keys) or not axis.sorted:
            refuse("reset_index() of such rows")
        return Frame({**keys, **self.data}, renumbered(self.rows))

    def set_index(self, key: str) -> Any:
        self.whole()
        labels = [cell.value for cell in self.column(key).cells]
        if any(isinstance(label, RandomVariable) for label in labels) or len(set(labels)) < len(labels):
            refuse("set_index() of a random column")
        if any(plate is not None for plate in self.rows.axis.plates):
            refuse("set_index() of many rows")
        axis = Axis(self.rows.axis.plates, tuple(labels), (key,), sorted=self.rows.axis.sorted)
        return Frame({name: cells for name, cells in self.data.items() if name != key}, Rows(axis, self.rows.there))

    def duplicated(self, subset: Any = None, keep: Any = "first") -> Series:
        names = list(self.data) if subset is None else subset if isinstance(subset, list) else [subset]
        again = repeated([self.column(name).cells for name in names], self.rows, keep)
        return Series([Cell(mask) for mask in again], self.rows)

    def drop_duplicates(self, subset: Any = None, keep: Any = "first") -> Any:
        return self[~self.duplicated(subset, keep)]

    def where(self, condition: Any, other: Any = None) -> Any:
        return self._chosen("where", condition, other)

    def mask(self, condition: Any, other: Any = None) -> Any:
        return self._chosen("mask", condition, other)

    def _chosen(self, how: str, condition: Any, other: Any) -> Any:
        told = condition(self) if callable(condition) else condition
        if isinstance(told, Frame) and isinstance(other, Standing):
            refuse(f"{how}() with other values that differ from cell to cell")
        return self.beside(told, lambda column, part: getattr(column, how)(part, other), by_row=True)

    def beside(self, other: Any, function: Callable[[Series, Any], Series], by_row: bool = False) -> Any:
        """Return a frame whose columns are computed of these, each with what stands beside it.

        That is a column of a frame of the same labels, a value for each column or, if so asked, for each row, or one
        value for all.
        """
        if isinstance(other, Frame):
            if not self._is_labelled_as(other):
                refuse("two frames of different labels together")
            parts: dict[Any, Any] = {name: other.kept(name) for name in other.held}
        elif isinstance(other, Series) and not by_row:
            there = [self.present.get(name, True) for name in self.held]
            if other.rows.axis.labels != tuple(self.held) or not all(map(same_mask, other.rows.there, there)):
                refuse("a frame with a column of other labels than those of its columns")
            parts = dict(zip(self.held, map(element, of_one_type(other.cells)), strict=True))
        else:
            if isinstance(other, Series):
                self.alike(other)
            elif getattr(other, "shape", ()) or not isinstance(other, RandomVariable | np.generic | str | int | float):
                refuse("a frame with a list or an array")
            parts = dict.fromkeys(self.held, other)
        return self.each(lambda column: function(column, parts[column.name]))

    def _is_labelled_as(self, other: "Frame") -> bool:
        masks = [(self.present.get(name, True), other.present.get(name, True)) for name in self.held]
        alike = list(self.held) == list(other.held) and all(same_mask(*pair) for pair in masks)
        return alike and self.rows.same_as(other.rows)

    def clip(self, lower: Any = None, upper: Any = None) -> Any:
        if any(isinstance(bound, Standing) for bound in (lower, upper)):
            refuse("clip() with bounds that differ from cell to cell")
        return self.each(lambda column: column.clip(lower, upper))

    def map(self, function: Any) -> Any:
        return self.each(lambda column: column.apply(function))

    @property
    def T(self) -> Any:
        """The frame with its rows as columns."""
        labels, cells = self._of_one_type("T")
        if not self.rows.never_empty:
            refuse("T of a table that may have no rows")
        axis = Axis((None,) * len(self.held), tuple(self.held))
        rows = Rows(axis, tuple(self.present.get(name, True) for name in self.held), inhabited=True)
        columns = dict(zip(labels, zip(*cells, strict=True), strict=True))
        return Frame(columns, rows, dict(zip(labels, self.rows.there, strict=True)))

    def stack(self) -> Series:
        """Return the cells one after the other, row by row, under pairs of labels."""
        labels, cells = self._of_one_type("stack()")
        if not observes_by_default() and any(cell.known is not True for column in cells for cell in column):
            refuse("stack() of missing values")
        there = [both(mask, self.present.get(name, True)) for mask in self.rows.there for name in self.held]
        pairs = [(label, name) for label in labels for name in self.held]
        return labelled(pairs, [cell for row in zip(*cells, strict=True) for cell in row], there=there)

    def to_numpy(self) -> Any:
        """Return the cells as an array of rows and columns."""
        self.whole()
        columns, alike = as_rows(self.data.values())
        if not alike or not self.rows.are_all or not self.rows.axis.sorted:
            refuse("an array of a random number of rows, or of values of different types")
        return np.stack([Series(cells, self.rows).to_numpy() for cells in columns], axis=1)

    @property
    def values(self) -> Any:
        """The cells as an array."""
        return self.to_numpy()

    def _of_one_type(self, what: str) -> tuple[tuple[Any, ...], list[list[Cell]]]:
        """Return the labels of rows and the columns, if all cells are of one type."""
        self.whole()
        axis = self.rows.axis
        columns, alike = as_rows(self.held.values())
        if axis.labels is None or axis.anonymous or not axis.sorted or not alike:
            refuse(f"{what} of rows without fixed labels, or of values of different types")
        return axis.labels, columns

    def apply(self, function: Any, axis: Any = 0) -> Any:
        """Call a function on each column, or on each row: once for rows that are alike."""
        if axis in (0, "index"):
            found = self._called(list(self.held), function)
            if any(isinstance(one, Series) for one in found):
                if not all(isinstance(one, Series) and self.rows.same_as(one.rows) for one in found):
                    refuse("apply() with columns of other labels")
                data = {name: one.cells for name, one in zip(self.held, found, strict=True)}
                return self.made(data, self.rows, self.present)
            there = [self.present.get(name, True) for name in self.held]
            return labelled(list(self.held), [cell_of(one) for one in found], there=there)
        cells = [Cell(row) for row in self.single_rows()]
        return Series(handing.called(function, cells, self.rows, _value), self.rows)

    def to_dict(self, orient: str = "dict") -> Any:
        if orient == "list":
            return {name: self.column(name).tolist() for name in self.data}
        if orient == "dict":
            return {name: self.column(name).to_dict() for name in self.data}
        if orient != "records" or self._has_plates:
            self.unknown(f"to_dict({orient!r})")
        rows = self.itertuples(index=False).pairs()
        return MaskedList.of_pairs((row._asdict(), there) for row, there in rows)

    def groupby(
        self, by: Any, *, sort: bool = True, as_index: bool = True, observed: Any = None, dropna: bool = True
    ) -> GroupBy:
        keys = by if isinstance(by, list) else [by]
        columns = [key if isinstance(key, Series) else self.column(key) for key in keys]
        if not dropna:
            refuse("groupby() of missing keys")
        seen = observes_by_default() if observed is None else observed
        found = GroupBy(self, columns, isinstance(by, list), observed=seen, ordered=sort)
        return found if as_index else found.renumbered()

    def value_counts(self, subset: Any = None, normalize: bool = False) -> Series:
        columns = [self.column(name) for name in (subset or list(self.data))]
        return counted_values(columns, self.rows, normalize)

    def agg(self, spec: Any) -> Any:
        if isinstance(spec, Mapping):
            return labelled(list(spec), [self.column(name).summary(how) for name, how in spec.items()])
        if isinstance(spec, str):
            return self._summaries(spec)
        data = {name: [self.column(name).summary(how) for how in spec] for name in self.data}
        return Frame(data, Rows.all_of(Axis((None,) * len(spec), tuple(spec))))

    aggregate = agg

    def describe(self) -> Any:
        numeric = [name for name in self.data if self.column(name).is_numeric]
        if any(is_truth(cell.value) or are_timestamps(cell) for cells in self.data.values() for cell in cells):
            refuse("describe() of truth values or dates")
        columns = {name: described(self.column(name)) for name in numeric}
        first = next(iter(columns.values()), None)
        return (
            refuse("describe() of texts")
            if first is None
            else Frame({n: s.cells for n, s in columns.items()}, first.rows)
        )

    def _summaries(self, how: str, **options: Any) -> Series:
        numeric_only = options.pop("numeric_only", False)
        names = [name for name in self.held if not numeric_only or self.kept(name).is_numeric]
        there = [self.present.get(name, True) for name in names]
        if options.pop("axis", 0) in (1, "columns"):
            return self._by_rows(how, names, there, **options)
        return labelled(names, self._called(names, lambda column: column.summary(how, **options)), there=there)

    def _by_rows(self, how: str, names: Sequence[Any], there: Sequence[Mask], **options: Any) -> Series:
        """Return what each row comes to."""
        if how not in _BY_ROWS or not names:
            refuse(f"{how}() of rows")
        self.whole()
        columns, alike = as_rows([self.held[name] for name in names])
        if not alike:
            refuse(f"{how}() of rows of values of different types")
        across = Rows(Axis((None,) * len(names), tuple(names)), tuple(there))
        rows = [Series(cells, across).summary(how, **options) for cells in zip(*columns, strict=True)]
        return Series(rows, self.rows)

    def _called(self, names: Sequence[Any], function: Callable[[Series], Any]) -> list[Any]:
        """Return what a function makes of each column, where that is there."""
        found = []
        for name in names:
            with under(self.present.get(name, True)):
                found.append(function(self.kept(name)))
        return found

    def _places(self, how: str) -> Series:
        names = list(self.held)
        found = self._called(names, lambda column: cell_of(getattr(column, how)()))
        return labelled(names, found, there=[self.present.get(name, True) for name in names])

    def idxmax(self) -> Series:
        return self._places("idxmax")

    def idxmin(self) -> Series:
        return self._places("idxmin")

    def pivot_table(
        self,
        values: Any = None,
        index: Any = None,
        columns: Any = None,
        aggfunc: Any = "mean",
        fill_value: Any = None,
        margins: bool = False,
        margins_name: str = "All",
    ) -> Any:
        if values is None and aggfunc in ("size", len) and columns is not None and not margins:
            return self.groupby([index, columns]).size().unstack(fill_value)
        if columns is None and not margins and isinstance(index, str | list):
            return self.groupby(index).tabled(values, aggfunc)  # a fill value has nothing to fill
        if not isinstance(index, str) or not isinstance(columns, str):
            refuse("pivot_table() by anything but one column for rows and one for columns")
        total = margins_name if margins else None
        return Frame(*pivoted(self, values, (index, columns), aggfunc, fill_value, total))

    def merge(self, right: Any, how: str = "inner", on: Any = None, suffixes: Any = ("_x", "_y")) -> Any:
        """Join another table, fixed or random, by one column."""
        if not isinstance(on, str) or how not in ("inner", "left") or not is_frame(right):
            refuse("merge() with anything but a table, on one column")
        table = right if isinstance(right, Frame) else fixed(right)
        return Frame(*merged(self, table, on, how, tuple(suffixes)))._with_hits(self)

    def join(self, other: Any, on: Any = None) -> Any:
        """Add columns that have this frame's values of a key as labels."""
        columns = {other.name: other} if isinstance(other, Series) else {n: other.column(n) for n in other.data}
        if not isinstance(on, str) or set(columns) & set(self.data) or None in columns:
            refuse("join() with anything but columns of other names, on one column")
        return self.assign(**{name: self.column(on).map(column) for name, column in columns.items()})


def _all_differ(cells: Sequence[Cell]) -> bool:
    """Say whether no two cells are equal, with probability one."""
    random = [isinstance(cell.value, RandomVariable) for cell in cells]
    if not any(random):
        return len({cell.value for cell in cells}) == len(cells)
    return all(random) and all(cell.value.node.kind is Kind.CONTINUOUS for cell in cells)


def fixed(table: Any) -> Frame:
    """Return a plain frame of pandas as one of constants."""
    cells = {name: [cell_of(value) for value in table[name].tolist()] for name in table.columns}
    return Frame(cells, Rows.all_of(Axis((None,) * len(table))))


def _value(cell: Cell) -> Any:
    return cell.value


def _part(label: Any, place: int, several: int) -> Any:
    return label[place] if several > 1 else label


def _summary(name: str) -> Any:
    def method(self: Frame, **options: Any) -> Any:
        return self._summaries(name, **options)

    method.__name__ = name
    return method


for _name in reductions.REDUCTIONS:
    if _name not in ("size", "average", "first", "last"):
        setattr(Frame, _name, _summary(_name))


def _by_column(name: str) -> Any:
    """Return an operator or method of whole frames: that of their columns, each with what stands beside it."""

    def method(self: Frame, other: Any, axis: Any = "columns") -> Any:
        return self.beside(other, lambda column, part: getattr(column, name)(part), by_row=axis in (0, "index"))

    return method


_OPERATORS = "add sub mul truediv floordiv mod pow"
_COMPARISONS = "eq ne lt le gt ge"
for _name in (
    *(f"__{one}__" for one in f"{_OPERATORS} {_COMPARISONS} and or xor".split()),
    *(f"__r{one}__" for one in f"{_OPERATORS} and or xor".split()),
    *f"{_OPERATORS} div divide {_COMPARISONS}".split(),
):
    setattr(Frame, _name, _by_column(_name))
for _name in ("__invert__", "__neg__", "__abs__", "abs"):
    setattr(Frame, _name, lambda self, _name=_name: self.each(lambda column: getattr(column, _name)()))
Frame.__hash__ = None  # type: ignore[assignment]
