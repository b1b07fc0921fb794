"""Joins of two random frames: on every input what pandas gives."""

import pandas as pd
import pytest

import privug as pv
from privug.inference.question import Question
from privug.inference.sampling import draw
from test_corpus import same


def people():
    return pv.Records(2, lambda i: pv.Row(zip=pv.Choice(["a", "b"]), age=pv.Choice([20, 50])))


def visits():
    return pv.Records(
        2, lambda i: pv.Row(zip=pv.Choice(["a", "b", "c"]), cost=pv.Choice([1, 2]), age=pv.Choice([7, 8]))
    )


def inner(people: pd.DataFrame, visits: pd.DataFrame):
    joined = people.merge(visits[["zip", "cost"]], on="zip")
    return len(joined), joined.cost.sum(), (joined.cost * joined.age).sum()


def left(people: pd.DataFrame, visits: pd.DataFrame):
    joined = people.merge(visits[["zip", "cost"]], on="zip", how="left")
    return len(joined), joined.cost.isna().sum(), joined.cost.sum(), joined.age.sum()


def with_suffixes(people: pd.DataFrame, visits: pd.DataFrame):
    joined = pd.merge(people, visits, on="zip")
    return joined.age_x.sum(), joined.age_y.sum()


def by_group(people: pd.DataFrame, visits: pd.DataFrame):
    return people.merge(visits[["zip", "cost"]], how="left", on="zip").groupby("zip").cost.count()


def filtered_first(people: pd.DataFrame, visits: pd.DataFrame):
    return people[people.age > 30].merge(visits[visits.cost == 2][["zip", "cost"]], on="zip").shape[0]


def with_totals(people: pd.DataFrame, visits: pd.DataFrame):
    totals = visits.groupby("zip", as_index=False).cost.sum()
    return people.merge(totals, on="zip", how="left").cost.fillna(0).tolist()


def labels_after_a_join(people: pd.DataFrame, visits: pd.DataFrame):
    return people.merge(visits[["zip", "cost"]], on="zip", how="left").loc[0, "age"]


def prior():
    return {"people": people(), "visits": visits()}


def frames(rows, names):
    return pd.DataFrame([dict(zip(names, row, strict=True)) for row in rows], columns=names)


@pytest.mark.parametrize("program", [inner, left, with_suffixes, by_group, filtered_first, with_totals])
def test_joins_of_random_frames_are_traced(program):
    question = Question(program, prior(), secret=["people", "visits"])
    with pv.limited(native=False):
        assert question.case().lifting.tier == "traced", str(question.case().lifting)
    run = draw(question, None, samples=300, seed=1)
    for (one, two), output in zip(run.quantities[0].values(), run.quantities[1].values(), strict=True):
        expected = program(frames(one, ["zip", "age"]), frames(two, ["zip", "cost", "age"]))
        plain = expected.to_dict() if isinstance(expected, pd.Series) else expected
        assert same(plain, output), (one, two, plain, output)


def test_labels_that_a_join_counts_anew_are_not_known():
    question = Question(labels_after_a_join, prior(), secret=["people"])
    with pv.limited(native=False):
        assert question.case().lifting.reason.startswith("the labels of rows in a random order")
