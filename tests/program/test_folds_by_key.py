"""Loops and comprehensions that group rows by a discrete key: traced once for all rows, equal to plain calls."""

import itertools
import statistics
import warnings
from collections import Counter, defaultdict

import numpy as np
import pytest
from scipy import stats

import privug as pv
from privug.inference.question import Question
from privug.inference.sampling import draw
from privug.model.plated_tables import PlatedTable
from privug.program import calls

ZIPS = ["1000", "2000", "3000", "4000"]


def person(i):
    return pv.Row(
        name=f"p{i}",
        zip=pv.Choice(ZIPS, p=[0.4, 0.3, 0.28, 0.02]),
        sex=pv.Choice(["f", "m"]),
        age=pv.DiscreteUniform(20, 27),
        wage=pv.Normal(30.0, sd=5.0),
        ill=pv.Bernoulli(0.3),
        flag=pv.Choice([True, False]),
    )


def known_better(i):
    """Two people who are not like the others, one before and one amidst them."""
    if i not in (0, 12):
        return person(i)
    return pv.Row(
        name="Alice", zip=pv.Choice(["9999", "1000"]), sex="f", age=pv.DiscreteUniform(22, 24),
        wage=pv.Normal(40.0, sd=1.0), ill=pv.Bernoulli(0.8), flag=True,
    )  # fmt: skip


# --- Counts ---------------------------------------------------------------------------------------------


def by_get(rs):
    d = {}
    for r in rs:
        d[r.zip] = d.get(r.zip, 0) + 1
    return d


def by_get_with_another_start(rs):
    d = {}
    for r in rs:
        d[r.zip] = d.get(r.zip, 10) + r.age
    return d


def by_membership(rs):
    d = {}
    for r in rs:
        if r.zip not in d:
            d[r.zip] = 0
        d[r.zip] += 1
    return d


def by_either_branch(rs):
    d = {}
    for r in rs:
        if r.zip in d:
            d[r.zip] += r.age
        else:
            d[r.zip] = r.age
    return d


def by_defaultdict(rs):
    d = defaultdict(int)
    for r in rs:
        d[r.zip] += r.age
    return dict(d)


def by_float_defaultdict(rs):
    d = defaultdict(float)
    for r in rs:
        d[r.zip] += 1
    return dict(d)


def by_setdefault(rs):
    d = {}
    for r in rs:
        d.setdefault(r.zip, 0)
        d[r.zip] += 1
    return d


def by_counter(rs):
    return Counter(r.zip for r in rs)


def by_counter_of_list(rs):
    return Counter([r.zip for r in rs if r.ill])


def by_counter_increments(rs):
    c = Counter()
    for r in rs:
        c[r.zip] += 1
        if r.age > 24:
            c[r.sex] += 2
    return c


def by_counter_update(rs):
    c = Counter()
    c.update(r.zip for r in rs)
    c.update(r.zip for r in rs if r.ill)
    return c


def in_a_known_dict(rs):
    h = {"1000": 0, "2000": 5, "3000": 0, "4000": 0, "9999": 1}
    for r in rs:
        h[r.zip] += 1
    return h


def in_a_list(rs):
    h = [0] * 10
    for r in rs:
        h[r.age - 20] += 1
        h[-1] += r.age
    return h


def under_a_condition(rs):
    d = {}
    for r in rs:
        if r.age > 25 and r.ill:
            d[r.zip] = d.get(r.zip, 0) + r.age
    return d


def skipping(rs):
    d = defaultdict(int)
    for r in rs:
        if r.age > 24:
            continue
        d[r.zip] += 1
    return d["1000"], len(d)


def read_alone_makes_entries(rs):
    d = defaultdict(int)
    for r in rs:
        d[r.zip]
        if r.ill:
            d[r.zip] += 1
    return dict(d)


def of_two_keys(rs):
    d = {}
    for r in rs:
        key = (r.zip, r.sex)
        d[key] = d.get(key, 0) + 1
    return d


