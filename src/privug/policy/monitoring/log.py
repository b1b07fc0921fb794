"""The log of a monitor: JSON, one entry a line, each with the hash of the one before it.

An entry is on the disk before its answer is handed out. So every answer that anyone saw is in the log, whenever the
process is killed; a last line that was cut off belongs to an answer that nobody saw, and is dropped. The chain of
hashes shows any later change of an entry; that entries are missing at the end shows only to who kept the `head`.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from privug.arguments import shown
from privug.checkpoints.append_only import AppendOnlyFile, read_whole
from privug.errors import ArgumentError
from privug.model.table import Row

VERSION = 1
Entry = dict[str, Any]


class LogError(ArgumentError):
    """A log is another monitor's, is damaged, or is written by another process.

    >>> import privug as pv
    >>> issubclass(pv.policy.LogError, pv.ArgumentError)
    True
    """


class Log:
    """A log that is open for entries, and locked against other processes."""

    def __init__(self, path: str | Path, header: Entry, *, reopen: bool = False) -> None:
        self.path = Path(path)
        if self.path.exists() and not reopen and self.path.stat().st_size:
            raise LogError(f"the log {self.path} exists already: continue it with pv.policy.Monitor.load(...)")
        busy = "is in use by another monitor, which must be closed first"
        file = AppendOnlyFile(self.path, lambda said: LogError(f"the log {path} {said}"), busy)
        self._file: AppendOnlyFile | None = file
        try:
            self.entries = read(self.path)
            file.end = sum(len(_line(entry)) for entry in self.entries)  # without a line that was cut off
            if not self.entries:
                self.append({"kind": "monitor", "version": VERSION, **header})
        except BaseException:
            self.close()
            raise

    @property
    def head(self) -> str:
        """The hash of the last entry."""
        return str(self.entries[-1]["hash"]) if self.entries else ""

    def append(self, entry: Entry) -> None:
        """Write an entry; when this returns it is on the disk."""
        if self._file is None:
            raise LogError(f"the log {self.path} is closed")
        chained = chained_to(self.head, {"number": len(self.entries), **entry})
        self._file.append(_line(chained), durable=True)
        self.entries.append(chained)

    def close(self) -> None:
        """Close the file, which lets other processes write to it."""
        if self._file is not None:
            self._file.close()
            self._file = None


def read(path: str | Path) -> list[Entry]:
    """Return the entries of a log, without a last line that was cut off; refuse one that was changed."""
    try:
        raw = read_whole(Path(path))
    except OSError as error:
        raise LogError(f"the log {path} cannot be read: {error.strerror}") from None
    *lines, _ = raw.split(b"\n")
    entries: list[Entry] = []
    head = ""
    for number, line in enumerate(lines):
        try:
            entry = json.loads(line)
            rest = {name: value for name, value in entry.items() if name not in ("previous", "hash")}
            fits = chained_to(head, rest) == entry and entry["number"] == number and _line(entry) == line + b"\n"
        except (ValueError, AttributeError, KeyError, TypeError):
            fits = False
        if not fits:
            raise LogError(f"the log {path} was changed: line {number + 1} does not fit to those before it")
        head = entry["hash"]
        entries.append(entry)
    if entries and (entries[0].get("kind") != "monitor" or entries[0].get("version") != VERSION):
        raise LogError(f"{path} is not the log of a monitor of this version")
    return entries


def chained_to(head: str, entry: Mapping[str, Any]) -> Entry:
    """Return an entry with the hash of the one before it, and its own."""
    chained = {**entry, "previous": head}
    return {**chained, "hash": hashlib.sha256(_line(chained)).hexdigest()}


def _line(entry: Mapping[str, Any]) -> bytes:
    return json.dumps(entry, sort_keys=True, allow_nan=False).encode() + b"\n"


def encoded(value: Any) -> Any:
    """Return an answer as JSON has it, so that `decoded` gives it back: kinds that JSON lacks are named."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if np.isfinite(value) else {"float": repr(value)}
        case list():
            return [encoded(part) for part in value]
        case Row():
            return {"row": [[name, encoded(part)] for name, part in value._asdict().items()]}
        case tuple() if not hasattr(value, "_fields"):
            return {"tuple": [encoded(part) for part in value]}
        case dict():
            return {"dict": [[encoded(key), encoded(part)] for key, part in value.items()]}
        case frozenset():
            return {"set": [encoded(part) for part in sorted(value, key=repr)]}
        case np.ndarray():
            return {"array": encoded(value.tolist())}
    raise ArgumentError(
        f"an answer of type {type(value).__name__} cannot be logged ({shown(value)}): let the query return numbers, "
        "texts, lists, tuples or dicts of them"
    )


def decoded(value: Any) -> Any:
    """Return an answer from what `encoded` made of it."""
    if isinstance(value, list):
        return [decoded(part) for part in value]
    if not isinstance(value, dict):
        return value
    ((kind, held),) = value.items()
    match kind:
        case "float":
            return float(held)
        case "row":
            return Row(**{name: decoded(part) for name, part in held})
        case "tuple":
            return tuple(decoded(part) for part in held)
        case "dict":
            return {decoded(key): decoded(part) for key, part in held}
        case "set":
            return frozenset(decoded(part) for part in held)
        case _:
            return np.array(decoded(held))
