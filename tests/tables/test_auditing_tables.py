"""Verdicts: what gives way, linked tables, amounts, degenerate tables, and how it is told."""

import contextlib
import inspect
import json
import math

import numpy as np
import pytest

import privug as pv
from privug.tables import posteriors

read, audit = pv.tables.read, pv.tables.audit
# Every suppressed cell has another one in its row and in its column, but (s, c3) is a bridge between two cycles.
BRIDGE = [
    ["region \\ age", "c1", "c2", "c3", "c4", "Total"],
    ["n", "*", "*", "31", "28", "69"],
    ["s", "*", "*", "*", "22", "36"],
    ["e", "25", "40", "*", "*", "80"],
    ["w", "18", "33", "*", "*", "69"],
    ["Total", "49", "88", "48", "69", "254"],
]
SAFE = [
    ["region \\ sex", "f", "m", "Total"], ["n", "*", "*", "12"], ["s", "*", "*", "16"], ["Total", "13", "15", "28"],
]  # fmt: skip


def test_a_cell_that_looks_protected_is_found():
    found = audit(read(BRIDGE))
    assert [(cell.name, cell.low, cell.high) for cell in found.broken] == [("s x c3", 3, 3)]
    assert found.status == "violated"
    assert not found
    assert len(found.further.cells) == 1


def test_a_linked_table_gives_a_cell_away():
    first = read(SAFE, name="first")
    assert audit(first).holds
    second = read([["region \\ sex", "m", "f"], ["s", "9", "7"]], margins=False, name="second", partial=["region"])
    third = read(
        [
            ["sex \\ region", "n", "s", "Total"],
            ["f", "6", "7", "13"],
            ["m", "6", "9", "15"],
            ["Total", "12", "16", "28"],
        ]
    )
    found = audit([first, third])
    assert {cell.name: cell.low for cell in found.broken} == {"n x f": 6, "n x m": 6, "s x f": 7, "s x m": 9}
    assert "published '*' in first and '6' in table, but it can only be 6" in str(found)
    assert "* [6]" in str(found)
    assert found.further.cells == tuple(f"{name} in table" for name in ("n x f", "n x m", "s x f", "s x m"))
    with pytest.raises(pv.ArgumentError, match=r"m is 15 .* but its parts sum to 11: 6 .n x m. . 5"):
        audit(
            [
                first,
                read(
                    [["region \\ sex", "f", "m", "x"], ["n", "6", "6", "0"], ["s", "7", "5", "0"]],
                    margins=False,
                    suppressed=["*"],
                ),
            ]
        )
    assert audit([first, second]).broken


def test_totals_of_another_table_have_another_name():
    one = read([["region", "n"], ["N", "10"], ["S", "x"], ["Total", "14"]], name="one")
    two = read(
        [["region", "women", "men", "Total"], ["N", "x", "6", "10"], ["S", "x", "x", "x"], ["Total", "x", "x", "14"]],
        name="two",
    )
    shown = str(audit([one, two], repair=None))
    assert shown.count("x [4]") == 3


def test_the_same_figure_must_be_the_same():
    other = read([["region", "n"], ["n", "13"], ["s", "15"], ["Total", "28"]], name="other")
    with pytest.raises(pv.ArgumentError, match="n is 13 in other, but 12 in table"):
        audit([read(SAFE), other])


def test_tables_that_cannot_be():
    rows = [
        ["r \\ c", "a", "b", "c", "Total"],
        ["n", "<5", "<5", "x", "20"],
        ["s", "x", "x", "5", "25"],
        ["Total", "20", "20", "5", "45"],
    ]
    with pytest.raises(pv.ArgumentError, match="no table of counts agrees with what was published"):
        audit(read(rows))


