"""Solving an observation: a window of 0.005 on the mean of 201 numbers, against waiting for draws that fall into it.

The program that waits is the same one behind an absolute value, which keeps it from being solved. Both are compared by
the time that an effective sample takes.
"""

import math
import statistics
import time
from typing import Any, NamedTuple

from measuring import Bar, Outcome

import privug as pv

VARIABLES, SEEN, WITHIN = 200, 55.1, 0.005
SAMPLES = {"solved": 100_000, "waited": 5_000}


def mean_of_all(s, others):  # type: ignore[no-untyped-def]
    return (s + others.sum()) / (VARIABLES + 1)


def mean_behind_a_wall(s, others):  # type: ignore[no-untyped-def]
    return abs((s + others.sum()) / (VARIABLES + 1))


class Answer(NamedTuple):
    """A posterior mean, its error, and how many effective samples a second it took."""

    mean: float
    error: float
    speed: float


def answer(program: Any, samples: int, seed: int) -> Answer:
    prior = {"s": pv.Uniform(0, 100), "others": pv.Array(pv.Normal(55, sd=1), VARIABLES)}
    attack = pv.Attack(program, prior, "s", observe=pv.near(SEEN, within=WITHIN))
    started = time.perf_counter()
    result = attack.run(engine="sample", samples=samples, seed=seed)
    spent = time.perf_counter() - started
    mean, effective = result.posterior.mean(), result.diagnostics.effective_samples
    return Answer(float(mean), (mean.high - mean.low) / 4, effective / spent)


def against_waiting() -> Outcome:
    pairs = [
        (answer(mean_of_all, SAMPLES["solved"], seed), answer(mean_behind_a_wall, SAMPLES["waited"], seed))
        for seed in range(3)
    ]
    ratio = statistics.median(solved.speed / waited.speed for solved, waited in pairs)
    solved, waited = pairs[-1]
    apart = abs(solved.mean - waited.mean) / math.hypot(solved.error, waited.error)
    detail = (
        f"solved {solved.speed:,.0f} effective samples a second, waited for {waited.speed:,.0f}; "
        f"means {'agree' if apart < 4 else 'DIFFER'}: {apart:.1f} standard errors apart"
    )
    return Outcome("solving-window", ratio, Bar(10, at_least=True), detail)


BENCHMARKS = {"solving-window": against_waiting}
