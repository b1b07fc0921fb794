"""Policies of several parts over outputs that cannot be listed: against closed forms and dense grids."""

import math

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm

import privug as pv

P = pv.policy
ONE, ZERO = P.belief(lambda x: x == 1, at_most=0.7), P.belief(lambda x: x == 0, at_most=0.7)


def bit_with(noise):
    return pv.Attack(lambda x: x + pv.sample(noise), prior={"x": pv.Bernoulli(0.5)}, secret="x")


@pytest.mark.parametrize("noise", [pv.Laplace(0, 0.5), pv.Normal(0, sd=1), pv.DiscreteLaplace(0.5)])
def test_either_part_may_be_broken_after_an_output_if_the_other_holds(noise):
    attack = bit_with(noise)
    assert P.check(attack, ONE).violated
    assert P.check(attack, ZERO).violated
    verdict = P.check(attack, ONE | ZERO)  # no output makes the attacker sure of both
    assert verdict.holds
    assert "one of the limits is satisfied" in verdict.reason


def test_outputs_that_break_both_parts_break_either():
    # The odds of one are e^(y - 1/2) after the output y: above 7 to 3 from ln(7/3) + 1/2 on.
    verdict = P.check(bit_with(pv.Normal(0, sd=1)), ONE | P.belief(lambda x: x == 0, at_least=0.4))
    assert verdict.violated
    (evidence,) = verdict.evidence
    assert evidence.output > 0.5 + math.log(7 / 3)
    assert evidence.level.value == pytest.approx(1 / (1 + math.exp(evidence.output - 0.5)), rel=1e-9)


def test_the_outputs_shown_break_all_of_a_policy_not_only_its_worst_part():
    # After 0 the attacker is sure of x == 0 and after 4 of x == 2; only 4 breaks both parts.
    prior = {"x": pv.DiscreteUniform(0, 2), "y": pv.DiscreteUniform(0, 2)}
    attack = pv.Attack(lambda x, y: x + y, prior=prior, secret="x")
    verdict = P.check(attack, P.max_belief(at_most=0.6) | P.belief(lambda x: x == 2, at_most=0.9))
    assert verdict.violated
    assert [one.output for one in verdict.evidence] == [4]


def test_outputs_that_break_several_parts_are_left_out_once():
    place = math.log(7 / 3) + 0.5
    of_one = 0.5 * norm.sf(place) + 0.5 * norm.sf(place - 1)
    of_both = 2 * of_one  # one above, one below, by symmetry
    attack = bit_with(pv.Normal(0, sd=1))
    assert P.check(attack, ONE & ZERO, except_probability=of_both * 1.0001).holds
    assert P.check(attack, ONE & ZERO, except_probability=of_both * 0.9999).violated
    assert P.check(attack, ONE & ONE.named("again"), except_probability=of_one * 1.0001).holds


@pytest.mark.slow
def test_outputs_that_break_it_for_several_people_are_left_out_once():
    prior = {"x": pv.Bernoulli(0.5), "y": pv.Bernoulli(0.5)}
    attack = pv.Attack(lambda x, y: x + 2 * y + pv.sample(pv.Normal(0, sd=2)), prior=prior, secret="x")
    policy = P.belief(lambda bit: bit == 1, at_most=0.7, for_each=lambda x, y: [x, y])
    grid = np.linspace(-20, 25, 450_001)
    weights = np.array([norm.pdf(grid, x + 2 * y, 2) / 4 for x in (0, 1) for y in (0, 1)])
    one, two = weights[2:].sum(axis=0) / weights.sum(axis=0), weights[1::2].sum(axis=0) / weights.sum(axis=0)
    mass = np.trapezoid(np.where(np.maximum(one, two) > 0.7, weights.sum(axis=0), 0.0), grid)
    assert P.check(attack, policy, except_probability=mass + 1e-4).holds
    assert P.check(attack, policy, except_probability=mass - 1e-4).violated


@pytest.mark.slow
def test_what_is_not_known_of_a_part_leaves_either_undecided():
    # Normal secrets have no bounds on stretches of outputs: each part is broken somewhere, maybe not by one output.
    attack = pv.Attack(lambda x: x + pv.sample(pv.Normal(0, sd=1)), prior={"x": pv.Normal(0, sd=1)}, secret="x")
    high, low = P.belief(lambda x: x > 0, at_most=0.9), P.belief(lambda x: x < 0, at_most=0.9)
    assert P.check(attack, high & low).violated
    assert P.check(attack, high | low).undecided


