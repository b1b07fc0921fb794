"""What the library itself is asked for, of plain values."""

import importlib
import itertools
import warnings
from typing import Any


def polars() -> Any:
    """Return the library, which whoever gets here has installed."""
    return importlib.import_module("polars")


def interval_names(breaks: list[Any], left_closed: bool) -> list[str]:
    """Return what cut() calls its bands."""
    inside = [breaks[0] - 1, *((low + high) / 2 for low, high in itertools.pairwise(breaks))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # cut() has another name in later versions
        found = polars().Series([*map(float, inside), float(breaks[-1] + 1)]).cut(breaks, left_closed=left_closed)
    names: list[str] = found.to_list()
    return names


def out_of_bounds(index: int) -> Exception:
    """Return the error of a row that is not there."""
    error: Exception = polars().exceptions.OutOfBoundsError(f"index {index} is out of bounds")
    return error


def is_plain_frame(value: Any) -> bool:
    """Say whether something is a frame of the library itself."""
    return isinstance(value, polars().DataFrame | polars().LazyFrame)


def is_plain_series(value: Any) -> bool:
    """Say whether something is a series of the library itself."""
    return isinstance(value, polars().Series)


def is_plain_expression(value: Any) -> bool:
    """Say whether something is an expression of the library itself."""
    return isinstance(value, polars().Expr)
