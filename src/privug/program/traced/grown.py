"""What containers hold after each of many rows changed them: sums, lists that grew, and what the last row left."""

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any

from privug.model.maybe import is_maybe
from privug.model.operations import gather
from privug.model.plates import Plate, current_plate, fold
from privug.model.table import Row
from privug.model.variable import RandomVariable, as_node, refuse
from privug.program.logic import where
from privug.program.traced.iteration import PlatedList, Segment
from privug.program.traced.masks import Growing, Mask, Masked, MaskedList, both, current, select


class Fillable(Masked):
    """A container into which rows may put items: it says what holds what was there and what they put in."""

    @abstractmethod
    def filled(self, old: Any, before: Mask, held: list[Segment]) -> Any:
        """Return what was there where it was, with some items more."""


class GrownList(PlatedList, Growing):
    """A list to which each of many rows appended; rows by themselves may append more."""

    def add(self, item: Any, mask: Mask) -> None:
        """Append an item that is there under a condition."""
        if current_plate.get() is not None:
            refuse("a list that grows with each of many rows")
        if mask is not False:
            self.segments.append((item, mask, None))

    def append(self, item: Any) -> None:
        """Append an item where the code at hand runs."""
        self.add(item, current())

    @staticmethod
    def one_of(possible: list[tuple[Mask, Any]]) -> "PlatedList":
        """Return the list whose condition holds."""
        return OneOfGrown(possible)


class OneOfGrown(GrownList):
    """One of several lists, depending on random conditions; what is appended to it is appended to that one."""

    def __init__(self, targets: Iterable[tuple[Mask, Any]]) -> None:
        self._targets = list(targets)

    @property
    def segments(self) -> list[Segment]:  # type: ignore[override]
        """The items of all of them, each there if its list is the one."""
        return [
            (item, both(mask, there), plate)
            for mask, target in self._targets
            for item, there, plate in _segments_of(target)
        ]

    def add(self, item: Any, mask: Mask) -> None:
        for condition, target in self._targets:
            target.add(item, both(condition, mask))


def _segments_of(value: Any) -> list[Segment]:
    if isinstance(value, GrownList):
        return list(value.segments)
    if not isinstance(value, MaskedList):
        refuse("a list that many rows append to in the place of something else")
    return [(item, there, None) for item, there in value.pairs()]


def grown_list(old: Any, before: Mask, held: list[Segment]) -> GrownList:
    """Return a list as it is after many rows appended to it."""
    first = [] if before is False else _segments_of(old)
    return GrownList([*((item, both(before, there), plate) for item, there, plate in first), *held])


def summed(sums: list[Any], start: Any) -> Any:
    """Return a number to which rows added what comes to some sums."""
    if not is_number(start):
        refuse("something else than a number added for each of many rows")
    return sum(sums[1:], sums[0]) if sums and type(start) is int and start == 0 else sum(sums, start)


def replaced(plate: Plate, old: Any, value: Any, there: Mask) -> Any:
    """Return what the last row left that put something in the place of what was there."""
    last = fold(plate, "max", where(there, plate.position, -1))
    new = at_row(plate, value, last if there is True else where(last < 0, 0, last))
    return select(True if there is True else last >= 0, new, old)


def at_row(plate: Plate, value: Any, position: Any) -> Any:
    """Return what a value that each row has for itself is for one of them; rows and tuples part by part."""
    if isinstance(value, tuple):
        parts = [at_row(plate, part, position) for part in value]
        return Row(**dict(zip(value.keys(), parts, strict=True))) if isinstance(value, Row) else type(value)(parts)
    if not isinstance(value, RandomVariable):
        return value
    if is_maybe(value.node):
        refuse("a number that may be missing, of one of many rows")
    everywhere = fold(plate, "map", value)
    taken = gather(as_node(everywhere), as_node(position))
    taken.numpy = value.node.numpy
    return RandomVariable(taken)


def is_number(value: Any) -> bool:
    """Say whether something can be added to for each of many rows."""
    if isinstance(value, RandomVariable):
        return value.node.levels is None and value.node.shape == () and not is_maybe(value.node)
    return isinstance(value, int | float) and not isinstance(value, bool)
