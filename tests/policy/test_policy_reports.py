"""Checks and their reports: which checks a module has, exit codes, and each format by value."""

import copy
import functools
import json
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import pytest

import privug as pv

SCHEMA = Path(__file__).parents[1] / "oracles" / "sarif-schema-2.1.0.json"
SARIF = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))


def parity(x):
    return 7_654_320 + x % 2


def the_attack(program=parity):
    return pv.Attack(program, {"x": pv.DiscreteUniform(0, 3)}, secret="x")


def undecidable():
    """Two sampled numbers whose product is rounded: 0.5 is the true belief, and so never told from the limit 0.5."""
    prior = {"x": pv.Normal(0, sd=1), "y": pv.Normal(0, sd=1)}
    return pv.Attack(lambda x, y: round(abs(x) * y * y + x * x), prior, secret="x")


HOLDS = pv.policy.Check(the_attack(), pv.policy.max_belief(0.5), name="holds & <fine>")
BROKEN = pv.policy.Check(the_attack(), pv.policy.max_belief(0.4), name="broken", policy_name="sure")
DOUBTFUL = pv.policy.Check(
    undecidable(), pv.policy.belief(lambda x: x < 0, at_most=0.5), name="doubtful", engine="sample", samples=500
)


@pytest.fixture(scope="module")
def report():
    return pv.policy.check_all([HOLDS, BROKEN, DOUBTFUL], source=__file__)


@pytest.mark.parametrize(
    ("checks", "code"), [([HOLDS], 0), ([HOLDS, BROKEN], 1), ([DOUBTFUL, HOLDS], 3), ([DOUBTFUL, BROKEN], 1)]
)
def test_exit_codes(checks, code):
    assert pv.policy.check_all(checks).exit_code == code


def test_text_has_a_line_a_check_and_a_summary(report):
    lines = report.to(".txt").splitlines()
    assert len(lines) == 4
    assert lines[0].startswith("holds: holds & <fine>: the belief in the likeliest value of the secret must be at most")
    assert lines[1].endswith("at most 0.4, after every output; at worst 0.5 (exact)")
    assert [line.partition(":")[0] for line in lines[:3]] == ["holds", "violated", "undecided"]
    assert lines[3] == "3 checks: 1 holds, 1 violated, 1 undecided"
    assert str(report) == report.to(".txt")


def test_json(report):
    plain = json.loads(report.to(".json"))
    assert plain["status"] == "violated"
    assert [check["status"] for check in plain["checks"]] == ["holds", "violated", "undecided"]
    broken = plain["checks"][1]
    assert (broken["name"], broken["attack"], broken["policy"]) == ("broken", "parity", "sure")
    assert (broken["worst"]["value"], broken["worst"]["exact"]) == (0.5, True)
    assert Path(broken["program"]["file"]).name == "test_policy_reports.py"
    assert broken["program"]["line"] == parity.__code__.co_firstlineno


def test_junit(report):
    root = ElementTree.fromstring(report.to(".xml"))
    (suite,) = root
    for element in (root, suite):
        totals = [element.get(key) for key in ("tests", "failures", "errors", "skipped")]
        assert totals == ["3", "1", "1", "0"]
    assert [case.get("name") for case in suite] == ["holds & <fine>", "broken", "doubtful"]
    assert [[child.tag for child in case] for case in suite] == [["system-out"], ["failure"], ["error"]]
    failure = suite[1][0]
    assert failure.get("type") == "violated"
    assert failure.get("message").endswith("at worst 0.5 (exact)")
    assert suite[1].get("line") == str(parity.__code__.co_firstlineno)
    assert float(suite.get("time")) >= 0


