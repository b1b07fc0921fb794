"""Programs on frames against enumeration: every table that there may be, given to pandas or polars itself."""

import itertools
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pytest

import privug as pv
from privug.program.lifting import apply
from privug.program.outputs import settled

LIBRARIES = {"pandas": pd, "polars": pl}


def enumerated(program, form, values, rows):
    """Return each output with its probability, all cells being equally likely."""
    tables = list(itertools.product(itertools.product(*values.values()), repeat=rows))
    found = []
    for several in tables:
        columns = {name: list(cells) for name, cells in zip(values, zip(*several, strict=True), strict=True)}
        found.append(settled(program(LIBRARIES[form].DataFrame(columns))))
    different = [one for place, one in enumerate(found) if one not in found[:place]]
    return [(one, found.count(one) / len(tables)) for one in different]


def attacked(program, form, values, rows):
    prior = pv.Records(rows, pv.Row(**{name: pv.Choice(listed) for name, listed in values.items()})).as_frame(form)
    return pv.Attack(program, {"df": prior}, secret=lambda df: df[next(iter(values))][0])


def is_traced_as_it_is(program, form, values, rows=2):
    """Say whether a program is traced, and each output is seen with the probability that it has."""
    attack = attacked(program, form, values, rows)
    for output, chance in enumerated(program, form, values, rows):
        evidence = attack.run(pv.equals(output), engine="exact").diagnostics.evidence.value
        assert evidence == pytest.approx(chance, abs=1e-9), output
    return attack.lifting.tier == "traced"


CROSSED = {"g": ["a", "b"], "x": ["u", "v"]}
MISSING = {"g": ["a", "b", None], "x": ["u", None]}


def column_or_none(df):
    table = pd.crosstab(df.g, df.x)
    try:
        return int(table["v"].sum())
    except KeyError:
        return None


ABSENT_COLUMNS = {
    "shape": lambda df: pd.crosstab(df.g, df.x).shape,
    "smallest": lambda df: pd.crosstab(df.g, df.x).min().min(),
    "sums": lambda df: pd.crosstab(df.g, df.x).sum(),
    "maxima by a function": lambda df: pd.crosstab(df.g, df.x).apply(lambda column: column.max()),
    "number of columns": lambda df: len(pd.crosstab(df.g, df.x).columns),
    "first name": lambda df: pd.crosstab(df.g, df.x).columns[0],
    "is it there": lambda df: "v" in pd.crosstab(df.g, df.x),
    "if it is there": lambda df: pd.crosstab(df.g, df.x)["v"].sum() if "v" in pd.crosstab(df.g, df.x) else -1,
    "or an error": column_or_none,
    "margins": lambda df: pd.crosstab(df.g, df.x, margins=True).shape,
    "shares": lambda df: pd.crosstab(df.g, df.x, normalize="index").min(),
    "unstacked": lambda df: df.groupby(["g", "x"]).size().unstack().isna().sum().sum(),
    "unstacked and filled": lambda df: df.groupby(["g", "x"]).size().unstack(fill_value=0).shape,
    "pivoted": lambda df: df.assign(n=1).pivot_table(values="n", index="g", columns="x", aggfunc="sum").shape[1],
    "the whole table": lambda df: pd.crosstab(df.g, df.x),
    "other names": lambda df: pd.crosstab(df.g, df.x).rename(columns={"u": "w"}),
    "a column more": lambda df: pd.crosstab(df.g, df.x).assign(z=1).shape,
}


@pytest.mark.parametrize("values", [CROSSED, MISSING], ids=["known", "missing"])
@pytest.mark.parametrize("name", ABSENT_COLUMNS)
def test_a_column_that_no_row_has_is_not_there(name, values):
    if values is MISSING and name in ("first name", "margins", "smallest", "a column more"):
        pytest.skip("an error of pandas, NaN, or no columns where there are no rows")
    assert is_traced_as_it_is(ABSENT_COLUMNS[name], "pandas", values)


