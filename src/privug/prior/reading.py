"""Columns of files: CSV tables in blocks of bytes, Parquet tables, and the layouts of leakiEst and F-BLEAU.

That holds for plain files: no quotes, cells of at most 64 bytes, the same number of cells in every line. Others are
left to the reader for any file.
"""

import csv
import importlib
import math
import re
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from privug.arguments import kinds_checked, shown
from privug.digits import how_many
from privug.errors import ArgumentError, PrivugError
from privug.model.batch import Digits, combined, first_places, ranked
from privug.model.node import Array

BLOCK_BYTES = 1 << 23
MOST_BYTES = 64  # of a cell
MOST_DISTINCT = 1 << 14  # cells of a block that are kept as texts; if there are more, they must be numbers
MOST_BLANK = 1000  # lines of a block that may have to be looked at one by one
WORD = 8
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
QUOTE, NUL, RETURN, NEWLINE, SPACE, TAB = b'"\0\r\n \t'


WRITTEN_CODE = re.compile(r"[+-]?0\d")


def is_written_code(text: str) -> bool:
    """Say whether a text of digits is a code and no number: 01234 is not 1234, and nobody writes 7 as 007."""
    return WRITTEN_CODE.match(text) is not None


class NotPlain(Exception):
    """The file is not plain enough to be read in blocks."""


@dataclass
class CodedColumn:
    """A column as it is read: its distinct texts, the line where each stands first, and the code of each cell.

    A column of many distinct numbers has those in place of codes, unless its cells are to stay texts.
    """

    as_text: bool = False
    texts: list[str] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    parts: list[Array] = field(default_factory=list)
    numbers: bool = False
    _known: dict[str, int] = field(default_factory=dict)

    def add(self, rank: Array, codes: Array, texts: Sequence[str], lines: Sequence[int]) -> None:
        """Add cells with codes of their own, of which the texts are given in the order of `rank`."""
        places = np.array([self.code(text, line) for text, line in zip(texts, lines, strict=True)], np.int32)
        self.parts.append(places[rank][codes])

    def code(self, text: str, line: int) -> int:
        """Return the code of a text that stands in a line."""
        code = self._known.setdefault(text, len(self._known))
        if code == len(self.texts):
            self.texts.append(text)
            self.lines.append(line)
        return code

    def add_numbers(self, numbers: Array) -> None:
        """Add cells that are all numbers, most of them different."""
        if not self.numbers:
            if any(map(is_written_code, self.texts)):
                raise NotPlain
            before = _numbers_of(np.array(self.texts, "S"))
            self.parts = [before[part] for part in self.parts]
            self.numbers = True
        self.parts.append(numbers)

    def values(self) -> Array:
        """Return the codes of all cells, or the numbers."""
        return np.concatenate(self.parts) if self.parts else np.empty(0, np.int32)


def read_blocks(path: Path, delimiter: str, header: int, width: int, places: Mapping[int, bool]) -> list[CodedColumn]:
    """Read columns of a plain file below its header, which ends in the given line; raise NotPlain for other files.

    `places` are those of the columns, and whether their cells are to stay texts.
    """
    columns = {place: CodedColumn(as_text) for place, as_text in places.items()}
    line = 1
    for block in _blocks(path):
        rows = _Rows.of(block, ord(delimiter), line, header, width)
        line += rows.lines
        for place, column in columns.items():
            rows.read(column, place)
    return list(columns.values())


def _blocks(path: Path) -> Iterator[bytes]:
    """Yield the file in parts that end with a line, each with room behind it to read whole words."""
    left, start = b"", True
    with path.open("rb") as file:
        while data := file.read(BLOCK_BYTES):
            data = data.removeprefix(BYTE_ORDER_MARK) if start else data
            start = False
            whole, end, rest = data.rpartition(b"\n")
            if end:
                yield left + whole + end
                left = rest
            else:
                left += data
            if len(left) > BLOCK_BYTES:
                raise NotPlain
    if left:
        yield left + b"\n"


