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
from typing import Protocol, Self

import numpy as np

from privug.estimate import Estimate
from privug.inference import sampling
from privug.inference.diagnostics import LARGEST_PARETO_K, effective_sample_size, pareto_k
from privug.inference.intervals import student
from privug.inference.rare.model import LatentModel, Particles, Scattering, Space
from privug.model.batch import Batch
from privug.model.node import Array
from privug.runtime.tasks import run_tasks

WIDEST_FIT = 60
FEWEST_FOR_FIT = 20
FEWEST_A_DIMENSION = 3
NARROWEST = 1e-12  # deviation of any one number
FLATTEST = 1e-12  # variance in the narrowest direction over the mean one: a sharp window leaves next to nothing of it
INFLATION = 2.0  # of a fitted covariance: with lighter tails than the particles' own it would lose theirs
SLIGHT_INFLATION = 1.1  # where the tails are Student's, which are heavier by themselves
LEAST_DEGREES = 4  # of Student's tails: beyond the variance, a fourth moment would just exist

ROUNDS = 10  # of moving the border between two places
SPLITS = 3  # of places into two, one after the other
RESHARED = 10  # rounds of finding the shares that parts of a mixture should have
LEAST_GAP = 2.5  # between two places, in units of their spread; the halves of one normal distribution are 1.9 apart


@dataclass(frozen=True)
class FittedProposal:
    """A distribution near the particles: its mean, and a factor of its covariance."""

    mean: Array
    factor: Array

    def widened(self, width: int) -> Self:
        """Return the fit for points with more numbers, which it knows nothing about."""
        known = len(self.mean)
        if known == width:
            return self
        larger = np.eye(width)
        larger[:known, :known] = self.factor
        return type(self)(np.concatenate([self.mean, np.zeros(width - known)]), larger)


class Fit(FittedProposal):
    """A normal distribution near the particles."""

    @classmethod
    def of(cls, points: Array) -> "Fit | None":
        """Fit particles; None if too few of them are different from each other."""
        width = points.shape[1]
        if not _fills(points):
            return None
        mean = points.mean(axis=0)
        centered = points - mean
        covariance = centered.T @ centered / (len(points) - 1)
        least = FLATTEST * (np.trace(covariance) / width + 1e-300)
        return cls(mean, np.linalg.cholesky(INFLATION * (covariance + least * np.eye(width))))

    def moved(self, points: Array, normals: Array, step: float) -> tuple[Array, Array]:
        """Return new points, and the log of the factor by which to accept them."""
        kept = math.sqrt(1 - step**2) * (points - self.mean)
        proposed: Array = self.mean + kept + step * (normals @ self.factor.T)
        return proposed, self._surplus(proposed) - self._surplus(points)

    def _surplus(self, points: Array) -> Array:
        """Return the log of the standard normal density over this one, but for a constant."""
        standard = np.linalg.solve(self.factor, (points - self.mean).T)
        return np.asarray(0.5 * ((standard**2).sum(axis=0) - (points**2).sum(axis=1)))


class Student(FittedProposal):
    """Student's distribution near the particles: tails heavier than any normal ones, so that no weight is endless."""

    @classmethod
    def of(cls, points: Array) -> "Student | None":
        """Fit particles; None if too few of them are different from each other."""
        width = points.shape[1]
        if not _fills(points):
            return None
        mean = points.mean(axis=0)
        centered = points - mean
        deviations = np.maximum(np.sqrt((centered**2).mean(axis=0)), NARROWEST)
        standard = centered / deviations
        correlations = standard.T @ standard / len(points) + FLATTEST * np.eye(width)
        factor: Array = deviations[:, np.newaxis] * np.linalg.cholesky(SLIGHT_INFLATION * correlations)
        return cls(mean, factor)

    @property
    def _degrees(self) -> int:
        """Degrees of freedom: more in more dimensions, where the radius would vary too much otherwise."""
        return LEAST_DEGREES + len(self.mean)

    def draw(self, count: int, width: int, rng: np.random.Generator) -> Array:
        """Draw points near the particles."""
        radius = np.sqrt(rng.chisquare(self._degrees, (count, 1)) / self._degrees)
        return np.asarray(self.mean + (rng.standard_normal((count, width)) / radius) @ self.factor.T)

    def log_ratio(self, points: Array) -> Array:
        """Return the log of this density over the standard normal one."""
        width, degrees = len(self.mean), self._degrees
        standard = np.linalg.solve(self.factor, (points - self.mean).T)  # SciPy's for triangles waits for its threads
        far = np.log1p((standard**2).sum(axis=0) / degrees) * (degrees + width) / 2
        volume = float(np.log(np.diag(self.factor)).sum()) + width / 2 * math.log(degrees / 2)
        constant = math.lgamma((degrees + width) / 2) - math.lgamma(degrees / 2) - volume
        return np.asarray(constant - far + 0.5 * (points**2).sum(axis=1))


