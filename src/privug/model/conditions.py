"""Conditions, each true, false or random, and values that are there under one of them."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from privug.model import numpy_functions
from privug.model.categories import map_levels
from privug.model.graph import rewritten
from privug.model.maybe import Maybe, is_maybe, maybe
from privug.model.node import ConstantValue, Node
from privug.model.operations import Elementwise, constant
from privug.model.propositions import is_certain
from privug.model.traits import Connective
from privug.model.variable import RandomVariable, as_node

Mask = Any  # True, False, or a random variable of truth values


def both(left: Mask, right: Mask) -> Mask:
    """Return the conjunction of two conditions."""
    if isinstance(left, bool):
        return right if left else False
    if isinstance(right, bool):
        return left if right else False
    return left if left is right else left & right


def either(left: Mask, right: Mask) -> Mask:
    """Return the disjunction of two conditions."""
    if isinstance(left, bool):
        return True if left else right
    if isinstance(right, bool):
        return True if right else left
    return left | right


def negated(mask: Mask) -> Mask:
    """Return the negation of a condition."""
    return not mask if isinstance(mask, bool) else ~mask


def any_of(masks: Iterable[Mask]) -> Mask:
    """Return whether any of several conditions holds."""
    total: Mask = False
    for mask in masks:
        total = either(total, mask)
    return total


def merge(condition: Mask, taken: Mask, otherwise: Mask) -> Mask:
    """Return a condition that is one or another, as a third says."""
    if taken is otherwise or (not isinstance(taken, bool) and taken.node is getattr(otherwise, "node", None)):
        return taken
    if isinstance(taken, bool):
        return either(condition, otherwise) if taken else both(negated(condition), otherwise)
    if isinstance(otherwise, bool):
        return either(negated(condition), taken) if otherwise else both(condition, taken)
    return either(both(condition, taken), both(negated(condition), otherwise))


def holds(mask: Mask) -> bool:
    """Say whether a condition holds for sure: both another one and its opposite may have been met."""
    return mask if isinstance(mask, bool) else is_certain(mask.node)


def assuming(mask: Mask, known: Mapping[Node, bool]) -> Mask:
    """Return what a condition comes to where it is known whether some others hold."""
    if isinstance(mask, bool):
        return mask
    made = rewritten([mask.node], _without_constants, {node: constant(held) for node, held in known.items()})[0]
    held = _constant(made)
    return RandomVariable(made) if held is None else held


def _constant(node: Node) -> bool | None:
    operation = node.operation
    return bool(operation.array[0]) if isinstance(operation, ConstantValue) and node.dtype == bool else None


def _without_constants(node: Node, parents: tuple[Node, ...]) -> Node | None:
    """Return what a conjunction, disjunction or negation of which some part is known comes to."""
    connective = node.operation.traits.connective if isinstance(node.operation, Elementwise) else None
    known = [_constant(parent) for parent in parents]
    if connective is None or known == [None] * len(parents):
        return None
    if connective is Connective.NOT:
        return constant(not known[0])
    stops = connective is Connective.OR
    left = [parent for parent, held in zip(parents, known, strict=True) if held is None]
    return constant(stops) if stops in known else left[0] if left else constant(not stops)


class Optional(NamedTuple):
    """A number that is there under a condition, and what there is elsewhere: None or a text."""

    present: Mask
    number: Any = None
    otherwise: Any = ...

    @classmethod
    def of(cls, value: Any) -> "Optional | None":
        """Take a quantity apart; None if it is more than numbers and one other value."""
        node = as_node(value)
        if isinstance(node.operation, Maybe):
            present, of_number = map(RandomVariable, node.parents)
            return cls(present, of_number, node.operation.otherwise)
        if node.levels is None:
            return cls(True, RandomVariable(node)) if node.dtype.kind in "bif" else None
        others = [level for level in node.levels if not _is_number(level)]
        if len(others) != 1 or not (others[0] is None or isinstance(others[0], str)):
            return None
        if len(node.levels) == 1:
            return cls(False, None, others[0])
        stand_in = next(level for level in node.levels if _is_number(level))
        number = map_levels(node, lambda level: level if _is_number(level) else stand_in)
        if number.levels is not None:
            return None
        return cls(RandomVariable(map_levels(node, _is_number)), RandomVariable(number), others[0])

    @property
    def value(self) -> RandomVariable:
        """The quantity as one."""
        return RandomVariable(maybe(as_node(self.present), as_node(self.number), self.otherwise))


def chosen(condition: Any, yes: Any, no: Any) -> RandomVariable:
    """Return one of two quantities, as a random condition says; one may be a number and one none."""
    nodes = as_node(condition), as_node(yes), as_node(no)
    optional = _chosen_optional(*nodes)
    return RandomVariable(numpy_functions.where(*nodes)) if optional is None else optional


def _chosen_optional(condition: Node, yes: Node, no: Node) -> RandomVariable | None:
    """Return a choice between numbers and one value that is none; None if it is another kind of choice."""
    if not _mixes(yes, no) or condition.levels is not None or any(node.shape for node in (condition, yes, no)):
        return None
    left, right = Optional.of(RandomVariable(yes)), Optional.of(RandomVariable(no))
    if left is None or right is None:
        return None
    if condition.dtype != np.bool_:
        condition = numpy_functions.cast(condition, np.dtype(bool))
    others = {(type(part.otherwise), part.otherwise) for part in (left, right) if part.present is not True}
    present = merge(RandomVariable(condition), left.present, right.present)
    number = right.number if left.number is None else left.number
    if len(others) != 1 or isinstance(present, bool) or number is None:
        return None
    if left.number is not None and right.number is not None and left.number.node is not right.number.node:
        number = RandomVariable(numpy_functions.where(condition, left.number.node, right.number.node))
    return Optional(present, number, others.pop()[1]).value


def _mixes(*nodes: Node) -> bool:
    """Say whether one quantity is a random number, and one is no number, at least for some samples."""
    numbers = [
        is_maybe(node) or (node.levels is None and not isinstance(node.operation, ConstantValue)) for node in nodes
    ]
    return any(numbers) and any(is_maybe(node) or node.levels is not None for node in nodes)


def _is_number(level: Any) -> bool:
    return isinstance(level, int | float)
