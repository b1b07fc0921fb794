"""What programs pick by its rank: medians, quantiles, extremes, elements of sorted rows."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from privug.model.node import ConstantValue, Context, Kind, Node, ancestors
from privug.model.operations import ArrayFunction, Elementwise, Index
from privug.model.traits.traits import Role

SAME = 1e-9  # how far from a rank a place between two may be for rounding

Ranks = tuple[tuple[int, float], ...]
"""Ranks, counted from the smallest, with weights."""


def ranks_of(node: Node, size: int) -> Ranks:
    """Return what is picked of so many rows; nothing if it is no order statistic of them."""
    operation, traits = node.operation, node.operation.traits
    if isinstance(operation, Index):
        return ((int(operation.key[0]) % size, 1.0),)
    if traits.extreme:
        return ((size - 1 if traits.extreme > 0 else 0, 1.0),)
    if not isinstance(operation, ArrayFunction) or not traits.ranks:
        return ()
    # What is picked is seen where each row is its own rank.
    own = np.arange(size, dtype=float)
    place, moved = (float(v) for v in operation.evaluate([np.stack([own, own + 1])], Context(2, None)))  # type: ignore[arg-type]
    if place == moved:
        return ((0, -1.0), (size - 1, 1.0)) if size > 1 else ()
    nearest = round(place)
    if abs(place - nearest) <= SAME * size:
        return ((nearest, 1.0),)
    lower = int(place)
    return ((lower, 1 - (place - lower)), (lower + 1, place - lower))


def joined_ranks(several: Sequence[tuple[Ranks, float]]) -> Ranks:
    """Return the weighted sum of several picks."""
    total: dict[int, float] = {}
    for ranks, factor in several:
        for rank, weight in ranks:
            total[rank] = total.get(rank, 0.0) + factor * weight
    return tuple((rank, weight) for rank, weight in sorted(total.items()) if weight)


def extreme_rows(node: Node) -> tuple[float, list[Node]] | None:
    """Return the quantities, of rows that have nothing in common, that were compared to find the largest or smallest.

    The sign is negative for the smallest. Nothing if it is no such thing, or a function of one quantity.
    """
    operation = node.operation
    if node.shape or not isinstance(operation, Elementwise) or node.levels is not None:
        return None
    if not operation.traits.extreme and operation.traits.role is not Role.CHOICE:
        return None
    found = _compared(node)
    if found is None or any(leaf.shape for leaf in found[1]):
        return None
    roots = [{one for one in ancestors([leaf]) if one.is_random} for leaf in found[1]]
    moving = [leaf for leaf, own in zip(found[1], roots, strict=True) if own]
    users = Counter(root for own in roots for root in own)
    entangled = any(own and all(users[root] > 1 for root in own) for own in roots)
    if len(moving) < 2 or entangled:
        return None
    return found if any(leaf.kind is not Kind.DISCRETE for leaf in moving) else None


def _compared(node: Node) -> tuple[float, list[Node]] | None:
    """Return the quantities of which a number is the largest, or the smallest if the sign is negative."""
    keys = _keys(node)
    for sign in (1.0, -1.0):
        leaves = _leaves(node, sign, keys)
        if leaves != [node]:
            return sign, leaves
    return None


def _keys(node: Node) -> dict[Node, int]:
    """Return numbers that are the same for nodes made in the same way: programs compare more than once."""
    keys: dict[Node, int] = {}
    names: dict[Any, int] = {}
    for other in ancestors([node]):
        operation = other.operation
        own: Any = id(other)
        if isinstance(operation, Elementwise):
            own = operation.name, *(keys[parent] for parent in other.parents)
        elif isinstance(operation, ConstantValue) and not other.shape:
            own = "constant", float(operation.array[0])
        keys[other] = names.setdefault(own, len(names))
    return keys


def _leaves(node: Node, sign: float, keys: dict[Node, int]) -> list[Node]:
    """Return the numbers of which a node is the largest, or the smallest."""
    leaves: list[Node] = []
    pending, seen = [node], set[int]()
    while pending:
        current = pending.pop()
        if keys[current] not in seen:
            seen.add(keys[current])
            inner = _inside(current, sign, keys)
            pending.extend(inner)
            if not inner:
                leaves.append(current)
    return leaves


def _inside(node: Node, sign: float, keys: dict[Node, int]) -> list[Node]:
    traits = node.operation.traits
    if isinstance(node.operation, Elementwise) and traits.extreme * sign > 0:
        return list(node.parents)
    return list(node.parents[1:]) if traits.role is Role.CHOICE and _picks(node.parents, sign, keys) else []


def _picks(parents: Sequence[Node], sign: float, keys: dict[Node, int]) -> bool:
    """Say whether a choice between two numbers takes the larger, or the smaller, one."""
    condition, yes, no = parents
    direction = condition.operation.traits.direction
    if not direction:
        return False
    left, right = (keys[parent] for parent in condition.parents)
    chosen = (left, right) if direction * sign > 0 else (right, left)
    return (keys[yes], keys[no]) == chosen
