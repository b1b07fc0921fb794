"""Reports written to files."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from privug.arguments import shown
from privug.errors import ArgumentError


def written(path: Any, formats: Mapping[str, Callable[[Any], str]], result: Any) -> Path:
    """Write the report of a result in the format that the file's name ends in; return the path."""
    if not isinstance(path, str | Path):
        raise ArgumentError(f"save: the path of a file is needed, such as 'report.html', not {shown(path)}")
    target = Path(path)
    report = formats.get(target.suffix.lower())
    if report is None:
        known = ", ".join(formats)
        raise ArgumentError(f"save: a report ends in one of {known}, not {target.name!r}; plot() draws pictures")
    try:
        target.write_text(f"{report(result)}\n", encoding="utf-8")
    except (OSError, ValueError) as error:  # a path with a NUL is a ValueError
        reason = error.strerror if isinstance(error, OSError) else error
        raise ArgumentError(f"save: {target} cannot be written: {reason}") from None
    return target
