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

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, reduce
from typing import Any, cast

import numpy as np

from privug.errors import ImpossibleObservation, ObservationError
from privug.inference.diagnostics import effective_sample_size
from privug.inference.graph.affine import Coefficient, Section, affine_roots, inverse, invertible_roots
from privug.inference.graph.conditions import Window, merged, specialised, windows_of
from privug.inference.workload import pilot_samples
from privug.model import numpy_functions
from privug.model.graph import parents_key, substitute
from privug.model.node import Array, ConstantValue, Context, Kind, Node, Operation, ancestors
from privug.model.operations import Elementwise, SampleFailure, aligned, constant
from privug.model.plan import Plan
from privug.model.traits import Role
from privug.model.variable import RandomVariable, as_node
from privug.observation.likelihood import CloseTo, Likelihood
from privug.observation.observations import close
from privug.prior.choice import constant_value
from privug.prior.continuous import NORMAL, Uniform
from privug.prior.family import Draw, LogDensity, family_of
from privug.prior.scalar import ScalarFamily

_FLOAT = np.dtype(np.float64)
WHOLE = 1e-6  # how close to a whole number what should be one must be


@dataclass(frozen=True)
class Solution:
    """Roots replaced by values that agree with the observation, and the log weight of the sample.

    Where the conditions do not hold, the weight is zero.
    """

    replacements: dict[Node, Node]
    log_weight: Node
    conditions: tuple[Node, ...] = ()


def through_functions(value: Any, way: Sequence[Section]) -> Solution:
    """Set the root at the end of a way to the value that explains the observation."""
    log_slope: Any = 0.0
    for section in way[:-1]:
        value, log_slope = _at_end(section, value), log_slope - np.log(np.abs(section.slope))
        value, steepness = inverse(section.end, value)
        log_slope = log_slope + steepness
    last, root = way[-1], way[-1].end
    solved = _at_end(last, value)
    log_weight = density_of(root, solved.node) + log_slope - np.log(np.abs(last.slope))
    reached = () if len(way) == 1 else (np.isfinite(cast(Any, solved)).node,)
    return Solution({root: solved.node}, log_weight.node, (*reached, *_within_support(root, solved)))


def _at_end(section: Section, value: Any) -> RandomVariable:
    """Return what the end of a section must be for its top to have a value."""
    end: RandomVariable = RandomVariable(section.end) + (value - RandomVariable(section.top)) * (1.0 / section.slope)
    return end


def _within_support(root: Node, solved: RandomVariable) -> tuple[Node, ...]:
    """Return the condition that a value can be one of a root's: a search for it is led by its distance."""
    family = family_of(root)
    if not family.has_ends:
        return ()
    low, high = family.ends_of([RandomVariable(parent) for parent in root.parents])
    return (((solved >= low) & (solved <= high)).node,)


def at_whole_number(node: Node, value: float, root: Node, slope: Coefficient) -> Solution:
    """Set a root of whole numbers to the one that explains the observation, where there is one."""
    drawn, output = RandomVariable(root).astype(float), RandomVariable(node).astype(float)
    exact = drawn + (value - output) * (1.0 / slope)
    whole = np.rint(exact)
    solved = Node(_Whole(), (whole.node,), (), np.dtype(np.int64), kind=Kind.DISCRETE)
    return Solution({root: solved}, density_of(root, solved).node, ((np.abs(exact - whole) < WHOLE).node,))


class _Whole(Operation):
    """Whole numbers held as floats, as whole numbers; what has none is zero, and of no weight."""

    def evaluate(self, arguments: Sequence[Array], context: Context) -> Array:
        numbers = arguments[0]
        return np.where(np.abs(numbers) < 2.0**62, numbers, 0.0).astype(np.int64)


def condition_normals(node: Node, value: Any, roots: dict[Node, Coefficient]) -> Solution:
    """Draw normal roots from their joint distribution given the value of a node."""
    spread = _Spread.of(node, roots)
    log_weight = Node(LogDensity(NORMAL), (as_node(value), spread.mean.node, spread.sd), (), _FLOAT, kind=Kind.MIXED)
    return Solution(spread.moved_to(value), log_weight)


