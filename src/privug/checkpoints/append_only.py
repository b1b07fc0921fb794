"""A file that one writer at a time appends to, record by record: what is not written to its end is cut off again."""

import contextlib
import errno
import importlib
import os
import threading
from collections.abc import Callable
from io import FileIO
from pathlib import Path

_in_use: dict[tuple[int, int], "AppendOnlyFile"] = {}
_using = threading.Lock()


class AppendOnlyFile:
    """A file that is open for one writer, and locked against others of this process and of other processes.

    Args:
        path: The file, which is created if there is none.
        refused: Makes the error to raise, from a message about the file such as "cannot be written: ...".
        busy: The message for a file that another writer has.
    """

    def __init__(self, path: Path, refused: Callable[[str], Exception], busy: str) -> None:
        self.path = path
        self._refused, self._busy = refused, busy
        try:
            # A second look at the file would end the lock of the writer that has it, once that is closed.
            if path.exists() and _identity(path.stat()) in _in_use:
                raise refused(busy)
            is_new = not path.exists()
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o600)
        except (OSError, ValueError) as error:  # no text can hold every path, nor every path a text
            raise refused(f"cannot be written: {getattr(error, 'strerror', None) or error}") from None
        self._file = open(descriptor, "r+b", buffering=0)  # noqa: SIM115 - closed by close()
        status = os.fstat(descriptor)
        self.end = status.st_size
        """Where the last whole record ends."""
        self._identity, self._locked = _identity(status), False
        try:
            self._lock()
            if is_new:
                _keep_name(path)
        except BaseException:
            self.close()
            raise

    def _lock(self) -> None:
        """Keep other writers out: of this process by a list, of others by a lock that forks do not share."""
        descriptor = self._file.fileno()
        with _using:
            if self._identity in _in_use:
                raise self._refused(self._busy)
            _in_use[self._identity] = self
            self._locked = True
        try:
            if os.name == "nt":
                seam = importlib.import_module("msvcrt")
                seam.locking(descriptor, seam.LK_NBLCK, 1)
            else:
                seam = importlib.import_module("fcntl")
                seam.lockf(descriptor, seam.LOCK_EX | seam.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EAGAIN, errno.EDEADLK):
                raise self._refused(self._busy) from None
            raise self._refused(f"cannot be locked: {error.strerror}") from None

    def read(self, at: int, length: int) -> bytes:
        """Return a part of the file; less if it ends before."""
        parts = []
        while length and (part := _read_at(self._file, at, length)):  # a system may give some of it only
            parts.append(part)
            at, length = at + len(part), length - len(part)
        return b"".join(parts)

    def append(self, content: bytes | bytearray, *, durable: bool = False) -> None:
        """Write a record after the last whole one; if that fails, or is interrupted, the file ends where it did.

        With `durable` it is on the disk when this returns.
        """
        try:
            self._file.truncate(self.end)  # what was not written to its end
            self._file.seek(self.end)
            view = memoryview(content)
            while view:
                view = view[self._file.write(view) :]
            if durable:
                os.fsync(self._file.fileno())
        except OSError:
            with contextlib.suppress(OSError):
                self._file.truncate(self.end)
            raise
        self.end += len(content)

    def close(self) -> None:
        """Close the file, so that another writer can have it."""
        if self._locked:
            with contextlib.suppress(OSError):  # the disk may be full, or know of no such thing
                os.fsync(self._file.fileno())
        self._file.close()
        if self._locked:
            self._locked = False
            _in_use.pop(self._identity, None)


def read_whole(path: Path) -> bytes:
    """Return what is in a file, through the writer of this process if it has one: closing it twice would unlock it."""
    status = path.stat()
    writer = _in_use.get(_identity(status))
    return path.read_bytes() if writer is None else writer.read(0, status.st_size)


def _read_at(file: FileIO, at: int, length: int) -> bytes:
    if hasattr(os, "pread"):  # which leaves the position alone that forks share
        return os.pread(file.fileno(), length, at)
    file.seek(at)
    return file.read(length)


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _keep_name(path: Path) -> None:
    """Have the name of a new file written to the disk, where folders can be."""
    if os.name != "nt":
        with contextlib.suppress(OSError):
            folder = os.open(path.resolve().parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
