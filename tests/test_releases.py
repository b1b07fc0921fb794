"""Typical releases, answered exactly, against draws, closed forms and quadrature that share no code with Privug."""

import json
import math
import warnings
from functools import cache
from pathlib import Path

import pytest

import privug as pv
from oracles.releases import RELEASES
from oracles.releases.beyond import BEYOND
from oracles.releases.kinds import KINDS, LONG, LONG_INFORMATION, LONG_JOINT, NO_JOINT, REFUSED
from tiers import tiered

ORACLES = json.loads((Path(__file__).parent / "oracles" / "releases" / "releases.json").read_text(encoding="utf-8"))
# Of 114 comparisons with draws one would be further away by chance in one of 1,300 sets; and the draws are fixed.
STANDARD_ERRORS = 4.5
CLOSED = 1e-9

CHECKED = {
    "count over 60": 0.0298229062232545,
    "clamped mean with Laplace noise": 0.0199737280671739,
    "mean over a subgroup, suppressed below 2": 0.0300224828981396,
}
"""Information in bits that a third computation found too."""


@cache
def answered(name: str) -> "pv.Result | pv.UnsuitableEngine":
    """Return the exact answer or why there is none."""
    release = RELEASES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pv.LiftingWarning)
        try:
            return release.attack().run(observe=release.observation, engine="exact")
        except pv.UnsuitableEngine as obstacle:
            return obstacle


def exact(name: str) -> pv.Result:
    """Return the exact answer; one that is known to be refused is skipped."""
    found = answered(name)
    if isinstance(found, pv.UnsuitableEngine):
        if name in REFUSED:
            pytest.skip(str(found))
        pytest.fail(str(found))
    return found


def named(*keys: str):
    """Return the releases of which something is known; those whose answer takes long are for the slow suite."""
    names = [name for name in RELEASES if all(key in ORACLES[name] for key in keys)]
    long = {*LONG, *(LONG_INFORMATION if "information" in keys else ())}
    return pytest.mark.parametrize("name", tiered(names, long.__contains__))


@pytest.mark.slow
@named("probability")
def test_agrees_with_draws(name):
    result, oracle = exact(name), ORACLES[name]
    probability = result.posterior.probability(RELEASES[name].query)
    assert probability.exact
    assert abs(float(probability) - oracle["probability"]) <= STANDARD_ERRORS * oracle["probability_error"]
    evidence = float(result.diagnostics.evidence)
    assert abs(evidence - oracle["evidence"]) <= STANDARD_ERRORS * oracle["evidence_error"]


@named("closed_probability")
def test_agrees_with_closed_values(name):
    result, oracle = exact(name), ORACLES[name]
    probability = result.posterior.probability(RELEASES[name].query)
    assert float(probability) == pytest.approx(oracle["closed_probability"], rel=CLOSED)
    assert float(result.diagnostics.evidence) == pytest.approx(oracle["closed_evidence"], rel=CLOSED)


@named("information")
def test_agrees_with_information(name):
    result = exact(name)
    if name in NO_JOINT:
        with pytest.raises(pv.UnsuitableEngine):
            _ = result.joint
        return
    information = pv.leakage.mutual_information(result.joint)
    assert information.exact
    assert float(information) == pytest.approx(ORACLES[name]["information"], rel=CLOSED)


@pytest.mark.parametrize("name", CHECKED)
def test_information_to_ten_digits(name):
    information = pv.leakage.mutual_information(exact(name).joint)
    assert float(information) == pytest.approx(CHECKED[name], rel=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("name", RELEASES)
def test_posterior_is_a_part_of_the_prior(name):
    """P(query and seen) is at most P(query), and likewise for the rest."""
    result = exact(name)
    try:
        before = float(result.prior.probability(RELEASES[name].query))
    except pv.UnsuitableEngine as obstacle:
        pytest.skip(f"before the observation: {obstacle}")
    assert 0 < before < 1
    if "density" not in str(result.diagnostics.evidence):
        after = float(result.posterior.probability(RELEASES[name].query))
        evidence = float(result.diagnostics.evidence)
        assert after * evidence <= before * (1 + CLOSED)
        assert (1 - after) * evidence <= (1 - before) * (1 + CLOSED)


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_say_why(name):
    found = answered(name)
    assert isinstance(found, pv.UnsuitableEngine)
    assert "engine='sample' can" in str(found)


@pytest.mark.slow
@pytest.mark.parametrize("name", NO_JOINT)
def test_joints_that_are_not_known_are_refused(name):
    """One that is known has its mutual information in the docs as exact."""
    with pytest.raises(pv.UnsuitableEngine, match="engine='sample' can"):
        _ = exact(name).joint


@pytest.mark.parametrize("release", BEYOND, ids=lambda release: release.name)
def test_what_is_beyond_is_refused(release):
    """One that is answered exactly deserves oracles."""
    with pytest.raises(pv.UnsuitableEngine, match="engine='sample' can"):
        release.attack().run(observe=release.observation, engine="exact")


@pytest.mark.slow
def test_all_but_the_refused_are_exact():
    refused = {name: found for name in RELEASES if isinstance(found := answered(name), pv.UnsuitableEngine)}
    told = "\n".join(f"{name}: {obstacle}" for name, obstacle in refused.items())
    assert set(refused) == set(REFUSED), told


def test_oracles_agree_with_each_other():
    """Draws and closed forms are two ways to the same numbers."""
    for name, oracle in ORACLES.items():
        for what in ("probability", "evidence"):
            if what in oracle and f"closed_{what}" in oracle:
                apart = abs(oracle[what] - oracle[f"closed_{what}"])
                assert apart <= STANDARD_ERRORS * oracle[f"{what}_error"], f"{name}: {what}"


def test_every_release_has_an_oracle():
    assert set(ORACLES) == set(RELEASES)
    assert len(RELEASES) >= 44
    assert sum("closed_probability" in oracle for oracle in ORACLES.values()) >= 16
    assert sum("information" in oracle for oracle in ORACLES.values()) >= 11
    for oracle in ORACLES.values():
        assert "probability" in oracle or "closed_probability" in oracle
        assert all(math.isfinite(number) for number in oracle.values())
        if "evidence" in oracle:
            assert 1e-4 <= oracle["evidence"] <= 0.53


def test_every_release_is_of_one_kind():
    named = [name for names in KINDS.values() for name in names]
    assert sorted(named) == sorted(RELEASES)
    apart = [*REFUSED, *NO_JOINT, *LONG_JOINT]
    assert set(apart) <= set(RELEASES)
    assert len(set(apart)) == len(apart)


def test_programs_are_not_copies():
    assert len({release.program for release in RELEASES.values()}) == len(RELEASES)
