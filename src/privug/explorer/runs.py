"""Runs of the explorer, each a process of its own, forked from one that has everything loaded and does nothing else.

The first process is forked before the server starts, so that it has one thread. It forks again for each run, which
sends lines of JSON over a socket of its own. A run ends when that socket is closed: when a newer position is asked
for, when the page is closed, or when the server has ended, however that happened.
"""

import contextlib
import json
import os
import signal
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from privug.errors import ArgumentError
from privug.explorer.answers import one_line, rough, stages
from privug.explorer.sources import Source
from privug.output import as_json
from privug.report.page import page

Request = Mapping[str, Any]
LENGTH = struct.Struct("!I")


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

    def start(self, request: Request) -> socket.socket:
        """Start a run; it ends when the socket that is returned is closed."""
        ours, theirs = socket.socketpair()
        text = json.dumps(request).encode()
        with theirs, self._lock:
            try:
                socket.send_fds(self._control, [LENGTH.pack(len(text))], [theirs.fileno()])
                self._control.sendall(text)
            except OSError:
                ours.close()
                raise ArgumentError("the process that runs come from has ended; start the explorer again") from None
        return ours

    def close(self) -> None:
        """End the process, and with it all runs."""
        self._control.close()
        with contextlib.suppress(ChildProcessError, ProcessLookupError):
            os.kill(self.process, signal.SIGKILL)
            os.waitpid(self.process, 0)


def _forever(control: socket.socket, source: Source, options: Mapping[str, Any], prepare: Callable[[], object]) -> None:
    """Fork a run for each request, until the server has ended; what runs print goes nowhere."""
    with open(os.devnull, "r+b", buffering=0) as nowhere:
        for stream in (0, 1, 2):
            os.dup2(nowhere.fileno(), stream)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the server, whose socket then ends this
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for runs
    with contextlib.suppress(BaseException):
        prepare()
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
    threading.Thread(target=_end_with, args=(answers,), daemon=True).start()
    try:
        for answer in work(source, request, options):
            _send(answers, answer)
        _send(answers, {"done": True})
    except BaseException as error:
        _send(answers, {"error": one_line(error), "done": True})
    os._exit(0)


def _send(answers: socket.socket, answer: Mapping[str, Any]) -> None:
    with contextlib.suppress(OSError):  # nobody listens any more
        answers.sendall(as_json(answer, None).encode() + b"\n")


def _end_with(answers: socket.socket) -> None:
    """End this run and all its workers when the other end of its socket is closed."""
    with contextlib.suppress(OSError):
        answers.recv(1)
    os.killpg(os.getpgid(0), signal.SIGKILL)
