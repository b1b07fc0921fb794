"""Numbers that are there for some samples only: what is released is a number or, where suppressed, None or a text."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from privug.model import numpy_functions
from privug.model.categories import map_levels
from privug.model.node import Array, ConstantValue, Context, Node, Operation, Whole, fallible, path_condition
from privug.model.operations import Elementwise, elementwise
from privug.model.propositions import implies
from privug.model.refusal import refuse
from privug.model.traits import traits_of
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


class _Parts(NamedTuple):
    """A quantity as what it may be: when it is a number, which, and what it is otherwise."""

    present: Node | bool
    value: Node | None = None
    otherwise: Any = ...


def choice(condition: Node, yes: Node, no: Node) -> Node | None:
    """Make the node of a choice between numbers and one value that is none; None if it is another kind of choice."""
    if not _mixes(yes, no) or condition.levels is not None or any(node.shape for node in (condition, yes, no)):
        return None
    left, right = _parts(yes), _parts(no)
    if left is None or right is None:
        return None
    if condition.dtype != np.bool_:
        condition = numpy_functions.cast(condition, np.dtype(bool))
    others = {(type(part.otherwise), part.otherwise) for part in (left, right) if part.present is not True}
    present, value = _either_truth(condition, left.present, right.present), left.value or right.value
    if len(others) != 1 or isinstance(present, bool) or value is None:
        return None
    if left.value is not None and right.value is not None and left.value is not right.value:
        value = numpy_functions.where(condition, left.value, right.value)
    return maybe(present, value, others.pop()[1])


def _mixes(*nodes: Node) -> bool:
    """Say whether one quantity is a random number, and one is no number, at least for some samples."""
    numbers = [
        is_maybe(node) or (node.levels is None and not isinstance(node.operation, ConstantValue)) for node in nodes
    ]
    return any(numbers) and any(is_maybe(node) or node.levels is not None for node in nodes)


def _parts(node: Node) -> _Parts | None:
    """Take a quantity apart; None if it is more than numbers and one other value."""
    if isinstance(node.operation, Maybe):
        return _Parts(node.parents[0], node.parents[1], node.operation.otherwise)
    if node.levels is None:
        return _Parts(True, node) if node.dtype.kind in "bif" else None
    others = [level for level in node.levels if not _is_number(level)]
    if len(others) != 1 or not (others[0] is None or isinstance(others[0], str)):
        return None
    if len(node.levels) == 1:
        return _Parts(False, None, others[0])
    stand_in = next(level for level in node.levels if _is_number(level))
    value = map_levels(node, lambda level: level if _is_number(level) else stand_in)
    if value.levels is not None:
        return None
    return _Parts(map_levels(node, _is_number), value, others[0])


def _is_number(level: Any) -> bool:
    return isinstance(level, int | float)


def _either_truth(condition: Node, yes: Node | bool, no: Node | bool) -> Node | bool:
    """Return a condition that is one or another, as a third says."""
    if yes is no:
        return yes
    if isinstance(yes, bool):
        taken = condition if yes else _logic("bitwise_not", condition)
        return taken if isinstance(no, bool) else _logic("bitwise_or" if yes else "bitwise_and", taken, no)
    if isinstance(no, bool):
        return (
            _logic("bitwise_or", _logic("bitwise_not", condition), yes) if no else _logic("bitwise_and", condition, yes)
        )
    otherwise = _logic("bitwise_and", _logic("bitwise_not", condition), no)
    return _logic("bitwise_or", _logic("bitwise_and", condition, yes), otherwise)


def _logic(name: str, *nodes: Node) -> Node:
    return elementwise(Elementwise(name, traits_of(name).function, True), nodes)
