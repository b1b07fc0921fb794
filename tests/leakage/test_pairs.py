"""Distinct values and pairs: the same as counting one by one, whatever the values, weights and sizes."""

import enum
import gc
import math
from collections import defaultdict
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import privug as pv
from privug.inference.belief import Belief
from privug.inference.joint import Joint
from privug.leakage import finite
from privug.leakage.finite import aligned, pairs_of, shares_of
from privug.model.batch import PROBE, Batch, ranked
from privug.model.node import Kind

MANY = 2 * PROBE
rng = np.random.default_rng(0)
COLUMNS = {
    "none": np.zeros(0),
    "one": np.array([7]),
    "small range": rng.integers(-5, 200, 1000),
    "gaps": rng.integers(-5, 200, 1000) * 3,
    "bytes of both signs": rng.integers(-128, 128, 1000).astype(np.int8),
    "truth values": rng.random(1000) < 0.5,
    "always true": np.ones(10, bool),
    "wide": rng.integers(-(2**62), 2**62, 1000),
    "wide and few": rng.integers(0, 300, MANY) * 10**15 - 5 * 10**17,
    "ends of the range": np.where(rng.random(1000) < 0.5, -(2**63), 2**63 - 1),
    "unsigned": rng.integers(2**64 - 9, 2**64 - 1, 1000, dtype=np.uint64),
    "few floats": rng.integers(0, 200, MANY) / 7,
    "single precision": (rng.integers(0, 5, MANY) / 3).astype(np.float32),
    "all different": rng.normal(size=MANY),
    "zeros of both signs": np.round(rng.normal(size=MANY)),
    "not numbers": np.where(rng.random(MANY) < 0.3, np.nan, rng.integers(0, 9, MANY) / 3),
    "rare others": np.where(rng.random(MANY) < 0.0003, rng.normal(size=MANY), 1.5),
    "common others": np.where(rng.random(MANY) < 0.3, rng.normal(size=MANY), 1.5),
    "long tail": rng.geometric(0.001, MANY) / 3,
    "every second": (rng.integers(0, 9, (MANY, 2)) / 3)[:, 1],
    "infinite": np.array([np.inf, -np.inf, 0.0, -0.0])[rng.integers(0, 4, MANY)],
    "sorted": np.sort(rng.integers(0, 50, MANY) / 7),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_places_among_distinct_numbers(name):
    array = COLUMNS[name]
    places, numbers = ranked(array)
    expected, inverse = np.unique(array, return_inverse=True)
    assert np.array_equal(numbers, expected, equal_nan=array.dtype.kind == "f")
    assert numbers.dtype == array.dtype
    assert np.array_equal(places, inverse.reshape(-1))


@given(arrays.arrays(np.int64, st.integers(0, 40), elements=st.integers(-(2**63), 2**63 - 1)))
def test_places_of_any_whole_numbers(array):
    places, numbers = ranked(array)
    assert np.array_equal(numbers[places], array)
    assert np.all(numbers[:-1] < numbers[1:])


def test_rows_of_arrays_are_told_apart():
    rows = rng.integers(0, 3, (500, 2, 2)) / 2
    codes, values = Batch.of_values(rows).factorized()
    assert len(values) == len({row.tobytes() for row in rows})
    assert all(np.array_equal(values[code], row) for code, row in zip(codes, rows, strict=True))
    assert len(Batch.of_values(np.zeros((3, 0))).factorized()[1]) == 1
    assert Batch.of_values(np.zeros((0, 2))).factorized()[1] == []


@pytest.mark.parametrize("name", [name for name in COLUMNS if name != "unsigned"])
@pytest.mark.parametrize("known", [False, True])
def test_counts_of_distinct_values(name, known):
    array = COLUMNS[name]
    batch = Batch.of_values(array)
    if known:
        assert batch.factorized()[0] is batch.factorized()[0]
    expected = np.unique(array, return_counts=True)[1]
    assert batch.distinct() == len(expected)
    assert np.array_equal(batch.counts(), expected)


def counted(secrets, outputs, weights):
    table = defaultdict(float)
    for secret, output, weight in zip(secrets, outputs, weights, strict=True):
        table[output, secret] += weight
    return {pair: weight for pair, weight in sorted(table.items()) if weight > 0}


def joint_of(secrets, outputs, weights=None, **options):
    return Joint(*(Belief(Batch.of_values(values), weights, **options) for values in (secrets, outputs)))


@pytest.mark.parametrize("weighting", ["none", "uneven", "half of them zero"])
@pytest.mark.parametrize(("secrets", "outputs", "samples"), [(3, 4, 200), (50, 2000, 400), (1, 1, 5), (300, 300, 100)])
def test_pairs_are_those_counted_one_by_one(secrets, outputs, samples, weighting):
    rng = np.random.default_rng(samples)
    s, o = rng.integers(0, secrets, samples), rng.integers(0, outputs, samples) / 3
    weights = np.full(samples, 1 / samples)
    if weighting != "none":
        weights = rng.random(samples) * (1 if weighting == "uneven" else rng.random(samples) < 0.5)
        weights /= weights.sum()
    pairs = pairs_of(joint_of(s, o, None if weighting == "none" else weights))
    expected = counted(s.tolist(), o.tolist(), weights)
    assert [(pairs.outputs[b], pairs.secrets[a]) for a, b in zip(pairs.secret, pairs.output, strict=True)] == [
        *expected
    ]
    assert pairs.probability == pytest.approx([*expected.values()], rel=1e-12)
    assert np.array_equal(pairs.output[pairs.starts], np.arange(len(pairs.outputs)))
    assert pairs.prior.min() > 0
    assert pairs.marginal.min() > 0
    assert pairs.squares.sum() == pytest.approx(1 / pairs.samples, rel=1e-12)
    assert pairs.matrix().sum() == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_sides_of_pairs_are_the_shares_of_the_beliefs(weighted):
    rng = np.random.default_rng(0)
    weights = rng.random(300) * (rng.random(300) < 0.8)
    values = rng.integers(0, 20, 300), rng.choice(["a", "b", "c"], 300).tolist()
    first, second = (joint_of(*values, weights / weights.sum() if weighted else None) for _ in range(2))
    pairs_of(first)
    for known, fresh in ((first.secret, second.secret), (first.output, second.output)):
        assert shares_of(known).values == shares_of(fresh).values
        assert shares_of(known).probability == pytest.approx(shares_of(fresh).probability, rel=1e-12)
        assert shares_of(known).squares == pytest.approx(shares_of(fresh).squares, rel=1e-12)


@pytest.mark.parametrize("outputs", [np.zeros(6), np.broadcast_to(np.int64(3), 6), np.array(["x"] * 6)])
def test_an_output_that_says_nothing(outputs):
    pairs = pairs_of(joint_of([1, 2, 2, 3, 3, 3], outputs))
    assert pairs.secrets == [1, 2, 3]
    assert pairs.outputs == [outputs[0]]
    assert pairs.probability == pytest.approx([1 / 6, 2 / 6, 3 / 6], rel=1e-15)
    assert pairs.starts.tolist() == [0]


def test_more_cells_than_can_be_packed_with_positions(monkeypatch):
    joint = joint_of([1, 2, 1, 2], [5, 6, 5, 7], np.array([0.1, 0.2, 0.3, 0.4]))
    expected = pairs_of(joint).probability
    monkeypatch.setattr(finite, "PART", -10)
    assert finite._collected(joint).probability == pytest.approx(expected, rel=1e-15)
    keys = np.array([2**61, 5, 2**61, 3])
    assert keys[finite._order(keys)].tolist() == sorted(keys.tolist())


def test_exact_pairs_have_no_noise():
    pairs = pairs_of(Joint.from_channel([0.5, 0.5], [[0.5, 0.5], [1.0, 0.0]]))
    assert pairs.exact
    assert pairs.squares.tolist() == [0, 0, 0]


def test_pairs_are_collected_once_and_not_kept_alive():
    joint = Joint.from_channel([0.5, 0.5], [[0.5, 0.5], [1.0, 0.0]])
    assert pairs_of(joint) is pairs_of(joint)
    assert shares_of(joint.secret) is shares_of(joint.secret)
    before = len(finite._known_pairs)
    del joint
    gc.collect()
    assert len(finite._known_pairs) < before


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


@dataclass
class Point:
    x: float
    y: float


@pytest.mark.parametrize(
    ("values", "count"),
    [
        ([1, True, 1.0, "1"], 2),
        ([0, False, None], 2),
        (["a", "b", "a"], 2),
        ([(1, "a"), (True, "a"), (2, "a")], 2),
        ([[1, 2], [1.0, 2.0], [2, 1]], 2),
        ([np.array([1, 2]), np.array([1.0, 2.0])], 1),
        ([{"a": 1, "b": 2}, {"b": 2, "a": 1.0}], 2),
        ([Point(1, 2), Point(1.0, 2.0), Point(2, 1)], 2),
        ([Colour.RED, Colour.BLUE, Colour.RED], 2),
        ([math.nan, "x", math.nan], 2),
        ([2**70, 2**70 + 1], 2),
        ([pv.Row(a=1, b="x"), pv.Row(a=1.0, b="x")], 1),
    ],
    ids=repr,
)
def test_values_that_python_holds_equal_are_one(values, count):
    shares = shares_of(Belief.of(values))
    assert len(shares) == count
    assert shares.probability.sum() == pytest.approx(1, rel=1e-15)


def test_values_without_probability_are_left_out():
    shares = shares_of(Belief.of(["a", "b", "c"], probabilities=[0.25, 0.0, 0.75]))
    assert shares.values == ["a", "c"]
    assert shares.probability.tolist() == [0.25, 0.75]


@pytest.mark.parametrize(
    ("first", "second", "union"),
    [
        ([True, False], [0.0, 1.0, 2.0], 3),
        ([1, 2], [1.0, 2.5], 3),
        ([2**53, 2**53 + 1], [2.0**53], 2),
        ([1, "a"], [1.0, "b"], 3),
        ([math.nan, 1.0], [1, math.nan], 2),
        ([(1, 2), (3, 4)], [(1.0, 2.0)], 2),
        ([2**80], [2**80, 1], 2),
        (["a"], ["b"], 2),
    ],
    ids=repr,
)
def test_beliefs_are_aligned_by_equal_values(first, second, union):
    shares = [shares_of(Belief.of(values)) for values in (first, second)]
    left, right = aligned(shares)
    assert left.values == right.values
    assert len(left) == union
    for before, after in zip(shares, (left, right), strict=True):
        assert np.sort(after.probability[after.probability > 0]).tolist() == np.sort(before.probability).tolist()


@settings(max_examples=50)
@given(st.lists(st.integers(-3, 3) | st.sampled_from([0.5, True, "a", ("a", 1)]), min_size=1, max_size=20))
def test_a_belief_aligned_with_itself_is_itself(values):
    shares = shares_of(Belief.of(values))
    left, right = aligned([shares, shares])
    assert np.array_equal(left.probability, right.probability)
    assert len(left) == len(shares)


def test_wrong_arguments():
    with pytest.raises(pv.ArgumentError, match="Joint"):
        pairs_of(Belief.of([1, 2]))


def test_a_million_samples_of_pairs_that_are_almost_all_different():
    rng = np.random.default_rng(1)
    secrets = rng.integers(0, 10_000, 1_000_000)
    joint = Joint.from_samples(secrets, secrets + rng.integers(0, 10_000, 1_000_000))
    pairs = pairs_of(joint)
    assert pairs.probability.sum() == pytest.approx(1, rel=1e-12)
    assert len(pairs.probability) > 990_000
    assert len(pairs.prior) == 10_000
    assert joint.secret.kind is Kind.DISCRETE
