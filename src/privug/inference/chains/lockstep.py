"""Many models of the same form side by side as one: what differs between them becomes an array over the models.

Models of tables of different sizes differ in constants, and in how many rows of the largest table they have. Written
one by one they are too much for any compiler. Side by side, a number is an array with an entry for each model, a column
one with a row for each model that is filled up to the longest; what was filled in is left out of sums.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privug.model.node import Array, ConstantValue, Node
from privug.model.numpy_functions import Cast, cast, reshape, where
from privug.model.operations import (
    ArrayFunction,
    Elementwise,
    Index,
    Lookup,
    array_function,
    constant,
    elementwise,
    lookup,
)
from privug.model.plates import Fold
from privug.model.traits.table import traits_of
from privug.model.traits.traits import Role, Scope, Traits
from privug.prior.family import LogDensity
from privug.program.traced.failures import Checked


class OutOfStep(Exception):
    """The models differ in more than constants and lengths."""


@dataclass(frozen=True)
class _Side:
    """Corresponding quantities of all models: an array over models if they differ, over rows if they are columns."""

    node: Node
    differs: bool
    lengths: tuple[int, ...] | None = None
    """How many rows of each model there are; None for a single number."""


def _neutral(traits: Traits, dtype: np.dtype[Any]) -> Any:
    """Return what changes no sum, extreme or verdict."""
    neutral = traits_of(traits.folds or "").neutral
    assert neutral is not None
    if math.isfinite(neutral) or dtype.kind == "f":
        return neutral
    return neutral > 0 if dtype.kind == "b" else int(math.copysign(1, neutral)) * np.iinfo(np.int64).max


def _is_reduction(traits: Traits) -> bool:
    return traits.scope is Scope.FOLD and traits.folds is not None and traits.role is not Role.FUNCTION


class Lockstep:
    """Goes through models of the same form together."""

    def __init__(self, models: int) -> None:
        self._models = models
        self._found: dict[tuple[int, ...], _Side] = {}

    def number(self, nodes: Sequence[Node]) -> Node:
        """Return an array with the number that each model has at this place."""
        side = self._side(nodes)
        if side.lengths is not None:
            raise OutOfStep
        return self._over_models(side)

    def _over_models(self, side: _Side) -> Node:
        if side.differs:
            return side.node
        zeros = constant(np.zeros(self._models, side.node.dtype))
        return elementwise(Elementwise("add", np.add), [side.node, zeros])

    def _side(self, nodes: Sequence[Node]) -> _Side:
        key = tuple(map(id, nodes))
        if key not in self._found:
            self._found[key] = self._combined(nodes)
        return self._found[key]

    def _combined(self, nodes: Sequence[Node]) -> _Side:
        first = nodes[0]
        if all(node is first for node in nodes):
            return self._same(first)
        beginnings = _beginnings(nodes)
        if beginnings is not None:
            return beginnings
        operations = [node.operation for node in nodes]
        if len({type(operation) for operation in operations}) > 1 or len({len(node.parents) for node in nodes}) > 1:
            raise OutOfStep
        match first.operation:
            case ConstantValue():
                return self._constants([o.array[0] for o in operations if isinstance(o, ConstantValue)])
            case Fold():
                return self._folds([o for o in operations if isinstance(o, Fold)], nodes)
        parents = [self._side(column) for column in zip(*(node.parents for node in nodes), strict=True)]
        match first.operation:
            case Elementwise() as operation if all(_is_like(operation, other) for other in operations):
                return self._elementwise(operation, parents)
            case ArrayFunction(traits=traits) if _is_reduction(traits) and first.shape == ():
                return self._reduced(traits, parents[0])
            case LogDensity() as operation if all(other == operation for other in operations):
                return self._density(operation, parents)
            case Checked():
                return parents[0]
            case Cast(dtype=dtype):
                return _Side(cast(parents[0].node, dtype), parents[0].differs, parents[0].lengths)
            case Lookup(table=table) if all(_has_table(other, table) for other in operations) and first.levels is None:
                return _Side(lookup(parents[0].node, table), parents[0].differs, parents[0].lengths)
        raise OutOfStep

    def _same(self, node: Node) -> _Side:
        if len(node.shape) > 1:
            raise OutOfStep
        return _Side(node, False, (node.shape[0],) * self._models if node.shape else None)

    def _constants(self, arrays: Sequence[Array]) -> _Side:
        if any(array.ndim != arrays[0].ndim or array.ndim > 1 for array in arrays):
            raise OutOfStep
        if not arrays[0].ndim:
            return _Side(constant(np.array(arrays)), True)
        lengths = tuple(len(array) for array in arrays)
        if not all(lengths):
            raise OutOfStep
        filled = [np.pad(array, (0, max(lengths) - len(array)), mode="edge") for array in arrays]
        if all(np.array_equal(row, filled[0]) for row in filled):
            return _Side(constant(filled[0]), False, lengths)
        return _Side(constant(np.array(filled)), True, lengths)

    def _elementwise(self, operation: Elementwise, parents: Sequence[_Side]) -> _Side:
        lengths = {parent.lengths for parent in parents if parent.lengths is not None}
        if len(lengths) > 1:
            raise OutOfStep
        column = next(iter(lengths), None)
        if any(parent.node.levels is not None for parent in parents):
            raise OutOfStep
        aligned = [_as_row(parent, self._models) if column is not None else parent.node for parent in parents]
        plain = Elementwise(operation.name, operation.function, operation.python)
        return _Side(elementwise(plain, aligned), any(parent.differs for parent in parents), column)

    def _reduced(self, traits: Traits, side: _Side) -> _Side:
        assert side.lengths is not None
        longest, node = side.node.shape[-1], side.node
        counts = constant(np.array(side.lengths))
        if min(side.lengths) < longest:
            present = constant(np.arange(longest) < np.array(side.lengths)[:, np.newaxis])
            node = where(present, node, cast(constant(_neutral(traits, node.dtype)), node.dtype))
        how = "sum" if traits.averages else traits.name
        axis = (("axis", len(node.shape)),)
        result = array_function(ArrayFunction(how, getattr(np, how), axis), [node])
        if traits.averages:
            result = elementwise(Elementwise("true_divide", np.true_divide), [result, counts])
        return _Side(result, bool(result.shape))

    def _density(self, operation: LogDensity, parents: Sequence[_Side]) -> _Side:
        if parents[0].lengths is not None:
            return self._density_of_columns(operation, parents)
        if any(parent.lengths is not None for parent in parents):
            raise OutOfStep
        at = self._over_models(parents[0])
        rest = tuple(parent.node for parent in parents[1:])
        return _Side(Node(operation, (at, *rest), at.shape, np.dtype(np.float64)), True)

    def _density_of_columns(self, operation: LogDensity, parents: Sequence[_Side]) -> _Side:
        at = parents[0]
        if not at.differs or any(parent.lengths is not None or parent.node.shape for parent in parents[1:]):
            raise OutOfStep
        rest = tuple(parent.node for parent in parents[1:])
        return _Side(Node(operation, (at.node, *rest), at.node.shape, np.dtype(np.float64)), True, at.lengths)

    def _folds(self, folds: Sequence[Fold], nodes: Sequence[Node]) -> _Side:
        """Write the terms of all rows of all models, in place of each row's cell the columns."""
        if len({(fold.how, len(fold.lanes), len(fold.shared)) for fold in folds}) > 1:
            raise OutOfStep
        inner = zip(*((*fold.lanes, *fold.shared) for fold in folds), strict=True)
        outer = zip(*(node.parents for node in nodes), strict=True)
        for lanes, columns in zip(inner, outer, strict=True):
            self._found[tuple(map(id, lanes))] = self._side(columns)
        terms = self._side([fold.term for fold in folds])
        if terms.lengths is None or folds[0].how == "map":
            if folds[0].how != "map":
                raise OutOfStep
            return terms
        return self._reduced(folds[0].traits, terms)


