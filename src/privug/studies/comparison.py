"""Attackers against programs: every attacker runs on every program, by every measure."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from privug.arguments import is_one_of, kinds_checked, shown
from privug.attack import Attack
from privug.errors import ArgumentError
from privug.observation.observations import Observation
from privug.pictures import plots
from privug.report.text import Grids
from privug.studies.measured import (
    AttackMeasures,
    Cell,
    Job,
    Measure,
    NoNumber,
    StudySettings,
    cell_text,
    checked_measures,
    gathered,
    kept_in,
    label,
    plain_cell,
)


@dataclass(frozen=True)
class ComparisonMatrix(Grids):
    """What a comparison found: for every attacker and program the measures, or why there are none.

    >>> import privug as pv
    >>> found = pv.compare(
    ...     attackers={"guesses": {"x": pv.Bernoulli(0.5)}},
    ...     programs={"as it is": lambda x: x, "nothing": lambda x: 0},
    ...     secret="x",
    ...     measures={"bits": lambda result: pv.leakage.mutual_information(result.joint)},
    ... )
    >>> found["guesses", "as it is", "bits"].value
    1.0
    """

    attackers: tuple[str, ...]
    programs: tuple[str, ...]
    outcomes: Mapping[tuple[str, str], AttackMeasures]

    @property
    def measures(self) -> tuple[str, ...]:
        """The names of the measures."""
        return tuple(dict.fromkeys(name for outcome in self.outcomes.values() for name in outcome.cells))

    def __getitem__(self, key: tuple[str, str, str]) -> Cell:
        """Return the cell of an attacker, a program and a measure."""
        named = key if isinstance(key, tuple) and len(key) == 3 else (None, None, None)
        if named[:2] not in self.outcomes or named[2] not in self.measures:
            known = f"attackers {self.attackers}, programs {self.programs}, measures {self.measures}"
            raise KeyError(f"{key!r} is no attacker, program and measure; there are {known}")
        return self.outcomes[named[:2]].cell(named[2])

    def to_dict(self) -> list[dict[str, Any]]:
        """Return a row of plain values for each attacker, program and measure."""
        return [
            {"attacker": attacker, "program": program, "measure": name, **plain_cell(outcome.cell(name)),
             "engine": outcome.engine}
            for (attacker, program), outcome in self.outcomes.items()
            for name in self.measures
        ]  # fmt: skip

    def plot(self, ax: Any = None, measure: str | None = None) -> Any:
        """Draw one measure as a heat map: attackers down, programs across.

        `ax` is matplotlib axes or the path of a picture to write.
        """
        name = self.measures[0] if measure is None and self.measures else measure
        if name is None or not is_one_of(name, self.measures):
            raise ArgumentError(
                f"plot: measure must be one of {', '.join(self.measures) or 'none'}, not {shown(measure)}"
            )
        cells = [[self[attacker, program, name] for program in self.programs] for attacker in self.attackers]
        return plots().heat_map(label(name, self.outcomes.values()), self.attackers, self.programs, cells, ax)

    def _tables(self) -> list[tuple[str, list[str], list[list[str]], list[str]]]:
        tables = []
        for name in self.measures or ("result",):
            notes: list[str] = []
            rows = [
                [
                    attacker,
                    *(cell_text(self.outcomes[attacker, program].cell(name), notes) for program in self.programs),
                ]
                for attacker in self.attackers
            ]
            tables.append((label(name, self.outcomes.values()), ["attacker", *self.programs], rows, notes))
        return tables


@kinds_checked
def compare(
    *,
    attackers: Mapping[str, Any],
    programs: Mapping[str, Callable[..., Any]],
    secret: Any,
    observe: Any = None,
    assume: Any = (),
    measures: Mapping[str, Measure] | Sequence[str] | None = None,
    questions: Mapping[str, Callable[[Any], Any]] | None = None,
    engine: str = "auto",
    samples: int = 10_000,
    seed: int = 0,
    checkpoint: str | os.PathLike[str] | None = None,
) -> ComparisonMatrix:
    """Run every attacker on every program, and measure each.

    Args:
        attackers: Maps names to priors, as `pv.Attack` takes them.
        programs: Maps names to programs.
        secret: The secret, as `pv.Attack` takes it.
        observe: What every attacker sees, or a dict from each program's name to what is seen of it.
        assume: Facts that every attacker knows, or a dict from each attacker's name to theirs.
        measures: The measures, as in `pv.sweep`.
        questions: Maps claims in words to predicates on the secret.
        engine: The inference engine, or "auto".
        samples: How many samples are drawn where no exact answer is possible.
        seed: Seeds the samples.
        checkpoint: The path of a file that keeps cells as they are computed, as in `pv.sweep`.

    Returns:
        A cell for each attacker, program and measure. A cell that cannot be computed contains the reason.

    Raises:
        ArgumentError: An argument is not of its kind, or there are no attackers or no programs.

    >>> import privug as pv
    >>> matrix = compare(
    ...     attackers={"fair": {"bit": pv.Bernoulli(0.5)}, "biased": {"bit": pv.Bernoulli(0.9)}},
    ...     programs={"plain": lambda bit: bit, "nothing": lambda bit: 0}, secret="bit", measures=["bayes_risk"])
    >>> print(matrix["biased", "nothing", "bayes_risk"])
    0.1 (exact)
    """
    for argument, value in (("attackers", attackers), ("programs", programs)):
        if not value or not all(isinstance(name, str) for name in value):
            raise ArgumentError(f"compare: {argument} must be a dict from names, and not empty, not {shown(value)}")
    seen = _for_each("observe", observe, programs, "program")
    facts = _for_each("assume", assume, attackers, "attacker")
    pairs = [(attacker, program) for attacker in attackers for program in programs]
    jobs = []
    for a, p in pairs:
        options: Any = {"questions": questions, "assume": facts[a], "name": f"{a}, {p}"}
        jobs.append(Job(partial(Attack, programs[p], attackers[a], secret, **options), seen[p]))
    how = {"engine": engine, "samples": samples, "seed": seed}
    study = StudySettings(checked_measures(measures, how), {}, how)
    asked = {"attackers": attackers, "programs": programs, "secret": (secret,), "observe": observe, "assume": assume}
    with kept_in(checkpoint, "comparison", **asked, measures=measures, questions=questions, **how):
        found = gathered(jobs, study, "comparing")
    found += [AttackMeasures({}, refusal=NoNumber("interrupted before this cell"))] * (len(jobs) - len(found))
    return ComparisonMatrix(tuple(attackers), tuple(programs), dict(zip(pairs, found, strict=True)))


def _for_each(argument: str, value: Any, names: Mapping[str, Any], what: str) -> dict[str, Any]:
    """Return what holds for each of some names; a dict whose keys are these names has an entry for each."""
    if isinstance(value, Mapping) and not isinstance(value, Observation) and set(value) & set(names):
        unknown = set(value) ^ set(names)
        if unknown:
            strange = ", ".join(sorted(map(shown, unknown)))
            raise ArgumentError(f"compare: {argument} must have an entry for each {what}, and no other: {strange}")
        return dict(value)
    return dict.fromkeys(names, value)
