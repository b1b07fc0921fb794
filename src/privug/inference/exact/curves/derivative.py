"""The derivative of a function of one number, by going through its graph."""

import numpy as np

from privug.inference.exact.curves.pieces import Unfollowed
from privug.model.graph import between
from privug.model.node import Array, Node
from privug.model.numpy_functions import Cast
from privug.model.operations import Elementwise
from privug.model.plan import Plan
from privug.program.traced.failures import Checked


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
