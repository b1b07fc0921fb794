"""The python tier: programs that cannot be traced, against a plain loop over the same inputs."""

import gc
import multiprocessing
from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from measuring import Bar, Outcome, compare

import privug as pv
from privug import settings

ROWS = 100
SAMPLES = 3_000
TIER_BAR = Bar(1.3)
POSTCODES = ["2300", "2400", "2500", "2600"]


class Person(NamedTuple):
    """A row as one would write it by hand."""

    postcode: str
    age: float


# `try` keeps these programs in the python tier, whatever the traced tier learns to do.
def nested_loops(arr, c):  # type: ignore[no-untyped-def]
    """The paper's f(arr, c) of RQ3, with a decision on each value."""
    total = 0
    try:
        for _ in range(c):
            for value in arr:
                if value % 2:
                    total += value
    except TypeError:
        return None
    return total


def group_by(records):  # type: ignore[no-untyped-def]
    """The largest mean age of a postcode."""
    groups = {}
    try:
        for row in records:
            groups.setdefault(row.postcode, []).append(row.age)
    except TypeError:
        return None
    return max(sum(ages) / len(ages) for ages in groups.values())


def one_branch(x):  # type: ignore[no-untyped-def]
    try:
        return "high" if x > 1 else "low"
    except TypeError:
        return None


class Patient(NamedTuple):
    """A health record."""

    name: str
    zip: str
    day: str
    sex: str
    diagnosis: str


PATIENTS = 500
PATIENT_SAMPLES = 600
BLOCK = 50
NAMES = [f"person {k}" for k in range(1000)]
ZIPS = [f"{1000 + k}" for k in range(200)]
DAYS = [f"day {k}" for k in range(365)]
SEXES, DIAGNOSES, ILL = ["female", "male"], ["ill", "healthy"], 0.2


def k_ano(k, records):  # type: ignore[no-untyped-def]
    """The paper's k-anonymity: whatever distinguishes fewer than k people is masked for all."""
    masked = set()
    for size in (1, 2, 3):
        for subset in combinations(("zip", "day", "sex"), size):
            counts = Counter(tuple(getattr(row, name) for name in subset) for row in records)
            if min(counts.values()) < k:
                masked.update(subset)
    shown = ("zip", "day", "sex", "diagnosis")
    return [tuple("*" if name in masked else getattr(row, name) for name in shown) for row in records]


def patient(position: int) -> pv.Row:
    """What the paper's attacker knows: the governor's row, and how the others are distributed."""
    diagnosis = pv.Choice(DIAGNOSES, p=[ILL, 1 - ILL])
    if position == 0:
        return pv.Row(name=NAMES[0], zip=ZIPS[0], day=DAYS[0], sex=SEXES[1], diagnosis=diagnosis)
    others = {"name": pv.Choice(NAMES), "zip": pv.Choice(ZIPS), "day": pv.Choice(DAYS), "sex": pv.Choice(SEXES)}
    return pv.Row(**others, diagnosis=diagnosis)


def k_ano_by_hand(seed: int) -> list[Any]:
    """Draw tables with NumPy, make named tuples of them and call the program."""
    rng = np.random.Generator(np.random.SFC64(seed))
    outputs = []
    for _ in range(BLOCK):
        drawn = [rng.integers(len(values), size=PATIENTS).tolist() for values in (NAMES, ZIPS, DAYS, SEXES)]
        ill = (rng.random(PATIENTS) >= ILL).astype(int).tolist()
        columns = zip((NAMES, ZIPS, DAYS, SEXES, DIAGNOSES), (*drawn, ill), strict=True)
        rows = [*map(Patient._make, zip(*([v[code] for code in codes] for v, codes in columns), strict=True))]
        rows[0] = Patient(NAMES[0], ZIPS[0], DAYS[0], SEXES[1], rows[0].diagnosis)
        outputs.append(k_ano(2, rows))
    return outputs


