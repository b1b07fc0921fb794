"""The table of operations: everything that is known of each of them, by name.

What a row does not say is not known, and whoever asks goes the careful way. Nothing is imported for the names in other
libraries: the back end that needs one looks it up.
"""

import importlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache, lru_cache
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

SizeRule = Callable[[Sequence[int], int, int], float]
"""How far from zero results lie, given that of each argument, how many elements there are, and an order."""


def unchanged(sizes: Sequence[int], count: int, order: int) -> float:
    """Of what is one of the arguments, but perhaps for its sign."""
    return max(sizes)


def power_of(base: int, exponent: int) -> float:
    """Of a power; that to the power of zero is one."""
    base = max(1, base)
    return base**exponent if exponent * math.log2(base) < 64 else math.inf


def added_up(sizes: Sequence[int], count: int, order: int) -> float:
    """Of the sum of all elements."""
    return sizes[0] * count


def differenced(sizes: Sequence[int], count: int, order: int) -> float:
    """Of differences of elements, taken so many times."""
    return sizes[0] << order


Array = npt.NDArray[Any]
ErrorRule = Callable[[Sequence[Array], Sequence[Array], Array], Array]
"""A bound of the error of results, given arguments, bounds of their errors, and the results; shapes go together."""
ArrayErrorRule = Callable[[Sequence[Array], Sequence[Array], Array, Any], Array]
"""The same for functions of whole arrays, samples first, along an axis or several."""

UNIT = 2.0**-53  # half a unit in the last place, relative to the number


def error_of_unknown(a: Sequence[Array], e: Sequence[Array], r: Array) -> Array:
    """Of an operation of which nothing is known: errors are passed on, and a few units in the last place added."""
    sizes = np.max(np.broadcast_arrays(np.abs(r), *(np.abs(argument) for argument in a)), axis=0)
    return np.asarray(np.max(np.broadcast_arrays(np.zeros(r.shape), *e), axis=0) + 4 * UNIT * sizes)


def no_error(a: Sequence[Array], e: Sequence[Array], r: Array) -> Array:
    """Of what is rounded on purpose."""
    return np.zeros(r.shape)


def error_kept(a: Sequence[Array], e: Sequence[Array], r: Array) -> Array:
    """Of a number but for its sign."""
    return e[0]


def error_of_sum(a: Sequence[Array], e: Sequence[Array], r: Array) -> Array:
    """Of a sum."""
    return e[0] + e[1] + _rounded_unless(exact_sum(a[0], a[1], r), r)


def error_of_difference(a: Sequence[Array], e: Sequence[Array], r: Array) -> Array:
    """Of a difference."""
    return e[0] + e[1] + _rounded_unless(exact_sum(a[0], -a[1].astype(float), r), r)


def error_of_product(a: Sequence[Array], e: Sequence[Array], r: Array) -> Array:
    """Of a product."""
    passed = np.abs(a[0]) * e[1] + np.abs(a[1]) * e[0]
    return np.asarray(passed + _rounded_unless(exact_product(a[0], a[1], r), r))


def error_of_ratio(a: Sequence[Array], e: Sequence[Array], r: Array) -> Array:
    """Of a ratio."""
    passed = (e[0] + np.abs(r) * e[1]) / np.abs(a[1])
    return np.asarray(passed + _rounded_unless(exact_product(r, a[1], a[0]), r))


def error_of_root(a: Sequence[Array], e: Sequence[Array], r: Array) -> Array:
    """Of a square root."""
    passed = np.where(e[0] < np.abs(a[0]), e[0] / np.maximum(r, np.sqrt(e[0])), np.sqrt(e[0]))
    return np.where(e[0] > 0, passed, 0.0) + _rounded_unless(exact_product(r, r, a[0]), r)


def error_of_square(a: Sequence[Array], e: Sequence[Array], r: Array) -> Array:
    """Of a square."""
    return 2 * np.abs(a[0]) * e[0] + _rounded_unless(exact_product(a[0], a[0], r), r)


def error_of_power(a: Sequence[Array], e: Sequence[Array], r: Array) -> Array:
    """Of a power; whole ones are exact."""
    size = np.abs(a[0]).astype(float)
    slope = np.where(size > 0, np.abs(a[1]) * np.abs(r) / np.where(size > 0, size, 1.0), 0.0)
    rise = np.where((size > 0) & (e[1] > 0), np.abs(np.log(np.where(size > 0, size, 1.0))) * np.abs(r), 0.0)
    return np.asarray(slope * e[0] + rise * e[1] + 2 * (UNIT * np.abs(r)) * (r != np.rint(r)))


