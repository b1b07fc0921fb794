"""Values and containers under conditions: what is there, which of several it is, and in which order."""

import copy
import dataclasses
import itertools
import operator
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Sequence
from types import NoneType
from typing import Any, NoReturn

import numpy as np

from privug.model.categories import map_levels
from privug.model.conditions import Mask as Mask
from privug.model.conditions import any_of as any_of
from privug.model.conditions import both as both
from privug.model.conditions import either as either
from privug.model.conditions import holds as holds
from privug.model.conditions import negated as negated
from privug.model.maybe import Maybe, is_maybe, surely_present
from privug.model.node import Array, Node, ancestors
from privug.model.operations import ArrayFunction, array_function
from privug.model.plan import Plan
from privug.model.plated_tables import RaggedTable
from privug.model.plates import current_plate
from privug.model.table import like_row
from privug.model.variable import Columns, RandomVariable, refuse, stack_values
from privug.prior.frame import MISSING_TYPES
from privug.program.logic import where
from privug.program.outputs import settled
from privug.program.traced.conditions import current as current
from privug.program.traced.conditions import fail_where as fail_where
from privug.program.traced.conditions import under as under
from privug.program.traced.conditions import with_failures
from privug.program.traced.slots import Unreadable, selected


class Masked(ABC):
    """A container of the program's own of which each item is there or not, depending on a random condition.

    Only code that knows about masks (loops, `sum`, `len`, ...) may use it: anything that needs one plain
    container is refused.
    """

    is_iterator = False
    """Whether it can be read once only."""

    @abstractmethod
    def pairs(self) -> list[tuple[Any, Mask]]:
        """Return what iteration gives, each item with the condition under which it is there."""

    def unordered(self) -> list[tuple[Any, Mask]]:
        """Return the same, in any order."""
        return self.pairs()

    def ranked(self) -> list[tuple[Any, Mask, Any]] | None:
        """Return the same with numbers by which the items are ordered, if it is known by numbers alone."""
        return None

    def some_there(self) -> Mask:
        """Return whether any item is there."""
        return any_of([mask for _, mask in self.unordered()])

    @abstractmethod
    def plain(self) -> Any:
        """Return the plain container, if there is one."""

    def released(self) -> Any:
        """Return what stands for it in an output."""
        return self.plain()

    def one_of(self, possible: list[tuple[Mask, Any]]) -> Any:
        """Return the container whose condition holds; what is put into it is put into that one."""
        return possible[0][1] if len(possible) == 1 else refuse("a choice between containers")

    @property
    def is_certain(self) -> bool:
        """Whether all items are there for sure."""
        return all(holds(mask) for _, mask in self.unordered())


class CallOnly(ABC):
    """A value of which nothing is known but what plain calls on it return."""

    __hash__ = None  # type: ignore[assignment]

    @abstractmethod
    def applied(self, function: Any) -> Any:
        """Return what a plain function of it gives."""

    @abstractmethod
    def chosen(self, mask: Mask, new: Any, old: Any) -> Any:
        """Return `new` where the mask holds and `old` elsewhere; one of them is this value."""

    @abstractmethod
    def released(self) -> Any:
        """Return what stands for it in an output."""


