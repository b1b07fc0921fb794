"""Errors that a traced program raises for some inputs only: remembered while it is traced, raised when it is run."""

from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from privug.errors import PrivugError
from privug.model.graph import everything_behind
from privug.model.maybe import Maybe, maybe
from privug.model.node import Array, Context, Kind, Node, Operation, ancestors, fallible
from privug.model.operations import SampleFailure
from privug.model.plates import Lane
from privug.model.structure import flatten
from privug.model.variable import RandomVariable, as_node, refusals, refuse
from privug.scoping import holding


@dataclass(frozen=True, slots=True, eq=False)
class Checked(Operation):
    """A quantity that is to be had only where no error is raised.

    The conditions of errors follow it, and then what the program computed in vain, which may have failed.
    """

    errors: tuple[Exception, ...]

    fresh = False
    selects = True

    def evaluate(self, arguments: Sequence[Array], context: Context) -> Array:
        conditions = arguments[1 : 1 + len(self.errors)]
        raised = [pair for pair in zip(conditions, self.errors, strict=True) if pair[0].any()]
        own = [pair for pair in raised if isinstance(pair[1], PrivugError)]
        if raised:
            first, error = (own or raised)[0]
            failing = first if own else np.logical_or.reduce(np.broadcast_arrays(*(failing for failing, _ in raised)))
            raise SampleFailure(int(first.argmax()), error, failing=failing)
        return arguments[0]

    def can_fail(self, parents: Sequence[Node]) -> bool:
        return True

    def kind(self, parents: Sequence[Node]) -> Kind:
        return parents[0].kind


class _Noted(NamedTuple):
    """The errors of one program being traced; each trace has a list of refusals of its own."""

    trace: list[str] | None
    errors: list[tuple[RandomVariable, Exception]]


_noted: ContextVar[tuple[_Noted, ...]] = ContextVar("noted", default=())


def fail_at(failing: RandomVariable, error: Exception) -> None:
    """Remember that the program being traced raises an error under a condition."""
    trace, error = refusals.get(), _with_plain_message(error)
    for noted in _noted.get():
        if noted.trace is trace:
            noted.errors.append((failing, error))
            return
    # Traces that refused something came to nothing.
    others = tuple(noted for noted in _noted.get() if not noted.trace)
    _noted.set((*others, _Noted(trace, [(failing, error)])))


def _with_plain_message(error: Exception) -> Exception:
    try:
        with holding(refusals, []):
            str(error)
    except Exception:  # what it is made of may not even be there
        return RuntimeError(f"{type(error).__name__}, with a random message")
    return error


def with_failures(output: Any) -> Any:
    """Return the output of the program being traced such that it fails where the program raised."""
    trace = refusals.get()
    errors = [error for noted in _noted.get() if noted.trace is trace for error in noted.errors]
    _noted.set(tuple(noted for noted in _noted.get() if noted.trace is not trace))
    structure, leaves = flatten(output)
    conditions = tuple(failing.node for failing, _ in errors)
    unused = _computed_in_vain([*(leaf.node for leaf in leaves if isinstance(leaf, RandomVariable)), *conditions])
    if not errors and not unused:
        return output
    if not leaves:
        refuse("an error under a random condition, in a program without output")
    operation = Checked(tuple(error for _, error in errors))
    return structure.build(_checked(leaf, operation, conditions + unused) for leaf in leaves)


def _computed_in_vain(used: Sequence[Node]) -> tuple[Node, ...]:
    """Return what the program computed without need, if that fails on some inputs: then the program fails there."""
    noted = fallible.get()
    if not noted:
        return ()
    reached = {id(node) for node in everything_behind(used)}
    unused = [node for node in noted if id(node) not in reached]
    # What is behind another of them is computed with it.
    inner = {id(node) for node in everything_behind([parent for other in unused for parent in other.parents])}
    unused = [node for node in unused if id(node) not in inner]
    if any(isinstance(node.operation, Lane) for node in ancestors(unused)):
        refuse("a result for each of many rows that is not used")
    return tuple(unused)


def _checked(leaf: Any, operation: Checked, parents: tuple[Node, ...]) -> RandomVariable:
    node = as_node(leaf)
    if isinstance(node.operation, Maybe):  # whether there is a number is known only where no error is raised
        present, value = node.parents
        return RandomVariable(maybe(_guarded(present, operation, parents), value, node.operation.otherwise))
    return RandomVariable(_guarded(node, operation, parents))


def _guarded(node: Node, operation: Checked, parents: tuple[Node, ...]) -> Node:
    checked = Node(operation, (node, *parents), node.shape, node.dtype, node.levels)
    checked.bound = node.bound
    return checked
