"""What was surely meant otherwise is refused or warned of, with a word on what to write instead."""

import math
import warnings

import numpy as np
import pytest

import privug as pv


def attack(prior, program=lambda x: 0, secret="x"):
    return pv.Attack(program, prior={"x": prior}, secret=secret)


FORGOTTEN = {
    "an input": lambda make: attack(make),
    "in a list": lambda make: attack([pv.Bernoulli(0.5), make]),
    "in a tuple in a dict": lambda make: attack({"a": (1, make)}),
    "in a row": lambda make: pv.Row(age=make),
    "in a row made of a dict": lambda make: pv.Records(1, lambda i: {"age": make})[0],
    "a constant": lambda make: pv.Constant(make),
    "a value": lambda make: pv.Choice([make, 1]),
    "an entry of a table": lambda make: pv.given(pv.Bernoulli(0.5), {0: make, 1: 2}),
    "a component": lambda make: pv.Mixture([make, 1]),
    "a parameter": lambda make: pv.Normal(make, sd=1),
    "a named parameter": lambda make: pv.Normal(0, sd=make),
    "a variance": lambda make: pv.Normal(0, var=make),
}


@pytest.mark.parametrize("place", FORGOTTEN)
@pytest.mark.parametrize(
    "make", [pv.Uniform, pv.LogNormal, pv.Bernoulli, pv.Row, pv.Records, len, int, lambda: 1, np.sin]
)
def test_functions_and_classes_are_no_values(place, make):
    with pytest.raises(pv.ArgumentError, match=r"not a value: call it, such as "):
        FORGOTTEN[place](make)


@pytest.mark.parametrize("make", [pv.Uniform, pv.Bernoulli, pv.LogNormal, pv.Row])
def test_a_distribution_without_parentheses_makes_no_array_or_table(make):
    for table in (lambda: pv.Array(make, 3), lambda: pv.Records(3, make)):
        with pytest.raises(pv.PriorError, match=f"pv.{make.__name__}, not a value: call it"):
            table()


def test_functions_of_the_users_own_make_arrays_and_tables():
    assert len(pv.Array(lambda place: pv.Normal(place, sd=1), 3)) == 3
    assert len(pv.Records(3, lambda place: pv.Row(a=place))) == 3
    assert isinstance(pv.bind(pv.DiscreteUniform(1, 3), pv.Poisson), pv.RandomVariable)


WRONG_ARITY = {
    "Records": lambda f: pv.Records(3, f),
    "Array": lambda f: pv.Array(f, 3),
    "bind": lambda f: pv.bind(pv.Bernoulli(0.5), f),
    "property_of": lambda f: pv.leakage.property_of(f),
}


@pytest.mark.parametrize("name", WRONG_ARITY)
@pytest.mark.parametrize("function", [lambda: 1, lambda a, b: 1, lambda *, a: 1])
def test_functions_of_one_argument_take_one(name, function):
    with pytest.raises(pv.ArgumentError, match=rf"^{name}: .* must take one argument, but it is written as lambda\("):
        WRONG_ARITY[name](function)


@pytest.mark.parametrize("function", [lambda: 1, lambda a: 1, lambda a, b, c: 1])
def test_gains_are_functions_of_guess_and_secret(function):
    joint = pv.Joint.from_channel([0.5, 0.5], [[1, 0], [0, 1]])
    for use in (
        lambda: pv.leakage.g_vulnerability(joint, function),
        lambda: pv.leakage.g_leakage(joint, function),
        lambda: pv.leakage.distance(1, function),
    ):
        with pytest.raises(pv.ArgumentError, match=r"must take 2 arguments, but it is written as lambda\("):
            use()


REPEATED = {
    "a list": lambda: [pv.DiscreteUniform(18, 90)] * 20,
    "a tuple": lambda: (pv.Normal(0, sd=1),) * 3,
    "a nested list": lambda: [[pv.Bernoulli(0.5)] * 2] * 2,
    "a dict": lambda: dict.fromkeys("ab", pv.Choice(["x", "y"])),
}
APART = {
    "a comprehension": lambda: [pv.DiscreteUniform(18, 90) for _ in range(20)],
    "an array": lambda: pv.Array(pv.DiscreteUniform(18, 90), 20),
    "the same known value": lambda: [3] * 20,
    "equal distributions": lambda: [pv.Bernoulli(0.5), pv.Bernoulli(0.5)],
    "a row": lambda: pv.Row(**dict.fromkeys("ab", pv.Bernoulli(0.5))),
    "computed from one": lambda: [pv.Normal(0, sd=1) + place for place in range(3)],
}


