"""The kinds of values in a checkpoint: Privug's own that tasks return, and those of classes that the question names."""

import dataclasses
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from functools import cache, partial
from typing import Any

import numpy as np

from privug.checkpoints.encoding import PLAIN_KINDS, Damaged, Kind, NotStorable, Vocabulary
from privug.estimate import Estimate
from privug.inference.case_plan import Kept
from privug.inference.rare.importance import Draws
from privug.inference.rare.model import Particles
from privug.inference.rare.population import PopulationOutcome
from privug.model.batch import Batch, Column
from privug.model.framed import Framed
from privug.model.node import ancestors
from privug.model.plated_table import PlatedTable
from privug.model.plates import Plate
from privug.model.sparse import SparseColumns, SparseDict, SparseFrame, SparseList
from privug.model.structure import LEAF, Structure, random_leaves
from privug.model.table import Row, Table, row_maker
from privug.program.reachable import reached

_CONTAINERS: tuple[type, ...] = (
    *(dict, list, tuple, np.ndarray, Row, Table, Framed, Plate, PlatedTable),
    *(SparseColumns, SparseDict, SparseFrame, SparseList),
)


def vocabulary_for(*holders: Any, results: Sequence[type] = ()) -> Vocabulary:
    """Return how results are written: of Privug's own classes, and of those that some objects lead to."""
    own = _classes(holders)
    containers = {_name(kind): kind for kind in (*_CONTAINERS, *own)}
    kinds = [
        *PLAIN_KINDS,
        Kind("type", type, lambda kind: _known(kind, containers), lambda name: containers[name]),
        Kind("Row", Row, lambda row: (row.keys(), tuple(row)), _row),
        Kind("Table", Table, list, Table),
        Kind("Structure", Structure, lambda one: (one.container, one.keys, one.children), _structure),
        Kind("Batch", Batch, lambda one: (one.structure, one.columns, one.samples, one.each_once), _batch),
        Kind("Kept", Kept, _fields_of(Kept), _kept),
        *(_of_dataclass(kind) for kind in (Column, PopulationOutcome, Draws, Particles, Estimate, *results)),
    ]
    return Vocabulary([*kinds, *filter(None, map(_users, own))])


def _classes(holders: Sequence[Any]) -> list[type]:
    """Return the user's own classes that some objects name, hold or draw values of."""
    found = reached(*holders)
    classes = [value if isinstance(value, type) else type(value) for value in found.own]
    levels = [node.levels or () for node in ancestors([one.node for one in random_leaves(list(holders))])]
    classes += [type(level) for some in levels for level in some]
    return [kind for kind in dict.fromkeys(classes) if _users(kind) is not None]


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _known(kind: type, containers: Mapping[str, type]) -> str:
    if containers.get(_name(kind)) is not kind:
        raise NotStorable(f"values of type {kind.__name__}")
    return _name(kind)


def _users(kind: type) -> Kind | None:
    """Return how values of a class of the user's are written, without running any of its code to make them again."""
    name = f"user's {_name(kind)}"
    if not name.isascii() or len(name) > 255:
        return None
    if issubclass(kind, Enum):
        return Kind(name, kind, lambda member: member.name, lambda text: kind._member_map_[text])
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return Kind(name, kind, tuple, partial(_named_tuple, kind))
    if dataclasses.is_dataclass(kind):
        fields = [one.name for one in dataclasses.fields(kind)]
        return Kind(name, kind, lambda one: tuple(getattr(one, field) for field in fields), partial(_record, kind))
    return None


def _named_tuple(kind: Any, parts: Any) -> Any:
    if not isinstance(parts, tuple) or len(parts) != len(kind._fields):
        raise Damaged("a named tuple has other parts")
    return tuple.__new__(kind, parts)


def _record(kind: Any, parts: Any) -> Any:
    made = object.__new__(kind)
    for field, part in zip(dataclasses.fields(kind), parts, strict=True):
        object.__setattr__(made, field.name, part)
    return made


def _row(parts: Any) -> Row:
    names, cells = parts
    if not names or not all(isinstance(name, str) for name in names) or len(names) != len(cells):
        raise Damaged("a row has other columns")
    return row_maker(names)(cells)


def _structure(parts: Any) -> Structure:
    container, keys, children = parts
    if container is None:
        return LEAF
    if not isinstance(keys, tuple) or not all(isinstance(child, Structure) for child in children):
        raise Damaged("a structure has other parts")
    return Structure(container, keys, children)


def _batch(parts: Any) -> Batch:
    _check(Batch, parts)
    structure, columns, samples, each_once = parts
    if len(columns) != structure.leaves or any(column.array.ndim == 0 for column in columns):
        raise Damaged("a batch has other columns")
    return Batch(structure, columns, samples, each_once)


def _kept(parts: Any) -> Kept:
    _check(Kept, parts)
    kept = Kept(*parts)
    lengths = {*map(len, kept.quantities), *([] if kept.log_weights is None else [len(kept.log_weights)])}
    if lengths - {len(kept.positions)}:
        raise Damaged("a block has samples of other numbers")
    return kept


def _of_dataclass(kind: type) -> Kind:
    def made(parts: Any) -> Any:
        _check(kind, parts)
        return kind(*parts)

    return Kind(kind.__name__ if kind.__module__.startswith("privug.inference") else _name(kind), kind,
                _fields_of(kind), made)  # fmt: skip


def _fields_of(kind: Any) -> Callable[[Any], tuple[Any, ...]]:
    names = [field.name for field in dataclasses.fields(kind) if field.init]
    return lambda one: tuple(getattr(one, name) for name in names)


@cache
def _hints(kind: Any) -> list[Any]:
    hints = typing.get_type_hints(kind)
    return [hints[field.name] for field in dataclasses.fields(kind) if field.init]


def _check(kind: Any, parts: Any) -> None:
    """Refuse parts that are not what the fields of a class hold."""
    hints = _hints(kind)
    if not isinstance(parts, tuple) or len(parts) != len(hints) or not all(map(_fits, parts, hints)):
        raise Damaged(f"a {kind.__name__} has other parts")


def _fits(value: Any, hint: Any) -> bool:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return True
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, one) for one in arguments)
    if origin is np.ndarray:
        return isinstance(value, np.ndarray)
    if origin is tuple and arguments[-1:] != (Ellipsis,):
        return isinstance(value, tuple) and len(value) == len(arguments) and all(map(_fits, value, arguments))
    if origin in (tuple, list, frozenset):
        return isinstance(value, origin) and _all_fit(value, arguments[0])
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return isinstance(value, dict) and _all_fit(value, arguments[0]) and _all_fit(value.values(), arguments[1])
    if isinstance(origin, type):
        return isinstance(value, origin)
    if hint is float:
        return isinstance(value, float | int | np.floating)
    if hint is int:
        return isinstance(value, int | np.integer)
    if hint is bool:
        return isinstance(value, bool | np.bool_)
    return value is None if hint is None else isinstance(value, hint)


def _all_fit(values: Iterable[Any], hint: Any) -> bool:
    return hint is Any or all(_fits(value, hint) for value in values)
