"""The linear-Gaussian part, against the algebra of normal distributions."""

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, stats

import privug as pv
from oracles import paper
from privug.model.node import Kind


def exact(attack, **options):
    result = attack.run(engine="exact", **options)
    assert result.engine == "exact (gaussian)"
    return result


def information_of_cells(joint) -> float:
    """Mutual information as the plain sum over the cells of a joint."""
    weights = joint.weights
    _, secret = np.unique(joint.secret.batch.numbers(), return_inverse=True)
    _, output = np.unique(joint.output.batch.numbers(), return_inverse=True)
    product = np.bincount(secret, weights)[secret] * np.bincount(output, weights)[output]
    return float(weights @ np.log2(weights / product))


@pytest.mark.parametrize("name", paper.FOUR_AGES)
def test_four_ages(name):
    make, mean, variance = paper.FOUR_AGES[name]
    posterior = exact(make()).posterior
    assert float(posterior.mean()) == pytest.approx(mean, rel=1e-12)
    assert float(posterior.std()) ** 2 == pytest.approx(variance, rel=1e-12)
    assert posterior.kind is Kind.CONTINUOUS


def test_four_ages_by_their_printed_digits():
    for name, mean, variance in (("variances", 40.7273, 2.7273), ("deviations", 40.2330, 8.7379)):
        posterior = exact(paper.FOUR_AGES[name][0]()).posterior
        assert f"{float(posterior.mean()):.4f}" == f"{mean:.4f}"
        assert f"{float(posterior.std()) ** 2:.4f}" == f"{variance:.4f}"


@pytest.mark.parametrize(("spreads", "information"), [((8, 1), 0.2002689647918644), ((20, 20), None)])
def test_mean_of_two_hundred(spreads, information):
    result = exact(paper.noisy_mean(*spreads))
    chance = result.prediction.probability(lambda o: o < 55)
    assert chance.exact
    assert float(chance) == pytest.approx(paper.NOISY_MEANS[spreads], rel=1e-11)
    closed = 0.5 * math.log2(1 + spreads[0] ** 2 / (200 * spreads[1] ** 2)) if information is None else information
    assert float(result.joint.information) == pytest.approx(closed, rel=1e-11)
    assert information_of_cells(result.joint) == pytest.approx(closed, abs=1e-11)


@pytest.mark.parametrize("noise", [10.0, 1.0, 0.1, 1e-3])
def test_cells_converge_to_the_closed_form(noise):
    prior = {"x": pv.Normal(3, sd=1), "e": pv.Normal(0, sd=noise)}
    joint = exact(pv.Attack(lambda x, e: 2 * x + e, prior, "x")).joint
    truth = 0.5 * math.log2(1 + 4 / noise**2)
    assert float(joint.information) == pytest.approx(truth, rel=1e-10)
    assert information_of_cells(joint) == pytest.approx(truth, abs=1e-9)
    assert joint.secret.curve.mean() == 3.0
    assert float(joint.weights @ joint.secret.batch.numbers()) == pytest.approx(3.0, rel=1e-9)
    assert float(joint.output.std()) == pytest.approx(math.hypot(2, noise), rel=1e-12)


def test_output_that_gives_the_secret_away():
    joint = exact(pv.Attack(lambda x, e: (x - 3) * 2, {"x": pv.Normal(0, sd=1), "e": pv.Normal(0, sd=1)}, "x")).joint
    assert math.isinf(float(joint.information))
    assert "function of the secret alone" in joint.information.method
    nearly = exact(
        pv.Attack(lambda x, e: x + e, {"x": pv.Normal(0, sd=1), "e": pv.Normal(0, sd=1e-9)}, "x")
    ).joint.information
    assert float(nearly) == pytest.approx(math.log2(1e9), rel=1e-9)


def test_output_that_says_nothing():
    prior = {"x": pv.Normal(0, sd=1), "e": pv.Normal(0, sd=1)}
    for program in (lambda x, e: e, lambda x, e: 5.0, lambda x, e: x - x):
        joint = exact(pv.Attack(program, prior, "x")).joint
        assert float(joint.information) == 0.0
        assert information_of_cells(joint) == pytest.approx(0.0, abs=1e-12)


