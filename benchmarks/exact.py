"""The exact engine: its cost next to that of sampling the same model, and how the cost grows.

The time of the exact engine includes making the attack and tracing the program. That of the samplers is of one chain,
tuning and sampling; compilation is left out, and told in the detail. The observed mean has normal noise on both
sides, as wide as the mean's own spread: the models, and so the posteriors, are the same.
"""

import importlib.util
import itertools
import json
import logging
import math
import os
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from measuring import GIBIBYTE, Bar, Outcome, in_subprocess, peak_memory, seconds

import privug as pv

OTHERS = 20_000
SEEN, NOISE = 55.0, 0.007
DRAWS = 1_000
LARGEST = 10_000
REPORTED = 95.0  # seconds that an earlier exact tool was reported to take for 30,000 variables
EPSILONS = np.geomspace(0.05, 10, 20)
INCOME = 85.0
PLOT = "PRIVUG_GROWTH_PLOT"  # the environment variable that says where to save the plot of growth


class Sampled(NamedTuple):
    """What a sampler found out about the secret, and what it took."""

    mean: float
    sd: float
    seconds: float
    compilation: float


def mean_attack(others: int = OTHERS, observe: Any = None) -> pv.Attack:
    """P(8,1): the mean of one unusual age and many that are alike, with the others as an array."""
    prior = {"s": pv.Normal(42, sd=8), "p": pv.Array(pv.Normal(55, sd=1), others)}
    seen = pv.noisy(SEEN, sd=NOISE) if observe is None else observe
    return pv.Attack(lambda s, p: (s + p.sum()) / (others + 1), prior, "s", observe=seen)


def person(position: int) -> pv.Row:
    return pv.Row(x=pv.Normal(42, sd=8) if position == 0 else pv.Normal(55, sd=1))


def mean_of_rows(records):  # type: ignore[no-untyped-def]
    total = 0
    for r in records:
        total += r.x
    return total / len(records)


def loop_attack(others: int = OTHERS) -> pv.Attack:
    """P(8,1) as a loop over rows."""
    prior = {"records": pv.Records(others + 1, person)}
    return pv.Attack(mean_of_rows, prior, lambda records: records[0].x, observe=pv.noisy(SEEN, sd=NOISE))


def answer(make: Callable[[], pv.Attack]) -> tuple[float, float]:
    posterior = make().run(engine="exact").posterior
    return float(posterior.mean()), float(posterior.std())


