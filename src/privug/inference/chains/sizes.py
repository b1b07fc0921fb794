"""Tables of random size as one problem: the sizes are summed out while chains run, and drawn given the rest.

Tables of all sizes share their rows: a smaller one has the first rows of the largest. The log weight of the rows is
then the log of the sum over sizes of P(size) times the likelihood of the observation for that size.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from privug.errors import ImpossibleObservation, UnsuitableEngine
from privug.inference.chains.lockstep import Lockstep, OutOfStep
from privug.inference.chains.naming import named_roots
from privug.inference.chains.problem import Problem, Stratum, drawn, inputs_of, judged_nodes, single, stratum, total
from privug.inference.question import Case, Question
from privug.model.graph import substitute
from privug.model.node import Array, ConstantValue, Kind, Node, ancestors
from privug.model.numpy_functions import where
from privug.model.operations import constant, index, stack
from privug.model.plan import Plan
from privug.model.variable import RandomVariable, as_node
from privug.observation.observations import Observation
from privug.prior.family import Draw, LogDensity, family_of

PILOT_SAMPLES = 1 << 18
MOST_SIZES = 300
MOST_WRITTEN_OUT = 12
LARGEST_LOSS = 1e-4
"""How much probability may fall on sizes that are left out, before it is said."""


def prepare(question: Question, observation: Observation | None, seed: int, samples: int) -> Problem:
    """Return a question and an observation as a problem for chains."""
    if not question.size_nodes:
        return single(question, observation, seed, samples)
    size_roots = drawn(question.size_nodes)
    sizes, kept = _likely_sizes(question, size_roots)
    largest = question.case(tuple(int(n) for n in sizes.max(axis=1)))
    shared = drawn([*inputs_of(largest), *judged_nodes(largest)])
    strata: list[Stratum] = []
    places: list[Node] = []
    for position in range(sizes.shape[1]):
        values = {root: int(array[position]) for root, array in kept.items()}
        case = question.case(tuple(int(n) for n in sizes[:, position]))
        try:
            own, smoothed = stratum(case, observation)
        except ImpossibleObservation:
            continue
        if smoothed.densities:
            raise UnsuitableEngine(
                "an exact value of a continuous output of a table of random size is not served by chains; "
                "write pv.near(..., within=...), or choose engine='sample'"
            )
        places += smoothed.places[len(places) :]
        images = {**_onto(case, shared), **dict(zip(smoothed.places, places, strict=False))}
        strata.append(in_terms_of(own, images, values))
    if not strata:
        raise ImpossibleObservation(f"this observation is impossible for any of {sizes.shape[1]} sizes of the tables")
    problem = together(question, largest, strata, seed, _remarks(size_roots, kept))
    return replace(problem, listed=kept)


def _likely_sizes(question: Question, roots: Sequence[Node]) -> tuple[Array, dict[Node, Array]]:
    """Return the sizes of the tables that are drawn, a column each, and the values of the roots behind them."""
    if any(root.shape or root.kind is not Kind.DISCRETE for root in roots):
        raise UnsuitableEngine("sizes of tables must come from single discrete quantities; choose engine='sample'")
    rng = np.random.Generator(np.random.SFC64(0))
    arrays = Plan([*question.size_nodes, *roots]).run(PILOT_SAMPLES, rng)
    values, counts = np.unique(np.stack(arrays), axis=1, return_counts=True)
    if values.shape[1] > MOST_SIZES:
        likely = np.sort(np.argsort(-counts, kind="stable")[:MOST_SIZES])
        if counts[likely].sum() < (1 - 100 * LARGEST_LOSS) * PILOT_SAMPLES:
            raise UnsuitableEngine(
                f"the tables have {values.shape[1]:,} likely sizes, more than the {MOST_SIZES} that chains can sum "
                "over; choose engine='sample' or 'rare', or say more about the size"
            )
        values = values[:, likely]
    tables = len(question.size_nodes)
    return values[:tables], dict(zip(roots, values[tables:], strict=True))


def _onto(case: Case, shared: Sequence[Node]) -> dict[Node, Node]:
    """Return the roots of a case as parts of the roots of the largest one."""
    own = [root for root in drawn([*inputs_of(case), *judged_nodes(case)]) if root not in set(shared)]
    present = set(drawn([*inputs_of(case), *judged_nodes(case)]))
    others = [root for root in shared if root not in present]
    images: dict[Node, Node] = {}
    for root, whole in zip(own, others, strict=False):
        if not _is_beginning(root, whole, images):
            break
        images[root] = index(whole, slice(0, root.shape[0]))
    if len(images) < len(own):
        raise UnsuitableEngine(
            "tables of different sizes do not share their rows in a way that chains could follow; "
            "choose engine='sample'"
        )
    return images


def _is_beginning(root: Node, whole: Node, images: Mapping[Node, Node]) -> bool:
    """Say whether one array of quantities is distributed as the beginning of another."""
    if len(root.shape) != len(whole.shape) or not root.shape or root.shape[0] > whole.shape[0]:
        return False
    if family_of(root) != family_of(whole) or root.shape[1:] != whole.shape[1:]:
        return False
    return all(_is_same(a, b, images) for a, b in zip(root.parents, whole.parents, strict=True))


def _is_same(node: Node, other: Node, images: Mapping[Node, Node]) -> bool:
    if node is other:
        return True
    if isinstance(node.operation, ConstantValue) and isinstance(other.operation, ConstantValue):
        return np.array_equal(node.operation.array, other.operation.array)
    if node in images and isinstance(other.operation, Draw):
        return images[node].parents[0] is other
    return False


def in_terms_of(own: Stratum, images: Mapping[Node, Node], sizes: Mapping[Node, Any]) -> Stratum:
    """Return a stratum in terms of the shared roots, weighted by the probability of its sizes."""
    moved = {root: own.moved.get(root, root) for root in {**own.moved, **images}}
    chances = [_log_probability(root, size) for root, size in sizes.items()]
    nodes = [own.log_weight, *chances, *own.conditions, *own.checks, *moved.values()]
    following = iter(substitute(nodes, dict(images)))
    log_weight = total([next(following) for _ in (own.log_weight, *chances)])
    conditions = tuple(next(following) for _ in own.conditions)
    checks = tuple(next(following) for _ in own.checks)
    return replace(
        own,
        log_weight=log_weight,
        conditions=conditions,
        checks=checks,
        moved=dict(zip(moved, following, strict=True)),
        sizes=dict(sizes),
    )


def _log_probability(root: Node, value: Any) -> Node:
    parents = (constant(value), *root.parents)
    density = Node(LogDensity(family_of(root)), parents, root.shape, np.dtype(np.float64), kind=Kind.MIXED)
    if any(not isinstance(parent.operation, ConstantValue) for parent in parents):
        return density
    return constant(float(Plan([density]).run(1, np.random.Generator(np.random.SFC64(0)))[0].sum()))


def together(
    question: Question, largest: Case, strata: Sequence[Stratum], seed: int, remarks: tuple[str, ...]
) -> Problem:
    """Return the problem of all sizes, whose log weight is that of their sum."""
    log_weights = _side_by_side([_conditional(stratum) for stratum in strata])
    log_weight = _log_sum(log_weights)
    behind = [node for s in strata for node in [*substitute(judged_nodes(s.case), s.moved), *s.checks]]
    sizes = set(strata[0].sizes)
    roots = [root for root in drawn([log_weight, *behind]) if root not in sizes]
    names = named_roots(roots, largest.inputs)
    # Where conditions jump with continuous roots, the sum has walls too.
    jumping = set(roots).intersection(ancestors([node for s in strata for node in s.conditions]))
    walls = ((RandomVariable(log_weight) > -math.inf).node,) if jumping else ()
    return Problem(question, tuple(strata), tuple(roots), tuple(names), log_weight, walls, seed, remarks, log_weights)


def _conditional(stratum: Stratum) -> Node:
    weight = stratum.log_weight
    for condition in stratum.conditions:
        weight = where(condition, weight, constant(-math.inf))
    return weight


def _side_by_side(log_weights: Sequence[Node]) -> Node:
    """Return the log weights of all sizes as one array."""
    try:
        return Lockstep(len(log_weights)).number(log_weights)
    except (OutOfStep, RecursionError):
        if len(log_weights) > MOST_WRITTEN_OUT:
            raise UnsuitableEngine(
                f"the program does different things for the {len(log_weights)} likely sizes of the tables, too many to "
                "write out one by one; choose engine='sample' or 'rare'"
            ) from None
        return stack(log_weights)


def _log_sum(log_weights: Node) -> Node:
    together = RandomVariable(log_weights)
    largest = together.max()
    return as_node(largest + np.log(np.exp(together - largest).sum()))


def _remarks(roots: Sequence[Node], kept: Mapping[Node, Array]) -> tuple[str, ...]:
    """Say how much probability the sizes that were left out have, if that can be told and matters."""
    if any(not isinstance(parent.operation, ConstantValue) for root in roots for parent in root.parents):
        return ()
    parameters = {root: [constant_array(parent) for parent in root.parents] for root in roots}
    logs = [family_of(root).log_density(kept[root], parameters[root]) for root in roots]
    lost = 1.0 - float(np.exp(np.sum(logs, axis=0)).sum())
    if lost < LARGEST_LOSS:
        return ()
    return (f"sizes of the tables with a probability of {lost:.2g} in all were left out",)


def constant_array(node: Node) -> Array:
    """Return the array of a constant."""
    assert isinstance(node.operation, ConstantValue)
    return node.operation.array
