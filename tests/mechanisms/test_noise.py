"""Noise on numbers: likelihoods in every tier, structures, promises, bad input."""

import math

import numpy as np
import pytest
import scipy.stats

import privug as pv
from privug import mechanisms as m

PRIOR = {"answers": pv.Array(pv.Bernoulli(0.3), 6)}
BINOMIAL = scipy.stats.binom(5, 0.3)


def total(answers):
    return sum(answers)


def spelled_total(answers):
    return float(str(sum(answers)))  # cannot be traced


@pv.batched
def total_of_batch(answers):
    return answers.sum(axis=1)


def posterior(program, seen, **options):
    attack = pv.Attack(program, PRIOR, secret=lambda answers: answers[0], observe=pv.equals(seen))
    return attack.run(**options)


def expected(density, seen):
    """P(first = 1 | seen), with the sum of the other five and the density of the noise spelled out."""
    k = np.arange(6)
    weights = [p * float((BINOMIAL.pmf(k) * density(seen - first - k)).sum()) for first, p in ((0, 0.7), (1, 0.3))]
    return weights[1] / sum(weights)


CASES = {
    "laplace": (m.laplace, {"sensitivity": 1, "epsilon": 0.5}, scipy.stats.laplace(scale=2.0).pdf, 3.25),
    "gaussian": (m.gaussian, {"sensitivity": 1, "sd": 1.5}, scipy.stats.norm(scale=1.5).pdf, 3.25),
    "discrete_laplace": (m.discrete_laplace, {"sensitivity": 1, "epsilon": 0.5}, scipy.stats.dlaplace(0.5).pmf, 4),
    "discrete_gaussian": (m.discrete_gaussian, {"sensitivity": 1, "sd": 1.5}, scipy.stats.norm(scale=1.5).pdf, 4),
}


@pytest.mark.parametrize("name", CASES)
def test_exact_posterior(name):
    make, options, density, seen = CASES[name]
    result = posterior(make(total, **options), seen)
    assert result.engine.startswith("exact")
    assert result.posterior.mean().value == pytest.approx(expected(density, seen), abs=1e-9)


@pytest.mark.parametrize("program", [total, spelled_total, total_of_batch], ids=["traced", "python", "batched"])
@pytest.mark.parametrize("name", ["laplace", "gaussian"])
def test_samples_are_weighted_by_the_density_in_every_tier(program, name):
    make, options, density, seen = CASES[name]
    result = posterior(make(program, **options), seen, engine="sample", samples=2000, seed=1)
    assert expected(density, seen) in result.posterior.mean().widened(2)
    assert result.diagnostics.effective_samples > 500


def test_signature_and_name_are_those_of_the_program():
    mechanism = m.laplace(total, sensitivity=1, epsilon=1)
    assert mechanism.__name__ == "total with Laplace noise"
    assert repr(mechanism) == "<Mechanism 'total with Laplace noise': 1-differentially private>"
    with pytest.raises(pv.QuestionError, match="'answer', which is not a parameter"):
        pv.Attack(mechanism, {"answer": pv.Bernoulli(0.5)}, "answer")


def test_noise_keeps_the_form_of_the_output():
    scale = 1e-12
    mechanism = m.laplace(lambda x: x, sensitivity=scale, epsilon=1)
    released = mechanism({"a": [1, 2.0], "b": (3, np.array([4.0, 5.0]))})
    assert released["a"] == pytest.approx([1, 2])
    assert isinstance(released["b"], tuple)
    assert released["b"][1] == pytest.approx([4, 5])
    assert mechanism(np.zeros((2, 300))).shape == (2, 300)
    assert mechanism(np.zeros(300)).shape == (300,)


def test_each_number_has_noise_of_its_own():
    mechanism = m.discrete_laplace(lambda x: [x, x], sensitivity=1, epsilon=0.1)
    prior = {"x": pv.DiscreteUniform(0, 1)}
    joint = pv.Attack(lambda x: mechanism(x)[0] - mechanism(x)[1], prior, "x").run(engine="sample", samples=4000).joint
    variance = 2 * math.exp(-0.1) / (1 - math.exp(-0.1)) ** 2
    assert joint.output.std().value == pytest.approx(math.sqrt(2 * variance), rel=0.1)


def test_two_observed_numbers_with_noise():
    mechanism = m.gaussian(lambda x: [x, 2 * x], sensitivity=1, sd=1.0)
    attack = pv.Attack(mechanism, {"x": pv.Normal(0, sd=1)}, "x", observe=[pv.equals(1.0), pv.equals(2.0)])
    result = attack.run(seed=1, samples=4000)
    assert 5 / 6 in result.posterior.mean().widened(2)  # precision 1 + 1 + 4, weighted data 1 + 4


def test_inside_another_program():
    noisy = m.laplace(total, sensitivity=1, epsilon=0.5)

    def report(answers):
        return pv.where(noisy(answers) > 3, "many", "few")

    result = pv.Attack(report, PRIOR, secret=lambda answers: answers[0]).run(seed=1, samples=4000)
    assert result.lifting.tier == "traced"
    truth = sum(scipy.stats.binom(6, 0.3).pmf(k) * scipy.stats.laplace(k, 2.0).sf(3) for k in range(7))
    assert truth in result.prediction.probability(lambda word: word == "many").widened(2)


