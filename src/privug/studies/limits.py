"""A limit on what attackers learn: a measure and the number that it must not exceed, or not fall below."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any

from privug.arguments import check_takes, is_truth, naming, shown
from privug.attack import Result
from privug.errors import ArgumentError, StudyError
from privug.estimate import ROUNDING, Estimate
from privug.studies.cells import Cell, Measure, Refusal, label


class Verdict(Enum):
    """Whether a limit is kept: surely, surely not, or not to be told from these samples."""

    KEPT = "kept"
    BROKEN = "broken"
    OPEN = "open"


@dataclass(frozen=True)
class Limit:
    """A measure and the number that it must not exceed, or not fall below."""

    measure: str
    at_most: float | None
    at_least: float | None
    claim: str
    bare: bool = False
    """Whether the claim ends in a number that lacks its unit."""

    @property
    def bound(self) -> float | None:
        """The number that must not be exceeded, or not fallen below."""
        return self.at_most if self.at_least is None else self.at_least

    def excess(self, estimate: Estimate) -> tuple[float, float, float]:
        """Return by how much an estimate lies on the wrong side of the limit: the least, the value and the most."""
        if self.at_most is not None:
            return estimate.low - self.at_most, estimate.value - self.at_most, estimate.high - self.at_most
        assert self.at_least is not None
        return self.at_least - estimate.high, self.at_least - estimate.value, self.at_least - estimate.low

    def verdict(self, cell: Cell) -> Verdict:
        """Judge an estimate by the end of its interval that speaks against the limit."""
        if isinstance(cell, Refusal):
            return Verdict.OPEN
        least, _, most = self.excess(cell)
        # What is exact is so up to the rounding of the numbers it was computed with.
        slack = ROUNDING * abs(cell.value) if cell.exact and math.isfinite(cell.value) else 0.0
        if most <= slack:
            return Verdict.KEPT
        return Verdict.BROKEN if least > slack else Verdict.OPEN


def _judged(holds: Callable[[Result], Any], result: Result) -> Estimate:
    """Return one if a predicate holds, else zero: as exact as the result is, and without an interval."""
    with naming("calibrate: holds", StudyError):
        verdict = holds(result)
    if not is_truth(verdict):
        raise StudyError(f"calibrate: holds must return True or False, not {shown(verdict)}")
    number = float(bool(verdict))
    return Estimate(number, number, number, method=result.engine, exact=result.engine.startswith("exact"))


def limit_of(
    measure: Any,
    at_most: float | None,
    at_least: float | None,
    holds: Callable[[Result], Any] | None,
    claim: str,
    name: str,
) -> tuple[Limit, Measure]:
    """Return what is limited and how it is measured; a measure without a name has that of its function."""
    if holds is not None:
        if measure is not None or at_most is not None or at_least is not None or not callable(holds):
            raise ArgumentError(
                "calibrate: holds is a predicate on the result; leave out measure, at_most and at_least"
            )
        own = getattr(holds, "__name__", "")
        words = claim or ("the policy holds" if own in ("", "<lambda>") else f"{own.replace('_', ' ')}")
        return Limit(words, None, 1.0, words), partial(_judged, holds)
    if measure is None or (at_most is None) == (at_least is None):
        raise ArgumentError("calibrate: give a measure with one of at_most= and at_least=, or a predicate holds=")
    bound = at_most if at_least is None else at_least
    if not name:
        check_takes("calibrate: measure", measure, 1)
        own = getattr(measure, "__name__", "<lambda>")
        name = "the measure" if own == "<lambda>" else own
    side = "at most" if at_least is None else "at least"
    return Limit(name, at_most, at_least, claim or f"{label(name)} is {side} {bound:g}", bare=not claim), measure
