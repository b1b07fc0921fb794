# mypy: allow-untyped-calls, allow-subclassing-any
# mypy: allow-untyped-calls, allow-untyped-decorators, allow-subclassing-any
"""Compiling a program with Numba and calling it for all samples of a block; compiled programs are kept on disk.

The folder is $PRIVUG_CACHE_DIR, else the user's cache directory. Files appear whole or not at all, so any number of
processes may read and write. What cannot be read or written is as if it were not there, and so is what somebody else
may have written: code is loaded only from files and a folder that belong to this user and that others cannot change.

Only programs are compiled of which every operation is known to do what Python does (`passes`). A sample on which
the compiled program raises, for whatever reason, is left to a plain call: what that returns or raises counts.
"""

import builtins
import contextlib
import dis
import hashlib
import itertools
import os
import pickle
import platform
import stat
import sys
import tempfile
import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import llvmlite  # type: ignore[import-untyped]
import numba
import numpy as np
from llvmlite import ir
from numba.core import config as numba_config
from numba.core import types as numba_types
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.extending import intrinsic
from numba.core.registry import cpu_target
from numba.core.serialize import dumps

from privug import interruption
from privug.arguments import shortened
from privug.errors import LiftingWarning, PrivugError, ProgramError
from privug.model.node import Array, Context, Node, Operation
from privug.model.operations import SampleFailure
from privug.model.plan import Plan
from privug.model.variable import RandomVariable
from privug.program.calls import undisturbed_randomness
from privug.program.inputs import Arguments
from privug.program.native.arguments import (
    DTYPES,
    Layout,
    OutputMisfit,
    Parameter,
    encodings,
    layout,
    prepared,
    refusal,
)
from privug.program.native.arithmetic import BOOL, FLOAT, INT, give_up, scalar
from privug.program.native.passes import Compilation, compilation
from privug.program.native.records import CATEGORY, RecordsType, as_category, borrowed, records_maker
from privug.program.outputs import FAILURES, settled
from privug.program.reachable import undisturbed_memory
from privug.program.traced.calling import is_users_own
from privug.program.tracing import CHECKED_CELLS, FEWEST_CHECKS, MOST_CHECKS, difference_in_calls
from privug.runtime.critical import critical_section, quietly
from privug.scoping import holding

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
    walk = _Fingerprinting()
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


class _Fingerprinting:
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


MOST_FILES = 256  # of some 50 kB each; the least recently used ones go
SUFFIX = ".kernel"


@dataclass(frozen=True)
class Stored:
    """A compiled program as it is kept: what Numba needs to bring the code back, and how to call it."""

    source: str
    results: tuple[str, ...]
    is_tuple: bool
    is_recursive: bool
    codes: dict[str, int]
    code: Any


def folder() -> Path | None:
    """Return where compiled programs are kept; an empty PRIVUG_CACHE_DIR keeps none."""
    own = os.environ.get("PRIVUG_CACHE_DIR")
    if own is not None:
        return Path(own) / "native" if own else None
    try:
        home = Path.home()
    except RuntimeError:
        return None
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = home / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
    return base / "privug" / "native"


def load(digest: str) -> Stored | None:
    """Return the compiled program of that fingerprint, if there is one."""
    where = folder()
    if where is None:
        return None
    path = where / f"{digest}{SUFFIX}"
    try:
        if not _is_ours(os.stat(where)):
            return None
        with open(path, "rb") as file:
            if not _is_ours(os.fstat(file.fileno())):
                return None
            stored = pickle.loads(file.read())
        os.utime(path)
    except Exception:  # a broken file may raise anything
        return None
    return stored if isinstance(stored, Stored) else None


def _is_ours(status: os.stat_result) -> bool:
    """Say whether a file or a folder belongs to this user and cannot be changed by others, where there are users."""
    if not hasattr(os, "geteuid"):
        return True
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def save(digest: str, stored: Stored) -> None:
    """Keep a compiled program, if that can be done."""
    where = folder()
    if where is None:
        return
    with contextlib.suppress(Exception):
        content = dumps(stored)
        where.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=where, prefix=".new-")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
            os.replace(name, where / f"{digest}{SUFFIX}")
        except BaseException:
            os.unlink(name)
            raise
        _forget_oldest(where)


