"""Iteration in rewritten programs: item by item, or once for all rows of a plate, by position too."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from privug.model.node import Node
from privug.model.numpy_functions import Cast
from privug.model.operations import Index
from privug.model.plated_tables import PlatedTable, RaggedTable
from privug.model.plates import Plate, current_plate, fold, going_through
from privug.model.variable import RandomVariable, refuse
from privug.program.traced.masks import (
    Mask,
    Masked,
    MaskedList,
    OneOf,
    Standing,
    both,
    current,
    either,
    present_item,
    truth,
    under,
)
from privug.program.traced.slots import slot_of
from privug.scoping import Held, holding

Segment = tuple[Any, Mask, Plate | None]
"""An item, the condition under which it is there, and the plate whose rows it stands for, if any."""


order_left_open: Held[bool] = Held(False)
"""Whether the program being traced went through items in an order that a library leaves open."""


def iterate(items: Any) -> Iterator[tuple[Any, Mask]]:
    """Yield the items of anything iterable one by one, each with the condition under which it is there."""
    if isinstance(items, Standing):
        items = items.listing()
    if isinstance(items, MaskedList):
        yield from _live(items)
    elif isinstance(items, Masked):
        yield from items.pairs()
    else:
        for item in items:
            yield item, True


def _live(items: MaskedList) -> Iterator[tuple[Any, Mask]]:
    """Yield the items of a list as a loop sees them that changes the list on its way."""
    length = len(items.pairs())  # brings the masks up to date, too
    if isinstance(items, OneOf):
        for position in range(length):
            yield items.pairs()[position]
        return
    for position, item in enumerate(list.__iter__(items)):
        yield item, items.masks[position] if position < len(items.masks) else True


class PlatedList(Masked):
    """A list of which some items stand for many rows: what a comprehension gives, or what rows appended to."""

    def __init__(self, held: list[Segment]) -> None:
        self._segments = held

    @property
    def segments(self) -> list[Segment]:
        """The items, each with its condition and its plate."""
        return self._segments

    def add(self, item: Any, mask: Mask) -> None:
        """Append an item that is there under a condition."""
        if current_plate.get() is not None:
            refuse("a list that grows with each of many rows")
        if mask is not False:
            self._segments.append((item, mask, None))

    def append(self, item: Any) -> None:
        """Append an item where the code at hand runs."""
        self.add(item, current())

    def one_of(self, possible: list[tuple[Mask, Any]]) -> "PlatedList":
        return OneOfPlated(possible)

    def pairs(self) -> list[tuple[Any, Mask]]:
        return refuse("a list of many rows, item by item,")

    def plain(self) -> Any:
        return refuse("a list of many rows, item by item,")

    def some_there(self) -> Mask:
        return any_item(self, lambda _, there: there)

    @property
    def is_certain(self) -> bool:
        return all(mask is True and not (plate and plate.is_ragged) for _, mask, plate in self.segments)


class OneOfPlated(PlatedList):
    """One of several lists, depending on random conditions; what is appended to it is appended to that one."""

    def __init__(self, targets: Iterable[tuple[Mask, Any]]) -> None:
        self._targets = list(targets)

    @property
    def segments(self) -> list[Segment]:
        """The items of all of them, each there if its list is the one."""
        return [
            (item, both(mask, there), plate) for mask, target in self._targets for item, there, plate in held_by(target)
        ]

    def add(self, item: Any, mask: Mask) -> None:
        for condition, target in self._targets:
            target.add(item, both(condition, mask))


def held_by(items: Any) -> list[Segment]:
    """Return the items of a list, each with its condition and its plate."""
    if isinstance(items, PlatedList):
        return list(items.segments)
    if not isinstance(items, Masked) or items.is_iterator:
        refuse("columns of many rows beside something else")
    return [(item, there, None) for item, there in items.pairs()]


class Stream(Masked):
    """What a generator expression, map() or filter() gives: it can be read once."""

    is_iterator = True

    def __init__(self, held: MaskedList | PlatedList) -> None:
        self._items: MaskedList | PlatedList | None = held

    def held(self) -> MaskedList | PlatedList:
        """Return what is still to be read."""
        if self._items is None:
            refuse("a generator that is read twice")
        return self._items

    def taken(self) -> MaskedList | PlatedList:
        """Read everything."""
        items, self._items = self.held(), None
        return items

    def unordered(self) -> list[tuple[Any, Mask]]:
        return self.held().pairs()

    def pairs(self) -> list[tuple[Any, Mask]]:
        return self.taken().pairs()

    def plain(self) -> list[Any]:
        return MaskedList.of_pairs(self.pairs()).plain()

    @property
    def is_certain(self) -> bool:
        return self.held().is_certain

    def __iter__(self) -> Iterator[Any]:
        return iter(self.plain())


def zipped(several: Sequence[Any], strict: bool = False) -> Stream:
    """Return the items of several columns of the same rows side by side."""
    lists = [part.listing() if isinstance(part, Standing) else part for part in several]
    held = [held_by(part) for part in lists]
    conditions = [[(there, plate) for _, there, plate in part] for part in held]
    if any(not _same_conditions(conditions[0], other) for other in conditions[1:]):
        refuse("zip() of columns of different rows")
    rows = [(tuple(one[0] for one in row), *row[0][1:]) for row in zip(*held, strict=True)]
    return Stream(collected(rows))


def _same_conditions(left: list[Any], right: list[Any]) -> bool:
    alike = zip(left, right, strict=False)
    return len(left) == len(right) and all(_same(a, c) and b is d for (a, b), (c, d) in alike)


def _same(one: Mask, two: Mask) -> bool:
    """Say whether two conditions are one, or the same element of an array of them."""
    if one is two or not (isinstance(one, RandomVariable) and isinstance(two, RandomVariable)):
        return one is two
    return _same_element(one.node, two.node)


def _same_element(one: Node, two: Node) -> bool:
    taken = isinstance(one.operation, Index | Cast) and one.operation == two.operation
    return one is two or (taken and _same_element(one.parents[0], two.parents[0]))


def has_plates(items: Any) -> bool:
    """Say whether some items stand for many rows."""
    return isinstance(items, PlatedTable | PlatedList) or (
        isinstance(items, Stream) and isinstance(items.held(), PlatedList)
    )


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


def listed(items: Any, ordered: bool = True) -> list[tuple[Any, Mask]]:
    """Return the items of anything iterable with their conditions."""
    loosely = isinstance(items, Masked) and not ordered and not items.is_iterator
    return items.unordered() if loosely else list(iterate(items))


def segments(items: Any, ordered: bool = True) -> Iterator[Segment]:
    """Yield the items of anything iterable; those that stand for many rows, while their plate is gone through."""
    if isinstance(items, Standing):
        items = items.listing()
    if isinstance(items, PlatedTable):
        yield from _entered(
            [_segment(part, there) for part, there in zip(items.segments, items.conditions, strict=True)]
        )
    elif has_plates(items):
        held = items.taken() if isinstance(items, Stream) else items
        assert isinstance(held, PlatedList)
        yield from _entered(held.segments)
    else:
        for item, there in iterate(items) if ordered else listed(items, ordered=False):
            yield item, there, None


def _segment(part: Any, there: Mask) -> Segment:
    return (part.row, there, part) if isinstance(part, Plate) else (part, there, None)


def _entered(held: Iterable[Segment]) -> Iterator[Segment]:
    for item, there, plate in held:
        if plate is None:
            yield item, there, None
        else:
            with going_through(plate):
                yield item, there, plate


item_mask: Held[Mask] = Held(True)
"""Inside a comprehension over a list of random length: whether the item at hand is there."""


IN_ANY_ORDER = (sum, len, any, all, min, max, set)
"""Functions to which the order of the items they are given makes no difference."""


def items(values: Any, taker: Any = None) -> Iterator[Any]:
    """Yield the items of anything iterable inside a comprehension, each under its own condition."""
    if not isinstance(values, Masked | PlatedTable):
        yield from values
        return
    for item, there, _ in segments(values, ordered=not any(taker is function for function in IN_ANY_ORDER)):
        with holding(item_mask, both(item_mask.get(), there)), under(there):
            yield item


def collected(held: list[Segment]) -> MaskedList | PlatedList:
    """Make a list of items, some of which may stand for many rows."""
    if any(plate is not None for _, _, plate in held):
        return PlatedList(held)
    return MaskedList.of_pairs((item, there) for item, there, _ in held)


def filtered(pairs: Iterable[tuple[Any, Callable[[], Any]]]) -> MaskedList | PlatedList:
    """Collect a comprehension whose condition may be random: pairs of a condition and the item."""
    held: list[Segment] = []
    outside = current_plate.get()
    with holding(item_mask, True):
        for condition, item in pairs:
            there = truth(condition)
            if there is not False:
                with under(there):
                    value = present_item(item())
                    plate = current_plate.get()
                    held.append((value, both(item_mask.get(), there), None if plate is outside else plate))
    return collected(held)


def any_item(items_: Any, verdict: Callable[[Any, Mask], Mask]) -> Mask:
    """Return whether any item has a property."""
    found: Mask = False
    for item, there, plate in segments(items_, ordered=False):
        held = verdict(item, there)
        found = either(found, held if plate is None else fold(plate, "any", held))
    return found


def positions_in(items: Any, tables: Sequence[Callable[[], Any]]) -> Any:
    """Return the positions of a range as those of a table's rows, if the table has many that are alike."""
    if type(items) is not range or items.step != 1 or items.start < 0:
        return items
    for table in tables:
        try:
            rows = table()
        except NameError:  # it is made inside the loop
            continue
        if is_numbered(rows) and items.start < items.stop <= len(rows):
            held = _numbered(rows, rows[items.start : items.stop].segments, items.start)
            return Stream(PlatedList([(place, True, plate) for place, _, plate in held]))
    return items


