"""The NumPyro engine: what it answers, what it refuses, and what it leaves alone."""

import numpy as np
import pytest

import privug as pv
from privug.errors import NotConverged

jax = pytest.importorskip("jax")
pytest.importorskip("numpyro")

from privug.inference.chains import numpyro_engine  # noqa: E402
from privug.inference.chains.numpyro_engine import (  # noqa: E402
    JaxModel,
    _states,
)
from privug.inference.chains.problem import drawn  # noqa: E402
from privug.inference.chains.sizes import prepare  # noqa: E402
from privug.model.variable import as_node  # noqa: E402

CONTINUOUS = {
    "Normal": pv.Normal(2, sd=3),
    "Uniform": pv.Uniform(-1, 4),
    "LogNormal": pv.LogNormal(0.5, sd=0.4),
    "Exponential": pv.Exponential(scale=2.5),
    "Laplace": pv.Laplace(1, 2),
    "Cauchy": pv.Cauchy(1, 2),
    "TruncatedNormal": pv.TruncatedNormal(0, sd=1, low=1, high=3),
    "far TruncatedNormal": pv.TruncatedNormal(0, sd=1, low=20, high=21),
    "StudentT": pv.StudentT(4, 1, 2),
    "Gamma": pv.Gamma(3, scale=2),
    "Beta": pv.Beta(2, 5),
    "Mixture": pv.Mixture([pv.Normal(0, sd=1), pv.Uniform(3, 4)], [0.25, 0.75]),
}


def model_of(program, prior, secret, observation=None):
    return JaxModel(prepare(pv.Attack(program, prior, secret).question, observation, 0, 100))


QUICKLY_COMPILED = ("Normal", "Laplace", "far TruncatedNormal", "LogNormal")


@pytest.mark.parametrize(
    "name", [name if name in QUICKLY_COMPILED else pytest.param(name, marks=pytest.mark.slow) for name in CONTINUOUS]
)
def test_standard_normal_numbers_stand_for_the_distribution(name):
    """The density over z, times what z turns into, has the moments of the distribution: by quadrature over z."""
    with jax.enable_x64(True):
        model = model_of(lambda x: x, {"x": CONTINUOUS[name]}, "x")
        z = np.linspace(-12, 12, 4001)[:, None]
        logs = np.asarray(jax.jit(jax.vmap(model.log_densities))(z))
        values = np.stack(
            [np.asarray(jax.vmap(lambda one, s=s: model.values(one, s)[0])(z)) for s in range(model.state_count)],
            axis=1,
        )
    shares = np.exp(logs) * (z[1, 0] - z[0, 0])
    assert shares.sum() == pytest.approx(1.0, abs=1e-3 if name == "StudentT" else 1e-5)
    sampled = pv.Attack(lambda x: x, {"x": CONTINUOUS[name]}, "x").run(engine="sample", samples=20_000).prior
    for level in (0.1, 0.5, 0.9):
        cut = sampled.quantile(level)
        below = [float(shares[values <= end].sum()) for end in (cut.low, cut.high)]
        assert below[0] - 0.01 <= level <= below[1] + 0.01


def test_discrete_inputs_are_summed_out_and_drawn_afterwards():
    with jax.enable_x64(True):
        model = model_of(
            lambda x, b, c: x + 5 * b + c,
            {"x": pv.Normal(0, sd=1), "b": pv.Bernoulli(0.3), "c": pv.Choice([0, 1, 2])},
            "b",
            pv.noisy(3.0, sd=2.0),
        )
        assert model.state_count == 6
        shares = np.exp(np.asarray(model.log_densities(np.zeros(1))))
        states = _states(model, np.zeros((4, 2000, 1)), jax.random.key(0))
    shares /= shares.sum()
    coin, choice = (values for values in model.states.values())
    outputs = 5 * coin + choice if coin.max() == 1 else 5 * choice + coin
    expected = np.array([0.7, 0.7, 0.7, 0.3, 0.3, 0.3]) * np.exp(-0.5 * ((np.sort(outputs) - 3.0) / 2) ** 2)
    assert np.sort(shares) == pytest.approx(np.sort(expected / expected.sum()), abs=1e-9)
    seen = np.bincount(states, minlength=6) / 8000
    assert np.abs(seen - shares).max() < 4 * np.sqrt(0.25 / 8000)


COINS = {"xs": pv.Array(pv.Bernoulli(0.5), 12), "y": pv.Normal(0, sd=1)}
NORMALS = {"x": pv.Normal(0, sd=1), "y": pv.Normal(0, sd=1)}


