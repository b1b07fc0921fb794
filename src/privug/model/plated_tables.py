"""Tables with plates: segments, each a row of its own or rows that are alike, of known or of random number.

A program is traced once for tables of every size, in terms of the size.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from privug.model.categories import unify
from privug.model.operations import ArrayFunction, array_function
from privug.model.plates import Plate, dependent_on_lanes
from privug.model.table import NoColumnAttribute, Row, Table, row_maker
from privug.model.variable import RandomVariable, as_node, as_python, items_at, refuse, stack_values

MOST_SPELLED_OUT = 32
"""How many rows of plates may be asked for one by one, before it would be quicker to have all rows apart."""


class PlatedTable(Table):
    """A table in segments, each a row of its own or a plate."""

    __slots__ = ("_spelled_out", "segments")

    def __init__(self, segments: Sequence[Row | Plate]) -> None:
        super().__init__()
        self.segments = list(segments)
        self._spelled_out = 0

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        first = self.segments[0]
        return first.names if isinstance(first, Plate) else first.keys()

    @property
    def conditions(self) -> tuple[Any, ...]:
        """The condition under which each segment is there."""
        return (True,) * len(self.segments)

    def __len__(self) -> int:
        return sum(segment.size if isinstance(segment, Plate) else 1 for segment in self.segments)

    def __iter__(self) -> Iterator[Row]:
        return (self[position] for position in range(len(self)))

    def __getitem__(self, key: Any) -> Any:
        match key:
            case str():
                return self._column(key)
            case slice():
                return self._sliced(*key.indices(len(self)))
            case int() | np.integer():
                return self._row(range(len(self))[key])
        return self._row_at_random(key)

    def _row_at_random(self, key: Any) -> Row:
        """Return the row at a random position."""
        if not isinstance(key, RandomVariable) or dependent_on_lanes(key.node):
            refuse("a row at a random position of a table with many rows")
        cells = items_at([as_node(self._column(name)) for name in self.names], key)
        return row_maker(self.names)(cells)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name not in self.names:
            raise NoColumnAttribute(name, self.names)
        return self._column(name)

    def _row(self, position: int) -> Row:
        for segment in self.segments:
            if isinstance(segment, Plate):
                if position < segment.size:
                    self._spelled_out += 1
                    if self._spelled_out > MOST_SPELLED_OUT:
                        refuse("row after row of a table with many rows")
                    return segment.spelled_out(position)
                position -= segment.size
            elif position == 0:
                return segment
            else:
                position -= 1
        raise IndexError("list index out of range")

    def _sliced(self, start: int, stop: int, step: int) -> "Table":
        if step != 1:
            refuse("a slice with a step of a table with many rows")
        chosen: list[Row | Plate] = []
        for segment in self.segments:
            size = segment.size if isinstance(segment, Plate) else 1
            low, high = max(start, 0), min(stop, size)
            if low < high:
                chosen.append(segment.part(low, high) if isinstance(segment, Plate) else segment)
            start, stop = start - size, stop - size
        return PlatedTable(chosen) if chosen else Table([])

    def _column(self, name: str) -> Any:
        if name not in self.names:
            raise KeyError(f"{name!r}; it has {', '.join(self.names)}")
        parts = [segment.column(name) if isinstance(segment, Plate) else [segment[name]] for segment in self.segments]
        if len(parts) == 1:
            return parts[0]
        if not any(isinstance(cell, RandomVariable) for part in parts for cell in _looked_at(part)):
            return np.concatenate([np.asarray(part) for part in parts])
        nodes = unify([as_node(p) if isinstance(p, RandomVariable) else stack_values(list(p)) for p in parts])
        joined = array_function(ArrayFunction("concatenate", _joined), nodes)
        return RandomVariable(joined)

    def cells(self) -> list[Any]:
        """Return the cells of single rows and the columns of plates."""
        return [cell for part in self.segments for cell in (part.cells if isinstance(part, Plate) else part)]

    def spelled_out(self) -> Table:
        """Return the table with every row by itself."""
        rows: list[Row] = []
        for segment in self.segments:
            if isinstance(segment, Plate):
                rows.extend(segment.spelled_out(position) for position in range(segment.size))
            else:
                rows.append(segment)
        return Table(rows)


def _looked_at(part: Any) -> Any:
    return [part] if isinstance(part, RandomVariable) else part


def _joined(*arrays: Any) -> Any:
    samples = max(len(array) for array in arrays)
    return np.concatenate([np.broadcast_to(array, (samples, *array.shape[1:])) for array in arrays], axis=1)


def _refused(name: str) -> Any:
    def method(self: PlatedTable, *arguments: Any, **named: Any) -> Any:
        refuse(f"{name.strip('_')}() of a table with many rows")

    method.__name__ = name
    return method


for _name in (
    "append", "extend", "insert", "pop", "remove", "clear", "sort", "reverse", "index", "count", "copy", "__add__",
    "__mul__", "__rmul__", "__contains__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__reversed__",
    "__iadd__", "__imul__", "__setitem__", "__delitem__",
):  # fmt: skip
    setattr(PlatedTable, _name, _refused(_name))


@dataclass(frozen=True, eq=False)
class Outline:
    """Where the segments of a table of random size begin, and under which conditions its single rows are there."""

    starts: tuple[int, ...]
    there: tuple[Any, ...]
    names: tuple[str, ...]

    def find(self, position: int) -> tuple[int, int]:
        """Return the segment in which a row stands, and its position there."""
        place = max(k for k, start in enumerate(self.starts) if start <= position)
        return place, position - self.starts[place]


class RaggedTable(PlatedTable):
    """A table of random size, in segments: single rows, each there under a condition, and ragged plates."""

    __slots__ = ("outline", "size")

    def __init__(self, size: RandomVariable, segments: Sequence[Row | Plate], outline: Outline) -> None:
        super().__init__(segments)
        self.size = size
        self.outline = outline

    @property
    def names(self) -> tuple[str, ...]:
        return self.outline.names

    @property
    def conditions(self) -> tuple[Any, ...]:
        return self.outline.there

    def __len__(self) -> int:
        refuse("the size of a table of random size, as a plain number")

    def __iter__(self) -> Iterator[Row]:
        refuse("the rows of a table of random size, one by one,")

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice) and key.stop is None and key.step is None and isinstance(key.start, int):
            return self._from(key.start)
        refuse("a part of a table of random size")

    def _column(self, name: str) -> Any:
        refuse("a whole column of a table of random size")

    def row_at(self, position: int) -> Row:
        """Return the row at a position, whatever its cells are where there are not so many rows."""
        if position < 0:
            refuse("a row counted from the end of a table of random size")
        place, inside = self.outline.find(position)
        segment = self.segments[place]
        if isinstance(segment, Plate):
            return segment.spelled_out(inside)
        return segment if inside == 0 else refuse("a row that a table of random size hardly ever has")

    def _from(self, start: int) -> "RaggedTable":
        """Return the table without its first rows, if they are single ones."""
        starts, there = self.outline.starts, self.outline.there
        if start < 0 or start not in starts:
            refuse("a part of the rows of a table of random size")
        place = starts.index(start)
        rest = replace(self.outline, starts=tuple(s - start for s in starts[place:]), there=there[place:])
        left: Any = np.maximum(self.size - start, 0)
        return RaggedTable(as_python(left), self.segments[place:], rest)

    def spelled_out(self) -> Table:
        return self


def plain_rows(size: int, segments: Sequence[Any], outline: Outline) -> Table:
    """Return the plain table of one sample: plates come as lists of their rows."""
    table = Table()
    for segment, start in zip(segments, outline.starts, strict=True):
        if isinstance(segment, list):
            table.extend(segment)
        elif size > start:
            table.append(segment)
    return table
