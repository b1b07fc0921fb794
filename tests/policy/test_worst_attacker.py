"""The worst attacker of a family: closed forms, and no prior drawn at random is worse."""

import math

import numpy as np
import pytest

import privug as pv
from privug.policy.worst_attacker import belief_in, by_iteration, by_linear_programming

POLICY = pv.policy
KEEP = math.e / (1 + math.e)  # how often randomised response of epsilon 1 tells the truth


def response(p=0.5):
    return pv.Attack(pv.mechanisms.randomized_response(lambda x: x, epsilon=1), {"x": pv.Bernoulli(p)}, "x")


def channel_attack(seed, secrets=4, outputs=3):
    rng = np.random.default_rng(seed)
    prior, matrix = rng.dirichlet(np.ones(secrets)), rng.dirichlet(np.full(outputs, 0.7), secrets)
    pairs = [(s, o) for s in range(secrets) for o in range(outputs)]
    drawn = pv.Choice(pairs, p=[float(prior[s] * matrix[s, o]) for s, o in pairs])
    return pv.Attack(lambda pair: pair[1], {"pair": drawn}, lambda pair: pair[0]), prior, matrix


def test_the_bayes_capacity_is_attained_at_the_uniform_prior():
    attack, _, matrix = channel_attack(0)
    worst = POLICY.worst_attacker(attack, "multiplicative_leakage", POLICY.any_prior())
    assert worst.value == worst.bound == pytest.approx(matrix.max(axis=0).sum(), abs=1e-12)
    joint = pv.Joint.from_channel([0.25] * 4, matrix)
    assert pv.leakage.multiplicative_leakage(joint).value == pytest.approx(worst.value, abs=1e-12)
    bits = POLICY.worst_attacker(attack, "min_entropy_leakage", POLICY.any_prior())
    assert bits.value == pytest.approx(math.log2(worst.value), abs=1e-12)


def test_the_shannon_capacity_is_attained_at_the_prior_found():
    attack, _, matrix = channel_attack(1)
    worst = POLICY.worst_attacker(attack, "mutual_information", POLICY.any_prior())
    assert worst.value <= worst.bound <= worst.value + 1e-9
    shares = worst.prior.distribution()
    prior = [shares[s].value if s in shares else 0.0 for s in range(4)]
    assert pv.leakage.mutual_information(pv.Joint.from_channel(prior, matrix)).value == pytest.approx(
        worst.value, abs=1e-9
    )
    binary = POLICY.worst_attacker(response(0.2), "mutual_information", POLICY.any_prior())
    entropy = -KEEP * math.log2(KEEP) - (1 - KEEP) * math.log2(1 - KEEP)
    assert binary.value == pytest.approx(1 - entropy, abs=1e-9)


