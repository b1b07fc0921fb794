"""Traced frames of polars: expressions against polars on random inputs, exact answers, refusals by name."""

import itertools
import warnings
from datetime import date

import numpy as np
import pandas as pd
import polars as pl
import pytest

import privug as pv
from privug.inference.question import Question
from privug.inference.sampling import draw
from privug.model.sparse import in_known_order
from privug.model.structure import flatten
from privug.prior.table import as_input
from privug.program.inputs import Arguments
from privug.program.outputs import settled
from test_corpus import same

pytestmark = pytest.mark.filterwarnings("ignore:.*cut.* is deprecated:DeprecationWarning")

c = pl.col
OLD = pl.col("age") > 20
TABLE = pl.DataFrame({"zip": ["2300", "9999"], "region": ["Capital", "Nowhere"], "size": [900, 5]})
SCHEMA = {
    "name": pl.String, "age": pl.Int64, "pay": pl.Float64, "zip": pl.String, "ill": pl.Boolean, "day": pl.Date,
    "well": pl.Boolean,
}  # fmt: skip


def person(i):
    return pv.Row(
        name="Alice" if i == 0 else pv.Choice(["Bo", "Cy"]),
        age=pv.Choice([17, 25, 40]),
        pay=pv.Choice([0.5, 1.0, 4.0, None]),
        zip=pv.Choice(["2300", "2450", None]),
        ill=pv.Choice([True, False]),
        day=pv.Choice([date(2024, 1, 31), date(2024, 12, 2)]),
        well=pv.Choice([True, False, None]),
    )


def table(rows):
    return pv.Records(rows, person).as_frame("polars")


