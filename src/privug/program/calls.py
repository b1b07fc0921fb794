"""The python tier: the program called sample by sample, once it is seen to be a function of its inputs.

Nothing can be known for sure of a program that is only called. But what draws random numbers moves a generator, what
remembers earlier calls answers otherwise in another order, and what comes from elsewhere differs sooner or later.
"""

import inspect
import math
import reprlib
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from privug.arguments import shortened
from privug.errors import LiftingWarning, PrivugError, ProgramError, UnsuitableEngine, is_own
from privug.model.node import Array, Context, Kind, Node, Operation
from privug.model.operations import SampleFailure
from privug.model.plan import Plan
from privug.model.structure import described, incomparable
from privug.model.variable import RandomVariable
from privug.program.external import External
from privug.program.inputs import Arguments
from privug.program.logic import ambient_rng
from privug.program.outputs import FAILED, FAILURES, NoValue, is_same, settled
from privug.program.reachable import (
    Generators,
    Memory,
    Reached,
    entropy_source,
    is_same_state,
    reached,
    undisturbed_memory,
)
from privug.program.sql.query import Query
from privug.runtime.critical import critical_section, without_garbage_collection
from privug.runtime.processes import Watch, run_forked, witness
from privug.runtime.tasks import may_fork
from privug.scoping import Held, holding

FEWEST_PASSES, MOST_PASSES = 3, 8
ENOUGH_CALLS = 64  # in all: with few inputs, each is tried more often

_functions_only: Held[bool] = Held(False)


class Opaque:
    """A program that nothing is known of but what it returns: it is never traced."""

    hides_randomness = True
    """Whether it may draw random numbers that nothing tells of."""

    def __call__(self, *positional: Any, **named: Any) -> Any:
        raise NotImplementedError


def functions_only() -> holding[bool]:
    """Have every program that is called refuse, here, unless it is a function of its inputs."""
    return holding(_functions_only, True)


def must_be_function() -> bool:
    """Say whether a program may only be called as a function of its inputs."""
    return _functions_only.get()


def not_a_function(what: str) -> UnsuitableEngine:
    """Make the error of a program that cannot be enumerated."""
    return UnsuitableEngine(f"engine='exact' cannot answer this: {what}; engine='sample' can")


