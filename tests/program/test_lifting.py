"""Lifting: what is traced, what falls to plain calls, and that both give what Python gives."""

import math
import random
from dataclasses import dataclass

import numpy as np
import pytest

import privug as pv
from privug.inference.question import Question
from privug.inference.sampling import draw
from privug.model.plan import Plan
from privug.model.traits import OPERATIONS
from privug.program.lifting import apply, apply_traced

FACTOR = 1.5


def helper(age):
    return age * FACTOR


def table(rows=5):
    return pv.Records(
        rows,
        lambda i: pv.Row(
            name=pv.Choice(["Ann", "Bob"]), age=pv.DiscreteUniform(0, 99), zip=pv.Choice(["2300", "2450"])
        ),
    )


def by_helper(records):
    return [helper(row.age) for row in records]


def by_columns(records):
    return {"mean": np.mean(records.age), "sd": records.age.std(), "oldest": records.age.max()}


def by_unpacking(records):
    total = 0
    for _name, age, _zip in records:
        total += age
    return total / len(records)


def by_slicing(records):
    return sum(row["age"] for row in records[1:]) - records[0].age


def by_closure(offset):
    def program(records):
        return records[-1].age + offset

    return program


def zips(records):
    return [row.zip[:2] for row in records]


def same_name(records):
    return sum(row.name == records[0].name for row in records)


def strings(records):
    return records[0].name.upper() + "-" + records[1].zip


def rounded(records):
    return round(sum(row.age for row in records) / 7, 1), abs(records[0].age - 50) // 10, -records[0].age % 7


def branching(records):
    return "old" if records[0].age > 50 else "young"


