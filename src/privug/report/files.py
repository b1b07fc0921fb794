"""Reports written to files, in the format that the file's name ends in."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from privug.arguments import shown
from privug.errors import ArgumentError
from privug.output import as_json, write_whole
from privug.report.page import page
from privug.report.text import side_by_side


def _as_text(results: Sequence[Any], title: str) -> str:
    if len(results) == 1 and not title:
        return str(results[0])
    named = [replace(result.content, title=result.attack.name) for result in results]
    return side_by_side(title or "Privug: what several attackers learn", named)


def _as_json(results: Sequence[Any], title: str) -> str:
    """Return one result as an object, several as a list of them."""
    plain = [result.to_dict() for result in results]
    return as_json(plain[0] if len(plain) == 1 else plain)


FORMATS: Mapping[str, Callable[[Sequence[Any], str], str]] = {
    ".html": page,
    ".htm": page,
    ".txt": _as_text,
    ".json": _as_json,
}


def written(path: Any, formats: Mapping[str, Callable[..., str]], *told: Any) -> Path:
    """Write a report to a file; return its path."""
    if not isinstance(path, str | Path):
        raise ArgumentError(f"save: the path of a file is needed, such as 'report.html', not {shown(path)}")
    target = Path(path)
    report = formats.get(target.suffix.lower())
    if report is None:
        known = ", ".join(formats)
        raise ArgumentError(f"save: a report ends in one of {known}, not {target.name!r}; plot() draws pictures")
    try:
        write_whole(target, f"{report(*told)}\n")
    except (OSError, ValueError) as error:  # a path with a NUL is a ValueError
        reason = error.strerror if isinstance(error, OSError) else error
        raise ArgumentError(f"save: {target} cannot be written: {reason}") from None
    return target
