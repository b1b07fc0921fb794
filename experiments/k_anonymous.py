"""An anonymiser that masks whole columns until every combination of values is that of at least k rows."""

import time
from collections import Counter
from functools import cache
from itertools import combinations

import privug as pv

from .governor import COLUMNS, COMBINATIONS, GOVERNOR
from .governor import run as attacked

ROWS, K, SAMPLES = 500, 2, 10_000


def k_anonymous(table, k):
    """Mask the columns of each combination, the smaller ones first, some of whose values fewer than k rows have."""
    columns = dict(table)
    for size in range(1, len(COLUMNS) + 1):
        for chosen in combinations(COLUMNS, size):
            if min(Counter(zip(*(columns[name] for name in chosen), strict=True)).values()) < k:
                columns |= {name: ["*"] * len(columns[name]) for name in chosen}
    return columns


def released(records):
    """Return, for each combination, how many released rows match the governor's and whether they are all ill."""
    columns = k_anonymous({name: [row[name] for row in records] for name in COLUMNS}, K)
    same = {name: [value == GOVERNOR[name] for value in columns[name]] for name in COLUMNS}
    ill = [row.ill for row in records]
    matching = [
        [is_ill for *all_same, is_ill in zip(*(same[name] for name in chosen), ill, strict=True) if all(all_same)]
        for chosen in COMBINATIONS
    ]
    return [len(rows) for rows in matching], [len(rows) > 0 and all(rows) for rows in matching]


@cache
def sampled() -> tuple[pv.Belief, float]:
    """Return what is predicted of the release by the paper's full number of samples, and the seconds it took."""
    started = time.perf_counter()
    belief = attacked(released, ROWS, engine="sample", samples=SAMPLES).prediction
    return belief, time.perf_counter() - started
