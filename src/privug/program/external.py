"""The external tier: a program in any language, as a process that reads and writes lines of JSON."""

import json
import math
import os
import select
import shlex
import subprocess
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from enum import Enum
from functools import partial
from typing import Any

import numpy as np

from privug import interruption
from privug.arguments import check_kind, naming, represented, shown
from privug.errors import ArgumentError, ProgramError
from privug.model.operations import SampleFailure
from privug.model.table import Row
from privug.runtime.critical import critical_section
from privug.runtime.processes import patience, tell_of

FIRST, PATIENCE = 3, 0.05  # times, and seconds: a program that writes two lines for one does so from the start
READ_BYTES = 1 << 16
WRITER_SECONDS = 5.0  # in which a thread notices that nobody reads
LONGEST_LINE = 1 << 26
LAST_WORDS = 2000  # bytes of standard error that are kept, for the message if the program ends
LONGEST_SHOWN = 200


class Unanswered(ProgramError):
    """A command gave no answer in time: to ask it again would take as long."""


class External:
    """A program in any language, as a command that reads lines of JSON and writes lines of JSON.

    The command is started once, without a shell, and kept; each worker process keeps one of its own. For each sample it
    gets one line on standard input: a JSON object of the program's inputs by name, in UTF-8. Rows are objects, tables
    and arrays are lists. It must answer each line with exactly one line on standard output: its output as JSON (a
    number, a string, a list, an object), or `{"error": "what went wrong"}`, which fails that sample only
    (`on_error="exclude"` leaves it out). Then it waits for the next line, and ends when its input ends.

    **Flush after each line.** Most languages hold output back if it goes to a pipe; then no answer arrives, and after
    `timeout` seconds without one it is an error. Nothing else may be written to standard output: no greeting, no
    progress. Standard error is free for that; its last line is shown if the program ends with an error. A program that
    ends after an answer is started again, which is slow; one that ends twice on the same line is an error.

    Outputs must be a function of the inputs, or random by the program's own generator; the names in the prior are those
    of the inputs. The program is a black box: it is sampled, never traced.

    Python::

        import json, sys
        for line in sys.stdin:
            ages = json.loads(line)["ages"]
            print(json.dumps(sum(ages) / len(ages)), flush=True)

    R (`["Rscript", "mean.R"]`)::

        library(jsonlite)
        lines <- file("stdin", "r")
        while (length(line <- readLines(lines, n = 1)) > 0) {
          ages <- fromJSON(line)$ages
          cat(toJSON(mean(ages), auto_unbox = TRUE, digits = NA), "\\n", sep = "")
          flush(stdout())
        }

    Java (`["java", "Mean.java"]`, here without a library for JSON, for one list of numbers)::

        import java.util.Scanner;
        import java.util.stream.Stream;
        public class Mean {
            public static void main(String[] arguments) {
                Scanner lines = new Scanner(System.in, "UTF-8");
                while (lines.hasNextLine()) {
                    String line = lines.nextLine();
                    String list = line.substring(line.indexOf('[') + 1, line.indexOf(']'));
                    double[] ages = Stream.of(list.split(",")).mapToDouble(Double::parseDouble).toArray();
                    System.out.println(java.util.Arrays.stream(ages).average().orElse(0));
                    System.out.flush();
                }
            }
        }

    JavaScript (`["node", "mean.js"]`), whose `console.log` flushes by itself::

        const lines = require("readline").createInterface({ input: process.stdin });
        lines.on("line", (line) => {
          const { ages } = JSON.parse(line);
          console.log(JSON.stringify(ages.reduce((a, b) => a + b, 0) / ages.length));
        });

    >>> import sys
    >>> doubler = "import sys, json\\nfor l in sys.stdin: print(2 * json.loads(l)['x'], flush=True)"
    >>> External([sys.executable, "-c", doubler])(x=21)
    42
    """

    def __init__(self, command: str | Sequence[str], *, timeout: float = 30.0) -> None:
        check_kind("External", "command", command, (str, Sequence[str]))
        check_kind("External", "timeout", timeout, (float,))
        with naming(f"External: reading the words of {shown(command)}"):
            words = shlex.split(command) if isinstance(command, str) else list(command)
        if not words or not all(isinstance(word, str) for word in words):
            raise ArgumentError(
                f"External: command must be a list of words such as ['java', 'Mean'], not {shown(command)}"
            )
        if not 0 < timeout <= threading.TIMEOUT_MAX:
            raise ArgumentError(f"External: timeout must be a positive number of seconds, not {shown(timeout)}")
        self.command = words
        self.timeout = float(timeout)
        self.__name__ = os.path.basename(words[0])
        self._processes: dict[int, _Process] = {}
        weakref.finalize(self, _stop_own, self._processes)

    def __reduce__(self) -> tuple[Any, ...]:  # each process starts the command for itself
        return partial(External, timeout=self.timeout), (self.command,)

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
        lines = [_as_line(inputs, position) for position, inputs in enumerate(calls)]
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
                if deaths > 1 or death.final:  # twice on the same line: it is the input, not bad luck
                    raise SampleFailure(len(outputs), death.kind(f"{self.__name__} {death}")) from None
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
        except (ValueError, RecursionError) as error:
            said = line[:200].decode(errors="replace")
            fault = "UTF-8" if isinstance(error, UnicodeDecodeError) else "JSON"
            fault = "JSON that can be read: it is nested too deeply" if isinstance(error, RecursionError) else fault
            cause = ProgramError(f"{self.__name__} answered {said!r}, which is not {fault}")
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
    """The process ended or gave no proper answer; `final` if it is not worth trying again."""

    def __init__(self, message: str, *, final: bool = False, kind: type[ProgramError] = ProgramError) -> None:
        super().__init__(message)
        self.final = final
        self.kind = kind


