"""What users are told where a program fails: columns that are not there, and inputs to leave out."""

import math
import pickle

import pandas as pd
import polars as pl
import pytest

import privug as pv
from privug.model.table import NoColumnKey

TABLE = pv.Records(2, lambda i: pv.Row(age=pv.DiscreteUniform(20, 21), ill=pv.Bernoulli(0.2)))
ADVICE = 'on_error="exclude"'


def total(records):
    return sum(row.age for row in records)


def misspelt(records):
    return sum(row.agee for row in records)


def misspelt_where_somebody_is_ill(records):
    return records[0]["agee"] if records[0].ill else 0


def misspelt_in_pandas(records: pd.DataFrame):
    return records.groupby("ill")["agee"].mean()


def misspelt_in_polars(records: pl.DataFrame):
    return records["agee"].mean()


@pytest.mark.parametrize("program", [misspelt, misspelt_where_somebody_is_ill, misspelt_in_pandas, misspelt_in_polars])
def test_a_column_that_is_not_there(program):
    with pytest.raises(pv.ProgramError, match="age, ill; did you mean 'age'") as found:
        pv.Attack(program, {"records": TABLE}, secret=lambda records: records["ill"][0]).run()
    assert ADVICE not in str(found.value)


@pytest.mark.parametrize("secret", [lambda records: records[0].agee, lambda records: records["agee"][0]])
def test_a_secret_that_is_not_there(secret):
    with pytest.raises(pv.ProgramError, match=r"the secret failed with .*did you mean 'age'") as found:
        pv.Attack(total, {"records": TABLE}, secret=secret).run()
    assert ADVICE not in str(found.value)
    with pytest.raises(pv.ProgramError, match="the query failed with AttributeError: there is no column 'agee'"):
        pv.Attack(total, {"records": TABLE}, "records").run().belief(lambda records: records[0].agee)


def who_is_ill(records: pd.DataFrame):
    return pd.crosstab(records["age"], records["ill"])[1].sum()  # a column that some inputs have


@pytest.mark.parametrize("program", [who_is_ill, lambda records: {20: 1}[int(f"{records['age'][0]}")]])
def test_inputs_that_are_to_blame_are_left_out(program):
    attack = pv.Attack(program, {"records": TABLE}, secret=lambda records: records["ill"][0])
    with pytest.raises(pv.ProgramError, match="KeyError") as found:
        attack.run(engine="sample", samples=100, seed=1)
    assert ADVICE in str(found.value)
    assert "columns" not in str(found.value)


def test_an_error_that_comes_of_no_input():
    with pytest.raises(pv.ProgramError, match="It fails on every input that was tried") as found:
        pv.Attack(lambda x: x + undefined, {"x": pv.Normal(0, sd=1)}, "x").run()  # noqa: F821
    assert ADVICE not in str(found.value)


def test_rows_raise_what_python_does():
    row = pv.Row(age=1, sex="f")
    assert getattr(row, "weight", None) is None
    assert not hasattr(row, "__array__")
    with pytest.raises(KeyError) as found:
        row["ages"]
    assert (
        str(pickle.loads(pickle.dumps(found.value)))
        == "there is no column 'ages'; there are age, sex; did you mean 'age'?"
    )
    assert isinstance(found.value, NoColumnKey)


GAPS = {"df": pv.Records(2, lambda i: pv.Row(age=pv.Choice([20, 30, None])))}


def known_ages(df: pd.DataFrame):
    return df["age"].count()


def first_age(df: pd.DataFrame):
    return df["age"][0]


@pytest.mark.parametrize("engine", ["auto", "sample"])
def test_what_is_missing_is_told_of_the_secret_or_the_output(engine):
    advice = r"is NaN: missing(?s:.*)on the input df = (?s:.*)NaN(?s:.*)Write None if pd.isna\(x\) else x"
    for secret in (lambda df: df["age"][0], lambda df: float(str(df["age"][0]))):
        with pytest.raises(pv.ProgramError, match=f"the secret {advice}"):
            pv.Attack(known_ages, GAPS, secret).run(engine=engine, samples=50, seed=1)
    with pytest.raises(pv.ProgramError, match=f"the output {advice}"):
        pv.Attack(first_age, GAPS, lambda df: df["age"].count()).run(engine=engine, samples=50, seed=1)


def test_what_is_missing_may_be_a_value_of_its_own():
    attack = pv.Attack(known_ages, GAPS, secret=lambda df: None if pd.isna(df["age"][0]) else df["age"][0])
    result = attack.run()
    assert {secret: p.value for secret, p in result.prior.distribution().items()} == pytest.approx(
        {20.0: 1 / 3, 30.0: 1 / 3, None: 1 / 3}
    )
    counts, others = [1 / 9, 4 / 9, 4 / 9], [1 / 3, 2 / 3]
    entropies = [-sum(p * math.log2(p) for p in some) for some in (counts, others)]
    assert pv.leakage.mutual_information(result.joint).value == pytest.approx(entropies[0] - entropies[1], abs=1e-12)
