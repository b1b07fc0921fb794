"""Arrays of which only some elements are there: `a[a > 60]`, and lists of random length as NumPy sees them."""

import operator
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from privug.model.operations import constant
from privug.model.plates import fold
from privug.model.traits import traits_of
from privug.model.variable import RandomVariable, as_element, as_node, harmless, refuse, stack_values
from privug.program.logic import where
from privug.program.traced.iteration import Stream, segments
from privug.program.traced.masks import Mask, Masked, MaskedList, either, fail_where, negated
from privug.program.traced.slots import term_where

_LARGEST = int(np.iinfo(np.int64).max)


class Selection(Masked):
    """The elements of an array at which a condition holds.

    What is computed of it is computed of the whole array, with what changes nothing in the place of the others.
    """

    __array_priority__ = 1000

    def __init__(self, values: RandomVariable, mask: RandomVariable) -> None:
        self.values = values
        self.mask = mask

    # As a container.
    def pairs(self) -> list[tuple[Any, Mask]]:
        return list(zip(self.values, self.mask.tolist(), strict=True))

    def some_there(self) -> Mask:
        return refuse("the truth of an array")

    def plain(self) -> Any:
        return refuse("an array of random length")

    @property
    def is_certain(self) -> bool:
        return False

    def __iter__(self) -> Any:
        return iter(self.plain())

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, Selection) and key.mask is self.mask and key.values.node.dtype == bool:
            return Selection(self.values, self.mask & key.values)
        if isinstance(key, RandomVariable | Selection):
            refuse("an array of random length at random places")
        found = MaskedList.of_pairs(self.pairs())[key]
        return selection_of(found) if isinstance(key, slice) else found

    def tolist(self) -> MaskedList:
        """Return the elements as a list of random length."""
        return MaskedList.of_pairs(zip(self.values.tolist(), self.mask.tolist(), strict=True))

    @property
    def size(self) -> RandomVariable:
        """How many elements are there."""
        return self.mask.sum()

    @property
    def shape(self) -> tuple[Any, ...]:
        """How many elements are there, as arrays say it."""
        return (self.size,)

    # Element by element.
    def _applied(self, function: Callable[..., Any], *operands: Any) -> "Selection":
        parts = []
        for operand in operands:
            if isinstance(operand, Selection) and operand.mask is not self.mask:
                refuse("two arrays of random length together")
            if isinstance(operand, np.ndarray) or (isinstance(operand, RandomVariable) and operand.shape):
                refuse("an array of random length beside another array")
            parts.append(operand.values if isinstance(operand, Selection) else operand)
        return Selection(function(*parts), self.mask)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        if method != "__call__" or options:
            refuse(f"np.{ufunc.__name__}.{method}")
        return self._applied(ufunc, *inputs)

    def __array_function__(self, function: Any, types: Any, arguments: Any, options: Any) -> Any:
        method = _METHODS.get(function)
        if arguments[0] is not self or method is None:
            refuse(f"np.{function.__name__} of an array of random length")
        return getattr(self, method.__name__)(*arguments[1:], **options)

    # All elements together.
    def filled(self, value: Any) -> RandomVariable:
        """Return the whole array with a value where nothing is there."""
        filled: Any = np.where(self.mask, self.values, value)
        assert isinstance(filled, RandomVariable)
        return filled

    def sum(self) -> RandomVariable:
        return self.filled(0).sum()

    def mean(self) -> Any:
        return self.sum() / self._divisor()

    average = mean

    def _divisor(self, ddof: int = 0) -> RandomVariable:
        """Return how many elements are there, less some; one where this code does not run."""
        return RandomVariable(harmless((self.size - ddof).node, 1))

    def var(self, ddof: int = 0) -> Any:
        apart = self.values - self.mean()
        return Selection(apart * apart, self.mask).sum() / self._divisor(ddof)

    def std(self, ddof: int = 0) -> Any:
        return np.sqrt(self.var(ddof=ddof))

    def min(self) -> Any:
        return self._extreme(np.min, 1)

    def max(self) -> Any:
        return self._extreme(np.max, -1)

    def ptp(self) -> Any:
        return self.max() - self.min()

    def _extreme(self, function: Callable[..., Any], sign: int) -> Any:
        self.need(1, ValueError("zero-size array to reduction operation which has no identity"))
        kind = self.values.node.dtype.kind
        if self.values.node.levels is not None or kind == "b":
            refuse("an extreme of anything but numbers in an array of random length")
        return function(self.filled(sign * (_LARGEST if kind == "i" else np.inf)))

    def need(self, least: int, error: Exception) -> None:
        """Let the program fail where fewer elements are there."""
        fail_where(self.size < least, error)

    def any(self) -> Any:
        return (self.mask & self._truths()).any()

    def all(self) -> Any:
        return (~self.mask | self._truths()).all()

    def count_nonzero(self) -> Any:
        return (self.mask & self._truths()).sum()

    def _truths(self) -> RandomVariable:
        return self.values if self.values.node.dtype == bool else self.values != 0

    def median(self) -> Any:
        return self.quantile(0.5)

    def percentile(self, q: Any) -> Any:
        return self.quantile(q / 100)

    def quantile(self, q: Any) -> Any:
        """Return the number below which a share of the others lie, between two of them as NumPy does by default."""
        if not isinstance(q, int | float):
            refuse("several quantiles of an array of random length")
        ordered, size = np.sort(self.filled(np.inf)), self.size
        there = size > 0
        place = (size - 1) * float(q)
        below = np.where(there, np.floor(place), 0.0).astype(int)
        above = np.minimum(below + 1, np.maximum(size - 1, 0))
        low, high = ordered[below], ordered[above]
        return np.where(there, low + (high - low) * (place - below), np.nan)

    def foremost(self, count: int, largest: bool, certain: bool) -> MaskedList:
        """Return some of the largest or smallest elements in order; fewer where there are not so many."""
        ordered = np.sort(self.values if certain else self.filled(-np.inf if largest else np.inf))
        items, size = list(ordered)[:: -1 if largest else 1][: max(count, 0)], self.size
        return MaskedList.of_pairs((item, certain or size > place) for place, item in enumerate(items))


