"""Expressions in files of policies: what they compute, what tracing sees of them, and what they may not do."""

import linecache

import pytest

import privug as pv
from privug.policy.policy_files import function_of


def of_secret(text):
    return function_of(text, "here", ("secret",))


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("secret < 18", 17, True),
        ("12 <= secret < 18 or secret == 40", 40, True),
        ("not (secret > 3) and abs(secret) in (1, 2)", -2, True),
        ("secret.age < 18", pv.Row(age=20), False),
        ("secret['age'] < 18", {"age": 3}, True),
        ("any(age < 18 for age in secret)", [20, 3], True),
        ("sum([age for age in secret if age > 1]) == 5", [1, 2, 3], True),
        ("'old' if secret > 65 else 'young'", 70, "old"),
        ("  secret  # the age\n", 5, 5),
        ("secret[1:][0]", (1, 2), 2),
    ],
)
def test_values(text, value, expected):
    assert of_secret(text)(value) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("secret <", "is no Python expression"),
        ("x = 1", "is no Python expression"),
        ("", "is no Python expression"),
        ("1) or (2", "is no Python expression"),
        ("(" * 300 + "1" + ")" * 300, "is no Python expression"),
        ("secret\0", "is no Python expression"),
        ("age < 18", "'age' is not known"),
        ("open < 18", "'open' is not known"),
        ("open('f')", r"open\(...\) is called"),
        ("__import__('os').system('true')", "is called"),
        ("secret.startswith('a')", r"secret.startswith\(...\) is called"),
        ("(lambda: 1)()", "is called"),
        ("secret.__class__", "'__class__' begins with an underscore"),
        ("secret._private", "begins with an underscore"),
        ("lambda: secret", "Lambda is used"),
        ("(y := secret)", "NamedExpr is used"),
        ("f'{secret.__class__}'", "underscore|JoinedStr"),
        ("[len for len in secret]", "'len' is the name of a function"),
        ("max(*secret)", "Starred is used"),
        ("[x async for x in secret]", "async|no Python expression"),
        ("secret" + " + 1" * 1_000, "4,006 characters"),
    ],
)
def test_what_is_refused_is_refused_by_name(text, message):
    with pytest.raises(pv.ArgumentError, match=message) as caught:
        of_secret(text)
    assert str(caught.value).startswith("here: ")
    assert len(str(caught.value)) < 600


def test_a_function_of_whatever_is_asked_for():
    listed = function_of("[row.age + shift for row in records]", "here")
    assert listed(records=[pv.Row(age=3), pv.Row(age=4)], shift=10) == [13, 14]


def test_another_expression_at_the_same_place_leaves_the_first_as_it_was():
    first, second = of_secret("secret < 1"), of_secret("secret < 2")
    sources = [linecache.getline(one.__code__.co_filename, 1) for one in (first, second)]
    assert sources == ["lambda secret: (secret < 1)\n", "lambda secret: (secret < 2)\n"]
    linecache.checkcache()
    assert linecache.getline(first.__code__.co_filename, 1) == sources[0]


@pytest.mark.parametrize("text", ["2 <= secret < 5", "secret == 0 or secret == 9", "not secret and True"])
def test_expressions_are_traced_as_programs_are(text):
    """Chained comparisons and `or` need the source; without it the program would be called sample by sample."""
    predicate = of_secret(text)
    attack = pv.Attack(lambda x: x // 2, {"x": pv.DiscreteUniform(0, 9)}, secret=lambda x: predicate(x))
    assert attack.lifting.tier == "traced"
    truth = sum(bool(predicate(x)) for x in range(10)) / 10
    assert attack.run().prior.probability(lambda value: value).value == pytest.approx(truth, abs=1e-12)
