"""Attacks whose answers are known in closed form or by quadrature, for every engine to be held against."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any

import numpy as np
from scipy import integrate, stats

import privug as pv


@dataclass(frozen=True)
class Known:
    """An attack, what is seen, and what is known of the posterior of the secret: its mean, or a probability."""

    name: str
    attack: pv.Attack
    observation: Any
    mean: float | None = None
    std: float | None = None
    probabilities: tuple[tuple[Callable[[Any], Any], float], ...] = ()
    evidence: float | None = None
    tags: frozenset[str] = field(default=frozenset())


def disagreements(known: Known, result: pv.Result, factor: float = 2.0) -> list[str]:
    """Say which answers of a result lie outside of their own intervals, widened by a factor."""
    posterior, found = result.posterior, []
    asked = [("mean", known.mean, posterior.mean), ("std", known.std, posterior.std)]
    asked += [
        (f"P{k}", truth, lambda claim=claim: posterior.probability(claim))
        for k, (claim, truth) in enumerate(known.probabilities)
    ]
    if result.diagnostics.evidence is not None:
        asked.append(("evidence", known.evidence, lambda: result.diagnostics.evidence))
    for what, truth, ask in asked:
        if truth is None:
            continue
        estimate = ask()
        slack = 1e-9 * max(1.0, abs(truth))
        wide = estimate.widened(factor)
        if not wide.low - slack <= truth <= wide.high + slack:
            found.append(f"{known.name}: {what} is {truth:.6g}, but {result.engine} says {estimate}")
    return found


def posterior_moments(
    density: Callable[[float], float], low: float, high: float, points: Any = None
) -> tuple[float, ...]:
    """Return the mean, the standard deviation and the total of an unnormalised density, by quadrature."""
    options = {"points": points, "limit": 400, "epsabs": 0.0, "epsrel": 1e-11}
    total, first, second = (integrate.quad(lambda x, k=k: x**k * density(x), low, high, **options)[0] for k in range(3))
    mean = first / total
    return mean, math.sqrt(second / total - mean**2), total


def _known(
    name: str, program: Any, prior: Any, secret: Any, observation: Any, *, tags: str = "", **truth: Any
) -> Known:
    return Known(name, pv.Attack(program, prior, secret), observation, tags=frozenset(tags.split()), **truth)


def continuous() -> list[Known]:
    window = stats.norm(0, math.sqrt(5))
    inside = stats.truncnorm(2.99 / math.sqrt(5), 3.01 / math.sqrt(5), scale=math.sqrt(5))
    sums = {"x": pv.Normal(0, sd=1), "y": pv.Normal(0, sd=2)}
    waiting = posterior_moments(lambda x: math.exp(-max(0.0, 1.4 - x)) - math.exp(-(1.6 - x)), 0, 1)
    laplace = posterior_moments(lambda x: NormalDist(0, 1).pdf(x) * stats.laplace.pdf(1 - x, scale=0.5), -8, 8, [1.0])
    product = posterior_moments(lambda x: NormalDist(x, math.sqrt(0.25 * x * x + 0.09)).pdf(2.0), 1, 2)
    heavy = posterior_moments(lambda x: stats.cauchy.pdf(x) * NormalDist(0, 1).pdf(3 - x), -40, 40, [0.0, 3.0])
    ends = math.log(1.9), math.log(2.1)
    cut = stats.truncnorm(*ends)
    shifted = posterior_moments(
        lambda x: stats.gamma.pdf(x, 2) * (stats.beta.cdf(2.1 - x, 2, 2) - stats.beta.cdf(1.9 - x, 2, 2)),
        0.9,
        2.1,
        [1.1],
    )
    return [
        _known(
            "sum of normals in a window",
            lambda x, y: x + y,
            sums,
            "x",
            pv.near(3, within=0.01),
            mean=0.2 * inside.mean(),
            std=math.sqrt(0.8 + 0.04 * inside.var()),
            evidence=window.cdf(3.01) - window.cdf(2.99),
            tags="quick",
        ),
        _known(
            "sum of normals exactly",
            lambda x, y: x + y,
            sums,
            "x",
            pv.equals(3.0),
            mean=0.6,
            std=math.sqrt(0.8),
            evidence=window.pdf(3),
        ),
        _known(
            "mean of twenty",
            lambda xs: np.mean(xs),
            {"xs": pv.Array(pv.Normal(0, sd=1), 20)},
            lambda xs: xs[3],
            pv.equals(0.4),
            mean=0.4,
            std=math.sqrt(0.95),
        ),
        _known(
            "uniform plus exponential",
            lambda x, y: x + y,
            {"x": pv.Uniform(0, 1), "y": pv.Exponential(scale=1)},
            "x",
            pv.between(1.4, 1.6),
            mean=waiting[0],
            std=waiting[1],
            evidence=waiting[2],
        ),
        _known(
            "laplace noise",
            lambda x, noise: x + noise,
            {"x": pv.Normal(0, sd=1), "noise": pv.Laplace(0, 0.5)},
            "x",
            pv.equals(1.0),
            mean=laplace[0],
            std=laplace[1],
            evidence=laplace[2],
        ),
        _known(
            "product",
            lambda x, y: x * y,
            {"x": pv.Uniform(1, 2), "y": pv.Normal(1, sd=0.5)},
            "x",
            pv.noisy(2.0, sd=0.3),
            mean=product[0],
            std=product[1],
            evidence=product[2],
        ),
        _known(
            "maximum",
            lambda x, y: max(x, y),
            {"x": pv.Uniform(0, 1), "y": pv.Uniform(0, 1)},
            "x",
            pv.between(0.9, 1.0),
            probabilities=((lambda x: x < 0.5, 0.05 / 0.19),),
            evidence=0.19,
        ),
        _known(
            "exponential function",
            lambda x: np.exp(x),
            {"x": pv.Normal(0, sd=1)},
            "x",
            pv.near(2.0, within=0.1),
            mean=cut.mean(),
            std=cut.std(),
            evidence=NormalDist(0, 1).cdf(ends[1]) - NormalDist(0, 1).cdf(ends[0]),
        ),
        _known(
            "cauchy prior",
            lambda x, e: x + e,
            {"x": pv.Cauchy(0, 1), "e": pv.Normal(0, sd=1)},
            "x",
            pv.equals(3.0),
            mean=heavy[0],
            std=heavy[1],
            evidence=heavy[2],
        ),
        _known(
            "gamma plus beta",
            lambda x, y: x + y,
            {"x": pv.Gamma(2, scale=1), "y": pv.Beta(2, 2)},
            "x",
            pv.near(2.0, within=0.1),
            mean=shifted[0],
            std=shifted[1],
            evidence=shifted[2],
        ),
    ]


def discrete() -> list[Known]:
    die = {"x": pv.DiscreteUniform(1, 6), "y": pv.DiscreteUniform(1, 6)}
    counts = np.arange(11)
    weights = stats.binom.pmf(counts, 10, 0.3) * stats.dlaplace.pmf(8 - counts, 1 / 1.5)
    ill = {"records": pv.Records(5, lambda i: pv.Row(zip=pv.Choice(["1010", "1020"]), ill=pv.Bernoulli(0.2)))}
    return [
        _known(
            "two dice",
            lambda x, y: x + y,
            die,
            "x",
            pv.equals(9),
            mean=4.5,
            evidence=4 / 36,
            probabilities=((lambda x: x == 3, 0.25), (lambda x: x < 3, 0.0)),
        ),
        _known(
            "noisy count",
            lambda n, noise: n + noise,
            {"n": pv.Binomial(10, 0.3), "noise": pv.DiscreteLaplace(1.5)},
            "n",
            pv.equals(8),
            mean=float(weights @ counts / weights.sum()),
            evidence=float(weights.sum()),
        ),
        _known(
            "randomized response",
            lambda truth, coin: truth if coin else 1 - truth,
            {"truth": pv.Bernoulli(0.1), "coin": pv.Bernoulli(0.75)},
            "truth",
            pv.equals(1),
            mean=0.075 / 0.3,
            evidence=0.3,
        ),
        _known(
            "rows with a label",
            lambda records: sum(1 for r in records if r.ill and r.zip == "1010"),
            ill,
            lambda records: records[0].ill,
            pv.equals(2),
            probabilities=((lambda x: x == 1, 0.4 + 0.6 * 0.1 / 0.9),),
            evidence=stats.binom.pmf(2, 5, 0.1),
        ),
        _known(
            "largest of three",
            lambda xs: max(xs),
            {"xs": pv.Array(pv.DiscreteUniform(1, 10), 3)},
            lambda xs: xs[0],
            pv.equals(10),
            probabilities=((lambda x: x == 10, 0.1 / (1 - 0.9**3)),),
            evidence=1 - 0.9**3,
        ),
    ]


def mixed() -> list[Known]:
    odds = 0.3 * NormalDist(5, 1).pdf(4.0), 0.7 * NormalDist(0, 1).pdf(4.0)
    wide = math.hypot(1, 0.5)
    low, high = 0.3 * NormalDist(0, wide).pdf(2.0), 0.7 * NormalDist(3, wide).pdf(2.0)
    share = high / (low + high)
    return [
        _known(
            "a coin shifts a normal",
            lambda x, b: x + 5 * b,
            {"x": pv.Normal(0, sd=1), "b": pv.Bernoulli(0.3)},
            "b",
            pv.equals(4.0),
            mean=odds[0] / sum(odds),
            evidence=sum(odds),
            tags="quick",
        ),
        _known(
            "mixture prior",
            lambda x, e: x + e,
            {"x": pv.Mixture([pv.Normal(0, sd=1), pv.Normal(3, sd=1)], [0.3, 0.7]), "e": pv.Normal(0, sd=0.5)},
            "x",
            pv.equals(2.0),
            mean=(1 - share) * 2 * 0.8 + share * (3 - 0.8),
            evidence=low + high,
        ),
        _known(
            "an atom",
            lambda x: max(x, 0.0),
            {"x": pv.Normal(0, sd=1)},
            "x",
            pv.equals(0.0),
            probabilities=((lambda x: x < -1, NormalDist(0, 1).cdf(-1) / 0.5),),
            evidence=0.5,
        ),
        _known(
            "a branch",
            lambda x, b: x if b else 2 * x,
            {"x": pv.Normal(1, sd=1), "b": pv.Bernoulli(0.5)},
            "b",
            pv.between(3, 4),
            mean=(p := NormalDist(1, 1).cdf(4) - NormalDist(1, 1).cdf(3))
            / (p + (q := NormalDist(2, 2).cdf(4) - NormalDist(2, 2).cdf(3))),
            evidence=(p + q) / 2,
        ),
    ]


def hierarchical() -> list[Known]:
    center = pv.Normal(0, sd=1)
    rate = pv.Beta(2, 2)
    scale = pv.Gamma(2, scale=1)
    spread = 1 / (1 + 5)
    poisson = stats.nbinom(2, 0.5).pmf(6)
    return [
        _known(
            "a population's mean",
            lambda rows, center: np.mean(rows),
            {"rows": pv.Array(pv.Normal(center, sd=1), 5), "center": center},
            "center",
            pv.equals(1.2),
            mean=1.2 * 5 * spread,
            std=math.sqrt(spread),
            evidence=NormalDist(0, math.sqrt(1.2)).pdf(1.2),
            tags="quick",
        ),
        _known(
            "a population's rate",
            lambda ill, rate: sum(ill),
            {"ill": pv.Array(pv.Bernoulli(rate), 10), "rate": rate},
            "rate",
            pv.equals(8),
            mean=10 / 14,
            std=stats.beta(10, 4).std(),
            evidence=stats.betabinom(10, 2, 2).pmf(8),
        ),
        _known(
            "a rate of events",
            lambda n, scale: n,
            {"n": pv.Poisson(scale), "scale": scale},
            "scale",
            pv.equals(6),
            mean=8 / 2,
            std=math.sqrt(8) / 2,
            evidence=poisson,
        ),
    ]


def hard() -> list[Known]:
    square = posterior_moments(NormalDist(0.5, 2).pdf, math.sqrt(3.9), math.sqrt(4.1))
    mirror = posterior_moments(NormalDist(0.5, 2).pdf, -math.sqrt(4.1), -math.sqrt(3.9))
    ten = stats.norm(0, math.sqrt(10))
    five = stats.norm(0, math.sqrt(5))
    bound = 6 * math.sqrt(5)
    beyond = stats.norm.pdf(6) / stats.norm.sf(6) * math.sqrt(5)
    events = np.arange(20, 80)
    tail = stats.poisson.pmf(events, 3)
    sharp = posterior_moments(lambda x: NormalDist(0, 1).pdf(x) * NormalDist(1.0, 0.001).pdf(x), 0.98, 1.02, [1.0])
    two = {"x": pv.Normal(0, sd=1), "y": pv.Normal(0, sd=1)}
    return [
        _known(
            "two modes",
            lambda x: x * x,
            {"x": pv.Normal(0.5, sd=2)},
            "x",
            pv.near(4.0, within=0.1),
            probabilities=((lambda x: x > 0, square[2] / (square[2] + mirror[2])),),
            evidence=square[2] + mirror[2],
        ),
        _known(
            "a distance",
            lambda x, y: abs(x - y),
            two,
            "x",
            pv.near(1.0, within=0.05),
            mean=0.0,
            evidence=2 * (NormalDist(0, math.sqrt(2)).cdf(1.05) - NormalDist(0, math.sqrt(2)).cdf(0.95)),
        ),
        _known(
            "a sharp window",
            lambda xs: sum(xs),
            {"xs": pv.Array(pv.Normal(0, sd=1), 10)},
            lambda xs: xs[0],
            pv.near(2.0, within=1e-4),
            mean=0.2,
            std=math.sqrt(0.9),
            evidence=2e-4 * ten.pdf(2.0),
        ),
        _known(
            "sharp noise",
            lambda x: x,
            {"x": pv.Normal(0, sd=1)},
            "x",
            pv.noisy(1.0, sd=0.001),
            mean=sharp[0],
            std=sharp[1],
            evidence=sharp[2],
        ),
        _known(
            "six deviations",
            lambda xs: sum(xs),
            {"xs": pv.Array(pv.Normal(0, sd=1), 5)},
            lambda xs: xs[0],
            pv.between(bound, math.inf),
            mean=beyond / 5,
            evidence=five.sf(bound),
            tags="rare",
        ),
        _known(
            "many events",
            lambda n: n,
            {"n": pv.Poisson(3)},
            "n",
            pv.between(20, math.inf),
            mean=float(tail @ events / tail.sum()),
            evidence=float(tail.sum()),
            tags="rare",
        ),
        _known(
            "twenty heads",
            lambda coins, z: sum(coins) + 0 * z,
            {"coins": pv.Array(pv.Bernoulli(0.5), 20), "z": pv.Bernoulli(0.25)},
            "z",
            pv.equals(20),
            mean=0.25,
            evidence=2.0**-20,
            tags="rare",
        ),
    ]


def several() -> list[Known]:
    two = {"x": pv.Normal(0, sd=1), "y": pv.Normal(0, sd=2)}
    spread = math.sqrt(0.8)
    return [
        _known(
            "two sums exactly",
            lambda x, y: {"sum": x + y, "difference": x - y},
            two,
            "x",
            {"sum": pv.equals(3.0), "difference": pv.equals(1.0)},
            mean=2.0,
            std=0.0,
            evidence=NormalDist(0, 1).pdf(2) * NormalDist(0, 2).pdf(1) / 2,
        ),
        _known(
            "the same twice, noisily",
            lambda x: (x, x),
            {"x": pv.Normal(0, sd=1)},
            "x",
            [pv.noisy(1.0, sd=1.0), pv.noisy(2.0, sd=1.0)],
            mean=1.0,
            std=math.sqrt(1 / 3),
        ),
        _known(
            "exactly and in a window",
            lambda x, y, z: (x + y, x + z),
            {**two, "z": pv.Normal(0, sd=1)},
            "x",
            [pv.equals(3.0), pv.between(-100, 100)],
            mean=0.6,
            std=spread,
            evidence=NormalDist(0, math.sqrt(5)).pdf(3),
        ),
    ]


QUESTIONS = [*continuous(), *discrete(), *mixed(), *hierarchical(), *hard(), *several()]
