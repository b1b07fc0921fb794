"""Expressions of rewritten programs: logic, comparisons, comprehensions and subscripts on random values."""

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from privug.model.categories import map_levels
from privug.model.maybe import Maybe, is_maybe
from privug.model.plated_tables import RaggedTable
from privug.model.table import Table, like_row
from privug.model.variable import RandomVariable, item_of, refuse
from privug.program.traced import opaque
from privug.program.traced.control import Block
from privug.program.traced.dictionaries import MaskedDict, MaskedSet
from privug.program.traced.iteration import any_item, holds_random, is_numbered, row_at
from privug.program.traced.keyed import changed_by_rows
from privug.program.traced.keys import alternatives, has_random, positioned
from privug.program.traced.masks import (
    UNDEFINED,
    CallOnly,
    Mask,
    MaskedList,
    OneOf,
    Standing,
    any_of,
    both,
    either,
    fail_where,
    is_value,
    negated,
    one_of,
    select,
    truth,
)
from privug.program.traced.selections import is_mask, selected
from privug.program.traced.slots import found, is_unset


def and_(*parts: Callable[[], Any]) -> Any:
    """Python's `and`: the first false value, or the last one; later parts run only where earlier ones hold."""
    value = parts[0]()
    for position, part in enumerate(parts[1:], 1):
        held = truth(value)
        if isinstance(held, bool):
            if not held:
                return value
            value = part()
            continue
        rest = attempted(held, functools.partial(and_, *parts[position:]))
        if rest is UNDEFINED:
            return value
        both_masks = _is_truth_value(value) and _is_truth_value(rest)
        return both(held, truth(rest)) if both_masks else select(held, rest, value)
    return value


def or_(*parts: Callable[[], Any]) -> Any:
    """Python's `or`: the first true value, or the last one; later parts run only where earlier ones fail."""
    value = parts[0]()
    for position, part in enumerate(parts[1:], 1):
        held = truth(value)
        if isinstance(held, bool):
            if held:
                return value
            value = part()
            continue
        rest = attempted(negated(held), functools.partial(or_, *parts[position:]))
        if rest is UNDEFINED:
            return value
        both_masks = _is_truth_value(value) and _is_truth_value(rest)
        return either(held, truth(rest)) if both_masks else select(held, value, rest)
    return value


def attempted(condition: Mask, part: Callable[[], Any]) -> Any:
    """Return a part of an expression that is evaluated under a condition; `UNDEFINED` if that fails and is caught."""
    value: Any = UNDEFINED
    with Block(None, condition):
        value = part()
    return value


def _is_truth_value(value: Any) -> bool:
    if isinstance(value, RandomVariable):
        return value.node.levels is None and value.node.dtype == bool
    return isinstance(value, bool)


def not_(value: Any) -> Any:
    """Python's `not`."""
    return negated(truth(value))


def choose(test: Any, yes: Callable[[], Any], no: Callable[[], Any]) -> Any:
    """Python's conditional expression: `yes() if test else no()`."""
    condition = truth(test)
    if isinstance(condition, bool):
        return yes() if condition else no()
    taken, otherwise = attempted(condition, yes), attempted(negated(condition), no)
    return select(condition, taken, otherwise)


COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "Eq": operator.eq, "NotEq": operator.ne, "Lt": operator.lt, "LtE": operator.le, "Gt": operator.gt,
    "GtE": operator.ge, "Is": operator.is_, "IsNot": operator.is_not,
}  # fmt: skip


def compare(left: Any, *steps: tuple[str, Callable[[], Any]]) -> Any:
    """Compare a chain such as `low <= x < high`, or test membership."""
    name, right = steps[0]
    value = right()
    result = _compare_once(name, left, value)
    if len(steps) == 1:
        return result
    return and_(lambda: result, lambda: compare(value, *steps[1:]))


def _compare_once(name: str, left: Any, right: Any) -> Any:
    unset = is_unset(left) if name in ("Is", "IsNot") and right is None else None
    if unset is not None:
        return unset if name == "Is" else not_(unset)
    left, right = found(left), found(right)
    if name in ("In", "NotIn"):
        inside = contains(right, left)
        return inside if name == "In" else not_(inside)
    if name in ("Is", "IsNot") and any(isinstance(side, RandomVariable) for side in (left, right)):
        same = _identical(left, right)
        return same if name == "Is" else not_(same)
    if isinstance(left, list | tuple) and isinstance(right, list | tuple) and name in ("Eq", "NotEq"):
        same = _equal_sequences(left, right)
        return same if name == "Eq" else not_(same)
    if name in ("Eq", "NotEq") and (_is_maybe(left) or _is_maybe(right)):
        same = _equal_if_there(left, right) if _is_maybe(left) else _equal_if_there(right, left)
        return same if name == "Eq" else not_(same)
    return COMPARISONS[name](left, right)


