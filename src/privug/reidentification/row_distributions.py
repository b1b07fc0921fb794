"""The distribution of one row of a table: its columns in blocks that are independent of one another."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np

from privug.errors import ArgumentError, ImpossibleObservation
from privug.inference.exact.finite.states import CERTAIN, States
from privug.inference.graph.support import support, support_sizes
from privug.model.node import Array, ConstantValue, Kind, Node, ancestors
from privug.model.plan import Plan
from privug.model.table import Row
from privug.model.variable import RandomVariable
from privug.prior.conditional import Choose
from privug.prior.family import Draw, family_of

Place = tuple[Node, int]  # an entry of a conditional table: the table and its position


class TooManyStates(Exception):
    """The combinations are too many to list, or cannot be listed."""


def listed(targets: Sequence[Node], most: int) -> tuple[list[Array], Array]:
    """Return the values of the targets in all combinations that are possible, and their probabilities."""
    return _RowListing(targets, most).result()


class _RowListing:
    def __init__(self, targets: Sequence[Node], most: int) -> None:
        self._targets, self._most = list(targets), most
        self._scopes: dict[Place | None, list[Node]] = {}
        order = ancestors(targets)
        places = _places(order, targets)
        for node in order:
            self._scopes.setdefault(places[node], []).append(node)

    def result(self) -> tuple[list[Array], Array]:
        states = self._grown(CERTAIN, None)
        return _values(self._targets, states), states.weights

    def _grown(self, states: States, scope: Place | None) -> States:
        """Combine states with the values of all random quantities of a scope."""
        for node in self._scopes.get(scope, ()):
            if isinstance(node.operation, Draw):
                states = self._drawn(states, node)
            elif isinstance(node.operation, Choose):
                states = self._chosen(states, node)
            elif node.is_random:
                raise TooManyStates
        return states

    def _drawn(self, states: States, root: Node) -> States:
        family = family_of(root)
        if root.shape or not family.listable:
            raise TooManyStates
        parameters = [
            parent.operation.array if isinstance(parent.operation, ConstantValue) else _values([parent], states)[0]
            for parent in root.parents
        ]
        if float(np.max(support_sizes(family, parameters))) * len(states) > self._most:
            raise TooManyStates
        family.check(parameters)
        found = support(family, parameters, len(states))
        arrays = {node: array[found.owner] for node, array in states.arrays.items()}
        arrays[root] = found.values.astype(root.dtype, copy=False)
        return States(arrays, states.weights[found.owner] * found.probabilities)

    def _chosen(self, states: States, table: Node) -> States:
        """Draw in each state only the entry of a conditional table that is chosen there."""
        position = _values(table.parents[:1], states)[0]
        parts = []
        for place, entry in enumerate(table.parents[1:]):
            here = states.take(np.flatnonzero(position == place))
            if not len(here):
                continue
            grown = self._grown(here, (table, place))
            kept = {node: grown.arrays[node] for node in states.arrays}
            kept[table] = _values([entry], grown)[0].astype(table.dtype, copy=False)
            parts.append(States(kept, grown.weights))
        if sum(map(len, parts)) > self._most:
            raise TooManyStates
        arrays = {node: np.concatenate([part.arrays[node] for part in parts]) for node in parts[0].arrays}
        return States(arrays, np.concatenate([part.weights for part in parts]))


def _places(order: Sequence[Node], targets: Sequence[Node]) -> dict[Node, Place | None]:
    """Return for each node the entry of a conditional table that alone needs it; None if more does."""
    uses: dict[Node, set[Place | None]] = {node: set() for node in order}
    for target in targets:
        uses[target].add(None)
    places: dict[Node, Place | None] = {}
    for node in reversed(order):
        places[node] = next(iter(uses[node])) if len(uses[node]) == 1 else None
        for position, parent in enumerate(node.parents):
            is_entry = isinstance(node.operation, Choose) and position > 0
            uses[parent].add((node, position - 1) if is_entry else places[node])
    return places


def _values(nodes: Sequence[Node], states: States) -> list[Array]:
    known = dict(states.arrays)
    return Plan(nodes, list(known)).run(len(states), np.random.Generator(np.random.SFC64(0)), known)


MOST_STATES = 1_000_000
MOST_CELLS = 50_000_000
LARGEST_KEY = 1 << 62


class NoClosedForm(Exception):
    """Why a table's risks cannot be had in closed form, as the end of a sentence."""


