"""`privug reproduce`."""

import json


def test_what_there_is_is_listed_in_the_papers_order(run):
    outcome = run("reproduce", "--list")
    names = [line.split()[0] for line in outcome.output.splitlines()]
    assert outcome.exit_code == 0
    assert names.index("linking") < names.index("table_1") < names.index("table_2") < names.index("appendix")
    assert "(Table 1)" in outcome.output
    assert not {"findings", "runner", "page", "governor"} & set(names)
    listed = json.loads(run("reproduce", "--list", "--json", "table_1").output)
    assert [(entry["name"], entry["paper"]) for entry in listed] == [("table_1", "Table 1")]


def test_an_unknown_name_is_told_what_there_is(run, tmp_path):
    outcome = run("reproduce", "tabel_1", "-o", tmp_path / "out")
    assert outcome.exit_code == 2
    assert "there is no experiment 'tabel_1'; there are linking, four_ages, table_1" in outcome.output
    assert not (tmp_path / "out").exists()


def test_json_is_printed_and_files_are_written(run, tmp_path):
    outcome = run("reproduce", "linking", "--json", "-o", tmp_path / "out")
    assert outcome.exit_code == 0, outcome.output
    (found,) = json.loads(outcome.stdout)
    beliefs = {line["quantity"]: line["privug"] for line in found["lines"]}
    assert beliefs["Alice, by zip: P(ill)"]["value"] == 0.5
    assert beliefs["Alice, by zip, birthday, sex: P(ill)"]["value"] == 1
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["index.html", "linking-1.svg", "linking.json"]


def test_a_folder_that_cannot_be_made_is_refused_in_one_line(run, tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    outcome = run("reproduce", "linking", "-o", tmp_path / "file" / "inner")
    assert outcome.exit_code == 2
    assert "cannot be written" in outcome.output


def test_without_a_checkout_it_says_where_the_experiments_are(run, monkeypatch, tmp_path):
    monkeypatch.setattr("privug.cli.reproduce.FOLDER", tmp_path / "experiments")
    monkeypatch.setattr("privug.cli.reproduce.PACKAGE", "privug.absent")
    outcome = run("reproduce", "--list")
    assert outcome.exit_code == 2
    assert "in the source of Privug, not in the installed package" in outcome.output
