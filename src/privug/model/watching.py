"""Calls of programs that take long: the user is told of the input on which one has not returned, and so is the run."""

import contextvars
import os
import threading
import time
from collections.abc import Callable
from contextvars import ContextVar
from types import TracebackType
from typing import Any

from privug import interruption
from privug.progress import announce
from privug.scoping import holding

PATIENCE = 5.0  # seconds

_herald: ContextVar[Callable[[str], None] | None] = ContextVar("herald", default=None)


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
