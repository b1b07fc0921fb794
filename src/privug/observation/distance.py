"""How far a sample is from agreeing with an observation: what leads the search for rare outputs."""

import dataclasses
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privug.model.node import Array, ConstantValue, Context, Kind, Node, Operation
from privug.model.operations import ArrayFunction, Elementwise, Index, Stack, aligned, constant
from privug.model.plan import Plan
from privug.model.plates import Fold
from privug.model.traits.traits import Connective, Role
from privug.model.variable import RandomVariable
from privug.model.whole_numbers import apart
from privug.observation.likelihood import CloseTo, ObjectBetween, ObjectEquals
from privug.prior.choice import constant_value
from privug.program.outputs import NoValue
from privug.program.traced.failures import Checked

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
    """Say whether the distance from a condition can take more values than zero and one."""
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
    """Say whether a node is a truth value, or zero or one, and always the same."""
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
