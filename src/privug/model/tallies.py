"""Counting in bytes: sums of truth values are kept in 8 bits while they grow, and are whole numbers only at their end.

A loop that counts is a long chain of additions of conditions, most of whose sums nobody else looks at. Adding a
condition to 64-bit numbers moves eight times as many bytes as adding it to a byte, which holds up to 255 of them.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from privug.model.node import Array, ConstantValue, Context, Node, Operation
from privug.model.numpy_functions import Cast
from privug.model.operations import ArrayFunction, Elementwise, Stack
from privug.model.overflow import INTEGER_LIMIT, refuse_overflow
from privug.model.traits.table import traits_of

LARGEST_COUNT = 255
FEWEST_LINKS = 2
NEARBY = 3  # between a condition and its addition may stand a number and their product
_WHOLE = np.dtype(np.int64)


class Computation(NamedTuple):
    """Another way to compute a node: an operation, and the nodes whose values it takes."""

    operation: Operation
    parents: tuple[Node, ...]


class Term(NamedTuple):
    """What an addition counts: a whole number where a condition holds, zero elsewhere."""

    condition: Node
    weight: int
    holder: Node
    """The node that was read as this term: the condition itself, or its product with the number."""


class ByteCounts:
    """Counts that grow: bytes, and whole numbers for what they no longer hold."""

    __slots__ = ("_bytes", "_carried", "_room", "_scratch", "_scratch_bytes")

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._bytes = np.zeros(shape, np.uint8)
        self._carried: Array | None = None
        self._room = LARGEST_COUNT
        self._scratch = np.empty(shape, np.bool_)
        self._scratch_bytes = self._scratch.view(np.uint8)

    def add(self, condition: Array, weight: int) -> None:
        """Add a whole number up to 255 where a condition holds."""
        self._add(condition.view(np.uint8), weight)

    def add_where(self, function: Callable[..., Any], arguments: Sequence[Array], weight: int) -> None:
        """Add a whole number up to 255 where the condition holds that a NumPy function gives."""
        function(*arguments, self._scratch)
        self._add(self._scratch_bytes, weight)

    def _add(self, ones: Array, weight: int) -> None:
        if weight > self._room:
            self._carry()
        self._room -= weight
        np.add(self._bytes, ones if weight == 1 else ones * np.uint8(weight), self._bytes)

    def _carry(self) -> None:
        self._carried = self.total()
        self._bytes.fill(0)
        self._room = LARGEST_COUNT

    def total(self) -> Array:
        """Return the counts as whole numbers."""
        if self._carried is None:
            return self._bytes.astype(_WHOLE)
        self._carried += self._bytes
        return self._carried


@dataclass(frozen=True, slots=True)
class Tally(Operation):
    """The first or the last link of a chain, or both.

    It takes the counts so far, then the conditions, and at the end what the chain started from.
    """

    weights: tuple[int, ...]
    opens: bool
    closes: bool
    may_overflow: bool = False

    def evaluate(self, arguments: Sequence[Any], context: Context) -> Any:
        start = 0 if self.opens else 1
        stop = start + len(self.weights)
        shape = (context.samples, *arguments[start].shape[1:])
        counts: ByteCounts = ByteCounts(shape) if self.opens else arguments[0]
        for condition, weight in zip(arguments[start:stop], self.weights, strict=True):
            counts.add(condition, weight)
        return self._closed(counts.total(), arguments[stop:]) if self.closes else counts

    def _closed(self, total: Array, base: Sequence[Array]) -> Array:
        if not base:
            return total
        if self.may_overflow:
            refuse_overflow(traits_of("add"), [base[0], total])
        total += base[0]
        return total


@dataclass(frozen=True, slots=True)
class Link(Operation):
    """One link inside a chain: takes the counts so far and a condition, or what a function gives the condition for."""

    weight: int
    function: Callable[..., Any] | None = None

    def evaluate(self, arguments: Sequence[Any], context: Context) -> Any:
        counts: ByteCounts = arguments[0]
        if self.function is None:
            counts.add(arguments[1], self.weight)
        else:
            counts.add_where(self.function, arguments[1:], self.weight)
        return counts


@dataclass(frozen=True, slots=True)
class CountTrue(Operation):
    """How many elements of each sample's array of truth values hold."""

    options: tuple[tuple[str, Any], ...]
    elements: int

    def evaluate(self, arguments: Sequence[Array], context: Context) -> Array:
        small = np.uint16 if self.elements <= np.iinfo(np.uint16).max else np.uint32
        counts: Array = np.add.reduce(arguments[0].view(np.uint8), dtype=small, **dict(self.options))
        return counts.astype(_WHOLE)


