"""Enforcing a policy: merged outputs are the finest that keep it, and every repair is checked."""

import math

import numpy as np
import pytest

import privug as pv
from oracles import cases
from privug.leakage.finite import pairs_of
from privug.policy.clause_questions import RunOptions
from privug.policy.enforcement import (
    _by_integer_programming,
    _by_neighbours,
    _greedily,
    fineness,
    finest,
    partitions_of,
)
from privug.policy.output_classes import ClauseJoints

POLICY = pv.policy


def release(matrix):
    """An attack whose joint of secret and output is the given matrix."""
    pairs = [(s, o) for s in range(matrix.shape[0]) for o in range(matrix.shape[1])]
    prior = pv.Choice(pairs, p=[float(matrix[pair]) for pair in pairs])
    return pv.Attack(lambda pair: pair[1], {"pair": prior}, lambda pair: pair[0])


def total():
    return pv.Attack(
        lambda x, y: x + y, {"x": pv.DiscreteUniform(0, 2), "y": pv.DiscreteUniform(0, 2)}, "x", name="total"
    )


def random_joint(seed, secrets, outputs):
    joint = np.random.default_rng(seed).dirichlet(np.full(secrets * outputs, 0.4)).reshape(secrets, outputs)
    return joint / joint.sum()


def kept(matrix, classes, holds):
    return all(holds(matrix[:, list(places)].sum(axis=1)) for places in classes)


def best_by_hand(matrix, holds):
    """The number of classes and the probability of outputs alone, at best, over all ways to merge."""
    marginal = matrix.sum(axis=0)
    scores = [
        (len(classes), sum(marginal[places[0]] for places in classes if len(places) == 1))
        for classes in partitions_of(matrix.shape[1])
        if kept(matrix, classes, holds)
    ]
    return max(scores, default=None)


def score(mended, matrix):
    alone = [outputs[0] for _, outputs in mended.classes if len(outputs) == 1]
    return len(mended.classes), sum(matrix[:, output].sum() for output in alone)


@pytest.mark.parametrize("seed", range(12))
def test_merging_is_optimal_among_all_partitions(seed):
    matrix = random_joint(seed, 3, 4 + seed % 4)
    limit = max(0.55, matrix.sum(axis=1).max() + 0.05)
    best = best_by_hand(matrix, lambda row: row.max() / row.sum() <= limit)
    mended = POLICY.enforce(release(matrix), POLICY.max_belief(at_most=limit), repair="merge")
    if mended.repair == "none":
        assert best[0] == matrix.shape[1]
        return
    assert mended.method == "optimal"
    assert score(mended, matrix) == pytest.approx(best, abs=1e-9)
    assert mended.verdict.holds


@pytest.mark.parametrize("seed", range(6))
def test_merging_is_optimal_for_policies_of_several_parts(seed):
    matrix = random_joint(100 + seed, 3, 6)
    prior = matrix.sum(axis=1)
    policy = POLICY.belief(lambda s: s == 0, at_most=0.8) & POLICY.change(lambda s: s == 2, at_most=0.35)
    policy = policy | POLICY.max_belief(at_most=0.5)

    def holds(row):
        row = row / row.sum()
        return (row[0] <= 0.8 and abs(row[2] - prior[2]) <= 0.35) or row.max() <= 0.5

    best = best_by_hand(matrix, holds)
    if best is None:
        with pytest.raises(POLICY.NoRepair):
            POLICY.enforce(release(matrix), policy, repair="merge")
        return
    mended = POLICY.enforce(release(matrix), policy, repair="merge")
    found = (6, 1.0) if mended.repair == "none" else score(mended, matrix)
    assert found == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_merging_eight_outputs_is_optimal(seed):
    matrix = random_joint(200 + seed, 4, 8)
    best = best_by_hand(matrix, lambda row: row.max() / row.sum() <= 0.6)
    mended = POLICY.enforce(release(matrix), POLICY.max_belief(at_most=0.6), repair="merge")
    assert score(mended, matrix) == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_a_limit_on_an_average_is_kept_by_the_finest_partition(seed):
    matrix = random_joint(300 + seed, 2, 5)

    def information(classes):
        merged = np.stack([matrix[:, list(places)].sum(axis=1) for places in classes], axis=1)
        product = merged.sum(axis=1, keepdims=True) * merged.sum(axis=0, keepdims=True)
        return float(np.sum(merged * np.log2(merged / product)))

    whole = information([(place,) for place in range(5)])
    marginal = matrix.sum(axis=0)
    best = max(
        (len(classes), sum(marginal[places[0]] for places in classes if len(places) == 1))
        for classes in partitions_of(5)
        if information(classes) <= whole / 2
    )
    policy = POLICY.measure("mutual_information", at_most=whole / 2)
    mended = POLICY.enforce(release(matrix), policy, repair="merge")
    assert score(mended, matrix) == pytest.approx(best, abs=1e-9)
    assert mended.verdict.worst.value <= whole / 2 + 1e-9


