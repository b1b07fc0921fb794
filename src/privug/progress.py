"""Progress on standard error for anything that takes more than a second: a bar on a terminal, plain lines elsewhere."""

import sys
import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from privug import settings

QUIET_SECONDS = 1.0
LINE_SECONDS = 10.0
FRAME_SECONDS = 0.1


class ProgressMeter:
    """Shows how much of `total` is done; silent for the first second.

    Use as a context manager and call `update(done, note)`.
    """

    def __init__(self, label: str, total: float) -> None:
        self._label = label
        self._total = total
        self._started = time.monotonic()
        self._last_line = self._started
        self._last_drawn = self._started
        self._bar: Progress | None = None

    def __enter__(self) -> "ProgressMeter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def update(self, done: float, note: str = "") -> None:
        """Report that `done` of the total is done."""
        now = time.monotonic()
        if not settings.current().progress or now - self._started < QUIET_SECONDS:
            return
        if sys.stderr.isatty():
            if now - self._last_drawn >= FRAME_SECONDS:
                self._last_drawn = now
                self._draw_bar(done, note)
        elif now - self._last_line >= LINE_SECONDS or self._last_line == self._started:
            self._last_line = now
            print(f"{self._label}: {min(1.0, done / self._total):.0%} {note}".rstrip(), file=sys.stderr, flush=True)

    def _draw_bar(self, done: float, note: str) -> None:
        if self._bar is None:
            label, remark = (TextColumn(f"{{task.{what}}}", markup=False) for what in ("description", "fields[note]"))
            columns = (label, BarColumn(), TextColumn("{task.percentage:>3.0f}%"), remark, TimeRemainingColumn())
            # No refreshing thread: workers may be forked while the bar is shown.
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True, auto_refresh=False)
            self._task = self._bar.add_task(self._label, total=self._total, note=note)
            self._bar.start()
        self._bar.update(self._task, completed=min(done, self._total), note=note, refresh=True)
