"""The boundary of a limit along one parameter: a grid of values first, then halving."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from privug.errors import ArgumentError, InferenceError
from privug.estimate import Estimate
from privug.policy.verdict import Limit, Status

MOST_STEPS = 100
COARSE = 0.01  # how narrow a boundary that samples decide is made
WIDE = 10.0
"""From what ratio of the ends of a range on it is divided by ratios, not by differences."""


@dataclass(frozen=True)
class BoundaryTrial:
    """One value that was tried: what was measured there, if anything was, and whether the limit holds."""

    value: float
    cell: Any
    status: Status

    @property
    def holds(self) -> bool:
        """Whether the limit certainly holds."""
        return self.status is Status.HOLDS

    @property
    def is_exact(self) -> bool:
        """Whether the answer does not rest on samples."""
        return self.cell.exact if isinstance(self.cell, Estimate) else self.cell is None and not self.is_undecided

    @property
    def is_undecided(self) -> bool:
        """Whether it is not known if the limit holds."""
        return self.status is Status.UNDECIDED

    def measured(self) -> str:
        """Return what was found, in words."""
        match self.cell:
            case None:
                return f"it is {'satisfied' if self.holds else self.status}"
            case Estimate():
                return f"it is {self.cell}"
            case _:
                return f"there is no number: {self.cell.reason}"


@dataclass(frozen=True)
class Boundary:
    """Where a limit stops holding: the last value at which it holds, and the nearest at which it is violated.

    `again` is the first value beyond at which the limit holds again, if there is one.
    """

    holds: BoundaryTrial
    bracket: tuple[float, float]
    again: BoundaryTrial | None
    trials: tuple[BoundaryTrial, ...]


@dataclass
class BoundarySearch:
    """A search for the boundary of a limit, from the end of the range at which it should hold.

    `judge` tries several values at once; `limit` is that on the number measured, if one is: between two exact numbers
    the boundary is guessed along a straight line.
    """

    judge: Callable[[Sequence[float]], list[BoundaryTrial]]
    parameter: str
    claim: str
    find: str
    tolerance: float
    limit: Limit | None = None
    trials: list[BoundaryTrial] = field(default_factory=list)

    def run(self, values: Sequence[float]) -> Boundary:
        """Try a grid of values, and narrow down where the limit stops holding and where it is certainly violated."""
        coarse = self._tried(values if self.find == "largest" else values[::-1])
        self._check_ends(coarse)
        first = next(place for place, trial in enumerate(coarse) if not trial.holds)
        last, _ = self._halved(coarse[first - 1], coarse[first], lambda trial: trial.holds)
        end = self._violated_from(last)
        bracket = (last.value, end) if self.find == "largest" else (end, last.value)
        again = next((trial for trial in coarse[first:] if trial.holds), None)
        return Boundary(last, bracket, again, tuple(self.trials))

    def _tried(self, values: Sequence[float]) -> list[BoundaryTrial]:
        found = self.judge(values)
        self.trials += found
        return found

    def _check_ends(self, coarse: Sequence[BoundaryTrial]) -> None:
        """Refuse to search where there is no boundary to be found from the end that should be safe."""
        start, end = coarse[0], coarse[-1]
        if all(trial.holds for trial in coarse):
            beyond = "larger" if self.find == "largest" else "smaller"
            raise ArgumentError(
                f"calibrate: {self.claim} for every {self.parameter} from {start.value:g} to {end.value:g}: at "
                f"{end.value:g} {end.measured()}; allow {beyond} values"
            )
        if start.holds:
            return
        again = next((trial for trial in coarse if trial.holds), None)
        other = "smallest" if self.find == "largest" else "largest"
        advice = (
            "" if again is None else f", though it does at {again.value:g}; ask for find={other!r}, or another range"
        )
        raise InferenceError(
            f"calibrate: it cannot be said that {self.claim} at {self.parameter} = {start.value:g}, where "
            f"{start.measured()}{advice or '; nor at any other value tried'}"
        )

    def _halved(
        self, inside: BoundaryTrial, outside: BoundaryTrial, belongs: Callable[[BoundaryTrial], bool]
    ) -> tuple[BoundaryTrial, BoundaryTrial]:
        """Narrow down where trials stop belonging, to within the tolerance."""
        for number in range(MOST_STEPS):
            low, high = sorted((inside.value, outside.value))
            exact = inside.is_exact and outside.is_exact
            if high - low <= (self.tolerance if exact else max(self.tolerance, COARSE)) * max(abs(low), abs(high)):
                break
            guess = self._crossing(inside, outside) if exact and number % 3 < 2 else None
            if guess is not None:
                # A little to either side in turn, so that both ends come close.
                nudge = 0.4 * self.tolerance * max(abs(low), abs(high)) * (1 if number % 3 else -1)
                guess = min(max(guess + nudge, low + 0.01 * (high - low)), high - 0.01 * (high - low))
            middle = self._tried([_middle(low, high) if guess is None else guess])[0]
            inside, outside = (middle, outside) if belongs(middle) else (inside, middle)
        return inside, outside

    def _crossing(self, inside: BoundaryTrial, outside: BoundaryTrial) -> float | None:
        """Return where the measure meets the limit if it is a straight line between two trials."""
        if self.limit is None or inside.cell is None or outside.cell is None:
            return None
        below, above = self.limit.excess(inside.cell.value), self.limit.excess(outside.cell.value)
        if not (math.isfinite(below) and math.isfinite(above) and below < 0 < above):
            return None
        return inside.value + (outside.value - inside.value) * below / (below - above)

    def _violated_from(self, last: BoundaryTrial) -> float:
        """Return the value nearest to the boundary from which on the limit is certainly violated."""
        sign = 1 if self.find == "largest" else -1
        beyond = sorted((t for t in self.trials if sign * t.value >= sign * last.value), key=lambda t: sign * t.value)
        place = next((place for place, trial in enumerate(beyond) if trial.status is Status.VIOLATED), None)
        if place is None:
            return sign * math.inf
        return self._halved(beyond[place - 1], beyond[place], lambda t: t.status is not Status.VIOLATED)[1].value


def _middle(low: float, high: float) -> float:
    return math.sqrt(low * high) if low > 0 and high / low > WIDE ** (1 / 8) else (low + high) / 2


def spaced(low: float, high: float, count: int) -> list[float]:
    """Return values of a range, by equal ratios if it is wide."""
    if low > 0 and high / low >= WIDE:
        return [low, *np.geomspace(low, high, count)[1:-1].tolist(), high]
    return [low, *np.linspace(low, high, count)[1:-1].tolist(), high]


def rounded_inwards(value: float, bracket: tuple[float, float], find: str) -> str:
    """Return a value with as many digits as are known, rounded to the side on which the limit holds."""
    width = bracket[1] - bracket[0]
    finest = abs(value) * 1e-6 or 1e-6
    unit = 10.0 ** math.floor(math.log10(max(width, finest) if math.isfinite(width) else 1e4 * finest))
    steps = value / unit
    # What is a multiple already, up to rounding errors, stays.
    whole = round(steps) if math.isclose(steps, round(steps), rel_tol=1e-12) else None
    side = math.floor if find == "largest" else math.ceil
    return f"{(side(steps) if whole is None else whole) * unit:.10g}"
