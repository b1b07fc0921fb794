"""Conditions as formulas of propositional logic: which of them hold whatever else is true.

A condition put together by and, or and not of others is true or false for sure if its truth table says so. Two
comparisons of the same whole numbers count as what they are: `n < 3` is the opposite of `n >= 3`.
"""

from collections import deque
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from privug.model.node import Array, ConstantValue, Node
from privug.model.operations import Elementwise

MOST_ATOMS = 10  # 1,024 rows of a truth table


def is_certain(condition: Node) -> bool:
    """Say whether a condition holds by its form alone."""
    return bool(_truth_table(condition).all())


def implies(condition: Node, conclusion: Node) -> bool:
    """Say whether one condition follows from another by their forms alone."""
    if condition is conclusion:
        return True
    premise, result = _truth_table(condition, conclusion)
    return bool((~premise | result).all())


def _truth_table(*conditions: Node) -> Array:
    """Return when conditions hold, for all combinations of what they are made of."""
    order, expanded = _taken_apart(conditions)
    atoms = {id(node): _atom(node) for node in order if id(node) not in expanded}
    names = list(dict.fromkeys(name for name, _ in atoms.values()))
    rows = np.arange(1 << len(names))
    columns = {name: (rows >> place & 1).astype(bool) for place, name in enumerate(names)}
    truth: dict[int, Array] = {}
    for node in order:
        if id(node) in atoms:
            name, plainly = atoms[id(node)]
            truth[id(node)] = columns[name] if plainly else ~columns[name]
        elif isinstance(node.operation, ConstantValue):
            truth[id(node)] = np.full(len(rows), bool(node.operation.array[0]))
        else:
            truth[id(node)] = node.operation.traits.function(*(truth[id(parent)] for parent in node.parents))
    return np.array([truth[id(condition)] for condition in conditions])


def _taken_apart(conditions: Sequence[Node]) -> tuple[list[Node], set[int]]:
    """Return what conditions are put together of, parents first, and which of that is itself put together.

    The outermost parts are taken apart first, as long as what is left are few: the rest counts as one part each.
    """
    left = {id(condition): condition for condition in conditions}
    queue, expanded = deque(left.values()), set[int]()
    while queue and len(left) < MOST_ATOMS:
        node = queue.popleft()
        if id(node) not in expanded and _connected(node):
            left.pop(id(node))
            expanded.add(id(node))
            fresh = [parent for parent in node.parents if id(parent) not in expanded]
            left.update((id(parent), parent) for parent in fresh)
            queue.extend(fresh)
    order: dict[int, Node] = {}
    stack = [(condition, False) for condition in conditions]
    while stack:
        node, ready = stack.pop()
        if ready or id(node) not in expanded:
            order[id(node)] = node
        elif id(node) not in order:
            stack.append((node, True))
            stack.extend((parent, False) for parent in node.parents)
    return list(order.values()), expanded


def _connected(node: Node) -> bool:
    """Say whether a condition is put together of others, or is always the same."""
    if isinstance(node.operation, ConstantValue):
        return node.dtype == np.bool_ and node.shape == ()
    joined = isinstance(node.operation, Elementwise) and node.operation.traits.connective is not None
    return joined and all(part.dtype == np.bool_ and part.shape == () for part in (node, *node.parents))


def _atom(node: Node) -> tuple[Hashable, bool]:
    """Return what is equal for conditions that hold together, and whether this is one of them or their opposite."""
    operation = node.operation
    if isinstance(operation, Elementwise) and operation.traits.signs and all(map(_is_whole, node.parents)):
        signs = operation.traits.signs
        sides: Any = tuple(map(_side, node.parents))
        return (sides, signs if len(signs) == 1 else frozenset({-1, 0, 1}) - signs), len(signs) == 1
    return id(node), True


def _is_whole(node: Node) -> bool:
    return node.dtype.kind in "bi" and node.levels is None and node.shape == ()


def _side(node: Node) -> Hashable:
    return ("value", int(node.operation.array[0])) if isinstance(node.operation, ConstantValue) else id(node)
