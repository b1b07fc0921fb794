"""Mutual information of secret and output in bits, by enumeration and quadrature, without Privug."""

from itertools import product

import numpy as np
from scipy.special import digamma, gammaln, ndtr, xlogy
from scipy.stats import beta, binom, gamma, multinomial, poisson

from releases.closed import clamped_normal
from releases.closed_more import rounded_cell
from releases.numerics import nodes, normal
from releases.register import Register

INFORMATION = Register()
of = INFORMATION.of


def of_joint(joint: np.ndarray) -> float:
    """Return the mutual information of rows and columns of a table of probabilities (or densities times weights)."""
    joint = np.asarray(joint, float)
    independent = np.outer(joint.sum(1), joint.sum(0))
    positive = joint > 0
    return float((joint[positive] * np.log2(joint[positive] / independent[positive])).sum())


def entropy(density: np.ndarray, weights: np.ndarray) -> float:
    return -float(weights @ xlogy(density, density)) / np.log(2)


def flagged(n: int, p: float) -> np.ndarray:
    """Return the joint of whether the first of n is one of those counted, and the count."""
    k = np.arange(n + 1)
    return np.stack([(1 - p) * binom.pmf(k, n - 1, p), p * binom.pmf(k - 1, n - 1, p)])


@of("count over 60")
def _():
    return of_joint(flagged(25, ndtr(-2 / 3)))


@of("whether anyone is over 90")
def _():
    k = np.arange(13)
    count, nobody = binom.pmf(k, 12, 0.5), 0.75**k
    return of_joint([count * nobody, count * (1 - nobody)])


@of("true count under a noisy one")
def _():
    k = np.arange(31)
    y, w = nodes(*range(-80, 112), count=16)
    count = binom.pmf(k, 30, gamma.sf(50, 2, scale=15))
    return of_joint(count[:, None] * np.exp(-abs(y - k[:, None]) / 2) / 4 * w)


@of("one cell of a histogram, label asked")
def _():
    edges = ndtr((np.array([0, 50, 75, 100]) - 62) / 15)
    p = np.diff(edges) / (edges[-1] - edges[0])
    counts = np.array([(a, b, 80 - a - b) for a, b in product(range(81), repeat=2) if a + b <= 80])
    after = -xlogy(counts / 80, counts / 80).sum(1)
    return (-xlogy(p, p).sum() - multinomial.pmf(counts, 80, p) @ after) / np.log(2)


@of("randomised response about a threshold")
def _():
    p, k = ndtr((3.5 - np.log(50)) / 0.7), np.arange(21)
    rest = [binom.pmf(k - said, 19, 0.75 * p + 0.125) for said in (0, 1)]
    return of_joint([(1 - p) * (0.875 * rest[0] + 0.125 * rest[1]), p * (0.125 * rest[0] + 0.875 * rest[1])])


@of("small count replaced by a sentinel")
def _():
    joint = flagged(50, np.exp(-12 / 5))
    return of_joint(np.column_stack([joint[:, :5].sum(1), joint[:, 5:]]))


@of("risk of each behind an illness")
def _():
    risk, w = nodes(0, 0.25, 0.5, 1)
    k = np.arange(16)
    given = risk[:, None] * binom.pmf(k - 1, 14, 0.2) + (1 - risk[:, None]) * binom.pmf(k, 14, 0.2)
    return of_joint((w * beta.pdf(risk, 2, 8))[:, None] * given)


@of("risk of all behind an illness")
def _():
    risk, w = nodes(*0.5 ** np.arange(40, -1, -1))
    return of_joint((w * beta.pdf(risk, 2, 8))[:, None] * binom.pmf(np.arange(21), 20, risk[:, None]))


@of("shared rate behind a suppressed count")
def _():
    rate, w = nodes(*0.5 ** np.arange(40, 0, -1), *range(1, 41))
    joint = (w * gamma.pdf(rate, 3, scale=0.8))[:, None] * poisson.pmf(np.arange(400), 4 * rate[:, None])
    return of_joint(np.column_stack([joint[:, :5].sum(1), joint[:, 5:]]))


