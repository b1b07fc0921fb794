"""Questions that used to hang: each is answered rightly, or refused with a clear message, after a bounded effort.

Work is counted where it can be, in quantities and states; an alarm that is many times what is needed catches the rest.
"""

import math
import signal
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import scipy

import privug as pv
from privug.errors import (
    ImpossibleObservation,
    ObservationError,
    PriorError,
    ProgramError,
    QuestionError,
    UnsuitableEngine,
)
from privug.inference import sampling, solving, workload
from privug.inference.exact import engine as exact
from privug.inference.exact.finite import elements, elimination, solver
from privug.inference.exact.finite.elimination import schedule
from privug.inference.exact.finite.states import States
from privug.inference.exact.request import Request
from privug.inference.question import Question
from privug.model.node import Node
from privug.program import calls, tracing

ALARM = 60  # seconds of processor time


@pytest.fixture(autouse=True)
def alarm() -> Iterator[None]:
    """Fail a test that takes the processor for very long, whatever else runs on the machine."""

    def rings(*_: Any) -> None:
        raise AssertionError(f"still at work after {ALARM} s of processor time")

    before = signal.signal(signal.SIGPROF, rings)
    signal.setitimer(signal.ITIMER_PROF, ALARM)
    yield
    signal.setitimer(signal.ITIMER_PROF, 0.0)
    signal.signal(signal.SIGPROF, before)


def count_down(a):
    seen = [a]
    for x in seen:
        if x > 0:
            seen.append(x - 1)
    return len(seen)


def without_end(a):
    seen = [a]
    for x in seen:
        seen.append(x + 1)
    return len(seen)


def waits(a):
    while a >= 0:
        a += 1
    return a


def walk(a):
    total = 0
    for i in range(100_000):
        total = total + (a * i) % 7
    return total


def recursive(n, a):
    return a if n <= 1 else recursive(n - 1, a) + recursive(n - 2, a)


def many_calls(a):
    return recursive(21, a)


