"""Order statistics of rows, against betas, products of distribution functions, quadrature and enumeration."""

import heapq
import itertools
import math
import statistics

import numpy as np
import pytest
from scipy import integrate, stats

import privug as pv
from privug.model.node import Kind


def exact(program, prior, secret, observe=None):
    result = pv.Attack(program, prior, secret).run(observe=observe, engine="exact")
    assert result.engine == "exact (sums)"
    return result


def uniforms(count):
    return {"xs": pv.Array(pv.Uniform(0, 1), count)}


def first(xs):
    return xs[0]


def median(xs):
    return np.median(xs)


PICKS = {
    "statistics": (lambda xs: statistics.median(xs), 4),
    "low": (lambda xs: statistics.median_low(xs), 4),
    "sorted": (lambda xs: sorted(xs)[2], 2),
    "reversed": (lambda xs: sorted(xs, reverse=True)[1], 7),
    "from the end": (lambda xs: np.sort(xs)[-2], 7),
    "nlargest": (lambda xs: heapq.nlargest(3, xs)[-1], 6),
    "nsmallest": (lambda xs: heapq.nsmallest(2, xs)[1], 1),
    "percentile": (lambda xs: np.percentile(xs, 75), 6),
    "quantile": (lambda xs: np.quantile(xs, 0.125), 1),
}


@pytest.mark.parametrize("name", PICKS)
def test_a_rank_of_uniforms_is_a_beta(name):
    program, rank = PICKS[name]
    prediction = exact(program, uniforms(9), first).prediction
    beta = stats.beta(rank + 1, 9 - rank)
    assert float(prediction.mean()) == pytest.approx(beta.mean(), abs=1e-12)
    assert float(prediction.std()) == pytest.approx(beta.std(), abs=1e-12)
    assert float(prediction.probability(lambda x: x < 0.3)) == pytest.approx(beta.cdf(0.3), abs=1e-13)


@pytest.mark.parametrize("name", PICKS)
def test_a_window_of_a_rank(name):
    """Rows are exchangeable: the chance that one is below a window follows from how many are."""
    program, rank = PICKS[name]
    result = exact(program, uniforms(9), first, pv.between(0.3, 0.4))
    beta = stats.beta(rank + 1, 9 - rank)
    evidence = beta.cdf(0.4) - beta.cdf(0.3)
    assert float(result.diagnostics.evidence) == pytest.approx(evidence, rel=1e-12)
    below = sum(
        stats.multinomial.pmf([i, j, 9 - i - j], 9, [0.3, 0.1, 0.6]) * i / 9
        for i in range(rank + 1)
        for j in range(rank + 1 - i, 10 - i)
    )
    assert float(result.posterior.probability(lambda x: x < 0.3)) == pytest.approx(below / evidence, rel=1e-11)


def test_an_exact_median_may_be_the_secret():
    result = exact(median, uniforms(5), first, pv.equals(0.4))
    assert float(result.diagnostics.evidence) == pytest.approx(stats.beta(3, 3).pdf(0.4), rel=1e-12)
    assert result.posterior.kind is Kind.MIXED
    assert float(result.posterior.probability(lambda x: x == 0.4)) == pytest.approx(0.2, abs=1e-12)
    assert float(result.posterior.probability(lambda x: x < 0.4)) == pytest.approx(0.4, abs=1e-12)
    assert float(result.posterior.mean()) == pytest.approx(0.2 * 0.4 + 0.4 * 0.2 + 0.4 * 0.7, abs=1e-12)


def test_rows_that_are_not_alike():
    """The second largest of three, by the products of distribution functions."""
    laws = [stats.norm(0, 1), stats.expon(scale=2), stats.uniform(-1, 4)]
    prior = {"a": pv.Normal(0, sd=1), "b": pv.Exponential(scale=2), "c": pv.Uniform(-1, 3)}
    result = exact(lambda a, b, c: sorted([a, b, c])[1], prior, "a", pv.between(0.5, 0.75))

    def up_to(v, own):
        p, q = laws[1].cdf(v), laws[2].cdf(v)
        return p + q - p * q if own <= v else p * q

    def seen(own):
        return up_to(0.75, own) - up_to(0.5, own)

    parts = [
        laws[0].cdf(0.5) * seen(0.0),
        (laws[0].cdf(0.75) - laws[0].cdf(0.5)) * seen(0.6),
        laws[0].sf(0.75) * seen(9),
    ]
    assert float(result.diagnostics.evidence) == pytest.approx(sum(parts), rel=1e-12)
    assert float(result.posterior.probability(lambda a: a > 0.75)) == pytest.approx(parts[2] / sum(parts), rel=1e-11)


def test_far_out_a_median_keeps_its_digits():
    result = exact(median, {"xs": pv.Array(pv.Normal(0, sd=1), 9)}, first, pv.between(2.9, math.inf))
    wanted = stats.beta(5, 5).cdf(stats.norm.sf(2.9))
    assert wanted < 3e-12
    assert float(result.diagnostics.evidence) == pytest.approx(wanted, rel=1e-9)


