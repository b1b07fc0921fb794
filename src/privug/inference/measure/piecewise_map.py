"""A function of one number on its monotone pieces: preimages of what was seen, pushforwards of distributions.

The graph of the function is gone through once, parents before children. What an operation does to a monotone argument
is known: it stays monotone, it has steps, or it turns at a known value. Where that happens is found by bisection, which
misses nothing between two points if the argument is monotone between them.
"""

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np

from privug.errors import PrivugError
from privug.inference.graph.conditions import Range
from privug.inference.measure.curve import Curve, Density, Pushforward
from privug.inference.measure.density import Analytic, Function, Tabulated
from privug.inference.workload import spend
from privug.model.batch import grouped
from privug.model.graph import between, signature
from privug.model.node import Array, ConstantValue, Node
from privug.model.numpy_functions import Cast
from privug.model.operations import Elementwise, SampleFailure
from privug.model.plan import Plan
from privug.model.traits import Role, Traits
from privug.program.traced.conditions import Checked

MOST_PIECES = 50_000
COST_OF_EVALUATION, COST_OF_NUMBER = 1.7e5, 170.0  # elementary operations
FEWEST_BRANCHES, MOST_BRANCHES_AT_ONCE = 16, 256  # into how many parts a range with a change is cut in each round
POINTS_AT_ONCE = 4096


class Unfollowed(Exception):
    """A function could not be cut into monotone pieces; the message says why, as the end of a sentence.

    `node` is the operation that stands in the way, if it is one.
    """

    def __init__(self, reason: str, node: Node | None = None) -> None:
        super().__init__(reason)
        self.node = node


class ScalarFunction:
    """The values of a function of one number; what has no value is refused."""

    def __init__(self, node: Node, argument: Node) -> None:
        self._node = node
        self._argument = argument
        self._plan = Plan([node], [argument])

    def __call__(self, x: Array) -> Array:
        spend(COST_OF_EVALUATION + COST_OF_NUMBER * len(x))
        rng = np.random.Generator(np.random.SFC64(0))
        numbers = x if self._argument.dtype.kind == "f" else np.rint(x).astype(self._argument.dtype)
        try:
            values = self._plan.run(len(x), rng, {self._argument: numbers})[0]
        except (SampleFailure, PrivugError) as failure:
            raise Unfollowed("the program fails for some of the values that a sum or an extreme can take") from failure
        if self._node.dtype.kind == "f" and np.isnan(values).any():
            raise Unfollowed("the program gives NaN for some of the values that a sum or an extreme can take")
        return np.broadcast_to(values, (len(x), *values.shape[1:]))


def cut(node: Node, argument: Node, low: float, high: float) -> Array:
    """Return edges from `low` to `high` between which a function of one number is monotone and continuous."""
    cutting = _Cutting(argument, low, high)
    for current in between(node, argument):
        cutting.take(current)
    cutting.cut_steps(node)
    return cutting.edges


def inner_ends(edges: Array) -> tuple[Array, Array]:
    """Return numbers at the beginning and at the end of each piece, a little inside if there is room.

    A piece begins with its edge and ends before the next one; at an edge itself the function may not be defined.
    """
    low, high = edges[:-1], np.nextafter(edges[1:], -np.inf)
    room = high - low > 8 * np.spacing(np.maximum(np.abs(low), np.abs(high)))
    return np.where(room, np.nextafter(low, np.inf), low), np.where(room, np.nextafter(high, -np.inf), high)


def _around_zero(left: Array, right: Array) -> tuple[Array, Array]:
    """Split stretches just at zero, where numbers get so small that halving would take a thousand steps."""
    tiny = np.array([-np.nextafter(0.0, 1.0), 0.0, np.nextafter(0.0, 1.0)])
    pairs = []
    for low, high in zip(left.tolist(), right.tolist(), strict=True):
        ends = [low, *tiny, high] if low < tiny[0] and high > tiny[-1] else [low, high]
        pairs += list(pairwise(ends))
    starts, stops = np.array(pairs).reshape(-1, 2).T
    return starts, stops


