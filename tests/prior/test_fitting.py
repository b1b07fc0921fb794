"""Fitted distributions: closed forms of what the data leaves open, SciPy for the most likely parameters."""

import numpy as np
import pandas as pd
import pytest
import scipy

import privug as pv
from privug.prior.family import describe
from privug.prior.learning import fit, most_likely, uncertain
from privug.prior.scalar import fitting_families

AGES = [54.0, 55.0, 59.0, 61.0, 48.0]


def belief(variable, samples=40_000):
    """What a draw of a fitted distribution looks like, parameters and all."""
    return pv.Attack(lambda x: x, prior={"x": variable}, secret="x").run(samples=samples, seed=1, engine="sample").prior


@pytest.mark.parametrize(
    ("family", "data", "expected"),
    [
        (pv.Normal, AGES, f"Normal(mean=55.4, sd={np.std(AGES):g})"),
        ("Normal", np.array(AGES), f"Normal(mean=55.4, sd={np.std(AGES):g})"),
        (pv.LogNormal, np.exp([1.0, 3.0]), "LogNormal(mean=2, sd=1)"),
        (pv.Uniform, AGES, "Uniform(low=48, high=61)"),
        (pv.Exponential, [1.0, 3.0], "Exponential(scale=2)"),
        (pv.Bernoulli, [True, False, True, True], "Bernoulli(p=0.75)"),
        (pv.Poisson, pd.Series([1, 2, 6]), "Poisson(rate=3)"),
        (pv.Geometric, [1, 2, 5], "Geometric(p=0.375)"),
        (pv.DiscreteUniform, [3, 9, 4], "DiscreteUniform(low=3, high=9)"),
        (pv.Laplace, [1.0, 2.0, 9.0], "Laplace(loc=2, scale=2.66667)"),
    ],
)
def test_most_likely_parameters(family, data, expected):
    assert describe(fit(family, data, uncertainty=False).node) == expected


def test_binomial_and_choice_take_what_the_data_does_not_say():
    assert describe(fit(pv.Binomial, [2, 4], n=10, uncertainty=False).node) == "Binomial(n=10, p=0.3)"
    choice = fit(pv.Choice, ["a", "b", "a"], values=["c"], uncertainty="predictive")
    shares = pv.Attack(lambda x: x, prior={"x": choice}, secret="x").run(engine="exact").prior.distribution()
    assert {v: float(p) for v, p in shares.items()} == pytest.approx({"a": 2.5 / 4.5, "b": 1.5 / 4.5, "c": 0.5 / 4.5})


def test_an_uncertain_normal_is_student_t_when_averaged():
    """Gelman et al., section 3.2: the posterior predictive is t with n - 1 degrees of freedom."""
    drawn = belief(fit(pv.Normal, AGES))
    truth = scipy.stats.t(4, np.mean(AGES), np.std(AGES, ddof=1) * np.sqrt(1 + 1 / 5))
    for level in (0.05, 0.25, 0.5, 0.9):
        assert truth.ppf(level) in drawn.quantile(level).widened(2)
    exact = pv.Attack(lambda x: x, prior={"x": fit(pv.Normal, AGES, uncertainty="predictive")}, secret="x").run(
        engine="exact"
    )
    assert float(exact.prior.quantile(0.9)) == pytest.approx(truth.ppf(0.9), abs=1e-8)


def test_the_scale_of_the_data_does_not_matter():
    tiny = belief(fit(pv.Normal, 1e-150 * np.array(AGES)), 1000).median()
    huge = belief(fit(pv.Normal, 1e150 * np.array(AGES)), 1000).median()
    assert float(huge) / 1e150 == pytest.approx(float(tiny) * 1e150)


@pytest.mark.parametrize(
    ("family", "data", "known", "question", "truth"),
    [
        (pv.Bernoulli, [1, 0, 0, 0], {}, lambda x: x == 1, 1.5 / 5),
        (pv.Bernoulli, [0, 0], {}, lambda x: x == 1, 0.5 / 3),
        (pv.Geometric, [1, 2, 5], {}, lambda x: x == 1, 3 / 8.5),
        (pv.Uniform, AGES, {}, lambda x: x > 61, 1 / 6),
        (pv.Uniform, AGES, {}, lambda x: (x >= 48) & (x <= 61), 4 / 6),
        (pv.Poisson, [1, 2, 6], {}, lambda x: x == 0, (3 / 4) ** 9.5),
        (pv.Exponential, [1.0, 3.0], {}, lambda x: x > 2, (4 / 6) ** 2),
        (pv.Binomial, [2, 0], {"n": 2}, lambda x: x == 2, 2.5 * 3.5 / (5 * 6)),
        (pv.Choice, ["a", "b", "a"], {"values": ["c"]}, lambda x: x == "c", 0.5 / 4.5),
        (pv.LogNormal, np.exp(AGES), {}, lambda x: x < np.exp(55.4), 0.5),
    ],
)
def test_what_a_further_value_will_be(family, data, known, question, truth):
    """The posterior predictive probabilities of conjugate models, in closed form."""
    assert truth in belief(fit(family, data, **known)).probability(question).widened(2)


def test_copies_share_their_uncertain_parameters():
    """Two further values of a coin seen twice: P(both) is a ratio of beta functions, not a square."""
    attack = pv.Attack(lambda xs: xs[0] * xs[1], prior={"xs": pv.Array(fit(pv.Bernoulli, [1, 0]), 2)}, secret="xs")
    both = attack.run(samples=40_000, seed=1, engine="sample").prediction.probability(lambda x: x == 1)
    assert 1.5 * 2.5 / (3 * 4) in both.widened(2)
    assert 0.25 not in both.widened(2)


