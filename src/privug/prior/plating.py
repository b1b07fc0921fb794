"""Rows of a table that are independent copies of one another: found, and held as columns, ragged ones too."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from privug.model.graph import substitute
from privug.model.node import Array, ConstantValue, Context, Kind, Node, Operation, Shape, ancestors
from privug.model.operations import Elementwise, Lookup
from privug.model.plated_tables import Outline, PlatedTable, RaggedTable
from privug.model.plates import Plate
from privug.model.row_offsets import RowOffsets
from privug.model.table import Row
from privug.model.variable import RandomVariable, as_python
from privug.prior.conditional import Choose, Match
from privug.prior.family import Draw, Family, at_rank, draw_node


@dataclass(frozen=True, slots=True, eq=False)
class RaggedDraw(Operation):
    """Fresh random quantities, one for each of a random number of rows, given parameters that rows share or not."""

    family: Family
    shape: Shape
    """Of what one row has."""
    by_row: tuple[bool, ...]
    """Which of the parameters each row has its own of."""

    random = True

    @property
    def by_rows(self) -> bool:
        return True

    def evaluate(self, arguments: Sequence[Array], context: Context) -> Array:
        segments = RowOffsets(arguments[-1], context.samples)
        if segments.total == 0:
            return np.empty((0, *self.shape), self.family.dtype)
        parameters = self.of_rows(arguments, context.samples)
        if any(len(parameter) > 1 for parameter in parameters):
            self.family.check(parameters)
        return self.family.draw(context.rng, segments.total, self.shape, parameters)

    def of_rows(self, arguments: Sequence[Array], samples: int) -> Sequence[Array]:
        """Return the parameters of each row."""
        segments = RowOffsets(arguments[-1], samples)
        own = [
            array if by_row else segments.spread(array)
            for array, by_row in zip(arguments[:-1], self.by_row, strict=True)
        ]
        return at_rank(own, len(self.shape) + 1)

    def kind(self, parents: Sequence[Node]) -> Kind:
        return self.family.kind

    def single(self, parents: Sequence[Node]) -> Node | None:
        """Return what one row's quantity is like, if rows share all parameters."""
        return None if any(self.by_row) else draw_node(self.family, tuple(parents[:-1]), self.shape)


def drawn_by_rows(root: Node, parameters: Sequence[Node], plate: Plate) -> Node:
    """Return the column of a plate whose cells are each drawn as a root is."""
    assert isinstance(root.operation, Draw)
    family = root.operation.family
    operation = RaggedDraw(family, root.shape, tuple(parameter.operation.by_rows for parameter in parameters))
    shape = plate.typical, *root.shape
    node = Node(operation, (*parameters, plate.size.node), shape, family.dtype, family.levels, family.kind)
    node.bound = root.bound
    return node


FEWEST_ROWS = 8
"""From how many equal rows on a plate is made of them."""


