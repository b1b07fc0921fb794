# mypy: allow-untyped-calls, allow-subclassing-any
"""Compiled programs on disk, one file each, named by fingerprint: the next process need not compile them again.

The folder is $PRIVUG_CACHE_DIR, else the user's cache directory. Files appear whole or not at all, so any number of
processes may read and write. What cannot be read or written is as if it were not there, and so is what somebody else
may have written: code is loaded only from files and a folder that belong to this user and that others cannot change.
"""

import contextlib
import os
import pickle
import stat
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

MOST_FILES = 256  # of some 50 kB each; the least recently used ones go
SUFFIX = ".kernel"


@dataclass(frozen=True)
class Stored:
    """A compiled program as it is kept: what Numba needs to bring the code back, and how to call it."""

    source: str
    results: tuple[str, ...]
    is_tuple: bool
    is_recursive: bool
    codes: dict[str, int]
    code: Any


def folder() -> Path | None:
    """Return where compiled programs are kept; an empty PRIVUG_CACHE_DIR keeps none."""
    own = os.environ.get("PRIVUG_CACHE_DIR")
    if own is not None:
        return Path(own) / "native" if own else None
    try:
        home = Path.home()
    except RuntimeError:
        return None
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = home / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
    return base / "privug" / "native"


def load(digest: str) -> Stored | None:
    """Return the compiled program of that fingerprint, if there is one."""
    where = folder()
    if where is None:
        return None
    path = where / f"{digest}{SUFFIX}"
    try:
        if not _is_ours(os.stat(where)):
            return None
        with open(path, "rb") as file:
            if not _is_ours(os.fstat(file.fileno())):
                return None
            stored = pickle.loads(file.read())
        os.utime(path)
    except Exception:  # a broken file may raise anything
        return None
    return stored if isinstance(stored, Stored) else None


def _is_ours(status: os.stat_result) -> bool:
    """Say whether a file or a folder belongs to this user and cannot be changed by others, where there are users."""
    if not hasattr(os, "geteuid"):
        return True
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def save(digest: str, stored: Stored) -> None:
    """Keep a compiled program, if that can be done."""
    where = folder()
    if where is None:
        return
    with contextlib.suppress(Exception):
        content = dumps(stored)
        where.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=where, prefix=".new-")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
            os.replace(name, where / f"{digest}{SUFFIX}")
        except BaseException:
            os.unlink(name)
            raise
        _forget_oldest(where)


def _forget_oldest(where: Path) -> None:
    files = sorted(where.iterdir(), key=lambda path: path.stat().st_mtime)
    for path in files[:-MOST_FILES]:
        path.unlink(missing_ok=True)


class KernelCache(NullCache):
    """What a kernel asks for compiled code before it is compiled, and hands the code to afterwards."""

    def __init__(self, code: Any = None) -> None:
        self.code = code

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        if self.code is None:
            return None
        target_context.refresh()
        return CompileResult._rebuild(target_context, *self.code)

    def save_overload(self, signature: Any, result: Any) -> None:
        if not result.lifted and not result.library.has_dynamic_globals:
            self.code = result._reduce()
