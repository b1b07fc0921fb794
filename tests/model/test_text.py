"""Texts with random numbers in them: exact, and the same texts that plain calls give."""

import math

import numpy as np
import pytest
from scipy.stats import binom, norm

import privug as pv
from privug.model.text import Field, composed, read


def count(xs):
    return f"{sum(x > 1 for x in xs)} of {len(xs)}"


def mean(xs):
    return f"mean {sum(xs) / len(xs):.1f}"


def share(xs):
    return f"{sum(x > 1 for x in xs) / len(xs):.0%} of people"


def rounded(xs):
    return f"{round(sum(xs) / len(xs), 1)}"


def both(xs):
    return f"{sum(x > 1 for x in xs)} people, mean {sum(xs) / len(xs):.1f}"


def within(low, high):
    return float(np.diff(norm.cdf([low, high], scale=1.5 / math.sqrt(10)))[0])


def attack(program):
    return pv.Attack(program, {"xs": pv.Array(pv.Normal(0, sd=1.5), 10)}, lambda xs: xs[0])


TWO_OF_TEN = float(binom.pmf(2, 10, norm.sf(1 / 1.5)))
SEEN = [
    (count, "2 of 10", TWO_OF_TEN),
    (share, "20% of people", TWO_OF_TEN),
    (mean, "mean 0.3", within(0.25, 0.35)),
    (mean, "mean -0.3", within(-0.35, -0.25)),
    (mean, "mean 0.0", within(0.0, 0.05)),
    (mean, "mean -0.0", within(-0.05, 0.0)),
    (rounded, "-1.0", within(-1.05, -0.95)),
    (rounded, "-0.0", within(-0.05, 0.0)),
]


@pytest.mark.parametrize(("program", "seen", "truth"), SEEN, ids=[seen for _, seen, _ in SEEN])
def test_a_text_is_as_likely_as_its_numbers(program, seen, truth):
    result = attack(program).run(pv.equals(seen))
    assert (result.engine, result.lifting.tier) == ("exact (sums)", "traced")
    assert result.diagnostics.evidence.value == pytest.approx(truth, rel=1e-9)


def test_two_numbers_in_a_text_are_those_of_a_tuple():
    apart = pv.Attack(
        lambda xs: (sum(x > 1 for x in xs), round(sum(xs) / len(xs), 1)),
        {"xs": pv.Array(pv.Normal(0, sd=1.5), 10)},
        lambda xs: xs[0],
    ).run(pv.equals((3, 0.3)))
    result = attack(both).run(pv.equals("3 people, mean 0.3"))
    assert result.engine == apart.engine == "exact (sums)"
    assert result.diagnostics.evidence.value == pytest.approx(apart.diagnostics.evidence.value, rel=1e-11)


def test_texts_leak_what_their_numbers_do():
    prior = {"xs": pv.Array(pv.Bernoulli(0.3), 4)}
    as_text = pv.Attack(lambda xs: f"{sum(xs)} ill", prior, lambda xs: xs[0]).run()
    as_number = pv.Attack(lambda xs: sum(xs), prior, lambda xs: xs[0]).run()
    assert set(as_text.prediction.distribution()) == {f"{k} ill" for k in range(5)}
    one, other = (pv.leakage.mutual_information(result.joint) for result in (as_text, as_number))
    assert one.value == pytest.approx(other.value, rel=1e-12)


@pytest.mark.parametrize("seen", ["mean 0.35", "mean .3", "mean 1e1", "average 0.3", 0.3])
def test_what_is_never_written_is_impossible(seen):
    with pytest.raises(pv.ImpossibleObservation, match="never reads"):
        attack(mean).run(pv.equals(seen))


@pytest.mark.parametrize(
    "program",
    [
        lambda a, b: f"{a}{b}",  # two numbers that run together
        lambda a, b: f"{a:>9}",
        lambda a, b: f"{a!r}",
        lambda a, b: len(f"{a} {b}"),
        lambda a, b: f"{a} {b}".split(),
        lambda a, b: f"{a}" == "1",
        lambda a, b: f"{a} of {b}".upper(),
    ],
)
def test_what_has_no_fields_is_a_table(program):
    prior = {"a": pv.DiscreteUniform(1, 12), "b": pv.DiscreteUniform(1, 12)}
    result = pv.Attack(program, prior, "a").run()
    assert result.lifting.tier == "traced"
    truth = {}
    for a in range(1, 13):
        for b in range(1, 13):
            value = program(a, b)
            key = tuple(value) if isinstance(value, list) else value
            truth[key] = truth.get(key, 0) + 1 / 144
    found = {key: chance.value for key, chance in result.prediction.distribution().items()}
    assert found == pytest.approx(truth)


NUMBERS = [0.05, 0.15, 0.25, -0.05, 0.35, 2.675, 1e16, 12345.678, -1234567.25, 0.0, -0.0, 1e-9, 99.95]


@pytest.mark.parametrize("form", [".1f", ".0f", ",.2f", ".1%", ""])
def test_fields_are_written_and_read_as_python_writes_numbers(form):
    digits = {"": 3, ".1f": 1, ".0f": 0, ",.2f": 2, ".1%": 1}[form]
    for number in NUMBERS:
        stored = round(100 * number if form == ".1%" else number, digits)
        field = Field(form, whole=False, signed=True)
        expected = format(number if form else stored, form)
        negative_zero = stored == 0 and math.copysign(1, stored) < 0
        assert composed(("a ", field), (stored, negative_zero)) == f"a {expected}"
        assert read(("a ", field), f"a {expected}") == [stored, negative_zero]
