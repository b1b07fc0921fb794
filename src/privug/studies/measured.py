"""One attack as a cell of a study: its measures as estimates, or why there are none."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from privug import leakage, settings
from privug.arguments import LARGEST, is_truth, naming, plain_number, shown
from privug.attack import Attack, Result
from privug.checkpoints.checkpoint import Checkpoint
from privug.checkpoints.encoding import vocabulary_for
from privug.errors import ArgumentError, PrivugError, StudyError
from privug.escaping import inert
from privug.estimate import Estimate
from privug.leakage.divergence import kl_divergence
from privug.leakage.vulnerability import mirrored
from privug.model.node import Kind
from privug.program.logic import where
from privug.progress import ProgressMeter
from privug.runtime.tasks import run_tasks
from privug.studies.worst_case import worst_belief, worst_guess

Measure = Callable[[Result], Estimate]


@dataclass(frozen=True)
class NoNumber:
    """Why a cell has no number, and the kind of error that said so."""

    reason: str
    error: type[PrivugError] = PrivugError

    def __str__(self) -> str:
        return inert(f"none: {self.reason}")


Cell = Estimate | NoNumber


@dataclass(frozen=True)
class AttackMeasures:
    """The measures of one attack, or why it could not be run, and the engine that answered."""

    cells: Mapping[str, Cell]
    engine: str = ""
    refusal: NoNumber | None = None
    titles: Mapping[str, str] = field(default_factory=dict)
    """What tables call the answers to questions: beliefs after what was seen, or after the worst output."""

    @property
    def unanswered(self) -> NoNumber | None:
        """Why there is no number at all; None if there is one."""
        refused = [cell for cell in self.cells.values() if isinstance(cell, NoNumber)]
        return self.refusal or (refused[0] if refused and len(refused) == len(self.cells) else None)

    def cell(self, measure: str) -> Cell:
        """Return a measure, or why there is none."""
        return self.cells.get(measure) or self.refusal or NoNumber("this measure does not apply here")


@dataclass(frozen=True)
class Job:
    """An attack to be made and run, and what is observed of it."""

    make: Callable[[], Attack]
    observe: Any = None


@dataclass(frozen=True)
class StudySettings:
    """What is measured of every attack, and how it is run."""

    measures: Mapping[str, Measure] | None
    further: Mapping[str, Measure]
    options: Mapping[str, Any]

    def outcome(self, job: Job) -> AttackMeasures:
        """Run one attack; what Privug refuses is told in place of numbers."""
        try:
            result = job.make().run(observe=job.observe, **self.options)
            wanted = standard_measures(result, self.options) if self.measures is None else self.measures
            cells = {name: _measured(name, f, result) for name, f in {**wanted, **self.further}.items()}
        except StudyError:
            raise
        except PrivugError as error:
            return AttackMeasures({}, refusal=NoNumber(str(error), type(error)))
        title = "P({})" if result.observation is not None else "worst P({})"
        asked = [name for name in cells if name in result.attack.questions and not is_measure(name)]
        return AttackMeasures(cells, result.engine, titles={claim: title.format(claim) for claim in asked})


WORST_GUESS = "max_posterior_belief"


def standard_measures(result: Result, options: Mapping[str, Any]) -> dict[str, Measure]:
    """Return the measures that every study has: the attack's questions, what outputs tell, and what this one told."""
    measures: dict[str, Measure] = {claim: partial(answer, claim, options) for claim in result.attack.questions}
    measures["mutual_information"] = _by_name("mutual_information", options)
    if result.prior.kind is Kind.DISCRETE:
        measures["bayes_vulnerability"] = _by_name("bayes_vulnerability", options)
    if result.observation is not None:
        measures["kl_divergence"] = lambda result: kl_divergence(result.posterior, result.prior)
    return measures


def _by_name(name: str, options: Mapping[str, Any]) -> Measure:
    """Return what measures a result: a measure of joints, the worst case of a guess, or the answer to a question."""
    if name == WORST_GUESS:
        return lambda result: worst_guess(result.attack, options)
    if is_measure(name):
        measure: Callable[[Any], Estimate] = getattr(leakage, name)
        return lambda result: measure(result.joint)
    return partial(answer, name, options)


def answer(claim: str, options: Mapping[str, Any], result: Result, least: bool = False) -> Estimate:
    """Return the belief in what a question asks: after the observation, or without one after the worst output.

    The worst output is the one after which the belief is largest, or `least`.
    """
    predicate = asked_by_name(result.attack, claim)
    if result.observation is not None:
        return result.posterior.probability(predicate)
    if least:
        return mirrored(worst_belief(result.attack, lambda secret: where(predicate(secret), False, True), options), 1.0)
    return worst_belief(result.attack, predicate, options)


