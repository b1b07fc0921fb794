"""Outputs with added noise: the output after which a policy is violated most, by branch and bound, with a certificate.

The output is a quantity with finitely many values, its location, plus noise. Given the location, the output has a
density that is the same log-concave curve moved to that location. The ratio of two such densities is monotone in the
output (monotone likelihood ratio), so that on an interval of outputs every ratio lies between its values at both ends.
This bounds the posterior, and the bounds converge as the interval shrinks.

Intervals ("stretches") whose upper bound is below a value found elsewhere are dropped; the others are halved.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from privug.attack import Attack, Result
from privug.errors import InferenceError, UnsuitableEngine
from privug.inference.belief import Belief
from privug.inference.engines import ENGINES
from privug.inference.question import AddedNoise, QuestionOfLocation, added_noise
from privug.leakage.finite import Pairs, pairs_of
from privug.model.node import Array, Kind
from privug.policy.policies import Clause, Levels, Policy
from privug.policy.verdict import Status

SAME = 1e-12
"""How far apart locations may lie, relative to the largest, that differ by rounding only."""


@dataclass(frozen=True, eq=False)
class NoisyOutputs:
    """A finite joint of secret and location, with the noise that is added to the location."""

    noise: AddedNoise
    location: Array
    secret: Array
    weight: Array
    secrets: int

    @classmethod
    def of(cls, noise: AddedNoise, pairs: Pairs) -> "NoisyOutputs":
        """Make the mixture of the joint of the secret and the output without noise."""
        locations = _without_rounding(np.array([float(value) for value in pairs.outputs]))
        return cls(noise, locations[pairs.output], pairs.secret, pairs.probability, len(pairs.secrets))

    def aligned(self, other: "NoisyOutputs") -> "NoisyOutputs | None":
        """Return this mixture with another one's locations, which differ by rounding only; None if they differ more."""
        own, places = np.unique(self.location, return_inverse=True)
        wanted = np.unique(other.location)
        if len(own) != len(wanted) or np.any(np.abs(own - wanted) > SAME * np.abs(wanted).max()):
            return None
        return replace(self, location=wanted[places])

    def breaks(self) -> Array:
        """Return the outputs at which some density is not smooth, begins or ends; at least one."""
        smooth = [float(kink) * self.noise.factor for kink in self.noise.family.kinks(*self.noise.parameters)]  # type: ignore[attr-defined]
        places = [place for place in (*smooth, *self.noise.ends()) if math.isfinite(place)] or [0.0]
        return np.unique(np.add.outer(np.unique(self.location), places))

    def stretches(self) -> tuple[Array, Array]:
        """Return the beginnings and ends of stretches of possible outputs, cut where densities are not smooth."""
        breaks, (low, high) = self.breaks(), self.noise.ends()
        outer = [-math.inf] if math.isinf(low) else [], [math.inf] if math.isinf(high) else []
        edges = np.concatenate([outer[0], breaks, outer[1]])
        begin, end = edges[:-1], edges[1:]
        possible = np.isfinite(self.log_weights(self.inside(begin, end))).any(axis=1)
        return begin[possible], end[possible]

    def inside(self, begin: Array, end: Array) -> Array:
        """Return an output inside of each stretch, an integer where the noise is one."""
        places = between(begin, end)
        return np.round(places) if self.noise.family.kind is Kind.DISCRETE else places

    def points(self, begin: Array, end: Array) -> list[Array]:
        """Return outputs of stretches at which posteriors are computed; on edges of densities they mean nothing."""
        inside = [self.inside(begin, end)]
        return inside if any(map(math.isfinite, self.noise.ends())) else [*inside, begin, end]

    def log_weights(self, output: Array) -> Array:
        """Return the log of the probability of each component times its density, a row for each output."""
        return self._weighted(output[:, np.newaxis] - self.location)

    def _weighted(self, distance: Array) -> Array:
        return np.log(self.weight) + self.noise.log_density(distance)

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
        low, high = self.noise.ends()
        distance = np.clip(place[:, np.newaxis] - self.location, low, high)  # which rounding may put outside
        logs = np.where(alive, self._weighted(distance), -np.inf)
        ratios: Array = logs - logs[rows, reference][:, np.newaxis]
        if not self.noise.family.log_linear_tails:  # there a ratio falls on, how far is not known
            falling = np.isinf((begin, end)[side])[:, np.newaxis] & (
                self.location != self.location[reference][:, np.newaxis]
            )
            ratios = np.where(falling, -np.inf, ratios)
        return ratios


