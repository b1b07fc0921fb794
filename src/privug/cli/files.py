"""Observed pairs of secret and output from files: CSV, Parquet, and the layouts of leakiEst and F-BLEAU."""

import csv
import importlib
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import privug as pv

Values = list[Any] | npt.NDArray[Any]

LAYOUTS = ("auto", "csv", "leakiest", "fbleau", "parquet")
DELIMITERS = ",;\t|"
COMMENT = "//"  # of leakiEst
PAIR = re.compile(r"\(\s*([^,]*?)\s*,\s*(.*?)\s*\)")


@dataclass(frozen=True)
class Observations:
    """Secrets and outputs in pairs, and where they come from."""

    secrets: Values
    outputs: Values
    source: str

    def joint(self) -> pv.Joint:
        """Return the pairs as a joint."""
        pairs: Any = (self.secrets, self.outputs)
        return pv.Joint.from_samples(*pairs)

    def __add__(self, other: "Observations") -> "Observations":
        secrets, outputs = _joined(self.secrets, other.secrets), _joined(self.outputs, other.outputs)
        return Observations(secrets, outputs, f"{self.source}; {other.source}")


@dataclass(frozen=True)
class _Cells:
    """One column as text, with the line that each cell stands in."""

    name: str
    texts: list[str]
    lines: list[int]
    path: Path

    def failure(self, place: int, problem: str) -> pv.ArgumentError:
        return pv.ArgumentError(f"{self.path}, line {self.lines[place]}: {self.name} {problem}")


def read(
    path: Path, layout: str = "auto", secret: str | None = None, outputs: Sequence[str] = (), labels: Sequence[str] = ()
) -> Observations:
    """Read the pairs of a file; `secret`, `outputs` and `labels` name columns of a CSV or Parquet file.

    A column of numbers is read as numbers, unless it is one of `labels`. Rows with missing cells, and other text among
    numbers, are refused with their line.
    """
    found = _detected(path, secret) if layout == "auto" else layout
    if found in ("csv", "parquet"):
        return _table(path, found, secret, outputs, labels)
    if secret is not None or outputs or labels:
        raise pv.ArgumentError(
            f"{path}: files of the {found} layout name no columns; leave out --secret, --output and --labels"
        )
    pairs = _leakiest(path) if found == "leakiest" else _fbleau(path)
    names = "the first" if found == "leakiest" else "the first column"
    rest = "the second" if found == "leakiest" else "the rest"
    return Observations(*pairs, f"{path.name}: {len(pairs[0]):,} pairs ({found}), secret {names}, output {rest}")


def _detected(path: Path, secret: str | None) -> str:
    with path.open("rb") as file:
        if file.read(4) == b"PAR1":
            return "parquet"
    first = next((line for _, line in _lines(path) if not line.startswith(COMMENT)), "")
    if first.startswith("(") and secret is None:
        return "leakiest"
    cells = next(csv.reader([first], delimiter=_delimiter(first)), [])
    if secret is None and len(cells) > 1 and all(_number(cell) is not None for cell in cells):
        return "fbleau"
    return "csv"


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines that are not empty, and their numbers."""
    try:
        with path.open(encoding="utf-8-sig") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield number, line.strip()
    except UnicodeDecodeError:
        raise pv.ArgumentError(f"{path} is not a text file in UTF-8") from None
    except OSError as error:
        raise pv.ArgumentError(f"{path}: {error.strerror}") from None


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a delimited file, and the lines they end in; all must have as many cells as the first."""
    width = 0
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            delimiter = _delimiter(next((line for line in file if line.strip()), ""))
            file.seek(0)
            reader = csv.reader(file, delimiter=delimiter, skipinitialspace=True, strict=True)
            for row in reader:
                if not any(cell.strip() for cell in row):
                    continue
                width = width or len(row)
                if len(row) != width:
                    counts = f"{len(row)} cells, but the first line has {width}"
                    raise pv.ArgumentError(f"{path}, line {reader.line_num}: there are {counts}")
                yield reader.line_num, row
    except UnicodeDecodeError:
        raise pv.ArgumentError(f"{path} is not a text file in UTF-8") from None
    except csv.Error as error:
        raise pv.ArgumentError(f"{path}, line {reader.line_num}: {error}") from None


def _delimiter(line: str) -> str:
    return max(DELIMITERS, key=line.count)


def _table(path: Path, layout: str, secret: str | None, outputs: Sequence[str], labels: Sequence[str]) -> Observations:
    if secret is None or not outputs:
        raise pv.ArgumentError(f"{path}: name the columns, as in --secret age --output released")
    wanted = list(dict.fromkeys((secret, *outputs)))
    if unused := [name for name in labels if name not in wanted]:
        raise pv.ArgumentError(f"--labels {unused[0]}: this column is neither the secret nor an output")
    columns = (_parquet if layout == "parquet" else _csv)(path, wanted, labels)
    if not len(columns[secret]):
        raise pv.ArgumentError(f"{path} has no rows below its header")
    parts = [columns[name] for name in outputs]
    told = f"{len(columns[secret]):,} rows ({layout}), secret {secret}, output {', '.join(outputs)}"
    return Observations(columns[secret], _together(parts), f"{path.name}: {told}")


