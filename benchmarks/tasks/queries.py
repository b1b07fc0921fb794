"""Queries: traced against single calls of SQLite and batches of DuckDB; an exact posterior of a table of counts."""

import sqlite3
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import polars as pl
import scipy.stats
from harness.tasks import Answer, Task, Work, register, sized

import privug as pv

ROWS, PEOPLE = 200, 300
SAMPLES = sized(10_000, 1_000)
FEW = sized(1_000, 100)
ZIPS = np.array(["2300", "2450", "8000"], object)
SUPPRESSED = "SELECT zip, CASE WHEN COUNT(*) >= 10 THEN COUNT(*) END AS n FROM people WHERE age >= 40 GROUP BY zip"
COUNTS = "SELECT zip, ill, COUNT(*) AS n FROM people GROUP BY zip, ill HAVING COUNT(*) >= 5"
SEEN = {("A", 0): 160, ("A", 1): 20, ("B", 0): 110, ("B", 1): 10}


def mean_of_a_zip(outputs: list[Any]) -> list[float]:
    """Return the mean count of the first zip: 200 people, of whom 41 of 63 are old enough, in one of three zips."""
    return [float(np.mean([next(row["n"] for row in rows if row["zip"] == "2300") for rows in outputs]))]


def people() -> pv.Records:
    return pv.Records(ROWS, pv.Row(age=pv.DiscreteUniform(18, 80), zip=pv.Choice(ZIPS.tolist())))


def by_privug() -> Work:
    pv.configure(workers=1)
    attack = pv.Attack(pv.sql(SUPPRESSED), {"people": people()}, lambda people: people[0].age)

    def work() -> Answer:
        result = attack.run(engine="sample", samples=SAMPLES, seed=1)
        assert attack.lifting.tier == "traced", attack.lifting
        return Answer(mean_of_a_zip(list(result.prediction.batch.values())), SAMPLES)

    return work


def drawn(rng: np.random.Generator) -> list[tuple[Any, Any]]:
    return list(zip(rng.integers(18, 81, ROWS).tolist(), ZIPS[rng.integers(3, size=ROWS)].tolist(), strict=True))


def by_single_calls() -> Work:
    """Call the same query in SQLite, sample by sample."""
    query = pv.sql(SUPPRESSED, dialect="sqlite")

    def work() -> Answer:
        rng = np.random.Generator(np.random.SFC64(1))
        tables = [[{"age": age, "zip": zipped} for age, zipped in drawn(rng)] for _ in range(FEW)]
        return Answer(mean_of_a_zip([query(rows) for rows in tables]), FEW)

    return work


def by_sqlite() -> Work:
    """Put the rows of each sample into a table and ask for them, as one would."""
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE people (age INTEGER, zip TEXT)")

    def work() -> Answer:
        rng, outputs = np.random.Generator(np.random.SFC64(1)), []
        for _ in range(FEW):
            connection.execute("DELETE FROM people")
            connection.executemany("INSERT INTO people VALUES (?, ?)", drawn(rng))
            outputs.append([dict(zip(("zip", "n"), row, strict=True)) for row in connection.execute(SUPPRESSED)])
        return Answer(mean_of_a_zip(outputs), FEW)

    return work


def by_batches() -> Work:
    """Ask DuckDB about many samples at once, as Privug does with what is not traced."""
    query = pv.sql(SUPPRESSED)

    def work() -> Answer:
        rng = np.random.Generator(np.random.SFC64(1))
        shape = FEW * ROWS
        whole = pl.DataFrame({"age": rng.integers(18, 81, shape), "zip": ZIPS[rng.integers(3, size=shape)]})
        tables = [whole.slice(place * ROWS, ROWS) for place in range(FEW)]
        return Answer(mean_of_a_zip(query.call_many([([rows], {}) for rows in tables])), FEW)

    return work


def posterior() -> Work:
    row = pv.Row(zip=pv.Choice(["A", "B"], p=[0.6, 0.4]), ill=pv.Bernoulli(0.1))
    seen = [{"zip": zipped, "ill": ill, "n": n} for (zipped, ill), n in SEEN.items()]

    def work() -> list[float]:
        attack = pv.Attack(pv.sql(COUNTS), {"people": pv.Records(PEOPLE, row)}, lambda people: people[0].ill)
        result = attack.run(seen)
        return [float(result.posterior.mean()), float(np.log(float(result.diagnostics.evidence)))]

    return work


def of_counts() -> list[float]:
    law = scipy.stats.multinomial(PEOPLE, [0.54, 0.06, 0.36, 0.04])
    return [0.1, float(law.logpmf(list(SEEN.values())))]


TOOLS: dict[str, Callable[[], Work]] = {
    "privug": by_privug, "loop": by_single_calls, "numpy": by_sqlite, "brute-force": by_batches,
}  # fmt: skip
TASKS = register(
    Task(
        "query-suppressed",
        f"{SAMPLES:,} samples of a query with suppression on {ROWS} rows; loop: calls of it in SQLite, by hand: a "
        "table kept in SQLite, brute force: batches of DuckDB",
        {name: partial(prepare) for name, prepare in TOOLS.items()},
        lambda: [ROWS * 41 / 63 / 3],
        scale=5.83,
        samples=SAMPLES,
        bars={"loop": 30},
    ),
    Task(
        "query-posterior",
        f"the exact posterior of a count by two keys over {PEOPLE} rows, from the text of the query",
        {"privug": posterior},
        of_counts,
        within=1e-9,
        seconds=1,
    ),
)
