"""Multinomial counts and Dirichlet shares against SciPy and plain enumeration."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

import privug as pv
from privug.model.plan import Plan

P = [0.2, 0.3, 0.5]
WEIGHTS = [1.5, 2.0, 4.0]


def draws(variable, samples=4000, seed=3):
    return Plan([variable.node]).run(samples, np.random.default_rng(seed))[0]


def cells(n):
    return [(a, b, n - a - b) for a, b in itertools.product(range(n + 1), repeat=2) if a + b <= n]


def exactly(secret, prior, program=lambda c: tuple(c), observe=None, **options):
    return pv.Attack(program, prior, secret).run(observe, engine="exact", **options)


@pytest.mark.parametrize("p", [P, [0.5, 0.0, 0.5], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.1] * 5 + [0.5]])
def test_counts_have_the_multinomial_distribution(p):
    n = 4
    found = exactly(lambda c: c[0], {"c": pv.Multinomial(n, p)}).prediction.distribution()
    assert math.fsum(probability.value for probability in found.values()) == pytest.approx(1)
    for counts, probability in found.items():
        assert probability.value == pytest.approx(stats.multinomial(n, p).pmf(counts), abs=1e-12)


def test_draws_of_counts():
    found = draws(pv.Multinomial(6, P))
    assert found.dtype == np.int64
    assert (found.sum(axis=1) == 6).all()
    expected = np.array([stats.multinomial(6, P).pmf(cell) for cell in cells(6)]) * len(found)
    seen = np.array([(found == cell).all(axis=1).sum() for cell in cells(6)])
    assert np.sum((seen - expected) ** 2 / expected) < stats.chi2(len(expected) - 1).isf(1e-4)


def test_a_margin_of_a_table_by_enumeration():
    """What an attacker learns of one cell from the sum of two, and of a cell that is published itself."""
    n = 7
    result = exactly(lambda c: c[0], {"c": pv.Multinomial(n, P)}, lambda c: c[0] + c[1], pv.equals(4))
    weights = {k: stats.multinomial(n, P).pmf((k, 4 - k, n - 4)) for k in range(5)}
    total = sum(weights.values())
    for k, weight in weights.items():
        assert result.posterior.probability(lambda x, k=k: x == k).value == pytest.approx(weight / total, abs=1e-12)
    assert result.diagnostics.evidence.value == pytest.approx(total, rel=1e-9)


def test_a_random_total():
    found = exactly(lambda c: c[0], {"c": pv.Multinomial(pv.DiscreteUniform(0, 3), P)}).prior.distribution()
    for k in range(4):
        truth = np.mean([stats.binom(n, 0.2).pmf(k) for n in range(4)])
        assert found[k].value == pytest.approx(truth, abs=1e-12)


def test_many_people_stay_whole_numbers():
    result = pv.Attack(lambda c: sum(c), {"c": pv.Multinomial(10**12, P)}, lambda c: c[0]).run(samples=200)
    assert result.prediction.mean().value == 10**12


def test_shares_have_the_dirichlet_distribution():
    found = draws(pv.Dirichlet(WEIGHTS))
    assert found.sum(axis=1) == pytest.approx(np.ones(len(found)))
    total = sum(WEIGHTS)
    for share, weight in zip(found.T, WEIGHTS, strict=True):
        assert stats.kstest(share, stats.beta(weight, total - weight).cdf).pvalue > 1e-4
    covariance = stats.dirichlet(WEIGHTS).cov()
    assert np.cov(found.T)[0, 1] == pytest.approx(covariance[0, 1], rel=0.15)


def test_counts_of_unknown_shares_have_the_dirichlet_multinomial_distribution():
    shares = pv.Dirichlet(WEIGHTS)
    found = draws(pv.Multinomial(3, shares), samples=20_000)
    for cell in cells(3):
        truth = stats.dirichlet_multinomial(WEIGHTS, 3).pmf(cell)
        seen = (found == cell).all(axis=1).mean()
        assert seen == pytest.approx(truth, abs=5 * math.sqrt(truth * (1 - truth) / len(found)))


def test_arrays_of_them_are_independent():
    found = draws(pv.Array(pv.Multinomial(5, P), 3))
    assert found.shape == (4000, 3, 3)
    assert (found.sum(axis=2) == 5).all()
    assert abs(np.corrcoef(found[:, 0, 0], found[:, 1, 0])[0, 1]) < 5 / math.sqrt(4000)
    assert draws(pv.Array(pv.Dirichlet(WEIGHTS), (2, 2))).shape == (4000, 2, 2, 3)


def test_a_program_may_draw_them():
    """Each of three people is counted in a cell of their own, and four others in cells drawn at random."""

    def program(x):
        counts = pv.sample(pv.Multinomial(4, P))
        return counts[0] + x

    assert program(3) in range(3, 8)
    found = exactly("x", {"x": pv.DiscreteUniform(0, 2)}, program).prediction.distribution()
    for value, probability in found.items():
        truth = np.mean([stats.binom(4, 0.2).pmf(value - x) for x in range(3)])
        assert probability.value == pytest.approx(truth, abs=1e-12)


def test_each_row_has_its_own():
    rows = pv.Records(2, lambda i: pv.Row(c=pv.Multinomial(2, [0.5, 0.5])))
    found = exactly(lambda rows: rows[0].c[0], {"rows": rows}, lambda rows: rows[0].c[0] == rows[1].c[0])
    assert found.prediction.probability(lambda same: same).value == pytest.approx(2 / 16 + 4 / 16)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: pv.Multinomial(-1, P), "Multinomial: n must be a whole number from 0"),
        (lambda: pv.Multinomial(1.5, P), "Multinomial: n must be a whole number"),
        (lambda: pv.Multinomial([1, 2], P), "Multinomial: n must be one number"),
        (lambda: pv.Multinomial(3, [0.2, 0.3]), "Multinomial: the probabilities must sum to one, but are off by 0.5"),
        (lambda: pv.Multinomial(3, [1.2, -0.2]), "Multinomial: p must hold probabilities, none negative"),
        (lambda: pv.Multinomial(3, 0.5), "Multinomial: p must be a list of probabilities, not 0.5"),
        (lambda: pv.Multinomial(3, [1.0]), "Multinomial: p must be a list of at least two"),
        (lambda: pv.Dirichlet([1.0, 0.0]), "Dirichlet: weights must be a positive number, not 0"),
        (lambda: pv.Dirichlet([1.0, math.nan]), "Dirichlet: weights"),
        (lambda: pv.Dirichlet(3.0), "Dirichlet: weights must be a list of at least two"),
        (lambda: pv.Dirichlet("ab"), "Dirichlet: weights"),
    ],
)
def test_bad_parameters(make, words):
    with pytest.raises(pv.PriorError, match=words):
        make()


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["pymc", "numpyro", "rare", "sample"])
def test_engines_agree_on_unknown_shares(engine):
    """Shares given noisy ones of them: the first share by quadrature over it and the second."""
    grid = (np.arange(400) + 0.5) / 400
    a, b = np.meshgrid(grid, grid, indexing="ij")
    inside = a + b < 1 - 1e-9
    with np.errstate(all="ignore"):
        logs = 0.5 * np.log(a) + np.log(b) + 3 * np.log(1 - a - b) + stats.norm(a - b, 0.1).logpdf(0.3)
    weights = np.where(inside, np.exp(logs), 0.0)
    truth = float((a * weights).sum() / weights.sum())
    attack = pv.Attack(lambda s: s[0] - s[1], {"s": pv.Dirichlet(WEIGHTS)}, lambda s: s[0])
    result = attack.run(pv.noisy(0.3, sd=0.1), engine=engine, samples=2000, seed=2)
    assert truth in result.posterior.mean().widened(2)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["pymc", "numpyro", "rare", "sample"])
def test_engines_agree_on_counts(engine):
    """The noise is an input for the engine that needs a continuous one, and part of what is seen for the others."""
    prior, observation = {"c": pv.Multinomial(6, P)}, pv.noisy(1.3, sd=1)
    attack = pv.Attack(lambda c: c[0] - c[1], prior, lambda c: c[0])
    if engine == "numpyro":
        prior, observation = {**prior, "noise": pv.Normal(0, sd=1)}, pv.equals(1.3)
        attack = pv.Attack(lambda c, noise: c[0] - c[1] + noise, prior, lambda c: c[0])
    plain = {cell: stats.multinomial(6, P).pmf(cell) * stats.norm(cell[0] - cell[1]).pdf(1.3) for cell in cells(6)}
    truth = sum(cell[0] * weight for cell, weight in plain.items()) / sum(plain.values())
    assert truth in attack.run(observation, engine=engine, samples=2000, seed=2).posterior.mean().widened(2)
    if engine != "numpyro":
        assert attack.run(observation, engine="exact").posterior.mean().value == pytest.approx(truth, rel=1e-9)
