"""Channels: capacities with their certificates, differential privacy, and refinement with its proofs."""

import itertools
import math

import numpy as np
import pytest

import privug as pv
from privug.leakage import channel as capacities
from privug.leakage.channel import (
    Channel,
    additive_bayes_capacity,
    as_channel,
    bayes_capacity,
    epsilon,
    min_capacity,
    refines,
    shannon_capacity,
)
from privug.leakage.vulnerability import additive_leakage, g_vulnerability, multiplicative_leakage

RNG = np.random.default_rng(0)


def binary_entropy(p):
    return -p * math.log2(p) - (1 - p) * math.log2(1 - p)


def information(prior, matrix) -> float:
    joint = np.asarray(prior)[:, np.newaxis] * matrix
    independent = np.outer(prior, joint.sum(axis=0))
    held = joint > 0
    return float((joint[held] * np.log2(joint[held] / independent[held])).sum())


def geometric(size, alpha):
    matrix = np.array([[alpha ** abs(i - j) for j in range(size)] for i in range(size)])
    return matrix / matrix.sum(axis=1, keepdims=True)


class TestMaking:
    def test_of_a_joint(self):
        matrix = np.array([[0.8, 0.2, 0.0], [0.3, 0.6, 0.1]])
        channel = Channel.of(pv.Joint.from_channel([0.9, 0.1], matrix, secrets=["a", "b"]))
        assert channel.matrix == pytest.approx(matrix, abs=1e-12)
        assert (channel.secrets, channel.outputs) == (("a", "b"), (0, 1, 2))

    def test_secrets_of_probability_zero_are_left_out(self):
        channel = Channel.of(pv.Joint.from_channel([0.5, 0.0, 0.5], np.eye(3)))
        assert (channel.secrets, channel.outputs) == ((0, 2), (0, 2))

    def test_back_to_a_joint(self):
        joint = Channel([[0.5, 0.5], [0, 1]], outputs=["x", "y"]).joint([0.5, 0.5])
        assert joint.output.probability(lambda o: o == "y").value == 0.75

    @pytest.mark.parametrize(
        "matrix", [[[0.5, 0.6]], [[-0.5, 1.5]], [0.5, 0.5], [], "x", [[0.5, 0.5], [1.0]], [[math.nan, 1]]]
    )
    def test_refuses_what_is_no_channel(self, matrix):
        with pytest.raises(pv.ArgumentError, match="channel needs"):
            Channel(matrix)

    @pytest.mark.parametrize("error", [-1, -1e-300, 1.5, math.nan, math.inf, "small", None, True, [0.1]])
    def test_refuses_errors_that_bound_no_probability(self, error):
        with pytest.raises(pv.ArgumentError, match="error"):
            Channel([[0.8, 0.2], [0.3, 0.7]], error=error)

    @pytest.mark.parametrize("name", ["secrets", "outputs", "discrete"])
    @pytest.mark.parametrize("value", [3, 1.5, "ab", object(), {"a": 1, "b": 2}])
    def test_refuses_names_that_are_no_list(self, name, value):
        with pytest.raises(pv.ArgumentError, match=r"channel's outputs|of a channel"):
            Channel([[0.8, 0.2], [0.3, 0.7]], **{name: value})

    @pytest.mark.parametrize("value", [None, -1, 1.5, math.nan, "x", {}, object(), [["a"]], 10**400, [[math.inf]]])
    def test_what_holds_probabilities_refuses_anything_else(self, value):
        matrix = [[0.8, 0.2], [0.3, 0.7]]
        for make in (
            lambda: Channel(value),
            lambda: Channel(matrix).joint(value),
            lambda: pv.Joint.from_channel(value, matrix),
            lambda: pv.Joint.from_channel([0.5, 0.5], value),
            lambda: pv.Joint.from_channel([0.5, 0.5], matrix, secrets=value if value is not None else 1),
            lambda: pv.Joint.from_samples(value, [1, 2, 3]),
            lambda: pv.Joint.from_samples([1, 2, 3], value),
            lambda: pv.Joint(value, value),
            lambda: pv.Belief.of([1, 2], probabilities=value if value is not None else 1),
            lambda: pv.Estimate(value, 2.0, 1.0),
        ):
            with pytest.raises(pv.ArgumentError):
                make()

    def test_refuses_the_wrong_number_of_names(self):
        with pytest.raises(pv.ArgumentError, match="2 secrets"):
            Channel(np.eye(2), secrets=["a"])

    def test_refuses_samples(self):
        with pytest.raises(pv.ArgumentError, match="engine='exact'"):
            shannon_capacity(pv.Joint.from_samples([0, 1], [0, 1]))

    def test_refuses_other_things(self):
        with pytest.raises(pv.ArgumentError, match="Joint"):
            Channel.of(np.eye(2))


