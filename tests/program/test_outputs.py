"""Outputs of any kind: containers that cannot be dictionary keys, frames and series, compared by value."""

import dataclasses
from collections import Counter, namedtuple

import numpy as np
import pandas as pd
import polars as pl
import pytest

import privug as pv
from privug.model.values import key_of, shown_key
from privug.program.outputs import settled

Point = namedtuple("Point", ["x", "y"])


@dataclasses.dataclass
class Unhashable:
    left: int
    right: list


def shuffled_dict(x):
    return {"a": x // 2, "b": 1} if x % 2 else {"b": 1, "a": x // 2}


OUTPUTS = {
    "list in tuple": (lambda x: (str(x), [x // 2, str(x)]), lambda x: (str(x), (x // 2, str(x)))),
    "set in dict": (lambda x: {"a": {x // 2, int(str(x // 2))}}, lambda x: (("a", frozenset({x // 2})),)),
    "dict in list": (lambda x: [{"n": x // 2, "s": str(x // 3)}], lambda x: ((("n", x // 2), ("s", str(x // 3))),)),
    "array in tuple": (lambda x: (str(x // 4), np.array([x // 2, 1])), lambda x: (str(x // 4), (x // 2, 1))),
    "named tuple": (lambda x: Point(str(x // 2), [x // 3]), lambda x: Point(str(x // 2), (x // 3,))),
    "dataclass": (lambda x: Unhashable(int(str(x)), [x // 2]), lambda x: (("left", x), ("right", (x // 2,)))),
    "NaN": (lambda x: (str(hash(x // 4)), [float("nan")]), None),
    "bytearray": (lambda x: bytearray([int(str(x // 2))]), lambda x: bytes([x // 2])),
    "generator": (lambda x: (str(x // 2), (c for c in str(x // 2))), lambda x: (str(x // 2), (str(x // 2),))),
    "NumPy number": (lambda x: [np.int64(int(str(x // 2))), np.float64(0.5)], lambda x: (x // 2, 0.5)),
}


@pytest.mark.parametrize("engine", ["exact", "sample"])
@pytest.mark.parametrize("case", OUTPUTS)
def test_values_that_cannot_be_keys_have_a_distribution(case, engine):
    program, shown = OUTPUTS[case]
    result = pv.Attack(program, {"x": pv.DiscreteUniform(0, 7)}, "x").run(engine=engine, samples=500)
    found = result.prediction.distribution()
    if shown is None:
        assert sorted(float(share) for share in found.values()) == pytest.approx([0.5, 0.5], abs=0.1)
        return
    expected = {key: count / 8 for key, count in Counter(map(shown, range(8))).items()}
    assert found.keys() == expected.keys()
    for key, share in expected.items():
        assert share in found[key].widened(2)
    str(result)


@pytest.mark.parametrize("engine", ["exact", "sample"])
def test_dicts_in_another_order_are_other_values(engine):
    attack = pv.Attack(lambda x: (str(x // 2), shuffled_dict(x)), {"x": pv.DiscreteUniform(0, 7)}, "x")
    found = attack.run(engine=engine, samples=500).prediction.distribution()
    assert sorted(key[0] for key in found) == ["0", "0", "1", "1", "2", "2", "3", "3"]
    assert all(0.125 in share.widened(2) for share in found.values())


FRAMES = {
    "series": (lambda x: pd.Series([x, x + 1]), lambda x: [x, x + 1]),
    "labelled series": (lambda x: pd.Series([x, None], index=["a", "b"]), lambda x: {"a": x, "b": None}),
    "label twice": (lambda x: pd.Series([x, 1], index=["a", "a"]), lambda x: [("a", x), ("a", 1)]),
    "counts": (lambda x: pd.Series(list("ab" * x)).value_counts(), lambda x: {"a": x, "b": x} if x else {}),
    "frame": (lambda x: pd.DataFrame({"a": [x], "b": ["u"]}), lambda x: {"a": [x], "b": ["u"]}),
    "labelled frame": (lambda x: pd.DataFrame({"a": [x]}, index=["r"]), lambda x: {"a": {"r": x}}),
    "grouped": (lambda x: pd.DataFrame({"g": [1, 1], "v": [x, 2]}).groupby("g").sum(), lambda x: {"v": {1: x + 2}}),
    "index": (lambda x: pd.Index([x, str(x)]), lambda x: [x, str(x)]),
    "categorical": (lambda x: pd.Categorical([str(x)]), lambda x: [str(x)]),
    "missing": (lambda x: [pd.NA, pd.NaT, str(x)], lambda x: [None, None, str(x)]),
    "polars frame": (lambda x: pl.DataFrame({"a": [x], "b": [None]}), lambda x: {"a": [x], "b": [None]}),
    "polars series": (lambda x: pl.Series([x, x]), lambda x: [x, x]),
    "lazy frame": (lambda x: pl.LazyFrame({"a": [x]}), lambda x: {"a": [x]}),
    "frame in tuple": (lambda x: (str(x), pd.Series([x])), lambda x: (str(x), [x])),
}


@pytest.mark.parametrize("case", FRAMES)
def test_frames_become_plain_values_and_are_compared_by_them(case):
    program, plain = FRAMES[case]
    for x in range(5):
        assert settled(program(x)) == plain(x)
    attack = pv.Attack(program, {"x": pv.DiscreteUniform(0, 4)}, "x")
    predicted = attack.run().prediction
    expected = {shown_key(plain(x)) for x in range(5)}
    assert set(predicted.distribution()) == expected
    for observe in (pv.equals(program(3)), pv.equals(plain(3)), pv.such_that(lambda output: output == plain(3))):
        agreeing = {x for x in range(5) if plain(x) == plain(3)}
        assert set(attack.run(observe).posterior.distribution()) == agreeing


def test_cells_of_a_frame_are_observed_by_their_names():
    def table(x, y):
        return pd.DataFrame({"city": ["Oslo", "Bergen"], "n": [x, y]}).set_index("city")

    attack = pv.Attack(table, {"x": pv.DiscreteUniform(0, 4), "y": pv.DiscreteUniform(0, 4)}, "x")
    assert set(attack.run({"n": {"Oslo": pv.between(1, 2)}}).posterior.distribution()) == {1, 2}


def test_a_frame_as_the_secret():
    attack = pv.Attack(lambda x: x % 2, {"x": pv.DiscreteUniform(0, 5)}, lambda x: pd.Series([x]))
    assert set(attack.run(pv.equals(1)).posterior.distribution()) == {(1,), (3,), (5,)}


def test_equal_values_have_equal_keys_and_others_do_not():
    equal = [
        ({"a": 1, "b": [2]}, {"a": 1, "b": [2]}),
        ([{1, 2}], [{2, 1}]),
        ((float("nan"), [1]), (float("nan"), [1])),
        (np.array([1, 2]), np.array([1.0, 2.0])),
        ([1, (2,)], (1, np.array([2]))),
        (Unhashable(1, [2]), Unhashable(1, [2])),
    ]
    assert all(key_of(one) == key_of(other) for one, other in equal)
    different = [({"a": 1, "b": [2]}, {"b": [2], "a": 1})]
    different += [([1], ([1],)), ({"a": 1}, {"a": 2}), (np.array([[1, 2]]), np.array([1, 2])), ({1}, {2})]
    assert all(key_of(one) != key_of(other) for one, other in different)


def test_what_has_neither_hash_nor_parts_is_refused():
    class Odd:
        __hash__ = None

    with pytest.raises(pv.PrivugError, match="equals nothing but itself"):
        pv.Attack(lambda x: Odd() if str(x) else 1, {"x": pv.Bernoulli(0.5)}, "x").run().prediction.distribution()
