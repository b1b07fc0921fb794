"""Checks of numbers given to mechanisms."""

import math
from typing import Any

import numpy as np

from privug.arguments import check_size, is_number, shown
from privug.errors import ArgumentError


def check_number(where: str, name: str, value: Any, low: float, high: float, *, above: bool = False) -> None:
    """Raise unless a value is a number in a range; with `above`, the lower end is excluded."""
    fine = is_number(value)
    if fine:
        check_size(where, name, value)
    if not fine or not low <= value <= high or (above and value == low):
        wanted = f"from {low:g} to {high:g}" if math.isfinite(high) else f"{low:g} or more"
        if above:
            wanted = f"above {low:g}" + (f", at most {high:g}" if math.isfinite(high) else "")
        raise ArgumentError(f"{where}: {name} must be a number {wanted}, not {shown(value)}")


def check_positive(where: str, **values: Any) -> None:
    """Raise unless all values are positive finite numbers."""
    for name, value in values.items():
        check_number(where, name, value, 0.0, math.inf, above=True)
        if math.isinf(value):
            raise ArgumentError(f"{where}: {name} must be finite, not {shown(value)}")


def check_whole(where: str, name: str, value: Any, least: int = 1) -> None:
    """Raise unless a value is a whole number of at least so much."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ArgumentError(f"{where}: {name} must be a whole number, {least} or more, not {shown(value)}")
    check_number(where, name, value, least, math.inf)
