"""The external tier: a program in any language, as a process that reads and writes lines of JSON."""

import json
import os
import select
import shlex
import subprocess
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from enum import Enum
from typing import Any

import numpy as np

from privug import interruption
from privug.arguments import check_kind
from privug.errors import ArgumentError, ProgramError
from privug.model.critical import critical_section
from privug.model.operations import SampleFailure
from privug.model.table import Row

READ_BYTES = 1 << 16


class External:
    """A program in any language.

    The command is started once and kept. For each sample it reads one line from standard input, a
    JSON object of the program's inputs by name (rows are objects, tables and arrays are lists), and writes
    one line to standard output: its output as JSON, or {"error": "what went wrong"}. It must flush after
    each line and end when its input ends. Each worker process keeps a process of its own.

    >>> import sys
    >>> doubler = "import sys, json\\nfor l in sys.stdin: print(2 * json.loads(l)['x'], flush=True)"
    >>> External([sys.executable, "-c", doubler])(x=21)
    42
    """

    def __init__(self, command: str | Sequence[str], *, timeout: float = 30.0) -> None:
        check_kind("External", "command", command, (str, Sequence[str]))
        check_kind("External", "timeout", timeout, (float,))
        words = shlex.split(command) if isinstance(command, str) else list(command)
        if not words or not all(isinstance(word, str) for word in words):
            raise ArgumentError(f"External: command must be a list of words such as ['java', 'Mean'], not {command!r}")
        if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not timeout > 0:
            raise ArgumentError(f"External: timeout must be a positive number of seconds, not {timeout!r}")
        self.command = words
        self.timeout = float(timeout)
        self.__name__ = os.path.basename(words[0])
        self._processes: dict[int, _Process] = {}
        weakref.finalize(self, _stop_own, self._processes)

    def __call__(self, **inputs: Any) -> Any:
        try:
            return self.call_many([inputs])[0]
        except SampleFailure as failure:
            raise failure.cause from None

    def call_many(self, calls: Sequence[Mapping[str, Any]]) -> list[Any]:
        """Answer many calls: all lines are sent at once, so that the process never waits for us.

        Threads share the process, and each has to wait until the answers of another one were read.
        """
        with critical_section():
            try:
                return self._call_many(calls)
            except BaseException:
                self.close()  # answers that nobody has read would be taken for those to the next calls
                raise

    def _call_many(self, calls: Sequence[Mapping[str, Any]]) -> list[Any]:
        lines = [json.dumps(_with_rows_as_objects(inputs), default=_as_json, allow_nan=False) for inputs in calls]
        outputs: list[Any] = []
        deaths = 0
        while len(outputs) < len(lines):
            before = len(outputs)
            try:
                for answer in self._process().ask(lines[before:], self.timeout):
                    outputs.append(self._checked(answer, len(outputs)))
            except _Died as death:
                self._processes.pop(os.getpid()).stop()
                deaths = deaths + 1 if len(outputs) == before else 1
                if deaths > 1:  # twice on the same line: it is the input, not bad luck
                    raise SampleFailure(len(outputs), ProgramError(f"{self.__name__} {death}")) from None
        return outputs

    def _process(self) -> "_Process":
        """Return this worker's process: a forked worker must not share its parent's."""
        owner = os.getpid()
        if owner not in self._processes:
            self._processes[owner] = _Process(self.command)
        return self._processes[owner]

    def _checked(self, line: bytes, position: int) -> Any:
        try:
            answer = json.loads(line)
        except ValueError:
            shown = line[:200].decode(errors="replace")
            cause = ProgramError(f"{self.__name__} answered {shown!r}, which is not JSON")
            raise SampleFailure(position, cause) from None
        if isinstance(answer, dict) and answer.keys() == {"error"}:
            raise SampleFailure(position, ProgramError(f"{self.__name__}: {answer['error']}"))
        return answer

    def close(self) -> None:
        """End the process that this program has started from here; it is started again when needed."""
        _stop_own(self._processes)

    def __repr__(self) -> str:
        return f"External({self.command!r})"


def _stop_own(processes: "dict[int, _Process]") -> None:
    """End the process of this worker; those of a parent are the parent's business."""
    process = processes.pop(os.getpid(), None)
    if process is not None:
        process.stop()


class _Died(Exception):
    """The process ended, or did not answer in time."""


class _Process:
    """One running command and what it has written so far."""

    def __init__(self, command: Sequence[str]) -> None:
        try:
            self._popen = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
            )
        except OSError as error:
            raise ProgramError(f"External: {command[0]!r} cannot be started: {error.strerror}") from None
        self._unread = b""

    def ask(self, lines: Sequence[str], timeout: float) -> Any:
        """Yield the answer to each line."""
        assert self._popen.stdin is not None
        text = "".join(line + "\n" for line in lines).encode()
        writer = threading.Thread(target=self._write, args=(text,), daemon=True)
        writer.start()
        for _ in lines:
            yield self._read_line(timeout)
        writer.join()

    def _write(self, text: bytes) -> None:
        assert self._popen.stdin is not None
        view = memoryview(text)
        try:
            while view:
                view = view[self._popen.stdin.write(view) :]
        except (BrokenPipeError, ValueError):
            return  # the reader notices that the process has ended

    def _read_line(self, timeout: float) -> bytes:
        assert self._popen.stdout is not None
        deadline = time.monotonic() + timeout
        while b"\n" not in self._unread:
            interruption.check()
            left, allowed = deadline - time.monotonic(), interruption.seconds_left()
            if left <= 0:
                raise _Died(f"did not answer within {timeout:g} s")
            if not select.select([self._popen.stdout], [], [], left if allowed is None else min(left, allowed))[0]:
                continue
            more = os.read(self._popen.stdout.fileno(), READ_BYTES)
            if not more:
                raise _Died(f"ended{self._last_words()}")
            self._unread += more
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def _last_words(self) -> str:
        assert self._popen.stderr is not None
        code = self._popen.wait()
        said = self._popen.stderr.read(2000).decode(errors="replace").strip().splitlines()
        return f" with exit code {code}" + (f": {said[-1]}" if said else "")

    def stop(self) -> None:
        with ExitStack() as closing:  # all pipes, even if the time of a run is up in the midst of it
            for pipe in (self._popen.stdin, self._popen.stdout, self._popen.stderr):
                if pipe is not None:
                    closing.callback(pipe.close)
            self._popen.kill()
            self._popen.wait()


def _as_json(value: Any) -> Any:
    """Turn what JSON does not know into what it does."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, set | frozenset):
        return sorted(value)
    raise ProgramError(f"External: {value!r} cannot be written as JSON")


def _with_rows_as_objects(value: Any) -> Any:
    """Return inputs with rows as dictionaries, which JSON would otherwise write as lists."""
    if isinstance(value, Row):
        return {name: _with_rows_as_objects(cell) for name, cell in value._asdict().items()}
    if isinstance(value, dict):
        return {key: _with_rows_as_objects(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_with_rows_as_objects(inner) for inner in value]
    return value
