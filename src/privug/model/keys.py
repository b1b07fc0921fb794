"""Values as dictionary keys: what looks equal has equal keys, whatever containers it is made of."""

import dataclasses
import math
from typing import Any

import numpy as np

from privug.arguments import shown
from privug.errors import ArgumentError


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
