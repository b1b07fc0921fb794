"""Ways to make a value coarser, alone or one after the other."""

import datetime
import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

from privug.arguments import LARGEST, is_number, kinds_checked, shown
from privug.errors import ArgumentError, UnfitValue
from privug.mechanisms.anonymisers.columns import applied
from privug.mechanisms.tables import checked_size
from privug.program.logic import where

MASK = "*"

Coarser = Callable[[Any], Any]


@kinds_checked
def prefix(length: int, mask: str = MASK) -> Coarser:
    """Keep the first characters of a text and mask the others.

    >>> prefix(2)("2300")
    '23**'
    """
    checked_size(length, "prefix: length", 0)
    return lambda value: str(value)[:length] + mask * max(0, len(str(value)) - length)


@kinds_checked
def bands(width: float, start: float = 0) -> Coarser:
    """Put numbers into bands of equal width; a band is named by its lower end.

    >>> bands(10)(42), bands(10, start=5)(42)
    (40, 35)
    """
    if isinstance(width, bool) or not isinstance(width, int | float) or not 0 < width < math.inf:
        raise ArgumentError(f"bands: width must be a positive number, not {shown(width)}")
    return lambda value: (_number("bands", value) - start) // width * width + start


@kinds_checked
def cuts(edges: Iterable[float]) -> Coarser:
    """Put numbers into bands between edges; a band is named by its lower end, minus infinity for the first.

    >>> cuts([18, 65])(42), cuts([18, 65])(17)
    (18, -inf)
    """
    ends = list(edges)
    if not ends or not all(map(is_number, ends)):
        raise ArgumentError(f"cuts: the edges must be a list of numbers, one at least, not {shown(edges)}")
    ends.sort()
    return lambda value: reduce(lambda band, edge: where(_number("cuts", value) >= edge, edge, band), ends, -math.inf)


def _number(where: str, value: Any) -> Any:
    """Return a value that is put into bands; random ones and whole columns are numbers, too."""
    is_too_large = isinstance(value, int) and abs(value) > LARGEST
    if is_too_large or value is None or isinstance(value, str | bytes | list | tuple | set | dict):
        raise UnfitValue(f"{where}: a number is needed, not {shown(value)}")
    return value


def month(value: Any) -> str:
    """Keep year and month of a date, which may be a text such as 1954-06-15.

    >>> month("1954-06-15"), month(datetime.date(1954, 6, 15))
    ('1954-06', '1954-06')
    """
    return _date(value, 7)


def year(value: Any) -> str:
    """Keep the year of a date, which may be a text such as 1954-06-15.

    >>> year("1954-06-15")
    '1954'
    """
    return _date(value, 4)


def _date(value: Any, length: int) -> str:
    text = value.isoformat() if isinstance(value, datetime.date) else value
    try:
        return datetime.date.fromisoformat(text[:10]).isoformat()[:length]
    except (TypeError, ValueError, IndexError):
        raise UnfitValue(f"a date or a text such as 1954-06-15 is needed, not {shown(value)}") from None


@kinds_checked
def labels(groups: Mapping[Any, Iterable[Any]]) -> Coarser:
    """Replace values by the name of the group they belong to; what is in no group stays as it is.

    >>> labels({"Zealand": ["2300", "4000"], "Jutland": ["8000"]})("4000")
    'Zealand'
    """
    names: dict[Any, Any] = {}
    for name, values in groups.items():
        try:
            names |= dict.fromkeys(values, name)
        except TypeError:  # no list, or one of what cannot be looked up
            raise ArgumentError(f"labels: group {shown(name)} must be a list of values, not {shown(values)}") from None
    return lambda value: names.get(value, value) if isinstance(value, Hashable) else value


def everything(value: Any) -> str:
    """Mask any value.

    >>> everything("2300")
    '*'
    """
    return MASK


@dataclass(frozen=True)
class Hierarchy:
    """Ways to make a value coarser, each applied to the value itself, from fine to coarse. Level 0 is the value.

    >>> zips = Hierarchy(prefix(3), prefix(2), everything)
    >>> [zips.level(k)("2300") for k in range(4)]
    ['2300', '230*', '23**', '*']
    """

    steps: tuple[Coarser, ...]

    def __init__(self, *steps: Coarser) -> None:
        if not steps or not all(callable(step) for step in steps):
            raise ArgumentError("Hierarchy: give functions from a value to a coarser one, such as prefix(2)")
        object.__setattr__(self, "steps", steps)

    @kinds_checked
    def level(self, number: int) -> Coarser:
        """Return the function of a level."""
        if checked_size(number, "level", 0) > len(self.steps):
            raise ArgumentError(f"level must be at most {len(self.steps)}, not {number}")
        return (lambda value: value) if number == 0 else (lambda value: applied(self.steps[number - 1], value))