def _forget_oldest(where: Path) -> None:
    files = sorted(where.iterdir(), key=lambda path: path.stat().st_mtime)
    for path in files[:-MOST_FILES]:
        path.unlink(missing_ok=True)


class KernelCache(NullCache):
    """What a kernel asks for compiled code before it is compiled, and hands the code to afterwards."""

    def __init__(self, code: Any = None) -> None:
        self.code = code

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        if self.code is None:
            return None
        target_context.refresh()
        return CompileResult._rebuild(target_context, *self.code)

    def save_overload(self, signature: Any, result: Any) -> None:
        if not result.lifted and not result.library.has_dynamic_globals:
            self.code = result._reduce()


DEEPEST_RECURSION = 400
KERNEL = "kernel_"
AT_ONCE = 512  # samples in one call of compiled code
MOST_COMPILED = 256  # programs in one process: each keeps 2 to 5 MB of compiled code, which is never released
MARK_LENGTH = 32  # 128 bits: no two programs share a mark


@dataclass(frozen=True)
class NativeProgram:
    """A compiled program: it works on prepared arrays, with the samples first."""

    kernel: Any
    results: tuple[str, ...]
    """A dtype's letter for each part of the result."""
    is_tuple: bool
    codes: dict[str, int]
    """The strings of program and arguments, and the codes that stand for them."""
    is_recursive: bool

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the result, structured if it has several parts."""
        if not self.is_tuple:
            return DTYPES[self.results[0]]
        return np.dtype([(f"part_{k}", DTYPES[letter]) for k, letter in enumerate(self.results)])

    def code(self, string: str) -> int:
        """Return the code that stands for a string."""
        return self.codes.setdefault(string, len(self.codes))

    def run(self, arrays: Sequence[Array], samples: int) -> tuple[list[Array], Array]:
        """Return the results, and for which samples there are none."""
        outputs = [np.zeros(samples, DTYPES[letter]) for letter in self.results]
        failed = np.zeros(samples, bool)
        with critical_section() if self.is_recursive else nullcontext():  # it counts its depth in one place
            for start in range(0, samples, AT_ONCE):
                interruption.check()  # compiled code cannot be interrupted
                some = slice(start, start + AT_ONCE)
                parts = [array[some] for array in (*arrays, *outputs)]
                self.kernel(min(AT_ONCE, samples - start), failed[some], *parts)
        return outputs, failed


_cache: dict[tuple[Any, Layout], tuple[Fingerprint, NativeProgram | str]] = {}
LARGEST_CACHE = 64
_compiled_so_far = itertools.count(1)


def compile_program(program: Any, arguments: Arguments) -> NativeProgram | str:
    """Compile a program for arguments like these; return the reason in words if that cannot be done."""
    obstacle = refusal(program, arguments)
    if obstacle is not None:
        return obstacle
    shape = layout(arguments)
    mark = fingerprint(program, shape)
    known, result = _cache.get((program, shape), (None, None))
    if result is not None and known == mark:
        return result
    result = _loaded(mark, shape) or _compiled_within_limits(program, shape, mark)
    _cache.pop(next(iter(_cache)), None) if len(_cache) >= LARGEST_CACHE else None
    _cache[program, shape] = mark, result
    return result


def _compiled_within_limits(program: Any, shape: Layout, mark: Fingerprint) -> NativeProgram | str:
    """Compile a program unless this process has compiled so many that their code fills its memory."""
    if next(_compiled_so_far) > MOST_COMPILED:
        return f"{MOST_COMPILED} programs were compiled in this process, whose code is never released; start a new one"
    return _compiled(program, shape, mark)


def _compiled(program: Any, shape: Layout, mark: Fingerprint) -> NativeProgram | str:
    compiled = Compilation(mark.digest[:MARK_LENGTH])
    try:
        with holding(compilation, compiled), quietly():
            return _compile(program, shape, compiled, mark)
    except Exception as error:
        return compiled.refusal or _first_line(error)


def _loaded(mark: Fingerprint, shape: Layout) -> NativeProgram | None:
    """Return the program as it was compiled by an earlier process, if it was."""
    stored = load(mark.digest) if mark.is_portable else None
    if stored is None:
        return None
    cache = KernelCache(stored.code)
    try:
        kernel = _kernel(stored.source, {}, _signature(shape, stored.results), cache)
    except Exception:  # nothing that lies on a disk is sure to be as it was
        return None
    return NativeProgram(kernel, stored.results, stored.is_tuple, stored.codes, stored.is_recursive)


def _first_line(error: Exception) -> str:
    """Return what a long message of the compiler says, in short."""
    if "undefined" in str(error):
        return "it cannot be compiled: what a list or a dictionary will hold is not clear where it is made"
    lines = [line.strip() for line in str(error).splitlines()]
    said = [line for line in lines if line and not line.startswith(("Failed in", "File", "During", "-", ">"))]
    return f"it cannot be compiled: {(said or [type(error).__name__])[0]}"


def _compile(program: Any, shape: Layout, compiled: Compilation, mark: Fingerprint) -> NativeProgram | str:
    recursive = _recursive_functions(program)
    compiled.recursive = {function.__code__ for function in recursive}
    compiled.guards = (_enter(compiled.mark), _leave(compiled.mark))
    dispatcher = compiled.dispatcher(program)
    given = [_type_of(parameter) for parameter in shape.parameters]
    split = len(given) - len(shape.names)
    named = dict(zip(shape.names, given[split:], strict=True))
    context = dispatcher.targetdescr.typing_context
    returned = numba.typeof(dispatcher).get_call_type(context, tuple(given[:split]), named).return_type
    is_tuple = isinstance(returned, numba_types.BaseTuple)
    parts = list(returned.types) if is_tuple else [returned]
    if not parts or isinstance(returned, numba_types.BaseNamedTuple) or any(scalar(part) is None for part in parts):
        return f"its output is of type {returned}, not a number or a tuple of numbers"
    names = {"program": dispatcher, "as_category": as_category, "borrowed": borrowed, "reset": _reset(compiled.mark)}
    source = _kernel_source(shape, len(parts) if is_tuple else 0, bool(recursive), names, compiled.mark)
    results = tuple(_LETTERS[scalar(part)] for part in parts)
    cache = KernelCache()
    kernel = _kernel(source, names, _signature(shape, results), cache)
    if mark.is_portable and cache.code is not None:
        codes = dict(compiled.codes)
        save(mark.digest, Stored(source, results, is_tuple, bool(recursive), codes, cache.code))
    return NativeProgram(kernel, results, is_tuple, compiled.codes, bool(recursive))


_LETTERS = {INT: "i", FLOAT: "f", BOOL: "b"}


def _signature(shape: Layout, results: Sequence[str]) -> tuple[Any, ...]:
    """Return the types of the kernel's arguments."""
    arrays = [numba_types.Array(numba_types.boolean, 1, "C")]
    for parameter in shape.parameters:
        arrays += [numba_types.Array(_number(kind), parameter.rank + 1, "C") for kind in parameter.kinds]
    arrays += [numba_types.Array(_number(kind), 1, "C") for kind in results]
    return numba_types.int64, *arrays


