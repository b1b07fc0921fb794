"""One-dimensional conditioning: the secret's root shifts a quantity whose distribution is known, or bounds it.

Both kinds of kernel say how the sum or extreme behind the output is distributed for each value of the secret's root.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from privug.errors import ImpossibleObservation
from privug.inference.conditions import Range
from privug.inference.curve import Curve
from privug.model.node import Array

NOTHING_LEFT = "this observation has probability zero, or one too small to be told from it"
MOST_MASSES = 1 << 18  # ranges times values of the secret in one go


@dataclass(frozen=True)
class Shift:
    """A sum for given sizes of the tables: `start + slope * s + rest`, with the probability of these sizes."""

    probability: float
    start: float
    slope: float
    rest: Curve

    def density(self, x: Array, s: Array) -> Array:
        """Return the density at x, given values of the secret's root."""
        return self.rest.pdf(x - (self.start + self.slope * s))

    def mass(self, low: Array, high: Array, s: Array) -> Array:
        """Return the probability of a range, ends included, given values of the secret's root."""
        here = self.start + self.slope * s
        return self.rest.mass(low - here, high - here)

    def kinks(self, x: Array) -> Array:
        """Return values of the secret's root at which ranges that end at x have kinks in their probability."""
        points = np.array([*self.rest.breaks[np.isfinite(self.rest.breaks)], *self.rest.atoms])
        return _solutions(np.asarray(x, float) - self.start, points, self.slope)

    def crossings(self, x: Array) -> list[tuple[Array, Array]]:
        """Return values of the secret's root that lead to x by themselves, and the densities they give, by atoms."""
        if not self.slope:
            return []
        rest = zip(self.rest.atoms, self.rest.masses, strict=True)
        each = np.ones(np.shape(x)) / abs(self.slope)
        return [((x - self.start - atom) / self.slope, mass * each) for atom, mass in rest]

    def error(self, likelihood: float) -> float:
        """Return a bound on the error of a probability."""
        return self.rest.error_of(likelihood)


@dataclass(frozen=True)
class Largest:
    """The larger of `start + slope * s + own` and a `rest`, for given sizes of the tables.

    With a `sign` of -1 it is the smaller one of what all this is the negative of.
    """

    probability: float
    start: float
    slope: float
    own: Curve
    rest: Curve
    sign: float = 1.0

    def density(self, x: Array, s: Array) -> Array:
        """Return the density at x, given values of the secret's root."""
        y = self.sign * np.asarray(x, float)
        apart = y - (self.start + self.slope * s)
        return np.asarray(self.own.pdf(apart) * self.rest.cdf(y) + self.own.cdf(apart) * self.rest.pdf(y))

    def mass(self, low: Array, high: Array, s: Array) -> Array:
        """Return the probability of a range, ends included, given values of the secret's root."""
        here = self.start + self.slope * s
        below, above = (low, high) if self.sign > 0 else (np.negative(high), np.negative(low))
        until = self._before(above, here, closed=True)
        return np.asarray(np.maximum(until - self._before(below, here, closed=False), 0.0))

    def _before(self, y: Array, here: Array, *, closed: bool) -> Array:
        endless = np.asarray(-np.inf)
        apart, own = np.asarray(y - here, float), np.asarray(y, float)
        inner = self.own.mass(np.broadcast_to(endless, apart.shape), apart, closed=closed)
        return inner * self.rest.mass(np.broadcast_to(endless, own.shape), own, closed=closed)

    def kinks(self, x: Array) -> Array:
        """Return values of the secret's root at which ranges that end at x have kinks in their probability."""
        points = np.array([*self.own.breaks[np.isfinite(self.own.breaks)], *self.own.atoms])
        return _solutions(self.sign * np.asarray(x, float) - self.start, points, self.slope)

    def crossings(self, x: Array) -> list[tuple[Array, Array]]:
        """Return values of the secret's root that lead to x by themselves, and the densities they give, by atoms."""
        if not self.slope:
            return []
        y = self.sign * np.asarray(x, float)
        larger = self.rest.cdf(y) / abs(self.slope)
        own = zip(self.own.atoms, self.own.masses, strict=True)
        return [((y - self.start - atom) / self.slope, mass * larger) for atom, mass in own]

    def error(self, likelihood: float) -> float:
        """Return a bound on the error of a probability."""
        return min(self.own.error + self.rest.error, 1.0 + likelihood)


def _solutions(x: Array, points: Array, slope: float) -> Array:
    """Return s such that `slope * s` plus a point is x, for all points along a new last axis; none if s has no say."""
    if not slope:
        return np.empty((*x.shape, 0))
    with np.errstate(invalid="ignore"):
        found = (x[..., np.newaxis] - points) / slope
    return np.nan_to_num(found, nan=0.0, posinf=np.inf, neginf=-np.inf)


Kernel = Shift | Largest


