"""The accessors of traced columns: `series.str` on texts and `series.dt` on dates."""

from collections.abc import Callable
from typing import Any

from privug.model.variable import refuse
from privug.program.traced.frames.cells import Cell, mapped
from privug.program.traced.frames.series import Series
from privug.program.traced.frames.shapes import observes_by_default
from privug.program.traced.masks import OfStanding, both, truth

_TEXTS: dict[str, Callable[..., Any]] = {
    "upper": str.upper, "lower": str.lower, "strip": str.strip, "title": str.title, "capitalize": str.capitalize,
    "lstrip": str.lstrip, "rstrip": str.rstrip, "zfill": str.zfill, "startswith": str.startswith,
    "isdigit": str.isdigit, "endswith": str.endswith, "len": len, "removeprefix": str.removeprefix,
    "isnumeric": str.isnumeric,
    "removesuffix": str.removesuffix, "find": str.find, "ljust": str.ljust, "rjust": str.rjust,
}  # fmt: skip
_VERDICTS = {"startswith", "endswith", "isdigit", "isnumeric"}
_DATES = {"year", "month", "day", "hour", "minute", "second"}


def _is_pattern(part: str) -> bool:
    return any(letter in part for letter in ".^$*+?{}[]\\|()")


def _part(text: str, key: Any) -> Any:
    """Return a letter, which may be missing, or a part of a text."""
    return None if isinstance(key, int) and not -len(text) <= key < len(text) else text[key]


class Texts(OfStanding):
    """`series.str`: methods of texts, on each of the texts that a cell may be."""

    def __init__(self, column: Series) -> None:
        self._column = column

    def __getitem__(self, key: Any) -> Any:
        return self._column.each(lambda cell: mapped(lambda text: _part(text, key), cell))

    def slice(self, start: Any = None, stop: Any = None, step: Any = None) -> Any:
        return self[slice(start, stop, step)]

    def contains(self, part: str, regex: bool = True, case: bool = True) -> Any:
        if regex and _is_pattern(part):
            refuse("str.contains() of a pattern")
        return self._verdicts(lambda text: part in text if case else part.lower() in text.lower())

    def _verdicts(self, function: Callable[[str], bool]) -> Any:
        """Say what holds of texts: of a missing one nothing does, from pandas 3.0 on."""
        if not self._column.is_known and not observes_by_default():
            refuse("a look into missing texts")
        verdicts = [mapped(function, cell) for cell in self._column.cells]
        return self._column.with_cells([Cell(both(cell.known, truth(cell.value))) for cell in verdicts])

    def replace(self, old: str, new: str, regex: bool = False) -> Any:
        if regex:
            refuse("str.replace() of a pattern")
        return self._column.each(lambda cell: mapped(lambda text: text.replace(old, new), cell))

    def count(self, part: str) -> Any:
        if _is_pattern(part):
            refuse("str.count() of a pattern")
        return self._column.each(lambda cell: mapped(lambda text: text.count(part), cell))

    def __getattr__(self, name: str) -> Any:
        if name not in _TEXTS:
            refuse(f"Series.str.{name}")
        function = _TEXTS[name]
        column = self._column
        if name in _VERDICTS:
            return lambda *arguments: self._verdicts(lambda text: function(text, *arguments))
        return lambda *arguments: column.each(lambda cell: mapped(lambda text: function(text, *arguments), cell))


class Dates(OfStanding):
    """`series.dt`: parts of dates."""

    def __init__(self, column: Series) -> None:
        self._column = column

    def __getattr__(self, name: str) -> Any:
        column = self._column
        if name == "quarter":
            return column.each(lambda cell: mapped(lambda date: (date.month + 2) // 3, cell))
        if name in ("dayofweek", "weekday"):
            return column.each(lambda cell: mapped(lambda date: date.weekday(), cell))
        if name in _DATES:
            return column.each(lambda cell: mapped(lambda date: getattr(date, name, 0), cell))
        return refuse(f"Series.dt.{name}")