def _rounded_unless(exact: Array, r: Array) -> Array:
    return np.where(exact, 0.0, UNIT * np.abs(r))


def exact_sum(a: Array, b: Array, total: Array) -> Array:
    """Say where a sum was not rounded (Knuth's two-sum)."""
    a, b = a.astype(float), b.astype(float)
    back = total - a
    return np.asarray((a - (total - back)) + (b - back) == 0)


def exact_product(a: Array, b: Array, product: Array) -> Array:
    """Say where a product was not rounded (Dekker's product, of numbers split in halves as Veltkamp does)."""
    (high, low), (over, under) = _halves(a.astype(float)), _halves(b.astype(float))
    return np.asarray(low * under - (((product - high * over) - low * over) - high * under) == 0)


def _halves(a: Array) -> tuple[Array, Array]:
    scaled = 134217729.0 * a  # 2^27 + 1
    high = scaled - (scaled - a)
    return high, a - high


def error_of_array(arguments: Sequence[Array], errors: Sequence[Array], result: Array, axis: Any) -> Array:
    """Of a function of whole arrays of which nothing is known: products and squares of elements are allowed for."""
    largest = _largest([np.abs(argument) for argument in arguments], result)
    numbers = sum(argument[0].size for argument in arguments)
    scale = np.maximum(np.maximum(largest, largest**2), np.abs(result))
    return np.asarray(numbers * (1 + largest) * _largest(errors, result) + 4 * UNIT * numbers * scale)


def _largest(arrays: Sequence[Array], like: Array) -> Array:
    """Return the largest number of each sample, in a shape that goes with another array."""
    found = np.max([array.reshape(len(array), -1).max(axis=1, initial=0.0) for array in arrays], axis=0)
    return np.asarray(found[(slice(None), *(np.newaxis,) * (like.ndim - 1))])


def error_of_picked(arguments: Sequence[Array], errors: Sequence[Array], result: Array, axis: Any) -> Array:
    """Of elements picked by their order."""
    return np.asarray(_largest(errors, result) + np.zeros(result.shape))


def error_of_median(arguments: Sequence[Array], errors: Sequence[Array], result: Array, axis: Any) -> Array:
    """Of the middle between two elements that were picked by their order."""
    return np.asarray(_largest(errors, result) + 2 * UNIT * np.abs(result))


def error_of_quantile(arguments: Sequence[Array], errors: Sequence[Array], result: Array, axis: Any) -> Array:
    """Of what lies between two elements at a place that is rounded: so much of the gap between them."""
    largest, numbers = _largest([np.abs(arguments[0])], result), arguments[0][0].size
    return np.asarray(_largest(errors, result) + 4 * UNIT * numbers * largest)


def error_of_scan(arguments: Sequence[Array], errors: Sequence[Array], result: Array, axis: Any) -> Array:
    """Of partial sums."""
    _, grown = _summed(arguments[0], errors[0], axis)
    return np.moveaxis(grown, -1, _axes(axis, result.ndim)[0]) if grown.shape[-1] else np.zeros(result.shape)


def error_of_total(arguments: Sequence[Array], errors: Sequence[Array], result: Array, axis: Any) -> Array:
    """Of a sum of elements: each partial sum is rounded, whatever the order, unless all of them are exact."""
    _, grown = _summed(arguments[0], errors[0], axis)
    return grown[..., -1].reshape(result.shape) if grown.shape[-1] else np.zeros(result.shape)


def error_of_mean(arguments: Sequence[Array], errors: Sequence[Array], result: Array, axis: Any) -> Array:
    """Of a mean of elements."""
    partial, grown = _summed(arguments[0], errors[0], axis)
    if not grown.shape[-1]:
        return np.zeros(result.shape)
    count = np.full(result.shape, float(grown.shape[-1]))
    exact = exact_product(result, count, partial[..., -1].reshape(result.shape))
    return np.asarray(grown[..., -1].reshape(result.shape) / count + _rounded_unless(exact, result))


def _summed(terms: Array, errors: Array, axis: Any) -> tuple[Array, Array]:
    """Return partial sums and bounds of their errors, along the last axis."""
    axes = _axes(axis, terms.ndim)
    flat, along = _in_line(terms, axes), _in_line(errors, axes)
    partial = np.cumsum(flat, axis=-1, dtype=float)
    before = np.concatenate([np.zeros((*partial.shape[:-1], 1)), partial[..., :-1]], axis=-1)[..., : flat.shape[-1]]
    rounded = np.where(exact_sum(before, flat, partial), 0.0, UNIT * np.cumsum(np.abs(flat), axis=-1))
    return partial, np.cumsum(rounded + along, axis=-1)


