"""The native tier: compiled programs give what plain calls give, or are refused with a reason."""

import itertools
import math
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import privug as pv
from privug.inference.question import Question
from privug.inference.sampling import draw
from privug.model.operations import SampleFailure
from privug.model.plan import Plan
from privug.program import calls, lifting
from privug.program.lifting import apply
from privug.program.native import kernel
from privug.program.native import kernel as native
from privug.program.native import kernel as storage
from privug.program.native.kernel import fingerprint
from privug.program.tracing import Trace

LIMIT = 40
EDGE_INTEGERS = pv.Choice([2**63 - 1, -(2**63), 2**62, -(2**62), 2**53 + 1, 2**53, 0, 1, -1, 3, -7])
EDGE_FLOATS = pv.Choice([1e308, -1e308, math.inf, -math.inf, 0.0, -0.0, 5e-324, 1.5, -1.5, 2.0**53 + 2, 3.7, -7.3, 0.5])


@pytest.fixture
def untraceable(monkeypatch):
    """Whatever tracing learns to do: here it does nothing."""
    own = {secret.__code__ for secret in (first_age,)}
    trace = lifting.trace

    def refusing(program, positional, named, *more):
        if getattr(program, "__code__", None) in own:
            return trace(program, positional, named)
        return Trace(obstacle="a test forbids it")

    monkeypatch.setattr(lifting, "trace", refusing)


@pytest.fixture(autouse=True)
def _compiling(monkeypatch):
    monkeypatch.setenv("PRIVUG_CACHE_DIR", "")
    with pv.limited(native=True):
        yield


def first_age(records):
    return records[0].age


def table(rows=12):
    return pv.Records(
        rows,
        lambda i: pv.Row(
            name=pv.Choice(["Ann", "Bob", "Cy"]), age=pv.DiscreteUniform(0, 99), height=pv.Normal(1.7, sd=0.1)
        ),
    )


def arguments_of(*positional, **named):
    return lifting.Arguments(*lifting._flattened((list(positional), named)))


def compiled(program, *positional, **named):
    result = native.compile_program(program, arguments_of(*positional, **named))
    assert not isinstance(result, str), result
    return result


def reason(program, *positional, **named):
    result = native.compile_program(program, arguments_of(*positional, **named))
    assert isinstance(result, str), "it was compiled"
    return result


def same(left, right):
    if isinstance(left, tuple):
        return isinstance(right, tuple) and len(left) == len(right) and all(map(same, left, right))
    if left != left:
        return right != right
    return left == right or math.isclose(left, right, rel_tol=1e-13)


def compare(program, *inputs, samples=400, most_failed=0.0):
    """Compare compiled and plain calls exactly; return how many samples were left to plain calls."""
    arguments = arguments_of(*inputs)
    kernel = compiled(program, *inputs)
    shape, codes = native.layout(arguments), native.encodings(kernel.code, arguments)
    arrays = Plan(arguments.nodes).run(samples, np.random.default_rng(5))
    outputs, failed = kernel.run(native.prepared(arguments, shape, codes, arrays, samples), samples)
    for k, (positional, _) in enumerate(arguments.plain(arrays, samples)):
        if not failed[k]:
            result = tuple(output[k].item() for output in outputs)
            plain = program(*positional)
            assert same(plain, result if kernel.is_tuple else result[0]), positional
    assert failed.mean() <= most_failed
    return int(failed.sum())


# Programs that end in compiled code.
def collatz(n):
    steps = 0
    while n > 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


def nested(numbers, rounds):
    total = 0
    for _ in range(rounds):
        for number in numbers:
            if number % 2:
                total += number
            else:
                continue
            if total > LIMIT:
                return -total
    return total


def most_frequent(numbers):
    counts = {}
    for number in numbers:
        if number in counts:
            counts[number] += 1
        else:
            counts[number] = 1
    best = 0
    for count in counts.values():
        best = max(best, count)
    return best, len(counts)


def by_name(records):
    total, oldest = 0.0, records[0]
    position = 0
    while position < len(records):
        name, age, height = records[position]
        if name == "Ann" or name in ("Cy", "Dora"):
            total += height
        if age > oldest.age:
            oldest = records[position]
        position += 1
    return total, oldest["age"], records[-1].name != "Bob", records.age.sum() + len(records)


