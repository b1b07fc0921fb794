"""The engine for rare observations: populations of particles that search for them through nested events.

Subset simulation (Au and Beck, 2001) for conditions, tempering (Del Moral, Doucet and Jasra, 2006) for weights, and all
states of the chains count (Dau and Chopin, 2022): at each level a fifth of the particles go on, as chains of five.

Every root of the model is a function of standard normal numbers, so that the search needs nothing of the program but
its output: any tier will do. Several populations search independently of each other. How they differ tells the error
of the evidence and of every answer; where they differ too much, there is no answer.
"""

import math
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeVar, Unpack

import numpy as np
import scipy

from privug import errors, interruption
from privug.estimate import Estimate
from privug.inference import sampling
from privug.inference.answer import Options, SampledAnswer
from privug.inference.belief import Belief
from privug.inference.diagnostics import Diagnostics, pareto_k
from privug.inference.intervals import student
from privug.inference.question import Question
from privug.inference.rare.importance import DISAGREEMENT, Fit, Measurement, Mixture, evidence, log_mean, places_of
from privug.inference.rare.model import LatentCase, LatentModel, Particles, Scattering, Space
from privug.model.batch import Batch
from privug.model.node import Array
from privug.observation.observations import Observation
from privug.progress import ProgressMeter
from privug.runtime.tasks import run_tasks

FITTED, PLAIN, REFRESH, EXCHANGE, JUMP = range(5)
KINDS = 5
SIDES = (0, 1)
WANTED_RATE = 0.3  # of accepted moves: between the best rates of one and of many dimensions
LEAST_SHARE = 0.1  # of each kind of move
LEAST_JUMPS = 0.3
SCATTERED = 0.5  # of the jumps; the others go near the particles
LONGEST_RUN = 6  # of neighbouring numbers drawn anew
WIDEST_ROW = 32


class Rows(NamedTuple):
    """Where numbers begin to repeat themselves row by row, and how many there are in a row."""

    start: int
    width: int

    @classmethod
    def of(cls, signatures: Sequence[Hashable]) -> "Rows":
        """Find the width at which most numbers are distributed as those of the next row are."""
        codes = np.unique([hash(signature) for signature in signatures], return_inverse=True)[1]
        repeats = {width: codes[:-width] == codes[width:] for width in range(1, min(WIDEST_ROW, len(codes) - 1) + 1)}
        width = max(repeats, key=lambda w: (int(repeats[w].sum()), -w), default=1)
        return cls(int(np.argmax(repeats[width])) if width in repeats else 0, width)


