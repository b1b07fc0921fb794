"""The density of what a path of a program returns, and where it exceeds another one by the largest factor.

Each number that is released is affine in one draw of its own, so it tells that draw. Draws that were compared with it
are then known to be at least or at most a number: what is left is a range of the one draw behind those comparisons.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from privug.mechanisms.paths.comparisons import Conditions, Forest, Uncomparable, affine_in_draws, lines_of
from privug.mechanisms.paths.log_laws import Known, LogLaw
from privug.model.node import Array, Node

FURTHEST = 2.0**20  # scales from the middle within which densities are compared
POINTS = 33  # between two kinks
ROUNDS = 6  # of looking closer around the largest ratio
DOUBLINGS = np.arange(24)
STILL = 1e-8  # a logarithm that changes by less while the distance doubles has come to its limit

Decisions = Sequence[tuple[Node, bool]]


@dataclass(frozen=True, eq=False)
class Number:
    """A released number: `slope` times a draw plus `start`."""

    law: Known
    slope: float
    start: float

    def log_density(self, y: Array) -> Array:
        """Return the logarithm of the density."""
        return np.asarray(self.law.log_density((y - self.start) / self.slope) - np.log(abs(self.slope)))

    @property
    def places(self) -> Array:
        """The numbers at which the density is not smooth, and how far out it can be looked at."""
        reach = FURTHEST * self.law.scale
        middle = self.law.bends[0]
        far = [max(self.law.far[0], middle - reach), min(self.law.far[1], middle + reach)]
        kinks = self.law.kinks[np.isfinite(self.law.kinks)]
        return np.asarray(self.slope * np.concatenate([far, kinks]) + self.start)


@dataclass(frozen=True, eq=False)
class Front:
    """A draw that is at most (or at least) a line in each of some released numbers, and what else is known of it."""

    numbers: tuple[int, ...]
    lines: tuple[tuple[float, float], ...]
    least: bool
    law: LogLaw

    def log_mass(self, edge: Array) -> Array:
        """Return the logarithm of the probability, given the lowest (or highest) of the lines."""
        infinite = np.full(len(edge), np.inf)
        return self.law.log_mass(edge, infinite) if self.least else self.law.log_mass(-infinite, edge)


@dataclass(frozen=True, eq=False)
class PathDensity:
    """The density of the numbers that are released on a path, times the probability of the path."""

    constant: float
    numbers: tuple[Number, ...]
    fronts: tuple[Front, ...]

    @classmethod
    def of(cls, conditions: Conditions, decisions: Decisions, outputs: Sequence[Node]) -> "PathDensity":
        """Take a path's released numbers and conditions apart."""
        forest = Forest.of(conditions, decisions)
        draws, numbers = [], []
        for node in outputs:
            number = affine_in_draws(node)
            if number is None or len(number.weights) != 1:
                raise Uncomparable("a released number is no line in a single draw")
            ((draw, slope),) = number.weights.items()
            law = forest.laws.setdefault(draw, conditions.law(draw))
            if draw in draws or not isinstance(law, Known):
                raise Uncomparable("released numbers share a draw, or are discrete")
            draws.append(draw)
            numbers.append(Number(law, slope, number.constant))
        fronts, constant = _fronts(forest, draws, numbers)
        return cls(-np.inf if forest.impossible else constant, tuple(numbers), fronts)


def _fronts(forest: Forest, draws: Sequence[Node], numbers: Sequence[Number]) -> tuple[tuple[Front, ...], float]:
    """Return the draws that released ones were compared with, and the log probability of all that is apart."""
    compared: dict[Node, list[tuple[int, float, float, bool]]] = {}
    for place, (draw, number) in enumerate(zip(draws, numbers, strict=True)):
        for other, signs in forest.edges.pop(draw, {}).items():
            if other in draws:
                raise Uncomparable("released numbers are compared with each other")
            del forest.edges[other][draw]
            for line in (line for sign in signs for line in lines_of(sign, other, draw)):
                slope = line.slope / number.slope
                compared.setdefault(other, []).append((place, slope, line.start - slope * number.start, line.least))
    fronts, constant = [], 0.0
    for tree in forest.components():
        inside = [draw for draw in tree if draw in compared]
        if not inside:
            constant += forest.log_total(tree)
            continue
        found = compared[inside[0]]
        if len(inside) > 1 or len({least for *_, least in found}) > 1 or len({one[0] for one in found}) < len(found):
            raise Uncomparable("released numbers bound other draws from several sides")
        ends = np.concatenate([slope * numbers[place].places + start for place, slope, start, _ in found])
        low, high = float(ends.min()), float(ends.max())
        law = forest.eliminated(inside[0], (low - (high - low), high + (high - low)))
        places, lines = tuple(one[0] for one in found), tuple((one[1], one[2]) for one in found)
        fronts.append(Front(places, lines, found[0][3], law))
    return tuple(fronts), constant


