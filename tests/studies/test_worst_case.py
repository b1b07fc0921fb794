"""The worst case of the attack's own questions, against closed forms."""

import math

import numpy as np
import pytest

import privug as pv
from privug.studies.worst_case import rows_behind_secret


def after(odds, epsilon):
    """Return the belief whose odds are larger by exp(epsilon)."""
    return 1 / (1 + math.exp(-epsilon) / odds)


def rich(mechanism=pv.mechanisms.laplace):
    def attack_for(epsilon):
        noisy = mechanism(lambda x: x, sensitivity=1, epsilon=epsilon)
        questions = {"Alice is rich": lambda x: x == 1}
        return pv.Attack(noisy, prior={"x": pv.Bernoulli(0.1)}, secret="x", questions=questions)

    return attack_for


@pytest.mark.parametrize("mechanism", [pv.mechanisms.laplace, pv.mechanisms.discrete_laplace])
def test_a_question_is_answered_by_its_worst_case_if_nothing_is_observed(mechanism):
    """The odds of a bit grow by exp(epsilon) at most, and do so for outputs beyond one."""
    found = pv.sweep(rich(mechanism), measures=["Alice is rich", "max_posterior_belief"], epsilon=[2.0])
    assert [float(cell) for cell in found["Alice is rich"]] == pytest.approx([after(1 / 9, e) for e in (2,)], abs=1e-6)
    truth = [max(after(9, e), after(1 / 9, e)) for e in (2,)]
    assert [float(cell) for cell in found["max_posterior_belief"]] == pytest.approx(truth, abs=1e-6)


def test_questions_come_first_of_what_every_study_measures():
    unasked = pv.sweep(rich(), epsilon=[1.0])
    asked = pv.sweep(rich(), epsilon=[1.0], measures=["Alice is rich"])
    assert unasked["Alice is rich"] == asked["Alice is rich"]
    assert all("worst P(Alice is rich)" in str(found) for found in (unasked, asked))
    seen = pv.sweep(rich(), epsilon=[1.0], observe=pv.equals(0.5))
    assert seen.measures[0] == "Alice is rich"
    assert " P(Alice is rich)" in str(seen)
    assert "worst" not in str(seen)


def test_calibration_by_a_question():
    most = pv.calibrate(rich(), measure="Alice is rich", at_most=0.25, epsilon=(0.5, 2), grid=2, tolerance=0.01)
    assert most.bracket[0] <= math.log(9 / 3) <= most.bracket[1]
    assert "the belief in 'Alice is rich' after any output is at most 0.25 (exact" in str(most)
    least = pv.calibrate(rich(), measure="Alice is rich", at_least=0.05, epsilon=(0.5, 2), grid=2, tolerance=0.01)
    assert least.bracket[0] <= math.log(19 / 9) <= least.bracket[1]
    seen = pv.calibrate(rich(), measure="Alice is rich", at_most=0.12, observe=pv.equals(0.6), epsilon=(0.5, 2), grid=2)
    assert "the belief in 'Alice is rich' is at most 0.12" in str(seen)
    assert seen.value == pytest.approx(math.log(0.12 / 0.88 * 9) / 0.2, rel=2e-4)


def trimmed_mean(rows):
    ages = sorted(min(max(row.age, 0), 100) for row in rows)
    return sum(float(str(age)) for age in ages[1:-1]) / (len(ages) - 2)  # called sample by sample


def on_samples(epsilon, sensitivity=100 / 3, person=None):
    noisy = pv.mechanisms.laplace(trimmed_mean, sensitivity=sensitivity, epsilon=epsilon)
    prior = {"rows": pv.Records(5, person or (lambda i: pv.Row(age=pv.Uniform(0, 100))))}
    questions = {"under 18": lambda age: age < 18}
    return pv.Attack(noisy, prior, secret=lambda rows: rows[0].age, questions=questions)


def test_where_only_samples_exist_the_promise_bounds_the_belief():
    (cell,) = pv.sweep(on_samples, measures=["under 18"], epsilon=[1.0], samples=200)["under 18"]
    assert cell.high == cell.value == pytest.approx(after(18 / 82, 1.0))
    assert cell.low == pytest.approx(0.18)  # some output leaves the belief as large as it was
    assert "promises" in cell.method
    found = pv.calibrate(on_samples, measure="under 18", at_most=0.5, epsilon=(1.2, 2), grid=2, samples=200)
    assert found.value == pytest.approx(math.log(82 / 18), rel=0.011)
    assert found.value <= math.log(82 / 18)


