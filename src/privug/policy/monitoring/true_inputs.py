"""The true data: looked at only once a query is going to be answered, and checked against what was said of it."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from privug.arguments import is_number, shown
from privug.digits import how_many
from privug.errors import ArgumentError
from privug.model.node import ConstantValue, Node
from privug.model.table import Row
from privug.model.variable import RandomVariable
from privug.observation.likelihood import equal_values
from privug.policy.monitoring.queries import Answered, MonitoredQuery, as_taken
from privug.prior.family import Draw
from privug.prior.table import Records


def true_inputs(truth: Any, query: MonitoredQuery, prior: Mapping[str, Any]) -> dict[str, Any]:
    """Return the true inputs as programs take them; refuse those that are missing or impossible under the prior."""
    if not isinstance(truth, Mapping):
        raise ArgumentError(f"ask: truth must be a dict from inputs to their true values, not {shown(truth)}")
    for name in truth:
        if name not in prior:
            raise ArgumentError(f"ask: truth names {name!r}, but the prior has only {', '.join(map(repr, prior))}")
    for name in query.names:
        if name not in truth:
            raise ArgumentError(f"ask: truth lacks {name!r}, which the query takes")
    inputs = {name: as_taken(name, value, prior[name]) for name, value in truth.items()}
    for name, value in inputs.items():
        problem = _impossible(prior[name], value)
        if problem is not None:
            raise ArgumentError(f"ask: truth is impossible under the prior: {name!r} {problem}")
    return inputs


def check_against_answers(inputs: Mapping[str, Any], history: Sequence[Answered]) -> None:
    """Refuse true inputs on which earlier queries do not give the answers that were handed out."""
    for one in history:
        if one.repeatable and set(one.query.names) <= set(inputs):
            value = one.query.on(inputs)[0]
            if not equal_values(value, one.value):
                raise ArgumentError(
                    f"ask: truth contradicts an earlier answer: {one.query.name} gave {shown(one.value)}, and would "
                    f"give {shown(value)} now; a monitor is for queries on the same data"
                )


def _impossible(known: Any, value: Any) -> str | None:
    """Return why a true value cannot be, if it is seen to be so."""
    if isinstance(known, Records):
        return _impossible_table(known, value)
    if isinstance(known, Row) and isinstance(value, Row):
        cells = (_impossible(known[name], value[name]) for name in known._fields if name in value._fields)
        return next((problem for problem in cells if problem is not None), None)
    if isinstance(known, RandomVariable):
        return _outside(known.node, value)
    if isinstance(known, bool | int | float | str) and isinstance(value, bool | int | float | str):
        return None if equal_values(known, value) else f"is {shown(known)} for sure, not {shown(value)}"
    return None


def _impossible_table(known: Records, value: Any) -> str | None:
    if not isinstance(value, list | tuple) or not known.is_fixed:
        return None
    if len(value) != known.size:
        return f"has {how_many(str(known.size), 'row')} for sure, not {len(value)}"
    for place, (row, true) in enumerate(zip(known.table(), value, strict=True)):
        problem = _impossible(row, true)
        if problem is not None:
            return f"row {place} {problem}"
    return None


def _outside(node: Node, value: Any) -> str | None:
    operation = node.operation
    if not isinstance(operation, Draw) or any(not isinstance(one.operation, ConstantValue) for one in node.parents):
        return None
    if node.levels is not None:
        return None if value in node.levels else f"is never {shown(value)}"
    if node.shape and np.shape(value) != node.shape:
        return f"is an array of shape {node.shape}"
    if not node.shape and not is_number(value) and not isinstance(value, bool):
        return f"is a number, never {shown(value)}"
    numbers = np.asarray(value)
    if numbers.dtype.kind not in "biuf":
        return "is made of numbers"
    low, high = (_number(end) for end in operation.family.ends_of(node.parents))
    if np.any(numbers < low) or np.any(numbers > high):
        return f"lies between {low:g} and {high:g}, and {shown(value)} does not"
    fractions = node.dtype.kind in "bi" and np.any(numbers != np.floor(numbers))
    return f"is an integer, never {shown(value)}" if fractions else None


def _number(end: Any) -> float:
    if isinstance(end, Node):
        assert isinstance(end.operation, ConstantValue)
        array = end.operation.array
        return float(array.reshape(-1)[0]) if array.size == 1 else float("nan")
    return float(end)
