"""Published tables from CSV files, data frames and lists of rows; the notation of their cells."""

import csv
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from privug.arguments import as_names, is_number, kinds_checked, represented, shown
from privug.errors import ArgumentError
from privug.prior.reading import DELIMITERS
from privug.tables.published_table import TOTAL, Dimension, Labels, PublishedCell, System, Table

ROUNDINGS = ("nearest", "random")
LARGEST_COUNT = 10**12
"""Larger counts than the solver's floats tell apart are refused."""
_NOTES = re.compile(r"(\s*(\[\w{1,3}\]|\(\w{1,3}\)|[*†‡§¶⁰¹²³⁴-⁹]+|\s[a-z]))+$")
_SPACES = re.compile(r"(?<=\d)[\u00a0\u2009\u202f ](?=\d{3}(?!\d))")
_BELOW = re.compile(r"(<=|≤|<)\s*(\d+(?:\.\d+)?)")
_BETWEEN = re.compile(r"(\d+)\s*(?:-|\u2013|to)\s*(\d+)")
Bounds = tuple[float, float | None]


@dataclass(frozen=True)
class Notation:
    """How a table writes its figures."""

    marks: Mapping[str, Bounds | None]
    nil: frozenset[str]
    threshold: int | None
    base: int | None
    random: bool
    thousands: str
    decimal: str
    magnitude: bool

    def figure(self, text: str, where: str) -> float | None:
        """Return the figure of a text, or None if the text is a mark of one that is withheld."""
        if text.casefold() in self.marks or _BELOW.fullmatch(text):
            return None
        if text.casefold() in self.nil:
            return 0
        if not text:
            raise ArgumentError(f"{where} is empty; write 0 if nobody is counted, or a mark if the figure is withheld")
        number = self._number(_NOTES.sub("", text) if text[0].isdigit() else text)
        if number is None:
            known = ", ".join(map(repr, self.marks))
            raise ArgumentError(
                f"{where} holds {text!r}, which is no figure and no mark of a suppressed one ({known}); add it to "
                "suppressed= if the figure is withheld, or to nil= if it stands for zero"
            )
        return self._checked(number, text, where)

    def _number(self, text: str) -> float | None:
        plain = _SPACES.sub("", text)
        separated = rf"[+-]?\d{{1,3}}(?:{re.escape(self.thousands)}\d{{3}})+(?:{re.escape(self.decimal)}\d+)?"
        if self.thousands and re.fullmatch(separated, plain):
            plain = plain.replace(self.thousands, "")
        plain = plain.replace(self.decimal, ".") if self.decimal != "." else plain
        if not re.fullmatch(r"[+-]?\d+(\.\d+)?", plain):
            return None
        return int(plain.partition(".")[0]) if not plain.partition(".")[2].strip("0") else float(plain)

    def _checked(self, number: float, text: str, where: str) -> float:
        if number < 0:
            raise ArgumentError(f"{where} is {text}; a figure of people or amounts cannot be negative")
        if not self.magnitude and not isinstance(number, int):
            raise ArgumentError(
                f"{where} is {text}, which is no integer; a table of amounts is read with magnitude=True, and "
                "thousands= says how thousands are set apart"
            )
        if number > LARGEST_COUNT:
            raise ArgumentError(f"{where} is {text}; figures up to {LARGEST_COUNT:,} can be audited")
        if self.base is not None and number % self.base:
            raise ArgumentError(f"{where} is {text}, which is no multiple of base={self.base}")
        return number

    def cell(self, text: str, figure: float | None, zeros: bool) -> PublishedCell:
        """Return what a text says; `zeros` says whether a figure of zero would have been shown."""
        if figure is None:
            low, high = self._withheld(text, 0 if self.magnitude else int(zeros))
            return PublishedCell(text, low, math.inf if high is None else high, "suppressed")
        if self.base is None:
            return PublishedCell(text, figure, figure, "published", figure)
        if self.magnitude:
            within: float = self.base if self.random else self.base / 2
        else:
            within = self.base - 1 if self.random else self.base // 2
        base = self.base if self.random else None
        return PublishedCell(text, max(0, figure - within), figure + within, "rounded", figure, base)

    def _withheld(self, text: str, least: int) -> Bounds:
        bounds = self.marks.get(text.casefold())
        if bounds is not None:
            return bounds
        if found := _BELOW.fullmatch(text):
            limit = float(found[2])
            if self.magnitude:
                return least, limit
            return least, int(limit) if found[1] != "<" else math.ceil(limit) - 1
        if found := _BETWEEN.fullmatch(text):
            return int(found[1]), int(found[2])
        if self.threshold is None:
            return 0, None
        return least, self.threshold if self.magnitude else self.threshold - 1


