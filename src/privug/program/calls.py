"""The python tier: the program called sample by sample, as it is."""

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np

from privug.errors import PrivugError, ProgramError
from privug.model.batch import Column
from privug.model.critical import critical_section
from privug.model.garbage import without_garbage_collection
from privug.model.node import Array, Context, Kind, Node, Operation
from privug.model.operations import SampleFailure
from privug.model.structure import Structure
from privug.model.variable import RandomVariable
from privug.program.drawing import ambient_rng
from privug.program.external import External
from privug.program.outputs import FAILED, NoValue, settled


@dataclass(frozen=True, slots=True)
class Arguments:
    """Positional and keyword arguments of a call, taken apart into leaves, some of them random."""

    structure: Structure
    leaves: tuple[Any, ...]

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes of the random leaves."""
        return tuple(leaf.node for leaf in self.leaves if isinstance(leaf, RandomVariable))

    def plain(self, arrays: Sequence[Array], samples: int) -> Iterator[Any]:
        """Yield the plain arguments of each call, given the values of the random leaves."""
        return self.structure.build_each(self._columns(iter(arrays), samples), samples)

    def _columns(self, arrays: Iterator[Array], samples: int) -> Iterator[Iterable[Any]]:
        for leaf in self.leaves:
            if isinstance(leaf, RandomVariable):
                array = next(arrays)
                if len(array) != samples:
                    array = np.repeat(array, samples, axis=0)
                # Programs may write into the arrays they get: they must not share ours.
                yield Column(array.copy() if array.ndim > 1 else array, leaf.node.levels).decoded()
            elif isinstance(leaf, np.ndarray):
                yield [leaf.copy() for _ in range(samples)]
            else:
                yield repeat(leaf, samples)


@dataclass(frozen=True, slots=True)
class Call(Operation):
    """A plain call of the program for each sample; the results are Python objects."""

    program: Callable[..., Any]
    arguments: Arguments
    exclude_errors: bool = False
    label: str = "the program"

    random = True
    opaque = True

    def evaluate(self, arguments: Sequence[Array], context: Context) -> Array:
        results = np.empty(context.samples, object)
        calls = self.arguments.plain(arguments, context.samples)
        with seeded(context.rng), without_garbage_collection():
            if isinstance(self.program, External):
                self._call_external([named for _, named in calls], results)
            else:
                self._call_one_by_one(calls, results)
        if self.exclude_errors and context.failed is not None:
            context.failed[[value is FAILED for value in results]] = True
        return results

    def can_fail(self, parents: Sequence[Node]) -> bool:
        return True

    def _call_one_by_one(self, calls: Iterable[Any], results: Array) -> None:
        for position, (positional, named) in enumerate(calls):
            # A predicate or a query about an output that there is not.
            if any(isinstance(argument, NoValue) for argument in positional):
                results[position] = FAILED
                continue
            try:
                results[position] = _plain_output(settled(self.program(*positional, **named)))
            except Exception as error:
                if not self.exclude_errors or isinstance(error, PrivugError):
                    raise SampleFailure(position, error, self.label) from error
                results[position] = FAILED

    def _call_external(self, calls: list[Any], results: Array) -> None:
        assert isinstance(self.program, External)
        position = 0
        while position < len(calls):
            try:
                answers = self.program.call_many(calls[position:])
            except SampleFailure as failure:
                if not self.exclude_errors:
                    raise SampleFailure(position + failure.index, failure.cause) from failure.cause
                # Ask again for those before the failing one: their answers went with the process.
                answers = [*self.program.call_many(calls[position : position + failure.index]), FAILED]
            for answer in answers:
                results[position] = answer
                position += 1

    def kind(self, parents: Sequence[Node]) -> Kind:
        return Kind.MIXED


@contextmanager
def undisturbed_randomness() -> Iterator[Callable[[], bool]]:
    """Leave Python's and NumPy's global generators as they were; yields a function that says whether they were used.

    They belong to the whole process: other threads wait until this one is done with them.
    """
    with critical_section():
        before, numpy_before = random.getstate(), np.random.get_state(legacy=False)

        def have_been_used() -> bool:
            now = np.random.get_state(legacy=False)
            moved = any(not np.array_equal(now["state"][key], numpy_before["state"][key]) for key in now["state"])
            return moved or now["gauss"] != numpy_before["gauss"] or random.getstate() != before

        try:
            yield have_been_used
        finally:
            random.setstate(before)
            np.random.set_state(numpy_before)


@contextmanager
def seeded(rng: np.random.Generator) -> Iterator[None]:
    """Let the program's own randomness follow from the engine's seed."""
    seed = int(rng.integers(2**32))
    token = ambient_rng.set(rng)
    try:
        with undisturbed_randomness(), np.errstate(all="ignore"):
            random.seed(seed)
            np.random.seed(seed)
            yield
    finally:
        ambient_rng.reset(token)


def _plain_output(value: Any) -> Any:
    if isinstance(value, RandomVariable):
        raise ProgramError("the output is a random variable: inside a program write pv.sample(...) to draw from one")
    return value


def call(
    program: Callable[..., Any], arguments: Arguments, exclude_errors: bool, label: str = "the program"
) -> RandomVariable:
    """Make the random variable of a program called sample by sample."""
    operation = Call(program, arguments, exclude_errors, label)
    return RandomVariable(Node(operation, arguments.nodes, (), np.dtype(object)))
