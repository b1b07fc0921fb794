"""Traced frames: expressions against pandas on random inputs, exact answers against enumeration, refusals by name."""

import itertools
import warnings

import numpy as np
import pandas as pd
import pytest

import privug as pv
from privug.inference.question import Question
from privug.inference.sampling import draw
from privug.model.structure import flatten
from privug.prior.table import as_input
from privug.program.inputs import Arguments
from privug.program.outputs import settled
from test_corpus import same


def person(i):
    return pv.Row(
        name="Alice" if i == 0 else pv.Choice(["Bo", "Cy"]),
        age=pv.Choice([17, 25, 40]),
        pay=pv.Choice([0.5, 1.0, 4.0, None]),
        zip=pv.Choice(["2300", "2450", None]),
        ill=pv.Choice([True, False]),
    )


def table(rows):
    return pv.Records(rows, person).as_frame("pandas")


EXPRESSIONS = {
    "arithmetic": lambda df: ((df.age + 1) * 2 - df.age % 7).sum(),
    "reflected": lambda df: (100 - df.age).max() + (2 * df.age).min() + (1 / df.age).sum(),
    "power": lambda df: (df.age**2).mean(),
    "floor": lambda df: (df.age // 10).sum(),
    "methods of operators": lambda df: df.age.add(1).mul(2).sub(3).div(4).sum(),
    "logic": lambda df: ((df.age > 20) & ~df.ill | (df.name == "Alice")).sum(),
    "exclusive or": lambda df: (df.ill ^ (df.age > 20)).sum(),
    "comparison of columns": lambda df: (df.pay < df.age).sum(),
    "missing is unlike": lambda df: ((df.pay == 1).sum(), (df.pay != 1).sum(), (df.zip != "2300").sum()),
    "isin": lambda df: df.zip.isin(["2300", "9999"]).sum(),
    "between": lambda df: df.age.between(18, 40, inclusive="left").sum(),
    "clip": lambda df: df.age.clip(20, 30).sum(),
    "round": lambda df: (df.age / 7).round(1).sum(),
    "where": lambda df: df.age.where(df.ill, 0).sum(),
    "where missing": lambda df: df.age.where(df.ill).count(),
    "mask": lambda df: df.age.mask(df.age > 20, -1).min(),
    "fillna": lambda df: df.pay.fillna(-1).sum(),
    "fillna of a text": lambda df: (df.zip.fillna("none") == "none").sum(),
    "isna": lambda df: (df.pay.isna().sum(), df.zip.notna().mean()),
    "dropna": lambda df: len(df.dropna(subset=["pay"])) - len(df.zip.dropna()),
    "map": lambda df: df.zip.map({"2300": 1, "2450": 5}).sum(),
    "map of numbers": lambda df: df.age.map({17: "a", 25: "b", 40: "a"}).value_counts().to_dict(),
    "replace": lambda df: df.age.replace({17: 18}).sum(),
    "apply": lambda df: df.age.apply(lambda age: age * 2 if age > 20 else 0).sum(),
    "astype": lambda df: (df.ill.astype(int) * 3).sum() + df.age.astype(float).mean(),
    "largest column of a row": lambda df: (
        df[["age"]].assign(b=df.age * 2 - 30).idxmax(axis=1).value_counts().to_dict(),
        df[["age", "ill"]].astype(int).idxmin(axis="columns").tolist(),
    ),
    "numpy": lambda df: float(np.sqrt(df.age).sum()),
    "np.where": lambda df: pd.Series(np.where(df.age > 20, 1, 5)).sum(),
    "any and all": lambda df: (bool(df.ill.any()), bool((df.age > 16).all())),
    "quantiles": lambda df: (df.age.median(), df.age.quantile(0.3)),
    "deviations": lambda df: (df.age.std(), df.age.var(ddof=0), df.age.sem()),
    "skips missing": lambda df: (df.pay.sum(), df.pay.count(), df.pay.size, len(df.pay)),
    "mean where there is one": lambda df: df.pay.fillna(0).mean() if df.pay.isna().all() else df.pay.mean(),
    "nunique": lambda df: (df.age.nunique(), df.zip.nunique()),
    "value_counts": lambda df: df.zip.value_counts(),
    "value_counts normalized": lambda df: df.zip.value_counts(normalize=True),
    "count of one": lambda df: df.name.value_counts().get("Bo", 0),
    "mode": lambda df: df.age.mode()[0],
    "positions": lambda df: (df.age.iloc[0], df.age.iloc[-1], df.loc[1, "age"], df.at[0, "age"], df.iloc[1]["age"]),
    "argmax": lambda df: int(df.age.idxmax()),
    "one cell": lambda df: df.loc[df.name == "Alice", "age"].item(),
    "columns": lambda df: (df[["age", "ill"]].sum(), list(df.columns), "age" in df, df.shape[1]),
    "assign": lambda df: df.assign(double=df.age * 2, more=lambda d: d.double + 1)[["double", "more"]].sum(),
    "drop and rename": lambda df: list(df.drop(columns=["zip"]).rename(columns={"age": "years"}).columns),
    "query": lambda df: len(df.query("20 < age <= 40 or name == 'Alice'")),
    "query in": lambda df: len(df.query("age in [17, 25] and not ill")),
    "filter twice": lambda df: len(df[df.age > 20].query("ill")),
    "loc": lambda df: df.loc[df.age > 20, ["age"]].sum(),
    "groups": lambda df: df.groupby("zip").age.mean(),
    "groups of numbers": lambda df: df.groupby("age").size(),
    "groups of truth values": lambda df: df.groupby("ill")["age"].agg("max"),
    "groups with missing values": lambda df: df.groupby("name")["pay"].agg(["sum", "mean", "count", "size"]),
    "groups of two keys": lambda df: df.groupby(["zip", "ill"]).age.sum(),
    "groups of a computed key": lambda df: df.groupby(df.age > 20).size(),
    "several columns": lambda df: df.groupby("ill")[["age", "pay"]].sum(),
    "named aggregation": lambda df: df.groupby("ill").agg(n=("age", "count"), top=("age", "max")),
    "aggregation by functions": lambda df: df.groupby("ill")["age"].agg(lambda s: s.max() - s.min()),
    "aggregation by numpy": lambda df: df.groupby("ill")["age"].agg(np.max),
    "nunique by group": lambda df: df.groupby("ill").zip.nunique(),
    "transform": lambda df: (df.age - df.groupby("ill").age.transform("mean")).abs().sum(),
    "filter of groups": lambda df: df.groupby("name").filter(lambda g: len(g) >= 2).age.sum(),
    "get_group": lambda df: df.groupby("name").get_group("Alice").age.sum(),
    "number of groups": lambda df: (len(df.groupby("age")), df.groupby("age").ngroups),
    "largest group": lambda df: df.groupby("age").size().max(),
    "idxmax of groups": lambda df: df.groupby("age").size().idxmax(),
    "a filter of groups": lambda df: (lambda s: s[s >= 2])(df.groupby("age").size()),
    "groups as columns": lambda df: df.groupby(["ill", "age"]).size().unstack(fill_value=0),
    "shares": lambda df: df.groupby("age").size() / len(df),
    "shares of two": lambda df: df[df.ill].groupby("age").size() / df.groupby("age").size(),
    "crosstab": lambda df: pd.crosstab(df.age, df.ill),
    "pivot": lambda df: df.pivot_table(values="age", index="ill", columns="name", aggfunc="sum", fill_value=0),
    "pivot by one key": lambda df: df.pivot_table(index="ill", values="age", aggfunc="mean"),
    "pivot by two keys": lambda df: df.pivot_table(index=["ill", "name"], values=["age"], aggfunc="max", fill_value=0),
    "cut": lambda df: df.groupby(
        pd.cut(df.age, [0, 17, 30, 99], labels=["a", "b", "c"]), observed=False).size(),
    "cut to numbers": lambda df: pd.cut(df.age, [0, 17, 30], labels=False, right=False).sum(),
    "texts": lambda df: (df.name.str.upper() == "BO").sum() + df.name.str.len().sum(),
    "text slices": lambda df: df.zip.str[:2].value_counts(),
    "texts joined": lambda df: (df.name + "!").value_counts(),
    "rows": lambda df: sum(row.age for row in df.itertuples() if row.ill),
    "rows with labels": lambda df: sum(label * row["age"] for label, row in df.iterrows()),
    "row function": lambda df: df.apply(lambda row: row["age"] + row["ill"], axis=1).sum(),
    "column function": lambda df: df[["age"]].apply(lambda s: s.max() - s.min()),
    "lists": lambda df: (sum(df.age), max(df.age), sorted(df.age.tolist()), df.age.to_list()),
    "arrays": lambda df: df.age.to_numpy().mean() + df["age"].values.max() + np.array(df.age).min(),
    "records": lambda df: len([row for row in df.to_dict("records") if row["age"] > 20]),
    "describe": lambda df: df.age.describe(),
    "sorted": lambda df: df.age.sort_values().tolist(),
    "largest": lambda df: df.nlargest(2, "age")["age"].sum() + df.age.nsmallest(1).sum(),
    "first rows": lambda df: df.head(2).age.sum() + df.age.head(1).sum(),
    "cumulative": lambda df: df.age.cumsum().max(),
    "duplicates": lambda df: len(df[["age", "ill"]].drop_duplicates()),
    "empty": lambda df: df[df.age > 99].empty,
    "suppressed": lambda df: df.age.mean() if df.ill.sum() >= 2 else None,
    "isna of a number": lambda df: 0.0 if pd.isna(df[df.ill].age.mean()) else df[df.ill].age.mean(),
    "index": lambda df: (len(df.index), "Bo" in df.groupby("name").size().index),
    "merge": lambda df: df.merge(pd.DataFrame({"age": [17, 40], "band": ["a", "b"]}), on="age").groupby("band").size(),
    "left merge": lambda df: df.merge(pd.DataFrame({"age": [17], "x": [2]}), on="age", how="left").x.count(),
    "pipe": lambda df: df.pipe(lambda d: d.age.sum()),
    "agg of a frame": lambda df: df.agg({"age": "max", "ill": "sum"}),
    "counts of missing": lambda df: df.isna().sum(),
}  # fmt: skip


def differences(program, records, samples=40, seed=1):
    question = Question(program, {"df": records}, secret="df", exclude_errors=True)
    run = draw(question, None, samples=samples, seed=seed)
    wrong = []
    for rows, output in zip(run.quantities[0].values(), run.quantities[1].values(), strict=True):
        structure, leaves = flatten(as_input(records, rows))
        frame = next(Arguments(structure, tuple(leaves)).plain([], 1))
        frame["zip"] = frame["zip"].astype("str")  # also where all of these texts are missing
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            plain = settled(program(frame))
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
def test_an_expression_is_traced_and_gives_what_pandas_gives(name, rows):
    with pv.limited(native=False):
        lifting, wrong = differences(EXPRESSIONS[name], table(rows))
    assert wrong == []
    assert lifting.tier == "traced", str(lifting)


def brute_force(program, values, rows):
    """Return the probability of each output with the first row's age, by plain calls on all tables."""
    found = {}
    cells = list(itertools.product(*values.values()))
    for several in itertools.product(cells, repeat=rows):
        frame = pd.DataFrame([dict(zip(values, one, strict=True)) for one in several])
        key = (frame.age[0], repr(list(settled(program(frame)).items())))
        found[key] = found.get(key, 0) + len(cells) ** -rows
    return found


VALUES = {"age": [20, 40, 60], "zip": ["2300", "8000"]}


def small(rows):
    return pv.Records(rows, pv.Row(**{name: pv.Choice(listed) for name, listed in VALUES.items()})).as_frame("pandas")


@pytest.mark.parametrize(
    ("program", "seen"),
    [
        (lambda df: df[df.age >= 40].groupby("zip").age.mean(), {"2300": 50.0}),
        (lambda df: df.groupby("zip").size(), {"2300": 3}),
        (lambda df: df[df.age >= 40].zip.value_counts().to_dict(), {"2300": 1, "8000": 1}),
        (lambda df: df[df.age > 60].zip.value_counts(), {}),
    ],
)
def test_groups_that_may_be_absent_are_observed_exactly(program, seen):
    attack = pv.Attack(program, prior={"df": small(3)}, secret=lambda df: df.age[0])
    result = attack.run(pv.equals(seen))
    assert attack.lifting.tier == "traced"
    expected = {age: p for (age, out), p in brute_force(program, VALUES, 3).items() if out == repr(list(seen.items()))}
    total = sum(expected.values())
    found = result.posterior.distribution()
    assert {age: one.value for age, one in found.items()} == {
        age: pytest.approx(p / total) for age, p in expected.items()
    }
    assert result.diagnostics.evidence.value == pytest.approx(total)


def test_predicates_and_parts_see_groups_that_may_be_absent():
    attack = pv.Attack(lambda df: df.groupby("zip").size(), prior={"df": small(3)}, secret=lambda df: df.age[0])
    assert attack.run({"2300": pv.between(1, 2)}).diagnostics.evidence.value == pytest.approx(6 / 8)
    assert attack.run(pv.such_that(lambda out: "2300" not in out)).diagnostics.evidence.value == pytest.approx(1 / 8)
    assert attack.run(pv.such_that(lambda out: len(out) == 2)).diagnostics.evidence.value == pytest.approx(6 / 8)
    assert len(attack.run().prediction.distribution()) == 4


def filtered_mean(df: pd.DataFrame):
    return df[df.age >= 40].groupby("zip")["income"].mean().get("2300")


def filtered_mean_in_a_loop(rows):
    found = [row.income for row in rows if row.age >= 40 and row.zip == "2300"]
    return sum(found) / len(found) if found else None


def test_a_filter_and_a_group_by_over_thirty_rows_are_exact_as_a_loop_is():
    def row(i):
        return pv.Row(
            age=pv.DiscreteUniform(18, 80), income=pv.Choice([1, 2, 3, 4]), zip=pv.Choice(["2300", "2450", "8000"])
        )

    seen = pv.near(3.21, within=0.1)
    frame = pv.Attack(filtered_mean, prior={"df": pv.Records(30, row)}, secret=lambda df: df.income[0]).run(seen)
    loop = pv.Attack(
        filtered_mean_in_a_loop, prior={"rows": pv.Records(30, row)}, secret=lambda rows: rows[0].income
    ).run(seen, engine="exact")
    assert frame.engine.startswith("exact")
    assert frame.diagnostics.evidence.value == pytest.approx(loop.diagnostics.evidence.value, rel=1e-9)
    for income, probability in loop.posterior.distribution().items():
        assert frame.posterior.distribution()[income].value == pytest.approx(probability.value, rel=1e-9)


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (lambda df: df.rolling(3).mean(), "DataFrame.rolling at line"),
        (lambda df: df.age.ewm(2), "Series.ewm at line"),
        (lambda df: df.groupby("zip").resample("D"), "GroupBy.resample at line"),
        (lambda df: df.pivot_table(values="age", index="zip", margins=True), "pivot_table() by anything but"),
        (lambda df: pd.get_dummies(df.zip), "pd.get_dummies at line"),
        (lambda df: df.zip.str.extract("(.)"), "Series.str.extract at line"),
        (lambda df: df[df.age > 20], "a random number of rows as output"),
    ],
)
def test_what_is_not_known_is_refused_by_name(program, reason):
    assert reason in str(pv.explain(program, df=table(3)))


