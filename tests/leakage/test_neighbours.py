"""Estimators from nearest neighbours: against scikit-learn, against plain loops over all pairs, and closed forms."""

import math

import numpy as np
import pytest
from scipy.special import digamma

from privug.errors import ArgumentError, TooFewSamples
from privug.leakage.neighbours import (
    closer,
    knn_divergence,
    kozachenko_leonenko,
    labelled_information,
    neighbour_distance,
    point_information,
)

LN2 = math.log(2)


def correlated(rho, samples, seed=0):
    x, noise = np.random.default_rng(seed).normal(size=(2, samples))
    return x, rho * x + math.sqrt(1 - rho**2) * noise


def spread(values):
    return (values - np.median(values)) / values.std()


def distances(points):
    """All distances in the maximum norm, by a plain double loop over arrays."""
    return np.abs(points[:, np.newaxis] - points[np.newaxis]).max(axis=2)


def mixed_by_loops(x, y, k):
    """The estimator of Gao et al. as written in their appendix, over all pairs."""
    left, right = distances(x), distances(y)
    both = np.maximum(left, right)
    total = 0.0
    for i in range(len(x)):
        radius = np.sort(both[i])[k]
        if radius == 0:
            reach, near = (both[i] == 0).sum(), [(side[i] == 0).sum() for side in (left, right)]
        else:
            reach, near = k, [(side[i] < radius).sum() for side in (left, right)]
        total += digamma(reach) + math.log(len(x)) - digamma(near[0]) - digamma(near[1])
    return total / len(x) / LN2


def mixed_information(x, y, k=3):
    return point_information(*(np.asarray(side, float).reshape(len(side), -1) for side in (x, y)), k)


@pytest.mark.parametrize("samples", [200, 5000])
@pytest.mark.parametrize("rho", [0.0, 0.6, 0.99])
@pytest.mark.parametrize("k", [1, 3, 7])
def test_mixed_without_atoms_equals_scikit_learn_but_for_a_constant(samples, rho, k):
    peer = pytest.importorskip("sklearn.feature_selection._mutual_info")
    x, y = (spread(side) for side in correlated(rho, samples))
    value, terms = mixed_information(x, y, k)
    assert max(0.0, value + (digamma(samples) - math.log(samples)) / LN2) == pytest.approx(
        peer._compute_mi_cc(x, y, k) / LN2, abs=1e-12
    )
    assert terms.mean() == value
    assert terms.shape == (samples,)


@pytest.mark.parametrize("k", [1, 3, 7])
def test_labelled_equals_scikit_learn(k):
    peer = pytest.importorskip("sklearn.feature_selection._mutual_info")
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 5, 3000)
    labels[0] = 99  # occurs once: left out by both
    values = spread(labels % 5 + rng.normal(size=3000))
    value, terms = labelled_information(labels, values, k)
    assert value == pytest.approx(peer._compute_mi_cd(values, labels, k) / LN2, abs=1e-12)
    assert len(terms) == 2999


@pytest.mark.parametrize("k", [1, 3, 5])
def test_mixed_equals_plain_loops(k):
    rng = np.random.default_rng(3)
    x = np.where(rng.random(300) < 0.4, rng.integers(0, 3, 300), rng.normal(size=300))
    y = np.where(rng.random(300) < 0.5, x, rng.integers(0, 2, 300))
    x, y = spread(x)[:, np.newaxis], spread(y)[:, np.newaxis]
    assert mixed_information(x, y, k)[0] == pytest.approx(mixed_by_loops(x, y, k), abs=1e-12)


def test_several_coordinates_equal_plain_loops():
    rng = np.random.default_rng(4)
    x = rng.normal(size=(300, 2))
    y = np.column_stack([x[:, 0] + rng.normal(size=300), rng.integers(0, 3, 300), rng.normal(size=300)])
    x, y = (np.column_stack([spread(column) for column in side.T]) for side in (x, y))
    assert mixed_information(x, y)[0] == pytest.approx(mixed_by_loops(x, y, 3), abs=1e-12)


@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_neighbour_distance_with_repeated_rows(dimension):
    rng = np.random.default_rng(5)
    points = rng.integers(0, 4, (200, dimension)).astype(float)
    points[:20] = rng.normal(size=(20, dimension))
    for k in (1, 3, 199):
        distance, equals = neighbour_distance(points, k)
        everything = distances(points)
        np.testing.assert_array_equal(distance, np.sort(everything, axis=1)[:, k])
        np.testing.assert_array_equal(equals, (everything == 0).sum(axis=1))


@pytest.mark.parametrize("offset", [0.0, 1.0, 1e6])
def test_closer_counts_exactly_in_spite_of_rounding(offset):
    """Every radius is the distance to some sample, so that each count hangs on the last digit."""
    points = offset + np.random.default_rng(6).random((400, 1)).round(3) * 0.1
    everything = distances(points)
    radius = np.sort(everything, axis=1)[np.arange(400), np.arange(400) % 40]
    within = np.where(radius[:, np.newaxis] > 0, everything < radius[:, np.newaxis], everything == 0)
    np.testing.assert_array_equal(closer(points, radius), within.sum(axis=1))


def test_many_equal_points_stay_fast():
    """All samples on a few points: a search tree would look at all of them for each of them."""
    rng = np.random.default_rng(7)
    x = rng.integers(0, 2, 200_000)
    value, _ = mixed_information(x, x)
    assert value == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9, 0.99])
def test_bivariate_normal(rho):
    value, terms = mixed_information(*correlated(rho, 20_000, seed=1), k=5)
    truth = -0.5 * math.log2(1 - rho**2)
    assert abs(value - truth) < 4 * terms.std() / math.sqrt(20_000) + 0.01 * truth


