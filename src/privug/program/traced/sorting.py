"""Sorting and extremes of random values, with and without keys."""

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privug.model.categories import map_levels
from privug.model.node import Kind, Node
from privug.model.operations import ArrayFunction, Elementwise, elementwise
from privug.model.variable import RandomVariable, as_node, harmless, refuse, stack_values
from privug.program.logic import where
from privug.program.traced.dictionaries import MaskedDict, View
from privug.program.traced.expressions import equal, gathered
from privug.program.traced.iteration import Stream, has_plates, holds_random, listed, segments
from privug.program.traced.laws import ArgExtreme, is_number
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
    how_many,
    negated,
    select,
    truth,
    under,
)
from privug.program.traced.selections import Selection, extreme_of, selection_of
from privug.program.traced.slots import found

Call = Callable[..., Any]


_MISSING = object()


def extreme(
    better: Callable[[Any, Any], Any], call: Call, *items: Any, key: Any = None, default: Any = _MISSING
) -> Any:
    """Return the item that is better than all others, the first among equals; its keys may be tuples."""
    if len(items) == 1 and key is None and (has_plates(items[0]) or isinstance(items[0], Selection)):
        return _extreme_of_many("min" if better is operator.lt else "max", items[0], default)
    best, top, place, seen = UNDEFINED, UNDEFINED, UNDEFINED, False
    if len(items) == 1 and has_plates(items[0]):
        return _best_of_many(better, call, items[0], key, default)
    ranked = _ranked(items[0], key is None) if len(items) == 1 else [(item, True, 0) for item in items]
    for item, there, order in ranked:
        with under(there):
            value = item if key is None else _key(call, key, item)
            if seen is False:
                wins = there
            else:
                first = isinstance(order, RandomVariable) and both(truth(equal(value, top)), truth(order < place))
                wins = both(there, either(negated(seen), either(truth(_better(better, value, top)), first)))
        best, top, place = select(wins, item, best), select(wins, value, top), select(wins, order, place)
        seen = either(seen, there)
    if len(items) == 1 and isinstance(items[0], MaskedDict | View) and items[0].some_there() is True:
        seen = True
    if default is _MISSING:
        fail_where(negated(seen), ValueError("min() or max() of nothing"))
        return best
    return default if seen is False else select(seen, best, default)


def _ranked(items: Any, loosely: bool) -> list[tuple[Any, Mask, Any]]:
    """Return items in their order, or with numbers by which they are ordered: random ones, unless it is that order."""
    ranked = items.ranked() if isinstance(items, Masked) and not loosely else None
    if ranked is None:
        return [(item, there, 0) for item, there in listed(items, ordered=not loosely)]
    if any(isinstance(rank, RandomVariable) for _, _, rank in ranked):
        return [(item, there, RandomVariable(as_node(rank))) for item, there, rank in ranked]
    return sorted(ranked, key=operator.itemgetter(2))


def _extreme_of_many(how: str, items: Any, default: Any) -> Any:
    """Return the smallest or largest of numbers of which some stand for many, or of an array's."""
    if isinstance(items, Selection):
        return _or_default(items.size > 0, lambda: getattr(items, how)(), default)
    best, seen = extreme_of(how, items)
    return _or_default(seen, lambda: best, default)


def _best_of_many(better: Callable[[Any, Any], Any], call: Call, items: Any, key: Any, default: Any) -> Any:
    """Return the item with the smallest or largest key, the first among equals; some stand for many rows."""
    keyed = []
    for item, there, plate in segments(items):
        with under(there):
            keyed.append((item, _key(call, key, item), there, plate))
    best, top, seen = UNDEFINED, UNDEFINED, False
    for item, value, there, plate in keyed:
        if plate is not None:
            if not is_number(value):
                refuse("an extreme by something else than numbers, with many rows")
            key_of_row = RandomVariable(as_node(value))
            best_row = ArgExtreme(plate, key_of_row, better is operator.gt, last=False, taking_part=there, start=None)
            item, value, there = best_row.winner(item), best_row.winner(key_of_row), best_row.won
        wins = there if seen is False else both(there, either(negated(seen), truth(better(value, top))))
        best, top = select(wins, item, best), select(wins, value, top)
        seen = either(seen, there)
    return _or_default(seen, lambda: best, default)


