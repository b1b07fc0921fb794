"""A model of tables of every size, at one of the sizes.

A program is traced once for tables of random size, in terms of the size. Where the size is known, what depends on it
alone is known too, and plates have as many rows as that. The graph is then the one that tracing the program at that
size would give, in a small part of the time.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from privug.inference.graph.conditions import is_known, known_node, simpler, value_of
from privug.model.framed import Framed, rows_of
from privug.model.graph import remade, rewritten
from privug.model.maybe import is_maybe
from privug.model.node import Node
from privug.model.operations import index
from privug.model.plated_tables import PlatedTable, RaggedTable
from privug.model.plates import Fold, Lane, Plate, RaggedCell, RaggedConstant, dependent_on_lanes
from privug.model.structure import flatten, random_leaves
from privug.model.variable import RandomVariable, as_node
from privug.prior.family import draw_node
from privug.prior.plating import FEWEST_ROWS, RaggedDraw
from privug.program.traced.conditions import Checked


class OfAnotherForm(Exception):
    """At some size the model is another one: rows that are so few are held one by one, not as a plate."""


def at_sizes(inputs: Mapping[str, Any], sizes: Mapping[str, int], value: Any) -> tuple[dict[str, Any], Any]:
    """Return inputs, some of which are tables of random size, and a value made of them, as they are at given sizes."""
    tables = {name: rows_of(inputs[name]) for name in sizes}
    known = {table.size.node: as_node(sizes[name]) for name, table in tables.items()}
    structure, leaves = flatten(value)
    random = [leaf for leaf in (*leaves, *_random_parts(inputs.values())) if isinstance(leaf, RandomVariable)]
    nodes = list(dict.fromkeys(leaf.node for leaf in random))
    images = dict(zip(nodes, rewritten(nodes, Sized().rule, known), strict=True))

    def image(leaf: Any) -> Any:
        return _plain(images[leaf.node]) if isinstance(leaf, RandomVariable) else leaf

    def table(name: str) -> Any:
        segments = [part for part in _segments(tables[name], sizes[name], image) if part is not None]
        if not any(isinstance(part, Plate) for part in segments):
            raise OfAnotherForm
        made, given = PlatedTable(segments), inputs[name]
        return replace(given, table=made) if isinstance(given, Framed) else made

    return {name: table(name) if name in sizes else given for name, given in inputs.items()}, structure.build(
        map(image, leaves)
    )


def _plain(node: Node) -> Any:
    """Return the value of Python that a quantity became, if it is known."""
    if is_maybe(node) and is_known(node.parents[0]):
        return RandomVariable(node.parents[1]) if value_of(node.parents[0]) else None
    if not is_known(node) or node.shape or node.numpy is not False:
        return RandomVariable(node)
    value = np.asarray(value_of(node)).item()
    return value if node.levels is None else node.levels[value]


def _random_parts(inputs: Any) -> Iterator[Any]:
    """Yield the sizes and cells of plates of random size, and the cells of the rows beside them."""
    for table in map(rows_of, inputs):
        if isinstance(table, RaggedTable):
            yield from (segment.size for segment in table.segments if isinstance(segment, Plate))
            yield from table.cells()


def _segments(table: RaggedTable, size: int, image: Any) -> Iterator[Any]:
    for segment, start in zip(table.segments, table.outline.starts, strict=True):
        if not isinstance(segment, Plate):
            yield segment if size > start else None
            continue
        rows = int(image(segment.size))
        if rows:
            cells = [image(cell) for cell in segment.cells]
            yield Plate(segment.names, tuple(_plain_columns(segment, cells)), _enough(rows))


def _plain_columns(segment: Plate, cells: Sequence[Any]) -> list[Any]:
    """Return the cells of a plate with plain columns as arrays, unless there is nothing else."""
    plain = [
        isinstance(cell, RandomVariable) and isinstance(cell.node.operation, RaggedConstant) for cell in segment.cells
    ]
    drawn = any(isinstance(cell, RandomVariable) and not one for cell, one in zip(segment.cells, plain, strict=True))
    return [value_of(as_node(cell)) if one and drawn else cell for cell, one in zip(cells, plain, strict=True)]


def _enough(rows: int) -> int:
    if rows < FEWEST_ROWS:
        raise OfAnotherForm
    return rows


class Sized:
    """What becomes of nodes where the sizes of tables are known."""

    def __init__(self) -> None:
        self._lanes: dict[Node, Node] = {}

    def rule(self, node: Node, parents: tuple[Node, ...]) -> Node | None:
        """Return what a node becomes, given what its parents became."""
        operation = node.operation
        match operation:
            case Fold(is_ragged=True):
                return self._folded(operation, parents)
            case RaggedDraw(family=family, shape=shape):
                return draw_node(family, parents[:-1], (_enough(_rows(parents)), *shape))
            case RaggedConstant(array=array):
                return as_node(array[: _rows(parents)])
            case RaggedCell(position=position):
                if position >= _rows(parents):
                    return known_node(node, np.zeros(node.shape))
                return index(parents[0], position)
        found = simpler(node, parents)
        if found is not None:
            return found
        made = remade(node, parents)
        if made is node:
            return None
        settled = Node(made.operation, made.parents, made.shape, made.dtype, made.levels)  # of a kind of its own
        settled.bound, settled.numpy = made.bound, made.numpy
        return settled

    def _folded(self, fold: Fold, parents: Sequence[Node]) -> Node:
        """Fold a term over as many rows as there are; what rows share became the parents that stand for it."""
        found = {
            inner: self._lane(outer) if isinstance(inner.operation, Lane) else outer
            for inner, outer in zip((*fold.lanes, *fold.shared), parents, strict=False)
        }
        for inner in dependent_on_lanes(fold.term).values():
            if inner not in found:
                own = tuple(found.get(parent, parent) for parent in inner.parents)
                found[inner] = self.rule(inner, own) or inner
        return as_node(Plate((), (), _enough(_rows(parents))).folded(fold.how, RandomVariable(found[fold.term])))

    def _lane(self, column: Node) -> Node:
        if column not in self._lanes:
            (lane,) = Plate(("cell",), (RandomVariable(column),), column.shape[0]).row
            self._lanes[column] = as_node(lane)
        return self._lanes[column]


def _rows(parents: Sequence[Node]) -> int:
    """Return how many rows there are, which is the last parent."""
    if not is_known(parents[-1]):
        raise OfAnotherForm
    return int(value_of(parents[-1]))


def depends_on_size(value: Any, sizes: Sequence[Node]) -> bool:
    """Say whether a value differs with the sizes of tables, where it can be had: which rows there are aside."""
    pending, met = [leaf.node for leaf in random_leaves(value)], set[Node]()
    while pending:
        node = pending.pop()
        if node not in met:
            met.add(node)
            pending.extend(_behind(node))
    return not met.isdisjoint(sizes)


def _behind(node: Node) -> tuple[Node, ...]:
    """Return what a quantity is computed from where it can be had: a row's cells do not tell how many there are."""
    if isinstance(node.operation, Checked):
        return node.parents[:1]
    of_one_row = isinstance(node.operation, RaggedCell) or node.operation.by_rows
    return node.parents[:-1] if of_one_row else node.parents
