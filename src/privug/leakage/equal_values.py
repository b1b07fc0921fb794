"""Which values of a batch are equal: what Python holds equal, such as 1 and True, is one value."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from privug.model.batch import Batch, Column, Values
from privug.model.keys import key_of
from privug.model.node import Array
from privug.model.structure import LEAF, Structure
from privug.model.table import Row, Table

PLAIN = (tuple, list, dict, Row, Table)


def distinct_values(batch: Batch) -> tuple[Array, Sequence[Any]]:
    """Return a code for each sample and the distinct values; what Python holds equal, such as 1 and True, is one."""
    if batch.numbers() is not None:
        return batch.factorized()
    if _differ_by_columns(batch):
        codes, distinct = batch.coded()
        return codes, Values(distinct)
    codes, values = batch.factorized()
    places: dict[Hashable, int] = {}
    merged = [places.setdefault(key_of(value), len(places)) for value in values]
    if len(places) == len(values):
        return codes, values
    first = np.unique(merged, return_index=True)[1]
    return np.array(merged)[codes], [values[k] for k in first]


def _differ_by_columns(batch: Batch) -> bool:
    """Say whether values are equal just where all of their columns are, so that they need not be made to see it."""
    return _is_plain(batch.structure) and all(map(_tells_apart, batch.columns))


def _is_plain(structure: Structure) -> bool:
    return structure is LEAF or (structure.container in PLAIN and all(map(_is_plain, structure.children)))


def _tells_apart(column: Column) -> bool:
    if column.levels is None:
        return column.array.dtype != object
    return len({key_of(level) for level in column.levels}) == len(column.levels)
