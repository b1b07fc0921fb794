"""Exact answers: how their cost grows with rows and variables, and what 60 typical releases take."""

import itertools
import json
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from harness.tasks import Answer, Growth, Task, Work, register, sized

import privug as pv

PROJECT = Path(__file__).parents[2]
SIZES = sized((10, 100, 1_000, 10_000), (10, 100))
GIBIBYTE = 1 << 30


def posterior(make: Callable[[], tuple[pv.Attack, Any]], threshold: float | None = None) -> Work:
    """Return the work of a new attack: the posterior mean, or the probability to be above a threshold."""

    def work() -> list[float]:
        attack, observation = make()
        belief = attack.run(observe=observation, engine="exact").posterior
        return [float(belief.mean() if threshold is None else belief.probability(lambda value: value > threshold))]

    return work


def over_60(ages):  # type: ignore[no-untyped-def]
    return np.sum(ages > 60)


def clamped_mean(ages, noise):  # type: ignore[no-untyped-def]
    return np.clip(ages, 18, 90).mean() + noise


def median_income(incomes):  # type: ignore[no-untyped-def]
    return np.median(incomes)


def count_of(rows: int) -> tuple[pv.Attack, Any]:
    ages = pv.Array(pv.Normal(50, sd=15), rows)
    return pv.Attack(over_60, {"ages": ages}, lambda ages: ages[0]), pv.equals(rows // 4)


def mean_of(rows: int) -> tuple[pv.Attack, Any]:
    prior = {"ages": pv.Array(pv.Normal(40, sd=25), rows), "noise": pv.Laplace(0, 72 / rows)}
    return pv.Attack(clamped_mean, prior, lambda ages: ages[0]), pv.near(43, within=0.5)


def median_of(rows: int) -> tuple[pv.Attack, Any]:
    incomes = pv.Array(pv.Gamma(5, scale=10), rows + 1)  # of an odd number of rows, which is one of them
    return pv.Attack(median_income, {"incomes": incomes}, lambda incomes: incomes[0]), pv.near(47, within=0.5)


def normals(n: int) -> tuple[pv.Attack, Any]:
    prior = {"s": pv.Normal(42, sd=8), "p": pv.Array(pv.Normal(55, sd=1), n)}
    return pv.Attack(lambda s, p: (s + p.sum()) / (n + 1), prior, "s"), pv.equals(55.0)


def person(position: int) -> pv.Row:
    return pv.Row(x=pv.Normal(42, sd=8) if position == 0 else pv.Normal(55, sd=1))


def mean_of_rows(records):  # type: ignore[no-untyped-def]
    total = 0
    for r in records:
        total += r.x
    return total / len(records)


def looped(n: int) -> tuple[pv.Attack, Any]:
    prior = {"records": pv.Records(n + 1, person)}
    return pv.Attack(mean_of_rows, prior, lambda records: records[0].x), pv.equals(55.0)


def truth_of_normals(n: int) -> list[float]:
    """Return 42 and the regression on the sum, which is 13 above what is expected."""
    return [42 + 13 * 64 / (64 + n)]


def truth_of_count(rows: int) -> list[float]:
    """Return the share above 60 of those who are alike, given how many there are."""
    return [(rows // 4) / rows]


def releases() -> Work:
    """Return the work of typical releases: seconds are the median of theirs, the answer how far off they are."""
    sys.path += [str(PROJECT / "tests"), str(PROJECT / "tools")]
    warnings.simplefilter("ignore")
    from oracles.releases import RELEASES
    from oracles.releases.kinds import REFUSED

    known = json.loads((PROJECT / "tests/oracles/releases/releases.json").read_text())
    names = [name for name in RELEASES if name not in REFUSED][:: sized(3, 10)]
    turn = itertools.chain([names[:1]], itertools.repeat(names))  # the first time does not count

    def work() -> Answer:
        spent, off = {}, []
        for name in next(turn):
            started, release = time.process_time(), RELEASES[name]
            result = release.attack().run(observe=release.observation, engine="exact")
            found = float(result.posterior.probability(release.query))
            spent[name] = time.process_time() - started
            if "closed_probability" in known[name]:
                off.append(abs(found - known[name]["closed_probability"]))
        slowest = max(spent, key=spent.__getitem__)
        note = (
            f"{len(spent)} releases; the slowest, {slowest}, takes {spent[slowest] / median(spent):.0f} times as long"
        )
        return Answer([max(off, default=0.0)], seconds=median(spent), note=note)

    return work


def median(spent: dict[str, float]) -> float:
    return statistics.median(spent.values())


def releases_by_hand() -> Work:
    """Return the work of 10,000 runs of each release as NumPy, written by hand."""
    sys.path += [str(PROJECT / "tests"), str(PROJECT / "tools")]
    from releases.draws import DRAWS

    def work() -> Answer:
        spent = {}
        for name, draws in DRAWS.items():
            started = time.process_time()
            draws(np.random.default_rng(1), 10_000)
            spent[name] = time.process_time() - started
        return Answer(seconds=median(spent), note="10,000 runs, their answer not counted")

    return work


MILLION = sized((1_000, 10_000, 100_000, 1_000_000), (100, 1_000))
TASKS = register(
    Growth(
        "exact-rows-count",
        "P(age > 60) of one person, given how many are, over rows",
        SIZES,
        {"privug": lambda n: posterior(lambda: count_of(n), 60)},
        truth_of_count,
    ),
    Growth(
        "exact-rows-mean",
        "P(age > 60) of one person, given a clamped mean with Laplace noise, over rows",
        SIZES,
        {"privug": lambda n: posterior(lambda: mean_of(n), 60)},
    ),
    Growth(
        "exact-rows-median",
        "P(income > 60) of one person, given a median, over rows",
        SIZES,
        {"privug": lambda n: posterior(lambda: median_of(n), 60)},
    ),
    Growth(
        "exact-array",
        "posterior mean of one normal number, given the mean of an array, over variables",
        MILLION,
        {"privug": lambda n: posterior(lambda: normals(n))},
        truth_of_normals,
        memory=GIBIBYTE,
    ),
    Growth(
        "exact-loop",
        "the same for a loop over rows",
        sized((100, 1_000, 10_000), (100, 1_000)),
        {"privug": lambda n: posterior(lambda: looped(n))},
        truth_of_normals,
    ),
    Task(
        "exact-mean-30000",
        "the same for 30,000 variables: an earlier exact tool was reported to take 95 s",
        {"privug": lambda: posterior(lambda: normals(29_999))},
        lambda: truth_of_normals(29_999),
        seconds=0.95,
    ),
    Task(
        "releases",
        "every third of 60 typical releases, answered exactly: processor time of the median one",
        {"privug": releases, "numpy": releases_by_hand},
        lambda: [0.0],
        seconds=0.3,
        patience=4,
    ),
)
