"""Forked worker processes, and the calls in them that take long, of which the user is told.

Workers belong to one run. They ignore the keyboard and have no threads of this process: the run alone ends them, by
force, whatever the program is at. Nothing is forked while another thread is in the critical section, because a
worker would find its locks held for ever.
"""

import contextlib
import contextvars
import functools
import mmap
import os
import pickle
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, Pipe, wait
from types import TracebackType
from typing import Any, NoReturn, TypeVar

import numpy as np

from privug import interruption, settings
from privug.errors import ProgramError
from privug.progress import announce
from privug.runtime.critical import critical_section
from privug.scoping import Held, holding

PATIENCE = 5.0  # seconds

_herald: Held[Callable[[str], None] | None] = Held(None)


def reporting_to(herald: Callable[[str], None]) -> holding[Callable[[str], None] | None]:
    """Have a process that belongs to a run tell the one that runs it, rather than the user."""
    return holding(_herald, herald)


def patience() -> float:
    """Return after how many seconds a call takes long; in a run that ends soon, after half of what is left."""
    left = interruption.seconds_left()
    return PATIENCE if left is None else min(PATIENCE, left / 2)


def tell_of(where: str, label: str = "the program") -> None:
    """Say that a program has not returned, on some input or in whatever it is at."""
    herald = _herald.get()
    if herald is not None:
        herald(where)
        return
    interruption.note_unanswered(where)
    announce(f"{label} has not returned yet {where}")


class Watch:
    """A block in which a program is called time and again: calls that take long are told of."""

    def __init__(self, label: str, shown: Callable[..., str], each: Callable[[str], None] | None = None) -> None:
        self._label, self._shown, self._each = label, shown, each
        self._call: tuple[float, tuple[Any, ...]] | None = None
        self._told: tuple[float, tuple[Any, ...]] | None = None
        self.patience = patience()
        self._context = contextvars.copy_context()

    def begin(self, *call: Any) -> None:
        """Take note that the program is called; the arguments are those that `shown` takes. `each` is told at once."""
        self._call = time.monotonic(), call
        if self._each is not None:
            self._each(self._shown(*call))

    def __enter__(self) -> "Watch":
        interruption.undisturbed(lambda: _watcher.add(self))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        interruption.undisturbed(lambda: _watcher.remove(self))

    def look(self) -> float:
        """Tell of a call that has taken long; return in how many seconds to look again."""
        call = self._call
        if call is None or call is self._told:
            return self.patience
        wait = call[0] + self.patience - time.monotonic()
        if wait > 0:
            return wait
        self._told = call
        self._context.run(tell_of, self._where(*call[1]), self._label)
        return self.patience

    def _where(self, *call: Any) -> str:
        try:
            return self._shown(*call)
        except Exception:  # the program may be changing its input
            return "on the input that it was given last"


