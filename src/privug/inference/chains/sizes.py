"""Discrete quantities summed out while chains run: sizes of tables, and roots whose values can be listed.

Tables of all sizes share their rows: a smaller one has the first rows of the largest. The log weight of the rows is
then the log of the sum over sizes of P(size) times the likelihood of the observation for that size.
"""

import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from privug.errors import ImpossibleObservation, NotConverged, UnsuitableEngine
from privug.estimate import Estimate
from privug.inference.case_plan import ConditionedCase
from privug.inference.chains.diagnosis import Chains
from privug.inference.chains.problem import Problem, Stratum, drawn, named_roots, roots_of, single, stratum, total
from privug.inference.graph.support import exponent
from privug.inference.question import Case, Question
from privug.inference.sampling import generator
from privug.inference.solving import density_of
from privug.model import operations
from privug.model.graph import substitute
from privug.model.node import Array, ConstantValue, Kind, Node, ancestors, reached
from privug.model.numpy_functions import Cast, cast, reshape, where
from privug.model.operations import Elementwise, Index, Lookup, constant, elementwise, index, lookup, stack
from privug.model.plan import Plan
from privug.model.plates import Fold
from privug.model.traits import Role, Scope, Traits, traits_of
from privug.model.variable import RandomVariable, as_node
from privug.observation.observations import Observation
from privug.prior.family import Draw, LogDensity, family_of
from privug.prior.scalar import ScalarFamily
from privug.program.traced.conditions import Checked


class OutOfStep(Exception):
    """The models differ in more than constants and lengths."""


@dataclass(frozen=True)
class _Side:
    """Corresponding quantities of all models: an array over models if they differ, over rows if they are columns."""

    node: Node
    differs: bool
    lengths: tuple[int, ...] | None = None
    """How many rows of each model there are; None for a single number."""


def _neutral(traits: Traits, dtype: np.dtype[Any]) -> Any:
    """Return what changes no sum, extreme or verdict."""
    neutral = traits_of(traits.folds or "").neutral
    assert neutral is not None
    if math.isfinite(neutral) or dtype.kind == "f":
        return neutral
    return neutral > 0 if dtype.kind == "b" else int(math.copysign(1, neutral)) * np.iinfo(np.int64).max


def _is_reduction(traits: Traits) -> bool:
    return traits.scope is Scope.FOLD and traits.folds is not None and traits.role is not Role.FUNCTION


