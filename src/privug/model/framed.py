"""Tables that a program gets as data frames, and the columns such frames are made of, for many samples at once."""

import importlib
import importlib.util
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from privug.arguments import is_one_of, shown
from privug.errors import PriorError
from privug.model.categories import encode
from privug.model.node import Array
from privug.model.row_offsets import RowOffsets
from privug.model.table import Table
from privug.model.variable import RandomVariable

FORMS = ("pandas", "polars", "columns", "structured")
"""A frame of either library, a dict of columns, a structured array of NumPy."""

LIBRARIES = {"pandas": "privug.model.pandas_frames", "polars": "privug.model.polars_frames"}


def check_form(form: Any) -> None:
    """Refuse forms of tables that there are not, and frames of a library that is not installed."""
    if not is_one_of(form, FORMS):
        raise PriorError(f"as_frame: a table can be one of {', '.join(map(repr, FORMS))}, not {shown(form)}")
    if form in LIBRARIES and importlib.util.find_spec(form) is None:
        raise PriorError(f"as_frame: {form} is not installed; write pip install 'privug[frames]'")


@dataclass(frozen=True, eq=False)
class Framed:
    """A table of random rows that a program gets in another form."""

    table: Table
    form: str
    names: tuple[str, ...]
    dtypes: tuple[str, ...]
    """The types of the columns, for a table without rows."""


def rows_of(value: Any) -> Any:
    """Return the table behind a frame; anything else as it is."""
    return value.table if isinstance(value, Framed) else value


def dtype_of(cell: Any) -> str:
    """Return the type of the column in which a cell stands, as far as it alone tells."""
    if isinstance(cell, RandomVariable):
        known, levels = cell.node.dtype, cell.node.levels
    else:
        known, levels = np.dtype(object), (cell,)
    if levels is not None:
        there = [level for level in levels if level is not None]
        known = np.asarray(there or [np.nan]).dtype
        if len(there) < len(levels):  # read from a file, such whole numbers are floats and truth values objects
            known = np.dtype(np.float64 if known.kind in "if" else object)
    return known.str if known.kind in "bif" else "O"


@dataclass(frozen=True, eq=False)
class FrameColumn:
    """One column in all samples: samples by rows of numbers, or of codes into `labels`."""

    cells: Array
    labels: tuple[Any, ...] | None = None
    missing: Array | None = None
    """Where numbers are not there; a label that is not there is None."""

    @property
    def flat(self) -> Array:
        """The cells of all samples, one after the other."""
        return self.cells.reshape(-1)

    @property
    def holes(self) -> Array | None:
        """Where numbers are not there, of all samples one after the other."""
        return None if self.missing is None or not self.missing.any() else self.missing.reshape(-1)

    def with_nan(self) -> Array:
        """Return the numbers of all samples with NaN where there is none: as floats, or objects for truth values."""
        if self.missing is None:
            return self.flat
        wide = self.flat.astype(object if self.cells.dtype.kind == "b" else np.float64)
        wide[self.missing.reshape(-1)] = np.nan
        return wide


def joined_column(parts: Sequence[Any], widths: Sequence[int], samples: int) -> FrameColumn:
    """Put a column together of the cells of single rows and of runs of rows."""
    pieces, widths = _pieces(parts, widths)
    numeric = [_as_numbers(piece) for piece in pieces]
    kinds = {numbers[0].dtype.kind for numbers in numeric if numbers is not None and numbers[0].dtype != object}
    if all(numbers is not None for numbers in numeric) and (kinds <= {"b"} or kinds <= {"i", "f"}):
        found = [numbers for numbers in numeric if numbers is not None]
        dtype = np.dtype(bool if kinds == {"b"} else np.int64 if kinds == {"i"} else np.float64)
        cells = _beside([values.astype(dtype) for values, _ in found], widths, samples)
        holes = None if all(missing is None for _, missing in found) else _beside(_masks(found), widths, samples)
        return FrameColumn(cells, None, holes)
    labels: dict[tuple[type, Any], int] = {}
    codes = [_recoded(piece, labels) for piece in pieces]
    return FrameColumn(_beside(codes, widths, samples), tuple(value for _, value in labels))


