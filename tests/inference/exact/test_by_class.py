"""Secrets that are alike counted together, against NumPy by hand and against the same pairs listed one by one."""

import itertools
import math
import pickle
import random

import numpy as np
import pytest

import privug as pv
from privug import leakage
from privug.inference.exact.finite import solver
from privug.model.batch import DeferredBatch

OF_JOINTS = (
    leakage.mutual_information,
    leakage.conditional_entropy,
    leakage.bayes_vulnerability,
    leakage.bayes_risk,
    leakage.min_entropy_leakage,
    leakage.multiplicative_leakage,
    leakage.additive_leakage,
    leakage.bayes_security,
    leakage.posterior_guessing_entropy,
    leakage.max_posterior_belief,
    leakage.shannon_capacity,
    leakage.bayes_capacity,
    leakage.min_capacity,
    leakage.epsilon,
    lambda joint: leakage.g_leakage(joint, leakage.tries(3)),
    lambda joint: leakage.g_leakage(joint, leakage.guess_or_abstain(0.25), kind="additive"),
    lambda joint: leakage.g_vulnerability(joint, leakage.property_of(lambda secret: secret[0])),
)
OF_BELIEFS = (
    leakage.entropy,
    leakage.min_entropy,
    leakage.guessing_entropy,
    lambda belief: leakage.renyi_entropy(belief, 2),
    lambda belief: leakage.renyi_entropy(belief, 0.5),
    lambda belief: leakage.renyi_entropy(belief, 1.001),
    lambda belief: leakage.renyi_entropy(belief, 0),
)


@pytest.fixture
def always(monkeypatch):
    monkeypatch.setattr(solver, "FEWEST_STATES", 0)


def yes_or_no(a, b, c, d):
    return a >= 2 and b < 3 and c == "x"


def remainder(a, b, c, d):
    return (a + b) % 3, c == "y"


def text(a, b, c, d):
    return "many" if a * b > 6 else "few"


def perhaps_none(a, b, c, d):
    return None if a + b < 3 else a + b


def noisy(a, b, c, d):
    return a + d if c == "x" else b * d


def all_of_it(a, b, c, d):
    return a, b, c


def nothing(a, b, c, d):
    return 7


def always_fails_somewhere(a, b, c, d):
    return 6 // a


PROGRAMS = (yes_or_no, remainder, text, perhaps_none, noisy, all_of_it, nothing)
WEIGHTS = {
    "uniform": {"a": [1 / 5] * 5, "b": [1 / 4] * 4, "c": [1 / 2] * 2, "d": [1 / 3] * 3},
    "unequal": {"a": [0.1, 0.2, 0.4, 0.2, 0.1], "b": [0.3, 0.3, 0.4, 0.0], "c": [0.75, 0.25], "d": [0.5, 0.25, 0.25]},
}
VALUES = {"a": range(5), "b": range(4), "c": ["x", "y"], "d": range(3)}


def attack_on(program, weights, secret=lambda a, b, c: (a, b, c), **options):
    prior = {name: pv.Choice(list(values), weights[name]) for name, values in VALUES.items()}
    return pv.Attack(program, prior, secret, **options)


def joint_by_hand(program, weights, holds=lambda a, b, c, d: True):
    """Call the program on all inputs, in plain Python."""
    table: dict = {}
    for places in itertools.product(*(range(len(values)) for values in VALUES.values())):
        chance = math.prod(weights[name][place] for name, place in zip(VALUES, places, strict=True))
        inputs = [values[place] for values, place in zip(VALUES.values(), places, strict=True)]
        if chance and holds(*inputs):
            key = tuple(inputs[:3]), program(*inputs)
            table[key] = table.get(key, 0.0) + chance
    total = math.fsum(table.values())
    secrets, outputs = (list(dict.fromkeys(pair[side] for pair in table)) for side in (0, 1))
    matrix = np.zeros((len(secrets), len(outputs)))
    for (secret, output), chance in table.items():
        matrix[secrets.index(secret), outputs.index(output)] = chance / total
    prior = matrix.sum(axis=1)
    rows = matrix / prior[:, np.newaxis]
    return pv.Joint.from_channel(prior / prior.sum(), rows, secrets=secrets, outputs=outputs)


