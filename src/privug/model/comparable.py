"""Values that can be told apart: what equals nothing but itself would count as another output in every call."""

import dataclasses
import sys
import types
from collections import deque
from collections.abc import Coroutine
from enum import Enum
from typing import Any

import numpy as np

from privug.arguments import shown
from privug.model.variable import RandomVariable

_PLAIN = (int, float, bool, str, bytes, type(None), complex)


def incomparable(value: Any) -> Any:
    """Return the part of a value that equals nothing but itself, such as a lambda; None if there is none.

    Objects that are the same ones in every call are fine: members of an enum, functions and classes of a module.
    """
    if type(value) in _PLAIN or isinstance(value, RandomVariable):
        return None
    match value:
        case dict():
            parts: Any = (*value.keys(), *value.values())
        case list() | tuple() | set() | frozenset() | deque():
            parts = value
        case np.ndarray():
            parts = value.flat if value.dtype == object else ()
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            parts = [getattr(value, field.name) for field in dataclasses.fields(value)]
        case _:
            if isinstance(value, Coroutine):
                value.close()  # or Python complains that nobody has awaited it
            return None if _has_equality(value) else value
    return next((found for found in map(incomparable, parts) if found is not None), None)


def _has_equality(value: Any) -> bool:
    if isinstance(value, types.MethodType | types.MethodWrapperType) or (
        isinstance(value, types.BuiltinMethodType) and not isinstance(value.__self__, types.ModuleType | type(None))
    ):
        return False
    equality: Any = type(value).__eq__
    if equality is not object.__eq__ or isinstance(value, Enum) or value is Ellipsis or value is NotImplemented:
        return True
    return isinstance(value, type | types.FunctionType | types.BuiltinFunctionType) and _is_found_by_name(value)


def _is_found_by_name(value: Any) -> bool:
    found: Any = sys.modules.get(value.__module__ or "")
    for name in value.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is value


def described(part: Any) -> str:
    """Say what is wrong with a part of a value that cannot be told apart, and what to use instead."""
    return (
        f"{shown(part)}, which equals nothing but itself: every call would count as another value; use values that can "
        "be compared, such as numbers, strings, tuples, or objects whose class has __eq__"
    )
