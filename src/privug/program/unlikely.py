"""Inputs that hardly ever come up: what a traced program is compared on besides draws from the prior.

Columns are cells of one name that are alike. Each takes a few of its values in some pattern: one for all cells, one for
all but one, ties, runs, the extremes; or it is drawn. Continuous quantities come close to one another but are never
equal: what a program does with equal ones has probability zero. Every value is possible given all others.
"""

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property, partial

import numpy as np

from privug.errors import PrivugError
from privug.model.node import Array, ConstantValue, Context, Kind, Node, ancestors
from privug.model.operations import SampleFailure
from privug.model.plates import Plate
from privug.model.ragged import RaggedPlate
from privug.model.segments import Segments
from privug.model.structure import Structure
from privug.model.variable import RandomVariable
from privug.prior.family import Draw, Family, at_rank
from privug.prior.ragged import RaggedDraw
from privug.program.calls import Arguments

MOST_VALUES = 400  # that are tried one by one
NEGLIGIBLE = 14.0  # values rarer than exp(-14), one in a million, are no values
LADDER = np.array([-4.0, -2.0, -0.7, 0.0, 0.7, 2.0, 4.0])  # standard normal numbers for those of other quantities
CLOSE = 0.01  # how far continuous quantities lie apart, in standard deviations, where others are equal
GOLDEN = (math.sqrt(5) - 1) / 2  # its multiples, modulo one, are all different and spread evenly


class Pattern(IntEnum):
    """How a column takes its values in one check."""

    DRAWN = 0
    CONSTANT = 1
    ODD_ONE = 2
    RUNS = 3
    TIES = 4
    EACH = 5  # every value in its turn, in all checks together


MIXED = (Pattern.DRAWN, Pattern.CONSTANT, Pattern.ODD_ONE, Pattern.RUNS, Pattern.TIES, Pattern.TIES)
LOW, MIDDLE, HIGH = 0.0, 0.5, 1.0
FIRST = (
    *((Pattern.CONSTANT, *ends, swap) for swap in (0, 1, 2, 4) for ends in ((LOW, HIGH), (HIGH, LOW))),
    *((pattern, *ends, 0) for pattern in (Pattern.RUNS, Pattern.ODD_ONE) for ends in ((LOW, HIGH), (HIGH, LOW))),
    (Pattern.CONSTANT, MIDDLE, MIDDLE, 0),
    (Pattern.TIES, LOW, HIGH, 0),
)
"""What columns do in the first checks: a pattern, two levels, and which bit of its number has a column swap them.

So any two of the first eight columns are at the same end and at opposite ones, either way.
"""


@dataclass(frozen=True, eq=False)
class _Column:
    """Roots that are alike, with the parameters that all of them have, if those are known."""

    family: Family
    parameters: list[Array] | None
    roots: list[Node]

    @cached_property
    def values(self) -> Array | None:
        """The values that are possible, if they are few."""
        family, parameters = self.family, self.parameters
        if parameters is None or not family.listable or family.sizes(parameters, NEGLIGIBLE).max() > MOST_VALUES:
            return None
        return np.unique(family.support(parameters, 1, NEGLIGIBLE).possible().values)

    @property
    def levels(self) -> int:
        """How many levels there are to choose from."""
        return len(LADDER) if self.values is None else len(self.values)

    @cached_property
    def cells(self) -> int:
        """How many cells there are, those of tables of random size aside."""
        return sum(math.prod(root.shape) for root in self.roots if isinstance(root.operation, Draw))

    @cached_property
    def _ladder(self) -> Array:
        """What each cell has at each level."""
        assert self.parameters is not None
        levels, places = np.indices((len(LADDER), self.cells))
        return self.family.of_normals(self.normals(levels, places), self.parameters)

    def taken(self, levels: Array, places: Array, parameters: Sequence[Array]) -> Array:
        """Return what cells at some places have at some levels, given their parameters."""
        if self.values is not None:
            return np.asarray(self.values[levels])
        if self.parameters is not None and places.size and places.max() < self.cells:
            return np.asarray(self._ladder[levels, places])
        return self.family.of_normals(self.normals(levels, places), parameters)

    def normals(self, levels: Array, places: Array) -> Array:
        """Return the normal numbers of some levels; those of continuous quantities differ from place to place."""
        apart = CLOSE if self.family.kind is not Kind.DISCRETE else 0.0
        numbers: Array = LADDER[levels] + apart * (GOLDEN * (places + 1) % 1)
        return numbers if self.family.latents == 1 else np.stack([numbers] * self.family.latents, axis=-1)


