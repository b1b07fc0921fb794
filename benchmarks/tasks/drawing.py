"""Drawing: sampling whose cost should be that of its random numbers, in memory that does not grow."""

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from harness.tasks import Answer, Growth, Task, Work, register, sized

import privug as pv
from privug import settings

SAMPLES = sized(20_000, 2_000)
TABLES = 20_000
BUFFER = 1 << 17  # numbers, so 1 MiB: what a core's cache holds
GIBIBYTE = 1 << 30


def fill_normals(count: int) -> None:
    """Draw standard normals as fast as NumPy can: the same thread fills the same buffer again and again."""
    workers = settings.current().workers

    def fill(worker: int) -> None:
        rng = np.random.Generator(np.random.SFC64(worker))
        buffer = np.empty(BUFFER)
        whole, rest = divmod(count // workers, BUFFER)
        for _ in range(whole):
            rng.standard_normal(out=buffer)
        rng.standard_normal(out=buffer[:rest])

    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(fill, range(workers)))


def program(s, p):  # type: ignore[no-untyped-def]
    return (s + np.sum(p)) / (1 + len(p))


def loop_program(s, records):  # type: ignore[no-untyped-def]
    return (s + sum(r.value for r in records)) / (1 + len(records))


def by_privug(rows: bool, variables: int) -> Work:
    def work() -> Answer:
        others = pv.Records(variables, pv.Row(value=pv.Normal(55, sd=1))) if rows else None
        prior = {"s": pv.Normal(42, sd=8), **({"records": others} if rows else {"p": array(variables)})}
        result = pv.Attack(loop_program if rows else program, prior, "s").run(engine="sample", samples=SAMPLES, seed=1)
        return Answer([float(result.prediction.mean())], SAMPLES)

    return work


def array(variables: int) -> Any:
    return pv.Array(pv.Normal(55, sd=1), variables)


def by_pymc(variables: int) -> Work:
    """A part of the samples, as all of them are held in memory."""
    import pymc as pm

    few = max(10, min(SAMPLES, 20_000_000 // variables))
    with pm.Model():
        s, p = pm.Normal("s", 42.0, 8.0), pm.Normal("p", 55.0, 1.0, shape=variables)
        output = (s + p.sum()) / (1 + variables)
    drawn = pm.compile([], output, random_seed=1)

    def work() -> Answer:
        return Answer([float(np.mean([drawn() for _ in range(few)]))], few)

    return work


def by_loop(variables: int) -> Work:
    import random

    few = max(2, 200_000 // variables)

    def work() -> Answer:
        draw = random.Random(1)
        found = [program(draw.gauss(42, 8), [draw.gauss(55, 1) for _ in range(variables)]) for _ in range(few)]
        return Answer([sum(found) / few], few)

    return work


def random_numbers(variables: int) -> Work:
    def work() -> Answer:
        fill_normals(SAMPLES * (variables + 1))
        return Answer(effective=SAMPLES)

    return work


def truth(variables: int) -> list[float]:
    return [(42 + 55 * variables) / (variables + 1)]


def deviation(variables: int) -> float:
    return math.sqrt(64 + variables) / (variables + 1)


# sizes: tables of random size, of about 90 rows
def mean_age(records):  # type: ignore[no-untyped-def]
    return sum(row.age for row in records) / len(records)


def numpy_mean(records):  # type: ignore[no-untyped-def]
    return np.mean([row.age for row in records])


def over_56(records):  # type: ignore[no-untyped-def]
    return sum(1 for row in records if row.age > 56)


def frame_mean(df: pd.DataFrame):  # type: ignore[no-untyped-def]
    return df.age.mean()


def attack(program: Callable[..., Any], observe: Any = None) -> pv.Attack:
    from privug.cli.running_example import knows_a_bit

    name = "df" if program is frame_mean else "records"
    table = pv.Records(pv.Binomial(300, 0.3), knows_a_bit)
    secret = (lambda df: df.age[0]) if program is frame_mean else (lambda records: records[0].age)
    return pv.Attack(program, {name: table}, secret, observe=observe)


def of_random_size(name: str, program: Callable[..., Any], observe: Any = None) -> Task:
    """A new attack each time, against as many normal numbers."""

    def run() -> pv.Result:
        return attack(program, observe).run(engine="sample", samples=TABLES, seed=1)

    def ours() -> Work:
        return lambda: Answer(effective=TABLES) if run() else None

    def limit() -> Work:
        numbers = run().diagnostics.draws * 91  # 90 rows, on average, and a size
        return lambda: Answer(effective=TABLES) if fill_normals(numbers) is None else None

    question = f"{TABLES:,} samples of {program.__name__} of a table of about 90 rows"
    question += ", accepted by a window" if observe else ""
    cells = {"privug": ours, "random-numbers": limit}
    return Task(f"sizes-{name}", question, cells, samples=TABLES, bars={"random-numbers": 1 / 5})


DRAWING: dict[str, Any] = {
    "oracle": truth,
    "scale": deviation,
    "samples": SAMPLES,
    "bars": {"random-numbers": 1 / 1.5},
    "memory": GIBIBYTE,
}
TASKS = register(
    Growth(
        "drawing-array",
        f"{SAMPLES:,} samples of the mean of an array of n normals",
        sized((200, 2_000, 20_000), (200, 2_000)),
        {
            "privug": partial(by_privug, False),
            "pymc": by_pymc,
            "loop": by_loop,
            "random-numbers": random_numbers,
        },
        **DRAWING,
    ),
    Growth(
        "drawing-records",
        f"{SAMPLES:,} samples of the mean of n rows, by a loop",
        sized((200, 2_000, 20_000), (200, 2_000)),
        {"privug": partial(by_privug, True), "loop": by_loop, "random-numbers": random_numbers},
        **{**DRAWING, "bars": {}},
    ),
    of_random_size("mean", mean_age),
    of_random_size("numpy", numpy_mean),
    of_random_size("count", over_56),
    of_random_size("frame", frame_mean),
    of_random_size("near", mean_age, pv.near(55.3, within=0.1)),
)