def asked_by_name(attack: Attack, claim: str) -> Callable[[Any], Any]:
    """Return the predicate of one of an attack's questions."""
    if claim not in attack.questions:
        own = f"the questions of the attack ({', '.join(map(repr, attack.questions)) or 'it has none'})"
        raise StudyError(
            f"measures: {claim!r} is neither one of {own} nor of {', '.join(_of_joints())}; "
            "write it so, or give a function from a result to an estimate"
        )
    return attack.questions[claim]


def checked_measures(measures: Any, options: Mapping[str, Any]) -> Mapping[str, Measure] | None:
    """Return measures by name: None stands for the standard ones; names for those of a joint or for questions."""
    if measures is None:
        return None
    if isinstance(measures, str):
        measures = [measures]
    if isinstance(measures, Mapping):
        if not measures or not all(isinstance(name, str) and callable(f) for name, f in measures.items()):
            raise ArgumentError("measures must map names to functions from a result to an estimate")
        return measures
    if not isinstance(measures, Sequence) or not measures:
        raise ArgumentError(f"measures must be a dict of functions or a list of names, not {shown(measures)}")
    if not all(isinstance(name, str) for name in measures):
        raise ArgumentError(f"measures must be names of measures or of the attack's questions, not {shown(measures)}")
    return {name: _by_name(name, options) for name in measures}


def is_measure(name: str) -> bool:
    """Return whether a name is that of a measure; else it is that of a question."""
    return name in _of_joints()


def _of_joints() -> list[str]:
    return [*leakage.measures("joint"), *leakage.measures("channel")]


def label(measure: str, outcomes: Iterable[AttackMeasures] = ()) -> str:
    """Return the words by which tables and pictures call a measure, or the answer to a question in some outcomes."""
    for outcome in outcomes:
        if measure in outcome.titles:
            return outcome.titles[measure]
    return measure.replace("_", " ") if measure.isidentifier() else measure


def _measured(name: str, measure: Measure, result: Result) -> Cell:
    try:
        with naming(f"measures: {name!r}", StudyError):
            estimate: Any = measure(result)
    except StudyError:
        raise
    except PrivugError as error:
        return NoNumber(str(error), type(error))
    if isinstance(estimate, Estimate):
        return estimate
    number = float(estimate) if is_truth(estimate) and abs(estimate) <= LARGEST else plain_number(estimate)
    if not isinstance(number, float):
        raise StudyError(f"measures: {name!r} must return an estimate or a number, not {shown(estimate)}")
    if math.isnan(number):
        return NoNumber(f"{name!r} is undefined: it returned NaN", StudyError)
    return Estimate(number, number, number, method="a plain number")  # nobody knows how it was obtained


def outcomes(jobs: Sequence[Job], study: StudySettings, label: str) -> Iterator[AttackMeasures]:
    """Yield the outcome of each attack in order, run side by side in processes where that pays."""
    engine = str(study.options.get("engine", "auto"))
    # Libraries with threads of their own do not survive being forked.
    alone = engine.startswith(("pymc", "numpyro"))
    with ProgressMeter(label, len(jobs)) as meter, settings.limited(workers=1 if alone else None):
        results = run_tasks(jobs, study.outcome, opaque=True, bytes_per_task=0, name=label)
        for done, outcome in enumerate(results, 1):
            if done < len(jobs):
                meter.update(done, f"{done} of {len(jobs)}")
            yield outcome


def kept_in(path: Any, study: str, **parts: Any) -> AbstractContextManager[None]:
    """Keep the outcomes of a study in a checkpoint, if there is to be one; its parts say which study it is."""
    if path is None:
        return nullcontext()
    known = vocabulary_for(results=(AttackMeasures, NoNumber))
    told = {name: part if isinstance(part, str | int | float | None) else (part,) for name, part in parts.items()}
    return Checkpoint(path, {"the study": study, **told}, known).section(study)


def gathered(jobs: Sequence[Job], study: StudySettings, label: str) -> list[AttackMeasures]:
    """Return the outcomes of attacks; those that are there if the user interrupts, unless there are none."""
    found: list[AttackMeasures] = []
    try:
        found.extend(outcomes(jobs, study, label))
    except KeyboardInterrupt:
        if not found:
            raise
    return found


def plain_cell(cell: Cell) -> dict[str, Any]:
    """Return a cell as plain values."""
    if isinstance(cell, NoNumber):
        return {**dict.fromkeys(Estimate.exactly(0.0).to_dict()), "refusal": cell.reason}
    return {**cell.to_dict(), "refusal": None}


def cell_text(cell: Cell, notes: list[str]) -> str:
    """Return a cell as text; the reason of a refusal goes to the notes."""
    if isinstance(cell, Estimate):
        return f"{cell.number()} {cell.unit}".rstrip()
    if cell.reason not in notes:
        notes.append(cell.reason)
    return f"none ({notes.index(cell.reason) + 1})"
