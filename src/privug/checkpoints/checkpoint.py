"""A checkpoint: the results of a run's tasks in a file of checksummed records, bound to one question.

A record that was not written to its end, because the process was killed or the disk is full, is the last one: it is
dropped when the file is opened again. Anything else that is not as it was written is refused.
"""

import hashlib
import json
import os
import platform
import struct
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import privug
from privug import interruption, settings
from privug.arguments import check_kind
from privug.checkpoints.append_only import AppendOnlyFile
from privug.checkpoints.encoding import Damaged, NotStorable, Vocabulary, vocabulary_for
from privug.checkpoints.fingerprints import fingerprint
from privug.errors import CheckpointError, CheckpointWarning
from privug.inference.question import Question
from privug.observation.observations import Observation
from privug.runtime import tasks as journal

MAGIC = b"Privug checkpoint 1\n"
_HEAD = struct.Struct("<4s16sQQQ16s")  # sign, key of the tasks, how many, which one, length and checksum of the content
_SIGN, _CHECK = b"\nPV\x01", 8


class RecordKey(NamedTuple):
    """What a record is about: which tasks, how many these are, and which one of them."""

    key: bytes
    total: int
    number: int


class RecordFile:
    """The records of a file, which is locked against other runs."""

    def __init__(self, path: Path) -> None:
        self.path = path
        busy = "is being written by another run; give each run its own file"
        self._file = AppendOnlyFile(path, lambda said: CheckpointError(f"checkpoint: {path} {said}"), busy)
        self.found: dict[RecordKey, tuple[int, int, bytes]] = {}
        try:
            self._file.end = self._scanned(self._file.end)
        except BaseException:
            self.close()
            raise

    def _scanned(self, size: int) -> int:
        """Find the records; return where the last whole one ends."""
        begin = self._file.read(0, len(MAGIC))
        if begin != MAGIC:
            if MAGIC.startswith(begin):  # nothing, or what a kill has left of the very first bytes
                return 0
            raise CheckpointError(
                f"checkpoint: {self.path} is not a checkpoint of this version of Privug; it was left as it is"
            )
        at, whole = len(MAGIC), _HEAD.size + _CHECK
        while at < size:
            head = self._file.read(at, whole)
            if len(head) < whole or not any(self._file.read(at, size - at) if head[:4] == bytes(4) else b"\1"):
                break
            sign, key, total, number, length, digest = _HEAD.unpack(head[:-_CHECK])
            if sign != _SIGN or _digest(head[:-_CHECK], _CHECK) != head[-_CHECK:]:
                raise self.damaged(at)
            if at + whole + length > size:
                break
            self.found[RecordKey(key, total, number)] = at + whole, length, digest
            at += whole + length
        return at

    def damaged(self, at: int, why: str = "") -> CheckpointError:
        """Return the error that says so."""
        reason = f" ({why})" if why else ""
        return CheckpointError(
            f"checkpoint: {self.path} is damaged at byte {at:,}{reason}; remove it, or give another path, to begin anew"
        )

    def content(self, place: RecordKey) -> bytes:
        """Return what was written of a task."""
        at, length, digest = self.found[place]
        content = self._file.read(at, length)
        if _digest(content, 16) != digest:
            raise self.damaged(at)
        return content

    def append(self, records: Sequence[tuple[RecordKey, bytes]]) -> None:
        """Write records; if that fails, or is interrupted, the file ends where it did."""
        content = bytearray() if self._file.end else bytearray(MAGIC)
        places = {}
        for place, value in records:
            digest = _digest(value, 16)
            head = _HEAD.pack(_SIGN, *place, len(value), digest)
            content += head + _digest(head, _CHECK)
            places[place] = self._file.end + len(content), len(value), digest
            content += value
        self._file.append(content)
        self.found |= places

    def close(self) -> None:
        """Close the file, which lets other runs have it."""
        self._file.close()


def _digest(content: bytes, size: int) -> bytes:
    return hashlib.blake2b(content, digest_size=size).digest()


SECONDS_BETWEEN = 1.0  # writes
MOST_UNWRITTEN = 1 << 24  # bytes
_QUESTION = RecordKey(bytes(16), 0, 0)

Task = TypeVar("Task")
Result = TypeVar("Result")
Parts = Mapping[str, Any]


class Checkpoint:
    """A file of results and the question that they belong to: its parts by name, and what can be told of each."""

    def __init__(self, path: Any, parts: Parts, vocabulary: Vocabulary) -> None:
        check_kind("checkpoint", "checkpoint", path, (str, os.PathLike))
        self.path = Path(path)
        if not self.path.absolute().parent.is_dir():
            raise CheckpointError(f"checkpoint: there is no folder {str(self.path.absolute().parent)!r} to write it to")
        if self.path.is_dir():
            raise CheckpointError(f"checkpoint: {str(self.path)!r} is a folder; give the path of a file")
        self._parts = {name: _told(part) for name, part in {**parts, **_surroundings()}.items()}
        self._vocabulary = vocabulary
        self.remarks: dict[str, None] = {}

    @contextmanager
    def section(self, *names: Any) -> Iterator[None]:
        """Keep the results of what is run in the `with` block, which these names tell from the rest of the run."""
        told = fingerprint(names)
        records = RecordFile(self.path)
        section = _RunSection(records, self._vocabulary, told, self._remark)
        try:
            self._check_question(records)
            with journal.keeping(section):
                yield
        finally:
            try:
                section.write()
            finally:
                records.close()

    def _remark(self, remark: str, *, loud: bool) -> None:
        if remark not in self.remarks and loud:
            warnings.warn(remark, CheckpointWarning, stacklevel=2)
        self.remarks[remark] = None

    def _check_question(self, records: RecordFile) -> None:
        if _QUESTION not in records.found:
            if records.found:
                raise records.damaged(0, "it does not say to which question it belongs")
            try:
                records.append([(_QUESTION, json.dumps(self._parts).encode())])
            except OSError as error:
                raise CheckpointError(f"checkpoint: {self.path} cannot be written: {error.strerror}") from None
            return
        try:
            known = json.loads(records.content(_QUESTION))
            differences = [_difference(name, known, self._parts) for name in dict.fromkeys([*known, *self._parts])]
        except (ValueError, TypeError):
            raise records.damaged(0, "the question in it cannot be read") from None
        told = [difference for difference in differences if difference]
        if told:
            raise CheckpointError(
                f"checkpoint: {self.path} belongs to another question: {'; '.join(told)}; give another path, or "
                "remove the file to begin anew"
            )


