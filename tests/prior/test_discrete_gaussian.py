"""The discrete normal distribution against sums over its definition."""

import numpy as np
import pytest
import scipy.stats

import privug as pv
from privug.prior.discrete import DISCRETE_GAUSSIAN, DiscreteGaussian, DiscreteNormal


def defined(sd, k):
    everywhere = np.arange(-10_000, 10_001)
    odds = np.exp(-0.5 * (everywhere / sd) ** 2)
    return np.exp(-0.5 * (k / sd) ** 2) / odds.sum()


@pytest.mark.parametrize("sd", [0.05, 0.3, 0.69, 0.71, 1.0, 7.3, 120.0])
def test_probabilities_and_distribution_function(sd):
    k = np.arange(-400, 401)
    distribution = DiscreteNormal(sd)
    expected = defined(sd, k)
    np.testing.assert_allclose(distribution.pmf(k), expected, rtol=1e-12, atol=1e-300)
    below = np.cumsum(defined(sd, np.arange(-10_000, 401)))[9_600:]
    np.testing.assert_allclose(distribution.cdf(k), below, atol=1e-12)
    np.testing.assert_allclose(distribution.cdf(k) + distribution.sf(k), 1.0, atol=1e-12)
    assert distribution.pmf(0.5) == 0
    variance = (defined(sd, np.arange(-5000, 5001)) * np.arange(-5000, 5001) ** 2).sum()
    assert distribution.std() == pytest.approx(np.sqrt(variance))


@pytest.mark.parametrize("sd", [0.3, 1.0, 49.0, 51.0, 1e6, 1e15])
def test_quantiles_invert_the_distribution_function(sd):
    distribution = DiscreteNormal(sd)
    p = np.array([1e-6, 0.01, 0.3, 0.5, 0.9, 0.999])
    k = distribution.ppf(p)
    assert np.all(distribution.cdf(k) >= p * (1 - 1e-12))
    assert np.array_equal(distribution.isf(p), distribution.ppf(1 - p)) or sd > 1e4
    if sd < 1e6:
        assert np.all(distribution.cdf(k - 1) < p)


@pytest.mark.parametrize("sd", [1e-200, 0.4, 3.0, 2e4])
def test_draws_follow_the_probabilities(sd):
    draws = DISCRETE_GAUSSIAN.draw(np.random.default_rng(1), 20_000, (), [np.array([sd])])
    distribution = DiscreteNormal(sd)
    values, counts = np.unique(draws, return_counts=True)
    distance = np.abs(distribution.cdf(values) - np.cumsum(counts) / 20_000)
    assert distance.max() < 1.95 / np.sqrt(20_000)  # Kolmogorov and Smirnov at one in a thousand


def test_exact_inference_sees_it():
    prior = {"x": pv.DiscreteUniform(0, 3)}
    attack = pv.Attack(lambda x: x + pv.sample(DiscreteGaussian(2.0)), prior, "x", observe=pv.equals(5))
    posterior = attack.run(engine="exact").posterior.distribution()
    weights = scipy.stats.norm.pdf(5 - np.arange(4), scale=2.0)
    for x in range(4):
        assert posterior[x].value == pytest.approx(weights[x] / weights.sum(), abs=1e-12)


@pytest.mark.parametrize("sd", [0, -1, np.nan, np.inf, 1e16, "wide"])
def test_bad_deviations(sd):
    with pytest.raises(pv.PriorError, match="DiscreteGaussian: sd must be"):
        DiscreteGaussian(sd)
