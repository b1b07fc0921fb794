"""A question as one about sums over rows: which quantities put all rows together, and which rows are alike.

Reductions over arrays and plates, chains of additions, connectives over rows and order statistics become placeholders
for sums of what each row adds; rows that are alike are counted.
"""

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from privug.inference.exact.finite.elements import Elements
from privug.inference.graph.affine import Addends, AffineForm, addends_of
from privug.inference.graph.conditions import clauses
from privug.model.graph import deduplicated, operation_key, remade, rewritten, substitute, topmost
from privug.model.node import Array, ConstantValue, Context, Kind, Node, Operation, ancestors, reached
from privug.model.numpy_functions import Cast, as_addition
from privug.model.operations import ArrayFunction, Elementwise, Index, Lookup, constant, elementwise
from privug.model.plates import Fold
from privug.model.traits import Connective, Role, Scope
from privug.prior.choice import constant_value
from privug.prior.conditional import Choose, Match
from privug.prior.family import Draw
from privug.program.batched import BatchedCall

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
    distinct, first, counts = np.unique(codes, return_index=True, return_counts=True)
    alike = [(int(place), int(count)) for code, place, count in zip(distinct, first, counts, strict=True) if code >= 0]
    if len(alike) > MOST_EXPANDED:
        raise NotRows("too many of its rows are unlike each other")
    return [(position, 1) for position in special] + alike


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
    cone = reached([node], lambda one: not one.shape)
    return all(_is_aligned_step(one, size) for one in cone if one.shape)


MOST_NODES = 60_000
MOST_CHAINED = 20_000  # terms of chains of additions that share some of them

_ADD = Elementwise("add", np.add, python=True)
_TIMES = Elementwise("multiply", np.multiply, python=True)
_AND = Elementwise("logical_and", np.logical_and)
_OR = Elementwise("logical_or", np.logical_or)
_NOT = Elementwise("logical_not", np.logical_not)
_DIVIDED = Elementwise("true_divide", np.true_divide, python=True)


class Placeholder(Operation):
    """Stands for a sum over rows, or for an order statistic of them, in what is computed of it."""

    random = True

    def evaluate(self, arguments: Sequence[Array], context: Context) -> Array:
        raise AssertionError("a sum over rows has no value of its own")


def placeholders_behind(nodes: Sequence[Node]) -> list[Node]:
    """Return the sums and order statistics that some quantities are functions of."""
    return [one for one in ancestors(nodes) if isinstance(one.operation, Placeholder)]


@dataclass(frozen=True, eq=False)
class Addend:
    """A term of a sum, with a weight, for each of so many rows that are alike."""

    node: Node
    weight: float = 1.0
    count: int = 1


@dataclass(frozen=True, eq=False)
class RowSum:
    """A sum over rows; with `ranks`, the weighted sum of the addends of these ranks, counted from the smallest."""

    node: Node
    addends: tuple[Addend, ...]
    ranks: Ranks = ()


def placeholder(like: Node | None = None, *, whole: bool = False) -> Node:
    """Make a node that stands for a sum, or for a quantity like another one."""
    if like is not None:
        return Node(Placeholder(), (), (), like.dtype, like.levels, like.kind)
    kind = Kind.DISCRETE if whole else Kind.MIXED
    return Node(Placeholder(), (), (), np.dtype(np.int64 if whole else np.float64), None, kind)


