"""Reductions over rows: which quantities of a program put all rows together, and which of the rows are alike."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from privug.inference.exact.rows.order.ranks import ranks_of
from privug.model.node import Array, ConstantValue, Node, reached
from privug.model.numpy_functions import Cast
from privug.model.operations import ArrayFunction, Elementwise, Index, Lookup
from privug.model.plates import Fold
from privug.model.traits.traits import Role, Scope
from privug.prior.conditional import Choose, Match
from privug.prior.family import Draw

MOST_EXPANDED = 2000  # rows that are looked at one by one


class NotRows(Exception):
    """The program is no function of sums over independent rows; the message says why, as the end of a sentence."""

    def __init__(self, reason: str, node: Node | None = None) -> None:
        super().__init__(reason)
        self.node = node


class NotCounted(NotRows):
    """Order statistics are used in a way that is not followed; the message says all that there is to say."""


@dataclass(eq=False)
class Cluster:
    """Reductions over rows that share random columns, and what tells positions of these apart."""

    reductions: list[Node] = field(default_factory=list)
    size: int = 0
    differing: list[Array] = field(default_factory=list)
    special: set[int] = field(default_factory=set)
    expands: bool = False


def clustered(order: Sequence[Node]) -> dict[Node, Cluster]:
    """Put reductions that share columns into one cluster each."""
    clusters: dict[Node, Cluster] = {}
    of_root: dict[Node, Cluster] = {}
    for node in order:
        if not is_reduction(node):
            continue
        cone = _cone(node)
        cluster = Cluster()
        met = {id(c): c for c in (of_root.get(root) for root in cone if root.is_random) if c is not None}
        for other in met.values():
            _merge(cluster, other)
            clusters.update(dict.fromkeys(other.reductions, cluster))
        _take(cluster, node, cone)
        clusters[node] = cluster
        of_root.update((root, cluster) for root in cone if root.is_random)
        for root, known in of_root.items():
            if id(known) in met:
                of_root[root] = cluster
    for node in order:
        if isinstance(node.operation, Index) and not node.shape and node not in clusters:
            _single_out(node, of_root)
    return clusters


def _single_out(node: Node, of_root: dict[Node, Cluster]) -> None:
    """Take down that one row is used by itself."""
    assert isinstance(node.operation, Index)
    key = node.operation.key
    roots = [root for root in reached([node], is_reduction) if root in of_root]
    for root in roots:
        cluster = of_root[root]
        aligned = _is_aligned(node.parents[0], cluster.size)
        if aligned and len(key) == 1 and isinstance(key[0], int | np.integer):
            cluster.special.add(int(key[0]) % cluster.size)
        else:
            cluster.expands = True


def positions(cluster: Cluster, size: int) -> list[tuple[int, int]]:
    """Return positions that stand for all of so many rows, each with how many it stands for.

    Reductions of different sizes, as of a table and of a part of it, are in one cluster only if it expands.
    """
    if cluster.expands:
        if cluster.size > MOST_EXPANDED:
            raise NotRows(f"its {cluster.size:,} rows would have to be looked at one by one")
        return [(position, 1) for position in range(size)]
    codes = np.zeros(cluster.size, np.intp)
    for array in cluster.differing:
        own = np.unique(array, return_inverse=True)[1].reshape(-1)
        codes = np.unique(np.stack([codes, own]), axis=1, return_inverse=True)[1].reshape(-1)
    special = sorted(position for position in cluster.special if position < cluster.size)
    if len(special) > MOST_EXPANDED:
        raise NotRows("too many of its rows are used one by one")
    codes[special] = -1
    alike = [np.flatnonzero(codes == code) for code in np.unique(codes[codes >= 0])]
    if len(alike) > MOST_EXPANDED:
        raise NotRows("too many of its rows are unlike each other")
    return [(position, 1) for position in special] + [(int(some[0]), len(some)) for some in alike]


def _merge(cluster: Cluster, other: Cluster) -> None:
    cluster.reductions += other.reductions
    cluster.expands |= other.expands or (cluster.size != 0 and cluster.size != other.size)
    cluster.size = max(cluster.size, other.size)
    cluster.differing += other.differing


def _take(cluster: Cluster, node: Node, cone: Iterable[Node]) -> None:
    size = size_of(node)
    cluster.expands |= cluster.size not in (0, size) or not all(_is_aligned_step(one, size) for one in cone)
    cluster.size = max(cluster.size, size)
    cluster.reductions.append(node)
    for one in cone:
        if isinstance(one.operation, ConstantValue) and one.shape[:1] == (size,) and len(one.shape) == 1:
            array = one.operation.array[0]
            if len(array) and np.any(array != array[0]):
                cluster.differing.append(array)


def is_reduction(node: Node) -> bool:
    """Say whether a number puts those of all rows together: their sum, whether any or all hold, or one by rank."""
    operation, traits = node.operation, node.operation.traits
    if node.shape:
        return False
    if isinstance(operation, Fold):
        return operation.how != "map" and (traits.totals or traits.connective is not None or bool(traits.extreme))
    if isinstance(operation, Index) and len(operation.key) == 1:
        inner = node.parents[0].operation
        sorts = inner.traits.role is Role.ORDER and inner.traits.scope is Scope.ARRAY and not inner.traits.steps
        return isinstance(inner, ArrayFunction) and sorts and len(node.parents[0].shape) == 1
    if not isinstance(operation, ArrayFunction) or len(node.parents) != 1 or len(node.parents[0].shape) != 1:
        return False
    return traits.adds_up or traits.connective is not None or bool(ranks_of(node, size_of(node)))


def size_of(node: Node) -> int:
    """Return how many rows a reduction puts together."""
    operation = node.operation
    return operation.size if isinstance(operation, Fold) else int(operand(node).shape[0])


def operand(node: Node) -> Node:
    """Return the array that is sorted or put together."""
    inner = node.parents[0]
    return inner.parents[0] if isinstance(node.operation, Index) else inner


def _cone(node: Node) -> list[Node]:
    """Return the arrays that a reduction goes through."""
    operation = node.operation
    start = list(node.parents[: len(operation.lanes)]) if isinstance(operation, Fold) else [operand(node)]
    seen: dict[Node, None] = {}
    while start:
        one = start.pop()
        if one in seen or not one.shape:
            continue
        seen[one] = None
        if isinstance(one.operation, Fold):
            start += one.operation.shared
        start += one.parents
    return list(seen)


def _is_aligned_step(node: Node, size: int) -> bool:
    """Say whether an array has a number for each row, which depends on that row alone."""
    if isinstance(node.operation, ConstantValue):
        return node.shape == (size,) or len(node.shape) == 1  # such as the probabilities of a choice, which rows share
    if node.shape != (size,):
        return False
    operation = node.operation
    if isinstance(operation, Fold):
        return operation.how == "map"
    if isinstance(operation, Lookup):
        return len(node.parents[0].shape) == 1
    return isinstance(operation, Draw | Elementwise | Choose | Match | Cast)


def _is_aligned(node: Node, size: int) -> bool:
    cone, start = dict[Node, None](), [node]
    while start:
        one = start.pop()
        if one in cone or not one.shape:
            continue
        cone[one] = None
        start += one.parents
    return all(_is_aligned_step(one, size) for one in cone)