@dataclass(frozen=True, eq=False)
class _Course:
    """What a column does in each check: its pattern, three levels, and how far down in the column something happens."""

    patterns: Array
    levels: Array
    depth: Array

    def at(self, checks: Array, places: Array, counts: Array, most: int, rng: np.random.Generator) -> Array:
        """Return the levels of cells in some checks, at some of so many places, of a column of `most` levels."""
        first, second = self.levels[0][checks], self.levels[1][checks]
        there = np.minimum((self.depth[checks] * counts).astype(np.int64), counts - 1)
        patterns = self.patterns[checks]
        ways = {
            Pattern.CONSTANT: first,
            Pattern.ODD_ONE: np.where(places == there, second, first),
            Pattern.RUNS: np.where(places <= there, first, second),
            Pattern.TIES: self.levels[rng.integers(3, size=len(checks)), checks],
            Pattern.EACH: _in_turn(places, patterns != Pattern.EACH, rng) % most,
        }
        return np.select([patterns == pattern for pattern in ways], list(ways.values()), first)

    def drawn(self, checks: Array) -> Array:
        """Say which cells in some checks are drawn."""
        return np.asarray(self.patterns[checks] == Pattern.DRAWN)


def _in_turn(places: Array, last: Array, rng: np.random.Generator) -> Array:
    """Number the cells place by place, those at one place in any order but for such that come last."""
    order = np.lexsort((rng.random(len(places)), last, places))
    turns = np.empty(len(places), np.int64)
    turns[order] = np.arange(len(places))
    return turns


class Unlikely:
    """The roots behind the inputs and draws of a program, and values for them that hardly ever come up."""

    def __init__(self, arguments: Arguments, draws: Sequence[Node], given: Iterable[Node] = ()) -> None:
        self._order = ancestors([*arguments.nodes, *draws])
        self._columns = self._found(_names(arguments), set(given))

    @property
    def most_values(self) -> int:
        """How many values a root has at most, of those that are tried one by one."""
        return max((column.levels for column in self._columns if column.values is not None), default=0)

    def values(
        self, each: int, patterned: int, given: Mapping[Node, Array], rng: np.random.Generator
    ) -> dict[Node, Array]:
        """Return values for roots: first rare ones of discrete roots as often as others, then patterns of columns.

        Values of some roots are given. What has parameters that cannot be had is left to be drawn.
        """
        depth, together = rng.random(each + patterned), rng.choice(MIXED, patterned)
        courses = [self._course(number, each, together, depth, rng) for number in range(len(self._columns))]
        chosen = {
            root: cells
            for column, course in zip(self._columns, courses, strict=True)
            for root, cells in _laid_out(column, course, rng)
        }
        needed = set(ancestors(chosen)) - set(given)
        values, context = dict(given), Context(each + patterned, rng)
        for node in [node for node in self._order if node in needed]:
            if node.operation.opaque or not all(parent in values for parent in node.parents):
                continue
            arguments = [values[parent] for parent in node.parents]
            try:
                drawn = node.operation.evaluate(arguments, context)
            except (SampleFailure, PrivugError):
                continue
            values[node] = chosen[node](arguments, drawn) if node in chosen else drawn
        return {node: array for node, array in values.items() if node.is_random}

    def _course(self, number: int, each: int, together: Array, depth: Array, rng: np.random.Generator) -> _Course:
        """Return what a column does: after its values one by one, what all do in the first checks, then anything."""
        column, patterned = self._columns[number], len(together)
        patterns = np.where(rng.random(patterned) < 0.5, rng.choice(MIXED, patterned), together)
        levels = rng.integers(column.levels, size=(3, each + patterned))
        for check, (pattern, one, other, swap) in enumerate(FIRST[:patterned]):
            first, second = (other, one) if swap & number else (one, other)
            patterns[check] = pattern
            levels[:, each + check] = [round(level * (column.levels - 1)) for level in (first, second, first)]
        before = np.full(each, Pattern.DRAWN if column.values is None else Pattern.EACH)
        return _Course(np.concatenate([before, patterns]), levels, depth)

    def _found(self, names: Mapping[Node, Hashable], given: set[Node]) -> list[_Column]:
        """Return the columns; sizes of tables are left to others, because rows beyond some size were not looked at."""
        columns: dict[Hashable, _Column] = {}
        sizes = set(ancestors(node.parents[-1] for node in self._order if node.operation.by_rows))
        for root in self._order:
            if isinstance(root.operation, Draw | RaggedDraw) and root not in sizes and root not in given:
                family, (parameters, key) = root.operation.family, _parameters(root)
                column = columns.setdefault((names.get(root), family, key), _Column(family, parameters, []))
                column.roots.append(root)
        return [column for column in columns.values() if column.values is not None or column.family.latents]