class MaskedList(list[Any], Masked):
    """A list of the program's own; the items are those that may be there, `masks` says when."""

    def __init__(self, items: Any = ()) -> None:
        super().__init__(items)
        self.masks: list[Mask] = [True] * list.__len__(self)
        self.plate = current_plate.get()

    @staticmethod
    def of_pairs(pairs: Iterable[tuple[Any, Mask]]) -> "MaskedList":
        """Make a list of items with their conditions."""
        made = MaskedList()
        for item, mask in pairs:
            made.add(item, mask)
        return made

    def add(self, item: Any, mask: Mask) -> None:
        """Append an item that is there under a condition."""
        if current_plate.get() is not self.plate:
            refuse("a list that grows with each of many rows")
        if mask is not False:
            list.append(self, present_item(item))
            self.masks.append(mask)

    def append(self, item: Any) -> None:
        self.add(item, True)

    def replace(self, pairs: Iterable[tuple[Any, Mask]]) -> None:
        """Hold other items."""
        items = list(pairs)
        list.__init__(self, [item for item, _ in items])
        self.masks = [mask for _, mask in items]

    def pairs(self) -> list[tuple[Any, Mask]]:
        if len(self.masks) != list.__len__(self):  # some other method of lists changed it
            if any(mask is not True for mask in self.masks):
                refuse("a change of a list of random length")
            self.masks = [True] * list.__len__(self)
        return list(zip(list.__iter__(self), self.masks, strict=True))

    def plain(self) -> list[Any]:
        if not self.is_certain:
            refuse("a list of random length")
        return [item for item, _ in self.pairs()]

    def one_of(self, possible: list[tuple[Mask, Any]]) -> Any:
        if not all(isinstance(value, MaskedList) for _, value in possible):
            refuse("a choice between containers")
        return possible[0][1] if possible[0][0] is True else OneOf(possible)

    def __len__(self) -> int:
        return len(self.plain())

    def __iter__(self) -> Iterator[Any]:
        length = len(self)  # refused if it is random; a loop sees what it changes in the list on its way
        return list.__iter__(self) if type(self) is MaskedList else (self.plain()[k] for k in range(length))

    def __getitem__(self, key: Any) -> Any:
        if self.is_certain:
            found = self.plain()[key]
            return MaskedList(found) if isinstance(key, slice) else found
        if not isinstance(key, slice):
            return self._item(operator.index(key))
        if key.step not in (None, 1) or any(bound is not None and bound < 0 for bound in (key.start, key.stop)):
            refuse("such a slice of a list of random length")
        pairs, before = self.pairs(), 0
        inside = MaskedList()
        for (item, there), place in zip(pairs, _positions(pairs), strict=True):
            if key.stop is not None and before >= key.stop:  # so many are there for sure that this one is not meant
                break
            inside.add(item, both(there, _between(key.start, place, key.stop)))
            before += there is True
        return inside

    def _item(self, key: int) -> Any:
        """Return the item at a position among those that are there."""
        pairs, wanted = (self.pairs(), key) if key >= 0 else (self.pairs()[::-1], -1 - key)
        placed = zip(pairs, _positions(pairs), strict=True)
        hits = [(both(there, truth(place == wanted)), item) for (item, there), place in placed]
        fail_where(negated(any_of([hit for hit, _ in hits])), IndexError("list index out of range"))
        return one_of(hits)

    def __eq__(self, other: object) -> bool:
        return self.plain() == other

    __hash__ = None  # type: ignore[assignment]

    def __add__(self, other: Any) -> Any:
        more = other.pairs() if isinstance(other, MaskedList) else [(item, True) for item in other]
        return MaskedList.of_pairs([*self.pairs(), *more])

    def __setitem__(self, key: Any, value: Any) -> None:
        before = self.masks[: key + 1] if isinstance(key, int) and key >= 0 else self.masks
        if isinstance(self, OneOf) or any(mask is not True for mask in before):
            refuse("an assignment to an item of a list of random length")
        list.__setitem__(self, key, value)

    def __mul__(self, times: Any) -> Any:
        if isinstance(times, RandomVariable):
            refuse("a list of random length")
        return MaskedList.of_pairs(self.pairs() * times)

    __rmul__ = __mul__

    def copy(self) -> "MaskedList":
        return MaskedList.of_pairs(self.pairs())


def _only_if_certain(name: str) -> Any:
    method = getattr(list, name)

    def guarded(self: MaskedList, *arguments: Any, **named: Any) -> Any:
        if isinstance(self, OneOf) or not self.is_certain:
            refuse(f"{name.strip('_')}() of a list of random length")
        result = method(self, *arguments, **named)
        self.masks = [True] * list.__len__(self)
        return result

    guarded.__name__ = name
    return guarded


