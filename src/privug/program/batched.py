"""The batched tier: programs that already work on a leading sample axis."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privug.arguments import naming, shown
from privug.errors import ArgumentError, PrivugError, ProgramError
from privug.model.node import Array, Context, Node, Operation
from privug.model.operations import SampleFailure
from privug.model.plan import Plan
from privug.model.structure import LEAF, Structure, flatten
from privug.model.table import Row, Table
from privug.model.variable import RandomVariable
from privug.program.calls import must_be_function, not_a_function, repeated, undisturbed_randomness
from privug.program.inputs import Arguments
from privug.program.outputs import FAILURES
from privug.program.reachable import entropy_source, undisturbed_memory

CHECKED_SAMPLES = 8
MOST_TRIED = 1000
TOLERANCE = 1e-9


class BatchedProgram:
    """A program that takes and returns arrays whose first axis runs over samples."""

    def __init__(self, program: Callable[..., Any]) -> None:
        functools.update_wrapper(self, program)
        self.program = program

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self.program(*arguments, **named)


def batched(program: Callable[..., Any]) -> BatchedProgram:
    """Mark a program that works on many samples at once.

    It gets an array for each number, its first axis running over the samples, and for a table an
    object whose columns are arrays of samples by rows. It returns an array with the samples first, or a tuple or
    dict of such arrays. Categories come as arrays of their values.

    >>> import numpy as np, privug as pv
    >>> @pv.batched
    ... def mean_age(records):
    ...     return records.age.mean(axis=1)
    >>> table = pv.Records(5, pv.Row(age=pv.Uniform(0, 100)))
    >>> pv.Attack(mean_age, {"records": table}, secret=lambda records: records[0].age).lifting.tier
    'batched'
    """
    if not callable(program):
        raise ArgumentError(f"batched: a function is needed, not {shown(program)}")
    return BatchedProgram(program)


class BatchedTable:
    """A batch of tables: each column is an array of samples by rows."""

    def __init__(self, columns: dict[str, Array], rows: int) -> None:
        self.__dict__.update(columns)
        self._rows = rows

    def __len__(self) -> int:
        return self._rows

    def __getitem__(self, name: str) -> Array:
        column: Array = self.__dict__[name]
        return column


@dataclass(frozen=True, slots=True)
class BatchedCall(Operation):
    """One part of the output of a program called once for a whole block."""

    program: Callable[..., Any]
    arguments: Arguments
    part: int

    def evaluate(self, arguments: Sequence[Array], context: Context) -> Array:
        try:
            if must_be_function():
                return self._repeated(arguments, context.samples)
            return self._outputs(arguments, context.samples)
        except PrivugError:
            raise
        except FAILURES as error:
            raise self._located(arguments, context, error) from error

    def _outputs(self, arguments: Sequence[Array], samples: int) -> Array:
        return call_on_batch(self.program, self.arguments, arguments, samples)[1][self.part]

    def _repeated(self, arguments: Sequence[Array], samples: int) -> Array:
        """Return the outputs of a program that is a function of its inputs, or raise."""

        def shown(position: int) -> str:
            return ", ".join(repr(array[position if len(array) > 1 else 0]) for array in arguments)

        def outputs(arrays: Sequence[Array], rng: np.random.Generator) -> Array:
            return self._outputs(arrays, samples)

        with undisturbed_randomness(self.program) as has_been_used, undisturbed_memory(self.program):
            results = repeated(outputs, arguments, samples, label="the program", shown=shown, same=_equal)
            if has_been_used():
                raise not_a_function("the program draws random numbers of its own")
        return results

    def _located(
        self, arguments: Sequence[Array], context: Context, error: BaseException
    ) -> SampleFailure | ProgramError:
        """Find the samples that fail by calling the program on halves of the batch, and halves of those."""
        failing = np.zeros(context.samples, np.bool_)
        waiting = [range(context.samples)]
        while waiting:
            samples = waiting.pop()
            part = [array if len(array) == 1 else array[samples.start : samples.stop] for array in arguments]
            try:
                call_on_batch(self.program, self.arguments, part, len(samples))
            except FAILURES as cause:
                middle = len(samples) // 2
                if middle:
                    waiting += [samples[middle:], samples[:middle]]
                    continue
                failing[samples.start] = True
                error = cause if int(failing.sum()) == 1 else error
                if context.failed is None:
                    break
        if failing.any():
            return SampleFailure(int(failing.argmax()), error, failing=failing)
        return ProgramError(f"this batched program fails on many samples at once, but on none of them alone: {error}")

    def can_fail(self, parents: Sequence[Node]) -> bool:
        return True


def call_on_batch(
    program: Callable[..., Any], arguments: Arguments, arrays: Sequence[Array], samples: int
) -> tuple[Structure, list[Array]]:
    """Call a batched program; return the structure of its output and the arrays in it."""
    remaining = iter(arrays)
    leaves = [_full(leaf, remaining, samples) for leaf in arguments.leaves]
    positional, named = _put_together(arguments.structure, iter(leaves))
    structure, outputs = flatten(program(*positional, **named))
    parts = [_standard(np.asarray(output)) for output in outputs]
    for part in parts:
        if part.ndim == 0 or len(part) != samples:
            raise ProgramError(
                f"a batched program must return arrays of {samples} samples, but one has the shape {part.shape}"
            )
    return structure, parts


def _standard(array: Array) -> Array:
    """Return an array of one of the types that nodes have."""
    wanted = {"b": np.bool_, "i": np.int64, "u": np.int64, "f": np.float64}.get(array.dtype.kind, np.object_)
    return array.astype(wanted, copy=False)


def _full(leaf: Any, arrays: Any, samples: int) -> Any:
    if not isinstance(leaf, RandomVariable):
        return leaf
    array = next(arrays)
    if leaf.node.levels is not None:
        array = np.array(leaf.node.levels)[array]
    return np.repeat(array, samples, axis=0) if len(array) != samples else array.copy()


def _put_together(structure: Structure, leaves: Any) -> Any:
    if structure.container is None:
        return next(leaves)
    parts = [_put_together(child, leaves) for child in structure.children]
    if structure.container is Table and structure.children and structure.children[0].container is Row:
        names = structure.children[0].keys
        columns = {name: _column([part[position] for part in parts]) for position, name in enumerate(names)}
        return BatchedTable(columns, len(parts))
    if structure.container is dict:
        return dict(zip(structure.keys, parts, strict=True))
    return parts if structure.container is list else tuple(parts)


def _column(cells: Sequence[Any]) -> Array:
    samples = max((len(cell) for cell in cells if isinstance(cell, np.ndarray)), default=1)
    full = [cell if isinstance(cell, np.ndarray) else np.full(samples, cell) for cell in cells]
    return np.stack(full, axis=1)


def apply_batched(program: Callable[..., Any], arguments: Arguments, exclude_errors: bool = False) -> Any:
    """Make the random variables of a batched program's output, after checking that samples do not mix."""
    with undisturbed_randomness(program) as has_been_used, undisturbed_memory(program, *arguments.shared):
        arrays = _checked_inputs(program, arguments, exclude_errors)
        checked = len(arrays[0]) if arrays else CHECKED_SAMPLES
        with naming("the batched program", ProgramError):
            structure, together = call_on_batch(program, arguments, arrays, checked)
        source = entropy_source(program)
        if source is not None or has_been_used():
            raise ProgramError(
                f"this batched program draws random numbers of its own{f' ({source})' if source else ''}, which do not "
                "follow the seed; make the draws an input of the program, or write it without pv.batched"
            )
        _refuse_mixing(program, arguments, arrays, together)
    variables = [
        RandomVariable(Node(BatchedCall(program, arguments, k), arguments.nodes, part.shape[1:], part.dtype))
        for k, part in enumerate(together)
    ]
    return variables[0] if structure == LEAF else structure.build(variables)


