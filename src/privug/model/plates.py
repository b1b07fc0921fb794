"""Plates: many rows of a table that are independent copies of one another, held as columns.

A plate holds its cells as whole columns. Code that treats all rows alike is traced once, on a row whose cells
are lanes: leaves that stand for one row's cell. What the code computed is then folded over all rows: its
sum, whether it holds for any or all, its extremes, or one value for each row. The number of rows may be random: the
rows of all samples then stand one after the other, and a term is computed for all of them at once.
"""

import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from privug.model.maybe import where_present
from privug.model.node import Array, ConstantValue, Context, Kind, Node, Operation, ancestors
from privug.model.operations import ArrayFunction, Elementwise, SampleFailure, index, kind_of_result
from privug.model.plan import Plan
from privug.model.row_offsets import EqualRows, RowOffsets
from privug.model.table import Row, plain_column, row_maker
from privug.model.traits import Role, Traits, traits_of
from privug.model.variable import RandomVariable, as_node, refuse
from privug.scoping import Held, holding

CHUNK_BYTES = 1 << 21
MANY_ROWS = 1 << 12  # from so many on, counting each sample by itself is quicker than adding
_BOOL: np.dtype[Any] = np.dtype(bool)
_INT: np.dtype[Any] = np.dtype(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Lane(Operation):
    """One row's cell in a column; it has a value only while a fold goes through the rows."""

    column: Node

    def evaluate(self, arguments: Sequence[Array], context: Context) -> Array:
        raise AssertionError("a row's cell was used outside the loop over its rows")


@dataclass(frozen=True, slots=True, eq=False)
class Pending(Operation):
    """A condition on the rows before the one at hand; what it means is known once all code for a row was traced."""

    meaning: Callable[[], Node]

    def evaluate(self, arguments: Sequence[Array], context: Context) -> Array:
        raise AssertionError("what earlier rows did was used before it was known")


@dataclass(frozen=True, eq=False)
class Plate:
    """Rows of equal distribution. A cell is a column of random variables, a plain column, or one value for all.

    If the number of rows is random, a column holds the rows of all samples one after the other, and only folds and
    single cells look at it.
    """

    names: tuple[str, ...]
    cells: tuple[Any, ...]
    size: Any
    """The number of rows, which may be random."""
    usual: int = 1
    """How many rows there are about, if that is random: to tell what computing with them takes."""

    @property
    def is_ragged(self) -> bool:
        """Whether the number of rows is random."""
        return isinstance(self.size, RandomVariable)

    @property
    def typical(self) -> int:
        """How many rows there are, or about how many."""
        return self.usual if self.is_ragged else int(self.size)

    @cached_property
    def row(self) -> Row:
        """The row that stands for all: its cells are lanes."""
        return row_maker(self.names)([_lane(cell) for cell in self.cells])

    @cached_property
    def position(self) -> RandomVariable:
        """The place of a row among the others, counted from zero."""
        if self.is_ragged:
            refuse("the position of a row in a table of random size")
        place: RandomVariable = _lane(np.arange(self.size))
        place.node.bound = self.size
        return place

    @cached_property
    def _places(self) -> dict[tuple[int, int], tuple[RandomVariable, Any]]:
        return {}

    def position_in(self, table: Any, first: int) -> RandomVariable:
        """Return the position of a row in a table in which the plate's rows begin at some position."""
        if (id(table), first) not in self._places:
            place = self.position + first if first else RandomVariable(self.position.node)
            place.node.bound = first + self.size
            self._places[id(table), first] = place, table
        return self._places[id(table), first][0]

    def is_position_in(self, table: Any, key: Any) -> bool:
        """Say whether a subscript is the position in a table of the row at hand, as it was handed out."""
        return any(place.node is key.node and known is table for place, known in self._places.values())

    def column(self, name: str) -> Any:
        """Return the cells of one column, as an array."""
        if self.is_ragged:
            refuse("a whole column of a table of random size")
        cell = self.cells[self.names.index(name)]
        if isinstance(cell, RandomVariable | np.ndarray):
            return cell
        return plain_column([cell] * self.size)

    def spelled_out(self, position: int) -> Row:
        """Return one row by itself."""
        return row_maker(self.names)([self.cell_at(cell, position) for cell in self.cells])

    def cell_at(self, cell: Any, position: int) -> Any:
        """Return the cell of a column in one row; what it is where there are not so many rows means nothing."""
        if not isinstance(cell, RandomVariable):
            return cell[position] if isinstance(cell, np.ndarray) else cell
        column = cell.node
        if not self.is_ragged:
            return RandomVariable(index(column, position))
        parents = column, self.size.node
        picked = Node(RaggedCell(position), parents, column.shape[1:], column.dtype, column.levels, column.kind)
        picked.bound = column.bound
        return RandomVariable(picked)

    def part(self, start: int, stop: int) -> "Plate":
        """Return the rows from one position up to another."""
        cut = [cell[start:stop] if isinstance(cell, RandomVariable | np.ndarray) else cell for cell in self.cells]
        return Plate(self.names, tuple(cut), stop - start)

    def constant_column(self, array: Array) -> Node:
        """Return the column of plain cells, one for each row that there may be."""
        if not self.is_ragged:
            return as_node(array)
        return Node(RaggedConstant(array), (self.size.node,), (self.typical, *array.shape[1:]), array.dtype)

    def mapped(self, term: Node) -> Node:
        """Return the column of a term that is computed for every row."""
        if isinstance(term.operation, Lane):
            return term.operation.column
        return _fold_node(self, "map", term, dependent_on_lanes(term))

    def folded(self, how: str, term: Any) -> Any:
        """Return a term folded over the rows."""
        if how == "map" and self.is_ragged:
            refuse("an array of the rows of a table of random size")
        node = where_present(as_node(term))
        inside = dependent_on_lanes(node)
        if id(node) not in inside:
            return self._of_constant(how, term)
        if how == "map":
            return RandomVariable(self.mapped(node))
        if traits_of(how).totals and not self.is_ragged:
            linear: RandomVariable | None = _linear_sum(self, node, inside)
            if linear is not None:
                return linear
        return RandomVariable(_fold_node(self, how, node, inside))

    def _of_constant(self, how: str, term: Any) -> Any:
        """Fold a term that is the same for all rows."""
        traits = traits_of(how)
        if traits.totals:
            return term * self.size
        if not self.is_ragged:
            return RandomVariable(as_node([term] * self.size)) if how == "map" else term
        if traits.extreme:
            refuse("an extreme of what all rows of a table of random size have in common")
        return term | (self.size == 0) if holds_of_nothing(how) else term & (self.size > 0)


def _lane(cell: Any) -> Any:
    if not isinstance(cell, RandomVariable | np.ndarray):
        return cell
    column = as_node(cell)
    lane = Node(Lane(column), (), column.shape[1:], column.dtype, column.levels, column.kind)
    lane.bound = column.bound
    return RandomVariable(lane)


@dataclass(frozen=True, slots=True, eq=False)
class RaggedConstant(Operation):
    """The plain cells of a column, as many of them as there are rows."""

    array: Array

    @property
    def by_rows(self) -> bool:
        return True

    def evaluate(self, arguments: Sequence[Array], context: Context) -> Array:
        return np.asarray(self.array[RowOffsets(arguments[-1], context.samples).positions])


@dataclass(frozen=True, slots=True)
class RaggedCell(Operation):
    """The cell of one of a random number of rows; what it is where there are not so many means nothing."""

    position: int

    selects = True

    def evaluate(self, arguments: Sequence[Array], context: Context) -> Array:
        column, sizes = arguments
        rows = RowOffsets(sizes, context.samples)
        if not len(column):
            return np.zeros((context.samples, *column.shape[1:]), column.dtype)
        there = rows.sizes > self.position
        return np.asarray(column[np.where(there, rows.starts + self.position, 0)])

    def kind(self, parents: Sequence[Node]) -> Kind:
        return parents[0].kind


current_plate: Held[Plate | None] = Held(None)
"""While code is traced once for all rows of a plate: that plate."""


@dataclass(frozen=True, eq=False)
class Pass:
    """One time that code is traced for all rows of a plate: what is to be done when all of it was."""

    plate: Plate
    endings: list[Callable[[], None]] = field(default_factory=list)
    changed: dict[int, Any] = field(default_factory=dict)
    """The plain containers that rows change, by their identity, each as what stands for it meanwhile."""


current_pass: Held[Pass | None] = Held(None)
"""While code is traced once for all rows of a plate: that pass."""


@contextmanager
def going_through(plate: Plate) -> Iterator[None]:
    """Trace code once for all rows of a plate."""
    if current_plate.get() is not None:
        refuse("two loops over many rows, one inside the other,")
    passing = Pass(plate)
    with holding(current_plate, plate), holding(current_pass, passing):
        yield
    for ending in passing.endings:
        ending()


@dataclass(frozen=True, eq=False)
class Fold(Operation):
    """A term computed for every row of a plate, and the terms reduced to one; `map` keeps one for each row.

    The parents are the columns behind the lanes, then the quantities that all rows share, then the number of rows if
    that is random; `size` is then a typical one.
    """

    how: str
    term: Node
    lanes: tuple[Node, ...]
    shared: tuple[Node, ...]
    size: int
    plan: Plan = field(repr=False)
    is_ragged: bool = False

    @property
    def traits(self) -> Traits:
        return traits_of(self.how)

    @property
    def keeps_rows(self) -> bool:
        """Whether there is a term for each row."""
        return self.how == "map"

    @property
    def by_rows(self) -> bool:
        return self.is_ragged and self.keeps_rows

    def rows(self, arguments: Sequence[Array], samples: int) -> EqualRows | RowOffsets:
        """Return where the rows of samples stand in the columns."""
        if self.is_ragged:
            return RowOffsets(arguments[-1], samples)
        return EqualRows(self.size, min(samples, max(map(len, arguments))))

    def of_rows(self, rows: EqualRows | RowOffsets, arguments: Sequence[Array]) -> dict[Node, Array]:
        """Return the values that each row has of what the term is computed from."""
        known = zip((*self.lanes, *self.shared), arguments, strict=not self.is_ragged)
        return {
            node: rows.own(array) if node.operation.__class__ is Lane else rows.shared(array)
            for node, array in known
            if self.plan.uses(node)
        }

    def evaluate(self, arguments: Sequence[Array], context: Context) -> Array:
        if self.is_ragged and context.samples == 0:
            return reduced(self.how, np.empty((0, 1, *self.term.shape), self.term.dtype))
        rows = self.rows(arguments, context.samples)
        at_once = max(1, CHUNK_BYTES // self.plan.bytes_per_sample)
        parts = [self._reduced_part(part, self._terms(arguments, part, context)) for part in rows.parts(at_once)]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _reduced_part(self, part: EqualRows | RowOffsets, terms: Array) -> Array:
        return terms if self.by_rows else part.reduced(self._reduced, terms)

    def _reduced(self, terms: Array) -> Array:
        if terms.shape[1] == 0 and self.traits.extreme:
            fill = _chosen_last(terms.dtype, self.traits.extreme)
            return np.full((len(terms), *terms.shape[2:]), fill, terms.dtype)
        return reduced(self.how, terms)

    def _terms(self, arguments: Sequence[Array], part: EqualRows | RowOffsets, context: Context) -> Array:
        """Compute the terms of the rows of some samples, rows as samples of their own."""
        if self.is_ragged and part.total == 0:
            return np.empty((0, *self.term.shape), self.term.dtype)
        failed = None if context.failed is None else np.zeros(part.total, np.bool_)
        try:
            terms = self.plan.run(part.total, context.rng, self.of_rows(part, arguments), failed=failed)[0]
        except SampleFailure as failure:
            raise SampleFailure(int(part.owners_of(failure.index)), failure.cause, failure.label) from failure.cause
        if context.failed is not None and failed is not None and failed.any():
            # What is the same for every sample fails for every sample.
            every = isinstance(part, EqualRows) and part.samples < context.samples
            context.failed[slice(None) if every else part.owners_of(np.flatnonzero(failed))] = True
        return terms

    def can_fail(self, parents: Sequence[Node]) -> bool:
        return self.plan.can_fail


def _chosen_last(dtype: np.dtype[Any], extreme: int) -> Any:
    """Return the number that is the largest, or smallest, only if there is no other."""
    if dtype.kind == "f":
        return -np.inf if extreme > 0 else np.inf
    if dtype.kind == "b":
        return extreme < 0
    return np.iinfo(dtype).min + 1 if extreme > 0 else np.iinfo(dtype).max


@dataclass(frozen=True, eq=False)
class FirstPlace(Fold):
    """The smallest place of a row for which a condition holds, another number if there is none: it is searched for.

    The plan computes the condition alone.
    """

    otherwise: int = 0

    def _reduced(self, terms: Array) -> Array:
        places = terms.argmax(axis=1)
        return np.where(terms[np.arange(len(terms)), places], places, self.otherwise)


def _searched(how: str, term: Node, size: int) -> tuple[Node, int] | None:
    """Return the condition of a search for the first place at which it holds, and the number if there is none."""
    if traits_of(how).extreme >= 0 or term.operation.traits.role is not Role.CHOICE:
        return None
    _, place, otherwise = (parent.operation for parent in term.parents)
    if not isinstance(place, Lane) or not isinstance(place.column.operation, ConstantValue):
        return None
    numbers = place.column.operation.array
    if not isinstance(otherwise, ConstantValue) or otherwise.array[0] < size or len(numbers) > 1:
        return None
    is_place = numbers.dtype == _INT and np.array_equal(numbers[0], np.arange(size))
    return (term.parents[0], int(otherwise.array[0])) if is_place else None


def reduced(how: str, terms: Array) -> Array:
    """Reduce terms of samples by rows to one for each sample; `map` keeps them all."""
    traits = traits_of(how)
    if how == "map":
        return terms
    if traits.totals and terms.dtype == bool and terms.ndim == 2:
        return _counted(terms)
    if traits.totals:  # whole numbers are kept from wrapping around
        return ArrayFunction("sum", np.sum, (("axis", 1),)).evaluate([terms], Context(len(terms), None))  # type: ignore[arg-type]
    result: Array = traits.function(terms, axis=1)
    return result


def holds_of_nothing(how: str) -> bool:
    """Say whether a fold of truth values holds if there are none, as it does for all of them."""
    return bool(traits_of(how).function(np.empty(0, np.bool_)))


def _counted(terms: Array) -> Array:
    """Count the true terms of each sample, in the narrowest numbers that hold the count."""
    if terms.shape[1] >= MANY_ROWS:
        return np.fromiter(map(np.count_nonzero, terms), np.int64, len(terms))
    counts: Array = np.add.reduce(terms.view(np.uint8), axis=1, dtype=np.uint16)
    return counts.astype(np.int64)


def fold(plate: Plate, how: str, term: Any) -> Any:
    """Fold a term over the rows of a plate: 'sum', 'any', 'all', 'min', 'max' or 'map'."""
    return plate.folded(how, term)


def dependent_on_lanes(node: Node) -> dict[int, Node]:
    """Return the nodes behind a term that differ from row to row, by their identity."""
    dependent: dict[int, Node] = {}
    for ancestor in ancestors([node]):
        if isinstance(ancestor.operation, Pending):
            refuse("what earlier ones of many rows did")
        if isinstance(ancestor.operation, Lane) or any(id(parent) in dependent for parent in ancestor.parents):
            dependent[id(ancestor)] = ancestor
    return dependent


def _fold_node(plate: Plate, how: str, term: Node, inside: dict[int, Node]) -> Node:
    lanes, columns, others = _behind_term(inside)
    sizes = (plate.size.node,) if plate.is_ragged else ()
    if not all(_is_column_of(plate, column) for column in columns):
        refuse("the rows of two tables together")
    searched = None if plate.is_ragged else _searched(how, term, plate.size)
    computed = Plan([term if searched is None else searched[0]], [*lanes, *others])
    operation = Fold(how, term, lanes, others, plate.typical, computed, plate.is_ragged)
    if searched is not None:
        operation = FirstPlace(how, term, lanes, others, plate.size, computed, otherwise=searched[1])
    node = _made(operation, (*columns, *others, *sizes))
    totals = operation.traits.totals
    if node.dtype.kind == "i" and term.bound is not None and not (totals and plate.is_ragged):
        node.bound = term.bound * plate.size if totals else term.bound
    return node


def _is_column_of(plate: Plate, column: Node) -> bool:
    if plate.is_ragged:
        return column.operation.by_rows and column.parents[-1] is plate.size.node
    return column.shape[:1] == (plate.size,)


def _behind_term(inside: dict[int, Node]) -> tuple[tuple[Node, ...], tuple[Node, ...], tuple[Node, ...]]:
    """Return the lanes that a term depends on, their columns, and what all rows share; constants aside."""
    lanes = [node for node in inside.values() if isinstance(node.operation, Lane)]
    columns = tuple(node.operation.column for node in lanes if isinstance(node.operation, Lane))
    shared = {
        id(parent): parent
        for node in inside.values()
        for parent in node.parents
        if id(parent) not in inside and not isinstance(parent.operation, ConstantValue)
    }
    return tuple(lanes), columns, tuple(shared.values())


def _made(operation: Fold, parents: tuple[Node, ...]) -> Node:
    """Make the node of a fold."""
    term, traits = operation.term, operation.traits
    if operation.keeps_rows:
        return Node(operation, parents, (operation.size, *term.shape), term.dtype, term.levels, term.kind)
    if traits.truth:
        return Node(operation, parents, term.shape, _BOOL, None, Kind.DISCRETE)
    dtype = _INT if traits.totals and term.dtype.kind in "bi" else term.dtype
    return Node(operation, parents, term.shape, dtype, None, kind_of_result(traits, [term]))


def _linear_sum(plate: Plate, node: Node, inside: dict[int, Node]) -> Any:
    """Return the sum of a term that is linear in the lanes, as sums of whole columns; None if it is not."""
    if id(node) not in inside:
        return RandomVariable(node) * plate.size
    match node.operation:
        case Lane(column=column) if column.levels is None and column.shape == (plate.size,):
            total = RandomVariable(column).sum()
            total.node.numpy = node.numpy  # what Python adds up are the numbers of rows, not an array
            return total
        case Elementwise(traits=traits) if traits.weights is not None:
            parts = [_linear_sum(plate, parent, inside) for parent in node.parents]
            return None if any(part is None for part in parts) else getattr(operator, traits.python)(*parts)
        case Elementwise(traits=traits) if traits.factor:
            left, right = node.parents
            if traits.factor == 1 and id(left) not in inside:
                left, right = right, left
            part = _linear_sum(plate, left, inside) if id(right) not in inside else None
            if part is None:
                return None
            return part * RandomVariable(right) if traits.factor == 1 else part / RandomVariable(right)
    return None
