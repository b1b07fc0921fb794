"""Divergences and changes: exact ones against closed forms and dit, sampled ones covered by their intervals."""

import math

import dit
import numpy as np
import pytest
from dit.divergences import jensen_shannon_divergence, kullback_leibler_divergence, variational_distance
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import privug as pv
from privug.inference.belief import Belief
from privug.inference.measure.curve import Curve
from privug.inference.measure.density import Tabulated
from privug.leakage.divergence import (
    cohens_d,
    entropy_drop,
    jensen_shannon,
    kl_divergence,
    probability_change,
    total_variation,
)
from privug.model.batch import Batch
from privug.model.node import Kind

RUNS = 200
LEAST, MOST = 0.9, 0.99
LN2 = math.log(2)
DIVERGENCES = [kl_divergence, jensen_shannon, total_variation]


def exact(probabilities):
    return Belief.of(np.arange(len(probabilities)), probabilities=probabilities)


def tilted(probabilities, by):
    weights = probabilities * np.exp(by * np.linspace(0, 1, len(probabilities)))
    return weights / weights.sum()


def normal_kl(mean, sd, other_mean, other_sd):
    return (math.log(other_sd / sd) + (sd**2 + (mean - other_mean) ** 2) / (2 * other_sd**2) - 0.5) / LN2


def sampled(probabilities, samples, rng, *, weighted=False):
    if not weighted:
        return Belief(Batch.of_values(rng.choice(len(probabilities), samples, p=probabilities)))
    drawn = np.sqrt(probabilities) / np.sqrt(probabilities).sum()
    values = rng.choice(len(probabilities), samples, p=drawn)
    weights = probabilities[values] / drawn[values] * rng.gamma(2, size=samples)
    return Belief(Batch.of_values(values), weights / weights.sum())


def numbers(values):
    return Belief(Batch.of_values(values), spread=Kind.CONTINUOUS)


@pytest.mark.parametrize("seed", range(20))
def test_agrees_with_dit(seed):
    rng = np.random.default_rng(seed)
    p, q = rng.dirichlet(np.full(7, rng.choice([0.3, 3.0])), 2) * 0.99 + 0.01 / 7
    theirs = [dit.Distribution([(k,) for k in range(7)], some / some.sum()) for some in (p, q)]
    ours = [exact(some / some.sum()) for some in (p, q)]
    assert kl_divergence(*ours).value == pytest.approx(float(kullback_leibler_divergence(*theirs)), abs=1e-9)
    assert jensen_shannon(*ours).value == pytest.approx(float(jensen_shannon_divergence(theirs)), abs=1e-9)
    assert total_variation(*ours).value == pytest.approx(float(variational_distance(*theirs)), abs=1e-9)


def test_closed_forms():
    before, after = exact([1 / 4] * 4), exact([1 / 2, 1 / 2, 0.0, 0.0])
    assert kl_divergence(after, before) == pv.Estimate.exactly(1.0, "bit", "exact")
    assert total_variation(after, before).value == 0.5
    middle = 2 * (3 / 8 * math.log2(8 / 3) + 1 / 8 * math.log2(8))
    assert jensen_shannon(after, before).value == pytest.approx(middle - 1 / 2 - 1, abs=1e-12)
    assert entropy_drop(before, after).value == 1
    assert probability_change(before, after, lambda x: x < 2).value == 0.5
    assert probability_change(before, after, lambda x: x == 3).value == -0.25
    assert cohens_d(before, after).value == pytest.approx(-1 / math.sqrt((1.25 + 0.25) / 2), rel=1e-12)


def test_what_the_prior_rules_out_is_infinitely_surprising():
    estimate = kl_divergence(exact([0.25, 0.75]), exact([1.0]))
    assert estimate.value == estimate.low == math.inf
    assert estimate.exact
    assert "rules out" in str(estimate)
    assert str(estimate).startswith("infinite bit")
    assert kl_divergence(exact([1.0]), exact([0.25, 0.75])).value == 2
    seen = kl_divergence(Belief.of([0, 0, 1]), exact([1.0]))
    assert seen.value == math.inf
    assert not seen.exact


