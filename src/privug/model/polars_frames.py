"""Tables as frames of polars."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from privug.errors import PriorError
from privug.model.framed import FrameColumn, places_of


def frames(columns: Mapping[str, FrameColumn], sizes: Sequence[int]) -> Iterator[Any]:
    """Yield a frame for each sample: parts of one long frame, which share its memory and never change."""
    long = pl.DataFrame([_cells(name, column).alias(name) for name, column in columns.items()])
    return (long.slice(start, stop - start) for start, stop in places_of(sizes))


def _cells(name: str, column: FrameColumn) -> Any:
    if column.labels is not None:
        try:
            labels = pl.Series(list(column.labels), dtype=None if column.labels else pl.String)
        except TypeError:
            raise PriorError(f"the column {name!r} holds values of several types; polars takes one") from None
        return labels.gather(column.flat)
    numbers = pl.Series(column.flat)
    if column.holes is None:
        return numbers
    return pl.select(pl.when(pl.Series(column.holes)).then(None).otherwise(numbers)).to_series()
