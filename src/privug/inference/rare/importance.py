"""Importance sampling from where populations found the observation: they search, and this measures.

A population that finds a mode late says too little about it, and ten that differ say little about the error. But
points drawn from a mixture of distributions fitted to all particles together, with parts that cover the prior and far
tails, have weights whose mean is the probability of the observation, however the populations shared themselves out; and
they are independent, so that the error is that of a mean (Hesterberg, 1995; Cappé, Guillin, Marin and Robert, 2004).
Particles of one stratum, which agree in all that is discrete, are fitted by themselves: no path leads to the next.
Each place that matters is judged by itself, too: many even weights at one hide the few that decide at another.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import scipy

from privug.estimate import CONFIDENCE, Estimate
from privug.inference import blocks
from privug.inference.diagnostics import LARGEST_PARETO_K, effective_sample_size, pareto_k
from privug.inference.rare.fitting import FEWEST_FOR_FIT, Mixture, Part, Ray, places_of
from privug.inference.rare.model import LatentModel, Space
from privug.inference.rare.particles import Particles
from privug.inference.rare.scattering import Scattering
from privug.model.batch import Batch
from privug.model.execution import run_tasks
from privug.model.node import Array

PILOT_ROUNDS = 3  # from which the mixture is fitted anew
SMALLEST_ROUND, LARGEST_ROUND = 500, 3_000
PILOT_SHARE = 0.05  # of the runs of the search, in one round
LARGEST_BATCH = 60_000
TASKS = 4  # of a round, side by side
LARGEST_TASK = 32 << 20  # bytes: tasks get smaller before memory runs out
LARGEST_TASK = 32 << 20  # bytes: tasks get smaller before memory runs out
DRAWS_A_SAMPLE = 50  # more are not worth it
FEWEST_EFFECTIVE = 200  # samples, of which averages are nearly normal
FEWEST_AT_LIGHT = 50  # samples, of which it is clear that a place has next to no weight
LEAST_SHARE = 0.05  # of the weight or of the particles, at a place that is judged by itself
MOST_STRATA = 64
SCATTERED, PRIOR, FITTED = 0.08, 0.05, 0.12  # least shares of the parts of the mixture
GROUPS = 10  # of the draws, whose means tell the error too
DISAGREEMENT = 4.0  # standard errors by which populations may find the observation likelier


@dataclass(frozen=True)
class Draws:
    """Points with the logs of their weights and their places; the mean weight is the probability of the observation."""

    particles: Particles
    log_weights: Array
    places: Array

    @staticmethod
    def concatenate(parts: Sequence["Draws"]) -> "Draws":
        """Join draws end to end."""
        particles = Particles.concatenate([part.particles for part in parts])
        return Draws(
            particles,
            np.concatenate([part.log_weights for part in parts]),
            np.concatenate([part.places for part in parts]),
        )

    @property
    def worth(self) -> float:
        """How many samples of equal weight they are worth."""
        return _worth(self.log_weights)

    def sufficiency(self, found: Array) -> float:
        """Return how many times what is needed they are worth, all or those at the place that is known worst."""
        return min(_worth(logs) / needed for logs, needed in self._judged(found))

    def shape(self, found: Array) -> float | None:
        """Return the shape of the heaviest tail of the weights, of all or at one place; None for too few."""
        shapes = [shape for logs, _ in self._judged(found) if (shape := pareto_k(logs)) is not None]
        return max(shapes, default=None)

    def is_trusted(self, found: Array) -> bool:
        """Say whether no few draws decide, neither among all nor at any place that was found or that has its share."""
        shape = self.shape(found)
        return self.sufficiency(found) >= 1 and (shape is None or shape <= LARGEST_PARETO_K)

    def _judged(self, found: Array) -> list[tuple[Array, int]]:
        """Return the logs of the weights that are judged, of all and at single places, and what they must be worth."""
        everything = [(self.log_weights, FEWEST_EFFECTIVE)]
        if not self.found:
            return everything
        shares = np.bincount(self.places + 1, self.weights)
        heavy = np.flatnonzero(shares > LEAST_SHARE) - 1
        needed = {**dict.fromkeys(found.tolist(), FEWEST_AT_LIGHT), **dict.fromkeys(heavy.tolist(), FEWEST_EFFECTIVE)}
        return everything + [(self.log_weights[self.places == place], least) for place, least in needed.items()]

    @property
    def found(self) -> bool:
        """Whether any of them agrees with the observation."""
        return bool(np.any(self.log_weights > -np.inf))

    @property
    def weights(self) -> Array:
        """Weights that sum to one."""
        weights = np.exp(self.log_weights - self.log_weights.max())
        shares: Array = weights / weights.sum()
        return shares


class Measurement:
    """Draws from a mixture near the points that populations found, adapted to what the first rounds of it show."""

    def __init__(self, model: LatentModel, points: Array, *, seed: int, attempt: int, searched: int) -> None:
        self._model, self._case, self._points = model, model.typical, points
        self._seed, self._key = seed, (attempt, 1)
        self._rng = blocks.generator(seed, *self._key, 0)
        self._round = int(np.clip(PILOT_SHARE * searched, SMALLEST_ROUND, LARGEST_ROUND))
        self._layout = Space.reserved(model, self._rng).layout
        self._others: list[tuple[Part, float]] = [
            (Scattering(self._case.steps()), SCATTERED),
            (Ray.nowhere(points.shape[1]), PRIOR),
        ]
        self._batches = 0
        self.runs = 0

    def run(self, samples: int, budget: int) -> Draws | None:
        """Return draws that are worth so many samples, or as many as are worth it; None if they tell nothing."""
        if (PILOT_ROUNDS + 1) * self._round > budget:
            return None
        mixture, pilots = self._fitted(self._points), []
        for _ in range(PILOT_ROUNDS):
            pilots.append((mixture, self._draw(mixture, self._round)))
            mixture = self._adapted(_pooled(pilots))
        most = min(budget - self.runs, self._round + DRAWS_A_SAMPLE * samples)
        wanted = max(samples, FEWEST_EFFECTIVE)
        draws, count, places = [self._draw(mixture, self._round)], self._round, self._places(mixture)
        while count < most:
            found = Draws.concatenate(draws)
            sufficiency = found.sufficiency(places)
            if sufficiency * most < count:
                return None
            factor = max(wanted / found.worth, 1 / sufficiency)
            if factor <= 1:
                break
            size = int(min(max(count * (factor - 1), self._round), LARGEST_BATCH, most - count))
            draws.append(self._draw(mixture, size))
            count += size
        found = Draws.concatenate(draws)
        return found if found.is_trusted(places) else None

    def _places(self, mixture: Mixture) -> Array:
        """Return the places of a mixture at which populations found the observation, not just a few particles."""
        counts = np.bincount(mixture.place_of(self._points) + 1)[1:]
        places: Array = np.flatnonzero(counts > LEAST_SHARE * len(self._points))
        return places

    def _fitted(self, points: Array) -> Mixture:
        """Fit a mixture to points, those of each stratum that many belong to by themselves."""
        strata = self._case.strata(points, self._layout)
        sizes = np.bincount(strata)
        large = [stratum for stratum in np.argsort(-sizes)[:MOST_STRATA] if sizes[stratum] >= FEWEST_FOR_FIT]
        groups = [points[strata == stratum] for stratum in large] + [points[~np.isin(strata, large)]]
        return Mixture.near([place for group in groups if len(group) for place in places_of(group)], self._others)

    def _adapted(self, draws: Draws) -> Mixture:
        """Fit the mixture to the particles and to the draws, as many of each; shares follow from the draws alone."""
        if not draws.found:
            return self._fitted(self._points)
        points, weights = draws.particles.latents, draws.weights
        half = len(self._points) // 2
        # Some are chosen by the roots of their weights: modes that hardly count as yet get parts of their own.
        tempered = weights**0.25 / (weights**0.25).sum()
        sizes = half - half // 4, half // 4
        chosen = np.concatenate(
            [self._rng.choice(len(points), n, p=p) for n, p in zip(sizes, (weights, tempered), strict=True)]
        )
        mixture = self._fitted(np.concatenate([self._points[::2], points[chosen]]))
        fits = len(mixture.parts) - len(self._others)
        least = np.array([FITTED / fits] * fits + [share for _, share in self._others])
        return mixture.reshared(points, weights, least)

    def _draw(self, mixture: Mixture, count: int) -> Draws:
        """Draw from the mixture and run the program."""
        bytes_of_draw = 8 * self._points.shape[1] * (4 + len(mixture.parts))
        tasks = max(TASKS, -(-count * bytes_of_draw // LARGEST_TASK))
        sizes = np.diff(np.arange(tasks + 1) * count // tasks)
        key = (*self._key, self._batches)
        work = partial(_drawn, self._model, mixture, sizes, self._points.shape[1], self._seed, key)
        needed = int(sizes.max()) * bytes_of_draw
        opaque, name = self._case.plan.is_opaque, f"measuring {self._seed} {self._key} {self._batches} {count}"
        parts = run_tasks(range(tasks), work, opaque=opaque, bytes_per_task=needed, name=name)
        draws = Draws.concatenate(list(parts))
        self._batches += 1
        self.runs += count
        return draws

    def quantities(self, draws: Draws) -> tuple[tuple[Batch, ...], Array]:
        """Return the values of draws that agree with the observation, and the logs of their weights."""
        agree = draws.log_weights > -np.inf
        columns = [column[agree] for column in draws.particles.columns]
        return tuple(self._model.quantities(columns, self._rng)), draws.log_weights[agree]


def _drawn(
    model: LatentModel, mixture: Mixture, sizes: Array, width: int, seed: int, key: tuple[int, ...], number: int
) -> Draws:
    """Draw a share of a round from the mixture and run the program."""
    rng = blocks.generator(seed, *key, number)
    points = mixture.draw(int(sizes[number]), width, rng)
    particles = Space.reserved(model, rng).evaluate(points)
    logs = np.where(particles.distance <= 0, particles.log_likelihood, -np.inf) - mixture.log_ratio(points)
    return Draws(particles, logs, mixture.place_of(points))


def _pooled(rounds: Sequence[tuple[Mixture, Draws]]) -> Draws:
    """Join draws from several mixtures, weighted as if each came from all of these (Cornuet et al., AMIS, 2012).

    What an early mixture met by chance, with a weight that drowns all others, counts as what a later one often draws.
    """
    draws = Draws.concatenate([drawn for _, drawn in rounds])
    points = draws.particles.latents
    targets = [drawn.log_weights + mixture.log_ratio(drawn.particles.latents) for mixture, drawn in rounds]
    spread = np.logaddexp.reduce([mixture.log_ratio(points) for mixture, _ in rounds], axis=0) - math.log(len(rounds))
    return replace(draws, log_weights=np.concatenate(targets) - spread)


def _worth(logs: Array) -> float:
    """Return how many samples of equal weight some are worth."""
    return effective_sample_size(logs, len(logs)) if np.any(logs > -np.inf) else 0.0


def log_mean(logs: Array) -> tuple[float, float]:
    """Return the log of a mean weight and its standard error, as single draws tell it or groups of them: the larger."""
    count = len(logs)
    number = min(GROUPS, count)
    largest = float(logs.max())
    weights = np.exp(logs - largest)
    mean = float(weights.mean())
    groups = np.add.reduceat(weights, np.arange(number) * count // number) * number / count
    error = max(float(weights.std(ddof=1)) / math.sqrt(count), float(groups.std(ddof=1)) / math.sqrt(number))
    return math.log(mean) + largest, error / mean


def evidence(center: float, error: float, unit: str, method: str) -> Estimate:
    """Return a probability with an interval on the scale of its logarithm, by Student's t on the groups."""
    half = float(scipy.special.stdtrit(GROUPS - 1, 0.5 + CONFIDENCE / 2)) * error
    return Estimate(math.exp(center), math.exp(center - half), math.exp(center + half), unit, method)