@pytest.fixture
def small_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let tracing and counting end after a hundredth of what they may take, so that tests are quick."""
    monkeypatch.setattr(tracing, "MOST_NODES", 1000)
    monkeypatch.setattr(tracing, "MOST_ROUNDS", 5000)
    monkeypatch.setattr(calls, "ENDLESS_STEPS", 2_000_000)


@pytest.mark.parametrize("program", [count_down, many_calls], ids=lambda program: program.__name__)
@pytest.mark.parametrize("engine", ["auto", "exact"])
def test_what_is_too_long_to_trace_is_called(program: Callable[..., Any], engine: str, small_budget: None) -> None:
    attack = pv.Attack(program, {"a": pv.DiscreteUniform(0, 5)}, "a")
    posterior = attack.run(pv.equals(program(3)), engine=engine, seed=1).posterior
    assert {value: chance.value for value, chance in posterior.distribution().items()} == {3: 1.0}
    assert attack.lifting.tier == "python"
    assert "quantities" in str(attack.lifting.reason)
    assert "line" in str(attack.lifting.reason)


def test_a_trace_stops_at_its_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    made = 0
    start = Node.__init__

    def counted(self: Node, *arguments: Any, **named: Any) -> None:
        nonlocal made
        made += 1
        start(self, *arguments, **named)

    monkeypatch.setattr(Node, "__init__", counted)
    monkeypatch.setattr(tracing, "MOST_NODES", 500)
    for program in (count_down, without_end, walk, many_calls):
        made = 0
        traced = tracing.trace(program, [pv.DiscreteUniform(0, 5)], {})
        assert traced.no_end_seen, program.__name__
        assert made < 3000, program.__name__


def test_a_long_table_has_a_larger_budget() -> None:
    def shifted(xs):
        return [x * 2 + 1 for x in xs]

    assert tracing.trace(shifted, [[pv.Normal(0, sd=1) for _ in range(2000)]], {}).obstacle is None


@pytest.mark.parametrize("program", [without_end, waits], ids=lambda program: program.__name__)
@pytest.mark.parametrize("engine", ["auto", "exact", "sample"])
def test_a_program_without_end_is_refused(program: Callable[..., Any], engine: str, small_budget: None) -> None:
    attack = pv.Attack(program, {"a": pv.DiscreteUniform(0, 5)}, "a")
    with pytest.raises(ProgramError, match=r"loop without end on the input [0-5]"):
        attack.run(pv.equals(3), engine=engine)


def test_sums_with_too_many_values_are_refused_before_they_are_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    transformed: list[int] = []
    plain = np.fft.rfftn

    def counted(array: Any, *arguments: Any, **named: Any) -> Any:
        transformed.append(np.size(array))
        return plain(array, *arguments, **named)

    monkeypatch.setattr(np.fft, "rfftn", counted)
    xs = [pv.DiscreteUniform(0, 100_000) for _ in range(200)]
    attack = pv.Attack(lambda xs: sum(xs), {"xs": xs}, lambda xs: xs[0])
    with pytest.raises(UnsuitableEngine, match="engine='sample' can"):
        attack.run(pv.between(10_000_000, 10_100_000), engine="exact")
    assert not transformed
    result = attack.run(pv.between(10_000_000, 10_100_000), seed=1)
    assert result.engine == "sample"
    # Given the sum of the others, about normal with this mean and deviation, the secret is uniform but for a tilt.
    mean = result.posterior.mean()
    assert mean.low <= 50_125  # 50,000 + 50,000 / 200 / 2 at most
    assert mean.high >= 49_875


def test_a_secret_of_few_values_beside_a_sum_of_many_is_exact() -> None:
    def total(flag, xs):
        return sum(xs) + 7_500 * flag

    prior = {"flag": pv.Bernoulli(0.5), "xs": [pv.DiscreteUniform(0, 3_000) for _ in range(12)]}
    result = pv.Attack(total, prior, "flag").run(pv.equals(22_500), engine="exact")

    # P(sum = n) of 12 uniform numbers, by inclusion and exclusion.
    def ways(n: int, terms: int = 12, values: int = 3_001) -> int:
        return sum(
            (-1) ** k * math.comb(terms, k) * math.comb(n - k * values + terms - 1, terms - 1)
            for k in range(terms + 1)
            if n - k * values >= 0
        )

    with_flag, without = ways(15_000), ways(22_500)
    expected = with_flag / (with_flag + without)
    assert result.posterior.distribution()[1].value == pytest.approx(expected, abs=1e-6)


MIXED: dict[str, tuple[Callable[..., Any], float, dict[int, float]]] = {
    # The weight of each branch is its probability times the density of the output there, 1 / |slope|.
    "square": (lambda a, c: a**2 if c else a, 0.25, {0: 1.0, 1: 1.0}),
    "cube": (lambda a, c: a**3 if c else a, 0.125, {0: 1.0, 1: 1 / (3 * 0.25)}),
    "outside": (lambda a, c: 2 * (a**2 if c else a) + 1, 1.08, {0: 1.0, 1: 1 / 0.4}),
    "not the atom": (lambda a, c: a if c else 0.0, 0.25, {1: 1.0}),
    "the atom": (lambda a, c: a if c else 0.25, 0.25, {0: 1.0}),
    "a whole number": (lambda a, c: a if c else 7, 0.25, {1: 1.0}),
    "beyond": (lambda a, c: 4 * a if c else a, 3.0, {1: 1.0}),
}


@pytest.mark.parametrize("name", MIXED)
def test_exact_values_are_solved_on_each_branch(name: str) -> None:
    program, value, weights = MIXED[name]
    attack = pv.Attack(program, {"a": pv.Uniform(0, 1), "c": pv.Bernoulli(0.5)}, "c")
    result = attack.run(pv.equals(value), samples=2000, seed=1)
    found = result.posterior.distribution()
    assert set(found) == set(weights)
    for branch, weight in weights.items():
        expected = weight / sum(weights.values())
        assert found[branch].low - 0.02 <= expected <= found[branch].high + 0.02
    assert result.diagnostics.draws < 50_000


def test_several_branches_each_have_their_own_value() -> None:
    def published(a, k):
        if k == 0:
            return a**3
        if k == 1:
            return 2 * a
        if k == 2:
            return 7
        return a / 4

    attack = pv.Attack(published, {"a": pv.Uniform(0, 1), "k": pv.DiscreteUniform(0, 3)}, "a")
    found = attack.run(pv.equals(0.125), samples=4000, seed=1).posterior.distribution()
    weights = {0.5: 1 / (3 * 0.25), 0.0625: 0.5, 0.5000001: 4.0}
    # 0.125 = a**3 and 0.125 = a / 4 both say a = 0.5.
    assert {round(value, 6) for value in found} == {0.5, 0.0625}
    expected = 0.5 / sum(weights.values())
    share = sum(chance.value for value, chance in found.items() if round(value, 6) == 0.0625)
    assert share == pytest.approx(expected, abs=0.02)


def test_a_value_that_cannot_be_solved_for_is_refused_at_once() -> None:
    def published(a, c):
        return a * a * a + a if c else a

    attack = pv.Attack(published, {"a": pv.Uniform(0, 1), "c": pv.Bernoulli(0.5)}, "c")
    with pytest.raises(ObservationError, match=r"write pv\.near\(0\.25, within=\.\.\.\)"):
        attack.run(pv.equals(0.25), seed=1)


def test_one_row_of_a_long_table_is_made_alone() -> None:
    asked: list[int] = []

    def person(position: int) -> pv.Row:
        asked.append(position)
        return pv.Row(age=pv.Uniform(0, 100))

    table = pv.Records(900_000, person)
    assert len(table) == 900_000
    assert table[2] is table[2]
    assert asked == [0, 1, 2]


def test_more_rows_than_can_be_looked_at_are_refused_before_one_is_made() -> None:
    def distinct(records):
        return len({str(row.age) for row in records})

    alike = pv.Row(age=pv.DiscreteUniform(0, 100))
    refusals = {
        r"10,000,000 rows are too many .* by one pv\.Row": (10**7, lambda i: pv.Row(age=pv.DiscreteUniform(0, 100))),
        r"1,000,000 rows are too many .* whole columns": (10**6, alike),
    }
    for message, table in refusals.items():
        attack = pv.Attack(distinct, {"records": pv.Records(*table)}, lambda records: records[0].age)
        with pytest.raises(PriorError, match=message):
            attack.run(pv.equals(101))


@pytest.mark.parametrize("engine", ["auto", "sample"])
def test_more_random_numbers_than_can_be_drawn_are_refused_before_one_is(engine: str) -> None:
    def mean(records):
        return sum(row.pay * row.share for row in records) / len(records)

    table = pv.Records(10**6, pv.Row(pay=pv.Gamma(2, rate=1), share=pv.Uniform(0, 1)))
    attack = pv.Attack(mean, {"records": table}, lambda records: records[0].pay)
    with pytest.raises(UnsuitableEngine, match=r"samples=10,000 are too many .* 2,000,000 random .* samples=2000 or"):
        attack.run(pv.between(0.99, 1.01), engine=engine)
    assert attack.run(None, engine="sample", samples=20, seed=1).diagnostics.draws == 20


def test_programs_that_are_called_get_as_many_numbers_as_there_is_time_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def distinct(records):
        return len({str(row.age) for row in records})

    monkeypatch.setattr(workload, "MOST_PLAIN_NUMBERS", 1_000_000)
    table = pv.Records(200, pv.Row(age=pv.DiscreteUniform(0, 100)))
    attack = pv.Attack(distinct, {"records": table}, lambda records: records[0].age)
    with pytest.raises(UnsuitableEngine, match="the program is called sample by sample, with 200 random numbers"):
        attack.run(pv.equals(101), engine="sample")


LONG_OUTPUTS: dict[str, tuple[Callable[..., Any], Any, float, float]] = {
    # Mean and deviation of the first of standard normal numbers: those of one number, and given its sum with another.
    "nothing seen": (lambda xs: xs * 2, None, 0.0, 1.0),
    "a list": (lambda xs: [x + 1 for x in xs], None, 0.0, 1.0),
    "one part": (lambda xs: {"all": xs * 2, "sum": xs[0] + xs[1]}, {"sum": pv.equals(1.0)}, 0.5, math.sqrt(0.5)),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name == "a list" else []) for name in LONG_OUTPUTS]
)
def test_outputs_of_many_numbers(name: str) -> None:
    program, observation, mean, sd = LONG_OUTPUTS[name]
    attack = pv.Attack(program, {"xs": pv.Array(pv.Normal(0, sd=1), 100_000)}, lambda xs: xs[0])
    result = attack.run(observation)
    assert result.engine == "exact (gaussian)"
    assert result.posterior.mean().value == pytest.approx(mean, abs=1e-9)
    assert result.posterior.std().value == pytest.approx(sd, abs=1e-9)
    assert "samples=10,000 are too many" in str(result)
    assert "too many to keep" in dict(result.leakage().left_out)["mutual_information"]
    with pytest.raises(UnsuitableEngine, match="samples=5000 or fewer"):
        attack.run(observation, engine="sample")


def test_what_is_not_sure_to_be_few_states_is_given_up_early(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = 0
    computed = elimination._computed

    def counted(states: Any, one: Any) -> Any:
        nonlocal cells
        cells += len(states) * (len(one.computed) + len(one.kept) + 1)
        return computed(states, one)

    monkeypatch.setattr(elimination, "_computed", counted)
    xs = [pv.DiscreteUniform(0, 99) for _ in range(40)]
    total: Any = 0
    for x in xs:
        total = (total * 31 + x) % 10_007
    plan = schedule([total.node, xs[0].node], {}, 1)
    with pytest.raises(UnsuitableEngine, match="engine='sample' can"):
        elimination.eliminated(States({}, np.ones(1)), plan)
    assert 0 < cells <= 2 * elimination.HOPEFUL_WORK


def equal_pairs(xs):
    return sum(1 for i in range(len(xs)) for j in range(i) if xs[i] == xs[j])


def weighted_total(xs):
    total = 0
    for i, x in enumerate(xs):
        total = total + (i % 3 + 1) * x
    return total


def test_many_quantities_of_few_inputs_are_not_taken_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is looked at one by one is bounded by the number of inputs, not by what a program makes of them."""
    made = 0
    element = elements.Elements._element

    def counted(self: Any, *arguments: Any) -> Any:
        nonlocal made
        made += 1
        return element(self, *arguments)

    monkeypatch.setattr(elements.Elements, "_element", counted)
    monkeypatch.setattr(elements, "MOST_ENTANGLED", 250)
    xs = [pv.DiscreteUniform(0, 20) for _ in range(30)]
    pairs = pv.Attack(equal_pairs, {"xs": xs}, lambda xs: xs[0])
    with pytest.raises(UnsuitableEngine, match="engine='sample' can"):
        pairs.run(pv.equals(37), engine="exact")
    assert made <= len(xs)  # no more than the inputs themselves
    # As many quantities, of more inputs: each is used a few times only.
    flags = [pv.Bernoulli(0.5) for _ in range(150)]
    result = pv.Attack(weighted_total, {"xs": flags}, lambda xs: xs[1]).run(pv.equals(150), engine="exact")
    assert made >= len(flags)
    chances = np.ones(1)
    for weight in (i % 3 + 1 for i in range(150) if i != 1):
        chances = np.convolve(chances, [0.5, *[0.0] * (weight - 1), 0.5])
    expected = chances[148] / (chances[148] + chances[150])
    assert result.posterior.distribution()[1].value == pytest.approx(expected, abs=1e-9)