class Regrouping:
    """Quantities as functions of sums over rows: goes through a graph once and collects these.

    `targets` are functions of `sums`; what is `asked` for, functions of a row, or of sums. `counts` says how many rows
    each root of a row stands for, if more than one.
    """

    def __init__(self, targets: Sequence[Node], asked: Sequence[Sequence[Node]], facts: int = 0) -> None:
        once = _cancelled(deduplicated([*targets, *(node for some in asked for node in some)]))
        targets, left = once[: len(targets)], iter(once[len(targets) :])
        asked = [[next(left) for _ in some] for some in asked]
        of_table = [any(is_reduction(node) for node in ancestors(some)) for some in asked]
        own = [node for some, whole in zip(asked, of_table, strict=True) for node in some if whole]
        told = [clause for fact in targets[:facts] for clause in clauses(fact)]
        simple = [clause for clause in told if _is_simple(clause)]
        told = [clause for clause in told if clause not in simple]
        everything = [*told, *simple, *targets[facts:], *(node for some in asked for node in some)]
        order = ancestors(everything)
        if any(node.shape for node in everything):
            raise NotRows("it asks for whole arrays")
        if len(order) > MOST_NODES:
            raise NotRows("it computes too many quantities")
        self.counts: dict[Node, int] = {}
        self._sums: dict[Node, RowSum] = {}
        self._images: dict[Node, Node] = {}
        self._chained_terms = 0
        self._clusters = clustered(order)
        self._elements = Elements([], list(self._clusters))
        for node in order:
            if not node.shape:
                self._images[node] = self._image(node)
        outer = [self._images[target] for target in (*told, *targets[facts:], *own)]
        outer = self._counted(self._chained(self._compared(outer)))
        if simple:
            held = self._sum([Addend(self._images[clause]) for clause in simple])
            outer.insert(0, _enough(held, len(simple), Connective.AND))
        outer = self._loose(outer)
        whole = iter(outer[len(outer) - len(own) :])
        self.asked = [
            [next(whole) if table else self._images[node] for node in some]
            for some, table in zip(asked, of_table, strict=True)
        ]
        self.targets = outer[: len(outer) - len(own)]
        used = set(ancestors([*self.targets, *(node for some in self.asked for node in some)]))
        self.sums = [one for one in self._sums.values() if one.node in used]

    def _image(self, node: Node) -> Node:
        if isinstance(node.operation, ConstantValue):
            return node
        if node in self._clusters:
            return self._reduced(node)
        if isinstance(node.operation, Draw):
            return self._elements.of(node)
        if isinstance(node.operation, Index) or any(parent.shape for parent in node.parents):
            if isinstance(node.operation, Elementwise | Lookup | Choose | Match | Cast | Index):
                reduced = {one: self._images[one] for one in self._clusters if one in self._images}
                return substitute([self._elements.of(node)], reduced)[0]
            what = getattr(node.operation, "name", type(node.operation).__name__)
            raise NotRows(f"it uses '{what}' of several quantities at once", node)
        return remade(node, [self._images[parent] for parent in node.parents])

    def _reduced(self, node: Node) -> Node:
        """Return a reduction over rows as a function of a sum, which is taken down."""
        cluster, traits = self._clusters[node], node.operation.traits
        size = size_of(node)
        terms = []
        for position, count in positions(cluster, size):
            terms.append((self._term(node, position), count))
            self._count(terms[-1][0], position, count)
        if traits.connective is not None:
            terms = [(_truth(term), count) for term, count in terms]
            total = self._sum([Addend(term, 1.0, count) for term, count in terms])
            return _enough(total, size, traits.connective)
        addends = [Addend(term, 1.0, count) for term, count in terms]
        if traits.adds_up:
            total = self._sum(addends)
            return elementwise(_DIVIDED, [total, constant(size)]) if traits.averages else total
        return self._sum(addends, ranks_of(node, size))

    def _term(self, node: Node, position: int) -> Node:
        operation = node.operation
        if isinstance(operation, Fold):
            term = self._elements.row(node, operation, position)
        else:
            term = self._elements.of(operand(node), (position,))
        if any(one in self._clusters for one in ancestors([term])):
            raise NotRows("what one row adds depends on a sum over all rows", node)
        return term

    def _count(self, term: Node, position: int, count: int) -> None:
        """Take down how many rows the roots of the one at a position stand for; those of others are others."""
        for root in ancestors([term]) if count > 1 else ():
            if root.is_random and self._elements.places.get(root, ())[:1] == (position,):
                self.counts[root] = count

    def _sum(self, addends: Sequence[Addend], ranks: Ranks = ()) -> Node:
        whole = all(addend.node.dtype.kind in "bi" and addend.weight.is_integer() for addend in addends)
        node = placeholder(whole=whole and all(weight.is_integer() for _, weight in ranks))
        self._sums[node] = RowSum(node, tuple(addends), ranks)
        return node

    def _counted(self, targets: list[Node]) -> list[Node]:
        """Replace conditions on rows of which any or all must hold by how many of them do."""
        targets = rewritten(targets, _as_connective, {})
        return substitute(targets, topmost(targets, self._how_many))

    def _how_many(self, node: Node) -> Node | None:
        """Return a condition as one on how many others hold, if those are about different rows."""
        connective = node.operation.traits.connective
        if not _is_connective(node, connective):
            return None
        leaves = dict.fromkeys(_operands(node, connective))
        own = {leaf: None for leaf in leaves if leaf.dtype == np.bool_ and self._of_rows(leaf) is not None}
        if sum(root.is_random for root in ancestors(own)) < 2:
            return None
        made = _enough(self._sum([Addend(leaf) for leaf in own]), len(own), connective)
        for leaf in leaves:
            made = made if leaf in own else remade(node, [made, leaf])
        return made

    def _compared(self, targets: list[Node]) -> list[Node]:
        """Replace extremes that were found by comparisons, one after the other, by order statistics."""
        return rewritten(targets, _as_sum, topmost(targets, self._picked))

    def _picked(self, node: Node) -> Node | None:
        """Return a quantity that is picked by comparisons as an order statistic."""
        sign, leaves = extreme_rows(node) or (0.0, [])
        several = [self._extreme(leaf, sign) for leaf in leaves]
        addends = [addend for some in several for addend in some]
        return self._sum(addends, _extreme_rank(addends, sign)) if all(several) and addends else None

    def _extreme(self, leaf: Node, sign: float) -> tuple[Addend, ...]:
        """Return the rows that are compared where one quantity is: itself, or those that it is the extreme of."""
        known = self._sums.get(leaf)
        if known is not None:
            return known.addends if known.ranks == _extreme_rank(known.addends, sign) else ()
        return () if any(one in self._sums for one in ancestors([leaf])) else (Addend(leaf),)

    def _joined(self, weights: Mapping[Node, float]) -> Mapping[Node, float]:
        """Put order statistics of the same rows together."""
        families: dict[frozenset[tuple[Node, float, int]], dict[Node, float]] = {}
        for node, weight in weights.items():
            if node in self._sums and self._sums[node].ranks:
                same = frozenset((one.node, one.weight, one.count) for one in self._sums[node].addends)
                families.setdefault(same, {})[node] = weight
        for family in families.values():
            ranks = joined_ranks([(self._sums[node].ranks, weight) for node, weight in family.items()])
            if len(family) > 1 and len(ranks) > 1:
                made = self._sum(self._sums[next(iter(family))].addends, ranks)
                weights = {node: weight for node, weight in weights.items() if node not in family} | {made: 1.0}
        return weights

    def _chained(self, targets: list[Node]) -> list[Node]:
        """Replace chains of additions by sums."""
        used, own = Counter(parent for node in ancestors(targets) for parent in node.parents), set(targets)

        def chain(node: Node) -> Node | None:
            return self._chain(node, used, own) if len(addends_of(node) or ()) > 1 else None

        return substitute(targets, topmost(targets, chain))

    def _chain(self, top: Node, used: Counter[Node], targets: set[Node]) -> Node | None:
        def alone(node: Node) -> Addends | None:
            return addends_of(node) if node is top or (used[node] == 1 and node not in targets) else None

        form = AffineForm.of(top, addends_of)
        self._chained_terms += len(form.weights)
        if self._chained_terms > MOST_CHAINED:  # sums of sums, each of which is used for something else
            form = AffineForm.of(top, alone)
        start, apart = form.constant, form.weights
        weights = self._joined(apart)
        own = {node: self._of_rows(node) for node in weights}
        addends = [
            Addend(one.node, weights[node] * one.weight, one.count)
            for node, several in own.items()
            if several is not None
            for one in several
        ]
        if weights is apart and sum(several is not None for several in own.values()) < 2:
            return None
        whole = all(one.node.dtype.kind in "bi" and one.weight.is_integer() for one in addends)
        total = self._sum(addends) if addends else constant(0)
        if start or whole is not (top.dtype.kind in "bi"):
            total = elementwise(_ADD, [total, constant(int(start) if whole else start)])
        for node, several in own.items():
            if several is None:
                factor = int(weights[node]) if weights[node].is_integer() else weights[node]
                total = elementwise(_ADD, [total, elementwise(_TIMES, [node, constant(factor)])])
        return total if total.dtype == top.dtype else Node(Cast(top.dtype), (total,), (), top.dtype)

    def _of_rows(self, node: Node) -> tuple[Addend, ...] | None:
        """Return what a term of a chain adds: one row's quantity, or a sum over rows as it stands."""
        if node in self._sums:
            return None if self._sums[node].ranks else self._sums[node].addends
        behind = ancestors([node])
        if any(other in self._sums for other in behind) or not any(other.is_random for other in behind):
            return None
        return (Addend(node),)

    def _loose(self, targets: list[Node]) -> list[Node]:
        """Make sums of one addend of what is drawn outside of all sums."""
        images: dict[Node, Node] = {}
        for node in ancestors(targets):
            if isinstance(node.operation, Draw):
                made = placeholder(node)
                self._sums[made] = RowSum(made, (Addend(node),))
                images[node] = made
        return substitute(targets, images)


