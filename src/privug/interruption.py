"""Runs that are to stop: the user interrupts them, their time is up, or another part of them has failed.

What stops a run is always a KeyboardInterrupt, so that engines keep what they have by the time in one and the same way.
"""

import ctypes
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from privug.scoping import holding

Value = TypeVar("Value")

SAME_SECONDS = 0.2  # between deadlines that are meant to be one
REMINDER_SECONDS = 5.0  # a program may swallow what is raised in it


class TimeIsUp(KeyboardInterrupt):
    """The seconds of a run are over: engines keep what they have, as when the user interrupts them."""

    unanswered: str | None = None
    """Where a program takes long that had not returned by then, such as on which input."""


class Deadline:
    """When a run ends; the thread that it was set in is interrupted there, wherever it is in Python code."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.at = time.monotonic() + seconds
        self._thread = threading.get_ident()
        self._lock = threading.Lock()
        self._settled = threading.Event()
        self._raised = False
        self.unanswered: str | None = None
        """Where a program takes long, such as on which input."""

    def start(self) -> None:
        """Interrupt the thread when the time comes."""
        thread_started(self._remind)

    def _remind(self) -> None:
        wait = self.at - time.monotonic()
        while not self._settled.wait(max(0.0, wait)):
            with self._lock:
                if not self._settled.is_set():
                    self._raised = True
                    _raise_in(self._thread, TimeIsUp)
            wait = REMINDER_SECONDS

    def postponed(self) -> threading.Lock:
        """Return what keeps the thread from being interrupted while it is held."""
        return self._lock

    @property
    def is_settled(self) -> bool:
        """Whether the end was taken note of, so that nobody is to be interrupted any more."""
        return self._settled.is_set()

    @property
    def is_over(self) -> bool:
        """Whether the time is up."""
        return time.monotonic() >= self.at

    def settle(self) -> None:
        """Interrupt nobody from now on."""
        while True:
            try:
                with self._lock:
                    self._settled.set()
                if self._raised:
                    _raise_in(self._thread, _Nothing)  # in place of what was not raised yet
                    while True:
                        time.sleep(0)
                return
            except TimeIsUp:  # it came at the last moment
                continue
            except _Nothing:
                self._raised = False
                return


class _Nothing(BaseException):
    """Takes the place of an exception that is to be raised no more: just taking that back slows a thread for good."""


def _raise_in(thread: int, error: type[BaseException]) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(error))


_deadlines: ContextVar[tuple[Deadline, ...]] = ContextVar("deadlines", default=())
_stopped: ContextVar[threading.Event | None] = ContextVar("stopped", default=None)


@contextmanager
def within(seconds: float | None) -> Iterator[None]:
    """Interrupt the block by `TimeIsUp` after so many seconds; None is no limit."""
    if seconds is None:
        yield
        return
    deadline = Deadline(seconds)
    with holding(_deadlines, (*_deadlines.get(), deadline)):
        try:
            deadline.start()
            yield
        except TimeIsUp as error:
            error.unanswered = error.unanswered or deadline.unanswered
            raise
        finally:
            try:
                deadline.settle()
            finally:  # the time may be up in the midst of settling
                deadline.settle()


def undisturbed(work: Callable[[], Value]) -> Value:
    """Return what some work returns, which is interrupted only when it is done.

    Forking takes locks that must be given back, logging's among them. And while a thread is being started, CPython may
    take it for the one that starts it: raised in the new one, the exception ends it before it has begun, for which
    the old one waits forever.
    """
    return _undisturbed(work, _deadlines.get())


def _undisturbed(work: Callable[[], Value], deadlines: tuple[Deadline, ...]) -> Value:
    if not deadlines:
        return work()
    # Nothing is raised between taking a lock and the block: an ExitStack may be interrupted there, and keep the lock.
    with deadlines[0].postponed():
        return _undisturbed(work, deadlines[1:])


def thread_started(work: Callable[..., object], *arguments: object) -> threading.Thread:
    """Return a thread that was started undisturbed, and does not outlive the process."""
    thread = threading.Thread(target=work, args=arguments, daemon=True)
    undisturbed(thread.start)
    return thread


def seconds_left() -> float | None:
    """Return how long this run may still take; None is no limit, or one of which note was taken."""
    ends = [deadline.at for deadline in _deadlines.get() if not deadline.is_settled]
    return max(0.0, min(ends) - time.monotonic()) if ends else None


def note_unanswered(where: str) -> None:
    """Take note of where a program takes long, so that this run can say what it waited for."""
    for deadline in _deadlines.get():
        deadline.unanswered = where


def unanswered(error: TimeIsUp) -> str | None:
    """Return where a program had not returned when the time was up, if that is why."""
    return error.unanswered or next((one.unanswered for one in _deadlines.get() if one.unanswered), None)


def is_time_up() -> bool:
    """Return whether this run has had all of its time."""
    return any(deadline.is_over for deadline in _deadlines.get())


def stoppable(event: threading.Event) -> holding[threading.Event | None]:
    """Let an event stop what this thread does for a run."""
    return holding(_stopped, event)


def check() -> None:
    """Raise if this run is to stop; to be called every now and then by what may take long."""
    event = _stopped.get()
    if event is not None and event.is_set():
        raise KeyboardInterrupt
    if seconds_left() == 0:
        raise TimeIsUp


def interruption() -> KeyboardInterrupt:
    """Return what to raise where a run was interrupted and has nothing to show for it."""
    return TimeIsUp() if is_time_up() else KeyboardInterrupt()


def taken_note(kept: str) -> str:
    """Return why a run ends early and what was kept; from here on it may take the time to finish that."""
    deadlines, soon = _deadlines.get(), time.monotonic() + SAME_SECONDS
    first = next((place for place, deadline in enumerate(deadlines) if deadline.at <= soon), None)
    if first is None or not is_time_up():
        return f"interrupted: {kept}"
    for deadline in deadlines[first:]:  # the time of what is inside of it is up too
        deadline.settle()
    return f"time was up after {deadlines[first].seconds:g} s: {kept}"
