"""How programs were lifted, line by line."""

import statistics

import pytest

import privug as pv


def older(row):
    return row.age > 40


def count(records):
    total = 0
    for row in records:
        if older(row):
            total += 1
    return round(total / 3)


def person(_):
    return pv.Row(age=pv.Uniform(0, 100))


def test_lines_of_a_traced_program_and_of_what_it_calls_say_what_they_compute():
    found = pv.explain(pv.Attack(count, {"records": pv.Records(20, person)}, lambda records: records[0].age))
    first = count.__code__.co_firstlineno
    notes = {line.number: line.operations for line in found.lines if line.operations}
    assert found.tier == "traced"
    assert notes[older.__code__.co_firstlineno + 1] == ("greater",)
    assert notes[first + 5] == ("true divide", "round")
    assert [line.number for line in found.lines if line.number >= first] == list(range(first, first + 6))


def test_tables_of_random_size_and_mechanisms_are_explained():
    table = pv.Records(pv.Binomial(40, 0.5), person)
    assert pv.explain(count, records=table).tier == "traced"
    noisy = pv.mechanisms.laplace(count, sensitivity=1, epsilon=1)
    found = pv.explain(noisy, records=table)
    assert found.lines[0].source == "def count(records):"
    assert found.to_dict()["tier"] == "traced"


def test_a_line_without_a_condition_is_not_said_to_have_one():
    def share(x):
        y = x / 2
        return statistics.NormalDist(0, y).cdf(0.2)

    def label(x):
        return hash(x)

    found = pv.explain(share, x=pv.Uniform(0, 1))
    line = share.__code__.co_firstlineno + 2
    assert found.reason == f"a condition (if, while, and, or, not, in) inside statistics at line {line}"
    assert [one.number for one in found.lines if one.obstacle] == [line]
    reason = f"TypeError: unhashable type: 'RandomVariable' at line {label.__code__.co_firstlineno + 1}"
    assert pv.explain(label, x=pv.Uniform(0, 1)).reason == reason


def test_wrong_arguments_are_refused():
    attack = pv.Attack(lambda x: x, {"x": pv.Uniform(0, 1)}, "x")
    for arguments, named in (((3,), {}), ((count,), {}), ((attack,), {"x": 1})):
        with pytest.raises(pv.ArgumentError, match="explain"):
            pv.explain(*arguments, **named)