def _is_simple(clause: Node) -> bool:
    """Say whether a fact is about one or two quantities, and no sum over rows."""
    behind = ancestors([clause])
    return sum(node.is_random for node in behind) <= 2 and not any(map(is_reduction, behind))


def _extreme_rank(addends: Sequence[Addend], sign: float) -> Ranks:
    return ((sum(one.count for one in addends) - 1 if sign > 0 else 0, 1.0),)


def _truth(node: Node) -> Node:
    return node if node.dtype == np.bool_ else elementwise(Elementwise("not_equal", np.not_equal), [node, constant(0)])


def _as_sum(node: Node, parents: tuple[Node, ...]) -> Node | None:
    """Write `a + d if c else a` as `a + (d if c else 0)`."""
    operation = node.operation
    chooses = isinstance(operation, Elementwise) and operation.traits.role is Role.CHOICE
    return as_addition(*parents) if chooses and node.levels is None and node.dtype.kind in "if" else None


def _as_connective(node: Node, parents: tuple[Node, ...]) -> Node | None:
    """Write `True if p else q` as `p or q`, `q if p else False` as `p and q`."""
    operation = node.operation
    chooses = isinstance(operation, Elementwise) and operation.traits.role is Role.CHOICE
    if not chooses or node.dtype != np.bool_ or node.shape or any(parent.dtype != np.bool_ for parent in parents):
        return None
    condition, then, otherwise = parents
    for branch, other, needed in ((then, otherwise, True), (otherwise, then, False)):
        if isinstance(branch.operation, ConstantValue) and not branch.shape:
            value = bool(constant_value(branch))
            held = condition if needed is value else elementwise(_NOT, [condition])
            return elementwise(_OR if value else _AND, [held, other])
    return None


