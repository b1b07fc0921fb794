"""Leaving out, coarsening, swapping and synthesising cells of tables."""

import datetime
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate
from typing import Any

import numpy as np

from privug.arguments import LARGEST, Count, Positive, Probability, Size, check_takes, is_number, kinds_checked, shown
from privug.errors import ArgumentError, UnfitValue
from privug.mechanisms.plain_rows import (
    checked_columns,
    column,
    groups,
    is_frame,
    labels_of,
    like,
    names_of,
    reduced,
    rows_of,
    taken,
    with_columns,
)
from privug.model.categories import map_levels
from privug.model.variable import RandomVariable, refuse
from privug.prior.continuous import Uniform
from privug.prior.table import Array
from privug.program.logic import sample, where
from privug.program.traced.masks import Standing


def drop(records: Any, *columns: str) -> Any:
    """Return the rows without some columns: naive anonymisation.

    >>> drop([{"name": "Alice", "zip": 2300}], "name")
    [{'zip': 2300}]
    """
    if is_frame(records):
        return keep(records, *_without(map(str, records.columns), checked_columns(records, columns)))
    rows = rows_of(records)
    left_out = checked_columns(rows, columns)
    return like(records, [reduced(row, _without(names_of(row), left_out)) for row in rows])


def _without(names: Iterable[str], left_out: Sequence[str]) -> list[str]:
    return [name for name in names if name not in left_out]


def keep(records: Any, *columns: str) -> Any:
    """Return the rows with some columns only.

    >>> keep([{"name": "Alice", "zip": 2300, "ill": True}], "zip", "ill")
    [{'zip': 2300, 'ill': True}]
    """
    if is_frame(records):
        own = {str(name): name for name in records.columns}
        return records[[own[name] for name in checked_columns(records, columns)]]
    rows = rows_of(records)
    kept = checked_columns(rows, columns)
    return like(records, [reduced(row, kept) for row in rows])


def generalise(records: Any, **coarser: Callable[[Any], Any]) -> Any:
    """Return the rows with coarser values: `generalise(records, zip=prefix(2), age=bands(10))`.

    Every argument is a function from a value to a coarser one, such as those in `pv.mechanisms.anonymisers`.

    >>> from privug.mechanisms.anonymisers import bands, prefix
    >>> generalise([{"zip": "2300", "age": 42}], zip=prefix(2), age=bands(10))
    [{'zip': '23**', 'age': 40}]
    """
    table = records if is_frame(records) else rows_of(records)
    checked_columns(table, tuple(coarser))
    for name, function in coarser.items():
        if not callable(function):
            raise ArgumentError(
                f"generalise: {name} must be a function from a value to a coarser one, not {shown(function)}"
            )
        check_takes(f"generalise: {name}", function, 1)
    if isinstance(records, Standing):
        frame: Any = records
        return frame.assign(**{name: frame[name].map(function) for name, function in coarser.items()})
    rows = rows_of(table)
    made = {name: [applied(f, value) for value in column(rows, name)] for name, f in coarser.items()}
    return with_columns(records, rows, made)


def applied(function: Callable[[Any], Any], value: Any) -> Any:
    """Apply a function to a value, which while a program is traced may be random: then to each label."""
    if isinstance(value, RandomVariable) and value.node.levels is not None:
        return RandomVariable(map_levels(value.node, function))
    return function(value)


@kinds_checked
def suppress(records: Any, k: Count, columns: Any) -> Any:
    """Return the rows without those whose values in the columns occur fewer than k times.

    >>> suppress([{"zip": 2300}, {"zip": 2300}, {"zip": 2400}], 2, "zip")
    [{'zip': 2300}, {'zip': 2300}]
    """
    rows = rows_of(records)
    names = checked_columns(rows, columns)
    kept = sorted(place for places in groups(rows, names).values() if len(places) >= k for place in places)
    return taken(records, rows, kept)


