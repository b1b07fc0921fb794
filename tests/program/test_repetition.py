"""Whether programs that are only called are functions of their inputs, and what finding that out costs."""

import itertools
import sys
import time

import numpy as np
import pytest

import privug as pv
from privug.program.calls import ENOUGH_CALLS, FEWEST_PASSES
from privug.program.outputs import is_same

CALLS = itertools.count()  # an iterator cannot be put back, so that it counts all calls


def calls():
    return int(repr(CALLS).strip("count()"))


def counted(a):
    next(CALLS)
    return f"{a % 7}"


def test_states_are_called_three_times():
    before = calls()
    result = pv.Attack(counted, {"a": pv.DiscreteUniform(0, 6999)}, "a").run(engine="exact")
    assert float(pv.leakage.mutual_information(result.joint)) == pytest.approx(np.log2(7), abs=1e-12)
    assert calls() - before <= FEWEST_PASSES * 7000 + ENOUGH_CALLS


def test_few_states_are_called_more_often():
    before = calls()
    pv.Attack(counted, {"a": pv.DiscreteUniform(0, 9)}, "a").run(engine="exact")
    assert ENOUGH_CALLS <= calls() - before <= 3 * ENOUGH_CALLS


SERVER = (
    "import sys, json, random\nn = 0\nfor l in sys.stdin:\n    a = json.loads(l)['a']; n += 1; print({}, flush=True)"
)


@pytest.mark.parametrize(
    ("answer", "is_function"),
    [
        ("a % 3", True),
        ("a + random.randrange(1000) * (a == 70)", False),
        ("a + (n > 90)", False),
        ("n", False),
    ],
)
def test_programs_in_other_languages(answer, is_function):
    program = pv.External([sys.executable, "-c", SERVER.format(answer)])
    attack = pv.Attack(program, {"a": pv.DiscreteUniform(0, 99)}, "a")
    if is_function:
        assert attack.run(engine="exact").engine == "exact (finite)"
    else:
        with pytest.raises(pv.UnsuitableEngine, match="not a function of its inputs"):
            attack.run(engine="exact")
    program.close()


def test_clocks_are_noticed():
    attack = pv.Attack(lambda a: hash(a) + time.perf_counter_ns(), {"a": pv.DiscreteUniform(0, 99)}, "a")
    with pytest.raises(pv.UnsuitableEngine, match="not a function of its inputs"):
        attack.run(engine="exact")


def test_programs_of_libraries_are_never_taken_for_functions():
    hidden = pv.mechanisms.from_factory(lambda: lambda data: data // 2)
    attack = pv.Attack(hidden, {"data": pv.DiscreteUniform(0, 3)}, "data")
    with pytest.raises(pv.UnsuitableEngine, match="hidden in a library and may draw random numbers"):
        attack.run(engine="exact")
    assert attack.run(samples=200, seed=1).engine == "sample"


def test_secrets_and_predicates_are_held_to_it_too():
    made = itertools.count()
    unsteady = pv.Attack(lambda a: a, {"a": pv.DiscreteUniform(0, 9)}, lambda a: hash(a) + next(made))
    with pytest.raises(pv.UnsuitableEngine, match="the secret is not a function of its inputs"):
        unsteady.run(engine="exact")
    steady = pv.Attack(lambda a: str(hash(a)), {"a": pv.DiscreteUniform(0, 9)}, "a")
    with pytest.raises(pv.UnsuitableEngine, match="not a function of its inputs"):
        steady.run(observe=pv.such_that(lambda text: next(made) % 3 == 0), engine="exact")


NAN = float("nan")


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        (1, 1, True),
        (1, 1.0, False),
        (True, 1, False),
        (0.1 + 0.2, 0.3, False),
        (NAN, float("nan"), True),
        ([1, NAN], [1, NAN], True),
        ((1, 2), [1, 2], False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, False),
        ({"a": 1}, {"a": 2}, False),
        (np.array([1.0, NAN]), np.array([1.0, NAN]), True),
        (np.array([1, 2]), np.array([1, 3]), False),
        (frozenset({1}), frozenset({1}), True),
        ("a", "b", False),
    ],
)
def test_outputs_are_compared_to_the_last_bit(left, right, same):
    assert is_same(left, right) is same
