"""Rows and tables of records behave as a program expects a list of rows to behave."""

import copy
import gc
import math
import pickle

import numpy as np
import pytest
from scipy import stats

import privug as pv
from privug.model.batch import Column
from privug.model.plan import Plan
from privug.model.table import Table

DRAWS = 20_000
STANDARD_ERRORS = 5


def draws(*variables: pv.RandomVariable, samples: int = DRAWS) -> list[np.ndarray]:
    return Plan([variable.node for variable in variables]).run(samples, np.random.default_rng(3))


def person(i: int) -> pv.Row:
    return pv.Row(name=pv.Choice(["Ann", "Bob"]) if i else "Alice", age=pv.Normal(10.0 * i, sd=1))


def test_row_is_a_tuple_with_names():
    row = pv.Row(name="Ann", age=42)
    name, age = row
    assert (name, age) == row == ("Ann", 42)
    assert row.age == row["age"] == row[1] == row[-1] == 42
    assert len(row) == 2
    assert row.keys() == ("name", "age")
    assert row[:1] == ("Ann",)
    assert "Ann" in row
    assert repr(row) == "Row(name='Ann', age=42)"


def test_row_errors_are_those_of_python():
    row = pv.Row(age=42)
    with pytest.raises(KeyError):
        row["name"]
    with pytest.raises(AttributeError):
        row.name  # noqa: B018
    with pytest.raises(IndexError):
        row[1]
    with pytest.raises(AttributeError):
        row.age = 3


@pytest.mark.parametrize("column", ["cls", "self", "count", "index", "two words", "class"])
def test_row_columns_may_have_any_name(column):
    row = pv.Row(**{column: 5, "other": 6})
    assert row[column] == getattr(row, column) == 5
    assert row.keys() == (column, "other")


@pytest.mark.parametrize("column", ["keys", "_fields", "_asdict"])
def test_row_columns_never_hide_what_a_row_offers(column):
    row = pv.Row(**{column: 5})
    assert row[column] == 5
    assert row.keys() == (column,)


def test_row_pickles_and_copies():
    row = pv.Row(name="Ann", age=42, tags=("x", pv.Row(inner=1)))
    for other in (pickle.loads(pickle.dumps(row)), copy.copy(row), copy.deepcopy(row)):
        assert other == row
        assert other.keys() == row.keys()
        assert other.tags[1].inner == 1
        assert type(other) is type(row)


def test_table_pickles():
    table = Table([pv.Row(a=1), pv.Row(a=2)])
    other = pickle.loads(pickle.dumps(table))
    assert other == table
    assert other.a.tolist() == [1, 2]


def test_plain_table_columns():
    table = Table([pv.Row(name="Ann", age=42, tags=[1]), pv.Row(name="Bob", age=25, tags=[2])])
    assert table.age.mean() == 33.5
    assert table["name"].tolist() == ["Ann", "Bob"]
    assert list(table.tags) == [[1], [2]]
    assert table[1:].age.tolist() == [25]
    with pytest.raises(AttributeError, match="no column 'size'; there are name, age"):
        table.size  # noqa: B018
    with pytest.raises(KeyError):
        table["size"]


def test_records_are_a_list_of_rows():
    records = pv.Records(4, person)
    assert len(records) == 4
    rows = list(records)
    assert all(isinstance(row, pv.Row) for row in rows)
    assert records[0].name == "Alice"
    assert [row.age.node for row in records] == [row.age.node for row in rows]
    assert records[-1].age.node is rows[3].age.node
    assert [row.age.node for row in records[1:3]] == [rows[1].age.node, rows[2].age.node]
    assert [row.age.node for row in records[::-2]] == [rows[3].age.node, rows[1].age.node]
    with pytest.raises(IndexError):
        records[4]
    assert records.is_fixed


def test_records_give_the_same_rows_again():
    records = pv.Records(pv.Binomial(5, 0.5), person)
    assert not records.is_fixed
    three, five = records.table(3), records.table(5)
    assert [row.age.node for row in three] == [row.age.node for row in five[:3]]


def test_empty_records():
    records = pv.Records(0, person)
    assert len(records) == 0
    assert list(records) == []
    assert len(records["age"]) == 0


def test_record_columns():
    records = pv.Records(3, person)
    by_name, by_key, *ages = draws(records.age, records["age"], *(row.age for row in records), samples=50)
    assert (by_name == by_key).all()
    assert (by_name == np.stack(ages, axis=1)).all()
    names = records.name
    decoded = Column(draws(names, samples=50)[0], names.node.levels).decoded()
    assert all(row[0] == "Alice" and set(row[1:]) <= {"Ann", "Bob"} for row in decoded)
    with pytest.raises(AttributeError, match="no column 'height'"):
        records.height  # noqa: B018


