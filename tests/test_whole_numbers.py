"""Whole numbers stay whole numbers: beyond 2**53, where floats do not tell neighbours apart, nothing is rounded."""

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

import privug as pv
from privug.model.integers import Comparison, apart, bound_beside

LIMIT = 2**53
BASES = [LIMIT, 2**60 + 1, -LIMIT - 9, 2**62 - 7]
PRIORS = {
    "DiscreteUniform": lambda values: pv.DiscreteUniform(values[0], values[-1]),
    "Choice": pv.Choice,
    "Empirical": pv.Empirical,
    "Mixture": pv.Mixture,
}
OBSERVATIONS = {
    "nothing": (lambda base: None, lambda value: True),
    "between": (lambda base: pv.between(base, base + 3), lambda value: 0 <= value <= 3),
    "near": (lambda base: pv.near(base + 3, within=1), lambda value: 2 <= value <= 4),
    "near, between numbers": (lambda base: pv.near(base + 3, within=1.5), lambda value: 2 <= value <= 4),
    "equals": (lambda base: pv.equals(base + 5), lambda value: value == 5),
    "such_that": (lambda base: pv.such_that(lambda value: value > base + 4), lambda value: value > 4),
}
PROGRAMS = {"traced": lambda a: a, "python": lambda a: int(str(a))}


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("seen", OBSERVATIONS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_every_value_is_told_from_its_neighbours(base, prior, seen, program):
    values = list(range(base, base + 8))
    observation, agrees = OBSERVATIONS[seen]
    attack = pv.Attack(PROGRAMS[program], prior={"a": PRIORS[prior](values)}, secret="a")
    result = attack.run(observe=observation(base), engine="exact")
    left = [value for value in values if agrees(value - base)]
    found = {value: share.value for value, share in result.posterior.distribution().items()}
    assert found == pytest.approx({value: 1 / len(left) for value in left}, abs=1e-12)
    assert result.posterior.quantile(0.5).value == left[(len(left) + 1) // 2 - 1]
    assert result.posterior.std().value == pytest.approx(np.std([value - base for value in left]), abs=1e-9)
    mean = Fraction(sum(left), len(left))
    assert abs(Fraction(result.posterior.mean().value) - mean) <= Fraction(math.ulp(float(mean)))


@pytest.mark.parametrize("engine", ["sample", "rare"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_sampling_engines_tell_neighbours_apart(engine, program):
    attack = pv.Attack(PROGRAMS[program], prior={"a": pv.DiscreteUniform(LIMIT, LIMIT + 7)}, secret="a")
    result = attack.run(observe=pv.between(LIMIT, LIMIT + 3), engine=engine, samples=400, seed=3)
    assert set(result.posterior.distribution()) == {LIMIT, LIMIT + 1, LIMIT + 2, LIMIT + 3}
    assert result.posterior.std().widened(2.0).low < math.sqrt(1.25) < result.posterior.std().widened(2.0).high
    assert result.posterior.quantile(0.99).value == LIMIT + 3


COMPUTED = {
    "above a float": lambda a, b: a > 2.0**53 + 4,
    "a float in between": lambda a, b: a <= 9007199254740994.0,
    "a small float": lambda a, b: a >= 2.5,
    "equal to a float": lambda a, b: a == 2.0**53,
    "not equal, from the left": lambda a, b: a != 2.0**53,
    "below infinity": lambda a, b: a < math.inf,
    "below the end of 64 bits": lambda a, b: a < 2.0**63,
    "below what has no 64 bits": lambda a, b: a < 2**70,
    "beside a computed float": lambda a, b: a < b + 0.0,
    "sum": lambda a, b: a + b,
    "difference": lambda a, b: a - b,
    "remainders": lambda a, b: a % 4 + b % 2,
    "halves": lambda a, b: a // 2,
    "order": lambda a, b: sorted([a, b, 2**53 + 2])[1],
    "rounded": lambda a, b: round(a, -1),
}


@pytest.mark.parametrize("name", COMPUTED)
def test_programs_compute_with_them_as_python_does(name):
    program = COMPUTED[name]
    first, second = range(LIMIT, LIMIT + 6), range(LIMIT + 1, LIMIT + 4)
    truth = Counter(program(a, b) for a in first for b in second)
    prior = {"a": pv.DiscreteUniform(LIMIT, LIMIT + 5), "b": pv.DiscreteUniform(LIMIT + 1, LIMIT + 3)}
    found = pv.Attack(program, prior=prior, secret="a").run(engine="exact").prediction.distribution()
    assert {value: share.value for value, share in found.items()} == pytest.approx(
        {value: count / 18 for value, count in truth.items()}, abs=1e-12
    )


def test_comparisons_of_whole_numbers_with_floats_are_those_of_python():
    whole = [0, 1, -1, *(sign * (2**k + d) for sign in (1, -1) for k in (53, 54, 60, 62) for d in (-1, 0, 1, 3))]
    floats = [0.0, 0.5, -0.5, math.inf, -math.inf, math.nan, 2.0**63, -(2.0**63), 1e300, *map(float, whole)]
    left, right = (np.array(side) for side in zip(*((i, f) for i in whole for f in floats), strict=True))
    left = np.array([i for i in whole for _ in floats], np.int64)
    for name in ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal"):
        operator = getattr(np, name)
        expected = [
            bool({"less": i < f, "less_equal": i <= f, "greater": i > f, "greater_equal": i >= f, "equal": i == f,
                  "not_equal": i != f}[name]) for i in whole for f in floats
        ]  # fmt: skip
        assert Comparison(name)(left, right).tolist() == expected
        mirrored = {"less": "greater", "less_equal": "greater_equal", "greater": "less", "greater_equal": "less_equal"}
        assert Comparison(mirrored.get(name, name))(right, left).tolist() == expected
        assert operator(left[:1], right[:1]).dtype == bool


def test_differences_never_wrap_around():
    ends = [-(2**63), -1, 0, 1, 2**53 + 1, 2**63 - 1]
    for low in ends:
        for high in ends:
            assert apart(np.array([high]), np.array([low]))[0] == float(high - low)


@pytest.mark.parametrize("value", [5, 2**53, 2**53 + 1, -(2**60) - 1, 0.5])
@pytest.mark.parametrize("step", [1, 0.5, 1.5, 3])
def test_windows_around_large_numbers_hold_the_whole_numbers_inside(value, step):
    low, high = bound_beside(value, step, False), bound_beside(value, step, True)
    around = [math.floor(value) + k for k in range(-5, 6)]
    inside = [k for k in around if abs(Fraction(k) - Fraction(value)) <= Fraction(step)]
    assert [k for k in around if low <= k <= high] == inside


def test_a_uniform_prior_of_all_whole_numbers_can_be_drawn_and_searched():
    prior = pv.DiscreteUniform(-(2**62), 2**62)
    attack = pv.Attack(lambda a: a, prior={"a": prior}, secret="a")
    result = attack.run(observe=pv.between(2**62 - 2**40, 2**62), engine="rare", samples=200, seed=1)
    assert all(2**62 - 2**40 <= value <= 2**62 for value in result.posterior.samples(50).tolist())


@pytest.mark.parametrize("make", [pv.between, lambda low, high: pv.near(high, within=1)])
def test_numbers_beyond_64_bits_are_refused_in_observations(make):
    with pytest.raises(pv.ObservationError, match=r"64 bits, which an integer of about 400 digits does not"):
        make(0, 10**400)


def test_an_output_is_never_a_number_beyond_64_bits():
    attack = pv.Attack(lambda a: a, prior={"a": pv.DiscreteUniform(0, 3)}, secret="a")
    with pytest.raises(pv.ImpossibleObservation):
        attack.run(observe=pv.equals(10**400))
