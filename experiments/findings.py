"""What an experiment finds: Privug's numbers beside the exact and the published ones, figures, and remarks."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import privug as pv

DIGITS = 6
"""Significant digits to which exact values are printed and compared."""


@dataclass(frozen=True)
class Line:
    """A quantity as Privug, the exact calculation and the paper say it.

    An exact value is a number, or the digits of one where no more of them are known ("63.307").
    """

    quantity: str
    privug: pv.Estimate | float | str
    exact: float | str | None = None
    paper: str = ""
    note: str = ""

    @property
    def agrees(self) -> bool | None:
        """Whether Privug's value is the exact one to the digits printed, or has it inside its interval.

        There is no verdict without an exact value, or about words.
        """
        if self.exact is None or isinstance(self.privug, str):
            return None
        truth, found = float(self.exact), float(self.privug)
        if found == truth or abs(found - truth) <= 0.51 * _last_digit(self.exact):  # 0.51: halves round either way
            return True
        return isinstance(self.privug, pv.Estimate) and not self.privug.exact and truth in self.privug

    @property
    def texts(self) -> tuple[str, str, str, str, str, str]:
        """The line as a table shows it."""
        verdict = {True: "yes", False: "NO", None: ""}[self.agrees]
        return self.quantity, self._found, self._truth, self.paper, verdict, self.note

    @property
    def _found(self) -> str:
        match self.privug:
            case str():
                return self.privug
            case pv.Estimate(exact=True):
                unit = f" {self.privug.unit}" if self.privug.unit else ""
                return f"{_digits(self.privug.value)}{unit} (exact)"
            case pv.Estimate():
                return f"{self.privug.number()} {self.privug.unit}".strip()
            case _:
                return _digits(self.privug)

    @property
    def _truth(self) -> str:
        return "" if self.exact is None else self.exact if isinstance(self.exact, str) else _digits(self.exact)

    def to_dict(self) -> dict[str, Any]:
        """Return the line as plain values."""
        found: Any = self.privug
        if isinstance(found, pv.Estimate):
            found = found.to_dict()
        texts = {"paper": self.paper, "note": self.note}
        return {"quantity": self.quantity, "privug": found, "exact": self.exact, "agrees": self.agrees, **texts}


@dataclass
class Findings:
    """What an experiment has found: lines of its table, figures by caption, remarks in plain words."""

    lines: list[Line] = field(default_factory=list)
    figures: dict[str, Callable[[Any], None]] = field(default_factory=dict)
    """What draws each figure into given axes of matplotlib, by its caption."""
    notes: list[str] = field(default_factory=list)

    @property
    def missed(self) -> list[Line]:
        """The lines whose exact value Privug has missed."""
        return [line for line in self.lines if line.agrees is False]

    def to_dict(self) -> dict[str, Any]:
        """Return the findings as plain values."""
        lines = [line.to_dict() for line in self.lines]
        return {"lines": lines, "figures": list(self.figures), "notes": self.notes}


def _digits(number: float) -> str:
    return "infinite" if math.isinf(number) else f"{number:.{DIGITS}g}"


def _last_digit(number: float | str) -> float:
    """Return what one unit of the last digit is worth; zero and infinity as numbers have no such digit."""
    if isinstance(number, str):
        exponent = Decimal(number).as_tuple().exponent
        return 10.0**exponent if isinstance(exponent, int) else 0.0
    if number == 0 or not math.isfinite(number):
        return 0.0
    return 10.0 ** (math.floor(math.log10(abs(number))) + 1 - DIGITS)
