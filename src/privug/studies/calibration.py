"""The largest, or smallest, value of a parameter for which a limit on what attackers learn holds."""

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import Any

import numpy as np

from privug.arguments import check_takes, is_truth, kinds_checked, naming, shown
from privug.attack import Attack, Result
from privug.errors import ArgumentError, InferenceError, StudyError
from privug.escaping import inert
from privug.estimate import ROUNDING, Estimate
from privug.pictures import plots
from privug.report.text import grid_html, grid_text
from privug.studies.cells import (
    Cell,
    Job,
    Measure,
    Refusal,
    Settings,
    answer,
    asked_by_name,
    cell_text,
    checked_measures,
    is_measure,
    kept_in,
    label,
    outcomes,
    plain_cell,
)
from privug.studies.sweep import made, observed


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


MOST_STEPS = 100
COARSE = 0.01  # how narrow a boundary that samples decide is made
WIDE = 10.0
"""From what ratio of the ends of a range on it is divided by ratios, not by differences."""


@dataclass(frozen=True)
class Trial:
    """One value that was tried: what was measured, and whether the limit is kept."""

    value: float
    cell: Cell
    verdict: Verdict

    @property
    def kept(self) -> bool:
        """Whether the limit is surely kept."""
        return self.verdict is Verdict.KEPT

    @property
    def is_exact(self) -> bool:
        """Whether the measure is known without sampling."""
        return isinstance(self.cell, Estimate) and self.cell.exact

    def measured(self) -> str:
        """Return what was found, in words."""
        return f"it is {self.cell}" if isinstance(self.cell, Estimate) else f"there is no number: {self.cell.reason}"


@dataclass(frozen=True)
class Calibration:
    """The answer of `calibrate`: `value` is the largest (or smallest) for which the limit was found to be kept.

    The true boundary lies within `bracket`, whose other end is the nearest value at which the limit is surely broken;
    it is infinite if there is none in the range. `trials` are all values that were tried, in order.

    >>> import privug as pv
    >>> def survey(p):
    ...     return pv.Attack(lambda x: x, prior={"x": pv.Bernoulli(p)}, secret="x")
    >>> found = pv.calibrate(survey, holds=lambda result: result.prior.mean().value <= 0.3, p=(0.1, 0.5))
    >>> round(found.value, 3)
    0.3
    """

    parameter: str
    value: float
    bracket: tuple[float, float]
    claim: str
    find: str
    trials: tuple[Trial, ...]
    remarks: tuple[str, ...] = ()
    limit: Limit | None = None

    @property
    def exact(self) -> bool:
        """Whether the measure is exact at both ends of the bracket."""
        return {trial.value for trial in self.trials if trial.is_exact} >= set(self.bracket)

    @property
    def _has_no_interval(self) -> bool:
        return all(isinstance(trial.cell, Estimate) and trial.cell.low == trial.cell.high for trial in self.trials)

    def __float__(self) -> float:
        return self.value

    def rounded(self) -> str:
        """Return the value with as many digits as are known, rounded to the side on which the limit is kept."""
        width = self.bracket[1] - self.bracket[0]
        finest = abs(self.value) * 1e-6 or 1e-6
        unit = 10.0 ** math.floor(math.log10(max(width, finest) if math.isfinite(width) else 1e4 * finest))
        steps = self.value / unit
        # What is a multiple already, up to rounding errors, stays.
        whole = round(steps) if math.isclose(steps, round(steps), rel_tol=1e-12) else None
        side = math.floor if self.find == "largest" else math.ceil
        return f"{(side(steps) if whole is None else whole) * unit:.10g}"

    def __str__(self) -> str:
        other = self.bracket[1] if self.find == "largest" else self.bracket[0]
        sentence = f"{self.parameter} = {self.rounded()} is the {self.find} for which {self.claim}"
        if self.exact:
            details = f"exact; no longer at {other:.6g}"
        elif self._has_no_interval:
            details = f"judged on samples, without an interval; no longer at {other:.4g}"
        elif math.isfinite(other):
            details = f"with 95 % confidence; surely no longer at {other:.4g}"
        else:
            details = "with 95 % confidence; at no value tried is it surely broken"
        return inert(" ".join([f"{sentence} ({details}).", *(f"{remark}." for remark in self.remarks)]))

    def table(self) -> str:
        """Return all that was tried as a table."""
        return grid_text(*self._table())

    def _repr_html_(self) -> str:
        return grid_html(*self._table())

    def _table(self) -> tuple[str, list[str], list[list[str]], list[str]]:
        notes: list[str] = []
        ordered = sorted(self.trials, key=lambda trial: trial.value)
        rows = [[f"{trial.value:.6g}", cell_text(trial.cell, notes), trial.verdict.value] for trial in ordered]
        return (str(self), [self.parameter, "measured", "limit"], rows, notes)

    def plot(self, ax: Any = None) -> Any:
        """Draw what was measured at all values tried, the limit and the answer; `ax` is matplotlib axes or a path."""
        name = "measured" if self.limit is None else label(self.limit.measure)
        bound = None if self.limit is None else self.limit.bound
        tried = [(trial.value, trial.cell) for trial in self.trials]
        return plots().calibration(self.parameter, tried, (name, bound), (self.value, self.bracket), ax)

    def to_dict(self) -> dict[str, Any]:
        """Return the answer and what was tried as plain values."""
        trials = [{"value": t.value, "verdict": t.verdict.value, "measured": plain_cell(t.cell)} for t in self.trials]
        answer = {"parameter": self.parameter, "value": self.value, "bracket": list(self.bracket), "exact": self.exact}
        return {**answer, "claim": self.claim, "remarks": list(self.remarks), "trials": trials}


