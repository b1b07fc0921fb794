"""The largest, or smallest, value of a parameter for which a limit on what attackers learn holds."""

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal

from privug.arguments import InnerProbability, NumberRange, check_takes, is_truth, kinds_checked, naming, shown
from privug.attack import Attack, Result
from privug.errors import ArgumentError, StudyError
from privug.escaping import inert
from privug.estimate import Estimate
from privug.pictures import plots
from privug.policy.boundary import BoundarySearch, BoundaryTrial, rounded_inwards, spaced
from privug.policy.verdict import Limit, Status
from privug.report.text import grid_html, grid_text
from privug.studies.measured import (
    Cell,
    Job,
    Measure,
    StudySettings,
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


def _judged(holds: Callable[[Result], Any], result: Result) -> Estimate:
    """Return one if a predicate holds, else zero: as exact as the result is, and without an interval."""
    with naming("calibrate: holds", StudyError):
        verdict = holds(result)
    if not is_truth(verdict):
        raise StudyError(f"calibrate: holds must return True or False, not {shown(verdict)}")
    number = float(bool(verdict))
    return Estimate(number, number, number, method=result.engine, exact=result.engine.startswith("exact"))


@dataclass(frozen=True)
class LimitedMeasure:
    """What is limited, and how it is measured."""

    name: str
    measure: Measure
    limit: Limit
    claim: str
    has_unit: bool = True
    """Whether the claim needs no unit at its end."""

    def claim_about(self, cell: Cell) -> str:
        """Return the claim, with the unit of what was measured where it lacks one."""
        unit = cell.unit if isinstance(cell, Estimate) and not self.has_unit else ""
        return f"{self.claim} {unit}".rstrip()


def target_of(
    measure: Any,
    at_most: float | None,
    at_least: float | None,
    holds: Callable[[Result], Any] | None,
    claim: str,
    name: str,
) -> LimitedMeasure:
    """Return what is limited and how it is measured; a measure without a name has that of its function."""
    if holds is not None:
        if measure is not None or at_most is not None or at_least is not None or not callable(holds):
            raise ArgumentError(
                "calibrate: holds is a predicate on the result; leave out measure, at_most and at_least"
            )
        own = getattr(holds, "__name__", "")
        words = claim or ("the policy holds" if own in ("", "<lambda>") else f"{own.replace('_', ' ')}")
        return LimitedMeasure(words, partial(_judged, holds), Limit(at_least=1.0), words)
    if measure is None or (at_most is None) == (at_least is None):
        raise ArgumentError("calibrate: give a measure with one of at_most= and at_least=, or a predicate holds=")
    if not name:
        check_takes("calibrate: measure", measure, 1)
        own = getattr(measure, "__name__", "<lambda>")
        name = "the measure" if own == "<lambda>" else own
    limit = Limit(at_most, at_least)
    return LimitedMeasure(name, measure, limit, claim or f"{label(name)} is {limit}", has_unit=bool(claim))


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
    trials: tuple[BoundaryTrial, ...]
    remarks: tuple[str, ...] = ()
    limit: Limit | None = None
    measure: str = "measured"

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
        """Return the value with as many digits as are known, rounded to the side on which the limit holds."""
        return rounded_inwards(self.value, self.bracket, self.find)

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
        rows = [[f"{trial.value:.6g}", cell_text(trial.cell, notes), trial.status.value] for trial in ordered]
        return (str(self), [self.parameter, "measured", "limit"], rows, notes)

    def plot(self, ax: Any = None) -> Any:
        """Draw what was measured at all values tried, the limit and the answer; `ax` is matplotlib axes or a path."""
        name, bound = label(self.measure), None if self.limit is None else self.limit.bound
        tried = [(trial.value, trial.cell) for trial in self.trials]
        return plots().calibration(self.parameter, tried, (name, bound), (self.value, self.bracket), ax)

    def to_dict(self) -> dict[str, Any]:
        """Return the answer and what was tried as plain values."""
        trials = [{"value": t.value, "status": t.status.value, "measured": plain_cell(t.cell)} for t in self.trials]
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
    find: Literal["largest", "smallest"] = "largest",
    observe: Any = None,
    grid: Annotated[int, NumberRange(2)] = 9,
    tolerance: InnerProbability = 1e-4,
    engine: str = "auto",
    samples: int = 10_000,
    seed: int = 0,
    checkpoint: str | os.PathLike[str] | None = None,
    **parameter: tuple[float, float],
) -> Calibration:
    """Find the largest value of a parameter for which a limit holds: "what epsilon should I choose?".

    A grid of values is tried first; the boundary of the limit is then narrowed down by halving. The limit counts as
    satisfied only if the whole interval of the measure satisfies it, so that an answer from samples errs on the safe
    side; the bracket says how much larger the true answer may be. If the limit holds again beyond a value that
    violates it, the first boundary is returned, with a remark.

    Args:
        attack_for: A function of the parameter, by name, that returns the attack.
        measure: What is limited: the name of one of the attack's questions, such as "Alice is under 18", the name of a
            measure, such as "max_posterior_belief" or "mutual_information", or a function from a result to an estimate.
            The belief that answers a question is the one after `observe`; without it the worst case, after any output.
            Where that is only known on samples, the mechanism's guarantee bounds it: an output of an
            epsilon-differentially private mechanism changes the odds of a statement about one row by at most
            exp(epsilon).
        at_most: The largest value that the measure may have.
        at_least: The smallest value that the measure may have.
        holds: A predicate on the result, in place of a measure with a limit.
        claim: The limit in words, for messages.
        find: Whether the "largest" or the "smallest" such value is searched for.
        observe: What the attacker sees, or a function of the parameter that returns it.
        grid: How many values are tried first.
        tolerance: How narrow the bracket becomes, relative to the value.
        engine: The inference engine, or "auto".
        samples: How many samples are drawn where no exact answer is possible.
        seed: Seeds the samples.
        checkpoint: The path of a file that keeps trials, as in `pv.sweep`.
        parameter: The name of the parameter with its range, such as `epsilon=(0.01, 10)`.

    Returns:
        The value, its bracket, and all trials.

    Raises:
        ArgumentError: The limit holds everywhere in the range, or an argument is not of its kind.
        InferenceError: The limit holds nowhere, or not at the end of the range at which the search starts.

    >>> import privug as pv
    >>> def noisy_bit(epsilon):
    ...     def release(bit):
    ...         return bit + pv.sample(pv.DiscreteLaplace(1 / epsilon))
    ...     return pv.Attack(release, prior={"bit": pv.Bernoulli(0.5)}, secret="bit")
    >>> print(calibrate(noisy_bit, measure="bayes_vulnerability", at_most=0.6, epsilon=(0.01, 10)))
    epsilon = 0.40544 is the largest for which bayes vulnerability is at most 0.6 (exact; no longer at 0.405481).
    """
    name, low, high = _range(parameter)
    options = {"engine": engine, "samples": samples, "seed": seed}
    asked = _LimitArguments(measure, at_most, at_least, holds, claim)
    target = asked.target(partial(made, attack_for, {name: low}), observe, options)
    study = StudySettings({target.name: target.measure}, {}, options)

    def judge(values: Sequence[float]) -> list[BoundaryTrial]:
        jobs = [Job(partial(made, attack_for, {name: value}), observed(observe, {name: value})) for value in values]
        cells = [one.cell(target.name) for one in outcomes(jobs, study, f"calibrating {name}")]
        return [_trial(value, cell, target.limit) for value, cell in zip(values, cells, strict=True)]

    parts = {"attack_for": attack_for, "observe": observe, "the limit": asked, "find": find, "tolerance": tolerance}
    with kept_in(checkpoint, "calibration", **parts, **options, parameter=[name, low, high, grid]):
        found = BoundarySearch(judge, name, target.claim, find, tolerance, target.limit).run(spaced(low, high, grid))
    again = found.again
    remarks = () if again is None else (f"It holds again at {name} = {again.value:.6g}, beyond values that violate it",)
    return Calibration(
        name, found.holds.value, found.bracket, target.claim_about(found.holds.cell), find, found.trials, remarks,
        target.limit, target.name,
    )  # fmt: skip


def _trial(value: float, cell: Cell, limit: Limit) -> BoundaryTrial:
    return BoundaryTrial(value, cell, limit.judge(cell) if isinstance(cell, Estimate) else Status.UNDECIDED)


@dataclass(frozen=True)
class _LimitArguments:
    """The limit, as it was written."""

    measure: str | Measure | None
    at_most: float | None
    at_least: float | None
    holds: Callable[[Result], Any] | None
    claim: str

    def target(self, first: Callable[[], Attack], observe: Any, options: Mapping[str, Any]) -> LimitedMeasure:
        """Return what is limited and how it is measured: a question of the attack, or a measure."""
        called, function = "", self.measure
        if isinstance(self.measure, str) and not is_measure(self.measure) and self.holds is None:
            attack = first()
            asked_by_name(attack, self.measure)
            seen = "" if observe is not None or attack.observe is not None else " after any output"
            called = f"the belief in {self.measure!r}{seen}"
            function = partial(answer, self.measure, options, least=self.at_most is None)
        elif isinstance(self.measure, str):
            ((called, function),) = (checked_measures([self.measure], options) or {}).items()
        return target_of(function, self.at_most, self.at_least, self.holds, self.claim, called)


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
