"""Variables of a loop that is traced once for many rows: what each row adds to them or leaves there.

What the row reads of such a variable is a leaf of the graph. It may be compared with something of the row's own to
decide whether the row takes the variable's place; `running_extremes` finds out what that means for all rows.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from privug.model.graph import substitute
from privug.model.maybe import where_present
from privug.model.node import ConstantValue, Kind, Node, ancestors
from privug.model.plates import Pending, Plate, fold
from privug.model.propositions import implies
from privug.model.table import Row, row_maker
from privug.model.variable import RandomVariable, path_condition, refuse
from privug.program.logic import where
from privug.program.traced.conditions import Mask, both, either, holds, negated

HANDED_ON = "a variable that one row of many hands on to the next"


class Guarded:
    """A value that may not be looked at."""

    def __bool__(self) -> bool:
        return bool(self._refused())

    def __iter__(self) -> Any:
        return self._refused()

    def _refused(self, *_: Any) -> NoReturn:
        refuse(HANDED_ON)

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refused
    __floordiv__ = __mod__ = __pow__ = __neg__ = __abs__ = __getitem__ = __len__ = __call__ = __hash__ = _refused
    __float__ = __int__ = __index__ = __round__ = __and__ = __or__ = __invert__ = __contains__ = _refused


@dataclass(frozen=True, eq=False)
class Leaf:
    """A part of a variable that was looked at: its node, and how to have that part of another value."""

    node: Node
    part_of: Callable[[Any], Any]


@dataclass(eq=False)
class State:
    """A variable before a loop over many rows, and which parts of it the row at hand looked at."""

    base: Any
    plate: Plate
    leaves: dict[Hashable, Leaf] = field(default_factory=dict)
    unset: Node | None = None
    """The condition that no row has taken its place so far, if that was asked for."""

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
                key = id(table), name
                part = self._part_at(table, name, row_at)
                cells.append(self._leaf(key, cell.node.dtype, cell.node.levels, part))
            else:
                cells.append(cell)
        return row_maker(self.plate.names)(cells)

    @staticmethod
    def _part_at(table: Any, name: str, row_at: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
        return lambda position: row_at(table, position)[name]

    def _leaf(self, key: Hashable, dtype: Any, levels: Any, part_of: Callable[[Any], Any]) -> RandomVariable:
        if key not in self.leaves:
            self.leaves[key] = Leaf(_pending(dtype, levels), part_of)
        return RandomVariable(self.leaves[key].node)


def _item(value: Any, key: Any) -> Any:
    return value[key] if isinstance(value, tuple) else refuse(HANDED_ON)


def _pending(dtype: Any, levels: Any) -> Node:
    """Return a leaf that stands for what an earlier row left; nobody but the loop itself can tell what that is."""
    return Node(Pending(lambda: refuse(HANDED_ON)), (), (), dtype, levels, Kind.DISCRETE if levels else Kind.MIXED)


class Kept(Guarded):
    """A variable that is no number, as the row at hand finds it."""

    def __init__(self, state: State) -> None:
        self.state = state

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.state.part(name)

    def __getitem__(self, key: Any) -> Any:
        return self.state.part(key) if isinstance(key, str | int) else self._refused()


class Replaced(Guarded):
    """A variable of which the row at hand takes the place, under a condition."""

    def __init__(self, state: State, mask: Any, value: Any) -> None:
        self.state, self.mask, self.value = state, mask, value

    def read(self) -> Any:
        """Return what the variable is to the code at hand, if that runs only where it was replaced, or was not."""
        path = path_condition.get()
        if path is not None and implies(path.node, self.mask.node):
            return self.value
        if path is not None and implies(path.node, (~self.mask).node):
            return Kept(self.state)
        return self._refused()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.read(), name)

    def __getitem__(self, key: Any) -> Any:
        return self.read()[key]


class SetAside(Guarded):
    """A variable that the row at hand does not read; it takes note of what the row puts in its place."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.changes: list[tuple[Any, Any]] = []


class Lost(Guarded):
    """Stands for a variable whose value would be another row's."""

    __add__ = __radd__ = __sub__ = __rsub__ = Guarded._refused


LOST = Lost()
"""A variable that each row assigns before it reads it, outside that row."""

FORBIDDEN = Lost()
"""A variable that a row may find as another row left it, and that is no number that grows."""


Term = tuple[Mask, Any]
"""What is added to a number, and under which condition."""


