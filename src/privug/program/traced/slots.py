"""Variables of a loop that is traced once for many rows: what the row at hand finds there, adds to it or puts there.

What the row reads of such a variable is a leaf of the graph. It may be compared with something of the row's own to
decide whether the row takes the variable's place; `laws` finds out what that means for all rows.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from privug.model.conditions import Mask, both, either, holds, negated
from privug.model.graph import substitute
from privug.model.maybe import where_present
from privug.model.node import ConstantValue, Kind, Node, ancestors
from privug.model.plates import Pending, Plate
from privug.model.propositions import implies
from privug.model.table import Row, row_maker
from privug.model.variable import RandomVariable, path_condition, refuse
from privug.program.logic import where

HANDED_ON = "a variable that one row of many hands on to the next"


class Unreadable:
    """A value that may not be looked at."""

    def __bool__(self) -> bool:
        return bool(self._refused())

    def __iter__(self) -> Any:
        return self._refused()

    def _refused(self, *_: Any) -> NoReturn:
        refuse(HANDED_ON)

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refused
    __floordiv__ = __mod__ = __pow__ = __neg__ = __abs__ = _refused
    __add__: Any = _refused
    __radd__: Any = _refused
    __sub__: Any = _refused
    __rsub__: Any = _refused
    __getitem__ = __len__ = __call__ = __hash__ = __float__ = __int__ = __index__ = __round__ = _refused
    __and__ = __or__ = __invert__ = __contains__ = _refused


LOST = Unreadable()
"""A variable that each row assigns before it reads it, outside that row."""

FORBIDDEN = Unreadable()
"""A variable that a row may find as another row left it, and that can change itself."""


@dataclass(eq=False)
class Slot:
    """A variable before a loop over many rows, and what the row at hand looks at in it or puts there."""

    base: Any
    plate: Plate
    leaves: dict[Hashable, tuple[Node, Callable[[Any], Any]]] = field(default_factory=dict)
    """The parts that were looked at: the leaf that stands for each, and how to have that part of another value."""
    unset: Node | None = None
    """The condition that no row has taken its place so far, if that was asked for."""
    changes: list[tuple[Mask, Any]] = field(default_factory=list)
    """What the row puts there, and when, if it reads nothing else than what it put there itself."""

    def number(self) -> RandomVariable:
        """Return the variable as a number."""
        base = self.base.node.dtype.kind if isinstance(self.base, RandomVariable) else np.array(self.base).dtype.kind
        return self._leaf("number", np.dtype(np.int64 if base == "i" else float), None, lambda value: value)

    def is_unset(self) -> Any:
        """Return whether the variable is None."""
        if self.base is not None:
            return False
        if self.unset is None:
            self.unset = _pending(np.dtype(bool), None)
        return RandomVariable(self.unset)

    def part(self, key: Any) -> RandomVariable:
        """Return a part of the variable, which holds a row or a tuple."""
        own = self.plate.row
        if isinstance(key, str) and key in self.plate.names and isinstance(own[key], RandomVariable):
            like = own[key].node
            return self._leaf(key, like.dtype, like.levels, lambda value: _item(value, key))
        if isinstance(key, str):
            refuse(HANDED_ON)
        return self._leaf(key, np.dtype(float), None, lambda value: _item(value, key))

    def row_of(self, table: Any, row_at: Callable[[Any, Any], Any]) -> Row:
        """Return the row of a table at the position that the variable holds."""
        cells = []
        for name, cell in zip(self.plate.names, self.plate.row, strict=True):
            if isinstance(cell, RandomVariable):
                part = self._part_at(table, name, row_at)
                cells.append(self._leaf((id(table), name), cell.node.dtype, cell.node.levels, part))
            else:
                cells.append(cell)
        return row_maker(self.plate.names)(cells)

    @staticmethod
    def _part_at(table: Any, name: str, row_at: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
        return lambda position: row_at(table, position)[name]

    def _leaf(self, key: Hashable, dtype: Any, levels: Any, part_of: Callable[[Any], Any]) -> RandomVariable:
        if key not in self.leaves:
            self.leaves[key] = _pending(dtype, levels), part_of
        return RandomVariable(self.leaves[key][0])


def _item(value: Any, key: Any) -> Any:
    return value[key] if isinstance(value, tuple) else refuse(HANDED_ON)


def _pending(dtype: Any, levels: Any) -> Node:
    """Return a leaf that stands for what an earlier row left; nobody but the loop itself can tell what that is."""
    return Node(Pending(lambda: refuse(HANDED_ON)), (), (), dtype, levels, Kind.DISCRETE if levels else Kind.MIXED)


class CarriedVariable(Unreadable):
    """A variable that is no number, as the row at hand finds it."""

    def __init__(self, slot: Slot, is_read: bool = True) -> None:
        self._slot = slot
        self._is_read = is_read

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._slot.part(name)

    def __getitem__(self, key: Any) -> Any:
        return self._slot.part(key) if isinstance(key, str | int) else self._refused()


class ConditionalUpdate(Unreadable):
    """A variable of which the row at hand takes the place, under a condition."""

    def __init__(self, slot: Slot, mask: Any, value: Any) -> None:
        self._slot, self._mask, self._value = slot, mask, value

    @property
    def _read(self) -> Any:
        """What the variable is to the code at hand, if that runs only where it was replaced, or was not."""
        path = path_condition.get()
        if path is not None and implies(path.node, self._mask.node):
            return self._value
        if path is not None and implies(path.node, (~self._mask).node):
            return CarriedVariable(self._slot)
        return self._refused()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._read, name)

    def __getitem__(self, key: Any) -> Any:
        return self._read[key]


Term = tuple[Mask, Any]
"""What is added to a number, and under which condition."""


class RunningSum(Unreadable):
    """A number and what the row at hand adds to it; `origin` is the same for what one number was and became."""

    def __init__(self, origin: object, terms: tuple[Term, ...] = ()) -> None:
        self.origin = origin
        self.terms = terms

    def __add__(self, term: Any) -> "RunningSum":
        return RunningSum(self.origin, (*self.terms, (True, _number(term))))

    __radd__ = __add__

    def __sub__(self, term: Any) -> "RunningSum":
        return RunningSum(self.origin, (*self.terms, (True, -_number(term))))


def joined_terms(terms: Sequence[Term]) -> list[Term]:
    """Return terms with those as one that are the same and never added together, as in the branches of an `if`."""
    joined: list[Term] = []
    for mask, term in terms:
        for place, (other, known) in enumerate(joined):
            same = known is term or (is_one(known) and is_one(term))
            if same and mask is not True and other is not True and holds(negated(both(other, mask))):
                some = either(other, mask)
                joined[place] = (True if holds(some) else some), term
                break
        else:
            joined.append((mask, term))
    return joined


def _number(term: Any) -> Any:
    if isinstance(term, RandomVariable) and term.node.levels is None and term.node.shape == ():
        return RandomVariable(where_present(term.node))
    if isinstance(term, int | float | np.number) and not isinstance(term, bool):
        return term
    return refuse("something else than a number added for each of many rows")


def slot_of(value: Any) -> Slot | None:
    """Return the variable that a value is, as the row at hand found it: neither replaced nor added to."""
    if isinstance(value, CarriedVariable):
        return value._slot
    same = isinstance(value, RunningSum) and not value.terms and isinstance(value.origin, Slot)
    return value.origin if same else None


def is_unset(value: Any) -> Any:
    """Return whether a variable is None as the row at hand finds it; None if the value is another one."""
    return value._slot.is_unset() if isinstance(value, CarriedVariable) else None


def found(value: Any) -> Any:
    """Return what stands for a variable as the row at hand finds it, with what that row added; other values as is."""
    if isinstance(value, ConditionalUpdate):
        value = value._read
    if isinstance(value, CarriedVariable):
        return value._slot.number()
    if not isinstance(value, RunningSum):
        return value
    if not isinstance(value.origin, Slot):
        refuse(HANDED_ON)
    return sum((term_where(*term) for term in value.terms), value.origin.number())


def selected(mask: Any, new: Any, old: Any) -> Any:
    """Return a variable that the row at hand changes only where the mask holds."""
    if old is LOST:
        return new
    if isinstance(old, CarriedVariable) and not old._is_read:
        old._slot.changes.append((mask, new))
        return new
    if isinstance(new, RunningSum) and isinstance(old, RunningSum):
        return _grown(mask, new, old)
    if isinstance(new, ConditionalUpdate) and new._slot is slot_of(old):
        return ConditionalUpdate(new._slot, mask & new._mask, new._value)
    if isinstance(old, ConditionalUpdate) and new is old._value:
        return ConditionalUpdate(old._slot, mask | old._mask, new)
    if not isinstance(new, Unreadable) and (slot := slot_of(old)) is not None:
        return ConditionalUpdate(slot, mask, new)
    if not isinstance(old, Unreadable) and (slot := slot_of(new)) is not None:
        return ConditionalUpdate(slot, ~mask, old)
    return refuse("a variable that some of many rows set anew")


def _grown(mask: Any, new: RunningSum, old: RunningSum) -> RunningSum:
    kept = len(old.terms)
    same = all(a is b for a, b in zip(new.terms, old.terms, strict=False))
    if new.origin is not old.origin or len(new.terms) < kept or not same:
        refuse("a variable that some of many rows set anew")
    return RunningSum(old.origin, (*old.terms, *((both(mask, here), term) for here, term in new.terms[kept:])))


def update_of(before: Any, after: Any) -> tuple[Slot, Mask, Any] | None:
    """Return the variable of which the row at hand takes the place, when, and by what; None if it does not."""
    if isinstance(after, ConditionalUpdate):
        return after._slot, after._mask, after._value
    changes = before._slot.changes if isinstance(before, CarriedVariable) else []
    return (before._slot, *changes[0]) if len(changes) == 1 and changes[0][1] is after else None


def term_where(mask: Any, term: Any) -> Any:
    """Return what is added where the mask holds: the mask itself where that is one."""
    if mask is True:
        return term
    if isinstance(term, RandomVariable) and term.node.dtype == bool and term.node.levels is None:
        return mask & term
    return mask if is_one(term) else where(mask, term, 0)


def resolved(value: Any) -> Any:
    """Return a value with what it says of earlier rows as what that turned out to mean."""
    if not isinstance(value, RandomVariable):
        return value
    open_ones = [node for node in ancestors([value.node]) if isinstance(node.operation, Pending)]
    if not open_ones:
        return value
    meanings = {node: node.operation.meaning() for node in open_ones if isinstance(node.operation, Pending)}
    return RandomVariable(substitute([value.node], meanings)[0])


def is_one(value: Any) -> bool:
    """Say whether a term is the whole number one."""
    if not isinstance(value, RandomVariable):
        return type(value) is int and value == 1
    operation = value.node.operation
    return isinstance(operation, ConstantValue) and operation.array.dtype == np.int64 and bool(operation.array[0] == 1)


def carried(value: Any, plate: Plate) -> Any:
    """Return a variable as the rows of a plate may use it: it may grow, or be replaced."""
    numeric = isinstance(value, int | float) and not isinstance(value, bool)
    random = isinstance(value, RandomVariable) and value.node.levels is None and value.node.shape == ()
    if numeric or (random and value.node.dtype.kind in "if"):
        return RunningSum(Slot(value, plate))
    return CarriedVariable(Slot(value, plate)) if _is_replaceable(value) else FORBIDDEN


def set_aside(value: Any, plate: Plate) -> Any:
    """Return a variable as rows may use it that each have it for themselves, or replace it without a look at it."""
    return CarriedVariable(Slot(value, plate), is_read=False) if _is_replaceable(value) else LOST


def _is_replaceable(value: Any) -> bool:
    """Say whether rows may put something in the place of a value: it can never change itself."""
    if isinstance(value, tuple):
        return all(map(_is_replaceable, value))
    return value is None or isinstance(value, RandomVariable | bool | int | float | str | np.generic)