@cache
def by_nutpie() -> Sampled:
    """Draw from the posterior of P(8,1) with nutpie."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import nutpie
        import pymc as pm

        with pm.Model() as model:
            s, p = pm.Normal("s", 42.0, 8.0), pm.Normal("p", 55.0, 1.0, shape=OTHERS)
            pm.Normal("seen", (s + p.sum()) / (OTHERS + 1), NOISE, observed=SEEN)
        started = time.perf_counter()
        compiled = nutpie.compile_pymc_model(model)
        ready = time.perf_counter()
        trace = nutpie.sample(compiled, draws=DRAWS, chains=1, cores=1, progress_bar=False, seed=1)
        finished = time.perf_counter()
    ages = trace.posterior["s"].values
    return Sampled(float(ages.mean()), float(ages.std()), finished - ready, ready - started)


def against_nutpie(name: str, bar: Bar) -> Outcome:
    theirs, ours = by_nutpie(), in_subprocess(__file__, name)
    spent, mean, sd = ours["seconds"], ours["mean"], ours["sd"]
    detail = (
        f"{spent:.3g} s, age {mean:.2f} +- {sd:.2f}; nutpie {theirs.seconds:.3g} s for {DRAWS:,} draws (compilation, "
        f"left out, {theirs.compilation:.3g} s), age {theirs.mean:.2f} +- {theirs.sd:.2f}; {OTHERS:,} variables"
    )
    return Outcome(name, spent / theirs.seconds, bar, detail)


def million() -> Outcome:
    found = in_subprocess(__file__, "exact-million")
    detail = f"1,000,000 variables: {found['seconds']:.3g} s; peak {found['bytes'] / GIBIBYTE:.2g} GiB"
    return Outcome("exact-million", found["bytes"] / GIBIBYTE, None, f"{detail} (the ratio is the memory in GiB)")


def sum_of_two() -> Outcome:
    found = in_subprocess(__file__, "exact-sum-of-two")
    detail = (
        f"{LARGEST + 1:,}^2 states: P(x+y={LARGEST}) {found['evidence']:.4g}, mutual information "
        f"{found['information']:.6g} bit, Bayes risk {found['risk']:.8g}: {found['seconds']:.3g} s; "
        f"peak {found['bytes'] / GIBIBYTE:.2g} GiB, relative to 2 GiB"
    )
    return Outcome("exact-sum-of-two", found["bytes"] / (2 * GIBIBYTE), Bar(1.0), detail)


def mean_of_30000() -> Outcome:
    make = partial(mean_attack, 29_999, pv.equals(SEEN))
    answer(make)
    spent = statistics.median(seconds(lambda: answer(make)) for _ in range(5))
    detail = (
        f"{spent:.3g} s for 30,000 variables given their mean; an earlier exact tool reportedly took {REPORTED:g} s"
    )
    return Outcome("exact-mean-30000", REPORTED / spent, Bar(100, at_least=True), detail)


def mean_income(new, unusual, usual, noise):  # type: ignore[no-untyped-def]
    return (new + unusual.sum() + usual.sum()) / 200 + noise


def incomes() -> dict[str, Any]:
    """What the attacker knows of 200 incomes, one of which is new."""
    return {
        "new": pv.Uniform(10, 200),
        "unusual": pv.Array(pv.Uniform(10, 200), 4),
        "usual": pv.Array(pv.Uniform(80, 90), 195),
    }


def true_mean() -> Any:
    """Return the distribution of the mean income without noise."""
    return pv.Attack(lambda new, unusual, usual: mean_income(new, unusual, usual, 0.0), incomes(), "new").run(
        engine="exact"
    )


def private_mean(epsilon: float, plain: Any) -> tuple[float, ...]:
    """Return the output's density where it was seen, the posterior mean, the information and the loss of utility.

    The last is the divergence from the mean without noise to the output.
    """
    prior = {**incomes(), "noise": pv.Laplace(0, 1 / epsilon)}
    result = pv.Attack(mean_income, prior, "new", observe=pv.equals(INCOME)).run(engine="exact")
    density = result.prediction.curve
    assert density is not None
    information = pv.leakage.mutual_information(result.joint)
    loss = pv.leakage.kl_divergence(plain.prediction, result.prediction)
    return float(density.pdf(INCOME)), float(result.posterior.mean()), float(information), float(loss)


def private_means() -> list[tuple[float, ...]]:
    """Answer for all epsilons."""
    plain = true_mean()
    return [private_mean(float(epsilon), plain) for epsilon in EPSILONS]


def incomes_by_pymc(epsilon: float) -> Sampled:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pymc as pm

        logging.getLogger("pymc").setLevel(logging.ERROR)
        started = time.perf_counter()
        with pm.Model():
            unusual = pm.Uniform("unusual", 10.0, 200.0, shape=5)
            usual = pm.Uniform("usual", 80.0, 90.0, shape=195)
            pm.Laplace("seen", (unusual.sum() + usual.sum()) / 200, 1 / epsilon, observed=INCOME)
            options: dict[str, Any] = {"chains": 1, "cores": 1, "random_seed": 1, "nuts_sampler": "pymc"}
            trace = pm.sample(DRAWS, **options, progressbar=False, compute_convergence_checks=False)
        total = time.perf_counter() - started
    incomes, spent = trace.posterior["unusual"].values[..., 0], trace.posterior.attrs["sampling_time"]
    return Sampled(float(incomes.mean()), float(incomes.std()), spent, total - spent)


def dp_sweep() -> Outcome:
    private_means()
    spent = min(seconds(private_means) for _ in range(2))
    theirs = incomes_by_pymc(1.0)
    density, mean, information, loss = private_mean(1.0, true_mean())
    detail = (
        f"{spent:.3g} s for {len(EPSILONS)} epsilons; PyMC {theirs.seconds:.3g} s for {DRAWS:,} draws for one of them, "
        f"{theirs.compilation:.3g} s of compilation left out; for epsilon 1: income {mean:.4g} and {theirs.mean:.4g}, "
        f"density {density:.4g}, {information:.4g} bit, loss of utility {loss:.4g} bit"
    )
    return Outcome("exact-dp-sweep", spent / theirs.seconds, Bar(1.0), detail)


def growth() -> Outcome:
    """Time ever more variables; the ratio is the exponent with which the cost of a loop grows at the end."""
    curves = {
        "array": timed(mean_attack, (100, 1_000, 10_000, 100_000)),
        "loop": timed(loop_attack, (100, 1_000, 10_000)),
    }
    shown = []
    for name, points in curves.items():
        times = ", ".join(f"{n:,}: {spent:.2g} s" for n, spent in points.items())
        shown.append(f"{name} {times} (exponents {', '.join(f'{e:.2f}' for e in exponents(points))})")
    if os.environ.get(PLOT):
        plot(curves, Path(os.environ[PLOT]))
    return Outcome("exact-growth", exponents(curves["loop"])[-1], None, "; ".join(shown))


def timed(make: Callable[[int], pv.Attack], sizes: Sequence[int]) -> dict[int, float]:
    answer(partial(make, sizes[0]))
    return {n: min(seconds(lambda n=n: answer(partial(make, n))) for _ in range(3)) for n in sizes}  # type: ignore[misc]


def exponents(points: dict[int, float]) -> list[float]:
    """Return the slopes between neighbouring points in doubly logarithmic scale."""
    logs = [(math.log(n), math.log(spent)) for n, spent in points.items()]
    return [(b[1] - a[1]) / (b[0] - a[0]) for a, b in itertools.pairwise(logs)]


def plot(curves: dict[str, dict[int, float]], path: Path) -> None:
    if importlib.util.find_spec("matplotlib") is None:
        return
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 4), layout="constrained")
    axes = figure.subplots()
    for name, points in curves.items():
        axes.loglog(list(points), list(points.values()), "o-", label=name)
    axes.set(xlabel="random variables", ylabel="seconds", title="Exact posterior given a mean")
    axes.legend()
    figure.savefig(path)


def run_answer(make: Callable[[], pv.Attack]) -> dict[str, float]:
    """Time an answer where PyMC's many objects do not keep the garbage collector busy."""
    mean, sd = answer(make)
    return {"mean": mean, "sd": sd, "seconds": statistics.median(seconds(lambda: answer(make)) for _ in range(7))}