@pytest.mark.parametrize("measure", DIVERGENCES)
def test_a_belief_does_not_differ_from_itself(measure):
    for belief in (exact([0.3, 0.7]), exact([1.0]), Belief.of(["a", "b", "a"]), Belief.of(np.arange(50) % 7)):
        estimate = measure(belief, belief)
        assert estimate.low == 0
        assert estimate.value == pytest.approx(0, abs=1e-12)
        assert math.copysign(1, estimate.value) == 1


@pytest.mark.parametrize("measure", DIVERGENCES)
def test_equal_values_are_equal_whatever_their_type(measure):
    prior = Belief.of([0, 1, 2], probabilities=[0.25, 0.25, 0.5])
    plain = measure(Belief.of([0, 1], probabilities=[0.5, 0.5]), prior).value
    for values in ([False, True], [0.0, 1.0]):
        assert measure(Belief.of(values, probabilities=[0.5, 0.5]), prior).value == pytest.approx(plain, abs=1e-12)
    nested = Belief.of([("x", 0), ("x", 1), ("y", 2)], probabilities=[0.25, 0.25, 0.5])
    assert measure(Belief.of([("x", 0.0), ("x", True)], probabilities=[0.5, 0.5]), nested).value == pytest.approx(plain)


def test_tiny_probabilities_and_a_million_values():
    rare = Belief.of(["a", "b"], probabilities=[1.0, 1e-300])
    certain = Belief.of(["b"], probabilities=[1.0])
    assert kl_divergence(certain, rare).value == pytest.approx(300 * math.log2(10), rel=1e-12)
    assert jensen_shannon(certain, rare).value == pytest.approx(1, rel=1e-12)
    count = 1_000_000
    even, half = exact(np.full(count, 1 / count)), exact(np.full(count // 2, 2 / count))
    assert kl_divergence(half, even).value == pytest.approx(1, abs=1e-9)
    assert total_variation(half, even).value == pytest.approx(0.5, abs=1e-9)


probabilities = st.lists(st.floats(0.01, 1), min_size=2, max_size=6).map(lambda w: np.array(w) / sum(w))


@settings(max_examples=50)
@given(probabilities, probabilities)
def test_inequalities(p, q):
    p, q = (np.pad(some, (0, 6 - len(some))) for some in (p, q))
    posterior, prior = exact(p), exact(q)
    kl, js, tv = (measure(posterior, prior).value for measure in DIVERGENCES)
    assert jensen_shannon(prior, posterior).value == pytest.approx(js, abs=1e-12)
    assert tv**2 * 2 / LN2 <= kl + 1e-9  # Pinsker
    assert js <= tv + 1e-9  # Lin
    assert 0 <= js <= 1
    # Merging values hides change.
    merged = [Belief.of([0, 0, 1, 1, 2, 2], probabilities=some) for some in (p, q)]
    for measure, whole in zip(DIVERGENCES, (kl, js, tv), strict=True):
        assert measure(*merged).value <= whole + 1e-9


EVEN, THREE, ZIPF = np.full(10, 0.1), np.array([0.5, 0.3, 0.2]), (1 / np.arange(1, 31)) / (1 / np.arange(1, 31)).sum()
PAIRS = {
    "even, tilted": (tilted(EVEN, 1.5), EVEN),
    "three, tilted": (tilted(THREE, 1.0), THREE),
    "zipf, tilted": (tilted(ZIPF, 2.0), ZIPF),
    "coin, rare": (np.array([0.9, 0.1]), np.array([0.97, 0.03])),
}


def coverage(measure, truth, make, runs=RUNS):
    return float(np.mean([truth in measure(*make(np.random.default_rng(seed))) for seed in range(runs)]))


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *((name, kind) for name in PAIRS for kind in ("posterior", "both")),
        ("zipf, tilted", "weighted"),
        *(pytest.param(name, "weighted", marks=pytest.mark.slow) for name in PAIRS if name != "zipf, tilted"),
    ],
)
def test_intervals_cover(name, kind):
    p, q = PAIRS[name]
    pairs = []
    for seed in range(RUNS):
        rng = np.random.default_rng(seed)
        posterior = sampled(p, 1000, rng, weighted=kind == "weighted")
        pairs.append(
            (posterior, exact(q) if kind == "posterior" else sampled(q, 1000, rng, weighted=kind == "weighted"))
        )
    for measure in DIVERGENCES:
        truth = measure(exact(p), exact(q)).value
        share = float(np.mean([truth in measure(*pair) for pair in pairs]))
        # The interval of a total variation holds two estimates with opposite errors, and so covers more than it claims.
        assert LEAST <= share <= (1.0 if measure is total_variation else MOST + 0.005), measure


