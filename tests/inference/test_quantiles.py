"""Quantiles of mixtures, and of densities with atoms among them."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

import privug as pv
from privug.inference.measure.curve import Curve

LEVELS = np.array([1e-12, 0.01, 0.25, 0.3, 0.5, 0.7, 0.99, 1 - 1e-12])


def uniform(low, high):
    return Curve.of_family(pv.Uniform(0, 1).node.operation.family, low, high)


def test_atoms_alone():
    curve = Curve.discrete([1, 2, 4], [0.25, 0.5, 0.25])
    assert curve.quantiles(np.array([0, 0.25, 0.2501, 0.75, 0.76, 1])) == pytest.approx([1, 1, 2, 2, 4, 4])


def test_an_atom_inside_a_density():
    curve = Curve.mixture([0.5, 0.5], [uniform(0, 1), Curve.point(0.5)])
    levels = np.array([0, 0.1, 0.25, 0.26, 0.5, 0.75, 0.76, 0.9, 1])
    assert curve.quantiles(levels) == pytest.approx([0, 0.2, 0.5, 0.5, 0.5, 0.5, 0.52, 0.8, 1], abs=1e-15)


@pytest.mark.parametrize("atom", [-math.inf, math.inf])
def test_infinite_atoms(atom):
    curve = Curve.mixture([0.5, 0.5], [uniform(0, 1), Curve.point(atom)])
    found = curve.quantiles(np.array([0.25, 0.5, 0.75]))
    assert found.tolist() == ([-math.inf, -math.inf, 0.5] if atom < 0 else [0.5, 1.0, math.inf])


def test_a_gap_gives_its_lower_end():
    curve = Curve.mixture([0.5, 0.5], [uniform(0, 1), uniform(2, 3)])
    assert curve.quantiles(np.array([0.25, 0.5, 0.75])) == pytest.approx([0.5, 1, 2.5], abs=1e-12)


def test_densities_of_very_different_widths():
    curve = Curve.mixture([0.5, 0.5], [Curve.normal(0, 1), Curve.normal(3, 1e-6)])
    found = curve.quantiles(LEVELS)
    shares = (stats.norm.cdf(found) + stats.norm.cdf(found, 3, 1e-6)) / 2
    assert shares == pytest.approx(LEVELS, abs=1e-9)
    assert shares[:2] == pytest.approx(LEVELS[:2], rel=1e-9)


def test_many_clamped_quantiles():
    prior = {"x": pv.Uniform(0, 3), "noise": pv.Laplace(0, 1)}
    attack = pv.Attack(lambda x, noise: min(max(x + noise, 0.0), 3.0), prior, "x")
    curve = attack.run(engine="exact").prediction.curve
    found = curve.quantiles(np.linspace(0, 1, 1001))
    below = (1 - math.exp(-3)) / 6  # the probability that the noise takes it below zero
    assert np.mean(found == 0) == pytest.approx(below, abs=1e-3)
    assert found + found[::-1] == pytest.approx(3, abs=1e-9)
    inside = (found > 0) & (found < 3)
    assert curve.cdf(found[inside]) == pytest.approx(np.linspace(0, 1, 1001)[inside], abs=1e-12)


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_parts_that_do_not_overlap(scale):
    """The parts of a normal quantity that is cut at some numbers, in any order, have its quantiles."""
    whole = Curve.normal(0.0, scale)
    ends = np.array([-np.inf, -1.5, 0.0, 0.25, 4.0, np.inf]) * scale
    cut = [whole.restricted(low, high) for low, high in itertools.pairwise(ends)]
    pieces = [(share, part) for share, part in cut if part is not None][::-1]
    curve = Curve.mixture([share for share, _ in pieces], [part for _, part in pieces])
    levels = np.array([0.0, 1e-300, 1e-12, *LEVELS, 1.0])
    assert curve.quantiles(levels) == pytest.approx(stats.norm.ppf(levels) * scale, rel=1e-9, abs=1e-9 * scale)


def test_the_last_of_parts_ends_all_of_them_however_unlikely_it_is():
    curve = Curve.mixture([1.0, 1e-20], [uniform(0, 1), uniform(5, 6)])
    assert curve.quantiles(np.array([0.0, 0.5, 1.0])).tolist() == [0.0, 0.5, 6.0]
