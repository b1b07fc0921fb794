"""Randomized response, binary and of several values."""

import math

import numpy as np
import pytest

import privug as pv
from privug import mechanisms as m


def same(x):
    return x


@pytest.mark.parametrize("count", [2, 3, 7])
def test_channel(count):
    values = [f"value {k}" for k in range(count)]
    mechanism = m.randomized_response(same, values=values, epsilon=1.2)
    joint = pv.Attack(mechanism, {"x": pv.Choice(values)}, "x").run(engine="exact").joint
    truth = math.exp(1.2) / (math.exp(1.2) + count - 1)
    assert pv.leakage.bayes_vulnerability(joint).value == pytest.approx(truth, abs=1e-12)
    assert pv.leakage.epsilon(joint).value == pytest.approx(1.2, abs=1e-9)


def test_truth_and_epsilon_agree():
    assert m.randomized_response(same, truth=0.75).guarantee.epsilon == pytest.approx(math.log(3))
    assert m.randomized_response(same, values=["a", "b", "c", "d"], truth=0.25).guarantee.epsilon == 0
    assert m.randomized_response(same, truth=1).guarantee.is_empty
    assert m.randomized_response(same, truth=1)(True) is True


def test_a_list_of_answers():
    mechanism = m.randomized_response(same, values=[0, 1], truth=0.75)
    for prior in (pv.Array(pv.Bernoulli(0.2), 3), [pv.Bernoulli(0.2) for _ in range(3)]):
        attack = pv.Attack(mechanism, {"x": prior}, lambda x: x[0], observe=pv.equals([1, 0, 0]))
        result = attack.run()
        assert result.engine.startswith("exact")
        assert result.posterior.mean().value == pytest.approx(0.2 * 0.75 / (0.2 * 0.75 + 0.8 * 0.25), abs=1e-12)
    assert set(mechanism(np.array([0, 1, 0, 1])).tolist()) <= {0, 1}


def test_counting_randomized_answers():
    """The number of yeses is sufficient for the share of them, not for one person."""

    def yeses(answers):
        return sum(m.randomized_response(same, values=[0, 1], truth=0.75)(answer) for answer in answers)

    attack = pv.Attack(yeses, {"answers": pv.Array(pv.Bernoulli(0.5), 4)}, lambda answers: answers[0])
    after = attack.run(observe=pv.equals(4)).posterior.mean()
    assert after.value == pytest.approx(0.75, abs=1e-12)


def test_bad_arguments():
    for options, words in (
        ({}, "exactly one of epsilon= and truth="),
        ({"epsilon": 1, "truth": 0.7}, "exactly one of"),
        ({"truth": 0.4}, "truth must be a number from 0.5 to 1"),
        ({"epsilon": 0}, "epsilon must be a finite number above 0"),
        ({"values": ["a"], "epsilon": 1}, "two or more different values"),
        ({"values": ["a", "a"], "epsilon": 1}, "two or more different values"),
        ({"values": "ab", "epsilon": 1}, "two or more different values"),
    ):
        with pytest.raises(pv.ArgumentError, match=words):
            m.randomized_response(same, **options)


def test_answers_that_are_no_values():
    with pytest.raises(pv.ProgramError, match="the answer 'c' is not one of the values"):
        m.randomized_response(same, values=["a", "b"], epsilon=1)("c")
    mechanism = m.randomized_response(same, values=["a", "b"], epsilon=1)
    attack = pv.Attack(mechanism, {"x": pv.Choice(["a", "b", "c"])}, "x")
    with pytest.raises(pv.PrivugError, match="the answer 'c' is not one of the values"):
        attack.run(samples=100)
