"""Parents that all rows share, noise that is an input or comes from a mechanism, and exact values of mixed outputs."""

import privug as pv
from oracles.releases.release import Release, alike


def high_pressures(records):
    return sum(row.pressure > 140 for row in records)


noisy_pressures = pv.mechanisms.discrete_laplace(high_pressures, sensitivity=1, epsilon=0.7)


def capped_spending(spending, noise):
    total = sum(amount if amount < 50 else 50 for amount in spending)
    return total + noise


def well_paid(boom, pays):
    return sum(pay > 60 for pay in pays)


def passed(level, scores):
    tally = 0
    for score in scores:
        tally = tally + 1 if score >= 60 else tally
    return tally


def payouts(losses):
    return sum(max(0, loss - 10) for loss in losses)


def shared_boom():
    boom = pv.Bernoulli(0.4)
    return {"boom": boom, "pays": pv.Array(pv.Normal(50 + 8 * boom, sd=6), 12)}


def shared_level():
    level = pv.Normal(50, sd=5)
    return {"level": level, "scores": pv.Array(pv.Normal(level, sd=10), 25)}


SHARED = (
    Release(
        "count with discrete noise of a mechanism",
        noisy_pressures,
        lambda: {"records": alike(18, pressure=lambda: pv.Normal(128, sd=14))},
        secret=lambda records: records[0].pressure,
        observation=pv.equals(5),
        query=lambda pressure: pressure > 130,
    ),
    Release(
        "exact value of a capped sum and noise",
        capped_spending,
        lambda: {"spending": [pv.Exponential(scale=20) for _ in range(6)], "noise": pv.Laplace(0, 10)},
        secret=lambda spending: spending[0],
        observation=pv.equals(120.0),
        query=lambda amount: amount >= 50,
    ),
    Release(
        "a boom that all share",
        well_paid,
        shared_boom,
        secret="boom",
        observation=pv.such_that(lambda count: count >= 3),
        query=lambda boom: boom == 1,
    ),
    Release(
        "a level that all share",
        passed,
        shared_level,
        secret="level",
        observation=pv.equals(7),
        query=lambda level: level > 53,
    ),
    Release(
        "exact value of payouts above a deductible",
        payouts,
        lambda: {"losses": [pv.Exponential(scale=8) for _ in range(6)]},
        secret=lambda losses: losses[0],
        observation=pv.equals(25.0),
        query=lambda loss: loss > 10,
    ),
)