def test_row_by_row_unpacking():
    assert [age.node for _, age in pv.Records(3, person)] != []
    total = sum(age for _, age in pv.Records(3, person))
    values = draws(total)[0]
    assert stats.kstest(values, stats.norm(30, math.sqrt(3)).cdf).pvalue > 1e-4


@pytest.mark.parametrize("low", [0, -3])
def test_a_random_index_into_records(low):
    records = pv.Records(3, person)
    position = pv.DiscreteUniform(low, 2)
    row = records[position]
    chosen, first, *ages = draws(position, row.age, *(r.age for r in records), samples=500)
    assert (first == np.stack(ages)[chosen, np.arange(500)]).all()
    names = Column(draws(row.name, samples=5)[0], row.name.node.levels).decoded()
    assert set(names) <= {"Alice", "Ann", "Bob"}


def test_rows_may_be_dicts():
    assert pv.Records(2, lambda i: {"age": i})[1].age == 1


def test_template_rows_are_independent():
    records = pv.Records(3, pv.Row(age=pv.Normal(40, sd=10), city="Oslo", level=pv.Constant(2)))
    assert [row.city for row in records] == ["Oslo"] * 3
    values = draws(records.age)[0]
    correlations = np.corrcoef(values.T)[np.triu_indices(3, 1)]
    assert np.abs(correlations).max() < STANDARD_ERRORS / math.sqrt(DRAWS)
    assert (draws(records.level, samples=4)[0] == 2).all()


def test_template_parameters_outside_the_row_are_shared():
    records = pv.Records(2, pv.Row(age=pv.Normal(pv.Normal(0, sd=1), sd=1)))
    correlation = np.corrcoef(draws(records.age)[0].T)[0, 1]
    assert abs(correlation - 0.5) < STANDARD_ERRORS * 0.75 / math.sqrt(DRAWS)


def test_template_columns_that_depend_on_each_other():
    ill = pv.Bernoulli(0.5)
    heat = pv.given(ill, {0: pv.Normal(0, sd=1), 1: pv.Normal(1000, sd=1)})
    records = pv.Records(2, pv.Row(heat=heat, ill=ill, dose=pv.Normal(100 * ill, sd=0.1)))
    first, second = records
    ill_0, heat_0, dose_0, ill_1, heat_1, dose_1 = draws(
        first.ill, first.heat, first.dose, second.ill, second.heat, second.dose, samples=1000
    )
    assert ((heat_0 > 500) == ill_0).all()
    assert ((heat_1 > 500) == ill_1).all()
    assert ((dose_0 > 50) == ill_0).all()
    assert ((dose_1 > 50) == ill_1).all()
    assert (ill_0 != ill_1).any()


def test_template_cell_used_twice_is_one_quantity_in_each_row():
    age = pv.Normal(0, sd=1)
    records = pv.Records(2, pv.Row(age=age, again=age))
    values = draws(records[0].age, records[0].again, records[1].age, records[1].again, samples=100)
    assert (values[0] == values[1]).all()
    assert (values[2] == values[3]).all()
    assert (values[0] != values[2]).all()


def test_random_size_against_the_exact_distribution():
    attack = pv.Attack(
        lambda records: len(records),
        prior={"records": pv.Records(pv.Binomial(4, 0.5), person)},
        secret=lambda records: len(records),
    )
    belief = attack.run(samples=5000, seed=1).posterior
    for size in range(5):
        share = stats.binom(4, 0.5).pmf(size)
        error = math.sqrt(share * (1 - share) / 5000)
        assert abs(belief.probability(lambda n, size=size: n == size).value - share) <= STANDARD_ERRORS * error


def test_random_size_mean_of_the_first_rows():
    attack = pv.Attack(
        lambda records: sum(row.x for row in records),
        prior={"records": pv.Records(pv.DiscreteUniform(1, 3), lambda i: pv.Row(x=10**i))},
        secret=lambda records: len(records),
    )
    result = attack.run(observe=pv.equals(11), samples=500, seed=2)
    assert result.posterior.distribution()[2].value == 1.0


def test_rows_can_be_made_while_garbage_is_collected():
    before = gc.get_threshold()
    gc.set_threshold(1)
    try:
        for number in range(300):
            row = pv.Row(**{f"x{number}": 1, "y": 2})
            assert (row[f"x{number}"], row.y) == (1, 2)
    finally:
        gc.set_threshold(*before)
