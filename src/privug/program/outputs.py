"""What programs return, as plain values: frames taken apart, iterators listed, and marks for what is not there."""

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from privug.model.sparse import ABSENT as ABSENT  # those who ask for outputs find it here
from privug.model.sparse import NoValue as NoValue
from privug.prior.frame import is_missing

SCALARS = frozenset({bool, int, float, str, bytes, complex, type(None)})


FAILED = NoValue("the program raised")  # where such inputs are to be excluded
FAILURES = (Exception, SystemExit, GeneratorExit)
"""What a program raises itself, sys.exit() included: anything else, such as Ctrl-C, was raised to stop all of it."""


def settled(value: Any) -> Any:
    """Return the output of a program as plain values, which can be looked at more than once and be compared.

    Numbers of NumPy become Python's, sets frozen, iterators lists. A pandas or polars frame becomes a dict of its
    columns; a column becomes a list, or a dict if its index has labels of its own, in the order of the labels. A cell
    without a value is None.
    """
    kind = type(value)
    if kind in SCALARS:
        return value
    if kind is list or kind is tuple or (isinstance(value, tuple) and hasattr(kind, "_make")):
        return value if SCALARS.issuperset(map(type, value)) else _rebuilt(getattr(kind, "_make", kind), value)
    if kind is dict:
        parts = [settled(part) for part in value.values()]
        return value if _are_same(parts, value.values()) else dict(zip(value, parts, strict=True))
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, set):
        return frozenset(value)
    if isinstance(value, bytearray):
        return bytes(value)
    if isinstance(value, Iterator):
        return [settled(part) for part in value]
    return _without_frames(value)


def _rebuilt(make: Callable[[list[Any]], Any], value: Sequence[Any]) -> Any:
    parts = [settled(part) for part in value]
    return value if _are_same(parts, value) else make(parts)


def _are_same(parts: Sequence[Any], others: Any) -> bool:
    return all(part is other for part, other in zip(parts, others, strict=True))


def _without_frames(value: Any) -> Any:
    """Take frames and series apart; whoever returns one has imported the library it is of."""
    pandas, polars = sys.modules.get("pandas"), sys.modules.get("polars")
    if pandas is not None:
        if isinstance(value, pandas.DataFrame):
            columns = [_of_series(value.iloc[:, place], pandas) for place in range(value.shape[1])]
            if not columns and len(value):  # its labels are all there is to see
                return _cells(value.index.tolist())
            return _labelled(value.columns.tolist(), columns)
        if isinstance(value, pandas.Series):
            return _of_series(value, pandas)
        if isinstance(value, pandas.Index | pandas.api.extensions.ExtensionArray):
            return _cells(value.tolist())
        if value is pandas.NA or value is pandas.NaT:
            return None
    if polars is not None:
        if isinstance(value, polars.LazyFrame):
            value = value.collect()
        if isinstance(value, polars.DataFrame):
            return {series.name: _cells(series.to_list()) for series in value.get_columns()}
        if isinstance(value, polars.Series):
            return _cells(value.to_list())
    return value


def _of_series(series: Any, pandas: Any) -> Any:
    cells, index = _cells(series.tolist()), series.index
    if isinstance(index, pandas.RangeIndex) and index.start == 0 and index.step == 1:
        return cells
    return _labelled(_cells(index.tolist()), cells)


def _labelled(labels: list[Any], values: list[Any]) -> Any:
    """Return values by their labels; in pairs where a label stands for several."""
    pairs = list(zip(labels, values, strict=True))
    return dict(pairs) if len(set(labels)) == len(labels) else pairs


def _cells(cells: list[Any]) -> list[Any]:
    return [None if is_missing(cell) else settled(cell) for cell in cells]


def is_same(left: Any, right: Any) -> bool:
    """Say whether two outputs are the same value to the last bit."""
    if left is right:
        return True
    if type(left) is not type(right):
        return False
    if isinstance(left, int | str):
        return bool(left == right)
    if isinstance(left, np.ndarray) and left.dtype != object:
        same = left.dtype == right.dtype and left.shape == right.shape
        return same and bool(np.array_equal(left, right, equal_nan=left.dtype.kind == "f"))
    if isinstance(left, dict):
        return list(left) == list(right) and all(is_same(left[key], right[key]) for key in left)
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(is_same, left, right))
    try:
        return bool(left == right) or (left != left and right != right)
    except (TypeError, ValueError):  # an object that compares part by part
        return repr(left) == repr(right)
