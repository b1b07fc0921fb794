"""The other closed forms and second methods: several sums, unlike rows, order statistics, facts, exact values."""

from itertools import product
from math import exp

import numpy as np
from scipy.special import ndtr
from scipy.stats import beta, binom, chi2, expon, gamma, laplace, multinomial, pareto, poisson, t

from releases.numerics import BoundedSum, integral, nodes, normal, normal_window
from releases.register import Register

CLOSED = Register()
of = CLOSED.of


@of("rounded mean in a table of random size")
def _():
    both, seen = 0.0, poisson.pmf(1, 30) / 60
    for size in range(2, 120):
        rest = 45 * (size - 1), 6 * np.sqrt(size - 1)

        def joint(x, size=size, rest=rest):
            return normal_window(45.5 * size - x, 46.5 * size - x, *rest) / 60

        weight = poisson.pmf(size, 30)
        both += weight * integral(joint, *range(65, 81, 3))
        seen += weight * integral(joint, *range(20, 81, 3))
    return both, seen


@of("rounded mean and count together")
def _():
    # The three above 60 exceed it by u in all, the seven below fall short of it by v: u - v is between -75 and -65.
    above = BoundedSum.of(3, 0, 110, lambda x: normal(60 + x, 50, 12), degree=100)
    below = BoundedSum.of(7, 0, 185, lambda x: normal(60 - x, 50, 12), degree=128)
    x, w = nodes(*np.linspace(0, 110, 4))
    u = above.density(x)
    seen = 120 * float(w @ (u * np.array([below.window(one + 65, one + 75) for one in x])))
    return 0.3 * seen, seen


@of("means by group")
def _():
    found = np.zeros(3)
    windows = (44.5, 47.5), (46.5, 49.5), (43.5, 46.5)
    for a, b in product(range(12), repeat=2):
        others = [a, b, 11 - a - b]
        if min(others) < 0:
            continue
        weight = multinomial.pmf(others, 11, [0.5, 0.3, 0.2]) / 3
        for alice in range(3):
            sizes = [count + (group == alice) for group, count in enumerate(others)]
            if min(sizes) == 0:
                continue
            each = weight
            for group, size in enumerate(sizes):
                own = group == alice
                mean, var = 45 * (size - own) + 60 * own, 25 * (size - own) + 100 * own
                each *= normal_window(*windows[group], mean / size, np.sqrt(var) / size)
            found[alice] += each
    return found[1], found.sum()


def squares_below(x, degrees, shift):
    """Return P(sum of squares of normals of this mean and deviation one <= x): Poisson weights of chi-squared."""
    j = np.arange(60)[:, None]
    return (poisson.pmf(j, degrees * shift**2 / 2) * chi2.cdf(x, degrees + 2 * j)).sum(0)


@of("mean square deviation")
def _():
    def joint(x):
        rest = [squares_below(np.maximum(edge - (x - 50) ** 2 / 100, 0), 9, 0.3) for edge in (15, 17)]
        return normal(x, 53, 10) * (rest[1] - rest[0])

    ends = 50 + 10 * np.sqrt([15, 17])
    seen = np.diff(squares_below(np.array([15.0, 17.0]), 10, 0.3))[0]
    return integral(joint, *np.linspace(60, ends[0], 5), *graded(*ends)), seen


def graded(low, high):
    """Return edges after low that crowd towards high, where a power that is not whole begins."""
    return [high - (high - low) * 0.5**k for k in range(1, 25)] + [high]


@of("mixture of grades")
def _():
    def window(x, low_grades, n):
        mean, var = 4 * low_grades + 8 * (n - low_grades), low_grades + 0.49 * (n - low_grades)
        return normal_window(118 - x, 122 - x, mean, np.sqrt(var))

    def joint(x):
        rest = sum(binom.pmf(k, 19, 0.4) * window(x, k, 19) for k in range(20))
        return (0.4 * normal(x, 4, 1) + 0.6 * normal(x, 8, 0.7)) * rest

    seen = sum(binom.pmf(k, 20, 0.4) * window(0, k, 20) for k in range(21))
    return integral(joint, *np.linspace(-8, 5.5, 16)), seen


