"""Errors that a traced program raises for some inputs only: remembered while it is traced, raised when it is run."""

from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from privug.model.node import Array, Context, Kind, Node, Operation
from privug.model.operations import SampleFailure
from privug.model.structure import flatten
from privug.model.variable import RandomVariable, as_node, refusals, refuse


@dataclass(frozen=True, slots=True, eq=False)
class Checked(Operation):
    """A quantity that is to be had only where no error is raised; the conditions of errors follow it."""

    errors: tuple[Exception, ...]

    fresh = False

    def evaluate(self, arguments: Sequence[Array], context: Context) -> Array:
        for failing, error in zip(arguments[1:], self.errors, strict=True):
            if failing.any():
                raise SampleFailure(int(np.flatnonzero(failing)[0]), error)
        return arguments[0]

    def kind(self, parents: Sequence[Node]) -> Kind:
        return parents[0].kind


class _Noted(NamedTuple):
    """The errors of one program being traced; each trace has a list of refusals of its own."""

    trace: list[str] | None
    errors: list[tuple[RandomVariable, Exception]]


_noted: ContextVar[tuple[_Noted, ...]] = ContextVar("noted", default=())


def fail_at(failing: RandomVariable, error: Exception) -> None:
    """Remember that the program being traced raises an error under a condition."""
    trace = refusals.get()
    for noted in _noted.get():
        if noted.trace is trace:
            noted.errors.append((failing, error))
            return
    # Traces that refused something came to nothing.
    others = tuple(noted for noted in _noted.get() if not noted.trace)
    _noted.set((*others, _Noted(trace, [(failing, error)])))


def with_failures(output: Any) -> Any:
    """Return the output of the program being traced such that it fails where the program raised."""
    trace = refusals.get()
    errors = [error for noted in _noted.get() if noted.trace is trace for error in noted.errors]
    _noted.set(tuple(noted for noted in _noted.get() if noted.trace is not trace))
    if not errors:
        return output
    structure, leaves = flatten(output)
    if not leaves:
        refuse("an error under a random condition, in a program without output")
    conditions = tuple(failing.node for failing, _ in errors)
    operation = Checked(tuple(error for _, error in errors))
    return structure.build(_checked(leaf, operation, conditions) for leaf in leaves)


def _checked(leaf: Any, operation: Checked, conditions: tuple[Node, ...]) -> RandomVariable:
    node = as_node(leaf)
    return RandomVariable(Node(operation, (node, *conditions), node.shape, node.dtype, node.levels))
