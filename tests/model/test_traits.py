"""The table of operations: whatever a row says holds, tried on numbers."""

import math
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from privug.model.operations import Gather, Index, Lookup, Stack
from privug.model.traits import OPERATIONS, Role, Scope, error_of_unknown, traits_of, unchanged
from privug.prior.family import Draw

ELEMENTWISE = [row for row in OPERATIONS.values() if row.scope is Scope.ELEMENTWISE]
ARRAYS = [row for row in OPERATIONS.values() if row.scope in (Scope.FOLD, Scope.SCAN, Scope.ARRAY)]
CLASSES = {"Index": Index, "Stack": Stack, "Gather": Gather, "Lookup": Lookup, "Draw": Draw}
OF_OTHER_TYPES = {"left_shift", "isnan", "isinf", "isfinite"}
FLOATING = [
    row for row in ELEMENTWISE if row.role not in (Role.LOGIC, Role.COMPARISON) and row.name not in OF_OTHER_TYPES
]
ARGUMENTS = {row.name: 3 if row.role is Role.CHOICE else getattr(row.function, "nin", 1) for row in FLOATING}


def named(rows):
    return [pytest.param(row, id=row.name) for row in rows]


def arguments(row, rng, samples=400, scale=3.0):
    """Draw arguments at which an operation has a value: a condition first if it chooses, bases of powers positive."""
    low, high = max(row.domain[0], -scale), min(row.domain[1], scale)
    drawn = [rng.uniform(low, high, samples) for _ in range(ARGUMENTS[row.name])]
    if row.role is Role.CHOICE:
        drawn[0] = (drawn[0] > 0).astype(float)
    if row.role is Role.POWER:
        drawn[0] = np.abs(drawn[0]) + 0.1
    return drawn


def on(row, *values):
    with np.errstate(all="ignore"):
        return np.asarray(row.function(*values), float)


def test_every_row_is_of_a_function_and_stands_under_its_name():
    for name, row in OPERATIONS.items():
        assert row.name == name
        assert name in CLASSES or callable(row.function)
        assert row.folds is None or OPERATIONS[row.folds].scope is Scope.ELEMENTWISE
        assert row.on_bools is None or row.on_bools in OPERATIONS
        assert not row.grows or row.size is not None
    for name, kind in CLASSES.items():
        assert kind.__name__ == name
        assert kind.random is (OPERATIONS[name].scope is Scope.DRAW)
    assert traits_of("nobody knows") is traits_of("nobody knows")
    assert not traits_of("nobody knows").turns


@pytest.mark.parametrize("row", named(r for r in FLOATING if r.steps or r.weights is not None or r.derivative))
def test_derivatives_are_those_of_finite_differences(row):
    rng = np.random.default_rng(1)
    u = arguments(row, rng)
    du = [rng.normal(size=len(u[0])) for _ in u]
    if row.role is Role.CHOICE:
        du[0][:] = 0.0
    h = 1e-6
    ahead, behind = (on(row, *(x + sign * h * d for x, d in zip(u, du, strict=True))) for sign in (1, -1))
    slopes = row.slope(u, du)
    rough = (ahead - behind) / (2 * h)
    # At a jump, a turn or the end of the domain there is no derivative: such points are few.
    wrong = ~(np.abs(rough - slopes) <= 1e-4 * (1 + np.abs(slopes)))
    assert wrong.mean() < 0.02


