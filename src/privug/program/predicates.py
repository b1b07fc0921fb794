"""A predicate on a batch of values: as one array expression where it can be traced, else value by value."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from privug.arguments import is_truth, shown
from privug.errors import ArgumentError, ProgramError
from privug.model.batch import Batch
from privug.model.node import Array, Context, Kind, Node, Operation
from privug.model.operations import SampleFailure
from privug.model.structure import flatten
from privug.model.variable import RandomVariable
from privug.program.outputs import FAILURES
from privug.program.tracing import evaluate_on, trace

CHECKS = 32


class Given(Operation):
    """Stands for a quantity whose values are at hand."""

    def evaluate(self, arguments: Sequence[Array], context: Context) -> Array:
        raise AssertionError("the values of this node are always handed in")


def holds(predicate: Callable[[Any], Any], batch: Batch) -> Array:
    """Return for each value whether the predicate holds."""
    traced = _traced(predicate, batch)
    if traced is not None:
        checked = np.linspace(0, len(batch) - 1, min(CHECKS, len(batch))).astype(int)
        if list(traced[checked]) == [_verdict(predicate, value) for value in batch.take(checked).values()]:
            return traced
    codes, support = batch.factorized()
    verdicts = np.array([_verdict(predicate, value) for value in support], bool)
    return verdicts[codes]


def _traced(predicate: Callable[[Any], Any], batch: Batch) -> Array | None:
    if any(column.array.dtype == object for column in batch.columns):
        return None
    known = {Node(Given(), (), c.array.shape[1:], c.array.dtype, c.levels, Kind.MIXED): c.array for c in batch.columns}
    value = batch.structure.build(RandomVariable(node) for node in known)
    verdict = trace(predicate, [value], {})
    leaves = flatten(verdict.output)[1]
    if verdict.obstacle is not None or len(leaves) != 1 or not isinstance(leaves[0], RandomVariable):
        return None
    node = leaves[0].node
    if node.shape != () or node.levels is not None:
        return None
    try:
        return np.asarray(evaluate_on([node], known, len(batch))[0] != 0)
    except (SampleFailure, ProgramError):  # which value it was, shows when they are taken one by one
        return None


def _verdict(predicate: Callable[[Any], Any], value: Any) -> bool:
    try:
        verdict = predicate(value)
    except FAILURES as error:
        raise ArgumentError(
            f"the predicate failed with {type(error).__name__}: {error}, on the value {shown(value)}"
        ) from error
    if not is_truth(verdict):
        raise ArgumentError(f"a predicate must return True or False, not {shown(verdict)}")
    return bool(verdict)