class RaggedPlaces:
    """Where the rows of tables of many sizes stand in one long column: single rows and runs of them, table by table."""

    def __init__(self, sizes: Array, starts: Sequence[int], runs: Sequence[Sequence[int] | None]) -> None:
        firsts = np.cumsum(sizes) - sizes
        self.total = int(sizes.sum())
        self._places: list[tuple[Array | None, Array]] = []
        """For each segment the tables that have it, if it is one row, and where it stands in the column."""
        for start, run in zip(starts, runs, strict=True):
            if run is None:
                there = np.flatnonzero(sizes > start)
                self._places.append((there, firsts[there] + start))
            else:
                rows = RowOffsets(np.array(run, np.int64))
                self._places.append((None, np.repeat(firsts + start, rows.sizes) + rows.positions))

    def column(self, parts: Sequence[Sequence[Any]]) -> Array:
        """Return the long column of what the segments hold: for each table a cell, or those of its rows."""
        pieces = []
        for (there, places), part in zip(self._places, parts, strict=True):
            if there is not None:
                pieces.append(_cells([part[table] for table in there.tolist()]))
            elif isinstance(part[0], np.ndarray):
                pieces.append(np.concatenate(part))
            else:  # one value for all
                pieces.append(_cells(part[:1]).repeat(len(places)))
        dtypes = {piece.dtype for piece in pieces if len(piece)}
        column = np.empty(self.total, dtypes.pop() if len(dtypes) == 1 else object)
        for (_, places), piece in zip(self._places, pieces, strict=True):
            column[places] = piece
        return column


def _cells(values: Sequence[Any]) -> Array:
    """Return plain cells as an array: of numbers or truth values if all are of one kind, else of objects."""
    kinds = set(map(type, values))
    numbers = np.array(values) if len(kinds) == 1 and kinds <= {bool, int, float} else None
    if numbers is not None and numbers.dtype in _PLAIN:
        return numbers
    objects = np.empty(len(values), object)
    objects[:] = values
    return objects


_PLAIN = (np.dtype(bool), np.dtype(np.int64), np.dtype(np.float64))


_Piece = tuple[Array, tuple[Any, ...] | None]
"""Samples by rows of numbers, or of codes into levels; one sample where all are the same."""


def _pieces(parts: Sequence[Any], widths: Sequence[int]) -> tuple[list[_Piece], list[int]]:
    """Return the values of cells and runs of cells, and how many rows each has; plain cells in a row are one piece."""
    pieces: list[_Piece] = []
    sizes: list[int] = []
    plain: list[Any] = []

    def add(piece: _Piece, size: int) -> None:
        pieces.append(piece)
        sizes.append(size)

    def end_plain(*, anyway: bool = False) -> None:
        if plain or anyway:
            array, levels, _ = encode(plain)
            add((array[np.newaxis], levels), len(plain))
            plain.clear()

    for part, width in zip(parts, widths, strict=True):
        array = getattr(part, "array", None)  # of values that differ between samples
        value = next(iter(part)) if array is None else None
        if array is not None:
            end_plain()
            add(_varying(array, part.levels), width)
        elif isinstance(value, np.ndarray) and value.dtype in _PLAIN:
            end_plain()
            add((value[np.newaxis], None), width)
        else:
            plain.extend(value.tolist() if isinstance(value, np.ndarray) else [value] * width)
    end_plain(anyway=not pieces)
    return pieces, sizes


def _varying(array: Array, levels: tuple[Any, ...] | None) -> _Piece:
    if array.dtype == object:
        codes, levels, _ = encode(array.tolist())
        return codes.reshape(array.shape[0], -1), levels
    return (array[:, np.newaxis] if array.ndim == 1 else array), levels


