"""How programs were lifted, line by line."""

import fractions
import sys

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


def test_a_library_that_wants_a_plain_value_is_named():
    def halved(x):
        y = x + 1
        return float(fractions.Fraction.from_float(y))

    def numbered(x):
        return sys.intern(str(x))

    found = pv.explain(halved, x=pv.Uniform(0, 1))
    line = halved.__code__.co_firstlineno + 2
    assert found.tier == "python"
    assert str(found.reason).endswith(f"at line {line}")
    assert next(one for one in found.lines if one.number == line).obstacle
    assert "inside" not in str(pv.explain(numbered, x=pv.Uniform(0, 1)).reason)


def test_wrong_arguments_are_refused():
    attack = pv.Attack(lambda x: x, {"x": pv.Uniform(0, 1)}, "x")
    for arguments, named in (((3,), {}), ((count,), {}), ((attack,), {"x": 1})):
        with pytest.raises(pv.ArgumentError, match="explain"):
            pv.explain(*arguments, **named)
