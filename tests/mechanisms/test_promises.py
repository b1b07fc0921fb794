"""Measured leakage never exceeds what a mechanism promises; the same check catches mechanisms that break it."""

import itertools
import math
import random

import numpy as np
import pytest

import privug as pv
from privug import mechanisms as m
from privug.mechanisms import Guarantee, audit


def same(x):
    return x


def scores(x):
    return [3 * x, 2, 4 - x]


def votes(x, candidate):
    return (x == candidate) + (candidate == "a")


DISCRETE = {
    "geometric": (m.discrete_laplace(same, sensitivity=2, epsilon=0.7), [0, 1, 2]),
    "discrete normal": (m.discrete_gaussian(same, sensitivity=1, epsilon=1, delta=1e-5), [0, 1]),
    "exponential": (m.exponential(votes, ["a", "b", "c"], sensitivity=1, epsilon=0.8), ["a", "b", "c"]),
    "noisy max": (m.report_noisy_max(scores, sensitivity=3, epsilon=1.5), [0, 1]),
    "noisy max, Laplace": (m.report_noisy_max(scores, sensitivity=3, epsilon=1.5, noise="laplace"), [0, 1]),
    "noisy max, Gumbel": (m.report_noisy_max(scores, sensitivity=3, epsilon=1.5, noise="gumbel"), [0, 1]),
    "threshold": (m.sparse_vector(scores, threshold=2.5, sensitivity=3, epsilon=1.5), [0, 1]),
    "response": (m.randomized_response(same, values=["a", "b", "c"], epsilon=1.1), ["a", "b", "c"]),
    "coin": (m.randomized_response(same, truth=0.75), [False, True]),
    "clamped": (m.clamped(m.discrete_laplace(same, sensitivity=1, epsilon=0.5), 0, 3), [1, 2]),
    "left out": (m.suppressed(m.discrete_laplace(same, sensitivity=1, epsilon=0.5), fewer_than=2), [1, 2]),
    "both": (
        m.together(
            m.discrete_laplace(same, sensitivity=1, epsilon=2), m.randomized_response(lambda x: x > 1, epsilon=1)
        ),
        [1, 2],
    ),
}


@pytest.mark.parametrize("name", DISCRETE)
def test_leakage_between_neighbours_is_within_the_promise(name):
    mechanism, inputs = DISCRETE[name]
    worst = mechanism.guarantee.worst_case()
    for first, second in itertools.pairwise(inputs):
        joint = pv.Attack(mechanism, {"x": pv.Choice([first, second])}, "x").run(engine="exact").joint
        for measure in (pv.leakage.min_entropy_leakage, pv.leakage.mutual_information):
            assert 0 < measure(joint).value <= measure(worst).value + 1e-9
        found = audit(mechanism, [(first, second)], engine="exact")
        assert not found.broken, str(found)
        assert "kept" in found.verdict


@pytest.mark.parametrize("name", ["geometric", "coin", "response"])
def test_tight_promises_are_met_exactly(name):
    mechanism, inputs = DISCRETE[name]
    found = audit(mechanism, [(inputs[0], inputs[-1])])
    assert found.measured.value == pytest.approx(mechanism.guarantee.epsilon, abs=1e-9)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e9])
def test_laplace_and_normal_noise_are_audited_in_closed_form(scale):
    found = audit(m.laplace(same, sensitivity=scale, epsilon=0.7), [(3 * scale, 4 * scale)])
    assert found.measured.exact
    assert found.measured.value == pytest.approx(0.7, abs=1e-9)
    normal = m.gaussian(same, sensitivity=scale, epsilon=1, delta=1e-5)
    assert audit(normal, [(0.0, scale)]).measured.value == pytest.approx(1.0, abs=1e-9)
    concentrated = audit(m.gaussian(same, sensitivity=scale, rho=0.3), [(0.0, scale)])
    assert concentrated.measured.value == pytest.approx(0.3, abs=1e-9)
    assert concentrated.measured.unit == ""
    assert not concentrated.broken


def test_laplace_information_between_neighbours_is_within_the_promise():
    mechanism = m.laplace(same, sensitivity=1, epsilon=0.7)
    joint = pv.Attack(mechanism, {"x": pv.DiscreteUniform(0, 1)}, "x").run(engine="exact").joint
    worst = pv.leakage.mutual_information(mechanism.guarantee.worst_case()).value
    assert 0 < pv.leakage.mutual_information(joint).value <= worst


