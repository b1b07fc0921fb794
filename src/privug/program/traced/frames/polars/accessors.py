"""The accessors of polars: `str` on texts, `dt` on dates, `name` on names."""

import inspect
from collections.abc import Callable
from typing import Any

from privug.model.variable import refuse
from privug.program.traced.frames.cells import mapped
from privug.program.traced.frames.polars.column import Column

_PATTERNS = ".^$*+?{}[]\\|()"


def _plain(pattern: Any, literal: bool) -> str:
    if not isinstance(pattern, str) or (not literal and any(letter in pattern for letter in _PATTERNS)):
        refuse("a pattern of texts")
    return pattern


def _slice(text: str, offset: int, length: int | None = None) -> str:
    start = offset if offset >= 0 else max(len(text) + offset, 0)
    return text[start:] if length is None else text[start : start + length]


def _contains(text: str, pattern: str, *, literal: bool = False) -> bool:
    return _plain(pattern, literal) in text


def _replace(text: str, pattern: str, value: str, *, literal: bool = False) -> str:
    return text.replace(_plain(pattern, literal), value, 1)


def _replace_all(text: str, pattern: str, value: str, *, literal: bool = False) -> str:
    return text.replace(_plain(pattern, literal), value)


def _whole_number(text: str, *, base: int = 10, strict: bool = True) -> int | None:
    digits = text.removeprefix("-").removeprefix("+")
    if base == 10 and digits.isascii() and digits.isdigit():
        return int(text)
    return refuse("to_integer() of such texts") if strict else None


TEXTS: dict[str, Callable[..., Any]] = {
    "to_uppercase": lambda text: text.upper(), "to_lowercase": lambda text: text.lower(), "slice": _slice,
    "head": lambda text, n: text[:n], "tail": lambda text, n: text[-n:] if n else "",
    "starts_with": lambda text, prefix: text.startswith(prefix),
    "ends_with": lambda text, suffix: text.endswith(suffix),
    "contains": _contains, "replace": _replace, "replace_all": _replace_all, "len_chars": len,
    "len_bytes": lambda text: len(text.encode()), "zfill": lambda text, length: text.zfill(length),
    "strip_chars": lambda text, characters=None: text.strip(characters), "to_integer": _whole_number,
    "strip_prefix": lambda text, prefix: text.removeprefix(prefix),
    "strip_suffix": lambda text, suffix: text.removesuffix(suffix),
    "pad_start": lambda text, length, fill_char=" ": text.rjust(length, fill_char),
    "pad_end": lambda text, length, fill_char=" ": text.ljust(length, fill_char),
}  # fmt: skip

DATES: dict[str, Callable[..., Any]] = {
    "year": lambda date: date.year, "month": lambda date: date.month, "day": lambda date: date.day,
    "quarter": lambda date: (date.month + 2) // 3, "weekday": lambda date: date.isoweekday(),
    "iso_year": lambda date: date.isocalendar()[0], "week": lambda date: date.isocalendar()[1],
    "ordinal_day": lambda date: date.timetuple().tm_yday, "to_string": lambda date, pattern: date.strftime(pattern),
    "strftime": lambda date, pattern: date.strftime(pattern), "month_start": lambda date: date.replace(day=1),
}  # fmt: skip

NAMES: dict[str, Callable[..., str]] = {
    "suffix": lambda name, suffix: name + suffix, "prefix": lambda name, prefix: prefix + name,
    "to_uppercase": lambda name: name.upper(), "to_lowercase": lambda name: name.lower(),
}  # fmt: skip


def of_values(function: Callable[..., Any]) -> Callable[..., Column]:
    """Return the method of columns that applies a function to each of the values that there may be."""

    def method(column: Column, *arguments: Any, **options: Any) -> Column:
        if any(isinstance(argument, Column) for argument in (*arguments, *options.values())):
            refuse("texts or dates with another column as argument")
        return column.each(lambda cell: mapped(lambda value: function(value, *arguments, **options), cell))

    method.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    return method


def _of_name(function: Callable[..., str]) -> Callable[..., Column]:
    def method(column: Column, *arguments: Any) -> Column:
        return column.named(function(column.name, *arguments))

    method.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    return method


ACCESSORS: dict[str, dict[str, Callable[..., Column]]] = {
    "str": {name: of_values(function) for name, function in TEXTS.items()},
    "dt": {name: of_values(function) for name, function in DATES.items()},
    "name": {name: _of_name(function) for name, function in NAMES.items()},
}
"""The methods of each accessor, by their names."""
