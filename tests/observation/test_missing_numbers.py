"""Observations of a number that may be missing are conditions on whether it is there, and on the number."""

import numpy as np
import pytest

import privug as pv
from privug.inference.question import Question
from privug.model.maybe import Maybe
from privug.model.node import ancestors
from privug.observation.observations import as_observation
from privug.program.tracing import evaluate_on

SAMPLES = 4000


def program(x, n):
    return {"mean": x / n if n >= 2 else None}


def likelihood(observation):
    case = Question(program, {"x": pv.Normal(30, sd=5), "n": pv.DiscreteUniform(0, 4)}, secret="x").case()
    return case, as_observation({"mean": observation}).likelihood(case.output)


def agreeing(observation):
    """Return inputs, which of them agree with the conditions of an observation, and the log weights."""
    case, seen = likelihood(observation)
    roots = [case.inputs[name].node for name in ("x", "n")]
    rng = np.random.default_rng(1)
    x, n = rng.normal(30, 5, SAMPLES), rng.integers(0, 5, SAMPLES)
    nodes = [*seen.conditions, *seen.log_weights]
    arrays = evaluate_on(nodes, dict(zip(roots, (x, n), strict=True)), SAMPLES)
    held = np.logical_and.reduce(arrays[: len(seen.conditions)])
    return x, n, held, arrays[len(seen.conditions) :]


CASES = {
    "none": (pv.equals(None), lambda m: m is None),
    "between": (pv.between(9, 11), lambda m: m is not None and 9 <= m <= 11),
    "near": (pv.near(10, within=0.5), lambda m: m is not None and 9.5 <= m <= 10.5),
    "such_that": (pv.such_that(lambda m: m is not None and m > 10), lambda m: m is not None and m > 10),
    "missing": (pv.such_that(lambda m: m is None), lambda m: m is None),
    "either": (pv.such_that(lambda m: m is None or m > 12), lambda m: m is None or m > 12),
    "early": (pv.such_that(lambda m: m > 12 if m is not None else True), lambda m: m is None or m > 12),
}


@pytest.mark.parametrize("name", CASES)
def test_conditions_hold_where_the_plain_output_agrees(name):
    observation, agrees = CASES[name]
    x, n, held, weights = agreeing(observation)
    expected = [agrees(program(a, int(b))["mean"]) for a, b in zip(x, n, strict=True)]
    np.testing.assert_array_equal(held, expected)
    assert not weights


@pytest.mark.parametrize("name", CASES)
def test_nothing_in_them_is_called_sample_by_sample(name):
    _, seen = likelihood(CASES[name][0])
    behind = ancestors(seen.conditions)
    assert not any(node.operation.opaque or isinstance(node.operation, Maybe) for node in behind)


def test_noise_weighs_the_numbers_that_are_there():
    x, n, held, (weights,) = agreeing(pv.noisy(10, sd=2))
    np.testing.assert_array_equal(held, n >= 2)
    apart = (x[held] / n[held] - 10) / 2
    np.testing.assert_allclose(weights[held], -0.5 * apart**2 - np.log(2 * np.sqrt(2 * np.pi)), rtol=1e-9)


def test_an_exact_value_is_a_point_of_the_number():
    case, seen = likelihood(pv.equals(10.5))
    present, value = case.output["mean"].node.parents
    assert seen.conditions == (present,)
    assert seen.points == ((value, 10.5),)


def test_another_text_is_impossible():
    _, seen = likelihood(pv.equals("n/a"))
    assert seen.impossible == "the output is a number, never 'n/a'"


def test_exact_values_are_solved_for():
    """P(n = k | x / n = 10) is proportional to the density of x at 10 k, times k, for k = 2, 3, 4."""
    attack = pv.Attack(program, {"x": pv.Normal(30, sd=5), "n": pv.DiscreteUniform(0, 4)}, secret="n")
    result = attack.run(observe={"mean": 10.0}, engine="sample", samples=20_000, seed=1)
    sizes = np.array([2, 3, 4])
    weights = sizes * np.exp(-0.5 * ((10 * sizes - 30) / 5) ** 2)
    for size, share in zip(sizes, weights / weights.sum(), strict=True):
        found = result.posterior.probability(lambda n, size=size: n == size)
        assert found.low - 0.01 <= share <= found.high + 0.01


def hidden(x, n):
    return eval("made(x, n)", {"made": program, "x": x, "n": n})


@pytest.mark.parametrize("name", ["none", "between", "such_that"])
def test_posteriors_are_those_of_plain_calls(name):
    found = []
    for one in (program, hidden):
        attack = pv.Attack(one, {"x": pv.Normal(30, sd=5), "n": pv.DiscreteUniform(0, 4)}, secret="x")
        result = attack.run(observe={"mean": CASES[name][0]}, engine="sample", samples=3000, seed=1)
        found.append((attack.lifting.tier, result.posterior.mean()))
    assert [tier for tier, _ in found] == ["traced", "python"]
    (_, first), (_, second) = found
    assert abs(first.value - second.value) < 2 * (first.high - first.low)
