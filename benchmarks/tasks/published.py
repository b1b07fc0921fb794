"""Published tables: what a table of 30 x 20 cells with 60 suppressed gives away, and what to suppress besides."""

from typing import Any

import numpy as np
from harness.tasks import Task, Work, register, sized

import privug as pv

ROWS, COLUMNS, HIDDEN = sized((30, 20, 60), (8, 6, 10))


def published(smallest: bool) -> list[list[str]]:
    """A table of skewed counts; the smallest cells are suppressed, or cells at random."""
    rng = np.random.default_rng(0)
    counts = rng.negative_binomial(1, 1 / 41, (ROWS, COLUMNS))
    order = np.argsort(counts + rng.random(counts.shape), axis=None) if smallest else rng.permutation(counts.size)
    hidden = np.zeros(counts.size, bool)
    hidden[order[:HIDDEN]] = True
    hidden = hidden.reshape(counts.shape)
    rows = [["row", *(f"c{j}" for j in range(COLUMNS)), "Total"]]
    for i, row in enumerate(counts):
        cells = ["x" if hidden[i, j] else str(count) for j, count in enumerate(row)]
        rows.append([f"r{i}", *cells, str(row.sum())])
    return [*rows, ["Total", *map(str, counts.sum(0)), str(counts.sum())]]


def audited(smallest: bool, **options: Any) -> Work:
    """The work: read and audit; no answer is compared, the tests do that."""
    rows = published(smallest)
    pv.configure(progress=False)

    def work() -> None:
        pv.tables.audit(pv.tables.read(rows), **options)

    return work


SIZE = f"{ROWS} x {COLUMNS} cells, {HIDDEN} suppressed"
TASKS = register(
    Task(
        "published-intervals",
        f"feasible intervals of {SIZE} at random",
        {"privug": lambda: audited(False, prior=None, repair=None)},
        seconds=60,
    ),
    Task(
        "published-beliefs",
        f"intervals and beliefs of {SIZE}, the smallest ones",
        {"privug": lambda: audited(True, repair=None)},
        seconds=60,
    ),
    Task(
        "published-repair",
        f"the smallest further suppression for {SIZE}, the smallest ones",
        {"privug": lambda: audited(True)},
        seconds=60,
        patience=2,
    ),
)
