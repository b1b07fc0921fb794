"""The ways to change a release until a policy holds: merged outputs, rounding, suppression, noise."""

import importlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from privug.arguments import is_number, shown
from privug.attack import Attack, Result
from privug.digits import how_many
from privug.errors import ArgumentError, InferenceError, NoRepair
from privug.estimate import Estimate
from privug.mechanisms.disclosure import rounded, suppressed
from privug.model.structure import flatten
from privug.policy.checking import Effort, check
from privug.policy.classes import Views
from privug.policy.merging import Merged, merged
from privug.policy.partitions import finest
from privug.policy.policies import Policy
from privug.policy.verdict import Status, Verdict
from privug.program.staged import Staged

MOST_TRIED = 200
STEPS = (1, 2, 5)
FINEST = 20  # steps of rounding in the range of outputs that have a density
STATUSES = {"kept": Status.HOLDS, "broken": Status.VIOLATED, "open": Status.UNDECIDED}
OPEN = Estimate(0.5, 0.0, 1.0)
NEGLIGIBLE = 1e-12
"""Noise without end is cut where 1e-15 of it is left. Outputs that rare cannot be judged and are left out of account;
the verdict says how likely they are."""

Program = Callable[..., Any]
Trials = tuple[tuple[float, Status], ...]


@dataclass(frozen=True)
class Repair:
    """A changed program after every output of which the policy holds, in words, and what was tried on the way.

    `value` is the step of rounding, the threshold or the parameter of the noise; `bracket` are that value and the
    nearest one tried that is less protection and breaks the policy, or leaves it open.
    """

    kind: str
    words: str
    program: Staged
    verdict: Verdict
    value: float | None = None
    bracket: tuple[float, float] | None = None
    trials: Trials = ()
    merged: Merged | None = None
    method: str = ""


@dataclass(frozen=True)
class Task:
    """What is to be repaired, and how programs are checked."""

    attack: Attack
    policy: Policy
    effort: Effort

    @property
    def program(self) -> Program:
        """The program whose output is released."""
        return self.attack.question.program

    def attack_on(self, program: Program) -> Attack:
        """Return the same attack on another program."""
        return self.attack.replace(program=program, observe=None, name=self.attack.name)

    def check(self, program: Program, except_probability: float = 0.0) -> Verdict:
        """Check the policy on another program."""
        effort = self.effort
        options: Any = {"engine": effort.engine, "samples": effort.samples, "seed": effort.seed}
        options |= {"seconds": effort.seconds, "except_probability": except_probability}
        return check(self.attack_on(program), self.policy, **options)


def by_merging(task: Task, neighbours: bool) -> Repair:
    """Merge outputs into the finest classes after which the policy holds."""
    views = Views.of(task.attack, task.policy, task.effort)
    found = finest(views, neighbours)
    if found is None:
        raise NoRepair("no way to merge outputs keeps the policy")
    release = merged(views.outputs, found.classes)
    program = Staged(task.program, release)
    classes = how_many(len(found.classes), "class", "classes")
    words = f"its {len(views.outputs)} outputs merged into {classes}, {found.method}"
    return _checked(Repair("merge", words, program, task.check(program), merged=release, method=found.method))


def _checked(repair: Repair) -> Repair:
    if not repair.verdict.holds:
        raise NoRepair(f"with {repair.words} it is not certain that the policy holds: {repair.verdict.sentence()}")
    return repair


@dataclass
class Ladder:
    """Candidates from the least protection on, of which the first is taken that keeps the policy."""

    task: Task
    kind: str
    made: Callable[[float], Staged]
    words: str
    trials: list[tuple[float, Status]] = field(default_factory=list)

    def climbed(self, candidates: Iterable[float]) -> Repair:
        """Try the candidates one by one."""
        for value in candidates:
            program = self.made(value)
            verdict = self.task.check(program)
            if verdict.holds:
                before = self.trials[-1][0] if self.trials else -math.inf
                self.trials.append((value, verdict.status))
                words, bracket = self.words.format(value), (before, value)
                return Repair(self.kind, words, program, verdict, value, bracket, tuple(self.trials), method="finest")
            self.trials.append((value, verdict.status))
        tried = ", ".join(f"{value:g}" for value, _ in self.trials[:8]) + (", ..." if len(self.trials) > 8 else "")
        raise NoRepair(f"{self.words.format(math.nan).replace('nan', 'any of ' + tried)} does not keep the policy")


def by_rounding(task: Task, steps: Sequence[float] | None) -> Repair:
    """Round to the finest step for which the policy holds."""
    candidates = sorted(_numbers("steps", steps)) if steps is not None else _steps(task)
    return Ladder(
        task, "round", lambda step: rounded(task.program, to=step), "numbers rounded to multiples of {:g}"
    ).climbed(candidates)


def by_suppression(task: Task, thresholds: Sequence[float] | None) -> Repair:
    """Leave out counts below the smallest threshold for which the policy holds."""
    candidates = sorted(_numbers("thresholds", thresholds)) if thresholds is not None else _thresholds(task)
    return Ladder(
        task, "suppress", lambda least: suppressed(task.program, fewer_than=int(least)), "counts below {:g} left out"
    ).climbed(candidates)


def _numbers(name: str, values: Any) -> list[float]:
    listed = list(values) if isinstance(values, list | tuple | range | np.ndarray) else []
    if not listed or not all(is_number(value) and value > 0 for value in listed):
        raise ArgumentError(f"enforce: {name} must be a list of positive numbers, not {shown(values)}")
    return [float(value) for value in listed]


