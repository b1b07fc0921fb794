"""Plain tables: counting, the search for quasi-identifiers, the three risks, and linking."""

from collections import Counter
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
import polars as pl
import pytest

import privug as pv
from privug import reidentification as reid


@dataclass
class Person:
    zip: int
    sex: str
    ill: bool


PEOPLE = [
    {"zip": 1, "sex": "f", "ill": True}, {"zip": 1, "sex": "f", "ill": True}, {"zip": 1, "sex": "m", "ill": False},
    {"zip": 2, "sex": "f", "ill": True}, {"zip": 2, "sex": "f", "ill": False}, {"zip": 3, "sex": "m", "ill": False},
]  # fmt: skip


@pytest.mark.parametrize(
    "table",
    [
        PEOPLE,
        [pv.Row(**row) for row in PEOPLE],
        [Person(**row) for row in PEOPLE],
        pd.DataFrame(PEOPLE),
        pl.DataFrame(PEOPLE),
    ],
    ids=["dicts", "rows", "dataclasses", "pandas", "polars"],
)
def test_counting(table):
    columns = ["zip", "sex"]
    assert reid.uniqueness(table, columns).value == pytest.approx(2 / 6)
    assert reid.uniqueness(table, columns).method == "exact, counted in 6 rows"
    assert reid.positive_disclosure(table, columns, "ill").value == pytest.approx(4 / 6)
    assert {n: p.value for n, p in reid.matching_rows(table, columns).distribution().items()} == {
        2: pytest.approx(4 / 6), 1: pytest.approx(2 / 6),
    }  # fmt: skip
    risks = reid.three_risks(table, columns, "ill")
    assert risks.linkability.value == pytest.approx(4 / 6)
    assert risks.inference.value == pytest.approx((1 + 1 + 1 + 0.5 + 0.5 + 1) / 6)
    assert risks.inference_before.value == pytest.approx(0.5)


def test_one_row_and_people_of_whom_something_is_known():
    assert reid.matching_rows(PEOPLE, "zip", person=0).distribution().keys() == {3}
    assert reid.uniqueness(PEOPLE, "zip", person=-1).value == 1
    assert reid.uniqueness(PEOPLE, "zip", person={"sex": "m"}).value == 0.5
    assert reid.sharing_rows(PEOPLE, "zip", "ill", matching=3).distribution()[2].value == pytest.approx(2 / 3)
    posterior = reid.secret_posterior(PEOPLE, "zip", "ill", {True: 2, False: 1})
    assert posterior.distribution()[True].value == pytest.approx(2 / 3)
    with pytest.raises(pv.ImpossibleObservation):
        reid.uniqueness(PEOPLE, "zip", person={"zip": 9})
    with pytest.raises(pv.ImpossibleObservation):
        reid.secret_posterior(PEOPLE, "zip", "ill", {True: 7})


def test_missing_values_look_alike():
    table = [{"zip": float("nan")}, {"zip": float("nan")}, {"zip": 1.0}]
    assert reid.uniqueness(table, "zip").value == pytest.approx(1 / 3)


@pytest.mark.parametrize("table", [[], [1, 2], "people", {"zip": 1}])
def test_what_is_no_table(table):
    with pytest.raises(pv.ArgumentError, match="people: No such file" if table == "people" else "records must"):
        reid.uniqueness(table, "zip")


def test_cells_that_are_no_labels():
    with pytest.raises(pv.ArgumentError, match="column 'zip' must hold"):
        reid.uniqueness([{"zip": [1]}], "zip")


def test_search_agrees_with_counting_every_set():
    rng = np.random.default_rng(2)
    table = pd.DataFrame({f"c{k}": rng.integers(0, 2 + k, 200) for k in range(5)})
    found = reid.quasi_identifiers(table)
    assert len(found) == 31
    for size in range(1, 6):
        for columns in combinations(table.columns, size):
            counts = Counter(map(tuple, table[list(columns)].to_numpy().tolist()))
            unique = sum(count == 1 for count in counts.values()) / 200
            assert found.of(*columns).unique.value == pytest.approx(unique, abs=1e-12)
            matching = sum(count**2 for count in counts.values()) / 200
            assert found.of(*columns).matching.value == pytest.approx(matching, abs=1e-9)


