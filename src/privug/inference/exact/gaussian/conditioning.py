"""Normal quantities given values and a range of others: vectors of weights, projected one by one.

Every quantity is a constant plus a vector of weights on independent standard normal variables. Values are projected
away (Gram and Schmidt, each vector twice), so that no covariance matrix is ever formed and what is nearly determined
keeps its digits; one range is left to an integral over one dimension.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from privug.errors import ImpossibleObservation
from privug.inference.conditions import EVERYTHING, Range, Unreadable
from privug.inference.curve import Curve
from privug.inference.exact.gaussian.linear import Form
from privug.inference.exact.gaussian.truncation import log_mass, truncated
from privug.model.node import Array, Node

DETERMINED = 1e-13  # what is left of a unit vector that has been projected away, but for rounding
CLOSE = 1e-9  # how well a value must agree with what was known already, relative to the numbers it came from


@dataclass(frozen=True, eq=False)
class Normal:
    """A normal quantity: its mean and its weights on independent standard normal variables."""

    mean: float
    weights: Array

    @property
    def sd(self) -> float:
        """The standard deviation."""
        return length(self.weights)


def length(vector: Array) -> float:
    """Return the length of a vector whose squares may be too large or too small for a float."""
    largest = float(np.abs(vector).max(initial=0.0))
    if not largest > 0:
        return 0.0
    scaled = vector / largest
    return largest * math.sqrt(product(scaled, scaled))


def product(left: Array, right: Array) -> float:
    """Return the inner product of two vectors, summed pairwise: more accurate than BLAS, whose threads cost more."""
    return float(np.sum(left * right))


def aligned(forms: Sequence[Form], noise: Sequence[float] = ()) -> list[Normal]:
    """Return forms as vectors over the same variables; the last forms have noise of the given deviations on top."""
    starts: dict[Node, int] = {}
    total = 0
    for form in forms:
        for root, weight in form.weights.items():
            if root not in starts:
                starts[root] = total
                total += int(np.size(weight))
    normals = []
    for number, form in enumerate(forms):
        vector = np.zeros(total + len(noise))
        for root, weight in form.weights.items():
            if isinstance(weight, float):
                vector[starts[root]] = weight
            else:
                vector[starts[root] : starts[root] + np.size(weight)] = np.reshape(weight, -1)
        position = number - (len(forms) - len(noise))
        if position >= 0:
            vector[total + position] = noise[position]
        normals.append(Normal(form.constant, vector))
    return normals


class Conditioned:
    """What has been seen of some normal quantities, and what others are like given that."""

    def __init__(self) -> None:
        self._basis: list[Array] = []
        self._known: list[float] = []
        self._direction: Array | None = None
        self._ranges: tuple[Range, ...] = EVERYTHING
        self.log_density = 0.0

    @property
    def is_density(self) -> bool:
        """Whether a value was seen that has a density but no probability."""
        return bool(self._basis)

    @property
    def log_evidence(self) -> float:
        """The log of the density of the values times the probability of the range given them."""
        return self.log_density + float(log_mass(self._ranges, np.zeros(1), 1.0)[0])

    def _given(self, quantity: Normal) -> Normal:
        """Return a quantity given the values seen so far."""
        mean, left = quantity.mean, quantity.weights
        for _ in range(2):
            for axis, value in zip(self._basis, self._known, strict=True):
                share = product(axis, left)
                left = left - share * axis
                mean += share * value
        if length(left) <= DETERMINED * quantity.sd:
            left = np.zeros_like(left)
        return Normal(mean, left)

    def see(self, quantity: Normal, value: float) -> None:
        """Condition on the value of a quantity."""
        rest = self._given(quantity)
        spread = rest.sd
        if spread == 0:
            if abs(value - rest.mean) > CLOSE * max(abs(value), abs(quantity.mean), quantity.sd):
                raise ImpossibleObservation(
                    f"this observation is impossible: given the rest, the output is {rest.mean:g}, never {value:g}"
                )
            return
        place = (value - rest.mean) / spread
        self._basis.append(rest.weights / spread)
        self._known.append(place)
        self.log_density -= 0.5 * place**2 + math.log(spread) + 0.5 * math.log(2 * math.pi)

    def confine(self, quantity: Normal, ranges: Sequence[Range]) -> None:
        """Condition on ranges of a quantity, after all values; only one direction can be confined."""
        rest = self._given(quantity)
        spread = rest.sd
        if spread == 0:
            slack = CLOSE * max(abs(rest.mean), quantity.sd)
            if not any(low - slack <= rest.mean <= high + slack for low, high in ranges):
                raise ImpossibleObservation(
                    f"this observation is impossible: given the rest, the output is {rest.mean:g}"
                )
            return
        direction = rest.weights / spread
        scaled = [((low - rest.mean) / spread, (high - rest.mean) / spread) for low, high in ranges]
        if self._direction is None:
            self._direction = direction
        sign = math.copysign(1.0, product(direction, self._direction))
        if length(direction - sign * self._direction) > CLOSE:
            raise Unreadable("the observation gives ranges of two different quantities")
        if sign < 0:
            scaled = [(-high, -low) for low, high in scaled]
        pairs = [(max(a, c), min(b, d)) for a, b in self._ranges for c, d in scaled]
        self._ranges = tuple(sorted(pair for pair in pairs if pair[0] < pair[1]))
        if not self._ranges or self.log_evidence == -math.inf:
            raise ImpossibleObservation("this observation is impossible: the output never lies in that range")

    def curve(self, quantity: Normal) -> Curve:
        """Return the distribution of a quantity given all that was seen."""
        rest = self._given(quantity)
        spread = rest.sd
        if self._direction is None or spread == 0:
            return Curve.normal(rest.mean, spread)
        unit = rest.weights / spread
        correlation = product(unit, self._direction)
        independence = min(1.0, length(unit - correlation * self._direction))
        if abs(correlation) <= DETERMINED:
            correlation = 0.0
        return truncated(rest.mean, spread, correlation, independence, self._ranges)
