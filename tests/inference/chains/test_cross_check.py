"""Chains that agree with each other on a part of the posterior are caught by weighted draws from the prior."""

import numpy as np
import pytest
from scipy import stats

import privug as pv
from privug.errors import NotConverged
from privug.inference.chains.diagnosis import Chains, check_against_prior
from privug.inference.chains.sizes import prepare
from privug.model.plan import Plan

BRANCH = pv.Attack(lambda x, b: x if b else 2 * x, {"x": pv.Normal(1, sd=1), "b": pv.Bernoulli(0.5)}, secret="b")


def posterior_draws(keep=lambda x, b: np.ones(len(x), bool)):
    """Return the problem, and chains of draws that agree with the observation."""
    problem = prepare(BRANCH.question, pv.between(3, 4), 1, 0)
    rng = np.random.default_rng(5)
    b, x = rng.integers(0, 2, 400_000), rng.normal(1, 1, 400_000)
    output = np.where(b == 1, x, 2 * x)
    fits = (output >= 3) & (output <= 4) & keep(x, b)
    chosen = np.flatnonzero(fits)[:4000].reshape(4, 1000)
    by_name = {"x": x[chosen], "b": b[chosen]}
    return problem, Chains({root: by_name[name] for name, root in zip(problem.names, problem.roots, strict=True)})


def test_draws_of_the_posterior_pass():
    check_against_prior(*posterior_draws(), "numpyro")


def test_a_mode_that_all_chains_missed_is_caught():
    with pytest.raises(NotConverged, match=r"samples from the prior.*engine='sample'"):
        check_against_prior(*posterior_draws(lambda x, b: b == 0), "numpyro")


def test_draws_that_are_a_little_wrong_are_caught():
    with pytest.raises(NotConverged, match="they missed a part"):
        check_against_prior(*posterior_draws(lambda x, b: (x > 1.6) | (b == 1)), "numpyro")


def test_an_output_that_was_seen_exactly_varies_by_rounding_alone():
    attack = pv.Attack(lambda x, y: x / 3 + y, {"x": pv.Normal(0, sd=1), "y": pv.Normal(0, sd=1)}, "x")
    problem = prepare(attack.question, pv.equals(0.7), 1, 0)
    rng = np.random.default_rng(1)
    arrays = Plan(problem.roots).run(40_000, rng)
    values = dict(zip(problem.roots, arrays, strict=True))
    weights = np.exp(problem.logs(values))
    chosen = rng.choice(40_000, (4, 1000), p=weights / weights.sum())
    draws = {root: array[chosen] for root, array in values.items()}
    output = problem.evaluate(Chains(draws).flat())[1].numbers()
    assert 0 < np.ptp(output) < 1e-14
    check_against_prior(problem, Chains(draws), "pymc")
    with pytest.raises(NotConverged):
        check_against_prior(problem, Chains({root: array + 1 for root, array in draws.items()}), "pymc")


def test_observations_that_the_prior_hardly_reaches_are_not_judged():
    attack = pv.Attack(lambda x: x, {"x": pv.Normal(0, sd=1)}, "x")
    problem = prepare(attack.question, pv.noisy(9, sd=0.1), 1, 0)
    check_against_prior(problem, Chains({problem.roots[0]: np.full((4, 100), 3.0)}), "pymc")


# Modes that few draws from the prior know of. The truth is known by quadrature: both signs of s have a share.

SQUARE = pv.Attack(lambda s, e: s * s + e, {"s": pv.Normal(0.5, sd=2), "e": pv.Normal(0, sd=0.2)}, secret="s")


def draws_of_square(seen, share_below, seed=7):
    """Return the problem of a square seen through noise, and chains that are below zero with a given share."""
    problem = prepare(SQUARE.question, pv.noisy(seen, sd=0.1), 1, 0)
    rng = np.random.default_rng(seed)
    s = np.linspace(-9, 9, 20_001)
    density = stats.norm.pdf(s, 0.5, 2) * stats.norm.pdf(seen, s * s, np.hypot(0.1, 0.2))
    for side, share in ((s < 0, share_below), (s >= 0, 1 - share_below)):
        density[side] *= share / density[side].sum()
    chosen = rng.choice(s, (8, 1000), p=density)
    noise = 0.8 * (seen - chosen**2) + rng.normal(0, np.sqrt(0.2) * 0.2, chosen.shape)
    by_name = {"s": chosen, "e": noise}
    return problem, Chains({root: by_name[name] for name, root in zip(problem.names, problem.roots, strict=True)})


@pytest.mark.parametrize("seen", [4, 16, 36])
def test_chains_in_one_of_two_modes_are_caught_by_few_draws(seen):
    for share in (0.0, 1.0):
        problem, chains = draws_of_square(seen, share)
        with pytest.raises(NotConverged, match="they missed a part"):
            check_against_prior(problem, chains, "numpyro")


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("seen", [4, 16, 36])
def test_chains_in_both_modes_pass(seen, seed):
    ratio = np.exp(-0.5 * ((-np.sqrt(seen) - 0.5) ** 2 - (np.sqrt(seen) - 0.5) ** 2) / 4)
    problem, chains = draws_of_square(seen, ratio / (1 + ratio), seed)
    check_against_prior(problem, chains, "numpyro")


def test_heavy_tails_of_the_prior_are_no_missed_mode():
    attack = pv.Attack(lambda x, c: x, {"x": pv.Normal(0, sd=1), "c": pv.Cauchy(0, 1)}, lambda x, c: c)
    problem = prepare(attack.question, pv.noisy(3.0, sd=0.5), 1, 0)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        by_name = {"x": rng.normal(2.4, 0.2**0.5, (8, 1000)), "c": rng.standard_cauchy((8, 1000))}
        draws = {root: by_name[name] for name, root in zip(problem.names, problem.roots, strict=True)}
        check_against_prior(problem, Chains(draws), "numpyro")