def test_vectors_are_audited_by_their_sum():
    histogram = m.laplace(lambda x: np.array([x, -x, 0]), sensitivity=2, epsilon=1)
    assert audit(histogram, [(3, 4)]).measured.value == pytest.approx(1.0)
    assert audit(histogram, [(3, 5)]).broken
    normal = m.gaussian(lambda x: [x, x], sensitivity=math.sqrt(2), rho=0.5)
    assert audit(normal, [(0, 1)]).measured.value == pytest.approx(0.5)


def test_laplace_noise_with_a_delta():
    mechanism = m.laplace(same, sensitivity=1, epsilon=1)
    found = audit(mechanism, [(0, 1)], guarantee=Guarantee(0.5, 0.2))
    # P(x < 0) - e^eps Q(x < 0) + ... = 1 - exp((eps - 1) / 2) = delta at eps = 1 + 2 ln(1 - delta)
    assert found.measured.value == pytest.approx(1 + 2 * math.log(0.8))
    assert found.broken


def test_promises_of_rho_by_all_outputs():
    found = audit(m.discrete_gaussian(same, sensitivity=2, rho=0.3), [(0, 1), (0, 2)])
    assert found.findings[0].measured.value == pytest.approx(0.3 / 4, rel=1e-3)
    assert found.measured.value == pytest.approx(0.3, rel=1e-3)
    assert not found.broken


def test_wrong_sensitivity_is_caught():
    found = audit(m.laplace(sum, sensitivity=1, epsilon=0.5), [([0, 0], [0, 1]), ([0, 0], [0, 4])])
    assert found.broken
    assert found.measured.value == pytest.approx(2.0)
    assert found.verdict == "BROKEN: epsilon is 2, more than 0.5, for the neighbours [0, 0] and [0, 4]"
    assert [finding.broken for finding in found.findings] == [False, True]


def test_a_missing_clamp_is_caught():
    def mean(incomes):
        return sum(incomes) / len(incomes)

    def clamped_mean(incomes):
        return sum(min(max(income, 0), 100) for income in incomes) / len(incomes)

    neighbours = [([50, 60], [50, 100]), ([50, 60], [50, 10_000])]
    assert audit(m.laplace(mean, sensitivity=50, epsilon=1), neighbours).measured.value == pytest.approx(99.4)
    assert not audit(m.laplace(clamped_mean, sensitivity=50, epsilon=1), neighbours).broken


def test_rounded_noise_is_caught():
    def noisy(x):
        return x + round(2 * pv.sample(pv.DiscreteLaplace(20.0))) / 4  # a lattice that the input moves

    found = audit(noisy, [(0.0, 0.1)], guarantee=Guarantee(epsilon=0.1))
    assert math.isinf(found.measured.value)
    assert found.broken
    sampled = audit(noisy, [(0.0, 0.1)], guarantee=Guarantee(epsilon=0.1), engine="sample", samples=2000)
    assert sampled.broken


def test_the_last_digits_of_floating_point_noise_are_caught():
    mechanism = m.laplace(same, sensitivity=1, epsilon=0.5)
    assert not audit(mechanism, [(0.0, 1.0)]).broken  # in exact arithmetic
    found = audit(mechanism, [(0.0, 1.0)], engine="sample", samples=20_000)
    assert found.broken
    assert "the last digit" in found.measured.method
    whole = m.discrete_laplace(same, sensitivity=1, epsilon=0.5)
    assert not audit(whole, [(0, 1)], engine="sample", samples=20_000).broken


def test_densities_of_any_form_are_compared_by_cells():
    clamped = m.clamped(m.laplace(same, sensitivity=1, epsilon=0.7), 0, 3)
    found = audit(clamped, [(0, 1)], engine="exact")
    assert found.measured.value == pytest.approx(0.7, abs=1e-6)
    assert found.worst.bound
    assert not found.broken

    def uniform(x):
        return x + pv.sample(pv.Uniform(-1, 1))

    assert audit(uniform, [(0.0, 1.0)], guarantee=Guarantee(epsilon=9)).broken
    # Half of the outputs are possible for one input only: delta is one half, whatever epsilon.
    assert not audit(uniform, [(0.0, 1.0)], guarantee=Guarantee(0.1, 0.5)).broken
    assert audit(uniform, [(0.0, 1.0)], guarantee=Guarantee(9, 0.49)).broken


