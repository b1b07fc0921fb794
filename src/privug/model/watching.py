"""Calls of programs that take long: the user is told of the input on which one has not returned, and so is the run."""

import contextvars
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
    """A block in which a program is called time and again: a thread tells of calls that take long."""

    def __init__(self, label: str, shown: Callable[..., str], each: Callable[[str], None] | None = None) -> None:
        self._label, self._shown, self._each = label, shown, each
        self._call: tuple[float, tuple[Any, ...]] | None = None
        self._patience = patience()
        self._ended = threading.Event()

    def begin(self, *call: Any) -> None:
        """Take note that the program is called; the arguments are those that `shown` takes. `each` is told at once."""
        self._call = time.monotonic(), call
        if self._each is not None:
            self._each(self._shown(*call))

    def __enter__(self) -> "Watch":
        self._thread = interruption.thread_started(contextvars.copy_context().run, self._watch)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join(PATIENCE)

    def _watch(self) -> None:
        told, wait = None, self._patience
        while not self._ended.wait(wait):
            call, wait = self._call, self._patience
            if call is not None and call is not told:
                wait = call[0] + self._patience - time.monotonic()
                if wait <= 0:
                    told, wait = call, self._patience
                    tell_of(self._told(*call[1]), self._label)

    def _told(self, *call: Any) -> str:
        try:
            return self._shown(*call)
        except Exception:  # the program may be changing its input
            return "on the input that it was given last"