@dataclass(frozen=True)
class Ranges:
    """The sum or extreme lies in one of some ranges, ends included; the observation is likely to some `weights`."""

    ranges: tuple[Range, ...]
    weights: tuple[float, ...] = ()

    def likelihood(self, kernel: Kernel, s: Array) -> Array:
        """Return the probability of what was seen for values of the secret's root."""
        total = np.zeros(np.shape(s))
        step = max(1, MOST_MASSES // max(1, len(s)))
        low, high = np.array(self.ranges).reshape(-1, 2).T
        weights = np.array(self.weights or [1.0] * len(low))
        for start in range(0, len(low), step):
            part = slice(start, start + step)
            total += kernel.mass(low[part, np.newaxis], high[part, np.newaxis], s[np.newaxis]).T @ weights[part]
        return total

    @property
    def ends(self) -> list[float]:
        """Where the ranges end."""
        return [end for part in self.ranges for end in part if math.isfinite(end)]


@dataclass(frozen=True)
class Places:
    """The sum or extreme took one of some values, each with what its density adds to that of the output."""

    places: tuple[tuple[float, float], ...]
    sd: float = 0.0
    """The deviation of normal noise through which a single value was seen; kernels have it in their rest."""

    def likelihood(self, kernel: Kernel, s: Array) -> Array:
        """Return the density of what was seen for values of the secret's root."""
        parts = (weight * kernel.density(np.asarray(x), s) for x, weight in self.places)
        return sum(parts, np.zeros(np.shape(s)))

    @property
    def ends(self) -> list[float]:
        """The values."""
        return [x for x, _ in self.places]


Seen = Ranges | Places


def conditioned(prior: Curve, kernels: Sequence[Kernel], seen: Sequence[Seen]) -> tuple[float, Curve]:
    """Return the probability or density of what was seen, and the posterior of the secret's root."""
    pairs = list(zip(kernels, seen, strict=True))
    kinks = np.unique(np.concatenate([kernel.kinks(np.array(sight.ends)).reshape(-1) for kernel, sight in pairs]))
    evidence, posterior = prior.reweighted(partial(_likelihood, pairs), kinks)
    if posterior is not None:
        off = max(kernel.error(evidence) for kernel in kernels) / evidence
        posterior = replace(posterior, error=min(1.0, posterior.error + off))
    atoms = [
        (float(place), kernel.probability * weight * float(share))
        for kernel, sight in pairs
        if isinstance(sight, Places)
        for x, weight in sight.places
        for place, share in kernel.crossings(np.asarray(x))
    ]
    places = np.array([place for place, _ in atoms])
    weights = np.array([weight for _, weight in atoms]) * prior.pdf(places) if atoms and prior.parts else np.zeros(0)
    singled = float(weights.sum())
    if not evidence + singled > 0:
        raise ImpossibleObservation(NOTHING_LEFT)
    if not singled > 0:
        assert posterior is not None
        return evidence, posterior
    points = Curve.discrete(places, weights, error=prior.error)
    if posterior is None:
        return singled, points
    return evidence + singled, Curve.mixture([evidence, singled], [posterior, points])


def _likelihood(pairs: Sequence[tuple[Kernel, Seen]], s: Array) -> Array:
    total = np.zeros(np.shape(s))
    for kernel, sight in pairs:
        total += kernel.probability * sight.likelihood(kernel, np.asarray(s, float))
    return total


def given(whole: Curve, seen: Seen | None) -> Curve:
    """Return the distribution of the sum or extreme itself, given what was seen."""
    known = weighed(whole, seen)[1]
    if known is None:
        raise ImpossibleObservation(NOTHING_LEFT)
    return known


def weighed(whole: Curve, seen: Seen | None) -> tuple[float, Curve | None]:
    """Return the probability or density of what was seen, and the distribution given that, if there is one."""
    if seen is None:
        return 1.0, whole
    if isinstance(seen, Places) and seen.sd > 0:
        return whole.reweighted(partial(_normal_density, seen.places[0][0], seen.sd))
    if isinstance(seen, Places):
        shares = np.array([weight * float(whole.pdf(x)) for x, weight in seen.places])
        total = float(shares.sum())
        return total, Curve.discrete([x for x, _ in seen.places], shares) if total > 0 else None
    parts = [whole.restricted(low, high) for low, high in seen.ranges]
    weights = seen.weights or (1.0,) * len(parts)
    there = [(w * share, curve) for w, (share, curve) in zip(weights, parts, strict=True) if curve is not None]
    total = sum(share for share, _ in there)
    if not total > 0:
        return 0.0, None
    return total, Curve.mixture([share for share, _ in there], [curve for _, curve in there])


def _normal_density(value: float, sd: float, x: Array) -> Array:
    return np.exp(-0.5 * ((x - value) / sd) ** 2) / (sd * math.sqrt(2 * math.pi))
