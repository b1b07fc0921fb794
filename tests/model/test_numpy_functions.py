"""The graph evaluated on a batch equals NumPy and Python on each sample."""

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privug as pv
from privug.errors import ProgramError, Untraceable
from privug.model import numpy_functions
from privug.model.node import Context, Kind, Node, Operation
from privug.model.operations import SampleFailure
from privug.model.plan import Plan

SAMPLES = 9
SHAPES = [(), (3,), (2, 3)]


class Known(Operation):
    """A quantity whose values the test hands in."""

    def evaluate(self, arguments, context: Context):
        raise AssertionError


def variable(array: np.ndarray) -> pv.RandomVariable:
    return pv.RandomVariable(Node(Known(), (), array.shape[1:], array.dtype, kind=Kind.MIXED))


def batch(shape: tuple[int, ...], dtype: str = "f", seed: int = 0, low: float = -4, high: float = 4) -> np.ndarray:
    rng = np.random.default_rng([seed, len(shape)])
    full = (SAMPLES, *shape)
    if dtype == "f":
        return rng.uniform(low, high, full)
    return rng.integers(int(low), int(high) + 1, full) if dtype == "i" else rng.random(full) < 0.5


def plain(value: np.ndarray) -> Any:
    """Return one sample as a program sees it: Python numbers, or arrays."""
    return value.item() if value.ndim == 0 else value


def evaluated(result: pv.RandomVariable, inputs: list[pv.RandomVariable], arrays: list[np.ndarray]) -> np.ndarray:
    known = {rv.node: array for rv, array in zip(inputs, arrays, strict=True)}
    return Plan([result.node], list(known)).run(SAMPLES, np.random.default_rng(0), known)[0]


def check(function: Callable[..., Any], *arrays: np.ndarray, rtol: float = 1e-13) -> None:
    """Compare one evaluation of the graph with one call for each sample: value, shape and type."""
    inputs = [variable(array) for array in arrays]
    before = [array.copy() for array in arrays]
    result = function(*inputs)
    actual = evaluated(result, inputs, list(arrays))
    with np.errstate(all="ignore"):
        expected = [function(*(plain(array[k]) for array in arrays)) for k in range(SAMPLES)]
    assert result.shape == np.shape(expected[0])
    assert actual.shape == (SAMPLES, *result.shape)
    assert actual.dtype.kind == np.asarray(expected[0]).dtype.kind == result.node.dtype.kind
    np.testing.assert_allclose(actual, np.array(expected), rtol=rtol)
    for array, unchanged in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, unchanged)


REDUCTIONS = [np.sum, np.mean, np.min, np.max, np.amin, np.amax, np.median, np.std, np.var, np.prod, np.any, np.all]
REDUCTIONS += [np.ptp, np.nanmean, np.nansum]
AXES = {(): [None], (3,): [None, 0, -1, (0,)], (2, 3): [None, 0, 1, -1, -2, (0, 1), (-1,)]}


@pytest.mark.parametrize("function", REDUCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["f", "i"])
def test_reductions(function, shape, dtype):
    array = batch(shape, dtype)
    for axis in AXES[shape]:
        check(lambda x, axis=axis: function(x, axis=axis), array, rtol=1e-12)
        if shape:
            check(lambda x, axis=axis: function(x, axis=axis, keepdims=True), array, rtol=1e-12)


@pytest.mark.parametrize("function", [np.sum, np.mean, np.any, np.all, np.max, np.prod], ids=lambda f: f.__name__)
def test_reductions_of_bools(function):
    for shape in SHAPES:
        check(function, batch(shape, "b"))


@pytest.mark.parametrize("function", [np.std, np.var], ids=lambda f: f.__name__)
def test_delta_degrees_of_freedom(function):
    check(lambda x: function(x, ddof=1), batch((3,)))
    check(lambda x: function(x, axis=0, ddof=1), batch((2, 3)))


@pytest.mark.parametrize("q", [0, 0.25, 0.5, 0.9, 1.0])
def test_quantiles(q):
    for array in (batch((3,)), batch((2, 3))):
        check(lambda x: np.quantile(x, q), array)
        check(lambda x: np.percentile(x, 100 * q), array)
        check(lambda x: np.quantile(x, q, axis=-1, keepdims=True), array)
        check(lambda x: np.quantile(x, q, axis=0, method="lower"), array)


