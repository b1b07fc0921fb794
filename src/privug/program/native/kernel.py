# mypy: allow-untyped-calls, allow-untyped-decorators, allow-subclassing-any
"""Compiling a program with Numba, together with the loop over the samples of a block."""

import inspect
import threading
import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types as numba_types
from numba.core.extending import intrinsic

from privug.model.node import Array
from privug.program.calls import Arguments
from privug.program.native.arguments import DTYPES, Layout, Parameter, Refused, layout
from privug.program.native.arithmetic import INT, give_up, scalar
from privug.program.native.passes import Compilation, compilation
from privug.program.native.records import CATEGORY, RecordsType, as_category, borrowed, records_maker
from privug.program.traced.calling import is_users_own

DEEPEST_RECURSION = 400


@dataclass(frozen=True)
class NativeProgram:
    """A compiled program: it works on prepared arrays, with the samples first."""

    kernel: Any
    results: tuple[np.dtype[Any], ...]
    is_tuple: bool
    compiled: Compilation
    lock: Any = None
    """Held while a program with recursion runs, which counts its depth."""
    depth: Any = None
    """The counter of the depth, which must live as long as the kernel."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the result, structured if it has several parts."""
        if not self.is_tuple:
            return self.results[0]
        return np.dtype([(f"part_{k}", dtype) for k, dtype in enumerate(self.results)])

    def code(self, string: str) -> int:
        """Return the code that stands for a string."""
        return self.compiled.code(string)

    def run(self, arrays: Sequence[Array], samples: int) -> tuple[list[Array], Array]:
        """Return the results, and for which samples there are none."""
        outputs = [np.zeros(samples, dtype) for dtype in self.results]
        failed = np.zeros(samples, bool)
        if self.lock is None:
            self.kernel(samples, failed, *arrays, *outputs)
        else:
            with self.lock:
                self.kernel(samples, failed, *arrays, *outputs)
        return outputs, failed


def _unchanged(look_up: Callable[[], Any], value: Any) -> bool:
    try:
        now = look_up()
    except ValueError:  # a variable of an enclosing function that has been deleted
        return False
    if isinstance(value, np.ndarray):
        return isinstance(now, np.ndarray) and now.dtype == value.dtype and np.array_equal(now, value)
    return now is value or (type(now) is type(value) and isinstance(value, int | float | str | tuple) and now == value)


_cache: dict[tuple[Any, Layout], tuple[NativeProgram | str, Compilation]] = {}
LARGEST_CACHE = 64


def compile_program(program: Callable[..., Any], arguments: Arguments) -> NativeProgram | str:
    """Compile a program for arguments like these; return the reason in words if that cannot be done."""
    if not isinstance(program, types.FunctionType) or not is_users_own(program):
        return "it is not a plain Python function"
    kinds = {parameter.kind for parameter in inspect.signature(program).parameters.values()}
    if not kinds <= {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD}:
        return "it has parameters with * or after one"
    try:
        shape = layout(arguments)
    except Refused as refused:
        return str(refused)
    if (program, shape) in _cache:
        result, compiled = _cache[program, shape]
        if all(_unchanged(look_up, value) for look_up, value in compiled.frozen):
            return result
    compiled = Compilation()
    token = compilation.set(compiled)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = _compile(program, shape, compiled)
    except Exception as error:
        result = compiled.refusal or _first_line(error)
    finally:
        compilation.reset(token)
    _cache.pop(next(iter(_cache)), None) if len(_cache) >= LARGEST_CACHE else None
    _cache[program, shape] = result, compiled
    return result


def _first_line(error: Exception) -> str:
    """Return what a long message of the compiler says, in short."""
    if "undefined" in str(error):
        return "it cannot be compiled: what a list or a dictionary will hold is not clear where it is made"
    lines = [line.strip() for line in str(error).splitlines()]
    said = [line for line in lines if line and not line.startswith(("Failed in", "File", "During", "-", ">"))]
    return f"it cannot be compiled: {(said or [type(error).__name__])[0]}"


