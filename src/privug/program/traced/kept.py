"""Variables as each of many rows finds them: what an earlier row left there is not known while the row is traced.

What the row reads of such a variable is a leaf of the graph. It may be compared with something of the row's own to
decide whether the row takes the variable's place; `running_extremes` finds out what that means for all rows.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from privug.model.node import Kind, Node
from privug.model.plates import Pending, Plate
from privug.model.propositions import implies
from privug.model.table import Row, row_maker
from privug.model.variable import RandomVariable, path_condition, refuse

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