class TestShannonCapacity:
    CLOSED = {
        "symmetric": ([[0.9, 0.1], [0.1, 0.9]], 1 - binary_entropy(0.1)),
        "nearly useless": ([[0.501, 0.499], [0.499, 0.501]], 1 - binary_entropy(0.499)),
        "useless": ([[0.3, 0.7]] * 4, 0.0),
        "one secret": ([[0.3, 0.7]], 0.0),
        "z": ([[1, 0], [0.5, 0.5]], math.log2(1.25)),
        "erasure": ([[0.7, 0.3, 0], [0, 0.3, 0.7]], 0.7),
        "typewriter": (np.eye(6) / 2 + np.roll(np.eye(6), 1, axis=1) / 2, math.log2(3)),
        "identity": (np.eye(100), math.log2(100)),
        "point masses and a mixture of them": (np.vstack([np.eye(5), np.full((1, 5), 0.2)]), math.log2(5)),
        "a row that adds nothing": ([[0.9, 0.1], [0.1, 0.9], [0.5, 0.5]], 1 - binary_entropy(0.1)),
        "rows seen many times": ([[0.9, 0.1]] * 5 + [[0.1, 0.9]] * 7, 1 - binary_entropy(0.1)),
        "an output that never occurs": ([[0.9, 0, 0.1], [0.1, 0, 0.9]], 1 - binary_entropy(0.1)),
    }

    @pytest.mark.parametrize("name", CLOSED)
    def test_closed_forms(self, name):
        matrix, truth = self.CLOSED[name]
        estimate = shannon_capacity(Channel(matrix))
        assert estimate.value == pytest.approx(truth, abs=1e-12)
        assert truth in estimate.widened(2)
        assert estimate.exact
        assert estimate.high - estimate.low < 1e-12

    @pytest.mark.parametrize(
        ("rows", "columns", "concentration"),
        [(2, 2, 1.0), (3, 50, 0.05), (200, 3, 1.0), (200, 3, 0.1), (30, 30, 1.0), (30, 30, 0.05), (500, 8, 0.05)],
    )
    def test_certificates_are_tight(self, rows, columns, concentration):
        matrix = np.random.default_rng(rows).dirichlet(np.full(columns, concentration), rows)
        estimate = shannon_capacity(Channel(matrix))
        assert estimate.high - estimate.low < 1e-12
        found = capacities.capacity_achieving(Channel(matrix).distinct_rows())
        assert information(found.prior, Channel(matrix).distinct_rows()) == pytest.approx(estimate.value, abs=1e-9)
        rng = np.random.default_rng(1)
        assert all(information(rng.dirichlet(np.ones(rows)), matrix) <= estimate.high for _ in range(20))

    @pytest.mark.slow
    @pytest.mark.parametrize("concentration", [1.0, 0.05])
    def test_five_hundred_by_five_hundred(self, concentration):
        matrix = np.random.default_rng(3).dirichlet(np.full(500, concentration), 500)
        estimate = shannon_capacity(Channel(matrix))
        assert estimate.high - estimate.low < 1e-12

    def test_rows_that_nearly_agree(self):
        matrix = [[0.8, 0.2], [0.8 + 1e-9, 0.2 - 1e-9], [0.3, 0.7]]
        estimate = shannon_capacity(Channel(matrix))
        assert estimate.value == pytest.approx(0.191238138314318, abs=2e-9)
        assert estimate.high - estimate.low < 1e-12

    def test_large_channels_still_get_bounds(self, monkeypatch):
        monkeypatch.setattr(capacities, "MOST_NEWTON_ROWS", 1)
        monkeypatch.setattr(capacities, "MOST_ARIMOTO_STEPS", 40)
        matrix = geometric(20, 0.9)
        loose = shannon_capacity(Channel(matrix))
        monkeypatch.undo()
        assert not loose.exact
        assert shannon_capacity(Channel(matrix)).value in loose

    @pytest.mark.parametrize("seed", range(10))
    def test_against_libqif(self, seed):
        measure = pytest.importorskip("qif").measure.shannon
        rng = np.random.default_rng(seed)
        matrix = rng.dirichlet(np.full(5, 0.5), 4)
        assert shannon_capacity(Channel(matrix)).value == pytest.approx(measure.add_capacity(matrix)[0], abs=1e-6)

    def test_of_a_joint(self):
        joint = pv.Joint.from_channel([0.99, 0.01], [[0.9, 0.1], [0.1, 0.9]])
        assert shannon_capacity(joint).value == pytest.approx(1 - binary_entropy(0.1), abs=1e-12)


