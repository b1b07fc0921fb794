"""Gain functions: exact worths, and intervals from samples that hold the truth."""

import itertools
import math

import numpy as np
import pytest

import privug as pv
from privug.inference.belief import Belief
from privug.leakage import vulnerability as gains
from privug.leakage.finite import pairs_of
from privug.leakage.strategy import first_guesses, guess_ranks
from privug.leakage.vulnerability import bayes_vulnerability, g_leakage, g_vulnerability, min_entropy_leakage
from privug.model.batch import Batch

PRIOR = [0.5, 0.3, 0.2]
MATRIX = [[0.7, 0.2, 0.1], [0.2, 0.7, 0.1], [0.1, 0.1, 0.8]]


@pytest.fixture
def joint():
    return pv.Joint.from_channel(PRIOR, MATRIX)


def worth_of(joint, guesses, worth) -> float:
    """The vulnerability by its definition: the best guess for each output, of all."""
    pairs = pairs_of(joint)
    dense = pairs.matrix()
    return sum(
        max(sum(p * worth(w, s) for p, s in zip(dense[:, o], pairs.secrets, strict=True)) for w in guesses)
        for o in range(len(pairs.outputs))
    )


class TestExact:
    def test_identity_is_bayes(self, joint):
        assert g_vulnerability(joint, gains.identity()).value == bayes_vulnerability(joint).value
        assert g_leakage(joint, gains.identity()).value == min_entropy_leakage(joint).value

    def test_tries_are_sets_of_guesses(self, joint):
        pairs = list(itertools.combinations(range(3), 2))
        expected = worth_of(joint, pairs, lambda guesses, secret: secret in guesses)
        assert g_vulnerability(joint, gains.tries(2)).value == pytest.approx(expected, abs=1e-12)
        assert g_vulnerability(joint, gains.tries(3)).value == pytest.approx(1, abs=1e-12)
        assert g_vulnerability(joint, gains.tries(9)).value == pytest.approx(1, abs=1e-12)

    def test_distance(self, joint):
        expected = worth_of(joint, range(3), lambda guess, secret: max(0, 1 - abs(guess - secret) / 2))
        assert g_vulnerability(joint, gains.distance(2)).value == pytest.approx(expected, abs=1e-12)

    def test_distance_with_a_metric(self):
        belief = Belief.of(["north", "south"], probabilities=[0.6, 0.4])
        assert g_vulnerability(belief, gains.distance(4, lambda a, b: 0 if a == b else 1)).value == pytest.approx(
            0.6 + 0.4 * 0.75, abs=1e-12
        )

    def test_the_best_guess_of_a_number_is_a_possible_secret(self):
        values, chances = [0.0, 1.0, 1.5, 7.0, 9.0], [0.1, 0.2, 0.15, 0.3, 0.25]
        best = max(
            sum(p * max(0, 1 - abs(w - s) / 3) for p, s in zip(chances, values, strict=True))
            for w in np.linspace(-3, 12, 1501)
        )
        assert g_vulnerability(Belief.of(values, probabilities=chances), gains.distance(3)).value >= best - 1e-12

    def test_property(self, joint):
        expected = worth_of(joint, [True, False], lambda guess, secret: (secret > 0) == guess)
        assert g_vulnerability(joint, gains.property_of(lambda s: s > 0)).value == pytest.approx(expected, abs=1e-12)

    def test_property_with_a_gain_of_its_own(self):
        belief = Belief.of(range(9), probabilities=[1 / 9] * 9)
        assert g_vulnerability(belief, gains.property_of(lambda s: s % 3, gains.tries(2))).value == pytest.approx(
            2 / 3, abs=1e-12
        )

    def test_abstaining(self, joint):
        def worth(guess, secret):
            return 0 if guess is None else 1 if guess == secret else -2

        expected = worth_of(joint, [None, 0, 1, 2], worth)
        assert g_vulnerability(joint, gains.guess_or_abstain(2)).value == pytest.approx(expected, abs=1e-12)
        assert g_vulnerability(joint, gains.guess_or_abstain(1e6)).value == 0
        assert g_vulnerability(joint, gains.guess_or_abstain(0)).value == bayes_vulnerability(joint).value

    def test_any_function_with_named_guesses(self, joint):
        value = g_vulnerability(joint, lambda guess, secret: guess * secret, guesses=[-1, 1]).value
        assert value == pytest.approx(worth_of(joint, [-1, 1], lambda w, s: w * s), abs=1e-12)

    def test_matrix_with_named_columns(self):
        joint = pv.Joint.from_channel(PRIOR, MATRIX, secrets=["a", "b", "c"])
        table = np.array([[0, 1, 2], [3, 0, 0]])
        named = g_vulnerability(joint, table[:, [2, 0, 1]], secrets=["c", "a", "b"]).value
        by_definition = worth_of(joint, range(2), lambda w, s: table[w, "abc".index(s)])
        assert named == pytest.approx(by_definition, abs=1e-12)

    def test_matrix_columns_for_impossible_secrets(self):
        joint = pv.Joint.from_channel([0.5, 0, 0.5], MATRIX)
        assert g_vulnerability(joint, np.eye(3)).value == pytest.approx(bayes_vulnerability(joint).value, abs=1e-12)

    def test_additive(self, joint):
        after, before = g_vulnerability(joint, gains.tries(2)), g_vulnerability(joint.secret, gains.tries(2))
        difference = g_leakage(joint, gains.tries(2), kind="additive")
        assert difference.value == pytest.approx(after.value - before.value, abs=1e-12)
        ratio = g_leakage(joint, gains.tries(2))
        assert ratio.unit == "bit"
        assert ratio.value == pytest.approx(math.log2(after.value / before.value), abs=1e-12)

    @pytest.mark.parametrize("seed", range(15))
    def test_against_libqif(self, seed):
        measure = pytest.importorskip("qif").measure.g_vuln
        rng = np.random.default_rng(seed)
        secrets, outputs, guesses = rng.integers(2, 9, 3)
        prior, matrix = rng.dirichlet(np.ones(secrets)), rng.dirichlet(np.full(outputs, 0.4), secrets)
        table = rng.uniform(size=(guesses, secrets))
        joint = pv.Joint.from_channel(prior, matrix)
        assert g_vulnerability(joint, table).value == pytest.approx(measure.posterior(table, prior, matrix), abs=1e-9)
        assert g_vulnerability(joint.secret, table).value == pytest.approx(measure.prior(table, prior), abs=1e-9)
        assert g_leakage(joint, table, kind="additive").value == pytest.approx(
            measure.add_leakage(table, prior, matrix), abs=1e-9
        )
        assert 2 ** g_leakage(joint, table).value == pytest.approx(measure.mult_leakage(table, prior, matrix), abs=1e-9)


