"""Typical releases by the exact engine: how long each takes, how that grows with rows, and what chains would take.

The releases are those of `tests/oracles/releases`. A time is that of the whole answer, the attack made and the program
traced afresh: the posterior of what is asked and the probability of what was seen. It is processor time, as the machine
may be busy with other things, but for the comparison with chains, which use several cores.
"""

import json
import math
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from measuring import Bar, Outcome, in_subprocess, seconds

import privug as pv

PROJECT = Path(__file__).parents[1]
sys.path += [str(PROJECT / "tests"), str(PROJECT / "tools")]

from releases.draws import DRAWS  # noqa: E402

from oracles.releases import RELEASES, Release  # noqa: E402
from oracles.releases.kinds import REFUSED  # noqa: E402

MEDIAN, LARGEST = 0.3, 5.0  # seconds that a typical release may take, and any
QUICK = 1.0  # seconds under which a time is taken again, and the best counts
PLAIN_DRAWS = 10_000
SIZES = (10, 100, 1_000, 10_000)
FEW, MANY = 32_000, 256_000
PRECISION = 1e-3  # the standard error of the posterior mean that chains are to reach, in posterior deviations


def answer(attack: pv.Attack, observation: Any, query: Callable[[Any], Any]) -> tuple[float, float]:
    """Return the probability of a query and of what was seen."""
    result = attack.run(observe=observation, engine="exact")
    return float(result.posterior.probability(query)), float(result.diagnostics.evidence)


