"""Texts and dates in columns, and the functions of pandas itself."""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from privug.model.variable import RandomVariable, refuse
from privug.program.traced.frames.cells import Cell, cell_of, mapped
from privug.program.traced.frames.columns import Column
from privug.program.traced.frames.pandas.frame import Frame, fixed
from privug.program.traced.frames.pandas.group import cross_counted, one_below_another, stacked
from privug.program.traced.frames.pandas.series import Series, labelled, observes_by_default
from privug.program.traced.frames.pandas.values import are_timestamps
from privug.program.traced.frames.rows import Axis, Rows, banded
from privug.program.traced.masks import OfStanding, Standing, both, negated, truth


# Texts and dates.
def _is_pattern(part: str) -> bool:
    return any(letter in part for letter in ".^$*+?{}[]\\|()")


def _contains(text: str, part: str, regex: bool = True, case: bool = True) -> bool:
    if regex and _is_pattern(part):
        refuse("str.contains() of a pattern")
    return part in text if case else part.lower() in text.lower()


VERDICTS: dict[str, Callable[..., bool]] = {
    "contains": _contains, "startswith": str.startswith, "endswith": str.endswith, "isdigit": str.isdigit,
    "isnumeric": str.isnumeric,
}  # fmt: skip
"""What holds of texts: of a missing one nothing does, from pandas 3.0 on."""
TEXTS: dict[str, Callable[..., Any]] = {
    "upper": str.upper, "lower": str.lower, "strip": str.strip, "title": str.title, "capitalize": str.capitalize,
    "lstrip": str.lstrip, "rstrip": str.rstrip, "zfill": str.zfill, "removeprefix": str.removeprefix,
    "removesuffix": str.removesuffix, "find": str.find, "ljust": str.ljust, "rjust": str.rjust, "len": len,
    "slice": lambda text, start=None, stop=None, step=None: text[start:stop:step],
    "replace": lambda text, old, new, regex=False: (
        refuse("str.replace() of a pattern") if regex else text.replace(old, new)),
    "count": lambda text, part: refuse("str.count() of a pattern") if _is_pattern(part) else text.count(part),
}  # fmt: skip


def _date_part(part: str) -> Callable[[Any], Any]:
    return lambda date: getattr(date, part, 0)


DATES: dict[str, Callable[[Any], Any]] = {
    **{part: _date_part(part) for part in ("year", "month", "day", "hour", "minute", "second")},
    "quarter": lambda date: (date.month + 2) // 3,
    **dict.fromkeys(("dayofweek", "weekday"), lambda date: date.weekday()),
}  # fmt: skip


def _part(text: str, key: Any) -> Any:
    """Return a letter, which may be missing, or a part of a text."""
    return None if isinstance(key, int) and not -len(text) <= key < len(text) else text[key]


class Texts(OfStanding):
    """`series.str`: methods of texts, on each of the texts that a cell may be."""

    def __init__(self, column: Series) -> None:
        self._column = column

    def __getitem__(self, key: Any) -> Any:
        return self._column.each(lambda cell: mapped(lambda text: _part(text, key), cell))

    def __getattr__(self, name: str) -> Any:
        function = VERDICTS.get(name) or TEXTS.get(name) or refuse(f"Series.str.{name}")

        def method(*arguments: Any, **options: Any) -> Any:
            if name in VERDICTS and not self._column.is_known and not observes_by_default():
                refuse("a look into missing texts")
            made = self._column.each(lambda cell: mapped(lambda text: function(text, *arguments, **options), cell))
            return made if name in TEXTS else made.each(lambda cell: Cell(both(cell.known, truth(cell.value))))

        return method


class Dates(OfStanding):
    """`series.dt`: parts of dates."""

    def __init__(self, column: Series) -> None:
        self._column = column

    def __getattr__(self, name: str) -> Any:
        function = DATES.get(name) or refuse(f"Series.dt.{name}")
        return self._column.each(lambda cell: mapped(function, cell))


for _name, _accessor in (("str", Texts), ("dt", Dates)):
    setattr(Series, _name, property(_accessor))


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
    cells, hits = banded(column.cells, bounds, right, include_lowest)
    made, levels = column.column.with_cells(cells), None if labels is False else tuple(names)
    return Series(replace(made, levels=levels, known_hits=tuple(hits)))


def _crosstab(
    index: Any, columns: Any, normalize: Any = False, margins: bool = False, margins_name: str = "All"
) -> Any:
    if not isinstance(index, Series) or not isinstance(columns, Series):
        refuse("pd.crosstab of anything but two columns")
    index.beside(columns, exactly=True)
    frame = Frame({0: index.column, 1: columns.column}, index.rows)
    data, rows, present = cross_counted(frame, normalize, margins_name if margins else None)
    return Frame.of_cells(data, replace(rows, axis=replace(rows.axis, names=(index.name,))), present)


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
    return Series(Column([cell_of(value) for value in values], Rows.all_of(Axis((None,) * len(values))), name))


def _data_frame(data: Any = None, **options: Any) -> Any:
    if isinstance(data, Frame) and not options:
        return data.copy()
    if not isinstance(data, Mapping) or options or not all(isinstance(part, Series) for part in data.values()):
        refuse("pd.DataFrame of anything but columns")
    columns = list(data.values())
    if any(not columns[0].rows.same_as(column.rows) for column in columns):
        refuse("pd.DataFrame of columns of different rows")
    return Frame({name: column.column for name, column in data.items()}, columns[0].rows)


def _to_datetime(column: Any) -> Any:
    if not isinstance(column, Series) or not all(map(are_timestamps, column.cells)):
        refuse("pd.to_datetime of anything but dates")
    return column


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "cut": _cut, "crosstab": _crosstab, "isna": _isna, "isnull": _isna, "notna": _notna, "notnull": _notna,
    "Series": _series, "DataFrame": _data_frame, "concat": _concat, "to_datetime": _to_datetime,
    "merge": lambda left, *arguments, **options: fixed(left).merge(*arguments, **options),
    "to_numeric": lambda column: column.astype("float"),
}  # fmt: skip
"""By the names they have in pandas."""
