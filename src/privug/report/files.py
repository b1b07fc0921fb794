"""Reports written to files, in the format that the file's name ends in."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from privug.arguments import shown
from privug.errors import ArgumentError
from privug.report.page import page
from privug.report.text import as_json, side_by_side


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
        _replace(target, f"{report(*told)}\n")
    except (OSError, ValueError) as error:  # a path with a NUL is a ValueError
        reason = error.strerror if isinstance(error, OSError) else error
        raise ArgumentError(f"save: {target} cannot be written: {reason}") from None
    return target


def _replace(target: Path, text: str) -> None:
    """Write a whole file or none: on a full disk a report that was there before stays as it was."""
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