def suppressed_means(df):
    published = {}
    for zip_code, part in df.groupby("zip"):
        if len(part) >= 2:
            published[zip_code] = part.age.mean()
    return published


def last_of_groups(df):
    size = 0
    for _, part in df.groupby("zip"):
        size = len(part)
    return size


def test_loops_over_groups_are_traced_as_far_as_rounds_stand_apart():
    lifting, wrong = differences(suppressed_means, table(9))
    assert (lifting.tier, wrong) == ("traced", [])
    lifting, wrong = differences(last_of_groups, table(9))
    assert (lifting.tier, wrong) == ("python", [])


def test_frames_of_random_size_are_traced_empty_ones_too():
    prior = pv.Records(pv.DiscreteUniform(0, 12), pv.Row(zip=pv.Choice(["2300", "8000"]), age=pv.Choice([1, 2])))
    attack = pv.Attack(
        lambda df: df.groupby("zip").size(), prior={"df": prior.as_frame("pandas")}, secret=lambda df: len(df)
    )
    assert attack.run(pv.equals({})).diagnostics.evidence.value == pytest.approx(1 / 13)
    assert attack.run(pv.equals({"2300": 2})).diagnostics.evidence.value == pytest.approx(1 / 13 / 4)
    assert attack.run(pv.equals({"2300": 2, "8000": 1})).diagnostics.evidence.value == pytest.approx(1 / 13 * 3 / 8)
    assert len(attack.run().prediction.distribution()) == 91
    assert attack.lifting.tier == "traced"