CALLED = {
    "a dict": lambda df: pd.crosstab(df.g, df.x).to_dict(),
    "names": lambda df: list(pd.crosstab(df.g, df.x).columns),
    "one by its place": lambda df: pd.crosstab(df.g, df.x).iloc[0, 0],
    "some rows": lambda df: (lambda table: table[table.index == "a"])(pd.crosstab(df.g, df.x)),
    "columns as they come": lambda df: df.groupby(["g", "x"], sort=False).size().unstack(fill_value=0).sum(),
    "with new labels": lambda df: pd.crosstab(df.g, df.x).reset_index().shape,
    "rows of one side only": lambda df: pd.crosstab(df.g, df[df.x == "u"].x),
}


@pytest.mark.parametrize("name", CALLED)
def test_what_a_random_number_of_columns_is_not_traced_for_is_called(name):
    assert attacked(CALLED[name], "pandas", CROSSED, 2).lifting.tier == "python"


PIVOTED = {
    "is it there": (lambda df: "v" in pivot(df), "traced"),
    "whole": (lambda df: pivot(df), "traced"),
    "filled": (lambda df: pivot(df).fill_null(0), "traced"),
    "one of them": (lambda df: pivot(df).select(pl.col("^v$").sum()).width, "python"),
    "put in its place": (lambda df: pivot(df).with_columns(v=pl.lit(1)), "python"),
    "some rows": (lambda df: pivot(df).filter(pl.col("g") == "a"), "python"),
    "columns in turn": (lambda df: len(list(pivot(df))), "python"),
}


def pivot(df):
    return df.pivot("x", index="g", values="x", aggregate_function="len", sort_columns=True).sort("g")


@pytest.mark.parametrize("name", PIVOTED)
def test_a_column_of_a_pivot_that_no_row_has_is_not_there(name):
    program, tier = PIVOTED[name]
    assert attacked(program, "polars", CROSSED, 2).lifting.tier == tier
    assert tier == "python" or is_traced_as_it_is(program, "polars", CROSSED)


def test_a_rare_table_without_a_column_violates_a_policy():
    row = pv.Row(g=pv.Choice(["a", "b"]), x=pv.Choice(["u", "v"], [0.6, 0.4]))
    attack = pv.Attack(
        lambda df: pd.crosstab(df.g, df.x).shape, {"df": pv.Records(12, row).as_frame("pandas")}, lambda df: df.x[0]
    )
    found = pv.policy.check(attack, pv.policy.max_belief(at_most=0.9))
    assert not found.holds
    assert found.worst.value == pytest.approx(0.6**12 / (0.6**12 + 0.4**12))


def known_rows(i):
    known = [("a", "u"), ("a", "v"), ("b", "u")]
    return pv.Row(g=known[i][0], x=known[i][1]) if i < 3 else pv.Row(g=pv.Choice(["a", "b"]), x=pv.Choice(["u", "v"]))


@pytest.mark.parametrize(
    "program",
    [
        lambda df: pd.crosstab(df.g, df.x).to_dict(),
        lambda df: pd.crosstab(df.g, df.x).reset_index(),
        lambda df: list(pd.crosstab(df.g, df.x).columns),
        lambda df: pd.crosstab(df.g, df.x).assign(z=1).shape,
    ],
)
def test_columns_that_are_there_for_sure_are_as_they_were(program):
    attack = pv.Attack(program, {"df": pv.Records(4, known_rows).as_frame("pandas")}, lambda df: df.x[3])
    assert attack.lifting.tier == "traced"


def test_bands_stand_in_their_order_in_a_cross_table():
    def program(df):
        return pd.crosstab(df.g, pd.cut(df.n, [0, 1, 2], labels=["few", "a lot"]))

    assert is_traced_as_it_is(program, "pandas", {"g": ["a", "b"], "n": [1, 2]})


CELLS = {
    "f": [2.675, 1.005], "i": [1, 3], "b": [True, False], "s": ["a", "b"], "k": [1, None], "w": [2.675, None],
}  # fmt: skip
"""Numbers that NumPy rounds otherwise than Python does, whole ones, truth values, texts, and some with gaps."""


def told(value):
    """Return whose number a value is, whether a whole one, and to what it is rounded."""
    if isinstance(value, str):
        return value
    whose = "NumPy" if isinstance(value, np.generic) else "Python"
    whole = isinstance(value, int | np.integer)
    return whose, whole, value if isinstance(value, bool | np.bool_) else round(value, 2)


