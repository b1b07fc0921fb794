"""Weights may be numbers of any kind: what they mean does not depend on their type or their container."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest

import privug as pv

CERTAIN = {
    "whole numbers": [1, 0, 0],
    "bools": [True, False, False],
    "a tuple": (1, 0, 0),
    "a NumPy array": np.array([1, 0, 0]),
    "a NumPy array of bools": np.array([True, False, False]),
    "small NumPy numbers": [np.int8(1), np.uint8(0), np.float32(0)],
    "a pandas series": pd.Series([1, 0, 0], index=[7, 8, 9]),
    "a polars series": pl.Series([1, 0, 0]),
}
UNEVEN = {
    "floats": [0.5, 0.25, 0.25],
    "fractions": [Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)],
    "fractions and a whole number": [Fraction(1, 2), Fraction(1, 2), 0],
    "decimals": [Decimal("0.5"), Decimal("0.25"), Decimal("0.25")],
    "NumPy numbers": [np.float32(0.5), np.float64(0.25), np.float16(0.25)],
    "a pandas series": pd.Series([0.5, 0.25, 0.25]),
}
WEIGHTS = {**{f"certain, {k}": w for k, w in CERTAIN.items()}, **UNEVEN}
ENGINES = ["exact", "sample", "auto"]


def shares(quantity, engine):
    attack = pv.Attack(lambda a: a, prior={"a": quantity}, secret="a")
    found = attack.run(engine=engine, samples=2000, seed=1).posterior.distribution()
    return {value: share.widened(2.0) for value, share in found.items()}


def expected(weights):
    numbers = [float(weight) for weight in weights]
    return {value: weight for value, weight in enumerate(numbers) if weight > 0}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("weights", WEIGHTS.values(), ids=WEIGHTS)
def test_choices_and_mixtures_take_weights_of_any_kind(weights, engine):
    for quantity in (pv.Choice([0, 1, 2], p=weights), pv.Mixture([0, 1, 2], weights=weights)):
        found = shares(quantity, engine)
        assert found.keys() == expected(weights).keys()
        assert all(truth in found[value] for value, truth in expected(weights).items())


@pytest.mark.parametrize("weights", WEIGHTS.values(), ids=WEIGHTS)
def test_joints_and_beliefs_take_weights_of_any_kind(weights):
    joint = pv.Joint.from_channel(weights, [[1, 0], [0, 1], [Fraction(1, 2), Decimal("0.5")]])
    belief = pv.Belief.of([0, 1, 2], probabilities=weights)
    for found in (joint.secret.distribution(), belief.distribution()):
        assert {value: share.value for value, share in found.items() if share.value} == expected(weights)


def test_weights_that_are_random_may_be_whole_numbers():
    coin = pv.Bernoulli(0.25)
    assert {k: v.value for k, v in shares(pv.Choice(["no", "yes"], p=[1 - coin, coin]), "exact").items()} == {
        "no": 0.75,
        "yes": 0.25,
    }
    flag = coin == 1
    assert {k: v.value for k, v in shares(pv.Mixture([3, 4], weights=[~flag, flag]), "exact").items()} == {
        3: 0.75,
        4: 0.25,
    }


def test_weights_from_a_generator():
    found = shares(pv.Choice([0, 1], p=(weight / 4 for weight in (1, 3))), "exact")
    assert {value: share.value for value, share in found.items()} == {0: 0.25, 1: 0.75}


@pytest.mark.parametrize(
    "wrong", ["abc", b"abc", 3, {0.5, 0.25}, {0: 1.0}, [None, 1, 0], ["1", 0, 0], [1j, 0, 0], [10**400, 0, 0]]
)
def test_what_is_no_list_of_numbers_is_refused(wrong):
    with pytest.raises(pv.PriorError, match="Choice: p must be a list of"):
        pv.Choice([0, 1, 2], p=wrong)
    with pytest.raises(pv.PriorError, match="Mixture: weights must be a list of"):
        pv.Mixture([0, 1, 2], weights=wrong)
    with pytest.raises(pv.ArgumentError, match="from_channel"):
        pv.Joint.from_channel(wrong, [[1, 0], [0, 1], [0.5, 0.5]])