def _enough(total: Node, size: int, connective: Connective | None) -> Node:
    """Return whether any, or all, of so many conditions hold, by how many of them do."""
    name, least = ("greater", 0) if connective is Connective.OR else ("equal", size)
    return elementwise(Elementwise(name, getattr(np, name)), [total, constant(least)])


def _is_connective(node: Node, connective: Connective | None) -> bool:
    """Say whether a condition is made of two others of which one, or both, must hold."""
    if connective not in (Connective.OR, Connective.AND) or node.operation.traits.connective is not connective:
        return False
    return isinstance(node.operation, Elementwise) and not node.shape and node.dtype == np.bool_


def _operands(node: Node, connective: Connective | None) -> list[Node]:
    """Return the conditions of which any, or all, must hold."""
    found, pending = list[Node](), [node]
    while pending:
        one = pending.pop()
        if _is_connective(one, connective):
            pending.extend(reversed(one.parents))
        else:
            found.append(one)
    return found


def _cancelled(targets: list[Node]) -> list[Node]:
    """Leave out quantities that are added and taken away again, such as the truth in the error of a noisy output."""
    images: dict[Node, Node] = {}
    for node in (pending := list(targets)):
        if len(addends_of(node) or ()) < 2:
            pending.extend(parent for parent in node.parents if parent not in pending)
            continue
        form = AffineForm.of(node, addends_of)
        left = {one for one in ancestors(form.weights) if one.is_random}
        if any(one.is_random and one not in left for one in ancestors([node])):
            total = constant(form.constant)
            for one, weight in form.weights.items():
                total = elementwise(_ADD, [total, elementwise(_TIMES, [one, constant(weight)])])
            images[node] = total
    return substitute(targets, images)


def row_key(terms: Sequence[tuple[int, Node]], shared: Collection[Node] = ()) -> Hashable | None:
    """Return what is equal for rows that add the same to the same sums; None if that cannot be told.

    Rows that are alike depend on the same `shared` quantities.
    """
    keys: dict[Node, Hashable] = {node: id(node) for node in shared}
    count = 0
    for node in ancestors([term for _, term in terms]):
        if node in shared:
            continue
        own = operation_key(node.operation)
        if own is None:
            return None
        if node.is_random:
            count += 1
        keys[node] = (own, node.levels, count if node.is_random else 0, tuple(keys[p] for p in node.parents))
    return tuple((position, keys[term]) for position, term in terms)


def check_followed(nodes: Sequence[Node]) -> None:
    """Refuse programs that are called, and draws that are no roots of the graph."""
    for node in ancestors(nodes):
        if node.operation.opaque or isinstance(node.operation, BatchedCall):
            raise NotRows("the program is called sample by sample")
        if node.is_random and type(node.operation) is not Draw:
            raise NotRows("it draws in a way that is not followed")
