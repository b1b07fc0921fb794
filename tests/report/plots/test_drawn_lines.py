"""Pictures of measures over a parameter: the lines are the numbers, and what cannot be drawn is said."""

import math

import numpy as np
import pytest
from matplotlib.figure import Figure

import privug as pv
from privug.report import plots
from privug.studies.measured import NoNumber
from privug.studies.sweep import sweep


def noisy_bit(epsilon, p=0.5):
    def release(bit):
        return bit + pv.sample(pv.DiscreteLaplace(1 / epsilon))

    return pv.Attack(release, prior={"bit": pv.Bernoulli(p)}, secret="bit")


def vulnerability(epsilon):
    return math.exp(epsilon) / (1 + math.exp(epsilon))


def test_a_sweep_is_a_line_for_each_further_parameter(tmp_path):
    found = sweep(noisy_bit, epsilon=[0.1, 1.0, 10.0], p=[0.5, 0.9])
    axes = found.plot(tmp_path / "sweep.png")
    assert (tmp_path / "sweep.png").read_bytes().startswith(b"\x89PNG")
    assert [one.get_ylabel() for one in axes] == ["mutual information [bit]", "bayes vulnerability"]
    assert axes[0].get_xlabel() == "epsilon"
    assert axes[0].get_xscale() == "log"
    drawn = {line.get_label(): line for line in axes[1].get_lines()}
    assert np.allclose(drawn["p = 0.5"].get_ydata(), [vulnerability(e) for e in (0.1, 1.0, 10.0)], rtol=0, atol=1e-9)
    assert drawn["p = 0.5"].get_marker() != drawn["p = 0.9"].get_marker()
    assert len(axes[0].collections) == 0  # exact numbers have no band


def test_panels_stand_in_rows_and_what_is_never_finite_is_named(tmp_path):
    estimates = [pv.Estimate.exactly(1.0), pv.Estimate.exactly(2.0)]
    infinite = [pv.Estimate.exactly(math.inf)] * 2
    measures = {f"measure {k}": {"": estimates} for k in range(5)} | {"divergence": {"": infinite}}
    axes = plots.sweep_lines("epsilon", [1, 2], measures)
    assert len(axes) == 5
    width, height = axes[0].figure.get_size_inches()
    assert width <= 10.0 < height
    assert axes[-1].get_xlabel() == "epsilon\nnot drawn, as never finite: divergence"
    with pytest.raises(pv.ArgumentError, match="none of divergence has a finite value"):
        plots.sweep_lines("epsilon", [1, 2], {"divergence": {"": infinite}})


def test_intervals_are_bands_and_gaps_are_left_out():
    cells = [
        pv.Estimate(1.0, 0.9, 1.2),
        NoNumber("too few"),
        pv.Estimate(math.inf, 2.0, math.inf),
        pv.Estimate(3, 3, 3),
    ]
    axes = plots.sweep_lines("x", [1, 2, 3, 4], {"m": {"": cells}})
    assert axes.get_lines()[0].get_xdata().tolist() == [1, 4]
    (band,) = axes.collections
    assert band.get_paths()[0].get_extents().get_points().tolist() == [[1, 0.9], [4, 3]]


def test_axes_of_ones_own():
    figure = Figure()
    left, right = figure.subplots(1, 2)
    found = sweep(noisy_bit, epsilon=[0.5, 1.0])
    found.plot([left, right])
    assert right.get_ylabel() == "bayes vulnerability"
    assert found.plot(figure.add_subplot(), measures=["mutual_information"]).get_lines()
    with pytest.raises(pv.ArgumentError, match="2 axes are needed"):
        found.plot(left)
    with pytest.raises(pv.ArgumentError, match="ax must be matplotlib axes or the path"):
        found.plot(3)
    with pytest.raises(pv.ArgumentError, match="measures must be some of"):
        found.plot(measures=["magic"])


def test_words_are_no_axis():
    found = sweep(lambda kind: noisy_bit(1.0), kind=["a", "b"])
    with pytest.raises(pv.ArgumentError, match="kind must be numbers"):
        found.plot()


def test_privacy_against_utility():
    epsilons = [0.5, 1.0, 2.0]
    found = sweep(noisy_bit, epsilon=epsilons, utility=lambda bit: bit)
    axes = found.plot(measures=["bayes_vulnerability"], against="expected_error")
    line = axes.get_lines()[0]
    assert line.get_ydata() == pytest.approx([vulnerability(e) for e in epsilons])
    errors = [2 * math.exp(-e) / (1 - math.exp(-2 * e)) for e in epsilons]  # E|k| of a discrete Laplace
    assert line.get_xdata() == pytest.approx(errors)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("expected error", "bayes vulnerability")
    assert [text.get_text() for text in axes.texts] == ["0.5", "1", "2"]
    assert axes.get_title(loc="right") == "at the points: epsilon"
    with pytest.raises(pv.ArgumentError, match="measures must be some of"):
        found.plot(against="magic")


def test_a_calibration_shows_trials_limit_and_answer():
    found = pv.calibrate(noisy_bit, measure="bayes_vulnerability", at_most=0.6, epsilon=(0.01, 10))
    axes = found.plot()
    named = {line.get_label(): line for line in axes.get_lines()}
    measured = named["measured"]
    assert measured.get_ydata() == pytest.approx([vulnerability(e) for e in measured.get_xdata()])
    assert set(named["limit"].get_ydata()) == {0.6}
    (answer,) = [line for name, line in named.items() if name.startswith("epsilon")]
    assert answer.get_xdata()[0] == pytest.approx(math.log(1.5), rel=1e-3)
    assert axes.get_ylabel() == "bayes vulnerability"


def test_convergence_is_a_line_over_samples():
    estimates = [pv.Estimate(0.5, 0.5 - w, 0.5 + w) for w in (0.3, 0.1, 0.03)]
    axes = plots.convergence([100, 1000, 10_000], estimates, name="risk")
    assert (axes.get_xscale(), axes.get_xlabel(), axes.get_ylabel()) == ("log", "number of samples", "risk")
    assert axes.collections[0].get_paths()[0].get_extents().y0 == pytest.approx(0.2)


def test_the_convergence_of_a_black_box():
    rng = np.random.default_rng(1)
    secret = rng.integers(0, 2, 500)
    found = pv.leakage.convergence(pv.Joint.from_samples(secret, rng.normal(size=500) + 2 * secret), points=5)
    line = found.plot().get_lines()[0]
    assert line.get_ydata().tolist() == list(found.risks)
    assert line.get_xdata().tolist() == list(found.samples)
