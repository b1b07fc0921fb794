"""How likely it is that independent draws compare as was seen, and the density of what a path returns.

A condition compares numbers that are affine in the draws, one or two of them. Draws are the nodes of a graph, whose
edges are comparisons of two. If there is no circle, they are eliminated from the outside: given the draw at its only
edge, a leaf lies in a range, whose probability is a weight of that draw. A threshold with noise, compared with many
noisy numbers, is a star: one integral over the threshold's noise of a product of distribution functions.

Each number that is released is affine in one draw of its own, so it tells that draw. Draws that were compared with it
are then known to be at least or at most a number: what is left is a range of the one draw behind those comparisons.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from privug.inference.graph.affine import AffineForm, addends_of
from privug.mechanisms.paths.log_laws import Known, ListedLogLaw, LogFunction, LogLaw, law_of
from privug.model.node import Array, Node, ancestors
from privug.model.plan import Plan
from privug.model.traits import Role
from privug.prior.family import Draw

NUDGE = 1e-12  # relative: numbers as near as that are the same one, up to rounding
MOST_DEPTH = 2  # draws between the root and a leaf: each one more takes some dozens of times as long
POSITIVE, NEGATIVE, NOT_ZERO = frozenset({1}), frozenset({-1}), frozenset({-1, 1})
SIGNS = frozenset({-1, 0, 1})


class Uncomparable(Exception):
    """Draws are put together in a way that is not followed; the message says how, as the end of a sentence."""


def affine_in_draws(node: Node) -> AffineForm | None:
    """Return a single number as a weighted sum of draws; None if it is something else."""
    found = None if node.shape or node.levels is not None else AffineForm.of(node, addends_of)
    return found if found is not None and all(isinstance(one.operation, Draw) for one in found.weights) else None


@dataclass(frozen=True, eq=False)
class Sign:
    """That a weighted sum of draws has one of some signs."""

    number: AffineForm
    signs: frozenset[int]


@dataclass(frozen=True, eq=False)
class Among:
    """That a discrete draw has one of some of its values."""

    draw: Node
    there: Array


@dataclass(frozen=True, eq=False)
class Line:
    """That one draw is at least, or at most, a line in another one."""

    slope: float
    start: float
    least: bool
    strict: bool

    def at(self, y: Array, listed: bool) -> Array:
        """Return the line at some numbers; where values are listed, a little beside it."""
        values = self.slope * y + self.start
        if not listed:
            return values
        inwards = self.least is self.strict
        return values + (1 if inwards else -1) * NUDGE * np.maximum(1.0, np.abs(values))


def lines_of(sign: Sign, draw: Node, other: Node) -> list[Line]:
    """Return what a sign of a sum of two draws says about one of them, given the other."""
    slope = sign.number.weights[draw]
    line = -sign.number.weights[other] / slope, -sign.number.constant / slope
    signs = sign.signs if slope > 0 else frozenset(-one for one in sign.signs)
    found = []
    if -1 not in signs:
        found.append(Line(*line, least=True, strict=0 not in signs))
    if 1 not in signs:
        found.append(Line(*line, least=False, strict=0 not in signs))
    return found


class Conditions:
    """What decisions of a program say about its draws; each condition is read once."""

    def __init__(self) -> None:
        self._read: dict[tuple[Node, bool], Sign | Among] = {}
        self._laws: dict[Node, LogLaw] = {}

    def law(self, draw: Node) -> LogLaw:
        """Return the distribution of a draw."""
        if draw not in self._laws:
            law = law_of(draw)
            if law is None:
                raise Uncomparable("a draw has a distribution, or parameters, that comparisons are not followed for")
            self._laws[draw] = law
        return self._laws[draw]

    def read(self, node: Node, truth: bool) -> Sign | Among:
        """Return what it says that a condition holds, or does not."""
        key = node, truth
        if key not in self._read:
            self._read[key] = self._among(node, truth) or self._sign(node, truth)
        return self._read[key]

    def _among(self, node: Node, truth: bool) -> Among | None:
        draws = [other for other in ancestors([node]) if other.is_random]
        if len(draws) != 1 or not isinstance(law := self.law(draws[0]), ListedLogLaw):
            return None
        rng, values = np.random.Generator(np.random.SFC64(0)), law.values.astype(draws[0].dtype)
        found = Plan([node], draws).run(len(values), rng, {draws[0]: values})[0]
        return Among(draws[0], np.broadcast_to(found.astype(bool) == truth, len(values)))

    def _sign(self, node: Node, truth: bool) -> Sign:
        traits = node.operation.traits
        if traits.role is Role.COMPARISON and traits.signs:
            left, right = (affine_in_draws(parent) for parent in node.parents)
            number, signs = None if left is None or right is None else left.minus(right), traits.signs
        else:
            number, signs = affine_in_draws(node), NOT_ZERO
        if number is None:
            raise Uncomparable("a condition is no comparison of sums of draws")
        signs = signs if truth else SIGNS - signs
        if any(not self.law(draw).listed for draw in number.weights):
            signs = signs - {0} or frozenset({0})  # it is zero with probability zero
        return Sign(number, signs)

    def possible(self, decisions: Sequence[tuple[Node, bool]]) -> bool:
        """Return whether some decisions can be taken together, as far as those on the same sum of draws say."""
        ranges: dict[Any, tuple[float, float]] = {}
        values: dict[Node, Array] = {}
        for node, truth in decisions:
            said = self.read(node, truth)
            if isinstance(said, Among):
                values[said.draw] = values.get(said.draw, True) & said.there
                if not values[said.draw].any():
                    return False
                continue
            if not said.number.weights:
                if np.sign(said.number.constant) not in said.signs:
                    return False
                continue
            form, low, high = _range(said)
            known = ranges.get(form, (-np.inf, np.inf))
            ranges[form] = max(low, known[0]), min(high, known[1])
            if ranges[form][0] > ranges[form][1]:
                return False
        return True


def _range(sign: Sign) -> tuple[Any, float, float]:
    """Return a sum of draws in a form that its multiples share, and the range in which it lies."""
    (first, unit), *_ = sign.number.weights.items()
    form = frozenset((draw, slope / unit) for draw, slope in sign.number.weights.items()), first
    level = -sign.number.constant / unit
    signs = sign.signs if unit > 0 else frozenset(-one for one in sign.signs)
    return form, -np.inf if -1 in signs else level, np.inf if 1 in signs else level


@dataclass(eq=False)
class Forest:
    """Draws that were compared with each other, and what is known of each alone."""

    laws: dict[Node, LogLaw] = field(default_factory=dict)
    edges: dict[Node, dict[Node, list[Sign]]] = field(default_factory=dict)
    impossible: bool = False

    @classmethod
    def of(cls, conditions: Conditions, decisions: Iterable[tuple[Node, bool]]) -> "Forest":
        """Put together what decisions say."""
        forest = cls()
        for node, truth in decisions:
            said = conditions.read(node, truth)
            draws = [said.draw] if isinstance(said, Among) else list(said.number.weights)
            for draw in draws:
                forest.laws.setdefault(draw, conditions.law(draw))
                forest.edges.setdefault(draw, {})
        for node, truth in decisions:
            forest._take(conditions.read(node, truth), conditions)
        return forest

    def _take(self, said: Sign | Among, conditions: Conditions) -> None:
        if isinstance(said, Among):
            law = self.laws[said.draw]
            everything = conditions.law(said.draw)
            assert isinstance(law, ListedLogLaw)
            assert isinstance(everything, ListedLogLaw)
            self.laws[said.draw] = law.chosen(np.isin(law.values, everything.values[said.there]))
            return
        draws = list(said.number.weights)
        if not draws:
            self.impossible |= int(np.sign(said.number.constant)) not in said.signs
        elif said.signs == {0} and not all(self.laws[draw].listed for draw in draws):
            self.impossible = True
        elif said.signs == NOT_ZERO:
            if all(self.laws[draw].listed for draw in draws):
                raise Uncomparable("discrete draws are told from each other")
        elif len(draws) == 1:
            _, low, high = _range(said)
            self.laws[draws[0]] = self.laws[draws[0]].restricted(low, high)
        elif len(draws) == 2:
            for draw, other in (draws, draws[::-1]):
                self.edges[draw].setdefault(other, []).append(said)
        else:
            raise Uncomparable("a condition compares more than two draws")

    def components(self) -> list[list[Node]]:
        """Return the draws that depend on each other, tree by tree."""
        found: list[list[Node]] = []
        seen: set[Node] = set()
        for draw in self.edges:
            if draw in seen:
                continue
            tree = [draw]
            for other in tree:
                tree.extend(next_ for next_ in self.edges[other] if next_ not in tree)
            seen.update(tree)
            if sum(len(self.edges[other]) for other in tree) != 2 * (len(tree) - 1):
                raise Uncomparable("draws are compared with each other in a circle")
            found.append(tree)
        return found

    def centre(self, tree: Sequence[Node]) -> Node:
        """Return the draw in the middle of a tree, or one of the two: a listed one, if there is."""
        left = {draw: len(self.edges[draw]) for draw in tree}
        while len(left) > 2:
            outer = [draw for draw, degree in left.items() if degree == 1]
            for draw in outer:
                del left[draw]
            for draw in left:
                left[draw] = sum(other in left for other in self.edges[draw])
        return max(left, key=lambda draw: (self.laws[draw].listed, len(self.edges[draw])))

    def eliminated(self, root: Node, cover: tuple[float, ...] = ()) -> LogLaw:
        """Return the measure of a draw, times the probability that those behind it compare as they do."""
        return self._law(root, None, 0, cover)

    def log_probability(self) -> float:
        """Return the logarithm of the probability of all that is known."""
        if self.impossible:
            return -np.inf
        return sum(self.log_total(tree) for tree in self.components())

    def log_total(self, tree: Sequence[Node]) -> float:
        """Return the logarithm of the probability of what is known of one tree."""
        centre = self.centre(tree)
        low, high = self._reach(centre, None)
        if low > high + NUDGE * max(1.0, abs(high)) or (low >= high and not self.laws[centre].listed):
            return -np.inf
        total = self.eliminated(centre).log_total
        if total < max(self.laws[draw].trusted for draw in tree):
            raise Uncomparable("a probability is too small to be told from zero")
        return total

    def _reach(self, draw: Node, parent: Node | None) -> tuple[float, float]:
        """Return the range outside of which a draw is impossible, by those behind it."""
        low, high = self.laws[draw].ends
        for child in (other for other in self.edges[draw] if other is not parent):
            least, most = self._reach(child, draw)
            if least > most:
                return np.inf, -np.inf
            for line in (line for sign in self.edges[child][draw] for line in lines_of(sign, child, draw)):
                edge = ((most if line.least else least) - line.start) / line.slope
                if line.least is (line.slope > 0):
                    high = min(high, edge)
                else:
                    low = max(low, edge)
        return low, high

    def _law(self, draw: Node, parent: Node | None, depth: int, cover: tuple[float, ...] = ()) -> LogLaw:
        children = [other for other in self.edges[draw] if other is not parent]
        if not children and not cover:
            return self.laws[draw]
        if depth > MOST_DEPTH:
            raise Uncomparable("draws are compared with each other in a long chain")
        messages = [self._message(child, draw, depth + 1) for child in children]

        def log_weight(y: Array) -> Array:
            return np.asarray(sum((message(y) for message, _ in messages), start=np.zeros(len(y))))

        return self.laws[draw].weighted(log_weight, np.concatenate([[], *(kinks for _, kinks in messages)]), cover)

    def _message(self, child: Node, parent: Node, depth: int) -> tuple[LogFunction, Array]:
        """Return the probability that a draw compares with another as it does, given that one; and its kinks."""
        law = self._law(child, parent, depth)
        lines = [line for sign in self.edges[child][parent] for line in lines_of(sign, child, parent)]

        def log_mass(y: Array) -> Array:
            low, high = np.full(len(y), -np.inf), np.full(len(y), np.inf)
            for line in lines:
                if line.least:
                    low = np.maximum(low, line.at(y, law.listed))
                else:
                    high = np.minimum(high, line.at(y, law.listed))
            return law.log_mass(low, high)

        kinks = [(law.kinks - line.start) / line.slope for line in lines]
        for one in lines:
            others = [line for line in lines if line.slope != one.slope]
            kinks += [np.array([(line.start - one.start) / (one.slope - line.slope)]) for line in others]
        places = np.concatenate(kinks)
        return log_mass, places[np.isfinite(places)]


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
    """Return whether a function grows beyond all bounds at its end; one that comes to a limit slowly is refused."""
    order = np.argsort(outermost)
    last, before, earlier = function(outermost[order])[np.argsort(order)]
    if not last >= value - STILL or last - before <= STILL:
        return False
    if last - before >= 1.5 * (before - earlier):
        return True
    raise Uncomparable("a ratio of densities comes to its limit slowly")
