"""The memory of a program: what outlives a call, such as global counters, logs and caches, so that it can be put back.

Kept are global names, closures, attributes of the user's own objects, classes and functions, and the contents of
lists, dictionaries, sets and arrays that hang on them. What is inside of libraries' objects is theirs.
"""

import operator
import types
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from privug.model.critical import critical_section
from privug.program.reachable import is_users, reached, slots_of

MOST_BYTES = 1 << 24  # of a container whose contents are kept

_ABSENT = object()
_CONTAINERS = (list, dict, set, deque, bytearray, np.ndarray)


class Memory:
    """What some objects can reach that may change, as it was when this was made."""

    def __init__(self, *holders: Any) -> None:
        found = reached(*holders)
        self._places: list[_Place] = [_Named(space, name) for (_, name), space in found.names.items()]
        self._places += [_Cell(cell) for cell in found.cells]
        for value in found.own:
            self._places += _places_in(value)

    def has_changed(self) -> bool:
        """Say whether anything is not as it was."""
        return any(place.has_changed() for place in self._places)

    def restore(self) -> None:
        """Put everything back as it was."""
        for place in self._places:
            if place.has_changed():
                place.restore()


@contextmanager
def undisturbed_memory(*holders: Any) -> Iterator[Memory]:
    """Leave what some objects can reach as it was; other threads wait until that is done."""
    with critical_section():
        memory = Memory(*holders)
        try:
            yield memory
        finally:
            memory.restore()


class _Place(ABC):
    """Something that can change."""

    @abstractmethod
    def has_changed(self) -> bool:
        """Say whether it is not as it was."""

    @abstractmethod
    def restore(self) -> None:
        """Put it back as it was."""


class _Binding(_Place):
    """A name that something is bound to, or nothing."""

    def __init__(self, read: Callable[[], Any]) -> None:
        self._read = read
        self._before = read()

    def has_changed(self) -> bool:
        return self._read() is not self._before


class _Named(_Binding):
    """A global name."""

    def __init__(self, space: dict[str, Any], name: str) -> None:
        self._space, self._name = space, name
        super().__init__(lambda: space.get(name, _ABSENT))

    def restore(self) -> None:
        if self._before is _ABSENT:
            del self._space[self._name]
        else:
            self._space[self._name] = self._before


class _Cell(_Binding):
    """A variable of a function around the program."""

    def __init__(self, cell: types.CellType) -> None:
        self._cell = cell
        super().__init__(self._contents)

    def _contents(self) -> Any:
        try:
            return self._cell.cell_contents
        except ValueError:
            return _ABSENT

    def restore(self) -> None:
        if self._before is _ABSENT:
            del self._cell.cell_contents
        else:
            self._cell.cell_contents = self._before


class _Slot(_Binding):
    """An attribute in a slot."""

    def __init__(self, owner: Any, name: str) -> None:
        self._owner, self._name = owner, name
        super().__init__(lambda: getattr(owner, name, _ABSENT))

    def restore(self) -> None:
        if self._before is _ABSENT:
            delattr(self._owner, self._name)
        else:
            setattr(self._owner, self._name, self._before)


class _Class(_Place):
    """The attributes of a class."""

    def __init__(self, kind: type) -> None:
        self._kind = kind
        self._before = dict(vars(kind))

    def has_changed(self) -> bool:
        now = vars(self._kind)
        return now.keys() != self._before.keys() or any(now[name] is not self._before[name] for name in now)

    def restore(self) -> None:
        for name in [name for name in vars(self._kind) if name not in self._before]:
            delattr(self._kind, name)
        for name, value in self._before.items():
            if vars(self._kind).get(name, _ABSENT) is not value:
                setattr(self._kind, name, value)


class _Contents(_Place):
    """What is in a container."""

    def __init__(self, container: Any) -> None:
        self._container = container
        self._before = _copied(container)

    def has_changed(self) -> bool:
        now, before = self._container, self._before
        match now:
            case np.ndarray():
                return bool(now.tobytes() != before.tobytes())
            case bytearray() | set():
                return bool(now != before)
            case dict():
                same_keys = len(now) == len(before) and all(map(operator.is_, now, before))
                return not same_keys or not all(map(operator.is_, now.values(), before.values()))
            case _:
                return len(now) != len(before) or not all(map(operator.is_, now, before))

    def restore(self) -> None:
        match self._container:
            case dict():
                dict.clear(self._container)
                dict.update(self._container, self._before)
            case set():
                set.clear(self._container)
                set.update(self._container, self._before)
            case list():
                list.__setitem__(self._container, slice(None), self._before)
            case deque():
                deque.clear(self._container)
                deque.extend(self._container, self._before)
            case _:
                self._container[:] = self._before


def _copied(container: Any) -> Any:
    match container:
        case dict():
            return dict(container)
        case set():
            return set(container)
        case np.ndarray() | bytearray():
            return container.copy()
        case _:
            return list(container)


def _places_in(value: Any) -> Iterator[_Place]:
    if isinstance(value, type):
        if is_users(value.__module__):
            yield _Class(value)
        return
    if isinstance(value, _CONTAINERS) and _is_kept(value):
        yield _Contents(value)
    if not isinstance(value, types.FunctionType) and not is_users(type(value).__module__):
        return
    attributes = getattr(value, "__dict__", None)
    if isinstance(attributes, dict):
        yield _Contents(attributes)
    yield from (_Slot(value, name) for name in slots_of(type(value)))


def _is_kept(container: Any) -> bool:
    """Say whether a container can change, and is not so large that it must be data rather than memory."""
    if isinstance(container, np.ndarray):
        return bool(container.flags.writeable) and container.nbytes <= MOST_BYTES
    return len(container) <= MOST_BYTES // 8