def _kernel(source: str, names: dict[str, Any], signature: tuple[Any, ...], cache: KernelCache) -> Any:
    """Make the kernel of its source: with the code that the cache has, or else compiled."""
    names["__name__"] = __name__
    exec(source, names)
    function = next(value for name, value in names.items() if name.startswith(KERNEL))
    kernel: Any = numba.njit(nogil=True)(function)
    kernel._cache = cache
    kernel.compile(signature)
    kernel.disable_compile()
    return kernel


def _number(kind: str) -> Any:
    return numba.from_dtype(DTYPES[kind])


def _type_of(parameter: Parameter) -> Any:
    if parameter.names is not None:
        return RecordsType(parameter.names, parameter.kinds)
    if parameter.kinds == "c":
        return CATEGORY
    number = _number(parameter.kinds)
    return numba_types.Array(number, parameter.rank, "C") if parameter.rank else number


def _kernel_source(layout: Layout, results: int, recursive: bool, names: dict[str, Any], mark: str) -> str:
    """Write the loop over the samples."""
    arrays: list[str] = []
    given: list[str] = []
    for position, parameter in enumerate(layout.parameters):
        own = [f"b{len(arrays) + k}" for k in range(len(parameter.kinds))]
        arrays += [f"a{len(arrays) + k}" for k in range(len(parameter.kinds))]
        if parameter.names is not None:
            names[f"records{position}"] = records_maker(parameter.names, parameter.kinds)
            given.append(f"records{position}(({', '.join(f'{name}[i]' for name in own)},))")
        else:
            given.append(f"as_category({own[0]}[i])" if parameter.kinds == "c" else f"{own[0]}[i]")
    split = len(given) - len(layout.names)
    given[split:] = [f"{name}={value}" for name, value in zip(layout.names, given[split:], strict=True)]
    outputs = [f"r{k}" for k in range(max(results, 1))]
    stored = [f"{name}[i] = result{f'[{k}]' if results else ''}" for k, name in enumerate(outputs)]
    lines = [
        f"def {KERNEL}{mark}(samples, failed, {', '.join((*arrays, *outputs))}):",
        *(f"    b{k} = borrowed(a{k})" for k in range(len(arrays))),
        "    for i in range(samples):",
        "        reset()" if recursive else "        pass",
        "        try:",
        f"            result = program({', '.join(given)})",
        *(f"            {line}" for line in stored),
        "        except Exception:",
        "            failed[i] = True",
    ]
    return "\n".join(lines)


