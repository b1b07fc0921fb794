"""What protection costs, against closed forms."""

import math

import pytest

import privug as pv
from privug.studies.sweep import expected_error, output_divergence


def attack(noise, prior=None):
    return pv.Attack(lambda x: x + pv.sample(noise), prior={"x": prior or pv.Normal(0, sd=4)}, secret="x")


@pytest.mark.parametrize(
    ("noise", "truth"),
    [
        (lambda: pv.Laplace(0, 2), 2.0),
        (lambda: pv.Laplace(1, 2), 1 + 2 * math.exp(-0.5)),
        (lambda: pv.Normal(0, sd=3), 3 * math.sqrt(2 / math.pi)),
        (lambda: pv.Uniform(-1, 3), 5 / 4),
    ],
)
def test_expected_error_is_the_mean_size_of_the_noise(noise, truth):
    estimate = expected_error(attack(noise()).run(), lambda x: x)
    assert estimate.exact
    assert float(estimate) == pytest.approx(truth, abs=1e-9)


def test_expected_error_of_discrete_noise():
    coins = pv.Attack(
        lambda x: x + pv.sample(pv.DiscreteUniform(-1, 1)), prior={"x": pv.DiscreteUniform(0, 3)}, secret="x"
    )
    assert float(expected_error(coins.run(), lambda x: x)) == pytest.approx(2 / 3, abs=1e-12)


def test_expected_error_does_not_depend_on_what_was_observed():
    seen = attack(pv.Laplace(0, 2)).run(observe=pv.near(30, within=1))
    assert float(expected_error(seen, lambda x: x)) == pytest.approx(2.0, abs=1e-9)


def test_a_rounded_output_is_sampled_with_an_interval():
    rounded = pv.Attack(lambda x: float(str(x)[:3]), prior={"x": pv.Uniform(1, 2)}, secret="x")
    estimate = expected_error(rounded.run(samples=2000), lambda x: x, samples=20_000)
    assert not estimate.exact
    assert 0.05 in estimate.widened(2)


def test_divergence_of_normals():
    """D(N(0, 16) || N(0, 25)) in closed form."""
    truth = math.log2(5 / 4) + (16 / 25 - 1) / 2 / math.log(2)
    assert float(output_divergence(attack(pv.Normal(0, sd=3)).run(), lambda x: x)) == pytest.approx(truth, abs=1e-9)


def test_what_fails_is_left_out_as_the_attack_leaves_it_out():
    """On x from 0 to 3 the program fails at 0; of 6/1, 6/2, 6/3 a coin adds 1 or nothing, so that the error is 1/2."""

    def release(x):
        return 6 // x + pv.sample(pv.Bernoulli(0.5))

    prior = {"x": pv.DiscreteUniform(0, 3)}
    noisy = pv.Attack(release, prior, "x", on_error="exclude", observe=pv.equals(7)).run()
    assert float(expected_error(noisy, lambda x: 6 // x)) == pytest.approx(0.5, abs=1e-12)
    # Noiseless outputs 6, 3, 2 of 1/3 each; noisy ones 2: 1/6, 3: 1/6 + 1/6, 4: 1/6, 6: 1/6, 7: 1/6.
    divergence = (math.log2(2) + math.log2(1) + math.log2(2)) / 3
    assert float(output_divergence(noisy, lambda x: 6 // x)) == pytest.approx(divergence, abs=1e-12)


def test_no_noise_no_cost():
    plain = pv.Attack(lambda x: x, prior={"x": pv.Normal(0, sd=4)}, secret="x").run()
    assert float(expected_error(plain, lambda x: x)) == 0.0
    assert float(output_divergence(plain, lambda x: x)) == pytest.approx(0.0, abs=1e-12)


def test_programs_of_several_inputs():
    noisy = pv.Attack(
        lambda x, *, y: x + y + pv.sample(pv.Laplace(0, 3)),
        prior={"x": pv.Uniform(0, 1), "y": pv.Uniform(0, 1)},
        secret="x",
    )
    assert float(expected_error(noisy.run(), lambda x, y: x + y)) == pytest.approx(3.0, abs=1e-9)


def test_labels_differ_with_some_probability():
    labels = pv.Attack(lambda x: "a" if x > 0.5 else "b", prior={"x": pv.Uniform(0, 1)}, secret="x").run(samples=1000)
    assert 0.5 in expected_error(labels, lambda x: "a").widened(2)
    with pytest.raises(pv.ArgumentError, match="must be a function"):
        expected_error(labels, 3)
