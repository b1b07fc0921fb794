"""What README, docs and docstrings show is run."""

import doctest
import importlib
import math
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import privug

PROJECT = Path(__file__).parent.parent
PAGES = [PROJECT / "README.md", *sorted((PROJECT / "docs").glob("*.md"))]
MODULES = [module.name for module in pkgutil.walk_packages(privug.__path__, "privug.")]
EXAMPLES = sorted((PROJECT / "examples").glob("*.py"))


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name):
    outcome = doctest.testmod(importlib.import_module(name))
    assert outcome.failed == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_blocks_run_in_order(page, capsys, tmp_path, monkeypatch):
    """All blocks of a page share one session; a `text` block right after one is its output, to the letter.

    Each block is in a file, as it would be for a reader: programs that branch are traced by their source.
    """
    monkeypatch.chdir(tmp_path)
    session: dict[str, object] = {}
    text = page.read_text(encoding="utf-8")
    shown = re.finditer(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```)?", text, re.DOTALL | re.MULTILINE)
    for number, match in enumerate(shown):
        source = tmp_path / f"{page.stem}_{number}.py"
        source.write_text(match[1], encoding="utf-8")
        exec(compile(match[1], str(source), "exec"), session)
        printed = capsys.readouterr().out
        if match[2] is not None:
            assert printed.strip() == match[2].strip()


def test_readme_shows_the_real_output_of_the_demo():
    shown = next(block for block in blocks(PROJECT / "README.md", "text") if "knows a lot" in block)
    outcome = subprocess.run(
        [sys.executable, "-m", "privug.cli.main", "demo"], capture_output=True, text=True, check=True
    )
    assert outcome.stdout.strip() == shown.strip()


def test_policies_page_shows_the_real_output_of_a_check(tmp_path):
    page = (PROJECT / "docs" / "policies.md").read_text(encoding="utf-8")
    section = tmp_path / "section.md"
    section.write_text(page[page.index("## Fail my build") :].partition("\n## ")[0], encoding="utf-8")
    (tmp_path / "survey.py").write_text(blocks(section, "python")[0], encoding="utf-8")
    (tmp_path / "survey.toml").write_text(blocks(section, "toml")[0], encoding="utf-8")
    command = [sys.executable, "-m", "privug.cli.main", "check", "survey.py"]
    outcome = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert outcome.stdout.strip() == blocks(section, "text")[0].strip()
    assert outcome.returncode == 1
    # Somebody ill among ten of whom at least seven are; somebody well among ten of whom at most three are ill.
    ill = 0.4 * _at_least(6, 9) / _at_least(7, 10)
    well = 0.6 * (1 - _at_least(4, 9)) / (1 - _at_least(4, 10))
    assert f"at worst {max(ill, well):.3g} (exact)" in outcome.stdout
    assert f"at worst {ill:.3g} (exact)" in outcome.stdout


def _at_least(least: int, people: int) -> float:
    return sum(math.comb(people, k) * 0.4**k * 0.6 ** (people - k) for k in range(least, people + 1))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_examples_run(path):
    outcome = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False)
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stdout.strip()


def test_every_target_of_the_makefile_is_in_the_readme():
    targets = re.findall(r"^\.PHONY: (.*)$", (PROJECT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)[
        0
    ].split()
    readme = (PROJECT / "README.md").read_text(encoding="utf-8")
    assert [target for target in targets if f"make {target}" not in readme] == []
