"""Fingerprints of programs, priors and policies: equal in every process as long as what they are made of is equal."""

import ast
import dataclasses
import dis
import functools
import hashlib
import types
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from privug.model.node import Node, Operation, ancestors
from privug.model.variable import RandomVariable
from privug.prior.table import Records, form_of
from privug.program.traced.calling import is_users_own
from privug.program.traced.source import source_of

DEEPEST = 40  # how far containers, closures and attributes are followed


def fingerprint(value: Any) -> str:
    """Return a hash of what a value is made of: of functions the source, and what they take from around it.

    Comments and the layout of code do not matter, nor where in a file it stands.

    >>> fingerprint(lambda x: x + 1) == fingerprint(lambda x: x + 2)
    False
    """
    return hashlib.sha256(_Walk().told(value).encode("utf-8", "surrogatepass")).hexdigest()


class _Walk:
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
            case set() | frozenset():
                yield from sorted(fingerprint(part) for part in value)
            case list() | tuple():
                yield from (self.told(part, depth) for part in value)
            case types.FunctionType() if is_users_own(value):
                yield from self._function(value, depth)
            case functools.partial():
                yield from (self.told(part, depth) for part in (value.func, value.args, value.keywords))
            case types.MethodType():
                yield from (self.told(part, depth) for part in (value.__func__, value.__self__))
            case types.ModuleType():
                yield value.__name__
            case type() | types.FunctionType() | types.BuiltinFunctionType() | np.ufunc():
                yield f"{getattr(value, '__module__', None)}.{getattr(value, '__qualname__', value.__name__)}"
            case _:
                yield from self._object(value, depth)

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
        for name, value in _surroundings(function):
            yield f"{name}={self.told(value, depth)}"

    def _object(self, value: Any, depth: int) -> Iterator[str]:
        if dataclasses.is_dataclass(value):
            names = [field.name for field in dataclasses.fields(value)]
        else:
            slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
            names = sorted({*getattr(value, "__dict__", {}), *slots})
        left_out = ("may_overflow", "plan") if isinstance(value, Operation) else getattr(value, "found_again", ())
        for name in names:
            if hasattr(value, name) and name not in left_out:
                yield f"{name}={self.told(getattr(value, name), depth)}"


def _text_of(syntax: ast.FunctionDef | ast.Lambda) -> str:
    """Return a function's syntax as text, without what is said in its docstring and annotations."""
    if isinstance(syntax, ast.Lambda):
        return ast.dump(syntax)
    body = syntax.body[1:] if ast.get_docstring(syntax) is not None else syntax.body
    return " ".join(map(ast.dump, [*syntax.decorator_list, syntax.args, *body]))


def _bytecode(code: types.CodeType) -> str:
    inner = [_bytecode(one) if isinstance(one, types.CodeType) else repr(one) for one in code.co_consts]
    return f"{code.co_code.hex()} {inner} {code.co_names} {code.co_varnames}"


def _surroundings(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield what a function takes from around it: its closure, and the global names that it mentions."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # not there yet
            continue
    for name in sorted(_names(function.__code__)):
        if name in function.__globals__:
            yield name, function.__globals__[name]


def _names(code: types.CodeType) -> set[str]:
    own = {step.argval for step in dis.get_instructions(code) if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    return own.union(*(_names(one) for one in code.co_consts if isinstance(one, types.CodeType)))