def hierarchy():
    mean = pv.Normal(50, sd=3)
    return {"mean": mean, "ages": pv.Array(pv.Normal(mean, sd=2), 5)}


def test_hierarchical_means():
    attack = pv.Attack(lambda mean, ages: ages.sum() / 5, hierarchy(), "mean")
    result = exact(attack, observe=pv.equals(56.0))
    precision = 1 / 9 + 5 / 4
    assert float(result.posterior.mean()) == pytest.approx((50 / 9 + 56 * 5 / 4) / precision, rel=1e-12)
    assert float(result.posterior.std()) == pytest.approx(precision**-0.5, rel=1e-12)
    assert float(result.diagnostics.evidence) == pytest.approx(stats.norm.pdf(56, 50, math.sqrt(9 + 4 / 5)), rel=1e-11)
    assert result.diagnostics.evidence.unit == "density"


def test_chains_of_means():
    a = pv.Normal(0, sd=1)
    b = pv.Normal(2 * a + 1, sd=1)
    c = pv.Normal(b - a, sd=1)
    result = exact(pv.Attack(lambda a, c: c, {"a": a, "c": c}, "a"), observe=pv.equals(4.0))
    # c = a + 1 + two more unit normals: variance 3, covariance 1.
    assert float(result.posterior.mean()) == pytest.approx(1.0, rel=1e-12)
    assert float(result.posterior.std()) == pytest.approx(math.sqrt(2 / 3), rel=1e-12)


def test_jointly_normal_inputs():
    cov = np.array([[4.0, 1.5, 0.0], [1.5, 2.0, -0.3], [0.0, -0.3, 1.0]])
    attack = pv.Attack(lambda v: v[1] + 2 * v[2], {"v": pv.MvNormal([1.0, 2.0, 3.0], cov)}, lambda v: v[0])
    w = np.array([0.0, 1.0, 2.0])
    result = exact(attack, observe=pv.equals(9.0))
    gain = cov[0] @ w / (w @ cov @ w)
    assert float(result.posterior.mean()) == pytest.approx(1 + gain * (9 - 8), rel=1e-11)
    assert float(result.posterior.std()) == pytest.approx(math.sqrt(4 - gain * (cov[0] @ w)), rel=1e-11)
    moved = pv.MvNormal(pv.Array(pv.Normal(0, sd=1), 3), cov)
    result = exact(pv.Attack(lambda v: v[1] + 2 * v[2], {"v": moved}, lambda v: v[0]))
    assert float(result.prediction.std()) == pytest.approx(math.sqrt(w @ (cov + np.eye(3)) @ w), rel=1e-11)


def test_several_values_at_once():
    prior = {"x": pv.Normal(0, sd=1), "y": pv.Normal(0, sd=1), "z": pv.Normal(0, sd=1)}
    attack = pv.Attack(lambda x, y, z: (x + y, y + z), prior, "y")
    result = exact(attack, observe=[pv.equals(1.0), pv.equals(2.0)])
    assert float(result.posterior.mean()) == pytest.approx(1.0, rel=1e-12)
    assert float(result.posterior.std()) == pytest.approx((1 / 3) ** 0.5, rel=1e-12)
    noisy = exact(attack, observe=[pv.noisy(1.0, sd=2.0), None])
    assert float(noisy.posterior.mean()) == pytest.approx(1 / 6, rel=1e-12)
    both = exact(attack, observe=[pv.noisy(1.0, sd=2.0), pv.equals(2.0)])
    cov = np.array([[6.0, 1.0], [1.0, 2.0]])
    assert float(both.posterior.mean()) == pytest.approx(np.ones(2) @ np.linalg.solve(cov, [1.0, 2.0]), rel=1e-12)
    assert float(both.diagnostics.evidence) == pytest.approx(stats.multivariate_normal(cov=cov).pdf([1, 2]), rel=1e-10)


