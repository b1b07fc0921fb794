"""Moments that do not exist are not given, by definitions or samples; intervals hold where rare values decide."""

import math

import numpy as np
import pytest
from scipy import stats

import privug as pv
from privug.inference.belief import Belief
from privug.inference.graph.support import Reach, reach_of, reach_of_value
from privug.inference.intervals import HEAVIEST, heaviness
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
    assert reach_of(as_node(expression))[:4] == expected
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
    found = [
        [heaviness(draw(np.random.default_rng(seed), 4000), None, order) >= HEAVIEST[order] for seed in SEEDS]
        for order in (1, 2)
    ]
    for shares, expected in zip(found, (no_mean, no_deviation), strict=True):
        if expected is not None:
            assert np.mean(np.array(shares) == expected) >= 0.9


def test_weighted_samples_are_judged_by_what_is_averaged():
    rng = np.random.default_rng(3)
    wide = rng.standard_cauchy(4000)
    weights = stats.norm.pdf(wide) / stats.cauchy.pdf(wide)
    assert heaviness(wide, weights / weights.sum(), 2) < HEAVIEST[2]
    assert heaviness(wide, np.full(4000, 1 / 4000), 1) >= HEAVIEST[1]


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


def moments_above(df, a):
    """Mean and deviation of Student's t given that it is above a, by integration by parts."""
    density, share = stats.t.pdf(a, df), stats.t.sf(a, df)
    first = density * (df + a**2) / (df - 1)
    scale = math.sqrt(df / (df - 2))
    rest = scale * stats.t.sf(a / scale, df - 2) / stats.t.pdf(0, df - 2) * stats.t.pdf(0, df)
    second = df / (df - 1) * (a * density * (1 + a**2 / df) + rest)
    return first / share, math.sqrt(second / share - (first / share) ** 2)


@pytest.mark.parametrize("df", [2.5, 2.1, 3.5])
def test_moments_that_exist_given_a_threshold_are_given(df):
    x = {"x": pv.StudentT(df)}
    above = pv.Attack(lambda x: x > 1, x, "x").run(pv.equals(True)).posterior
    below = pv.Attack(lambda x: x < 3, x, "x").run(pv.equals(True)).posterior
    mean, deviation = moments_above(df, 1)
    assert (above.mean().value, above.std().value) == pytest.approx((mean, deviation), rel=1e-7)
    mean, deviation = moments_above(df, -3)
    assert (below.mean().value, below.std().value) == pytest.approx((-mean, deviation), rel=1e-7)


def test_moments_that_do_not_exist_given_a_threshold_are_not_given():
    above = pv.Attack(lambda x: x > 1, {"x": pv.StudentT(1.5)}, "x").run(pv.equals(True)).posterior
    mean = stats.t.pdf(1, 1.5) * (1.5 + 1) / 0.5 / stats.t.sf(1, 1.5)
    assert above.mean().value == pytest.approx(mean, rel=1e-7)
    assert math.isnan(above.std().value)
    beyond = pv.Attack(lambda x: x > 1, {"x": pv.Cauchy(0, 1)}, "x").run(pv.equals(True)).posterior
    assert math.isnan(beyond.mean().value)


def known(prior, truth):
    return {"x": prior}, lambda x: x, float(truth.mean()), float(truth.std())


def rare(p):
    mean = 1e6 * p + (1 - p)
    second = 1e12 * p + (1 - p) * 2
    prior = {"won": pv.Bernoulli(p), "x": pv.Exponential(rate=1)}
    return prior, lambda won, x: 1e6 if won else x, mean, math.sqrt(second - mean**2)


# What is averaged is heavy, rare or plain; ordinary quantities must have their moments, the others may be undefined.
COVERED = {
    "lognormal": (known(pv.LogNormal(0, sd=2), stats.lognorm(2)), False),
    "pareto": (known(pv.Pareto(2.2, 1), stats.pareto(2.2)), False),
    "student": (known(pv.StudentT(2.5), stats.t(2.5)), False),
    "jackpot": (rare(1e-3), True),
    "rarer jackpot": (rare(1e-4), True),
    "exponential": (known(pv.Exponential(rate=1), stats.expon()), True),
    "normal": (known(pv.Normal(0, sd=1), stats.norm()), True),
    "uniform": (known(pv.Uniform(0, 1), stats.uniform()), True),
    "coin": (known(pv.Bernoulli(0.5), stats.bernoulli(0.5)), True),
    "rare event": (known(pv.Bernoulli(0.02), stats.bernoulli(0.02)), True),
    "skewed": (known(pv.LogNormal(0, sd=0.5), stats.lognorm(0.5)), True),
}


def check_coverage(name, seeds, tallied=False):
    (prior, program, mean, deviation), defined = COVERED[name]
    attack = pv.Attack(program, prior, program if tallied else next(iter(prior)))
    found = []
    for seed in seeds:
        belief = attack.tally(draws=2000, seed=seed) if tallied else None
        belief = belief or attack.run(engine="sample", samples=2000, seed=seed).prediction
        found.append((belief.mean(), belief.std()))
    for estimates, truth in zip(zip(*found, strict=True), (mean, deviation), strict=True):
        assert np.mean([truth in estimate for estimate in estimates]) >= 0.9
        if defined:
            assert all(math.isfinite(estimate.value) for estimate in estimates)


@pytest.mark.parametrize("name", COVERED)
def test_moments_are_covered_or_undefined(name):
    check_coverage(name, range(20))


@pytest.mark.parametrize("name", ["lognormal", "student", "jackpot", "exponential"])
def test_moments_of_tallies_are_covered_or_undefined(name):
    check_coverage(name, range(20), tallied=True)


@pytest.mark.slow
@pytest.mark.parametrize("tallied", [False, True])
@pytest.mark.parametrize("name", COVERED)
def test_moments_are_covered_or_undefined_over_many_seeds(name, tallied):
    check_coverage(name, range(100), tallied)


def test_what_the_definition_allows_counts_though_it_was_not_seen():
    """None of 100 samples won: the deviation may be as large as the share that is left open makes it."""
    values = np.zeros(100)
    belief = Belief(pv.Joint.from_samples(values, values).secret.batch, reach=Reach(0.0, 1000.0, math.inf)).std()
    share = 1 - 0.025 ** (1 / 100)
    assert (belief.value, belief.low) == (0.0, 0.0)
    assert belief.high == pytest.approx(1000 * math.sqrt(share), rel=0.05)


CORES = {
    "jackpot": (lambda: pv.where(pv.Bernoulli(0.001), 1e6, pv.Exponential(rate=2)), (0.0, 1e6)),
    "sum": (lambda: 1e6 * pv.Bernoulli(0.001) + pv.Normal(3, sd=1), (3.0, 1e6 + 3)),
    "mixture": (lambda: pv.Mixture([pv.Normal(0, sd=1), pv.Uniform(5, 9)]), (0.0, 9.0)),
    "pareto": (lambda: pv.Pareto(2, 5), (5.0, 5 * math.sqrt(2))),
    "vector": (lambda: pv.MvNormal([2.0, 5.0], [[1.0, 0.5], [0.5, 1.0]])[0], (2.0, 5.0)),
    "array": (lambda: pv.Normal(np.array([1.0, 3.0]), sd=2)[1], (1.0, 3.0)),
    "bounded": (lambda: pv.Uniform(0, 2) - 1, (-1.0, 1.0)),
}


@pytest.mark.parametrize("name", CORES)
def test_the_graph_tells_how_far_rare_cases_lie(name):
    make, core = CORES[name]
    assert reach_of(as_node(make())).core == pytest.approx(core)
