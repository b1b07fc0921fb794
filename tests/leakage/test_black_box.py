"""Bayes risk of a black box: closed forms, coverage of the interval, convergence, and refusals."""

import math

import numpy as np
import pytest
import scipy

from privug import Belief, Joint
from privug.errors import ArgumentError, TooFewSamples
from privug.leakage.black_box import METHODS, convergence, cover_hart, estimate_bayes_risk, neighbours
from privug.model.batch import Batch
from privug.model.node import Kind


def tail(z):
    return float(scipy.special.ndtr(-z))


def gaussians(rng, samples, apart=1.0):
    secret = rng.integers(0, 2, samples)
    return secret, rng.normal(size=samples) + apart * secret


def uniforms(rng, samples):
    secret = rng.integers(0, 2, samples)
    return secret, rng.uniform(size=samples) + secret / 2


def noise_only(rng, samples):
    return rng.integers(0, 2, samples), rng.normal(size=samples)


def uneven(rng, samples):
    secret = (rng.random(samples) < 0.1).astype(int)
    return secret, rng.normal(size=samples) + 2 * secret


def geometric(rng, samples, width=20, alpha=0.9, secrets=10):
    secret = rng.integers(0, secrets, samples)
    noise = rng.geometric(1 - alpha, samples) - rng.geometric(1 - alpha, samples)
    return secret, np.clip(width * secret + noise, 0, secrets * width - 1)


def geometric_risk(width=20, alpha=0.9, secrets=10):
    noise = np.arange(-3000, 3001)
    probability = (1 - alpha) / (1 + alpha) * alpha ** np.abs(noise)
    channel = [
        np.bincount(np.clip(width * s + noise, 0, secrets * width - 1), probability, secrets * width)
        for s in range(secrets)
    ]
    return 1 - float(np.max(channel, axis=0).sum()) / secrets


def spiky(rng, samples):
    secret = rng.integers(0, 2, samples)
    return secret, 2 * rng.integers(0, 5000, samples) + secret


def in_a_plane(rng, samples):
    secret = rng.integers(0, 2, samples)
    return secret, np.column_stack((rng.normal(size=samples) + secret, 1e9 * rng.normal(size=samples)))


threshold = (math.log(9) + 2) / 2
CASES = {
    "two normals": (gaussians, tail(0.5)),
    "two uniforms": (uniforms, 0.25),
    "nothing leaks": (noise_only, 0.5),
    "a rare secret": (uneven, 0.9 * tail(threshold) + 0.1 * tail(2 - threshold)),
    "geometric noise": (geometric, geometric_risk()),
    "spiky": (spiky, 0.0),
    "in a plane": (in_a_plane, tail(0.5)),
}


def joint_of(secret, output, weights=None):
    spread = Kind.CONTINUOUS if np.asarray(output).dtype.kind == "f" else Kind.DISCRETE
    return Joint(Belief(Batch.of_values(secret), weights), Belief(Batch.of_values(output), weights, spread=spread))


def estimates(draw, samples, seeds, **options):
    for seed in range(seeds):
        yield estimate_bayes_risk(joint_of(*draw(np.random.default_rng(seed), samples)), seed=seed, **options)


@pytest.mark.parametrize(
    ("name", "samples"),
    [
        *((name, 1000) for name in CASES),
        *(("two uniforms", 100), ("a rare secret", 100)),
        *(pytest.param(n, 100, marks=pytest.mark.slow) for n in CASES if n not in ("two uniforms", "a rare secret")),
    ],
)
def test_interval_holds_the_bayes_risk(name, samples):
    draw, truth = CASES[name]
    held = [truth in estimate for estimate in estimates(draw, samples, 60 if name == "in a plane" else 200)]
    assert np.mean(held) >= 0.925


@pytest.mark.parametrize("name", ["two normals", "two uniforms", "nothing leaks", "a rare secret", "geometric noise"])
def test_interval_is_not_needlessly_wide(name):
    draw, _ = CASES[name]
    widths = [estimate.high - estimate.low for estimate in estimates(draw, 10_000, 20)]
    assert np.mean(widths) < 0.11