def test_values_and_a_range_together():
    prior = {"x": pv.Normal(0, sd=1), "y": pv.Normal(0, sd=1)}
    attack = pv.Attack(lambda x, y: (x + y, x - y), prior, "x")
    result = exact(attack, observe=[pv.equals(1.0), pv.between(0.0, 3.0)])
    # Given x + y = 1, x is N(1/2, var 1/2), and x - y = 2x - 1 lies in the range: x between 1/2 and 2.
    sd = math.sqrt(0.5)
    truth = stats.truncnorm(0, 1.5 / sd, loc=0.5, scale=sd)
    assert float(result.posterior.mean()) == pytest.approx(truth.mean(), rel=1e-9)
    assert float(result.posterior.std()) == pytest.approx(truth.std(), rel=1e-9)


def posterior_by_integration(low, high, sd_noise, mean=0.0, sd=1.0):
    """Mean, deviation and evidence of x ~ N(mean, sd), given x + noise in a range."""

    def likelihood(x):
        return stats.norm.cdf((high - x) / sd_noise) - stats.norm.cdf((low - x) / sd_noise)

    edges = sorted({mean - 12 * sd, low, high, mean + 12 * sd})
    moments = [
        sum(
            integrate.quad(lambda x, k=k: x**k * stats.norm.pdf(x, mean, sd) * likelihood(x), a, b, epsabs=1e-13)[0]
            for a, b in itertools.pairwise(edges)
        )
        for k in range(3)
    ]
    first, second = moments[1] / moments[0], moments[2] / moments[0]
    return first, math.sqrt(second - first**2), moments[0]


@pytest.mark.parametrize(("low", "high"), [(0.5, 1.0), (-1.0, 4.0), (2.0, 2.001), (-3.0, -2.5)])
@pytest.mark.parametrize("noise", [2.0, 0.3])
def test_ranges(low, high, noise):
    prior = {"x": pv.Normal(0, sd=1), "e": pv.Normal(0, sd=noise)}
    result = exact(pv.Attack(lambda x, e: x + e, prior, "x"), observe=pv.between(low, high))
    mean, sd, evidence = posterior_by_integration(low, high, noise)
    assert float(result.posterior.mean()) == pytest.approx(mean, rel=1e-7)
    assert float(result.posterior.std()) == pytest.approx(sd, rel=1e-6)
    assert float(result.diagnostics.evidence) == pytest.approx(evidence, rel=1e-9)
    assert result.diagnostics.evidence.unit == ""


def test_a_range_is_the_limit_of_a_value():
    prior = {"x": pv.Normal(0, sd=1), "e": pv.Normal(0, sd=2.0)}
    attack = pv.Attack(lambda x, e: x + e, prior, "x")
    value = exact(attack, observe=pv.equals(3.0)).posterior
    for within in (1e-4, 1e-8, 1e-12):
        close = exact(attack, observe=pv.near(3.0, within=within)).posterior
        assert float(close.mean()) == pytest.approx(float(value.mean()), rel=1e-8)
        assert float(close.std()) == pytest.approx(float(value.std()), rel=1e-8)


def test_ranges_far_in_the_tail():
    prior = {"x": pv.Normal(0, sd=1), "e": pv.Normal(0, sd=0.5)}
    result = exact(pv.Attack(lambda x, e: x + e, prior, "x"), observe=pv.between(30.0, math.inf))
    scale = math.sqrt(1.25)
    beyond = stats.truncnorm(30 / scale, np.inf, scale=scale)
    gain = 1 / 1.25
    assert float(result.posterior.mean()) == pytest.approx(gain * beyond.mean(), rel=1e-8)
    assert float(result.posterior.std()) == pytest.approx(math.sqrt(0.2 + gain**2 * beyond.var()), rel=1e-6)
    assert float(result.diagnostics.evidence) == pytest.approx(stats.norm.sf(30, 0, scale), rel=1e-10)
    assert result.posterior.curve.error < 1e-10


