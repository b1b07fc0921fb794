"""The traced tier: call the program once on random variables, and compare its graph with plain calls.

Columns are cells of one name that are alike. Each takes a few of its values in some pattern: one for all cells, one for
all but one, ties, runs, the extremes; or it is drawn. Continuous quantities come close to one another but are never
equal: what a program does with equal ones has probability zero. Every value is possible given all others.
"""

import contextlib
import math
import traceback
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, IntEnum
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from privug.arguments import shortened
from privug.errors import PriorError, PrivugError, ProgramError
from privug.model.batch import Column
from privug.model.failures import diversions
from privug.model.graph import is_made_alike
from privug.model.node import (
    Array,
    ConstantValue,
    Context,
    Kind,
    Node,
    TraceBudget,
    TraceTooLong,
    ancestors,
    fallible,
    trace_budget,
)
from privug.model.operations import SampleFailure, constant
from privug.model.plan import Plan
from privug.model.plates import Plate, current_pass, current_plate
from privug.model.row_offsets import RowOffsets
from privug.model.sparse import in_known_order
from privug.model.structure import Structure, described, flatten, incomparable
from privug.model.variable import RandomVariable, as_node, path_condition, refusals
from privug.prior.family import Draw, Family, at_rank
from privug.prior.plating import RaggedDraw
from privug.program.calls import watched
from privug.program.inputs import Arguments
from privug.program.logic import recorded, replayed
from privug.program.outputs import FAILED, FAILURES, settled
from privug.program.reachable import undisturbed_memory
from privug.program.sql.query import Query
from privug.program.traced.calling import rewritten
from privug.program.traced.conditions import attempts
from privug.program.traced.frames.entry import stand_in
from privug.program.traced.iteration import order_left_open
from privug.program.traced.masks import without_masks
from privug.runtime.critical import quietly
from privug.runtime.processes import Watch
from privug.scoping import holding

TOLERANCE = 1e-9


def scales_of(predicted: Sequence[Any], typical: float | None = None) -> list[float]:
    """Return how large each output is: as large as the largest, or as itself if it is beyond what is typical."""
    own = [_magnitude(value) for value in predicted]
    return [max(own)] * len(own) if typical is None and own else [max(size, typical or 0.0) for size in own]


def _magnitude(value: Any) -> float:
    sizes = [0.0]
    for leaf in flatten(value)[1]:
        if isinstance(leaf, int | float | np.ndarray) and np.asarray(leaf).dtype.kind in "bif":
            finite = np.abs(np.asarray(leaf, float))
            sizes.append(float(np.max(finite[np.isfinite(finite)], initial=0.0)))
    return max(sizes)


def same(left: Any, right: Any, scale: float) -> bool:
    """Compare two values, numbers up to rounding relative to how large outputs are."""
    if _is_numeric(left) and _is_numeric(right):
        return left.shape == right.shape and _same_numbers(left, right, scale)
    left, right = _simplified(left), _simplified(right)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(same(a, b, scale) for a, b in zip(left, right, strict=True))
    if isinstance(left, dict) and isinstance(right, dict):
        return list(left) == list(right) and all(same(left[key], right[key], scale) for key in left)
    numbers = isinstance(left, int | float) and isinstance(right, int | float)
    if not numbers or isinstance(left, Enum) or isinstance(right, Enum):
        return type(left) is type(right) and bool(left == right)
    if isinstance(left, int) and isinstance(right, int):
        return left == right
    return (math.isnan(left) and math.isnan(right)) or math.isclose(
        left, right, rel_tol=TOLERANCE, abs_tol=TOLERANCE * scale
    )


