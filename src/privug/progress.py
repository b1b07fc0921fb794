"""Progress on standard error for anything that takes more than a second: a bar on a terminal, plain lines elsewhere."""

import sys
import threading
import time
from contextvars import ContextVar
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from privug import interruption, settings

QUIET_SECONDS = 1.0
LINE_SECONDS = 10.0
FRAME_SECONDS = 0.1


_shown: ContextVar["ProgressMeter | None"] = ContextVar("shown", default=None)


class ProgressMeter:
    """Shows how much of `total` is done, and about how long the rest will take; silent for the first second.

    Use as a context manager and call `update(done, note)`, from any thread of the run. What is shown never goes back:
    of meters inside of each other the outermost one counts, and the notes of the others are shown with it.
    """

    def __init__(self, label: str, total: float, seconds: float | None = None) -> None:
        """Make ready; `seconds` is how long all of it takes at most, where that is known."""
        self._label = label
        self.total = total
        self._seconds = seconds
        self._started = time.monotonic()
        self._last_line = self._started
        self._last_drawn = self._started
        self._bar: Progress | None = None
        self._done = 0.0
        self._around: ProgressMeter | None = None
        self._lock = threading.Lock()

    def __enter__(self) -> "ProgressMeter":
        self._around = _shown.get()
        self._token = _shown.set(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _shown.reset(self._token)
        if self._bar is not None:
            self._bar.stop()

    def update(self, done: float, note: str = "") -> None:
        """Report that `done` of the total is done."""
        if self._around is not None:
            self._around.update(0, f"{self._label}: {note}")
            return
        now = time.monotonic()
        if not settings.current().progress or now - self._started < QUIET_SECONDS:
            return
        with self._lock:
            self._done = max(self._done, min(done, self.total))
            if sys.stderr.isatty():
                if now - self._last_drawn >= FRAME_SECONDS:
                    self._last_drawn = now
                    self._draw_bar(self._done, note)
            elif now - self._last_line >= LINE_SECONDS or self._last_line == self._started:
                self._last_line = now
                line = f"{self._label}: {self._done / self.total:.0%} {note}".rstrip()
                print(f"{line}{self._remaining(now)}", file=sys.stderr, flush=True)

    def says(self, text: str) -> bool:
        """Write a line above the bar; say whether there is one."""
        if self._around is not None:
            return self._around.says(text)
        with self._lock:
            if self._bar is not None:
                self._bar.console.print(text, markup=False, highlight=False)
            return self._bar is not None

    def _remaining(self, now: float) -> str:
        """Return how long the rest takes at this pace, or at most, as far as that is known."""
        if self._seconds is not None:
            return f"; at most about {max(1.0, self._seconds * (1 - self._done / self.total)):.0f} s more"
        rate = self._done / (now - self._started)
        pace = (self.total - self._done) / rate if rate else None
        left = interruption.seconds_left()
        if left is not None and (pace is None or left < pace):
            return f"; at most {left:.0f} s more"
        return "" if not pace else f"; about {max(1.0, pace):.0f} s more"

    def _draw_bar(self, done: float, note: str) -> None:
        if self._bar is None:
            label, remark = (TextColumn(f"{{task.{what}}}", markup=False) for what in ("description", "fields[note]"))
            columns = (label, BarColumn(), TextColumn("{task.percentage:>3.0f}%"), remark, TimeRemainingColumn())
            # No refreshing thread: workers may be forked while the bar is shown.
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True, auto_refresh=False)
            self._task = self._bar.add_task(self._label, total=self.total, note=note)
            self._bar.start()
        self._bar.update(self._task, completed=done, note=note, refresh=True)


def announce(text: str) -> None:
    """Say something on standard error, above the bar if there is one."""
    meter = _shown.get()
    if settings.current().progress and (meter is None or not meter.says(text)):
        print(text, file=sys.stderr, flush=True)


def tell(started: float, text: str) -> None:
    """Say on standard error what a run does next, if it has been going on since `started` for more than a second."""
    if settings.current().progress and time.monotonic() - started >= QUIET_SECONDS:
        print(text, file=sys.stderr, flush=True)
