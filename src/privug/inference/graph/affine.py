"""Affine structure of a node: the quantities it is a weighted sum of, and the roots it is linear in, given the rest."""

import heapq
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privug.model.graph import random_nodes
from privug.model.node import ConstantValue, Kind, Node, ancestors
from privug.model.numpy_functions import Cast
from privug.model.operations import ArrayFunction, Elementwise, Index, Stack, almost_never_zero
from privug.model.traits import Role
from privug.model.variable import RandomVariable
from privug.prior.choice import constant_value
from privug.prior.family import Draw
from privug.program.traced.conditions import Checked

Coefficient = Any  # a number, an array of the root's shape, a random variable of either; None if it may be zero


Addends = list[tuple[Node, float]]
"""Quantities with the weights that they are added with."""


@dataclass(frozen=True)
class AffineForm:
    """A constant plus weighted quantities."""

    constant: float
    weights: Mapping[Node, float]

    @staticmethod
    def of(top: Node, addends: Callable[[Node], Addends | None]) -> "AffineForm":
        """Flatten a sum of sums: `addends` says what a number is the weighted sum of; None if it stays as it is."""
        start, weights = 0.0, dict[Node, float]()
        frontier = [(top, 1.0)]
        while frontier:
            node, weight = frontier.pop()
            parts = addends(node)
            if parts is not None:
                frontier.extend((part, weight * factor) for part, factor in reversed(parts))
            elif isinstance(node.operation, ConstantValue):
                start += weight * float(constant_value(node))
            else:
                weights[node] = weights.get(node, 0.0) + weight
        return AffineForm(start, {node: weight for node, weight in weights.items() if weight})

    def minus(self, other: "AffineForm") -> "AffineForm":
        """Return the difference of two."""
        weights = dict(self.weights)
        for node, weight in other.weights.items():
            weights[node] = weights.get(node, 0.0) - weight
        return AffineForm(self.constant - other.constant, {node: weight for node, weight in weights.items() if weight})


def addends_of(node: Node) -> Addends | None:
    """Return what a number is the weighted sum of; None if it is no sum."""
    if isinstance(node.operation, Cast) and node.dtype.kind == "f" and node.parents[0].levels is None:
        return [(node.parents[0], 1.0)]
    operation, parents = node.operation, node.parents
    if not isinstance(operation, Elementwise) or node.shape or node.levels is not None or node.dtype.kind not in "if":
        return None
    if operation.traits.weights is not None:
        return list(zip(parents, operation.traits.weights, strict=True))
    if operation.traits.factor == 1:
        for factor, other in (parents, parents[::-1]):
            if isinstance(factor.operation, ConstantValue) and factor.levels is None and other.dtype.kind in "if":
                return [(other, float(constant_value(factor)))]
    if operation.traits.factor == -1 and isinstance(parents[-1].operation, ConstantValue):
        value = float(constant_value(parents[-1]))
        return [(parents[0], 1 / value)] if value else None
    return None


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


def affine_roots(node: Node, kind: Kind = Kind.CONTINUOUS) -> dict[Node, Coefficient]:
    """Return the roots of a kind in which a number is affine, given everything else, with their coefficients.

    A root counts only if it enters through linear operations alone. Coefficients may be random,
    but only by quantities that are never zero by construction.
    """
    region, boundary = _linear_region(node)
    gradients = _gradients(node, region)
    elsewhere = {id(other) for other in ancestors([end for end, _ in boundary])}
    roots = [end for end in region if isinstance(end.operation, Draw) and end.kind is kind and id(end) not in elsewhere]
    return {root: gradients[id(root)] for root in roots if _is_never_zero(gradients[id(root)])}


@dataclass(frozen=True)
class Section:
    """A way from a number down to a quantity in which it is affine: the number is a constant plus slope times it."""

    top: Node
    slope: Coefficient
    end: Node


def invertible_roots(node: Node) -> dict[Node, list[Section]]:
    """Return the continuous roots that a number can be solved for through monotone functions, with the way to each.

    The end of each section but the last is a monotone function, of the top of the next one.
    """
    region, boundary = _linear_region(node)
    gradients = _gradients(node, region)
    found: dict[Node, list[Section]] = {}
    for end in region:
        inner = _argument(end)
        if inner is None or end.shape != () or not _is_never_zero(gradients[id(end)]):
            continue
        others = {id(other) for other in ancestors([part for part, user in boundary if user is not end])}
        others |= {id(part) for part in region if isinstance(part.operation, Draw)}
        section = Section(node, gradients[id(end)], end)
        direct = {root: [Section(inner, slope, root)] for root, slope in affine_roots(inner).items()}
        for root, way in {**invertible_roots(inner), **direct}.items():
            if id(root) not in others and root.shape == ():
                found.setdefault(root, [section, *way])
    return found


def _argument(node: Node) -> Node | None:
    """Return the only random argument of a monotone function."""
    traits = node.operation.traits
    if traits.inverse is None:
        return None
    random = [parent for parent in node.parents if not isinstance(parent.operation, ConstantValue)]
    suits = len(random) == 1 and random[0].shape == () and random[0].dtype.kind == "f"
    if suits and len(node.parents) == 2:
        suits = random[0] is node.parents[traits.inverse_in]
        suits = suits and bool(np.all(_constant_of(node.parents[1 - traits.inverse_in]) != 0))
    if suits and traits.role is Role.POWER:
        suits = is_positive(random[0])
    return random[0] if suits else None


