"""JSON that any parser reads, and files that are written whole or not at all."""

import json
import math
import os
import subprocess
import sys

import numpy as np
import pytest

from privug.markup import page
from privug.output import as_json, write_whole


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (np.int64(3), 3),
        (np.float64(0.5), 0.5),
        (np.bool_(True), True),
        ((1.0, math.inf), [1.0, "inf"]),
        ({"low": -math.inf, "value": math.nan}, {"low": "-inf", "value": "undefined"}),
        ([{"deep": (np.float64(math.inf),)}], [{"deep": ["inf"]}]),
        ({1: "one", None: 2, (0, "a"): 3}, {"1": "one", "None": 2, "(0, 'a')": 3}),
        ("a\x1b[31m\u202eb\n", "a\x1b[31m\u202eb\n"),
        (10**30, 10**30),
    ],
)
def test_plain_values_survive_as_json(value, written):
    text = as_json(value, None)
    assert json.loads(text, parse_constant=pytest.fail) == written
    assert text.isprintable()


def test_a_file_is_whole_or_as_it_was(tmp_path):
    target = tmp_path / "report.txt"
    write_whole(target, "before\n")
    with pytest.raises(UnicodeEncodeError):
        write_whole(target, "\ud800")  # cannot be encoded
    assert target.read_text(encoding="utf-8") == "before\n"
    assert os.listdir(tmp_path) == ["report.txt"]


def test_what_is_linked_to_is_written_and_the_link_stays(tmp_path):
    (tmp_path / "real.txt").write_text("old", encoding="utf-8")
    (tmp_path / "link.txt").symlink_to(tmp_path / "real.txt")
    write_whole(tmp_path / "link.txt", "new")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text(encoding="utf-8") == "new"


def test_a_page_loads_nothing_and_escapes_its_title():
    text = page("<script>", "<main></main>")
    assert "<script>" not in text
    assert "default-src 'none'" in text


def test_the_package_runs_as_a_module():
    command = [sys.executable, "-m", "privug", "--version"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.startswith("privug, version")
