"""Drawing: the paper's P(8,1), whose cost should be that of its random numbers, in memory that does not grow.

`python drawing.py array 20000` runs it once and prints seconds and peak bytes as JSON.
"""

import json
import sys
from functools import partial
from typing import Any

import numpy as np
from measuring import GIBIBYTE, Bar, Outcome, compare, fill_normals, in_subprocess, peak_memory, seconds

import privug as pv
from privug import settings
from privug.cli.running_example import knows_a_bit, mean_age

SAMPLES = 20_000


def program(s, p):  # type: ignore[no-untyped-def]
    return (s + np.sum(p)) / (1 + len(p))


def loop_program(s, records):  # type: ignore[no-untyped-def]
    return (s + sum(r.value for r in records)) / (1 + len(records))


def run_array(variables: int) -> None:
    prior = {"s": pv.Normal(42, sd=8), "p": pv.Array(pv.Normal(55, sd=1), variables)}
    pv.Attack(program, prior, "s").run(engine="sample", samples=SAMPLES)


def run_records(variables: int) -> None:
    records = pv.Records(variables, pv.Row(value=pv.Normal(55, sd=1)))
    prior = {"s": pv.Normal(42, sd=8), "records": records}
    pv.Attack(loop_program, prior, "s").run(engine="sample", samples=SAMPLES)


FORMS = {"array": run_array, "records": run_records}


def drawing_time(form: str, variables: int, bar: Bar | None) -> Outcome:
    workers = settings.current().workers
    rounds = 5 if bar else 3
    timing = compare(partial(FORMS[form], variables), partial(fill_normals, SAMPLES * (variables + 1), workers), rounds)
    detail = f"{variables:,} variables x {SAMPLES:,} samples on {workers} threads, against NumPy's standard_normal"
    return Outcome(f"drawing-{form}", timing.ratio, bar, f"{detail}; {timing}")


def drawing_memory(form: str, variables: int) -> Outcome:
    run = in_subprocess(__file__, form, str(variables))
    ratio = run["bytes"] / GIBIBYTE
    detail = f"peak of {variables:,} variables x {SAMPLES:,} samples: {run['bytes'] / 2**20:.0f} MiB of 1024"
    return Outcome(f"memory-{form}-{variables // 1000}k", ratio, Bar(1), f"{detail}; {run['seconds']:.1f} s")


def running_example() -> Outcome:
    """The attacker who knows a bit, drawn and traced anew each time, against as many normals."""
    workers = settings.current().workers
    drawn: list[int] = []

    def attack() -> pv.Attack:
        records = pv.Records(pv.Binomial(300, 0.3), knows_a_bit)
        secret = lambda records: records[0].age  # noqa: E731
        return pv.Attack(mean_age, {"records": records}, secret, observe=pv.near(55.3, within=0.005))

    def run(attack: pv.Attack) -> None:
        drawn.append(attack.run(engine="sample").diagnostics.draws)

    run(again := attack())
    count = drawn[0] * 90  # the mean number of rows; names are not drawn, as nobody needs them
    fill = partial(fill_normals, count, workers)
    fresh, warm = compare(lambda: run(attack()), fill, 3), compare(partial(run, again), fill, 3)
    detail = f"{drawn[0]:,} draws of about 90 numbers; {fresh}; without tracing {warm.ratio:.2f}"
    return Outcome("running-example", fresh.ratio, None, detail)


BENCHMARKS = {
    "drawing-array": lambda: drawing_time("array", 20_000, Bar(1.5)),
    "memory-array-20k": lambda: drawing_memory("array", 20_000),
    "drawing-records": lambda: drawing_time("records", 20_000, None),
    "memory-records-20k": lambda: drawing_memory("records", 20_000),
    "memory-array-200k": lambda: drawing_memory("array", 200_000),
    "running-example": running_example,
}


def main(form: str, variables: str) -> dict[str, Any]:
    pv.configure(progress=False)
    return {"seconds": seconds(partial(FORMS[form], int(variables))), "bytes": peak_memory()}


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