def _axes(axis: int | Sequence[int] | None, rank: int) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(1, rank))
    return (axis,) if isinstance(axis, int) else tuple(axis)


def _in_line(array: Array, axes: tuple[int, ...]) -> Array:
    """Put what is summed along the last axis."""
    kept = array.ndim - len(axes)
    moved = np.moveaxis(array, axes, range(kept, array.ndim))
    return moved.reshape(*moved.shape[:kept], -1)


Interval = tuple[float, float]
BackendName = str | Callable[..., Any] | None
"""A function of another library by its name, or written with the library at hand, the first argument; None if not."""

REALS: Interval = (-math.inf, math.inf)


class Scope(Enum):
    """Which numbers an operation puts together."""

    ELEMENTWISE = "element by element"
    FOLD = "all elements along some axes to one"
    SCAN = "each element with those before it"
    ARRAY = "a whole array"
    LOOKUP = "numbers at given places, as they are"
    DRAW = "none: it is random"


class Role(Enum):
    """What an operation is for."""

    SUM = "a weighted sum with known weights"
    PRODUCT = "a product or a ratio"
    POWER = "one number to the power of another"
    COMPARISON = "a comparison of two numbers"
    LOGIC = "a condition put together of others"
    CHOICE = "one of two numbers, as a condition says"
    ORDER = "by which numbers are larger than others, or than zero"
    MOVE = "the same numbers at other places"
    FUNCTION = "anything else"


