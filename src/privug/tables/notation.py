"""The texts of cells: figures with separators and footnotes, and the marks of figures that are withheld or rounded."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from privug.arguments import as_names, is_number, shown
from privug.errors import ArgumentError
from privug.tables.table import PublishedCell

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
