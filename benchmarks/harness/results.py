"""What was measured: medians and spreads, errors, ratios that take turns into account, exponents; all of it as JSON."""

import math
import os
import platform
import statistics
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from harness.tasks import TOOLS, Task

REFERENCES = ("privug", "privug-sampling")
LIBRARIES = [
    "numpy",
    "scipy",
    "numba",
    "pymc",
    "nutpie",
    "numpyro",
    "jax",
    "scikit-learn",
    "qif",
    "dit",
    "pandas",
    "polars",
]
STANDARD_ERRORS = 5.0  # that a sampled answer may be off: once in two million times by chance


class Spread(NamedTuple):
    """The median of some numbers and their quartiles."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, numbers: Sequence[float]) -> "Spread":
        return cls(*(float(np.quantile(numbers, q)) for q in (0.5, 0.25, 0.75)))


@dataclass
class CellResult:
    """What one tool did for one task: `ok`, `wrong`, `crashed`, `exceeded` its time limit, `cannot` or `skipped`."""

    tool: str
    status: str
    reason: str = ""
    seconds: list[float] = field(default_factory=list)
    fixed: list[float] = field(default_factory=list)
    first: float | None = None
    values: list[float] = field(default_factory=list)
    effective: float = math.inf
    memory: int | None = None
    share: float = 1.0
    note: str = ""
    error: float | None = None
    turns: list[float] = field(default_factory=list)

    def take(self, found: dict[str, Any]) -> None:
        """Keep an answer; the time of the first does not count."""
        if self.first is None:
            self.first = found["first"]
        else:
            self.seconds.append(found["seconds"])
            self.fixed.append(found["fixed"])
        self.values, self.effective, self.memory = found["values"], found["effective"], found["memory"]
        self.share, self.note = found["share"], found["note"]

    @property
    def measured(self) -> bool:
        return bool(self.seconds)

    def precise(self, samples: float) -> list[float]:
        """Return the seconds of each turn, those of sampled answers counted up to so many effective samples."""
        if math.isinf(self.effective):
            return self.seconds
        pairs = zip(self.seconds, self.fixed, strict=True)
        return [fixed + (spent - fixed) * samples / self.effective for spent, fixed in pairs]

    def to_json(self, samples: float) -> dict[str, Any]:
        found: dict[str, Any] = {"status": self.status, "reason": self.reason}
        if self.measured:
            spread = Spread.of(self.seconds)
            found |= {"seconds": self.seconds, "median": spread.median, "quartiles": [spread.low, spread.high]}
            found |= {"first": self.first, "memory": self.memory, "share": self.share, "note": self.note}
            found |= {"values": [finite(value) for value in self.values], "error": finite(self.error)}
            found |= {"effective": finite(self.effective), "precise": Spread.of(self.precise(samples)).median}
        return found


@dataclass
class TaskResult:
    """The cells of a task, and which of its bars hold."""

    task: Task
    cells: dict[str, CellResult]
    truth: list[float] | None = None

    def judge(self) -> None:
        """Compare answers with the oracle's."""
        if self.task.oracle is None:
            return
        self.truth = [float(value) for value in self.task.oracle()]
        for cell in self.cells.values():
            if cell.measured and cell.values:
                cell.error = error(cell.values, self.truth, self.task.scale)
                allowed = max(self.task.within, STANDARD_ERRORS / math.sqrt(cell.effective))
                if not cell.error <= allowed:
                    cell.status, cell.reason = "wrong", f"off by {cell.error:.2g}, more than {allowed:.2g}"

    @property
    def reference(self) -> CellResult | None:
        """Privug's cell, which the others are compared with."""
        return next((self.cells[name] for name in REFERENCES if self.cells[name].measured), None)

    def ratio(self, tool: str) -> Spread | None:
        """Return how many times as long as Privug a tool took for the same precision, turn by turn."""
        cell, reference = self.cells[tool], self.reference
        if reference is None or not cell.measured or cell is reference:
            return None
        pairs = zip(cell.precise(self.task.samples), reference.precise(self.task.samples), strict=False)
        return Spread.of([theirs / ours for theirs, ours in pairs])

    def bars(self) -> list[dict[str, Any]]:
        """Return the limits and what was found: ratios to tools, bytes and seconds of Privug."""
        found = []
        for tool, limit in self.task.bars.items():
            ratio = self.ratio(tool)
            holds = None if ratio is None else ratio.median >= limit
            found.append({"of": tool, "at_least": limit, "found": ratio and ratio.median, "holds": holds})
        ours = self.reference
        limits = {"memory": self.task.memory, "seconds": self.task.seconds}
        for name, most in limits.items():
            if most is not None:
                value = None if ours is None else ours.memory if name == "memory" else statistics.median(ours.seconds)
                holds = None if value is None else value <= most
                found.append({"of": name, "at_most": most, "found": value, "holds": holds})
        return found

    def to_json(self) -> dict[str, Any]:
        ratios = {tool: self.ratio(tool) for tool in self.cells}
        return {
            "question": self.task.question,
            "family": self.task.family,
            "size": self.task.size,
            "oracle": self.truth,
            "cells": {tool: cell.to_json(self.task.samples) for tool, cell in self.cells.items()},
            "ratios": {tool: list(ratio) for tool, ratio in ratios.items() if ratio},
            "bars": self.bars(),
        }


