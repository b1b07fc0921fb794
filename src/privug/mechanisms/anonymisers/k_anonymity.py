"""k-anonymity, l-diversity and t-closeness, and what achieves them: Mondrian and microaggregation."""

import math
from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from typing import Any, Literal

import numpy as np

from privug.arguments import Count, kinds_checked
from privug.errors import ArgumentError
from privug.mechanisms.anonymisers.coarsening import MASK
from privug.mechanisms.plain_rows import checked_columns, column, groups, labels_of, rows_of, with_columns
from privug.model.node import Array


@kinds_checked
def k_ano(records: Any, k: Count, columns: Any, mask: Any = MASK) -> Any:
    """Mask whole columns until every combination of their values occurs at least k times.

    Sets of columns are looked at by increasing size; a set in which some combination of values occurs fewer than k
    times has all its columns masked, for everyone. Masked columns distinguish nobody, so that larger sets are looked
    at without them.

    >>> people = [("2300", "f"), ("2300", "m"), ("2300", "f"), ("2400", "m")]
    >>> k_ano([{"zip": z, "sex": s} for z, s in people], 2, ["zip", "sex"])[0]
    {'zip': '*', 'sex': 'f'}
    """
    rows = rows_of(records)
    names = checked_columns(rows, columns)
    masked = masked_columns({name: list(labels_of(column(rows, name), name)) for name in names}, k)
    return with_columns(records, rows, {name: [mask] * len(rows) for name in masked})


def masked_columns(values: dict[str, list[Any]], k: int) -> set[str]:
    """Return the columns that `k_ano` masks."""
    masked: set[str] = set()
    for size in range(1, len(values) + 1):
        for subset in combinations(values, size):
            if masked.isdisjoint(subset) and _is_rare(subset, values, k):
                masked.update(subset)
    return masked


def _is_rare(subset: Sequence[str], values: dict[str, list[Any]], k: int) -> bool:
    """Return whether some combination of values occurs fewer than k times."""
    chosen = [values[name] for name in subset]
    counts = Counter(chosen[0] if len(chosen) == 1 else zip(*chosen, strict=True))
    return min(counts.values(), default=k) < k


def anonymity(records: Any, columns: Any) -> int:
    """Return the largest k for which a table is k-anonymous: the size of its smallest group of equal rows.

    >>> anonymity([{"zip": 2300}, {"zip": 2300}, {"zip": 2400}], "zip")
    1
    """
    rows = rows_of(records)
    return min(map(len, groups(rows, checked_columns(rows, columns)).values()), default=0)


@kinds_checked
def is_k_anonymous(records: Any, k: Count, columns: Any) -> bool:
    """Return whether every combination of values in the columns occurs at least k times, or never.

    >>> is_k_anonymous([{"zip": 2300}, {"zip": 2300}], 2, "zip")
    True
    """
    rows = rows_of(records)
    return not rows or anonymity(rows, columns) >= k


@kinds_checked
def diversity(records: Any, columns: Any, secret: str, *, kind: Literal["distinct", "entropy"] = "distinct") -> float:
    """Return the largest l for which a table is l-diverse: the least variety of secrets among rows that look alike.

    "distinct" counts values; "entropy" is the exponential of their entropy, which is lower where some are rare.
    Machanavajjhala and others, 2007.

    >>> rows = [{"zip": 1, "ill": True}, {"zip": 1, "ill": False}, {"zip": 2, "ill": True}, {"zip": 2, "ill": True}]
    >>> diversity(rows, "zip", "ill")
    1.0
    """
    found = [_VARIETIES[kind](Counter(secrets)) for secrets in _secrets(records, columns, secret)]
    return min(found, default=0.0)


def _effective(counts: Counter[Any]) -> float:
    total = counts.total()
    return math.exp(-math.fsum(n / total * math.log(n / total) for n in counts.values()))


_VARIETIES = {"distinct": lambda counts: float(len(counts)), "entropy": _effective}


