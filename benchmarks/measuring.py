"""What the benchmarks share: ratios of two times taken in one run, the physical limit, and peak memory.

The machine may be busy with other things. So the two sides of a ratio take turns, and the median of the ratios counts.
"""

import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

GIBIBYTE = 1 << 30
BUFFER = 1 << 17  # numbers, so 1 MiB: what a core's cache holds


@dataclass(frozen=True)
class Bar:
    """The limit that a ratio should keep to."""

    limit: float
    at_least: bool = False

    def holds(self, ratio: float) -> bool:
        return ratio >= self.limit if self.at_least else ratio <= self.limit

    def __str__(self) -> str:
        return f"{'>=' if self.at_least else '<='} {self.limit:g}"


class Outcome(NamedTuple):
    """One line of the table; a bar of None means that the ratio is for information."""

    name: str
    ratio: float
    bar: Bar | None
    detail: str


class Timing(NamedTuple):
    """The two sides of a ratio: the median of the ratios, their range, and the best seconds of each side."""

    ratio: float
    lowest: float
    highest: float
    left: float
    right: float

    def __str__(self) -> str:
        spread = f"ratios {self.lowest:.3g} to {self.highest:.3g}"
        return f"{spread}; best {self.left:.3g} s against {self.right:.3g} s"


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def compare(left: Callable[[], object], right: Callable[[], object], rounds: int = 5) -> Timing:
    """Time two sides in turn, after one turn that does not count."""
    left(), right()
    pairs = [(seconds(left), seconds(right)) for _ in range(rounds)]
    ratios = [a / b for a, b in pairs]
    best = (min(side) for side in zip(*pairs, strict=True))
    return Timing(statistics.median(ratios), min(ratios), max(ratios), *best)


def fill_normals(count: int, workers: int) -> None:
    """Draw standard normals as fast as NumPy can: the same thread fills the same buffer again and again."""

    def fill(worker: int) -> None:
        rng = np.random.Generator(np.random.SFC64(worker))
        buffer = np.empty(BUFFER)
        whole, rest = divmod(count // workers, BUFFER)
        for _ in range(whole):
            rng.standard_normal(out=buffer)
        rng.standard_normal(out=buffer[:rest])

    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(fill, range(workers)))


def peak_memory() -> int:
    """Return the most bytes this process has had in memory."""
    status = Path("/proc/self/status")
    if status.exists():  # ru_maxrss would count the process that started this one
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def in_subprocess(script: str, *arguments: str) -> dict[str, Any]:
    """Run a script of this folder in a process of its own and return what it prints, as JSON."""
    command = [sys.executable, str(Path(script).resolve()), *arguments]
    finished = subprocess.run(command, capture_output=True, text=True)
    if finished.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{finished.stderr}")
    result: dict[str, Any] = json.loads(finished.stdout.splitlines()[-1])
    return result
