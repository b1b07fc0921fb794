"""One population: particles led from the prior to the observation through nested events.

Subset simulation (Au and Beck, 2001) for conditions, tempering (Del Moral, Doucet and Jasra, 2006) for weights, and all
states of the chains count (Dau and Chopin, 2022): at each level a fifth of the particles go on, as chains of five.
"""

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from privug.errors import PrivugError
from privug.inference.rare.importance import Fit, Mixture, places_of
from privug.inference.rare.model import LatentModel, Particles, Scattering, Space
from privug.model.batch import Batch
from privug.model.node import Array

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
        chosen: Array = np.where(rng.random((count, 1)) < 0.5, run, scattered)
        return chosen

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
        shares: Array = least + (1 - least.sum()) * progress / progress.sum()
        return shares

    def _progress(self) -> Array:
        progress: Array = self._rates * np.array([*self._steps[:EXCHANGE] ** 2, 0.1, 1.0])
        return progress

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


class Spent(PrivugError):
    """The budget was spent before the observation was reached."""


class Stuck(PrivugError):
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

    def _evaluate(self, points: Array) -> Particles:
        if self._space.runs + len(points) > self._allowance:
            raise Spent(f"at distance {self._level:.3g}")
        return self._space.evaluate(points)

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
        proposed = self._evaluate(points)
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