def data_of(distribution, size=4000):
    return distribution.rvs(size=size, random_state=np.random.default_rng(5))


@pytest.mark.parametrize(
    ("name", "data", "fitted"),
    [
        ("Gamma", data_of(scipy.stats.gamma(3, scale=2)), lambda x: scipy.stats.gamma.fit(x, floc=0)[::2]),
        ("Gamma", 1e6 * data_of(scipy.stats.gamma(0.3)), lambda x: scipy.stats.gamma.fit(x, floc=0)[::2]),
        ("Beta", data_of(scipy.stats.beta(2, 5)), lambda x: scipy.stats.beta.fit(x, floc=0, fscale=1)[:2]),
        ("Cauchy", data_of(scipy.stats.cauchy(1e4, 2)), lambda x: scipy.stats.cauchy.fit(x)),
        ("StudentT", data_of(scipy.stats.t(4, 10, 2)), lambda x: scipy.stats.t.fit(x, 4, loc=10, scale=2)),
    ],
)
def test_maximum_likelihood_agrees_with_scipy(name, data, fitted):
    assert [float(p) for p in most_likely(fitting_families()[name], data).parameters()] == pytest.approx(
        fitted(data), rel=1e-3
    )


def test_discrete_laplace_by_its_closed_form():
    """The likelihood equation: the mean size is 1 / sinh(1 / scale)."""
    data = np.round(data_of(scipy.stats.laplace(0, 3)))
    (scale,) = most_likely(fitting_families()["DiscreteLaplace"], data).parameters()
    assert 1 / np.sinh(1 / scale) == pytest.approx(np.abs(data).mean(), rel=1e-6)


def deviations(variable):
    """The deviations of the uncertain parameters of a fitted distribution, on the scale where they are free."""
    (family_parents,) = [variable.node.parents]
    node = family_parents[0]
    while type(node.operation).__name__ != "Draw":
        node = node.parents[0]
    return np.sqrt(np.diag(node.operation.family.covariance))


def test_uncertainty_follows_fisher_information():
    cauchy = data_of(scipy.stats.cauchy(0, 2))
    n = len(cauchy)
    found = deviations(uncertain(most_likely(fitting_families()["Cauchy"], cauchy), cauchy))
    assert found == pytest.approx([2 * np.sqrt(2 / n), np.sqrt(2 / n)], rel=0.05)
    gamma = data_of(scipy.stats.gamma(3, scale=2))
    information = np.array([[scipy.special.polygamma(1, 3) * 9, 3], [3, 3]])  # for the logarithms of shape and scale
    truth = np.sqrt(np.diag(np.linalg.inv(information)) / n)
    assert deviations(uncertain(most_likely(fitting_families()["Gamma"], gamma), gamma)) == pytest.approx(
        truth, rel=0.05
    )


def test_a_likelihood_fit_is_a_distribution_like_others():
    data = data_of(scipy.stats.gamma(3, scale=2), 200)
    drawn = belief(fit(pv.Gamma, data))
    assert float(np.mean(data)) in drawn.mean().widened(2)
    assert fit(pv.Laplace, data_of(scipy.stats.laplace(3, 2), 50)) is not None


@pytest.mark.parametrize(
    ("family", "data", "options", "message"),
    [
        ("NoFamily", [1.0], {}, "family must be one of"),
        (pv.Normal, [], {}, "must not be empty"),
        (pv.Normal, [1.0, None], {}, "missing values"),
        (pv.Normal, [1.0, float("nan")], {}, "missing values"),
        (pv.Normal, [1.0, float("inf")], {}, "finite"),
        (pv.Normal, [2.0], {}, "at least two different values"),
        (pv.Normal, [2.0, 2.0], {}, "write pv.Constant"),
        (pv.Normal, ["a", "b"], {}, "write pv.Choice for labels"),
        (pv.Normal, 3.0, {}, "data must be a list"),
        (pv.Normal, "123", {}, "data must be a list"),
        (pv.Normal, AGES, {"n": 3}, "takes no 'n'"),
        (pv.Normal, AGES, {"uncertainty": "some"}, "uncertainty must be"),
        (pv.LogNormal, [1.0, 0.0], {}, "positive numbers, not 0"),
        (pv.Bernoulli, [0, 1, 2], {}, "values 0 and 1"),
        (pv.Binomial, [1, 2], {}, "needs n="),
        (pv.Binomial, [1, 2], {"n": 1}, "needs n="),
        (pv.Poisson, [0.5], {}, "whole numbers"),
        (pv.Poisson, [0, 0], {"uncertainty": False}, "write uncertainty=True"),
        (pv.Geometric, [0, 1], {}, "whole numbers from 1 on"),
        (pv.Exponential, [0.0], {}, "at least one positive"),
        (pv.Beta, [0.5, 1.0], {}, "both excluded"),
        (pv.Poisson, [1], {"uncertainty": "predictive"}, "write uncertainty=True or False"),
        (pv.DiscreteUniform, [1, 2], {}, "write uncertainty=False"),
    ],
)
def test_bad_data_is_refused_with_a_reason(family, data, options, message):
    with pytest.raises(pv.PriorError, match=message):
        fit(family, data, **options)
