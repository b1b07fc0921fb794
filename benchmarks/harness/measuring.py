"""Cells of a task, each in its process, take turns: what else the machine does then bears on all of them alike."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from multiprocessing import Pipe
from typing import Any

from harness.results import CellResult, TaskResult
from harness.tasks import TOOLS, Task


@dataclass(frozen=True)
class Patience:
    """How often a cell is asked, and for how long.

    `repeats` times, but no more once its turns have taken `seconds`. A turn may take `limit` seconds, and to import,
    compile and work for the first time three times as long.
    """

    repeats: int = 5
    seconds: float = 5.0
    limit: float = 60.0

    @property
    def start(self) -> float:
        return 3 * self.limit


class Stopped(Exception):
    """A cell that will not answer any more."""

    def __init__(self, status: str, reason: str) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason


class CellProcess:
    """The process of one cell."""

    def __init__(self, task: Task, tool: str) -> None:
        self.pipe, theirs = Pipe()
        self.log = tempfile.TemporaryFile("w+")  # noqa: SIM115, closed with the process
        names = (str(theirs.fileno()), task.module, task.name, tool)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "harness.cell", *names],
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=subprocess.STDOUT,
            pass_fds=(theirs.fileno(),),
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)},
        )
        theirs.close()

    def answer(self, limit: float, since: float) -> dict[str, Any]:
        """Wait for what the cell has to say, for so many seconds since a time."""
        if not self.pipe.poll(max(0.0, since + limit - time.monotonic())):
            raise Stopped("exceeded", f"over {limit:g} s")
        try:
            found: dict[str, Any] = self.pipe.recv()
        except EOFError:
            code = self.process.wait()
            how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
            raise Stopped("crashed", f"died: {how}") from None
        if "crash" in found:
            raise Stopped("crashed", found["crash"])
        return found

    def again(self, limit: float) -> dict[str, Any]:
        self.pipe.send(True)
        return self.answer(limit, time.monotonic())

    def said(self) -> str:
        """Return the end of what it wrote."""
        self.log.seek(0)
        return self.log.read()[-2000:]

    def close(self) -> None:
        """End the process and those it started."""
        if self.pipe.closed:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.pipe.close()
        self.log.close()


def measure(
    task: Task, patience: Patience, tools: Iterable[str] = TOOLS, tell: Callable[[str], None] = lambda line: None
) -> TaskResult:
    """Measure the cells of a task by turns."""
    result = TaskResult(task, {tool: CellResult(tool, "cannot", task.reason(tool)) for tool in TOOLS})
    running: dict[str, CellProcess] = {}
    wanted = [tool for tool, cell in task.cells.items() if not isinstance(cell, str)]
    for tool in wanted:
        if tool not in tools:
            result.cells[tool] = CellResult(tool, "cannot", "not asked")
    started = {tool: CellProcess(task, tool) for tool in wanted if tool in tools}
    try:
        since = time.monotonic()
        for tool, process in started.items():  # they prepare at the same time, and work one at a time
            cell = result.cells[tool] = CellResult(tool, "ok")
            if attempt(cell, process, partial(process.answer, patience.start, since), tell):
                running[tool] = process
        for _ in range(patience.repeats):
            for tool, process in list(running.items()):
                cell = result.cells[tool]
                if sum(cell.turns) > patience.seconds:
                    continue
                begun = time.perf_counter()
                if attempt(cell, process, partial(process.again, patience.limit * task.patience), tell):
                    cell.turns.append(time.perf_counter() - begun)
                else:
                    del running[tool]
    finally:
        for process in started.values():
            process.close()
    result.judge()
    return result


def attempt(
    cell: CellResult, process: CellProcess, ask: Callable[[], dict[str, Any]], tell: Callable[[str], None]
) -> bool:
    """Ask a cell and keep what it says; say whether it may be asked again."""
    try:
        cell.take(ask())
        return True
    except (Stopped, BrokenPipeError) as stop:
        cell.status, cell.reason = getattr(stop, "status", "crashed"), getattr(stop, "reason", "died")
        if cell.status == "crashed":
            tell(process.said().rstrip())
        process.close()
        return False