def _or_default(seen: Mask, best: Callable[[], Any], default: Any) -> Any:
    """Return what was found where there is anything; elsewhere a default, or an error."""
    if default is _MISSING:
        fail_where(negated(seen), ValueError("min() or max() of nothing"))
        found = best()
        single = isinstance(found, RandomVariable) and found.node.levels is None
        return RandomVariable(harmless(found.node, 0)) if single and seen is not True else found
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
    return better(found(left), found(right))


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
    ranked = _ranked(items, key is None)
    pairs = [(item, there) for item, there, _ in ranked]
    values = [item for item, _ in pairs]
    if not isinstance(reverse, bool | int):
        refuse("sorted() in a random direction")
    keys = []
    for item, there in pairs:
        with under(there):
            keys.append(item if key is None else _key(call, key, item))
    ranks = [rank for _, _, rank in ranked if isinstance(rank, RandomVariable)]
    known = keys if not ranks and not any(map(holds_random, keys)) else _telling(keys)
    if known is not None:
        order = sorted(range(len(keys)), key=known.__getitem__, reverse=reverse)
        return MaskedList.of_pairs(pairs[position] for position in order)
    if key is None and not isinstance(values[0], tuple) and all(there is True for _, there in pairs):
        node = stack_values(values)
        if node.levels is None and len(node.shape) == 1:
            ordered = _typed_as(values, list(np.sort(RandomVariable(node))))
            return MaskedList(reversed(ordered) if reverse else ordered)
    order = _order(keys, bool(reverse), [negated(there) for _, there in pairs], ranks)
    moved = [gathered(values, order[position]) for position in range(len(values))]
    if all(there is True for _, there in pairs):
        return MaskedList(moved)
    total = how_many(there for _, there in pairs)
    some = isinstance(items, Masked) and not items.is_iterator and items.some_there() is True
    there = [True if some and position == 0 else total > position for position in range(len(moved))]
    return MaskedList.of_pairs(zip(moved, there, strict=True))


def _telling(keys: list[Any]) -> list[Any] | None:
    """Return the first parts of keys that are tuples, if they are known and tell all keys apart, as labels do."""
    if not keys or not all(isinstance(key, tuple) and key for key in keys):
        return None
    first = [key[0] for key in keys]
    if any(map(holds_random, first)):
        return None
    try:
        return first if len(set(first)) == len(first) else None
    except TypeError:  # of parts that have no hash
        return None


def _typed_as(values: list[Any], moved: list[Any]) -> list[Any]:
    """Say of numbers that were just taken out of an array that they are Python's, if those put into it were."""
    random = [value.node for value in values if isinstance(value, RandomVariable)]
    if all(node.numpy is False for node in random) and not any(isinstance(value, np.generic) for value in values):
        for item in moved:
            item.node.numpy = False
    return moved


def _order(keys: list[Any], reverse: bool, absent: Sequence[Mask] = (), ranks: Sequence[Any] = ()) -> Any:
    """Return the positions of the items in sorted order, as one random array; those of equal keys by their ranks."""
    columns = [stack_values([where(mask, 1, 0) for mask in absent])] if absent else []
    for column in _columns(keys):
        node = stack_values(column)
        if node.shape != (len(keys),):
            refuse("sorting by anything but numbers, strings and tuples of them")
        if node.levels is not None:
            ordered = sorted(node.levels)
            node = map_levels(node, ordered.index)
        columns.append(elementwise(Elementwise("key", SortingKey(reverse)), [node]))
    if ranks:
        columns.append(stack_values(ranks))
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
    counts = MaskedDict(counting=True).count(segments(items))
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