@pytest.mark.parametrize("function", [np.cumsum, np.cumprod, np.argmin, np.argmax], ids=lambda f: f.__name__)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["f", "i"])
def test_functions_that_flatten(function, shape, dtype):
    check(function, batch(shape, dtype))
    for axis in range(-len(shape), len(shape)):
        check(lambda x, axis=axis: function(x, axis=axis), batch(shape, dtype))


def test_sort():
    for shape in SHAPES[1:]:
        for axis in (None, *range(-len(shape), len(shape))):
            check(lambda x, axis=axis: np.sort(x, axis=axis), batch(shape))


@pytest.mark.parametrize("axis", [0, 1, -1, -2])
def test_joining_matrices(axis):
    check(lambda a, b: np.concatenate([a, b], axis=axis), batch((2, 3)), batch((2, 3), seed=1))
    check(lambda a, b: np.stack([a, b], axis=axis), batch((2, 3)), batch((2, 3), seed=1))


def test_joining_others():
    check(lambda a, b: np.concatenate((a, b)), batch((3,)), batch((2,)))
    check(lambda a, b: np.concatenate((a, b)), batch((3,), "i"), batch((2,)))
    check(lambda a: np.concatenate((a, [1.0, 2.0])), batch((3,)))
    check(lambda a, b: np.stack([a, b, b]), batch(()), batch((), seed=1))
    check(lambda a, b: np.stack([a, b], axis=-1), batch((3,)), batch((3,), seed=1))
    check(lambda a: np.stack([a, np.zeros(3)], axis=1), batch((3,)))


def test_rearranging():
    check(np.transpose, batch((2, 3)))
    check(lambda x: x.T, batch((2, 3)))
    check(lambda x: np.reshape(x, (3, 2)), batch((2, 3)))
    check(lambda x: np.reshape(x, -1), batch((2, 3)))
    check(lambda x: x.reshape(3, -1), batch((2, 3)))
    check(np.ravel, batch((2, 3)))
    check(np.ravel, batch((3,)))
    check(lambda x: x[::-1], batch((3,)))
    check(lambda x: x[1], batch((2, 3)))
    check(lambda x: x[..., -1], batch((2, 3)))
    check(lambda x: x[:, 1:], batch((2, 3)))
    check(lambda x: x[np.array([0, 2, 0])], batch((3,)))
    check(lambda x: x[:, None], batch((3,)))


@pytest.mark.parametrize("n", [0, 1, 2])
def test_diff(n):
    check(lambda x: np.diff(x, n=n), batch((3,)))
    for axis in (-2, -1, 0, 1):
        check(lambda x, axis=axis: np.diff(x, n=min(n, 1), axis=axis), batch((2, 3), "i"))


def test_products():
    check(np.dot, batch((3,)), batch((3,), seed=1), rtol=1e-12)
    check(np.dot, batch((2, 3)), batch((3,), seed=1), rtol=1e-12)
    check(np.dot, batch((3,)), batch((3, 2), seed=1), rtol=1e-12)
    check(np.dot, batch((2, 3)), batch((3, 2), seed=1), rtol=1e-12)
    check(np.dot, batch(()), batch((3,), seed=1))
    check(operator.matmul, batch((2, 3)), batch((3,), seed=1), rtol=1e-12)
    check(lambda x: np.arange(3.0) @ x, batch((3,)), rtol=1e-12)
    check(lambda x: x @ np.arange(3), batch((2, 3), "i"))
    check(lambda x: x.dot(x), batch((3,)), rtol=1e-12)


def test_clip():
    check(lambda x: np.clip(x, -1, 1), batch((2, 3)))
    check(lambda x: np.clip(x, -1, None), batch((3,)))
    check(lambda x: np.clip(x, None, 1.5), batch((3,), "i"))
    check(lambda x, low: np.clip(x, low, 3), batch((2, 3)), batch((3,), seed=1))
    check(lambda x: x.clip(0, 1), batch((3,)))


