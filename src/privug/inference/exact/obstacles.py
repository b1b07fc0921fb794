"""What stands in the way of an exact answer, told such that something can be done about it: what, and at which line."""

import math
from collections.abc import Sequence

from privug.inference.exact.finite.elements import Elements, TooManyElements
from privug.inference.exact.finite.enumeration import nodes_of
from privug.inference.exact.finite.ordering import schedule
from privug.inference.exact.request import Obstacle, Request
from privug.inference.question import Case
from privug.model.graph import everything_behind
from privug.model.node import ConstantValue, Kind, Node
from privug.model.operations import ArrayFunction, Elementwise
from privug.model.traits.traits import Role
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
