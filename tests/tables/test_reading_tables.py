"""How tables are written: layouts, figures, marks; and what is refused, with the name of the cell."""

import math

import pandas as pd
import polars as pl
import pytest

import privug as pv

read = pv.tables.read
WIDE = [
    ["region", "women", "men", "Total"],
    ["North", "1", "2", "3"],
    ["South", "<5", "x", "9"],
    ["Total", "4", "8", "12"],
]


def texts(table):
    return {table.title(labels): cell.text for labels, cell in table.cells.items()}


def long(rows, name="count"):
    header, *body = rows
    cells = [[row[0], column, text] for row in body for column, text in zip(header[1:], row[1:], strict=True)]
    return [["region", "sex", name], *cells]


def test_files_frames_and_rows_are_the_same_table(tmp_path):
    path = tmp_path / "published.csv"
    lines = ["Table 1: people", "", *(";".join(row) for row in WIDE), "* a note", ""]
    path.write_text("\n".join(lines), encoding="utf-8-sig")
    expected = texts(read(WIDE))
    assert texts(read(path)) == texts(read(str(path))) == expected
    assert read(path).name == "published"
    assert texts(read(pd.DataFrame(WIDE[1:], columns=WIDE[0]))) == expected
    assert texts(read(pl.DataFrame(WIDE[1:], schema=WIDE[0], orient="row"))) == expected
    for layout in (long(WIDE), pd.DataFrame(long(WIDE)[1:], columns=long(WIDE)[0])):
        assert texts(read(layout)) == expected
    assert texts(read(long(WIDE, "patients"), count="patients")) == expected


def test_cross_tables_of_pandas_are_read_as_they_are():
    people = pd.DataFrame({"region": [*"aabb"], "sex": [*"fmff"], "age": [*"yyyo"]})
    table = read(pd.crosstab(people.region, people.sex, margins=True))
    assert [dimension.name for dimension in table.dimensions] == ["region", "sex"]
    assert table.cells["b", "f"].value == 2
    assert table.cells[None, None].value == 4
    by_age = read(people.groupby(["region", "age"]).size().unstack(fill_value=0), margins=False)
    assert by_age.cells["a", "o"].value == 0


def test_label_columns_and_names():
    rows = [["region", "sex", "young", "old"], ["N", "f", "1", "2"], ["N", "m", "3", "x"]]
    table = read(rows, rows=["region", "sex"], columns="age", margins=False, names={"region": "area"})
    assert [dimension.name for dimension in table.dimensions] == ["area", "sex", "age"]
    assert table.cells["N", "m", "old"].kind == "suppressed"
    assert "N        m" in str(table) or "N      m" in str(table)


@pytest.mark.parametrize(
    ("text", "value"),
    [("1,234", 1234), ("1 234", 1234), ("1\u202f234", 1234), ("12 [a]", 12), ("12¹", 12), ("12*", 12), ("7 r", 7),
     ("007", 7), ("5.0", 5), ("1,234,567", 1234567), ("+3", 3)],
)  # fmt: skip
def test_figures(text, value):
    table = read([["region", "n"], ["North", text], ["Total", str(value)]])
    assert table.cells["North",].value == value
    assert type(table.cells["North",].value) is int


@pytest.mark.parametrize(
    ("text", "options", "low", "high"),
    [
        ("*", {}, 0, math.inf),
        ("X", {}, 0, math.inf),
        ("<5", {}, 0, 4),
        ("<5", {"zeros": True}, 1, 4),
        ("<= 3", {}, 0, 3),
        ("<10", {}, 0, 9),
        ("1-4", {"suppressed": ["1-4"]}, 1, 4),
        ("*", {"threshold": 5}, 0, 4),
        ("*", {"threshold": 5, "zeros": True}, 1, 4),
        ("c", {"suppressed": {"c": (2, 7)}}, 2, 7),
        ("c", {"suppressed": {"c": (2, None)}, "threshold": 5}, 2, math.inf),
        ("c", {"suppressed": {"c": None}, "threshold": 5}, 0, 4),
        ("-", {"nil": ["-"]}, 0, 0),
    ],
)
def test_marks(text, options, low, high):
    marks = options.get("suppressed", ["*"])
    known = {**(marks if isinstance(marks, dict) else dict.fromkeys(marks)), "?": (0, None), "x": None}
    rows = [["region", "n"], ["North", text], ["South", "9"], ["Total", "?"]]
    cell = read(rows, **{**options, "suppressed": known}).cells["North",]
    assert (cell.low, cell.high) == (low, high)


def test_zeros_are_published_if_one_is_shown():
    rows = [["region", "n"], ["North", "<5"], ["South", "0"], ["Total", "4"]]
    assert read(rows).cells["North",].low == 1
    assert read(rows, zeros=False).cells["North",].low == 0
    assert read([["region", "n"], ["North", "<5"], ["Total", "0"]]).cells["North",].low == 0


