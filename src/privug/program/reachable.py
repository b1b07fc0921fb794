"""What a program can reach besides its arguments: global names, closures, defaults, attributes, and so on from there.

Code is followed by the names that it mentions: the user's own, and that of installed libraries which it calls. The
standard library and numerical libraries are not followed: the only generators they hold are the global ones.
"""

import dis
import functools
import importlib
import sys
import types
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np

from privug.model.node import Node, Operation
from privug.model.variable import RandomVariable

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