EXPRESSIONS = {
    "arithmetic": lambda df: ((df["age"] + 1) * 2 - df["age"] % 7).sum(),
    "reflected": lambda df: (100 - df["age"]).max() + (2 * df["age"]).min() + (1 / df["age"]).sum(),
    "power and whole division": lambda df: df.select((c("age") ** 2).sum(), b=(c("age") // 10).sum()).row(0),
    "division of fractions": lambda df: (df["pay"] // 0.3).sum(),
    "missing parts": lambda df: df.select(x=c("pay") + c("age")).select(c("x").sum(), n=c("x").count()).row(0),
    "zero divided": lambda df: df.select(x=c("age") / (c("age") - 17)).to_dict(as_series=False),
    "largest of what is NaN": lambda df: df.select(x=(c("age") - 17) / (c("age") - 17))["x"].max(),
    "NaN filled": lambda df: ((df["age"] - 17) / (df["age"] - 17)).fill_nan(-5.0).sum(),
    "mean with NaN": lambda df: df.select(((c("age") - 17) / (c("age") - 17)).mean()),
    "logic": lambda df: df.filter((c("age") > 20) & ~c("ill") | (c("name") == "Alice")).height,
    "logic of missing": lambda df: df.select(
        a=(c("well") & c("ill")).null_count(), o=(c("well") | c("ill")).null_count(), n=(~c("well")).sum(),
        x=(c("well") ^ c("ill")).sum(), s=(c("well") & c("ill")).sum(), t=(c("well") | (c("pay") > 1)).sum()).row(0),
    "comparisons of missing": lambda df: (
        (df["pay"] == 1).sum(), (df["pay"] != 1).sum(), (df["zip"] != "2300").null_count()),
    "comparison of columns": lambda df: (df["pay"] < df["age"]).sum(),
    "is_in": lambda df: (df["zip"].is_in(["2300", "9999"]).sum(), df["zip"].is_in(["2300", None]).null_count()),
    "is_between": lambda df: df.filter(c("age").is_between(17, 40, closed="left")).height,
    "clip": lambda df: df["age"].clip(20, 30).sum() + df["age"].clip(upper_bound=18).sum(),
    "round": lambda df: (df["age"] / 7).round(1).sum() + df["age"].round(1).sum(),
    "python's round": lambda df: round(df["age"].mean(), 1),
    "when": lambda df: df.select(pl.when(c("age") > 20).then(c("age")).otherwise(0)).to_series().sum(),
    "when twice": lambda df: df.select(
        pl.when(c("age") < 20).then(pl.lit("a")).when(c("ill")).then(pl.lit("b")).otherwise(pl.lit("c")).alias("k")
    ).group_by("k").len(),
    "when missing": lambda df: df.select(x=pl.when(c("well")).then(c("age")))["x"].null_count(),
    "fill_null": lambda df: (df["pay"].fill_null(-1).sum(), (df["zip"].fill_null("none") == "none").sum()),
    "fill_null of a frame": lambda df: df.fill_null(0).select(c("pay").sum(), z=c("zip").null_count()).row(0),
    "fill_null with a mean": lambda df: df.select(c("pay").fill_null(c("pay").mean())).sum().item(),
    "is_null": lambda df: (df["pay"].is_null().sum(), df["zip"].is_not_null().mean(), df.null_count().row(0)),
    "drop_nulls": lambda df: df.drop_nulls("pay").height - df["zip"].drop_nulls().len() + df.drop_nulls().height,
    "replace": lambda df: df["age"].replace({17: 18}).sum(),
    "replace_strict": lambda df: df["age"].replace_strict({17: "a", 25: "b", 40: "a"}).value_counts(),
    "replace_strict with a default": lambda df: df["zip"].replace_strict({"2300": 1}, default=7).sum(),
    "map_elements": lambda df: df["pay"].map_elements(
        lambda pay: 5.0 if pay > 0.7 else -1.0, return_dtype=pl.Float64).sum(),
    "map_elements to truth": lambda df: df["age"].map_elements(lambda age: age > 17, return_dtype=pl.Boolean).sum(),
    "replace_strict to a type": lambda df: df["age"].replace_strict(
        {17: 1.5, 25: 2.5, 40: 3.5}, return_dtype=pl.Int64).sum(),
    "cast": lambda df: (df["ill"].cast(pl.Int64) * 3).sum() + df["age"].cast(pl.Float64).mean(),
    "cast of texts": lambda df: df["zip"].cast(pl.Int64).sum() + df["age"].cast(pl.String).str.len_chars().sum(),
    "summaries": lambda df: df.select(
        c("age").sum().alias("a"), c("age").mean().alias("b"), c("age").min().alias("c"), c("age").max().alias("d"),
        c("age").median().alias("e"), c("age").std().alias("f"), c("age").var(ddof=0).alias("g")),
    "summaries of missing": lambda df: df.select(
        c("pay").sum().alias("a"), c("pay").mean().alias("b"), c("pay").min().alias("c"), c("pay").max().alias("d"),
        c("pay").median().alias("e"), c("pay").std().alias("f"), c("pay").count().alias("g"), pl.len()),
    "summaries of nothing": lambda df: df.filter(c("age") > 99).select(
        a=c("pay").sum(), b=c("pay").mean(), d=c("pay").max(), n=pl.len(), f=c("name").n_unique()),
    "truth values": lambda df: df.select(
        c("ill").sum().alias("s"), c("ill").mean().alias("m"), c("well").max().alias("x"), c("well").min().alias("n"),
        c("well").any().alias("a"), c("well").all().alias("e")),
    "quantiles": lambda df: [df["age"].quantile(q) for q in (0.1, 0.25, 0.5, 0.9)],
    "quantiles of missing": lambda df: (df["pay"].quantile(0.3), df["pay"].quantile(0.5, interpolation="linear")),
    "quantiles of some": lambda df: df.filter(c("ill"))["age"].quantile(0.75),
    "n_unique": lambda df: (df["age"].n_unique(), df["zip"].n_unique(), df.select("age", "ill").n_unique()),
    "counts below zero": lambda df: df.select(c("ill").sum() - 3).item(),
    "counts with a sign": lambda df: df.select(c("ill").sum() + -3, b=c("ill").sum() - c("age").min()).row(0),
    "counts of groups": lambda df: df.group_by("age").len().with_columns(c("len") - 2, d=c("len") * 1000 / pl.len()),
    "value_counts": lambda df: df["zip"].value_counts(),
    "value_counts sorted": lambda df: df["zip"].value_counts(sort=True, normalize=True),
    "shape": lambda df: (df.shape, df.height, df.width, len(df), df.columns, "age" in df.columns, df.is_empty()),
    "positions": lambda df: (df["age"][0], df["age"][-1], df[1, "age"], df.item(0, "name"), df.row(1)[1]),
    "one cell": lambda df: df.filter(c("name") == "Alice")["age"].item(),
    "filter by a value": lambda df: df.filter(c("ill"), name="Bo").height,
    "filter by a series": lambda df: df.filter(df["age"] > 20).height,
    "columns": lambda df: df.select("age", "ill").rename({"age": "years"}).drop("ill").columns,
    "with_columns": lambda df: df.with_columns(double=c("age") * 2).with_columns(c("double") + 1)["double"].sum(),
    "several columns": lambda df: df.select(pl.col("age", "pay").sum().name.suffix("_sum")),
    "all columns": lambda df: df.select("age", "pay").select(pl.all().mean()),
    "exclude": lambda df: df.select("age", "pay").select(pl.all().exclude("pay").sum()),
    "summary of a frame": lambda df: df.select("age", "pay").mean(),
    "functions": lambda df: df.select(pl.sum("age"), pl.mean("pay"), n=pl.count("pay"), u=pl.n_unique("zip")),
    "horizontal": lambda df: df.select(
        s=pl.sum_horizontal("age", "pay"), m=pl.max_horizontal("age", "pay"), k=pl.min_horizontal("pay", "age")).sum(),
    "any horizontal": lambda df: df.select(x=pl.any_horizontal("ill", "well"))["x"].sum(),
    "random literal": lambda df: df.filter(c("age") > df["age"].mean()).height,
    "describe": lambda df: df.select("age", "pay").describe(),
    "groups": lambda df: df.group_by("zip").agg(c("age").mean(), n=pl.len(), k=c("pay").count(), s=c("pay").sum()),
    "groups sorted": lambda df: df.group_by("zip").agg(c("age").mean(), c("pay").std()).sort("zip"),
    "groups sorted down": lambda df: df.group_by("zip").len().sort("zip", descending=True),
    "groups, missing last": lambda df: df.group_by("zip").len().sort("zip", nulls_last=True),
    "groups in order": lambda df: df.group_by("zip", maintain_order=True).agg(c("age").sum(), c("name").first()),
    "groups by size": lambda df: df.group_by("age").len().sort("len", descending=True),
    "groups by size and key": lambda df: df.group_by("age").len().sort(["len", "age"], descending=[True, False]),
    "largest groups": lambda df: df.group_by("age").len().sort(["len", "age"], descending=[True, False]).head(2),
    "groups of two keys": lambda df: df.group_by("zip", "ill").agg(c("age").sum()).sort("zip", "ill"),
    "groups of a computed key": lambda df: df.group_by(c("age") > 20).agg(pl.len()),
    "groups of a named key": lambda df: df.group_by(old=c("age") // 20).len().sort("old"),
    "groups of several columns": lambda df: df.group_by("ill").agg(c("age", "pay").mean()),
    "groups by a method": lambda df: df.select("ill", "age").group_by("ill").mean(),
    "filter inside groups": lambda df: df.group_by("ill").agg(c("age").filter(c("age") > 20).mean()),
    "arithmetic of groups": lambda df: df.group_by("name").agg(
        x=c("ill").sum() * 1000 / pl.len(), r=c("age").max() - c("age").min()),
    "small groups suppressed": lambda df: df.group_by("zip").len().filter(c("len") >= 2).sort("zip"),
    "small groups missing": lambda df: df.group_by("zip").agg(n=pl.len()).with_columns(
        pl.when(c("n") >= 2).then(c("n"))).sort("zip"),
    "number of groups": lambda df: df.group_by("age").len().height,
    "groups as a dict": lambda df: dict(df.group_by("zip").agg(c("age").mean()).sort("zip").iter_rows()),
    "groups zipped": lambda df: (lambda g: dict(zip(g["age"], g["len"], strict=True)))(
        df.group_by("age").len().sort("age")),
    "groups as rows": lambda df: df.group_by("zip").len().sort("zip").rows(),
    "groups as dicts": lambda df: df.group_by("zip").len().sort("zip").to_dicts(),
    "a column of groups": lambda df: df.group_by("age").len().sort("age")["len"],
    "a list of groups": lambda df: df.group_by("age").len().sort("age")["age"].to_list(),
    "loop over groups": lambda df: max({key: part["pay"].count() for (key,), part in df.group_by("age")}.values()),
    "groups of groups": lambda df: df.group_by("zip", "age").len().group_by("age").agg(c("len").max()),
    "largest group": lambda df: df.group_by("age").len()["len"].max(),
    "over": lambda df: df.select((c("age") - c("age").mean().over("ill")).abs().sum()).item(),
    "over two keys": lambda df: df.select(x=pl.len().over("ill", "zip"))["x"].max(),
    "shares over": lambda df: df.select((c("age") / c("age").sum().over("name")).sum()).item(),
    "pivot": lambda df: df.pivot("ill", index="zip", values="age", aggregate_function="sum").sort("zip"),
    "pivot of means": lambda df: df.pivot("name", index="ill", values="age", aggregate_function="mean").sort("ill"),
    "pivot in order": lambda df: df.pivot(on="age", index="zip", values="ill", aggregate_function="len"),
    "pivot of groups": lambda df: df.group_by("ill", "age").len().pivot("ill", index="age", values="len").sort("age"),
    "sort": lambda df: df.sort("age").select("age", "name"),
    "sort down": lambda df: df.sort("pay", descending=True)["pay"].to_list(),
    "sort by two": lambda df: df.sort("zip", "age", nulls_last=True).select("zip", "age", "ill"),
    "sort and head": lambda df: df.sort("age", descending=True).head(2)["age"].sum(),
    "sort of some": lambda df: df.filter(c("ill")).sort("age").select("name", "age").head(2),
    "top_k": lambda df: df.top_k(2, by="age")["age"].sum() + df["age"].bottom_k(1).sum(),
    "head": lambda df: df.head(2)["age"].sum() + df["age"].head(1).sum(),
    "head of some": lambda df: df.filter(c("ill")).head(2)["age"].sum(),
    "unique": lambda df: df.select("age", "ill").unique().sort("age", "ill"),
    "unique in order": lambda df: df.unique("age", keep="first", maintain_order=True).select("name", "age"),
    "unique values": lambda df: df["zip"].unique().len() + len(df["age"].unique()),
    "cut": lambda df: df.with_columns(band=c("age").cut([17, 30], labels=["a", "b", "c"])).group_by(
        "band").len().sort("band"),
    "cut with names": lambda df: df.select(c("pay").cut([1, 2.5], left_closed=True).alias("b")).group_by(
        "b").len().sort("b"),
    "texts": lambda df: df.select(c("name").str.to_uppercase()).to_series().is_in(["BO"]).sum(),
    "text slices": lambda df: df.group_by(c("zip").str.slice(0, 2)).len(),
    "texts that start": lambda df: df.filter(c("zip").str.starts_with("23")).height + (
        df["name"].str.contains("B")).sum(),
    "texts joined": lambda df: (df["name"] + "!").value_counts(),
    "dates": lambda df: df.group_by(c("day").dt.quarter().alias("q")).len().sort("q"),
    "dates compared": lambda df: df.filter(c("day") > date(2024, 6, 1)).select(c("day").dt.year().sum()).item(),
    "join": lambda df: df.join(TABLE, on="zip").group_by("region").agg(n=pl.len(), s=c("size").max()),
    "left join": lambda df: df.join(TABLE, on="zip", how="left").select(c("size").sum(), n=c("region").count()),
    "semi and anti join": lambda df: (
        df.join(TABLE, on="zip", how="semi").height, df.join(TABLE, on="zip", how="anti").height),
    "a fixed table filtered": lambda df: df.join(TABLE.filter(c("size") > 10), on="zip").height,
    "rows": lambda df: sum(row["age"] for row in df.iter_rows(named=True) if row["ill"]),
    "tuples": lambda df: sum(age for name, age, *_ in df.rows() if name == "Bo"),
    "dicts": lambda df: len([row for row in df.to_dicts() if row["age"] > 20]),
    "columns as lists": lambda df: df.select("age", "zip").to_dict(as_series=False),
    "lists": lambda df: (sum(df["age"]), max(df["age"]), sorted(df["age"].to_list())),
    "arrays": lambda df: df["age"].to_numpy().mean() + np.array(df["age"]).max(),
    "missing rows counted": lambda df: sum(1 for pay in df["pay"] if pay is None),
    "filtered rows": lambda df: df.filter(c("age") > 20).select("age", "zip"),
    "lazily": lambda df: df.lazy().filter(c("age") > 20).group_by("ill").agg(c("age").sum()).sort("ill").collect(),
    "cumulative": lambda df: df["age"].cum_sum().max(),
    "suppressed": lambda df: df["age"].mean() if df["ill"].sum() >= 2 else None,
    "a mean that may be none": lambda df: (
        0.0 if df.filter(c("ill"))["age"].mean() is None else df.filter(c("ill"))["age"].mean()),
    "pipe": lambda df: df.pipe(lambda d: d["age"].sum()),
}  # fmt: skip


def differences(program, records, samples=40, seed=1):
    question = Question(program, {"df": records}, secret="df", exclude_errors=True)
    run = draw(question, None, samples=samples, seed=seed)
    wrong = []
    for rows, output in zip(run.quantities[0].values(), run.quantities[1].values(), strict=True):
        structure, leaves = flatten(as_input(records, rows))
        frame = next(Arguments(structure, tuple(leaves)).plain([], 1)).cast(SCHEMA)  # also where all are missing
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            plain = in_known_order(question.case().output, settled(program(frame)))
        if not same(plain, output):
            wrong.append((rows, plain, output))
    return question.case().lifting, wrong


# Few rows or many, in turns; the other way round is slow.
IN_TURNS = [(name, 9 if place % 2 else 2, 2 if place % 2 else 9) for place, name in enumerate(EXPRESSIONS)]


@pytest.mark.parametrize(
    ("name", "rows"),
    [(name, rows) for name, rows, _ in IN_TURNS]
    + [pytest.param(name, rows, marks=pytest.mark.slow) for name, _, rows in IN_TURNS],
)
def test_an_expression_is_traced_and_gives_what_polars_gives(name, rows):
    with pv.limited(native=False):
        lifting, wrong = differences(EXPRESSIONS[name], table(rows))
    assert wrong == []
    assert lifting.tier == "traced", str(lifting)


VALUES = {"age": [20, 40, 60], "zip": ["2300", "8000"]}


def small(rows):
    return pv.Records(rows, pv.Row(**{name: pv.Choice(listed) for name, listed in VALUES.items()})).as_frame("polars")


def brute_force(program, seen, rows=3):
    """Return the probability of an output together with each age of the first person, by plain calls on all tables."""
    cells = list(itertools.product(*VALUES.values()))
    found = {}
    for several in itertools.product(cells, repeat=rows):
        frame = pl.DataFrame([dict(zip(VALUES, one, strict=True)) for one in several])
        if settled(program(frame)) == seen:
            found[frame["age"][0]] = found.get(frame["age"][0], 0) + len(cells) ** -rows
    return found


@pytest.mark.parametrize(
    ("program", "seen"),
    [
        (lambda df: df.filter(c("age") >= 40).group_by("zip").agg(c("age").mean()).sort("zip"),
         {"zip": ["2300"], "age": [50.0]}),
        (lambda df: df.group_by("zip").len().sort("zip"), {"zip": ["2300", "8000"], "len": [2, 1]}),
        (lambda df: df.group_by("zip").len().sort("zip"), {"zip": ["8000"], "len": [3]}),
        (lambda df: df.filter(c("age") >= 40).group_by("zip").len().sort("zip").rows(), [("2300", 1), ("8000", 1)]),
        (lambda df: df.filter(c("age") >= 40).group_by("zip").len().sort("zip").to_dicts(),
         [{"zip": "8000", "len": 2}]),
        (lambda df: df.group_by("zip").len().sort("zip")["len"], [1, 2]),
        (lambda df: df.filter(c("age") >= 40).group_by("zip").len().sort("zip")["len"].to_list(), [1]),
        (lambda df: df.filter(c("age") > 60).group_by("zip").len().sort("zip"), {"zip": [], "len": []}),
        (lambda df: df.group_by("zip", maintain_order=True).len(), {"zip": ["8000", "2300"], "len": [1, 2]}),
        (lambda df: df.filter(c("age") == 60)["zip"].to_list(), ["2300", "2300"]),
        (lambda df: df.pivot("zip", index="age", values="zip", aggregate_function="len").sort("age"),
         {"age": [20, 40], "2300": [2, 1]}),
    ],
)  # fmt: skip
def test_rows_that_may_be_absent_are_observed_exactly(program, seen):
    attack = pv.Attack(program, prior={"df": small(3)}, secret=lambda df: df["age"][0])
    result = attack.run(pv.equals(seen))
    assert attack.lifting.tier == "traced", str(attack.lifting)
    expected = brute_force(program, seen)
    total = sum(expected.values())
    found = {age: one.value for age, one in result.posterior.distribution().items()}
    assert found == {age: pytest.approx(p / total) for age, p in expected.items()}
    assert result.diagnostics.evidence.value == pytest.approx(total)


def unordered(df: pl.DataFrame):
    return df.group_by("zip").agg(n=pl.len())


def test_rows_whose_order_polars_leaves_open_are_seen_in_any_order():
    attack = pv.Attack(unordered, prior={"df": small(3)}, secret=lambda df: df["age"][0])
    for order in ([0, 1], [1, 0]):
        zips, counts = [["2300", "8000"][k] for k in order], [[2, 1][k] for k in order]
        assert attack.run(pv.equals({"zip": zips, "n": counts})).diagnostics.evidence.value == pytest.approx(3 / 8)
        seen = {"zip": zips, "n": [pv.between(1, 2), pv.between(1, 2)]}
        assert attack.run(seen).diagnostics.evidence.value == pytest.approx(6 / 8)
    assert attack.lifting.tier == "traced"
    assert len(attack.run().prediction.distribution()) == 4
    with pytest.raises(pv.errors.ObservationError, match="the rows have no order: say what was seen of zip"):
        attack.run({"n": [1, 2]})


def in_order(df: pl.DataFrame):
    return df.group_by("zip").agg(n=pl.len()).sort("zip")


def test_parts_and_predicates_see_the_rows_that_are_there():
    attack = pv.Attack(in_order, prior={"df": small(3)}, secret=lambda df: df["age"][0])

    def evidence(seen):
        return attack.run(seen).diagnostics.evidence.value

    assert evidence({"zip": ["2300", None], "n": [pv.between(1, 2), None]}) == pytest.approx(6 / 8)
    assert evidence({"n": [1, 2]}) == pytest.approx(3 / 8)
    assert evidence({"n": [3]}) == pytest.approx(2 / 8)
    assert evidence(pv.such_that(lambda out: len(out["zip"]) == 2)) == pytest.approx(6 / 8)
    assert evidence(pv.such_that(lambda out: "2300" not in out["zip"])) == pytest.approx(1 / 8)
    assert evidence(pv.such_that(lambda out: sum(out["n"]) == 3)) == pytest.approx(1)
    with pytest.raises(pv.errors.ObservationError, match="must be a list, one entry for each row"):
        evidence({"n": pv.between(1, 2)})
    with pytest.raises(pv.errors.ObservationError, match="names part 'm', but the output has"):
        evidence({"m": [1]})


def filtered_mean(df: pl.DataFrame):
    means = df.filter(pl.col("age") >= 40).group_by("zip").agg(pl.col("income").mean())
    return dict(means.iter_rows()).get("2300")


def published_mean(df: pl.DataFrame):
    return df.filter((pl.col("age") >= 40) & (pl.col("zip") == "2300"))["income"].mean()


def filtered_mean_in_pandas(df: pd.DataFrame):
    return df[df.age >= 40].groupby("zip")["income"].mean().get("2300")


def filtered_mean_in_a_loop(rows):
    found = [row.income for row in rows if row.age >= 40 and row.zip == "2300"]
    return sum(found) / len(found) if found else None


def test_a_filter_and_a_group_by_over_thirty_rows_are_exact_as_a_loop_is():
    row = pv.Row(
        age=pv.DiscreteUniform(18, 80), income=pv.Choice([1, 2, 3, 4]), zip=pv.Choice(["2300", "2450", "8000"])
    )
    seen = pv.near(3.21, within=0.1)
    loop = pv.Attack(
        filtered_mean_in_a_loop, prior={"rows": pv.Records(30, row)}, secret=lambda rows: rows[0].income
    ).run(seen, engine="exact")
    for program in (filtered_mean, published_mean, filtered_mean_in_pandas):
        frame = pv.Attack(program, prior={"df": pv.Records(30, row)}, secret=lambda df: df["income"][0]).run(seen)
        assert frame.engine.startswith("exact")
        assert frame.diagnostics.evidence.value == pytest.approx(loop.diagnostics.evidence.value, rel=1e-9)
        for income, probability in loop.posterior.distribution().items():
            assert frame.posterior.distribution()[income].value == pytest.approx(probability.value, rel=1e-9)


def published_table(df: pl.DataFrame):
    return df.filter(pl.col("age") >= 40).group_by("zip").agg(n=pl.len(), total=pl.col("income").sum())


def test_a_table_of_groups_is_observed_exactly():
    row = pv.Row(age=pv.Choice([20, 50]), income=pv.Choice([0, 1]), zip=pv.Choice(["2300", "8000"]))
    attack = pv.Attack(published_table, prior={"df": pv.Records(16, row)}, secret=lambda df: df["income"][0])
    result = attack.run(pv.equals({"zip": ["2300"], "n": [2], "total": [2]}))
    assert result.engine.startswith("exact")
    assert result.diagnostics.evidence.value == pytest.approx(16 * 15 / 2 * (1 / 8) ** 2 * 0.5**14)
    # The first row is one of the two with probability 2/16, and has the income 1 then.
    assert result.posterior.probability(lambda income: income == 1).value == pytest.approx(2 / 16 + 14 / 16 / 2)


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (lambda df: df.rolling("age", period="3i"), "DataFrame.rolling at line"),
        (lambda df: df["age"].ewm_mean(com=1), "Series.ewm_mean at line"),
        (lambda df: df.select(c("age").rolling_mean(3)), "Expr.rolling_mean at line"),
        (lambda df: df.group_by("zip").head(2), "GroupBy.head at line"),
        (lambda df: df.select(c("zip").str.extract("(.)")), "Expr.str.extract at line"),
        (lambda df: df["age"].cut([20], include_breaks=True), "Series.cut() with include_breaks at line"),
        (lambda df: df.sort("age", multithreaded=False), "DataFrame.sort() with multithreaded at line"),
        (lambda df: pl.concat([df, df]), "pl.concat of a DataFrame at line"),
        (lambda df: df.group_by("zip").len().to_dicts(), "order polars leaves open, without sort()"),
        (lambda df: df.group_by("zip").len()["len"], "order polars leaves open, without sort()"),
        (lambda df: dict(df.group_by("zip").len().rows()), "a dictionary, perhaps filled in an order"),
        (lambda df: df.group_by("age").len().sort("len").head(1), "order polars leaves open at line"),
        (lambda df: df.group_by("age").len().sort("len").select("age"), "by a column that is not published"),
        (lambda df: df.top_k(2, by="age")["name"], "which polars takes of any of equal rows"),
        (lambda df: df.top_k(2, by="age"), "which polars takes of any of equal rows"),
        (lambda df: df.filter(OLD), "an expression that was made outside of the program"),
        (lambda df: df.filter(c("ill") & OLD), "an expression that was made outside of the program"),
        (lambda df: df.group_by("zip").agg("age"), "agg() of lists"),
        (lambda df: df.join(df, on="zip"), "join() with anything but a fixed table"),
        (lambda df: df.filter((c("age") - 17) / (c("age") - 17) > 0), "a comparison of what may be NaN"),
        (lambda df: df.group_by("zip").agg(pl.len() * 2**31).sort("zip"), "counts beyond 32 bits"),
    ],
)
def test_what_is_not_known_is_refused_by_name(program, reason):
    assert reason in str(pv.explain(program, df=table(3)))


def adults(df, least=18):
    return df.filter(c("age") >= least)


def by_helper(df: pl.DataFrame):
    older = adults(df, least=20)
    return older.height, older["age"].sum()


def test_helpers_and_frames_of_random_size_are_traced():
    lifting, wrong = differences(by_helper, table(5))
    assert (lifting.tier, wrong) == ("traced", [])
    prior = pv.Records(pv.DiscreteUniform(0, 6), pv.Row(zip=pv.Choice(["2300", "8000"]), age=pv.Choice([1, 2])))
    attack = pv.Attack(in_order, prior={"df": prior}, secret=lambda df: df.height)
    assert attack.run(pv.equals({"zip": [], "n": []})).diagnostics.evidence.value == pytest.approx(1 / 7)
    assert attack.run(pv.equals({"zip": ["2300"], "n": [2]})).diagnostics.evidence.value == pytest.approx(1 / 7 / 4)
    assert attack.lifting.tier == "traced"
