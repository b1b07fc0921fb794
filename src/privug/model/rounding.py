"""Python's and NumPy's `round`, on arrays."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from privug.model.node import Array
from privug.model.operations import whole_numbers

EXACT_DIGITS = 22  # powers of ten up to here are exact as floats


@dataclass(frozen=True)
class NumpyRound:
    """Rounds as NumPy rounds its own numbers: by scaling, which moves values such as 46.15 onto a tie."""

    digits: int

    def __call__(self, array: Array) -> Array:
        result: Array = np.round(array, self.digits)
        return result


@dataclass(frozen=True)
class PythonRound:
    """Rounds arrays exactly as `round(x, digits)` rounds numbers.

    NumPy scales by a power of ten before it rounds, which moves values such as 0.15 onto a tie.
    Only values next to a tie can differ, and those are rounded one by one.
    """

    digits: int | None

    def __call__(self, array: Array) -> Array:
        digits = self.digits
        if array.dtype.kind in "bi" and (digits is None or digits >= 0):
            return array.astype(np.int64)
        if digits is not None and abs(digits) > EXACT_DIGITS:
            return np.array([round(value, digits) for value in array.ravel().tolist()]).reshape(array.shape)
        result: Array = np.round(array, digits or 0)
        with np.errstate(all="ignore"):
            scaled = array * 10.0 ** (digits or 0)
            near_tie = np.abs(scaled - np.floor(scaled) - 0.5) < 1e-6 * np.maximum(1.0, np.abs(scaled) * 1e-6)
        if digits and near_tie.any():
            result[near_tie] = [round(value, digits) for value in array[near_tie].tolist()]
        return whole_numbers(result) if digits is None or array.dtype.kind in "bi" else result


def decimals(function: Callable[..., Any]) -> int:
    """Return how many decimals a rounding function keeps, NumPy's or Python's."""
    if isinstance(function, partial):
        return int(function.keywords["decimals"])
    assert isinstance(function, NumpyRound | PythonRound)
    return function.digits or 0
