"""What commands find in a user's file, their one-line answers, exit codes, JSON and files."""

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import click
import numpy as np
import pytest

import privug as pv
from privug.cli import doctor, options, trials
from privug.cli.main import COMMANDS, main
from privug.cli.new import KINDS
from privug.cli.options import ENGINES
from privug.inference import engines
from privug.studies import measured

TWO = """
    import privug as pv
    print("from the file")
    TWO = pv.equals(2)
    first = pv.Attack(lambda x: x % 3, {"x": pv.DiscreteUniform(0, 5)}, "x", name="Zoë")
    group = {"a": first, "b": pv.Attack(lambda x: x, {"x": pv.DiscreteUniform(0, 5)}, "x", name="<b>&")}
    listed = [pv.Attack(lambda x: x // 3, {"x": pv.DiscreteUniform(0, 5)}, "x", name="Zoë")]
"""


def variables(outcome):
    return [attack["variable"] for attack in json.loads(outcome.stdout)["attacks"]]


def test_attacks_are_found_in_lists_and_dicts_each_once(run, script):
    outcome = run("analyze", script(TWO), "--json")
    assert outcome.exit_code == 0, outcome.stderr
    assert variables(outcome) == ["first", "group['b']", "listed[0]"]
    assert "from the file" in outcome.stderr
    told = [attack["leakage"] for attack in json.loads(outcome.stdout)["attacks"]]
    information = [row["value"] for rows in told for row in rows if row["measure"] == "mutual_information"]
    assert information == pytest.approx([np.log2(3), np.log2(6), 1.0], abs=1e-12)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("first", ["first"]),
        ("group", ["group['a']", "group['b']"]),
        ("listed[0]", ["listed[0]"]),
        ("<b>&", ["group['b']"]),
    ],
)
def test_attacks_are_chosen_by_name(run, script, name, expected):
    path = script(TWO)
    assert variables(run("analyze", f"{path}::{name}", "--json")) == expected
    assert variables(run("analyze", path, "--attack", name, "--json")) == expected


def test_two_attacks_of_one_name_are_told_apart_by_their_variables(run, script):
    outcome = run("analyze", script(TWO), "--attack", "Zoë")
    assert outcome.exit_code == 2
    assert "2 attacks are called 'Zoë'; choose one of first, listed[0]" in outcome.stderr


@pytest.mark.parametrize("seen", ["2", "TWO", "equals(2)", "pv.between(2, 2)", "near(2, within=0.5)"])
def test_observations_are_values_calls_and_names(run, script, seen):
    outcome = run("analyze", f"{script(TWO)}::first", "--observe", seen, "--json")
    assert outcome.exit_code == 0, outcome.stderr
    (attack,) = json.loads(outcome.stdout)["attacks"]
    assert {row["measure"]: row["value"] for row in attack["leakage"]}["kl_divergence"] == pytest.approx(np.log2(3))


def test_one_report_is_about_all_attacks(run, script, tmp_path):
    paths = [tmp_path / f"report{ending}" for ending in (".html", ".json", ".txt")]
    outcome = run("analyze", script(TWO), *(word for path in paths for word in ("-o", path)))
    assert outcome.exit_code == 0, outcome.stderr
    page, plain, text = (path.read_text(encoding="utf-8") for path in paths)
    assert page.count("<html") == 1
    assert page.count("Zoë") >= 2
    assert "&lt;b&gt;&amp;" in page
    assert "<b>&" not in page
    assert len(json.loads(plain)["attacks"]) == 3
    assert [line.split("]")[0] for line in text.splitlines() if line.startswith("[")] == [
        "[first",
        "[group['b'",
        "[listed[0",
    ]


