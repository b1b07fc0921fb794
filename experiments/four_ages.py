"""Four ages with normal priors, and their mean."""

import math

import numpy as np
from scipy import stats

import privug as pv

from .ages import mean_age
from .drawing import curves, density
from .findings import Findings, Line

PAPER = "Fig. 2"
SEEN = 29.25
READINGS = {"variances": (3, 10), "standard deviations": (9, 100)}
"""The variances of Alice's age and of the others'."""


def result(own: float, others: float) -> pv.Result:
    def row(position):
        return pv.Row(age=pv.Normal(40, var=own) if position == 0 else pv.Normal(23, var=others))

    attack = pv.Attack(mean_age, {"records": pv.Records(4, row)}, secret=lambda records: records[0].age)
    return attack.run(observe=pv.equals(SEEN), seed=1)


def posterior(own: float, others: float) -> tuple[float, float]:
    """Return mean and deviation of Alice's age, given the sum of her age and three others: a Kalman update."""
    gain = own / (own + 3 * others)
    return 40 + gain * (4 * SEEN - 40 - 3 * 23), math.sqrt(own * (1 - gain))


def run() -> Findings:
    lines, densities, points = [], {}, {}
    ages = np.linspace(28, 52, 241)
    middles = (ages[:-1] + ages[1:]) / 2
    for reading, variances in READINGS.items():
        found, (mean, sd) = result(*variances).posterior, posterior(*variances)
        lines += [
            Line(f"read as {reading}: mean", found.mean(), mean, "41"),
            Line(f"read as {reading}: sd", found.std(), sd, "", f"variance {sd**2:.4f}; the paper prints 2.5"),
        ]
        densities[f"before, {reading}"] = (middles, stats.norm(40, math.sqrt(variances[0])).pdf(middles))
        densities[f"after, {reading}"] = (middles, density(found, ages))
        points[f"closed form, {reading}"] = (middles[::12], stats.norm(mean, sd).pdf(middles[::12]))
    return Findings(
        lines,
        {
            "Alice's age before and after the mean 29.25 was seen": curves(
                densities, x="age", y="density", points=points
            )
        },
        [
            "The paper's N(41, 2.5) is neither reading: 40.7 and a variance of 2.73 if N(40, 3) and N(23, 10) name "
            "variances, 40.2 and a deviation of 2.96 if they name deviations."
        ],
    )
