"""Releases that are a number or, where that is suppressed, None or a text: traced, and as plain calls give them."""

import math
from collections import Counter
from itertools import product

import numpy as np
import pytest

import privug as pv
from privug.errors import ProgramError
from privug.inference.question import Question
from privug.inference.sampling import draw
from privug.model.graph import everything_behind
from privug.model.maybe import Maybe
from privug.model.plates import Fold
from privug.model.structure import random_leaves
from privug.model.values import key_of


def prior(rows=5):
    def person(i):
        return pv.Row(pay=pv.Normal(30, sd=5), woman=pv.Bernoulli(0.4), age=pv.Choice([20, 30, 40.5]))

    return {"records": pv.Records(rows, person)}


def in_an_expression(records):
    xs = [r.pay for r in records if r.woman]
    return sum(xs) / len(xs) if len(xs) >= 2 else None


def in_a_statement(records):
    xs = [r.pay for r in records if r.woman]
    if len(xs) >= 2:
        return sum(xs) / len(xs)
    else:
        return "n/a"


def early(records):
    xs = [r.pay for r in records if r.woman]
    if len(xs) < 2:
        return None
    return sum(xs) / len(xs)


def without_a_word(records):
    xs = [r.pay for r in records if r.woman]
    if xs:
        return sum(xs) / len(xs)


def set_before(records):
    xs = [r.pay for r in records if r.woman]
    result = {"n": len(xs), "mean": None}
    if len(xs) >= 2:
        result["mean"] = sum(xs) / len(xs)
    return result


def set_on_both_branches(records):
    xs = [r.pay for r in records if r.woman]
    result = {}
    if len(xs) > 3:
        result["mean"] = sum(xs) / len(xs)
    elif len(xs) == 3:
        result["mean"] = sum(xs)
    else:
        result["mean"] = "suppressed"
    return result


def in_a_tuple(records):
    n = sum(r.woman for r in records)
    return n >= 2, sum(r.pay for r in records if r.woman) if n >= 2 else None


def counted(records):
    n = sum(r.woman for r in records)
    return n if n >= 3 else None


def nested(records):
    n = sum(r.woman for r in records)
    if n < 2:
        result = "few"
    elif n < 4:
        result = sum(r.pay for r in records if r.woman) / n
    else:
        result = sum(r.pay for r in records)
    return [result]


def zero_or_nothing_or_mean(records):
    n = sum(r.woman for r in records)
    if n == 0:
        return 0.0
    if n < 3:
        return None
    return sum(r.pay for r in records if r.woman) / n


def dominance(records):
    total, largest = sum(r.pay for r in records), max(r.pay for r in records)
    return total if largest < 0.25 * total else None


def mean_or_none(xs):
    return sum(xs) / len(xs) if xs else None


def gap(records):
    women = mean_or_none([r.pay for r in records if r.woman])
    men = mean_or_none([r.pay for r in records if not r.woman])
    found = women - men if women is not None and men is not None else None
    return round(found, 1) if found is not None else None


def those_that_are_there(records):
    groups = [mean_or_none([r.pay for r in records if r.woman == group]) for group in (True, False)]
    return sum(mean for mean in groups if mean is not None)


def truth_of_it(records):
    mean = mean_or_none([r.pay for r in records if r.woman])
    return mean * 2 if mean else "none"


def asked_for_its_type(records):
    mean = mean_or_none([r.pay for r in records if r.woman])
    return math.sqrt(abs(mean)) if isinstance(mean, float) else -1.0


def compared(records):
    mean = mean_or_none([r.pay for r in records if r.woman])
    return mean == None, mean != None, mean == 3.0, mean is not None and mean > 31  # noqa: E711


def whole_or_not(records):
    return records[0].age if records[0].woman else None


PLATED = [
    in_an_expression, in_a_statement, early, without_a_word, set_before, set_on_both_branches, in_a_tuple, counted,
    nested, zero_or_nothing_or_mean, gap, those_that_are_there, truth_of_it, asked_for_its_type, compared, dominance,
]  # fmt: skip


def same(left, right):
    if isinstance(left, dict):
        return isinstance(right, dict) and left.keys() == right.keys() and all(same(left[k], right[k]) for k in left)
    if isinstance(left, list | tuple):
        return type(left) is type(right) and len(left) == len(right) and all(map(same, left, right))
    return type(left) is type(right) and (left == right or (isinstance(left, float) and math.isclose(left, right)))


