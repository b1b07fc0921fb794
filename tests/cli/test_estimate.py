"""`privug estimate`: layouts of files, what it prints, and how it refuses bad ones."""

import json
import sys

import numpy as np
import pytest
from click.testing import CliRunner

import privug as pv
from privug.cli.files import read
from privug.cli.main import main


@pytest.fixture
def run():
    def invoke(*arguments):
        return CliRunner().invoke(main, ["estimate", *(str(argument) for argument in arguments)])

    return invoke


@pytest.fixture
def write(tmp_path):
    def to_file(text, name="data.csv"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return to_file


MODULO = [(1, 1), (7, 1), (5, 2), (4, 1), (9, 0), (8, 2), (3, 0), (4, 1), (7, 1), (8, 2), (2, 2), (9, 0), (6, 0)]


def rows(seed, samples, apart):
    rng = np.random.default_rng(seed)
    secret = rng.integers(0, 2, samples)
    return list(zip(secret.tolist(), (rng.normal(size=samples) + apart * secret).tolist(), strict=True))


def as_csv(pairs, header="s,o", delimiter=","):
    return "\n".join([header.replace(",", delimiter), *(delimiter.join(map(str, pair)) for pair in pairs)]) + "\n"


def test_a_continuous_output_that_leaks(run, write):
    outcome = run(write(as_csv(rows(1, 2000, 2.0))), "--secret", "s", "--output", "o")
    assert outcome.exit_code == 0, outcome.output
    assert "data.csv: 2,000 rows (csv), secret s, output o" in outcome.output
    assert "mutual_information" in outcome.output
    assert "evidence: there is evidence of a leak (p = 0.001, n=2000)" in outcome.output
    assert "wrong with probability 0.1" in outcome.output
    assert "converged: the last 100 of 1000 examples" in outcome.output


def test_a_discrete_output_that_tells_nothing(run, write):
    pairs = [(secret, output) for secret in "ab" for output in "xyz"] * 50
    outcome = run(write(as_csv(pairs)), "--secret", "s", "--output", "o")
    assert outcome.exit_code == 0, outcome.output
    assert "evidence: no evidence of a leak (p = 1, n=300" in outcome.output
    assert "converged" not in outcome.output


def test_observations_of_leakiest(run, write):
    path = write("// modulo 3\n" + "\n".join(f"({s}, {o})" for s, o in MODULO) + "\n", "observations.txt")
    observations = read(path)
    assert observations.secrets.tolist() == [s for s, _ in MODULO]
    assert observations.outputs.tolist() == [o for _, o in MODULO]
    outcome = run(path)
    assert outcome.exit_code == 0, outcome.output
    assert "13 pairs (leakiest)" in outcome.output


def test_examples_of_fbleau_with_a_test_file(run, write):
    train = write("\n".join(f"{s}, {o}, 1.5" for s, o in rows(2, 600, 2.0)), "train.csv")
    test = write("\n".join(f"{s}, {o}, 1.5" for s, o in rows(3, 400, 2.0)), "test.csv")
    assert read(train).outputs.shape == (600, 2)
    outcome = run(train, "--test", test)
    assert outcome.exit_code == 0, outcome.output
    assert "train.csv: 600 pairs (fbleau)" in outcome.output
    assert "test.csv: 400 pairs (fbleau)" in outcome.output
    assert "600 samples to learn, 400 to judge" in " ".join(outcome.output.split())


def test_the_method_may_be_chosen(run, write):
    outcome = run(write(as_csv(rows(4, 500, 1.0))), "--secret", "s", "--output", "o", "--method", "knn-ln")
    assert "knn-ln k=7, 250 samples to learn" in " ".join(outcome.output.split())


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiters_are_found(write, delimiter):
    observations = read(write(as_csv([("a", 1), ("b", 2)], delimiter=delimiter)), "auto", "s", ["o"])
    assert observations.secrets == ["a", "b"]
    assert observations.outputs.tolist() == [1, 2]


def test_csv_of_spreadsheets(write):
    text = '\ufeff"who", "when asked"\r\n"Smith, J", 1.5\r\n\r\n"O""Neil", 2\r\n'
    observations = read(write(text), "csv", "who", ["when asked"])
    assert observations.secrets == ["Smith, J", 'O"Neil']
    assert observations.outputs.tolist() == [1.5, 2.0]


def test_several_outputs_stand_together(write):
    path = write("s,a,b,c\n1,2,3,x\n4,5,6.5,y\n")
    assert read(path, "auto", "s", ["a", "b"]).outputs.tolist() == [[2, 3], [5, 6.5]]
    assert read(path, "auto", "s", ["a", "c"]).outputs == [(2, "x"), (5, "y")]
    assert read(path, "auto", "s", ["a"], ["a"]).outputs == ["2", "5"]


def test_whole_numbers_stay_whole(write):
    assert read(write("s,o\n1,2\n3,4\n"), "auto", "s", ["o"]).outputs.dtype == np.int64
    assert read(write("s,o\n1,2\n3,1e400\n"), "auto", "s", ["o"]).outputs.tolist() == [2.0, np.inf]


def test_a_part_of_the_rows_is_drawn_at_random(run, write, monkeypatch):
    path = write(as_csv([(row % 2, row) for row in range(2000)]))
    part = read(path, "auto", "s", ["o"]).part(500, seed=1)
    assert (len(part.secrets), part.source) == (
        500,
        "data.csv: 2,000 rows (csv), secret s, output o; 500 of them at random",
    )
    assert [output % 2 for output in part.outputs] == list(part.secrets)
    assert abs(np.mean(part.outputs) - 999.5) < 4 * 577 / 500**0.5
    monkeypatch.setattr("privug.cli.estimate.MANY_ROWS", 1000)
    told = "2,000 rows may take minutes; --rows 100000 takes so many of them at random"
    assert told in run(path, "--secret", "s", "--output", "o", "--labels", "o").stderr
    assert told not in run(path, "--secret", "s", "--output", "o", "--labels", "o", "--rows", 500).stderr


BAD = {
    "empty file": ("", "no column 's'; its columns are none"),
    "header only": ("s,o\n", "has no rows below its header"),
    "unknown column": ("a,o\n1,2\n", "has no column 's'; its columns are a, o"),
    "column twice": ("s,s,o\n1,2,3\n", "more than one column 's'"),
    "empty cell": ("s,o\n1,2\n3,\n", "line 3: column o is empty"),
    "cell too many": ("s,o\n1,2\n3,4,5\n", "line 3: there are 3 cells, but the first line has 2"),
    "text among numbers": ("s,o\n1,2\n\n3,4\n5,six\n", "line 5: column o holds 'six' among numbers"),
    "nan": ("s,o\n1,2\n3,nan\n", "line 3: column o is not a number"),
    "open quote": ('s,o\n1,2\n3,"4\n', "line 3: unexpected end of data"),
    "not text": (b"s,o\n1,\xff\xfe\x00\n", "is not a text file in UTF-8"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_csv_files_are_refused_with_their_line(run, write, case):
    text, message = BAD[case]
    outcome = run(write(text), "--secret", "s", "--output", "o")
    assert outcome.exit_code == 2
    assert message in outcome.output
    assert "Traceback" not in outcome.output


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("(1,2)\n(3;4)\n", [], "line 2: this is not a pair such as (secret, output)"),
        ("(2,2) | 0 | 1\n1 | 0.5 | 0.5\n", [], "line 1: this is a channel, not observations"),
        ("// nothing\n", ["--format", "leakiest"], "has no observations"),
        ("(1,2)\n", ["--format", "leakiest", "--secret", "s"], "name no columns"),
        ("s,o\n1,2\n", ["--secret", "s", "--output", "o", "--labels", "x"], "neither the secret nor an output"),
        ("1,2\n3,x\n", [], "line 2: column 2 holds 'x' among numbers"),
        ("1,2\n3,4,5\n", [], "line 2: there are 3 cells"),
        ("1\n2\n", ["--format", "fbleau"], "at least one number of output"),
        ("a,x\nb,y\n", ["--format", "fbleau"], "line 1: column 2 holds 'x'; outputs of the fbleau layout are numbers"),
        ("s,o\n1,2\n", [], "name the columns, as in --secret"),
        ("s,o\n1,2\n", ["--secret", "s"], "name the columns, as in --secret"),
    ],
)
def test_bad_files_of_other_layouts_are_refused(run, write, text, options, message):
    outcome = run(write(text), *options)
    assert outcome.exit_code == 2
    assert message in outcome.output
    assert "Traceback" not in outcome.output


def test_two_rows_are_too_few_for_anything(run, write):
    outcome = run(write("s,o\n1,2\n3,4\n"), "--secret", "s", "--output", "o")
    assert outcome.exit_code == 0, outcome.output
    assert "evidence: not enough samples: there are 2, and 16 are needed" in outcome.output
    assert "no guesses were learnt" in outcome.output


def test_missing_files_and_unknown_layouts(run, tmp_path, write):
    assert run(tmp_path / "nothing.csv").exit_code == 2
    assert run(write("s,o\n"), "--format", "xml").exit_code == 2


def test_parquet(run, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    arrow = pytest.importorskip("pyarrow")
    path = tmp_path / "data.parquet"
    secret, output = zip(*rows(5, 300, 3.0), strict=True)
    parquet.write_table(arrow.table({"s": secret, "o": output, "gap": [None, *output[1:]]}), path)
    assert read(path, "auto", "s", ["o"]).outputs.tolist() == list(output)
    assert read(path, "auto", "s", ["o"], ["s"]).secrets == [str(value) for value in secret]
    assert run(path, "--secret", "s", "--output", "o").exit_code == 0
    refused = run(path, "--secret", "s", "--output", "gap")
    assert refused.exit_code == 2
    assert "row 1: column gap is empty" in refused.output
    assert "no column 'x'" in run(path, "--secret", "s", "--output", "x").output


def test_parquet_without_its_library(run, write, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    outcome = run(write(b"PAR1 and so on", "data.parquet"), "--secret", "s", "--output", "o")
    assert outcome.exit_code == 2
    assert "reading Parquet needs pyarrow" in outcome.output


def test_broken_parquet(run, write):
    pytest.importorskip("pyarrow")
    outcome = run(write(b"PAR1 and so on", "data.parquet"), "--secret", "s", "--output", "o")
    assert outcome.exit_code == 2
    assert "is not a readable Parquet file" in outcome.output


def test_pairs_become_a_joint(write):
    joint = read(write(as_csv(MODULO)), "csv", "s", ["o"]).joint()
    assert isinstance(joint, pv.Joint)
    assert joint.output.kind.value == "discrete"


def test_json_lines(run, write):
    text = "".join(json.dumps({"key": secret, "ms": output, "size": 3}) + "\n" for secret, output in rows(1, 200, 3.0))
    path = write(text + "\n", "log.jsonl")
    outcome = run(path, "--secret", "key", "--output", "ms")
    assert outcome.exit_code == 0, outcome.output
    assert "log.jsonl: 200 rows (JSON lines), secret key, output ms" in outcome.output
    csv = "key,ms\n" + "".join(f"{secret},{output!r}\n" for secret, output in rows(1, 200, 3.0))
    same = run(write(csv, "log.csv"), "--secret", "key", "--output", "ms")
    assert outcome.output.splitlines()[1:] == same.output.splitlines()[1:]
    assert read(path, "jsonl", "key", ["ms", "size"]).outputs.shape == (200, 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"key": 1, "ms": 2}\n{"key": 1', "line 2: this is not JSON"),
        ('{"key": 1}\n', "line 1: an object with the field 'ms' is needed"),
        ("[1, 2]\n", "line 1: an object with the field 'key' is needed"),
        ('{"key": 1, "ms": [2]}\n', "line 1: 'ms' must be a number, a string or a boolean"),
        ("\n", "has no rows"),
    ],
)
def test_bad_json_lines_are_refused_with_their_line(run, write, text, message):
    outcome = run(write(text, "log.jsonl"), "--secret", "key", "--output", "ms")
    assert outcome.exit_code == 2
    assert message in outcome.output


def test_json_lines_need_names(run, write):
    assert "name the columns" in run(write('{"key": 1}\n', "log.jsonl")).output
