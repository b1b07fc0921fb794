"""What many rows leave in a variable that each of them may change: a few laws, recognised in the trace of one row.

- add: numbers that rows add up;
- any: a value that is the same for all rows, put there under a condition of the row's own;
- last: what the last row left that put something there, in containers by key;
- extreme: `if row.age > best.age: best = row`, and what goes with it. A row takes the place of what it finds where
  something of its own, the key, is larger (or smaller) than the same of what is there. So after all rows there is the
  row of the largest key, the first of them, or the last if equals replace each other; or what was there before, if no
  key is larger than its. Several variables may be replaced together.

Whatever follows none of them is lost: who looks at it is refused.
"""

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from privug.model.categories import unify
from privug.model.conditions import assuming
from privug.model.graph import UniqueTable, substitute
from privug.model.maybe import is_maybe
from privug.model.node import ConstantValue, Kind, Node, ancestors
from privug.model.operations import AtExtreme, Elementwise, Index, at_extreme, gather
from privug.model.plates import Fold, Lane, Plate, fold
from privug.model.table import like_row
from privug.model.traits import OPERATIONS, Connective, Role
from privug.model.variable import RandomVariable, as_node, refuse
from privug.prior.family import Draw
from privug.prior.plating import RaggedDraw
from privug.program.logic import where
from privug.program.traced.masks import Mask, both, is_value, select
from privug.program.traced.slots import (
    HANDED_ON,
    LOST,
    CarriedVariable,
    RunningSum,
    Slot,
    joined_terms,
    resolved,
    slot_of,
    term_where,
    update_of,
)


def after_all_rows(plate: Plate, entered: Sequence[Any], last: Sequence[Any]) -> tuple[Any, ...]:
    """Return variables after a loop over many rows, given what they were for the row at hand, at first and at last."""
    updates = [update_of(before, after) for before, after in zip(entered, last, strict=True)]
    slots = [slot for slot in map(slot_of, entered) if slot is not None]
    laws = _Replacements(plate, [update for update in updates if update is not None], slots)
    return tuple(
        laws.outcome(*update) if update is not None else _unreplaced(plate, before, after)
        for before, after, update in zip(entered, last, updates, strict=True)
    )


def _unreplaced(plate: Plate, before: Any, after: Any) -> Any:
    if isinstance(before, RunningSum) and isinstance(after, RunningSum) and before.origin is after.origin:
        assert isinstance(after.origin, Slot)
        terms = (term_where(*term) for term in joined_terms(after.terms))
        return sum((fold(plate, "sum", resolved(term)) for term in terms), after.origin.base)
    return before._slot.base if isinstance(before, CarriedVariable) and after is before else LOST


def summed(sums: list[Any], start: Any) -> Any:
    """Return a number to which rows added what comes to some sums."""
    if not is_number(start):
        refuse("something else than a number added for each of many rows")
    return sum(sums[1:], sums[0]) if sums and type(start) is int and start == 0 else sum(sums, start)


def left_by_the_last(plate: Plate, old: Any, value: Any, there: Mask) -> Any:
    """Return what the last row left that put something in the place of what was there."""
    last = fold(plate, "max", where(there, plate.position, -1))
    new = at_row(plate, value, last if there is True else where(last < 0, 0, last))
    return select(True if there is True else last >= 0, new, old)


def at_row(plate: Plate, value: Any, position: Any) -> Any:
    """Return what a value that each row has for itself is for one of them; rows and tuples part by part."""
    if isinstance(value, tuple):
        return like_row(value, [at_row(plate, part, position) for part in value])
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


