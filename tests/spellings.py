"""One question in many spellings: how its rows are given, how the statistic is computed, how the output is written.

Each spelling is the source of a program and a prior for it; all spellings of a question have one answer.
"""

import itertools
import math
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import privug as pv
from random_programs import compiled

_numbers = itertools.count()

ROWS: dict[str, tuple[Callable[[Callable[[], Any], int], Any], str, Callable[[Any], Any]]] = {
    "list": (lambda draw, n: [draw() for _ in range(n)], "rows", lambda rows: rows[0]),
    "array": (lambda draw, n: pv.Array(draw(), n), "rows", lambda rows: rows[0]),
    "records": (lambda draw, n: pv.Records(n, pv.Row(x=draw())), "[r.x for r in rows]", lambda rows: rows[0].x),
    "function": (
        lambda draw, n: pv.Records(n, lambda i: pv.Row(x=draw())),
        "[r.x for r in rows]",
        lambda rows: rows[0].x,
    ),
    "pandas": (
        lambda draw, n: pv.Records(n, pv.Row(x=draw())).as_frame("pandas"),
        "rows.x",
        lambda rows: rows.x.iloc[0],
    ),
    "polars": (
        lambda draw, n: pv.Records(n, pv.Row(x=draw())).as_frame("polars"),
        'rows["x"]',
        lambda rows: rows["x"][0],
    ),
    "numpy": (lambda draw, n: pv.Array(draw(), n), "np.array(rows)", lambda rows: rows[0]),
}
"""How rows are given: the prior, the values in the program, and the first of them."""

STATISTICS = {
    "mean": {
        "loop": "s = 0.0\n    for v in VALUES:\n        s += v\n    s = s / N",
        "built-in": "s = sum(VALUES) / N",
        "comprehension": "s = sum([v for v in VALUES]) / N",
        "generator": "s = sum(v / N for v in VALUES)",
        "statistics": "s = statistics.fmean(VALUES)",
        "NumPy": "s = np.mean(np.array(VALUES))",
    },
    "count": {
        "loop": "s = 0\n    for v in VALUES:\n        if v > 1:\n            s += 1",
        "built-in": "s = sum(v > 1 for v in VALUES)",
        "comprehension": "s = len([v for v in VALUES if v > 1])",
        "NumPy": "s = int(np.sum(np.array(VALUES) > 1))",
    },
    "largest": {
        "loop": "s = None\n    for v in VALUES:\n        if s is None or v > s:\n            s = v",
        "built-in": "s = max(VALUES)",
        "comprehension": "s = max([v for v in VALUES])",
        "sorted": "s = sorted(VALUES)[-1]",
        "NumPy": "s = np.max(np.array(VALUES))",
    },
    "any": {
        "built-in": "s = any(v > 1 for v in VALUES)",
        "comprehension": "s = any([v > 1 for v in VALUES])",
        "largest": "s = max(VALUES) > 1",
        "count": "s = sum(v > 1 for v in VALUES) > 0",
        "NumPy": "s = bool(np.any(np.array(VALUES) > 1))",
    },
    "without one": {
        "slice": "s = (sum(VALUES) / N, sum(VALUES[1:]) / max(1, N - 1))",
        "difference": "s = (sum(VALUES) / N, (sum(VALUES) - VALUES[0]) / max(1, N - 1))",
    },
}
OUTPUTS = {
    "number": ("{s}", lambda seen, n: seen),
    "tuple": ("({s}, N)", lambda seen, n: (seen, n)),
    "list": ("[N, {s}]", lambda seen, n: [n, seen]),
    "dict": ("{{'n': N, 's': {s}}}", lambda seen, n: {"n": n, "s": seen}),
    "text": ("f'{{{s}}} of {{N}}'", lambda seen, n: f"{seen} of {n}"),
}
WRITTEN = {
    "mean": "round(s, {digits})",
    "largest": "round(s, {digits})",
    "without one": "(round(s[0], {digits}), round(s[1], {digits}))",
}


@dataclass(frozen=True)
class Spelling:
    """One way to ask a question."""

    rows: str
    way: str
    output: str


@dataclass(frozen=True)
class Spelled:
    """A question about so many rows: a statistic, what one row is drawn from, and what is seen of the statistic."""

    statistic: str
    draw: Callable[[], Any]
    size: int
    seen: Any
    digits: int = 1

    def spellings(self) -> Iterator[Spelling]:
        """Yield all ways to ask it."""
        for rows, way, output in itertools.product(ROWS, STATISTICS[self.statistic], OUTPUTS):
            cells = rows in ("list", "array", "numpy")
            if (cells or self.statistic != "without one") and (output != "text" or self.statistic in ("mean", "count")):
                yield Spelling(rows, way, output)

    def attack(self, spelling: Spelling) -> pv.Attack:
        """Return it as an attack."""
        prior, values, first = ROWS[spelling.rows]
        body = STATISTICS[self.statistic][spelling.way].replace("VALUES", values)
        written = WRITTEN.get(self.statistic, "s").format(digits=self.digits)
        output = OUTPUTS[spelling.output][0].format(s=written)
        source = f"def program(rows):\n    N = {self.size}\n    {body}\n    return {output}\n"
        return pv.Attack(made(source), {"rows": prior(self.draw, self.size)}, first)

    def observation(self, spelling: Spelling) -> pv.Observation:
        """Return what is seen of the output."""
        return pv.equals(OUTPUTS[spelling.output][1](self.seen, self.size))


def made(source: str) -> Callable[..., Any]:
    """Return the program that some source defines."""
    return compiled(source, f"<spelling {next(_numbers)}>", np=np, statistics=statistics, math=math)
