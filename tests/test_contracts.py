"""The rules that every engine keeps."""

from functools import cache

import numpy as np
import pytest

import privug as pv
from privug.inference.engines import GRADIENTS, NAMES

ENGINES = [name for name in NAMES if name != "auto"]
SAMPLES = {"rare": 400}


def attack():
    return pv.Attack(
        lambda x, y: x + y, prior={"x": pv.DiscreteUniform(0, 4), "y": pv.DiscreteUniform(0, 4)}, secret="x"
    )


def asked(engine: str, seed: int = 1) -> pv.Result:
    return attack().run(observe=pv.equals(6), engine=engine, samples=SAMPLES.get(engine, 2000), seed=seed)


answered = cache(asked)


@pytest.fixture(params=ENGINES)
def engine(request):
    if request.param in GRADIENTS:
        pytest.importorskip(request.param)
    return request.param


def test_five_engines_are_held_to_the_rules():
    assert set(ENGINES) == {"exact", "sample", "rare", "pymc", "numpyro"}


class TestEveryEngine:
    def test_gives_the_posterior(self, engine):
        result = answered(engine)
        assert result.engine.startswith(engine)
        assert set(result.posterior.distribution()) == {2, 3, 4}
        assert all(1 / 3 in share.widened(2) for share in result.posterior.distribution().values())

    def test_knows_how_likely_the_observation_was(self, engine):
        assert 3 / 25 in answered(engine).diagnostics.evidence.widened(2)

    def test_is_reproducible(self, engine):
        first, second = answered(engine), asked(engine)
        assert np.array_equal(first.posterior.batch.numbers(), second.posterior.batch.numbers())

    def test_refuses_the_impossible(self, engine):
        # A search knows only that it came to the end of its budget.
        with pytest.raises(pv.TooFewSamples if engine == "rare" else pv.ImpossibleObservation):
            attack().run(observe=pv.equals(9), engine=engine, samples=100, budget=100_000)

    def test_answers_further_queries_about_the_same_samples(self, engine):
        total = answered(engine).belief(lambda x, y: x + y)
        assert set(total.distribution()) == {6}

    def test_refuses_to_answer_from_too_few_samples_or_needs_none(self, engine):
        try:
            result = attack().run(observe=pv.equals(8), engine=engine, samples=10_000, budget=1000)
        except pv.InferenceError:
            assert engine != "exact"
        else:
            assert float(result.posterior.mean()) == 4.0
            assert result.posterior.effective_samples >= 100
