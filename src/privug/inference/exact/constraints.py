"""What an observation says about numbers, read off its likelihood: exact values, noisy values, and ranges."""

from dataclasses import dataclass

from privug.inference.conditions import EVERYTHING, Range, Region, Unreadable, both, clauses, region
from privug.model.node import ConstantValue, Node
from privug.model.operations import ArrayFunction, index
from privug.observation.likelihood import CloseTo, Likelihood
from privug.prior.choice import constant_value
from privug.prior.family import LogDensity


@dataclass(frozen=True)
class Value:
    """A number was seen, exactly or through normal noise."""

    node: Node
    value: float
    sd: float = 0.0


Constraint = Value | Region


def read(likelihood: Likelihood) -> list[Constraint]:
    """Return what a likelihood says about numbers, or raise Unreadable."""
    found: list[Constraint] = [Value(node, value) for node, value in likelihood.points]
    for node in likelihood.log_weights:
        found.extend(_noisy_values(node))
    regions: dict[Node, tuple[Range, ...]] = {}
    for condition in likelihood.conditions:
        for clause in clauses(condition):
            if isinstance(clause.operation, CloseTo):
                raise Unreadable("the observation asks for an exact value that may have a probability")
            if not isinstance(clause.operation, ConstantValue) or clause.shape or not constant_value(clause):
                held = region(clause)
                regions[held.node] = both(regions.get(held.node, EVERYTHING), held.ranges)
    return [*found, *(Region(node, ranges) for node, ranges in regions.items())]


def _noisy_values(node: Node) -> list[Constraint]:
    operation = node.operation
    if isinstance(operation, ArrayFunction) and operation.traits.totals and node.shape == ():
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