ONE_LINE = {
    "def f(:": "line 1: SyntaxError: invalid syntax",
    "x = 1": "has no pv.Attack at its top level; 'privug new'",
    "x = 1\nimport privug as pv\n\npv.Normal(0, sd=-1)": "line 4: Normal: sd must be a positive number",
    "import no_such_library": "line 1: ModuleNotFoundError: No module named 'no_such_library'; pip install it",
    "import privug as pv\na = pv.Attack(lambda x: x, {'x': pv.Bernoulli(0.5)}, 'x')\na = pv.Attack(lambda x: 1, "
    "{'x': pv.Bernoulli(0.5)}, 'x')": "line 3: 'a' is already the name of the attack at line 2",
    "import privug as pv\ndef f(x):\n    return 1 / x\na = pv.Attack(f, {'x': pv.Bernoulli(0.5)}, 'x')":
        "line 3: the program failed with ZeroDivisionError",
    "import privug as pv\na = pv.Attack(lambda x: x, {'x': pv.Bernoulli(0.5)}, 'x', "
    "questions={'q': lambda x: {}[x]})": "line 2: questions: 'q': the predicate failed with KeyError",
    "import pandas as pd, privug as pv\ndef f(df: pd.DataFrame):\n    return df['salry'].sum()\n"
    "t = pv.Records(2, lambda i: pv.Row(age=pv.Bernoulli(0.5)))\na = pv.Attack(f, {'df': t}, lambda df: df.age.sum())":
        "line 3: the program failed with KeyError: 'salry'",
}  # fmt: skip


@pytest.mark.parametrize("source", ONE_LINE, ids=range(len(ONE_LINE)))
def test_what_is_wrong_with_a_file_is_one_line_with_its_place(run, script, source):
    outcome = run("analyze", script(source))
    assert outcome.exit_code == 2
    assert ONE_LINE[source] in outcome.stderr
    assert "analysis.py" in outcome.stderr
    assert outcome.stderr.count("\n") == 1
    assert outcome.stdout == ""


def test_one_attack_that_fails_does_not_stop_the_others(run, script):
    source = """
        import privug as pv
        bad = pv.Attack(lambda x: 1 / x, {"x": pv.Bernoulli(0.5)}, "x")
        good = pv.Attack(lambda x: x, {"x": pv.Bernoulli(0.5)}, "x")
    """
    outcome = run("analyze", script(source), "--json")
    assert outcome.exit_code == 2
    assert variables(outcome) == ["good"]
    assert "Error: bad: " in outcome.stderr


def test_too_few_samples_are_undecided(run, script):
    source = """
        import privug as pv
        prior = {"x": pv.Normal(0, sd=1)}
        rare = pv.Attack(lambda x: x * x * x + x, prior, "x", observe=pv.near(2, within=0.01))
    """
    assert run("analyze", script(source), "--engine", "sample", "--budget", 2000).exit_code == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nix"], "Error: No such command 'nix'; see privug --help\n"),
        (["analyze"], "Error: Missing argument 'FILE[::NAME]'; see privug analyze --help\n"),
        (["sweep", "FILE", "--over", "epsilon"], "Error: --over epsilon: write a parameter and its values"),
        (["sweep", "FILE", "--over", "x=1", "--measure", "mutual information"], "is not one of 'additive_leakage'"),
        (["sweep", "FILE", "--over", "y=1"], "has no function of y that could return a pv.Attack"),
        (["audit", "FILE"], "has no mechanism at its top level"),
        (["analyze", "FILE", "-o", "nowhere/report.html"], "there is no such folder"),
        (["analyze", "FILE", "--observe", "nea(3)"], "pv has no 'nea'; write a value, near(3, within=1)"),
        (["analyze", "FILE", "--engine", "pymc:foo"], "'pymc:nutpie'"),
    ],
)
def test_wrong_commands_are_one_line(run, script, arguments, message):
    path = script("import privug as pv\na = pv.Attack(lambda x: x, {'x': pv.Bernoulli(0.5)}, 'x')")
    outcome = run(*(str(path) if word == "FILE" else word for word in arguments))
    assert outcome.exit_code == 2
    assert message in outcome.stderr
    assert outcome.stderr.count("\n") == 1


