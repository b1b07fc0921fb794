"""Quantities that are one thing or another, as `a**2 if c else a` is: what they are on each branch."""

from functools import reduce

import numpy as np

from privug.inference.solutions import Solution
from privug.model import numpy_functions
from privug.model.graph import rewritten
from privug.model.node import ConstantValue, Kind, Node, ancestors
from privug.model.operations import Elementwise, constant
from privug.model.traits.traits import Connective, Role
from privug.model.variable import RandomVariable
from privug.prior.family import Draw

IMPOSSIBLE = Solution({}, constant(-np.inf), (constant(False),))
"""What there is to be said of a branch on which the observation cannot be made."""


def branch_condition(node: Node) -> Node | None:
    """Return the condition of the outermost branching behind a quantity that depends on discrete quantities alone."""
    for inner in reversed(ancestors([node])):
        if inner.operation.traits.role is Role.CHOICE and inner.shape == ():
            condition = _part_of(inner.parents[0])
            drawn = [one for one in ancestors([condition]) if one.operation.random]
            known = all(isinstance(one.operation, Draw) and one.kind is Kind.DISCRETE for one in drawn)
            if drawn and known and condition.dtype == bool:
                return condition
    return None


def _part_of(condition: Node) -> Node:
    """Return a part of a condition that is not itself put together of others by `and`, `or` and `not`."""
    while isinstance(condition.operation, Elementwise) and condition.operation.traits.connective is not None:
        condition = next(parent for parent in condition.parents if _decided(parent) is None)
    return condition


def given_that(node: Node, condition: Node, truth: bool) -> Node:
    """Return what a quantity is where a condition holds, or where it does not."""
    return rewritten([node], _simplified, {condition: constant(truth)})[0]


def _simplified(node: Node, parents: tuple[Node, ...]) -> Node | None:
    """Return what a choice or a condition becomes if some of its parents are certain; None for everything else."""
    if parents == node.parents:
        return None
    traits = node.operation.traits
    joined = traits.connective if isinstance(node.operation, Elementwise) else None
    decided = [_decided(parent) for parent in parents]
    if traits.role is Role.CHOICE and decided[0] is not None and not node.shape:
        chosen = parents[1] if decided[0] else parents[2]
        if chosen.dtype == node.dtype:
            return chosen
        if isinstance(chosen.operation, ConstantValue):
            return constant(node.dtype.type(chosen.operation.array[0]))
        return numpy_functions.cast(chosen, node.dtype)
    if joined is Connective.NOT and decided[0] is not None:
        return constant(not decided[0])
    if joined in (Connective.AND, Connective.OR) and node.dtype == bool and not node.shape:
        for one, other in ((0, 1), (1, 0)):
            if decided[one] is not None:
                return constant(decided[one]) if decided[one] is (joined is Connective.OR) else parents[other]
    return None


def _decided(node: Node) -> bool | None:
    known = isinstance(node.operation, ConstantValue) and node.dtype == bool and not node.shape
    return bool(node.operation.array[0]) if known and isinstance(node.operation, ConstantValue) else None


def never_is(node: Node, value: float) -> bool:
    """Say whether a quantity is known never to have a value."""
    if isinstance(node.operation, ConstantValue) and node.dtype.kind in "bif":
        return not bool(np.any(np.isclose(node.operation.array.astype(float), value, rtol=1e-12, atol=0.0)))
    return node.dtype.kind in "bi" and node.levels is None and not value.is_integer()


def either_way(condition: Node, yes: Solution, no: Solution) -> Solution:
    """Put the solutions of both branches together: each sample is solved on the branch that it is on."""
    roots = dict.fromkeys([*yes.replacements, *no.replacements])
    replacements = {
        root: numpy_functions.where(condition, yes.replacements.get(root, root), no.replacements.get(root, root))
        for root in roots
    }
    weight = numpy_functions.where(condition, yes.log_weight, no.log_weight)
    agreeing = numpy_functions.where(condition, _all(yes), _all(no))
    return Solution(replacements, weight, (agreeing,))


def _all(solution: Solution) -> Node:
    conditions = [RandomVariable(condition) for condition in solution.conditions]
    return reduce(lambda one, other: one & other, conditions).node if conditions else constant(True)
