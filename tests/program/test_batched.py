"""Programs that work on a leading sample axis."""

import numpy as np
import pytest

import privug as pv


def table(rows=4):
    return pv.Records(rows, lambda i: pv.Row(zip=pv.Choice(["a", "b"]), age=pv.Uniform(0, 100), weight=1.0 + i))


def test_columns_are_samples_by_rows():
    @pv.batched
    def program(records, scale):
        assert records.age.shape == (len(records.age), 4)
        return (records.age * records.weight * (records["zip"] == "a")).sum(axis=1) * scale

    def plain(records, scale):
        return sum(row.age * row.weight * (row.zip == "a") for row in records) * scale

    attack = pv.Attack(program, {"records": table(), "scale": 2.0}, secret=lambda records: plain(records, 2.0))
    joint = attack.run(samples=500, seed=1).joint
    assert attack.lifting.tier == "batched"
    assert np.allclose(joint.secret.batch.numbers(), joint.output.batch.numbers(), rtol=1e-12)


def test_tuples_and_dicts_of_arrays():
    @pv.batched
    def program(x):
        return {"total": x.sum(axis=1), "both": (x.min(axis=1), x[:, 0] > 0.5)}

    attack = pv.Attack(program, {"x": pv.Array(pv.Uniform(0, 1), 3)}, secret=lambda x: x)
    joint = attack.run(samples=200, seed=1).joint
    for x, output in zip(joint.secret.batch.values(), joint.output.batch.values(), strict=True):
        assert output == {"total": pytest.approx(x.sum()), "both": (x.min(), x[0] > 0.5)}


def test_conditioning_and_random_sizes():
    @pv.batched
    def oldest(records):
        return np.floor(records.age.max(axis=1))

    records = pv.Records(pv.DiscreteUniform(1, 3), pv.Row(age=pv.Uniform(0, 10)))
    result = pv.Attack(oldest, {"records": records}, secret=len).run(observe=pv.equals(0), samples=3000, seed=1)
    truth = np.array([0.1, 0.01, 0.001])
    assert truth[0] / truth.sum() in result.posterior.probability(lambda n: n == 1).widened(2)


def test_mixing_samples_is_noticed():
    program = pv.batched(lambda x: x - x.mean())
    with pytest.raises(pv.ProgramError, match="mixes samples"):
        pv.Attack(program, {"x": pv.Uniform(0, 1)}, secret="x").run()


def test_wrong_shapes_are_noticed():
    for wrong in (lambda x: x.sum(), lambda x: 3.0, lambda x: x[:2]):
        with pytest.raises(pv.ProgramError, match="must return arrays"):
            pv.Attack(pv.batched(wrong), {"x": pv.Uniform(0, 1)}, secret="x").run()
    with pytest.raises(pv.ArgumentError, match="function"):
        pv.batched(3)
