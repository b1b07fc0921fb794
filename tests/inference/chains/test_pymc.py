"""The engine 'pymc' against closed forms, the exact engine and rejection; what it cannot do it refuses."""

import math

import numpy as np
import pytest
from pytensor.compile.mode import Mode
from scipy import stats

import privug as pv
from oracles import cases
from privug.errors import ArgumentError, NotConverged, UnsuitableEngine
from privug.inference.chains import pymc_engine
from privug.inference.chains.problem import is_differentiable
from privug.inference.chains.sizes import prepare, summed_out


def truths(result):
    return result.posterior.mean().value, result.posterior.std().value


def agrees(result, mean, deviation):
    assert mean in result.posterior.mean().widened(2)
    assert deviation in result.posterior.std().widened(2)
    assert result.diagnostics.r_hat < 1.05
    assert result.diagnostics.divergences <= 0.01 * result.diagnostics.accepted


FIGURE_2 = pv.Attack(
    lambda alice, bob: (alice + bob) / 2, {"alice": pv.Normal(42, var=3), "bob": pv.Normal(20, var=5)}, "alice"
)


@pytest.mark.slow
def test_nuts_finds_the_posterior_of_normal_ages():
    exact = FIGURE_2.run(pv.equals(30.0), engine="exact")
    result = FIGURE_2.run(pv.equals(30.0), engine="pymc:nuts", samples=1000, seed=1)
    assert result.engine == "pymc:nuts"
    agrees(result, *truths(exact))


@pytest.mark.slow
def test_the_same_seed_gives_the_same_draws():
    one, other = (
        pymc_engine.infer(FIGURE_2.question, pv.noisy(30, sd=1), samples=600, seed=7, sampler="nuts", chains=2)
        for _ in range(2)
    )
    assert np.array_equal(one.quantities[0].numbers(), other.quantities[0].numbers())
    assert one.groups is not None


def test_the_model_is_handed_out():
    model = pymc_engine.to_pymc(FIGURE_2.question, pv.noisy(30, sd=1))
    assert {variable.name for variable in model.free_RVs} == {"alice", "bob"}
    log_density = model.compile_logp(mode=Mode(linker="py", optimizer=None))
    expected = stats.norm(42, 3**0.5).logpdf(41) + stats.norm(20, 5**0.5).logpdf(21) + stats.norm(31, 1).logpdf(30)
    assert float(log_density({"alice": 41.0, "bob": 21.0})) == pytest.approx(expected, abs=1e-9)


def test_many_numbers_are_one_variable():
    attack = pv.Attack(lambda p: p.mean(), {"p": pv.Array(pv.Normal(0, sd=1), 20_000)}, lambda p: p[0])
    model = pymc_engine.to_pymc(attack.question, pv.near(0, within=0.001))
    assert [variable.name for variable in model.free_RVs] == ["p", "uniform"]


MIXED = pv.Attack(
    lambda c, x: 5 * (c == "a") + x, {"c": pv.Choice(["a", "b", "c"]), "x": pv.Normal(0, sd=1)}, secret="c"
)


def test_discrete_inputs_are_summed_out():
    problem = summed_out(prepare(MIXED.question, pv.noisy(3, sd=1), 1, 0))
    assert is_differentiable(problem)
    assert problem.names == ("x",)
    x = np.linspace(-3, 3, 7)
    seen = [stats.norm(x + 5 * (value == "a"), 1).pdf(3) / 3 for value in "abc"]
    np.testing.assert_allclose(problem.logs({problem.roots[0]: x}), np.log(np.sum(seen, axis=0)), rtol=1e-9)


def test_states_are_drawn_given_the_rest():
    problem = summed_out(prepare(MIXED.question, pv.noisy(3, sd=1), 1, 0))
    x = problem.roots[0]
    values = problem.sized({x: np.full(40_000, -0.5)})
    secret, output = problem.evaluate(values)
    share = np.mean(np.array(secret.values()) == "a")
    weights = stats.norm(np.array([4.5, -0.5, -0.5]), 1).pdf(3)
    assert abs(share - weights[0] / weights.sum()) < 4 * math.sqrt(0.25 / 40_000)
    assert set(output.numbers()) == {-0.5, 4.5}


