"""Plates: many rows of a table that are independent copies of one another, held as columns.

A plate holds its cells as whole columns. Code that treats all rows alike is traced once, on a row whose cells
are lanes: leaves that stand for one row's cell. What the code computed is then folded over all rows: its
sum, whether it holds for any or all, its extremes, or one value for each row.
"""

import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from privug.model.categories import unify
from privug.model.maybe import where_present
from privug.model.node import Array, ConstantValue, Context, Kind, Node, Operation, ancestors
from privug.model.operations import ArrayFunction, Elementwise, SampleFailure, array_function, index, kind_of_result
from privug.model.plan import Plan
from privug.model.table import NoColumnAttribute, Row, Table, plain_column, row_maker
from privug.model.traits import Role, Traits, traits_of
from privug.model.variable import RandomVariable, as_node, items_at, refuse, stack_values
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
    """Rows of equal distribution. A cell is a column of random variables, a plain column, or one value for all."""

    names: tuple[str, ...]
    cells: tuple[Any, ...]
    size: int

    is_ragged: ClassVar[bool] = False
    """Whether the number of rows is random."""

    @cached_property
    def row(self) -> Row:
        """The row that stands for all: its cells are lanes."""
        return row_maker(self.names)([_lane(cell) for cell in self.cells])

    @cached_property
    def position(self) -> RandomVariable:
        """The place of a row among the others, counted from zero."""
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
        cell = self.cells[self.names.index(name)]
        if isinstance(cell, RandomVariable | np.ndarray):
            return cell
        return plain_column([cell] * self.size)

    def spelled_out(self, position: int) -> Row:
        """Return one row by itself."""
        return row_maker(self.names)([_cell(cell, position) for cell in self.cells])

    def part(self, start: int, stop: int) -> "Plate":
        """Return the rows from one position up to another."""
        cut = [cell[start:stop] if isinstance(cell, RandomVariable | np.ndarray) else cell for cell in self.cells]
        return Plate(self.names, tuple(cut), stop - start)

    def of_constant(self, how: str, term: Any) -> Any:
        """Fold a term that is the same for all rows."""
        if traits_of(how).totals:
            return term * self.size
        return RandomVariable(as_node([term] * self.size)) if how == "map" else term

    def folded(self, how: str, term: Node, inside: dict[int, Node]) -> RandomVariable:
        """Fold a term; `inside` are the nodes behind it that differ from row to row."""
        if traits_of(how).totals:
            linear: RandomVariable | None = _linear_sum(self, term, inside)
            if linear is not None:
                return linear
        if isinstance(term.operation, Lane) and how == "map":
            return RandomVariable(term.operation.column)
        return RandomVariable(_fold_node(self, how, term, inside))


def _lane(cell: Any) -> Any:
    if not isinstance(cell, RandomVariable | np.ndarray):
        return cell
    column = as_node(cell)
    lane = Node(Lane(column), (), column.shape[1:], column.dtype, column.levels, column.kind)
    lane.bound = column.bound
    return RandomVariable(lane)