@kinds_checked
def calibrate(
    attack_for: Callable[..., Attack],
    *,
    measure: str | Measure | None = None,
    at_most: float | None = None,
    at_least: float | None = None,
    holds: Callable[[Result], Any] | None = None,
    claim: str = "",
    find: str = "largest",
    observe: Any = None,
    grid: int = 9,
    tolerance: float = 1e-4,
    engine: str = "auto",
    samples: int = 10_000,
    seed: int = 0,
    checkpoint: str | os.PathLike[str] | None = None,
    **parameter: tuple[float, float],
) -> Calibration:
    """Find the largest value of a parameter for which a limit is kept: "what epsilon should I choose?".

    The limit is a `measure` that must be `at_most` or `at_least` a number, or a predicate `holds` on the result. The
    measure is the name of one of the attack's questions, such as "Alice is under 18", the name of a measure, such as
    "max_posterior_belief" or "mutual_information", or a function from a result to an estimate. The belief that answers
    a question is the one after `observe`; without it, after any output: the worst case. Where that is only known on
    samples, the limit is kept if the mechanism's promise says so: an output of an epsilon-differentially private one
    changes the odds of what is true of one row by at most exp(epsilon). The parameter is named with its range, as
    in `epsilon=(0.01, 10)`; `attack_for` gets it and returns the attack. With `find="smallest"` the smallest such value
    is searched for, from the upper end of the range.

    The limit counts as kept only if the whole interval of the measure keeps it, so an answer from samples is on the
    safe side; the bracket says how much larger the true answer may be. A grid of values is tried first: if the limit is
    kept again beyond a value that breaks it, the answer is the first boundary and says so. The boundary is then halved
    down to the `tolerance`, relative to its value. It is an error if the limit is kept nowhere, or everywhere.

    >>> import privug as pv
    >>> def noisy_bit(epsilon):
    ...     def release(bit):
    ...         return bit + pv.sample(pv.DiscreteLaplace(1 / epsilon))
    ...     return pv.Attack(release, prior={"bit": pv.Bernoulli(0.5)}, secret="bit")
    >>> print(calibrate(noisy_bit, measure="bayes_vulnerability", at_most=0.6, epsilon=(0.01, 10)))
    epsilon = 0.40544 is the largest for which bayes vulnerability is at most 0.6 (exact; no longer at 0.405481).
    """
    name, low, high = _range(parameter)
    _check_way(find, grid, tolerance)
    options = {"engine": engine, "samples": samples, "seed": seed}
    asked = _Asked(measure, at_most, at_least, holds, claim)
    limit, measured = asked.limit(partial(made, attack_for, {name: low}), observe, options)
    settings = Settings({limit.measure: measured}, {}, options)
    parts = {"attack_for": attack_for, "observe": observe, "the limit": asked, "find": find, "tolerance": tolerance}
    with kept_in(checkpoint, "calibration", **parts, **options, parameter=[name, low, high, grid]):
        return _Search(attack_for, observe, settings, limit, name, find, tolerance).run(_spaced(low, high, grid))


