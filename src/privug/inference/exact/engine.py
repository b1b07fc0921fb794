"""The exact engine: its solvers are asked in order, the cheapest serves, and draws are its witness.

An answer is called exact only if some thousand draws do not contradict it: P(observation) and the beliefs must lie
within six standard errors of what the draws say, and an observation that one draw agrees with is not impossible.
Windows and values are solved where the sampler can, so that draws reach most of what is seen. In place of what they do
not reach, a window around it is checked that they do, or the prediction as a whole.
"""

import math
import operator
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Unpack

import numpy as np

from privug import interruption, settings
from privug.errors import ImpossibleObservation, PrivugError, UnsuitableEngine
from privug.estimate import Estimate
from privug.inference import workload
from privug.inference.answer import ExactAnswer, Options, SampledAnswer
from privug.inference.belief import Belief
from privug.inference.diagnostics import LARGEST_PARETO_K
from privug.inference.exact.counts.lattice import HOPEFUL
from privug.inference.exact.counts.solver import prepare_counts
from privug.inference.exact.finite.elements import Elements, TooManyElements
from privug.inference.exact.finite.elimination import schedule
from privug.inference.exact.finite.solver import nodes_of, prepare_elimination, prepare_finite
from privug.inference.exact.gaussian import prepare_gaussian
from privug.inference.exact.request import Obstacle, Offer, Refused, Request, Solver
from privug.inference.exact.rows.solver import COST_OF_CASE, prepare_rows
from privug.inference.question import Case, Question
from privug.inference.sampling import Sampler, probability_of_observation
from privug.inference.workload import numbers_computed
from privug.model.batch import Column
from privug.model.graph import everything_behind, random_nodes
from privug.model.node import Array, ConstantValue, Kind, Node, ancestors
from privug.model.operations import ArrayFunction, Elementwise
from privug.model.structure import random_leaves
from privug.model.traits import Role
from privug.observation.observations import Between, Equals, Near, Observation
from privug.prior.family import Draw
from privug.program.lifting import MOST_NODES
from privug.program.traced.opaque import OpaqueCall
from privug.runtime.critical import without_garbage_collection

SEED = 0x517
SHARE = 0.1  # of the work of an answer that its witness may take
FEWEST, MOST = 1_000, 2_000  # draws
AGAIN = 4  # times as many draws have to say the same before weighted ones contradict an answer
ANY = 50_000  # draws that look for one that agrees with an observation said to be impossible
LARGEST = 20_000_000  # random numbers in all
CONFIDENCE = 1 - 2e-9  # six standard errors to either side
DEVIATIONS = 6.0
RARE_EVENTS = 20.0  # as many of an event that is not expected at all are seen with a probability of 2e-9
ROUNDING = 1e-3  # relative: of windows so narrow that their ends are rounded
SAME = 1e-9  # relative: values that differ by less may be one
NEARBY = 0.1  # of the draws, which lie in the window around a number that they do not reach
MOST_NEARBY, MOST_PREDICTED = 2e9, 1e8  # elementary operations that may be spent on that, and on the prediction
FEWEST_WORTH = 50.0  # effective samples that can tell anything
MOST_THRESHOLDS = 32
LEVELS = np.array([0.01, 0.05, 0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9, 0.95, 0.99])
SMALLEST_WEIGHT = -650.0  # logarithm: what is less may be zero in floats


class Contradicted(Refused):
    """Draws contradict an exact answer, which is none then."""


def answer(request: Request, prepared: Offer) -> ExactAnswer:
    """Return an exact answer that draws do not contradict; else refuse."""
    try:
        with np.errstate(over="raise", divide="raise", invalid="raise"):
            run = prepared.run()
    except FloatingPointError as problem:
        raise Refused(f"its numerics failed ({problem})", precise=True) from None
    except ImpossibleObservation:
        if _some_draw_agrees(request, prepared):
            raise contradiction(request, "it called an observation impossible that some draws agree with") from None
        raise
    return _confirmed(request, prepared, run)


def contradiction(request: Request, what: str) -> Contradicted:
    """Return the refusal of an answer that draws contradict; tests make a failure of it."""
    return Contradicted(f"draws of the model contradict its answer: {what}", precise=True)


def _confirmed(request: Request, prepared: Offer, run: ExactAnswer) -> ExactAnswer:
    draws = _affordable(request, prepared)
    if not draws:
        return run
    seen = _drawn(request, draws)
    if request.observation is not None and (seen is None or not _is_telling(seen)):
        _check_nearby(request, draws)
        return run
    _check(request, run, seen, draws)
    return run


