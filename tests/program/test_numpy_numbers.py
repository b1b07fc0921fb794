"""Elements of arrays are NumPy's numbers, traced and in plain calls; cells of rows and single inputs are Python's."""

import math
import statistics
from collections import Counter

import numpy as np
import pytest

import privug as pv
from privug.model.node import ancestors
from privug.model.plan import Plan
from privug.program.lifting import apply_traced
from privug.program.tracing import trace

TIES = [46.15, 46.25, 0.15, 2.675]
WHOLE = [0, 1, 2, 3]

PROGRAMS = {
    "rounding an element": (TIES, lambda a: round(a[0], 1)),
    "rounding the mean by hand": (TIES, lambda a: round(sum(a) / len(a), 1)),
    "rounding the mean of an array": (TIES, lambda a: round(a.mean(), 2)),
    "rounding NumPy's mean": (TIES, lambda a: round(np.mean(a), 2)),
    "rounding the largest": (TIES, lambda a: round(max(a), 1)),
    "rounding what is not below zero": (TIES, lambda a: round(max(0, a[0]), 1)),
    "rounding the smallest of a sorted list": (TIES, lambda a: round(sorted(a)[0], 1)),
    "rounding a square root": (TIES, lambda a: round(np.sqrt(a[0]), 1)),
    "rounding one by one": (TIES, lambda a: tuple(round(x, 1) for x in a)),
    "rounding to a whole number": (TIES, lambda a: round(a[0])),
    "rounding a float made of an element": (TIES, lambda a: round(float(a[0]), 1)),
    "rounding an element of a list": (TIES, lambda a: round(a.tolist()[0], 1)),
    "rounding what the math module gives": (TIES, lambda a: round(math.fabs(a[0]), 1)),
    "rounding a median": (TIES, lambda a: round(statistics.median(a), 1)),
    "rounding either": (TIES, lambda a: round(a[0] if a[1] > 1 else 0.15, 1)),
    "dividing whole numbers by zero": (WHOLE, lambda a: a[0] // a[1]),
    "remainders by zero": (WHOLE, lambda a: a[0] % a[1]),
    "adding truth values": (WHOLE, lambda a: (a[0] > 1) + (a[1] > 1)),
    "counting truth values": (WHOLE, lambda a: sum(x > 1 for x in a)),
    "is it an int": (WHOLE, lambda a: isinstance(a[0], int)),
    "is it a float": (TIES, lambda a: isinstance(a[0], float)),
    "its type": (WHOLE, lambda a: type(a[0]) is np.int64),
    "the type of a sum": (WHOLE, lambda a: type(int(a[0]) + 1) is int),
}


def plain(value):
    return (
        value.item()
        if isinstance(value, np.generic)
        else tuple(map(plain, value))
        if isinstance(value, tuple)
        else value
    )


@pytest.mark.parametrize("name", PROGRAMS)
def test_arrays_are_the_same_traced_and_in_plain_calls(name):
    values, program = PROGRAMS[name]
    with np.errstate(all="ignore"):
        truth = Counter(plain(program(np.array([x, y]))) for x in values for y in values)
    attack = pv.Attack(program, prior={"a": pv.Array(pv.Choice(values), 2)}, secret=lambda a: a[0])
    found = attack.run(engine="exact").prediction.distribution()
    assert {value: share.value for value, share in found.items()} == pytest.approx(
        {value: count / 16 for value, count in truth.items()}
    )


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name.startswith("rounding")])
def test_rounding_needs_no_plain_calls_where_it_is_known_whose_numbers_they_are(name):
    values, program = PROGRAMS[name]
    attack = pv.Attack(program, prior={"a": pv.Array(pv.Choice(values), 2)}, secret=lambda a: a[0])
    assert attack.lifting.tier == ("python" if name == "rounding either" else "traced")


def test_single_inputs_and_cells_of_rows_are_pythons_numbers():
    rounded = Counter(round(value, 1) for value in TIES)
    single = pv.Attack(lambda x: round(x, 1), prior={"x": pv.Choice(TIES)}, secret="x")
    rows = pv.Records(1, pv.Row(x=pv.Choice(TIES)))
    cell = pv.Attack(lambda t: round(t[0].x, 1), prior={"t": rows}, secret=lambda t: t[0].x)
    listed = pv.Attack(lambda xs: round(xs[0], 1), prior={"xs": [pv.Choice(TIES)]}, secret=lambda xs: xs[0])
    for attack in (single, cell, listed):
        found = attack.run(engine="exact").prediction.distribution()
        assert {value: share.value for value, share in found.items()} == {v: n / 4 for v, n in rounded.items()}
        assert attack.lifting.tier == "traced"


