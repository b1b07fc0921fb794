"""A checkpoint: the results of the tasks of a run in a file, bound to one question."""

import hashlib
import json
import os
import platform
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

import privug
from privug import interruption, settings
from privug.arguments import check_kind
from privug.checkpoints.encoding import Damaged, NotStorable, Vocabulary
from privug.checkpoints.fingerprints import fingerprint
from privug.checkpoints.records import Place, Records
from privug.errors import CheckpointError, CheckpointWarning
from privug.model import journal

SECONDS_BETWEEN = 1.0  # writes
MOST_UNWRITTEN = 1 << 24  # bytes
_QUESTION = Place(bytes(16), 0, 0)

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
        records = Records(self.path)
        section = _Section(records, self._vocabulary, told, self._remark)
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

    def _check_question(self, records: Records) -> None:
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


class _Section:
    """The journal of one part of a run."""

    def __init__(self, records: Records, vocabulary: Vocabulary, name: str, remark: Callable[..., None]) -> None:
        self._records, self._vocabulary, self._name, self._remark = records, vocabulary, name, remark
        self._times: Counter[str] = Counter()
        self._unwritten: list[tuple[Place, bytes]] = []
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
        places = [Place(key, len(tasks), number) for number in range(len(tasks))]
        missing = [task for task, place in zip(tasks, places, strict=True) if place not in self._records.found]
        computed = compute(missing) if missing else iter(())
        for place in places:
            if place in self._records.found:
                yield self._kept(place)
            else:
                result = next(computed)
                self._add(place, result)
                yield result

    def _kept(self, place: Place) -> Any:
        content = self._records.content(place)
        try:
            return self._vocabulary.decoded(content)
        except Damaged as error:
            raise self._records.damaged(self._records.found[place][0], str(error)) from None

    def _add(self, place: Place, result: Any) -> None:
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
    """Say how a part differs, if it does."""
    if name not in known or name not in wanted:
        return f"{name} is only {'here' if name in wanted else 'in the file'}"
    before, here = known[name], wanted[name]
    if before == here and type(before) is type(here):
        return ""
    if isinstance(before, list) or isinstance(here, list):
        return f"{name} differs"
    return f"{name} is {before!r} in the file and {here!r} here"
