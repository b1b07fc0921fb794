"""The largest number that a policy limits over all values of a continuous output, between proven bounds.

The output is a finite quantity plus noise of a log-concave density, so given each value of that quantity, a location,
it has a density that is the same curve at another place. The ratio of two such densities is monotone in the output
(monotone likelihood ratio), so between two outputs every ratio lies between its values at both; and so the posterior
lies between bounds that close in on each other as the outputs do. Stretches whose upper bound is below what was already
found elsewhere are dropped, the others are halved.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from privug.inference.added_noise import AddedNoise
from privug.leakage.finite import Pairs
from privug.model.node import Array, Kind
from privug.policy.levels import Levels

GAP = 1e-9
"""How far the bounds of the largest number may lie apart in the end."""
MOST_ROUNDS = 200
MOST_NUMBERS = 20_000_000
"""How many densities are computed in all, at most."""
MOST_AT_ONCE = 2_000_000

Judge = Callable[[Array, Array], Levels]
"""Takes lower and upper bounds of the posterior, a row for each stretch and a column for each secret."""


class Supremum(NamedTuple):
    """The largest number found, at which output, and what no output exceeds."""

    output: float
    value: float
    ceiling: float
    stretches: int


@dataclass(frozen=True, eq=False)
class Mixture:
    """Secrets and locations with their probabilities, and the noise that is added to the location."""

    noise: AddedNoise
    location: Array
    secret: Array
    weight: Array
    secrets: int

    @classmethod
    def of(cls, noise: AddedNoise, pairs: Pairs) -> "Mixture":
        """Make the mixture of the joint of the secret and the output without noise."""
        locations = np.array([float(value) for value in pairs.outputs])
        return cls(noise, locations[pairs.output], pairs.secret, pairs.probability, len(pairs.secrets))

    def breaks(self) -> Array:
        """Return the outputs at which some density is not smooth, begins or ends; at least one."""
        smooth = [float(kink) * self.noise.factor for kink in self.noise.family.kinks(*self.noise.parameters)]  # type: ignore[attr-defined]
        places = [place for place in (*smooth, *self.noise.ends()) if math.isfinite(place)] or [0.0]
        return np.unique(np.add.outer(np.unique(self.location), places))

    def stretches(self) -> tuple[Array, Array]:
        """Return the beginnings and ends of stretches of outputs, cut where densities are not smooth."""
        breaks, (low, high) = self.breaks(), self.noise.ends()
        outer = [-math.inf] if math.isinf(low) else [], [math.inf] if math.isinf(high) else []
        edges = np.concatenate([outer[0], breaks, outer[1]])
        return edges[:-1], edges[1:]

    def inside(self, begin: Array, end: Array) -> Array:
        """Return an output inside of each stretch, a whole number where the noise is one."""
        places = _inside(begin, end)
        return np.round(places) if self.noise.family.kind is Kind.DISCRETE else places

    def points(self, begin: Array, end: Array) -> list[Array]:
        """Return outputs of stretches at which posteriors are computed; on edges of densities they mean nothing."""
        inside = [self.inside(begin, end)]
        return inside if any(map(math.isfinite, self.noise.ends())) else [*inside, begin, end]

    def log_weights(self, output: Array) -> Array:
        """Return the log of the probability of each component times its density, a row for each output."""
        return np.log(self.weight) + self.noise.log_density(output[:, np.newaxis] - self.location)

    def shares(self, output: Array) -> Array:
        """Return the posterior of each secret, a row for each output; not a number where there is no density."""
        logs = self.log_weights(output)
        top = logs.max(axis=1, keepdims=True)
        with np.errstate(invalid="ignore", divide="ignore"):
            sums = self._by_secret(np.exp(logs - top))
            found: Array = sums / sums.sum(axis=1, keepdims=True)
        return found

    def _by_secret(self, numbers: Array) -> Array:
        order = np.argsort(self.secret, kind="stable")
        starts = np.flatnonzero(np.diff(self.secret[order], prepend=-1))
        found = np.zeros((len(numbers), self.secrets))
        found[:, self.secret[order][starts]] = np.add.reduceat(numbers[:, order], starts, axis=1)
        return found

    def bounds(self, begin: Array, end: Array) -> tuple[Array, Array]:
        """Return bounds of the posterior of each secret on each stretch, which no edge of a density lies in."""
        alive = np.isfinite(self.log_weights(self.inside(begin, end)))
        at_begin, at_end = self._ratios(begin, end, alive, 0), self._ratios(begin, end, alive, 1)
        low, high = np.minimum(at_begin, at_end), np.maximum(at_begin, at_end)
        top = high.max(axis=1, keepdims=True)
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            least, most = (self._by_secret(np.exp(part - top)) for part in (low, high))
            others = most.sum(axis=1, keepdims=True) - most, least.sum(axis=1, keepdims=True) - least
            lower, upper = least / (least + np.maximum(others[0], 0.0)), most / (most + np.maximum(others[1], 0.0))
        return np.nan_to_num(lower, nan=0.0), np.nan_to_num(upper, nan=0.0)

    def mass(self, begin: Array, end: Array) -> Array:
        """Return the probability that the output lies in each stretch."""
        law = self.noise.family.frozen(*self.noise.parameters)  # type: ignore[attr-defined]
        edges = [(edge[:, np.newaxis] - self.location) / self.noise.factor for edge in (begin, end)]
        low, high = np.minimum(*edges), np.maximum(*edges)
        # In the upper tail the distribution function has no digits left.
        upper = law.cdf(low) > 0.5
        shares = np.where(upper, law.sf(low) - law.sf(high), law.cdf(high) - law.cdf(low))
        masses: Array = shares @ self.weight
        return masses

    def _ratios(self, begin: Array, end: Array, alive: Array, side: int) -> Array:
        """Return the log of each component's weight over that of a component that is there all along, at one end."""
        rows = np.arange(len(begin))
        # Towards an end that is not there, the component that lies furthest out is the one that is left.
        outward = self.location * np.where(np.isinf(end), 1.0, -1.0)[:, np.newaxis]
        reference = np.argmax(np.where(alive, outward, -np.inf), axis=1)
        place = np.where(np.isfinite((begin, end)[side]), (begin, end)[side], (end, begin)[side])
        logs = np.where(alive, self.log_weights(place), -np.inf)
        ratios: Array = logs - logs[rows, reference][:, np.newaxis]
        if not self.noise.family.log_linear_tails:  # there a ratio falls on, how far is not known
            falling = np.isinf((begin, end)[side])[:, np.newaxis] & (
                self.location != self.location[reference][:, np.newaxis]
            )
            ratios = np.where(falling, -np.inf, ratios)
        return ratios