@dataclass(frozen=True)
class _Rows:
    """The rows of a block: where each starts, where its delimiters stand and where it ends."""

    data: bytes
    delimiters: Array
    starts: Array
    ends: Array
    numbers: Array
    lines: int

    @classmethod
    def of(cls, block: bytes, delimiter: int, line: int, header: int, width: int) -> "_Rows":
        array = np.frombuffer(block, np.uint8)
        _check_plain(block, array)
        ends = np.flatnonzero(array == NEWLINE)
        starts = np.append(0, ends[:-1] + 1)
        numbers = np.arange(line, line + len(ends))
        found = np.flatnonzero(array == delimiter)
        counts = np.diff(np.searchsorted(found, ends), prepend=0)
        kept = ~_blank(block, array, starts, ends, delimiter) & (numbers > header)
        if np.any(counts[kept] != width - 1):
            raise NotPlain  # the reader for any file says in which line
        delimiters = found[np.repeat(kept, counts)].reshape(np.count_nonzero(kept), width - 1)
        return cls(block, delimiters, starts[kept], ends[kept], numbers[kept], len(ends))

    def read(self, column: CodedColumn, place: int) -> None:
        """Add the cells of a place to a column."""
        starts = self.starts if place == 0 else self.delimiters[:, place - 1] + 1
        ends = self.ends if place == self.delimiters.shape[1] else self.delimiters[:, place]
        if not len(starts):
            return
        words = _words(self.data, starts, ends - starts)
        if column.numbers:
            column.add_numbers(_parsed(words))
            return
        distinct = [ranked(word) for word in words]
        codes = combined(Digits(code, len(found)) for code, found in distinct) if len(distinct) > 1 else distinct[0][0]
        if int(codes.max()) >= MOST_DISTINCT:
            if column.as_text:
                raise NotPlain
            column.add_numbers(_parsed(words))
            return
        first = first_places(codes)
        order = np.argsort(first)  # texts are numbered as they come in the file
        rank = np.argsort(order)
        firsts = first[order]
        texts = [self.data[starts[place] : ends[place]].decode().strip() for place in firsts]
        column.add(rank, codes, texts, self.numbers[firsts].tolist())


def _check_plain(block: bytes, array: Array) -> None:
    if QUOTE in block or NUL in block:
        raise NotPlain
    if RETURN in block and block.count(b"\r") != block.count(b"\r\n"):
        raise NotPlain
    if array.max(initial=0) > 127:
        try:
            block.decode()
        except UnicodeDecodeError:
            raise NotPlain from None


def _blank(block: bytes, array: Array, starts: Array, ends: Array, delimiter: int) -> Array:
    """Say which lines have nothing in any cell."""
    first = array[starts]
    blank = np.isin(first, (NEWLINE, RETURN, SPACE, TAB, delimiter)) | (first > 127)
    if np.count_nonzero(blank) > MOST_BLANK:
        raise NotPlain
    for row in np.flatnonzero(blank):
        cells = block[starts[row] : ends[row]].decode().split(chr(delimiter))
        blank[row] = not any(cell.strip() for cell in cells)
    return blank


def _words(data: bytes, starts: Array, lengths: Array) -> list[Array]:
    """Return the bytes of cells as numbers of eight bytes each, filled up with zeros."""
    longest = int(lengths.max())
    if longest > MOST_BYTES:
        raise NotPlain
    padded = data + bytes(MOST_BYTES + WORD)
    everywhere: Any = np.ndarray((len(padded) - WORD + 1,), "<u8", padded, strides=(1,))
    words = []
    for done in range(0, max(longest, 1), WORD):
        left = np.clip(lengths - done, 0, WORD)
        unused = (8 * (WORD - np.maximum(left, 1))).astype(np.uint64)
        word = (everywhere[starts + done] << unused) >> unused
        word[left == 0] = 0
        words.append(word)
    return words


def _parsed(words: Sequence[Array]) -> Array:
    """Return cells as numbers; whether a text with a leading zero is one is not decided here."""
    first, second, third = (words[0] >> np.uint64(8 * place) & np.uint64(0xFF) for place in range(3))
    signed = (first == ord("-")) | (first == ord("+"))
    zero, next_one = np.where(signed, second, first), np.where(signed, third, second)
    if np.any((zero == ord("0")) & (next_one >= ord("0")) & (next_one <= ord("9"))):
        raise NotPlain
    return _numbers_of(np.column_stack(words).view(f"S{WORD * len(words)}").reshape(-1))


