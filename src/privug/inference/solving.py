"""Solving an exact observation of a continuous output for the random quantities behind it.

Given everything else, let the output be affine in some continuous roots: o = b + sum of a_i r_i. Seeing
o = v is then an event of probability zero with a density, and samples can be put on it:

* normal roots together: draw them, then move each by its share of v - o (conditioning by Matheron's
  rule), which gives exact draws from their conditional distribution; weight by the normal density of v;
* one root of any other family: set it to (v - b) / a and weight by its density there, divided by |a|.

Of the possible ways the one with the most even weights in a pilot run is taken.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from privug.errors import ObservationError
from privug.inference.affine import Coefficient, affine_roots
from privug.inference.diagnostics import effective_sample_size
from privug.model.node import Array, ConstantValue, Kind, Node, substitute
from privug.model.operations import constant
from privug.model.plan import Plan
from privug.model.variable import RandomVariable, as_node
from privug.observation.likelihood import Likelihood
from privug.observation.observations import close
from privug.prior.choice import constant_value
from privug.prior.continuous import NORMAL
from privug.prior.family import Family, LogDensity, family_of

MOST_CANDIDATES = 8
PILOT_SAMPLES = 512


@dataclass(frozen=True)
class Solution:
    """Roots replaced by values that agree with the observation, and the log weight of the sample."""

    replacements: dict[Node, Node]
    log_weight: Node


def solve(likelihood: Likelihood, targets: Sequence[Node]) -> tuple[Likelihood, list[Node]]:
    """Replace exact values of continuous outputs by weights; return the new likelihood and the targets given it."""
    conditions, log_weights = list(likelihood.conditions), list(likelihood.log_weights)
    points, kept = list(likelihood.points), list(targets)
    while points:
        node, value = points.pop(0)
        solution = _best_solution(node, value)
        if solution is None:
            if node.kind is Kind.CONTINUOUS and not _has_atoms(node):
                raise ObservationError(
                    f"the output is continuous, so it is exactly {value:g} with probability zero; write "
                    f"pv.near({value:g}, within=...) for a rounded output, or pv.noisy({value:g}, sd=...)"
                )
            conditions.append(close(node, value))
            continue
        everything = [*conditions, *log_weights, *(point for point, _ in points), *kept]
        images = iter(substitute(everything, solution.replacements))
        conditions = [next(images) for _ in conditions]
        log_weights = [next(images) for _ in log_weights] + [solution.log_weight]
        points = [(next(images), wanted) for _, wanted in points]
        kept = [next(images) for _ in kept]
    return Likelihood(tuple(conditions), tuple(log_weights)), kept


def _best_solution(node: Node, value: float) -> Solution | None:
    roots = affine_roots(node)
    normal = {root: slope for root, slope in roots.items() if family_of(root) is NORMAL}
    solutions = [_condition_normals(node, value, normal)] if normal else []
    singles: dict[Any, Node] = {}
    for root in roots:
        if root.shape == () and root not in normal:
            singles.setdefault(_signature(root), root)
    for root in list(singles.values())[:MOST_CANDIDATES]:
        solutions.append(_solve_for(node, value, root, roots[root]))
    if len(solutions) <= 1:
        return solutions[0] if solutions else None
    return max(solutions, key=_pilot_sample_size)


def _has_atoms(node: Node) -> bool:
    """Say whether a quantity that looks continuous takes some value again and again, as `x - x` does."""
    values = _pilot(node)
    return len(np.unique(values)) < len(values)


def _pilot(node: Node) -> Array:
    """Draw some values of a node, leaving out samples for which there is none."""
    failed = np.zeros(PILOT_SAMPLES, np.bool_)
    values = Plan([node]).run(PILOT_SAMPLES, np.random.Generator(np.random.SFC64(0)), failed=failed)[0]
    return values[~failed]


def _signature(root: Node) -> Any:
    parameters = tuple(
        parent.operation.array.tobytes() if isinstance(parent.operation, ConstantValue) else id(parent)
        for parent in root.parents
    )
    return root.operation, parameters


def _solve_for(node: Node, value: float, root: Node, slope: Coefficient) -> Solution:
    """Set one root to the value that explains the observation."""
    drawn = RandomVariable(root)
    solved = drawn + (value - RandomVariable(node)) * (1.0 / slope)
    density = _log_density(family_of(root), solved.node, root.parents)
    return Solution({root: solved.node}, (density - np.log(np.abs(slope))).node)


def _condition_normals(node: Node, value: float, roots: dict[Node, Coefficient]) -> Solution:
    """Draw normal roots from their joint distribution given the observation."""
    output = RandomVariable(node)
    means = {root: _parameter(root, 0) for root in roots}
    deviations = {root: _parameter(root, 1) for root in roots}
    # Variances relative to the largest known deviation neither overflow nor vanish.
    unit = max((float(np.max(sd)) for sd in deviations.values() if not isinstance(sd, RandomVariable)), default=1.0)
    relative = {root: (deviations[root] * (1.0 / unit)) ** 2 for root in roots}
    total = reduce(_plus, (_sum(relative[root] * (slope * slope), root) for root, slope in roots.items()))
    offsets = reduce(_plus, (_sum((RandomVariable(root) - means[root]) * a, root) for root, a in roots.items()))
    share = (value - output) * (1.0 / total)
    replacements = {
        root: (RandomVariable(root) + share * (relative[root] * slope)).node for root, slope in roots.items()
    }
    spread = as_node(total**0.5 * unit)
    log_weight = _log_density(NORMAL, constant(value), ((output - offsets).node, spread))
    return Solution(replacements, log_weight.node)


def _parameter(root: Node, position: int) -> Any:
    """Return a parameter as a plain number where it is one: coefficients must be known not to vanish."""
    node = root.parents[position]
    return constant_value(node) if isinstance(node.operation, ConstantValue) else RandomVariable(node)


def _plus(left: Any, right: Any) -> Any:
    return left + right


def _sum(value: Any, root: Node) -> Any:
    """Sum over the elements of an array root; a scalar coefficient stands for each of them."""
    if isinstance(value, RandomVariable):
        return value.sum() if value.ndim else value
    return float(np.sum(np.broadcast_to(value, root.shape)))


def _log_density(family: Family, at: Node, parameters: tuple[Node, ...]) -> RandomVariable:
    return RandomVariable(Node(LogDensity(family), (at, *parameters), (), np.dtype(np.float64), kind=Kind.MIXED))


def _pilot_sample_size(solution: Solution) -> float:
    log_weights = _pilot(solution.log_weight)
    log_weights = log_weights[np.isfinite(log_weights)]
    return effective_sample_size(log_weights, len(log_weights))
