"""Plain values: as dictionary keys, equal where they look equal, and the types that they have in a program."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from privug.arguments import shown
from privug.errors import ArgumentError
from privug.model.node import ConstantValue, Node, Whole, ancestors, of_numpy
from privug.model.traits import Role, traits_of


def key_of(value: Any) -> Any:
    """Return a key that is equal for equal values; not-a-number is one value, and lists, tuples and arrays are alike.

    Whoever sees a dict sees its order, which may tell as much as its values: in another order it is another value.

    >>> key_of({"a": [1], "b": {2, 3}}) == key_of({"a": (1,), "b": {3, 2}})
    True
    >>> key_of({"a": [1], "b": {2, 3}}) == key_of({"b": {2, 3}, "a": [1]})
    False
    """
    match value:
        case float() | np.floating():
            return math.nan if value != value else value
        case list() | tuple():
            return list, tuple(map(key_of, value))
        case dict():
            return dict, tuple((key, key_of(part)) for key, part in value.items())
        case set() | frozenset():
            return frozenset(value)
        case np.ndarray():
            return key_of(value.tolist())
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type) and _is_unhashable(value):
            return type(value), tuple(key_of(getattr(value, field.name)) for field in dataclasses.fields(value))
    if _is_unhashable(value):
        raise ArgumentError(
            f"{shown(value)} cannot be told from other values, for {type(value).__name__} has no hash; return numbers, "
            "texts, or tuples, lists, dicts or dataclasses of them"
        )
    return value


def shown_key(value: Any) -> Any:
    """Return a value as it stands among the keys of a dict: itself, or tuples in place of what cannot be a key."""
    if not _is_unhashable(value):
        return value
    match value:
        case tuple() if hasattr(value, "_make"):
            return type(value)._make(map(shown_key, value))
        case np.ndarray():
            return shown_key(value.tolist())
        case list() | tuple():
            return tuple(map(shown_key, value))
        case dict():
            return tuple((key, shown_key(part)) for key, part in value.items())
        case set():
            return frozenset(value)
        case _ if dataclasses.is_dataclass(value):
            return tuple((field.name, shown_key(getattr(value, field.name))) for field in dataclasses.fields(value))
    return key_of(value)


def _is_unhashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return True
    return False


_OF_KIND: dict[str, type] = {"b": bool, "i": int, "f": float}
_OF_NUMPY: dict[str, type] = {"b": np.bool_, "i": np.int64, "f": np.float64}


def follows_numpy(name: str, nodes: Sequence[Node]) -> bool:
    """Say whether an operator does other than on Python's numbers: division by zero, sums of truth values."""
    if of_numpy(name, nodes) is not True:
        return False
    traits = traits_of(name)
    if traits.divides:
        return not (isinstance(nodes[1].operation, ConstantValue) and nodes[1].operation.array.all())
    if traits.role is Role.POWER:
        return any(node.dtype.kind == "f" for node in nodes)
    return all(node.dtype.kind == "b" for node in nodes)


def number_types(number: Node) -> set[type]:
    """Return the types that a single number can have: batches hold floats where only some are whole numbers."""
    if number.numpy is not False:
        own: set[type] = {_OF_KIND[number.dtype.kind]} if number.numpy is None else set()
        return own | {_OF_NUMPY[number.dtype.kind]}
    found: dict[Node, set[type]] = {}
    for node in ancestors([number]) if number.dtype.kind == "f" else [number]:
        types: set[type] = {_OF_KIND.get(node.dtype.kind, object)}
        operation = node.operation
        if node.dtype.kind == "f" and node.whole:
            types.add(int)
        elif node.dtype.kind == "f" and operation.traits.role is Role.CHOICE:
            types = types.union(*(found[parent] for parent in node.parents[1:]))
        elif node.dtype.kind == "f" and operation.traits.keeps_whole:
            types |= {int} if all(found[parent] & {int, bool} for parent in node.parents) else set()
        found[node] = types
    return found[number]


def retyped(numbers: list[float], whole: Whole) -> list[Any]:
    """Return floats with those that are whole numbers to a program as such."""
    if isinstance(whole, bool):
        return [int(number) if whole and number.is_integer() else number for number in numbers]
    return [int(number) if number in whole else number for number in numbers]
