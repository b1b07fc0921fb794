"""Moves through the space of normal numbers that leave their distribution as it is, mixed and scaled as they succeed.

* fitted: around a normal distribution fitted to the particles at hand, z' = m + r (z - m) + s C^(1/2) x with
  r^2 + s^2 = 1 (preconditioned Crank-Nicolson; Cotter, Roberts, Stuart and White, 2013), corrected for the difference
  between that distribution and the standard normal one;
* plain: the same around the standard normal distribution, which needs no correction;
* refresh: some numbers drawn anew, the others left alone, so that discrete quantities move one at a time;
* exchange: two numbers change places, or all those of two rows of a table, or one changes its sign, which leads from
  one mode to another;
* jump: to a point that does not depend on the one at hand, near the particles or scattered (`scattering`), corrected
  for how much likelier that makes it. A mode of a rare value is found as soon as it holds a share of the particles,
  although no path leads there.
"""

import math
from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np

from privug.inference.rare.fitting import Fit, Mixture, places_of
from privug.inference.rare.scattering import Scattering
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
