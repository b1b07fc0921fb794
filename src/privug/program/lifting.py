"""Lifting: from a program on values to the same program on distributions, by the best tier that serves."""

import functools
import importlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privug import settings
from privug.errors import ArgumentError, LiftingWarning, PriorError
from privug.model.node import ConstantValue
from privug.model.structure import flatten
from privug.model.variable import RandomVariable
from privug.prior.choice import constant_value
from privug.prior.conditional import finite_support, given
from privug.prior.table import Records
from privug.program.batched import BatchedProgram, apply_batched
from privug.program.calls import Arguments, call, undisturbed_randomness
from privug.program.external import External
from privug.program.tracing import MOST_CHECKS, difference_from_plain_calls, trace


@dataclass(frozen=True)
class Lifting:
    """How a program was lifted: the tier, and why not a better one."""

    tier: str
    reason: str | None = None
    not_compiled: str | None = None
    """Why the program is called sample by sample rather than compiled."""

    def __str__(self) -> str:
        return self.tier if self.reason is None else f"{self.tier} ({self.reason})"


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
) -> Lifted:
    """Apply a program to arguments that hold random variables, by the best tier that serves.

    What tracing gave is compared with `checks` plain calls, fewer where the inputs are huge.
    """
    arguments = Arguments(*_flattened((list(positional), dict(named or {}))))
    if isinstance(program, BatchedProgram):
        return Lifted(apply_batched(program, arguments), Lifting("batched"))
    if isinstance(program, External):
        return Lifted(call(program, arguments, exclude_errors), Lifting("external"))
    obstacle, not_compiled = _obstacle_to_tracing(arguments, exclude_errors), None
    if obstacle is None:
        with undisturbed_randomness() as has_been_used:
            traced = trace(program, *_rebuilt(arguments))
            obstacle = traced.obstacle
            if obstacle is None:
                obstacle = difference_from_plain_calls(program, arguments, traced, checks)
            own_randomness = has_been_used()
        if own_randomness:
            return Lifted(
                call(program, arguments, exclude_errors, label), Lifting("python", "it draws random numbers of its own")
            )
        if obstacle is None:
            return Lifted(traced.output, Lifting("traced"))
        if traced.obstacle is None and not obstacle.startswith("it fails"):
            name = getattr(program, "__name__", repr(program))
            warnings.warn(
                f"{name} is called sample by sample, because tracing it gave wrong values: {obstacle}",
                LiftingWarning,
                stacklevel=2,
            )
        elif settings.current().native:
            compiled = _native().apply_native(program, arguments, checks, label)
            if not isinstance(compiled, str):
                return Lifted(compiled, Lifting("native", obstacle))
            not_compiled = compiled
    return Lifted(call(program, arguments, exclude_errors, label), Lifting("python", obstacle, not_compiled))


def _native() -> Any:
    """Import the native tier when it is first needed: the compiler behind it takes its time."""
    return importlib.import_module("privug.program.native.program")


def _flattened(value: Any) -> tuple[Any, tuple[Any, ...]]:
    structure, leaves = flatten(_tables_in_place(value))
    return structure, tuple(_without_certainty(leaf) for leaf in leaves)


def _tables_in_place(value: Any) -> Any:
    """Replace tables of known size by their rows."""
    match value:
        case Records():
            return value.table()
        case dict():
            return {key: _tables_in_place(inner) for key, inner in value.items()}
        case list() | tuple() if type(value) in (list, tuple):
            return type(value)(_tables_in_place(inner) for inner in value)
        case _:
            return value


def _without_certainty(leaf: Any) -> Any:
    """Hand the program plain values where the attacker is certain: it may branch on those."""
    if isinstance(leaf, RandomVariable) and isinstance(leaf.node.operation, ConstantValue):
        return constant_value(leaf.node)
    return leaf


def _rebuilt(arguments: Arguments) -> Any:
    return arguments.structure.build(iter(arguments.leaves))


def _obstacle_to_tracing(arguments: Arguments, exclude_errors: bool) -> str | None:
    if exclude_errors:
        return "inputs on which it raises are to be excluded"
    if any(node.dtype == np.dtype(object) for node in arguments.nodes):
        return "its input comes from a program that is itself called sample by sample"
    return None


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
        raise ArgumentError(f"lift: a function is needed, not {program!r}")

    @functools.wraps(program)
    def lifted(*positional: Any, **named: Any) -> Any:
        tables = [value for value in (*positional, *named.values()) if isinstance(value, Records)]
        random_tables = [table for table in tables if not table.is_fixed]
        if random_tables:
            return _by_size(program, positional, named, random_tables)
        if not tables and not Arguments(*_flattened((positional, named))).nodes:
            return program(*positional, **named)
        return apply(program, positional, named).output

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
        placed = [table.table(rows) if value is table else value for value in positional]
        placed_named = {name: table.table(rows) if value is table else value for name, value in named.items()}
        return apply(program, placed, placed_named).output

    return given(size, {rows: at(rows) for rows in support})


def explain(program: Callable[..., Any], **inputs: Any) -> Lifting:
    """Say how a program is lifted on given inputs: the tier, and which line prevented a better one.

    >>> import privug as pv
    >>> def report(age):
    ...     return f"{age} years"
    >>> print(pv.explain(report, age=pv.Uniform(0, 100)))
    python (text formatting at line 2)
    """
    if not callable(program):
        raise ArgumentError(f"explain: a function is needed, not {program!r}")
    if not inputs:
        raise ArgumentError("explain: give the program's inputs by name, such as age=pv.Uniform(0, 100)")
    return apply(program, [], inputs).lifting
