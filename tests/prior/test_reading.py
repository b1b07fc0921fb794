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