def middle(records):
    return sorted(row.age for row in records)[len(records) // 2]


@dataclass
class Summary:
    low: float
    high: float


def dataclass_output(records):
    return Summary(records.age.min(), records.age.max())


def array_output(records):
    return np.sort(records.age)


def grouped(records):
    groups = {}
    for row in records:
        groups.setdefault(row.zip, []).append(row.age)
    return {code: max(ages) for code, ages in groups.items()}


def swallowing(records):
    try:
        return [10, 20, 30].index(records[0].age)
    except ValueError:
        return -1


TRACED = [
    swallowing,branching, middle, by_helper, by_columns, by_unpacking, by_slicing, by_closure(3), zips, same_name,
          strings, rounded,
          dataclass_output, array_output, grouped]  # fmt: skip


def mutating(records):
    records.sort(key=lambda row: row.age)
    records.pop()
    return [row.age for row in records]


def printing(records):
    print(records[0].age, end="")
    return f"{records[0].name} is {records[0].age}"


OPAQUE = [mutating, printing]


def inputs_and_outputs(program, samples=200):
    question = Question(program, {"records": table()}, secret=lambda records: records)
    return draw(question, None, samples=samples, seed=1).quantities


@pytest.mark.parametrize("program", TRACED, ids=lambda program: program.__name__)
def test_traced_programs_give_what_plain_calls_give(program):
    assert apply(program, [table()]).lifting.tier == "traced"
    inputs, outputs = inputs_and_outputs(program)
    for records, output in zip(inputs.values(), outputs.values(), strict=True):
        plain = program(records)
        if isinstance(plain, np.ndarray):
            assert output.tolist() == plain.tolist()
        elif isinstance(plain, dict):
            assert output == pytest.approx(plain, rel=1e-12)
        else:
            assert output == plain


@pytest.mark.parametrize("program", OPAQUE, ids=lambda program: program.__name__)
def test_other_programs_are_called_as_they_are(program):
    lifted = apply(program, [table()])
    assert lifted.lifting.tier == "python"
    inputs, outputs = inputs_and_outputs(program)
    for records, output in zip(inputs.values(), outputs.values(), strict=True):
        assert output == program(records)


def test_the_reason_names_construct_and_line():
    reason = apply(printing, [table()]).lifting.reason
    assert "text formatting" in reason
    assert f"line {printing.__code__.co_firstlineno + 1}" in reason


def test_self_check_catches_a_program_that_looks_at_types():
    def suspicious(records):
        return 1.0 if records[0].age.__class__ is int else 2.0

    with pytest.warns(pv.LiftingWarning, match=r"plain call gave 1\.0, the traced program 2\.0"):
        lifted = apply(suspicious, [table()])
    assert lifted.lifting.tier == "python"


def test_randomness_of_the_programs_own_is_noticed_however_rarely_it_matters():
    for program in (
        lambda x: x + random.random(),
        lambda x: x if random.random() < 0.999 else 1 - x,
        lambda x: x + np.random.normal(),
    ):
        lifted = apply(program, [pv.Uniform(0, 1)])
        assert str(lifted.lifting) == "python (it draws random numbers of its own)"


def test_randomness_of_the_programs_own_follows_the_seed_and_leaves_the_global_state():
    program = lambda x: (x > 0.5) * random.random() + np.random.normal()
    attack = pv.Attack(program, prior={"x": pv.Uniform(0, 1)}, secret="x")
    random.seed(7)
    state = random.getstate()
    first, second = (attack.run(samples=300, seed=4).prediction.batch.numbers() for _ in range(2))
    assert np.array_equal(first, second)
    assert len(np.unique(first)) == 300
    assert random.getstate() == state


def test_sample_is_a_draw_of_its_own():
    noise = pv.Normal(0, sd=1)

    def two_draws(x):
        return pv.sample(noise) - pv.sample(noise) + 0 * x

    result = pv.Attack(two_draws, prior={"x": pv.Uniform(0, 1)}, secret="x").run(samples=20_000, seed=1)
    assert result.attack.lifting.tier == "traced"
    assert 2**0.5 in result.prediction.std().widened(2)
    assert two_draws(0.5) != two_draws(0.5)


def test_sample_in_a_plain_call_gives_plain_values():
    assert pv.sample(pv.Choice(["a"])) == "a"
    assert isinstance(pv.sample(pv.Poisson(3)), int)
    assert pv.sample(pv.Row(age=pv.Constant(3), name="Bob")).name == "Bob"


def test_sample_under_a_condition():
    def sometimes(x):
        return pv.sample(pv.Normal(0, sd=1)) if x > 0.5 else 0.0

    result = pv.Attack(sometimes, prior={"x": pv.Uniform(0, 1)}, secret="x").run(samples=4000, seed=1)
    assert result.attack.lifting.tier == "traced"
    assert 0.5 in result.prediction.probability(lambda o: o == 0.0).widened(2)


def test_certain_values_may_be_branched_on():
    def program(records):
        return sum(row.age for row in records if row.name == "Alice")

    records = pv.Records(3, lambda i: pv.Row(name=pv.Constant("Alice" if i == 0 else "Bob"), age=pv.Uniform(0, 1)))
    assert apply(program, [records]).lifting.tier == "traced"


def test_lift_as_decorator_on_plain_and_random_values():
    @pv.lift
    def double(x):
        """Twice."""
        return 2 * x

    assert double(4) == 8
    assert double.__doc__ == "Twice."
    assert isinstance(double(pv.Uniform(0, 1)), pv.RandomVariable)


def test_lift_splits_a_table_of_random_size():
    records = pv.Records(pv.DiscreteUniform(1, 3), pv.Row(x=pv.Constant(1.0)))
    total = pv.lift(lambda records: sum(row.x for row in records))(records)
    result = pv.Attack(lambda t: t, prior={"t": total}, secret="t").run(samples=3000, seed=1)
    assert result.posterior.distribution().keys() == {1.0, 2.0, 3.0}
    with pytest.raises(pv.PriorError, match="largest value"):
        pv.lift(len)(pv.Records(pv.Poisson(3), pv.Row(x=pv.Uniform(0, 1))))


def test_lift_refuses_what_is_not_a_function():
    with pytest.raises(pv.ArgumentError, match="function"):
        pv.lift(3)


def test_quantifiers_on_plain_and_random_rows_agree():
    def program(records):
        return (
            pv.count(records, lambda row: row.age > 30),
            pv.forall(records, lambda row: row.zip == "2300", then=lambda row: row.age < 80),
            pv.exists(records, lambda row: (row.age > 90) & (row.name == "Ann")),
            pv.where(records[0].age > 50, "old", "young"),
            pv.count(records.age, lambda age: age > 30),
            pv.forall(records.age, lambda age: age > 5, then=lambda age: age < 95),
            pv.exists(records.age, lambda age: age > 97),
        )

    assert apply(program, [table()]).lifting.tier == "traced"
    inputs, outputs = inputs_and_outputs(program)
    assert [program(records) for records in inputs.values()] == outputs.values()


def test_quantifiers_on_no_rows():
    assert pv.count([], bool) == 0
    assert pv.forall([], bool) is True
    assert pv.exists([], bool) is False
    with pytest.raises(pv.ArgumentError, match="predicate"):
        pv.count([1], 3)


def test_random_variables_refuse_single_answers_in_words():
    x = pv.Uniform(0, 1)
    for question in (bool, float, int, range, lambda v: v in [1, 2], lambda v: {v: 1}):
        with pytest.raises(TypeError):
            question(x)
    with pytest.raises(pv.Untraceable, match=r"pv\.where"):
        bool(x > 0.5)


def test_lambdas_and_local_functions_run_in_processes():
    """Forked workers inherit the program; it is never pickled."""
    threshold = 0.5

    def slow(x):
        total = 0
        for k in range(2000):
            total += k if x > threshold else -k
        return total

    attack = pv.Attack(slow, prior={"x": pv.Uniform(0, 1)}, secret=lambda x: x)
    with pv.limited(workers=2):
        result = attack.run(samples=12_000, seed=1)
    assert 0.5 in result.prediction.probability(lambda total: total > 0).widened(2)


@pytest.mark.parametrize("row", [pytest.param(row, id=row.math) for row in OPERATIONS.values() if row.math])
def test_functions_of_the_math_module_are_traced_with_constants_beside_random_numbers(row):
    function, x = getattr(math, row.math), pv.Uniform(0.2, 0.9)

    def single(x):
        return function(x)

    def first(x):
        return function(x, 1.5)

    def second(x):
        return function(1.5, x)

    for program in [single] if row.function.nin == 1 else [first, second]:
        traced = apply_traced(program, [x]).output.node
        drawn, values = Plan([x.node, traced]).run(20, np.random.default_rng(4))
        np.testing.assert_allclose(values, [program(number) for number in drawn.tolist()], rtol=1e-12)
