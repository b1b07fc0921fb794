"""Naive anonymisation: seven count queries over 14,000 rows, as ordinary Python; drawing is part of both sides."""

import time
from typing import Any

import numpy as np
from measuring import Bar, Outcome, compare, seconds

import privug as pv
from privug.model.table import row_maker

ROWS = 14_000
SAMPLES = 1_000
PLAIN_SAMPLES = 20
ZIPS = [f"{2000 + k}" for k in range(200)]
SEXES = ["f", "m"]
COLUMNS = ("zip", "day", "sex", "ill")


def matches(records):  # type: ignore[no-untyped-def]
    governor = records[0]
    n = [0, 0, 0, 0, 0, 0, 0]
    for r in records:
        same_zip = r.zip == governor.zip
        same_day = r.day == governor.day
        same_sex = r.sex == governor.sex
        if same_zip:
            n[0] += 1
        if same_day:
            n[1] += 1
        if same_sex:
            n[2] += 1
        if same_zip and same_day:
            n[3] += 1
        if same_zip and same_sex:
            n[4] += 1
        if same_day and same_sex:
            n[5] += 1
        if same_zip and same_day and same_sex:
            n[6] += 1
    return n


def person(position: int) -> pv.Row:
    ill = 1 if position == 0 else pv.Bernoulli(0.2)
    return pv.Row(zip=pv.Choice(ZIPS), day=pv.DiscreteUniform(0, 99), sex=pv.Choice(SEXES), ill=ill)


def attack(program: Any = matches) -> pv.Attack:
    return pv.Attack(program, {"records": pv.Records(ROWS, person)}, secret=lambda records: records[0].sex)


def plain_calls() -> None:
    """Draw tables with NumPy, build their rows and call the program."""
    rng = np.random.default_rng(0)
    zips, sexes, make = np.array(ZIPS, object), np.array(SEXES, object), row_maker(COLUMNS)
    for _ in range(PLAIN_SAMPLES):
        columns = (
            zips[rng.integers(200, size=ROWS)].tolist(),
            rng.integers(100, size=ROWS).tolist(),
            sexes[rng.integers(2, size=ROWS)].tolist(),
            (rng.random(ROWS) < 0.2).tolist(),
        )
        matches([*map(make, zip(*columns, strict=True))])


def seven_queries() -> Outcome:
    started = time.perf_counter()
    question = attack()
    question.question.case()
    prepared = time.perf_counter() - started
    timing = compare(plain_calls, lambda: question.run(engine="sample", samples=SAMPLES, seed=1), rounds=3)
    ratio = timing.ratio * SAMPLES / PLAIN_SAMPLES
    detail = f"{timing.right:.3g} s for {SAMPLES:,} samples; making and tracing the table beforehand {prepared:.2g} s"
    return Outcome("anonymisation", ratio, Bar(20, at_least=True), detail)


def one_query(columns: tuple[str, ...]) -> pv.Attack:
    def program(records):  # type: ignore[no-untyped-def]
        me = records[0]
        return all(r.ill for r in records if all(r[column] == me[column] for column in columns))

    return attack(program)


def exact_queries() -> Outcome:
    """All seven disclosure queries exactly, against drawing samples of the table."""
    subsets = [("zip",), ("day",), ("sex",), ("zip", "day"), ("zip", "sex"), ("day", "sex"), ("zip", "day", "sex")]
    queries = [one_query(columns) for columns in subsets]
    drawn = attack()
    for query in (*queries, drawn):
        query.question.case()
    exact = min(seconds(lambda: [query.run(engine="exact") for query in queries]) for _ in range(3))
    sampled = min(seconds(lambda: drawn.run(engine="sample", samples=SAMPLES, seed=1)) for _ in range(3))
    detail = f"{exact:.3g} s for seven queries, {sampled:.3g} s for {SAMPLES:,} samples of the table"
    return Outcome("anonymisation-exact", exact / sampled, Bar(1.0), detail)


BENCHMARKS = {"anonymisation": seven_queries, "anonymisation-exact": exact_queries}