def _is_numeric(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in "bif"


def _same_numbers(left: Array, right: Array, scale: float) -> bool:
    """Compare arrays number by number: whole numbers exactly, others up to rounding."""
    if left.dtype.kind != "f" and right.dtype.kind != "f":
        return np.array_equal(left, right)
    with np.errstate(invalid="ignore"):  # infinite ones are compared as they are
        room = TOLERANCE * np.maximum(np.maximum(np.abs(left), np.abs(right)), scale)
        close = (left == right) | ((np.abs(left - right) <= room) & np.isfinite(room))
    return bool(np.all(close | (np.isnan(left) & np.isnan(right))))


def _simplified(value: Any) -> Any:
    """Forget container types that a program's reader would not tell apart."""
    if isinstance(value, np.ndarray):
        return value.tolist() if value.ndim else value.item()
    if isinstance(value, np.generic):
        return value.item()
    return list(value) if isinstance(value, tuple) else value


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
        chosen = {
            root: cells
            for number, column in enumerate(self._columns)
            if patterned or column.values is not None  # else all of it is drawn
            for root, cells in _laid_out(column, self._course(number, each, together, depth, rng), rng)
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
    segments = RowOffsets(arguments[-1], len(course.patterns))
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
    own = structure.keys[0] if structure.container is Plate else structure.keys
    own = ("", *own) if structure.container is Plate and len(own) < len(structure.children) else own
    for place, child in enumerate(structure.children):
        yield from _names_in(child, (*name, own[place]) if len(own) == len(structure.children) else name)


MOST_CHECKS = 32
MOST_UNLIKELY = 64
FEWEST_CHECKS = 3
CHECKED_CELLS = 20_000  # checks times cells of inputs and output, so that checking a huge table stays quick
FULLY_CHECKED_CELLS = 1_000_000  # beyond, making the plain table of one call takes seconds

# Tracing makes 20,000 to 100,000 quantities a second, and takes a million rounds or calls: a program beyond this is not
# worth its trace. Tables are long, so each of their cells adds to what is allowed.
MOST_NODES = 60_000
MOST_NODES_PER_CELL = 5
MOST_ROUNDS = 500_000
MOST_ROUNDS_PER_CELL = 10
OWN_FRAMES = ("privug", "contextlib")  # the latter on behalf of the former


@dataclass(frozen=True)
class Trace:
    """What tracing gave: the output in terms of random variables, or the reason why there is none."""

    output: Any = None
    draws: tuple[tuple[RandomVariable, RandomVariable | None], ...] = ()
    """What the program drew, in order, and under which random condition."""
    obstacle: str | None = None
    no_end_seen: bool = False
    """Whether the program went on for longer than could be followed, on some inputs at least."""


def trace(
    program: Callable[..., Any],
    positional: Sequence[Any],
    named: Mapping[str, Any],
    shared: Sequence[Any] = (),
    work: int | None = None,
) -> Trace:
    """Call the program on random variables, and leave what it remembers as it was, `shared` arguments included.

    `work` limits how many arguments all quantities together may have.
    """
    with undisturbed_memory(program, *shared) as memory:
        traced = _traced(program, positional, named, work)
        # Once more, with what the first call left behind: the output must not depend on it.
        if traced.obstacle is None and memory.has_changed():
            again = _traced(program, positional, named, work)
            if again.obstacle is not None or not is_made_alike(traced.output, again.output):
                return Trace(obstacle="its output depends on earlier calls")
        return traced


def _traced(
    program: Callable[..., Any], positional: Sequence[Any], named: Mapping[str, Any], work: int | None = None
) -> Trace:
    noted: list[str] = []
    draws: list[tuple[RandomVariable, RandomVariable | None]] = []
    can_fail: list[Node] = []
    budget = trace_budget.get() or _budget(positional, named, work)
    notes = holding(refusals, noted), holding(recorded, draws), holding(fallible, can_fail)
    afresh = holding(path_condition, None), holding(current_plate, None), holding(current_pass, None)
    outside = holding(attempts, ()), holding(diversions, None), holding(order_left_open, False)
    with contextlib.ExitStack() as block:
        for held in (*notes, *afresh, *outside, holding(trace_budget, budget)):
            block.enter_context(held)
        try:
            standing = [stand_in(value) for value in positional], {k: stand_in(value) for k, value in named.items()}
            with Watch("the program", lambda: "while it is traced") as watch:
                watch.begin()
                function = program.traced if isinstance(program, Query) else rewritten(program)
                output = settled(without_masks(settled(function(*standing[0], **standing[1]))))
        except PriorError:
            raise
        except TraceTooLong as error:
            return Trace(obstacle=f"{error}{_place(program, error)}", no_end_seen=True)
        except FAILURES as error:
            what = f"{noted[0]}{_library(program, error)}" if noted else _described(error)
            return Trace(obstacle=f"{what}{_place(program, error)}")
    if noted:
        return Trace(obstacle=noted[0])
    leaves = flatten(output)[1]
    if any(isinstance(leaf, RandomVariable) and leaf.node.operation.by_rows for leaf in leaves):
        return Trace(obstacle="its result is a table of random size")
    part = next((part for part in map(incomparable, [*leaves, *_levels_made(leaves)]) if part is not None), None)
    if part is not None:
        return Trace(obstacle=f"its result holds {described(part)}")
    fallible_around = fallible.get()
    if fallible_around is not None:  # another program calls this one, and may have no use for its output
        fallible_around.extend(can_fail)
    return Trace(output, tuple(draws), no_end_seen=budget.left_a_loop)


def _levels_made(leaves: Sequence[Any]) -> list[Any]:
    """Return the values of categories in an output that the program made: those of its inputs are always the same."""
    nodes = [leaf.node for leaf in leaves if isinstance(leaf, RandomVariable) and leaf.node.levels is not None]
    given = {id(level) for node in ancestors(nodes) if node.is_random for level in node.levels or ()}
    return [level for node in nodes for level in node.levels or () if id(level) not in given]


def _budget(positional: Sequence[Any], named: Mapping[str, Any], work: int | None) -> TraceBudget:
    cells = _cells(flatten((list(positional), dict(named)))[1])
    return TraceBudget(MOST_NODES + MOST_NODES_PER_CELL * cells, MOST_ROUNDS + MOST_ROUNDS_PER_CELL * cells, work)


def _cells(leaves: Sequence[Any]) -> int:
    """Return how many values some leaves hold."""
    return sum(math.prod(as_node(leaf).shape) if isinstance(leaf, RandomVariable) else 1 for leaf in leaves)


def _described(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # its message is random
        return type(error).__name__


def _place(program: Callable[..., Any], error: BaseException) -> str:
    code = getattr(program, "__code__", None)
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if code is not None and frame.filename == code.co_filename
    ]
    return f" at line {lines[-1]}" if lines else ""


def _library(program: Callable[..., Any], error: BaseException) -> str:
    """Say which library, called from the program, asked for what a random value does not have."""
    code, found = getattr(program, "__code__", None), ""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if code is not None and frame.f_code.co_filename == code.co_filename:
            found = ""
        elif package not in OWN_FRAMES:
            found = found or package
    return f" inside {found}" if found else ""


def difference_from_plain_calls(
    program: Callable[..., Any],
    arguments: Arguments,
    traced: Trace,
    checks: int = MOST_CHECKS,
    exclude_errors: bool = False,
    given: Mapping[Node, Array] | None = None,
) -> str | None:
    """Compare the traced program with plain calls on random inputs; return what differs, if anything.

    Some roots may have `given` values, which are used in turn.
    """
    typical: float | None = None
    for look in _looks(arguments, traced, checks, given or {}):
        comparison = _Comparison(program, arguments, traced, look.checks, exclude_errors, look.is_unlikely, typical)
        difference, scale = comparison.difference(look.known, look.rng)
        if difference is not None:
            return difference
        typical = scale if typical is None else typical
    return None


class _Look(NamedTuple):
    """Some inputs to compare on: how many, values of some roots, and whether inputs like these hardly ever come up."""

    checks: int
    known: dict[Node, Array]
    is_unlikely: bool
    rng: np.random.Generator


def _looks(arguments: Arguments, traced: Trace, wanted: int, given: Mapping[Node, Array]) -> Iterator[_Look]:
    """Yield inputs from the prior, then unlikely ones: few of both where inputs are huge, or few are wanted."""
    cells = _cells(arguments.leaves) + _cells(flatten(traced.output)[1])
    fewest = FEWEST_CHECKS if cells <= FULLY_CHECKED_CELLS else 1
    rng = np.random.Generator(np.random.SFC64(0))
    unlikely = Unlikely(arguments, [draw.node for draw, _ in traced.draws], given)

    def at_most(checks: int) -> int:
        return max(fewest, min(checks, CHECKED_CELLS // max(1, cells)))

    def turns(checks: int) -> dict[Node, Array]:
        return {root: np.resize(values, (checks, *root.shape)) for root, values in given.items()}

    each, patterned = at_most(wanted), at_most(MOST_UNLIKELY) if wanted > FEWEST_CHECKS and fewest > 1 else 0
    if each > FEWEST_CHECKS:
        yield _Look(each, turns(each), False, rng)
        each = at_most(max(wanted, unlikely.most_values)) if unlikely.most_values > 1 else 0
    checks, is_unlikely = each + patterned, patterned > 0 or unlikely.most_values > 1
    if checks:
        yield _Look(checks, unlikely.values(each, patterned, turns(checks), rng), is_unlikely, rng)


@dataclass(frozen=True)
class _Comparison:
    """A traced program and the plain calls it is compared with."""

    program: Callable[..., Any]
    arguments: Arguments
    traced: Trace
    checks: int
    exclude_errors: bool
    is_unlikely: bool
    """Whether inputs hardly ever come up: then it may fail where a plain call does, and what cannot be is no matter."""
    typical: float | None
    """The largest output on usual inputs, if that is known."""

    def difference(self, given: Mapping[Node, Array], rng: np.random.Generator) -> tuple[str | None, float]:
        """Return what differs on random inputs, if anything, and the largest output; some nodes have given values."""
        structure, leaves = flatten(self.traced.output)
        outputs = [leaf.node for leaf in leaves if isinstance(leaf, RandomVariable)]
        draws = [draw.node for draw, _ in self.traced.draws]
        conditions = [constant(True) if condition is None else condition.node for _, condition in self.traced.draws]
        inputs, start = self.arguments.nodes, rng.bit_generator.state
        lenient = self.exclude_errors or self.is_unlikely
        excused = None if lenient else inputs
        plan, failed = Plan([*inputs, *draws, *conditions, *outputs], list(given), excused), self._nobody()
        try:
            parts = iter(plan.run(self.checks, rng, given, failed=failed))
        except (SampleFailure, ProgramError) as failure:
            if self.is_unlikely:
                return self._difference_in_parts(failure, given, rng), 0.0
            cause = failure.cause if isinstance(failure, SampleFailure) else failure
            return f"it fails on some inputs ({type(cause).__name__}: {cause})", 0.0
        known = [next(parts) for _ in inputs]
        values = [Column.of(node, next(parts)).decoded() for node in draws]
        made = [next(parts) for _ in conditions]
        predicted = _values(structure, leaves, list(parts), self.checks)
        there = np.flatnonzero(~self._without_inputs(given, start)) if failed.any() else range(self.checks)
        drawn = [[column[k] for column, held in zip(values, made, strict=True) if held[k]] for k in there]
        expected = [FAILED if failed[k] else predicted[k] for k in there]
        if failed.any():
            chosen = self._of_samples(dict(zip(inputs, known, strict=True)), there)
            known = [chosen[node] for node in inputs]
        calls = self.arguments.plain(known, len(there))
        scales = scales_of(expected, self.typical)
        found = difference_in_calls(self.program, calls, drawn, expected, lenient, self.traced.output, scales)
        return found, max(scales, default=0.0)

    def _difference_in_parts(
        self, failure: SampleFailure | ProgramError, given: Mapping[Node, Array], rng: np.random.Generator
    ) -> str | None:
        """Compare on the inputs that can be computed: without those that failed, or on either half of them."""
        there = np.arange(self.checks)
        parts = np.array_split(there, 2) if self.checks > 1 else []
        if isinstance(failure, SampleFailure):
            parts = [there[~failure.failing(self.checks)]]
        for part in [part for part in parts if len(part)]:
            found, _ = replace(self, checks=len(part)).difference(self._of_samples(given, part), rng)
            if found is not None:
                return found
        return None

    def _of_samples(self, values: Mapping[Node, Array], there: Any) -> dict[Node, Array]:
        """Return the values of some samples."""
        by_rows = [node for node in values if node.operation.by_rows]
        rows = {node: evaluate_on([node.parents[-1]], values, self.checks)[0] for node in by_rows}
        return {
            node: RowOffsets(rows[node], self.checks).chosen(array, there) if node in rows else array[there]
            for node, array in values.items()
        }

    def _nobody(self) -> Array:
        return np.zeros(self.checks, np.bool_)

    def _without_inputs(self, given: Mapping[Node, Array], state: Any) -> Array:
        """Mark the samples for which there are no inputs, because what they come from failed: draw them again."""
        rng = np.random.Generator(np.random.SFC64(0))
        rng.bit_generator.state = state
        failed = self._nobody()
        Plan(self.arguments.nodes, list(given)).run(self.checks, rng, given, failed=failed)
        return failed


def _values(structure: Structure, leaves: Sequence[Any], arrays: Sequence[Array], samples: int) -> list[Any]:
    return list(Arguments(structure, tuple(leaves)).plain(arrays, samples))


def difference_in_calls(
    program: Callable[..., Any],
    calls: Iterable[Any],
    drawn: Sequence[list[Any]],
    predicted: Sequence[Any],
    exclude_errors: bool = False,
    template: Any = None,
    scales: Sequence[float] | None = None,
) -> str | None:
    """Compare predicted outputs with plain calls, whose draws are replayed; return what differs, if anything.

    Rows whose order means nothing in the `template`, what tracing gave, are compared in any order. Numbers may differ
    by rounding, relative to their `scales`.
    """
    scales = scales_of(predicted) if scales is None else scales
    if isinstance(program, Query):
        program, calls = _asked(program, list(calls))
    with watched(program, "the program") as watch:
        for position, (positional, named) in enumerate(calls):
            left = drawn[position][::-1]
            watch.begin(positional, named)
            try:
                with holding(replayed, left), np.errstate(all="ignore"), quietly():
                    plain = in_known_order(template, settled(program(*positional, **named)))
            except FAILURES as error:
                what = f"{type(error).__name__}: {error}"
                if not exclude_errors or isinstance(error, PrivugError):
                    return f"it fails on some inputs ({what})"
                if predicted[position] is not FAILED:
                    return f"a plain call raised {what}, the traced program gave {shortened(predicted[position])}"
                continue
            if left and predicted[position] is not FAILED:
                return "it made fewer draws in a plain call than while it was traced"
            if not same(plain, predicted[position], scales[position]):
                return f"a plain call gave {shortened(plain)}, the traced program {shortened(predicted[position])}"
    return None


def _asked(query: Query, calls: Sequence[Any]) -> tuple[Callable[..., Any], Sequence[Any]]:
    """Return a program that gives the answers to a query, which are asked for at once, and calls of it."""
    try:
        answers = query.call_many(calls)
    except FAILURES:
        return query, calls
    return lambda answer: answer, [((answer,), {}) for answer in answers]


def evaluate_on(outputs: Sequence[Node], known: Mapping[Node, Array], samples: int) -> list[Array]:
    """Evaluate nodes that depend only on quantities whose values are known."""
    return Plan(outputs, list(known)).run(samples, np.random.Generator(np.random.SFC64(0)), known)