@pytest.mark.parametrize("measure", DIVERGENCES)
@pytest.mark.parametrize("samples", [50, 1000])
def test_no_difference_is_not_mistaken_for_one(measure, samples):
    def make(rng):
        return sampled(ZIPF, samples, rng), sampled(ZIPF, samples, rng)

    assert coverage(measure, 0.0, make) >= LEAST


def test_bias_is_corrected():
    p, q = PAIRS["zipf, tilted"]
    truth = kl_divergence(exact(p), exact(q)).value
    rng = np.random.default_rng(0)
    pairs = [(sampled(p, 1000, rng), sampled(q, 1000, rng)) for _ in range(RUNS)]
    corrected = np.mean([kl_divergence(*pair).value for pair in pairs]) - truth
    naive = np.mean(
        [stats.entropy(*(np.bincount(b.batch.numbers(), minlength=30) for b in pair), base=2) for pair in pairs]
    )
    assert abs(corrected) < (naive - truth) / 3


def test_values_unseen_in_the_prior_give_a_lower_bound():
    estimate = kl_divergence(Belief.of([1, 1, 2, 3] * 50), Belief.of([1, 2] * 100))
    assert estimate.high == math.inf
    assert estimate.method.startswith("lower bound: 25% of the posterior")
    # Whatever the prior of the unseen value is, given that 200 samples missed it.
    assert estimate.low <= 0.5 * math.log2(0.5 / 0.49) + 0.25 * math.log2(0.25 / 0.49) + 0.25 * math.log2(0.25 / 0.02)
    p, q = tilted(ZIPF, 2.0), ZIPF
    truth = kl_divergence(exact(p), exact(q)).value
    assert coverage(kl_divergence, truth, lambda rng: (sampled(p, 100, rng), sampled(q, 100, rng))) >= LEAST


def test_samples_that_never_vary():
    certain, prior = Belief.of(["a"] * 100), Belief.of(list("abc"), probabilities=[0.5, 0.3, 0.2])
    truth = kl_divergence(Belief.of(list("ab"), probabilities=[0.98, 0.02]), prior).value
    assert truth in kl_divergence(certain, prior)
    assert 0.02 + 0.48 in total_variation(certain, prior)
    assert jensen_shannon(certain, prior).low < jensen_shannon(certain, prior).high


GAUSSIANS = {
    "narrower": ((1.0, 0.5), (0.0, 1.0)),
    "wider prior": ((0.0, 1.0), (0.0, 2.0)),
}


@pytest.mark.parametrize("name", ["narrower", pytest.param("wider prior", marks=pytest.mark.slow)])
def test_continuous_kl_covers(name):
    (mean, sd), (other_mean, other_sd) = GAUSSIANS[name]
    truth = normal_kl(mean, sd, other_mean, other_sd)

    def make(rng):
        return numbers(rng.normal(mean, sd, 500)), numbers(rng.normal(other_mean, other_sd, 700))

    assert LEAST <= coverage(kl_divergence, truth, make) <= MOST


