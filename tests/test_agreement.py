"""The exact engine against the sampler on random questions: two ways to the same numbers that share little code.

The intervals of the sampler are widened by two, to about four standard errors: of a thousand quantities compared, less
than one in ten sets of questions would have one outside by chance, and the questions are always the same.
"""

import warnings
from functools import cache

import numpy as np
import pytest

import privug as pv
from agreement_questions import Posed, posed

FAST, ALL, ENOUGH = 24, 200, 120
SAMPLES = 4000


@cache
def answered(number: int) -> "tuple[Posed, pv.Result | None]":
    """Pose a question, and answer it exactly if that is possible."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pv.LiftingWarning)
        question = posed(number)
        try:
            return question, question.attack.run(observe=question.observation, engine="exact")
        except pv.UnsuitableEngine:
            return question, None


def agrees(exact, sampled):
    return float(exact) in sampled.widened(2) or float(exact) == pytest.approx(float(sampled), rel=1e-9)


def compare(what, exact, sampled):
    numbers = sampled.batch.numbers()
    if numbers is None:
        shares = exact.distribution()
        for value, share in list(sampled.distribution().items())[:6]:
            assert agrees(shares.get(value, 0.0), share), f"{what}: P({value})"
        return
    assert agrees(exact.mean(), sampled.mean()), f"{what}: mean"
    # Between two values, so that rounding does not matter.
    distinct = np.unique(np.asarray(numbers, float))
    low, high = distinct[(len(distinct) - 1) // 2], distinct[len(distinct) // 2]
    cut = float((low + high) / 2) if high > low else float(low) + 1e-6 * max(1.0, abs(float(low)))
    assert agrees(exact.probability(lambda v: v <= cut), sampled.probability(lambda v: v <= cut)), f"{what}: P(<={cut})"


def check(number):
    question, exact = answered(number)
    if exact is None:
        return
    sampled = question.attack.run(observe=question.observation, engine="sample", samples=SAMPLES, seed=number)
    compare("posterior", exact.posterior, sampled.posterior)
    compare("output", exact.prediction, sampled.prediction)
    assert agrees(exact.diagnostics.evidence, sampled.diagnostics.evidence), "evidence"


@pytest.mark.parametrize("number", range(FAST))
def test_exact_and_sampled_answers_agree(number):
    check(number)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(FAST, ALL))
def test_more_exact_and_sampled_answers_agree(number):
    check(number)


def test_some_questions_are_answered_exactly():
    assert sum(answered(number)[1] is not None for number in range(FAST)) >= FAST * ENOUGH // ALL


@pytest.mark.slow
def test_most_questions_are_answered_exactly():
    assert sum(answered(number)[1] is not None for number in range(ALL)) >= ENOUGH
