"""What a compiled program depends on, in one hash: its code, all that it takes in from around it, and the compiler."""

import builtins
import dis
import hashlib
import platform
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import llvmlite  # type: ignore[import-untyped]
import numba
import numpy as np
from numba.core import config as numba_config
from numba.core.registry import cpu_target

from privug.program.native.arguments import Layout
from privug.program.traced.calling import is_users_own

config: Any = numba_config
_EMPTY = object()


@dataclass(frozen=True)
class Fingerprint:
    """Equal fingerprints stand for equal compiled code."""

    digest: str
    is_portable: bool
    """Whether it means the same in other processes: not if the program takes in an object known by its place only."""


def fingerprint(program: Any, layout: Layout) -> Fingerprint:
    """Return the fingerprint of a program compiled for such arguments, as its surroundings are now."""
    walk = _Walk()
    walk.add(program)
    walk.note("layout", repr([(p.kinds, p.names, p.rank) for p in layout.parameters]), repr(layout.names))
    walk.note("compiler", _compiler())
    return Fingerprint(walk.hash.hexdigest(), walk.is_portable)


@lru_cache(maxsize=1)
def _compiler() -> str:
    """Describe what compiles: versions, this package's own text, and the processor that code is made for."""
    own = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        own.update(path.read_bytes())
    versions = (platform.python_implementation(), platform.python_version(), numba.__version__, llvmlite.__version__)
    target = cpu_target.target_context.codegen().magic_tuple()
    return repr((*versions, np.__version__, own.hexdigest(), target, config.OPT, config.BOUNDSCHECK))


class _Walk:
    """A walk through a program and all that its global names and the variables around it stand for."""

    def __init__(self) -> None:
        self.hash = hashlib.sha256()
        self.is_portable = True
        self._seen: dict[Any, int] = {}

    def note(self, *parts: str | bytes) -> None:
        """Take in some parts; their lengths keep them apart."""
        for part in parts:
            encoded = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
            self.hash.update(b"%d:" % len(encoded))
            self.hash.update(encoded)

    def add(self, value: Any) -> None:
        """Take in a value that the program uses."""
        kind = type(value).__qualname__
        match value:
            case types.FunctionType() if is_users_own(value):
                self._add_function(value)
            case types.CodeType():
                self._add_code(value)
            case int():
                self.note(kind, hex(value))
            case None | str() | bytes() | float() | complex():
                self.note(kind, repr(value))
            case tuple():
                self.note(kind, str(len(value)))
                for part in value:
                    self.add(part)
            case frozenset():
                self.note(kind, *sorted(map(repr, value)))
            case np.ndarray() if value.dtype.kind in "biuf":
                self.note(kind, repr((value.dtype.str, value.shape)), np.ascontiguousarray(value).tobytes())
            case types.ModuleType():
                self.note(kind, value.__name__)
            case type() | types.FunctionType() | types.BuiltinFunctionType() | np.ufunc():
                self.note(kind, str(getattr(value, "__module__", None)), getattr(value, "__qualname__", value.__name__))
            case _:
                self.is_portable = False
                self.note(kind, "" if value is _EMPTY else str(id(value)))

    def _add_function(self, function: types.FunctionType) -> None:
        if function in self._seen:
            self.note("again", str(self._seen[function]))
            return
        self._seen[function] = len(self._seen)
        # Stored code is tied to the module by its name.
        self.is_portable &= vars(sys.modules.get(function.__module__, object)) is function.__globals__
        self.note("function", function.__name__, str(function.__module__))
        self._add_code(function.__code__)
        self.add(function.__defaults__)
        self.add(tuple(sorted((function.__kwdefaults__ or {}).items())))
        for name, value in surroundings(function):
            self.note(name)
            self.add(value)

    def _add_code(self, code: types.CodeType) -> None:
        counts = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags
        names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
        self.note("code", code.co_code, getattr(code, "co_exceptiontable", b""), repr((counts, names)))
        for constant in code.co_consts:
            self.add(constant)


def surroundings(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield the names of a function that come from around it, and what they stand for now."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        yield name, _contents(cell)
    for name in sorted(_global_names(function.__code__)):
        yield name, function.__globals__.get(name, getattr(builtins, name, _EMPTY))


def _contents(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return _EMPTY


def _global_names(code: types.CodeType) -> set[str]:
    names = {step.argval for step in dis.get_instructions(code) if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    inner = [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return names.union(*map(_global_names, inner))
