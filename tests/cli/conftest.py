import textwrap

import pytest
from click.testing import CliRunner

from privug.cli.main import main


@pytest.fixture
def run():
    def invoke(*arguments):
        return CliRunner().invoke(main, [str(argument) for argument in arguments], prog_name="privug")

    return invoke


@pytest.fixture
def script(tmp_path):
    def write(source, name="analysis.py"):
        path = tmp_path / name
        path.write_text(textwrap.dedent(source), encoding="utf-8")
        return path

    return write