@of("outcome of a vote")
def _():
    alice, other = ndtr(1.5), ndtr(-0.05)
    rejected = np.array([(1 - alice) * binom.cdf(10, 20, other), alice * binom.cdf(9, 20, other)])
    return of_joint(np.stack([rejected, [1 - alice, alice] - rejected]))


@of("mean over a subgroup, suppressed below 2")
def _():
    age, w = nodes(*np.linspace(-20, 80, 11))
    y, v = nodes(*np.linspace(-5, 65, 11))
    given = np.zeros((len(age), len(y)))
    for k in range(2, 13):
        with_her = normal(y, (age[:, None] + 30 * (k - 1)) / k, 5 * np.sqrt(k - 1) / k)
        given += 0.5 * binom.pmf(k, 11, 0.5) * normal(y, 30, 5 / np.sqrt(k))
        given += 0.5 * binom.pmf(k - 1, 11, 0.5) * with_her
    weight = w * normal(age, 30, 5)  # whether it is suppressed does not depend on her age
    mean = weight @ given
    return float(weight @ (given * np.log2(given / mean)) @ v)


@of("clamped mean with Laplace noise")
def _():
    # Given her age the output is the rest's sum, shifted: information is a difference of two entropies.
    return _entropy_with_noise(15) - _entropy_with_noise(14)


def _entropy_with_noise(n: int) -> float:
    """Return the entropy of the sum of n clamped ages and Laplace noise of scale 72, the width of a panel."""
    total = clamped_normal(n)
    places = total.places()
    y, w = nodes(*(places[0] + 72 * np.arange(-45, n + 46)), count=32)
    density = sum(atom * np.exp(-abs(y - place) / 72) for atom, place in zip(total.atoms, places, strict=True))
    for panel, start in enumerate(places[:-1]):
        s, v = nodes(start, start + 72, count=48)
        outside = (y < start) | (y > start + 72)
        density[outside] += np.exp(-abs(y[outside, None] - s) / 72) @ (v * total.density(s, panel))
        for i in np.flatnonzero(~outside):
            s, v = nodes(start, y[i], start + 72, count=48)
            density[i] += np.exp(-abs(y[i] - s) / 72) @ (v * total.density(s, panel))
    return entropy(density / 144, w)


@of("seven exponential times")
def _():
    def entropy_of_gamma(shape):
        return shape + gammaln(shape) + (1 - shape) * digamma(shape)

    return (entropy_of_gamma(7) - entropy_of_gamma(6)) / np.log(2)


@of("mean wage, nobody below the minimum")
def _():
    def density_entropy(shape):  # by quadrature, where seven exponential times have the closed form
        x, w = nodes(*0.5 ** np.arange(30, 0, -1), *range(1, 81, 3))
        return entropy(gamma.pdf(x, shape), w)

    return density_entropy(6) - density_entropy(5)


@of("sum of rounded cells")
def _():
    one, rest = rounded_cell(), np.ones(1)
    for _ in range(11):
        rest = np.convolve(rest, one)
    joint = np.zeros((len(one), len(one) + len(rest) - 1))
    for place, p in enumerate(one):
        joint[place, place : place + len(rest)] = p * rest
    return of_joint(joint)


@of("mixture of grades")
def _():
    def of_sum(n):
        y, w = nodes(*range(40, 201, 2), count=32)
        k = np.arange(n + 1)
        sums = normal(y[:, None], 4 * k + 8 * (n - k), np.sqrt(k + 0.49 * (n - k)))
        return entropy(sums @ binom.pmf(k, n, 0.4), w)

    return of_sum(20) - of_sum(19)


@of("a level that all share")
def _():
    level, w = nodes(*range(0, 101, 10))
    return of_joint(
        (w * normal(level, 50, 5))[:, None] * binom.pmf(np.arange(26), 25, ndtr((level - 60) / 10)[:, None])
    )


@of("count with discrete noise of a mechanism")
def _():
    k, q, y = np.arange(19), np.exp(-0.7), np.arange(-60, 80)
    noise = (1 - q) / (1 + q) * q ** abs(y - k[:, None])
    return of_joint(flagged(18, ndtr(-12 / 14)) @ noise)
