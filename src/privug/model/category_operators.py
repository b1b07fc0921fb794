"""Operators on strings, enums, tuples and other categories: tables over their levels."""

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from privug.model.categories import compare_equal, map_levels, map_pairs
from privug.model.node import ConstantValue, Node
from privug.model.operations import Elementwise, elementwise
from privug.model.refusal import refuse
from privug.model.traits.table import traits_of
from privug.model.traits.traits import Role


def on_categories(name: str, nodes: Sequence[Node]) -> Node:
    """Apply an operator to categories, or to a category and a constant, level by level."""
    traits = traits_of(name)
    if not traits.python or len(nodes) != 2:
        refuse(f"'{name}' on strings or other categories")
    left, right = nodes
    function = getattr(operator, traits.python)
    if left.levels is not None and isinstance(right.operation, ConstantValue) and right.shape == ():
        plain = _plain_constant(right)
        return map_levels(left, lambda level: function(level, plain))
    if right.levels is not None and isinstance(left.operation, ConstantValue) and left.shape == ():
        plain = _plain_constant(left)
        return map_levels(right, lambda level: function(plain, level))
    if left.levels is None or right.levels is None:
        refuse(f"'{name}' between a random string and a random number")
    alike = len({type(level) for level in (*left.levels, *right.levels)}) == 1
    if traits.role is Role.COMPARISON and not traits.direction and alike:
        same = compare_equal(left, right)
        return same if 0 in traits.signs else elementwise(Elementwise("logical_not", np.logical_not), [same])
    return map_pairs(left, right, function)


def _plain_constant(node: Node) -> Any:
    assert isinstance(node.operation, ConstantValue)
    value = node.operation.array[0]
    return node.levels[value] if node.levels is not None else value.item()
