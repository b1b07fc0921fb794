"""Private choices: their probabilities against simulations and closed forms."""

import random

import numpy as np
import pytest

import privug as pv
from privug import mechanisms as m
from privug.mechanisms import winning
from privug.model.node import Context

SCORES = np.array([[0.0, 0.5, -1.0, 0.5], [3.0, -40.0, 2.5, 100.0], [0.0, 0.0, 0.0, 0.0], [1e6, 0.0, 1e6, -1e9]])
DRAWS = 100_000


def frequencies(noisy):
    return np.bincount(noisy, minlength=4) / DRAWS


@pytest.mark.parametrize("row", range(4))
@pytest.mark.parametrize("name", ["gumbel", "exponential", "laplace"])
def test_winners_against_simulation(name, row):
    rng = np.random.default_rng(row)
    noise = getattr(rng, name)(size=(DRAWS, 4)) if name != "laplace" else rng.laplace(size=(DRAWS, 4))
    found = getattr(winning, name)(SCORES[row : row + 1])[0]
    assert found.sum() == pytest.approx(1.0, abs=1e-12)
    wins = frequencies(np.argmax(SCORES[row] + noise, axis=1))
    assert np.all(np.abs(wins - found) < 4.5 * np.sqrt(found * (1 - found) / DRAWS) + 1e-9)


def test_two_laplace_scores_in_closed_form():
    # The difference of two Laplace variables exceeds d > 0 with probability (2 + d) exp(-d) / 4.
    for distance in (0.0, 0.3, 2.0, 30.0):
        found = winning.laplace(np.array([[distance, 0.0]]))[0, 1]
        assert found == pytest.approx((2 + distance) * np.exp(-distance) / 4, rel=1e-9)


@pytest.mark.parametrize("row", range(3))
def test_first_above_a_threshold_against_simulation(row):
    rng = np.random.default_rng(row)
    found = winning.first_above(SCORES[row : row + 1])[0]
    above = SCORES[row] + rng.laplace(scale=2, size=(DRAWS, 4)) >= rng.laplace(size=(DRAWS, 1))
    first = np.where(above.any(axis=1), above.argmax(axis=1), 4)
    seen = np.bincount(first, minlength=5) / DRAWS
    assert np.all(np.abs(seen - found) < 4.5 * np.sqrt(found * (1 - found) / DRAWS) + 1e-9)


def test_a_single_score_wins():
    for probabilities in (winning.gumbel, winning.exponential, winning.laplace):
        assert probabilities(np.array([[3.0]])) == pytest.approx(1.0)


def test_first_above_one_score_in_closed_form():
    # With scales 1 and 2: P(V - T >= -d) for d = 0 is one half.
    assert winning.first_above(np.zeros((1, 1)))[0] == pytest.approx([0.5, 0.5], abs=1e-12)


def test_many_scores_at_once_are_those_one_by_one(monkeypatch):
    scores = np.random.default_rng(1).normal(size=(50, 3)) * 10
    monkeypatch.setattr(winning, "BLOCK", 10_000)
    operation = winning.Weighed(winning.laplace, 2.0, 1.0)
    together = operation.evaluate([scores], Context(50, np.random.default_rng()))
    for row in range(50):
        alone = winning.weighed(list(scores[row]), winning.laplace, rate=2.0, shift=1.0)
        np.testing.assert_allclose(together[row], alone, atol=1e-13)
    assert winning.weighed(pv.Array(pv.Normal(0, sd=1), 3), winning.laplace, rate=1.0).shape == (3,)


def test_a_choice_in_a_continuous_model():
    mechanism = m.exponential(lambda x, candidate: -abs(x - candidate), [0, 5, 10], sensitivity=1, epsilon=2)
    attack = pv.Attack(mechanism, {"x": pv.Uniform(0, 10)}, "x", observe=pv.equals(10))
    result = attack.run(seed=1, samples=4000, engine="sample")
    x = np.linspace(0, 10, 200_001)
    odds = np.exp(-np.abs(x[:, None] - np.array([0, 5, 10])))
    weight = odds[:, 2] / odds.sum(axis=1)
    assert (x * weight).sum() / weight.sum() in result.posterior.mean().widened(2)


def test_score_that_cannot_be_traced():
    mechanism = m.exponential(lambda x, candidate: -abs(int(str(x)) - candidate), [0, 3], sensitivity=1, epsilon=2)
    attack = pv.Attack(mechanism, {"x": pv.DiscreteUniform(0, 3)}, "x", observe=pv.equals(3))
    odds = np.exp(-np.abs(np.arange(4)[:, None] - np.array([0, 3])))
    weight = odds[:, 1] / odds.sum(axis=1)
    result = attack.run()
    assert result.engine == "exact (finite)"
    assert result.posterior.distribution()[3].value == pytest.approx(weight[3] / weight.sum(), abs=1e-12)


def test_plain_calls():
    vote = m.exponential(lambda x, candidate: 1000 * (x == candidate), ["a", "b"], sensitivity=1, epsilon=2)
    assert vote("b") == "b"
    assert m.report_noisy_max(lambda x: {"a": 0, "b": x}, sensitivity=1, epsilon=9, candidates="ab")(1e3) == "b"
    assert m.sparse_vector(lambda x: x, threshold=10, sensitivity=1, epsilon=9)([-1e3, -1e3]) == 2


def test_bad_arguments():
    for call, words in (
        (lambda: m.exponential(lambda x: x, [1], sensitivity=1, epsilon=1), "last, of the candidate"),
        (lambda: m.exponential(lambda x, c: x, "ab", sensitivity=1, epsilon=1), "candidates must be a list"),
        (lambda: m.report_noisy_max(lambda x: x, sensitivity=1, epsilon=1, noise="pink"), "noise must be one of"),
        (lambda: m.sparse_vector(lambda x: x, threshold="5", sensitivity=1, epsilon=1), "threshold must be"),
    ):
        with pytest.raises(pv.ArgumentError, match=words):
            call()
    with pytest.raises(pv.ProgramError, match="a list of finite scores is needed"):
        m.report_noisy_max(lambda x: x, sensitivity=1, epsilon=1)(["a"])
    with pytest.raises(pv.ProgramError, match="2 candidates, but the program returned 1 scores"):
        m.report_noisy_max(lambda x: x, sensitivity=1, epsilon=1, candidates=["a", "b"])([1.0])


def test_score_with_randomness_of_its_own_is_sampled():
    def score(x, candidate):
        return random.random() * len(str(x + candidate))

    mechanism = m.exponential(score, [0, 3], sensitivity=1, epsilon=2)
    result = pv.Attack(mechanism, {"x": pv.DiscreteUniform(0, 3)}, "x").run(samples=200, seed=1)
    assert result.engine == "sample"
