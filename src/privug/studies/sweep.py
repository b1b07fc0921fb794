"""The same attack for many values of a parameter: of the program, of its noise, or of what the attacker knows."""

import inspect
import itertools
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from privug.arguments import is_one_of, kinds_checked, naming, represented, shown
from privug.attack import Attack
from privug.errors import ArgumentError, StudyError
from privug.estimate import Estimate
from privug.model.variable import RandomVariable
from privug.observation.observations import Observation
from privug.pictures import plots
from privug.report.grid import Grids
from privug.studies.cells import (
    Cell,
    Job,
    Measure,
    Outcome,
    Settings,
    cell_text,
    checked_measures,
    gathered,
    kept_in,
    label,
    plain_cell,
)
from privug.studies.utility import expected_error

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
    outcomes: tuple[Outcome, ...]
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

    `attack_for` gets the parameters by name and returns the attack. `observe` is what the attacker sees, or a function
    of the parameters that says so.

    `measures` lists names: of measures, such as "mutual_information", and of the attack's own questions, such as "Alice
    is under 18". A question is answered by the belief after the observation; if nothing is observed, by the worst case,
    the largest belief that any output leads to, and so is "max_posterior_belief" for the likeliest secret. Where only
    samples exist, the worst case is bounded by what the mechanism promises. Or `measures` maps names to functions from
    a result to an estimate. Without it there are the attack's questions, the mutual information, for a discrete secret
    the Bayes vulnerability, and what an observation told.

    `utility` is the program without protection: how far outputs are from its outputs on average is then measured too
    (`expected_error`). The same seed gives the same numbers on any number of workers. Ctrl-C gives what is there by
    then. `checkpoint` is the path of a file that keeps points as they are measured: a sweep that was killed or
    interrupted goes on from there if it is called again.

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
    study = Settings(checked_measures(measures, options), further, options)
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