def _cell(cell: Any, position: int) -> Any:
    if isinstance(cell, RandomVariable):
        return RandomVariable(index(cell.node, position))
    return cell[position] if isinstance(cell, np.ndarray) else cell


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

    The parents are the columns behind the lanes, then the quantities that all rows share.
    """

    how: str
    term: Node
    lanes: tuple[Node, ...]
    shared: tuple[Node, ...]
    size: int
    plan: Plan = field(repr=False)

    @property
    def traits(self) -> Traits:
        return traits_of(self.how)

    @property
    def keeps_rows(self) -> bool:
        """Whether there is a term for each row."""
        return self.how == "map"

    def evaluate(self, arguments: Sequence[Array], context: Context) -> Array:
        samples = min(context.samples, max(len(argument) for argument in arguments))
        step = max(1, CHUNK_BYTES // (self.size * self.plan.bytes_per_sample))
        parts = [
            self._reduced(self._terms(arguments, slice(start, min(start + step, samples)), samples, context))
            for start in range(0, max(1, samples), step)
        ]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _reduced(self, terms: Array) -> Array:
        return reduced(self.how, terms)

    def _terms(self, arguments: Sequence[Array], chosen: slice, samples: int, context: Context) -> Array:
        """Compute the terms of some samples, rows as samples of their own."""
        count = chosen.stop - chosen.start
        known: dict[Node, Array] = {}
        for node, array in zip((*self.lanes, *self.shared), arguments, strict=True):
            if not self.plan.uses(node):
                continue
            part = array[chosen] if len(array) == samples else array
            if node.operation.__class__ is not Lane:
                known[node] = np.repeat(part, self.size, axis=0) if len(part) > 1 else part
            elif len(part) == count:
                known[node] = part.reshape(-1, *part.shape[2:])
            else:
                known[node] = np.repeat(part, count, axis=0).reshape(-1, *part.shape[2:])
        failed = None if context.failed is None else np.zeros(count * self.size, np.bool_)
        try:
            terms = self.plan.run(count * self.size, context.rng, known, failed=failed)[0]
        except SampleFailure as failure:
            position = chosen.start + failure.index // self.size
            raise SampleFailure(position, failure.cause, failure.label) from failure.cause
        if context.failed is not None and failed is not None:
            every = samples < context.samples  # what is the same for every sample fails for every sample
            context.failed[slice(None) if every else chosen] |= failed.reshape(count, self.size).any(axis=1)
        return terms.reshape(count, self.size, *terms.shape[1:])

    def can_fail(self, parents: Sequence[Node]) -> bool:
        return self.plan.can_fail


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
    node = where_present(as_node(term))
    inside = dependent_on_lanes(node)
    return plate.folded(how, node, inside) if id(node) in inside else plate.of_constant(how, term)


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
    lanes, columns, others = behind_term(inside)
    if any(column.shape[:1] != (plate.size,) for column in columns):
        refuse("the rows of two tables together")
    searched = _searched(how, term, plate.size)
    computed = Plan([term if searched is None else searched[0]], [*lanes, *others])
    if searched is None:
        operation = Fold(how, term, lanes, others, plate.size, computed)
    else:
        operation = FirstPlace(how, term, lanes, others, plate.size, computed, searched[1])
    node = fold_node(operation, (*columns, *others))
    if node.dtype.kind == "i" and term.bound is not None:
        node.bound = term.bound * plate.size if operation.traits.totals else term.bound
    return node


def behind_term(inside: dict[int, Node]) -> tuple[tuple[Node, ...], tuple[Node, ...], tuple[Node, ...]]:
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


def fold_node(operation: Fold, parents: tuple[Node, ...]) -> Node:
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


MOST_SPELLED_OUT = 32
"""How many rows of plates may be asked for one by one, before it would be quicker to have all rows apart."""


class PlatedTable(Table):
    """A table in segments, each a row of its own or a plate."""

    __slots__ = ("_spelled_out", "segments")

    def __init__(self, segments: Sequence[Row | Plate]) -> None:
        super().__init__()
        self.segments = list(segments)
        self._spelled_out = 0

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        first = self.segments[0]
        return first.names if isinstance(first, Plate) else first.keys()

    @property
    def conditions(self) -> tuple[Any, ...]:
        """The condition under which each segment is there."""
        return (True,) * len(self.segments)

    def __len__(self) -> int:
        return sum(segment.size if isinstance(segment, Plate) else 1 for segment in self.segments)

    def __iter__(self) -> Iterator[Row]:
        return (self[position] for position in range(len(self)))

    def __getitem__(self, key: Any) -> Any:
        match key:
            case str():
                return self._column(key)
            case slice():
                return self._sliced(*key.indices(len(self)))
            case int() | np.integer():
                return self._row(range(len(self))[key])
        return self._row_at_random(key)

    def _row_at_random(self, key: Any) -> Row:
        """Return the row at a random position."""
        if not isinstance(key, RandomVariable) or dependent_on_lanes(key.node):
            refuse("a row at a random position of a table with many rows")
        cells = items_at([as_node(self._column(name)) for name in self.names], key)
        return row_maker(self.names)(cells)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name not in self.names:
            raise NoColumnAttribute(name, self.names)
        return self._column(name)

    def _row(self, position: int) -> Row:
        for segment in self.segments:
            if isinstance(segment, Plate):
                if position < segment.size:
                    self._spelled_out += 1
                    if self._spelled_out > MOST_SPELLED_OUT:
                        refuse("row after row of a table with many rows")
                    return segment.spelled_out(position)
                position -= segment.size
            elif position == 0:
                return segment
            else:
                position -= 1
        raise IndexError("list index out of range")

    def _sliced(self, start: int, stop: int, step: int) -> "Table":
        if step != 1:
            refuse("a slice with a step of a table with many rows")
        chosen: list[Row | Plate] = []
        for segment in self.segments:
            size = segment.size if isinstance(segment, Plate) else 1
            low, high = max(start, 0), min(stop, size)
            if low < high:
                chosen.append(segment.part(low, high) if isinstance(segment, Plate) else segment)
            start, stop = start - size, stop - size
        return PlatedTable(chosen) if chosen else Table([])

    def _column(self, name: str) -> Any:
        if name not in self.names:
            raise KeyError(f"{name!r}; it has {', '.join(self.names)}")
        parts = [segment.column(name) if isinstance(segment, Plate) else [segment[name]] for segment in self.segments]
        if len(parts) == 1:
            return parts[0]
        if not any(isinstance(cell, RandomVariable) for part in parts for cell in _looked_at(part)):
            return np.concatenate([np.asarray(part) for part in parts])
        nodes = unify([as_node(p) if isinstance(p, RandomVariable) else stack_values(list(p)) for p in parts])
        joined = array_function(ArrayFunction("concatenate", _joined), nodes)
        return RandomVariable(joined)

    def cells(self) -> list[Any]:
        """Return the cells of single rows and the columns of plates."""
        return [cell for part in self.segments for cell in (part.cells if isinstance(part, Plate) else part)]

    def spelled_out(self) -> Table:
        """Return the table with every row by itself."""
        rows: list[Row] = []
        for segment in self.segments:
            if isinstance(segment, Plate):
                rows.extend(segment.spelled_out(position) for position in range(segment.size))
            else:
                rows.append(segment)
        return Table(rows)


def _looked_at(part: Any) -> Any:
    return [part] if isinstance(part, RandomVariable) else part


def _joined(*arrays: Any) -> Any:
    samples = max(len(array) for array in arrays)
    return np.concatenate([np.broadcast_to(array, (samples, *array.shape[1:])) for array in arrays], axis=1)


def _refused(name: str) -> Any:
    def method(self: PlatedTable, *arguments: Any, **named: Any) -> Any:
        refuse(f"{name.strip('_')}() of a table with many rows")

    method.__name__ = name
    return method


for _name in (
    "append", "extend", "insert", "pop", "remove", "clear", "sort", "reverse", "index", "count", "copy", "__add__",
    "__mul__", "__rmul__", "__contains__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__reversed__",
    "__iadd__", "__imul__", "__setitem__", "__delitem__",
):  # fmt: skip
    setattr(PlatedTable, _name, _refused(_name))