class TestBayesCapacity:
    def test_closed_forms(self):
        assert bayes_capacity(Channel([[0.8, 0.2], [0.3, 0.7]])).value == pytest.approx(1.5, abs=1e-12)
        assert bayes_capacity(Channel([[0.5, 0.5]] * 3)).value == pytest.approx(1, abs=1e-12)
        assert min_capacity(Channel(np.eye(8))).value == pytest.approx(3, abs=1e-12)
        assert min_capacity(Channel([[0.1] * 10])).value == 0

    def test_attained_by_the_uniform_prior(self):
        matrix = RNG.dirichlet(np.ones(6), 5)
        joint = pv.Joint.from_channel(np.full(5, 0.2), matrix)
        assert multiplicative_leakage(joint).value == pytest.approx(bayes_capacity(Channel(matrix)).value, abs=1e-9)

    @pytest.mark.parametrize("seed", range(10))
    def test_additive_is_attained_on_a_subset_and_nowhere_exceeded(self, seed):
        rng = np.random.default_rng(seed)
        matrix = rng.dirichlet(np.full(4, 0.3), 5)
        best = 0.0
        for size in range(1, 6):
            for subset in itertools.combinations(range(5), size):
                prior = np.zeros(5)
                prior[list(subset)] = 1 / size
                best = max(best, additive_leakage(pv.Joint.from_channel(prior, matrix)).value)
        found = additive_bayes_capacity(Channel(matrix))
        assert found.exact
        assert found.value == pytest.approx(best, abs=1e-12)
        for _ in range(50):
            prior = rng.dirichlet(np.full(5, 0.5))
            assert additive_leakage(pv.Joint.from_channel(prior, matrix)).value <= found.value + 1e-12

    def test_additive_of_the_identity(self):
        assert additive_bayes_capacity(Channel(np.eye(2))).value == pytest.approx(0.5, abs=1e-12)
        assert additive_bayes_capacity(Channel(np.eye(20))).value == pytest.approx(0.95, abs=1e-12)

    def test_additive_bounds_for_many_secrets(self, monkeypatch):
        matrix = np.random.default_rng(5).dirichlet(np.full(6, 0.3), 12)
        truth = additive_bayes_capacity(Channel(matrix)).value
        monkeypatch.setattr("privug.leakage.channel.MOST_ENUMERATED", 3)
        bounds = additive_bayes_capacity(Channel(matrix))
        assert not bounds.exact
        assert truth in bounds
        assert additive_bayes_capacity(Channel(np.eye(50))).high == pytest.approx(0.98, abs=1e-12)

    def test_cells_of_a_density(self):
        """Laplace noise of scale 1 on a bit: the integral of the larger density is 2 - exp(-1/2)."""
        edges = np.sort(np.append(np.linspace(-30, 31, 6101), [0.493, 0.507]))
        kept = edges[(edges <= 0.494) | (edges >= 0.506)]

        def cumulative(x):
            return np.where(x < 0, np.exp(-np.abs(x)) / 2, 1 - np.exp(-np.abs(x)) / 2)

        rows = np.array([np.diff(cumulative(kept - secret)) for secret in (0, 1)])
        channel = Channel(rows / rows.sum(axis=1, keepdims=True), discrete=False)
        estimate = bayes_capacity(channel)
        assert not estimate.exact
        assert 2 - math.exp(-0.5) in estimate
        assert estimate.high - estimate.low < 1e-3
        assert math.log2(2 - math.exp(-0.5)) in min_capacity(channel)
        with pytest.raises(pv.ArgumentError, match="density"):
            additive_bayes_capacity(channel)

    def test_additive_ignores_repeated_rows(self):
        rows = [[0.8, 0.2], [0.3, 0.7]] * 30
        assert additive_bayes_capacity(Channel(rows)).value == pytest.approx(0.25, abs=1e-12)


