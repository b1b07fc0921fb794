"""The paths of a program: what it returns for each way its random conditions may turn out.

The program is called as it is, and what it draws with `pv.sample` is a random variable. Where it asks whether a
condition holds (`if`, `while`, `and`, `max`, ...) it is told so, and called once more to be told the opposite. So a
loop that ends early or a list of random length is nothing special: each path has a plain output, in which numbers may
be left that are functions of the draws. Symbolic execution, King, CACM 1976.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np

from privug.errors import PriorError
from privug.model.node import Array, ConstantValue, Kind, Node, ancestors, deciding, reached, refusals
from privug.model.operations import Elementwise, constant, elementwise
from privug.model.plan import Plan
from privug.model.structure import flatten
from privug.model.traits import Connective, Role, traits_of
from privug.model.variable import RandomVariable
from privug.prior.family import Draw, family_of
from privug.program.batched import BatchedProgram
from privug.program.calls import Opaque, undisturbed_randomness
from privug.program.external import External
from privug.program.logic import followed
from privug.program.outputs import FAILURES, settled
from privug.program.reachable import entropy_source, undisturbed_memory
from privug.program.reachable import reached as reached_by
from privug.program.staged import Staged
from privug.program.tracing import difference_in_calls
from privug.scoping import holding

MOST_PATHS = 20_000
MOST_DECISIONS = 400  # of one path
MOST_VALUES = 64  # of a discrete draw that the output depends on
CHECKS = 32  # random paths that are compared with plain calls

Decision = tuple[Node, bool]
Possible = Callable[[Sequence[Decision]], bool]

_EQUAL = Elementwise("equal", np.equal, python=True)


class NotFollowed(Exception):
    """The paths of a program cannot be listed; the message says why, as the end of a sentence."""


@dataclass(frozen=True)
class Path:
    """One way through a program: the conditions that held or not, in order, and what it returned then."""

    decisions: tuple[Decision, ...]
    output: Any
    draws: tuple[Node, ...]


def paths(
    program: Callable[..., Any], positional: Sequence[Any], named: Mapping[str, Any], possible: Possible
) -> list[Path]:
    """Return all paths of a program on plain arguments; raises NotFollowed if it has others than `pv.sample` makes.

    `possible` says whether some decisions can be taken together; it may say so of some that cannot.
    """
    inner = program
    while isinstance(inner, Staged):
        inner = inner.program
    if isinstance(inner, Opaque | External | BatchedProgram):
        raise NotFollowed("its workings are hidden")
    found = reached_by(program, *flatten((list(positional), dict(named)))[1])
    source = entropy_source(found)
    if source is not None:
        raise NotFollowed(f"it draws random numbers of its own ({source})")
    listed: list[Path] = []
    open_: list[tuple[bool, ...]] = [()]
    with undisturbed_randomness(found) as has_been_used, undisturbed_memory(found) as memory:
        while open_:
            walk = _Listing(open_.pop(), possible)
            listed.append(_followed(program, positional, named, walk))
            open_.extend(walk.open)
            memory.restore()
            if len(listed) + len(open_) > MOST_PATHS:
                raise NotFollowed(f"it has more than {MOST_PATHS:,} paths")
        if not any(path.draws for path in listed):
            raise NotFollowed("it draws nothing with pv.sample")
        if has_been_used():
            raise NotFollowed("it draws random numbers of its own")
        for number in range(CHECKS):
            _check(program, positional, named, np.random.Generator(np.random.SFC64(number)))
            memory.restore()
    return listed


class _Walk:
    """One call of a program: how the conditions turn out that it asks for."""

    def __init__(self) -> None:
        self.taken: list[Decision] = []
        self.draws: list[RandomVariable] = []
        self._known: dict[Node, bool] = {}

    def decide(self, node: Node) -> bool:
        """Say whether a random condition holds on this path."""
        parents, connective = node.parents, traits_of(getattr(node.operation, "name", "")).connective
        if not node.shape and node.dtype == np.bool_ and connective is not None and not any(p.shape for p in parents):
            if connective is Connective.NOT:
                return not self.decide(parents[0])
            wanted = connective is Connective.OR
            return wanted if self.decide(parents[0]) is wanted else self.decide(parents[1])
        if not any(other.is_random for other in ancestors([node])):
            return bool(_evaluated(node, {}))
        if node not in self._known:
            if len(self.taken) >= MOST_DECISIONS:
                raise NotFollowed(f"a path of it has more than {MOST_DECISIONS} conditions")
            self._known[node] = self.answer(node)
            self.taken.append((node, self._known[node]))
        return self._known[node]

    def answer(self, node: Node) -> bool:
        """Say how a condition turns out that was not asked for before."""
        raise NotImplementedError

    def settle(self, value: Any) -> Any:
        """Return a part of the output as a plain value, if conditions alone decide it; else as it is."""
        if not isinstance(value, RandomVariable):
            return value
        node = value.node
        if isinstance(node.operation, Elementwise) and node.operation.traits.role is Role.CHOICE and not node.shape:
            chosen = node.parents[1] if self.decide(node.parents[0]) else node.parents[2]
            return self.settle(RandomVariable(chosen))
        behind = reached([node], _is_condition)
        draws = [draw for draw in behind if isinstance(draw.operation, Draw)]
        if any(draw.kind is not Kind.DISCRETE for draw in draws):
            return value
        known: dict[Node, Array] = {draw: np.array([self._value(draw)]) for draw in draws}
        for condition in filter(_is_condition, behind):
            known[condition] = np.array([self.decide(condition)])
        return _evaluated(node, known)

    def _value(self, draw: Node) -> Any:
        """Return the value of a discrete draw: which of a few it is."""
        operations = [parent.operation for parent in draw.parents]
        family, known = family_of(draw), [o.array if isinstance(o, ConstantValue) else None for o in operations]
        values = None if draw.shape or family.is_cut(known) else family.possible(known, np.inf, MOST_VALUES)
        if values is None:
            raise NotFollowed("its output depends on a discrete draw with many values")
        for value in values[:-1]:
            if self.decide(elementwise(_EQUAL, [draw, constant(value)])):
                return value
        return values[-1]


class _Listing(_Walk):
    """A walk that goes where it is told, then takes the first way, and notes the others."""

    def __init__(self, told: Sequence[bool], possible: Possible) -> None:
        super().__init__()
        self._told, self._possible = told, possible
        self.open: list[tuple[bool, ...]] = []

    def answer(self, node: Node) -> bool:
        if len(self.taken) < len(self._told):
            return self._told[len(self.taken)]
        ways = [truth for truth in (True, False) if self._possible([*self.taken, (node, truth)])]
        if len(ways) > 1:
            self.open.append((*(truth for _, truth in self.taken), ways[1]))
        return ways[0] if ways else False


class _Random(_Walk):
    """A walk on which every draw has a random value."""

    def __init__(self, rng: np.random.Generator) -> None:
        super().__init__()
        self._rng = rng
        self._values: dict[Node, Array] = {}

    def known(self) -> dict[Node, Array]:
        """Return the values of all draws so far."""
        for draw in self.draws:
            if draw.node not in self._values:
                self._values[draw.node] = Plan([draw.node], list(self._values)).run(1, self._rng, self._values)[0]
        return self._values

    def answer(self, node: Node) -> bool:
        return bool(_evaluated(node, self.known()))


def _is_condition(node: Node) -> bool:
    """Say whether a node is a comparison of single numbers: what it depends on matters by its truth alone."""
    role = traits_of(getattr(node.operation, "name", "")).role
    return role is Role.COMPARISON and not node.shape and node.dtype == np.bool_


def _evaluated(node: Node, known: Mapping[Node, Array]) -> Any:
    from_plan = Plan([node], list(known)).run(1, np.random.Generator(np.random.SFC64(0)), known)[0]
    value = from_plan[0] if node.levels is None else node.levels[int(from_plan[0])]
    return value.item() if isinstance(value, np.generic) else value


def _followed(program: Callable[..., Any], positional: Sequence[Any], named: Mapping[str, Any], walk: _Walk) -> Path:
    """Call a program along a walk."""
    noted: list[str] = []
    with ExitStack() as block:
        for held in (holding(refusals, noted), holding(followed, walk.draws), holding(deciding, walk.decide)):
            block.enter_context(held)
        try:
            structure, leaves = flatten(settled(program(*positional, **named)))
            output = structure.build([walk.settle(leaf) for leaf in leaves])
        except (PriorError, NotFollowed):
            raise
        except FAILURES as error:
            raise NotFollowed(noted[0] if noted else f"it raises {type(error).__name__}: {error}") from None
    if noted:
        raise NotFollowed(noted[0])
    return Path(tuple(walk.taken), output, tuple(draw.node for draw in walk.draws))


def _check(
    program: Callable[..., Any], positional: Sequence[Any], named: Mapping[str, Any], rng: np.random.Generator
) -> None:
    """Compare a random path with a plain call that draws the same numbers."""
    walk = _Random(rng)
    path = _followed(program, positional, named, walk)
    known = walk.known()
    values = [_evaluated(draw, known) for draw in path.draws]
    structure, leaves = flatten(path.output)
    plain = [_evaluated(leaf.node, known) if isinstance(leaf, RandomVariable) else leaf for leaf in leaves]
    difference = difference_in_calls(program, [(positional, named)], [values], [structure.build(plain)])
    if difference is not None:
        raise NotFollowed(difference)
