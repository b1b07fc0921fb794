"""Dictionaries and lists of which some entries are there for some samples only, as random groups and rows give them."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from privug.model.maybe import Maybe
from privug.model.variable import RandomVariable


@dataclass(frozen=True)
class NoValue:
    """Stands where there is no value to look at; no observation agrees with it."""

    reason: str

    def __repr__(self) -> str:
        return f"<{self.reason}>"


ABSENT = NoValue("the output has no such part")


class SparseDict(dict[Any, Any]):
    """A dictionary whose values, where they are random, may be absent: their entries are then not there."""

    drops_empty = False
    """Whether entries that are dictionaries without entries are not there either."""

    def __init__(self, entries: Any = (), places: Sequence[Any] = ()) -> None:
        super().__init__(entries)
        self.places = tuple(places)
        """At which place each entry stands, -1 where it is not there, if the order of entries is random."""

    @property
    def parts(self) -> list[Any]:
        """What it is made of: the values, and the places of entries in a random order."""
        return [*self.values(), *self.places]

    @staticmethod
    def is_absent(value: RandomVariable) -> bool:
        """Say whether a value may be absent."""
        return isinstance(value.node.operation, Maybe) and value.node.operation.otherwise == ABSENT

    @classmethod
    def of(cls, keys: Sequence[Any], parts: Sequence[Any]) -> dict[Any, Any]:
        """Put one together: of plain values, a plain dictionary of what is there."""
        if any(isinstance(part, RandomVariable | SparseDict) for part in parts):
            return cls(zip(keys, parts, strict=False), parts[len(keys) :])
        there = [pair for pair in in_places(keys, parts) if not isinstance(pair[1], NoValue)]
        return dict(pair for pair in there if not (cls.drops_empty and pair[1] == {}))


def in_places(keys: Sequence[Any], parts: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Return plain entries in their order: as they stand, or at the places that follow the values."""
    pairs, places = list(zip(keys, parts, strict=False)), parts[len(keys) :]
    return [pairs[entry] for entry in sorted(range(len(places)), key=places.__getitem__)] if places else pairs


class SparseColumns(SparseDict):
    """Columns that are there if anything is there in them."""

    drops_empty = True


class SparseList(list[Any]):
    """A list whose items, where they are random, may be absent: they are then not there, and those behind move up.

    An item is a value, or a tuple or a dictionary of values that are all absent together.
    """

    @classmethod
    def of(cls, items: Iterable[Any]) -> list[Any]:
        """Put one together: of plain values, a plain list of what is there."""
        parts = list(items)
        if any(isinstance(one, RandomVariable) for part in parts for one in values_in(part)):
            return cls(parts)
        return [part for part in parts if not any(isinstance(one, NoValue) for one in values_in(part))]


def values_in(item: Any) -> list[Any]:
    """Return the values that an item of such a list is made of."""
    if isinstance(item, tuple | dict):
        return [one for part in (item.values() if isinstance(item, dict) else item) for one in values_in(part)]
    return [item]


class SparseFrame(SparseDict):
    """The columns of a frame of which some rows are there for some samples only: lists of the same rows."""

    def __init__(
        self,
        columns: Any = (),
        order: "RowLabels | None" = None,
        optional: frozenset[str] = frozenset(),
        places: Sequence[Any] = (),
        is_open: bool = False,
    ) -> None:
        super().__init__(columns, places)
        self.is_open = is_open
        """Whether the order of columns means nothing."""
        self.order = order
        """If the order of rows means nothing: the labels by which they are told apart."""
        self.optional = optional
        """Columns that are there only if they have rows."""

    @property
    def layout(self) -> tuple[Any, ...]:
        """What it is besides its columns."""
        return tuple(self), self.order, self.optional, self.is_open

    @classmethod
    def laid_out(cls, layout: tuple[Any, ...], parts: Sequence[Any]) -> dict[Any, Any]:
        """Put one together: of plain values, a plain dictionary of what is there."""
        names, order, optional, is_open = layout
        if any(isinstance(part, SparseList) for part in parts):
            return cls(zip(names, parts, strict=False), order, optional, parts[len(names) :], is_open)
        return {name: column for name, column in in_places(names, parts) if column or name not in optional}


@dataclass(frozen=True)
class RowLabels:
    """What tells the rows of a frame apart: some columns, and their values in each row that there may be."""

    names: tuple[str, ...]
    values: tuple[tuple[Any, ...], ...]
    keys: tuple[str, ...] = ()
    """Columns in whose order rows stand: it means nothing only among those that are equal in them."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of which something must be known to bring rows into this order."""
        return (*self.names, *self.keys)

    def sorted(self, columns: Any) -> Any:
        """Return plain columns with their rows in this order; anything else as it is."""
        if not isinstance(columns, dict) or not set(self.columns) <= set(columns):
            return columns
        if not all(isinstance(column, list) for column in columns.values()):
            return columns
        if len({len(column) for column in columns.values()}) != 1:
            return columns
        order = self.order([*zip(*(columns[name] for name in self.columns), strict=True)])
        return {name: [column[row] for row in order] for name, column in columns.items()}

    def order(self, rows: list[tuple[Any, ...]]) -> list[int]:
        """Return the places of rows in this order, of which these columns are known; other labels are last."""
        places = {label: place for place, label in enumerate(self.values)}
        width, runs = len(self.names), [0]
        for one, other in itertools.pairwise(rows):
            runs.append(runs[-1] + (one[width:] != other[width:]))
        return sorted(range(len(rows)), key=lambda row: (runs[row], places.get(rows[row][:width], len(places))))


def in_known_order(template: Any, value: Any) -> Any:
    """Return a plain value with the rows and columns of frames in order, where that means nothing in another."""
    if isinstance(template, SparseFrame):
        if template.is_open and isinstance(value, dict) and value.keys() <= template.keys():
            value = {name: value[name] for name in template if name in value}
        return template.order.sorted(value) if template.order is not None else value
    if isinstance(template, dict) and isinstance(value, dict) and template.keys() == value.keys():
        return {key: in_known_order(template[key], value[key]) for key in value}
    if type(template) in (list, tuple) and type(template) is type(value) and len(template) == len(value):
        return type(value)(in_known_order(one, two) for one, two in zip(template, value, strict=True))
    return value
