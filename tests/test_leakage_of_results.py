"""The leakage table of a result, its plain forms, and runs that go on until they are precise."""

import json
import math

import pytest

import privug as pv
from privug.inference.engines import until_precise


def attack(**options):
    both = {"x": pv.DiscreteUniform(0, 3), "y": pv.DiscreteUniform(0, 3)}
    return pv.Attack(lambda x, y: x + y, both, secret="x", **options)


EXACT = {
    "entropy": 2.0,
    "conditional_entropy": (2 * 1 * math.log2(1) + 4 * math.log2(2) + 6 * math.log2(3) + 4 * math.log2(4)) / 16,
    "bayes_vulnerability": 7 / 16,
    "bayes_risk": 9 / 16,
    "multiplicative_leakage": 7 / 4,
    "min_entropy_leakage": math.log2(7 / 4),
    "guessing_entropy": (2 * 1 + 4 * 1.5 + 6 * 2 + 4 * 2.5) / 16,
    "max_posterior_belief": 1.0,
    "total_variation": 0.25,
    "kl_divergence": math.log2(4 / 3),
}


@pytest.fixture(scope="module")
def exact():
    return attack().run(observe=pv.equals(2), engine="exact")


@pytest.mark.parametrize("name", EXACT)
def test_exact_table(exact, name):
    estimate = exact.leakage()[name]
    assert estimate.exact
    assert estimate.value == pytest.approx(EXACT[name], abs=1e-9)


def test_information_is_what_entropy_loses(exact):
    table = exact.leakage()
    lost = table["entropy"].value - table["conditional_entropy"].value
    assert table["mutual_information"].value == pytest.approx(lost, abs=1e-9)


@pytest.mark.parametrize("name", EXACT)
def test_sampled_table_covers_the_exact_one(name):
    result = attack().run(observe=pv.equals(2), engine="sample", samples=20_000, seed=4)
    assert EXACT[name] in result.leakage()[name].widened(2)


def test_every_row_has_a_sentence(exact):
    for row in exact.leakage():
        assert row.meaning.endswith(".")
        assert row.name in pv.leakage.__all__
        assert row.meaning.split()[0] in str(exact.leakage())


def test_printing_shows_the_table(exact):
    assert "mutual information" in str(exact)
    assert "what it means" in exact._repr_html_()


def test_without_an_observation_there_is_no_change_to_report():
    names = [row.name for row in attack().run(engine="exact").leakage()]
    assert "mutual_information" in names
    assert "kl_divergence" not in names


def test_measures_that_make_no_sense_are_not_there():
    continuous = pv.Attack(lambda s, n: s + n, {"s": pv.Normal(0, sd=1), "n": pv.Normal(0, sd=1)}, "s").run(
        engine="exact"
    )
    table = continuous.leakage()
    assert table["mutual_information"].value == pytest.approx(0.5, abs=1e-9)
    with pytest.raises(KeyError, match="bayes_risk"):
        table["bayes_risk"]


def test_plain_forms(exact):
    plain = json.loads(exact.to_json())
    assert plain["engine"] == "exact (finite)"
    found = {row["measure"]: row for row in plain["leakage"]}
    assert found["bayes_risk"]["value"] == pytest.approx(9 / 16)
    assert exact.to_dict()["leakage"] == exact.leakage().to_dict()
    frame = exact.to_frame()
    assert frame.set_index("measure").loc["bayes_risk", "value"] == pytest.approx(9 / 16)


def test_infinite_numbers_become_strings_in_json():
    result = pv.Attack(lambda x: 2 * x, {"x": pv.Uniform(0, 1)}, "x").run(engine="exact")
    found = {row["measure"]: row["value"] for row in json.loads(result.to_json())["leakage"]}
    assert found["mutual_information"] == "inf"


def test_samples_until_the_interval_is_tight():
    result = attack().run(engine="sample", precision=0.01, measure=lambda r: r.prediction.mean(), seed=2)
    mean = result.prediction.mean()
    assert mean.high - mean.value <= 0.01
    assert 3.0 in mean.widened(2)
    assert result.diagnostics.accepted > 50_000  # the deviation of the sum is 1.58


def test_precision_of_the_first_question():
    asked = attack(questions={"x is 0": lambda x: x == 0})
    result = asked.run(observe=pv.equals(3), engine="sample", precision=0.02, seed=2)
    answer = result.posterior.probability(lambda x: x == 0)
    assert max(answer.high - answer.value, answer.value - answer.low) <= 0.02
    assert 0.25 in answer.widened(2)


def test_exact_answers_are_precise_at_once():
    assert attack().run(precision=1e-6).engine == "exact (finite)"


@pytest.mark.parametrize("wrong", [0, -1, math.inf, "0.1", True])
def test_precision_must_be_a_positive_number(wrong):
    with pytest.raises(pv.ArgumentError, match="precision"):
        attack().run(precision=wrong)


def test_what_cannot_become_precise_is_refused():
    estimate = pv.Estimate(0.5, 0.0, 1.0)
    with pytest.raises(pv.TooFewSamples, match="precision"):
        until_precise(
            lambda samples: samples, lambda _: estimate, 0.1, lambda found, remark: found, first=10, most=1000
        )