class Lockstep:
    """Goes through models of the same form together."""

    def __init__(self, models: int) -> None:
        self._models = models
        self._found: dict[tuple[int, ...], _Side] = {}

    def number(self, nodes: Sequence[Node]) -> Node:
        """Return an array with the number that each model has at this place."""
        side = self._side(nodes)
        if side.lengths is not None:
            raise OutOfStep
        return self._over_models(side)

    def _over_models(self, side: _Side) -> Node:
        if side.differs:
            return side.node
        zeros = constant(np.zeros(self._models, side.node.dtype))
        return elementwise(Elementwise("add", np.add), [side.node, zeros])

    def _side(self, nodes: Sequence[Node]) -> _Side:
        key = tuple(map(id, nodes))
        if key not in self._found:
            self._found[key] = self._combined(nodes)
        return self._found[key]

    def _combined(self, nodes: Sequence[Node]) -> _Side:
        first = nodes[0]
        if all(node is first for node in nodes):
            return self._same(first)
        beginnings = _beginnings(nodes)
        if beginnings is not None:
            return beginnings
        every = [node.operation for node in nodes]
        if len({type(operation) for operation in every}) > 1 or len({len(node.parents) for node in nodes}) > 1:
            raise OutOfStep
        match first.operation:
            case ConstantValue():
                return self._constants([o.array[0] for o in every if isinstance(o, ConstantValue)])
            case Fold():
                return self._folds([o for o in every if isinstance(o, Fold)], nodes)
        parents = [self._side(column) for column in zip(*(node.parents for node in nodes), strict=True)]
        match first.operation:
            case Elementwise() as operation if all(_is_like(operation, other) for other in every):
                return self._elementwise(operation, parents)
            case operations.ArrayFunction(traits=traits) if _is_reduction(traits) and first.shape == ():
                return self._reduced(traits, parents[0])
            case LogDensity() as operation if all(other == operation for other in every):
                return self._density(operation, parents)
            case Checked():
                return parents[0]
            case Cast(dtype=dtype):
                return _Side(cast(parents[0].node, dtype), parents[0].differs, parents[0].lengths)
            case Lookup(table=table) if all(_has_table(other, table) for other in every) and first.levels is None:
                return _Side(lookup(parents[0].node, table), parents[0].differs, parents[0].lengths)
        raise OutOfStep

    def _same(self, node: Node) -> _Side:
        if len(node.shape) > 1:
            raise OutOfStep
        return _Side(node, False, (node.shape[0],) * self._models if node.shape else None)

    def _constants(self, arrays: Sequence[Array]) -> _Side:
        if any(array.ndim != arrays[0].ndim or array.ndim > 1 for array in arrays):
            raise OutOfStep
        if not arrays[0].ndim:
            return _Side(constant(np.array(arrays)), True)
        lengths = tuple(len(array) for array in arrays)
        if not all(lengths):
            raise OutOfStep
        filled = [np.pad(array, (0, max(lengths) - len(array)), mode="edge") for array in arrays]
        if all(np.array_equal(row, filled[0]) for row in filled):
            return _Side(constant(filled[0]), False, lengths)
        return _Side(constant(np.array(filled)), True, lengths)

    def _elementwise(self, operation: Elementwise, parents: Sequence[_Side]) -> _Side:
        lengths = {parent.lengths for parent in parents if parent.lengths is not None}
        if len(lengths) > 1 or any(parent.node.levels is not None for parent in parents):
            raise OutOfStep
        column = next(iter(lengths), None)
        aligned = [_as_row(parent, self._models) if column is not None else parent.node for parent in parents]
        plain = Elementwise(operation.name, operation.function, operation.python)
        return _Side(elementwise(plain, aligned), any(parent.differs for parent in parents), column)

    def _reduced(self, traits: Traits, side: _Side) -> _Side:
        assert side.lengths is not None
        longest, node = side.node.shape[-1], side.node
        counts = constant(np.array(side.lengths))
        if min(side.lengths) < longest:
            present = constant(np.arange(longest) < np.array(side.lengths)[:, np.newaxis])
            node = where(present, node, cast(constant(_neutral(traits, node.dtype)), node.dtype))
        how = "sum" if traits.averages else traits.name
        axis = (("axis", len(node.shape)),)
        result = operations.array_function(operations.ArrayFunction(how, getattr(np, how), axis), [node])
        if traits.averages:
            result = elementwise(Elementwise("true_divide", np.true_divide), [result, counts])
        return _Side(result, bool(result.shape))

    def _density(self, operation: LogDensity, parents: Sequence[_Side]) -> _Side:
        at, *rest = parents
        columns = at.lengths is not None
        if any(parent.lengths is not None or (columns and parent.node.shape) for parent in rest):
            raise OutOfStep
        if columns and not at.differs:
            raise OutOfStep
        node = at.node if columns else self._over_models(at)
        parameters = tuple(parent.node for parent in rest)
        return _Side(Node(operation, (node, *parameters), node.shape, np.dtype(np.float64)), True, at.lengths)

    def _folds(self, folds: Sequence[Fold], nodes: Sequence[Node]) -> _Side:
        """Write the terms of all rows of all models, in place of each row's cell the columns."""
        if len({(fold.how, len(fold.lanes), len(fold.shared)) for fold in folds}) > 1:
            raise OutOfStep
        inner = zip(*((*fold.lanes, *fold.shared) for fold in folds), strict=True)
        outer = zip(*(node.parents for node in nodes), strict=True)
        for lanes, columns in zip(inner, outer, strict=True):
            self._found[tuple(map(id, lanes))] = self._side(columns)
        terms = self._side([fold.term for fold in folds])
        if folds[0].how == "map":
            return terms
        if terms.lengths is None:
            raise OutOfStep
        return self._reduced(folds[0].traits, terms)


def _is_like(one: Elementwise, other: object) -> bool:
    form = operator.attrgetter("name", "function", "python")
    return isinstance(other, Elementwise) and bool(form(one) == form(other))


def _has_table(operation: object, table: Array) -> bool:
    return isinstance(operation, Lookup) and np.array_equal(operation.table, table)


