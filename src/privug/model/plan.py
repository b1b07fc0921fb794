"""Evaluation of a model graph on a batch: every needed node once, freed after its last use."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privug.model.node import Array, Context, Node, ancestors
from privug.model.operations import Elementwise, SampleFailure

# One block's intermediate arrays should stay in the processor's cache; beyond 2**14 samples a
# block gains nothing, because the cost of starting an operation is already well below 1 %.
BLOCK_BYTES = 2 << 20
LARGEST_BLOCK = 1 << 14
LARGEST_OPAQUE_BLOCK = 1 << 8


@dataclass(frozen=True, slots=True)
class _Step:
    node: Node
    slot: int
    arguments: tuple[int, ...]
    freed: tuple[int, ...]
    reusable: int | None
    """The slot whose array may be overwritten with the result, because nobody needs it any more."""


class Plan:
    """The order of evaluation for some target nodes.

    Targets come first to last, so that adding a target at the end changes no random number of the
    others. `known` nodes are not computed: their values are handed to `run`.
    """

    def __init__(self, targets: Sequence[Node], known: Sequence[Node] = ()) -> None:
        self._targets = list(targets)
        self._known = list(known)
        hidden = {id(node) for node in known}
        order = _cut_ancestors(targets, hidden)
        self._slots = {id(node): slot for slot, node in enumerate(order)}
        self._steps, peak = _schedule(order, self._slots, self._targets, hidden)
        self.bytes_per_sample = max(peak, 1)
        self.random_numbers = sum(math.prod(node.shape) for node in order if node.is_random)
        self.is_opaque = any(node.operation.opaque for node in order)

    @property
    def block(self) -> int:
        """How many samples are evaluated at a time; it follows from the model alone, never from the limits."""
        largest = LARGEST_OPAQUE_BLOCK if self.is_opaque else LARGEST_BLOCK
        return max(1, min(largest, BLOCK_BYTES // self.bytes_per_sample))

    def run(
        self,
        samples: int,
        rng: np.random.Generator,
        known: Mapping[Node, Array] | None = None,
        *,
        forgiving: bool = False,
    ) -> list[Array]:
        """Evaluate the targets on a batch of samples; `forgiving` puts zeros where an operation fails."""
        context = Context(samples, rng)
        values: list[Any] = [None] * len(self._slots)
        for node, array in (known or {}).items():
            if id(node) in self._slots:
                values[self._slots[id(node)]] = array
        with np.errstate(all="ignore"):
            for step in self._steps:
                try:
                    values[step.slot] = _evaluate(step, values, context)
                except SampleFailure:
                    if not forgiving:
                        raise
                    values[step.slot] = np.zeros((samples, *step.node.shape), step.node.dtype)
                for slot in step.freed:
                    values[slot] = None
        return [_full(values[self._slots[id(target)]], samples) for target in self._targets]


def _evaluate(step: _Step, values: list[Any], context: Context) -> Array:
    arguments = [values[slot] for slot in step.arguments]
    operation = step.node.operation
    if step.reusable is not None and isinstance(operation, Elementwise):
        spare = values[step.reusable]
        if len(spare) == context.samples and spare.dtype == step.node.dtype:
            return operation.evaluate_into(arguments, spare)
    return operation.evaluate(arguments, context)


def _full(array: Array, samples: int) -> Array:
    if len(array) == samples:
        return array
    return np.repeat(array, samples, axis=0)


def _cut_ancestors(targets: Sequence[Node], hidden: set[int]) -> list[Node]:
    """Return the nodes to evaluate in order, not looking behind those whose values are known."""
    order = ancestors(targets)
    if not hidden:
        return order
    needed: set[int] = set()
    frontier = list(targets)
    while frontier:
        node = frontier.pop()
        if id(node) not in needed:
            needed.add(id(node))
            frontier.extend(() if id(node) in hidden else node.parents)
    return [node for node in order if id(node) in needed]


def _schedule(
    order: Sequence[Node], slots: Mapping[int, int], targets: Sequence[Node], hidden: set[int]
) -> tuple[list[_Step], int]:
    """Lay out the steps, with what each may free or overwrite, and the bytes alive per sample at the peak."""
    kept = {slots[id(target)] for target in targets}
    computed = [node for node in order if id(node) not in hidden]
    last_use = {slots[id(parent)]: slots[id(node)] for node in computed for parent in node.parents}
    viewed = {slots[id(parent)] for node in computed if not node.operation.fresh for parent in node.parents}
    steps: list[_Step] = []
    alive = peak = 0
    sizes = [node.dtype.itemsize * math.prod(node.shape) for node in order]
    for node in computed:
        slot = slots[id(node)]
        arguments = tuple(slots[id(parent)] for parent in node.parents)
        dying = tuple(s for s in dict.fromkeys(arguments) if last_use[s] == slot and s not in kept)
        reusable = None
        if dying and isinstance(node.operation, Elementwise) and isinstance(node.operation.function, np.ufunc):
            owned = (s for s in dying if s not in viewed and arguments.count(s) == 1 and id(order[s]) not in hidden)
            reusable = next((s for s in owned if _fits(order[s], node)), None)
        alive += sizes[slot]
        peak = max(peak, alive)
        freed = dying + ((slot,) if slot not in last_use and slot not in kept else ())
        alive -= sum(sizes[s] for s in freed)
        steps.append(_Step(node, slot, arguments, freed, reusable))
    return steps, peak


def _fits(spare: Node, node: Node) -> bool:
    """Say whether a node's result may be written over an array that nobody needs any more."""
    return spare.operation.fresh and spare.dtype == node.dtype and spare.shape == node.shape
