"""The inequalities of information theory and of quantitative information flow, on random joints and channels."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privug as pv
from privug.inference.belief import Belief
from privug.leakage.channel import (
    Channel,
    additive_bayes_capacity,
    bayes_capacity,
    epsilon,
    min_capacity,
    refines,
    shannon_capacity,
)
from privug.leakage.divergence import kl_divergence, total_variation
from privug.leakage.entropy import entropy, guessing_entropy, min_entropy
from privug.leakage.information import conditional_entropy, mutual_information
from privug.leakage.vulnerability import (
    additive_leakage,
    bayes_risk,
    bayes_security,
    bayes_vulnerability,
    g_leakage,
    g_vulnerability,
    max_posterior_belief,
    min_entropy_leakage,
    multiplicative_leakage,
    pointwise_leakage,
    posterior_guessing_entropy,
    tries,
)
from strategies import degraded_pairs, distributions, gains, joints, matrices, priors_and_matrices

ROUNDING = 1e-9
many = settings(max_examples=60, deadline=None, derandomize=True)
few = settings(max_examples=25, deadline=None, derandomize=True)


def at_most(left: float, right: float) -> bool:
    return left <= right + ROUNDING


class TestInformation:
    @many
    @given(joints())
    def test_lies_between_nothing_and_either_entropy(self, joint):
        information = mutual_information(joint).value
        assert information >= 0
        assert at_most(information, entropy(joint.secret).value)
        assert at_most(information, entropy(joint.output).value)

    @many
    @given(joints())
    def test_is_the_uncertainty_that_is_gone(self, joint):
        left = conditional_entropy(joint).value
        assert mutual_information(joint).value == pytest.approx(entropy(joint.secret).value - left, abs=ROUNDING)

    @many
    @given(joints())
    def test_is_symmetric(self, joint):
        turned = pv.Joint(joint.output, joint.secret)
        assert mutual_information(joint).value == pytest.approx(mutual_information(turned).value, abs=ROUNDING)

    @many
    @given(priors_and_matrices(), st.data())
    def test_processing_adds_none(self, pair, data):
        prior, matrix = pair
        processed = matrix @ data.draw(matrices(rows=matrix.shape[1]))
        before, after = (pv.Joint.from_channel(prior, channel) for channel in (matrix, processed))
        for measure in (mutual_information, min_entropy_leakage, additive_leakage):
            assert at_most(measure(after).value, measure(before).value)
        assert at_most(posterior_guessing_entropy(before).value, posterior_guessing_entropy(after).value)
        assert at_most(bayes_risk(before).value, bayes_risk(after).value)
        assert at_most(max_posterior_belief(after).value, max_posterior_belief(before).value)

    @few
    @given(priors_and_matrices())
    def test_no_prior_exceeds_the_capacity(self, pair):
        joint = pv.Joint.from_channel(*pair)
        channel = Channel(pair[1])
        assert mutual_information(joint).value <= shannon_capacity(channel).high + ROUNDING
        assert at_most(min_entropy_leakage(joint).value, min_capacity(channel).value)
        assert at_most(additive_leakage(joint).value, additive_bayes_capacity(channel).value)

    @few
    @given(matrices())
    def test_capacities_are_ordered(self, matrix):
        channel = Channel(matrix)
        assert shannon_capacity(channel).low <= min_capacity(channel).value + ROUNDING
        assert at_most(min_capacity(channel).value, math.log2(min(matrix.shape)))
        assert at_most(min_capacity(channel).value, epsilon(channel).value / math.log(2))


class TestGuesses:
    @many
    @given(joints())
    def test_the_output_never_hurts(self, joint):
        assert at_most(bayes_vulnerability(joint.secret).value, bayes_vulnerability(joint).value)
        assert min_entropy_leakage(joint).value >= 0
        assert additive_leakage(joint).value >= 0
        assert 0 <= bayes_security(joint).value <= 1
        assert at_most(posterior_guessing_entropy(joint).value, guessing_entropy(joint.secret).value)

    @many
    @given(joints())
    def test_risk_lies_between_its_bounds(self, joint):
        risk, secrets = bayes_risk(joint).value, len(joint.secret.batch.factorized()[1])
        left = conditional_entropy(joint).value
        assert -ROUNDING <= risk <= 1 - 1 / secrets + ROUNDING
        assert at_most(risk, left / 2)  # Hellman and Raviv, 1970
        spread = 0.0 if not 0 < risk < 1 else -risk * math.log2(risk) - (1 - risk) * math.log2(1 - risk)
        assert at_most(left, spread + risk * math.log2(max(secrets - 1, 1)))  # Fano

    @many
    @given(joints())
    def test_measures_agree_with_each_other(self, joint):
        after, before = bayes_vulnerability(joint).value, bayes_vulnerability(joint.secret).value
        assert min_entropy(joint.secret).value == pytest.approx(-math.log2(before), abs=ROUNDING)
        assert multiplicative_leakage(joint).value == pytest.approx(after / before, abs=ROUNDING)
        assert at_most(after, max_posterior_belief(joint).value)
        leaks = pointwise_leakage(joint)
        assert at_most(math.log2(after / before), leaks[leaks.worst].value)
        assert at_most(bayes_vulnerability(joint).value, g_vulnerability(joint, tries(2)).value)

    @many
    @given(st.data())
    def test_vulnerability_is_convex_in_the_prior(self, data):
        matrix = data.draw(matrices())
        first, second = (data.draw(distributions(len(matrix))) for _ in range(2))
        share = data.draw(st.floats(0, 1))
        gain = data.draw(gains(len(matrix)))

        def worth(prior):
            return g_vulnerability(pv.Joint.from_channel(prior, matrix), gain).value

        mixed = share * first + (1 - share) * second
        assert at_most(worth(mixed / mixed.sum()), share * worth(first) + (1 - share) * worth(second))

    @many
    @given(joints(), st.permutations(range(5)), st.permutations(range(5)))
    def test_names_do_not_matter(self, joint, secrets, outputs):
        renamed = pv.Joint(
            *(
                Belief.of([names[value] for value in side.batch.values()], probabilities=side.weights)
                for side, names in ((joint.secret, secrets), (joint.output, outputs))
            )
        )
        for measure in (
            mutual_information,
            bayes_vulnerability,
            min_entropy_leakage,
            posterior_guessing_entropy,
            max_posterior_belief,
        ):
            assert measure(joint).value == pytest.approx(measure(renamed).value, abs=ROUNDING)
        assert epsilon(joint).value == pytest.approx(epsilon(renamed).value, abs=ROUNDING)


class TestRefinement:
    @few
    @given(degraded_pairs(), st.data())
    def test_what_is_refined_never_leaks_more(self, pair, data):
        matrix, processed = pair
        refinement = refines(Channel(matrix), Channel(processed))
        assert refinement.holds
        assert np.abs(matrix @ refinement.processing - processed).max() < 1e-7
        prior, gain = data.draw(distributions(len(matrix))), data.draw(gains(len(matrix)))
        before, after = (pv.Joint.from_channel(prior, channel) for channel in (matrix, processed))
        assert at_most(g_vulnerability(after, gain).value, g_vulnerability(before, gain).value)
        assert at_most(g_leakage(after, gain, kind="additive").value, g_leakage(before, gain, kind="additive").value)
        assert at_most(epsilon(Channel(processed)).value, epsilon(Channel(matrix)).value)

    @few
    @given(st.data())
    def test_what_is_not_refined_leaks_more_to_somebody(self, data):
        secrets = data.draw(st.integers(1, 4))
        first, second = (data.draw(matrices(rows=secrets)) for _ in range(2))
        refinement = refines(Channel(first), Channel(second))
        if refinement.holds:
            assert np.abs(first @ refinement.processing - second).max() < 1e-7
        else:
            before, after = (
                g_vulnerability(pv.Joint.from_channel(refinement.prior, channel), refinement.gain).value
                for channel in (first, second)
            )
            assert after > before

    @few
    @given(priors_and_matrices(), st.data())
    def test_capacity_bounds_every_gain(self, pair, data):
        gain = data.draw(gains(len(pair[1])))
        joint = pv.Joint.from_channel(*pair)
        if g_vulnerability(joint.secret, gain).value > 0:
            assert at_most(g_leakage(joint, gain).value, math.log2(bayes_capacity(Channel(pair[1])).value))


class TestDivergence:
    @many
    @given(st.integers(1, 5).flatmap(lambda size: st.tuples(distributions(size), distributions(size))))
    def test_is_zero_for_equal_beliefs_only(self, pair):
        first, second = (Belief.of(range(len(p)), probabilities=p) for p in pair)
        assert kl_divergence(first, first).value == pytest.approx(0, abs=ROUNDING)
        divergence, variation = kl_divergence(first, second).value, total_variation(first, second).value
        assert divergence >= 0
        assert at_most(2 * variation**2 / math.log(2), divergence)  # Pinsker: positive unless equal
        assert variation == pytest.approx(np.abs(pair[0] - pair[1]).sum() / 2, abs=ROUNDING)

    @many
    @given(st.integers(1, 4).flatmap(lambda size: st.tuples(*(distributions(size) for _ in range(4)))), st.floats(0, 1))
    def test_is_convex_in_both(self, parts, share):
        def divergence(first, second):
            return kl_divergence(*(Belief.of(range(len(p)), probabilities=p / p.sum()) for p in (first, second))).value

        first, second, third, fourth = parts
        mixed = divergence(share * first + (1 - share) * third, share * second + (1 - share) * fourth)
        apart = (divergence(first, second), divergence(third, fourth))
        assert at_most(
            mixed, sum(weight * d for weight, d in zip((share, 1 - share), apart, strict=True) if weight > 0)
        )

    @many
    @given(joints())
    def test_its_average_is_the_information(self, joint):
        average = 0.0
        for output, chance in joint.output.distribution().items():
            held = np.array([value == output for value in joint.output.batch.values()])
            weights = joint.weights[held] / joint.weights[held].sum()
            posterior = Belief.of(
                [v for v, h in zip(joint.secret.batch.values(), held, strict=True) if h], probabilities=weights
            )
            average += chance.value * kl_divergence(posterior, joint.secret).value
        assert average == pytest.approx(mutual_information(joint).value, abs=ROUNDING)