class TestGuesses:
    def test_pairs_without_weight_do_not_change_guesses(self):
        joint = pv.Joint.from_samples([0, 0, 1, 2, 2], ["x", "x", "x", "y", "y"])
        pairs = pairs_of(joint)
        seen = np.where(np.array([pairs.outputs[o] == "x" for o in pairs.output]), pairs.probability, 0.0)
        # Nothing with output y was learned from: the guess there is secret 0, the likeliest overall, not secret 2.
        assert first_guesses(pairs, seen).tolist() == [True, False, False]
        assert guess_ranks(pairs, seen).tolist() == [1, 2, 3]

    def test_ranks_are_a_guessing_order(self):
        rng = np.random.default_rng(2)
        joint = pv.Joint.from_channel(rng.dirichlet(np.ones(7)), rng.dirichlet(np.ones(4), 7))
        pairs = pairs_of(joint)
        weights = np.where(rng.random(len(pairs.probability)) < 0.5, pairs.probability, 0.0)
        ranks = guess_ranks(pairs, weights)
        for output in range(4):
            assert sorted(ranks[pairs.output == output]) == list(range(1, 8))
        assert np.array_equal(ranks == 1, first_guesses(pairs, weights))


GAINS = {
    "tries": gains.tries(2),
    "distance": gains.distance(3),
    "abstention": gains.guess_or_abstain(1),
    "property": gains.property_of(lambda secret: secret % 2),
    "function": gains.as_gain(lambda guess, secret: guess * secret / 4, guesses=[-1, 1]),
}


