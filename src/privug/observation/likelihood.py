"""What an observation says about outputs: which samples agree, how much they weigh, how far away they are."""

import dataclasses
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privug.arguments import is_truth, shown
from privug.errors import ObservationError
from privug.model.integers import apart
from privug.model.maybe import is_maybe
from privug.model.merging import UNTRACED, WRITTEN, is_short
from privug.model.node import Array, ConstantValue, Context, Kind, Node, Operation
from privug.model.operations import ArrayFunction, Elementwise, Index, SampleFailure, Stack, aligned, constant
from privug.model.plan import Plan
from privug.model.plates import Fold
from privug.model.sparse import SparseDict
from privug.model.traits import Connective, Role
from privug.model.variable import RandomVariable
from privug.prior.choice import constant_value
from privug.program.outputs import ABSENT, NoValue, settled
from privug.program.traced.conditions import Checked

# Outputs of arithmetic that cannot be followed equal an observed float but for rounding if they differ by less than
# this, relative to the largest of the batch: terms that cancel leave errors of their own size.
ROUNDING = 2 * UNTRACED + WRITTEN


@dataclass(frozen=True)
class Likelihood:
    """The probability of the observation given each sample.

    `conditions` hold or not; `log_weights` are logs of densities; `points` are numbers that took
    an exact value, for an engine to decide whether that value has a probability or a density;
    `impossible` says why no sample can agree. `distances` say of some conditions how far a sample is from
    meeting them, where the user told.
    """

    conditions: tuple[Node, ...] = ()
    log_weights: tuple[Node, ...] = ()
    points: tuple[tuple[Node, float], ...] = ()
    impossible: str | None = None
    distances: tuple[tuple[Node, Node], ...] = ()

    @property
    def nodes(self) -> list[Node]:
        """What it is a function of: conditions, numbers that took an exact value, log weights."""
        return [*self.conditions, *(node for node, _ in self.points), *self.log_weights]

    def about(self, nodes: Sequence[Node]) -> "Likelihood":
        """Return the same about other nodes, in the order of `nodes`; there may be more conditions or fewer."""
        first = len(nodes) - len(self.points) - len(self.log_weights)
        points = tuple(zip(nodes[first:], (value for _, value in self.points), strict=False))
        log_weights = tuple(nodes[first + len(points) :])
        return dataclasses.replace(
            self, conditions=tuple(nodes[:first]), log_weights=log_weights, points=points, distances=()
        )

    def where(self, chosen: Callable[[Node], bool]) -> "Likelihood":
        """Return what is said about some of the nodes."""
        points = tuple((node, value) for node, value in self.points if chosen(node))
        conditions, log_weights = (tuple(filter(chosen, nodes)) for nodes in (self.conditions, self.log_weights))
        return dataclasses.replace(self, conditions=conditions, log_weights=log_weights, points=points)

    def __and__(self, other: "Likelihood") -> "Likelihood":
        return Likelihood(
            self.conditions + other.conditions,
            self.log_weights + other.log_weights,
            self.points + other.points,
            self.impossible or other.impossible,
            self.distances + other.distances,
        )


@dataclass(frozen=True, slots=True)
class CloseTo(Operation):
    """Whether numbers equal a value but for rounding: up to a tolerance, or if none is known by their sizes."""

    value: float
    tolerance: float | None = None

    def evaluate(self, arguments: Sequence[Array], context: Context) -> Array:
        numbers = arguments[0]
        if self.tolerance is not None:
            return np.abs(numbers - self.value) <= self.tolerance
        scale = float(np.abs(numbers[np.isfinite(numbers)]).max(initial=0.0))
        near = np.abs(numbers - self.value) <= ROUNDING * max(abs(self.value), scale)
        distinct, places = np.unique(numbers[near], return_inverse=True)
        same = [_is_same(number, self.value, scale, ROUNDING) for number in distinct.tolist()]
        near[near] = np.array(same, bool)[places]
        return np.asarray(near)


