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
from privug.model.node import Array, Context, Kind, Node, Operation, ancestors, reached
from privug.model.numpy_functions import Cast
from privug.model.operations import ArrayFunction, Elementwise, Gather, Index, Lookup, SampleFailure, aligned
from privug.model.plan import Plan
from privug.model.plates import Fold, Lane
from privug.model.ragged import RaggedCell, RaggedFold
from privug.model.segments import Segments
from privug.model.traits.error_rules import UNIT, error_of_total
from privug.model.traits.traits import Role, Traits

UNTRACED = 2.0**-47  # what arithmetic that cannot be followed may have moved results, relative to the largest
SAMPLES = 256  # that show how large intermediate results are
MOST_NUMBERS = 1 << 21  # that are computed to see that
MOST_NODES = 20_000
SMALLEST = -1080  # the exponent that stands for zero


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
    """Return a bound of the errors of numbers that an unknown program computed: of the size of the largest.

    Larger terms may have cancelled inside, but to allow for these unseen would merge numbers that really differ.
    """
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

    def ends(node: Node) -> bool:
        return node.dtype.kind != "f" or node.levels is not None or _is_given(node) or node in known

    found = set(reached(targets, ends))
    return [node for node in ancestors(targets) if node in found]


def _error(node: Node, arguments: Sequence[Array], errors: Sequence[Array], result: Array) -> Array:
    match node.operation:
        case Elementwise(traits=traits):
            lined = aligned([*arguments, *errors, result])
            count = len(arguments)
            return traits.error(lined[:count], lined[count : 2 * count], lined[-1]).reshape(result.shape)
        case ArrayFunction(traits=traits, options=options) if traits.role is not Role.MOVE:
            return traits.array_error(arguments, errors, result, dict(options).get("axis", -1))
        case RaggedFold() as operation:
            return _of_ragged_fold(operation, arguments, errors, result)
        case RaggedCell():
            return node.operation.evaluate([errors[0], arguments[1]], Context(len(result), None))  # type: ignore[arg-type]
        case Fold() as operation:
            return _of_fold(operation, arguments, errors, result)
        case Cast() | Operation(traits=Traits(role=Role.MOVE)):
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


def _most(errors: Sequence[Array], like: Array) -> Array:
    found = np.zeros(like.shape)
    for error in aligned([like, *errors])[1:]:
        found = np.maximum(found, error)
    return found


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
    if operation.traits.totals:
        return error_of_total([terms], [off], result, 1)
    return off if operation.how == "map" else np.asarray(off.max(axis=1))


def _of_ragged_fold(operation: RaggedFold, arguments: Sequence[Array], errors: Sequence[Array], result: Array) -> Array:
    """Return the error of a fold over random numbers of rows, likewise."""
    segments = Segments(arguments[-1])
    known: dict[Node, Computed] = {}
    for node, values, error in zip((*operation.lanes, *operation.shared), arguments[:-1], errors[:-1], strict=True):
        both = values, np.broadcast_to(error, values.shape)
        known[node] = both if isinstance(node.operation, Lane) else (segments.spread(both[0]), segments.spread(both[1]))
    terms, off = errors_of([operation.term], known, segments.total)[operation.term]
    if len(terms) < segments.total:
        largest = float(off.max(initial=0.0)) + UNIT * float(np.abs(terms).max(initial=0.0))
        return np.full(result.shape, int(segments.sizes.max(initial=0)) * largest)
    if operation.keeps_rows:
        return off
    if not operation.traits.totals:
        return segments.reduced(lambda part: part.max(axis=1, initial=0.0), off)
    return segments.reduced(lambda part, error: error_of_total([part], [error], part.sum(axis=1), 1), terms, off)
