"""Exact answers about sums over rows against closed forms and enumeration by hand."""

import math

import numpy as np
import pytest
from scipy import stats

import privug as pv
from privug.leakage import bayes_risk, mutual_information


def exactly(program, prior, secret, observe=None):
    return pv.Attack(program, prior, secret).run(observe=observe, engine="exact")


def close(value):
    return pytest.approx(value, rel=1e-9, abs=1e-12)


def coins(size, p=0.5):
    return pv.Records(size, lambda i: pv.Row(x=pv.Bernoulli(p)))


def ones(records):
    return sum(1 for r in records if r.x)


def total(records):
    return sum(r.x for r in records)


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_certain_terms(p):
    result = exactly(lambda records, a: ones(records) + a, {"records": coins(50, p), "a": pv.Bernoulli(0.25)}, "a")
    assert {k: float(v) for k, v in result.prediction.distribution().items()} == close({50 * p: 0.75, 50 * p + 1: 0.25})


def test_equal_constants():
    rows = pv.Records(20, lambda i: pv.Row(x=2.5))
    result = exactly(lambda records, a: total(records) + a, {"records": rows, "a": pv.Bernoulli(0.25)}, "a")
    assert float(result.prediction.mean()) == close(50.25)


def test_a_million_rows():
    result = exactly(
        lambda records, a: ones(records) + a,
        {"records": pv.Records(1_000_000, pv.Row(x=pv.Bernoulli(0.001))), "a": pv.Bernoulli(0.5)},
        "a",
        pv.equals(1000),
    )
    chances = stats.binom.pmf([1000, 999], 1_000_000, 0.001)
    assert float(result.posterior.mean()) == pytest.approx(chances[1] / chances.sum(), rel=1e-8)
    assert float(result.diagnostics.evidence) == pytest.approx(chances.mean(), rel=1e-8)


def test_terms_of_both_signs_with_weights():
    rows = pv.Records(30, lambda i: pv.Row(x=pv.Choice([-2, 0, 3], p=[0.5, 0.2, 0.3])))
    result = exactly(
        lambda records, a: 2 * total(records) - a,
        {"records": rows, "a": pv.DiscreteUniform(0, 3)},
        "a",
        pv.between(-20, -10),
    )
    law = np.array([1.0])
    for _ in range(30):
        law = np.convolve(law, [0.5, 0, 0.2, 0, 0, 0.3])
    sums = np.arange(len(law)) - 60
    likelihood = [law[(2 * sums - a >= -20) & (2 * sums - a <= -10)].sum() for a in range(4)]
    assert float(result.posterior.mean()) == close(np.dot(likelihood, range(4)) / np.sum(likelihood))
    assert float(result.diagnostics.evidence) == close(np.mean(likelihood))


def test_two_sums_over_the_same_rows():
    rows = pv.Records(25, lambda i: pv.Row(x=pv.DiscreteUniform(0, 2)))
    program = lambda records, a: (sum(r.x == 1 for r in records), sum(r.x == 2 for r in records) + a)
    result = exactly(program, {"records": rows, "a": pv.Bernoulli(0.5)}, "a", pv.equals((8, 9)))
    chances = [stats.multinomial.pmf([25 - 8 - k, 8, k], 25, [1 / 3] * 3) for k in (9, 8)]
    assert float(result.posterior.mean()) == close(chances[1] / sum(chances))


def test_a_secret_among_equal_rows():
    result = exactly(
        lambda records: ones(records), {"records": coins(12, 0.3)}, lambda records: records[5].x, pv.equals(4)
    )
    assert float(result.posterior.mean()) == close(4 / 12)


def test_a_secret_among_equal_rows_of_numbers():
    rows = pv.Records(12, lambda i: pv.Row(x=pv.Normal(1, sd=2)))
    result = exactly(total, {"records": rows}, lambda records: records[5].x, pv.equals(24.0))
    assert float(result.posterior.mean()) == close(2.0)
    assert float(result.posterior.std()) == close(math.sqrt(4 * 11 / 12))


def test_rows_that_share_a_parameter():
    p = pv.Choice([0.2, 0.6])
    rows = pv.Records(10, lambda i: pv.Row(x=pv.Bernoulli(p)))
    result = exactly(lambda records, p: ones(records), {"records": rows, "p": p}, "p", pv.equals(5))
    chances = stats.binom.pmf(5, 10, [0.2, 0.6])
    assert float(result.posterior.probability(lambda v: v == 0.6)) == close(chances[1] / chances.sum())


@pytest.mark.parametrize("cell", [lambda: pv.Bernoulli(0.5), lambda: pv.Normal(0, sd=1)])
def test_tables_that_share_rows(cell):
    rows = [cell() for _ in range(20)]
    tables = {name: pv.Records(20, lambda i: pv.Row(x=rows[i])) for name in ("one", "other")}
    attack = pv.Attack(lambda one, other: total(one) - total(other), tables, secret=lambda one: one[0].x)
    assert float(attack.run(engine="sample", samples=200, seed=1).prediction.std()) == pytest.approx(0, abs=1e-12)


