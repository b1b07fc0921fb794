"""Observations pulled back: what was seen of outputs, as ranges or values of weighted sums over rows.

Once the sums that are integers, or take few values, are known (the key), every condition is a function of one
weighted sum of the others: that one is cut where the condition changes. Outputs are followed forward the same way.
"""

import heapq
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice

import numpy as np

from privug.errors import PrivugError
from privug.inference.exact.rows.cells import Term
from privug.inference.exact.rows.regrouping import NotRows, Placeholder, placeholders_behind
from privug.inference.graph.affine import Addends, AffineForm, addends_of
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
from privug.inference.measure.curve import Curve
from privug.inference.measure.piecewise_map import Image, Unfollowed
from privug.model.graph import random_nodes
from privug.model.maybe import Maybe
from privug.model.node import Array, Kind, Node, ancestors
from privug.model.operations import SampleFailure
from privug.model.plan import computed
from privug.model.variable import RandomVariable
from privug.observation.likelihood import CloseTo, Likelihood
from privug.program.traced.conditions import Checked


def dominators(targets: Sequence[Node]) -> Iterator[Node]:
    """Yield the single numbers of which all targets are functions, nearest first.

    Going back from the targets, a node is one of them if nothing else is left to go back through when it is met.
    """
    order = ancestors(targets)
    places = {node: place for place, node in enumerate(order)}
    random = random_nodes(order)
    pending = {places[target] for target in targets if target in random}
    heap = [-place for place in pending]
    heapq.heapify(heap)
    while heap:
        place = -heapq.heappop(heap)
        pending.discard(place)
        node = order[place]
        if not heap and not node.shape:
            yield node
        if node.operation.random:
            return  # nothing further back has this randomness behind it
        for parent in node.parents:
            if parent in random and places[parent] not in pending:
                pending.add(places[parent])
                heapq.heappush(heap, -places[parent])


MOST_NARROWS = 200
EXACT_VALUE = 1e-13

Reach = Callable[[Array], Range]


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
        with np.errstate(all="ignore"):
            return computed(nodes, given, len(totals))
    except (SampleFailure, PrivugError):
        return None


class Pullback:
    """Takes an observation back to sums over rows: what depends on known sums alone at once, the rest by keys."""

    def __init__(self, likelihood: Likelihood, sums: Sequence[Node], known: Mapping[Node, object]) -> None:
        self._sums = list(sums)
        self.told = by_clauses(likelihood.about(specialised(likelihood.nodes, known)))
        self._known: dict[tuple[tuple[int, float], ...], tuple[Seen, list[tuple[float, ...]]]] = {}
        self._reaches: dict[tuple[float, ...], Range] = {}
        self._used: list[tuple[float, ...]] = []
        self._sided: dict[tuple[int, ...], tuple[Likelihood, Likelihood]] = {}

    def _split(self, discrete: Sequence[int]) -> tuple[Likelihood, Likelihood]:
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
        told, _ = self._split(discrete)
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

    def needs_keys(self, discrete: Sequence[int]) -> bool:
        """Say whether more was seen than known sums can tell."""
        return bool(self._split(discrete)[1].nodes)

    def at(self, key: tuple[tuple[int, float], ...], reach: Reach) -> Seen:
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

    def _pulled(self, key: tuple[tuple[int, float], ...], reach: Reach) -> Seen:
        _, rest = self._split([j for j, _ in key])
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

    def image(self, node: Node, core: Node, found: AffineForm, reach: Reach) -> Image:
        """Return a function of a weighted sum on its monotone pieces."""
        key = tuple(self.weights(found).tolist())
        low, high = reach(np.array(key))
        if key in self._reaches:
            low, high = min(low, self._reaches[key][0]), max(high, self._reaches[key][1])
        self._reaches[key] = low, high
        self._used.append(key)
        return Image.of(node, core, low + found.constant, high + found.constant)

    def _condition(self, clause: Node, reach: Reach) -> Constraint:
        close = clause.operation if isinstance(clause.operation, CloseTo) else None
        node = clause.parents[0] if close is not None else clause
        if close is not None and node.kind is Kind.DISCRETE and node.levels is None:
            node, close = _within(node, close.value, _slack(close)), None
        core, found = core_of(node)
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
MANY = 50  # vectors that are worth going through at once
MOVING = object()
"""Stands in a label for the part of an output that is not certain."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """An output, given the key: plain numbers or codes, and for the one part that moves what it is a function of."""

    label: Label
    weights: Array | None = None
    constant: float = 0.0
    images: tuple[tuple[int, Image | None], ...] = ()
    """The parts that move, by their places, each as a function of the weighted sum; None is the sum itself."""

    @property
    def terms(self) -> tuple[Term, ...]:
        """A secret that is certain, as quantities that a row is asked for."""
        if self.weights is not None:
            raise NotRows("the secret is a continuous function of the whole table")
        return tuple(Term(0.0, float(value)) for value in self.label)  # type: ignore[arg-type]

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
            x = np.full(flat.shape, np.nan)
            slopes = np.ones(flat.shape)
            x[inside] = image.inverse(int(piece), flat[inside])
            slopes[inside] = np.abs(image.slope(x[inside]))
            there = np.nan_to_num(x, nan=np.inf).reshape(y.shape)
            with np.errstate(invalid="ignore"):
                part = np.where(np.isfinite(there), law.pdf(np.where(np.isfinite(there), there, 0.0) - shift), 0.0)
            total = total + part / slopes.reshape(y.shape)
        return total


class Outcomes:
    """The outputs of a program for one key after the other: the values of the `discrete` sums."""

    def __init__(self, outputs: Sequence[Node], sums: Sequence[Node], discrete: Sequence[int], reach: Reach) -> None:
        self._outputs, self._sums, self._reach = list(outputs), list(sums), reach
        self.discrete = discrete
        self._known: dict[tuple[tuple[int, float], ...], Outcome] = {}

    def settle(self, totals: Array) -> None:
        """Find the outputs for sums, a line of them for each vector, at once if they depend on discrete ones alone."""
        known = {self._sums[j] for j in self.discrete}
        if len(totals) < MANY or not known.issuperset(placeholders_behind(self._outputs)):
            return
        arrays = _values(self._outputs, self._sums, totals, self.discrete)
        if arrays is None:
            return  # it fails for some vectors, which may be those that cannot be
        columns = [np.broadcast_to(array, len(totals)).tolist() for array in arrays]
        for line, label in zip(totals[:, list(self.discrete)].tolist(), zip(*columns, strict=True), strict=True):
            self._known[tuple(zip(self.discrete, line, strict=True))] = Outcome(label)

    def at(self, key: tuple[tuple[int, float], ...]) -> Outcome:
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
            images.append((place, None if node is core else self._image(node, core, found, weights)))
            label[place] = MOVING
        if len(images) > 1 and any(image is None or not image.is_discrete for _, image in images):
            raise NotRows("several parts of the output have densities")
        return Outcome(tuple(label), weights, found.constant, tuple(images))

    def _image(self, node: Node, core: Node, found: AffineForm, weights: Array) -> Image:
        low, high = self._reach(weights)
        try:
            return Image.of(node, core, low + found.constant, high + found.constant)
        except Unfollowed as problem:
            raise NotRows(str(problem), problem.node) from None


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
