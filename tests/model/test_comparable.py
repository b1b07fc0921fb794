"""Outputs that equal nothing but themselves are refused; what is the same object in every call is not."""

import asyncio
import math
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import Enum
from fractions import Fraction

import numpy as np
import pytest

import privug as pv
from privug.model.structure import incomparable


class Plain:
    pass


class Equal:
    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return isinstance(other, Equal) and self.value == other.value

    def __hash__(self):
        return hash(self.value)


class Colour(Enum):
    RED = 1


@dataclass(eq=False)
class Pair:
    left: object


def top_level(a):
    return a


async def waiting():
    return 1


FINE = [
    1, 2.5, math.nan, True, None, "a", b"a", 1j, ..., (1, "a"), [1, [2]], {"a": 1}, {1, 2}, frozenset({1}), range(3),
    Colour.RED, date(2020, 1, 1), Decimal(1), Fraction(1, 2), np.float64(1), np.arange(3), Equal(1), Pair(1), top_level,
    len, math.sin, int, Plain, np.array([1, "a"], object), slice(1), NotImplemented,
]  # fmt: skip

SINGLE = [
    object, Plain, lambda: lambda: 1, lambda: (i for i in range(3)), lambda: Pair(object()), Exception, {}.values,
    lambda: [1].append, lambda: Equal(1).__hash__,
]  # fmt: skip
WRAPPED = {
    "alone": lambda value: value,
    "tuple": lambda value: (1, value),
    "list": lambda value: [[value]],
    "dict": lambda value: {"a": value},
    "key": lambda value: {Key(value): 1},
    "array": lambda value: np.array([value, None], object),
}


class Key(tuple):
    def __new__(cls, value):
        return super().__new__(cls, (value,))

    def __hash__(self):
        return 1


@pytest.mark.parametrize("value", FINE)
def test_values_that_can_be_told_apart(value):
    assert incomparable(value) is None
    assert incomparable([(value,)]) is None


@pytest.mark.parametrize("make", SINGLE)
@pytest.mark.parametrize("wrap", WRAPPED.values(), ids=WRAPPED)
def test_values_that_equal_nothing_but_themselves(make, wrap):
    assert incomparable(wrap(make())) is not None


@pytest.mark.parametrize("engine", ["exact", "sample", "auto"])
@pytest.mark.parametrize(
    "program",
    [
        lambda a: object(),
        lambda a: (a, object()),
        lambda a: {"a": [Plain()]},
        lambda a: lambda: a,
        lambda a: {str(a): {1: Exception(a)}},
        lambda a: waiting(),
    ],
)
def test_such_outputs_are_refused_by_every_engine(program, engine):
    attack = pv.Attack(program, {"a": pv.DiscreteUniform(0, 3)}, "a")
    with pytest.raises(pv.ProgramError, match="equals nothing but itself"):
        attack.run(engine=engine, samples=200, seed=1)


def test_such_secrets_are_refused():
    attack = pv.Attack(lambda a: a, {"a": pv.DiscreteUniform(0, 3)}, lambda a: (a, object()))
    with pytest.raises(pv.ProgramError, match="equals nothing but itself"):
        attack.run(samples=200, seed=1)
    with pytest.raises(pv.ArgumentError, match=r"outputs hold .*equals nothing but itself"):
        pv.Joint.from_samples([1, 2], [object(), object()])
    with pytest.raises(pv.ArgumentError, match=r"secrets hold .*equals nothing but itself"):
        pv.Joint.from_samples([object(), object()], [1, 2])


def test_objects_that_are_the_same_each_time_are_values():
    functions = [math.sin, math.cos]
    attack = pv.Attack(lambda a: functions[int(str(a)) % 2], {"a": pv.DiscreteUniform(0, 3)}, "a")
    result = attack.run()
    assert float(pv.leakage.mutual_information(result.joint)) == 1.0
    assert asyncio.run(waiting()) == 1