def doubled(x):
    return helper(x) * 2


def helper(x):
    return x + LIMIT


def until_large(numbers):
    total = 0.0
    for k in range(len(numbers)):
        if numbers[k] > 1:
            break
        total += doubled(numbers[k])
    return total


def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def is_even(n):
    return True if n == 0 else is_odd(n - 1)


def is_odd(n):
    return False if n == 0 else is_even(n - 1)


def lists(numbers):
    large = [number * 2 for number in numbers if number > 4]
    large.append(1)
    copy = large
    copy += [3]
    numbers[0] += 100
    return sum(large), len(large), min(large), numbers[0], any(large), large[-1]


ARRAY = pv.Array(pv.DiscreteUniform(0, 9), 10)
NATIVE = [
    (collatz, pv.DiscreteUniform(1, 3000)),
    (nested, ARRAY, pv.DiscreteUniform(0, 4)),
    (most_frequent, ARRAY),
    (by_name, table()),
    (until_large, pv.Array(pv.Normal(0, sd=1), 6)),
    (fibonacci, pv.DiscreteUniform(0, 12)),
    (is_even, pv.DiscreteUniform(0, 30)),
    (lists, ARRAY),
]


@pytest.mark.parametrize(("program", "inputs"), [(p, i) for p, *i in NATIVE], ids=[p.__name__ for p, *_ in NATIVE])
def test_compiled_programs_give_what_plain_calls_give(program, inputs):
    assert compare(program, *inputs) == 0


def integers(x, y):
    return x + y, x - y, x * y, -x, abs(x), x // y, x % y, x < y, x < y + 0.5, x & y, x | y, ~x


def floats(x, y):
    return x // y, x % y, x < y, x == y, x * y, x**2, max(x, y), min(x, 1), bool(x)


def conversions(x):
    return int(x), math.floor(x), math.ceil(x), round(x), math.exp(x), abs(x), math.log(abs(x))


def power(x, y):
    return x**y


@pytest.mark.parametrize(
    ("program", "inputs"),
    [
        (integers, (EDGE_INTEGERS, EDGE_INTEGERS)),
        (floats, (EDGE_FLOATS, EDGE_FLOATS)),
        (conversions, (EDGE_FLOATS,)),
        (power, (pv.DiscreteUniform(-3, 3), pv.DiscreteUniform(-3, 45))),
        (power, (EDGE_FLOATS, EDGE_FLOATS)),
    ],
)
def test_edge_values_are_right_or_left_to_python(program, inputs):
    assert compare(program, *inputs, most_failed=0.8) > 0


def element(numbers, k):
    while numbers[k] < 0:
        k += 1
    return numbers[k] // k


def test_errors_surface_with_the_input_and_the_kind_of_error(untraceable):
    prior = {"numbers": pv.Array(pv.DiscreteUniform(1, 5), 4), "k": pv.DiscreteUniform(1, 4)}
    assert apply(element, list(prior.values())).lifting.tier == "native"
    with pytest.raises(pv.ProgramError, match=r"(?s)IndexError.*k = 4") as caught:
        draw(Question(element, prior, secret="k"), None, samples=500, seed=1)
    assert isinstance(caught.value.__cause__, IndexError)


def hundredths(k):
    return 100 // k


def test_the_first_sample_that_fails_is_named(untraceable):
    k = pv.DiscreteUniform(0, 9)
    output = apply(hundredths, [k]).output
    values = Plan([k.node]).run(100, np.random.default_rng(1))[0]
    with pytest.raises(SampleFailure) as failure:
        Plan([k.node, output.node]).run(100, np.random.default_rng(1))
    assert isinstance(failure.value.cause, ZeroDivisionError)
    assert failure.value.index == np.flatnonzero(values == 0)[0] > 0