def repeated(
    outputs: Callable[[Sequence[Array], np.random.Generator], Array],
    arguments: Sequence[Array],
    samples: int,
    *,
    label: str,
    shown: Callable[[int], str],
    same: Callable[[Any, Any], bool],
) -> Array:
    """Return the outputs of a program that gives the same ones in every pass over its inputs, or raise.

    `outputs` are those of one pass, `shown` tells the input of one sample, `same` compares two outputs.
    """
    passes = min(MOST_PASSES, max(FEWEST_PASSES, -(-ENOUGH_CALLS // max(1, samples))))
    first = outputs(arguments, np.random.Generator(np.random.SFC64(0)))
    for number in range(1, passes):
        rng = np.random.Generator(np.random.SFC64(number))
        order = rng.permutation(samples)
        again = outputs([array[order] if len(array) > 1 else array for array in arguments], rng)
        for position, answer in zip(order, again, strict=True):
            if not same(first[position], answer):
                raise not_a_function(
                    f"{label} is not a function of its inputs: for {shown(int(position))} it answered "
                    f"{shortened(first[position])}, then {shortened(answer)}"
                )
    return first


CALLS_WITHOUT_MEMORY = 64  # of each block, to see whether what earlier calls left behind matters


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
        found = reached() if isinstance(self.program, External) else reached(self.program, *self.arguments.shared)
        with undisturbed_memory(found) as memory:
            if must_be_function():
                results = self._repeated(arguments, context.samples, found)
            else:
                results = self._each_by_itself(arguments, context, memory, found)
        if self.exclude_errors and context.failed is not None:
            context.failed[[value is FAILED for value in results]] = True
        return results

    def _repeated(self, arguments: Sequence[Array], samples: int, found: Reached) -> Array:
        """Return the outputs of a program that is a function of its inputs, or raise."""
        if isinstance(self.program, Opaque) and self.program.hides_randomness:
            raise not_a_function(f"{self.label} is hidden in a library and may draw random numbers of its own")
        source = entropy_source(found)
        if source is not None:
            raise not_a_function(f"{self.label} draws random numbers of its own ({source})")

        def shown(position: int) -> str:
            chosen = [array if len(array) == 1 else array[position : position + 1] for array in arguments]
            positional, named = next(self.arguments.plain(chosen, 1))
            return ", ".join([*map(repr, positional), *(f"{name} = {value!r}" for name, value in named.items())])[:200]

        def outputs(arrays: Sequence[Array], rng: np.random.Generator) -> Array:
            return self._outputs(arrays, samples, rng, found)

        return repeated(outputs, arguments, samples, label=self.label, shown=shown, same=is_same)

    def _each_by_itself(self, arguments: Sequence[Array], context: Context, memory: Memory, found: Reached) -> Array:
        """Return the outputs of calls of which none sees what the others left behind."""
        start = context.rng.bit_generator.state
        results = self._outputs(arguments, context.samples, context.rng, found)
        if not memory.has_changed() or self._answers_again(arguments, results, start, found, memory):
            return results
        name = getattr(self.program, "__name__", self.label)
        warnings.warn(
            f"{name} gives outputs that depend on earlier calls; each sample sees its memory as it was before the run",
            LiftingWarning,
            stacklevel=2,
        )
        memory.restore()
        return self._outputs(arguments, context.samples, _generator_at(start), found, memory)

    def _answers_again(
        self, arguments: Sequence[Array], results: Array, start: Any, found: Reached, memory: Memory
    ) -> bool:
        """Say whether the same draws give the same outputs after all calls, and the first ones without a memory."""
        first = min(len(results), CALLS_WITHOUT_MEMORY)
        few = [array if len(array) == 1 else array[:first] for array in arguments]
        try:
            again = self._outputs(arguments, len(results), _generator_at(start), found)
            memory.restore()
            alone = self._outputs(few, first, _generator_at(start), found, memory)
        except SampleFailure:
            return False
        return all(map(is_same, results, again)) and all(map(is_same, results[:first], alone))

    def _outputs(
        self,
        arguments: Sequence[Array],
        samples: int,
        rng: np.random.Generator,
        found: Reached,
        forgotten: Memory | None = None,
    ) -> Array:
        """Call the program for each sample; what it remembers is forgotten after each call where that is asked for."""
        results = np.empty(samples, object)
        calls = self.arguments.plain(arguments, samples)
        with seeded(rng, found) as has_been_used, without_garbage_collection():
            if isinstance(self.program, External):
                self._call_external([named for _, named in calls], results)
            elif isinstance(self.program, Query):
                self._ask(list(calls), results)
            else:
                self._call_one_by_one(calls, results, forgotten)
            if must_be_function() and has_been_used():
                raise not_a_function(f"{self.label} draws random numbers of its own")
        return results

    def can_fail(self, parents: Sequence[Node]) -> bool:
        return True

    def _call_one_by_one(self, calls: Iterable[Any], results: Array, forgotten: Memory | None) -> None:
        with watched(self.program, self.label) as watch:
            for position, (positional, named) in enumerate(calls):
                watch.begin(positional, named)
                # A predicate or a query about an output that there is not.
                if any(isinstance(argument, NoValue) for argument in positional):
                    results[position] = FAILED
                    continue
                try:
                    results[position] = _plain_output(settled(self.program(*positional, **named)))
                except FAILURES as error:
                    if not self.exclude_errors or is_own(error):
                        raise SampleFailure(position, error, self.label) from error
                    results[position] = FAILED
                if forgotten is not None:
                    forgotten.restore()

    def _ask(self, calls: list[Any], results: Array) -> None:
        """Ask a query about many samples at once; where that fails, about each by itself."""
        assert isinstance(self.program, Query)
        try:
            for position, answer in enumerate(self.program.call_many(calls)):
                results[position] = answer
        except FAILURES:
            self._call_one_by_one(calls, results, None)

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


def _generator_at(state: Any) -> np.random.Generator:
    rng = np.random.Generator(np.random.SFC64(0))
    rng.bit_generator.state = state
    return rng


def watched(program: Callable[..., Any], label: str) -> Watch:
    """Return what is told the arguments of each call before it is made, lest nobody knows which one went wrong."""
    return Watch(label, partial(shown_call, program), witness())


def shown_call(program: Callable[..., Any], positional: Sequence[Any], named: Mapping[str, Any]) -> str:
    """Return the arguments of a call as text, by their names."""
    try:
        given = inspect.signature(program).bind(*positional, **named).arguments
    except (TypeError, ValueError):
        given = {**{str(place): value for place, value in enumerate(positional, 1)}, **named}
    return f"on the input {', '.join(f'{name} = {shortened(value)}' for name, value in given.items())}"


@contextmanager
def undisturbed_randomness(*holders: Any) -> Iterator[Callable[[], bool]]:
    """Leave the global generators and those that programs hold as they were; yields whether they were used, to ask.

    They belong to the whole process: other threads wait until this one is done with them.
    """
    with critical_section():
        generators = Generators(*holders)
        before = generators.states()
        try:
            yield lambda: generators.have_moved(before)
        finally:
            generators.restore(before)


@contextmanager
def seeded(rng: np.random.Generator, *holders: Any) -> Iterator[Callable[[], bool]]:
    """Let the randomness of a program follow from the engine's seed; yields a function that says whether it has any."""
    seed = int(rng.integers(2**32))
    with holding(ambient_rng, rng), undisturbed_randomness(*holders), np.errstate(all="ignore"):
        generators = Generators(*holders)
        generators.seed(seed)
        started, drawn_from = generators.states(), rng.bit_generator.state
        yield lambda: generators.have_moved(started) or not is_same_state(rng.bit_generator.state, drawn_from)


def _plain_output(value: Any) -> Any:
    if isinstance(value, RandomVariable):
        raise ProgramError("the output is a random variable: inside a program write pv.sample(...) to draw from one")
    part = incomparable(value)
    if part is not None:
        raise ProgramError(f"its result holds {described(part)}")
    return value


def call(
    program: Callable[..., Any], arguments: Arguments, exclude_errors: bool, label: str = "the program"
) -> RandomVariable:
    """Make the random variable of a program called sample by sample."""
    operation = Call(program, arguments, exclude_errors, label)
    return RandomVariable(Node(operation, arguments.nodes, (), np.dtype(object)))


MOST_CALLS = 16
SECONDS = 0.3  # after which no further call is begun


def rehearse(program: Callable[..., Any], arguments: Arguments, label: str) -> None:
    """Raise ProgramError if a program ends the process that calls it on some of a few random inputs.

    Where no process can be forked, or a library's threads would not survive that, nothing is known afterwards.
    """
    if may_fork() and "jax" not in sys.modules and threading.current_thread() is threading.main_thread():
        for _ in run_forked(partial(_calls, program, arguments), [label], 1):
            pass


def _calls(program: Callable[..., Any], arguments: Arguments, label: str) -> None:
    """Call a program a few times; what it raises is told when it is called for good."""
    started, rng = time.monotonic(), np.random.Generator(np.random.SFC64(5))
    try:
        arrays = Plan(arguments.nodes).run(MOST_CALLS, rng)
    except (SampleFailure, PrivugError):
        return
    with seeded(rng, program), watched(program, label) as watch:
        for positional, named in arguments.plain(arrays, MOST_CALLS):
            watch.begin(positional, named)
            with suppress(*FAILURES):
                program(*positional, **named)
            if time.monotonic() > started + SECONDS:
                return


# How much Python a program runs is counted, never timed, so that all machines decide alike what pays.
# A step is a line begun or a function entered. With Python 3.11, nine programs (loops over rows, arithmetic,
# dictionaries, recursion) took 20 to 85 ns a step, the median 37. Four programs that take numbers out of NumPy arrays
# took 64 to 180 ns, and a third of that on lists: what an array gives is slow to work with.
SECONDS_PER_STEP = 40e-9
SECONDS_PER_STEP_ON_ARRAYS = 100e-9

# Loading the compiler takes up to a second, compiling up to five: even where a step takes half as long, it pays.
SECONDS_WORTH_COMPILING = 20.0

# Counting takes 0.3 us a step: 0.06 s for all calls but the last, 0.6 s for one that never seems to end.
MOST_COUNTED_CALLS = 8
ENOUGH_STEPS = 200_000
MOST_STEPS = 2_000_000

# A call of so many steps takes half a second, and ten thousand samples hours: it is taken for one that never ends.
ENDLESS_STEPS = 10_000_000
CALLS_SEEN_TO_END = 3


# A quantity's argument costs two nanoseconds or more for each sample: a trace that has so many for each step of a plain
# call takes longer than calls, however many samples there are. It may give exact answers all the same, so inputs of few
# cells are traced whatever that takes, and traces that are made within half a second.
FEW_CELLS = 256
WORK_FOR_ONE_STEP = 20
WORK_OF_A_SHORT_TRACE = 30_000


def work_worth_tracing(program: Callable[..., Any], arguments: Arguments) -> int | None:
    """Return how many arguments the quantities of a trace may have before calls take less time; None for any number."""
    if len(arguments.leaves) <= FEW_CELLS:
        return None
    rng = np.random.Generator(np.random.SFC64(4))
    try:
        arrays = Plan(arguments.nodes).run(1, rng)
    except (SampleFailure, ProgramError):
        return None
    with seeded(rng, program), undisturbed_memory(program, *arguments.shared):
        positional, named = next(iter(arguments.plain(arrays, 1)))
        steps = steps_of(program, positional, named, ENOUGH_STEPS, cut_short=True)
    return None if steps >= ENOUGH_STEPS else max(WORK_OF_A_SHORT_TRACE, WORK_FOR_ONE_STEP * steps)


def calls_worth_compiling(program: Callable[..., Any], arguments: Arguments) -> int | str:
    """Return how many calls of a program take so long in plain Python that compiling pays, or why that is not known."""
    rng = np.random.Generator(np.random.SFC64(2))
    try:
        arrays = Plan(arguments.nodes).run(MOST_COUNTED_CALLS, rng)
    except (SampleFailure, ProgramError):
        return "its inputs fail"
    steps = calls = 0
    with seeded(rng, program), undisturbed_memory(program, *arguments.shared):
        for positional, named in arguments.plain(arrays, MOST_COUNTED_CALLS):
            steps += steps_of(program, positional, named)
            calls += 1
            if steps >= ENOUGH_STEPS:
                break
    seconds = max(steps, 1) * (SECONDS_PER_STEP_ON_ARRAYS if _has_arrays(arguments) else SECONDS_PER_STEP)
    return math.ceil(SECONDS_WORTH_COMPILING * calls / seconds)


def check_that_it_ends(program: Callable[..., Any], arguments: Arguments) -> None:
    """Refuse a program that does not come to an end in plain calls on some random inputs."""
    rng = np.random.Generator(np.random.SFC64(3))
    try:
        arrays = Plan(arguments.nodes).run(CALLS_SEEN_TO_END, rng)
    except (SampleFailure, ProgramError):
        return
    steps = 0
    with seeded(rng):
        for positional, named in arguments.plain(arrays, CALLS_SEEN_TO_END):
            shown = ", ".join(map(reprlib.repr, (*positional, *named.values())))  # before the program changes it
            taken = steps_of(program, positional, named, ENDLESS_STEPS, cut_short=True)
            if taken >= ENDLESS_STEPS:
                raise ProgramError(
                    f"the program had not ended after {ENDLESS_STEPS:,} steps in plain Python: it seems to loop "
                    f"without end on the input {shown}. If it is meant to run that long, let it do less in one call, "
                    "or run it by itself with pv.External"
                )
            steps += taken
            if steps >= MOST_STEPS:
                break


def _has_arrays(arguments: Arguments) -> bool:
    return any(
        leaf.node.shape != () if isinstance(leaf, RandomVariable) else isinstance(leaf, np.ndarray)
        for leaf in arguments.leaves
    )


class _CutShort(BaseException):
    """Ends a call that takes too many steps; not an `Exception`, so that no handler of the program holds it up."""


def steps_of(
    program: Callable[..., Any], positional: Any, named: Any, most: int = MOST_STEPS, *, cut_short: bool = False
) -> int:
    """Count the lines begun and functions entered in one call, which may raise.

    At `most`, counting stops, and the call too if it is to be `cut_short`.
    """
    steps = 0

    def count(frame: Any, event: str, argument: Any) -> Any:
        nonlocal steps
        if event in ("line", "call"):
            steps += 1
            if steps >= most:
                sys.settrace(None)
                if cut_short:
                    raise _CutShort
        return count

    before = sys.gettrace()
    output = None
    try:
        sys.settrace(count)
        output = program(*positional, **named)
    except (*FAILURES, _CutShort):  # told when it is called for good
        pass
    finally:
        sys.settrace(before)
    incomparable(output)  # closes coroutines, which would complain
    return steps