def _without_rounding(locations: Array) -> Array:
    """Return numbers that differ by rounding as one: 0.1 + 0.2 and 0.3 are the same place."""
    order = np.argsort(locations, kind="stable")
    new = np.diff(locations[order], prepend=-np.inf) > SAME * np.abs(locations).max(initial=0.0)
    found = np.empty(len(locations))
    found[order] = locations[order][np.maximum.accumulate(np.where(new, np.arange(len(order)), 0))]
    return found


def between(begin: Array, end: Array) -> Array:
    """Return an output inside of each stretch: its middle, or one beyond the end that there is."""
    span = np.abs(np.where(np.isfinite(begin), begin, end)) + 1.0
    low, high = np.where(np.isinf(begin), end - span, begin), np.where(np.isinf(end), begin + span, end)
    low, high = np.where(np.isinf(low), -1.0, low), np.where(np.isinf(high), 1.0, high)
    middle: Array = low / 2 + high / 2
    return middle


UNKNOWN: Mapping[Status, tuple[float, float]] = {
    Status.HOLDS: (-np.inf, -np.inf),
    Status.VIOLATED: (np.inf, np.inf),
    Status.UNDECIDED: (-np.inf, np.inf),
}
"""Bounds of by how much a part is broken after each output, of which no more than its status is known."""


@dataclass(frozen=True, eq=False)
class Bounded:
    """The number of a clause after outputs that are a finite quantity plus noise; times -1 if it is turned around."""

    clause: Clause
    mixture: NoisyOutputs
    secrets: Sequence[Any]
    prior: Belief
    sign: int = 1

    @property
    def size(self) -> int:
        """How many densities are computed for one output."""
        return len(self.mixture.location)

    @property
    def turned(self) -> Self:
        """The same number times -1."""
        return replace(self, sign=-self.sign)

    def on(self, begin: Array, end: Array) -> Levels:
        """Return bounds of the number on each stretch of outputs."""
        return self._between(*self.mixture.bounds(begin, end))

    def at(self, outputs: Array) -> Levels:
        """Return the number at each output; not a number where the output cannot be."""
        shares = self.mixture.shares(outputs)
        there = np.isfinite(shares).all(axis=1)
        found = Levels(*(np.full(len(outputs), np.nan) for _ in range(3)))
        for numbers, known in zip(found, self._between(shares[there], shares[there]), strict=True):
            numbers[there] = known
        return found

    def _between(self, low: Array, high: Array) -> Levels:
        levels = self.clause.between(low, high, self.secrets, self.prior)
        assert levels is not None
        return levels if self.sign > 0 else Levels(-levels.value, -levels.high, -levels.low)


def bounded(question: Attack, clause: Clause, result: Result, kind: Kind) -> Bounded | None:
    """Return the number of a clause with its bounds, where the output is a finite quantity plus noise of a kind."""
    noise = added_noise(question.question, kind)
    if noise is None:
        return None
    try:
        answer = ENGINES["exact"](QuestionOfLocation.of(question.question, noise), None, samples=1, seed=0)
        pairs = pairs_of(answer.joint())
    except (InferenceError, UnsuitableEngine):
        return None
    anything = np.ones((1, len(pairs.secrets)))
    if clause.between(anything, anything, pairs.secrets, result.prior) is None:
        return None
    return Bounded(clause, NoisyOutputs.of(noise, pairs), pairs.secrets, result.prior)