def test_search_of_a_prior_agrees_with_single_questions_and_ranks():
    row = pv.Row(
        zip=pv.Choice(range(200)), day=pv.DiscreteUniform(0, 99), sex=pv.Choice(["f", "m"]), ill=pv.Bernoulli(0.2)
    )
    table = pv.Records(1000, row)
    found = reid.quasi_identifiers(table, secret="ill")
    assert [one.columns for one in found[:3]] == [("zip", "day", "sex"), ("zip", "day"), ("zip", "sex")]
    for one in found:
        assert one.unique.value == pytest.approx(reid.uniqueness(table, one.columns).value, abs=1e-12)
        assert one.disclosed.value == pytest.approx(
            reid.positive_disclosure(table, one.columns, "ill").value, abs=1e-12
        )
    assert [one.columns for one in found.smallest(0.9)] == [("zip", "day")]
    assert [one.columns for one in found.smallest(0.97)] == [("zip", "day", "sex")]
    assert found.smallest(0.99) == []


def test_more_columns_never_make_a_person_less_unique():
    rng = np.random.default_rng(3)
    row = {f"c{k}": pv.Choice(range(4), p=rng.dirichlet(np.ones(4))) for k in range(4)}
    found = reid.quasi_identifiers(pv.Records(200, pv.Row(**row)))
    for one in found:
        for other in found:
            if set(one.columns) < set(other.columns):
                assert one.unique.value <= other.unique.value + 1e-12
                assert one.matching.value >= other.matching.value - 1e-12


def test_search_refuses_too_many_sets_and_bad_limits():
    table = [{f"c{k}": 1 for k in range(30)}]
    with pytest.raises(pv.ArgumentError, match="largest="):
        reid.quasi_identifiers(table)
    assert len(reid.quasi_identifiers(table, largest=2)) == 30 + 435
    with pytest.raises(pv.ArgumentError, match="largest must be"):
        reid.quasi_identifiers(table, largest=0)
    with pytest.raises(pv.ArgumentError, match="not looked at"):
        reid.quasi_identifiers(table, largest=1).of("c1", "c2")
    with pytest.raises(pv.ArgumentError, match="probability"):
        reid.quasi_identifiers(table, largest=1).smallest(0)


def test_search_as_frame():
    frame = reid.quasi_identifiers(PEOPLE, secret="ill").to_frame()
    assert list(frame.columns) == [
        "columns",
        "unique",
        "unique_low",
        "unique_high",
        "matching_rows",
        "disclosed",
        "method",
    ]
    assert len(frame) == 3


def test_risks_as_text_and_dict():
    risks = reid.three_risks(PEOPLE, ["zip"], "ill")
    assert "singling out" in str(risks)
    assert risks.to_dict()["singling_out"]["value"] == pytest.approx(1 / 6)


RELEASED = [
    {"zip": "2300", "birthday": "15.06.1954", "sex": "F", "diagnosis": "ill"},
    {"zip": "2305", "birthday": "15.06.1954", "sex": "M", "diagnosis": "healthy"},
    {"zip": "2300", "birthday": "09.10.1925", "sex": "F", "diagnosis": "healthy"},
    {"zip": "2310", "birthday": "01.01.2000", "sex": "M", "diagnosis": "ill"},
]
PUBLIC = [
    {"name": "Alice", "zip": "2300", "birthday": "15.06.1954", "sex": "F"},
    {"name": "Eve", "zip": "9999", "birthday": "01.01.1990", "sex": "F"},
]


def test_linking_finds_alice():
    linked = reid.link(RELEASED, PUBLIC, ["zip", "birthday", "sex"], "diagnosis")
    assert linked["Alice"].disclosed == "ill"
    assert linked["Alice"].is_found
    assert linked["Alice"].probability.value == 1
    assert linked["Eve"].secret is None
    assert linked["Eve"].probability.value == 0
    assert [link.person["name"] for link in linked.found] == ["Alice"]
    with pytest.raises(KeyError):
        linked["Bob"]


