"""Nested values taken apart into leaves and put together again, and values that can be told apart."""

import dataclasses
import sys
import types
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache, partial
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np

from privug.arguments import shown
from privug.errors import PriorError
from privug.model.framed import Framed, RaggedPlaces, frames, joined_column
from privug.model.plated_tables import PlatedTable, RaggedTable, plain_rows
from privug.model.plates import Plate
from privug.model.sparse import SparseColumns, SparseDict, SparseFrame, SparseList
from privug.model.table import Row, Table, row_maker
from privug.model.text import FormattedText, composed
from privug.model.variable import RandomVariable

_PLAIN = (int, float, bool, str, bytes, type(None), complex)


def incomparable(value: Any) -> Any:
    """Return the part of a value that equals nothing but itself, such as a lambda; None if there is none.

    Objects that are the same ones in every call are fine: members of an enum, functions and classes of a module.
    """
    if type(value) in _PLAIN or isinstance(value, RandomVariable):
        return None
    inside: Iterable[Any] | None = _looked_into(value)
    if inside is None:
        if isinstance(value, Coroutine):
            value.close()  # or Python complains that nobody has awaited it
        return None if _has_equality(value) else value
    return next((found for found in map(incomparable, inside) if found is not None), None)


def _looked_into(value: Any) -> Iterable[Any] | None:
    """Return what a value consists of, keys included; None if it is equal or not as a whole."""
    match value:
        case dict():
            return (*value.keys(), *value.values())
        case list() | tuple() | set() | frozenset() | deque():
            return value
        case np.ndarray():
            return value.flat if value.dtype == object else ()
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return [getattr(value, field.name) for field in dataclasses.fields(value)]
    return None


def _has_equality(value: Any) -> bool:
    if isinstance(value, types.MethodType | types.MethodWrapperType) or (
        isinstance(value, types.BuiltinMethodType) and not isinstance(value.__self__, types.ModuleType | type(None))
    ):
        return False
    equality: Any = type(value).__eq__
    if equality is not object.__eq__ or isinstance(value, Enum) or value is Ellipsis or value is NotImplemented:
        return True
    return isinstance(value, type | types.FunctionType | types.BuiltinFunctionType) and _is_found_by_name(value)


def _is_found_by_name(value: Any) -> bool:
    found: Any = sys.modules.get(value.__module__ or "")
    for name in value.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is value


def described(part: Any) -> str:
    """Say what is wrong with a part of a value that cannot be told apart, and what to use instead."""
    return (
        f"{shown(part)}, which equals nothing but itself: every call would count as another value; use values that can "
        "be compared, such as numbers, strings, tuples, or objects whose class has __eq__"
    )


Taken = tuple[tuple[Any, ...], Sequence[Any]]
"""What is known of a container besides its parts, and the parts."""


class Form(NamedTuple):
    """How containers of one type are taken apart, and put together again of other parts."""

    taken: Callable[[Any], Taken]
    made: Callable[[type, tuple[Any, ...]], Callable[[tuple[Any, ...]], Any]]


