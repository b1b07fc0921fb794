"""Whole numbers of 64 bits that never wrap around: what would leave them is refused, as Python's own have no end."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from privug.errors import ProgramError
from privug.model.node import Array

INTEGER_LIMIT = 2**63 - 1


def largest(array: Array) -> int:
    """Return how far whole numbers lie from zero at most."""
    return max(abs(int(array.max())), abs(int(array.min()))) if array.size else 0


_GROWING = {
    "add", "subtract", "multiply", "power", "sum", "prod", "cumsum", "cumprod", "dot",
    "square", "left_shift", "diff", "ptp", "absolute", "negative", "nansum",
}  # fmt: skip


def can_wrap(name: str, dtypes: Sequence[np.dtype[Any]]) -> bool:
    """Say whether an operation of whole numbers may give larger ones; one of a bool and a number may, if it adds."""
    kinds = {dtype.kind for dtype in dtypes}
    return name in _GROWING and (kinds == {"i"} or (kinds == {"b", "i"} and name in ("add", "subtract")))


def refuse_overflow(name: str, arguments: Sequence[Array], options: tuple[tuple[str, Any], ...] = ()) -> None:
    """Python's whole numbers never wrap around: refuse before 64 bits do."""
    sizes = [largest(argument) for argument in arguments]
    length = int(np.prod(arguments[0].shape[1:])) if arguments[0].ndim > 1 else 1
    match name:
        case "add" | "subtract":
            bound: float = sum(sizes)
        case "absolute" | "negative":
            bound = sizes[0]
        case "diff" | "ptp":
            bound = 2 ** dict(options).get("n", 1) * sizes[0]
        case "square":
            bound = sizes[0] ** 2
        case "left_shift":
            bound = sizes[0] << min(sizes[1], 64)
        case "multiply":
            bound = sizes[0] * sizes[1]
        case "sum" | "cumsum" | "nansum":
            bound = sizes[0] * length
        case "dot":
            bound = sizes[0] * sizes[1] * length
        case _:
            base, exponent = (sizes[0], length) if name != "power" else (sizes[0], sizes[1])
            bound = base**exponent if base <= 1 or exponent * np.log2(base) < 64 else np.inf
    if bound > INTEGER_LIMIT:
        raise ProgramError(
            f"whole numbers in the program may leave the 64-bit range in '{name}'; convert them to float first"
        )
