"""Columns of files, in every layout."""

import numpy as np
import pytest

import privug as pv
from privug.prior.reading import read_columns


def written(tmp_path, text):
    path = tmp_path / "data.txt"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "layout", "expected"),
    [
        ("s,o\n1,2.5\n3,4\n", "csv", {"s": [1, 3], "o": [2.5, 4.0]}),
        ("s;o\n1;a\n3;b\n", "csv", {"s": [1, 3], "o": ["a", "b"]}),
        ("\ufeffs\to\n\n1\t'x'\n", "csv", {"s": [1], "o": ["'x'"]}),
        ('s,o\n1,"a, b"\n', "csv", {"s": [1], "o": ["a, b"]}),
        ("// made by hand\n(1, a)\n(2, b)\n", "leakiest", {"secret": [1, 2], "output": ["a", "b"]}),
        ("1,2,3\n4,5,6.5\n", "fbleau", {"1": [1, 4], "2": [2, 5], "3": [3.0, 6.5]}),
    ],
)
def test_the_layout_is_found(tmp_path, text, layout, expected):
    columns = read_columns(written(tmp_path, text))
    assert columns.layout == layout
    assert {name: list(values) for name, values in columns.items()} == expected


def test_named_columns_and_labels(tmp_path):
    path = written(tmp_path, "zip,age\n0230,31\n0210,44\n")
    assert read_columns(path, ["zip"], labels=["zip"]) == {"zip": ["0230", "0210"]}
    assert read_columns(path, ["age"])["age"].dtype == np.int64


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("s,o\n1,\n", {}, "line 2: column o is empty"),
        ("s,o\n1,2\n3,x\n4,5\n", {}, r"line 3: column o holds 'x' among numbers; .*\(--labels, or labels=\)"),
        ("s,o\n1,2\n", {"columns": ["x"]}, "has no column 'x'; its columns are s, o"),
        ("s,s\n1,2\n", {}, "more than one column 's'"),
        ("s,o\n1,2,3\n", {}, "line 2: there are 3 cells, but the first line has 2"),
        ("s,o\n1,2\n", {"layout": "xml"}, "layout must be one of auto"),
        ("a,x\n", {"layout": "fbleau"}, "outputs of the fbleau layout are numbers"),
        ("(1;2)\n", {}, "this is not a pair"),
        ("PAR1 is not enough", {}, "not a readable Parquet file"),
    ],
)
def test_bad_files_are_refused_with_their_line(tmp_path, text, options, message):
    with pytest.raises(pv.ArgumentError, match=message):
        read_columns(written(tmp_path, text), **options)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(pv.ArgumentError, match="No such file"):
        read_columns(tmp_path / "nothing.csv")
    path = tmp_path / "binary.csv"
    path.write_bytes(b"a,b\n\xff\xfe,1\n")
    with pytest.raises(pv.ArgumentError, match="not a text file in UTF-8"):
        read_columns(path)


CODES = ["01234", "00501", "90210", "10001"]


@pytest.mark.parametrize("first", [0, 3])
@pytest.mark.parametrize("rows", [4, 30_000])
def test_digits_that_begin_with_a_zero_are_text(tmp_path, first, rows):
    """Whether the file is read in blocks or row by row, and wherever in the column the zero stands."""
    ordinary = [f"{place + 10_000}" for place in range(rows)]
    texts = [*ordinary[:first], *CODES, *ordinary[first:]]
    for quote in ("", '"'):
        path = written(tmp_path, "zip,age\n" + "".join(f"{quote}{text}{quote},{k}\n" for k, text in enumerate(texts)))
        columns = read_columns(path)
        assert columns["zip"] == texts
        assert columns["age"].dtype == np.int64


@pytest.mark.parametrize("numbers", [["0", "7"], ["0.5", "10"], ["-0.25", "0"], ["0e3", "1"], ["100", "1000"]])
def test_numbers_with_zeros_are_numbers(tmp_path, numbers):
    columns = read_columns(written(tmp_path, "x,y\n" + "".join(f"{number},1\n" for number in numbers)))
    assert list(columns["x"]) == [float(number) for number in numbers]


def test_codes_stay_apart_in_every_layout(tmp_path):
    assert list(read_columns(written(tmp_path, "(01, 7)\n(1, 8)\n"))["secret"]) == ["01", "1"]
    fbleau = read_columns(written(tmp_path, "01,02\n1,2\n"))
    assert (list(fbleau["1"]), list(fbleau["2"])) == (["01", "1"], [2, 2])
    table = pv.Records.from_frame(written(tmp_path, "zip\n01234\n1234\n"), size=1)
    result = pv.Attack(lambda rows: rows[0].zip, prior={"rows": table}, secret=lambda rows: rows[0].zip).run()
    assert set(result.prediction.distribution()) == {"01234", "1234"}