def test_upper_end_alone_misses_as_seldom_as_it_says():
    """Where the best guesser is found, its error scatters around the truth."""
    highs = [estimate.high for estimate in estimates(noise_only, 1000, 200)]
    assert 0.01 <= np.mean(np.array(highs) < 0.5) <= 0.09


@pytest.mark.parametrize("method", METHODS)
def test_every_method_bounds_the_risk_of_geometric_noise(method):
    estimate = next(estimates(geometric, 20_000, 1, method=method))
    assert geometric_risk() in estimate.widened(2)
    assert estimate.high < 0.45
    assert (method if method != "auto" else "k") in estimate.method


def test_the_minimum_of_several_estimators_is_not_flattered():
    values = [float(estimate) for estimate in estimates(noise_only, 200, 200)]
    assert np.mean(values) == pytest.approx(0.5, abs=3 * np.std(values) / math.sqrt(200))


def test_unseen_outputs_are_guessed_by_the_prior():
    secret = np.array([0, 0, 0, 1] * 25)
    estimate = estimate_bayes_risk(Joint.from_samples(secret, np.arange(100)), "frequentist")
    assert estimate.value == pytest.approx(0.25, abs=0.15)
    assert estimate.low == 0


def test_spiky_outputs_look_safe_only_until_they_repeat():
    few, many = (next(estimates(spiky, samples, 1)) for samples in (1000, 200_000))
    assert few.low == 0
    assert few.value > 0.4
    assert many.high < 0.001


def test_weights_count():
    rng = np.random.default_rng(4)
    secret = rng.integers(0, 2, 40_000)
    output = rng.normal(size=40_000) + secret
    weights = np.where(secret == 1, 3.0, 1.0)
    threshold = 0.5 - math.log(3)
    truth = 0.25 * tail(threshold) + 0.75 * tail(1 - threshold)
    estimate = estimate_bayes_risk(joint_of(secret, output, weights / weights.sum()))
    assert truth in estimate.widened(2)
    assert tail(0.5) not in estimate


def test_interval_holds_with_uneven_weights():
    held = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        secret = rng.integers(0, 2, 2000)
        centre = rng.normal(size=2000) * 1.5
        # Importance sampling: drawn with deviation 1.5, weighted to deviation 1.
        weights = np.exp(-(centre**2) / 2 + centre**2 / 4.5)
        estimate = estimate_bayes_risk(joint_of(secret, centre + secret, weights / weights.sum()), seed=seed)
        held.append(tail(0.5) in estimate)
    assert np.mean(held) >= 0.925


def test_one_heavy_weight_leaves_too_few_samples():
    weights = np.full(1000, 1e-9)
    weights[0] = 1
    with pytest.raises(TooFewSamples, match="too few"):
        estimate_bayes_risk(joint_of(np.arange(1000) % 2, np.arange(1000.0), weights / weights.sum()))


def test_a_test_set_of_its_own():
    rng = np.random.default_rng(5)
    train, test = (joint_of(*gaussians(rng, samples, 2.0)) for samples in (5000, 20_000))
    estimate = estimate_bayes_risk(train, test=test)
    assert tail(1.0) in estimate.widened(2)
    assert "5000 samples to learn, 20000 to judge" in estimate.method


def test_labels_of_a_test_set_are_matched_by_value():
    train = Joint.from_samples(["a", "b"] * 50, ["x", "y"] * 50)
    test = Joint.from_samples(["b", "a", "c"] * 20, ["y", "x", "z"] * 20)
    assert float(estimate_bayes_risk(train, test=test)) == pytest.approx(1 / 3)


def test_same_seed_same_estimate():
    joint = joint_of(*gaussians(np.random.default_rng(6), 500))
    assert estimate_bayes_risk(joint, seed=3) == estimate_bayes_risk(joint, seed=3)
    assert estimate_bayes_risk(joint, seed=3) != estimate_bayes_risk(joint, seed=4)


