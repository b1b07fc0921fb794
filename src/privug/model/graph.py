"""The graph as a whole: what lies behind nodes, other nodes in the place of some, and which nodes are alike."""

import dataclasses
import types
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np

from privug.model.node import ConstantValue, Node, Operation, Shape, ancestors
from privug.model.operations import Elementwise, Lookup, with_range
from privug.model.plates import Fold
from privug.model.structure import flatten
from privug.model.variable import RandomVariable

DEEPEST = 12  # how far closures and containers inside an operation are followed

Found = TypeVar("Found")
Rule = Callable[[Node, tuple[Node, ...]], Node | None]
"""Takes a node and what its parents became; returns what it becomes itself, or None if only its parents changed."""


def everything_behind(nodes: Iterable[Node]) -> list[Node]:
    """Return nodes and all they are made of, what is computed for each row of a table included, in order."""
    order: dict[Node, None] = {}
    for node in ancestors(nodes):
        if isinstance(node.operation, Fold):
            order.update(dict.fromkeys(everything_behind([node.operation.term])))
        order[node] = None
    return list(order)


def random_nodes(order: Iterable[Node]) -> set[Node]:
    """Return the nodes that are random or made of random ones; parents come before their children."""
    found: set[Node] = set()
    for node in order:
        if node.operation.random or not found.isdisjoint(node.parents):
            found.add(node)
    return found


def remade(node: Node, parents: Sequence[Node], shape: Shape | None = None) -> Node:
    """Return the same operation on other nodes, with the range that it has on these; the node itself on its own."""
    shape = node.shape if shape is None else shape
    if shape == node.shape and all(new is old for new, old in zip(parents, node.parents, strict=True)):
        return node
    operation, bound = node.operation, node.bound
    if isinstance(operation, Elementwise):
        operation, bound = with_range(operation, parents, node.dtype)
    elif not isinstance(operation, Lookup) and not _are_within(parents, node.parents):
        bound = None
    made = Node(operation, tuple(parents), shape, node.dtype, node.levels, node.kind)
    made.bound, made.numpy = bound, node.numpy
    return made


def _are_within(nodes: Sequence[Node], others: Sequence[Node]) -> bool:
    """Say whether nodes are others, or whole numbers that get no larger than those."""
    pairs = [(new.bound, old.bound) for new, old in zip(nodes, others, strict=True) if new is not old]
    return all(new is not None and old is not None and new <= old for new, old in pairs)


def rewritten(targets: Sequence[Node], rule: Rule, images: Mapping[Node, Node]) -> list[Node]:
    """Return the targets with some nodes replaced and every other node, parents first, as a rule says.

    What neither changed itself nor depends on what did is shared.
    """
    found = dict(images)
    for node in ancestors(targets):
        if node not in found:
            parents = tuple(found.get(parent, parent) for parent in node.parents)
            made = rule(node, parents) or remade(node, parents)
            if made is not node:
                found[node] = made
    return [found.get(target, target) for target in targets]


def topmost(targets: Sequence[Node], found: Callable[[Node], Found | None]) -> dict[Node, Found]:
    """Return what a function finds at nodes, from the targets down: behind a node where it finds something, no more."""
    frontier, seen, known = list(targets), set[Node](), dict[Node, Found]()
    while frontier:
        node = frontier.pop()
        if node in seen:
            continue
        seen.add(node)
        here = found(node)
        if here is None:
            frontier.extend(node.parents)
        else:
            known[node] = here
    return known


def substitute(targets: Sequence[Node], replacements: Mapping[Node, Node]) -> list[Node]:
    """Return the targets with some nodes replaced; what does not depend on those is shared."""
    return rewritten(targets, lambda node, parents: None, replacements)


def between(node: Node, argument: Node) -> list[Node]:
    """Return a function's node and all behind it as far as its argument, parents before children."""
    done: set[Node] = {argument}
    order = [argument]
    stack = [(node, False)]
    while stack:
        current, expanded = stack.pop()
        if current in done:
            continue
        if expanded or not current.parents:
            done.add(current)
            order.append(current)
            continue
        stack.append((current, True))
        stack.extend((parent, False) for parent in reversed(current.parents) if parent not in done)
    return order


class _Unknown(Exception):
    """Whether two operations are the same cannot be told."""


def operation_key(operation: Operation, images: Mapping[Node, Node] | None = None) -> Hashable | None:
    """Return what is equal for equal operations; None if that cannot be told.

    Nodes that belong to an operation, as a fold's term does, count as what they are in `images`.
    """
    try:
        return type(operation), _fields_key(operation, images or {}, DEEPEST)
    except _Unknown:
        return None