def _numbers_of_outputs(task: Task) -> list[float]:
    """Return the numbers that the outputs are made of, as far as they are listed or seen."""
    batch = task.effort.run(task.attack, None).prediction.batch
    plain = batch.numbers()
    if plain is not None and plain.dtype.kind in "bif":
        numbers: list[float] = np.unique(plain).astype(float).tolist()
        return numbers
    leaves = [leaf for value in batch.factorized()[1] for leaf in flatten(value)[1]]
    arrays = [np.asarray(leaf) for leaf in leaves]
    if not arrays or any(array.dtype.kind not in "biuf" for array in arrays):
        raise ArgumentError("enforce: rounding and suppression need outputs that are made of numbers")
    return sorted({float(number) for array in arrays for number in array.reshape(-1)})


def _steps(task: Task) -> list[float]:
    """Return 1, 2 or 5 times powers of ten, from the least distance of outputs to beyond their range."""
    numbers = [number for number in _numbers_of_outputs(task) if math.isfinite(number)]
    span = 2 * max(map(abs, numbers), default=0.0) or 1.0
    gaps = np.diff(numbers)
    finest = max(float(gaps.min(initial=span)), span / FINEST)
    powers = range(math.floor(math.log10(finest)) - 1, math.ceil(math.log10(span)) + 2)
    steps = [float(f"{step}e{power}") for power in powers for step in STEPS]
    beyond = next(place for place, step in enumerate(steps) if step > span)
    return [step for step in steps[: beyond + 1] if step > finest * (1 + 1e-9)]


def _thresholds(task: Task) -> list[float]:
    numbers = _numbers_of_outputs(task)
    if any(number != round(number) or number < 0 for number in numbers):
        raise ArgumentError("enforce: suppression is for counts, and the outputs are others")
    largest = int(max(numbers))
    if largest > MOST_TRIED:
        raise ArgumentError(f"enforce: counts up to {largest:,} have too many thresholds to try; give thresholds=[...]")
    return [float(threshold) for threshold in range(2, largest + 2)]


@dataclass(frozen=True)
class Noise:
    """A mechanism with one parameter, its range, and which end of it is the less noise."""

    made: Callable[[Program, float], Any]
    parameter: str
    ends: tuple[float, float]
    find: str = "largest"
    tolerance: float = 0.01

    def on(self, program: Program, value: float) -> Staged:
        """Return a program with so much noise."""
        noisy = self.made(program, value)
        if not isinstance(noisy, Staged):
            raise ArgumentError(
                "enforce: noise must take the program and a number and return a mechanism, such as "
                "lambda program, epsilon: pv.mechanisms.laplace(program, sensitivity=1, epsilon=epsilon), not "
                f"{shown(noisy)}"
            )
        return noisy


def noise_of(made: Any, parameter: Mapping[str, Any], find: str, tolerance: float) -> Noise:
    """Take what a user says about noise: a function of a program and a number, and the range of that."""
    if find not in ("largest", "smallest"):
        raise ArgumentError(f"enforce: find must be 'largest' or 'smallest', not {shown(find)}")
    if not 0 < tolerance < 1:
        raise ArgumentError(f"enforce: tolerance must lie between 0 and 1, not {shown(tolerance)}")
    if len(parameter) != 1:
        named = ", ".join(parameter) or "none"
        raise ArgumentError(
            f"enforce: name the parameter of the noise with its range, as epsilon=(0.01, 10), not {named}"
        )
    ((name, ends),) = parameter.items()
    if not (isinstance(ends, list | tuple) and len(ends) == 2 and all(map(is_number, ends)) and ends[0] < ends[1]):
        raise ArgumentError(
            f"enforce: {name} must be a range such as (0.01, 10), the lower end first, not {shown(ends)}"
        )
    return Noise(made, name, (float(ends[0]), float(ends[1])), find, tolerance)


def by_noise(task: Task, noise: Noise) -> Repair:
    """Add the least noise of a mechanism for which the policy holds."""
    least = noise.ends[1] if noise.find == "largest" else noise.ends[0]
    program = noise.on(task.program, least)
    verdict = task.check(program, NEGLIGIBLE)
    words = f"noise of {noise.parameter} = {{}}"
    if verdict.holds:
        told = f"{words.format(f'{least:g}')}, the least in its range"
        return Repair("noise", told, program, verdict, least, None, ((least, verdict.status),), method="least in range")
    # Studies need the worst cases that policies find: whichever room is entered first, this part of it comes later.
    calibrate = importlib.import_module("privug.studies.calibration").calibrate
    try:
        found = calibrate(
            lambda **named: task.attack_on(noise.on(task.program, named[noise.parameter])),
            measure=partial(_brokenness, task),
            at_most=0.25,
            claim="the policy holds",
            find=noise.find,
            tolerance=noise.tolerance,
            **{noise.parameter: noise.ends},
        )
    except InferenceError as error:
        raise NoRepair(f"no noise in the range keeps the policy: {error}") from None
    program = noise.on(task.program, found.value)
    trials = tuple((trial.value, STATUSES[trial.verdict.value]) for trial in found.trials)
    remarks = "".join(f". {remark}" for remark in found.remarks)
    told = f"{words.format(found.rounded())}, the {noise.find} that keeps the policy{remarks}"
    verdict = task.check(program, NEGLIGIBLE)
    return _checked(Repair("noise", told, program, verdict, found.value, found.bracket, trials, method="bisection"))


def _brokenness(task: Task, result: Result) -> Estimate:
    """Return zero where the policy holds, one where it is violated, anything between where it is not known."""
    status = task.check(result.attack.question.program, NEGLIGIBLE).status
    return OPEN if status is Status.UNDECIDED else Estimate.exactly(float(status is Status.VIOLATED))
