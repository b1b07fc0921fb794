"""Tables handed to programs as data frames: by annotation or as said, with the types of a file that was read."""

import datetime
import io
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest

import privug as pv
from privug.errors import PriorError, QuestionError
from privug.model.plan import Plan
from privug.model.structure import flatten
from privug.prior.table import as_input
from privug.program.inputs import Arguments

DAYS = [datetime.date(2020, 1, 31), datetime.date(2021, 6, 1)]


def person(i):
    return pv.Row(
        name="Alice" if i == 0 else "Bob",
        age=pv.DiscreteUniform(18, 90),
        income=pv.Normal(5, sd=1),
        children=pv.Choice([1, 2, None]),
        zip=pv.Choice(["2300", "2450", None]),
        ill=pv.Choice([True, False]),
        owns=pv.Choice([True, False, None]),
        seen=pv.Choice(DAYS),
    )


def tables(records, form, made, samples=5, seed=1):
    """Return samples of a table, in a form and as rows."""
    found = []
    for value in (as_input(records.as_frame(form), made(records)), made(records)):
        structure, leaves = flatten(value)
        arguments = Arguments(structure, tuple(leaves))
        arrays = Plan(arguments.nodes).run(samples, np.random.default_rng(seed))
        found.append(list(arguments.plain(arrays, samples)))
    return zip(*found, strict=True)


@pytest.mark.parametrize("rows", [1, 3, 12])
@pytest.mark.parametrize("made", [pv.Records.table, pv.Records.plated])
def test_a_pandas_frame_is_what_reading_a_file_of_the_rows_gives(rows, made):
    for frame, plain in tables(pv.Records(rows, person), "pandas", made):
        written = pd.DataFrame([row._asdict() for row in plain])
        read = pd.read_csv(io.StringIO(written.to_csv(index=False)), parse_dates=["seen"], dtype={"zip": "str"})
        read = read.astype({"children": "float64", "owns": "object"})  # as if something were missing in every sample
        read["seen"] = read["seen"].astype(frame["seen"].dtype)
        pd.testing.assert_frame_equal(frame, read)


@pytest.mark.parametrize("made", [pv.Records.table, pv.Records.plated])
def test_a_polars_frame_holds_the_rows(made):
    for frame, plain in tables(pv.Records(12, person), "polars", made):
        assert frame.rows(named=True) == [row._asdict() for row in plain]
        assert frame.schema["children"] == pl.Int64
        assert frame.schema["seen"] == pl.Date


@pytest.mark.parametrize("form", ["columns", "structured"])
def test_columns_and_structured_arrays_hold_the_rows(form):
    for held, plain in tables(pv.Records(9, person), form, pv.Records.plated):
        for name in ("name", "age", "income", "zip", "ill", "seen"):
            assert held[name].tolist() == [row[name] for row in plain]
        expected = [np.nan if row.children is None else row.children for row in plain]
        assert np.array_equal(held["children"], expected, equal_nan=True)


def mean_age(df: pd.DataFrame):
    return df["age"].mean()


def mean_age_of_text(df: "pd.DataFrame | None"):
    return df["age"].mean()


def mean_age_unresolved(df: "missing.Thing | pandas.DataFrame"):  # noqa: F821
    return df["age"].mean()


def mean_age_in_polars(df: pl.DataFrame):
    return df["age"].mean()


def mean_age_of_columns(df):
    return df["age"].mean()


PEOPLE = pv.Row(age=pv.Choice([20, 40]), name=pv.Choice(["Ann", "Bo"]))


@pytest.mark.parametrize(
    ("program", "form"),
    [
        (mean_age, None),
        (mean_age_of_text, None),
        (mean_age_unresolved, None),
        (mean_age_in_polars, None),
        (mean_age_of_columns, "pandas"),
        (mean_age_of_columns, "polars"),
        (mean_age_of_columns, "columns"),
        (mean_age_of_columns, "structured"),
    ],
)
def test_every_form_gives_the_posterior_of_rows(program, form):
    records = pv.Records(3, PEOPLE)
    attack = pv.Attack(
        program,
        prior={"df": records if form is None else records.as_frame(form)},
        secret=lambda df: df["age"][0],
    )
    result = attack.run(pv.near(26.67, within=0.1))
    assert result.posterior.distribution()[40].value == pytest.approx(1 / 3)
    assert "3 rows" in str(result)


