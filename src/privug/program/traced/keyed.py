"""Containers that each of many rows changes, key by key: one row is traced, and folded over all of them.

The row at hand does not know what earlier rows did. It may add to the number at its key, put items into the list
or set there, put something in the place of what is there, and ask whether its key is there already, which is
settled when all code for a row has been traced: it is if a row before it was the first to put it in.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np

from privug.model.conditions import assuming
from privug.model.graph import UniqueTable
from privug.model.node import Node
from privug.model.plates import Pass, Pending, current_pass, fold
from privug.model.variable import RandomVariable, as_node, refuse
from privug.program.logic import where
from privug.program.traced.iteration import PlatedList, Segment, held_by
from privug.program.traced.keys import alternatives, has_random, positioned
from privug.program.traced.laws import is_number, left_by_the_last, summed
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
    present_item,
    select,
)
from privug.program.traced.slots import FORBIDDEN, RunningSum, Term, joined_terms, resolved, selected, term_where


def grown_list(old: Any, before: Mask, held: list[Segment]) -> PlatedList:
    """Return a list as it is after many rows appended to it."""
    first = [] if before is False else held_by(old)
    return PlatedList([*((item, both(before, there), plate) for item, there, plate in first), *held])


Grown = Callable[[Any, Mask], Any]
"""Makes of what was at a key, and of when it was there, what is there after all rows."""


class Store(Protocol):
    """A container of entries that rows change."""

    def mask_at(self, level: Any) -> Mask:
        """Return when there was an entry before the rows."""

    def grow_entry(self, level: Any, inserted: Mask, first: Any, grown: Grown) -> None:
        """Make an entry what it is after all rows; `first` is larger the later it was put in."""

    def end_round(self, events: int, never_empty: bool) -> None:
        """Take note of how many times at most rows put something in, and of whether they did so for sure."""


class Visit:
    """What the row at hand does with the entry at one key."""

    def __init__(self, owner: "Round", key: Any, hits: Mapping[Any, Mask]) -> None:
        self.key = key
        self.hits = hits
        self.there: Mask = True
        self.leaf: Node | None = None
        if any(owner.store.mask_at(level) is not True for level in hits):
            self.leaf = Node(Pending(lambda: owner.seen_before(self)), (), (), np.dtype(bool))
            self.there = RandomVariable(self.leaf)
        self.value = RunningSum(object())
        self.items: list[tuple[Any, Mask]] = []
        self.empty: Masked | None = None
        """What the rows put items into, if that is what they do."""
        self.assigned: tuple[Any, Mask] = UNDEFINED, False

    def begin_anew(self) -> list[Term]:
        """Return what was added; what was read before that may not be written back any more."""
        added, self.value = self.value.terms, RunningSum(object())
        return joined_terms(added)


class Bag:
    """The list or set at the key of the row at hand: something can be put in, and nothing else."""

    def __init__(self, visit: Visit) -> None:
        self._visit = visit

    def append(self, item: Any) -> None:
        """Put an item in, where the code at hand runs."""
        if not isinstance(self._visit.empty, MaskedList):
            refuse("append() to something else than a list")
        self._visit.items.append((present_item(item), current()))

    def add(self, item: Any) -> None:
        """Put an element in, where the code at hand runs."""
        if isinstance(self._visit.empty, MaskedList):
            refuse("add() to something else than a set")
        self._visit.items.append((present_item(item), current()))


class Round:
    """What one row, traced for all rows of a plate, does to a container."""

    def __init__(self, store: Store, passing: Pass, hits_of: Callable[[Any], dict[Any, Mask]] = alternatives) -> None:
        self.store = store
        self.passing = passing
        self._hits_of = hits_of
        self._visits: list[Visit] = []
        self._puts: list[tuple[Visit, Mask]] = []
        self._terms: dict[Any, list[Any]] = {}
        self._zeros: dict[Any, Any] = {}
        self._sums: list[tuple[Any, Any]] = []
        self._firsts: dict[Any, Any] | None = None
        self._closing = False
        passing.endings.append(self._settle)

    # What the row does.
    def visit(self, key: Any) -> Visit:
        """Return what is known of the entry at a key."""
        if self._firsts is not None or self._closing:
            refuse("a container that rows change after all is known of them")
        for visit in self._visits:
            if _is_same(visit.key, key):
                return visit
        self._visits.append(Visit(self, key, self._hits_of(key)))
        return self._visits[-1]

    def contains(self, key: Any) -> Mask:
        """Return when a key is there."""
        visit = self.visit(key)
        others = [self._put_by(other, visit) for other in self._visits if other is not visit]
        return either(visit.there, any_of(others))

    def _put_by(self, other: Visit, visit: Visit) -> Mask:
        """Return when the row at hand has put in the key of one visit by way of another."""
        here = any_of([mask for one, mask in self._puts if one is other])
        return any_of(
            [both(here, both(hit, other.hits[level])) for level, hit in visit.hits.items() if level in other.hits]
        )

    def read(self, key: Any, default: Any = UNDEFINED) -> Any:
        """Return what is at a key, which can be added to; without a default it must be there."""
        visit, there = self.visit(key), self.contains(key)
        if visit.empty is not None:
            return Bag(visit)
        if default is UNDEFINED or default is None:
            if not holds(either(negated(current()), there)):
                fail_where(negated(there), KeyError("a random key"))
            return visit.value
        zero, rest = _default(default)
        for level in visit.hits:
            if type(self._zeros.setdefault(level, zero)) is not type(zero):
                refuse("whole numbers and others as defaults of one dictionary")
        return visit.value + term_where(negated(there), default) if rest and there is not True else visit.value

    def fill(self, key: Any, make: Callable[[], Any]) -> Any:
        """Put something in where a key is not there yet, and return what is at the key."""
        visit, fresh, there = self.visit(key), make(), self.contains(key)
        if isinstance(fresh, Masked) and not fresh.unordered():
            self._holds(visit, fresh)
        else:
            self._add(visit, self.read(key, fresh), current())
        if there is not True:
            self._put(visit, current())
        return self.read(key)

    def _holds(self, visit: Visit, empty: Masked) -> None:
        other = visit.empty is not None and type(visit.empty) is not type(empty)
        if other or visit.value.terms or visit.assigned[1] is not False:
            refuse("values of several kinds at one key")
        visit.empty = empty

    def write(self, key: Any, value: Any, here: Mask) -> None:
        """Set what is at a key, under a condition."""
        if here is False:
            return
        visit, there = self.visit(key), self.contains(key)
        new = there is not True and holds(negated(both(here, there)))
        if isinstance(value, RunningSum):
            self._add(visit, value, here)
        elif new and isinstance(value, MaskedList):
            self._holds(visit, MaskedList())
            visit.items += [(item, both(here, mask)) for item, mask in value.pairs()]
        elif new and is_number(value) and visit.assigned[1] is False:
            self._add(visit, visit.value + value, here)
        elif is_value(value) and not isinstance(value, tuple) and visit.empty is None and not visit.value.terms:
            last, before = visit.assigned
            visit.assigned = select(here, value, last), either(before, here)
        else:
            refuse("such a value that each of many rows puts into a container")
        self._put(visit, here)

    def _add(self, visit: Visit, value: RunningSum, here: Mask) -> None:
        if visit.empty is not None or visit.assigned[1] is not False:
            refuse("values of several kinds at one key")
        visit.value = selected(here, value, visit.value)

    def insert(self, key: Any, here: Mask) -> None:
        """Put a key in, under a condition."""
        if here is not False:
            self._put(self.visit(key), here)

    def _put(self, visit: Visit, here: Mask) -> None:
        """Take note that a key is put in; what was read at others that may be the same is out of date."""
        if visit.there is not True:
            self._puts.append((visit, here))
            there = either(visit.there, here)
            visit.there = True if holds(there) else there
        for other in self._visits:
            if other is not visit and not other.hits.keys().isdisjoint(visit.hits):
                self._collect(other)

    def _collect(self, visit: Visit) -> None:
        for mask, term in visit.begin_anew():
            for level, hit in visit.hits.items():
                self._terms.setdefault(level, []).append(term_where(both(hit, mask), term))

    # What all rows did.
    @property
    def _step(self) -> int:
        return max(1, len(self._puts))

    def _inserted(self, level: Any) -> list[tuple[int, Mask]]:
        """Return when a row puts in an entry that is not there yet, for each place in the code that does."""
        found = []
        for place, (visit, here) in enumerate(self._puts):
            if level in visit.hits:
                condition = both(visit.hits[level], here)
                if visit.leaf is not None:
                    condition = resolved(assuming(condition, {visit.leaf: False}))
                found.append((place, condition))
        return found

    def first(self, level: Any) -> Any:
        """Return when the first row put in an entry, later than all if none did."""
        self._close()
        assert self._firsts is not None
        if level not in self._firsts:
            plate, step = self.passing.plate, self._step
            moment: Any = plate.size * step
            for place, here in reversed(self._inserted(level)):
                now = plate.position if step == 1 else plate.position * step + place
                moment = now if here is True else where(here, now, moment)
            self._firsts[level] = fold(plate, "min", moment)
        return self._firsts[level]

    def _close(self) -> None:
        if self._firsts is None:
            self._firsts = {}
            for visit in self._visits:
                self._collect(visit)

    def seen_before(self, visit: Visit) -> Node:
        """Return the condition that the key of a visit was there before the row at hand."""
        self._close()
        if self._closing:
            refuse("rows of which each depends on what others did")
        self._closing = True
        now = self.passing.plate.position * self._step
        seen = [
            both(hit, either(self.store.mask_at(level), self._firsts_before(level, now)))
            for level, hit in visit.hits.items()
        ]
        self._closing = False
        return as_node(any_of(seen))

    def _firsts_before(self, level: Any, now: Any) -> Mask:
        return self.first(level) < now if self.store.mask_at(level) is not True else True

    def _settle(self) -> None:
        self._close()
        for level in dict.fromkeys(level for visit in self._visits for level in visit.hits):
            puts = self._inserted(level)
            there = any_of([here for _, here in puts])
            if there is False and level not in self._terms:
                continue
            inserted = there if isinstance(there, bool) else self._some_row(there, level)
            first = None if self.store.mask_at(level) is True else self.first(level)
            self.store.grow_entry(level, inserted, first, self._grown(level))
        never_empty = any(here is True for _, here in self._puts)
        self.store.end_round(self._step * self.passing.plate.size, never_empty)

    def _some_row(self, there: RandomVariable, level: Any) -> Mask:
        """Return whether a condition holds for some row: by how many, where rows are counted anyway."""
        return self._sum(there) > 0 if level in self._terms else fold(self.passing.plate, "any", there)

    def _sum(self, term: Any) -> Any:
        """Return the sum of a term over all rows: one quantity for terms that are the same."""
        for known, total in self._sums:
            if _is_same(known, term):
                return total
        self._sums.append((term, fold(self.passing.plate, "sum", term)))
        return self._sums[-1][1]

    def _grown(self, level: Any) -> Grown:
        """Return how the rows change what is at a key."""
        plate = self.passing.plate
        visits = [visit for visit in self._visits if level in visit.hits]
        filled = [visit for visit in visits if visit.empty is not None]
        assigned = [visit for visit in visits if visit.assigned[1] is not False]
        terms = [resolved(term) for term in self._terms.get(level, [])]
        if bool(filled) + bool(terms) + len(assigned) > 1 or len({type(visit.empty) for visit in filled}) > 1:
            refuse("values of several kinds at one key")
        if filled:
            items = [(item, both(there, visit.hits[level])) for visit in filled for item, there in visit.items]
            held: list[Segment] = [(resolved(item), resolved(there), plate) for item, there in items]
            made = getattr(filled[0].empty, "filled", grown_list)
            return lambda old, before: made(old, before, held)
        if assigned:
            value, there = assigned[0].assigned
            last = resolved(value), resolved(both(there, assigned[0].hits[level]))
            return lambda old, before: left_by_the_last(plate, old, *last)
        zero = self._zeros.get(level, 0)
        sums = [self._sum(term) for term in terms]
        return lambda old, before: summed(sums, select(before, old, zero) if before is not False else zero)


def _default(value: Any) -> tuple[Any, bool]:
    """Return the zero of a default's kind, and whether it is another number."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        refuse("something else than a number as default of a dictionary that many rows change")
    return type(value)(0), value != 0


