"""Dictionaries and sets of rewritten programs: entries are there or not, depending on random conditions."""

import itertools
from collections.abc import Callable, Iterable
from typing import Any

from privug.model.maybe import maybe
from privug.model.plates import fold
from privug.model.sparse import ABSENT, SparseDict
from privug.model.variable import RandomVariable, as_node, refuse
from privug.program.traced.iteration import PlatedList, Segment, order_left_open, segments
from privug.program.traced.keyed import Changeable, Grown
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
    fixed_order,
    holds,
    how_many,
    is_value,
    negated,
    one_of,
    places_of,
    select,
)

Pairs = list[tuple[Any, Mask]]


class MaskedSet(Changeable):
    """A set of the program's own."""

    def __init__(self, items: Iterable[tuple[Any, Mask]] = ()) -> None:
        super().__init__()
        self.masks: dict[Any, Mask] = {}
        for item, there in items:
            self.enter(item, there)

    def enter(self, item: Any, here: Mask) -> None:
        """Put something in under a condition."""
        rows = self.by_rows(writing=True)
        if rows is not None:
            return rows.insert(item, here)
        for level, hit in alternatives(item).items():
            mask = either(self.masks.get(level, False), both(here, hit))
            if mask is not False:
                self.masks[level] = mask
        return None

    def add(self, item: Any) -> None:
        self.enter(item, current())

    def contains(self, item: Any) -> Mask:
        """Return when something is in the set."""
        rows = self.by_rows()
        if rows is not None:
            return rows.contains(item)
        hits = alternatives(item)
        return any_of([both(hit, self.masks[level]) for level, hit in hits.items() if level in self.masks])

    def pairs(self) -> Pairs:
        self.look_at_all()
        if self.is_certain:
            return [(item, True) for item in set(self.masks)]
        if not all(isinstance(item, str) for item in self.masks):  # the order of strings is not known in Python either
            refuse("the order of a set of random elements")
        return self.unordered()

    def unordered(self) -> Pairs:
        self.look_at_all()
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

    def update(self, items: Any) -> None:
        """Put several things in."""
        for item, there, _ in segments(items, ordered=False):
            self.enter(item, both(current(), there))

    # Changed by each of many rows.
    def mask_at(self, level: Any) -> Mask:
        return self.masks.get(level, False)

    def grow_entry(self, level: Any, inserted: Mask, first: Any, grown: Grown) -> None:
        self.masks[level] = either(self.mask_at(level), inserted)

    def end_round(self, events: int, never_empty: bool) -> None:
        return None

    def filled(self, old: Any, before: Mask, held: list[Segment]) -> "MaskedSet":
        first = () if before is False else old.unordered()
        made = MaskedSet((item, both(before, there)) for item, there in first)
        for item, there, plate in held:
            assert plate is not None
            for level, hit in alternatives(item).items():
                inside = both(there, hit)
                found = inside if isinstance(inside, bool) else fold(plate, "any", inside)
                made.masks[level] = either(made.masks.get(level, False), found)
        return made

    def one_of(self, possible: list[tuple[Mask, Any]]) -> "MaskedSet":
        return OneOfSets(possible)

    intersection, union, difference = __and__, __or__, __sub__

    def __eq__(self, other: object) -> bool:
        return refuse("a comparison of sets")

    __hash__ = None  # type: ignore[assignment]


class OneOfSets(MaskedSet):
    """One of several sets, depending on random conditions; what is put into it is put into that one."""

    def __init__(self, targets: Iterable[tuple[Mask, Any]]) -> None:
        self._targets = list(targets)
        if not all(isinstance(target, MaskedSet) for _, target in self._targets):
            refuse("a choice between containers")
        super().__init__()
        for condition, target in self._targets:
            for level, mask in target.masks.items():
                self.masks[level] = either(self.masks.get(level, False), both(condition, mask))

    def enter(self, item: Any, here: Mask) -> None:
        super().enter(item, here)
        for condition, target in self._targets:
            target.enter(item, both(condition, here))


def _set_of(other: Any) -> MaskedSet:
    if isinstance(other, MaskedSet):
        return other
    if isinstance(other, Masked):
        return MaskedSet(other.unordered())
    return MaskedSet((item, True) for item in other)


MOST_ORDERED = 24

Ranked = list[tuple[Any, Mask, Any]]