def test_an_enumeration_is_refused_for_what_its_states_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    """A million states are few; a million states of three hundred thousand numbers are not."""
    monkeypatch.setattr(solver.StateEvaluation, "results", lambda self: pytest.fail("work was begun"))
    for program in (lambda x: x + np.arange(300_000), lambda x: (x + np.arange(300_000)).sum()):
        attack = pv.Attack(program, {"x": pv.DiscreteUniform(0, 10**6)}, "x")
        for observation in (None, pv.such_that(lambda output: True)):
            with pytest.raises(UnsuitableEngine, match="operations"):
                attack.run(observation, engine="exact")


def test_who_says_how_long_it_may_take_has_the_costly_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "MOST_COST", 10.0)
    attack = pv.Attack(lambda x: x % 3, {"x": pv.DiscreteUniform(0, 8)}, "x")
    with pytest.raises(UnsuitableEngine, match="operations"):
        attack.run(pv.equals(1), engine="exact")
    found = attack.run(pv.equals(1), engine="exact", seconds=60).posterior.distribution()
    assert {value: chance.value for value, chance in found.items()} == pytest.approx({1: 1 / 3, 4: 1 / 3, 7: 1 / 3})


def test_a_quantity_of_very_many_values_is_gone_through_value_by_value() -> None:
    attack = pv.Attack(lambda x, y: x + y, {"x": pv.Empirical(np.arange(5001) / 1000), "y": pv.Normal(0, sd=1)}, "x")
    result = attack.run(pv.near(0.5, within=0.1), engine="exact")
    x = np.arange(5001) / 1000
    truth = np.mean(scipy.stats.norm.cdf(0.6 - x) - scipy.stats.norm.cdf(0.4 - x))
    assert float(result.diagnostics.evidence) == pytest.approx(truth, rel=1e-9)


