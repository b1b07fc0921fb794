"""The states of a question: which roots to enumerate in each case, and what the program makes of their values."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from privug.errors import PriorError, UnsuitableEngine
from privug.inference.case_plan import CasePlan, Kept, explained
from privug.inference.effort import spend
from privug.inference.exact.finite.elements import TooManyElements
from privug.inference.exact.finite.elimination import MOST_EXPECTED, Elimination
from privug.inference.exact.finite.states import BLOCK_BYTES, CERTAIN, LARGEST_BLOCK, Roots, States
from privug.inference.exact.request import Obstacle, Request
from privug.inference.graph.support import exponent
from privug.inference.question import Case, Question, Sizes
from privug.inference.workload import quantities_in_all
from privug.model.execution import run_tasks
from privug.model.maybe import is_maybe
from privug.model.node import Array, ConstantValue, Node, ancestors, reached
from privug.model.operations import SampleFailure
from privug.model.plan import Plan
from privug.model.structure import random_leaves
from privug.observation.observations import Observation
from privug.prior.conditional import BindDraw
from privug.prior.family import Draw, describe
from privug.program.batched import BatchedCall
from privug.program.generators import is_same_state
from privug.program.repetition import functions_only, not_a_function

Found = TypeVar("Found")

MOST_STATES = 200_000_000
MOST_CALLS = 2_000_000
MOST_SIZES = 1000
MOST_QUANTITIES = 2_000_000  # of a program that is lifted for every size: a minute or two
LARGEST_OPAQUE_BLOCK = 1 << 12
COST_OF_NUMBER = 3.0  # of one number of a state or a sample, in elementary operations
COST_OF_CALL = 3000.0  # of a plain call, in elementary operations
COST_OF_CASE = 1e7  # of lifting the program for one more size of its tables


def nodes_of(*values: Any) -> list[Node]:
    """Return the nodes of the random variables in some nested values; of one that may be missing, its two parts."""
    nodes = [leaf.node for leaf in random_leaves(values)]
    return [part for node in nodes for part in parts_of(node)]


def parts_of(node: Node) -> list[Node]:
    """Return the nodes that a quantity is made of: of one that may be missing, its two parts."""
    return [part for parent in node.parents for part in parts_of(parent)] if is_maybe(node) else [node]


@dataclass(frozen=True)
class EnumerationCase:
    """One case with the roots to enumerate; `start` holds the values of roots that the sizes of tables depend on."""

    case: Case
    query: Any
    start: States
    roots: Roots | Elimination
    question: Question
    exclude: bool

    @property
    def excludes(self) -> bool:
        """Whether some states are no possibility: the program fails on them, or they contradict a fact."""
        return self.exclude or bool(self.case.facts)

    @cached_property
    def targets(self) -> list[Node]:
        """The nodes of secret, output, facts and query, in this order."""
        return nodes_of(self.case.secret, self.case.output, self.case.facts, self.query)

    @cached_property
    def count(self) -> float:
        """How many states there are, at most."""
        if isinstance(self.roots, Elimination):
            return self.roots.schedule.final
        return len(self.start) * self.roots.count(MOST_STATES)

    @cached_property
    def is_opaque(self) -> bool:
        """Whether plain Python code is called for each state."""
        return any(node.operation.opaque for node in ancestors(self.targets))

    @cached_property
    def calls(self) -> list[Node]:
        """The plain calls behind what is asked for, if they are made for all states."""
        if self.excludes or isinstance(self.roots, Elimination):
            return []
        known = {*self.start.arrays, *self.roots.nodes}
        met = reached(self.targets, lambda node: node.operation.opaque or node in known)
        return [node for node in met if node.operation.opaque and node not in known]

    @cached_property
    def cost(self) -> float:
        """How many elementary operations all states take."""
        if isinstance(self.roots, Elimination):
            return self.roots.schedule.cost + (COST_OF_CASE if self.start.arrays else 0.0)
        order = ancestors(self.targets)
        numbers = sum(math.prod(node.shape) for node in order if not isinstance(node.operation, ConstantValue))
        work = COST_OF_NUMBER * numbers + sum(COST_OF_CALL for node in order if node.operation.opaque)
        return self.count * work + (COST_OF_CASE if self.start.arrays else 0.0)

    def blocks(self, block: int) -> Iterator[States]:
        """Yield all states, about a block at a time."""
        if isinstance(self.roots, Elimination):
            return self.roots.blocks(block)
        return self.roots.blocks(self.start, block)


def settings_of(request: Request) -> list[EnumerationCase] | Obstacle:
    """Return the cases of a question that can be enumerated, or what stands in the way."""
    groups = table_sizes(request)
    if isinstance(groups, Obstacle):
        return groups
    settings: list[EnumerationCase] = []
    for sizes, start in groups:
        setting = _setting(request, sizes, start)
        if isinstance(setting, Obstacle):
            return setting
        settings.append(setting)
        try:
            obstacle = _too_many(settings)
        except UnsuitableEngine:  # a program gives the parameters of a distribution, one way and then another
            return Obstacle("the program draws random numbers of its own")
        if obstacle is not None:
            return obstacle
    return settings


def table_sizes(request: Request) -> list[tuple[Sizes, States]] | Obstacle:
    """Return the sizes that tables can have, largest first, with the values of the roots behind them."""
    nodes = request.question.size_nodes
    if not nodes:
        return [((), CERTAIN)]
    roots = Roots(nodes)
    if roots.endless is not None or roots.count(MOST_CALLS) > MOST_CALLS:
        return Obstacle("the sizes of its tables are too many to list")
    states = next(iter(roots.blocks(CERTAIN, MOST_CALLS + 1)))
    arrays = Plan(nodes, roots.nodes).run(len(states), np.random.Generator(np.random.SFC64(0)), states.arrays)
    sizes = np.stack(arrays, axis=1)
    if sizes.min() < 0:
        raise PriorError(f"the size of a table must not be negative, but can be {sizes.min()}")
    distinct, codes = np.unique(sizes, axis=0, return_inverse=True)
    if len(distinct) > MOST_SIZES or quantities_in_all(request.question, len(distinct)) > MOST_QUANTITIES:
        return Obstacle(f"its tables can have {len(distinct):,} different sizes")
    groups = [(tuple(map(int, row)), states.take(codes.reshape(-1) == k)) for k, row in enumerate(distinct)]
    return sorted(groups, key=lambda group: -sum(group[0]))


def _setting(request: Request, sizes: Sizes, start: States) -> EnumerationCase | Obstacle:
    case = request.case(sizes)
    query = request.query(case)
    answered = query is None or is_answered(query, case)
    if (
        request.way == "elimination"
        and Roots(nodes_of(case.secret, case.output, case.facts, query)).endless is not None
    ):
        return Obstacle("some of its quantities have more values than can be listed", vague=True)
    targets = nodes_of(case.secret, case.output, case.facts, query)
    order = ancestors(targets)
    if any(type(node.operation) is BindDraw for node in order):
        return Obstacle("pv.bind calls a function for each value of a quantity with many values")
    roots = Roots(targets, list(start.arrays), order)
    if roots.endless is not None:
        assert isinstance(roots.endless.operation, Draw)
        what = describe(roots.endless) or roots.endless.operation.family.name
        return Obstacle(f"{what} has more values than can be listed", vague=True)
    if not answered:
        return Obstacle("the query draws random numbers of its own")
    if request.way == "elimination":
        return _eliminating(request.question, case, query, start, order)
    return EnumerationCase(case, query, start, roots, request.question, request.question.exclude_errors)


def _eliminating(
    question: Question, case: Case, query: Any, start: States, order: Sequence[Node]
) -> EnumerationCase | Obstacle:
    """Return the setting whose states are those of secret, output and query alone."""
    if any(node.operation.opaque or isinstance(node.operation, BatchedCall) for node in order):
        return Obstacle("the program is called sample by sample", vague=True)
    if case.facts and Plan(nodes_of(case.secret, case.output)).can_fail:
        return Obstacle("it may fail on inputs that contradict what is assumed", vague=True)
    try:
        states = Elimination(nodes_of(case.secret, case.output, case.facts, query), start)
    except TooManyElements:
        return Obstacle("it has too many numbers to be looked at one by one", vague=True)
    if states.schedule.peak > MOST_EXPECTED:
        return Obstacle("too many combinations of values matter to the output at once", vague=True)
    known = replace(case, inputs={"output": case.output, "query": query})
    return EnumerationCase(known, query, start, states, question, False)


def is_answered(query: Any, case: Case) -> bool:
    """Say whether everything random in a query is random in the inputs or the output too."""
    shared = set(ancestors(nodes_of(dict(case.inputs), case.output)))
    own = [node for node in ancestors(nodes_of(query)) if node not in shared]
    return not any(isinstance(node.operation, Draw) for node in own)


def _too_many(settings: Sequence[EnumerationCase]) -> Obstacle | None:
    if any(isinstance(setting.roots, Elimination) for setting in settings):
        return None
    opaque = any(setting.is_opaque for setting in settings)
    limit, total = MOST_CALLS if opaque else MOST_STATES, sum(setting.count for setting in settings)
    if total <= limit:
        return None
    states = f"{total:,.0f} states" if math.isfinite(total) else f"more than {MOST_STATES:,} states"
    called = "the program is called sample by sample and " if opaque else ""
    return Obstacle(f"{called}its inputs have {states} (the limit is {limit:,})")


class StateEvaluation:
    """A setting's program on its states, and what of them agrees with an observation."""

    def __init__(
        self, setting: EnumerationCase, observation: Observation | None, query: Any = None, called: Sequence[Node] = ()
    ) -> None:
        """Make ready; what plain calls return may be known, of those that were `called` before."""
        self._setting, self._observation, self._query = setting, observation, query
        outside = [] if isinstance(setting.roots, Elimination) else setting.start.arrays
        self._known = [*outside, *setting.roots.nodes, *called]
        self._plan = CasePlan(setting.case, observation, query, self._known, setting.exclude)
        largest = LARGEST_OPAQUE_BLOCK if setting.is_opaque else LARGEST_BLOCK
        self.block = max(1, min(largest, BLOCK_BYTES // self._plan.plan.bytes_per_sample))

    @property
    def impossible(self) -> str | None:
        """Why no state can agree with the observation, if that is known without looking at any."""
        return self._plan.impossible

    def blocks(self) -> Iterator[States]:
        """Yield all states, about a block at a time."""
        return self._setting.blocks(self.block)

    def results(self) -> Iterator[tuple[States, Kept]]:
        """Yield all states with what they leave behind; plain calls are spread over processes where that pays."""
        setting, tasks = self._setting, self.blocks()
        if setting.calls:
            known = StateEvaluation(setting, self._observation, self._query, setting.calls)
            yield from ((states, known.kept(states)) for states in self._called(list(tasks)))
        elif setting.is_opaque:
            blocks = list(tasks)
            yield from zip(blocks, _over_processes(blocks, self.kept), strict=True)
        else:
            yield from ((states, self.kept(states)) for states in tasks)

    def _called(self, tasks: Sequence[States]) -> Iterator[States]:
        """Yield states with what plain calls return on them: a question calls its program once for each state."""
        setting = self._setting
        plan = Plan(setting.calls, self._known)

        def found() -> list[list[Array]]:
            return _over_processes(
                tasks, lambda states: self._run(states, lambda rng, _: plan.run(len(states), rng, states.arrays))
            )

        what = "calls", *setting.calls, *setting.roots.nodes, tuple(map(len, tasks)), exponent()
        for states, arrays in zip(tasks, setting.question.once(what, found), strict=True):
            yield States({**states.arrays, **dict(zip(setting.calls, arrays, strict=True))}, states.weights)

    def kept(self, states: States) -> Kept:
        """Run the program on some states."""
        return self._run(states, lambda rng, positions: self._plan.run(rng, positions, states.arrays))

    def _run(self, states: States, run: Callable[[np.random.Generator, Array], Found]) -> Found:
        spend(self._setting.cost * len(states) / max(1.0, self._setting.count))
        rng = np.random.Generator(np.random.SFC64(0))
        positions = np.arange(len(states))
        try:
            with functions_only():
                found = run(rng, positions)
        except SampleFailure as failure:
            known = {node: states.arrays[node] for node in self._known}
            raise explained(self._setting.case, failure, rng, positions, known) from failure.cause
        if not is_same_state(rng.bit_generator.state, np.random.SFC64(0).state):
            raise not_a_function("the program draws random numbers of its own")
        return found


def _over_processes(tasks: Sequence[States], work: Callable[[States], Found]) -> list[Found]:
    return list(run_tasks(tasks, work, opaque=True, bytes_per_task=0, name="listing"))