class Connective(Enum):
    """How a condition is put together of others."""

    AND = "and"
    OR = "or"
    NOT = "not"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Traits:
    """What is known of an operation."""

    name: str
    scope: Scope = Scope.ELEMENTWISE
    role: Role = Role.FUNCTION

    weights: tuple[float, ...] | None = None
    """It is the sum of its arguments, each times its weight."""
    factor: int = 0
    """One if it is the first argument times the second, minus one if divided by it; linear in the first."""
    folds: str | None = None
    """The operation that puts one element after another together, for folds and scans."""
    flattens: bool = False
    """Whether it takes all axes as one if none is named."""
    joins: bool = False
    """Whether it takes a list of arrays."""
    reshapes: bool = False
    """Whether it is told the shape of its result."""
    averages: bool = False
    """Whether the sum is divided by how many there are."""

    steps: bool = False
    """Whether it is constant between places at which it jumps."""
    continuous: bool = False
    """Whether continuous arguments give a continuous result."""
    chooses: int | None = None
    """The result is one of the arguments from this one on."""
    extreme: int = 0
    """One if it is the largest of its arguments or elements, minus one if it is the smallest."""
    ranks: bool = False
    """Whether it is an element of a rank, something between two neighbours in rank, or the range of all."""
    neutral: float | None = None
    """What changes nothing, put together with anything by it."""
    turns: tuple[tuple[float, ...] | None, ...] = ()
    """For each argument, the others fixed: between which values of it the result is monotone, if that is known."""
    jumps: Callable[..., Any] | None = None
    """A function of the arguments whose value changes where this operation jumps, if it does besides at its turns."""
    domain: Interval = REALS
    """Where it has a value, if it has one argument."""
    codomain: Interval = REALS
    """Between which numbers its results lie, whatever the arguments."""
    positive: bool | None = None
    """Whether results are positive: always (True), or if all arguments are (False)."""

    preimage: Callable[[float, float], Interval] | None = None
    """Between which numbers the argument lies, given the value of a rounded number and the unit it is rounded to."""
    decimals: bool = False
    """Whether it rounds to a number of decimals, which its function knows."""

    signs: frozenset[int] = frozenset()
    """A comparison holds if the left side minus the right one has one of these signs."""
    connective: Connective | None = None
    """How a condition is put together of others."""
    truth: bool = False
    """Whether its arguments count as true or false."""

    derivative: Callable[[Sequence[Array], Sequence[Array]], Array] | None = None
    """The slope of the result, given the arguments and their slopes."""
    inverse: Callable[..., tuple[Any, Any]] | None = None
    """Where it has a value, and the logarithm of the slope of that; constant arguments come after the value."""
    inverse_in: int = 0
    """The argument that the inverse returns."""

    size: SizeRule | None = None
    """How large whole numbers get, given how large those of the arguments are."""
    grows: bool = False
    """Whether they may become larger than all arguments, so that 64 bits may not hold them."""
    keeps_whole: bool = False
    """Whether whole numbers give a whole number in Python."""
    divides: bool = False
    """Whether Python fails if the second argument is zero."""
    takes_bools: bool = False
    """Whether Python takes truth values as they are, and not as the numbers zero and one."""
    on_bools: str | None = None
    """The operation that it is on truth values, in NumPy."""

    error: ErrorRule = error_of_unknown
    """How far rounding moves the result, if it is element by element."""
    array_error: ArrayErrorRule = error_of_array
    """The same of other forms."""

    python: str = ""
    """Its name in the `operator` module, if strings may have it or sums are made of it."""
    math: str = ""
    """Its name in the `math` module."""
    numpy: str = ""
    """Where the function is found, if not in NumPy under its name."""
    pytensor: BackendName = None
    """Its name in `pytensor.tensor`."""
    jax: BackendName = ""
    """Its name in `jax`, if it is not that of NumPy in `jax.numpy`."""

    @property
    def adds_up(self) -> bool:
        """Whether it is the sum of elements, or their mean."""
        return self.scope is Scope.FOLD and self.role is Role.SUM

    @property
    def totals(self) -> bool:
        """Whether it is the sum of elements as they are."""
        return self.adds_up and not self.averages

    @property
    def is_partial(self) -> bool:
        """Whether it has no value for some numbers."""
        return self.domain != REALS

    @property
    def direction(self) -> int:
        """One if a comparison says that the left side is larger, minus one if smaller, zero if it is none of these."""
        return sum(self.signs) if len(self.signs & {-1, 1}) == 1 else 0

    @property
    def function(self) -> Callable[..., Any]:
        """The function on arrays."""
        return _found(self.numpy or f"numpy.{self.name}")

    def slope(self, arguments: Sequence[Array], slopes: Sequence[Array]) -> Array | None:
        """Return the slope of the result, given the arguments and their slopes; None if it is not known."""
        if self.steps:
            return np.zeros_like(slopes[0])
        if self.weights is not None:
            return np.asarray(sum(weight * slope for weight, slope in zip(self.weights, slopes, strict=True)))
        return None if self.derivative is None else np.asarray(self.derivative(arguments, slopes))

    def image(self, *intervals: Interval) -> Interval:
        """Return between which numbers results lie if each argument lies in its interval.

        Between turning points an operation is monotone in each argument, so that its extremes lie at the corners.
        """
        chosen = self.chooses or 0
        if self.role is Role.CHOICE:
            return min(low for low, _ in intervals[chosen:]), max(high for _, high in intervals[chosen:])
        turns = [places for places in self.turns if places is not None]
        if len(turns) != len(intervals):
            return self.codomain
        corners = list(product(*(self._places(*pair) for pair in zip(intervals, turns, strict=True))))
        with np.errstate(all="ignore"):
            values = self.function(*np.array(corners, float).T).tolist()
        if self.factor == 1:
            values = [0.0 if value != value else value for value in values]  # infinite ends are never reached
        elif self.weights is not None:
            values = [value for value in values if value == value]
        if not values or any(value != value for value in values):
            return self.codomain
        return max(self.codomain[0], min(values)), min(self.codomain[1], max(values))

    def _places(self, interval: Interval, turns: Sequence[float]) -> Iterator[float]:
        """Go through the ends of an interval and the turning points inside, at zero from both sides."""
        low, high = max(interval[0], self.domain[0]), min(interval[1], self.domain[1])
        yield low + 0.0  # never minus zero
        yield -0.0 if high == 0 > low else high
        for turn in turns:
            if low < turn < high:
                yield turn
                yield -turn if turn == 0 else turn


@cache
def _found(path: str) -> Callable[..., Any]:
    module, _, name = path.rpartition(".")
    found: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return found


_ADD = Traits(
    name="add", role=Role.SUM, weights=(1.0, 1.0), turns=((), ()), continuous=True, positive=False, keeps_whole=True,
    neutral=0, size=lambda s, *_: s[0] + s[1], grows=True, error=error_of_sum, on_bools="logical_or",
    python="add", pytensor="add",
)  # fmt: skip
_NEGATIVE = Traits(
    name="negative", role=Role.SUM, weights=(-1.0,), turns=((),), continuous=True, keeps_whole=True,
    size=unchanged, grows=True, error=error_kept, python="neg", pytensor="neg",
)  # fmt: skip
_ABSOLUTE = Traits(
    name="absolute", role=Role.ORDER, turns=((0.0,),), continuous=True, codomain=(0.0, math.inf), keeps_whole=True,
    derivative=lambda u, du: np.sign(u[0]) * du[0],
    size=unchanged, grows=True, error=error_kept, pytensor="abs",
)  # fmt: skip


