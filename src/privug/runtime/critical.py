"""What belongs to the whole process: the critical section, for one thread at a time, and the garbage collector.

Such state are Python's and NumPy's global generators, which are seeded while a program is called, whatever a program
keeps in its own globals, the filters of warnings, and the compiler. There is one lock for all of it, so that no two
threads can wait for each other.
"""

import gc
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from privug import interruption

_lock = threading.RLock()


@contextmanager
def critical_section() -> Iterator[None]:
    """Keep other threads out, or wait for one that is in; it may be entered again from inside."""
    left = interruption.seconds_left()
    if not _lock.acquire(timeout=-1 if left is None else left):
        raise interruption.TimeIsUp
    try:
        yield
    finally:
        _lock.release()


@contextmanager
def quietly() -> Iterator[None]:
    """Show no warnings; their filters belong to the whole process."""
    with critical_section(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Do without the collector of reference cycles while many objects are made that will all be needed."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
