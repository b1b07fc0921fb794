"""Discrete inputs that can be listed: summed out, drawn directly, and refused where the answer lies in a far tail."""

import math

import numpy as np
import pytest
from scipy import stats

import privug as pv
from privug.errors import ImpossibleObservation, UnsuitableEngine
from privug.inference.chains.sizes import directly, joint_states, possible, prepare, summed_out
from privug.model.variable import as_node


def problem_of(program, observation, secret="x", **prior):
    return prepare(pv.Attack(program, prior, secret).question, observation, 1, 0)


@pytest.mark.parametrize(
    ("variable", "values"),
    [
        (pv.Bernoulli(0.3), [0, 1]),
        (pv.DiscreteUniform(-2, 2), [-2, -1, 0, 1, 2]),
        (pv.Binomial(3, 0.5), [0, 1, 2, 3]),
        (pv.Choice([2.5, 1.5]), [1.5, 2.5]),
        (pv.Mixture([pv.DiscreteUniform(1, 2), pv.DiscreteUniform(5, 6)]), [1, 2, 5, 6]),
        (pv.Bernoulli(pv.Uniform(0, 1)), [0, 1]),
    ],
)
def test_values_are_listed(variable, values):
    assert possible(as_node(variable)).tolist() == values


@pytest.mark.parametrize(
    "variable", [pv.Normal(0, sd=1), pv.Poisson(pv.Gamma(2, scale=1)), pv.DiscreteUniform(0, 10**6)]
)
def test_what_cannot_be_listed_is_not(variable):
    assert possible(as_node(variable)) is None


@pytest.mark.parametrize(
    ("variable", "lost"), [(pv.Poisson(3), stats.poisson(3)), (pv.DiscreteLaplace(1.5), stats.dlaplace(1 / 1.5))]
)
def test_far_tails_that_are_left_out_have_no_weight(variable, lost):
    values = possible(as_node(variable))
    assert lost.pmf(values).sum() == pytest.approx(1.0, abs=1e-12)


def test_joint_states_are_all_combinations():
    x, pair = as_node(pv.DiscreteUniform(1, 3)), as_node(pv.Array(pv.Bernoulli(0.5), 2))
    states = joint_states({x: possible(x), pair: possible(pair)}, 100)
    rows = {(int(a), *map(int, b)) for a, b in zip(states[x], states[pair], strict=True)}
    assert rows == {(a, b, c) for a in (1, 2, 3) for b in (0, 1) for c in (0, 1)}
    assert len(states[x]) == 12
    assert joint_states({x: possible(x), pair: possible(pair)}, 11) is None


HUNDRED = {"x": pv.DiscreteUniform(0, 100), "y": pv.DiscreteUniform(0, 100)}


@pytest.mark.parametrize("engine", ["pymc", "numpyro"])
def test_an_exact_sum_of_whole_numbers_is_drawn_directly(engine):
    pytest.importorskip(engine)
    attack = pv.Attack(lambda x, y: x + y, HUNDRED, "x")
    result = attack.run(pv.equals(100), engine=engine, samples=4000, seed=1)
    assert result.engine == engine
    assert 50 in result.posterior.mean().widened(2)
    assert math.sqrt((101**2 - 1) / 12) in result.posterior.std().widened(2)
    assert float(result.diagnostics.evidence) == pytest.approx(101 / 101**2, rel=1e-9)


def test_labels_in_an_array_have_their_own_shares():
    labels = pv.Array(pv.Choice(["a", "b", "c"], p=[0.5, 0.3, 0.2]), 4)
    attack = pv.Attack(lambda xs: sum(x == "a" for x in xs), {"xs": labels}, lambda xs: xs[0])
    problem = prepare(attack.question, pv.equals(1), 1, 0)
    chains = directly(problem, 4, 5000)
    assert float(chains.evidence) == pytest.approx(stats.binom.pmf(1, 4, 0.5), rel=1e-9)
    secret = np.array(problem.evaluate(chains.flat())[0].values())
    for value, share in {"a": 0.25, "b": 0.75 * 0.6, "c": 0.75 * 0.4}.items():
        assert abs(np.mean(secret == value) - share) < 4 * math.sqrt(0.25 / 20_000)


