"""The engine for rare observations: populations that search for them, and the judgement whether these agree.

Every root of the model is a function of standard normal numbers, so that the search needs nothing of the program but
its output: any tier will do. Several populations search independently of each other. How they differ tells the error
of the evidence and of every answer; where they differ too much, there is no answer.
"""

import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar, Unpack

import numpy as np
import scipy

from privug import interruption, settings
from privug.errors import (
    ImpossibleObservation,
    InferenceError,
    NotConverged,
    ObservationError,
    ProgramError,
    TooFewSamples,
)
from privug.estimate import CONFIDENCE, Estimate
from privug.inference import sampling
from privug.inference.answer import Options, SampledAnswer
from privug.inference.belief import Belief
from privug.inference.diagnostics import Diagnostics, pareto_k
from privug.inference.question import Question
from privug.inference.rare.importance import DISAGREEMENT, Measurement, evidence, log_mean
from privug.inference.rare.model import LatentCase, LatentModel, Space
from privug.inference.rare.population import Population, PopulationOutcome
from privug.model.batch import Batch
from privug.model.execution import run_tasks
from privug.model.node import Array
from privug.observation.observations import Observation
from privug.program.native.arguments import OutputMisfit
from privug.progress import ProgressMeter

POPULATIONS = 10
STEPS_ASIDE = 200  # particles that are moved a little, to see whether they still agree
LEAST_STEP = 1e-9  # in standard deviations of the normal numbers that all is made of
FEWEST_POPULATIONS = 5  # of which to make an answer after an interruption
SCOUTING_POPULATIONS, SCOUTS = 5, 2_000  # which only have to find what is measured afterwards
SMALLEST_POPULATION = 4_000
SMALLEST_OPAQUE_POPULATION = 200  # where a program is called sample by sample, which takes its time
LARGEST_POPULATION = 8_000
PARTICLES_A_SAMPLE = 3  # at each level, so that the samples at the end are worth most of their number
LARGEST_STATE = 32 << 20  # bytes of a population's normal numbers; from the model alone, so that results do not vary
LARGEST_BUDGET = 50_000_000
LARGEST_OPAQUE_BUDGET = 2_000_000
ATTEMPTS = 3
GROWTH = 4  # of the populations from one attempt to the next
LEAST_EVEN = 0.7  # of the populations must count, by their evidence
FEWEST_OF_EACH = 32  # samples of a population: fewer of all would seldom be worth a hundred
LEAST_MOVED = 0.002  # of the moves at the end
LEAST_WORTH = float(sampling.FEWEST_SAMPLES)  # independent samples; with fewer the populations tell different stories

CHAINED_RUNS = 30  # of the program for a sample, as far as can be told before
_NO_DISTANCE = (
    " What was observed has no distance of its own: give distance=, a function that says how far an output is from it."
)
_ADVICE = "raise samples= or budget=, give a distance= that leads closer, or widen the observation"


Found = TypeVar("Found")


def infer(question: Question, observation: Observation | None, **options: Unpack[Options]) -> SampledAnswer:
    """Search for a rare observation; without one, draw from the prior.

    `budget` is how many times the program may be run. The samples come in groups, one of each population, weighted by
    the population's evidence.
    """
    if observation is None and not question.facts:
        return sampling.draw(question, None, **options)
    return _searched(_Search.run, question, observation, **options)


def scout(question: Question, observation: Observation | None, **options: Any) -> None:
    """Let the first population of a search go ahead; raise what it says if it does not find the observation."""
    _searched(_Search.scout, question, observation, **options)


def _searched(
    how: Callable[["_Search"], Found], question: Question, observation: Observation | None, **options: Any
) -> Found:
    """Search, without compiling if it turns out that compiled code cannot hold all outputs."""
    try:
        return how(_Search(question, observation, **options))
    except ProgramError as error:
        if not isinstance(error.__cause__, OutputMisfit) or settings.current().native is True:
            raise
    return how(_Search(question, observation, **options, compiled=False))


class _Attempt(NamedTuple):
    """Which attempt it is, of how many populations of which size; scouts only have to find what is measured then."""

    number: int
    populations: int
    size: int
    scouting: bool = False