HANDED_OUT = {
    "iteration": lambda df: [told(v) for v in df.f] + [told(v) for v in df.i] + [told(v) for v in df.b],
    "a column with gaps": lambda df: sum(isinstance(v, float) for v in df.k) + sum(told(v)[1] for v in df.k.dropna()),
    "tolist": lambda df: [told(v) for v in df.w.fillna(2.675).tolist()] + [told(v) for v in df.k.fillna(0).to_list()],
    "map": lambda df: df.f.map(lambda v: told(v)[2]).tolist() + df.i.map(lambda v: told(v)[0]).tolist(),
    "apply": lambda df: df.f.apply(lambda v: round(v, 2)).sum() + df.k.apply(lambda v: isinstance(v, float)).sum(),
    "a division by zero": lambda df: df.i.map(lambda v: 1 / (v - 1) if v > 1 else 0).sum(),
    "to_dict": lambda df: {label: told(v) for label, v in df.f.to_dict().items()},
    "items": lambda df: [told(v) for _, v in df.f.items()],
    "records": lambda df: [(told(row["f"]), told(row["i"])) for row in df.to_dict("records")],
    "columns of a dict": lambda df: [told(v) for v in df.to_dict("list")["f"]] + [told(df.to_dict()["i"][0])],
    "item": lambda df: told(df.f.head(1).item()),
    "squeeze": lambda df: told(df.f.head(1).squeeze()),
    "itertuples": lambda df: [(told(row.f), told(row.b), told(row.Index)) for row in df.itertuples()],
    "iterrows of objects": lambda df: [(told(label), told(row["f"]), told(row["i"])) for label, row in df.iterrows()],
    "iterrows of numbers": lambda df: [(told(row["f"]), told(row["i"])) for _, row in df[["f", "i"]].iterrows()],
    "iterrows of whole numbers": lambda df: [told(row["i"]) for _, row in df[["i"]].iterrows()],
    "iterrows of truth values": lambda df: [told(row["b"])[0] for _, row in df[["b"]].iterrows()],
    "rows of objects": lambda df: df.apply(lambda row: round(row["f"], 2) + row["i"], axis=1).tolist(),
    "rows of numbers": lambda df: df[["f", "i"]].apply(lambda row: told(row.f)[2] + told(row.i)[1], axis=1).tolist(),
    "positions": lambda df: (told(df.f.iloc[0]), told(df.i.iloc[-1]), told(df.b.iloc[0])[0], told(df.f[0])),
    "labels": lambda df: (told(df.f.loc[0]), told(df.at[1, "f"]), told(df.loc[0, "i"]), told(df.f.get(1))),
    "a row": lambda df: (told(df.iloc[0]["f"]), told(df[["i", "f"]].iloc[0]["i"]), told(df.loc[1]["i"])),
    "Python's functions": lambda df: (told(sum(df.f)), told(max(df.f)), told(sorted(df.i)[0])),
    "side by side": lambda df: [(told(f), told(i)) for f, i in zip(df.f, df.i, strict=True)],
    "methods": lambda df: (told(df.f.max()), told(df.f.sum()), told(df.i.agg("sum")), told(df.k.fillna(0).max())),
    "counts": lambda df: (told(df.i.nunique()), told(df[df.b].shape[0]), told(df[df.b].f.size), told(df.k.count())),
    "shares": lambda df: (round(len(df[df.b]) / 8, 2), round(df.b.sum() / 8, 2), round(df.groupby("i").ngroups / 8, 2)),
    "places": lambda df: (told(df.i.idxmax()), told(df.i.argmax()), told(df.groupby("i").size().idxmax())),
    "labels of rows": lambda df: (told(df.index[0]), [told(v) for v in df.index]),
    "labels of groups": lambda df: told(df.groupby("i").size().index[0]),
    "means of groups": lambda df: {name: round(v, 2) for name, v in df.groupby("b").f.mean().items()},
    "describe": lambda df: (told(df.i.describe()["count"]), [told(v) for v in df.i.describe()]),
}  # fmt: skip


def mixed(i):
    certain = pv.Row(f=2.675, i=1, b=True, s="a", k=1, w=2.675)
    return certain if i == 0 else pv.Row(**{name: pv.Choice(values) for name, values in CELLS.items()})


