"""Blocks of work spread over the machine: threads for array code, forked processes for plain Python calls.

Results come back in the order of the tasks, so they never depend on the number of workers.
"""

import multiprocessing
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

from privug import settings
from privug.errors import ArgumentError, ProgramError

Task = TypeVar("Task")
Result = TypeVar("Result")

# Forking two workers costs some 20 ms; below this much work it does not pay.
SECONDS_WORTH_A_FORK = 0.5

_inherited: tuple[Callable[[Any], Any], Sequence[Any]] | None = None


def run_tasks(
    tasks: Sequence[Task], work: Callable[[Task], Result], *, opaque: bool, bytes_per_task: int
) -> Iterator[Result]:
    """Yield `work(task)` for each task in order, on as many workers as the settings and the memory budget allow."""
    workers = min(_affordable_workers(bytes_per_task), len(tasks))
    if workers <= 1:
        yield from map(work, tasks)
        return
    if not opaque:
        with ThreadPoolExecutor(workers) as pool:
            yield from _in_order(pool, work, tasks, workers)
        return
    started = time.perf_counter()
    yield work(tasks[0])
    remaining = tasks[1:]
    expected = (time.perf_counter() - started) * len(remaining)
    if expected < SECONDS_WORTH_A_FORK or "fork" not in multiprocessing.get_all_start_methods():
        yield from map(work, remaining)
        return
    yield from _in_processes(remaining, work, workers)


def _affordable_workers(bytes_per_task: int) -> int:
    limits = settings.current()
    if bytes_per_task > limits.memory_budget:
        needed = -(-bytes_per_task // settings.MEBIBYTE)
        raise ArgumentError(
            f"one block of this model needs {needed} MiB, more than the memory budget of "
            f"{limits.memory_budget / settings.MEBIBYTE:.1f} MiB; call pv.configure(memory_budget={needed} * 2**20)"
        )
    return max(1, min(limits.workers, limits.memory_budget // max(1, bytes_per_task)))


def _in_order(pool: Executor, work: Callable[[Task], Result], tasks: Sequence[Task], workers: int) -> Iterator[Result]:
    """Keep a few tasks per worker under way; a consumer that stops early cancels what has not started."""
    waiting: deque[Future[Result]] = deque()
    upcoming = iter(tasks)
    try:
        for task in upcoming:
            waiting.append(pool.submit(work, task))
            if len(waiting) >= 2 * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()


class _ForkedWorkers(ProcessPoolExecutor):
    """Processes that run plain Python code: threads that JAX may have started in this one do not concern them."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", r"os\.fork\(\) was called", RuntimeWarning)
            return super().submit(function, *arguments, **named)


def _in_processes(tasks: Sequence[Task], work: Callable[[Task], Result], workers: int) -> Iterator[Result]:
    """Run in forked workers, which inherit program and tasks: only results are sent, so lambdas are welcome."""
    global _inherited
    finished = attempts = 0
    _inherited = work, tasks
    try:
        while finished < len(tasks):
            attempts += 1
            try:
                with _ForkedWorkers(workers, mp_context=multiprocessing.get_context("fork")) as pool:
                    for result in _in_order(pool, _run_inherited, range(finished, len(tasks)), workers):
                        finished += 1
                        yield result
            except BrokenProcessPool:
                if attempts > 1:
                    raise ProgramError(
                        "a worker process died twice while it ran the program: it may have run out of "
                        "memory or crashed; pv.configure(workers=1) runs the program in this process"
                    ) from None
    finally:
        _inherited = None


def _run_inherited(position: int) -> Any:
    assert _inherited is not None
    work, tasks = _inherited
    return work(tasks[position])
