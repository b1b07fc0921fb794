"""Policies in tests: the assertion, the plugin of pytest and its reports."""

import json
import os
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path

import pytest

import privug as pv

PROJECT = Path(__file__).parents[2]


def parity(x):
    return 7_654_320 + x % 2


ATTACK = pv.Attack(parity, {"x": pv.DiscreteUniform(0, 3)}, secret="x")
DOUBT = pv.Attack(
    lambda x, y: round(abs(x) * y * y + x * x), {"x": pv.Normal(0, sd=1), "y": pv.Normal(0, sd=1)}, secret="x"
)
EVEN = pv.policy.belief(lambda x: x < 0, at_most=0.5)


def test_what_holds_is_returned():
    verdict = pv.policy.assert_private(ATTACK, pv.policy.max_belief(0.5))
    assert (str(verdict.status), verdict.worst.value) == ("holds", 0.5)


def test_what_is_violated_fails_with_its_evidence():
    with pytest.raises(AssertionError) as caught:
        pv.policy.assert_private(ATTACK, pv.policy.max_belief(0.4))
    assert str(caught.value).splitlines() == [
        "parity: violated",
        "violated: the belief in the likeliest value of the secret must be at most 0.4, after every output; "
        "at worst 0.5 (exact)",
        "  0.5 after output 7654320, of probability 0.5",
        "  0.5 after output 7654321, of probability 0.5",
    ]
    with pytest.raises(AssertionError) as caught:
        pv.policy.assert_private(ATTACK, pv.policy.max_belief(0.4), secrets=False)
    assert "765432" not in str(caught.value)


def test_what_is_undecided_fails_unless_that_is_allowed():
    options = {"engine": "sample", "samples": 500, "name": "even"}
    with pytest.raises(AssertionError, match=r"^even: undecided"):
        pv.policy.assert_private(DOUBT, EVEN, **options)
    assert pv.policy.assert_private(DOUBT, EVEN, allow_undecided=True, **options).undecided


def test_allowing_doubt_allows_no_violation():
    with pytest.raises(AssertionError, match="violated"):
        pv.policy.assert_private(ATTACK, pv.policy.max_belief(0.4), allow_undecided=True)


def test_wrong_arguments_are_no_failed_assertions():
    with pytest.raises(pv.ArgumentError):
        pv.policy.assert_private(ATTACK, 3)


TESTS = """
    import privug as pv

    def parity(x):
        return 7_654_320 + x % 2

    attack = pv.Attack(parity, {"x": pv.DiscreteUniform(0, 3)}, secret="x")

    def test_good(assert_private):
        assert_private(attack, pv.policy.max_belief(0.5))
        assert_private(attack, pv.policy.max_belief(0.6), name="again <&>")

    def test_bad():
        pv.policy.assert_private(attack, pv.policy.max_belief(0.4))
"""


@pytest.fixture
def tests(tmp_path):
    def run(source, *arguments):
        (tmp_path / "test_it.py").write_text(textwrap.dedent(source), encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", *arguments]
        # An installed plugin is found by its entry point; where it may not be installed, plugins are named one by one.
        command += ["-p", "privug_pytest"]
        source_path = str(Path(pv.__file__).parents[1])
        environment = os.environ | {"PYTHONPATH": source_path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    return run


def test_a_failing_test_shows_the_evidence(tests):
    outcome = tests(TESTS)
    assert outcome.returncode == 1
    assert "1 failed, 1 passed" in outcome.stdout
    assert "AssertionError: parity: violated" in outcome.stdout
    assert "0.5 after output 7654320, of probability 0.5" in outcome.stdout
    assert "asserting.py" not in outcome.stdout


@pytest.mark.parametrize("workers", [[], ["-p", "xdist.plugin", "-n", "2"]])
def test_reports(tests, tmp_path, workers):
    outcome = tests(TESTS, "--privug-report=found/here", *workers)
    assert outcome.returncode == 1
    folder = tmp_path / "found" / "here"
    assert f"privug: 3 checks, reported in {folder}" in outcome.stdout
    names = ["test-it.py-test-bad-parity", "test-it.py-test-good-again", "test-it.py-test-good-parity"]
    expected = {f"{name}.{end}" for name in names for end in ("json", "txt")} | {"index.html"}
    assert {path.name for path in folder.iterdir()} == expected
    plain = json.loads((folder / f"{names[0]}.json").read_text(encoding="utf-8"))
    assert (plain["test"], plain["status"], plain["worst"]["value"]) == ("test_it.py::test_bad", "violated", 0.5)
    page = (folder / "index.html").read_text(encoding="utf-8")
    assert page.count("<tr>") == 4
    assert "again &lt;&amp;&gt;" in page
    assert not any("765432" in path.read_text(encoding="utf-8") for path in folder.iterdir())


def test_reports_show_outputs_if_asked(tests, tmp_path):
    tests(TESTS, "--privug-report=found", "--privug-show-secrets")
    assert "7654320" in (tmp_path / "found" / "test-it.py-test-bad-parity.txt").read_text(encoding="utf-8")
    assert "7654320" in (tmp_path / "found" / "index.html").read_text(encoding="utf-8")


def test_the_plugin_leaves_privug_alone_until_it_is_asked(tests):
    outcome = tests("import sys\n\ndef test_nothing():\n    assert 'privug' not in sys.modules\n")
    assert outcome.returncode == 0, outcome.stdout


def test_the_plugin_is_declared():
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["entry-points"]["pytest11"] == {"privug": "privug_pytest"}
    assert "src/privug_pytest" in project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
