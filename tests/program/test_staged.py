"""Programs in two stages: each is lifted on its own, and what the first returns is taken apart for the second."""

import numpy as np
import pytest

import privug as pv
from privug.model.plan import Plan
from privug.program.calls import Opaque
from privug.program.lifting import apply
from privug.program.logic import ambient_rng
from privug.program.staged import Staged


def with_noise(value):
    return value + pv.sample(pv.Normal(0, sd=1))


def spelled(x):
    return [x, hash(x)][0]  # random variables have no hash: it is called


class Hidden(Opaque):
    def __call__(self, x):
        return x


@pytest.mark.parametrize(("program", "tier"), [(lambda x: 2 * x, "traced"), (spelled, "python"), (Hidden(), "python")])
def test_the_noise_of_a_release_has_a_density_in_every_tier(program, tier):
    staged = Staged(program, with_noise)
    result = pv.Attack(staged, {"x": pv.Uniform(0, 1)}, "x", observe=pv.equals(0.25)).run(samples=500, seed=1)
    assert result.lifting.tier == tier
    assert result.diagnostics.evidence.unit == "density"


def test_the_reason_is_that_of_the_program():
    lifting = apply(Staged(spelled, lambda value: f"{value}"), [pv.Uniform(0, 1)]).lifting
    assert lifting.tier == "python"
    assert "unhashable" in lifting.reason


def test_structures_of_plain_calls_are_taken_apart():
    staged = Staged(
        lambda x: {"a": [spelled(x), 1], "b": np.array([spelled(x)] * 2)}, lambda parts: parts["a"][0] + parts["b"][1]
    )
    output = apply(staged, [pv.Uniform(0, 1)]).output
    assert output.node.dtype == np.float64
    joint = pv.Attack(staged, {"x": pv.Uniform(0, 1)}, "x").run(samples=100, seed=1).joint
    np.testing.assert_allclose(joint.output.batch.numbers(), 2 * joint.secret.batch.numbers())


def test_stages_inside_a_traced_program():
    staged = Staged(lambda xs: sum([x for x in xs if x > 1]), lambda total: 2 * total if total > 3 else total)
    with pytest.warns(pv.RepeatedQuantityWarning):
        attack = pv.Attack(lambda xs: staged(xs) + 0, {"xs": [pv.DiscreteUniform(0, 3)] * 2}, lambda xs: xs[0])
    result = attack.run()
    assert result.lifting.tier == "traced"
    assert result.prediction.probability(lambda total: total == 12).value == pytest.approx(0.25)


@pytest.mark.parametrize("distribution", [pv.Laplace(0, 2.0), pv.Choice(["a", "b"], p=[0.3, 0.7]), pv.Poisson(3)])
def test_plain_draws_are_those_of_the_model(distribution):
    token = ambient_rng.set(np.random.default_rng(5))
    try:
        drawn = [pv.sample(distribution) for _ in range(20)]
    finally:
        ambient_rng.reset(token)
    rng = np.random.default_rng(5)
    arrays = [Plan([distribution.node]).run(1, rng)[0][0] for _ in range(20)]
    levels = distribution.node.levels
    assert drawn == [levels[code] if levels else code for code in arrays]
