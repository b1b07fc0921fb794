"""Methods of traced columns that give other columns or frames, and the functions of pandas itself."""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np

from privug.model.variable import RandomVariable, refuse
from privug.program.traced.frames.cells import Cell, cell_of
from privug.program.traced.frames.pandas.column import are_timestamps, element, native, of_one_type
from privug.program.traced.frames.pandas.frame import Frame, fixed
from privug.program.traced.frames.pandas.group import GroupBy, cross_counted, unstacked
from privug.program.traced.frames.pandas.series import (
    Dates,
    Index,
    Series,
    Texts,
    counted_values,
    described,
    is_frame,
    labelled,
    one_below_another,
    ranked,
    repeated,
    shifted,
    stacked,
)
from privug.program.traced.frames.reductions import cumulative, positive
from privug.program.traced.frames.relations import Groups
from privug.program.traced.frames.rows import (
    Axis,
    InAnyOrder,
    Rows,
    banded,
    first_of,
    hits_in,
    renumbered,
    singled_out,
    sorted_rows,
)
from privug.program.traced.masks import MaskedList, Standing, both, negated, truth


def _value_counts(self: Series, normalize: bool = False, sort: bool = True, ascending: bool = False) -> Any:
    return counted_values([self], self.rows, normalize, descending=sort and not ascending)


def _sort_index(self: Series, ascending: bool = True) -> Any:
    axis = self.rows.axis
    if axis.labels is None or axis.anonymous or not ascending:
        return refuse("sort_index()")
    order = list(range(len(axis.labels)))
    if not axis.ascending:
        order.sort(key=axis.labels.__getitem__)
    labels = tuple(axis.labels[k] for k in order)
    made = Axis(axis.plates, labels, axis.names, ascending=True)
    return Series([self.cells[k] for k in order], Rows(made, tuple(self.rows.there[k] for k in order)), self.name)


def _sorted(self: Series, ascending: bool, most: int | None) -> Any:
    if not self.rows.axis.sorted:
        refuse("an order of a Series whose order is random")
    data, rows = sorted_rows({self.name: self.cells}, self.rows, [self.cells], [ascending], most)
    return Series(data[self.name], rows, self.name)


def _head(self: Series, n: int = 5) -> Any:
    found: Series = self.iloc[:n] if self.rows.are_all else self.on(first_of(self.rows, n))
    return found


def _items(self: Series) -> Any:
    if not self.rows.axis.sorted:
        return self.to_dict().items()
    cells, there = singled_out(of_one_type(self.cells), self.rows)
    labels = self.rows.axis.labels or tuple(range(self.rows.axis.size))
    return MaskedList.of_pairs(
        ((label, native(cell)), mask) for label, cell, mask in zip(labels, cells, there, strict=True)
    )


def _reset_index(self: Series, drop: bool = False, name: Any = None) -> Any:
    if not drop:
        return Frame({self.name if name is None else name: self.cells}, self.rows).reset_index()
    if self.rows.axis.sorted and not self.rows.has_plates:
        return Series(self.cells, renumbered(self.rows), self.name)
    return self if self.rows.axis.labels is None and self.rows.are_all else refuse("reset_index() of such rows")


def _agg(self: Series, spec: Any) -> Any:
    if isinstance(spec, str):
        return element(self.summary(spec))
    if callable(spec):
        return spec(self)
    return labelled(list(spec), [self.summary(how) for how in spec], self.name)


def _groupby(self: Series, by: Any, **options: Any) -> Any:
    keys = by if isinstance(by, list) else [by]
    if not all(isinstance(key, Series) for key in keys):
        refuse("groupby() of a Series by its labels")
    frame = Frame({self.name: self.cells}, self.rows)
    return GroupBy(frame, keys, isinstance(by, list), **options)[self.name]


def _cumsum(self: Series) -> Any:
    return self.with_cells(cumulative(self.cells, self.rows))


def _unique(self: Series) -> Any:
    if not self.is_known:
        refuse("unique() of missing values")
    hits = hits_in([self], self.rows)
    levels = list(dict.fromkeys(level for one in hits for level in one))
    made = InAnyOrder()
    for level in levels:
        made.add(element(cell_of(level)), positive(self.rows.among([one.get(level, False) for one in hits]).count))
    return made


def _mode(self: Series) -> Any:
    groups = Groups([self], self.rows)
    counts = [rows.count for _, rows in groups.members]
    most = reduce(np.maximum, counts)
    there = tuple(both(mask, truth(one == most)) for mask, one in zip(groups.there, counts, strict=True))
    axis = Axis((None,) * len(there), tuple(range(len(there))), anonymous=True, renumbered=True)
    return Series([cell_of(level) for level, _ in groups.members], Rows(axis, there), self.name)


def _squeeze(self: Series) -> Any:
    certain = type(self.rows.count) is int and self.rows.count == 1
    return self.iloc[0] if certain else refuse("squeeze() of a random number of rows")


def _truths(self: Series, masks: Any) -> Any:
    return self.with_cells([Cell(mask) for mask in masks])


def _rank(self: Series, method: str = "average", ascending: bool = True, pct: bool = False) -> Any:
    return self.with_cells(ranked(self.cells, self.rows, method, ascending, pct))


def _shift(self: Series, periods: int = 1) -> Any:
    return self.with_cells(shifted(self.cells, self.rows, periods))