def k_ano_overhead(workers: int) -> Outcome:
    prior = {"k": 2, "records": pv.Records(PATIENTS, patient)}
    attack = pv.Attack(k_ano, prior, secret=lambda records: records[0].diagnosis)
    blocks = range(PATIENT_SAMPLES // BLOCK)

    def by_hand() -> list[Any]:
        if workers == 1:
            return [output for block in blocks for output in k_ano_by_hand(block)]
        with multiprocessing.get_context("fork").Pool(workers) as pool:
            return [output for outputs in pool.imap(k_ano_by_hand, blocks) for output in outputs]

    with settings.limited(workers=workers, native=False):
        timing = compare(partial(attack.run, engine="sample", samples=PATIENT_SAMPLES, seed=1), by_hand, rounds=7)
    detail = (
        f"tier {attack.lifting.tier}, {PATIENT_SAMPLES:,} calls on {PATIENTS} rows, {workers} worker(s), drawing and "
        f"rows included on both sides; {timing}"
    )
    return Outcome(f"python-k-ano-{workers}", timing.ratio, Bar(1.2), detail)


def person() -> pv.Row:
    return pv.Row(postcode=pv.Choice(POSTCODES), age=pv.Normal(55, sd=3.5))


def overhead(
    program: Callable[..., Any],
    prior: dict[str, Any],
    secret: Any,
    inputs: Callable[..., tuple[Any, ...]],
    samples: int = SAMPLES,
    bar: Bar | None = TIER_BAR,
) -> Outcome:
    """Time a run against plain calls; `inputs` is the query that gives the arguments of each call."""
    attack = pv.Attack(program, prior, secret)
    run = partial(attack.run, engine="sample", samples=samples, seed=1)
    with settings.limited(workers=1):
        result = run()
        # Quantities asked for later do not change the draws: these are the very inputs of the run.
        calls = result.belief(inputs).batch.values()
        agrees = [program(*arguments) for arguments in calls] == result.prediction.batch.values()
        gc.freeze()  # or the run would pay for collecting garbage among the inputs of the plain calls
        try:
            timing = compare(run, lambda: [program(*arguments) for arguments in calls], rounds=9)
        finally:
            gc.unfreeze()
    each = f"{timing.left / samples * 1e6:.3g} us a call against {timing.right / samples * 1e6:.3g} us"
    checked = "" if agrees else "; OUTPUTS DIFFER from plain calls"
    detail = f"tier {attack.lifting.tier}, {samples:,} calls, one worker; {each}; {timing}{checked}"
    return Outcome(f"python-{program.__name__.replace('_', '-')}", timing.ratio, bar, detail)


def nested_loops_overhead() -> Outcome:
    prior = {"arr": pv.Array(pv.DiscreteUniform(0, 9), ROWS), "c": 10}
    return overhead(nested_loops, prior, lambda arr: arr[0], lambda arr, c: (arr, c))


def group_by_overhead() -> Outcome:
    """Against rows that lie ready: says what building the rows costs, which such a cheap program cannot hide."""
    prior = {"records": pv.Records(ROWS, person())}
    return overhead(group_by, prior, lambda records: records[0].age, lambda records: (records,), bar=None)


def group_by_drawn_overhead() -> Outcome:
    """Against a plain loop that draws its inputs with NumPy and makes named tuples of them, as one would by hand."""
    prior = {"records": pv.Records(ROWS, person())}
    attack = pv.Attack(group_by, prior, secret=lambda records: records[0].age)

    def by_hand() -> list[float]:
        rng = np.random.Generator(np.random.SFC64(1))
        outputs = []
        for _ in range(SAMPLES):
            codes, ages = rng.integers(4, size=ROWS).tolist(), rng.normal(55, 3.5, ROWS).tolist()
            rows = [Person(POSTCODES[code], age) for code, age in zip(codes, ages, strict=True)]
            outputs.append(group_by(rows))
        return outputs

    with settings.limited(workers=1):
        timing = compare(partial(attack.run, engine="sample", samples=SAMPLES, seed=1), by_hand, rounds=9)
    detail = f"drawing and rows included on both sides, {SAMPLES:,} calls, one worker; {timing}"
    return Outcome("python-group-by-drawn", timing.ratio, TIER_BAR, detail)


def one_branch_overhead() -> Outcome:
    return overhead(one_branch, {"x": pv.Normal(0, sd=1)}, "x", lambda x: (x,), 50 * SAMPLES, None)


BENCHMARKS = {
    "python-nested-loops": nested_loops_overhead,
    "python-group-by": group_by_overhead,
    "python-group-by-drawn": group_by_drawn_overhead,
    "python-one-branch": one_branch_overhead,
    "python-k-ano-1": partial(k_ano_overhead, 1),
    "python-k-ano-2": partial(k_ano_overhead, 2),
}