def changes(function: Function, edges: Array) -> Array:
    """Return where a function that is monotone on each piece, and has steps, changes its value."""
    left, right = _around_zero(*inner_ends(edges))
    values = function(np.concatenate([left, right]))
    first, last = values[: len(left)], values[len(left) :]
    found = []
    while True:
        differ = first != last
        close = right - left <= 2 * np.spacing(np.maximum(np.abs(left), np.abs(right)))
        found.append(right[differ & close])
        open_ = differ & ~close
        if not open_.any():
            return np.concatenate(found)
        if open_.sum() > MOST_PIECES:
            raise Unfollowed(f"the output has more than {MOST_PIECES:,} steps")
        left, right = left[open_], right[open_]
        branches = min(max(POINTS_AT_ONCE // len(left), FEWEST_BRANCHES), MOST_BRANCHES_AT_ONCE)
        shares = np.arange(branches + 1) / branches
        points = left[:, np.newaxis] + (right - left)[:, np.newaxis] * shares
        points[:, -1] = right
        inner = function(points[:, 1:-1].reshape(-1)).reshape(len(left), -1)
        table = np.concatenate([first[open_][:, np.newaxis], inner, last[open_][:, np.newaxis]], axis=1)
        left, right = points[:, :-1].reshape(-1), points[:, 1:].reshape(-1)
        first, last = table[:, :-1].reshape(-1), table[:, 1:].reshape(-1)


class _Cutting:
    """The pieces found so far: every node taken is monotone and continuous on each of them."""

    def __init__(self, argument: Node, low: float, high: float) -> None:
        self.edges = np.array([low, high])
        self._argument = argument
        self._certain: set[Node] = set()
        self._flat: set[Node] = set()
        self._stepped: set[Node] = set()  # monotone with jumps: cut there unless they are only compared
        self._evaluations: dict[Node, ScalarFunction] = {}
        self._constants: dict[Node, Array] = {}

    def take(self, node: Node) -> None:
        """Cut further, until a node is monotone and continuous on each piece."""
        if node is self._argument:
            return
        if node.operation.traits.role is not Role.COMPARISON:
            for parent in node.parents:
                self.cut_steps(parent)
        varying = [p for p in node.parents if p not in self._certain]
        if not varying:
            if node.operation.random:
                raise Unfollowed("the output depends on more than one sum or extreme of random quantities")
            self._certain.add(node)
        elif all(parent in self._flat for parent in varying):
            self._flat.add(node)
        elif any(parent.shape for parent in varying):
            raise Unfollowed(f"it uses '{_name(node)}' of several quantities at once", node)
        else:
            self._take_varying(node, [p for p in varying if p not in self._flat])

    def _take_varying(self, node: Node, moving: Sequence[Node]) -> None:
        operation = node.operation
        if isinstance(operation, Checked):
            if node.parents[0] in self._flat:
                self._flat.add(node)
        elif isinstance(operation, Cast):
            if operation.dtype.kind != "f":
                self._stepped.add(node)
        elif not isinstance(operation, Elementwise):
            raise Unfollowed(f"it uses '{_name(node)}' of a continuous quantity", node)
        else:
            self._take_operator(node, operation.traits, moving)

    def _take_operator(self, node: Node, traits: Traits, moving: Sequence[Node]) -> None:
        left, right = node.parents[0], node.parents[-1]
        if traits.role is Role.COMPARISON or traits.extreme:
            self._cut_where_passed(node, left, right, traits)
        elif traits.role is Role.CHOICE:
            if left in moving:
                self._cut_where(lambda x: self._at(left, x) != 0)
        elif traits.weights is not None and len(moving) == 2 and left is not right:
            self._same_direction(node, left, right, traits.weights[1] < 0)
        else:
            self._take_monotone(node, traits, moving)

    def _take_monotone(self, node: Node, traits: Traits, moving: Sequence[Node]) -> None:
        """Cut where an operation turns or jumps that is monotone in the argument that changes otherwise."""
        if traits.factor == 1 and len(moving) == 2 and moving[0] is moving[1]:  # a square
            self._cut_where(lambda x: self._at(moving[0], x) >= 0)
            return
        position = node.parents.index(moving[0])
        turns = traits.turns[position] if traits.turns else None
        if turns is None:
            raise Unfollowed(f"it uses '{traits.name}' of a continuous quantity", node)
        self._one(node, moving)
        if turns:
            self._cut_where(lambda x: np.searchsorted(turns, self._at(moving[0], x), side="right"))
        jumps = traits.jumps
        if jumps is not None:
            self._cut_where(lambda x: jumps(*(self._at(parent, x) for parent in node.parents)))
        if traits.steps:
            self._stepped.add(node)
        if traits.is_partial:
            self._at(node, np.concatenate(inner_ends(self.edges)))

    def _one(self, node: Node, moving: Sequence[Node]) -> None:
        if len(moving) > 1:
            raise Unfollowed(f"it uses '{_name(node)}' of two quantities that change together", node)

    def _at(self, node: Node, x: Array) -> Array:
        if node is self._argument and node.dtype.kind == "f":
            return x
        if node in self._constants:
            return np.broadcast_to(self._constants[node], (len(x), *node.shape))
        if node not in self._evaluations:
            self._evaluations[node] = ScalarFunction(node, self._argument)
        values = self._evaluations[node](x)
        if node in self._certain and len(x):
            self._constants[node] = values[0]
        return values

    def cut_steps(self, node: Node) -> None:
        """Cut at the steps of a node, if it has some that it was not cut at."""
        if node in self._stepped:
            self._cut_where(lambda x: self._at(node, x))
            self._stepped.remove(node)
            self._flat.add(node)

    def _cut_where(self, function: Function) -> None:
        self.edges = np.union1d(self.edges, changes(function, self.edges))

    def _cut_where_passed(self, node: Node, left: Node, right: Node, traits: Traits) -> None:
        """Cut where one quantity passes another, which must not go the same way."""
        still = self._certain | self._flat
        if left not in still and right not in still and left is not right:
            self._same_direction(node, left, right, opposite=True)
        equal, signs = 0 in traits.signs, traits.signs
        beyond = half_line(node, self._argument)
        if beyond is not None:
            place = beyond[0] if math.isfinite(beyond[0]) else math.nextafter(beyond[1], math.inf)
            self.edges = np.union1d(self.edges, [place] if self.edges[0] < place < self.edges[-1] else [])
        else:
            if not signs or (1 in signs) is not equal:
                self._cut_where(lambda x: self._at(left, x) > self._at(right, x))
            if not signs or (-1 in signs) is not equal:
                self._cut_where(lambda x: self._at(left, x) >= self._at(right, x))
        self._flat |= {node} if signs else set()

    def _same_direction(self, node: Node, left: Node, right: Node, opposite: bool) -> None:
        low, high = inner_ends(self.edges)
        one = np.sign(self._at(left, high) - self._at(left, low))
        other = np.sign(self._at(right, high) - self._at(right, low))
        if np.any(one * other == (1 if opposite else -1)):
            raise Unfollowed("it puts two quantities together that rise and fall against each other", node)


def half_line(node: Node, argument: Node) -> tuple[float, float] | None:
    """Return the numbers that are less, or greater, than a constant, if that is what a node says of its argument."""
    signs = node.operation.traits.signs if isinstance(node.operation, Elementwise) else ()
    if len(set(signs) - {0}) != 1 or argument.dtype != np.float64 or argument not in node.parents:
        return None
    is_left = node.parents[0] is argument
    value = _number(node.parents[1 if is_left else 0])
    if value is None:
        return None
    rises = (1 in signs) is is_left
    end = value if 0 in signs else math.nextafter(value, math.inf if rises else -math.inf)
    return (end, math.inf) if rises else (-math.inf, end)


def _number(node: Node) -> float | None:
    """Return the number that a node is a constant of, if it is one."""
    if not isinstance(node.operation, ConstantValue) or node.levels is not None:
        return None
    array = node.operation.array
    value = float(array.item()) if array.size == 1 and array.dtype.kind in "bif" else math.nan
    return None if math.isnan(value) else value


def _name(node: Node) -> Any:
    return getattr(node.operation, "name", type(node.operation).__name__)


class Derivative:
    """The derivative of a node with respect to another one, of which it is a function."""

    def __init__(self, node: Node, argument: Node) -> None:
        self._node = node
        self._argument = argument
        self._order = [other for other in between(node, argument) if not other.shape]
        self._plan = Plan(self._order, [argument])

    def __call__(self, x: Array) -> Array:
        """Return the derivative at some values of the argument."""
        rng = np.random.Generator(np.random.SFC64(0))
        with np.errstate(all="ignore"):
            values = self._plan.run(len(x), rng, {self._argument: x})
            known = {other: np.broadcast_to(array, len(x)) for other, array in zip(self._order, values, strict=True)}
            slopes: dict[Node, Array] = {self._argument: np.ones(len(x))}
            for other in self._order:
                moves = other not in slopes and any(parent in slopes for parent in other.parents)
                if moves and other.dtype.kind == "f":
                    slopes[other] = _slope(other, known, slopes)
        return slopes.get(self._node, np.zeros(len(x)))


def _slope(node: Node, known: dict[Node, Array], slopes: dict[Node, Array]) -> Array:
    operation, still = node.operation, np.zeros_like(known[node])
    u = [np.asarray(known[parent], float) for parent in node.parents if parent in known]
    du = [slopes.get(parent, still) for parent in node.parents]
    if isinstance(operation, Checked | Cast):
        return du[0]
    if not isinstance(operation, Elementwise):
        if any(d.any() for d in du):
            raise Unfollowed(f"the derivative of '{type(operation).__name__}' is not known")
        return still
    slope = operation.traits.slope(u, du)
    if slope is None:
        raise Unfollowed(f"the derivative of '{operation.name}' is not known")
    return slope


MOST_STEPS = 2200  # twice what halves any range of doubles to its last bit
NEARER = 2.0 ** -np.arange(0, 1072, 4)


class Crossing:
    """The inverse of a function that is monotone between `low` and `high`."""

    def __init__(self, function: Callable[[Array], Array], low: float, high: float) -> None:
        steps = (high / 2 - low / 2) * NEARER  # a function may be steep at its ends, and around zero
        points = np.concatenate([[low, high], low + steps, high - steps, steps, -steps])
        points = np.unique(points[(points >= low) & (points <= high)])
        values = np.asarray(function(points), float)
        rising = values[-1] >= values[0]
        self._function = function
        self._points = points if rising else points[::-1]
        self._values = np.maximum.accumulate(values if rising else values[::-1])

    def __call__(self, y: Array) -> Array:
        """Return where the function takes the values y, or the nearest end.

        Chandrupatla's method: inverse quadratic interpolation where that is safe, halving elsewhere.
        """
        after = np.minimum(np.maximum(np.searchsorted(self._values, y), 1), len(self._points) - 1)
        before = np.maximum(after - 1, 0)
        a, b = self._points[after], self._points[before]
        fa, fb = _apart(self._values[after], y), _apart(self._values[before], y)
        found = np.where(fa <= 0, a, b)
        active = np.flatnonzero(np.sign(fa) * np.sign(fb) < 0)
        a, b, fa, fb = (array[active] for array in (a, b, fa, fb))
        share = np.full(len(active), 0.5)
        for _ in range(MOST_STEPS if len(active) else 0):
            x = a * (1 - share) + b * share
            f = _apart(np.asarray(self._function(x), float), y[active])
            same = np.sign(f) == np.sign(fa)
            c, fc = np.where(same, a, b), np.where(same, fa, fb)
            b, fb = np.where(same, b, a), np.where(same, fb, fa)
            a, fa = x, f
            best = np.where(np.abs(fa) < np.abs(fb), a, b)
            found[active] = best
            closest = np.spacing(np.abs(best))
            left = (np.minimum(np.abs(fa), np.abs(fb)) > 0) & (np.abs(b - a) > 2 * closest)
            if not left.any():
                break
            active = active[left]
            a, b, c, fa, fb, fc, closest = (array[left] for array in (a, b, c, fa, fb, fc, closest))
            share = _share(a, b, c, fa, fb, fc, closest / np.abs(b - a))
        return found


def _apart(values: Array, y: Array) -> Array:
    with np.errstate(invalid="ignore"):
        return np.where(values == y, 0.0, values - y)  # infinite ones may be equal, too


def _share(a: Array, b: Array, c: Array, fa: Array, fb: Array, fc: Array, least: Array) -> Array:
    """Return how far on the way from a to b to look next, given the place c that was left before."""
    with np.errstate(all="ignore"):
        xi, phi = (a - b) / (c - b), (fa - fb) / (fc - fb)
        safe = (phi**2 < xi) & ((1 - phi) ** 2 < 1 - xi)
        curved = fa / (fb - fa) * fc / (fb - fc) + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
    return np.clip(np.where(safe & np.isfinite(curved), curved, 0.5), least, 1 - least)


TAIL = 1e-15  # the probability of tails that functions need not be followed into
WIDE = 10.0  # how many times as wide as the rest far tails may be to be followed
MOST_BRANCHES = 64  # of a function with a density: each is a part of its own
LOOKS = (np.arange(33) + 0.5) / 33  # where on a piece to look whether it is a straight line
STRAIGHT = 1e-15  # how far, relative to their size, the values of a straight line are off for rounding
SAME = 1e-13  # outputs that differ by less, relative to their size, are equal but for rounding


@dataclass(frozen=True, eq=False)
class PiecewiseMap:
    """A function of a number that lies between the outermost `edges`: monotone and continuous between them."""

    node: Node
    argument: Node
    edges: Array

    @classmethod
    def of(cls, node: Node, argument: Node, low: float, high: float) -> "PiecewiseMap":
        """Cut a function into pieces, or raise Unfollowed."""
        image = cls(node, argument, cut(node, argument, low, high))
        image.steps, image.middles  # noqa: B018  # a function without a value shows here
        return image

    @cached_property
    def values(self) -> ScalarFunction:
        """The function's values, categories as codes."""
        return ScalarFunction(self.node, self.argument)

    @cached_property
    def _inner(self) -> tuple[Array, Array]:
        return inner_ends(self.edges)

    @cached_property
    def _ends(self) -> tuple[Array, Array]:
        low, high = self._inner
        return self.values(low), self.values(high)

    @cached_property
    def steps(self) -> Array:
        """Which pieces have one value only."""
        return np.asarray(self._ends[0] == self._ends[1])

    @cached_property
    def middles(self) -> Array:
        """The value on each piece, which is its only one if it is a step."""
        low, high = self._inner
        return self.values(low / 2 + high / 2)

    @cached_property
    def is_discrete(self) -> bool:
        """Whether the function takes a value of its own on each piece."""
        return bool(self.steps.all())

    def inverse(self, piece: int, y: Array) -> Array:
        """Return the numbers within one piece at which the function takes some values, or its nearest end."""
        if piece not in self._inverses:
            self._inverses[piece] = Crossing(self.values, *self.piece_ends(piece))
        return self._inverses[piece](y)

    @cached_property
    def _inverses(self) -> dict[int, Crossing]:
        return {}

    def piece_ends(self, piece: int) -> tuple[float, float]:
        """Return numbers at the beginning and at the end of a piece."""
        low, high = self._inner
        return float(low[piece]), float(high[piece])

    def _inside(self, piece: int, x: Array) -> Array:
        low, high = self._inner
        return np.clip(x, low[piece], high[piece])

    def _on(self, piece: int, x: Array) -> Array:
        return self.values(self._inside(piece, x))

    def _slope_on(self, piece: int, x: Array) -> Array:
        return self.slope(self._inside(piece, x))

    @cached_property
    def slope(self) -> Derivative:
        """The derivative."""
        return Derivative(self.node, self.argument)

    def line(self, piece: int) -> tuple[float, float] | None:
        """Return slope and constant of a piece on which the function is a straight line, or nothing."""
        low, high = (end[piece] for end in self._inner)
        x = low + (high - low) * LOOKS
        try:
            slopes = self.slope(x)
        except Unfollowed:
            return None
        slope, values = float(slopes[0]), np.asarray(self.values(x), float)
        if not np.isfinite(slope) or slope == 0 or not np.isfinite(values).all() or np.any(slopes != slope):
            return None
        constant = float(values[0] - slope * x[0])
        size = np.abs(slope * x).max() + np.abs(values).max()
        return (slope, constant) if np.abs(values - slope * x - constant).max() <= STRAIGHT * size else None

    def where(self, chosen: Array) -> tuple[Range, ...]:
        """Return the ranges made up of some pieces, those next to each other joined."""
        starts = np.flatnonzero(chosen & ~np.append(False, chosen[:-1]))
        stops = np.flatnonzero(chosen & ~np.append(chosen[1:], False))
        low, high = self.bounds
        return tuple((float(low[a]), float(high[b])) for a, b in zip(starts, stops, strict=True))

    def branches(self, value: float) -> list[tuple[float, float]]:
        """Return the numbers at which the function takes a value, and how its density there follows from theirs."""
        low, high = np.sort(np.stack([np.asarray(end, float) for end in self._ends]), axis=0)
        found = []
        for piece in np.flatnonzero((low <= value) & (value <= high) & ~self.steps):
            x = self.inverse(int(piece), np.array([value]))
            found.append((float(x[0]), 1 / abs(float(self.slope(x)[0]))))
        return found

    def atom(self, value: float) -> Array:
        """Return which pieces have just this value, but for rounding."""
        scale = max(abs(value), float(np.abs(self.middles).max(initial=0.0)))
        return self.steps & (np.abs(self.middles - value) <= SAME * scale)

    @cached_property
    def bounds(self) -> tuple[Array, Array]:
        """The first and the last number of each piece; the outermost pieces are endless."""
        low, high = self.edges[:-1].copy(), np.nextafter(self.edges[1:], -np.inf)
        low[0], high[-1] = -np.inf, np.inf
        return low, high

    def _atoms_inside(self, curve: Curve) -> Array:
        low, high = self.bounds
        below = np.concatenate([[0.0], np.cumsum(curve.masses)])
        until = below[np.searchsorted(curve.atoms, high, side="right")]
        return np.asarray(until - below[np.searchsorted(curve.atoms, low)])

    def curve(self, curve: Curve) -> Curve:
        """Return the distribution of a function with numbers as values, some of which may have a density."""
        moving = np.flatnonzero(~self.steps)
        if len(moving) > MOST_BRANCHES:
            raise Unfollowed(f"the output has a density that jumps at more than {MOST_BRANCHES} places")
        parts: list[tuple[float, Density]] = []
        for weight, part in curve.parts:
            assert not isinstance(part, Pushforward)
            for piece in moving:
                low, high = self.edges[piece], self.edges[piece + 1]
                inner = part.restricted(float(low), float(high))
                share = weight * float(part.mass(np.array(low), np.array(high)))
                if inner is not None and share > 0:
                    parts.append((share, self._mapped(int(piece), inner)))
        flat = np.where(self.steps, curve.mass(*self.bounds) - self._atoms_inside(curve), 0.0)
        atoms = np.concatenate([self.middles, self.values(curve.atoms)]).astype(float)
        masses = np.concatenate([flat, curve.masses])
        values, found = grouped(atoms[masses > 0], masses[masses > 0])
        total = sum(share for share, _ in parts) + masses.sum()
        shares = tuple((share / total, part) for share, part in parts)
        return Curve(shares, values, found / total, curve.error + abs(1 - float(total)))

    def _mapped(self, piece: int, density: Analytic | Tabulated) -> Density:
        """Return what becomes of a density that lies within one piece."""
        line = self.line(piece)
        if line is not None:
            return density.affine(*line)
        rising = bool(self._ends[1][piece] > self._ends[0][piece])
        on, back, slope = (partial(function, piece) for function in (self._on, self.inverse, self._slope_on))
        return Pushforward(density, on, back, slope, rising)


class PiecewiseMaps:
    """Functions of numbers of a known distribution; those that are the same are followed once."""

    def __init__(self, curve: Curve) -> None:
        self._curve = curve
        self._known: dict[Hashable, PiecewiseMap | ScalarFunction] = {}

    def of(self, node: Node, argument: Node) -> PiecewiseMap | ScalarFunction:
        """Return a function of a number, or raise Unfollowed."""
        key = signature(node, argument)
        if key is None or key not in self._known:
            made = self._made(node, argument)
            if key is None:
                return made
            self._known[key] = made
        return self._known[key]

    def _made(self, node: Node, argument: Node) -> PiecewiseMap | ScalarFunction:
        if not self._curve.parts:
            return ScalarFunction(node, argument)
        low, high = effective_ends(self._curve)
        slack = (1e-9 * (high - low) or 1.0) if self._curve.atoms.size else 0.0
        near = low - slack, high + slack
        far = (min(near[0], float(self._curve.edges[0])), max(near[1], float(self._curve.edges[-1])))
        if far[1] - far[0] <= WIDE * (near[1] - near[0]):
            try:
                return PiecewiseMap.of(node, argument, *far)
            except Unfollowed:
                pass  # the far tails may hold values for which the program fails, or too many steps
        return PiecewiseMap.of(node, argument, *near)


def effective_ends(curve: Curve) -> tuple[float, float]:
    """Return between what numbers a quantity lies, but for negligible tails."""
    low, high = curve.support
    if not (math.isfinite(low) and math.isfinite(high)):
        below, above = curve.quantiles(np.array([TAIL, 1 - TAIL]))
        low, high = max(low, float(below)), min(high, float(above))
    return float(low), float(high)
