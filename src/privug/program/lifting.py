"""Lifting: from a program on values to the same program on distributions, by the best tier there is."""

import ast
import functools
import importlib.util
import inspect
import re
import sys
import threading
import typing
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType, FrameType, MethodType
from typing import Any

import numpy as np

from privug import settings
from privug.arguments import shown
from privug.errors import ArgumentError, LiftingWarning, PriorError, QuestionError
from privug.escaping import inert
from privug.model.graph import everything_behind
from privug.model.maybe import is_maybe
from privug.model.node import Array, ConstantValue, Node, origins
from privug.model.sparse import SparseDict
from privug.model.structure import flatten, random_leaves
from privug.model.variable import RandomVariable
from privug.prior.choice import constant_value
from privug.prior.conditional import finite_support, given, unit
from privug.prior.table import Records, as_input, form_of
from privug.program.batched import BatchedProgram, apply_batched
from privug.program.calls import (
    FEW_CELLS,
    Opaque,
    call,
    calls_worth_compiling,
    check_that_it_ends,
    rehearse,
    undisturbed_randomness,
    work_worth_tracing,
)
from privug.program.external import External
from privug.program.inputs import Arguments
from privug.program.native.arguments import refusal
from privug.program.reachable import Reached, entropy_source, reached, undisturbed_memory
from privug.program.sql.query import Query
from privug.program.staged import Staged, taken_apart
from privug.program.traced.rewriting import source_of
from privug.program.tracing import FEWEST_CHECKS, MOST_CHECKS, difference_from_plain_calls, trace
from privug.scoping import holding

_SPELLED = re.compile(r"(?:^|[\[|\s])(pd|pandas|pl|polars)\.DataFrame\b")
_LIBRARIES = {"pd": "pandas", "pl": "polars"}