def test_many_rows():
    result = exact(median, uniforms(10_001), first, pv.between(0.5, 0.51))
    beta = stats.beta(5001, 5001)
    assert float(result.diagnostics.evidence) == pytest.approx(beta.cdf(0.51) - 0.5, rel=1e-9)


def test_counted_numbers_by_enumeration():
    prior = {"xs": pv.Array(pv.Choice([1, 2, 5, 9], [0.4, 0.3, 0.2, 0.1]), 5)}
    chances = {1: 0.4, 2: 0.3, 5: 0.2, 9: 0.1}
    result = pv.Attack(lambda xs: round(np.median(xs) / 2), prior, first).run(observe=pv.equals(1), engine="exact")
    total, own = 0.0, 0.0
    for xs in itertools.product(chances, repeat=5):
        if round(sorted(xs)[2] / 2) == 1:
            chance = math.prod(chances[x] for x in xs)
            total, own = total + chance, own + chance * (xs[0] == 5)
    assert float(result.diagnostics.evidence) == pytest.approx(total, rel=1e-12)
    assert float(result.posterior.probability(lambda x: x == 5)) == pytest.approx(own / total, abs=1e-12)


def test_clamped_numbers_have_atoms():
    prior = {"xs": [pv.Uniform(0, 1) for _ in range(4)]}
    result = exact(lambda xs: max(min(x, 0.5) for x in xs), prior, first, pv.equals(0.5))
    evidence = 1 - 0.5**4
    assert float(result.diagnostics.evidence) == pytest.approx(evidence, rel=1e-12)
    above = result.posterior.probability(lambda x: x > 0.5)
    assert float(above) == pytest.approx(0.5 / evidence, rel=1e-12)


def noisy(xs):
    return np.median(xs) + pv.sample(pv.Laplace(0, 0.1))


def test_a_noisy_median():
    noise, law = stats.laplace(0, 0.1), stats.beta(3, 3)
    window = exact(noisy, uniforms(5), first, pv.between(0.3, 0.5))
    wanted = integrate.quad(lambda y: law.pdf(y) * (noise.cdf(0.5 - y) - noise.cdf(0.3 - y)), 0, 1, points=[0.3, 0.5])
    assert float(window.diagnostics.evidence) == pytest.approx(wanted[0], rel=1e-10)
    value = exact(noisy, uniforms(5), first, pv.equals(0.4))
    dense = [
        integrate.quad(lambda y, k=k: y**k * law.pdf(y) * noise.pdf(0.4 - y), 0, 1, points=[0.4])[0] for k in (0, 1)
    ]
    assert float(value.diagnostics.evidence) == pytest.approx(dense[0], rel=1e-10)
    # A row is the median, or one of two below or above it, anywhere there: E[x | m] = m / 5 + 2/5 m/2 + 2/5 (1 + m)/2.
    assert float(value.posterior.mean()) == pytest.approx(0.2 + 0.6 * dense[1] / dense[0], rel=1e-10)


def test_the_middle_of_four():
    """The density of the mean of the middle two, by an integral over the lower one."""
    prior = {"xs": pv.Array(pv.Exponential(scale=1), 4)}
    law = stats.expon()

    def density(m):
        return integrate.quad(lambda x: 48 * law.pdf(x) * law.cdf(x) * law.pdf(2 * m - x) * law.sf(2 * m - x), 0, m)[0]

    result = exact(median, prior, first, pv.equals(0.8))
    assert float(result.diagnostics.evidence) == pytest.approx(density(0.8), rel=1e-10)
    window = exact(median, prior, first, pv.between(0.7, 0.9))
    wanted = integrate.quad(density, 0.7, 0.9)[0]
    assert float(window.diagnostics.evidence) == pytest.approx(wanted, rel=1e-10)


def test_a_quantile_between_two_rows():
    program = lambda xs: np.percentile(xs, 30)  # of eight: at place 2.1
    result = exact(program, uniforms(8), first)
    assert float(result.prediction.mean()) == pytest.approx(3.1 / 9, rel=1e-11)


@pytest.mark.parametrize(
    "program", [lambda xs: max(xs) - min(xs), lambda xs: np.ptp(xs), lambda xs: xs.max() - xs.min()]
)
def test_a_range_of_uniforms_is_a_beta(program):
    result = exact(program, uniforms(6), first, pv.between(0.6, 0.7))
    beta = stats.beta(5, 2)
    assert float(result.diagnostics.evidence) == pytest.approx(beta.cdf(0.7) - beta.cdf(0.6), rel=1e-11)
    assert float(result.posterior.mean()) == pytest.approx(0.5, abs=1e-11)


def test_a_range_tells_of_the_secret_what_quadrature_says():
    result = exact(lambda xs: min(xs) - max(xs), uniforms(3), first, pv.between(-0.5, -0.4))

    def up_to(r, s):  # the smallest is another one at a, or the secret
        return integrate.quad(lambda a: 2 * (min(a + r, 1) - a), max(0, s - r), s)[0] + (min(s + r, 1) - s) ** 2

    wanted = integrate.quad(lambda s: up_to(0.5, s) - up_to(0.4, s), 0, 0.25)[0]
    evidence = stats.beta(2, 2).cdf(0.5) - stats.beta(2, 2).cdf(0.4)
    assert float(result.diagnostics.evidence) == pytest.approx(evidence, rel=1e-11)
    assert float(result.posterior.probability(lambda s: s < 0.25)) == pytest.approx(wanted / evidence, rel=1e-10)


