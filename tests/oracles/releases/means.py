"""Sums and means: of subgroups, clamped, rounded, with noise, by group, weighted, of many families."""

import math

import numpy as np

import privug as pv
from oracles.releases.release import Release, alike


def mean_of_members(records):
    ages = [row.age for row in records if row.member]
    if len(ages) < 2:
        return None
    return sum(ages) / len(ages)


def sales_payroll(records):
    return sum(row.salary for row in records if row.department == "sales")


def alice_in_sales(i):
    if i == 0:
        return pv.Row(department="sales", salary=pv.Uniform(20, 100))
    return pv.Row(department=pv.Choice(["sales", "law", "lab"], p=[0.3, 0.2, 0.5]), salary=pv.Normal(50, sd=8))


def mean_stay(records):
    stays = [row.days for row in records if row.ward == 2]
    if len(stays) < 4:
        return -1
    return sum(stays) / len(stays)


def clamped_mean(ages):
    return np.clip(ages, 18, 90).mean()


def winsorised_total(ages):
    return np.sum(np.where(ages < 18, 18, np.where(ages > 90, 90, ages)))


def clamped_laplace(records):
    clamped = [min(max(row.age, 18), 90) for row in records]
    return sum(clamped) / len(clamped) + pv.sample(pv.Laplace(0, 4.8))


def clamped_gauss_rounded(scores):
    total = 0
    for score in scores:
        if score < 0:
            total += 0
        elif score > 100:
            total += 100
        else:
            total += score
    return round(total / len(scores) + pv.sample(pv.Normal(0, sd=2)))


def capped_claims(claims):
    return np.minimum(claims, 10).sum() + pv.sample(pv.Normal(0, sd=20))


def mean_salary(records):
    return sum(row.salary for row in records) / len(records)


def top_coded(salaries):
    return round(sum(min(salary, 80) for salary in salaries))


def rounded_mean_age(records):
    return round(sum(row.age for row in records) / len(records))


def alice_of_unknown_age(i):
    return pv.Row(age=pv.Uniform(20, 80) if i == 0 else pv.Normal(45, sd=6))


def mean_and_count(records):
    ages = [row.age for row in records]
    return {"mean": round(sum(ages) / len(ages)), "over 60": sum(age > 60 for age in ages)}


def means_by_group(records):
    totals, counts = {}, {}
    for row in records:
        for group in ("A", "B", "C"):
            totals[group] = totals.get(group, 0) + (row.pay if row.group == group else 0)
            counts[group] = counts.get(group, 0) + (1 if row.group == group else 0)
    return {group: totals[group] / counts[group] if counts[group] > 0 else 0 for group in totals}


GROUPS = ("A", "B", "C")


def alice_of_a_group(i):
    if i == 0:
        return pv.Row(group=pv.Choice(GROUPS), pay=pv.Normal(60, sd=10))
    return pv.Row(group=pv.Choice(GROUPS, p=[0.5, 0.3, 0.2]), pay=pv.Normal(45, sd=5))


def deviation_from_50(scores):
    return sum((score - 50) ** 2 for score in scores) / len(scores)


def mean_grade(grades):
    return np.mean(grades)


def mean_return(returns):
    return returns.sum() / returns.size


def paid(records):
    total = 0
    for row in records:
        total += row.bonus if row.manager else row.wage
    return total


def weighted_mean(records):
    return sum(row.weight * row.x for row in records) / sum(row.weight for row in records)


def weighted_mean_of_arrays(weights, values):
    return np.sum(weights * values) / np.sum(weights)


def rounded_cells(cells):
    return sum(5 * round(cell / 5) for cell in cells)


def with_and_without(ages):
    return round(sum(ages) / len(ages)), round(sum(ages[1:]) / (len(ages) - 1))


def mean_time(times):
    return math.fsum(times) / 7


