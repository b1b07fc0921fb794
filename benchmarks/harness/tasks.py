"""What is measured: tasks, the tools that do them, and growth: one task at several sizes."""

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

QUICK = "PRIVUG_BENCHMARKS_QUICK"  # the environment variable that asks for small sizes; cells inherit it
PRECISE = 1_000_000  # effective samples: a standard error of a thousandth of the deviation
T = TypeVar("T")


@dataclass(frozen=True)
class Tool:
    """A column: its label, what it is for (the reason of its empty cells), and the modules it needs."""

    label: str
    only: str
    imports: tuple[str, ...] = ()


TOOLS = {
    "privug": Tool("Privug", "", ("harness.first_use",)),
    "privug-sampling": Tool("Privug, sampling", "same", ("harness.first_use",)),
    "privug-first": Tool("Privug, the first time", "same", ("harness.first_use",)),
    "pymc": Tool("PyMC", "densities only", ("pymc", "arviz")),
    "nutpie": Tool("nutpie", "densities only", ("nutpie", "pymc", "arviz")),
    "numpyro": Tool("NumPyro", "densities only", ("numpyro", "numpyro.infer", "numpyro.diagnostics")),
    "scikit-learn": Tool("scikit-learn", "samples only", ("sklearn.feature_selection", "sklearn.neighbors")),
    "qif": Tool("qif", "channels only", ("qif",)),
    "dit": Tool("dit", "small finite joints only", ("dit",)),
    "brute-force": Tool("brute force", "neighbours only"),
    "loop": Tool("Python loop", "not written"),
    "numpy": Tool("NumPy by hand", "not written"),
    "random-numbers": Tool("random numbers", "nothing to draw"),
}


@dataclass(frozen=True)
class Answer:
    """What a tool found.

    `effective` is the number of effective samples of an answer that is sampled, `fixed` the seconds that further
    samples would not take again, `seconds` the time where the tool tells it better than a clock (compilation left
    out), `share` the part of the task that was done.
    """

    values: Sequence[float] = ()
    effective: float = math.inf
    fixed: float = 0.0
    seconds: float | None = None
    share: float = 1.0
    note: str = ""


Work = Callable[[], Answer | Sequence[float] | float | None]
Prepare = Callable[[], Work]


@dataclass(frozen=True)
class Task:
    """A row: a question, the tools that answer it, and the right answer.

    `cells` are functions that prepare, which is not timed, and return the work, or the reason why there is none. Errors
    are in units of `scale`; an answer is wrong if it is off by more than `within`, or by five standard errors if it is
    sampled. Times of sampled answers are counted up to `samples` effective ones. `bars` says how many times as long as
    Privug a tool should take at least, `memory` and `seconds` what Privug may take. Turns may take `patience` times as
    long as those of other tasks.
    """

    name: str
    question: str
    cells: dict[str, Prepare | str]
    oracle: Callable[[], Sequence[float]] | None = None
    scale: float = 1.0
    within: float = 1e-6
    samples: float = PRECISE
    bars: dict[str, float] = field(default_factory=dict)
    memory: float | None = None
    seconds: float | None = None
    patience: float = 1.0
    module: str = ""
    family: str = ""
    size: int | None = None

    def reason(self, tool: str) -> str:
        """Say why a cell is empty."""
        cell = self.cells.get(tool, TOOLS[tool].only)
        return cell if isinstance(cell, str) else ""


@dataclass(frozen=True)
class Growth:
    """A task at several sizes: cells and oracle are functions of the size; `up_to` says where a tool is left out."""

    name: str
    question: str
    sizes: tuple[int, ...]
    cells: dict[str, Callable[[int], Work]]
    oracle: Callable[[int], Sequence[float]] | None = None
    up_to: dict[str, int] = field(default_factory=dict)
    scale: Callable[[int], float] = lambda size: 1.0
    within: float = 1e-6
    samples: float = PRECISE
    bars: dict[str, float] = field(default_factory=dict)  # of the largest size that the tool has
    memory: float | None = None

    def tasks(self) -> list[Task]:
        return [self.at(size) for size in self.sizes]

    def at(self, size: int) -> Task:
        cells: dict[str, Prepare | str] = {}
        for tool, prepare in self.cells.items():
            fits = size <= self.up_to.get(tool, size)
            cells[tool] = (lambda prepare=prepare: prepare(size)) if fits else "too large"  # type: ignore[misc]
        oracle = self.oracle
        return Task(
            f"{self.name}-{size}",
            f"{self.question}; size {size:,}",
            cells,
            (lambda: oracle(size)) if oracle else None,
            self.scale(size),
            self.within,
            self.samples,
            {tool: bar for tool, bar in self.bars.items() if size == self.largest(tool)},
            self.memory,
            family=self.name,
            size=size,
        )

    def largest(self, tool: str) -> int:
        return max(size for size in self.sizes if size <= self.up_to.get(tool, size))


def register(*entries: Task | Growth) -> dict[str, Task]:
    """Return tasks by name: what a module of tasks has as `TASKS`."""
    listed = [task for entry in entries for task in (entry.tasks() if isinstance(entry, Growth) else [entry])]
    return {task.name: task for task in listed}


def sized(full: T, quick: T) -> T:
    """Return a size: small ones where `--quick` asks for them."""
    return quick if os.environ.get(QUICK) else full
