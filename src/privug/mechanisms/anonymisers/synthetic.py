"""Synthetic data: rows drawn from a model that was fitted to a table."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from privug.arguments import kinds_checked, shown
from privug.errors import ArgumentError
from privug.mechanisms.tables import (
    checked_columns,
    checked_size,
    column,
    is_frame,
    labels_of,
    names_of,
    rows_of,
    taken,
    with_columns,
)
from privug.model.variable import RandomVariable, refuse
from privug.prior.continuous import Uniform
from privug.prior.table import Array
from privug.program.drawing import sample

Model = str | Mapping[str, Sequence[str]]


@kinds_checked
def synthesise(records: Any, size: int | None = None, *, model: Model = "chain") -> Any:
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
    count = len(rows) if size is None else checked_size(size, "size", 0)
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
