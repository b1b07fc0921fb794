"""Discrete roots whose values can be listed: summed out beside continuous ones, drawn directly if all are discrete."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from privug.errors import ImpossibleObservation, NotConverged, UnsuitableEngine
from privug.estimate import Estimate
from privug.inference.chains.diagnosis import Chains
from privug.inference.chains.problem import Problem, total
from privug.inference.chains.sizes import constant_array, in_terms_of, together
from privug.inference.graph.support import exponent
from privug.model.node import Array, ConstantValue, Kind, Node, ancestors, reached
from privug.model.operations import SampleFailure
from privug.model.plan import Plan
from privug.prior.family import LogDensity, family_of
from privug.prior.scalar import ScalarFamily

SMALLEST_SHARE = 0.02
LARGEST_SHARE_AT_END = 1e-3


def trimmed(problem: Problem, roots: dict[Node, Array], divergences: int, remarks: tuple[str, ...] = ()) -> Chains:
    """Return the chains of draws that count; `roots` are arrays of chains by draws."""
    chains, draws = next(iter(roots.values())).shape[:2]
    flat = {root: array.reshape(chains * draws, *array.shape[2:]) for root, array in roots.items()}
    flat = problem.sized(flat)
    for root, listed in problem.listed.items():
        if root in flat:
            _check_ends(root, listed, flat[root])
    kept = problem.kept(flat).reshape(chains, draws)
    length = int(kept.sum(axis=1).min())
    if length < max(2, SMALLEST_SHARE * draws):
        raise NotConverged(
            f"only {kept.mean():.2%} of the draws agree with the observation, so no answer is given; "
            "choose engine='rare' or 'sample'"
        )
    if length == draws:  # copying many draws of many numbers takes as much memory again
        cut = {root: array.reshape(chains, draws, *array.shape[1:]) for root, array in flat.items()}
    else:
        remarks = (*remarks, f"{1 - kept.mean():.1%} of the draws lay outside of what was seen, and were dropped")
        places = [chain * draws + np.flatnonzero(kept[chain])[:length] for chain in range(chains)]
        cut = {root: array[np.stack(places)] for root, array in flat.items()}
    return Chains(cut, divergences, spent=chains * draws, remarks=(*problem.remarks, *remarks))


def _check_ends(root: Node, listed: Array, draws: Array) -> None:
    """Refuse draws of a discrete root at the last value listed, if beyond it there are others."""
    for last, is_open in last_values(root, listed):
        if is_open and np.mean(draws == last) > LARGEST_SHARE_AT_END:
            raise UnsuitableEngine(
                f"the observation says that an input {family_of(root).name} is {last} or further out, where its prior "
                "has next to no probability, and chains list likely values only; choose engine='exact' or 'rare'"
            )


def last_values(root: Node, listed: Array) -> list[tuple[Any, bool]]:
    """Return the smallest and the largest value listed, and whether there are others beyond."""
    low, high = _ends(root)
    return [(listed.min(), bool(listed.min() > low)), (listed.max(), bool(listed.max() < high))]


def _ends(root: Node) -> tuple[float, float]:
    """Return the smallest and the largest value of a discrete root, as far as they are known."""
    family = family_of(root)
    if not isinstance(family, ScalarFamily):
        return math.inf, -math.inf
    low, high = family.ends_of(root.parents)
    return _known(low, math.inf), _known(high, -math.inf)


def _known(end: Node | float, otherwise: float) -> float:
    if not isinstance(end, Node):
        return end
    if not isinstance(end.operation, ConstantValue):
        return otherwise
    return float((np.min if otherwise > 0 else np.max)(end.operation.array))


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


ROUND = 1000
FEWEST_EACH = 20  # draws to choose from for each chain
BEST = 0.1  # of the draws
MOST_DRAWS = 200_000
MOST_OPAQUE_DRAWS = 20_000


def starting_points(problem: Problem, chains: int, seed: int) -> list[dict[Node, Array]]:
    """Return a starting point for each chain."""
    roots = list(problem.roots)
    plan = Plan(roots)
    rng = np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed, spawn_key=(1 << 21,))))
    judged = Plan([problem.log_weight, *problem.conditions])
    most = MOST_OPAQUE_DRAWS if judged.is_opaque else MOST_DRAWS
    size = max(chains, min(ROUND, plan.block))
    found: dict[Node, list[Array]] = {root: [] for root in roots}
    logs: list[Array] = []
    tried = 0
    while tried < most and sum(map(len, logs)) < FEWEST_EACH * chains:
        tried += size
        try:
            values = dict(zip(roots, plan.run(size, rng), strict=True))
        except SampleFailure:
            continue
        weights = problem.logs(values)
        possible = np.isfinite(weights)
        logs.append(weights[possible])
        for root in roots:
            found[root].append(values[root][possible])
    together = np.concatenate(logs) if logs else np.zeros(0)
    if not len(together):
        raise _no_start(problem, tried)
    return [{root: np.concatenate(found[root])[place] for root in roots} for place in dispersed(together, chains)]


def dispersed(logs: Array, chains: int) -> Array:
    """Return which of some draws chains start at, by how well they fit; draws come in no order.

    >>> dispersed(np.array([0.0, -9.0, -5.0, -1.0]), 4)
    array([0, 0, 3, 3])
    """
    order = np.argsort(-logs, kind="stable")
    best = order[: max(chains // 2, round(BEST * len(logs)))]
    halves = np.linspace(0, len(best) - 1, chains // 2), np.linspace(0, len(logs) - 1, chains - chains // 2)
    return np.sort(np.concatenate([best[halves[0].astype(int)], halves[1].astype(int)]))


def _no_start(problem: Problem, tried: int) -> ImpossibleObservation | NotConverged:
    if not problem.conditions:
        return NotConverged(
            f"none of {tried:,} draws from the prior has a finite log density at the observation, so no chain "
            "can start; check the observation, or choose engine='rare'"
        )
    return ImpossibleObservation(
        f"none of {tried:,} draws from the prior agrees with the observation, so no chain can start: it is "
        "impossible or too rare for this engine; engine='rare' searches for rare observations"
    )
