"""docs/cli.md: every command prints what the page shows."""

import pytest
from docs_page import COMMAND, PAGE, printed, write_files

from privug.cli.main import COMMANDS

SHOWN = COMMAND.findall(PAGE.read_text(encoding="utf-8"))


@pytest.mark.parametrize(("command", "expected"), SHOWN, ids=[command for command, _ in SHOWN])
def test_commands_print_what_the_page_shows(command, expected, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path)
    assert printed(command) == expected


def test_every_command_is_on_the_page():
    page = PAGE.read_text(encoding="utf-8")
    assert [name for name in COMMANDS if f"`privug {name}`" not in page] == []