@dataclass(frozen=True)
class Ray:
    """A normal distribution that differs from the standard one along one direction only: all that many numbers allow.

    `place` and `spread` are the mean and the deviation along that direction.
    """

    direction: Array
    place: float
    spread: float

    @classmethod
    def nowhere(cls, width: int) -> "Ray":
        """Return the standard normal distribution."""
        return cls(np.zeros(width), 0.0, 1.0)

    @classmethod
    def of(cls, points: Array) -> "Ray":
        """Fit the direction in which the particles lie."""
        if len(points) < FEWEST_FOR_FIT:
            return cls.nowhere(points.shape[1])
        mean = points.mean(axis=0)
        length = float(np.linalg.norm(mean))
        if not length > 0:
            return cls.nowhere(points.shape[1])
        along = points @ (mean / length)
        # Copies of a few points show no spread; beyond some place the tail of a normal number has about this one.
        least = min(1.0, 1 / length) if len(np.unique(along)) < FEWEST_FOR_FIT else 1e-6
        return cls(mean / length, length, max(float(along.std()), least))

    def widened(self, width: int) -> "Ray":
        """Return the same for points with more numbers."""
        if len(self.direction) == width:
            return self
        return Ray(np.concatenate([self.direction, np.zeros(width - len(self.direction))]), self.place, self.spread)

    def draw(self, count: int, width: int, rng: np.random.Generator) -> Array:
        """Draw points near the particles."""
        normals = rng.standard_normal((count, width))
        along = normals @ self.direction
        return np.asarray(normals + np.outer(self.place + (self.spread - 1) * along, self.direction))

    def log_ratio(self, points: Array) -> Array:
        """Return the log of the density of points near the particles over the standard normal one."""
        along = points @ self.direction
        return np.asarray(0.5 * (along**2 - ((along - self.place) / self.spread) ** 2) - math.log(self.spread))


class Part(Protocol):
    """A distribution of points in the space of normal numbers, of which a mixture is made."""

    def draw(self, count: int, width: int, rng: np.random.Generator) -> Array:
        """Draw points of so many numbers."""

    def log_ratio(self, points: Array) -> Array:
        """Return the log of this density over the standard normal one."""

    def widened(self, width: int) -> "Part":
        """Return the same for points with more numbers, which it knows nothing about."""


