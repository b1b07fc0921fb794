"""on_error="exclude": every tier leaves out and counts the inputs on which the program raises, and no others."""

import math
import sys

import numpy as np
import pytest

import privug as pv
from failing_programs import (
    FAILING,
    GUARDED,
    NUMBERS,
    OF_MANY_ROWS,
    FailingWriter,
    TooFew,
    always,
    caught,
    divides_in_one_branch,
    early,
    in_a_loop,
    nested,
    noisy,
    prior_of,
    text_out,
    text_traced,
    two_kinds,
)
from privug.inference.case_plan import CasePlan, settled
from privug.inference.question import Question
from privug.inference.sampling import generator
from privug.model.plan import Plan
from privug.model.plated_tables import PlatedTable
from privug.model.structure import flatten
from privug.program import lifting
from privug.program.inputs import Arguments
from privug.program.tracing import Trace, trace
from random_programs import random_program


@pytest.mark.parametrize("engine", ["exact", "sample"])
def test_tuples_and_lists_stand_in_for_failed_samples_as_wholes(engine):
    def pair(x, y):
        return (x // y, str(x))

    prior = {"x": pv.DiscreteUniform(0, 4), "y": pv.DiscreteUniform(0, 1)}
    attack = pv.Attack(pair, prior=prior, secret="x", on_error="exclude")
    seen = attack.run(pv.equals((3, "3")), engine=engine, samples=500)
    assert seen.posterior.probability(lambda x: x == 3).value == 1
    satisfied = attack.run(pv.such_that(lambda output: 1 / len(output) > 0.1), engine=engine, samples=500)
    assert 0.2 in satisfied.posterior.probability(lambda x: x == 3).widened(1.5)


def left(program, prior, samples, seed=3):
    """Run one block: how the program was lifted, the inputs that are left, their outputs, and how many are not."""
    question = Question(program, prior, secret=list(prior), exclude_errors=True)
    case = question.case()
    kept = CasePlan(case, None, None, [], exclude=True).run(generator(seed, 0, 1), np.arange(samples), {})
    secret, output = (settled(quantity).values() for quantity in kept.quantities)
    return case.lifting.tier, secret, output, kept.excluded


def plainly(program, prior, samples):
    """What plain calls leave of the same draws."""
    inputs, outputs = [], []
    for values in left(lambda **inputs: 0, prior, samples)[1]:
        try:
            with np.errstate(all="ignore"):
                outputs.append(program(**dict(zip(prior, values, strict=True))))
        except Exception:
            continue
        inputs.append(values)
    return inputs, outputs, samples - len(inputs)


def same(one, other):
    if isinstance(one, float):
        return one == pytest.approx(other, rel=1e-12)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other


def compare(program, tier, samples=250):
    prior = prior_of(program)
    inputs, outputs, failed = plainly(program, prior, samples)
    assert (failed > 0) == (program not in GUARDED), "this program tests nothing"
    found = left(program, prior, samples)
    assert found[0] == tier
    assert found[3] == failed
    assert found[1] == inputs
    assert same(outputs, found[2])


@pytest.fixture
def untraceable(monkeypatch):
    monkeypatch.setattr(lifting, "trace", lambda *arguments: Trace(obstacle="a test forbids it"))


def name_of(program):
    return program.__name__


@pytest.mark.parametrize("program", FAILING + GUARDED, ids=name_of)
def test_traced_programs_fail_where_python_fails(program):
    compare(program, "traced")


@pytest.mark.parametrize("program", OF_MANY_ROWS, ids=name_of)
def test_rows_side_by_side_fail_where_python_fails(program):
    prior = prior_of(program)
    assert isinstance(Question(program, prior, "many", exclude_errors=True).case().inputs["many"], PlatedTable)
    compare(program, "traced")


@pytest.mark.parametrize("program", FAILING + GUARDED, ids=name_of)
def test_called_programs_fail_where_python_fails(program, untraceable):
    with pv.limited(native=False):
        compare(program, "python")


def random_program_fails_as_python_does(seed):
    """Compare a random program with plain calls, without the self-check's help; say whether it fails on some inputs."""
    source, program = random_program(seed, FailingWriter)
    inputs = [pv.DiscreteUniform(-3, 3) for _ in range(3)]
    traced = trace(program, inputs, {})
    if traced.obstacle is not None:
        return False
    both, failed = Arguments(*flatten((inputs, traced.output))), np.zeros(200, bool)
    arrays = Plan(both.nodes).run(200, generator(seed), failed=failed)
    for fails, (values, output) in zip(failed, both.plain(arrays, 200), strict=True):
        try:
            expected = program(*values)
        except Exception:
            assert fails, f"seed {seed}, inputs {values}\n{source}"
            continue
        assert not fails, f"seed {seed}, inputs {values}\n{source}"
        assert output == expected, f"seed {seed}, inputs {values}\n{source}"
    return 0 < failed.sum() < 200


def test_random_programs_fail_where_python_fails():
    assert sum(random_program_fails_as_python_does(seed) for seed in range(80)) >= 15


@pytest.mark.slow
@pytest.mark.parametrize("hundred", range(1, 15))
def test_many_random_programs_fail_where_python_fails(hundred):
    assert sum(random_program_fails_as_python_does(seed) for seed in range(100 * hundred, 100 * hundred + 100)) >= 15


@pytest.mark.parametrize("program", [text_out], ids=name_of)
def test_programs_that_cannot_be_traced_are_called(program):
    with pv.limited(native=False):
        compare(program, "python")


def test_texts_fail_where_the_numbers_in_them_do():
    compare(text_traced, "traced")


@pytest.mark.parametrize("program", [early, divides_in_one_branch, in_a_loop, two_kinds], ids=name_of)
def test_compiled_programs_fail_where_python_fails(program, untraceable):
    with pv.limited(native=True):
        compare(program, "native")


def test_errors_that_the_program_catches_are_not_its_errors():
    result = pv.Attack(caught, NUMBERS, "y", on_error="exclude").run(samples=500, seed=1)
    assert result.diagnostics.excluded == 0
    assert {0, 1, 2} == set(result.posterior.distribution())


def test_draws_of_failing_programs_stay_with_their_inputs():
    for tier, forbidden in (("traced", False), ("python", True)):
        with pytest.MonkeyPatch.context() as patch:
            if forbidden:
                patch.setattr(lifting, "trace", lambda *arguments: Trace(obstacle="a test forbids it"))
            attack = pv.Attack(noisy, NUMBERS, ["x", "y"], on_error="exclude")
            result = attack.run(samples=1200, seed=2, engine="sample")
            assert attack.lifting.tier == tier
        drawn, failed = result.diagnostics.draws, result.diagnostics.excluded
        assert drawn == 1200 + failed
        assert abs(failed / drawn - 1 / 3) < 0.04
        joined = zip(result.posterior.batch.values(), result.prediction.batch.values(), strict=True)
        assert all(output in (x / 1 + y, x / 2 + y) for (x, y), output in joined)


def raises_for_some_categories(group, x):
    if group == "rare" and x > 4:
        raise TooFew
    return x


def test_rare_failures_that_no_check_saw_are_left_out():
    prior = {"group": pv.Choice(["rare", "usual"], p=[0.001, 0.999]), "x": pv.DiscreteUniform(0, 99)}
    attack = pv.Attack(raises_for_some_categories, prior, ["group", "x"], on_error="exclude")
    result = attack.run(samples=60_000, seed=1, engine="sample")
    assert attack.lifting.tier == "traced"
    rare = [x for group, x in result.posterior.batch.values() if group == "rare"]
    assert rare
    assert max(rare) <= 4
    assert 30 < result.diagnostics.excluded < 95  # 57 are expected


OBSERVATIONS = {
    "equals": pv.equals(5.0),
    "near": pv.near(5, within=1),
    "such_that": pv.such_that(lambda output: 4 < output < 6),
    "such_that, not traced": pv.such_that(lambda output: f"{output:.0f}" == "5"),
    "such_that, fails where there is no output": pv.such_that(lambda output: 5 <= 10 / (10 / output) <= 5.1),
}


@pytest.mark.parametrize("name", OBSERVATIONS)
@pytest.mark.parametrize("is_traced", [True, False])
def test_observations_see_only_what_there_is(name, is_traced, monkeypatch):
    if not is_traced:
        monkeypatch.setattr(lifting, "trace", lambda *arguments: Trace(obstacle="a test forbids it"))
    attack = pv.Attack(lambda x: 10 / x, {"x": pv.DiscreteUniform(0, 4)}, "x", on_error="exclude")
    result = attack.run(observe=OBSERVATIONS[name], samples=1500, seed=1, engine="sample")
    assert set(result.posterior.distribution()) == {2}
    assert 0.25 in result.diagnostics.evidence.widened(2)
    assert attack.lifting.tier == ("traced" if is_traced else "python")


@pytest.mark.parametrize("is_traced", [True, False])
def test_errors_of_predicates_and_queries_are_not_left_out(is_traced, monkeypatch):
    if not is_traced:
        monkeypatch.setattr(lifting, "trace", lambda *arguments: Trace(obstacle="a test forbids it"))
    attack = pv.Attack(lambda x: 10 / x, {"x": pv.DiscreteUniform(0, 400)}, "x", on_error="exclude")
    with pytest.raises(pv.ProgramError, match="ZeroDivisionError"):
        attack.run(observe=pv.such_that(lambda output: 1 / (output - 5) > 0), samples=3000, seed=1, engine="sample")
    with pytest.raises(pv.ProgramError, match="the query failed"):
        attack.run(samples=3000, seed=1, engine="sample").belief(lambda x: 1 / (x - 3))


def test_secrets_that_fail_are_left_out_too():
    attack = pv.Attack(lambda x: x, {"x": pv.DiscreteUniform(0, 3)}, lambda x: 6 / x, on_error="exclude")
    result = attack.run(samples=2000, seed=1, engine="sample")
    assert set(result.posterior.distribution()) == {2.0, 3.0, 6.0}
    assert set(result.prediction.distribution()) == {1, 2, 3}


def test_programs_that_always_fail():
    for program in (always, lambda x, y: x / (y - y), lambda x, y: math.sqrt(-1 - x)):
        with pytest.raises(pv.ProgramError, match="on every input"):
            pv.Attack(program, NUMBERS, "x", on_error="exclude").run(samples=100, budget=3000, engine="sample")


def test_limits_of_tracing_are_not_the_programs_errors():
    def rounds(x):
        n = 0
        while n < x:
            n += 1
        return n

    prior = {"x": pv.Choice([3, 200], p=[0.9999, 0.0001])}
    result = pv.Attack(rounds, prior, "x", on_error="exclude").run(samples=300, seed=1, engine="sample")
    assert result.diagnostics.excluded == 0


def test_densities_are_those_of_inputs_that_do_not_fail():
    """p(x + y = 1 | y > 0): the observation moves x, and whether the program fails depends on y alone."""

    def program(x, y):
        if y == 0:
            raise TooFew
        return x + y

    prior = {"x": pv.Normal(0, sd=1), "y": pv.DiscreteUniform(0, 2)}
    result = pv.Attack(program, prior, "y", on_error="exclude").run(
        observe=pv.equals(1.0), samples=20_000, seed=1, engine="sample"
    )
    densities = {y: math.exp(-((1 - y) ** 2) / 2) / math.sqrt(2 * math.pi) for y in (1, 2)}
    assert sum(densities.values()) / 2 in result.diagnostics.evidence.widened(2)
    assert densities[1] / sum(densities.values()) in result.posterior.probability(lambda y: y == 1).widened(2)


def test_densities_where_the_moved_inputs_fail():
    """p(x + y = 1 | x is not above 1, y not zero), where x is what the observation moves."""

    def program(x, y):
        return x + 1 / y * y * y

    prior = {"x": pv.Normal(0, sd=1), "y": pv.DiscreteUniform(0, 2)}
    result = pv.Attack(program, prior, "y", on_error="exclude").run(
        observe=pv.equals(1.0), samples=20_000, seed=1, engine="sample"
    )
    densities = [math.exp(-((1 - y) ** 2) / 2) / math.sqrt(2 * math.pi) for y in (1, 2)]
    assert sum(densities) / 2 in result.diagnostics.evidence.widened(2)
    assert abs(result.diagnostics.excluded / result.diagnostics.draws - 1 / 3) < 0.02


@pv.batched
def batched_ratio(x, y):
    if (y == 0).any():
        raise ZeroDivisionError("a batch with a zero")
    return x / y


def test_batched_programs_fail_sample_by_sample():
    inputs, outputs, failed = plainly(lambda x, y: x / y, NUMBERS, 250)
    assert left(batched_ratio, NUMBERS, 250) == ("batched", inputs, outputs, failed)
    with pytest.raises(pv.ProgramError, match=r"(?s)a batch with a zero.*y = 0"):
        pv.Attack(batched_ratio, {"x": 1.0, "y": pv.DiscreteUniform(0, 5000)}, "y").run(samples=20_000, seed=1)
    with pytest.raises(pv.ProgramError, match="1000 inputs out of 1000"):
        pv.Attack(pv.batched(lambda x: [][1]), {"x": pv.Uniform(0, 1)}, "x", on_error="exclude").run(samples=100)
    mixing = pv.batched(lambda x: x if len(x) < 100 else [][1])
    with pytest.raises(pv.ProgramError, match="on none of them alone"):
        pv.Attack(mixing, {"x": pv.Uniform(0, 1)}, "x", on_error="exclude").run(samples=200, engine="sample")


EXTERNAL = """
import json, sys
for line in sys.stdin:
    given = json.loads(line)
    if given["y"] == 0:
        raise SystemExit(1)
    print(json.dumps(given["x"] / given["y"]), flush=True)
"""


def test_external_programs_fail_sample_by_sample(tmp_path):
    script = tmp_path / "ratio.py"
    script.write_text(EXTERNAL)
    prior = {"x": pv.DiscreteUniform(0, 5), "y": pv.Choice([0, 1, 2], p=[0.02, 0.49, 0.49])}
    inputs, outputs, failed = plainly(lambda x, y: x / y, prior, 250)
    assert failed > 0
    assert left(pv.External([sys.executable, str(script)]), prior, 250) == ("external", inputs, outputs, failed)


def test_the_same_samples_on_any_number_of_workers():
    runs = []
    for workers, mebibytes in ((1, 256), (2, 256), (2, 4)):
        with pv.limited(workers=workers, memory_budget=mebibytes * 2**20):
            result = pv.Attack(nested, NUMBERS, ["x", "y"], on_error="exclude").run(
                observe=pv.between(1, 4), samples=60_000, seed=5, engine="sample"
            )
            runs.append((result.diagnostics.excluded, result.posterior.batch.values()))
    assert runs[0] == runs[1] == runs[2]