def _secrets(records: Any, columns: Any, secret: str) -> list[list[Any]]:
    """Return the secrets of each group of rows that look alike."""
    rows = rows_of(records)
    names = checked_columns(rows, columns)
    checked_columns(rows, secret, "secret")
    cells = column(rows, secret)
    return [[cells[place] for place in places] for places in groups(rows, names).values()]


@kinds_checked
def is_l_diverse(
    records: Any,
    l: float,  # noqa: E741
    columns: Any,
    secret: str,
    *,
    kind: Literal["distinct", "entropy"] = "distinct",
) -> bool:
    """Return whether all rows that look alike have at least l different secrets, or secrets worth so many.

    >>> is_l_diverse([{"zip": 1, "ill": True}, {"zip": 1, "ill": False}], 2, "zip", "ill")
    True
    """
    rows = rows_of(records)
    return not rows or diversity(rows, columns, secret, kind=kind) >= l - 1e-9


@kinds_checked
def closeness(records: Any, columns: Any, secret: str) -> float:
    """Return the smallest t for which a table is t-close.

    That is the largest distance of the secrets of rows that look alike from those of the whole table: the earth mover's
    distance along the order of numbers, between 0 and 1, and half the sum of the differences for labels. Li, Li and
    Venkatasubramanian, 2007.

    >>> rows = [{"zip": 1, "ill": "yes"}, {"zip": 1, "ill": "no"}, {"zip": 2, "ill": "no"}, {"zip": 2, "ill": "no"}]
    >>> closeness(rows, "zip", "ill")
    0.25
    """
    found = _secrets(records, columns, secret)
    everyone = [value for secrets in found for value in secrets]
    numeric = all(isinstance(value, int | float | np.number) and not isinstance(value, bool) for value in everyone)
    values = sorted(set(everyone)) if numeric else list(dict.fromkeys(everyone))
    whole = _shares(everyone, values)
    return max((_distance(_shares(secrets, values) - whole, numeric) for secrets in found), default=0.0)


def _shares(secrets: Sequence[Any], values: Sequence[Any]) -> Any:
    counts = Counter(secrets)
    return np.array([counts[value] for value in values]) / len(secrets)


def _distance(differences: Any, numeric: bool) -> float:
    if numeric and len(differences) > 1:
        return float(np.abs(np.cumsum(differences)[:-1]).sum() / (len(differences) - 1))
    return float(np.abs(differences).sum() / 2)


@kinds_checked
def is_t_close(records: Any, t: float, columns: Any, secret: str) -> bool:
    """Return whether the secrets of rows that look alike are never further than t from those of the whole table.

    >>> is_t_close([{"zip": 1, "ill": "yes"}, {"zip": 2, "ill": "no"}], 0.2, "zip", "ill")
    False
    """
    return closeness(records, columns, secret) <= t + 1e-9


Ranks = dict[str, tuple[list[Any], Array]]


@kinds_checked
def mondrian(records: Any, k: Count, columns: Any) -> Any:
    """Cut the rows in halves at the median of one column after the other, as long as both halves hold k rows.

    The cells of the columns become what the rows of a box have in common: the pair of the smallest and the largest
    value, or for labels the tuple of all that occur. The order of the rows stays. LeFevre and others, 2006.

    >>> ages = [{"age": age} for age in (20, 22, 40, 44)]
    >>> mondrian(ages, 2, "age")
    [{'age': (20, 22)}, {'age': (20, 22)}, {'age': (40, 44)}, {'age': (40, 44)}]
    """
    rows = rows_of(records)
    names = checked_columns(rows, columns)
    if not rows:
        return with_columns(records, rows, {})
    ranks = {name: _ranked(labels_of(column(rows, name), name)) for name in names}
    cells: dict[str, list[Any]] = {name: [None] * len(rows) for name in names}
    for box in _boxes(np.arange(len(rows)), ranks, k):
        for name, (values, places) in ranks.items():
            common = _common([values[rank] for rank in np.unique(places[box])])
            for place in box:
                cells[name][place] = common
    return with_columns(records, rows, cells)