@pytest.mark.parametrize("decimals", [0, 1, 3, -1])
@pytest.mark.parametrize("dtype", ["f", "i"])
def test_numpy_rounding(decimals, dtype):
    array = batch((2, 3), dtype, low=-400, high=400) / (1 if dtype == "i" else 8)
    check(lambda x: np.round(x, decimals), array)
    check(lambda x: np.around(x, decimals=decimals), array)
    check(lambda x: x.round(decimals), array)


def test_counting_and_choosing():
    for shape in SHAPES:
        check(np.count_nonzero, batch(shape, "i", low=-1, high=1))
        check(lambda c, x: np.where(c, x, -x), batch(shape, "b"), batch(shape))
        check(lambda c, x: np.where(c > 0, x, 0), batch(()), batch(shape))
    check(lambda x: np.count_nonzero(x, axis=0), batch((2, 3), "b"))
    check(lambda c, x, y: np.where(c, x, y), batch((2, 1), "b"), batch((3,)), batch(()))


def test_average():
    for axis in (None, 0, 1, -1):
        check(lambda x, axis=axis: np.average(x, axis=axis), batch((2, 3)), rtol=1e-12)
        check(
            lambda x, w, axis=axis: np.average(x, axis=axis, weights=w), batch((2, 3)), batch((2, 3), low=1), rtol=1e-12
        )
    check(lambda x, w: np.average(x, weights=w), batch((3,)), batch((3,), low=1), rtol=1e-12)
    check(lambda x: np.average(x, weights=[1, 2, 3]), batch((3,)), rtol=1e-12)
    for axis in (0, 1, -1):
        check(
            lambda x, w, axis=axis: np.average(x, axis=axis, weights=w), batch((3, 3)), batch((3,), low=1), rtol=1e-12
        )


@pytest.mark.parametrize("dtype", "if")
@pytest.mark.parametrize("bounds", [[-2, 0, 3], [-1.5, 0.5, 0.5, 4.0], [0, 2, 2]])
def test_bounds(dtype, bounds):
    check(lambda x: np.histogram(x, bins=bounds)[0], batch((6,), dtype))
    for right in (False, True):
        check(lambda x, right=right: np.digitize(x, bounds, right), batch((6,), dtype))


def test_bounds_that_are_no_bounds_are_refused():
    x = variable(batch((6,)))
    for bins in (4, [3, 2, 1], "auto"):
        with pytest.raises(Untraceable):
            np.histogram(x, bins=bins)
    with pytest.raises(Untraceable):
        np.histogram(x, bins=[0, 1], density=True)


def test_every_handler_is_tested_here():
    tested = {*REDUCTIONS, np.quantile, np.percentile, np.cumsum, np.cumprod, np.argmin, np.argmax, np.sort, np.where}
    tested |= {np.concatenate, np.stack, np.transpose, np.reshape, np.ravel, np.diff, np.dot, np.clip, np.round}
    tested |= {np.around, np.count_nonzero, np.average, np.histogram, np.digitize}
    tested |= {np.histogram2d}  # with tables of counts, in tests/program/test_count_tables.py
    assert set(numpy_functions.HANDLERS) == tested


UNARY = [np.negative, np.positive, np.absolute, np.exp, np.expm1, np.sin, np.cos, np.tan, np.arctan, np.sinh, np.tanh]
UNARY += [np.floor, np.ceil, np.trunc, np.rint, np.sign, np.square, np.cbrt, np.exp2, np.isfinite, np.isnan, np.fabs]
UNARY += [np.logical_not]
POSITIVE = [np.sqrt, np.log, np.log2, np.log10, np.log1p, np.reciprocal]
BINARY = [np.add, np.subtract, np.multiply, np.true_divide, np.maximum, np.minimum, np.fmax, np.fmin, np.hypot]
BINARY += [np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal, np.logical_and, np.logical_or]
BINARY += [np.arctan2, np.remainder, np.floor_divide, np.logical_xor, np.copysign, np.divide]


@pytest.mark.parametrize("function", UNARY + POSITIVE, ids=lambda f: f.__name__)
def test_unary_ufuncs(function):
    for shape in SHAPES:
        check(function, batch(shape, low=0.1 if function in POSITIVE else -4))
        if function is not np.reciprocal:
            check(function, batch(shape, "i", low=1 if function in POSITIVE else -4))


