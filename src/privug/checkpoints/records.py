"""The file of a checkpoint: a line that says what it is, and records that are only ever added, each with its checksum.

A record that was not written to its end, because the process was killed or the disk is full, is the last one: it is
dropped when the file is opened again. Anything else that is not as it was written is refused.
"""

import contextlib
import errno
import hashlib
import importlib
import os
import struct
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from privug.errors import CheckpointError

MAGIC = b"Privug checkpoint 1\n"
_HEAD = struct.Struct("<4s16sQQQ16s")  # sign, key of the tasks, how many, which one, length and checksum of the content
_SIGN, _CHECK = b"\nPV\x01", 8
_in_use: set[tuple[int, int]] = set()
_using = threading.Lock()


class Place(NamedTuple):
    """What a record is about: which tasks, how many these are, and which one of them."""

    key: bytes
    total: int
    number: int


class Records:
    """A file that is open, and locked against other runs."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._in_use = CheckpointError(
            f"checkpoint: {path} is being written by another run; give each run its own file"
        )
        try:
            # A second look at the file would end the lock of the run that has it, once that is closed.
            if path.exists() and _identity(path.stat()) in _in_use:
                raise self._in_use
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o600)
        except (OSError, ValueError) as error:  # no text can hold every path, nor every path a text
            raise CheckpointError(
                f"checkpoint: {path} cannot be written: {getattr(error, 'strerror', None) or error}"
            ) from None
        self._file = open(descriptor, "r+b", buffering=0)  # noqa: SIM115 - closed by close()
        status = os.fstat(descriptor)
        self._identity = _identity(status)
        self.found: dict[Place, tuple[int, int, bytes]] = {}
        self._locked = False
        try:
            self._lock()
            self._end = self._scanned(status.st_size)
        except BaseException:
            self.close()
            raise

    def _lock(self) -> None:
        """Keep other runs out: those of this process by a list, those of others by a lock that forks do not share."""
        descriptor = self._file.fileno()
        with _using:
            if self._identity in _in_use:
                raise self._in_use
            _in_use.add(self._identity)
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
                raise self._in_use from None
            raise CheckpointError(f"checkpoint: {self.path} cannot be locked: {error.strerror}") from None

    def _scanned(self, size: int) -> int:
        """Find the records; return where the last whole one ends."""
        begin = self._read(0, len(MAGIC))
        if begin != MAGIC:
            if MAGIC.startswith(begin):  # nothing, or what a kill has left of the very first bytes
                return 0
            raise CheckpointError(
                f"checkpoint: {self.path} is not a checkpoint of this version of Privug; it was left as it is"
            )
        at, whole = len(MAGIC), _HEAD.size + _CHECK
        while at < size:
            head = self._read(at, whole)
            if len(head) < whole or not any(self._read(at, size - at) if head[:4] == bytes(4) else b"\1"):
                break
            sign, key, total, number, length, digest = _HEAD.unpack(head[:-_CHECK])
            if sign != _SIGN or _digest(head[:-_CHECK], _CHECK) != head[-_CHECK:]:
                raise self.damaged(at)
            if at + whole + length > size:
                break
            self.found[Place(key, total, number)] = at + whole, length, digest
            at += whole + length
        return at

    def damaged(self, at: int, why: str = "") -> CheckpointError:
        """Return the error that says so."""
        reason = f" ({why})" if why else ""
        return CheckpointError(
            f"checkpoint: {self.path} is damaged at byte {at:,}{reason}; remove it, or give another path, to begin anew"
        )

    def content(self, place: Place) -> bytes:
        """Return what was written of a task."""
        at, length, digest = self.found[place]
        content = self._read(at, length)
        if _digest(content, 16) != digest:
            raise self.damaged(at)
        return content

    def _read(self, at: int, length: int) -> bytes:
        self._file.seek(at)
        parts = []
        while length and (part := self._file.read(length)):  # a system may give some of it only
            parts.append(part)
            length -= len(part)
        return b"".join(parts)

    def append(self, records: Sequence[tuple[Place, bytes]]) -> None:
        """Write records; if that fails, or is interrupted, the file ends where it did."""
        content = bytearray() if self._end else bytearray(MAGIC)
        places = {}
        for place, value in records:
            digest = _digest(value, 16)
            head = _HEAD.pack(_SIGN, *place, len(value), digest)
            content += head + _digest(head, _CHECK)
            places[place] = self._end + len(content), len(value), digest
            content += value
        try:
            self._file.truncate(self._end)  # what was not written to its end
            self._file.seek(self._end)
            view = memoryview(content)
            while view:
                view = view[self._file.write(view) :]
        except OSError:
            with contextlib.suppress(OSError):
                self._file.truncate(self._end)
            raise
        self.found |= places
        self._end += len(content)

    def close(self) -> None:
        """Close the file, which lets other runs have it."""
        if self._locked:
            with contextlib.suppress(OSError):  # the disk may be full, or know of no such thing
                os.fsync(self._file.fileno())
        self._file.close()
        if self._locked:
            self._locked = False
            _in_use.discard(self._identity)


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _digest(content: bytes, size: int) -> bytes:
    return hashlib.blake2b(content, digest_size=size).digest()
