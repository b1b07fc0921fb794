"""Arguments as users hand them in: what is refused by its kind, and what is let through."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import privug as pv
from privug.arguments import check_kind, is_number, is_one_of, kinds_checked, shown

m, a = pv.mechanisms, pv.mechanisms.anonymisers

NUMBERS = [0, -3, 2.5, math.inf, np.int8(3), np.float32(0.5), Fraction(1, 3), Decimal("0.1"), 10**5000]
OTHERS = [None, True, np.bool_(True), math.nan, np.float64("nan"), Decimal("nan"), Decimal("snan"), 1j, "1", [1]]


@pytest.mark.parametrize("value", NUMBERS, ids=shown)
def test_numbers_of_all_kinds_are_numbers(value):
    assert is_number(value)


@pytest.mark.parametrize("value", OTHERS, ids=repr)
def test_what_is_no_number_is_refused(value):
    assert not is_number(value)
    with pytest.raises(pv.ArgumentError, match="f: x must be a number, not "):
        check_kind("f", "x", value, (float,))


@pytest.mark.parametrize("value", [10**400, -(10**5000), Fraction(10**400), Decimal("1e400")], ids=shown)
def test_numbers_beyond_the_floats_are_too_large(value):
    with pytest.raises(pv.ArgumentError, match="f: x is too large"):
        check_kind("f", "x", value, (float,))


@kinds_checked
def example(
    number: float = 0, count: int = 1, word: str = "", each: Sequence[Any] = (), names: Sequence[str] = (),
    table: Mapping[str, int] | None = None, function: Callable[..., Any] = len, anything: Any = None, seed: int = 0,
) -> Any:  # fmt: skip
    return number


def test_numbers_of_other_libraries_arrive_as_plain_ones():
    assert (example(Fraction(1, 4)), example(Decimal("0.5")), example(Fraction(3))) == (0.25, 0.5, 3)
    assert type(example(Fraction(1, 4))) is float
    estimate = pv.Estimate(Fraction(1, 2), Decimal("0.25"), 1)
    assert (estimate.value, estimate.low, str(estimate)) == (0.5, 0.25, "0.50 [0.25, 1.00]")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"count": 2.0}, "count must be an integer, not 2.0"),
        ({"count": 10**5000}, "count is too large"),
        ({"word": 3}, "word must be a text, not 3"),
        ({"names": "ab"}, "names must be a list, not 'ab'"),
        ({"names": pv.Uniform(0, 1)}, "names must be a list"),
        ({"each": {"a": 1}}, "each must be a list"),
        ({"table": [1]}, r"table must be a dict, not \[1\]"),
        ({"function": 10**5000}, "function must be a function, not an integer of about 5000 digits"),
        ({"seed": -1}, "seed must be an integer, 0 or more"),
    ],
)
def test_arguments_of_a_wrong_kind_are_refused_by_name(arguments, words):
    with pytest.raises(pv.ArgumentError, match=words):
        example(**arguments)


def test_the_rest_is_left_to_the_function_and_to_python():
    assert example(2, each="ab", anything=object(), table=None, seed=10**30) == 2
    unknown = pv.Uniform(0, 1)
    assert example(unknown) is unknown
    with pytest.raises(TypeError, match="unexpected keyword"):
        example(wrong=1)


def test_choices_are_told_apart_from_what_answers_with_arrays():
    assert is_one_of("a", ("a", "b"))
    assert is_one_of(None, (None, True))
    assert not any(is_one_of(value, ("a", True)) for value in (np.zeros(2), pv.Uniform(0, 1), ["a"], "c", 1))


RANDOM_PARAMETERS = {
    "bands": (lambda x, w: a.bands(w)(x), range(1, 4)),
    "start of bands": (lambda x, w: a.bands(2, start=w)(x), range(2)),
    "cuts": (lambda x, w: a.cuts([w, 3])(x), range(1, 3)),
    "clamped": (lambda x, w: m.clamped(lambda v: v, 0, w)(x), range(1, 4)),
    "rounded": (lambda x, w: m.rounded(lambda v: v, to=w)(x), range(1, 4)),
    "suppressed": (lambda x, w: m.suppressed(lambda v: v, fewer_than=w)(x), range(2, 4)),
}


@pytest.mark.parametrize(("program", "parameters"), RANDOM_PARAMETERS.values(), ids=RANDOM_PARAMETERS)
def test_parameters_of_mechanisms_can_be_random_inside_a_program(program, parameters):
    prior = {"x": pv.DiscreteUniform(1, 4), "w": pv.DiscreteUniform(parameters[0], parameters[-1])}
    result = pv.Attack(program, prior, "x").run()
    pairs = Counter((x, program(x, w)) for x in range(1, 5) for w in parameters)
    outputs = Counter(output for _, output in pairs.elements())
    total = pairs.total()
    information = sum(n / total * math.log2(4 * n / outputs[output]) for (_, output), n in pairs.items())
    assert result.engine == "exact (finite)"
    assert pv.leakage.mutual_information(result.joint).value == pytest.approx(information, abs=1e-9)