@dataclass(frozen=True, slots=True)
class Structure:
    """The shape of a nested value: a container type, its keys, and the structures inside.

    The container of a leaf is None.
    """

    container: type | None = None
    keys: tuple[Any, ...] = ()
    children: tuple["Structure", ...] = ()

    def __reduce__(self) -> tuple[Any, ...]:
        # There is one leaf only, also among what comes back from another process.
        return _restored, (self.container, self.keys, self.children)

    def build(self, leaves: Iterable[Any]) -> Any:
        """Put one value of this structure together from its leaves."""
        return next(self.build_each(([leaf] for leaf in leaves), 1))

    def build_each(self, leaves: Iterator[Iterable[Any]], samples: int) -> Iterator[Any]:
        """Put many values together, one at a time as they are asked for, from the columns of their leaves."""
        if self.container is None:
            return iter(next(leaves))
        if self._is_plain_table():
            return self._build_tables(leaves)
        if self.container is Framed:
            return self._build_frames(leaves, samples)
        parts = [child.build_each(leaves, samples) for child in self.children]
        rows: Iterable[tuple[Any, ...]] = zip(*parts, strict=True) if parts else repeat((), samples)
        return map(_form_of(self.container).made(self.container, self.keys), rows)

    def _is_plain_table(self) -> bool:
        """Say whether this is a table whose cells are all leaves: it can be built row by row at once."""
        if self.container is not Table or not self.children:
            return False
        first = self.children[0]
        return (
            first.container is Row
            and all(child is LEAF for child in first.children)
            and all(child == first for child in self.children)
        )

    def _build_tables(self, leaves: Iterator[Iterable[Any]]) -> Iterator[Any]:
        width = len(self.children[0].keys)
        cells = [next(leaves) for _ in range(width * len(self.children))]
        columns = [zip(*cells[position::width], strict=True) for position in range(width)]
        make = row_maker(self.children[0].keys)
        return (Table(map(make, zip(*values, strict=True))) for values in zip(*columns, strict=True))

    def _build_frames(self, leaves: Iterator[Iterable[Any]], samples: int) -> Iterator[Any]:
        """Build plain frames column by column, or one that holds random variables."""
        form, names, dtypes = self.keys
        table = self.children[0]
        if table.container is RaggedTable:
            return self._build_ragged_frames([list(next(leaves)) for _ in range(table.leaves)], samples)
        parts = [next(leaves) for _ in range(table.leaves)]
        if len(parts) != len(names) * len(table.children):
            raise PriorError("as_frame: the cells of a frame must be single values, not tuples or lists of them")
        if any(isinstance(part, list) and part and isinstance(part[0], RandomVariable) for part in parts):
            return (Framed(one, form, names, dtypes) for one in table.build_each(iter(parts), samples))
        width = len(names)
        sizes = [row.keys[1] if row.container is Plate else 1 for row in table.children]
        if samples == 0:
            return iter(())
        columns = [joined_column(parts[place::width], sizes, samples) for place in range(width)] if sizes else []
        return frames(form, names, dtypes, columns, [sum(sizes)] * samples)

    def _build_ragged_frames(self, parts: list[list[Any]], samples: int) -> Iterator[Any]:
        """Build frames of tables of which each has a number of rows of its own, or one that holds random variables."""
        form, names, dtypes = self.keys
        (table,), sizes = self.children, parts[0]
        if any(isinstance(size, RandomVariable) for size in sizes):
            return (Framed(one, form, names, dtypes) for one in table.build_each(iter(parts), samples))
        cells, runs, taken = [], [], 1
        for segment in table.children[1:]:  # the cells of a run of rows stand behind their number
            begin = taken + (segment.container is Plate)
            taken = begin + len(names)
            cells.append(parts[begin:taken])
            runs.append(parts[begin - 1] if segment.container is Plate else None)
        places = RaggedPlaces(np.array(sizes, np.int64), table.keys[0].starts, runs)
        columns = [places.column([segment[place] for segment in cells]) for place in range(len(names))]
        joined = [joined_column([[column]], [places.total], 1) for column in columns] if places.total else []
        return frames(form, names, dtypes, joined, sizes)

    @property
    def leaves(self) -> int:
        """How many leaves there are."""
        return 1 if self.container is None else sum(child.leaves for child in self.children)


def _rows(names: tuple[str, ...], cells: Sequence[Any], size: int) -> list[Row]:
    columns = [cell.tolist() if isinstance(cell, np.ndarray) else repeat(cell, size) for cell in cells]
    return [*map(row_maker(names), zip(*columns, strict=False))]


def _plate_or_rows(names: tuple[str, ...], size: Any, usual: Sequence[int], cells: Sequence[Any]) -> Any:
    """Put a plate together of columns of random variables, or plain rows of plain columns.

    A random number of rows stands before the cells.
    """
    if size is None:
        size, *cells = cells
    if any(isinstance(part, RandomVariable) for part in (size, *cells)):
        return Plate(names, tuple(cells), size, *usual)
    return _rows(names, cells, size)


def _taken_plate(plate: Plate) -> Taken:
    if plate.is_ragged:
        return (plate.names, None, plate.usual), (plate.size, *plate.cells)
    return (plate.names, plate.size), plate.cells


def _ragged_or_plain(outline: Any, size: Any, segments: Sequence[Any]) -> Table:
    return (RaggedTable if isinstance(size, RandomVariable) else plain_rows)(size, segments, outline)


def _plated_or_plain(segments: tuple[Any, ...]) -> Table:
    if any(isinstance(segment, Plate) for segment in segments):
        return PlatedTable(segments)
    table = Table()
    for segment in segments:
        table.extend(segment if isinstance(segment, list) else [segment])
    return table


def _object_array(parts: tuple[Any, ...]) -> np.ndarray[Any, Any]:
    array = np.empty(len(parts), object)
    array[:] = parts
    return array


