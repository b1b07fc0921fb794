"""Order statistics, facts about continuous cells, and exact values of continuous outputs."""

import statistics

import numpy as np

import privug as pv
from oracles.releases.release import Release, alike


def median_rent(records):
    return statistics.median([row.rent for row in records])


def third_largest(fortunes):
    return sorted(fortunes, reverse=True)[2]


def spread(ages):
    return max(ages) - min(ages)


def summary(records):
    pays = [row.pay for row in records]
    return {"n": len(pays), "mean": sum(pays) / len(pays), "largest": max(pays)}


def third_quartile(xs):
    return np.percentile(xs, 75)


def alice_rich(i):
    return pv.Row(pay=pv.Uniform(40, 200) if i == 0 else pv.Gamma(4, scale=15))


def mean_wage(wages):
    return sum(wages) / len(wages)


def older_pair(alice, bob, carol):
    return (alice + bob + carol) / 3


def square(a):
    return a * a


def in_grams(a, c):
    return 1000 * a if c else a


def total(parts):
    return sum(parts)


def in_order(a, b):
    return sorted([a, b])


def size_and_sum(a, b):
    return abs(a), a + b


ORDERS = (
    Release(
        "median of eleven rents",
        median_rent,
        lambda: {"records": alike(11, rent=lambda: pv.Gamma(5, scale=2))},
        secret=lambda records: records[0].rent,
        observation=pv.near(10, within=0.5),
        query=lambda rent: rent > 10.5,
    ),
    Release(
        "third largest of fifteen",
        third_largest,
        lambda: {"fortunes": [pv.Pareto(2.5, 10) for _ in range(15)]},
        secret=lambda fortunes: fortunes[0],
        observation=pv.between(20, 22),
        query=lambda fortune: fortune > 20,
    ),
    Release(
        "range of eight",
        spread,
        lambda: {"ages": [pv.Normal(40, sd=10) for _ in range(8)]},
        secret=lambda ages: ages[0],
        observation=pv.between(38, 42),
        query=lambda age: age > 55,
    ),
    Release(
        "largest of a summary, the rest unseen",
        summary,
        lambda: {"records": pv.Records(10, alice_rich)},
        secret=lambda records: records[0].pay,
        observation={"largest": pv.near(120, within=2)},
        query=lambda pay: pay > 118,
    ),
    Release(
        "third quartile of nine",
        third_quartile,
        lambda: {"xs": pv.Array(pv.Laplace(0, 1), 9)},
        secret=lambda xs: xs[0],
        observation=pv.between(0.9, 1.1),
        query=lambda x: x > 0.5,
    ),
    Release(
        "mean wage, nobody below the minimum",
        mean_wage,
        lambda: {"wages": [pv.Exponential(scale=10) for _ in range(6)]},
        secret=lambda wages: wages[0],
        observation=pv.between(24, 26),
        query=lambda wage: wage > 30,
        assume=lambda wages: all(wage >= 5 for wage in wages),
    ),
    Release(
        "mean of three, Alice older than Bob",
        older_pair,
        lambda: {"alice": pv.Normal(50, sd=15), "bob": pv.Normal(55, sd=10), "carol": pv.Normal(40, sd=8)},
        secret="alice",
        observation=pv.near(51, within=0.5),
        query=lambda age: age > 60,
        assume=lambda alice, bob: alice > bob,
    ),
    Release(
        "exact value of a square",
        square,
        lambda: {"a": pv.Normal(1, sd=2)},
        secret="a",
        observation=pv.equals(4.0),
        query=lambda a: a > 0,
    ),
    Release(
        "exact value in one of two units",
        in_grams,
        lambda: {"a": pv.Exponential(scale=50), "c": pv.Bernoulli(0.1)},
        secret="c",
        observation=pv.equals(240.0),
        query=lambda c: c == 1,
    ),
    Release(
        "noisy value of a sum of unlike parts",
        total,
        lambda: {"parts": [pv.Uniform(0, 60), pv.Normal(50, sd=6), pv.Triangular(10, 20, 40), pv.Exponential(scale=5)]},
        secret=lambda parts: parts[0],
        observation=pv.noisy(120, sd=4),
        query=lambda part: part > 45,
    ),
    Release(
        "exact values of a pair in order",
        in_order,
        lambda: {"a": pv.Normal(0, sd=1), "b": pv.Normal(1, sd=2)},
        secret="a",
        observation=pv.equals([0.5, 1.25]),
        query=lambda a: a > 1,
    ),
    Release(
        "exact values of a size and a sum",
        size_and_sum,
        lambda: {"a": pv.Normal(0.5, sd=1), "b": pv.Normal(1, sd=2)},
        secret="a",
        observation=pv.equals((0.75, 2.0)),
        query=lambda a: a > 0,
    ),
)