@pytest.mark.parametrize("function", BINARY, ids=lambda f: f.__name__)
def test_binary_ufuncs_broadcast(function):
    for left in SHAPES:
        for right in SHAPES:
            check(function, batch(left), batch(right, seed=1))
            check(function, batch(left, "i"), batch(right, "i", seed=1, low=1))
    check(lambda x: function(x, 2), batch((2, 3)))
    check(lambda x: function(np.array([1.0, 2.0, 3.0]), x), batch((2, 3)))


def test_ufunc_reductions():
    array = batch((2, 3))
    for ufunc in numpy_functions.REDUCING_UFUNCS:
        check(lambda x, ufunc=ufunc: ufunc.reduce(x), array)
        check(lambda x, ufunc=ufunc: ufunc.reduce(x, axis=1), array)
        check(lambda x, ufunc=ufunc: ufunc.reduce(x, axis=None), array)


OPERATORS = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod]
COMPARISONS = [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]


@pytest.mark.parametrize("function", OPERATORS + COMPARISONS, ids=lambda f: f.__name__)
def test_operators(function):
    for left, right in [((), ()), ((3,), ()), ((), (2, 3)), ((2, 3), (3,)), ((2, 1), (3,))]:
        for kinds in ("ff", "ii", "fi", "if"):
            check(function, batch(left, kinds[0]), batch(right, kinds[1], seed=1, low=1))
    check(lambda x: function(x, 3), batch((), "i"))
    check(lambda x: function(7, x), batch((), "i", low=1))
    check(lambda x: function(7.5, x), batch((3,), low=1))


@pytest.mark.parametrize("function", [*OPERATORS, *COMPARISONS, operator.pow], ids=lambda f: f.__name__)
def test_bools_are_numbers_in_python(function):
    ones = np.ones(SAMPLES, bool)
    check(lambda a: function(a, True), batch((), "b"))
    check(lambda a: function(a, 2), batch((), "b"))
    if function is not operator.pow:
        check(function, batch((), "b"), ones)
        check(lambda b: function(5, b), ones)


def test_true_plus_true_is_two():
    check(lambda a: a + a, batch((), "b"))
    check(lambda a: sum([a, a, a]), batch((), "b"))
    check(lambda a: -a, batch((), "b"))
    check(lambda a: +a, batch((), "b"))
    check(abs, batch((), "b"))
    check(lambda a: a * 2.5, batch((), "b"))


@pytest.mark.parametrize("function", [operator.and_, operator.or_, operator.xor], ids=lambda f: f.__name__)
def test_bitwise_operators(function):
    for shape in SHAPES:
        check(function, batch(shape, "b"), batch(shape, "b", seed=1))
        check(function, batch(shape, "i"), batch(shape, "i", seed=1))
    check(lambda x: function(True, x), batch((), "b"))
    check(lambda x: ~x, batch((3,), "b"))
    check(lambda x: ~x, batch((), "i"))


@pytest.mark.parametrize("exponent", [-3, -2, -1, 0, 1, 2, 5, 0.5, -0.5, 2.0, True])
def test_powers(exponent):
    check(lambda x: x**exponent, batch((), "i", low=1, high=5))
    check(lambda x: x**exponent, batch((), low=0.5))
    check(lambda x: x**exponent, batch((2, 3), low=0.5))


def test_powers_of_negative_numbers_and_random_powers():
    check(lambda x: x**-3, batch((), "i", low=-5, high=-1))
    check(lambda x: x**3, batch((), "i", low=-5, high=5))
    check(operator.pow, batch((), low=0.5), batch((), seed=1))
    check(lambda x: 2.0**x, batch(()))
    check(lambda x: 2.0**x, batch((), "i"))
    with pytest.raises(Untraceable, match="random whole power"):
        2 ** variable(batch((), "i"))