def test_smallest_and_largest_together():
    prior = {"xs": [pv.Uniform(0, 1) for _ in range(6)]}
    both = lambda xs: (min(xs), max(xs))
    result = exact(both, prior, first, (pv.between(0.1, 0.2), pv.between(0.7, 0.8)))
    evidence = 0.7**6 - 2 * 0.6**6 + 0.5**6
    assert float(result.diagnostics.evidence) == pytest.approx(evidence, rel=1e-12)
    inner = 0.5 * (0.7**5 - 2 * 0.6**5 + 0.5**5) / evidence
    assert float(result.posterior.probability(lambda x: (x > 0.2) & (x < 0.7))) == pytest.approx(inner, rel=1e-11)
    values = exact(both, prior, first, (pv.equals(0.1), pv.equals(0.8)))
    assert float(values.diagnostics.evidence) == pytest.approx(30 * 0.7**4, rel=1e-12)
    assert float(values.posterior.probability(lambda x: x == 0.8)) == pytest.approx(1 / 6, abs=1e-12)


def test_one_of_several_is_seen():
    prior = {"xs": [pv.Uniform(0, 1) for _ in range(5)]}
    program = lambda xs: {"mean": sum(xs) / 5, "median": statistics.median(xs)}
    result = exact(program, prior, first, {"median": pv.between(0.4, 0.5)})
    assert float(result.diagnostics.evidence) == pytest.approx(0.5 - stats.beta(3, 3).cdf(0.4), rel=1e-12)


def test_a_function_of_a_rank():
    result = exact(lambda xs: np.median(xs) > 0.6, uniforms(5), first, pv.equals(True))
    assert float(result.diagnostics.evidence) == pytest.approx(stats.beta(3, 3).sf(0.6), rel=1e-12)
    rounded = exact(lambda xs: round(10 * np.median(xs)), uniforms(5), first, pv.equals(4))
    assert float(rounded.diagnostics.evidence) == pytest.approx(
        np.diff(stats.beta(3, 3).cdf([0.35, 0.45]))[0], rel=1e-12
    )


def test_the_joint_with_the_rank_itself_is_endless():
    result = exact(median, uniforms(5), first)
    information = pv.leakage.mutual_information(result.joint)
    assert math.isinf(float(information))
    assert "with some probability" in str(information.method)


def test_information_of_a_threshold():
    result = exact(lambda xs: np.median(xs) > 0.5, uniforms(5), first)
    # The secret is on the side of the median with probability 1/2 + C(4, 2) / 2^5.
    p = 0.5 + 6 / 32
    wanted = 1 + p * math.log2(p) + (1 - p) * math.log2(1 - p)
    assert float(pv.leakage.mutual_information(result.joint)) == pytest.approx(wanted, rel=1e-10)


def test_information_about_a_band():
    """The density of the median of five, given on which side of a half one row is."""
    result = exact(median, uniforms(5), lambda xs: xs[0] > 0.5)

    def low(y):  # the row is at most a half, and so up to y with probability min(1, 2 y)
        below = min(1.0, 2 * y)
        passed = below * stats.beta(2, 3).pdf(y) + (1 - below) * stats.beta(3, 2).pdf(y)
        return 2 * (y < 0.5) * stats.binom(4, y).pmf(2) + passed

    def gained(y):
        a, b = low(y), low(1 - y)
        return sum(p / 2 * math.log2(2 * p / (a + b)) for p in (a, b) if p > 0)

    wanted = integrate.quad(gained, 0, 1, points=[0.5], epsabs=1e-12)[0]
    assert float(pv.leakage.mutual_information(result.joint)) == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize(
    ("program", "observe", "why"),
    [
        (lambda xs: (np.max(xs), np.sum(xs)), (pv.between(0.5, 0.9), pv.between(1, 2)), "order statistics and sums"),
        (lambda xs: np.ptp(xs) + pv.sample(pv.Laplace(0, 1)), pv.between(0, 1), "noise"),
        (lambda xs: np.max(xs) + np.min(xs) - 2 * np.median(xs), pv.between(0, 1), "more than two"),
    ],
)
def test_refusals_say_why(program, observe, why):
    with pytest.raises(pv.UnsuitableEngine, match=why):
        pv.Attack(program, uniforms(5), first).run(observe=observe, engine="exact")


def test_rows_far_from_zero_beside_their_width():
    low, width = 1000.0, 1e-6
    prior = {"xs": [pv.Uniform(low, low + width) for _ in range(5)]}
    mean = exact(lambda xs: np.median(xs), prior, first).prediction.mean().value
    assert mean == pytest.approx(low + width / 2, abs=1e-3 * width)