def test_tables_of_alike_rows_stay_together():
    noisy = m.laplace(lambda records: sum(row.age for row in records) / len(records), sensitivity=1, epsilon=1)
    table = pv.Records(2000, pv.Row(age=pv.Uniform(0, 100)))
    result = pv.Attack(noisy, {"records": table}, lambda records: records[0].age, observe=pv.equals(50.0)).run()
    assert result.engine == "exact (sums)"
    assert result.posterior.mean().value == pytest.approx(50, abs=1e-6)


def test_post_processing_keeps_the_promise():
    mechanism = m.laplace(total, sensitivity=1, epsilon=0.5).then(lambda noisy: noisy > 3)
    assert mechanism.guarantee == m.Guarantee(epsilon=0.5)
    assert mechanism([1] * 1000) is True
    with pytest.raises(pv.ArgumentError, match="a function of the output"):
        mechanism.then("rounded")


def test_failing_inputs_can_be_excluded():
    noisy = m.laplace(lambda x: 1 / x, sensitivity=1, epsilon=1)
    attack = pv.Attack(noisy, {"x": pv.DiscreteUniform(0, 3)}, "x", on_error="exclude")
    assert attack.run(seed=1, samples=2000).posterior.probability(lambda x: x == 0).value == 0


def test_programs_that_return_no_numbers():
    with pytest.raises(pv.ProgramError, match="Laplace noise is added to numbers, but the program returned 'a'"):
        m.laplace(lambda x: "a", sensitivity=1, epsilon=1)(1)
    with pytest.raises(pv.ProgramError, match=r"integers, but the program returned 0\.5"):
        m.discrete_laplace(lambda x: 0.5, sensitivity=1, epsilon=1)(1)
    attack = pv.Attack(m.discrete_laplace(lambda x: x, sensitivity=1, epsilon=1), {"x": pv.Uniform(0, 1)}, "x")
    with pytest.raises(pv.PrivugError, match="integers"):
        attack.run(samples=100)


def test_programs_whose_output_changes_its_form():
    def growing(x):
        return [0.5] * (1 + int(str(x)))

    attack = pv.Attack(m.laplace(growing, sensitivity=1, epsilon=1), {"x": pv.DiscreteUniform(0, 3)}, "x")
    assert len(attack.run(samples=200, seed=1).prediction.batch) == 200  # called as a whole, then

    def rarely(x):
        return [1.0, 2.0] if str(x) == "1" else 1.0

    attack = pv.Attack(m.laplace(rarely, sensitivity=1, epsilon=1), {"x": pv.Bernoulli(0.01)}, "x")
    with pytest.raises(pv.ProgramError, match="differs in form"):
        attack.run(samples=5000, seed=1, engine="sample")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda: m.laplace(total, sensitivity=0, epsilon=1),
            "laplace: sensitivity must be a finite number above 0, not 0",
        ),
        (lambda: m.laplace(total, sensitivity=1, epsilon=math.inf), "epsilon must be a finite number"),
        (lambda: m.laplace(3, sensitivity=1, epsilon=1), "laplace: program must be a function, not 3"),
        (lambda: m.gaussian(total, sensitivity=1, epsilon=1), "either epsilon= and delta=, or rho=, or sd="),
        (lambda: m.gaussian(total, sensitivity=1, rho=1, sd=1), "either epsilon="),
        (
            lambda: m.gaussian(total, sensitivity=1, epsilon=1, delta=0.7),
            "delta must be a number above 0 and at most 0.5",
        ),
        (lambda: m.discrete_gaussian(total, sensitivity=1, sd=-1), "sd must be a finite number above 0"),
        (
            lambda: m.discrete_laplace(total, sensitivity="1", epsilon=1),
            "sensitivity must be a finite number above 0, not '1'",
        ),
        (lambda: m.together(total), "mechanisms are needed"),
    ],
)
def test_bad_arguments(make, words):
    with pytest.raises(pv.ArgumentError, match=words):
        make()


def test_failing_inputs_can_be_excluded_where_calls_are_plain():
    noisy = m.laplace(lambda x: 1 / int(str(x)), sensitivity=1, epsilon=1)
    attack = pv.Attack(noisy, {"x": pv.DiscreteUniform(0, 3)}, "x", on_error="exclude", observe=pv.equals(0.6))
    result = attack.run(seed=1, samples=2000, engine="sample")
    weights = np.exp(-np.abs(0.6 - 1 / np.arange(1, 4)))
    assert result.posterior.probability(lambda x: x == 0).value == 0
    assert weights[0] / weights.sum() in result.posterior.probability(lambda x: x == 1).widened(2)
    with pytest.raises(pv.ProgramError, match="division by zero"):
        pv.Attack(noisy, {"x": pv.DiscreteUniform(0, 3)}, "x").run(samples=200)