@kinds_checked
def swap(records: Any, columns: Any, share: Probability) -> Any:
    """Exchange the cells of some columns, all together, between pairs of rows chosen at random.

    `share` is the part of the rows that take part. What the columns say together stays as it is in the
    table; what they say about the other columns is blurred. Dalenius and Reiss, 1982.

    >>> sorted(row["zip"] for row in swap([{"zip": 1}, {"zip": 2}, {"zip": 3}], "zip", share=1))
    [1, 2, 3]
    """
    rows = rows_of(records)
    names = checked_columns(rows, columns)
    pairs = int(share * len(rows) / 2)
    if not pairs:
        return with_columns(records, rows, {})
    drawn = sample(Array(Uniform(0, 1), len(rows)))
    if isinstance(drawn, RandomVariable):
        refuse("a random choice of rows")
    order = np.argsort(drawn)
    source = np.arange(len(rows))
    source[order[:pairs]], source[order[pairs : 2 * pairs]] = order[pairs : 2 * pairs], order[:pairs]
    cells = {name: column(rows, name) for name in names}
    return with_columns(records, rows, {name: [held[place] for place in source] for name, held in cells.items()})


Model = str | Mapping[str, Sequence[str]]


@kinds_checked
def synthesise(records: Any, size: Size | None = None, *, model: Model = "chain") -> Any:
    """Return rows drawn from tables of frequencies that were counted in the records.

    `model` says which columns each column depends on, as a dict; a column may depend on those before it. "chain" lets
    each depend on the one before, "independent" on none. A combination of values that never occurs is followed by
    whatever occurs in the column. All values are ones of the table: rare ones may still point to a person.

    >>> synthesise([{"zip": 2300, "sex": "f"}, {"zip": 2300, "sex": "f"}], 1)
    [{'zip': 2300, 'sex': 'f'}]
    """
    rows = rows_of(records)
    if not rows:
        raise ArgumentError("synthesise: the table must hold at least one row")
    count = len(rows) if size is None else size
    names = names_of(rows[0])
    parents = _parents(model, names, rows)
    if not count:
        return taken(records, rows, [])
    drawn = sample(Array(Uniform(0, 1), (count, len(names))))
    if isinstance(drawn, RandomVariable):
        refuse("a random choice of values")
    made: dict[str, list[Any]] = {}
    counted = {name: labels_of(column(rows, name), name) for name in names}
    for position, name in enumerate(names):
        table = _Frequencies(_keys({n: counted[n] for n in parents[name]}, len(rows)), counted[name])
        keys = _keys({n: made[n] for n in parents[name]}, count)
        made[name] = [table.value(key, level) for key, level in zip(keys, drawn[:, position], strict=True)]
    if is_frame(records):
        return type(records)(dict(zip(records.columns, made.values(), strict=True)))
    return with_columns(records, [rows[0]] * count, made)


def _parents(model: Any, names: Sequence[str], rows: Sequence[Any]) -> dict[str, Sequence[str]]:
    if model == "independent":
        return dict.fromkeys(names, ())
    if model == "chain":
        return {name: names[max(0, place - 1) : place] for place, name in enumerate(names)}
    if not isinstance(model, Mapping):
        raise ArgumentError(
            f"synthesise: model must be 'chain', 'independent' or a dict of columns, not {shown(model)}"
        )
    found: dict[str, Sequence[str]] = dict.fromkeys(names, ())
    for name, needed in model.items():
        checked_columns(rows, name, "model")
        found[name] = checked_columns(rows, needed, "model") if needed else ()
        late = [other for other in found[name] if names.index(other) >= names.index(name)]
        if late:
            raise ArgumentError(f"synthesise: {name!r} can only depend on columns before it, not on {late[0]!r}")
    return found


def _keys(columns: Mapping[str, Sequence[Any]], count: int) -> list[tuple[Any, ...]]:
    return list(zip(*columns.values(), strict=True)) if columns else [()] * count


class _Frequencies:
    """How often each value of a column occurs, given the values of others."""

    def __init__(self, keys: Sequence[tuple[Any, ...]], cells: Sequence[Any]) -> None:
        found: dict[tuple[Any, ...] | None, Counter[Any]] = defaultdict(Counter)
        for key, value in zip(keys, cells, strict=True):
            found[key][value] += 1
            found[None][value] += 1
        self._values = {key: list(counts) for key, counts in found.items()}
        self._totals = {key: np.array(list(accumulate(counts.values()))) for key, counts in found.items()}

    def value(self, key: tuple[Any, ...], level: float) -> Any:
        """Return the value at a level between 0 and 1."""
        held = key if key in self._values else None
        totals = self._totals[held]
        return self._values[held][int(np.searchsorted(totals, level * totals[-1], side="right"))]