def _slope_of_power(u: Sequence[Array], du: Sequence[Array]) -> Array:
    rising = np.where(du[1] != 0, np.log(np.where(du[1] != 0, u[0], 1.0)) * du[1], 0.0)
    return np.asarray(u[1] * np.power(u[0], u[1] - 1) * du[0] + np.power(u[0], u[1]) * rising)


def _root(value: Any, exponent: float) -> tuple[Any, Any]:
    return np.exp(np.log(value) / exponent), np.log(value) * (1 / exponent - 1) - math.log(abs(exponent))


_POWER = Traits(
    name="power", role=Role.POWER, turns=((0.0,), ()), positive=False, keeps_whole=True,
    derivative=_slope_of_power, inverse=_root,
    size=lambda s, *_: power_of(*s), grows=True, error=error_of_power, pytensor="pow",
)  # fmt: skip


_OF_FLOATS: dict[str, Any] = {"size": None, "grows": False, "keeps_whole": False}


def _rounding(name: str, **known: Any) -> Traits:
    return Traits(name=name, steps=True, turns=((),), error=no_error, **known)


ARITHMETIC = (
    _ADD,
    replace(
        _ADD, name="subtract", weights=(1.0, -1.0), positive=None, error=error_of_difference,
        neutral=None, on_bools=None, python="sub", pytensor="sub",
    ),
    _NEGATIVE,
    replace(_NEGATIVE, name="positive", weights=(1.0,), grows=False, python="pos", pytensor=lambda pt, x: x),
    Traits(
        name="multiply", role=Role.PRODUCT, factor=1, neutral=1, turns=((), ()), positive=False, keeps_whole=True,
        derivative=lambda u, du: du[0] * u[1] + u[0] * du[1],
        size=lambda s, *_: s[0] * s[1], grows=True, error=error_of_product, on_bools="logical_and",
        python="mul", pytensor="mul",
    ),
    Traits(
        name="true_divide", role=Role.PRODUCT, factor=-1, turns=((), (0.0,)), positive=False, divides=True,
        derivative=lambda u, du: (du[0] - u[0] / u[1] * du[1]) / u[1], inverse_in=1,
        inverse=lambda v, c: (c / v, math.log(abs(c)) - 2 * np.log(np.abs(v))),
        error=error_of_ratio, python="truediv", pytensor="true_div",
    ),
    Traits(
        name="floor_divide", steps=True, turns=((), None), divides=True, keeps_whole=True,
        error=no_error, pytensor="floor_div",
    ),
    Traits(
        name="remainder", turns=((), None), jumps=np.floor_divide, divides=True, keeps_whole=True,
        derivative=lambda u, du: du[0] - np.floor_divide(u[0], u[1]) * du[1], python="mod", pytensor="mod",
    ),
    _POWER,
    replace(_POWER, name="pow", **_OF_FLOATS, math="pow", numpy="numpy.power", jax="numpy.power"),
    replace(_POWER, name="float_power", **_OF_FLOATS, jax="numpy.power"),
    Traits(
        name="square", turns=((0.0,),), continuous=True, codomain=(0.0, math.inf),
        derivative=lambda u, du: 2 * u[0] * du[0],
        size=lambda s, *_: s[0] ** 2, grows=True, error=error_of_square, pytensor="sqr",
    ),
    Traits(
        name="reciprocal", turns=((0.0,),), continuous=True, derivative=lambda u, du: -1 / u[0] ** 2 * du[0],
        inverse=lambda v: (1.0 / v, -2 * np.log(np.abs(v))), pytensor="reciprocal",
    ),
    Traits(name="left_shift", size=lambda s, *_: s[0] << min(s[1], 64), grows=True),
    Traits(name="copysign", error=error_kept),
    _ABSOLUTE,
    replace(_ABSOLUTE, name="fabs", **_OF_FLOATS, math="fabs", jax="numpy.absolute", continuous=False),
    _rounding("sign", role=Role.ORDER, codomain=(-1.0, 1.0), pytensor="sign"),
    _rounding("floor", preimage=lambda value, unit: (value, value + unit), pytensor="floor"),
    _rounding("ceil", preimage=lambda value, unit: (value - unit, value), pytensor="ceil"),
    _rounding(
        "trunc", preimage=lambda value, unit: (value - (value <= 0), value + (value >= 0)), pytensor="trunc",
    ),
    _rounding(
        "rint", preimage=lambda value, unit: (value - unit / 2, value + unit / 2),
        pytensor=lambda pt, x: pt.round(x, mode="half_to_even"),
    ),
    _rounding("round", preimage=lambda value, unit: (value - unit / 2, value + unit / 2), decimals=True),
)  # fmt: skip
"""The rows."""