def test_changes_of_beliefs_have_closed_forms():
    factor = POLICY.change(lambda x: x == 1, at_most=2, by="factor")
    worst = POLICY.worst_attacker(response(), factor, POLICY.any_prior())
    assert worst.value == pytest.approx(math.e, abs=1e-12)
    assert not worst.attained
    assert worst.status is POLICY.Status.VIOLATED
    difference = POLICY.change(lambda x: x == 1, at_most=0.3)
    worst = POLICY.worst_attacker(response(), difference, POLICY.any_prior())
    root = math.sqrt(math.e)
    assert worst.value == pytest.approx((root - 1) / (root + 1), abs=1e-12)
    assert worst.attained
    assert worst.status is POLICY.Status.HOLDS
    p = worst.prior.probability(lambda x: x == 1).value
    after = [p * a / (p * a + (1 - p) * (1 - a)) for a in (KEEP, 1 - KEEP)]
    assert max(abs(q - p) for q in after) == pytest.approx(worst.value, abs=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_no_prior_changes_a_belief_more(seed):
    attack, _, matrix = channel_attack(10 + seed)
    true = np.array([1, 1, 0, 0])
    bounds = {
        by: POLICY.worst_attacker(attack, POLICY.change(lambda s: s < 2, at_most=1, by=by), POLICY.any_prior()).value
        for by in ("difference", "factor")
    }
    rng = np.random.default_rng(seed)
    for prior in rng.dirichlet(np.full(4, 0.3), 300):
        before, after = prior @ true, (prior * true) @ matrix / (prior @ matrix)
        assert np.abs(after - before).max() <= bounds["difference"] + 1e-12
        if 1e-9 < before < 1 - 1e-9:
            assert max((after / before).max(), (before / after).max()) <= bounds["factor"] * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("distance", [0.0, 0.1, 0.5])
def test_the_worst_belief_near_a_prior_is_bounded_by_its_dual(seed, distance):
    attack, centre, matrix = channel_attack(20 + seed)
    policy = POLICY.belief(lambda s: s < 2, at_most=0.9)
    worst = POLICY.worst_attacker(attack, policy, POLICY.within(total_variation=distance))
    true = np.array([1.0, 1, 0, 0])
    shares = worst.prior.distribution()
    prior = np.array([shares[s].value if s in shares else 0.0 for s in range(4)])
    assert np.abs(prior - centre).sum() / 2 <= distance + 1e-9
    assert belief_in(true, matrix[:, worst.output], prior) == pytest.approx(worst.value, abs=1e-9)
    assert worst.value <= worst.bound <= worst.value + 1e-6
    assert worst.value == pytest.approx(_by_corners(true, matrix, centre, distance), abs=1e-6)
    assert worst.status is (POLICY.Status.VIOLATED if worst.value > 0.9 else POLICY.Status.HOLDS)


def _by_corners(true, matrix, centre, distance):
    """The worst belief by random search in the ball, which comes from below, and by bisection from above."""
    best = 0.0
    for column in matrix.T:
        low, high = 0.0, 1.0
        for _ in range(60):
            level = (low + high) / 2
            weights = (true - level) * column
            order, prior, left = np.argsort(weights), centre.copy(), distance
            for place in order[:-1]:
                moved = min(left, prior[place])
                prior[place] -= moved
                prior[order[-1]] += moved
                left -= moved
            low, high = (level, high) if prior @ weights > 0 else (low, level)
        best = max(best, high)
    return best


def test_both_ways_agree_and_the_ends_are_known():
    rng = np.random.default_rng(3)
    for _ in range(20):
        centre, column, wanted = rng.dirichlet(np.ones(5)), rng.random(5), (rng.random(5) < 0.5).astype(float)
        for distance in (0.0, 0.05, 0.3, 1.0):
            one, other = (f(wanted, column, centre, distance) for f in (by_iteration, by_linear_programming))
            assert one.value == pytest.approx(other.bound, abs=1e-8)
        assert by_iteration(wanted, column, centre, 0.0).value == pytest.approx(belief_in(wanted, column, centre))


def test_limits_from_below_and_best_guesses():
    worst = POLICY.worst_attacker(response(), POLICY.belief(lambda x: x == 1, at_least=0.2), POLICY.within(0.1))
    # The least belief: 0.4 beforehand, and the answer is no.
    least = 0.4 * (1 - KEEP) / (0.4 * (1 - KEEP) + 0.6 * KEEP)
    assert worst.value == pytest.approx(least, abs=1e-9)
    guess = POLICY.worst_attacker(response(), POLICY.max_belief(at_most=0.9), POLICY.within(0.1))
    assert guess.value == pytest.approx(0.6 * KEEP / (0.6 * KEEP + 0.4 * (1 - KEEP)), abs=1e-9)
    assert guess.status is POLICY.Status.HOLDS
    sure = POLICY.worst_attacker(response(), POLICY.max_belief(at_most=0.9), POLICY.any_prior())
    assert sure.value == pytest.approx(1.0)
    assert "sure beforehand" in str(sure)


def test_a_box_is_searched_with_a_record():
    family = POLICY.box(lambda p: {"x": pv.Bernoulli(p)}, p=(0.1, 0.8))
    worst = POLICY.worst_attacker(response(), "mutual_information", family)
    assert worst.parameters["p"] == pytest.approx(0.5, abs=0.01)
    assert worst.value == max(value for _, value in worst.record)
    assert worst.bound is None
    believed = POLICY.worst_attacker(response(), POLICY.belief(lambda x: x == 1, at_most=0.5), family)
    assert believed.parameters == {"p": 0.8}
    assert believed.value == pytest.approx(0.8 * KEEP / (0.8 * KEEP + 0.2 * (1 - KEEP)), abs=1e-12)
    assert "p = 0.8" in str(believed)


@pytest.mark.parametrize(
    ("target", "family"),
    [
        ("entropy", POLICY.any_prior()),
        ("mutual_information", POLICY.within(0.1)),
        (POLICY.max_belief(at_most=1) & POLICY.max_belief(at_most=1), POLICY.any_prior()),
        (POLICY.change(lambda x: x, at_most=1), POLICY.within(0.1)),
        (POLICY.bounds(interval_width_at_least=1), POLICY.any_prior()),
        ("mutual_information", "all"),
        (3, POLICY.any_prior()),
    ],
)
def test_what_cannot_be_bounded_is_refused(target, family):
    with pytest.raises(pv.ArgumentError):
        POLICY.worst_attacker(response(), target, family)


def test_families_are_checked():
    for wrong in (-0.1, 1.5, "near"):
        with pytest.raises(pv.ArgumentError):
            POLICY.within(wrong)
    with pytest.raises(pv.ArgumentError):
        POLICY.box(lambda p: {}, p=(0.5, 0.1))
    with pytest.raises(pv.ArgumentError):
        POLICY.box(lambda: {})
