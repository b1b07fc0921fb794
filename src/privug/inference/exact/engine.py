"""The exact engine: its solvers are asked in order, and the cheapest serves; else it says what stands in the way."""

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Unpack

from privug import interruption
from privug.errors import UnsuitableEngine
from privug.inference import effort
from privug.inference.answer import ExactAnswer, Options
from privug.inference.exact.counts.lattice import HOPEFUL
from privug.inference.exact.counts.solver import prepare_counts
from privug.inference.exact.finite.elements import Elements, TooManyElements
from privug.inference.exact.finite.elimination import schedule
from privug.inference.exact.finite.enumeration import nodes_of
from privug.inference.exact.finite.solver import prepare_elimination, prepare_finite
from privug.inference.exact.gaussian.solver import prepare_gaussian
from privug.inference.exact.request import Obstacle, Offer, Part, Refused, Request
from privug.inference.exact.rows.solver import COST_OF_CASE, prepare_rows
from privug.inference.exact.witness import witnessed
from privug.inference.question import Case, Question
from privug.model.garbage import without_garbage_collection
from privug.model.graph import everything_behind
from privug.model.node import ConstantValue, Kind, Node
from privug.model.operations import ArrayFunction, Elementwise
from privug.model.traits.traits import Role
from privug.observation.observations import Observation
from privug.prior.family import Draw
from privug.program.origins import MOST_NODES


def telling(obstacles: Sequence[Obstacle]) -> Obstacle:
    """Return the obstacle that says most."""
    ranked = sorted(obstacles, key=lambda obstacle: (not obstacle.precise, obstacle.vague))
    return ranked[0]


def told(request: Request, obstacles: Sequence[Obstacle]) -> str:
    """Return what stands in the way, as the end of a sentence, with the line of the program where that is known."""
    case = request.case(request.question.typical_sizes)
    first = telling(obstacles)
    if first.precise:
        return first.reason + ("" if first.node is None else _at(request, case, first.node))
    most = first.reason
    order = everything_behind(nodes_of(case.output))
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
    random: set[Node] = set()
    continuous: set[Node] = set()
    for node in order:
        if node.operation.random or not random.isdisjoint(node.parents):
            random.add(node)
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


CHEAP = 5e6  # elementary operations that no other part need be asked to spare
MOST_COST = 3e11  # elementary operations: many minutes

PARTS: tuple[Part, ...] = (
    prepare_finite,
    prepare_gaussian,
    prepare_counts,
    prepare_elimination,
    prepare_rows,
)
LEAST: dict[Part, float] = {prepare_rows: COST_OF_CASE}
"""What a part takes at least: it need not be asked beside one that takes less."""


def prepare(request: Request) -> Offer | Obstacle:
    """Return the cheapest prepared answer, the first one that is cheap, or an obstacle that says something."""
    best, obstacles = _asked(request)
    return best or telling(obstacles)


def _asked(request: Request) -> tuple[Offer | None, list[Obstacle]]:
    found: list[Offer] = []
    obstacles: list[Obstacle] = []
    is_counted = False
    for part in PARTS:
        least = min((one.cost for one in found), default=math.inf)
        if least <= CHEAP:
            break
        if least <= LEAST.get(part, 0.0) or (part is prepare_elimination and is_counted):
            continue  # rows that are alike need not be taken apart
        with without_garbage_collection():
            prepared = _affordable(part(request))
        if isinstance(prepared, Obstacle):
            obstacles.append(prepared)
        else:
            found.append(prepared)
            is_counted |= part is prepare_counts and prepared.cost < HOPEFUL
    ranked = sorted(found, key=lambda one: one.cost)
    return replace(ranked[0], run=partial(_in_turn, ranked)) if ranked else None, obstacles


def _in_turn(ranked: Sequence[Offer]) -> ExactAnswer:
    """Return the answer of the first solver that does not meet an obstacle after all."""
    for prepared in ranked[:-1]:
        with suppress(Refused):
            return prepared.run()
    return ranked[-1].run()


def _affordable(prepared: Offer | Obstacle) -> Offer | Obstacle:
    """Return what was prepared, if it takes no longer than anybody waits; who says how long may have it tried."""
    if isinstance(prepared, Obstacle) or prepared.cost <= MOST_COST or interruption.seconds_left() is not None:
        return prepared
    return Obstacle(f"it would take some {prepared.cost:.0e} operations (the limit is {MOST_COST:.0e})")


def answer(request: Request, prepared: Offer) -> ExactAnswer:
    """Return what was prepared, unless draws of the model contradict it."""
    return witnessed(request, prepared, prepare)


def infer(question: Question, observation: Observation | None, **options: Unpack[Options]) -> ExactAnswer:
    """Answer exactly, or say what stands in the way; samples, seed and budget change nothing."""
    request = Request(question, observation, options.get("extra"))
    prepared, obstacles = _asked(request)
    if prepared is not None:
        try:
            with effort.limited(None, prepared.cost):
                return answer(request, prepared)
        except Refused as refused:
            obstacles.append(refused.obstacle)
    raise UnsuitableEngine(f"engine='exact' cannot answer this: {told(request, obstacles)}; engine='sample' can")
