"""Standard distributions that SciPy lacks, against quadrature."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import integrate, stats

from privug.prior.standard import BinomialCounts, Located, StandardNormal, StandardUniform, UniformPlusNormal, binomial

WIDTHS = [0.25, 1.0, 2.8, 50.0]


def tail_by_quadrature(x, width):
    """P(normal + uniform <= x), for x in the lower tail, integrated over where the uniform part lies."""
    found, _ = integrate.quad(lambda u: stats.norm.cdf(x - u), 0, min(width, 10.0), epsrel=1e-13, epsabs=0)
    return found / width


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("x", [-25.0, -8.0, -3.0, -0.5])
def test_tails_keep_their_digits(x, width):
    law = UniformPlusNormal(width)
    lower = tail_by_quadrature(x, width)
    assert float(law.cdf(x)) == pytest.approx(lower, rel=1e-11)
    assert float(law.sf(width - x)) == pytest.approx(lower, rel=1e-11)
    density = (stats.norm.cdf(x) - stats.norm.cdf(x - width)) / width
    assert float(law.pdf(x)) == pytest.approx(density, rel=1e-12)
    assert float(law.logpdf(width - x)) == pytest.approx(math.log(density), rel=1e-13)


@pytest.mark.parametrize("width", WIDTHS)
def test_quantiles_are_inverse(width):
    law = UniformPlusNormal(width)
    shares = np.array([1e-250, 1e-9, 0.2, 0.5, 0.99, 1 - 1e-9])
    assert law.cdf(law.ppf(shares)) == pytest.approx(shares, rel=1e-10)
    assert law.sf(law.isf(shares)) == pytest.approx(shares, rel=1e-10)
    assert law.ppf(np.array([0.0, 1.0])).tolist() == [-math.inf, math.inf]
    assert law.cdf(np.array([-math.inf, math.inf])).tolist() == [0.0, 1.0]


@pytest.mark.parametrize("width", WIDTHS)
def test_moments(width):
    law = UniformPlusNormal(width)
    mean, _ = integrate.quad(lambda x: x * law.pdf(x), -40, width + 40, points=[0, width])
    var, _ = integrate.quad(lambda x: (x - mean) ** 2 * law.pdf(x), -40, width + 40, points=[0, width])
    assert law.mean() == pytest.approx(mean, rel=1e-9)
    assert law.std() == pytest.approx(math.sqrt(var), rel=1e-9)


@pytest.mark.parametrize("chance", [0.0, 1e-12, 0.1, 0.25, 0.5, 0.75, 0.9999, 1.0])
@pytest.mark.parametrize("trials", [0, 1, 2, 15, 16, 17, 89, 500])
def test_binomial_probabilities_are_those_of_fractions(trials, chance):
    p = Fraction(chance)
    whole = [math.comb(trials, k) * p**k * (1 - p) ** (trials - k) for k in range(trials + 1)]
    found = binomial(np.arange(trials + 1), trials, chance)
    assert found == pytest.approx([float(share) for share in whole], rel=3e-13, abs=0)
    assert found[found > 1e-3] == pytest.approx([float(share) for share in whole if share > 1e-3], rel=5e-15)


def test_binomial_probabilities_of_many_trials_and_of_what_cannot_be():
    assert binomial(500_000, 10**6, 0.5) == pytest.approx(stats.binom.pmf(500_000, 10**6, 0.5), rel=2e-14)
    assert binomial(10**9 + 31_623, 2 * 10**9, 0.5) == pytest.approx(
        stats.norm.pdf(31_623, scale=math.sqrt(5e8)), rel=1e-8
    )
    assert binomial([-1, 0.5, 4], 3, 0.5).tolist() == [0.0, 0.0, 0.0]
    law = BinomialCounts(np.array([3.0, 5.0]), 0.5)
    assert law.pmf(np.array([3, 5])) == pytest.approx([1 / 8, 1 / 32], rel=1e-15)
    assert law.logpmf(np.array([3, 5])) == pytest.approx(np.log([1 / 8, 1 / 32]), rel=1e-15)
    assert law.cdf(np.array([1, 2])) == pytest.approx([0.5, 0.5], rel=1e-15)
    assert [end.tolist() for end in law.support()] == [[0.0, 0.0], [3.0, 5.0]]


@pytest.mark.parametrize(
    ("own", "peer"),
    [
        (Located(StandardNormal(), 3.0, -40.0), stats.norm(-40, 3)),
        (Located(StandardUniform(), 3.0, -40.0), stats.uniform(-40, 3)),
    ],
)
def test_a_located_distribution_is_scipys(own, peer):
    x, p = np.linspace(-60, -30, 61), np.linspace(0, 1, 21)
    for name in ("pdf", "logpdf", "cdf", "sf"):
        assert getattr(own, name)(x) == pytest.approx(getattr(peer, name)(x), rel=1e-13, abs=0), name
    for name in ("ppf", "isf"):
        assert getattr(own, name)(p) == pytest.approx(getattr(peer, name)(p), rel=1e-14), name
    assert own.support() == peer.support()
    assert (own.mean(), own.std()) == pytest.approx((peer.mean(), peer.std()))
