"""Sorting and extremes of random values, with and without keys."""

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from privug.model.categories import map_levels
from privug.model.node import Kind, Node
from privug.model.operations import ArrayFunction, Elementwise, elementwise
from privug.model.variable import RandomVariable, refuse, stack_values
from privug.program.logic import where
from privug.program.traced.dictionaries import MaskedDict
from privug.program.traced.expressions import gathered
from privug.program.traced.iteration import Stream, has_plates, listed
from privug.program.traced.masks import (
    UNDEFINED,
    Mask,
    Masked,
    MaskedList,
    OneOf,
    both,
    current,
    either,
    fail_where,
    negated,
    select,
    truth,
    under,
)
from privug.program.traced.selections import Selection, extreme_of, selection_of
from privug.program.traced.standing import Standing

Call = Callable[..., Any]


def holds_random(value: Any) -> bool:
    """Say whether a value is random or a container of something random."""
    if isinstance(value, RandomVariable):
        return True
    if isinstance(value, Standing) or has_plates(value):
        return True
    if isinstance(value, Masked):
        return not value.is_certain or any(holds_random(item) for item, _ in value.unordered())
    if isinstance(value, list | tuple):
        return any(holds_random(item) for item in value)
    return isinstance(value, dict) and any(holds_random(item) for item in value.values())


_MISSING = object()


def extreme(
    better: Callable[[Any, Any], Any], call: Call, *items: Any, key: Any = None, default: Any = _MISSING
) -> Any:
    """Return the item that is better than all others, the first among equals; its keys may be tuples."""
    if len(items) == 1 and key is None and (has_plates(items[0]) or isinstance(items[0], Selection)):
        return _extreme_of_many("min" if better is operator.lt else "max", items[0], default)
    pairs = listed(items[0], ordered=key is not None) if len(items) == 1 else [(item, True) for item in items]
    best, rank, seen = UNDEFINED, UNDEFINED, False
    for item, there in pairs:
        with under(there):
            value = item if key is None else _key(call, key, item)
            wins = there if seen is False else both(there, either(negated(seen), truth(_better(better, value, rank))))
        best, rank = select(wins, item, best), select(wins, value, rank)
        seen = either(seen, there)
    if default is _MISSING:
        fail_where(negated(seen), ValueError("min() or max() of nothing"))
        return best
    return default if seen is False else select(seen, best, default)


def _extreme_of_many(how: str, items: Any, default: Any) -> Any:
    """Return the smallest or largest of numbers of which some stand for many, or of an array's."""
    if isinstance(items, Selection):
        return _or_default(items.size > 0, lambda: getattr(items, how)(), default)
    best, seen = extreme_of(how, items)
    return _or_default(seen, lambda: best, default)


def _or_default(seen: Mask, best: Callable[[], Any], default: Any) -> Any:
    """Return what was found where there is anything; elsewhere a default, or an error."""
    if default is _MISSING:
        fail_where(negated(seen), ValueError("min() or max() of nothing"))
        return best()
    with under(seen):
        found = best()
    return select(seen, found, default)


def foremost(largest: bool, call: Call, count: Any, items: Any, key: Any = None) -> MaskedList:
    """Return some of the largest or smallest items, as heapq does."""
    if not isinstance(count, int):
        refuse("a random number of items")
    if key is None and has_plates(items):
        held: Any = items.held() if isinstance(items, Stream) else items
        certain = items.is_certain
        found = selection_of(items).foremost(count, largest, certain)
        _typed_as([item for item, _, _ in held.segments], [item for item, _ in found.pairs()])
        return found
    ordered = sorted_items(call, items, key=key, reverse=largest)[: max(count, 0)]
    assert isinstance(ordered, MaskedList)
    return ordered


