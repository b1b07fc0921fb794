"""Runs that are to stop: the user interrupts them, their time is up, or another part of them has failed.

What stops a run is always a KeyboardInterrupt, so that engines keep what they have by the time in one and the same way.
"""

import ctypes
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

REMINDER_SECONDS = 1.0  # a program may swallow what is raised in it


class TimeIsUp(KeyboardInterrupt):
    """The seconds of a run are over: engines keep what they have, as when the user interrupts them."""


class Deadline:
    """When a run ends; the thread that it was set in is interrupted there, wherever it is in Python code."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.at = time.monotonic() + seconds
        self._thread = threading.get_ident()
        self._lock = threading.Lock()
        self._settled = threading.Event()
        self._timer = threading.Thread(target=self._remind, daemon=True)
        self._timer.start()

    def _remind(self) -> None:
        wait = self.at - time.monotonic()
        while not self._settled.wait(max(0.0, wait)):
            with self._lock:
                if not self._settled.is_set():
                    _raise_in(self._thread, TimeIsUp)
            wait = REMINDER_SECONDS

    @property
    def is_over(self) -> bool:
        """Whether the time is up, and nobody has taken note of it yet."""
        return not self._settled.is_set() and time.monotonic() >= self.at

    def settle(self) -> None:
        """Interrupt nobody from now on."""
        while not self._settled.is_set():
            try:
                with self._lock:
                    self._settled.set()
                    _raise_in(self._thread, None)
            except TimeIsUp:  # it came at the last moment
                continue


def _raise_in(thread: int, error: type[BaseException] | None) -> None:
    """Have an exception raised in a thread, or take back one that was not raised yet."""
    what = None if error is None else ctypes.py_object(error)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), what)


_deadlines: ContextVar[tuple[Deadline, ...]] = ContextVar("deadlines", default=())
_stopped: ContextVar[threading.Event | None] = ContextVar("stopped", default=None)


@contextmanager
def within(seconds: float | None) -> Iterator[None]:
    """Interrupt the block by `TimeIsUp` after so many seconds; None is no limit."""
    if seconds is None:
        yield
        return
    deadline = Deadline(seconds)
    token = _deadlines.set((*_deadlines.get(), deadline))
    try:
        yield
    finally:
        deadline.settle()
        _deadlines.reset(token)


def seconds_left() -> float | None:
    """Return how long this run may still take; None is no limit."""
    ends = [deadline.at for deadline in _deadlines.get()]
    return max(0.0, min(ends) - time.monotonic()) if ends else None


@contextmanager
def stoppable(event: threading.Event) -> Iterator[None]:
    """Let an event stop what this thread does for a run."""
    token = _stopped.set(event)
    try:
        yield
    finally:
        _stopped.reset(token)


def check() -> None:
    """Raise if this run is to stop; to be called every now and then by what may take long."""
    event = _stopped.get()
    if event is not None and event.is_set():
        raise KeyboardInterrupt
    if any(deadline.is_over for deadline in _deadlines.get()):
        raise TimeIsUp


def interruption() -> KeyboardInterrupt:
    """Return what to raise where a run was interrupted and has nothing to show for it."""
    return TimeIsUp() if seconds_left() == 0 else KeyboardInterrupt()


def taken_note(kept: str) -> str:
    """Say why a run ends early and what was kept; from here on it may take the time to finish that."""
    over = [deadline for deadline in _deadlines.get() if deadline.is_over]
    if not over:
        return f"interrupted: {kept}"
    for deadline in over:
        deadline.settle()
    return f"time was up after {over[0].seconds:g} s: {kept}"
