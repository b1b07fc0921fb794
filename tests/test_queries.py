"""Where queries live: files, priors in TOML, logs, compiled models of dbt, the command line."""

import json
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner

import privug as pv
from privug.cli.main import main

PRIOR = """
secret = "people[0].ill"
[people]
rows = 4
columns.zip = "Choice(['A', 'B'], p=[0.75, 1/4])"
columns.ill = "Bernoulli(0.2)"
[districts]
csv = "districts.csv"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.toml").write_text(PRIOR)
    (tmp_path / "districts.csv").write_text("zip,region\nA,north\nB,south\n")
    (tmp_path / "report.sql").write_text("SELECT zip, COUNT(*) AS n FROM people WHERE ill GROUP BY zip;\n")
    (tmp_path / "people.csv").write_text("zip,ill\nA,true\nA,false\nB,false\nB,true\n")
    models = tmp_path / "target" / "compiled" / "shop" / "models"
    models.mkdir(parents=True)
    (models / "stg_people.sql").write_text('select zip, ill from "wh"."raw"."people" where zip is not null')
    (models / "cases.sql").write_text('select zip, count(*) as n from "wh"."main"."stg_people" where ill group by zip')
    return tmp_path


def run(*arguments):
    """Run the command; return its exit code and what it printed."""
    found = CliRunner().invoke(main, list(arguments))
    return found.exit_code, found.output


def test_an_attack_on_a_file_has_the_belief_of_one_in_python(folder):
    attack = pv.queries.attack_on(folder / "report.sql", prior=folder / "people.toml")
    row = pv.Row(zip=pv.Choice(["A", "B"], p=[0.75, 0.25]), ill=pv.Bernoulli(0.2))
    query = pv.sql("SELECT zip, COUNT(*) AS n FROM people WHERE ill GROUP BY zip")
    same = pv.Attack(query, {"people": pv.Records(4, row)}, lambda people: people[0].ill)
    seen = [{"zip": "A", "n": 2}]
    assert float(attack.run(seen).posterior.mean()) == pytest.approx(float(same.run(seen).posterior.mean()), rel=1e-12)


def test_plain_tables_of_a_prior(folder):
    prior, secret = pv.queries.read_prior(folder / "people.toml")
    assert prior["districts"] == [{"zip": "A", "region": "north"}, {"zip": "B", "region": "south"}]
    assert secret == "people[0].ill"


def test_models_of_dbt_read_their_sources(folder):
    models = pv.queries.dbt_models(folder / "target" / "compiled")
    assert {name: model.tables for name, model in models.items()} == {"cases": ("people",), "stg_people": ("people",)}
    rows = [{"zip": "A", "ill": True}, {"zip": None, "ill": True}, {"zip": "A", "ill": False}]
    assert models["cases"](rows) == [{"zip": "A", "n": 1}]


def test_a_log_is_judged_with_what_was_answered_before():
    people = pv.Records(3, pv.Row(ill=pv.Bernoulli(0.5)))
    monitor = pv.policy.Monitor({"people": people}, lambda people: people[0].ill, pv.policy.max_belief(at_most=0.8))
    rows = [{"ill": True}, {"ill": False}, {"ill": False}]
    log = ["SELECT COUNT(*) BETWEEN 0 AND 3 AS any FROM people", "SELECT COUNT(*) AS n FROM people WHERE ill"]
    assert [answer.answered for answer in pv.queries.replay(monitor, log, {"people": rows})] == [True, False]


def test_statements_of_a_log(tmp_path):
    log = tmp_path / "log.sql"
    log.write_text("SELECT COUNT(*) FROM a\n-- a comment\n\nSELECT COUNT(*) FROM b\n")
    assert pv.queries.statements(log) == ["SELECT COUNT(*) FROM a", "SELECT COUNT(*) FROM b"]
    log.write_text("SELECT COUNT(*)\nFROM a;\nSELECT COUNT(*) FROM b;")
    assert pv.queries.statements(log) == ["SELECT COUNT(*) FROM a", "SELECT COUNT(*) FROM b"]


def test_a_relation_of_duckdb_is_a_query():
    connection = duckdb.connect()
    connection.execute("CREATE TABLE people (zip VARCHAR, ill BOOLEAN)")
    relation = connection.table("people").filter("ill").aggregate("zip, COUNT(*) AS n", "zip")
    assert pv.sql(relation)([{"zip": "A", "ill": True}, {"zip": "A", "ill": False}]) == [{"zip": "A", "n": 1}]


def test_an_expression_of_ibis_is_a_query():
    ibis = pytest.importorskip("ibis")
    people = ibis.table({"zip": "string", "ill": "boolean"}, name="people")
    query = pv.sql(people.filter(people.ill).group_by("zip").aggregate(n=ibis._.count()))
    assert query([{"zip": "A", "ill": True}, {"zip": "A", "ill": False}]) == [{"zip": "A", "n": 1}]


# The command line


def test_analyze_a_file_of_sql(folder):
    code, printed = run("analyze", "report.sql", "--prior", "people.toml", "--json")
    assert code == 0
    assert [one["variable"] for one in json.loads(printed)["attacks"]] == ["report"]


def test_analyze_learns_a_prior(folder):
    code, printed = run("analyze", "report.sql", "--learn", "people.csv", "--secret", "people[0].ill")
    assert code == 0
    assert "mutual information" in printed


def test_check_a_model_of_dbt(folder):
    (folder / "limits.toml").write_text("policy = [{name = 'limit', kind = 'max_belief', at_most = 0.5}]")
    model = "target/compiled/shop/models/cases.sql"
    code, printed = run("check", model, "--prior", "people.toml", "--policies", "limits.toml")
    assert code == 1
    assert "violated: cases/limit" in printed


def test_monitor_a_log(folder):
    (folder / "limits.toml").write_text("policy = [{name = 'limit', kind = 'max_belief', at_most = 0.9}]")
    (folder / "log.sql").write_text("SELECT COUNT(*) < 9 AS few FROM people; SELECT zip, ill FROM people;")
    given = ("monitor", "log.sql", "--prior", "people.toml", "--policies", "limits.toml", "--data", "people.csv")
    code, printed = run(*given)
    assert code == 1
    assert [line.split()[0] for line in printed.splitlines()] == ["answered", "refused"]
    assert [one["answered"] for one in json.loads(run(*given, "--json")[1])] == [True, False]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[people]\nrows = 3", "a table has rows and columns"),
        ("[people]\nrows = 3\ncolumns.a = 'open(1)'", "neither a distribution nor a value"),
        ("[people]\nrows = 3\ncolumns.a = 'Normal(0,'", "is no distribution"),
        ("secret = 3\n[people]\ncsv = 'people.csv'", "a text is needed"),
        ("", "has no tables"),
        ("[", "is no TOML file"),
    ],
)
def test_bad_priors_get_one_line(folder, text, message):
    (folder / "people.toml").write_text(text)
    code, printed = run("analyze", "report.sql", "--prior", "people.toml")
    assert code == 2
    assert message in printed
    assert printed.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("report.sql",), "what does the attacker know"),
        (("report.sql", "--learn", "people.csv"), "what is the secret"),
        (("report.sql", "--prior", "people.toml", "--dialect", "oracle"), "dialect must be one of"),
        (("other.sql", "--prior", "people.toml"), "asks for the table 'orders'"),
    ],
)
def test_bad_questions_get_one_line(folder, arguments, message):
    (folder / "other.sql").write_text("SELECT COUNT(*) FROM orders")
    code, printed = run("analyze", *arguments)
    assert code == 2
    assert message in printed
    assert printed.count("\n") == 1


def test_a_query_is_explained(folder):
    code, printed = run("explain", "report.sql", "--prior", "people.toml")
    assert code == 0, printed
    assert "query is traced" in printed
