"""Evaluation of a model graph on a batch: every needed node once, freed after its last use."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privug import interruption
from privug.errors import PrivugError
from privug.model.exclusion import evaluate_again, nothing, stand_ins
from privug.model.node import Array, ConstantValue, Context, Node, Operation, ancestors
from privug.model.operations import Elementwise, SampleFailure
from privug.model.tallies import Computation, Link, tallies

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
