"""Built-in and library functions as rewritten programs call them: the same on plain values, nodes otherwise."""

import bisect
import builtins
import functools
import heapq
import math
import operator
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from privug.model.categories import map_levels, map_pairs
from privug.model.failures import diversions, fails, fails_where, told
from privug.model.maybe import Maybe, where_present
from privug.model.node import Node
from privug.model.operations import Elementwise, Stack, elementwise, fail_samples
from privug.model.plated_tables import PlatedTable, RaggedTable
from privug.model.plates import Plate, fold
from privug.model.traits import OPERATIONS, Role, Traits, traits_of
from privug.model.values import number_types
from privug.model.variable import RandomVariable, as_node, as_python, path_condition, refuse, stack_values
from privug.program.logic import where
from privug.program.traced import opaque
from privug.program.traced.dictionaries import MaskedDict, MaskedSet
from privug.program.traced.expressions import equal
from privug.program.traced.iteration import (
    Segment,
    Stream,
    any_item,
    collected,
    enumerated,
    has_plates,
    holds_random,
    listed,
    segments,
)
from privug.program.traced.keys import possible_values
from privug.program.traced.masks import (
    UNDEFINED,
    CallOnly,
    Mask,
    Masked,
    MaskedList,
    Standing,
    any_of,
    both,
    counted,
    either,
    fail_where,
    how_many,
    negated,
    select,
    truth,
    under,
)
from privug.program.traced.opaque import Text
from privug.program.traced.selections import Selection, selection_of
from privug.program.traced.slots import term_where
from privug.program.traced.sorting import (
    Call,
    extreme,
    foremost,
    mode,
    most_common,
    sort_in_place,
    sorted_items,
)


def checked_math(traits: Traits) -> Callable[..., Any]:
    """A function of the math module: an error of its domain is an error on that input, as in Python."""
    array_function = traits.function

    def evaluate(*arrays: Any) -> Any:
        arrays = tuple(array.astype(float) for array in arrays)
        result = array_function(*arrays)
        finite = functools.reduce(np.logical_and, map(np.isfinite, arrays))
        beyond = np.isinf(result) & finite  # at the end of a logarithm's domain, or by the size of the result
        wrong = np.isnan(result) & ~functools.reduce(np.logical_or, map(np.isnan, arrays))
        at_pole = traits.is_partial or (traits.role is Role.POWER and arrays[0] == 0)
        fail_samples(wrong | (beyond & at_pole), ValueError("math domain error"))
        fail_samples(beyond, OverflowError("math range error"))
        return result

    operation = Elementwise(traits.name, evaluate)

    def lifted(*values: Any) -> Any:
        values = tuple(RandomVariable(where_present(as_node(value))) for value in values)
        _tell_of_domain(operation, values)
        path = path_condition.get()
        # Where this code does not run, any argument will do: one at which nothing goes wrong.
        safe = [value if path is None else where(path, value, 1.0) for value in values]
        made = told(elementwise(operation, [as_node(value) for value in safe]))
        made.numpy = False  # the math module gives Python's floats, whatever goes in
        return RandomVariable(made)

    return lifted


def _tell_of_domain(operation: Elementwise, values: Sequence[RandomVariable]) -> None:
    """Tell for which arguments a function of the math module fails."""
    traits, error = operation.traits, ValueError("math domain error")
    if traits.is_partial:
        (value,), start = values, traits.domain[0]
        with np.errstate(all="ignore"):
            included = np.isfinite(traits.function(start))
        fails_where(lambda: (value < start if included else value <= start).node, error)
        return
    for kind in (error, OverflowError("math range error")):
        fails(operation, [value.node for value in values], kind)


def logarithm(value: Any, base: Any = math.e) -> Any:
    """Return a logarithm, as `math.log` does."""
    natural = checked_math(traits_of("log"))
    return natural(value) if base == math.e else natural(value) / math.log(base)


MOST_ELEMENTS = 1024
"""How many elements of an array are asked for their values."""


def bincount(x: Any, /, weights: Any = None, minlength: int = 0) -> Any:
    """Count how often each number from zero on occurs; so many that their number is the same for all samples."""
    array, values = _values("bincount", x)
    if array.node.dtype.kind != "i" or values[0] < 0 or type(minlength) is not int or values[-1] >= minlength:
        refuse("np.bincount without a minlength that is above all values")
    if weights is None:
        return _stacked([(array == value).sum() for value in range(minlength)])
    shape = weights.shape if isinstance(weights, RandomVariable) else np.shape(weights)
    if shape != array.shape:
        refuse("np.bincount with weights of another length")
    totals = [np.where(array == value, weights, 0.0).sum() for value in range(minlength)]
    return _stacked(totals).astype(float)


