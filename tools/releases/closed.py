"""Closed forms and second methods: P(query and what was seen), P(what was seen), and P(facts) where there are some."""

from itertools import product
from math import exp

import numpy as np
from scipy.interpolate import make_interp_spline
from scipy.special import ndtr
from scipy.stats import beta, betabinom, binom, gamma, lognorm, multinomial, nbinom, t

from releases.numerics import BoundedSum, integral, laplace_window, normal, normal_window
from releases.register import Register

CLOSED = Register()
of = CLOSED.of


@of("count over 60")
def _():
    p = ndtr(-2 / 3)
    return p * binom.pmf(8, 24, p), binom.pmf(9, 25, p)


@of("share over 65 in per cent")
def _():
    p, over_70, counts = gamma.sf(65, 6, scale=8), gamma.sf(70, 6, scale=8), np.array([4, 5, 6])
    return over_70 * binom.pmf(counts - 1, 39, p).sum(), binom.pmf(counts, 40, p).sum()


@of("whether anyone is over 90")
def _():
    seen = binom.pmf(4, 12, 0.5)
    return seen * (1 - 0.75**4), seen


@of("true count under a noisy one")
def _():
    k = np.arange(31)
    each = binom.pmf(k, 30, gamma.sf(50, 2, scale=15)) * laplace_window(6.5, 7.5, k, 2)
    return each[6:].sum(), each.sum()


@of("noisy count in a table of random size")
def _():
    p, both, seen = ndtr(-0.75), 0.0, 0.0
    for size in range(1, 61):
        k, weight = np.arange(size + 1), binom.pmf(size, 60, 0.4)
        window = laplace_window(8, 9, k, 1.5)
        seen += weight * (binom.pmf(k, size, p) @ window)
        both += weight * p * (binom.pmf(k - 1, size - 1, p) @ window)
    return both, seen


@of("histogram with small cells suppressed")
def _():
    edges = ndtr((np.array([30, 50, 70]) - 42) / 15)
    seen = multinomial.pmf([6, 15, 8, 1], 30, np.diff([0, *edges, 1]))
    return seen * 9 / 30, seen


@of("one cell of a histogram, label asked")
def _():
    low, cut, high = ndtr((np.array([0, 75, 100]) - 62) / 15)
    seen = binom.pmf(20, 80, (high - cut) / (high - low))
    return seen / 4, seen


@of("histogram with Laplace noise")
def _():
    both, seen, p = 0.0, 0.0, np.array([17, 25, 20]) / 62
    for young, old in product(range(16), repeat=2):
        if young + old <= 15:
            counts = [young, 15 - young - old, old]
            each = multinomial.pmf(counts, 15, p) * np.prod(laplace_window([5, 4, 2], [7, 6, 4], counts, 1))
            seen, both = seen + each, both + each * young / 15
    return both, seen


@of("randomised response about a threshold")
def _():
    p = ndtr((3.5 - np.log(50)) / 0.7)
    yes = 0.75 * p + 0.125
    return p * (0.875 * binom.pmf(8, 19, yes) + 0.125 * binom.pmf(9, 19, yes)), binom.pmf(9, 20, yes)


@of("small count replaced by a sentinel")
def _():
    p, between = exp(-12 / 5), exp(-10 / 5) - exp(-12 / 5)
    return p * binom.cdf(3, 49, p) + between * binom.cdf(4, 49, p), binom.cdf(4, 50, p)


@of("count of a thousand in tens")
def _():
    k = np.array([k for k in range(1001) if 10 * round(k / 10) == 240])
    each = binom.pmf(k, 1000, -np.expm1(-((15 / 40) ** 1.5)))
    return each @ k / 1000, each.sum()


@of("risk of each behind an illness")
def _():
    ill = 0.2 * beta.sf(0.3, 3, 8) * binom.pmf(5, 14, 0.2)
    return ill + 0.8 * beta.sf(0.3, 2, 9) * binom.pmf(6, 14, 0.2), binom.pmf(6, 15, 0.2)


@of("risk of all behind an illness")
def _():
    seen = betabinom.pmf(6, 20, 2, 8)
    return seen * beta.sf(0.3, 8, 22), seen