_Maker = Callable[[Sequence[Array], Array], Array]
"""Takes the arguments of a root and what was drawn for it; returns the values it has instead."""


def _laid_out(column: _Column, course: _Course, rng: np.random.Generator) -> Iterator[tuple[Node, _Maker]]:
    """Yield what makes the values of each root of a column."""
    checks = len(course.patterns)
    which, places = np.repeat(np.arange(checks), column.cells), np.tile(np.arange(column.cells), checks)
    levels = course.at(which, places, np.full(len(which), column.cells), column.levels, rng).reshape(checks, -1)
    offset = 0
    for root in column.roots:
        if isinstance(root.operation, RaggedDraw):
            yield root, partial(_by_rows, root.operation, column, course, rng)
        else:
            cells = slice(offset, offset + math.prod(root.shape))
            yield root, partial(_by_checks, column, course, levels[:, cells], np.arange(column.cells)[cells])
            offset = cells.stop


def _by_checks(
    column: _Column, course: _Course, levels: Array, places: Array, arguments: Sequence[Array], drawn: Array
) -> Array:
    """Return the values of a root whose cells have some levels and stand at some places of a column."""
    shape = drawn.shape
    kept = course.drawn(np.arange(len(levels))).reshape(-1, *(1,) * (drawn.ndim - 1))
    places = np.broadcast_to(places.reshape(shape[1:]), shape)
    made = column.taken(levels.reshape(shape), places, at_rank(arguments, drawn.ndim))
    return np.where(kept, drawn, made).astype(drawn.dtype, copy=False)


def _by_rows(
    operation: RaggedDraw,
    column: _Column,
    course: _Course,
    rng: np.random.Generator,
    arguments: Sequence[Array],
    drawn: Array,
) -> Array:
    """Return the values of a root that has a cell for each row of tables of random size."""
    segments = Segments(arguments[-1], len(course.patterns))
    which, places = segments.owners, segments.positions
    levels = course.at(which, places, segments.sizes[which], column.levels, rng)
    rank = (-1, *(1,) * (drawn.ndim - 1))
    levels, places = (np.broadcast_to(one.reshape(rank), drawn.shape) for one in (levels, places))
    made = column.taken(levels, places, operation.of_rows(arguments, len(course.patterns)))
    return np.where(course.drawn(which).reshape(rank), drawn, made).astype(drawn.dtype, copy=False)


def _parameters(root: Node) -> tuple[list[Array] | None, Hashable]:
    """Return the parameters of a root, if they are known and the same for all of its cells, and what tells them."""
    nodes = root.parents[:-1] if root.operation.by_rows else root.parents
    known = [node.operation.array for node in nodes if isinstance(node.operation, ConstantValue)]
    assert isinstance(root.operation, Draw | RaggedDraw)
    table = root.operation.family.table
    single = len(known) == len(nodes) and all(one.size == (1 if table is None else len(table)) for one in known)
    key = tuple((one.tobytes(), one.shape) for one in known)
    return (known if single else None), (key, len(known), None if single else root.shape)


def _names(arguments: Arguments) -> dict[Node, Hashable]:
    """Return what the columns are called in which inputs stand that are roots."""
    positional, named = arguments.structure.children
    inputs = [*enumerate(positional.children), *zip(named.keys, named.children, strict=True)]
    names = [name for place, structure in inputs for name in _names_in(structure, (place,))]
    leaves = zip(arguments.leaves, names, strict=True)
    return {leaf.node: name for leaf, name in leaves if isinstance(leaf, RandomVariable)}


def _names_in(structure: Structure, name: tuple[Hashable, ...]) -> Iterator[tuple[Hashable, ...]]:
    """Yield the name of each leaf: those of columns and keys count, positions do not."""
    if structure.container is None:
        yield name
        return
    own = structure.keys[0] if structure.container in (Plate, RaggedPlate) else structure.keys
    own = ("", *own) if structure.container is RaggedPlate else own
    for place, child in enumerate(structure.children):
        yield from _names_in(child, (*name, own[place]) if len(own) == len(structure.children) else name)
