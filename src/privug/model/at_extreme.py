"""What stands where a column is extreme: the best of many rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privug.model.node import Array, Context, Kind, Node, Operation, Whole
from privug.model.operations import Elementwise


@dataclass(frozen=True, slots=True)
class AtExtreme(Operation):
    """The element of one array that stands where another, the keys, is largest or smallest: first or last among equals.

    The parents are the keys and the values. If it has `started` there are a key to beat and a value in case that no key
    does. If it is `guarded`, a last parent says which places count; without a start, one of them must.
    """

    largest: bool
    last: bool
    started: bool = False
    guarded: bool = False

    selects = True

    def evaluate(self, arguments: Sequence[Array], context: Context) -> Array:
        keys, values, *others = arguments
        counting = others[-1] if self.guarded else None
        places = self._places(keys, counting)
        samples = max(map(len, arguments))
        every = np.arange(samples)
        places = np.broadcast_to(places, (samples,))
        picked: Array = np.broadcast_to(values, (samples, *values.shape[1:]))[every, places]
        if not self.started:
            return picked
        start, before = others[:2]
        wins = self.beats.function(np.broadcast_to(keys, (samples, keys.shape[1]))[every, places], start)
        if counting is not None:
            wins &= np.broadcast_to(counting, (samples, counting.shape[1]))[every, places]
        return np.where(wins.reshape(-1, *(1,) * (picked.ndim - 1)), picked, before)

    def _places(self, keys: Array, counting: Array | None) -> Array:
        """Return the place of the extreme for each sample."""
        if counting is None:
            return self._first(keys, np.argmax if self.largest else np.argmin)
        possible = np.where(counting, keys, _beyond(keys.dtype, self.largest))
        top = possible.max(axis=1) if self.largest else possible.min(axis=1)
        # What does not count may have the same number: it is never taken all the same.
        return self._first((keys == top[:, np.newaxis]) & counting, np.argmax)

    def _first(self, array: Array, search: Callable[..., Any]) -> Array:
        if not self.last:
            return np.asarray(search(array, axis=1))
        return np.asarray(array.shape[1] - 1 - search(array[:, ::-1], axis=1))

    @property
    def beats(self) -> Elementwise:
        """The comparison by which one key takes the place of the best so far."""
        if self.largest:
            return Elementwise("greater_equal", np.greater_equal) if self.last else Elementwise("greater", np.greater)
        return Elementwise("less_equal", np.less_equal) if self.last else Elementwise("less", np.less)

    def kind(self, parents: Sequence[Node]) -> Kind:
        kinds = {parent.kind for parent in self.possible(parents)}
        return kinds.pop() if len(kinds) == 1 else Kind.MIXED

    def whole(self, parents: Sequence[Node]) -> Whole:
        return parents[1].whole if not self.started else False

    def possible(self, parents: Sequence[Node]) -> list[Node]:
        """Return the values that may be picked."""
        return [parents[1], parents[3]] if self.started else [parents[1]]


def _beyond(dtype: np.dtype[Any], largest: bool) -> Any:
    """Return a number that is not taken as long as there is another one."""
    if dtype.kind == "f":
        return -np.inf if largest else np.inf
    if dtype.kind == "b":
        return not largest
    limits = np.iinfo(dtype)
    return limits.min if largest else limits.max


def at_extreme(
    keys: Node, values: Node, start: tuple[Node, Node] | None, counting: Node | None, *, largest: bool, last: bool
) -> Node:
    """Make the node of the value that stands where the keys are extreme; the start is a key to beat and a value."""
    operation = AtExtreme(largest, last, start is not None, counting is not None)
    parents = (keys, values, *(start or ()), *(() if counting is None else (counting,)))
    node = Node(operation, parents, values.shape[1:], values.dtype, values.levels, operation.kind(parents))
    possible = operation.possible(parents)
    bounds = [one.bound for one in possible if one.bound is not None]
    node.bound = max(bounds) if len(bounds) == len(possible) else None
    node.numpy = possible[0].numpy if len({one.numpy for one in possible}) == 1 else None
    return node
