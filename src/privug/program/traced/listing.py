"""The plain values that a quantity may have, where they are finitely many; perhaps some more, never fewer."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from privug.errors import ProgramError
from privug.model.node import Array, ConstantValue, Node
from privug.model.numpy_functions import Cast
from privug.model.operations import ArrayFunction, Elementwise, Gather, Index, Lookup, SampleFailure, Stack
from privug.model.plates import Fold, Lane
from privug.model.traits import Role, Traits
from privug.prior.conditional import Choose
from privug.prior.family import Draw, Family
from privug.prior.plating import RaggedDraw

MOST_LISTED = 100_000
MOST_COMBINED = 1_000_000  # combinations of the values of two quantities
MOST_VISITED = 2_000  # quantities behind one
EXPONENT = 700.0  # the logarithm of how rare a value must be to be left out: none that is ever drawn

Listed = Array | None


class PossibleValues:
    """The values of quantities that were asked for so far, in ascending order; those of an array are of its elements.

    A category has the codes of its levels.
    """

    def __init__(self) -> None:
        self._found: dict[Node, Listed] = {}

    def values(self, node: Node) -> Listed:
        """Return the values that a quantity may have; None if they are not known to be finitely many."""
        waiting = [(node, False)]
        while waiting and len(self._found) < MOST_VISITED:
            one, expanded = waiting.pop()
            if one in self._found:
                continue
            if expanded:
                self._found[one] = _limited(_computed(one, self._found))
                continue
            self._found_at_once(one)
            if one not in self._found:
                waiting.append((one, True))
                waiting += [(part, False) for part in _parts(one) if part not in self._found]
        return self._found.get(node)

    def _found_at_once(self, node: Node) -> None:
        """Find the values of what is known by itself."""
        operation = node.operation
        if node.levels is not None:
            self._found[node] = np.arange(len(node.levels))
        elif node.dtype == bool:
            self._found[node] = np.array([False, True])
        elif node.dtype.kind not in "if" or operation.opaque:
            self._found[node] = None
        elif isinstance(operation, ConstantValue):
            self._found[node] = _limited(_distinct(operation.array))
        elif isinstance(operation, Draw):
            self._found[node] = _limited(_drawn(operation.family, node.parents))
        elif isinstance(operation, RaggedDraw):
            self._found[node] = _limited(_drawn(operation.family, node.parents[:-1]))
        elif isinstance(operation, Lookup):
            self._found[node] = _limited(_distinct(operation.table))


def _limited(values: Listed) -> Listed:
    known = values is not None and 0 < len(values) <= MOST_LISTED and not np.isnan(values).any()
    return values if known else None


def _distinct(values: Array) -> Array:
    """Return the distinct ones of some numbers; zero and negative zero are two."""
    if values.dtype.kind != "f":
        return np.unique(values)
    return np.sort(np.unique(values.astype(np.float64).view(np.int64)).view(np.float64))


def _parts(node: Node) -> Sequence[Node]:
    """Return what the values of a quantity follow from."""
    operation = node.operation
    if isinstance(operation, Lane):
        return [operation.column]
    if isinstance(operation, Fold):
        return [operation.term, *(node.parents[-1:] if operation.is_ragged else ())]
    if isinstance(operation, Index | Gather):
        return node.parents[:1]
    if isinstance(operation, Choose) or operation.traits.role is Role.CHOICE:
        return node.parents[1:]
    return node.parents if isinstance(operation, Stack | Cast | Elementwise | ArrayFunction) else ()


def _drawn(family: Family, parameters: Sequence[Node]) -> Listed:
    known = [one.operation.array if isinstance(one.operation, ConstantValue) else None for one in parameters]
    if family.levels is not None or not family.listable or family.is_cut(known):
        return None
    if family.table is not None:
        return _distinct(family.table)
    return family.possible(known, EXPONENT, MOST_LISTED)


def _computed(node: Node, found: Mapping[Node, Listed]) -> Listed:
    operation, parts = node.operation, [found.get(part) for part in _parts(node)]
    known = [part for part in parts if part is not None]
    if not known or len(known) < len(parts):
        return None
    if isinstance(operation, Cast):
        return _distinct(known[0].astype(node.dtype))
    if isinstance(operation, Fold):
        return _folded(operation, known[0], known[-1] if operation.is_ragged else None, node)
    if isinstance(operation, ArrayFunction):
        return _of_array(operation, known[0], node)
    if isinstance(operation, Elementwise) and operation.traits.role is not Role.CHOICE:
        integers = all(values.dtype.kind in "bi" for values in (*known, np.empty(0, node.dtype)))
        return _image(operation, known, node.dtype) if integers or _is_exact(operation.traits) else None
    return _distinct(np.concatenate([part.astype(node.dtype) for part in known]))


def _folded(operation: Fold, values: Array, sizes: Listed, node: Node) -> Listed:
    if operation.traits.totals:
        return _total(values, np.array([operation.size]) if sizes is None else sizes, node)
    chosen = operation.keeps_rows or (operation.traits.extreme and sizes is None)
    return values.astype(node.dtype) if chosen else None


def _of_array(operation: ArrayFunction, values: Array, node: Node) -> Listed:
    parent, traits = node.parents[0], operation.traits
    if traits.totals and node.shape == () and len(node.parents) == 1:
        return _total(values, np.array([math.prod(parent.shape)]), node)
    chosen = traits.extreme or (traits.role is Role.MOVE and len(node.parents) == 1)
    return values.astype(node.dtype) if chosen else None


def _total(values: Array, numbers: Array, node: Node) -> Listed:
    """Return the values of a sum of so many whole numbers, or of as many as one of several numbers says."""
    if values.dtype.kind not in "bi" or node.dtype.kind != "i" or numbers.min() < 0:
        return None
    first, last = int(values[0]), int(values[-1])
    step = int(np.gcd.reduce(values.astype(np.int64) - first))
    least, most = int(numbers.min()), int(numbers.max())
    if least < most:  # with one more, the sum grows by the first value and perhaps some steps
        step = math.gcd(step, first)
    return _progression(min(least * first, most * first), max(least * last, most * last), step)


def _progression(first: int, last: int, step: int) -> Listed:
    if step == 0:
        return np.array([first])
    return np.arange(first, last + 1, step) if (last - first) // step < MOST_LISTED else None


def _is_exact(traits: Traits) -> bool:
    """Say whether results of floats are the same to the last bit however many are computed at once: in arithmetic."""
    arithmetic = traits.weights is not None or bool(traits.factor) or traits.divides
    return arithmetic or traits.steps or traits.chooses is not None


def _image(operation: Elementwise, known: Sequence[Array], dtype: np.dtype[np.generic]) -> Listed:
    """Return the values of an operation on all combinations of its arguments' values, but for those on which it fails.

    Sums of many whole numbers are listed with all that lie between.
    """
    if len(known) == 2 and operation.traits.weights is not None and dtype.kind == "i":
        left, right = (
            values.astype(np.int64) * weight for values, weight in zip(known, _weights(operation), strict=True)
        )
        step = math.gcd(*(int(np.gcd.reduce(one - one[0])) for one in (left, right)))
        if len(left) * len(right) > MOST_LISTED:
            return _progression(int(left.min() + right.min()), int(left.max() + right.max()), step)
    if math.prod(map(len, known)) > MOST_COMBINED:
        return None
    columns = [column.reshape(-1) for column in np.meshgrid(*known, indexing="ij")]
    with np.errstate(all="ignore"):
        while len(columns[0]):
            try:
                return _distinct(operation.evaluate_into(columns, None))
            except SampleFailure as failure:
                fine = ~failure.failing(len(columns[0]))
                columns = [column[fine] for column in columns]
            except ProgramError:
                return None
    return None


def _weights(operation: Elementwise) -> Sequence[int]:
    weights = operation.traits.weights
    assert weights is not None
    return [int(weight) for weight in weights]
