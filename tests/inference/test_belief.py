"""Beliefs and joints: exact answers exactly, sampled answers with intervals, wrong questions refused."""

import math

import numpy as np
import pytest

import privug as pv


@pytest.fixture
def die():
    return pv.Belief.of([1, 2, 3, 4, 5, 6], probabilities=[1 / 6] * 6)


def test_exact_belief(die):
    assert die.mean().value == pytest.approx(3.5, rel=1e-15)
    assert die.std().value == pytest.approx(math.sqrt(35 / 12), rel=1e-15)
    assert die.probability(lambda face: face > 4).value == pytest.approx(1 / 3, rel=1e-15)
    assert die.quantile(0.5).value == 3
    assert [float(end) for end in die.interval(0.9)] == [1, 6]
    assert all(share.exact for share in die.distribution().values())
    assert math.isinf(die.effective_samples)


def test_none_of_ten_thousand_is_not_zero_give_or_take_zero():
    never = pv.Belief.of(np.zeros(10_000)).probability(lambda x: x > 0)
    assert (never.value, never.low) == (0.0, 0.0)
    assert never.high == pytest.approx(1 - 0.025 ** (1 / 10_000), rel=1e-9)
    always = pv.Belief.of(np.zeros(10_000)).probability(lambda x: x == 0)
    assert always.low == pytest.approx(0.025 ** (1 / 10_000), rel=1e-9)


def test_mean_of_ones_and_zeros_is_a_probability():
    assert pv.Belief.of([0] * 100).mean().high == pytest.approx(1 - 0.025**0.01, rel=1e-9)


def test_predicates_that_cannot_be_traced_are_called(die):
    assert die.probability(lambda face: face > 4 and face != 6).value == pytest.approx(1 / 6)
    assert die.probability(lambda face: face in (1, 2, 3)).value == pytest.approx(1 / 2)
    words = pv.Belief.of(["ill", "well", "ill", "ill"])
    assert words.probability(lambda w: w.startswith("i")).value == 0.75
    with pytest.raises(pv.ArgumentError, match="True or False"):
        words.probability(lambda w: w)


def test_histogram_sums_to_one_and_covers():
    belief = pv.Belief.of(np.random.default_rng(0).uniform(0, 1, 10_000))
    histogram = belief.histogram([0, 0.25, 0.5, 0.75, 1])
    assert sum(map(float, histogram.probabilities)) == pytest.approx(1)
    assert all(0.25 in share.widened(2) for share in histogram.probabilities)
    assert histogram.densities.mean() == pytest.approx(1)
    assert len(belief.histogram(7).probabilities) == 7


def test_samples_follow_the_weights(die):
    loaded = pv.Belief.of(["a", "b"], probabilities=[0.9, 0.1])
    drawn = loaded.samples(2000, seed=1)
    assert 1700 < drawn.count("a") < 1900
    assert loaded.samples(5, seed=1) == loaded.samples(5, seed=1)
    assert die.samples(10).dtype == np.int64


def test_kinds_are_told_apart():
    rng = np.random.default_rng(0)
    continuous, discrete = rng.normal(size=500), rng.integers(0, 5, 500) / 2
    assert pv.Belief.of(continuous).kind.value == "continuous"
    assert pv.Belief.of(discrete).kind.value == "discrete"
    assert pv.Belief.of(np.where(rng.random(500) < 0.3, 0.0, continuous)).kind.value == "mixed"
    assert pv.Belief.of(["a", "b"]).kind.value == "discrete"


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda b: b.quantile(0), "between 0 and 1"),
        (lambda b: b.quantile(float("nan")), "level must be a number"),
        (lambda b: b.interval(1), "between 0 and 1"),
        (lambda b: b.samples(0), "positive"),
        (lambda b: b.probability(3), "function"),
        (lambda b: b.histogram(0), "positive"),
        (lambda b: pv.Belief.of([]), "at least one"),
        (lambda b: pv.Belief.of([1, 2], probabilities=[0.5, 0.6]), "sum to one"),
        (lambda b: pv.Belief.of(["a"]).mean(), "numbers"),
    ],
)
def test_wrong_questions(die, ask, message):
    with pytest.raises(pv.ArgumentError, match=message):
        ask(die)


def test_joint_from_channel():
    joint = pv.Joint.from_channel([0.75, 0.25], [[0.8, 0.2], [0.3, 0.7]], secrets=["a", "b"])
    assert joint.exact
    assert joint.output.probability(lambda o: o == 0).value == pytest.approx(0.75 * 0.8 + 0.25 * 0.3)
    assert joint.secret.probability(lambda s: s == "a").value == pytest.approx(0.75)


def test_joint_from_samples():
    joint = pv.Joint.from_samples(["x", "y", "x"], [1.0, 2.0, 1.5])
    assert joint.effective_samples == 3
    assert joint.secret.distribution()["x"].value == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    "make",
    [
        lambda: pv.Joint.from_samples([], []),
        lambda: pv.Joint.from_samples([1], [1, 2]),
        lambda: pv.Joint.from_channel([0.5, 0.5], [[1.0]]),
        lambda: pv.Joint.from_channel([0.5, 0.6], [[1.0], [1.0]]),
        lambda: pv.Joint.from_channel([0.5, 0.5], [[0.5, 0.5], [0.9, 0.2]]),
        lambda: pv.Joint.from_channel([float("nan"), 1], [[1.0], [1.0]]),
        lambda: pv.Joint.from_channel([1.0], [[1.0]], outputs=["a", "b"]),
    ],
)
def test_wrong_joints(make):
    with pytest.raises(pv.ArgumentError):
        make()


def test_result_joint_pairs_secret_and_output():
    attack = pv.Attack(lambda x: x * 10, prior={"x": pv.DiscreteUniform(1, 3)}, secret="x", observe=pv.equals(20))
    joint = attack.run(samples=200, seed=1).joint
    assert all(o == 10 * s for s, o in zip(joint.secret.batch.values(), joint.output.batch.values(), strict=True))
    assert set(joint.secret.batch.values()) == {1, 2, 3}
    assert joint.secret.kind.value == "discrete"
