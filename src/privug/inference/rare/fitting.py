"""Distributions fitted to particles, from which moves and jumps of others are proposed."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from privug.model.node import Array

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
class Fit:
    """A normal distribution near the particles: its mean, and a factor of its covariance."""

    mean: Array
    factor: Array

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

    def widened(self, width: int) -> "Fit":
        """Return the fit for points with more numbers, which it knows nothing about."""
        return Fit(*_widened(self.mean, self.factor, width))

    def moved(self, points: Array, normals: Array, step: float) -> tuple[Array, Array]:
        """Return new points, and the log of the factor by which to accept them."""
        kept = math.sqrt(1 - step**2) * (points - self.mean)
        proposed: Array = self.mean + kept + step * (normals @ self.factor.T)
        return proposed, self._surplus(proposed) - self._surplus(points)

    def _surplus(self, points: Array) -> Array:
        """Return the log of the standard normal density over this one, but for a constant."""
        standard = np.linalg.solve(self.factor, (points - self.mean).T)
        surplus: Array = 0.5 * ((standard**2).sum(axis=0) - (points**2).sum(axis=1))
        return surplus


@dataclass(frozen=True)
class Student:
    """Student's distribution near the particles: tails heavier than any normal ones, so that no weight is endless."""

    mean: Array
    factor: Array

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

    def widened(self, width: int) -> "Student":
        """Return the fit for points with more numbers, which it knows nothing about."""
        return Student(*_widened(self.mean, self.factor, width))

    def draw(self, count: int, width: int, rng: np.random.Generator) -> Array:
        """Draw points near the particles."""
        radius = np.sqrt(rng.chisquare(self._degrees, (count, 1)) / self._degrees)
        points: Array = self.mean + (rng.standard_normal((count, width)) / radius) @ self.factor.T
        return points

    def log_ratio(self, points: Array) -> Array:
        """Return the log of this density over the standard normal one."""
        width, degrees = len(self.mean), self._degrees
        standard = np.linalg.solve(self.factor, (points - self.mean).T)  # SciPy's for triangles waits for its threads
        far = np.log1p((standard**2).sum(axis=0) / degrees) * (degrees + width) / 2
        volume = float(np.log(np.diag(self.factor)).sum()) + width / 2 * math.log(degrees / 2)
        constant = math.lgamma((degrees + width) / 2) - math.lgamma(degrees / 2) - volume
        ratio: Array = constant - far + 0.5 * (points**2).sum(axis=1)
        return ratio


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
        moved: Array = normals + np.outer(self.place + (self.spread - 1) * along, self.direction)
        return moved

    def log_ratio(self, points: Array) -> Array:
        """Return the log of the density of points near the particles over the standard normal one."""
        along = points @ self.direction
        ratio: Array = 0.5 * (along**2 - ((along - self.place) / self.spread) ** 2) - math.log(self.spread)
        return ratio


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
        total: Array = np.logaddexp.reduce(self._logs(points), axis=0)
        return total

    def place_of(self, points: Array) -> Array:
        """Return at which place each point is: that of the part which it is likeliest from."""
        places: Array = self.places[np.argmax(self._logs(points), axis=0)]
        return places

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


def _widened(mean: Array, factor: Array, width: int) -> tuple[Array, Array]:
    """Return mean and factor with standard normal numbers added."""
    known = len(mean)
    if known == width:
        return mean, factor
    larger = np.eye(width)
    larger[:known, :known] = factor
    return np.concatenate([mean, np.zeros(width - known)]), larger


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