@dataclass(frozen=True, eq=False)
class Excess:
    """By how much a policy of several parts is broken after each output: not positive where it is kept.

    Of each clause there is a part for each person: its number with bounds, or its status, where that is the same after
    all outputs.
    """

    policy: Policy
    parts: Mapping[Clause, Sequence[Bounded | Status]]
    mixture: NoisyOutputs

    @classmethod
    def of(cls, policy: Policy, parts: Mapping[Clause, Sequence[Bounded | Status]]) -> Self | None:
        """Join the parts of a policy; None if there are no bounds of any, or if they are about different outputs."""
        known = [part for several in parts.values() for part in several if isinstance(part, Bounded)]
        if not known:
            return None
        first = known[0].mixture
        if any(part.mixture.aligned(first) is None for part in known):
            return None
        return cls(policy, {clause: [_aligned(part, first) for part in parts[clause]] for clause in parts}, first)

    @property
    def size(self) -> int:
        """How many densities are computed for one output."""
        return sum(part.size for several in self.parts.values() for part in several if isinstance(part, Bounded))

    def on(self, begin: Array, end: Array) -> Levels:
        """Return bounds of the excess on each stretch of outputs."""
        return self._joined(lambda part: part.on(begin, end), len(begin))

    def at(self, outputs: Array) -> Levels:
        """Return bounds of the excess at each output; not a number where the output cannot be."""
        return self._joined(lambda part: part.at(outputs), len(outputs))

    def _joined(self, levels: Callable[[Bounded], Levels], count: int) -> Levels:
        found = {clause: [_beyond(part, levels, count) for part in several] for clause, several in self.parts.items()}
        least = self.policy.excess(lambda clause: reduce(np.maximum, [low for low, _ in found[clause]]))
        most = self.policy.excess(lambda clause: reduce(np.maximum, [high for _, high in found[clause]]))
        return Levels(least, least, most)


def _aligned(part: Bounded | Status, mixture: NoisyOutputs) -> Bounded | Status:
    if isinstance(part, Status):
        return part
    own = part.mixture.aligned(mixture)
    assert own is not None
    return replace(part, mixture=own)


def _beyond(part: Bounded | Status, levels: Callable[[Bounded], Levels], count: int) -> tuple[Array, Array]:
    if isinstance(part, Status):
        least, most = UNKNOWN[part]
        return np.full(count, least), np.full(count, most)
    found = levels(part)
    return part.clause.limit.beyond(found.low, found.high)


GAP = 1e-9
"""How far the bounds of the largest number may lie apart in the end."""
MOST_ROUNDS = 200
MOST_NUMBERS = 20_000_000
"""How many densities are computed in all, at most."""
MOST_AT_ONCE = 2_000_000


class Supremum(NamedTuple):
    """The largest number found, at which output, and what no output exceeds."""

    output: float
    value: float
    ceiling: float
    stretches: int

    @property
    def method(self) -> str:
        """How the number was found."""
        return f"branch and bound, {self.stretches:,} stretches of outputs"


class Surface(Protocol):
    """A number that depends on the output: its bounds on stretches of outputs, and what it is at single ones."""

    @property
    def mixture(self) -> NoisyOutputs:
        """The distribution of the output."""

    @property
    def size(self) -> int:
        """How many densities are computed for one output."""

    def on(self, begin: Array, end: Array) -> Levels:
        """Return bounds of the number on each stretch."""

    def at(self, outputs: Array) -> Levels:
        """Return the number at each output, or bounds of it; not a number where the output cannot be."""


