"""The picture of a result as SVG to stand inside a page, or why there is none."""

import io
import re
from typing import Any, NamedTuple

from privug.errors import PrivugError


class Picture(NamedTuple):
    """An SVG element, or the reason why there is none."""

    svg: str | None
    reason: str = ""


def picture_of(result: Any) -> Picture:
    """Draw the beliefs before and after."""
    try:
        axes = result.plot()
    except PrivugError as error:
        return Picture(None, str(error))
    buffer = io.StringIO()
    axes.figure.savefig(buffer, format="svg", metadata={"Date": None})
    found = buffer.getvalue()
    return Picture(re.sub(r"<metadata>.*?</metadata>", "", found[found.index("<svg") :], flags=re.DOTALL))