def notation(
    suppressed: Sequence[str] | Mapping[str, Any],
    nil: Sequence[str],
    threshold: int | None,
    base: int | None,
    rounding: str,
    thousands: str,
    decimal: str,
    magnitude: bool,
) -> Notation:
    """Return how a table writes its figures, as its reader said it."""
    if rounding not in ROUNDINGS:
        raise ArgumentError(f"read: rounding must be one of {', '.join(ROUNDINGS)}, not {shown(rounding)}")
    for name, number, least in (("threshold", threshold, 1), ("base", base, 1 if magnitude else 2)):
        if number is not None and number < least:
            raise ArgumentError(f"read: {name} must be an integer, {least} or more, not {shown(number)}")
    if len(thousands) > 1 or len(decimal) != 1 or thousands == decimal or (thousands + decimal).isalnum():
        raise ArgumentError("read: thousands and decimal must be two different characters that are no digits")
    given = suppressed if isinstance(suppressed, Mapping) else dict.fromkeys(as_names("read: suppressed", suppressed))
    for mark, bounds in given.items():
        _check_mark(mark, bounds)
    marks = {mark.strip().casefold(): bounds for mark, bounds in given.items()}
    if not all(isinstance(mark, str) for mark in nil):
        raise ArgumentError(f"read: nil must be a list of texts, not {shown(nil)}")
    empty = frozenset(mark.strip().casefold() for mark in nil)
    return Notation(marks, empty, threshold, base, rounding == "random", thousands, decimal, magnitude)


def _check_mark(mark: Any, bounds: Any) -> None:
    if not isinstance(mark, str) or not mark.strip():
        raise ArgumentError(f"read: suppressed must be a list of marks such as '*', not one with {shown(mark)}")
    if bounds is None:
        return
    pair = isinstance(bounds, tuple | list) and len(bounds) == 2
    low, high = bounds if pair else (-1, -1)
    high = low if high is None else high
    if not is_number(low) or not is_number(high) or not 0 <= low <= high < math.inf:
        raise ArgumentError(
            f"read: the mark {mark!r} must stand for a range such as (1, 4) or (0, None), not {shown(bounds)}"
        )


TOTALS = frozenset({"total", "totals", "all", "overall", "altogether", "grand total"}) | {"sum"}
COUNTS = frozenset({"count", "counts", "n", "freq", "frequency", "value", "obs_value"})


@dataclass(frozen=True)
class _Sheet:
    """Texts in rows under a header, and what a data frame calls its rows and columns."""

    name: str
    header: list[str]
    rows: list[list[str]]
    heads: list[str] = field(default_factory=list)
    across: str | None = None


@kinds_checked
def read(
    source: Any,
    suppressed: Sequence[str] | Mapping[str, Any] = ("*", "x", "<5"),
    margins: bool | Sequence[str] = True,
    base: int | None = None,
    *,
    rounding: str = "nearest",
    threshold: int | None = None,
    zeros: bool | None = None,
    nil: Sequence[str] = (),
    total: str | Sequence[str] = (),
    rows: Sequence[str] | None = None,
    columns: str | None = None,
    count: str | None = None,
    names: Mapping[str, str] | None = None,
    hierarchy: Mapping[str, Sequence[str]] | None = None,
    partial: Sequence[str] = (),
    magnitude: bool = False,
    thousands: str = ",",
    decimal: str = ".",
    name: str | None = None,
) -> Table:
    """Read a table as it was published: with totals, and with figures that are suppressed or rounded.

    `source` is the path of a CSV file, a pandas or polars data frame (`pd.crosstab(..., margins=True)` as it is), or a
    list of rows of which the first is the header. A wide table has labels in its first column and a category in every
    other one; a long one has a row for each cell. The page of the reference says what each argument means.

    Raises:
        ArgumentError: A cell cannot be read, a total is missing, or totals do not add up; the message names the cell.

    >>> import privug as pv
    >>> table = pv.tables.read([["region", "women", "men", "Total"], ["North", "x", "x", "12"],
    ...                         ["South", "9", "7", "16"], ["Total", "13", "15", "28"]])
    >>> table.cells["North", "women"].kind, table.title(("North", None))
    ('suppressed', 'North x Total')
    """
    written = notation(suppressed, nil, threshold, base, rounding, thousands, decimal, magnitude)
    sheet = _sheet(source, name)
    long = count is not None or (rows is None and not sheet.heads and sheet.header[-1].casefold() in COUNTS)
    heads, across, texts, heading = _long(sheet, count) if long else _wide(sheet, rows, columns)
    reader = _TableReader(sheet.name, heads, across, dict(names or {}), written)
    table = reader.table(texts, margins, (total,) if isinstance(total, str) else total, hierarchy or {}, zeros, heading)
    table = _with_partial(table, as_names("read: partial", partial))
    System([table]).check()
    return table