NOISY = """
    import privug as pv

    def bit(answer):
        return answer

    def attack_for(epsilon):
        def released(answer):
            return bit(answer) + pv.sample(pv.DiscreteLaplace(1 / epsilon))
        return pv.Attack(released, {"answer": pv.Bernoulli(0.5)}, "answer")

    one, two = attack_for(1.0), attack_for(2.0)
    mechanism = pv.mechanisms.discrete_laplace(bit, sensitivity=1, epsilon=0.5)
    neighbours = {"mechanism": [(0, 1)], "bit": [(0, 1)]}
"""


def vulnerability(epsilon):
    """A guess by the sign of y - 1/2 is right with probability 1 / (1 + exp(-epsilon))."""
    return 1 / (1 + np.exp(-epsilon))


def test_a_sweep_and_a_comparison_have_the_same_numbers(run, script, tmp_path):
    path = script(NOISY)
    swept = run("sweep", path, "--over", "epsilon=1.0,2.0", "--measure", "bayes_vulnerability", "--json")
    compared = run("compare", path, "--measure", "bayes_vulnerability", "--json", "-o", tmp_path / "c.html")
    for outcome in (swept, compared):
        assert outcome.exit_code == 0, outcome.stderr
        rows = json.loads(outcome.stdout)["rows"]
        assert [row["measure"] for row in rows] == ["bayes_vulnerability"] * 2
        assert [row["value"] for row in rows] == pytest.approx([vulnerability(1.0), vulnerability(2.0)], abs=1e-12)
    assert "<table>" in (tmp_path / "c.html").read_text(encoding="utf-8")


FAILING = """
    import privug as pv

    def shifted_reciprocal(shift):
        return pv.Attack(lambda x: 1 / (x + shift), {"x": pv.Bernoulli(0.5)}, "x")

    def of_two(sd):
        return pv.Attack(lambda a, b: a * b, {"a": pv.Normal(0, sd=sd), "b": pv.Normal(0, sd=sd)}, "a")

    fine, broken = shifted_reciprocal(1), shifted_reciprocal(0)
"""


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["sweep", "--over", "shift=1,0"], 2),
        (["compare"], 2),
        (["compare", "--attack", "fine"], 0),
        (["sweep", "--over", "sd=1", "--engine", "sample", "--samples", 2], 3),
    ],
)
def test_a_study_leaves_with_the_code_of_the_error_in_it(run, script, arguments, code):
    command, *options = arguments
    outcome = run(command, script(FAILING), *options)
    assert outcome.exit_code == code, outcome.output
    assert ("none (1)" in outcome.stdout) == (code != 0)


@pytest.mark.parametrize(
    ("arguments", "code", "epsilon"),
    [
        ([], 0, 0.5),
        (["--pair", "0", "2"], 1, 1.0),
        (["--mechanism", "bit", "--epsilon", "9"], 1, "inf"),
        (["--engine", "sample", "--samples", "2000"], 3, None),
    ],
)
def test_audits_say_by_their_exit_code_what_they_found(run, script, arguments, code, epsilon):
    outcome = run("audit", script(NOISY), *arguments, "--json")
    assert outcome.exit_code == code, outcome.stderr
    (found,) = json.loads(outcome.stdout)["audits"]
    if epsilon is not None:
        assert found["measured"] == (epsilon if epsilon == "inf" else pytest.approx(epsilon, abs=1e-9))


def test_explain_marks_the_line_at_which_tracing_stopped(run, script):
    source = """
        import privug as pv

        def f(x):
            y = 2 * x
            return print(y)

        a = pv.Attack(f, {"x": pv.Uniform(0, 1)}, "x")
    """
    outcome = run("explain", script(source), "--json")
    (found,) = json.loads(outcome.stdout)["attacks"]
    assert (found["tier"], found["not_traced"]) == ("python", "text formatting at line 6")
    assert {line["line"]: line["obstacle"] for line in found["lines"]} == {4: "", 5: "", 6: "text formatting"}
    assert "<- text formatting" in run("explain", script(source)).stdout


