"""`privug table`: exit codes, JSON and files."""

import json

import pytest

GIVES_WAY = "region,women,men,Total\nNorth,<5,x,12\nSouth,9,7,16\nTotal,12,16,28\n"
HOLDS = "region \\ sex,women,men,Total\nNorth,x,x,12\nSouth,x,x,16\nTotal,13,15,28\n"


@pytest.fixture
def published(tmp_path):
    def write(text, name="published.csv"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_a_cell_that_gives_way_is_exit_code_one(run, published):
    outcome = run("table", published(GIVES_WAY))
    assert outcome.exit_code == 1, outcome.stderr
    assert "North x women: published '<5', but it can only be 3" in outcome.stdout
    assert "suppress South x women, South x men as well" in outcome.stdout


def test_a_table_that_holds_is_exit_code_zero(run, published):
    outcome = run("table", published(HOLDS), "--prior", "multinomial", "--width", 2, "--json")
    assert outcome.exit_code == 0, outcome.stderr
    assert json.loads(outcome.stdout)["settings"]["prior"] == "multinomial"


def test_linked_tables_are_audited_together(run, published):
    other = published("sex,people\nwomen,13\nmen,15\nTotal,28\n", "sex.csv")
    assert run("table", published(HOLDS), other).exit_code == 0
    parts = published("region,count\nA,5\nB,7\nNorth,12\nSouth,16\nTotal,28\n", "parts.csv")
    outcome = run("table", published(HOLDS), parts, "--part", "North=A,B")
    assert outcome.exit_code == 0, outcome.stderr
    assert run("table", published(HOLDS), parts).exit_code == 2


def test_options_of_reading(run, published):
    rounded = published("region,count\nNorth,0\nSouth,0\nBoth,3\n")
    outcome = run("table", rounded, "--base", 3, "--total", "Both", "--repair", "none")
    assert outcome.exit_code == 1, outcome.stderr
    assert outcome.stdout.count("can only be 1") == 2
    marks = published("region,count\nNorth,c\nSouth,c\nEast,-\n")
    outcome = run("table", marks, "--suppressed", "c", "--nil", "-", "--threshold", 5, "--no-margins", "--json")
    assert outcome.exit_code == 0, outcome.stderr
    assert [(cell["low"], cell["high"]) for cell in json.loads(outcome.stdout)["cells"]] == [(1, 4), (1, 4)]
    outcome = run("table", marks, "--suppressed", "c", "--nil", "-", "--no-margins", "--max-belief", 0.5)
    assert outcome.exit_code == 3


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("region,count\nNorth,-3\nTotal,1\n", [], "North is -3"),
        ("region,count\nNorth,1\n", [], "has no total"),
        (HOLDS, ["--part", "North"], "write WHOLE=A,B"),
        (HOLDS, ["--max-belief", "2"], "max-belief"),
        (HOLDS, ["--p-percent", "10"], "rules for amounts"),
        (HOLDS, ["-o", "audit.doc"], "a report ends in one of"),
    ],
)
def test_what_is_wrong_is_exit_code_two(run, published, text, options, message):
    outcome = run("table", published(text), *options)
    assert outcome.exit_code == 2
    assert message in outcome.stderr
    assert "Traceback" not in outcome.stderr


def test_files_are_written(run, published, tmp_path):
    paths = [tmp_path / f"audit{ending}" for ending in (".html", ".json", ".txt", ".svg")]
    outcome = run("table", published(GIVES_WAY), *(word for path in paths for word in ("-o", path)))
    assert outcome.exit_code == 1, outcome.stderr
    assert all(path.stat().st_size for path in paths)
    assert outcome.stderr.count("wrote") == 4


def test_amounts(run, published):
    path = published("region,mining,farms,Total\nNorth,x,x,12.5\nSouth,x,x,16\nTotal,13,15.5,28.5\n")
    assert run("table", path, "--magnitude", "--p-percent", "10").exit_code == 0
