"""The same attack for many values of a parameter, and what protection costs in utility."""

import inspect
import itertools
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from privug.arguments import check_kind, is_one_of, kinds_checked, naming, represented, shown
from privug.attack import Attack, Result
from privug.errors import ArgumentError, StudyError
from privug.estimate import Estimate
from privug.inference.belief import Belief
from privug.leakage.divergence import kl_divergence
from privug.model.batch import Batch
from privug.model.variable import RandomVariable
from privug.observation.observations import Observation
from privug.pictures import plots
from privug.program.logic import where
from privug.report.text import Grids
from privug.studies.measured import (
    AttackMeasures,
    Cell,
    Job,
    Measure,
    StudySettings,
    cell_text,
    checked_measures,
    gathered,
    kept_in,
    label,
    plain_cell,
)


@kinds_checked
def expected_error(result: Result, noiseless: Callable[..., Any], *, samples: int = 10_000, seed: int = 0) -> Estimate:
    """Expected error: by how much the output differs from that of the program without protection, on average.

    E|output - noiseless output| over the inputs that the attacker holds for possible and the noise, before any
    observation; in the unit of the output, from 0 on. Of an output of several parts (a tuple, a dict) it is the mean of
    their errors, and of a label the probability that it differs. Exact where the difference is; on samples unbiased.

    >>> import privug as pv
    >>> noisy = pv.Attack(lambda x: x + pv.sample(pv.Laplace(0, 2)), prior={"x": pv.Uniform(0, 100)}, secret="x")
    >>> round(float(expected_error(noisy.run(), lambda x: x)), 9)
    2.0
    """
    check_kind("expected_error", "result", result, (Result,))
    difference = _difference(result.attack.question.program, noiseless)
    belief = _on(result, difference).run(samples=samples, seed=seed).prediction
    numbers = belief.batch.numbers()
    if numbers is None:
        raise ArgumentError("expected_error: the outputs must be numbers or labels, or tuples or dicts of such")
    if belief.curve is not None:
        error = belief.curve.expectation(np.abs, (0.0,))
        width = belief.error * float(np.abs(numbers).max())
        return Estimate(error, max(0.0, error - width), error + width, method=belief.method, exact=True)
    absolute = Belief(Batch.of_values(np.abs(numbers)), belief.weights, belief.exact, error=belief.error)
    return absolute.mean()


@kinds_checked
def output_divergence(
    result: Result, noiseless: Callable[..., Any], *, samples: int = 10_000, seed: int = 0
) -> Estimate:
    """Output divergence: the information lost when the protected output is used in place of the other.

    D(noiseless output || output) = sum q(o) log2(q(o) / p(o)), or the integral over densities, in bits from 0 on,
    before any observation. In this direction, because noise reaches outputs that are impossible without it: the other
    way it is infinite. It is infinite this way too where protection rules out outputs, as rounding does; the method
    then says why, and `expected_error` is the number to look at. Exact where both outputs are. On samples it errs as
    `pv.leakage.kl_divergence` does. Burnham and Anderson, Model Selection and Multimodel Inference, page 51.

    >>> import privug as pv
    >>> noisy = pv.Attack(lambda x: x + pv.sample(pv.Normal(0, sd=3)), prior={"x": pv.Normal(0, sd=4)}, secret="x")
    >>> print(output_divergence(noisy.run(), lambda x: x))
    0.0622 bit (exact)
    """
    check_kind("output_divergence", "result", result, (Result,))
    plain = _on(result, noiseless).run(samples=samples, seed=seed)
    return kl_divergence(plain.prediction, result.prediction)


def _on(result: Result, program: Callable[..., Any]) -> Attack:
    """Return the attack of a result on another program, whose output is asked for and nothing else."""
    return result.attack.replace(program=program, observe=None, questions=None)


def _difference(program: Callable[..., Any], noiseless: Callable[..., Any]) -> Callable[..., Any]:
    """Return the program that computes by how much two programs differ on the same inputs."""
    if not callable(noiseless):
        raise ArgumentError(f"utility: the program without protection must be a function, not {shown(noiseless)}")

    def difference(*arguments: Any, **named: Any) -> Any:
        return _distance(program(*arguments, **named), noiseless(*arguments, **named))

    difference.__signature__ = inspect.signature(program)  # type: ignore[attr-defined]
    return difference


def _distance(output: Any, other: Any) -> Any:
    """Return by how much an output differs from another one; for single numbers with its sign."""
    if isinstance(output, Mapping):
        output, other = list(output.values()), [other[name] for name in output]
    if isinstance(output, list | tuple):
        parts = [abs(_distance(one, counterpart)) for one, counterpart in zip(output, other, strict=True)]
        return sum(parts) / len(parts)
    is_label = isinstance(output, str) or (isinstance(output, RandomVariable) and output.node.levels is not None)
    return where(output == other, 0, 1) if is_label else output - other


