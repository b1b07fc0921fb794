"""Integers of 64 bits: arithmetic that never wraps around, and comparisons beyond 2**53, where floats fail."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from privug.errors import ProgramError
from privug.model.node import Array, ConstantValue, Kind, Node
from privug.model.traits import Traits, traits_of

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


FLOAT_LIMIT = 2**53
"""Whole numbers up to here are floats of their own."""
_BEYOND = 2.0**63


@dataclass(frozen=True)
class Comparison:
    """A comparison of whole numbers with floats by their values, as Python compares them."""

    name: str

    def __call__(self, left: Array, right: Array) -> Array:
        signs = traits_of(self.name).signs
        if left.dtype.kind == "f":
            sign, floats = -_sign(right, left), left
        else:
            sign, floats = _sign(left, right), right
        unequal = {-1, 1} <= signs
        result: Array = np.where(np.isnan(floats), unequal, np.isin(sign, list(signs)))
        return result


def _sign(whole: Array, floats: Array) -> Array:
    """Return minus one, zero or one for whole numbers below, equal to and above floats."""
    near = np.abs(floats) < _BEYOND
    floor = np.where(near, np.floor(floats), 0.0)
    cut = floor.astype(np.int64)
    sign = (whole > cut).astype(np.int8) - (whole < cut)
    sign = np.where((sign == 0) & (floats > floor), -1, sign)
    result: Array = np.where(near, sign, np.where(floats > 0, -1, 1))
    return result


def exact_comparison(name: str, parents: Sequence[Node]) -> tuple[Comparison | None, Sequence[Node]]:
    """Return how to compare whole numbers with floats by their values, and which; None if NumPy's way will do."""
    compared = [_beside_whole_numbers(parent) for parent in parents]
    are_large = any(parent.bound is not None and parent.bound > FLOAT_LIMIT for parent in compared)
    varies = any(node.dtype.kind == "f" and not isinstance(node.operation, ConstantValue) for node in compared)
    return Comparison(name) if are_large and varies else None, compared


def _beside_whole_numbers(node: Node) -> Node:
    """Return a constant such that comparing whole numbers with it as floats does no harm.

    Beyond 2**53 floats are whole, and become whole numbers; beyond 64 bits they are as good as infinite.
    """
    operation = node.operation
    if not isinstance(operation, ConstantValue) or node.shape or node.dtype.kind != "f":
        return node
    value = operation.array[0].item()
    if not abs(value) >= FLOAT_LIMIT:
        return node
    inside = -_BEYOND <= value < _BEYOND
    array = np.array([int(value)]) if inside else np.array([math.copysign(math.inf, value)])
    constant = Node(ConstantValue(array), (), (), array.dtype, kind=Kind.DISCRETE)
    constant.bound = abs(int(value)) if inside else None
    return constant


def apart(left: Array, right: Array) -> Array:
    """Return how far numbers lie above others, as floats; whole numbers are subtracted first and never wrap around."""
    if left.dtype.kind == "f" or right.dtype.kind == "f":
        return np.subtract(left, right, dtype=float)
    one, other = (np.asarray(side).astype(np.int64).view(np.uint64) for side in (left, right))
    result: Array = np.where(np.asarray(left) >= right, (one - other).astype(float), -(other - one).astype(float))
    return result


def bound_beside(value: Any, step: Any, upward: bool) -> Any:
    """Return `value + step`, or `value - step`, as a bound: the last whole number inside, where floats are whole."""
    moved = value + step if upward else value - step
    if not FLOAT_LIMIT // 2 <= max(abs(value), abs(moved)) < _BEYOND:
        return float(moved)
    exact = Fraction(value) + Fraction(step) if upward else Fraction(value) - Fraction(step)
    return math.floor(exact) if upward else math.ceil(exact)