@pytest.mark.parametrize("row", [lambda _: mixed(1), mixed], ids=["random", "one is known"])
@pytest.mark.parametrize("name", HANDED_OUT)
def test_cells_are_numbers_of_python_or_numpy_as_pandas_hands_them_out(name, row):
    prior = {"df": pv.Records(2, row).as_frame("pandas")}
    found = apply(HANDED_OUT[name], [], prior, checks=64, exclude_errors=True, native=False).lifting
    assert found.tier == "traced", str(found)  # and it gave what plain calls give: a difference is a warning


def test_a_column_is_rounded_as_python_rounds_when_it_is_iterated():
    def program(df):
        return [round(v, 2) for v in df.f], round(df.f.iloc[0], 2), all(isinstance(v, int) for v in df.i)

    attack = attacked(program, "pandas", {"f": [2.675], "i": [1, 3]}, 2)
    assert attack.run(pv.equals(([2.67, 2.67], 2.68, True))).diagnostics.evidence.value == 1


DESCRIBED = {
    "rounded": lambda df: df.x.describe().round(2),
    "a frame": lambda df: df[["x"]].describe().round(1),
    "as a dict": lambda df: df.x.describe().round(2).to_dict(),
    "counts of columns": lambda df: df.count().round(0),
    "some summaries": lambda df: df.x.agg(["count", "sum"]).round(1),
    "an own column": lambda df: pd.Series({"n": len(df), "mean": df.x.mean()}).round(2),
}


@pytest.mark.parametrize("name", DESCRIBED)
def test_what_is_known_of_a_summary_is_seen_as_pandas_gives_it(name):
    assert is_traced_as_it_is(DESCRIBED[name], "pandas", {"x": [1, 2, 4]}, rows=3)


def counts(df):
    return df.group_by("g").agg(n=pl.len())


def in_one_order(table, key, names):
    """Return the rows of a table, those that are equal in a key in the order of the other columns."""
    rows = list(zip(*table.values(), strict=True))
    place, tied = list(table).index(key), [list(table).index(name) for name in names]
    runs = [0, *itertools.accumulate(one[place] != other[place] for one, other in itertools.pairwise(rows))]
    return sorted(rows, key=lambda row: (runs[rows.index(row)], [str(row[name]) for name in tied]))


SORTED = {
    "upwards": (lambda df: counts(df).sort("n"), "n", ["g"]),
    "downwards": (lambda df: counts(df).sort("n", descending=True), "n", ["g"]),
    "counted values": (lambda df: df["g"].value_counts(sort=True), "count", ["g"]),
    "shares": (lambda df: df["g"].value_counts(sort=True, normalize=True), "proportion", ["g"]),
    "by another name": (lambda df: counts(df).sort("n").rename({"n": "m"}), "m", ["g"]),
    "some of them": (lambda df: counts(df).sort("n").filter(pl.col("n") > 1), "n", ["g"]),
    "two keys": (lambda df: df.group_by("g", "x").len().sort("len"), "len", ["g", "x"]),
    "by a key of two": (lambda df: df.group_by("g", "x").len().sort("g"), "g", ["x"]),
    "sorted again": (lambda df: df.group_by("g", "x").len().sort("g").sort("len"), "len", ["g", "x"]),
    "lazy": (lambda df: df.lazy().group_by("g").agg(n=pl.len()).sort("n").collect(), "n", ["g"]),
}
COUNTED = {"g": ["a", "b", None], "x": ["u", "v"]}


@pytest.mark.parametrize("name", SORTED)
def test_groups_stand_in_the_order_that_they_were_sorted_in(name):
    program, key, tied = SORTED[name]
    attack, chances, seen = attacked(program, "polars", COUNTED, 2), Counter(), {}
    for output, chance in enumerated(program, "polars", COUNTED, 2):
        rows = tuple(in_one_order(output, key, tied))
        chances[rows] += chance
        seen.setdefault(rows, []).append(output)
    assert attack.lifting.tier == "traced"
    assert len(attack.run(engine="exact").prediction.distribution()) == len(chances)
    for rows, outputs in seen.items():  # one way or another, if polars gave both
        for output in outputs:
            assert attack.run(pv.equals(output)).diagnostics.evidence.value == pytest.approx(chances[rows]), output


