"""Tables of random size: what sampling them costs beside drawing as many random numbers."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from measuring import Bar, Outcome, compare, fill_normals

import privug as pv
from privug import settings
from privug.cli.running_example import knows_a_bit, mean_age

SAMPLES = 20_000
BAR = Bar(5)


def numpy_mean(records):  # type: ignore[no-untyped-def]
    return np.mean([row.age for row in records])


def over_56(records):  # type: ignore[no-untyped-def]
    return sum(1 for row in records if row.age > 56)


def frame_mean(df: pd.DataFrame):  # type: ignore[no-untyped-def]
    return df.age.mean()


def attack(program: Callable[..., Any], observe: Any = None) -> pv.Attack:
    name = "df" if program is frame_mean else "records"
    table = pv.Records(pv.Binomial(300, 0.3), knows_a_bit)
    secret = (lambda df: df.age[0]) if program is frame_mean else (lambda records: records[0].age)
    return pv.Attack(program, {name: table}, secret, observe=observe)


def sampled(name: str, program: Callable[..., Any], observe: Any = None) -> Outcome:
    """Sample an attack that is new each time, and one that has been run before, against as many normal numbers."""
    workers, drawn = settings.current().workers, [0]

    def run(one: pv.Attack) -> None:
        drawn[0] = one.run(engine="sample", samples=SAMPLES).diagnostics.draws

    run(again := attack(program, observe))
    fill = partial(fill_normals, drawn[0] * 91, workers)  # 90 rows, on average, and a size
    fresh, warm = compare(lambda: run(attack(program, observe)), fill, 5), compare(partial(run, again), fill, 5)
    detail = f"{drawn[0]:,} tables of about 90 rows on {workers} threads; {fresh}; run again {warm.ratio:.2f}"
    return Outcome(name, fresh.ratio, BAR, detail)


NEAR = pv.near(55.3, within=0.1)

BENCHMARKS = {
    "sizes-mean": lambda: sampled("sizes-mean", mean_age),
    "sizes-numpy": lambda: sampled("sizes-numpy", numpy_mean),
    "sizes-count": lambda: sampled("sizes-count", over_56),
    "sizes-frame": lambda: sampled("sizes-frame", frame_mean),
    "sizes-near": lambda: sampled("sizes-near", mean_age, NEAR),
}
