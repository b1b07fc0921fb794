"""Rare observations whose probability, or density, is known in closed form, and so is a belief about the secret."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from scipy import integrate, stats

import privug as pv

NORMAL = stats.norm


class Rare(NamedTuple):
    """A question about a rare observation, the probability of that, and what one believes about the secret then."""

    program: Callable[..., Any]
    prior: dict[str, Any]
    secret: Any
    observation: Any
    truth: float
    event: Callable[[Any], Any]
    """Something about the secret, by which modes differ where there are several."""
    belief: float
    """The probability of that given the observation, if the observation has the probability that is stated."""

    def run(self, seed: int, samples: int = 1000) -> pv.Result:
        """Search for the observation."""
        attack = pv.Attack(self.program, prior=self.prior, secret=self.secret)
        return attack.run(observe=self.observation, engine="rare", samples=samples, seed=seed)


def flagged(p: float, shift: float, level: float) -> float:
    """Return the probability that a standard normal number, shifted with probability p, reaches a level."""
    return p * NORMAL.sf(level - shift) + (1 - p) * NORMAL.sf(level)


def above(level: float, tail: Callable[[float], float]) -> float:
    """Return the probability that a standard normal number is above a level and, given it, something in a tail."""
    return float(integrate.quad(lambda x: NORMAL.pdf(x) * tail(x), level, level + 12)[0])


def squared_near(seen: float, sign: int) -> float:
    """Return the density of seeing s^2 + N(0, sd 0.2) with noise of sd 0.1, for s ~ N(0.5, sd 2) of one sign."""
    root, noise = sign * math.sqrt(seen), math.hypot(0.1, 0.2)
    return float(
        integrate.quad(lambda s: NORMAL.pdf(s, 0.5, 2) * NORMAL.pdf(seen, s * s, noise), root - 0.5, root + 0.5)[0]
    )


PROBLEMS = {
    "a rare flag": Rare(
        lambda x, c: x + 5 * c,
        {"x": pv.Normal(0, sd=1), "c": pv.Bernoulli(1e-5)},
        "c",
        pv.between(5, math.inf),
        flagged(1e-5, 5, 5),
        lambda c: c == 1,
        1e-5 * NORMAL.sf(0) / flagged(1e-5, 5, 5),
    ),
    "a discrete needle": Rare(
        lambda x, c: x + 7 * (c == 2),
        {"x": pv.Normal(0, sd=1), "c": pv.Choice([0, 1, 2, 3], p=[0.4, 0.3, 1e-6, 0.299999])},
        "c",
        pv.between(6, math.inf),
        flagged(1e-6, 7, 6),
        lambda c: c == 2,
        1e-6 * NORMAL.sf(-1) / flagged(1e-6, 7, 6),
    ),
    "two modes": Rare(
        lambda x: x,
        {"x": pv.Normal(0, sd=1)},
        "x",
        pv.such_that(lambda x: x > 5.5 or x < -5.2),
        NORMAL.sf(5.5) + NORMAL.sf(5.2),
        lambda x: x > 0,
        NORMAL.sf(5.5) / (NORMAL.sf(5.5) + NORMAL.sf(5.2)),
    ),
    "a rare threshold": Rare(
        lambda x, u: x + 5 * (u > 4.265),
        {"x": pv.Normal(0, sd=1), "u": pv.Normal(0, sd=1)},
        "x",
        pv.between(5, math.inf),
        flagged(NORMAL.sf(4.265), 5, 5),
        lambda x: x > 1,
        (NORMAL.sf(4.265) * NORMAL.sf(1) + NORMAL.cdf(4.265) * NORMAL.sf(5)) / flagged(NORMAL.sf(4.265), 5, 5),
    ),
    "a rare component": Rare(
        lambda x, m: x + m,
        {"x": pv.Normal(0, sd=1), "m": pv.Mixture([pv.Normal(0, sd=1), pv.Normal(12, sd=1)], weights=[1 - 1e-6, 1e-6])},
        "x",
        pv.between(8, math.inf),
        flagged(1e-6, 12 / math.sqrt(2), 8 / math.sqrt(2)),
        lambda x: x > 0,
        above(0, lambda x: flagged(1e-6, 12, 8 - x)) / flagged(1e-6, 12 / math.sqrt(2), 8 / math.sqrt(2)),
    ),
    "several flags": Rare(
        lambda x, cs: x + 4 * sum(cs),
        {"x": pv.Normal(0, sd=1), "cs": [pv.Bernoulli(1e-4) for _ in range(5)]},
        "x",
        pv.between(6, math.inf),
        float(sum(stats.binom.pmf(k, 5, 1e-4) * NORMAL.sf(6 - 4 * k) for k in range(6))),
        lambda x: x > 2.5,
        sum(stats.binom.pmf(k, 5, 1e-4) * NORMAL.sf(max(2.5, 6 - 4 * k)) for k in range(6))
        / sum(stats.binom.pmf(k, 5, 1e-4) * NORMAL.sf(6 - 4 * k) for k in range(6)),
    ),
    "a flag beside twenty numbers": Rare(
        lambda xs, c: xs.sum() / math.sqrt(20) + 5 * c,
        {"xs": pv.Array(pv.Normal(0, sd=1), 20), "c": pv.Bernoulli(1e-5)},
        "c",
        pv.between(5, math.inf),
        flagged(1e-5, 5, 5),
        lambda c: c == 1,
        1e-5 * NORMAL.sf(0) / flagged(1e-5, 5, 5),
    ),
    "six deviations": Rare(
        lambda xs: xs.sum(),
        {"xs": pv.Array(pv.Normal(0, sd=1), 10)},
        lambda xs: xs[0],
        pv.between(6 * math.sqrt(10), math.inf),
        NORMAL.sf(6),
        lambda x: x > 2,
        above(2, lambda x: NORMAL.sf((6 * math.sqrt(10) - x) / 3)) / NORMAL.sf(6),
    ),
    "all of six digits": Rare(
        lambda xs: list(xs),
        {"xs": pv.Array(pv.DiscreteUniform(0, 9), 6)},
        lambda xs: xs[0],
        pv.equals([1, 2, 3, 4, 5, 6]),
        1e-6,
        lambda x: x == 1,
        1.0,
    ),
    "sharp noise": Rare(
        lambda x: x,
        {"x": pv.Normal(0, sd=1)},
        "x",
        pv.noisy(6.0, sd=0.01),
        NORMAL.pdf(6, 0, math.sqrt(1 + 1e-4)),
        lambda x: x > 6,
        NORMAL.sf((6 - 6 / (1 + 1e-4)) / math.sqrt(1 / (1 + 1e4))),
    ),
    "two modes beside many numbers": Rare(
        lambda s, xs: s * s + sum(xs) / 25,
        {"s": pv.Normal(0.5, sd=2), "xs": [pv.Normal(0, sd=1) for _ in range(25)]},
        "s",
        pv.noisy(36, sd=0.1),
        squared_near(36, 1) + squared_near(36, -1),
        lambda s: s > 0,
        squared_near(36, 1) / (squared_near(36, 1) + squared_near(36, -1)),
    ),
}
