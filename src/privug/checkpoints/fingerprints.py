"""Fingerprints of programs, priors and policies: equal in every process as long as what they are made of is equal."""

import ast
import dataclasses
import dis
import functools
import hashlib
import random
import re
import shutil
import struct
import types
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from privug.model.node import Node, Operation, ancestors
from privug.model.variable import RandomVariable
from privug.prior.table import Records, form_of
from privug.program.external import External
from privug.program.reachable import is_users, mentions
from privug.program.traced.calling import is_users_own
from privug.program.traced.rewriting import source_of

_ADDRESS = re.compile(" at 0x[0-9a-fA-F]+")
DEEPEST = 120  # how far containers, closures and attributes are followed
_GENERATORS = (np.random.Generator, np.random.BitGenerator, np.random.RandomState, random.Random)  # seeded by Privug
_OF_CLASSES = {  # what Python keeps in a class besides what is written there
    *("__module__", "__qualname__", "__doc__", "__dict__", "__weakref__", "__annotations__", "__match_args__"),
    *("__dataclass_fields__", "__dataclass_params__", "__firstlineno__", "__static_attributes__", "_abc_impl"),
    *("__abstractmethods__", "__annotate_func__", "__annotations_cache__", "__classdictcell__"),
}


def fingerprint(value: Any) -> str:
    """Return a hash of what a value is made of: of functions the source, and what they take from around it.

    Comments and the layout of code do not matter, nor where in a file it stands. The user's own classes and modules are
    followed as functions are, those of libraries are known by their names; of commands the files that they name count.

    >>> fingerprint(lambda x: x + 1) == fingerprint(lambda x: x + 2)
    False
    """
    return hashlib.sha256(_FingerprintWalk().told(value).encode("utf-8", "surrogatepass")).hexdigest()


class _FingerprintWalk:
    """A walk through a value; what was met before is told by its number, so that no walk goes in circles."""

    def __init__(self) -> None:
        self._met: dict[int, int] = {}
        self._kept: list[Any] = []  # what is kept alive cannot share its identity with what comes later

    def told(self, value: Any, depth: int = DEEPEST) -> str:
        """Return a text that is equal for equal values."""
        if value is None or isinstance(value, bool | int | float | complex | str | bytes):
            return f"{type(value).__name__}:{value!r}"
        if isinstance(value, np.generic):
            return self.told(value.item(), depth)
        if depth == 0:
            return f"deep {type(value).__qualname__}"
        if id(value) in self._met:
            return f"again {self._met[id(value)]}"
        self._met[id(value)] = len(self._met)
        self._kept.append(value)
        return f"({type(value).__qualname__} " + " ".join(self._parts(value, depth - 1)) + ")"

    def _parts(self, value: Any, depth: int) -> Iterator[str]:
        match value:
            case RandomVariable():
                yield self._graph(value.node, depth)
            case Node():
                yield self._graph(value, depth)
            case Records():
                yield from (self.told(part, depth) for part in (value.size, form_of(value), value.template))
                if value.template is None:
                    yield self.told(list(value.table()) if value.is_fixed else value._row, depth)
            case np.ndarray():
                yield f"{value.dtype.str}{value.shape}"
                yield self.told(value.tolist() if value.dtype == object else value.tobytes().hex(), depth)
            case Mapping():
                yield from (f"{self.told(key, depth)}={self.told(part, depth)}" for key, part in value.items())
                yield from self._attributes(value, depth)
                if isinstance(value, defaultdict):
                    yield self.told(value.default_factory, depth)
            case set() | frozenset():
                yield from sorted(fingerprint(part) for part in value)
            case list() | tuple() | deque():
                yield from (self.told(part, depth) for part in value)
                yield from self._attributes(value, depth)
            case types.FunctionType() if is_users_own(value):
                yield from self._function(value, depth)
            case functools.partial():
                yield from (self.told(part, depth) for part in (value.func, value.args, value.keywords))
            case types.MethodType():
                yield from (self.told(part, depth) for part in (value.__func__, value.__self__))
            case types.ModuleType():
                yield value.__name__
            case External():
                yield from self._command(value, depth)
            case type() if is_users(value.__module__):
                yield from self._class(value, depth)
            case type() | types.FunctionType() | types.BuiltinFunctionType() | np.ufunc():
                yield f"{getattr(value, '__module__', None)}.{getattr(value, '__qualname__', value.__name__)}"
                owner = getattr(value, "__self__", None)
                if owner is not None and not isinstance(owner, types.ModuleType | type):
                    yield self.told(owner, depth)
            case Enum():
                yield f"{value.name} {self.told(value.value, depth)}"
            case _ if hasattr(type(value), "__array__"):  # data frames and their columns
                yield self.told(list(getattr(value, "columns", ())), depth)
                yield self.told(np.asarray(value), depth)
            case _:
                yield from self._small(value, depth) or self._object(value, depth)

    def _small(self, value: Any, depth: int) -> list[str]:
        """Tell a value of the standard library that has no parts of its own."""
        match value:
            case date() | time() | timedelta() | Decimal() | Fraction():
                return [repr(value)]
            case bytearray() | memoryview():
                return [bytes(value).hex()]
            case re.Pattern():
                return [self.told((value.pattern, value.flags), depth)]
            case struct.Struct():
                return [self.told(value.format, depth)]
        return []

    def _graph(self, node: Node, depth: int) -> str:
        """Tell all nodes behind one, parents first."""
        *before, last = ancestors([node])
        assert last is node
        told = [self.told(one, depth) for one in before if id(one) not in self._met]
        return " ".join([*told, self._node(node, depth)])

    def _node(self, node: Node, depth: int) -> str:
        parents = [self.told(parent, depth) for parent in node.parents]
        own = f"{node.shape} {node.dtype.str} {node.kind} {self.told(node.levels, depth)}"
        return f"{self.told(node.operation, depth)} of {parents} {own}"

    def _function(self, function: types.FunctionType, depth: int) -> Iterator[str]:
        code = function.__code__
        syntax = source_of(code)
        yield _bytecode(code) if syntax is None else _text_of(syntax)
        yield self.told(function.__defaults__, depth)
        yield self.told(function.__kwdefaults__, depth)
        yield from self._attributes(function, depth)
        for name, value in _surroundings(function):
            yield f"{name}={self.told(value, depth)}"

    def _attributes(self, value: Any, depth: int) -> Iterator[str]:
        """Tell what was put on a function, or on a container of a class of its own."""
        for name, part in sorted(getattr(value, "__dict__", {}).items()):
            if name not in ("__wrapped__", "__signature__"):
                yield f"{name}={self.told(part, depth)}"

    def _object(self, value: Any, depth: int) -> Iterator[str]:
        if dataclasses.is_dataclass(value):
            names = [field.name for field in dataclasses.fields(value) if field.compare]
        else:
            slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
            names = sorted({*getattr(value, "__dict__", {}), *slots})
        if is_users(type(value).__module__):
            yield self.told(type(value), depth)
        elif not type(value).__module__.startswith("privug."):  # a library may keep its parts out of Python's sight
            yield _ADDRESS.sub("", str(value))
        if not names and not isinstance(value, _GENERATORS):
            yield self._reduced(value, depth)
        left_out = ("may_overflow", "plan") if isinstance(value, Operation) else getattr(value, "found_again", ())
        for name in names:
            if hasattr(value, name) and name not in left_out:
                yield f"{name}={self.told(getattr(value, name), depth)}"

    def _reduced(self, value: Any, depth: int) -> str:
        """Tell of an object without attributes what pickle would write, such as the pattern of a regular expression."""
        try:
            reduced = value.__reduce_ex__(2)
        except Exception:
            return ""
        parts = reduced[1:] if isinstance(reduced, tuple) else (reduced,)
        return self.told([list(part) if isinstance(part, Iterator) else part for part in parts], depth)

    def _class(self, kind: type, depth: int) -> Iterator[str]:
        yield f"{kind.__module__}.{kind.__qualname__} {self.told(kind.__bases__, depth)}"
        if issubclass(kind, Enum):
            yield self.told({name: member.value for name, member in kind.__members__.items()}, depth)
        for name, value in sorted(vars(kind).items()):
            inner = value.__func__ if isinstance(value, staticmethod | classmethod) else value
            if isinstance(inner, property):
                inner = inner.fget
            is_code = isinstance(inner, types.FunctionType) and is_users_own(inner)
            if is_code or (name not in _OF_CLASSES and not issubclass(kind, Enum) and not _is_descriptor(inner)):
                yield f"{name}={self.told(inner, depth)}"

    def _command(self, external: External, depth: int) -> Iterator[str]:
        """Tell a command by its words, and by what is in the files that they name."""
        yield self.told(external.command, depth)
        for word in dict.fromkeys([*external.command, shutil.which(external.command[0]) or ""]):
            path = Path(word)
            if word and len(word) < 4096 and "\0" not in word and path.is_file():
                with path.open("rb") as file:
                    yield f"{word}={hashlib.file_digest(file, 'sha256').hexdigest()}"