def _inside(begin: Array, end: Array) -> Array:
    """Return an output inside of each stretch: its middle, or one beyond the end that there is."""
    span = np.abs(np.where(np.isfinite(begin), begin, end)) + 1.0
    low, high = np.where(np.isinf(begin), end - span, begin), np.where(np.isinf(end), begin + span, end)
    low, high = np.where(np.isinf(low), -1.0, low), np.where(np.isinf(high), 1.0, high)
    middle: Array = low / 2 + high / 2
    return middle


def supremum(mixture: Mixture, judge: Judge, enough: Callable[[float, float], bool]) -> Supremum:
    """Return the largest number over all outputs, once its bounds are close, or `enough` is known of them."""
    begin, end = mixture.stretches()
    best, value, computed, looked = _inside(begin, end)[0], -math.inf, 0, 0
    ceiling, dropped = math.inf, -math.inf
    step = max(1, MOST_AT_ONCE // len(mixture.location))
    for _ in range(MOST_ROUNDS):
        upper = np.empty(len(begin))
        for start in range(0, len(begin), step):
            part = slice(start, start + step)
            upper[part] = judge(*mixture.bounds(begin[part], end[part])).high
            for points in mixture.points(begin[part], end[part]):
                found = _best_of(mixture, judge, points)
                if found is not None and found[1] > value:
                    best, value = found
        computed += 6 * len(begin) * len(mixture.location)
        looked += len(begin)
        ceiling = max(value, dropped, float(upper.max(initial=-math.inf)))
        going_on = upper > value + GAP
        dropped = max(dropped, float(upper[~going_on].max(initial=-math.inf)))
        begin, end = begin[going_on], end[going_on]
        if not len(begin) or computed > MOST_NUMBERS or enough(value, ceiling):
            break
        middle = _inside(begin, end)
        begin, end = np.concatenate([begin, middle]), np.concatenate([middle, end])
    return Supremum(float(best), value, ceiling, looked)


def lattice_supremum(mixture: Mixture, judge: Judge, enough: Callable[[float, float], bool]) -> Supremum | None:
    """Return the largest number over all outputs where noise and what it is added to are whole numbers.

    Outputs up to a place are looked at one by one, and all beyond it together. None if they are no whole numbers.
    """
    if abs(mixture.noise.factor) != 1 or np.any(mixture.location != np.round(mixture.location)):
        return None
    ends, best, value = mixture.noise.ends(), 0.0, -math.inf
    reach = 8.0
    while reach * len(mixture.location) <= MOST_AT_ONCE:
        first = mixture.location.min() + (ends[0] if math.isfinite(ends[0]) else -reach)
        last = mixture.location.max() + (ends[1] if math.isfinite(ends[1]) else reach)
        found = _best_of(mixture, judge, np.arange(first, last + 1))
        if found is not None and found[1] > value:
            best, value = found
        beyond = [(-math.inf, first)] * math.isinf(ends[0]) + [(last, math.inf)] * math.isinf(ends[1])
        begin, end = (np.array(side) for side in zip(*beyond, strict=True))
        ceiling = max(value, float(judge(*mixture.bounds(begin, end)).high.max()))
        if ceiling - value <= GAP or enough(value, ceiling):
            break
        reach *= 2
    return Supremum(best, value, ceiling, int(last - first) + 3)


def broken_mass(mixture: Mixture, judge: Judge, limit: float, allowed: float) -> tuple[float, float]:
    """Return bounds of the probability of outputs after which a number exceeds its limit.

    They are made narrower until it is known whether they are on the same side of what is allowed, or nearly equal.
    """
    begin, end = mixture.stretches()
    broken = computed = 0.0
    for _ in range(MOST_ROUNDS):
        levels = judge(*mixture.bounds(begin, end))
        masses = mixture.mass(begin, end)
        sure, open_still = levels.low > limit, (levels.low <= limit) & (levels.high > limit)
        broken += float(masses[sure].sum())
        doubtful = float(masses[open_still].sum())
        computed += 4 * len(begin) * len(mixture.location)
        if broken > allowed or broken + doubtful <= allowed or computed > MOST_NUMBERS:
            break
        begin, end = begin[open_still], end[open_still]
        middle = _inside(begin, end)
        begin, end = np.concatenate([begin, middle]), np.concatenate([middle, end])
    return broken, broken + doubtful


def _best_of(mixture: Mixture, judge: Judge, points: Array) -> tuple[float, float] | None:
    points = points[np.isfinite(points)]
    shares = mixture.shares(points) if len(points) else np.empty((0, 1))
    there = np.isfinite(shares).all(axis=1)
    if not there.any():
        return None
    levels = judge(shares[there], shares[there]).value
    place = int(np.argmax(levels))
    return float(points[there][place]), float(levels[place])