def _ranked(cells: Sequence[Any]) -> tuple[list[Any], Array]:
    """Return the distinct values in order and the rank of each cell among them."""
    numeric = all(isinstance(cell, int | float | np.number) and not isinstance(cell, bool) for cell in cells)
    values = sorted(set(cells)) if numeric else sorted(set(cells), key=lambda value: (str(type(value)), str(value)))
    ranks = {value: rank for rank, value in enumerate(values)}
    return values, np.array([ranks[cell] for cell in cells], np.int64)


def _common(values: Sequence[Any]) -> tuple[Any, ...]:
    numeric = all(isinstance(value, int | float | np.number) and not isinstance(value, bool) for value in values)
    return (values[0], values[-1]) if numeric else tuple(values)


def _boxes(rows: Array, ranks: Ranks, k: int) -> list[Array]:
    """Return the rows in boxes that cannot be cut any more."""
    done, waiting = [], [rows]
    while waiting:
        box = waiting.pop()
        halves = _halves(box, ranks, k)
        if halves is None:
            done.append(box)
        else:
            waiting.extend(halves)
    return [box for box in done if len(box)]


def _halves(box: Array, ranks: Ranks, k: int) -> tuple[Array, Array] | None:
    """Cut a box at the median of its widest column that allows it, relative to the whole table."""
    widths = {
        name: float(np.ptp(places[box])) / max(1, len(values) - 1)
        for name, (values, places) in ranks.items()
        if len(box)
    }
    for name in sorted(widths, key=lambda name: -widths[name]):
        places = ranks[name][1][box]
        lower = places <= np.sort(places)[(len(box) - 1) // 2]
        if k <= int(lower.sum()) <= len(box) - k:
            return box[lower], box[~lower]
    return None


@kinds_checked
def microaggregate(records: Any, k: Count, columns: Any) -> Any:
    """Replace the numbers in some columns by their means over groups of at least k similar rows.

    The groups are made by MDAV: around the row farthest from the mean of all, then around the row farthest from
    that one, and so on, each with its k - 1 nearest rows; columns are scaled to equal spread. Domingo-Ferrer and
    Mateo-Sanz, 2002.

    >>> microaggregate([{"age": age} for age in (20, 22, 40, 44)], 2, "age")
    [{'age': 21.0}, {'age': 21.0}, {'age': 42.0}, {'age': 42.0}]
    """
    rows = rows_of(records)
    names = checked_columns(rows, columns)
    if not rows:
        return with_columns(records, rows, {})
    numbers = _numbers(rows, names)
    means = np.empty_like(numbers)
    for group in _groups(numbers, k):
        means[group] = numbers[group].mean(axis=0)
    return with_columns(records, rows, dict(zip(names, means.T.tolist(), strict=True)))


def _numbers(rows: list[Any], names: tuple[str, ...]) -> Array:
    try:
        numbers = np.array([column(rows, name) for name in names], float).T
    except (TypeError, ValueError):
        raise ArgumentError(f"microaggregate: the columns {', '.join(names)} must hold numbers") from None
    if not np.isfinite(numbers).all():
        raise ArgumentError(f"microaggregate: the columns {', '.join(names)} must hold finite numbers")
    return numbers


def _groups(numbers: Array, k: int) -> list[Array]:
    """Return the rows in groups of k, the last ones of up to 2 k - 1."""
    spread = numbers.std(axis=0)
    points = (numbers - numbers.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    left, found = np.arange(len(points)), []
    while len(left) >= 3 * k:
        far = _farthest(points[left], points[left].mean(axis=0))
        start = points[left[far]]
        for _ in range(2):
            group = np.argsort(_distances(points[left], start), kind="stable")[:k]
            found.append(left[group])
            left = np.delete(left, group)
            start = points[left[_farthest(points[left], start)]]
    if len(left) >= 2 * k:
        start = points[left[_farthest(points[left], points[left].mean(axis=0))]]
        group = np.argsort(_distances(points[left], start), kind="stable")[:k]
        found.append(left[group])
        left = np.delete(left, group)
    return [*found, left]


def _distances(points: Array, start: Array) -> Array:
    return np.asarray(((points - start) ** 2).sum(axis=1))


def _farthest(points: Array, start: Array) -> int:
    return int(_distances(points, start).argmax())