@dataclass(frozen=True)
class _Spread:
    """A number as a normal quantity by some normal roots, given all others: mean, deviation, and how to move it."""

    output: RandomVariable
    roots: dict[Node, Coefficient]
    mean: RandomVariable
    sd: Node
    relative: dict[Node, Any] = field(repr=False)
    total: Any = field(repr=False)

    @classmethod
    def of(cls, node: Node, roots: dict[Node, Coefficient]) -> "_Spread":
        output = RandomVariable(node)
        means = {root: _parameter(root, 0) for root in roots}
        deviations = {root: _parameter(root, 1) for root in roots}
        # Variances relative to the largest known deviation neither overflow nor vanish.
        unit = max((float(np.max(sd)) for sd in deviations.values() if not isinstance(sd, RandomVariable)), default=1.0)
        relative = {root: (deviations[root] * (1.0 / unit)) ** 2 for root in roots}
        total = reduce(_plus, (_sum(relative[root] * (slope * slope), root) for root, slope in roots.items()))
        offsets = reduce(_plus, (_sum((RandomVariable(root) - means[root]) * a, root) for root, a in roots.items()))
        return cls(output, roots, output - offsets, as_node(total**0.5 * unit), relative, total)

    def moved_to(self, value: Any) -> dict[Node, Node]:
        """Return each root moved by its share of what the number is to be moved by."""
        share = (value - self.output) * (1.0 / self.total)
        return {
            root: (RandomVariable(root) + share * (self.relative[root] * slope)).node
            for root, slope in self.roots.items()
        }


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


def normals_in_window(window: Window, roots: dict[Node, Coefficient]) -> Solution:
    """Draw normal roots from their joint distribution given that a number lies in a window."""
    spread = _Spread.of(window.number, roots)
    ends = constant(window.low), constant(window.high)
    place, log_weight = _drawn_between(NORMAL, ends, (spread.mean.node, spread.sd))
    return Solution(spread.moved_to(place), log_weight)


def in_window(window: Window, root: Node, slope: Coefficient) -> Solution:
    """Draw one root from its distribution between the ends that put a number into a window."""
    ends: list[Any] = [_at_end(Section(window.number, slope, root), end) for end in (window.low, window.high)]
    family = family_of(root)
    assert isinstance(family, ScalarFamily)
    low, high = np.minimum(*ends), np.maximum(*ends)
    place, log_weight = _drawn_between(family, (low.node, high.node), root.parents)
    return Solution({root: place.node}, log_weight)


def _drawn_between(
    family: ScalarFamily, ends: tuple[Node, Node], parameters: tuple[Node, ...]
) -> tuple[RandomVariable, Node]:
    """Return a quantity of a family between two ends, and the log of the probability to be there."""
    uniform = Uniform(0.0, 1.0).node
    place = Node(_Between(family), (uniform, *ends, *parameters), (), _FLOAT, kind=Kind.CONTINUOUS)
    return RandomVariable(place), Node(_LogMass(family), (*ends, *parameters), (), _FLOAT, kind=Kind.MIXED)


def _tails(family: ScalarFamily, parameters: Sequence[Array]) -> tuple[Any, Any, Any, Any]:
    """Return the probabilities below and above a value, and their inverses."""
    if all(parameter.size == 1 for parameter in parameters):
        distribution = _frozen(family.frozen, *(parameter.item() for parameter in parameters))
    else:
        distribution = family.frozen(*parameters)
    return distribution.cdf, distribution.sf, distribution.ppf, distribution.isf


@lru_cache(maxsize=64)
def _frozen(make: Callable[..., Any], *parameters: float) -> Any:
    """Return SciPy's distribution of some parameters, which takes longer to make than to ask."""
    return make(*parameters)


