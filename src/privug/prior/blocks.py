"""CSV files in blocks of bytes: columns as codes of their distinct cells, without a Python object for every cell.

That holds for plain files: no quotes, cells of at most 64 bytes, the same number of cells in every line. Others are
left to the reader for any file.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from privug.model.batch import first_places
from privug.model.distinct import Digits, combined, ranked
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
