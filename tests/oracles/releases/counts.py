"""Counts, shares and histograms of continuous quantities, with suppression, noise and randomised response."""

import numpy as np

import privug as pv
from oracles.releases.release import Release, alike


def count_over_60(records):
    return sum(1 for row in records if row.age > 60)


def per_cent_over_65(ages):
    return 100 * (ages > 65).mean()


def over_60(records):
    return len([row.age for row in records if row.age > 60])


def anyone_over_90(records):
    return any(row.age > 90 for row in records)


def noisy_long_waits(waits):
    return np.sum(waits > 50) + pv.sample(pv.Laplace(0, 2))


def obese(records):
    count = 0
    for row in records:
        if row.bmi > 30:
            count += 1
    return count + pv.sample(pv.Laplace(0, 1.5))


def bands(records):
    cells = {"under 30": 0, "30 to 49": 0, "50 to 69": 0, "70 and over": 0}
    for row in records:
        if row.age < 30:
            cells["under 30"] += 1
        elif row.age < 50:
            cells["30 to 49"] += 1
        elif row.age < 70:
            cells["50 to 69"] += 1
        else:
            cells["70 and over"] += 1
    return {band: count if count >= 3 else None for band, count in cells.items()}


def grades(marks):
    return {
        "fail": sum(mark < 50 for mark in marks),
        "pass": sum(50 <= mark < 75 for mark in marks),
        "merit": sum(mark >= 75 for mark in marks),
    }


def grade(marks):
    return "fail" if marks[0] < 50 else "pass" if marks[0] < 75 else "merit"


def noisy_histogram(records):
    young = sum(1 for row in records if row.age < 35)
    old = sum(1 for row in records if row.age >= 60)
    counts = [young, len(records) - young - old, old]
    return [count + pv.sample(pv.Laplace(0, 1.0)) for count in counts]


def answers(incomes):
    yes = 0
    for income in incomes:
        truthful = pv.sample(pv.Bernoulli(0.75))
        coin = pv.sample(pv.Bernoulli(0.5))
        yes += (income > 50) if truthful else coin
    return yes


def long_calls(calls):
    count = sum(call > 12 for call in calls)
    return count if count >= 5 else -1


def in_tens(incomes):
    return 10 * round(np.sum(incomes < 15) / 10)


def ill(records):
    return sum(row.ill for row in records)


def ill_of_twenty(risk, ill):
    return sum(ill)


def cases(rate, weeks):
    total = weeks[0] + weeks[1] + weeks[2] + weeks[3]
    return total if total >= 5 else 0


def unemployment(records):
    rates = {}
    for region in ("north", "south"):
        people = [row for row in records if row.region == region]
        seeking = sum(row.hours < 1 for row in people)
        rates[region] = 100 * seeking / len(people) if len(people) > 0 else -1
    return rates


def vote(records):
    for_it = sum(1 for row in records if row.view > 0)
    return "approved" if for_it > len(records) / 2 else "rejected"


def alice_views(i):
    return pv.Row(view=pv.Normal(1.5, sd=1) if i == 0 else pv.Normal(-0.1, sd=2))


def patients(i):
    risk = pv.Beta(2, 8)
    return pv.Row(risk=risk, ill=pv.Bernoulli(risk))


def shared_risk():
    risk = pv.Beta(2, 8)
    return {"risk": risk, "ill": pv.Array(pv.Bernoulli(risk), 20)}


def shared_rate():
    rate = pv.Gamma(3, scale=0.8)
    return {"rate": rate, "weeks": pv.Array(pv.Poisson(rate), 4)}