@pytest.mark.parametrize(
    ("program", "prior", "observation", "words"),
    [
        (lambda xs, y: sum(xs) + y, COINS, pv.equals(3.0), "more than 1024"),
        (lambda xs: sum(xs), {"xs": pv.Array(pv.Bernoulli(0.5), 40)}, pv.equals(9), "no input is continuous"),
        (lambda x, y: (x > 0) + (y > 0), NORMALS, pv.equals(2), "jumps"),
    ],
)
def test_what_has_no_gradient_is_refused_with_advice(program, prior, observation, words):
    attack = pv.Attack(program, prior, next(iter(prior)))
    with pytest.raises(pv.UnsuitableEngine, match=words) as refusal:
        attack.run(observation, engine="numpyro", samples=500)
    assert "choose engine=" in str(refusal.value)


@pytest.mark.slow
def test_the_user_keeps_32_bits():
    attack = pv.Attack(lambda x, y: x + y, {"x": pv.Normal(0, sd=1), "y": pv.Laplace(0, 1)}, "x")
    attack.run(pv.equals(1.0), engine="numpyro", samples=1000)
    assert jax.numpy.ones(3).dtype == np.float32


@pytest.mark.slow
def test_the_same_seed_gives_the_same_samples():
    attack = pv.Attack(lambda x, y: x * y, {"x": pv.Uniform(1, 2), "y": pv.Normal(1, sd=0.5)}, "x")
    one, again, other = (
        attack.run(pv.noisy(2, sd=0.3), engine="numpyro", samples=1000, seed=seed).posterior.batch.numbers()
        for seed in (5, 5, 6)
    )
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)


@pytest.mark.slow
def test_two_hundred_variables_and_a_tight_window():
    """The question on which other samplers agree with each other on a wrong answer: the truth is 74.0, 12.9."""
    prior = {"s": pv.Uniform(0, 100), "p": pv.Array(pv.Normal(55, sd=1), 199)}
    attack = pv.Attack(lambda s, p: (s + p.sum()) / 200, prior, "s")
    exact = attack.run(pv.near(55.1, within=0.005), engine="exact").posterior
    sampled = attack.run(pv.near(55.1, within=0.005), engine="numpyro", samples=4000).posterior
    assert float(exact.mean()) in sampled.mean().widened(2)
    assert float(exact.std()) in sampled.std().widened(2)


@pytest.mark.slow
def test_modes_far_apart_are_refused_or_right():
    attack = pv.Attack(lambda x, e: x * x + e, {"x": pv.Normal(0.5, sd=3), "e": pv.Normal(0, sd=0.01)}, "x")
    try:
        result = attack.run(pv.equals(16.0), engine="numpyro", samples=2000)
    except NotConverged:
        return
    odds = np.exp(-0.5 * ((4 - 0.5) / 3) ** 2), np.exp(-0.5 * ((-4 - 0.5) / 3) ** 2)
    assert odds[0] / sum(odds) in result.posterior.probability(lambda x: x > 0).widened(2)


def test_roots_come_parents_first():
    center = pv.Normal(0, sd=1)
    roots = drawn([as_node(pv.Normal(center, sd=1))])
    assert len(roots) == 2
    assert roots[0] is as_node(center)


@pytest.mark.slow
def test_an_interruption_keeps_what_is_there(monkeypatch):
    attack = pv.Attack(lambda x, y: x + y, NORMALS, "x")
    seen = []

    def interrupted(self, done, note=""):
        seen.append(done)
        if done >= numpyro_engine.WARM_UP + 500:
            raise KeyboardInterrupt

    monkeypatch.setattr(numpyro_engine.ProgressMeter, "update", interrupted)
    result = attack.run(pv.equals(1.0), engine="numpyro", samples=40_000)
    assert any("interrupted" in remark for remark in result.diagnostics.remarks)
    assert len(result.posterior.batch) == 4 * 500
    assert 0.5 in result.posterior.mean().widened(2)


@pytest.mark.slow
def test_an_interruption_of_the_warm_up_gives_nothing(monkeypatch):
    def interrupted(self, done, note=""):
        raise KeyboardInterrupt

    monkeypatch.setattr(numpyro_engine.ProgressMeter, "update", interrupted)
    with pytest.raises(KeyboardInterrupt):
        pv.Attack(lambda x, y: x + y, NORMALS, "x").run(pv.equals(1.0), engine="numpyro")


@pytest.mark.slow
def test_a_table_of_random_size():
    """The paper's attacker who knows a bit: mean 63.307, standard deviation 16.673."""

    def person(i):
        return pv.Row(age=pv.Uniform(0, 100)) if i == 0 else pv.Row(age=pv.Normal(55.2, var=3.5))

    attack = pv.Attack(
        lambda records: sum(r.age for r in records) / len(records),
        {"records": pv.Records(pv.Binomial(300, 0.3), person)},
        lambda records: records[0].age,
    )
    posterior = attack.run(pv.near(55.3, within=0.005), engine="numpyro", samples=4000).posterior
    assert 63.307 in posterior.mean().widened(2)
    assert 16.673 in posterior.std().widened(2)
