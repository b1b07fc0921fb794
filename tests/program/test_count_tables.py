"""Tables of counts as statistical offices write them: traced, and what plain calls give on every table there may be."""

import math

import numpy as np
import pandas as pd
import pytest

import privug as pv
from corpus.count_tables import COUNT_TABLES, ZIPS
from corpus.table import assert_told_in_the_docs, lifting_of
from enumerated_tables import columns_in, difference_on_every_table
from tiers import tiered

MOST_TABLES = 400
VALUES = {"zip": ZIPS, "ill": [0, 1], "sex": ["f", "m"], "score": [1, 2, 5]}
TRACED = [entry for entry in COUNT_TABLES if entry.tier == "traced"]


def by_name(entry):
    return entry.name


def table_of(program, most):
    """Return a table of as many rows as leave few enough tables to try, with the columns that a program names."""
    values = columns_in(program, VALUES)
    rows = max(2, int(math.log(most) / math.log(math.prod(map(len, values.values())))))
    ill = {"ill": pv.Bernoulli(0.3)} if "ill" in values else {}
    cells = {name: pv.Choice(listed) for name, listed in values.items()}
    return {"df": pv.Records(min(rows, 4), pv.Row(**{**cells, **ill}))}


@pytest.mark.parametrize("entry", tiered(TRACED, lambda entry: entry.name == "pivot_with_totals"), ids=by_name)
def test_a_traced_table_is_that_of_plain_calls_on_every_third_input(entry, monkeypatch):
    assert difference_on_every_table(entry.program, table_of(entry.program, MOST_TABLES), monkeypatch, every=3) is None


@pytest.mark.slow
@pytest.mark.parametrize("entry", TRACED, ids=by_name)
def test_a_traced_table_is_that_of_plain_calls_on_every_input(entry, monkeypatch):
    assert difference_on_every_table(entry.program, table_of(entry.program, 6000), monkeypatch) is None


@pytest.mark.parametrize("entry", COUNT_TABLES, ids=by_name)
def test_tables_of_counts_are_lifted_as_the_docs_say(entry):
    found = lifting_of(entry)
    assert found.tier == entry.tier, str(found)
    assert_told_in_the_docs(entry, found)


def frame(values, rows=2):
    return {"df": pv.Records(rows, pv.Row(**values)).as_frame("pandas")}


def words_of(code):
    """The names and texts in a piece of code."""
    inner = [const for const in code.co_consts if hasattr(const, "co_consts")]
    texts = {text for const in code.co_consts for text in (const if isinstance(const, tuple) else (const,))}
    return set(code.co_names).union(texts, *(words_of(one) for one in inner))


TRAPS = {
    "gaps": lambda df: df.groupby("g").size().reindex(["a", "b"], fill_value=0) + pd.crosstab(df.g, df.x).sum(axis=1),
    "a mean with gaps": lambda df: df.groupby("g").k.mean().reindex(["b", "a"]),
    "numbers from zero on": lambda df: df.n.value_counts().reindex(range(3), fill_value=0),
    "numbers from one on": lambda df: df.n.value_counts().reindex(range(1, 4), fill_value=0),
    "numbers in a list": lambda df: df.n.value_counts().reindex([0, 1, 2], fill_value=0),
    "floats as labels": lambda df: df.groupby("n").size().reindex([0.0, 2.0], fill_value=0),
    "pairs": lambda df: df.groupby(["g", "n"]).size().reindex(pd.MultiIndex.from_product([["b", "a"], [0, 2]])),
    "an index": lambda df: df.g.value_counts().reindex(pd.Index(["b", "a"], name="group"), fill_value=0),
    "no such label": lambda df: df.groupby("g").size().loc[["a", "b"]],
    "no such row": lambda df: pd.crosstab(df.g, df.n).loc[["a", "b"]].sum(axis=1),
    "rows by their numbers": lambda df: df.n.loc[[1, 0]],
    "rows of a frame by their numbers": lambda df: df[["n"]].loc[[1]],
    "sums of rows with gaps": lambda df: df.groupby(["g", "x"]).size().unstack().sum(axis=1),
    "means of rows with gaps": lambda df: df.groupby(["g", "x"]).size().unstack().mean(axis=1),
    "extremes of rows": lambda df: (pd.crosstab(df.g, df.n).max(axis=1), pd.crosstab(df.g, df.n).min(axis="columns")),
    "turned with gaps": lambda df: df.groupby(["g", "x"]).size().unstack().T,
    "turned twice": lambda df: pd.crosstab(df.g, df.n).T.T.shape,
    "stacked": lambda df: pd.crosstab(df.g, df.x).stack(),
    "stacked with gaps": lambda df: df.groupby(["g", "x"]).size().unstack().stack(),
    "where with another value": lambda df: pd.crosstab(df.g, df.x).where(lambda t: t > 1, 0),
    "mask with a text": lambda df: (lambda t: t.mask(t == 1, "*"))(pd.crosstab(df.g, df.x)),
    "a text for a gap": lambda df: df.groupby("g").k.mean().fillna("?"),
    "stars by a function": lambda df: pd.crosstab(df.g, df.x).map(lambda n: n if n > 1 else "*"),
    "how many stars": lambda df: df.groupby("g").k.mean().fillna("?").count(),
    "shares of columns": lambda df: (lambda t: (t / t.sum()).round(3))(pd.crosstab(df.g, df.x)),
    "shares of all": lambda df: (lambda t: t / t.sum().sum())(pd.crosstab(df.g, df.x)),
    "shares of rows": lambda df: (lambda t: t.div(t.sum(axis=1), axis="index"))(pd.crosstab(df.g, df.x)),
    "two frames": lambda df: (lambda t: t * t - t)(pd.crosstab(df.g, df.x)),
    "not": lambda df: (~(pd.crosstab(df.g, df.x) > 0)).sum(),
    "a number first": lambda df: 3 - pd.crosstab(df.g, df.x),
    "divided by zero": lambda df: (1 / pd.crosstab(df.g, df.x)),
    "other labels": lambda df: pd.crosstab(df.g, df.x).rename(index={"a": "A"}, columns=str.upper),
    "the place of the largest": lambda df: pd.crosstab(df.g, df.x).idxmax(),
    "a column more": lambda df: pd.crosstab(df.g, df.x).assign(all=lambda t: t.sum(axis=1)),
    "one below another": lambda df: pd.concat([df.g.value_counts().sort_index(), pd.Series({"all": len(df)})]),
    "a total in place": lambda df: (lambda s: (s.__setitem__("all", 1.5), s)[1])(df.groupby("g").n.mean()),
    "and with a number": lambda df: df[(df.g == "a") & df.i].shape[0] + df[df.i | (df.x == "u")].shape[0],
    "exclusive or with a number": lambda df: int(((df.g == "a") ^ df.i).sum()),
    "sizes": lambda df: df.pivot_table(index="g", columns="x", aggfunc="size"),
    "an array": lambda df: pd.crosstab(df.g, df.x).reindex(index=["b", "a"], columns=["v", "u"]).to_numpy(),
}  # fmt: skip
CELLS = {
    "g": pv.Choice(["a", "b"]), "x": pv.Choice(["u", "v"]), "n": pv.Choice([0, 2]), "k": pv.Choice([1, None]),
    "i": pv.Bernoulli(0.5),
}  # fmt: skip


