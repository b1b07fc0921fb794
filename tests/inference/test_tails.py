"""Moments that do not exist are not given, by definitions or samples; intervals hold where rare values decide."""

import math

import numpy as np
import pytest
from scipy import stats

import privug as pv
from privug.inference.belief import Belief
from privug.inference.reach import Reach, reach_of, reach_of_value
from privug.inference.tails import is_too_heavy
from privug.model.variable import as_node

SEEDS = range(20)


def asked(prior, program=lambda x: x, engine="sample", samples=4000, seed=0):
    return pv.Attack(program, prior={"x": prior}, secret="x").run(engine=engine, samples=samples, seed=seed)


# What definitions say: the order of the first moment that does not exist, by SciPy's own moments.
FAMILIES = {
    "cauchy": (pv.Cauchy(3, 2), stats.cauchy(3, 2)),
    "student 1.5": (pv.StudentT(1.5), stats.t(1.5)),
    "student 2": (pv.StudentT(2), stats.t(2)),
    "student 3": (pv.StudentT(3), stats.t(3)),
    "normal": (pv.Normal(1, sd=2), stats.norm(1, 2)),
    "lognormal": (pv.LogNormal(0, sd=1), stats.lognorm(1)),
    "uniform": (pv.Uniform(-1, 4), stats.uniform(-1, 5)),
    "poisson": (pv.Poisson(3), stats.poisson(3)),
}


@pytest.mark.parametrize("engine", ["sample", "auto"])
@pytest.mark.parametrize("name", FAMILIES)
def test_what_a_family_does_not_have_is_not_given(name, engine):
    prior, truth = FAMILIES[name]
    belief = asked(prior, engine=engine).prior
    for estimate, known in ((belief.mean(), truth.mean()), (belief.std(), truth.std())):
        if math.isfinite(known):
            assert known in estimate.widened(2)
        else:
            assert not math.isfinite(estimate.value)
            assert estimate.high == math.inf
    assert truth.median() in belief.median().widened(2)