@pytest.mark.parametrize(
    ("base", "exponent", "cause"),
    [
        ([1, 2, 0], -1, ZeroDivisionError),
        ([1.0, 2.0, 0.0], -0.5, ZeroDivisionError),
        ([1.0, 4.0, -8.0], 0.5, pv.ProgramError),
        ([1.0, -4.0, 1e200], 2, OverflowError),
    ],
)
def test_impossible_powers_name_the_sample(base, exponent, cause):
    x = variable(np.array(base))
    result = x**exponent
    with pytest.raises(SampleFailure) as failure:
        Plan([result.node], [x.node]).run(3, np.random.default_rng(0), {x.node: np.array(base)})
    assert failure.value.index == 2
    assert isinstance(failure.value.cause, cause)


@pytest.mark.parametrize("function", [operator.truediv, operator.floordiv, operator.mod], ids=lambda f: f.__name__)
@pytest.mark.parametrize("values", [[3, 0, 1], [3.0, 0.0, 1.0], [True, False, True]])
def test_division_by_zero_names_the_sample(function, values):
    x = variable(np.array(values))
    with pytest.raises(SampleFailure) as failure:
        Plan([function(7, x).node], [x.node]).run(3, np.random.default_rng(0), {x.node: np.array(values)})
    assert failure.value.index == 1
    assert isinstance(failure.value.cause, ZeroDivisionError)


def test_divmod():
    for kinds in ("ff", "ii", "fi"):
        arrays = batch((), kinds[0]), batch((), kinds[1], seed=1, low=1)
        for part in (0, 1):
            check(lambda a, b, part=part: divmod(a, b)[part], *arrays)
            check(lambda b, part=part: divmod(17, b)[part], arrays[1])
            check(lambda a, part=part: divmod(a, 3)[part], arrays[0])


def exactly_python(function: Callable[[Any], Any], values: list[Any]) -> None:
    array = np.array(values)
    x = variable(array)
    actual = Plan([function(x).node], [x.node]).run(len(values), np.random.default_rng(0), {x.node: array})[0]
    expected = [function(value) for value in values]
    assert actual.tolist() == expected
    assert [type(value) for value in actual.tolist()] == [type(value) for value in expected]


TIES = [0.15, 0.25, 0.35, 2.675, 1.005, 0.5, 1.5, 2.5, -0.5, -1.5, -2.675, 0.0, 1e-9, 123456.785, 1e15 + 0.5, 5e-324]
TIES += [0.285, 1.115, 4.35, 1e16, -1e22, 0.045, 8.5e-5]


@pytest.mark.parametrize("digits", [None, 0, 1, 2, 3, 5, 15, 25, 400, -1, -2, -30])
def test_round_is_exactly_pythons(digits):
    exactly_python(lambda x: round(x, digits), [v for v in TIES if digits is not None or abs(v) < 2**62])


@pytest.mark.parametrize("digits", [None, 0, 2, -1, -2, -3])
def test_round_of_whole_numbers_and_bools(digits):
    exactly_python(lambda x: round(x, digits), [5, 15, 25, 149, 150, 250, -150, -250, 0, 10**17 + 5, 12345])
    if digits is None:
        exactly_python(round, [True, False])


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(st.floats(-1e12, 1e12), min_size=1, max_size=8), st.integers(-3, 8))
def test_round_of_any_number(values, digits):
    exactly_python(lambda x: round(x, digits), values)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.integers(-(10**7), 10**7), st.integers(1, 4)), min_size=1, max_size=8))
def test_round_of_decimal_ties(pairs):
    for digits in (1, 2, 3):
        exactly_python(lambda x, digits=digits: round(x, digits), [(2 * k + 1) / 2 / 10**digits for k, _ in pairs])


@pytest.mark.parametrize("function", [math.floor, math.ceil, math.trunc], ids=lambda f: f.__name__)
def test_whole_parts(function):
    exactly_python(function, [-1.5, -0.5, 0.0, 0.5, 1.5, 2.0**52 + 0.5, 1e15, -1e15])
    exactly_python(function, [-3, 0, 2**60])
    exactly_python(function, [True, False])


