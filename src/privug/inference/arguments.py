"""What joints, beliefs and channels are made of, as callers give it: numbers and lists of values."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from privug.arguments import Random, as_floats, refuse_masked, shown
from privug.errors import ArgumentError
from privug.model.node import Array


def as_numbers(what: str, given: Any) -> Array:
    """Return numbers as an array, a copy of what was given; `what` begins the sentence that refuses anything else."""
    try:
        return as_floats(given)
    except (TypeError, ValueError):
        raise ArgumentError(f"{what} must be numbers, not {shown(given)}") from None


def as_list(what: str, given: Any) -> Sequence[Any]:
    """Return values that have a length and an order; `what` begins the sentence that refuses anything else."""
    refuse_masked(given)
    single = isinstance(given, np.ndarray | Random) and getattr(given, "shape", None) == ()
    if single or isinstance(given, dict | set | frozenset | str | bytes) or not hasattr(given, "__len__"):
        raise ArgumentError(f"{what} must be a list of values, not {shown(given)}")
    values: Sequence[Any] = given
    return values
