"""Tables of random size: a random number of rows that are alike, all samples' in one flat array.

A ragged plate is a plate whose size is a random variable. Its columns hold the rows of all samples one after the other,
and only folds see them: a term is computed for all rows at once and reduced for samples of equal size together. So a
program is traced once for tables of every size, in terms of the size.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from privug.model.node import Array, Context, Kind, Node, Operation
from privug.model.operations import SampleFailure
from privug.model.plan import Plan
from privug.model.plates import (
    CHUNK_BYTES,
    Fold,
    Lane,
    Plate,
    PlatedTable,
    behind_term,
    dependent_on_lanes,
    fold_node,
    holds_of_nothing,
    reduced,
)
from privug.model.table import Row, Table, row_maker
from privug.model.traits import traits_of
from privug.model.variable import RandomVariable, as_python, refuse


class Segments:
    """How many rows each sample has, and so where its rows begin and end."""

    def __init__(self, sizes: Array, samples: int | None = None) -> None:
        self.sizes = np.broadcast_to(sizes, len(sizes) if samples is None else samples)

    @cached_property
    def ends(self) -> Array:
        """The position after each sample's last row."""
        return np.cumsum(self.sizes, dtype=np.int64)

    @property
    def starts(self) -> Array:
        """The position of each sample's first row, if it has any."""
        starts: Array = self.ends - self.sizes
        return starts

    @property
    def total(self) -> int:
        """How many rows there are."""
        return int(self.ends[-1]) if len(self.sizes) else 0

    @property
    def owners(self) -> Array:
        """The sample that each row belongs to."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    @property
    def positions(self) -> Array:
        """Where each row stands among those of its sample."""
        positions: Array = np.arange(self.total) - np.repeat(self.starts, self.sizes)
        return positions

    def spread(self, array: Array) -> Array:
        """Return values of samples as values of rows; one for all stays one."""
        return array if len(array) == 1 else np.repeat(array, self.sizes, axis=0)

    def chosen(self, array: Array, which: Any) -> Array:
        """Return the values of the rows of some samples, in the order in which those are given."""
        if isinstance(which, slice) and which == slice(None):
            return array
        picked = np.arange(len(self.sizes))[which]
        part = Segments(self.sizes[picked])
        return np.take(array, np.repeat(self.starts[picked], part.sizes) + part.positions, axis=0)

    def split(self, array: Array) -> list[Array]:
        """Return the values of rows sample by sample."""
        return np.split(array, self.ends[:-1]) if len(self.sizes) else []

    def parts(self, rows: int) -> Iterator[tuple[slice, slice, "Segments"]]:
        """Cut into runs of samples of about so many rows; yield which samples and which rows, and their segments."""
        cuts = np.searchsorted(self.ends, np.arange(rows, self.total, rows)).tolist()
        edges = sorted({0, *cuts, len(self.sizes)})
        starts = self.starts
        for first, last in itertools.pairwise(edges):
            yield slice(first, last), slice(starts[first], self.ends[last - 1]), Segments(self.sizes[first:last])

    def groups(self) -> Iterator[tuple[Any, Any, tuple[int, int]]]:
        """Yield samples with equally many rows: which they are, where their rows are, and how many of both."""
        order = None if (self.sizes[1:] >= self.sizes[:-1]).all() else np.argsort(self.sizes, kind="stable")
        sizes = self.sizes if order is None else self.sizes[order]
        edges = [0, *(np.flatnonzero(np.diff(sizes)) + 1).tolist(), len(sizes)]
        starts = self.starts
        for first, last in itertools.pairwise(edges):
            shape = last - first, int(sizes[first])
            if order is None:
                yield slice(first, last), slice(starts[first], self.ends[last - 1]), shape
            else:
                members = order[first:last]
                yield members, (starts[members, np.newaxis] + np.arange(shape[1])).reshape(-1), shape

    def reduced(self, function: Callable[..., Array], *terms: Array) -> Array:
        """Apply a function of arrays of samples by rows, whose samples have equally many rows, to each group."""
        result: Array | None = None
        for members, rows, shape in self.groups():
            part = function(*(term[rows].reshape(*shape, *term.shape[1:]) for term in terms))
            if result is None:
                result = np.empty((len(self.sizes), *part.shape[1:]), part.dtype)
            result[members] = part
        assert result is not None
        return result


@dataclass(frozen=True, eq=False)
class RaggedFold(Fold):
    """A fold over a random number of rows, which is the last parent; `size` is a typical number."""

    @property
    def by_rows(self) -> bool:
        return self.keeps_rows

    def evaluate(self, arguments: Sequence[Array], context: Context) -> Array:
        *columns, sizes = arguments
        if context.samples == 0:
            return reduced(self.how, np.empty((0, 1, *self.term.shape), self.term.dtype))
        segments = Segments(sizes, context.samples)
        step = max(1, CHUNK_BYTES // self.plan.bytes_per_sample)
        parts = [
            self._reduced_by_sample(part, self._terms_of(columns, samples, rows, part, context))
            for samples, rows, part in segments.parts(step)
        ]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _terms_of(
        self, columns: Sequence[Array], samples: slice, rows: slice, part: Segments, context: Context
    ) -> Array:
        """Compute the terms of the rows of some samples, rows as samples of their own."""
        if part.total == 0:
            return np.empty((0, *self.term.shape), self.term.dtype)
        known: dict[Node, Array] = {}
        for node, array in zip((*self.lanes, *self.shared), columns, strict=True):
            if isinstance(node.operation, Lane):
                known[node] = array[rows]
            else:
                known[node] = part.spread(array if len(array) == 1 else array[samples])
        failed = None if context.failed is None else np.zeros(part.total, np.bool_)
        try:
            terms = self.plan.run(part.total, context.rng, known, failed=failed)[0]
        except SampleFailure as failure:
            position = samples.start + int(part.owners[failure.index])
            raise SampleFailure(position, failure.cause, failure.label) from failure.cause
        if context.failed is not None and failed is not None and failed.any():
            context.failed[samples.start + part.owners[failed]] = True
        return terms

    def _reduced_by_sample(self, part: Segments, terms: Array) -> Array:
        if self.keeps_rows:
            return terms
        extreme = self.traits.extreme

        def each(group: Array) -> Array:
            if extreme and group.shape[1] == 0:
                return np.full((len(group), *group.shape[2:]), _chosen_last(group.dtype, extreme), group.dtype)
            return reduced(self.how, group)

        return part.reduced(each, terms)


def _chosen_last(dtype: np.dtype[Any], extreme: int) -> Any:
    """Return the number that is the largest, or smallest, only if there is no other."""
    if dtype.kind == "f":
        return -np.inf if extreme > 0 else np.inf
    if dtype.kind == "b":
        return extreme < 0
    return np.iinfo(dtype).min + 1 if extreme > 0 else np.iinfo(dtype).max


@dataclass(frozen=True, slots=True, eq=False)
class RaggedConstant(Operation):
    """The plain cells of a column, as many of them as there are rows."""

    array: Array

    @property
    def by_rows(self) -> bool:
        return True

    def evaluate(self, arguments: Sequence[Array], context: Context) -> Array:
        return np.asarray(self.array[Segments(arguments[-1], context.samples).positions])


@dataclass(frozen=True, slots=True)
class RaggedCell(Operation):
    """The cell of one of the rows; what it is where there are not so many means nothing."""

    position: int

    selects = True

    def evaluate(self, arguments: Sequence[Array], context: Context) -> Array:
        column, sizes = arguments
        segments = Segments(sizes, context.samples)
        if not len(column):
            return np.zeros((context.samples, *column.shape[1:]), column.dtype)
        there = segments.sizes > self.position
        return np.asarray(column[np.where(there, segments.starts + self.position, 0)])

    def kind(self, parents: Sequence[Node]) -> Kind:
        return parents[0].kind


@dataclass(frozen=True, eq=False)
class RaggedPlate(Plate):
    """Rows of equal distribution, a random number of them. A cell is a column by rows, or one value for all."""

    size: Any
    typical: int = 1
    """How many rows there are about, to tell what computing with them takes."""

    is_ragged: ClassVar[bool] = True

    def column(self, name: str) -> Any:
        refuse("a whole column of a table of random size")

    @property
    def position(self) -> RandomVariable:
        refuse("the position of a row in a table of random size")

    def part(self, start: int, stop: int) -> Plate:
        refuse("a part of the rows of a table of random size")

    def spelled_out(self, position: int) -> Row:
        return row_maker(self.names)([self.cell_at(cell, position) for cell in self.cells])

    def cell_at(self, cell: Any, position: int) -> Any:
        """Return the cell of a column in one row; what it is where there are not so many rows means nothing."""
        if not isinstance(cell, RandomVariable):
            return cell
        column = cell.node
        parents = column, self.size.node
        picked = Node(RaggedCell(position), parents, column.shape[1:], column.dtype, column.levels, column.kind)
        picked.bound = column.bound
        return RandomVariable(picked)

    def of_constant(self, how: str, term: Any) -> Any:
        traits = traits_of(how)
        if traits.extreme:
            refuse("an extreme of what all rows of a table of random size have in common")
        if not traits.truth:
            return super().of_constant(how, term)
        return term | (self.size == 0) if holds_of_nothing(how) else term & (self.size > 0)

    def folded(self, how: str, term: Node, inside: dict[int, Node]) -> RandomVariable:
        if how == "map":
            refuse("an array of the rows of a table of random size")
        return RandomVariable(self._fold_node(how, term, inside))

    def mapped(self, term: Node) -> Node:
        """Return the column of a term that is computed for every row."""
        return self._fold_node("map", term, dependent_on_lanes(term))

    def _fold_node(self, how: str, term: Node, inside: dict[int, Node]) -> Node:
        lanes, columns, others = behind_term(inside)
        size = self.size.node
        if any(not column.operation.by_rows or column.parents[-1] is not size for column in columns):
            refuse("the rows of two tables together")
        operation = RaggedFold(how, term, lanes, others, self.typical, Plan([term], [*lanes, *others]))
        node = fold_node(operation, (*columns, *others, size))
        if node.dtype.kind == "i" and not traits_of(how).totals:
            node.bound = term.bound
        return node

    def constant_column(self, array: Array) -> Node:
        """Return the column of plain cells, one for each row that there may be."""
        return Node(RaggedConstant(array), (self.size.node,), (self.typical, *array.shape[1:]), array.dtype)


@dataclass(frozen=True, eq=False)
class Outline:
    """Where the segments of a table of random size begin, and under which conditions its single rows are there."""

    starts: tuple[int, ...]
    there: tuple[Any, ...]
    names: tuple[str, ...]

    def find(self, position: int) -> tuple[int, int]:
        """Return the segment in which a row stands, and its position there."""
        place = max(k for k, start in enumerate(self.starts) if start <= position)
        return place, position - self.starts[place]


class RaggedTable(PlatedTable):
    """A table of random size, in segments: single rows, each there under a condition, and ragged plates."""

    __slots__ = ("outline", "size")

    def __init__(self, size: RandomVariable, segments: Sequence[Row | Plate], outline: Outline) -> None:
        super().__init__(segments)
        self.size = size
        self.outline = outline

    @property
    def names(self) -> tuple[str, ...]:
        return self.outline.names

    @property
    def conditions(self) -> tuple[Any, ...]:
        return self.outline.there

    def __len__(self) -> int:
        refuse("the size of a table of random size, as a plain number")

    def __iter__(self) -> Iterator[Row]:
        refuse("the rows of a table of random size, one by one,")

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice) and key.stop is None and key.step is None and isinstance(key.start, int):
            return self._from(key.start)
        refuse("a part of a table of random size")

    def _column(self, name: str) -> Any:
        refuse("a whole column of a table of random size")

    def row_at(self, position: int) -> Row:
        """Return the row at a position, whatever its cells are where there are not so many rows."""
        if position < 0:
            refuse("a row counted from the end of a table of random size")
        place, inside = self.outline.find(position)
        segment = self.segments[place]
        if isinstance(segment, Plate):
            return segment.spelled_out(inside)
        return segment if inside == 0 else refuse("a row that a table of random size hardly ever has")

    def _from(self, start: int) -> "RaggedTable":
        """Return the table without its first rows, if they are single ones."""
        starts, there = self.outline.starts, self.outline.there
        if start < 0 or start not in starts:
            refuse("a part of the rows of a table of random size")
        place = starts.index(start)
        rest = replace(self.outline, starts=tuple(s - start for s in starts[place:]), there=there[place:])
        left: Any = np.maximum(self.size - start, 0)
        return RaggedTable(as_python(left), self.segments[place:], rest)

    def spelled_out(self) -> Table:
        return self


def plain_rows(size: int, segments: Sequence[Any], outline: Outline) -> Table:
    """Return the plain table of one sample: plates come as lists of their rows."""
    table = Table()
    for segment, start in zip(segments, outline.starts, strict=True):
        if isinstance(segment, list):
            table.extend(segment)
        elif size > start:
            table.append(segment)
    return table
