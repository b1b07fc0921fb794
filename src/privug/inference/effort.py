"""The work of exact inference, counted as it is done: an attempt ends after the same work on every machine."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from privug.errors import UnsuitableEngine
from privug.progress import ProgressMeter
from privug.scoping import holding

OPERATIONS = 1e9  # elementary ones in a second
COST_OF_CALL, COST_OF_POINT = 7e4, 130.0  # of a function of numbers, and of each number


class Exhausted(UnsuitableEngine):
    """An attempt at an exact answer took more work than it was allowed."""


class Effort:
    """How much work an attempt has done, in elementary operations, of how much it may do; None is no limit."""

    def __init__(self, limit: float | None, meter: ProgressMeter) -> None:
        self.spent = 0.0
        self.limit = limit
        self._meter = meter

    def spend(self, operations: float) -> None:
        """Count some work, show how far it has come, and refuse to go on beyond the limit."""
        self.spent += operations
        if self.limit is not None and self.spent > self.limit:
            raise Exhausted(f"no exact answer was found by the work of about {self.limit / OPERATIONS:.2g} s")
        self._meter.update(min(self.spent, self._meter.total))


_current: ContextVar[Effort | None] = ContextVar("effort", default=None)


@contextmanager
def limited(limit: float | None, expected: float = OPERATIONS) -> Iterator[Effort]:
    """Bound the work done inside the block; what is done, and for how long at most, is said after a second.

    Without a limit, it is shown how much of the `expected` work is done.
    """
    seconds = None if limit is None else limit / OPERATIONS
    with ProgressMeter("computing the exact answer", limit or expected, seconds) as meter:
        effort = Effort(limit, meter)
        with holding(_current, effort):
            yield effort


def spend(operations: float) -> None:
    """Count some work of the attempt at hand."""
    effort = _current.get()
    if effort is not None:
        effort.spend(operations)