class TestEpsilon:
    def test_randomized_response(self):
        truth = 0.9
        keep = math.exp(truth) / (math.exp(truth) + 4)
        matrix = np.full((5, 5), (1 - keep) / 4) + np.eye(5) * (keep - (1 - keep) / 4)
        estimate = epsilon(Channel(matrix))
        assert estimate.value == pytest.approx(truth, abs=1e-12)
        assert estimate.unit == "nat"
        assert estimate.exact

    def test_impossible_outputs(self):
        assert epsilon(Channel(np.eye(2))).value == math.inf
        assert epsilon(Channel([[0.5, 0.5, 0], [0.5, 0.5, 0]])).value == 0
        assert epsilon(Channel([[0.5, 0.5, 0]])).value == 0

    def test_adjacency(self):
        matrix = geometric(6, 0.5)
        everything = epsilon(Channel(matrix)).value
        neighbours = epsilon(Channel(matrix), lambda a, b: abs(a - b) == 1).value
        by_definition = max(abs(math.log(matrix[a, o] / matrix[a + 1, o])) for a in range(5) for o in range(6))
        assert neighbours == pytest.approx(by_definition, abs=1e-12)
        assert everything > neighbours

    def test_adjacency_in_one_direction_counts_for_both(self):
        channel = Channel([[0.5, 0.5], [0.1, 0.9]])
        for adjacent in (lambda a, b: a < b, lambda a, b: a > b):
            assert epsilon(channel, adjacent).value == pytest.approx(math.log(5), abs=1e-12)

    def test_nothing_is_adjacent(self):
        assert epsilon(Channel(np.eye(3)), lambda a, b: False).value == 0

    def test_an_impossible_output_of_a_stranger_does_not_count(self):
        matrix = [[0.5, 0.5, 0], [0.4, 0.6, 0], [0, 0, 1]]
        assert epsilon(Channel(matrix), lambda a, b: {a, b} == {0, 1}).value == pytest.approx(math.log(1.25), abs=1e-12)

    def test_names_what_attains_it(self):
        channel = Channel([[0.5, 0.5], [0.1, 0.9]], secrets=["ill", "well"], outputs=["yes", "no"])
        assert "'ill'" in epsilon(channel).method
        assert "'yes'" in epsilon(channel).method

    def test_outputs_below_the_error_do_not_make_it_infinite(self):
        matrix = np.array([[0.5, 0.5, 0.0], [0.4, 0.6 - 1e-15, 1e-15]])
        assert epsilon(Channel(matrix)).value == math.inf
        estimate = epsilon(Channel(matrix, error=1e-14))
        assert estimate.exact
        assert estimate.value == pytest.approx(math.log(1.25), abs=1e-12)

    def test_what_is_below_the_error_may_be_impossible(self):
        matrix = np.array([[0.5, 0.5, 0.0], [0.4, 0.5, 0.1]])
        estimate = epsilon(Channel(matrix, error=1e-14))
        assert estimate.low == pytest.approx(math.log(0.1 / 1e-14), abs=1e-9)
        assert estimate.high == math.inf
        assert not estimate.exact
        assert estimate.method.startswith("lower bound")

    def test_refuses_densities_and_odd_adjacency(self):
        with pytest.raises(pv.ArgumentError, match="density"):
            epsilon(Channel(np.eye(2), discrete=False))
        with pytest.raises(pv.ArgumentError, match="function of two secrets"):
            epsilon(Channel(np.eye(2)), 3)

    @pytest.mark.parametrize("seed", range(10))
    def test_against_libqif(self, seed):
        qif = pytest.importorskip("qif")
        matrix = np.random.default_rng(seed).dirichlet(np.ones(4), 5)
        expected = qif.measure.d_privacy.smallest_epsilon(matrix, lambda a, b: float(a != b))
        assert epsilon(Channel(matrix)).value == pytest.approx(expected, abs=1e-9)