MASK = "*"

Coarser = Callable[[Any], Any]


@kinds_checked
def prefix(length: Size, mask: str = MASK) -> Coarser:
    """Keep the first characters of a text and mask the others.

    >>> prefix(2)("2300")
    '23**'
    """
    return lambda value: str(value)[:length] + mask * max(0, len(str(value)) - length)


@kinds_checked
def bands(width: Positive, start: float = 0) -> Coarser:
    """Put numbers into bands of equal width; a band is named by its lower end.

    >>> bands(10)(42), bands(10, start=5)(42)
    (40, 35)
    """
    return lambda value: (_number("bands", value) - start) // width * width + start


@kinds_checked
def cuts(edges: Iterable[float]) -> Coarser:
    """Put numbers into bands between edges; a band is named by its lower end, minus infinity for the first.

    >>> cuts([18, 65])(42), cuts([18, 65])(17)
    (18, -inf)
    """
    ends = list(edges)
    if not ends or not all(map(is_number, ends)):
        raise ArgumentError(f"cuts: the edges must be a list of numbers, one at least, not {shown(edges)}")
    ends.sort()
    return lambda value: reduce(lambda band, edge: where(_number("cuts", value) >= edge, edge, band), ends, -math.inf)


def _number(where: str, value: Any) -> Any:
    """Return a value that is put into bands; random ones and whole columns are numbers, too."""
    is_too_large = isinstance(value, int) and abs(value) > LARGEST
    if is_too_large or value is None or isinstance(value, str | bytes | list | tuple | set | dict):
        raise UnfitValue(f"{where}: a number is needed, not {shown(value)}")
    return value


def month(value: Any) -> str:
    """Keep year and month of a date, which may be a text such as 1954-06-15.

    >>> month("1954-06-15"), month(datetime.date(1954, 6, 15))
    ('1954-06', '1954-06')
    """
    return _date(value, 7)


def year(value: Any) -> str:
    """Keep the year of a date, which may be a text such as 1954-06-15.

    >>> year("1954-06-15")
    '1954'
    """
    return _date(value, 4)


def _date(value: Any, length: int) -> str:
    text = value.isoformat() if isinstance(value, datetime.date) else value
    try:
        return datetime.date.fromisoformat(text[:10]).isoformat()[:length]
    except (TypeError, ValueError, IndexError):
        raise UnfitValue(f"a date or a text such as 1954-06-15 is needed, not {shown(value)}") from None


@kinds_checked
def labels(groups: Mapping[Any, Iterable[Any]]) -> Coarser:
    """Replace values by the name of the group they belong to; what is in no group stays as it is.

    >>> labels({"Zealand": ["2300", "4000"], "Jutland": ["8000"]})("4000")
    'Zealand'
    """
    names: dict[Any, Any] = {}
    for name, values in groups.items():
        try:
            names |= dict.fromkeys(values, name)
        except TypeError:  # no list, or one of what cannot be looked up
            raise ArgumentError(f"labels: group {shown(name)} must be a list of values, not {shown(values)}") from None
    return lambda value: names.get(value, value) if isinstance(value, Hashable) else value


def everything(value: Any) -> str:
    """Mask any value.

    >>> everything("2300")
    '*'
    """
    return MASK


@dataclass(frozen=True)
class Hierarchy:
    """Ways to make a value coarser, each applied to the value itself, from fine to coarse. Level 0 is the value.

    >>> zips = Hierarchy(prefix(3), prefix(2), everything)
    >>> [zips.level(k)("2300") for k in range(4)]
    ['2300', '230*', '23**', '*']
    """

    steps: tuple[Coarser, ...]

    def __init__(self, *steps: Coarser) -> None:
        if not steps or not all(callable(step) for step in steps):
            raise ArgumentError("Hierarchy: give functions from a value to a coarser one, such as prefix(2)")
        object.__setattr__(self, "steps", steps)

    @kinds_checked
    def level(self, number: Size) -> Coarser:
        """Return the function of a level."""
        if number > len(self.steps):
            raise ArgumentError(f"level must be at most {len(self.steps)}, not {number}")
        return (lambda value: value) if number == 0 else (lambda value: applied(self.steps[number - 1], value))
