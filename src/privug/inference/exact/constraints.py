"""What an observation says about numbers, read off its likelihood: exact values, noisy values, and ranges."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privug.model.node import ConstantValue, Node
from privug.model.operations import ArrayFunction, Elementwise, index
from privug.observation.likelihood import CloseTo, Likelihood
from privug.prior.choice import constant_value
from privug.prior.family import LogDensity

Range = tuple[float, float]

EVERYTHING: tuple[Range, ...] = ((-math.inf, math.inf),)


class Unreadable(Exception):
    """An observation says something that is no value and no range of a number."""


@dataclass(frozen=True)
class Value:
    """A number was seen, exactly or through normal noise."""

    node: Node
    value: float
    sd: float = 0.0


@dataclass(frozen=True)
class Region:
    """A number lies in one of some ranges, which are apart and in order."""

    node: Node
    ranges: tuple[Range, ...]


Constraint = Value | Region


def read(likelihood: Likelihood) -> list[Constraint]:
    """Return what a likelihood says about numbers, or raise Unreadable."""
    found: list[Constraint] = [Value(node, value) for node, value in likelihood.points]
    for node in likelihood.log_weights:
        found.extend(_noisy_values(node))
    regions: dict[Node, tuple[Range, ...]] = {}
    for condition in likelihood.conditions:
        for region in _conjunction(condition):
            regions[region.node] = _both(regions.get(region.node, EVERYTHING), region.ranges)
    return [*found, *(Region(node, ranges) for node, ranges in regions.items())]


def _noisy_values(node: Node) -> list[Constraint]:
    operation = node.operation
    if isinstance(operation, ArrayFunction) and operation.name == "sum" and node.shape == ():
        inner = node.parents[0]
        if isinstance(inner.operation, LogDensity) and len(inner.shape) == 1:
            value, seen, sd = inner.parents
            parts = [index(seen, position) for position in range(inner.shape[0])]
            return [Value(part, _number(value), _number(sd)) for part in parts]
    if isinstance(operation, LogDensity) and operation.family.gaussian and node.shape == ():
        value, seen, sd = node.parents
        return [Value(seen, _number(value), _number(sd))]
    raise Unreadable("the observation weighs outputs by something else than normal noise")


def _number(node: Node) -> float:
    if not isinstance(node.operation, ConstantValue) or node.shape != ():
        raise Unreadable("the observation compares random quantities")
    return float(constant_value(node))


def _conjunction(condition: Node) -> list[Region]:
    """Return the ranges that must all hold."""
    match condition.operation:
        case Elementwise(name="logical_and" | "bitwise_and"):
            return [region for parent in condition.parents for region in _conjunction(parent)]
        case ArrayFunction(name="all") if condition.parents[0].shape == (1,):
            return _conjunction(index(condition.parents[0], 0))
        case CloseTo():
            raise Unreadable("the observation asks for an exact value that may have a probability")
        case ConstantValue() if condition.shape == () and bool(constant_value(condition)):
            return []
        case _:
            return [_region(condition)]


def _region(condition: Node) -> Region:
    """Return where a condition on one number holds."""
    parents = condition.parents
    match condition.operation:
        case Elementwise(name="logical_and" | "bitwise_and"):
            return _combined(_region(parents[0]), _region(parents[1]), _both)
        case Elementwise(name="logical_or" | "bitwise_or"):
            return _combined(_region(parents[0]), _region(parents[1]), _either)
        case Elementwise(name="logical_not" | "invert" | "bitwise_not"):
            inner = _region(parents[0])
            return Region(inner.node, _elsewhere(inner.ranges))
        case Elementwise(name="not_equal") if condition.parents[0].dtype == bool and _is_zero(parents[1]):
            return _region(parents[0])
        case Elementwise(name="less" | "less_equal" | "greater" | "greater_equal" as name):
            return _half_line(name.startswith("less"), parents)
    raise Unreadable("the observation is no value and no range of the output")


def _is_zero(node: Node) -> bool:
    return isinstance(node.operation, ConstantValue) and node.shape == () and constant_value(node) == 0


def _half_line(below: bool, parents: Sequence[Node]) -> Region:
    left, right = parents
    if isinstance(left.operation, ConstantValue):
        left, right, below = right, left, not below
    bound = _number(right)
    return Region(left, ((-math.inf, bound) if below else (bound, math.inf),))


def _combined(left: Region, right: Region, join: Any) -> Region:
    if left.node is not right.node:
        raise Unreadable("the observation is a condition on two quantities together")
    return Region(left.node, join(left.ranges, right.ranges))


def _both(left: Sequence[Range], right: Sequence[Range]) -> tuple[Range, ...]:
    pairs = [(max(a, c), min(b, d)) for a, b in left for c, d in right]
    return tuple(sorted((low, high) for low, high in pairs if low <= high))


def _elsewhere(ranges: Sequence[Range]) -> tuple[Range, ...]:
    bounds = [-math.inf, *np.array(ranges).reshape(-1).tolist(), math.inf]
    return tuple((low, high) for low, high in zip(bounds[::2], bounds[1::2], strict=True) if low < high)


def _either(left: Sequence[Range], right: Sequence[Range]) -> tuple[Range, ...]:
    return _elsewhere(_both(_elsewhere(left), _elsewhere(right)))