Parameters = Mapping[str, Any]


@dataclass(frozen=True)
class Sweep(Grids):
    """What a sweep found: for each combination of parameters the measures, or why there are none.

    >>> import privug as pv
    >>> def survey(people):
    ...     answers = pv.Array(pv.Bernoulli(0.5), people)
    ...     return pv.Attack(lambda answers: sum(answers), {"answers": answers}, secret=lambda answers: answers[0])
    >>> bits = {"bits": lambda result: pv.leakage.mutual_information(result.joint)}
    >>> found = pv.sweep(survey, people=[1, 2], measures=bits)
    >>> [cell.value for cell in found["bits"]]
    [1.0, 0.5]
    """

    points: tuple[Parameters, ...]
    outcomes: tuple[AttackMeasures, ...]
    wanted: int
    """How many points were asked for; there are fewer if the sweep was interrupted."""

    @property
    def measures(self) -> tuple[str, ...]:
        """The names of the measures."""
        return tuple(dict.fromkeys(name for outcome in self.outcomes for name in outcome.cells))

    def __getitem__(self, measure: str) -> list[Cell]:
        """Return a measure at every point."""
        if measure not in self.measures:
            raise KeyError(f"{measure!r}; this sweep has {', '.join(self.measures)}")
        return [outcome.cell(measure) for outcome in self.outcomes]

    def to_dict(self) -> list[dict[str, Any]]:
        """Return a row of plain values for each point and measure."""
        return [
            {**point, "measure": name, **plain_cell(outcome.cell(name)), "engine": outcome.engine}
            for point, outcome in zip(self.points, self.outcomes, strict=True)
            for name in self.measures
        ]

    @kinds_checked
    def plot(self, ax: Any = None, measures: Sequence[str] | None = None, against: str | None = None) -> Any:
        """Draw each measure against the first parameter, with bands for intervals; a line for each further one.

        `ax` is matplotlib axes, one for each measure, or the path of a picture to write. With `against`, another
        measure such as "expected_error", the first of the measures is drawn against that: privacy against utility.
        """
        names = list(self.measures if measures is None else measures)
        known = [*names, *([] if against is None else [against])]
        if not names or not all(is_one_of(name, self.measures) for name in known):
            raise ArgumentError(f"plot: measures must be some of {', '.join(self.measures)}, not {shown(known)}")
        first, *further = self.points[0]
        values = list(dict.fromkeys(point[first] for point in self.points))
        if against is not None:
            across, up = ((label(name, self.outcomes), self._lines(name, further)) for name in (against, names[0]))
            return plots().trade_off(first, values, across, up, ax)
        if not all(isinstance(value, int | float) for value in values):
            raise ArgumentError(f"plot: {first} must be numbers to be drawn as lines; print the table instead")
        lines = {label(name, self.outcomes): self._lines(name, further) for name in names}
        return plots().sweep_lines(first, values, lines, ax)

    def _lines(self, measure: str, further: Sequence[str]) -> dict[str, list[Cell]]:
        """Return a measure along the first parameter, for each combination of the further ones."""
        lines: dict[str, list[Cell]] = {}
        for point, cell in zip(self.points, self[measure], strict=True):
            label = ", ".join(f"{name} = {represented(point[name], str)}" for name in further)
            lines.setdefault(label, []).append(cell)
        return lines

    def _tables(self) -> list[tuple[str, list[str], list[list[str]], list[str]]]:
        notes: list[str] = []
        measures = self.measures or ("result",)
        rows = [
            [*(f"{value:g}" if isinstance(value, float) else represented(value, str) for value in point.values())]
            + [cell_text(outcome.cell(name), notes) for name in measures]
            for point, outcome in zip(self.points, self.outcomes, strict=True)
        ]
        names = list(self.points[0]) if self.points else []
        title = f"sweep over {', '.join(names)}: {self._provenance()}"
        return [(title, [*names, *(label(name, self.outcomes) for name in measures)], rows, notes)]

    def _provenance(self) -> str:
        estimates = [c for outcome in self.outcomes for c in outcome.cells.values() if isinstance(c, Estimate)]
        exact = all(estimate.exact for estimate in estimates)
        kind = "all numbers are exact" if exact else "± and [ ] are 95 % intervals"
        if not any(outcome.cells for outcome in self.outcomes):
            kind = "no numbers"
        return kind if len(self.points) == self.wanted else f"interrupted after {len(self.points)} of {self.wanted}"


