"""Sweeps: the numbers of single runs, in one table, on any number of workers."""

import json
import math

import numpy as np
import pytest

import privug as pv
from privug import mechanisms
from privug.studies.measured import NoNumber
from privug.studies.sweep import sweep


def noisy_bit(epsilon, p=0.5):
    def release(bit):
        return bit + pv.sample(pv.DiscreteLaplace(1 / epsilon))

    return pv.Attack(release, prior={"bit": pv.Bernoulli(p)}, secret="bit", questions={"it is one": lambda b: b == 1})


def vulnerability(epsilon):
    """A guess is right with e^epsilon / (1 + e^epsilon): the largest that differential privacy allows."""
    return math.exp(epsilon) / (1 + math.exp(epsilon))


def test_every_point_has_the_exact_measures():
    found = sweep(noisy_bit, epsilon=[0.5, 1, 2])
    assert found.measures == ("it is one", "mutual_information", "bayes_vulnerability")
    for epsilon, estimate in zip([0.5, 1, 2], found["bayes_vulnerability"], strict=True):
        assert estimate.exact
        assert float(estimate) == pytest.approx(vulnerability(epsilon), abs=1e-9)
        alone = noisy_bit(epsilon).run()
        assert float(pv.leakage.bayes_vulnerability(alone.joint)) == pytest.approx(float(estimate), abs=1e-12)


def test_a_grid_of_two_parameters_and_an_observation():
    found = sweep(noisy_bit, epsilon=[0.5, 1.0], p=[0.1, 0.5], observe=pv.equals(1))
    assert [dict(point) for point in found.points][:2] == [{"epsilon": 0.5, "p": 0.1}, {"epsilon": 0.5, "p": 0.5}]
    answers = [float(cell) for cell in found["it is one"]]
    for point, answer in zip(found.points, answers, strict=True):
        odds = point["p"] / (1 - point["p"]) * math.exp(point["epsilon"])
        assert answer == pytest.approx(odds / (1 + odds), abs=1e-9)


def test_what_is_observed_may_depend_on_the_parameters():
    found = sweep(noisy_bit, epsilon=[0.5, 1.0], observe=lambda epsilon: pv.equals(1 if epsilon < 0.7 else 0))
    low, high = (float(cell) for cell in found["it is one"])
    assert (low, high) == pytest.approx((vulnerability(0.5), 1 - vulnerability(1.0)), abs=1e-9)


def test_measures_may_be_functions_or_names():
    found = sweep(
        noisy_bit, epsilon=[1.0], measures={"risk": lambda r: pv.leakage.bayes_risk(r.joint), "one": lambda r: 1}
    )
    assert float(found["risk"][0]) == pytest.approx(1 - vulnerability(1.0), abs=1e-9)
    assert float(found["one"][0]) == 1.0
    assert not found["one"][0].exact
    assert sweep(noisy_bit, epsilon=[1.0], measures=["bayes_risk"]).measures == ("bayes_risk",)


def test_the_number_of_workers_does_not_matter():
    def slow(scale):
        def release(bit):
            total = 0.0
            for step in str(bit) * 3:  # called sample by sample
                total += float(step)
            return total * scale

        return pv.Attack(release, prior={"bit": pv.Bernoulli(0.5)}, secret="bit")

    tables = []
    for workers in (1, 2):
        with pv.limited(workers=workers):
            tables.append(sweep(slow, scale=[1.0, 2.0, 3.0, 4.0], engine="sample", samples=3000, seed=7).to_dict())
    assert tables[0] == tables[1]


def test_a_point_that_is_refused_does_not_lose_the_others():
    def fragile(scale):
        def release(x):
            return x + pv.sample(pv.Laplace(0, scale))

        return pv.Attack(release, prior={"x": pv.Uniform(0, 1)}, secret="x")

    found = sweep(fragile, scale=[1.0, -1.0, 2.0])
    first, wrong, last = found["mutual_information"]
    assert isinstance(wrong, NoNumber)
    assert "scale must be a positive number" in wrong.reason
    assert first.value > last.value > 0
    assert "none (1)" in str(found)
    assert "(1)" in str(found).splitlines()[-1]
    assert found.to_dict()[1]["refusal"] == wrong.reason
    assert found.to_dict()[1]["value"] is None


