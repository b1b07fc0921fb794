"""Questions whose posterior has several modes, beside many numbers that blur it; shares of modes by quadrature."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

import privug as pv

BLURRING = 25


class Sides(NamedTuple):
    """A question about a secret `s`, and the probability that it is positive."""

    program: Callable[..., Any]
    prior: dict[str, Any]
    observation: Any
    truth: float


def blurred(function: Callable[[Any], Any], s: Any, density: Callable[[Any], Any], seen: float, sd: float) -> Sides:
    """See a function of s and the mean of many standard normal numbers through normal noise."""
    grid = np.linspace(-15, 15, 600_001)
    posterior = density(grid) * stats.norm.pdf(seen, function(grid), np.hypot(sd, 1 / np.sqrt(BLURRING)))
    prior = {"s": s, "xs": [pv.Normal(0, sd=1) for _ in range(BLURRING)]}
    truth = float(posterior[grid > 0].sum() / posterior.sum())
    return Sides(lambda s, xs: function(s) + sum(xs) / BLURRING, prior, pv.noisy(seen, sd=sd), truth)


MULTIMODAL = {
    "square": blurred(lambda s: s * s, pv.Normal(0.5, sd=2), stats.norm(0.5, 2).pdf, 36.0, 0.1),
    "likely square": blurred(lambda s: s * s, pv.Normal(0.5, sd=2), stats.norm(0.5, 2).pdf, 4.0, 0.1),
    "lopsided square": blurred(lambda s: s * s, pv.Normal(1.0, sd=1.5), stats.norm(1.0, 1.5).pdf, 9.0, 0.1),
    "fourth power": blurred(lambda s: s * s * s * s, pv.Normal(0.2, sd=1), stats.norm(0.2, 1).pdf, 16.0, 0.5),
    "wave": blurred(lambda s: 4 * np.sin(3 * s), pv.Normal(0, sd=1), stats.norm(0, 1).pdf, 4.0, 0.1),
}
