"""Solving observations: closed forms of densities, probabilities and posteriors, without waiting for them."""

import math

import numpy as np
import pytest
from scipy import integrate, stats

import privug as pv

NORMALS = {"x": pv.Normal(0, sd=1), "y": pv.Normal(0, sd=1)}


def run(program, prior, observation, secret="x", samples=4000, **options):
    attack = pv.Attack(program, prior=prior, secret=secret)
    return attack.run(observe=observation, engine="sample", samples=samples, seed=1, **options)


def of_exponential(x, y):
    return np.exp(x + y)


def of_logistic(x, y):
    return 1 / (1 + np.exp(-(x + 2 * y)))


def of_cube_root(x, y):
    return 3 * np.cbrt(x + y) + 1


def of_hyperbolic(x, y):
    return 5 - np.tanh(2 * (x - y))


def of_inverse_tangent(x, y):
    return np.arctan(x + y) / 2


# For each function: the value seen, what x + a y is then, the coefficient a, and the slope of the function there.
MONOTONE = {
    of_exponential: (2.0, math.log(2), 1, 2.0),
    of_logistic: (0.7, math.log(0.7 / 0.3), 2, 0.21),
    of_cube_root: (2.5, 0.125, 1, 4.0),
    of_hyperbolic: (5.2, math.atanh(-0.2) / 2, -1, 2 * (1 - 0.04)),
    of_inverse_tangent: (0.3, math.tan(0.6), 1, 0.5 * math.cos(0.6) ** 2),
}


@pytest.mark.parametrize("function", MONOTONE)
def test_monotone_functions_of_sums(function):
    seen, inner, slope_of_y, slope = MONOTONE[function]
    variance = 1 + slope_of_y**2
    result = run(function, NORMALS, pv.equals(seen))
    density = stats.norm.pdf(inner, 0, math.sqrt(variance)) / slope
    assert density in result.diagnostics.evidence.widened(2)
    assert result.diagnostics.evidence.unit == "density"
    assert inner / variance in result.posterior.mean().widened(2)
    assert result.diagnostics.draws < 20_000


@pytest.mark.parametrize(
    ("program", "seen"),
    [
        (lambda x, y: (x * y) ** 0.5, 1.5),
        (lambda x, y: x * y + 0.5, 2.75),
        (lambda x, y: 3 / (x * y), 3 / 2.25),
    ],
)
def test_products_of_positive_roots(program, seen):
    """The product is 2.25: its density is the integral of 1 / x where both factors lie between 1 and 2."""
    result = run(program, {"x": pv.Uniform(1, 2), "y": pv.Uniform(1, 2)}, pv.equals(seen))
    mean = (2 - 1.125) / math.log(2 / 1.125)
    assert mean in result.posterior.mean().widened(2)
    slope = {1.5: 2 * 1.5, 2.75: 1.0, 3 / 2.25: 2.25**2 / 3}[seen]
    assert slope * math.log(2 / 1.125) in result.diagnostics.evidence.widened(2)


def test_one_root_inside_functions_beside_others():
    """o = y + exp(x): given y, x is log(o - y), of which the density follows by quadrature."""
    result = run(lambda x, y: y + np.exp(x), {"x": pv.Laplace(0, 1), "y": pv.Uniform(0, 1)}, pv.equals(1.5))
    weight = lambda y: stats.laplace.pdf(math.log(1.5 - y)) / (1.5 - y)
    density = integrate.quad(weight, 0, 1, points=[0.5])[0]
    mean = integrate.quad(lambda y: weight(y) * math.log(1.5 - y), 0, 1, points=[0.5])[0] / density
    assert density in result.diagnostics.evidence.widened(2)
    assert mean in result.posterior.mean().widened(2)


def test_what_is_not_monotone_is_refused():
    for program in (lambda x, y: (x + y) ** 2, lambda x, y: np.sin(x) + np.sin(y), lambda x, y: abs(x - y)):
        with pytest.raises((pv.ObservationError, pv.ImpossibleObservation)):
            run(program, NORMALS, pv.equals(0.5), budget=20_000)


def test_roots_behind_branches_are_not_solved_for():
    with pytest.raises(pv.ObservationError, match="probability zero"):
        run(lambda x, y: pv.where(x > 0, np.exp(x), y), NORMALS, pv.equals(0.5))


def test_a_value_that_the_function_never_has():
    with pytest.raises(pv.ImpossibleObservation):
        run(of_exponential, NORMALS, pv.equals(-1.0), budget=20_000)


def geometric_mechanism(n):
    return n + pv.sample(pv.DiscreteLaplace(30.0))


def test_discrete_noise_weights_samples():
    """Bayes' rule on the noise's probabilities; waiting for 130 would take a thousand draws a sample."""
    result = run(geometric_mechanism, {"n": pv.Binomial(100, 0.5)}, pv.equals(130), secret="n")
    counts = np.arange(101)
    weights = stats.binom.pmf(counts, 100, 0.5) * stats.dlaplace(1 / 30).pmf(130 - counts)
    assert weights.sum() in result.diagnostics.evidence.widened(2)
    assert result.diagnostics.evidence.unit == ""
    assert counts @ weights / weights.sum() in result.posterior.mean().widened(2)
    assert result.diagnostics.draws < 20_000


