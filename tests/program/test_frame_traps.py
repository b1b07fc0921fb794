"""Programs on frames that pandas and polars have rules of their own for: traced as they are, or refused, never wrongly.

Each is compared with plain calls on hundreds of tables, in which rare values are as frequent as others. A trace that
differs is a warning, and warnings are errors.
"""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest

import privug as pv
from privug.program.lifting import apply

DAYS = [datetime.date(2024, 1, 1), datetime.date(2024, 5, 31), datetime.date(2023, 12, 31)]


def table(form, rows=5):
    row = pv.Row(
        age=pv.Choice([17, 25, 40, -3]),
        n=pv.Choice([0, 1, 2]),
        k=pv.Choice([1, 2, None]),
        pay=pv.Choice([0.5, -2.5, None]),
        zip=pv.Choice(["23", "24x", None]),
        ill=pv.Choice([True, False]),
        old=pv.Choice([True, False, None]),
        day=pv.Choice(DAYS),
        seen=pv.Choice([DAYS[0], None]),
    )
    return pv.Records(rows, row).as_frame(form)


def lifting(program, form, checks=64):
    return apply(program, [], {"df": table(form)}, checks=checks, exclude_errors=True, native=False).lifting


def first_or(df, error):
    try:
        return df.select("n", "age").filter(pl.col("age") > 20).row(0)[1]
    except error:
        return -1


def mode_or(df, error):
    try:
        return df[df.age > 20].n.mode()[0]
    except error:
        return -1


def column_by_where(df):
    df["share"] = np.where(df.ill, df.pay, 0)
    return df.share.mean()


TRACED = {
    "a date that is a text": lambda df: (df.day == "2024-01-01").sum(),
    "a missing date that is no text": lambda df: (df.seen != "2024-01-01").sum(),
    "dates before a text": lambda df: (df.day < "2024-01-01").sum(),
    "dates between texts": lambda df: df.day.between("2024-01-01", "2024-06-01").sum(),
    "dates in texts": lambda df: df.day.isin(["2024-01-01"]).sum(),
    "dates in timestamps": lambda df: df.day.isin([pd.Timestamp("2024-01-01")]).sum(),
    "a date is no timestamp": lambda df: (df.day == datetime.date(2024, 1, 1)).sum(),
    "dates in a group-by": lambda df: df.groupby("day").n.sum(),
    "dates as output": lambda df: df.day.tolist(),
    "a date that may be missing": lambda df: df.seen.iloc[0],
    "a missing text is true": lambda df: df.zip.apply(lambda z: "x" if z else "y").value_counts(),
    "a missing text is unlike": lambda df: df.zip.apply(lambda z: 1 if z == "23" else 0).sum(),
    "a missing text is not None": lambda df: df.zip.apply(lambda z: 1 if z is None else 0).sum(),
    "a missing text is missing": lambda df: df.zip.apply(lambda z: 1 if pd.isna(z) else 0).sum(),
    "a missing text is unlike itself": lambda df: df.zip.apply(lambda z: 1 if z != z else 0).sum(),
    "a missing date is not None": lambda df: df.seen.apply(lambda d: 1 if d is None else 2).sum(),
    "a number of missing ones": lambda df: df.k.apply(lambda v: v + 1).sum(),
    "missing texts in rows": lambda df: sum(1 for row in df.itertuples() if row.zip == "23"),
    "records with missing texts": lambda df: df[["n", "zip"]].to_dict("records"),
    "None among texts": lambda df: df.zip.isin(["23", None]).sum(),
    "NaN among numbers": lambda df: df.pay.isin([0.5, np.nan]).sum(),
    "NaN among truth values": lambda df: df.old.isin([np.nan]).sum(),
    "nothing holds of a missing text": lambda df: df.zip.str.startswith("2").tolist(),
    "logarithms of zero and less": lambda df: (np.log(df.n).mean(), np.sqrt(df.age).mean(), (df.age**0.5).sum()),
    "an array keeps its gaps": lambda df: np.where(df.n > 1, df.pay, 0).sum(),
    "a column loses its gaps": column_by_where,
    "counts in order": lambda df: max(df.zip.value_counts().to_dict(), key=df.zip.value_counts().to_dict().get),
    "the first of a filter": lambda df: (lambda s: s[s < 2].head(2).sum())(df.n.sort_values(ascending=False)),
    "the first rows of a filter": lambda df: df[df.ill].head(2).n.sum(),
    "a stable order": lambda df: df.sort_values("n", kind="stable").head(2).age.sum(),
    "the column of the order": lambda df: df.sort_values("n").head(2).n.sum(),
    "an order of query's own": lambda df: len(df.query("ill == False & n > 0 | age > 20")),
    "the first group": lambda df: df.groupby("zip").n.sum().reset_index().n[0],
    "no first letter": lambda df: df.zip.fillna("").str[0].value_counts(),
    "truth values with gaps are no numbers": lambda df: df[["n", "pay", "old"]].mean(numeric_only=True),
    "no mode": lambda df: mode_or(df, KeyError),
    "no position": lambda df: mode_or(df, IndexError),
}  # fmt: skip