def _is_same(key: Any, other: Any) -> bool:
    """Say whether two keys are the same for every row, as far as that can be seen."""
    if key is other:
        return True
    if isinstance(key, tuple) and isinstance(other, tuple):
        return len(key) == len(other) and all(map(_is_same, key, other))
    if isinstance(key, RandomVariable) and isinstance(other, RandomVariable):
        images = UniqueTable().images([key.node, other.node])
        return images[key.node] is images[other.node]
    random = any(map(has_random, (key, other)))
    return not random and key == other


class Changeable(Masked):
    """A container of the program's own that rows may change."""

    def __init__(self) -> None:
        self._made_in = current_pass.get()
        self._read_in: Pass | None = None
        self._round: Round | None = None

    @abstractmethod
    def mask_at(self, level: Any) -> Mask:
        """Return when there was an entry before the rows."""

    @abstractmethod
    def grow_entry(self, level: Any, inserted: Mask, first: Any, grown: Grown) -> None:
        """Make an entry what it is after all rows."""

    @abstractmethod
    def end_round(self, events: int, never_empty: bool) -> None:
        """Take note of how many times at most rows put something in, and of whether they did so for sure."""

    def by_rows(self, *, writing: bool = False) -> Round | None:
        """Return the round in which each of many rows changes this container, if the code at hand stands for many."""
        passing = current_pass.get()
        if passing is self._made_in or passing is None:
            return None
        if self._round is not None and self._round.passing is passing:
            return self._round
        if not writing:
            self._read_in = passing
            return None
        if self._read_in is passing:
            refuse("a container that each of many rows reads, and then changes")
        self._round = Round(self, passing)
        return self._round

    def look_at_all(self) -> None:
        """Take note that all entries are looked at, which a row that changes some of them cannot do."""
        if self.by_rows() is not None:
            refuse("a container that each of many rows reads and changes")


