"""Inference time over what the program costs.

f(arr, c) adds up n numbers c loops deep, which takes n^c steps. Samples by Privug, lifting included, beside as many
plain calls of the program: what the paper calls the overhead of inference.
"""

import time
from dataclasses import dataclass

import numpy as np

import privug as pv

from .drawing import Draw, curves
from .findings import Findings, Line
from .repetitions import growth

PAPER = "Fig. 4 (ad), (ae)"

SAMPLES = 10_000
MOST_CELLS = 10**8  # drawn in one run; beyond that there are fewer samples, and times are scaled to all of them
STEPS = 400_000  # of plain calls that are timed; the time for all samples follows from theirs
LENGTHS = (100, 1_000, 10_000, 100_000)
DEPTHS = (1, 2, 3, 4)


def f(arr, c):
    total = 0
    for i in arr:
        total += i if c == 1 else f(arr, c - 1)
    return total


@dataclass(frozen=True)
class Cost:
    """What samples of f(arr, c) took by Privug and by plain calls, and how the program was lifted."""

    length: int
    depth: int
    seconds: float
    plain: float
    tier: str
    answer: pv.Estimate

    @property
    def line(self) -> Line:
        exact = 50.0 * self.length**self.depth  # n^c terms, each with mean 50
        note = f"{self.tier}; {self.seconds:.2g} s, plain calls {self.plain:.2g} s ({self.seconds / self.plain:.2g} x)"
        return Line(f"f(arr, {self.depth}), n = {self.length:,}: mean", self.answer, exact, "as plain calls", note)


def measured(length: int, depth: int, samples: int) -> Cost:
    drawn = min(samples, MOST_CELLS // length)
    started = time.perf_counter()
    prior = {"arr": pv.Array(pv.DiscreteUniform(0, 100), length), "c": depth}
    attack = pv.Attack(f, prior, secret=lambda arr, c: arr[0])
    result = attack.run(engine="sample", samples=drawn, seed=1)
    answer = result.prediction.mean()
    seconds = (time.perf_counter() - started) * samples / drawn
    return Cost(length, depth, seconds, plain(length, depth, samples), attack.lifting.tier, answer)


def plain(length: int, depth: int, samples: int) -> float:
    """The seconds of as many calls of the program on numbers drawn beforehand, from as many as take some time."""
    calls = max(2, STEPS // length**depth)
    inputs = np.random.default_rng(1).integers(0, 101, (calls, length)).tolist()
    started = time.perf_counter()
    for arr in inputs:
        f(arr, depth)
    return (time.perf_counter() - started) / calls * samples


def figure(costs: list[Cost], across: list[int], x: str, log: str) -> Draw:
    lines = {
        "Privug, sampling": (across, [cost.seconds for cost in costs]),
        "plain calls of f": (across, [cost.plain for cost in costs]),
    }
    return curves(lines, x=x, y=f"seconds for {SAMPLES:,} samples", log=log)


def run(samples: int = SAMPLES, lengths: tuple[int, ...] = LENGTHS, depths: tuple[int, ...] = DEPTHS) -> Findings:
    measured(10, 1, 100)  # what is imported once is not the question
    by_length = [measured(length, 1, samples) for length in lengths]
    by_depth = [measured(20, depth, samples) for depth in depths]
    steps = [20**depth for depth in depths]
    powers = {
        "over n": (lengths, [cost.seconds for cost in by_length]),
        "over 20^c": (steps, [cost.seconds for cost in by_depth]),
    }
    lines = [cost.line for cost in (*by_length, *by_depth)]
    for name, (sizes, seconds) in powers.items():
        lines.append(Line(f"time grows {name} to the", round(growth(sizes, seconds), 2), None, "1, as plain calls"))
    return Findings(
        lines,
        {
            "f(arr, 1) over the length of arr": figure(by_length, list(lengths), "n", "xy"),
            "f(arr, c) over c, for 20 numbers": figure(by_depth, list(depths), "c", "y"),
        },
        [
            f"{samples:,} samples each, with drawing and lifting; plain calls get inputs that were drawn beforehand, "
            f"and are timed for some {STEPS:,} steps. Beyond {MOST_CELLS:,} numbers, times are scaled.",
            "A program that loops over the cells of an array is looked at cell by cell. Privug is built for tables and "
            "whole arrays, whose rows it evaluates at once: the sums of 20,000 numbers in the other figures are such.",
        ],
    )