def test_data_dependent_noise_is_caught():
    def noisy(x):
        return x + (1 + x) * pv.sample(pv.Laplace(0, 1))

    assert math.isinf(audit(noisy, [(0.0, 1.0)], guarantee=Guarantee(epsilon=5)).measured.value)


def test_what_has_no_noise_is_caught():
    def partly(x):
        return {"noisy": x + pv.sample(pv.Laplace(0, 1)), "exact": x}

    for engine in ("exact", "sample"):
        assert math.isinf(audit(partly, [(0, 1)], guarantee=Guarantee(epsilon=9), engine=engine).measured.value)
    assert audit(partly, [(1, 1)], guarantee=Guarantee(epsilon=9)).measured.value == 0
    lengths = audit(lambda rows: [0 for _ in rows], [([1], [1, 2])], guarantee=Guarantee(epsilon=9))
    assert lengths.broken


def test_no_noise_breaks_a_promise_of_rho():
    for engine in ("exact", "sample"):
        assert audit(same, [(0, 1)], guarantee=Guarantee(rho=0.5), engine=engine).broken
    leaky = m.gaussian(same, sensitivity=1, rho=0.5)
    assert audit(leaky, [(0, 3)], engine="sample", samples=5000).broken


def test_a_program_of_ones_own_is_audited_on_samples():
    def noisy(x):
        return x + random.gauss(0, 1)

    found = audit(noisy, [(0.0, 3.0)], guarantee=Guarantee(0.5, 1e-3), samples=2000)
    assert found.broken
    assert found.worst.bound
    assert 0.5 < found.measured.value < 10
    assert "no violation" in audit(noisy, [(0.0, 0.1)], guarantee=Guarantee(2, 1e-3), samples=2000).verdict


def test_lower_bounds_stay_below_the_truth():
    """Of 40 audits with 90 % confidence on which the promise is exactly kept, few may claim a violation."""
    mechanism = m.randomized_response(same, truth=0.6)
    audits = [audit(mechanism, [(0, 1)], engine="sample", samples=400, seed=s, confidence=0.9) for s in range(40)]
    assert sum(found.broken for found in audits) <= 4
    sharp = audit(mechanism, [(0, 1)], engine="sample", samples=100_000)
    assert sharp.measured.value == pytest.approx(math.log(1.5), abs=0.05)


def test_several_inputs():
    mechanism = m.laplace(lambda x, y: x + y, sensitivity=1, epsilon=1)
    assert audit(mechanism, [({"x": 1, "y": 2}, {"x": 1, "y": 3})]).measured.value == pytest.approx(1)
    with pytest.raises(pv.ArgumentError, match="write each neighbour as a dict with 'x', 'y'"):
        audit(mechanism, [(1, 2)])


def test_report():
    found = audit(m.laplace(sum, sensitivity=1, epsilon=0.5), [([0], [1])])
    assert found.to_dict()["broken"] is False
    assert str(found).splitlines()[-1] == "  verdict   kept for this pair of neighbours"
    assert audit(sum, [([0], [1])]).verdict == "nothing is promised; epsilon is infinite for this pair of neighbours"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"neighbours": []}, "list of pairs"),
        ({"neighbours": [(1, 2, 3)]}, "list of pairs"),
        ({"engine": "magic"}, "engine must be 'auto', 'exact' or 'sample'"),
        ({"samples": 5}, "samples must be an integer, 100 or more"),
        ({"confidence": 1.0}, "confidence must be"),
    ],
)
def test_bad_arguments(options, words):
    with pytest.raises(pv.ArgumentError, match=words):
        audit(m.laplace(same, sensitivity=1, epsilon=1), **{"neighbours": [(0, 1)], **options})


def test_exact_audits_are_refused_where_there_are_none():
    mechanism = m.rounded(m.laplace(same, sensitivity=1, epsilon=1), to=0.3)
    with pytest.raises(pv.UnsuitableEngine, match="engine='sample'"):
        audit(lambda x: x + random.random(), [(0, 1)], engine="exact")
    assert not audit(mechanism, [(0, 1)], samples=5000).broken


def test_values_that_are_all_different_tell_nothing():
    def noisy(x):
        return random.gauss(0, 1)

    for seed in range(5):
        found = audit(noisy, [(0, 1)], guarantee=Guarantee(epsilon=0.1), samples=300, seed=seed)
        assert found.measured.value == 0
