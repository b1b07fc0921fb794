"""How far a quantity reaches: between which numbers it lies, and which moments it has."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from privug.model.node import Array


class Reach(NamedTuple):
    """The range of a quantity, and its moments: E|x|^p is finite for all p below `least`, and for none from `most` on.

    >>> Reach(0.0, 1.0, math.inf).has(2), Reach().has(1), Reach(most=1.0).has(1)
    (True, None, False)
    """

    low: float = -math.inf
    high: float = math.inf
    least: float = 0.0
    most: float = math.inf
    core: tuple[float, float] = (-math.inf, math.inf)
    """The range if each endless tail ended in its middle: jackpots and other cases lie there; infinite if unknown."""

    @property
    def is_bounded(self) -> bool:
        """Whether the quantity has a least and a largest value."""
        return math.isfinite(self.low) and math.isfinite(self.high)

    def has(self, order: int) -> bool | None:
        """Say whether a moment is finite; None if that is not known."""
        if self.least > order:
            return True
        return False if self.most <= order else None

    def given(self) -> "Reach":
        """Return what is left of it after an observation: its range may shrink, its tails almost never get heavier."""
        return Reach(least=self.least)


UNKNOWN = Reach()


def either(parts: Sequence[Reach]) -> Reach:
    """Return the reach of a quantity that is one of several."""
    lows, highs, least, *_ = zip(*parts, strict=True)
    return Reach(min(lows), max(highs), min(least), parts[0].most if len(parts) == 1 else math.inf)


def of_numbers(numbers: Array) -> Reach:
    """Return the reach of a quantity that is one of some numbers."""
    if numbers.dtype.kind not in "bif" or not numbers.size:
        return UNKNOWN
    return Reach(float(numbers.min()), float(numbers.max()), math.inf)