def _is_like(one: Elementwise, other: object) -> bool:
    return isinstance(other, Elementwise) and (one.name, one.function, one.python) == (
        other.name,
        other.function,
        other.python,
    )


def _has_table(operation: object, table: Array) -> bool:
    return isinstance(operation, Lookup) and np.array_equal(operation.table, table)


def _beginnings(nodes: Sequence[Node]) -> _Side | None:
    """Read columns that are the first rows of one column, or all of them."""
    cut = [node for node in nodes if isinstance(node.operation, Index)]
    whole = cut[0].parents[0] if cut else nodes[0]
    if len(whole.shape) != 1 or any(node is not whole and not _is_beginning(node, whole) for node in nodes):
        return None
    return _Side(whole, False, tuple(node.shape[0] for node in nodes))


def _is_beginning(node: Node, whole: Node) -> bool:
    if not isinstance(node.operation, Index) or node.parents[0] is not whole or len(node.operation.key) != 1:
        return False
    key = node.operation.key[0]
    return isinstance(key, slice) and key.start in (None, 0) and key.step in (None, 1)


def _as_row(side: _Side, models: int) -> Node:
    """Return an array over models such that it broadcasts against columns."""
    return reshape(side.node, (models, 1)) if side.differs and side.lengths is None else side.node