class _Process:
    """One running command and what it has written so far."""

    def __init__(self, command: Sequence[str]) -> None:
        try:
            self._popen = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
            )
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error  # a name that no file can have
            raise ProgramError(f"External: {command[0]!r} cannot be started: {reason}") from None
        self._unread = bytearray()
        self._said = bytearray()
        self._asked = 0
        self._writer: threading.Thread | None = None
        self._listener = interruption.thread_started(self._listen)

    def _listen(self) -> None:
        """Read what the program says on standard error, lest it waits for that; only the end is kept."""
        assert self._popen.stderr is not None
        with suppress(OSError, ValueError):  # closed
            while more := self._popen.stderr.read(READ_BYTES):
                self._said = (self._said + more)[-LAST_WORDS:]

    def ask(self, lines: Sequence[str], timeout: float) -> Any:
        """Yield the answer to each line."""
        assert self._popen.stdin is not None
        self._check_nothing_unasked()
        text = "".join(line + "\n" for line in lines).encode()
        self._writer = interruption.thread_started(self._write, text)
        for line in lines:
            yield self._read_line(line, timeout)
        self._writer.join()
        self._check_nothing_unasked(PATIENCE if self._asked < FIRST else 0.0)
        self._asked += 1

    def _check_nothing_unasked(self, seconds: float = 0.0) -> None:
        """Refuse answers to no question, waiting for them a while: the next ones would be taken for one another."""
        assert self._popen.stdout is not None
        waiting = bytes(self._unread)
        if not waiting and select.select([self._popen.stdout], [], [], seconds)[0]:
            waiting = os.read(self._popen.stdout.fileno(), READ_BYTES)  # empty if the process has ended
        if waiting:
            shown = waiting[:100].decode(errors="replace")
            name = os.path.basename(str(self._popen.args[0]))  # type: ignore[index]
            raise ProgramError(f"{name} wrote more than one line of answer for a line of input: {shown!r}")

    def _write(self, text: bytes) -> None:
        assert self._popen.stdin is not None
        view = memoryview(text)
        try:
            while view:
                view = view[self._popen.stdin.write(view) :]
        except (BrokenPipeError, ValueError):
            return  # the reader notices that the process has ended

    def _read_line(self, asked: str, timeout: float) -> bytes:
        """Return the answer to a line."""
        assert self._popen.stdout is not None
        deadline = time.monotonic() + timeout
        told_at = time.monotonic() + patience()
        where = f"on the input {asked[:LONGEST_SHOWN]}; it must flush its output after each line"
        end = self._unread.find(b"\n")
        while end < 0:
            interruption.check()
            now, allowed = time.monotonic(), interruption.seconds_left()
            if now >= deadline:
                raise _Died(f"did not answer within {timeout:g} s {where}", final=True, kind=Unanswered)
            if now >= told_at:
                told_at = math.inf
                tell_of(where)
            waits = [deadline - now, told_at - now, *([] if allowed is None else [allowed])]
            if not select.select([self._popen.stdout], [], [], min(waits))[0]:
                continue
            more = os.read(self._popen.stdout.fileno(), READ_BYTES)
            if not more:
                raise _Died(f"ended{self._last_words()}")
            found = more.find(b"\n")
            end = found if found < 0 else len(self._unread) + found
            self._unread += more
            if end < 0 and len(self._unread) > LONGEST_LINE:
                raise _Died(f"wrote a line of more than {LONGEST_LINE >> 20} MiB", final=True)
        line = bytes(self._unread[:end])
        del self._unread[: end + 1]
        return line

    def _last_words(self) -> str:
        code = self._popen.wait()
        self._listener.join(1.0)
        said = self._said.decode(errors="replace").strip().splitlines()
        return f" with exit code {code}" + (f": {said[-1]}" if said else "")

    def stop(self) -> None:
        with ExitStack() as closing:  # all pipes, even if the time of a run is up in the midst of it
            for pipe in (self._popen.stdin, self._popen.stdout, self._popen.stderr):
                if pipe is not None:
                    closing.callback(pipe.close)
            self._popen.kill()
            self._popen.wait()
            if self._writer is not None:  # it must not write to whoever gets the number of the closed pipe
                self._writer.join(WRITER_SECONDS)


def _as_line(inputs: Mapping[str, Any], position: int) -> str:
    """Return the inputs of one call as a line of JSON; what JSON cannot say fails that call only."""
    try:
        with naming(f"External: writing {shown(inputs)} as JSON", ProgramError):
            return json.dumps(_with_rows_as_objects(inputs), default=_as_json, allow_nan=False)
    except ProgramError as error:
        raise SampleFailure(position, error) from None


def _as_json(value: Any) -> Any:
    """Turn what JSON does not know into what it does."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, set | frozenset):
        try:
            return sorted(value)
        except TypeError:  # of several kinds
            return sorted(value, key=represented)
    raise ProgramError(f"External: {shown(value)} cannot be written as JSON")


def _with_rows_as_objects(value: Any) -> Any:
    """Return inputs with rows as dictionaries, which JSON would otherwise write as lists."""
    if isinstance(value, Row):
        return {name: _with_rows_as_objects(cell) for name, cell in value._asdict().items()}
    if isinstance(value, dict):
        return {key: _with_rows_as_objects(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_with_rows_as_objects(inner) for inner in value]
    return value