@dataclass(frozen=True)
class Mixture:
    """A mixture of distributions: near the places where particles are, and others.

    `places` says at which place each part is, -1 for those that are at none.
    """

    parts: Sequence[Part]
    shares: Array
    places: Array

    @classmethod
    def nowhere(cls, part: Part) -> "Mixture":
        """Return a single distribution that is at no place."""
        return cls([part], np.ones(1), np.full(1, -1))

    @classmethod
    def near(cls, places: Sequence[Array], others: Sequence[tuple[Part, float]]) -> "Mixture":
        """Fit the particles of each place by Student's distribution and by a ray, beside others of given shares."""
        fits = [
            (fit, number)
            for number, points in enumerate(places)
            for fit in (Student.of(points), Ray.of(points))
            if fit is not None
        ]
        further, shares = zip(*others, strict=True)
        return cls(
            [*(fit for fit, _ in fits), *further],
            np.array([(1 - sum(shares)) / len(fits)] * len(fits) + list(shares)),
            np.array([number for _, number in fits] + [-1] * len(further)),
        )

    def widened(self, width: int) -> "Mixture":
        """Return the same for points with more numbers, which it knows nothing about."""
        return replace(self, parts=[part.widened(width) for part in self.parts])

    def draw(self, count: int, width: int, rng: np.random.Generator) -> Array:
        """Draw points of so many numbers."""
        points = np.empty((count, width))
        chosen = rng.choice(len(self.parts), size=count, p=self.shares)
        for number, part in enumerate(self.parts):
            places = np.flatnonzero(chosen == number)
            points[places] = part.draw(len(places), width, rng)
        return points

    def log_ratio(self, points: Array) -> Array:
        """Return the log of this density over the standard normal one."""
        return np.asarray(np.logaddexp.reduce(self._logs(points), axis=0))

    def place_of(self, points: Array) -> Array:
        """Return at which place each point is: that of the part which it is likeliest from."""
        return np.asarray(self.places[np.argmax(self._logs(points), axis=0)])

    def _logs(self, points: Array) -> Array:
        return np.stack([part.log_ratio(points) for part in self.parts]) + np.log(self.shares)[:, np.newaxis]

    def reshared(self, points: Array, weights: Array, least: Array) -> "Mixture":
        """Return the mixture with the shares under which weighted points are likeliest; none gets less than `least`."""
        logs = self._logs(points) - np.log(self.shares)[:, np.newaxis]
        shares = self.shares
        for _ in range(RESHARED):
            joint = logs + np.log(shares)[:, np.newaxis]
            shares = np.exp(joint - np.logaddexp.reduce(joint, axis=0)) @ weights
            shares = least + (1 - least.sum()) * shares / shares.sum()
        return replace(self, shares=shares)


def _fills(points: Array) -> bool:
    """Say whether enough points differ from each other to tell a covariance."""
    width = points.shape[1]
    if not 0 < width <= WIDEST_FIT:
        return False
    different = len(np.unique(points @ np.cos(np.arange(1.0, width + 1))))
    return bool(different >= max(FEWEST_FOR_FIT, FEWEST_A_DIMENSION * width))


def places_of(points: Array, splits: int = SPLITS) -> list[Array]:
    """Split particles in two where they leave a gap, and the halves again."""
    halves = _halves(points)
    if splits == 0 or len(halves) == 1:
        return [points]
    return [place for half in halves for place in places_of(half, splits - 1)]


def _halves(points: Array) -> list[Array]:
    """Split particles in two along the direction in which they differ most, if they leave a gap there."""
    if not 0 < points.shape[1] <= WIDEST_FIT or len(points) < 2 * FEWEST_FOR_FIT:
        return [points]
    centered = points - points.mean(axis=0)
    along = centered @ np.linalg.eigh(centered.T @ centered)[1][:, -1]
    cut = 0.0
    for _ in range(ROUNDS):
        upper = along > cut
        if not upper.any() or upper.all():
            return [points]
        cut = float(along[upper].mean() + along[~upper].mean()) / 2
    upper = along > cut
    gap, spread = along[upper].mean() - along[~upper].mean(), math.hypot(along[upper].std(), along[~upper].std())
    return [points[upper], points[~upper]] if gap > LEAST_GAP * spread else [points]


PILOT_ROUNDS = 3  # from which the mixture is fitted anew
SMALLEST_ROUND, LARGEST_ROUND = 500, 3_000
PILOT_SHARE = 0.05  # of the runs of the search, in one round
LARGEST_BATCH = 60_000
TASKS = 4  # of a round, side by side
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
        return np.asarray(weights / weights.sum())


class Measurement:
    """Draws from a mixture near the points that populations found, adapted to what the first rounds of it show."""

    def __init__(self, model: LatentModel, points: Array, *, seed: int, attempt: int, searched: int) -> None:
        self._model, self._case, self._points = model, model.typical, points
        self._seed, self._key = seed, (attempt, 1)
        self._rng = sampling.generator(seed, *self._key, 0)
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
        return np.asarray(np.flatnonzero(counts > LEAST_SHARE * len(self._points)))

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
    rng = sampling.generator(seed, *key, number)
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
    half = student(GROUPS - 1) * error
    return Estimate(math.exp(center), math.exp(center - half), math.exp(center + half), unit, method)