REFUSED = {
    "missing values left as they are": (
        lambda df: df.zip.map(lambda z: "x" if z else "y", na_action="ignore").count(),
        "map() that leaves missing values as they are",
    ),
    "dates and texts in query()": (lambda df: len(df.query("day > '2024-01-01'")), "query() of dates and texts"),
    "None among numbers": (lambda df: df.pay.isin([0.5, None]).sum(), "isin() of None among numbers"),
    "missing dates": (lambda df: df.seen.isin([None]).sum(), "isin() of missing dates"),
    "gaps in an array": (lambda df: np.median(df.pay), "np.median of missing values"),
    "NaN of gaps": (lambda df: np.isnan(df.pay).sum(), "np.isnan of missing values"),
    "NaN as a key": (lambda df: len(set(df.zip)), "NaN as a dictionary key"),
    "equal rows in any order": (lambda df: df.sort_values("n").head(2).age.sum(), "another column after sort_values()"),
    "a label is no position": (lambda df: df.n.sort_values()[0], "the labels of rows in a random order"),
    "labels after an order": (lambda df: df.n.sort_values().idxmax(), "whose order is random"),
    "a place in a filter": (lambda df: df[df.ill].n.argmax(), "argmax() or argmin()"),
    "rows of one side only": (lambda df: (df[df.ill].n + df.n).isna().sum(), "two columns of different rows"),
    "values in turn": (lambda df: df.n.unique()[0], "values in the order of their first rows"),
    "cells that pivot leaves out": (
        lambda df: df.pivot_table(values="pay", index="zip", columns="ill", fill_value=0), "what may be missing"),
    "no groups at all": (lambda df: df.groupby("zip").apply(lambda g: len(g)), "there may be no groups"),
    "objects that were filled": (lambda df: len(df[~df.old.fillna(False)]), "~ of truth values that had gaps"),
    "texts of filled numbers": (lambda df: df.k.fillna(0).astype(str).tolist(), "astype(str) of numbers with gaps"),
    "patterns": (lambda df: df.zip.str.count(".").sum(), "str.count() of a pattern"),
    "a truth value of NumPy": (lambda df: 1 if df.ill.iloc[0] is True else 0, "'is' of a truth value of NumPy"),
    "missing keys of a table": (lambda df: df.zip.map({"23": 1, None: 2}).sum(), "in the place of missing ones"),
    "a mean that may be missing": (lambda df: df.groupby("zip").pay.mean().get("23"), "get() of what may be missing"),
}  # fmt: skip

POLARS = {
    "None is in no list": (lambda df: df.filter(~pl.col("zip").is_in(["23", None])).height, None),
    "the first of nothing": (lambda df: df.filter(pl.col("age") > 20)["age"].first(), None),
    "no row is no IndexError": (lambda df: first_or(df, IndexError), None),
    "no row has its own error": (lambda df: first_or(df, pl.exceptions.OutOfBoundsError), None),
    "a place of nothing": (lambda df: df.filter(pl.col("age") > 20)[0, "age"], "such a subscript"),
    "floats among whole numbers": (lambda df: df["age"].is_in([17.0]).sum(), "is_in() of values of another type"),
    "dates and texts": (lambda df: (df["day"] == "2024-01-01").sum(), "a comparison of values of different types"),
}


@pytest.mark.parametrize("name", TRACED)
def test_what_pandas_has_rules_for_is_traced_by_them(name):
    found = lifting(TRACED[name], "pandas")
    assert found.tier == "traced", str(found)


@pytest.mark.parametrize("name", REFUSED)
def test_what_pandas_leaves_open_is_refused(name):
    program, reason = REFUSED[name]
    found = lifting(program, "pandas")
    assert found.tier == "python"
    assert reason in str(found)


@pytest.mark.parametrize("name", POLARS)
def test_what_polars_has_rules_for_is_traced_by_them_or_refused(name):
    program, reason = POLARS[name]
    found = lifting(program, "polars")
    assert found.tier == ("traced" if reason is None else "python"), str(found)
    assert reason is None or reason in str(found)


def test_an_assignment_of_another_type_is_refused():
    def program(df):
        df.loc[df.ill, "n"] = 2.5
        return df.n.sum()

    assert "a value of another type" in str(lifting(program, "pandas"))
