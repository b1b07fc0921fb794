"""Releases that the exact engine refuses, beside those with oracles: what is asked of it most and cannot be had yet."""

import numpy as np

import privug as pv
from oracles.releases.release import Release, alike


def variance(xs):
    return np.var(xs)


def trimmed_mean(xs):
    kept = sorted(xs)[1:-1]
    return sum(kept) / len(kept)


def share_of_income(records):
    return sum(row.rent for row in records) / sum(row.income for row in records)


def slope(hours, pays):
    return np.sum(hours * pays) / np.sum(hours * hours)


def queue_left(arrivals):
    queue = 0
    for arrival in arrivals:
        queue = max(0, queue + arrival - 5)
    return queue


def warm_days(mean, spread, days):
    return sum(day > 20 for day in days)


def shared_mean_and_spread():
    mean, spread = pv.Normal(18, sd=2), pv.Uniform(1, 4)
    return {"mean": mean, "spread": spread, "days": pv.Array(pv.Normal(mean, sd=spread), 10)}


BEYOND = (
    Release(
        "variance",
        variance,
        lambda: {"xs": pv.Array(pv.Normal(50, sd=10), 12)},
        secret=lambda xs: xs[0],
        observation=pv.near(120, within=15),
        query=lambda x: x > 60,
    ),
    Release(
        "trimmed mean",
        trimmed_mean,
        lambda: {"xs": [pv.Normal(50, sd=10) for _ in range(8)]},
        secret=lambda xs: xs[0],
        observation=pv.near(52, within=1),
        query=lambda x: x > 60,
    ),
    Release(
        "ratio of two totals",
        share_of_income,
        lambda: {"records": alike(8, rent=lambda: pv.Gamma(5, scale=2), income=lambda: pv.Gamma(9, scale=4))},
        secret=lambda records: records[0].rent,
        observation=pv.near(0.3, within=0.02),
        query=lambda rent: rent > 12,
    ),
    Release(
        "slope of a regression",
        slope,
        lambda: {"hours": pv.Array(pv.Uniform(10, 40), 6), "pays": pv.Array(pv.Normal(900, sd=200), 6)},
        secret=lambda pays: pays[0],
        observation=pv.near(34, within=2),
        query=lambda pay: pay > 1000,
    ),
    Release(
        "queue at the end of the day",
        queue_left,
        lambda: {"arrivals": [pv.Exponential(scale=5) for _ in range(10)]},
        secret=lambda arrivals: arrivals[0],
        observation=pv.near(8, within=1),
        query=lambda arrival: arrival > 10,
    ),
    Release(
        "mean and spread that all share",
        warm_days,
        shared_mean_and_spread,
        secret="mean",
        observation=pv.equals(4),
        query=lambda mean: mean > 19,
    ),
)
