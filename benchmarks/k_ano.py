"""10,000 samples of k-anonymity on 500 rows, against drawing the tables by hand and calling the bare program."""

import multiprocessing
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from measuring import Bar, Outcome, compare

import privug as pv
from privug import settings
from privug.mechanisms.anonymisers import k_ano

ROWS, SAMPLES, BLOCK = 500, 10_000, 250
ZIPS = [f"{2000 + k}" for k in range(200)]
SEXES, DIAGNOSES, ILL = ["female", "male"], ["ill", "healthy"], 0.2
COLUMNS = ("zip", "day", "sex")


class Patient(NamedTuple):
    """A health record."""

    zip: str
    day: int
    sex: str
    diagnosis: str


def masked(records):  # type: ignore[no-untyped-def]
    """Release a 2-anonymous table; what is kept of it is which columns it still shows."""
    released = k_ano(records, 2, COLUMNS)
    return [released[0].zip == "*", released[0].day == "*", released[0].sex == "*"]


def patient(position: int) -> pv.Row:
    if position == 0:
        return pv.Row(zip=ZIPS[0], day=0, sex="male", diagnosis="ill")
    diagnosis = pv.Choice(DIAGNOSES, p=[ILL, 1 - ILL])
    return pv.Row(zip=pv.Choice(ZIPS), day=pv.DiscreteUniform(0, 99), sex=pv.Choice(SEXES), diagnosis=diagnosis)


def by_hand(seed: int) -> list[Any]:
    """Draw tables with NumPy, make named tuples of them and call the program."""
    rng = np.random.Generator(np.random.SFC64(seed))
    outputs = []
    for _ in range(BLOCK):
        zips, sexes = rng.integers(200, size=ROWS).tolist(), rng.integers(2, size=ROWS).tolist()
        ill = (rng.random(ROWS) >= ILL).astype(int).tolist()
        days = rng.integers(100, size=ROWS).tolist()
        columns = [ZIPS[k] for k in zips], days, [SEXES[k] for k in sexes], [DIAGNOSES[k] for k in ill]
        rows = [*map(Patient._make, zip(*columns, strict=True))]
        rows[0] = Patient(ZIPS[0], 0, "male", "ill")
        outputs.append(masked(rows))
    return outputs


def overhead(workers: int) -> Outcome:
    attack = pv.Attack(masked, {"records": pv.Records(ROWS, patient)}, secret=lambda records: records[1].diagnosis)
    blocks = range(SAMPLES // BLOCK)

    def bare() -> list[Any]:
        if workers == 1:
            return [output for block in blocks for output in by_hand(block)]
        with multiprocessing.get_context("fork").Pool(workers) as pool:
            return [output for outputs in pool.imap(by_hand, blocks) for output in outputs]

    with settings.limited(workers=workers, native=False):
        timing = compare(partial(attack.run, engine="sample", samples=SAMPLES, seed=1), bare, rounds=3)
    detail = f"tier {attack.lifting.tier}, {SAMPLES:,} calls on {ROWS} rows, {workers} worker(s); {timing}"
    return Outcome(f"k-ano-{workers}", timing.ratio, Bar(1.2), detail)


BENCHMARKS = {"k-ano-1": partial(overhead, 1), "k-ano-2": partial(overhead, 2)}