def _check_way(find: str, grid: int, tolerance: float) -> None:
    """Refuse a way of searching that is none."""
    if find not in ("largest", "smallest"):
        raise ArgumentError(f"find must be 'largest' or 'smallest', not {find!r}")
    if isinstance(grid, bool) or not isinstance(grid, int) or grid < 2 or not 0 < tolerance < 1:
        raise ArgumentError("grid must be a whole number, 2 or more, and tolerance a number between 0 and 1")


@dataclass(frozen=True)
class _Asked:
    """What must be kept, as it was written."""

    measure: str | Measure | None
    at_most: float | None
    at_least: float | None
    holds: Callable[[Result], Any] | None
    claim: str

    def limit(self, first: Callable[[], Attack], observe: Any, options: Mapping[str, Any]) -> tuple[Limit, Measure]:
        """Return the limit and how what it limits is measured: a question of the attack, or a measure."""
        called, function = "", self.measure
        if isinstance(self.measure, str) and not is_measure(self.measure) and self.holds is None:
            attack = first()
            asked_by_name(attack, self.measure)
            seen = "" if observe is not None or attack.observe is not None else " after any output"
            called = f"the belief in {self.measure!r}{seen}"
            function = partial(answer, self.measure, options, least=self.at_most is None)
        elif isinstance(self.measure, str):
            ((called, function),) = (checked_measures([self.measure], options) or {}).items()
        return limit_of(function, self.at_most, self.at_least, self.holds, self.claim, called)