def test_continuous_kl_of_draws_that_both_beliefs_share():
    """As with importance weights: the posterior is the prior's draws with other weights."""
    variance = 1 / (1 + 1 / 0.49)
    truth = normal_kl(variance / 0.49, math.sqrt(variance), 0, 1)

    def make(rng):
        values = rng.normal(size=2000)
        weights = stats.norm.pdf(values, 1, 0.7)
        return Belief(Batch.of_values(values), weights / weights.sum()), Belief(Batch.of_values(values))

    assert LEAST <= coverage(kl_divergence, truth, make, runs=100) <= 1.0
    accepted = np.random.default_rng(0).normal(size=4000)
    inside = accepted[np.abs(accepted) < 0.5]
    truth = -math.log2(stats.norm.cdf(0.5) - stats.norm.cdf(-0.5))
    assert truth in kl_divergence(numbers(inside), numbers(accepted[:2000])).widened(2)


def test_continuous_kl_where_the_prior_has_no_samples_is_a_lower_bound():
    rng = np.random.default_rng(0)
    estimate = kl_divergence(numbers(rng.normal(3, 0.2, 1000)), numbers(rng.normal(0, 1, 1000)))
    assert estimate.high == math.inf
    assert estimate.method.startswith("lower bound")
    assert estimate.low < normal_kl(3, 0.2, 0, 1)


def test_continuous_kl_against_an_exact_prior():
    prior = Belief.of_curve(Curve.normal(0, 1))
    truth = normal_kl(3, 0.2, 0, 1)
    share = coverage(kl_divergence, truth, lambda rng: (numbers(rng.normal(3, 0.2, 500)), prior))
    assert LEAST <= share <= MOST
    box = Belief.of_curve(Curve(((1.0, Tabulated(np.array([0.0, 1.0]), np.ones((1, 24)))),)))
    assert kl_divergence(numbers(np.random.default_rng(0).normal(size=100)), box).value == math.inf


def test_curves_are_exact():
    posterior, prior = (Belief.of_curve(Curve.normal(*parameters)) for parameters in ((1.0, 0.5), (0.0, 1.0)))
    assert kl_divergence(posterior, prior).value == pytest.approx(normal_kl(1, 0.5, 0, 1), abs=1e-9)
    assert entropy_drop(prior, posterior).value == pytest.approx(1, abs=1e-9)
    assert cohens_d(prior, posterior).value == pytest.approx(1 / math.sqrt(0.625), rel=1e-9)
    shifted = Belief.of_curve(Curve.normal(1.0, 1.0))
    tv = total_variation(shifted, prior)
    assert tv.value == pytest.approx(2 * stats.norm.cdf(0.5) - 1, abs=1e-9)
    assert tv.exact
    grid = np.linspace(-12, 12, 240_001)
    p, q = stats.norm.pdf(grid, 1, 0.5), stats.norm.pdf(grid)
    m = (p + q) / 2
    integral = np.trapezoid((p * np.log2(p / m) + q * np.log2(q / m)) / 2, grid)
    assert jensen_shannon(posterior, prior).value == pytest.approx(integral, abs=1e-9)
    assert total_variation(posterior, prior).value == pytest.approx(np.trapezoid(np.abs(p - q) / 2, grid), abs=1e-7)


def test_atoms_against_curves():
    point = Belief.of([0.5], probabilities=[1.0])
    curve = Belief.of_curve(Curve.normal(0, 1))
    half = Belief.of_curve(Curve.mixture([0.5, 0.5], [Curve.point(0.5), Curve.normal(0, 1)]))
    assert kl_divergence(point, curve).value == math.inf
    assert kl_divergence(half, curve).value == math.inf
    assert kl_divergence(point, half).value == pytest.approx(1, abs=1e-12)
    assert total_variation(half, curve).value == pytest.approx(0.5, abs=1e-9)
    assert total_variation(point, curve).value == pytest.approx(1, abs=1e-9)
    assert jensen_shannon(point, curve).value == pytest.approx(1, abs=1e-9)
    assert entropy_drop(curve, point).value == math.inf