@of("one of two numbers by a flag")
def _():
    def seen(first, k):
        mean, var = 90 * (first + k) + 50 * (9 - first - k), 400 * (first + k) + 100 * (9 - first - k)
        return binom.pmf(k, 8, 0.3) * normal_window(590, 610, mean, np.sqrt(var))

    both = 0.3 * sum(seen(1, k) for k in range(9))
    return both, both + 0.7 * sum(seen(0, k) for k in range(9))


@of("weighted mean, discrete weights")
def _():
    both = seen = 0.0
    for a, b in product(range(9), repeat=2):
        if a + b <= 8:
            c = 8 - a - b
            sd = 6 * np.sqrt(a + 4 * b + 25 * c) / (a + 2 * b + 5 * c)
            each = multinomial.pmf([a, b, c], 8, [1 / 3] * 3) * normal_window(25, 27, 20, sd)
            both, seen = both + each * c / 8, seen + each
    return both, seen


def rounded_cell():
    """Return the probabilities of a cell of mean 12 and deviation 5 to be rounded to -40, -35, ... 60."""
    steps = 5 * np.arange(-8, 13)
    return normal_window(steps - 2.5, steps + 2.5, 12, 5)


@of("sum of rounded cells")
def _():
    rest = np.ones(1)
    for _ in range(11):
        rest = np.convolve(rest, rounded_cell())  # starts at 5 * (-8 * 11)
    above = rounded_cell() * (np.arange(-8, 13) > 4)
    above[12] = normal_window(20, 22.5, 12, 5)
    return np.convolve(rest, above)[32 + 96], np.convolve(rest, rounded_cell())[32 + 96]


@of("two rounded means, with and without one person")
def _():
    def over_60(s):
        return normal(s, 360, 30) * (435 - s - np.maximum(60, 425 - s)) / 70

    return integral(over_60, 364.5, 365, 373.5), normal_window(364.5, 373.5, 360, 30) * 10 / 70


@of("seven exponential times")
def _():
    def joint(x):
        return expon.pdf(x, scale=10) * (gamma.cdf(87.5 - x, 6, scale=10) - gamma.cdf(80.5 - x, 6, scale=10))

    return integral(joint, 20, 50, 80.5, 87.5), gamma.cdf(8.75, 7) - gamma.cdf(8.05, 7)


@of("mean of Student's t")
def _():
    # The characteristic function of three degrees of freedom is (1 + c) exp(-c) at c = sqrt(3) |t|.
    frequency, w = nodes(*np.linspace(0, 9, 40))

    def window(low, high, n):
        c = np.sqrt(3) * frequency
        transform = w * ((1 + c) * np.exp(-c)) ** n / frequency / np.pi
        return (np.sin(np.multiply.outer(high, frequency)) - np.sin(np.multiply.outer(low, frequency))) @ transform

    def joint(z):
        return t.pdf(z, 3) * window(4.5 - z, 5.5 - z, 4)

    def far(inverse):
        return joint(1 / inverse) / inverse**2

    both = integral(joint, *np.linspace(2.5, 40, 40)) + integral(far, *np.geomspace(1 / 400, 1 / 40, 10))
    return both, float(window(4.5, 5.5, 5))


@of("price times quantity")
def _():
    states = {(0, 0): 1.0}
    for _ in range(5):
        more: dict[tuple[int, int], float] = {}
        for (total, squares), p in states.items():
            for q in range(1, 6):
                key = total + q, squares + q * q
                more[key] = more.get(key, 0.0) + p / 5
        states = more
    found = [
        sum(p * normal_window(410, 430, 20 * (s + q), 4 * np.sqrt(r + q * q)) for (s, r), p in states.items()) / 5
        for q in range(1, 6)
    ]
    return found[3] + found[4], sum(found)