def test_sarif_is_of_the_standard(report):
    log = json.loads(report.to(".sarif"))
    assert [error.message for error in SARIF.iter_errors(log)] == []
    (run,) = log["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert rules == ["holds & <fine>", "sure", "doubtful"]
    assert all(rules[result["ruleIndex"]] == result["ruleId"] for result in run["results"])
    assert [(result["ruleId"], result["level"]) for result in run["results"]] == [
        ("sure", "error"),
        ("doubtful", "warning"),
    ]
    properties = run["results"][0]["properties"]
    assert (properties["value"], properties["low"], properties["high"], properties["exact"]) == (0.5, 0.5, 0.5, True)
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"].endswith("tests/policy/test_policy_reports.py")
    assert place["region"]["startLine"] == parity.__code__.co_firstlineno
    assert run["properties"] == {"checks": 3, "holds": 1}


def test_mistakes_in_sarif_would_be_found(report):
    good = json.loads(report.to(".sarif"))
    for change, message in [
        (lambda log: log.update(version="2.0"), "'2.0' is not one of ['2.1.0']"),
        (lambda log: log["runs"][0].pop("tool"), "'tool' is a required property"),
        (lambda log: log["runs"][0]["results"][0].update(colour="red"), "'colour' was unexpected"),
        (lambda log: log["runs"][0]["results"][0].update(level="fatal"), "'fatal' is not one of"),
        (lambda log: log["runs"][0]["results"][0].update(ruleIndex=-2), "-2 is less than the minimum of -1"),
        (lambda log: log["runs"][0]["results"][0].update(message="text"), "'text' is not of type 'object'"),
        (lambda log: log["runs"][0]["tool"]["driver"]["rules"].append({"id": 3}), "3 is not of type 'string'"),
    ]:
        log = copy.deepcopy(good)
        change(log)
        assert any(message in error.message for error in SARIF.iter_errors(log)), message


def test_uris_are_relative_to_where_the_command_runs(monkeypatch, tmp_path):
    folder = tmp_path / "a folder"
    folder.mkdir()
    source = folder / "survey.py"
    source.write_text("def constant(x):\n    return 1\n", encoding="utf-8")
    names = {}
    exec(compile(source.read_text(encoding="utf-8"), str(source), "exec"), names)
    check = pv.policy.Check(the_attack(names["constant"]), pv.policy.max_belief(0.1))
    monkeypatch.chdir(tmp_path)
    uri = json.loads(pv.policy.check_all([check]).to(".sarif"))["runs"][0]["results"][0]["locations"]
    assert uri[0]["physicalLocation"]["artifactLocation"] == {"uri": "a%20folder/survey.py"}


@pytest.mark.parametrize("ending", [".txt", ".json", ".xml", ".sarif"])
def test_outputs_are_shown_only_if_asked_for(report, ending, tmp_path):
    assert "765432" not in report.to(ending)
    shown = report.to(ending, secrets=True)
    assert "7654321" in shown
    assert "7654320" in shown
    path = report.save(tmp_path / f"report{ending}")
    assert path.read_text(encoding="utf-8").strip() == report.to(ending)


def test_what_an_engine_says_is_a_secret_too():
    """The observation is impossible, and the engine's message names it."""
    verdict = pv.policy.check(the_attack(), pv.policy.max_belief(0.4), observe=pv.equals(7_654_329), samples=100)
    assert verdict.undecided
    assert "no trustworthy answer came out (ImpossibleObservation)" in verdict.sentence(secrets=False)
    assert "7654329" not in str(verdict.lines(secrets=False)) + verdict.to_json()
    assert verdict.details
    assert verdict.details in str(verdict)


def test_files_of_no_known_format(report, tmp_path):
    with pytest.raises(pv.ArgumentError, match=r"\.sarif"):
        report.save(tmp_path / "report.pdf")
    with pytest.raises(pv.ArgumentError, match="one of"):
        report.to(".pdf")
    with pytest.raises(pv.ArgumentError):
        report.save(3)


def test_modules_have_checks_or_else_pairs():
    attack, policy, other = the_attack(), pv.policy.max_belief(0.5), pv.policy.max_belief(0.4)
    pairs = pv.policy.checks_of({"one": attack, "two": attack, "p": policy, "q": policy & other, "x": 3})
    assert [check.name for check in pairs] == ["one/p", "two/p", "one/q", "two/q"]
    own = pv.policy.Check(attack, policy)
    found = pv.policy.checks_of({"a": attack, "p": other, "own": own, "more": [HOLDS, own, 3]})
    assert [(check.name, check.policy) for check in found] == [
        ("own", policy),
        ("holds & <fine>", HOLDS.policy),
        ("more[2]", policy),
    ]
    assert pv.policy.checks_of({"p": policy}) == []


def test_policies_of_several_parts():
    strict, lax = pv.policy.max_belief(0.4), pv.policy.max_belief(0.5)
    checks = [pv.policy.Check(the_attack(), policy) for policy in (strict & lax, strict | lax)]
    assert [str(outcome.verdict.status) for outcome in pv.policy.check_all(checks).outcomes] == ["violated", "holds"]


@pytest.mark.parametrize(
    "arguments",
    [
        (3, pv.policy.max_belief(0.5)),
        (the_attack(), 3),
        (the_attack(), pv.policy.max_belief(0.5), 7),
        (the_attack(), pv.policy.max_belief(0.5), None, 3),
        (the_attack(), pv.policy.max_belief(0.5), None, "", 1.0),
        (the_attack(), pv.policy.max_belief(0.5), None, "", "much"),
    ],
)
def test_wrong_checks_are_refused_when_they_are_made(arguments):
    with pytest.raises(pv.ArgumentError):
        pv.policy.Check(*arguments)


def test_programs_are_found_where_they_are_written():
    line = parity.__code__.co_firstlineno
    wrapped = pv.mechanisms.laplace(parity, epsilon=1.0, sensitivity=1.0)
    for program in (parity, functools.partial(parity), wrapped):
        check = pv.policy.Check(pv.Attack(program, {"x": pv.DiscreteUniform(0, 3)}, "x"), pv.policy.max_belief(0.5))
        assert check.place == (Path(__file__), line)
    external = pv.Attack(pv.External(["cat"]), {"x": pv.DiscreteUniform(0, 3)}, "x")
    assert pv.policy.Check(external, pv.policy.max_belief(0.5)).place is None
