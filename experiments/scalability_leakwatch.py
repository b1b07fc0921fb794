"""Time to draw samples, beside direct sampling in plain Python.

20,000 samples of P(8,1) with more and more variables: by Privug's sampling engine, and by a loop that draws each number
and calls the program, as LeakWatch does for Java. The largest case has a process of its own, which tells its memory.
"""

import json
import random
import subprocess
import sys
import time
from pathlib import Path

import privug as pv

from .drawing import curves
from .findings import Findings, Line
from .repetitions import growth
from .synthetic import Mean

PAPER = "Fig. 4 (af)"

SAMPLES = 20_000
SIZES = (200, 1_000, 3_000, 9_000, 30_000)
LARGEST = 100_000
DRAWS = 300_000  # of the loop that are timed; the time for all samples follows from theirs

ALONE = """
import json, pathlib, resource, sys, time
import privug as pv

def peak():  # in MiB; Linux counts the parent's memory into ru_maxrss, but not into VmHWM
    status = pathlib.Path("/proc/self/status")
    if status.exists():
        return next(int(line.split()[1]) for line in status.open() if line.startswith("VmHWM")) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # bytes on macOS

def mean_of(s, p):
    return (s + p.sum()) / (1 + len(p))

def asked(others, samples):
    prior = {"s": pv.Normal(42, sd=8), "p": pv.Array(pv.Normal(55, sd=1), others)}
    return pv.Attack(mean_of, prior, secret="s").run(engine="sample", samples=samples, seed=1).prediction.mean()

others, samples = map(int, sys.argv[1:])
pv.configure(progress=False)
asked(10, 100)
before, started = peak(), time.perf_counter()
mean = asked(others, samples)
seconds = time.perf_counter() - started
answer = {name: getattr(mean, name) for name in ("value", "low", "high", "method")}
print(json.dumps({"seconds": seconds, "more": peak() - before, "mean": answer}))
"""


def by_privug(others: int, samples: int) -> tuple[float, pv.Estimate]:
    started = time.perf_counter()
    answer = Mean(8, 1, others).attack.run(engine="sample", samples=samples, seed=1).prediction.mean()
    return time.perf_counter() - started, answer


def alone(others: int, samples: int) -> tuple[float, pv.Estimate, float]:
    """The same in a process of its own: seconds, the answer, and how many MiB its memory grew by."""
    command = [sys.executable, "-c", ALONE, str(others), str(samples)]
    package = str(Path(pv.__file__).parents[1])
    said = subprocess.run(command, env={"PYTHONPATH": package}, capture_output=True, text=True, check=True)
    found = json.loads(said.stdout)
    return found["seconds"], pv.Estimate(**found["mean"]), found["more"]


def by_loop(others: int, samples: int) -> float:
    """The seconds of a loop over samples in plain Python, from as many as take some time."""
    rng = random.Random(1)
    calls = max(1, DRAWS // others)
    started = time.perf_counter()
    for _ in range(calls):
        secret = rng.gauss(42, 8)
        numbers = [rng.gauss(55, 1) for _ in range(others)]
        _ = (secret + sum(numbers)) / (1 + len(numbers))
    return (time.perf_counter() - started) / calls * samples


def run(sizes: tuple[int, ...] = SIZES, largest: int = LARGEST, samples: int = SAMPLES) -> Findings:
    findings = Findings()
    by_privug(10, 100)  # what is imported once is not the question
    seconds, loops = [], []
    for others in sizes:
        took, answer = by_privug(others, samples)
        seconds.append(took)
        loops.append(by_loop(others, samples))
        findings.lines.append(line(others, answer, took, loops[-1]))
    took, answer, more = alone(largest, samples)
    seconds.append(took)
    loops.append(by_loop(largest, samples))
    findings.lines.append(line(largest, answer, took, loops[-1]))
    every = (*sizes, largest)
    for name, found in (("Privug", seconds), ("a loop in plain Python", loops)):
        findings.lines.append(Line(f"{name}: time grows as n to the", round(growth(every, found), 2)))
    findings.lines.append(
        Line(
            f"memory that {largest:,} variables add",
            f"{more:,.0f} MiB",
            None,
            "all, from 30,000 on",
            f"the numbers drawn are {8 * largest * samples / 2**20:,.0f} MiB",
        )
    )
    curve = {"Privug, sampling": (every, seconds), "a loop in plain Python": (every, loops)}
    findings.figures["P(8,1): seconds over the number of variables"] = curves(
        curve, x="variables", y=f"seconds for {samples:,} samples", log="xy"
    )
    findings.notes.append(
        "LeakWatch ran out of memory beyond 10,000 variables and the paper's Privug beyond 30,000. Here blocks of "
        "samples are drawn, summed and forgotten, so that variables cost time and not memory."
    )
    return findings


def line(others: int, answer: pv.Estimate, took: float, loop: float) -> Line:
    paper = {30_000: "out of memory", 100_000: "out of memory"}.get(others, "comparable to LeakWatch")
    note = f"{took:.2g} s, loop {loop:.2g} s ({loop / took:.0f} times as long)"
    return Line(f"{others:,} variables: mean of the output", answer, Mean(8, 1, others).output[0], paper, note)