@pytest.mark.parametrize(
    ("sampler", "message"), [("gibbs", "'pymc:nutpie'"), ("nutpie", "gradients"), ("smc", "holds or does not")]
)
def test_samplers_that_do_not_fit_are_refused(sampler, message):
    attack = pv.Attack(lambda x, y: x + y, {"x": pv.DiscreteUniform(0, 9), "y": pv.DiscreteUniform(0, 9)}, "x")
    with pytest.raises((ArgumentError, UnsuitableEngine), match=message):
        attack.run(pv.equals(4), engine=f"pymc:{sampler}", samples=100, seed=1)


def test_populations_in_many_dimensions_are_refused():
    prior = {"s": pv.Uniform(0, 100), "p": pv.Array(pv.Normal(55, sd=1), 200)}
    attack = pv.Attack(lambda s, p: (s + p.sum()) / 201, prior, "s")
    with pytest.raises(UnsuitableEngine, match="wrong answers"):
        attack.run(pv.near(55.1, within=0.005), engine="pymc:smc")


def test_distributions_without_a_counterpart_are_named():
    attack = pv.Attack(lambda x: x + 1, {"x": pv.Mixture([pv.Normal(0, sd=1), 3.0])}, "x")
    with pytest.raises(UnsuitableEngine, match=r"Mixture.*'x'"):
        attack.run(pv.noisy(1, sd=1), engine="pymc", samples=100)


def test_values_of_all_roots_are_our_own():
    attack = pv.Attack(
        lambda c, v, n: v.sum() + n,
        {"c": pv.Choice([1.5, 2.5]), "v": pv.MvNormal([1.0, 2.0], [[1, 0.5], [0.5, 2]]), "n": pv.Poisson(3)},
        "c",
    )
    problem = prepare(attack.question, pv.noisy(4, sd=1), 0, 0)
    drawn = {"c": np.array([[0, 1, 1], [1, 0, 0]]), "v": np.zeros((2, 3, 2)), "n": np.full((2, 3), 4)}
    values = pymc_engine._root_values(problem, drawn)
    by_name = dict(zip(problem.names, values.values(), strict=True))
    np.testing.assert_allclose(by_name["v"], np.broadcast_to([1.0, 2.0], (2, 3, 2)))
    np.testing.assert_allclose(by_name["c"], [[1.5, 2.5, 2.5], [2.5, 1.5, 1.5]])


def person(i):
    return pv.Row(age=pv.Uniform(0, 100) if i == 0 else pv.Normal(55.2, var=3.5))


def mean_age(records):
    return sum(r.age for r in records) / len(records)


def opaque_sum(x, y):
    return float(f"{x + y:.12g}")


KNOWS_A_LOT = pv.Attack(lambda a: (a + 109 * 55.3) / 110, {"a": pv.Uniform(0, 100)}, "a")
HIERARCHY = pv.Attack(
    lambda x, y: (x.mean(), y),
    {"x": pv.Array(pv.Normal(m := pv.Normal(50, sd=10), sd=5), 8), "y": pv.Normal(m, sd=5)},
    lambda x: x[0],
)
NOISY_MEAN = pv.Attack(
    lambda a, others, noise: (a + others.sum()) / 100 + noise,
    {"a": pv.Uniform(0, 100), "others": pv.Array(pv.Normal(55, sd=3), 99), "noise": pv.Laplace(0, 1.0)},
    "a",
)


def compared(attack, observation, engine="pymc", samples=4000):
    truth = attack.run(observation, samples=200_000, seed=5)
    agrees(attack.run(observation, engine=engine, samples=samples, seed=1), *truths(truth))


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["pymc:nutpie", "pymc:nuts", "pymc:metropolis", "pymc:smc"])
def test_every_sampler_finds_figure_2(engine):
    compared(FIGURE_2, pv.equals(30.0), engine)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["pymc:nutpie", "pymc:nuts"])
def test_knows_a_lot(engine):
    result = KNOWS_A_LOT.run(pv.near(55.3, within=0.005), engine=engine, samples=4000, seed=1)
    agrees(result, 55.3, 1.1 / math.sqrt(12))
    assert np.all(np.abs(np.array(result.posterior.samples(1000)) - 55.3) <= 0.55 + 1e-9)


