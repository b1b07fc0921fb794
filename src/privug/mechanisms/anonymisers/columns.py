"""Leaving out columns and rows, and making values coarser."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from privug.arguments import check_takes, kinds_checked, shown
from privug.errors import ArgumentError
from privug.mechanisms.tables import (
    checked_columns,
    checked_size,
    column,
    groups,
    is_frame,
    like,
    names_of,
    reduced,
    rows_of,
    taken,
    with_columns,
)
from privug.model.categories import map_levels
from privug.model.variable import RandomVariable
from privug.program.traced.standing import Standing


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
        return records.assign(**{name: records[name].map(function) for name, function in coarser.items()})
    rows = rows_of(table)
    made = {name: [applied(f, value) for value in column(rows, name)] for name, f in coarser.items()}
    return with_columns(records, rows, made)


def applied(function: Callable[[Any], Any], value: Any) -> Any:
    """Apply a function to a value, which while a program is traced may be random: then to each label."""
    if isinstance(value, RandomVariable) and value.node.levels is not None:
        return RandomVariable(map_levels(value.node, function))
    return function(value)


@kinds_checked
def suppress(records: Any, k: int, columns: Any) -> Any:
    """Return the rows without those whose values in the columns occur fewer than k times.

    >>> suppress([{"zip": 2300}, {"zip": 2300}, {"zip": 2400}], 2, "zip")
    [{'zip': 2300}, {'zip': 2300}]
    """
    rows = rows_of(records)
    names = checked_columns(rows, columns)
    checked_size(k, "k")
    kept = sorted(place for places in groups(rows, names).values() if len(places) >= k for place in places)
    return taken(records, rows, kept)