def test_one_table_given_twice():
    template = pv.Records(20, pv.Row(x=pv.Bernoulli(0.5)))
    attack = pv.Attack(lambda a, b: total(a) - total(b), {"a": template, "b": template}, secret=lambda a: a[0].x)
    assert float(attack.run(engine="sample", samples=200, seed=1).prediction.std()) == 0


def test_a_row_of_one_table_in_a_plate_of_another():
    cells = [pv.Bernoulli(0.5) for _ in range(20)]
    one = pv.Records(20, lambda i: pv.Row(x=cells[i]))
    other = pv.Records(20, lambda i: pv.Row(y=cells[0] if i == 0 else pv.Bernoulli(0.5)))
    attack = pv.Attack(lambda one, other: total(one), {"one": one, "other": other}, secret=lambda other: other[0].y)
    result = attack.run(observe=pv.equals(15), engine="sample", samples=2000, seed=1)
    assert 0.75 in result.posterior.mean().widened(2)


def test_impossible_observations():
    with pytest.raises(pv.ImpossibleObservation):
        exactly(lambda records: ones(records), {"records": coins(40)}, ones, pv.equals(41))


def test_whether_any_or_all():
    program = lambda records, a: (any(r.x for r in records), all(r.x for r in records), a)
    result = exactly(program, {"records": coins(60, 0.01), "a": pv.Bernoulli(0.5)}, "a")
    assert float(result.prediction.probability(lambda o: o[0])) == close(1 - 0.99**60)


@pytest.mark.parametrize("sd", [0.03, 0.1, 0.3, 1.0, 5.0])
@pytest.mark.parametrize("size", [50, 200, 1000])
def test_counts_under_noise_that_leaves_them_apart(size, sd):
    prior = {"records": coins(size), "z": pv.Normal(0, sd=sd)}
    result = exactly(
        lambda records, z: total(records) + z,
        prior,
        lambda records: records[0].x,
        pv.between(size / 2 - 0.2, size / 2 + 0.3),
    )
    counts = np.arange(size)
    law = stats.binom.pmf(counts, size - 1, 0.5)
    ends = size / 2 + np.array([-0.2, 0.3])
    seen = [law @ np.diff(stats.norm.cdf((ends[:, np.newaxis] - counts - s) / sd), axis=0)[0] for s in (0, 1)]
    assert float(result.diagnostics.evidence) == close(np.mean(seen))
    assert float(result.posterior.mean()) == close(seen[1] / sum(seen))


def test_noisy_view_of_a_count():
    result = exactly(total, {"records": coins(200)}, lambda records: records[0].x, pv.noisy(100.3, sd=0.1))
    counts = np.arange(200)
    seen = [stats.binom.pmf(counts, 199, 0.5) @ stats.norm.pdf(100.3, counts + s, 0.1) for s in (0, 1)]
    assert float(result.posterior.mean()) == close(seen[1] / sum(seen))


@pytest.mark.parametrize(
    ("secret", "values"),
    [
        (lambda x: x + 0.5, [0.5, 1.5, 2.5]),
        (lambda x: -x, [0, -1, -2]),
        (lambda x: 2 * x + 3, [3, 5, 7]),
        ("x", [0, 1, 2]),
    ],
)
def test_affine_secrets(secret, values):
    prior = {"x": pv.DiscreteUniform(0, 2), "z": pv.Laplace(0, 1)}
    result = exactly(lambda x, z: x + z, prior, secret, pv.between(0, 1))
    likelihood = np.diff(stats.laplace.cdf(np.subtract.outer([0, 1], np.arange(3))), axis=0)[0]
    expected = dict(zip(values, likelihood / likelihood.sum(), strict=True))
    assert {k: float(v) for k, v in result.posterior.distribution().items()} == close(expected)
    plain = exactly(lambda x, z: x + z, prior, "x")
    assert float(mutual_information(result.joint)) == close(float(mutual_information(plain.joint)))
    assert float(bayes_risk(result.joint)) == close(float(bayes_risk(plain.joint)))


def test_continuous_secret_times_minus_one():
    prior = {"x": pv.Uniform(0, 1), "z": pv.Normal(0, sd=0.5)}
    result = exactly(lambda x, z: x + z, prior, lambda x: 3 - 2 * x, pv.equals(0.5))
    assert float(result.posterior.mean()) == close(2.0)
    assert float(result.diagnostics.evidence) == close(stats.norm.cdf(1) - stats.norm.cdf(-1))


@pytest.mark.parametrize("scale", [1e-200, 1e-13, 1.0, 1e150])
def test_any_scale(scale):
    prior = {"u": pv.Uniform(0, scale), "x": pv.Choice([0.0, 5 * scale, 10 * scale])}
    result = exactly(lambda u, x: u + x, prior, "u", pv.between(5 * scale, 5.5 * scale))
    assert float(result.posterior.mean()) / scale == close(0.25)
    assert float(result.diagnostics.evidence) == close(1 / 6)