for _name in (
    "sort", "reverse", "count", "index", "insert", "pop", "remove", "clear", "extend", "__delitem__",
    "__contains__", "__lt__", "__le__", "__gt__", "__ge__", "__reversed__", "__iadd__", "__imul__",
):  # fmt: skip
    setattr(MaskedList, _name, _only_if_certain(_name))


class OneOf(MaskedList):
    """One of several lists, depending on random conditions; what is appended to it is appended to that one."""

    def __init__(self, targets: Iterable[tuple[Mask, MaskedList]]) -> None:
        super().__init__()
        self.targets: list[tuple[Mask, MaskedList]] = []
        for mask, target in targets:
            inner = target.targets if isinstance(target, OneOf) else [(True, target)]
            self.targets += [(both(mask, condition), one) for condition, one in inner]

    def add(self, item: Any, mask: Mask) -> None:
        for condition, target in self.targets:
            target.add(item, both(condition, mask))

    def pairs(self) -> list[tuple[Any, Mask]]:
        inside = [(condition, target.pairs()) for condition, target in self.targets]
        lengths = {len(pairs) for _, pairs in inside}
        if len(lengths) == 1 and all(there is True for _, pairs in inside for _, there in pairs):
            columns = zip(*([(mask, item) for item, _ in pairs] for mask, pairs in inside), strict=True)
            return [(one_of(list(column)), True) for column in columns]
        return [(item, both(condition, there)) for condition, pairs in inside for item, there in pairs]


def _positions(pairs: list[tuple[Any, Mask]]) -> list[Any]:
    """Return for each item how many are there before it."""
    return list(itertools.accumulate((counted(there) for _, there in pairs[:-1]), initial=0)) if pairs else []


def counted(mask: Mask) -> Any:
    """Return one where a condition holds, and else zero."""
    return int(mask) if isinstance(mask, bool) else where(mask, 1, 0)


def how_many(masks: Iterable[Mask]) -> Any:
    """Return how many conditions hold."""
    return sum(map(counted, masks))


def _between(start: int | None, place: Any, stop: int | None) -> Mask:
    after = True if start is None else truth(place >= start)
    return both(after, True if stop is None else truth(place < stop))


def one_of(alternatives: list[tuple[Mask, Any]]) -> Any:
    """Return the alternative whose condition holds; a list stays one that can be appended to."""
    possible = [(mask, value) for mask, value in alternatives if mask is not False and value is not UNDEFINED]
    containers = [value for _, value in possible if isinstance(value, Masked)]
    if containers:
        return next((one for one in containers if not isinstance(one, MaskedList)), containers[0]).one_of(possible)
    if len(possible) > 1 and not all(is_value(value) or isinstance(value, CallOnly) for _, value in possible):
        refuse("a choice between containers")
    chosen: Any = UNDEFINED
    for mask, value in possible:
        chosen = select(mask, value, chosen)
    return chosen


def is_value(value: Any) -> bool:
    """Say whether something can never change, so that a copy is as good as the original."""
    if isinstance(value, tuple):
        return all(is_value(part) for part in value)
    return isinstance(value, RandomVariable | NoneType) or (
        not isinstance(value, Masked)
        and isinstance(value, Hashable)
        and getattr(type(value), "__hash__", None) is not object.__hash__
        and not (dataclasses.is_dataclass(value) and not isinstance(value, type))
    )


def truth(value: Any) -> Mask:
    """Return the truth value of anything, random or plain."""
    if isinstance(value, RandomVariable):
        if value.node.levels is not None:
            return RandomVariable(map_levels(value.node, bool))
        if value.node.shape != ():
            refuse("the truth of an array")
        if isinstance(value.node.operation, Maybe):
            return _truth_of_maybe(value.node, value.node.operation)
        return value if value.node.dtype == np.dtype(bool) else value != 0
    if isinstance(value, Masked):
        return value.is_iterator or value.some_there()
    if isinstance(value, CallOnly):
        return value.applied(bool)
    return truth(value.size) if isinstance(value, RaggedTable) else bool(value)


