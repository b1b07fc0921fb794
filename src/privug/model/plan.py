"""Evaluation of a model graph on a batch: every node once, freed after its last use; counts are kept in bytes.

A loop that counts is a long chain of additions of conditions, most of whose sums nobody else looks at. Adding a
condition to 64-bit numbers moves eight times as many bytes as adding it to a byte, which holds up to 255 of them.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from privug import interruption
from privug.errors import PrivugError
from privug.model.failures import evaluate_again, nothing, stand_ins
from privug.model.integers import INTEGER_LIMIT, refuse_overflow
from privug.model.node import Array, ConstantValue, Context, Node, Operation, ancestors
from privug.model.numpy_functions import Cast
from privug.model.operations import ArrayFunction, Elementwise, SampleFailure, Stack
from privug.model.traits import traits_of

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


# One block's intermediate arrays should stay in the processor's cache; beyond 2**14 samples a
# block gains nothing, because the cost of starting an operation is already well below 1 %.
BLOCK_BYTES = 2 << 20
LARGEST_BLOCK = 1 << 14
# Starting an operation takes as long as computing some thousand numbers. Where a program computes with single numbers
# out of many, such as each of 10,000 cells, a block may leave the cache rather than start all that for a few samples.
FEWEST_NUMBERS = 1 << 9
MOST_BLOCK_BYTES = 128 << 20
LARGEST_OPAQUE_BLOCK = 1 << 8


@dataclass(frozen=True, slots=True)
class _Step:
    node: Node
    operation: Operation
    slot: int
    arguments: tuple[int, ...]
    freed: tuple[int, ...]
    reusable: int | None
    """The slot whose array may be overwritten with the result, because nobody needs it any more."""
    function: Callable[..., Array] | None
    """The NumPy function that does it all, where there is nothing else to see to."""
    excused: bool
    """Whether samples for which this fails may be left out."""

    def evaluate(self, values: Sequence[Any], context: Context) -> Array:
        """Compute the node from the values of its arguments."""
        arguments = [values[slot] for slot in self.arguments]
        if self.reusable is not None:
            spare = values[self.reusable]
            if len(spare) == context.samples and spare.dtype == self.node.dtype:
                if self.function is not None:
                    return self.function(*arguments, out=spare)
                assert isinstance(self.operation, Elementwise)
                return self.operation.evaluate_into(arguments, spare)
        return self.operation.evaluate(arguments, context) if self.function is None else self.function(*arguments)

    def evaluate_excluding(self, values: Sequence[Any], context: Context, strict: Context) -> Array:
        """Compute the node, leaving out samples for which that fails, or the strict ones those that failed before."""
        failed = context.failed
        assert failed is not None
        if self.function is not None or (self.excused and not self.operation.opaque) or not failed.any():
            try:
                return self.evaluate(values, context if self.excused else strict)
            except (SampleFailure, PrivugError) as failure:
                if not self.excused or self.operation is not self.node.operation:
                    raise
                return evaluate_again(self.node, [values[slot] for slot in self.arguments], context, failure)
        if failed.all():
            return nothing(self.node, context.samples)
        arguments = stand_ins([values[slot] for slot in self.arguments], failed)
        return self.operation.evaluate(arguments, context if self.excused else strict)


class Plan:
    """The order of evaluation for some target nodes.

    Targets come first to last, so that adding a target at the end changes no random number of the
    others. `known` nodes are not computed: their values are handed to `run`. Failures may be left out if they are
    those of `excused` nodes or of what these depend on; by default, all of them.
    """

    def __init__(
        self, targets: Sequence[Node], known: Sequence[Node] = (), excused: Sequence[Node] | None = None
    ) -> None:
        self._targets = list(targets)
        hidden = {id(node) for node in known}
        order = _needed(ancestors(targets), targets, hidden, {})
        ways = tallies(order, targets, hidden)
        order = _needed(order, targets, hidden, ways)
        self._slots = {id(node): slot for slot, node in enumerate(order)}
        constants = [None if id(node) in hidden else _constant(node) for node in order]
        # NumPy is twice as quick with a number that has no axis to stretch: behind all others, such ones stand again.
        self._constants = constants + [_bare(array) for array in constants]
        # Rows cannot stand in for one another where samples have different numbers of them.
        rows = [node for node in order if any(one.operation.by_rows for one in (node, *node.parents))]
        pardoned = {id(node) for node in (order if excused is None else (*rows, *ancestors(excused)))}
        self._steps, peak = _schedule(order, self._slots, self._targets, hidden, ways, pardoned)
        self.bytes_per_sample = max(peak, 1)
        self._numbers_per_step = sum(math.prod(step.node.shape) for step in self._steps) / max(1, len(self._steps))
        self.random_numbers = sum(math.prod(node.shape) for node in order if node.is_random)
        self.is_opaque = any(node.operation.opaque for node in order)
        self.can_fail = any(step.node.operation.can_fail(step.node.parents) for step in self._steps)

    def uses(self, node: Node) -> bool:
        """Say whether the value of a known node is needed."""
        return id(node) in self._slots

    @property
    def block(self) -> int:
        """How many samples are evaluated at a time; it follows from the model alone, never from the limits."""
        largest = LARGEST_OPAQUE_BLOCK if self.is_opaque else LARGEST_BLOCK
        cached, held = (limit // self.bytes_per_sample for limit in (BLOCK_BYTES, MOST_BLOCK_BYTES))
        worth_starting = int(FEWEST_NUMBERS / max(1.0, self._numbers_per_step))
        return max(1, min(largest, max(cached, min(held, worth_starting))))

    @property
    def roots(self) -> list[Node]:
        """The nodes that are drawn, in order; programs that are called are none of them."""
        return [step.node for step in self._steps if step.node.is_random and not step.node.operation.opaque]

    def run(
        self,
        samples: int,
        rng: np.random.Generator,
        known: Mapping[Node, Array] | None = None,
        *,
        forgiving: bool = False,
        failed: Array | None = None,
    ) -> list[Array]:
        """Evaluate the targets on a batch of samples.

        `forgiving` puts zeros for all samples where an operation fails. With `failed`, an array of marks, samples are
        marked for which one fails; the values of those mean nothing.
        """
        interruption.check()
        context, strict = Context(samples, rng, failed), Context(samples, rng)
        values: list[Any] = self._constants.copy()
        for node, array in (known or {}).items():
            slot = self._slots.get(id(node))
            if slot is not None:
                values[slot] = array if array.dtype == node.dtype else array.astype(node.dtype)
        with np.errstate(all="ignore"):
            for step in self._steps:
                try:
                    if failed is None:
                        values[step.slot] = step.evaluate(values, context)
                    else:
                        values[step.slot] = step.evaluate_excluding(values, context, strict)
                except SampleFailure:
                    if not forgiving:
                        raise
                    values[step.slot] = nothing(step.node, samples)
                for slot in step.freed:
                    values[slot] = None
        return [_full(target, values[self._slots[id(target)]], samples) for target in self._targets]


def computed(nodes: Sequence[Node], known: Mapping[Node, Array], samples: int) -> list[Array]:
    """Return the values of functions of known quantities; nothing else about them is random."""
    return Plan(nodes, list(known)).run(samples, np.random.Generator(np.random.SFC64(0)), known)


def _constant(node: Node) -> Array | None:
    return node.operation.array if isinstance(node.operation, ConstantValue) else None


def _bare(constant: Array | None) -> Array | None:
    return None if constant is None or constant.ndim != 1 else constant.reshape(())


def _full(node: Node, array: Array, samples: int) -> Array:
    if len(array) == samples or node.operation.by_rows:
        return array
    return np.repeat(array, samples, axis=0)


def _parents(node: Node, ways: Mapping[int, Computation]) -> tuple[Node, ...]:
    way = ways.get(id(node))
    return node.parents if way is None else way.parents


def _needed(
    order: list[Node], targets: Sequence[Node], hidden: set[int], ways: Mapping[int, Computation]
) -> list[Node]:
    """Return the nodes to evaluate in order, not looking behind those whose values are known."""
    if not hidden and not ways:
        return order
    needed: set[int] = set()
    frontier = list(targets)
    while frontier:
        node = frontier.pop()
        if id(node) not in needed:
            needed.add(id(node))
            frontier.extend(() if id(node) in hidden else _parents(node, ways))
    return [node for node in order if id(node) in needed]


def _schedule(
    order: Sequence[Node],
    slots: Mapping[int, int],
    targets: Sequence[Node],
    hidden: set[int],
    ways: Mapping[int, Computation],
    excused: set[int],
) -> tuple[list[_Step], int]:
    """Lay out the steps, with what each may free or overwrite, and the bytes alive per sample at the peak."""
    kept = {slots[id(target)] for target in targets}
    computed = [node for node in order if id(node) not in hidden]
    last_use = {slots[id(parent)]: slots[id(node)] for node in computed for parent in _parents(node, ways)}
    viewed = {slots[id(parent)] for node in computed if not node.operation.fresh for parent in node.parents}
    steps: list[_Step] = []
    alive = peak = 0
    sizes = [node.dtype.itemsize * math.prod(node.shape) for node in order]
    for node in computed:
        slot = slots[id(node)]
        operation = ways[id(node)].operation if id(node) in ways else node.operation
        arguments = tuple(slots[id(parent)] for parent in _parents(node, ways))
        dying = tuple(s for s in dict.fromkeys(arguments) if last_use[s] == slot and s not in kept)
        reusable = None
        if dying and isinstance(operation, Elementwise) and isinstance(operation.function, np.ufunc):
            owned = (s for s in dying if s not in viewed and arguments.count(s) == 1 and id(order[s]) not in hidden)
            reusable = next((s for s in owned if _fits(order[s], node)), None)
        alive += sizes[slot]
        peak = max(peak, alive)
        freed = dying + ((slot,) if slot not in last_use and slot not in kept else ())
        alive -= sum(sizes[s] for s in freed)
        if _constant(node) is None:
            function, arguments = _called(operation, arguments, order, hidden)
            freed = tuple(s for s in freed if _constant(order[s]) is None)
            steps.append(_Step(node, operation, slot, arguments, freed, reusable, function, id(node) in excused))
    return steps, peak


def _called(
    operation: Operation, arguments: tuple[int, ...], order: Sequence[Node], hidden: set[int]
) -> tuple[Callable[..., Array] | None, tuple[int, ...]]:
    """Return the function that does an operation alone, if one does, and the slots that the operation takes."""
    parents = [order[slot] for slot in arguments]
    alone = isinstance(operation, Elementwise) and operation.is_bare(parents)
    single = [_constant(node) is not None and node.shape == () and id(node) not in hidden for node in parents]
    if (alone or isinstance(operation, Link)) and not all(single):
        arguments = tuple(s + len(order) if bare else s for s, bare in zip(arguments, single, strict=True))
    return operation.function if alone and isinstance(operation, Elementwise) else None, arguments


def _fits(spare: Node, node: Node) -> bool:
    """Say whether a node's result may be written over an array that nobody needs any more."""
    return spare.operation.fresh and spare.dtype == node.dtype and spare.shape == node.shape