@pytest.mark.parametrize("row", named(r for r in FLOATING if r.inverse))
def test_inverses_lead_back_and_their_slopes_are_right(row):
    rng = np.random.default_rng(2)
    u = arguments(row, rng, scale=1.4)
    fixed = 1.7
    u = [np.full(len(x), fixed) if len(u) > 1 and k != row.inverse_in else x for k, x in enumerate(u)]
    constants = [fixed] if len(u) > 1 else []
    values = on(row, *u)
    back, log_slope = row.inverse(values, *constants)
    np.testing.assert_allclose(back, u[row.inverse_in], rtol=1e-9, atol=1e-9)
    step = 1e-6 * np.maximum(1e-3, np.abs(values))
    inside = [row.inverse(values + sign * step, *constants)[0] for sign in (1, -1)]
    rough = np.abs(inside[0] - inside[1]) / (2 * step)
    usable = np.isfinite(rough) & (rough > 1e-3)
    assert usable.mean() > 0.8
    np.testing.assert_allclose(np.exp(log_slope[usable]), rough[usable], rtol=1e-4)


@pytest.mark.parametrize("row", named(FLOATING))
def test_images_of_intervals_hold_all_values(row):
    rng = np.random.default_rng(3)
    for _ in range(40):
        count = ARGUMENTS[row.name]
        intervals = [tuple(np.sort(rng.choice([rng.normal(0, 3), 0.0, 1.0, -2.0], 2))) for _ in range(count)]
        points = [rng.uniform(low, high, 200) for low, high in intervals]
        values = on(row, *points)
        low, high = row.image(*intervals)
        inside = values[~np.isnan(values)]
        assert np.all((inside >= low) | np.isclose(inside, low, rtol=1e-12, atol=1e-12))
        assert np.all((inside <= high) | np.isclose(inside, high, rtol=1e-12, atol=1e-12))


@pytest.mark.parametrize(
    ("name", "intervals", "expected"),
    [
        ("absolute", [(-1.0, 3.0)], (0.0, 3.0)),
        ("square", [(-2.0, 1.0)], (0.0, 4.0)),
        ("reciprocal", [(0.0, 2.0)], (0.5, math.inf)),
        ("reciprocal", [(-2.0, 0.0)], (-math.inf, -0.5)),
        ("true_divide", [(1.0, 2.0), (-1.0, 1.0)], (-math.inf, math.inf)),
        ("multiply", [(0.0, 0.0), (-math.inf, math.inf)], (0.0, 0.0)),
        ("subtract", [(0.0, math.inf), (1.0, 2.0)], (-2.0, math.inf)),
        ("maximum", [(0.0, 1.0), (0.5, math.inf)], (0.5, math.inf)),
        ("power", [(-1.0, 3.0), (2.0, 2.0)], (0.0, 9.0)),
        ("sin", [(0.0, 1.0)], (-1.0, 1.0)),
        ("where", [(0.0, 1.0), (2.0, 3.0), (-1.0, 0.0)], (-1.0, 3.0)),
    ],
)
def test_images_are_as_tight_as_the_monotone_pieces(name, intervals, expected):
    assert OPERATIONS[name].image(*intervals) == expected


@pytest.mark.parametrize("row", named(r for r in FLOATING if r.turns and r.role is not Role.POWER))
def test_operations_are_monotone_between_their_turning_points(row):
    rng = np.random.default_rng(4)
    for position, turns in enumerate(row.turns):
        if turns is None:
            continue
        low, high = max(row.domain[0], -5.0), min(row.domain[1], 5.0)
        edges = sorted({low, high, *turns})
        for start, end in pairwise(edges):
            others = [float(x[0]) for x in arguments(row, rng, 1)]
            line = np.linspace(start, end, 402)[1:-1]
            fixed = [line if k == position else np.full(len(line), value) for k, value in enumerate(others)]
            steps = np.diff(on(row, *fixed))
            if row.jumps is not None:
                steps = steps[np.diff(row.jumps(*fixed)) == 0]
            assert np.all(steps >= -1e-12) or np.all(steps <= 1e-12), (row.name, position, start, end)