class PlainEntries:
    """The entries of a plain dictionary or list, all of which are there."""

    def __init__(self, container: Any) -> None:
        self._container = container
        self._before = dict(container) if isinstance(container, dict) else dict(enumerate(container))
        for level in self._before:  # nobody may look at what other rows change
            container[level] = FORBIDDEN

    def hits_of(self, key: Any) -> dict[Any, Mask]:
        """Return the entries that a key may mean."""
        if isinstance(self._container, dict):
            hits = alternatives(key)
        else:
            places = range(len(self._container))
            known = not has_random(key) and -len(places) <= key < len(places)
            hits = {places[key]: True} if known else {k: positioned(key, k, len(places)) for k in places}
        within = {level: hit for level, hit in hits.items() if self.has(level)}
        if isinstance(self._container, list) or len(within) < len(hits):
            missing = negated(any_of(list(within.values())))
            fail_where(missing, KeyError(key) if isinstance(self._container, dict) else IndexError("list index"))
        return within

    def has(self, level: Any) -> bool:
        """Say whether there is an entry."""
        return not isinstance(self._container, dict) or level in self._container

    def mask_at(self, level: Any) -> Mask:
        return True

    def grow_entry(self, level: Any, inserted: Mask, first: Any, grown: Grown) -> None:
        self._before[level] = grown(self._before[level], True)

    def end_round(self, events: int, never_empty: bool) -> None:
        for level, value in self._before.items():
            self._container[level] = value


def changed_by_rows(container: Any) -> Round | None:
    """Return the round in which rows change a plain container, if one is under way."""
    passing = current_pass.get()
    found: Round | None = None if passing is None else passing.changed.get(id(container))
    return found


def open_round(container: Any) -> None:
    """Let rows change a container that the loop's body is seen to change."""
    passing = current_pass.get()
    assert passing is not None
    if isinstance(container, Changeable):
        container.by_rows(writing=True)
    elif type(container) in (dict, MaskedList, list) and id(container) not in passing.changed:
        if isinstance(container, MaskedList) and (container.plate is passing.plate or not container.is_certain):
            return
        store = PlainEntries(container)
        passing.changed[id(container)] = Round(store, passing, store.hits_of)