_METHODS: dict[Any, Callable[..., Any]] = {
    np.sum: Selection.sum, np.mean: Selection.mean, np.average: Selection.mean, np.var: Selection.var,
    np.std: Selection.std, np.min: Selection.min, np.max: Selection.max, np.ptp: Selection.ptp, np.any: Selection.any,
    np.all: Selection.all, np.count_nonzero: Selection.count_nonzero, np.median: Selection.median,
    np.percentile: Selection.percentile, np.quantile: Selection.quantile,
}  # fmt: skip
"""The functions of NumPy that such arrays have as methods."""


def _operator(function: Callable[..., Any]) -> tuple[Any, Any]:
    def first(self: Selection, other: Any) -> Selection:
        return self._applied(function, self, other)

    def second(self: Selection, other: Any) -> Selection:
        return self._applied(function, other, self)

    return first, second


def _way(function: Callable[[Any], Any]) -> Any:
    return lambda self: self._applied(function, self)


_BINARY = (
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow,
    operator.and_, operator.or_, operator.xor,
)  # fmt: skip
for _function in _BINARY:
    _first, _second = _operator(_function)
    setattr(Selection, f"__{_function.__name__.strip('_')}__", _first)
    setattr(Selection, f"__r{_function.__name__.strip('_')}__", _second)
for _function in (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne):
    setattr(Selection, f"__{_function.__name__}__", _operator(_function)[0])
for _single in (operator.neg, operator.abs, operator.invert):
    setattr(Selection, f"__{_single.__name__}__", _way(_single))


