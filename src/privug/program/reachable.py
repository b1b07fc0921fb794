"""What a program can reach besides its arguments: names, random generators, memory that outlives a call.

Code is followed by the names that it mentions: the user's own, and that of installed libraries which it calls. The
standard library and numerical libraries are not followed: the only generators they hold are the global ones.

What comes from the operating system (`secrets`, `uuid4`, `os.urandom`, a generator made without a seed in each call)
cannot be made to follow a seed. It is found by its name, so that no such program is ever taken for a function.

Kept are global names, closures, attributes of the user's own objects, classes and functions, and the contents of
lists, dictionaries, sets and arrays that hang on them. What is inside of libraries' objects is theirs.
"""

import dis
import functools
import importlib
import operator
import random
import sys
import types
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np

from privug.model.node import Node, Operation
from privug.model.variable import RandomVariable
from privug.runtime.critical import critical_section

MOST_OBJECTS = 2_000  # of the user's own that are looked at, nearest to the program first
MOST_FOREIGN = 500  # inside of libraries

_LEFT_ALONE = frozenset(sys.stdlib_module_names) | {"privug", "numpy", "scipy", "numba", "pandas", "polars", "pyarrow"}
_ATOMS = (int, float, complex, str, bytes, type(None), np.generic, RandomVariable, Node, Operation)
_SCALARS = frozenset({int, float, complex, str, bytes, bool, type(None)})
_IMPORTED_INSIDE = ("os", "random", "secrets", "uuid", "numpy")  # worth importing to see what a program takes of them


@dataclass(frozen=True)
class Mentions:
    """The names that some code mentions, that of functions defined in it included."""

    names: frozenset[str]
    attributes: frozenset[str]
    imports: frozenset[str]
    called_bare: frozenset[str]
    """The names that are called without any argument."""
    texts: frozenset[str]


@dataclass
class Reached:
    """What was found: all objects, and of the user's own code what it mentions."""

    objects: list[Any] = field(default_factory=list)
    own: list[Any] = field(default_factory=list)
    """The objects that are not a library's, nor inside of one that is."""
    held: list[Any] = field(default_factory=list)
    """Those, and what they hold of libraries."""
    names: dict[tuple[int, str], dict[str, Any]] = field(default_factory=dict)
    """The global names, by the dictionaries they stand in."""
    cells: list[types.CellType] = field(default_factory=list)
    code: list[Mentions] = field(default_factory=list)
    taken: list[tuple[str, Any, Mentions]] = field(default_factory=list)
    """What code takes by a global name or from a module, under which name, and all that this code mentions."""


def reached(*roots: Any) -> Reached:
    """Return what can be reached from some objects, nearest first; what was found before is taken as it is."""
    if len(roots) == 1 and isinstance(roots[0], Reached):
        return roots[0]
    found, foreign = Reached(), Reached()
    seen: set[tuple[int, bool]] = set()
    waiting = deque((root, True) for root in roots)
    while waiting:
        value, inside_own = waiting.popleft()
        if isinstance(value, _ATOMS):
            continue
        is_own = inside_own and _is_own(value)
        if (id(value), True) in seen or (id(value), is_own) in seen:
            continue
        if len(found.own if is_own else foreign.objects) >= (MOST_OBJECTS if is_own else MOST_FOREIGN):
            continue
        seen.add((id(value), is_own))
        found.objects.append(value)
        if inside_own:
            found.held.append(value)
        if is_own:
            found.own.append(value)
            waiting.extend((part, True) for part in islice(_parts(value, found), MOST_OBJECTS))
            continue
        foreign.objects.append(value)
        # What a library's function or object is wrapped around can be the user's own; what else is in it cannot.
        waiting.extend((part, inside_own) for part in _wrapped(value))
        if inside_own or not isinstance(value, types.FunctionType):  # but not from library to library
            waiting.extend((part, False) for part in islice(_parts(value, foreign), MOST_FOREIGN))
    return found


def _wrapped(value: Any) -> Iterator[Any]:
    """Yield the functions that a decorated function, or a program of Privug's own, calls."""
    if isinstance(value, types.FunctionType):
        for cell in value.__closure__ or ():
            yield from _contents(cell)
    elif type(value).__module__.partition(".")[0] == "privug":
        yield from (part for part in _attributes(value) if callable(part))
    yield getattr(value, "__wrapped__", None) if callable(value) else None


def is_users(module: str | None) -> bool:
    """Say whether a module is the user's own, not one of an installed library."""
    if not _is_followed(module):
        return False
    file = getattr(sys.modules.get(module or ""), "__file__", None) or ""
    return not any(folder in file for folder in ("site-packages", "dist-packages"))


def _is_followed(module: str | None) -> bool:
    """Say whether code of a module may hold generators of its own."""
    name = (module or "").partition(".")[0]
    return name not in _LEFT_ALONE and not name.startswith("_cython_")