@dataclass(slots=True)
class _Chain:
    """Additions of which each takes the sum of the one before, and nobody else does."""

    base: Node | None
    links: list[Node] = field(default_factory=list)
    terms: list[tuple[Term, ...]] = field(default_factory=list)

    def append(self, link: Node, *terms: Term) -> "_Chain":
        self.links.append(link)
        self.terms.append(terms)
        return self

    def computations(self, places: Mapping[int, int], private: set[int]) -> dict[int, Computation]:
        """Return how each link is computed; `places` are the nodes' places in the order."""
        last = len(self.links) - 1
        found = {}
        for position, (link, terms) in enumerate(zip(self.links, self.terms, strict=True)):
            before = self.links[position - 1 : position]
            if 0 < position < last:
                found[id(link)] = _inner_link(before[0], link, terms[0], places, private)
                continue
            start = [self.base] if position == last and self.base is not None else []
            tally = Tally(tuple(term.weight for term in terms), position == 0, position == last, self._may_overflow())
            found[id(link)] = Computation(tally, (*before, *(term.condition for term in terms), *start))
        return found

    def _may_overflow(self) -> bool:
        """Say whether the counts and what the chain started from may leave 64 bits together."""
        if self.base is None:
            return False
        counted = sum(abs(term.weight) for terms in self.terms for term in terms)
        return self.base.bound is None or self.base.bound + counted > INTEGER_LIMIT


def _inner_link(before: Node, link: Node, term: Term, places: Mapping[int, int], private: set[int]) -> Computation:
    """Count a condition as it is computed, if it is computed for that alone and right before."""
    condition, operation = term.condition, term.condition.operation
    for_that_alone = {id(condition), id(term.holder)} <= private and places[id(link)] - places[id(condition)] <= NEARBY
    if for_that_alone and isinstance(operation, Elementwise) and operation.is_bare(condition.parents):
        return Computation(Link(term.weight, operation.function), (before, *condition.parents))
    return Computation(Link(term.weight), (before, condition))


def tallies(order: Sequence[Node], targets: Sequence[Node], hidden: set[int]) -> dict[int, Computation]:
    """Find what can be counted in bytes among nodes in their order; nothing behind hidden ones is computed."""
    computed = [node for node in order if id(node) not in hidden]
    uses = Counter(id(parent) for node in computed for parent in node.parents)
    uses.update(id(target) for target in targets)
    private = {key for key, count in uses.items() if count == 1 and key not in hidden}
    private -= {id(target) for target in targets}
    places = {id(node): place for place, node in enumerate(order)}
    chains: dict[int, _Chain] = {}
    found: dict[int, Computation] = {}
    for node in computed:
        if _adds_whole_numbers(node):
            chain = _extended(node, chains, private, hidden) or _begun(node, hidden)
            if chain is not None:
                chains[id(node)] = chain
        elif isinstance(node.operation, ArrayFunction) and node.operation.traits.totals:
            found.update(_counted_array(node, private))
    for chain in chains.values():
        if len(chain.links) >= FEWEST_LINKS:
            found.update(chain.computations(places, private))
    return found


def _adds_whole_numbers(node: Node) -> bool:
    operation = node.operation
    return (
        isinstance(operation, Elementwise)
        and operation.function is np.add
        and node.dtype == _WHOLE
        and all(parent.shape == node.shape for parent in node.parents)
    )


def _extended(node: Node, chains: dict[int, _Chain], private: set[int], hidden: set[int]) -> _Chain | None:
    """Return the chain that this addition continues, which then ends here."""
    left, right = node.parents
    for before, counted in ((left, right), (right, left)):
        term = _term(counted, hidden)
        if term is not None and id(before) in chains and id(before) in private:
            return chains.pop(id(before)).append(node, term)
    return None


def _begun(node: Node, hidden: set[int]) -> _Chain | None:
    left, right = node.parents
    first, second = _term(left, hidden), _term(right, hidden)
    if first is not None and second is not None:
        return _Chain(None).append(node, first, second)
    for base, term in ((left, second), (right, first)):
        if term is not None and base.dtype == _WHOLE:
            nothing = isinstance(base.operation, ConstantValue) and not base.operation.array.any()
            return _Chain(None if nothing else base).append(node, term)
    return None


def _term(node: Node, hidden: set[int]) -> Term | None:
    """Read a node as a small whole number under a condition, if it is one."""
    if node.dtype == np.bool_:
        return Term(node, 1, node)
    if node.dtype != _WHOLE or id(node) in hidden:
        return None
    parents = node.parents
    match node.operation:
        case Cast():
            return Term(parents[0], 1, node) if parents[0].dtype == np.bool_ else None
        case Elementwise(traits=traits) if traits.factor == 1:
            return _product(node, *parents) or _product(node, *reversed(parents))
        case _:
            return None


def _product(node: Node, condition: Node, factor: Node) -> Term | None:
    if condition.dtype != np.bool_ or not isinstance(factor.operation, ConstantValue) or factor.shape != ():
        return None
    weight = int(factor.operation.array[0])
    return Term(condition, weight, node) if 0 < weight <= LARGEST_COUNT else None


def _counted_array(node: Node, private: set[int]) -> dict[int, Computation]:
    """Count the elements of an array, or the quantities it was put together from."""
    assert isinstance(node.operation, ArrayFunction)
    array = node.parents[0]
    if array.dtype != np.bool_:
        return {}
    parts = array.parents
    if isinstance(array.operation, Stack) and id(array) in private and node.shape == () and parts[0].shape == ():
        tally = Tally((1,) * len(parts), opens=True, closes=True)
        return {id(node): Computation(tally, parts)}
    elements = int(np.prod(array.shape))
    return {id(node): Computation(CountTrue(node.operation.options, elements), node.parents)}