def test_without_a_promise_samples_prove_nothing():
    def attack_for(scale):
        def release(rows):
            return round(trimmed_mean(rows)) + pv.sample(pv.DiscreteLaplace(scale))

        prior = {"rows": pv.Records(5, lambda i: pv.Row(age=pv.Uniform(0, 100)))}
        return pv.Attack(release, prior, secret=lambda rows: rows[0].age, questions={"under 18": lambda a: a < 18})

    (cell,) = pv.sweep(attack_for, measures=["under 18"], scale=[5.0], samples=500)["under 18"]
    assert cell.high == 1
    assert cell.method.startswith("lower bound")


@pytest.mark.parametrize(
    ("prior", "secret", "rows"),
    [
        (lambda: pv.Records(5, lambda i: pv.Row(age=pv.Uniform(0, i + 1))), lambda rows: rows[0].age, 1),
        (lambda: pv.Records(5, lambda i: pv.Row(age=pv.Uniform(0, i + 1))), lambda rows: rows[0].age + rows[3].age, 2),
        (lambda: pv.Records(400, pv.Row(age=pv.Uniform(0, 1))), lambda rows: rows[7].age, 1),
        (lambda: pv.Records(400, pv.Row(age=pv.Uniform(0, 1))), lambda rows: rows[7].age < rows[9].age, 2),
        (lambda: pv.Records(400, pv.Row(age=pv.Uniform(0, 1))), lambda rows: sum(r.age for r in rows), 400),
        (lambda: pv.Records(400, pv.Row(age=pv.Normal(MU, sd=1))), lambda rows: rows[7].age, 400),
        (lambda: pv.Records(pv.Binomial(300, 1 / 3), pv.Row(age=pv.Uniform(0, 1))), lambda rows: rows[0].age, 1),
    ],
    ids=["one row", "two rows", "one of many", "two of many", "all", "a common mean", "a random size"],
)
def test_the_rows_that_a_secret_depends_on_are_counted(prior, secret, rows):
    def mean(rows):
        return sum(row.age for row in rows) / 400

    assert rows_behind_secret(pv.Attack(mean, {"rows": prior()}, secret)) == rows


MU = pv.Normal(0, sd=1)


def test_a_promise_that_is_broken_is_not_believed():
    """The declared sensitivity is a hundredth of the true one, and samples show it."""

    def attack_for(epsilon):
        noisy = pv.mechanisms.discrete_laplace(
            lambda rows: sum(int(str(row.age)) for row in rows), sensitivity=1, epsilon=epsilon
        )
        row = pv.Row(age=pv.Choice([0, 100]))
        questions = {"old": lambda age: age == 100}
        return pv.Attack(noisy, {"rows": pv.Records(2, row)}, lambda rows: rows[0].age, questions=questions)

    (cell,) = pv.sweep(attack_for, measures=["old"], epsilon=[1.0], samples=2_000, engine="sample")["old"]
    assert cell.high == 1
    assert cell.low > after(1, 1.0)
    assert "more than the mechanism promises" in cell.method


def test_a_name_that_is_neither_a_measure_nor_a_question():
    for ask in (
        lambda: pv.sweep(rich(), measures=["Bob is rich"], epsilon=[1.0]),
        lambda: pv.calibrate(rich(), measure="Bob is rich", at_most=0.5, epsilon=(0.1, 1)),
    ):
        with pytest.raises(pv.ArgumentError, match=r"'Bob is rich' is neither one of the questions .*'Alice is rich'"):
            ask()


def test_the_error_of_tables_and_labels():
    """Laplace noise of scale 2 on one part of two; a label that randomized response changes in 1 / (1 + e) of cases."""
    pair = pv.Attack(lambda x: {"a": x + pv.sample(pv.Laplace(0, 2)), "b": x}, {"x": pv.Uniform(0, 1)}, "x")
    found = pv.expected_error(pair.run(samples=20_000), lambda x: {"a": x, "b": x}, samples=20_000)
    assert 1.0 in found.widened(2)
    asked = pv.mechanisms.randomized_response(lambda x: x, values=["yes", "no"], epsilon=1)
    label = pv.Attack(asked, {"x": pv.Choice(["yes", "no"])}, "x")
    assert float(pv.expected_error(label.run(), lambda x: x)) == pytest.approx(1 / (1 + np.e))


def test_the_cells_of_an_array_are_people_too():
    attack = pv.Attack(lambda xs: xs.sum(), {"xs": pv.Array(pv.Bernoulli(0.3), 5)}, lambda xs: xs[0])
    assert rows_behind_secret(attack) == 1
    apart = pv.Attack(lambda x, y: x + y, {"x": pv.Bernoulli(0.3), "y": pv.Bernoulli(0.3)}, "x")
    assert rows_behind_secret(apart) is None  # nobody says that these are people