def _is_own(value: Any) -> bool:
    """Say whether an object inside of the user's own is so too: containers are, all else if it was defined there."""
    if isinstance(value, types.FunctionType):
        return is_users(value.__globals__.get("__name__"))
    if isinstance(value, type):
        return is_users(value.__module__)
    module = type(value).__module__
    return module in ("builtins", "functools", "collections", "numpy", "random", "types") or is_users(module)


def _parts(value: Any, found: Reached) -> Iterator[Any]:
    match value:
        case types.FunctionType():
            yield from _of_function(value, found)
        case types.ModuleType() | types.CodeType():
            return  # only what code takes from it matters
        case type():
            yield from _of_class(value)
        case dict():
            yield from (part for part in value.values() if type(part) not in _SCALARS)
        case list() | tuple() | set() | frozenset() | deque():
            yield from (part for part in value if type(part) not in _SCALARS)
        case np.ndarray():
            yield from value.flat if value.dtype == object else ()
        case functools.partial():
            yield from (value.func, value.args, value.keywords)
        case property():
            yield from (value.fget, value.fset)
        case types.CellType():
            yield from _contents(value)
    yield from _belonging_to(value)


def _belonging_to(value: Any) -> Iterator[Any]:
    """Yield the class of an object, and what a method or a decorated function belongs to."""
    if isinstance(value, type | types.ModuleType):
        return
    if callable(value):
        for name in ("__self__", "__func__", "__wrapped__"):
            inner = getattr(value, name, None)
            if inner is not None and not isinstance(inner, types.ModuleType):
                yield inner
    if _is_followed(type(value).__module__):
        yield type(value)
    yield from _attributes(value)


def _attributes(value: Any) -> Iterator[Any]:
    """Yield what an object holds in its attributes."""
    if isinstance(value, type | types.ModuleType):
        return
    attributes = getattr(value, "__dict__", None)
    if isinstance(attributes, dict):
        yield from attributes.values()
    if _is_followed(type(value).__module__):
        yield from (getattr(value, name, None) for name in slots_of(type(value)))


def slots_of(kind: type) -> list[str]:
    """Return the names of the attributes that instances of a class hold in slots."""
    slots: list[str] = []
    for base in kind.__mro__:
        own = base.__dict__.get("__slots__", ())
        slots += [own] if isinstance(own, str) else list(own)
    return [name for name in slots if name not in ("__dict__", "__weakref__")]


def _contents(cell: types.CellType) -> Iterator[Any]:
    try:
        yield cell.cell_contents
    except ValueError:  # empty so far
        return


def _of_class(kind: type) -> Iterator[Any]:
    if not _is_followed(kind.__module__):
        return
    yield from kind.__bases__
    yield from vars(kind).values()


def _of_function(function: types.FunctionType, found: Reached) -> Iterator[Any]:
    yield function.__defaults__
    yield function.__kwdefaults__
    cells = function.__closure__ or ()
    for cell in cells:
        yield from _contents(cell)
    if not _is_followed(function.__globals__.get("__name__")):
        return
    found.cells.extend(cells)
    mentioned = mentions(function.__code__)
    found.code.append(mentioned)
    space = function.__globals__
    for name in sorted(mentioned.names):
        found.names[id(space), name] = space
        if name in space:
            yield from _taken(name, space[name], mentioned, found)
    for name in sorted(mentioned.imports):
        module = importlib.import_module(name) if name in _IMPORTED_INSIDE else sys.modules.get(name)
        yield from _taken(name, module, mentioned, found)
    for cell in cells:
        for inner in _contents(cell):
            yield from _taken("", inner, mentioned, found)


def _taken(name: str, value: Any, mentioned: Mentions, found: Reached) -> Iterator[Any]:
    """Yield an object that code mentions, and of a module what the code takes from it."""
    waiting, seen = [(name, value)], set[int]()
    while waiting:
        known_as, owner = waiting.pop()
        found.taken.append((known_as, owner, mentioned))
        yield owner
        if not isinstance(owner, types.ModuleType) or id(owner) in seen:
            continue
        seen.add(id(owner))
        space = vars(owner)
        for attribute in sorted(mentioned.attributes):
            if is_users(owner.__name__):
                found.names[id(space), attribute] = space
            if attribute in space:
                waiting.append((attribute, space[attribute]))