def test_ranges_of_the_secret_itself():
    attack = pv.Attack(lambda x: 10 - 2 * x, {"x": pv.Normal(0, sd=1)}, "x")
    result = exact(attack, observe=pv.between(6, 12))
    truth = stats.truncnorm(-1, 2)
    assert float(result.posterior.mean()) == pytest.approx(truth.mean(), rel=1e-10)
    assert float(result.posterior.probability(lambda x: x > 1)) == pytest.approx(truth.sf(1), rel=1e-10)
    assert float(result.posterior.probability(lambda x: x > 2.1)) == 0.0


def test_predicates_that_are_ranges():
    prior = {"x": pv.Normal(0, sd=1), "e": pv.Normal(0, sd=1)}
    attack = pv.Attack(lambda x, e: x + e, prior, "x")
    above = exact(attack, observe=pv.such_that(lambda o: o > 1)).posterior
    same = exact(attack, observe=pv.between(1, math.inf)).posterior
    assert float(above.mean()) == pytest.approx(float(same.mean()), rel=1e-10)
    inside = exact(attack, observe=pv.such_that(lambda o: not (o <= -1 or o > 2))).posterior
    same = exact(attack, observe=pv.between(-1, 2)).posterior
    assert float(inside.std()) == pytest.approx(float(same.std()), rel=1e-10)
    outside = exact(attack, observe=pv.such_that(lambda o: o < -1 or o > 1))
    assert float(outside.posterior.mean()) == pytest.approx(0.0, abs=1e-10)
    assert float(outside.diagnostics.evidence) == pytest.approx(2 * stats.norm.sf(1, 0, math.sqrt(2)), rel=1e-11)


def test_noisy_values():
    result = exact(pv.Attack(lambda x: 2 * x, {"x": pv.Normal(0, sd=1)}, "x"), observe=pv.noisy(3.0, sd=1.0))
    assert float(result.posterior.mean()) == pytest.approx(6 / 5, rel=1e-12)
    assert float(result.posterior.std()) == pytest.approx(5**-0.5, rel=1e-12)
    assert float(result.diagnostics.evidence) == pytest.approx(stats.norm.pdf(3, 0, math.sqrt(5)), rel=1e-11)


def test_noisy_values_of_an_array():
    attack = pv.Attack(lambda a: a * 2, {"a": pv.Array(pv.Normal(0, sd=1), 3)}, lambda a: a.mean())
    result = exact(attack, observe=pv.noisy(3.0, sd=1.0))
    assert float(result.posterior.mean()) == pytest.approx(6 / 5, rel=1e-12)
    assert float(result.posterior.std()) == pytest.approx((5 * 3) ** -0.5, rel=1e-12)


@pytest.mark.parametrize(
    "program",
    [
        lambda a: (np.array([1.0, 2.0, 3.0]) * a).sum() / 2,
        lambda a: np.dot(a, [0.5, 1.0, 1.5]),
        lambda a: np.average(a, weights=[1, 2, 3]) * 3,
        lambda a: a[0] / 2 + sum(a[1:]) + a[-1] / 2,
        lambda a: (np.concatenate([a, a]) * np.array([0.25, 0.5, 0.75] * 2)).sum(),
        lambda a: (a.reshape(3, 1) * np.array([[0.25, 0.25], [0.5, 0.5], [0.75, 0.75]])).sum(),
        lambda a: -(-a[0] * 0.5 - a[1]) + 1.5 * a[2] + 0 * a[1],
        lambda a: 0.5 * a[0] + np.stack([a[1], 1.5 * a[2]]).sum(),
    ],
)
def test_whatever_way_the_program_is_written(program):
    attack = pv.Attack(program, {"a": pv.Normal(np.array([1.0, 2.0, 3.0]), sd=2.0)}, lambda a: a[1])
    result = exact(attack, observe=pv.equals(10.0))
    w, mean = np.array([0.5, 1.0, 1.5]), 7.0
    variance = 4 * w @ w
    assert float(result.prediction.mean()) == pytest.approx(mean, rel=1e-12)
    assert float(result.prediction.std()) == pytest.approx(math.sqrt(variance), rel=1e-12)
    assert float(result.posterior.mean()) == pytest.approx(2 + 4 * (10 - mean) / variance, rel=1e-12)