@of("band of a mark behind a rounded mean")
def _():
    inside = ndtr(42 / 18) - ndtr(-58 / 18)

    def row(n):
        return BoundedSum.of(n, 0, 100, lambda x: normal(x, 58, 18) / inside)

    rest = row(24)

    def joint(x):
        windows = [rest.window(25 * 60.5 - one, 25 * 61.5 - one) for one in x]
        return normal(x, 58, 18) / inside * np.array(windows)

    return integral(joint, 70, 85, 100), row(25).window(25 * 60.5, 25 * 61.5)


@of("whether Alice earns more than Bob")
def _():
    def joint(d):  # the sum given the difference
        return normal(d, 10, np.sqrt(244)) * normal_window(
            330, 342, 310 - 44 / 244 * (d - 10), np.sqrt(820 - 44**2 / 244)
        )

    return integral(joint, *range(0, 161, 20)), normal_window(330, 342, 310, np.sqrt(820))


@of("number of claims behind their sum")
def _():
    k = np.arange(1, 80)
    each = poisson.pmf(k, 4) * (gamma.cdf(16, k, scale=3) - gamma.cdf(14, k, scale=3))
    return each[4:].sum(), each.sum()


@of("mean and variance together")
def _():
    # Given mean and variance a person is anywhere on a sphere: (x - mean)^2 / (11 var) is Beta(1/2, 5).
    mean, w = nodes(51, 53)
    var, v = nodes(105, 135)
    above = beta.sf(np.subtract.outer(60, mean)[:, None] ** 2 / (11 * var), 0.5, 5) / 2
    weight = np.outer(w * normal(mean, 50, 10 / np.sqrt(12)), v * chi2.pdf(var * 12 / 100, 11) * 12 / 100)
    return (weight * above).sum(), weight.sum()


@of("cost of illness, the number of ill known")
def _():
    known = binom.pmf([3, 4], 10, 0.2)
    each = known * [gamma.cdf(8, 2 * k) - gamma.cdf(6, 2 * k) for k in (3, 4)]
    return each @ [0.3, 0.4], each.sum(), known.sum()


def few(n, below, above, at_most_below, at_most_above):
    """Return P(at most so many of n below a window and at most so many above it), each of that probability."""
    counts = product(range(at_most_below + 1), range(at_most_above + 1))
    p = [below, above, 1 - below - above]
    return sum(multinomial.pmf([a, b, n - a - b], n, p) for a, b in counts if a + b <= n)


@of("median of eleven rents")
def _():
    below, above = gamma.cdf(9.5, 5, scale=2), gamma.sf(10.5, 5, scale=2)
    return above * few(10, below, above, 5, 4), few(11, below, above, 5, 5)


@of("third largest of fifteen")
def _():
    below, above = pareto.cdf(2.0, 2.5), pareto.sf(2.2, 2.5)
    both = above * few(14, below, above, 12, 1) + (1 - below - above) * few(14, below, above, 12, 2)
    return both, few(15, below, above, 12, 2)


@of("range of eight")
def _():
    def within(x, r):  # all eight within r, and the first is at x
        m, w = nodes(*np.linspace(-1, 0, 5))
        places = x[:, None] + r * m
        rest = 7 * normal(places, 40, 10) * normal_window(places, places + r, 40, 10) ** 6
        return normal(x, 40, 10) * (normal_window(x, x + r, 40, 10) ** 7 + r * rest @ w)

    def joint(x):
        return within(x, 42) - within(x, 38)

    both = integral(joint, *range(55, 161, 15))
    return both, both + integral(joint, *range(-80, 56, 15))


@of("largest of a summary, the rest unseen")
def _():
    others = gamma.cdf([118, 122], 4, scale=15) ** 9
    alice = (np.array([118, 122]) - 40) / 160
    return 4 / 160 * others[1], others[1] * alice[1] - others[0] * alice[0]


@of("third quartile of nine")
def _():
    below, above = laplace.cdf(0.9), laplace.sf(1.1)
    under = laplace.cdf(0.9) - laplace.cdf(0.5)
    both = under * few(8, below, above, 5, 2) + (1 - below - above) * few(8, below, above, 6, 2)
    return both + above * few(8, below, above, 6, 1), few(9, below, above, 6, 2)


