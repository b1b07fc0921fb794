"""The command line: what it prints, and how it refuses."""

import os
import subprocess
import sys
import textwrap

import pytest

import privug as pv
from privug.cli import running_example
from privug.model.plated_tables import PlatedTable

GOOD = """
    import privug as pv
    from helper import TOP

    def add(x, y):
        return x + y

    prior = {"x": pv.DiscreteUniform(0, TOP), "y": pv.DiscreteUniform(0, TOP)}
    curious = pv.Attack(add, prior, secret="x", observe=pv.equals(8))
    idle = pv.Attack(add, prior, secret="x")
"""


def test_demo_shows_both_attackers_side_by_side(run):
    outcome = run("demo", "--samples", 500, "--seed", 1)
    assert outcome.exit_code == 0, outcome.output
    assert "knows a lot" in outcome.output
    assert "knows a bit" in outcome.output
    assert "55.6" in outcome.output
    assert "becomes 0 % sure (was 18 %) that Alice is under 18" in " ".join(outcome.output.split())


def test_rows_of_the_example_are_held_as_columns_as_those_of_a_users_file_are():
    case = running_example.bit.question.case((90,))
    assert isinstance(case.inputs["records"], PlatedTable)
    assert case.lifting.tier == "traced"


def test_demo_code_is_a_file_that_analyze_takes(run, script):
    source = run("demo", "--code").output
    outcome = run("analyze", script(source), "--engine", "sample", "--samples", 200)
    assert outcome.exit_code == 0, outcome.output
    assert outcome.output.count("attacker sees") == 2


def test_analyze_runs_every_attack_of_a_file(run, script, tmp_path):
    (tmp_path / "helper.py").write_text("TOP = 4\n", encoding="utf-8")
    outcome = run("analyze", script(GOOD), "--samples", 300, "-o", tmp_path / "report.html")
    assert outcome.exit_code == 0, outcome.output
    assert "[curious]" in outcome.output
    assert "[idle]" in outcome.output
    assert "the output is 8" in outcome.output
    assert (tmp_path / "report.html").exists()


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("x = 1", "has no pv.Attack"),
        ("x = 1 / 0", "line 1: ZeroDivisionError"),
        ("def f(:", "SyntaxError"),
        ("import privug as pv\npv.Normal(0, sd=-1)", "sd must be a positive number"),
        (
            "import privug as pv\na = pv.Attack(lambda x: x, {'x': pv.Bernoulli(0.5)}, 'x', observe=pv.equals(7))",
            "none of",
        ),
        ("import privug as pv\na = pv.Attack(lambda x: 1 / x, {'x': pv.Bernoulli(0.5)}, 'x')", "x = 0"),
    ],
)
def test_errors_are_messages_with_exit_code_2(run, script, source, message):
    outcome = run("analyze", script(source), "--budget", 50_000)
    assert outcome.exit_code == 2
    assert message in outcome.output
    assert "Traceback" not in outcome.output


def test_missing_file_and_wrong_engine(run, script, tmp_path):
    assert run("analyze", tmp_path / "nothing.py").exit_code == 2
    outcome = run("demo", "--engine", "magic")
    assert outcome.exit_code == 2
    assert "engine must be one of" in outcome.output


def test_version(run):
    assert pv.__version__ in run("--version").output


ATTACK = """
    import privug as pv
    import numpy as np
    prior = {"x": pv.DiscreteUniform(0, 5)}
    attack = pv.Attack(lambda x: x + 1, prior, "x", observe=pv.near(3, within=1), name="Zoë 日")
"""


@pytest.mark.parametrize("name", ["numpy", "privug", "a b.c"])
def test_a_file_may_be_called_as_a_library_is(tmp_path, name):
    path = tmp_path / f"{name}.py"
    path.write_text(textwrap.dedent(ATTACK), encoding="utf-8")
    outcome = subprocess.run(
        [sys.executable, "-m", "privug.cli.main", "analyze", str(path)], capture_output=True, text=True, check=False
    )
    assert outcome.returncode == 0, outcome.stderr
    assert "P(observation)  0.5" in outcome.stdout


@pytest.mark.parametrize("arguments", [["demo", "--code"], ["--help"]])
def test_a_pipe_that_nobody_reads_ends_the_command_quietly(arguments):
    unread, written = os.pipe()
    os.close(unread)
    outcome = subprocess.run(
        [sys.executable, "-m", "privug.cli.main", *arguments], stdout=written, stderr=subprocess.PIPE, check=False
    )
    os.close(written)
    assert (outcome.returncode, outcome.stderr) == (141, b"")


@pytest.mark.parametrize("encoding", ["latin-1", pytest.param("cp437", marks=pytest.mark.slow)])
def test_output_in_any_encoding(script, encoding):
    command = [sys.executable, "-m", "privug.cli.main", "analyze", str(script(ATTACK)), "--engine", "sample"]
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    outcome = subprocess.run([*command, "--samples", "500"], capture_output=True, env=environment, check=False)
    assert outcome.returncode == 0, outcome.stderr
    text = outcome.stdout.decode(encoding)
    assert "─────" in text if encoding == "cp437" else "-----" in text
    assert "Zo" in text


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("raise ValueError('two\\nlines \\x1b[31m')", r"ValueError: two; lines \x1b[31m"),
        ("import sys; sys.exit('enough')", "SystemExit: enough"),
        ("import privug as pv\na = pv.Attack(lambda x: 1 / x, {'x': pv.Bernoulli(0.5)}, 'x')", "input x = 0; Give"),
    ],
)  # fmt: skip
def test_an_error_is_one_harmless_line(run, script, source, message):
    outcome = run("analyze", script(source))
    assert outcome.exit_code == 2
    assert message in outcome.output
    assert outcome.output.count("\n") == 1


def test_a_report_in_an_unknown_format_is_refused_before_anything_is_run(run, script, tmp_path):
    outcome = run("analyze", script("import privug as pv\nraise KeyError('was run')"), "-o", tmp_path / "x.pdf")
    assert outcome.exit_code == 2
    assert ".html, .json, .txt" in outcome.output


def test_names_in_files_are_harmless(run, tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("a\x1b[31mb,c\n" + "1,2\n2,3\n" * 50, encoding="utf-8")
    outcome = run("estimate", path, "--secret", "a\x1b[31mb", "--output", "c")
    assert outcome.exit_code == 0, outcome.output
    assert "\x1b" not in outcome.output
