"""Random questions through `auto`, against calls of the program alone: no wrong answer, and none that never comes."""

import math
import warnings

import pytest

import privug as pv
from random_questions import RandomQuestion, restored, written

DEVIATIONS = 5.5
FAST, ALL = 60, 2_000


def check(question: RandomQuestion) -> str:
    """Hold an answer against the truth; return the engine that gave it."""
    seen = question.seen()
    evidence, share, draws = question.truth(seen)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pv.LiftingWarning)
        result = question.attack().run(restored(seen, question.source), samples=2000, seed=1)
    for estimate, truth, worth in (
        (result.diagnostics.evidence, evidence, draws),
        (result.posterior.probability(lambda secret: secret), share, draws * evidence),
    ):
        half = (estimate.high - estimate.low) / 2 / 1.96 if not estimate.exact else 0.0
        spread = math.sqrt(max(truth * (1 - truth), 1 / worth) / worth) if worth else 0.0
        room = DEVIATIONS * math.hypot(half, spread) + 1e-9 + (10 / worth if worth else 0.0)
        room += 10 / 2000 if not estimate.exact else 0.0
        assert abs(estimate.value - truth) <= room, f"{question}: {estimate} where {truth:.6g} is right"
    return result.engine


@pytest.mark.parametrize("seed", range(FAST))
def test_random_questions(seed):
    check(written(seed))


@pytest.mark.slow
@pytest.mark.parametrize("start", range(FAST, ALL, 97))
def test_two_thousand_random_questions(start):
    engines = [check(written(seed)) for seed in range(start, min(start + 97, ALL))]
    assert sum(engine.startswith("exact") for engine in engines) >= 0.8 * len(engines)