def processor_seconds(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def best(work: Callable[[], object], clock: Callable[[Callable[[], object]], float] = processor_seconds) -> float:
    """Return the seconds of some work; what is quick is done three times."""
    spent = clock(work)
    return min([spent, *(clock(work) for _ in range(2))]) if spent < QUICK else spent


def of_release(release: Release) -> float:
    return best(lambda: answer(release.attack(), release.observation, release.query))


def of_plain_draws(name: str) -> float:
    """Return the seconds that so many runs of a program take that was written for whole arrays by hand."""
    return best(lambda: DRAWS[name](np.random.default_rng(1), PLAIN_DRAWS))


def run_releases() -> dict[str, Any]:
    """Time all releases that are answered exactly, after one that does not count."""
    warnings.simplefilter("ignore", pv.LiftingWarning)
    of_release(RELEASES["clamped mean with Laplace noise"])
    spent = {name: of_release(release) for name, release in RELEASES.items() if name not in REFUSED}
    ratios = [spent[name] / of_plain_draws(name) for name in spent if name in DRAWS]
    return {"spent": spent, "ratio": statistics.median(ratios)}


@cache
def releases() -> dict[str, Any]:
    return in_subprocess(__file__, "releases")


def median() -> Outcome:
    found = releases()
    times = list(found["spent"].values())
    middle = statistics.median(times)
    detail = (
        f"{len(times)} releases: median {middle:.3g} s, relative to {MEDIAN:g} s; {sum(t < 1 for t in times)} take "
        f"less than 1 s; the median is {found['ratio']:.3g} times {PLAIN_DRAWS:,} runs in NumPy, written by hand"
    )
    return Outcome("releases", middle / MEDIAN, Bar(1.0), detail)


def slowest() -> Outcome:
    spent = releases()["spent"]
    order = sorted(spent, key=lambda name: -spent[name])
    over = [name for name in order if spent[name] > LARGEST]
    shown = ", ".join(f"{name} {spent[name]:.3g} s" for name in over or order[:3])
    told = f"over {LARGEST:g} s: {shown}" if over else f"none over {LARGEST:g} s; the slowest: {shown}"
    return Outcome("releases-slowest", spent[order[0]] / LARGEST, Bar(1.0), told)


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


KINDS = {"count": count_of, "clamped mean with Laplace noise": mean_of, "median of one more": median_of}


def run_growth() -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for name, make in KINDS.items():

        def work(rows: int, make: Callable[[int], tuple[pv.Attack, Any]] = make) -> object:
            return answer(*make(rows), lambda number: number > 60)

        work(SIZES[0])
        found[name] = [best(partial(work, rows)) for rows in SIZES]
    return found


def exponent(times: list[float]) -> float:
    """Return the slope of a line through times in doubly logarithmic scale."""
    return float(np.polyfit(np.log(SIZES), np.log(times), 1)[0])


def growth() -> Outcome:
    found = in_subprocess(__file__, "growth")
    told = [
        f"{name} {', '.join(f'{t:.2g}' for t in times)} s (exponent {exponent(times):.2f})"
        for name, times in found.items()
    ]
    rows = ", ".join(f"{rows:,}" for rows in SIZES)
    steepest = max(exponent(times) for times in found.values())
    return Outcome("exact-rows", steepest, Bar(1.0), f"{rows} rows: {'; '.join(told)}; the ratio is an exponent")


def clamped_ages() -> tuple[pv.Attack, Any]:
    prior = {"ages": pv.Array(pv.Normal(40, sd=25), 15), "noise": pv.Normal(0, sd=4.8)}
    return pv.Attack(clamped_mean, prior, lambda ages: ages[0]), pv.near(50, within=0.5)


def mean_salary(salaries, noise):  # type: ignore[no-untyped-def]
    return salaries.mean() + noise


def salaries() -> tuple[pv.Attack, Any]:
    prior = {"salaries": pv.Array(pv.LogNormal(3.5, sd=0.6), 15), "noise": pv.Normal(0, sd=2)}
    return pv.Attack(mean_salary, prior, lambda salaries: salaries[0]), pv.near(45, within=0.5)


QUESTIONS = {"clamped ages": clamped_ages, "salaries": salaries}


class Chains(NamedTuple):
    """What chains take: seconds and effective draws of a short and of a long run."""

    few: tuple[float, float]
    many: tuple[float, float]

    def needed(self, precision: float) -> float:
        """Return the seconds for a standard error of so many posterior deviations.

        What runs have in common, compilation and tuning, counts once; each further effective draw costs what it did in
        the long run over the short one.
        """
        cost = max(0.0, self.many[0] - self.few[0]) / (self.many[1] - self.few[1])
        return self.many[0] + cost * max(0.0, precision**-2 - self.many[1])


def chains(name: str, engine: str, mean: float) -> Chains:
    """Time two runs of chains, after one that does not count; what they find must agree with what is exact."""
    runs = []
    for samples in (FEW, FEW, MANY):
        attack, observation = QUESTIONS[name]()
        found: list[pv.Result] = []

        def work(attack: pv.Attack = attack, observation: Any = observation, samples: int = samples) -> None:
            found.append(attack.run(observe=observation, engine=engine, samples=samples, seed=1))  # noqa: B023

        spent = seconds(work)
        assert mean in found[0].posterior.mean().widened(2)
        runs.append((spent, float(found[0].diagnostics.bulk_ess or math.nan)))
    return Chains(*runs[1:])


def run_against(engine: str) -> dict[str, Any]:
    found = {}
    for name, make in QUESTIONS.items():

        def mean(make: Callable[[], tuple[pv.Attack, Any]] = make) -> float:
            attack, observation = make()
            return float(attack.run(observe=observation, engine="exact").posterior.mean())

        found[name] = {"chains": chains(name, engine, mean()), "exact": best(mean, seconds)}
    return found


def against(label: str, engine: str, bar: Bar | None) -> Outcome:
    found = in_subprocess(__file__, "against", engine)
    ratios, told = [], []
    for name, times in found.items():
        theirs = Chains(*map(tuple, times["chains"])).needed(PRECISION)
        ratios.append(theirs / times["exact"])
        told.append(f"{name} {times['exact']:.3g} s against {theirs:.3g} s")
    detail = (
        f"{'; '.join(told)} of {engine} for a standard error of {PRECISION:g} posterior deviations, extrapolated from "
        f"runs of {FEW:,} and {MANY:,} samples by their effective draws"
    )
    return Outcome(label, min(ratios), bar, detail)


BENCHMARKS = {"releases": median, "releases-slowest": slowest, "exact-rows": growth}
WITH_PYMC = {
    "exact-against-numpyro": partial(against, "exact-against-numpyro", "numpyro", Bar(100, at_least=True)),
    "exact-against-nutpie": partial(against, "exact-against-nutpie", "pymc:nutpie", None),
}
ALONE: dict[str, Callable[..., dict[str, Any]]] = {
    "releases": run_releases,
    "growth": run_growth,
    "against": run_against,
}

if __name__ == "__main__":
    pv.configure(progress=False)
    print(json.dumps(ALONE[sys.argv[1]](*sys.argv[2:])))