def _labelled(keys: tuple[Any, ...], parts: Sequence[Any]) -> dict[Any, Any]:
    return dict(zip(keys, parts, strict=True))


def _taken_record(value: Any) -> Taken:
    keys = tuple(field.name for field in dataclasses.fields(value) if field.init)
    return keys, [getattr(value, key) for key in keys]


def _sparse(kind: Any, keys: tuple[Any, ...]) -> Callable[[Sequence[Any]], Any]:
    return partial(kind.of, keys)


_SPARSE = Form(lambda one: (tuple(one), one.parts), _sparse)
FORMS: dict[type, Form] = {
    Row: Form(lambda row: (row.keys(), row), lambda kind, names: row_maker(names)),
    Table: Form(lambda table: ((), list(table)), lambda kind, keys: kind),
    PlatedTable: Form(lambda table: ((), table.segments), lambda kind, keys: _plated_or_plain),
    RaggedTable: Form(
        lambda table: ((table.outline,), (table.size, *table.segments)),
        lambda kind, keys: lambda parts: _ragged_or_plain(keys[0], parts[0], parts[1:]),
    ),
    Plate: Form(_taken_plate, lambda kind, keys: partial(_plate_or_rows, keys[0], keys[1], keys[2:])),
    Framed: Form(
        lambda frame: ((frame.form, frame.names, frame.dtypes), (frame.table,)),
        lambda kind, keys: lambda parts: Framed(parts[0], *keys),
    ),
    SparseFrame: Form(lambda one: (one.layout, one.parts), lambda kind, keys: partial(SparseFrame.laid_out, keys)),
    SparseList: Form(lambda one: ((), one), lambda kind, keys: SparseList.of),
    SparseColumns: _SPARSE,
    SparseDict: _SPARSE,
    FormattedText: Form(lambda one: (one.template, one.values), lambda kind, keys: partial(composed, keys)),
    dict: Form(
        lambda one: (tuple(one), list(one.values())),
        lambda kind, keys: lambda parts: dict(zip(keys, parts, strict=True)),
    ),
    list: Form(lambda one: ((), one), lambda kind, keys: list),
    tuple: Form(lambda one: ((), one), lambda kind, keys: tuple),
    np.ndarray: Form(lambda array: ((), list(array)), lambda kind, keys: _object_array),
}
"""The containers that are taken apart, and how; subclasses of those whose items may be missed are none of them."""
_NAMED = Form(lambda one: ((), one), lambda kind, keys: kind._make)  # type: ignore[attr-defined]
_RECORD = Form(_taken_record, lambda kind, keys: lambda parts: kind(**_labelled(keys, parts)))


@lru_cache(maxsize=1024)
def _container_of(kind: type) -> type | None:
    """Return as which container a type of values is taken apart; None for a leaf."""
    for base in kind.__mro__:
        if base in FORMS and (base is kind or base not in (list, tuple, np.ndarray)):
            return base
    named = issubclass(kind, tuple) and hasattr(kind, "_fields") and hasattr(kind, "_make")
    return kind if named or dataclasses.is_dataclass(kind) else None


def _form_of(container: type) -> Form:
    return FORMS.get(container) or (_NAMED if issubclass(container, tuple) else _RECORD)


LEAF = Structure()


def _restored(container: type | None, keys: tuple[Any, ...], children: tuple[Structure, ...]) -> Structure:
    return LEAF if container is None else Structure(container, keys, children)


def flatten(value: Any) -> tuple[Structure, list[Any]]:
    """Take a nested value apart."""
    leaves: list[Any] = []
    return _flatten_into(value, leaves), leaves


def _flatten_into(value: Any, leaves: list[Any]) -> Structure:
    kind: Any = type(value)
    container = _container_of(kind)
    if container is None or (container is np.ndarray and (value.dtype != object or value.ndim != 1)):
        leaves.append(value)
        return LEAF
    keys, parts = _form_of(container).taken(value)
    return Structure(container, keys, tuple(_flatten_into(part, leaves) for part in parts))


def spelled_out(value: Any) -> Any:
    """Return a table of plates, whatever its form, with every row by itself; anything else as it is."""
    if isinstance(value, Framed):
        return dataclasses.replace(value, table=spelled_out(value.table))
    return value.spelled_out() if isinstance(value, PlatedTable) else value


def random_leaves(value: Any) -> list[RandomVariable]:
    """Return the random variables inside a nested value."""
    return [leaf for leaf in flatten(value)[1] if isinstance(leaf, RandomVariable)]
