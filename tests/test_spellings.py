"""One question, many spellings, one answer: the same numbers, the same engine, work within a factor of ten."""

import math

import numpy as np
import pytest
from scipy.stats import binom, norm

import privug as pv
from privug.inference import workload
from spellings import Spelled, Spelling
from tiers import tiered

SIZES = (1, 2, 3, 7, 8, 20, 100)
NOTHING = 5e7  # elementary operations, a twentieth of a second: what takes less takes no time
FEW = 5  # spellings of each question in the fast suite, other ones for each size
NORMAL, DIE = (lambda: pv.Normal(0, sd=1.5)), (lambda: pv.DiscreteUniform(-1, 3))
ABOVE = float(norm.sf(1 / 1.5))


def of_sizes(statistic, draw, seen, truth):
    digits = 1 if draw is NORMAL else 3  # so that no mean of dice is a tie, which Python and NumPy round otherwise
    return [(Spelled(statistic, draw, n, seen(n), digits), truth(n)) for n in SIZES if seen(n) is not None]


def rounded_mean(n):
    return float(np.diff(norm.cdf([0.25, 0.35], scale=1.5 / math.sqrt(n)))[0])


def rounded_largest(n):
    low, high = norm.cdf([1.25, 1.35], scale=1.5)
    return float(high**n - low**n)


def mean_of_dice(n):
    """The probability that the mean of dice is 1, by convolution."""
    law = np.ones(1)
    for _ in range(n):
        law = np.convolve(law, np.full(5, 0.2))
    return float(law[2 * n])


QUESTIONS = [
    *of_sizes("mean", NORMAL, lambda n: 0.3, rounded_mean),
    *of_sizes("mean", DIE, lambda n: 1.0, mean_of_dice),
    *of_sizes("count", NORMAL, lambda n: min(n, 2), lambda n: float(binom.pmf(min(n, 2), n, ABOVE))),
    *of_sizes("count", DIE, lambda n: min(n, 2), lambda n: float(binom.pmf(min(n, 2), n, 0.4))),
    *of_sizes("largest", NORMAL, lambda n: 1.3, rounded_largest),
    *of_sizes("largest", DIE, lambda n: 2, lambda n: 0.8**n - 0.6**n),
    *of_sizes("any", NORMAL, lambda n: True, lambda n: 1 - (1 - ABOVE) ** n),
    *of_sizes("any", DIE, lambda n: True, lambda n: 1 - 0.6**n),
    *of_sizes("without one", NORMAL, lambda n: (0.3, 0.1) if n > 1 else None, lambda n: None),
]


def named(question: Spelled) -> str:
    kind = "continuous" if question.draw is NORMAL else "discrete"
    return f"{question.statistic}-{kind}-{question.size}"


def answered(question: Spelled, spelling: Spelling) -> tuple[float, float, str, float]:
    """Return evidence, a belief about the first row, the engine, and the work that was counted."""
    attack = question.attack(spelling)
    with workload.limited(None) as work:
        inner = []
        sound = workload.Effort.spend
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(workload.Effort, "spend", lambda self, n: (inner.append(n), sound(self, n))[1])
            result = attack.run(question.observation(spelling), samples=1000)
    belief = result.posterior.probability(lambda value: value > 1)
    return result.diagnostics.evidence.value, belief.value, result.engine, work.spent + sum(inner)


def check(question: Spelled, truth: float | None, spellings: list[Spelling]) -> None:
    found = {spelling: answered(question, spelling) for spelling in spellings}
    evidence, belief, engine, _ = next(iter(found.values()))
    assert engine.startswith("exact")
    if truth is not None:
        assert evidence == pytest.approx(truth, rel=1e-8, abs=1e-15)
    for spelling, (own_evidence, own_belief, own_engine, _) in found.items():
        assert own_evidence == pytest.approx(evidence, rel=1e-8, abs=1e-15), spelling
        assert own_belief == pytest.approx(belief, rel=1e-7, abs=1e-9), spelling
        assert own_engine.startswith("exact"), spelling
    work = [spent for *_, spent in found.values()]
    assert max(work) <= 10 * max(min(work), NOTHING)


@pytest.mark.parametrize(
    ("question", "truth"),
    tiered(QUESTIONS, lambda asked: asked[0].size == max(SIZES) and asked[0].draw is NORMAL),
    ids=lambda value: named(value) if isinstance(value, Spelled) else "",
)
def test_some_spellings_agree(question, truth):
    everything = list(question.spellings())
    step = max(1, len(everything) // FEW)
    start = (7 * question.size + len(question.statistic)) % step
    check(question, truth, everything[start::step][:FEW])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("question", "truth"), QUESTIONS, ids=lambda value: named(value) if isinstance(value, Spelled) else ""
)
def test_all_spellings_agree(question, truth):
    check(question, truth, list(question.spellings()))