class Moves:
    """Proposals of all kinds, each with a scale that follows from how often it is accepted."""

    def __init__(self, rows: Rows, scattering: Scattering) -> None:
        self._rows, self._scattering = rows, scattering
        self._fits: list[Fit | None] = [None, None]
        self._jumps = [Mixture.nowhere(scattering) for _ in SIDES]
        self._steps = np.array([0.7, 0.7, 0.3, 1.0, 1.0])  # of a refresh: the share of the numbers
        self._rates = np.full(KINDS, WANTED_RATE)

    def fit(self, points: Array, sides: Array) -> None:
        """Take note of where the particles are; those of either side move by where the others are.

        A distribution fitted to the very particles that it moves would hold them together.
        """
        self._fits = [Fit.of(points[sides != side]) for side in SIDES]
        places = [places_of(points[sides != side], splits=1) for side in SIDES]
        self._jumps = [Mixture.near(some, [(self._scattering, SCATTERED)]) for some in places]

    def propose(self, points: Array, sides: Array, rng: np.random.Generator) -> tuple[Array, Array, Array]:
        """Return new points, the log of the factor by which to accept them, and the kind of each move."""
        kinds = rng.choice(KINDS, size=len(points), p=self._shares())
        if None in self._fits:
            kinds[kinds == FITTED] = PLAIN
        normals = rng.standard_normal(points.shape)
        proposed, correction = points.copy(), np.zeros(len(points))
        for side, fit in zip(SIDES, self._fits, strict=True):
            chosen = (kinds == FITTED) & (sides == side)
            if fit is not None and chosen.any():
                moved = fit.widened(points.shape[1]).moved(points[chosen], normals[chosen], self._steps[FITTED])
                proposed[chosen], correction[chosen] = moved
        plain, step = kinds == PLAIN, self._steps[PLAIN]
        proposed[plain] = math.sqrt(1 - step**2) * points[plain] + step * normals[plain]
        refreshed = kinds == REFRESH
        anew = self._chosen(int(refreshed.sum()), points.shape[1], rng)
        proposed[refreshed] = np.where(anew, normals[refreshed], points[refreshed])
        exchanged = np.flatnonzero(kinds == EXCHANGE)
        in_rows = rng.random(len(exchanged)) < 0.5
        self._exchange_rows(proposed, exchanged[in_rows], rng)
        _exchange(proposed, exchanged[~in_rows], rng)
        for side, jumps in zip(SIDES, self._jumps, strict=True):
            chosen = np.flatnonzero((kinds == JUMP) & (sides == side))
            if len(chosen):
                known = jumps.widened(points.shape[1])
                proposed[chosen] = known.draw(len(chosen), points.shape[1], rng)
                logs = known.log_ratio(np.concatenate([points[chosen], proposed[chosen]]))
                correction[chosen] = logs[: len(chosen)] - logs[len(chosen) :]
        return proposed, correction, kinds

    def _exchange_rows(self, points: Array, chosen: Array, rng: np.random.Generator) -> None:
        """Let two rows of a table change places."""
        start, width = self._rows
        count = max(1, (points.shape[1] - start) // width)
        one, other = start + width * rng.integers(count, size=(2, len(chosen)))
        for cell in range(min(width, points.shape[1] - start)):
            first = points[chosen, one + cell]
            points[chosen, one + cell] = points[chosen, other + cell]
            points[chosen, other + cell] = first

    def _chosen(self, count: int, width: int, rng: np.random.Generator) -> Array:
        """Choose numbers to draw anew: here and there, or some in a row, as the cells of a table's row stand."""
        first = rng.integers(width, size=(count, 1))
        length = 1 + rng.integers(min(LONGEST_RUN, width), size=(count, 1))
        run = (np.arange(width) - first) % width < length
        scattered = rng.random((count, width)) < self._steps[REFRESH]
        scattered[np.arange(count), first[:, 0]] = True
        return np.asarray(np.where(rng.random((count, 1)) < 0.5, run, scattered))

    def learn(self, kinds: Array, accepted: Array) -> None:
        """Take larger steps where more moves than wanted are accepted, smaller ones where fewer are."""
        for kind in range(KINDS):
            tried = kinds == kind
            if tried.any():
                rate = float(accepted[tried].mean())
                self._steps[kind] = float(np.clip(self._steps[kind] * math.exp(rate - WANTED_RATE), 1e-6, 1.0))
                self._rates[kind] += 0.5 * (rate - self._rates[kind])

    def _shares(self) -> Array:
        """Return how often to make each kind of move: more often those that go further."""
        progress = self._progress() + 1e-9
        least = np.array([*[LEAST_SHARE] * JUMP, LEAST_JUMPS])
        return np.asarray(least + (1 - least.sum()) * progress / progress.sum())

    def _progress(self) -> Array:
        return np.asarray(self._rates * np.array([*self._steps[:EXCHANGE] ** 2, 0.1, 1.0]))

    @property
    def progress(self) -> float:
        """How much of its place a particle forgets in a move, between zero and one."""
        return float(self._shares() @ self._progress())


def _exchange(points: Array, rows: Array, rng: np.random.Generator) -> None:
    """Let two numbers of each row change places; where they are the same one, it changes its sign."""
    one, other = rng.integers(points.shape[1], size=(2, len(rows)))
    other = np.where(rng.random(len(rows)) < 0.5, one, other)
    first, second = points[rows, one], points[rows, other]
    flipped = one == other
    points[rows, one] = np.where(flipped, -first, second)
    points[rows[~flipped], other[~flipped]] = first[~flipped]


SHARE = 0.2  # of the particles that go on to the next level
CHAIN = 5  # states of a chain; as many as make up for that share
FEWEST_SHARE = 0.1  # with fewer that got closer, more particles are looked at first
MOST_ROUNDS = 30  # of looking for particles that get closer
LEAST_EVIDENCE = math.log(1e-60)  # the search is given up below
EVENNESS = 0.6  # of the weights from one temperature to the next: effective over all particles
FORGETTING = 0.5  # how much of its place each particle forgets at the end, in at least and at most so many moves
FINAL_STEPS = 4, 30
MOST_POINTS = 1000  # handed on


class Spent(errors.PrivugError):
    """The budget was spent before the observation was reached."""


class Stuck(errors.PrivugError):
    """No particle could be brought closer to the observation."""


@dataclass(frozen=True)
class PopulationOutcome:
    """What a population found: the log evidence, samples given the observation, and what it took."""

    log_evidence: float
    quantities: tuple[Batch, ...]
    runs: int
    drawn: int
    excluded: int
    density: int
    moved: float
    """The share of moves at the end that were accepted."""
    points: Array
    """Where particles that agree are, some of them."""
    obstacle: str | None = None
    """Why there are no samples."""


class Population:
    """A search for the observation by `size` particles at a time."""

    def __init__(
        self,
        model: LatentModel,
        rng: np.random.Generator,
        *,
        size: int,
        allowance: int,
        watch: Callable[[float], None] = lambda log_evidence: None,
    ) -> None:
        self._space = Space(model, rng)
        self._rng = rng
        self._moves = Moves(Rows.of(model.typical.signatures()), Scattering(model.typical.steps()))
        self._chains = max(1, round(size * SHARE))
        self._size = self._chains * CHAIN
        self._allowance, self._watch = allowance, watch
        self._log_evidence = 0.0
        self._drawn = self._failed = 0
        self._level, self._heat = math.inf, 0.0

    def run(self, wanted: int) -> PopulationOutcome:
        """Search for the observation and return `wanted` samples given it."""
        obstacle, moved, points = None, 0.0, np.empty((0, 0))
        quantities: tuple[Batch, ...] = ()
        try:
            particles = self._cooled(self._close())
            points = particles.latents[self._rng.permutation(len(particles))[:MOST_POINTS]]
            moved, quantities = self._samples(particles, wanted)
        except (Stuck, Spent) as error:
            obstacle = f"{type(error).__name__}: {error}"
        density = self._space.density or 0
        # Inputs on which the program failed are no possibility: the evidence is given the others.
        log_evidence = self._log_evidence - math.log(max(1, self._drawn - self._failed) / max(1, self._drawn))
        runs = self._space.runs
        return PopulationOutcome(
            log_evidence, quantities, runs, self._drawn, self._failed, density, moved, points, obstacle
        )

    def _draw(self) -> Particles:
        particles = self._space.draw(self._size)
        failed = int(np.count_nonzero(particles.failed))
        if self._space.density and self._space.model.question.exclude_errors:
            failed = self._space.model.typical.failures(self._size, self._rng)
        self._drawn += self._size
        self._failed += failed
        return particles

    def _close(self) -> Particles:
        """Lead particles through smaller and smaller distances to those that agree."""
        states = self._draw()
        while True:
            closer, total, states = self._closer(states)
            level = _next_level(closer.distance, total)
            seeds = closer.take(closer.distance <= level)
            self._log_evidence += math.log(len(seeds) / total)
            self._level = level
            self._watch(self._log_evidence)
            if self._log_evidence < LEAST_EVIDENCE:
                raise Stuck(f"a distance of {level:.3g} was reached")
            states = self._walk(self._starts(seeds, None))
            if level <= 0:
                return states

    def _closer(self, states: Particles) -> tuple[Particles, int, Particles]:
        """Return particles closer than the level at hand, of how many, and the latest states; look at more if few."""
        found, total = [states.take(states.distance < self._level)], len(states)
        for _ in range(MOST_ROUNDS):
            if sum(map(len, found)) >= FEWEST_SHARE * self._size:
                break
            latest = states.take(slice(-self._chains, None))
            states = self._draw() if math.isinf(self._level) else self._walk(latest)
            found.append(states.take(states.distance < self._level))
            total += len(states)
        for part in found:
            part.latents = self._space.widened(part.latents)
        closer = Particles.concatenate([part for part in found if len(part)] or found[:1])
        if not len(closer):
            reached = "no draw came to any distance" if math.isinf(self._level) else f"the closest is {self._level:.3g}"
            raise Stuck(f"{reached} in {total:,} program runs")
        return closer, total, states

    def _cooled(self, particles: Particles) -> Particles:
        """Lead particles that agree from equal weights to those of the likelihood."""
        while self._heat < 1 and np.ptp(particles.log_likelihood) > 0:
            heat = _next_heat(particles.log_likelihood, self._heat)
            logs = (heat - self._heat) * particles.log_likelihood
            largest = float(logs.max())
            weights = np.exp(logs - largest)
            self._log_evidence += largest + math.log(float(weights.mean()))
            self._heat = heat
            self._watch(self._log_evidence)
            particles = self._walk(self._starts(particles, weights / weights.sum()))
        if self._heat < 1:
            self._log_evidence += float(particles.log_likelihood[0])
            self._heat = 1.0
        return particles

    def _starts(self, seeds: Particles, weights: Array | None) -> Particles:
        """Choose the states from which chains start, each seed as often as its weight says."""
        if weights is None:
            chosen = np.resize(self._rng.permutation(len(seeds)), self._chains)
        else:
            places = (np.arange(self._chains) + self._rng.random()) / self._chains
            chosen = np.minimum(np.searchsorted(np.cumsum(weights), places), len(seeds) - 1)
        starts = seeds.take(chosen)
        fitted = seeds if weights is None else starts
        self._moves.fit(fitted.latents, fitted.side)
        return starts

    def _walk(self, states: Particles) -> Particles:
        """Move chains and return all of their states; the latest come last."""
        visited = []
        for _ in range(CHAIN):
            self._step(states)
            visited.append(states.take(slice(None)))
        for part in visited:
            part.latents = self._space.widened(part.latents)
        return Particles.concatenate(visited)

    def _step(self, states: Particles) -> float:
        """Move each particle once, where that agrees with the level and the temperature; return how many moved."""
        points, correction, kinds = self._moves.propose(states.latents, states.side, self._rng)
        if self._space.runs + len(points) > self._allowance:
            raise Spent(f"at distance {self._level:.3g}")
        proposed = self._space.evaluate(points)
        states.latents = self._space.widened(states.latents)
        with np.errstate(invalid="ignore"):
            gain = correction + (self._heat * (proposed.log_likelihood - states.log_likelihood) if self._heat else 0.0)
        accepted = (proposed.distance <= self._level) & (np.log(self._rng.random(len(states))) < gain)
        states.replace(accepted, proposed)
        self._moves.learn(kinds, accepted)
        return float(accepted.mean())

    def _samples(self, particles: Particles, wanted: int) -> tuple[float, tuple[Batch, ...]]:
        """Move particles on and return their values."""
        order = self._rng.permutation(len(particles))
        states = particles.take(order[: min(wanted, len(order))])
        rates: list[float] = []
        kept: list[list[Array]] = []
        while len(kept) * len(states) < wanted:
            forgotten = steps = 0.0
            while steps < FINAL_STEPS[0] or (forgotten < FORGETTING and steps < FINAL_STEPS[1]):
                rates.append(self._step(states))
                forgotten, steps = forgotten + self._moves.progress, steps + 1
            kept.append([column.copy() for column in states.columns])
        columns = [np.concatenate(parts)[:wanted] for parts in zip(*kept, strict=True)]
        return float(np.mean(rates)), tuple(self._space.model.quantities(columns, self._rng))


def _next_level(distances: Array, total: int) -> float:
    """Return the distance that a fifth of all particles are within, or the next one below if too many are at it."""
    ordered = np.sort(distances)
    if len(ordered) < SHARE * total:
        return float(ordered[-1])
    level = float(ordered[math.ceil(SHARE * total) - 1])
    within = int(np.searchsorted(ordered, level, side="right"))
    below = int(np.searchsorted(ordered, level, side="left"))
    if within > 2 * SHARE * total and below >= FEWEST_SHARE * total:
        return float(ordered[below - 1])
    return level


def _next_heat(logs: Array, heat: float) -> float:
    """Return how much of the likelihood to weight by next, such that the weights stay even enough."""

    def evenness(until: float) -> float:
        weights = np.exp((until - heat) * (logs - logs.max()))
        return float(weights.sum() ** 2 / (weights**2).sum() / len(logs))

    if evenness(1.0) >= EVENNESS:
        return 1.0
    low, high = heat, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if evenness(middle) >= EVENNESS else (low, middle)
    return high if low == heat else low


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
    return sampling.compiled_or_not(
        lambda reason: how(_Search(question, observation, **options, compiled=reason is None))
    )


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
        self, question: Question, observation: Observation | None, *, compiled: bool = True, **options: Unpack[Options]
    ) -> None:
        samples, budget = options["samples"], options.get("budget")
        self._observation, self._samples, self._seed = observation, samples, options["seed"]
        self._started = time.perf_counter()
        self._expected = CHAINED_RUNS * samples if compiled else 0
        self._model = LatentModel(question, observation, options.get("extra"), self._expected)
        case = self._model.typical
        if case.impossible is not None and not self._model.size_nodes:
            raise errors.ImpossibleObservation(f"this observation is impossible: {case.impossible}")
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
            if isinstance(refusal, errors.ImpossibleObservation) or spent or self._remarks or attempt is attempts[-1]:
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
            raise errors.ObservationError(
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
        shape = pareto_k(draws.log_weights)
        diagnostics = self._diagnostics(len(log_weights), draws.worth, probability, excluded, pareto_k=shape)
        return SampledAnswer(quantities, log_weights, diagnostics, self._model.question.lifting(self._expected))

    def _diagnostics(
        self, accepted: int, worth: float, evidence: Estimate, excluded: int, **further: Any
    ) -> Diagnostics:
        seconds, remarks = time.perf_counter() - self._started, tuple(self._remarks)
        return Diagnostics(self._runs, accepted, worth, evidence, self._budget, excluded, seconds, remarks, **further)

    def _refusal(self, outcomes: Sequence[PopulationOutcome]) -> errors.InferenceError | errors.ProgramError | None:
        """Say why these populations are no answer, if they are not."""
        if all(outcome.excluded == outcome.drawn > 0 for outcome in outcomes):
            return errors.ProgramError("the program failed on every input drawn from the prior")
        lost = [outcome for outcome in outcomes if outcome.obstacle is not None]
        if lost:
            return self._lost(lost, len(outcomes))
        logs = np.array([outcome.log_evidence for outcome in outcomes])
        shares = np.exp(logs - scipy.special.logsumexp(logs))
        counting = 1 / float((shares**2).sum())
        if counting < LEAST_EVEN * len(outcomes):
            return errors.NotConverged(
                f"the populations do not agree on the probability of the observation: it lies between "
                f"{math.exp(logs.min()):.2g} and {math.exp(logs.max()):.2g}; {_ADVICE}"
            )
        if max(outcome.moved for outcome in outcomes) < LEAST_MOVED:
            return errors.NotConverged(f"the particles that agree with the observation hardly move on; {_ADVICE}")
        worth = _worth(outcomes, logs)
        if worth < min(LEAST_WORTH, self._samples):
            return errors.NotConverged(
                f"the populations do not agree about the secret: together they are worth {worth:.0f} samples; {_ADVICE}"
            )
        return None

    def _lost(self, lost: Sequence[PopulationOutcome], populations: int) -> errors.InferenceError:
        obstacle = str(lost[0].obstacle)
        if any(str(outcome.obstacle).startswith("Spent") for outcome in lost):
            return errors.TooFewSamples(
                f"the budget of {self._budget:,} program runs was spent before the observation was reached "
                f"({obstacle.removeprefix('Spent: ')}); raise budget=, or widen the observation"
            )
        ungraded = "" if all(self._case.graded) else _NO_DISTANCE
        reason = obstacle.removeprefix("Stuck: ")
        if len(lost) < populations:
            return errors.NotConverged(
                f"{len(lost)} of {populations} populations did not find the observation ({reason}); {_ADVICE}{ungraded}"
            )
        bound = math.exp(max(outcome.log_evidence for outcome in lost))
        return errors.ImpossibleObservation(
            f"none of {self._runs:,} program runs agrees with the observation ({self._observation}): {reason}, of "
            f"probability {bound:.2g}, and the observation is rarer than that if it is possible at all.{ungraded}"
        )

    def _result(self, outcomes: Sequence[PopulationOutcome]) -> SampledAnswer:
        logs = np.array([outcome.log_evidence for outcome in outcomes])
        quantities = tuple(Batch.concatenate(parts) for parts in zip(*(o.quantities for o in outcomes), strict=True))
        evidence = _evidence(logs, "density" if outcomes[0].density else "", self._runs)
        excluded, accepted = sum(outcome.excluded for outcome in outcomes), self._wanted * len(outcomes)
        diagnostics = self._diagnostics(accepted, _worth(outcomes, logs), evidence, excluded)
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
    quantile = student(count - 1)
    low = min(center - quantile * error, lognormal - quantile * error_of_it)
    high = max(center + quantile * error, lognormal + quantile * error_of_it)
    value, method = math.exp(center), f"{count} populations, {runs:,} program runs"
    return Estimate(value, min(value, math.exp(low)), max(value, math.exp(high)), unit, method)