@dataclass(frozen=True, slots=True)
class ObjectBetween(Operation):
    """Whether the outputs of a program called sample by sample are numbers between two others.

    Floats may lie a little outside, by `slack` below and above; integers are compared as such.
    """

    low: float
    high: float
    slack: tuple[float, float] = (0.0, 0.0)

    def evaluate(self, arguments: Sequence[Array], context: Context) -> Array:
        return np.fromiter(map(self._holds, arguments[0]), bool, len(arguments[0]))

    def _holds(self, value: Any) -> bool:
        if isinstance(value, float):
            return self.low - self.slack[0] <= value <= self.high + self.slack[1]
        return isinstance(value, int) and self.low <= value <= self.high


@dataclass(frozen=True, slots=True)
class AsNumbers(Operation):
    """The outputs of a program called sample by sample, as numbers; `otherwise` where there is none."""

    otherwise: float = np.nan

    def evaluate(self, arguments: Sequence[Array], context: Context) -> Array:
        return np.array([value if isinstance(value, int | float) else self.otherwise for value in arguments[0]], float)


@dataclass(frozen=True, slots=True)
class OutputComponent(Operation):
    """One part of a structured output of a program called sample by sample; some outputs may lack it."""

    key: Any

    def evaluate(self, arguments: Sequence[Array], context: Context) -> Array:
        parts = np.empty(len(arguments[0]), object)
        for position, value in enumerate(arguments[0]):
            parts[position] = part_of(value, self.key)
        return parts


def part_of(value: Any, key: Any) -> Any:
    """Return a part of a plain value, or the mark of one that is not there."""
    try:
        return settled(value[key])
    except (LookupError, TypeError, ValueError, AttributeError):
        return ABSENT


@dataclass(frozen=True, slots=True)
class HasParts(Operation):
    """Whether the outputs of a program called sample by sample are sequences of a given length."""

    length: int

    def evaluate(self, arguments: Sequence[Array], context: Context) -> Array:
        fitting = (isinstance(v, list | tuple | np.ndarray) and len(v) == self.length for v in arguments[0])
        return np.fromiter(fitting, bool, len(arguments[0]))


@dataclass(frozen=True, slots=True)
class ObjectEquals(Operation):
    """Whether the outputs of a program called sample by sample equal a value, floats but for rounding."""

    value: Any
    rounding: float = ROUNDING

    def evaluate(self, arguments: Sequence[Array], context: Context) -> Array:
        sizes = [abs(value) for value in arguments[0] if isinstance(value, float) and np.isfinite(value)]
        scale = max(sizes, default=0.0)
        return np.fromiter(
            (equal_values(value, self.value, scale, self.rounding) for value in arguments[0]), bool, len(arguments[0])
        )


@dataclass(frozen=True, slots=True)
class PredicateAnswers(Operation):
    """The answers of a predicate called sample by sample, as booleans; false where the program raised."""

    what: str

    def evaluate(self, arguments: Sequence[Array], context: Context) -> Array:
        for position, value in enumerate(arguments[0]):
            if not is_truth(value) and not isinstance(value, NoValue):
                cause = ObservationError(f"it must return True or False, not {shown(value)}")
                raise SampleFailure(position, cause, self.what)
        return np.array([not isinstance(value, NoValue) and bool(value) for value in arguments[0]], bool)


def equal_values(left: Any, right: Any, scale: float = 0.0, rounding: float = ROUNDING) -> bool:
    """Compare two plain values; floats up to rounding, lists, tuples, dicts and dataclasses part by part, in order."""
    if dataclasses.is_dataclass(left) and type(left) is type(right):
        return equal_values(vars(left), vars(right), scale, rounding)
    left, right = (side.tolist() if isinstance(side, np.ndarray) else side for side in (left, right))
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        pairs = zip(left, right, strict=False)
        return len(left) == len(right) and all(equal_values(a, b, scale, rounding) for a, b in pairs)
    if isinstance(left, dict) and isinstance(right, dict):
        return list(left) == list(right) and all(equal_values(left[key], right[key], scale, rounding) for key in left)
    if isinstance(left, float) or isinstance(right, float):
        if not (isinstance(left, int | float) and isinstance(right, int | float)):
            return False
        return _is_same(left, right, scale, rounding)
    same = left == right
    return bool(np.all(same)) if hasattr(same, "__len__") else bool(same)


