"""The blocks of README and docs: run in order, compared with what the page shows, or written into it anew.

python tests/pages.py --update [PAGE ...]    # put what is printed today into the pages; look at the diff

All `python` blocks of a page share one session; a `text` block right after a block is what it prints, to the letter. A
block with a title is a file: it is written to the page's folder before anything else runs there. `console` blocks are
commands (`$ privug ...`, `$ python ...`), run in that folder. A `text` block whose title is an example is what that
prints. Listings that are only read have other languages: `sh` to install, `py` and the like for code of other tools.
"""

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from click.testing import CliRunner

from privug.cli.main import main

PROJECT = Path(__file__).parent.parent
PAGES = [PROJECT / "README.md", *sorted((PROJECT / "docs").rglob("*.md"))]
BLOCK = re.compile(
    r'^```(?P<language>\w+)(?: title="(?P<title>[^"]+)")?\n(?P<code>.*?)^```\n(?:\n```text\n(?P<shown>.*?)^```)?',
    re.DOTALL | re.MULTILINE,
)


def name_of(page: Path) -> str:
    """Return the path of a page within the project."""
    return page.relative_to(PROJECT).as_posix()


def printed_by(page: Path, folder: Path) -> Iterator[tuple[re.Match[str], str]]:
    """Run the blocks of a page in a folder, and give each with what it printed.

    Each block is in a file, as it would be for a reader: programs that branch are traced by their source.
    """
    session: dict[str, object] = {"__name__": "page"}
    matches = list(BLOCK.finditer(page.read_text(encoding="utf-8")))
    for match in matches:
        if match["title"] and match["language"] != "text":
            (folder / match["title"]).write_text(match["code"], encoding="utf-8")
    for number, match in enumerate(matches):
        if match["language"] == "python":
            source = folder / f"{page.stem}_{number}.py"
            source.write_text(match["code"], encoding="utf-8")
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(match["code"], str(source), "exec"), session)
            yield match, out.getvalue()
        elif match["language"] == "console":
            yield match, "".join(_run(line, folder) for line in match["code"].splitlines() if line.startswith("$ "))


def _run(line: str, folder: Path) -> str:
    """Return what a command prints; those of Privug run in this process, which is in that folder."""
    program, *words = shlex.split(line.removeprefix("$ "))
    if program == "privug":
        outcome = CliRunner().invoke(main, words, prog_name="privug")
        return outcome.stdout + outcome.stderr if outcome.exit_code == 2 else outcome.stdout
    assert program == "python", line
    command = [sys.executable, *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stdout


def printed_by_examples(page: Path) -> Iterator[tuple[re.Match[str], Path]]:
    """Give the blocks of a page that show what an example prints, each with the path of the example."""
    for match in BLOCK.finditer(page.read_text(encoding="utf-8")):
        if match["language"] == "text" and match["title"]:
            yield match, PROJECT / match["title"]


def updated(page: Path, folder: Path) -> str:
    """Return the page with what its blocks print today."""
    text = page.read_text(encoding="utf-8")
    found = [
        (match.span("shown"), printed) for match, printed in printed_by(page, folder) if match["shown"] is not None
    ]
    found += [(match.span("code"), _run(f"$ python {path}", folder)) for match, path in printed_by_examples(page)]
    for (start, stop), printed in sorted(found, reverse=True):
        text = text[:start] + printed.strip("\n") + "\n" + text[stop:]
    return text


def _update(pages: list[Path]) -> None:
    for page in pages:
        with tempfile.TemporaryDirectory() as folder:
            home = Path.cwd()
            os.chdir(folder)
            try:
                new = updated(page, Path(folder))
            except Exception as error:  # the other pages are brought up to date all the same
                print("FAILED", name_of(page), repr(error))
                continue
            finally:
                os.chdir(home)
        if new != page.read_text(encoding="utf-8"):
            page.write_text(new, encoding="utf-8")
            print("updated", name_of(page))


if __name__ == "__main__":
    if sys.argv[1:2] != ["--update"]:
        sys.exit(__doc__)
    sys.path.insert(0, str(PROJECT / "examples"))
    _update([Path(name).resolve() for name in sys.argv[2:]] or PAGES)
