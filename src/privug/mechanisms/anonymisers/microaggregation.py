"""Microaggregation: numbers replaced by the mean of a few similar rows."""

from typing import Any

import numpy as np

from privug.arguments import kinds_checked
from privug.errors import ArgumentError
from privug.mechanisms.tables import checked_columns, checked_size, column, rows_of, with_columns
from privug.model.node import Array


@kinds_checked
def microaggregate(records: Any, k: int, columns: Any) -> Any:
    """Replace the numbers in some columns by their means over groups of at least k similar rows.

    The groups are made by MDAV: around the row farthest from the mean of all, then around the row farthest from
    that one, and so on, each with its k - 1 nearest rows; columns are scaled to equal spread. Domingo-Ferrer and
    Mateo-Sanz, 2002.

    >>> microaggregate([{"age": age} for age in (20, 22, 40, 44)], 2, "age")
    [{'age': 21.0}, {'age': 21.0}, {'age': 42.0}, {'age': 42.0}]
    """
    rows = rows_of(records)
    names = checked_columns(rows, columns)
    checked_size(k, "k")
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
