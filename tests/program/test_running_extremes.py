"""Loops that keep the best row, its position or its number: traced once for all rows, equal to plain calls."""

import itertools
import math
import warnings

import numpy as np
import pytest
from scipy import stats

import privug as pv
from privug.inference.question import Question
from privug.inference.sampling import draw
from privug.model.plated_tables import PlatedTable

ZIPS = ["1000", "2000", "3000"]


def person(i):
    """Ages have many ties, wages none."""
    return pv.Row(
        name=f"p{i}",
        zip=pv.Choice(ZIPS),
        age=pv.DiscreteUniform(20, 24),
        wage=pv.Normal(30.0, sd=5.0),
        ill=pv.Bernoulli(0.3),
        score=pv.Choice([1.0, 2.0, 3.0]),
    )


def known_better(i):
    """Two people who are not like the others, one before and one amidst them."""
    if i not in (0, 12):
        return person(i)
    return pv.Row(name="Alice", zip=pv.Choice(["9999", "1000"]), age=22, wage=33.0, ill=True, score=1.0)


def by_position(rs):
    b = 0
    for i in range(1, len(rs)):
        if rs[i].age > rs[b].age:
            b = i
    return b, rs[b].zip, rs[b].name


def by_position_from_the_first(rs):
    b = 0
    for i in range(len(rs)):
        if rs[b].wage > rs[i].wage:
            b = i
    return b, rs[b].wage


def last_position(rs):
    b = 0
    for i in range(len(rs)):
        if rs[i].age >= rs[b].age:
            b = i
    return b


def by_enumeration(rs):
    b = 0
    for i, r in enumerate(rs):
        if r.age > rs[b].age:
            b = i
    return b, rs[b].zip


def by_row(rs):
    best = rs[0]
    for r in rs[1:]:
        if r.age > best.age:
            best = r
    return best.zip, best.age, best.wage


def last_row(rs):
    best = rs[0]
    for r in rs[1:]:
        if r.age >= best.age:
            best = r
    return best.zip


def youngest(rs):
    best = rs[0]
    for r in rs:
        if r["age"] < best["age"]:
            best = r
    return best.name, best.zip


def last_youngest(rs):
    best = rs[0]
    for r in rs:
        if not r.age > best.age:
            best = r
    return best.name


def nearest_to_22(rs):
    best = rs[0]
    for r in rs[1:]:
        if abs(r.age - 22) < abs(best.age - 22):
            best = r
    return best.name


def by_two_columns(rs):
    best = rs[0]
    for r in rs[1:]:
        if r.wage - r.age > best.wage - best.age:
            best = r
    return best.name


def from_none(rs):
    best = None
    for r in rs:
        if best is None or r.age > best.age:
            best = r
    return best.zip, best.name


def from_none_in_two_branches(rs):
    best = None
    for r in rs:
        if best is None:  # noqa: SIM114
            best = r
        elif r.age > best.age:
            best = r
    return best.name


def number_from_none(rs):
    m = None
    for r in rs:
        if m is None or r.age < m:
            m = r.age
    return m


def running_maximum(rs):
    m = 0
    for r in rs:
        if r.age > m:
            m = r.age
    return m


def running_minimum_of_floats(rs):
    m = math.inf
    for r in rs:
        if m > r.wage:
            m = r.wage
    return m


def by_max(rs):
    m = 0
    for r in rs:
        m = max(m, r.age)
    return m


def by_min_the_other_way(rs):
    m = 100
    for r in rs:
        m = min(r.age, m)
    return m


def some_take_part(rs):
    m, who = 21, "nobody"
    for r in rs:
        if r.ill and r.age > m:
            m, who = r.age, r.name
    return m, who


def nested_conditions(rs):
    m, n = 21, 0
    for r in rs:
        if r.ill:
            m = max(m, r.age)
            if r.zip == "1000":
                n += 1
    return m, n


def going_on(rs):
    m, who = 0.0, ""
    for r in rs:
        if r.wage <= m:
            continue
        m = r.wage
        who = r.name
    return who


def several_variables(rs):
    oldest, name, place, n = -1, None, "-", 0
    for i, r in enumerate(rs):
        n += r.ill
        if r.age > oldest:
            oldest, name = r.age, r.name
            place = i
    return oldest, name, place, n


def in_a_tuple(rs):
    best = (0, "nobody")
    for r in rs:
        if r.age > best[0]:
            best = (r.age, r.name)
    return best


def two_contests(rs):
    young = old = rs[0]
    for r in rs[1:]:
        if r.age < young.age:
            young = r
        if r.age >= old.age:
            old = r
    return young.name, old.name


def not_a_number(rs):
    m, who = 0.0, "nobody"
    for r in rs:
        score = math.nan if r.ill else r.score
        if score > m:
            m, who = score, r.name
    return m, who


def not_a_number_or_equal(rs):
    m, who = -math.inf, "nobody"
    for r in rs:
        score = r.score * (math.nan if r.ill else 1.0)
        if score >= m:
            m, who = score, r.name
    return who


def a_flag(rs):
    any_ill, word = False, "none"
    for r in rs:
        if r.ill and r.age > 21:
            any_ill = True
        if r.wage > 40.0:
            word = "high"
    return any_ill, word


def a_flag_from_none(rs):
    found, count = None, 0
    for r in rs:
        if r.ill:
            found = "ill"
            count += 1
    return found, count


def positions_add_up(rs):
    total = 0
    for i in range(len(rs)):
        total += i * rs[i].age
    return total