def _numbers_of(texts: Array) -> Array:
    for kind in (np.int64, np.float64):
        try:
            numbers = texts.astype(kind)
        except (ValueError, OverflowError):
            continue
        if not np.isnan(numbers).any():
            return numbers
    raise NotPlain


Values = list[Any] | npt.NDArray[Any]

LAYOUTS = ("auto", "csv", "leakiest", "fbleau", "parquet")
DELIMITERS = ",;\t|"
COMMENT = "//"  # of leakiEst
PAIR = re.compile(r"\(\s*([^,]*?)\s*,\s*(.*?)\s*\)")
PARQUET_START = b"PAR1"


class Columns(dict[str, Values]):
    """The columns of a file by name, and the layout that it was found to have."""

    layout: str


@dataclass(frozen=True)
class _Cells:
    """One column: its different texts, the line in which each stands first, and for each row which of them it has."""

    name: str
    texts: list[str]
    lines: list[int]
    codes: npt.NDArray[Any]
    path: Path

    @classmethod
    def of(cls, name: str, texts: Sequence[str], lines: Sequence[int], path: Path) -> "_Cells":
        """Make a column of the text of each row and the line it stands in."""
        column = CodedColumn()
        codes = np.fromiter(map(column.code, texts, lines), np.int32, len(texts))
        return cls(name, column.texts, column.lines, codes, path)

    def labels(self) -> list[str]:
        """Return the text of each row."""
        texts: list[str] = np.array([*self.texts, None], object)[self.codes].tolist()
        return texts

    def failure(self, place: int, problem: str) -> ArgumentError:
        return ArgumentError(f"{self.path}, line {self.lines[place]}: {self.name} {problem}")


@kinds_checked
def read_columns(
    path: str | Path,
    columns: Sequence[str] | None = None,
    *,
    labels: Sequence[str] = (),
    layout: str = "auto",
    missing: str = "refuse",
) -> Columns:
    """Read the columns of a CSV or Parquet file; those named, or all of them.

    A column of numbers is read as numbers, unless it is one of `labels` or some begin with a zero, as codes do: 01234
    is not 1234. Missing cells are refused with their line,
    or their rows left out if `missing="drop"`; other text among numbers is refused. `layout` is one of auto, csv,
    parquet, leakiest and fbleau; the last two have no header, and their columns are called "secret" and "output", or
    "1", "2" and so on.

    >>> import privug as pv, tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    ...     print("zip,age", "2300,31", "2100,44", sep=chr(10), file=file, flush=True)
    ...     columns = pv.read_columns(file.name, labels=["zip"])
    >>> columns["zip"], columns["age"]
    (['2300', '2100'], array([31, 44]))
    """
    if not isinstance(path, str | Path):
        raise ArgumentError(f"read_columns: the path of a file is needed, not {shown(path)}")
    file = Path(path)
    try:
        file.stat()
    except (OSError, ValueError) as error:  # a name that no file can have is a ValueError
        raise _unreadable(file, error) from None
    found = detected_layout(file, named=columns is not None) if layout == "auto" else layout
    if found not in LAYOUTS[1:]:
        raise ArgumentError(f"layout must be one of {', '.join(LAYOUTS)}, not {layout!r}")
    wanted = None if columns is None else list(dict.fromkeys(columns))
    if found in ("leakiest", "fbleau"):
        read = Columns(_leakiest(file) if found == "leakiest" else _fbleau(file))
    else:
        read = Columns((_parquet if found == "parquet" else _csv)(file, wanted, labels, missing == "drop"))
    read.layout = found
    return read


def detected_layout(path: Path, named: bool) -> str:
    """Say what layout a file has; one whose columns are `named` has a header."""
    try:
        with path.open("rb") as file:
            if file.read(len(PARQUET_START)) == PARQUET_START:
                return "parquet"
    except (OSError, ValueError) as error:  # a name that no file can have is a ValueError
        raise _unreadable(path, error) from None
    first = next((line for _, line in _lines(path) if not line.startswith(COMMENT)), "")
    if first.startswith("(") and not named:
        return "leakiest"
    cells = next(csv.reader([first], delimiter=_delimiter(first)), [])
    if not named and len(cells) > 1 and all(_number(cell) is not None for cell in cells):
        return "fbleau"
    return "csv"