class TestSamples:
    @pytest.mark.parametrize(
        ("name", "weighted"),
        [
            *((name, False) for name in GAINS),
            ("distance", True),
            *(pytest.param(name, True, marks=pytest.mark.slow) for name in GAINS if name != "distance"),
        ],
    )
    def test_intervals_hold_the_truth(self, name, weighted):
        rng = np.random.default_rng(7)
        matrix = rng.dirichlet(np.ones(4), 5)
        cells = (np.full(5, 0.2)[:, np.newaxis] * matrix).reshape(-1)
        truth = g_vulnerability(pv.Joint.from_channel(np.full(5, 0.2), matrix), GAINS[name]).value
        leak = g_leakage(pv.Joint.from_channel(np.full(5, 0.2), matrix), GAINS[name], kind="additive").value
        hits = leaks = 0
        for seed in range(60):
            rng = np.random.default_rng(seed)
            chances = np.full(20, 1 / 20) if weighted else cells
            drawn = rng.choice(20, 400, p=chances)
            weights = cells[drawn] / cells[drawn].sum() if weighted else None
            joint = pv.Joint(*(Belief(Batch.of_values(side), weights) for side in np.divmod(drawn, 4)))
            hits += truth in g_vulnerability(joint, GAINS[name])
            leaks += leak in g_leakage(joint, GAINS[name], kind="additive")
        assert min(hits, leaks) >= 54

    def test_a_property_of_a_continuous_secret(self):
        rng = np.random.default_rng(1)
        age = rng.uniform(0, 100, 4000)
        joint = pv.Joint.from_samples(age, age < 50)
        adult = gains.property_of(lambda age: age < 18)
        assert 0.82 in g_vulnerability(joint, adult).widened(2)

    def test_a_quarter_is_guessed_half_of_the_time(self):
        age = np.random.default_rng(1).uniform(0, 100, 4000)
        quarter = gains.property_of(lambda age: age // 25)
        assert 0.5 in g_vulnerability(pv.Joint.from_samples(age, age < 50), quarter).widened(2)

    def test_worth_that_is_certain_is_never_missed(self):
        rng = np.random.default_rng(1)
        joint = pv.Joint.from_samples(rng.integers(0, 10, 100), rng.integers(0, 50, 100))
        assert g_vulnerability(joint, gains.guess_or_abstain(1)).low >= 0


class TestBadInput:
    @pytest.mark.parametrize(
        ("gain", "options", "message"),
        [
            ("x", {}, "function of guess and secret"),
            ([1, 2, 3], {}, "a row for each guess"),
            ([[1, 2]], {}, "no column for 2"),
            ([[1, 2, 3]], {"secrets": ["a"]}, "3 columns"),
            (lambda guess, secret: math.nan, {}, "finite"),
            (lambda guess, secret: 1, {"guesses": []}, "at least one"),
            (gains.identity(), {"guesses": [1]}, "for a function or a matrix"),
        ],
    )
    def test_gains(self, joint, gain, options, message):
        with pytest.raises(pv.ArgumentError, match=message):
            g_vulnerability(joint, gain, **options)

    @pytest.mark.parametrize(
        ("make", "argument"),
        [
            (gains.tries, 0),
            (gains.tries, 1.5),
            (gains.tries, True),
            (gains.distance, 0),
            (gains.distance, "far"),
            (gains.guess_or_abstain, -1),
            (gains.guess_or_abstain, math.inf),
            (gains.property_of, 3),
        ],
    )
    def test_constructors(self, make, argument):
        with pytest.raises(pv.ArgumentError, match=make.__name__):
            make(argument)

    def test_ratio_of_negative_gains(self, joint):
        with pytest.raises(pv.ArgumentError, match="kind='additive'"):
            g_leakage(joint, gains.guess_or_abstain(1))
        with pytest.raises(pv.ArgumentError, match="kind='additive'"):
            g_leakage(joint, [[0, 0, 0]])

    def test_kind(self, joint):
        with pytest.raises(pv.ArgumentError, match="additive"):
            g_leakage(joint, gains.identity(), kind="both")

    def test_a_belief_has_no_leakage(self, joint):
        with pytest.raises(pv.ArgumentError, match="Joint"):
            g_leakage(joint.secret, gains.identity())

    def test_too_many_guesses(self):
        joint = pv.Joint.from_samples(np.arange(5000), np.arange(5000))
        with pytest.raises(pv.ArgumentError, match="name fewer guesses"):
            g_vulnerability(joint, gains.distance(1))

    def test_continuous_outputs(self):
        values = np.random.default_rng(1).normal(size=50)
        with pytest.raises(pv.ArgumentError, match="never seen twice"):
            g_vulnerability(pv.Joint.from_samples(values > 0, values), gains.tries(1))

    def test_numbers_that_are_none(self):
        with pytest.raises(pv.ArgumentError, match="give a metric"):
            g_vulnerability(Belief.of(["a", "b"]), gains.distance(1))
