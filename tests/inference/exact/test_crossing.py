"""Inverses of monotone functions, also where they are steep, flat or endless."""

import numpy as np
import pytest

from privug.inference.measure.piecewise_map import Crossing

TINY = 5e-324
CASES = {
    "square": (np.square, 0.0, 40.0, np.sqrt, [0, 1e-300, 1e-40, 0.3, 1, 1600]),
    "reciprocal": (lambda x: 1 / np.maximum(x, TINY), TINY, 30.0, lambda y: 1 / y, [1 / 30, 0.5, 1, 1e20, 1e300]),
    "cube": (lambda x: x**3, -8.0, 8.0, np.cbrt, [-512, -1e-60, 0, 1e-90, 5, 512]),
    "falling": (lambda x: np.exp(-x), -3.0, 700.0, lambda y: -np.log(y), [1e-300, 1e-9, 0.5, 2, 20]),
    "large": (lambda x: x + 1e12, 0.0, 1.0, lambda y: y - 1e12, [1e12, 1e12 + 0.5, 1e12 + 1]),
}
ROUNDING = {"square": 1e-300, "cube": 1e-100, "large": 1e-4}


@pytest.mark.parametrize("name", CASES)
def test_values_are_taken_back(name):
    function, low, high, inverse, levels = CASES[name]
    with np.errstate(over="ignore"):
        found = Crossing(function, low, high)(np.array(levels, float))
    assert found == pytest.approx(inverse(np.array(levels, float)), rel=1e-13, abs=ROUNDING.get(name, 0))


def test_values_that_are_never_taken_give_the_nearest_end():
    inverse = Crossing(np.exp, -1.0, 1.0)
    assert inverse(np.array([0.0, 0.1, 5.0, np.inf])).tolist() == [-1.0, -1.0, 1.0, 1.0]
    assert Crossing(np.negative, 2.0, 2.0)(np.array([0.0, -2.0])).tolist() == [2.0, 2.0]


def test_steps_are_few():
    calls = []

    def counted(x):
        calls.append(len(x))
        return np.square(x)

    found = Crossing(counted, 0.0, 40.0)(np.geomspace(1e-250, 1600, 1000))
    assert np.square(found) == pytest.approx(np.geomspace(1e-250, 1600, 1000), rel=1e-14)
    assert len(calls) < 20