def _unreadable(path: Path, error: OSError | ValueError) -> ArgumentError:
    return ArgumentError(f"{path}: {error.strerror if isinstance(error, OSError) else error}")


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines that are not empty, and their numbers."""
    try:
        with path.open(encoding="utf-8-sig") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield number, line.strip()
    except UnicodeDecodeError:
        raise ArgumentError(f"{path} is not a text file in UTF-8") from None
    except OSError as error:
        raise _unreadable(path, error) from None


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a delimited file, and the lines they end in; all must have as many cells as the first."""
    width = 0
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, delimiter=_delimiter(_first_line(path)), skipinitialspace=True, strict=True)
            for row in reader:
                if not any(cell.strip() for cell in row):
                    continue
                width = width or len(row)
                if len(row) != width:
                    counts = f"{how_many(len(row), 'cell')}, but the first line has {width}"
                    raise ArgumentError(f"{path}, line {reader.line_num}: there are {counts}")
                yield reader.line_num, row
    except UnicodeDecodeError:
        raise ArgumentError(f"{path} is not a text file in UTF-8") from None
    except OSError as error:
        raise _unreadable(path, error) from None
    except csv.Error as error:
        raise ArgumentError(f"{path}, line {reader.line_num}: {error}") from None


def _first_line(path: Path) -> str:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return next((line for line in file if line.strip()), "")


def _delimiter(line: str) -> str:
    return max(DELIMITERS, key=line.count)


def _csv(path: Path, wanted: list[str] | None, labels: Sequence[str], drop: bool) -> dict[str, Values]:
    rows = _rows(path)
    line, header = next(rows, (1, []))
    names = [name.strip() for name in header]
    chosen = names if wanted is None else wanted
    _check_columns(path, chosen, names)
    places = {names.index(name): name in labels for name in chosen}
    try:
        columns = read_blocks(path, _delimiter(_first_line(path)), line, len(names), places) if names else []
    except NotPlain:
        columns = _read_rows(rows, places)
    parts = [column.values() for column in columns]
    if drop and columns:
        kept = np.logical_and.reduce([_is_there(column, part) for column, part in zip(columns, parts, strict=True)])
        parts = [part[kept] for part in parts]
    read = {}
    for name, column, part in zip(chosen, columns, parts, strict=True):
        codes, present = (part, ()) if column.numbers else ranked(part)
        texts, lines = ([listed[place] for place in present] for listed in (column.texts, column.lines))
        cells = _Cells(f"column {name}", texts, lines, codes, path)
        read[name] = part if column.numbers else _values(cells, name in labels)
    return read


def _read_rows(rows: Iterator[tuple[int, list[str]]], places: Iterable[int]) -> list[CodedColumn]:
    """Read columns row by row, whatever is in their cells."""
    columns, codes = {place: CodedColumn() for place in places}, {place: array("q") for place in places}
    for line, row in rows:
        for place, column in columns.items():
            codes[place].append(column.code(row[place].strip(), line))
    for place, column in columns.items():
        column.parts.append(np.array(codes[place]))
    return list(columns.values())


