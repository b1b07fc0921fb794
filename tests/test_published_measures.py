"""Every published case whose measure is one of a finite joint: on the exact joint of the case."""

import math

import numpy as np
import pytest

import privug as pv
from oracles import cases
from oracles.enumeration import exact_joint, is_finite
from privug.leakage.channel import bayes_capacity, epsilon, shannon_capacity
from privug.leakage.finite import exact_information, pairs_of
from privug.leakage.information import mutual_information
from privug.leakage.strategy import Trial, Tries
from privug.leakage.vulnerability import (
    bayes_risk,
    bayes_vulnerability,
    g_vulnerability,
    guess_or_abstain,
    max_posterior_belief,
    min_entropy_leakage,
    posterior_guessing_entropy,
)

MEASURES = {
    "posterior_bayes_vulnerability": bayes_vulnerability,
    "bayes_risk": bayes_risk,
    "min_entropy_leakage": min_entropy_leakage,
    "max_posterior_belief": max_posterior_belief,
    "shannon_capacity": shannon_capacity,
    "mult_bayes_capacity": bayes_capacity,
    "posterior_guessing_entropy": posterior_guessing_entropy,
    "smallest_epsilon": epsilon,
    "smallest_epsilon(adjacent |c-c'|=1)": lambda joint: epsilon(joint, lambda c, d: abs(c - d) == 1),
    "g_vulnerability_posterior": lambda joint: g_vulnerability(joint, guess_or_abstain(5)),
    "mutual_information": mutual_information,
}
SELECTED = [name for name, case in cases.CASES.items() if case["measure"] in MEASURES and is_finite(case)]


@pytest.mark.parametrize("name", SELECTED)
def test_exact(name):
    case = cases.CASES[name]
    estimate = MEASURES[case["measure"]](exact_joint(case))
    assert estimate.exact
    assert estimate.value == pytest.approx(case["expected"], abs=max(1e-9, case["tolerance"]))


def test_no_case_is_left_out():
    left = {name for name, case in cases.CASES.items() if case["measure"] in MEASURES} - set(SELECTED)
    assert left == {"privug-P81-mi", "laplace-binary-eps1-risk", "laplace-binary-eps1-mi"}  # these have densities
    assert len(SELECTED) == 35


@pytest.mark.parametrize("name", [name for name in SELECTED if cases.CASES[name]["measure"] == "mutual_information"])
def test_enumeration_agrees_with_the_program(name):
    """The joint that the sampling engine draws from is the enumerated one."""
    case = cases.CASES[name]
    drawn = cases.attack(case).run(engine="sample", samples=300, seed=1).joint
    expected = exact_joint(case).output
    for value in expected.batch.factorized()[1][:3]:
        chance = expected.probability(lambda output, value=value: output == value).value
        assert chance in drawn.output.probability(lambda output, value=value: output == value).widened(3)


def observed(case) -> pv.Joint:
    secrets, outputs = zip(*case["prior"]["samples"], strict=True)
    return pv.Joint.from_samples(list(secrets), list(outputs))


def test_plug_in_information_of_thirteen_observations():
    case = cases.CASES["leakiest-mod3-samples-plugin"]
    assert exact_information(pairs_of(observed(case)))[0] == pytest.approx(case["expected"], abs=1e-12)


def test_corrected_information_of_thirteen_observations():
    """The first-order correction is far off for so few samples; Privug's interval holds the truth instead."""
    case = cases.CASES["leakiest-mod3-samples-corrected"]
    joint = observed(case)
    pairs = pairs_of(joint)
    terms = (len(pairs.secrets) - 1) * (len(pairs.outputs) - 1)
    corrected = exact_information(pairs)[0] - terms / (2 * len(joint.secret.batch) * math.log(2))
    assert corrected == pytest.approx(case["expected"], abs=1e-9)
    truth = cases.CASES["leakiest-mod3-mi"]["expected"]
    assert truth > corrected + 0.5
    assert truth in mutual_information(joint)


def test_derived_measures():
    """What F-BLEAU derives from the risk and from the risk of guessing without the output."""
    case = cases.CASES["fbleau-derived-measures"]
    risk, random_guessing = case["prior"]["bayes_risk"], case["prior"]["random_guessing"]
    trial = Trial.exactly(1 - risk, 1 - random_guessing, Tries(1))
    derived = [trial.ratio().value, trial.difference().value, trial.security().value]
    assert [*derived, math.log2(derived[0])] == pytest.approx(case["expected"], abs=1e-12)


def test_density_cases_are_close_on_fine_cells():
    """A secret bit behind Laplace noise, with the output in cells of 0.001."""
    edges = np.arange(-40, 41.0005, 0.001)

    def cumulative(x):
        return np.where(x < 0, np.exp(-np.abs(x)) / 2, 1 - np.exp(-np.abs(x)) / 2)

    rows = np.array([np.diff(cumulative(edges - secret)) for secret in (0, 1)])
    joint = pv.Joint.from_channel([0.5, 0.5], rows / rows.sum(axis=1, keepdims=True))
    risk, information = (cases.CASES[f"laplace-binary-eps1-{name}"]["expected"] for name in ("risk", "mi"))
    assert bayes_risk(joint).value == pytest.approx(risk, abs=1e-9)
    assert mutual_information(joint).value == pytest.approx(information, abs=1e-6)
