"""Values as bytes and back, without any code that the bytes could name.

A value is written as a column of length one, and a column kind by kind: numbers side by side, of tuples their lengths
and one column of all their parts. So what it takes depends on how many kinds of values there are, hardly on how many
values. Every value takes one byte at least, so that no few bytes can claim to be many values.
"""

import dataclasses
import re
import struct
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import cache, lru_cache, partial
from itertools import accumulate, chain, pairwise
from typing import Any

import numpy as np

from privug.estimate import Estimate
from privug.inference.case_plan import Kept
from privug.inference.rare.engine import PopulationOutcome
from privug.inference.rare.importance import Draws
from privug.inference.rare.model import Particles
from privug.model.batch import Batch, Column
from privug.model.framed import Framed
from privug.model.node import ancestors
from privug.model.plated_tables import PlatedTable
from privug.model.plates import Plate
from privug.model.sparse import SparseColumns, SparseDict, SparseFrame, SparseList
from privug.model.structure import LEAF, Structure, random_leaves
from privug.model.table import Row, Table, row_maker
from privug.program.reachable import reached

DEEPEST = 60  # values inside of values
LONGEST_NUMBER = 1 << 16  # bytes of an integer
LONGEST_PART = 1 << 10  # bytes of a numerator or denominator
MOST_KINDS = 255
FEW = 32  # numbers
_DTYPE = re.compile(r"[<>|=][biufcSUmM]\d{1,9}(\[\d{0,9}[A-Za-z]{1,2}\])?")
_COUNT = np.dtype("<u8")


class NotStorable(Exception):
    """A value is of a kind that cannot be written."""


class Damaged(Exception):
    """Bytes are not what was written."""


@dataclass(frozen=True)
class StoredKind:
    """How values of one type are written: as other values, of which they can be made again."""

    name: str
    type: type
    taken_apart: Callable[[Any], Any]
    put_together: Callable[[Any], Any]


def _naive(value: Any) -> tuple[str, int]:
    if value.tzinfo is not None:
        raise NotStorable("times with a zone")
    return value.isoformat(), value.fold


def _fraction(parts: Any) -> Fraction:
    numerator, denominator = parts
    if max(int(part).bit_length() for part in parts) > 8 * LONGEST_PART:
        raise Damaged("a fraction is too long")
    return Fraction(numerator, denominator)


PLAIN_KINDS = (
    StoredKind("date", date, date.toordinal, date.fromordinal),
    StoredKind("datetime", datetime, _naive, lambda x: datetime.fromisoformat(x[0]).replace(fold=x[1])),
    StoredKind("time", time, _naive, lambda x: time.fromisoformat(x[0]).replace(fold=x[1])),
    StoredKind(
        "timedelta", timedelta, lambda span: (span.days, span.seconds, span.microseconds), lambda x: timedelta(*x)
    ),
    StoredKind("Decimal", Decimal, str, Decimal),
    StoredKind("Fraction", Fraction, lambda ratio: (ratio.numerator, ratio.denominator), _fraction),
    StoredKind("frozenset", frozenset, list, frozenset),
    StoredKind("set", set, list, set),
    StoredKind("dict", dict, lambda held: tuple(held.items()), dict),
)


