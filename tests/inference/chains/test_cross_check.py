"""Chains that agree with each other on a part of the posterior are caught by weighted draws from the prior."""

import numpy as np
import pytest

import privug as pv
from privug.errors import NotConverged
from privug.inference.chains.cross_check import check_against_prior
from privug.inference.chains.finishing import Chains
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