class Likeness:
    """Which rows of a growing table are independent copies of their neighbours."""

    def __init__(self) -> None:
        self._rows: list[Row] = []
        self._roots: list[set[int]] = []
        self._plain: list[Hashable | None] = []
        self._seen: set[int] = set()
        self._shared: set[int] = set()
        self._signatures: list[Hashable | None] = []
        self._of_simple: dict[Hashable, Hashable | None] = {}
        self._descriptions = Descriptions()

    def look_at(self, rows: Sequence[Row]) -> None:
        """Take note of rows that came after those seen before."""
        common = len(self._shared)
        for row in rows[len(self._rows) :]:
            nodes = nodes_of(row)
            plain = self._descriptions.of_plain_roots(nodes)
            roots = {id(node) for node in (ancestors(nodes) if plain is None else nodes) if node.operation.random}
            if not self._seen.isdisjoint(roots):
                self._shared |= roots & self._seen
            self._seen |= roots
            self._rows.append(row)
            self._roots.append(roots)
            self._plain.append(plain if len(roots) == len(nodes) else None)
        if len(self._shared) > common:  # what rows have in common is no difference between them
            self._signatures = []
        self._signatures += [self._signature_of(place) for place in range(len(self._signatures), len(self._rows))]

    def _signature_of(self, place: int) -> Hashable | None:
        """Return a row's signature; rows made of the same operations on the same constants have the same."""
        row, plain = self._rows[place], self._plain[place]
        if plain is None or not self._shared.isdisjoint(self._roots[place]):
            return _signature(row, self._shared)
        key = type(row), tuple(map(type, row)), plain
        if key not in self._of_simple:
            self._of_simple[key] = _signature(row, self._shared)
        return self._of_simple[key]

    @property
    def signatures(self) -> Sequence[Hashable | None]:
        """What is equal for rows of equal distribution, their plain cells aside; None where that is not known."""
        return self._signatures

    @property
    def share_roots(self) -> bool:
        """Whether some random root stands behind more than one row."""
        return bool(self._shared)

    def table(self, size: int) -> PlatedTable | None:
        """Return the first rows with runs of equally distributed ones as plates; None if there is no such run."""
        segments: list[Row | Plate] = []
        for run, are_many in self._runs(size):
            segments.extend([_plate(run, self._shared, Plate((), (), len(run)))] if are_many else run)
        return PlatedTable(segments) if any(isinstance(segment, Plate) for segment in segments) else None

    def ragged(self, size: RandomVariable, largest: int, typical: int, least: int) -> RaggedTable | None:
        """Return the first rows of a random number of them, which is known to lie in a range, likewise."""
        segments: list[Row | Plate] = []
        starts: list[int] = []
        first = 0
        for run, are_many in self._runs(largest, fewest_at_last=2):
            starts.extend([first] if are_many else range(first, first + len(run)))
            if are_many:
                blank = _blank(size, first, len(run) if first + len(run) < largest else None, typical)
                segments.append(_plate(run, self._shared, blank))
            else:
                segments.extend(run)
            first += len(run)
        if not any(isinstance(segment, Plate) for segment in segments):
            return None
        return _ragged_table(size, segments, starts, self._rows[0].keys(), least)

    def _runs(self, size: int, fewest_at_last: int = FEWEST_ROWS) -> Iterator[tuple[Sequence[Row], bool]]:
        """Yield runs of equally distributed rows, and whether they are enough for a plate; the last may go on."""
        start = 0
        for stop in range(1, size + 1):
            if stop < size and self._are_alike(start, stop):
                continue
            run = self._rows[start:stop]
            fewest = FEWEST_ROWS if stop < size else fewest_at_last
            yield run, len(run) >= fewest and self._signatures[start] is not None
            start = stop

    def _are_alike(self, one: int, other: int) -> bool:
        left, right = self._signatures[one], self._signatures[other]
        return left is not None and (left is right or left == right)

    def replaced(self) -> set[int]:
        """Return the identities of the random roots in whose place plates have their own."""
        last = len(self._rows) - 1
        return {
            root
            for k, roots in enumerate(self._roots)
            if (k > 0 and self._are_alike(k, k - 1)) or (k < last and self._are_alike(k, k + 1))
            for root in roots - self._shared
        }


def nodes_of(row: Row) -> list[Node]:
    """Return the nodes of a row's random cells."""
    return [cell.node for cell in row if isinstance(cell, RandomVariable)]


class Descriptions:
    """What is equal for roots of equal distribution, looked up by identity where the same objects come up again.

    Nothing is forgotten, so that no identity is used again.
    """

    def __init__(self) -> None:
        self._families: dict[int, tuple[Family, Family]] = {}
        self._same: dict[Family, Family] = {}
        self._parents: dict[int, tuple[tuple[Node, ...], Hashable | None]] = {}

    def of_plain_roots(self, nodes: Sequence[Node]) -> Hashable | None:
        """Return the families and parameters of random roots; None if some are no roots or depend on others."""
        found = []
        for node in nodes:
            operation = node.operation
            if type(operation) is not Draw or node.shape:
                return None
            held = self._parents.get(id(node.parents))
            parameters = self._described(node.parents) if held is None else held[1]
            if parameters is None:
                return None
            pair = self._families.get(id(operation.family))
            found.append((id(self._representative(operation.family) if pair is None else pair[1]), parameters))
        return tuple(found)

    def _described(self, parents: tuple[Node, ...]) -> Hashable | None:
        known = [parent.operation for parent in parents if type(parent.operation) is ConstantValue]
        parameters: Hashable | None = None
        if len(known) == len(parents):
            parameters = tuple((one.array.tobytes(), one.array.dtype.str, one.array.shape) for one in known)
        self._parents[id(parents)] = parents, parameters
        return parameters

    def _representative(self, family: Family) -> Family:
        """Return the first family that equals this one."""
        self._families[id(family)] = family, self._same.setdefault(family, family)
        return self._families[id(family)][1]


def _signature(row: Row, shared: set[int]) -> Hashable | None:
    """Return what is equal for equally distributed rows; None if the row cannot be part of a plate."""
    places: dict[int, int] = {}
    private: set[int] = set()
    parts: list[Hashable] = [row.keys()]
    for node in ancestors(nodes_of(row)):
        places[id(node)] = len(places)
        own = node.is_random and id(node) not in shared
        if own or any(id(parent) in private for parent in node.parents):
            private.add(id(node))
        operation = operation_signature(node, id(node) in private)
        if operation is None:
            return None
        parts.append((operation, tuple(places[id(parent)] for parent in node.parents)))
    for cell in row:
        if isinstance(cell, RandomVariable):
            if id(cell.node) not in private or cell.node.shape:
                return None
            parts.append(places[id(cell.node)])
        elif isinstance(cell, bool | int | float | str):
            parts.append(type(cell).__name__)
        else:
            return None
    return tuple(parts)