def run_million() -> dict[str, float]:
    spent = seconds(lambda: answer(partial(mean_attack, 999_999)))
    return {"seconds": spent, "bytes": peak_memory()}


def run_sum_of_two() -> dict[str, float]:
    started = time.perf_counter()
    prior = {"x": pv.DiscreteUniform(0, LARGEST), "y": pv.DiscreteUniform(0, LARGEST)}
    result = pv.Attack(lambda x, y: x + y, prior, "x", observe=pv.equals(LARGEST)).run(engine="exact")
    found = {
        "evidence": float(result.diagnostics.evidence),
        "information": float(pv.leakage.mutual_information(result.joint)),
        "risk": float(pv.leakage.bayes_risk(result.joint)),
    }
    return {**found, "seconds": time.perf_counter() - started, "bytes": peak_memory()}


BENCHMARKS = {
    "exact-million": million,
    "exact-sum-of-two": sum_of_two,
    "exact-mean-30000": mean_of_30000,
    "exact-growth": growth,
}
WITH_PYMC = {
    "exact-array": lambda: against_nutpie("exact-array", Bar(1 / 1000)),
    "exact-loop": lambda: against_nutpie("exact-loop", Bar(1 / 50)),
    "exact-dp-sweep": dp_sweep,
}

ALONE: dict[str, Callable[[], dict[str, float]]] = {
    "exact-array": partial(run_answer, mean_attack),
    "exact-loop": partial(run_answer, loop_attack),
    "exact-million": run_million,
    "exact-sum-of-two": run_sum_of_two,
}

if __name__ == "__main__":
    pv.configure(progress=False)
    print(json.dumps(ALONE[sys.argv[1]]()))
