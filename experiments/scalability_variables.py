"""Inference time over the number of variables.

The mean of one secret number and many more (continuous), and a sum of them (discrete), with and without an observation:
by the engine that Privug chooses, which computes, by its sampling engine, and by PyMC's NUTS, which the paper used, for
as many variables as it can do in some seconds. The paper drew two chains of 10,000 samples; so do all samplers here.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec

import privug as pv

from .drawing import Draw, curves
from .findings import Findings, Line
from .repetitions import growth
from .synthetic import Mean, Total

PAPER = "Fig. 4 (ab), (ac)"

SAMPLES = 20_000
COMPUTED = (20, 200, 2_000, 20_000, 100_000, 1_000_000)
SAMPLED = (20, 200, 2_000, 20_000)
CHAINS = (200, 2_000)
WITHIN = 0.005
PAPER_TIMES = {"continuous": "40 minutes (NUTS)", "discrete": "over 2 hours for 5,000 (Metropolis)"}


@dataclass(frozen=True)
class Timed:
    """What one engine took for one question, and what it said."""

    engine: str
    variables: int
    observed: bool
    seconds: float
    answer: pv.Estimate
    exact: float

    def line(self, kind: str) -> Line:
        quantity = "mean of the secret given the output" if self.observed else "mean of the output"
        paper = PAPER_TIMES[kind] if self.variables == 20_000 else ""
        name = f"{kind}, {self.variables:,} variables, {self.engine}: {quantity}"
        return Line(name, self.answer, self.exact, paper, f"{self.seconds:.2g} s")


def question(kind: str, others: int, observed: bool) -> tuple[pv.Attack, pv.Observation | None, float]:
    """The attack, what is observed of its output, and the mean that is asked for."""
    if kind == "continuous":
        mean = Mean(8, 1, others)
        centre = mean.output[0]
        if not observed:
            return mean.attack, None, centre
        seen = round(centre, 2)
        return mean.attack, pv.near(seen, within=WITHIN), mean.mean_given(seen - WITHIN, seen + WITHIN)
    total = Total(others)
    if not observed:
        return total.attack, None, 50.0 * (others + 1)
    return total.attack, pv.between(*total.window), total.mean_given(*total.window)


def timed(engine: str, kind: str, others: int, observed: bool, samples: int) -> Timed:
    started = time.perf_counter()
    attack, observation, exact = question(kind, others, observed)
    result = attack.run(observation, engine=engine, samples=samples, seed=1)
    answer = (result.posterior if observed else result.prediction).mean()
    return Timed(engine, others, observed, time.perf_counter() - started, answer, exact)


def asked(kind: str, observed: bool, most: int) -> Iterator[tuple[str, int]]:
    """The engines and numbers of variables to measure."""
    yield from (("auto", others) for others in COMPUTED)
    yield from (("sample", others) for others in SAMPLED if others <= most)
    if kind == "continuous" and observed and find_spec("pymc"):
        yield from (("pymc", others) for others in CHAINS if others <= most)


def figure(several: list[Timed], title: str) -> Draw:
    lines = {}
    for some in several:
        name = f"{some.engine}, {'observed' if some.observed else 'not observed'}"
        across, up = lines.setdefault(name, ([], []))
        across.append(some.variables)
        up.append(some.seconds)
    points = {"the paper: 20,000 variables": ([20_000], [40 * 60])} if title == "continuous" else {}
    if title == "discrete":
        points = {"the paper: naive anonymisation, 5,000 variables": ([5_000], [2 * 3600])}
    return curves(lines, points=points, x=f"{title} variables", y="seconds", log="xy")


def run(most: int = 20_000, samples: int = SAMPLES) -> Findings:
    findings = Findings()
    for kind in ("continuous", "discrete"):
        timed("auto", kind, 10, True, samples)  # what is imported and compiled once is not the question
        timed("sample", kind, 10, True, samples)
        found = [
            timed(engine, kind, others, observed, samples)
            for observed in (False, True)
            for engine, others in asked(kind, observed, most)
        ]
        findings.lines += [some.line(kind) for some in found if some.variables >= 2_000 or some.engine == "pymc"]
        findings.lines += exponents(kind, found)
        findings.figures[f"Inference time, {kind} variables"] = figure(found, kind)
    findings.notes += [
        f"Every sampler draws {samples:,} samples. Seconds include making the attack, lifting and the answer; "
        "exact values are computed here without Privug: a truncated normal, and a power of a characteristic function.",
        "The paper measured on eight cores of 1.7 GHz. Discrete sums without an observation are enumerated, pair by "
        "pair of secret and sum, while these are some millions; beyond that they are computed as densities are.",
    ]
    if find_spec("pymc") is None:
        findings.notes.append("PyMC is not installed, so there is no curve of NUTS.")
    return findings


def exponents(kind: str, found: list[Timed]) -> Iterator[Line]:
    """How time grows for each engine, from where variables outweigh the fixed costs."""
    for engine in ("auto", "sample"):
        for observed in (False, True):
            some = [t for t in found if (t.engine, t.observed) == (engine, observed) and t.variables >= 200]
            if len(some) > 1:
                power = growth([t.variables for t in some], [t.seconds for t in some])
                seen = "observed" if observed else "not observed"
                note = f"fitted from {some[0].variables:,} to {some[-1].variables:,} variables"
                paper = "linear" if kind == "discrete" else ""
                yield Line(f"{kind}, {engine}, {seen}: time grows as n to the", round(power, 2), None, paper, note)
