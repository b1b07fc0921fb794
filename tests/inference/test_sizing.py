"""A model of tables of all sizes, read at single ones, against tracing the program at each."""

import pytest
from test_sizes import PROGRAMS, numpy_mean, numpy_spread, own_row

import privug as pv
from privug.inference.question import Question
from privug.model.graph import is_made_alike

SIZES = pv.DiscreteUniform(0, 40)
NORMAL_ROWS = pv.Records(SIZES, lambda i: pv.Row(age=pv.Normal(40, sd=9) if i else pv.Uniform(18, 90)))
OWN_ROWS = pv.Records(SIZES, own_row)


def depending(i):
    ill = pv.Bernoulli(0.2)
    return pv.Row(ill=ill, days=pv.given(ill, {True: pv.Poisson(9), False: pv.Poisson(1)}))


def suppressed_mean(records):
    if len(records) < 20:
        return None
    return sum(r.age for r in records) / len(records)


def clamped_sum(records):
    return sum(min(max(r.age, 20.0), 60.0) for r in records)


def oldest_and_number(records):
    return max(r.age for r in records), len(records)


def above_mean(records):
    mean = sum(r.age for r in records) / len(records)
    return sum(1 for r in records if r.age > mean)


def without_first(records):
    return sum(r.age for r in records[1:])


def days_of_the_ill(records):
    return sum(r.days for r in records if r.ill)


def noisy_sum(records):
    return sum(r.age for r in records) + pv.sample(pv.Laplace(0, 10))


def question(program, prior, facts=()):
    return Question(program, {"records": prior}, lambda records: records[0], facts=facts)


def traced(program, prior, size, monkeypatch, facts=()):
    """Return the case of a size as it is traced, whatever is known of others."""
    alone = question(program, prior, facts)
    with monkeypatch.context() as here:
        here.setattr(Question, "_as_of_all_sizes", lambda self, sizes: None)
        return alone.case((size,))


CASES = [
    *((program, OWN_ROWS) for program in PROGRAMS if program not in (numpy_mean, numpy_spread)),
    *((p, NORMAL_ROWS) for p in (suppressed_mean, clamped_sum, oldest_and_number, above_mean, noisy_sum)),
    (days_of_the_ill, pv.Records(SIZES, depending)),
]
ALL_SIZES = (40, 33, 20, 12, 30, 9, 1)


def parts(case):
    return [case.inputs, case.secret, case.output, case.facts]


@pytest.mark.parametrize(("program", "prior"), CASES, ids=lambda one: getattr(one, "__name__", ""))
def test_it_is_the_model_that_tracing_gives(program, prior, monkeypatch):
    asked, given = question(program, prior), []
    for size in ALL_SIZES:
        case = asked._as_of_all_sizes((size,))
        if case is not None:
            given.append(size)
            assert is_made_alike(parts(case), parts(traced(program, prior, size, monkeypatch)))
        asked.case((size,))
    assert given == [12, 30, 9]  # of three that are traced first all others follow, but for those of few rows


def test_facts_are_those_of_the_size(monkeypatch):
    facts = (lambda records: records[0].age > 30, lambda records: len(records) > 11, lambda records: len(records) < 30)
    asked = question(clamped_sum, NORMAL_ROWS, facts)
    for size in ALL_SIZES:
        case = asked._as_of_all_sizes((size,))
        if case is not None:
            assert is_made_alike(parts(case), parts(traced(clamped_sum, NORMAL_ROWS, size, monkeypatch, facts)))
        asked.case((size,))
    assert [len(asked.case((size,)).facts) for size in (12, 30, 9)] == [1, 2, 2]


@pytest.mark.parametrize("program", [numpy_mean, without_first], ids=lambda one: one.__name__)
def test_models_that_differ_from_what_was_traced_are_not_used(program):
    asked = question(program, OWN_ROWS)
    for size in ALL_SIZES:
        assert asked._as_of_all_sizes((size,)) is None
        asked.case((size,))


def test_a_trace_that_differs_at_one_size_is_not_trusted_at_any(monkeypatch):
    asked = question(suppressed_mean, NORMAL_ROWS)
    monkeypatch.setattr("privug.inference.question.is_made_alike", lambda *cases: cases[0] is None)
    for size in (40, 33, 20, 12):
        assert asked._as_of_all_sizes((size,)) is None
        asked.case((size,))


@pytest.mark.parametrize("program", [suppressed_mean, oldest_and_number])
def test_answers_are_the_same_to_the_bit(program, monkeypatch):
    def answers():
        attack = pv.Attack(program, {"records": NORMAL_ROWS}, lambda records: records[0].age)
        seen = (pv.near(75, within=1), 25) if program is oldest_and_number else pv.near(50, within=20)
        result = attack.run(seen, engine="exact")
        found = result.posterior.mean(), result.posterior.quantile(0.1), result.diagnostics.evidence
        return [one.value.hex() for one in found]

    prior = pv.Records(pv.Binomial(60, 0.5), lambda i: pv.Row(age=pv.Normal(40, sd=9) if i else pv.Uniform(18, 90)))
    monkeypatch.setattr(f"{__name__}.NORMAL_ROWS", prior)
    once = answers()
    monkeypatch.setattr(Question, "_as_of_all_sizes", lambda self, sizes: None)
    assert answers() == once
