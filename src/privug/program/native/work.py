"""How much Python a program runs: counted, never timed, so that all machines decide alike whether compiling pays."""

import contextlib
import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from privug.errors import ProgramError
from privug.model.comparable import incomparable
from privug.model.operations import SampleFailure
from privug.model.plan import Plan
from privug.model.variable import RandomVariable
from privug.program.calls import Arguments, seeded
from privug.program.memory import undisturbed_memory

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


def _has_arrays(arguments: Arguments) -> bool:
    return any(
        leaf.node.shape != () if isinstance(leaf, RandomVariable) else isinstance(leaf, np.ndarray)
        for leaf in arguments.leaves
    )


def steps_of(program: Callable[..., Any], positional: Any, named: Any, most: int = MOST_STEPS) -> int:
    """Count the lines begun and functions entered in one call, which may raise; at `most`, counting stops."""
    steps = 0

    def count(frame: Any, event: str, argument: Any) -> Any:
        nonlocal steps
        if event in ("line", "call"):
            steps += 1
            if steps >= most:
                sys.settrace(None)
        return count

    before = sys.gettrace()
    output = None
    with contextlib.suppress(Exception):
        sys.settrace(count)
        try:
            output = program(*positional, **named)
        finally:
            sys.settrace(before)
    incomparable(output)  # closes coroutines, which would complain
    return steps
