"""Files read in blocks of bytes give what the reader for any file gives, errors and their lines included."""

import csv
import io
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privug as pv
from privug.prior import reading
from privug.prior import reading as blocks

LABELS = ["red", "grün", "日本", " a", "b ", "x" * 30, "", "nan", "NaN"]
WORDS = [*LABELS, "1", "2", "-7", "0.5", "1e3", "inf", "12345678", "123456789"]


def outcome(path, **options):
    try:
        read = pv.read_columns(path, layout="csv", **options)
    except pv.PrivugError as error:
        return str(error)
    return {name: list(values) for name, values in read.items()}


def by_rows(path, **options):
    with mock.patch.object(reading, "read_blocks", side_effect=blocks.NotPlain):
        return outcome(path, **options)


@settings(deadline=None, max_examples=150)
@given(
    rows=st.lists(st.tuples(*[st.sampled_from(WORDS)] * 3), max_size=12),
    end=st.sampled_from(["\n", "\r\n"]),
    delimiter=st.sampled_from(",;\t|"),
    last=st.booleans(),
    blank=st.integers(0, 12),
    size=st.sampled_from([16, 40, 1 << 20]),
    options=st.sampled_from([{}, {"missing": "drop"}, {"labels": ["b"]}, {"columns": ["c", "a"]}]),
)
def test_blocks_read_what_rows_give(tmp_path_factory, rows, end, delimiter, last, blank, size, options):
    lines = [delimiter.join(row) for row in rows]
    lines.insert(min(blank, len(lines)), " " * (blank % 3))
    text = end.join([delimiter.join("abc"), *lines]) + (end if last else "")
    path = tmp_path_factory.mktemp("files") / "data.csv"
    path.write_bytes(text.encode())
    with mock.patch.object(blocks, "BLOCK_BYTES", size):
        assert outcome(path, **options) == by_rows(path, **options)


@settings(deadline=None, max_examples=40)
@given(cells=st.lists(st.floats(allow_nan=False) | st.integers(-(10**20), 10**20), min_size=4, max_size=40))
def test_many_different_numbers_are_read_as_numbers(tmp_path_factory, cells):
    path = tmp_path_factory.mktemp("files") / "data.csv"
    path.write_text("a\n" + "".join(f"{cell}\n" for cell in cells), encoding="utf-8")
    with mock.patch.object(blocks, "MOST_DISTINCT", 2), mock.patch.object(blocks, "BLOCK_BYTES", 64):
        assert outcome(path) == by_rows(path)


@pytest.mark.parametrize("odd", ["01", "-01", "x", "", "nan"])
def test_what_is_not_plainly_a_number_is_left_to_the_one_rule(tmp_path, odd):
    path = tmp_path / "data.csv"
    path.write_text("a,b\n" + "".join(f"{cell},1\n" for cell in ["1", "2", "3", odd] * 3), encoding="utf-8")
    with mock.patch.object(blocks, "MOST_DISTINCT", 2):
        assert outcome(path) == by_rows(path)


@pytest.mark.parametrize(
    "text",
    [
        'a,b\n"x, y",2\n',
        "a,b\n1,2\n3\n",
        "a,b\n1,2,3\n",
        "a,b\r1,2\r3,4\r",
        "a,b\n" + "x" * 100 + ",2\n",
        "\ufeffa,b\n1,2\n",
        "\n\na,b\n\n1,2\n\n",
        "a,b\n,\n1,2\n , \n",
        "a,b",
        "",
        "a,b\n1,\x00\n",
        "a\nb\n\n\nc\n",
    ],
)
def test_other_files_are_left_to_the_reader_of_rows(tmp_path, text):
    path = tmp_path / "data.csv"
    path.write_bytes(text.encode())
    assert outcome(path) == by_rows(path)


def test_bytes_that_are_no_text_are_refused(tmp_path):
    path = tmp_path / "data.csv"
    path.write_bytes(b"a,b\n1,\xff\n")
    assert "UTF-8" in outcome(path)


def test_a_large_file_equals_the_columns_it_was_written_from(tmp_path):
    rng = np.random.default_rng(0)
    count = 200_000
    secret, words = rng.integers(0, 50, count), np.array(["red", "green", "a longer word"])
    colour, level = words[rng.integers(0, 3, count)], rng.normal(size=count)
    path, text = tmp_path / "data.csv", io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["s", "c", "x"])
    writer.writerows(zip(secret.tolist(), colour.tolist(), level.tolist(), strict=True))
    path.write_text(text.getvalue(), encoding="utf-8")
    with mock.patch.object(reading, "_read_rows", side_effect=AssertionError):
        read = pv.read_columns(path)
    assert np.array_equal(read["s"], secret)
    assert read["c"] == colour.tolist()
    assert np.array_equal(read["x"], level)
