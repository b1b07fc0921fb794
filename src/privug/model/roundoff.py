"""Running error analysis: how far the rounding of floating-point arithmetic may have moved a quantity's values.

Each operation adds half a unit in the last place of its result, unless it happens to be exact, to the errors that its
arguments bring along (Higham, Accuracy and Stability of Numerical Algorithms, section 3.3). A few samples of the prior
show the sizes that the intermediate results have: terms that cancel leave errors of their own size, not of the
result's. Numbers that a person wrote as decimals are rounded as well once something is computed from them; what no
arithmetic is behind, such as an input as it is, a count or a rounded number, has no error.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from privug.errors import PrivugError
from privug.model.node import Array, Kind, Node, ancestors
from privug.model.numpy_functions import Cast
from privug.model.operations import ArrayFunction, Elementwise, Gather, Index, Lookup, SampleFailure, Stack, aligned
from privug.model.plan import Plan
from privug.model.plates import Fold, Lane

UNIT = 2.0**-53  # half a unit in the last place, relative to the number
UNTRACED = 2.0**-47  # what arithmetic that cannot be followed may have moved results, relative to the largest
SAMPLES = 256  # that show how large intermediate results are
MOST_NUMBERS = 1 << 21  # that are computed to see that
MOST_NODES = 20_000
SMALLEST = -1080  # the exponent that stands for zero

_EXACT = {"floor", "ceil", "rint", "trunc", "sign", "round", "floor_divide", "copysign"}
_PASSED_ON = {"negative", "positive", "absolute", "fabs"}
_CHOSEN = {"maximum", "minimum", "fmax", "fmin"}
_MOVED = {"reshape", "transpose", "concatenate", "stack", "flip", "roll"}
_PICKED = {"sort", "min", "max", "median", "quantile", "percentile"}


@dataclass(frozen=True)
class Roundoff:
    """Bounds of the error of computed numbers, by the size of the number: for each binary exponent the largest seen."""

    exponents: Array
    errors: Array

    @classmethod
    def of(cls, values: Array, errors: Array) -> "Roundoff":
        """Tabulate the errors of some values."""
        usable = np.isfinite(values) & np.isfinite(errors)
        exponents = _exponents(values[usable])
        distinct, places = np.unique(exponents, return_inverse=True)
        largest = np.zeros(len(distinct))
        np.maximum.at(largest, places.reshape(-1), errors[usable])
        return cls(distinct, largest)

    @property
    def is_exact(self) -> bool:
        """Whether nothing was rounded."""
        return not self.errors.any()

    def at(self, values: Array) -> Array:
        """Return a bound of the error of each value, that of the numbers of the nearest size that was seen."""
        if not len(self.errors):
            return np.zeros(len(values))
        exponents = _exponents(values)
        right = np.clip(np.searchsorted(self.exponents, exponents), 0, len(self.errors) - 1)
        left = np.maximum(right - 1, 0)
        nearer = np.abs(self.exponents[left] - exponents) < np.abs(self.exponents[right] - exponents)
        return np.asarray(self.errors[np.where(nearer, left, right)])

    def around(self, value: float, room: float) -> float:
        """Return how far from a value numbers may lie that are it but for so many times their errors, on both sides."""
        reach = 2 * room * np.append(self.errors, self.at(np.array([value], float)))
        low = np.append(np.ldexp(0.5, self.exponents), abs(value))
        high = np.append(np.ldexp(1.0, self.exponents), abs(value))
        near = np.maximum(low - abs(value), abs(value) - high) <= reach
        return float(reach[near].max())


def _exponents(values: Array) -> Array:
    return np.where(values == 0, SMALLEST, np.frexp(values)[1])


NOTHING = Roundoff(np.empty(0, np.intp), np.empty(0))


def untraced(values: Array) -> Array:
    """Return a bound of the errors of numbers that an unknown program computed: of the size of the largest."""
    finite = np.abs(values[np.isfinite(values)])
    return np.full(len(values), UNTRACED * float(finite.max(initial=0.0)))


def roundoffs(nodes: Sequence[Node]) -> list[Roundoff | None]:
    """Return the errors of some quantities; None where they are not known, because plain code is called for them."""
    wanted = [_whole(node) for node in nodes]
    missing = [node for node in dict.fromkeys(wanted) if node.roundoff is None]
    if missing:
        for node, found in zip(missing, _analysed(missing), strict=True):
            node.roundoff = (found,)
    return [None if node.roundoff is None else node.roundoff[0] for node in wanted]


def _whole(node: Node) -> Node:
    """Return the array that an element is taken from: one analysis serves all of its elements."""
    while isinstance(node.operation, Index):
        node = node.parents[0]
    return node


def _analysed(nodes: Sequence[Node]) -> list[Roundoff | None]:
    followed = [node for node in nodes if node.dtype.kind == "f" and node.levels is None and not _is_given(node)]
    found = dict(zip(followed, _followed(followed), strict=True)) if followed else {}
    return [found.get(node, None if node.dtype == object else NOTHING) for node in nodes]


def _followed(nodes: Sequence[Node]) -> list[Roundoff | None]:
    order = ancestors(nodes)
    if len(order) > MOST_NODES or any(node.operation.opaque or node.dtype == object for node in order):
        return [None] if len(nodes) == 1 else [_followed([node])[0] for node in nodes]
    samples = max(4, min(SAMPLES, MOST_NUMBERS // max(1, _numbers(order))))
    try:
        found = errors_of(nodes, {}, samples)
    except (PrivugError, SampleFailure, ArithmeticError, MemoryError):
        return [None] * len(nodes)
    return [Roundoff.of(*found[node]) for node in nodes]


def _numbers(order: Sequence[Node]) -> int:
    """Return how many numbers one sample takes, those of the terms of folds included."""
    folds = [node.operation for node in order if isinstance(node.operation, Fold)]
    inside = sum(fold.size * _numbers(ancestors([fold.term])) for fold in folds)
    return sum(math.prod(node.shape) for node in order) + inside


Computed = tuple[Array, Array]
"""The values of a quantity and bounds of their errors."""


def errors_of(targets: Sequence[Node], known: Mapping[Node, Computed], samples: int) -> dict[Node, Computed]:
    """Return the values of some quantities on samples, with bounds of their errors."""
    order = _behind(targets, known)
    rng, failed = np.random.Generator(np.random.SFC64(0)), np.zeros(samples, np.bool_)
    given = {node: values for node, (values, _) in known.items()}
    arrays = Plan(order, list(given)).run(samples, rng, given, failed=failed)
    values = dict(zip(order, arrays, strict=True))
    errors: dict[Node, Array] = {}
    with np.errstate(all="ignore"):
        for node in order:
            if node in known:
                errors[node] = np.broadcast_to(known[node][1], values[node].shape)
            elif node.dtype.kind != "f" or node.levels is not None or _is_given(node):
                errors[node] = np.broadcast_to(_error_of_given(node, values[node]), values[node].shape)
            else:
                arguments = [values[parent] for parent in node.parents]
                found = _error(node, arguments, [errors[parent] for parent in node.parents], values[node])
                errors[node] = np.broadcast_to(found, values[node].shape)
    return {node: (values[node][~failed], errors[node][~failed]) for node in targets}


def _is_given(node: Node) -> bool:
    return node.is_random or not node.parents


def _error_of_given(node: Node, values: Array) -> Array:
    """Return how far numbers that a person wrote are from the decimal ones that are meant, such as 0.1."""
    if node.dtype.kind != "f" or node.levels is not None or node.kind is not Kind.DISCRETE:
        return np.zeros(())
    scaled = values * 2.0**20
    return np.where(scaled == np.rint(scaled), 0.0, UNIT * np.abs(values))


def _behind(targets: Sequence[Node], known: Mapping[Node, Computed]) -> list[Node]:
    """Return what numbers are computed from, in order, as far as errors are passed on."""
    found: set[int] = set()
    frontier = list(targets)
    while frontier:
        node = frontier.pop()
        if id(node) in found:
            continue
        found.add(id(node))
        if node.dtype.kind == "f" and node.levels is None and not _is_given(node) and node not in known:
            frontier.extend(node.parents)
    return [node for node in ancestors(targets) if id(node) in found]


def _error(node: Node, arguments: Sequence[Array], errors: Sequence[Array], result: Array) -> Array:
    match node.operation:
        case Elementwise(name=name):
            lined = aligned([*arguments, *errors, result])
            count = len(arguments)
            return _elementwise(name, lined[:count], lined[count : 2 * count], lined[-1]).reshape(result.shape)
        case ArrayFunction(name=name) as operation:
            return _of_array(operation, name, arguments, errors, result)
        case Fold() as operation:
            return _of_fold(operation, arguments, errors, result)
        case Index() | Stack() | Cast():
            return node.operation.evaluate(errors, None)  # type: ignore[arg-type]  # these move numbers alone
        case Gather():
            return node.operation.evaluate([errors[0], arguments[1]], None)  # type: ignore[arg-type]
        case Lookup():
            return 2 * _error_of_given(node, result)
        case _:
            passed = [error for error, parent in zip(errors, node.parents, strict=True) if parent.dtype.kind == "f"]
            if passed and node.operation.selects:
                return _most(passed, result)
            return np.full(result.shape, UNTRACED * float(np.abs(result[np.isfinite(result)]).max(initial=0.0)))


def _elementwise(name: str, a: Sequence[Array], e: Sequence[Array], r: Array) -> Array:
    """Return what the errors of arguments become, and what the operation adds."""
    one = UNIT * np.abs(r)
    match name:
        case _ if name in _EXACT:
            return np.zeros(r.shape)
        case _ if name in _PASSED_ON:
            return e[0]
        case _ if name in _CHOSEN:
            return np.maximum(e[0], e[1])
        case "where":
            return np.asarray(np.where(a[0], e[1], e[2]))
        case "add" | "subtract":
            return e[0] + e[1] + np.where(_exact_sum(a[0], a[1] if name == "add" else -a[1].astype(float), r), 0.0, one)
        case "multiply":
            passed = np.abs(a[0]) * e[1] + np.abs(a[1]) * e[0]
            return np.asarray(passed + np.where(_exact_product(a[0], a[1], r), 0.0, one))
        case "divide" | "true_divide":
            passed = (e[0] + np.abs(r) * e[1]) / np.abs(a[1])
            return np.asarray(passed + np.where(_exact_product(r, a[1], a[0]), 0.0, one))
        case "sqrt":
            passed = np.where(e[0] < np.abs(a[0]), e[0] / np.maximum(r, np.sqrt(e[0])), np.sqrt(e[0]))
            return np.where(e[0] > 0, passed, 0.0) + np.where(_exact_product(r, r, a[0]), 0.0, one)
        case "square":
            return 2 * np.abs(a[0]) * e[0] + np.where(_exact_product(a[0], a[0], r), 0.0, one)
        case "exp" | "exp2" | "expm1":
            return (np.abs(r) + 1) * e[0] + 2 * one
        case "log" | "log2" | "log10" | "log1p":
            inner = np.abs(a[0] + 1) if name == "log1p" else np.abs(a[0])
            return 1.5 * e[0] / inner + 2 * one
        case "power":
            return np.asarray(_of_power(a, e, r) + 2 * one * (r != np.rint(r)))
        case _:
            sizes = np.max(np.broadcast_arrays(np.abs(r), *(np.abs(argument) for argument in a)), axis=0)
            return np.asarray(_most(e, r) + 4 * UNIT * sizes)


def _most(errors: Sequence[Array], like: Array) -> Array:
    found = np.zeros(like.shape)
    for error in aligned([like, *errors])[1:]:
        found = np.maximum(found, error)
    return found


def _exact_sum(a: Array, b: Array, total: Array) -> Array:
    """Say where a sum was not rounded (Knuth's two-sum)."""
    a, b = a.astype(float), b.astype(float)
    back = total - a
    return np.asarray((a - (total - back)) + (b - back) == 0)


def _exact_product(a: Array, b: Array, product: Array) -> Array:
    """Say where a product was not rounded (Dekker's product, of numbers split in halves as Veltkamp does)."""
    (high, low), (over, under) = _halves(a.astype(float)), _halves(b.astype(float))
    return np.asarray(low * under - (((product - high * over) - low * over) - high * under) == 0)


def _halves(a: Array) -> tuple[Array, Array]:
    scaled = 134217729.0 * a  # 2^27 + 1
    high = scaled - (scaled - a)
    return high, a - high


def _of_power(a: Sequence[Array], e: Sequence[Array], r: Array) -> Array:
    size = np.abs(a[0]).astype(float)
    slope = np.where(size > 0, np.abs(a[1]) * np.abs(r) / np.where(size > 0, size, 1.0), 0.0)
    rise = np.where((size > 0) & (e[1] > 0), np.abs(np.log(np.where(size > 0, size, 1.0))) * np.abs(r), 0.0)
    return np.asarray(slope * e[0] + rise * e[1])


def _of_array(
    operation: ArrayFunction, name: str, arguments: Sequence[Array], errors: Sequence[Array], result: Array
) -> Array:
    if name in _MOVED:
        return operation.evaluate(errors, None)  # type: ignore[arg-type]
    if name in ("sum", "mean", "cumsum"):
        return _of_sum(operation, arguments[0], errors[0], result)
    worst = np.max([error.reshape(len(error), -1).max(axis=1, initial=0.0) for error in errors], axis=0)
    sizes = [np.abs(argument).reshape(len(argument), -1) for argument in arguments]
    largest = np.max([size.max(axis=1, initial=0.0) for size in sizes], axis=0)
    every = (slice(None), *(np.newaxis,) * (result.ndim - 1))
    if name in _PICKED:
        rounded = 2 * UNIT * np.abs(result) if name not in ("sort", "min", "max") else np.zeros(result.shape)
        return np.asarray(worst[every] + rounded)
    numbers = sum(size.shape[1] for size in sizes)
    scale = np.maximum(np.maximum(largest, largest**2)[every], np.abs(result))  # products and squares of elements too
    return np.asarray(numbers * (1 + largest[every]) * worst[every] + 4 * UNIT * numbers * scale)


def _of_sum(operation: ArrayFunction, terms: Array, errors: Array, result: Array) -> Array:
    """Return the error of a sum: each partial sum is rounded, whatever the order, unless all of them are exact."""
    axes = _axes(dict(operation.options).get("axis", -1), terms.ndim)
    flat, along = _in_line(terms, axes), _in_line(errors, axes)
    if not flat.shape[-1]:
        return np.zeros(result.shape)
    partial = np.cumsum(flat, axis=-1, dtype=float)
    before = np.concatenate([np.zeros((*partial.shape[:-1], 1)), partial[..., :-1]], axis=-1)
    rounded = np.where(_exact_sum(before, flat, partial), 0.0, UNIT * np.cumsum(np.abs(flat), axis=-1))
    grown = np.cumsum(rounded + along, axis=-1)
    if operation.name == "cumsum":
        return np.moveaxis(grown, -1, axes[0])
    total = grown[..., -1].reshape(result.shape)
    if operation.name == "sum":
        return total
    count = np.full(result.shape, float(flat.shape[-1]))
    exact = _exact_product(result, count, partial[..., -1].reshape(result.shape))
    return np.asarray(total / count + np.where(exact, 0.0, UNIT * np.abs(result)))


def _axes(axis: int | Sequence[int] | None, rank: int) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(1, rank))
    return (axis,) if isinstance(axis, int) else tuple(axis)


