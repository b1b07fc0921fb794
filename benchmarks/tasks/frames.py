"""Programs on data frames, called and traced, against a plain loop that makes its frames by hand."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
from harness.tasks import Answer, Task, Work, register, sized

import privug as pv

ROWS = 200
SAMPLES = sized(1_000, 100)
TRACED_SAMPLES = sized(10_000, 1_000)
ZIPS = np.array(["2300", "2450", "8000"], object)


def mean_by_zip(df: pd.DataFrame):  # type: ignore[no-untyped-def]
    """A filter and a group-by."""
    return df[df.age >= 40].groupby("zip")["income"].mean().to_dict()


def called_mean_by_zip(df: pd.DataFrame):  # type: ignore[no-untyped-def]
    """The same; asking how much memory it takes keeps it in the python tier."""
    df.memory_usage()
    return mean_by_zip(df)


WITH_MEANS = (mean_by_zip, called_mean_by_zip)


def polars_table(df: pl.DataFrame):  # type: ignore[no-untyped-def]
    """A filter and a group-by, published as a frame."""
    return df.filter(pl.col("age") >= 40).group_by("zip").agg(pl.col("income").mean(), n=pl.len()).sort("zip")


def polars_suppressed(df: pl.DataFrame):  # type: ignore[no-untyped-def]
    """Counts of zips, small ones left out."""
    return df["zip"].value_counts().filter(pl.col("count") >= 10).sort("zip").rows()


def polars_bands(df: pl.DataFrame):  # type: ignore[no-untyped-def]
    """Mean income by age band."""
    band = pl.when(pl.col("age") < 40).then(pl.lit("young")).otherwise(pl.lit("old")).alias("band")
    return df.group_by(band).agg(pl.col("income").mean()).sort("band").to_dicts()


def polars_deviation(df: pl.DataFrame):  # type: ignore[no-untyped-def]
    """Largest distance of an income from the mean of its zip."""
    return df.select((pl.col("income") - pl.col("income").mean().over("zip")).abs().max()).item()


def people() -> pv.Records:
    row = pv.Row(age=pv.DiscreteUniform(18, 80), income=pv.Choice([1, 2, 3, 4]), zip=pv.Choice(ZIPS.tolist()))
    return pv.Records(ROWS, row)


def mean_of_a_zip(program: Callable[..., Any], outputs: list[Any]) -> list[float]:
    """Return the mean over samples, of programs whose mean is known."""
    return [float(np.mean([output["2300"] for output in outputs]))] if program in WITH_MEANS else []


def by_privug(program: Callable[..., Any], tier: str, samples: int) -> Work:
    pv.configure(workers=1)
    attack = pv.Attack(program, {"df": people()}, lambda df: df["age"][0])

    def work() -> Answer:
        result = attack.run(engine="sample", samples=samples, seed=1)
        assert attack.lifting.tier == tier, attack.lifting.tier
        return Answer(mean_of_a_zip(program, result.prediction.batch.values()), samples)

    return work


def by_loop(program: Callable[..., Any], samples: int) -> Work:
    """Draw inputs with NumPy and make a frame of each, as one would."""
    frame = pl.DataFrame if program.__name__.startswith("polars") else pd.DataFrame

    def work() -> Answer:
        rng = np.random.Generator(np.random.SFC64(1))
        outputs = []
        for _ in range(samples):
            columns = {
                "age": rng.integers(18, 81, ROWS),
                "income": rng.integers(1, 5, ROWS),
                "zip": ZIPS[rng.integers(3, size=ROWS)],
            }
            outputs.append(program(frame(columns)))
        return Answer(mean_of_a_zip(program, outputs), samples)

    return work


def task(name: str, program: Callable[..., Any], tier: str, samples: int, few: int, bar: float) -> Task:
    """Means of incomes are 2.5, with a deviation of their own for about 43 people."""
    return Task(
        name,
        f"{samples:,} samples of {program.__name__} on {ROWS} rows, {tier}, frames made on both sides",
        {"privug": partial(by_privug, program, tier, samples), "loop": partial(by_loop, program, few)},
        (lambda: [2.5]) if program in WITH_MEANS else None,
        scale=0.18,
        samples=samples,
        bars={"loop": bar},
    )


POLARS = (polars_table, polars_suppressed, polars_bands, polars_deviation)
TASKS = register(
    task("frames-called", called_mean_by_zip, "python", SAMPLES, SAMPLES, 1 / 1.2),
    task("frames-traced", mean_by_zip, "traced", TRACED_SAMPLES, SAMPLES, 100),
    *(
        task(f"frames-{program.__name__.replace('_', '-')}", program, "traced", TRACED_SAMPLES, SAMPLES, 10)
        for program in POLARS
    ),
)
