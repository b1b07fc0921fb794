"""The source of a program, with the lines through which the secret reaches the output."""

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from privug.inference.question import Case, Question
from privug.model.node import ConstantValue, Node, ancestors
from privug.model.structure import random_leaves
from privug.program.staged import Staged

MOST_LINES = 200


@dataclass(frozen=True)
class SourceLine:
    """A line of a program, and whether something was computed there from the secret, on the way to the output."""

    number: int
    text: str
    matters: bool


def lines_that_matter(question: Question, case: Case, secrets: Any) -> list[int]:
    """Return the lines at which something was computed from what secrets are made of, on the way to the output."""
    made_at = question.lines(case)
    behind = ancestors([leaf.node for leaf in random_leaves(secrets)])
    sources = {node for node in behind if not isinstance(node.operation, ConstantValue)}  # which carry nothing
    reached: set[Node] = set()
    for node in ancestors([leaf.node for leaf in random_leaves(case.output)]) if made_at else ():
        if node in sources or not reached.isdisjoint(node.parents):
            reached.add(node)
    return sorted({made_at[node] for node in reached if node in made_at})


def source_of_program(question: Question) -> Sequence[SourceLine]:
    """Return the program line by line; nothing if its source is not at hand, as with programs in other languages."""
    program: Any = question.program
    while isinstance(program, Staged):
        program = program.program
    try:
        lines, first = inspect.getsourcelines(program)
    except (TypeError, OSError):
        return ()
    case = question.case(question.typical_sizes)
    important = set(lines_that_matter(question, case, case.secret)) if program is question.program else set()
    numbered = enumerate(lines[:MOST_LINES], max(first, 1))
    return [SourceLine(number, text.rstrip("\n"), number in important) for number, text in numbered]
