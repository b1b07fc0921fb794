"""Evidence of a leak: p-values uniform without one, small with one, and honest silence."""

import math

import numpy as np
import pytest

from privug import Belief, Joint
from privug.errors import ArgumentError
from privug.leakage.finite import sparse_information
from privug.leakage.significance import (
    LEAK,
    NO_LEAK,
    TOO_FEW,
    drawn_tables,
    evidence_of_leak,
    informations,
    observed_table,
    ordered,
    samples_to_detect,
    unordered,
)
from privug.model.batch import Batch
from privug.model.node import Kind

SAMPLES = 300


def coin(rng):
    return rng.integers(0, 2, SAMPLES)


def names(rng):
    return [f"name {number}" for number in rng.integers(0, 5, SAMPLES)]


def number(rng):
    return rng.normal(size=SAMPLES)


def many_counts(rng):
    return rng.integers(0, 5000, SAMPLES)


def pair(rng):
    return rng.normal(size=(SAMPLES, 2))


def joint_of(secret, output, weights=None):
    spread = Kind.CONTINUOUS if np.ndim(output) == 2 else None
    return Joint(Belief(Batch.of_values(secret), weights), Belief(Batch.of_values(output), weights, spread=spread))


NULLS = {
    "coin and coin": (coin, coin),
    "names and names": (names, names),
    "coin and number": (coin, number),
    "number and names": (number, names),
    "number and number": (number, number),
    "counts and counts": (many_counts, many_counts),
    "coin and counts": (coin, many_counts),
    "coin and pair": (coin, pair),
    "number and pair": (number, pair),
}


LONG = "number and pair"  # a number and a pair each stand beside something else, too


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name == LONG else name for name in NULLS]
)
def test_p_values_are_uniform_without_a_leak(name):
    secret, output = NULLS[name]
    values = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        values.append(evidence_of_leak(joint_of(secret(rng), output(rng)), permutations=39, seed=seed).p_value)
    for share in (0.1, 0.25, 0.5, 0.75):
        # Three standard deviations of a binomial share of 200.
        assert np.mean(np.array(values) <= share) == pytest.approx(share, abs=3 * math.sqrt(share * (1 - share) / 200))


def moved(rng, secret):
    return rng.normal(size=len(secret)) + 0.4 * secret


def spread_out(rng, secret):
    return rng.normal(size=len(secret)) * (1 + 0.4 * secret)


def two_humps(rng, secret):
    """The same mean and variance for both secrets."""
    humps = (rng.integers(0, 2, len(secret)) * 2 - 1) * 0.9 + rng.normal(size=len(secret)) * math.sqrt(1 - 0.81)
    return np.where(secret == 1, humps, rng.normal(size=len(secret)))


def same_parity(rng, secret):
    return 2 * rng.integers(0, 5000, len(secret)) + secret


def by_quadrant(rng, secret):
    """Each coordinate alone says nothing."""
    points = np.abs(rng.normal(size=(len(secret), 2)))
    signs = rng.integers(0, 2, len(secret)) * 2 - 1
    return points * np.column_stack((signs, signs * (2 * secret - 1)))


def now_and_then(rng, secret):
    """A flag that is set a little more often for one secret."""
    return (rng.random(len(secret)) < 0.1 + 0.1 * secret).astype(int)


@pytest.mark.parametrize("leak", [moved, spread_out, two_humps, same_parity, by_quadrant, now_and_then])
def test_small_leaks_are_found(leak):
    found = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        secret = rng.integers(0, 2, 1000)
        found.append(bool(evidence_of_leak(joint_of(secret, leak(rng, secret)), permutations=99, seed=seed)))
    assert np.mean(found) >= 0.9


def test_continuous_secrets_are_tested_too():
    rng = np.random.default_rng(1)
    angle = rng.uniform(0, 2 * np.pi, 1000)
    circle = evidence_of_leak(Joint.from_samples(np.cos(angle), np.sin(angle)))
    assert circle.verdict == LEAK
    assert circle.p_value == pytest.approx(1 / 1000)
    noise = rng.normal(size=1000)
    assert evidence_of_leak(Joint.from_samples(np.cos(angle), noise)).verdict == NO_LEAK


def test_few_samples_of_many_values_are_not_enough():
    rng = np.random.default_rng(2)
    evidence = evidence_of_leak(Joint.from_samples(rng.integers(0, 10, 100), rng.integers(0, 10, 100)))
    assert evidence.verdict == TOO_FEW
    assert evidence.needed_samples == 400
    assert str(evidence) == "not enough samples: there are 100, and 400 are needed"


def test_few_samples_can_still_show_a_leak():
    values = list(range(10)) * 4
    assert evidence_of_leak(Joint.from_samples(values, values)).verdict == LEAK


def test_the_verdict_says_what_it_could_have_seen():
    rng = np.random.default_rng(3)
    evidence = evidence_of_leak(Joint.from_samples(rng.integers(0, 2, 567), rng.integers(0, 2, 567)))
    assert evidence.verdict == NO_LEAK
    assert evidence.detectable == pytest.approx(0.01, rel=0.01)
    assert "a leak of 0.01 bit would most likely be seen" in str(evidence)