def _truth_of_maybe(node: Node, operation: Maybe) -> Mask:
    present, number = map(RandomVariable, node.parents)
    return either(negated(present), truth(number)) if operation.otherwise else both(present, truth(number))


def present_item(item: Any) -> Any:
    """Return what code at hand puts into a list: a number that may be missing elsewhere as the number that it is."""
    if isinstance(item, RandomVariable) and is_maybe(item.node) and surely_present(item.node):
        return RandomVariable(item.node.parents[1])
    return item


class Undefined:
    """Stands for a variable that has no value yet."""


UNDEFINED = Undefined()


def select(mask: Mask, new: Any, old: Any) -> Any:
    """Return `new` where the mask holds and `old` elsewhere, for any values of equal structure."""
    if new is old or mask is True or old is UNDEFINED:
        return new
    if mask is False or new is UNDEFINED:
        return old
    if isinstance(new, Unreadable) or isinstance(old, Unreadable):
        return selected(mask, new, old)
    for value in (new, old):
        if isinstance(value, CallOnly):
            return value.chosen(mask, new, old)
    if _is_single(new) and _is_single(old):
        return _select_single(mask, new, old)
    if isinstance(new, MaskedList) and isinstance(old, MaskedList):
        return OneOf([(mask, new), (negated(mask), old)])
    if type(new) in (list, MaskedList) and type(old) in (list, MaskedList):  # one of them is the program's own
        new, old = list(new), list(old)
    if type(new) is type(old) and isinstance(new, list | tuple) and len(new) == len(old):
        parts = [select(mask, a, b) for a, b in zip(new, old, strict=True)]
        return like_row(new, parts) if isinstance(new, tuple) else type(new)(parts)
    if isinstance(new, dict) and isinstance(old, dict) and list(new) == list(old):
        return OneOfDicts({key: select(mask, new[key], old[key]) for key in new})
    return refuse("a choice between values of different structure")


class OneOfDicts(dict[Any, Any]):
    """One of two dictionaries, depending on a random condition: to be read, not to be changed."""


def _is_single(value: Any) -> bool:
    return is_value(value) and (isinstance(value, RandomVariable | str) or not hasattr(value, "__iter__"))


def _select_single(mask: Mask, new: Any, old: Any) -> Any:
    same = not isinstance(new, RandomVariable) and type(new) is type(old) and new == old
    return new if same else where(mask, new, old)


MOST_PLACED = 200


def fixed_order(ranks: Sequence[Any]) -> list[int] | None:
    """Return the positions of entries in the order of their ranks; None if that is random."""
    nodes = [rank.node for rank in ranks if isinstance(rank, RandomVariable)]
    if any(node.is_random for node in ancestors(nodes)) and len(ranks) > 1:
        return None
    known = iter(Plan(nodes).run(1, np.random.default_rng(0))) if nodes else iter(())
    values = [next(known)[0] if isinstance(rank, RandomVariable) else rank for rank in ranks]
    return sorted(range(len(values)), key=values.__getitem__)


def places_of(ranks: Sequence[Any], there: Sequence[Mask]) -> list[Any]:
    """Return how many entries stand before each one, by their ranks; -1 for one that is not there.

    These tell the order, and nothing else: ranks themselves may tell at which row an entry came in.
    """
    if len(ranks) > MOST_PLACED:
        refuse(f"the order of more than {MOST_PLACED} entries")
    keys = stack_values([where(mask, rank, np.inf) for rank, mask in zip(ranks, there, strict=True)])
    order = array_function(ArrayFunction("argsort", _in_turn), [keys])
    places = RandomVariable(array_function(ArrayFunction("argsort", _in_turn), [order]))
    return [where(mask, places[entry], -1) for entry, mask in enumerate(there)]


