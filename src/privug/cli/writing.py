"""Reports as text, JSON and HTML: printed, and written to files."""

from __future__ import annotations  # what they name is imported when it is needed

import json
import math
from collections.abc import Callable, Iterable, Mapping
from html import escape
from pathlib import Path
from typing import Any

import click

import privug as pv
from privug.cli.refusal import Refusal

REPORTS = (".html", ".json", ".txt")
_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222}"
    "table{border-collapse:collapse;margin:1rem 0}td,th{padding:.25rem .9rem .25rem 0;text-align:left;"
    "vertical-align:top}th{border-bottom:1px solid #999}td.number,th.number{text-align:right;white-space:nowrap}"
    "dt{float:left;width:9rem;color:#666}dd{margin-left:9rem}"
)


def as_json(value: Any) -> str:
    """Return plain values as JSON in ASCII; numbers that are none as the strings 'inf', '-inf' and 'undefined'."""
    return json.dumps(_finite(value), indent=2, default=str)


def _finite(value: Any) -> Any:
    match value:
        case dict():
            return {str(key): _finite(inner) for key, inner in value.items()}
        case list() | tuple():
            return [_finite(inner) for inner in value]
        case float() if not math.isfinite(value):
            return "undefined" if math.isnan(value) else str(value)
        case _:
            return value


def page(title: str, fragments: Iterable[str]) -> str:
    """Return one page about several things that show themselves as HTML."""
    head = '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" '
    head += f'content="width=device-width, initial-scale=1"><title>{escape(title)}</title><style>{_STYLE}</style>'
    return f"{head}</head><body>{'<hr>'.join(fragments)}</body></html>"


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
            path.write_text(f"{formats[path.suffix.lower()]()}\n", encoding="utf-8")
        except OSError as error:
            raise Refusal(f"{path} cannot be written: {error.strerror}") from None
        click.echo(f"wrote {path}", err=True)
