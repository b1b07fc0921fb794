"""Rejection: two million draws of a four-variable program against PyMC's samplers on the same posterior.

PyMC's gradients cannot see a window, so its model observes the mean with normal noise of the window's variance: the
posterior has the same mean and deviation. Samplers are compared by the time that an effective sample takes. PyMC's
time is that of tuning and sampling; where compilation is not told apart, it is what a run with few samples takes.
"""

import logging
import statistics
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from measuring import Bar, Outcome

import privug as pv
from privug import settings

DRAWS = 2_000_000
SEEN, WITHIN = 55.0, 0.125  # about one draw in a hundred agrees
CHAINS = 4
FEW_DRAWS = 50

Sampler = Callable[[Any], Callable[..., Any]]
"""From the module pymc to one of its samplers."""


def mean_age(first, others):  # type: ignore[no-untyped-def]
    return (first + others.sum()) / 4


class Answer(NamedTuple):
    """A sampled posterior of the first age, and what it cost."""

    mean: float
    sd: float
    effective: float
    seconds: float
    total: float

    @property
    def error(self) -> float:
        return self.sd / self.effective**0.5

    @property
    def price(self) -> float:
        return self.seconds / self.effective


def by_privug(seed: int) -> Answer:
    started = time.perf_counter()
    prior = {"first": pv.Uniform(0, 100), "others": pv.Array(pv.Normal(55.2, sd=3.5), 3)}
    attack = pv.Attack(mean_age, prior, "first", observe=pv.near(SEEN, within=WITHIN))
    result = attack.run(engine="sample", samples=DRAWS, budget=DRAWS, seed=seed)
    mean, sd = float(result.posterior.mean()), float(result.posterior.std())
    spent = time.perf_counter() - started
    return Answer(mean, sd, result.diagnostics.effective_samples, spent, spent)


def by_pymc(sampler: Sampler, seed: int, draws: int) -> Answer:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import arviz
        import pymc as pm

        logging.getLogger("pymc").setLevel(logging.ERROR)
        started = time.perf_counter()
        with pm.Model():
            first, others = pm.Uniform("first", 0, 100), pm.Normal("others", 55.2, 3.5, shape=3)
            pm.Normal("seen", (first + others.sum()) / 4, WITHIN / np.sqrt(3), observed=SEEN)
            options = {"chains": CHAINS, "cores": settings.current().workers, "random_seed": seed}
            trace = sampler(pm)(draws, **options, progressbar=False, compute_convergence_checks=False)
        total = time.perf_counter() - started
        ages = trace.posterior["first"].values
        effective = float(arviz.ess(trace, var_names=["first"], method="mean")["first"])
    return Answer(ages.mean(), ages.std(), effective, trace.posterior.attrs.get("sampling_time", total), total)


def nuts(pm: Any) -> Callable[..., Any]:
    return partial(pm.sample, nuts_sampler="pymc")


def nutpie(pm: Any) -> Callable[..., Any]:
    return partial(pm.sample, nuts_sampler="nutpie")


def smc(pm: Any) -> Callable[..., Any]:
    sample: Callable[..., Any] = pm.sample_smc
    return sample


def against(sampler: Sampler, draws: int, rounds: int) -> Outcome:
    by_privug(0)
    by_pymc(sampler, 0, FEW_DRAWS)
    turns = [(by_privug(seed), by_pymc(sampler, seed, draws)) for seed in range(1, rounds + 1)]
    fixed = 0.0
    if all(theirs.seconds == theirs.total for _, theirs in turns):
        # At best: what else the machine does only ever adds to it.
        fixed = min(by_pymc(sampler, seed, FEW_DRAWS).total for seed in range(1, 4))
    pairs = [(ours, theirs._replace(seconds=theirs.seconds - fixed)) for ours, theirs in turns]
    ratio = statistics.median(theirs.price / ours.price for ours, theirs in pairs)
    with_compilation = statistics.median(t.total / t.effective / ours.price for ours, t in pairs)
    ours, theirs = pairs[-1]
    apart = abs(ours.mean - theirs.mean) / np.hypot(ours.error, theirs.error)
    detail = (
        f"{DRAWS:,} draws {shown(ours)}; {sampler.__name__} {shown(theirs)}, {theirs.total:.3g} s with compilation "
        f"(ratio {with_compilation:.3g}); means {'agree' if apart < 4 else 'DIFFER'}: {apart:.1f} standard errors apart"
    )
    return Outcome(f"rejection-{sampler.__name__}", ratio, Bar(10, at_least=True), detail)


def shown(answer: Answer) -> str:
    return f"{answer.seconds:.3g} s for {answer.effective:,.0f} effective, mean {answer.mean:.2f} +- {answer.error:.2f}"


# So many draws a chain that both sides end with some 20,000 effective samples; NUTS would take minutes for that.
BENCHMARKS = {
    "rejection-nuts": lambda: against(nuts, 4_000, 1),
    "rejection-nutpie": lambda: against(nutpie, 16_000, 5),
    "rejection-smc": lambda: against(smc, 5_000, 5),
}