@dataclass
class _Search:
    """A search for the boundary of a limit, from the end of the range at which it ought to be kept."""

    attack_for: Callable[..., Attack]
    observe: Any
    settings: Settings
    limit: Limit
    name: str
    find: str
    tolerance: float
    trials: list[Trial] = field(default_factory=list)

    def run(self, values: Sequence[float]) -> Calibration:
        """Try a grid of values, and narrow down where the limit stops being kept and where it is surely broken."""
        coarse = self._tried(values if self.find == "largest" else values[::-1])
        self._check_ends(coarse)
        first = next(place for place, trial in enumerate(coarse) if not trial.kept)
        kept, _ = self._halved(coarse[first - 1], coarse[first], lambda trial: trial.kept)
        end = self._surely_broken_from(kept)
        bracket = (kept.value, end) if self.find == "largest" else (end, kept.value)
        again = [trial for trial in coarse[first:] if trial.kept]
        remarks = (
            [f"It is kept again at {self.name} = {again[0].value:.6g}, beyond values that break it"] if again else []
        )
        unit = kept.cell.unit if isinstance(kept.cell, Estimate) and self.limit.bare else ""
        claim = f"{self.limit.claim} {unit}".rstrip()
        return Calibration(
            self.name, kept.value, bracket, claim, self.find, tuple(self.trials), tuple(remarks), self.limit
        )

    def _tried(self, values: Sequence[float]) -> list[Trial]:
        points = [{self.name: value} for value in values]
        jobs = [Job(partial(made, self.attack_for, point), observed(self.observe, point)) for point in points]
        cells = [o.cell(self.limit.measure) for o in outcomes(jobs, self.settings, f"calibrating {self.name}")]
        found = [Trial(v, cell, self.limit.verdict(cell)) for v, cell in zip(values, cells, strict=True)]
        self.trials += found
        return found

    def _check_ends(self, coarse: Sequence[Trial]) -> None:
        """Refuse to search where there is no boundary to be found from the end that ought to be safe."""
        start, end = coarse[0], coarse[-1]
        if all(trial.kept for trial in coarse):
            beyond = "larger" if self.find == "largest" else "smaller"
            raise ArgumentError(
                f"calibrate: {self.limit.claim} for every {self.name} from {start.value:g} to {end.value:g}: at "
                f"{end.value:g} {end.measured()}; allow {beyond} values"
            )
        if start.kept:
            return
        again = next((trial for trial in coarse if trial.kept), None)
        other = "smallest" if self.find == "largest" else "largest"
        advice = (
            "" if again is None else f", though it does at {again.value:g}; ask for find={other!r}, or another range"
        )
        raise InferenceError(
            f"calibrate: it cannot be said that {self.limit.claim} at {self.name} = {start.value:g}, where "
            f"{start.measured()}{advice or '; nor at any other value tried'}"
        )

    def _halved(self, inside: Trial, outside: Trial, belongs: Callable[[Trial], bool]) -> tuple[Trial, Trial]:
        """Narrow down where trials stop to belong, to within the tolerance."""
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

    def _crossing(self, inside: Trial, outside: Trial) -> float | None:
        """Return where the measure meets the limit if it is a straight line between two trials."""
        assert isinstance(inside.cell, Estimate)
        assert isinstance(outside.cell, Estimate)
        below, above = self.limit.excess(inside.cell)[1], self.limit.excess(outside.cell)[1]
        if not (math.isfinite(below) and math.isfinite(above) and below < 0 < above):
            return None
        return inside.value + (outside.value - inside.value) * below / (below - above)

    def _surely_broken_from(self, kept: Trial) -> float:
        """Return the value nearest to the boundary from which on the limit is surely broken."""
        sign = 1 if self.find == "largest" else -1
        beyond = sorted((t for t in self.trials if sign * t.value >= sign * kept.value), key=lambda t: sign * t.value)
        broken = next((place for place, trial in enumerate(beyond) if trial.verdict is Verdict.BROKEN), None)
        if broken is None:
            return sign * math.inf
        return self._halved(beyond[broken - 1], beyond[broken], lambda t: t.verdict is not Verdict.BROKEN)[1].value


def _middle(low: float, high: float) -> float:
    return math.sqrt(low * high) if low > 0 and high / low > WIDE ** (1 / 8) else (low + high) / 2


def _spaced(low: float, high: float, count: int) -> list[float]:
    if low > 0 and high / low >= WIDE:
        return [low, *np.geomspace(low, high, count)[1:-1].tolist(), high]
    return [low, *np.linspace(low, high, count)[1:-1].tolist(), high]


def _range(parameter: Mapping[str, Any]) -> tuple[str, float, float]:
    if len(parameter) != 1:
        named = ", ".join(parameter) or "none"
        raise ArgumentError(f"calibrate: name one parameter with its range, such as epsilon=(0.01, 10), not {named}")
    ((name, ends),) = parameter.items()
    try:
        low, high = (float(end) for end in ends)
    except (TypeError, ValueError, OverflowError):
        raise ArgumentError(f"calibrate: {name} must be a range such as (0.01, 10), not {shown(ends)}") from None
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ArgumentError(
            f"calibrate: {name} must be a range of finite numbers, the lower one first, not {shown(ends)}"
        )
    return name, low, high