@dataclass(frozen=True)
class ArgExtreme:
    """The row with the largest or smallest key: which keys win, and which rows take part."""

    plate: Plate
    key: RandomVariable
    largest: bool
    last: bool
    taking_part: Mask
    start: Any
    """The key of what was there before; None if there was nothing."""

    @property
    def _how(self) -> str:
        return "max" if self.largest else "min"

    def _is_open(self) -> bool:
        """Say whether all rows take part, each with a number: then the extreme alone tells who wins."""
        return self.taking_part is True and is_number_for_sure(self.key.node)

    @cached_property
    def won(self) -> Mask:
        """Return whether any row wins against what was there before."""
        if self.start is None:
            return fold(self.plate, "any", self.taking_part)
        if self._is_open():
            return self._beats(fold(self.plate, self._how, self.key))
        return fold(self.plate, "any", both(self.taking_part, self._beats(self.key)))

    def _beats(self, key: Any) -> Any:
        if self.largest:
            return key >= self.start if self.last else key > self.start
        return key <= self.start if self.last else key < self.start

    def outcome(self, value: Any, before: Any) -> Any:
        """Return what a value that each row has for itself is for the row that wins, or what was there before."""
        if isinstance(value, tuple) and type(value) is type(before) and len(value) == len(before):
            return like_row(value, [self.outcome(*parts) for parts in zip(value, before, strict=True)])
        joined = None if self._is_key(value) else self._joined(value, before)
        return select(self.won, self.winner(value), before) if joined is None else joined

    def _is_key(self, value: Any) -> bool:
        return isinstance(value, RandomVariable) and value.node is self.key.node and self._is_open()

    def _joined(self, value: Any, before: Any) -> RandomVariable | None:
        """Return the same as one quantity; None if the two are no values of the same kind."""
        if self.start is None or not isinstance(value, RandomVariable) or not is_value(before):
            return None
        values, other = as_node(fold(self.plate, "map", value)), as_node(before)
        if other.shape or is_maybe(other) or (values.levels is None) != (other.levels is None):
            return None
        if values.levels is not None:
            values, other = unify([values, other])
        return self._picked(values, (as_node(self.start), other)) if values.dtype == other.dtype else None

    def winner(self, value: Any) -> Any:
        """Return what a value that each row has for itself is for the row that wins, if one does."""
        if isinstance(value, tuple):
            return like_row(value, list(map(self.winner, value)))
        if not isinstance(value, RandomVariable):
            return value
        if self._is_key(value):
            return fold(self.plate, self._how, self.key)
        return self._picked(as_node(fold(self.plate, "map", value)), None)

    def _picked(self, values: Node, start: tuple[Node, Node] | None) -> RandomVariable:
        if is_maybe(values):
            refuse("a number that may be missing, of one of many rows")
        part, known = self.taking_part, is_number_for_sure(self.key.node)
        counting = part if known else both(part, self.key == self.key)  # what is no number never wins
        column = None if counting is True else as_node(fold(self.plate, "map", counting))
        keys = as_node(fold(self.plate, "map", self.key))
        return RandomVariable(at_extreme(keys, values, start, column, largest=self.largest, last=self.last))


def _is_like(base: Any, value: Any) -> bool:
    """Say whether a plain number or text may stand in the place of another value."""
    if isinstance(base, RandomVariable):
        single = base.node.shape == () and not is_maybe(base.node)
        return single and (base.node.levels is not None) == isinstance(value, str)
    known = isinstance(base, bool | int | float | str)
    return base is None or (known and isinstance(base, str) == isinstance(value, str))


def is_number_for_sure(node: Node) -> bool:
    """Say whether a quantity of a row can never be NaN, which no comparison holds of."""
    if node.dtype.kind in "bi":
        return True
    operation = node.operation
    if isinstance(operation, Lane):
        return is_number_for_sure(operation.column)
    if isinstance(operation, Draw | RaggedDraw):
        return node.kind is Kind.CONTINUOUS
    if isinstance(operation, ConstantValue):
        return bool((operation.array == operation.array).all())
    parents = node.parents
    if isinstance(operation, AtExtreme):
        parents = tuple(operation.possible(parents))
    elif isinstance(operation, Fold) and (operation.keeps_rows or operation.traits.extreme):
        parents = (operation.term,)
    elif isinstance(operation, Elementwise) and operation.traits.role is Role.CHOICE:
        parents = parents[1:]
    elif not isinstance(operation, Index) and (not isinstance(operation, Elementwise) or not operation.traits.weights):
        return False
    return all(map(is_number_for_sure, parents))


Update = tuple[Slot, Mask, Any]
"""A variable that a row replaces, under which condition, and by what."""


