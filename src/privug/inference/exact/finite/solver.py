"""Finite enumeration: every combination of values that the random inputs can take, with its probability.

The states go through the program as a batch, whatever tier it is lifted to, and equal values of secret, output and
query are merged as they come out. Distributions without a largest value are cut where less than 1e-15 is lost. The
joint is listed pair by pair, or as classes of secrets that the output treats alike, or as a channel.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np

from privug.digits import how_many
from privug.errors import ImpossibleObservation, PriorError, ProgramError, UnsuitableEngine
from privug.estimate import ROUNDING, UNDERFLOW, Estimate
from privug.inference.answer import ExactAnswer
from privug.inference.belief import Belief
from privug.inference.case_plan import CasePlan, Kept, Quantity, explained, settled
from privug.inference.exact.finite.elements import TooManyElements
from privug.inference.exact.finite.elimination import MOST_EXPECTED, Elimination, full, value_of
from privug.inference.exact.finite.states import (
    BLOCK_BYTES,
    CERTAIN,
    EVERYTHING,
    LARGEST_BLOCK,
    Combinations,
    Roots,
    States,
)
from privug.inference.exact.request import CERTAIN_EVIDENCE, Offer, Refused, Request, exact_answer
from privug.inference.graph.support import exponent, longer_tails
from privug.inference.joint import ChannelBlock, Classes, ClassTally, ImplicitChannel, Joint, WeightedCounter, marginal
from privug.inference.question import Case, Question, Sizes
from privug.inference.workload import quantities_in_all, spend
from privug.model.batch import Batch, DeferredBatch, codes_of
from privug.model.maybe import is_maybe
from privug.model.node import Array, ConstantValue, Node, ancestors, reached
from privug.model.operations import SampleFailure, constant
from privug.model.plan import Plan, computed
from privug.model.structure import random_leaves
from privug.observation.observations import Observation
from privug.prior.conditional import BindDraw
from privug.prior.family import Draw, describe
from privug.program.batched import BatchedCall
from privug.program.calls import functions_only, not_a_function
from privug.program.reachable import is_same_state
from privug.progress import ProgressMeter
from privug.runtime.tasks import run_tasks
from privug.scoping import holding

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


def settings_of(request: Request) -> list[EnumerationCase]:
    """Return the cases of a question that can be enumerated."""
    settings: list[EnumerationCase] = []
    for sizes, start in table_sizes(request):
        settings.append(_setting(request, sizes, start))
        try:
            too_many = _too_many(settings)
        except UnsuitableEngine:  # a program gives the parameters of a distribution, one way and then another
            raise Refused("the program draws random numbers of its own") from None
        if too_many is not None:
            raise Refused(too_many)
    return settings


def table_sizes(request: Request) -> list[tuple[Sizes, States]]:
    """Return the sizes that tables can have, largest first, with the values of the roots behind them."""
    nodes = request.question.size_nodes
    if not nodes:
        return [((), CERTAIN)]
    states = Roots(nodes).listed(MOST_CALLS)
    if states is None:
        raise Refused("the sizes of its tables are too many to list")
    sizes = np.stack(computed(nodes, states.arrays, len(states)), axis=1)
    if sizes.min() < 0:
        raise PriorError(f"the size of a table must not be negative, but can be {sizes.min()}")
    distinct, codes = np.unique(sizes, axis=0, return_inverse=True)
    if len(distinct) > MOST_SIZES or quantities_in_all(request.question, len(distinct)) > MOST_QUANTITIES:
        raise Refused(f"its tables can have {len(distinct):,} different sizes")
    groups = [(tuple(map(int, row)), states.take(codes.reshape(-1) == k)) for k, row in enumerate(distinct)]
    return sorted(groups, key=lambda group: -sum(group[0]))


def _setting(request: Request, sizes: Sizes, start: States) -> EnumerationCase:
    case = request.case(sizes)
    query = request.query(case)
    answered = query is None or is_answered(query, case)
    targets = nodes_of(case.secret, case.output, case.facts, query)
    if request.way == "elimination" and Roots(targets).endless is not None:
        raise Refused("some of its quantities have more values than can be listed", vague=True)
    order = ancestors(targets)
    if any(type(node.operation) is BindDraw for node in order):
        raise Refused("pv.bind calls a function for each value of a quantity with many values")
    roots = Roots(targets, list(start.arrays), order)
    if roots.endless is not None:
        assert isinstance(roots.endless.operation, Draw)
        what = describe(roots.endless) or roots.endless.operation.family.name
        raise Refused(f"{what} has more values than can be listed", vague=True)
    if not answered:
        raise Refused("the query draws random numbers of its own")
    if request.way == "elimination":
        return _eliminating(request.question, case, query, start, order)
    return EnumerationCase(case, query, start, roots, request.question, request.question.exclude_errors)


def _eliminating(question: Question, case: Case, query: Any, start: States, order: Sequence[Node]) -> EnumerationCase:
    """Return the setting whose states are those of secret, output and query alone."""
    if any(node.operation.opaque or isinstance(node.operation, BatchedCall) for node in order):
        raise Refused("the program is called sample by sample", vague=True)
    if case.facts and Plan(nodes_of(case.secret, case.output)).can_fail:
        raise Refused("it may fail on inputs that contradict what is assumed", vague=True)
    try:
        states = Elimination(nodes_of(case.secret, case.output, case.facts, query), start)
    except TooManyElements:
        raise Refused("it has too many numbers to be looked at one by one", vague=True) from None
    if states.schedule.peak > MOST_EXPECTED:
        raise Refused("too many combinations of values matter to the output at once", vague=True)
    known = replace(case, inputs={"output": case.output, "query": query})
    return EnumerationCase(known, query, start, states, question, False)


def is_answered(query: Any, case: Case) -> bool:
    """Say whether everything random in a query is random in the inputs or the output too."""
    shared = set(ancestors(nodes_of(dict(case.inputs), case.output)))
    own = [node for node in ancestors(nodes_of(query)) if node not in shared]
    return not any(isinstance(node.operation, Draw) for node in own)


def _too_many(settings: Sequence[EnumerationCase]) -> str | None:
    """Say how many states there are, if they are too many to be enumerated."""
    if any(isinstance(setting.roots, Elimination) for setting in settings):
        return None
    opaque = any(setting.is_opaque for setting in settings)
    limit, total = MOST_CALLS if opaque else MOST_STATES, sum(setting.count for setting in settings)
    if total <= limit:
        return None
    states = f"{total:,.0f} states" if math.isfinite(total) else f"more than {MOST_STATES:,} states"
    called = "the program is called sample by sample and " if opaque else ""
    return f"{called}its inputs have {states} (the limit is {limit:,})"


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


FEWEST_STATES = 50_000  # below, listing pairs takes no time
MOST_SECRETS = 100_000_000
MOST_PAIRS = 20_000_000  # of classes with their outputs
MOST_EACH = 1 << 20  # states behind one secret


def secrets_of(setting: EnumerationCase) -> Combinations | None:
    """Return the secrets of a case, if each combination of the values of the roots behind them is one of its own."""
    if isinstance(setting.roots, Elimination) or setting.start is not CERTAIN:
        return None
    quantity = Quantity.of(setting.case.secret)
    return Combinations.of(quantity, Roots(quantity.nodes))


def is_secret_of_its_own(setting: EnumerationCase) -> bool:
    """Say whether every state of a case has another secret, in the order of its secrets."""
    secrets = secrets_of(setting)
    return secrets is not None and secrets.roots.nodes == setting.roots.nodes


@dataclass(frozen=True)
class ByClass:
    """The classes of a case, the belief about its secret, and how many states there were, in all and excluded."""

    classes: Classes
    probability: float
    states: int
    accepted: int
    excluded: int

    def of_secrets(self, secrets: Batch) -> "ByClass":
        """Return the same with secrets that are known already, where these were listed one by one in the same order."""
        if not secrets.each_once or len(secrets) != len(self.classes.secrets):
            return self
        return replace(self, classes=replace(self.classes, secrets=secrets))

    def beliefs(self, error: float) -> tuple[Belief, Belief]:
        """Return the beliefs about secret and output."""
        known = self.classes
        return Belief.listed(known.secrets, known.weights, error), Belief.listed(known.outputs, known.marginal, error)

    def joint(self, error: float) -> Joint:
        """Return the joint, whose pairs are listed when they are asked for."""
        known = self.classes
        if known.determine_output:
            outputs = DeferredBatch(known.outputs.structure, len(known.members), known.output_of)
            sides: tuple[Batch, Batch] = (known.secrets, outputs)
            weights = known.weights
        else:
            owner, places, weights = known.listed()
            sides = DeferredBatch.chosen(known.secrets, owner), DeferredBatch.chosen(known.outputs, places)
        secret, output = (Belief.listed(side, weights, error) for side in sides)
        return Joint(secret, output, classes=known)


def by_class(settings: Sequence[EnumerationCase]) -> ByClass | None:
    """Find the classes of secrets, if the question is one of which that can be done and pays."""
    setting = settings[0]
    if len(settings) > 1 or setting.is_opaque or setting.count < FEWEST_STATES:
        return None
    secrets = secrets_of(setting)
    if secrets is None or len(secrets) > MOST_SECRETS:
        return None
    others = Roots(setting.targets, secrets.roots.nodes)
    each = others.count(MOST_EACH)
    if each > MOST_EACH:
        return None
    with ProgressMeter("enumerating", setting.count) as meter:
        return _Pass(setting, secrets, others, each).run(meter)


class _Pass:
    """One pass through all states of a case, in blocks of whole secrets."""

    def __init__(self, setting: EnumerationCase, secrets: Combinations, others: Roots, each: float) -> None:
        self._secrets, self._others = secrets, others
        self._evaluation = StateEvaluation(setting, None)
        self._step = max(1, int(self._evaluation.block // each))
        self._place = constant(0)  # stands for the place of the secret in its block, beside the roots
        self._states = self._accepted = self._excluded = 0

    def run(self, meter: ProgressMeter) -> ByClass | None:
        """Return what was found; None if no state is possible, or if hardly any secrets are alike."""
        tally = ClassTally()
        for start in self._blocks():
            parts = [self._kept(states) for states in self._others.blocks(start, self._evaluation.block)]
            places, outputs, weights = zip(*parts, strict=True)
            output = Batch.concatenate([settled(batch) for batch in outputs])
            tally.add(len(start), np.concatenate(places), output, np.concatenate(weights))
            if tally.pairs > MOST_PAIRS:
                return None
            meter.update(self._states, f"{self._states:,} states")
        if not tally.weight > 0:
            return None
        counts = self._states, self._accepted, self._excluded
        return ByClass(tally.result(self._secrets.batch), tally.weight, *counts)

    def _blocks(self) -> Iterator[States]:
        for block in self._secrets.roots.blocks(CERTAIN, self._step):
            for begin in range(0, len(block), self._step):
                part = block.take(slice(begin, begin + self._step)) if len(block) > self._step else block
                yield States({**part.arrays, self._place: np.arange(len(part))}, part.weights)

    def _kept(self, states: States) -> tuple[Array, Batch, Array]:
        kept: Kept = self._evaluation.kept(states)
        self._states += len(states)
        self._accepted += len(kept.positions)
        self._excluded += kept.excluded
        places, weights = states.arrays[self._place], states.weights
        if len(kept.positions) == len(states):
            return places, kept.quantities[1], weights
        return places[kept.positions], kept.quantities[1], weights[kept.positions]


ALWAYS_LISTED = 10_000_000  # states: their pairs are listed whatever they are
BLOCK_CELLS = 1 << 21


def finite_joint(
    settings: Sequence[EnumerationCase], secret: Belief, output: Belief, found: ByClass | None = None
) -> Joint:
    """Return the joint of all cases, given the beliefs about secret and output before any observation.

    `found` holds the classes of secrets, if those have been looked for.
    """
    found = found or by_class(settings)
    if found is not None and (found.classes.determine_output or found.classes.pairs <= MOST_PAIRS):
        return found.of_secrets(secret.batch).joint(secret.error)
    if len(secret.batch) * len(output.batch) <= MOST_PAIRS:
        return _listed(settings, secret.error)
    return _channel(settings, secret, output, sum(setting.count for setting in settings))


def _listed(settings: Sequence[EnumerationCase], error: float) -> Joint:
    pairs = WeightedCounter()
    for setting in settings:
        evaluation = StateEvaluation(setting, None)
        for states, kept in evaluation.results():
            pairs.add(kept.quantities, states.weights[kept.positions])
    return listed_joint(*pairs.result(), error)


def listed_joint(pair: Sequence[Batch], weights: Array, error: float) -> Joint:
    """Make the joint of pairs with their weights."""
    (secret, output), shares = pair, weights / weights.sum()
    return Joint(Belief.listed(secret, shares, error), Belief.listed(output, shares, error))


def _channel(settings: Sequence[EnumerationCase], secret: Belief, output: Belief, states: float) -> Joint:
    secrets, outputs = len(secret.batch), output.batch.numbers()
    if len(settings) > 1 or settings[0].excludes or outputs is None:
        raise UnsuitableEngine(
            f"engine='exact' cannot list the pairs of secret and output: {secrets:,} secrets with "
            f"{len(output.batch):,} outputs are too many; engine='sample' can draw some"
        )
    pairs = _Pairs(settings[0], outputs)
    channel = ImplicitChannel(secrets, len(outputs), round(states), pairs.blocks)
    return Joint(secret, output, channel=channel)


class _Pairs:
    """The pairs of one case, secret by secret."""

    def __init__(self, setting: EnumerationCase, outputs: Array) -> None:
        self._setting = setting
        self._outputs = outputs
        self._is_range = outputs.dtype.kind == "i" and int(outputs[-1]) - int(outputs[0]) + 1 == len(outputs)
        self._evaluation = StateEvaluation(setting, None)
        self._behind_secret = Roots(nodes_of(setting.case.secret), list(setting.start.arrays))
        self._others = Roots(setting.targets, [*setting.start.arrays, *self._behind_secret.nodes])
        self._place = constant(0)  # stands for the place of the secret, beside the roots

    def blocks(self) -> Iterator[ChannelBlock]:
        """Yield the probabilities of all pairs, in blocks of whole secrets."""
        states = self._by_secret()
        places = states.arrays[self._place]
        each = self._others.count(math.inf)
        secrets = int(max(1, min(self._evaluation.block // each, BLOCK_CELLS // len(self._outputs))))
        for first in range(0, int(places[-1]) + 1, secrets):
            begin, end = np.searchsorted(places, [first, first + secrets])
            yield self._block(states.take(slice(begin, end)), first, min(secrets, int(places[-1]) + 1 - first))

    def _by_secret(self) -> States:
        """Return the states of the roots behind the secret, ordered by the secret."""
        states = next(iter(self._behind_secret.blocks(self._setting.start, EVERYTHING)))
        quantity = Quantity.of(self._setting.case.secret)
        batch = quantity.batch(computed(quantity.nodes, states.arrays, len(states)), len(states))
        places = codes_of([batch], len(states))
        order = np.argsort(places, kind="stable")
        return States({**states.arrays, self._place: places}, states.weights).take(order)

    def _block(self, start: States, first: int, secrets: int) -> ChannelBlock:
        total: Array | None = None
        low = high = 0
        for states in self._others.blocks(start, self._evaluation.block):
            kept = self._evaluation.kept(states)
            columns, rows = self._columns(kept.quantities[1]), states.arrays[self._place][kept.positions] - first
            begin, end = int(columns.min()), int(columns.max()) + 1
            places = rows * (end - begin) + (columns - begin)
            cells = np.bincount(places, states.weights[kept.positions], secrets * (end - begin)).reshape(secrets, -1)
            if total is None:
                total, low, high = cells, begin, end
                continue
            wider = np.zeros((secrets, max(high, end) - min(low, begin)))
            start_of_all = min(low, begin)
            wider[:, low - start_of_all : high - start_of_all] = total
            wider[:, begin - start_of_all : end - start_of_all] += cells
            total, low, high = wider, start_of_all, max(high, end)
        assert total is not None
        return ChannelBlock(low, total)

    def _columns(self, output: Batch) -> Array:
        """Return the place of each output."""
        numbers = output.numbers()
        assert numbers is not None
        if self._is_range:
            return np.asarray(np.subtract(numbers, self._outputs[0], dtype=np.intp))
        return np.asarray(np.searchsorted(self._outputs, numbers))


FAR = 1e-9  # the share of an observation's probability from which on what is left out matters
LEAST_SOUGHT = 1e-60  # the probability down to which an observation is sought that was not found
LEAST_LOST = 1e-250
MOST_ERROR = 0.01  # of a probability, beyond which an answer is none
CHEAP = 1e9  # elementary operations that may always be spent on far tails


def prepare_finite(request: Request) -> Offer:
    """Enumerate the states."""
    settings = settings_of(request)
    cost, states = sum(setting.cost for setting in settings), sum(setting.count for setting in settings)
    return Offer(cost, cost / states, lambda: _enumerated(request, settings))


def prepare_elimination(request: Request) -> Offer:
    """Go through the states round by round; a sample costs what the whole model does, not the states looked at."""
    if request.question.exclude_errors:
        raise Refused("inputs on which it fails are to be excluded", vague=True)
    prepared = prepare_finite(replace(request, way="elimination"))
    case = request.case(request.question.typical_sizes)
    numbers = sum(math.prod(node.shape) for node in ancestors(nodes_of(case.secret, case.output)))
    return replace(prepared, cost_of_sample=COST_OF_NUMBER * numbers)


class EnumeratedStates:
    """What enumeration found: the weights of what agrees with the observation, relative to `exp(shift)`.

    Each group of quantities is tallied together: secret, output and query are 0, 1 and 2. `reasons` say why some sizes
    of tables cannot be, and `lost` is how much probability was left out.
    """

    def __init__(self, request: Request, settings: Sequence[EnumerationCase]) -> None:
        self.settings, self.reasons = settings, set[str]()
        once = len(settings) == 1 and is_secret_of_its_own(settings[0])
        groups = _groups(request, settings)
        self.tallies = {group: WeightedCounter(each_once=once and group == (0,)) for group in groups}
        self.states = self.accepted = self.excluded = 0
        self.is_weighted = False
        self._shift = -math.inf
        self._weights: list[float] = []
        self._agreeing: list[float] = []
        self._valid: list[float] = []
        with ProgressMeter("enumerating", sum(setting.count for setting in settings)) as meter:
            for setting in settings:
                self._enumerate(setting, request.observation, meter)
        self.lost = max(setting.roots.lost for setting in settings)

    def _enumerate(self, setting: EnumerationCase, observation: Observation | None, meter: ProgressMeter) -> None:
        """Count the states of a case, of which none agrees if the observation cannot be made there."""
        evaluation = StateEvaluation(setting, observation, setting.query)
        accepting = StateEvaluation(setting, None) if setting.excludes else None
        if evaluation.impossible is None:
            for states, kept in evaluation.results():
                accepted = states.weights if accepting is None else states.weights[accepting.kept(states).positions]
                self._add(states, kept, float(accepted.sum()))
                meter.update(self.states, f"{self.states:,} states")
            return
        self.reasons.add(evaluation.impossible)
        if accepting is None:
            self._skip(round(setting.count), float(setting.start.weights.sum()))
            return
        for states in accepting.blocks():
            self._skip(len(states), float(states.weights[accepting.kept(states).positions].sum()))

    def _skip(self, states: int, valid: float) -> None:
        """Count states of which none agrees, and the probability of those that the program accepts."""
        self.states += states
        self._valid.append(valid)

    def _add(self, states: States, kept: Kept, valid: float) -> None:
        """Count a block of states and those of them that agree."""
        self._skip(len(states), valid)
        probabilities = states.weights[kept.positions]
        self.accepted += len(kept.positions)
        self.excluded += kept.excluded
        self._agreeing.append(float(probabilities.sum()))
        if not len(kept.positions):
            return
        weights = probabilities
        if kept.log_weights is not None:
            self.is_weighted = True
            self._raise_shift(float(kept.log_weights.max()))
            weights = probabilities * np.exp(kept.log_weights - self._shift)
        self._weights.append(float(weights.sum()))
        for group, tally in self.tallies.items():
            tally.add([kept.quantities[position] for position in group], weights)

    def _raise_shift(self, largest: float) -> None:
        if largest <= self._shift:
            return
        factor = math.exp(self._shift - largest)
        self._weights = [weight * factor for weight in self._weights]
        for tally in self.tallies.values():
            tally.scale(factor)
        self._shift = largest

    @property
    def probability(self) -> float:
        """The probability of the states that agree, not counting how well."""
        return math.fsum(self._agreeing)

    @property
    def weight(self) -> float:
        """The total weight of what agrees."""
        return math.fsum(self._weights)

    def evidence(self, lost: float) -> Estimate:
        """Return the probability of the observation, or its density where states are weighted by one."""
        share = self.weight / math.fsum(self._valid)
        if self.is_weighted:
            return Estimate.exactly(share * math.exp(self._shift), "density", "exact")
        return Estimate(min(1.0, share), min(1.0, share), min(1.0, share + lost), method="exact", exact=True)


def _enumerated(request: Request, settings: Sequence[EnumerationCase]) -> ExactAnswer:
    started = time.perf_counter()
    beliefs, classes = _apart(request, settings), None
    if beliefs is None and request.observation is None and request.extra is None:
        classes = by_class(settings)
        if classes is not None:
            beliefs = classes.beliefs(min(1.0, settings[0].roots.lost / classes.probability))
    if beliefs is not None:
        states = round(settings[0].count)
        counts = (states, states, 0) if classes is None else (classes.states, classes.accepted, classes.excluded)
        joint, source = partial(finite_joint, settings, *beliefs, classes), _source(request, settings, counts[0])
        return exact_answer(request.way, source, beliefs, joint, CERTAIN_EVIDENCE, counts, started)
    found = EnumeratedStates(request, settings)
    for _ in range(2):  # the first time may show how improbable the observation is
        if request.observation is not None and found.lost > FAR * found.probability and not found.reasons:
            found = _found_further_out(request, found) or found
    return _answer(request, found, started)


def _found_further_out(request: Request, found: EnumeratedStates) -> EnumeratedStates | None:
    """Enumerate again, with so much of the far tails that what is lost does not matter, if that costs little."""
    most = max(10 * sum(setting.cost for setting in found.settings), CHEAP)
    with far_tails(found.probability), suppress(Refused):
        settings = settings_of(request)
        if sum(setting.cost for setting in settings) <= most:
            return EnumeratedStates(request, settings)
    return None


def _groups(request: Request, settings: Sequence[EnumerationCase]) -> list[tuple[int, ...]]:
    """Return which quantities to tally together: before any observation, the pairs, unless they may be too many."""
    if request.extra is not None:
        return [(0,), (1,), (2,)]
    few = request.way == "elimination" or sum(setting.count for setting in settings) <= ALWAYS_LISTED
    return [(0, 1)] if request.observation is None and few else [(0,), (1,)]


def _answer(request: Request, found: EnumeratedStates, started: float) -> ExactAnswer:
    if not found.weight > 0:
        raise _nothing(request, found)
    lost = found.lost + (UNDERFLOW if ROUNDING * found.probability < UNDERFLOW else 0.0)
    error = checked_error(min(1.0, lost / found.probability), found.probability, lost)
    evidence = CERTAIN_EVIDENCE if request.observation is None else found.evidence(lost)
    tallied = {group: tally.result() for group, tally in found.tallies.items()}
    together = tallied.pop((0, 1), None)
    if together is not None:
        tallied = {(side,): marginal(*together, side) for side in (0, 1)}
    beliefs = tuple(listed_belief(*one, error) for one in tallied.values())
    joint = None if together is None else listed_joint(*together, error)
    source = _source(request, found.settings, found.states)
    counts = found.states, found.accepted, found.excluded
    return exact_answer(
        request.way, source, beliefs, lambda: joint or _joint(request, beliefs), evidence, counts, started
    )


def _source(request: Request, settings: Sequence[EnumerationCase], states: int) -> str:
    if request.way == "elimination":
        roots = max(len(setting.roots.roots) for setting in settings if isinstance(setting.roots, Elimination))
        return f"elimination of {roots:,} random quantities one after the other, down to {how_many(states, 'state')}"
    return f"finite enumeration of {how_many(states, 'state')}"


def far_tails(probability: float) -> holding[float]:
    """List values so far out that what is lost does not matter beside a probability, which may be zero so far."""
    return longer_tails(max(LEAST_LOST, probability * FAR**2) if probability else LEAST_SOUGHT)


def checked_error(error: float, probability: float, lost: float) -> float:
    """Return a relative error unless it is so large that there is no answer."""
    if error > MOST_ERROR:
        raise UnsuitableEngine(
            f"engine='exact' cannot answer this: the observation is as improbable ({probability:.0e}) as the far "
            f"tails that are left out ({lost:.0e}); engine='rare' may"
        )
    return error


def _nothing(request: Request, found: EnumeratedStates) -> ImpossibleObservation | ProgramError:
    if found.excluded and found.excluded >= found.states:
        return ProgramError("the program failed on every input that the prior allows")
    hint = f" ({found.reasons.pop()})" if len(found.reasons) == 1 else ""
    less = f", or less likely than {found.lost:.0e}" if found.lost and not found.reasons else ""
    return ImpossibleObservation(
        f"this observation is impossible{less}: none of the {found.states:,} states of the inputs agrees with it "
        f"({request.observation}){hint}"
    )


def listed_belief(quantities: Sequence[Batch], weights: Array, error: float) -> Belief:
    """Return the belief about a quantity whose values are listed, each with its weight."""
    return Belief.listed(quantities[0], weights / weights.sum(), error)


def _apart(request: Request, settings: Sequence[EnumerationCase]) -> tuple[Belief, Belief] | None:
    """Return what is believed of secret and output before any observation, each by itself, if that is much cheaper."""
    setting = settings[0]
    if request.observation is not None or request.extra is not None or request.way == "elimination":
        return None
    if len(settings) > 1 or setting.count < FEWEST_STATES or setting.excludes or setting.is_opaque:
        return None
    quantities = [Quantity.of(value) for value in (setting.case.secret, setting.case.output)]
    told = [_told(quantity) if setting.start is CERTAIN else None for quantity in quantities]
    if None in told and setting.count <= ALWAYS_LISTED:
        return None
    beliefs = []
    for quantity, known in zip(quantities, told, strict=True):
        belief = _alone(quantity, setting) if known is None else known.belief(known.roots.lost)
        if belief is None:
            return None
        beliefs.append(belief)
    return beliefs[0], beliefs[1]


def _told(quantity: Quantity) -> Combinations | None:
    """Return the values of a quantity that is made of inputs as they are, and so cannot fail."""
    found = Combinations.of(quantity, Roots(quantity.nodes))
    return found if found is not None and found.are_inputs else None


def _alone(quantity: Quantity, setting: EnumerationCase) -> Belief | None:
    """Return the belief about a quantity by elimination of all others, if that is much cheaper than all states."""
    try:
        alone = Elimination(quantity.nodes, setting.start)
    except TooManyElements:
        return None
    if alone.schedule.cost > setting.cost / 10:
        return None
    known, rows = alone.states.arrays, len(alone.states)
    arrays = [full(value_of(node, known), rows) for node in quantity.nodes]
    tally = WeightedCounter()
    tally.add([quantity.batch(arrays, rows)], alone.states.weights)
    return listed_belief(*tally.result(), alone.lost)


def _joint(request: Request, beliefs: Sequence[Belief]) -> Joint:
    settings = settings_of(Request(request.question, way=request.way))
    if request.observation is not None:
        return _enumerated(Request(request.question, way=request.way), settings).pairs()
    return finite_joint(settings, beliefs[0], beliefs[1])