def in_their_forms(
    program: Callable[..., Any], positional: Sequence[Any], named: Mapping[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments of a program with tables as frames where its annotations ask for frames."""
    try:
        parameters = inspect.signature(program).parameters
    except (TypeError, ValueError):
        parameters = {}  # type: ignore[assignment]
    order = [name for name, one in parameters.items() if one.kind is not one.KEYWORD_ONLY]
    placed = [
        _in_form(program, parameters.get(order[place]) if place < len(order) else None, value)
        for place, value in enumerate(positional)
    ]
    return placed, {name: _in_form(program, parameters.get(name), value) for name, value in named.items()}


def _in_form(program: Callable[..., Any], parameter: inspect.Parameter | None, value: Any) -> Any:
    if not isinstance(value, Records):
        return value
    if form_of(value) is None and parameter is not None:
        wanted = _wanted(program, parameter.annotation)
        value = value if wanted is None else value.as_frame(wanted)
    if form_of(value) is not None and isinstance(program, External | BatchedProgram):
        kind = "a batched program" if isinstance(program, BatchedProgram) else "an external program"
        raise QuestionError(f"{kind} gets tables as they are: leave out as_frame({form_of(value)!r})")
    return value


def _wanted(program: Callable[..., Any], annotation: Any) -> str | None:
    """Return the library of whose frames an annotation speaks, which may be written as a text."""
    if isinstance(annotation, str):
        spelled = annotation
        try:
            annotation = eval(spelled, dict(getattr(inspect.unwrap(program), "__globals__", {})))
        except Exception:  # names that only type checkers import
            found = _SPELLED.search(spelled)
            return _LIBRARIES.get(found[1], found[1]) if found else None
    for kind in typing.get_args(annotation) or (annotation,):
        library = str(getattr(kind, "__module__", "")).partition(".")[0]
        if library in _LIBRARIES.values() and getattr(kind, "__name__", "") == "DataFrame":
            return library
    return None


LONGEST = 40


def name_of(function: Any) -> str:
    """Return what a function computes, in a few words: its name, or as its lambda reads; nothing if that is unknown.

    >>> def years_of_service(records): ...
    >>> name_of(years_of_service), name_of(len)
    ('years of service', '')
    """
    code = getattr(function, "__code__", None)
    if code is None:
        return ""
    if code.co_name != "<lambda>":
        return str(code.co_name).replace("_", " ").strip()
    found = source_of(code)
    return in_words(found.body) if isinstance(found, ast.Lambda) else ""


def in_words(expression: ast.expr) -> str:
    """Return an expression as a reader says it; nothing for one that is too long to be a name.

    >>> [in_words(ast.parse(text, mode="eval").body) for text in ("records[0].age", "df['age'][0]", "a.b, c")]
    ['age of records[0]', 'age of df[0]', 'b of a, c']
    """
    match expression:
        case ast.Attribute(value=whole, attr=part):
            words = f"{part} of {in_words(whole)}"
        case ast.Subscript(value=ast.Subscript(value=whole, slice=ast.Constant(value=str(part))), slice=row):
            words = f"{part} of {in_words(whole)}[{ast.unparse(row)}]"
        case ast.Subscript(value=whole, slice=ast.Constant(value=str(part))):
            words = f"{part} of {in_words(whole)}"
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            words = ", ".join(map(in_words, parts))
        case _:
            words = ast.unparse(expression)
    return words if len(words) <= LONGEST else ""


MOST_NODES = 20_000  # behind an output: for the sake of a line number, more are not made again


def lines_of(
    program: Callable[..., Any], positional: Sequence[Any], named: Mapping[str, Any], output: Any
) -> dict[Node, int]:
    """Return the source lines at which a program made the quantities behind an output that tracing it gave.

    Empty if they cannot be found, because the program is no Python function or the second trace is another one; or if
    there are very many.
    """
    code, before = _code(program), everything_behind(_nodes(output))
    if code is None or len(before) > MOST_NODES:
        return {}
    found: dict[Node, int] = {}
    with holding(origins, functools.partial(_note, code.co_filename, found)):
        again = trace(program, positional, named)
    after = everything_behind(_nodes(again.output))
    if len(before) != len(after):
        return {}
    pairs = zip(before, after, strict=True)
    if not all(type(old.operation) is type(new.operation) for old, new in pairs):
        return {}
    return {old: found[new] for old, new in zip(before, after, strict=True) if new in found and old is not new}


def _nodes(value: Any) -> list[Node]:
    return [variable.node for variable in random_leaves(value)]


def _code(program: Any) -> CodeType | None:
    while isinstance(program, functools.partial | MethodType):
        program = program.func if isinstance(program, functools.partial) else program.__func__
    code = getattr(program, "__code__", None)
    return code if isinstance(code, CodeType) else None


def _note(filename: str, found: dict[Node, int], node: Node) -> None:
    """Take down the line of the program that is being run."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename != filename:
        frame = frame.f_back
    if frame is not None:
        found[node] = frame.f_lineno


@dataclass(frozen=True)
class Lifting:
    """How a program was lifted: the tier, and why not a better one."""

    tier: str
    reason: str | None = None
    not_compiled: str | None = None
    """Why the program is called sample by sample rather than compiled."""

    def __str__(self) -> str:
        if self.reason is None:
            return self.tier
        same = self.not_compiled in (None, self.reason)
        return inert(f"{self.tier} ({self.reason}{'' if same else f'; not compiled: {self.not_compiled}'})")


@dataclass(frozen=True)
class Lifted:
    """A program applied to random variables: its output, possibly nested, and how it was lifted."""

    output: Any
    lifting: Lifting


def apply(
    program: Callable[..., Any],
    positional: Sequence[Any],
    named: Mapping[str, Any] | None = None,
    *,
    exclude_errors: bool = False,
    checks: int = MOST_CHECKS,
    label: str = "the program",
    native: bool | None = None,
) -> Lifted:
    """Apply a program to arguments that hold random variables, by the best tier that serves.

    What tracing gave is compared with `checks` plain calls, fewer where the inputs are huge. `native` says whether to
    compile what cannot be traced; without it, that is done only if the settings always have it done.
    """
    if isinstance(program, Staged):
        options: Any = {"exclude_errors": exclude_errors, "label": label, "native": native}
        before = apply(program.program, positional, named, checks=checks, **options)
        after = apply(program.release, [taken_apart(before.output)], checks=FEWEST_CHECKS, **options)
        return Lifted(after.output, after.lifting if before.lifting.tier == "traced" else before.lifting)
    arguments = Arguments(*_flattened((list(positional), dict(named or {}))))
    if isinstance(program, BatchedProgram):
        return Lifted(apply_batched(program, arguments, exclude_errors), Lifting("batched"))
    if isinstance(program, External):
        return Lifted(call(program, arguments, exclude_errors), Lifting("external"))
    if isinstance(program, Opaque):
        lifting = Lifting("python", *2 * ["its workings are hidden in a library"])
        return Lifted(call(program, arguments, exclude_errors, label), lifting)
    attempt = _attempt(program, arguments, checks, exclude_errors)
    called = (attempt.own_randomness, attempt.obstacle) != (None, None)
    if checks > FEWEST_CHECKS and called and not isinstance(program, Query):
        rehearse(program, arguments, label)
    if attempt.own_randomness is not None:
        lifting = Lifting("python", *2 * [f"it draws random numbers of its own{attempt.own_randomness}"])
        return Lifted(call(program, arguments, exclude_errors, label), lifting)
    if attempt.obstacle is None:
        return Lifted(attempt.output, Lifting("traced"))
    return _called(program, arguments, attempt, exclude_errors, checks, label, native)


def _called(
    program: Callable[..., Any],
    arguments: Arguments,
    attempt: "_Attempt",
    exclude_errors: bool,
    checks: int,
    label: str,
    native: bool | None,
) -> Lifted:
    """Apply a program that is not traced: compiled, or called on samples."""
    not_compiled = None if attempt.was_made else attempt.obstacle
    if attempt.wrong:
        not_compiled = "tracing it gave wrong values"
        name = getattr(program, "__name__", repr(program))
        warnings.warn(
            f"{name} is called sample by sample, because tracing it gave wrong values: {attempt.obstacle}",
            LiftingWarning,
            stacklevel=3,
        )
    elif isinstance(program, Query):
        return Lifted(call(program, arguments, exclude_errors, label), Lifting("batched", attempt.obstacle))
    elif attempt.was_made and (settings.current().native is True if native is None else native):
        compiled = _without_compiler() or _native().apply_native(program, arguments, checks, label)
        if not isinstance(compiled, str):
            return Lifted(compiled, Lifting("native", attempt.obstacle))
        not_compiled = compiled
    return Lifted(call(program, arguments, exclude_errors, label), Lifting("python", attempt.obstacle, not_compiled))


def apply_traced(
    program: Callable[..., Any],
    positional: Sequence[Any],
    named: Mapping[str, Any] | None = None,
    *,
    exclude_errors: bool = False,
    checks: int = MOST_CHECKS,
    given: Mapping[Node, Array] | None = None,
) -> Lifted | None:
    """Apply a program by tracing it; return None if that is not possible.

    In the plain calls that it is compared with, some roots may have `given` values.
    """
    if isinstance(program, Staged):
        looked: Any = {"exclude_errors": exclude_errors, "checks": checks, "given": given}
        before = apply_traced(program.program, positional, named, **looked)
        options: Any = {"exclude_errors": exclude_errors, "checks": FEWEST_CHECKS}
        return before and apply_traced(program.release, [before.output], **options)
    if isinstance(program, Opaque):
        return None
    arguments = Arguments(*_flattened((list(positional), dict(named or {})), columns_too=False))
    attempt = _attempt(program, arguments, checks, exclude_errors, given)
    if attempt.obstacle is not None or attempt.own_randomness is not None:
        return None
    return Lifted(attempt.output, Lifting("traced"))


@dataclass(frozen=True)
class _Attempt:
    """What came of tracing a program."""

    output: Any = None
    obstacle: str | None = None
    was_made: bool = True
    wrong: bool = False
    own_randomness: str | None = None
    """Where it draws random numbers from besides the generators that follow the seed, if it draws any."""


def _attempt(
    program: Callable[..., Any],
    arguments: Arguments,
    checks: int,
    exclude_errors: bool,
    given: Mapping[Node, Array] | None = None,
) -> _Attempt:
    if any(node.dtype == np.dtype(object) and not is_maybe(node) for node in arguments.nodes):
        obstacle = "its input comes from a program that is itself called sample by sample"
        return _Attempt(obstacle=obstacle, was_made=False)
    found = reached(program, *arguments.shared)
    source = entropy_source(found)
    if source is not None:
        return _Attempt(was_made=False, own_randomness=f" ({source})")
    attempt = _traced(program, arguments, found, checks, exclude_errors, given)
    for _ in range(2):
        if attempt.own_randomness is None or threading.active_count() == 1:
            break
        # The global generators belong to other threads too, one of which may have used them.
        attempt = _traced(program, arguments, found, checks, exclude_errors, given)
    return attempt


def _traced(
    program: Callable[..., Any],
    arguments: Arguments,
    found: Reached,
    checks: int,
    exclude_errors: bool,
    given: Mapping[Node, Array] | None,
) -> _Attempt:
    with undisturbed_randomness(found) as has_been_used, undisturbed_memory(found):
        positional, named = _rebuilt(arguments)
        work = None
        if not isinstance(program, Query):
            if checks > FEWEST_CHECKS and len(arguments.leaves) > FEW_CELLS:  # called to see what that takes
                rehearse(program, arguments, "the program")
            work = work_worth_tracing(program, arguments)
        traced = trace(program, positional, named, arguments.shared, work)
        obstacle = traced.obstacle
        if obstacle is None:
            obstacle = difference_from_plain_calls(program, arguments, traced, checks, exclude_errors, given)
        if obstacle is not None and traced.no_end_seen:
            check_that_it_ends(program, arguments)
        wrong = obstacle is not None and traced.obstacle is None and not obstacle.startswith("it fails")
        return _Attempt(traced.output, obstacle, True, wrong, "" if has_been_used() else None)


def worth_compiling(
    program: Callable[..., Any], positional: Sequence[Any], named: Mapping[str, Any] | None = None
) -> int | str:
    """Return from how many calls on compiling a program pays, or the reason in words why it cannot be compiled."""
    while isinstance(program, Staged):
        program = program.program
    arguments = Arguments(*_flattened((list(positional), dict(named or {}))))
    return refusal(program, arguments) or _without_compiler() or calls_worth_compiling(program, arguments)


def _without_compiler() -> str | None:
    """Say what to install where the compiler is not installed."""
    installed = importlib.util.find_spec("numba") is not None
    return None if installed else "that needs numba: pip install 'privug[native]'"


def _native() -> Any:
    """Import the native tier when it is first needed: the compiler behind it takes its time."""
    return importlib.import_module("privug.program.native.kernel")


def _flattened(value: Any, *, columns_too: bool = True) -> tuple[Any, tuple[Any, ...]]:
    structure, leaves = flatten(_tables_in_place(value))
    return structure, tuple(_without_certainty(leaf, columns_too) for leaf in leaves)


def _tables_in_place(value: Any) -> Any:
    """Replace tables of known size by their rows."""
    match value:
        case Records():
            return as_input(value, value.table())
        case dict() if not isinstance(value, SparseDict):
            return {key: _tables_in_place(inner) for key, inner in value.items()}
        case list() | tuple() if type(value) in (list, tuple):
            return type(value)(_tables_in_place(inner) for inner in value)
        case _:
            return value


def _without_certainty(leaf: Any, columns_too: bool) -> Any:
    """Hand the program plain values where the attacker is certain: it may branch on those, but not on whole columns."""
    known = isinstance(leaf, RandomVariable) and isinstance(leaf.node.operation, ConstantValue)
    if known and (columns_too or leaf.shape == ()):
        return constant_value(leaf.node)
    return leaf


def _rebuilt(arguments: Arguments) -> Any:
    return arguments.structure.build(iter(arguments.leaves))


def lift(program: Callable[..., Any]) -> Callable[..., Any]:
    """Turn a function on values into a function on random variables; on plain values it stays as it was.

    >>> import privug as pv
    >>> @pv.lift
    ... def average(ages):
    ...     return sum(ages) / len(ages)
    >>> average([20, 40])
    30.0
    >>> average([pv.Uniform(0, 100), 40])
    <RandomVariable: continuous float64>
    """
    if not callable(program):
        raise ArgumentError(f"lift: a function is needed, not {shown(program)}")

    @functools.wraps(program)
    def lifted(*positional: Any, **named: Any) -> Any:
        inputs = in_their_forms(program, positional, named)
        positional, named = tuple(inputs[0]), inputs[1]
        tables = [value for value in (*positional, *named.values()) if isinstance(value, Records)]
        random_tables = [table for table in tables if not table.is_fixed]
        if random_tables:
            return _by_size(program, positional, named, random_tables)
        arguments = Arguments(*_flattened((positional, named)))
        if tables or arguments.nodes:
            return apply(program, positional, named).output
        if not random_leaves((positional, named)):
            return program(*positional, **named)
        certain_positional, certain_named = _rebuilt(arguments)
        return unit(program(*certain_positional, **certain_named))

    return lifted


def _by_size(
    program: Callable[..., Any], positional: Sequence[Any], named: Mapping[str, Any], tables: Sequence[Records]
) -> Any:
    """Split by the size of the one table whose size is random."""
    if len(tables) > 1 or not isinstance(tables[0].size, RandomVariable):
        raise PriorError("lift: only one table may have a random size here; pv.Attack takes several")
    table, size = tables[0], tables[0].size
    support = finite_support(size.node)
    if support is None:
        raise PriorError("lift: the table's size must have a known largest value here; pv.Attack takes any size")

    def at(rows: int) -> Any:
        sized = as_input(table, table.table(rows))
        placed = [sized if value is table else value for value in positional]
        placed_named = {name: sized if value is table else value for name, value in named.items()}
        return apply(program, placed, placed_named).output

    return given(size, {rows: at(rows) for rows in support})
