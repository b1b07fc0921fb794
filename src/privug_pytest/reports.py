"""Reports of a test run: a JSON and a text file for each assertion, and a page that lists them."""

import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from privug.escaping import inert
from privug.output import as_json

PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Privug: policies</title>
<style>
body {{ font-family: sans-serif; margin: 2em; }}
td, th {{ text-align: left; padding: 0.3em 1em 0.3em 0; vertical-align: top; }}
.violated {{ color: #a00; }} .undecided {{ color: #850; }} .holds {{ color: #060; }}
</style>
<h1>Policies</h1>
<table>
<tr><th>status</th><th>test</th><th>check</th><th>what was found</th></tr>
{rows}
</table>
</html>
"""


def write(folder: Path, records: Sequence[dict[str, Any]]) -> None:
    """Write the files of all assertions, in the order of their tests, whichever worker ran them."""
    folder.mkdir(parents=True, exist_ok=True)
    rows, used = [], set[str]()
    for record in sorted(records, key=lambda record: str(record["plain"]["test"])):
        plain, lines = record["plain"], record["lines"]
        name = _file_name(f"{plain['test']} {plain['name']}", used)
        (folder / f"{name}.json").write_text(as_json(plain) + "\n", encoding="utf-8")
        (folder / f"{name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
        rows.append(_row(name, plain, lines))
    (folder / "index.html").write_text(PAGE.format(rows="\n".join(rows)), encoding="utf-8")


def _file_name(text: str, used: set[str]) -> str:
    """Return a name that every file system takes, and that no other report of this run has."""
    base = re.sub(r"[^A-Za-z0-9.]+", "-", text).strip("-.")[:120] or "check"
    name, number = base, 1
    while name.lower() in used:
        number += 1
        name = f"{base}-{number}"
    used.add(name.lower())
    return name


def _row(name: str, plain: dict[str, Any], lines: Sequence[str]) -> str:
    status, test, check = (escape(inert(str(plain[key]))) for key in ("status", "test", "name"))
    told = "<br>".join(map(escape, lines))
    return (
        f'<tr><td class="{status}">{status}</td><td>{test}</td>'
        f'<td><a href="{name}.json">{check}</a></td><td>{told}</td></tr>'
    )