def _recursive_functions(program: Any) -> set[Any]:
    """Return the functions among those that a program may call that may, directly or not, call themselves."""
    calls: dict[Any, list[Any]] = {}
    waiting = [program]
    while waiting:
        function = waiting.pop()
        if function not in calls:
            around = (value for _, value in surroundings(function))
            calls[function] = [f for f in around if isinstance(f, types.FunctionType) and is_users_own(f)]
            waiting += calls[function]
    return {function for function in calls if function in _reachable(function, calls)}


def _reachable(start: Any, calls: dict[Any, list[Any]]) -> set[Any]:
    seen: set[Any] = set()
    waiting = list(calls[start])
    while waiting:
        function = waiting.pop()
        if function not in seen:
            seen.add(function)
            waiting += calls[function]
    return seen


def _depth_change(mark: str, change: Callable[[Any, Any, Any], Any]) -> Any:
    """Make a compiled function that changes the counter of the recursion's depth, which the code brings with it."""

    def typed(typing_context: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            name, number = f"privug_depth_{mark}", ir.IntType(64)
            if name not in builder.module.globals:
                made = ir.GlobalVariable(builder.module, number, name)
                made.linkage = "common"  # the same one in all functions that are linked together
                made.initializer = number(0)
            counter = builder.module.globals[name]
            value = change(context, builder, builder.load(counter))
            builder.store(value, counter)
            return value

        return INT(), generate

    return intrinsic(typed)


def _enter(mark: str) -> Any:
    def deeper(context: Any, builder: Any, value: Any) -> Any:
        give_up(context, builder, builder.icmp_signed(">", value, value.type(DEEPEST_RECURSION)), RecursionError)
        return builder.add(value, value.type(1))

    return _depth_change(mark, deeper)


def _leave(mark: str) -> Any:
    return _depth_change(mark, lambda context, builder, value: builder.sub(value, value.type(1)))


def _reset(mark: str) -> Any:
    return _depth_change(mark, lambda context, builder, value: value.type(0))


@dataclass(frozen=True, slots=True, eq=False)
class NativeCall(Operation):
    """A call of the compiled program for each sample; results with several parts are structured arrays."""

    program: Callable[..., Any]
    compiled: NativeProgram
    arguments: Arguments
    layout: Layout
    codes: Sequence[Array | None]
    label: str = "the program"

    def evaluate(self, arguments: Sequence[Array], context: Context) -> Array:
        samples = context.samples
        ready = prepared(self.arguments, self.layout, self.codes, arguments, samples)
        outputs, failed = self.compiled.run(ready, samples)
        if failed.any():
            self._call_plainly(np.flatnonzero(failed), arguments, outputs, context)
        if not self.compiled.is_tuple:
            return outputs[0]
        joined = np.empty(samples, self.compiled.dtype)
        for name, output in zip(joined.dtype.names or (), outputs, strict=True):
            joined[name] = output
        return joined

    def can_fail(self, parents: Sequence[Node]) -> bool:
        return True

    def _call_plainly(
        self, which: Array, arguments: Sequence[Array], outputs: Sequence[Array], context: Context
    ) -> None:
        """Call the program itself where the compiled one gave up; errors are those of the program."""
        chosen = [array if len(array) == 1 else array[which] for array in arguments]
        for position, (positional, named) in zip(which, self.arguments.plain(chosen, len(which)), strict=True):
            try:
                with np.errstate(all="ignore"):
                    result = settled(self.program(*positional, **named))
                parts = list(result) if self.compiled.is_tuple and type(result) is tuple else [result]
                if len(parts) != len(outputs) or not all(map(_fits, parts, outputs)):
                    raise OutputMisfit(f"the output is {shortened(result)}, but numbers of other types on other inputs")
            except FAILURES as error:
                if context.failed is None or isinstance(error, PrivugError):
                    raise SampleFailure(int(position), error, self.label) from error
                context.failed[position] = True
                parts = [0] * len(outputs)
            for output, part in zip(outputs, parts, strict=True):
                output[position] = part


def _fits(value: Any, output: Array) -> bool:
    """Say whether a result can be stored with the others, unchanged."""
    match output.dtype.kind:
        case "b":
            return isinstance(value, bool | np.bool_)
        case "i":
            return isinstance(value, int | np.integer) and -(2**63) <= int(value) < 2**63
        case _:
            return isinstance(value, int | float | np.integer | np.floating) and (
                not isinstance(value, int | np.integer) or abs(int(value)) <= 2**53
            )


@dataclass(frozen=True, slots=True)
class ResultPart(Operation):
    """One part of a result with several."""

    name: str

    def evaluate(self, arguments: Sequence[Array], context: Context) -> Array:
        return np.ascontiguousarray(arguments[0][self.name])


def apply_native(
    program: Callable[..., Any], arguments: Arguments, checks: int = MOST_CHECKS, label: str = "the program"
) -> Any:
    """Return the output in terms of random variables, or the reason in words why the program is not compiled."""
    checks = max(FEWEST_CHECKS, min(checks, CHECKED_CELLS // max(1, len(arguments.leaves))))
    try:
        arrays = Plan(arguments.nodes).run(checks, np.random.Generator(np.random.SFC64(1)))
    except (SampleFailure, ProgramError):
        return "its inputs fail"
    with undisturbed_randomness(program), undisturbed_memory(program, *arguments.shared):
        compiled = compile_program(program, arguments)
        if isinstance(compiled, str):
            return compiled
        operation = NativeCall(
            program, compiled, arguments, layout(arguments), encodings(compiled.code, arguments), label
        )
        obstacle = _difference(operation, arrays, checks)
    if obstacle is not None:
        return obstacle
    node = Node(operation, arguments.nodes, (), compiled.dtype)
    if not compiled.is_tuple:
        return RandomVariable(node)
    names = compiled.dtype.names or ()
    return tuple(RandomVariable(Node(ResultPart(name), (node,), (), compiled.dtype[name])) for name in names)


def _difference(operation: NativeCall, arrays: Sequence[Array], checks: int) -> str | None:
    """Compare the compiled program with plain calls; return what differs, if anything."""
    program, compiled, arguments = operation.program, operation.compiled, operation.arguments
    ready = prepared(arguments, operation.layout, operation.codes, arrays, checks)
    outputs, failed = compiled.run(ready, checks)
    done = np.flatnonzero(~failed)
    if 2 * len(done) < checks:
        return f"compiled code gives up on {checks - len(done)} of {checks} inputs"
    rows = list(zip(*(output[done].tolist() for output in outputs), strict=True))
    predicted = rows if compiled.is_tuple else [row[0] for row in rows]
    calls = arguments.plain([array[done] for array in arrays], len(done))
    found = difference_in_calls(program, calls, [[] for _ in done], predicted)
    if found is None:
        return None
    found = found.replace("the traced program", "the compiled program")
    name = getattr(program, "__name__", repr(program))
    warnings.warn(
        f"{name} is called sample by sample, because compiling it gave wrong values: {found}",
        LiftingWarning,
        stacklevel=4,
    )
    return found
