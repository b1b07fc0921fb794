"""What holds inside a `with` block only, and for the thread or task that runs it."""

from contextvars import ContextVar, Token
from typing import Generic, TypeVar

Value = TypeVar("Value")


class holding(Generic[Value]):  # noqa: N801 - it is called like a function
    """Give a context variable a value inside a `with` block.

    >>> depth = ContextVar("depth", default=0)
    >>> with holding(depth, 1):
    ...     print(depth.get())
    1
    >>> depth.get()
    0
    """

    __slots__ = ("_token", "_value", "_variable")

    def __init__(self, variable: ContextVar[Value], value: Value) -> None:
        self._variable, self._value = variable, value

    def __enter__(self) -> None:
        self._token: Token[Value] = self._variable.set(self._value)

    def __exit__(self, *_: object) -> None:
        self._variable.reset(self._token)