def supremum(surface: Surface, enough: Callable[[float, float], bool]) -> Supremum:
    """Return the largest number over all outputs, once its bounds are close, or `enough` is known of them."""
    mixture = surface.mixture
    begin, end = mixture.stretches()
    best, value, computed, looked = between(begin, end)[0], -math.inf, 0, 0
    ceiling, dropped = math.inf, -math.inf
    step = max(1, MOST_AT_ONCE // len(mixture.location))
    for _ in range(MOST_ROUNDS):
        upper = np.empty(len(begin))
        for start in range(0, len(begin), step):
            part = slice(start, start + step)
            upper[part] = surface.on(begin[part], end[part]).high
            for points in mixture.points(begin[part], end[part]):
                found = _best_of(surface, points)
                if found is not None and found[1] > value:
                    best, value = found
        computed += 6 * len(begin) * surface.size
        looked += len(begin)
        ceiling = max(value, dropped, float(upper.max(initial=-math.inf)))
        going_on = upper > value + GAP
        dropped = max(dropped, float(upper[~going_on].max(initial=-math.inf)))
        begin, end = begin[going_on], end[going_on]
        if not len(begin) or computed > MOST_NUMBERS or enough(value, ceiling):
            break
        middle = between(begin, end)
        begin, end = np.concatenate([begin, middle]), np.concatenate([middle, end])
    return Supremum(float(best), value, ceiling, looked)


def lattice_supremum(surface: Surface, enough: Callable[[float, float], bool]) -> Supremum | None:
    """Return the largest number over all outputs where noise and what it is added to are integers.

    Outputs up to a place are looked at one by one, and all beyond it together. None if they are no integers.
    """
    mixture = surface.mixture
    if abs(mixture.noise.factor) != 1 or np.any(mixture.location != np.round(mixture.location)):
        return None
    ends, best, value = mixture.noise.ends(), 0.0, -math.inf
    reach = 8.0
    while reach * surface.size <= MOST_AT_ONCE:
        first = mixture.location.min() + (ends[0] if math.isfinite(ends[0]) else -reach)
        last = mixture.location.max() + (ends[1] if math.isfinite(ends[1]) else reach)
        found = _best_of(surface, np.arange(first, last + 1))
        if found is not None and found[1] > value:
            best, value = found
        beyond = [(-math.inf, first)] * math.isinf(ends[0]) + [(last, math.inf)] * math.isinf(ends[1])
        begin, end = (np.array(side) for side in zip(*beyond, strict=True))
        ceiling = max(value, float(surface.on(begin, end).high.max()))
        if ceiling - value <= GAP or enough(value, ceiling):
            break
        reach *= 2
    return Supremum(best, value, ceiling, int(last - first) + 3)


def mass_above(surface: Surface, limit: float, allowed: float) -> tuple[float, float]:
    """Return bounds of the probability of outputs after which a number exceeds a limit.

    They are made narrower until it is known whether they are on the same side of what is allowed, or nearly equal.
    """
    mixture = surface.mixture
    begin, end = mixture.stretches()
    above = computed = 0.0
    for _ in range(MOST_ROUNDS):
        levels = surface.on(begin, end)
        masses = mixture.mass(begin, end)
        sure, open_still = levels.low > limit, (levels.low <= limit) & (levels.high > limit)
        above += float(masses[sure].sum())
        doubtful = float(masses[open_still].sum())
        computed += 4 * len(begin) * surface.size
        if above > allowed or above + doubtful <= allowed or computed > MOST_NUMBERS:
            break
        begin, end = begin[open_still], end[open_still]
        middle = between(begin, end)
        begin, end = np.concatenate([begin, middle]), np.concatenate([middle, end])
    return above, above + doubtful


def is_settled(limit: float, value: float, ceiling: float) -> bool:
    """Return whether it is known on which side of its limit the largest number lies."""
    return value > limit or ceiling <= limit


def _best_of(surface: Surface, points: Array) -> tuple[float, float] | None:
    points = points[np.isfinite(points)]
    values = surface.at(points).value if len(points) else np.empty(0)
    there = ~np.isnan(values)
    if not there.any():
        return None
    place = int(np.argmax(values[there]))
    return float(points[there][place]), float(values[there][place])
