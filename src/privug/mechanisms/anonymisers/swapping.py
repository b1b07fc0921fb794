"""Swapping: cells exchanged between randomly chosen pairs of rows."""

from typing import Any

import numpy as np

from privug.arguments import kinds_checked
from privug.errors import ArgumentError
from privug.mechanisms.tables import checked_columns, column, rows_of, with_columns
from privug.model.variable import RandomVariable, refuse
from privug.prior.continuous import Uniform
from privug.prior.table import Array
from privug.program.drawing import sample


@kinds_checked
def swap(records: Any, columns: Any, share: float) -> Any:
    """Exchange the cells of some columns, all together, between pairs of rows chosen at random.

    `share` is the part of the rows that take part. What the columns say together stays as it is in the
    table; what they say about the other columns is blurred. Dalenius and Reiss, 1982.

    >>> sorted(row["zip"] for row in swap([{"zip": 1}, {"zip": 2}, {"zip": 3}], "zip", share=1))
    [1, 2, 3]
    """
    rows = rows_of(records)
    names = checked_columns(rows, columns)
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
        raise ArgumentError(f"swap: share must lie between 0 and 1, not {share!r}")
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
