"""The largest parameter that keeps a limit, against closed forms and an independent computation."""

import math

import numpy as np
import pytest
import scipy

import privug as pv
from privug.studies.calibration import calibrate


def noisy_bit(epsilon):
    def release(bit):
        return bit + pv.sample(pv.DiscreteLaplace(1 / epsilon))

    return pv.Attack(release, prior={"bit": pv.Bernoulli(0.5)}, secret="bit")


@pytest.mark.parametrize("limit", [0.55, 0.6, 0.75, 0.9])
def test_the_bayes_vulnerability_of_a_noisy_bit(limit):
    """A guess is right with 1 / (1 + e^-epsilon)."""
    found = calibrate(noisy_bit, measure="bayes_vulnerability", at_most=limit, epsilon=(0.05, 10), tolerance=1e-6)
    truth = math.log(limit / (1 - limit))
    assert found.exact
    assert found.bracket[0] <= truth <= found.bracket[1]
    assert found.value == pytest.approx(truth, rel=1e-6)
    assert float(found) == found.bracket[0]
    assert float(found.rounded()) <= truth


def test_a_limit_that_is_met_on_a_whole_range():
    """Guessing the likelier value is right with 0.7 up to epsilon = log(7/3), from where on the output helps."""

    def unfair_bit(epsilon):
        def release(bit):
            return bit + pv.sample(pv.DiscreteLaplace(1 / epsilon))

        return pv.Attack(release, prior={"bit": pv.Bernoulli(0.3)}, secret="bit")

    found = calibrate(unfair_bit, measure="bayes_vulnerability", at_most=0.7, epsilon=(0.1, 4))
    assert found.bracket[0] <= math.log(7 / 3) <= found.bracket[1]


def test_a_predicate_and_the_smallest():
    """The posterior of a one, seen a one, is at least 0.7 from log(7/3) on."""

    def one_is_likely(result):
        return result.posterior.probability(lambda bit: bit == 1).value >= 0.7

    found = calibrate(noisy_bit, holds=one_is_likely, find="smallest", observe=pv.equals(1), epsilon=(0.05, 10))
    truth = math.log(7 / 3)
    assert found.bracket[0] <= truth <= found.bracket[1] == found.value
    assert str(found).startswith("epsilon = 0.847")
    assert "is the smallest for which one is likely (exact; no longer at" in str(found)
    assert float(found.rounded()) >= truth


def test_a_predicate_on_samples_is_not_called_exact():
    def is_rare(result):
        return result.posterior.probability(lambda bit: bit == 1).value <= 0.7

    options = {"holds": is_rare, "observe": pv.equals(1), "epsilon": (0.05, 10), "engine": "sample"}
    found = calibrate(noisy_bit, **options)
    assert not found.exact
    assert "is rare (judged on samples, without an interval; no longer at 0.8" in str(found)


def test_from_samples_the_answer_is_on_the_safe_side():
    found = calibrate(noisy_bit, measure="bayes_vulnerability", at_most=0.7, epsilon=(0.05, 10), engine="sample")
    truth = math.log(7 / 3)
    assert not found.exact
    assert found.value < truth < found.bracket[1]
    assert found.bracket[1] - found.value < 0.4
    assert "with 95 % confidence; surely no longer at" in str(found)
    assert {trial.status for trial in found.trials} == set(pv.policy.Status)
    for trial in found.trials:
        if trial.status is pv.policy.Status.HOLDS:
            assert trial.cell.high <= 0.7


def test_more_samples_close_the_bracket():
    widths = []
    for samples in (2_000, 50_000):
        options = {"measure": "bayes_vulnerability", "at_most": 0.7, "engine": "sample", "samples": samples}
        found = calibrate(noisy_bit, **options, epsilon=(0.2, 4), grid=5)
        widths.append(found.bracket[1] - found.bracket[0])
    assert widths[1] < widths[0] / 2


def wave(x):
    """A parameter whose measure rises, falls and rises again."""
    shown = 0.5 + 0.3 * math.sin(2 * math.pi * x) + 0.1 * x
    return pv.Attack(lambda bit: bit, prior={"bit": pv.Bernoulli(shown)}, secret="bit")


def chance(result):
    return result.prior.probability(lambda bit: bit == 1)


def test_what_is_not_monotone_is_told():
    found = calibrate(wave, measure=chance, at_most=0.7, x=(0.0, 1.0))
    assert found.remarks == ("It holds again at x = 0.5, beyond values that violate it",)
    assert found.value == pytest.approx(
        scipy.optimize.brentq(lambda x: 0.3 * np.sin(2 * np.pi * x) + 0.1 * x - 0.2, 0, 0.25), rel=1e-4
    )
    assert "chance is at most 0.7" in str(found)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"at_most": 1.0},
            pv.ArgumentError,
            r"for every epsilon from 0.1 to 1: at 1 it is 0.731 \(exact\); allow larger",
        ),
        ({"at_most": 0.4}, pv.InferenceError, "at epsilon = 0.1, where it is 0.525 .*; nor at any other value"),
        ({"at_least": 0.6}, pv.InferenceError, "though it does at 0.4.*ask for find='smallest'"),
        ({}, pv.ArgumentError, "one of at_most= and at_least="),
        ({"at_most": 1, "at_least": 0}, pv.ArgumentError, "one of at_most= and at_least="),
        ({"at_most": "much"}, pv.ArgumentError, "at_most must be a number, not 'much'"),
        ({"at_most": 0.6, "find": "best"}, pv.ArgumentError, "find must be"),
        ({"at_most": 0.6, "grid": 1}, pv.ArgumentError, "grid must be"),
        ({"at_most": 0.6, "tolerance": 0.0}, pv.ArgumentError, "tolerance"),
        ({"at_most": 0.6, "holds": chance}, pv.ArgumentError, "leave out measure"),
        ({"at_most": 0.6, "measure": "magic"}, pv.ArgumentError, "'magic' is neither one of the questions"),
        ({"at_most": 0.6, "measure": 3}, pv.ArgumentError, "measure must be a text or a function, not 3"),
        ({"at_most": 0.6, "epsilon": (1, 0.1)}, pv.ArgumentError, "the lower one first"),
        ({"at_most": 0.6, "epsilon": 3}, pv.ArgumentError, "must be a range"),
        ({"at_most": 0.6, "delta": (0, 1)}, pv.ArgumentError, "name one parameter"),
    ],
)
def test_what_has_no_answer_is_refused_with_a_reason(options, error, message):
    arguments = {"measure": "bayes_vulnerability", "epsilon": (0.1, 1.0), **options}
    with pytest.raises(error, match=message):
        calibrate(noisy_bit, **arguments)


