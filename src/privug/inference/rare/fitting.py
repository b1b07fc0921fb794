"""Distributions fitted to particles, from which moves and jumps of others are proposed."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from privug.model.node import Array

WIDEST_FIT = 60
FEWEST_FOR_FIT = 20
FEWEST_A_DIMENSION = 3
FLATTEST = 1e-12  # variance in the narrowest direction over the mean one: a sharp window leaves next to nothing of it
INFLATION = 2.0  # of a fitted covariance: with lighter tails than the particles' own it would lose theirs
SLIMMER = math.sqrt(1.2 / INFLATION)  # of jumps, of which hardly any would be accepted in many dimensions

ROUNDS = 10  # of moving the border between two places
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
        if not 0 < width <= WIDEST_FIT:
            return None
        different = len(np.unique(points @ np.cos(np.arange(1.0, width + 1))))
        if different < max(FEWEST_FOR_FIT, FEWEST_A_DIMENSION * width):
            return None
        mean = points.mean(axis=0)
        centered = points - mean
        covariance = centered.T @ centered / (len(points) - 1)
        least = FLATTEST * (np.trace(covariance) / width + 1e-300)
        return cls(mean, np.linalg.cholesky(INFLATION * (covariance + least * np.eye(width))))

    def widened(self, width: int) -> "Fit":
        """Return the fit for points with more numbers, which it knows nothing about."""
        known = len(self.mean)
        if known == width:
            return self
        factor = np.eye(width)
        factor[:known, :known] = self.factor
        return Fit(np.concatenate([self.mean, np.zeros(width - known)]), factor)

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

    def around(self, normals: Array) -> Array:
        """Return points near the particles."""
        points: Array = self.mean + SLIMMER * normals @ self.factor.T
        return points

    def log_ratio(self, points: Array) -> Array:
        """Return the log of the density of points near the particles over the standard normal one."""
        standard = np.linalg.solve(SLIMMER * self.factor, (points - self.mean).T)
        volume = float(np.log(SLIMMER * np.diag(self.factor)).sum())
        ratio: Array = 0.5 * ((points**2).sum(axis=1) - (standard**2).sum(axis=0)) - volume
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
    def nowhere(cls) -> "Ray":
        """Return the standard normal distribution."""
        return cls(np.zeros(0), 0.0, 1.0)

    @classmethod
    def of(cls, points: Array) -> "Ray":
        """Fit the direction in which the particles lie."""
        if len(points) < FEWEST_FOR_FIT:
            return cls.nowhere()
        mean = points.mean(axis=0)
        length = float(np.linalg.norm(mean))
        if not length > 0:
            return cls.nowhere()
        along = points @ (mean / length)
        return cls(mean / length, length, max(float(along.std()), 1e-6))

    def widened(self, width: int) -> "Ray":
        """Return the same for points with more numbers."""
        return Ray(np.concatenate([self.direction, np.zeros(width - len(self.direction))]), self.place, self.spread)

    def around(self, normals: Array) -> Array:
        """Return points near the particles."""
        along = normals @ self.direction
        moved: Array = normals + np.outer(self.place + (self.spread - 1) * along, self.direction)
        return moved

    def log_ratio(self, points: Array) -> Array:
        """Return the log of the density of points near the particles over the standard normal one."""
        along = points @ self.direction
        ratio: Array = 0.5 * (along**2 - ((along - self.place) / self.spread) ** 2) - math.log(self.spread)
        return ratio


class Near:
    """The places where particles are, one or two: of each the full fit, and the ray, which needs fewer particles."""

    def __init__(self, parts: Sequence[Fit | Ray]) -> None:
        self._parts = parts

    @classmethod
    def of(cls, points: Array) -> "Near":
        """Fit particles."""
        fits = [fit for part in _clusters(points) for fit in (Fit.of(part), Ray.of(part))]
        return cls([fit for fit in fits if fit is not None])

    def widened(self, width: int) -> "Near":
        """Return the same for points with more numbers, which it knows nothing about."""
        return Near([part.widened(width) for part in self._parts])

    def draw(self, count: int, width: int, rng: np.random.Generator) -> Array:
        """Draw points near the particles."""
        normals = rng.standard_normal((count, width))
        chosen = rng.integers(len(self._parts), size=count)
        for number, part in enumerate(self._parts):
            normals[chosen == number] = part.around(normals[chosen == number])
        return normals

    def log_ratio(self, points: Array) -> Array:
        """Return the log of this density over the standard normal one."""
        logs = [part.log_ratio(points) for part in self._parts]
        total: Array = scipy.special.logsumexp(logs, axis=0) - math.log(len(logs))
        return total


def _clusters(points: Array) -> list[Array]:
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
