"""Observed pairs of secret and output from files: CSV, JSON lines, Parquet, and the layouts of leakiEst and F-BLEAU."""

from __future__ import annotations  # what they name is imported when it is needed

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import privug as pv

Values = list[Any] | npt.NDArray[Any]

LAYOUTS = ("auto", "csv", "jsonl", "leakiest", "fbleau", "parquet")
JSON_LINES = (".jsonl", ".ndjson")


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

    def part(self, rows: int | None, seed: int) -> Observations:
        """Return so many of the pairs, drawn at random, or all if there are no more."""
        count = len(self.secrets)
        if rows is None or rows >= count:
            return self
        picked = np.sort(np.random.default_rng(seed).choice(count, rows, replace=False))
        secrets, outputs = (_taken(values, picked) for values in (self.secrets, self.outputs))
        return Observations(secrets, outputs, f"{self.source}; {rows:,} of them at random")

    def __add__(self, other: Observations) -> Observations:
        secrets, outputs = _joined(self.secrets, other.secrets), _joined(self.outputs, other.outputs)
        return Observations(secrets, outputs, f"{self.source}; {other.source}")


def read(
    path: Path, layout: str = "auto", secret: str | None = None, outputs: Sequence[str] = (), labels: Sequence[str] = ()
) -> Observations:
    """Read the pairs of a file; `secret`, `outputs` and `labels` name columns, or fields of JSON lines."""
    named = secret is not None or bool(outputs or labels)
    if layout in ("leakiest", "fbleau") and named:
        raise _no_names(path, layout)
    wanted = None if secret is None or not outputs else [secret, *outputs]
    if wanted is not None and (unused := [name for name in labels if name not in wanted]):
        raise pv.ArgumentError(f"--labels {unused[0]}: this column is neither the secret nor an output")
    if wanted is None and secret is not None:
        raise _unnamed(path)
    if layout == "jsonl" or (layout == "auto" and path.suffix.lower() in JSON_LINES):
        if wanted is None:
            raise _unnamed(path)
        return _of_rows(path, _json_columns(path, wanted, labels), "JSON lines", *wanted)
    columns = pv.read_columns(path, wanted, labels=labels, layout=layout)
    if columns.layout in ("csv", "parquet"):
        if wanted is None:
            raise _unnamed(path)
        return _of_rows(path, columns, columns.layout, *wanted)
    if named:
        raise _no_names(path, columns.layout)
    first, *rest = columns.values()
    places = ("the first", "the second") if columns.layout == "leakiest" else ("the first column", "the rest")
    told = f"{len(first):,} pairs ({columns.layout}), secret {places[0]}, output {places[1]}"
    return Observations(first, _together(rest), f"{_shown(path.name)}: {told}")


def _of_rows(path: Path, columns: Mapping[str, Any], layout: str, secret: str, *outputs: str) -> Observations:
    if not len(columns[secret]):
        raise pv.ArgumentError(f"{path} has no rows" + ("" if layout == "JSON lines" else " below its header"))
    seen = ", ".join(map(_shown, outputs))
    told = f"{len(columns[secret]):,} rows ({layout}), secret {_shown(secret)}, output {seen}"
    together = _together([columns[name] for name in outputs])
    return Observations(columns[secret], together, f"{_shown(path.name)}: {told}")


def _json_columns(path: Path, names: Sequence[str], labels: Sequence[str]) -> dict[str, Values]:
    """Return fields of objects, one in each line; numbers as arrays, unless they are labels."""
    rows = []
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise pv.ArgumentError(f"{path} cannot be read: {error}") from None
    for number, line in enumerate(lines, 1):
        if line.strip():
            rows.append(_json_fields(path, number, line, names))
    columns: dict[str, Values] = {}
    for name, values in zip(names, zip(*rows, strict=True) if rows else [()] * len(names), strict=True):
        numeric = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
        columns[name] = np.array(values) if numeric and name not in labels else list(values)
    return columns


def _json_fields(path: Path, number: int, line: str, names: Sequence[str]) -> list[Any]:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise pv.ArgumentError(f"{path}, line {number}: this is not JSON ({error})") from None
    for name in names:
        if not isinstance(row, dict) or name not in row:
            raise pv.ArgumentError(f"{path}, line {number}: an object with the field {_shown(name)!r} is needed")
        if not isinstance(row[name], str | int | float | bool):
            raise pv.ArgumentError(f"{path}, line {number}: {_shown(name)!r} must be a number, a string or a boolean")
    return [row[name] for name in names]


def _shown(name: str) -> str:
    """Return a name as it is, or written out if it holds characters that do something rather than show something."""
    return name if name.isprintable() else repr(name)


def _unnamed(path: Path) -> pv.ArgumentError:
    return pv.ArgumentError(f"{path}: name the columns, as in --secret age --output released")


def _no_names(path: Path, layout: str) -> pv.ArgumentError:
    return pv.ArgumentError(
        f"{path}: files of the {layout} layout name no columns; leave out --secret, --output and --labels"
    )


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


def _taken(values: Values, picked: npt.NDArray[np.int64]) -> Values:
    return values[picked] if isinstance(values, np.ndarray) else [values[place] for place in picked]


def _listed(values: Values) -> list[Any]:
    return values.tolist() if isinstance(values, np.ndarray) else list(values)
