"""Attackers who know all rows but one: what is known is held as columns, whatever the program does with it."""

import numpy as np
import pytest

import privug as pv
from privug.model.plated_tables import PlatedTable
from privug.model.plates import Plate

KNOWN = 30
AGES = [20 + 7 * k % 50 for k in range(KNOWN)]
TOWNS = ["north", "south", "west"]


def person(position):
    if position == 4:
        return pv.Row(age=pv.DiscreteUniform(18, 21), town=pv.Choice(TOWNS), ill=pv.Bernoulli(0.25))
    return pv.Row(age=AGES[position], town=TOWNS[position % 3], ill=position % 4 == 0)


def total(records):
    return sum(row.age for row in records)


def ill_in_the_north(records):
    count = 0
    for row in records:
        if row.town == "north" and row.ill:
            count += 1
    return count


def towns(records):
    counts = {}
    for row in records:
        counts[row.town] = counts.get(row.town, 0) + 1
    return tuple(sorted(counts.items()))


def oldest(records):
    return max(row.age for row in records)


def column_mean(records):
    return float(np.mean([row.age for row in records if row.ill])) if any(row.ill for row in records) else 0.0


def plain_table(age, town, ill):
    rows = [person(position) for position in range(KNOWN) if position != 4]
    return [*rows[:4], pv.Row(age=age, town=town, ill=ill), *rows[4:]]


def expected(program):
    shares = {}
    for age in range(18, 22):
        for town in TOWNS:
            for ill, share in ((False, 0.75), (True, 0.25)):
                output = program(plain_table(age, town, ill))
                shares[output] = shares.get(output, 0.0) + share / 12
    return shares


@pytest.mark.parametrize("program", [total, ill_in_the_north, towns, oldest, column_mean], ids=lambda f: f.__name__)
def test_outputs_have_the_probabilities_of_plain_calls(program):
    attack = pv.Attack(program, {"records": pv.Records(KNOWN, person)}, secret=lambda records: records[4].ill)
    found = attack.run(engine="exact").prediction.distribution()
    assert {output: share.value for output, share in found.items()} == pytest.approx(expected(program), abs=1e-12)


def test_known_rows_are_held_as_columns():
    table = pv.Records(KNOWN, person).plated()
    assert isinstance(table, PlatedTable)
    assert [segment.size for segment in table.segments if isinstance(segment, Plate)] == [KNOWN - 5]


def test_the_row_that_is_not_known_follows_from_the_total():
    attack = pv.Attack(total, {"records": pv.Records(KNOWN, person)}, secret=lambda records: records[4].age)
    seen = sum(AGES) - AGES[4] + 20
    assert attack.run(observe=pv.equals(seen)).posterior.probability(lambda age: age == 20).value == 1.0