CHOICES = {
    "a tuple of words": lambda a: ("no", "yes")[a > 0],
    "a list of words": lambda a: ["no", "yes"][a > 0],
    "numbers": lambda a: (10, 20)[a > 1],
    "a negation": lambda a: ("no", "yes")[not a],
    "both": lambda a: ("no", "yes")[a > 0 and a < 2],
    "a number and a word": lambda a: (1, "x")[a > 0],
    "nothing or a number": lambda a: (None, 5)[a > 0],
    "tuples": lambda a: ((1, 2), (3, 4))[a > 0],
    "counted from the end": lambda a: ("n", "y", "z")[-a],
    "a range": lambda a: range(5)[a > 0],
    "letters": lambda a: "xyz"[a > 0],
    "a dictionary": lambda a: {True: "x", False: "y"}[a > 0],
}


@pytest.mark.parametrize("name", CHOICES)
def test_a_random_truth_value_is_a_subscript_as_in_python(name):
    program = CHOICES[name]
    truth = Counter(program(value) for value in range(3))
    attack = pv.Attack(program, prior={"a": pv.DiscreteUniform(0, 2)}, secret="a")
    found = attack.run(engine="exact").prediction.distribution()
    assert {value: share.value for value, share in found.items()} == pytest.approx(
        {value: count / 3 for value, count in truth.items()}
    )


def test_a_truth_value_among_rows_and_in_an_array():
    rows = pv.Records(2, lambda i: pv.Row(x=10 * i, y=pv.Bernoulli(0.25)))
    attack = pv.Attack(lambda t: t[t[0].y > 0].x, prior={"t": rows}, secret=lambda t: t[0].y)
    found = attack.run(engine="exact").prediction.distribution()
    assert {value: share.value for value, share in found.items()} == {0: 0.75, 10: 0.25}
    masked = pv.Attack(lambda a: a[a[0] > 0].sum(), prior={"a": pv.Array(pv.Bernoulli(0.5), 2)}, secret=lambda a: a[0])
    assert masked.lifting.tier == "python"  # NumPy takes a truth value for a mask


FAILING_AT_ZERO = {
    "a sum": lambda t: 1 / sum(row.owner for row in t),
    "a standard deviation": lambda t: 1 / statistics.pstdev([row.owner for row in t]),
    "a variance": lambda t: 1 / statistics.variance([row.owner for row in t]),
    "a median": lambda t: 1 / (1 - statistics.median([1 - row.owner for row in t])),
    "weights": lambda t: np.average([row.owner + 2 for row in t], weights=[row.owner for row in t]),
}


@pytest.mark.parametrize(("name", "rows"), [(name, 5) for name in FAILING_AT_ZERO] + [("a sum", 20), ("a median", 20)])
def test_what_is_computed_of_rows_are_numbers_of_python(name, rows):
    """Python raises where NumPy has infinity."""
    program = FAILING_AT_ZERO[name]
    table = pv.Records(rows, pv.Row(owner=pv.Bernoulli(0.5)))
    output = trace(program, [table.plated() or table.table()], {}).output.node
    columns = [node for node in ancestors([output]) if node.is_random]
    owners = np.array([[0] * rows, [1] * (rows - 1) + [0]])
    given = dict(zip(columns, owners.T, strict=True)) if rows == len(columns) else {columns[0]: owners}
    failed = np.zeros(2, bool)
    found = Plan([output], columns).run(2, np.random.default_rng(0), given, failed=failed)[0]
    assert failed.tolist() == [True, False]
    assert found[1] == pytest.approx(program([pv.Row(owner=owner) for owner in owners[1].tolist()]))


def test_a_mean_of_floats_is_a_float():
    output = apply_traced(lambda a: round(statistics.fmean(a), 1), [pv.Array(pv.Choice(TIES), 2)])
    assert output is not None  # numbers of NumPy would be rounded otherwise
