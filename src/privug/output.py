"""Plain values as JSON, and files that are written whole or not at all: what every report and command does alike."""

import json
import math
import os
from pathlib import Path
from typing import Any

from privug.escaping import inert


def as_json(value: Any, indent: int | None = 2) -> str:
    """Return nested plain values as JSON that any parser reads.

    Infinite and undefined numbers, which JSON does not have, are the strings 'inf', '-inf' and 'undefined'; control
    characters are escaped; numbers of NumPy are numbers, and anything else that JSON does not know is its text.

    >>> as_json({"risk": (math.inf, 0.5)}, None)
    '{"risk": ["inf", 0.5]}'
    """
    text = json.dumps(_plain(value), indent=indent, ensure_ascii=False)
    if text.isprintable():
        return text
    return "".join(c if c == "\n" or inert(c) == c else json.dumps(c)[1:-1] for c in text)


def _plain(value: Any) -> Any:
    """Return nested values as JSON has them."""
    match value:
        case dict():
            return {key if isinstance(key, str) else str(key): _plain(inner) for key, inner in value.items()}
        case list() | tuple():
            return [_plain(inner) for inner in value]
        case float() if not math.isfinite(value):
            return "undefined" if math.isnan(value) else str(value)
        case None | bool() | int() | float() | str():
            return value
    item = getattr(value, "item", None)
    number = item() if callable(item) and getattr(value, "ndim", None) == 0 else value
    return _plain(number) if isinstance(number, bool | int | float) else str(number)


def write_whole(target: Path, text: str) -> None:
    """Write a file whole or not at all: on a full disk a file that was there before stays as it was.

    Raises:
        OSError: If it cannot be written.
    """
    target = target.resolve()
    if target.exists() and not target.is_file():  # a terminal or a pipe
        target.write_text(text, encoding="utf-8")
        return
    part = target.with_name(f"{target.name}.{os.getpid()}.part")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