class _Watcher:
    """The one thread that looks after all calls under way; it ends when there has been none for a while."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._watches: set[Watch] = set()
        self._wakes = 0.0
        self._thread: threading.Thread | None = None

    def add(self, watch: Watch) -> None:
        """Look after the calls of a block."""
        with self._changed:
            self._watches.add(watch)
            if self._thread is None:
                self._wakes = time.monotonic() + watch.patience
                self._thread = threading.Thread(target=self._run, daemon=True)
                self._thread.start()
            elif time.monotonic() + watch.patience < self._wakes:
                self._wakes = 0.0
                self._changed.notify()

    def remove(self, watch: Watch) -> None:
        """Let the calls of a block be: nothing more is said of them."""
        with self._changed:
            self._watches.discard(watch)

    def _run(self) -> None:
        with self._changed:
            while True:
                self._changed.wait(max(0.0, self._wakes - time.monotonic()))
                if not self._watches:
                    self._thread = None
                    return
                self._wakes = time.monotonic() + min(watch.look() for watch in list(self._watches))


_watcher = _Watcher()


def _start_anew() -> None:
    """Forget, in a forked process, a thread that is not there, and its lock."""
    global _watcher
    _watcher = _Watcher()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_anew)


Task = TypeVar("Task")
Result = TypeVar("Result")

AHEAD = 4  # tasks for each worker that may be done before the one whose turn it is
POLL_SECONDS = 1.0  # between two looks whether a worker has died without a word
MOST_DEATHS = 2  # of workers on one task: it is the task, not bad luck
LONGEST_NOTE = 4096  # bytes
_Witness = Callable[[str], None]
_witness: Held[_Witness | None] = Held(None)


def witness() -> _Witness | None:
    """Return what is to be told of each input before the program gets it, in case that kills its process."""
    return _witness.get()


def run_forked(work: Callable[[Task], Result], tasks: Sequence[Task], workers: int) -> Iterator[Result]:
    """Yield `work(task)` for each task in order, each computed in one of so many forked workers."""
    pool = _Pool(work, tasks, workers)
    try:
        for position in range(len(tasks)):
            yield pool.result(position)
    finally:
        pool.kill()


def _forked() -> tuple[Connection, Connection, int]:
    """Fork; return both ends of a pipe, of which each process takes one, and the other process, or zero in that."""
    ours, theirs = Pipe()
    process = os.fork()
    if process:
        theirs.close()
    return ours, theirs, process


class _Worker:
    """A forked process and the way to talk to it."""

    def __init__(self, work: Callable[[Any], Any], tasks: Sequence[Any]) -> None:
        self.position: int | None = None
        self.is_told = False
        self.ended = "it is not known how"
        self._note = mmap.mmap(-1, LONGEST_NOTE)
        parent = os.getpid()
        _flush()
        masked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            with critical_section(), _quiet_fork():
                self.connection, theirs, self.process = interruption.undisturbed(_forked)
            if self.process == 0:
                _serve(theirs, work, tasks, parent, self._note)
            with contextlib.suppress(OSError):  # it may have done so itself, or be gone
                os.setpgid(self.process, self.process)
        finally:
            if os.getpid() != parent:  # whatever happened there, it must not go on with what this process does
                os._exit(1)
            signal.pthread_sigmask(signal.SIG_SETMASK, masked)

    def start(self, position: int, *, watched: bool) -> bool:
        """Send a task; say whether that could be done. If it is watched, its inputs are noted one by one."""
        self.position, self.is_told = position, False
        _noted(self._note, "")
        try:
            self.connection.send((position, watched))
        except OSError:
            return False
        return True

    def is_dead(self) -> bool:
        """Say whether the process has ended."""
        try:
            process, status = os.waitpid(self.process, os.WNOHANG)
        except ChildProcessError:  # somebody else has waited for it
            return True
        if process:
            self.ended = _how_it_ended(status)
        return process != 0

    @property
    def where(self) -> str:
        """The input that the program was given last, of a task that was watched or takes long."""
        return self._note[:].rstrip(b"\0").decode(errors="ignore")

    def kill(self) -> None:
        """End the process and what it has started."""
        with contextlib.suppress(OSError):
            os.killpg(self.process, signal.SIGKILL)
        with contextlib.suppress(OSError):
            os.waitpid(self.process, 0)
        self.connection.close()


class _Pool:
    """The workers of one run, the tasks that are under way and the results whose turn has not come."""

    def __init__(self, work: Callable[[Any], Any], tasks: Sequence[Any], workers: int) -> None:
        self._work, self._tasks, self._count = work, tasks, workers
        self._workers: list[_Worker] = []
        self._waiting = list(range(len(tasks)))[::-1]
        self._replies: dict[int, Callable[[], Any]] = {}
        self._deaths: dict[int, int] = {}
        self._sendable = True

    def result(self, position: int) -> Any:
        """Return the result of a task or raise what it raised; the tasks before have been asked for."""
        while position not in self._replies:
            if not self._sendable:
                return self._work(self._tasks[position])
            self._dispatch(position)
            self._collect()
        return self._replies.pop(position)()

    def _dispatch(self, turn: int) -> None:
        while self._waiting and self._waiting[-1] < turn + AHEAD * self._count:
            idle = next((worker for worker in self._workers if worker.position is None), None)
            if idle is None:
                if len(self._workers) >= self._count:
                    return
                idle = _Worker(self._work, self._tasks)
                self._workers.append(idle)
            position = self._waiting.pop()
            if not idle.start(position, watched=position in self._deaths):
                self._bury(idle)

    def _collect(self) -> None:
        """Wait for some worker to answer, or to die."""
        left = interruption.seconds_left()
        busy = {worker.connection: worker for worker in self._workers if worker.position is not None}
        if not busy:
            return
        ready = wait(list(busy), POLL_SECONDS if left is None else min(left, POLL_SECONDS))
        interruption.check()
        if not ready:
            for worker in [worker for worker in busy.values() if worker.is_dead()]:
                self._bury(worker)
        for worker in busy.values():
            if worker.position not in self._deaths and not worker.is_told and worker.where:
                worker.is_told = True
                tell_of(worker.where)
        for connection in ready:
            assert isinstance(connection, Connection)
            self._receive(busy[connection])

    def _receive(self, worker: _Worker) -> None:
        assert worker.position is not None
        try:
            content = worker.connection.recv_bytes()
        except (EOFError, OSError):
            self._bury(worker)
            return
        reply = read_reply(content)
        if reply is None:  # what cannot be sent is computed here, as are all results that come after it
            self._sendable = False
            return
        self._replies[worker.position] = reply
        worker.position = None

    def _bury(self, worker: _Worker) -> None:
        """Have the task of a worker that died done by another one, unless it killed one before."""
        position = worker.position
        assert position is not None
        self._workers.remove(worker)
        deadline = time.monotonic() + POLL_SECONDS  # its end of the pipe may be closed a little before it is gone
        while not worker.is_dead() and time.monotonic() < deadline:
            time.sleep(0.01)
        worker.kill()
        self._deaths[position] = self._deaths.get(position, 0) + 1
        if self._deaths[position] >= MOST_DEATHS:
            self._replies[position] = functools.partial(_raise, _fatal(worker), None)
        else:
            self._waiting.append(position)

    def kill(self) -> None:
        """End all workers."""
        for worker in self._workers:
            worker.kill()


def _fatal(worker: _Worker) -> ProgramError:
    """Say what the program does to the process that runs it."""
    given = f"\n  {worker.where}" if worker.where else ""
    return ProgramError(
        f"the program ended the process that ran it ({worker.ended}), twice{given}\n"
        "  It may call os._exit(), crash in compiled code, or need more memory than there is."
    )


def _how_it_ended(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    return f"exit code {code}" if code >= 0 else f"signal {-code}, {signal.Signals(-code).name}"


def read_reply(content: bytes) -> Callable[[], Any] | None:
    """Return what gives the result of a task or raises what it raised; None if it could not be sent."""
    try:
        result, error, cause = pickle.loads(content)
    except Exception:
        return None
    return functools.partial(_raise, error, cause) if error is not None else lambda: result


def _raise(error: BaseException, cause: BaseException | None) -> NoReturn:
    raise error from cause


@contextlib.contextmanager
def _quiet_fork() -> Iterator[None]:
    """Fork beside other threads without a warning: workers have no use for those, and for none of their locks."""
    generator: Any = np.random.get_bit_generator()  # type: ignore[attr-defined]
    with warnings.catch_warnings(), generator.lock:
        for category in (RuntimeWarning, DeprecationWarning):
            warnings.filterwarnings("ignore", ".*fork", category)
        yield


def _serve(
    connection: Connection, work: Callable[[Any], Any], tasks: Sequence[Any], parent: int, note: mmap.mmap
) -> NoReturn:
    """Be a worker: do tasks until there are no more, and never return to the code that was forked."""
    try:
        os.setpgid(0, 0)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        _renew_locks()
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
        with settings.limited(workers=1, progress=False), reporting_to(functools.partial(_noted, note)):
            while True:
                position, watched = connection.recv()
                with holding(_witness, functools.partial(_noted, note) if watched else None):
                    connection.send_bytes(reply_of(work, tasks[position]))
                _flush()
    finally:
        os._exit(0)


def _noted(note: mmap.mmap, shown: str) -> None:
    """Leave a line where the process that has forked this one can read it, whatever becomes of this one."""
    note[:] = shown.encode(errors="replace")[:LONGEST_NOTE].ljust(LONGEST_NOTE, b"\0")


def reply_of(work: Callable[[Any], Any], task: Any, written: Callable[[Any], bytes] = pickle.dumps) -> bytes:
    """Return the result of a task, or what it raised, as bytes; no bytes if it cannot be sent."""
    result: Any = None
    error: BaseException | None = None
    try:
        result = work(task)
    except BaseException as raised:
        error = raised
    try:
        return written((result, error, None if error is None else error.__cause__))
    except Exception:
        return b""


def _flush() -> None:
    """Write out what was printed so far, so that no other process writes it again."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError, OSError):  # there may be none, or a closed one
            stream.flush()


def _renew_locks() -> None:
    """Replace locks that another thread may have held when this process was forked: those of cached properties."""
    for module in [module for name, module in sys.modules.items() if name.startswith("privug.")]:
        for kind in [value for value in vars(module).values() if isinstance(value, type)]:
            for attribute in vars(kind).values():
                if isinstance(attribute, functools.cached_property) and hasattr(attribute, "lock"):
                    attribute.lock = threading.RLock()


def _end_with(parent: int) -> None:
    """End this worker when the process is gone that would have ended it."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)
