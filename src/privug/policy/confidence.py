"""How sure the intervals of a check are: a level that can be raised inside a `with` block."""

from contextvars import ContextVar

from privug.estimate import CONFIDENCE
from privug.scoping import holding

_error: ContextVar[float] = ContextVar("error", default=1 - CONFIDENCE)


def error_allowed() -> float:
    """Return the probability with which some of the intervals that are looked at together may be wrong."""
    return _error.get()


def allowing(error: float) -> holding[float]:
    """Make the intervals inside a `with` block wrong with at most this probability, all of them together.

    >>> with allowing(0.01):
    ...     error_allowed()
    0.01
    """
    return holding(_error, error)