MEANS = (
    Release(
        "mean over a subgroup, suppressed below 2",
        mean_of_members,
        lambda: {"records": alike(12, age=lambda: pv.Normal(30, sd=5), member=lambda: pv.Bernoulli(0.5))},
        secret=lambda records: records[0].age,
        observation=pv.near(31, within=0.5),
        query=lambda age: age > 32,
    ),
    Release(
        "sum over a subgroup",
        sales_payroll,
        lambda: {"records": pv.Records(10, alice_in_sales)},
        secret=lambda records: records[0].salary,
        observation=pv.near(230, within=5),
        query=lambda salary: salary > 70,
    ),
    Release(
        "mean over a subgroup, a sentinel below 4",
        mean_stay,
        lambda: {"records": alike(20, ward=lambda: pv.DiscreteUniform(1, 4), days=lambda: pv.Exponential(scale=6))},
        secret=lambda records: records[0].ward,
        observation=pv.equals(-1),
        query=lambda ward: ward == 2,
    ),
    Release(
        "clamped mean",
        clamped_mean,
        lambda: {"ages": pv.Array(pv.Normal(40, sd=25), 8)},
        secret=lambda ages: ages[0],
        observation=pv.near(48, within=1),
        query=lambda age: age > 60,
    ),
    Release(
        "clamped sum, far in the tail",
        winsorised_total,
        lambda: {"ages": pv.Array(pv.Normal(40, sd=25), 20)},
        secret=lambda ages: ages[0],
        observation=pv.near(1520, within=10),
        query=lambda age: age > 85,
    ),
    Release(
        "clamped mean with Laplace noise",
        clamped_laplace,
        lambda: {"records": alike(15, age=lambda: pv.Normal(40, sd=25))},
        secret=lambda records: records[0].age,
        observation=pv.near(50, within=1),
        query=lambda age: age > 60,
    ),
    Release(
        "clamped mean with Gaussian noise, rounded",
        clamped_gauss_rounded,
        lambda: {"scores": [pv.StudentT(4, 60, 20) for _ in range(30)]},
        secret=lambda scores: scores[0],
        observation=pv.equals(63),
        query=lambda score: score >= 100,
    ),
    Release(
        "capped sum of 200 with Gaussian noise",
        capped_claims,
        lambda: {"claims": pv.Array(pv.Exponential(scale=4), 200)},
        secret=lambda claims: claims[0],
        observation=pv.between(760, 780),
        query=lambda claim: claim > 10,
    ),
    Release(
        "lognormal salaries",
        mean_salary,
        lambda: {"records": alike(20, salary=lambda: pv.LogNormal(3.5, sd=0.6))},
        secret=lambda records: records[0].salary,
        observation=pv.near(46, within=1),
        query=lambda salary: salary > 80,
    ),
    Release(
        "top-coded salaries, rounded",
        top_coded,
        lambda: {"salaries": [pv.LogNormal(3.6, sd=0.8) for _ in range(10)]},
        secret=lambda salaries: salaries[0] > 80,
        observation=pv.equals(430),
        query=lambda above: above,
    ),
    Release(
        "rounded mean in a table of random size",
        rounded_mean_age,
        lambda: {"records": pv.Records(pv.Poisson(30), alice_of_unknown_age)},
        secret=lambda records: records[0].age,
        observation=pv.equals(46),
        query=lambda age: age > 65,
    ),
    Release(
        "rounded mean and count together",
        mean_and_count,
        lambda: {"records": alike(10, age=lambda: pv.Normal(50, sd=12))},
        secret=lambda records: records[0].age,
        observation=pv.equals({"mean": 53, "over 60": 3}),
        query=lambda age: age > 60,
    ),
    Release(
        "means by group",
        means_by_group,
        lambda: {"records": pv.Records(12, alice_of_a_group)},
        secret=lambda records: records[0].group,
        observation={"A": pv.near(46, within=1.5), "B": pv.near(48, within=1.5), "C": pv.near(45, within=1.5)},
        query=lambda group: group == "B",
    ),
    Release(
        "mean square deviation",
        deviation_from_50,
        lambda: {"scores": [pv.Normal(53, sd=10) for _ in range(10)]},
        secret=lambda scores: scores[0],
        observation=pv.between(150, 170),
        query=lambda score: score > 60,
    ),
    Release(
        "mixture of grades",
        mean_grade,
        lambda: {"grades": pv.Array(pv.Mixture([pv.Normal(4, sd=1), pv.Normal(8, sd=0.7)], [0.4, 0.6]), 20)},
        secret=lambda grades: grades[0],
        observation=pv.near(6, within=0.1),
        query=lambda grade: grade < 5.5,
    ),
    Release(
        "one of two numbers by a flag",
        paid,
        lambda: {
            "records": alike(
                9,
                manager=lambda: pv.Bernoulli(0.3),
                bonus=lambda: pv.Normal(90, sd=20),
                wage=lambda: pv.Normal(50, sd=10),
            )
        },
        secret=lambda records: records[0].manager,
        observation=pv.near(600, within=10),
        query=lambda manager: manager == 1,
    ),
    Release(
        "weighted mean, discrete weights",
        weighted_mean,
        lambda: {"records": alike(8, weight=lambda: pv.Choice([1, 2, 5]), x=lambda: pv.Normal(20, sd=6))},
        secret=lambda records: records[0].weight,
        observation=pv.near(26, within=1),
        query=lambda weight: weight == 5,
    ),
    Release(
        "weighted mean, continuous weights",
        weighted_mean_of_arrays,
        lambda: {"weights": pv.Array(pv.Uniform(0.5, 1.5), 6), "values": pv.Array(pv.Normal(20, sd=6), 6)},
        secret=lambda values: values[0],
        observation=pv.near(22, within=0.5),
        query=lambda value: value > 25,
    ),
    Release(
        "sum of rounded cells",
        rounded_cells,
        lambda: {"cells": [pv.Normal(12, sd=5) for _ in range(12)]},
        secret=lambda cells: cells[0],
        observation=pv.equals(160),
        query=lambda cell: cell > 20,
    ),
    Release(
        "two rounded means, with and without one person",
        with_and_without,
        lambda: {"ages": [pv.Uniform(20, 90)] + [pv.Normal(40, sd=10) for _ in range(9)]},
        secret=lambda ages: ages[0],
        observation=pv.equals((43, 41)),
        query=lambda age: age > 60,
    ),
    Release(
        "seven exponential times",
        mean_time,
        lambda: {"times": [pv.Exponential(scale=10) for _ in range(7)]},
        secret=lambda times: times[0],
        observation=pv.near(12, within=0.5),
        query=lambda time: time > 20,
    ),
    Release(
        "mean of Student's t",
        mean_return,
        lambda: {"returns": pv.Array(pv.StudentT(3, 50, 10), 5)},
        secret=lambda returns: returns[0],
        observation=pv.near(60, within=1),
        query=lambda value: value > 75,
    ),
)