@pytest.mark.parametrize("down", [False, True])
def test_a_predicate_sees_sorted_counts(down):
    attack = attacked(lambda df: counts(df).sort("n", descending=down), "polars", COUNTED, 3)
    in_order = pv.such_that(lambda table: table["n"] == sorted(table["n"], reverse=down))
    assert attack.run(in_order).diagnostics.evidence.value == pytest.approx(1)
    last_is_missing = pv.such_that(lambda table: table["g"][-1] is None and table["n"][-1] != table["n"][0])
    assert attack.run(last_is_missing).diagnostics.evidence.value == pytest.approx(6 / 27)


def test_rows_after_a_sort_are_observed_in_either_order_of_equals_or_not_at_all():
    attack = attacked(lambda df: counts(df).sort("n"), "polars", {"g": ["b", None, "a"]}, 3)
    for seen in ({"g": ["b", None], "n": [1, 2]}, {"g": [None, "b"], "n": [1, 2]}):
        assert attack.run(pv.equals(seen)).diagnostics.evidence.value == pytest.approx(3 / 27)
    for several in itertools.permutations(["b", None, "a"]):
        assert attack.run(pv.equals({"g": [*several], "n": [1, 1, 1]})).diagnostics.evidence.value == pytest.approx(
            6 / 27
        )
    assert attack.run({"g": ["a", pv.equals(None)], "n": [1, 2]}).diagnostics.evidence.value == pytest.approx(3 / 27)
    with pytest.raises(pv.PrivugError, match="rows that are equal in n have no order: say what was seen of g, n, too"):
        attack.run({"g": ["b", None]})
    with pytest.raises(pv.PrivugError, match=r"write those as values, pv\.equals\(None\) for a missing one"):
        attack.run({"g": ["b", None], "n": [1, 2]})


ONE_AFTER_THE_OTHER = {
    "rows": lambda df: counts(df).sort("n").rows()[0][1],
    "values": lambda df: counts(df).sort("n")["n"].to_list()[0],
    "without an order": lambda df: counts(df).rows()[0][1],
    "in a loop": lambda df: max(place * n for place, n in enumerate(counts(df).sort("n")["n"])),
}


@pytest.mark.parametrize("name", ONE_AFTER_THE_OTHER)
def test_rows_that_polars_leaves_in_any_order_are_not_taken_one_after_the_other(name):
    assert "polars leaves" in str(attacked(ONE_AFTER_THE_OTHER[name], "polars", COUNTED, 2).lifting)


FEW = {"g": ["a", "b", None], "x": [1, 2]}
ON_THE_CORE = {
    "over inside a group": lambda df: df.group_by("g").agg(n=(-pl.col("x").sum().over("g")).sum()).sort("g"),
    "joined with its groups": lambda df: df.join(df.group_by("g").agg(n=pl.len()), on="g", how="left")["n"].sum(),
    "joined with itself": lambda df: df.join(df.select("g", z="x"), on="g")["z"].sum(),
    "joined by two keys": lambda df: df.join(df.group_by("g", "x").agg(n=pl.len()), on=["g", "x"], how="semi").height,
}


@pytest.mark.parametrize("name", ON_THE_CORE)
def test_joins_and_windows_of_random_frames_of_polars(name):
    assert is_traced_as_it_is(ON_THE_CORE[name], "polars", FEW)


OF_PANDAS = {
    "sorted with missing values": lambda df: (
        df.assign(x=df.x.where(df.x > 1)).sort_values("x", kind="stable").g.tolist()
    ),
    "downwards": lambda df: df.x.where(df.x > 1).sort_values(ascending=False).fillna(0).tolist(),
    "bands of some rows": lambda df: pd.cut(df.x, [0, 1, 3])[df.g == "a"].value_counts(sort=False).max(),
    "divided by zero": lambda df: ((df.x - 1) / 0).count(),
    "swapped": lambda df: df.x.rsub(3).sum(),
    "the most frequent": lambda df: df.g.value_counts().idxmax(),
    "the least frequent": lambda df: df.g.value_counts().idxmin(),
    "the most frequent of some": lambda df: df[(df.x > 1) | (df.g == "a")].g.value_counts().get("a", 0),
}


@pytest.mark.parametrize("name", OF_PANDAS)
def test_orders_and_bands_of_frames_of_pandas(name):
    assert is_traced_as_it_is(OF_PANDAS[name], "pandas", {"g": ["a", "b"], "x": [1, 2]}, rows=3)