def test_linking_on_fewer_columns_leaves_doubt():
    linked = reid.link(RELEASED, PUBLIC, ["zip", "sex"], "diagnosis")
    alice = linked["Alice"]
    assert alice.matching == 2
    assert alice.probability.value == 0.5
    assert alice.disclosed is None
    assert {value: share.value for value, share in alice.secret.distribution().items()} == {"ill": 0.5, "healthy": 0.5}


def test_more_people_than_rows_leave_doubt_whose_row_it_is():
    twins = [{**PUBLIC[0], "name": name} for name in ("Alice", "Anna")]
    linked = reid.link(RELEASED, twins, ["zip", "birthday", "sex"], "diagnosis")
    assert linked["Anna"].probability.value == 0.5
    assert not linked["Anna"].is_found
    assert linked["Anna"].disclosed is None


def test_linking_says_what_is_missing():
    with pytest.raises(pv.ArgumentError, match="no column 'city'"):
        reid.link(RELEASED, PUBLIC, ["city"], "diagnosis")
    with pytest.raises(pv.ArgumentError, match="at least one row"):
        reid.link(RELEASED, [], ["zip"], "diagnosis")


def test_a_csv_file_is_a_table(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("zip,sex,ill\n0230,f,yes\n0230,f,no\n0230,m,no\n2400,m,yes\n")
    listed = [dict(zip(("zip", "sex", "ill"), line.split(","), strict=True)) for line in path.read_text().split()[1:]]
    for given in (path, str(path)):
        found = reid.quasi_identifiers(given, secret="ill")
        assert found.to_dict() == reid.quasi_identifiers(listed, secret="ill").to_dict()
        assert reid.three_risks(given, ["zip", "sex"], "ill").to_dict() == (
            reid.three_risks(listed, ["zip", "sex"], "ill").to_dict()
        )
    public = tmp_path / "public.csv"
    public.write_text("name,zip\nBob,2400\n")
    assert reid.link(path, public, "zip", "ill")["Bob"].disclosed == "yes"
    # Zips are text in the one file, because some begin with a zero, so they are in the other: 2400 is not "2400".
    with pytest.raises(pv.ArgumentError, match="link: column 'zip' is text in one table and numbers in the other"):
        reid.link(path, [{"name": "Bob", "zip": 2400}], "zip", "ill")
    with pytest.raises(pv.ArgumentError, match=r"missing\.csv: No such file"):
        reid.uniqueness(tmp_path / "missing.csv", "zip")


def test_the_unique_rows_are_listed():
    found = reid.unique_rows(pd.DataFrame(PEOPLE), ["zip", "sex"])
    assert found.to_dict() == [{"position": 2, "zip": 1, "sex": "m"}, {"position": 5, "zip": 3, "sex": "m"}]
    assert reid.unique_rows(PEOPLE, ["zip", "sex"], person={"zip": 3}).positions == [5]
    assert reid.three_risks(PEOPLE, ["zip", "sex"], "ill").unique_rows.positions == [2, 5]
    assert reid.quasi_identifiers(PEOPLE, secret="ill").unique_rows("sex", "zip").positions == [2, 5]
    many = reid.unique_rows([{"id": k} for k in range(1_000)], "id")
    assert len(many) == 1_000
    assert str(many).splitlines()[-2:] == ["  row 9: id 9", "  ... and 990 more"]


def test_a_prior_has_no_rows_to_list():
    table = pv.Records(3, pv.Row(zip=pv.Choice([1, 2]), ill=pv.Bernoulli(0.5)))
    assert reid.three_risks(table, "zip", "ill").unique_rows is None
    for ask in (lambda: reid.unique_rows(table, "zip"), lambda: reid.quasi_identifiers(table).unique_rows("zip")):
        with pytest.raises(pv.ArgumentError, match="no rows yet"):
            ask()
