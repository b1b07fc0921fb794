"""How far rounding moves the result of one operation, given how far it moved the arguments (running error analysis)."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

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
