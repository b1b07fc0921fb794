"""Programs on data frames: calls against a plain loop that makes its frames by hand, and tracing against calls."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
from measuring import Bar, Outcome, compare

import privug as pv
from privug import settings

ROWS = 200
SAMPLES = 1_000
TRACED_SAMPLES = 10_000
ZIPS = np.array(["2300", "2450", "8000"], object)


def mean_by_zip(df: pd.DataFrame):  # type: ignore[no-untyped-def]
    """A filter and a group-by."""
    return df[df.age >= 40].groupby("zip")["income"].mean().to_dict()


def called_mean_by_zip(df: pd.DataFrame):  # type: ignore[no-untyped-def]
    """The same; asking how much memory it takes keeps it in the python tier."""
    df.memory_usage()
    return mean_by_zip(df)


def people() -> pv.Records:
    row = pv.Row(age=pv.DiscreteUniform(18, 80), income=pv.Choice([1, 2, 3, 4]), zip=pv.Choice(ZIPS.tolist()))
    return pv.Records(ROWS, row)


def by_hand() -> list[object]:
    """Draw inputs with NumPy and make a frame of each, as one would."""
    rng = np.random.Generator(np.random.SFC64(1))
    outputs = []
    for _ in range(SAMPLES):
        columns = {
            "age": rng.integers(18, 81, ROWS),
            "income": rng.integers(1, 5, ROWS),
            "zip": ZIPS[rng.integers(3, size=ROWS)],
        }
        outputs.append(called_mean_by_zip(pd.DataFrame(columns)))
    return outputs


def called() -> Outcome:
    attack = pv.Attack(called_mean_by_zip, prior={"df": people()}, secret=lambda df: df.age[0])
    with settings.limited(workers=1):
        timing = compare(partial(attack.run, engine="sample", samples=SAMPLES, seed=1), by_hand, rounds=5)
    detail = f"tier {attack.lifting.tier}, drawing and frames included on both sides, {SAMPLES:,} calls; {timing}"
    return Outcome("frames-called", timing.ratio, Bar(1.2), detail)


def traced() -> Outcome:
    """Samples a second, traced, over those of calls: as many more samples are drawn as the bar asks for."""
    prior = {"df": people()}
    tracing = pv.Attack(mean_by_zip, prior=prior, secret=lambda df: df.age[0])
    calling = pv.Attack(called_mean_by_zip, prior=prior, secret=lambda df: df.age[0])
    with settings.limited(workers=1):
        timing = compare(
            partial(tracing.run, engine="sample", samples=TRACED_SAMPLES, seed=1),
            partial(calling.run, engine="sample", samples=TRACED_SAMPLES // 100, seed=1),
            rounds=5,
        )
    assert (tracing.lifting.tier, calling.lifting.tier) == ("traced", "python")
    detail = f"{TRACED_SAMPLES:,} samples of {ROWS} rows, traced, against a hundredth of them by calls; {timing}"
    return Outcome("frames-traced", timing.ratio, Bar(1.0), detail)


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


POLARS = (polars_table, polars_suppressed, polars_bands, polars_deviation)


def traced_polars() -> Outcome:
    """The same for programs on polars frames, which calls are quicker on: of several, the one that gains least."""
    found = {}
    for program in POLARS:
        prior = {"df": people()}
        tracing = pv.Attack(program, prior=prior, secret=lambda df: df["age"][0])
        calling = pv.Attack(opaque(program), prior={"df": people().as_frame("polars")}, secret=lambda df: df["age"][0])
        with settings.limited(workers=1):
            found[program.__name__] = compare(
                partial(tracing.run, engine="sample", samples=TRACED_SAMPLES, seed=1),
                partial(calling.run, engine="sample", samples=TRACED_SAMPLES // 10, seed=1),
                rounds=5,
            )
        assert (tracing.lifting.tier, calling.lifting.tier) == ("traced", "python")
    ratios = ", ".join(f"{name} {timing.ratio:.2f}" for name, timing in found.items())
    detail = f"{TRACED_SAMPLES:,} samples of {ROWS} rows, traced, against a tenth of them by calls: {ratios}"
    return Outcome("frames-polars-traced", max(timing.ratio for timing in found.values()), Bar(1.0), detail)


def opaque(program: Callable[..., Any]) -> Callable[..., Any]:
    """Return the same program in the python tier: no other has the memory that a frame takes."""

    def called(df):  # type: ignore[no-untyped-def]
        df.estimated_size()
        return program(df)

    return called


BENCHMARKS = {"frames-called": called, "frames-traced": traced, "frames-polars-traced": traced_polars}