class MaskedDict(Changeable):
    """A dictionary of the program's own.

    `ranks` says when an entry came in, since dictionaries are read in that order.
    """

    def __init__(self, default: Callable[[], Any] | None = None, counting: bool = False) -> None:
        super().__init__()
        self.stored: dict[Any, Any] = {}
        self.masks: dict[Any, Mask] = {}
        self.ranks: dict[Any, Any] = {}
        self.default = default
        self.counting = counting
        self._events = 0
        self._never_empty = False
        self._last: tuple[Any, dict[Any, Mask]] | None = None
        self._own: set[Any] = set()  # entries whose list or set was made here: it holds only what is there with them

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
        rows = self.by_rows(writing=self.default is not None or self.counting)
        if rows is not None and self.default is not None:
            return rows.fill(key, self.default)
        if rows is not None:
            return rows.read(key, 0 if self.counting else UNDEFINED)
        if self.default is not None:
            self.setdefault_each(key, self.default)
        value, there = self.lookup(key)
        if self.counting:
            return select(there, value, 0)
        fail_where(negated(there), KeyError(key if not has_random(key) else "a random key"))
        return value

    def get(self, key: Any, default: Any = None) -> Any:
        rows = self.by_rows()
        if rows is not None:
            return rows.read(key, default)
        value, there = self.lookup(key)
        return select(there, value, default)

    def contains(self, key: Any) -> Mask:
        """Return when a key is there."""
        rows = self.by_rows()
        return self.lookup(key)[1] if rows is None else rows.contains(key)

    def pairs(self) -> Pairs:
        return [(key, there) for (key, _), there in self._entries()]

    def unordered(self) -> Pairs:
        self.look_at_all()
        return list(self.masks.items())

    def ranked(self) -> Ranked:
        self.look_at_all()
        return [(key, there, self.ranks[key]) for key, there in self.masks.items()]

    def some_there(self) -> Mask:
        self.look_at_all()
        return self._never_empty or super().some_there()

    def keys(self) -> "View":
        return View(self, lambda key, value: key, of_keys=True)

    def values(self) -> "View":
        return View(self, lambda key, value: value)

    def items(self) -> "View":
        return View(self, lambda key, value: (key, value), of_items=True)

    def _entries(self) -> Pairs:
        """Return keys and values in the order in which they came in."""
        ordered = self._in_fixed_order()
        if ordered is not None:
            return [((key, self.stored[key]), self.masks[key]) for key in ordered]
        if len(self.stored) > MOST_ORDERED:
            refuse(f"the order of more than {MOST_ORDERED} random dictionary keys")
        places = {key: self._place(key) for key in self.stored}
        total = how_many(self.masks.values())
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
        return how_many(before)

    def _in_fixed_order(self) -> list[Any] | None:
        """Return the keys in the order in which they came in; None if that is random."""
        self.look_at_all()
        keys = list(self.stored)
        order = fixed_order([self.ranks[key] for key in keys])
        return None if order is None else [keys[place] for place in order]

    def plain(self) -> dict[Any, Any]:
        ordered = self._in_fixed_order()
        if not self.is_certain:
            refuse("a dictionary of random keys")
        if ordered is None:
            refuse("a dictionary in a random order")
        return {key: self.stored[key] for key in ordered}

    def released(self) -> Any:
        if order_left_open.get() and len(self.stored) > 1:
            refuse("a dictionary, perhaps filled in an order that polars leaves open, without sort(),")
        ordered = self._in_fixed_order()
        if (self.is_certain and ordered is not None) or not all(is_value(value) for value in self.stored.values()):
            return self.plain()
        entries = {key: _entry(self.stored[key], self.masks[key]) for key in ordered or self.stored}
        there = [self.masks[key] for key in entries]
        return SparseDict(
            entries, () if ordered is not None else places_of([self.ranks[key] for key in entries], there)
        )

    def __iter__(self) -> Any:
        return iter([key for (key, _), _ in self._entries()]) if self.is_certain else iter(self.plain())

    def __len__(self) -> int:
        return len(self.stored) if self.is_certain else len(self.plain())

    def __bool__(self) -> bool:
        return len(self) > 0

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
            plain = self.plain()
            result = getattr(plain, name)(*arguments, **named)
            self.stored, self.masks = plain, dict.fromkeys(plain, True)
            self.ranks = {key: rank for rank, key in enumerate(plain)}
            self._events, self._own, self._never_empty = len(plain), set(), bool(plain)
            return result

        return changed

    def copy(self) -> "MaskedDict":
        """Return a copy that holds the same values."""
        self.look_at_all()
        made = MaskedDict(self.default, self.counting)
        made.stored, made.masks, made.ranks = dict(self.stored), dict(self.masks), dict(self.ranks)
        made._events, made._never_empty = self._events, self._never_empty
        return made

    # Writing, where the code at hand runs.
    def __setitem__(self, key: Any, value: Any) -> None:
        self.put(key, value, current())

    def __delitem__(self, key: Any) -> None:
        self.pop(key)

    def put(self, key: Any, value: Any, here: Mask, fresh: bool = False) -> None:
        """Set the value at a key under a condition; a fresh list has no other name, so a copy will do."""
        rows = self.by_rows(writing=True)
        if rows is not None:
            return rows.write(key, value, here)
        hits = self._hits(key)
        copied = fresh and isinstance(value, MaskedList) and all(is_value(item) for item, _ in value.pairs())
        if len(hits) > 1 and not copied and not is_value(value):
            refuse("a list or other container as the value at a random key")
        for level, hit in hits.items():
            if copied and not value.pairs() and self._holds_nothing(level, both(here, hit)):
                self._enter(level, self.stored[level], both(here, hit))
            else:
                self._own.discard(level)
                self._enter(level, value.copy() if copied else value, both(here, hit))
        self._never_empty = self._never_empty or here is True
        return None

    def _holds_nothing(self, level: Any, here: Mask) -> bool:
        """Say whether there is a container for an entry already, which is empty under a condition."""
        return level in self._own and holds(negated(both(here, self.masks[level])))

    def _enter(self, level: Any, value: Any, here: Mask) -> None:
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
        self._never_empty = self._never_empty or current() is True
        for level, hit in self._hits(key).items():
            missing = both(both(current(), hit), negated(self.masks.get(level, False)))
            if missing is False:
                continue
            fresh = make()
            empty = type(fresh) in (MaskedList, MaskedSet) and not fresh.unordered()
            if level in self._own and empty:
                fresh = self.stored[level]
            elif empty and level not in self.stored:
                self._own.add(level)
            else:
                self._own.discard(level)
            self._enter(level, fresh, missing)

    def setdefault(self, key: Any, default: Any = None) -> Any:
        if not is_value(default):
            refuse("setdefault() with a container that has a name")
        return self.filled_at(key, lambda: default)

    def filled_at(self, key: Any, make: Callable[[], Any]) -> Any:
        """Return the value at a key, after each missing entry that it may mean got a value of its own."""
        rows = self.by_rows(writing=True)
        if rows is not None:
            return rows.fill(key, make)
        self.setdefault_each(key, make)
        return self.lookup(key)[0]

    def count(self, items: Iterable[Segment]) -> "MaskedDict":
        """Count items as a Counter does."""
        for item, there, _ in items:
            self.put(item, self[item] + 1, both(current(), there))
        return self

    def update(self, items: Any = (), **named: Any) -> None:
        """Take over pairs of keys and values; a Counter counts."""
        pairs = items.items() if isinstance(items, dict | MaskedDict) else items
        if self.counting and pairs is items and not named:
            self.count(segments(items))
            return
        for (key, value), there, _ in itertools.chain(segments(pairs), segments(named.items())):
            self.put(key, self[key] + value if self.counting else value, both(current(), there))

    # Changed by each of many rows.
    def mask_at(self, level: Any) -> Mask:
        return self.masks.get(level, False)

    def grow_entry(self, level: Any, inserted: Mask, first: Any, grown: Grown) -> None:
        before = self.mask_at(level)
        self.stored[level] = grown(self.stored.get(level, UNDEFINED), before)
        if isinstance(self.stored[level], PlatedList | MaskedSet):
            self._own.add(level)
        if before is False:
            self.ranks[level] = self._events + first
        elif before is not True:
            new = both(inserted, negated(before))
            self.ranks[level] = select(new, self._events + first, self.ranks[level])
        self.masks[level] = either(before, inserted)

    def end_round(self, events: int, never_empty: bool) -> None:
        self._events += events
        self._never_empty = self._never_empty or never_empty


