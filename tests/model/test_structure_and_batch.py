"""Nested values taken apart and put together; batches; categories against plain Python."""

import math
import operator
import pickle
from collections import namedtuple
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privug as pv
from privug.model.batch import Batch, Column
from privug.model.categories import encode
from privug.model.plan import Plan
from privug.model.structure import LEAF, flatten, random_leaves
from privug.model.table import Table


@dataclass
class Person:
    name: str
    ages: list[int]


@dataclass(frozen=True)
class Frozen:
    x: float
    derived: float = field(init=False, default=0.0)


Point = namedtuple("Point", ["x", "y"])


class Colour(Enum):
    RED = 1
    BLUE = 2


class Level(StrEnum):
    LOW = "low"
    HIGH = "high"


VALUES = [
    3,
    "text",
    None,
    (),
    [],
    {},
    (1,),
    (1, (2, [3, {"a": 4}])),
    [[1], [2, 3]],
    {"b": 1, "a": (2, 3)},
    pv.Row(name="Ann", inner=pv.Row(age=3)),
    Table([pv.Row(a=1, b=[1, 2]), pv.Row(a=2, b=[3])]),
    Person("Ann", [1, 2]),
    Frozen(2.5),
    Point(1, [2]),
    {"deep": [Person("Bob", []), Point((), None)]},
    frozenset({1, 2}),
    Colour.RED,
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_taken_apart_and_put_together(value):
    structure, leaves = flatten(value)
    rebuilt = structure.build(iter(leaves))
    assert rebuilt == value
    assert type(rebuilt) is type(value)


NESTED = st.recursive(
    st.integers() | st.text(max_size=3) | st.none() | st.booleans(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
        | inner.map(lambda value: pv.Row(x=value, y=1))
        | inner.map(lambda value: Point(value, value))
    ),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(NESTED)
def test_any_nested_value_survives(value):
    structure, leaves = flatten(value)
    assert structure.build(iter(leaves)) == value
    assert list(structure.build_each(([leaf, leaf] for leaf in leaves), 2)) == [value] * 2
    assert hash(structure) == hash(flatten(value)[0])


def test_object_arrays_survive():
    array = np.empty(2, object)
    array[0], array[1] = [1, 2], [3, 4]
    structure, leaves = flatten(array)
    rebuilt = structure.build(iter(leaves))
    assert rebuilt.dtype == object
    assert rebuilt.tolist() == [[1, 2], [3, 4]]


def test_number_arrays_are_leaves():
    array = np.arange(3)
    structure, leaves = flatten([array])
    assert len(leaves) == 1
    assert structure.children == (LEAF,)


def test_random_leaves():
    x, y = pv.Normal(0, sd=1), pv.Poisson(1)
    found = random_leaves({"a": [x, 1], "b": pv.Row(c=Point(y, "text")), "d": Person("Ann", [x])})
    assert [leaf.node for leaf in found] == [x.node, y.node, x.node]


SAMPLES = [
    [1, 2, 3, 2],
    [1.5, -2.0, 1.5],
    [True, False, True],
    ["a", "b", "a"],
    [Colour.RED, Colour.BLUE],
    [(1, 2), (3, 4), (1, 2)],
    [(1,), (1, 2)],
    [[1, 2], [3, 4], [1, 2]],
    [[1], [2, 3]],
    [None, "a", 1, True, 1.0],
    [True, 2, 3],
    [10**30, 1],
    [2**63, 1],
    [pv.Row(a=1), pv.Row(a=2)],
    [{"a": 1}, {"a": 2}],
    [frozenset({1}), frozenset()],
    [],
]


@pytest.mark.parametrize("values", SAMPLES, ids=repr)
def test_batches_of_plain_values(values):
    batch = Batch.of_values(values)
    assert len(batch) == len(values)
    assert batch.values() == values
    assert [type(value) for value in batch.values()] == [type(value) for value in values]


@pytest.mark.parametrize("values", [values for values in SAMPLES if len(values) > 1], ids=repr)
def test_taking_from_a_batch(values):
    batch = Batch.of_values(values)
    assert batch.take(np.array([1, 0, 1])).values() == [values[1], values[0], values[1]]
    mask = np.arange(len(values)) % 2 == 0
    assert batch.take(mask).values() == values[::2]
    assert len(batch.take(mask)) == mask.sum()
    assert batch.take(np.zeros(0, int)).values() == []


@pytest.mark.parametrize("first", SAMPLES, ids=repr)
def test_joining_batches(first):
    for second in (first, ["z", "a"], [7, 8], [0.5], [[9]]):
        joined = Batch.concatenate([Batch.of_values(first), Batch.of_values(second)])
        assert joined.values() == [*first, *second]
        assert len(joined) == len(first) + len(second)


def nested_batch(numbers: list[int], names: list[str]) -> Batch:
    structure, _ = flatten({"row": pv.Row(n=0, name="")})
    return Batch(structure, (Column(np.array(numbers)), Column(*encode(names))), len(numbers))


def test_joining_nested_batches_of_one_and_of_several_layouts():
    left, right = nested_batch([1, 2], ["a", "b"]), nested_batch([3, 1], ["b", "a"])
    same = Batch.concatenate([left, left])
    assert same.structure == left.structure
    assert same.values() == left.values() * 2
    assert Batch.concatenate([left, right]).values() == left.values() + right.values()
    assert Batch.concatenate([right]) is right


@pytest.mark.parametrize("values", SAMPLES[:-1], ids=repr)
def test_codes_are_equal_where_values_are(values):
    codes, support = Batch.of_values(values).factorized()
    assert sorted(set(codes.tolist())) == list(range(len(support)))
    for code, value in zip(codes, values, strict=True):
        assert support[code] == value
        assert type(support[code]) is type(value)
    typed = [(type(value), value) for value in values]
    assert len(support) == sum(value not in typed[:k] for k, value in enumerate(typed))


def test_codes_of_numbers_ascend():
    codes, support = Batch.of_values([3, 1, 2, 1]).factorized()
    assert support == [1, 2, 3]
    assert codes.tolist() == [2, 0, 1, 0]


def test_codes_of_nested_and_array_values():
    batch = nested_batch([1, 1, 2, 1], ["a", "b", "a", "a"])
    codes, support = batch.factorized()
    assert len(support) == 3
    assert [support[code] for code in codes] == batch.values()
    arrays = Batch(LEAF, (Column(np.array([[1, 2], [3, 4], [1, 2]])),), 3)
    codes, support = arrays.factorized()
    assert codes[0] == codes[2] != codes[1]
    assert [value.tolist() for value in support] == [[1, 2], [3, 4]]
    empty = Batch(flatten(())[0], (), 3)
    assert empty.factorized()[1] == [()]


def test_arrays_of_other_shapes_are_other_values():
    values = [np.arange(4), np.arange(4).reshape(2, 2), np.arange(4)]
    array = np.empty(3, object)
    array[:] = values
    codes, _ = Batch(LEAF, (Column(array),), 3).factorized()
    assert codes[0] == codes[2] != codes[1]


def test_numbers_of_a_batch():
    assert Batch.of_values([1, 2]).numbers().tolist() == [1, 2]
    assert Batch.of_values(["a"]).numbers() is None
    assert nested_batch([1], ["a"]).numbers() is None
    assert Batch(LEAF, (Column(np.zeros((2, 3))),), 2).numbers() is None


@pytest.mark.parametrize(
    ("values", "levels"),
    [
        ([1, 2], None),
        ([1, 2.5], None),
        ([True, False], None),
        ([np.int8(3), np.float32(0.5)], None),
        (["b", "a", "b"], ("b", "a")),
        ([1, True, 1.0, "x"], (1, True, 1.0, "x")),
        ([2**63], (2**63,)),
    ],
)
def test_encoding(values, levels):
    array, found, _ = encode(values)
    assert found == levels
    if levels is None:
        assert array.tolist() == values
    else:
        assert [type(a) for a in found] == [type(a) for a in levels]
        assert [found[code] for code in array] == values


def test_what_cannot_be_hashed_is_refused():
    with pytest.raises(pv.ArgumentError, match="values must be numbers, strings, enums or tuples"):
        encode([[1], [2]])


def samples_of(*variables: pv.RandomVariable) -> list[list[Any]]:
    arrays = Plan([v.node for v in variables]).run(60, np.random.default_rng(4))
    return [Column(array, v.node.levels).decoded() for array, v in zip(arrays, variables, strict=True)]


def check(function: Any, *inputs: pv.RandomVariable) -> None:
    """Compare a function of categories with plain calls on each sample: values and types."""
    *columns, actual = samples_of(*inputs, function(*inputs))
    expected = [function(*values) for values in zip(*columns, strict=True)]
    assert actual == expected
    assert [type(value) for value in actual] == [type(value) for value in expected]


def words() -> pv.RandomVariable:
    return pv.Choice(["ash", "Birch", "cedar", ""])


def others() -> pv.RandomVariable:
    return pv.Choice(["cedar", "elm", "ash"])


COMPARISONS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]


@pytest.mark.parametrize("function", COMPARISONS, ids=lambda f: f.__name__)
def test_comparing_strings(function):
    check(lambda a: function(a, "cedar"), words())
    check(lambda a: function("cedar", a), words())
    check(lambda a: function(a, "not there"), words())
    check(function, words(), others())
    check(lambda a: function(a, a), words())


@pytest.mark.parametrize("function", [operator.eq, operator.ne], ids=lambda f: f.__name__)
def test_comparing_other_values(function):
    colours = pv.Choice(list(Colour))
    check(lambda a: function(a, Colour.RED), colours)
    check(lambda a: function(a, 1), colours)
    check(function, colours, pv.Choice([Colour.RED, "red"]))
    check(lambda a: function(a, (1, "x")), pv.Choice([(1, "x"), (2, "y")]))
    check(lambda a: function(a, None), pv.Choice([None, "a"]))
    levels = pv.Choice(list(Level))
    check(lambda a: function(a, "low"), levels)
    check(lambda a: function(a, Level.LOW), levels)
    check(function, levels, pv.Choice(["low", "other"]))
    mixed = pv.Choice(["a", 1, True, 2.0])
    check(function, mixed, pv.Choice(["b", 1.0, 2]))
    check(lambda a: function(a, 1), mixed)


def test_string_operations():
    check(lambda a, b: a + b, words(), others())
    check(lambda a: a + "!", words())
    check(lambda a: "!" + a, words())
    check(lambda a: a * 2, words())
    check(lambda a: a[:2], words())
    check(lambda a: a[0], others())
    check(lambda a, b: a + b == "ashelm", words(), others())


@pytest.mark.parametrize(
    "function",
    [
        lambda a: a.upper(),
        lambda a: a.startswith("c"),
        lambda a: a.replace("a", "o"),
        lambda a: a.count("e"),
        lambda a: a.isalpha(),
        lambda a: a.find("r"),
        lambda a: a.zfill(8),
        lambda a: a.upper().lower() == a,
    ],
)
def test_string_methods(function):
    check(function, words())


def test_enum_and_tuple_attributes():
    check(lambda a: a.name, pv.Choice(list(Colour)))
    check(lambda a: a.value, pv.Choice(list(Colour)))
    check(lambda a: a.value * 2 + 1, pv.Choice(list(Colour)))
    check(lambda a: a[0], pv.Choice([(1, "x"), (2, "y")]))
    check(lambda a: a[1], pv.Choice([(1, "x"), (2, "y")]))
    check(lambda a: a.count(1), pv.Choice([(1, 1), (2, 1)]))
    first, second = pv.Choice([(1, "x"), (2, "y")])
    assert first.node.levels is None
    assert second.node.levels == ("x", "y")


def test_ordering_tuples():
    pairs = pv.Choice([(1, "x"), (1, "y"), (0, "z")])
    check(lambda a: a < (1, "y"), pairs)
    check(lambda a, b: a < b, pairs, pv.Choice([(1, "x"), (0, "a")]))


def test_choosing_between_categories():
    check(lambda a, b: pv.where(a == "ash", a, b), words(), others())
    check(lambda a: pv.where(a == "ash", "yes", "no"), words())
    check(lambda a: pv.where(a == "ash", "yes", 0), words())


def test_arrays_of_categories():
    array = pv.Array(pv.Choice(["a", "b"]), 3)
    plain, equal, picked, joined, stacked = samples_of(
        array, array == "a", array[1], np.concatenate([array, array[:1]]), np.stack([array, array])
    )
    for values, same, one, longer, both in zip(plain, equal, picked, joined, stacked, strict=True):
        assert same.tolist() == [value == "a" for value in values]
        assert one == values[1]
        assert longer.tolist() == [*values, values[0]]
        assert both.tolist() == [values.tolist()] * 2
    matches = samples_of(array, array == ["a", "b", "a"])
    for values, same in zip(*matches, strict=True):
        assert same.tolist() == [value == wanted for value, wanted in zip(values, ["a", "b", "a"], strict=True)]


def test_lists_of_different_categories_share_levels():
    column = pv.Records(2, lambda i: pv.Row(name=pv.Choice(["a", "b"]) if i else "c")).name
    assert {value for row in samples_of(column)[0] for value in row} == {"a", "b", "c"}


def test_lengths():
    assert len(pv.Choice(["ab", "cd"])) == 2
    with pytest.raises(pv.Untraceable, match="len"):
        len(words())
    with pytest.raises(TypeError):
        len(pv.Normal(0, sd=1))


@pytest.mark.parametrize(
    "attempt",
    [
        lambda a: a - 1,
        lambda a: abs(a),
        lambda a: a < 3,
        lambda a: a + pv.Normal(0, sd=1),
        lambda a: a == pv.Normal(0, sd=1),
        lambda a: "a" in a,
        lambda a: np.sum(pv.Array(a, 2)),
        lambda a: a.astype(float),
        lambda a: bool(a),
        lambda a: a.startswith(a),
    ],
)
def test_what_categories_cannot_do_is_refused(attempt):
    with pytest.raises(TypeError):
        attempt(words())


def test_no_attribute_that_values_lack():
    with pytest.raises(AttributeError):
        words().no_such_method  # noqa: B018
    with pytest.raises(AttributeError):
        pv.Normal(0, sd=1).upper  # noqa: B018


def test_nan_is_one_value_among_numbers():
    codes, support = Batch.of_values([math.nan, 1.0, math.nan]).factorized()
    assert codes[0] == codes[2] != codes[1]
    assert len(support) == 2


def test_there_is_one_leaf_also_after_a_journey_between_processes():
    structure, leaves = flatten({"a": [1, 2], "b": 3})
    returned = pickle.loads(pickle.dumps(structure))
    assert returned == structure
    assert returned.build(leaves) == {"a": [1, 2], "b": 3}
    batch = pickle.loads(pickle.dumps(Batch.of_values([1, 2, 3])))
    assert batch.numbers().tolist() == [1, 2, 3]