@pytest.mark.parametrize(
    ("base", "rounding", "value", "low", "high"),
    [
        (5, "nearest", 10, 8, 12),
        (5, "nearest", 0, 0, 2),
        (10, "nearest", 20, 15, 25),
        (3, "random", 6, 4, 8),
        (3, "random", 0, 0, 2),
    ],
)
def test_rounded_figures(base, rounding, value, low, high):
    cell = read([["region", "n"], ["North", value], ["Total", value]], base=base, rounding=rounding).cells["North",]
    assert (cell.low, cell.high, cell.kind) == (low, high, "rounded")


ONE = [["region", "n"], ["North", "3"], ["South", "4"], ["Total", "7"]]


def changed(**cells):
    return [
        [cells.get(row[0], row[1]) if k == 1 and place else text for k, text in enumerate(row)]
        for place, row in enumerate(ONE)
    ]


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        (changed(North="-3"), {}, "North is -3; .* cannot be negative"),
        (changed(North="2.5"), {}, r"North is 2\.5, which is no integer; .*magnitude=True"),
        (changed(North=".."), {}, r"North holds '\.\.', which is no figure and no mark .* nil="),
        (changed(North="-"), {}, "North holds '-'"),
        (changed(North="1,23"), {}, "North holds '1,23'"),
        (changed(North=""), {}, "North is empty"),
        (changed(North=None), {}, "North is empty"),
        (changed(North="9" * 20), {}, "can be audited"),
        (changed(North="4"), {}, r"Total is 7 \(Total\), but its parts sum to 8: 4 \(North\) \+ 4 \(South\); .*base="),
        (ONE[:-1], {}, "the dimension 'region' has no total; its labels are North, South"),
        ([*ONE, ["All", "7"]], {}, "has the totals Total, All"),
        ([*ONE, ["South", "4"]], {}, "there are two cells South"),
        (ONE, {"base": 5}, "North is 3, which is no multiple of base=5"),
        (ONE, {"base": 1}, "base must be an integer, 2 or more"),
        (ONE, {"rounding": "up"}, "rounding must be one of nearest, random"),
        (ONE, {"count": "m"}, "has no column 'm'; its columns are region, n"),
        (ONE, {"rows": ["area"]}, "has no column 'area'"),
        (ONE, {"margins": ["area"]}, "has no dimension 'area'"),
        (ONE, {"partial": ["area"]}, "has no dimension 'area'"),
        (ONE, {"hierarchy": {"Land": ["North", "West"]}}, "Land is the sum of North, West, but there is no West"),
        (ONE, {"hierarchy": {"North": ["South"], "South": ["North"]}}, "is a part of itself"),
        (ONE, {"suppressed": {"*": 4}}, r"must stand for a range such as \(1, 4\)"),
        (ONE, {"suppressed": [""]}, "suppressed must be a list of marks"),
        (ONE, {"thousands": "."}, "two different characters"),
        ([["region", "n"], ["North", "3", "4"]], {}, "the row 'North' has 3 cells, but the header has 2"),
        ([["region"]], {}, "has no table"),
        ([["region", "n", "n"], ["North", "3", "4"]], {}, "more than one column is called 'n'"),
        (long(WIDE)[:-1], {}, "Total x Total is missing"),
        (3, {}, "needs the path of a CSV file"),
        ("no such file.csv", {}, "No such file"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(rows, options, message):
    with pytest.raises(pv.ArgumentError, match=message):
        read(rows, **options)


def test_a_table_shows_itself():
    assert "<td" in read(WIDE)._repr_html_()
    assert "South       <5     x       9" in str(read(WIDE))


@pytest.mark.parametrize("mark", ["<1", "<=0"])
def test_a_mark_that_only_one_figure_satisfies_tells_it(mark):
    table = pv.tables.read([["region", "n"], ["North", mark], ["South", "x"], ["Total", "6"]], suppressed=("x",))
    found = pv.tables.audit(table)
    north = next(cell for cell in found.cells if cell.name == "North")
    assert (north.low, north.high) == (0, 0)
    assert found.verdict.startswith("violated")
    assert found.further.cells == ()


@pytest.mark.parametrize(("mark", "zeros"), [("<0", False), ("<1", True), ("<=0", True)])
def test_a_mark_that_no_figure_satisfies_is_refused(mark, zeros):
    rows = [["region", "n"], ["North", mark], ["South", "x"], ["Total", "6"]]
    with pytest.raises(pv.ArgumentError, match=f"North is {mark}.*no figure is that"):
        pv.tables.read(rows, suppressed=("x",), zeros=zeros)