@pytest.mark.parametrize("row", named(r for r in FLOATING if r.steps))
def test_steps_are_constant_almost_everywhere_and_their_preimages_hold_them(row):
    rng = np.random.default_rng(5)
    u = arguments(row, rng)
    values = on(row, *u)
    assert np.mean(values == on(row, *(x + 1e-9 for x in u))) > 0.99
    if row.preimage is not None:
        low, high = np.array([row.preimage(value, 1.0) for value in values]).T
        assert np.all((low <= u[0]) & (u[0] <= high))
        inside = rng.uniform(low, high)
        np.testing.assert_array_equal(on(row, inside), values)


@pytest.mark.parametrize("row", named(FLOATING))
def test_what_is_called_linear_is_and_nothing_else(row):
    rng = np.random.default_rng(6)
    a, b = arguments(row, rng), arguments(row, rng)
    s, t = rng.uniform(0.1, 0.9, (2, len(a[0])))
    together = [s * x + t * y for x, y in zip(a, b, strict=True)]
    expected = s * on(row, *a) + t * on(row, *b)
    is_additive = np.allclose(on(row, *together), expected, rtol=1e-9, atol=1e-9, equal_nan=True)
    assert is_additive == (row.weights is not None)
    if row.weights is not None:
        np.testing.assert_allclose(on(row, *a), sum(w * x for w, x in zip(row.weights, a, strict=True)))
    if len(a) == 2:
        first = np.allclose(on(row, s * a[0], a[1]), s * on(row, *a), rtol=1e-9, equal_nan=True)
        assert not row.factor or first
    if row.factor:
        np.testing.assert_allclose(on(row, *a), a[0] * a[1] ** row.factor)


@pytest.mark.parametrize("row", named(r for r in FLOATING if r.positive is not None))
def test_what_is_called_positive_is(row):
    rng = np.random.default_rng(7)
    u = arguments(row, rng)
    assert np.all(on(row, *(u if row.positive else map(np.abs, u))) > 0)


@pytest.mark.parametrize("row", named(r for r in FLOATING if r.chooses is not None))
def test_what_chooses_returns_one_of_its_arguments(row):
    u = arguments(row, np.random.default_rng(8))
    values = on(row, *u)
    assert np.all(np.any([values == x for x in u[row.chooses :]], axis=0))


@pytest.mark.parametrize("row", named(r for r in ELEMENTWISE if r.role is Role.COMPARISON))
def test_comparisons_hold_for_their_signs(row):
    left = np.array([-1, 0, 1])
    assert row.function(left, 0).tolist() == [sign in row.signs for sign in left.tolist()]
    assert row.direction == {"less": -1, "less_equal": -1, "greater": 1, "greater_equal": 1}.get(row.name, 0)


@pytest.mark.parametrize("row", named(r for r in ELEMENTWISE if r.on_bools or r.connective))
def test_truth_values_are_taken_as_the_table_says(row):
    nin = row.function.nin
    truth = np.array([[False, False, True, True], [False, True, False, True]])[:nin]
    result = row.function(*truth)
    if row.on_bools is not None:
        np.testing.assert_array_equal(result, OPERATIONS[row.on_bools].function(*truth))
    if row.connective is not None:
        expected = {"and": all, "or": any, "not": lambda values: not values[0]}[row.connective.value]
        assert result.tolist() == [expected(values) for values in truth.T.tolist()]


@pytest.mark.parametrize("row", named(r for r in OPERATIONS.values() if r.size is not None))
def test_whole_numbers_stay_within_their_bounds(row):
    rng = np.random.default_rng(9)
    for _ in range(30):
        count = 3 if row.role is Role.CHOICE else 2 if row.name == "dot" else getattr(row.function, "nin", 1)
        limits = rng.integers(0, 7, count).tolist()
        shape = (4,) if row.scope is not Scope.ELEMENTWISE else ()
        drawn = [rng.integers(0 if row.name in ("power", "left_shift") else -m, m + 1, (50, *shape)) for m in limits]
        if row.role is Role.CHOICE:
            drawn[0] = drawn[0] > 0
        if row.scope is Scope.ELEMENTWISE:
            values = row.function(*drawn)
        elif row.name == "dot":
            values = np.einsum("si,si->s", *drawn)
        else:
            values = row.function(*drawn, axis=1)
        largest = [int(np.abs(x).max()) for x in drawn]
        assert int(np.abs(values).max()) <= row.size(largest, 4, 1)
        if not row.grows:
            assert row.size is unchanged


