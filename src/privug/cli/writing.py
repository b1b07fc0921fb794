"""Reports as text, JSON and HTML: printed, and written to files."""

from __future__ import annotations  # what they name is imported when it is needed

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import click

import privug as pv
from privug.cli.refusal import Refusal
from privug.output import as_json, write_whole

REPORTS = (".html", ".json", ".txt")


def report(title: str, results: Mapping[str, pv.Result]) -> dict[str, Callable[[], str]]:
    """Return how one report about several attacks is made, by the endings of files."""
    return {
        ".html": lambda: pv.Result.formats[".html"]([*results.values()], title if len(results) > 1 else ""),
        ".json": lambda: as_json(plain(title, results)),
        ".txt": lambda: "\n\n".join(headed(name, result) for name, result in results.items()),
    }


def plain(title: str, results: Mapping[str, pv.Result]) -> dict[str, Any]:
    """Return the results of a file's attacks as plain values."""
    return {"file": title, "attacks": [{"variable": name, **result.to_dict()} for name, result in results.items()]}


def headed(name: str, result: pv.Result) -> str:
    """Return a result as text, under the name by which it was found."""
    return f"[{name}] {result}"


def write(paths: Iterable[Path], formats: Mapping[str, Callable[[], str]]) -> None:
    """Write files in the formats that their names end in, and say so on standard error."""
    for path in paths:
        try:
            write_whole(path, f"{formats[path.suffix.lower()]()}\n")
        except OSError as error:
            raise Refusal(f"{path} cannot be written: {error.strerror}") from None
        click.echo(f"wrote {path}", err=True)
