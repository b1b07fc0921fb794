# mypy: allow-untyped-calls, allow-untyped-decorators, allow-subclassing-any
"""Compiling a program with Numba, together with the loop over the samples of a block."""

import itertools
import types
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types as numba_types
from numba.core.extending import intrinsic

from privug import interruption
from privug.model.critical import critical_section, quietly
from privug.model.node import Array
from privug.program.calls import Arguments
from privug.program.native import storage
from privug.program.native.arguments import DTYPES, Layout, Parameter, layout, refusal
from privug.program.native.arithmetic import BOOL, FLOAT, INT, give_up, scalar
from privug.program.native.fingerprint import Fingerprint, fingerprint, surroundings
from privug.program.native.passes import Compilation, compilation
from privug.program.native.records import CATEGORY, RecordsType, as_category, borrowed, records_maker
from privug.program.traced.calling import is_users_own
from privug.scoping import holding

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
    stored = storage.load(mark.digest) if mark.is_portable else None
    if stored is None:
        return None
    cache = storage.KernelCache(stored.code)
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
    cache = storage.KernelCache()
    kernel = _kernel(source, names, _signature(shape, results), cache)
    if mark.is_portable and cache.code is not None:
        codes = dict(compiled.codes)
        storage.save(mark.digest, storage.Stored(source, results, is_tuple, bool(recursive), codes, cache.code))
    return NativeProgram(kernel, results, is_tuple, compiled.codes, bool(recursive))


_LETTERS = {INT: "i", FLOAT: "f", BOOL: "b"}


def _signature(shape: Layout, results: Sequence[str]) -> tuple[Any, ...]:
    """Return the types of the kernel's arguments."""
    arrays = [numba_types.Array(numba_types.boolean, 1, "C")]
    for parameter in shape.parameters:
        arrays += [numba_types.Array(_number(kind), parameter.rank + 1, "C") for kind in parameter.kinds]
    arrays += [numba_types.Array(_number(kind), 1, "C") for kind in results]
    return numba_types.int64, *arrays


def _kernel(source: str, names: dict[str, Any], signature: tuple[Any, ...], cache: storage.KernelCache) -> Any:
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