def _check(request: Request, run: ExactAnswer, seen: SampledAnswer | None, draws: int) -> None:
    """Refuse an answer that draws contradict; weighted ones have to do so twice."""
    what = next(_contradictions(run, seen), None)
    if what is not None and seen is not None and seen.log_weights is not None:
        what = next(_contradictions(run, _drawn(request, AGAIN * draws, SEED + 1)), None)
    if what is not None:
        raise contradiction(request, what)


def _check_nearby(request: Request, draws: int) -> None:
    """Check a question that draws can tell something about, in place of one that they cannot."""
    reached = Request(request.question, _window(request, draws))
    prepared = prepare(reached)
    most = MOST_PREDICTED if reached.observation is None else MOST_NEARBY
    if isinstance(prepared, Obstacle) or prepared.cost > most:
        return
    try:
        run = prepared.run()
    except PrivugError:  # a further question may be refused where this one was not
        return
    _check(reached, run, _drawn(reached, draws), draws)


def _window(request: Request, draws: int) -> Observation | None:
    """Return a window around a number that was seen, into which enough draws fall; None where there is none."""
    match request.observation:
        case Equals(value) | Near(value):
            place = value
        case Between(low, high):
            place = low if math.isfinite(low) else high
        case _:
            return None
    if not isinstance(place, int | float):
        return None
    before = _drawn(Request(request.question), draws)
    numbers = None if before is None else before.quantities[1].numbers()
    if numbers is None or numbers.ndim != 1:
        return None
    away = np.sort(np.abs(np.asarray(numbers, float) - place))
    width = float(away[min(len(away) - 1, int(NEARBY * len(away)))])
    return Between(place - width, place + width) if math.isfinite(width) else None


