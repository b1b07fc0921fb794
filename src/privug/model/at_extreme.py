"""What stands where a column is extreme: the best of many rows."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from privug.model.node import Array, Context, Kind, Node, Operation, Whole


@dataclass(frozen=True, slots=True)
class AtExtreme(Operation):
    """The element of a second array that stands where the first is largest or smallest: first or last among equals.

    A third array may say which places count; where none does, the result means nothing.
    """

    largest: bool
    last: bool

    selects = True

    def evaluate(self, arguments: Sequence[Array], context: Context) -> Array:
        keys, values, *counting = arguments
        places = self._places(keys, *counting)
        samples = max(len(places), len(values))
        values = np.broadcast_to(values, (samples, *values.shape[1:]))
        result: Array = values[np.arange(samples), np.broadcast_to(places, (samples,))]
        return result

    def _places(self, keys: Array, counting: Array | None = None) -> Array:
        """Return the place of the extreme for each sample."""
        if counting is None:
            return self._first(keys, np.argmax if self.largest else np.argmin)
        never = _beyond(keys.dtype, self.largest)
        possible = np.where(counting, keys, never)
        top = possible.max(axis=1) if self.largest else possible.min(axis=1)
        # What does not count may have the same number: it is never taken all the same.
        return self._first((keys == top[:, np.newaxis]) & counting, np.argmax)

    def _first(self, array: Array, search: type(np.argmax)) -> Array:  # type: ignore[valid-type]
        if not self.last:
            return np.asarray(search(array, axis=1))
        return np.asarray(array.shape[1] - 1 - search(array[:, ::-1], axis=1))

    def wins(self, key: Node, best: Node) -> tuple[str, Sequence[Node]]:
        """Return the comparison by which one element takes the place of the best so far."""
        name = "greater" if self.largest else "less"
        return name + ("_equal" if self.last else ""), (key, best)

    def kind(self, parents: Sequence[Node]) -> Kind:
        return parents[1].kind

    def whole(self, parents: Sequence[Node]) -> Whole:
        return parents[1].whole


def _beyond(dtype: "np.dtype[np.generic]", largest: bool) -> object:
    """Return a number that is not taken as long as there is another one."""
    if dtype.kind == "f":
        return -np.inf if largest else np.inf
    if dtype.kind == "b":
        return not largest
    limits = np.iinfo(dtype)
    return limits.min if largest else limits.max


def at_extreme(keys: Node, values: Node, counting: Node | None, *, largest: bool, last: bool) -> Node:
    """Make the node of the element that stands where the keys are extreme."""
    parents = (keys, values) if counting is None else (keys, values, counting)
    operation = AtExtreme(largest, last)
    node = Node(operation, parents, values.shape[1:], values.dtype, values.levels, operation.kind(parents))
    node.bound, node.numpy = values.bound, values.numpy
    return node
