"""A table with the governor's record in it, the rows that match his, and closed forms of how many there are."""

from collections.abc import Mapping
from math import comb, prod

import numpy as np
from scipy import stats

import privug as pv

COLUMNS = ("zip", "day", "sex")
# How many zips and days there are the paper does not say; these give the counts that its figures show.
ZIPS = [f"{2000 + place}" for place in range(200)]
DAYS = 100
SHARES = {"zip": 1 / 200, "day": 1 / 100, "sex": 1 / 2}
GOVERNOR = {"zip": "2000", "day": 0, "sex": "m", "ill": True}
ILL = 0.2
COMBINATIONS = (("zip",), ("day",), ("sex",), ("zip", "sex"), ("day", "sex"), ("zip", "day"), COLUMNS)
"""In the order of the paper's figures."""


def person(position):
    if position == 0:
        return pv.Row(**GOVERNOR)
    return pv.Row(
        zip=pv.Choice(ZIPS), day=pv.DiscreteUniform(0, DAYS - 1), sex=pv.Choice(["f", "m"]), ill=pv.Bernoulli(ILL)
    )


def matches(row: Mapping, columns) -> bool:
    return all(row[column] == GOVERNOR[column] for column in columns)


def alike(columns):
    """Return the program that counts the rows that match the governor's."""
    return lambda records: sum(matches(row, columns) for row in records)


def healthy(columns):
    """Return the program that counts the healthy among them: if there are none, his diagnosis is known."""
    return lambda records: sum(matches(row, columns) and not row.ill for row in records)


def run(program, rows: int, secret=lambda records: records[1].ill, **settings) -> pv.Result:
    """Run an attack on a table of so many rows; what is asked is mostly what it returns."""
    return pv.Attack(program, {"records": pv.Records(rows, person)}, secret=secret).run(seed=1, **settings)


def share_of(columns) -> float:
    """Return the probability that somebody else has the governor's values."""
    return prod(SHARES[column] for column in columns)


def matching_rows(rows: int, columns) -> "stats.rv_frozen":
    """Return the distribution of the number of rows that match: the governor's and a binomial number of others."""
    return stats.binom(rows - 1, share_of(columns), loc=1)


def all_ill(rows: int, columns) -> float:
    """Return the probability that all rows that match are ill: nobody else matches and is healthy."""
    return (1 - share_of(columns) * (1 - ILL)) ** (rows - 1)


def none_alone(rows: int, values: int) -> float:
    """Return the probability that no value occurs exactly once among uniform ones: inclusion and exclusion."""
    alone = range(min(rows, values) + 1)
    ways = ((-1) ** k * comb(values, k) * _arrangements(rows, k) * (values - k) ** (rows - k) for k in alone)
    return sum(ways) / values**rows


def _arrangements(rows: int, k: int) -> int:
    return prod(range(rows - k + 1, rows + 1))


def named(columns) -> str:
    return " + ".join(columns)


def heights(belief: pv.Belief, values: np.ndarray) -> list[float]:
    """Return the probabilities of whole numbers."""
    found = belief.distribution(2 * len(values))
    return [float(found[value]) if value in found else 0.0 for value in values.tolist()]
