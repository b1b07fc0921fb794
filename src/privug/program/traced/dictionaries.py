"""Dictionaries and sets of rewritten programs: entries are there or not, depending on random keys and conditions."""

from collections.abc import Callable, Iterable
from typing import Any

from privug.model.maybe import maybe
from privug.model.plates import current_plate
from privug.model.sparse import ABSENT, SparseDict
from privug.model.variable import RandomVariable, as_node, refuse
from privug.program.logic import where
from privug.program.traced.keys import alternatives, has_random
from privug.program.traced.masks import (
    UNDEFINED,
    Mask,
    Masked,
    MaskedList,
    any_of,
    both,
    current,
    either,
    fail_where,
    holds,
    is_value,
    negated,
    one_of,
    select,
)

MOST_ORDERED = 24

Pairs = list[tuple[Any, Mask]]


class MaskedDict(Masked):
    """A dictionary of the program's own.

    `ranks` says when an entry came in, since dictionaries are read in that order.
    """

    def __init__(self, default: Callable[[], Any] | None = None, counting: bool = False) -> None:
        self.stored: dict[Any, Any] = {}
        self.masks: dict[Any, Mask] = {}
        self.ranks: dict[Any, Any] = {}
        self.default = default
        self.counting = counting
        self._events = 0
        self._last: tuple[Any, dict[Any, Mask]] | None = None
        self._lists: set[Any] = set()  # entries whose list was made here: it holds only what is there with the entry

    def _hits(self, key: Any) -> dict[Any, Mask]:
        """Return the alternatives of a key; one that was just read is often written next."""
        if self._last is None or self._last[0] is not key:
            self._last = key, alternatives(key)
        return self._last[1]

    # Reading.
    def lookup(self, key: Any) -> tuple[Any, Mask]:
        """Return the value at a key, and when there is one."""
        found = [
            (both(hit, self.masks[level]), self.stored[level])
            for level, hit in self._hits(key).items()
            if level in self.stored
        ]
        return one_of(found), any_of([mask for mask, _ in found])

    def __getitem__(self, key: Any) -> Any:
        if self.default is not None:
            self.setdefault_each(key, self.default)
        value, there = self.lookup(key)
        if self.counting:
            return select(there, value, 0)
        fail_where(negated(there), KeyError(key if not has_random(key) else "a random key"))
        return value

    def get(self, key: Any, default: Any = None) -> Any:
        value, there = self.lookup(key)
        return select(there, value, default)

    def contains(self, key: Any) -> Mask:
        """Return when a key is there."""
        return self.lookup(key)[1]

    def pairs(self) -> Pairs:
        return [(key, there) for (key, _), there in self._entries()]

    def unordered(self) -> Pairs:
        return list(self.masks.items())

    def keys(self) -> "View":
        return View(self, lambda key, value: key)

    def values(self) -> "View":
        return View(self, lambda key, value: value)

    def items(self) -> "View":
        return View(self, lambda key, value: (key, value))

    def _entries(self) -> Pairs:
        """Return keys and values in the order in which they came in."""
        if all(isinstance(rank, int) for rank in self.ranks.values()):
            ordered = sorted(self.stored, key=self.ranks.__getitem__)
            return [((key, self.stored[key]), self.masks[key]) for key in ordered]
        if len(self.stored) > MOST_ORDERED:
            refuse(f"the order of more than {MOST_ORDERED} random dictionary keys")
        places = {key: self._place(key) for key in self.stored}
        total = _count(self.masks.values())
        entries: Pairs = []
        for position in range(len(self.stored)):
            hits = [(key, both(self.masks[key], places[key] == position)) for key in self.stored]
            key = one_of([(hit, key) for key, hit in hits])
            value = one_of([(hit, self.stored[key]) for key, hit in hits])
            entries.append(((key, value), total > position))
        return entries

    def _place(self, key: Any) -> Any:
        """Return how many entries came in before this one."""
        rank = self.ranks[key]
        before = [both(self.masks[other], self.ranks[other] < rank) for other in self.stored if other != key]
        return _count(before)

    def plain(self) -> dict[Any, Any]:
        if not self.is_certain:
            refuse("a dictionary of random keys")
        return dict(self.stored)

    def released(self) -> Any:
        if self.is_certain or not all(is_value(value) for value in self.stored.values()):
            return self.plain()
        return SparseDict({key: _entry(value, self.masks[key]) for key, value in self.stored.items()})

    def __iter__(self) -> Any:
        return iter([key for (key, _), _ in self._entries()]) if self.is_certain else iter(self.plain())

    def __len__(self) -> int:
        return len(self.plain())

    def __bool__(self) -> bool:
        return bool(self.plain())

    def __eq__(self, other: object) -> bool:
        return refuse("a comparison of dictionaries")

    __hash__ = None  # type: ignore[assignment]

    def __getattr__(self, name: str) -> Any:
        """Give the other methods of dictionaries, as long as everything is certain."""
        if name.startswith("__") or not hasattr(dict, name):
            raise AttributeError(f"this dictionary has no attribute {name!r}")

        def changed(*arguments: Any, **named: Any) -> Any:
            if self.counting or current() is not True or any(map(has_random, arguments)):
                refuse(f"{name}() of a dictionary with random keys")
            plain = {key: value for (key, value), _ in self._entries()} if self.is_certain else self.plain()
            result = getattr(plain, name)(*arguments, **named)
            self.stored, self.masks = plain, dict.fromkeys(plain, True)
            self.ranks = {key: rank for rank, key in enumerate(plain)}
            self._events, self._lists = len(plain), set()
            return result

        return changed

    def copy(self) -> "MaskedDict":
        """Return a copy that holds the same values."""
        made = MaskedDict(self.default, self.counting)
        made.stored, made.masks, made.ranks = dict(self.stored), dict(self.masks), dict(self.ranks)
        made._events = self._events
        return made

    # Writing, where the code at hand runs.
    def __setitem__(self, key: Any, value: Any) -> None:
        self.put(key, value, current())

    def __delitem__(self, key: Any) -> None:
        self.pop(key)

    def put(self, key: Any, value: Any, here: Mask, fresh: bool = False) -> None:
        """Set the value at a key under a condition; a fresh list has no other name, so a copy will do."""
        hits = self._hits(key)
        copied = fresh and isinstance(value, MaskedList) and all(is_value(item) for item, _ in value.pairs())
        if len(hits) > 1 and not copied and not is_value(value):
            refuse("a list or other container as the value at a random key")
        for level, hit in hits.items():
            self._lists.discard(level)
            self._enter(level, value.copy() if copied else value, both(here, hit))

    def _enter(self, level: Any, value: Any, here: Mask) -> None:
        if current_plate.get() is not None:
            refuse("a dictionary that each of many rows changes")
        if here is False:
            return
        before = self.masks.get(level, False)
        new = both(here, negated(before))
        if before is False:
            self.ranks[level] = self._events
        elif new is not False:
            self.ranks[level] = select(new, self._events, self.ranks[level])
        self._events += 1
        self.stored[level] = select(here, value, self.stored.get(level, UNDEFINED))
        self.masks[level] = either(before, here)

    def setdefault_each(self, key: Any, make: Callable[[], Any]) -> None:
        """Give each missing entry that the key may mean a value of its own."""
        for level, hit in self._hits(key).items():
            missing = both(both(current(), hit), negated(self.masks.get(level, False)))
            if missing is False:
                continue
            fresh = make()
            empty_list = type(fresh) is MaskedList and not fresh.pairs()
            if level in self._lists and empty_list:
                fresh = self.stored[level]
            elif empty_list and level not in self.stored:
                self._lists.add(level)
            else:
                self._lists.discard(level)
            self._enter(level, fresh, missing)

    def setdefault(self, key: Any, default: Any = None) -> Any:
        if not is_value(default):
            refuse("setdefault() with a container that has a name")
        self.setdefault_each(key, lambda: default)
        return self.lookup(key)[0]

    def count(self, items: Iterable[tuple[Any, Mask]]) -> "MaskedDict":
        """Count items as a Counter does."""
        for item, there in items:
            self.put(item, self[item] + 1, both(current(), there))
        return self