def test_secret_questions_facts_and_queries_are_written_on_the_frame():
    attack = pv.Attack(
        mean_age,
        prior={"df": pv.Records(2, lambda i: pv.Row(name=["Alice", "Bo"][i], age=pv.Choice([20, 30, 40])))},
        secret=lambda df: df.loc[df.name == "Alice", "age"].item(),
        assume=lambda df: bool(df.age.is_monotonic_increasing),
        questions={"is 20": lambda age: age == 20},
    )
    result = attack.run(pv.equals(30.0))
    assert result.posterior.probability(lambda age: age == 20).value == pytest.approx(0.5)
    assert result.belief(lambda df: df.age[1]).mean().value == pytest.approx(35)
    assert result.belief(lambda df, output: output - df.age.min()).mean().value == pytest.approx(5)


def test_a_secret_by_name_is_the_table_as_rows():
    attack = pv.Attack(mean_age, prior={"df": pv.Records(1, pv.Row(age=pv.Choice([20, 40])))}, secret="df")
    assert attack.run(pv.equals(20.0)).posterior.probability(lambda df: df[0].age == 20).value == pytest.approx(1)


def test_tables_of_random_size_may_be_empty_frames():
    attack = pv.Attack(
        lambda df: (len(df), list(df.columns)),
        prior={"df": pv.Records(pv.DiscreteUniform(0, 1), PEOPLE).as_frame("pandas")},
        secret=lambda df: len(df),
    )
    assert set(attack.run().prediction.distribution()) == {(0, ("age", "name")), (1, ("age", "name"))}


def test_programs_may_write_into_their_frames():
    def program(df):
        df["age"] = 0
        df.loc[0, "name"] = "nobody"
        return df["age"].sum() + (df["name"] == "Ann").sum()

    attack = pv.Attack(program, prior={"df": pv.Records(2, PEOPLE).as_frame("pandas")}, secret=lambda df: df.age[0])
    result = attack.run(engine="exact")
    assert result.prior.mean().value == pytest.approx(30)
    assert result.prediction.mean().value == pytest.approx(0.5)


def test_a_lifted_function_gets_frames():
    assert pv.lift(mean_age)(pv.Records(2, PEOPLE)).node is not None
    lifted = pv.lift(mean_age)(pv.Records(pv.DiscreteUniform(1, 2), PEOPLE))
    assert lifted.node is not None
    assert pv.explain(mean_age, df=pv.Records(2, PEOPLE)).tier in ("python", "traced")


def test_a_data_set_goes_through_unchanged():
    data = pd.DataFrame({"age": [30, 41], "zip": ["2300", "2450"], "ill": [True, False], "share": [0.5, 1.0]})
    records = pv.Records.knows_all_but(data, 0, unknown=["age"], smoothing=1, values={"age": [30]}).as_frame("pandas")
    (frame, _), *_ = tables(records, "pandas", pv.Records.table)
    pd.testing.assert_series_equal(frame.dtypes, data.dtypes)
    pd.testing.assert_frame_equal(frame.drop(columns="age"), data.drop(columns="age"))
    assert frame.age[1] == 41
    assert frame.age[0] in (30, 41)


def test_missing_cells_of_a_data_set_are_kept():
    data = pd.DataFrame({"age": [30, None, 50], "zip": ["2300", None, "2450"], "day": pd.to_datetime([*DAYS, None])})
    records = pv.Records.from_frame(data, missing="keep", model="rows")
    seen = {tuple(plain[0]) for _, plain in tables(records, "pandas", pv.Records.table, samples=60)}
    assert {row[0] for row in seen} == {30.0, None, 50.0}
    for frame, _ in tables(records, "pandas", pv.Records.table):
        assert dict(frame.dtypes.astype(str)) | {"day": ""} == dict(data.dtypes.astype(str)) | {"day": ""}
        assert frame["day"].dtype.kind == "M"


def test_what_cannot_be_a_frame_is_told():
    records = pv.Records(2, PEOPLE)
    with pytest.raises(PriorError, match="'pandas', 'polars', 'columns', 'structured', not 'arrow'"):
        records.as_frame("arrow")
    pair = pv.Records(2, lambda i: pv.Row(place=(pv.Uniform(0, 1), 2)))
    with pytest.raises(PriorError, match="single values"):
        pv.Attack(mean_age, prior={"df": pair}, secret=lambda df: 1).run()
    with pytest.raises(QuestionError, match="a batched program gets tables as they are"):
        pv.Attack(pv.batched(mean_age_of_columns), prior={"df": records.as_frame("pandas")}, secret=lambda df: 1)
    with pytest.raises(PriorError, match="write None"):
        pv.Choice([1.0, float("nan")])


def test_privug_does_not_import_the_libraries_of_frames():
    code = "import sys, privug; assert not {'pandas', 'polars'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
