"""What one row of a plate adds to sums over all rows: its distribution, given what the rows share.

A row's cells are independent of each other. A cell that enters only through functions of itself and of shared
quantities, such as `row.zip == governor.zip`, matters only through their values: two, not two hundred. Shared
values under which these have the same distribution form one class.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privug.inference.exact.request import Obstacle
from privug.inference.support import support, support_sizes
from privug.model.node import Array, ConstantValue, Node, ancestors
from privug.model.plan import Plan
from privug.prior.conditional import finite_support
from privug.prior.family import Draw

MOST_COMBINATIONS = 4_000_000
MOST_VALUES = 10_000


@dataclass(frozen=True)
class RowLaw:
    """The joint distribution of what one row adds to several sums, for each class of shared values.

    `values` has a line for each possible vector of terms; `probabilities` one for each class. `classes` holds the
    class of each combination of the `shared` quantities' values, whose axes are in the order of `supports`.
    """

    values: Array
    probabilities: Array
    shared: tuple[Node, ...]
    supports: tuple[Array, ...]
    classes: Array


@dataclass(frozen=True)
class _Cell:
    """What matters of one cell: the nodes through which it enters, their values, and the chances of these."""

    nodes: tuple[Node, ...]
    values: tuple[Array, ...]
    chances: Array
    """The probability of each value, for each class."""
    shared: tuple[Node, ...]
    classes: Array
    """The class of each combination of values of what is shared."""


def row_law(terms: Sequence[Node], lanes: Sequence[Node], columns: Sequence[Node]) -> RowLaw | Obstacle:
    """Return the joint distribution of terms that are computed from lanes, the cells of one row."""
    behind = {id(lane): {lane} for lane in lanes}
    order = ancestors(terms)
    for node in order:
        if id(node) not in behind:
            behind[id(node)] = set().union(*(behind[id(parent)] for parent in node.parents)) if node.parents else set()
    inside = [node for node in order if behind[id(node)]]
    cells: list[_Cell] = []
    for lane, column in zip(lanes, columns, strict=True):
        frontier = _frontier(lane, inside, terms, behind)
        cell = _cell(lane, column, frontier, behind)
        if isinstance(cell, Obstacle):
            return cell
        cells.append(cell)
    return _combined(terms, cells, inside, behind)


def _frontier(lane: Node, inside: Sequence[Node], terms: Sequence[Node], behind: dict[int, Any]) -> list[Node]:
    """Return the nodes of one cell alone that other nodes or the terms need."""
    only = {lane}
    needed = {id(term) for term in terms}
    needed |= {id(parent) for node in inside if behind[id(node)] != only for parent in node.parents}
    return [node for node in inside if behind[id(node)] == only and id(node) in needed]


def _shared_parents(nodes: Sequence[Node], behind: dict[int, Any]) -> tuple[Node, ...]:
    """Return the quantities that nodes need and that no cell enters, constants aside."""
    found: dict[Node, None] = {}
    frontier, seen = list(nodes), set[int]()
    while frontier:
        node = frontier.pop()
        if id(node) in seen or not behind[id(node)]:
            continue
        seen.add(id(node))
        for parent in node.parents:
            if behind[id(parent)]:
                frontier.append(parent)
            elif not isinstance(parent.operation, ConstantValue):
                found[parent] = None
    return tuple(found)


def listed_values(node: Node) -> Array | None:
    """Return the values that a quantity can take, as they stand in a batch; None if they cannot be listed."""
    if node.shape:
        return None
    if node.levels is not None:
        return np.arange(len(node.levels), dtype=node.dtype)
    known = finite_support(node)
    return None if known is None or len(known) > MOST_VALUES else np.sort(np.asarray(known, node.dtype))


def _cell(lane: Node, column: Node, frontier: list[Node], behind: dict[int, Any]) -> _Cell | Obstacle:
    operation = column.operation
    if not isinstance(operation, Draw) or not all(isinstance(p.operation, ConstantValue) for p in column.parents):
        return Obstacle("the columns of its table depend on each other")
    if not operation.family.listable:
        return Obstacle("a column of its table has more values than can be listed", vague=True)
    parameters = [p.operation.array for p in column.parents if isinstance(p.operation, ConstantValue)]
    if support_sizes(operation.family, parameters).max() > MOST_COMBINATIONS:
        return Obstacle("a column of its table has more values than can be listed", vague=True)
    possible = support(operation.family, parameters, 1)
    shared = _shared_parents(frontier, behind)
    lists = [listed_values(node) for node in shared]
    if any(values is None for values in lists):
        return Obstacle("its rows share a quantity with more values than can be listed")
    sizes = [len(values) for values in lists if values is not None]
    count, states = int(np.prod(sizes, dtype=float)), len(possible.values)
    if count * states > MOST_COMBINATIONS:
        return Obstacle(f"a column and what its rows share have {count * states:,} combinations of values")
    grids = np.meshgrid(*[v for v in lists if v is not None], indexing="ij")
    known = {node: np.repeat(grid.reshape(-1), states) for node, grid in zip(shared, grids, strict=True)}
    known[lane] = np.tile(possible.values, count)
    arrays = Plan(frontier, list(known)).run(count * states, np.random.Generator(np.random.SFC64(0)), known)
    codes, values = _distinct(arrays)
    owner = np.repeat(np.arange(count), states)
    flat = np.bincount(owner * len(values[0]) + codes, np.tile(possible.probabilities, count), count * len(values[0]))
    chances, classes = np.unique(flat.reshape(count, -1), axis=0, return_inverse=True)
    return _Cell(tuple(frontier), values, chances, shared, classes.reshape([len(v) for v in lists if v is not None]))


def _distinct(arrays: Sequence[Array]) -> tuple[Array, tuple[Array, ...]]:
    """Return a code for each line of several arrays, and the arrays' values for each code."""
    codes = np.zeros(len(arrays[0]), np.int64)
    for array in arrays:
        inner = np.unique(array, return_inverse=True)[1].reshape(-1)
        codes = np.unique(codes * (int(inner.max()) + 1) + inner, return_inverse=True)[1].reshape(-1)
    first = np.unique(codes, return_index=True)[1]
    return codes, tuple(array[first] for array in arrays)


