"""The first calls of a program in a process of its own: if it ends that one, it does not end this one."""

import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

from privug.errors import PrivugError
from privug.model.execution import may_fork
from privug.model.operations import SampleFailure
from privug.model.plan import Plan
from privug.model.workers import run_forked
from privug.program.calls import Arguments, seeded, watched
from privug.program.outputs import FAILURES

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