@pytest.mark.parametrize("row", named(FLOATING))
def test_errors_bound_what_numbers_of_higher_precision_say(row):
    rng = np.random.default_rng(10)
    u = arguments(row, rng)
    # Of what nothing is known the rounding of the operation itself is bounded, whatever the arguments bring along.
    off = 0.0 if row.error is error_of_unknown else 1e-13
    moved = [x.astype(np.longdouble) + off * rng.normal(size=len(x)) for x in u]
    if row.role is Role.CHOICE:
        moved[0] = u[0]
    errors = [np.abs(m - x).astype(float) for m, x in zip(moved, u, strict=True)]
    result = on(row, *u)
    truth = row.function(*moved)
    near = np.abs(truth - result) < 1e-6  # a step in between is none of rounding's
    bounds = row.error(u, errors, result)
    assert near.mean() > 0.95
    assert np.all(np.abs(truth - result)[near] <= 1.001 * bounds[near] + 1e-18)
    if off:
        assert np.all(bounds <= 1e-10 * (1 + np.abs(result)))


@pytest.mark.parametrize("row", named(r for r in ARRAYS if r.role is not Role.MOVE and not r.steps and not r.truth))
def test_errors_of_arrays_bound_what_fractions_say(row):
    rng = np.random.default_rng(11)
    terms = rng.choice([0.1, 1e6, -1e6, 3.7, 1e-9, 0.5], (30, 8)) * rng.uniform(0.5, 2, (30, 8))
    options = {"q": 0.3} if row.name == "quantile" else {"q": 30} if row.name == "percentile" else {}
    if row.name == "dot":
        both = [terms, terms[:, ::-1]]
        result, exact = np.einsum("si,si->s", *both), _fractions(both[0]) * _fractions(both[1])
        truth = exact.sum(axis=1)
    else:
        both = [terms]
        result, truth = row.function(terms, axis=1, **options), _exactly(row, _fractions(terms), options)
    bounds = row.array_error(both, [np.zeros(terms.shape)] * len(both), np.asarray(result), 1)
    apart = np.abs(_fractions(result) - truth)
    assert np.all(apart <= _fractions(np.broadcast_to(bounds, result.shape)))


def _fractions(array):
    return np.vectorize(lambda x: Fraction(float(x)), otypes=[object])(array)


def _exactly(row, terms, options):
    """Apply a function to fractions, which do not round."""
    mean = terms.sum(axis=1) / terms.shape[1]
    ordered = np.sort(terms, axis=1)
    match row.name:
        case "sum" | "nansum" | "prod" | "cumsum" | "cumprod" | "diff" | "sort":
            return getattr(np, row.name.removeprefix("nan"))(terms, axis=1)
        case "mean" | "nanmean":
            return mean
        case "min" | "max":
            return ordered[:, 0 if row.name == "min" else -1]
        case "ptp":
            return ordered[:, -1] - ordered[:, 0]
        case "median":
            return (ordered[:, 3] + ordered[:, 4]) / 2
        case "var" | "std":
            variance = ((terms - mean[:, np.newaxis]) ** 2).sum(axis=1) / terms.shape[1]
            roots = [Fraction((Decimal(v.numerator) / Decimal(v.denominator)).sqrt()) for v in variance]
            return variance if row.name == "var" else np.array(roots)
    place = Fraction(float(options["q"])) / (100 if row.name == "percentile" else 1) * 7
    low = math.floor(place)
    return ordered[:, low] + (place - low) * (ordered[:, low + 1] - ordered[:, low])