@dataclass(frozen=True)
class Vocabulary:
    """The kinds of values that can be written."""

    kinds: Sequence[StoredKind] = PLAIN_KINDS
    _by_type: dict[type, StoredKind] = field(default_factory=dict, init=False, repr=False)
    _by_name: dict[str, StoredKind] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        for kind in self.kinds:
            self._by_type[kind.type] = self._by_name[kind.name] = kind

    def encoded(self, value: Any) -> bytes:
        """Return a value as bytes, or raise `NotStorable`."""
        parts: list[bytes] = []
        self._write([value], parts, DEEPEST)
        return b"".join(parts)

    def decoded(self, content: bytes) -> Any:
        """Return the value that was encoded, or raise `Damaged`."""
        reader = _ByteReader(content)
        try:
            (value,) = self._read(1, reader, DEEPEST)
        except Damaged:
            raise
        except Exception as error:  # whatever a value cannot be made of
            raise Damaged(f"{type(error).__name__}: {error}") from None
        if reader.left:
            raise Damaged("there is more than one value")
        return value

    def _kind(self, of: type) -> StoredKind | None:
        if of not in self._by_type:
            found = next((self._by_type[base] for base in of.__mro__[1:] if base in self._by_type), None)
            if found is None or found in PLAIN_KINDS:  # a subclass of a plain kind may hold more than that
                return None
            self._by_type[of] = found
        return self._by_type[of]

    def _write(self, values: Sequence[Any], parts: list[bytes], depth: int) -> None:
        if depth == 0:
            raise NotStorable("values nested too deeply")
        types = list(map(type, values))
        distinct = list(dict.fromkeys(types))
        if len(distinct) > MOST_KINDS:
            raise NotStorable("values of too many types")
        parts.append(bytes([len(distinct)]))
        if len(distinct) > 1:
            codes = {kind: place for place, kind in enumerate(distinct)}
            parts.append(bytes(map(codes.__getitem__, types)))
        for kind in distinct:
            same = values if len(distinct) == 1 else [v for v, of in zip(values, types, strict=True) if of is kind]
            self._write_kind(kind, same, parts, depth - 1)

    def _write_kind(self, of: type, values: Sequence[Any], parts: list[bytes], depth: int) -> None:
        if of in _WRITERS:
            name, write = _WRITERS[of]
            parts.append(_short(name))
            parts.extend(write(values))
        elif of in (tuple, list):
            parts.append(_short(of.__name__))
            parts.append(_packed("Q", list(map(len, values))))
            self._write(list(chain.from_iterable(values)), parts, depth)
        elif of is np.ndarray:
            parts.append(_short("array"))
            for array in values:
                self._write_array(array, parts, depth)
        elif issubclass(of, np.generic):
            parts.append(_short("scalar"))
            for scalar in values:
                self._write_array(np.asarray(scalar), parts, depth)
        else:
            kind = self._kind(of)
            if kind is None:
                raise NotStorable(f"values of type {of.__name__}")
            parts.append(_short(kind.name))
            self._write([kind.taken_apart(value) for value in values], parts, depth)

    def _write_array(self, array: Any, parts: list[bytes], depth: int) -> None:
        fortran = array.flags.f_contiguous and not array.flags.c_contiguous  # sums depend on the layout
        parts.append(struct.pack("<BB", fortran, array.ndim) + _packed("Q", array.shape))
        if array.dtype == object:
            parts.append(_short("O"))
            self._write(array.ravel().tolist(), parts, depth)
            return
        if not _DTYPE.fullmatch(array.dtype.str):
            raise NotStorable(f"arrays of {array.dtype}")
        parts.append(_short(array.dtype.str))
        parts.append(array.tobytes("F" if fortran else "C"))

    def _read(self, count: int, reader: "_ByteReader", depth: int) -> list[Any]:
        if depth == 0:
            raise Damaged("values are nested too deeply")
        kinds = reader.byte()
        if kinds == 1:
            return self._read_kind(count, reader, depth - 1)
        codes = np.frombuffer(reader.take(count), np.uint8)
        if kinds == 0 or (count and codes.max() >= kinds):
            if kinds == 0 and count == 0:
                return []
            raise Damaged("a kind of values is missing")
        values = np.empty(count, object)
        for code in range(kinds):
            where = np.flatnonzero(codes == code)
            for place, value in zip(where.tolist(), self._read_kind(len(where), reader, depth - 1), strict=True):
                values[place] = value
        return values.tolist()

    def _read_kind(self, count: int, reader: "_ByteReader", depth: int) -> list[Any]:
        name = reader.short()
        if name in _READERS:
            return _READERS[name](count, reader)
        if name in ("tuple", "list"):
            make: Any = tuple if name == "tuple" else list
            lengths = reader.counts(count)
            inside = self._read(sum(lengths), reader, depth)
            return [make(inside[begin:end]) for begin, end in pairwise(accumulate(lengths, initial=0))]
        if name in ("array", "scalar"):
            arrays = [self._read_array(reader, depth) for _ in range(count)]
            return arrays if name == "array" else [array[()] for array in arrays]
        if name not in self._by_name:
            raise Damaged(f"there is no kind {name!r}")
        put_together = self._by_name[name].put_together
        return [put_together(part) for part in self._read(count, reader, depth)]

    def _read_array(self, reader: "_ByteReader", depth: int) -> Any:
        fortran, dimensions = reader.byte(), reader.byte()
        shape = [int(length) for length in np.frombuffer(reader.take(8 * dimensions), _COUNT)]
        dtype, size = reader.short(), int(np.prod(shape, dtype=object))
        if fortran > 1 or dimensions > 32 or max(shape, default=0) >= 1 << 62:
            raise Damaged("an array has no such layout")
        order: Any = "F" if fortran else "C"
        if dtype == "O":
            flat = np.empty(reader.bounded(size), object)
            flat[:] = self._read(size, reader, depth)
            return np.array(flat.reshape(shape), order=order)
        if not _DTYPE.fullmatch(dtype):
            raise Damaged("an array is of no such numbers")
        kind = np.dtype(dtype)
        content = reader.take(size * kind.itemsize)
        return np.frombuffer(content, kind).reshape(shape, order=order).copy(order=order)


