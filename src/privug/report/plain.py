"""Reports as plain values: JSON and data frames."""

import importlib
import json
import math
from typing import Any

from privug.errors import ArgumentError
from privug.escaping import inert


def as_json(value: Any, indent: int | None = 2) -> str:
    """Return nested plain values as JSON; characters that do something, rather than show something, are escaped."""
    text = json.dumps(finite_numbers(value), indent=indent, ensure_ascii=False, default=_as_plain)
    return "".join(c if c == "\n" or inert(c) == c else json.dumps(c)[1:-1] for c in text)


def _as_plain(value: Any) -> Any:
    """Return a number of NumPy as Python's own, and anything else that JSON does not know as text."""
    item = getattr(value, "item", None)
    plain = item() if callable(item) and getattr(value, "ndim", None) == 0 else value
    return finite_numbers(plain) if isinstance(plain, bool | int | float) else str(plain)


def finite_numbers(value: Any) -> Any:
    """Return nested plain values with infinite numbers as strings, which JSON has no numbers for."""
    if isinstance(value, dict):
        return {key: finite_numbers(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [finite_numbers(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "undefined" if math.isnan(value) else str(value)
    return value


def as_frame(rows: list[dict[str, Any]]) -> Any:
    """Return rows as a pandas DataFrame."""
    try:
        pandas = importlib.import_module("pandas")
    except ImportError:
        raise ArgumentError("to_frame needs pandas: pip install pandas; or use to_dict() or to_json()") from None
    return pandas.DataFrame(rows)