def test_mixtures_of_points_and_densities():
    noise = pv.Mixture([pv.Constant(0.0), pv.Normal(0, sd=1)], [0.5, 0.5])
    result = exactly(lambda u, m: u + m, {"u": pv.Uniform(0, 1), "m": noise}, "u", pv.between(0.2, 1.5))
    u, weights = np.polynomial.legendre.leggauss(60)
    dense = (stats.norm.cdf(1.5 - (u + 1) / 2) - stats.norm.cdf(0.2 - (u + 1) / 2)) @ weights / 2
    assert float(result.diagnostics.evidence) == close(0.5 * 0.8 + 0.5 * dense)


def test_boundaries_at_values_that_are_rounded():
    rows = pv.Records(33, lambda i: pv.Row(x=pv.DiscreteUniform(0, 6) if i == 0 else pv.Bernoulli(0.3)))
    attack = pv.Attack(lambda records: total(records) / len(records), {"records": rows}, lambda records: records[0].x)
    result = attack.run(observe=pv.such_that(lambda o: o >= 13 / 33), samples=4000, seed=1)
    truth = np.mean([stats.binom.sf(12 - a, 32, 0.3) for a in range(7)])
    assert truth in result.diagnostics.evidence.widened(2)


@pytest.mark.parametrize("noise", ["Exponential", "Gamma", "Laplace"])
def test_sums_of_families_with_known_sums(noise):
    term = {
        "Exponential": lambda: pv.Exponential(scale=2.0),
        "Gamma": lambda: pv.Gamma(1.5, scale=2.0),
        "Laplace": lambda: pv.Laplace(0, 1),
    }
    rows = pv.Records(40, lambda i: pv.Row(x=term[noise]()))
    result = exactly(lambda records, a: total(records) + a, {"records": rows, "a": pv.Bernoulli(0.5)}, "a")
    if noise == "Laplace":
        assert float(result.prediction.mean()) == close(0.5)
        assert float(result.prediction.std()) == close(math.sqrt(80.25))
        return
    shape = 40 if noise == "Exponential" else 60
    below = np.mean(stats.gamma.cdf([90.0, 89.0], shape, scale=2.0))
    assert float(result.prediction.probability(lambda o: o < 90)) == pytest.approx(below, rel=1e-9)


def test_a_secret_that_does_not_matter():
    rows = pv.Records(20, lambda i: pv.Row(x=pv.Uniform(0, 1)))
    result = exactly(
        lambda records, s: total(records) + 0 * s, {"records": rows, "s": pv.Uniform(0, 1)}, "s", pv.between(9, 11)
    )
    assert float(mutual_information(result.joint)) == pytest.approx(0, abs=1e-9)
    assert float(result.posterior.mean()) == close(0.5)


def test_an_output_that_is_the_secret():
    result = exactly(lambda x: x, {"x": pv.Uniform(0, 1)}, "x")
    assert float(mutual_information(result.joint)) == math.inf


def test_a_query_about_another_term():
    rows = pv.Records(9, lambda i: pv.Row(x=pv.Laplace(0, 1)))
    result = exactly(total, {"records": rows}, lambda records: records[0].x, pv.equals(4.5))
    assert float(result.belief(lambda records: records[7].x).mean()) == close(0.5)


def test_information_and_risk_by_hand():
    result = exactly(
        lambda records, a: ones(records) + a, {"records": coins(30, 0.2), "a": pv.DiscreteUniform(0, 2)}, "a"
    )
    table = np.array([[stats.binom.pmf(o - a, 30, 0.2) for o in range(33)] for a in range(3)]) / 3
    with np.errstate(divide="ignore", invalid="ignore"):
        bits = np.nansum(table * np.log2(table / table.sum(axis=0) / table.sum(axis=1, keepdims=True)))
    assert float(mutual_information(result.joint)) == close(bits)
    assert float(bayes_risk(result.joint)) == close(1 - table.max(axis=0).sum())


@pytest.mark.parametrize("count", [10, 25, 30, 38])
def test_rare_counts(count):
    prior = {"records": coins(40, 0.01), "a": pv.DiscreteUniform(0, 3)}
    result = exactly(lambda records, a: ones(records) + a, prior, "a", pv.equals(count))
    chances = stats.binom.pmf(count - np.arange(4), 40, 0.01)
    assert float(result.posterior.mean()) == close(chances @ np.arange(4) / chances.sum())


def test_a_noisy_mean_that_barely_leaks():
    # By the trapezoidal rule on a grid of 16,000 outputs and 40 secrets. A normal bound gives 1.356e-4.
    row = lambda i: pv.Row(x=pv.Uniform(80, 90) if i < 195 else pv.Uniform(10, 200))
    prior = {"records": pv.Records(200, row), "noise": pv.Laplace(0, 20)}
    result = exactly(lambda records, noise: total(records) / 200 + noise, prior, lambda records: records[199].x)
    assert float(mutual_information(result.joint)) == pytest.approx(1.31041e-4, rel=1e-4)