HOPELESS: dict[str, dict[str, Any]] = {
    "without facts": {},
    "with a fact": {"assume": lambda a, b: a < b},
    "failing": {"on_error": "exclude"},
}


@pytest.mark.parametrize("name", HOPELESS)
def test_draws_are_waited_for_only_while_there_is_hope(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """So many draws without one that agrees show that a hundred will not come out of the budget."""
    monkeypatch.setattr(sampling, "MOST_FUTILE", 20_000)
    monkeypatch.setattr(sampling, "LARGEST_BUDGET", 1_000_000)
    prior = {"a": pv.DiscreteUniform(0, 99), "b": pv.DiscreteUniform(0, 99)}
    draws = 0
    plain = sampling.CasePlan.run

    def counted(self: Any, rng: Any, positions: Any, *arguments: Any, **named: Any) -> Any:
        nonlocal draws
        draws += len(positions)
        return plain(self, rng, positions, *arguments, **named)

    monkeypatch.setattr(sampling.CasePlan, "run", counted)
    attack = pv.Attack(lambda a, b: max(a, b) + 0 // (a + 1), prior, "a", **HOPELESS[name])
    with pytest.raises(ImpossibleObservation, match="draws from the prior agrees"):
        attack.run(pv.such_that(lambda output: output == 500), engine="sample", samples=1000)
    # 3.7 in n is the largest rate that fits none of n; 3.7 million / n < 100 from 37,000 draws on.
    assert 20_000 <= draws <= 200_000
    # What is rare but within the budget is waited for: three or nine draws in ten thousand.
    rare = attack.run(pv.such_that(lambda output: output <= 2), engine="sample", seed=1)
    assert rare.diagnostics.accepted >= 100


def test_impossible_facts_take_one_population(monkeypatch: pytest.MonkeyPatch) -> None:
    from privug.inference.rare import engine as rare  # loaded when it is needed

    populations = 0
    search = rare._outcome

    def counted(*arguments: Any) -> Any:
        nonlocal populations
        populations += 1
        return search(*arguments)

    monkeypatch.setattr(rare, "_outcome", counted)
    ages = {"ages": [pv.Uniform(0, 100) for _ in range(5)]}
    for fact in (
        lambda ages: ages[0] > 200,
        lambda ages: ages[0] == ages[1],
        lambda ages: sum(age * age for age in ages) > 50_001,
    ):
        populations = 0
        with pytest.raises(QuestionError, match="assume: under the prior, what is assumed never holds"):
            pv.Attack(lambda ages: sum(ages), ages, lambda ages: ages[0], assume=fact).run(pv.near(250, within=1))
        assert populations <= 1


def total_age(records):
    return sum(row.age for row in records)


def table_of_random_size() -> pv.Attack:
    table = pv.Records(pv.Binomial(24, 0.5), pv.Row(age=pv.DiscreteUniform(0, 9)))
    return pv.Attack(total_age, {"records": table}, lambda records: len(records))


def _size_by_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have programs lifted for each size, as those are that need to know it."""
    monkeypatch.setattr(Question, "case_of_all_sizes", lambda self, largest: None)


@pytest.mark.parametrize(("engine", "where"), [("sample", sampling), ("exact", solver)])
def test_tables_of_too_many_sizes_are_refused_before_all_are_looked_at(
    engine: str, where: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    built: list[Any] = []
    build = Question._build

    def counted(self: Question, sizes: Any, *arguments: Any) -> Any:
        built.append(sizes)
        return build(self, sizes, *arguments)

    monkeypatch.setattr(Question, "_build", counted)
    _size_by_size(monkeypatch)
    attack = table_of_random_size()
    monkeypatch.setattr(where, "MOST_QUANTITIES", 20)
    with pytest.raises(UnsuitableEngine, match="different sizes"):
        attack.run(pv.between(50, 60), engine=engine, seed=1)
    assert built == [attack.question.typical_sizes]


def test_whether_to_wait_is_found_out_once_where_that_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    pilots = 0
    pilot = solving._pilot

    def counted(*arguments: Any, **named: Any) -> Any:
        nonlocal pilots
        pilots += 1
        return pilot(*arguments, **named)

    monkeypatch.setattr(solving, "_pilot", counted)
    _size_by_size(monkeypatch)
    truth = table_of_random_size().run(pv.between(50, 60), engine="exact")
    assert table_of_random_size().run(pv.between(50, 60), engine="sample", seed=1).diagnostics.draws
    each, pilots = pilots, 0
    monkeypatch.setattr(sampling, "MOST_IN_PILOTS", 0)
    result = table_of_random_size().run(pv.between(50, 60), engine="sample", seed=1)
    assert pilots <= each / 3
    assert truth.posterior.mean().value in result.posterior.mean().widened(1.5)
    assert truth.diagnostics.evidence.value in result.diagnostics.evidence.widened(1.5)


def test_what_one_solver_offers_bounds_what_others_may_do_to_make_theirs():
    def largest_group(rows):
        return max(sum(1 for other in rows if other.x == row.x) for row in rows)

    prior = {"rows": pv.Records(7, pv.Row(x=pv.Choice([1, 2, 3, 7])))}
    request = Request(pv.Attack(largest_group, prior, lambda rows: rows[0].x).question)
    with workload.limited(1e10) as effort:
        offered = exact.prepare(request)
    assert effort.spent < 3 * offered.cost  # six times that, if every solver does what it likes