@pytest.mark.parametrize("measure", [total_variation, jensen_shannon])
def test_binned_numbers_give_a_lower_bound(measure):
    rng = np.random.default_rng(0)
    truth = measure(*(Belief.of_curve(Curve.normal(*parameters)) for parameters in ((1.0, 0.5), (0.0, 1.0)))).value
    estimate = measure(numbers(rng.normal(1, 0.5, 5000)), numbers(rng.normal(0, 1, 5000)))
    assert estimate.low <= truth <= estimate.high == 1
    assert estimate.method.startswith("lower bound: in ")
    assert estimate.value == pytest.approx(truth, rel=0.1)
    against_curve = measure(numbers(rng.normal(1, 0.5, 5000)), Belief.of_curve(Curve.normal(0.0, 1.0)))
    assert against_curve.low <= truth
    assert against_curve.value == pytest.approx(truth, rel=0.1)
    same = measure(numbers(rng.normal(size=2000)), numbers(rng.normal(size=2000)))
    assert same.low == 0


@pytest.mark.parametrize("weighted", [False, True])
def test_changes_cover(weighted):
    p, q = PAIRS["even, tilted"]
    cases = [
        (lambda prior, posterior: probability_change(prior, posterior, lambda x: x > 6), MOST + 0.01),
        (entropy_drop, 1.0),
        (cohens_d, MOST),
    ]
    for measure, most in cases:
        truth = measure(exact(q), exact(p)).value

        def make(rng):
            return sampled(q, 400, rng, weighted=weighted), sampled(p, 400, rng, weighted=weighted)

        assert LEAST <= coverage(measure, truth, make) <= most


def test_entropy_drop_of_continuous_beliefs_has_no_unit():
    rng = np.random.default_rng(0)
    before, after = rng.normal(0, 4, 2000), rng.normal(3, 1, 2000)
    drops = [entropy_drop(numbers(scale * before), numbers(scale * after)) for scale in (1.0, 1000.0)]
    assert 2.0 in drops[0].widened(2)
    assert drops[0].value == pytest.approx(drops[1].value, abs=1e-9)
    assert "differential" in drops[0].method


def test_cohens_d_of_what_does_not_vary():
    constant = Belief.of([3, 3, 3])
    assert cohens_d(constant, constant).value == 0
    assert cohens_d(constant, Belief.of([5, 5])).value == math.inf
    assert cohens_d(Belief.of([5, 5]), constant).value == -math.inf


def test_results_of_an_attack():
    attack = pv.Attack(
        lambda x, y: x + y,
        prior={"x": pv.DiscreteUniform(0, 9), "y": pv.DiscreteUniform(0, 9)},
        secret="x",
        observe=pv.equals(3),
    )
    result = attack.run(engine="sample", samples=4000, seed=1)
    truth = math.log2(10 / 4)
    assert truth in kl_divergence(result.posterior, result.prior).widened(2)
    assert truth in entropy_drop(result.prior, result.posterior).widened(2)
    assert 0.6 in total_variation(result.posterior, result.prior).widened(2)


MIXED = Belief.of(np.append(np.zeros(30), np.random.default_rng(0).normal(size=70)))


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: kl_divergence(pv.Joint.from_channel([1.0], [[1.0]]), exact([1.0])), "one quantity"),
        (lambda: total_variation(exact([1.0]), [1.0]), "Belief"),
        (lambda: entropy_drop(MIXED, MIXED), "cannot"),
        (lambda: probability_change(exact([1.0]), exact([1.0]), 3), "function"),
        (lambda: cohens_d(Belief.of(["a"]), Belief.of(["b"])), "numbers"),
        (lambda: total_variation(numbers(np.ones((5, 2))), numbers(np.zeros((5, 2)))), "single"),
        (
            lambda: kl_divergence(numbers(np.random.default_rng(0).normal(size=(500, 2))), numbers(np.arange(500.0))),
            "numbers",
        ),
    ],
)
def test_wrong_questions(ask, message):
    with pytest.raises(pv.ArgumentError, match=message):
        ask()


def test_too_few_continuous_samples():
    rng = np.random.default_rng(0)
    with pytest.raises(pv.TooFewSamples, match="at least 100"):
        kl_divergence(numbers(rng.normal(size=50)), numbers(rng.normal(size=500)))
