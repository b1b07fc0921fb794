"""Which engine serves: exact where it can and costs no more, else sampling; obstacles are named."""

import numpy as np
import pytest

import privug as pv
from privug.inference import engines
from privug.inference.exact import engine as exact_engine
from privug.inference.exact.request import Offer, Request


def pair(n):
    return {"x": pv.DiscreteUniform(0, n), "y": pv.DiscreteUniform(0, n)}


def walk(n):
    """A program whose states are many and whose output is no sum of independent terms."""
    return pv.Attack(lambda c: np.sin(np.cumsum(c)).sum(), {"c": pv.Array(pv.Bernoulli(0.5), n)}, secret=lambda c: c[0])


def test_auto_takes_exact_where_it_is_cheap():
    assert pv.Attack(lambda x, y: x * y, pair(10), "x").run(samples=10).engine == "exact (finite)"
    assert pv.Attack(lambda x: 2 * x, {"x": pv.Normal(0, sd=1)}, "x").run(samples=10).engine == "exact (gaussian)"


def test_auto_samples_where_exact_costs_more():
    assert walk(10).run(samples=1000).engine == "exact (finite)"
    with pv.limited(exact_seconds=0):
        assert walk(22).run(samples=1000).engine == "sample"
    assert walk(40).run(samples=1000).engine == "sample"


def test_auto_counts_the_draws_that_an_observation_costs():
    attack = pv.Attack(lambda x, y: x ^ y, pair(1023), "x")
    with pv.limited(exact_seconds=0):
        assert attack.run(samples=10_000).engine == "sample"
    assert attack.run(samples=10_000, observe=pv.equals(5)).engine == "exact (finite)"


def test_the_more_samples_are_asked_for_the_more_states_may_be_enumerated():
    prepared = exact_engine.prepare(Request(walk(16).question))
    assert isinstance(prepared, Offer)
    assert prepared.cost > engines.COST_OF_SAMPLING
    with pv.limited(exact_seconds=0):
        assert walk(16).run(samples=100).engine == "sample"
        assert walk(16).run(samples=200_000).engine == "exact (elimination)"


def test_an_exact_answer_is_worth_some_seconds():
    with pv.limited(exact_seconds=1):
        assert walk(16).run(samples=100).engine.startswith("exact")
    with pytest.raises(pv.ArgumentError, match="exact_seconds must be a number of seconds"):
        pv.configure(exact_seconds=-1)


def test_the_choice_needs_no_clock():
    costs = {exact_engine.prepare(Request(walk(14).question)).cost for _ in range(3)}
    assert len(costs) == 1


@pytest.mark.parametrize(
    ("program", "prior", "message"),
    [
        (
            lambda x, y: x if x > y else -y,
            {"x": pv.Normal(0, sd=1), "y": pv.Normal(0, sd=1)},
            r"no weighted sum of them at line \d+;",
        ),
        (
            lambda x, y: np.exp(x) * y,
            {"x": pv.Normal(0, sd=1), "y": pv.Normal(0, sd=1)},
            r"no weighted sum of them at line \d+;",
        ),
        (lambda x, y: hash(x) + y, {"x": pv.Normal(0, sd=1), "y": 1}, "called sample by sample"),
        (lambda x, y: hash(x) + y, pair(10**6), "called sample by sample and its inputs have"),
        (lambda x, y: f"{x}{y}", pair(10**6), "text formatting on more values than can be listed at line"),
    ],
)
def test_obstacles_are_named(program, prior, message):
    attack = pv.Attack(program, prior, "x")
    with pytest.raises(pv.UnsuitableEngine, match=message) as caught:
        attack.run(engine="exact")
    assert "engine='sample' can" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert attack.run(samples=200).engine == "sample"


def test_a_joint_that_cannot_be_had_exactly():
    """The posterior of x is exact; the joint of x with two outputs has no cells, so auto draws it."""
    prior = {"x": pv.Normal(0, sd=1), "y": pv.Normal(0, sd=1)}
    attack = pv.Attack(lambda x, y: (x + y, x - 2 * y), prior, "x")
    observe = [pv.equals(1.0), None]
    with pytest.raises(pv.UnsuitableEngine, match="joint"):
        _ = attack.run(observe=observe, engine="exact").joint
    result = attack.run(observe=observe, samples=500)
    assert result.posterior.exact
    assert float(result.posterior.mean()) == pytest.approx(0.5, abs=1e-12)
    assert result.prior.exact
    assert not result.joint.exact


def test_seeds_and_budgets_change_nothing_that_is_exact():
    attack = pv.Attack(lambda x, y: x + y, pair(10), "x")
    first, second = (attack.run(observe=pv.equals(3), engine="exact", seed=s, budget=1) for s in (1, 2))
    assert np.array_equal(first.posterior.weights, second.posterior.weights)


def test_unknown_engines():
    with pytest.raises(pv.ArgumentError, match="'auto', 'exact', 'sample'"):
        pv.Attack(lambda x, y: x, pair(2), "x").run(engine="magic")
