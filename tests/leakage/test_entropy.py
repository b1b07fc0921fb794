"""Entropies of a belief: exact ones against closed forms and dit, sampled ones covered by their intervals."""

import math

import dit
import numpy as np
import pytest
from scipy import stats

import privug as pv
from privug.inference.belief import Belief
from privug.inference.measure.curve import Curve
from privug.leakage.entropy import differential_entropy, entropy, guessing_entropy, min_entropy, renyi_entropy
from privug.model.batch import Batch
from privug.model.node import Kind

RUNS = 200
LEAST, MOST = 0.9, 0.99
LN2 = math.log(2)
ORDERS = [0, 0.5, 0.999, 1, 1.001, 2, 3, 50, math.inf]


def exact(probabilities):
    return Belief.of(np.arange(len(probabilities)), probabilities=probabilities)


def random_probabilities(seed):
    rng = np.random.default_rng(seed)
    weights = rng.gamma(rng.choice([0.1, 1.0, 10.0]), size=rng.integers(1, 30)) + 1e-12
    return weights / weights.sum()


@pytest.mark.parametrize("seed", range(20))
def test_agrees_with_dit(seed):
    probabilities = random_probabilities(seed)
    belief, theirs = exact(probabilities), dit.Distribution([(k,) for k in range(len(probabilities))], probabilities)
    assert entropy(belief).value == pytest.approx(float(dit.shannon.entropy(theirs)), abs=1e-9)
    for order in (0, 0.5, 2, 3, math.inf):
        assert renyi_entropy(belief, order).value == pytest.approx(
            float(dit.other.renyi_entropy(theirs, order)), abs=1e-9
        )


def test_closed_forms():
    belief = exact([1 / 2, 1 / 4, 1 / 8, 1 / 8])
    assert entropy(belief) == pv.Estimate.exactly(1.75, "bit", "exact")
    assert guessing_entropy(belief).value == 1 / 2 + 2 / 4 + 3 / 8 + 4 / 8
    assert guessing_entropy(belief).unit == "guesses"
    assert min_entropy(belief).value == 1
    geometric = exact(0.5 ** np.append(np.arange(1, 60), 59))
    assert entropy(geometric).value == pytest.approx(2, abs=1e-12)


def test_orders_fall_and_meet_at_one():
    belief = exact([0.5, 0.3, 0.15, 0.05])
    values = [renyi_entropy(belief, order).value for order in ORDERS]
    assert values == sorted(values, reverse=True)
    assert values[0] == 2
    for near in (1 - 1e-14, 1 + 1e-14, 1 - 1e-9, 1 + 1e-9):
        assert renyi_entropy(belief, near).value == pytest.approx(entropy(belief).value, abs=1e-8)
    assert renyi_entropy(belief, 1e6).value == pytest.approx(min_entropy(belief).value, rel=1e-5)


@pytest.mark.parametrize("measure", [entropy, min_entropy, *(lambda b, a=a: renyi_entropy(b, a) for a in ORDERS)])
def test_a_point_has_no_entropy_not_even_a_negative_zero(measure):
    for belief in (Belief.of(["only"], probabilities=[1.0]), Belief.of([3, 3, 3], probabilities=[0.2, 0.3, 0.5])):
        value = measure(belief).value
        assert value == 0
        assert math.copysign(1, value) == 1
    assert guessing_entropy(Belief.of([7], probabilities=[1.0])).value == 1


def test_tiny_probabilities():
    belief = Belief.of(["a", "b"], probabilities=[1.0, 1e-300])
    assert entropy(belief).value == pytest.approx(1e-300 * 300 * math.log2(10), rel=1e-9)
    assert renyi_entropy(belief, 0).value == 1
    assert renyi_entropy(belief, 0.5).value == pytest.approx(2e-150 / LN2, rel=1e-9)
    assert renyi_entropy(belief, 2).value == 0
    assert min_entropy(belief).value == 0
    assert guessing_entropy(belief).value == 1


