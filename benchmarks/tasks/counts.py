"""Tables of counts: how the cost of an exact answer grows with the people in them."""

from typing import Any

import numpy as np
from harness.tasks import Growth, Task, register, sized

import privug as pv
from tasks.exact import posterior

SIZES = sized((300, 3_000, 30_000), (300, 3_000))
DISTRICTS, KINDS = [f"r{k}" for k in range(6)], [f"c{k}" for k in range(5)]
SHARES = np.array([0.3, 0.25, 0.2, 0.1, 0.1, 0.05]), np.array([0.4, 0.3, 0.2, 0.0995, 0.0005])


def cases(rows):  # type: ignore[no-untyped-def]
    found = dict.fromkeys("ABC", 0)
    for row in rows:
        if row.ill:
            found[row.zip] += 1
    shown: dict[str, Any] = {z: (n if n >= 3 else "*") for z, n in found.items()}
    shown["total"] = sum(found.values())
    return shown


def two_by_two(rows):  # type: ignore[no-untyped-def]
    return {(z, i): sum(1 for row in rows if row.zip == z and row.ill == i) for z in "AB" for i in (0, 1)}


def with_margins(rows):  # type: ignore[no-untyped-def]
    table = {(a, b): 0 for a in DISTRICTS for b in KINDS}
    for row in rows:
        table[row.region, row.kind] += 1
    shown = {key: (n if n >= 5 else "*") for key, n in table.items()}
    by_region = [sum(table[a, b] for b in KINDS) for a in DISTRICTS]
    return shown, by_region, [sum(table[a, b] for a in DISTRICTS) for b in KINDS], len(rows)


def suppressed(size: int) -> tuple[pv.Attack, Any]:
    zips = pv.Choice(["A", "B", "C"], [0.5, 0.3, 0.2])
    prior = {"rows": pv.Records(size, pv.Row(zip=zips, ill=pv.Bernoulli(20 / size)))}
    seen = {"A": 16, "B": "*", "C": "*", "total": 20}
    return pv.Attack(cases, prior, lambda rows: rows[0].ill), pv.equals(seen)


def small() -> tuple[pv.Attack, Any]:
    prior = {"rows": pv.Records(500, pv.Row(zip=pv.Choice(["A", "B"], [0.6, 0.4]), ill=pv.Bernoulli(0.1)))}
    seen = {("A", 0): 270, ("A", 1): 30, ("B", 0): 180, ("B", 1): 20}
    return pv.Attack(two_by_two, prior, lambda rows: rows[0].ill), pv.equals(seen)


def large() -> tuple[pv.Attack, Any]:
    counts = np.round(10_000 * np.outer(*SHARES)).astype(int)
    counts[:, 4], counts[4:, 3] = [3, 2, 4, 1, 0, 2], [4, 3]
    counts[0, 0] += 10_000 - counts.sum()
    shown = {
        (a, b): (int(counts[i, j]) if counts[i, j] >= 5 else "*")
        for i, a in enumerate(DISTRICTS)
        for j, b in enumerate(KINDS)
    }
    row = pv.Row(region=pv.Choice(DISTRICTS, SHARES[0]), kind=pv.Choice(KINDS, SHARES[1]))
    seen = shown, counts.sum(axis=1).tolist(), counts.sum(axis=0).tolist(), 10_000
    prior = {"rows": pv.Records(10_000, row)}
    return pv.Attack(with_margins, prior, lambda rows: rows[0].kind == "c4"), pv.equals(seen)


TASKS = register(
    Growth(
        "count-tables",
        "P(ill) of one person, given cases by district, small ones suppressed, with a total, over people",
        SIZES,
        {"privug": lambda n: posterior(lambda: suppressed(n))},
        lambda n: [20 / n],
    ),
    Task(
        "count-tables-four-cells",
        "P(ill) of one of 500 people, given a 2 x 2 table",
        {"privug": lambda: posterior(small)},
        lambda: [0.1],
        seconds=1,
    ),
    Task(
        "count-tables-margins",
        "P(kind) of one of 10,000 people, given 6 x 5 cells with margins, eight of them suppressed",
        {"privug": lambda: posterior(large)},
        lambda: [0.0012],
        seconds=2,
    ),
)
