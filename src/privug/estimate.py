"""Estimate: a number that knows its interval, its unit and how it was obtained."""

import math
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

from privug.arguments import check_kind, kinds_checked, plain_number
from privug.digits import fixed_text, number_text, places_of
from privug.errors import ArgumentError
from privug.markup import paragraphs

CONFIDENCE = 0.95
ROUNDING = 1e-12
UNDERFLOW = 1e-300  # a probability below which products of probabilities have lost digits, or are zero
NEAR = 0.1  # of the value: how far the end of an interval may be from it to stand alone


@dataclass(frozen=True)
class Estimate:
    """A number with the interval that covers the truth with the stated confidence.

    It converts to a float, and `truth in estimate` says whether the interval covers a value.

    >>> print(Estimate(0.2, 0.2, 0.2, unit="bit", exact=True))
    0.2 bit (exact)
    >>> print(Estimate(0.2034, 0.1972, 0.2096, unit="bit", method="KSG k=3, n=10000"))
    0.203 ± 0.006 bit (KSG k=3, n=10000)
    >>> print(Estimate(0.0, 0.0, 0.00037, method="n=10000"))
    0, at most 0.0004 (n=10000)
    >>> print(Estimate(1.0, 0.6, 1.0, method="n=6"))
    1.00 [0.60, 1.00] (n=6)
    >>> 0.2 in Estimate(0.2034, 0.1972, 0.2096)
    True

    What does not exist, or cannot be told, is not a number, and its interval leaves everything open.

    >>> print(Estimate.undefined("the mean does not exist"))
    undefined (the mean does not exist)
    """

    value: float
    low: float
    high: float
    unit: str = ""
    method: str = ""
    exact: bool = False
    confidence: float = CONFIDENCE
    resolution: float = field(default=0.0, compare=False, repr=False)
    """To what precision an exact value is shown; zero leaves that to the value itself."""

    def __post_init__(self) -> None:
        for name in ("value", "low", "high"):
            number = getattr(self, name)
            if not (name == "value" and self._is_undefined):
                check_kind("an estimate", name, number, (float,))
            if isinstance(number, Fraction | Decimal):
                object.__setattr__(self, name, plain_number(number))
        check_kind("an estimate", "unit", self.unit, (str,))
        check_kind("an estimate", "method", self.method, (str,))
        check_kind("an estimate", "exact", self.exact, (bool,))
        if not self.low <= self.value <= self.high and not self._is_undefined:
            raise ArgumentError(f"an estimate needs low <= value <= high, not {self.low}, {self.value}, {self.high}")

    @property
    def _is_undefined(self) -> bool:
        return isinstance(self.value, float) and math.isnan(self.value) and self.high == math.inf

    @classmethod
    @kinds_checked
    def exactly(cls, value: float, unit: str = "", method: str = "") -> "Estimate":
        """Return an estimate without error."""
        return cls(value, value, value, unit, method, exact=True)

    @classmethod
    def undefined(cls, method: str, low: float = -math.inf, unit: str = "") -> "Estimate":
        """Return the estimate of a number that does not exist or cannot be told, for the reason given."""
        return cls(math.nan, low, math.inf, unit, method)

    def __float__(self) -> float:
        return float(self.value)

    def __contains__(self, truth: float) -> bool:
        # What is exact is so up to the rounding of the numbers it was computed with.
        slack = ROUNDING * abs(self.value) if self.exact and math.isfinite(self.value) else 0.0
        return self.low - slack <= truth <= self.high + slack

    @kinds_checked
    def widened(self, factor: float) -> "Estimate":
        """Return the same estimate with its interval stretched around the value."""
        if math.isnan(self.value):
            return self
        low = self.value - factor * (self.value - self.low)
        high = self.value + factor * (self.high - self.value)
        return replace(self, low=low, high=high)

    def divided_by(self, whole: "Estimate") -> "Estimate":
        """Return a conditional probability: this one as a share of a whole that it is part of; a density stays one."""
        check_kind("divided_by", "whole", whole, (Estimate,))
        ceiling = math.inf if self.unit else 1.0
        value, low, high = self.value / whole.value, self.low / whole.high, self.high / max(whole.low, 5e-324)
        value = min(value, ceiling)
        method = self.method if whole.exact else whole.method
        exact = self.exact and whole.exact
        return replace(
            self, value=value, low=min(low, value), high=max(value, min(high, ceiling)), method=method, exact=exact
        )

    @kinds_checked
    def clipped(self, low: float, high: float) -> "Estimate":
        """Return the same estimate within the range that its quantity can have."""
        value, below, above = (min(max(number, low), high) for number in (self.value, self.low, self.high))
        return replace(self, value=value, low=below, high=above)

    def number(self) -> str:
        """Return the value and its interval without unit and method.

        An end of the interval that is the value itself is left out where the other end is near, or the value zero.
        """
        if math.isnan(self.value):
            return "undefined"
        below, above = self.value - self.low, self.high - self.value
        if self.exact or self.low == self.high:
            return number_text(self.value, self.resolution)
        if not (math.isfinite(below) and math.isfinite(above)):
            return self._open_ended()
        places = places_of(min(width for width in (below, above) if width > 0))
        near = self.value == 0 or max(below, above) <= NEAR * abs(self.value)
        if below == 0 and near:
            return f"{fixed_text(self.value, places)}, at most {fixed_text(self.high, places)}"
        if above == 0 and near:
            return f"{fixed_text(self.value, places)}, at least {fixed_text(self.low, places)}"
        if max(below, above) > 1.25 * min(below, above):
            value, low, high = (fixed_text(number, places + 1) for number in (self.value, self.low, self.high))
            return f"{value} [{low}, {high}]"
        return f"{fixed_text(self.value, places)} ± {fixed_text(max(below, above), places)}"

    def _open_ended(self) -> str:
        """Return the value with the ends of its interval that are finite."""
        if self.value == self.low and math.isfinite(self.value):
            return f"at least {number_text(self.low)}"
        if self.value == self.high and math.isfinite(self.value):
            return f"at most {number_text(self.high)}"
        ends = [("at least", self.low), ("at most", self.high)]
        known = " and ".join(f"{word} {number_text(end)}" for word, end in ends if math.isfinite(end))
        return f"{number_text(self.value)}, {known or 'but it may be anything'}"

    def __str__(self) -> str:
        provenance = "exact" if self.exact and not self.method.startswith("exact") else self.method
        unit = f" {self.unit}" if self.unit else ""
        return f"{self.number()}{unit}" + (f" ({provenance})" if provenance else "")

    def to_dict(self) -> dict[str, Any]:
        """Return the estimate as plain values, with all digits.

        >>> Estimate.exactly(0.5).to_dict()["value"]
        0.5
        """
        ends = {"value": self.value, "low": self.low, "high": self.high}
        return {**ends, "unit": self.unit, "method": self.method, "exact": self.exact, "confidence": self.confidence}

    def _repr_html_(self) -> str:
        return paragraphs([self])

    def __format__(self, spec: str) -> str:
        return format(self.value, spec) if spec else str(self)
