"""Whether two outputs of a program are the same value: numbers up to rounding, containers whatever their types."""

import math
from collections.abc import Sequence
from enum import Enum
from typing import Any

import numpy as np

from privug.model.node import Array
from privug.model.structure import flatten

TOLERANCE = 1e-9


def scales_of(predicted: Sequence[Any], typical: float | None = None) -> list[float]:
    """Return how large each output is: as large as the largest, or as itself if it is beyond what is typical."""
    own = [_magnitude(value) for value in predicted]
    return [max(own)] * len(own) if typical is None and own else [max(size, typical or 0.0) for size in own]


def _magnitude(value: Any) -> float:
    sizes = [0.0]
    for leaf in flatten(value)[1]:
        if isinstance(leaf, int | float | np.ndarray) and np.asarray(leaf).dtype.kind in "bif":
            finite = np.abs(np.asarray(leaf, float))
            sizes.append(float(np.max(finite[np.isfinite(finite)], initial=0.0)))
    return max(sizes)


def same(left: Any, right: Any, scale: float) -> bool:
    """Compare two values, numbers up to rounding relative to how large outputs are."""
    if _is_numeric(left) and _is_numeric(right):
        return left.shape == right.shape and _same_numbers(left, right, scale)
    left, right = _simplified(left), _simplified(right)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(same(a, b, scale) for a, b in zip(left, right, strict=True))
    if isinstance(left, dict) and isinstance(right, dict):
        return list(left) == list(right) and all(same(left[key], right[key], scale) for key in left)
    numbers = isinstance(left, int | float) and isinstance(right, int | float)
    if not numbers or isinstance(left, Enum) or isinstance(right, Enum):
        return type(left) is type(right) and bool(left == right)
    if isinstance(left, int) and isinstance(right, int):
        return left == right
    return (math.isnan(left) and math.isnan(right)) or math.isclose(
        left, right, rel_tol=TOLERANCE, abs_tol=TOLERANCE * scale
    )


def _is_numeric(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in "bif"


def _same_numbers(left: Array, right: Array, scale: float) -> bool:
    """Compare arrays number by number: whole numbers exactly, others up to rounding."""
    if left.dtype.kind != "f" and right.dtype.kind != "f":
        return np.array_equal(left, right)
    with np.errstate(invalid="ignore"):  # infinite ones are compared as they are
        room = TOLERANCE * np.maximum(np.maximum(np.abs(left), np.abs(right)), scale)
        close = (left == right) | ((np.abs(left - right) <= room) & np.isfinite(room))
    return bool(np.all(close | (np.isnan(left) & np.isnan(right))))


def _simplified(value: Any) -> Any:
    """Forget container types that a program's reader would not tell apart."""
    if isinstance(value, np.ndarray):
        return value.tolist() if value.ndim else value.item()
    if isinstance(value, np.generic):
        return value.item()
    return list(value) if isinstance(value, tuple) else value
