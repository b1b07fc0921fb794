"""Values that differ only by the rounding of arithmetic are one value: a running error analysis says which.

Each operation adds half a unit in the last place of its result, unless it happens to be exact, to the errors that its
arguments bring along (Higham, Accuracy and Stability of Numerical Algorithms, section 3.3). A few samples of the prior
show the sizes that the intermediate results have: terms that cancel leave errors of their own size, not of the
result's. Numbers that a person wrote as decimals are rounded as well once something is computed from them; what no
arithmetic is behind, such as an input as it is, a count or a rounded number, has no error.

Distinct numbers in ascending order are linked where the error of both spans the gap between them. A group of linked
numbers is one value only if it is no wider than that either: in a chain of numbers each next to the last nothing tells
rounding from real differences, and they stay apart. So do numbers of few digits if nothing is known of the arithmetic
behind them. The value is the number that is shortest to write.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from privug import settings
from privug.errors import PrivugError
from privug.model.batch import Batch, Column, DeferredBatch
from privug.model.node import Array, Context, Kind, Node, Operation, ancestors, reached
from privug.model.numpy_functions import Cast
from privug.model.operations import ArrayFunction, Elementwise, Gather, Index, Lookup, SampleFailure, aligned
from privug.model.plan import Plan
from privug.model.plates import Fold, RaggedCell
from privug.model.structure import flatten, random_leaves
from privug.model.traits import UNIT, Role, Traits, error_of_total

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
    if len(order) > MOST_NODES or any(_is_called(node) for node in order):
        return [None] if len(nodes) == 1 else [_followed([node])[0] for node in nodes]
    samples = max(4, min(SAMPLES, MOST_NUMBERS // max(1, _numbers(order))))
    try:
        found = errors_of(nodes, {}, samples)
    except (PrivugError, SampleFailure, ArithmeticError, MemoryError):
        return [None] * len(nodes)
    return [Roundoff.of(*found[node]) for node in nodes]


def _is_called(node: Node) -> bool:
    """Say whether plain code computes a quantity."""
    operation = node.operation
    return operation.opaque or node.dtype == object or (isinstance(operation, Lookup) and operation.called)


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
    rows = operation.rows(arguments, len(result))
    off_by = [np.broadcast_to(error, array.shape) for array, error in zip(arguments, errors, strict=True)]
    values, apart = operation.of_rows(rows, arguments), operation.of_rows(rows, off_by)
    known = {node: (array, apart[node]) for node, array in values.items()}
    terms, off = errors_of([operation.term], known, rows.total)[operation.term]
    if len(terms) < rows.total:  # some rows fail: what is left says how large terms are
        largest = float(off.max(initial=0.0)) + UNIT * float(np.abs(terms).max(initial=0.0))
        return np.full(result.shape, rows.largest * largest)
    if operation.by_rows:
        return off
    if operation.keeps_rows:
        return off.reshape(result.shape)
    if operation.traits.totals:
        return rows.reduced(lambda part, error: error_of_total([part], [error], part.sum(axis=1), 1), terms, off)
    return rows.reduced(lambda part: part.max(axis=1, initial=0.0), off)


ROOM = 2.0  # how many times the error that was found a value may have: other orders of a sum round otherwise
SHORT = 10  # digits that a number has at most if it is not what rounding left
WRITTEN = 4 * 2.0**-52  # how far, relative to it, a number that a person wrote down may be from the one that is meant


class MergedBatch(NamedTuple):
    """A batch whose values differ by more than rounding, and how many numbers were how many before."""

    batch: Batch
    before: int = 0
    after: int = 0


def keeps_bits() -> bool:
    """Say whether values that differ only by rounding are to be kept apart."""
    return settings.current().rounding == "bits"


def merged(batch: Batch, nodes: Sequence[Node] | None = None, *, sampled: bool = True) -> MergedBatch:
    """Merge the values of a quantity that differ only by rounding; `nodes` are those that its columns come from.

    Of samples that may come from a density, numbers that all were drawn just once are kept apart: they lie next to each
    other by chance.
    """
    if keeps_bits() or (isinstance(batch, DeferredBatch) and nodes is not None and not any(map(_has_fractions, nodes))):
        return MergedBatch(batch)
    known = nodes if nodes is not None and len(nodes) == len(batch.columns) else [None] * len(batch.columns)
    chosen = [place for place, node in enumerate(known) if _may_be_rounded(batch.columns[place], node)]
    if not chosen:
        return MergedBatch(batch)
    traced = [node for place in chosen if (node := known[place]) is not None]
    found = dict(zip(traced, roundoffs(traced), strict=True))
    columns, before, after = list(batch.columns), 0, 0
    for place in chosen:
        node = known[place]
        roundoff = None if node is None else found[node]
        ties = sampled and (node is None or node.kind is not Kind.DISCRETE)
        one = _merged_column(columns[place], roundoff, ties)
        if one is not None:
            columns[place], many, few = one
            before, after = before + many, after + few
    if not before:
        return MergedBatch(batch)
    return MergedBatch(Batch(batch.structure, tuple(columns), len(batch)), before, after)


def _has_fractions(node: Node) -> bool:
    return node.levels is None and node.dtype.kind not in "biu"


def _may_be_rounded(column: Column, node: Node | None) -> bool:
    if node is not None and (node.kind is Kind.CONTINUOUS or (node.levels is not None)):
        return False
    return column.array.dtype.kind == "f" or column.array.dtype == object or column.levels is not None


def _merged_column(column: Column, roundoff: Roundoff | None, ties: bool) -> tuple[Column, int, int] | None:
    """Return a column with its values merged, and how many distinct numbers there were and are; None if they are."""
    if column.levels is None and column.array.dtype.kind == "f":
        return _merged_numbers(column.array, roundoff, ties)
    return _merged_values(column)


def _merged_numbers(array: Array, roundoff: Roundoff | None, ties: bool) -> tuple[Column, int, int] | None:
    if roundoff is not None and roundoff.is_exact:
        return None
    flat = array.reshape(len(array), -1)
    result: Array | None = None
    before = after = 0
    for place, part in enumerate(flat.T):
        codes, numbers, counts = _ranked(part, ties)
        table = representatives(numbers, roundoff, counts)
        if table is not None:
            result = flat.copy() if result is None else result
            result[:, place] = table[codes]
            before, after = before + len(numbers), after + len(np.unique(table))
    return None if result is None else (Column(result.reshape(array.shape)), before, after)


def _ranked(part: Array, ties: bool) -> tuple[Array, Array, Array | None]:
    codes, column = Column(part).distinct()
    return codes, column.array, np.bincount(codes, minlength=len(column.array)) if ties else None


def _merged_values(column: Column) -> tuple[Column, int, int] | None:
    """Merge the numbers inside of the values that a program called sample by sample returned, part by part."""
    codes, distinct = column.distinct()
    values = distinct.decoded()
    taken = [flatten(value) for value in values]
    places: dict[Any, list[tuple[int, int]]] = {}
    for row, (structure, leaves) in enumerate(taken):
        for position, leaf in enumerate(leaves):
            if isinstance(leaf, float):
                places.setdefault((structure, position), []).append((row, position))
    changed = False
    for cells in places.values():
        numbers, among = np.unique([taken[row][1][position] for row, position in cells], return_inverse=True)
        table = representatives(numbers, None)
        if table is not None:
            changed = True
            for (row, position), place in zip(cells, among.reshape(-1), strict=True):
                taken[row][1][position] = float(table[place])
    if not changed:
        return None
    made = np.empty(len(values), object)
    made[:] = [structure.build(leaves) for structure, leaves in taken]
    column = Batch.of_values(list(made[codes])).columns[0]
    return column, len(values), len(column.distinct()[1].array)


def representatives(numbers: Array, roundoff: Roundoff | None, counts: Array | None = None) -> Array | None:
    """Return the value that each of some ascending numbers stands for; None if each stands for itself.

    With `counts`, how often each was drawn, only groups are merged of which some number was drawn repeatedly.
    """
    if len(numbers) < 2:
        return None
    slack = (untraced(numbers) if roundoff is None else roundoff.at(numbers)) * (1.0 if roundoff is None else ROOM)
    with np.errstate(invalid="ignore"):
        linked = np.diff(numbers) <= slack[:-1] + slack[1:]
    if not linked.any():
        return None
    starts = np.flatnonzero(np.append(True, ~linked))
    stops = np.append(starts[1:], len(numbers))
    table = numbers.copy()
    for start, stop in zip(starts, stops, strict=True):
        if stop - start < 2 or numbers[stop - 1] - numbers[start] > 2 * slack[start:stop].max():
            continue
        if roundoff is None and sum(map(is_short, numbers[start:stop].tolist())) > 1:
            continue  # beside a sentinel such as 1e300 all other numbers lie close together
        if counts is None or counts[start:stop].max() > 1:
            table[start:stop] = _shortest(numbers[start:stop])
    return None if np.array_equal(table, numbers) else table


def is_short(number: float) -> bool:
    """Say whether a number has so few digits that no rounding made it."""
    return float(f"{number:.{SHORT}g}") == number


def _shortest(numbers: Array) -> float:
    """Return the number that is shortest to write; of several, the one nearest to the middle."""
    middle = float(numbers[0]) / 2 + float(numbers[-1]) / 2
    listed: list[float] = numbers.tolist()
    return min(listed, key=lambda number: (len(repr(abs(number))), abs(number - middle), number))


def tolerance(node: Node, value: float) -> float | None:
    """Return how far a computed number may be from one that was written down, to be the same; None if not known."""
    if keeps_bits():
        return 0.0
    found = roundoffs([node])[0]
    return None if found is None else found.around(value, ROOM) + WRITTEN * abs(value)


def within_rounding(node: Node, value: float) -> float:
    """Return how far a computed number may lie from a value just because of rounding; zero if nothing was rounded."""
    found = roundoffs([node])[0]
    error = 2 * UNTRACED * abs(value) if found is None else found.around(value, ROOM)
    return error + WRITTEN * abs(value) if error else 0.0


def analyse(value: Any) -> None:
    """Look at the arithmetic behind all parts of a nested value at once, which costs less than part by part."""
    if not keeps_bits():
        roundoffs([leaf.node for leaf in random_leaves(value)])