def test_a_million_categories():
    count = 1_000_000
    uniform = exact(np.full(count, 1 / count))
    for order in (0.5, 1, 2):
        assert renyi_entropy(uniform, order).value == pytest.approx(math.log2(count), abs=1e-9)
    assert guessing_entropy(uniform).value == pytest.approx((count + 1) / 2, rel=1e-9)
    sampled = entropy(Belief.of(np.random.default_rng(0).integers(0, count, 500_000)))
    assert sampled.high == math.inf
    assert sampled.low < math.log2(count)
    assert sampled.method.startswith("lower bound")


def test_errors_of_exact_probabilities_are_passed_on():
    belief = Belief(Batch.of_values([0, 1]), np.array([0.25, 0.75]), True, spread=Kind.DISCRETE, error=1e-6)
    estimate = entropy(belief)
    assert estimate.exact
    assert estimate.high - estimate.value == pytest.approx(1e-6 * math.log2(3), rel=1e-6)


ZIPF = 1 / np.arange(1, 101)
DISTRIBUTIONS = {
    "coin": np.array([0.9, 0.1]),
    "three": np.array([0.5, 0.3, 0.2]),
    "geometric": 0.5 ** np.append(np.arange(1, 30), 29),
    "zipf": ZIPF / ZIPF.sum(),
    "even": np.full(20, 1 / 20),
}


def discrete_samples(probabilities, samples, weighted):
    def make(seed):
        rng = np.random.default_rng(seed)
        if not weighted:
            return Belief(Batch.of_values(rng.choice(len(probabilities), samples, p=probabilities)))
        drawn = np.sqrt(probabilities) / np.sqrt(probabilities).sum()
        values = rng.choice(len(probabilities), samples, p=drawn)
        weights = probabilities[values] / drawn[values] * rng.gamma(2, size=samples)
        return Belief(Batch.of_values(values), weights / weights.sum())

    return make


def coverage(make, measure, truth, runs=RUNS):
    return float(np.mean([truth in measure(make(seed)) for seed in range(runs)]))


@pytest.mark.parametrize("weighted", [False, True], ids=["equal", "weighted"])
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_intervals_cover(name, weighted):
    probabilities = DISTRIBUTIONS[name]
    make = discrete_samples(probabilities, 1000, weighted)
    beliefs = [make(seed) for seed in range(RUNS)]
    for order in (0.5, 1, 2):
        truth = renyi_entropy(exact(probabilities), order).value
        share = float(np.mean([truth in renyi_entropy(belief, order) for belief in beliefs]))
        # An even belief has the largest entropy there is: its interval cannot miss upwards. Nor can a lower bound.
        assert LEAST <= share <= (1.0 if name == "even" or order == 0.5 else MOST + 0.005), order


@pytest.mark.parametrize("samples", [20, 50, 100])
@pytest.mark.parametrize("name", ["coin", "three", "zipf"])
def test_few_samples_are_covered_or_only_bound(name, samples):
    probabilities = DISTRIBUTIONS[name]
    truth = entropy(exact(probabilities)).value
    assert coverage(discrete_samples(probabilities, samples, False), entropy, truth) >= LEAST


@pytest.mark.parametrize("samples", [50, 300, 1000])
def test_many_rare_values_beside_a_common_one(samples):
    hidden = np.append(0.9, np.full(100, 0.001))
    truth = entropy(exact(hidden)).value
    assert coverage(discrete_samples(hidden, samples, False), entropy, truth) >= LEAST


def test_samples_that_never_vary_may_have_missed_something():
    estimate = entropy(Belief.of(["x"] * 200))
    assert (estimate.value, estimate.low) == (0, 0)
    assert entropy(exact([0.985, 0.015])).value in estimate
    assert estimate.high < 0.2
    assert entropy(Belief.of([1])).high == math.inf
    assert renyi_entropy(Belief.of([1, 1]), 2).high == math.inf