def section_of(checkpoint: Checkpoint | None, *names: Any) -> AbstractContextManager[None]:
    """Return the section of a checkpoint of that name; nothing is kept without one."""
    return nullcontext() if checkpoint is None else checkpoint.section(*names)


class _RunSection:
    """The journal of one part of a run."""

    def __init__(self, records: RecordFile, vocabulary: Vocabulary, name: str, remark: Callable[..., None]) -> None:
        self._records, self._vocabulary, self._name, self._remark = records, vocabulary, name, remark
        self._times: Counter[str] = Counter()
        self._unwritten: list[tuple[RecordKey, bytes]] = []
        self._size = 0
        self._latest = time.monotonic()
        self._ended = False

    def results(
        self, name: str, tasks: Sequence[Task], compute: Callable[[Sequence[Task]], Iterator[Result]]
    ) -> Iterator[Result]:
        """Yield the results of all tasks in order: those that are kept, and the others as they are computed."""
        told = f"{self._name} {name} {self._times[name]}"
        self._times[name] += 1
        key = hashlib.blake2b(told.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        places = [RecordKey(key, len(tasks), number) for number in range(len(tasks))]
        missing = [task for task, place in zip(tasks, places, strict=True) if place not in self._records.found]
        computed = compute(missing) if missing else iter(())
        for place in places:
            if place in self._records.found:
                yield self._kept(place)
            else:
                result = next(computed)
                self._add(place, result)
                yield result

    def _kept(self, place: RecordKey) -> Any:
        content = self._records.content(place)
        try:
            return self._vocabulary.decoded(content)
        except Damaged as error:
            raise self._records.damaged(self._records.found[place][0], str(error)) from None

    def _add(self, place: RecordKey, result: Any) -> None:
        if self._ended:
            return
        try:
            content = self._vocabulary.encoded(result)
        except NotStorable as error:
            self._remark(f"the checkpoint leaves out {error}: what holds them is computed again", loud=False)
            return
        self._unwritten.append((place, content))
        self._size += len(content)
        if self._size > MOST_UNWRITTEN or time.monotonic() > self._latest + SECONDS_BETWEEN:
            self.write()

    def write(self) -> None:
        """Write what was not written so far."""
        if self._unwritten:
            interruption.undisturbed(self._write)

    def _write(self) -> None:
        try:
            self._records.append(self._unwritten)
        except OSError as error:
            self._ended = True
            self._remark(
                f"the checkpoint {self._records.path} could not be written any more ({error.strerror}): the run goes "
                "on without it, and what it holds is good",
                loud=True,
            )
        self._unwritten, self._size = [], 0
        self._latest = time.monotonic()


def _surroundings() -> dict[str, Any]:
    """Return what results depend on besides the question."""
    limits = settings.current()
    versions: dict[str, str | None] = {
        "Python": platform.python_version(),
        "Privug": privug.__version__,
    }
    for library in ("numpy", "scipy", "numba"):
        try:
            versions[library] = metadata.version(library)
        except metadata.PackageNotFoundError:
            versions[library] = None
    return {
        "native": limits.native,
        "rounding": limits.rounding,
        "exact_seconds": limits.exact_seconds,
        **{f"the version of {name}": version for name, version in versions.items()},
        "the kind of processor": platform.machine(),
    }


def _told(part: Any) -> Any:
    """Return a part of a question as JSON has it: single values as they are, others by their fingerprint."""
    is_plain = part is None or isinstance(part, bool | int | float | str)
    return part if is_plain else [fingerprint(part)]


def _difference(name: str, known: Parts, wanted: Parts) -> str:
    """Return how a part differs, if it does."""
    if name not in known or name not in wanted:
        return f"{name} is only {'here' if name in wanted else 'in the file'}"
    before, here = known[name], wanted[name]
    if before == here and type(before) is type(here):
        return ""
    if isinstance(before, list) or isinstance(here, list):
        return f"{name} differs"
    return f"{name} is {before!r} in the file and {here!r} here"


def parts_of(question: Question, observation: Observation | None) -> dict[str, Any]:
    """Return what makes a question, by the names that users know."""
    return {
        "the program": (question.program,),
        **{f"the prior of {name!r}": (prior,) for name, prior in question.prior.items()},
        "what ties the inputs together": (dict(question.prior),),
        "the secret": (question.secret,),
        "assume": question.facts,
        "on_error": "exclude" if question.exclude_errors else "raise",
        "the observation": (observation,),
    }


def checkpoint_of(
    path: Any, question: Question, observation: Observation | None, options: Mapping[str, Any]
) -> Checkpoint:
    """Return the checkpoint of one attack."""
    parts = {**parts_of(question, observation), **options}
    known = vocabulary_for(question.program, question.secret, question.facts, dict(question.prior), observation)
    return Checkpoint(path, parts, known)