def agreed(program, given, samples=300):
    """Draw inputs and outputs of a traced program, and call it on those inputs; return the question and the outputs."""
    question = Question(program, given, secret=list(given))
    assert question.case().lifting.tier == "traced", str(question.case().lifting)
    run = draw(question, None, samples=samples, seed=3)
    outputs = run.quantities[1].values()
    for inputs, output in zip(run.quantities[0].values(), outputs, strict=True):
        with np.errstate(all="ignore"):
            plain = program(*inputs)
        assert same(plain, output), (plain, output, inputs)
    return question, outputs


def maybes(question):
    return [leaf for leaf in random_leaves(question.case().output) if isinstance(leaf.node.operation, Maybe)]


@pytest.mark.parametrize("program", [*PLATED, whole_or_not])
def test_outputs_are_those_of_plain_calls(program):
    agreed(program, prior())


@pytest.mark.parametrize("program", PLATED)
def test_many_rows_are_folded(program):
    question, _ = agreed(program, prior(60), samples=20)
    nodes = everything_behind(leaf.node for leaf in random_leaves(question.case().output))
    assert any(isinstance(node.operation, Fold) or "sum" in node.operation.traits.name for node in nodes)
    assert len(nodes) < 120


def test_parts_are_there_for_engines_to_read():
    question = Question(in_an_expression, prior(), secret="records")
    (leaf,) = maybes(question)
    present, value = leaf.node.parents
    assert present.dtype == bool
    assert value.dtype == np.float64
    assert leaf.node.operation.otherwise is None


def test_errors_elsewhere_in_a_program_are_still_raised():
    def program(records):
        n = sum(r.woman for r in records)
        share = 1 / n
        return share * sum(r.pay for r in records) if n >= 2 else None

    question = Question(program, prior(), secret="records", exclude_errors=True)
    assert question.case().lifting.tier == "traced"
    assert len(maybes(question)) == 1
    outputs = draw(question, None, samples=2000, seed=1).quantities[1].values()
    assert {type(output) for output in outputs} == {float, type(None)}
    with pytest.raises(ProgramError, match="ZeroDivisionError"):
        draw(Question(program, prior(), secret="records"), None, samples=2000, seed=1)


def several_texts(records):
    n = sum(r.woman for r in records)
    return "few" if n < 2 else None if n < 3 else sum(r.pay for r in records)


def computed_with(records):
    mean = mean_or_none([r.pay for r in records if r.woman])
    return mean == mean_or_none([r.pay for r in records if not r.woman])


def of_another_form(records):
    n = sum(r.woman for r in records)
    return None if n < 2 else (n, sum(r.pay for r in records))


@pytest.mark.parametrize("program", [several_texts, computed_with, of_another_form])
def test_what_has_no_such_form_is_called_sample_by_sample(program):
    assert Question(program, prior(), secret="records").case().lifting.tier == "python"


def test_where_gives_it_too():
    made = pv.where(pv.Bernoulli(0.5), pv.Normal(0, sd=1), None)
    assert isinstance(made.node.operation, Maybe)


@pytest.mark.parametrize("program", [in_an_expression, set_on_both_branches, in_a_tuple, counted])
def test_finite_questions_have_exact_answers(program):
    """All combinations of the inputs, counted one by one, give the distribution of the output."""

    def person(i):
        return pv.Row(pay=pv.DiscreteUniform(1, 2), woman=pv.Bernoulli(0.5), age=20)

    rows = 4
    attack = pv.Attack(program, {"records": pv.Records(rows, person)}, secret=lambda records: records[0].pay)
    result = attack.run(engine="exact")
    assert attack.lifting.tier == "traced"
    people = [pv.Row(pay=pay, woman=woman, age=20) for pay in (1, 2) for woman in (0, 1)]
    expected = Counter(key_of(program(list(table))) for table in product(people, repeat=rows))
    codes, values = result.joint.output.batch.factorized()
    shares = np.bincount(codes, result.joint.output.weights)
    found = {key_of(value): share for value, share in zip(values, shares / shares.sum(), strict=True)}
    assert found.keys() == expected.keys()
    for key, count in expected.items():
        assert math.isclose(found[key], count / len(people) ** rows, rel_tol=1e-9)