class TestRefinement:
    @pytest.mark.parametrize("seed", range(10))
    def test_post_processing_refines(self, seed):
        rng = np.random.default_rng(seed)
        secrets, outputs, products = rng.integers(1, 8, 3)
        matrix = rng.dirichlet(np.full(outputs, 0.5), secrets)
        processed = matrix @ rng.dirichlet(np.full(products, 0.5), outputs)
        refinement = refines(Channel(matrix), Channel(processed))
        assert refinement.holds
        assert refinement.processing.sum(axis=1) == pytest.approx(np.ones(outputs), abs=1e-12)
        assert np.all(refinement.processing >= 0)
        assert matrix @ refinement.processing == pytest.approx(processed, abs=1e-9)

    @pytest.mark.parametrize("seed", range(10))
    def test_what_does_not_refine_has_an_attacker_who_prefers_it(self, seed):
        rng = np.random.default_rng(seed)
        first, second = rng.dirichlet(np.full(3, 0.5), 4), rng.dirichlet(np.full(5, 0.5), 4)
        refinement = refines(Channel(first), Channel(second))
        assert not refinement
        before, after = (
            g_vulnerability(pv.Joint.from_channel(refinement.prior, matrix), refinement.gain).value
            for matrix in (first, second)
        )
        assert after - before == pytest.approx(refinement.advantage, abs=1e-9)
        assert refinement.advantage > 1e-9
        assert refinement.gain.min() >= 0
        assert refinement.gain.max() == 1

    @pytest.mark.parametrize("seed", range(10))
    def test_against_libqif(self, seed):
        qif = pytest.importorskip("qif")
        rng = np.random.default_rng(seed)
        first = rng.dirichlet(np.ones(3), 3)
        second = first @ rng.dirichlet(np.ones(3), 3) if seed % 2 else rng.dirichlet(np.ones(3), 3)
        assert refines(Channel(first), Channel(second)).holds == qif.refinement.refined_by(first, second)
        assert refines(Channel(second), Channel(first)).holds == qif.refinement.refined_by(second, first)

    def test_extremes(self):
        identity, nothing = Channel(np.eye(3)), Channel(np.ones((3, 1)))
        assert refines(identity, nothing)
        assert not refines(nothing, identity)
        assert refines(nothing, nothing)

    def test_a_difference_of_a_millionth_is_seen(self):
        noisy = Channel([[0.9, 0.1], [0.1, 0.9]])
        less_noisy = Channel([[0.9 + 1e-6, 0.1 - 1e-6], [0.1, 0.9]])
        assert refines(less_noisy, noisy)
        assert not refines(noisy, less_noisy)

    def test_secrets_are_matched_by_name(self):
        channel = Channel([[0.9, 0.1], [0.2, 0.8]], secrets=["a", "b"])
        turned = Channel([[0.2, 0.8], [0.9, 0.1]], secrets=["b", "a"])
        assert refines(channel, turned)
        assert refines(turned, channel)

    def test_other_secrets_are_refused(self):
        with pytest.raises(pv.ArgumentError, match="same secrets"):
            refines(Channel(np.eye(2)), Channel(np.eye(2), secrets=["a", "b"]))

    def test_too_large(self):
        with pytest.raises(pv.ArgumentError, match="too many"):
            refines(Channel(np.eye(500)), Channel(np.eye(500)))

    def test_takes_matrices_and_joints(self):
        assert refines(pv.Joint.from_channel([0.5, 0.5], np.eye(2)), [[0.5, 0.5], [0.1, 0.9]])
        assert as_channel(np.eye(2)).secrets == (0, 1)
