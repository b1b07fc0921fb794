"""`privug check`: exit codes, formats, and what it keeps to itself."""

import json
import os
import subprocess
import sys
import textwrap
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

import privug as pv
from privug.cli.main import main


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def invoke(source, *arguments, **files):
        (tmp_path / "survey.py").write_text(textwrap.dedent(source), encoding="utf-8")
        for name, text in files.items():
            (tmp_path / f"{name}.toml").write_text(textwrap.dedent(text), encoding="utf-8")
        return CliRunner().invoke(main, ["check", "survey.py", *map(str, arguments)])

    return invoke


PROGRAM = """
import privug as pv

def parity(x):
    return 7_654_320 + x % 2

survey = pv.Attack(parity, {"x": pv.DiscreteUniform(0, 3)}, secret="x")
"""
HOLDS = PROGRAM + "fine = pv.policy.max_belief(at_most=0.5)\n"
BROKEN = HOLDS + "broken = pv.policy.max_belief(at_most=0.4)\n"
UNDECIDED = """
import privug as pv
prior = {"x": pv.Normal(0, sd=1), "y": pv.Normal(0, sd=1)}
survey = pv.Attack(lambda x, y: round(abs(x) * y * y + x * x), prior, secret="x")
even = pv.policy.belief(lambda x: x < 0, at_most=0.5)
"""
MINORS = """
    [[policy]]
    name = "minors"
    kind = "belief"
    predicate = "1 <= secret < 3 or secret == 40"
    at_most = {limit}
"""


@pytest.mark.parametrize(
    ("source", "code", "summary"),
    [
        (HOLDS, 0, "1 check: 1 holds"),
        (BROKEN, 1, "2 checks: 1 holds, 1 violated"),
        (UNDECIDED, 3, "1 check: 1 undecided"),
        (HOLDS + "both = fine & pv.policy.max_belief(0.4)\n", 1, "2 checks: 1 holds, 1 violated"),
        (HOLDS + "one = fine | pv.policy.max_belief(0.4)\n", 0, "2 checks: 2 holds"),
        (BROKEN + "only = pv.policy.Check(survey, fine)\n", 0, "1 check: 1 holds"),
        (
            BROKEN + "checks = [pv.policy.Check(survey, p) for p in (fine, broken)]\n",
            1,
            "2 checks: 1 holds, 1 violated",
        ),
    ],
)
def test_exit_codes(run, source, code, summary):
    outcome = run(source, "--samples", 500, "--engine", "sample") if code == 3 else run(source)
    assert outcome.exit_code == code, outcome.output
    assert outcome.stdout.splitlines()[-1] == summary


def test_the_exit_code_of_the_process(tmp_path):
    path = tmp_path / "survey.py"
    path.write_text("print('noise')\n" + BROKEN, encoding="utf-8")
    outcome = subprocess.run(
        [sys.executable, "-m", "privug.cli.main", "check", str(path), "--format", "json"],
        capture_output=True, text=True, check=False, env=os.environ,
    )  # fmt: skip
    assert outcome.returncode == 1
    assert [check["name"] for check in json.loads(outcome.stdout)["checks"]] == ["survey/fine", "survey/broken"]
    assert outcome.stderr.startswith("noise")  # progress may follow
    path.write_text("1 / 0", encoding="utf-8")
    outcome = subprocess.run(
        [sys.executable, "-m", "privug.cli.main", "check", str(path)],
        capture_output=True, text=True, check=False, env=os.environ,
    )  # fmt: skip
    assert (outcome.returncode, outcome.stdout) == (2, "")
    assert outcome.stderr.strip() == f"Error: {path}, line 1: ZeroDivisionError: division by zero"


def test_a_line_says_what_was_found(run):
    assert run(BROKEN).stdout.splitlines()[1] == (
        "violated: survey/broken: the belief in the likeliest value of the secret must be at most 0.4, "
        "after every output; at worst 0.5 (exact)"
    )


@pytest.mark.parametrize("layout", ["text", "json", "junit", "sarif"])
def test_outputs_are_shown_only_if_asked_for(run, layout):
    quiet, loud = run(BROKEN, "--format", layout), run(BROKEN, "--format", layout, "--show-secrets")
    assert (quiet.exit_code, loud.exit_code) == (1, 1)
    assert "765432" not in quiet.output
    assert "7654320" in loud.stdout