def _csv(path: Path, wanted: list[str], labels: Sequence[str]) -> dict[str, Values]:
    rows = _rows(path)
    _, header = next(rows, (1, []))
    names = [name.strip() for name in header]
    _check_columns(path, wanted, names)
    places = [names.index(name) for name in wanted]
    lines, kept = [], []
    for line, row in rows:
        lines.append(line)
        kept.append([row[place].strip() for place in places])
    texts = list(zip(*kept, strict=True)) if kept else [()] * len(wanted)
    cells = (_Cells(f"column {name}", list(t), lines, path) for name, t in zip(wanted, texts, strict=True))
    return {name: _values(column, name in labels) for name, column in zip(wanted, cells, strict=True)}


def _check_columns(path: Path, wanted: list[str], names: list[str]) -> None:
    for name in wanted:
        if names.count(name) != 1:
            problem = "no column" if name not in names else "more than one column"
            raise pv.ArgumentError(f"{path} has {problem} {name!r}; its columns are {', '.join(names) or 'none'}")


def _values(cells: _Cells, as_labels: bool = False) -> Values:
    """Return a column as whole numbers, as numbers, or as labels if most cells are no numbers."""
    if "" in cells.texts:
        raise cells.failure(cells.texts.index(""), "is empty; leave such rows out, or fill them")
    if as_labels:
        return cells.texts
    for kind in (int, float):
        try:
            numbers = np.array([kind(text) for text in cells.texts], np.int64 if kind is int else float)
        except (ValueError, OverflowError):
            continue
        if kind is float and np.isnan(numbers).any():
            raise cells.failure(int(np.isnan(numbers).argmax()), "is not a number (nan); leave such rows out")
        return numbers
    wrong = [place for place, text in enumerate(cells.texts) if _number(text) is None]
    if len(wrong) > len(cells.texts) / 2:
        return cells.texts
    found = f"holds {cells.texts[wrong[0]]!r} among numbers"
    raise cells.failure(wrong[0], f"{found}; correct it, or take the column as labels by --labels")


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _parquet(path: Path, wanted: list[str], labels: Sequence[str]) -> dict[str, Values]:
    try:
        parquet = importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise pv.ArgumentError(f"{path}: reading Parquet needs pyarrow: pip install pyarrow") from None
    try:
        file = parquet.ParquetFile(path)
        _check_columns(path, wanted, file.schema_arrow.names)
        table = file.read(columns=wanted)
    except (OSError, ValueError) as error:
        if isinstance(error, pv.PrivugError):
            raise
        raise pv.ArgumentError(f"{path} is not a readable Parquet file: {error}") from None
    columns = {name: _plain(path, name, table.column(name).to_pylist()) for name in wanted}
    return {name: [str(v) for v in values] if name in labels else values for name, values in columns.items()}


def _plain(path: Path, name: str, values: list[Any]) -> Values:
    for row, value in enumerate(values, 1):
        if value is None or (isinstance(value, float) and math.isnan(value)):
            raise pv.ArgumentError(f"{path}, row {row}: column {name} is empty; leave such rows out, or fill them")
    array = np.array(values)
    return array if array.dtype.kind in "bif" and array.ndim == 1 else values


def _leakiest(path: Path) -> tuple[Values, Values]:
    pairs, lines = [], []
    for number, line in _lines(path):
        if line.startswith(COMMENT):
            continue
        found = PAIR.fullmatch(line)
        if found is None:
            hint = (
                "a channel, not observations" if "|" in line else f"not a pair such as (secret, output): {line[:40]!r}"
            )
            raise pv.ArgumentError(f"{path}, line {number}: this is {hint}")
        pairs.append(found.groups())
        lines.append(number)
    if not pairs:
        raise pv.ArgumentError(f"{path} has no observations such as (secret, output)")
    secret, output = ([pair[side] for pair in pairs] for side in (0, 1))
    return _values(_Cells("the secret", secret, lines, path)), _values(_Cells("the output", output, lines, path))


def _fbleau(path: Path) -> tuple[Values, Values]:
    rows = list(_rows(path))
    if not rows or len(rows[0][1]) < 2:
        raise pv.ArgumentError(f"{path} needs a secret and at least one number of output in every line")
    lines = [line for line, _ in rows]
    columns = [[cell.strip() for cell in column] for column in zip(*(row for _, row in rows), strict=True)]
    cells = [_Cells(f"column {place}", texts, lines, path) for place, texts in enumerate(columns, 1)]
    secret, *parts = [_values(column) for column in cells]
    for column, part in zip(cells[1:], parts, strict=True):
        if not isinstance(part, np.ndarray):
            raise column.failure(0, f"holds {column.texts[0]!r}; outputs of the fbleau layout are numbers")
    return secret, _together(parts)


def _together(parts: list[Values]) -> Values:
    """Return a column as it is, several columns of numbers as rows, and other columns as tuples."""
    if len(parts) == 1:
        return parts[0]
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.column_stack(parts)
    return list(zip(*(_listed(part) for part in parts), strict=True))


def _joined(left: Values, right: Values) -> Values:
    if isinstance(left, np.ndarray) and isinstance(right, np.ndarray) and left.shape[1:] == right.shape[1:]:
        return np.concatenate((left, right))
    return [*_listed(left), *_listed(right)]


def _listed(values: Values) -> list[Any]:
    return values.tolist() if isinstance(values, np.ndarray) else list(values)