def by_key(source: Any, of_pairs: bool, made: Callable[[Any], Any]) -> MaskedDict | None:
    """Make a dictionary with keys of another: `{key: ... for key, value in source}`, in whatever order that goes.

    Return None where the source is something else: then the order may matter.
    """
    view = source.keys() if isinstance(source, MaskedDict) else source
    if not isinstance(view, View) or not (view.of_items if of_pairs else view.of_keys):
        return None
    made_of = MaskedDict()
    for (key, value), there in made(MaskedList.of_pairs(view.unordered())).pairs():
        made_of.stored[key], made_of.masks[key] = value, both(current(), there)
        made_of.ranks[key] = view.owner.ranks[key]
    made_of._events = view.owner._events
    return made_of


def _entry(value: Any, mask: Mask) -> Any:
    if isinstance(value, tuple) or (isinstance(value, RandomVariable) and value.shape):
        refuse("a dictionary of random keys")
    if holds(mask):
        return value
    return RandomVariable(maybe(as_node(mask), as_node(value), ABSENT))


class View(Masked):
    """The keys, values or items of a dictionary."""

    def __init__(
        self, owner: MaskedDict, part: Callable[[Any, Any], Any], *, of_keys: bool = False, of_items: bool = False
    ) -> None:
        self.owner = owner
        self.of_keys = of_keys
        self.of_items = of_items
        self._part = part

    def pairs(self) -> Pairs:
        return [(self._part(key, value), there) for (key, value), there in self.owner._entries()]

    def unordered(self) -> Pairs:
        owner = self.owner
        owner.look_at_all()
        return [(self._part(key, value), owner.masks[key]) for key, value in owner.stored.items()]

    def ranked(self) -> Ranked:
        owner = self.owner
        owner.look_at_all()
        return [(self._part(key, value), owner.masks[key], owner.ranks[key]) for key, value in owner.stored.items()]

    def some_there(self) -> Mask:
        return self.owner.some_there()

    def plain(self) -> list[Any]:
        if not self.is_certain:
            refuse("a dictionary of random keys")
        return [item for item, _ in self.pairs()]

    def __iter__(self) -> Any:
        return iter(self.plain())

    def __len__(self) -> int:
        return len(self.plain())
