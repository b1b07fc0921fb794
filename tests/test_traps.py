"""Traps: inputs on which a wrong answer, or an error that blames the wrong one, would be easy to give."""

import dataclasses
import warnings

import numpy as np
import pytest
from scipy import stats

import privug as pv


def supported(program, prior, observe, secret, **options):
    return set(
        pv.Attack(program, prior, secret, **options).run(observe=observe, samples=300, seed=1).posterior.distribution()
    )


def test_rare_missing_values_are_not_traced_away():
    ages = [pv.Choice([None, 30, 40], p=[0.005, 0.495, 0.5]) for _ in range(2)]
    attack = pv.Attack(lambda ages: sum(1 for a in ages if a is not None), {"ages": ages}, secret=lambda ages: ages[0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pv.LiftingWarning)
        result = attack.run(samples=20_000, seed=1)
    assert 0.995**2 in result.prediction.probability(lambda n: n == 2).widened(2)


@pytest.mark.parametrize("step", [1.0, 1e-3])
def test_large_values_next_to_each_other_stay_apart(step):
    prior = {"t": pv.Choice([0.0, step, 2 * step])}
    assert supported(lambda t: 1.7e9 + t, prior, pv.equals(1.7e9 + step), "t") == {step}


def test_zero_up_to_rounding():
    prior = {name: pv.Choice(values) for name, values in (("a", [0.1, 0.2]), ("b", [0.1, 0.2]), ("c", [0.2, 0.3]))}
    assert supported(lambda a, b, c: a + b - c, prior, pv.equals(0.0), "c") == {0.2, 0.3}
    called = lambda a, b, c: float(f"{a + b - c!r}")
    assert supported(called, prior, pv.equals(0.0), "c") == {0.2, 0.3}


def test_probabilities_of_equal_values_add_up():
    for values in ([True, 1, 0], [1, 1.0, "a", None, (1, 2)]):
        result = pv.Attack(lambda x: x, {"x": pv.Choice(values)}, secret="x").run(samples=500, seed=1)
        assert sum(map(float, result.posterior.distribution().values())) == pytest.approx(1)


def test_a_draw_with_a_random_parameter_from_outside_is_refused_in_plain_calls():
    mu = pv.Normal(0, sd=3)
    program = lambda m: 0 * hash(m) + pv.sample(pv.Normal(mu, sd=0.1)) - m
    with pytest.raises(pv.ProgramError, match="make it an input"):
        pv.Attack(program, {"m": mu}, secret="m").run(samples=100)


def test_predicates_must_answer_yes_or_no():
    for wrong in (lambda o: "no", lambda o: o - 1.5, lambda o: f"{o}"):
        with pytest.raises(pv.PrivugError, match="True or False"):
            supported(lambda x: x, {"x": pv.DiscreteUniform(0, 3)}, pv.such_that(wrong), "x")


def test_numbers_as_text_are_text():
    with pytest.raises(pv.ImpossibleObservation):
        supported(lambda x: f"{x}", {"x": pv.DiscreteUniform(0, 3)}, pv.near(1, within=0.5), "x")


@pytest.mark.parametrize(
    "observe", [pv.near(5, within=1), pv.between(4, 6), pv.such_that(lambda o: 4 < o < 6), pv.equals(5.0)]
)
def test_excluded_inputs_with_every_observation(observe):
    prior = {"x": pv.DiscreteUniform(0, 5)}
    assert supported(lambda x: 10 / x, prior, observe, "x", on_error="exclude") == {2}


def test_excluded_inputs_do_not_count_against_the_observation():
    attack = pv.Attack(lambda x: 10 / x, {"x": pv.DiscreteUniform(0, 4)}, secret="x", on_error="exclude")
    assert 0.25 in attack.run(observe=pv.equals(10.0), samples=2000, seed=1).diagnostics.evidence.widened(2)


def test_an_atom_at_one_size_wins_over_densities_at_others():
    rows = pv.Records(pv.Binomial(3, 0.5), pv.Row(x=pv.Normal(0, sd=1)))
    assert supported(lambda rows: sum(row.x for row in rows), {"rows": rows}, pv.equals(0.0), len) == {0}
    mixed = pv.Records(
        pv.DiscreteUniform(1, 2), lambda i: pv.Row(x=pv.DiscreteUniform(4, 6) if i == 0 else pv.Cauchy(0, 1) ** 2)
    )
    assert supported(lambda rows: sum(row.x for row in rows), {"rows": mixed}, pv.equals(5), len) == {1}


def test_questions_that_fail_name_the_value():
    belief = pv.Belief.of([0, 1, 2])
    with pytest.raises(pv.ArgumentError, match=r"ZeroDivisionError.*on the value 0"):
        belief.probability(lambda v: 1 / v > 0.3)


def test_queries_need_only_make_sense_on_what_was_seen():
    result = pv.Attack(lambda x: x, {"x": pv.DiscreteUniform(0, 5)}, secret="x").run(
        observe=pv.between(1, 5), samples=2000
    )
    assert np.mean([1 / x for x in range(1, 6)]) in result.belief(lambda x: 1 / x).mean().widened(2)
    with pytest.raises(pv.ProgramError, match="the query failed"):
        result.belief(lambda x: 1 / (x - 3))


def test_queries_see_the_parameters_of_other_inputs():
    rate = pv.Gamma(4, scale=1.0)
    attack = pv.Attack(lambda n, rate: n, {"n": pv.Poisson(rate), "rate": rate}, secret="n")
    result = attack.run(observe=pv.equals(8), samples=10_000, seed=1)
    assert (4 + 8) / 2 in result.belief(lambda rate: rate).mean().widened(2)
    assert (4 + 8) / 2 in result.belief(lambda n, rate: rate + n - 8).mean().widened(2)


def test_the_secret_is_blamed_for_its_own_errors():
    attack = pv.Attack(lambda x: x, {"x": pv.DiscreteUniform(0, 1)}, secret=lambda x: {1: "a"}[int(f"{x}")])
    with pytest.raises(pv.ProgramError, match="the secret failed with KeyError"):
        attack.run()


def test_interrupted_round_keeps_whole_blocks(monkeypatch):
    from privug.inference import sampling

    original = sampling.run_tasks

    def interrupted(*arguments, **options):
        for done, block in enumerate(original(*arguments, **options)):
            if done == 2:
                raise KeyboardInterrupt
            yield block

    monkeypatch.setattr(sampling, "run_tasks", interrupted)
    result = pv.Attack(lambda x: x, {"x": pv.Uniform(0, 1)}, secret="x").run(engine="sample", samples=100_000, seed=1)
    assert result.diagnostics.accepted == result.diagnostics.draws == 2 * 16_384
    assert "interrupted" in str(result)


def test_infinite_values_are_infinite():
    attack = pv.Attack(lambda x: x, {"x": pv.Uniform(0, 1)}, secret=lambda x: pv.where(x > 0.5, x, np.inf))
    result = attack.run(samples=500, seed=1)
    assert float(result.posterior.mean()) == np.inf
    assert "infinite" in str(result)
    with pytest.raises(pv.ArgumentError, match="infinite"):
        result.posterior.histogram()


@dataclasses.dataclass
class Pair:
    low: int
    high: int


def test_dataclass_outputs_can_be_observed():
    prior = {"x": pv.DiscreteUniform(0, 3), "y": pv.DiscreteUniform(0, 3)}
    assert supported(lambda x, y: Pair(x, y), prior, pv.equals(Pair(1, 2)), ["x", "y"]) == {(1, 2)}


def test_two_exact_values_of_two_normals():
    prior = {"x": pv.Normal(0, sd=1), "y": pv.Normal(0, sd=2)}
    attack = pv.Attack(lambda x, y: (x + y, x - y), prior, secret="x")
    result = attack.run(observe=pv.equals((3.0, 1.0)), samples=200, seed=1)
    assert np.allclose(result.posterior.batch.numbers(), 2.0, rtol=1e-12)


def test_differences_that_vanish_are_atoms():
    attack = pv.Attack(lambda x: x - x, {"x": pv.Normal(0, sd=1)}, secret="x")
    assert attack.run(observe=pv.equals(0.0), engine="sample", samples=200).diagnostics.draws == 200
    assert float(attack.run(observe=pv.equals(0.0), engine="exact").posterior.std()) == 1.0


def test_random_coefficients_that_cancel_are_not_divided_by():
    prior = {"x": pv.Normal(0, sd=1), "a": pv.Uniform(1, 2), "d": pv.Normal(0, sd=1)}
    attack = pv.Attack(lambda x, a, d: x * a - x * a + d, prior, secret="d")
    result = attack.run(observe=pv.equals(1.0), samples=200, seed=1)
    assert np.allclose(result.posterior.batch.numbers(), 1.0)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_exact_values_at_extreme_scales(scale):
    prior = {"x": pv.Normal(0, sd=scale), "y": pv.Normal(0, sd=scale)}
    result = pv.Attack(lambda x, y: x + y, prior, secret="x").run(observe=pv.equals(scale), samples=5000, seed=1)
    assert 0.5 in pv.Belief.of(result.posterior.batch.numbers() / scale).mean().widened(2)


def test_some_elements_of_an_array():
    prior = {"a": pv.Array(pv.Normal(0, sd=1), 3)}
    attack = pv.Attack(lambda a: a[0] + a[1], prior, secret=lambda a: a[0])
    result = attack.run(observe=pv.equals(2.0), samples=5000, seed=1)
    assert 1.0 in result.posterior.mean().widened(2)
    assert float(result.diagnostics.evidence) == pytest.approx(stats.norm.pdf(2, 0, 2**0.5), rel=1e-9)


def test_evidence_of_one_sample_is_not_zero():
    attack = pv.Attack(lambda x: x, {"x": pv.DiscreteUniform(0, 9)}, secret="x", observe=pv.equals(3))
    assert float(attack.run(samples=1, seed=1).diagnostics.evidence) > 0


def test_reports_of_structured_secrets_have_lines():
    prior = {"x": pv.Uniform(0, 1), "y": pv.Array(pv.Normal(0, sd=1), 2)}
    text = str(pv.Attack(lambda x, y: x, prior, secret=["x", "y"]).run(samples=300, seed=1))
    assert "x: mean" in text
    assert "y[1]: mean" in text


def test_a_distribution_used_without_sample_is_explained():
    noise = pv.Laplace(0, 1)
    with pytest.warns(pv.LiftingWarning), pytest.raises(pv.ProgramError, match=r"pv\.sample"):
        pv.Attack(lambda x: x + noise, {"x": pv.Uniform(0, 1)}, secret="x").run()


def test_spreads_are_given_by_name():
    with pytest.raises(pv.PriorError, match=r"sd=3\.5 or var=3\.5"):
        pv.Normal(55.2, 3.5)
    for wrong in (lambda: pv.near(5, 1), lambda: pv.noisy(5, 1), lambda: pv.near(5)):
        with pytest.raises(pv.ObservationError, match="by name"):
            wrong()


def test_columns_of_an_empty_table_are_empty():
    rows = pv.Records(pv.DiscreteUniform(0, 2), pv.Row(x=pv.Constant(1)))
    attack = pv.Attack(lambda rows: float(np.sum(rows.x)), {"rows": rows}, secret=len)
    assert set(attack.run(samples=200, seed=1).prediction.distribution()) == {0.0, 1.0, 2.0}


@pytest.mark.parametrize(
    "ask",
    [
        lambda b: b.mean(confidence=2),
        lambda b: b.probability(lambda x: x > 1, confidence=95),
        lambda b: b.histogram([3, 1, 2]),
        lambda b: b.histogram(2.5),
    ],
)
def test_wrong_options_of_beliefs(ask):
    with pytest.raises(pv.ArgumentError):
        ask(pv.Belief.of([1.0, 2.0, 3.0]))


def test_unwritable_report_is_a_message(tmp_path):
    result = pv.Attack(lambda x: x, {"x": pv.Uniform(0, 1)}, secret="x").run(samples=100)
    with pytest.raises(pv.ArgumentError, match="cannot be written"):
        result.save(tmp_path / "missing" / "report.html")
