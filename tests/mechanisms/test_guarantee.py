"""What guarantees say, how they add up, and how one form follows from another."""

import math

import numpy as np
import pytest
import scipy.stats

import privug as pv
from privug.mechanisms.guarantee import NO_GUARANTEE, Guarantee, epsilon_of, gaussian_delta, gaussian_distance, rho_of


def test_words():
    assert str(Guarantee(epsilon=1)) == "1-differentially private"
    assert str(Guarantee(epsilon=1, delta=1e-6)) == "(1, 1e-06)-differentially private"
    assert str(Guarantee(rho=0.5)) == "0.5-zCDP"
    assert str(NO_GUARANTEE) == "no guarantee"


def test_promises_add_up():
    total = Guarantee(epsilon=0.5) + Guarantee(epsilon=1.0, delta=1e-6)
    assert (total.epsilon, total.delta, total.rho) == (1.5, 1e-6, None)
    assert (Guarantee(rho=0.5) + Guarantee(rho=0.25)).rho == 0.75
    assert (Guarantee(rho=0.5) + Guarantee(epsilon=1.0)).rho == 1.0  # pure privacy is eps^2 / 2 of the other kind
    assert (Guarantee(rho=0.5) + Guarantee(1.0, 1e-6)).rho is None
    assert (Guarantee(epsilon=1) + NO_GUARANTEE).is_empty


def test_many_small_promises_grow_with_their_root():
    basic = Guarantee(epsilon=0.01).repeated(10_000)
    assert basic.epsilon == pytest.approx(100)
    assert basic.at(1e-6).epsilon == pytest.approx(epsilon_of(0.5, 1e-6))
    assert Guarantee(epsilon=2).repeated(3).at(1e-6).epsilon == 6  # few large ones do not


def test_groups():
    assert Guarantee(epsilon=0.5).group(3) == Guarantee(epsilon=1.5)
    assert Guarantee(rho=0.5).group(3).rho == 4.5
    grouped = Guarantee(1.0, 1e-6).group(2)
    assert grouped.delta == pytest.approx(1e-6 * (1 + math.e))
    assert Guarantee(0.0, 0.1).group(3).delta == pytest.approx(0.3)
    assert Guarantee(1000.0, 0.1).group(5).delta == 1.0


def test_a_sample_is_promised_more():
    assert Guarantee(epsilon=math.log(3)).sampled(0.5) == Guarantee(epsilon=math.log(2))
    assert Guarantee(epsilon=1.0).sampled(1.0).epsilon == pytest.approx(1.0)
    assert Guarantee(epsilon=1.0).sampled(0.0).epsilon == 0.0


def test_normal_noise_against_published_values():
    # Balle and Wang, ICML 2018: sigma for sensitivity 1; and delta by the definition, integrated.
    assert 1 / gaussian_distance(1.0, 1e-5) == pytest.approx(3.730632, abs=1e-6)
    density = scipy.stats.norm
    x = np.linspace(-12, 13, 2_000_001)
    excess = np.maximum(density.pdf(x, 0.7) - math.exp(0.4) * density.pdf(x), 0)
    assert gaussian_delta(0.7, 0.4) == pytest.approx(np.trapezoid(excess, x), abs=1e-9)
    assert gaussian_delta(gaussian_distance(0.3, 1e-9), 0.3) == pytest.approx(1e-9, rel=1e-6)
    assert gaussian_delta(1e-9, 5.0) == 0.0
    assert gaussian_delta(50.0, 0.0) == pytest.approx(1.0)


@pytest.mark.parametrize("rho", [1e-6, 0.01, 0.5, 10.0, 1e4])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 0.1])
def test_rho_to_epsilon_lies_between_the_truth_for_normal_noise_and_the_simple_bound(rho, delta):
    simple = rho + 2 * math.sqrt(rho * math.log(1 / delta))
    epsilon = epsilon_of(rho, delta)
    assert gaussian_delta(math.sqrt(2 * rho), epsilon) <= delta
    assert epsilon <= simple * (1 + 1e-12)
    if epsilon > 0:
        assert rho_of(epsilon, delta) == pytest.approx(rho, rel=1e-3)


def test_worst_case_has_the_promised_epsilon():
    guarantee = Guarantee(epsilon=1.3)
    assert pv.leakage.epsilon(guarantee.worst_case()).value == pytest.approx(1.3)
    leaky = Guarantee(epsilon=1.3, delta=0.1).worst_case()
    spread = 0.1 + 0.9 * math.tanh(0.65)
    assert pv.leakage.min_entropy_leakage(leaky).value == pytest.approx(math.log2(1 + spread))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Guarantee(epsilon=-1), "epsilon must be a number, 0 or more, not -1"),
        (lambda: Guarantee(delta=2), "delta must be a number from 0 to 1, not 2"),
        (lambda: Guarantee(rho=math.nan), "rho must be"),
        (lambda: Guarantee(epsilon=1).group(0), "size must be an integer, 1 or more"),
        (lambda: Guarantee(epsilon=1).repeated(1.5), "times must be an integer"),
        (lambda: Guarantee(rho=1).worst_case(), "at\\(delta=1e-6\\)"),
        (lambda: Guarantee(epsilon=1).sampled(1.2), "rate must be a number from 0 to 1"),
    ],
)
def test_bad_numbers(make, words):
    with pytest.raises(pv.ArgumentError, match=words):
        make()
