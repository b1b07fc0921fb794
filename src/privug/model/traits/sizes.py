"""How large whole numbers get: what keeps 64 bits from wrapping around."""

import math
from collections.abc import Callable, Sequence

SizeRule = Callable[[Sequence[int], int, int], float]
"""How far from zero results lie, given that of each argument, how many elements there are, and an order."""


def total(sizes: Sequence[int], count: int, order: int) -> float:
    """Of a sum of two numbers, or their difference."""
    return sum(sizes)


def multiplied(sizes: Sequence[int], count: int, order: int) -> float:
    """Of a product of two numbers."""
    return sizes[0] * sizes[1]


def unchanged(sizes: Sequence[int], count: int, order: int) -> float:
    """Of what is one of the arguments, but perhaps for its sign."""
    return max(sizes)


def squared(sizes: Sequence[int], count: int, order: int) -> float:
    """Of a square."""
    return sizes[0] ** 2


def shifted(sizes: Sequence[int], count: int, order: int) -> float:
    """Of a number shifted to the left by another."""
    return sizes[0] << min(sizes[1], 64)


def raised(sizes: Sequence[int], count: int, order: int) -> float:
    """Of a power; that to the power of zero is one."""
    base, exponent = max(1, sizes[0]), sizes[1]
    return base**exponent if exponent * math.log2(base) < 64 else math.inf


def multiplied_up(sizes: Sequence[int], count: int, order: int) -> float:
    """Of the product of all elements."""
    return raised((sizes[0], count), count, order)


def added_up(sizes: Sequence[int], count: int, order: int) -> float:
    """Of the sum of all elements."""
    return sizes[0] * count


def dotted(sizes: Sequence[int], count: int, order: int) -> float:
    """Of a product of matrices."""
    return sizes[0] * sizes[1] * count


def differenced(sizes: Sequence[int], count: int, order: int) -> float:
    """Of differences of elements, taken so many times."""
    return sizes[0] << order
