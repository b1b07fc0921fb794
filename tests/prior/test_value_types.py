"""A program gets the values of a prior as they were written: 1 is not 1.0 and not True."""

import pytest

import privug as pv

MIXED = {
    "whole number and float": [1, 2.5],
    "equal ones of two types": [1, 1.0, 2.5],
    "bool and whole number": [True, 2],
    "bool and float": [True, 2.5],
    "number and text": [1, "a"],
    "beyond the floats": [2**60 + 1, 0.5],
    "zero and minus": [0, -0.5],
}
PRIORS = {
    "Choice": pv.Choice,
    "Choice with weights": lambda values: pv.Choice(values, p=[1 / len(values)] * len(values)),
    "Empirical": pv.Empirical,
    "Empirical with repeats": lambda values: pv.Empirical([*values, values[0]]),
    "given": lambda values: pv.given(pv.DiscreteUniform(0, len(values) - 1), dict(enumerate(values))),
}


def described(value):
    return f"{type(value).__name__} {value!r}"


@pytest.mark.parametrize("values", MIXED.values(), ids=MIXED)
@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("engine", ["exact", "sample"])
def test_values_keep_their_types(values, prior, engine):
    attack = pv.Attack(described, prior={"value": PRIORS[prior](values)}, secret="value")
    result = attack.run(engine=engine, samples=200, seed=1)
    assert set(result.prediction.distribution()) == set(map(described, values))
    assert {described(value) for value in result.posterior.distribution()} <= set(map(described, values))


@pytest.mark.parametrize("values", MIXED.values(), ids=MIXED)
def test_values_in_rows_keep_their_types(values):
    program = lambda row: described(row.x)
    drawn = pv.Empirical([{"x": value, "y": place} for place, value in enumerate(values)])
    found = pv.Attack(program, prior={"row": drawn}, secret=lambda row: row.y).run(engine="exact")
    assert set(found.prediction.distribution()) == set(map(described, values))
    known = pv.Records(len(values), lambda i: pv.Row(x=values[i], y=pv.Bernoulli(0.5)))
    listed = pv.Attack(
        lambda rows: " ".join(described(row.x) for row in rows), prior={"rows": known}, secret=lambda rows: rows[0].y
    )
    assert list(listed.run(engine="exact").prediction.distribution()) == [" ".join(map(described, values))]


TYPES = {
    "isinstance": lambda a: isinstance(a, int),
    "isinstance of a sum": lambda a: isinstance(a + 1, int),
    "isinstance of a quotient": lambda a: isinstance(a / 1, int),
    "isinstance of an alternative": lambda a: isinstance(a if a > 1 else 7, float),
    "type": lambda a: type(a) is int,
    "whole division": lambda a: a // 2,
    "text": str,
    "text in a sentence": lambda a: f"{a}",
    "repr": lambda a: repr([a]),
    "a method of one type": lambda a: a.is_integer() if isinstance(a, float) else a.bit_length(),
}


@pytest.mark.parametrize("name", TYPES)
def test_what_a_program_asks_of_types_is_answered_as_in_plain_calls(name):
    program, values = TYPES[name], [1, 2.5, 3, 4.0]
    found = pv.Attack(program, prior={"a": pv.Choice(values)}, secret="a").run(engine="exact").prediction
    truth: dict = {}
    for value in values:
        truth[program(value)] = truth.get(program(value), 0.0) + 0.25
    assert {value: share.value for value, share in found.distribution().items()} == truth


def test_draws_inside_a_program_keep_their_types():
    def program(x):
        return described(pv.sample(pv.Choice([1, 2.5])))

    result = pv.Attack(program, prior={"x": pv.Bernoulli(0.5)}, secret="x").run(engine="sample", samples=100, seed=1)
    assert set(result.prediction.distribution()) == {"int 1", "float 2.5"}


def test_arithmetic_on_mixed_numbers_is_still_traced():
    prior = {"xs": [pv.Choice([0, 0.5, 1]) for _ in range(12)]}
    attack = pv.Attack(lambda xs: sum(xs), prior=prior, secret=lambda xs: xs[0])
    assert attack.lifting.tier == "traced"
    assert attack.run(engine="exact").prediction.mean().value == pytest.approx(6.0)
