"""Every distribution against SciPy: densities, draws and moments."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import privug as pv
from privug.model.batch import Column
from privug.model.node import ConstantValue, Context
from privug.model.plan import Plan
from privug.prior.family import Draw, LogDensity

DRAWS = 20_000
LEAST_P_VALUE = 1e-4
STANDARD_ERRORS = 5


def draws(*variables: pv.RandomVariable, samples: int = DRAWS, seed: int = 20_240_501) -> list[np.ndarray]:
    return Plan([variable.node for variable in variables]).run(samples, np.random.default_rng(seed))


def log_density(variable: pv.RandomVariable, values: Any) -> np.ndarray:
    operation = variable.node.operation
    assert isinstance(operation, Draw)
    parameters = []
    for parent in variable.node.parents:
        assert isinstance(parent.operation, ConstantValue)
        parameters.append(parent.operation.array)
    values = np.asarray(values)
    with np.errstate(all="ignore"):  # as in Plan.run
        return LogDensity(operation.family).evaluate([values, *parameters], Context(len(values), None))


def assert_mean_close(sample: np.ndarray, mean: float, sd: float) -> None:
    assert abs(sample.mean() - mean) <= STANDARD_ERRORS * sd / math.sqrt(len(sample))


def assert_uniform(probabilities: np.ndarray) -> None:
    assert stats.kstest(probabilities, "uniform").pvalue > LEAST_P_VALUE


def assert_frequencies(sample: np.ndarray, pmf: Callable[[np.ndarray], np.ndarray]) -> None:
    """Chi-square over values expected at least 10 times; the others form one cell."""
    low, high = int(sample.min()), int(sample.max())
    support = np.arange(low - 1, high + 2)
    expected = pmf(support) * len(sample)
    common = expected >= 10
    observed = np.array([(sample == value).sum() for value in support[common]])
    cells = np.append(expected[common], len(sample) - expected[common].sum())
    counts = np.append(observed, len(sample) - observed.sum())
    if cells[-1] < 1e-6:
        assert counts[-1] == 0
        cells, counts = cells[:-1], counts[:-1]
    assert np.sum((counts - cells) ** 2 / cells) < stats.chi2(max(1, len(cells) - 1)).isf(LEAST_P_VALUE)


@dataclass(frozen=True)
class Case:
    name: str
    make: Callable[[], pv.RandomVariable]
    reference: Any


CONTINUOUS = [
    Case("Uniform", lambda: pv.Uniform(-2, 5), stats.uniform(loc=-2, scale=7)),
    Case("Uniform huge", lambda: pv.Uniform(-1e300, 1e300), stats.uniform(loc=-1e300, scale=2e300)),
    Case("Uniform tiny", lambda: pv.Uniform(0, 1e-300), stats.uniform(loc=0, scale=1e-300)),
    Case("Normal sd", lambda: pv.Normal(55.2, sd=3.5), stats.norm(loc=55.2, scale=3.5)),
    Case("Normal var", lambda: pv.Normal(55.2, var=3.5), stats.norm(loc=55.2, scale=math.sqrt(3.5))),
    Case("Normal huge", lambda: pv.Normal(1e200, sd=1e199), stats.norm(loc=1e200, scale=1e199)),
    Case("Normal tiny", lambda: pv.Normal(0, sd=1e-200), stats.norm(loc=0, scale=1e-200)),
    Case("TruncatedNormal", lambda: pv.TruncatedNormal(1, sd=2, low=0, high=2.5), stats.truncnorm(-0.5, 0.75, 1, 2)),
    Case("TruncatedNormal var", lambda: pv.TruncatedNormal(1, var=4, low=0), stats.truncnorm(-0.5, np.inf, 1, 2)),
    Case("TruncatedNormal tail", lambda: pv.TruncatedNormal(0, sd=1, low=12), stats.truncnorm(12, np.inf)),
    Case("TruncatedNormal upper", lambda: pv.TruncatedNormal(0, sd=1, high=-3), stats.truncnorm(-np.inf, -3)),
    Case("LogNormal", lambda: pv.LogNormal(0.5, sd=0.75), stats.lognorm(0.75, scale=math.exp(0.5))),
    Case("LogNormal var", lambda: pv.LogNormal(0.5, var=0.25), stats.lognorm(0.5, scale=math.exp(0.5))),
    Case("LogNormal huge", lambda: pv.LogNormal(200, sd=2), stats.lognorm(2, scale=math.exp(200))),
    Case("StudentT", lambda: pv.StudentT(5, 2, 3), stats.t(5, loc=2, scale=3)),
    Case("StudentT defaults", lambda: pv.StudentT(0.7), stats.t(0.7)),
    Case("Cauchy", lambda: pv.Cauchy(1, 2), stats.cauchy(loc=1, scale=2)),
    Case("Cauchy tiny", lambda: pv.Cauchy(0, 1e-100), stats.cauchy(loc=0, scale=1e-100)),
    Case("Laplace", lambda: pv.Laplace(-1, 4), stats.laplace(loc=-1, scale=4)),
    Case("Laplace huge", lambda: pv.Laplace(0, 1e250), stats.laplace(loc=0, scale=1e250)),
    Case("Exponential scale", lambda: pv.Exponential(scale=4), stats.expon(scale=4)),
    Case("Exponential rate", lambda: pv.Exponential(rate=4), stats.expon(scale=0.25)),
    Case("Exponential tiny", lambda: pv.Exponential(rate=1e200), stats.expon(scale=1e-200)),
    Case("Gamma scale", lambda: pv.Gamma(2.5, scale=3), stats.gamma(2.5, scale=3)),
    Case("Gamma rate", lambda: pv.Gamma(2.5, rate=4), stats.gamma(2.5, scale=0.25)),
    Case("Gamma huge", lambda: pv.Gamma(1e6, scale=1e100), stats.gamma(1e6, scale=1e100)),
    Case("Beta", lambda: pv.Beta(2, 5), stats.beta(2, 5)),
    Case("Beta both ends", lambda: pv.Beta(0.5, 0.25), stats.beta(0.5, 0.25)),
]
DISCRETE = [
    Case("Bernoulli", lambda: pv.Bernoulli(0.3), stats.bernoulli(0.3)),
    Case("Binomial", lambda: pv.Binomial(300, 1 / 3), stats.binom(300, 1 / 3)),
    Case("Binomial rare", lambda: pv.Binomial(10**12, 3e-12), stats.binom(10**12, 3e-12)),
    Case("Binomial none", lambda: pv.Binomial(0, 0.5), stats.binom(0, 0.5)),
    Case("Poisson", lambda: pv.Poisson(4.2), stats.poisson(4.2)),
    Case("Poisson small", lambda: pv.Poisson(1e-3), stats.poisson(1e-3)),
    Case("Poisson large", lambda: pv.Poisson(1e4), stats.poisson(1e4)),
    Case("Geometric", lambda: pv.Geometric(0.3), stats.geom(0.3)),
    Case("Geometric sure", lambda: pv.Geometric(1), stats.geom(1)),
    Case("DiscreteUniform", lambda: pv.DiscreteUniform(-3, 8), stats.randint(-3, 9)),
    Case("DiscreteUniform one", lambda: pv.DiscreteUniform(7, 7), stats.randint(7, 8)),
    Case("DiscreteLaplace", lambda: pv.DiscreteLaplace(2.5), stats.dlaplace(0.4)),
    Case("DiscreteLaplace narrow", lambda: pv.DiscreteLaplace(0.2), stats.dlaplace(5)),
    Case(
        "Choice",
        lambda: pv.Choice([1, 2, 7], p=[0.2, 0.5, 0.3]),
        stats.rv_discrete(values=([1, 2, 7], [0.2, 0.5, 0.3])),
    ),
    Case("Choice equal", lambda: pv.Choice([4, 5, 6]), stats.randint(4, 7)),
    Case(
        "Choice zero",
        lambda: pv.Choice([1, 2, 3], p=[0.0, 1.0, 0.0]),
        stats.rv_discrete(values=([1, 2, 3], [0.0, 1.0, 0.0])),
    ),
]


def named(case: Case) -> str:
    return case.name


def has_variance(case: Case) -> bool:
    with np.errstate(all="ignore"):
        return bool(1e-280 < case.reference.var() < np.inf)


@pytest.mark.parametrize("case", CONTINUOUS, ids=named)
def test_log_density_of_continuous(case):
    quantiles = case.reference.ppf([1e-12, 1e-6, 0.01, 0.3, 0.5, 0.77, 0.99, 1 - 1e-6])
    values = np.concatenate([quantiles, 3 * quantiles, -quantiles, [0.5, -1e308, 1e308]])
    with np.errstate(all="ignore"):
        expected = case.reference.logpdf(values)
    if case.name.startswith("Laplace"):  # SciPy has none of it beyond 745 scales
        middle, scale = case.reference.median(), (case.reference.ppf(0.75) - case.reference.median()) / math.log(2)
        exponent = -np.abs(values / scale - middle / scale) - math.log(2 * scale)
        expected = np.where(np.isneginf(expected), exponent, expected)
    np.testing.assert_allclose(log_density(case.make(), values), expected, rtol=1e-12)


@pytest.mark.parametrize("case", DISCRETE, ids=named)
def test_log_probability_of_discrete(case):
    with np.errstate(all="ignore"):
        middle = int(case.reference.median())
        values = np.array([middle, middle + 1, middle - 1, 0, -1, 1, -50, 10**6, -(10**6)])
        expected = case.reference.logpmf(values)
        if case.name.startswith("DiscreteLaplace"):  # the same: each step costs as much as the first
            top, step = expected[0], expected[0] - expected[1]
            expected = np.where(np.isneginf(expected), top - step * np.abs(values - middle), expected)
        if case.name == "Binomial rare":  # SciPy subtracts logarithms of factorials that are 1e13 times as large
            expected = np.array([_log_binomial(10**12, 3e-12, int(value)) for value in values])
    np.testing.assert_allclose(log_density(case.make(), values), expected, rtol=1e-12)


def _log_binomial(trials, chance, successes):
    """Return the logarithm of a binomial probability, factor by factor."""
    if successes < 0:
        return -math.inf
    factors = np.arange(successes)
    choices = math.fsum(np.log(trials - factors)) - math.fsum(np.log(1.0 + factors))
    return choices + successes * math.log(chance) + (trials - successes) * math.log1p(-chance)


@pytest.mark.parametrize(
    ("variable", "outside"),
    [
        (pv.Uniform(0, 1), [-1e-9, 1 + 1e-9]),
        (pv.TruncatedNormal(0, sd=1, low=-1, high=1), [-1.01, 1.01]),
        (pv.LogNormal(0, sd=1), [-1.0]),
        (pv.Exponential(rate=1), [-1e-9]),
        (pv.Gamma(2, scale=1), [-1.0]),
        (pv.Beta(2, 2), [-0.1, 1.1]),
        (pv.Bernoulli(0.5), [2, -1]),
        (pv.Binomial(3, 0.5), [4, -1]),
        (pv.Geometric(0.5), [0]),
        (pv.DiscreteUniform(1, 3), [0, 4]),
        (pv.Choice([1, 3]), [2]),
    ],
)
def test_nothing_outside_the_support(variable, outside):
    assert (log_density(variable, outside) == -np.inf).all()


@pytest.mark.parametrize("case", CONTINUOUS, ids=named)
def test_draws_of_continuous(case):
    sample = draws(case.make())[0]
    assert sample.dtype == np.float64
    assert stats.kstest(sample, case.reference.cdf).pvalue > LEAST_P_VALUE


@pytest.mark.parametrize("case", DISCRETE, ids=named)
def test_draws_of_discrete(case):
    sample = draws(case.make())[0]
    assert sample.dtype == np.int64
    assert_frequencies(sample, case.reference.pmf)


@pytest.mark.parametrize("case", list(filter(has_variance, CONTINUOUS + DISCRETE)), ids=named)
def test_mean_of_draws(case):
    assert_mean_close(draws(case.make())[0].astype(float), case.reference.mean(), case.reference.std())


def test_random_mean_adds_variance():
    sample = draws(pv.Normal(pv.Normal(0, sd=2), sd=1))[0]
    assert stats.kstest(sample, stats.norm(0, math.sqrt(5)).cdf).pvalue > LEAST_P_VALUE


def test_random_variance():
    # A normal whose precision is Gamma(df / 2, rate=df / 2) is Student's t.
    precision = pv.Gamma(3, rate=3)
    sample = draws(pv.Normal(0, var=1 / precision))[0]
    assert stats.kstest(sample, stats.t(6).cdf).pvalue > LEAST_P_VALUE


def test_binomial_with_beta_probability():
    assert_frequencies(draws(pv.Binomial(10, pv.Beta(2, 3)))[0], stats.betabinom(10, 2, 3).pmf)


def test_poisson_with_gamma_rate():
    # Gamma(shape r, scale s) mixes Poisson into a negative binomial with p = 1 / (1 + s).
    assert_frequencies(draws(pv.Poisson(pv.Gamma(2.5, scale=3)))[0], stats.nbinom(2.5, 1 / 4).pmf)


def test_binomial_with_random_count():
    # Thinning a Poisson count leaves a Poisson count.
    assert_frequencies(draws(pv.Binomial(pv.Poisson(6), 0.5))[0], stats.poisson(3).pmf)


def test_exponential_with_random_rate_is_pareto():
    sample = draws(pv.Exponential(rate=pv.Gamma(3, rate=2)))[0]
    assert stats.kstest(sample, stats.lomax(3, scale=2).cdf).pvalue > LEAST_P_VALUE


def test_uniform_with_random_bounds_and_fixed_arrays():
    low, values = draws(low := pv.Normal(-5, sd=0.1), pv.Uniform(low, [1.0, 2.0]))
    assert values.shape == (DRAWS, 2)
    assert_uniform((values[:, 0] - low) / (1 - low))
    assert_uniform((values[:, 1] - low) / (2 - low))


def test_truncated_normal_with_random_bounds():
    low, values = draws(low := pv.Uniform(-1, 1), pv.TruncatedNormal(0, sd=1, low=low))
    assert_uniform((stats.norm.cdf(values) - stats.norm.cdf(low)) / stats.norm.sf(low))


@pytest.mark.parametrize("samples", [1, 50])
def test_random_parameter_out_of_range_is_refused(samples):
    with pytest.raises(pv.PriorError, match="Normal: sd must be a positive number"):
        draws(pv.Normal(0, sd=pv.Uniform(-2, -1)), samples=samples)


def test_same_object_is_the_same_quantity():
    x = pv.Normal(0, sd=1)
    first, second, difference = draws(x, x, x - x, samples=100)
    assert (first == second).all()
    assert (difference == 0).all()


def test_two_objects_are_independent():
    first, second = draws(pv.Normal(0, sd=1), pv.Normal(0, sd=1))
    assert abs(np.corrcoef(first, second)[0, 1]) < STANDARD_ERRORS / math.sqrt(DRAWS)


@pytest.mark.parametrize("size", [4, (4,), (2, 2), np.int64(4)])
def test_array_elements_are_independent(size):
    variable = pv.Array(pv.Normal(1, sd=2), size)
    values = draws(variable)[0]
    assert values.shape == (DRAWS, *variable.shape)
    flat = values.reshape(DRAWS, 4)
    assert stats.kstest(flat.ravel(), stats.norm(1, 2).cdf).pvalue > LEAST_P_VALUE
    correlations = np.corrcoef(flat.T)[np.triu_indices(4, 1)]
    assert np.abs(correlations).max() < STANDARD_ERRORS / math.sqrt(DRAWS)


def test_array_of_one_random_parameter_is_correlated():
    values = draws(pv.Array(pv.Normal(pv.Normal(0, sd=1), sd=1), 2))[0]
    # Var = 2, Cov = 1; the standard error of a correlation r is (1 - r^2) / sqrt(n).
    assert abs(np.corrcoef(values.T)[0, 1] - 0.5) < STANDARD_ERRORS * 0.75 / math.sqrt(DRAWS)


def test_array_of_array_parameters():
    values = draws(pv.Array(pv.Normal([0.0, 100.0], sd=[1.0, 2.0]), 3))[0]
    assert values.shape == (DRAWS, 3, 2)
    for column, reference in enumerate([stats.norm(0, 1), stats.norm(100, 2)]):
        assert stats.kstest(values[..., column].ravel(), reference.cdf).pvalue > LEAST_P_VALUE


def test_array_from_a_function_of_the_position():
    values = draws(pv.Array(lambda i: pv.Normal(10 * i, sd=1) if i else 7, 3))[0]
    assert (values[:, 0] == 7).all()
    for position in (1, 2):
        assert stats.kstest(values[:, position], stats.norm(10 * position, 1).cdf).pvalue > LEAST_P_VALUE


def test_array_of_choices_with_random_probabilities():
    p = pv.Beta(2, 2)
    values = draws(pv.Array(pv.Choice([0, 1], p=[1 - p, p]), (3, 2)))[0]
    assert values.shape == (DRAWS, 3, 2)
    assert_frequencies(values.reshape(DRAWS, 6).sum(axis=1), stats.betabinom(6, 2, 2).pmf)


WEIGHTS = [0.3, 0.5, 0.2]
PARTS = [stats.norm(20, 2), stats.expon(scale=5), stats.uniform(30, 10)]


def mixture() -> pv.RandomVariable:
    return pv.Mixture([pv.Normal(20, sd=2), pv.Exponential(scale=5), pv.Uniform(30, 40)], weights=WEIGHTS)


def test_mixture_density_is_the_sum_of_densities():
    values = np.array([-1.0, 0.0, 3.0, 19.0, 35.0, 41.0, 1e3])
    expected = np.log(sum(w * part.pdf(values) for w, part in zip(WEIGHTS, PARTS, strict=True)))
    np.testing.assert_allclose(log_density(mixture(), values), expected, rtol=1e-12)


def test_mixture_draws():
    sample = draws(mixture())[0]
    cdf = lambda x: sum(w * part.cdf(x) for w, part in zip(WEIGHTS, PARTS, strict=True))
    assert stats.kstest(sample, cdf).pvalue > LEAST_P_VALUE


def test_mixture_of_discrete_and_of_constants():
    assert_frequencies(
        draws(pv.Mixture([pv.Poisson(3), pv.Binomial(4, 0.5), 9]))[0],
        lambda k: (stats.poisson(3).pmf(k) + stats.binom(4, 0.5).pmf(k) + (k == 9)) / 3,
    )


def test_mixture_with_random_weights_and_in_an_array():
    p = pv.Beta(1, 3)
    values = draws(pv.Array(pv.Mixture([0, 1], weights=[1 - p, p]), 4))[0]
    assert_frequencies(values.sum(axis=1), stats.betabinom(4, 1, 3).pmf)


def test_mixture_draws_its_components_anew():
    x = pv.Normal(0, sd=1)
    first, second = draws(x, pv.Mixture([x]))
    assert abs(np.corrcoef(first, second)[0, 1]) < STANDARD_ERRORS / math.sqrt(DRAWS)


COVARIANCES = {
    "full": [[4.0, 1.2, 0.0], [1.2, 1.0, -0.3], [0.0, -0.3, 2.0]],
    "singular": [[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 3.0]],
    "zero": [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]],
}


@pytest.mark.parametrize("name", COVARIANCES)
def test_mvnormal_covariance(name):
    mean, covariance = np.array([1.0, -2.0, 5.0]), np.array(COVARIANCES[name])
    values = draws(pv.MvNormal(mean, covariance))[0]
    for position in range(3):
        assert_mean_close(values[:, position], mean[position], math.sqrt(covariance[position, position]) + 1e-12)
    # Var of a sample covariance: (s_ii s_jj + s_ij^2) / n.
    variances = np.diag(covariance)
    error = np.sqrt((np.outer(variances, variances) + covariance**2) / DRAWS)
    assert (np.abs(np.cov(values.T) - covariance) <= STANDARD_ERRORS * error + 1e-12).all()


def test_mvnormal_singular_values_stay_together():
    values = draws(pv.MvNormal([0, 0, 0], COVARIANCES["singular"]), samples=1000)[0]
    np.testing.assert_allclose(values[:, 0], values[:, 1], rtol=1e-6)


def test_mvnormal_density():
    mean, covariance = [1.0, -2.0, 5.0], COVARIANCES["full"]
    points = np.array([[1.0, -2.0, 5.0], [0.0, 0.0, 0.0], [100.0, -100.0, 3.0]])
    expected = stats.multivariate_normal(mean, covariance).logpdf(points)
    np.testing.assert_allclose(log_density(pv.MvNormal(mean, covariance), points), expected, rtol=1e-12)
    assert log_density(pv.MvNormal(mean, covariance), points[:1]).shape == (1,)


def test_mvnormal_random_mean_and_array():
    centre = pv.Normal(10, sd=1)
    values = draws(pv.MvNormal([centre, 0], [[1.0, 0.0], [0.0, 1.0]]))[0]
    assert stats.kstest(values[:, 0], stats.norm(10, math.sqrt(2)).cdf).pvalue > LEAST_P_VALUE
    assert draws(pv.Array(pv.MvNormal([0, 1], np.eye(2)), 3), samples=5)[0].shape == (5, 3, 2)


def decoded(variable: pv.RandomVariable, samples: int = DRAWS) -> list[Any]:
    return Column(draws(variable, samples=samples)[0], variable.node.levels).decoded()


def assert_shares(sample: list[Any], shares: dict[Any, float]) -> None:
    assert set(sample) <= set(shares)
    for value, share in shares.items():
        error = math.sqrt(share * (1 - share) / len(sample))
        assert abs(sample.count(value) / len(sample) - share) <= STANDARD_ERRORS * error


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@pytest.mark.parametrize(
    "values",
    [
        ["ill", "healthy"],
        [Colour.RED, Colour.BLUE],
        [(1, "a"), (2, "b")],
        [1.5, 2.5],
        [True, False],
        [None, "x"],
        [1, True],
    ],
    ids=str,
)
def test_choice_of_any_values(values):
    sample = decoded(pv.Choice(values, p=[0.2, 0.8]))
    assert {type(value) for value in sample} == {type(value) for value in values}
    keyed = [(type(value), value) for value in sample]
    assert_shares(keyed, {(type(values[0]), values[0]): 0.2, (type(values[1]), values[1]): 0.8})


def test_choice_takes_arrays_ranges_and_sets():
    assert_shares(decoded(pv.Choice(np.array(["a", "b"]))), {"a": 0.5, "b": 0.5})
    assert_shares(decoded(pv.Choice(range(4))), dict.fromkeys(range(4), 0.25))
    assert pv.Choice({"c", "a", "b"}).node.levels == ("a", "b", "c")


def test_choice_with_random_probabilities():
    p = pv.Beta(2, 3)
    sample = draws(pv.Array(pv.Choice(["no", "yes"], p=[1 - p, p]), 8))[0]
    assert_frequencies(sample.sum(axis=1), stats.betabinom(8, 2, 3).pmf)


def test_choice_among_many_with_random_probabilities():
    # Given t the four values have probabilities t/2, (1-t)/4, t/2, 3(1-t)/4; the mean of t is 1/2.
    t = pv.Beta(2, 2)
    variable = pv.Choice(["a", "b", "c", "d"], p=[t / 2, (1 - t) / 4, t / 2, 3 * (1 - t) / 4])
    assert_shares(decoded(variable), {"a": 1 / 4, "b": 1 / 8, "c": 1 / 4, "d": 3 / 8})


def test_choice_with_repeated_values():
    variable = pv.Choice([1, 1, 2])
    assert_shares(decoded(variable), {1: 2 / 3, 2: 1 / 3})
    np.testing.assert_allclose(log_density(variable, [1, 2]), np.log([2 / 3, 1 / 3]), rtol=1e-12)


def test_constant_is_certain():
    assert decoded(pv.Constant("x"), samples=3) == ["x"] * 3
    assert decoded(pv.Constant(2.5), samples=3) == [2.5] * 3
    x = pv.Normal(0, sd=1)
    assert pv.Constant(x) is x


@pytest.mark.parametrize(
    "data", [[3.0, 1.0, 3.0, 3.0], np.array([3.0, 1.0, 3.0, 3.0]), pd.Series([3.0, 1.0, 3.0, 3.0])]
)
def test_empirical_numbers(data):
    assert_shares(decoded(pv.Empirical(data)), {3.0: 0.75, 1.0: 0.25})


def test_empirical_strings_and_mixed_types():
    assert_shares(decoded(pv.Empirical(["a", "b", "a", "c"])), {"a": 0.5, "b": 0.25, "c": 0.25})
    sample = [(type(value), value) for value in decoded(pv.Empirical([1, True, True, "x"]))]
    assert_shares(sample, {(int, 1): 0.25, (bool, True): 0.5, (str, "x"): 0.25})


FRAME = pd.DataFrame({"name": ["Ann", "Bob", "Cid"], "age": [30, 40, 50], "tall": [True, False, True]})


@pytest.mark.parametrize("data", [FRAME, FRAME.to_dict("records"), [pv.Row(**row) for row in FRAME.to_dict("records")]])
def test_empirical_rows_stay_together(data):
    row = pv.Empirical(data)
    assert row.keys() == ("name", "age", "tall")
    columns = [Column(a, cell.node.levels).decoded() for a, cell in zip(draws(*row), row, strict=True)]
    shares = dict.fromkeys([("Ann", 30, True), ("Bob", 40, False), ("Cid", 50, True)], 1 / 3)
    assert_shares(list(zip(*columns, strict=True)), shares)


@pytest.mark.parametrize("dtype", [float, int, bool])
def test_empirical_matrix_rows_stay_together(dtype):
    data = np.array([[0, 1, 1], [1, 0, 0], [1, 1, 0]], dtype)
    values = draws(pv.Empirical(data))[0]
    assert values.shape == (DRAWS, 3)
    assert values.dtype == data.dtype
    assert_shares([tuple(row) for row in values.tolist()], dict.fromkeys(map(tuple, data.tolist()), 1 / 3))
