"""The native tier: the program compiled with Numba and called for all samples of a block inside compiled code.

Only programs are compiled of which every operation is known to do what Python does (`passes`). A sample on which
the compiled program raises, for whatever reason, is left to a plain call: what that returns or raises counts.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privug.arguments import shortened
from privug.errors import LiftingWarning, PrivugError, ProgramError
from privug.model.node import Array, Context, Node, Operation
from privug.model.operations import SampleFailure
from privug.model.plan import Plan
from privug.model.variable import RandomVariable
from privug.program.calls import Arguments, undisturbed_randomness
from privug.program.memory import undisturbed_memory
from privug.program.native.arguments import Layout, OutputMisfit, encodings, layout, prepared
from privug.program.native.kernel import NativeProgram, compile_program
from privug.program.outputs import FAILURES, settled
from privug.program.tracing import CHECKED_CELLS, FEWEST_CHECKS, MOST_CHECKS, difference_in_calls


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
class Part(Operation):
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
    return tuple(RandomVariable(Node(Part(name), (node,), (), compiled.dtype[name])) for name in names)


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
