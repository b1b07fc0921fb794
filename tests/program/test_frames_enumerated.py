"""Programs on frames against enumeration: every table that there may be, given to pandas or polars itself."""

import itertools

import pandas as pd
import polars as pl
import pytest

import privug as pv
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
}


@pytest.mark.parametrize("values", [CROSSED, MISSING], ids=["known", "missing"])
@pytest.mark.parametrize("name", ABSENT_COLUMNS)
def test_a_column_that_no_row_has_is_not_there(name, values):
    if values is MISSING and name in ("first name", "margins", "smallest"):
        pytest.skip("an error of pandas, or NaN, where there are no rows")
    assert is_traced_as_it_is(ABSENT_COLUMNS[name], "pandas", values)


CALLED = {
    "a dict": lambda df: pd.crosstab(df.g, df.x).to_dict(),
    "names": lambda df: list(pd.crosstab(df.g, df.x).columns),
    "other names": lambda df: pd.crosstab(df.g, df.x).rename(columns={"u": "w"}),
    "a column more": lambda df: pd.crosstab(df.g, df.x).assign(z=1).shape,
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
