"""Conditional tables and the monad: given, bind and unit."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

import privug as pv
from privug.model.batch import Column
from privug.model.plan import Plan

DRAWS = 20_000
LEAST_P_VALUE = 1e-4
STANDARD_ERRORS = 5


def draws(*variables: pv.RandomVariable, samples: int = DRAWS, seed: int = 7) -> list[np.ndarray]:
    return Plan([variable.node for variable in variables]).run(samples, np.random.default_rng(seed))


def decoded(*variables: pv.RandomVariable) -> list[Any]:
    columns = [Column(array, v.node.levels).decoded() for array, v in zip(draws(*variables), variables, strict=True)]
    return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))


def assert_shares(sample: list[Any], shares: dict[Any, float]) -> None:
    assert math.isclose(sum(shares.values()), 1.0)
    assert set(sample) <= set(shares)
    for value, share in shares.items():
        error = math.sqrt(share * (1 - share) / len(sample))
        assert abs(sample.count(value) / len(sample) - share) <= STANDARD_ERRORS * error, value


def assert_follows(sample: np.ndarray, cdf: Any) -> None:
    assert stats.kstest(sample, cdf).pvalue > LEAST_P_VALUE


def test_given_of_one_family_is_the_mixture():
    ill, heat = draws(ill := pv.Bernoulli(0.2), pv.given(ill, {0: pv.Normal(36.8, sd=0.3), 1: pv.Normal(38.5, sd=0.7)}))
    assert_follows(heat[ill == 0], stats.norm(36.8, 0.3).cdf)
    assert_follows(heat[ill == 1], stats.norm(38.5, 0.7).cdf)


def test_given_of_several_families_is_the_mixture():
    x = pv.Choice(["n", "u", "c"], p=[0.5, 0.3, 0.2])
    code, value = draws(x, pv.given(x, {"u": pv.Uniform(10, 20), "n": pv.Normal(0, sd=1), "c": 7}))
    assert_follows(value[code == 0], stats.norm(0, 1).cdf)
    assert_follows(value[code == 1], stats.uniform(10, 10).cdf)
    assert (value[code == 2] == 7).all()


def test_given_discrete_table_joint():
    x = pv.DiscreteUniform(1, 3)
    y = pv.given(x, {3: pv.Choice([1, 2], p=[0.1, 0.9]), 1: pv.Choice([1, 2]), 2: pv.Choice([2, 5])})
    expected = {(1, 1): 1 / 6, (1, 2): 1 / 6, (2, 2): 1 / 6, (2, 5): 1 / 6, (3, 1): 0.1 / 3, (3, 2): 0.9 / 3}
    assert_shares(decoded(x, y), expected)


def test_given_strings_by_strings():
    x = pv.Choice(["a", "b"])
    y = pv.given(x, {"a": pv.Choice(["u", "v"], p=[0.25, 0.75]), "b": "v"})
    assert_shares(decoded(x, y), {("a", "u"): 0.125, ("a", "v"): 0.375, ("b", "v"): 0.5})


@pytest.mark.parametrize("keys", [(False, True), (0, 1), (0.0, 1.0)])
def test_given_matches_equal_numbers_of_any_type(keys):
    x = pv.Bernoulli(0.5)
    known, value = draws(x, pv.given(x, {keys[0]: 10, keys[1]: 20}))
    assert (value == 10 + 10 * known).all()


def test_given_a_bool():
    x = pv.Normal(0, sd=1)
    known, value = draws(x, pv.given(x > 0, {True: 1, False: -1}))
    assert (value == np.sign(known)).all()


def test_given_rows_stay_together():
    x = pv.Bernoulli(0.5)
    row = pv.given(x, {0: pv.Row(name="Ann", age=30), 1: pv.Row(name=pv.Choice(["Bob", "Cid"]), age=40)})
    assert_shares(decoded(row.name, row.age), {("Ann", 30): 0.5, ("Bob", 40): 0.25, ("Cid", 40): 0.25})


def test_given_an_entry_computed_elsewhere_is_that_quantity():
    x, ann, bob = pv.Bernoulli(0.5), pv.Normal(0, sd=1) + 1, pv.Normal(5, sd=1) * 2
    which, first, second, chosen = draws(x, ann, bob, pv.given(x, {0: ann, 1: bob}))
    assert (chosen == np.where(which == 0, first, second)).all()


def test_given_arrays():
    x = pv.Bernoulli(0.5)
    known, value = draws(x, pv.given(x, {0: [1.0, 2.0], 1: pv.Array(pv.Uniform(5, 6), 2)}), samples=500)
    assert value.shape == (500, 2)
    assert (value[known == 0] == [1.0, 2.0]).all()
    assert (value[known == 1] >= 5).all()


def branching(v: int) -> pv.RandomVariable:
    return pv.Choice([v, v + 1], p=[0.25, 0.75]) if v > 0 else pv.Constant(10)


def traceable(v: Any) -> Any:
    return pv.Binomial(2, 0.25 + v / 4)


PRIOR = pv.Choice([0, 1, 2], p=[0.5, 0.3, 0.2])
EXACT_PRIOR = {0: 0.5, 1: 0.3, 2: 0.2}


def exact_branching(v: int) -> dict[int, float]:
    return {v: 0.25, v + 1: 0.75} if v > 0 else {10: 1.0}


def exact_traceable(v: int) -> dict[int, float]:
    return {k: float(stats.binom(2, 0.25 + v / 4).pmf(k)) for k in range(3)}


def exact_bind(distribution: dict[Any, float], function: Any) -> dict[Any, float]:
    result: dict[Any, float] = {}
    for value, share in distribution.items():
        for outcome, inner in function(value).items():
            result[outcome] = result.get(outcome, 0.0) + share * inner
    return result


@pytest.mark.parametrize(("function", "exact"), [(branching, exact_branching), (traceable, exact_traceable)])
def test_bind_against_exact_distribution(function, exact):
    assert_shares(decoded(pv.bind(PRIOR, function)), exact_bind(EXACT_PRIOR, exact))


@pytest.mark.parametrize(("function", "exact"), [(branching, exact_branching), (traceable, exact_traceable)])
@pytest.mark.parametrize("value", [0, 1])
def test_left_unit(function, exact, value):
    assert_shares(decoded(pv.bind(pv.unit(value), function)), exact(value))
    assert_shares(decoded(function(value)), exact(value))


@pytest.mark.parametrize("distribution", [PRIOR, pv.Choice(["a", "b"]), pv.Poisson(3), pv.Normal(0, sd=1)])
def test_right_unit(distribution):
    first, second = draws(distribution, pv.bind(distribution, pv.unit), samples=100)
    assert (first == second).all()


def test_right_unit_of_a_branching_function():
    assert_shares(decoded(pv.bind(PRIOR, lambda v: pv.unit(v) if v > 0 else pv.unit(0))), EXACT_PRIOR)


@pytest.mark.parametrize(
    ("inner", "exact_inner", "outer", "exact_outer"),
    [
        (branching, exact_branching, lambda v: pv.Choice([v, -v]), lambda v: {v: 0.5, -v: 0.5}),
        (traceable, exact_traceable, branching, exact_branching),
    ],
)
def test_associativity(inner, exact_inner, outer, exact_outer):
    outer_of = lambda v: outer(v) if isinstance(v, int) else pv.bind(v, outer)
    expected = exact_bind(exact_bind(EXACT_PRIOR, exact_inner), exact_outer)
    nested = pv.bind(PRIOR, lambda v: pv.bind(inner(v), outer_of))
    assert_shares(decoded(nested), expected)
    stepwise = {v: pv.bind(inner(v), outer_of) for v in EXACT_PRIOR}
    assert_shares(decoded(pv.given(PRIOR, stepwise)), expected)


def test_bind_on_poisson_with_a_branching_function():
    sample = decoded(pv.bind(pv.Poisson(2), lambda n: pv.Binomial(n, 0.5) if n % 2 else pv.Constant(-1)))
    even = sum(stats.poisson(2).pmf(n) for n in range(0, 60, 2))
    odd = {k: sum(stats.poisson(2).pmf(n) * stats.binom(n, 0.5).pmf(k) for n in range(1, 60, 2)) for k in range(8)}
    shares = {-1: float(even), **{k: float(p) for k, p in odd.items()}}
    rest = 1 - sum(shares.values())
    assert_shares([k if k < 8 else "more" for k in sample], {**shares, "more": max(rest, 0.0)})


def test_bind_on_continuous_with_a_branching_function():
    x = pv.Uniform(0, 1)
    y = pv.bind(x, lambda v: pv.Uniform(0, 1) if v < 0.3 else pv.Uniform(10, 11))
    known, value = draws(x, y, samples=2000)
    assert_follows(value[known < 0.3], stats.uniform(0, 1).cdf)
    assert_follows(value[known >= 0.3], stats.uniform(10, 1).cdf)


def test_bind_that_only_computes_parameters_is_traced():
    sample = draws(pv.bind(pv.Normal(0, sd=2), lambda mean: pv.Normal(mean, sd=1)))[0]
    assert_follows(sample, stats.norm(0, math.sqrt(5)).cdf)


def test_bind_through_a_dictionary():
    table = {0: pv.Normal(0, sd=1), 1: pv.Normal(100, sd=1)}
    known, value = draws(x := pv.Bernoulli(0.5), pv.bind(x, lambda v: table[v]))
    assert_follows(value - 100 * known, stats.norm(0, 1).cdf)


def test_bind_never_formats_a_random_variable():
    sample = decoded(pv.bind(pv.Bernoulli(0.5), lambda v: pv.Constant(f"{v}!")))
    assert_shares(sample, {"0!": 0.5, "1!": 0.5})


def test_bind_keeps_the_identity_of_quantities_that_were_there_before():
    ages = [pv.Normal(40, sd=1), pv.Normal(60, sd=2)]
    which, first, second, chosen = draws(x := pv.Bernoulli(0.5), *ages, pv.bind(x, lambda v: ages[v]))
    assert (chosen == np.where(which == 0, first, second)).all()


def test_bind_of_strings():
    x = pv.Choice(["a", "bb"])
    y = pv.bind(x, lambda s: pv.DiscreteUniform(1, len(s)))
    assert_shares(decoded(x, y), {("a", 1): 0.5, ("bb", 1): 0.25, ("bb", 2): 0.25})


def test_bind_returning_rows():
    x = pv.Choice([1, 2])
    row = pv.bind(x, lambda v: pv.Row(a=v, b=pv.Choice([v, 10])) if v > 1 else pv.Row(a=0, b=0))
    assert_shares(decoded(row.a, row.b), {(0, 0): 0.5, (2, 2): 0.25, (2, 10): 0.25})


@pytest.mark.parametrize(
    ("quantity", "shares"),
    [
        (lambda: pv.Bernoulli(0.5) + pv.Bernoulli(0.5), [0.25, 0.5, 0.25]),
        (lambda: pv.DiscreteUniform(0, 6) % 3, [3 / 7, 2 / 7, 2 / 7]),
        (lambda: pv.where(pv.Bernoulli(0.5), pv.DiscreteUniform(0, 2), 1), [1 / 6, 2 / 3, 1 / 6]),
        (lambda: pv.given(pv.Choice(["x", "y"], [0.2, 0.8]), {"x": 0, "y": 2}), [0.2, 0.0, 0.8]),
    ],
)
def test_bind_to_texts_of_a_quantity_computed_from_few_values(quantity, shares):
    text = pv.bind(quantity(), lambda value: "none" if value == 0 else "one" if value == 1 else "two")
    found = pv.Attack(lambda x: x, {"x": text}, "x").run(engine="exact").prior.distribution()
    expected = {name: share for name, share in zip(("none", "one", "two"), shares, strict=True) if share}
    assert {name: share.value for name, share in found.items()} == pytest.approx(expected)


def test_bind_reports_the_real_error():
    with pytest.raises(
        pv.PriorError, match="bind: the function, called with 0, failed with ZeroDivisionError"
    ) as caught:
        pv.bind(pv.Bernoulli(0.5), lambda v: pv.Normal(1 // 0, sd=1))
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


@pytest.mark.parametrize("value", [3, 2.5, "a", (1, 2), None])
def test_unit_is_certain(value):
    unit = pv.unit(value)
    if isinstance(unit, pv.RandomVariable):
        assert Column(draws(unit, samples=2)[0], unit.node.levels).decoded() == [value] * 2
    else:
        assert unit == value
