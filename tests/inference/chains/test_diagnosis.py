"""Chains that agree pass; those that do not are refused with what to try."""

import numpy as np
import pytest

import privug as pv
from privug.errors import NotConverged
from privug.inference.chains.diagnosis import LARGEST_R_HAT, Chains, diagnose, finished, judged, numbers_of
from privug.inference.diagnostics import pareto_k
from privug.model.batch import Batch
from privug.model.variable import as_node

pytest.importorskip("arviz")


def independent(seed=0, shape=(4, 500)):
    return np.random.default_rng(seed).normal(size=shape)


def test_independent_draws_pass():
    diagnosis = judged(diagnose({"secret": independent()}), "pymc")
    assert diagnosis.r_hat < 1.01
    assert diagnosis.bulk_ess == pytest.approx(2000, rel=0.25)
    assert diagnosis.tail_ess > 1000
    assert (diagnosis.chains, diagnosis.draws, diagnosis.divergences) == (4, 500, 0)


def test_short_runs_of_good_chains_pass():
    """Chance alone lifts R-hat above 1.01 where draws are few."""
    passed = 0
    for seed in range(40):
        draws = {f"input {k}": independent(100 * seed + k, (4, 250)) for k in range(8)}
        passed += judged(diagnose(draws), "pymc") is not None
    assert passed == 40


@pytest.mark.parametrize(
    ("draws", "words"),
    [
        (independent() + np.array([[0.0], [0.0], [0.0], [1.0]]), "do not agree about the secret"),
        (np.cumsum(independent(), axis=1), "do not agree about the secret"),
        (np.where(np.arange(4)[:, None] < 2, 0.0, 1.0) + np.zeros((4, 500)), "do not agree about the secret"),
    ],
)
def test_chains_that_disagree_are_refused(draws, words):
    with pytest.raises(NotConverged, match=words) as refusal:
        judged(diagnose({"the secret": draws}), "pymc")
    assert "raise samples=" in str(refusal.value)
    assert "engine='rare'" in str(refusal.value)


def test_divergences_are_refused():
    with pytest.raises(NotConverged, match="100 of 2,000 draws are divergent"):
        judged(diagnose({"x": independent()}, divergences=100), "numpyro")
    judged(diagnose({"x": independent()}, divergences=5), "numpyro")


def test_one_bad_part_of_an_array_is_found():
    draws = independent(1, (4, 500, 6))
    draws[3, :, 5] += 2
    with pytest.raises(NotConverged):
        judged(diagnose({"x": draws}), "pymc")


def test_what_never_varies_is_no_complaint():
    diagnosis = judged(diagnose({"x": np.full((4, 500), 2.0)}), "pymc")
    assert diagnosis.r_hat == 1.0


def test_truth_values_and_infinite_values_are_judged():
    rare = np.random.default_rng(2).random((4, 500)) < 0.01
    judged(diagnose({"x": rare.astype(float)}), "pymc")
    judged(diagnose({"x": np.where(independent() > 1, np.inf, independent())}), "pymc")


def test_categories_are_judged_by_their_codes():
    labels = np.random.default_rng(3).choice(["a", "b", "c"], 2000)
    numbers = numbers_of("the secret", Batch.of_values(labels.tolist()), 4)
    assert numbers["the secret"].shape == (4, 500)
    judged(diagnose(numbers), "pymc")


def finish(draws, **options):
    root = as_node(pv.Normal(0, sd=1))
    chains = Chains({root: draws}, **options)
    answer = lambda values, extra: (Batch.of_values(values[root]),) * (2 if extra is None else 3)
    return finished(answer, chains, "pymc", 0.0, {"samples": 2000, "seed": 0})


def test_a_finished_run_says_how_it_went():
    run = finish(independent(), divergences=3)
    assert run.groups == 32
    assert run.chains == 4
    assert run.diagnostics.effective_samples == pytest.approx(2000, rel=0.5)
    assert run.diagnostics.evidence is None
    assert any("3 of 2,000 draws are divergent" in remark for remark in run.diagnostics.remarks)
    assert len(run.on_samples(lambda x: x)) == 2000


def test_weights_of_few_draws_are_refused():
    weights = np.random.default_rng(4).pareto(1.05, size=(4, 500)) + 1
    with pytest.raises(NotConverged, match="Pareto k"):
        finish(independent(), log_weights=np.log(weights))
    even = finish(independent(), log_weights=np.zeros((4, 500)))
    assert even.diagnostics.pareto_k == -np.inf


@pytest.mark.parametrize("shape", [0.2, 0.4, 0.5, 0.9, 1.3])
def test_pareto_k_finds_the_shape_of_the_tail(shape):
    weights = np.random.default_rng(5).pareto(1 / shape, 200_000) + 1
    found = pareto_k(np.log(weights))
    assert found > 0.7 if shape > 0.7 else found == pytest.approx(shape, abs=0.2)


def test_pareto_k_of_sharp_but_bounded_weights_is_low():
    """Most draws weigh nothing, and that is no reason to distrust the others."""
    x = np.random.default_rng(6).normal(size=200_000)
    assert pareto_k(-0.5 * ((x - 0.5) / 0.001) ** 2) < 0.5


def test_pareto_k_needs_a_tail():
    assert pareto_k(None) is None
    assert pareto_k(np.zeros(20)) is None


def test_chance_alone_refuses_hardly_any_chains_however_many_numbers_there_are():
    rng = np.random.default_rng(5)
    refused = 0
    for _ in range(40):
        diagnosis = diagnose({"inputs": rng.standard_normal((2, 300, 12))})
        refused += diagnosis.r_hat > max(LARGEST_R_HAT, diagnosis.r_hat_by_chance)
    assert refused == 0


def test_two_chains_apart_by_half_a_deviation_do_not_agree():
    draws = np.random.default_rng(6).standard_normal((2, 1000, 12))
    draws[1] += 0.5
    with pytest.raises(NotConverged, match="do not agree"):
        judged(diagnose({"inputs": draws}), "pymc")