PROGRAMS = [
    by_position, by_position_from_the_first, last_position, by_enumeration, by_row, last_row, youngest, last_youngest,
    nearest_to_22, by_two_columns, from_none, from_none_in_two_branches, number_from_none, running_maximum,
    running_minimum_of_floats, by_max, by_min_the_other_way, some_take_part, nested_conditions, going_on,
    several_variables, in_a_tuple, two_contests, not_a_number, not_a_number_or_equal, a_flag, a_flag_from_none,
    positions_add_up,
]  # fmt: skip


def agrees_with_plain_calls(program, rows, person=person, samples=100):
    """Draw tables and outputs together, and compare each output with a plain call on its table."""
    question = Question(program, {"rs": pv.Records(rows, person)}, secret="rs")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        case = question.case()
    assert case.lifting.tier == "traced", str(case.lifting)
    run = draw(question, None, samples=samples, seed=rows)
    for table, output in zip(run.quantities[0].values(), run.quantities[1].values(), strict=True):
        assert repr(program(table)) == repr(output), table
    return case


@pytest.mark.parametrize("person", [person, known_better])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_it_is_traced_once_for_all_rows_and_gives_what_python_gives(program, person):
    case = agrees_with_plain_calls(program, 21, person)
    assert isinstance(case.inputs["rs"], PlatedTable)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_one_row(program):
    agrees_with_plain_calls(program, 1, samples=20)


@pytest.mark.parametrize("program", [running_maximum, by_max, some_take_part, in_a_tuple, several_variables])
def test_no_row(program):
    agrees_with_plain_calls(program, 0, samples=20)


def test_the_largest_of_a_random_number_of_numbers():
    """It is below t if all are: the sum of P(n) F(t)^n."""
    table = pv.Records(pv.DiscreteUniform(0, 12), pv.Row(wage=pv.Normal(30.0, sd=5.0)))
    attack = pv.Attack(lambda rs: by_float_maximum(rs), {"rs": table}, secret=lambda rs: len(rs))
    question = Question(by_float_maximum, {"rs": table}, secret=lambda rs: len(rs))
    assert question.case_of_all_sizes((12,)) is not None
    found = attack.run(engine="sample", samples=20_000, seed=1).prediction.probability(lambda output: output < 36.0)
    truth = np.mean([stats.norm(30.0, 5.0).cdf(36.0) ** n for n in range(13)])
    assert found.low <= truth <= found.high


def by_float_maximum(rs):
    m = 0.0
    for r in rs:
        if r.wage > m:
            m = r.wage
    return m


# --- What a row may not do, because it would have to know what other rows did -----------------------------


def counts_records(rs):
    m = n = 0
    for r in rs:
        if r.age > m:
            m = r.age
            n += 1
    return n


def keeps_something_else(rs):
    m = 0
    for r in rs:
        if r.age > m:
            m = r.age - 1
    return m


def compares_the_other_variable(rs):
    a, b = rs[0], rs[0]
    for r in rs[1:]:
        if r.age > a.age:
            b = r
        if r.age > b.age:
            a = r
    return a.name


def either_is_enough(rs):
    best = rs[0]
    for r in rs[1:]:
        if r.age > best.age or r.ill:
            best = r
    return best.name


def neighbours(rs):
    n = 0
    for i in range(1, len(rs)):
        if rs[i].age > rs[i - 1].age:
            n += 1
    return n


@pytest.mark.parametrize(
    "program", [counts_records, keeps_something_else, compares_the_other_variable, either_is_enough, neighbours]
)
def test_rows_that_need_to_know_what_others_did_are_traced_one_by_one(program):
    case = agrees_with_plain_calls(program, 12)
    assert not isinstance(case.inputs["rs"], PlatedTable)


# --- Exact answers -----------------------------------------------------------------------------------------


def zip_of_the_oldest(rs):
    best = rs[0]
    for r in rs[1:]:
        if r.age > best.age:
            best = r
    return best.zip


def zip_of_the_oldest_by_max(rs):
    return max(rs, key=lambda r: r.age).zip


def last_of_the_ill(rs):
    m, who = 0, "-"
    for r in rs:
        if r.ill and r.age >= m:
            m, who = r.age, r.zip
    return who


@pytest.mark.parametrize("program", [zip_of_the_oldest, zip_of_the_oldest_by_max, last_of_the_ill])
def test_exact_answers_are_those_of_enumeration(program):
    def people(i):
        zips = pv.Choice(["a", "b"], p=[0.3, 0.7]) if i else pv.Choice(["a", "c"])
        return pv.Row(age=pv.DiscreteUniform(1, 2), ill=pv.Bernoulli(0.5), zip=zips)

    rows = 11
    attack = pv.Attack(program, {"rs": pv.Records(rows, people)}, secret=lambda rs: rs[0].zip)
    assert isinstance(attack.question.case().inputs["rs"], PlatedTable)
    found = attack.run(engine="exact").joint
    # By hand: states of (best age, best zip) row by row, Alice's zip aside.
    for alice in ("a", "c"):
        states = {(0, "-"): 1.0} if program is last_of_the_ill else {}
        for i in range(rows):
            zips = {alice: 1.0} if i == 0 else {"a": 0.3, "b": 0.7}
            after = {}
            for (age, name), p in (states or {(0, "-"): 1.0}).items():
                for new, ill in itertools.product((1, 2), (False, True)):
                    wins = (ill and new >= age) if program is last_of_the_ill else new > age
                    for zip_, q in zips.items():
                        state = (new, zip_) if wins else (age, name)
                        after[state] = after.get(state, 0.0) + p * q / 4
            states = after
        for output in ("a", "b", "c", "-"):
            truth = 0.5 * sum(p for (_, name), p in states.items() if name == output)
            pairs = zip(found.secret.batch.values(), found.output.batch.values(), found.weights, strict=True)
            assert sum(p for s, o, p in pairs if (s, o) == (alice, output)) == pytest.approx(truth, abs=1e-12)