def _is_same(left: float, right: float, scale: float, rounding: float) -> bool:
    """Return whether two numbers differ by rounding at most, relative to a scale at which terms may have cancelled.

    Two numbers of few digits are what they are: beside one as large as 1e14 all others lie close together.
    """
    apart, own = abs(left - right), max(abs(left), abs(right))
    if left == right or apart <= rounding * own < math.inf:
        return True
    return apart <= rounding * max(own, scale) < math.inf and not (is_short(left) and is_short(right))


def is_opaque(value: Any) -> bool:
    """Return whether a value is the output of a program called sample by sample."""
    return isinstance(value, RandomVariable) and value.node.dtype == np.dtype(object)


def may_be_missing(value: Any) -> bool:
    """Return whether a value is a number for some samples, and none for the others."""
    return isinstance(value, RandomVariable) and is_maybe(value.node)


def of_present(output: RandomVariable, seen: Callable[[Any], Likelihood]) -> Likelihood:
    """Return what was seen of a number that may be missing: it is there, and what was seen of any number."""
    present, value = output.node.parents
    return Likelihood(conditions=(present,)) & seen(RandomVariable(value))


def of_absent(output: RandomVariable) -> Likelihood:
    """Return what is known where a number that may be missing was not there."""
    return Likelihood(conditions=((~RandomVariable(output.node.parents[0])).node,))


def of_lacking(output: Any) -> Likelihood:
    """Return what is known where a part of the output was not there at all."""
    if isinstance(output, SparseDict):
        lacking = Likelihood()
        for part in output.values():
            lacking = lacking & of_lacking(part)
        return lacking
    if may_be_missing(output) and output.node.operation.otherwise == ABSENT:
        return of_absent(output)
    return Likelihood(impossible="the output has a part that was not observed")


def of_order(output: Mapping[Any, Any], seen: list[Any]) -> Likelihood:
    """Return what it says that the entries of a dict were seen in this order."""
    if isinstance(output, SparseDict) and output.places:
        places = dict(zip(output, output.places, strict=True))
        return Likelihood(conditions=tuple((places[key] == place).node for place, key in enumerate(seen)))
    always = [key for key in output if key in seen]
    if always == seen:
        return Likelihood()
    return Likelihood(
        impossible=f"the output has its entries in the order {shown(always)}, never {shown(seen)}: write them in that "
        "order, or a dict of observations, {name: pv.equals(...), ...}, which sees no order"
    )


def component(value: RandomVariable, key: Any) -> RandomVariable:
    """Return one part of an opaque output."""
    return RandomVariable(Node(OutputComponent(key), (value.node,), (), np.dtype(object)))


def numbers(value: Any, otherwise: float = np.nan) -> RandomVariable:
    """Return an output leaf as random numbers, or refuse; `otherwise` stands where single outputs are none."""
    if is_opaque(value):
        return RandomVariable(Node(AsNumbers(otherwise), (value.node,), (), np.dtype(np.float64), kind=Kind.MIXED))
    if isinstance(value, RandomVariable) and value.node.levels is None:
        return value
    what = "text or another category" if isinstance(value, RandomVariable) else shown(value)
    raise ObservationError(f"this observation needs a number, but the output is {what}; use pv.equals or pv.such_that")


_FLOAT = np.dtype(np.float64)


def difference(value: Any, wanted: Any) -> float:
    """Return how far a plain value is from another: numbers as far as they differ, others by the cells that differ.

    >>> difference(3.0, 5)
    2.0
    >>> difference([("Ann", 3), ("Bob", 4)], [("Ann", 3), ("Cy", 5)])
    2.0
    """
    if _is_number(value) and _is_number(wanted):
        return float(abs(value - wanted))
    return _cells_apart(value, wanted)


