"""The largest number over all values of a continuous output, between proven bounds, and how likely outputs exceed one.

On stretches of outputs a number lies between bounds that close in on each other as the stretches are halved. Stretches
whose upper bound is below what was already found elsewhere are dropped, the others are halved.
"""

import math
from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from privug.model.node import Array
from privug.policy.levels import Levels
from privug.policy.mixtures import Mixture, between

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


class Surface(Protocol):
    """A number that depends on the output: its bounds on stretches of outputs, and what it is at single ones."""

    @property
    def mixture(self) -> Mixture:
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
    """Return the largest number over all outputs where noise and what it is added to are whole numbers.

    Outputs up to a place are looked at one by one, and all beyond it together. None if they are no whole numbers.
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


def _best_of(surface: Surface, points: Array) -> tuple[float, float] | None:
    points = points[np.isfinite(points)]
    values = surface.at(points).value if len(points) else np.empty(0)
    there = ~np.isnan(values)
    if not there.any():
        return None
    place = int(np.argmax(values[there]))
    return float(points[there][place]), float(values[there][place])