def _is_descriptor(value: Any) -> bool:
    return hasattr(type(value), "__get__") and not isinstance(value, types.FunctionType)


def _text_of(syntax: ast.FunctionDef | ast.Lambda) -> str:
    """Return a function's syntax as text, without what is said in its docstring and annotations."""
    if isinstance(syntax, ast.Lambda):
        return ast.dump(syntax)
    body = syntax.body[1:] if ast.get_docstring(syntax) is not None else syntax.body
    return " ".join(map(ast.dump, [*syntax.decorator_list, syntax.args, *body]))


def _bytecode(code: types.CodeType) -> str:
    inner = [_constant(one) for one in code.co_consts]
    return f"{code.co_code.hex()} {inner} {code.co_names} {code.co_varnames}"


def _constant(value: Any) -> str:
    """Tell a constant of some code; the order of sets is another one in each process."""
    if isinstance(value, types.CodeType):
        return _bytecode(value)
    return f"set {sorted(map(_constant, value))}" if isinstance(value, frozenset) else repr(value)


def _surroundings(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield what a function takes from around it: its closure, and the global names that it mentions."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # not there yet
            continue
    attributes = sorted(mentions(function.__code__).attributes)
    for name in sorted(_names(function.__code__)):
        if name in function.__globals__:
            yield name, function.__globals__[name]
            yield from _of_module(name, function.__globals__[name], attributes)


def _of_module(name: str, module: Any, attributes: list[str]) -> Iterator[tuple[str, Any]]:
    """Yield what code takes from a module of the user's, and from modules in that."""
    waiting = [(name, module)]
    met: set[int] = set()
    while waiting:
        path, owner = waiting.pop()
        if not isinstance(owner, types.ModuleType) or not is_users(owner.__name__) or id(owner) in met:
            continue
        met.add(id(owner))
        taken = [
            (f"{path}.{attribute}", vars(owner)[attribute]) for attribute in attributes if attribute in vars(owner)
        ]
        yield from taken
        waiting += taken


def _names(code: types.CodeType) -> set[str]:
    own = {step.argval for step in dis.get_instructions(code) if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    return own.union(*(_names(one) for one in code.co_consts if isinstance(one, types.CodeType)))
