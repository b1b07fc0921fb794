"""Elimination: states of a model round by round, forgetting what is no longer needed and merging what is then equal.

A count over sixty people has 2^60 states behind it; but after each person only the count so far matters, of which there
are sixty at most. The same goes for every program that uses its inputs one after the other: sums, counts, extremes,
loops with conditions, rows whose columns depend on each other or on what all rows share.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np

from privug.inference.exact.finite.elements import Elements
from privug.inference.exact.finite.ordering import Schedule, schedule
from privug.inference.exact.finite.rounds import eliminated, full, value_of
from privug.inference.exact.finite.states import States
from privug.inference.support import is_truncated, lost_in_tails
from privug.model.node import Array, ConstantValue, Node, ancestors
from privug.prior.family import Draw, family_of


class Elimination:
    """The states of some targets alone, in the place of those of all roots behind them."""

    def __init__(self, targets: Sequence[Node], start: States) -> None:
        self.nodes = [node for node in dict.fromkeys(targets) if not isinstance(node.operation, ConstantValue)]
        self._start = start
        elements = Elements(self.nodes, list(start.arrays))
        self._parts = {node: elements.all_of(node) for node in self.nodes}
        self._single = list(dict.fromkeys(part for parts in self._parts.values() for part in parts))
        self._cut = 0.0

    @cached_property
    def roots(self) -> list[Node]:
        """The roots that are brought in."""
        return [one.root for one in self.schedule.rounds if one.root is not None]

    @cached_property
    def schedule(self) -> Schedule:
        """The rounds."""
        return schedule(self._single, self._start.arrays, len(self._start))

    @property
    def endless(self) -> Node | None:
        """A root whose values cannot be listed, if there is one."""
        behind = (node for node in ancestors(self._single) if isinstance(node.operation, Draw))
        return next((root for root in behind if not family_of(root).listable), None)

    @property
    def lost(self) -> float:
        """The probability that is left out or misplaced."""
        families = [family_of(root) for root in self.roots]
        cut = lost_in_tails(sum(map(is_truncated, self.roots))) + self._cut
        return cut + sum(family.lost for family in families)

    def blocks(self, block: int) -> Iterator[States]:
        """Yield the states of the targets, a block at a time."""
        states = self.states
        for begin in range(0, len(states), block):
            yield states.take(slice(begin, begin + block))

    @cached_property
    def states(self) -> States:
        """All states of the targets, and how likely each is."""
        final, self._cut = eliminated(self._start, self.schedule)
        arrays = {node: self._joined(node, final) for node in self.nodes}
        return States(arrays, final.weights)

    def _joined(self, node: Node, final: States) -> Array:
        parts = [full(value_of(part, final.arrays), len(final)) for part in self._parts[node]]
        if not node.shape:
            return parts[0].astype(node.dtype, copy=False)
        return np.stack(parts, axis=1).reshape(len(final), *node.shape).astype(node.dtype, copy=False)
