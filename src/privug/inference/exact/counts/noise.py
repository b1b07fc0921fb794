"""Continuous noise on sums of integers: how likely what was seen of a noisy sum is, given the sum.

What was seen is pulled back to the noisy sum once; the distribution of the noise then gives a factor for each integer.
"""

import math
from collections.abc import Sequence

import numpy as np

from privug.inference.curve import Curve
from privug.inference.exact.rows.cells import Partition, Row
from privug.inference.exact.rows.pullback import Constraint, Pullback
from privug.inference.exact.rows.reductions import NotRows
from privug.model.node import Array, Node
from privug.observation.likelihood import Likelihood

FAR = np.array([1e-15, 1 - 1e-15])  # quantiles of noise between which functions of noisy sums are followed
WIDER = 10.0  # times as far, for noise that is rarely met

Ranges = list[tuple[float, float]]


class NoisySum:
    """A sum of integers to which one row adds noise, and what was seen of it; values have a density."""

    def __init__(self, place: int, node: Node, row: Row, sums: int, likelihood: Likelihood) -> None:
        self._node, self._likelihood = node, likelihood
        cells = list(Partition(sums, row, (), {}).cells())
        laws = [Curve.point(0.0) if one.curve is None else one.terms[place].law(one.curve) for one in cells]
        self._noise = laws[0] if len(laws) == 1 else Curve.mixture([one.weight for one in cells], laws)
        self.has_density = False

    def log_factor(self, values: Array) -> Array:
        """Return the logarithm of how likely what was seen is for some values of the sum."""
        low, high = self._noise.quantiles(FAR)
        wide = WIDER * (high - low)
        ends = float(values.min() + low - wide), float(values.max() + high + wide)
        pullback = Pullback(self._likelihood, [self._node], {})
        seen = pullback.at(
            (), lambda weights: (min(weights[0] * end for end in ends), max(weights[0] * end for end in ends))
        )
        ranges, places = _together(seen.constraints)
        factor = np.zeros(len(values))
        if places is None:
            factor += sum(self._noise.mass(low - values, high - values) for low, high in ranges)
        else:
            factor += sum(weight * self._noise.pdf(place - values) for place, weight in places)
        self.has_density = places is not None
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.maximum(seen.factor * factor, 0.0)))


def _together(constraints: Sequence[Constraint]) -> tuple[Ranges, Ranges | None]:
    """Return the ranges in which a number lies by all that is known of it, or its values with their weights."""
    ranges: Ranges = [(-math.inf, math.inf)]
    places: Ranges | None = None
    for one in constraints:
        scale, start = float(one.weights[0]), one.constant
        if one.sd or one.chances or (places is not None and one.places):
            raise NotRows("what was seen of a noisy sum is more than a value or ranges")
        if one.places and not one.ranges:
            places = [((place - start) / scale, weight / abs(scale)) for place, weight in one.places]
            continue
        own = [sorted(((low - start) / scale, (high - start) / scale)) for low, high in one.ranges]
        both = [(max(a, low), min(b, high)) for a, b in ranges for low, high in own]
        ranges = [(a, b) for a, b in both if a <= b]
    if places is not None:
        places = [(place, weight) for place, weight in places if any(a <= place <= b for a, b in ranges)]
    return ranges, places