def test_plug_in_bias_is_corrected():
    probabilities = DISTRIBUTIONS["zipf"]
    truth = entropy(exact(probabilities)).value
    make = discrete_samples(probabilities, 1000, False)
    beliefs = [make(seed) for seed in range(RUNS)]
    corrected = np.mean([entropy(belief).value for belief in beliefs]) - truth
    naive = np.mean([stats.entropy(np.bincount(b.batch.numbers()), base=2) for b in beliefs]) - truth
    assert abs(corrected) < abs(naive) / 4


def test_collision_entropy_of_samples_is_unbiased():
    even = DISTRIBUTIONS["even"]
    make = discrete_samples(even, 400, False)
    values = [renyi_entropy(make(seed), 2).value for seed in range(RUNS)]
    assert np.mean(values) == pytest.approx(math.log2(20), abs=0.04)


def normal_weighted(seed, samples):
    """Samples of N(0, sd 1.5) weighted to represent N(1, 1)."""
    values = np.random.default_rng(seed).normal(0, 1.5, samples)
    weights = np.exp(stats.norm.logpdf(values, 1, 1) - stats.norm.logpdf(values, 0, 1.5))
    return Belief(Batch.of_values(values), weights / weights.sum())


CONTINUOUS = {
    "uniform": (lambda seed, n: Belief.of(np.random.default_rng(seed).uniform(3, 4, n)), 0.0),
    "normal": (lambda seed, n: Belief.of(np.random.default_rng(seed).normal(size=n)), stats.norm.entropy() / LN2),
    "exponential": (lambda seed, n: Belief.of(np.random.default_rng(seed).exponential(size=n)), 1 / LN2),
    "Cauchy": (lambda seed, n: Belief.of(np.random.default_rng(seed).standard_cauchy(n)), math.log2(4 * math.pi)),
    "weighted": (normal_weighted, stats.norm.entropy() / LN2),
}


@pytest.mark.parametrize("name", CONTINUOUS)
def test_neighbour_intervals_cover(name):
    make, truth = CONTINUOUS[name]
    share = coverage(lambda seed: make(seed, 500), differential_entropy, truth)
    assert LEAST <= share <= MOST


@pytest.mark.parametrize("name", CONTINUOUS)
def test_kernel_intervals_cover(name):
    """They allow for a bias of either sign and so cover more than they claim."""
    make, truth = CONTINUOUS[name]
    share = coverage(lambda seed: make(seed, 500), lambda b: differential_entropy(b, "kernel"), truth, runs=50)
    assert share >= LEAST


@pytest.mark.parametrize("estimator", ["kozachenko-leonenko", "kernel"])
@pytest.mark.parametrize(("scale", "shift"), [(1e-200, 0.0), (1e200, 0.0), (1e-3, 1e6), (1.0, -1e9)])
def test_units_only_add_their_logarithm(estimator, scale, shift):
    values = np.random.default_rng(0).normal(size=2000)
    plain = differential_entropy(Belief.of(values), estimator)
    scaled = differential_entropy(Belief.of(values * scale + shift), estimator)
    assert scaled.value - plain.value == pytest.approx(math.log2(scale), abs=2e-3)
    assert scaled.high - scaled.low == pytest.approx(plain.high - plain.low, rel=2e-2)


def test_several_coordinates():
    points = np.random.default_rng(0).normal(size=(3000, 2)) @ np.array([[2.0, 0.0], [1.0, 0.5]])
    belief = Belief(Batch.of_values(points), spread=Kind.CONTINUOUS)
    truth = 2 * stats.norm.entropy() / LN2 + math.log2(2.0 * 0.5)
    assert truth in differential_entropy(belief)
    flat = Belief(Batch.of_values(points[:, [0, 0]] + 1), spread=Kind.CONTINUOUS)
    assert differential_entropy(flat).value == -math.inf
    with pytest.raises(pv.ArgumentError, match="single numbers"):
        differential_entropy(belief, "kernel")