@pytest.mark.parametrize("name", REPEATED)
def test_a_list_of_one_quantity_is_warned_of(name):
    with pytest.warns(pv.RepeatedQuantityWarning, match=r"prior\['x'\] holds one random quantity .*pv.Array.*for _ in"):
        attack(REPEATED[name](), secret=lambda x: x[0] if not isinstance(x, dict) else x["a"])


@pytest.mark.parametrize("name", APART)
def test_other_lists_are_not(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        attack(APART[name]())


def test_one_quantity_in_two_inputs_is_shared_on_purpose():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        coin = pv.Bernoulli(0.5)
        both = pv.Attack(lambda a, b: a + b, prior={"a": coin, "b": [coin, 1]}, secret="a")
        both = pv.Attack(lambda a, b: a == b, prior={"a": coin, "b": coin}, secret="a")
    assert list(both.run(engine="exact").prediction.distribution()) == [True]


@pytest.mark.parametrize(("mean", "sd"), [(50_000, 20_000), (50, 20), (800, 1), (-50_000, 1), (0, 30)])
def test_parameters_of_a_logarithm_that_are_not_are_refused(mean, sd):
    with pytest.raises(pv.PriorError, match=r"of the logarithm.*pv\.LogNormal\.of_mean\(mean, sd=\.\.\.\)"):
        pv.LogNormal(mean, sd=sd)


@pytest.mark.parametrize(("mean", "sd"), [(50_000, 20_000), (1.0, 3.0), (1e-6, 1e-9), (7, 7)])
def test_a_log_normal_quantity_of_given_mean_and_deviation(mean, sd):
    for quantity in (pv.LogNormal.of_mean(mean, sd=sd), pv.LogNormal.of_mean(mean, var=sd**2)):
        belief = attack(quantity, lambda x: x).run(engine="exact").prior
        assert belief.mean().value == pytest.approx(mean, rel=1e-9)
        assert belief.std().value == pytest.approx(sd, rel=1e-6)
        variance = math.log(1 + (sd / mean) ** 2)
        assert belief.median().value == pytest.approx(mean * math.exp(-variance / 2), rel=1e-9)


def test_a_log_normal_quantity_of_random_mean():
    quantity = pv.LogNormal.of_mean(pv.Choice([10.0, 20.0]), sd=1)
    result = attack(quantity, lambda x: x).run(engine="sample", samples=20_000, seed=1)
    assert 15.0 in result.prior.mean().widened(2.0)
    assert pv.LogNormal.of_mean([1, 2], sd=[1, 2]).shape == (2,)


@pytest.mark.parametrize("wrong", [{"mean": -1, "sd": 1}, {"mean": 0, "sd": 1}, {"mean": 1, "sd": 0}, {"mean": 1}])
def test_bad_parameters_of_a_given_mean(wrong):
    with pytest.raises(pv.PriorError, match=r"LogNormal\.of_mean"):
        pv.LogNormal.of_mean(**wrong)


VANISHING = {
    "Normal": lambda: pv.Normal(1e300, sd=1),
    "Normal of a whole number": lambda: pv.Normal(2**60, sd=1),
    "Normal in an array": lambda: pv.Normal([0.0, 1e300], sd=1.0),
    "TruncatedNormal": lambda: pv.TruncatedNormal(1e30, sd=1),
    "StudentT": lambda: pv.StudentT(3, 1e30, 1),
    "Cauchy": lambda: pv.Cauchy(-1e30, 1),
    "Laplace": lambda: pv.Laplace(1e30, 1),
    "Uniform": lambda: pv.Uniform(1e300, 1e300 * (1 + 1e-15)),
}


@pytest.mark.parametrize("name", VANISHING)
def test_a_spread_that_floats_do_not_resolve_is_refused(name):
    with pytest.raises(pv.PriorError, match=r"vanishes beside .* another origin"):
        VANISHING[name]()


def test_spreads_that_floats_resolve_are_taken():
    for quantity in (pv.Normal(1.7e9, sd=1e-3), pv.Uniform(1e15, 1e15 + 100), pv.Normal(0, sd=1e-200)):
        assert isinstance(quantity, pv.RandomVariable)
