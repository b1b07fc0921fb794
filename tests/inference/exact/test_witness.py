"""Draws hold exact answers to account: broken solvers are caught, sound ones are not disturbed."""

import dataclasses

import numpy as np
import pytest

import privug as pv
from privug.inference import workload
from privug.inference.exact import engine
from privug.inference.exact.rows import solver

REAL = engine.contradiction  # before a fixture makes failures of contradictions


def total(x, y):
    return x + y


def chosen(c, a, b):
    return (a if c else b + 10) > -3


ADDED = {"x": pv.Uniform(0, 100), "y": pv.Normal(0, sd=1)}
TWO_PEAKS = {"c": pv.Bernoulli(0.3), "a": pv.Normal(0, sd=1), "b": pv.Normal(0, sd=1)}


@pytest.fixture
def served(monkeypatch):
    """Contradictions are what they are to a user: another engine serves."""
    monkeypatch.setattr(engine, "contradiction", REAL)


def a_mass_off_by_one_per_cent(monkeypatch):
    sound = solver._evidence
    monkeypatch.setattr(solver, "_evidence", lambda value, error, density: sound(1.01 * value, error, density))


def a_missed_peak(monkeypatch):
    sound = solver.settled
    monkeypatch.setattr(solver, "settled", lambda pieces: sound(pieces)[:1])
    monkeypatch.setattr(solver, "check_total", lambda settings, total, error: None)  # which would see it, too


def a_false_zero(monkeypatch):
    def nothing(pieces):
        raise pv.ImpossibleObservation("this observation has probability zero")

    monkeypatch.setattr(solver, "evidence", nothing)


BROKEN = {
    "a mass off by one per cent": (a_mass_off_by_one_per_cent, total, ADDED, "x", pv.near(40, within=0.05), 0.001),
    "a missed peak": (a_missed_peak, chosen, TWO_PEAKS, "c", pv.equals(True), 0.3 * 0.99865010196837 + 0.7),
    "a false zero": (a_false_zero, total, ADDED, "x", pv.between(40, 60), 0.2),
}


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.usefixtures("served")
def test_a_broken_solver_is_caught_and_the_next_engine_serves(name, monkeypatch):
    fault, program, prior, secret, seen, truth = BROKEN[name]
    attack = pv.Attack(program, prior, secret)
    assert attack.run(seen).engine == "exact (sums)"
    fault(monkeypatch)
    result = attack.run(seen, samples=2000)
    assert result.engine == "sample"
    assert "draws of the model contradict its answer" in result.diagnostics.chosen_because
    evidence = result.diagnostics.evidence
    assert evidence.low - 1e-9 <= truth <= evidence.high + 1e-9
    with pytest.raises(pv.UnsuitableEngine, match="contradict"):
        attack.run(seen, engine="exact")


@pytest.mark.parametrize("name", BROKEN)
def test_in_tests_a_contradiction_is_a_failure_with_the_question_in_it(name, monkeypatch):
    fault, program, prior, secret, seen, _ = BROKEN[name]
    fault(monkeypatch)
    with pytest.raises(pytest.fail.Exception, match=program.__name__):
        pv.Attack(program, prior, secret).run(seen)


@pytest.mark.usefixtures("served")
def test_a_belief_about_the_output_is_held_to_account_too(monkeypatch):
    sound = solver._output

    def moved(settings, output):
        belief = sound(settings, output)
        return dataclasses.replace(pv.Belief.of_curve(belief.curve.affine(1.0, 20.0)))

    monkeypatch.setattr(solver, "_output", moved)
    assert pv.Attack(total, ADDED, "x").run(samples=2000).engine == "sample"


@pytest.mark.usefixtures("served")
def test_numerics_that_fail_are_a_refusal(monkeypatch):
    def overflowing(pieces):
        return float(np.exp(np.array([1e4]))[0])

    monkeypatch.setattr(solver, "evidence", overflowing)
    result = pv.Attack(total, ADDED, "x").run(pv.between(40, 60), samples=2000)
    assert result.engine == "sample"
    assert "its numerics failed (overflow" in result.diagnostics.chosen_because


def scarce(p):
    return pv.Attack(lambda x: x, {"x": pv.Bernoulli(p)}, "x").run(pv.equals(1))


@pytest.mark.parametrize("p", [0.5, 1e-3, 1e-9, 1 - 1e-12])
def test_what_draws_hardly_ever_show_is_still_exact(p):
    result = scarce(p)
    assert result.engine == "exact (finite)"
    assert result.diagnostics.evidence.value == pytest.approx(p, rel=1e-12, abs=0)


def test_an_observation_that_no_draw_agrees_with_stays_impossible():
    with pytest.raises(pv.ImpossibleObservation, match="probability zero"):
        pv.Attack(total, {"x": pv.Uniform(0, 1), "y": pv.Uniform(0, 1)}, "x").run(pv.between(3, 4))


def test_an_attempt_ends_after_the_same_work_everywhere():
    with workload.limited(1e6) as attempt:
        for _ in range(3):
            workload.spend(3e5)
        with pytest.raises(workload.Exhausted, match="no exact answer was found"):
            workload.spend(3e5)
    assert attempt.spent == 1.2e6


def three(a, b, c):
    return a + b + c


def test_auto_leaves_nested_quadrature_to_samples_in_time():
    """P(a > b > c, |a + b + c - 1| < 0.1) / P(a > b > c) is P(|sum - 1| < 0.1), as the order says nothing of a sum."""
    prior = {name: pv.Normal(0, sd=1) for name in "abc"}
    facts = [lambda a, b, c: a > b, lambda a, b, c: b > c]
    attack = pv.Attack(three, prior, "a", assume=facts)
    with pv.limited(exact_seconds=0.4):
        result = attack.run(pv.near(1, within=0.1), samples=2000, seed=1)
    assert result.engine == "sample"
    assert "no exact answer was found by the work of about" in result.diagnostics.chosen_because
    evidence = result.diagnostics.evidence
    assert evidence.low <= 0.03896 <= evidence.high


def test_what_is_tried_is_said_after_a_second(monkeypatch, capsys):
    monkeypatch.setattr("privug.progress.QUIET_SECONDS", 0.0)
    with pv.limited(progress=True), workload.limited(5e9):
        workload.spend(1e9)
    assert capsys.readouterr().err == "computing the exact answer: 20%; at most about 4 s more\n"


def rounded_maximum(xs):
    return round(max(xs))


@pytest.mark.usefixtures("served")
def test_what_draws_do_not_reach_is_checked_by_a_window_that_they_do(monkeypatch):
    attack = pv.Attack(rounded_maximum, {"xs": pv.Array(pv.Normal(0, sd=1), 5)}, lambda xs: xs[0])
    result = attack.run(pv.equals(7))
    assert result.engine == "exact (sums)"
    assert result.diagnostics.evidence.value == pytest.approx(5 * 4.0128096921861774e-11, rel=1e-9, abs=0)
    sound = solver._evidence
    monkeypatch.setattr(solver, "_evidence", lambda value, error, density: sound(2 * value, error, density))
    with pytest.raises(pv.UnsuitableEngine, match="contradict"):
        attack.run(pv.equals(7), engine="exact")
