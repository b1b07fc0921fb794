"""How a program was lifted, line by line."""

import functools
import inspect
import linecache
import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privug.arguments import shown
from privug.errors import ArgumentError
from privug.escaping import inert
from privug.inference.question import Question
from privug.model.node import Node
from privug.program.lifting import Lifting
from privug.program.staged import Staged

WIDTH = 110
TIERS = {
    "traced": "traced: run once on random variables, and compared with plain calls",
    "native": "compiled, and called for each sample",
    "python": "called once for each sample, as it is",
    "batched": "called on whole batches of samples",
    "external": "a command, asked once for each sample",
}
SILENT = frozenset({"ConstantValue", "Lane"})
"""Operations that compute nothing."""


@dataclass(frozen=True)
class ListedLine:
    """A line of a program, and what it became: the operations on random values, or why tracing stopped there."""

    number: int
    source: str
    operations: tuple[str, ...] = ()
    obstacle: str = ""

    @property
    def note(self) -> str:
        """What there is to say about this line, in words."""
        return f"<- {self.obstacle}" if self.obstacle else ", ".join(self.operations)


@dataclass(frozen=True)
class LiftingListing:
    """How a program was lifted: the tier, why not a better one, and what each of its lines became."""

    program: str
    file: Path | None
    lifting: Lifting
    lines: tuple[ListedLine, ...]

    @property
    def tier(self) -> str:
        """By which way the program is run on distributions."""
        return self.lifting.tier

    @property
    def reason(self) -> str | None:
        """Why it is not traced, if it is not."""
        return self.lifting.reason

    def __str__(self) -> str:
        parts = [f"{self.program} is {TIERS[self.tier]}"]
        if self.reason is not None:
            parts.append(f"  not traced: {self.reason}")
        if self.lifting.not_compiled not in (None, self.reason):
            parts.append(f"  not compiled: {self.lifting.not_compiled}")
        width = max((len(line.source) for line in self.lines if line.note), default=0)
        before = None
        for line in self.lines:
            if before is not None and line.number != before + 1:
                parts.append("  ...")
            text = f"{line.number:>5}  {line.source:<{width}}  {line.note}" if line.note else line.source
            parts.append(text if line.note else f"{line.number:>5}  {text}")
            before = line.number
        return "\n".join(inert(part).rstrip() for part in parts)

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        lines = [
            {"line": one.number, "source": one.source, "operations": list(one.operations), "obstacle": one.obstacle}
            for one in self.lines
        ]
        how = {"tier": self.tier, "not_traced": self.reason, "not_compiled": self.lifting.not_compiled}
        return {"program": self.program, "file": None if self.file is None else str(self.file), **how, "lines": lines}


def explain(program: Any, **inputs: Any) -> LiftingListing:
    """Return how a program is lifted, line by line: what was traced, or which line prevented that.

    `program` is an attack, or a program whose inputs are given by name.

    >>> import privug as pv
    >>> def report(age):
    ...     return sum(range(round(age)))
    >>> found = pv.explain(report, age=pv.Uniform(0, 100))
    >>> found.tier, found.reason
    ('python', 'range() or a list subscript at line 2')
    """
    asked = getattr(program, "question", None)
    if isinstance(asked, Question):
        if inputs:
            raise ArgumentError("explain: an attack has its inputs already; leave them out")
        return _listed(asked)
    if not callable(program):
        raise ArgumentError(f"explain: an attack or a function is needed, not {shown(program)}")
    if not inputs:
        raise ArgumentError("explain: give the program's inputs by name, such as age=pv.Uniform(0, 100)")
    return _listed(Question(program, inputs, lambda: 0))


def _listed(question: Question) -> LiftingListing:
    case = question.case(question.typical_sizes)
    how, program = question.lifting(), _innermost(question.program)
    code = getattr(program, "__code__", None)
    name = str(getattr(question.program, "__name__", "program"))
    if code is None:
        return LiftingListing(name, None, how, ())
    operations: dict[int, list[str]] = defaultdict(list)
    for node, line in question.lines(case).items():
        word = _word(node)
        if word and word not in operations[line]:
            operations[line].append(word)
    obstacles = {line: words for text in (how.not_compiled, how.reason) if text for line, words in _placed(text)}
    numbers = {*_extent(program), *operations, *obstacles}
    lines = [
        ListedLine(number, text, tuple(operations.get(number, ())), obstacles.get(number, ""))
        for number in sorted(numbers)
        if (text := linecache.getline(code.co_filename, number).rstrip())
    ]
    return LiftingListing(name, Path(code.co_filename), how, tuple(lines))


def _innermost(program: Any) -> Any:
    while True:
        match program:
            case Staged():
                program = program.program
            case functools.partial():
                program = program.func
            case _:
                return inspect.unwrap(program)


def _extent(program: Any) -> range:
    """Return the lines that a program stands in."""
    try:
        source, first = inspect.getsourcelines(program)
    except (OSError, TypeError):
        return range(0)
    return range(first, first + len(source))


def _placed(reason: str) -> list[tuple[int, str]]:
    """Return the line that a reason names, and the rest of it."""
    found = re.fullmatch(r"(.*) at line (\d+)", reason, re.DOTALL)
    return [] if found is None else [(int(found[2]), found[1])]


def _word(node: Node) -> str:
    kind = type(node.operation).__name__
    named = getattr(node.operation, "name", None)
    return "" if kind in SILENT else str(named or kind.lower()).replace("_", " ")
