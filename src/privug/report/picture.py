"""The picture of a result as SVG to stand inside a page, or why there is none."""

from typing import Any, NamedTuple

from privug.errors import PrivugError
from privug.pictures import plots


class Picture(NamedTuple):
    """An SVG element, or the reason why there is none."""

    svg: str | None
    reason: str = ""


def picture_of(result: Any, alt: str) -> Picture:
    """Draw the beliefs before and after; `alt` says in words what is seen."""
    try:
        return Picture(plots().inline_svg(result.plot(), alt))
    except PrivugError as error:
        return Picture(None, str(error))