def _as_numbers(piece: _Piece) -> tuple[Array, Array | None] | None:
    """Return numbers or truth values, and where there are none; None if there is anything else."""
    array, levels = piece
    if levels is None:
        return array, None
    there = [level for level in levels if level is not None]
    truths = [isinstance(level, bool | np.bool_) for level in there]
    if not all(truths) and (any(truths) or not all(type(level) in (int, float) for level in there)):
        return None
    missing = np.array([level is None for level in levels])
    if not there:
        return np.zeros(array.shape, object), missing[array]
    table = np.array([there[0] if level is None else level for level in levels])
    return (table[array], missing[array] if missing.any() else None) if table.dtype.kind in "bif" else None


def _masks(found: Sequence[tuple[Array, Array | None]]) -> list[Array]:
    return [np.zeros(values.shape, np.bool_) if missing is None else missing for values, missing in found]


def _recoded(piece: _Piece, labels: dict[tuple[type, Any], int]) -> Array:
    """Return a piece as codes into labels that all pieces have in common."""
    array, levels = piece
    if levels is None:
        values, array = np.unique(array, return_inverse=True)
        array, levels = array.reshape(piece[0].shape), tuple(values.tolist())
    table = np.array([labels.setdefault((type(level), level), len(labels)) for level in levels], np.int64)
    return table[array]


def _beside(arrays: Sequence[Array], widths: Sequence[int], samples: int) -> Array:
    full = [np.broadcast_to(array, (samples, width)) for array, width in zip(arrays, widths, strict=True)]
    return np.concatenate(full, axis=1)  # always a copy: programs may write into their frames


def frames(
    form: str, names: Sequence[str], dtypes: Sequence[str], columns: Sequence[FrameColumn], sizes: Sequence[int]
) -> Iterator[Any]:
    """Yield the table of each sample in a form, with as many rows as it has; without columns there are none."""
    held = dict(zip(names, columns, strict=True)) if columns else _empty(names, dtypes)
    make: Callable[..., Iterable[Any]]
    if form in LIBRARIES:
        make = importlib.import_module(LIBRARIES[form]).frames
    else:
        make = _dicts if form == "columns" else _structured
    return iter(make(held, sizes))


def _empty(names: Sequence[str], dtypes: Sequence[str]) -> dict[str, FrameColumn]:
    return {
        name: FrameColumn(np.empty((1, 0), np.int64 if dtype == "O" else dtype), () if dtype == "O" else None)
        for name, dtype in zip(names, dtypes, strict=True)
    }


def _dicts(columns: dict[str, FrameColumn], sizes: Sequence[int]) -> Iterator[dict[str, Array]]:
    arrays = {name: _plain(column) for name, column in columns.items()}
    return ({name: array[start:stop] for name, array in arrays.items()} for start, stop in places_of(sizes))


def _structured(columns: dict[str, FrameColumn], sizes: Sequence[int]) -> Iterator[Array]:
    arrays = {name: _plain(column) for name, column in columns.items()}
    made = np.empty(sum(sizes), [(name, array.dtype) for name, array in arrays.items()])
    for name, array in arrays.items():
        made[name] = array
    return (made[start:stop] for start, stop in places_of(sizes))


def places_of(sizes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield where the rows of each sample begin and end, among those of all."""
    return pairwise(accumulate(sizes, initial=0))


def _plain(column: FrameColumn) -> Array:
    """Return the cells of all samples as one array of NumPy: of numbers, of texts, or of objects."""
    if column.labels is None:
        return column.with_nan()
    if column.labels and all(type(label) is str for label in column.labels):
        return np.array(column.labels)[column.flat]
    labels = np.empty(len(column.labels), object)
    labels[:] = column.labels
    chosen: Array = labels[column.flat]
    return chosen
