"""Monotone functions of quantities with a density, against SciPy and closed forms."""

import math

import numpy as np
import pytest
from scipy import stats

import privug as pv


def prediction(program, **prior):
    return pv.Attack(program, prior, next(iter(prior))).run(engine="exact").prediction


def test_exponential_of_a_normal_quantity():
    output = prediction(lambda x, y: math.exp(x + y), x=pv.Normal(0.2, sd=0.3), y=pv.Normal(0, sd=0.4))
    expected = stats.lognorm(0.5, scale=math.exp(0.2))
    points = np.array([0.1, 0.5, 1.0, 2.0, 7.0])
    assert output.curve is not None
    assert output.curve.pdf(points) == pytest.approx(expected.pdf(points), rel=1e-9)
    assert output.curve.cdf(points) == pytest.approx(expected.cdf(points), abs=1e-12)
    assert output.curve.quantiles(np.array([0.01, 0.5, 0.99])) == pytest.approx(expected.ppf([0.01, 0.5, 0.99]))
    assert float(output.mean()) == pytest.approx(expected.mean(), rel=1e-9)
    assert float(output.std()) == pytest.approx(expected.std(), rel=1e-8)
    assert output.curve.differential_entropy() == pytest.approx(expected.entropy() / math.log(2), abs=1e-8)


def test_square_has_a_singular_density():
    output = prediction(lambda x, y: (x + y) ** 2, x=pv.Normal(0, sd=0.6), y=pv.Normal(0, sd=0.8))
    expected = stats.chi2(1)
    assert float(output.mean()) == pytest.approx(1, abs=1e-7)
    assert float(output.quantile(0.5)) == pytest.approx(expected.ppf(0.5), abs=1e-10)
    assert float(output.probability(lambda o: o < 0.01)) == pytest.approx(expected.cdf(0.01), abs=1e-11)


def test_reciprocal_has_no_mean():
    output = prediction(lambda x, y: 1 / (x + y), x=pv.Normal(0, sd=0.6), y=pv.Normal(0, sd=0.8))
    assert float(output.probability(lambda o: o > 1)) == pytest.approx(stats.norm.cdf(1) - 0.5, abs=1e-11)
    assert math.isnan(float(output.mean()))
    assert "does not exist" in output.mean().method


def test_exponential_of_heavy_noise_has_no_mean():
    output = prediction(lambda x, y: math.exp(x + y), x=pv.Laplace(0, 2), y=pv.Normal(0, sd=1))
    assert math.isnan(float(output.mean()))
    assert "does not exist" in output.mean().method
    assert float(output.median()) == pytest.approx(1, abs=1e-9)


def test_conditions_on_a_function():
    prior = {"x": pv.Uniform(0, 1), "y": pv.Uniform(0, 1)}
    result = pv.Attack(lambda x, y: -math.log(x), prior, "y", observe=pv.between(1, 2)).run(engine="exact")
    assert float(result.diagnostics.evidence) == pytest.approx(math.exp(-1) - math.exp(-2), abs=1e-12)