@pytest.mark.parametrize("kind", KINDS)
def test_starters_run_as_they_are_written(run, tmp_path, kind):
    path = tmp_path / "start.py"
    assert run("new", kind, path).exit_code == 0
    assert run("new", kind, path).exit_code == 2  # nothing is written over
    outcome = run("analyze", path, "--samples", 200, "--json")
    assert outcome.exit_code == 0, outcome.stderr
    assert all(attack["sentences"] for attack in json.loads(outcome.stdout)["attacks"])
    compile(path.read_text(encoding="utf-8"), str(path), "exec")


def test_the_limit_of_the_first_starter_is_broken(run, tmp_path):
    run("new", "rows", tmp_path / "start.py")
    assert run("check", tmp_path / "start.py").exit_code == 1


def test_doctor_tells_what_works_what_is_missing_and_what_fails(monkeypatch, run):
    outcome = run("doctor", "--only", "exact", "--json")
    assert outcome.exit_code == 0, outcome.output
    assert json.loads(outcome.stdout)["parts"][0]["state"] == "works"
    missing = doctor.tried(doctor.OptionalPart("numpyro", ("no_such_library",), "", "numpyro"), 10)
    assert (missing.state, missing.advice) == ("missing", "no no_such_library: pip install 'privug[numpyro]'")
    assert doctor.tried(doctor.OptionalPart("no_such_trial", ("numpy",), ""), 60).state == "fails"
    assert doctor.tried(doctor.OptionalPart("exact", ("numpy",), ""), 0.01).state == "too slow"
    assert all(callable(getattr(trials, part.name)) for part in doctor.PARTS)


def test_names_on_the_command_line_are_those_of_python():
    assert ENGINES == engines.NAMES
    found = set(pv.leakage.measures("joint")) | set(pv.leakage.measures("channel"))
    assert all(measured.is_measure(name) and options.MeasureType().convert(name, None, None) == name for name in found)
    with pytest.raises(click.BadParameter, match="is not one of"):
        options.MeasureType().convert("mutual", None, None)


def test_every_command_is_on_its_page():
    page = (Path(__file__).parents[2] / "docs" / "reference" / "command-line.md").read_text(encoding="utf-8")
    assert [name for name in COMMANDS if f"`privug {name}`" not in page] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_examples_and_every_command_takes_json(run, name):
    command = getattr(import_module(f"privug.cli.{name}"), name)
    assert "--json" in {option for parameter in command.params for option in parameter.opts}
    assert f"Examples:\n    privug {name}" in run(name, "--help").output


@pytest.mark.parametrize("arguments", [["--help"], *([name, "--help"] for name in COMMANDS), ["new", "rows", "x.py"]])
def test_what_needs_no_numbers_imports_nothing_heavy(arguments, tmp_path):
    code = (
        f"import sys; sys.argv = ['privug', *{arguments}]\nfrom privug.cli.main import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print('LOADED', [name for name in ('scipy', 'rich', 'privug.attack') if name in sys.modules])"
    )
    outcome = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert "LOADED []" in outcome.stdout


def test_completion_of_the_shell_knows_commands_measures_and_engines(monkeypatch):
    complete = import_module("click.shell_completion").BashComplete(main, {}, "privug", "_PRIVUG_COMPLETE")
    assert [item.value for item in complete.get_completions([], "an")] == ["analyze"]
    assert [item.value for item in complete.get_completions(["sweep", "--measure"], "bayes_r")] == ["bayes_risk"]
    assert [item.value for item in complete.get_completions(["analyze", "--engine"], "num")] == ["numpyro"]