@pytest.mark.parametrize("error", [0.0, 0.1, 0.3, 0.5])
def test_cover_and_hart_undo_the_error_of_the_nearest_neighbour(error):
    assert cover_hart(2 * error * (1 - error), 2) == pytest.approx(error, abs=1e-9)
    assert cover_hart(1.0, 4) == pytest.approx(0.75)
    assert cover_hart(0.3, 1) == 0


def test_numbers_of_neighbours_are_odd():
    assert all(neighbours(method, samples) % 2 for method in METHODS[2:] for samples in (1, 2, 10, 12_345, 10**6))


def test_more_examples_settle_the_curve():
    joint = joint_of(*gaussians(np.random.default_rng(7), 20_000, 2.0))
    curve = convergence(joint)
    assert curve.settled
    assert curve.stopped_at is not None
    assert curve.samples[-1] == 10_000
    assert len(curve.samples) == len(curve.risks) == 50
    assert str(curve).startswith("converged: the last 1000 of 10000 examples")


def test_a_curve_that_still_falls_is_not_settled():
    curve = convergence(joint_of(*spiky(np.random.default_rng(8), 20_000)))
    assert not curve.settled
    assert curve.risks[0] > curve.risks[-1] + 0.2
    assert "may leak more" in str(curve)


def test_the_stopping_rule_looks_at_the_last_examples_only():
    joint = Joint.from_samples([0, 1] * 500, [0, 1] * 500)
    curve = convergence(joint, points=10, q=100)
    assert curve.risks == (0.0,) * 10
    assert curve.stopped_at == 150
    assert convergence(joint, points=10, q=500).stopped_at is None


def test_absolute_change_may_be_asked_for():
    joint = joint_of(*gaussians(np.random.default_rng(9), 2000))
    assert convergence(joint, delta=1.0, relative=False).settled
    assert not convergence(joint, delta=1e-9).settled


@pytest.mark.parametrize(
    ("joint", "options", "message"),
    [
        (joint_of([0, 1] * 20, np.arange(40.0)), {"method": "magic"}, "method must be one of auto"),
        (joint_of([0, 1] * 20, np.arange(40.0)), {"method": "frequentist"}, "never repeats"),
        (Joint.from_samples([0, 1] * 20, ["a", "b"] * 20), {"method": "nearest"}, "no distances"),
        (Joint.from_samples(np.arange(40.0), np.arange(40.0)), {}, "the secret is continuous"),
        (Joint.from_channel([0.5, 0.5], [[1, 0], [0, 1]]), {}, "exact"),
        (Belief.of([1, 2]), {}, "needs a Joint"),
        (joint_of([0, 1] * 20, np.append(np.arange(39.0), np.nan)), {}, "not a number"),
    ],
)
def test_what_cannot_be_learnt_is_refused(joint, options, message):
    with pytest.raises(ArgumentError, match=message):
        estimate_bayes_risk(joint, **options)


@pytest.mark.parametrize("options", [{"delta": 0}, {"points": 1}, {"q": 0}])
def test_bad_stopping_rules_are_refused(options):
    with pytest.raises(ArgumentError, match="delta, q must be positive"):
        convergence(joint_of([0, 1] * 20, np.arange(40.0)), **options)


def test_few_samples_are_refused():
    with pytest.raises(TooFewSamples, match="4 samples"):
        estimate_bayes_risk(Joint.from_samples([0, 1] * 4, [0, 1] * 4))


@pytest.mark.parametrize("output", [np.zeros(100), np.array([np.inf, -np.inf] * 50), np.array([1e308, -1e308] * 50)])
def test_point_masses_and_extreme_numbers(output):
    estimate = estimate_bayes_risk(Joint.from_samples(np.array([0, 1] * 50), output), seed=1)
    truth = 0.5 if len(set(output)) == 1 else 0.0
    assert truth in estimate


def test_one_secret_is_never_missed():
    assert float(estimate_bayes_risk(Joint.from_samples([7] * 50, np.arange(50.0)))) == 0
