"""A second observation of the same attack beside the first: what a question that is prepared once saves.

Seconds are of the processor, which work in forked processes does not count in: programs are called in this one.
"""

import hashlib
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from harness.tasks import Answer, Task, Work, register

import privug as pv

Question = tuple[pv.Attack, Any, Any]


def digest(a, b):  # type: ignore[no-untyped-def]
    text = f"{a},{b}".encode()
    for _ in range(2_000):
        text = hashlib.sha256(text).digest()
    return text[0] % 5


def mean(records):  # type: ignore[no-untyped-def]
    return sum(r.age for r in records) / len(records)


def person(position: int) -> pv.Row:
    return pv.Row(age=pv.Uniform(0, 100) if position == 0 else pv.Normal(55.2, sd=3.5))


def called() -> Question:
    prior = {"a": pv.DiscreteUniform(0, 15), "b": pv.DiscreteUniform(0, 15)}
    return pv.Attack(digest, prior, "a"), pv.equals(1), pv.equals(2)


def rows() -> Question:
    attack = pv.Attack(mean, {"records": pv.Records(100, person)}, lambda records: records[0].age)
    return attack, pv.near(55.3, within=0.005), pv.near(55.4, within=0.005)


def sizes() -> Question:
    records = pv.Records(pv.Binomial(300, 1 / 3), person)
    attack = pv.Attack(mean, {"records": records}, lambda records: records[0].age)
    return attack, pv.near(55.3, within=0.005), pv.near(55.4, within=0.005)


def asked(make: Callable[[], Question], *, again: bool) -> Work:
    """Return the work of a run for the second observation, of a new attack or of one that was run for the first."""

    def work() -> Answer:
        attack, first, second = make()
        with pv.limited(workers=1):
            if again:
                attack.run(first, engine="exact")
            started = time.process_time()
            belief = attack.run(second, engine="exact").posterior
            spent = time.process_time() - started
        return Answer([float(belief.mean())], seconds=spent)

    return work


def compared(name: str, question: str, make: Callable[[], Question], bar: float) -> Task:
    cells = {"privug": lambda: asked(make, again=True), "privug-first": lambda: asked(make, again=False)}
    return Task(name, question, cells, bars={"privug-first": bar})


def demo() -> Work:
    """Return the work of `privug demo` in a process of its own, imports and printing included."""

    def work() -> Answer:
        code = "import time; from privug.cli.main import main\ntry: main(['demo'])\nexcept SystemExit: pass\n"
        code += "print(time.process_time())"
        told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        return Answer(seconds=float(told.strip().rsplit("\n", 1)[-1]))

    return work


TASKS = register(
    compared("second-observation-called", "a program of 256 states that is called, seen a second time", called, 20),
    compared("second-observation-rows", "the mean of 100 rows, seen a second time", rows, 1),
    compared("second-observation-sizes", "the mean of a table of random size, seen a second time", sizes, 1),
    Task("demo", "the running example for two attackers, printed", {"privug": demo}, seconds=3),
)