def _constant_of(node: Node) -> Any:
    assert isinstance(node.operation, ConstantValue)
    return node.operation.array


def is_positive(node: Node) -> bool:
    """Say whether a quantity is positive by construction, but for a value that has no probability."""
    match node.operation:
        case ConstantValue(array=array):
            return bool(np.all(array > 0))
        case Elementwise(traits=traits) if traits.positive is not None:
            return traits.positive or all(is_positive(parent) for parent in node.parents)
        case Draw(family=family) if family.kind is Kind.CONTINUOUS:
            low = family.ends_of(node.parents)[0]
            if not isinstance(low, Node):
                return low >= 0
            return is_positive(low) or (
                isinstance(low.operation, ConstantValue) and bool(np.all(_constant_of(low) >= 0))
            )
        case _:
            return False


def inverse(node: Node, value: Any) -> tuple[Any, Any]:
    """Return the argument at which a monotone function has a value, and the log of the inverse's slope there."""
    function = node.operation.traits.inverse
    assert function is not None
    return function(value, *(_constant_of(p).item() for p in node.parents if isinstance(p.operation, ConstantValue)))


def _is_never_zero(coefficient: Coefficient) -> bool:
    if coefficient is None:  # a sum of random coefficients, which may cancel
        return False
    return isinstance(coefficient, RandomVariable) or bool(np.any(np.asarray(coefficient) != 0))


def _linear_region(node: Node) -> tuple[list[Node], list[tuple[Node, Node]]]:
    """Return the nodes reached from a node through linear operations, children first, and where that ends.

    Of each quantity beyond the end, the node that uses it is told too.
    """
    reached: set[int] = set()
    boundary: list[tuple[Node, Node]] = []
    stack = [node]
    while stack:
        current = stack.pop()
        if id(current) in reached:
            continue
        reached.add(id(current))
        inside, outside = _linear_parents(current)
        stack.extend(inside)
        boundary.extend((other, current) for other in outside)
    return [other for other in reversed(ancestors([node])) if id(other) in reached], boundary


def _linear_parents(node: Node) -> tuple[list[Node], list[Node]]:
    """Split a node's parents into those it is linear in and those that are coefficients or something else."""
    parents = list(node.parents)
    match node.operation:
        case Elementwise(traits=traits) if traits.weights is not None:
            linear, others = parents, []
        case Elementwise(traits=traits) if traits.factor == 1 and any(almost_never_zero(parent) for parent in parents):
            others = [_coefficient(parents)]
            linear = [parent for parent in parents if parent is not others[0]] or others
        case Elementwise(traits=traits) if traits.factor == -1:
            linear, others = parents[:1], parents[1:]
        case ArrayFunction(traits=traits) if traits.adds_up and node.shape == ():
            return parents, []
        case Stack():
            return parents, []
        case Checked():
            return parents[:1], parents[1:]
        case Index(key=key) if all(isinstance(part, int) for part in key) and node.shape == ():
            return parents, []
        case _:
            return [], parents
    # Broadcasting would sum a coefficient over the axes that it added: leave such nodes alone.
    return (linear, others) if all(parent.shape == node.shape for parent in linear) else ([], parents)


def _coefficient(factors: Sequence[Node]) -> Node:
    """Return the factor that is never zero to take as the coefficient: a constant if there is one."""
    suitable = [factor for factor in reversed(factors) if almost_never_zero(factor)]
    return max(suitable, key=lambda factor: isinstance(factor.operation, ConstantValue))


def _gradients(node: Node, region: Sequence[Node]) -> dict[int, Coefficient]:
    """Propagate the derivative of the node back through its linear region, children first."""
    gradients: dict[int, Coefficient] = {id(node): 1.0}
    for current in region:
        linear, coefficients = _linear_parents(current)
        for position, parent in enumerate(linear):
            incoming = gradients[id(current)]
            share = None if incoming is None else _passed_on(current, position, coefficients, incoming)
            gradients[id(parent)] = _total(gradients[id(parent)], share) if id(parent) in gradients else share
    return gradients


def _total(left: Coefficient, right: Coefficient) -> Coefficient:
    if left is None or right is None or isinstance(left, RandomVariable) or isinstance(right, RandomVariable):
        return None
    return left + right


def _passed_on(node: Node, position: int, coefficients: Sequence[Node], incoming: Coefficient) -> Coefficient:
    match node.operation:
        case Elementwise(traits=traits) if traits.weights is not None:
            return incoming if traits.weights[position] > 0 else -incoming
        case Elementwise(traits=traits):
            known = isinstance(coefficients[0].operation, ConstantValue)
            coefficient = constant_value(coefficients[0]) if known else RandomVariable(coefficients[0])
            return incoming * coefficient if traits.factor == 1 else incoming / coefficient
        case ArrayFunction(traits=traits):
            shape = node.parents[0].shape
            return incoming * np.full(shape, 1.0 / math.prod(shape) if traits.averages else 1.0)
        case Stack():
            return incoming[position]
        case Index(key=key):
            selected = np.zeros(node.parents[0].shape)
            selected[key] = 1.0
            return incoming * selected
        case _:
            return incoming
