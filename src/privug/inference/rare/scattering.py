"""Points scattered so widely that rare values come up: how populations come to modes that no small step leads to.

A number is drawn such that far tails are as likely as the middle: the logarithm of its tail's probability is uniform.
Where a discrete root has rare values between common ones, those are drawn, each as often as the others. Only a few
numbers of a point are drawn that way, so that one rare value does not need another: either some behind discrete roots,
whose values have no path between them, or some of the others.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy

from privug.model.node import Array

FURTHEST = 28.0  # minus the logarithm of the smallest probability of a tail: 7e-13, at 7 standard deviations
SCATTERED = 1.5  # numbers of a point, on average
MOST_SCATTERED = 0.8  # of the numbers of a point
HIDDEN = 0.05  # a value of a smaller share of what lies beyond it is not found by drawing from the tails


class Steps(NamedTuple):
    """Whether a number jumps from value to value, and up to which probabilities each value goes, if that is known."""

    discrete: bool
    levels: Array | None = None

    @property
    def hidden(self) -> Array:
        """Which values are rare although they lie in no tail."""
        if self.levels is None:
            return np.empty(0, np.intp)
        beyond = np.minimum(self.levels[:-1], 1 - self.levels[1:])
        return np.flatnonzero(np.diff(self.levels) < HIDDEN * beyond)


class Scattering:
    """A distribution of points, by its density over that of standard normal numbers; `steps` are for each number.

    >>> rng = np.random.default_rng(1)
    >>> flag = Scattering([Steps(discrete=True), Steps(discrete=False)])
    >>> bool((flag.draw(10_000, 2, rng) > 4.3).mean() > 0.03)  # of standard normal numbers less than 1e-5
    True
    """

    def __init__(self, steps: Sequence[Steps]) -> None:
        self._discrete = np.array([one.discrete for one in steps], np.bool_)
        self._hidden = {
            column: (one.levels, one.hidden)
            for column, one in enumerate(steps)
            if one.levels is not None and len(one.hidden)
        }

    def _shares(self, width: int) -> Array:
        """Return how often each number is scattered, in each of the ways to do so."""
        discrete = np.zeros(width, np.bool_)
        discrete[: len(self._discrete)] = self._discrete
        ways = [way for way in (discrete, ~discrete) if way.any()]
        return np.stack([way * min(MOST_SCATTERED, SCATTERED / way.sum()) for way in ways])

    def draw(self, count: int, width: int, rng: np.random.Generator) -> Array:
        """Draw points of so many numbers."""
        points: Array = rng.standard_normal((count, width))
        shares = self._shares(width)
        rows, columns = np.nonzero(rng.random((count, width)) < shares[rng.integers(len(shares), size=count)])
        tails = np.exp(-FURTHEST * rng.random(len(rows)))
        signs = np.where(rng.random(len(rows)) < 0.5, 1.0, -1.0)
        points[rows, columns] = signs * scipy.special.ndtri(tails / 2)
        for column, (levels, hidden) in self._hidden.items():
            chosen = rows[(columns == column) & (rng.random(len(rows)) < 0.5)]
            values = rng.choice(hidden, len(chosen))
            places = levels[values] + np.diff(levels)[values] * rng.random(len(chosen))
            points[chosen, column] = scipy.special.ndtri(np.clip(places, 1e-300, 1 - 1e-16))
        return points

    def widened(self, width: int) -> "Scattering":
        """Return the same for points with more numbers: it scatters as many as there are."""
        return self

    def log_ratio(self, points: Array) -> Array:
        """Return the log of this density over the standard normal one."""
        tails = -math.log(2.0) - scipy.special.log_ndtr(-np.abs(points))
        ratio = np.where(tails < FURTHEST, np.exp(np.minimum(tails, FURTHEST)) / FURTHEST, 0.0)
        for column, (levels, hidden) in self._hidden.items():
            surplus = np.zeros(len(levels) - 1)
            surplus[hidden] = 1 / (len(hidden) * np.diff(levels)[hidden])
            value = np.searchsorted(levels[1:-1], scipy.special.ndtr(points[:, column]), side="right")
            ratio[:, column] = (ratio[:, column] + surplus[value]) / 2
        logs = [np.log1p(share * (ratio - 1)).sum(axis=1) for share in self._shares(points.shape[1])]
        total: Array = np.logaddexp.reduce(logs, axis=0) - math.log(len(logs))
        return total
