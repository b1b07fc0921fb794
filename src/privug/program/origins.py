"""Where in a program each quantity was made: found by tracing it once more when somebody asks, at no cost before."""

import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from types import CodeType, FrameType, MethodType
from typing import Any

from privug.model.graph import everything_behind
from privug.model.node import Node, origins
from privug.model.structure import random_leaves
from privug.program.tracing import trace
from privug.scoping import holding

MOST_NODES = 20_000  # behind an output: for the sake of a line number, more are not made again


def lines_of(
    program: Callable[..., Any], positional: Sequence[Any], named: Mapping[str, Any], output: Any
) -> dict[Node, int]:
    """Return the source lines at which a program made the quantities behind an output that tracing it gave.

    Empty if they cannot be found, because the program is no Python function or the second trace is another one; or if
    there are very many.
    """
    code, before = _code(program), everything_behind(_nodes(output))
    if code is None or len(before) > MOST_NODES:
        return {}
    found: dict[Node, int] = {}
    with holding(origins, functools.partial(_note, code.co_filename, found)):
        again = trace(program, positional, named)
    after = everything_behind(_nodes(again.output))
    if len(before) != len(after):
        return {}
    pairs = zip(before, after, strict=True)
    if not all(type(old.operation) is type(new.operation) for old, new in pairs):
        return {}
    return {old: found[new] for old, new in zip(before, after, strict=True) if new in found and old is not new}


def _nodes(value: Any) -> list[Node]:
    return [variable.node for variable in random_leaves(value)]


def _code(program: Any) -> CodeType | None:
    while isinstance(program, functools.partial | MethodType):
        program = program.func if isinstance(program, functools.partial) else program.__func__
    code = getattr(program, "__code__", None)
    return code if isinstance(code, CodeType) else None


def _note(filename: str, found: dict[Node, int], node: Node) -> None:
    """Take down the line of the program that is being run."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename != filename:
        frame = frame.f_back
    if frame is not None:
        found[node] = frame.f_lineno
