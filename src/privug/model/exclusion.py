"""Going on without the samples for which something failed: others take their places, and they are marked."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from privug.errors import PrivugError, is_own
from privug.model.node import Array, Context, Node
from privug.model.operations import SampleFailure


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
