"""Outputs that are a finite quantity plus noise: what an attacker believes after them, on stretches of outputs.

Given each value of that quantity, a location, the output has a density that is the same log-concave curve at another
place. The ratio of two such densities is monotone in the output (monotone likelihood ratio), so between two outputs
every ratio lies between its values at both; and so the posterior lies between bounds that close in on each other as the
outputs do.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from privug.inference.derived_questions import AddedNoise
from privug.leakage.finite import Pairs
from privug.model.node import Array, Kind

SAME = 1e-12
"""How far apart locations may lie, relative to the largest, that differ by rounding only."""


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
        locations = _without_rounding(np.array([float(value) for value in pairs.outputs]))
        return cls(noise, locations[pairs.output], pairs.secret, pairs.probability, len(pairs.secrets))

    def aligned(self, other: "Mixture") -> "Mixture | None":
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
        """Return an output inside of each stretch, a whole number where the noise is one."""
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
