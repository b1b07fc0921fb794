"""One population: particles led from the prior to the observation through nested events.

Subset simulation (Au and Beck, 2001) for conditions, tempering (Del Moral, Doucet and Jasra, 2006) for weights, and all
states of the chains count (Dau and Chopin, 2022): at each level a fifth of the particles go on, as chains of five.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from privug.errors import PrivugError
from privug.inference.rare.model import LatentModel, Space
from privug.inference.rare.moves import Moves, Rows
from privug.inference.rare.particles import Particles
from privug.inference.rare.scattering import Scattering
from privug.model.batch import Batch
from privug.model.node import Array

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
class Outcome:
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

    def run(self, wanted: int) -> Outcome:
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
        return Outcome(log_evidence, quantities, runs, self._drawn, self._failed, density, moved, points, obstacle)

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