def unique(ar: Any, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False) -> Any:
    """Return the values that occur, in ascending order, and how often each does."""
    if return_index or return_inverse:
        refuse("np.unique with the places of values")
    array, values = _values("unique", ar)
    counts = [(array == value).sum() for value in values]
    there = _stacked([count > 0 for count in counts])
    found = Selection(RandomVariable(as_node(np.array(values))), there)
    return (found, Selection(_stacked(counts), there)) if return_counts else found


def _values(name: str, items: Any) -> tuple[RandomVariable, list[Any]]:
    """Return an array, and the numbers that its elements may be in ascending order."""
    array = items if isinstance(items, RandomVariable) else RandomVariable(stack_values(list(items)))
    if len(array.shape) != 1 or not array.shape[0] or array.node.levels is not None:
        refuse(f"np.{name} of anything but some numbers")
    stacked = isinstance(array.node.operation, Stack)
    if stacked and array.shape[0] > MOST_ELEMENTS:
        refuse(f"np.{name} of more than {MOST_ELEMENTS:,} numbers that are not a column")
    # What is known of the values of a column holds for each of its elements.
    elements = [RandomVariable(part) for part in array.node.parents] if stacked else [array[0]]
    return array, sorted({value for element in elements for value in possible_values(element)})


def _stacked(values: list[Any]) -> RandomVariable:
    return RandomVariable(stack_values(values))


def _sum(items: Any, start: Any = 0) -> Any:
    if isinstance(items, Selection):
        return items.sum() + start
    total = start
    for item, there, plate in segments(items, ordered=False):
        term = item if there is True else term_where(there, item)
        total = total + (term if plate is None else fold(plate, "sum", term))
    return total


def _len(items: Any) -> Any:
    if isinstance(items, Standing):
        number = items.length()
        return as_python(number) if isinstance(number, RandomVariable) else number
    if isinstance(items, Selection | RaggedTable):
        return as_python(items.size)
    if isinstance(items, Masked) and not items.is_iterator and (has_plates(items) or not items.is_certain):
        held = segments(items) if has_plates(items) else ((None, mask, None) for _, mask in items.unordered())
        return sum(_number_there(mask, plate) for _, mask, plate in held)
    if isinstance(items, RandomVariable) and items.node.levels is not None and items.node.shape == ():
        return RandomVariable(map_levels(items.node, len))
    return len(items)


def _number_there(mask: Mask, plate: Plate | None) -> Any:
    if isinstance(mask, bool):
        return int(mask) * (1 if plate is None else plate.size)
    return counted(mask) if plate is None else fold(plate, "sum", mask)


def _any(items: Any) -> Any:
    return any_item(items, lambda item, there: both(there, truth(item)))


def _all(items: Any) -> Any:
    return negated(any_item(items, lambda item, there: both(there, negated(truth(item)))))


def whole_array(items: Any) -> RandomVariable:
    """Return a list of numbers, all there, as one array."""
    parts: list[Any] = []
    for item, there, plate in segments(items):
        if there is not True:
            refuse("a function of a list of random length")
        parts.append(RandomVariable(stack_values([item])) if plate is None else fold(plate, "map", item))
    joined: Any = parts[0] if len(parts) == 1 else np.concatenate(parts)
    assert isinstance(joined, RandomVariable)
    return joined


def _numbers(items: Any) -> RandomVariable | Selection:
    if has_plates(items):
        certain = isinstance(items, PlatedTable) or items.is_certain
        return whole_array(items) if certain else selection_of(items)
    pairs = listed(items)
    if any(there is not True for _, there in pairs):
        return selection_of(MaskedList.of_pairs(pairs))
    return RandomVariable(stack_values([item for item, _ in pairs]))


def _statistic(function: Callable[..., Any], least: int, **options: Any) -> Callable[[Any], Any]:
    """A function of the statistics module, which fails on too few numbers; its results are Python's, as most are."""

    def lifted(items: Any) -> Any:
        numbers = _numbers(items)
        if isinstance(numbers, Selection):
            numbers.need(least, statistics.StatisticsError(f"at least {least} numbers are needed"))
        made = function(numbers, **options)
        if function is np.std or not _are_of_numpy(items):
            made.node.numpy = False
        return made

    return lifted


def _are_of_numpy(items: Any) -> bool:
    """Say whether some numbers are NumPy's, or may be."""
    if isinstance(items, RandomVariable | Selection):
        return True
    numbers = [item for item, _, _ in segments(items)]
    return any(item.node.numpy is not False for item in numbers if isinstance(item, RandomVariable)) or any(
        isinstance(item, np.generic) for item in numbers
    )


def _int(value: Any = 0, *base: Any) -> Any:
    if value.node.levels is not None:
        return RandomVariable(map_levels(value.node, lambda level: int(level, *base)))
    return as_python(value.astype(int))


