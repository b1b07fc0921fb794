"""Samples on which an operation fails: left out, or diverted to the handler of a `try` statement.

Outside of `try` an operation that fails for some samples fails when it is evaluated. Inside, control flow depends on
it: whoever makes such an operation tells first under which condition it fails; from then on code runs elsewhere only.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from privug.errors import PrivugError, is_own
from privug.model.node import Array, Context, Node, Operation
from privug.model.operations import SampleFailure
from privug.scoping import Held


def stand_ins(arguments: Sequence[Any], failed: Array) -> list[Any]:
    """Return arguments in which a sample that did not fail stands in for those that did; there must be one."""
    other = int(failed.argmin())
    return [_replaced(argument, failed, other) for argument in arguments]


def _replaced(argument: Any, failed: Array, other: int) -> Any:
    if not isinstance(argument, np.ndarray) or argument.shape[:1] != failed.shape:
        return argument
    changed = argument.copy()
    changed[failed] = argument[[other]]  # as an array of one: NumPy would hand out the parts of a tuple one by one
    return changed


def nothing(node: Node, samples: int) -> Array:
    """Return values that mean nothing."""
    return np.zeros((samples, *node.shape), node.dtype)


def evaluate_again(
    node: Node, arguments: Sequence[Any], context: Context, failure: SampleFailure | PrivugError
) -> Array:
    """Evaluate a node that failed without the samples for which it does, which are marked.

    Errors of Privug's own are no failures of the program: they are raised, unless they came of samples marked before.
    """
    failed, again = context.failed, False
    assert failed is not None
    while True:
        more = _marked(failure, failed) if isinstance(failure, SampleFailure) else False
        if not more and (again or not failed.any()):
            raise failure
        if failed.all():
            return nothing(node, context.samples)
        again = True
        try:
            return node.operation.evaluate(stand_ins(arguments, failed), context)
        except (SampleFailure, PrivugError) as another:
            failure = another


def _marked(failure: SampleFailure, failed: Array) -> bool:
    """Mark the samples that failed; say whether there are new ones."""
    more = failure.failing(len(failed)) & ~failed
    if is_own(failure.cause) and more.any():
        raise SampleFailure(int(more.argmax()), failure.cause, failure.label, more) from failure.cause
    failed |= more
    return bool(more.any())


class Diversions(Protocol):
    """What listens to failures while the body of a `try` is traced."""

    known: set[int]
    """The operations that can fail and were told of, by the identity of their nodes."""

    def divert(self, condition: Callable[[], Node], error: Exception) -> None:
        """Let the program go on elsewhere where a condition holds, if the error is one that is caught."""


diversions: Held[Diversions | None] = Held(None)
"""While the body of a `try` is traced: what listens to failures."""


def fails_where(condition: Callable[[], Node], error: Exception) -> None:
    """Tell that what is made next fails where a condition holds."""
    listening = diversions.get()
    if listening is not None:
        listening.divert(condition, error)


def told(node: Node) -> Node:
    """Return an operation that can fail, of whose failures all was told."""
    listening = diversions.get()
    if listening is not None:
        listening.known.add(id(node))
    return node


def fails(operation: Operation, parents: Sequence[Node], error: Exception) -> None:
    """Tell that an operation on some nodes may fail with a kind of error: where, is found out by trying it."""
    fails_where(lambda: Node(Fails(operation, type(error)), tuple(parents), (), np.dtype(bool)), error)


@dataclass(frozen=True, slots=True)
class Fails(Operation):
    """Whether another operation fails with a kind of error."""

    operation: Operation
    error: type[Exception]

    def evaluate(self, arguments: Sequence[Array], context: Context) -> Array:
        samples = max(map(len, arguments))
        wanted, failed = np.zeros(samples, np.bool_), np.zeros(samples, np.bool_)
        arguments = [np.broadcast_to(array, (samples, *array.shape[1:])) for array in arguments]
        while not failed.all():
            try:
                self.operation.evaluate(stand_ins(arguments, failed), context)
            except SampleFailure as failure:
                more = failure.failing(samples) & ~failed
                if not more.any():
                    raise
                failed |= more
                if isinstance(failure.cause, self.error):
                    wanted |= more
            else:
                break
        return wanted