@of("shared rate behind a suppressed count")
def _():
    rate = 1 / 0.8
    seen = nbinom.pmf(13, 3, rate / (rate + 4))
    return seen * gamma.sf(3, 16, scale=1 / (rate + 4)), seen


@of("unemployment by region, one seen")
def _():
    people, p = np.array([4, 8, 12, 16, 20]), -np.expm1(-1 / 6)
    each = binom.pmf(people, 20, 0.4) * binom.pmf(people // 4, people, p)
    return each @ (people / 4 + (20 - people) * p) / 20, each.sum()


@of("outcome of a vote")
def _():
    alice, other = ndtr(1.5), ndtr(-0.05)
    both = alice * binom.cdf(9, 20, other)
    return both, both + (1 - alice) * binom.cdf(10, 20, other)


@of("mean over a subgroup, suppressed below 2")
def _():
    k = np.arange(2, 13)
    within = normal_window(30.5, 31.5, 30, 5 / np.sqrt(k))
    outside = 0.5 * ndtr(-0.4) * (binom.pmf(k, 11, 0.5) @ within)
    inside = 0.0
    for size, weight in zip(k, 0.5 * binom.pmf(k - 1, 11, 0.5), strict=True):
        rest = 30 * (size - 1), 5 * np.sqrt(size - 1)

        def joint(x, size=size, rest=rest):
            return normal(x, 30, 5) * normal_window(30.5 * size - x, 31.5 * size - x, *rest)

        inside += weight * integral(joint, *np.linspace(32, 80, 13))
    return outside + inside, binom.pmf(k, 12, 0.5) @ within


@of("sum over a subgroup")
def _():
    def seen(x):
        total = binom.pmf(0, 9, 0.3) * (abs(x - 230) <= 5)
        for k in range(1, 10):
            total = total + binom.pmf(k, 9, 0.3) * normal_window(225 - x, 235 - x, 50 * k, 8 * np.sqrt(k))
        return total / 80

    return integral(seen, *range(70, 101, 5)), integral(seen, *range(20, 101, 5))


@of("mean over a subgroup, a sentinel below 4")
def _():
    return 0.25 * binom.cdf(2, 19, 0.25), binom.cdf(3, 20, 0.25)


def clamped_normal(n: int) -> BoundedSum:
    """Return the sum of n ages of mean 40 and deviation 25 that were clamped to 18 to 90."""
    return BoundedSum.of(n, 18, 90, lambda x: normal(x, 40, 25), ndtr(-22 / 25), ndtr(-2))


def clamped_seen(n: int, low: float, high: float, above: float) -> tuple[float, float]:
    """Return P(first > above, mean in a window), P(mean in the window) of n clamped ages."""
    rest = clamped_normal(n - 1)
    low, high = n * low, n * high

    def seen(x):
        return normal(x, 40, 25) * np.array([rest.window(low - one, high - one) for one in x])

    cuts = [cut for edge in (low, high) for cut in edge - rest.places() if 18 < cut < 90]
    upper = [above, *sorted(cut for cut in cuts if cut > above), 90]
    both = integral(seen, *upper) + ndtr(-2) * rest.window(low - 90, high - 90)
    return both, clamped_normal(n).window(low, high)


@of("clamped mean")
def _():
    return clamped_seen(8, 47, 49, 60)


@of("clamped sum, far in the tail")
def _():
    return clamped_seen(20, 75.5, 76.5, 85)


@of("clamped mean with Laplace noise")
def _():
    rest = clamped_normal(14)

    def shifted(clamped):
        ends = 15 * 49 - clamped, 15 * 51 - clamped
        return rest.expected(lambda s: laplace_window(*ends, s, 72), ends)

    def seen(x):
        return normal(x, 40, 25) * np.array([shifted(one) for one in x])

    ends = 15 * 49, 15 * 51
    total = clamped_normal(15).expected(lambda s: laplace_window(*ends, s, 72), ends)
    # Kinks of third order where an end of the window passes an atom: two cuts take them out.
    cuts = [cut for edge in ends for cut in edge - rest.places() if 60 < cut < 90]
    return integral(seen, 60, *sorted(cuts), 90) + ndtr(-2) * shifted(90), total


@of("clamped mean with Gaussian noise, rounded")
def _():
    def row(n):
        low, high = t.cdf(0, 4, 60, 20), t.sf(100, 4, 60, 20)
        return BoundedSum.of(n, 0, 100, lambda x: t.pdf(x, 4, 60, 20), low, high)

    def within(shift):
        return lambda s: normal_window(1875 - shift, 1905 - shift, s, 60)

    return t.sf(100, 4, 60, 20) * row(29).expected(within(100)), row(30).expected(within(0))


@of("capped sum of 200 with Gaussian noise")
def _():
    def row(n):
        return BoundedSum.of(n, 0, 10, lambda x: np.exp(-x / 4) / 4, 0, exp(-10 / 4), degree=32)

    def within(shift):
        return lambda s: normal_window(760 - shift, 780 - shift, s, 20)

    return exp(-10 / 4) * row(199).expected(within(10)), row(200).expected(within(0))


def lognormal_sum(n: int, step: float, upto: float) -> np.ndarray:
    """Return the density of a sum of n salaries on a grid: the trapezoidal rule, which is exact for flat ends."""
    grid = np.arange(0, upto + step / 2, step)
    one = lognorm.pdf(grid, 0.6, scale=exp(3.5))
    found = one
    for _ in range(n - 1):
        size = 2 * len(grid)
        found = np.fft.irfft(np.fft.rfft(found, size) * np.fft.rfft(one, size), size)[: len(grid)] * step
    return found


@of("lognormal salaries")
def _():
    step, low, high = 0.1, 900, 940
    rest = lognormal_sum(19, step, high)
    below = make_interp_spline(step * np.arange(len(rest)), rest, k=9).antiderivative()

    def seen(x):
        inside = below(high - x) - below(np.maximum(low - x, 0))
        return lognorm.pdf(x, 0.6, scale=exp(3.5)) * inside

    both = integral(seen, *np.linspace(80, low, 42), high)
    return both, integral(seen, *np.geomspace(0.5, 80, 30)) + both


@of("top-coded salaries, rounded")
def _():
    def row(n):
        high = ndtr((3.6 - np.log(80)) / 0.8)
        return BoundedSum.of(n, 0, 80, lambda x: lognorm.pdf(x, 0.8, scale=exp(3.6)), 0, high, degree=96)

    return ndtr((3.6 - np.log(80)) / 0.8) * row(9).window(349.5, 350.5), row(10).window(429.5, 430.5)


@of("mean of those above a threshold")
def _():
    # What is above the threshold has forgotten it: a sum of k exponential excesses.
    p, both, seen = exp(-30 / 20), 0.0, 0.0
    for k in range(10, 201):
        low, high = 22.5 * k, 23.5 * k
        seen += binom.pmf(k, 200, p) * (gamma.cdf(high, k, scale=20) - gamma.cdf(low, k, scale=20))

        def joint(x, k=k, low=low, high=high):
            rest = gamma.cdf(high - x, k - 1, scale=20) - gamma.cdf(low - x, k - 1, scale=20)
            return np.exp(-x / 20) / 20 * rest

        both += p * binom.pmf(k - 1, 199, p) * integral(joint, *np.linspace(30, low, 8), high)
    return both, seen


@of("count and sum in a table of a thousand")
def _():
    def joint(x):
        rest = gamma.cdf(2150 - x, 408, scale=5) - gamma.cdf(2050 - x, 408, scale=5)
        return gamma.pdf(x, 2, scale=5) * rest

    window = gamma.cdf(2150, 410, scale=5) - gamma.cdf(2050, 410, scale=5)
    outside = 0.8 * binom.pmf(205, 999, 0.2) * gamma.sf(20, 2, scale=5) * window
    return outside + 0.2 * binom.pmf(204, 999, 0.2) * integral(joint, *range(20, 401, 20)), binom.pmf(
        205, 1000, 0.2
    ) * window