def test_samples_to_detect_gives_the_power_it_promises():
    """A binary channel of one hundredth of a bit, as many samples as asked for: found in four of five cases."""
    flip = 0.4411
    bits = 1 + flip * math.log2(flip) + (1 - flip) * math.log2(1 - flip)
    assert bits == pytest.approx(0.01, rel=0.01)
    samples = samples_to_detect(bits, 2, 2)
    found = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        secret = rng.integers(0, 2, samples)
        output = secret ^ (rng.random(samples) < flip)
        found.append(bool(evidence_of_leak(Joint.from_samples(secret, output), permutations=199, seed=seed)))
    assert np.mean(found) == pytest.approx(0.8, abs=3 * math.sqrt(0.16 / 200))


def test_statistic_is_the_information_beyond_chance():
    rng = np.random.default_rng(4)
    secret = rng.integers(0, 2, 20_000)
    output = secret ^ (rng.random(20_000) < 0.25)
    truth = 1 + 0.25 * math.log2(0.25) + 0.75 * math.log2(0.75)
    assert truth in evidence_of_leak(Joint.from_samples(secret, output)).statistic.widened(2)
    nothing = evidence_of_leak(Joint.from_samples(secret, rng.integers(0, 2, 20_000))).statistic
    assert nothing.low == 0
    assert nothing.high < 0.001


def test_exact_joints_are_judged_exactly():
    leak = evidence_of_leak(Joint.from_channel([0.5, 0.5], [[0.5, 0.5], [0.4, 0.6]]))
    assert (leak.verdict, leak.p_value) == (LEAK, 0.0)
    assert str(leak) == "there is evidence of a leak (exact)"
    none = evidence_of_leak(Joint.from_channel([0.3, 0.7], [[0.5, 0.5], [0.5, 0.5]]))
    assert (none.verdict, none.p_value) == (NO_LEAK, 1.0)
    assert str(none) == "no leak (exact)"


def test_weights_are_no_evidence_by_themselves():
    held = []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        secret, output, weights = rng.integers(0, 2, 500), rng.normal(size=500), rng.lognormal(size=500)
        joint = joint_of(secret, output, weights / weights.sum())
        held.append(bool(evidence_of_leak(joint, permutations=39, seed=seed)))
    assert np.mean(held) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 100)


@pytest.mark.parametrize(
    ("secret", "output"),
    [
        ([1], [2]),
        ([1] * 50, [0, 1] * 25),
        ([0, 1] * 25, [3.5] * 50),
        ([0, 1], [1.5, 2.5]),
        ([0, 1], [[1.0, 2], [3, 4]]),
    ],
)
def test_nothing_to_see_is_no_leak(secret, output):
    evidence = evidence_of_leak(joint_of(np.array(secret), np.array(output)))
    assert evidence.p_value > 0.3
    assert evidence.verdict != LEAK


def test_extreme_numbers():
    secret = np.array([0, 1] * 50)
    for output in ([np.inf, -np.inf] * 50, [1e308, -1e308] * 50, [1e-308, 2e-308] * 50):
        assert evidence_of_leak(Joint.from_samples(secret, np.array(output))).verdict == LEAK


def test_same_seed_same_evidence():
    rng = np.random.default_rng(5)
    joint = Joint.from_samples(rng.integers(0, 2, 200), rng.normal(size=200))
    assert evidence_of_leak(joint, seed=1) == evidence_of_leak(joint, seed=1)


@pytest.mark.parametrize(
    ("joint", "options", "message"),
    [
        (Belief.of([1]), {}, "needs a Joint"),
        (Joint.from_samples([0, 1], [0, 1]), {"level": 0}, "level must lie between 0 and 1"),
        (Joint.from_samples([0, 1], [0, 1]), {"permutations": 18}, "needs at least 19 permutations"),
        (Joint.from_samples([0, 1], [0.5, np.nan]), {}, "not a number"),
    ],
)
def test_bad_arguments_are_named(joint, options, message):
    with pytest.raises(ArgumentError, match=message):
        evidence_of_leak(joint, **options)


def test_bad_leaks_to_detect_are_named():
    with pytest.raises(ArgumentError, match="bits must be positive"):
        samples_to_detect(0, 2, 2)


def test_drawn_tables_are_shuffles():
    rng = np.random.default_rng(6)
    rows, columns = unordered(rng.integers(0, 3, 60)), ordered(rng.normal(size=60), 4, 4)
    tables = np.concatenate(list(drawn_tables(rows, columns, 4000, rng)))
    assert np.all(tables.sum(axis=2) == rows.sizes)
    assert np.all(tables.sum(axis=1) == columns.sizes)
    expected = np.outer(rows.sizes, columns.sizes) / 60
    assert np.all(np.abs(tables.mean(axis=0) - expected) < 4 * tables.std(axis=0) / math.sqrt(4000))


def test_written_and_unwritten_tables_tell_the_same():
    rng = np.random.default_rng(7)
    left, right = rng.integers(0, 6, 200), rng.integers(0, 9, 200)
    rows, columns = unordered(left), unordered(right)
    written = informations(observed_table(rows, columns)[np.newaxis], rows, columns)[0, 0]
    unwritten = sparse_information((left * 9 + right)[np.newaxis], np.bincount(left), np.bincount(right))[0]
    assert unwritten == pytest.approx(written, abs=1e-12)


def test_groups_keep_equal_values_together_and_their_order():
    values = np.array([5.0] * 70 + [1.0, 2, 3] * 10)
    side = ordered(values, 4, 4)
    assert all(len(set(side.groups[values == value])) == 1 for value in (1, 2, 3, 5))
    assert np.all(np.diff(side.groups[np.argsort(values, kind="stable")]) >= 0)
    assert side.sizes.sum() == 100