def _refuse_mixing(
    program: Callable[..., Any], arguments: Arguments, arrays: Sequence[Array], together: Sequence[Array]
) -> None:
    """Call a batched program on samples one by one, which must give what it gives for all of them together."""
    for sample in range(len(arrays[0]) if arrays else CHECKED_SAMPLES):
        with naming("the batched program, called with a single sample,", ProgramError):
            alone = call_on_batch(program, arguments, [array[sample : sample + 1] for array in arrays], 1)[1]
        for whole, single in zip(together, alone, strict=True):
            if not _equal(whole[sample], single[0]):
                raise ProgramError(
                    "this batched program mixes samples: one sample alone gives "
                    f"{shown(single[0])}, in a batch {shown(whole[sample])}; check its axes"
                )


def _checked_inputs(program: Callable[..., Any], arguments: Arguments, exclude_errors: bool) -> list[Array]:
    """Draw some inputs; where errors are to be excluded, such on which the program does not fail."""
    rng = np.random.Generator(np.random.SFC64(0))
    if not exclude_errors:
        return Plan(arguments.nodes).run(CHECKED_SAMPLES, rng)
    arrays = Plan(arguments.nodes).run(MOST_TRIED, rng)
    fine: list[int] = []
    for sample in range(MOST_TRIED):
        try:
            call_on_batch(program, arguments, [array[sample : sample + 1] for array in arrays], 1)
        except PrivugError:
            raise
        except FAILURES as error:
            if sample == MOST_TRIED - 1 and not fine:
                raise ProgramError(f"the program failed on {MOST_TRIED} inputs out of {MOST_TRIED}: {error}") from error
            continue
        fine.append(sample)
        if len(fine) == CHECKED_SAMPLES:
            break
    return [array[fine] for array in arrays]


def _equal(left: Any, right: Any) -> bool:
    if np.asarray(left).dtype.kind in "biuf":
        return bool(np.allclose(left, right, rtol=TOLERANCE, atol=0, equal_nan=True))
    return bool(np.all(left == right))