def test_a_program_that_fails_on_some_states_is_left_out():
    prior = {"x": pv.DiscreteUniform(-3, 3), "y": pv.DiscreteUniform(0, 1)}
    attack = pv.Attack(lambda x, y: math.sqrt(x) + y, prior, "x", on_error="exclude")
    problem = prepare(attack.question, pv.noisy(1, sd=1), 1, 0)
    secret = problem.evaluate(directly(problem, 4, 2000).flat())[0].numbers()
    weights = {x: sum(stats.norm(math.sqrt(x) + y, 1).pdf(1) for y in (0, 1)) for x in range(4)}
    expected = sum(x * w for x, w in weights.items()) / sum(weights.values())
    assert abs(secret.mean() - expected) < 4 * secret.std() / math.sqrt(8000)


def test_no_state_agrees():
    problem = problem_of(lambda x, y: x + y, pv.equals(300), **HUNDRED)
    with pytest.raises(ImpossibleObservation, match="no joint state"):
        directly(problem, 4, 100)


def test_two_labels_that_are_the_same_are_no_known_value():
    labels = {"x": pv.Choice([1, 2]), "y": pv.Choice([2, 3])}
    problem = problem_of(lambda x, y: x == y, pv.such_that(lambda same: same), **labels)
    assert float(directly(problem, 4, 100).evidence) == pytest.approx(0.25, rel=1e-9)


def test_continuous_inputs_and_too_many_states_are_left_to_chains():
    assert directly(problem_of(lambda x: x, None, x=pv.Normal(0, sd=1)), 4, 100) is None
    coins = pv.Array(pv.Bernoulli(0.5), 40)
    assert directly(problem_of(lambda x: sum(x), pv.equals(3), x=coins), 4, 100) is None


def test_answers_in_the_far_tail_are_refused():
    problem = problem_of(lambda x: x, pv.between(60, math.inf), x=pv.Poisson(3))
    with pytest.raises(UnsuitableEngine, match="far tails"):
        directly(problem, 4, 100)
    problem = problem_of(lambda x: x, pv.noisy(90, sd=1), x=pv.Poisson(3))
    with pytest.raises(UnsuitableEngine, match="next to no probability"):
        directly(problem, 4, 100)
    exact = pv.Attack(lambda x: x, {"x": pv.Binomial(10, 0.001)}, "x").question
    assert directly(prepare(exact, pv.equals(10), 1, 0), 4, 100) is not None


def test_an_array_seen_through_its_sum_is_summed_out():
    rate = pv.Beta(2, 2)
    prior = {"ill": pv.Array(pv.Bernoulli(rate), 10), "rate": rate}
    problem = summed_out(problem_of(lambda ill, rate: sum(ill), pv.equals(8), "rate", **prior))
    assert problem.names == ("rate",)
    assert len(problem.strata) == math.comb(10, 8)
    at = np.array([0.2, 0.5, 0.9])
    np.testing.assert_allclose(problem.logs({problem.roots[0]: at}), stats.binom.logpmf(8, 10, at), rtol=1e-9)
    sized = problem.sized({problem.roots[0]: at})
    assert [int(output) for output in problem.evaluate(sized)[1].numbers()] == [8, 8, 8]


def test_a_count_seen_itself_is_known():
    rate = pv.Gamma(2, scale=1)
    problem = summed_out(problem_of(lambda n, rate: n, pv.equals(6), "rate", n=pv.Poisson(rate), rate=rate))
    assert problem.names == ("rate",)
    at = np.array([0.5, 4.0])
    np.testing.assert_allclose(problem.logs({problem.roots[0]: at}), stats.poisson.logpmf(6, at), rtol=1e-9)