class _Watch:
    """Shows how far a population of this process has come; of those in other processes nothing is known."""

    def __init__(self, meter: ProgressMeter | None = None, outcomes: Sequence[PopulationOutcome] = ()) -> None:
        self._meter, self._outcomes = meter, outcomes

    def __call__(self, log_evidence: float) -> None:
        if self._meter is not None:
            done, reached = len(self._outcomes), log_evidence / math.log(10)
            self._meter.update(done, f"population {done + 1}: down to 1e{reached:.1f}")

    def __reduce__(self) -> tuple[Any, ...]:
        return _Watch, ()


def _outcome(
    model: LatentModel, seed: int, attempt: _Attempt, allowance: int, wanted: int, watch: _Watch, number: int
) -> PopulationOutcome:
    """Let one population search."""
    rng = sampling.generator(seed, attempt.number, number)
    return Population(model, rng, size=attempt.size, allowance=allowance, watch=watch).run(wanted)


class _Search:
    """One run: attempts with larger and larger populations, until they agree or the budget is spent."""

    def __init__(
        self,
        question: Question,
        observation: Observation | None,
        *,
        compiled: bool = True,
        **options: Unpack[Options],
    ) -> None:
        samples, budget = options["samples"], options.get("budget")
        self._observation, self._samples, self._seed = observation, samples, options["seed"]
        self._started = time.perf_counter()
        self._expected = CHAINED_RUNS * samples if compiled else 0
        self._model = LatentModel(question, observation, options.get("extra"), self._expected)
        case = self._model.typical
        if case.impossible is not None and not self._model.size_nodes:
            raise ImpossibleObservation(f"this observation is impossible: {case.impossible}")
        self._case: LatentCase = case
        self._budget = budget or (LARGEST_OPAQUE_BUDGET if case.plan.is_opaque else LARGEST_BUDGET)
        self._runs = 0
        self._remarks: list[str] = []
        self._wanted = max(-(-samples // POPULATIONS), FEWEST_OF_EACH)

    def run(self) -> SampledAnswer:
        """Search with larger and larger populations until they agree."""
        attempts = self._attempts()
        for attempt in attempts:
            outcomes = self._attempt(attempt, attempt.populations)
            self._refuse_rounding(outcomes)
            measured = self._measured(attempt.number, outcomes)
            if measured is not None:
                return measured
            if attempt.scouting and not self._remarks:
                continue
            refusal = self._refusal(outcomes)
            if refusal is None:
                return self._result(outcomes)
            spent = self._runs * (1 + GROWTH) > self._budget
            if isinstance(refusal, ImpossibleObservation) or spent or self._remarks or attempt is attempts[-1]:
                raise refusal
        raise AssertionError("unreachable")

    def _refuse_rounding(self, outcomes: Sequence[PopulationOutcome]) -> None:
        """Refuse a value that is met for rounding alone: the least step away from it shows that it has a density."""
        found = [outcome.points for outcome in outcomes if outcome.obstacle is None]
        if not found or self._model.size_nodes or not self._case.awaited:
            return
        space = Space.reserved(self._model, sampling.generator(self._seed, STEPS_ASIDE))
        points = np.concatenate(found)[:STEPS_ASIDE]
        moved = space.evaluate(points + LEAST_STEP * space.rng.standard_normal(points.shape))
        if not np.any(moved.distance <= 0):
            raise ObservationError(
                "this value of a continuous output has a density, which cannot be solved for one of the inputs, and no "
                "probability; write pv.near(value, within=...) for a rounded output, or pv.noisy(value, sd=...)"
            )

    def scout(self) -> None:
        """Search with the first population alone, and raise what it says if that is lost."""
        lost = [outcome for outcome in self._attempt(self._attempts()[0], 1) if outcome.obstacle is not None]
        if lost:
            raise self._lost(lost, 1)

    def _attempts(self) -> list[_Attempt]:
        """Return how to search: with few small populations if what they find can be measured, then with larger ones."""
        fewest = SMALLEST_OPAQUE_POPULATION if self._case.plan.is_opaque else SMALLEST_POPULATION
        most = max(SMALLEST_OPAQUE_POPULATION, LARGEST_STATE // (8 * max(1, self._case.width)))
        size = min(max(fewest, PARTICLES_A_SAMPLE * self._wanted), LARGEST_POPULATION, most)
        scouting = not self._model.size_nodes and size > SCOUTS
        attempts = [_Attempt(0, SCOUTING_POPULATIONS, SCOUTS, scouting=True)] if scouting else []
        sizes = [min(size * GROWTH**growth, most) for growth in range(ATTEMPTS)]
        return attempts + [_Attempt(len(attempts) + growth, POPULATIONS, size) for growth, size in enumerate(sizes)]

    def _attempt(self, attempt: _Attempt, populations: int) -> list[PopulationOutcome]:
        """Let populations search, side by side."""
        needed = 8 * attempt.size * self._case.width * 4 + self._case.plan.bytes_per_sample * self._case.plan.block
        allowance = max(1, (self._budget - self._runs) // attempt.populations)
        outcomes: list[PopulationOutcome] = []
        label = "searching" if attempt.number == 0 else f"searching, attempt {attempt.number + 1}"
        with ProgressMeter(label, populations) as meter:
            watch = _Watch(meter, outcomes)
            work = partial(_outcome, self._model, self._seed, attempt, allowance, self._wanted, watch)
            name = f"search {self._seed} {attempt.number} {attempt.size} {allowance} {self._expected}"
            tasks: Any = {"opaque": self._case.plan.is_opaque, "bytes_per_task": needed, "name": name}
            try:
                for outcome in run_tasks(range(populations), work, **tasks):
                    outcomes.append(outcome)
                    self._runs += outcome.runs
                    meter.update(len(outcomes), f"{self._runs:,} program runs")
            except KeyboardInterrupt:
                if len(outcomes) < FEWEST_POPULATIONS:
                    raise
                kept = f"{len(outcomes)} of {populations} populations were kept"
                self._remarks.append(interruption.taken_note(kept))
        return outcomes

    def _measured(self, attempt: int, outcomes: Sequence[PopulationOutcome]) -> SampledAnswer | None:
        """Draw from where the populations found the observation, if that is known and the draws can be trusted."""
        found = [outcome.points for outcome in outcomes if outcome.obstacle is None]
        if not found or self._model.size_nodes:
            return None
        measurement = Measurement(
            self._model, np.concatenate(found), seed=self._seed, attempt=attempt, searched=self._runs
        )
        draws = measurement.run(self._samples, self._budget - self._runs)
        self._runs += measurement.runs
        if draws is None:
            return None
        drawn, excluded = (sum(getattr(outcome, name) for outcome in outcomes) for name in ("drawn", "excluded"))
        center, error = log_mean(draws.log_weights)
        center -= math.log(max(1, drawn - excluded) / max(1, drawn))
        logs = np.array([o.log_evidence if o.obstacle is None else -np.inf for o in outcomes])
        theirs, their_error = log_mean(logs)
        if theirs - center > DISAGREEMENT * math.hypot(error, their_error):
            return None  # the mixture leaves out what populations have found
        unit = "density" if outcomes[0].density else ""
        probability = evidence(center, error, unit, f"importance sampling, {self._runs:,} program runs")
        quantities, log_weights = measurement.quantities(draws)
        return SampledAnswer(
            quantities,
            log_weights,
            Diagnostics(
                self._runs,
                len(log_weights),
                draws.worth,
                probability,
                self._budget,
                excluded,
                time.perf_counter() - self._started,
                tuple(self._remarks),
                pareto_k=pareto_k(draws.log_weights),
            ),
            self._model.question.lifting(self._expected),
        )

    def _refusal(self, outcomes: Sequence[PopulationOutcome]) -> InferenceError | ProgramError | None:
        """Say why these populations are no answer, if they are not."""
        if all(outcome.excluded == outcome.drawn > 0 for outcome in outcomes):
            return ProgramError("the program failed on every input drawn from the prior")
        lost = [outcome for outcome in outcomes if outcome.obstacle is not None]
        if lost:
            return self._lost(lost, len(outcomes))
        logs = np.array([outcome.log_evidence for outcome in outcomes])
        shares = np.exp(logs - scipy.special.logsumexp(logs))
        counting = 1 / float((shares**2).sum())
        if counting < LEAST_EVEN * len(outcomes):
            return NotConverged(
                f"the populations do not agree on the probability of the observation: it lies between "
                f"{math.exp(logs.min()):.2g} and {math.exp(logs.max()):.2g}; {_ADVICE}"
            )
        if max(outcome.moved for outcome in outcomes) < LEAST_MOVED:
            return NotConverged(f"the particles that agree with the observation hardly move on; {_ADVICE}")
        worth = _worth(outcomes, logs)
        if worth < min(LEAST_WORTH, self._samples):
            return NotConverged(
                f"the populations do not agree about the secret: together they are worth {worth:.0f} samples; {_ADVICE}"
            )
        return None

    def _lost(self, lost: Sequence[PopulationOutcome], populations: int) -> InferenceError:
        obstacle = str(lost[0].obstacle)
        if any(str(outcome.obstacle).startswith("Spent") for outcome in lost):
            return TooFewSamples(
                f"the budget of {self._budget:,} program runs was spent before the observation was reached "
                f"({obstacle.removeprefix('Spent: ')}); raise budget=, or widen the observation"
            )
        ungraded = "" if all(self._case.graded) else _NO_DISTANCE
        reason = obstacle.removeprefix("Stuck: ")
        if len(lost) < populations:
            return NotConverged(
                f"{len(lost)} of {populations} populations did not find the observation ({reason}); {_ADVICE}{ungraded}"
            )
        bound = math.exp(max(outcome.log_evidence for outcome in lost))
        return ImpossibleObservation(
            f"none of {self._runs:,} program runs agrees with the observation ({self._observation}): {reason}, of "
            f"probability {bound:.2g}, and the observation is rarer than that if it is possible at all.{ungraded}"
        )

    def _result(self, outcomes: Sequence[PopulationOutcome]) -> SampledAnswer:
        logs = np.array([outcome.log_evidence for outcome in outcomes])
        quantities = tuple(Batch.concatenate(parts) for parts in zip(*(o.quantities for o in outcomes), strict=True))
        evidence = _evidence(logs, "density" if outcomes[0].density else "", self._runs)
        diagnostics = Diagnostics(
            self._runs,
            self._wanted * len(outcomes),
            _worth(outcomes, logs),
            evidence,
            self._budget,
            sum(outcome.excluded for outcome in outcomes),
            time.perf_counter() - self._started,
            tuple(self._remarks),
        )
        lifting = self._model.question.lifting(self._expected)
        return SampledAnswer(quantities, np.repeat(logs, self._wanted), diagnostics, lifting, groups=len(outcomes))


def _worth(outcomes: Sequence[PopulationOutcome], logs: Array) -> float:
    """Return how many independent samples of the secret the populations are worth together."""
    secret = Batch.concatenate([outcome.quantities[0] for outcome in outcomes])
    weights = np.repeat(np.exp(logs - logs.max()), len(secret) // len(outcomes))
    return Belief(secret, weights / weights.sum(), groups=len(outcomes)).effective_samples


def _evidence(logs: Array, unit: str, runs: int) -> Estimate:
    """Return the mean evidence of populations, with an interval by Student's t.

    Evidence is skewed, as products of many factors are: the interval holds that of the mean and that of the mean of a
    lognormal quantity by its logarithms (Cox's method; Zhou and Gao, 1997).
    """
    largest, count = float(logs.max()), len(logs)
    relative = np.exp(logs - largest)
    center = math.log(float(relative.mean())) + largest
    error = float(relative.std(ddof=1) / relative.mean()) / math.sqrt(count)
    spread = float(logs.var(ddof=1))
    lognormal = float(logs.mean()) + spread / 2
    error_of_it = math.sqrt(spread / count + spread**2 / (2 * (count - 1)))
    quantile = float(scipy.special.stdtrit(count - 1, 0.5 + CONFIDENCE / 2))
    low = min(center - quantile * error, lognormal - quantile * error_of_it)
    high = max(center + quantile * error, lognormal + quantile * error_of_it)
    value, method = math.exp(center), f"{count} populations, {runs:,} program runs"
    return Estimate(value, min(value, math.exp(low)), max(value, math.exp(high)), unit, method)