def _float(value: Any = 0.0) -> Any:
    if value.node.levels is not None:
        return RandomVariable(map_levels(value.node, float))
    return as_python(value.astype(float))


def _str(value: Any = "") -> Any:
    if isinstance(value, CallOnly):
        return value if isinstance(value, Text) else opaque.applied(str, value)
    if value.node.levels is None:
        return text((value, "")) if not value.shape else opaque.applied(str, value)
    return RandomVariable(map_levels(value.node, str))


def _mean(items: Any, *, is_float: bool = False) -> Any:
    """Return the mean, which of no numbers there is not; that of NumPy's numbers is one unless it `is_float`."""
    number = _len(items)
    if diversions.get() is not None:  # elsewhere any error will do
        fail_where(truth(number == 0), statistics.StatisticsError("mean requires at least one data point"))
    total = _sum(items)
    if not isinstance(total, RandomVariable):
        return total / number
    mean = as_python(total) / number
    mean.node.numpy = not is_float and total.node.numpy
    return mean


def _bisect(side: Callable[[Any, Any], Any], places: Any, value: Any) -> Any:
    if holds_random(places):
        refuse("bisect() in a random list")
    return _sum([side(value, place) for place in places])


def _count_of(items: Any, wanted: Any) -> Any:
    return how_many(both(there, truth(equal(item, wanted))) for item, there in listed(items))


def _index_of(items: Any, wanted: Any) -> Any:
    if isinstance(items, MaskedList) and not items.is_certain:
        refuse("index() of a list of random length")
    hits = [truth(equal(item, wanted)) for item in items]
    fail_where(negated(any_of(hits)), ValueError("not in the list"))
    position: Any = UNDEFINED
    for place, hit in reversed(list(enumerate(hits))):
        position = select(hit, place, position)
    return position


def first(generator: Stream, *default: Any) -> Any:
    """Return the first item of a generator expression: `next(... for ... in ...)`."""
    items = MaskedList.of_pairs(generator.pairs())
    there = truth(items)
    if not default:
        fail_where(negated(there), StopIteration())
        return items[0]
    with under(there):
        found = items[0] if there is not False else UNDEFINED
    return select(there, found, default[0])


def text(*parts: tuple[Any, str]) -> Any:
    """Join the parts of an f-string, each with its format; categories give a category, numbers a text with fields."""
    random = [value for value, _ in parts if isinstance(value, RandomVariable | CallOnly)]
    if not random:
        return "".join(format(value, form) for value, form in parts)
    categories = [value for value in random if isinstance(value, RandomVariable) and value.node.levels is not None]
    if len(categories) < len(random) or any(value.node.shape for value in categories):
        return opaque.joined_text(parts)
    joined = as_node("")
    for value, form in parts:
        node = as_node(value if isinstance(value, RandomVariable) else format(value, form))
        joined = map_pairs(joined, node, functools.partial(_appended, form))
    return RandomVariable(joined)


def _appended(form: str, left: str, right: Any) -> str:
    return left + format(right, form)


def _filter(call: Call, predicate: Any, items: Any) -> Stream:
    kept: list[Segment] = []
    for item, there, plate in segments(items):
        with under(there):
            held = both(there, truth(item if predicate is None else call(predicate, item)))
        kept.append((item, held, plate))
    return Stream(collected(kept))


def _map(call: Call, function: Any, *sequences: Any) -> Stream:
    if len(sequences) > 1:
        return Stream(MaskedList([call(function, *items) for items in zip(*sequences, strict=False)]))
    mapped: list[Segment] = []
    for item, there, plate in segments(sequences[0]):
        with under(there):
            mapped.append((call(function, item), there, plate))
    return Stream(collected(mapped))


def _reduce(call: Call, function: Any, items: Any, *initial: Any) -> Any:
    pairs = [*((start, True) for start in initial), *listed(items)]
    if not pairs or pairs[0][1] is not True:
        refuse("reduce() of a list that may be empty")
    total = pairs[0][0]
    for item, there in pairs[1:]:
        with under(there):
            total = select(there, call(function, total, item), total)
    return total


def _enumerate(items: Any, start: int = 0) -> Any:
    if isinstance(items, MaskedList) and not items.is_certain:
        refuse("enumerate() of a list of random length")
    if isinstance(items, PlatedTable):
        return enumerated(items, start)
    return enumerate(items, start)


