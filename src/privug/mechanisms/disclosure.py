"""What statistical offices do to outputs: rounding, limits, leaving out small cells. Deterministic, so no promise."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from privug.arguments import Count, Positive, kinds_checked, shown
from privug.errors import ArgumentError, ProgramError
from privug.mechanisms.mechanism import Mechanism, promised, remakeable
from privug.model.structure import flatten
from privug.model.variable import RandomVariable
from privug.program.logic import where


@dataclass(frozen=True)
class EachNumber:
    """The release that applies a function to every number of an output."""

    function: Callable[[Any], Any]
    what: str

    def __call__(self, output: Any) -> Any:
        structure, leaves = flatten(output)
        return structure.build([self._changed(leaf) for leaf in leaves])

    def _changed(self, value: Any) -> Any:
        if isinstance(value, RandomVariable):
            numeric = value.node.levels is None and value.node.dtype.kind in "bif"
        else:
            numeric = np.asarray(value).dtype.kind in "biuf"
        if not numeric:
            raise ProgramError(f"{self.what} needs numbers, but the program returned {shown(value)}")
        changed = self.function(value)
        return changed.item() if isinstance(changed, np.generic) else changed


@dataclass(frozen=True)
class Rounding:
    """Rounding to multiples, halves to even ones."""

    step: float

    def __call__(self, value: Any) -> Any:
        parts = round(1 / self.step) if 1e-15 < self.step < 1 else 0
        if parts and math.isclose(parts * self.step, 1.0, rel_tol=1e-12):
            return np.round(value * parts) / parts  # the multiple of 0.01 that is nearest to what people write
        return np.round(value / self.step) * self.step


@dataclass(frozen=True)
class Limits:
    """Numbers outside of a range replaced by its ends."""

    low: float
    high: float

    def __call__(self, value: Any) -> Any:
        return np.clip(value, self.low, self.high)


@dataclass(frozen=True)
class SmallCells:
    """Small counts replaced."""

    fewer_than: float
    shown_as: float
    zeros: bool

    def __call__(self, value: Any) -> Any:
        small = value < self.fewer_than
        if self.zeros:
            small = small & (value != 0) if isinstance(value, RandomVariable | np.ndarray) else small and value != 0
        return where(small, self.shown_as, value)


@remakeable
@kinds_checked
def rounded(program: Callable[..., Any], *, to: Positive) -> Mechanism:
    """Round every number of the output to a multiple of `to`.

    Rounding is no protection in itself: it promises nothing but what a mechanism inside of it does.

    >>> rounded(lambda ages: sum(ages) / len(ages), to=5)([30, 41, 49])
    40.0
    """
    return Mechanism(program, EachNumber(Rounding(float(to)), "rounding"), promised(program), f"rounding to {to:g}")


@remakeable
@kinds_checked
def clamped(program: Callable[..., Any], low: float, high: float) -> Mechanism:
    """Replace every number of the output below `low` or above `high` by that limit.

    >>> clamped(max, 0, 100)([30, 41, 1000])
    100
    """
    if not low < high:
        raise ArgumentError(f"clamped: low must lie below high, not {low!r} and {high!r}")
    return Mechanism(program, EachNumber(Limits(low, high), "clamping"), promised(program), "limits")


@remakeable
@kinds_checked
def suppressed(
    program: Callable[..., Any], *, fewer_than: Count, shown_as: float = 0, zeros: bool = False
) -> Mechanism:
    """Show every count of the output that is below `fewer_than` as another number.

    With `zeros`, a true count of zero is shown, so that `shown_as` must be something else. What one cell hides, sums
    with other cells often give away: ask with all that is released together.

    >>> suppressed(lambda counts: counts, fewer_than=5)({"ill": 3, "healthy": 97})
    {'ill': 0, 'healthy': 97}
    """
    if zeros and shown_as == 0:
        raise ArgumentError(
            "suppressed: where zeros are shown, suppressed cells need another sign, such as shown_as=-1"
        )
    release = EachNumber(SmallCells(fewer_than, shown_as, zeros), "suppression")
    return Mechanism(program, release, promised(program), f"counts below {fewer_than:g} left out")
