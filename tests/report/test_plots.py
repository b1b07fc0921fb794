"""Pictures: what they show is in the axes, and in a file where one is asked for."""

import math
import sys

import numpy as np
import pytest
from matplotlib.figure import Figure

import privug as pv
from privug.report import plots
from privug.studies.cells import Refusal
from privug.studies.comparison import compare
from privug.studies.sweep import sweep


def noisy_bit(epsilon, p=0.5):
    def release(bit):
        return bit + pv.sample(pv.DiscreteLaplace(1 / epsilon))

    return pv.Attack(release, prior={"bit": pv.Bernoulli(p)}, secret="bit")


def is_picture(path):
    return path.read_bytes().startswith(b"\x89PNG") and path.stat().st_size > 5000


def test_a_sweep_is_a_line_for_each_further_parameter(tmp_path):
    found = sweep(noisy_bit, epsilon=[0.1, 1.0, 10.0], p=[0.5, 0.9])
    axes = found.plot(tmp_path / "sweep.png")
    assert is_picture(tmp_path / "sweep.png")
    assert [one.get_ylabel() for one in axes] == ["mutual information [bit]", "bayes vulnerability"]
    assert axes[0].get_xlabel() == "epsilon"
    assert axes[0].get_xscale() == "log"
    drawn = {line.get_label(): line.get_ydata() for line in axes[1].get_lines()}
    truth = [math.exp(e) / (1 + math.exp(e)) for e in (0.1, 1.0, 10.0)]
    assert np.allclose(drawn["p = 0.5"], truth, rtol=0, atol=1e-9)
    assert len(axes[0].collections) == 0  # exact numbers have no band


def test_intervals_are_bands_and_gaps_are_left_out():
    cells = [pv.Estimate(1.0, 0.9, 1.2), Refusal("too few"), pv.Estimate(math.inf, 2.0, math.inf), pv.Estimate(3, 3, 3)]
    axes = plots.sweep_lines("x", [1, 2, 3, 4], {"m": {"": cells}}, None)
    assert axes.get_lines()[0].get_xdata().tolist() == [1, 4]
    assert len(axes.collections) == 1


def test_axes_of_ones_own():
    figure = Figure()
    left, right = figure.subplots(1, 2)
    found = sweep(noisy_bit, epsilon=[0.5, 1.0])
    found.plot([left, right])
    assert right.get_ylabel() == "bayes vulnerability"
    assert found.plot(figure.add_subplot(), measures=["mutual_information"]).get_lines()
    with pytest.raises(pv.ArgumentError, match="2 axes are needed"):
        found.plot(left)
    with pytest.raises(pv.ArgumentError, match="path of a picture or matplotlib axes"):
        found.plot(3)
    with pytest.raises(pv.ArgumentError, match="measures must be some of"):
        found.plot(measures=["magic"])


def test_words_are_no_axis():
    found = sweep(lambda kind: noisy_bit(1.0), kind=["a", "b"])
    with pytest.raises(pv.ArgumentError, match="kind must be numbers"):
        found.plot()


def test_a_heat_map_says_the_numbers(tmp_path):
    found = compare(
        attackers={"fair": {"bit": pv.Bernoulli(0.5)}, "sure": {"bit": pv.Bernoulli(0.9)}},
        programs={"plain": lambda bit: bit, "broken": lambda bit: bit + pv.sample(pv.Laplace(0, -1))},
        secret="bit",
    )
    axes = found.plot(str(tmp_path / "matrix.png"))
    assert is_picture(tmp_path / "matrix.png")
    assert [text.get_text() for text in axes.texts] == ["1", "none", "0.469", "none"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["fair", "sure"]
    assert axes.get_title() == "mutual information [bit]"
    with pytest.raises(pv.ArgumentError, match="measure must be one of"):
        found.plot(measure="magic")


def attack():
    return pv.Attack(lambda x, y: x + y, prior={"x": pv.Uniform(0, 1), "y": pv.Normal(0, sd=0.2)}, secret="x")


def test_beliefs_with_a_density_are_curves(tmp_path):
    result = attack().run(observe=pv.equals(0.9))
    axes = plots.beliefs(result.prior, result.posterior, tmp_path / "belief.png", "age")
    assert is_picture(tmp_path / "belief.png")
    before, after = axes.get_lines()
    xs = before.get_xdata()
    inside = (xs > 0.01) & (xs < 0.99)
    assert np.allclose(before.get_ydata()[inside], 1.0, rtol=0, atol=1e-9)
    assert np.allclose(after.get_ydata(), result.posterior.curve.pdf(after.get_xdata()), rtol=0, atol=1e-9)
    assert axes.get_xlabel() == "age"


def test_sampled_beliefs_are_histograms():
    result = attack().run(observe=pv.near(0.9, within=0.1), engine="sample", samples=2000)
    axes = plots.beliefs(result.joint.secret, result.posterior)
    assert len(axes.patches) == 4
    assert axes.get_ylabel() == "density"


def test_discrete_beliefs_are_bars_with_intervals():
    result = noisy_bit(1.0).run(observe=pv.equals(1), engine="sample", samples=1000)
    axes = plots.beliefs(result.joint.secret, result.posterior)
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0", "1"]
    assert len(axes.containers) == 4
    alone = plots.beliefs(noisy_bit(1.0).run().prior, None)
    assert [patch.get_height() for patch in alone.patches] == [0.5, 0.5]


def test_convergence_is_a_line_over_samples():
    estimates = [pv.Estimate(0.5, 0.5 - w, 0.5 + w) for w in (0.3, 0.1, 0.03)]
    axes = plots.convergence([100, 1000, 10_000], estimates, label="risk")
    assert axes.get_xscale() == "log"
    assert axes.get_ylabel() == "risk"
    assert len(axes.collections) == 1


def test_the_convergence_of_a_black_box():
    rng = np.random.default_rng(1)
    secret = rng.integers(0, 2, 2000)
    found = pv.leakage.convergence(pv.Joint.from_samples(secret, rng.normal(size=2000) + 2 * secret))
    axes = plots.convergence(found.samples, found.risks, label="Bayes risk")
    assert axes.get_lines()[0].get_ydata().tolist() == list(found.risks)


def test_a_path_that_cannot_be_written(tmp_path):
    found = sweep(noisy_bit, epsilon=[0.5, 1.0])
    for path in (tmp_path / "no" / "such.png", tmp_path / "picture.xyz"):
        with pytest.raises(pv.ArgumentError, match="cannot be written"):
            found.plot(path)


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    found = sweep(noisy_bit, epsilon=[0.5])
    monkeypatch.delitem(sys.modules, "privug.report.plots")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.axes", None)
    with pytest.raises(pv.ArgumentError, match=r"pip install 'privug\[plot\]'"):
        found.plot()