@pytest.mark.parametrize("function", [math.floor, math.ceil, math.trunc, round], ids=lambda f: f.__name__)
def test_whole_parts_never_wrap(function):
    with pytest.raises(ProgramError, match="64-bit"):
        exactly_python(function, [1.0, 1e19])
    for value in (math.inf, math.nan):
        x = variable(np.array([1.0, value]))
        with pytest.raises(SampleFailure) as failure:
            Plan([function(x).node], [x.node]).run(2, np.random.default_rng(0), {x.node: np.array([1.0, value])})
        assert failure.value.index == 1


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.lists(st.tuples(st.integers(-(2**31), 2**31), st.integers(-50, 50).filter(bool)), min_size=1, max_size=8),
    st.sampled_from([operator.floordiv, operator.mod, operator.truediv, operator.add, operator.sub, operator.mul]),
)
def test_whole_number_arithmetic_is_exactly_pythons(pairs, function):
    left, right = (np.array(column) for column in zip(*pairs, strict=True))
    a, b = variable(left), variable(right)
    known = {a.node: left, b.node: right}
    actual = Plan([function(a, b).node], list(known)).run(len(pairs), np.random.default_rng(0), known)[0]
    assert actual.tolist() == [function(x, y) for x, y in pairs]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.lists(st.tuples(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6).filter(lambda y: abs(y) > 1e-6)), min_size=1),
    st.sampled_from([operator.floordiv, operator.mod, operator.truediv, operator.add, operator.sub, operator.mul]),
)
def test_float_arithmetic_is_exactly_pythons(pairs, function):
    left, right = (np.array(column) for column in zip(*pairs, strict=True))
    a, b = variable(left), variable(right)
    known = {a.node: left, b.node: right}
    actual = Plan([function(a, b).node], list(known)).run(len(pairs), np.random.default_rng(0), known)[0]
    assert actual.tolist() == [function(x, y) for x, y in pairs]


def test_random_subscripts():
    position = batch((), "i", low=-3, high=2)
    check(lambda x, k: x[k], batch((3,)), position)
    rows = batch((3, 2))
    check(lambda x, k: x[k], rows, position)
    x, k = variable(batch((3,))), variable(position)
    with pytest.raises(SampleFailure, match="out of range"):
        evaluated(x[k + 3], [x, k], [batch((3,)), position])


def test_methods():
    array = batch((2, 3))
    for name in ("sum", "mean", "std", "var", "min", "max", "prod", "any", "all", "cumsum"):
        check(lambda x, name=name: getattr(x, name)(), array, rtol=1e-12)
        check(lambda x, name=name: getattr(x, name)(axis=1), array, rtol=1e-12)
    check(lambda x: x.argmin(), array)
    check(lambda x: x.argmax(), array)
    check(lambda x: x.ravel(), array)
    check(lambda x: x.astype(int), array)
    check(lambda x: x.astype(bool), array)
    check(lambda x: x.astype(float), batch((3,), "i"))
    check(lambda x: sum(x.tolist()), batch((3,)))


@pytest.mark.parametrize("axis", [2, -3, (0, 2)])
@pytest.mark.parametrize("function", [np.sum, np.median, np.sort, np.cumsum, np.diff, np.concatenate, np.argmax])
def test_an_axis_that_is_not_there_is_refused(function, axis):
    x = variable(batch((2, 3)))
    with pytest.raises((np.exceptions.AxisError, TypeError)):
        function([x, x] if function is np.concatenate else x, axis=axis)


@pytest.mark.parametrize(
    "attempt",
    [
        lambda x: np.sum(x, 0, float),
        lambda x: np.sum(x, dtype=float),
        lambda x: np.sum(x, where=np.ones(3, bool)),
        lambda x: np.sum(x, initial=5.0),
        lambda x: np.quantile(x, [0.1, 0.9]),
        lambda x: np.clip(x, 0, 1, out=np.empty(3)),
        lambda x: np.where(x > 0),
        lambda x: np.average(x, weights=np.ones(2)),
        lambda x: np.add(x, 1, where=np.ones(3, bool)),
        lambda x: np.divmod(x, 2),
        lambda x: np.linalg.norm(x),
        lambda x: np.dot(np.ones((3, 3, 3)), x),
        lambda x: np.where(pv.Choice(["a", "b"]), x, 0),
        lambda x: pv.Array(pv.Choice(["a", "b"]), 3) @ x,
        lambda x: np.diff(pv.Array(pv.Choice(["a", "b"]), 3)),
    ],
)
def test_what_is_not_understood_is_refused(attempt):
    with pytest.raises(TypeError):
        attempt(variable(batch((3,))))