def test_inputs_that_fail_are_excluded_from_compiled_programs_too(untraceable):
    question = Question(hundredths, {"k": pv.DiscreteUniform(0, 9)}, secret="k", exclude_errors=True)
    run = draw(question, None, samples=2000, seed=1)
    assert run.lifting.tier == "native"
    secrets, outputs = (batch.values() for batch in run.quantities)
    assert outputs == [100 // k for k in secrets]
    assert len(set(secrets)) == 9
    assert 150 < run.diagnostics.excluded < 300


def test_nothing_is_compiled_unless_asked_for(untraceable):
    with pv.limited(native=False):
        assert apply(hundredths, [pv.DiscreteUniform(1, 9)]).lifting.tier == "python"


def remainder(x):
    total = 1
    while total < 10**x:
        total *= 10
    return total % 7


def test_whole_numbers_beyond_64_bits_are_those_of_python(untraceable):
    prior = {"x": pv.DiscreteUniform(10, 22)}
    assert apply(remainder, list(prior.values())).lifting.tier == "native"
    secrets, outputs = draw(Question(remainder, prior, secret="x"), None, samples=300, seed=1).quantities
    assert [remainder(x) for x in secrets.values()] == outputs.values()


def test_a_result_beyond_64_bits_is_an_error(untraceable):
    prior = {"n": pv.DiscreteUniform(1, 40)}

    def factorial(n):
        product = 1
        while n > 0:
            product *= n
            n -= 1
        return product

    with pv.limited(native=True), pytest.raises(pv.ProgramError, match=r"native=False"):
        draw(Question(factorial, {"n": pv.DiscreteUniform(1, 22)}, secret="n"), None, samples=300, seed=1)
    assert "gives up" in apply(factorial, list(prior.values())).lifting.not_compiled


def without_value(x):
    if x > 0:
        y = 1
    return y


def maybe_none(x):
    return 1.0 if x > 0 else None


def text(x):
    return "high" if x > 0 else "low"


def swallowing(x):
    try:
        return 1 // x
    except ZeroDivisionError:
        return 0


def own_randomness(x):
    return x + np.random.random()


def noisy(x):
    return x + pv.sample(pv.Normal(0, sd=1))


def looking_at_types(x):
    return isinstance(x, int)


def cutting(x):
    values = [0, 0]
    values[0] = x + 0.5
    return values[0]


def overwriting(records):
    ages = records.age
    ages[0] = 7
    return ages[0] + records[0].age


def ordering(records):
    return records[0].name < records[1].name


def by_identity(x):
    return x is LIMIT


def returning_a_row(records):
    return records[0]


def printing(x):
    print(x)
    return x


@pytest.mark.parametrize(
    ("program", "argument", "why"),
    [
        (without_value, pv.Normal(0, sd=1), "'y' may be used before it is set"),
        (maybe_none, pv.Normal(0, sd=1), "may be None"),
        (text, pv.Normal(0, sd=1), "output is of type Category"),
        (swallowing, pv.DiscreteUniform(0, 2), "try"),
        (own_randomness, pv.Normal(0, sd=1), r"numpy\.random"),
        (noisy, pv.Normal(0, sd=1), "module privug"),
        (looking_at_types, pv.Normal(0, sd=1), "isinstance"),
        (cutting, pv.DiscreteUniform(0, 2), "float64 where there are int64"),
        (overwriting, table(2), "cannot be compiled"),
        (ordering, table(2), "cannot be compiled"),
        (by_identity, pv.DiscreteUniform(0, 2), "operator is_"),
        (returning_a_row, table(2), "output is of type"),
        (printing, pv.Normal(0, sd=1), "print"),
        (sum, pv.Array(pv.Normal(0, sd=1), 2), "not a plain Python function"),
        (len, pv.Normal(0, sd=1), "not a plain Python function"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_refused_programs_say_why(program, argument, why):
    assert re.search(why, reason(program, argument))


def test_refused_arguments_say_why():
    assert "list" in reason(collatz, [pv.DiscreteUniform(0, 1)])
    assert "single strings" in reason(collatz, pv.Choice([(1, 2), (3, 4)]))
    assert "named 'count'" in reason(returning_a_row, pv.Records(2, pv.Row(count=pv.Uniform(0, 1))))
    assert "without rows" in reason(returning_a_row, pv.Records(0, pv.Row(age=pv.Uniform(0, 1))))


def test_globals_are_read_again_when_a_program_is_lifted_again(monkeypatch):
    before = compiled(doubled, pv.DiscreteUniform(0, 3))
    assert compiled(doubled, pv.DiscreteUniform(0, 3)) is before
    monkeypatch.setitem(globals(), "LIMIT", 7)
    assert compiled(doubled, pv.DiscreteUniform(0, 3)) is not before
    compare(doubled, pv.DiscreteUniform(0, 3))


def test_the_tier_and_its_reason(untraceable):
    lifting = apply(collatz, [pv.DiscreteUniform(1, 3000)]).lifting
    assert (lifting.tier, lifting.reason) == ("native", "a test forbids it")
    with pv.limited(native=False):
        assert apply(collatz, [pv.DiscreteUniform(1, 3000)]).lifting.tier == "python"
    assert apply(collatz, [pv.DiscreteUniform(1, 3000)], exclude_errors=True).lifting.tier == "native"
    refused = apply(text, [pv.DiscreteUniform(1, 3000)]).lifting
    assert refused.tier == "python"
    assert refused.reason == "a test forbids it"
    assert "Category" in refused.not_compiled


def highest(n):
    count, highest = 0, n
    while n > 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        highest = max(highest, n)
        count += 1
    return count, highest / 2, count > 30


def test_parts_of_a_tuple_are_random_variables_of_their_own(untraceable):
    prior = {"n": pv.DiscreteUniform(1, 3000)}
    output = apply(highest, list(prior.values())).output
    assert [part.node.dtype.kind for part in output] == ["i", "f", "b"]
    secrets, outputs = draw(Question(highest, prior, secret="n"), None, samples=300, seed=1).quantities
    assert [highest(n) for n in secrets.values()] == outputs.values()


def test_attacks_take_compiled_programs(untraceable):
    result = pv.Attack(collatz, prior={"n": pv.DiscreteUniform(1, 8)}, secret="n", observe=pv.equals(3)).run(seed=1)
    assert result.attack.lifting.tier == "native"
    assert result.posterior.distribution().keys() == {8}


def test_numbers_do_not_depend_on_the_workers(untraceable):
    question = Question(by_name, {"records": table(40)}, secret=first_age)
    with pv.limited(workers=1):
        alone = draw(question, None, samples=20_000, seed=2).quantities[1]
    with pv.limited(workers=4):
        together = draw(question, None, samples=20_000, seed=2).quantities[1]
    assert question.case().lifting.tier == "native"
    assert all(np.array_equal(a.array, b.array) for a, b in zip(alone.columns, together.columns, strict=True))


def test_one_kernel_serves_tables_of_all_sizes():
    assert compiled(by_name, table(3)) is compiled(by_name, table(12))


def test_a_wrong_kernel_is_noticed(monkeypatch):
    kernel = compiled(fibonacci, pv.DiscreteUniform(0, 12))
    monkeypatch.setattr(type(kernel), "run", lambda self, arrays, samples: ([arrays[0] + 1], np.zeros(samples, bool)))
    with pytest.warns(pv.LiftingWarning, match="the compiled program"):
        assert isinstance(native.apply_native(fibonacci, arguments_of(pv.DiscreteUniform(0, 12))), str)


# Whether compiling pays.
def nested_loops(rows):
    total = 0
    for _ in range(rows):
        for k in range(10):
            total += k
    return total


def failing(x):
    raise ValueError(x)


def test_steps_are_counted_and_the_tracer_of_others_is_put_back():
    counts = [calls.steps_of(nested_loops, (rows,), {}) for rows in (0, 10, 20, 30, 30)]
    assert counts[2] - counts[1] == counts[3] - counts[2] >= 200
    assert counts[3] == counts[4]
    assert 0 < calls.steps_of(failing, (1,), {}) < 5
    assert calls.steps_of(nested_loops, (10_000,), {}, most=500) == 500

    def of_others(frame, event, argument):
        return None

    before = sys.gettrace()
    sys.settrace(of_others)
    try:
        calls.steps_of(nested_loops, (3,), {})
        assert sys.gettrace() is of_others
    finally:
        sys.settrace(before)


def test_work_is_judged_by_steps_alone():
    few, many = (calls.calls_worth_compiling(nested_loops, arguments_of(pv.Constant(rows))) for rows in (10, 1000))
    assert few == pytest.approx(calls.SECONDS_WORTH_COMPILING / (2 + 12 * 10 * 2 + 3) / calls.SECONDS_PER_STEP, rel=0.3)
    assert 80 < few / many < 120
    on_array = calls.calls_worth_compiling(nested, arguments_of(ARRAY, 1))
    assert on_array == calls.calls_worth_compiling(nested, arguments_of(ARRAY, 1)) > few


@pytest.fixture
def automatic(monkeypatch):
    """Compiling pays soon."""
    monkeypatch.setattr(calls, "SECONDS_WORTH_COMPILING", 0.05)
    with pv.limited(native="auto"):
        yield


def collatz_attack(**options):
    return pv.Attack(collatz, {"n": pv.DiscreteUniform(1, 3000)}, secret="n", **options)


def test_what_pays_for_the_samples_asked_for_is_compiled(untraceable, automatic):
    attack = collatz_attack()
    assert str(attack.lifting) == "python (a test forbids it)"
    first = attack.run(engine="sample", samples=200, seed=1)
    assert attack.lifting.tier == first.lifting.tier == "python"
    pays_from = int(re.fullmatch(r"that pays from ([\d,]+) samples on", first.lifting.not_compiled)[1].replace(",", ""))
    assert 1000 < pays_from < 20_000
    assert attack.run(engine="sample", samples=pays_from - 1, seed=1).lifting.tier == "python"
    long = attack.run(engine="sample", samples=pays_from, seed=1)
    assert str(attack.lifting) == str(long.lifting) == "native (a test forbids it)"
    assert "native; engine" in str(long)
    again = attack.run(engine="sample", samples=200, seed=1)
    assert attack.lifting.tier == again.lifting.tier == "python"
    assert again.posterior.batch.values() == first.posterior.batch.values()


def test_a_run_that_becomes_long_is_compiled_on_its_way(untraceable, automatic):
    attack = collatz_attack(observe=pv.between(0, 4))
    with pv.limited(workers=1):
        result = attack.run(engine="sample", samples=200, seed=1)
    assert result.lifting.tier == "native"
    assert result.diagnostics.draws > 20_000
    wanted = {n for n in range(1, 3001) if collatz(n) < 5}
    assert set(result.posterior.distribution()) == wanted
    assert len(wanted) / 3000 in result.diagnostics.evidence.widened(2)
    assert set(result.belief(lambda n, output: output - n).batch.values()) == {collatz(n) - n for n in wanted}
    with pv.limited(workers=2):
        assert (
            attack.run(engine="sample", samples=200, seed=1).posterior.batch.values() == result.posterior.batch.values()
        )


def test_outputs_that_compiled_code_cannot_hold_are_left_to_python(untraceable, automatic):
    def factorial(n):
        product = 1
        while n > 0:
            product *= n
            n -= 1
        return product

    attack = pv.Attack(factorial, {"n": pv.DiscreteUniform(1, 22)}, secret="n")
    result = attack.run(engine="sample", samples=60_000, seed=1)
    assert result.lifting.tier == "python"
    assert "numbers of other types" in result.lifting.not_compiled
    assert set(result.joint.output.batch.values()) == {math.factorial(n) for n in range(1, 23)}


def test_tables_of_all_sizes_are_compiled_or_none(untraceable, automatic):
    question = Question(by_name, {"records": table(pv.DiscreteUniform(2, 12))}, secret=first_age)
    few, many = (draw(question, None, samples=samples, seed=1).lifting for samples in (50, 20_000))
    assert (few.tier, many.tier) == ("python", "native")
    assert {case.lifting.tier for (_, native), case in question._cases.items() if native} == {"native"}
    assert {case.lifting.tier for (_, native), case in question._cases.items() if not native} == {"python"}


def test_why_a_program_is_not_compiled(untraceable, automatic, monkeypatch):
    monkeypatch.setattr(calls, "SECONDS_WORTH_COMPILING", 1e-4)

    def why(program, argument, samples=2000):
        attack = pv.Attack(program, {"x": argument}, secret="x")
        lifting = attack.run(engine="sample", samples=samples, seed=1).lifting
        assert lifting.tier == "python"
        return lifting.not_compiled

    assert "Category" in why(text, pv.Normal(0, sd=1))
    assert "samples on" in why(text, pv.Normal(0, sd=1), 10)
    assert "list" in why(lambda x: x[0], [pv.Normal(0, sd=1)], 100)
    with pv.limited(native=False):
        assert "native=False" in why(text, pv.Normal(0, sd=1), 10)
    excluding = pv.Attack(swallowing, {"x": pv.DiscreteUniform(0, 2)}, secret="x", on_error="exclude")
    assert "native" not in str(excluding.run(engine="sample", samples=100, seed=1).lifting)


def test_traced_programs_are_not_counted(monkeypatch):
    monkeypatch.setattr(lifting, "calls_worth_compiling", None)
    with pv.limited(native="auto"):
        attack = pv.Attack(lambda x: x + 1, {"x": pv.Normal(0, sd=1)}, secret="x")
        assert attack.run(engine="sample", samples=100_000, seed=1).lifting == lifting.Lifting("traced")


def test_settings_for_compiling():
    assert pv.configure(native="auto").native == "auto"
    with pytest.raises(pv.ArgumentError, match="native must be 'auto', True or False, not 'yes'"):
        pv.configure(native="yes")


# Compiled programs on disk.
def mark(program=doubled, *inputs):
    return fingerprint(program, native.layout(arguments_of(*(inputs or (pv.DiscreteUniform(0, 3),)))))


def test_the_fingerprint_says_all_that_compiled_code_depends_on(monkeypatch):
    known = {mark().digest}

    def is_new(fresh):
        assert fresh.is_portable
        assert fresh.digest not in known
        known.add(fresh.digest)
        return True

    assert mark().digest in known
    assert is_new(mark(doubled, pv.Normal(0, sd=1)))
    for value in (7, 7.0, True, "7", (7,), np.array([7]), np.array([7.0]), np.array([8.0])):
        monkeypatch.setitem(globals(), "LIMIT", value)
        assert is_new(mark())
    monkeypatch.undo()
    own, source = helper.__code__, "def helper(x):\n    return x + LIMIT + 1"
    made = {}
    exec(source, made)
    monkeypatch.setattr(helper, "__code__", made["helper"].__code__)
    assert is_new(mark())
    monkeypatch.setattr(helper, "__code__", own)
    monkeypatch.setattr(helper, "__defaults__", (1,))
    assert is_new(mark())
    monkeypatch.undo()
    assert mark().digest in known


def test_fingerprints_of_what_is_known_by_its_place_only_are_not_portable(monkeypatch):
    assert mark().is_portable
    monkeypatch.setitem(globals(), "LIMIT", object())
    assert not mark().is_portable
    monkeypatch.undo()
    nowhere = {"LIMIT": 1}
    exec("def doubled(x):\n    return x + LIMIT", nowhere)
    assert not mark(nowhere["doubled"]).is_portable


STORING = """
import sys, time
import privug as pv
from privug.program import lifting

LIMIT = 40

def falling(n):
    return 0 if n < 1 else 1 + falling(n - LIMIT)

def program(name, n):
    return falling(n) if name == "Ann" else -n

def run():
    native = lifting._native()
    name, n = pv.Choice(["Bob", "Ann"]), pv.DiscreteUniform(0, 20_000)
    arguments = lifting.Arguments(*lifting._flattened(([name, n], {})))
    compiled = native.compile_program(program, arguments)
    assert not isinstance(compiled, str), compiled
    ready = native.prepared(
        arguments, native.layout(arguments), native.encodings(compiled.code, arguments),
        [__import__("numpy").array(values) for values in ([0, 1, 1, 1], [7, 7, 400, 20_000])], 4)
    outputs, failed = compiled.run(ready, 4)
    stats = compiled.kernel.stats
    print(outputs[0].tolist(), failed.tolist(), sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))

run()
LIMIT = 400
run()
"""


def test_compiled_programs_outlive_the_process(tmp_path, monkeypatch):
    monkeypatch.setenv("PRIVUG_CACHE_DIR", str(tmp_path))
    script = tmp_path / "script.py"
    script.write_text(STORING, encoding="utf-8")

    def run():
        finished = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
        assert finished.returncode == 0, finished.stderr
        return finished.stdout.splitlines()

    gives_up = "[False, False, False, True]"  # the recursion is too deep
    shallow = "[-7, 1, 1, 50] [False, False, False, False]"
    assert run() == [f"[-7, 1, 10, 0] {gives_up} 0 1", f"{shallow} 0 1"]
    assert run() == [f"[-7, 1, 10, 0] {gives_up} 1 0", f"{shallow} 1 0"]
    assert len(list((tmp_path / "native").iterdir())) == 2


def test_what_is_stored_is_used_or_as_if_it_were_not_there(tmp_path, monkeypatch):
    def hits():
        monkeypatch.setattr(kernel, "_cache", {})
        result = compare(doubled, pv.DiscreteUniform(0, 3))
        assert result == 0
        return sum(compiled(doubled, pv.DiscreteUniform(0, 3)).kernel.stats.cache_hits.values())

    monkeypatch.setenv("PRIVUG_CACHE_DIR", str(tmp_path))
    assert [hits(), hits()] == [0, 1]
    (stored,) = (tmp_path / "native").iterdir()
    stored.write_bytes(stored.read_bytes()[:1000])
    assert [hits(), hits()] == [0, 1]
    (tmp_path / "file").write_text("")
    for unusable in (tmp_path / "file", "/dev/null/nowhere"):
        monkeypatch.setenv("PRIVUG_CACHE_DIR", str(unusable))
        assert hits() == 0


def test_stored_programs_are_written_whole_and_the_oldest_go(tmp_path, monkeypatch):
    monkeypatch.setenv("PRIVUG_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(storage, "MOST_FILES", 3)
    stored = [storage.Stored("source", ("i",), False, False, {}, bytes(1 << 16) + bytes([k])) for k in range(8)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda one: storage.save("same", one), stored * 4))
    assert storage.load("same") in stored
    for k, one in enumerate(stored):
        storage.save(f"one {k}", one)
        os.utime(tmp_path / "native" / f"one {k}.kernel", (k, k))
        storage.load("one 0")
    assert [k for k in range(8) if storage.load(f"one {k}")] == [0, 7]
    assert storage.load("same") in stored
    assert storage.load("another") is None


def test_code_is_loaded_only_from_where_nobody_else_can_write(tmp_path, monkeypatch):
    monkeypatch.setenv("PRIVUG_CACHE_DIR", str(tmp_path))
    stored = storage.Stored("source", ("i",), False, False, {}, b"code")
    storage.save("one", stored)
    folder, file = tmp_path / "native", tmp_path / "native" / "one.kernel"
    assert storage.load("one") == stored
    for path, mode in ((file, 0o620), (file, 0o602), (folder, 0o770), (folder, 0o707)):
        before = path.stat().st_mode
        path.chmod(mode)
        assert storage.load("one") is None
        path.chmod(before)
    assert storage.load("one") == stored
    monkeypatch.setattr(os, "geteuid", lambda: file.stat().st_uid + 1)
    assert storage.load("one") is None


def test_where_compiled_programs_are_stored(monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("PRIVUG_CACHE_DIR", "/somewhere")
    assert storage.folder() == Path("/somewhere/native")
    monkeypatch.delenv("PRIVUG_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert storage.folder() == Path("/cache/privug/native")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/ann")
    assert storage.folder() == Path("/home/ann/.cache/privug/native")


def test_importing_privug_does_not_import_the_compiler():
    code = "import sys, privug; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_a_process_compiles_only_so_many_programs(monkeypatch, tmp_path):
    """Compiled code is never released: a service that answers questions for weeks must not fill its memory with it."""
    monkeypatch.setenv("PRIVUG_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(kernel, "_cache", {})
    monkeypatch.setattr(kernel, "_compiled_so_far", itertools.count(kernel.MOST_COMPILED))
    arguments = lifting.Arguments(*lifting._flattened(([pv.DiscreteUniform(0, 3)], {})))
    assert isinstance(kernel.compile_program(lambda x: x * 3 + 1, arguments), kernel.NativeProgram)
    refused = kernel.compile_program(lambda x: x * 5 + 1, arguments)
    assert isinstance(refused, str)
    assert "never released" in refused
