"""A belief line by line: its mean, its spread, the range of most of it, its likeliest values."""

from typing import Any

from privug.errors import PrivugError

MOST_LISTED = 6


def described(belief: Any) -> list[tuple[str, str]]:
    """Return what is to be said of a belief that stands alone, each with its name."""
    lines: list[tuple[str, str]] = []
    if belief.batch.numbers() is not None:
        lines = [("mean", belief.mean().number()), ("standard deviation", belief.std().number())]
        low, high = belief.interval(0.9)
        lines.append(("90 % of belief lies in", f"{low.number()} to {high.number()}"))
    if belief.curve is None and (not lines or belief.batch.distinct() <= MOST_LISTED):
        try:
            likeliest = list(belief.distribution().items())[:MOST_LISTED]
        except PrivugError:  # too many to be listed
            return lines
        lines += [(f"P({value!r})", share.number()) for value, share in likeliest]
    return lines