def enumerated(rows: PlatedTable, start: int) -> Stream:
    """Return the rows of a table with many that are alike, each with its position."""
    if not is_numbered(rows) or start:
        refuse("enumerate() of such a table with many rows")
    held = _numbered(rows, rows.segments, 0)
    return Stream(PlatedList([((place, row), True, plate) for place, row, plate in held]))


def is_numbered(rows: Any) -> bool:
    """Say whether something is a table with many rows that are alike, each at a known position."""
    return isinstance(rows, PlatedTable) and not isinstance(rows, RaggedTable)


def _numbered(table: PlatedTable, segments: Sequence[Any], first: int) -> list[Segment]:
    """Return positions in a table and rows, in the order of the segments; plates beside those that stand for many."""
    held: list[Segment] = []
    for part in segments:
        if isinstance(part, Plate):
            held.append((part.position_in(table, first), part.row, part))
            first += part.size
        else:
            held.append((first, part, None))
            first += 1
    return held


def row_at(table: PlatedTable, key: Any) -> Any:
    """Return the row at a position, which may be that of the row at hand or of one that an earlier row left."""
    plate = current_plate.get()
    slot = slot_of(key)
    if slot is not None:
        return slot.row_of(table, row_at)
    if isinstance(key, RandomVariable) and plate is not None and plate.is_position_in(table, key):
        return plate.row
    return table[key]