class Accumulator(Guarded):
    """A number and what the row at hand adds to it; `origin` is equal for what one variable was and became."""

    def __init__(self, base: Any, origin: Hashable, terms: tuple[Term, ...] = ()) -> None:
        self.base = base
        self.origin = origin
        self.terms = terms

    def __add__(self, term: Any) -> "Accumulator":
        return Accumulator(self.base, self.origin, (*self.terms, (True, _number(term))))

    __radd__ = __add__

    def __sub__(self, term: Any) -> "Accumulator":
        return Accumulator(self.base, self.origin, (*self.terms, (True, -_number(term))))

    def __rsub__(self, other: Any) -> Any:
        return self._refused()

    def total(self, plate: Plate) -> Any:
        """Return the number after all rows of the plate."""
        terms = (term_where(*term) for term in joined_terms(self.terms))
        return sum((fold(plate, "sum", resolved(term)) for term in terms), self.base)


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


def found(value: Any) -> Any:
    """Return what stands for a variable as the row at hand finds it, with what that row added; other values as is."""
    if isinstance(value, Replaced):
        value = value.read()
    if isinstance(value, Kept):
        return value.state.number()
    if not isinstance(value, Accumulator):
        return value
    if not isinstance(value.origin, State):
        refuse(HANDED_ON)
    return sum((term_where(*term) for term in value.terms), value.origin.number())


def selected(mask: Any, new: Any, old: Any) -> Any:
    """Return a variable that the row at hand changes only where the mask holds."""
    if old is LOST:
        return new
    if isinstance(old, SetAside):
        old.changes.append((mask, new))
        return new
    if isinstance(new, Accumulator) and isinstance(old, Accumulator):
        return _grown(mask, new, old)
    if isinstance(new, Replaced) and new.state is _unchanged(old):
        return Replaced(new.state, mask & new.mask, new.value)
    if isinstance(old, Replaced) and new is old.value:
        return Replaced(old.state, mask | old.mask, new)
    if not isinstance(new, Guarded) and (state := _unchanged(old)) is not None:
        return Replaced(state, mask, new)
    if not isinstance(old, Guarded) and (state := _unchanged(new)) is not None:
        return Replaced(state, ~mask, old)
    return refuse("a variable that some of many rows set anew")


def _unchanged(value: Any) -> State | None:
    """Return the variable that a value is, as the row at hand found it."""
    if isinstance(value, Kept):
        return value.state
    same = isinstance(value, Accumulator) and not value.terms and isinstance(value.origin, State)
    return value.origin if same else None


def _grown(mask: Any, new: Accumulator, old: Accumulator) -> Accumulator:
    kept = len(old.terms)
    same = all(a is b for a, b in zip(new.terms, old.terms, strict=False))
    if new.origin != old.origin or len(new.terms) < kept or not same:
        refuse("a variable that some of many rows set anew")
    grown = (*old.terms, *((both(mask, here), term) for here, term in new.terms[kept:]))
    return Accumulator(old.base, old.origin, grown)


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


def carried(values: Sequence[Callable[[], Any]], plate: Plate) -> tuple[Any, ...]:
    """Return variables as a loop over many rows may use them: they may grow, or be replaced."""
    return tuple(_carried(value, plate) for value in values)


def _carried(value: Callable[[], Any], plate: Plate) -> Any:
    try:
        plain = value()
    except NameError:
        return FORBIDDEN
    numeric = isinstance(plain, int | float) and not isinstance(plain, bool)
    random = isinstance(plain, RandomVariable) and plain.node.levels is None and plain.node.shape == ()
    if numeric or (random and plain.node.dtype.kind in "if"):
        return Accumulator(plain, State(plain, plate))
    return Kept(State(plain, plate)) if is_replaceable(plain) else FORBIDDEN


def set_aside(values: Sequence[Callable[[], Any]], plate: Plate) -> tuple[Any, ...]:
    """Return variables that each row has for itself, or replaces without a look at them."""
    return tuple(_set_aside(value, plate) for value in values)


def _set_aside(value: Callable[[], Any], plate: Plate) -> Any:
    try:
        plain = value()
    except NameError:
        return LOST
    return SetAside(State(plain, plate)) if is_replaceable(plain) else LOST


def is_replaceable(value: Any) -> bool:
    """Say whether rows may put something in the place of a value: it can never change itself."""
    if isinstance(value, tuple):
        return all(map(is_replaceable, value))
    return value is None or isinstance(value, RandomVariable | bool | int | float | str | np.generic)