def selected(array: Any, mask: RandomVariable) -> Any:
    """Return `array[mask]` for a mask of truth values, as many as there are elements."""
    values = array if isinstance(array, RandomVariable) else RandomVariable(constant(array))
    if values.shape != mask.shape or len(values.shape) != 1:
        refuse("a mask of another shape than the array")
    return Selection(values, mask)


def is_mask(key: Any) -> bool:
    """Say whether a subscript is an array of random truth values."""
    return isinstance(key, RandomVariable) and bool(key.shape) and key.node.dtype == bool


class ListSelection(Selection):
    """A list of random length as an array; what can be folded over many rows is, the rest goes by whole columns."""

    def __init__(self, items: Any) -> None:
        self._items = items

    @cached_property
    def _arrays(self) -> tuple[RandomVariable, RandomVariable]:
        values, masks = [], []
        for item, there, plate in segments(self._items):
            present = RandomVariable(as_node(there))
            if plate is None:
                values.append(RandomVariable(stack_values([item])))
                masks.append(RandomVariable(stack_values([present])))
            else:
                values.append(fold(plate, "map", item))
                masks.append(fold(plate, "map", present))
        return (_joined(values), _joined(masks)) if values else refuse("a function of a list of nothing")

    @property
    def values(self) -> RandomVariable:  # type: ignore[override]
        """All elements that may be there."""
        return self._arrays[0]

    @property
    def mask(self) -> RandomVariable:  # type: ignore[override]
        """Which of them are."""
        return self._arrays[1]

    @property
    def size(self) -> Any:
        return self._total(lambda item, there: there)

    def sum(self) -> Any:
        return self._total(lambda item, there: item if there is True else term_where(there, item))

    def var(self, ddof: int = 0) -> Any:
        if not any(plate is not None and plate.is_ragged for _, _, plate in segments(self._items)):
            return super().var(ddof)
        middle = self.mean()

        def squared(item: Any, there: Mask) -> Any:
            square = (item - middle) * (item - middle)
            return square if there is True else term_where(there, square)

        return self._total(squared) / self._divisor(ddof)

    def _total(self, term: Callable[[Any, Mask], Any]) -> Any:
        total: Any = RandomVariable(constant(0))
        for item, there, plate in segments(self._items):
            one = term(item, there)
            total = total + (one if plate is None else fold(plate, "sum", one))
        return as_element(total.node)

    def _extreme(self, function: Callable[..., Any], sign: int) -> Any:
        best, seen = extreme_of("min" if sign > 0 else "max", self._items)
        fail_where(negated(seen), ValueError("zero-size array to reduction operation which has no identity"))
        return best


def extreme_of(how: str, items: Any) -> tuple[Any, Mask]:
    """Return the smallest or largest of numbers, of which some stand for many, and whether there is any."""
    better = np.maximum if traits_of(how).extreme > 0 else np.minimum
    best: Any = None
    seen: Mask = False
    for item, there, plate in segments(items):
        if not isinstance(item, RandomVariable | int | float):
            refuse("an extreme of something else than numbers, with many rows")
        term = item if there is True else where(there, item, _last(how, item))
        value = term if plate is None else fold(plate, how, term)
        best = value if best is None else better(best, value)
        seen = either(seen, there if plate is None else fold(plate, "any", there))
    return best, seen


def _last(how: str, item: Any) -> float | int:
    """Return a number that is chosen after all others."""
    sign = -1 if traits_of(how).extreme > 0 else 1
    whole = isinstance(item, int) or (isinstance(item, RandomVariable) and item.node.dtype.kind == "i")
    return sign * (_LARGEST if whole else np.inf)


def selection_of(items: Any) -> Selection:
    """Return a list of random length as an array of which some elements are there."""
    if isinstance(items, MaskedList):
        return ListSelection(items.copy())
    return ListSelection(items.taken() if isinstance(items, Stream) else items)


def _joined(parts: list[Any]) -> RandomVariable:
    joined: Any = parts[0] if len(parts) == 1 else np.concatenate(parts)
    assert isinstance(joined, RandomVariable)
    return joined