@pytest.mark.parametrize("seed", range(4))
def test_searches_for_many_outputs_keep_the_policy_and_are_not_finer_than_the_optimum(seed):
    matrix = random_joint(400 + seed, 2, 9)
    policy = POLICY.max_belief(at_most=max(0.7, matrix.sum(axis=1).max() + 0.02))
    views = ClauseJoints.of(release(matrix), policy, RunOptions())
    best = fineness(views, _by_integer_programming(views).classes)
    for search in (_by_neighbours, _greedily):
        found = search(views).classes
        assert sorted(place for places in found for place in places) == list(range(9))
        assert views.keep(found).all()
        assert fineness(views, found) <= best + 1e-9


def test_neighbours_are_merged_optimally():
    mended = POLICY.enforce(total(), POLICY.max_belief(at_most=0.7), repair="merge", neighbours=True)
    assert [outputs for _, outputs in mended.classes] == [(0, 1), (2,), (3, 4)]
    assert "neighbouring" in mended.method


def test_twelve_outputs_are_merged_by_integer_programming():
    prior = {"x": pv.DiscreteUniform(0, 5), "y": pv.DiscreteUniform(0, 6)}
    mended = POLICY.enforce(pv.Attack(lambda x, y: x + y, prior, "x"), POLICY.max_belief(at_most=0.5), repair="merge")
    assert mended.method == "optimal"
    assert mended.verdict.holds
    assert len(mended.classes) == 11  # 0 and 11 give x away; together they do not
    assert mended.program(0, 0) == mended.program(5, 6) == "0 or 11"


def test_the_changed_program_is_a_program():
    mended = POLICY.enforce(total(), POLICY.max_belief(at_most=0.7), repair="merge")
    assert mended.program(1, 0) == "1"
    assert mended.program(0, 0) == mended.program(2, 2) == "0 or 4"
    result = mended.attack.run(pv.equals("0 or 4"))
    assert result.posterior.distribution()[0].value == pytest.approx(0.5, abs=1e-12)
    again = pv.Attack(mended.program, {"x": pv.DiscreteUniform(0, 2), "y": pv.DiscreteUniform(0, 2)}, "x")
    assert POLICY.check(again, POLICY.max_belief(at_most=0.7)).holds
    with pytest.raises(pv.ProgramError, match="not released"):
        mended.program(5, 5)


def test_the_cost_of_merging_is_exact():
    mended = POLICY.enforce(total(), POLICY.max_belief(at_most=0.7), repair="merge")
    shares = np.array([2, 2, 3, 2]) / 9
    assert mended.utility.information.value == pytest.approx(-np.sum(shares * np.log2(shares)), abs=1e-12)
    assert mended.utility.unchanged.value == pytest.approx(7 / 9, abs=1e-12)
    assert "0 or 4" in str(mended)
    assert "optimal" in str(mended)


def test_nothing_is_changed_where_the_policy_holds():
    mended = POLICY.enforce(total(), POLICY.max_belief(at_most=1.0))
    assert mended.repair == "none"
    assert mended.program(1, 1) == 2
    assert str(mended).startswith("No change is needed")


def test_a_prior_that_breaks_the_policy_has_no_repair():
    with pytest.raises(POLICY.NoRepair, match="the prior itself violates it"):
        POLICY.enforce(total(), POLICY.max_belief(at_most=0.3))


def test_the_finest_step_of_rounding_is_taken():
    mended = POLICY.enforce(total(), POLICY.max_belief(at_most=0.7), repair="round", steps=[5, 3, 2, 1])
    assert mended.value == 2
    assert mended.bracket == (1, 2)
    assert mended.program(2, 1) == 4.0  # halves go to even multiples
    assert mended.utility.error.value == pytest.approx(4 / 9, abs=1e-12)
    assert POLICY.enforce(total(), POLICY.max_belief(at_most=0.7), repair="round").value == 2