def _better(better: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    if isinstance(left, tuple) and isinstance(right, tuple):
        order = _order([left, right] if better is operator.gt else [right, left], reverse=False)
        return order[0] == 1 if order is not None else False
    return better(left, right)


def _key(call: Call, key: Any, item: Any) -> Any:
    """Return the key of an item; a dictionary's get() must find something, since None has no order."""
    owner = getattr(key, "__self__", None)
    if isinstance(owner, MaskedDict) and key.__name__ == "get":
        value, there = owner.lookup(item)
        fail_where(negated(there), TypeError("a missing dictionary entry has no order"))
        return value
    return call(key, item)


def sorted_items(call: Call, items: Any, *, key: Any = None, reverse: bool = False) -> MaskedList:
    """Sort stably by keys that are numbers, categories or tuples of them; what is not there goes last."""
    pairs = listed(items, ordered=key is not None)
    values = [item for item, _ in pairs]
    if not isinstance(reverse, bool | int):
        refuse("sorted() in a random direction")
    keys = []
    for item, there in pairs:
        with under(there):
            keys.append(item if key is None else _key(call, key, item))
    if not any(map(holds_random, keys)):
        order = sorted(range(len(keys)), key=keys.__getitem__, reverse=reverse)
        return MaskedList.of_pairs(pairs[position] for position in order)
    if key is None and not isinstance(values[0], tuple) and all(there is True for _, there in pairs):
        node = stack_values(values)
        if node.levels is None and len(node.shape) == 1:
            ordered = _typed_as(values, list(np.sort(RandomVariable(node))))
            return MaskedList(reversed(ordered) if reverse else ordered)
    order = _order(keys, bool(reverse), [negated(there) for _, there in pairs])
    moved = [gathered(values, order[position]) for position in range(len(values))]
    if all(there is True for _, there in pairs):
        return MaskedList(moved)
    total = sum(where(there, 1, 0) for _, there in pairs)
    return MaskedList.of_pairs((item, total > position) for position, item in enumerate(moved))


def _typed_as(values: list[Any], moved: list[Any]) -> list[Any]:
    """Say of numbers that were just taken out of an array that they are Python's, if those put into it were."""
    random = [value.node for value in values if isinstance(value, RandomVariable)]
    if all(node.numpy is False for node in random) and not any(isinstance(value, np.generic) for value in values):
        for item in moved:
            item.node.numpy = False
    return moved


def _order(keys: list[Any], reverse: bool, absent: list[Mask] | None = None) -> Any:
    """Return the positions of the items in sorted order, as one random array."""
    columns = [] if absent is None else [stack_values([where(mask, 1, 0) for mask in absent])]
    for column in _columns(keys):
        node = stack_values(column)
        if node.shape != (len(keys),):
            refuse("sorting by anything but numbers, strings and tuples of them")
        if node.levels is not None:
            ordered = sorted(node.levels)
            node = map_levels(node, ordered.index)
        columns.append(elementwise(Elementwise("key", SortingKey(reverse)), [node]))
    operation = ArrayFunction("argsort", _lexicographic)
    return RandomVariable(Node(operation, tuple(columns), (len(keys),), np.dtype(np.int64), kind=Kind.DISCRETE))


def _columns(keys: list[Any]) -> list[list[Any]]:
    """Return the parts of the keys, the most significant first."""
    if not any(isinstance(key, tuple) for key in keys):
        return [keys]
    if not all(isinstance(key, tuple) and len(key) == len(keys[0]) for key in keys):
        refuse("sorting by tuples of different length")
    return [column for position in range(len(keys[0])) for column in _columns([key[position] for key in keys])]


@dataclass(frozen=True)
class SortingKey:
    """Numbers by which something is sorted in ascending order; truth values count as numbers."""

    descending: bool

    def __call__(self, array: Any) -> Any:
        numbers = array.astype(np.int64) if array.dtype.kind == "b" else array
        return -numbers if self.descending else numbers


def _lexicographic(*columns: Any) -> Any:
    return np.lexsort(np.broadcast_arrays(*columns)[::-1], axis=-1)


def mode(call: Call, items: Any) -> Any:
    """Return the most common item, the first among equals."""
    counts = MaskedDict(counting=True).count(listed(items))
    return extreme(operator.gt, call, counts, key=counts.get)


def sort_in_place(call: Call, owner: Any, *, key: Any = None, reverse: bool = False) -> None:
    """Sort a list of the program's own."""
    if current() is not True or isinstance(owner, OneOf) or not isinstance(owner, MaskedList):
        refuse("sort() of such a list")
    ordered = sorted_items(call, owner, key=key, reverse=reverse)
    owner.replace(ordered.pairs())


def most_common(call: Call, owner: MaskedDict, *most: int) -> Any:
    """Return keys and counts, the largest counts first, as a Counter does."""
    return sorted_items(call, owner.items(), key=operator.itemgetter(1), reverse=True)[: most[0] if most else None]