def test_a_differential_entropy_is_called_that():
    belief = Belief.of(np.random.default_rng(0).normal(size=1000))
    assert entropy(belief) == differential_entropy(belief)
    assert entropy(belief).method == "differential entropy, Kozachenko-Leonenko k=3, n=1000"
    assert entropy(belief).unit == "bit"


def test_curves_are_exact():
    normal = Belief.of_curve(Curve.normal(5.0, 3.0))
    estimate = entropy(normal)
    assert estimate.value == pytest.approx(math.log2(3 * math.sqrt(2 * math.pi * math.e)), abs=1e-9)
    assert estimate.exact
    assert "differential entropy" in str(estimate)
    atom = Belief.of_curve(Curve.mixture([0.25, 0.75], [Curve.point(0.0), Curve.normal(0, 1)]))
    assert min_entropy(atom).value == pytest.approx(2, abs=1e-12)
    assert differential_entropy(atom).value == -math.inf


def test_atoms_and_densities():
    rng = np.random.default_rng(0)
    mixed = Belief.of(np.where(rng.random(1000) < 0.3, 0.0, rng.normal(size=1000)))
    assert mixed.kind is Kind.MIXED
    with pytest.raises(pv.ArgumentError, match="atoms and a density"):
        entropy(mixed)
    assert differential_entropy(mixed).value == -math.inf
    assert "single values" in differential_entropy(mixed).method
    assert -math.log2(0.3) in min_entropy(mixed).widened(2)
    assert guessing_entropy(mixed).value == math.inf
    continuous = Belief.of(rng.normal(size=1000))
    assert min_entropy(continuous).value == math.inf
    assert guessing_entropy(continuous).value == math.inf


def test_collapsed_samples_of_a_continuous_quantity():
    belief = Belief(Batch.of_values(np.full(100, 3.5)), spread=Kind.CONTINUOUS)
    assert differential_entropy(belief).value == -math.inf
    assert differential_entropy(belief, "kernel").value == -math.inf


def test_min_entropy_and_guesses_of_samples():
    probabilities = DISTRIBUTIONS["three"]
    make = discrete_samples(probabilities, 300, False)
    assert coverage(make, min_entropy, 1.0, runs=100) >= LEAST
    assert coverage(make, guessing_entropy, 1.7, runs=100) >= LEAST


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: entropy(pv.Joint.from_channel([1.0], [[1.0]])), "conditional_entropy"),
        (lambda: min_entropy([0.5, 0.5]), "Belief"),
        (lambda: renyi_entropy(exact([1.0]), -1), "order"),
        (lambda: renyi_entropy(exact([1.0]), math.nan), "order"),
        (lambda: renyi_entropy(exact([1.0]), "two"), "order"),
        (lambda: renyi_entropy(Belief.of(np.random.default_rng(0).normal(size=9)), 2), "differential"),
        (lambda: differential_entropy(exact([0.5, 0.5])), "discrete"),
        (lambda: differential_entropy(Belief.of([0.5, 1.5, 2.5, 3.7]), "histogram"), "estimator"),
        (lambda: differential_entropy(Belief.of([0.5, 1.5, 2.5, 3.7]), k=0), "k must"),
        (lambda: differential_entropy(Belief.of([0.5, 1.5, math.inf, 3.7])), "infinite"),
    ],
)
def test_wrong_questions(ask, message):
    with pytest.raises(pv.ArgumentError, match=message):
        ask()


def test_too_few_samples():
    with pytest.raises(pv.TooFewSamples):
        differential_entropy(Belief.of([0.5, 1.5, 2.5]))
    weights = np.append(0.99, np.full(99, 0.01 / 99))
    with pytest.raises(pv.TooFewSamples, match="uneven"):
        differential_entropy(Belief(Batch.of_values(np.random.default_rng(0).normal(size=100)), weights))