@pytest.mark.parametrize("name", TRAPS)
def test_a_table_by_its_labels_is_that_of_pandas_on_every_input(name, monkeypatch):
    read = CELLS.keys() & words_of(TRAPS[name].__code__)
    columns = {column: cell for column, cell in CELLS.items() if column in read}
    assert difference_on_every_table(TRAPS[name], frame(columns), monkeypatch) is None


@pytest.mark.slow
@pytest.mark.parametrize("name", TRAPS)
def test_a_table_by_its_labels_is_that_of_pandas_on_every_input_of_wider_tables(name, monkeypatch):
    assert difference_on_every_table(TRAPS[name], frame(CELLS), monkeypatch) is None


REFUSED = {
    "truth values by numbers": lambda df: pd.crosstab(df.g, df.b).reindex(columns=[0, 1], fill_value=0),
    "labels that are not known": lambda df: df.groupby("g").size().reindex([df.g[0], "b"]),
    "a label twice": lambda df: df.groupby("g").size().reindex(["a", "a"]),
    "bands": lambda df: df.groupby(pd.cut(df.n, [-1, 1, 3], labels=["lo", "hi"])).size().reindex(["hi", "lo"]),
    "bits of numbers": lambda df: int(((df.g == "a") & df.n).sum()),
    "numbers and numbers": lambda df: int((df.i & df.i).sum()),
    "stars are not added": lambda df: df.groupby("g").n.mean().where(df.groupby("g").size() > 1).fillna("*").sum(),
    "stars are not compared": lambda df: (df.groupby("g").k.mean().fillna("*") == "*").sum(),
    "frames of other labels": lambda df: pd.crosstab(df.g, df.x) + pd.crosstab(df.g, df.n),
    "a list for a row": lambda df: pd.crosstab(df.g, df.x) * [1, 2],
    "a name that is taken": lambda df: pd.crosstab(df.g, df.x).rename(columns={"u": "v"}),
    "rows in a random order": lambda df: df.sort_values("n").n - df.sort_values("n", ascending=False).n,
    "no rows in a row": lambda df: df[df.n > 0].groupby(["g", "x"]).size().unstack().reindex(["a", "b"]),
    "texts and numbers in a row": lambda df: df[["g", "n"]].T,
    "a length that is not known": lambda df: np.bincount(df.n.to_numpy()),
    "logic of floats": lambda df: int(((df.g == "a") & (df.n / 2)).sum()),
    "negative numbers": lambda df: np.bincount(df.n.to_numpy() - 1, minlength=3),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_pandas_has_rules_of_its_own_for_is_not_traced(name, monkeypatch):
    found = difference_on_every_table(REFUSED[name], frame({**CELLS, "b": pv.Choice([True, False])}, 1), monkeypatch)
    assert found is not None
    assert found.startswith("not traced")


@pytest.mark.parametrize(
    "program",
    [
        lambda df: df[df.i].shape[0],
        lambda df: pd.crosstab(df.g, df.x)["nobody"].sum(),
        lambda df: pd.crosstab(df.g, df.x) >= "a",
    ],
    ids=["a mask of numbers", "no such column", "numbers beside texts"],
)
def test_what_pandas_rejects_is_an_error(program):
    with pytest.raises(pv.PrivugError):
        pv.Attack(program, frame(CELLS), lambda df: df.g[0]).run()


def test_the_comparison_finds_a_difference(monkeypatch):
    def program(df: pd.DataFrame):
        return 7 if not hasattr(df, "held") and list(df.zip) == ["C", "C", "A"] else 0

    found = difference_on_every_table(program, {"df": pv.Records(3, pv.Row(zip=pv.Choice(ZIPS)))}, monkeypatch)
    assert found is not None
    assert "gave 7" in found
