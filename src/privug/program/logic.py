"""Choices and quantifiers that work on random and on plain values alike."""

from collections.abc import Callable, Iterable
from functools import reduce
from typing import Any

import numpy as np

from privug.arguments import shown
from privug.errors import ArgumentError
from privug.model import numpy_functions
from privug.model.maybe import choice
from privug.model.plated_table import PlatedTable
from privug.model.plates import Plate, fold, going_through, holds_of_nothing
from privug.model.variable import RandomVariable, as_node

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
        nodes = as_node(condition), as_node(yes), as_node(no)
        return RandomVariable(choice(*nodes) or numpy_functions.where(*nodes))
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
        return forall(rows, lambda row: _either(_negated(_truth(predicate(row))), _truth(then(row))))
    verdicts = _verdicts("forall", rows, predicate, "all")
    if then is not None:
        consequences = _verdicts("forall", rows, then, "all")
        if isinstance(verdicts, RandomVariable):
            return (_negated(verdicts) | _truth(consequences)).all()
        verdicts = [_either(_negated(a), b) for a, b in zip(verdicts, consequences, strict=True)]
    if isinstance(verdicts, RandomVariable):
        return verdicts.all()
    return reduce(_both, verdicts, True)


def exists(rows: Any, predicate: Predicate) -> Any:
    """Say whether any row satisfies the predicate.

    >>> import privug as pv
    >>> pv.exists([17, 30, 42], lambda age: age > 50)
    False
    """
    verdicts = _verdicts("exists", rows, predicate, "any")
    if isinstance(verdicts, RandomVariable):
        return verdicts.any()
    return reduce(_either, verdicts, False)


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
        return _either(_negated(there), verdict) if holds_of_nothing(how) else _both(there, verdict)
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


def _negated(verdict: Any) -> Any:
    return ~verdict if isinstance(verdict, RandomVariable) else not verdict


def _both(left: Any, right: Any) -> Any:
    if isinstance(left, bool):
        return right if left else False
    return left & right if isinstance(right, RandomVariable) or right else False


def _either(left: Any, right: Any) -> Any:
    if isinstance(left, bool):
        return True if left else right
    return left | right if isinstance(right, RandomVariable) or not right else True