def test_three_dimensions():
    rng = np.random.default_rng(8)
    s, noise = rng.normal(size=20_000), rng.normal(size=(20_000, 2))
    value, terms = mixed_information(s, s[:, np.newaxis] + noise)
    assert abs(value - 0.5 * math.log2(3)) < 4 * terms.std() / math.sqrt(20_000)


@pytest.mark.parametrize("scale", [1e-300, 1e300, 1e-310, 2.0**-1000, 12345.678])
def test_units_do_not_matter(scale):
    x, y = correlated(0.6, 2000)
    moved, labels = x * scale, y > 0
    assert labelled_information(labels, moved)[0] == pytest.approx(labelled_information(labels, x)[0], abs=1e-9)
    assert kozachenko_leonenko(moved)[0] == pytest.approx(kozachenko_leonenko(x)[0] + math.log2(scale), abs=1e-3)
    assert knn_divergence(moved, y * scale)[0] == pytest.approx(knn_divergence(x, y)[0], abs=1e-3)


def test_large_offsets_do_not_matter():
    # Whole multiples of a power of two, so that shifting them rounds nothing.
    x, y = (np.round(side * 2**12) / 2**12 for side in correlated(0.6, 2000))
    moved, labels = x + 2.0**40, y > 0
    assert labelled_information(labels, moved)[0] == pytest.approx(labelled_information(labels, x)[0], abs=1e-12)
    assert knn_divergence(moved, y + 2.0**40)[0] == pytest.approx(knn_divergence(x, y)[0], abs=1e-12)


@pytest.mark.parametrize(
    ("draw", "truth"),
    [
        (lambda rng: rng.uniform(0, 8, 20_000), 3.0),
        (lambda rng: rng.normal(0, 2, 20_000), 0.5 * math.log2(2 * math.pi * math.e * 4)),
        (lambda rng: rng.exponential(1, 20_000), math.log2(math.e)),
        (lambda rng: rng.standard_cauchy(20_000), math.log2(4 * math.pi)),
        (lambda rng: rng.normal(size=(20_000, 3)) * [1, 8, 1 / 8], 1.5 * math.log2(2 * math.pi * math.e)),
    ],
    ids=["uniform", "normal", "exponential", "cauchy", "three dimensions"],
)
@pytest.mark.parametrize("k", [1, 3, 10])
def test_differential_entropy(draw, truth, k):
    value, terms = kozachenko_leonenko(draw(np.random.default_rng(9)), k)
    assert abs(value - truth) < 6 * terms.std() / math.sqrt(len(terms)) + 0.02 * (k == 10)


def test_an_atom_has_minus_infinite_entropy():
    values = np.append(np.zeros(5), np.random.default_rng(0).random(100))
    assert kozachenko_leonenko(values)[0] == -math.inf


def test_divergence_of_normals():
    rng = np.random.default_rng(10)
    p, q = rng.normal(1, 1, 20_000), rng.normal(0, 2, 30_000)
    truth = (math.log(2) + (1 + 1) / 8 - 0.5) / LN2
    value, terms = knn_divergence(p, q)
    assert abs(value - truth) < 4 * terms.std() / math.sqrt(20_000)
    several, terms = knn_divergence(np.column_stack([p, -p[::-1]]), np.column_stack([q, -q[::-1]]))
    assert abs(several - 2 * truth) < 4 * terms.std() / math.sqrt(20_000)


def test_divergence_of_atoms_compares_their_shares():
    p, q = np.repeat([0.0, 1.0], [75, 25]), np.repeat([0.0, 1.0], [50, 50])
    assert knn_divergence(p, q)[0] == pytest.approx(0.75 * math.log2(1.5) + 0.25 * math.log2(0.5))
    assert knn_divergence(q, p)[0] == pytest.approx(0.5 * math.log2(1 / 1.5) + 0.5 * math.log2(2))
    assert knn_divergence(p, np.zeros(50))[0] == math.inf


def test_labels_and_noise():
    rng = np.random.default_rng(11)
    labels = rng.integers(0, 5, 20_000)
    value, terms = labelled_information(labels, labels + rng.uniform(0, 2, 20_000))
    assert abs(value - (math.log2(5) - 4 / 5)) < 4 * terms.std() / math.sqrt(20_000)
    far = labelled_information(labels, np.column_stack([labels * 10.0 + rng.random(20_000), rng.random(20_000)]))[0]
    assert far == pytest.approx(math.log2(5), abs=1e-3)


def test_constant_sides_tell_nothing():
    x = np.random.default_rng(0).random(500)
    assert mixed_information(x, np.zeros(500))[0] == pytest.approx(0.0, abs=2e-3)
    assert mixed_information(np.zeros(500), np.zeros(500))[0] == pytest.approx(0.0, abs=2e-3)


def test_bad_input():
    x = np.arange(10.0)
    with pytest.raises(ArgumentError, match="pairs"):
        labelled_information(x, x[:5])
    with pytest.raises(ArgumentError, match="positive whole number"):
        labelled_information(x > 4, x, 0)
    with pytest.raises(ArgumentError, match="finite"):
        kozachenko_leonenko(np.append(x, np.inf))
    with pytest.raises(ArgumentError, match="coordinates"):
        knn_divergence(x, np.ones((10, 2)))
    with pytest.raises(TooFewSamples, match="4 samples"):
        kozachenko_leonenko(x[:3])
    with pytest.raises(TooFewSamples, match="occurs twice"):
        labelled_information(x, x)
    with pytest.raises(TooFewSamples):
        knn_divergence(x, x[:2])