class _Replacements:
    """What rows put in the place of variables, by the conditions under which they do so."""

    def __init__(self, plate: Plate, updates: Sequence[Update], slots: Sequence[Slot]) -> None:
        self._plate = plate
        self._updates = updates
        self._leaves = {node: (slot, part_of) for slot in slots for node, part_of in slot.leaves.values()}
        self._unset = [slot.unset for slot in slots if slot.unset is not None]
        self._known = [*self._leaves, *self._unset]
        self._masks = self._images([as_node(mask) for _, mask, _ in updates])
        self._found: dict[Node, ArgExtreme] = {}
        self._turned: list[Node] = []
        """Comparisons that stand for the opposite of their opposite, which NaN makes a difference to."""

    def _images(self, nodes: Sequence[Node]) -> dict[Node, Node]:
        return UniqueTable(known=self._known).images(nodes)

    def outcome(self, slot: Slot, mask: Mask, value: Any) -> Any:
        """Return a variable after all rows."""
        condition = self._masks[as_node(mask)]
        if not self._reads(condition):
            return self._of_any(slot, mask, value)
        if condition not in self._found:
            self._found[condition] = self._extreme(condition)
        return self._found[condition].outcome(resolved(value), slot.base)

    def _of_any(self, slot: Slot, mask: Mask, value: Any) -> Any:
        """Return what rows leave that all put the same there; lost if each puts something of its own there."""
        if not isinstance(value, bool | int | float | str) or not _is_like(slot.base, value):
            return LOST
        return select(fold(self._plate, "any", resolved(mask)), value, slot.base)

    def _reads(self, node: Node) -> bool:
        """Say whether a quantity depends on what earlier rows left."""
        return any(one in self._leaves or one in self._unset for one in ancestors([node]))

    def _extreme(self, mask: Node) -> ArgExtreme:
        together = {slot: value for slot, other, value in self._updates if self._masks[as_node(other)] is mask}
        parts = self._parts(assuming(RandomVariable(mask), dict.fromkeys(self._unset, False)))
        key, best, larger, equals, others = self._comparison(parts)
        inside = {node: self._leaves[node] for node in ancestors([best]) if node in self._leaves}
        if any(slot not in together for slot, _ in inside.values()):
            refuse(HANDED_ON)
        own = {node: as_node(part_of(together[slot])) for node, (slot, part_of) in inside.items()}
        image = substitute([best], own)[0]
        images = self._images([image, key])
        if images[image] is not images[key] or any(map(self._reads, others)):
            refuse(HANDED_ON)
        taking_part: Mask = True
        for other in others:
            taking_part = both(taking_part, resolved(RandomVariable(other)))
        start = self._start(mask, best, inside, others)
        numbers = [key] if start is None else [key, start.node]
        if self._turned and not all(map(is_number_for_sure, numbers)):
            refuse(HANDED_ON)
        return ArgExtreme(self._plate, RandomVariable(key), larger, equals, taking_part, start)

    def _start(self, mask: Node, best: Node, inside: Mapping[Node, Any], others: Sequence[Node]) -> Any:
        """Return the key of what was there before; None if there was nothing and any row takes its place."""
        slots = [slot for slot, _ in inside.values()]
        if any(slot.base is None for slot in slots):
            at_first = self._parts(assuming(RandomVariable(mask), dict.fromkeys(self._unset, True)))
            if any(slot.base is not None for slot in slots) or at_first != list(others):
                refuse(HANDED_ON)
            return None
        before = {node: as_node(part_of(slot.base)) for node, (slot, part_of) in inside.items()}
        return RandomVariable(substitute([best], before)[0])

    def _comparison(self, parts: Sequence[Node]) -> tuple[Node, Node, bool, bool, list[Node]]:
        """Return the key, that of what is there, whether larger or equal ones win, and the other conditions."""
        reading = [part for part in parts if self._reads(part)]
        if len(reading) != 1:
            refuse(HANDED_ON)
        (condition,) = reading
        signs = condition.operation.traits.signs if isinstance(condition.operation, Elementwise) else frozenset()
        if len(signs & {-1, 1}) != 1:
            refuse(HANDED_ON)
        key, best = condition.parents
        larger = 1 in signs
        if self._reads(key):
            key, best, larger = best, key, not larger
        if self._reads(key) or key.levels is not None or key.shape:
            refuse(HANDED_ON)
        return key, best, larger, 0 in signs, [part for part in parts if part is not condition]

    def _parts(self, mask: Mask) -> list[Node]:
        """Return conditions that all must hold where a mask does."""
        if isinstance(mask, bool):
            return [] if mask else refuse(HANDED_ON)
        node = mask.node
        connective = node.operation.traits.connective if isinstance(node.operation, Elementwise) else None
        inner = list(map(RandomVariable, node.parents))
        if connective is Connective.AND:
            return list(dict.fromkeys(part for one in inner for part in self._parts(one)))
        return [self._opposite(node)] if connective is Connective.NOT else [node]

    def _opposite(self, node: Node) -> Node:
        """Return the negation of a comparison as a comparison, as if one of the two always held."""
        (compared,) = node.parents
        traits = compared.operation.traits
        if not traits.direction or not self._reads(compared):
            return node
        signs = frozenset({-1, 0, 1}) - traits.signs
        opposite = next(row for row in OPERATIONS.values() if row.role is Role.COMPARISON and row.signs == signs)
        made: Node = getattr(operator, opposite.python)(*map(RandomVariable, compared.parents)).node
        self._turned.append(made)
        return made