def _affordable(request: Request, prepared: Offer) -> int:
    """Return how many draws a witness may make; none of a program that is called, which is its own witness."""
    case = request.case(request.question.typical_sizes)
    nodes = ancestors([leaf.node for leaf in random_leaves((case.secret, case.output, case.facts))])
    if any(node.operation.opaque for node in nodes):
        return 0
    numbers = numbers_computed(nodes)
    worth = SHARE * prepared.cost / max(1.0, prepared.cost_of_sample)
    return int(min(max(FEWEST, worth), MOST, LARGEST // numbers))


def _drawn(request: Request, draws: int, seed: int = SEED) -> SampledAnswer | None:
    """Return draws given the observation; None if none of them agrees, or if there are none."""
    try:
        with settings.limited(on=settings.HERE):
            return Sampler(
                request.question, request.observation, samples=draws, seed=seed, budget=draws, extra=request.extra
            ).once()
    except PrivugError:  # what the program fails on is for the sampling engine to say
        return None


def _some_draw_agrees(request: Request, prepared: Offer) -> bool:
    draws = min(ANY, AGAIN * AGAIN * _affordable(request, prepared))
    seen = _drawn(request, draws) if draws else None
    return seen is not None and (seen.log_weights is None or float(seen.log_weights.max()) > SMALLEST_WEIGHT)


def _contradictions(run: ExactAnswer, seen: SampledAnswer | None) -> Iterator[str]:
    """Yield what draws say otherwise."""
    if seen is None or not _is_telling(seen):
        return
    evidence = run.diagnostics.evidence
    if evidence is not None and not _is_evidence(evidence, seen):
        told = seen.diagnostics.evidence
        yield f"P(observation) is {told} by draws and {evidence.value:.6g} by its own account"
    for name, belief, batch in zip(("secret", "output", "query"), run.beliefs, seen.quantities, strict=False):
        if belief is not None and not _is_belief(
            belief, batch.columns, seen.weights, seen.diagnostics.effective_samples
        ):
            yield f"its belief about the {name} is not what draws show"


def _is_telling(seen: SampledAnswer) -> bool:
    """Say whether draws are worth enough to contradict anything."""
    if seen.log_weights is None:
        return True
    shape = seen.diagnostics.pareto_k
    return seen.diagnostics.effective_samples >= FEWEST_WORTH and (shape is None or shape <= LARGEST_PARETO_K)


def _is_evidence(exact: Estimate, seen: SampledAnswer) -> bool:
    """Say whether P(observation) lies within six standard errors of what draws say."""
    told = seen.diagnostics.evidence
    if told is None or (told.unit == "density") is not (exact.unit == "density"):
        return True
    draws = seen.diagnostics.draws - seen.diagnostics.excluded
    found = probability_of_observation(seen.log_weights, seen.diagnostics.accepted, draws, told.unit, CONFIDENCE)
    scale = told.value / found.value if found.value > 0 else 1.0  # by how much facts make it likelier
    low, high = (scale * end for end in (found.low, found.high))
    slack = ROUNDING * max(abs(told.value), abs(exact.value))
    return exact.high + slack >= low and exact.low - slack <= high


def _is_belief(belief: Belief, columns: Sequence[Column], weights: Array | None, worth: float) -> bool:
    """Say whether each part of a quantity is distributed as draws are, as far as either can be told."""
    if belief.curve is not None:
        if not np.isfinite(np.asarray(columns[0].array, float)).all():
            return True
        thresholds = np.quantile(np.asarray(columns[0].array, float), LEVELS)
        return _agree(thresholds, belief.curve.cdf(thresholds), columns[0], weights, worth, belief.error)
    exact = belief.batch.columns
    if len(exact) != len(columns) or any(map(operator.ne, map(_levels, exact), map(_levels, columns))):
        return True
    return all(
        _agree(*_steps(own, belief.shares), other, weights, worth, belief.error)
        for own, other in zip(exact, columns, strict=True)
        if own.array.ndim == 1 and own.array.dtype.kind in "bif"
    )


def _levels(column: Column) -> list[tuple[type, Any]] | None:
    """Return the values that codes stand for, which may be equal in Python, as 1 and True are."""
    return None if column.levels is None else [(type(level), level) for level in column.levels]


def _steps(column: Column, weights: Array) -> tuple[Array, Array]:
    """Return numbers between the values of a discrete quantity, and how likely it is to lie below each."""
    values, codes = np.unique(column.array.astype(float), return_inverse=True)
    below = np.cumsum(np.bincount(codes.reshape(-1), weights, len(values)))
    chosen = np.unique(np.linspace(0, len(values) - 1, MOST_THRESHOLDS).round().astype(int))
    if len(values) > MOST_THRESHOLDS:
        chosen = np.unique(np.concatenate([chosen, np.minimum(np.searchsorted(below, LEVELS), len(values) - 1)]))
    after = np.append(values[1:], np.nextafter(values[-1], np.inf))
    return np.asarray((values / 2 + after / 2)[chosen]), np.asarray(below[chosen])


def _agree(thresholds: Array, below: Array, column: Column, weights: Array | None, worth: float, error: float) -> bool:
    """Say whether as many draws lie up to some thresholds as should, within six standard errors."""
    values = column.array
    if values.ndim != 1 or values.dtype.kind not in "bif" or not np.isfinite(values.astype(float)).all():
        return True
    shares = np.full(len(values), 1 / len(values)) if weights is None else weights
    slack = SAME * np.abs(thresholds)
    order = np.argsort(values, kind="stable")
    total = np.concatenate([[0.0], np.cumsum(shares[order])])
    ordered = values[order].astype(float)
    # Draws at a threshold may be rounded to it: they count for either side.
    least = total[np.searchsorted(ordered, thresholds - slack, side="left")]
    most = total[np.searchsorted(ordered, thresholds + slack, side="right")]
    room = DEVIATIONS * np.sqrt(np.clip(below * (1 - below), 0.0, None) / worth) + RARE_EVENTS / worth + error
    return bool(np.all((least - room <= below) & (below <= most + room)))


def telling(obstacles: Sequence[Obstacle]) -> Obstacle:
    """Return the obstacle that says most."""
    ranked = sorted(obstacles, key=lambda obstacle: (not obstacle.precise, obstacle.vague))
    return ranked[0]


def told(request: Request, obstacles: Sequence[Obstacle]) -> str:
    """Return what stands in the way, as the end of a sentence, with the line of the program where that is known."""
    case = request.case(request.question.typical_sizes)
    first, order = telling(obstacles), everything_behind(nodes_of(case.output))
    for node in order:
        if isinstance(node.operation, OpaqueCall):
            called = node.operation.calls.name
            return f"the program calls {called} on more values than can be listed{_at(request, case, node)}"
    if first.precise:
        return first.reason + ("" if first.node is None else _at(request, case, first.node))
    most = first.reason
    if any(node.operation.opaque for node in order):
        reason = case.lifting.reason
        return most if reason is None or reason in most else f"{most}; it cannot be traced: {reason}"
    found = _culprit(order)
    if found is not None:
        what, node = found
        return what + _at(request, case, node)
    if any(_is_continuous(node) for node in order):
        return most
    numbers = sum(math.prod(node.shape) for node in order)
    crowded = _crowded(request, case) if numbers <= MOST_NODES else None
    return most if crowded is None else f"{most}, too many of which matter at once{crowded}"


def _at(request: Request, case: Case, node: Node) -> str:
    """Return the line of a node, or of what is nearest behind it; one that was made of another has its operation."""
    lines = request.question.lines(case)
    pending = [node]
    for one in pending:
        found = (
            {lines[one]}
            if one in lines
            else {line for other, line in lines.items() if other.operation is one.operation}
        )
        if len(found) == 1:
            return f" at line {found.pop()}"
        pending.extend(parent for parent in one.parents if parent not in pending)
    return ""


def _is_continuous(node: Node) -> bool:
    return isinstance(node.operation, Draw) and node.kind is not Kind.DISCRETE


def _culprit(order: Sequence[Node]) -> tuple[str, Node] | None:
    """Return the first thing that the program does to a continuous quantity and that is no weighted sum."""
    random, continuous = random_nodes(order), set[Node]()
    for node in order:
        touched = [parent for parent in node.parents if parent in continuous]
        if isinstance(node.operation, Draw):
            if _is_continuous(node):
                continuous.add(node)
            continue
        if touched:
            what = _what(node, len([parent for parent in node.parents if parent in random]))
            if what is not None:
                return what, node
        if touched or (node.kind is not Kind.DISCRETE and not isinstance(node.operation, ConstantValue)):
            continuous.add(node)
    return None


def _what(node: Node, random_parents: int) -> str | None:
    if not isinstance(node.operation, Elementwise | ArrayFunction):
        return None
    match node.operation.traits.role:
        case Role.SUM | Role.MOVE:
            return None
        case Role.COMPARISON | Role.CHOICE:
            return "the output branches on a continuous variable"
        case Role.ORDER:
            return f"the output takes '{node.operation.name}' of continuous variables"
        case Role.PRODUCT if random_parents > 1:
            return "a continuous variable is multiplied or divided by another random one"
        case Role.PRODUCT:
            return None
    return f"the output uses '{node.operation.name}' of a continuous variable"


def _crowded(request: Request, case: Case) -> str | None:
    """Say at which line the most combinations of discrete values would have to be remembered."""
    targets = nodes_of(case.secret, case.output)
    try:
        elements = Elements(targets)
        busiest = schedule([part for node in targets for part in elements.all_of(node)], {}, 1).busiest
    except TooManyElements:
        return None
    lines = request.question.lines(case)
    known = [lines[node] for node in (elements.origins.get(node, node) for node in busiest) if node in lines]
    return f" at line {known[-1]}" if known else None


CHEAP = 5e6  # elementary operations that no other solver need be asked to spare
MOST_COST = 3e11  # elementary operations: many minutes

SOLVERS: tuple[Solver, ...] = (prepare_finite, prepare_gaussian, prepare_counts, prepare_elimination, prepare_rows)
LEAST: dict[Solver, float] = {prepare_rows: COST_OF_CASE}
"""What a solver takes at least: it need not be asked beside one that takes less."""


def prepare(request: Request) -> Offer | Obstacle:
    """Return the cheapest prepared answer, the first one that is cheap, or an obstacle that says something."""
    best, obstacles = _asked(request)
    return best or telling(obstacles)


def _asked(request: Request) -> tuple[Offer | None, list[Obstacle]]:
    found: list[Offer] = []
    obstacles: list[Obstacle] = []
    is_counted = False
    for solver in SOLVERS:
        least = min((one.cost for one in found), default=math.inf)
        if least <= CHEAP:
            break
        if least <= LEAST.get(solver, 0.0) or (solver is prepare_elimination and is_counted):
            continue  # rows that are alike need not be taken apart
        try:
            with without_garbage_collection(), workload.at_most(least):  # what is offered already would take no more
                found.append(_within_cost(solver(request)))
            is_counted |= solver is prepare_counts and found[-1].cost < HOPEFUL
        except Refused as refused:
            obstacles.append(refused.obstacle)
        except workload.Exhausted:
            if not found:
                raise
    ranked = sorted(found, key=lambda one: one.cost)
    return replace(ranked[0], run=partial(_in_turn, ranked)) if ranked else None, obstacles


def _in_turn(ranked: Sequence[Offer]) -> ExactAnswer:
    """Return the answer of the first solver that does not meet an obstacle after all."""
    for prepared in ranked[:-1]:
        with suppress(Refused):
            return prepared.run()
    return ranked[-1].run()


def _within_cost(prepared: Offer) -> Offer:
    """Return what was prepared, if it takes no longer than anybody waits; who says how long may have it tried."""
    if prepared.cost <= MOST_COST or interruption.seconds_left() is not None:
        return prepared
    raise Refused(f"it would take some {prepared.cost:.0e} operations (the limit is {MOST_COST:.0e})")


def infer(question: Question, observation: Observation | None, **options: Unpack[Options]) -> ExactAnswer:
    """Answer exactly, or say what stands in the way; samples, seed and budget change nothing."""
    request = Request(question, observation, options.get("extra"))
    prepared, obstacles = _asked(request)
    if prepared is not None:
        try:
            with workload.limited(None, prepared.cost):
                return answer(request, prepared)
        except Refused as refused:
            obstacles.append(refused.obstacle)
    raise UnsuitableEngine(f"engine='exact' cannot answer this: {told(request, obstacles)}; engine='sample' can")