def test_the_smallest_threshold_is_taken():
    prior = {"ill": pv.Binomial(4, 0.5), "alice": pv.Bernoulli(0.5)}
    attack = pv.Attack(lambda ill, alice: ill + alice, prior, "alice")
    policy = POLICY.belief(lambda alice: alice == 0, at_most=0.7)
    mended = POLICY.enforce(attack, policy, repair="suppress")
    # Counts of 0 and 1 together: alice is ill with probability 1/6; with 2 as well, with probability 5/16.
    assert mended.value == 3
    assert mended.verdict.worst.value == pytest.approx(11 / 16, abs=1e-12)
    assert mended.program(1, 1) == 0
    assert mended.program(2, 1) == 3


def test_the_least_geometric_noise_is_found():
    attack = pv.Attack(lambda bit: bit, {"bit": pv.Bernoulli(0.5)}, "bit")
    mended = POLICY.enforce(
        attack,
        POLICY.max_belief(at_most=0.6),
        repair="noise",
        noise=lambda program, epsilon: pv.mechanisms.discrete_laplace(program, sensitivity=1, epsilon=epsilon),
        epsilon=(0.05, 5),
    )
    best = math.log(0.6 / 0.4)
    low, high = mended.bracket
    assert low <= best <= high <= low * 1.02
    assert mended.value == low
    assert mended.verdict.holds
    assert mended.program.guarantee.epsilon == low
    noise = math.exp(-low)
    assert mended.utility.error.value == pytest.approx(2 * noise / (1 - noise**2), rel=1e-9)


def test_the_choice_is_the_repair_that_tells_most():
    mended = POLICY.enforce(total(), POLICY.max_belief(at_most=0.7))
    assert mended.repair == "merge"
    assert {other.repair for other in mended.others} == {"round", "suppress"}
    for other in mended.others:
        assert other.verdict.holds
        assert other.utility.information.value <= mended.utility.information.value


def test_everyone_is_protected():
    prior = {"t": pv.Records(4, lambda i: pv.Row(ill=pv.Bernoulli(0.5)))}
    attack = pv.Attack(lambda t: sum(row.ill for row in t), prior, lambda t: t[0].ill)
    policy = POLICY.belief(lambda ill: ill == 1, at_most=0.7, at_least=0.3, for_each=lambda t: t.ill)
    mended = POLICY.enforce(attack, policy, repair="merge")
    # 0, 1, 2, 3 and 4 of 4 are ill: beliefs 0, 1/4, 1/2, 3/4 and 1.
    assert [set(outputs) for _, outputs in mended.classes] == [{0, 4}, {1, 3}, {2}]


def spire_location(program):
    prior = {"x": pv.DiscreteUniform(0, 6), "y": pv.DiscreteUniform(0, 6)}
    policy = cases.CASES["spire-loc-policy"]["policy"]
    inside = eval(f"lambda place: (lambda x, y: {policy['query']})(*place)")
    attack = pv.Attack(program, prior, ("x", "y"))
    return attack, POLICY.belief(inside, at_most=policy["upper"])


def test_spire_location_is_repaired():
    attack, policy = spire_location(cases.program(cases.CASES["spire-loc-constant"]))
    mended = POLICY.enforce(attack, policy, repair="merge")
    # 9 states inside are shown as (0, 0): with k further outputs merged, 9 / (10 + k) <= 1/2 needs k = 8.
    assert len(mended.classes) == 40 - 8
    assert mended.verdict.worst.value == pytest.approx(0.5, abs=1e-12)
    attack, policy = spire_location(lambda x, y: (x, y))
    mended = POLICY.enforce(attack, policy, repair="merge")
    assert len(mended.classes) == 49 - 9  # each of 9 places inside needs one outside of its own


def test_spire_social_is_repaired():
    case = cases.CASES["spire-social-noise-o3"]
    attack = cases.attack(case)
    policy = POLICY.belief(lambda friends: friends[0] == 1, at_most=0.9, at_least=0.1)
    worst = {one.output: one.level.value for one in POLICY.check(attack, policy).evidence}
    assert worst[3] == pytest.approx(case["expected"], abs=1e-12)
    mended = POLICY.enforce(attack, policy, repair="merge")
    # Outputs 0 and 3 break it in opposite ways, so that they mend each other.
    assert [outputs for _, outputs in mended.classes] == [(0, 3), (1,), (2,)]
    assert mended.verdict.holds