def _entry(value: Any, mask: Mask) -> Any:
    if isinstance(value, tuple) or (isinstance(value, RandomVariable) and value.shape):
        refuse("a dictionary of random keys")
    if holds(mask):
        return value
    return RandomVariable(maybe(as_node(mask), as_node(value), ABSENT))


class View(Masked):
    """The keys, values or items of a dictionary."""

    def __init__(self, owner: MaskedDict, part: Callable[[Any, Any], Any]) -> None:
        self._owner = owner
        self._part = part

    def pairs(self) -> Pairs:
        return [(self._part(key, value), there) for (key, value), there in self._owner._entries()]

    def unordered(self) -> Pairs:
        owner = self._owner
        return [(self._part(key, value), owner.masks[key]) for key, value in owner.stored.items()]

    def plain(self) -> list[Any]:
        if not self.is_certain:
            refuse("a dictionary of random keys")
        return [item for item, _ in self.pairs()]

    def __iter__(self) -> Any:
        return iter(self.plain())

    def __len__(self) -> int:
        return len(self.plain())


class MaskedSet(Masked):
    """A set of the program's own."""

    def __init__(self, items: Iterable[tuple[Any, Mask]] = ()) -> None:
        self.masks: dict[Any, Mask] = {}
        for item, there in items:
            self.enter(item, there)

    def enter(self, item: Any, here: Mask) -> None:
        """Put something in under a condition."""
        if current_plate.get() is not None:
            refuse("a set that each of many rows changes")
        for level, hit in alternatives(item).items():
            mask = either(self.masks.get(level, False), both(here, hit))
            if mask is not False:
                self.masks[level] = mask

    def add(self, item: Any) -> None:
        self.enter(item, current())

    def contains(self, item: Any) -> Mask:
        """Return when something is in the set."""
        hits = alternatives(item)
        return any_of([both(hit, self.masks[level]) for level, hit in hits.items() if level in self.masks])

    def pairs(self) -> Pairs:
        if self.is_certain:
            return [(item, True) for item in set(self.masks)]
        if not all(isinstance(item, str) for item in self.masks):  # the order of strings is not known in Python either
            refuse("the order of a set of random elements")
        return self.unordered()

    def unordered(self) -> Pairs:
        return list(self.masks.items())

    def plain(self) -> frozenset[Any]:
        if not self.is_certain:
            refuse("a set of random elements")
        return frozenset(self.masks)

    def __iter__(self) -> Any:
        return iter(self.plain())

    def __len__(self) -> int:
        return len(self.plain())

    def __and__(self, other: Any) -> "MaskedSet":
        others = _set_of(other)
        return MaskedSet((item, both(there, others.contains(item))) for item, there in self.unordered())

    def __sub__(self, other: Any) -> "MaskedSet":
        return MaskedSet(
            (item, both(there, negated(_set_of(other).contains(item)))) for item, there in self.unordered()
        )

    def __or__(self, other: Any) -> "MaskedSet":
        return MaskedSet([*self.unordered(), *_set_of(other).unordered()])

    def __rand__(self, other: Any) -> "MaskedSet":
        return _set_of(other) & self

    def __ror__(self, other: Any) -> "MaskedSet":
        return _set_of(other) | self

    def __rsub__(self, other: Any) -> "MaskedSet":
        return _set_of(other) - self

    intersection, union, difference = __and__, __or__, __sub__

    def __eq__(self, other: object) -> bool:
        return refuse("a comparison of sets")

    __hash__ = None  # type: ignore[assignment]


def _set_of(other: Any) -> MaskedSet:
    if isinstance(other, MaskedSet):
        return other
    if isinstance(other, Masked):
        return MaskedSet(other.unordered())
    return MaskedSet((item, True) for item in other)


def _count(masks: Iterable[Mask]) -> Any:
    total: Any = 0
    for mask in masks:
        total = total + (int(mask) if isinstance(mask, bool) else where(mask, 1, 0))
    return total
