"""The rules that every engine keeps."""

import numpy as np
import pytest

import privug as pv
from privug.inference.engines import ENGINES


def attack():
    return pv.Attack(
        lambda x, y: x + y, prior={"x": pv.DiscreteUniform(0, 4), "y": pv.DiscreteUniform(0, 4)}, secret="x"
    )


@pytest.mark.parametrize("engine", ENGINES)
class TestEveryEngine:
    def test_gives_the_posterior(self, engine):
        result = attack().run(observe=pv.equals(6), engine=engine, samples=4000, seed=1)
        assert result.engine.startswith(engine)
        assert set(result.posterior.distribution()) == {2, 3, 4}
        assert all(1 / 3 in share.widened(2) for share in result.posterior.distribution().values())

    def test_knows_how_likely_the_observation_was(self, engine):
        result = attack().run(observe=pv.equals(6), engine=engine, samples=4000, seed=1)
        assert 3 / 25 in result.diagnostics.evidence.widened(2)

    def test_is_reproducible(self, engine):
        first, second = (attack().run(observe=pv.equals(6), engine=engine, samples=500, seed=9) for _ in range(2))
        assert np.array_equal(first.posterior.batch.numbers(), second.posterior.batch.numbers())

    def test_refuses_the_impossible(self, engine):
        with pytest.raises(pv.ImpossibleObservation):
            attack().run(observe=pv.equals(9), engine=engine, samples=100, budget=100_000)

    def test_answers_further_queries_about_the_same_samples(self, engine):
        result = attack().run(observe=pv.equals(6), engine=engine, samples=500, seed=1)
        total = result.belief(lambda x, y: x + y)
        assert set(total.distribution()) == {6}

    def test_refuses_to_answer_from_too_few_samples(self, engine):
        if engine == "exact":
            assert float(attack().run(observe=pv.equals(8), engine=engine, budget=1).posterior.mean()) == 4.0
            return
        with pytest.raises(pv.InferenceError):
            attack().run(observe=pv.equals(8), engine=engine, samples=10_000, budget=1000)
