"""How much of the machine Privug may use, and whether values that differ only by rounding are one value."""

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any, Literal

from privug.arguments import check_kind, is_one_of, shown
from privug.errors import ArgumentError
from privug.scoping import holding

MEBIBYTE = 1 << 20
LONGEST = 1e9  # seconds

Native = bool | Literal["auto"]
Rounding = Literal["merged", "bits"]
HERE = "local"


@dataclass(frozen=True)
class Settings:
    """What is in force: bytes for intermediate arrays, workers, progress, compiling programs, rounding, patience.

    `exact_seconds` is how long `engine="auto"` waits for an exact answer, and `on` is where long work is done. As a
    context manager it takes back, at the end of the block, what `configure` has set.
    """

    memory_budget: int = 256 * MEBIBYTE
    workers: int = os.cpu_count() or 1
    progress: bool = True
    native: Native = "auto"
    rounding: Rounding = "merged"
    exact_seconds: float = 3.0
    on: Any = HERE
    _before: "Settings | None" = field(default=None, repr=False, compare=False)

    @property
    def limits(self) -> dict[str, Any]:
        """What holds in whatever process the work is done."""
        named = {one.name: getattr(self, one.name) for one in fields(self)}
        return {name: value for name, value in named.items() if name not in ("on", "_before")}

    def __enter__(self) -> "Settings":
        return self

    def __exit__(self, *_: object) -> None:
        global _default
        if self._before is not None:
            with _writing:
                _default = self._before


_default = Settings()
_writing = threading.Lock()
_limits: ContextVar[Mapping[str, Any]] = ContextVar("limits", default=MappingProxyType({}))
"""What `limited` has set for the code at hand, and not for other threads."""


def current() -> Settings:
    """Return the settings in force."""
    limits = _limits.get()
    return replace(_default, **limits) if limits else _default


def configure(
    *,
    memory_budget: int | None = None,
    workers: int | None = None,
    progress: bool | None = None,
    native: Native | None = None,
    rounding: Rounding | None = None,
    exact_seconds: float | None = None,
    on: Any = None,
) -> Settings:
    """Set limits for this process; what is not named stays as it is.

    `memory_budget` is in bytes and bounds intermediate arrays, not the samples you ask to keep.
    `native` says whether programs that cannot be traced are compiled with Numba (extra `native`), where that can be
    done: "auto" does so for runs that would take 20 s or longer, judged by counting the lines that the program runs;
    True always does, False never. Compiled programs get other samples than programs that are called, from the same
    seed.
    `rounding` says what becomes of values that differ only by the rounding of floating-point arithmetic, such as 0.3
    and 0.1 + 0.2: "merged" takes them for one value, as real numbers would; "bits" keeps apart whatever differs in a
    bit, for those who study just that.
    `exact_seconds` is how long an exact answer may take, by an estimate beforehand, for `engine="auto"` to prefer it to
    samples that would be had sooner.
    `on` is where samples are drawn, populations search, and the cells of studies are computed: a client of Dask, the
    address of a Dask scheduler such as "tcp://10.0.0.1:8786", or "local" for this machine. The numbers are the same.

    In a `with` statement this holds until the block ends: `with pv.configure(on=client): ...`.

    >>> import privug as pv
    >>> pv.configure(memory_budget=256 * 2**20).memory_budget
    268435456
    """
    global _default
    given = _checked(
        memory_budget=memory_budget,
        workers=workers,
        progress=progress,
        native=native,
        rounding=rounding,
        exact_seconds=exact_seconds,
        on=on,
    )
    with _writing:
        before, _default = _default, replace(_default, **given)
    # Inside a `with` block of limits the latest word counts, until the block ends.
    limits = {name: value for name, value in _limits.get().items() if name not in given}
    if len(limits) < len(_limits.get()):
        _limits.set(MappingProxyType(limits))
    return replace(current(), _before=before)


@contextmanager
def limited(
    *,
    memory_budget: int | None = None,
    workers: int | None = None,
    progress: bool | None = None,
    native: Native | None = None,
    rounding: Rounding | None = None,
    exact_seconds: float | None = None,
    on: Any = None,
) -> Iterator[Settings]:
    """Set limits inside a `with` block only, and for the thread that runs it: others keep theirs.

    >>> import privug as pv
    >>> with pv.limited(workers=1) as settings:
    ...     print(settings.workers)
    1
    """
    given = _checked(
        memory_budget=memory_budget,
        workers=workers,
        progress=progress,
        native=native,
        rounding=rounding,
        exact_seconds=exact_seconds,
        on=on,
    )
    with holding(_limits, MappingProxyType({**_limits.get(), **given})):
        yield current()


def _checked(**given: Any) -> dict[str, Any]:
    """Return the limits that were named, which must make sense."""
    for name in ("memory_budget", "workers"):
        number = given[name]
        is_whole = isinstance(number, int) and not isinstance(number, bool)
        if number is not None and not (is_whole and 0 < number < 1 << 63):
            raise ArgumentError(f"{name} must be a positive integer below 2**63, not {shown(number)}")
    check_kind("limits", "progress", given["progress"], (bool, type(None)))
    if not is_one_of(given["native"], (None, True, False, "auto")):
        raise ArgumentError(f"native must be 'auto', True or False, not {shown(given['native'])}")
    if not is_one_of(given["rounding"], (None, "merged", "bits")):
        raise ArgumentError(f"rounding must be 'merged' or 'bits', not {shown(given['rounding'])}")
    seconds = given["exact_seconds"]
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if seconds is not None and not (is_number and 0 <= seconds <= LONGEST):
        raise ArgumentError(f"exact_seconds must be a number of seconds from zero to a billion, not {shown(seconds)}")
    on = given["on"]
    is_place = on == HERE or "://" in on if isinstance(on, str) else on is None or hasattr(on, "submit")
    if not is_place or getattr(on, "asynchronous", False):
        raise ArgumentError(
            "on must be a client of dask.distributed (no asynchronous one), the address of a Dask scheduler such as "
            f'"tcp://10.0.0.1:8786", or "local", not {shown(on)}'
        )
    return {name: value for name, value in given.items() if value is not None}
