"""Functions of one number cut into monotone pieces."""

import math
import operator

import numpy as np
import pytest

import privug as pv
from privug.inference.graph.affine import dominators
from privug.inference.measure.piecewise_map import Derivative, PiecewiseMap, Unfollowed, cut, half_line
from privug.model.graph import deduplicated, signature

FUNCTIONS = {
    "floor": (lambda x: np.floor(x), [-1.0, 0.0, 1.0]),
    "round to even": (lambda x: round(x), [-1.5, -0.5, 0.5, 1.5]),
    "one digit": (lambda x: round(x / 10, 1), [-1.5, -0.5, 0.5, 1.5]),
    "cut off": (lambda x: int(x), [-1.0, 1.0]),
    "comparison": (lambda x: x > 0.25, [0.25]),
    "two comparisons": (lambda x: (x > -1) & (x < 1), [-1.0, 1.0]),
    "absolute": (lambda x: abs(x), [0.0]),
    "square": (lambda x: x**2, [0.0]),
    "reciprocal": (lambda x: 1 / np.where(x == 0, 1.0, x), [0.0]),
    "clip": (lambda x: np.clip(x, -1, 1), [-1.0, 1.0]),
    "remainder": (lambda x: x % 1, [-1.0, 0.0, 1.0]),
    "branch": (lambda x: np.where(x > 1, 5.0, x), [1.0]),
    "exponential": (lambda x: np.exp(x) + 3, []),
    "same way": (lambda x: np.exp(x) + x, []),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_edges(name):
    function, inner = FUNCTIONS[name]
    x = pv.Uniform(-1.75, 1.75)
    edges = cut(pv.lift(function)(x).node, x.node, -1.75, 1.75)
    inside = edges[1:-1]
    for edge in inner:
        assert np.abs(inside - edge).min() < 1e-14
    for edge in inside:
        assert min(abs(edge - known) for known in inner) < 1e-14


@pytest.mark.parametrize("name", ["absolute", "square", "clip", "remainder", "branch", "exponential", "same way"])
def test_derivatives_and_inverses(name):
    x = pv.Uniform(-1.75, 1.75)
    image = PiecewiseMap.of(pv.lift(FUNCTIONS[name][0])(x).node, x.node, -1.75, 1.75)
    points = np.linspace(-1.7, 1.7, 35) + 0.003
    slopes = (image.values(points + 1e-6) - image.values(points - 1e-6)) / 2e-6
    assert Derivative(image.node, image.argument)(points) == pytest.approx(slopes, abs=1e-7)
    for piece in np.flatnonzero(~image.steps):
        inside = points[(points > image.edges[piece]) & (points < image.edges[piece + 1])]
        assert image.inverse(int(piece), image.values(inside)) == pytest.approx(inside, abs=1e-12)


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_edges_at_any_scale(scale):
    x = pv.Uniform(-scale, scale)
    edges = cut(pv.lift(lambda x: x / scale > 0.3)(x).node, x.node, -scale, scale)
    assert edges[1] / scale == pytest.approx(0.3, abs=1e-15)


def test_many_steps_are_all_found():
    x = pv.Uniform(0, 1)
    edges = cut(pv.lift(lambda x: round(x, 4))(x).node, x.node, 0.0, 1.0)
    assert len(edges) == 10_002
    assert np.abs(edges[1:-1] - (np.arange(10_000) + 0.5) / 10_000).max() < 1e-14


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda x: np.sin(x), "'sin'"),
        (lambda x: x**2 + x, "against each other"),
        (lambda x: x * np.exp(x), "two quantities that change together"),
        (lambda x: np.log(x), "NaN"),
        (lambda x: round(x, 9), "steps"),
    ],
)
def test_what_cannot_be_followed(function, reason):
    x = pv.Uniform(-2, 2)
    with pytest.raises(Unfollowed, match=reason):
        cut(pv.lift(function)(x).node, x.node, -2.0, 2.0)


def test_narrow_places():
    x, y = pv.Uniform(0, 1), pv.Uniform(0, 1)
    total = x + y
    output = pv.lift(lambda t: math.floor(t * 3) + (t > 1))(total)
    assert total.node in list(dominators([output.node]))
    assert x.node not in list(dominators([output.node]))
    assert list(dominators([(x + y).node, x.node]))[:1] != [x.node]


def test_equal_functions_have_equal_signatures():
    x, y = pv.Uniform(0, 1), pv.Uniform(5, 6)
    one, other = (pv.lift(lambda v: round(v * 2, 1))(v).node for v in (x, y))
    different = pv.lift(lambda v: round(v * 2, 2))(x).node
    assert signature(one, x.node) == signature(other, y.node) != signature(different, x.node)


def test_what_was_computed_twice_is_computed_once():
    x, y = pv.Uniform(0, 1), pv.Uniform(0, 1)
    node = deduplicated([((x + y) * (x + y)).node])[0]
    assert node.parents[0] is node.parents[1]


@pytest.mark.parametrize("constant", [0.0, 5e-324, 0.1, -3.0, 1e300, math.inf, -math.inf])
@pytest.mark.parametrize("compared", [operator.lt, operator.le, operator.gt, operator.ge])
def test_a_comparison_with_a_constant_changes_just_there(compared, constant):
    number = pv.Normal(0, sd=1)
    largest = np.finfo(float).max
    nearest = (math.nextafter(constant, end) for end in (-math.inf, math.inf))
    looks = np.array([one for one in (-largest, *nearest, constant, largest) if math.isfinite(one)])
    low, high = half_line(compared(number, constant).node, number.node)
    assert ((low <= looks) & (looks <= high)).tolist() == compared(looks, constant).tolist()
    assert half_line((number == constant).node, number.node) is None
    assert half_line((number < number * 2).node, number.node) is None
