"""Releases that are None or a text for tables of few rows: other sizes alone explain a number that was seen."""

import itertools
import math

import pytest

import privug as pv

ROWS, AGES = 4, (0, 1, 2, 3)
PRIOR = {"records": pv.Records(1 + pv.Binomial(ROWS - 1, 0.5), pv.Row(age=pv.Choice(AGES)))}


def none_for_few(records):
    return None if len(records) < 3 else sum(r.age for r in records)


def text_for_few(records):
    return "too few" if len(records) < 3 else sum(r.age for r in records)


def table_for_many(records):
    return None if len(records) < 3 else {"sum": sum(r.age for r in records), "rows": len(records)}


def enumerated(program, weight):
    """Return how likely each age of the first person is given the observation."""
    totals = dict.fromkeys(AGES, 0.0)
    for more in range(ROWS):
        size = math.comb(ROWS - 1, more) * 0.5 ** (ROWS - 1)
        for ages in itertools.product(AGES, repeat=1 + more):
            output = program([pv.Row(age=age) for age in ages])
            totals[ages[0]] += size * len(AGES) ** -len(ages) * weight(output)
    return {age: total / sum(totals.values()) for age, total in totals.items()}


def is_number_between(low, high):
    return lambda output: float(isinstance(output, int) and low <= output <= high)


def density(value, sd):
    return lambda output: math.exp(-0.5 * ((value - output) / sd) ** 2) if isinstance(output, int) else 0.0


def rows_and_sum(output):
    return float(output == {"sum": 7, "rows": 3})


CASES = [
    (none_for_few, pv.between(6, 7), is_number_between(6, 7)),
    (text_for_few, pv.near(7, within=0.5), is_number_between(7, 7)),
    (none_for_few, pv.noisy(8, sd=2), density(8, 2)),
    (text_for_few, pv.noisy(8, sd=2), density(8, 2)),
    (table_for_many, {"sum": pv.equals(7), "rows": pv.between(2, 3)}, rows_and_sum),
]


@pytest.mark.parametrize(("program", "seen", "weight"), CASES)
def test_the_belief_is_that_of_enumeration(program, seen, weight):
    result = pv.Attack(program, PRIOR, lambda records: records[0].age).run(seen)
    truth = enumerated(program, weight)
    assert "exact" in result.engine
    for age, share in result.posterior.distribution().items():
        assert share.value == pytest.approx(truth[age], abs=1e-12)


def test_a_number_is_impossible_where_no_size_has_one():
    attack = pv.Attack(lambda records: None, PRIOR, lambda records: records[0].age)
    with pytest.raises(pv.ImpossibleObservation, match="always None"):
        attack.run(pv.near(3, within=1))
