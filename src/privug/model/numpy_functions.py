"""NumPy functions on random variables: `np.mean(x)`, `np.where(c, a, b)`, ... build the graph.

A handler gets `as_node` and `wrap` (from the module that defines random variables) before the
function's own arguments. Axes are counted within one value; the sample axis is never seen.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import numpy as np

from privug.errors import ArgumentError, Untraceable
from privug.model.categories import unify
from privug.model.node import Array, ConstantValue, Context, Kind, Node, Operation, of_numpy
from privug.model.operations import (
    ArrayFunction,
    Elementwise,
    array_function,
    constant,
    elementwise,
    stack,
    whole_numbers,
)
from privug.model.traits import OPERATIONS, Scope

AsNode = Callable[[Any], Node]
Wrap = Callable[[Node], Any]


def _axes(node: Node, axis: Any) -> Any:
    """Turn an axis of one value into an axis of the batch; None means all axes of the value."""
    rank = len(node.shape)
    if axis is None:
        return tuple(range(1, rank + 1))
    if isinstance(axis, tuple):
        return tuple(_axes(node, one) for one in axis)
    return _axis_within(axis, rank) + 1


def _axis_within(axis: Any, rank: int) -> int:
    """Count an axis from the front; one that is not there is an error, as in NumPy, and never the sample axis."""
    if not -rank <= axis < rank:
        raise np.exceptions.AxisError(axis, rank)
    return int(axis % rank)


def _need_numbers(name: str, nodes: Sequence[Node]) -> None:
    if any(node.levels is not None for node in nodes):
        raise Untraceable(f"np.{name} needs numbers, not strings or other categories")


def _reduction(
    name: str, as_node: AsNode, wrap: Wrap, a: Any, axis: Any = None, *, keepdims: bool = False, **options: Any
) -> Any:
    node = as_node(a)
    _need_numbers(name, [node])
    if not node.shape:
        node = stack([node])
        axis, keepdims = None, False
    if {key: value for key, value in options.items() if value is not None and key not in ("ddof", "q", "method")}:
        raise Untraceable(f"np.{name} with {', '.join(options)}")
    chosen = {key: value for key, value in options.items() if value is not None}
    if keepdims:
        chosen["keepdims"] = True
    settings = (("axis", _axes(node, axis)), *sorted(chosen.items()))
    return wrap(array_function(ArrayFunction(name, OPERATIONS[name].function, settings), [node]))


def _quantile(name: str, as_node: AsNode, wrap: Wrap, a: Any, q: Any, axis: Any = None, **options: Any) -> Any:
    if not isinstance(q, int | float):
        raise Untraceable(f"np.{name} of several probabilities")
    return _reduction(name, as_node, wrap, a, axis, q=q, **options)


def _first_axis_flattened(name: str, as_node: AsNode, wrap: Wrap, a: Any, axis: Any = None) -> Any:
    """Functions that flatten when no axis is given."""
    node = as_node(a)
    _need_numbers(name, [node])
    if axis is None:
        node, axis = reshape(node, (-1,)), 0
    return wrap(array_function(ArrayFunction(name, getattr(np, name), (("axis", _axes(node, axis)),)), [node]))


def _sort(as_node: AsNode, wrap: Wrap, a: Any, axis: Any = -1, **options: Any) -> Any:
    return _first_axis_flattened("sort", as_node, wrap, a, axis)


def _elementwise(name: str, function: Any, as_node: AsNode, wrap: Wrap, *arguments: Any) -> Any:
    nodes = [as_node(argument) for argument in arguments]
    _need_numbers(name, nodes)
    return wrap(elementwise(Elementwise(name, function), nodes))


def _clip(as_node: AsNode, wrap: Wrap, a: Any, a_min: Any = None, a_max: Any = None, **options: Any) -> Any:
    low, high = options.pop("min", a_min), options.pop("max", a_max)
    if any(value is not None for value in options.values()):
        raise Untraceable(f"np.clip with {', '.join(options)}")
    result = a
    if low is not None:
        result = _elementwise("maximum", np.maximum, as_node, wrap, result, low)
    if high is not None:
        result = _elementwise("minimum", np.minimum, as_node, wrap, result, high)
    return result


def where(condition: Node, yes: Node, no: Node) -> Node:
    """Make the node of a choice, element by element; the alternatives may be categories."""
    _need_numbers("where", [condition])
    if _counts(condition, yes, no):
        # NumPy's `where` costs several times as much as this.
        product = elementwise(_TIMES, [condition, yes])
        product.numpy = of_numpy("where", [condition, yes, no])
        return product
    counted = as_addition(condition, yes, no)
    if counted is not None:
        return counted
    yes, no = unify([yes, no])
    node = elementwise(Elementwise("where", np.where), [condition, yes, no])
    node.levels = yes.levels
    return node


_TIMES = Elementwise("multiply", np.multiply)


def as_addition(condition: Node, yes: Node, no: Node) -> Node | None:
    """Write `c + t if p else c` as `c + (t if p else 0)`, and as `c + p` if t is one; None if it is no such choice.

    A loop that counts becomes a sum of terms by that.
    """
    operation, parents = yes.operation, yes.parents
    if not isinstance(operation, Elementwise) or operation.traits.weights != (1.0, 1.0) or no not in parents:
        return None
    if condition.dtype != np.bool_ or any(node.shape for node in (condition, yes, no)):
        return None
    term = parents[1] if parents[0] is no else parents[0]
    known = term.operation
    one = isinstance(known, ConstantValue) and known.array.dtype == np.int64 and bool(known.array[0] == 1)
    return elementwise(operation, [no, condition if one else where(condition, term, constant(0))])


def _counts(condition: Node, yes: Node, no: Node) -> bool:
    """Say whether a choice is between a whole number and zero: the number times the condition."""
    whole = all(node.dtype == np.int64 and node.levels is None for node in (yes, no))
    zero = isinstance(no.operation, ConstantValue) and not no.operation.array.any()
    return whole and zero and condition.dtype == np.bool_ and condition.shape == yes.shape == no.shape


def _where(as_node: AsNode, wrap: Wrap, condition: Any, *choices: Any) -> Any:
    if len(choices) != 2:
        raise Untraceable("np.where without alternatives")
    return wrap(where(as_node(condition), as_node(choices[0]), as_node(choices[1])))


def _round(as_node: AsNode, wrap: Wrap, a: Any, decimals: int = 0) -> Any:
    return _elementwise("round", partial(np.round, decimals=decimals), as_node, wrap, a)


def reshape(node: Node, shape: Any) -> Node:
    """Make the node of the same elements in another shape."""
    target = (shape,) if isinstance(shape, int) else tuple(shape)
    target = np.empty(node.shape, np.bool_).reshape(target).shape
    return Node(ArrayFunction("reshape", partial(_reshaped, target)), (node,), target, node.dtype, node.levels)


def _reshaped(shape: tuple[int, ...], array: Array) -> Array:
    return array.reshape((len(array), *shape)).copy()


def _reshape(as_node: AsNode, wrap: Wrap, a: Any, shape: Any) -> Any:
    return wrap(reshape(as_node(a), shape))


def _ravel(as_node: AsNode, wrap: Wrap, a: Any) -> Any:
    return wrap(reshape(as_node(a), (-1,)))


def _transpose(as_node: AsNode, wrap: Wrap, a: Any) -> Any:
    node = as_node(a)
    return wrap(array_function(ArrayFunction("transpose", _transposed), [node]))


def _transposed(array: Array) -> Array:
    return array.transpose((0, *range(array.ndim - 1, 0, -1))).copy()


def _join(name: str, new_axes: int, as_node: AsNode, wrap: Wrap, arrays: Any, axis: int = 0) -> Any:
    nodes = unify([as_node(a) for a in arrays])
    axis = _axis_within(axis, len(nodes[0].shape) + new_axes)
    operation = ArrayFunction(name, partial(_joined, getattr(np, name), axis))
    return wrap(array_function(operation, nodes))


def _joined(function: Any, axis: int, *arrays: Array) -> Array:
    samples = max(len(array) for array in arrays)
    full = [np.broadcast_to(array, (samples, *array.shape[1:])) for array in arrays]
    result: Array = function(full, axis=axis + 1)
    return result


def _diff(as_node: AsNode, wrap: Wrap, a: Any, n: int = 1, axis: int = -1) -> Any:
    node = as_node(a)
    _need_numbers("diff", [node])
    if n == 0:
        return wrap(node)
    return wrap(array_function(ArrayFunction("diff", np.diff, (("n", n), ("axis", _axes(node, axis)))), [node]))


def _batched_dot(a: Array, b: Array) -> Array:
    left = a[:, np.newaxis, :] if a.ndim == 2 else a
    right = b[:, :, np.newaxis] if b.ndim == 2 else b
    result: Array = np.matmul(left, right)
    if a.ndim == 2:
        result = result[:, 0]
    if b.ndim == 2:
        result = result[..., 0]
    return result


def dot(left: Node, right: Node) -> Node:
    """Make the node of a matrix product, or of a product with a single number."""
    _need_numbers("dot", [left, right])
    if max(len(left.shape), len(right.shape)) > 2:
        raise Untraceable("a dot product of arrays with more than two axes")
    if not left.shape or not right.shape:
        return elementwise(Elementwise("multiply", np.multiply), [left, right])
    if left.shape[-1] != right.shape[0]:
        raise ArgumentError(f"shapes {left.shape} and {right.shape} do not fit a dot product")
    return array_function(ArrayFunction("dot", _batched_dot), [left, right])


def _dot(as_node: AsNode, wrap: Wrap, a: Any, b: Any) -> Any:
    return wrap(dot(as_node(a), as_node(b)))


def _average(as_node: AsNode, wrap: Wrap, a: Any, axis: Any = None, weights: Any = None) -> Any:
    if weights is None:
        return _reduction("mean", as_node, wrap, a, axis)
    weights = wrap(_weights_like(as_node(a), as_node(weights), axis))
    scaled = _elementwise("multiply", np.multiply, as_node, wrap, a, weights)
    total = _reduction("sum", as_node, wrap, weights, axis if weights.shape == as_node(a).shape else None)
    summed = _reduction("sum", as_node, wrap, scaled, axis)
    if summed.shape != ():
        return _elementwise("true_divide", np.true_divide, as_node, wrap, summed, total)
    summed.node.numpy = total.node.numpy = False  # it raises as Python does if the weights sum to zero
    return wrap((summed / total).node)


def _weights_like(node: Node, weights: Node, axis: Any) -> Node:
    """Lay out one weight for each position along an axis so that they multiply the right elements."""
    if weights.shape == node.shape:
        return weights
    if not isinstance(axis, int) or weights.shape != (node.shape[_axis_within(axis, len(node.shape))],):
        raise Untraceable("np.average with weights of another shape")
    place = _axis_within(axis, len(node.shape))
    return reshape(weights, (-1,) + (1,) * (len(node.shape) - place - 1))


def _count_nonzero(as_node: AsNode, wrap: Wrap, a: Any, axis: Any = None) -> Any:
    if as_node(a).dtype != np.bool_:
        a = _elementwise("not_equal", np.not_equal, as_node, wrap, a, wrap(constant(0)))
    return _reduction("sum", as_node, wrap, a, axis)


def _edges(name: str, bins: Any) -> Array:
    edges: Array = np.asarray(bins)
    if edges.ndim != 1 or edges.dtype.kind not in "iuf" or len(edges) < 1 or (np.diff(edges) < 0).any():
        raise Untraceable(f"np.{name} without a list of ascending bounds")
    return edges


def _digitize(as_node: AsNode, wrap: Wrap, x: Any, bins: Any, right: bool = False) -> Any:
    name, node = "greater" if right else "greater_equal", as_node(x)
    _need_numbers("digitize", [node])
    passed = [elementwise(Elementwise(name, getattr(np, name)), [node, constant(e)]) for e in _edges("digitize", bins)]
    return wrap(reduce(_plus, (cast(one, np.dtype(np.int64)) for one in passed)))


def _plus(left: Node, right: Node) -> Node:
    return elementwise(Elementwise("add", np.add), [left, right])


def _histogram(as_node: AsNode, wrap: Wrap, a: Any, bins: Any = 10, **options: Any) -> Any:
    node, edges = as_node(a), _edges("histogram", bins)
    within = _within("histogram", node, edges, options)
    return wrap(stack([as_node(_reduction("sum", as_node, wrap, wrap(one))) for one in within])), edges


def _histogram2d(as_node: AsNode, wrap: Wrap, x: Any, y: Any, bins: Any = 10, **options: Any) -> Any:
    if not isinstance(bins, list | tuple) or len(bins) != 2 or any(np.ndim(one) != 1 for one in bins):
        raise Untraceable("np.histogram2d with anything but two lists of bounds")
    nodes, edges = [as_node(x), as_node(y)], [_edges("histogram2d", one) for one in bins]
    if nodes[0].shape != nodes[1].shape:
        raise Untraceable("np.histogram2d of arrays of different lengths")
    sides = [_within("histogram2d", node, bounds, options) for node, bounds in zip(nodes, edges, strict=True)]
    both = Elementwise("logical_and", np.logical_and)
    counts = [
        cast(as_node(_reduction("sum", as_node, wrap, wrap(elementwise(both, pair)))), np.dtype(float))
        for pair in itertools.product(*sides)
    ]
    return wrap(reshape(stack(counts), (len(sides[0]), len(sides[1])))), *edges


def _within(name: str, node: Node, edges: Array, options: dict[str, Any]) -> list[Node]:
    """Return for each band whether numbers lie in it; the upper bound belongs to the last one only."""
    _need_numbers(name, [node])
    if any(value is not None and value is not False for value in options.values()) or len(edges) < 2:
        raise Untraceable(f"np.{name} with anything but bounds")
    found = []
    for place, (low, high) in enumerate(itertools.pairwise(edges), 2):
        below = "less_equal" if place == len(edges) else "less"
        inside = [
            elementwise(Elementwise(one, getattr(np, one)), [node, constant(bound)])
            for one, bound in (("greater_equal", low), (below, high))
        ]
        found.append(elementwise(Elementwise("logical_and", np.logical_and), inside))
    return found


@dataclass(frozen=True, slots=True)
class Cast(Operation):
    """The same numbers in another type."""

    dtype: np.dtype[Any]

    def evaluate(self, arguments: Sequence[Array], context: Context) -> Array:
        return whole_numbers(arguments[0]) if self.dtype.kind == "i" else arguments[0].astype(self.dtype)

    def can_fail(self, parents: Sequence[Node]) -> bool:
        return self.dtype.kind == "i" and parents[0].dtype.kind == "f"

    def kind(self, parents: Sequence[Node]) -> Kind:
        return parents[0].kind


def cast(node: Node, dtype: np.dtype[Any]) -> Node:
    """Make the node of the same numbers in another type; floats are cut off towards zero."""
    return node if node.dtype == dtype else recast(node, dtype)


def recast(node: Node, dtype: np.dtype[Any]) -> Node:
    """Make a node of its own of the same numbers, in another type or the same."""
    result = Node(Cast(dtype), (node,), node.shape, dtype)
    if dtype.kind == "i":
        result.bound = node.bound
    return result


_FOLDS = [row for row in OPERATIONS.values() if row.scope is Scope.FOLD]

REDUCING_UFUNCS: dict[Callable[..., Any], Callable[..., Any]] = {
    OPERATIONS[row.folds].function: row.function for row in _FOLDS if row.folds is not None and not row.averages
}

HANDLERS: dict[Callable[..., Any], Callable[..., Any]] = {
    **{row.function: partial(_reduction, row.name) for row in _FOLDS},
    **{row.function: partial(_first_axis_flattened, row.name) for row in OPERATIONS.values() if row.flattens},
    np.amin: partial(_reduction, "min"),
    np.amax: partial(_reduction, "max"),
    np.average: _average,
    np.around: _round,
    np.clip: _clip,
    np.concatenate: partial(_join, "concatenate", 0),
    np.count_nonzero: _count_nonzero,
    np.diff: _diff,
    np.digitize: _digitize,
    np.dot: _dot,
    np.histogram: _histogram,
    np.histogram2d: _histogram2d,
    np.percentile: partial(_quantile, "percentile"),
    np.quantile: partial(_quantile, "quantile"),
    np.ravel: _ravel,
    np.reshape: _reshape,
    np.round: _round,
    np.sort: _sort,
    np.stack: partial(_join, "stack", 1),
    np.transpose: _transpose,
    np.where: _where,
}
