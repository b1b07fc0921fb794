"""Queries: programs on some of the inputs, as programs on all of them; and what was answered to them."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import numpy as np

from privug.arguments import shown
from privug.checkpoints.fingerprints import fingerprint
from privug.errors import ArgumentError, QuestionError
from privug.model.table import Row, Table
from privug.model.variable import RandomVariable
from privug.prior.table import Records, form_of
from privug.program.logic import ambient_rng
from privug.program.outputs import settled
from privug.program.sql.query import Query as SqlQuery
from privug.program.staged import called
from privug.scoping import holding


@dataclass(frozen=True)
class MonitoredQuery:
    """A program of the attacker's: `release` is the same on all inputs of the prior, of which it takes `names`."""

    program: Callable[..., Any]
    name: str
    names: tuple[str, ...]
    release: Callable[..., Any]
    mark: str
    """The fingerprint of its source."""

    @staticmethod
    def of(program: Any, inputs: Sequence[str], name: str = "") -> "MonitoredQuery":
        """Take down a program, and which of the inputs it takes."""
        if isinstance(program, MonitoredQuery):
            return program
        if not callable(program) or inspect.iscoroutinefunction(program):
            raise ArgumentError(f"ask: a query is a function of some of the inputs, not {shown(program)}")
        parameters = _taken(program, inputs)
        called_name = name or str(getattr(program, "__name__", "query"))
        release = _on_all_inputs(program, parameters, inputs)
        return MonitoredQuery(program, called_name, tuple(p.name for p in parameters), release, fingerprint(program))

    def on(self, truth: Mapping[str, Any]) -> tuple[Any, bool]:
        """Return the answer on true inputs, and whether the program made no draw by `pv.sample` on the way."""
        generator = np.random.default_rng()
        before = generator.bit_generator.state
        with holding(ambient_rng, generator):
            value = settled(self.program(**{name: truth[name] for name in self.names}))
        return value, generator.bit_generator.state == before


@dataclass(frozen=True)
class Answered:
    """A query with the answer that was handed out."""

    query: MonitoredQuery
    value: Any
    continuous: bool = False
    """Whether the answer is the exact value of a continuous output, which has probability zero."""
    repeatable: bool = True
    """Whether the query gives the same answer again on the same data."""


def _taken(program: Callable[..., Any], inputs: Sequence[str]) -> list[inspect.Parameter]:
    """Return the parameters of a query that are inputs; all others must have values of their own."""
    try:
        parameters = list(inspect.signature(program).parameters.values())
    except (TypeError, ValueError):
        raise QuestionError(
            "ask: the parameters of this query cannot be told; wrap it into a function of the inputs"
        ) from None
    for one in parameters:
        if one.kind in (one.POSITIONAL_ONLY, one.VAR_POSITIONAL, one.VAR_KEYWORD):
            raise QuestionError(f"ask: a query takes its inputs by their names; {one} has none")
        if one.name not in inputs and one.default is one.empty:
            known = ", ".join(map(repr, inputs))
            raise QuestionError(f"ask: the query asks for {one.name!r}, but the prior has only {known}")
    return [one for one in parameters if one.name in inputs]


def _on_all_inputs(
    program: Callable[..., Any], parameters: Sequence[inspect.Parameter], inputs: Sequence[str]
) -> Callable[..., Any]:
    """Return a program on all inputs that hands on those that a query takes."""
    own = [one.name for one in parameters]
    if isinstance(program, SqlQuery):
        return program.with_parameters(inputs)
    if not isinstance(program, FunctionType) or set(own) == set(inputs):
        return program
    places = [list(inputs).index(name) for name in own]

    def release(*everything: Any) -> Any:
        return called(program, **{name: everything[place] for name, place in zip(own, places, strict=True)})

    annotations = {one.name: one.annotation for one in parameters}
    kind, free = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.empty
    signature = [inspect.Parameter(name, kind, annotation=annotations.get(name, free)) for name in inputs]
    release.__signature__ = inspect.Signature(signature)  # type: ignore[attr-defined]
    release.__name__ = program.__name__
    return release


def as_taken(name: str, value: Any, known: Any) -> Any:
    """Return a true input in the form in which programs get it: rows of a table by name, arrays as arrays."""
    if isinstance(known, Records) and form_of(known) is None and isinstance(value, list | tuple):
        rows = [Row(**row) if isinstance(row, Mapping) else row for row in value]
        return Table(rows) if all(isinstance(row, Row) for row in rows) else value
    if isinstance(known, RandomVariable) and known.node.shape and isinstance(value, list | tuple):
        try:
            return np.array(value)
        except ValueError:
            raise ArgumentError(f"truth: {name!r} must be an array, not {shown(value)}") from None
    return value