class Coding:
    """Numbers for the values of each column: equal values have equal numbers."""

    def __init__(self) -> None:
        self._numbers: dict[str, dict[Any, int]] = {}

    def code(self, column: str, value: Any) -> int:
        """Return the number of a value, a new one if it has none."""
        numbers = self._numbers.setdefault(column, {})
        if isinstance(value, float) and value != value:
            value = None  # what is missing looks the same in every row
        try:
            return numbers.setdefault(value, len(numbers))
        except TypeError:
            raise ArgumentError(
                f"column {column!r} must hold numbers, strings or other labels, not {value!r}"
            ) from None

    def codes(self, column: str, values: Sequence[Any]) -> Array:
        """Return the numbers of many values."""
        return np.array([self.code(column, value) for value in values], np.int64)

    def values(self, column: str) -> list[Any]:
        """Return the values that have numbers, in the order of these."""
        return list(self._numbers.get(column, ()))

    def keys(self, columns: Sequence[str], *several: Array) -> list[Array]:
        """Return one number for each combination of values: lines of codes hold one number for each column."""
        codes = several[0] if len(several) == 1 else np.concatenate(several)
        key, bound = np.zeros(len(codes), np.int64), 1
        for position, column in enumerate(columns):
            size = len(self._numbers[column]) + 1
            if bound * size > LARGEST_KEY:
                distinct, key = np.unique(key, return_inverse=True)
                bound = len(distinct)
            key, bound = key * size + codes[:, position], bound * size
        return np.split(key, np.cumsum([len(part) for part in several])[:-1])


@dataclass(frozen=True, eq=False)
class ColumnBlock:
    """Columns that depend on one another: the combinations of their values and how likely each is."""

    columns: tuple[str, ...]
    codes: Array
    probabilities: Array
    _marginals: dict[tuple[str, ...], "ColumnBlock"] = field(default_factory=dict, repr=False)

    def marginal(self, columns: Iterable[str], coding: Coding) -> "ColumnBlock":
        """Return the distribution of some of the columns."""
        chosen = tuple(column for column in self.columns if column in columns)
        if chosen not in self._marginals:
            codes = self.codes[:, [self.columns.index(column) for column in chosen]]
            keys = coding.keys(chosen, codes)[0]
            _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
            weights = np.bincount(inverse.reshape(-1), self.probabilities, len(first))
            self._marginals[chosen] = ColumnBlock(chosen, codes[first], weights)
        return self._marginals[chosen]

    def chances(self, columns: Sequence[str], codes: Array, coding: Coding) -> Array:
        """Return the probability of each line of values; `columns` says what stands where in a line."""
        asked = codes[:, [columns.index(column) for column in self.columns]]
        own, wanted = coding.keys(self.columns, self.codes, asked)
        order = np.argsort(own)
        found = order[np.minimum(np.searchsorted(own, wanted, sorter=order), len(own) - 1)]
        return np.where(own[found] == wanted, self.probabilities[found], 0.0)


