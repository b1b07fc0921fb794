"""Discrete roots whose values can be listed: summed out beside continuous ones, drawn directly if all are discrete."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from privug.errors import ImpossibleObservation, UnsuitableEngine
from privug.estimate import Estimate
from privug.inference.chains.finishing import Chains
from privug.inference.chains.problem import Problem, total
from privug.inference.chains.sizes import constant_array, in_terms_of, together
from privug.inference.chains.trimming import last_values, trimmed
from privug.inference.support import exponent
from privug.model.node import Array, ConstantValue, Kind, Node, ancestors, reached
from privug.prior.family import LogDensity, family_of

MOST_STATES = 300  # beside continuous roots, each with a log weight of its own
MOST_LISTED = 200_000
MOST_CALLED = 20_000  # of a program that is called state by state


def possible(root: Node) -> Array | None:
    """Return the values that an element of a discrete root can take, in order; None if they cannot be listed."""
    if root.kind is not Kind.DISCRETE:
        return None
    known = [constant_array(p) if isinstance(p.operation, ConstantValue) else None for p in root.parents]
    values = family_of(root).possible(known, exponent(), MOST_LISTED)
    if (
        values is None and root.bound is not None and root.bound < MOST_LISTED
    ):  # whole numbers, but of random parameters
        low = family_of(root).ends[0]
        values = np.arange(-root.bound if isinstance(low, str) else max(low, -root.bound), root.bound + 1)
    return None if values is None else values.astype(root.dtype)


def joint_states(values: Mapping[Node, Array], most: int) -> dict[Node, Array] | None:
    """Return for each root its value in each joint state of all elements of all roots; None if there are too many."""
    elements = [(len(listed), math.prod(root.shape)) for root, listed in values.items()]
    if any(count == 0 for count, _ in elements):
        return {root: np.empty((0, *root.shape), listed.dtype) for root, listed in values.items()}
    if sum(size * math.log(count) for count, size in elements) > math.log(most) + 1e-9:
        return None
    left = np.arange(math.prod(count**size for count, size in elements))
    states: dict[Node, Array] = {}
    for root, listed in values.items():
        places = np.empty((len(left), math.prod(root.shape)), np.int64)
        for position in range(places.shape[1]):
            places[:, position] = left % len(listed)
            left = left // len(listed)
        states[root] = listed[places].reshape(-1, *root.shape)
    return states


def _states(problem: Problem, roots: Sequence[Node]) -> dict[Node, Array] | None:
    """Return the joint states of discrete roots in which what was seen of them alone holds."""
    seen = _pinned(problem.conditions)
    listed = {root: seen[root] if root in seen else possible(root) for root in roots}
    values = {root: one for root, one in listed.items() if one is not None}
    conditions = [one for one in problem.conditions if _is_about(one, roots)]
    most = MOST_CALLED if any(node.operation.opaque for node in ancestors(problem.conditions)) else MOST_LISTED
    states = joint_states(values, most) if len(values) == len(roots) else None
    if states is None or not conditions:
        return states
    agree = problem.holds(conditions, states)
    return {root: array[agree] for root, array in states.items()}


def _pinned(conditions: Sequence[Node]) -> dict[Node, Array]:
    """Return the roots that were seen themselves, each with its only value."""
    found: dict[Node, Array] = {}
    for condition in conditions:
        if condition.operation.traits.signs == {0}:
            root, value = sorted(condition.parents, key=lambda node: isinstance(node.operation, ConstantValue))
            is_known = isinstance(value.operation, ConstantValue) and value.shape == ()
            if is_known and root.is_random and root.shape == () and root.levels is None:
                array = constant_array(value).astype(root.dtype)
                found[root] = array if np.array_equal(array, constant_array(value)) else array[:0]
    return found


def _is_about(condition: Node, roots: Sequence[Node]) -> bool:
    behind = reached([condition], lambda node: node.is_random)
    return {node for node in behind if node.is_random} <= set(roots)


def summed_out(problem: Problem) -> Problem:
    """Return the problem over its continuous roots alone, if the values of the discrete ones can be listed."""
    discrete = [root for root in problem.roots if root.kind is Kind.DISCRETE]
    if not discrete or len(discrete) == len(problem.roots) or problem.strata[0].sizes:
        return problem
    states = _states(problem, discrete)
    count = 0 if states is None else len(states[discrete[0]])
    if states is None or count > MOST_STATES:
        return problem
    if not count:
        raise _none_fits(discrete)
    only = problem.strata[0]
    only = replace(only, conditions=tuple(one for one in only.conditions if not _is_about(one, discrete)))
    strata = []
    for place in range(count):
        state = {root: array[place] for root, array in states.items()}
        images = {root: _fixed(root, value) for root, value in state.items()}
        strata.append(in_terms_of(only, images, state))
    try:
        summed = together(problem.question, only.case, strata, problem.seed, problem.remarks)
    except UnsuitableEngine:
        return problem
    return replace(summed, listed=listed_values(discrete))


def _fixed(root: Node, value: Any) -> Node:
    """Return a constant in place of a root."""
    return Node(ConstantValue(np.array([value], root.dtype)), (), root.shape, root.dtype, root.levels, Kind.DISCRETE)


def directly(problem: Problem, chains: int, draws: int) -> Chains | None:
    """Draw from all joint states by their weights, if nothing is continuous and the states can be listed."""
    if not problem.roots or any(root.kind is not Kind.DISCRETE for root in problem.roots):
        return None
    states = _states(problem, problem.roots)
    if states is None:
        return None
    count = len(states[problem.roots[0]])
    logs = _logs(problem, states) if count else np.zeros(0)
    largest = np.max(logs, initial=-math.inf)
    if largest == -math.inf:
        raise _none_fits(problem.roots)
    shares = np.exp(logs - largest)
    evidence = float(shares.sum() * np.exp(largest))
    shares /= shares.sum()
    chosen = _rng(problem).choice(count, (chains, draws), p=shares)
    remark = f"the draws are independent: all {count:,} joint states of the inputs that fit were weighed"
    problem = replace(problem, listed={**problem.listed, **listed_values(problem.roots)})
    found = trimmed(problem, {root: states[root][chosen] for root in problem.roots}, 0, (remark,))
    return replace(found, evidence=None if problem.has_checks else Estimate.exactly(evidence))


def _none_fits(roots: Sequence[Node]) -> ImpossibleObservation | UnsuitableEngine:
    if any(is_open for root, listed in listed_values(roots).items() for _, is_open in last_values(root, listed)):
        return UnsuitableEngine(
            "no likely state of the discrete inputs agrees with the observation, and chains do not list the far tails "
            "of their distributions; choose engine='exact' or 'rare'"
        )
    return ImpossibleObservation("no joint state of the discrete inputs agrees with the observation")


def listed_values(roots: Sequence[Node]) -> dict[Node, Array]:
    """Return the values of the roots of which they are listed."""
    listed = {root: possible(root) for root in roots}
    return {root: values for root, values in listed.items() if values is not None}


def _logs(problem: Problem, states: Mapping[Node, Array]) -> Array:
    """Return the logarithm of the probability of each state together with what was seen."""
    densities = [
        Node(LogDensity(family_of(root)), (root, *root.parents), root.shape, np.dtype(np.float64), kind=Kind.MIXED)
        for root in problem.roots
    ]
    return replace(problem, log_weight=total([problem.log_weight, *densities])).logs(states)


def _rng(problem: Problem) -> np.random.Generator:
    return np.random.Generator(np.random.SFC64(np.random.SeedSequence(problem.seed, spawn_key=(1 << 22,))))
