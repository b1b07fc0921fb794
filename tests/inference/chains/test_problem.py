"""An observation made smooth is the same observation: the mean of its weights is right, and its draws agree with it."""

import math

import numpy as np
import pytest
from scipy import stats

import privug as pv
from privug.errors import ImpossibleObservation, ObservationError, UnsuitableEngine
from privug.inference.chains.problem import is_differentiable
from privug.inference.chains.sizes import prepare
from privug.inference.graph.conditions import windows_of
from privug.model.plan import Plan

SAMPLES = 20_000


def weighted(attack, observation, samples=SAMPLES):
    """Return the mean weight over draws from the prior, its standard error, and secret and output with weights."""
    problem = prepare(attack.question, observation, 1, samples)
    arrays = Plan(problem.roots).run(samples, np.random.Generator(np.random.SFC64(3)))
    values = problem.sized(dict(zip(problem.roots, arrays, strict=True)))
    kept = problem.kept(values)
    weights = np.where(kept, np.exp(problem.logs(values)), 0.0)
    chosen = {root: array[kept] for root, array in values.items()}
    secret, output = (batch.numbers() for batch in problem.evaluate(chosen))
    return problem, weights.mean(), weights.std() / math.sqrt(samples), (secret, output, weights[kept])


def attack_on(program, secret="x", **prior):
    return pv.Attack(program, prior, secret)


TWO_NORMALS = attack_on(lambda x, y: (x + y) / 2, x=pv.Normal(40, sd=2), y=pv.Normal(20, sd=1))
MEAN = stats.norm(30, math.sqrt(5) / 2)
THREE = {name: pv.Uniform(0, 1) for name in "xyz"}
IRWIN_HALL = attack_on(lambda x, y, z: x + y + z, **THREE)
NORMAL = {"x": pv.Normal(0, sd=1)}

