"""Conditions under which traced code runs, and the errors that it raises under some of them.

Code inside of `try` goes on only where nothing failed that is caught: what fails narrows the condition under which the
rest of the body runs.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from privug.errors import PrivugError
from privug.model.conditions import Mask, both, holds, negated
from privug.model.graph import everything_behind
from privug.model.maybe import Maybe, maybe
from privug.model.node import Array, Context, Kind, Node, Operation, ancestors, fallible
from privug.model.operations import SampleFailure
from privug.model.plates import Lane, current_plate, fold
from privug.model.structure import flatten
from privug.model.variable import RandomVariable, as_node, path_condition, refusals, refuse
from privug.scoping import Held, holding


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


_noted: Held[tuple[_Noted, ...]] = Held(())


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


class Notes:
    """What the trace has noted by now: refusals, what may fail, errors. What is noted later can be taken back."""

    def __init__(self) -> None:
        lists: list[list[Any] | None] = [refusals.get(), fallible.get(), *(noted.errors for noted in _noted.get())]
        self._lengths = [(noted, len(noted)) for noted in lists if noted is not None]
        self._traces = _noted.get()

    def undo(self) -> Callable[[], None]:
        """Take back what was noted since; return what notes it again."""
        later = [(noted, noted[length:]) for noted, length in self._lengths]
        traces = _noted.get()
        for noted, length in self._lengths:
            del noted[length:]
        _noted.set(self._traces)

        def noted_again() -> None:
            for noted, taken in later:
                noted.extend(taken)
            _noted.set(traces)

        return noted_again


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


def current() -> Mask:
    """Return the condition under which the code being traced runs."""
    path = path_condition.get()
    return True if path is None else path


def narrow(mask: Mask) -> None:
    """Let the code being traced run only where a further condition holds, to the end of the block at hand."""
    path = both(current(), mask)
    path_condition.set(None if path is True else path)


MOST_NESTED = 150
nesting: Held[int] = Held(0)
"""Under how many random conditions, one inside the other, the code being traced runs."""


@contextmanager
def under(mask: Mask) -> Iterator[None]:
    """Run code under a further condition."""
    if nesting.get() > MOST_NESTED:
        refuse("recursion that ends on a random condition")
    path, depth, caught = both(current(), mask), nesting.get() + (mask is not True), caught_so_far()
    try:
        with holding(path_condition, None if path is True else path), holding(nesting, depth):
            yield
    except Exception as error:
        if mask is not True and attempt_for(type(error)) is not None:
            refuse(f"{type(error).__name__} in a part of an expression, inside 'try',")
        raise
    finally:
        leave_out(caught)


class Failure(NamedTuple):
    """What a `try` caught, and under which condition."""

    mask: Mask
    error: Exception


class Attempt:
    """The body of a `try` that is being traced: what its handlers catch, and what failed so far.

    `known` are the operations that can fail and whose failures were told of; see `model.diverting`.
    """

    def __init__(self, caught: Sequence[Any]) -> None:
        outer = attempts.get()
        self.failures: list[list[Failure]] = [[] for _ in caught]
        self.masks: list[Mask] = []
        self.known: set[int] = outer[-1].known if outer else set()
        self._kinds = caught
        self._plate = current_plate.get()

    def handler(self, kind: type[BaseException]) -> int | None:
        """Return the position of the first handler that catches a kind of error."""
        if not issubclass(kind, Exception) or issubclass(kind, PrivugError):
            return None
        return next((place for place, kinds in enumerate(self._kinds) if issubclass(kind, kinds)), None)

    def catch(self, failing: Mask, error: Exception) -> None:
        """Let the program go on in a handler where a condition holds."""
        place = self.handler(type(error))
        assert place is not None
        if current_plate.get() is not self._plate:
            refuse(f"{type(error).__name__} for each of many rows, inside 'try',")
        self.failures[place].append(Failure(failing, error))
        self.masks.append(failing)

    def divert(self, condition: Callable[[], Node], error: Exception) -> None:
        """Let the program go on elsewhere where a condition holds, if the error is one that is caught."""
        if attempt_for(type(error)) is not None:
            fail_where(RandomVariable(condition()), error)


attempts: Held[tuple[Attempt, ...]] = Held(())
"""The `try` statements whose bodies are being traced, innermost last."""


def attempt_for(kind: type[BaseException]) -> Attempt | None:
    """Return the innermost `try` that catches a kind of error."""
    return next((attempt for attempt in reversed(attempts.get()) if attempt.handler(kind) is not None), None)


Caught = list[tuple[Attempt, int]]


def caught_so_far() -> Caught:
    """Return how much each `try` has caught by now."""
    return [(attempt, len(attempt.masks)) for attempt in attempts.get()]


def leave_out(before: Caught) -> bool:
    """Leave out what failed since then in code being traced that goes on; say whether anything did."""
    masks = [mask for attempt, number in before for mask in attempt.masks[number:]]
    for mask in masks:
        narrow(negated(mask))
    return bool(masks)


def fail_where(mask: Mask, error: Exception) -> None:
    """Let the program fail with an error where the mask holds and the code at hand runs: or go on in a handler."""
    failing, attempt = both(current(), mask), attempt_for(type(error))
    if failing is True or (mask is True and attempt is not None):  # there is nothing left to go on with
        raise error
    if failing is False or (current() is not True and holds(negated(failing))):
        return
    if attempt is not None:
        attempt.catch(failing, error)
        narrow(negated(mask))
        return
    plate = current_plate.get()
    fail_at(failing if plate is None else fold(plate, "any", failing), error)
