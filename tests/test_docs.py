"""What README, docs and docstrings show is run."""

import doctest
import importlib
import inspect
import json
import math
import pkgutil
import re
import subprocess
import sys
import tomllib

import pytest
import sqlglot
import yaml

import privug
from pages import BLOCK, PAGES, PROJECT, name_of, printed_by, printed_by_examples
from tiers import tiered

MODULES = [module.name for module in pkgutil.walk_packages(privug.__path__, "privug.")]
EXAMPLES = sorted((PROJECT / "examples").glob("*.py"))
READ_ONLY = {"sh", "py", "scala", "java", "javascript", "r", "text", "console", "python"}  # run, or of other tools
PARSED = {"toml": tomllib.loads, "yaml": yaml.safe_load, "json": json.loads, "csv": str, "sql": sqlglot.parse}
REFERENCE = "\n".join(page.read_text(encoding="utf-8") for page in (PROJECT / "docs" / "reference").glob("*.md"))
ROOMS = ["privug", "privug.leakage", "privug.mechanisms", "privug.mechanisms.anonymisers", "privug.reidentification"]
ROOMS += ["privug.policy", "privug.tables", "privug.queries"]


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name):
    outcome = doctest.testmod(importlib.import_module(name))
    assert outcome.failed == 0


LONG_PAGES = {
    "query-logs.md",
    "engines.md",
    "bi-query.md",
    "enforce.md",
    "policy-files.md",
    "exact.md",
    "sql.md",
    "studies.md",
}


@pytest.mark.parametrize("page", tiered(PAGES, lambda page: page.name in LONG_PAGES), ids=name_of)
def test_blocks_run_in_order_and_print_what_is_shown(page, tmp_path, monkeypatch):
    """`python tests/pages.py --update` puts what is printed into the pages."""
    monkeypatch.chdir(tmp_path)
    for match, printed in printed_by(page, tmp_path):
        if match["shown"] is not None:
            assert printed.strip() == match["shown"].strip()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_all_other_blocks_are_well_formed(page):
    for match in BLOCK.finditer(page.read_text(encoding="utf-8")):
        if match["language"] not in READ_ONLY:
            PARSED[match["language"]](match["code"])


@pytest.mark.parametrize("kind", ["tutorial", "explanation"])
def test_pages_that_explain_have_a_picture_with_a_description(kind):
    for page in (PROJECT / "docs" / kind).glob("*.md"):
        pictures = re.findall(r"!\[([^]]*)\]\(([^)]+)\)", page.read_text(encoding="utf-8"))
        if page.name != "internals.md":
            assert pictures, page.name
        assert [path for words, path in pictures if not words or not (page.parent / path).exists()] == []


@pytest.mark.slow
def test_the_site_builds_strictly_and_needs_no_network(tmp_path):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    outcome = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert outcome.returncode == 0, outcome.stderr
    attribute = r"<(?:script|img|iframe|source)[^>]* src|<link[^>]* href"  # links for readers are fine
    loaded = re.compile(rf"(?:{attribute})=[\"']?(?:https?:)?//|url\([\"']?https?:")
    styles = [*tmp_path.rglob("*.css")]
    assert styles
    assert [page.name for page in [*tmp_path.rglob("*.html"), *styles] if loaded.search(page.read_text("utf-8"))] == []


def directives(room: str) -> list[str]:
    """Return what the reference shows of a room; a name that is a module's, too, stands after that module's."""
    return re.findall(rf"^::: {re.escape(room)}\.(\w+)(?:\.\1)?$", REFERENCE, re.MULTILINE)


@pytest.mark.parametrize("room", ROOMS)
def test_every_public_name_is_in_the_reference_once_and_has_an_example(room):
    module = importlib.import_module(room)
    names = [name for name in module.__all__ if not inspect.ismodule(getattr(module, name))]
    assert sorted(directives(room)) == sorted(names)
    values = {name: getattr(module, name) for name in names}
    documented = {name: value for name, value in values.items() if callable(value)}
    assert [name for name, value in documented.items() if ">>>" not in (inspect.getdoc(value) or "")] == []


def test_the_page_on_policy_files_shows_numbers_with_a_closed_form(tmp_path):
    page = PROJECT / "docs" / "how-to" / "policy-files.md"
    files = {match["title"]: match["code"] for match in BLOCK.finditer(page.read_text(encoding="utf-8"))}
    for name in ("survey.py", "survey.toml"):
        (tmp_path / name).write_text(files[name], encoding="utf-8")
    command = [sys.executable, "-m", "privug.cli.main", "check", "survey.py"]
    outcome = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert outcome.returncode == 1
    # Somebody ill among ten of whom at least seven are; somebody well among ten of whom at most three are ill.
    ill = 0.4 * _at_least(6, 9) / _at_least(7, 10)
    well = 0.6 * (1 - _at_least(4, 9)) / (1 - _at_least(4, 10))
    told = [float(number) for number in re.findall(r"at worst ([\d.]+)", outcome.stdout)]
    assert told == pytest.approx([1, max(ill, well), ill], abs=5e-4)


def _at_least(least: int, people: int) -> float:
    return sum(math.comb(people, k) * 0.4**k * 0.6 ** (people - k) for k in range(least, people + 1))


# Of these tests/studies/test_calibrate.py, tests/mechanisms/test_case_studies.py and test_anonymisers.py ask the same.
LONG_EXAMPLES = {"choose_epsilon.py", "differential_privacy.py", "k_anonymity.py"}
# The pages of examples and of the explorer show these, and tests/explorer asks the same.
LONG_EXAMPLES |= {"attackers_from_data.py", "explore_epsilon.py", "opendp_context.py", "naive_anonymisation.py"}


@pytest.mark.parametrize("path", tiered(EXAMPLES, lambda path: path.name in LONG_EXAMPLES), ids=lambda path: path.name)
def test_examples_run(path):
    outcome = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False)
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stdout.strip()
    shown = [match["code"] for page in PAGES for match, example in printed_by_examples(page) if example == path]
    assert [printed for printed in shown if printed.strip() != outcome.stdout.strip()] == []


def test_readme_is_short_and_names_every_target_of_the_makefile():
    makefile = (PROJECT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)[0].split()
    readme = (PROJECT / "README.md").read_text(encoding="utf-8")
    assert [target for target in targets if f"make {target}" not in readme] == []
    assert len(readme.splitlines()) <= 120
