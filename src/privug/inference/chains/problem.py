"""A question and an observation as chains need them: random roots, the log weight of their values, and the way back."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np

from privug.errors import ImpossibleObservation, ObservationError, ProgramError, UnsuitableEngine
from privug.inference.case_plan import ConditionedCase, Quantity, failure_of_program
from privug.inference.graph.affine import affine_roots
from privug.inference.graph.conditions import Window, merged, windows_of
from privug.inference.question import Case, Question
from privug.inference.sampling import generator
from privug.inference.solving import solve
from privug.model.batch import Batch
from privug.model.framed import Framed
from privug.model.graph import substitute
from privug.model.node import Array, ConstantValue, Kind, Node, ancestors
from privug.model.operations import SampleFailure, constant, stack
from privug.model.plan import Plan
from privug.model.plated_tables import PlatedTable
from privug.model.plates import Plate
from privug.model.structure import random_leaves
from privug.model.table import Row
from privug.model.variable import RandomVariable, as_node
from privug.observation.likelihood import Likelihood
from privug.observation.observations import Observation
from privug.prior.choice import constant_value
from privug.prior.conditional import BindDraw
from privug.prior.continuous import Exponential, Uniform
from privug.prior.family import Draw, LogDensity, family_of


def named_roots(roots: Sequence[Node], inputs: Mapping[str, Any]) -> list[str]:
    """Return a name for each root, all of them different: 'records[0].age', or its family if it is no input itself."""
    found: dict[int, str] = {}
    for name, value in inputs.items():
        for path, node in _leaves(value, name):
            found.setdefault(id(node), path)
    taken: dict[str, int] = {}
    return [_unused(found.get(id(root), family_of(root).name.lower()), taken) for root in roots]


def _unused(name: str, taken: dict[str, int]) -> str:
    taken[name] = taken.get(name, 0) + 1
    return name if taken[name] == 1 else _unused(f"{name}_{taken[name]}", taken)


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Node]]:
    match value:
        case RandomVariable():
            yield path, value.node
        case Row():
            for key, cell in value._asdict().items():
                yield from _leaves(cell, f"{path}.{key}")
        case Framed():
            yield from _leaves(value.table, path)
        case PlatedTable():
            yield from _segments(value, path)
        case Plate():
            for key, cell in zip(value.names, value.cells, strict=True):
                yield from _leaves(cell, f"{path}.{key}")
        case list() | tuple():
            for position, item in enumerate(value):
                yield from _leaves(item, f"{path}[{position}]")
        case dict():
            for key, item in value.items():
                yield from _leaves(item, f"{path}.{key}")


def _segments(table: PlatedTable, path: str) -> Iterator[tuple[str, Node]]:
    start = 0
    for segment in table.segments:
        size = segment.size if isinstance(segment, Plate) else 1
        place = f"{start}:{start + size}" if isinstance(segment, Plate) else f"{start}"
        yield from _leaves(segment, f"{path}[{place}]")
        start += size


PILOT_SAMPLES = 512
SLOPE = 0.15
"""How far the slope outside a wall reaches, relative to the window or to how much the number varies."""


def as_point(window: Window) -> tuple[tuple[Node, float], Node, list[Node]] | None:
    """Return the place in a window as a point to solve for, the root that it hangs on, and log weights of it.

    The number minus the place is exactly zero. None if no continuous root can be solved for.
    """
    if window.low == window.high or window.number.kind is Kind.DISCRETE or not affine_roots(window.number):
        return None
    number = RandomVariable(window.number)
    if math.isfinite(window.low) and math.isfinite(window.high):
        root = Uniform(0.0, 1.0)
        # The magnitude of a number is nothing that an observation could be solved for: the root itself must not be.
        place = window.low + (window.high - window.low) * np.absolute(root)
        return ((number - place).node, 0.0), root.node, [constant(math.log(window.high - window.low))]
    scale = spread(window.number) or 1.0
    root = Exponential(scale=1.0)
    distance = np.absolute(root)
    place = window.low + scale * distance if math.isfinite(window.low) else window.high - scale * distance
    return ((number - place).node, 0.0), root.node, [as_node(distance + math.log(scale))]


def spread(number: Node) -> float:
    """Return how much a number varies, from a few draws."""
    failed = np.zeros(PILOT_SAMPLES, np.bool_)
    values = Plan([number]).run(PILOT_SAMPLES, np.random.Generator(np.random.SFC64(0)), failed=failed)[0]
    values = values[~failed & np.isfinite(values)]
    low, high = np.quantile(values, [0.16, 0.84]) if len(values) else (0.0, 1.0)
    return float(high - low) / 2


def is_smooth(number: Node) -> bool:
    """Say whether a number moves when continuous roots do: what is discrete has no slope."""
    return number.kind is not Kind.DISCRETE and any(
        node.is_random and node.kind is not Kind.DISCRETE for node in ancestors([number])
    )


def slope_width(window: Window) -> float:
    """Return the width of the slope outside a window that stands where there can be no wall."""
    width = min(window.high - window.low, spread(window.number))
    return SLOPE * width if 0 < width < math.inf else SLOPE


INSIDE = 1e-9
"""How far inside its ends a density is looked at that may be zero or infinite there, relative to their distance."""


@dataclass
class Smoothed:
    """What is left of an observation: log weights, conditions that hold or not, and checks of draws afterwards."""

    log_weights: list[Node] = field(default_factory=list)
    conditions: list[Node] = field(default_factory=list)
    checks: list[Node] = field(default_factory=list)
    targets: list[Node] = field(default_factory=list)
    places: list[Node] = field(default_factory=list)
    """The roots that say where in a window an output lies."""
    densities: int = 0
    """How many exact values were seen of continuous outputs."""

    def move(self, seen: Likelihood, others: Sequence[Node]) -> list[Node]:
        """Solve what was seen, in everything that is there; return the other nodes given it."""
        bundle = [*self.log_weights, *self.conditions, *self.checks, *self.targets, *others]
        solved, images = solve(seen, bundle, smooth=True)
        following = iter(images)
        self.log_weights = [next(following) for _ in self.log_weights] + list(solved.log_weights)
        # That a solved root is within its ends is a wall too, which its density gets a slope for.
        ends = [condition for condition in solved.conditions if _smooth_windows(condition) is not None]
        others_seen = [condition for condition in solved.conditions if condition not in ends]
        self.conditions = [next(following) for _ in self.conditions] + others_seen
        self.checks = [next(following) for _ in self.checks] + ends
        self.targets = [next(following) for _ in self.targets]
        return list(following)


def _smooth_windows(condition: Node) -> list[Window] | None:
    """Return the windows that a condition is, if the numbers in them move with continuous roots."""
    found = windows_of(condition)
    return found if found is not None and all(is_smooth(window.number) for window in found) else None


def smooth(likelihood: Likelihood, targets: Sequence[Node]) -> Smoothed:
    """Return the likelihood in a form that chains can follow, and the targets given it."""
    smoothed = Smoothed(list(likelihood.log_weights), targets=list(targets))
    windows: list[Window] = []
    for condition in likelihood.conditions:
        found = _smooth_windows(condition)
        if found is None:
            smoothed.conditions.append(condition)
        else:
            windows += found
    windows = merged(windows)
    _check_width(windows)
    numbers = [window.number for window in windows]
    points = list(likelihood.points)
    while points:
        before = len(smoothed.log_weights)
        point = points.pop(0)
        images = smoothed.move(Likelihood(points=(point,)), [*(node for node, _ in points), *numbers])
        points = [(node, value) for node, (_, value) in zip(images, points, strict=False)]
        numbers = images[len(points) :]
        smoothed.densities += len(smoothed.log_weights) - before
    while numbers:
        window = windows[-len(numbers)]
        numbers = _through(smoothed, Window(numbers[0], window.low, window.high), numbers[1:])
    _without_walls(smoothed)
    return smoothed


def _check_width(windows: Sequence[Window]) -> None:
    for window in windows:
        if window.low == window.high and window.number.kind is Kind.CONTINUOUS:
            raise ObservationError(
                f"the output is continuous, so it is exactly {window.low:g} with probability zero; write "
                f"pv.near({window.low:g}, within=...), or pv.equals({window.low:g}) to weight by its density"
            )


def _through(smoothed: Smoothed, window: Window, others: Sequence[Node]) -> list[Node]:
    """Take a window into account; return the other numbers given it."""
    placed = as_point(window)
    if placed is not None:
        point, place, log_weights = placed
        try:
            left = smoothed.move(Likelihood(points=(point,)), others)
        except ObservationError:  # what it could be solved for went into an observation before
            pass
        else:
            smoothed.log_weights += log_weights
            smoothed.places.append(place)
            return left
    _add_slope(smoothed, window)
    return list(others)


def _add_slope(smoothed: Smoothed, window: Window) -> None:
    number, width = RandomVariable(window.number), slope_width(window)
    for end, sign in ((window.low, 1.0), (window.high, -1.0)):
        if math.isfinite(end):
            beyond = np.maximum((end - number) * (sign / width), 0.0)
            smoothed.log_weights.append(as_node(beyond * beyond * -0.5))
            smoothed.checks.append((number >= end if sign > 0 else number <= end).node)


def _without_walls(smoothed: Smoothed) -> None:
    """Let densities with ends go on beyond them, on a slope."""
    replacements: dict[Node, Node] = {}
    windows: list[Window] = []
    for node in ancestors(smoothed.log_weights):
        if isinstance(node.operation, LogDensity) and not node.parents[0].is_random:
            family = node.operation.family
            if family.kind is Kind.CONTINUOUS and family.has_ends:
                low, high = (constant(e) if isinstance(e, float) else e for e in family.ends_of(node.parents[1:]))
                replacements[node] = _extended(node, low, high)
                windows += _between(node.parents[0], low, high)
    smoothed.log_weights = substitute(smoothed.log_weights, replacements)
    for window in windows:
        _add_slope(smoothed, window)


def _extended(density: Node, low: Node, high: Node) -> Node:
    operation = density.operation
    assert isinstance(operation, LogDensity)
    margin = 0.0 if operation.family.finite_at_ends else INSIDE
    value = RandomVariable(density.parents[0])
    held = np.minimum(np.maximum(value, RandomVariable(low) + margin), RandomVariable(high) - margin)
    return Node(
        density.operation, (as_node(held), *density.parents[1:]), density.shape, density.dtype, kind=density.kind
    )


def _between(number: Node, low: Node, high: Node) -> list[Window]:
    if isinstance(low.operation, ConstantValue) and isinstance(high.operation, ConstantValue):
        return [Window(number, float(constant_value(low)), float(constant_value(high)))]
    value = RandomVariable(number)
    return [
        Window((value - RandomVariable(low)).node, 0.0, math.inf),
        Window((RandomVariable(high) - value).node, 0.0, math.inf),
    ]


CHECKED_SAMPLES = 16
MOST_ADDED = 16


@dataclass(frozen=True)
class Stratum:
    """The model for one size of each table, in terms of the roots that all sizes share."""

    case: ConditionedCase
    moved: Mapping[Node, Node]
    """What stands for each root of the case, so that it agrees with the observation."""
    log_weight: Node
    conditions: tuple[Node, ...] = ()
    checks: tuple[Node, ...] = ()
    sizes: Mapping[Node, Any] = field(default_factory=dict)
    """The values of the random roots behind the sizes of the tables."""


@dataclass(frozen=True)
class Problem:
    """A density over random roots: their own, times the exponential of `log_weight`, where the conditions hold.

    Of the draws, those are dropped for which `kept` is false; `evaluate` gives secret and output on the others.
    """

    question: Question
    strata: tuple[Stratum, ...]
    roots: tuple[Node, ...]
    names: tuple[str, ...]
    log_weight: Node
    conditions: tuple[Node, ...]
    seed: int
    remarks: tuple[str, ...] = ()
    log_weights: Node | None = None
    """The log weights of all sizes of the tables, as one array."""
    listed: Mapping[Node, Array] = field(default_factory=dict)
    """The values of discrete roots that are summed over; beyond the last ones there may be others."""

    @property
    def has_checks(self) -> bool:
        """Whether draws may have to be dropped."""
        return self.question.exclude_errors or any(stratum.checks for stratum in self.strata)

    def logs(self, values: Mapping[Node, Array]) -> Array:
        """Return the log weight of draws; minus infinity where a condition does not hold."""
        return _logs([self.log_weight], self.conditions, values)[:, 0]

    def holds(self, conditions: Sequence[Node], values: Mapping[Node, Array]) -> Array:
        """Say for which values of the roots conditions hold; they do not where they cannot be computed."""
        failed = np.zeros(_length(values), np.bool_)
        arrays = _evaluated(conditions, values, np.arange(len(failed)), self._rng(), failed)
        holds = ~failed
        for array in arrays:
            holds &= array
        return holds

    def sized(self, values: Mapping[Node, Array]) -> dict[Node, Array]:
        """Return the draws together with sizes of the tables drawn given them."""
        if not self.strata[0].sizes:
            return dict(values)
        assert self.log_weights is not None
        logs = _logs([self.log_weights], (), values)[:, 0]
        gumbel = self._rng().gumbel(size=logs.shape)
        chosen = np.argmax(logs + gumbel, axis=1)
        sizes = {node: np.array([stratum.sizes[node] for stratum in self.strata]) for node in self.strata[0].sizes}
        return {**values, **{node: table[chosen] for node, table in sizes.items()}}

    def kept(self, values: Mapping[Node, Array]) -> Array:
        """Say which draws lie on this side of all walls, and do not make the program fail if such are left out."""
        samples = _length(values)
        kept = np.ones(samples, np.bool_)
        if not self.has_checks:
            return kept
        for stratum, members in self._by_size(values):
            targets = substitute(stratum.case.judged, stratum.moved)
            failed = np.zeros(len(members), np.bool_)
            marks = failed if self.question.exclude_errors else None
            arrays = _evaluated([*targets, *stratum.checks], values, members, self._rng(), marks, forgiving=True)
            for check in arrays[len(targets) :]:
                failed |= ~check
            if self.question.exclude_errors:
                failed |= stratum.case.not_a_number(arrays, ~failed, exclude=True)
            kept[members[failed]] = False
        return kept

    def evaluate(self, values: Mapping[Node, Array], extra: Callable[..., Any] | None = None) -> tuple[Batch, ...]:
        """Return secret, output and a further query on draws of the roots, as the program itself gives them."""
        parts = [(members, self._answers(s, values, members, extra)) for s, members in self._by_size(values)]
        order = np.argsort(np.concatenate([members for members, _ in parts]), kind="stable")
        columns = zip(*(answers for _, answers in parts), strict=True)
        return tuple(Batch.concatenate(column).take(order) for column in columns)

    def _answers(
        self, stratum: Stratum, values: Mapping[Node, Array], members: Array, extra: Callable[..., Any] | None
    ) -> list[Batch]:
        quantities = [stratum.case.secret, stratum.case.output]
        if extra is not None:
            quantities.append(Quantity.of(self.question.query(stratum.case.case, extra)))
        nodes = [node for quantity in quantities for node in quantity.nodes]
        try:
            arrays = _evaluated(substitute(nodes, stratum.moved), values, members, self._rng())
            stratum.case.not_a_number(arrays, np.ones(len(members), np.bool_), exclude=False)
        except SampleFailure as failure:
            raise self._explained(stratum, values, members, failure) from failure.cause
        following = iter(arrays)
        return [q.batch([next(following) for _ in q.nodes], len(members)) for q in quantities]

    def _explained(
        self, stratum: Stratum, values: Mapping[Node, Array], members: Array, failure: SampleFailure
    ) -> ProgramError:
        inputs = Quantity.of(dict(stratum.case.case.inputs))
        which = members[[failure.index % len(members)]]
        arrays = _evaluated(substitute(inputs.nodes, stratum.moved), values, which, self._rng(), forgiving=True)
        shown = inputs.batch(arrays, 1).values()[0]
        return failure_of_program(failure, shown)

    def _by_size(self, values: Mapping[Node, Array]) -> list[tuple[Stratum, Array]]:
        members = np.arange(_length(values))
        if not self.strata[0].sizes:
            return [(self.strata[0], members)]
        found = []
        for stratum in self.strata:
            agree = np.logical_and.reduce(
                [(values[node] == size).reshape(len(members), -1).all(axis=1) for node, size in stratum.sizes.items()]
            )
            if agree.any():
                found.append((stratum, members[agree]))
        return found

    def _rng(self) -> np.random.Generator:
        return generator(self.seed, 1 << 20)


def _length(values: Mapping[Node, Array]) -> int:
    return len(next(iter(values.values()))) if values else 1


def _evaluated(
    targets: Sequence[Node],
    values: Mapping[Node, Array],
    members: Array,
    rng: np.random.Generator,
    failed: Array | None = None,
    *,
    forgiving: bool = False,
) -> list[Array]:
    """Evaluate nodes on some draws, in blocks that stay in the cache."""
    plan = Plan(targets, list(values))
    parts = []
    for start in range(0, len(members), plan.block):
        chosen = members[start : start + plan.block]
        marks = None if failed is None else failed[start : start + plan.block]
        known = {node: array[chosen] for node, array in values.items()}
        try:
            parts.append(plan.run(len(chosen), rng, known, forgiving=forgiving and marks is None, failed=marks))
        except SampleFailure as failure:
            raise SampleFailure(start + failure.index, failure.cause, failure.label) from failure.cause
    return [np.concatenate(pieces) for pieces in zip(*parts, strict=True)]


def _logs(weights: Sequence[Node], conditions: Sequence[Node], values: Mapping[Node, Array]) -> Array:
    members = np.arange(_length(values))
    failed = np.zeros(len(members), np.bool_)
    rng = np.random.Generator(np.random.SFC64(0))
    arrays = _evaluated([*weights, *conditions], values, members, rng, failed)
    logs = np.stack(arrays[: len(weights)], axis=1)
    wrong = np.isnan(logs)
    wrong[failed] = True
    for condition in arrays[len(weights) :]:
        wrong[~condition] = True
    return np.where(wrong, -np.inf, logs)


def drawn(nodes: Sequence[Node]) -> list[Node]:
    """Return the random roots behind nodes; quantities that only plain calls can draw are refused."""
    roots = [node for node in ancestors(nodes) if node.is_random]
    if any(isinstance(root.operation, BindDraw) for root in roots):
        raise UnsuitableEngine(
            "chains need a density for every random quantity, and pv.bind with a function that branches has none; "
            "write pv.given, or choose engine='sample'"
        )
    return [root for root in roots if isinstance(root.operation, Draw)]


def stratum(case: Case, observation: Observation | None) -> tuple[Stratum, Smoothed]:
    """Return the model of one case given the observation."""
    given = ConditionedCase(case, observation)
    likelihood = given.likelihood
    if likelihood.impossible is not None:
        raise ImpossibleObservation(f"this observation is impossible: {likelihood.impossible}")
    points = [node for node, _ in likelihood.points]
    roots = drawn([*given.judged, *likelihood.conditions, *likelihood.log_weights, *points])
    smoothed = smooth(likelihood, roots)
    moved = {root: image for root, image in zip(roots, smoothed.targets, strict=True) if image is not root}
    conditions, checks = tuple(smoothed.conditions), tuple(smoothed.checks)
    return Stratum(given, moved, total(smoothed.log_weights), conditions, checks), smoothed


def total(log_weights: Sequence[Node]) -> Node:
    """Return the sum of log weights, each a single number or an array of them."""
    if not log_weights:
        return constant(0.0)
    terms = [RandomVariable(node).sum() if node.shape else RandomVariable(node) for node in log_weights]
    if len(terms) > MOST_ADDED:
        return RandomVariable(stack([as_node(term) for term in terms])).sum().node
    return reduce(lambda left, right: left + right, terms).node


def single(question: Question, observation: Observation | None, seed: int, samples: int) -> Problem:
    """Return the problem of a question whose tables have known sizes."""
    case = question.case((), samples)
    only, _ = stratum(case, observation)
    roots = drawn([*substitute(only.case.judged, only.moved), only.log_weight, *only.conditions, *only.checks])
    check_repeatable([only.log_weight, *only.conditions], roots)
    names = named_roots(roots, case.inputs)
    conditions = only.conditions
    if question.exclude_errors and Plan([only.log_weight]).can_fail:  # where the program fails there is a wall
        conditions += ((RandomVariable(only.log_weight) > -math.inf).node,)
    return Problem(question, (only,), tuple(roots), tuple(names), only.log_weight, conditions, seed)


def check_repeatable(nodes: Sequence[Node], roots: Sequence[Node]) -> None:
    """Refuse programs that draw random numbers which are not in the graph: the observation has no density then."""
    if not any(node.operation.opaque for node in ancestors(nodes)):
        return
    rngs = [np.random.Generator(np.random.SFC64(seed)) for seed in (0, 1, 2)]
    drawn_once = dict(zip(roots, Plan(roots).run(CHECKED_SAMPLES, rngs[0]), strict=True))
    members = np.arange(CHECKED_SAMPLES)
    numeric = [node for node in nodes if node.dtype.kind in "bif"]
    one, other = (_evaluated(numeric, drawn_once, members, rng, forgiving=True) for rng in rngs[1:])
    if any(not np.array_equal(a, b, equal_nan=True) for a, b in zip(one, other, strict=True)):
        raise UnsuitableEngine(
            "the program draws random numbers of its own, so that what was seen has no density; "
            "make its noise an input, or choose engine='sample' or 'rare'"
        )


def is_differentiable(problem: Problem) -> bool:
    """Say whether gradients lead through the whole problem: no discrete root and no condition that holds or not."""
    return not problem.conditions and all(root.kind is Kind.CONTINUOUS for root in problem.roots)


def roots_of(case: ConditionedCase) -> list[Node]:
    """Return the random roots behind the inputs of a case, its secret and its output."""
    return drawn([*(variable.node for variable in random_leaves(dict(case.case.inputs))), *case.judged])