def test_the_table_as_plain_values():
    found = sweep(noisy_bit, epsilon=[0.5, 1.0], measures=["bayes_risk"])
    rows = json.loads(found.to_json())
    assert [row["epsilon"] for row in rows] == [0.5, 1.0]
    assert rows[0]["value"] == pytest.approx(1 - vulnerability(0.5), abs=1e-9)
    frame = found.to_frame()
    assert list(frame["measure"]) == ["bayes_risk", "bayes_risk"]
    assert '<th scope="row">0.5</th>' in found._repr_html_()
    with pytest.raises(KeyError, match="this sweep has bayes_risk"):
        found["mutual_information"]


def test_infinite_numbers_survive_in_json():
    def plain(factor):
        return pv.Attack(lambda x: factor * x, prior={"x": pv.Uniform(0, 1)}, secret="x")

    found = sweep(plain, factor=[1.0])
    assert math.isinf(found["mutual_information"][0].value)
    assert json.loads(found.to_json())[0]["value"] == "inf"


def test_utility_columns_are_exact_for_the_laplace_mechanism():
    def mean(xs):
        return xs.sum() / 10

    def noisy(epsilon):
        def release(xs):
            return mean(xs) + pv.sample(pv.Laplace(0, 1 / epsilon))

        return pv.Attack(release, prior={"xs": pv.Array(pv.Uniform(0, 1), 10)}, secret=lambda xs: xs[0])

    found = sweep(noisy, epsilon=[0.5, 4.0], utility=mean, measures=["mutual_information"])
    assert [float(cell) for cell in found["expected_error"]] == pytest.approx([2.0, 0.25], abs=1e-9)
    assert all(cell.exact for cell in found["expected_error"])


def test_mechanisms_are_swept_like_programs():
    """Randomized response: a guess is right with the probability of an honest answer."""

    def survey(epsilon):
        asked = mechanisms.randomized_response(lambda bit: bit, values=[0, 1], epsilon=epsilon)
        return pv.Attack(asked, prior={"bit": pv.Bernoulli(0.5)}, secret="bit")

    found = sweep(survey, epsilon=[0.5, 2.0], measures=["bayes_vulnerability"])
    truth = [vulnerability(0.5), vulnerability(2.0)]
    assert [float(cell) for cell in found["bayes_vulnerability"]] == pytest.approx(truth, abs=1e-9)


def test_an_interrupted_sweep_keeps_what_it_has():
    def stops(epsilon):
        if epsilon > 1:
            raise KeyboardInterrupt
        return noisy_bit(epsilon)

    with pv.limited(workers=1):
        found = sweep(stops, epsilon=[0.5, 1.0, 2.0, 4.0], measures=["bayes_risk"])
    assert len(found.points) == 2
    assert "interrupted after 2 of 4" in str(found)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "name a parameter"),
        ({"epsilon": 1.0}, "epsilon must be a list of values"),
        ({"epsilon": "abc"}, "epsilon must be a list of values"),
        ({"epsilon": []}, "at least one value"),
        ({"epsilon": [1.0], "measures": {}}, "measures must map names"),
        ({"epsilon": [1.0], "measures": 3}, "measures must be a dict"),
        ({"epsilon": [1.0], "measures": ["magic"]}, "'magic' is neither one of the questions"),
        ({"epsilon": [1.0], "measures": {"x": lambda r: "y"}}, "must return an estimate or a number"),
    ],
)
def test_bad_arguments_are_refused_with_a_reason(arguments, message):
    with pytest.raises(pv.ArgumentError, match=message):
        sweep(noisy_bit, **arguments)


def test_what_attack_for_must_return():
    with pytest.raises(pv.ArgumentError, match=r"must return a pv\.Attack, not 3"):
        sweep(lambda epsilon: 3, epsilon=[1.0])


def test_arrays_of_parameters_are_plain_numbers_in_the_table():
    found = sweep(noisy_bit, epsilon=np.array([0.5, 1.0]), measures=["bayes_risk"])
    assert [type(point["epsilon"]) for point in found.points] == [float, float]
