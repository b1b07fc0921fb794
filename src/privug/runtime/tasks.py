"""Tasks spread over the machine or a cluster, and the journal that keeps their results.

Results come back in the order of the tasks, so they never depend on the number of workers.
"""

import contextvars
import math
import multiprocessing
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Protocol, TypeVar

from privug import interruption, settings
from privug.errors import ArgumentError
from privug.runtime.cluster import run_on
from privug.runtime.processes import run_forked
from privug.scoping import Held, holding

Task = TypeVar("Task")
Result = TypeVar("Result")


class Journal(Protocol):
    """Keeps the results of tasks that were done, and gives them back."""

    def results(
        self,
        name: str,
        tasks: Sequence[Task],
        compute: Callable[[Sequence[Task]], Iterator[Result]],
    ) -> Iterator[Result]:
        """Yield the results of all tasks in order: those that are kept, and the others as they are computed."""


_current: Held[Journal | None] = Held(None)


def current() -> Journal | None:
    """Return the journal of the run at hand, if it has one."""
    return _current.get()


def keeping(journal: Journal | None) -> holding[Journal | None]:
    """Keep the results of the tasks inside a `with` block in a journal."""
    return holding(_current, journal)


def unkept(work: Callable[[Task], Result], task: Task) -> Result:
    """Do a task that is kept as a whole: the tasks that it is made of are its own business."""
    with keeping(None):
        return work(task)


# Forking two workers costs some 20 ms; below this much work it does not pay.
SECONDS_WORTH_A_FORK = 0.5
SECONDS_WORTH_SENDING = 2.0


def run_tasks(
    tasks: Sequence[Task], work: Callable[[Task], Result], *, opaque: bool, bytes_per_task: int, name: str = "tasks"
) -> Iterator[Result]:
    """Yield `work(task)` for each task in order, on as many workers as the settings and the memory budget allow.

    In a run that is checkpointed, those that are done already come from there: `name` says which tasks these are.
    """
    kept = current()
    if kept is None:
        return _computed(tasks, work, opaque, bytes_per_task)
    alone = partial(unkept, work)
    return kept.results(name, tasks, lambda missing: _computed(missing, alone, opaque, bytes_per_task))


def _computed(
    tasks: Sequence[Task], work: Callable[[Task], Result], opaque: bool, bytes_per_task: int
) -> Iterator[Result]:
    workers = min(_affordable_workers(bytes_per_task), len(tasks))
    on = settings.current().on
    if on != settings.HERE and len(tasks) > 1:
        expected = math.inf  # what is called may harm this process, so that none of it is done here
        if not opaque:
            expected = yield from _first(tasks, work)
            tasks = tasks[1:]
        if expected >= SECONDS_WORTH_SENDING:
            yield from run_on(on, tasks, work)
            return
    if workers <= 1:
        yield from map(work, tasks)
        return
    if not opaque:
        yield from _in_threads(tasks, work, workers)
        return
    expected = yield from _first(tasks, work)
    remaining = tasks[1:]
    if expected < SECONDS_WORTH_A_FORK or not may_fork():
        yield from map(work, remaining)
        return
    yield from run_forked(work, remaining, min(workers, len(remaining)))


def _first(tasks: Sequence[Task], work: Callable[[Task], Result]) -> Generator[Result, None, float]:
    """Yield the result of the first task, and return how many seconds the others may take."""
    started = time.perf_counter()
    result = work(tasks[0])
    seconds = time.perf_counter() - started
    yield result
    return seconds * (len(tasks) - 1)


def may_fork() -> bool:
    """Say whether processes can be forked, and this one is not itself one of many workers.

    Polars has threads that do not survive a fork: what a worker asks of it would be waited for without end.
    """
    is_worker = multiprocessing.current_process().daemon
    return not is_worker and "polars" not in sys.modules and "fork" in multiprocessing.get_all_start_methods()


def _affordable_workers(bytes_per_task: int) -> int:
    limits = settings.current()
    if bytes_per_task > limits.memory_budget:
        needed = -(-bytes_per_task // settings.MEBIBYTE)
        raise ArgumentError(
            f"one block of this model needs {needed} MiB, more than the memory budget of "
            f"{limits.memory_budget / settings.MEBIBYTE:.1f} MiB; call pv.configure(memory_budget={needed} * 2**20)"
        )
    return max(1, min(limits.workers, limits.memory_budget // max(1, bytes_per_task)))


def _in_threads(tasks: Sequence[Task], work: Callable[[Task], Result], workers: int) -> Iterator[Result]:
    """Keep a few tasks per worker under way; a consumer that stops early stops them."""
    waiting: deque[Future[Result]] = deque()
    stopped = threading.Event()

    def stoppable(task: Task) -> Result:
        with interruption.stoppable(stopped):
            return work(task)

    with ThreadPoolExecutor(workers) as pool:
        try:
            for task in tasks:
                # What the run has set in its context, such as limits, holds for its threads too.
                submit = partial(pool.submit, contextvars.copy_context().run, stoppable, task)
                waiting.append(interruption.undisturbed(submit))  # it may start a thread
                if len(waiting) >= 2 * workers:
                    yield _awaited(waiting.popleft())
            while waiting:
                yield _awaited(waiting.popleft())
        finally:
            stopped.set()
            for future in waiting:
                future.cancel()


def _awaited(future: "Future[Result]") -> Result:
    """Wait for a result as long as the run may take."""
    try:
        return future.result(interruption.seconds_left())
    except TimeoutError:
        if future.done():  # it is the work's own
            raise
        raise interruption.TimeIsUp from None