@dataclass(frozen=True, eq=False)
class RowDistribution:
    """The distribution of a row. In `fresh` columns values have a density: no two independent rows agree there."""

    blocks: tuple[ColumnBlock, ...]
    fresh: frozenset[str]

    @classmethod
    def of(cls, row: Row, coding: Coding) -> "RowDistribution":
        """Work out the distribution of a row."""
        plain = {name: value for name, value in row._asdict().items() if not isinstance(value, RandomVariable)}
        cells = {name: value.node for name, value in row._asdict().items() if isinstance(value, RandomVariable)}
        fresh = frozenset(name for name, node in cells.items() if node.kind is Kind.CONTINUOUS)
        blocks = [
            ColumnBlock((name,), coding.codes(name, [value])[:, None], np.ones(1)) for name, value in plain.items()
        ]
        discrete = {name: node for name, node in cells.items() if name not in fresh}
        blocks += [_block({name: discrete[name] for name in names}, coding) for names in _dependent(discrete)]
        return cls(tuple(blocks), fresh)

    def joint(self, columns: Sequence[str], coding: Coding) -> ColumnBlock:
        """Return all combinations of values of some columns that do not have a density."""
        touched = [block for block in self.blocks if not set(block.columns).isdisjoint(columns)]
        parts = [block.marginal(columns, coding) for block in touched]
        return reduce(_combined, parts, ColumnBlock((), np.zeros((1, 0), np.int64), np.ones(1)))

    def knowing(self, known: Mapping[str, Any], coding: Coding) -> "RowDistribution":
        """Return the distribution of the row, given the values of some columns."""
        columns = {column for block in self.blocks for column in block.columns} | self.fresh
        for name in known:
            if name not in columns:
                raise ArgumentError(f"person: there is no column {name!r}; the table has {', '.join(sorted(columns))}")
        return RowDistribution(tuple(_conditioned(block, known, coding) for block in self.blocks), self.fresh)


def _conditioned(block: ColumnBlock, known: Mapping[str, Any], coding: Coding) -> ColumnBlock:
    agrees = np.ones(len(block.codes), bool)
    for position, column in enumerate(block.columns):
        if column in known:
            agrees &= block.codes[:, position] == coding.code(column, known[column])
    total = float(block.probabilities[agrees].sum())
    if total <= 0:
        shown = ", ".join(f"{column}={known[column]!r}" for column in block.columns if column in known)
        raise ImpossibleObservation(f"person: a row with {shown} has probability zero")
    return ColumnBlock(block.columns, block.codes[agrees], block.probabilities[agrees] / total)


def _dependent(cells: Mapping[str, Node]) -> list[list[str]]:
    """Return the columns in groups that have no random root in common."""
    joined: list[tuple[set[int], list[str]]] = []
    for name, node in cells.items():
        roots, names = {id(ancestor) for ancestor in ancestors([node]) if ancestor.is_random}, [name]
        apart = []
        for other in joined:
            if roots.isdisjoint(other[0]):
                apart.append(other)
            else:
                roots, names = roots | other[0], other[1] + names
        joined = [*apart, (roots, names)]
    return [names for _, names in joined]


def _block(cells: Mapping[str, Node], coding: Coding) -> ColumnBlock:
    nodes = list(cells.values())
    if any(node.shape for node in nodes):
        raise NoClosedForm("some cells hold several values")
    try:
        arrays, weights = listed(nodes, MOST_STATES)
    except TooManyStates:
        raise NoClosedForm(f"the values of {', '.join(cells)} together are too many to list") from None
    columns = [_coded(name, node, array, coding) for (name, node), array in zip(cells.items(), arrays, strict=True)]
    everything = ColumnBlock(tuple(cells), np.stack(columns, axis=1), weights / math.fsum(weights.tolist()))
    return everything.marginal(cells, coding)


def _coded(name: str, node: Node, array: Array, coding: Coding) -> Array:
    distinct, inverse = np.unique(array, return_inverse=True)
    values = distinct.tolist() if node.levels is None else [node.levels[code] for code in distinct]
    return coding.codes(name, values)[inverse.reshape(-1)]


def _combined(left: ColumnBlock, right: ColumnBlock) -> ColumnBlock:
    size = len(left.codes) * len(right.codes)
    if size * (len(left.columns) + len(right.columns)) > MOST_CELLS:
        raise NoClosedForm("the columns have too many combinations of values to list")
    codes = np.concatenate(
        [np.repeat(left.codes, len(right.codes), axis=0), np.tile(right.codes, (len(left.codes), 1))], axis=1
    )
    weights = np.multiply.outer(left.probabilities, right.probabilities).reshape(-1)
    return ColumnBlock((*left.columns, *right.columns), codes, weights)