def _comparison(name: str, signs: set[int], python: str, pytensor: str, **known: Any) -> Traits:
    return Traits(
        name=name, role=Role.COMPARISON, signs=frozenset(signs), codomain=(0.0, 1.0),
        python=python, pytensor=pytensor, **known,
    )  # fmt: skip


def _logic(name: str, connective: Connective | None, pytensor: BackendName, **known: Any) -> Traits:
    return Traits(
        name=name, role=Role.LOGIC, connective=connective, takes_bools=True, pytensor=pytensor, **known
    )  # fmt: skip


_MAXIMUM = Traits(
    name="maximum", role=Role.ORDER, extreme=1, neutral=-math.inf, chooses=0, turns=((), ()), keeps_whole=True,
    derivative=lambda u, du: np.where(u[0] >= u[1], *du),
    size=unchanged, error=lambda a, e, r: np.maximum(*e), on_bools="logical_or", pytensor="maximum",
)  # fmt: skip
_MINIMUM = replace(
    _MAXIMUM, name="minimum", extreme=-1, neutral=math.inf, derivative=lambda u, du: np.where(u[0] <= u[1], *du),
    on_bools="logical_and", pytensor="minimum",
)  # fmt: skip
_NOT = _logic("bitwise_not", Connective.NOT, "invert", on_bools="logical_not")

CONDITIONS = (
    _comparison("less", {-1}, "lt", "lt"),
    _comparison("less_equal", {-1, 0}, "le", "le"),
    _comparison("greater", {1}, "gt", "gt"),
    _comparison("greater_equal", {1, 0}, "ge", "ge"),
    _comparison("equal", {0}, "eq", "eq", takes_bools=True),
    _comparison("not_equal", {-1, 1}, "ne", "neq", takes_bools=True),
    _logic("logical_and", Connective.AND, "and_", truth=True, neutral=True),
    _logic("logical_or", Connective.OR, "or_", truth=True, neutral=False),
    _logic("logical_not", Connective.NOT, "invert", truth=True),
    _logic("logical_xor", None, None, truth=True, on_bools="not_equal"),
    _logic("bitwise_and", Connective.AND, "and_", on_bools="logical_and"),
    _logic("bitwise_or", Connective.OR, "or_", on_bools="logical_or"),
    _logic("bitwise_xor", None, "xor", on_bools="not_equal"),
    _NOT,
    replace(_NOT, name="invert"),
    Traits(name="isnan", pytensor="isnan"),
    Traits(name="isinf", pytensor="isinf"),
    Traits(name="isfinite", pytensor=lambda pt, x: pt.invert(pt.or_(pt.isnan(x), pt.isinf(x)))),
    Traits(
        name="where", role=Role.CHOICE, chooses=1, takes_bools=True, size=unchanged,
        derivative=lambda u, du: np.where(u[0] != 0, du[1], du[2]),
        error=lambda a, e, r: np.where(a[0], e[1], e[2]), pytensor="where",
    ),
    _MAXIMUM,
    _MINIMUM,
    replace(_MAXIMUM, name="fmax", size=None, keeps_whole=False, on_bools=None),
    replace(_MINIMUM, name="fmin", size=None, keeps_whole=False, on_bools=None),
)  # fmt: skip
"""The rows."""


_LOG_2, _LOG_10 = math.log(2), math.log(10)


def _monotone(name: str, derivative: Callable[[Array], Array], **known: Any) -> Traits:
    return Traits(**{
        "name": name, "turns": ((),), "continuous": True, "derivative": lambda u, du: derivative(u[0]) * du[0],
        "pytensor": name, **known,
    })  # fmt: skip


def _exponential(name: str, derivative: Callable[[Array], Array], **known: Any) -> Traits:
    return _monotone(name, derivative, error=lambda a, e, r: (np.abs(r) + 1) * e[0] + 2 * UNIT * np.abs(r), **known)


