"""Observations: what each keeps, on every kind of output, and what it refuses."""

import math

import pytest
from scipy import stats

import privug as pv
from privug.observation.observations import as_observation

X = {"x": pv.DiscreteUniform(0, 9), "y": pv.DiscreteUniform(0, 9)}


def support(program, observe, tier=None, samples=300):
    attack = pv.Attack(program, prior=X, secret=["x", "y"])
    result = attack.run(observe=observe, samples=samples, seed=1)
    assert tier is None or attack.lifting.tier == tier
    return set(map(tuple, result.posterior.distribution()))


def pairs(predicate):
    return {(x, y) for x in range(10) for y in range(10) if predicate(x, y)}


def branch(x, y):
    try:  # such programs are called sample by sample
        return (x + y, {0: "even"}[x % 2])
    except KeyError:
        return (x + y, "odd")


CASES = [
    (lambda x, y: x + y, pv.equals(17), lambda x, y: x + y == 17),
    (lambda x, y: (x + y) / 10, pv.equals(0.3), lambda x, y: x + y == 3),
    (lambda x, y: x * y > 60, pv.equals(True), lambda x, y: x * y > 60),
    (lambda x, y: x + y, pv.between(16, 17), lambda x, y: 16 <= x + y <= 17),
    (lambda x, y: x + y, pv.near(17, within=1), lambda x, y: abs(x + y - 17) <= 1),
    (lambda x, y: x - y, pv.such_that(lambda d: (d > 7) | (d < -7)), lambda x, y: abs(x - y) > 7),
    (lambda x, y: x - y, pv.such_that(lambda d: d > 7 or d < -7), lambda x, y: abs(x - y) > 7),
    (lambda x, y: (x, y), pv.equals((3, 4)), lambda x, y: (x, y) == (3, 4)),
    (lambda x, y: [x, y], pv.equals((3, 4)), lambda x, y: (x, y) == (3, 4)),
    (lambda x, y: (x, y), [pv.between(8, 9), None], lambda x, y: x >= 8),
    (lambda x, y: (x, y), [8, pv.between(8, 9)], lambda x, y: x == 8 and y >= 8),
    (lambda x, y: {"sum": x + y, "x": x}, {"sum": pv.equals(17)}, lambda x, y: x + y == 17),
    (lambda x, y: {"sum": x + y, "x": x}, pv.equals({"sum": 17, "x": 9}), lambda x, y: (x, y) == (9, 8)),
    (lambda x, y: pv.Row(low=x, high=y), {"low": 9}, lambda x, y: x == 9),
    (lambda x, y: [pv.Row(v=x), pv.Row(v=y)], [{"v": 9}, None], lambda x, y: x == 9),
    (branch, pv.equals((17, "odd")), lambda x, y: (x, y) == (9, 8)),
    (branch, [pv.between(17, 18), "even"], lambda x, y: (x, y) == (8, 9)),
    (branch, pv.such_that(lambda output: output[0] > 16), lambda x, y: x + y > 16),
]


@pytest.mark.parametrize(("program", "observe", "agrees"), CASES)
def test_exactly_the_agreeing_inputs_remain(program, observe, agrees):
    assert support(program, observe) == pairs(agrees)


def test_program_with_a_branch_is_observed():
    assert support(branch, pv.equals((17, "odd"))) == {(9, 8)}


def test_noisy_weights_by_the_normal_density():
    result = pv.Attack(lambda x: 3 * x, prior={"x": pv.Bernoulli(0.5)}, secret="x").run(
        observe=pv.noisy(2.0, sd=1.5), samples=20_000, seed=1
    )
    one, zero = stats.norm.pdf(2, 3, 1.5), stats.norm.pdf(2, 0, 1.5)
    assert one / (one + zero) in result.posterior.probability(lambda x: x == 1).widened(2)


def test_noisy_on_an_array_and_on_plain_calls():
    prior = {"x": pv.Array(pv.Normal(0, sd=1), 2)}
    seen = pv.noisy(1.0, sd=1.0)
    traced = pv.Attack(lambda x: x, prior, secret=lambda x: x[0]).run(observe=seen, samples=20_000, seed=1)
    called = pv.Attack(lambda x: float(x[0]), prior, secret=lambda x: x[0]).run(observe=seen, samples=5000, seed=1)
    for result in (traced, called):
        assert 0.5 in result.posterior.mean().widened(2)
        assert math.sqrt(0.5) in result.posterior.std().widened(2)