def test_several_reports_at_once(run, tmp_path):
    outcome = run(BROKEN, "-o", "a.xml", "-o", "a.sarif", "--output", "a.json", "-o", "a.txt")
    assert outcome.exit_code == 1
    assert ElementTree.parse(tmp_path / "a.xml").getroot().get("failures") == "1"
    (result,) = json.loads((tmp_path / "a.sarif").read_text(encoding="utf-8"))["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "survey.py"},
        "region": {"startLine": 4},
    }
    assert json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))["file"] == "survey.py"
    assert (tmp_path / "a.txt").read_text(encoding="utf-8") == outcome.stdout


def test_policies_beside_the_program(run):
    """Of 0 and 2, and of 1 and 3, one is in the range: the belief is 1/2 after either output."""
    outcome = run(PROGRAM, privug=MINORS.format(limit=0.5))
    assert (outcome.exit_code, outcome.stdout.splitlines()[-1]) == (0, "1 check: 1 holds")
    outcome = run(HOLDS, survey=MINORS.format(limit=0.4), privug="wrong")
    assert outcome.exit_code == 1
    assert "violated: survey/minors: the belief in '1 <= secret < 3 or secret == 40' must be at" in outcome.stdout
    assert outcome.stdout.splitlines()[-1] == "2 checks: 1 holds, 1 violated"
    outcome = run(PROGRAM, "--policies", "mine.toml", survey="wrong", mine=MINORS.format(limit=0.5))
    assert outcome.exit_code == 0


@pytest.mark.parametrize(
    ("source", "arguments", "files", "message"),
    [
        ("x = 1", [], {}, "survey.py has no policies at its top level"),
        ("import privug as pv\np = pv.policy.max_belief(0.5)", [], {}, "survey.py has no pv.Attack at its top level"),
        ("def f(:", [], {}, "SyntaxError"),
        ("raise SystemExit(0)", [], {}, "SystemExit"),
        ("import privug as pv\npv.policy.max_belief(7)", [], {}, "at_most must be a number between 0 and 1, not 7"),
        (PROGRAM, [], {"privug": "[[policy]"}, "privug.toml is no TOML file"),
        (PROGRAM, [], {"privug": "[[policy]]\nkind = 'x'"}, "privug.toml, policy 'policy 1', kind"),
        ("x = 1", [], {"privug": MINORS.format(limit=1)}, "there is no pv.Attack"),
        (PROGRAM, ["--policies", "nowhere.toml"], {}, "nowhere.toml"),
        (PROGRAM + "fine = minors = pv.policy.max_belief(1)\n", [], {"privug": MINORS.format(limit=1)}, "two checks"),
        (HOLDS, ["--engine", "magic"], {}, "survey/fine: engine must be one of"),
        (HOLDS, ["--format", "pdf"], {}, "--format"),
        (HOLDS, ["-o", "report.pdf"], {}, "report.pdf: a report ends in one of .txt, .json, .xml, .sarif"),
        (HOLDS, ["-o", "nowhere/report.xml"], {}, "there is no such folder"),
        (HOLDS, ["--samples", "0"], {}, "--samples"),
    ],
)
def test_wrong_questions_have_exit_code_2_and_a_message(run, source, arguments, files, message):
    outcome = run(source, *arguments, **files)
    assert outcome.exit_code == 2, outcome.output
    assert message in outcome.stderr
    assert outcome.stdout == ""
    assert "Traceback" not in outcome.output


FAILING = """
import privug as pv
survey = pv.Attack(lambda x: 1 / (x - 7_654_321), {"x": pv.DiscreteUniform(7_654_320, 7_654_323)}, secret="x")
fine = pv.policy.max_belief(at_most=0.5)
"""
BAD_PREDICATE = PROGRAM + "bad = pv.policy.belief(lambda x: 1 / x > 2, at_most=0.5)\n"


@pytest.mark.parametrize(("source", "said"), [(FAILING, "x = 7654321"), (BAD_PREDICATE, "x = 0")])
def test_failures_of_programs_name_inputs_only_if_asked(run, source, said):
    outcome = run(source)
    assert outcome.exit_code == 2
    assert outcome.stderr.count("\n") == 1
    assert "ProgramError; --show-secrets shows what it says" in outcome.stderr
    assert said not in outcome.output
    outcome = run(source, "--show-secrets")
    assert outcome.exit_code == 2
    assert said in outcome.stderr


def test_warnings_name_values_only_if_asked(run):
    source = HOLDS + "import warnings\nwarnings.warn('output 7654320', pv.LiftingWarning, stacklevel=1)\n"
    outcome = run(source)
    assert outcome.exit_code == 0
    assert "765432" not in outcome.output
    assert "warning: LiftingWarning; --show-secrets shows what it says" in outcome.stderr
    with pytest.warns(pv.LiftingWarning, match="output 7654320"):
        assert run(source, "--show-secrets").exit_code == 0