def _logarithm(name: str, derivative: Callable[[Array], Array], start: float = 0.0, **known: Any) -> Traits:
    return _monotone(
        name, derivative, domain=(start, math.inf), **known,
        error=lambda a, e, r: 1.5 * e[0] / np.abs(a[0] - start) + 2 * UNIT * np.abs(r),
    )  # fmt: skip


ELEMENTARY = (
    _exponential(
        "exp", np.exp, math="exp", codomain=(0.0, math.inf), positive=True, inverse=lambda v: (np.log(v), -np.log(v)),
    ),
    _exponential(
        "exp2", lambda u: np.exp2(u) * np.log(2), codomain=(0.0, math.inf), positive=True,
        inverse=lambda v: (np.log2(v), -np.log(v) - math.log(_LOG_2)),
    ),
    _exponential(
        "expm1", np.exp, math="expm1", codomain=(-1.0, math.inf), inverse=lambda v: (np.log1p(v), -np.log1p(v)),
    ),
    _logarithm("log", np.reciprocal, math="log", inverse=lambda v: (np.exp(v), v)),
    _logarithm(
        "log2", lambda u: 1 / (u * np.log(2)), math="log2",
        inverse=lambda v: (np.exp2(v), v * _LOG_2 + math.log(_LOG_2)),
    ),
    _logarithm(
        "log10", lambda u: 1 / (u * np.log(10)),
        math="log10", inverse=lambda v: (np.exp(v * _LOG_10), v * _LOG_10 + math.log(_LOG_10)),
    ),
    _logarithm(
        "log1p", lambda u: 1 / (1 + u), math="log1p", start=-1.0, inverse=lambda v: (np.expm1(v), v),
    ),
    _monotone(
        "sqrt", lambda u: 0.5 / np.sqrt(u), math="sqrt", domain=(0.0, math.inf), codomain=(0.0, math.inf),
        positive=False, inverse=lambda v: (v * v, np.log(2 * v)), error=error_of_root,
    ),
    _monotone(
        "cbrt", lambda u: 1 / (3 * np.cbrt(u) ** 2), inverse=lambda v: (v * v * v, np.log(3 * v * v)),
        pytensor=lambda pt, x: pt.sign(x) * pt.abs(x) ** (1 / 3),
    ),
    _monotone(
        "arctan", lambda u: 1 / (1 + u**2), codomain=(-math.pi / 2, math.pi / 2),
        inverse=lambda v: (np.tan(v), -2 * np.log(np.abs(np.cos(v)))),
    ),
    _monotone("sinh", np.cosh, inverse=lambda v: (np.arcsinh(v), -0.5 * np.log1p(v * v))),
    _monotone(
        "tanh", lambda u: 1 / np.cosh(u) ** 2, math="tanh", codomain=(-1.0, 1.0),
        inverse=lambda v: (0.5 * (np.log1p(v) - np.log1p(-v)), -np.log1p(-v * v)),
    ),
    _monotone(
        "arcsinh", lambda u: 1 / np.sqrt(1 + u**2), continuous=False,
        inverse=lambda v: (np.sinh(v), np.log(np.cosh(v))),
    ),
    _monotone(
        "expit", lambda u: 1 / (2 + np.exp(u) + np.exp(-u)), codomain=(0.0, 1.0), positive=True,
        inverse=lambda v: (np.log(v) - np.log1p(-v), -np.log(v) - np.log1p(-v)),
        numpy="scipy.special.expit", pytensor="sigmoid", jax="nn.sigmoid",
    ),
    _monotone("cosh", np.sinh, continuous=False, turns=((0.0,),), codomain=(1.0, math.inf)),
    Traits(name="sin", math="sin", continuous=True, codomain=(-1.0, 1.0), pytensor="sin"),
    Traits(name="cos", math="cos", continuous=True, codomain=(-1.0, 1.0), pytensor="cos"),
    Traits(name="tan", math="tan", continuous=True, pytensor="tan"),
    Traits(name="arcsin", domain=(-1.0, 1.0), codomain=(-math.pi / 2, math.pi / 2), pytensor="arcsin"),
    Traits(name="arccos", domain=(-1.0, 1.0), codomain=(0.0, math.pi), pytensor="arccos"),
    Traits(name="arctan2", codomain=(-math.pi, math.pi), pytensor="arctan2"),
    Traits(name="hypot", math="hypot", codomain=(0.0, math.inf), pytensor=lambda pt, x, y: pt.sqrt(x * x + y * y)),
    Traits(name="logaddexp", pytensor="logaddexp"),
)  # fmt: skip
"""The rows."""


def _fold(name: str, folds: str | None = None, **known: Any) -> Traits:
    return Traits(**{"name": name, "scope": Scope.FOLD, "folds": folds, "pytensor": name, **known})