X, T = pv.Cauchy(0, 1), pv.StudentT(1.5)
EXPRESSIONS = {
    "scaled": (3 - 2 * X, (-math.inf, math.inf, 1.0, 1.0)),
    "beside something lighter": (X + pv.Normal(0, sd=1) + T, (-math.inf, math.inf, 1.0, 1.0)),
    "may cancel": (X - X, (-math.inf, math.inf, 1.0, math.inf)),
    "absolute": (abs(T), (0.0, math.inf, 1.5, 1.5)),
    "product": (pv.LogNormal(0, sd=1) * pv.Uniform(0, 2), (0.0, math.inf, math.inf, math.inf)),
    "quotient": (1 / pv.Normal(0, sd=1), (-math.inf, math.inf, 0.0, math.inf)),
    "jackpot": (1000 * pv.Bernoulli(0.001) - 1, (-1.0, 999.0, math.inf, math.inf)),
    "clipped": (np.minimum(abs(X), 10.0), (0.0, 10.0, math.inf, math.inf)),
    "mixture": (pv.Mixture([pv.Uniform(0, 1), pv.Choice([5, 7])]), (0.0, 7.0, math.inf, math.inf)),
    "branch": (pv.where(X > 0, 1.0, T), (-math.inf, math.inf, 1.5, math.inf)),
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_the_graph_tells_range_and_moments(name):
    expression, expected = EXPRESSIONS[name]
    assert reach_of(as_node(expression)) == expected
    draws = np.asarray(
        pv.Attack(lambda x: x, {"x": expression}, "x").run(engine="sample", samples=500).prior.samples(400)
    )
    assert expected[0] <= draws.min() <= draws.max() <= expected[1]


def test_only_single_numbers_have_a_reach():
    assert reach_of_value([X, T]) == reach_of_value(3.0) == reach_of_value(pv.Choice(["a", "b"])) == Reach()


# Where definitions say nothing, the tail of the samples does.
DRAWS = {
    "cauchy": (lambda rng, n: rng.standard_cauchy(n), True, True),
    "pareto 1.1": (lambda rng, n: rng.pareto(1.1, n), True, True),
    "one over normal": (lambda rng, n: 1 / rng.normal(size=n), True, True),
    "student 1.5": (lambda rng, n: rng.standard_t(1.5, n), None, True),
    "student 5": (lambda rng, n: rng.standard_t(5, n), False, False),
    "normal": (lambda rng, n: rng.normal(size=n), False, False),
    "exponential": (lambda rng, n: rng.exponential(size=n), False, False),
    "uniform": (lambda rng, n: rng.random(n), False, False),
    "few values": (lambda rng, n: rng.choice([0.0, 1.0, 1e6], n, p=[0.5, 0.49, 0.01]), False, False),
    "whole numbers": (lambda rng, n: rng.geometric(0.01, n), False, False),
}


@pytest.mark.parametrize("name", DRAWS)
def test_heavy_tails_are_told_from_samples(name):
    draw, no_mean, no_deviation = DRAWS[name]
    found = [[is_too_heavy(draw(np.random.default_rng(seed), 4000), None, order) for seed in SEEDS] for order in (1, 2)]
    for shares, expected in zip(found, (no_mean, no_deviation), strict=True):
        if expected is not None:
            assert np.mean(np.array(shares) == expected) >= 0.9


def test_weighted_samples_are_judged_by_what_is_averaged():
    rng = np.random.default_rng(3)
    wide = rng.standard_cauchy(4000)
    weights = stats.norm.pdf(wide) / stats.cauchy.pdf(wide)
    assert not is_too_heavy(wide, weights / weights.sum(), 2)
    assert is_too_heavy(wide, np.full(4000, 1 / 4000), 1)


def test_programs_that_hide_their_tails():
    result = asked(pv.Normal(0, sd=1), lambda x: 1 / math.sin(x))
    assert math.isnan(result.prediction.mean().value)
    assert "undefined" in str(result.prediction.mean())
    assert math.isfinite(result.prior.mean().value)


def test_an_observation_may_bring_the_moments_back():
    prior = {"x": pv.Cauchy(0, 1), "e": pv.Normal(0, sd=1)}
    attack = pv.Attack(lambda x, e: x + e, prior=prior, secret="x")
    result = attack.run(observe=pv.near(1.0, within=0.2), engine="sample", samples=4000, seed=1)
    x = np.linspace(-12, 12, 24_001)
    posterior = stats.cauchy.pdf(x) * (stats.norm.cdf(1.2 - x) - stats.norm.cdf(0.8 - x))
    assert math.isnan(result.prior.mean().value)
    assert float(x @ posterior / posterior.sum()) in result.posterior.mean().widened(2)


def test_reports_print_what_does_not_exist():
    for engine in ("sample", "auto"):
        result = asked(pv.Cauchy(0, 1), engine=engine)
        assert "undefined" in str(result)
        assert '"undefined"' in result.to_json()


JACKPOTS = {
    "choice": (pv.Choice([0, 1000], p=[0.999, 0.001]), lambda x: x, 1.0),
    "branch": (pv.Uniform(0, 1), lambda x: 1000 if x < 0.001 else 0, 1.0),
    "three prizes": (pv.Choice([0, 1, 500], p=[0.9, 0.0985, 0.0015]), lambda x: x, 0.0985 + 0.75),
    "a loss": (pv.Choice([-1000, 1], p=[0.0005, 0.9995]), lambda x: x, 0.4995),
}


@pytest.mark.parametrize("name", JACKPOTS)
def test_means_that_rare_values_decide_are_covered(name):
    prior, program, truth = JACKPOTS[name]
    runs = [asked(prior, program, samples=2000, seed=seed).prediction.mean() for seed in range(40)]
    assert np.mean([truth in mean for mean in runs]) >= 0.9


def test_the_interval_of_two_values_is_that_of_their_share():
    values = np.repeat([0.0, 1000.0], [1997, 3])
    mean = Belief(pv.Joint.from_samples(values, values).secret.batch, reach=Reach(0.0, 1000.0)).mean()
    share = stats.binomtest(3, 2000).proportion_ci(0.95, method="exact")
    assert mean.low == pytest.approx(1000 * share.low, rel=0.1)
    assert mean.high == pytest.approx(1000 * share.high, rel=0.1)


def test_undefined_estimates():
    nothing = pv.Estimate.undefined("no reason")
    assert str(nothing) == "undefined (no reason)"
    assert 12.0 in nothing.widened(2)
    with pytest.raises(pv.ArgumentError, match="value must be a number, not nan"):
        pv.Estimate(math.nan, 0.0, 1.0)
