"""Tables with many rows that are alike: traced once for all of them, and the same as row by row."""

import numpy as np
import pytest

import privug as pv
from privug.model.plan import Plan
from privug.model.plated_tables import PlatedTable
from privug.model.structure import flatten
from privug.program.inputs import Arguments
from privug.program.lifting import apply_traced

ROWS = 12


def person(i):
    if i == 0:
        return pv.Row(name="Alice", age=pv.DiscreteUniform(0, 9), paid=True)
    return pv.Row(name=pv.Choice(["Ann", "Bob"]), age=pv.DiscreteUniform(0, 9), paid=pv.Bernoulli(0.3))


def count_in_a_loop(records):
    older = 0
    for r in records:
        if r.age > 4 and r.name != "Bob":
            older += 1
    return older


def several_at_once(records):
    totals, counted, last = [0, 0.5], 0, 3
    for name, age, paid in records:
        double = age * 2
        if paid:
            totals[0] += double
            continue
        totals[1] -= double if name == "Ann" else 1
        counted += 1
    return totals, counted, last


def comprehensions(records):
    ages = [r.age for r in records]
    return sum(ages), max(ages), min(r.age for r in records[1:]), any(a == 9 for a in ages), 3 in ages


def quantifiers(records):
    return (
        pv.count(records, lambda r: r.age > 4),
        pv.forall(records, lambda r: r.name == "Ann", then=lambda r: r.age > 0),
        pv.exists(records, lambda r: r.age == 9),
    )


def columns(records):
    return records.age.sum(), (records.age[1:] > 4).mean(), np.median([r.age for r in records])


def compared_with_alice(records):
    me = records[0]
    return len([r for r in records if r.age == me.age]), sum(r.age > me.age for r in records)


def running_maximum(records):
    best = 0
    for r in records:
        if r.age > best:
            best = r.age
    return best


PLATED = [
    count_in_a_loop, several_at_once, comprehensions, quantifiers, columns, compared_with_alice, running_maximum,
]  # fmt: skip


def table():
    made = pv.Records(ROWS, person).plated()
    assert isinstance(made, PlatedTable)
    return made


@pytest.mark.parametrize("program", PLATED, ids=lambda program: program.__name__)
def test_one_round_for_all_rows_gives_what_python_gives(program):
    records = table()
    lifted = apply_traced(program, [records])
    assert lifted is not None
    both = Arguments(*flatten(([records], lifted.output)))
    arrays = Plan(both.nodes).run(500, np.random.Generator(np.random.SFC64(1)))
    for (plain,), output in both.plain(arrays, 500):
        assert len(plain) == ROWS
        wanted = program(plain)
        assert flatten(output)[1] == pytest.approx(flatten(wanted)[1], rel=1e-12)


def last_age(records):
    age = 0
    for r in records:
        age = r.age
    return age


def stops_early(records):
    n = 0
    for r in records:
        if r.age == 9:
            break
        n += 1
    return n


def collects(records):
    kept = []
    for r in records:
        if r.age > 4:
            kept.append(r.age)
    return len(kept)


def numbers_in_groups(records):
    counts = {}
    for r in records:
        counts[r.name] = counts.get(r.name, 0) + 1
        if counts[r.name] == 2:
            return counts.get("Ann", 0)
    return 0


def noise_for_each_row(records):
    return sum(r.age + pv.sample(pv.DiscreteUniform(0, 1)) for r in records)


def in_order(records):
    return sorted(r.age for r in records)[2]


@pytest.mark.parametrize("program", [last_age, stops_early, collects, numbers_in_groups, noise_for_each_row, in_order])
def test_what_rows_hand_on_is_traced_row_by_row(program):
    assert apply_traced(program, [table()]) is None
    attack = pv.Attack(program, {"records": pv.Records(ROWS, person)}, secret=lambda records: records[0].age)
    assert attack.lifting.tier == "traced"
    assert not isinstance(attack.question.case().inputs["records"], PlatedTable)


def test_rows_that_are_used_elsewhere_are_not_alike():
    ages = [pv.DiscreteUniform(0, 9) for _ in range(ROWS)]
    attack = pv.Attack(
        lambda records, other: sum(r.age for r in records) - other,
        {"records": pv.Records(ROWS, lambda i: pv.Row(age=ages[i])), "other": ages[3] + ages[4]},
        secret=lambda records: records[3].age,
    )
    result = attack.run(engine="sample", samples=2000, seed=1)
    # The other input is part of the sum: what is left has the mean of ten ages.
    assert 45.0 in result.prediction.mean().widened(2)
    assert float(result.prediction.std()) ** 2 == pytest.approx(10 * 99 / 12, rel=0.2)


def test_rows_with_common_parameters_are_alike_given_these():
    rate = pv.Choice([0.1, 0.9])
    attack = pv.Attack(
        lambda records: sum(r.ill for r in records),
        {"records": pv.Records(40, lambda i: pv.Row(ill=pv.Bernoulli(rate)))},
        secret=lambda records: records[0].ill,
    )
    assert isinstance(attack.question.case().inputs["records"], PlatedTable)
    counts = attack.run(engine="sample", samples=4000, seed=1).prediction
    assert 0.0 in counts.probability(lambda n: 15 < n < 25).widened(2)


def test_cells_that_depend_on_cells_of_their_row_stay_together():
    def row(i):
        ill = pv.Bernoulli(0.5)
        return pv.Row(ill=ill, fever=pv.given(ill, {0: pv.Constant(0), 1: pv.Bernoulli(0.5)}))

    attack = pv.Attack(
        lambda records: (sum(r.fever and not r.ill for r in records), sum(r.fever for r in records)),
        {"records": pv.Records(20, row)},
        secret=lambda records: records[0].ill,
    )
    assert isinstance(attack.question.case().inputs["records"], PlatedTable)
    values = np.array(attack.run(engine="sample", samples=2000, seed=1).prediction.batch.values())
    assert values[:, 0].max() == 0
    assert 5.0 in pv.Belief.of(values[:, 1]).mean().widened(2)


def test_columns_of_known_values_may_differ_from_row_to_row():
    attack = pv.Attack(
        lambda records: sum(r.weight for r in records if r.here and r.name != "p3"),
        {"records": pv.Records(10, lambda i: pv.Row(name=f"p{i}", weight=float(i), here=pv.Bernoulli(0.5)))},
        secret=lambda records: records[1].here,
    )
    assert isinstance(attack.question.case().inputs["records"], PlatedTable)
    assert 21.0 in attack.run(engine="sample", samples=4000, seed=1).prediction.mean().widened(2)


def test_a_query_about_single_rows_of_a_plate():
    attack = pv.Attack(count_in_a_loop, {"records": pv.Records(ROWS, person)}, secret=lambda records: records[0].age)
    result = attack.run(observe=pv.equals(0), engine="sample", samples=500, seed=1)
    oldest = result.belief(lambda records: max(r.age for r in records if r.name != "Bob"))
    assert float(oldest.probability(lambda age: age <= 4)) == 1.0
    fifth = result.belief(lambda records: records[5].age if records[5].name == "Ann" else 0)
    assert float(fifth.probability(lambda age: age <= 4)) == 1.0