def _with_partial(table: Table, names: Sequence[str]) -> Table:
    """Return a table some of whose dimensions do not sum to the total."""
    known = [dimension.name for dimension in table.dimensions]
    if unknown := [name for name in names if name not in known]:
        raise ArgumentError(f"{table.name} has no dimension {unknown[0]!r}; it has {', '.join(known)}")
    return replace(
        table,
        dimensions=tuple(
            replace(
                d, parts={whole: parts for whole, parts in d.parts.items() if whole is not None or d.name not in names}
            )
            for d in table.dimensions
        ),
    )


def _sheet(source: Any, name: str | None) -> _Sheet:
    if isinstance(source, str | Path):
        return _file(Path(source), name or Path(source).stem)
    if hasattr(source, "iloc") and hasattr(source, "columns"):
        sheet = _pandas(source, name or "table")
    elif hasattr(source, "columns") and callable(getattr(source, "rows", None)):
        rows = [[_text(cell) for cell in row] for row in source.rows()]
        sheet = _Sheet(name or "table", [*map(str, source.columns)], rows)
    elif isinstance(source, list | tuple) and source and all(isinstance(row, list | tuple) for row in source):
        header, *rows = ([_text(cell) for cell in row] for row in source)
        sheet = _Sheet(name or "table", header, rows)
    else:
        raise ArgumentError(
            "read needs the path of a CSV file, a pandas or polars data frame, or a list of rows, not " + shown(source)
        )
    return _checked(sheet)


def _pandas(frame: Any, name: str) -> _Sheet:
    if getattr(frame.columns, "nlevels", 1) > 1:
        raise ArgumentError("read: columns of several levels are not supported; make the frame long by .stack()")
    header, rows = [*map(_text, frame.columns)], [[*map(_text, row)] for row in frame.itertuples(index=False)]
    if type(frame.index).__name__ == "RangeIndex":
        return _Sheet(name, header, rows)
    labels = [label if isinstance(label, tuple) else (label,) for label in frame.index]
    named = [f"rows {k}" if head is None else str(head) for k, head in enumerate(frame.index.names, 1)]
    rows = [[*map(_text, label), *row] for label, row in zip(labels, rows, strict=True)]
    across = frame.columns.name
    return _Sheet(name, [*named, *header], rows, named, None if across is None else str(across))


def _text(cell: Any) -> str:
    """Return a cell of a frame or of a file as text."""
    if cell is None or type(cell).__name__ in ("NAType", "NaTType"):
        return ""
    if isinstance(cell, float | np.floating):
        return "" if math.isnan(cell) else str(int(cell)) if math.isfinite(cell) and cell == int(cell) else str(cell)
    return represented(cell, str).strip()


def _file(path: Path, name: str) -> _Sheet:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ArgumentError(f"{path} is not a text file in UTF-8") from None
    except (OSError, ValueError) as error:
        raise ArgumentError(f"{path}: {error.strerror if isinstance(error, OSError) else error}") from None
    delimiter = max(DELIMITERS, key=text.count)
    try:
        listed = [[*map(_text, row)] for row in csv.reader(text.splitlines(), delimiter=delimiter, strict=True)]
    except csv.Error as error:
        raise ArgumentError(f"{path}: {error}") from None
    listed = [row for row in listed if any(row)]
    while listed and not any(listed[0][1:]):
        listed.pop(0)
    while listed and not any(listed[-1][1:]):
        listed.pop()
    if not listed:
        raise ArgumentError(f"{path} has no table: labels and figures in at least two columns")
    return _checked(_Sheet(name, listed[0], listed[1:]))