CASES = {
    "window of a normal sum": (TWO_NORMALS, pv.near(29, within=0.01), MEAN.cdf(29.01) - MEAN.cdf(28.99)),
    "wide window": (TWO_NORMALS, pv.between(28, 33), MEAN.cdf(33) - MEAN.cdf(28)),
    "half a line": (TWO_NORMALS, pv.such_that(lambda o: o > 32), MEAN.sf(32)),
    "the other half": (TWO_NORMALS, pv.between(-math.inf, 27), MEAN.cdf(27)),
    "an exact value": (TWO_NORMALS, pv.equals(29.0), MEAN.pdf(29)),
    "seen through noise": (TWO_NORMALS, pv.noisy(29, sd=0.5), stats.norm(30, math.sqrt(1.25 + 0.25)).pdf(29)),
    "uniforms with ends": (IRWIN_HALL, pv.between(2.5, 3), 0.5**3 / 6),
    "an exact sum of uniforms": (IRWIN_HALL, pv.equals(2.5), 0.5**2 / 2),
    "rounded": (
        attack_on(lambda x: round(x, 1), **NORMAL),
        pv.equals(0.3),
        stats.norm.cdf(0.35) - stats.norm.cdf(0.25),
    ),
    "cut off": (attack_on(lambda x: math.floor(x), **NORMAL), pv.equals(1), stats.norm.cdf(2) - stats.norm.cdf(1)),
    "a square": (attack_on(lambda x: x * x, **NORMAL), pv.between(1, 4), 2 * (stats.norm.cdf(2) - stats.norm.cdf(1))),
    "a comparison": (
        attack_on(lambda x, y: x > y, x=pv.Normal(0, sd=1), y=pv.Normal(1, sd=1)),
        pv.equals(True),
        stats.norm.sf(1 / math.sqrt(2)),
    ),
    "two windows": (
        attack_on(lambda x, y: (x + y, x - y), x=pv.Normal(0, sd=1), y=pv.Normal(0, sd=1)),
        [pv.near(0.5, within=0.1), pv.near(-0.5, within=0.1)],
        math.prod(stats.norm.cdf(v + 0.1, 0, 2**0.5) - stats.norm.cdf(v - 0.1, 0, 2**0.5) for v in (0.5, -0.5)),
    ),
    "a window twice": (
        attack_on(lambda x: (x, 2 * x), **NORMAL),
        [pv.between(0, 1), pv.between(1, 4)],
        stats.norm.cdf(1) - stats.norm.cdf(0.5),
    ),
    "a hierarchy": (
        attack_on(lambda x: x.mean(), x=pv.Array(pv.Normal(pv.Normal(0, sd=1), sd=1), 4), secret=lambda x: x[0]),
        pv.near(1.0, within=0.05),
        stats.norm.cdf(1.05, 0, math.sqrt(1.25)) - stats.norm.cdf(0.95, 0, math.sqrt(1.25)),
    ),
    "a coin beside": (
        attack_on(lambda x, b: x + 10 * b, x=pv.Normal(0, sd=1), b=pv.Bernoulli(0.25)),
        pv.near(10, within=0.1),
        0.25 * (stats.norm.cdf(0.1) - stats.norm.cdf(-0.1)),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_mean_weight_is_the_probability_of_the_observation(name):
    attack, observation, truth = CASES[name]
    observation = pv.Attack(lambda x: x, {"x": pv.Normal(0, sd=1)}, "x", observe=observation).observe
    _, mean, error, _ = weighted(attack, observation)
    assert abs(mean - truth) <= 4 * error + 1e-9 * truth
    assert error < 0.1 * truth


def test_draws_lie_where_the_output_was_seen():
    _, _, _, (_, output, _) = weighted(TWO_NORMALS, pv.near(29, within=0.01))
    assert np.all(np.abs(output - 29) <= 0.01 * (1 + 1e-9))


def test_weights_give_the_posterior():
    _, _, _, (secret, _, weights) = weighted(TWO_NORMALS, pv.equals(29.0))
    # x | x + y = 58: mean 40 + 4/5 * (58 - 60), variance 4/5
    mean = np.average(secret, weights=weights)
    assert abs(mean - 38.4) < 4 * math.sqrt(0.8 / SAMPLES)


def test_tables_of_random_size_are_summed_over():
    def person(i):
        return pv.Row(age=pv.Uniform(0, 100) if i == 0 else pv.Normal(55.2, var=3.5))

    def mean_age(records):
        return sum(r.age for r in records) / len(records)

    prior = {"records": pv.Records(pv.Binomial(40, 0.7), person)}
    attack = pv.Attack(mean_age, prior, lambda records: records[0].age)
    observation = pv.near(55.3, within=0.005)
    exact = attack.run(observation, engine="exact")
    problem, mean, error, (secret, _, weights) = weighted(attack, observation)
    assert len(problem.roots) == 3
    assert is_differentiable(problem)
    # Beside chance: an age beyond the ends of its prior comes up once in 100,000 draws.
    assert abs(mean - exact.diagnostics.evidence.value) <= 4 * error + 1e-4 * mean
    assert abs(np.average(secret, weights=weights) - exact.posterior.mean().value) < 1.0
    assert abs(np.average(secret < 30, weights=weights) - exact.posterior.probability(lambda a: a < 30).value) < 0.01


def test_rows_are_named_after_the_inputs():
    def person(i):
        return pv.Row(age=pv.Uniform(0, 100) if i == 0 else pv.Normal(55, sd=1))

    attack = pv.Attack(lambda records, noise: sum(r.age for r in records) + noise, {
        "records": pv.Records(20, person), "noise": pv.Laplace(0, pv.Exponential(scale=1))}, "noise")  # fmt: skip
    assert set(prepare(attack.question, None, 0, 0).names) == {
        "records[0].age", "records[1:20].age", "noise", "exponential"}  # fmt: skip


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (lambda o: (o > 1) & (o <= 3), [(1, math.inf), (-math.inf, 3)]),
        (lambda o: o > 2, [(2, math.inf)]),
        (lambda o: (o > 1) | (o < 0), None),
        (lambda o: round(o) == 3, [(2.5, 3.5)]),
        (lambda o: np.ceil(o) == 3, [(2, 3)]),
        (lambda o: int(o) == 0, [(-1, 1)]),
        (lambda o: o == 3, None),
    ],
)
def test_conditions_are_read_as_windows(predicate, expected):
    output = pv.Normal(0, sd=1)
    (condition,) = pv.such_that(predicate).likelihood(output).conditions
    found = windows_of(condition)
    assert (found and [(window.low, window.high) for window in found]) == expected


def test_an_empty_window_is_impossible():
    with pytest.raises(ImpossibleObservation):
        prepare(TWO_NORMALS.question, pv.such_that(lambda o: (o > 3) & (o < 2)), 0, 0)


def test_a_window_without_width_has_probability_zero():
    with pytest.raises(ObservationError, match="probability zero"):
        prepare(TWO_NORMALS.question, pv.between(3, 3), 0, 0)


def test_an_atom_is_found_in_a_window_without_width():
    attack = attack_on(lambda x: max(x, 0.0), **NORMAL)
    _, mean, error, (secret, _, _) = weighted(attack, pv.between(0, 0))
    assert abs(mean - 0.5) <= 4 * error
    assert np.all(secret <= 0)


def test_conditions_on_discrete_outputs_stay_conditions():
    attack = attack_on(lambda x, y: x + y, x=pv.DiscreteUniform(0, 10), y=pv.DiscreteUniform(0, 10))
    problem = prepare(attack.question, pv.equals(7), 0, 0)
    assert len(problem.conditions) == 1
    assert not is_differentiable(problem)


def test_noise_of_the_program_itself_has_no_density():
    def program(x):
        hash(x)  # one plain value is needed: the program is called
        return str(x)[:1] + str(pv.sample(pv.Normal(0, sd=1)))

    attack = pv.Attack(program, {"x": pv.Normal(0, sd=1)}, "x")
    with pytest.raises(UnsuitableEngine, match="random numbers of its own"):
        prepare(attack.question, pv.such_that(lambda o: float(o[1:]) > 0), 0, 0)