def _cells_apart(value: Any, wanted: Any) -> float:
    """Count the cells that differ; of measured numbers one counts less, the closer they are."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = vars(value)
    if dataclasses.is_dataclass(wanted) and not isinstance(wanted, type):
        wanted = vars(wanted)
    value, wanted = (part.tolist() if isinstance(part, np.ndarray) else part for part in (value, wanted))
    if _is_number(value) and _is_number(wanted) and isinstance(wanted, float):
        apart = abs(value - wanted)
        return float(apart / (1 + apart)) if np.isfinite(apart) else float(value != wanted)
    if isinstance(value, dict) and isinstance(wanted, dict):
        both = value.keys() & wanted.keys()
        single = [own[key] for own in (value, wanted) for key in own.keys() - both]
        turns = [[key for key in own if key in both] for own in (value, wanted)]
        moved = float(sum(map(bool, map(operator.ne, *turns))))
        return moved + sum(map(_cells, single)) + sum(_cells_apart(value[key], wanted[key]) for key in both)
    if isinstance(value, list | tuple) and isinstance(wanted, list | tuple):
        beyond = [*value[len(wanted) :], *wanted[len(value) :]]
        return sum(map(_cells, beyond)) + sum(map(_cells_apart, value, wanted))
    if isinstance(value, set | frozenset) and isinstance(wanted, set | frozenset):
        return float(len(value ^ wanted))
    if isinstance(value, list | tuple | dict) or isinstance(wanted, list | tuple | dict):
        return max(_cells(value), _cells(wanted))
    return float(value != wanted)


def _cells(value: Any) -> float:
    if isinstance(value, dict):
        value = list(value.values())
    return max(1.0, sum(map(_cells, value))) if isinstance(value, list | tuple) else 1.0


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


@dataclass(frozen=True, slots=True)
class ObjectDistance(Operation):
    """How far the outputs of a program called sample by sample are from a value; infinitely where it raised."""

    value: Any

    def evaluate(self, arguments: Sequence[Array], context: Context) -> Array:
        apart = (np.inf if isinstance(value, NoValue) else difference(value, self.value) for value in arguments[0])
        return np.fromiter(apart, float, len(arguments[0]))


@dataclass(frozen=True, slots=True)
class _Outside(Operation):
    """How far the outputs of a program called sample by sample lie outside of a range; infinitely if no number."""

    low: float
    high: float

    def evaluate(self, arguments: Sequence[Array], context: Context) -> Array:
        outside = (
            float(max(self.low - value, value - self.high, 0)) if isinstance(value, int | float) else np.inf
            for value in arguments[0]
        )
        return np.fromiter(outside, float, len(arguments[0]))


def distance_of(condition: Node) -> Node:
    """Return how far a sample is from meeting a condition, read off the comparisons that it is made of.

    Numbers on the wrong side of a bound are as far as they differ from it. What must hold together adds up, of
    alternatives the closest counts. A condition of another kind holds, at distance zero, or does not, at one.
    """
    distance: RandomVariable = _distance(condition, False)
    return distance.node


def is_graded(condition: Node) -> bool:
    """Return whether the distance from a condition can take more values than zero and one."""
    return not isinstance(distance_of(condition).operation, _Missed)


def _distance(node: Node, negated: bool) -> Any:
    operation, parents = node.operation, node.parents
    traits = operation.traits
    match operation:
        case Elementwise() if traits.connective is Connective.NOT:
            return _distance(parents[0], not negated)
        case Elementwise() if traits.connective is not None and _are_bools(node):
            one, other = (_distance(parent, negated) for parent in parents)
            return one + other if (traits.connective is Connective.AND) is not negated else np.minimum(one, other)
        case Elementwise() if traits.role is Role.CHOICE and _are_bools(node):
            met, missed = _distance(parents[0], False), _distance(parents[0], True)
            return np.minimum(met + _distance(parents[1], negated), missed + _distance(parents[2], negated))
        case Elementwise() if traits.direction and _are_numbers(parents):
            sign = float(traits.direction if negated else -traits.direction)
            return np.maximum(_apart(parents[0], parents[1]) * sign, 0.0)
        case Elementwise() if traits.signs and parents[0].dtype == bool and _is_certain(parents[1]):
            same = (0 in traits.signs) is bool(constant_value(parents[1]))
            return _distance(parents[0], negated if same else not negated)
        case Elementwise() if traits.signs and _are_numbers(parents):
            if (0 in traits.signs) is not negated:
                return np.abs(_apart(parents[0], parents[1]))
        case CloseTo(value=value) if not negated:
            return np.abs(_apart(parents[0], constant(value)))
        case ObjectEquals(value=value) if not negated:
            return RandomVariable(Node(ObjectDistance(value), parents, (), _FLOAT, kind=Kind.MIXED))
        case ObjectBetween(low=low, high=high) if not negated:
            return RandomVariable(Node(_Outside(low, high), parents, (), _FLOAT, kind=Kind.MIXED))
        case _:
            return _of_parts(node, negated)
    return _missed(node, negated)


def _of_parts(node: Node, negated: bool) -> Any:
    """Return the distance from a condition that is made of an array of others, or is one of those."""
    operation, parents = node.operation, node.parents
    joined, together = operation.traits.connective, (operation.traits.connective is Connective.AND) is not negated
    match operation:
        case ArrayFunction() if joined is not None and parents[0].dtype == bool and node.shape == ():
            inner = _distance(parents[0], negated)
            return inner.sum() if together else inner.min()
        case Fold(term=term, lanes=lanes, shared=shared) if joined is not None and term.shape == ():
            inside = _distance(term, negated).node
            way = "sum" if together else "min"
            fold = dataclasses.replace(operation, how=way, term=inside, plan=Plan([inside], [*lanes, *shared]))
            return RandomVariable(Node(fold, parents, (), _FLOAT, kind=Kind.MIXED))
        case Stack() if node.dtype == bool:
            stacked = tuple(_distance(parent, negated).node for parent in parents)
            return RandomVariable(Node(Stack(), stacked, node.shape, _FLOAT, kind=Kind.MIXED))
        case Index() if node.dtype == bool:
            inner = _distance(parents[0], negated)
            return RandomVariable(Node(operation, (inner.node,), node.shape, _FLOAT, kind=Kind.MIXED))
        case Checked() if node.dtype == bool:
            return _distance(parents[0], negated)
    return _missed(node, negated)


@dataclass(frozen=True, slots=True)
class _Missed(Operation):
    """One where a condition does not hold, zero where it does; the other way around if negated."""

    negated: bool

    def evaluate(self, arguments: Sequence[Array], context: Context) -> Array:
        return np.asarray(arguments[0].astype(bool) == self.negated, float)


def _missed(node: Node, negated: bool) -> RandomVariable:
    return RandomVariable(Node(_Missed(negated), (node,), node.shape, _FLOAT, kind=Kind.DISCRETE))


def _are_bools(node: Node) -> bool:
    return node.dtype == bool and all(parent.dtype == bool for parent in node.parents)


def _are_numbers(parents: Sequence[Node]) -> bool:
    return all(parent.levels is None and parent.dtype.kind in "bif" for parent in parents)


def _is_certain(node: Node) -> bool:
    """Return whether a node is a boolean, or zero or one, and always the same."""
    if not isinstance(node.operation, ConstantValue) or node.shape != () or node.levels is not None:
        return False
    return constant_value(node) in (0, 1)


@dataclass(frozen=True, slots=True)
class _Apart(Operation):
    """How far numbers lie above others."""

    def evaluate(self, arguments: Sequence[Array], context: Context) -> Array:
        return apart(*aligned(arguments))


def _apart(left: Node, right: Node) -> RandomVariable:
    shape = np.broadcast_shapes(left.shape, right.shape)
    return RandomVariable(Node(_Apart(), (left, right), shape, _FLOAT, kind=Kind.MIXED))
