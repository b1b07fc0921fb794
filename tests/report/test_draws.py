"""Results in the terms of ArviZ and PyMC."""

import numpy as np
import pytest

import privug as pv
from privug.report.draws import observed_values

pytest.importorskip("arviz")

PRIOR = {"x": pv.Normal(0, sd=1), "y": pv.Normal(0, sd=2), "colour": pv.Choice(["red", "blue"])}


def curved(x, y, colour):
    return np.exp(x) + y * y


def test_samples_and_inputs_stay_together():
    result = pv.Attack(curved, PRIOR, "x").run(pv.near(6, within=0.5), engine="sample", samples=500, seed=1)
    data = result.to_arviz()
    posterior = data.posterior
    assert dict(posterior.sizes) == {"chain": 1, "draw": 500}
    assert sorted(posterior.data_vars) == ["output", "secret", "x", "y"]
    assert np.array_equal(posterior["secret"], posterior["x"])
    assert np.allclose(np.exp(posterior["x"]) + posterior["y"] ** 2, posterior["output"])
    assert data.observed_data["output"].values.tolist() == [6.0]
    assert abs(float(data.prior["secret"].mean())) < 0.1


def test_weights_become_repetitions():
    attack = pv.Attack(lambda x: x**3, {"x": pv.Normal(0, sd=1)}, "x")
    result = attack.run(pv.noisy(1.0, sd=0.3), engine="sample", samples=5000, seed=1)
    drawn = result.to_arviz().posterior["secret"].values
    assert drawn.size == len(result.posterior.batch)
    assert float(drawn.mean()) in result.posterior.mean().widened(3)


def test_an_exact_answer_is_drawn_from():
    result = pv.Attack(lambda x, y: x + y, {"x": pv.Normal(0, sd=1), "y": pv.Normal(0, sd=1)}, "x").run(pv.equals(2.0))
    secret = result.to_arviz().posterior["secret"].values
    assert secret.shape == (1, 10_000)
    assert abs(secret.mean() - 1.0) < 4 * np.sqrt(0.5 / 10_000)


def test_populations_and_tables_of_random_size():
    table = pv.Records(1 + pv.Binomial(3, 0.5), lambda i: pv.Row(age=pv.Normal(50, sd=5)))
    attack = pv.Attack(lambda records: max(r.age for r in records), {"records": table}, lambda records: records[0].age)
    data = attack.run(pv.between(60, 90), engine="rare", samples=500, seed=1).to_arviz()
    assert sorted(data.posterior.data_vars) == ["output", "secret"]
    assert float(data.posterior["output"].min()) >= 60


def test_only_numbers_are_observed_values():
    assert observed_values(None) == {}
    assert observed_values(pv.equals("red")) == {}
    assert float(observed_values(pv.noisy(2.0, sd=1))["output"]) == 2.0
    assert observed_values(pv.between(1, 2))["output"].tolist() == [1.0, 2.0]


def test_the_pymc_model_can_be_built_on():
    pytest.importorskip("pymc")
    attack = pv.Attack(
        lambda x, y: x + y, {"x": pv.Normal(0, sd=1), "y": pv.Laplace(0, 1)}, "x", observe=pv.noisy(1, sd=1)
    )
    model = attack.to_pymc()
    assert sorted(variable.name for variable in model.free_RVs) == ["x", "y"]
    assert len(model.potentials) == 1
