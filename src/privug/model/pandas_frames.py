"""Tables as frames of pandas, with the types that columns have after a file was read."""

import datetime
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from privug.model.framed import FrameColumn, places_of

_COPIES_ON_WRITE = int(pd.__version__.partition(".")[0]) >= 3


def frames(columns: Mapping[str, FrameColumn], sizes: Sequence[int]) -> Iterator[Any]:
    """Yield a frame for each sample: parts of one long frame, which is several times quicker than to make each."""
    long = pd.DataFrame({name: _cells(column) for name, column in columns.items()}, copy=False)
    index = pd.RangeIndex(0)
    for start, stop in places_of(sizes):
        part = long.iloc[start:stop]
        if _COPIES_ON_WRITE:
            index = index if len(index) == stop - start else pd.RangeIndex(stop - start)
            part.index = index
            yield part
        else:
            yield part.reset_index(drop=True)


def _cells(column: FrameColumn) -> Any:
    if column.labels is None:
        return column.with_nan()
    return _labels(column.labels).take(column.flat).array


def _labels(labels: tuple[Any, ...]) -> Any:
    there = [label for label in labels if label is not None]
    if there and all(isinstance(label, datetime.date) for label in there):
        return pd.Series(pd.to_datetime(list(labels)))
    if all(isinstance(label, str) for label in there):
        return pd.Series(list(labels), dtype="str" if _COPIES_ON_WRITE else object)
    objects = np.empty(len(labels), object)
    objects[:] = [np.nan if label is None else label for label in labels]
    return pd.Series(objects, dtype=object)