@functools.lru_cache(maxsize=4096)
def mentions(code: types.CodeType) -> Mentions:
    """Return the names that some code mentions."""
    names: set[str] = set()
    attributes: set[str] = set()
    imports: set[str] = set()
    bare: set[str] = set()
    steps = [step for step in dis.get_instructions(code) if step.opname not in ("CACHE", "PRECALL", "PUSH_NULL")]
    for step, after in zip(steps, [*steps[1:], None], strict=True):
        kind, name = step.opname, str(step.argval)
        if kind == "IMPORT_NAME":
            imports.add(name)
        elif kind.endswith(("_GLOBAL", "_NAME")):
            names.add(name)
        elif kind in ("LOAD_ATTR", "LOAD_METHOD", "IMPORT_FROM", "STORE_ATTR", "DELETE_ATTR"):
            attributes.add(name)
        if kind.startswith("LOAD_") and after is not None and after.opname == "CALL" and after.arg == 0:
            bare.add(name)
    texts = {constant for constant in code.co_consts if isinstance(constant, str)}
    inner = [mentions(constant) for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return Mentions(
        frozenset(names.union(*(one.names for one in inner))),
        frozenset(attributes.union(*(one.attributes for one in inner))),
        frozenset(imports.union(*(one.imports for one in inner))),
        frozenset(bare.union(*(one.called_bare for one in inner))),
        frozenset(texts.union(*(one.texts for one in inner))),
    )


_GLOBAL: tuple[Any, ...] = (random.random.__self__, np.random.mtrand._rand)  # type: ignore[attr-defined]

_KINDS = (np.random.BitGenerator, np.random.RandomState, random.Random)
_ENTROPY = {
    ("posix", "urandom"), ("nt", "urandom"), ("posix", "getrandom"),
    ("secrets", "randbelow"), ("secrets", "randbits"), ("secrets", "choice"),
    ("secrets", "token_bytes"), ("secrets", "token_hex"), ("secrets", "token_urlsafe"),
    ("uuid", "uuid1"), ("uuid", "uuid4"),
}  # fmt: skip
_DEVICES = {"/dev/urandom", "/dev/random"}
_MAKERS = (
    random.Random, np.random.default_rng, np.random.RandomState, np.random.SeedSequence, np.random.PCG64,
    np.random.PCG64DXSM, np.random.MT19937, np.random.SFC64, np.random.Philox,
)  # fmt: skip


class Generators:
    """The generators that some objects hold, and Python's and NumPy's global ones first."""

    def __init__(self, *holders: Any) -> None:
        found = [*_GLOBAL, *_generators(reached(*holders))] if holders else _GLOBAL
        self._all = list({id(generator): generator for generator in found}.values())

    def states(self) -> list[Any]:
        """Return the states of all generators."""
        return [_state(generator) for generator in self._all]

    def restore(self, states: Sequence[Any]) -> None:
        """Put all generators back into states they had."""
        for generator, state in zip(self._all, states, strict=True):
            _put_back(generator, state)

    def have_moved(self, states: Sequence[Any]) -> bool:
        """Say whether any generator has been used since it had a state."""
        return not all(
            is_same_state(_state(generator), state) for generator, state in zip(self._all, states, strict=True)
        )

    def seed(self, seed: int) -> None:
        """Start all generators anew, each with a stream of its own."""
        random.seed(seed)
        np.random.seed(seed)
        for number, generator in enumerate(self._all[len(_GLOBAL) :], 1):
            _seed(generator, np.random.SeedSequence(seed, spawn_key=(number,)))


def _generators(found: Reached) -> Iterator[Any]:
    for value in found.objects:
        if isinstance(value, np.random.Generator):
            yield value.bit_generator
        elif isinstance(value, _KINDS) and not isinstance(value, random.SystemRandom):
            yield value


def _state(generator: Any) -> Any:
    match generator:
        case np.random.BitGenerator():
            return generator.state
        case np.random.RandomState():
            return generator.get_state(legacy=False)
        case _:
            with suppress(NotImplementedError):  # one of the user's own that has no state
                return generator.getstate()


def _put_back(generator: Any, state: Any) -> None:
    match generator:
        case np.random.BitGenerator():
            generator.state = state
        case np.random.RandomState():
            generator.set_state(state)
        case _ if state is not None:
            generator.setstate(state)


def _seed(generator: Any, sequence: np.random.SeedSequence) -> None:
    match generator:
        case np.random.BitGenerator():
            make: Callable[..., Any] = type(generator)
            generator.state = make(sequence).state
        case np.random.RandomState():
            state: Any = generator.get_state(legacy=False)
            fresh = getattr(np.random, state["bit_generator"])(sequence).state
            generator.set_state({**fresh, "has_gauss": 0, "gauss": 0.0})
        case _:
            generator.seed(int.from_bytes(sequence.generate_state(4).tobytes(), "little"))


def is_same_state(left: Any, right: Any) -> bool:
    """Compare two states of a generator."""
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(is_same_state(left[key], right[key]) for key in left)
    return bool(np.array_equal(left, right)) if isinstance(left, np.ndarray) else bool(left == right)


def entropy_source(*holders: Any) -> str | None:
    """Return the name of something in a program whose randomness is the operating system's, if there is any."""
    found = reached(*holders)
    for value in found.held:
        if isinstance(value, random.SystemRandom) or value is random.SystemRandom:
            return "random.SystemRandom"
        named = (getattr(value, "__module__", None), getattr(value, "__name__", None))
        texts_only = all(isinstance(part, str) for part in named)  # pl.col has any attribute
        if callable(value) and texts_only and named in _ENTROPY:
            return f"{'os' if named[0] in ('posix', 'nt') else named[0]}.{named[1]}"
    for name, value, code in found.taken:
        if name in code.called_bare and any(value is maker for maker in _MAKERS):
            return f"{name}() without a seed"
    texts = frozenset().union(*(code.texts for code in found.code))
    return next((device for device in sorted(_DEVICES) if device in texts), None)


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
