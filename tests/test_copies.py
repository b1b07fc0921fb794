"""Copies and pickles: one object stays one quantity, and what was shared is shared."""

import builtins
import copy
import importlib
import math
import pickle
import subprocess
import sys

import numpy as np
import pytest

import privug as pv
from privug.model.plan import Plan


def total(a, b):
    return a + b


def first(a, b):
    return a


def is_large(value):
    return value > 1


def row(place):
    return pv.Row(x=pv.DiscreteUniform(0, 3))


def ways():
    return [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))]


def drawn(*variables):
    return Plan([variable.node for variable in variables]).run(50, np.random.default_rng(7))


NORMAL = pv.Normal(0, sd=1)
VARIABLES = {
    "Normal": NORMAL,
    "Choice": pv.Choice(["a", "b"], p=[0.2, 0.8]),
    "mixed Choice": pv.Choice([1, 2.5]),
    "DiscreteGaussian": pv.DiscreteGaussian(sd=2),
    "Mixture": pv.Mixture([pv.Normal(0, sd=1), 1]),
    "MvNormal": pv.MvNormal([0, 1], [[1, 0], [0, 1]]),
    "Array": pv.Array(pv.Poisson(3), 4),
    "given": pv.given(pv.Bernoulli(0.5), {0: pv.Normal(0, sd=1), 1: 2}),
    "bind": pv.bind(pv.Uniform(0, 1), lambda p: pv.Bernoulli(p)),
    "bind by calls": pv.bind(pv.Uniform(0, 1), lambda p: pv.Bernoulli(0.1) if p < 0.5 else pv.Bernoulli(0.9)),
    "expression": round(np.sqrt(abs(NORMAL)) + 1, 2),
    "where": pv.where(NORMAL > 0, 1, 0),
    "label": pv.Choice(["a", "b"]) + "x",
    "random parameter": pv.Normal(pv.Uniform(0, 1), sd=1),
}


@pytest.mark.parametrize("name", VARIABLES)
def test_random_variables(name):
    variable = VARIABLES[name]
    assert copy.copy(variable) is variable
    assert copy.deepcopy(variable) is variable
    read = pickle.loads(pickle.dumps(variable))
    assert repr(read) == repr(variable)
    assert all(np.array_equal(one, other) for one, other in zip(drawn(read), drawn(variable), strict=True))


def test_what_is_shared_stays_shared():
    x = pv.Normal(0, sd=1)
    pair = [x, x + 1, {"again": x}]
    for again in ways():
        one, more, rest = again(pair)
        values = drawn(one, more, rest["again"])
        assert np.array_equal(values[0] + 1, values[1])
        assert np.array_equal(values[0], values[2])


def test_a_copy_in_the_same_question_is_the_same_quantity():
    x = pv.Bernoulli(0.5)
    attack = pv.Attack(lambda a, b: a == b, prior={"a": x, "b": copy.deepcopy(x)}, secret="a")
    assert list(attack.run(engine="exact").prediction.distribution()) == [True]


def test_long_chains_can_be_written():
    chain = pv.Bernoulli(0.5)
    for _ in range(1500):
        chain = chain + 1
    assert np.array_equal(drawn(pickle.loads(pickle.dumps(chain)))[0], drawn(chain)[0])


def attack(**options):
    prior = {"a": pv.DiscreteUniform(0, 3), "b": pv.DiscreteUniform(0, 3)}
    return pv.Attack(total, prior=prior, secret="a", questions={"it is large": is_large}, **options)


ATTACKS = {
    "functions with names": lambda: attack(),
    "lambdas": lambda: pv.Attack(
        lambda a, b: a + b,
        prior={"a": pv.DiscreteUniform(0, 3), "b": pv.DiscreteUniform(0, 3)},
        secret=lambda a, b: a,
        questions={"it is large": lambda value: value > 1},
    ),
    "a mechanism": lambda: pv.Attack(
        pv.mechanisms.discrete_laplace(total, sensitivity=1, epsilon=1),
        prior={"a": pv.DiscreteUniform(0, 3), "b": pv.DiscreteUniform(0, 3)},
        secret="a",
        questions={"it is large": is_large},
    ),
    "facts": lambda: attack(assume=lambda a, b: a <= b),
}