def test_huge_and_tiny_scales():
    for scale in (1e-12, 1e12):
        attack = pv.Attack(lambda x: 2 * x, {"x": pv.Uniform(0, scale)}, "x")
        result = attack.run(observe=pv.near(scale, within=scale / 50), samples=2000, seed=1)
        assert scale / 2 in result.posterior.mean().widened(2)
        exact = attack.run(observe=pv.equals(scale), samples=200, seed=1)
        assert float(exact.posterior.mean()) == pytest.approx(scale / 2, rel=1e-12)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: pv.near(1, within=0), "within must be positive"),
        (lambda: pv.near(float("nan"), within=1), "finite"),
        (lambda: pv.near("1", within=1), "value must be a number"),
        (lambda: pv.between(2, 1), "low must not be above high"),
        (lambda: pv.between(None, 1), "low must be a number"),
        (lambda: pv.noisy(1, sd=0), "sd must be positive"),
        (lambda: pv.noisy(1, sd=float("inf")), "finite"),
        (lambda: pv.such_that(3), "function"),
        (lambda: pv.equals(float("nan")), "NaN"),
        (lambda: pv.equals(pv.Uniform(0, 1)), "plain value"),
        (lambda: support(lambda x, y: x, 3), r"pv\.equals\(3\)"),
        (lambda: support(lambda x, y: x, {}), "observe must be"),
        (lambda: support(lambda x, y: {"a": x}, {"b": 1}), "'b'"),
        (lambda: support(lambda x, y: pv.where(x > 3, "a", "b"), pv.between(0, 1)), "needs a number"),
    ],
)
def test_wrong_observations(make, message):
    with pytest.raises(pv.ObservationError, match=message):
        make()


def test_a_number_counts_as_a_truth_value_as_in_python():
    seen = pv.such_that(lambda output: output[0])
    assert support(lambda x, y: (x, y), seen, samples=3000) == pairs(lambda x, y: x != 0)


@pytest.mark.parametrize(
    ("program", "observe"),
    [
        (lambda x, y: (x, y), pv.equals((1, 2, 3))),
        (lambda x, y: (x, y), [pv.equals(1)]),
        (lambda x, y: pv.where(x > 3, "a", "b"), pv.equals("c")),
        (lambda x, y: {"a": x}, pv.equals({"b": 1})),
        (lambda x, y: 7, pv.equals(8)),
        (lambda x, y: x, pv.equals([1])),
    ],
)
def test_observations_that_no_output_can_satisfy(program, observe):
    with pytest.raises(pv.ImpossibleObservation, match="impossible"):
        support(program, observe)


def test_a_part_that_no_output_has_is_impossible():
    with pytest.raises((pv.ImpossibleObservation, pv.ObservationError), match="part 5"):
        support(branch, {5: pv.equals(1)})


@pytest.mark.parametrize(
    ("observe", "told"),
    [
        ({"Management": {"max": 178000}}, "the output's 'Management', 'max' is 178,000"),
        ([1, None, pv.between(2, 3)], "the output's first part is 1; its third part is between 2 and 3"),
        ({2300: pv.near(5, within=1)}, "the output's entry 2300 is 5, give or take 1"),
        ([0] * 15, "its part at position 11 is 0; and 3 parts more"),
    ],
)
def test_what_was_seen_of_parts_is_told_in_words(observe, told):
    assert str(as_observation(observe)).endswith(told)


def odds(n):
    return math.inf if n == 0 else 1 / n


def odds_in_words(n):
    return float({"0": "inf"}.get(f"{n}", f"{n}"))


@pytest.mark.parametrize(("program", "tier"), [(odds, "traced"), (odds_in_words, "python")])
def test_an_infinite_output_is_observed_as_such(program, tier):
    with pv.limited(native=False):
        attack = pv.Attack(program, prior={"n": pv.Choice([0, 1, 2, 4])}, secret="n")
        result = attack.run(pv.equals(math.inf))
        assert attack.lifting.tier == tier
        assert result.diagnostics.evidence.value == pytest.approx(1 / 4)
        assert result.posterior.probability(lambda n: n == 0).value == pytest.approx(1)
        assert attack.run(pv.equals(1.0)).diagnostics.evidence.value == pytest.approx(1 / 4)
        with pytest.raises(pv.ImpossibleObservation):
            attack.run(pv.equals(-math.inf))


def test_infinity_beside_a_density_is_an_atom_or_impossible():
    prior = {"x": pv.Normal(0, sd=1), "n": pv.Choice([0, 1, 2])}
    attack = pv.Attack(lambda x, n: math.inf if n == 0 else x / n, prior=prior, secret=lambda x, n: n)
    assert attack.run(pv.equals(math.inf)).diagnostics.evidence.value == pytest.approx(1 / 3)
    with pytest.raises(pv.ImpossibleObservation, match="never inf"):
        pv.Attack(lambda x: 2 * x, prior={"x": pv.Normal(0, sd=1)}, secret="x").run(pv.equals(math.inf))


@pytest.mark.parametrize("value", [math.nan, (1, math.nan), {"mean": math.nan}])
def test_nan_is_no_observation(value):
    with pytest.raises(pv.ObservationError, match="must not be NaN, by which a program has failed"):
        pv.equals(value)


@pytest.mark.parametrize(("observe", "chance"), [({"a": None, "b": 1}, 1.0), ({"b": 1}, 0.5), ([None, 1], 0.5)])
def test_none_in_a_dict_is_a_suppressed_cell(observe, chance):
    def published(x):
        cells = (None if x < 2 else x, 1)
        return list(cells) if isinstance(observe, list) else dict(zip("ab", cells, strict=True))

    attack = pv.Attack(published, {"x": pv.DiscreteUniform(0, 3)}, "x")
    assert attack.run(observe).posterior.probability(lambda x: x < 2).value == pytest.approx(chance)
