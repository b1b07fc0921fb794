"""Estimates from neighbours at several numbers of neighbours: one value and an interval that allows for bias.

Few neighbours give a noisy value, many a smooth but biased one: they look at a wider surrounding. Going from k to 4k
neighbours doubles the width of the surrounding of two numbers, and widens it less in more dimensions. How the value
drifts then tells its bias: near sharp edges the bias grows like the width, so that for two numbers the value without
bias lies as far on the other side; on smooth densities it grows like the square of the width, and lies closer. The
interval reaches from one to the other.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import scipy

from privug.leakage.neighbours import Contributions
from privug.leakage.plugin import quantile
from privug.model.node import Array

Estimator = Callable[[int], Contributions]
"""From a number of neighbours to a value and each sample's contribution."""

# Measured on normal, uniform, exponential and Cauchy quantities with noise, from independent to correlation 0.999.
DRIFT = 3.0  # variance of the change from k to 4k neighbours, times k and samples, in squared bits: 2.4 to 3.4
LABEL_DRIFT = 1.0  # the same among samples of one label: 0.2 to 1.9
OVERLAP = 4 / 3  # contributions vary together, by this part of what their variance falls from k to 4k neighbours
TAILS = 0.25  # bias in tails that no drift shows, relative to the information times the root of k over samples
MORE = 8  # times the least number of neighbours that are tried
ROOM = 40  # samples for each neighbour that are needed to try more
WORK = 600_000  # samples times neighbours up to which more are tried


@dataclass(frozen=True)
class Settled:
    """A value with its interval, the number of neighbours that was settled on, and the contributions there."""

    value: float
    low: float
    high: float
    k: int
    terms: Array


def settled(
    estimator: Estimator, least: int, samples: int, *, dimension: int = 2, more: int = MORE, noise: float = DRIFT
) -> Settled:
    """Take as many neighbours as show no drift, from least to so many times more; give value and 95 % interval.

    `noise` is the variance of the drift where there is none, times neighbours and samples.
    """
    at = cache(estimator)

    def drift(neighbours: int) -> float:
        return at(neighbours)[0] - at(4 * neighbours)[0]

    def steady(neighbours: int) -> bool:
        return abs(drift(neighbours)) <= 1.5 * math.sqrt(noise / (neighbours * samples))

    k, most = least * more, min(samples // ROOM, WORK // samples)
    while k > least and (k > most or not steady(k)):
        k //= 2
    value, terms = at(k)
    fall = max(0.0, float(terms.var()) - float(at(4 * k)[1].var()))
    variance = (float(terms.var()) + OVERLAP * fall) / samples + (TAILS * value) ** 2 * k / samples
    stretch = 1 / (4 ** (1 / dimension) - 1)
    reach, near = drift(k) * stretch, quantile(samples) * math.sqrt(variance)
    far = quantile(samples) * math.sqrt(variance + noise / (k * samples) * stretch**2)
    middle = value if steady(k) else value + reach / 2
    low, high = min(value - near, value + reach - far), max(value + near, value + reach + far)
    return Settled(middle, min(low, middle), max(high, middle), k, terms)


def finest(k: int, samples: int) -> float:
    """Return about the most information that neighbours can show: that of an increasing function, in bits."""
    psi = scipy.special.digamma
    return float(psi(samples) - psi(np.float64(k))) / math.log(2)