def _in_turn(keys: Array) -> Array:
    order: Array = np.argsort(keys, axis=-1, kind="stable")
    return order


class OfStanding:
    """A part of what stands for an object: an accessor."""


class Standing(Columns, Masked):
    """An object of a library in terms of random variables; what it does not know is refused by name."""

    kind = "an object"
    """What it stands for, in messages."""

    @abstractmethod
    def listing(self) -> Any:
        """Return what iteration gives, as a list of rewritten programs."""

    def contains(self, item: Any) -> Mask:
        """Return whether something is in it."""
        return refuse(f"'in' of {self.kind}")

    def length(self) -> Any:
        """Return its len()."""
        return refuse(f"len() of {self.kind}")

    def pairs(self) -> list[tuple[Any, Mask]]:
        found: list[tuple[Any, Mask]] = self.listing().pairs()
        return found

    def some_there(self) -> Mask:
        return refuse(f"the truth of {self.kind}")

    @property
    def is_certain(self) -> bool:
        return False

    def plain(self) -> Any:
        return refuse(f"{self.kind} as output")

    def unknown(self, name: str) -> NoReturn:
        """Refuse a method or an option that is not known."""
        refuse(f"{self.kind}.{name}")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self.unknown(name)

    def __iter__(self) -> Any:
        return iter(self.listing().plain())

    def __array__(self, *arguments: Any, **options: Any) -> Any:
        self.unknown("__array__()")

    def __array_function__(self, function: Any, types: Any, arguments: Any, options: Any) -> Any:
        return refuse(f"np.{function.__name__} of {self.kind}")


MOST_BRANCHES = 8
"""Of which one appends to a list at a time."""


def without_masks(value: Any) -> Any:
    """Return a traced output with the program's own containers as plain ones; those of random size are refused."""
    return with_failures(unmasked(value))


def unmasked(value: Any) -> Any:
    """Return a value with the program's own containers as plain ones."""
    if isinstance(value, Unreadable):
        refuse("the last row's value of a variable, after a loop over many rows,")
    if type(value) is MaskedList and not value.is_certain:
        items = in_turn(value.pairs())
        return unmasked(value.plain() if items is None else items)
    if isinstance(value, Masked | CallOnly):
        return unmasked(value.released()) if isinstance(value, Masked) else value.released()
    if type(value) in (list, tuple):
        return type(value)(unmasked(item) for item in value)
    if isinstance(value, tuple) and hasattr(value, "_make"):
        return value._make(map(unmasked, value))
    if dataclasses.is_dataclass(value) and not type(value).__module__.startswith(("privug.", "builtins")):
        made = copy.copy(value)
        for field in dataclasses.fields(value):
            object.__setattr__(made, field.name, unmasked(getattr(value, field.name)))
        return made
    if type(value) in (dict, OneOfDicts):
        return {key: unmasked(item) for key, item in value.items()}
    if isinstance(value, RandomVariable) and any(
        type(level).__name__ in MISSING_TYPES for level in value.node.levels or ()
    ):
        return RandomVariable(map_levels(value.node, settled))
    return value


def in_turn(pairs: list[tuple[Any, Mask]]) -> list[Any] | None:
    """Return a list to which one of several branches appends at a time; None if its length is random.

    Items that follow each other, and of which exactly one is there, are one item of the list.
    """
    items: list[Any] = []
    waiting: list[tuple[Mask, Any]] = []
    for item, there in pairs:
        overlapping = any(not holds(negated(both(there, other))) for other, _ in waiting)
        if overlapping or len(waiting) == MOST_BRANCHES:
            return None
        waiting.append((there, item))
        if holds(any_of([mask for mask, _ in waiting])):
            items.append(one_of(waiting))
            waiting = []
    return None if waiting else items
