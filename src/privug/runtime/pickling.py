"""Copies, and values that pickle can write: functions without a name of their own go by way of cloudpickle."""

import importlib
import pickle
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

from privug.arguments import shown
from privug.errors import ArgumentError


class Unchanging:
    """What never changes: its copies are itself, so that one object stays one quantity."""

    __slots__ = ()

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


class Portable(Unchanging):
    """What is written part by part, functions of any kind included; what can be found again is left out."""

    found_again: ClassVar[Mapping[str, Callable[[], Any]]] = {}
    """What stands in place of parts that are left out."""

    def __getstate__(self) -> dict[str, Any]:
        written = {name: value for name, value in vars(self).items() if name not in self.found_again}
        state = {name: portable(f"this {type(self).__name__}", value) for name, value in written.items()}
        return {**state, **{name: make() for name, make in self.found_again.items()}}


class Shared(Portable):
    """What is sent to another process once and made there once, however much work goes with it."""


class Cloudpickled:
    """A value as bytes that are read back as the value itself."""

    def __init__(self, written: bytes) -> None:
        self.written = written

    def __reduce__(self) -> tuple[Any, ...]:
        return pickle.loads, (self.written,)


def portable(what: str, value: Any) -> Any:
    """Return a value, or what stands for it in a pickle: a lambda or a function inside another has no name there."""
    try:
        pickle.dumps(value)
    except ArgumentError:
        raise
    except Exception:  # pickle raises whatever the value does, and three kinds of its own
        return Cloudpickled(_by_cloudpickle(what, value))
    return value


def _by_cloudpickle(what: str, value: Any) -> bytes:
    try:
        cloudpickle = importlib.import_module("cloudpickle")
    except ImportError:
        raise ArgumentError(
            f"{what} cannot be pickled: pickle finds functions by their names, and {shown(value)} has none; define it "
            "by `def` at the top of a module, or install cloudpickle"
        ) from None
    try:
        written: bytes = cloudpickle.dumps(value)
    except Exception as error:
        raise ArgumentError(f"{what} cannot be pickled: {type(error).__name__}: {error}") from None
    return written
