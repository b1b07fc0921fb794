"""Draws from a mixture measure what populations found, however these shared themselves out over the modes."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import privug as pv
from privug.inference.rare import engine
from privug.inference.rare.importance import (
    FEWEST_EFFECTIVE,
    Draws,
    Measurement,
    Mixture,
    Ray,
    Student,
    _pooled,
    evidence,
    log_mean,
)
from privug.inference.rare.model import LatentLayout, LatentModel, Particles, Scattering, Steps
from rare_problems import PROBLEMS

RNG = np.random.default_rng(5)
CLOUD = RNG.normal([1.0, -0.5, 0.0], [0.3, 1.0, 0.7], (500, 3)) @ np.array([[1, 0.4, 0], [0, 1, 0.2], [0, 0, 1.0]])
LEVELS = np.array([0.0, 0.7, 0.701, 1.0])
PARTS = {
    "student": Student.of(CLOUD),
    "ray": Ray.of(CLOUD),
    "prior": Ray.nowhere(3),
    "scattering": Scattering([Steps(discrete=True, levels=LEVELS), Steps(discrete=True), Steps(discrete=False)]),
}
MIXTURE = Mixture.near([CLOUD, CLOUD + 2], [(PARTS["scattering"], 0.2), (PARTS["prior"], 0.1)])
PRIOR = Ray.nowhere(1)
EVENTS = {
    "everything": (lambda z: np.ones(len(z), bool), 1.0),
    "near the cloud": (lambda z: (z[:, 0] > 0.5) & (z[:, 1] < 0), stats.norm.sf(0.5) / 2),
    "a rare value": (
        lambda z: np.searchsorted(LEVELS[1:-1], stats.norm.cdf(z[:, 0])) == 1,
        LEVELS[2] - LEVELS[1],
    ),
}


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("part", ["student", "prior", "scattering", "mixture", "mixture with other shares"])
def test_weights_turn_draws_into_draws_from_the_prior(part, event):
    """The mean weight of draws in a set is its probability under the prior, from whatever they were drawn."""
    others = MIXTURE.reshared(CLOUD, np.full(len(CLOUD), 1 / len(CLOUD)), np.full(len(MIXTURE.parts), 0.02))
    drawn_from = {**PARTS, "mixture": MIXTURE, "mixture with other shares": others}[part]
    points = drawn_from.draw(40_000, 3, np.random.default_rng(1))
    holds, truth = EVENTS[event]
    if part == "student" and event == "everything":
        holds, truth = (lambda z: (np.abs(z) < 1).all(axis=1)), (1 - 2 * stats.norm.sf(1)) ** 3
    weights = np.exp(-drawn_from.log_ratio(points)) * holds(points)
    assert abs(weights.mean() - truth) <= 4 * weights.std() / math.sqrt(len(weights)) + 1e-12


def test_shares_follow_from_weighted_points():
    """Points of one place only, in a mixture of two places: that place gets what is not held back."""
    places = [RNG.normal(-5, 1, (400, 1)), RNG.normal(5, 1, (400, 1))]
    mixture = Mixture.near(places, [(Ray.nowhere(1), 0.1)])
    least = np.full(len(mixture.parts), 0.01)
    shares = mixture.reshared(places[1], np.full(400, 1 / 400), least).shares
    assert math.isclose(shares.sum(), 1.0)
    assert np.all(shares >= least)
    assert shares[2] + shares[3] > 0.95


def model_of(problem):
    attack = pv.Attack(problem.program, prior=problem.prior, secret=problem.secret)
    return LatentModel(attack.question, problem.observation, None, 1000)


def found_in(problem, points):
    measurement = Measurement(model_of(problem), points, seed=1, attempt=0, searched=60_000)
    draws = measurement.run(1000, 100_000)
    assert draws is not None
    return evidence(*log_mean(draws.log_weights), "", "")


@pytest.mark.parametrize("share", [0.02, 0.2, 0.5, 0.98])
def test_modes_count_as_they_should_however_many_particles_found_them(share):
    """Two modes of 1.9e-8 and 1e-7, of which populations may have found either late."""
    count = round(1000 * share)
    right, left = stats.norm.isf(stats.norm.sf(5.5) * RNG.random(count)), RNG.random(1000 - count)
    points = np.concatenate([right, -stats.norm.isf(stats.norm.sf(5.2) * left)])[:, np.newaxis]
    problem = PROBLEMS["two modes"]
    assert problem.truth in found_in(problem, points).widened(1.5)


def test_a_rare_value_that_no_population_found_is_found_by_scattered_draws():
    """All particles without the flag, which makes up nearly all of the probability."""
    problem = PROBLEMS["a rare flag"]
    far = stats.norm.isf(stats.norm.sf(5) * RNG.random(1000))
    points = np.stack([far, RNG.normal(size=1000)], axis=1)
    model = model_of(problem)
    columns = {latent.root.kind.name: place for place, latent in enumerate(model.typical.latents)}
    points = points if columns["CONTINUOUS"] == 0 else points[:, ::-1]
    assert problem.truth in found_in(problem, points).widened(1.5)


EVEN = np.zeros(2000)
HEAVY = -0.9 * np.log(RNG.random(2000))  # P(weight > w) = w^(-1 / 0.9): a few of them decide


@pytest.mark.parametrize(
    ("elsewhere", "share", "trusted"),
    [(EVEN, 0.2, True), (HEAVY, 0.2, False), (EVEN[:60], 0.2, False), (HEAVY, 0.01, True), (EVEN[:60], 0.01, True)],
    ids=["even", "heavy", "few", "heavy but light", "few but light"],
)
def test_many_even_weights_at_one_place_do_not_hide_few_at_another(elsewhere, share, trusted):
    """One place of 5,000 draws of equal weight; another that has a share of the weight, on draws of its own."""
    here = np.zeros(5000)
    there = elsewhere - math.log(np.exp(elsewhere).sum()) + math.log(5000 * share / (1 - share))
    places = np.concatenate([np.full(len(here), -1), np.full(len(there), 3)])
    logs = np.concatenate([here, there])
    none = np.zeros(len(logs))
    draws = Draws(Particles(none[:, np.newaxis], none, none, [], none, none), logs, places)
    assert draws.worth > FEWEST_EFFECTIVE
    assert draws.is_trusted(np.array([], int)) == trusted
    # Populations have been there: it must be clear that it hardly counts. And they have been where no draw was.
    assert draws.is_trusted(np.array([3])) == (trusted and elsewhere is not HEAVY)
    assert not draws.is_trusted(np.array([3, 7]))


def test_points_are_at_the_place_that_they_are_likeliest_from():
    places = [RNG.normal(-5, 1, (400, 2)), RNG.normal(5, 1, (400, 2))]
    mixture = Mixture.near(places, [(Ray.nowhere(2), 0.1)])
    found = mixture.place_of(np.array([[-5.0, -5.0], [5.0, 5.0], [0.0, 0.0]]))
    assert found.tolist() == [0, 1, -1]
    assert mixture.reshared(places[0], np.full(400, 1 / 400), np.full(5, 0.01)).places.tolist() == [0, 0, 1, 1, -1]


def test_copies_of_a_point_are_no_needle():
    """A mode that one draw has met: the next draws must not all be that one."""
    assert Ray.of(np.repeat([[3.0, 4.0]], 50, axis=0)).spread == 1 / 5
    assert Ray.of(np.repeat([[0.3, 0.4]], 50, axis=0)).spread == 1
    sharp = RNG.normal(4, 0.001, (50, 1))
    assert Ray.of(sharp).spread < 0.01


def test_pooled_draws_are_weighted_by_all_that_they_may_come_from():
    """A mode that the first mixture hardly meets, and the second one well: no draw of the first drowns the others."""
    rng = np.random.default_rng(3)
    rounds = []
    for mixture in (Mixture.nowhere(Ray.nowhere(1)), Mixture.near([rng.normal(3.3, 0.3, (200, 1))], [(PRIOR, 0.1)])):
        points = mixture.draw(4000, 1, rng)
        logs = np.where(points[:, 0] > 3, 0.0, -np.inf) - mixture.log_ratio(points)
        none = np.zeros(len(points))
        rounds.append((mixture, Draws(Particles(points, none, none, [], none, none), logs, none.astype(int))))
    pooled, second = _pooled(rounds), rounds[1][1]
    assert stats.norm.sf(3) in evidence(*log_mean(pooled.log_weights), "", "").widened(1.5)
    assert pooled.worth >= second.worth
    assert Draws.concatenate([drawn for _, drawn in rounds]).worth < second.worth / 4


def test_points_of_one_stratum_agree_in_all_that_is_discrete():
    prior = {
        "a": pv.Normal(0, sd=1),
        "b": pv.Bernoulli(0.3),
        "c": pv.Choice(["x", "y", "z"], p=[0.2, 0.5, 0.3]),
        "d": pv.Mixture([pv.Normal(0, sd=1), pv.Normal(9, sd=1)], [0.6, 0.4]),
    }
    attack = pv.Attack(lambda a, b, c, d: a + b + (c == "x") + d, prior=prior, secret="a")
    case = LatentModel(attack.question, pv.between(3, math.inf), None, 1000).typical
    layout = LatentLayout()
    points = np.random.default_rng(2).standard_normal((500, case.width))
    strata = case.strata(points, layout)
    assert len(np.unique(strata)) == 2 * 3 * 2
    shares = np.sort(np.bincount(strata) / 500)[::-1]
    expected = np.sort(np.multiply.outer(np.multiply.outer([0.7, 0.3], [0.2, 0.5, 0.3]), [0.6, 0.4]).ravel())[::-1]
    assert np.abs(shares - expected).max() < 4 * math.sqrt(0.25 / 500)


def test_draws_that_say_less_than_the_populations_are_not_used(monkeypatch):
    """A mixture that leaves out a mode which populations have found; they tell the answer then."""
    measure = Measurement.run

    def half_blind(self, samples, budget):
        draws = measure(self, samples, budget)
        return None if draws is None else replace(draws, log_weights=draws.log_weights - 3.0)

    monkeypatch.setattr(Measurement, "run", half_blind)
    monkeypatch.setattr(engine, "SCOUTS", 500)
    monkeypatch.setattr(engine, "SMALLEST_POPULATION", 1000)
    problem = PROBLEMS["two modes"]
    result = problem.run(1)
    assert result.posterior.groups == engine.POPULATIONS
    assert problem.truth in result.diagnostics.evidence.widened(1.5)


@pytest.mark.slow
def test_a_light_mode_that_only_scattered_draws_meet_counts():
    def both_far(x, y):
        hit = 0
        if abs(x) > 3.5 and abs(y) > 3:
            hit = 1
        return hit

    normal = stats.norm
    below, above = normal.cdf(-4.0), normal.sf(3.0)  # of x, whose mean is 0.5
    attack = pv.Attack(both_far, prior={"x": pv.Normal(0.5, sd=1), "y": pv.Normal(-0.3, sd=1)}, secret="x")
    result = attack.run(observe=pv.equals(1), engine="rare", samples=1000, seed=22)
    assert below / (below + above) in result.posterior.probability(lambda x: x < 0)
    assert (below + above) * (normal.cdf(-2.7) + normal.sf(3.3)) in result.diagnostics.evidence
