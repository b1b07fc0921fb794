"""Pictures of two things at once: cells are the numbers, and the observation is marked where it is."""

import numpy as np
import pytest
from scipy import stats

import privug as pv
from privug.studies.comparison import compare


def cells(axes):
    return np.ma.filled(axes.collections[0].get_array(), 0.0)


def spans(axes):
    """Return what is marked as seen, from where to where."""
    return [(patch.get_x(), patch.get_x() + patch.get_width()) for patch in axes.patches]


def test_a_heat_map_says_the_numbers(tmp_path):
    found = compare(
        attackers={"fair": {"bit": pv.Bernoulli(0.5)}, "sure": {"bit": pv.Bernoulli(0.9)}},
        programs={"plain": lambda bit: bit, "broken": lambda bit: bit + pv.sample(pv.Laplace(0, -1))},
        secret="bit",
    )
    axes = found.plot(str(tmp_path / "matrix.png"))
    assert (tmp_path / "matrix.png").read_bytes().startswith(b"\x89PNG")
    assert [text.get_text() for text in axes.texts] == ["1", "none", "0.469", "none"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["fair", "sure"]
    assert axes.get_title() == "mutual information [bit]"
    with pytest.raises(pv.ArgumentError, match="measure must be one of"):
        found.plot(measure="magic")


def test_a_finite_joint_has_a_cell_for_each_pair():
    attack = pv.Attack(lambda n, m: n + m, {"n": pv.DiscreteUniform(0, 3), "m": pv.DiscreteUniform(0, 2)}, "n")
    result = attack.run(observe=pv.equals(4))
    axes = result.joint.plot(observation=result.observation)
    truth = [[1 / 12 if 0 <= output - secret <= 2 else 0.0 for output in range(6)] for secret in range(4)]
    assert np.allclose(cells(axes), truth, rtol=0, atol=1e-12)
    assert spans(axes) == [(3.5, 4.5)]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("output", "n")


def test_an_exact_joint_of_densities_has_the_probability_of_each_cell():
    attack = pv.Attack(lambda x, y: x + y, {"x": pv.Normal(0, sd=1), "y": pv.Normal(0, sd=1)}, "x")
    axes = attack.run().joint.plot(observation=pv.between(0.5, 1.0))
    found = cells(axes)
    mesh = axes.collections[0].get_coordinates()
    across, up = mesh[0, :, 0], mesh[:, 0, 1]
    assert found.sum(axis=1) == pytest.approx(np.diff(stats.norm(0, 1).cdf(up)), abs=3e-3)
    # One point at a time: the density in the middle of a cell, times its area.
    row, column = found.shape[0] // 2, found.shape[1] // 2
    middle = (up[row] + up[row + 1]) / 2, (across[column] + across[column + 1]) / 2
    density = stats.multivariate_normal([0, 0], [[1, 1], [1, 2]]).pdf(middle)
    area = (up[row + 1] - up[row]) * (across[column + 1] - across[column])
    assert found[row, column] == pytest.approx(density * area, rel=0.05)
    assert spans(axes) == [(0.5, 1.0)]


def test_sampled_joints_and_noisy_observations():
    rng = np.random.default_rng(1)
    joint = pv.Joint.from_samples(rng.integers(0, 2, 3000), rng.normal(size=3000))
    axes = joint.plot(observation=pv.noisy(0.0, sd=0.5))
    assert cells(axes).sum() == pytest.approx(1.0, abs=0.01)
    assert cells(axes).shape == (2, 40)
    assert spans(axes) == [(-1.0, 1.0)]
    line = joint.plot(observation=pv.equals(0.25)).get_lines()[0]
    assert set(line.get_xdata()) == {0.25}


def test_categories_are_cells_and_those_that_agree_with_a_predicate_are_marked():
    matrix = np.full((2, 20), 1 / 20)
    outputs = [f"output {k}" for k in range(20)]
    joint = pv.Joint.from_channel([0.5, 0.5], matrix, secrets=["a", "b"], outputs=outputs)
    axes = joint.plot(observation=pv.such_that(lambda output: output == "output 3"))
    names = [text.get_text() for text in axes.get_xticklabels()]
    assert len(names) == 12
    assert names[-1] == "9 others"
    assert cells(axes).sum() == pytest.approx(1.0)
    place = names.index("output 3")
    assert spans(axes) == [(place - 0.5, place + 0.5)]
    with pytest.raises(pv.ArgumentError, match="observation"):
        joint.plot(observation=3)