@pytest.mark.parametrize(
    "noise", [pv.Poisson(40.0), pv.Binomial(80, 0.5), pv.DiscreteUniform(0, 80), pv.Geometric(0.02)]
)
def test_every_family_of_whole_numbers(noise):
    result = run(lambda n, e: n - 2 * e, {"n": pv.DiscreteUniform(0, 50), "e": noise}, pv.equals(-41), secret="n")
    numbers = np.arange(51)
    frozen = {
        "Poisson": stats.poisson(40),
        "Binomial": stats.binom(80, 0.5),
        "DiscreteUniform": stats.randint(0, 81),
        "Geometric": stats.geom(0.02),
    }[noise.node.operation.family.name]
    weights = np.where((numbers + 41) % 2 == 0, frozen.pmf((numbers + 41) // 2), 0.0) / 51
    assert weights.sum() in result.diagnostics.evidence.widened(2)
    assert numbers @ weights / weights.sum() in result.posterior.mean().widened(2)
    assert all(value % 2 == 1 for value in result.posterior.distribution())


def mean_of_all(s, others):
    return (s + others.sum()) / 201


def test_a_window_on_many_variables():
    """The mean of 201 numbers known to 0.005: the secret's posterior by quadrature, every draw worth keeping."""
    prior = {"s": pv.Uniform(0, 100), "others": pv.Array(pv.Normal(55, sd=1), 200)}
    result = run(mean_of_all, prior, pv.near(55.1, within=0.005), secret="s", samples=20_000)
    spread = stats.norm(201 * 55.1 - 200 * 55, math.sqrt(200))
    shares = [
        integrate.quad(lambda s, k=k: s**k * (spread.cdf(s + 201 * 0.005) - spread.cdf(s - 201 * 0.005)), 0, 100)[0]
        for k in (0, 1)
    ]
    assert shares[0] / 100 in result.diagnostics.evidence.widened(2)
    assert result.diagnostics.evidence.unit == ""
    assert shares[1] / shares[0] in result.posterior.mean().widened(2)
    assert result.diagnostics.effective_samples > 0.8 * result.diagnostics.draws


@pytest.mark.parametrize(
    ("prior", "frozen", "low"),
    [
        (pv.Normal(0, sd=1), stats.norm(), 10.0),
        (pv.Laplace(0, 1), stats.laplace(), 30.0),
        (pv.Exponential(scale=2), stats.expon(scale=2), 40.0),
        (pv.StudentT(4), stats.t(4), 60.0),
        (pv.Normal(0, sd=1), stats.norm(), -20.0),
    ],
)
def test_windows_far_out_in_a_tail(prior, frozen, low):
    high = math.inf if low > 0 else -15.0
    result = run(lambda x: x, {"x": prior}, pv.between(low, high))
    mass = frozen.sf(low) if low > 0 else frozen.cdf(high) - frozen.cdf(low)
    assert float(result.diagnostics.evidence) == pytest.approx(mass, rel=1e-9)
    above = frozen.isf(frozen.sf(low) / 2) if low > 0 else frozen.ppf(frozen.cdf(high) / 2)
    assert 0.5 in result.posterior.probability(lambda x: x > above).widened(2)


def test_several_observations_at_once():
    """x + y within a window, y - z exactly, n whole: densities and probabilities multiply."""
    prior = {**NORMALS, "z": pv.Laplace(0, 1), "n": pv.DiscreteUniform(1, 50), "m": pv.DiscreteUniform(1, 50)}
    seen = [pv.near(3.0, within=0.01), pv.equals(0.5), pv.equals(99)]
    result = run(lambda x, y, z, n, m: (x + y, y - z, n + m), prior, seen, secret="y")

    def weight(y):
        return (stats.norm.cdf(3.01 - y) - stats.norm.cdf(2.99 - y)) * stats.norm.pdf(y) * stats.laplace.pdf(y - 0.5)

    total = integrate.quad(weight, -5, 8, points=[0.5])[0]
    mean = integrate.quad(lambda y: y * weight(y), -5, 8, points=[0.5])[0] / total
    assert total * 2 / 2500 in result.diagnostics.evidence.widened(2)
    assert mean in result.posterior.mean().widened(2)


def test_rounding_is_a_window():
    result = run(lambda x, y: round(x + y, 2), NORMALS, pv.equals(3.14))
    mass = np.diff(stats.norm(0, math.sqrt(2)).cdf([3.135, 3.145]))[0]
    assert float(result.diagnostics.evidence) == pytest.approx(mass, rel=1e-9)
    assert result.diagnostics.draws < 20_000


def test_random_parameters_of_the_root_that_is_solved_for():
    """An unknown scale of the noise: the posterior of the scale by quadrature."""
    prior = {"scale": pv.Uniform(1, 3), "x": pv.Bernoulli(0.5)}

    def noisy(scale, x):
        return x + pv.sample(pv.Laplace(0, scale))

    result = run(noisy, prior, pv.equals(6.0), secret="scale")
    both = lambda s: 0.5 * (stats.laplace.pdf(6, 0, s) + stats.laplace.pdf(5, 0, s)) / 2
    density = integrate.quad(both, 1, 3)[0]
    assert density in result.diagnostics.evidence.widened(2)
    assert integrate.quad(lambda s: s * both(s), 1, 3)[0] / density in result.posterior.mean().widened(2)


def test_tables_of_random_size_are_solved_size_by_size():
    """The size is never solved for, though the output is affine in it."""
    attack = pv.Attack(
        lambda records: len(records) + sum(r.n for r in records),
        prior={"records": pv.Records(pv.DiscreteUniform(1, 3), pv.Row(n=pv.DiscreteUniform(0, 99)))},
        secret=lambda records: len(records),
    )
    result = attack.run(observe=pv.equals(290), engine="sample", samples=2000, seed=1)
    assert result.posterior.distribution().keys() == {3}
    assert math.comb(12, 2) / 100**3 / 3 in result.diagnostics.evidence.widened(2)