COUNTS = (
    Release(
        "count over 60",
        count_over_60,
        lambda: {"records": alike(25, age=lambda: pv.Normal(50, sd=15))},
        secret=lambda records: records[0].age,
        observation=pv.equals(9),
        query=lambda age: age > 60,
    ),
    Release(
        "share over 65 in per cent",
        per_cent_over_65,
        lambda: {"ages": pv.Array(pv.Gamma(6, scale=8), 40)},
        secret=lambda ages: ages[0],
        observation=pv.between(9, 16),
        query=lambda age: age > 70,
    ),
    Release(
        "whether anyone is over 90",
        over_60,
        lambda: {"records": alike(12, age=lambda: pv.Uniform(20, 100))},
        secret=anyone_over_90,
        observation=pv.equals(4),
        query=lambda anyone: anyone,
    ),
    Release(
        "true count under a noisy one",
        noisy_long_waits,
        lambda: {"waits": pv.Array(pv.Gamma(2, scale=15), 30)},
        secret=lambda waits: np.sum(waits > 50),
        observation=pv.near(7, within=0.5),
        query=lambda count: count >= 6,
    ),
    Release(
        "noisy count in a table of random size",
        obese,
        lambda: {"records": alike(pv.Binomial(60, 0.4), bmi=lambda: pv.Normal(27, sd=4))},
        secret=lambda records: records[0].bmi,
        observation=pv.between(8, 9),
        query=lambda bmi: bmi > 30,
    ),
    Release(
        "histogram with small cells suppressed",
        bands,
        lambda: {"records": alike(30, age=lambda: pv.Normal(42, sd=15))},
        secret=lambda records: records[0].age,
        observation=pv.equals({"under 30": 6, "30 to 49": 15, "50 to 69": 8, "70 and over": None}),
        query=lambda age: age >= 50,
    ),
    Release(
        "one cell of a histogram, label asked",
        grades,
        lambda: {"marks": [pv.TruncatedNormal(62, sd=15, low=0, high=100) for _ in range(80)]},
        secret=grade,
        observation={"merit": pv.equals(20)},
        query=lambda label: label == "merit",
    ),
    Release(
        "histogram with Laplace noise",
        noisy_histogram,
        lambda: {"records": alike(15, age=lambda: pv.Uniform(18, 80))},
        secret=lambda records: records[0].age,
        observation=[pv.near(6, within=1), pv.near(5, within=1), pv.near(3, within=1)],
        query=lambda age: age < 35,
    ),
    Release(
        "randomised response about a threshold",
        answers,
        lambda: {"incomes": [pv.LogNormal(3.5, sd=0.7) for _ in range(20)]},
        secret=lambda incomes: incomes[0] > 50,
        observation=pv.equals(9),
        query=lambda above: above,
    ),
    Release(
        "small count replaced by a sentinel",
        long_calls,
        lambda: {"calls": [pv.Exponential(scale=5) for _ in range(50)]},
        secret=lambda calls: calls[0],
        observation=pv.equals(-1),
        query=lambda call: call > 10,
    ),
    Release(
        "count of a thousand in tens",
        in_tens,
        lambda: {"incomes": pv.Array(pv.Weibull(1.5, 40), 1000)},
        secret=lambda incomes: incomes[0],
        observation=pv.equals(240),
        query=lambda income: income < 15,
    ),
    Release(
        "risk of each behind an illness",
        ill,
        lambda: {"records": pv.Records(15, patients)},
        secret=lambda records: records[0].risk,
        observation=pv.equals(6),
        query=lambda risk: risk > 0.3,
    ),
    Release(
        "risk of all behind an illness",
        ill_of_twenty,
        shared_risk,
        secret="risk",
        observation=pv.equals(6),
        query=lambda risk: risk > 0.3,
    ),
    Release(
        "shared rate behind a suppressed count",
        cases,
        shared_rate,
        secret="rate",
        observation=pv.equals(13),
        query=lambda rate: rate > 3,
    ),
    Release(
        "unemployment by region, one seen",
        unemployment,
        lambda: {
            "records": alike(
                20, region=lambda: pv.Choice(["north", "south"], p=[0.4, 0.6]), hours=lambda: pv.Exponential(scale=6)
            )
        },
        secret=lambda records: records[0].hours,
        observation={"north": pv.equals(25)},
        query=lambda hours: hours < 1,
    ),
    Release(
        "outcome of a vote",
        vote,
        lambda: {"records": pv.Records(21, alice_views)},
        secret=lambda records: records[0].view,
        observation=pv.equals("rejected"),
        query=lambda view: view > 0,
    ),
)
