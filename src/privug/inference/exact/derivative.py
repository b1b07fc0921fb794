"""The derivative of a function of one number, by going through its graph."""

from collections.abc import Callable, Sequence

import numpy as np

from privug.inference.exact.pieces import Unfollowed, between
from privug.model.node import Array, Node
from privug.model.numpy_functions import Cast
from privug.model.operations import Elementwise
from privug.model.plan import Plan
from privug.program.traced.failures import Checked

_UNARY: dict[str, Callable[[Array], Array]] = {
    "negative": lambda u: -np.ones_like(u),
    "positive": np.ones_like,
    "exp": np.exp,
    "exp2": lambda u: np.exp2(u) * np.log(2),
    "expm1": np.exp,
    "log": np.reciprocal,
    "log2": lambda u: 1 / (u * np.log(2)),
    "log10": lambda u: 1 / (u * np.log(10)),
    "log1p": lambda u: 1 / (1 + u),
    "sqrt": lambda u: 0.5 / np.sqrt(u),
    "cbrt": lambda u: 1 / (3 * np.cbrt(u) ** 2),
    "arctan": lambda u: 1 / (1 + u**2),
    "tanh": lambda u: 1 / np.cosh(u) ** 2,
    "sinh": np.cosh,
    "arcsinh": lambda u: 1 / np.sqrt(1 + u**2),
    "absolute": np.sign,
    "fabs": np.sign,
    "square": lambda u: 2 * u,
    "cosh": np.sinh,
    "reciprocal": lambda u: -1 / u**2,
}
_FLAT = {"floor", "ceil", "rint", "trunc", "round", "sign", "floor_divide"}
_POWERS = {"power", "pow", "float_power"}


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
    if operation.name in _UNARY:
        return _UNARY[operation.name](u[0]) * du[0]
    return _of_several(operation.name, u, du)


def _of_several(name: str, u: Sequence[Array], du: Sequence[Array]) -> Array:
    if name in _FLAT:
        return np.zeros_like(du[0])
    match name:
        case "add":
            return du[0] + du[1]
        case "subtract":
            return du[0] - du[1]
        case "multiply":
            return np.asarray(du[0] * u[1] + u[0] * du[1])
        case "true_divide":
            return np.asarray((du[0] - u[0] / u[1] * du[1]) / u[1])
        case "remainder":
            return np.asarray(du[0] - np.floor_divide(u[0], u[1]) * du[1])
        case "maximum" | "fmax":
            return np.where(u[0] >= u[1], du[0], du[1])
        case "minimum" | "fmin":
            return np.where(u[0] <= u[1], du[0], du[1])
        case "where":
            return np.where(u[0] != 0, du[1], du[2])
        case _ if name in _POWERS:
            rising = np.where(du[1] != 0, np.log(np.where(du[1] != 0, u[0], 1.0)) * du[1], 0.0)
            return np.asarray(u[1] * np.power(u[0], u[1] - 1) * du[0] + np.power(u[0], u[1]) * rising)
    raise Unfollowed(f"the derivative of '{name}' is not known")
