"""The reference of what lifting means: its monad laws, and its two semantics, which agree."""

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import example, find, given, settings
from hypothesis import strategies as st
from semantics import (
    ADD,
    MEAN,
    TWO_NUMBERS,
    Application,
    Case,
    Construct,
    Distribution,
    Environment,
    Stuck,
    Term,
    Variable,
    apply,
    as_a_whole,
    bind,
    compute,
    embed,
    function,
    lift,
    number,
    numeral,
    part_by_part,
    uniform,
    unit,
)

from small_language import FIXED, SEARCH, VALUES, bodies, data, distributions, kernels, priors, programs


@FIXED
@given(st.sampled_from(VALUES), kernels())
def test_unit_is_neutral_on_the_left(value, kernel):
    assert bind(unit(value), kernel.__getitem__) == kernel[value]


@FIXED
@given(distributions(VALUES))
def test_unit_is_neutral_on_the_right(distribution):
    assert bind(distribution, unit) == distribution


@FIXED
@given(distributions(VALUES), kernels(), kernels())
def test_bind_is_associative(distribution, first, second):
    stepwise = bind(bind(distribution, first.__getitem__), second.__getitem__)
    assert stepwise == bind(distribution, lambda value: bind(first[value], second.__getitem__))


@FIXED
@given(
    distributions(VALUES),
    st.tuples(*[st.sampled_from(VALUES)] * len(VALUES)),
    st.tuples(*[st.sampled_from(VALUES)] * len(VALUES)),
)
def test_lift_keeps_identity_and_composition(distribution, first, second):
    assert lift(lambda value: value)(distribution) == distribution
    composed = lift(lambda value: second[first[value]])(distribution)
    assert composed == lift(second.__getitem__)(lift(first.__getitem__)(distribution))


@pytest.mark.parametrize("shares", [{}, {0: Fraction(1, 2)}, {0: Fraction(3, 2), 1: Fraction(-1, 2)}, {0: 1, 1: 0}])
def test_what_is_no_distribution_is_refused(shares):
    with pytest.raises(ValueError, match="sum to one"):
        Distribution(shares)


@settings(FIXED, max_examples=200)
@given(bodies, priors())
@example(Construct("Same", (Variable("x"), Variable("x"))), uniform([(("x", numeral(0)),), (("x", numeral(1)),)]))
def test_a_program_lifted_as_a_whole_is_the_program_embedded_part_by_part(body, prior):
    whole = as_a_whole(body, prior)
    assert part_by_part(body, prior) == whole
    inputs = [name for name, _ in next(iter(prior.probabilities))]
    closed = function(*inputs, body=body)
    called = apply(closed, *map(Variable, inputs))
    assert as_a_whole(called, prior) == part_by_part(called, prior) == whole


@settings(FIXED, max_examples=100)
@given(programs({}))
def test_a_closed_program_is_certain_of_its_value(program):
    value = compute(program, ())
    assert embed(program, {}) == unit(value)


def test_the_random_programs_are_not_all_trivial():
    """Some need several steps, and some turn several inputs into several outputs."""
    prior = uniform(
        (("x", x), ("y", y), ("z", z)) for x in data("Bool") for y in data("Colour") for z in data("Pair")[:2]
    )
    spread = lambda body: len(set(as_a_whole(body, prior).probabilities.values())) > 1
    found = find(bodies, spread, settings=SEARCH)
    assert part_by_part(found, prior) == as_a_whole(found, prior)


def drawn_at_every_use(term: Term, prior: Distribution[Environment]) -> Distribution[Any]:
    """The embedding with distributions, not values, for the free names."""
    names = [name for name, _ in next(iter(prior.probabilities))]
    marginals = {name: lift(lambda e, name=name: dict(e)[name])(prior) for name in names}
    return embed(term, marginals)


def test_a_name_that_stands_for_a_distribution_is_drawn_at_every_use():
    """A broken embedding must be caught: here two readings of one input need not agree."""
    prior = uniform([(("x", Construct("False")),), (("x", Construct("True")),)])
    twice = Construct("Both", (Variable("x"), Variable("x")))
    assert sorted(part_by_part(twice, prior).probabilities.values()) == [Fraction(1, 2)] * 2
    assert sorted(drawn_at_every_use(twice, prior).probabilities.values()) == [Fraction(1, 4)] * 4
    pairs = st.tuples(bodies, priors())
    wrong = lambda pair: drawn_at_every_use(*pair) != as_a_whole(*pair)
    assert wrong(find(pairs, wrong, settings=SEARCH))


@pytest.mark.parametrize(("a", "b"), [(0, 0), (0, 3), (2, 0), (3, 4)])
def test_addition(a, b):
    sum_of_both = apply(ADD, numeral(a), numeral(b))
    assert compute(sum_of_both, ()) == numeral(a + b)
    assert embed(sum_of_both, {}) == unit(numeral(a + b))


def test_the_mean_of_two_numbers_is_two_with_probability_one_ninth():
    expected = {Fraction(k, 2): Fraction(count, 9) for k, count in enumerate([1, 2, 3, 2, 1])}
    program = apply(MEAN, Variable("x"), Variable("y"))
    for semantics in (as_a_whole, part_by_part):
        assert lift(number)(semantics(program, TWO_NUMBERS)).probabilities == expected


def test_a_value_put_in_for_a_name_captures_nothing():
    """The function that returns the input y is handed through one whose parameter is also called y."""
    y = Variable("y")
    program = apply(function("f", "y", body=apply(Variable("f"), y)), function("z", body=y), Construct("Wrong"))
    prior = unit((("y", Construct("Right")),))
    assert as_a_whole(program, prior) == part_by_part(program, prior) == unit(Construct("Right"))


@pytest.mark.parametrize(
    "program", [Variable("x"), apply(Construct("True"), Construct("True")), Construct("Just", (Variable("x"),))]
)
def test_a_program_that_makes_no_sense_is_stuck_in_both_ways(program):
    with pytest.raises(Stuck):
        compute(program, ())
    with pytest.raises(Stuck):
        embed(program, {})


def test_a_case_that_does_not_match_does_not_see_its_argument():
    chosen = Case("Just", function("v", body=Variable("v")), Construct("Red"))
    for argument, expected in [(Construct("Just", (Construct("Blue"),)), "Blue"), (Construct("Nothing"), "Red")]:
        assert compute(Application(chosen, argument), ()) == Construct(expected)
        assert embed(Application(chosen, argument), {}) == unit(Construct(expected))


def test_only_numbers_are_read_as_numbers():
    assert number(Construct("Ratio", (numeral(3), numeral(2)))) == Fraction(3, 2)
    with pytest.raises(ValueError, match="not a number"):
        number(Construct("True"))