@pytest.mark.slow
def test_knows_a_bit():
    attack = pv.Attack(mean_age, {"records": pv.Records(pv.Binomial(300, 0.3), person)}, lambda records: records[0].age)
    result = attack.run(pv.near(55.3, within=0.005), engine="pymc", samples=4000, seed=1)
    agrees(result, 63.307, 16.673)
    assert 0.00447 in result.posterior.probability(lambda age: age < 18).widened(2)


@pytest.mark.slow
def test_a_noise_mechanism():
    compared(NOISY_MEAN, pv.near(54.0, within=0.01))
    compared(NOISY_MEAN, pv.equals(54.0))


@pytest.mark.slow
def test_several_observations_of_a_hierarchy():
    compared(HIERARCHY, [pv.near(60, within=0.5), pv.noisy(65, sd=2)])


@pytest.mark.slow
def test_walls_are_dropped_behind():
    attack = pv.Attack(lambda x, y, z: x + y + z, {name: pv.Uniform(0, 1) for name in "xyz"}, "x")
    result = attack.run(pv.near(2.5, within=0.005), engine="pymc", samples=4000, seed=1)
    agrees(result, 5 / 6, math.sqrt(1 / 72))
    assert any("dropped" in remark for remark in result.diagnostics.remarks)


@pytest.mark.slow
def test_two_modes_are_found_or_refused():
    attack = pv.Attack(lambda x: x * x, {"x": pv.Normal(0, sd=1)}, "x")
    try:
        result = attack.run(pv.noisy(1, sd=0.3), engine="pymc", samples=4000, seed=1)
    except NotConverged:
        return
    assert 0.5 in result.posterior.probability(lambda x: x > 0).widened(2)


@pytest.mark.slow
def test_mixed_inputs():
    truth = MIXED.run(pv.noisy(3, sd=1), samples=400_000, seed=2).posterior.distribution()
    found = MIXED.run(pv.noisy(3, sd=1), engine="pymc", samples=4000, seed=1).posterior.distribution()
    for value in "abc":
        assert truth[value].value in found[value].widened(2)


@pytest.mark.slow
def test_metropolis_on_a_sum_of_whole_numbers():
    attack = pv.Attack(lambda x, y: x + y, {"x": pv.DiscreteUniform(0, 100), "y": pv.DiscreteUniform(0, 100)}, "x")
    result = attack.run(engine="pymc:metropolis", samples=10_000, seed=1)
    agrees(result, 50, math.sqrt((101**2 - 1) / 12))
    assert 1 / 101 in result.prediction.probability(lambda o: o == 100).widened(2)


@pytest.mark.slow
def test_chains_that_cannot_move_are_refused():
    attack = pv.Attack(lambda x, y: x + y, {"x": pv.DiscreteUniform(0, 100), "y": pv.DiscreteUniform(0, 100)}, "x")
    with pytest.raises(NotConverged, match="do not agree"):
        attack.run(pv.equals(100), engine="pymc:metropolis", samples=1000, seed=1)


@pytest.mark.slow
def test_steps_without_gradients_in_many_dimensions_are_right_or_refused():
    prior = {"s": pv.Uniform(0, 100), "p": pv.Array(pv.Normal(55, sd=1), 200)}
    attack = pv.Attack(lambda s, p: (s + p.sum()) / 201, prior, "s")
    truth = attack.run(pv.near(55.1, within=0.005), engine="exact")
    agrees(attack.run(pv.near(55.1, within=0.005), engine="pymc:nutpie", samples=4000, seed=1), *truths(truth))
    try:
        result = attack.run(pv.near(55.1, within=0.005), engine="pymc:metropolis", samples=1000, seed=1)
    except NotConverged:
        return
    agrees(result, *truths(truth))


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["pymc", "numpyro"])
def test_counts_in_the_far_tail_are_refused(engine):
    attack = pv.Attack(lambda x, n: x + n, {"x": pv.Normal(0, sd=1), "n": pv.Poisson(3)}, "n")
    assert attack.run(pv.noisy(4, sd=0.5), engine=engine, samples=1000, seed=1).engine.startswith(engine)
    with pytest.raises(pv.InferenceError):
        attack.run(pv.noisy(90, sd=0.5), engine=engine, samples=1000, seed=1)


