"""Distances from observations: what leads the search for rare outputs."""

from collections import namedtuple

import numpy as np
import pytest

import privug as pv
from privug.model.plan import Plan
from privug.observation.likelihood import difference, distance_of, is_graded

Pair = namedtuple("Pair", "left right")


@pytest.mark.parametrize(
    ("value", "wanted", "distance"),
    [
        (3, 5.5, 2.5),
        ("a", "b", 1.0),
        ("a", "a", 0.0),
        ((1, "x", 3), (1, "y", 4), 2.0),
        ([1, 2], [1, 2, 3, 4], 2.0),
        ([(1, 2)], [], 2.0),
        ({"a": 1, "b": 2}, {"a": 1, "c": 3}, 2.0),
        ([0.5], [1.5], 0.5),
        ({1, 2}, {2, 3, 4}, 3.0),
        (Pair(1, 2), Pair(1, 3), 1.0),
        (np.array([1, 2]), [1, 3], 1.0),
        ("a", [1, 2, 3], 3.0),
        (True, 1.0, 0.0),
        ([float("inf")], [1.0], 1.0),
    ],
)
def test_difference_of_plain_values(value, wanted, distance):
    assert difference(value, wanted) == distance
    assert difference(wanted, value) == distance


def sampled(observation, output):
    condition = observation.likelihood(output).conditions[0]
    met, distance = Plan([condition, distance_of(condition)]).run(2000, np.random.default_rng(0))
    return met, distance, condition


X, Y = pv.Normal(0, sd=1), pv.Poisson(3)
XS = pv.Array(pv.Normal(0, sd=1), 3)


@pytest.mark.parametrize(
    ("observation", "output"),
    [
        (pv.between(-1, 2), X),
        (pv.equals(3), Y),
        (pv.near(0, within=0.9), XS),
        (pv.such_that(lambda o: o > 0.2 and o < 1), X),
        (pv.such_that(lambda o: not (o > 0.2 or -1 < o < -0.5)), X),
        (pv.such_that(lambda o: all(v > -0.5 for v in o)), XS),
        (pv.such_that(lambda o: any(v > 0.5 for v in o)), XS),
        (pv.such_that(lambda o: o[0] == 3 or o[1] > 1), (Y, X)),
        (pv.such_that(lambda o: o != 3), Y),
    ],
)
def test_zero_where_a_condition_holds_and_only_there(observation, output):
    met, distance, condition = sampled(observation, output)
    assert met.any()
    assert np.array_equal(distance <= 0, met)
    assert is_graded(condition) is (len(np.unique(distance)) > 2)


def test_distance_of_a_window_is_that_to_its_end():
    condition = pv.between(1, 2).likelihood(X).conditions[0]
    values, distance = Plan([X.node, distance_of(condition)]).run(500, np.random.default_rng(1))
    assert np.allclose(distance, np.maximum(np.maximum(1 - values, values - 2), 0), rtol=1e-12)


def test_a_distance_must_be_one_number():
    with pytest.raises(pv.ObservationError, match="distance must return one number"):
        pv.such_that(lambda o: o > 3, distance=lambda o: (o, o)).likelihood(X)
    with pytest.raises(pv.ObservationError, match="leads nowhere"):
        pv.such_that(lambda o: o > 3, distance=lambda o: 1.0).likelihood(X)
