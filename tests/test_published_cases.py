"""Every published case whose measure is a probability or a moment, through the sampling engine."""

import pytest

import privug as pv
from oracles import cases

MEASURES = {
    "posterior_probability",
    "evidence_probability",
    "output_probability(o < 55)",
    "posterior_mean",
    "posterior_std",
}
SAMPLES = 2_000
SELECTED = [name for name, case in cases.CASES.items() if case["measure"] in MEASURES]


def measured(case) -> pv.Estimate:
    attack = cases.attack(case)
    result = attack.run(observe=cases.observation(case), engine="sample", samples=SAMPLES, seed=3)
    match case["measure"]:
        case "posterior_probability":
            return result.belief(cases.query(case)).probability(lambda holds: holds)
        case "evidence_probability":
            return result.diagnostics.evidence
        case "output_probability(o < 55)":
            return result.prediction.probability(lambda o: o < 55)
        case "posterior_mean":
            return result.posterior.mean()
        case "posterior_std":
            return result.posterior.std()
    raise AssertionError(case["measure"])


RARE = {"dkbp-bday12-false-true"}  # takes millions of draws


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in RARE else ()) for name in SELECTED]
)
def test_sampling_agrees_with_the_published_value(name):
    case = cases.CASES[name]
    # 15 cases at 95 % would miss one by chance in half of all seeds: twice the interval is 99.99 %.
    assert case["expected"] in measured(case).widened(2)


def test_no_case_is_left_out():
    assert len(SELECTED) == 15
