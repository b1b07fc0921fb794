"""k-anonymity: every combination of values that someone may know fits at least k rows."""

from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from typing import Any

from privug.arguments import kinds_checked
from privug.mechanisms.anonymisers.hierarchies import MASK
from privug.mechanisms.tables import checked_columns, checked_size, column, groups, labels_of, rows_of, with_columns


@kinds_checked
def k_ano(records: Any, k: int, columns: Any, mask: Any = MASK) -> Any:
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
    checked_size(k, "k")
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
    """Say whether some combination of values occurs fewer than k times."""
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
def is_k_anonymous(records: Any, k: int, columns: Any) -> bool:
    """Say whether every combination of values in the columns occurs at least k times, or never.

    >>> is_k_anonymous([{"zip": 2300}, {"zip": 2300}], 2, "zip")
    True
    """
    checked_size(k, "k")
    rows = rows_of(records)
    return not rows or anonymity(rows, columns) >= k