class _ByteReader:
    """Bytes that are taken one after the other, never more than there are."""

    def __init__(self, content: bytes) -> None:
        self._content, self._at = memoryview(content), 0

    @property
    def left(self) -> int:
        return len(self._content) - self._at

    def take(self, count: int) -> memoryview:
        begin, self._at = self._at, self._at + self.bounded(count)
        return self._content[begin : self._at]

    def bounded(self, count: int) -> int:
        """Return how many bytes or values there are to be; each value takes a byte."""
        if not 0 <= count <= self.left:
            raise Damaged("it ends too soon")
        return count

    def byte(self) -> int:
        return self.take(1)[0]

    def short(self) -> str:
        return str(self.take(self.byte()), "ascii")

    def counts(self, count: int) -> list[int]:
        lengths: list[int] = np.frombuffer(self.take(8 * count), _COUNT).tolist()
        self.bounded(sum(lengths))
        return lengths


def _packed(letter: str, numbers: Sequence[int]) -> bytes:
    """Return integers side by side: much quicker than by an array where they are few, as they mostly are."""
    if len(numbers) < FEW:
        return struct.pack(f"<{len(numbers)}{letter}", *numbers)
    return np.array(numbers, {"q": "<i8", "Q": "<u8"}[letter]).tobytes()


@lru_cache(maxsize=1024)
def _short(name: str) -> bytes:
    encoded = name.encode("ascii")
    if len(encoded) > 255:
        raise NotStorable("values of a type with a very long name")
    return bytes([len(encoded)]) + encoded


def _texts(values: Sequence[Any]) -> Iterator[bytes]:
    encoded = [value.encode("utf-8", "surrogatepass") for value in values]
    yield from _pieces(encoded)


def _pieces(values: Sequence[bytes]) -> Iterator[bytes]:
    yield _packed("Q", list(map(len, values)))
    yield b"".join(values)


def _read_pieces(count: int, reader: _ByteReader) -> list[bytes]:
    lengths = reader.counts(count)
    content = bytes(reader.take(sum(lengths)))
    return [content[begin:end] for begin, end in pairwise(accumulate(lengths, initial=0))]