def _checked(sheet: _Sheet) -> _Sheet:
    if len(sheet.header) < 2 or not sheet.rows:
        raise ArgumentError(f"{sheet.name} has no table: labels and figures in at least two columns, below a header")
    for row in sheet.rows:
        if len(row) != len(sheet.header):
            raise ArgumentError(
                f"{sheet.name}: the row {row[0]!r} has {len(row)} cells, but the header has {len(sheet.header)}; "
                "figures with a comma inside stand in quotes"
            )
    twice = [label for label, times in Counter(sheet.header).items() if times > 1]
    if twice:
        raise ArgumentError(f"{sheet.name}: more than one column is called {twice[0]!r}")
    return sheet


_Texts = list[tuple[list[str], str]]
"""The labels of each cell and its text."""


def _long(sheet: _Sheet, count: str | None) -> tuple[list[str], str | None, _Texts, str]:
    figures = sheet.header[-1] if count is None else count
    if figures not in sheet.header:
        raise ArgumentError(f"{sheet.name} has no column {figures!r}; its columns are {', '.join(sheet.header)}")
    place = sheet.header.index(figures)
    heads = [head for head in sheet.header if head != figures]
    return heads, None, [([*row[:place], *row[place + 1 :]], row[place]) for row in sheet.rows], figures


def _wide(sheet: _Sheet, rows: Sequence[str] | None, columns: str | None) -> tuple[list[str], str | None, _Texts, str]:
    heads = as_names("read: rows", rows) if rows is not None else tuple(sheet.heads or sheet.header[:1])
    unknown = [head for head in heads if head not in sheet.header]
    if unknown or not heads:
        raise ArgumentError(f"{sheet.name} has no column {(unknown or [''])[0]!r}; it has {', '.join(sheet.header)}")
    places = [sheet.header.index(head) for head in heads]
    others = [place for place in range(len(sheet.header)) if place not in places]
    if not others:
        raise ArgumentError(f"{sheet.name} has no column of figures besides {', '.join(heads)}")
    named, across = [*heads], columns or sheet.across
    if "\\" in named[-1]:
        named[-1], corner = (part.strip() for part in named[-1].split("\\", 1))
        across = across or corner
    texts = []
    for row in sheet.rows:
        labels = [row[place] for place in places]
        for place in others:
            texts.append(([*labels, sheet.header[place]] if len(others) > 1 else labels, row[place]))
    return named, (across or "") if len(others) > 1 else None, texts, sheet.header[others[0]]