@kinds_checked
def sweep(
    attack_for: Callable[..., Attack],
    *,
    observe: Any = None,
    measures: Mapping[str, Measure] | Sequence[str] | None = None,
    utility: Callable[..., Any] | None = None,
    engine: str = "auto",
    samples: int = 10_000,
    seed: int = 0,
    checkpoint: str | os.PathLike[str] | None = None,
    **parameters: Iterable[Any],
) -> Sweep:
    """Run an attack for every combination of parameters, and measure each.

    Args:
        attack_for: A function of the parameters, by name, that returns the attack.
        observe: What the attacker sees, or a function of the parameters that returns it.
        measures: Names of measures, such as "mutual_information", and of the attack's own questions, such as "Alice is
            under 18"; or a dict from names to functions from a result to an estimate. By default the attack's
            questions, the mutual information, for a discrete secret the Bayes vulnerability, and what an observation
            reveals.
        utility: The program without protection: the mean distance of the outputs from its outputs is measured as well
            (`expected_error`).
        engine: The inference engine, or "auto".
        samples: How many samples are drawn where no exact answer is possible.
        seed: The same seed gives the same numbers on any number of workers.
        checkpoint: The path of a file that keeps points as they are measured: a sweep that was killed or interrupted
            continues from it if it is called again.
        parameters: The values of each parameter, by name.

    Returns:
        The measures for each combination of parameters. A question is answered by the belief after the observation; if
        nothing is observed, by the worst case, the largest belief after any output, and so is "max_posterior_belief"
        for the likeliest secret. Where only samples exist, the worst case is bounded by what the mechanism promises.
        Ctrl-C returns what has been measured so far.

    Raises:
        ArgumentError: A parameter has no values, or an argument is not of its kind.
        StudyError: `attack_for` or a measure fails, or returns something else.

    >>> import privug as pv
    >>> def noisy_bit(epsilon):
    ...     def release(bit):
    ...         return bit + pv.sample(pv.DiscreteLaplace(1 / epsilon))
    ...     return pv.Attack(release, prior={"bit": pv.Bernoulli(0.5)}, secret="bit")
    >>> found = sweep(noisy_bit, epsilon=[0.5, 2.0])
    >>> [round(float(e), 4) for e in found["bayes_vulnerability"]]
    [0.6225, 0.8808]
    """
    points = _grid(parameters)
    options = {"engine": engine, "samples": samples, "seed": seed}
    further: dict[str, Measure] = {}
    if utility is not None:
        further = {"expected_error": partial(expected_error, noiseless=utility, samples=samples, seed=seed)}
    study = StudySettings(checked_measures(measures, options), further, options)
    jobs = [Job(partial(made, attack_for, point), observed(observe, point)) for point in points]
    asked = {"attack_for": attack_for, "observe": observe, "measures": measures, "utility": utility, **options}
    with kept_in(checkpoint, "sweep", **asked, parameters=points):
        found = gathered(jobs, study, "sweep")
    return Sweep(tuple(points[: len(found)]), tuple(found), len(points))


def made(attack_for: Callable[..., Attack], point: Parameters) -> Attack:
    """Return the attack for given parameters."""
    if not callable(attack_for):
        raise StudyError(f"attack_for must be a function that returns a pv.Attack, not {shown(attack_for)}")
    try:
        inspect.signature(attack_for).bind(**point)
    except (TypeError, ValueError) as error:  # some built-in functions do not tell what they take
        raise StudyError(f"attack_for must be a function of {', '.join(point)}: {error}") from None
    with naming("attack_for", StudyError):
        attack = attack_for(**point)
    if not isinstance(attack, Attack):
        raise StudyError(f"attack_for must return a pv.Attack, not {shown(attack)}")
    return attack


def observed(observe: Any, point: Parameters) -> Any:
    """Return what is observed for given parameters."""
    if isinstance(observe, Observation) or not callable(observe):
        return observe
    with naming("observe", StudyError):
        return observe(**point)


def _grid(parameters: Mapping[str, Iterable[Any]]) -> list[Parameters]:
    if not parameters:
        raise ArgumentError("sweep: name a parameter and its values, such as epsilon=[0.1, 1, 10]")
    listed = {}
    for name, values in parameters.items():
        if isinstance(values, str | RandomVariable) or not isinstance(values, Iterable):
            raise ArgumentError(f"sweep: {name} must be a list of values, not {shown(values)}")
        listed[name] = [value.item() if isinstance(value, np.generic) else value for value in values]
        if any(isinstance(value, float) and math.isnan(value) for value in listed[name]):
            raise ArgumentError(f"sweep: {name} holds NaN, for which every number is undefined; leave it out")
        if not listed[name]:
            raise ArgumentError(f"sweep: {name} must have at least one value")
    return [dict(zip(listed, values, strict=True)) for values in itertools.product(*listed.values())]
