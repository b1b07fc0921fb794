"""Choices, quantifiers and draws inside programs, on random and on plain values alike."""

from collections.abc import Callable, Iterable
from functools import reduce
from typing import Any

import numpy as np

from privug.arguments import shown
from privug.errors import ArgumentError, PriorError
from privug.model.batch import Column
from privug.model.conditions import any_of, both, chosen, either, negated
from privug.model.node import ConstantValue, Context, ancestors
from privug.model.plan import Plan
from privug.model.plated_tables import PlatedTable
from privug.model.plates import Plate, current_plate, fold, going_through, holds_of_nothing
from privug.model.table import Row
from privug.model.variable import RandomVariable, path_condition, refuse
from privug.prior.choice import constant_value, is_constant
from privug.prior.family import is_distribution, parameters_of, replicate
from privug.scoping import Held

Predicate = Callable[[Any], Any]


def where(condition: Any, yes: Any, no: Any) -> Any:
    """Return `yes` where the condition holds, else `no`.

    >>> import privug as pv
    >>> pv.where(3 > 2, "larger", "smaller")
    'larger'
    >>> pv.where(pv.Bernoulli(0.5), 1.0, 0.0)
    <RandomVariable: discrete float64>
    """
    if any(isinstance(value, RandomVariable) for value in (condition, yes, no)):
        return chosen(condition, yes, no)
    if isinstance(condition, np.ndarray) and condition.ndim:
        return np.where(condition, yes, no)
    return yes if condition else no


def count(rows: Any, predicate: Predicate) -> Any:
    """Return how many rows satisfy the predicate.

    >>> import privug as pv
    >>> pv.count([17, 30, 42], lambda age: age >= 18)
    2
    """
    verdicts = _verdicts("count", rows, predicate, "sum")
    if isinstance(verdicts, RandomVariable):
        return verdicts.sum()
    return sum((_number(verdict) for verdict in verdicts), 0)


def forall(rows: Any, predicate: Predicate, then: Predicate | None = None) -> Any:
    """Say whether all rows satisfy the predicate; with `then`, whether all rows that satisfy it satisfy `then` too.

    >>> import privug as pv
    >>> pv.forall([17, 30, 42], lambda age: age > 20, then=lambda age: age < 50)
    True
    """
    if then is not None and isinstance(rows, PlatedTable):
        return forall(rows, lambda row: either(negated(_truth(predicate(row))), _truth(then(row))))
    verdicts = _verdicts("forall", rows, predicate, "all")
    if then is not None:
        consequences = _verdicts("forall", rows, then, "all")
        if isinstance(verdicts, RandomVariable):
            return (negated(verdicts) | _truth(consequences)).all()
        verdicts = [either(negated(a), b) for a, b in zip(verdicts, consequences, strict=True)]
    if isinstance(verdicts, RandomVariable):
        return verdicts.all()
    return reduce(both, verdicts, True)


def exists(rows: Any, predicate: Predicate) -> Any:
    """Say whether any row satisfies the predicate.

    >>> import privug as pv
    >>> pv.exists([17, 30, 42], lambda age: age > 50)
    False
    """
    verdicts = _verdicts("exists", rows, predicate, "any")
    if isinstance(verdicts, RandomVariable):
        return verdicts.any()
    return any_of(verdicts)


def _verdicts(name: str, rows: Any, predicate: Predicate, how: str) -> Any:
    """Return the predicate's verdict on each row: as one array for an array of numbers, else one by one.

    Where many rows are alike there is one verdict for all of them: how many, whether all or whether any.
    """
    if not callable(predicate):
        raise ArgumentError(f"{name}: the predicate must be a function of a row, not {shown(predicate)}")
    if isinstance(rows, RandomVariable):
        if rows.ndim != 1:
            raise ArgumentError(f"{name}: the rows must be a table, a list or an array")
        verdicts = predicate(rows)
        if isinstance(verdicts, RandomVariable) and verdicts.shape == rows.shape:
            return _truth(verdicts)
        rows = list(rows)
    if not isinstance(rows, Iterable):
        raise ArgumentError(f"{name}: the rows must be a table, a list or an array, not {shown(rows)}")
    if isinstance(rows, PlatedTable):
        pairs = zip(rows.segments, rows.conditions, strict=True)
        return [_verdict(segment, there, predicate, how) for segment, there in pairs]
    return [_truth(predicate(row)) for row in rows]


def _verdict(segment: Any, there: Any, predicate: Predicate, how: str) -> Any:
    if not isinstance(segment, Plate):
        verdict = _truth(predicate(segment))
        return either(negated(there), verdict) if holds_of_nothing(how) else both(there, verdict)
    with going_through(segment):
        return fold(segment, how, _truth(predicate(segment.row)))


def _truth(value: Any) -> Any:
    if isinstance(value, RandomVariable):
        return value if value.node.dtype == np.dtype(bool) else value != 0
    try:
        return bool(value)
    except ValueError:  # of an array
        raise ArgumentError(f"a predicate must say True or False of a row, not {shown(value)}") from None


def _number(verdict: Any) -> Any:
    return verdict if isinstance(verdict, RandomVariable) else int(verdict)


recorded: Held[list[tuple[RandomVariable, RandomVariable | None]] | None] = Held(None)
"""While a program is traced: the draws it made, in order, each with the random condition it was made under."""

followed: Held[list[RandomVariable] | None] = Held(None)
"""While a program is followed along one of its paths: the draws it made, in order."""

replayed: Held[list[Any] | None] = Held(None)
"""While a plain call is compared with the traced program: the values its draws must take, last one first."""

ambient_rng: Held[np.random.Generator | None] = Held(None)
"""Where plain calls draw from while an engine makes them."""


def sample(distribution: Any) -> Any:
    """Draw from a distribution inside a program: every call is a draw of its own.

    >>> import privug as pv
    >>> def noisy_total(ages):
    ...     return sum(ages) + pv.sample(pv.Laplace(0, 100 / 0.5))
    >>> isinstance(noisy_total([30, 40]), float)
    True
    """
    if isinstance(distribution, Row):
        return Row(**{name: sample(cell) for name, cell in distribution._asdict().items()})
    if not isinstance(distribution, RandomVariable):
        return distribution
    if is_constant(distribution):
        return constant_value(distribution.node)
    if not is_distribution(distribution):
        raise PriorError(
            "sample: write pv.sample(pv.Laplace(0, 1)) with a distribution, not something computed from one"
        )
    noted = recorded.get()
    if noted is not None:
        if current_plate.get() is not None:
            refuse("a draw for each of many rows")
        drawn = replicate(distribution)
        noted.append((drawn, path_condition.get()))
        return drawn
    made = followed.get()
    if made is not None:
        made.append(replicate(distribution))
        return made[-1]
    values = replayed.get()
    if values is not None:
        if not values:
            raise PriorError("the program made more draws in a plain call than while it was traced")
        return values.pop()
    node = distribution.node
    if any(parent.is_random for parent in ancestors(parameters_of(distribution))):
        raise PriorError("sample: a parameter of this distribution is random; make it an input of the program")
    context = Context(1, ambient_rng.get() or np.random.default_rng())
    known = [parent.operation.array for parent in node.parents if isinstance(parent.operation, ConstantValue)]
    if len(known) == len(node.parents):  # what a plan would do, without the time it takes to make one
        array = node.operation.evaluate(known, context)
    else:
        array = Plan([node]).run(1, context.rng)[0]
    return Column.of(node, array).decoded()[0]
