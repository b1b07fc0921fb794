"""No interval reaches beyond what the measure can be, given what is known for certain of secret and output."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privug as pv
from privug import leakage
from strategies import priors_and_matrices

many = settings(max_examples=20, deadline=None, derandomize=True)
ROUNDING = 1e-9


def entropy_of(probabilities):
    return -sum(p * math.log2(p) for p in probabilities if p > 0)


def limits(prior, outputs):
    """The range of each measure of the table by textbook, for a known prior and a number of outputs."""
    ranked = sorted(prior, reverse=True)
    best, bits = ranked[0], entropy_of(prior)
    most = min(1 / best, outputs)
    return {
        "entropy": (bits, bits),
        "conditional_entropy": (max(0.0, bits - math.log2(outputs)), bits),
        "mutual_information": (0.0, min(bits, math.log2(outputs))),
        "bayes_vulnerability": (best, 1.0),
        "bayes_risk": (0.0, 1 - best),
        "multiplicative_leakage": (1.0, most),
        "min_entropy_leakage": (0.0, math.log2(most)),
        "guessing_entropy": (1.0, sum(place * p for place, p in enumerate(ranked, 1))),
        "max_posterior_belief": (best, 1.0),
        "entropy_drop": (bits - math.log2(len(prior)), bits),
        "kl_divergence": (0.0, -math.log2(ranked[-1])),
        "total_variation": (0.0, 1.0),
        "min_entropy": (0.0, math.inf),
    }


def assert_within(name, estimate, low, high):
    assert low - ROUNDING <= estimate.low <= estimate.value <= estimate.high <= high + ROUNDING, (name, estimate)


def table_within(table, prior, outputs):
    ranges = limits(prior, outputs)
    for row in table:
        assert_within(row.name, row.estimate, *ranges[row.name])
    return {row.name for row in table}


@many
@given(priors_and_matrices())
def test_finite_joints(pair):
    prior, matrix = pair
    joint = pv.Joint.from_channel(prior, matrix)
    shown = table_within(leakage.leakage_table(joint), prior[prior > 0], matrix.shape[1])
    assert {"mutual_information", "multiplicative_leakage", "guessing_entropy"} <= shown


@many
@given(priors_and_matrices(), st.integers(0, 1000))
def test_sampled_joints_whose_prior_is_known(pair, seed):
    prior, matrix = pair
    rng = np.random.default_rng(seed)
    secrets = rng.choice(len(prior), 400, p=prior)
    outputs = np.array([rng.choice(matrix.shape[1], p=matrix[secret]) for secret in secrets])
    known = pv.Joint.from_channel(prior, matrix).secret
    sampled = pv.Joint.from_samples(secrets, outputs)
    joint = pv.Joint(sampled.secret, sampled.output, prior=known)
    # The number of outputs is not known from so few samples: any may be missing.
    shown = table_within(leakage.leakage_table(joint, prior=known), prior[prior > 0], math.inf)
    assert "mutual_information" in shown


FULL = {
    "even": (lambda x: x, [0.5, 0.5]),
    "uneven": (lambda x: x, [0.9, 0.1]),
    "four": (lambda x: x, [0.4, 0.3, 0.2, 0.1]),
    "paired": (lambda x: x // 2, [0.25] * 4),
    "nothing": (lambda x: 0 * x, [0.7, 0.3]),
}


@pytest.mark.parametrize("name", FULL)
@pytest.mark.parametrize("seed", range(3))
def test_attacks(name, seed):
    """Secrets that the output gives away, as far as it can: estimates come to lie at the ends of their ranges."""
    program, prior = FULL[name]
    attack = pv.Attack(program, {"x": pv.Choice(list(range(len(prior))), p=prior)}, "x")
    result = attack.run(observe=pv.equals(0), engine="sample", samples=2000, seed=seed)
    shown = table_within(result.leakage(), prior, math.inf)
    assert {"kl_divergence", "entropy_drop", "max_posterior_belief"} <= shown
    for low, high, estimate in (
        (0.0, 1 - max(prior), leakage.additive_leakage(result.joint)),
        (0.0, 1 - max(prior), leakage.estimate_bayes_risk(result.joint)),
        (0.0, math.log2(len(prior)), leakage.g_leakage(result.joint, leakage.tries(1))),
    ):
        assert_within("other measures", estimate, low, high)
    for bits in leakage.pointwise_leakage(result.joint).values():
        assert_within("pointwise", bits, -math.log2(len(prior) * max(prior)), -math.log2(max(prior)))


@pytest.mark.parametrize("values", [2, 3, 10])
def test_samples_alone_show_how_many_values_there_are(values):
    for seed in range(5):
        secrets = np.random.default_rng(seed).integers(0, values, 20_000)
        joint = pv.Joint.from_samples(secrets, secrets)
        assert_within("information", leakage.mutual_information(joint), 0.0, math.log2(values))
        assert_within("entropy", leakage.entropy(joint.secret), 0.0, math.log2(values))
        assert_within("leakage", leakage.multiplicative_leakage(joint), 1.0, values)
        assert_within("vulnerability", leakage.bayes_vulnerability(joint.secret), 1 / values, 1.0)


def test_few_samples_do_not_show_how_many_values_there_are():
    """Another value of probability 0.1 is missed by 20 samples in one of eight cases: the interval leaves it room."""
    joint = pv.Joint.from_samples([0, 1] * 10, [0, 1] * 10)
    assert leakage.multiplicative_leakage(joint).high > 1 / 0.45
    assert leakage.mutual_information(pv.Joint.from_samples([0, 1] * 500, [7] * 1000)).high > 0


NORMAL_BITS = math.log2(2 * math.pi * math.e) / 2
CONTINUOUS = {
    # Programs of a standard normal secret, and what is left of its entropy.
    "nothing told": (lambda a: 300, NORMAL_BITS),
    "its sign": (lambda a: a > 0, NORMAL_BITS - 1),
    "noise as large": (lambda a: a + pv.sample(pv.Normal(0, sd=1)), NORMAL_BITS - 0.5),
}


@pytest.mark.parametrize("name", CONTINUOUS)
def test_what_is_left_of_a_density_that_is_known_is_at_most_its_entropy(name):
    """The entropy before is that of the prior, not of the samples, whose own is a tenth of a bit off either way."""
    program, truth = CONTINUOUS[name]
    attack = pv.Attack(program, {"a": pv.Normal(0, sd=1)}, "a")
    for seed in range(3):
        joint = attack.run(engine="sample", samples=1000, seed=seed).joint
        left = leakage.conditional_entropy(joint)
        told = leakage.mutual_information(joint)
        assert left.value + told.value == pytest.approx(NORMAL_BITS, abs=ROUNDING)
        assert left.high <= NORMAL_BITS + ROUNDING
        assert truth in left.widened(1.5)


def test_a_difference_below_rounding_is_none_and_one_above_it_is_told():
    secret, output = np.array([0.05, 0.15, 0.3, 0.5]), np.array([0.1, 0.2, 0.7])
    independent = pv.Attack(lambda x, y: y, {"x": pv.Binomial(7, 0.3), "y": pv.Binomial(5, 0.7)}, "x").run()
    for joint in (independent.joint, pv.Joint.from_channel(secret, np.tile(output, (4, 1)))):
        assert [
            m(joint).value for m in (leakage.mutual_information, leakage.min_entropy_leakage, leakage.additive_leakage)
        ] == [0.0] * 3
        assert str(leakage.mutual_information(joint)) == "0 bit (exact)"
    seen = independent.attack.run(pv.equals(3))
    assert [m(seen.posterior, seen.prior).value for m in (leakage.kl_divergence, leakage.total_variation)] == [0.0, 0.0]
    # A bit that changes the output by d in either direction tells 2 d^2 / ln 2 bits, up to terms in d^4.
    for shift in (1e-4, 1e-6):
        channel = pv.Joint.from_channel([0.5, 0.5], [[0.5 + shift, 0.5 - shift], [0.5 - shift, 0.5 + shift]])
        assert leakage.mutual_information(channel).value == pytest.approx(2 * shift**2 / np.log(2), rel=1e-3)