def _diff(self: Series, periods: int = 1) -> Any:
    return self - _shift(self, periods)


_METHODS: dict[str, Any] = {
    "value_counts": _value_counts, "sort_index": _sort_index, "head": _head, "items": _items, "agg": _agg,
    "aggregate": _agg, "reset_index": _reset_index, "groupby": _groupby, "cumsum": _cumsum, "unique": _unique,
    "nlargest": lambda self, n=5: _sorted(self, False, n), "nsmallest": lambda self, n=5: _sorted(self, True, n),
    "sort_values": lambda self, ascending=True: _sorted(self, ascending, None), "describe": described,
    "to_frame": lambda self, name=None: Frame({self.name if name is None else name: self.cells}, self.rows),
    "unstack": lambda self, fill_value=None: Frame(*unstacked(self, fill_value)),
    "index": property(lambda self: Index(self.rows)), "keys": lambda self: Index(self.rows),
    "str": property(Texts), "dt": property(Dates),
    "squeeze": _squeeze, "mode": _mode, "rank": _rank, "shift": _shift, "diff": _diff,
    "duplicated": lambda self, keep="first": _truths(self, repeated([self.cells], self.rows, keep)),
}  # fmt: skip
for _name, _method in _METHODS.items():
    setattr(Series, _name, _method)


# Functions of pandas itself.
def _cut(column: Any, bins: Any, right: bool = True, labels: Any = None, include_lowest: bool = False) -> Any:
    if not isinstance(column, Series) or isinstance(bins, int | Standing | RandomVariable):
        refuse("pd.cut without a list of bounds")
    made = importlib.import_module("pandas").cut(
        np.array([], float), list(bins), right=right, labels=list(labels) if isinstance(labels, list) else labels,
        include_lowest=include_lowest,
    )  # fmt: skip
    names = list(range(len(bins) - 1)) if labels is False else made.categories.tolist()
    bounds = [(name, bins[place], bins[place + 1]) for place, name in enumerate(names)]
    found = Series([], column.rows, column.name)
    found.cells, found.hits = banded(column.cells, bounds, right, include_lowest)
    found.categorical = labels is not False
    return found


def _crosstab(
    index: Any, columns: Any, normalize: Any = False, margins: bool = False, margins_name: str = "All"
) -> Any:
    if not isinstance(index, Series) or not isinstance(columns, Series):
        refuse("pd.crosstab of anything but two columns")
    frame = Frame({0: index.cells, 1: index.beside(columns, exactly=True)}, index.rows)
    frame.hits = {place: (one.hits, one.categorical) for place, one in enumerate((index, columns))}
    data, rows, present = cross_counted(frame, normalize, margins_name if margins else None)
    return Frame(data, replace(rows, axis=replace(rows.axis, names=(index.name,))), present)


def _merge(left: Any, right: Any, how: str = "inner", on: Any = None, suffixes: Any = ("_x", "_y")) -> Any:
    if not is_frame(left):
        refuse("pd.merge of anything but frames")
    return (left if isinstance(left, Frame) else fixed(left)).merge(right, how, on, suffixes)


def _concat(objs: Any, ignore_index: bool = False) -> Any:
    if isinstance(objs, list | tuple) and objs and isinstance(objs[0], Series) and not ignore_index:
        return one_below_another([objs[0].standing_for(part) for part in objs])
    if not isinstance(objs, list | tuple) or not all(isinstance(part, Frame) for part in objs):
        refuse("pd.concat of anything but frames")
    return Frame(*stacked(objs))


def _isna(value: Any) -> Any:
    if isinstance(value, Standing):
        return value.isna()
    return negated(cell_of(value).known)


def _notna(value: Any) -> Any:
    return value.notna() if isinstance(value, Standing) else negated(_isna(value))


def _series(data: Any = None, index: Any = None, name: Any = None) -> Any:
    if isinstance(data, Series):
        return data.copy()
    if isinstance(data, Mapping):
        return labelled(list(data), [cell_of(value) for value in data.values()], name)
    values = list(data)
    if index is not None:
        return labelled(list(index), [cell_of(value) for value in values], name)
    return Series([cell_of(value) for value in values], Rows.all_of(Axis((None,) * len(values))), name)


def _data_frame(data: Any = None, **options: Any) -> Any:
    if isinstance(data, Frame) and not options:
        return data.copy()
    if not isinstance(data, Mapping) or options or not all(isinstance(part, Series) for part in data.values()):
        refuse("pd.DataFrame of anything but columns")
    columns = list(data.values())
    if any(not columns[0].rows.same_as(column.rows) for column in columns):
        refuse("pd.DataFrame of columns of different rows")
    return Frame({name: column.cells for name, column in data.items()}, columns[0].rows)


def _to_datetime(column: Any) -> Any:
    if not isinstance(column, Series) or not all(map(are_timestamps, column.cells)):
        refuse("pd.to_datetime of anything but dates")
    return column


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "cut": _cut, "crosstab": _crosstab, "isna": _isna, "isnull": _isna, "notna": _notna,
    "notnull": _notna, "Series": _series, "DataFrame": _data_frame, "merge": _merge, "concat": _concat,
    "to_datetime": _to_datetime, "to_numeric": lambda column: column.astype("float"),
}  # fmt: skip
"""By the names they have in pandas."""
