"""Failures inside of `try`: told of before they happen, so that the program goes on elsewhere where they do.

Outside of `try` an operation that fails for some samples fails when it is evaluated. Inside, control flow depends on
it: whoever makes such an operation tells first under which condition it fails; from then on code runs elsewhere only.
"""

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from privug.model.exclusion import stand_ins
from privug.model.node import Array, Context, Node, Operation
from privug.model.operations import SampleFailure


class Diversions(Protocol):
    """What listens to failures while the body of a `try` is traced."""

    known: set[int]
    """The operations that can fail and were told of, by the identity of their nodes."""

    def divert(self, condition: Callable[[], Node], error: Exception) -> None:
        """Let the program go on elsewhere where a condition holds, if the error is one that is caught."""


diversions: ContextVar[Diversions | None] = ContextVar("diversions", default=None)
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