@dataclass(frozen=True, slots=True)
class _LogMass(Operation):
    """The log of the probability that a quantity lies between two numbers, small as it may be."""

    family: ScalarFamily

    def evaluate(self, arguments: Sequence[Array], context: Context) -> Array:
        low, high, *parameters = aligned(arguments)
        below, above, _, _ = _tails(self.family, parameters)
        # The smaller tail tells a small probability to more digits.
        start, end = below(low), above(high)
        masses = np.where(start > end, above(low) - end, below(high) - start)
        return np.asarray(np.log(np.maximum(masses, 0.0)))


@dataclass(frozen=True, slots=True)
class _Between(Operation):
    """A quantity between two numbers, from a uniform number: the quantile of that share of the probability there."""

    family: ScalarFamily

    def evaluate(self, arguments: Sequence[Array], context: Context) -> Array:
        share, low, high, *parameters = aligned(arguments)
        below, above, quantile, from_above = _tails(self.family, parameters)
        start, end = below(low), above(high)
        lower = start + share * (below(high) - start)
        upper = end + (1 - share) * (above(low) - end)
        # Of two tails the smaller one is told to more digits.
        place = np.where(lower < upper, quantile(lower), from_above(upper))
        return np.asarray(np.clip(np.where(np.isnan(place), low, place), low, high))


def density_of(root: Node, at: Node) -> RandomVariable:
    """Return the log density of a root at a place."""
    return RandomVariable(Node(LogDensity(family_of(root)), (at, *root.parents), root.shape, _FLOAT, kind=Kind.MIXED))


IMPOSSIBLE = Solution({}, constant(-np.inf), (constant(False),))
"""What there is to be said of a branch on which the observation cannot be made."""


def branch_condition(node: Node) -> Node | None:
    """Return the condition of the outermost branching behind a quantity that depends on discrete quantities alone."""
    for inner in reversed(ancestors([node])):
        if inner.operation.traits.role is Role.CHOICE and inner.shape == ():
            condition = _part_of(inner.parents[0])
            drawn = [one for one in ancestors([condition]) if one.operation.random]
            known = all(isinstance(one.operation, Draw) and one.kind is Kind.DISCRETE for one in drawn)
            if drawn and known and condition.dtype == bool:
                return condition
    return None


def _part_of(condition: Node) -> Node:
    """Return a part of a condition that is not itself put together of others by `and`, `or` and `not`."""
    while isinstance(condition.operation, Elementwise) and condition.operation.traits.connective is not None:
        condition = next(parent for parent in condition.parents if _decided(parent) is None)
    return condition


def given_that(node: Node, condition: Node, truth: bool) -> Node:
    """Return what a quantity is where a condition holds, or where it does not."""
    return specialised([node], {condition: truth})[0]


def _decided(node: Node) -> bool | None:
    known = isinstance(node.operation, ConstantValue) and node.dtype == bool and not node.shape
    return bool(node.operation.array[0]) if known and isinstance(node.operation, ConstantValue) else None


def never_is(node: Node, value: float) -> bool:
    """Say whether a quantity is known never to have a value."""
    if isinstance(node.operation, ConstantValue) and node.dtype.kind in "bif":
        return not bool(np.any(np.isclose(node.operation.array.astype(float), value, rtol=1e-12, atol=0.0)))
    return node.dtype.kind in "bi" and node.levels is None and not value.is_integer()


def either_way(condition: Node, yes: Solution, no: Solution) -> Solution:
    """Put the solutions of both branches together: each sample is solved on the branch that it is on."""
    roots = dict.fromkeys([*yes.replacements, *no.replacements])
    replacements = {
        root: numpy_functions.where(condition, yes.replacements.get(root, root), no.replacements.get(root, root))
        for root in roots
    }
    weight = numpy_functions.where(condition, yes.log_weight, no.log_weight)
    agreeing = numpy_functions.where(condition, _all(yes), _all(no))
    return Solution(replacements, weight, (agreeing,))


def _all(solution: Solution) -> Node:
    conditions = [RandomVariable(condition) for condition in solution.conditions]
    return reduce(lambda one, other: one & other, conditions).node if conditions else constant(True)


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
    solutions += [through_functions(value, [Section(node, roots[root], root)]) for root in singles]
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