def _array(name: str, **known: Any) -> Traits:
    return Traits(**{"name": name, "scope": Scope.ARRAY, **known})


def _move(name: str, **known: Any) -> Traits:
    return _array(name, **{"role": Role.MOVE, "pytensor": name, **known})


def _ordered(name: str, **known: Any) -> Traits:
    return _fold(name, role=Role.ORDER, chooses=0, **{"array_error": error_of_picked, **known})


def _sorted_in_turn(pt: Any, *keys: Any) -> Any:
    """Sort by the last key first, and then stably by those before it."""
    *others, last = keys
    order = pt.argsort(last, kind="stable")
    for key in reversed(others):
        order = order[pt.argsort(key[order], kind="stable")]
    return order


ARRAYS = (
    _fold(
        "sum", "add", role=Role.SUM, continuous=True, size=added_up, grows=True,
        array_error=error_of_total,
    ),
    _fold("mean", "add", role=Role.SUM, averages=True, continuous=True, array_error=error_of_mean),
    _fold("prod", "multiply", size=lambda s, count, _: power_of(s[0], count), grows=True),
    _ordered("min", folds="minimum", extreme=-1, ranks=True),
    _ordered("max", folds="maximum", extreme=1, ranks=True),
    _ordered("median", ranks=True, array_error=error_of_median),
    _fold("any", "logical_or", role=Role.LOGIC, connective=Connective.OR, truth=True),
    _fold("all", "logical_and", role=Role.LOGIC, connective=Connective.AND, truth=True),
    _fold("std", continuous=True),
    _fold("var", continuous=True),
    _fold(
        "ptp", ranks=True, size=differenced, grows=True,
        pytensor=lambda pt, array, axis, **options: pt.max(array, axis, **options) - pt.min(array, axis, **options),
    ),
    _fold("nansum", size=added_up, grows=True, pytensor=None),
    _fold("nanmean", pytensor=None),
    _array("argmin", flattens=True, role=Role.ORDER, steps=True, pytensor="argmin"),
    _array("argmax", flattens=True, role=Role.ORDER, steps=True, pytensor="argmax"),
    _array(
        "argsort", steps=True, pytensor=_sorted_in_turn,
        jax=lambda jax, *keys: jax.numpy.lexsort(tuple(reversed(keys))),
    ),
    _array("sort", role=Role.ORDER, chooses=0, array_error=error_of_picked, pytensor="sort"),
    _array("quantile", ranks=True, array_error=error_of_quantile),
    _array("percentile", ranks=True, array_error=error_of_quantile),
    _array(
        "cumsum", scope=Scope.SCAN, flattens=True, folds="add", role=Role.SUM, continuous=True,
        size=added_up, grows=True, array_error=error_of_scan, pytensor="cumsum",
    ),
    _array(
        "cumprod", scope=Scope.SCAN, flattens=True, folds="multiply", grows=True,
        size=lambda s, count, _: power_of(s[0], count), pytensor="cumprod",
    ),
    _array("diff", role=Role.SUM, size=differenced, grows=True, pytensor="diff"),
    _array(
        "dot", role=Role.PRODUCT, continuous=True, size=lambda s, count, _: s[0] * s[1] * count, grows=True,
        pytensor="dot",
    ),
    _move("concatenate", joins=True, chooses=0),
    _move("stack", joins=True),
    _move("reshape", reshapes=True, pytensor=lambda pt, array, shape: pt.reshape(array, shape)),
    _move("transpose"),
    Traits(name="Index", scope=Scope.LOOKUP, role=Role.MOVE),
    Traits(name="Stack", scope=Scope.LOOKUP, role=Role.MOVE),
    Traits(name="Gather", scope=Scope.LOOKUP),
    Traits(name="Lookup", scope=Scope.LOOKUP),
    Traits(name="Draw", scope=Scope.DRAW),
)  # fmt: skip
"""The rows; of operations that are no functions of NumPy under the names of their classes."""


OPERATIONS: dict[str, Traits] = {row.name: row for row in (*ARITHMETIC, *ELEMENTARY, *CONDITIONS, *ARRAYS)}
"""Everything that is known, one row for each operation."""


def traits_of(name: str) -> Traits:
    """Return what is known of an operation; of one that is not in the table that is its name."""
    return OPERATIONS.get(name) or _unknown(name)


@lru_cache(maxsize=1024)
def _unknown(name: str) -> Traits:
    return Traits(name=name)
