"""Numbers that are there for some samples only: what is released is a number or, where suppressed, None or a text."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privug.model.node import Array, Context, Node, Operation, Whole, fallible, path_condition, refuse
from privug.model.propositions import implies
from privug.model.values import retyped


@dataclass(frozen=True, slots=True)
class Maybe(Operation):
    """A number where there is one, and a plain value elsewhere; the parents are the condition and the number.

    Results are Python's own numbers, as a plain call returns them. What the number is where the condition fails
    means nothing: the code behind it did not run there, and what could fail in it was made harmless.
    """

    otherwise: Any
    levels: tuple[Any, ...] | None = None
    listed_whole: Whole = False

    absent = True

    def evaluate(self, arguments: Sequence[Array], context: Context) -> Array:
        samples = max(map(len, arguments))
        present, value = (np.broadcast_to(argument, samples) for argument in arguments)
        results = np.full(samples, self.otherwise, object)
        results[present] = self._plain(value[present])
        return results

    def _plain(self, values: Array) -> Any:
        if self.levels is None:
            return retyped(values.tolist(), self.listed_whole) if self.listed_whole else values.tolist()
        labels = np.empty(len(self.levels), object)
        labels[:] = self.levels
        return labels[values]


def maybe(present: Node, value: Node, otherwise: Any) -> Node:
    """Make the node of a quantity where a condition holds, and of a plain value elsewhere."""
    return Node(Maybe(otherwise, value.levels, value.whole), (present, value), (), np.dtype(object))


def is_maybe(node: Node) -> bool:
    """Say whether a quantity is there for some samples only."""
    return isinstance(node.operation, Maybe)


def where_present(node: Node) -> Node:
    """Return the number itself in code that runs only where there is one; any other quantity as it is.

    Elsewhere in a program being traced it is refused: Python would fail on it, or do something else.
    """
    if not is_maybe(node) or fallible.get() is None:
        return node
    if not surely_present(node):
        refuse("a number that may be missing")
    return node.parents[1]


def surely_present(node: Node) -> bool:
    """Say whether the code at hand runs only where a number is there that may be missing."""
    path = path_condition.get()
    return path is not None and implies(path.node, node.parents[0])
