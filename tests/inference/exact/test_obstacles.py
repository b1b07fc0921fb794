"""Obstacles to exact answers are told with the line of the program at which they stand."""

import inspect
import sys

import numpy as np
import pytest

import privug as pv


def line_of(function, text):
    lines, start = inspect.getsourcelines(function)
    return start + next(k for k, line in enumerate(lines) if text in line)


def message(attack):
    with pytest.raises(pv.UnsuitableEngine) as caught:
        attack.run(engine="exact")
    return str(caught.value)


def test_the_line_of_a_branch_in_a_loop_over_rows():
    def rich_and_old(rows):
        total = 0
        for row in rows:
            weight = 2 * row.income
            if row.age > 40:
                total += row.age * weight
        return total

    def age(rows):
        return rows[0].age

    alike = pv.Records(100, pv.Row(age=pv.Normal(40, sd=5), income=pv.Uniform(0, 10)))
    apart = pv.Records(5, lambda i: pv.Row(age=pv.Normal(40 + i, sd=5), income=pv.Uniform(0, 10)))
    expected = f"several continuous quantities that are put together at line {line_of(rich_and_old, 'total += ')};"
    for rows in (alike, apart):
        assert expected in message(pv.Attack(rich_and_old, {"rows": rows}, age))


def test_the_line_of_a_helper_function():
    def bent(x):
        return (
            x
            + np.sin(x)
        )  # fmt: skip

    def program(x, y):
        return bent(x) * y

    attack = pv.Attack(program, {"x": pv.Normal(0, sd=1), "y": pv.Normal(0, sd=1)}, "x")
    assert f"it uses 'sin' of a continuous quantity at line {line_of(bent, 'np.sin')};" in message(attack)


def test_the_line_at_which_too_much_must_be_remembered():
    def scrambled(coins):
        code = 0
        for coin in coins:
            code = (3 * code + coin) % 1_000_003
        return code, sum(coins[k] * (k**3 + 1) * coins[39 - k] for k in range(40))

    attack = pv.Attack(scrambled, {"coins": pv.Array(pv.Bernoulli(0.5), 40)}, lambda coins: coins[0])
    told = message(attack)
    assert "more than 200,000,000 states" in told
    lines = [line_of(scrambled, text) for text in ("code = (", "return")]
    assert any(f"too many of which matter at once at line {line};" in told for line in lines)


def test_untraced_programs_name_the_line_that_stops_tracing():
    def shown(x, y):
        label = hash(x)
        return label + hash(y)

    attack = pv.Attack(shown, {"x": pv.Normal(0, sd=1), "y": pv.Normal(0, sd=1)}, "x")
    assert f"at line {line_of(shown, 'label = ')}" in message(attack)


def test_looking_for_lines_leaves_the_answers_alone():
    def program(x):
        return x + pv.sample(pv.Bernoulli(0.25))

    attack = pv.Attack(program, {"x": pv.Bernoulli(0.5)}, "x")
    before = attack.run(engine="exact", observe=pv.equals(1)).posterior.mean()
    lines = attack.question.lines(attack.question.case())
    assert set(lines.values()) == {line_of(program, "pv.sample")}
    assert attack.run(engine="exact", observe=pv.equals(1)).posterior.mean() == before


ECHO = "import sys, json, random\nfor l in sys.stdin: print(json.loads(l)['x'] % 3 + {}, flush=True)"


def test_programs_in_other_languages_are_enumerated_if_they_are_functions():
    steady = pv.External([sys.executable, "-c", ECHO.format(0)])
    result = pv.Attack(steady, {"x": pv.DiscreteUniform(0, 8)}, "x").run(engine="exact", observe=pv.equals(1))
    assert sorted(result.posterior.batch.values()) == [1, 4, 7]
    random = pv.External([sys.executable, "-c", ECHO.format("random.randrange(1000)")])
    attack = pv.Attack(random, {"x": pv.DiscreteUniform(0, 8)}, "x")
    assert "is not a function of its inputs" in message(attack)
    assert attack.run(samples=50).engine == "sample"
    steady.close()
    random.close()


def shifted(x, y):
    total = x + y
    return total


def waves(x, y):
    total = x + y
    return np.sin(total)


def against_each_other(x, y):
    total = x + y
    return total**3 - total


PRECISE = {
    "function": (waves, "x", None, "it uses 'sin' of a continuous quantity at line {}", "np.sin"),
    "turns": (against_each_other, "x", None, "rise and fall against each other at line {}", "total**3"),
    "two secrets": (shifted, ["x", "y"], None, "the secret is a function of several continuous", ""),
    "product": (shifted, lambda x, y: x * y, None, "the secret is a function of several continuous", ""),
    "steps": (lambda x, y: round(x + y, 9), "x", None, "the output has more than 50,000 steps", ""),
    "condition": (shifted, "x", pv.such_that(lambda o: np.sin(o) > 0), "the condition that was seen cannot be", ""),
    "noise": (lambda x, y: abs(x + y), "x", pv.noisy(1, sd=0.1), "noise on a function that is no step function", ""),
}


@pytest.mark.parametrize("name", PRECISE)
def test_what_stands_in_the_way_of_a_sum_is_told_precisely(name):
    program, secret, seen, expected, text = PRECISE[name]
    attack = pv.Attack(program, {"x": pv.Uniform(0, 1), "y": pv.Normal(0, sd=1)}, secret, observe=seen)
    assert expected.format(line_of(program, text) if text else "") in message(attack)