def of_computed_keys(rs):
    d = {}
    for r in rs:
        d[r.age // 2] = d.get(r.age // 2, 0) + 1
    return d


def of_bools_and_numbers(rs):
    d = {}
    for r in rs:
        d[r.flag] = d.get(r.flag, 0) + 1
        d[r.age - 20] = d.get(r.age - 20, 0) + 10
    return d


def twice_in_one_row(rs):
    d = {}
    for r in rs:
        d[r.zip] = d.get(r.zip, 0) + 1
        d[r.zip] += r.age
        d["all"] = d.get("all", 0) + 1
    return d


def by_subtraction(rs):
    d = defaultdict(int)
    for r in rs:
        d[r.zip] -= r.age
    return dict(d)


def in_two_loops(rs):
    d = {}
    for r in rs:
        if r.ill:
            d[r.zip] = d.get(r.zip, 0) + 1
    for r in rs:
        if r.zip in d:
            d[r.zip] += 100
        if r.sex not in d:
            d[r.sex] = r.age
    return d


# --- Order ----------------------------------------------------------------------------------------------


def most_common(rs):
    return Counter(r.zip for r in rs).most_common(1)


def two_most_common(rs):
    return len(Counter(r.zip for r in rs).most_common(2))


def most_common_key(rs):
    d = {}
    for r in rs:
        d[r.zip] = d.get(r.zip, 0) + 1
    return max(d, key=d.get), min(d, key=d.get)


def first_seen(rs):
    d = {}
    for r in rs:
        if r.ill:
            d[r.sex] = d.get(r.sex, 0) + 1
            d[r.zip] = d.get(r.zip, 0) + 1
    return next((key for key in d), "nobody")


def in_order(rs):
    d = {}
    for r in rs:
        d[r.zip] = d.get(r.zip, 0) + 1
    total = 0
    for place, key in enumerate(["1000", "2000"]):
        total += d.get(key, 0) * place
    weight = 1
    for count in d.values():
        total += weight * count
        weight *= 3
    return total


def mode(rs):
    return statistics.mode([r.zip for r in rs])


# --- What comes after -------------------------------------------------------------------------------------


def extremes(rs):
    d = {}
    for r in rs:
        d[r.zip] = d.get(r.zip, 0) + 1
    return max(d.values()), min(d.values()), len(d), sum(d.values())


def published(rs):
    d = {}
    for r in rs:
        d[r.zip] = d.get(r.zip, 0) + 1
    return {k: v for k, v in d.items() if v >= 3}


def small_groups(rs):
    d = Counter(r.zip for r in rs)
    return sum(1 for v in d.values() if v < 3), all(v > 1 for v in d.values())


def first_of_the_large(rs):
    d = Counter(r.zip for r in rs)
    large = {k: v for k, v in d.items() if v >= 2}
    return max(large, key=large.get, default="none")


# --- Lists and sets -------------------------------------------------------------------------------------


def means(rs):
    d = {}
    for r in rs:
        d.setdefault(r.zip, []).append(r.wage)
    return {k: sum(v) / len(v) for k, v in d.items()}


def of_lists(rs):
    d = defaultdict(list)
    for r in rs:
        if r.ill:
            d[r.zip].append(r.age)
    return {k: (len(v), max(v), min(v))[0] + max(v) for k, v in d.items()}


def by_membership_of_lists(rs):
    d = {}
    for r in rs:
        if r.zip not in d:
            d[r.zip] = []
        d[r.zip].append(r.age)
    return max(len(v) for v in d.values())


def diversity(rs):
    d = defaultdict(set)
    for r in rs:
        d[r.zip].add(r.age)
    return min(len(v) for v in d.values())


def distinct(rs):
    return len({r.zip for r in rs})


def distinct_by_add(rs):
    s = set()
    for r in rs:
        if r.ill:
            s.add((r.zip, r.sex))
    return len(s), ("1000", "f") in s


def seen_again(rs):
    seen, again = set(), 0
    for r in rs:
        if r.zip in seen:
            again += 1
        seen.add(r.zip)
    return again


def seen_in_another(rs):
    seen, d = set(), {}
    for r in rs:
        if r.sex in seen:
            d[r.zip] = d.get(r.zip, 0) + 1
        if r.ill:
            seen.add(r.sex)
    return d


def last_row_wins(rs):
    return {r.zip: r.age for r in rs}


def last_name_wins(rs):
    d = {}
    for r in rs:
        if r.ill:
            d[r.zip] = r.sex
    return d


def first_row_wins(rs):
    d = {}
    for r in rs:
        if r.zip not in d:
            d[r.zip] = r.sex
    return d


def oldest(rs):
    return max(rs, key=lambda r: r.age).zip


def richest(rs):
    best = max(rs, key=lambda r: r.wage)
    return best.zip, best.name


PROGRAMS = [
    oldest, richest,
    by_get, by_get_with_another_start, by_membership, by_either_branch, by_defaultdict, by_float_defaultdict,
    by_setdefault, by_counter, by_counter_of_list, by_counter_increments, by_counter_update, in_a_known_dict,
    in_a_list, under_a_condition, skipping, read_alone_makes_entries, of_two_keys, of_computed_keys,
    of_bools_and_numbers, twice_in_one_row, by_subtraction, in_two_loops, most_common, two_most_common, most_common_key,
    first_seen, in_order, mode, extremes, published, small_groups, first_of_the_large, means, of_lists,
    by_membership_of_lists, diversity, distinct, distinct_by_add, seen_again, seen_in_another, last_row_wins,
    last_name_wins, first_row_wins,
]  # fmt: skip


def normal(value):
    if isinstance(value, list | tuple):
        return [normal(part) for part in value]
    if isinstance(value, dict):
        return {key: normal(part) for key, part in value.items()}
    return float(f"{value:.9g}") if isinstance(value, float) else value


def agrees_with_plain_calls(program, rows, person=person, samples=100):
    """Draw tables and outputs together, and compare each output with a plain call on its table."""
    question = Question(program, {"rs": pv.Records(rows, person)}, secret="rs")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        case = question.case()
    assert case.lifting.tier == "traced", str(case.lifting)
    run = draw(question, None, samples=samples, seed=rows)
    for table, output in zip(run.quantities[0].values(), run.quantities[1].values(), strict=True):
        expected = program(table)
        assert normal(expected) == normal(output), table
        assert [type(part) for part in parts(expected)] == [type(part) for part in parts(output)]
    return case


def parts(value):
    if isinstance(value, dict):
        return [part for key in sorted(value, key=str) for part in parts(value[key])]
    return [part for inner in value for part in parts(inner)] if isinstance(value, list | tuple) else [value]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_it_is_traced_once_for_all_rows_and_gives_what_python_gives(program):
    case = agrees_with_plain_calls(program, 10)
    assert isinstance(case.inputs["rs"], PlatedTable)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_rows_of_their_own_stand_beside_those_that_are_alike(program):
    case = agrees_with_plain_calls(program, 21, known_better)
    assert isinstance(case.inputs["rs"], PlatedTable)


# --- What a row may not do, because it would have to know what other rows did -----------------------------


def reads_the_count(rs):
    d = {}
    for r in rs:
        d[r.zip] = d.get(r.zip, 0) + 1
        if d[r.zip] > 2:
            d["many"] = d.get("many", 0) + 1
    return d


def writes_another_entry(rs):
    d = {"1000": 0, "2000": 0, "3000": 0, "4000": 0}
    for r in rs:
        d[r.zip] = d["1000"] + 1
    return d["2000"]


def writes_back_what_is_out_of_date(rs):
    d = {}
    for r in rs:
        old = d.get(r.sex, 0)
        d["f"] = d.get("f", 0) + 1
        d[r.sex] = old + 1
    return d.get("f", 0)


def swaps(rs):
    a = b = 0
    for r in rs:
        if r.ill:
            a, b = b + 1, a + 2
    return a


def looks_at_all_entries(rs):
    d = {}
    for r in rs:
        if len(d) < 2:
            d[r.zip] = d.get(r.zip, 0) + 1
    return len(d)


def looks_at_all_items(rs):
    h, n = [0, 0], 0
    for r in rs:
        if r.ill:
            h[0] += 1
        n += sum(h)
    return n


def by_a_helper(rs):
    d = {}

    def put(key):
        d[key] = d.get(key, 0) + 1

    for r in rs:
        put(r.zip)
    return d


@pytest.mark.parametrize(
    "program",
    [
        reads_the_count,
        writes_another_entry,
        writes_back_what_is_out_of_date,
        swaps,
        by_a_helper,
        looks_at_all_entries,
        looks_at_all_items,
    ],
)
def test_rows_that_need_to_know_what_others_did_are_traced_one_by_one(program):
    case = agrees_with_plain_calls(program, 10)
    assert not isinstance(case.inputs["rs"], PlatedTable)


# --- Tables of no row, one row and random size ------------------------------------------------------------


@pytest.mark.parametrize("rows", [0, 1])
@pytest.mark.parametrize("program", [by_get, by_counter, published, distinct, seen_again, means])
def test_tables_without_plates(program, rows):
    question = Question(program, {"rs": pv.Records(rows, person)}, secret="rs")
    run = draw(question, None, samples=20, seed=1)
    for table, output in zip(run.quantities[0].values(), run.quantities[1].values(), strict=True):
        assert normal(program(table)) == normal(output)


def test_tables_of_random_size():
    attack = pv.Attack(distinct, {"rs": pv.Records(pv.DiscreteUniform(0, 12), person)}, secret=lambda rs: len(rs))
    assert attack.run(pv.equals(0)).posterior.probability(lambda size: size == 0).value == 1.0


# --- Exact answers -----------------------------------------------------------------------------------------


def count_of_one(rs):
    d = {}
    for r in rs:
        d[r.zip] = d.get(r.zip, 0) + 1
    return d.get("1000", 0)


def test_the_count_of_one_key_is_binomial():
    attack = pv.Attack(count_of_one, {"rs": pv.Records(500, person)}, secret=lambda rs: rs[1].zip)
    belief = attack.run(engine="exact").prediction
    for count in (180, 200, 220):
        found = belief.probability(lambda output, count=count: output == count)
        assert found.exact
        assert found.value == pytest.approx(stats.binom(500, 0.4).pmf(count), rel=1e-9)


def test_the_number_of_keys_is_that_of_coupons():
    attack = pv.Attack(distinct, {"rs": pv.Records(40, person)}, secret=lambda rs: rs[1].zip)
    found = attack.run(engine="exact").prediction.probability(lambda output: output == 4)
    shares = np.array([0.4, 0.3, 0.28, 0.02])
    missing = sum(  # inclusion and exclusion over the zips that nobody has
        (-1) ** len(absent) * (1 - shares[list(absent)].sum()) ** 40
        for size in range(5)
        for absent in itertools.combinations(range(4), size)
    )
    assert found.exact
    assert found.value == pytest.approx(missing, rel=1e-9)


def test_a_dictionary_of_counts_is_multinomial():
    attack = pv.Attack(by_get, {"rs": pv.Records(10, person)}, secret=lambda rs: rs[1].zip)
    seen = {"1000": 5, "2000": 3, "3000": 2}
    entry_by_entry = attack.run({name: pv.equals(number) for name, number in seen.items()})
    assert entry_by_entry.posterior.probability(lambda zip_: zip_ == "1000").value == pytest.approx(0.5, rel=1e-9)
    law = stats.multinomial(10, [0.4, 0.3, 0.28, 0.02]).pmf([5, 3, 2, 0])
    assert entry_by_entry.diagnostics.evidence.value == pytest.approx(law, rel=1e-9)
    # In this order: a person of 1000 came first, and of the others one of 2000.
    in_order = attack.run(pv.equals(seen))
    assert in_order.posterior.probability(lambda zip_: zip_ == "1000").value == pytest.approx(4 / 9, rel=1e-9)
    assert in_order.diagnostics.evidence.value == pytest.approx(law * 5 / 10 * 3 / 5, rel=1e-9)


# --- What is not folded: as long as it is worth it --------------------------------------------------------


def pairs_of_neighbours(rs):
    d, last = {}, "1000"
    for r in rs:
        d[(last, r.zip)] = d.get((last, r.zip), 0) + 1
        last = r.zip
    return max(d.values())


def test_tracing_is_given_up_where_calls_take_less_time(monkeypatch):
    monkeypatch.setattr(calls, "WORK_OF_A_SHORT_TRACE", 3_000)
    small = Question(pairs_of_neighbours, {"rs": pv.Records(10, person)}, "rs").case()
    assert small.lifting.tier == "traced"
    large = Question(pairs_of_neighbours, {"rs": pv.Records(100, person)}, "rs").case()
    assert large.lifting.tier == "python"
    assert "less time to call it" in str(large.lifting)
