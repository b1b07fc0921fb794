"""Whole numbers of 64 bits that never wrap around: what would leave them is refused, as Python's own have no end."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from privug.errors import ProgramError
from privug.model.node import Array
from privug.model.traits.traits import Traits

INTEGER_LIMIT = 2**63 - 1


def largest(array: Array) -> int:
    """Return how far whole numbers lie from zero at most."""
    return max(abs(int(array.max())), abs(int(array.min()))) if array.size else 0


def can_wrap(traits: Traits, dtypes: Sequence[np.dtype[Any]]) -> bool:
    """Say whether an operation of whole numbers may give larger ones; one of a bool and a number may, if it adds."""
    kinds = {dtype.kind for dtype in dtypes}
    return traits.grows and (kinds == {"i"} or (kinds == {"b", "i"} and traits.weights is not None))


def refuse_overflow(traits: Traits, arguments: Sequence[Array], options: tuple[tuple[str, Any], ...] = ()) -> None:
    """Python's whole numbers never wrap around: refuse before 64 bits do."""
    assert traits.size is not None
    count = math.prod(arguments[0].shape[1:])
    bound = traits.size([largest(argument) for argument in arguments], count, dict(options).get("n", 1))
    if bound > INTEGER_LIMIT:
        raise ProgramError(
            f"whole numbers in the program may leave the 64-bit range in '{traits.name}'; convert them to float first"
        )
