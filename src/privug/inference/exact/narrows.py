"""Narrow places of a model graph: single numbers through which all randomness of a result goes."""

import heapq
from collections.abc import Hashable, Iterator, Sequence
from functools import partial
from typing import Any

from privug.inference.exact.pieces import between
from privug.model.node import ConstantValue, Node, ancestors, substitute
from privug.model.numpy_functions import Cast
from privug.model.operations import ArrayFunction, Elementwise, Index, Lookup
from privug.observation.likelihood import CloseTo


def narrows(targets: Sequence[Node]) -> Iterator[Node]:
    """Yield the single numbers of which all targets are functions, nearest first.

    Going back from the targets, a node is one of them if nothing else is left to go back through when it is met.
    """
    order = ancestors(targets)
    places = {node: place for place, node in enumerate(order)}
    random: set[Node] = set()
    for node in order:
        if node.operation.random or not random.isdisjoint(node.parents):
            random.add(node)
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


def deduplicated(target: Node) -> Node:
    """Return a node with what was computed of random quantities in the same way several times computed once."""
    keys: dict[Node, Hashable] = {}
    first: dict[Hashable, Node] = {}
    replacements: dict[Node, Node] = {}
    random: set[Node] = set()
    for node in ancestors([target]):
        own = None if node.operation.random else _operation(node)
        keys[node] = id(node) if own is None else (own, tuple(id(first[keys[parent]]) for parent in node.parents))
        known = first.setdefault(keys[node], node)
        if node.operation.random or not random.isdisjoint(node.parents):
            random.add(node)
            if node.operation.random and not random.isdisjoint(node.parents):
                return target  # roots must stay what they are
            if known is not node:
                replacements[node] = known
    return substitute([target], replacements)[0] if replacements else target


def signature(node: Node, argument: Node) -> Hashable | None:
    """Return what is equal for nodes that are the same function of their arguments; None if that is not known."""
    keys: dict[Node, Hashable] = {argument: "argument"}
    for other in between(node, argument):
        if other not in keys:
            own = _operation(other)
            if own is None:
                return None
            keys[other] = (own, tuple(keys.get(parent) for parent in other.parents))
    return keys[node]


def _operation(node: Node) -> Hashable | None:
    operation: Any = node.operation
    if isinstance(operation, ConstantValue):
        return operation.array.tobytes(), operation.array.shape, operation.array.dtype.str
    if isinstance(operation, Elementwise):
        function: Any = operation.function
        if isinstance(function, partial):
            function = function.func, function.args, tuple(sorted(function.keywords.items()))
        elif getattr(function, "__qualname__", "").startswith("_checked_math"):
            function = function.__qualname__  # made anew at each use; the name of the operation tells them apart
        return operation.name, operation.python, function
    if isinstance(operation, Lookup):
        return operation.table.tobytes(), node.levels if node.levels is not None else operation.table.dtype.str
    if isinstance(operation, Index | ArrayFunction):
        return _plainly(operation)
    if isinstance(operation, Cast):
        return "cast", operation.dtype.str
    if isinstance(operation, CloseTo):
        return "close", operation.value
    return None


def _plainly(operation: Index | ArrayFunction) -> Hashable | None:
    key: Any = (
        operation.key if isinstance(operation, Index) else (operation.name, operation.function, operation.options)
    )
    try:
        hash(key)
    except TypeError:  # a subscript with an array or a slice in it
        return None
    return "index" if isinstance(operation, Index) else "function", key
