"""What was seen as a likelihood of one row's number, and what outputs follow from rows.

Observations are taken back to ranges or values of weighted sums over rows. Once the sums that are integers, or take few
values, are known (the key), every condition is a function of one weighted sum of the others: that one is cut where the
condition changes. Outputs are followed forward the same way. Tallied rows are the rest, which the number of the row at
hand shifts.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, combinations, islice, pairwise, product

import numpy as np

from privug.errors import PrivugError
from privug.inference.exact.rows.cells import Cell, CellCounts, MovingClass, Term
from privug.inference.exact.rows.regrouping import NotRows, Placeholder, placeholders_behind
from privug.inference.graph.affine import Addends, AffineForm, addends_of, dominators
from privug.inference.graph.conditions import (
    Range,
    Unreadable,
    Value,
    by_clauses,
    is_known,
    read,
    specialised,
    value_of,
    windows_of,
)
from privug.inference.measure.convolution import added
from privug.inference.measure.curve import Curve, NoSuchMoment
from privug.inference.measure.piecewise_map import PiecewiseMap, Unfollowed, effective_ends, half_line
from privug.inference.workload import spend
from privug.model.maybe import Maybe
from privug.model.node import Array, Kind, Node
from privug.model.operations import SampleFailure
from privug.model.plan import computed
from privug.model.variable import RandomVariable
from privug.observation.likelihood import CloseTo, Likelihood
from privug.program.traced.conditions import Checked

MOST_NARROWS = 200
EXACT_VALUE = 1e-13

Reach = Callable[[Array], Range]
Key = tuple[tuple[int, float], ...]
"""Some sums, by their positions, and their values."""


def affine(node: Node) -> AffineForm | None:
    """Return a node as a weighted sum of placeholders, if it is one."""
    found = None if node.shape or node.levels is not None else AffineForm.of(node, _addends)
    is_of_sums = found is not None and all(isinstance(one.operation, Placeholder) for one in found.weights)
    return found if is_of_sums else None


def _addends(node: Node) -> Addends | None:
    """Return what a number is the weighted sum of, whatever else was checked on the way."""
    return [(node.parents[0], 1.0)] if isinstance(node.operation, Checked) else addends_of(node)


def core_of(node: Node) -> tuple[Node, AffineForm]:
    """Return the weighted sum of placeholders that a quantity is a function of, nearest to it."""
    for narrow in chain([node], islice(dominators([node]), MOST_NARROWS)):
        found = affine(narrow)
        if found is not None:
            return narrow, found
    raise NotRows("several continuous quantities are put together to something that is no weighted sum of them", node)


@dataclass(frozen=True, eq=False)
class Constraint:
    """What is known of a weighted sum: it lies in one of some ranges, or has one of some values.

    Ranges are likely to some `chances`; values come with what their densities count for, and with the deviation of
    normal noise through which a value was seen.
    """

    constant: float
    weights: Array
    ranges: tuple[Range, ...] = ()
    chances: tuple[float, ...] = ()
    places: tuple[tuple[float, float], ...] = ()
    sd: float = 0.0

    @property
    def ends(self) -> Array:
        """The finite ends of its ranges, and its values."""
        ends = [end for part in self.ranges for end in part] + [place for place, _ in self.places]
        return np.array([end for end in ends if math.isfinite(end)])

    def scaled(self, factor: float) -> "Constraint":
        """Return the same as one on a multiple of the weighted sum."""
        ends = (sorted((factor * low, factor * high)) for low, high in self.ranges)
        ranges = tuple((low, high) for low, high in ends)
        places = tuple((factor * place, weight) for place, weight in self.places)
        return replace(
            self, constant=factor * self.constant, weights=factor * self.weights, ranges=ranges, places=places
        )


@dataclass(frozen=True, eq=False)
class Seen:
    """What an observation says, given the key: constraints on weighted sums, and a factor; zero rules it out."""

    factor: float = 1.0
    constraints: tuple[Constraint, ...] = ()


RULED_OUT = Seen(0.0)
CERTAIN = Seen()


def typed(node: Node, values: Array) -> Array:
    """Return values of a sum with the type that it has in the program."""
    return values if node.dtype.kind == "f" else np.rint(values).astype(node.dtype)


def _values(nodes: Sequence[Node], sums: Sequence[Node], totals: Array, discrete: Sequence[int]) -> list[Array] | None:
    """Return functions of known sums, a line of these for each vector; None if the program fails for some."""
    given = {sums[j]: typed(sums[j], totals[:, j]) for j in discrete}
    try:
        return computed(nodes, given, len(totals))
    except (SampleFailure, PrivugError):
        return None


class Preimage:
    """Takes an observation back to sums over rows: what depends on known sums alone at once, the rest by keys."""

    def __init__(self, likelihood: Likelihood, sums: Sequence[Node], known: Mapping[Node, object]) -> None:
        self._sums = list(sums)
        self.told = by_clauses(likelihood.about(specialised(likelihood.nodes, known)))
        self._known: dict[Key, tuple[Seen, list[tuple[float, ...]]]] = {}
        self._reaches: dict[tuple[float, ...], Range] = {}
        self._used: list[tuple[float, ...]] = []
        self._sided: dict[tuple[int, ...], tuple[Likelihood, Likelihood]] = {}

    def split(self, discrete: Sequence[int]) -> tuple[Likelihood, Likelihood]:
        """Return what is told about known sums alone, and the rest."""
        key = tuple(discrete)
        if key not in self._sided:
            known = {self._sums[j] for j in discrete}

            def is_settled(node: Node) -> bool:
                return known.issuperset(placeholders_behind([node]))

            self._sided[key] = self.told.where(is_settled), self.told.where(lambda node: not is_settled(node))
        return self._sided[key]

    def factors(self, totals: Array, discrete: Sequence[int]) -> Array:
        """Return what known sums, a line of them for each vector, say by themselves: how likely what was seen is."""
        if self.told.impossible is not None:
            return np.zeros(len(totals))
        told, _ = self.split(discrete)
        if not told.nodes or not len(totals):
            return np.ones(len(totals))
        found = _values(told.nodes, self._sums, totals, discrete)
        if found is None:
            raise NotRows("the program fails for some of the values that sums can take")
        arrays, result = iter(found), np.ones(len(totals))
        for _ in told.conditions:
            result = result * np.broadcast_to(next(arrays), len(totals))
        for _, value in told.points:
            result = result * (np.abs(next(arrays) - value) <= EXACT_VALUE * max(1.0, abs(value)))
        for values in arrays:
            result = result * np.exp(values)
        return result

    def at(self, key: Key, reach: Reach) -> Seen:
        """Return what else was seen, given the values of some sums by their positions."""
        known = self._known.get(key)
        if known is None or not all(self._covers(weights, reach) for weights in known[1]):
            self._used = []
            known = self._known[key] = self._pulled(key, reach), self._used
        return known[0]

    def _covers(self, weights: tuple[float, ...], reach: Reach) -> bool:
        """Say whether functions of a weighted sum were followed as far as it reaches."""
        low, high = reach(np.array(weights))
        return self._reaches[weights][0] <= low and high <= self._reaches[weights][1]

    def _pulled(self, key: Key, reach: Reach) -> Seen:
        _, rest = self.split([j for j, _ in key])
        told = by_clauses(rest.about(specialised(rest.nodes, {self._sums[j]: value for j, value in key})))
        factor, found = 1.0, list[Constraint]()
        for clause in told.conditions:
            if not is_known(clause):
                found.append(self._condition(clause, reach))
            elif not value_of(clause):
                return RULED_OUT
        for node, value in told.points:
            if not is_known(node):
                found.append(self._point(node, value, reach))
            elif abs(float(value_of(node)) - value) > EXACT_VALUE * max(1.0, abs(value)):
                return RULED_OUT
        for node in told.log_weights:
            if is_known(node):
                factor *= math.exp(float(value_of(node)))
            else:
                found += [self._noisy(one, reach) for one in _noisy_values(node)]
        return Seen(factor, tuple(found)) if factor > 0 else RULED_OUT

    def _constraint(self, found: AffineForm, **told: object) -> Constraint:
        return Constraint(found.constant, self.weights(found), **told)  # type: ignore[arg-type]

    def weights(self, found: AffineForm) -> Array:
        """Return the weights of all sums."""
        return np.array([found.weights.get(node, 0.0) for node in self._sums])

    def image(self, node: Node, core: Node, found: AffineForm, reach: Reach) -> PiecewiseMap:
        """Return a function of a weighted sum on its monotone pieces."""
        key = tuple(self.weights(found).tolist())
        low, high = reach(np.array(key))
        if key in self._reaches:
            low, high = min(low, self._reaches[key][0]), max(high, self._reaches[key][1])
        self._reaches[key] = low, high
        self._used.append(key)
        return PiecewiseMap.of(node, core, low + found.constant, high + found.constant)

    def _condition(self, clause: Node, reach: Reach) -> Constraint:
        close = clause.operation if isinstance(clause.operation, CloseTo) else None
        node = clause.parents[0] if close is not None else clause
        if close is not None and node.kind is Kind.DISCRETE and node.levels is None:
            node, close = _within(node, close.value, _slack(close)), None
        core, found = core_of(node)
        beyond = half_line(node, core) if close is None else None
        if beyond is not None and self._is_reached(beyond, found, reach):
            return self._constraint(found, ranges=(beyond,))
        try:
            image = self.image(node, core, found, reach)
        except Unfollowed as problem:
            return self._window(clause, problem)
        if close is None:
            return self._constraint(found, ranges=image.where(image.middles.astype(bool)))
        slack = _slack(close)
        if not image.is_discrete and node is core:
            return self._constraint(found, ranges=((close.value - slack, close.value + slack),))
        chosen = image.steps & (np.abs(image.middles - close.value) <= slack)
        return self._constraint(found, ranges=image.where(chosen))

    def _is_reached(self, ends: Range, found: AffineForm, reach: Reach) -> bool:
        """Say whether one of two ends lies within the reach of a weighted sum."""
        low, high = reach(self.weights(found))
        return any(low + found.constant < end < high + found.constant for end in ends)

    def _window(self, clause: Node, problem: Unfollowed) -> Constraint:
        """Read a condition as a range of one number that is a weighted sum."""
        windows = windows_of(clause) or []
        numbers = [affine(window.number) for window in windows]
        if len(windows) != 1 or numbers[0] is None:
            raise NotRows(f"the condition that was seen cannot be followed: {problem}", problem.node)
        return self._constraint(numbers[0], ranges=((windows[0].low, windows[0].high),))

    def _point(self, node: Node, value: float, reach: Reach) -> Constraint:
        core, found = core_of(node)
        if core is node:
            return self._constraint(found, places=((value, 1.0),))
        image = self.image(node, core, found, reach)
        alone = image.where(image.atom(value))
        return self._constraint(found, ranges=alone, places=tuple(image.branches(value)))

    def _noisy(self, told: Value, reach: Reach) -> Constraint:
        core, found = core_of(told.node)
        if core is told.node:
            return self._constraint(found, places=((told.value, 1.0),), sd=told.sd)
        image = self.image(told.node, core, found, reach)
        if not image.is_discrete:
            raise NotRows("the observation has noise on a function that is no step function", told.node)
        low, high = image.bounds
        away = (told.value - image.middles.astype(float)) / told.sd
        chances = np.exp(-0.5 * away**2) / (told.sd * math.sqrt(2 * math.pi))
        ranges = tuple(zip(low.tolist(), high.tolist(), strict=True))
        return self._constraint(found, ranges=ranges, chances=tuple(chances.tolist()))


def _slack(close: CloseTo) -> float:
    return EXACT_VALUE * max(1.0, abs(close.value)) if close.tolerance is None else close.tolerance


def _within(node: Node, value: float, slack: float) -> Node:
    """Return the condition that a number that takes steps is a value: no other step need be looked for."""
    number = RandomVariable(node)
    return ((number >= value - slack) & (number <= value + slack)).node


def _noisy_values(node: Node) -> list[Value]:
    try:
        return [told for told in read(Likelihood((), (node,), ())) if isinstance(told, Value)]
    except Unreadable as problem:
        raise NotRows(str(problem), node) from None


Label = tuple[object, ...]
AT_ONCE = 50  # vectors that are worth going through at once
MOVING = object()
"""Stands in a label for the part of an output that is not certain."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """An output, given the key: plain numbers or codes, and for the one part that moves what it is a function of."""

    label: Label
    weights: Array | None = None
    constant: float = 0.0
    images: tuple[tuple[int, PiecewiseMap | None], ...] = ()
    """The parts that move, by their places, each as a function of the weighted sum; None is the sum itself."""

    @property
    def terms(self) -> tuple[Term, ...]:
        """A secret that is certain, as quantities that a row is asked for."""
        if self.weights is not None:
            raise NotRows("the secret is a continuous function of the whole table")
        return tuple(Term(0.0, float(value)) for value in self.label)  # type: ignore[arg-type]

    def own(self, cell: Cell) -> "Own":
        """Return what the number of a row in a cell adds to the weighted sum."""
        assert self.weights is not None
        return Own(cell, self.weights)

    @cached_property
    def steps(self) -> tuple[Array, Array, list[Label]] | None:
        """The ranges of the weighted sum on which the output is certain, and what it is there, if it has no density."""
        if any(image is None or not image.is_discrete for _, image in self.images):
            return None
        edges = np.unique(np.concatenate([image.edges for _, image in self.images if image is not None]))
        low, high = edges[:-1].copy(), np.nextafter(edges[1:], -np.inf)
        middles = low / 2 + high / 2
        low[0], high[-1] = -np.inf, np.inf
        labels = []
        values = {place: image.values(middles).tolist() for place, image in self.images if image is not None}
        for position in range(len(middles)):
            filled = list(self.label)
            for place, several in values.items():
                filled[place] = several[position]
            labels.append(tuple(filled))
        return low, high, labels

    def density(self, law: Curve, y: Array, shift: Array) -> Array:
        """Return the density of values of the part that moves; the weighted sum is a quantity of a law plus a shift."""
        image = self.images[0][1]
        if image is None:
            return law.pdf(y - shift)
        total = np.zeros(np.broadcast_shapes(y.shape, shift.shape))
        for piece in np.flatnonzero(~image.steps):
            low, high = sorted(float(image.values(np.array([end]))[0]) for end in image.piece_ends(int(piece)))
            flat = y.reshape(-1)
            inside = (flat >= low) & (flat <= high)
            x, slopes = np.zeros(flat.shape), np.ones(flat.shape)
            x[inside] = image.inverse(int(piece), flat[inside])
            slopes[inside] = np.abs(image.slope(x[inside]))
            inside &= np.isfinite(x)
            part = law.pdf(np.where(inside, x, 0.0).reshape(y.shape) - shift)
            part /= slopes.reshape(y.shape)
            total += part if inside.all() else np.where(inside.reshape(y.shape), part, 0.0)
        return total


class Outcomes:
    """The outputs of a program for one key after the other: the values of the `discrete` sums."""

    def __init__(self, outputs: Sequence[Node], sums: Sequence[Node], discrete: Sequence[int], reach: Reach) -> None:
        self._outputs, self._sums, self._reach = list(outputs), list(sums), reach
        self.discrete = discrete
        self._known: dict[Key, Outcome] = {}

    def settle(self, totals: Array) -> None:
        """Find the outputs for sums, a line of them for each vector, at once if they depend on discrete ones alone."""
        known = {self._sums[j] for j in self.discrete}
        if len(totals) < AT_ONCE or not known.issuperset(placeholders_behind(self._outputs)):
            return
        arrays = _values(self._outputs, self._sums, totals, self.discrete)
        if arrays is None:
            return  # it fails for some vectors, which may be those that cannot be
        columns = [np.broadcast_to(array, len(totals)).tolist() for array in arrays]
        for line, label in zip(totals[:, list(self.discrete)].tolist(), zip(*columns, strict=True), strict=True):
            self._known[tuple(zip(self.discrete, line, strict=True))] = Outcome(label)

    def at(self, key: Key) -> Outcome:
        """Return the output, given the values of some sums by their positions."""
        if key not in self._known:
            self._known[key] = self._found({self._sums[j]: value for j, value in key})
        return self._known[key]

    def _found(self, values: Mapping[Node, float]) -> Outcome:
        nodes = [_present(node) for node in specialised(self._outputs, values)]
        label = [_plain(node) if isinstance(node, Node) and is_known(node) else node for node in nodes]
        moving = [place for place, node in enumerate(label) if isinstance(node, Node)]
        if not moving:
            return Outcome(tuple(label))
        cores = [core_of(label[place]) for place in moving]  # type: ignore[arg-type]
        found = cores[0][1]
        weights = np.array([found.weights.get(node, 0.0) for node in self._sums])
        images = []
        for place, (core, other) in zip(moving, cores, strict=True):
            if other != found:
                raise NotRows("several parts of the output depend on different sums over the same rows")
            node = label[place]
            assert isinstance(node, Node)
            ends = (end + found.constant for end in self._reach(weights))
            images.append((place, None if node is core else PiecewiseMap.of(node, core, *ends)))
            label[place] = MOVING
        if len(images) > 1 and any(image is None or not image.is_discrete for _, image in images):
            raise NotRows("several parts of the output have densities")
        return Outcome(tuple(label), weights, found.constant, tuple(images))


def _plain(node: Node) -> object:
    """Return the value of a constant as a plain number; what may be missing is a plain value already."""
    value = value_of(node)
    return value if node.dtype == object else value.item()


def _present(node: Node) -> object:
    """Return the number of an output that may be none, or what it is instead."""
    if not isinstance(node.operation, Maybe):
        return node
    there, value = node.parents
    if not is_known(there):
        raise NotRows("whether there is an output depends on a continuous quantity", node)
    return _present(value) if value_of(there) else node.operation.otherwise


MOST_KINKS = 4000
UNLIKELY = 1e-14  # the probability of a vector whose kinks do not matter
BLOCK = 1 << 20
COST_OF_LIKELIHOOD, COST_OF_NUMBER = 3e6, 700.0  # elementary operations
ATOM = 1e-11  # how near an atom an exact value must be, relative to the numbers that were added
MANY = 20  # groups of vectors above which those are left out that do not matter
NEGLIGIBLE = 1e-22  # what all groups that are left out may be worth, relative to those that are not
LOOKS = np.array([0.01, 0.25, 0.5, 0.75, 0.99])  # quantiles of a row's number

BODY = np.array([0.01, 0.99])
NARROW = 0.3  # how wide the rest may be, beside what the row adds, to be pointed at
MOST_MARKS = 256
MOST_PARTS = 32
PANELS_OF_PEAK = 4.0
STEPS = np.array([-20.0, -8.0, -4.0, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 20.0])


@dataclass(frozen=True, eq=False)
class Group:
    """Vectors of a tally with one key and one number of rows in each class: what they add, and how likely they are."""

    key: Key
    counts: tuple[int, ...]
    flats: Array
    probabilities: Array


def groups_of(
    tally: CellCounts, flats: Array, discrete: Sequence[int], factors: Array | None = None, keys: bool = True
) -> Iterator[Group]:
    """Put vectors of a tally into groups, with further flat numbers added to their sums.

    Where known sums say by themselves how likely what was seen is, those are the `factors` of vectors. Unless they are
    to be told apart by their `keys`, all vectors are one group.
    """
    total, probabilities = tally.flats + flats, tally.probabilities
    if factors is not None:
        there = factors > 0
        total, probabilities = total[there], (probabilities * factors)[there]
    else:
        there = np.ones(len(total), bool)
    if not keys:
        yield Group((), (), total, probabilities)
        return
    tallied = tally.counts[there]
    labels = np.concatenate([np.round(total[:, list(discrete)], 9), tallied], axis=1)
    if not labels.shape[1]:
        labels = np.zeros((len(total), 1))
    distinct, codes = np.unique(labels, axis=0, return_inverse=True)
    order = np.argsort(codes.reshape(-1), kind="stable")
    bounds = np.searchsorted(codes.reshape(-1)[order], np.arange(len(distinct) + 1))
    for start, stop in pairwise(bounds):
        some = order[start:stop]
        key = tuple((j, float(total[some[0], j])) for j in discrete)
        counts = tuple(int(k) for k in tallied[some[0]])
        yield Group(key, counts, total[some], probabilities[some])


@dataclass(frozen=True, eq=False)
class Factor:
    """Constraints on one random quantity: a law, and for each constraint what it is shifted and scaled by."""

    law: Curve
    constraints: tuple[Constraint, ...]
    ratios: tuple[float, ...]
    atomic: bool = False
    """Whether a value that was seen counts with the probability that it has, and not with its density."""

    @property
    def placed(self) -> tuple[Constraint, float] | None:
        """The constraint that asks for a value, with its ratio; a value seen through noise is none."""
        pairs = zip(self.constraints, self.ratios, strict=True)
        return next(((c, ratio) for c, ratio in pairs if c.places and not c.sd), None)

    def likelihood(self, shifts: Sequence[Array]) -> Array:
        """Return the probability or density of the constraints; `shifts` are what is added to each quantity."""
        placed = [(c, r, s) for c, r, s in zip(self.constraints, self.ratios, shifts, strict=True) if c.places]
        if placed:
            return self._of_values(placed[0], shifts)
        total = np.zeros(shifts[0].shape)
        options = [tuple(zip(c.ranges, c.chances or (1.0,) * len(c.ranges), strict=True)) for c in self.constraints]
        for chosen in product(*options):
            low, high = np.full(total.shape, -np.inf), np.full(total.shape, np.inf)
            chance = 1.0
            for ((start, stop), weight), ratio, shift in zip(chosen, self.ratios, shifts, strict=True):
                one, other = (start - shift) / ratio, (stop - shift) / ratio
                low = np.maximum(low, one if ratio > 0 else other)
                high = np.minimum(high, other if ratio > 0 else one)
                chance *= weight
            there = low <= high
            total += chance * np.where(there, self.law.mass(low, np.maximum(low, high)), 0.0)
        return total

    def _of_values(self, placed: tuple[Constraint, float, Array], shifts: Sequence[Array]) -> Array:
        """Return the density or the probability of a value, where all other constraints hold for it."""
        own, ratio, shift = placed
        total = np.zeros(shift.shape)
        if self.atomic and own.ranges:  # a step of the function that was seen
            if len(self.constraints) > 1:
                raise NotRows("a value with a probability of its own was seen together with something else")
            ends = [np.sort([(low - shift) / ratio, (high - shift) / ratio], axis=0) for low, high in own.ranges]
            total += sum(self.law.mass(low, high) for low, high in ends)
        points = Curve((), self.law.atoms, self.law.masses)
        for place, weight in own.places:
            x = (place - shift) / ratio
            near = ATOM * (1 + np.abs(x) + np.abs(shift / ratio))
            density = points.mass(x - near, x + near) if self.atomic else weight * self.law.pdf(x) / abs(ratio)
            for other, scale, moved in zip(self.constraints, self.ratios, shifts, strict=True):
                if other is not own:
                    if other.places:
                        raise NotRows("two values were seen of one random quantity")
                    held = [(low <= scale * x + moved) & (scale * x + moved <= high) for low, high in other.ranges]
                    density = density * np.logical_or.reduce([np.zeros(x.shape, bool), *held])
            total += density
        return total

    @cached_property
    def scaled(self) -> list[Constraint]:
        """The constraints, each of them as one on the same random quantity."""
        return [c.scaled(1 / ratio) for c, ratio in zip(self.constraints, self.ratios, strict=True)]

    @cached_property
    def _bodies(self) -> Array:
        """Where parts of the law lie, but for their tails."""
        return np.array([part.quantile(BODY) for _, part in self.law.parts[:MOST_PARTS]])

    @cached_property
    def narrowest(self) -> float:
        """How wide the narrowest peak of the law is."""
        widths = np.diff(self.law.edges)
        return float(min(np.diff(self._bodies).min(), PANELS_OF_PEAK * widths[widths > 0].min()))

    @cached_property
    def marks(self) -> Array:
        """Points between which the law is followed, wherever it has something."""
        edges = self.law.edges[:: len(self.law.edges) // MOST_MARKS + 1]
        around = self._bodies.mean(axis=1)[:, np.newaxis] + np.diff(self._bodies) * STEPS
        return np.unique(np.concatenate([self.points, edges, self.law.edges[-1:], around.reshape(-1)]))

    @property
    def points(self) -> Array:
        """Where the law is not smooth."""
        breaks = self.law.breaks[np.isfinite(self.law.breaks)] if self.law.parts else np.empty(0)
        return np.concatenate([breaks, self.law.atoms])


def factors_of(tally: CellCounts, seen: Seen, counts: Sequence[int]) -> list[Factor]:
    """Put constraints on the same random quantity together; quantities of different factors are independent."""
    scales = [
        np.array([np.dot(c.weights, one.direction) * bool(k) for one, k in zip(tally.classes, counts, strict=True)])
        for c in seen.constraints
    ]
    found: list[Factor] = []
    left = list(range(len(scales)))
    while left:
        first = left.pop(0)
        own = scales[first]
        mine, ratios = [first], [1.0]
        for other in list(left):
            ratio = _ratio(scales[other], own)
            if ratio is not None:
                mine.append(other)
                ratios.append(ratio)
                left.remove(other)
            elif np.any((own != 0) & (scales[other] != 0)):
                raise NotRows("what was seen are two sums over the same rows that are not proportional")
        constraints = tuple(seen.constraints[k] for k in mine)
        law = tally.law(constraints[0].weights, counts)
        noise = [c.sd for c in constraints if c.sd]
        if noise and len(constraints) > 1:
            raise NotRows("a noisy value was seen together with something else")
        if noise:
            law = added(law, Curve.normal(0.0, noise[0]))
        found.append(Factor(law, constraints, tuple(ratios)))
    return found


def _ratio(scale: Array, own: Array) -> float | None:
    """Return by what one direction is a multiple of another; two that are nothing are no multiples."""
    if not own.any() or not scale.any():
        return None
    place = int(np.argmax(np.abs(own)))
    ratio = float(scale[place] / own[place])
    return ratio if ratio and np.allclose(scale, ratio * own, rtol=1e-11, atol=0.0) else None


class RowLikelihood:
    """The likelihood of what was seen, given the number of the row that one cell belongs to."""

    def __init__(
        self,
        tally: CellCounts,
        cell: Cell,
        preimage: Preimage,
        discrete: Sequence[int],
        reach: Reach,
        *,
        by_key: bool = False,
    ) -> None:
        spend(COST_OF_LIKELIHOOD)
        self._tally = tally
        self._cell = cell
        self._weighted = bool(preimage.told.log_weights)
        self._parts: list[tuple[Group, Seen, list[Factor]]] = []
        factors = preimage.factors(tally.flats + cell.flats, discrete)
        keys = by_key or bool(preimage.split(discrete)[1].nodes)  # more was seen than known sums can tell
        groups = list(groups_of(tally, cell.flats, discrete, factors, keys))
        if len(groups) > MANY and not self._weighted and not preimage.told.points:
            groups.sort(key=lambda group: -float(group.probabilities.sum()))
            left = np.cumsum([float(group.probabilities.sum()) for group in reversed(groups)])[::-1]
        else:
            left = np.full(len(groups), np.inf)
        found: float | None = None
        for group, rest in zip(groups, left, strict=True):
            if rest <= NEGLIGIBLE:
                found = sum(self._worth(*part) for part in self._parts) if found is None else found
                if rest <= NEGLIGIBLE * found:
                    break
            seen = preimage.at(group.key, reach) if keys else CERTAIN
            if seen.factor > 0:
                told = (replace(one, atomic=self._is_atom(group, one)) for one in factors_of(tally, seen, group.counts))
                self._parts.append((group, seen, list(told)))

    @cached_property
    def _looks(self) -> Array:
        """Some numbers of the row."""
        return np.zeros(1) if self._cell.curve is None else self._cell.curve.quantiles(LOOKS)

    def _worth(self, group: Group, seen: Seen, factors: Sequence[Factor]) -> float:
        """Return about how likely a group of vectors is together with what was seen, if that has a probability."""
        given = self._given(group.flats, factors, self._looks)
        return seen.factor * float((group.probabilities @ given).mean())

    def error(self, share: float) -> float:
        """Return a bound on the error of a probability or density of so much."""
        laws = (one.law.error_of(share) for _, _, factors in self._parts for one in factors)
        return self._tally.lost + max(laws, default=0.0)

    @property
    def density(self) -> int:
        """How many densities the likelihood is a product of; noise counts as one, whatever was seen through it."""
        noisy = any(c.sd or c.chances for _, seen, _ in self._parts for c in seen.constraints)
        return _order(self._parts[0]) + (self._weighted or noisy) if self._parts else 0

    def by_order(self) -> "Iterator[RowLikelihood]":
        """Yield the likelihood of groups in which equally many of the values seen have a density and no probability.

        Beside a group of a lower order, the others weigh nothing.
        """
        for order in sorted(set(map(_order, self._parts))):
            one = copy(self)
            one._parts = [part for part in self._parts if _order(part) == order]
            yield one

    @cached_property
    def constant(self) -> float | None:
        """The likelihood, if it does not depend on the row's number."""
        depends = any(
            not self._own(constraint).is_flat for _, seen, _ in self._parts for constraint in seen.constraints
        )
        return None if depends else float(self(np.zeros(1))[0])

    def _own(self, constraint: Constraint) -> "Own":
        return Own(self._cell, constraint.weights)

    def __call__(self, s: Array) -> Array:
        total = np.zeros(len(s))
        for group, seen, factors in self._parts:
            step = max(1, BLOCK // max(1, len(s)))
            for start in range(0, len(group.flats), step):
                some = slice(start, start + step)
                total += seen.factor * group.probabilities[some] @ self._given(group.flats[some], factors, s)
        return total

    def by_group(self) -> Iterator[tuple[Group, float]]:
        """Yield groups of vectors with their probability together with what was seen, where no row is left aside."""
        for group, seen, factors in self._parts:
            weights = self._given(group.flats, factors, np.zeros(1))[:, 0]
            yield group, seen.factor * float(group.probabilities @ weights)

    def _given(self, flats: Array, factors: Sequence[Factor], s: Array) -> Array:
        spend(COST_OF_NUMBER * len(flats) * len(s) * len(factors))
        likelihood = np.ones((len(flats), len(s)))
        for factor in factors:
            shifts = [
                (c.constant + flats @ c.weights)[:, np.newaxis] + self._own(c).at(s)[np.newaxis, :]
                for c in factor.constraints
            ]
            likelihood *= factor.likelihood(shifts)
        return likelihood

    def kinks(self) -> Array:
        """Return the numbers of the row at which the likelihood is not smooth, but for some that hardly matter."""
        found: list[Array] = [np.empty(0)]
        for group, _, factors in self._parts:
            likely = group.flats[group.probabilities > UNLIKELY]
            for factor in factors:
                for c, ratio in zip(factor.constraints, factor.ratios, strict=True):
                    own = self._own(c)
                    if own.is_flat or not len(likely):
                        continue
                    moved = np.subtract.outer(c.ends, c.constant + likely @ c.weights).reshape(-1)
                    points = factor.marks if self._is_narrow(factor, own, ratio) else factor.points
                    found.append(own.solved(np.subtract.outer(moved, ratio * points).reshape(-1))[0])
                found += [self._meeting(likely, one, other) for one, other in combinations(factor.scaled, 2)]
        points = np.unique(np.concatenate(found))
        points = points[np.isfinite(points)]
        return np.asarray(points[:: len(points) // MOST_KINKS + 1])

    def _meeting(self, flats: Array, one: Constraint, other: Constraint) -> Array:
        """Return the numbers of the row at which an end of one constraint meets an end of another on the same sum."""
        weights = one.weights - other.weights
        own, starts = Own(self._cell, weights), one.constant - other.constant + flats @ weights
        if own.is_flat:
            return np.empty(0)
        ends = np.subtract.outer(one.ends, other.ends).reshape(-1)
        return own.solved(np.subtract.outer(ends, starts).reshape(-1))[0]

    def _is_narrow(self, factor: Factor, own: "Own", ratio: float) -> bool:
        """Say whether the rest is so narrow beside what the row adds that quadrature might miss it."""
        curve = self._cell.curve
        if not factor.law.parts or curve is None or not curve.parts:
            return False
        low, high = own.at(curve.quantiles(BODY))
        return bool(abs(ratio) * factor.narrowest < NARROW * abs(high - low))

    def crossings(self) -> Iterator[tuple[float, float]]:
        """Yield numbers of the row that lead to a seen value all by themselves, with the densities that they give."""
        for group, seen, factors in self._parts:
            crossing = [factor for factor in factors if self._crosses(factor)]
            if not crossing:
                continue
            if len(crossing) > 1 or len(crossing[0].constraints) > 1:
                raise NotRows("a value that the secret alone determines was seen together with something else")
            constraint, law = crossing[0].constraints[0], crossing[0].law
            others = [factor for factor in factors if factor is not crossing[0]]
            starts = constraint.constant + group.flats @ constraint.weights
            for (place, weight), (atom, mass) in product(constraint.places, zip(law.atoms, law.masses, strict=True)):
                x, steep = self._own(constraint).solved(place - starts - atom)
                for k, (number, slope) in enumerate(zip(x, steep, strict=True)):
                    rest = float(self._given(group.flats[k : k + 1], others, x[k : k + 1])[0, 0])
                    chance = group.probabilities[k] * rest
                    yield float(number), float(seen.factor * chance * weight * mass / slope)

    def _crosses(self, factor: Factor) -> bool:
        """Say whether the row's own number may be all that leads to a value that was seen."""
        if factor.placed is None or factor.atomic or not len(factor.law.atoms):
            return False
        return not self._own(factor.placed[0]).is_flat

    def _is_atom(self, group: Group, factor: Factor) -> bool:
        """Say whether a value that was seen has a probability of its own."""
        if factor.placed is None:
            return False
        c, ratio = factor.placed
        own = self._own(c)
        starts = c.constant + group.flats @ c.weights
        if any(np.any(self._mass(factor.law, starts, own, ratio, part) > 0) for part in c.ranges):
            return True
        if not own.is_flat or not len(factor.law.atoms):
            return False
        reached = np.add.outer(starts + own.at(np.zeros(1)), ratio * factor.law.atoms)
        away = np.abs(reached[..., np.newaxis] - [place for place, _ in c.places])
        return bool(np.any(away <= ATOM * (1 + np.abs(starts).max())))

    def _mass(self, law: Curve, starts: Array, own: "Own", ratio: float, part: tuple[float, float]) -> Array:
        """Return how likely a range of a weighted sum is, for some numbers of the row."""
        shift = starts[:, np.newaxis] + own.at(self._looks)[np.newaxis, :]
        low, high = np.sort([(part[0] - shift) / ratio, (part[1] - shift) / ratio], axis=0)
        return np.asarray(law.mass(low, high))


def _order(part: tuple[Group, Seen, list[Factor]]) -> int:
    """Return how many of the values seen have a density and no probability."""
    return sum(factor.placed is not None and not factor.atomic for factor in part[2])


@dataclass(frozen=True, eq=False)
class Own:
    """What the row's own number adds to a weighted sum."""

    cell: Cell
    weights: Array

    @cached_property
    def _terms(self) -> list[tuple[float, Term]]:
        return [(float(self.weights[j]), self.cell.terms[j]) for j in self.cell.moving if self.weights[j]]

    @cached_property
    def is_flat(self) -> bool:
        """Whether the row's number does not matter."""
        return not self._terms or (all(t.image is None for _, t in self._terms) and self._slope == 0)

    @property
    def _slope(self) -> float:
        return sum(weight * term.slope for weight, term in self._terms)

    def at(self, s: Array) -> Array:
        """Return what is added at some numbers, besides what is flat."""
        return sum((weight * term.at(s) for weight, term in self._terms), np.zeros(len(s)))

    def solved(self, y: Array) -> tuple[Array, Array]:
        """Return the numbers that add some values, and how steeply."""
        if len(self._terms) == 1:
            weight, term = self._terms[0]
            x, slope = term.solved(y / weight)
            return x, slope * abs(weight)
        start = sum(weight * term.start for weight, term in self._terms)
        if any(term.image is not None for _, term in self._terms):
            raise NotRows("the secret enters what was seen in several ways")
        return Term(self._slope, start).solved(y)


WIDEST = 38.0  # deviations from the mean within which functions of sums are followed


class Reaching:
    """Between what numbers weighted sums lie, but for a negligible probability."""

    def __init__(self, tally: CellCounts, cells: Sequence[Cell]) -> None:
        self._tally = tally
        self._cells = cells
        self._known: dict[tuple[float, ...], tuple[float, float]] = {}
        self._sizes: dict[MovingClass, tuple[Array, float, float]] = {}

    def reach(self, weights: Array) -> tuple[float, float]:
        """Return the ends of a weighted sum of everything that rows add, the row at hand included."""
        key = tuple(weights.tolist())
        if key not in self._known:
            self._known[key] = self._found(weights)
        return self._known[key]

    def _found(self, weights: Array) -> tuple[float, float]:
        flats = self._tally.flats @ weights
        low, high = float(flats.min()), float(flats.max())
        most = self._tally.counts.max(axis=0) if len(self._tally.classes) else []
        # Whether the row at hand may add a number that has a probability, and not only a density.
        attained = any(c.curve is None or len(c.curve.atoms) or Own(c, weights).is_flat for c in self._cells)
        for one, count in zip(self._tally.classes, most, strict=True):
            scale = float(np.dot(weights, one.direction))
            if not scale or not count:
                continue
            ends, mean, deviation = self._size(one)
            ends, mean, deviation = np.sort(scale * ends), scale * mean, abs(scale) * deviation
            wide = WIDEST * deviation * math.sqrt(count) + max(abs(ends[0] - mean), abs(ends[1] - mean))
            fewest = int(self._tally.counts[:, list(self._tally.classes).index(one)].min())
            means = sorted((fewest * mean, count * mean))
            low += max(min(fewest * ends[0], count * ends[0]), means[0] - wide)
            high += min(max(fewest * ends[1], count * ends[1]), means[1] + wide)
            attained &= fewest == 0 or len(one.powers.sum(1).atoms) > 0
        own = np.concatenate([_own_ends(cell, weights) for cell in self._cells]) if self._cells else np.zeros(1)
        low, high = low + float(own.min()), high + float(own.max())
        slack = (1e-9 * (high - low) or 1.0) if attained else 0.0
        return low - slack, high + slack

    def _size(self, one: MovingClass) -> tuple[Array, float, float]:
        """Return the ends of what a row of a class adds, its mean and its deviation."""
        if one not in self._sizes:
            curve = one.powers.sum(1)
            try:
                self._sizes[one] = np.array(effective_ends(curve)), curve.mean(), curve.std()
            except NoSuchMoment:
                self._sizes[one] = np.array(effective_ends(curve)), 0.0, math.inf
        return self._sizes[one]


def _own_ends(cell: Cell, weights: Array) -> Array:
    """Return the ends of what a row in a cell adds to a weighted sum."""
    own, flat = Own(cell, weights), float(cell.flats @ weights)
    if own.is_flat or cell.curve is None:
        return np.array([flat])
    return flat + own.at(np.array(effective_ends(cell.curve)))
