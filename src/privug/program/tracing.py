"""The traced tier: call the program once on random variables, and check the graph it built against plain calls."""

import contextlib
import math
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from privug.arguments import shortened
from privug.errors import PriorError, PrivugError, ProgramError
from privug.model.batch import Column
from privug.model.comparable import described, incomparable
from privug.model.critical import quietly
from privug.model.diverting import diversions
from privug.model.graph import is_made_alike
from privug.model.node import Array, Node, TraceBudget, TraceTooLong, fallible, trace_budget
from privug.model.operations import SampleFailure, constant
from privug.model.plan import Plan
from privug.model.plates import current_pass, current_plate
from privug.model.segments import Segments
from privug.model.sparse import in_known_order
from privug.model.structure import Structure, flatten
from privug.model.variable import RandomVariable, as_node, path_condition, refusals
from privug.model.watching import Watch
from privug.program.agreement import same, scales_of
from privug.program.calls import Arguments, watched
from privug.program.drawing import recorded, replayed
from privug.program.memory import undisturbed_memory
from privug.program.outputs import FAILED, FAILURES, settled
from privug.program.sql.query import Query
from privug.program.traced.calling import rewritten
from privug.program.traced.conditions import attempts
from privug.program.traced.frames.entry import stand_in
from privug.program.traced.iteration import order_left_open
from privug.program.traced.unmasking import without_masks
from privug.program.unlikely import Unlikely
from privug.scoping import holding

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
                output = without_masks(settled(function(*standing[0], **standing[1])))
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
    part = next((part for part in map(incomparable, leaves) if part is not None), None)
    if part is not None:
        return Trace(obstacle=f"its result holds {described(part)}")
    fallible_around = fallible.get()
    if fallible_around is not None:  # another program calls this one, and may have no use for its output
        fallible_around.extend(can_fail)
    return Trace(output, tuple(draws), no_end_seen=budget.left_a_loop)


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
            node: Segments(rows[node], self.checks).chosen(array, there) if node in rows else array[there]
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