@pytest.mark.parametrize("noise", [pv.Laplace(0, 1.0), pv.DiscreteLaplace(1.0)])
def test_far_tails_keep_the_ratio_of_densities(noise):
    # Beyond 745 scales densities are zero in floats; their ratio is e all the way to the place far out, and beyond it.
    prior = {"x": pv.Choice([0, 1, 2000], p=[0.5, 0.49, 0.01])}
    attack = pv.Attack(lambda x: x + pv.sample(noise), prior=prior, secret="x")
    worst = 0.49 * math.e / (0.49 * math.e + 0.5)
    assert P.check(attack, P.belief(lambda x: x == 1, at_most=worst + 1e-6)).holds
    assert P.check(attack, P.belief(lambda x: x == 1, at_most=worst - 1e-6)).violated


def test_places_that_differ_by_rounding_are_one():
    # 0.1 + 0.2 and 0.3 are one place: the edge of a uniform density does not tell them apart.
    def released(x):
        return pv.where(x == 0, 0.1 + 0.2, 0.3) + pv.sample(pv.Uniform(0, 1))

    attack = pv.Attack(released, prior={"x": pv.Bernoulli(0.5)}, secret="x")
    assert P.check(attack, P.max_belief(at_most=0.5)).holds


def test_no_output_lies_between_densities_that_do_not_meet():
    attack = pv.Attack(lambda x: 5 * x + pv.sample(pv.Uniform(0, 1)), prior={"x": pv.Bernoulli(0.5)}, secret="x")
    assert P.check(attack, P.belief(lambda x: x < 2, at_least=0.9)).holds
    assert P.check(attack, P.belief(lambda x: x == 1, at_least=0.1)).violated


NOISES = {
    "Laplace": (lambda s: pv.Laplace(0, s), lambda d, s: -np.abs(d) / s, ()),
    "Normal": (lambda s: pv.Normal(0, sd=s), lambda d, s: -0.5 * (d / s) ** 2, ()),
    "Uniform": (lambda s: pv.Uniform(-s, s), lambda d, s: np.where(np.abs(d) <= s, 0.0, -np.inf), (-1, 1)),
    "Exponential": (lambda s: pv.Exponential(scale=s), lambda d, s: np.where(d >= 0, -d / s, -np.inf), (0,)),
}


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 12))])
@pytest.mark.parametrize("family", NOISES)
def test_random_policies_against_a_grid(family, seed):
    rng = np.random.default_rng([seed, len(family)])
    made, log_density, edges = NOISES[family]
    scale = float(10.0 ** rng.uniform(-4, 4))
    step, p = scale * rng.uniform(0.1, 3), rng.dirichlet(np.ones(3))
    attack = pv.Attack(
        lambda x: step * x + pv.sample(made(scale)), prior={"x": pv.Choice([0, 1, 2], p=p.tolist())}, secret="x"
    )
    first, second, third = rng.uniform(0.3, 0.95, 3).tolist()
    policy = (P.belief(lambda x: x == 0, at_most=first) | P.belief(lambda x: x == 1, at_most=second)) & P.belief(
        lambda x: x == 2, at_most=third
    )
    places = step * np.arange(3)
    grid = np.linspace(-30 * scale, 30 * scale + places[-1], 60_001)
    at_edges = np.min([np.abs(grid - place - edge * scale) for place in places for edge in edges] or [grid * 0 + 1], 0)
    logs = np.log(p) + log_density(grid[:, np.newaxis] - places, scale)
    kept = np.isfinite(logs).any(axis=1) & (at_edges > 1e-9 * scale)
    posterior = np.exp(logs[kept] - logsumexp(logs[kept], axis=1, keepdims=True))
    excess = np.maximum(np.minimum(posterior[:, 0] - first, posterior[:, 1] - second), posterior[:, 2] - third)
    verdict = P.check(attack, policy)
    assert verdict.status == ("violated" if excess.max() > 0 else "holds")