def test_spire_medical_is_repaired():
    """A test of a disease: P(ill) = 1/10; two alleles raise it. The number of risk alleles is published."""
    prior = {"ill": pv.Bernoulli(0.1)}
    prior["alleles"] = pv.given(prior["ill"], {True: pv.Binomial(2, 0.8), False: pv.Binomial(2, 0.2)})
    attack = pv.Attack(lambda ill, alleles: alleles, prior, "ill")
    policy = POLICY.belief(lambda ill: ill == 1, at_most=0.5)
    assert POLICY.check(attack, policy).worst.value == pytest.approx(0.064 / 0.1, abs=1e-12)
    mended = POLICY.enforce(attack, policy, repair="merge")
    # {1, 2} gives 0.096 / 0.42, {0, 2} gives 0.068 / 0.68: two classes either way; 0 alone has 0.58, 1 alone 0.32.
    assert [outputs for _, outputs in mended.classes] == [(0,), (1, 2)]
    assert mended.verdict.worst.value == pytest.approx(0.096 / 0.42, abs=1e-12)


def test_published_releases_are_repaired_as_all_partitions_say():
    """SPIRE's three examples with up to 8 outputs: no way to merge them is finer than the one found."""
    inside = lambda place: place[0] >= 1 and place[1] == 1
    location = pv.Attack(
        lambda x, y: (0, 0) if x >= 1 and y == 1 else (x, y),
        {"x": pv.DiscreteUniform(0, 2), "y": pv.DiscreteUniform(0, 2)},
        ("x", "y"),
    )
    social = cases.attack(cases.CASES["spire-social-noise-o3"])
    ill = pv.Bernoulli(0.1)
    alleles = pv.given(ill, {True: pv.Binomial(3, 0.8), False: pv.Binomial(3, 0.2)})
    medical = pv.Attack(lambda ill, alleles: alleles, {"ill": ill, "alleles": alleles}, "ill")
    for attack, statement, low, high, count in [
        (location, inside, 0.0, 0.3, 7),
        (social, lambda friends: friends[0] == 1, 0.1, 0.9, 4),
        (medical, lambda ill: ill == 1, 0.0, 0.3, 4),
    ]:
        pairs = pairs_of(attack.run(None, engine="exact").joint)
        outputs = list(pairs.outputs)
        matrix = np.zeros((2, len(outputs)))
        for secret, output, share in zip(pairs.secret, pairs.output, pairs.probability, strict=True):
            matrix[int(statement(pairs.secrets[secret])), output] += share
        assert len(outputs) == count
        best = best_by_hand(matrix, lambda sums, low=low, high=high: low <= sums[1] / sums.sum() + 1e-12
                            and sums[1] / sums.sum() <= high + 1e-12)  # fmt: skip
        mended = POLICY.enforce(attack, POLICY.belief(statement, at_most=high, at_least=low or None), repair="merge")
        alone = sum(matrix[:, outputs.index(one[0])].sum() for _, one in mended.classes if len(one) == 1)
        assert (len(mended.classes), alone) == pytest.approx(best, abs=1e-9)


def test_what_cannot_be_merged_is_refused():
    attack = pv.Attack(lambda x: x, {"x": pv.Normal(0, sd=1)}, "x")
    with pytest.raises(pv.UnsuitableEngine, match="finitely many"):
        POLICY.enforce(attack, POLICY.belief(lambda x: x > 1, at_most=0.5), repair="merge")


@pytest.mark.parametrize(
    "options",
    [
        {"repair": "wish"},
        {"repair": "noise"},
        {"epsilon": (0.1, 1)},
        {"noise": lambda program, epsilon: program},
        {"noise": lambda program, epsilon: program, "epsilon": (1, 0.1)},
        {"noise": lambda program, epsilon: program, "epsilon": (0.1, 1), "find": "best"},
        {"repair": "round", "steps": []},
        {"repair": "suppress", "thresholds": [0]},
    ],
)
def test_wrong_arguments_are_refused(options):
    with pytest.raises(pv.ArgumentError):
        POLICY.enforce(total(), POLICY.max_belief(at_most=0.7), **options)


def test_all_partitions_are_enumerated():
    assert [len(list(partitions_of(count))) for count in range(6)] == [1, 1, 2, 5, 15, 52]
    views = ClauseJoints.of(total(), POLICY.max_belief(at_most=0.7), RunOptions())
    assert finest(views).method == "optimal"