def _combined(
    terms: Sequence[Node], cells: Sequence[_Cell], inside: Sequence[Node], behind: dict[int, Any]
) -> RowLaw | Obstacle:
    """Combine the cells of a row: the values of the terms for all combinations of what matters of each cell."""
    several = [node for node in inside if len(behind[id(node)]) > 1]
    direct = tuple(
        dict.fromkeys(
            p
            for node in several
            for p in node.parents
            if not behind[id(p)] and not isinstance(p.operation, ConstantValue)
        )
    )
    shared = tuple(dict.fromkeys([*direct, *(node for cell in cells for node in cell.shared)]))
    lists = [listed_values(node) for node in shared]
    if any(values is None for values in lists):
        return Obstacle("its rows share a quantity with more values than can be listed")
    supports = tuple(values for values in lists if values is not None)
    free = [supports[shared.index(node)] for node in direct]
    axes = [np.arange(len(cell.values[0])) for cell in cells] + free
    if np.prod([float(len(axis)) for axis in axes]) > MOST_COMBINATIONS:
        return Obstacle("what one row adds depends on too many combinations of values")
    grids = [grid.reshape(-1) for grid in np.meshgrid(*axes, indexing="ij")]
    known: dict[Node, Array] = {}
    for cell, codes in zip(cells, grids, strict=False):
        known.update((node, values[codes]) for node, values in zip(cell.nodes, cell.values, strict=True))
    known.update(zip(direct, grids[len(cells) :], strict=True))
    arrays = Plan(terms, list(known)).run(len(grids[0]), np.random.Generator(np.random.SFC64(0)), known)
    codes, values = _distinct([np.asarray(array) + np.zeros(len(grids[0]), array.dtype) for array in arrays])
    return _law(np.stack(values, axis=1), codes, cells, direct, shared, supports)


def _law(
    values: Array,
    codes: Array,
    cells: Sequence[_Cell],
    direct: tuple[Node, ...],
    shared: tuple[Node, ...],
    supports: tuple[Array, ...],
) -> RowLaw | Obstacle:
    """Put the classes of the cells and the values of what is shared directly together to classes of rows."""
    free = [len(supports[shared.index(node)]) for node in direct]
    table = codes.reshape(*(len(cell.values[0]) for cell in cells), *free)
    choices = [range(len(cell.chances)) for cell in cells] + [range(size) for size in free]
    if np.prod([float(len(choice)) for choice in choices]) > MOST_VALUES:
        return Obstacle("what one row adds has too many different distributions")
    lines: list[Array] = []
    for chosen in itertools.product(*choices):
        weights = np.ones(())
        for cell, k in zip(cells, chosen, strict=False):
            weights = np.multiply.outer(weights, cell.chances[k])
        place: tuple[Any, ...] = (..., *chosen[len(cells) :])
        part = table[place] if free else table
        lines.append(np.bincount(part.reshape(-1), np.asarray(weights).reshape(-1), len(values)))
    probabilities, merged = np.unique(np.array(lines), axis=0, return_inverse=True)
    numbers = merged.reshape([len(choice) for choice in choices])
    positions = [_along(cell.classes, cell.shared, shared) for cell in cells]
    positions += [_along(np.arange(size), (node,), shared) for size, node in zip(free, direct, strict=True)]
    classes = numbers[tuple(np.broadcast_arrays(*positions))] if shared else numbers.reshape(())
    full = np.broadcast_to(classes, [len(values_) for values_ in supports])
    return RowLaw(values, probabilities, shared, supports, full)


def _along(array: Array, own: tuple[Node, ...], shared: tuple[Node, ...]) -> Array:
    """Lay an array over the values of some shared quantities out along the axes of all."""
    order = sorted(range(len(own)), key=lambda k: shared.index(own[k]))
    moved = np.transpose(array, order) if array.ndim else array
    shape = [moved.shape[order.index(own.index(node))] if node in own else 1 for node in shared]
    return moved.reshape(shape)