def test_integers_only():
    """Three pairs that each sum to an odd number leave halves only, if all three must be equal."""
    tables = [
        read(
            [["k", "count"], *([label, "*"] for label in group), ["Total", "*"]],
            name=name,
            names={"k": "k"},
            hierarchy={whole: group},
        )
        for name, whole, group in (("1", "ab", ["a", "b"]), ("2", "bc", ["b", "c"]), ("3", "ac", ["a", "c"]))
    ]
    totals = [
        read([["k", "count"], [whole, "3"], ["Total", "3"]], name=f"total {whole}") for whole in ("ab", "bc", "ac")
    ]
    with pytest.raises(pv.ArgumentError, match="no table of counts agrees"):
        audit([*tables, *totals])


def test_degenerate_tables():
    nothing = audit(read([["r", "n"], ["a", "3"], ["Total", "3"]]))
    assert nothing.holds
    assert nothing.verdict == "holds: no cell is suppressed or rounded"
    alone = audit(read([["r", "n"], ["a", "x"], ["Total", "x"]]))
    assert alone.holds
    assert [cell.high for cell in alone.cells] == [math.inf, math.inf]
    assert alone.cells[0].no_belief == "what was published does not bound it"
    assert audit(read([["r", "n"], ["a", "x"], ["Total", "x"]]), max_belief=0.9).status == "undecided"
    zero = audit(read([["r \\ c", "a", "b", "Total"], ["n", "x", "x", "0"], ["Total", "x", "x", "0"]]))
    assert {(cell.low, cell.high, cell.others) for cell in zero.cells} == {(0, 0, None)}
    pair = audit(read([["r", "n"], ["a", "<2"], ["b", "<2"], ["Total", "1"]]), repair=None)
    assert [cell.others for cell in pair.cells] == [(0, 0), (0, 0)]
    assert "a person counted there learns that nobody else is" in str(pair)
    assert audit(read([["r", "n"], ["a", "<2"], ["b", "<2"], ["Total", "1"]]), against=["outsider"]).holds


