"""Runs of the explorer, each a process of its own, forked from one that has everything loaded and does nothing else.

The first process is forked before the server starts, so that it has one thread. It forks again for each run, which
sends lines of JSON over a socket of its own. A run ends when that socket is closed: when a newer position is asked
for, when the page is closed, or when the server has ended, however that happened.

A run that has answered exactly may wait instead of ending: it knows what its question is like, whatever is seen of the
output, so that runs of positions where something else is seen are forked from it.
"""

import contextlib
import gc
import json
import os
import signal
import socket
import struct
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from privug.errors import ArgumentError
from privug.explorer.answers import one_line, rough, stages
from privug.explorer.sources import Source
from privug.output import as_json
from privug.report.page import page
from privug.runtime.tasks import may_fork

Request = Mapping[str, Any]
LENGTH = struct.Struct("!I")
THREADED = ("duckdb", "jax", "torch")
"""Libraries whose threads do not survive a fork, once they have been used."""


def work(source: Source, request: Request, options: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield what a request asks for: a script, a report, or the answers at a position."""
    name, position = request.get("attack", ""), request.get("position", {})
    match request["what"]:
        case "script":
            yield {"script": source.script(name, _checked(source, name, position), options)}
        case "report":
            attack, _ = source.at(position).at(name, position)
            yield {"report": page([attack.run(**options)])}
        case "rough":
            attack, _ = source.at(position).at(name, position)
            yield from rough(attack, options)
        case "run":
            found = source.at(position)
            attack, checks = found.at(name, position)
            known = {**found.declared, **found.variations(name).parameters}
            if found.declared:  # what else is found may follow what was declared
                yield {"parameters": found.parameters_of(name)}
            yield from stages(attack, checks, options, known)


def _checked(source: Source, name: str, position: Mapping[str, Any]) -> dict[str, float]:
    """Return a position in which every value is one that its parameter may have."""
    found = source.at(position)
    found.at(name, position)
    known = {**found.declared, **found.variations(name).parameters}
    return {key: known[key].checked(value) for key, value in position.items()}


def keep(run: socket.socket) -> bool:
    """Have a run that would wait do so, until the socket is closed; return whether it is there."""
    try:
        return run.send(b"w") == 1
    except OSError:
        return False


class Nursery:
    """The process that runs are forked from. Starting one returns the socket that its answers come from."""

    def __init__(self, source: Source, options: Mapping[str, Any], prepare: Callable[[], object]) -> None:
        if not hasattr(os, "fork"):
            raise ArgumentError("explore needs an operating system that forks processes, such as Linux or macOS")
        ours, theirs = socket.socketpair()
        self.process = os.fork()
        if not self.process:
            ours.close()
            _forever(theirs, source, options, prepare)
        theirs.close()
        self._control = ours
        self._lock = threading.Lock()

    def start(self, request: Request, waiting: socket.socket | None = None) -> socket.socket:
        """Start a run, forked from one that is `waiting` if possible; it ends when the returned socket is closed."""
        ours, theirs = socket.socketpair()
        with theirs, self._lock:
            if waiting is not None and _asked(waiting, theirs, request):
                return ours
            if not _asked(self._control, theirs, request):
                ours.close()
                raise ArgumentError("the process that runs come from has ended; start the explorer again")
        return ours

    def close(self) -> None:
        """End the process, and with it all runs."""
        self._control.close()
        with contextlib.suppress(ChildProcessError, ProcessLookupError):
            os.kill(self.process, signal.SIGKILL)
            os.waitpid(self.process, 0)


def _asked(process: socket.socket, answers: socket.socket, request: Request) -> bool:
    """Ask a process to fork a run that answers over a socket; return whether it is there."""
    text = json.dumps(request).encode()
    try:
        socket.send_fds(process, [LENGTH.pack(len(text))], [answers.fileno()])
        process.sendall(text)
    except OSError:
        return False
    return True


def _forever(control: socket.socket, source: Source, options: Mapping[str, Any], prepare: Callable[[], object]) -> None:
    """Be the process that runs are forked from; what they print goes nowhere."""
    with open(os.devnull, "r+b", buffering=0) as nowhere:
        for stream in (0, 1, 2):
            os.dup2(nowhere.fileno(), stream)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the server, whose socket then ends this
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for runs
    with contextlib.suppress(BaseException):
        prepare()
    _fork_runs(control, source, options)


def _fork_runs(control: socket.socket, source: Source, options: Mapping[str, Any]) -> None:
    """Fork a run for each request, until the server has closed the other end."""
    while True:
        try:
            head, descriptors, _, _ = socket.recv_fds(control, LENGTH.size, 1)
            if not head:
                os._exit(0)
            text = _received(control, LENGTH.unpack(head)[0])
        except OSError:
            os._exit(0)
        if os.fork():
            os.close(descriptors[0])
            continue
        control.close()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        _run(socket.socket(fileno=descriptors[0]), source, json.loads(text), options)


def _received(control: socket.socket, length: int) -> bytes:
    text = b""
    while len(text) < length:
        more = control.recv(length - len(text))
        if not more:
            raise OSError("the server has ended")
        text += more
    return text


def _run(answers: socket.socket, source: Source, request: Request, options: Mapping[str, Any]) -> None:
    """Do what a request asks for in this process, and end it."""
    os.setsid()
    watching = threading.Thread(target=_end_with, args=(answers,), daemon=True)
    watching.start()
    is_exact = False
    try:
        for answer in work(source, request, options):
            is_exact |= answer.get("answer", {}).get("exact", False)
            _send(answers, answer)
    except BaseException as error:
        _send(answers, {"error": one_line(error), "done": True})
        os._exit(0)
    waits = is_exact and may_fork() and not any(name in sys.modules for name in THREADED)
    _send(answers, {"done": True, "waits": waits})
    if waits:
        gc.freeze()  # runs then share this memory instead of copying it
        watching.join()
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        _fork_runs(answers, source, options)
    os._exit(0)


def _send(answers: socket.socket, answer: Mapping[str, Any]) -> None:
    with contextlib.suppress(OSError):  # nobody listens any more
        answers.sendall(as_json(answer, None).encode() + b"\n")


def _end_with(answers: socket.socket) -> None:
    """End this run and all its workers when the other end of its socket is closed; return if it is to wait."""
    with contextlib.suppress(OSError):
        if answers.recv(1):
            return
    os.killpg(os.getpgid(0), signal.SIGKILL)
