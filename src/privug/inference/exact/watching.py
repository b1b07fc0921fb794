"""Making sure that a program which is called state by state does not draw random numbers of its own."""

import copy
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from privug.errors import UnsuitableEngine
from privug.inference.question import Case
from privug.model.node import Node, ancestors, substitute
from privug.model.structure import flatten
from privug.model.variable import RandomVariable
from privug.program.calls import Call
from privug.program.external import External
from privug.program.tracing import shortened

CHECK_EVERY = 64
REPEATED = 4  # first calls that are made twice, to see randomness from elsewhere, such as the operating system's
MOST_PROGRAMS = 64  # that one evaluation calls state by state

MOST_REPEATED = 512  # calls of a block to a program in another language
UNSTEADY = (
    "engine='exact' cannot answer this: {} is not a function of its inputs: for {} it answered {!r}, then {!r}; "
    "engine='sample' can"
)
OWN_RANDOMNESS = "engine='exact' cannot answer this: {} draws random numbers of its own; engine='sample' can"


class Watched:
    """A program that raises where it has used the global generators, or answers one way, then another."""

    def __init__(self, program: Callable[..., Any], label: str) -> None:
        self._program = program
        self._label = label
        self._calls = 0
        self._repeated = 0
        self._before: Any = None

    def begin(self) -> None:
        """Forget the generators' states: they are set anew before a block of calls."""
        self._calls = 0

    def __call__(self, *positional: Any, **named: Any) -> Any:
        if self._calls == 0:
            self._before = _generators()
        self._calls += 1
        if self._repeated < REPEATED:
            self._repeated += 1
            self._call_twice(positional, named)
        try:
            return self._program(*positional, **named)
        finally:
            few = self._calls & (self._calls - 1) == 0
            if (few or self._calls % CHECK_EVERY == 0) and _generators() != self._before:
                raise UnsuitableEngine(OWN_RANDOMNESS.format(self._label))

    def _call_twice(self, positional: tuple[Any, ...], named: dict[str, Any]) -> None:
        answers = []
        for _ in range(2):
            try:  # on copies: programs may change what they get
                answer = self._program(*copy.deepcopy(positional), **copy.deepcopy(named))
            except Exception:  # told when it is called for good
                return
            answers.append(flatten(answer)[1])
        if any(_differ(left, right) for left, right in zip(*answers, strict=False)):
            raise UnsuitableEngine(OWN_RANDOMNESS.format(self._label))


def _differ(left: Any, right: Any) -> bool:
    """Say whether two numbers, arrays or texts differ; other objects are not compared."""
    if isinstance(left, np.ndarray) and isinstance(right, np.ndarray) and left.dtype.kind in "bif":
        return not np.array_equal(left, right, equal_nan=True)
    simple = isinstance(left, int | float | str) and isinstance(right, int | float | str)
    return simple and left != right and left == left


class Repeated(External):
    """A program in another language that raises where it answers the same question in two ways.

    Of each block of calls, up to so many are made a second time.
    """

    def __init__(self, program: External) -> None:
        self._program = program
        self.__name__ = program.__name__

    def call_many(self, calls: Sequence[Mapping[str, Any]]) -> list[Any]:
        """Answer many calls, some of them twice."""
        answers = self._program.call_many(calls)
        chosen = slice(None, None, max(1, len(calls) // MOST_REPEATED))
        for call, first, second in zip(
            calls[chosen], answers[chosen], self._program.call_many(calls[chosen]), strict=True
        ):
            if repr(first) != repr(second):
                raise UnsuitableEngine(UNSTEADY.format(self.__name__, shortened(call), first, second))
        return answers


def _generators() -> tuple[Any, ...]:
    state = np.random.get_state(legacy=False)
    return random.getstate(), state["state"]["key"].tobytes(), state["state"]["pos"], state["has_gauss"]


def watched(case: Case, query: Any) -> tuple[Case, Any, list[Watched]]:
    """Return the same case and query with every program that is called state by state being watched."""
    calls = [
        node
        for node in ancestors(_nodes((case.secret, case.output, case.facts, query)))
        if isinstance(node.operation, Call)
    ]
    if not calls:
        return case, query, []
    watchers: list[Watched] = []
    images: dict[Node, Node] = {}
    for node in calls:
        assert isinstance(node.operation, Call)
        if isinstance(node.operation.program, External):
            operation = replace(node.operation, program=Repeated(node.operation.program))
        else:
            watchers.append(Watched(node.operation.program, node.operation.label))
            operation = replace(node.operation, program=watchers[-1])
        parents = tuple(substitute(node.parents, images))
        images[node] = Node(operation, parents, node.shape, node.dtype, node.levels, node.kind)
    secret, output, facts, asked = _replaced((case.secret, case.output, case.facts, query), images)
    return replace(case, secret=secret, output=output, facts=facts), asked, watchers


def _nodes(value: Any) -> list[Node]:
    return [leaf.node for leaf in flatten(value)[1] if isinstance(leaf, RandomVariable)]


def _replaced(value: Any, images: Mapping[Node, Node]) -> Any:
    structure, leaves = flatten(value)
    variables = [leaf for leaf in leaves if isinstance(leaf, RandomVariable)]
    changed = iter(substitute([variable.node for variable in variables], images))
    return structure.build(
        RandomVariable(next(changed)) if isinstance(leaf, RandomVariable) else leaf for leaf in leaves
    )


def is_untouched(rng: np.random.Generator) -> bool:
    """Say whether a generator that started from zero was used for nothing but to seed blocks of calls."""
    expected = np.random.Generator(np.random.SFC64(0))
    for _ in range(MOST_PROGRAMS):
        if _position(expected) == _position(rng):
            return True
        expected.integers(2**32)
    return False


def _position(rng: np.random.Generator) -> Any:
    state: Any = rng.bit_generator.state
    return state["state"]["state"].tolist(), state["has_uint32"], state["uinteger"]