@pytest.mark.parametrize("seed", range(20))
def test_counts_of_millions_are_exact(seed):
    """If all cells of a two-way table are suppressed, the bounds of Fréchet are attained."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 10 ** int(rng.integers(3, 11)), (3, 3))
    rows, columns, whole = counts.sum(1).tolist(), counts.sum(0).tolist(), int(counts.sum())
    sheet = [["r", *"abc", "Total"], *([f"r{i}", "x", "x", "x", str(rows[i])] for i in range(3))]
    cells = audit(read([*sheet, ["Total", *map(str, columns), str(whole)]]), prior=None).cells
    truth = [(max(0, r + c - whole), min(r, c)) for r in rows for c in columns]
    assert [(cell.low, cell.high) for cell in cells] == truth


def test_wide_ranges_have_exact_beliefs():
    rows = [["r", "n"], ["a", "x"], ["b", "x"], ["c", "x"], ["Total", "600"]]
    belief = audit(read(rows)).cells[0].belief
    assert [belief[k] for k in (0, 300, 600)] == pytest.approx(
        [(601 - k) / (601 * 602 / 2) for k in (0, 300, 600)], rel=1e-9
    )
    sheet = [
        ["r \\ c", "a", "b", "Total"],
        ["n", "x", "x", "4000"],
        ["s", "x", "x", "6000"],
        ["Total", "5000", "5000", "10000"],
    ]
    found = audit(read(sheet), prior="multinomial").cells[0].belief
    log = [math.lgamma(4001) - math.lgamma(k + 1) - math.lgamma(4001 - k) + math.lgamma(6001) - math.lgamma(5001 - k)
           - math.lgamma(1001 + k) for k in range(4001)]  # fmt: skip
    hypergeometric = np.exp(np.array(log) - max(log))
    assert found[2000] == pytest.approx(hypergeometric[2000] / hypergeometric.sum(), rel=1e-9)


def test_too_much_work_is_said(monkeypatch):
    monkeypatch.setattr(posteriors, "MOST_WORK", 10)
    found = audit(read(SAFE), max_belief=0.9)
    assert found.status == "undecided"
    assert {cell.belief for cell in found.cells} == {None}
    assert "4 cells with an interval only: an exact belief takes more than" in str(found)
    assert (found.cells[0].low, found.cells[0].high) == (0, 12)


def test_primary_marks_are_those_that_must_hold():
    rows = [["region", "n"], ["North", "<5"], ["South", "x"], ["East", "x"], ["Total", "20"]]
    assert [cell.name for cell in audit(read(rows), primary=["<5"]).cells] == ["North"]
    assert [cell.name for cell in audit(read(rows), primary=[" <5"]).cells] == ["North"]
    with pytest.raises(pv.ArgumentError, match="marks no cell"):
        audit(read(rows), primary=["q"])


def test_a_narrow_interval_gives_way():
    rows = [["region", "n"], ["North", "<5"], ["South", "<5"], ["Total", "6"]]
    assert audit(read(rows), width=2).holds
    found = audit(read(rows), width=3, repair=None)
    assert found.broken[0].problems[0].words == "published '<5', but it can only be 2 to 4, which is narrower than 3"


def test_beliefs_that_are_too_sure_give_way():
    rows = [["region", "n"], ["North", "<5"], ["South", "<5"], ["Total", "6"]]
    assert audit(read(rows), max_belief=0.34).holds
    found = audit(read(rows), max_belief=0.3, repair=None)
    assert "an outsider is 33 % sure that it is 2, more than 30 %" in found.broken[0].problems[0].words
    assert found.cells[0].belief_about_others == pytest.approx({1: 1 / 3, 2: 1 / 3, 3: 1 / 3})


AMOUNTS = [
    ["region \\ branch", "mining", "farms", "trade", "Total"],
    ["North", "100", "150", "50", "300"],
    ["South", "100", "120", "30.5", "250.5"],
    ["Total", "200", "270", "80.5", "550.5"],
]
LARGEST = {("North", "mining"): [60, 35, 5]}


def hidden(*cells):
    labels = [row[0] for row in AMOUNTS]
    rows = [[*row] for row in AMOUNTS]
    for region, branch in cells:
        rows[labels.index(region)][rows[0].index(branch)] = "x"
    return read(rows, magnitude=True)


def test_the_p_percent_rule():
    """X - x1 - x2 = 5 is less than 10 % of 60, but not less than 8 %."""
    found = audit(hidden(), p_percent=10, contributors=LARGEST)
    assert found.broken[0].problems[0].kind == "sensitive"
    assert found.further.cells[0] == "North x mining"
    assert audit(hidden(), p_percent=8, contributors=LARGEST).holds
    assert audit(hidden(), p_percent=8, dominance=(2, 96), contributors=LARGEST).holds
    assert not audit(hidden(), dominance=(2, 94), contributors=LARGEST).holds


def test_protection_levels():
    """The interval must reach 10 % of 60 less 5, that is 1, to either side of 100."""
    square = [("North", "mining"), ("North", "trade"), ("South", "mining"), ("South", "trade")]
    found = audit(hidden(*square), p_percent=10, contributors=LARGEST)
    assert found.holds
    cell = next(cell for cell in found.cells if cell.name == "North x mining")
    assert (cell.low, cell.high) == pytest.approx((69.5, 150))
    assert cell.others == pytest.approx((34.5, 115))
    assert cell.belief is None
    wide = audit(hidden(*square), p_percent=100, contributors=LARGEST, repair=None)
    assert "protection needs 55 on either side of 100" in wide.broken[0].problems[0].words
    assert not audit(hidden(("North", "mining")), p_percent=10, contributors=LARGEST).holds
    single = audit(hidden(*square), p_percent=40, amounts={("North", "mining"): 100}, repair=None)
    assert "North x mining" in [cell.name for cell in single.broken]
    assert "North x mining" not in [
        cell.name for cell in audit(hidden(*square), p_percent=30, amounts={("North", "mining"): 100}).broken
    ]


def test_decimals_add_up():
    assert audit(hidden(("South", "trade"))).cells[0].low == 30.5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"prior": "flat"}, "prior must be 'uniform', 'poisson' or 'multinomial'"),
        ({"repair": "all"}, "repair must be 'cells' or 'sum'"),
        ({"against": ["nobody"]}, "against must be some of outsider, contributor"),
        ({"against": []}, "against must be some of"),
        ({"max_belief": 0}, "max_belief must be a number above 0 and at most 1"),
        ({"max_belief": 0.5, "prior": None}, "max_belief needs a prior"),
        ({"width": -1}, "width must be a finite number, 0 or more"),
        ({"rate": 0}, "rate must be a positive number"),
        ({"rate": {"west": 3}}, "rate: there is no cell 'west'"),
        ({"rate": {3: 3}}, "names cells by their labels"),
        ({"p_percent": 10}, "rules for amounts"),
        ({"contributors": {("n", "f"): [1]}}, "contributors are those of amounts"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(pv.ArgumentError, match=message):
        audit(read(SAFE), **options)


@pytest.mark.parametrize("tables", [None, [], "published.csv", [SAFE], 3])
def test_something_else_than_tables_is_refused(tables):
    with pytest.raises(pv.ArgumentError, match="audit needs a table"):
        audit(tables)


def test_wrong_amounts_are_refused():
    for options, message in (
        ({"dominance": (2, 80)}, "needs contributors"),
        ({"dominance": 2, "contributors": LARGEST}, "must be a pair"),
        ({"contributors": {("North", "mining"): [600]}}, "less than the sum of its contributions"),
        ({"contributors": {("North", "mining"): []}}, "must be positive numbers"),
        ({"contributors": 3}, "must be a dict by cells"),
        ({"amounts": {("North", "mining"): -1}}, "amounts must be positive"),
    ):
        with pytest.raises(pv.ArgumentError, match=message):
            audit(hidden(), **options)
    with pytest.raises(pv.ArgumentError, match="not linked"):
        audit([hidden(), read(SAFE)])


def test_what_was_found_is_written(tmp_path):
    found = audit(read(BRIDGE))
    plain = json.loads(found.save(tmp_path / "audit.json").read_text())
    assert plain["status"] == "violated"
    assert [cell["cell"] for cell in plain["cells"] if cell["problems"]] == ["s x c3"]
    assert plain["further"]["minimal"] is True
    page = found.save(tmp_path / "audit.html").read_text()
    assert page.count("<html") == 1
    assert "it can only be 3" in page
    assert found.save(tmp_path / "audit.txt").read_text() == f"{found}\n"
    assert json.loads(found.to_json()) == plain
    with pytest.raises(pv.ArgumentError, match="a report ends in one of"):
        found.save(tmp_path / "audit.doc")
    axes = found.plot()
    assert axes.get_xlabel() == "count"
    found.plot(tmp_path / "audit.svg")
    open_ended = audit(read([["r", "n"], ["a", "x"], ["Total", "x"]]))
    assert json.loads(open_ended.to_json())["cells"][0]["high"] == "inf"
    open_ended.plot(tmp_path / "open.svg")


def test_labels_from_outside_are_harmless():
    found = audit(read([["r", "n"], ["<b>\x1b[31m", "<5"], ["b", "9"], ["Total", "12"]]))
    assert "\x1b" not in str(found)
    assert "<b>" not in found._repr_html_()
    assert "\x1b" not in found.to_json()


BAD = [None, "", -1, math.nan, math.inf, 10**400, [], True, b"x", {}, {"a": 1}, ["a", None], [math.nan, 1.0], int]
BAD += [np.zeros((2, 3)), {1}, {(1, 2): 3, None: 4}, [["a"], [None, [1]]], [10**400, 1], 1 + 2j]


@pytest.mark.parametrize(("function", "given"), [(read, {"source": SAFE}), (audit, {"tables": read(SAFE)})])
def test_bad_arguments_are_errors_of_privug(function, given):
    for name in inspect.signature(function).parameters:
        for value in BAD:
            with contextlib.suppress(pv.PrivugError):
                function(**{**given, name: value})