def test_a_refused_point_is_not_taken_for_kept():
    def fragile(scale):
        return pv.Attack(lambda x: x + pv.sample(pv.Laplace(0, scale)), prior={"x": pv.Uniform(0, 1)}, secret="x")

    with pytest.raises(pv.InferenceError, match="there is no number: Laplace: scale must be a positive number"):
        calibrate(fragile, measure="mutual_information", at_most=0.1, scale=(-1.0, 5.0), grid=3)


def test_the_table_and_plain_values():
    found = calibrate(noisy_bit, measure="bayes_risk", at_least=0.4, epsilon=(0.1, 1.0), grid=3)
    plain = found.to_dict()
    assert plain["value"] == found.value == pytest.approx(math.log(1.5), rel=1e-4)
    assert len(plain["trials"]) == len(found.trials)
    assert found.table().splitlines()[0] == str(found)
    assert "holds" in found.table()


INCOMES = [(10.0, 200.0)] * 5 + [(80.0, 90.0)] * 195


def income(epsilon):
    """The paper's case: 195 known incomes, 5 unknown ones, noise on the mean."""

    def released(records):
        return sum(row.income for row in records) / len(records) + pv.sample(pv.Laplace(0, 1 / epsilon))

    table = pv.Records(200, lambda i: pv.Row(income=pv.Uniform(*INCOMES[i])))
    return pv.Attack(released, prior={"records": table}, secret=lambda records: records[0].income)


def density_of_output(incomes, epsilon):
    """The density of the noisy mean of uniform incomes on a fine grid, through characteristic functions."""
    points, width = 2**17, 160.0 / epsilon**0.5 + 200.0
    step = width / points
    t = 2 * np.pi * np.fft.fftfreq(points, step)
    log = np.zeros(points, complex)
    center = sum((low + high) / 2 for low, high in INCOMES) / 200
    transform = 1 / (1 + (t / epsilon) ** 2)
    for (low, high), times in {ends: incomes.count(ends) for ends in set(incomes)}.items():
        transform = transform * np.sinc(t * (high - low) / 400 / np.pi) ** times
        log += 1j * t * times * (low + high) / 400
    grid = (np.arange(points) - points // 2) * step + center
    density = np.fft.fft(transform * np.exp(log - 1j * t * grid[0])).real / width
    return grid, np.maximum(density, 0.0)


def entropy(incomes, epsilon):
    grid, density = density_of_output(incomes, epsilon)
    positive = density > 1e-300
    return -float((density[positive] * np.log2(density[positive])).sum() * (grid[1] - grid[0]))


def information(epsilon):
    """I(income; output) = h(output) - h(output without this income)."""
    return entropy(INCOMES, epsilon) - entropy(INCOMES[1:], epsilon)


def test_the_largest_epsilon_of_the_papers_case_by_information():
    truth = scipy.optimize.brentq(lambda epsilon: information(epsilon) - 0.01, 0.1, 2.0, xtol=1e-12)
    found = calibrate(income, measure="mutual_information", at_most=0.01, epsilon=(0.2, 2), grid=3)
    assert found.exact
    assert found.bracket[0] <= truth <= found.bracket[1]
    assert found.bracket[1] - found.bracket[0] <= 1e-4 * truth


def test_the_largest_epsilon_of_the_papers_case_by_belief():
    """The belief in an income over 150, after the mean was seen as 88, may rise from 0.263 to 0.3."""

    def belief(epsilon):
        grid, density = density_of_output(INCOMES[1:], epsilon)
        likelihood = scipy.interpolate.CubicSpline(grid, density)
        whole, above = (
            scipy.integrate.quad(lambda s: likelihood(88 - s / 200), low, 200, epsabs=1e-13)[0] for low in (10, 150)
        )
        return above / whole

    truth = scipy.optimize.brentq(lambda epsilon: belief(epsilon) - 0.3, 0.05, 2.0, xtol=1e-12)

    def belief_in_a_high_income(result):
        return result.posterior.probability(lambda income: income > 150)

    found = calibrate(income, measure=belief_in_a_high_income, at_most=0.3, observe=pv.equals(88.0), epsilon=(0.05, 5))
    assert found.exact
    assert found.bracket[0] <= truth <= found.bracket[1]
    assert "belief in a high income is at most 0.3" in str(found)
