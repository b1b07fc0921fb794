"""Several quantities in a row, secrets that are functions of a row or of the whole table, facts about the table."""

import numpy as np

import privug as pv
from oracles.releases.release import Release, alike


def mean_pay(records):
    pays = np.array([row.pay for row in records])
    return np.average(pays)


def revenue(records):
    return sum(row.price * row.quantity for row in records)


def rounded_mark(records):
    return round(sum(row.mark for row in records) / len(records))


def band(records):
    mark = records[0].mark
    if mark < 40:
        return "fail"
    return "merit" if mark >= 70 else "pass"


def alice_earns_more(i):
    return pv.Row(pay=pv.Normal(60, sd=10) if i == 0 else pv.Normal(50, sd=12))


def total_claims(claims):
    return sum(row.amount for row in claims)


def mean_and_variance(xs):
    return np.mean(xs), np.var(xs)


def costs(records):
    return sum(row.cost if row.ill else 0 for row in records)


def mean_of_large(sales):
    large = [sale for sale in sales if sale > 30]
    return sum(large) / len(large) if len(large) >= 10 else 0


def smokers_and_costs(records):
    smokers = [row for row in records if row.smokes]
    return len(smokers), sum(row.cost for row in smokers)


TABLES = (
    Release(
        "mean of those above a threshold",
        mean_of_large,
        lambda: {"sales": pv.Array(pv.Exponential(scale=20), 200)},
        secret=lambda sales: sales[0],
        observation=pv.near(53, within=0.5),
        query=lambda sale: sale > 60,
    ),
    Release(
        "count and sum in a table of a thousand",
        smokers_and_costs,
        lambda: {"records": alike(1000, smokes=lambda: pv.Bernoulli(0.2), cost=lambda: pv.Gamma(2, scale=5))},
        secret=lambda records: records[0].cost,
        observation=(pv.equals(205), pv.near(2100, within=50)),
        query=lambda cost: cost > 20,
    ),
    Release(
        "price times quantity",
        revenue,
        lambda: {"records": alike(6, price=lambda: pv.Normal(20, sd=4), quantity=lambda: pv.DiscreteUniform(1, 5))},
        secret=lambda records: records[0].quantity,
        observation=pv.near(420, within=10),
        query=lambda quantity: quantity >= 4,
    ),
    Release(
        "band of a mark behind a rounded mean",
        rounded_mark,
        lambda: {"records": alike(25, mark=lambda: pv.TruncatedNormal(58, sd=18, low=0, high=100))},
        secret=band,
        observation=pv.equals(61),
        query=lambda label: label == "merit",
    ),
    Release(
        "whether Alice earns more than Bob",
        mean_pay,
        lambda: {"records": pv.Records(6, alice_earns_more)},
        secret=lambda records: records[0].pay > records[1].pay,
        observation=pv.near(56, within=1),
        query=lambda more: more,
    ),
    Release(
        "number of claims behind their sum",
        total_claims,
        lambda: {"claims": alike(pv.Poisson(4), amount=lambda: pv.Exponential(scale=3))},
        secret=lambda claims: len(claims),
        observation=pv.between(14, 16),
        query=lambda number: number >= 5,
    ),
    Release(
        "mean and variance together",
        mean_and_variance,
        lambda: {"xs": pv.Array(pv.Normal(50, sd=10), 12)},
        secret=lambda xs: xs[0],
        observation=(pv.near(52, within=1), pv.near(120, within=15)),
        query=lambda x: x > 60,
    ),
    Release(
        "cost of illness, the number of ill known",
        costs,
        lambda: {"records": alike(10, ill=lambda: pv.Bernoulli(0.2), cost=lambda: pv.Gamma(2, scale=5))},
        secret=lambda records: records[0].ill,
        observation=pv.between(30, 40),
        query=lambda ill: ill == 1,
        assume=lambda records: 3 <= sum(row.ill for row in records) <= 4,
    ),
)