def _fields_key(value: Any, images: Mapping[Node, Node], depth: int) -> Hashable:
    if not dataclasses.is_dataclass(value):
        raise _Unknown
    # Whether a check for overflow is needed follows from the arguments and is no part of what is computed.
    names = [field.name for field in dataclasses.fields(value) if field.name not in ("may_overflow", "plan")]
    return tuple(_key(getattr(value, name), images, depth) for name in names)


def _key(value: Any, images: Mapping[Node, Node], depth: int) -> Hashable:
    if depth == 0:
        raise _Unknown
    match value:
        case RandomVariable():
            return _key(value.node, images, depth)
        case Node():
            return id(images.get(value, value))
        case np.ndarray() if value.dtype != object:
            return value.tobytes(), value.shape, value.dtype.str
        case tuple() | list():
            return type(value), tuple(_key(item, images, depth - 1) for item in value)
        case slice():
            return slice, value.start, value.stop, value.step
        case partial():
            named = tuple(sorted(value.keywords.items()))
            return tuple(_key(part, images, depth - 1) for part in (value.func, value.args, named))
        case types.FunctionType():
            cells = tuple(cell.cell_contents for cell in value.__closure__ or ())
            return value.__code__, _key((value.__defaults__, cells), images, depth - 1)
    try:
        hash(value)
    except TypeError:
        return type(value), _fields_key(value, images, depth - 1)
    return type(value), value


def parents_key(node: Node) -> tuple[Hashable, ...]:
    """Return what is equal for nodes with the same parents, of which constants count by their values."""
    return tuple(
        operation_key(parent.operation) if isinstance(parent.operation, ConstantValue) else id(parent)
        for parent in node.parents
    )


class UniqueTable:
    """Structurally equal nodes as one node (hash-consing): the first of a kind stands for all.

    Two draws are never equal, unless `draws` are to be: then the first of a distribution in one graph is taken
    for the first of it in another, the second for the second, and so on.
    """

    def __init__(self, *, draws: bool = False, known: Iterable[Node] = ()) -> None:
        self._first: dict[Hashable, Node] = {}
        self._draws = draws
        self._known = {node: node for node in known}

    def images(self, targets: Iterable[Node]) -> dict[Node, Node]:
        """Return what stands for each node behind the targets."""
        images, met = dict(self._known), Counter[Hashable]()
        for node in everything_behind(targets):
            if node not in images:
                random = node.operation.random
                own = None if random and not self._draws else operation_key(node.operation, images)
                key: Hashable = (own, node.shape, node.dtype.str, node.levels, node.kind)
                key = (key, tuple(id(images[parent]) for parent in node.parents))
                met[key] += random
                images[node] = node if own is None else self._first.setdefault((key, met[key]), node)
        return images


def is_made_alike(left: Any, right: Any) -> bool:
    """Compare two nested values; where it cannot be told whether operations are the same, they count as different."""
    (structure, leaves), (other, others) = flatten(left), flatten(right)
    if structure != other:
        return False
    behind = [
        everything_behind(leaf.node for leaf in side if isinstance(leaf, RandomVariable)) for side in (leaves, others)
    ]
    table = UniqueTable(draws=True, known=set(behind[0]).intersection(behind[1]))
    try:
        keys = [_key(side, table.images(nodes), DEEPEST) for side, nodes in zip((leaves, others), behind, strict=True)]
    except _Unknown:
        return False
    return keys[0] == keys[1]


def deduplicated(targets: Sequence[Node]) -> list[Node]:
    """Return nodes with what was computed of random quantities in the same way several times computed once."""
    order = ancestors(targets)
    images = UniqueTable().images(targets)
    behind_draws = set(ancestors(parent for node in order if node.operation.random for parent in node.parents))
    replacements = {node: images[node] for node in order if images[node] is not node and node not in behind_draws}
    return substitute(targets, replacements)


def signature(node: Node, argument: Node) -> Hashable | None:
    """Return what is equal for nodes that are the same function of their arguments; None if that cannot be told."""
    keys: dict[Node, Hashable] = {argument: "argument"}
    for other in between(node, argument):
        if other not in keys:
            own = operation_key(other.operation)
            if own is None:
                return None
            keys[other] = (own, other.levels, tuple(keys.get(parent) for parent in other.parents))
    return keys[node]
