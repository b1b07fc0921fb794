"""How much of the machine Privug may use; nothing here changes what the numbers that Privug computes stand for."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Literal

from privug.errors import ArgumentError

MEBIBYTE = 1 << 20

Native = bool | Literal["auto"]


@dataclass(frozen=True)
class Settings:
    """The limits in force: bytes for intermediate arrays, workers, showing progress, compiling programs."""

    memory_budget: int = 256 * MEBIBYTE
    workers: int = os.cpu_count() or 1
    progress: bool = True
    native: Native = "auto"


_current = Settings()


def current() -> Settings:
    """Return the settings in force."""
    return _current


def configure(
    *,
    memory_budget: int | None = None,
    workers: int | None = None,
    progress: bool | None = None,
    native: Native | None = None,
) -> Settings:
    """Set limits for this process; what is not named stays as it is.

    `memory_budget` is in bytes and bounds intermediate arrays, not the samples you ask to keep.
    `native` says whether programs that cannot be traced are compiled with Numba, where that can be done: "auto" does so
    for runs that would take 20 s or longer, judged by counting the lines that the program runs; True always does, False
    never. Compiled programs get other samples than programs that are called, from the same seed.

    >>> import privug as pv
    >>> pv.configure(memory_budget=256 * 2**20).memory_budget
    268435456
    """
    global _current
    for name, number in (("memory_budget", memory_budget), ("workers", workers)):
        if number is not None and (isinstance(number, bool) or not isinstance(number, int) or number < 1):
            raise ArgumentError(f"{name} must be a positive whole number, not {number!r}")
    if native not in (None, True, False, "auto"):
        raise ArgumentError(f"native must be 'auto', True or False, not {native!r}")
    given = {"memory_budget": memory_budget, "workers": workers, "progress": progress, "native": native}
    _current = replace(_current, **{name: value for name, value in given.items() if value is not None})  # type: ignore[arg-type]
    return _current


@contextmanager
def limited(
    *,
    memory_budget: int | None = None,
    workers: int | None = None,
    progress: bool | None = None,
    native: Native | None = None,
) -> Iterator[Settings]:
    """Set limits inside a `with` block only."""
    global _current
    before = _current
    try:
        yield configure(memory_budget=memory_budget, workers=workers, progress=progress, native=native)
    finally:
        _current = before