def _compile(program: Any, shape: Layout, compiled: Compilation) -> NativeProgram | str:
    compiled.recursive = _recursive_functions(program)
    depth = np.zeros(1, np.int64)
    compiled.guards = (_enter(depth), _leave(depth))
    dispatcher = compiled.dispatcher(program)
    given = [_type_of(parameter) for parameter in shape.parameters]
    split = len(given) - len(shape.names)
    named = dict(zip(shape.names, given[split:], strict=True))
    context = dispatcher.targetdescr.typing_context
    returned = numba.typeof(dispatcher).get_call_type(context, tuple(given[:split]), named).return_type
    is_tuple = isinstance(returned, numba_types.BaseTuple)
    results = list(returned.types) if is_tuple else [returned]
    if not results or isinstance(returned, numba_types.BaseNamedTuple) or any(scalar(r) is None for r in results):
        return f"its output is of type {returned}, not a number or a tuple of numbers"
    names: dict[str, Any] = {
        "program": dispatcher,
        "as_category": as_category,
        "borrowed": borrowed,
        "reset": _reset(depth),
    }
    source = _kernel_source(shape, len(results) if is_tuple else 0, bool(compiled.recursive), names)
    exec(source, names)
    arrays = [numba_types.Array(numba_types.boolean, 1, "C")]
    for parameter in shape.parameters:
        arrays += [numba_types.Array(_number(kind), parameter.rank + 1, "C") for kind in parameter.kinds]
    arrays += [numba_types.Array(scalar(result), 1, "C") for result in results]
    kernel = numba.njit(nogil=True)(names["kernel"])
    kernel.compile((numba_types.int64, *arrays))
    kernel.disable_compile()
    dtypes = tuple(np.dtype(scalar(result).name if scalar(result).name != "bool" else bool) for result in results)
    lock = threading.Lock() if compiled.recursive else None
    return NativeProgram(kernel, dtypes, is_tuple, compiled, lock, depth)


def _number(kind: str) -> Any:
    return numba.from_dtype(DTYPES[kind])  # type: ignore[arg-type]


def _type_of(parameter: Parameter) -> Any:
    if parameter.names is not None:
        return RecordsType(parameter.names, parameter.kinds)
    if parameter.kinds == "c":
        return CATEGORY
    number = _number(parameter.kinds)
    return numba_types.Array(number, parameter.rank, "C") if parameter.rank else number


def _kernel_source(layout: Layout, results: int, recursive: bool, names: dict[str, Any]) -> str:
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
        f"def kernel(samples, failed, {', '.join((*arrays, *outputs))}):",
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
            calls[function] = [f for f in _mentioned(function) if isinstance(f, types.FunctionType) and is_users_own(f)]
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


def _mentioned(function: Any) -> Iterator[Any]:
    """Yield what a function's global names and the variables around it stand for."""
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:
            continue
    codes = [function.__code__]
    while codes:
        code = codes.pop()
        yield from (function.__globals__[name] for name in code.co_names if name in function.__globals__)
        codes += [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]


def _depth_change(depth: Array, change: Callable[[Any, Any, Any], Any]) -> Any:
    """Make a compiled function that changes the counter of the recursion's depth."""
    address = depth.ctypes.data

    def typed(typing_context: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            counter = builder.inttoptr(ir.IntType(64)(address), ir.IntType(64).as_pointer())
            value = change(context, builder, builder.load(counter))
            builder.store(value, counter)
            return value

        return INT(), generate

    return intrinsic(typed)


def _enter(depth: Array) -> Any:
    def deeper(context: Any, builder: Any, value: Any) -> Any:
        give_up(context, builder, builder.icmp_signed(">", value, value.type(DEEPEST_RECURSION)), RecursionError)
        return builder.add(value, value.type(1))

    return _depth_change(depth, deeper)


def _leave(depth: Array) -> Any:
    return _depth_change(depth, lambda context, builder, value: builder.sub(value, value.type(1)))


def _reset(depth: Array) -> Any:
    return _depth_change(depth, lambda context, builder, value: value.type(0))
