"""A function of one number cut into pieces on which it is monotone and continuous.

The graph of the function is gone through once, parents before children. What an operation does to a monotone argument
is known: it stays monotone, it has steps, or it turns at a known value. Where that happens is found by bisection, which
misses nothing between two points if the argument is monotone between them.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from privug.errors import PrivugError
from privug.inference.effort import spend
from privug.model.graph import between
from privug.model.node import Array, Node
from privug.model.numpy_functions import Cast
from privug.model.operations import Elementwise, SampleFailure
from privug.model.plan import Plan
from privug.model.traits.traits import Role, Traits
from privug.program.traced.failures import Checked

MOST_PIECES = 50_000
COST_OF_EVALUATION, COST_OF_NUMBER = 1.7e5, 170.0  # elementary operations
BRANCHES = 16  # into how many parts a range with a change in it is cut, in each round

Function = Callable[[Array], Array]


class Unfollowed(Exception):
    """A function could not be cut into monotone pieces; the message says why, as the end of a sentence.

    `node` is the operation that stands in the way, if it is one.
    """

    def __init__(self, reason: str, node: Node | None = None) -> None:
        super().__init__(reason)
        self.node = node


class Evaluation:
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
            with np.errstate(all="ignore"):
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
    shares = np.arange(BRANCHES + 1) / BRANCHES
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
        self._evaluations: dict[Node, Evaluation] = {}
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
            self._evaluations[node] = Evaluation(node, self._argument)
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


def _name(node: Node) -> Any:
    return getattr(node.operation, "name", type(node.operation).__name__)