def _beginnings(nodes: Sequence[Node]) -> _Side | None:
    """Read columns that are the first rows of one column, or all of them."""
    cut = [node for node in nodes if isinstance(node.operation, Index)]
    whole = cut[0].parents[0] if cut else nodes[0]
    if len(whole.shape) != 1 or any(node is not whole and not _is_slice_from_start(node, whole) for node in nodes):
        return None
    return _Side(whole, False, tuple(node.shape[0] for node in nodes))


def _is_slice_from_start(node: Node, whole: Node) -> bool:
    if not isinstance(node.operation, Index) or node.parents[0] is not whole or len(node.operation.key) != 1:
        return False
    key = node.operation.key[0]
    return isinstance(key, slice) and key.start in (None, 0) and key.step in (None, 1)


def _as_row(side: _Side, models: int) -> Node:
    """Return an array over models such that it broadcasts against columns."""
    return reshape(side.node, (models, 1)) if side.differs and side.lengths is None else side.node


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
    largest = ConditionedCase(question.case(tuple(int(n) for n in sizes.max(axis=1))), None)
    shared = roots_of(largest)
    strata: list[Stratum] = []
    places: list[Node] = []
    for position in range(sizes.shape[1]):
        values = {root: int(array[position]) for root, array in kept.items()}
        try:
            own, smoothed = stratum(question.case(tuple(int(n) for n in sizes[:, position])), observation)
        except ImpossibleObservation:
            continue
        if smoothed.densities:
            raise UnsuitableEngine(
                "an exact value of a continuous output of a table of random size is not served by chains; "
                "write pv.near(..., within=...), or choose engine='sample'"
            )
        places += smoothed.places[len(places) :]
        images = {**_onto(roots_of(own.case), shared), **dict(zip(smoothed.places, places, strict=False))}
        strata.append(in_terms_of(own, images, values))
    if not strata:
        raise ImpossibleObservation(f"this observation is impossible for any of {sizes.shape[1]} sizes of the tables")
    problem = together(question, largest.case, strata, seed, _remarks(size_roots, kept))
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


def _onto(roots: Sequence[Node], shared: Sequence[Node]) -> dict[Node, Node]:
    """Return the roots of a case as parts of the roots of the largest one."""
    own, others = (
        [root for root in some if root not in set(rest)] for some, rest in ((roots, shared), (shared, roots))
    )
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
    weights = [own.log_weight, *(_log_probability(root, size) for root, size in sizes.items())]
    following = iter(substitute([*weights, *own.conditions, *own.checks, *moved.values()], dict(images)))
    log_weight = total([next(following) for _ in weights])
    conditions, checks = (tuple(next(following) for _ in some) for some in (own.conditions, own.checks))
    moved = dict(zip(moved, following, strict=True))
    return Stratum(own.case, moved, log_weight, conditions, checks, dict(sizes))


def _log_probability(root: Node, value: Any) -> Node:
    density = density_of(root, constant(value)).node
    if any(not isinstance(parent.operation, ConstantValue) for parent in density.parents):
        return density
    return constant(float(Plan([density]).run(1, np.random.Generator(np.random.SFC64(0)))[0].sum()))


def together(
    question: Question, largest: Case, strata: Sequence[Stratum], seed: int, remarks: tuple[str, ...]
) -> Problem:
    """Return the problem of all sizes, whose log weight is that of their sum."""
    log_weights = _side_by_side([_conditional(stratum) for stratum in strata])
    log_weight = _log_sum(log_weights)
    behind = [node for s in strata for node in [*substitute(s.case.judged, s.moved), *s.checks]]
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
        summed = together(problem.question, only.case.case, strata, problem.seed, problem.remarks)
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
    chosen = generator(problem.seed, 1 << 22).choice(count, (chains, draws), p=shares)
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
    densities = [density_of(root, root).node for root in problem.roots]
    return replace(problem, log_weight=total([problem.log_weight, *densities])).logs(states)


ROUND = 1000
FEWEST_EACH = 20  # draws to choose from for each chain
BEST = 0.1  # of the draws
MOST_DRAWS = 200_000
MOST_OPAQUE_DRAWS = 20_000


def starting_points(problem: Problem, chains: int, seed: int) -> list[dict[Node, Array]]:
    """Return a starting point for each chain."""
    roots = list(problem.roots)
    plan = Plan(roots)
    rng = generator(seed, 1 << 21)
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
        except operations.SampleFailure:
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
