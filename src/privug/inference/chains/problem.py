"""A question and an observation as chains need them: random roots, the log weight of their values, and the way back."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np

from privug.errors import ImpossibleObservation, ProgramError, UnsuitableEngine
from privug.inference.case_plan import Quantity, not_a_number
from privug.inference.chains.naming import named_roots
from privug.inference.chains.smoothing import Smoothed, smooth
from privug.inference.failures import failure_of_program
from privug.inference.question import Case, Question
from privug.model.batch import Batch
from privug.model.graph import substitute
from privug.model.node import Array, Kind, Node, ancestors
from privug.model.operations import SampleFailure, constant, stack
from privug.model.plan import Plan
from privug.model.structure import random_leaves
from privug.model.variable import RandomVariable, as_node
from privug.observation.observations import Observation
from privug.prior.conditional import BindDraw
from privug.prior.family import Draw

CHECKED_SAMPLES = 16
MOST_ADDED = 16


@dataclass(frozen=True)
class Stratum:
    """The model for one size of each table, in terms of the roots that all sizes share."""

    case: Case
    moved: Mapping[Node, Node]
    """What stands for each root of the case, so that it agrees with the observation."""
    log_weight: Node
    conditions: tuple[Node, ...] = ()
    checks: tuple[Node, ...] = ()
    sizes: Mapping[Node, Any] = field(default_factory=dict)
    """The values of the random roots behind the sizes of the tables."""


@dataclass(frozen=True)
class Problem:
    """A density over random roots: their own, times the exponential of `log_weight`, where the conditions hold.

    Of the draws, those are dropped for which `kept` is false; `evaluate` gives secret and output on the others.
    """

    question: Question
    strata: tuple[Stratum, ...]
    roots: tuple[Node, ...]
    names: tuple[str, ...]
    log_weight: Node
    conditions: tuple[Node, ...]
    seed: int
    remarks: tuple[str, ...] = ()
    log_weights: Node | None = None
    """The log weights of all sizes of the tables, as one array."""
    listed: Mapping[Node, Array] = field(default_factory=dict)
    """The values of discrete roots that are summed over; beyond the last ones there may be others."""

    @property
    def has_checks(self) -> bool:
        """Whether draws may have to be dropped."""
        return self.question.exclude_errors or any(stratum.checks for stratum in self.strata)

    def logs(self, values: Mapping[Node, Array]) -> Array:
        """Return the log weight of draws; minus infinity where a condition does not hold."""
        return _logs([self.log_weight], self.conditions, values)[:, 0]

    def holds(self, conditions: Sequence[Node], values: Mapping[Node, Array]) -> Array:
        """Say for which values of the roots conditions hold; they do not where they cannot be computed."""
        failed = np.zeros(_length(values), np.bool_)
        arrays = _evaluated(conditions, values, np.arange(len(failed)), self._rng(), failed)
        holds = ~failed
        for array in arrays:
            holds &= array
        return holds

    def sized(self, values: Mapping[Node, Array]) -> dict[Node, Array]:
        """Return the draws together with sizes of the tables drawn given them."""
        if not self.strata[0].sizes:
            return dict(values)
        assert self.log_weights is not None
        logs = _logs([self.log_weights], (), values)[:, 0]
        gumbel = self._rng().gumbel(size=logs.shape)
        chosen = np.argmax(logs + gumbel, axis=1)
        sizes = {node: np.array([stratum.sizes[node] for stratum in self.strata]) for node in self.strata[0].sizes}
        return {**values, **{node: table[chosen] for node, table in sizes.items()}}

    def kept(self, values: Mapping[Node, Array]) -> Array:
        """Say which draws lie on this side of all walls, and do not make the program fail if such are left out."""
        samples = _length(values)
        kept = np.ones(samples, np.bool_)
        if not self.has_checks:
            return kept
        for stratum, members in self._by_size(values):
            targets = substitute([*judged_nodes(stratum.case)], stratum.moved)
            failed = np.zeros(len(members), np.bool_)
            marks = failed if self.question.exclude_errors else None
            arrays = _evaluated([*targets, *stratum.checks], values, members, self._rng(), marks, forgiving=True)
            for check in arrays[len(targets) :]:
                failed |= ~check
            if self.question.exclude_errors:
                failed |= not_a_number(arrays[: len(targets)], 0, ~failed, exclude=True)
            kept[members[failed]] = False
        return kept

    def evaluate(self, values: Mapping[Node, Array], extra: Callable[..., Any] | None = None) -> tuple[Batch, ...]:
        """Return secret, output and a further query on draws of the roots, as the program itself gives them."""
        parts = [(members, self._answers(s, values, members, extra)) for s, members in self._by_size(values)]
        order = np.argsort(np.concatenate([members for members, _ in parts]), kind="stable")
        columns = zip(*(answers for _, answers in parts), strict=True)
        return tuple(Batch.concatenate(column).take(order) for column in columns)

    def _answers(
        self, stratum: Stratum, values: Mapping[Node, Array], members: Array, extra: Callable[..., Any] | None
    ) -> list[Batch]:
        quantities = [Quantity.of(stratum.case.secret), Quantity.of(stratum.case.output)]
        if extra is not None:
            quantities.append(Quantity.of(self.question.query(stratum.case, extra)))
        nodes = [node for quantity in quantities for node in quantity.nodes]
        try:
            arrays = _evaluated(substitute(nodes, stratum.moved), values, members, self._rng())
            secrets = len(quantities[0].nodes)
            not_a_number(
                arrays[: secrets + len(quantities[1].nodes)], secrets, np.ones(len(members), np.bool_), exclude=False
            )
        except SampleFailure as failure:
            raise self._explained(stratum, values, members, failure) from failure.cause
        following = iter(arrays)
        return [q.batch([next(following) for _ in q.nodes], len(members)) for q in quantities]

    def _explained(
        self, stratum: Stratum, values: Mapping[Node, Array], members: Array, failure: SampleFailure
    ) -> ProgramError:
        inputs = Quantity.of(dict(stratum.case.inputs))
        which = members[[failure.index % len(members)]]
        arrays = _evaluated(substitute(inputs.nodes, stratum.moved), values, which, self._rng(), forgiving=True)
        shown = inputs.batch(arrays, 1).values()[0]
        return failure_of_program(failure, shown)

    def _by_size(self, values: Mapping[Node, Array]) -> list[tuple[Stratum, Array]]:
        members = np.arange(_length(values))
        if not self.strata[0].sizes:
            return [(self.strata[0], members)]
        found = []
        for stratum in self.strata:
            agree = np.logical_and.reduce(
                [(values[node] == size).reshape(len(members), -1).all(axis=1) for node, size in stratum.sizes.items()]
            )
            if agree.any():
                found.append((stratum, members[agree]))
        return found

    def _rng(self) -> np.random.Generator:
        return np.random.Generator(np.random.SFC64(np.random.SeedSequence(self.seed, spawn_key=(1 << 20,))))


def _length(values: Mapping[Node, Array]) -> int:
    return len(next(iter(values.values()))) if values else 1


def _evaluated(
    targets: Sequence[Node],
    values: Mapping[Node, Array],
    members: Array,
    rng: np.random.Generator,
    failed: Array | None = None,
    *,
    forgiving: bool = False,
) -> list[Array]:
    """Evaluate nodes on some draws, in blocks that stay in the cache."""
    plan = Plan(targets, list(values))
    parts = []
    for start in range(0, len(members), plan.block):
        chosen = members[start : start + plan.block]
        marks = None if failed is None else failed[start : start + plan.block]
        known = {node: array[chosen] for node, array in values.items()}
        try:
            parts.append(plan.run(len(chosen), rng, known, forgiving=forgiving and marks is None, failed=marks))
        except SampleFailure as failure:
            raise SampleFailure(start + failure.index, failure.cause, failure.label) from failure.cause
    return [np.concatenate(pieces) for pieces in zip(*parts, strict=True)]


def _logs(weights: Sequence[Node], conditions: Sequence[Node], values: Mapping[Node, Array]) -> Array:
    members = np.arange(_length(values))
    failed = np.zeros(len(members), np.bool_)
    rng = np.random.Generator(np.random.SFC64(0))
    arrays = _evaluated([*weights, *conditions], values, members, rng, failed)
    logs = np.stack(arrays[: len(weights)], axis=1)
    wrong = np.isnan(logs)
    wrong[failed] = True
    for condition in arrays[len(weights) :]:
        wrong[~condition] = True
    return np.where(wrong, -np.inf, logs)


def judged_nodes(case: Case) -> list[Node]:
    """Return the nodes of secret and output."""
    return [*Quantity.of(case.secret).nodes, *Quantity.of(case.output).nodes]


def drawn(nodes: Sequence[Node]) -> list[Node]:
    """Return the random roots behind nodes; quantities that only plain calls can draw are refused."""
    roots = [node for node in ancestors(nodes) if node.is_random]
    if any(isinstance(root.operation, BindDraw) for root in roots):
        raise UnsuitableEngine(
            "chains need a density for every random quantity, and pv.bind with a function that branches has none; "
            "write pv.given, or choose engine='sample'"
        )
    return [root for root in roots if isinstance(root.operation, Draw)]


def stratum(case: Case, observation: Observation | None) -> tuple[Stratum, Smoothed]:
    """Return the model of one case given the observation."""
    likelihood = case.likelihood(observation)
    if likelihood.impossible is not None:
        raise ImpossibleObservation(f"this observation is impossible: {likelihood.impossible}")
    points = [node for node, _ in likelihood.points]
    roots = drawn([*judged_nodes(case), *likelihood.conditions, *likelihood.log_weights, *points])
    smoothed = smooth(likelihood, roots)
    moved = {root: image for root, image in zip(roots, smoothed.targets, strict=True) if image is not root}
    weight = total([*smoothed.log_weights])
    return Stratum(case, moved, weight, tuple(smoothed.conditions), tuple(smoothed.checks)), smoothed


def total(log_weights: Sequence[Node]) -> Node:
    """Return the sum of log weights, each a single number or an array of them."""
    if not log_weights:
        return constant(0.0)
    terms = [RandomVariable(node).sum() if node.shape else RandomVariable(node) for node in log_weights]
    if len(terms) > MOST_ADDED:
        return RandomVariable(stack([as_node(term) for term in terms])).sum().node
    return reduce(lambda left, right: left + right, terms).node


def single(question: Question, observation: Observation | None, seed: int, samples: int) -> Problem:
    """Return the problem of a question whose tables have known sizes."""
    case = question.case((), samples)
    only, _ = stratum(case, observation)
    judged = substitute(judged_nodes(case), only.moved)
    roots = drawn([*judged, only.log_weight, *only.conditions, *only.checks])
    check_repeatable([only.log_weight, *only.conditions], roots)
    names = named_roots(roots, case.inputs)
    conditions = only.conditions
    if question.exclude_errors and Plan([only.log_weight]).can_fail:  # where the program fails there is a wall
        conditions += ((RandomVariable(only.log_weight) > -math.inf).node,)
    return Problem(question, (only,), tuple(roots), tuple(names), only.log_weight, conditions, seed)


def check_repeatable(nodes: Sequence[Node], roots: Sequence[Node]) -> None:
    """Refuse programs that draw random numbers which are not in the graph: the observation has no density then."""
    if not any(node.operation.opaque for node in ancestors(nodes)):
        return
    rngs = [np.random.Generator(np.random.SFC64(seed)) for seed in (0, 1, 2)]
    drawn_once = dict(zip(roots, Plan(roots).run(CHECKED_SAMPLES, rngs[0]), strict=True))
    members = np.arange(CHECKED_SAMPLES)
    one, other = (_evaluated(_numeric(nodes), drawn_once, members, rng, forgiving=True) for rng in rngs[1:])
    if any(not np.array_equal(a, b, equal_nan=True) for a, b in zip(one, other, strict=True)):
        raise UnsuitableEngine(
            "the program draws random numbers of its own, so that what was seen has no density; "
            "make its noise an input, or choose engine='sample' or 'rare'"
        )


def _numeric(nodes: Sequence[Node]) -> list[Node]:
    return [node for node in nodes if node.dtype.kind in "bif"]


def is_differentiable(problem: Problem) -> bool:
    """Say whether gradients lead through the whole problem: no discrete root and no condition that holds or not."""
    return not problem.conditions and all(root.kind is Kind.CONTINUOUS for root in problem.roots)


def inputs_of(case: Case) -> list[Node]:
    """Return the nodes of a case's inputs."""
    return [variable.node for variable in random_leaves(dict(case.inputs))]
