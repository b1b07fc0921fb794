"""Every engine against known answers: closed forms and quadrature, within the interval that the engine itself states.

An engine may refuse a question; it must not answer it wrongly. The same checks must catch engines that are broken on
purpose. Intervals are widened by two, to about four standard errors.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import privug as pv
from engine_questions import QUESTIONS, Known, disagreements
from privug.inference.belief import Belief
from privug.inference.chains.diagnosis import Chains, finished
from privug.model.batch import Batch
from privug.model.variable import as_node

NAMES = {known.name: known for known in QUESTIONS}
OPTIONS = {
    "exact": {},
    "sample": {"samples": 1000, "budget": 300_000},
    "rare": {"samples": 1000},
    "pymc": {"samples": 4000},
    "numpyro": {"samples": 4000},
    "auto": {"samples": 1000, "budget": 300_000},
}
QUICK_FOR_RARE = [
    "maximum", "exponential function", "two dice", "randomized response", "an atom", "a branch", "a distance",
    "six deviations", "exactly and in a window", "product",
]  # fmt: skip


def answered(known: Known, engine: str, seed: int = 3) -> pv.Result | None:
    """Ask an engine; None if it refuses."""
    try:
        return known.attack.run(observe=known.observation, engine=engine, seed=seed, **OPTIONS[engine])
    except pv.InferenceError:
        return None


def agrees(name: str, engine: str) -> bool:
    result = answered(NAMES[name], engine)
    assert result is None or disagreements(NAMES[name], result) == []
    return result is not None


def test_there_are_questions_of_every_kind():
    assert len(NAMES) == len(QUESTIONS) >= 25


@pytest.mark.parametrize("name", NAMES)
def test_exact_and_sampled_answers_are_right(name):
    assert agrees(name, "exact") + agrees(name, "sample") > 0 or "rare" in NAMES[name].tags or "sharp" in name


@pytest.mark.parametrize("name", QUICK_FOR_RARE)
def test_rare_answers_are_right(name):
    assert agrees(name, "rare")


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in NAMES if name not in QUICK_FOR_RARE])
def test_more_rare_answers_are_right(name):
    agrees(name, "rare")


@pytest.mark.parametrize("name", ["product", "two modes", "six deviations", "a population's rate"])
def test_the_automatic_choice_is_right_and_says_why(name):
    assert agrees(name, "auto")
    result = answered(NAMES[name], "auto")
    assert result.diagnostics.chosen_because
    assert result.engine.startswith(("exact", "sample", "rare", "numpyro", "pymc"))


@pytest.mark.parametrize("engine", ["pymc", "numpyro"])
def test_chains_are_right(engine):
    pytest.importorskip(engine)
    assert agrees("a population's mean", engine)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("engine", ["pymc", "numpyro"])
def test_more_chains_are_right(engine, name):
    pytest.importorskip(engine)
    agrees(name, engine)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["pymc", "numpyro"])
def test_chains_serve_most_questions_with_continuous_inputs(engine):
    pytest.importorskip(engine)
    names = ["sum of normals in a window", "sum of normals exactly", "laplace noise", "a coin shifts a normal"]
    assert all(agrees(name, engine) for name in names)


# Samplers that are known to agree with themselves on a wrong answer, or to be stuck: a tight window on 200 variables.


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["pymc:smc", "pymc:metropolis"])
def test_known_traps_end_in_a_refusal(engine):
    pytest.importorskip("pymc")
    prior = {"s": pv.Uniform(0, 100), "p": pv.Array(pv.Normal(55, sd=1), 199)}
    attack = pv.Attack(lambda s, p: (s + p.sum()) / 200, prior, "s")
    with pytest.raises(pv.InferenceError):
        attack.run(pv.near(55.1, within=0.005), engine=engine, samples=1000, seed=1)


# Engines that are broken on purpose: the checks above must fail for each of them.


def with_another_prior(known: Known, **prior: object) -> pv.Result:
    question = known.attack.question
    wrong = pv.Attack(question.program, {**question.prior, **prior}, question.secret)
    return wrong.run(observe=known.observation, engine="sample", samples=4000, seed=1)


def test_a_wrong_prior_is_caught():
    known = NAMES["sum of normals exactly"]
    assert disagreements(known, with_another_prior(known)) == []
    assert disagreements(known, with_another_prior(known, x=pv.Normal(0, sd=1.15))) != []


def test_half_the_likelihood_is_caught():
    known = NAMES["the same twice, noisily"]
    half = replace(known, observation=[pv.noisy(1.0, sd=2**0.5), pv.noisy(2.0, sd=2**0.5)])
    result = half.attack.run(observe=half.observation, engine="sample", samples=4000, seed=1)
    assert disagreements(known, result) != []


def chains_of(draws: np.ndarray, **options: object) -> object:
    """Finish chains of one input that is secret and output at once."""
    root = as_node(pv.Normal(0, sd=1))
    asked = {"samples": draws.size, "seed": 0}
    both = lambda values, extra: (Batch.of_values(values[root]),) * 2
    return finished(both, Chains({root: draws}), "numpyro", 0.0, asked, **options)


def test_a_stuck_chain_is_refused():
    draws = np.random.default_rng(0).normal(size=(4, 1000))
    assert chains_of(draws).diagnostics.r_hat < 1.01
    stuck = draws.copy()
    stuck[2] = stuck[2, 0]
    with pytest.raises(pv.InferenceError, match="do not agree about"):
        chains_of(stuck)


def test_chains_that_hardly_move_are_refused_and_would_be_caught():
    rng = np.random.default_rng(1)
    steps = rng.normal(size=(4, 1000)) * 0.05
    slow = 3.0 + np.cumsum(steps, axis=1)
    with pytest.raises(pv.InferenceError, match="engine='numpyro'"):
        chains_of(slow)
    run = chains_of(slow, judging=False)
    flattered = Belief(run.quantities[0]).mean()
    assert float(slow.mean()) in flattered
    assert 3.0 not in flattered.widened(2)
    assert 3.0 in Belief(run.quantities[0], groups=run.groups).mean().widened(2)


# Simulation-based calibration: a secret drawn from the prior is an ordinary draw from its own posterior.


def places(engine: str, runs: int, samples: int, sd: float = 1.0) -> np.ndarray:
    """Return the place of each true secret within the posterior given its own output."""
    attack = pv.Attack(
        lambda x, y: x + np.exp(0.5 * x) * y, {"x": pv.Normal(0, sd=sd), "y": pv.Normal(0, sd=1)}, secret="x"
    )
    rng = np.random.default_rng(11)
    found = []
    for run in range(runs):
        x, y = rng.normal(), rng.normal()
        seen = x + np.exp(0.5 * x) * y + 0.3 * rng.normal()
        result = attack.run(observe=pv.noisy(seen, sd=0.3), engine=engine, samples=samples, seed=run)
        found.append(float(result.posterior.probability(lambda value, x=x: value < x)))
    return np.array(found)


def unevenness(found: np.ndarray) -> float:
    """Return how likely so uneven places are by chance."""
    return float(stats.kstest(found, "uniform").pvalue)


def test_sampling_is_calibrated_and_a_wrong_prior_is_not():
    assert unevenness(places("sample", 60, 400)) > 1e-3
    assert unevenness(places("sample", 60, 400, sd=0.3)) < 1e-3


@pytest.mark.slow
def test_rare_is_calibrated():
    assert unevenness(places("rare", 6, 300)) > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("engine", "runs", "samples"), [("rare", 100, 1000), ("pymc", 20, 1000), ("numpyro", 20, 1000)]
)
def test_engines_are_calibrated(engine, runs, samples):
    pytest.importorskip(engine if engine != "rare" else "numpy")
    assert unevenness(places(engine, runs, samples)) > 1e-3