def test_queries():
    prior = {"x": pv.Normal(0, sd=1), "y": pv.Normal(0, sd=1)}
    result = exact(pv.Attack(lambda x, y: x + y, prior, "x"), observe=pv.equals(2.0))
    other = result.belief(lambda x, y: x - 3 * y)
    assert other.exact
    assert float(other.mean()) == pytest.approx(-2.0, rel=1e-12)
    assert float(other.std()) == pytest.approx(math.sqrt(8), rel=1e-12)
    determined = result.belief(lambda x, y, output: output + x + y)
    assert (float(determined.mean()), float(determined.std())) == (4.0, 0.0)
    curved = result.belief(lambda x, y: x * y)
    assert not curved.exact
    assert "sampled" in curved.method
    assert 1 - 0.5 in curved.mean().widened(2)


def test_redundant_and_contradictory_values():
    prior = {"x": pv.Normal(0, sd=1), "y": pv.Normal(0, sd=1)}
    attack = pv.Attack(lambda x, y: (x + y, 2 * x + 2 * y), prior, "x")
    assert float(exact(attack, observe=pv.equals((1.0, 2.0))).posterior.mean()) == pytest.approx(0.5)
    for wrong in (pv.equals((1.0, 2.1)), [pv.equals(1.0), pv.between(3, 4)], [pv.between(0, 1), pv.between(3, 4)]):
        with pytest.raises(pv.ImpossibleObservation):
            attack.run(engine="exact", observe=wrong)
    same = exact(attack, observe=[pv.between(0, 1), pv.between(1, 4)]).posterior
    assert float(same.mean()) == pytest.approx(
        float(exact(attack, observe=[pv.between(0.5, 1), None]).posterior.mean())
    )


@pytest.mark.parametrize("observe", [pv.equals(1.0), pv.between(1, 2), pv.equals("five"), pv.equals((5.0, 5.0))])
def test_impossible_observations(observe):
    with pytest.raises(pv.ImpossibleObservation):
        pv.Attack(lambda x: 0 * x + 5.0, {"x": pv.Normal(0, sd=1)}, "x").run(engine="exact", observe=observe)


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_extreme_scales(scale):
    prior = {"x": pv.Normal(0, sd=scale), "y": pv.Normal(0, sd=scale)}
    attack = pv.Attack(lambda x, y: x + y, prior, "x")
    for observe in (pv.equals(scale), pv.near(scale, within=scale * 1e-9)):
        posterior = exact(attack, observe=observe).posterior
        assert float(posterior.mean()) / scale == pytest.approx(0.5, rel=1e-7)
        assert float(posterior.std()) / scale == pytest.approx(0.5**0.5, rel=1e-7)


def test_what_is_nearly_determined_keeps_its_digits():
    prior = {"x": pv.Normal(0, sd=1.0), "e": pv.Normal(0, sd=1e-12)}
    posterior = exact(pv.Attack(lambda x, e: x + e, prior, "x"), observe=pv.equals(0.7)).posterior
    assert float(posterior.std()) == pytest.approx(1e-12, rel=1e-3)
    assert float(posterior.mean()) == pytest.approx(0.7, rel=1e-12)


def test_arrays_stay_arrays():
    prior = {"s": pv.Normal(42, sd=8), "p": pv.Array(pv.Normal(55, sd=1), 200_000)}
    result = exact(pv.Attack(lambda s, p: (s + p.sum()) / (1 + len(p)), prior, "s"), observe=pv.equals(55.0))
    gain = 64 / (64 + 200_000)
    assert float(result.posterior.mean()) == pytest.approx(42 + gain * (55 * 200_001 - 42 - 55 * 200_000), rel=1e-9)
    assert float(result.posterior.std()) == pytest.approx(8 * math.sqrt(1 - gain), rel=1e-12)


def test_report():
    text = str(paper.four_ages(var=(3, 10)).run())
    assert "engine 'exact (gaussian)'" in text
    assert "exact inference (closed form of 4 normal variables)" in text
