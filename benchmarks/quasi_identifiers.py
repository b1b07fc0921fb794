"""All sets of 8 columns of a 30,000-row prior, against counting in one sampled table with pandas, set by set."""

from itertools import combinations

import numpy as np
import pandas as pd
from measuring import Bar, Outcome, compare

import privug as pv
from privug import reidentification

ROWS = 30_000
COLUMNS = {"zip": 500, "day": 366, "sex": 2, "age": 90, "job": 40, "children": 6, "cars": 4, "club": 10}


def shares() -> dict[str, np.ndarray]:
    """Uneven distributions, so that nothing is easy."""
    rng = np.random.default_rng(1)
    return {name: rng.dirichlet(np.ones(count)) for name, count in COLUMNS.items()}


def prior() -> pv.Records:
    cells = {name: pv.Choice(range(len(p)), p=p) for name, p in shares().items()}
    return pv.Records(ROWS, pv.Row(**cells))


def sampled_table() -> pd.DataFrame:
    rng = np.random.default_rng(2)
    return pd.DataFrame({name: rng.choice(len(p), ROWS, p=p) for name, p in shares().items()})


def count_in(frame: pd.DataFrame) -> list[float]:
    """Return the share of unique rows for each set of columns."""
    found = []
    for size in range(1, len(COLUMNS) + 1):
        for subset in combinations(COLUMNS, size):
            groups = frame.groupby(list(subset), sort=False).size()
            found.append(float((groups == 1).sum()) / ROWS)
    return found


def all_subsets() -> Outcome:
    table, frame = prior(), sampled_table()
    timing = compare(lambda: reidentification.quasi_identifiers(table), lambda: count_in(frame), rounds=3)
    detail = (
        f"{2 ** len(COLUMNS) - 1} sets of columns, {ROWS:,} rows; exact over all tables against one table; {timing}"
    )
    return Outcome("quasi-identifiers", timing.ratio, Bar(1.0), detail)


BENCHMARKS = {"quasi-identifiers": all_subsets}
