"""Information is infinite where the output is the secret itself with some probability, however small that is."""

import math

import numpy as np
import pytest

import privug as pv
from privug.leakage.information import conditional_entropy, mutual_information

SAMPLES = 4000


def order_statistic(rows, place, seed=0, samples=SAMPLES):
    """The value of one person, and the one at a place in the order of everybody's."""
    values = np.random.default_rng(seed).normal(40, 10, (samples, rows))
    return values[:, 0], np.sort(values, axis=1)[:, place]


@pytest.mark.parametrize(("rows", "place"), [(3, 0), (5, 2), (9, 4), (11, 5), (20, 17), (51, 25), (101, 50)])
def test_an_order_statistic_gives_the_secret_away(rows, place):
    secret, output = order_statistic(rows, place)
    found = mutual_information(pv.Joint.from_samples(secret, output))
    assert found.value == found.low == math.inf
    assert conditional_entropy(pv.Joint.from_samples(secret, output)).value == -math.inf


@pytest.mark.parametrize(
    "release",
    [
        lambda x: 2 * x - 7,
        lambda x: x / 3,
        lambda x: (x + 1e6) / 7,
        lambda x: -x,
        lambda x: 1e-9 * x,
        lambda x: 1e12 * x + 5,
        np.square,
        np.exp,
        lambda x: np.sqrt(np.abs(x)),
        lambda x: 1 / x,
        lambda x: np.column_stack((np.arange(len(x)) % 2, x)),
    ],
)
@pytest.mark.parametrize("rows", [9, 20])
def test_also_through_arithmetic_and_its_rounding(release, rows):
    secret, output = order_statistic(rows, rows // 2)
    assert mutual_information(pv.Joint.from_samples(secret, release(output))).value == math.inf


@pytest.mark.parametrize("share", [0.01, 0.05, 0.3, 1.0])
def test_a_secret_that_is_sometimes_published(share):
    rng = np.random.default_rng(1)
    secret, other = rng.normal(size=(2, SAMPLES))
    output = np.where(rng.random(SAMPLES) < share, secret, other)
    assert mutual_information(pv.Joint.from_samples(secret, output)).value == math.inf


@pytest.mark.parametrize("digits", [3, 4, 5, 6, 9, None])
@pytest.mark.parametrize("noise", [0.01, 1.0, 100.0])
def test_noise_is_never_taken_for_the_secret(digits, noise):
    """I(S; S + N) = log2(1 + 1 / noise^2) / 2 for normal quantities, rounded to many digits or not at all."""
    rng = np.random.default_rng(2)
    secret = rng.normal(size=SAMPLES)
    output = secret + noise * rng.normal(size=SAMPLES)
    if digits is not None and 10**-digits < noise / 20:
        secret, output = np.round(secret, digits), np.round(output, digits)
    found = mutual_information(pv.Joint.from_samples(secret, output))
    assert math.isfinite(found.value)
    assert 0.5 * math.log2(1 + noise**-2) in found.widened(2)


@pytest.mark.parametrize(
    "pair",
    [
        lambda rng, n: (rng.standard_cauchy(n), rng.standard_cauchy(n)),
        lambda rng, n: (rng.lognormal(0, 5, n), rng.normal(size=n)),
        lambda rng, n: (rng.normal(size=n), rng.lognormal(0, 5, n)),
        lambda rng, n: (rng.normal(size=n).astype(np.float32), rng.normal(size=n).astype(np.float32)),
        lambda rng, n: (1e12 + rng.random(n), 1e-12 * rng.random(n)),
        lambda rng, n: (rng.random(n) ** 8, rng.random(n) ** 8),
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_independent_quantities_do_not_meet(pair, seed):
    secret, output = pair(np.random.default_rng(seed), SAMPLES)
    found = mutual_information(pv.Joint.from_samples(secret.astype(float), output.astype(float)))
    assert 0.0 in found.widened(2)
    assert found.value < 0.1


@pytest.mark.parametrize(("rows", "place"), [(9, 4), (11, 5), (20, 17)])
def test_from_programs(rows, place):
    def release(ages):
        return sorted(ages)[place]

    attack = pv.Attack(
        release, prior={"ages": [pv.Normal(50, sd=12) for _ in range(rows)]}, secret=lambda ages: ages[0]
    )
    result = attack.run(engine="sample", samples=3000, seed=1)
    assert mutual_information(result.joint).value == math.inf


class TestTablesOfManyValues:
    """Sparse tables seen as steps of continuous numbers: labels without neighbours, equal floats, single values."""

    @pytest.mark.parametrize("seed", range(4))
    @pytest.mark.parametrize("samples", [300, 3000])
    def test_numbers_of_long_tails_beside_labels(self, seed, samples):
        rng = np.random.default_rng(seed)
        secret = np.minimum(rng.zipf(1.5, samples), 10**12)
        labels = [f"label {code}" for code in np.minimum(rng.zipf(1.7, samples), 5000)]
        for output in (labels, rng.geometric(0.3, samples)):
            found = mutual_information(pv.Joint.from_samples(secret, output))
            assert 0.0 in found.widened(2)

    @pytest.mark.parametrize("start", [0, 2**53, 2**60, -(2**62), 2**63])
    def test_whole_numbers_that_floats_cannot_tell_apart(self, start):
        rng = np.random.default_rng(0)
        near = np.array([start + int(step) for step in rng.integers(0, 30, 300)])
        found = mutual_information(pv.Joint.from_samples(np.minimum(rng.zipf(1.5, 300), 10**12), near))
        assert 0.0 in found.widened(2)

    def test_values_of_which_some_repeat(self):
        """I(X; X + Y) of two uniform numbers is 1 / (2 ln 2) bit, that of whole ones nearly."""
        rng = np.random.default_rng(0)
        secret, other = rng.integers(0, 10_000, (2, 10_000))
        found = mutual_information(pv.Joint.from_samples(secret, (secret + other) / 2))
        assert 0.5 / math.log(2) in found.widened(2)
