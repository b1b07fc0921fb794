"""Mistraces that show on unlikely inputs only are caught: the comparison with plain calls looks for rare events."""

import numpy as np
import pytest

import privug as pv
from privug.inference.question import Question
from privug.model.structure import flatten
from privug.program import lifting
from privug.program.inputs import Arguments
from privug.program.lifting import apply_traced
from privug.program.tracing import Unlikely, trace

ZIPS = ["2100", "2300", "2450"]


def mistraced(honest, event):
    """Return a program that tracing, with a rule that overlooks an event, takes for an honest one."""

    def program(records):
        return honest(records) + (1000 if event(records) else 0)

    program.honest = honest
    return program


@pytest.fixture
def overlooking(monkeypatch):
    """Have the tracer overlook the event of a program."""
    monkeypatch.setattr(lifting, "trace", lambda program, *rest: trace(getattr(program, "honest", program), *rest))


def person(position=0):
    age = pv.DiscreteUniform(18, 90)
    ill = pv.given(age > 60, {True: pv.Bernoulli(0.5), False: pv.Bernoulli(0.2)})
    return pv.Row(age=age, zip=pv.Choice(ZIPS), pay=pv.Normal(3000, sd=400), ill=ill, owner=pv.Bernoulli(0.5))


def plates():
    return pv.Records(20, person).plated()


def rows():
    return pv.Records(12, person).table()


def numbers(distribution, count=6):
    return [distribution() for _ in range(count)]


def column(records, name):
    return [row[name] for row in records] if hasattr(records[0], "_asdict") else list(records)


def distinct(name):
    return lambda records: len(set(column(records, name)))


def most_frequent(values):
    return max(values.count(value) for value in values)


def all_but_one(name):
    return lambda records: most_frequent(column(records, name)) == len(records) - 1


def ages(records):
    return sum(row.age for row in records)


def of_tables(records):
    return ages(records) + sum(row.ill + row.owner for row in records) + max(row.pay for row in records)