@of("mean wage, nobody below the minimum")
def _():
    def joint(x):  # what is above the minimum has forgotten it
        return expon.pdf(x, scale=10) * (gamma.cdf(126 - x, 5, scale=10) - gamma.cdf(114 - x, 5, scale=10))

    return integral(joint, 25, 60, 90, 114, 126), gamma.cdf(12.6, 6) - gamma.cdf(11.4, 6)


@of("mean of three, Alice older than Bob")
def _():
    def joint(alice):
        younger, w = nodes(*np.linspace(0, 150, 11))
        bob = alice[:, None] - younger
        return normal(alice, 50, 15) * (
            normal(bob, 55, 10) * normal_window(151.5 - alice[:, None] - bob, 154.5 - alice[:, None] - bob, 40, 8) @ w
        )

    both = integral(joint, *np.linspace(60, 190, 14))
    return both, both + integral(joint, *np.linspace(-80, 60, 15)), ndtr(-5 / np.sqrt(325))


@of("exact value of a square")
def _():
    both, other = normal(2, 1, 2) / 4, normal(-2, 1, 2) / 4
    return both, both + other


@of("exact value in one of two units")
def _():
    both = 0.1 * exp(-0.24 / 50) / 50 / 1000
    return both, both + 0.9 * exp(-240 / 50) / 50


@of("noisy value of a sum of unlike parts")
def _():
    sd, scale = np.sqrt(36 + 16), 5.0

    def smooth(z):  # the density of normal parts and noise and the exponential one
        z = (z - 50) / sd
        return np.exp((sd / scale) ** 2 / 2 - z * sd / scale) * ndtr(z - sd / scale) / scale

    part, v = nodes(10, 20, 40)
    triangle = v * np.where(part < 20, (part - 10) / 150, (40 - part) / 300)

    def joint(x):
        return smooth(120 - x[:, None] - part) @ triangle / 60

    both = integral(joint, 45, 60)
    return both, both + integral(joint, 0, 15, 30, 45)


@of("exact values of a pair in order")
def _():
    both = normal(1.25) * normal(0.5, 1, 2)
    return both, both + normal(0.5) * normal(1.25, 1, 2)


@of("exact values of a size and a sum")
def _():
    both = normal(0.75, 0.5) * normal(1.25, 1, 2)
    return both, both + normal(-0.75, 0.5) * normal(2.75, 1, 2)


@of("count with discrete noise of a mechanism")
def _():
    k, p, q = np.arange(19), ndtr(-12 / 14), exp(-0.7)
    noise = (1 - q) / (1 + q) * q ** abs(5 - k)
    between = ndtr(-2 / 14) - p
    both = p * binom.pmf(k - 1, 17, p) + between * binom.pmf(k, 17, p)
    return both @ noise, binom.pmf(k, 18, p) @ noise


@of("exact value of a capped sum and noise")
def _():
    def row(n):
        return BoundedSum.of(n, 0, 50, lambda x: np.exp(-x / 20) / 20, 0, exp(-50 / 20))

    def noise(shift):
        return lambda s: np.exp(-abs(120 - shift - s) / 10) / 20

    return exp(-50 / 20) * row(5).expected(noise(50), [70]), row(6).expected(noise(0), [120])


@of("a boom that all share")
def _():
    both, other = 0.4 * binom.sf(2, 12, ndtr(-1 / 3)), 0.6 * binom.sf(2, 12, ndtr(-10 / 6))
    return both, both + other


@of("a level that all share")
def _():
    def joint(level):
        return normal(level, 50, 5) * binom.pmf(7, 25, ndtr((level - 60) / 10))

    both = integral(joint, *range(53, 104, 10))
    return both, both + integral(joint, *range(3, 54, 10))


@of("exact value of payouts above a deductible")
def _():
    k, p = np.arange(1, 7), exp(-10 / 8)
    each = binom.pmf(k, 6, p) * gamma.pdf(25, k, scale=8)
    return each @ k / 6, each.sum()