def _identical(left: Any, right: Any) -> Any:
    """Python's `is`, which has a meaning for None, True and False only."""
    if right is None or isinstance(right, bool):
        assert isinstance(left, RandomVariable)
        if isinstance(left.node.operation, Maybe):
            return _equal_if_there(left, right) if right is None else refuse("'is' between random values")
        if left.node.levels is not None:
            return RandomVariable(map_levels(left.node, lambda level: level is right))
        if isinstance(right, bool) and (left.node.numpy or left.node.dtype.kind == "f"):
            refuse("'is' of a truth value of NumPy, or of one that may be missing")
        return left == right if isinstance(right, bool) and left.node.dtype == bool else False
    return refuse("'is' between random values")


def _is_maybe(value: Any) -> bool:
    return isinstance(value, RandomVariable) and is_maybe(value.node)


def _equal_if_there(left: RandomVariable, right: Any) -> Mask:
    """Compare a number that may be missing with a plain value or with a number."""
    assert isinstance(left.node.operation, Maybe)
    present, number = map(RandomVariable, left.node.parents)
    if right is None or isinstance(right, str):
        return negated(present) if right == left.node.operation.otherwise else False
    if _is_maybe(right):
        refuse("a comparison of two numbers that may be missing")
    return both(present, truth(number == right))


def _equal_sequences(left: Any, right: Any) -> Any:
    if any(isinstance(side, MaskedList) and not side.is_certain for side in (left, right)):
        refuse("a comparison of lists of random length")
    if len(left) != len(right) or isinstance(left, list) != isinstance(right, list):
        return False
    return and_(lambda: True, *(_equality(a, b) for a, b in zip(left, right, strict=True)))


def equal(left: Any, right: Any) -> Any:
    """Python's `==`."""
    return _compare_once("Eq", left, right)


def _equality(left: Any, right: Any) -> Callable[[], Any]:
    return lambda: equal(left, right)


def contains(container: Any, item: Any) -> Any:
    """Python's `in`."""
    if isinstance(container, MaskedDict | MaskedSet | Standing):
        return container.contains(item)
    for value in (container, item):
        if isinstance(value, CallOnly) and isinstance(container, str | CallOnly):
            return opaque.applied(operator.contains, container, item)
    if isinstance(container, dict) and changed_by_rows(container) is not None:
        return any_of([hit for level, hit in alternatives(item).items() if level in container])
    if isinstance(container, RandomVariable):
        if container.node.levels is not None and container.node.shape == ():
            return RandomVariable(map_levels(container.node, lambda level: item in level))
        return (container == item).any()
    if isinstance(item, RandomVariable) and isinstance(container, str):
        return RandomVariable(map_levels(item.node, lambda level: level in container))
    if not holds_random(item) and not holds_random(container):
        return item in container
    return any_item(container, lambda part, there: both(there, truth(equal(item, part))))


def subscript(container: Any, key: Any) -> Any:
    """Return `container[key]`, where the key may be random."""
    if isinstance(container, RaggedTable) and type(key) is int:
        fail_where(container.size <= key, IndexError("list index out of range"))
        return container.row_at(key)
    if is_numbered(container):
        return row_at(container, key)
    by_rows = changed_by_rows(container)
    if by_rows is not None:
        return by_rows.read(key)
    if is_mask(key) and isinstance(container, RandomVariable | np.ndarray):
        return selected(container, key)
    if isinstance(container, OneOf):
        return one_of([(mask, subscript(target, key)) for mask, target in container.targets])
    if isinstance(container, MaskedDict) or not has_random(key) or isinstance(container, RandomVariable | Table):
        return container[key]
    if isinstance(container, dict):
        return entry(container, key)
    if type(container) in (list, tuple, MaskedList):
        return gathered(list(container), key)
    return container[key]


def gathered(values: list[Any], key: RandomVariable) -> Any:
    """Return the item at a random position; rows and tuples position by position."""
    first = values[0] if values else None
    if isinstance(first, tuple) and all(type(value) is type(first) and len(value) == len(first) for value in values):
        parts = [gathered([value[k] for value in values], key) for k in range(len(first))]
        return like_row(first, parts)
    if values and all(isinstance(value, MaskedList) for value in values):
        hits = [(positioned(key, position, len(values)), value) for position, value in enumerate(values)]
        fail_where(negated(any_of([hit for hit, _ in hits])), IndexError("list index out of range"))
        return one_of(hits)
    if not all(is_value(value) for value in values):
        refuse("a list of containers or objects at a random position")
    return item_of(values, key)


def entry(table: dict[Any, Any], key: Any, checked: bool = True) -> Any:
    """Return the entry of a plain dictionary at a random key."""
    hits = alternatives(key)
    found = [(hit, table[level]) for level, hit in hits.items() if level in table]
    if checked and len(found) < len(hits):
        fail_where(negated(any_of([hit for hit, _ in found])), KeyError("a random key"))
    return one_of(found)