def _isinstance(value: Any, kinds: Any) -> Mask:
    """Answer for the plain value that the random one stands for."""
    if isinstance(value, Standing):
        return value.kind in {
            getattr(kind, "__name__", "") for kind in (kinds if isinstance(kinds, tuple) else (kinds,))
        }
    if isinstance(value, MaskedDict):
        example: dict[Any, Any] = defaultdict() if value.default is not None else {}
        return isinstance(Counter() if value.counting else example, kinds)
    if isinstance(value, CallOnly):
        return issubclass(str, kinds) if isinstance(value, Text) else refuse("isinstance() of a random value")
    if not isinstance(value, RandomVariable):
        return isinstance(set() if isinstance(value, MaskedSet) else value, kinds)
    if isinstance(value.node.operation, Maybe):
        present, number = map(RandomVariable, value.node.parents)
        elsewhere = isinstance(value.node.operation.otherwise, kinds)
        return either(both(present, _isinstance(number, kinds)), both(negated(present), elsewhere))
    answers = {issubclass(kind, kinds) for kind in _types(value.node)}
    return answers.pop() if len(answers) == 1 else refuse("isinstance() of values of several types")


def _types(node: Node) -> set[type]:
    if node.levels is not None and not node.shape:
        return {type(level) for level in node.levels}
    return {np.ndarray} if node.shape else number_types(node)


def _type(value: Any, *parts: Any) -> Any:
    if isinstance(value, Masked):
        refuse("type() of a list of random length")
    if isinstance(value, CallOnly):
        return str if isinstance(value, Text) else refuse("type() of a random value")
    if parts or not isinstance(value, RandomVariable):
        return type(value, *parts)
    types = _types(where_present(value.node))
    return types.pop() if len(types) == 1 else refuse("type() of values of several types")


def _repr(value: Any) -> Any:
    if not isinstance(value, RandomVariable) or value.node.levels is None:
        return opaque.applied(repr, value)
    return RandomVariable(map_levels(value.node, repr))


def _ranked(items: Any, before: int) -> Any:
    """Return the number in the middle of the order, or the one before it if there are two."""
    numbers = _numbers(items)
    if isinstance(numbers, Selection):
        refuse("median_low() or median_high() of a list of random length")
    ordered: Any = np.sort(numbers)
    return ordered[(len(ordered) + before) // 2]


LIFTED: dict[Any, Callable[..., Any]] = {
    **{getattr(math, row.math): checked_math(row) for row in OPERATIONS.values() if row.math},
    builtins.sum: _sum,
    builtins.len: _len,
    builtins.any: _any,
    builtins.all: _all,
    builtins.int: _int,
    builtins.float: _float,
    builtins.str: _str,
    builtins.format: lambda value, form="": text((value, form)),
    builtins.bool: truth,
    builtins.enumerate: _enumerate,
    builtins.isinstance: _isinstance,
    builtins.type: _type,
    builtins.repr: _repr,
    np.bincount: bincount,
    np.unique: unique,
    statistics.mean: _mean,
    statistics.fmean: partial(_mean, is_float=True),
    statistics.median: _statistic(np.median, 1),
    statistics.median_low: lambda items: _ranked(items, -1),
    statistics.median_high: lambda items: _ranked(items, 0),
    statistics.stdev: _statistic(np.std, 2, ddof=1),
    statistics.pstdev: _statistic(np.std, 1),
    statistics.variance: _statistic(np.var, 2, ddof=1),
    statistics.pvariance: _statistic(np.var, 1),
    math.log: logarithm,
    math.floor: lambda value: value.__floor__(),
    math.ceil: lambda value: value.__ceil__(),
    math.trunc: lambda value: value.__trunc__(),
    math.prod: lambda items, start=1: functools.reduce(
        operator.mul, [item if there is True else where(there, item, 1) for item, there in listed(items)], start
    ),
    math.fsum: _sum,
    bisect.bisect_right: functools.partial(_bisect, operator.ge),
    bisect.bisect_left: functools.partial(_bisect, operator.gt),
}


# These call a function they are given; how, is the caller's business: `call` comes first.
CALLING: dict[Any, Callable[..., Any]] = {
    builtins.min: functools.partial(extreme, operator.lt),
    builtins.max: functools.partial(extreme, operator.gt),
    builtins.sorted: sorted_items,
    builtins.filter: _filter,
    builtins.map: _map,
    functools.reduce: _reduce,
    statistics.mode: mode,
    heapq.nlargest: functools.partial(foremost, True),
    heapq.nsmallest: functools.partial(foremost, False),
}

# Methods of lists and dictionaries.
METHODS: dict[str, Callable[..., Any]] = {"count": _count_of, "index": _index_of}
CALLING_METHODS: dict[str, Callable[..., Any]] = {"sort": sort_in_place, "most_common": most_common}

KNOWN_OF_CALLED = (str, isinstance, type, format, bool)
"""Functions that know what to do with values that only plain calls know."""

# These look at the items of an iterator, which may hold anything.
TAKING_ITERATORS = {sum, any, all, min, max, sorted, statistics.mean, statistics.fmean, statistics.median, math.prod}
