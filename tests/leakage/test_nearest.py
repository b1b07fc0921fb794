"""Votes of nearest neighbours: against a plain search, against scikit-learn, and on awkward data."""

import numpy as np
import pytest

from privug.errors import ArgumentError
from privug.leakage.black_box import nearest_support, nearest_votes


def plain_votes(train, labels, test, k):
    """Everything no farther than the k-th nearest votes; the smallest label wins a tie."""
    winners, shares = [], []
    for point in test:
        distance = np.abs(train - point) if train.ndim == 1 else np.sqrt(((train - point) ** 2).sum(axis=1))
        voters = labels[distance <= np.sort(distance)[min(k, len(train)) - 1]]
        counts = np.bincount(voters)
        winners.append(counts.argmax())
        shares.append(counts.max() / counts.sum())
    return np.array(winners), np.array(shares)


def check(train, labels, test, k):
    votes = nearest_votes(train, labels, test, k)
    winners, shares = plain_votes(train, labels, test, k)
    assert np.array_equal(votes.label, winners)
    assert np.allclose(votes.share, shares, rtol=1e-12)


@pytest.mark.parametrize("seed", range(60))
def test_votes_on_a_line_are_those_of_a_plain_search(seed):
    rng = np.random.default_rng(seed)
    train, test = rng.normal(size=rng.integers(1, 60)), rng.normal(size=30)
    labels = rng.integers(0, rng.integers(1, 9), len(train))
    for k in (1, 2, 3, 7, 25, 100):
        check(train, labels, test, k)


@pytest.mark.parametrize("seed", range(60))
def test_points_at_the_same_distance_vote_together(seed):
    rng = np.random.default_rng(seed)
    train = rng.integers(-4, 9, rng.integers(1, 60)).astype(float)
    test = rng.integers(-12, 24, 30) / 2
    labels = rng.integers(0, rng.integers(1, 9), len(train))
    order = rng.permutation(len(train))
    for k in (1, 2, 5, 12):
        check(train, labels, test, k)
        shuffled = nearest_votes(train[order], labels[order], test, k)
        assert np.array_equal(shuffled.label, nearest_votes(train, labels, test, k).label)


@pytest.mark.parametrize("seed", range(30))
def test_votes_in_space_are_those_of_a_plain_search(seed):
    rng = np.random.default_rng(seed)
    size = rng.integers(1, 60)
    labels = rng.integers(0, rng.integers(1, 9), size)
    for k in (1, 3, 8, 100):
        check(rng.normal(size=(size, 3)), labels, rng.normal(size=(20, 3)), k)
        check(rng.integers(0, 3, (size, 2)).astype(float), labels, rng.normal(size=(20, 2)), k)


def test_winners_are_those_of_scikit_learn():
    neighbors = pytest.importorskip("sklearn.neighbors")
    rng = np.random.default_rng(1)
    for classes in (2, 3, 40):
        labels = rng.integers(0, classes, 3000)
        train, test = rng.normal(size=3000) + labels, rng.normal(size=3000) + rng.integers(0, classes, 3000)
        for k in (1, 2, 7, 55):
            theirs = neighbors.KNeighborsClassifier(k).fit(train[:, np.newaxis], labels).predict(test[:, np.newaxis])
            assert np.array_equal(nearest_votes(train, labels, test, k).label, theirs)
            both = np.column_stack((train, rng.normal(size=3000))), np.column_stack((test, rng.normal(size=3000)))
            theirs = neighbors.KNeighborsClassifier(k).fit(both[0], labels).predict(both[1])
            assert np.array_equal(nearest_votes(both[0], labels, both[1], k).label, theirs)


@pytest.mark.parametrize("scale", [1e-300, 1e-12, 1.0, 1e12, 1e300])
def test_scale_does_not_matter(scale):
    rng = np.random.default_rng(2)
    train, test, labels = rng.normal(size=200), rng.normal(size=200), rng.integers(0, 3, 200)
    expected = nearest_votes(train, labels, test, 5)
    scaled = nearest_votes(train * scale, labels, test * scale, 5)
    assert np.array_equal(scaled.label, expected.label)


def test_infinite_values_are_the_farthest():
    train, labels = np.array([-np.inf, 0.0, 1.0, np.inf, np.inf]), np.array([0, 1, 2, 3, 3])
    votes = nearest_votes(train, labels, np.array([np.inf, -np.inf, 0.9]), 1)
    assert votes.label.tolist() == [3, 0, 2]


@pytest.mark.parametrize("k", [1, 3, 9, 50])
@pytest.mark.parametrize("dimensions", [1, 2])
def test_support_is_the_share_of_votes_for_the_claim(k, dimensions):
    rng = np.random.default_rng(k)
    train, test = rng.integers(0, 9, (40, dimensions)).astype(float), rng.normal(4, 3, (25, dimensions))
    labels, claims = rng.integers(0, 4, 40), rng.integers(0, 6, 25)
    support = nearest_support(train, labels, test, claims, k)
    for point, claim, share in zip(test, claims, support, strict=True):
        distance = np.sqrt(((train - point) ** 2).sum(axis=1))
        voters = labels[distance <= np.sort(distance)[min(k, 40) - 1]]
        assert share == pytest.approx((voters == claim).mean(), rel=1e-12)


@pytest.mark.parametrize(
    ("train", "labels", "test", "k", "message"),
    [
        ([1.0], [0], [1.0], 0, "k must be a positive whole number"),
        ([1.0], [0], [1.0], True, "k must be a positive whole number"),
        ([], [], [1.0], 1, "at least one point"),
        ([np.nan], [0], [1.0], 1, "none of them missing"),
        ([1.0, 2.0], [0], [1.0], 1, "must fit together"),
        ([[1.0, 2.0]], [0], [1.0], 1, "must fit together"),
    ],
)
def test_bad_arguments_are_named(train, labels, test, k, message):
    with pytest.raises(ArgumentError, match=message):
        nearest_votes(np.array(train), np.array(labels, int), np.array(test), k)