def operation_signature(node: Node, private: bool) -> Hashable | None:
    """Return what is equal for equal operations; None if that is not known.

    A quantity that is not `private` to a row is equal to itself alone.
    """
    operation = node.operation
    if isinstance(operation, ConstantValue):
        return operation.array.tobytes(), operation.array.dtype.str, node.shape, node.levels
    if not private:
        return id(node)
    if isinstance(operation, Lookup):
        return operation.table.tobytes(), operation.table.dtype.str, node.levels
    if isinstance(operation, Match):
        return operation.keys.tobytes(), operation.keys.dtype.str
    return operation if isinstance(operation, Draw | Elementwise | Choose) else None


def _plate(rows: Sequence[Row], shared: set[int], blank: Plate) -> Plate:
    """Make a plate of rows that are distributed as the first one is, of the kind of a blank one."""
    template = rows[0]
    roots = [node for node in ancestors(nodes_of(template)) if node.is_random and id(node) not in shared]
    lanes: dict[Node, Node] = {}
    for root in roots:
        parents = tuple(_column(parent, lanes, blank) for parent in root.parents)
        lanes[root] = _lane_of(_drawn(root, parents, blank), blank)
    cells = [
        RandomVariable(_column(cell.node, lanes, blank)) if isinstance(cell, RandomVariable) else _plain(rows, position)
        for position, cell in enumerate(template)
    ]
    if blank.is_ragged or not roots:  # plain columns alone would be taken for plain rows
        cells = [
            RandomVariable(blank.constant_column(cell)) if isinstance(cell, np.ndarray) else cell for cell in cells
        ]
    return replace(blank, names=template.keys(), cells=tuple(cells))


def _drawn(root: Node, parameters: tuple[Node, ...], blank: Plate) -> Node:
    """Return the column of a root that each row has its own of."""
    assert isinstance(root.operation, Draw)
    if blank.is_ragged:
        return drawn_by_rows(root, parameters, blank)
    return draw_node(root.operation.family, parameters, (blank.size, *root.shape))


def _lane_of(column: Node, blank: Plate) -> Node:
    lane = replace(blank, names=("cell",), cells=(RandomVariable(column),)).row[0]
    assert isinstance(lane, RandomVariable)
    return lane.node


def _column(node: Node, lanes: Mapping[Node, Node], blank: Plate) -> Node:
    """Return the column of a quantity that each row has its own of; what rows share stays as it is."""
    image = substitute([node], lanes)[0]
    return node if image is node else blank.mapped(image)


def _plain(rows: Sequence[Row], position: int) -> Any:
    values = [row[position] for row in rows]
    return values[0] if all(value == values[0] for value in values) else np.array(values)


def copies(template: Row, size: int, shared: set[Node]) -> PlatedTable | None:
    """Return a table all of whose rows are independent copies of one; None if they cannot be held as a plate.

    The copies have the shared nodes in common.
    """
    common = {id(node) for node in shared}
    if size < FEWEST_ROWS or _signature(template, common) is None:
        return None
    return PlatedTable([_plate([template] * size, common, Plate((), (), size))])


def ragged_copies(
    template: Row, size: RandomVariable, shared: set[Node], typical: int, least: int
) -> RaggedTable | None:
    """Return a table of random size all of whose rows are independent copies of one, likewise."""
    common = {id(node) for node in shared}
    if _signature(template, common) is None:
        return None
    plate = _plate([template], common, _blank(size, 0, None, typical))
    return _ragged_table(size, [plate], [0], template.keys(), least)


def _blank(size: RandomVariable, first: int, most: int | None, typical: int) -> Plate:
    """Return a plate without columns for those rows of a table that stand from a position on, at most so many."""
    rows: Any = size if first == 0 else np.maximum(size - first, 0)
    bounded: Any = rows if most is None else np.minimum(rows, most)
    usual = max(1, typical - first)
    return Plate((), (), as_python(bounded), usual if most is None else min(usual, most))


def _ragged_table(
    size: RandomVariable, segments: Sequence[Row | Plate], starts: Sequence[int], names: tuple[str, ...], least: int
) -> RaggedTable:
    there = [
        True if isinstance(segment, Plate) or start < least else size > start
        for segment, start in zip(segments, starts, strict=True)
    ]
    return RaggedTable(size, segments, Outline(tuple(starts), tuple(there), names))
