"""Values from the standard normal numbers behind them: the distribution they have, tails and order."""

import numpy as np
import pytest
from scipy import special, stats

import privug as pv
from oracles.families import ROWS
from privug.model.node import ConstantValue
from privug.prior.family import OfNormals, family_of

NUMBERS = 20_001
NORMALS = special.ndtri((np.arange(NUMBERS) + 0.5) / NUMBERS)
CASES = {row.name: (row.make(), row.reference) for row in ROWS} | {
    "choice": (pv.Choice([3, 5, 7], p=[0.2, 0.5, 0.3]), stats.rv_discrete(values=([3, 5, 7], [0.2, 0.5, 0.3]))),
    "heavy Gamma": (pv.Gamma(0.5, scale=2), stats.gamma(0.5, scale=2)),
    "heavy Beta": (pv.Beta(0.5, 2), stats.beta(0.5, 2)),
    "endless TruncatedNormal": (pv.TruncatedNormal(1, sd=2, low=0), stats.truncnorm(-0.5, np.inf, 1, 2)),
}


def values(variable, normals):
    node = variable.node
    parameters = [parent.operation.array for parent in node.parents if isinstance(parent.operation, ConstantValue)]
    with np.errstate(all="ignore"):  # as evaluation does
        return family_of(node).of_normals(np.asarray(normals), parameters)


@pytest.mark.parametrize("name", CASES)
def test_values_have_the_distribution_and_the_order_of_the_numbers(name):
    variable, known = CASES[name]
    found = values(variable, NORMALS)
    assert found.dtype == variable.node.dtype
    assert np.all(np.diff(found) >= 0)
    for level in (0.001, 0.1, 0.35, 0.6, 0.9, 0.999):
        point = known.ppf(level)
        assert np.mean(found <= point) == pytest.approx(known.cdf(point), abs=1.1 / NUMBERS)


@pytest.mark.parametrize(
    "name", ["Normal", "Laplace", "Exponential", "Gamma", "StudentT", "Cauchy", "LogNormal", "Weibull", "Pareto"]
)
def test_upper_tails_keep_their_digits(name):
    variable, known = CASES[name]
    assert known.sf(values(variable, [9.0])[0]) == pytest.approx(special.ndtr(-9.0), rel=1e-9)


@pytest.mark.parametrize(
    "name", ["Poisson", "Binomial", "Geometric", "NegativeBinomial", "Hypergeometric", "DiscreteLaplace"]
)
def test_whole_numbers_far_out(name):
    variable, known = CASES[name]
    low, high = values(variable, [-50.0, 50.0])
    assert known.support()[0] <= low < high <= known.support()[1]
    assert known.sf(high) < 1e-15


def test_points_and_certainties():
    assert values(pv.Geometric(1.0), [-3.0, 0.0, 3.0]).tolist() == [1, 1, 1]
    assert values(pv.Binomial(0, 0.5), [-3.0, 3.0]).tolist() == [0, 0]
    assert values(pv.Bernoulli(0.0), [-9.0, 9.0]).tolist() == [0, 0]
    assert values(pv.Bernoulli(1.0), [-9.0, 9.0]).tolist() == [1, 1]


def test_parameters_that_differ_from_sample_to_sample():
    gamma = family_of(pv.Gamma(1.0, scale=1.0).node)
    shapes = np.array([0.5, 2.0, 8.0])
    found = gamma.of_normals(np.array([-1.0, 0.5, 2.0]), [shapes, np.array([2.0])])
    expected = stats.gamma(shapes, scale=2.0).ppf(special.ndtr([-1.0, 0.5, 2.0]))
    assert np.allclose(found, expected, rtol=1e-9)


def test_mixtures_and_vectors():
    mixture = pv.Mixture([pv.Normal(0, sd=1), pv.Mixture([pv.Uniform(5, 6), 7.0])], [0.5, 0.5])
    normals = np.array([[-1.0, 0.3, 0.0], [1.0, -0.1, 0.0], [1.0, 0.1, 0.0]])
    assert family_of(mixture.node).latents == 3
    assert values(mixture, normals).tolist() == [0.3, 5.5, 7.0]
    vector = pv.MvNormal([1.0, 2.0], [[4.0, 0.0], [0.0, 9.0]])
    assert sorted(abs(values(vector, [[1.0, 1.0]])[0] - [1, 2])) == pytest.approx([2.0, 3.0])


def test_parameters_out_of_range_are_refused():
    operation = OfNormals(pv.Normal(0, sd=1).node.operation)
    with pytest.raises(pv.PriorError, match="sd must be"):
        operation.evaluate([np.zeros(2), np.zeros(1), np.array([1.0, -1.0])], None)
