"""Built-in and library functions as rewritten programs call them: the same on plain values, lifted on random ones."""

import builtins
import functools
import math
import operator
import statistics
from collections.abc import Callable
from typing import Any

import numpy as np

from privug.model.categories import map_levels
from privug.model.operations import Elementwise, SampleFailure, elementwise
from privug.model.variable import RandomVariable, as_node, path_condition, refuse, stack_values
from privug.program.control import iterate
from privug.program.logic import where
from privug.program.masks import Mask, MaskedList, both, either, negated, select, truth, under

Call = Callable[..., Any]


def holds_random(value: Any) -> bool:
    """Say whether a value is random or a container of something random."""
    if isinstance(value, RandomVariable):
        return True
    if isinstance(value, MaskedList):
        return not value.is_certain or any(isinstance(item, RandomVariable) for item in value)
    return isinstance(value, list | tuple) and any(isinstance(item, RandomVariable) for item in value)


def listed(items: Any) -> list[tuple[Any, Mask]]:
    """Return the items of anything iterable with their conditions."""
    return list(iterate(items))


def _sum(items: Any, start: Any = 0) -> Any:
    total = start
    for item, there in listed(items):
        total = total + (item if there is True else where(there, item, 0))
    return total


def _len(items: Any) -> Any:
    if isinstance(items, MaskedList) and not items.is_certain:
        return _sum([where(mask, 1, 0) for mask in items.masks])
    return len(items)


def _any(items: Any) -> Any:
    found: Mask = False
    for item, there in listed(items):
        found = either(found, both(there, truth(item)))
    return found


def _all(items: Any) -> Any:
    held: Mask = True
    for item, there in listed(items):
        held = both(held, either(negated(there), truth(item)))
    return held


def _extreme(better: Callable[[Any, Any], Any], call: Call, *items: Any, key: Any = None, default: Any = None) -> Any:
    pairs = listed(items[0]) if len(items) == 1 else [(item, True) for item in items]
    if not pairs:
        refuse("min() or max() of nothing")
    best, seen = pairs[0]
    rank = best if key is None else call(key, best)
    for item, there in pairs[1:]:
        value = item if key is None else call(key, item)
        wins = both(there, either(negated(seen), truth(better(value, rank))))
        best, rank = select(wins, item, best), select(wins, value, rank)
        seen = either(seen, there)
    if seen is True:
        return best
    if default is None:
        refuse("min() or max() of a list that may be empty")
    return select(seen, best, default)


def _sorted(items: Any, *, key: Any = None, reverse: bool = False) -> Any:
    pairs = listed(items)
    if key is not None or any(there is not True for _, there in pairs):
        refuse("sorted() with a key, or of a list of random length")
    values = [item for item, _ in pairs]
    if any(as_node(value).levels is not None or as_node(value).shape for value in values):
        refuse("sorted() of anything but numbers")
    ordered = list(np.sort(RandomVariable(stack_values(values))))
    return MaskedList(reversed(ordered) if reverse else ordered)


def _numbers(items: Any) -> RandomVariable:
    pairs = listed(items)
    if any(there is not True for _, there in pairs):
        refuse("a function of a list of random length")
    return RandomVariable(stack_values([item for item, _ in pairs]))


def _int(value: Any = 0, *base: Any) -> Any:
    if value.node.levels is not None:
        return RandomVariable(map_levels(value.node, lambda level: int(level, *base)))
    return value.astype(int)


def _float(value: Any = 0.0) -> Any:
    if value.node.levels is not None:
        return RandomVariable(map_levels(value.node, float))
    return value.astype(float)


def _str(value: Any = "") -> Any:
    if value.node.levels is None:
        refuse("str() of a random number")
    return RandomVariable(map_levels(value.node, str))


def _mean(items: Any) -> Any:
    return _sum(items) / _len(items)


def _filter(call: Call, predicate: Any, items: Any) -> MaskedList:
    kept = MaskedList()
    for item, there in listed(items):
        held = both(there, truth(item if predicate is None else call(predicate, item)))
        if held is not False:
            kept.add(item, held)
    return kept


