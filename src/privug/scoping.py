"""What holds inside a `with` block only, and for the thread or task that runs it."""

from collections.abc import Mapping
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any, Generic, TypeVar

Value = TypeVar("Value")

_trace: ContextVar[Mapping["Held[Any]", Any]] = ContextVar("trace", default=MappingProxyType({}))
"""All that holds while a program is traced or called, in one mapping that is replaced and never changed."""


class Held(Generic[Value]):
    """One of the things that hold while a program is traced or called, with what it is elsewhere.

    >>> rows = Held(0)
    >>> with holding(rows, 3):
    ...     print(rows.get())
    3
    >>> rows.get()
    0
    """

    __slots__ = ("_elsewhere",)

    def __init__(self, elsewhere: Value) -> None:
        self._elsewhere = elsewhere

    def get(self) -> Value:
        """Return what holds here."""
        value: Value = _trace.get().get(self, self._elsewhere)
        return value

    def set(self, value: Value) -> Value:
        """Let something else hold to the end of the block at hand; return what held before."""
        before = self.get()
        _trace.set({**_trace.get(), self: value})
        return before

    def reset(self, before: Value) -> None:
        """Let hold what held before."""
        _trace.set({**_trace.get(), self: before})


class holding(Generic[Value]):  # noqa: N801 - it is called like a function
    """Give a context variable a value inside a `with` block.

    >>> depth = ContextVar("depth", default=0)
    >>> with holding(depth, 1):
    ...     print(depth.get())
    1
    >>> depth.get()
    0
    """

    __slots__ = ("_before", "_value", "_variable")

    def __init__(self, variable: ContextVar[Value] | Held[Value], value: Value) -> None:
        self._variable: Any = variable
        self._value = value

    def __enter__(self) -> None:
        self._before = self._variable.set(self._value)

    def __exit__(self, *_: object) -> None:
        self._variable.reset(self._before)
