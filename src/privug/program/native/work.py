"""How much Python a program runs: counted, never timed, so that all machines decide alike what pays."""

import math
import reprlib
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from privug.errors import ProgramError
from privug.model.operations import SampleFailure
from privug.model.plan import Plan
from privug.model.structure import incomparable
from privug.model.variable import RandomVariable
from privug.program.calls import seeded
from privug.program.inputs import Arguments
from privug.program.outputs import FAILURES
from privug.program.reachable import undisturbed_memory

# A step is a line begun or a function entered. With Python 3.11, nine programs (loops over rows, arithmetic,
# dictionaries, recursion) took 20 to 85 ns a step, the median 37. Four programs that take numbers out of NumPy arrays
# took 64 to 180 ns, and a third of that on lists: what an array gives is slow to work with.
SECONDS_PER_STEP = 40e-9
SECONDS_PER_STEP_ON_ARRAYS = 100e-9

# Loading the compiler takes up to a second, compiling up to five: even where a step takes half as long, it pays.
SECONDS_WORTH_COMPILING = 20.0

# Counting takes 0.3 us a step: 0.06 s for all calls but the last, 0.6 s for one that never seems to end.
MOST_CALLS = 8
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
        arrays = Plan(arguments.nodes).run(MOST_CALLS, rng)
    except (SampleFailure, ProgramError):
        return "its inputs fail"
    steps = calls = 0
    with seeded(rng, program), undisturbed_memory(program, *arguments.shared):
        for positional, named in arguments.plain(arrays, MOST_CALLS):
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
