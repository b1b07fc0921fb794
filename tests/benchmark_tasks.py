"""Trivial tasks for the benchmarks' harness: one of each thing that can happen to a cell."""

import os
import time

from harness.tasks import Answer, Growth, Task, register


def right():
    return lambda: 1.0


def wrong():
    return lambda: 1.5


def raising():
    def work():
        raise ValueError("not today")

    return work


def dying():
    return lambda: os.abort()


def hanging():
    return lambda: time.sleep(60)


def sampled():
    return lambda: Answer([1.1], effective=400, seconds=0.5, fixed=0.1)


TASKS = register(
    Task(
        "trivial",
        "what is one?",
        {
            "privug": right,
            "privug-sampling": sampled,
            "pymc": "no gradient",
            "numpy": wrong,
            "loop": raising,
            "random-numbers": dying,
            "brute-force": hanging,
        },
        lambda: [1.0],
        samples=1_000,
        bars={"numpy": 1e-9, "loop": 2},
        memory=1 << 40,
    ),
    Growth("sizes", "how large?", (10, 100), {"privug": lambda n: lambda: n}, lambda n: [n], up_to={"privug": 10}),
)
