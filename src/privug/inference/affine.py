"""Affine structure of a node: the continuous roots it is linear in, and with which coefficients."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from privug.model.node import ConstantValue, Kind, Node, ancestors
from privug.model.operations import ArrayFunction, Elementwise, Index, Stack, almost_never_zero
from privug.model.variable import RandomVariable
from privug.prior.choice import constant_value
from privug.prior.family import Draw
from privug.program.traced.failures import Checked

Coefficient = Any  # a number, an array of the root's shape, a random variable of either; None if it may be zero


def affine_roots(node: Node) -> dict[Node, Coefficient]:
    """Return the continuous roots in which a number is affine, given everything else, with their coefficients.

    A root counts only if it enters through linear operations alone. Coefficients may be random,
    but only by quantities that are never zero by construction.
    """
    region, boundary = _linear_region(node)
    elsewhere = {id(other) for other in ancestors(boundary)}
    gradients = _gradients(node, region)
    return {
        root: gradients[id(root)]
        for root in region
        if isinstance(root.operation, Draw)
        and root.kind is Kind.CONTINUOUS
        and id(root) not in elsewhere
        and _is_never_zero(gradients[id(root)])
    }


def _is_never_zero(coefficient: Coefficient) -> bool:
    if coefficient is None:  # a sum of random coefficients, which may cancel
        return False
    return isinstance(coefficient, RandomVariable) or bool(np.any(np.asarray(coefficient) != 0))


def _linear_region(node: Node) -> tuple[list[Node], list[Node]]:
    """Return the nodes reached from a node through linear operations, children first, and where that ends."""
    reached: set[int] = set()
    boundary: list[Node] = []
    stack = [node]
    while stack:
        current = stack.pop()
        if id(current) in reached:
            continue
        reached.add(id(current))
        inside, outside = _linear_parents(current)
        stack.extend(inside)
        boundary.extend(outside)
    return [other for other in reversed(ancestors([node])) if id(other) in reached], boundary


def _linear_parents(node: Node) -> tuple[list[Node], list[Node]]:
    """Split a node's parents into those it is linear in and those that are coefficients or something else."""
    parents = list(node.parents)
    match node.operation:
        case Elementwise(name="add" | "subtract" | "negative" | "positive"):
            linear, others = parents, []
        case Elementwise(name="multiply") if any(almost_never_zero(parent) for parent in parents):
            others = [_coefficient(parents)]
            linear = [parent for parent in parents if parent is not others[0]] or others
        case Elementwise(name="true_divide"):
            linear, others = parents[:1], parents[1:]
        case ArrayFunction(name="sum" | "mean") if node.shape == ():
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
        case Elementwise(name="subtract") if position == 1:
            return -incoming
        case Elementwise(name="negative"):
            return -incoming
        case Elementwise(name="multiply"):
            return incoming * _plain_or_random(coefficients[0])
        case Elementwise(name="true_divide"):
            return incoming / _plain_or_random(coefficients[0])
        case ArrayFunction(name="sum"):
            return incoming * np.ones(node.parents[0].shape)
        case ArrayFunction(name="mean"):
            shape = node.parents[0].shape
            return incoming * np.full(shape, 1.0 / math.prod(shape))
        case Stack():
            return incoming[position]
        case Index(key=key):
            selected = np.zeros(node.parents[0].shape)
            selected[key] = 1.0
            return incoming * selected
        case _:
            return incoming


def _plain_or_random(node: Node) -> Any:
    return constant_value(node) if isinstance(node.operation, ConstantValue) else RandomVariable(node)
