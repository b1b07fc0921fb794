"""Solving an observation for the random quantities behind it, instead of waiting for draws that agree with it.

Given everything else, let the output be a function of some roots that can be inverted. Samples can then be put on the
observation, and weighted by how likely the roots are to be there:

* an exact value v of a continuous output o = b + sum of a_i r_i. Normal roots together: draw them, then move each by
  its share of v - o (conditioning by Matheron's rule), which gives exact draws from their conditional distribution;
  weight by the normal density of v. One root of any family: set it to (v - b) / a and weight by its density there,
  divided by |a|. Through monotone functions, as in o = exp(a r + b), alike, with the slope of the inverse;
* a whole number v of a discrete output, with a root of whole numbers: set it to (v - b) / a and weight by its
  probability, which is zero unless that is whole;
* a window: draw a place in it, from the distribution of the output given all but some roots; weight by the
  probability of the window.

Of the possible ways the one with the most even weights in a pilot run is taken; discrete values and windows are waited
for where that takes no longer.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from privug.errors import ImpossibleObservation, ObservationError
from privug.inference.affine import affine_roots, invertible_roots
from privug.inference.branches import IMPOSSIBLE, branch_condition, either_way, given_that, never_is
from privug.inference.conditions import Window, merged, windows_of
from privug.inference.diagnostics import effective_sample_size
from privug.inference.solutions import (
    Solution,
    at_whole_number,
    condition_normals,
    in_window,
    normals_in_window,
    solve_for,
    through_functions,
)
from privug.inference.workload import pilot_samples
from privug.model.graph import parents_key, substitute
from privug.model.node import Array, ConstantValue, Kind, Node, ancestors
from privug.model.operations import Elementwise, SampleFailure, constant
from privug.model.plan import Plan
from privug.model.variable import RandomVariable
from privug.observation.likelihood import CloseTo, Likelihood
from privug.observation.observations import close
from privug.prior.choice import constant_value
from privug.prior.family import family_of
from privug.prior.scalar import ScalarFamily

MOST_CANDIDATES = 8
PILOT_SAMPLES = 512
LARGE_PILOT = 1 << 17  # shows values of which each has a probability of 1e-4 or more
MOST_PILOT_NUMBERS = 1e8
MOST_BRANCHINGS = 4  # one in the other: each doubles what there is to solve
WORTHWHILE = 2.0  # by how much more samples solving must be worth than waiting, which costs less a draw
OFTEN = {True: 0.02, False: 0.1}  # share of draws that agree, from which on waiting is good enough: discrete or not


@dataclass(frozen=True)
class Solved:
    """An observation solved as far as it can be: what remains of it, and the targets given it."""

    likelihood: Likelihood
    targets: list[Node]
    densities: int
    """How many weights are densities of exact values, rather than probabilities."""


def solve(likelihood: Likelihood, targets: Sequence[Node], *, smooth: bool = False) -> tuple[Likelihood, list[Node]]:
    """Replace exact values of continuous outputs by weights; return the new likelihood and the targets given it.

    With `smooth`, roots that have no ends are solved for, where there are such: weights then have no walls.
    """
    solved = solve_all(likelihood, targets, points_only=True, smooth=smooth)
    return solved.likelihood, solved.targets


def solve_all(
    likelihood: Likelihood,
    targets: Sequence[Node],
    *,
    fixed: Sequence[Node] = (),
    points_only: bool = False,
    smooth: bool = False,
) -> Solved:
    """Replace exact values by weights, and conditions too where waiting for them would take longer.

    `fixed` roots are known beforehand, so nothing is solved for them.
    """
    state = Solved(likelihood, list(targets), 0)
    while state.likelihood.points:
        state = _with_first_point_solved(state, smooth)
    if not points_only:
        for position in reversed(range(len(state.likelihood.conditions))):
            state = _with_condition_solved(state, position, fixed)
    return state


def _with_first_point_solved(state: Solved, smooth: bool) -> Solved:
    (node, value), *others = state.likelihood.points
    rest = replace(state.likelihood, points=tuple(others))
    ways = _solutions_of_point(node, value) or _solutions_by_branch(node, value)
    endless = [way for way in ways if not way.conditions] if smooth else []
    solution = _best(endless or ways)
    if solution is not None:
        return replace(_given(solution, rest, state.targets), densities=state.densities + 1)
    if not _has_atoms(node):
        raise ObservationError(
            f"the output is continuous, so it is exactly {value:g} with probability zero, and it cannot be solved "
            "for one of the inputs; write "
            f"pv.near({value:g}, within=...) for a rounded output, or pv.noisy({value:g}, sd=...)"
        )
    condition = close(node, value)
    return replace(state, likelihood=replace(rest, conditions=(*rest.conditions, condition)))


def _with_condition_solved(state: Solved, position: int, fixed: Sequence[Node]) -> Solved:
    """Solve one condition if that gives more than waiting for it."""
    condition = state.likelihood.conditions[position]
    ways = [way for way in _solutions_of_condition(condition) if way.replacements.keys().isdisjoint(fixed)]
    if not ways:
        return state  # whatever a pilot run would show
    agreeing = _pilot(condition)
    rate = float(agreeing.mean()) if len(agreeing) else 0.0
    if rate >= OFTEN[_equality(condition)[0] is not None]:
        return state
    solution = _best(ways)
    if solution is None or _worth(solution) < WORTHWHILE * rate * pilot_samples([condition], PILOT_SAMPLES):
        return state
    others = [other for other in state.likelihood.conditions if other is not condition]
    rest = replace(state.likelihood, conditions=tuple(others))
    return replace(_given(solution, rest, state.targets), densities=state.densities)


def _given(solution: Solution, rest: Likelihood, targets: Sequence[Node]) -> Solved:
    """Put a solution in the place of the roots that it replaces, everywhere."""
    measured = [node for pair in rest.distances for node in pair]
    points = [point for point, _ in rest.points]
    images = iter(
        substitute([*rest.conditions, *rest.log_weights, *points, *measured, *targets], solution.replacements)
    )
    conditions = tuple(next(images) for _ in rest.conditions)
    log_weights = tuple(next(images) for _ in rest.log_weights)
    seen = tuple((next(images), value) for _, value in rest.points)
    distances = tuple((next(images), next(images)) for _ in rest.distances)
    likelihood = Likelihood(
        (*conditions, *solution.conditions), (*log_weights, solution.log_weight), seen, rest.impossible, distances
    )
    return Solved(likelihood, list(images), 0)


def _solutions_of_point(node: Node, value: float) -> list[Solution]:
    roots = affine_roots(node)
    normal = {root: slope for root, slope in roots.items() if family_of(root).gaussian}
    solutions = [condition_normals(node, value, normal)] if normal else []
    singles = _different([root for root in roots if root.shape == () and root not in normal])
    solutions += [solve_for(node, value, root, roots[root]) for root in singles]
    if not roots:
        ways = invertible_roots(node)
        solutions += [through_functions(value, ways[root]) for root in _different(list(ways))]
    return solutions


def _solutions_by_branch(node: Node, value: float, depth: int = 0) -> list[Solution]:
    """Return how to solve a number on each of its branches; nothing if one can be neither solved nor ruled out."""
    condition = branch_condition(node) if depth < MOST_BRANCHINGS else None
    if condition is None:
        return []
    found = []
    for truth in (True, False):
        branch = given_that(node, condition, truth)
        best = _best(_solutions_of_point(branch, value) or _solutions_by_branch(branch, value, depth + 1))
        if best is None and not never_is(branch, value):
            return []
        found.append(best)
    if found[0] is None and found[1] is None:
        return []
    return [either_way(condition, *(IMPOSSIBLE if one is None else one for one in found))]


def _solutions_of_condition(condition: Node) -> list[Solution]:
    number, value = _equality(condition)
    if number is not None and number.kind is Kind.DISCRETE:
        roots = affine_roots(number, Kind.DISCRETE)
        suitable = [root for root in roots if root.shape == () and isinstance(family_of(root), ScalarFamily)]
        if suitable:
            return [at_whole_number(number, value, root, roots[root]) for root in _different(suitable)]
        condition = (RandomVariable(number) == value).node
    try:
        windows = merged(windows_of(condition) or [])
    except ImpossibleObservation:  # what is wrong shows when draws are waited for
        return []
    if len(windows) != 1:
        return []
    return _solutions_of_window(windows[0]) or _solutions_of_window_by_branch(windows[0], condition)


def _solutions_of_window_by_branch(window: Window, seen: Node) -> list[Solution]:
    """Return how to solve a window on one branch of its number at least; on the other, it is waited for if need be."""
    condition = branch_condition(window.number)
    if condition is None:
        return []
    found, solved = [], False
    for truth in (True, False):
        branch = replace(window, number=given_that(window.number, condition, truth))
        best = _best(_solutions_of_window(branch))
        solved = solved or best is not None
        found.append(best or Solution({}, constant(0.0), (given_that(seen, condition, truth),)))
    return [either_way(condition, *found)] if solved else []


def _solutions_of_window(window: Window) -> list[Solution]:
    roots = affine_roots(window.number)
    normal = {root: slope for root, slope in roots.items() if family_of(root).gaussian}
    solutions = [normals_in_window(window, normal)] if normal else []
    scalar = [root for root in roots if root.shape == () and isinstance(family_of(root), ScalarFamily)]
    singles = _different([root for root in scalar if root not in normal])
    return solutions + [in_window(window, root, roots[root]) for root in singles]


def _equality(condition: Node) -> tuple[Node | None, float]:
    """Return the number that a condition says has a value, and the value."""
    match condition.operation:
        case CloseTo(value=value):
            return condition.parents[0], value
        case Elementwise(traits=traits) if traits.signs == {0}:
            left, right = condition.parents
            known = isinstance(right.operation, ConstantValue) and right.shape == () and right.levels is None
            if known and left.levels is None and left.shape == ():
                return left, float(constant_value(right))
    return None, 0.0


def _different(roots: Sequence[Node]) -> list[Node]:
    """Return a few roots of different distributions."""
    found: dict[Any, Node] = {}
    for root in roots:
        found.setdefault((root.operation, parents_key(root)), root)
    return list(found.values())[:MOST_CANDIDATES]


def _best(solutions: Sequence[Solution]) -> Solution | None:
    return solutions[0] if len(solutions) == 1 else max(solutions, key=_worth, default=None)


def _has_atoms(node: Node) -> bool:
    """Say whether a quantity takes some value again and again, as `x - x` does and `max(x, 0)`, or may do so."""
    samples = PILOT_SAMPLES
    if node.kind is not Kind.CONTINUOUS:  # whether it has atoms, and how rare they are, is not known
        samples = LARGE_PILOT
        if len(ancestors([node])) * samples > MOST_PILOT_NUMBERS or Plan([node]).is_opaque:
            return True
    values = _pilot(node, samples=samples)
    return len(np.unique(values)) < len(values)


def _pilot(*nodes: Node, samples: int = PILOT_SAMPLES) -> Array:
    """Draw some values of the first node, leaving out samples for which there is none."""
    samples = pilot_samples(list(nodes), samples)
    failed = np.zeros(samples, np.bool_)
    try:
        values = Plan(nodes).run(samples, np.random.Generator(np.random.SFC64(0)), failed=failed)
    except SampleFailure:  # what is wrong shows again, with its input, when the samples are drawn
        return np.empty(0, nodes[0].dtype)
    for condition in values[1:]:
        failed |= ~condition
    return values[0][~failed]


def _worth(solution: Solution) -> float:
    """Return how many effective samples a pilot run of a solution gives."""
    log_weights = _pilot(solution.log_weight, *solution.conditions)
    log_weights = log_weights[np.isfinite(log_weights)]
    return effective_sample_size(log_weights, len(log_weights))