def _is_there(column: CodedColumn, codes: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    missing = [code for code, text in enumerate(column.texts) if not text or text.lower() == "nan"]
    return np.full(len(codes), True) if column.numbers else ~np.isin(codes, missing)


def _check_columns(path: Path, wanted: list[str], names: list[str]) -> None:
    for name in wanted:
        if names.count(name) != 1:
            problem = "no column" if name not in names else "more than one column"
            raise ArgumentError(f"{path} has {problem} {name!r}; its columns are {', '.join(names) or 'none'}")


def _values(cells: _Cells, as_labels: bool = False) -> Values:
    """Return a column as whole numbers, as numbers, or as labels if most cells are no numbers or some are codes."""
    _check_filled(cells)
    if as_labels or any(map(is_written_code, cells.texts)):
        return cells.labels()
    return _numbers(cells)


def _check_filled(cells: _Cells) -> None:
    if "" in cells.texts:
        raise cells.failure(cells.texts.index(""), "is empty; leave such rows out, or fill them")


def _numbers(cells: _Cells) -> Values:
    for kind in (int, float):
        try:
            numbers = np.array([kind(text) for text in cells.texts], np.int64 if kind is int else float)
        except (ValueError, OverflowError):
            continue
        if kind is float and np.isnan(numbers).any():
            raise cells.failure(int(np.isnan(numbers).argmax()), "is not a number (nan); leave such rows out")
        return np.take(numbers, cells.codes)
    wrong = [place for place, text in enumerate(cells.texts) if _number(text) is None]
    if np.isin(cells.codes, wrong).mean() > 0.5:
        return cells.labels()
    found = f"holds {cells.texts[wrong[0]]!r} among numbers"
    raise cells.failure(wrong[0], f"{found}; correct it, or take the column as labels (--labels, or labels=)")


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _parquet(path: Path, wanted: list[str] | None, labels: Sequence[str], drop: bool) -> dict[str, Values]:
    try:
        parquet = importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise ArgumentError(f"{path}: reading Parquet needs pyarrow: pip install pyarrow") from None
    try:
        file = parquet.ParquetFile(path)
        names = list(file.schema_arrow.names)
        chosen = names if wanted is None else wanted
        _check_columns(path, chosen, names)
        table = file.read(columns=chosen)
    except (OSError, ValueError) as error:
        if isinstance(error, PrivugError):
            raise
        raise ArgumentError(f"{path} is not a readable Parquet file: {error}") from None
    listed = {name: table.column(name).to_pylist() for name in chosen}
    if drop:
        kept = [row for row in zip(*listed.values(), strict=True) if not any(map(_is_empty, row))]
        listed = {name: [row[place] for row in kept] for place, name in enumerate(chosen)}
    columns = {name: _plain(path, name, values) for name, values in listed.items()}
    return {name: [str(v) for v in values] if name in labels else values for name, values in columns.items()}


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _plain(path: Path, name: str, values: list[Any]) -> Values:
    for row, value in enumerate(values, 1):
        if _is_empty(value):
            raise ArgumentError(f"{path}, row {row}: column {name} is empty; leave such rows out, or fill them")
    array = np.array(values)
    return array if array.dtype.kind in "bif" and array.ndim == 1 else values


def _leakiest(path: Path) -> dict[str, Values]:
    pairs, lines = [], []
    for number, line in _lines(path):
        if line.startswith(COMMENT):
            continue
        found = PAIR.fullmatch(line)
        if found is None:
            hint = (
                "a channel, not observations" if "|" in line else f"not a pair such as (secret, output): {line[:40]!r}"
            )
            raise ArgumentError(f"{path}, line {number}: this is {hint}")
        pairs.append(found.groups())
        lines.append(number)
    if not pairs:
        raise ArgumentError(f"{path} has no observations such as (secret, output)")
    sides = {name: [pair[side] for pair in pairs] for side, name in enumerate(("secret", "output"))}
    return {name: _values(_Cells.of(f"the {name}", texts, lines, path)) for name, texts in sides.items()}


def _fbleau(path: Path) -> dict[str, Values]:
    rows = list(_rows(path))
    if not rows or len(rows[0][1]) < 2:
        raise ArgumentError(f"{path} needs a secret and at least one number of output in every line")
    lines = [line for line, _ in rows]
    columns = [[cell.strip() for cell in column] for column in zip(*(row for _, row in rows), strict=True)]
    cells = [_Cells.of(f"column {place}", texts, lines, path) for place, texts in enumerate(columns, 1)]
    values = [_values(cells[0])]
    for column in cells[1:]:
        _check_filled(column)
        values.append(_numbers(column))
    for column, part in zip(cells[1:], values[1:], strict=True):
        if not isinstance(part, np.ndarray):
            raise column.failure(0, f"holds {column.texts[0]!r}; outputs of the fbleau layout are numbers")
    return {str(place): part for place, part in enumerate(values, 1)}
