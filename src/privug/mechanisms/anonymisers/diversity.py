"""l-diversity and t-closeness: how much the secrets vary within rows that look alike."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from privug.arguments import kinds_checked
from privug.errors import ArgumentError
from privug.mechanisms.tables import checked_columns, column, groups, rows_of


@kinds_checked
def diversity(records: Any, columns: Any, secret: str, *, kind: str = "distinct") -> float:
    """Return the largest l for which a table is l-diverse: the least variety of secrets among rows that look alike.

    "distinct" counts values; "entropy" is the exponential of their entropy, which is lower where some are rare.
    Machanavajjhala and others, 2007.

    >>> rows = [{"zip": 1, "ill": True}, {"zip": 1, "ill": False}, {"zip": 2, "ill": True}, {"zip": 2, "ill": True}]
    >>> diversity(rows, "zip", "ill")
    1.0
    """
    if kind not in _VARIETIES:
        raise ArgumentError(f"diversity: kind must be 'distinct' or 'entropy', not {kind!r}")
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
def is_l_diverse(records: Any, l: float, columns: Any, secret: str, *, kind: str = "distinct") -> bool:  # noqa: E741
    """Say whether all rows that look alike have at least l different secrets, or secrets worth so many.

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
    """Say whether the secrets of rows that look alike are never further than t from those of the whole table.

    >>> is_t_close([{"zip": 1, "ill": "yes"}, {"zip": 2, "ill": "no"}], 0.2, "zip", "ill")
    False
    """
    return closeness(records, columns, secret) <= t + 1e-9
