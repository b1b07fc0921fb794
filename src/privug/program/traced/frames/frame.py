"""A traced frame with its order, groups and summaries: the stand-in of a DataFrame."""

from collections.abc import Mapping, Sequence
from typing import Any

from privug.model.variable import RandomVariable, refuse
from privug.program.traced.frames import cells as of_cells
from privug.program.traced.frames import reductions
from privug.program.traced.frames.cells import Cell, cell_of
from privug.program.traced.frames.grouping import GroupBy
from privug.program.traced.frames.rows import Axis, Rows
from privug.program.traced.frames.series import Series
from privug.program.traced.frames.shapes import counted_values, described, labelled, observes_by_default, sorted_rows
from privug.program.traced.frames.table import Table
from privug.program.traced.masks import Mask, MaskedList, any_of, both, negated, truth
from privug.program.traced.standing import Standing


class Frame(Table):
    """A frame."""

    def made(self, data: Mapping[Any, Sequence[Cell]], rows: Rows, present: Mapping[Any, Mask] | None = None) -> Any:
        return Frame(data, rows, present)

    def sort_values(self, by: Any, ascending: Any = True) -> Any:
        name = by[0] if isinstance(by, list) and len(by) == 1 else by
        if isinstance(name, list) or not isinstance(ascending, bool):
            refuse("sort_values() by several columns")
        return Frame(*sorted_rows(self.data, self.rows, self.data[name], ascending, None))

    def nlargest(self, n: int, columns: Any) -> Any:
        return Frame(*sorted_rows(self.data, self.rows, self.column(columns).cells, False, n))

    def nsmallest(self, n: int, columns: Any) -> Any:
        return Frame(*sorted_rows(self.data, self.rows, self.column(columns).cells, True, n))

    def sort_index(self) -> Any:
        return self if self.rows.axis.sorted else refuse("sort_index()")

    def reset_index(self, drop: bool = False) -> Any:
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
        return Frame({**keys, **self.data}, Rows(Axis(axis.plates), self.rows.there))

    def set_index(self, key: str) -> Any:
        labels = [cell.value for cell in self.column(key).cells]
        if any(isinstance(label, RandomVariable) for label in labels) or len(set(labels)) < len(labels):
            refuse("set_index() of a random column")
        if any(plate is not None for plate in self.rows.axis.plates):
            refuse("set_index() of many rows")
        axis = Axis(self.rows.axis.plates, tuple(labels), (key,))
        return Frame({name: cells for name, cells in self.data.items() if name != key}, Rows(axis, self.rows.there))

    def drop_duplicates(self, subset: Any = None) -> Any:
        names = list(self.data) if subset is None else subset if isinstance(subset, list) else [subset]
        if any(plate is not None for plate in self.rows.axis.plates) or len(self.rows.there) > 32:
            refuse("drop_duplicates() of many rows")
        masks: list[Mask] = []
        for place, there in enumerate(self.rows.there):
            again = [both(self.rows.there[k], self._same_cells(names, k, place)) for k in range(place)]
            masks.append(both(there, negated(any_of(again))))
        return Frame(self.data, Rows(self.rows.axis, tuple(masks)))._with_hits(self)

    def _same_cells(self, names: Sequence[Any], one: int, two: int) -> Mask:
        alike: Mask = True
        for name in names:
            left, right = self.data[name][one], self.data[name][two]
            alike = both(alike, truth(of_cells.compared(of_cells.EQUAL, left, right).value))
        return alike

    def apply(self, function: Any, axis: Any = 0) -> Any:
        """Call a function on each column, or on each row: once for rows that are alike."""
        if axis in (0, "index"):
            return labelled(list(self.data), [cell_of(function(self.column(name))) for name in self.data])
        rows = self.itertuples(index=False)
        items = [one[0] for one in (rows.segments if self._has_plates else rows.pairs())]
        return Series(of_cells.called(function, [Cell(item) for item in items], self.rows, as_rows=True), self.rows)

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
        columns = {name: described(self.column(name)) for name in numeric}
        first = next(iter(columns.values()), None)
        return (
            refuse("describe() of texts")
            if first is None
            else Frame({n: s.cells for n, s in columns.items()}, first.rows)
        )

    def _summaries(self, how: str, **options: Any) -> Series:
        numeric_only = options.pop("numeric_only", False)
        names = [name for name in self.data if not numeric_only or self.column(name).is_numeric]
        return labelled(names, [self.column(name).summary(how, **options) for name in names])

    def pivot_table(
        self, values: Any = None, index: Any = None, columns: Any = None, aggfunc: Any = "mean", fill_value: Any = None
    ) -> Any:
        if not isinstance(index, str) or not isinstance(columns, str):
            refuse("pivot_table() by anything but one column for rows and one for columns")
        return Frame(*self.groupby([index, columns]).pivoted(values, aggfunc, fill_value))

    def merge(self, other: Any, on: Any = None, how: str = "inner") -> Any:
        """Join a fixed table by one column whose values are different there."""
        if not isinstance(on, str) or how not in ("inner", "left") or isinstance(other, Standing):
            refuse("merge() with anything but a fixed table, on one column")
        table = other.set_index(on)
        if not table.index.is_unique or set(table.columns) & set(self.data):
            refuse("merge() with a table of repeated keys or columns")
        keys = self.column(on).cells
        added = {n: [of_cells.mapped(table[n].to_dict().get, key) for key in keys] for n in table.columns}
        known = dict.fromkeys(table.index, True)
        found = [of_cells.mapped(lambda level: known.get(level, False), key) for key in keys]
        rows = self.rows if how == "left" else self.rows.among([both(one.known, truth(one.value)) for one in found])
        return Frame({**self.data, **added}, rows)._with_hits(self)


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