def _in_line(array: Array, axes: tuple[int, ...]) -> Array:
    """Put what is summed along the last axis."""
    kept = array.ndim - len(axes)
    moved = np.moveaxis(array, axes, range(kept, array.ndim))
    return moved.reshape(*moved.shape[:kept], -1)


def _of_fold(operation: Fold, arguments: Sequence[Array], errors: Sequence[Array], result: Array) -> Array:
    """Return the error of a fold over rows, each of which is analysed as a sample of its own."""
    samples, size = len(result), operation.size
    known: dict[Node, Computed] = {}
    for node, values, error in zip((*operation.lanes, *operation.shared), arguments, errors, strict=True):
        if isinstance(node.operation, Lane):
            known[node] = values.reshape(-1, *values.shape[2:]), error.reshape(-1, *error.shape[2:])
        else:
            known[node] = np.repeat(values, size, axis=0), np.repeat(error, size, axis=0)
    terms, off = errors_of([operation.term], known, samples * size)[operation.term]
    if len(terms) < samples * size:  # some rows fail: what is left says how large terms are
        largest = float(off.max(initial=0.0)) + UNIT * float(np.abs(terms).max(initial=0.0))
        return np.full(result.shape, size * largest)
    terms, off = (array.reshape(samples, size, *array.shape[1:]) for array in (terms, off))
    if operation.how == "sum":
        return _of_sum(ArrayFunction("sum", np.sum, (("axis", 1),)), terms, off, result)
    return off if operation.how == "map" else np.asarray(off.max(axis=1))
