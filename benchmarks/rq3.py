"""Chains and their rivals side by side: the mean of one unusual age and many that are alike, seen and unseen.

Two chains of 10,000 draws each. Seconds are of the whole run, compilation included; ESS is that of the secret, in the
bulk, as ArviZ counts it. `auto` computes the answer where it can: its effective samples are then without end, and the
time alone is compared. PRIVUG_RQ3_DRAWS sets another number of draws for each chain, PRIVUG_RQ3_SIZES other sizes.
"""

import importlib
import math
import os
import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from measuring import Bar, Outcome

import privug as pv
from privug.errors import PrivugError

CHAINS = 2
DRAWS = int(os.environ.get("PRIVUG_RQ3_DRAWS", "10000"))
SIZES = tuple(int(size) for size in os.environ.get("PRIVUG_RQ3_SIZES", "200,2000,20000").split(","))
WITHIN = 0.005


class Measured(NamedTuple):
    """What one engine took for one question."""

    seconds: float
    effective: float
    mean: float

    def __str__(self) -> str:
        rate = self.effective / self.seconds
        shown = "exact" if math.isinf(self.effective) else f"{self.effective:,.0f} ESS, {rate:,.0f} a second"
        return f"{self.seconds:9.2f} s  mean {self.mean:7.3f}  {shown}"


def attack(others: int) -> pv.Attack:
    """The mean of an age and others, all normal: P(8, 1) of the paper."""
    prior = {"s": pv.Normal(42, sd=8), "p": pv.Array(pv.Normal(55, sd=1), others)}
    return pv.Attack(lambda s, p: (s + p.sum()) / (others + 1), prior, "s")


def observation(others: int) -> pv.Observation:
    """A mean that is expected, seen to two decimals."""
    return pv.near(round((42 + 55 * others) / (others + 1), 2), within=WITHIN)


def automatic(others: int, seen: bool) -> Measured:
    started = time.perf_counter()
    result = attack(others).run(observation(others) if seen else None, samples=CHAINS * DRAWS, seed=1)
    mean = result.posterior.mean().value
    return Measured(time.perf_counter() - started, result.diagnostics.effective_samples, mean)


def by_chains(module: str, others: int, seen: bool, sampler: str | None = None) -> Measured:
    engine = importlib.import_module(f"privug.inference.chains.{module}")
    started = time.perf_counter()
    options = {"samples": CHAINS * DRAWS, "seed": 1, "chains": CHAINS, "sampler": sampler}
    run = engine.infer(attack(others).question, observation(others) if seen else None, **options)
    secret = run.quantities[0].numbers()
    return Measured(time.perf_counter() - started, run.diagnostics.effective_samples, float(np.mean(secret)))


ENGINES: dict[str, Callable[[int, bool], Measured]] = {
    "auto": automatic,
    "pymc:nutpie": partial(by_chains, "pymc_engine", sampler="nutpie"),
    "pymc:nuts": partial(by_chains, "pymc_engine", sampler="nuts"),
    "numpyro": partial(by_chains, "numpyro_engine"),
}


def table() -> dict[tuple[str, int, bool], Measured]:
    """Measure all engines on all questions, and print a line for each as soon as it is known."""
    found: dict[tuple[str, int, bool], Measured] = {}
    print(f"{'engine':<14}{'variables':>10}  {'observed':<9}")
    for others in SIZES:
        for seen in (False, True):
            for name, measure in ENGINES.items():
                label = f"{name:<14}{others + 1:>10,}  {'yes' if seen else 'no':<9}"
                try:
                    found[name, others, seen] = measure(others, seen)
                    print(f"{label}{found[name, others, seen]}", flush=True)
                except PrivugError as error:
                    print(f"{label}refused: {error}", flush=True)
    return found


def side_by_side() -> Outcome:
    """How many times faster `auto` is than the best of the others, at the largest size, with an observation."""
    found = table()
    largest = max(SIZES)
    rivals = [
        m.seconds for (name, size, seen), m in found.items() if name != "auto" and (size, seen) == (largest, True)
    ]
    best = min(rivals, default=math.inf)
    detail = f"{largest + 1:,} variables, observed: {best:.1f} s by the best of the chains"
    return Outcome("rq3", best / found["auto", largest, True].seconds, Bar(50, at_least=True), detail)


BENCHMARKS = {"rq3": side_by_side}

if __name__ == "__main__":
    pv.configure(progress=False)
    table()