def largest_log_ratio(one: PathDensity, other: PathDensity) -> float:
    """Return the logarithm of the supremum of the ratio of two densities of the same numbers."""
    if np.isneginf(one.constant):
        return -np.inf
    if np.isneginf(other.constant):
        return np.inf
    alone = set(range(len(one.numbers)))
    total = one.constant - other.constant
    if len(one.fronts) != len(other.fronts):
        raise Uncomparable("released numbers bound other draws for one input only")
    for front, its in zip(one.fronts, other.fronts, strict=True):
        if front.numbers != its.numbers or front.least is not its.least or not np.allclose(front.lines, its.lines):
            raise Uncomparable("released numbers bound other draws in other ways for each input")
        total += _largest(_OfFront(one, other, front, its))
        alone -= set(front.numbers)
    return total + sum(_largest(_OfNumber(one.numbers[place], other.numbers[place])) for place in alone)


@dataclass(frozen=True, eq=False)
class _OfNumber:
    """The ratio of the densities of a number that nothing was compared with."""

    one: Number
    other: Number

    def places(self) -> Array:
        return np.concatenate([self.one.places, self.other.places])

    def __call__(self, y: Array) -> Array:
        return _ratio(self.one.log_density(y), self.other.log_density(y))


@dataclass(frozen=True, eq=False)
class _OfFront:
    """The largest ratio of densities of numbers, the lowest (or highest) of whose lines is given."""

    one: PathDensity
    other: PathDensity
    front: Front
    its: Front
    _known: dict[float, float] = field(default_factory=dict)

    def places(self) -> Array:
        found = [front.law.kinks[np.isfinite(front.law.kinks)] for front in (self.front, self.its)]
        for place, (slope, start) in zip(self.front.numbers, self.front.lines, strict=True):
            found += [slope * side.numbers[place].places + start for side in (self.one, self.other)]
        return np.concatenate(found)

    def __call__(self, edge: Array) -> Array:
        """Return it for edges in order: one number is at its edge, each of the others anywhere on the inner side."""
        at_edge, inside = [], []
        for place, (slope, start) in zip(self.front.numbers, self.front.lines, strict=True):
            y = (edge - start) / slope
            ratio = _ratio(*(side.numbers[place].log_density(y) for side in (self.one, self.other)))
            at_edge.append(ratio)
            best = np.maximum.accumulate(ratio if self.front.least else ratio[::-1])
            inside.append(best if self.front.least else best[::-1])
        ways = [_total([own, *inside[:j], *inside[j + 1 :]]) for j, own in enumerate(at_edge)]
        return _total([self._masses(edge), np.max(ways, axis=0)])

    def _masses(self, edge: Array) -> Array:
        """Return the ratio of the probabilities of the draw behind; each edge is asked for more than once."""
        new = np.array([place for place in edge.tolist() if place not in self._known])
        if len(new):
            self._known.update(zip(new, _ratio(self.front.log_mass(new), self.its.log_mass(new)), strict=True))
        return np.array([self._known[place] for place in edge.tolist()])


def _ratio(one: Array, other: Array) -> Array:
    """Return the difference of two logarithms: minus infinity where the first number is zero."""
    with np.errstate(invalid="ignore"):
        return np.where(np.isneginf(one), -np.inf, one - other)


def _total(parts: Sequence[Array]) -> Array:
    """Return the sum of logarithms of ratios: what is impossible in one of them is impossible."""
    with np.errstate(invalid="ignore"):
        return np.where(np.any(np.isneginf(parts), axis=0), -np.inf, np.sum(parts, axis=0))


def _largest(function: "_OfNumber | _OfFront") -> float:
    """Return the supremum of a function of one number that is smooth between places, as far as they reach."""
    places = np.unique(function.places())
    inner = [np.linspace(low, high, POINTS) for low, high in pairwise(places)]
    # The outermost places are far away: towards them the distance from the others doubles.
    outwards = [
        start + (end - start) / 2.0**DOUBLINGS for start, end in ((places[1], places[0]), (places[-2], places[-1]))
    ]
    points = np.unique(np.concatenate([*inner, *outwards]))
    for _ in range(ROUNDS):
        values = function(points)
        best = int(np.argmax(values))
        low, high = points[max(0, best - 1)], points[min(len(points) - 1, best + 1)]
        finer = np.union1d(points, np.linspace(low, high, POINTS))
        if np.isinf(values[best]) or len(finer) == len(points):
            break
        points = finer
    value = float(np.max(values))
    for ends in outwards:
        if np.isfinite(value) and _grows(function, ends[:3], value):
            return np.inf
    return value


def _grows(function: Callable[[Array], Array], outermost: Array, value: float) -> bool:
    """Say whether a function grows beyond all bounds at its end; one that comes to a limit slowly is refused."""
    order = np.argsort(outermost)
    last, before, earlier = function(outermost[order])[np.argsort(order)]
    if not last >= value - STILL or last - before <= STILL:
        return False
    if last - before >= 1.5 * (before - earlier):
        return True
    raise Uncomparable("a ratio of densities comes to its limit slowly")
