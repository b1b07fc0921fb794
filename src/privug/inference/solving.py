"""Solving an exact observation of a continuous output for one of the random quantities behind it.

Where the output is affine in a continuous root r, o = a r + b, observing o = v means r = (v - b) / a.
Draw everything else, put r there, and weight the sample by the density of r divided by |a|.
"""

from collections.abc import Sequence

import numpy as np

from privug.errors import ObservationError
from privug.model.node import ConstantValue, Kind, Node, ancestors, depends_on, substitute
from privug.model.numpy_functions import Cast
from privug.model.operations import ArrayFunction, Elementwise, Index, Stack, almost_never_zero, constant
from privug.model.plan import Plan
from privug.model.variable import RandomVariable
from privug.observation.likelihood import Likelihood
from privug.observation.observations import close
from privug.prior.family import Draw, LogDensity

MOST_CANDIDATES = 8
PILOT_SAMPLES = 512


def solve(likelihood: Likelihood, targets: Sequence[Node], secret: Sequence[Node]) -> tuple[Likelihood, list[Node]]:
    """Replace the exact values of continuous outputs by weights; return the new likelihood and the targets given it."""
    conditions, log_weights = list(likelihood.conditions), list(likelihood.log_weights)
    points, kept, hidden = list(likelihood.points), list(targets), list(secret)
    while points:
        node, value = points.pop(0)
        root = _best_root(node, value, hidden)
        if root is None:
            if node.kind is Kind.CONTINUOUS:
                raise ObservationError(
                    f"the output is continuous, so it is exactly {value:g} with probability zero; write "
                    f"pv.near({value:g}, within=...) for a rounded output, or pv.noisy({value:g}, sd=...)"
                )
            conditions.append(close(node, value))
            continue
        solution, log_weight = _solution(node, value, root)
        everything = [*conditions, *log_weights, *(point for point, _ in points), *kept, *hidden]
        images = iter(substitute(everything, {root: solution}))
        conditions = [next(images) for _ in conditions]
        log_weights = [next(images) for _ in log_weights] + [log_weight]
        points = [(next(images), wanted) for _, wanted in points]
        kept = [next(images) for _ in kept]
        hidden = [next(images) for _ in hidden]
    return Likelihood(tuple(conditions), tuple(log_weights)), kept


def _solution(node: Node, value: float, root: Node) -> tuple[Node, Node]:
    """Return the value of the root that explains the observation, and the log weight of the sample."""
    at_zero, at_one = (RandomVariable(substitute([node], {root: constant(number)})[0]) for number in (0.0, 1.0))
    slope = at_one - at_zero
    solution = ((value - at_zero) * (1.0 / slope)).node
    assert isinstance(root.operation, Draw)
    parents = (solution, *root.parents)
    density = Node(LogDensity(root.operation.family), parents, (), np.dtype(np.float64), kind=Kind.MIXED)
    return solution, (RandomVariable(density) - np.log(np.abs(slope))).node


def _best_root(node: Node, value: float, secret: Sequence[Node]) -> Node | None:
    """Return the root whose solution leaves the most even weights, leaving the secret alone if possible."""
    candidates = affine_roots(node)
    if not candidates:
        return None
    apart = [root for root in candidates if not any(depends_on(part, root) for part in secret)]
    distinct: dict[object, Node] = {}
    for root in apart or candidates:
        distinct.setdefault(_signature(root), root)
    contenders = list(distinct.values())[:MOST_CANDIDATES]
    if len(contenders) == 1:
        return contenders[0]
    return max(contenders, key=lambda root: _pilot_sample_size(node, value, root))


def _signature(root: Node) -> object:
    parameters = tuple(
        parent.operation.array.tobytes() if isinstance(parent.operation, ConstantValue) else id(parent)
        for parent in root.parents
    )
    return root.operation, parameters


def _pilot_sample_size(node: Node, value: float, root: Node) -> float:
    log_weights = Plan([_solution(node, value, root)[1]]).run(PILOT_SAMPLES, np.random.Generator(np.random.SFC64(0)))[0]
    largest = log_weights.max()
    if not np.isfinite(largest):
        return 0.0
    weights = np.exp(log_weights - largest)
    return float(weights.sum() ** 2 / (weights**2).sum())


def affine_roots(node: Node) -> list[Node]:
    """Return the continuous roots in which a node is affine with a coefficient that is never zero by construction."""
    linear: dict[int, Node] = {}
    boundary: list[Node] = []
    stack = [node]
    while stack:
        current = stack.pop()
        if id(current) in linear:
            continue
        linear[id(current)] = current
        inside, outside = _linear_parents(current)
        stack.extend(inside)
        boundary.extend(outside)
    elsewhere = {id(other) for other in ancestors(boundary)}
    return [
        candidate
        for candidate in linear.values()
        if isinstance(candidate.operation, Draw)
        and candidate.kind is Kind.CONTINUOUS
        and candidate.shape == ()
        and id(candidate) not in elsewhere
        and _has_slope(node, candidate)
    ]


def _linear_parents(node: Node) -> tuple[list[Node], list[Node]]:
    """Split a node's parents into those it is linear in and those that are coefficients or something else."""
    parents = list(node.parents)
    match node.operation:
        case Elementwise(name="add" | "subtract" | "negative" | "positive"):
            return parents, []
        case Elementwise(name="multiply"):
            for coefficient, other in (parents, parents[::-1]):
                if almost_never_zero(coefficient):
                    return [other], [coefficient]
            return [], parents
        case Elementwise(name="true_divide"):
            return parents[:1], parents[1:]
        case ArrayFunction(name="sum" | "mean" | "reshape" | "concatenate") | Stack() | Index():
            return parents, []
        case Cast() if node.dtype.kind == "f":
            return parents, []
        case _:
            return [], parents


def _has_slope(node: Node, root: Node) -> bool:
    """Say whether the node really changes with the root: an index may have dropped it, or two terms cancelled."""
    ends = [substitute([node], {root: constant(number)})[0] for number in (0.0, 1.0)]
    low, high = Plan(ends).run(1, np.random.Generator(np.random.SFC64(0)))
    return bool(np.all(low != high))
