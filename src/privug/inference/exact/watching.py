"""Making sure that a program which is called state by state does not draw random numbers of its own."""

import random
from collections.abc import Callable, Mapping
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

CHECK_EVERY = 64
MOST_PROGRAMS = 64  # that one evaluation calls state by state

OWN_RANDOMNESS = "engine='exact' cannot answer this: {} draws random numbers of its own; engine='sample' can"


class Watched:
    """A program that raises where it has used Python's or NumPy's global generators."""

    def __init__(self, program: Callable[..., Any], label: str) -> None:
        self._program = program
        self._label = label
        self._calls = 0
        self._before: Any = None

    def begin(self) -> None:
        """Forget the generators' states: they are set anew before a block of calls."""
        self._calls = 0

    def __call__(self, *positional: Any, **named: Any) -> Any:
        if self._calls == 0:
            self._before = _generators()
        self._calls += 1
        try:
            return self._program(*positional, **named)
        finally:
            few = self._calls & (self._calls - 1) == 0
            if (few or self._calls % CHECK_EVERY == 0) and _generators() != self._before:
                raise UnsuitableEngine(OWN_RANDOMNESS.format(self._label))


def _generators() -> tuple[Any, ...]:
    state = np.random.get_state(legacy=False)
    return random.getstate(), state["state"]["key"].tobytes(), state["state"]["pos"], state["has_gauss"]


def watched(case: Case, query: Any) -> tuple[Case, Any, list[Watched]]:
    """Return the same case and query with every program that is called state by state being watched."""
    calls = [node for node in ancestors(_nodes((case.secret, case.output, query))) if isinstance(node.operation, Call)]
    if not calls:
        return case, query, []
    watchers: list[Watched] = []
    images: dict[Node, Node] = {}
    for node in calls:
        assert isinstance(node.operation, Call)
        if isinstance(node.operation.program, External):
            continue
        watchers.append(Watched(node.operation.program, node.operation.label))
        operation = replace(node.operation, program=watchers[-1])
        parents = tuple(substitute(node.parents, images))
        images[node] = Node(operation, parents, node.shape, node.dtype, node.levels, node.kind)
    secret, output, asked = _replaced((case.secret, case.output, query), images)
    return replace(case, secret=secret, output=output), asked, watchers


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