def _map(call: Call, function: Any, *sequences: Any) -> MaskedList:
    mapped = MaskedList()
    if len(sequences) > 1:
        return MaskedList([call(function, *items) for items in zip(*sequences, strict=False)])
    for item, there in listed(sequences[0]):
        with under(there):
            mapped.add(call(function, item), there)
    return mapped


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
    return enumerate(items, start)


def _isinstance(value: Any, kinds: Any) -> bool:
    """Answer for the plain value that the random one stands for."""
    node = value.node
    if node.levels is not None:
        answers = {isinstance(level, kinds) for level in node.levels}
        return answers.pop() if len(answers) == 1 else refuse("isinstance() of values of several types")
    if node.shape:
        return isinstance(np.empty(0), kinds)
    return isinstance({"b": True, "i": 1, "f": 1.0}[node.dtype.kind], kinds)


def _checked_math(name: str) -> Callable[..., Any]:
    """A function of the math module: an error of its domain is an error on that input, as in Python."""
    array_function = getattr(np, {"fabs": "absolute", "pow": "power"}.get(name, name))

    def evaluate(*arrays: Any) -> Any:
        result = array_function(*(array.astype(float) for array in arrays))
        wrong = ~np.isfinite(result) & np.logical_and.reduce([np.isfinite(array) for array in arrays])
        if wrong.any():
            raise SampleFailure(int(np.flatnonzero(wrong)[0]), ValueError("math domain error"))
        return result

    def lifted(*values: Any) -> Any:
        path = path_condition.get()
        # Where this code does not run, any argument will do: one at which nothing goes wrong.
        safe = [value if path is None else where(path, value, 1.0) for value in values]
        return RandomVariable(elementwise(Elementwise(name, evaluate), [as_node(value) for value in safe]))

    return lifted


_MATH = ("sqrt", "exp", "expm1", "log2", "log10", "log1p", "sin", "cos", "tan", "tanh", "fabs", "pow", "hypot")


def _log(value: Any, base: Any = math.e) -> Any:
    natural = _checked_math("log")
    return natural(value) if base == math.e else natural(value) / math.log(base)


LIFTED: dict[Any, Callable[..., Any]] = {
    builtins.sum: _sum,
    builtins.len: _len,
    builtins.any: _any,
    builtins.all: _all,
    builtins.sorted: _sorted,
    builtins.int: _int,
    builtins.float: _float,
    builtins.str: _str,
    builtins.bool: truth,
    builtins.enumerate: _enumerate,
    builtins.isinstance: _isinstance,
    statistics.mean: _mean,
    statistics.fmean: _mean,
    statistics.median: lambda items: np.median(_numbers(items)),
    statistics.stdev: lambda items: np.std(_numbers(items), ddof=1),
    statistics.pstdev: lambda items: np.std(_numbers(items)),
    statistics.variance: lambda items: np.var(_numbers(items), ddof=1),
    statistics.pvariance: lambda items: np.var(_numbers(items)),
    math.log: _log,
    math.floor: lambda value: value.__floor__(),
    math.ceil: lambda value: value.__ceil__(),
    math.trunc: lambda value: value.__trunc__(),
    math.prod: lambda items, start=1: functools.reduce(operator.mul, [item for item, _ in listed(items)], start),
    math.fsum: _sum,
    **{getattr(math, name): _checked_math(name) for name in _MATH},
}


# These call a function they are given; how, is the caller's business: `call` comes first.
CALLING: dict[Any, Callable[..., Any]] = {
    builtins.min: functools.partial(_extreme, operator.lt),
    builtins.max: functools.partial(_extreme, operator.gt),
    builtins.filter: _filter,
    builtins.map: _map,
    functools.reduce: _reduce,
}

# These look at the items of an iterator, which may hold anything.
TAKING_ITERATORS = {sum, any, all, min, max, sorted, statistics.mean, statistics.fmean, statistics.median, math.prod}