def _integers(values: Sequence[int]) -> Iterator[bytes]:
    try:
        narrow = _packed("q", values)
    except (OverflowError, struct.error):
        yield b"\1"
        pieces = [value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True) for value in values]
        if max(map(len, pieces)) > LONGEST_NUMBER:
            raise NotStorable("integers that long") from None
        yield from _pieces(pieces)
    else:
        yield b"\0" + narrow


def _read_integers(count: int, reader: _ByteReader) -> list[int]:
    if reader.byte() == 0:
        return _numbers("<i8")(count, reader)
    return [int.from_bytes(piece, "little", signed=True) for piece in _read_pieces(count, reader)]


def _numbers(dtype: str) -> Callable[[int, _ByteReader], list[Any]]:
    kind = np.dtype(dtype)
    return lambda count, reader: np.frombuffer(reader.take(kind.itemsize * count), kind).tolist()


def _truths(count: int, reader: _ByteReader) -> list[bool]:
    content = bytes(reader.take(count))
    if content.strip(b"\0\1"):
        raise Damaged("a boolean is neither")
    return [byte == 1 for byte in content]


_WRITERS: dict[type, tuple[str, Callable[[Sequence[Any]], Iterator[bytes]]]] = {
    type(None): ("none", lambda values: iter([bytes(len(values))])),
    bool: ("bool", lambda values: iter([bytes(values)])),
    int: ("int", _integers),
    float: ("float", lambda values: iter([np.array(values, "<f8").tobytes()])),
    complex: ("complex", lambda values: iter([np.array(values, "<c16").tobytes()])),
    str: ("str", _texts),
    bytes: ("bytes", _pieces),
}
_READERS: dict[str, Callable[[int, _ByteReader], list[Any]]] = {
    "none": lambda count, reader: [None for _ in reader.take(count)],
    "bool": _truths,
    "int": _read_integers,
    "float": _numbers("<f8"),
    "complex": _numbers("<c16"),
    "str": lambda count, reader: [str(piece, "utf-8", "surrogatepass") for piece in _read_pieces(count, reader)],
    "bytes": _read_pieces,
}


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
        StoredKind("type", type, lambda kind: _known(kind, containers), lambda name: containers[name]),
        StoredKind("Row", Row, lambda row: (row.keys(), tuple(row)), _row),
        StoredKind("Table", Table, list, Table),
        StoredKind("Structure", Structure, lambda one: (one.container, one.keys, one.children), _structure),
        StoredKind("Batch", Batch, lambda one: (one.structure, one.columns, one.samples, one.each_once), _batch),
        StoredKind("Kept", Kept, _fields_of(Kept), _kept),
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


def _users(kind: type) -> StoredKind | None:
    """Return how values of a class of the user's are written, without running any of its code to make them again."""
    name = f"user's {_name(kind)}"
    if not name.isascii() or len(name) > 255:
        return None
    if issubclass(kind, Enum):
        return StoredKind(name, kind, lambda member: member.name, lambda text: kind._member_map_[text])
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return StoredKind(name, kind, tuple, partial(_named_tuple, kind))
    if dataclasses.is_dataclass(kind):
        fields = [one.name for one in dataclasses.fields(kind)]
        return StoredKind(
            name, kind, lambda one: tuple(getattr(one, field) for field in fields), partial(_record, kind)
        )
    return None


def _named_tuple(kind: Any, parts: Any) -> Any:
    if not isinstance(parts, tuple) or len(parts) != len(kind._fields):
        raise Damaged("a named tuple has other parts")
    return tuple.__new__(kind, parts)


def _record(kind: Any, parts: Any) -> Any:
    made = object.__new__(kind)
    for entry, part in zip(dataclasses.fields(kind), parts, strict=True):
        object.__setattr__(made, entry.name, part)
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


def _of_dataclass(kind: type) -> StoredKind:
    def made(parts: Any) -> Any:
        _check(kind, parts)
        return kind(*parts)

    return StoredKind(kind.__name__ if kind.__module__.startswith("privug.inference") else _name(kind), kind,
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
