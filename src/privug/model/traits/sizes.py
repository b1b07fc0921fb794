"""How large whole numbers get: what keeps 64 bits from wrapping around."""

import math
from collections.abc import Callable, Sequence

SizeRule = Callable[[Sequence[int], int, int], float]
"""How far from zero results lie, given that of each argument, how many elements there are, and an order."""


def unchanged(sizes: Sequence[int], count: int, order: int) -> float:
    """Of what is one of the arguments, but perhaps for its sign."""
    return max(sizes)


def power_of(base: int, exponent: int) -> float:
    """Of a power; that to the power of zero is one."""
    base = max(1, base)
    return base**exponent if exponent * math.log2(base) < 64 else math.inf


def added_up(sizes: Sequence[int], count: int, order: int) -> float:
    """Of the sum of all elements."""
    return sizes[0] * count


def differenced(sizes: Sequence[int], count: int, order: int) -> float:
    """Of differences of elements, taken so many times."""
    return sizes[0] << order