class _TableReader:
    """Makes a table of texts with labels."""

    def __init__(
        self, name: str, heads: list[str], across: str | None, names: dict[str, str], written: Notation
    ) -> None:
        self.name, self.written = name, written
        given = [*heads, *([] if across is None else [across])]
        self.heads = [names.get(head, head) for head in given]
        if len(set(self.heads)) < len(self.heads) or "" in self.heads[:-1]:
            raise ArgumentError(f"{name}: every dimension needs a name of its own, not {', '.join(map(repr, given))}")

    def table(
        self,
        texts: _Texts,
        margins: bool | Sequence[str],
        totals: Sequence[str],
        hierarchy: Mapping[str, Sequence[str]],
        zeros: bool | None,
        heading: str,
    ) -> Table:
        known = TOTALS | {total.strip().casefold() for total in as_names("read: total", totals)}
        parts = {parent: as_names("read: hierarchy", some) for parent, some in hierarchy.items()}
        dimensions, lookups = [], []
        for place, head in enumerate(self.heads):
            labels = list(dict.fromkeys(labels[place] for labels, _ in texts))
            has_total = self._has_total(head, margins)
            sums = [label for label in labels if has_total and label.casefold() in known]
            self._check_totals(head, labels, sums, has_total)
            dimensions.append(_dimension(self.name, head, labels, sums, parts))
            lookups.append({label: None if label in sums else label for label in labels})
        found: dict[Labels, str] = {}
        for labels, text in texts:
            key = tuple(lookup[label] for lookup, label in zip(lookups, labels, strict=True))
            if key in found:
                raise ArgumentError(f"{self.name}: there are two cells {' x '.join(labels)}")
            found[key] = text
        table = Table(self.name, tuple(dimensions), {}, self.written.magnitude, heading)
        self._check_complete(table, found, [lookup.values() for lookup in lookups])
        return Table(self.name, table.dimensions, self._cells(table, found, zeros), table.magnitude, heading)

    def _has_total(self, head: str, margins: Any) -> bool:
        if isinstance(margins, bool | np.bool_):
            return bool(margins)
        unknown = [name for name in as_names("read: margins", margins) if name not in self.heads]
        if unknown:
            raise ArgumentError(f"{self.name} has no dimension {unknown[0]!r}; it has {', '.join(self.heads)}")
        return head in margins

    def _check_totals(self, head: str, labels: list[str], sums: list[str], has_total: bool) -> None:
        if "" in labels:
            raise ArgumentError(f"{self.name}: a label of the dimension {head!r} is empty")
        if has_total and len(sums) != 1:
            which = f"the totals {', '.join(sums)}" if sums else "no total"
            raise ArgumentError(
                f"{self.name}: the dimension {head or 'across'!r} has {which}; its labels are "
                f"{', '.join(labels[:8])}; name the total by total=, or the dimensions that have one by margins="
            )
        if len(labels) == len(sums):
            raise ArgumentError(f"{self.name}: the dimension {head!r} has no category besides its total")

    def _check_complete(self, table: Table, found: Mapping[Labels, str], labels: Sequence[Any]) -> None:
        for key in product(*labels):
            if key not in found:
                raise ArgumentError(f"{self.name}: {table.title(key)} is missing; write 0 if nobody is counted there")

    def _cells(self, table: Table, found: Mapping[Labels, str], zeros: bool | None) -> dict[Labels, Any]:
        figures = {key: self.written.figure(text, f"{self.name}: {table.title(key)}") for key, text in found.items()}
        shows = self.written.base is None and any(n == 0 and None not in key for key, n in figures.items())
        published = shows if zeros is None else zeros
        return {key: self.written.cell(text, figures[key], published) for key, text in found.items()}


def _dimension(
    table: str, head: str, labels: list[str], sums: list[str], hierarchy: Mapping[str, tuple[str, ...]]
) -> Dimension:
    """Return a dimension with the parts of its categories, so far as its labels are in the hierarchy."""
    categories = tuple(label for label in labels if label not in sums)
    known = set(categories)
    parts: dict[str | None, tuple[str, ...]] = {}
    for parent, some in reversed([*_ordered(hierarchy)]):
        there = [part for part in some if part in known]
        if there and len(there) < len(some):
            missing = next(part for part in some if part not in known)
            raise ArgumentError(f"{table}: {parent} is the sum of {', '.join(some)}, but there is no {missing}")
        if there:
            parts[parent] = some
            known.add(parent)
    inside = [part for some in parts.values() for part in some]
    if len(set(inside)) < len(inside):
        raise ArgumentError(f"{table}: hierarchy puts {Counter(inside).most_common(1)[0][0]} into two categories")
    above = [parent for parent in parts if parent is not None]
    top = tuple(label for label in dict.fromkeys([*categories, *above]) if label not in inside)
    named = head != ""
    label = sums[0] if sums else TOTAL
    return Dimension(head or "/".join(sorted(categories)), categories, {None: top, **parts}, label, named)


def _ordered(hierarchy: Mapping[str, tuple[str, ...]]) -> list[tuple[str, tuple[str, ...]]]:
    """Return the categories that have parts, each before those of its parts that have some."""
    order: list[str] = []

    def visit(parent: str, above: tuple[str, ...]) -> None:
        if parent in above:
            raise ArgumentError(f"hierarchy: {parent} is a part of itself")
        for part in hierarchy.get(parent, ()):
            visit(part, (*above, parent))
        if parent in hierarchy and parent not in order:
            order.append(parent)

    for parent in hierarchy:
        visit(parent, ())
    return [(parent, hierarchy[parent]) for parent in reversed(order)]