@pytest.mark.slow
def test_an_interruption_keeps_the_chains_that_are_there(monkeypatch):
    def interrupted(self, done, note=""):
        if note == "chain 4":
            raise KeyboardInterrupt

    monkeypatch.setattr(pymc_engine.ProgressMeter, "update", interrupted)
    result = FIGURE_2.run(pv.noisy(30, sd=1), engine="pymc:nuts", samples=1000, seed=1)
    assert result.diagnostics.chains == 3
    assert any("interrupted" in remark for remark in result.diagnostics.remarks)
    agrees(result, *truths(FIGURE_2.run(pv.noisy(30, sd=1), engine="exact")))


@pytest.mark.slow
@pytest.mark.parametrize("sampler", ["nuts", "nutpie"])
def test_an_interruption_at_once_gives_nothing(monkeypatch, sampler):
    def interrupted(self, done, note=""):
        raise KeyboardInterrupt

    monkeypatch.setattr(pymc_engine.ProgressMeter, "update", interrupted)
    monkeypatch.setattr(pymc_engine, "FEWEST_LEFT", 100_000)  # nutpie is quick, and only looked at now and then
    with pytest.raises(KeyboardInterrupt):
        FIGURE_2.run(pv.noisy(30, sd=1), engine=f"pymc:{sampler}", samples=1_000_000, seed=1)


def test_chains_that_were_cut_short_are_cut_to_the_shortest_that_is_long_enough():
    lengths, longest = [150, 400, 20, 230], 400
    numbers = np.arange(4 * longest, dtype=float).reshape(4, longest)
    pairs = np.stack([numbers, -numbers], axis=2)
    for chain, length in enumerate(lengths):
        numbers[chain, length:] = pairs[chain, length:] = np.nan
    raw = pymc_engine._cut_short({"x": numbers, "y": pairs})
    assert raw.draws["x"].tolist() == numbers[[0, 1, 3], :150].tolist()
    assert raw.draws["y"].tolist() == pairs[[0, 1, 3], :150].tolist()
    assert "kept" in raw.remarks[0]
    with pytest.raises(KeyboardInterrupt):
        pymc_engine._cut_short({"x": numbers[[0, 2]]})


@pytest.mark.slow
def test_a_black_box():
    attack = pv.Attack(opaque_sum, {"x": pv.Normal(0, sd=1), "y": pv.Normal(0, sd=2)}, "x")
    result = attack.run(pv.noisy(2, sd=0.5), engine="pymc", samples=2000, seed=1)
    agrees(result, 2 / 5.25, math.sqrt(1 - 1 / 5.25))


@pytest.mark.slow
def test_failures_are_left_out():
    attack = pv.Attack(
        lambda x, y: math.sqrt(x) + y, {"x": pv.Normal(1, sd=1), "y": pv.Normal(0, sd=1)}, "x", on_error="exclude"
    )
    compared(attack, pv.noisy(1, sd=0.5))


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["pymc:nutpie", "pymc:nuts"])
def test_the_published_case_of_ten_salaries(engine):
    case = cases.CASES["gauss-privug-case1-mean"]
    result = cases.attack(case).run(cases.observation(case), engine=engine, samples=4000, seed=1)
    agrees(result, case["expected"], cases.CASES["gauss-privug-case1-std"]["expected"])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["privug-P81-prob", "privug-P2020-prob"])
def test_the_published_probability_of_a_mean(name):
    case = cases.CASES[name]
    result = cases.attack(case).run(engine="pymc:nuts", samples=4000, seed=1)
    assert case["expected"] in result.prediction.probability(lambda o: o < 55).widened(2)


def test_nothing_follows_gradients_where_no_input_is_continuous():
    prior = {"answers": pv.Array(pv.DiscreteUniform(0, 9), 12)}  # too many states to list
    attack = pv.Attack(lambda answers: answers.sum(), prior, lambda answers: answers[0])
    problem = summed_out(prepare(attack.question, pv.noisy(50, sd=2), 0, 1000))
    assert problem.roots
    assert not problem.conditions
    assert pymc_engine._chosen(problem, None, opaque=False) == "metropolis"
    with pytest.raises(UnsuitableEngine, match="some input is discrete"):
        pymc_engine._chosen(problem, "nuts", opaque=False)
