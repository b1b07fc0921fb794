"""The commands of docs/cli.md and what they print. `python tests/cli/docs_page.py` writes what they print today."""

import re
import shlex
import sys
import tempfile
from pathlib import Path

from click.testing import CliRunner

from privug.cli.main import main

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"
FILE = re.compile(r"^`([\w.]+)`:\n\n```\w+\n(.*?)^```$", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"^```console\n\$ privug (.*?)\n```\n\n```text\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def write_files(folder):
    for name, text in FILE.findall(PAGE.read_text(encoding="utf-8")):
        (Path(folder) / name).write_text(text, encoding="utf-8")


def printed(command):
    """Return what a command prints, run in the current folder."""
    outcome = CliRunner().invoke(main, shlex.split(command), prog_name="privug")
    assert outcome.exception is None or isinstance(outcome.exception, SystemExit), outcome.exception
    return (outcome.stdout or outcome.stderr).rstrip("\n") + "\n"


if __name__ == "__main__":
    import contextlib

    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        write_files(folder)
        page = PAGE.read_text(encoding="utf-8")
        text = COMMAND.sub(lambda m: f"```console\n$ privug {m[1]}\n```\n\n```text\n{printed(m[1])}```", page)
    PAGE.write_text(text, encoding="utf-8")
    sys.exit()