def assert_same_measures(joint, by_hand):
    for measure in OF_JOINTS:
        found, expected = measure(joint), measure(by_hand)
        assert found.value == pytest.approx(expected.value, rel=1e-12, abs=1e-12)
        assert found.exact == expected.exact
    for side in ("secret", "output"):
        for measure in OF_BELIEFS:
            found, expected = (measure(getattr(one, side)) for one in (joint, by_hand))
            assert found.value == pytest.approx(expected.value, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("weights", WEIGHTS.values(), ids=WEIGHTS)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_measures_on_classes_are_those_of_the_pairs(always, program, weights):
    result = attack_on(program, weights).run(engine="exact")
    joint, by_hand = result.joint, joint_by_hand(program, weights)
    assert joint.classes is not None
    assert joint.classes.copies.sum() == len(leakage.finite.pairs_of(by_hand).secrets)
    assert_same_measures(joint, by_hand)
    pointwise, expected = leakage.pointwise_leakage(joint), leakage.pointwise_leakage(by_hand)
    assert {output: pointwise[output].value for output in pointwise} == pytest.approx(
        {output: expected[output].value for output in expected}, rel=1e-12, abs=1e-12
    )


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_classes_are_listed_when_somebody_asks(always, program):
    weights = WEIGHTS["unequal"]
    joint, by_hand = attack_on(program, weights).run(engine="exact").joint, joint_by_hand(program, weights)

    def listed(one):
        pairs = zip(one.secret.batch.values(), one.output.batch.values(), strict=True)
        return dict(zip(pairs, one.weights, strict=True))

    assert listed(joint) == pytest.approx(listed(by_hand), rel=1e-12)
    assert len(joint.weights) == len(listed(joint))


def test_there_are_few_classes(always):
    joint = attack_on(yes_or_no, WEIGHTS["uniform"]).run(engine="exact").joint
    assert sorted(joint.classes.copies.tolist()) == [9, 31]
    joint = attack_on(noisy, WEIGHTS["uniform"]).run(engine="exact").joint
    # With "x" the output is a and the noise, for 4 values of b; with "y" b times the noise, for 5 values of a. Both are
    # just the noise where a is 0 and where b is 1.
    assert sorted(joint.classes.copies.tolist()) == [4, 4, 4, 4, 5, 5, 5, 9]


def test_what_is_assumed_leaves_secrets_out(always):
    def fact(a, b, c, d):
        return a + b + d > 3

    attack = attack_on(noisy, WEIGHTS["unequal"], assume=fact)
    joint, by_hand = attack.run(engine="exact").joint, joint_by_hand(noisy, WEIGHTS["unequal"], fact)
    assert joint.classes is not None
    assert_same_measures(joint, by_hand)
    assert set(joint.secret.batch.values()) == set(by_hand.secret.batch.values())


def test_inputs_on_which_the_program_fails_are_left_out(always):
    attack = attack_on(always_fails_somewhere, WEIGHTS["uniform"], on_error="exclude")
    result = attack.run(engine="exact")
    by_hand = joint_by_hand(always_fails_somewhere, WEIGHTS["uniform"], lambda a, b, c, d: a > 0)
    assert result.joint.classes is not None
    assert (result.diagnostics.draws, result.diagnostics.excluded) == (40, 8)  # the program does not read d
    assert_same_measures(result.joint, by_hand)


def test_nothing_left_is_an_error(always):
    attack = attack_on(always_fails_somewhere, WEIGHTS["uniform"], assume=lambda a, b, c, d: a > 9)
    with pytest.raises(pv.PrivugError, match=r"impossible|assume|no "):
        attack.run(engine="exact")


@pytest.mark.parametrize("seen", [True, False])
def test_beliefs_after_an_observation(always, seen):
    weights = WEIGHTS["unequal"]
    result = attack_on(yes_or_no, weights).run(observe=pv.equals(seen), engine="exact")
    by_hand = joint_by_hand(yes_or_no, weights)
    agreeing = np.array([output == seen for output in by_hand.output.batch.values()])
    chances = by_hand.weights[agreeing] / by_hand.weights[agreeing].sum()
    secrets = [secret for secret, held in zip(by_hand.secret.batch.values(), agreeing, strict=True) if held]
    posterior = pv.Belief.of(secrets, probabilities=chances)
    assert {secret: share.value for secret, share in result.posterior.distribution().items()} == pytest.approx(
        {secret: share.value for secret, share in posterior.distribution().items()}, rel=1e-12
    )
    for measure in OF_BELIEFS:
        assert measure(result.posterior).value == pytest.approx(measure(posterior).value, rel=1e-12)
    for measure in (leakage.kl_divergence, leakage.total_variation, leakage.entropy_drop):
        found, expected = measure(result.posterior, result.prior), measure(posterior, by_hand.secret)
        if measure is leakage.entropy_drop:
            found, expected = measure(result.prior, result.posterior), measure(by_hand.secret, posterior)
        assert found.value == pytest.approx(expected.value, rel=1e-12, abs=1e-12)
    assert result.posterior.probability(lambda secret: secret[0] > 2).value == pytest.approx(
        float(sum(chance for secret, chance in zip(secrets, chances, strict=True) if secret[0] > 2)), rel=1e-12
    )


def test_secrets_that_do_not_tell_their_inputs_are_listed(always):
    for secret in (lambda a, b, c: a + b, lambda a, b, c: (a, b % 2)):
        joint = attack_on(yes_or_no, WEIGHTS["uniform"], secret).run(engine="exact").joint
        assert joint.classes is None


def test_values_that_python_holds_equal_are_no_different_secrets(always):
    for values in ([1, True, 2], [1, 1, 2]):
        attack = pv.Attack(lambda x: x, {"x": pv.Choice(values)}, secret="x")
        result = attack.run(engine="exact")
        assert result.joint.classes is None
        assert leakage.bayes_vulnerability(result.joint.secret).value == pytest.approx(2 / 3)


def test_a_secret_may_hold_more_than_its_inputs(always):
    attack = attack_on(yes_or_no, WEIGHTS["uniform"], lambda a, b, c: {"sum": a + b, "all": [a, (b, c)]})
    joint = attack.run(engine="exact").joint
    assert joint.classes is not None
    assert all(one["sum"] == one["all"][0] + one["all"][1][0] for one in joint.secret.batch.values())
    assert leakage.max_posterior_belief(joint).value == pytest.approx(1 / 9)


def test_array_inputs(always):
    attack = pv.Attack(lambda xs: sum(xs) > 3, {"xs": pv.Array(pv.DiscreteUniform(0, 2), 3)}, secret="xs")
    joint = attack.run(engine="exact").joint
    inputs = list(itertools.product(range(3), repeat=3))
    yes = sum(sum(one) > 3 for one in inputs)
    assert sorted(joint.classes.copies.tolist()) == sorted([yes, 27 - yes])
    assert {tuple(one) for one in joint.secret.batch.values()} == set(inputs)


def test_random_programs_of_tables_of_outputs(always):
    rng = random.Random(1)
    for _ in range(10):
        table = {(a, d): rng.choice([0, 1, "z", None]) for a in range(5) for d in range(3)}

        def program(a, b, c, d, table=table):
            return table[a, d] if b else c

        weights = {
            name: np.random.default_rng(rng.randrange(99)).dirichlet(np.ones(len(v))).tolist()
            for name, v in VALUES.items()
        }
        joint, by_hand = attack_on(program, weights).run(engine="exact").joint, joint_by_hand(program, weights)
        assert_same_measures(joint, by_hand)


def test_results_can_be_sent_elsewhere(always):
    result = attack_on(yes_or_no, WEIGHTS["uniform"]).run(engine="exact")
    belief = result.posterior
    assert isinstance(belief.batch, DeferredBatch)
    back = pickle.loads(pickle.dumps(belief.batch))
    assert back.values() == belief.batch.values()
    assert back.each_once


def test_half_a_million_states(monkeypatch):
    def allowed(year, day, gender, place):
        return 1980 <= year < 1990 and gender == 1 and 20 <= place < 25 and 100 <= day < 130

    names = ("year", "day", "gender", "place")
    ranges = ((1956, 1992), (0, 364), (0, 1), (0, 29))
    prior = {name: pv.DiscreteUniform(*ends) for name, ends in zip(names, ranges, strict=True)}
    result = pv.Attack(allowed, prior, secret=list(names)).run(engine="exact")
    monkeypatch.setattr(DeferredBatch, "columns", property(lambda batch: pytest.fail("the states were listed")))
    grid = np.meshgrid(*(np.arange(low, high + 1) for low, high in ranges), indexing="ij", sparse=True)
    year, day, gender, place = grid
    yes = (year >= 1980) & (year < 1990) & (gender == 1) & (place >= 20) & (place < 25) & (day >= 100) & (day < 130)
    states, count = yes.size, int(yes.sum())
    assert result.diagnostics.draws in (0, states)
    share = count / states
    bits = -share * math.log2(share) - (1 - share) * math.log2(1 - share)
    joint = result.joint
    assert leakage.max_posterior_belief(joint).value == pytest.approx(1 / count, rel=1e-12)
    assert leakage.bayes_vulnerability(joint).value == pytest.approx(2 / states, rel=1e-12)
    assert leakage.min_entropy_leakage(joint).value == pytest.approx(1, rel=1e-12)
    assert leakage.mutual_information(joint).value == pytest.approx(bits, rel=1e-11)
    assert leakage.entropy(joint.secret).value == pytest.approx(math.log2(states), rel=1e-12)
    assert leakage.posterior_guessing_entropy(joint).value == pytest.approx(
        share * (count + 1) / 2 + (1 - share) * (states - count + 1) / 2, rel=1e-12
    )
    assert leakage.worst_output(joint) is True
