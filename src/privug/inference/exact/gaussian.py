"""The solver for normal variables: affine functions of them, conditioned in closed form on values and ranges."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import scipy

from privug.errors import ImpossibleObservation, UnsuitableEngine
from privug.estimate import Estimate
from privug.inference.answer import ExactAnswer
from privug.inference.belief import Belief
from privug.inference.exact.request import Offer, Refused, Request, exact_answer
from privug.inference.graph.conditions import EVERYTHING, Range, Restriction, Unreadable, Value, read
from privug.inference.joint import Joint
from privug.inference.measure.curve import Curve
from privug.inference.measure.density import tabulate
from privug.inference.question import Case
from privug.model.batch import Batch
from privug.model.graph import random_nodes
from privug.model.node import Array, ConstantValue, Kind, Node, Shape, ancestors
from privug.model.numpy_functions import Cast
from privug.model.operations import ArrayFunction, Elementwise, Index, Stack
from privug.model.plan import computed
from privug.model.structure import flatten
from privug.model.traits import Role, Scope, Traits
from privug.model.variable import as_node
from privug.prior.family import Draw, describe

Weight = Any  # a float for a single number, else an array of the node's shape


class NotAffine(Exception):
    """A number is not an affine function of normal variables; the message says why."""


@dataclass(frozen=True)
class Form:
    """A constant, and the weights of the standard normal variables behind each root.

    `nodes` and `numbers` are how many nodes there are behind it, and how many numbers in them.
    """

    constant: float
    weights: dict[Node, Weight]
    nodes: int
    numbers: int


def affine_form(node: Node) -> Form:
    """Return the affine form of a single number, or raise NotAffine."""
    if node.shape != () or node.levels is not None or node.dtype.kind not in "bif":
        raise NotAffine("it is not a single number")
    order = ancestors([node])
    back = _Backward(order)
    back.reach(node, 1.0)
    for current in reversed(order):
        weight = back.weights.pop(current, None)
        if weight is not None:
            back.pass_on(current, weight)
    if not np.all(np.isfinite(back.constants)):
        raise NotAffine("some numbers in the program are not finite")
    numbers = sum(math.prod(node.shape) for node in order)
    return Form(math.fsum(back.constants), back.normals, len(order), numbers)


class _Backward:
    """The weights of the nodes reached so far, on the way back from a number to what it is made of."""

    def __init__(self, order: Sequence[Node]) -> None:
        self.weights: dict[Node, Weight] = {}
        self.normals: dict[Node, Weight] = {}
        self.constants: list[float] = []
        self._owned: set[Node] = set()
        self._random = random_nodes(order)

    def reach(self, node: Node, weight: Weight) -> None:
        """Add to the weight of a node; what is certain goes into the constant."""
        if node not in self._random:
            amount = weight * self._value(node)
            self.constants.append(amount if type(amount) is float else float(np.sum(amount)))
        elif node in self.weights:
            self.weights[node] = self.weights[node] + weight
            self._owned.add(node)
        else:
            self.weights[node] = weight
            self._owned.discard(node)

    def _reach_part(self, node: Node, key: tuple[Any, ...], weight: Weight) -> None:
        """Add to the weight of some elements of a node, in place."""
        if node not in self._random:
            self.constants.append(float(np.sum(weight * self._value(node)[key])))
            return
        if node not in self._owned:
            self.weights[node] = np.zeros(node.shape) + self.weights.get(node, 0.0)
            self._owned.add(node)
        self.weights[node][key] += weight

    def _value(self, node: Node) -> Any:
        """Return the value of a node that is certain."""
        value = node.operation.array[0] if type(node.operation) is ConstantValue else computed([node], {}, 1)[0][0]
        return value.item() if node.shape == () else value

    def _certain(self, node: Node, why: str = "two random quantities are multiplied or divided") -> Any:
        if node in self._random:
            raise NotAffine(why)
        return self._value(node)

    def pass_on(self, node: Node, weight: Weight) -> None:
        """Hand the weight of a node on to what it is made of."""
        operation = node.operation
        if type(operation) is Elementwise:  # asking for the type alone is several times quicker than isinstance
            self._pass_through_operator(node, operation.traits, weight)
        elif type(operation) is Draw:
            self._pass_to_normals(node, weight)
        elif type(operation) is Index:
            if all(isinstance(part, int | np.integer | slice) for part in operation.key):
                self._reach_part(node.parents[0], operation.key, weight)
            else:
                self._rearrange(node, lambda array: array[(slice(None), *operation.key)], weight)
        elif type(operation) is Stack:
            for position, parent in enumerate(node.parents):
                part = weight[position]
                self.reach(parent, float(part) if parent.shape == () else part)
        elif type(operation) is ArrayFunction:
            self._pass_through_function(node, operation, weight)
        elif type(operation) is Cast and operation.dtype.kind == "f":
            self.reach(node.parents[0], weight)
        else:
            raise NotAffine(_reason(node))

    def _pass_through_operator(self, node: Node, traits: Traits, weight: Weight) -> None:
        parents = node.parents
        if traits.weights is not None:
            for parent, sign in zip(parents, traits.weights, strict=True):
                self.reach(parent, _summed(weight if sign > 0 else -weight, parent.shape))
        elif traits.factor == 1:
            random, factor = parents if parents[0] in self._random else parents[::-1]
            self.reach(random, _summed(weight * self._certain(factor), random.shape))
        elif traits.factor == -1:
            divisor = self._certain(parents[1])
            if not np.all(divisor):
                raise NotAffine("it divides by zero")
            self.reach(parents[0], _summed(weight / divisor, parents[0].shape))
        else:
            raise NotAffine(_reason(node))

    def _pass_to_normals(self, root: Node, weight: Weight) -> None:
        assert isinstance(root.operation, Draw)
        family = root.operation.family
        if family.gaussian:
            sd = self._certain(root.parents[1], "the deviation of a normal variable is random")
            self.normals[root] = _summed(weight * sd, root.shape)
        elif family.factor is not None:
            self.normals[root] = weight @ family.factor
        else:
            raise NotAffine(f"{describe(root) or family.name} is not normal")
        self.reach(root.parents[0], _summed(weight, root.parents[0].shape))

    def _pass_through_function(self, node: Node, function: ArrayFunction, weight: Weight) -> None:
        parents = node.parents
        options, traits = dict(function.options), function.traits
        if traits.adds_up:
            shape = parents[0].shape
            axes = options["axis"] if isinstance(options["axis"], tuple) else (options["axis"],)
            kept = tuple(1 if axis + 1 in axes else size for axis, size in enumerate(shape))
            count = math.prod(shape[axis - 1] for axis in axes) if traits.averages else 1
            self.reach(parents[0], np.broadcast_to(np.reshape(weight, kept) / count, shape))
        elif traits.role is Role.PRODUCT:
            self._pass_through_product(parents, weight)
        elif traits.role is Role.MOVE:
            self._rearrange(node, partial(function.function, **options), weight)
        else:
            raise NotAffine(_reason(node))

    def _pass_through_product(self, parents: Sequence[Node], weight: Weight) -> None:
        left, right = parents
        rows, columns = left.shape[0] if len(left.shape) == 2 else 1, right.shape[1] if len(right.shape) == 2 else 1
        grid = np.reshape(weight, (rows, columns))
        if left in self._random:
            factor = np.reshape(self._certain(right), (right.shape[0], columns))
            self.reach(left, (grid @ factor.T).reshape(left.shape))
        else:
            factor = np.reshape(self._value(left), (rows, left.shape[-1]))
            self.reach(right, (factor.T @ grid).reshape(right.shape))

    def _rearrange(self, node: Node, function: Callable[..., Array], weight: Weight) -> None:
        """Go back through a function that only moves elements, by moving their numbers along."""
        sizes = [math.prod(parent.shape) for parent in node.parents]
        starts = np.cumsum([0, *sizes])
        numbered = [
            np.arange(start, start + size).reshape(1, *parent.shape)
            for start, size, parent in zip(starts, sizes, node.parents, strict=False)
        ]
        sources = function(*numbered)[0]
        total = np.bincount(sources.reshape(-1), np.reshape(weight, -1), starts[-1])
        for start, size, parent in zip(starts, sizes, node.parents, strict=False):
            part = total[start : start + size].reshape(parent.shape)
            self.reach(parent, float(part) if parent.shape == () else part)


def _summed(weight: Weight, shape: Shape) -> Weight:
    """Return the weight of an argument that was stretched to the weight's shape, or stretch it to the argument's."""
    if shape == ():
        return weight if type(weight) is float else float(np.sum(weight))
    array = np.asarray(weight, float)
    extra = array.ndim - len(shape)
    if extra > 0:
        array = array.sum(axis=tuple(range(extra)))
    stretched = tuple(k for k, size in enumerate(shape) if k < array.ndim and size == 1 and array.shape[k] > 1)
    return np.broadcast_to(array.sum(axis=stretched, keepdims=True) if stretched else array, shape)


def _reason(node: Node) -> str:
    name = getattr(node.operation, "name", type(node.operation).__name__)
    traits = node.operation.traits
    if traits.role in (Role.COMPARISON, Role.CHOICE, Role.ORDER) or (traits.truth and traits.scope is Scope.FOLD):
        return "it branches on a continuous variable"
    return f"it uses '{name}' of a continuous variable"


REACH = 9.5  # deviations beyond which a normal density is left out: 2e-21 lies there
NARROW = 2.0  # half a range's width times its distance: up to here 24 nodes integrate a normal density to all digits
_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(24)


def log_mass(ranges: Sequence[Range], shift: Array, scale: float) -> Array:
    """Return the log of the probability of some ranges for normal variables of the given means and one deviation."""
    if not ranges:
        return np.full(shift.shape, -np.inf)
    logs = [_log_mass(part, shift, scale) for part in ranges]
    return np.asarray(scipy.special.logsumexp(logs, axis=0)) if len(logs) > 1 else logs[0]


def _log_mass(part: Range, shift: Array, scale: float) -> Array:
    low, high = part
    middle, half = ((low / 2 + high / 2) - shift) / scale, (high - low) / 2 / scale
    narrow = half * (1 + np.abs(middle)) <= NARROW
    logs = _wide(part, shift, scale) if not narrow.all() else np.empty(shift.shape)
    if narrow.any():
        logs[narrow] = _narrow(middle[narrow], half)
    return logs


def _wide(part: Range, shift: Array, scale: float) -> Array:
    low, high = part
    start, end = (low - shift) / scale, (high - shift) / scale
    flipped = start > 0  # to the tail in which the distribution function has its digits
    start, end = np.where(flipped, -end, start), np.where(flipped, -start, end)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = scipy.special.log_ndtr(start) - scipy.special.log_ndtr(end)
        return np.asarray(scipy.special.log_ndtr(end) + np.log(-np.expm1(ratio)))


def _narrow(middle: Array, half: float) -> Array:
    """Integrate the density over a narrow range, where the difference of two distribution functions has few digits."""
    if half <= 0:
        return np.full(middle.shape, -np.inf)
    steps = half * _POINTS
    exponents = -np.multiply.outer(middle, steps) - steps**2 / 2
    bends = scipy.special.logsumexp(exponents, b=_WEIGHTS, axis=-1)
    return np.asarray(bends + math.log(half) - middle**2 / 2 - 0.5 * math.log(2 * math.pi))


def truncated(mean: float, sd: float, correlation: float, independence: float, ranges: Sequence[Range]) -> Curve:
    """Return the distribution of a normal quantity, given ranges of a standard normal one.

    `independence` is the root of one minus the squared correlation, which has more digits than that would.
    With t the standardised quantity, its density is that of a standard normal one times
    the probability of the ranges for a mean of `correlation * t` and a deviation of `independence`.
    """
    if correlation == 0 or sd == 0:
        return Curve.normal(mean, sd)
    if independence < 1e-14:
        scaled = [sorted(end / math.copysign(1.0, correlation) for end in part) for part in ranges]
        parts = [Curve.normal(0.0, 1.0).restricted(low, high) for low, high in scaled]
        shares, curves = zip(*((share, curve) for share, curve in parts if curve is not None), strict=True)
        return Curve.mixture(shares, curves).affine(sd, mean)
    edges = np.unique(np.concatenate([_edges(part, correlation, independence) for part in ranges]))

    def log_density(t: Array) -> Array:
        return -0.5 * t**2 + log_mass(ranges, correlation * t, independence)

    largest = float(log_density(np.linspace(edges[0], edges[-1], 4096)).max())
    total, error, table = tabulate(lambda t: np.exp(log_density(t) - largest), edges, (), (True, True))
    assert table is not None
    return Curve(((1.0, table),), error=error / total).affine(sd, mean)


def _edges(part: Range, correlation: float, independence: float) -> Array:
    """Return where to look for a quantity, given a range of the other: panels as wide as its own spread there."""
    low, high = (float(end) for end in part)
    # Within the range, the other quantity stays near the end closer to zero: its density falls off quickly.
    nearest = min(max(0.0, low), high)
    depth = REACH**2 / max(REACH, abs(nearest)) + 1.0
    low, high = max(low, nearest - depth), min(high, nearest + depth)
    ends = sorted(correlation * end for end in (low, high))
    start, stop = ends[0] - REACH * independence, ends[1] + REACH * independence
    inner = [end + k * independence for end in ends for k in (-REACH, -3.0, 0.0, 3.0, REACH)]
    return np.unique([*np.linspace(start, stop, 17), *inner])


DETERMINED = 1e-13  # what is left of a unit vector that has been projected away, but for rounding
CLOSE = 1e-9  # how well a value must agree with what was known already, relative to the numbers it came from


@dataclass(frozen=True, eq=False)
class Normal:
    """A normal quantity: its mean and its weights on independent standard normal variables."""

    mean: float
    weights: Array

    @property
    def sd(self) -> float:
        """The standard deviation."""
        return length(self.weights)


def length(vector: Array) -> float:
    """Return the length of a vector whose squares may be too large or too small for a float."""
    largest = float(np.abs(vector).max(initial=0.0))
    if not largest > 0:
        return 0.0
    scaled = vector / largest
    return largest * math.sqrt(product(scaled, scaled))


def product(left: Array, right: Array) -> float:
    """Return the inner product of two vectors, summed pairwise: more accurate than BLAS, whose threads cost more."""
    return float(np.sum(left * right))


def aligned(forms: Sequence[Form], noise: Sequence[float] = ()) -> list[Normal]:
    """Return forms as vectors over the same variables; the last forms have noise of the given deviations on top."""
    starts: dict[Node, int] = {}
    total = 0
    for form in forms:
        for root, weight in form.weights.items():
            if root not in starts:
                starts[root] = total
                total += int(np.size(weight))
    normals = []
    for number, form in enumerate(forms):
        vector = np.zeros(total + len(noise))
        for root, weight in form.weights.items():
            if isinstance(weight, float):
                vector[starts[root]] = weight
            else:
                vector[starts[root] : starts[root] + np.size(weight)] = np.reshape(weight, -1)
        position = number - (len(forms) - len(noise))
        if position >= 0:
            vector[total + position] = noise[position]
        normals.append(Normal(form.constant, vector))
    return normals


class Conditioned:
    """What has been seen of some normal quantities, and what others are like given that."""

    def __init__(self) -> None:
        self._basis: list[Array] = []
        self._known: list[float] = []
        self._direction: Array | None = None
        self._ranges: tuple[Range, ...] = EVERYTHING
        self.log_density = 0.0

    @property
    def is_density(self) -> bool:
        """Whether a value was seen that has a density but no probability."""
        return bool(self._basis)

    @property
    def log_evidence(self) -> float:
        """The log of the density of the values times the probability of the range given them."""
        return self.log_density + float(log_mass(self._ranges, np.zeros(1), 1.0)[0])

    def _given(self, quantity: Normal) -> Normal:
        """Return a quantity given the values seen so far."""
        mean, left = quantity.mean, quantity.weights
        for _ in range(2):
            for axis, value in zip(self._basis, self._known, strict=True):
                share = product(axis, left)
                left = left - share * axis
                mean += share * value
        if length(left) <= DETERMINED * quantity.sd:
            left = np.zeros_like(left)
        return Normal(mean, left)

    def see(self, quantity: Normal, value: float) -> None:
        """Condition on the value of a quantity."""
        rest = self._given(quantity)
        spread = rest.sd
        if spread == 0:
            if abs(value - rest.mean) > CLOSE * max(abs(value), abs(quantity.mean), quantity.sd):
                raise ImpossibleObservation(
                    f"this observation is impossible: given the rest, the output is {rest.mean:g}, never {value:g}"
                )
            return
        place = (value - rest.mean) / spread
        self._basis.append(rest.weights / spread)
        self._known.append(place)
        self.log_density -= 0.5 * place**2 + math.log(spread) + 0.5 * math.log(2 * math.pi)

    def confine(self, quantity: Normal, ranges: Sequence[Range]) -> None:
        """Condition on ranges of a quantity, after all values; only one direction can be confined."""
        rest = self._given(quantity)
        spread = rest.sd
        if spread == 0:
            slack = CLOSE * max(abs(rest.mean), quantity.sd)
            if not any(low - slack <= rest.mean <= high + slack for low, high in ranges):
                raise ImpossibleObservation(
                    f"this observation is impossible: given the rest, the output is {rest.mean:g}"
                )
            return
        direction = rest.weights / spread
        scaled = [((low - rest.mean) / spread, (high - rest.mean) / spread) for low, high in ranges]
        if self._direction is None:
            self._direction = direction
        sign = math.copysign(1.0, product(direction, self._direction))
        if length(direction - sign * self._direction) > CLOSE:
            raise Unreadable("the observation gives ranges of two different quantities")
        if sign < 0:
            scaled = [(-high, -low) for low, high in scaled]
        pairs = [(max(a, c), min(b, d)) for a, b in self._ranges for c, d in scaled]
        self._ranges = tuple(sorted(pair for pair in pairs if pair[0] < pair[1]))
        if not self._ranges or self.log_evidence == -math.inf:
            raise ImpossibleObservation("this observation is impossible: the output never lies in that range")

    def curve(self, quantity: Normal) -> Curve:
        """Return the distribution of a quantity given all that was seen."""
        rest = self._given(quantity)
        spread = rest.sd
        if self._direction is None or spread == 0:
            return Curve.normal(rest.mean, spread)
        unit = rest.weights / spread
        correlation = product(unit, self._direction)
        independence = min(1.0, length(unit - correlation * self._direction))
        if abs(correlation) <= DETERMINED:
            correlation = 0.0
        return truncated(rest.mean, spread, correlation, independence, self._ranges)


GRID_REACH = 8.5  # deviations: 2e-17 lies beyond
# Sums over an even grid of step h are exact but for exp(-2 (pi sd / h)^2) for a normal density: 1e-15 here.
STEP = 0.75
LARGEST_STEP = 0.5
MOST_CELLS = 2_000_000
SAME_DIRECTION = 1e-14

FUNCTION_OF_SECRET = (
    "infinite: the output is a function of the secret alone, and both are continuous, so an output seen to all its "
    "digits gives the secret away"
)


def gaussian_joint(secret: Normal, output: Normal) -> Joint:
    """Return the joint of secret and output; `information` is minus the log of the root of 1 - correlation squared."""
    if secret.sd == 0 or output.sd == 0:
        return _on_a_line(secret, output, 1.0, Estimate.exactly(0.0, "bit", "exact"))
    left, right = secret.weights / secret.sd, output.weights / output.sd
    correlation = product(left, right)
    independence = min(1.0, length(left - correlation * right))
    if independence <= SAME_DIRECTION:
        infinite = Estimate.exactly(math.inf, "bit", FUNCTION_OF_SECRET)
        return _on_a_line(secret, output, math.copysign(1.0, correlation), infinite)
    information = max(0.0, -math.log2(independence))
    cells = _cells(correlation, independence)
    return _joint_of_cells(secret, output, cells, Estimate.exactly(information, "bit", "exact"))


def _cells(correlation: float, independence: float) -> tuple[Array, Array, Array]:
    """Return pairs of standardised values with their densities, on an even grid, where there is any probability."""
    step = min(LARGEST_STEP, STEP * independence)
    reach = math.ceil(GRID_REACH * independence / step) + 1
    # Beyond so many cells the grid stays wider than the density: sums over it are rough, the closed form is not.
    step = max(step, 2 * GRID_REACH * (2 * reach + 1) / MOST_CELLS)
    count = math.ceil(GRID_REACH / step)
    rows = np.arange(-count, count + 1)
    columns = np.rint(correlation * rows)[:, np.newaxis] + np.arange(-reach, reach + 1)
    u = step * columns
    t = np.broadcast_to(step * rows[:, np.newaxis], u.shape)
    inside = np.abs(columns) <= count
    independence = max(independence, step / STEP)
    logs = -0.5 * ((u - correlation * t) / independence) ** 2 - 0.5 * t**2
    return t[inside], u[inside], np.exp(logs[inside])


def _joint_of_cells(secret: Normal, output: Normal, cells: tuple[Array, Array, Array], information: Estimate) -> Joint:
    t, u, density = cells
    weights = density / density.sum()
    return Joint(_side(secret, t, weights), _side(output, u, weights), information)


def _side(quantity: Normal, places: Array, weights: Array) -> Belief:
    curve = Curve.normal(quantity.mean, quantity.sd)
    values = Batch.of_values(quantity.mean + quantity.sd * places)
    if not curve.parts:
        return Belief.listed(values, weights)
    return Belief(values, weights, True, spread=Kind.CONTINUOUS, curve=curve)


def _on_a_line(secret: Normal, output: Normal, direction: float, information: Estimate) -> Joint:
    places = np.arange(-GRID_REACH, GRID_REACH + LARGEST_STEP, LARGEST_STEP)
    cells = places, direction * places, np.exp(-0.5 * places**2)
    return _joint_of_cells(secret, output, cells, information)


MOST_WEIGHTS = 50_000_000
COST_OF_NODE = 1500.0  # of going back through one node, in elementary operations
COST_OF_NORMAL = 10.0  # of drawing a normal number


def prepare_gaussian(request: Request) -> Offer:
    """Find out whether secret, query and observation are affine in normal variables, and at what cost."""
    started = time.perf_counter()
    if request.question.size_nodes:
        raise Refused("its tables have random sizes", vague=True)
    if request.question.exclude_errors:
        raise Refused("inputs on which it fails are to be excluded", vague=True)
    case = request.case()
    if case.lifting.tier in ("python", "external"):
        raise Refused(f"the program is called sample by sample ({case.lifting.reason or case.lifting.tier})")
    try:
        forms = _forms(request, case)
    except (NotAffine, Unreadable) as problem:
        raise Refused(str(problem)) from None
    if forms.size * len(forms.everything) > MOST_WEIGHTS:
        raise Refused("too many values of too many normal variables were seen at once")
    try:
        conditioned, asked = _conditioned(forms)
    except Unreadable as problem:
        raise Refused(str(problem)) from None
    numbers = sum(form.numbers for form in forms.everything)
    cost = COST_OF_NODE * sum(form.nodes for form in forms.everything) + numbers * (1 + len(forms.seen))
    per_sample = max(form.numbers for form in forms.everything) + COST_OF_NORMAL * forms.size
    return Offer(cost, per_sample, lambda: _run(request, case, forms, conditioned, asked, started))


@dataclass(frozen=True)
class Forms:
    """The affine forms of what is asked for (secret, output, query) and of what was seen."""

    secret: Form
    output: Form | None
    query: Form | None
    seen: Sequence[Form]
    constraints: Sequence[Restriction]

    @property
    def asked(self) -> list[Form]:
        """The forms asked for, those that there are."""
        return [form for form in (self.secret, self.output, self.query) if form is not None]

    @property
    def everything(self) -> list[Form]:
        """All forms, those with noise last."""
        return [*self.asked, *self.seen]

    @property
    def size(self) -> int:
        """How many normal variables there are."""
        roots = {root: weight for form in self.everything for root, weight in form.weights.items()}
        return sum(math.prod(root.shape) for root in roots)


def _forms(request: Request, case: Case) -> Forms:
    likelihood = case.likelihood(request.observation)
    if likelihood.impossible is not None:
        raise ImpossibleObservation(f"this observation is impossible: {likelihood.impossible}")
    secret = _form("the secret", case.secret)
    query = None if request.extra is None else _form("the query", request.query(case))
    # Values first, then ranges: a range is integrated given all values.
    constraints = sorted(read(likelihood), key=lambda constraint: not isinstance(constraint, Value))
    seen = [_form("the output", constraint.node) for constraint in constraints]
    output = None
    if request.observation is None and _is_single(case.output):
        output = _form("the output", case.output)
    elif request.observation is None:
        for node in map(as_node, flatten(case.output)[1]):
            if not node.shape:
                _form("a part of the output", node)
    return Forms(secret, output, query, seen, constraints)


def _is_single(value: Any) -> bool:
    leaves = flatten(value)[1]
    return len(leaves) == 1 and as_node(leaves[0]).shape == ()


def _form(what: str, value: Any) -> Form:
    node = value if hasattr(value, "operation") else None
    if node is None:
        leaves = flatten(value)[1]
        if not _is_single(value):
            raise NotAffine(f"{what} has several parts, which have no single curve")
        node = as_node(leaves[0])
    try:
        return affine_form(node)
    except NotAffine as problem:
        raise NotAffine(f"{what} is not an affine function of normal variables: {problem}") from None


def _conditioned(forms: Forms) -> tuple[Conditioned, list[Normal]]:
    noise = [constraint.sd if isinstance(constraint, Value) else 0.0 for constraint in forms.constraints]
    normals = aligned(forms.everything, noise)
    conditioned = Conditioned()
    for quantity, constraint in zip(normals[len(forms.asked) :], forms.constraints, strict=True):
        if isinstance(constraint, Value):
            conditioned.see(quantity, constraint.value)
        else:
            conditioned.confine(quantity, constraint.ranges)
    return conditioned, normals[: len(forms.asked)]


def _run(
    request: Request, case: Case, forms: Forms, conditioned: Conditioned, asked: Sequence[Normal], started: float
) -> ExactAnswer:
    beliefs = iter([Belief.of_curve(conditioned.curve(quantity)) for quantity in asked])
    present = [form is not None for form in (forms.secret, forms.output, forms.query)]
    answers = tuple(next(beliefs) if there else None for there in present)
    evidence = Estimate.exactly(
        math.exp(conditioned.log_evidence), "density" if conditioned.is_density else "", "exact"
    )
    if case.facts:
        evidence = evidence.divided_by(_probability_of_facts(request, case))
    source = f"closed form of {forms.size:,} normal variables"
    return exact_answer("gaussian", source, answers, lambda: _joint(case, forms), evidence, (0, 0, 0), started)


def _probability_of_facts(request: Request, case: Case) -> Estimate:
    try:
        assumed, _ = _conditioned(_forms(replace(request, observation=None), case))
    except Unreadable:  # ranges of two quantities, which what was seen has made one
        assert request.question.probability_of_facts is not None
        return request.question.probability_of_facts
    return Estimate.exactly(math.exp(assumed.log_evidence))


def _joint(case: Case, forms: Forms) -> Joint:
    if case.facts:
        raise UnsuitableEngine("engine='exact' has no joint of normal quantities given a fact; engine='sample' has")
    try:
        output = forms.output or _form("the output", case.output)
    except NotAffine as problem:
        raise UnsuitableEngine(f"engine='exact' cannot give the joint: {problem}; engine='sample' can") from None
    return gaussian_joint(*aligned([forms.secret, output]))