EVENTS_OF_TABLES = {
    "one age": lambda t: distinct("age")(t) == 1,
    "two ages": lambda t: distinct("age")(t) == 2,
    "three ages": lambda t: distinct("age")(t) == 3,
    "one age but for one person": all_but_one("age"),
    "one zip": lambda t: distinct("zip")(t) == 1,
    "no second zip": lambda t: distinct("zip")(t) == 2 and ZIPS[1] not in column(t, "zip"),
    "one zip but for one person": all_but_one("zip"),
    "all ill": lambda t: all(column(t, "ill")),
    "all owners": lambda t: all(column(t, "owner")),
    "no owners": lambda t: not any(column(t, "owner")),
    "one owner": lambda t: sum(column(t, "owner")) == 1,
    "all oldest": lambda t: min(column(t, "age")) == 90,
    "all youngest": lambda t: max(column(t, "age")) == 18,
    "youngest and oldest only": lambda t: set(column(t, "age")) == {18, 90},
    "all paid well": lambda t: min(column(t, "pay")) > 3700,
    "all paid alike": lambda t: max(column(t, "pay")) - min(column(t, "pay")) < 10,
    "paid alike but for one person": lambda t: most_frequent([round(x, -2) for x in column(t, "pay")]) == len(t) - 1,
    "one age and one zip": lambda t: distinct("age")(t) == distinct("zip")(t) == 1,
    "all oldest and paid well": lambda t: min(column(t, "age")) == 90 and min(column(t, "pay")) > 3700,
    "all oldest and paid badly": lambda t: min(column(t, "age")) == 90 and max(column(t, "pay")) < 2300,
    "one age, no owners": lambda t: distinct("age")(t) == 1 and not any(column(t, "owner")),
    "first half of one age": lambda t: distinct("age")(t) == 2 and len(set(column(t, "age")[: len(t) // 2])) == 1,
}


@pytest.mark.parametrize("table", [plates, rows], ids=lambda made: made.__name__)
@pytest.mark.parametrize("event", EVENTS_OF_TABLES)
def test_events_in_tables(overlooking, event, table):
    program = mistraced(of_tables, EVENTS_OF_TABLES[event])
    assert apply_traced(of_tables, [table()]) is not None
    assert apply_traced(program, [table()]) is None


def hundreds():
    return pv.DiscreteUniform(0, 299)


def scores():
    return pv.Normal(0, sd=1)


EVENTS_OF_NUMBERS = {
    "one value of 300": (hundreds, 1, lambda x: x[0] == 257),
    "one value of 300 at the last of three": (hundreds, 3, lambda x: x[2] == 101),
    "two smallest": (hundreds, 2, lambda x: x == [0, 0]),
    "smallest and largest": (hundreds, 2, lambda x: x == [0, 299]),
    "largest and smallest": (hundreds, 2, lambda x: x == [299, 0]),
    "a pair of eight": (hundreds, 8, lambda x: most_frequent(x) == 7),
    "all equal": (hundreds, 8, lambda x: len(set(x)) == 1),
    "a large count": (lambda: pv.Poisson(1.0), 2, lambda x: max(x) >= 8),
    "no count": (lambda: pv.Poisson(4.0), 6, lambda x: max(x) == 0),
    "far above": (scores, 2, lambda x: min(x) > 3.9),
    "far apart": (scores, 2, lambda x: x[0] < -3.9 and x[1] > 3.9),
    "far below but for one": (scores, 5, lambda x: sorted(x)[3] < -1.9 < 0 < sorted(x)[4]),
    "close to one another": (lambda: pv.Exponential(rate=0.1), 8, lambda x: max(x) < 1.05 * min(x)),
    "close shares": (lambda: pv.Beta(2, 3), 8, lambda x: max(x) < 1.05 * min(x)),
    "steep mixture": (lambda: pv.Mixture([pv.Normal(0, sd=1), pv.Normal(9, sd=1)]), 9, lambda x: min(x) > 7),
    "rare one of many": (lambda: pv.Choice(["a", "b"], [0.9999, 0.0001]), 20, lambda x: x.count("b") == 19),
}


@pytest.mark.parametrize("event", EVENTS_OF_NUMBERS)
def test_events_in_lists(overlooking, event):
    distribution, count, happens = EVENTS_OF_NUMBERS[event]
    honest = (lambda records: sum(x == "a" for x in records)) if event.startswith("rare") else sum
    inputs = numbers(distribution, count)
    assert apply_traced(honest, [inputs]) is not None
    assert apply_traced(mistraced(honest, happens), [inputs]) is None


def of_frames(records):
    df = records
    return df.age.sum() + df.pay.max() + df[df.ill == 1].owner.sum()


def framed():
    return pv.Records(15, person).as_frame("pandas")


EVENTS_OF_FRAMES = {
    "one age": lambda df: df.age.nunique() == 1,
    "no ill": lambda df: df.ill.sum() == 0,
    "one owner": lambda df: df.owner.sum() == 1,
    "all paid badly": lambda df: df.pay.max() < 2300,
    "one zip": lambda df: df.zip.nunique() == 1,
}


@pytest.mark.parametrize("event", EVENTS_OF_FRAMES)
def test_events_in_frames(overlooking, event):
    program, prior = mistraced(of_frames, EVENTS_OF_FRAMES[event]), {"records": framed()}
    assert Question(of_frames, prior, size).case().lifting.tier == "traced"
    with pytest.warns(pv.LiftingWarning, match="gave wrong values"):
        assert Question(program, prior, size).case().lifting.tier == "python"


EVENTS_OF_SIZES = {
    "one age": lambda t: len(t) > 3 and distinct("age")(t) == 1,
    "one age but for one person": lambda t: len(t) > 3 and all_but_one("age")(t),
    "no owners": lambda t: len(t) > 9 and not any(column(t, "owner")),
    "all paid alike": lambda t: len(t) > 3 and max(column(t, "pay")) - min(column(t, "pay")) < 10,
    "one zip": lambda t: len(t) > 9 and distinct("zip")(t) == 1,
}


def size(records):
    return len(records)


def of_any_size(records):
    return sum(row.age + row.pay * (row.zip == "2300") for row in records) + sum(row.owner for row in records)


@pytest.mark.parametrize("event", EVENTS_OF_SIZES)
def test_events_in_tables_of_random_size(overlooking, event):
    prior = {"records": pv.Records(pv.Binomial(30, 0.4), person)}
    happens = EVENTS_OF_SIZES[event]
    assert Question(of_any_size, prior, size).case_of_all_sizes((25,)) is not None
    assert Question(mistraced(of_any_size, happens), prior, size).case_of_all_sizes((25,)) is None


def test_events_in_what_a_program_draws(overlooking):
    def noisy(records):
        return records[0] + pv.sample(pv.Laplace(0, 1))

    def program(records):
        noise = pv.sample(pv.Laplace(0, 1))
        return records[0] + noise + (1 if noise > 9 else 0)

    program.honest = noisy
    assert apply_traced(noisy, [[pv.Uniform(0, 1)]]) is not None
    assert apply_traced(program, [[pv.Uniform(0, 1)]]) is None


def spread_of_ages(records):
    return 1 / (max(row.age for row in records) - min(row.age for row in records))


def age_of_owners(records):
    return sum(row.age for row in records if row.owner) / sum(row.owner for row in records)


@pytest.mark.parametrize("program", [spread_of_ages, age_of_owners])
def test_failures_on_unlikely_inputs_do_not_speak_against_a_trace(program):
    assert apply_traced(program, [plates()]) is not None
    with pytest.raises(ZeroDivisionError):
        program([pv.Row(age=30, owner=0)] * 20)


def test_failures_that_only_plain_calls_have_do(overlooking):
    def program(records):
        return 1 / (distinct("age")(records) - 1) - 1 / (distinct("age")(records) - 1) + ages(records)

    program.honest = ages
    assert apply_traced(program, [plates()]) is None


def test_whole_numbers_beyond_64_bits_on_unlikely_inputs_do_not_speak_against_a_trace(overlooking):
    def honest(records):
        return records[0] * records[1]

    inputs = [pv.Geometric(2e-9) for _ in range(2)]  # 5e8 on average, 5e9 once in 30,000
    assert apply_traced(honest, [inputs]) is not None
    assert apply_traced(mistraced(honest, lambda x: x[0] == x[1]), [inputs]) is None


def test_every_input_is_possible():
    """Values that contradict their parents would make programs fail that never do."""

    def program(first, second, size):
        return 1 / (first >= second) + 1 / (size > 0) + 1 / (first + second < 200)

    first = pv.DiscreteUniform(1, 99)
    inputs = [first, pv.DiscreteUniform(0, first), pv.Choice([0, 5], [0.0, 1.0])]
    assert apply_traced(program, inputs) is not None
    structure, leaves = flatten((inputs, {}))
    unlikely = Unlikely(Arguments(structure, tuple(leaves)), [])
    rng = np.random.default_rng(0)
    values = unlikely.values(99, 64, {}, rng)
    one, other, count = (values[leaf.node] for leaf in leaves)
    assert set(one[:99]) == set(range(1, 100)) == set(one)
    assert np.all((other >= 0) & (other <= one))
    assert np.all(count == 5)