def skipped(task: Task) -> TaskResult:
    """Return the cells of a task that there was no time for."""
    cells = {}
    for tool in TOOLS:
        reason = task.reason(tool)
        cells[tool] = CellResult(tool, "cannot", reason) if reason else CellResult(tool, "skipped", "out of time")
    return TaskResult(task, cells)


def error(values: Sequence[float], truth: Sequence[float], scale: float) -> float:
    """Return the largest difference, in units of the scale; infinite where there are not as many numbers."""
    if len(values) != len(truth):
        return math.inf
    return float(np.max(np.abs(np.subtract(values, truth)))) / scale


def finite(number: float | None) -> float | None:
    """Return a number that JSON has, or none."""
    return number if number is not None and math.isfinite(number) else None


class Exponent(NamedTuple):
    """How a cost grows: the slope of a line in doubly logarithmic scale, its standard error, and the last step's."""

    slope: float
    error: float | None
    last: float


def fit(sizes: Sequence[float], seconds: Sequence[float]) -> Exponent:
    """Fit the exponent of growth; two sizes leave no standard error."""
    x, y = np.log(sizes), np.log(seconds)
    last = float((y[-1] - y[-2]) / (x[-1] - x[-2]))
    slope, offset = np.polyfit(x, y, 1)
    if len(x) < 3:
        return Exponent(float(slope), None, last)
    residual = float(np.sum((y - slope * x - offset) ** 2)) / (len(x) - 2)
    return Exponent(float(slope), math.sqrt(residual / float(np.sum((x - x.mean()) ** 2))), last)


def growth(tasks: dict[str, Any]) -> dict[str, dict[str, dict[str, Any]]]:
    """Return the curve of each tool in each family of tasks, for one precision at all sizes, with its exponents."""
    curves: dict[str, dict[str, dict[str, Any]]] = {}
    for family in dict.fromkeys(task["family"] for task in tasks.values() if task["family"]):
        members = sorted((task for task in tasks.values() if task["family"] == family), key=lambda task: task["size"])
        for tool in TOOLS:
            cells = [(task["size"], task["cells"][tool]) for task in members]
            points = [(size, cell["precise"]) for size, cell in cells if "precise" in cell]
            if len(points) >= 2:
                sizes, seconds = zip(*points, strict=True)
                curve = {"sizes": sizes, "seconds": seconds, **fit(sizes, seconds)._asdict()}
                curves.setdefault(family, {})[tool] = curve
    return curves


def machine() -> dict[str, Any]:
    """Say what the numbers were measured on."""
    versions = {}
    for library in LIBRARIES:
        try:
            versions[library] = version(library)
        except PackageNotFoundError:
            continue
    return {
        "cores": os.cpu_count(),
        "architecture": platform.machine(),
        "system": platform.system(),
        "python": platform.python_version(),
        "versions": versions,
        "commit": commit(),
        "date": datetime.now(UTC).date().isoformat(),
    }


def commit() -> str:
    """Return the commit, with a plus if what lies here differs from it in anything but these results."""
    here = Path(__file__).parent

    def git(*arguments: str) -> str:
        return subprocess.run(["git", "-C", str(here), *arguments], capture_output=True, text=True).stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no", "--", ":/src", ":/benchmarks/*.py")
    return git("rev-parse", "--short", "HEAD") + ("+" if changed else "") or "unknown"


def to_json(results: Sequence[TaskResult], **about: Any) -> dict[str, Any]:
    tasks = {result.task.name: result.to_json() for result in results}
    return {**about, "tasks": tasks, "growth": growth(tasks)}


def merged(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return runs of different tasks as one; all must be of the same commit, on the same machine."""
    first = runs[0]
    if any(run["machine"] != first["machine"] or run["quick"] != first["quick"] for run in runs):
        raise SystemExit("these runs are of different commits, machines or sizes, and cannot be shown as one")
    loads = [load for run in runs for load in run["load"]]
    tasks: dict[str, Any] = {}
    for run in runs:
        for name, task in run["tasks"].items():
            late = any(cell["status"] == "skipped" for cell in task["cells"].values())
            if name not in tasks or not late:  # what one had no time for, another may have measured
                tasks[name] = task
    return {
        **first,
        "command": "; ".join(run["command"] for run in runs),
        "load": [min(loads), max(loads)],
        "minutes": sum(run["minutes"] for run in runs),
        "tasks": tasks,
        "growth": growth(tasks),
    }