ASKED = [(name, "sample") for name in ATTACKS] + [("functions with names", "exact"), ("facts", "exact")]


@pytest.mark.parametrize(("name", "engine"), ASKED)
def test_attacks_and_results_say_the_same(name, engine):
    asked = ATTACKS[name]()
    result = asked.run(pv.equals(3), engine=engine, samples=500, seed=2)
    truth = result.posterior.distribution()
    for again in ways():
        assert again(asked).run(pv.equals(3), engine=engine, samples=500, seed=2).posterior.distribution() == truth
        other = again(result)
        assert other.posterior.distribution() == truth
        assert other.engine == result.engine


def test_tables_of_named_and_nameless_functions():
    for make in (row, lambda place: pv.Row(x=pv.DiscreteUniform(0, 3))):
        for again in ways():
            table = again(pv.Records(3, make))
            found = pv.Attack(lambda rows: sum(r.x for r in rows), prior={"rows": table}, secret=lambda rows: rows[0].x)
            assert found.run(engine="exact").prediction.mean().value == pytest.approx(4.5)


OTHERS = {
    "near": pv.near(3, within=1),
    "such_that": pv.such_that(math.isfinite),
    "such_that of a lambda": pv.such_that(lambda value: value > 0),
    "equals with a distance": pv.equals(3, distance=lambda value: abs(value - 3)),
    "Estimate": pv.Estimate(1.0, 0.5, 1.5),
    "Joint": pv.Joint.from_channel([0.5, 0.5], [[1, 0], [0, 1]]),
    "Belief": pv.Belief.of([1, 2.5]),
    "Channel": pv.leakage.Channel([[1, 0], [0, 1]]),
    "Row": pv.Row(a=1, b="x"),
    "a mechanism": pv.mechanisms.laplace(sum, sensitivity=1, epsilon=1),
    "a mechanism of a lambda": pv.mechanisms.laplace(lambda ages: sum(ages), sensitivity=1, epsilon=1),
    "several mechanisms": pv.mechanisms.together(
        pv.mechanisms.laplace(sum, sensitivity=1, epsilon=1), pv.mechanisms.laplace(len, sensitivity=1, epsilon=1)
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_objects(name):
    for again in ways():
        read = again(OTHERS[name])
        assert type(read) is type(OTHERS[name])
        assert str(read).split(" at 0x")[0] == str(OTHERS[name]).split(" at 0x")[0]


def test_without_cloudpickle_a_lambda_is_refused_in_words(monkeypatch):
    import_module = importlib.import_module

    def without(name, *rest):
        if name == "cloudpickle":
            raise ImportError(name)
        return import_module(name, *rest)

    monkeypatch.setattr(importlib, "import_module", without)
    asked = ATTACKS["lambdas"]()
    assert copy.deepcopy(asked) is asked
    with pytest.raises(pv.ArgumentError, match=r"cannot be pickled: .* define it by `def`.* or install cloudpickle"):
        pickle.dumps(asked)
    assert pickle.loads(pickle.dumps(ATTACKS["functions with names"]())).name == "total"


def test_what_a_nameless_function_computed_is_refused_in_words():
    root = pv.lift(lambda x: math.sqrt(x))(pv.Uniform(0, 1))
    with pytest.raises(pv.ArgumentError, match="a random variable cannot be pickled"):
        pickle.dumps(root)


def test_a_pickle_is_read_by_another_process(tmp_path):
    path = tmp_path / "attack.pickle"
    prior = {"iterable": [pv.DiscreteUniform(0, 3), pv.LogNormal(0, sd=1)]}
    path.write_bytes(pickle.dumps(pv.Attack(builtins.sum, prior=prior, secret=["iterable"])))
    code = "import pickle, sys; print(pickle.load(open(sys.argv[1], 'rb')))"
    outcome = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert outcome.stdout.strip() == "<Attack 'sum' on iterable>"
