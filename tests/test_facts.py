"""What an attacker knows that ties inputs together: part of the prior, in every engine."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from scipy import stats

import privug as pv
from privug.errors import QuestionError
from privug.inference import engines

ENGINES = ["auto", "exact", "sample", "rare"]


def total(pays):
    return sum(pays)


def boss_earns_most(pays):
    return pays[0] == max(pays)


def dice(count):
    return {"pays": [pv.DiscreteUniform(1, 6) for _ in range(count)]}


def enumerated(states, fact, output, seen, secret):
    """Return prior and posterior of the secret, P(observation | fact) and P(fact), from equally likely states."""
    possible = [state for state in states if fact(state)]
    agreeing = [state for state in possible if seen(output(state))]
    before, after = Counter(map(secret, possible)), Counter(map(secret, agreeing))
    return (
        {value: count / len(possible) for value, count in before.items()},
        {value: count / len(agreeing) for value, count in after.items()},
        len(agreeing) / len(possible),
        len(possible) / len(states),
    )


STATES = list(itertools.product(range(1, 7), repeat=3))
BEFORE, AFTER, EVIDENCE, FACT = enumerated(STATES, boss_earns_most, sum, lambda out: out == 12, lambda s: s[0])


def assert_covers(belief, expected, factor=1.5):
    found = belief.distribution()
    for value, probability in expected.items():
        assert probability in found[value].widened(factor), (value, probability, found[value])


@pytest.mark.parametrize("engine", [*ENGINES, pytest.param("pymc", marks=pytest.mark.slow)])
def test_a_fact_is_part_of_the_prior_in_every_engine(engine):
    attack = pv.Attack(total, dice(3), lambda pays: pays[0], assume=boss_earns_most)
    result = attack.run(observe=pv.equals(12), engine=engine, samples=4000, seed=1)
    assert_covers(result.prior, BEFORE)
    assert_covers(result.posterior, AFTER)
    assert EVIDENCE in result.diagnostics.evidence.widened(1.5)
    assert attack.question.probability_of_facts.value == pytest.approx(FACT, abs=1e-12)
    if engine in ("auto", "exact"):
        assert result.prior.distribution()[6].value == pytest.approx(BEFORE[6], abs=1e-12)
        assert result.posterior.distribution()[4].value == pytest.approx(AFTER[4], abs=1e-12)
        assert result.diagnostics.evidence.value == pytest.approx(EVIDENCE, abs=1e-12)


@pytest.mark.parametrize("engine", ENGINES)
def test_measures_are_of_the_prior_with_its_facts(engine):
    attack = pv.Attack(total, dice(3), lambda pays: pays[0], assume=boss_earns_most)
    joint = attack.run(observe=pv.equals(12), engine=engine, samples=10_000, seed=3).joint
    pairs = Counter((s[0], sum(s)) for s in STATES if boss_earns_most(s))
    count = sum(pairs.values())
    secrets, outputs = Counter(), Counter()
    for (secret, output), number in pairs.items():
        secrets[secret] += number
        outputs[output] += number
    expected = sum(n / count * math.log2(n * count / (secrets[s] * outputs[o])) for (s, o), n in pairs.items())
    assert expected in pv.leakage.mutual_information(joint).widened(1.5)
    entropy = -sum(n / count * math.log2(n / count) for n in secrets.values())
    assert entropy in pv.leakage.entropy(joint.secret).widened(1.5)


def test_several_facts_hold_together():
    facts = [boss_earns_most, lambda pays: pays[1] != pays[2], lambda pays: len(pays) == 3]
    attack = pv.Attack(total, dice(3), lambda pays: pays[1], assume=facts)
    before, after, evidence, fact = enumerated(
        STATES, lambda s: boss_earns_most(s) and s[1] != s[2], sum, lambda out: out >= 14, lambda s: s[1]
    )
    result = attack.run(observe=pv.between(14, 99))
    assert {k: v.value for k, v in result.prior.distribution().items()} == pytest.approx(before, abs=1e-12)
    assert {k: v.value for k, v in result.posterior.distribution().items()} == pytest.approx(after, abs=1e-12)
    assert result.diagnostics.evidence.value == pytest.approx(evidence, abs=1e-12)
    assert attack.question.probability_of_facts.value == pytest.approx(fact, abs=1e-12)


def test_without_an_observation_the_facts_alone_are_told():
    result = pv.Attack(total, dice(3), lambda pays: pays[0], assume=boss_earns_most).run()
    assert {k: v.value for k, v in result.posterior.distribution().items()} == pytest.approx(BEFORE, abs=1e-12)
    assert result.diagnostics.evidence.value == 1.0


def test_other_beliefs_know_the_facts_too():
    result = pv.Attack(total, dice(3), lambda pays: pays[0], assume=boss_earns_most).run(observe=pv.equals(12))
    agreeing = [s for s in STATES if boss_earns_most(s) and sum(s) == 12]
    assert result.belief(lambda pays: pays[2]).mean().value == pytest.approx(np.mean([s[2] for s in agreeing]))


def test_counts_over_many_rows_stay_exact():
    attack = pv.Attack(
        lambda records: sum(row.ill for row in records),
        {"records": pv.Records(60, pv.Row(ill=pv.Bernoulli(0.1)))},
        lambda records: records[0].ill,
        assume=lambda records: sum(row.ill for row in records) >= 3,
    )
    result = attack.run(observe=pv.equals(7), engine="exact")
    many = stats.binom.sf(2, 60, 0.1)
    counts = np.arange(3, 61)
    expected = float(stats.binom.pmf(counts, 60, 0.1) @ counts) / 60 / many
    assert result.prior.mean().value == pytest.approx(expected, rel=1e-9)
    assert result.posterior.mean().value == pytest.approx(7 / 60, rel=1e-9)
    assert result.diagnostics.evidence.value == pytest.approx(stats.binom.pmf(7, 60, 0.1) / many, rel=1e-9)


@pytest.mark.parametrize("engine", ENGINES)
def test_facts_about_the_size_of_a_table(engine):
    attack = pv.Attack(
        lambda records: sum(row.ill for row in records),
        {"records": pv.Records(pv.DiscreteUniform(1, 8), pv.Row(ill=pv.Bernoulli(0.3)))},
        lambda records: records[0].ill,
        assume=[lambda records: len(records) > 5, lambda records: any(row.ill for row in records)],
    )
    result = attack.run(observe=pv.equals(2), engine=engine, samples=4000, seed=2)
    some = {n: 1 - 0.7**n for n in (6, 7, 8)}
    whole = sum(some.values())
    two = {n: math.comb(n, 2) * 0.3**2 * 0.7 ** (n - 2) for n in some}
    assert 0.3 * 3 / whole in result.prior.mean().widened(1.5)
    assert sum(2 / n * p for n, p in two.items()) / sum(two.values()) in result.posterior.mean().widened(1.5)
    assert sum(two.values()) / whole in result.diagnostics.evidence.widened(1.5)


def test_continuous_facts_against_quadrature():
    attack = pv.Attack(
        lambda x, y: x + y,
        {"x": pv.Normal(0, sd=1), "y": pv.Normal(1, sd=2)},
        "x",
        assume=lambda x, y: x > y,
    )
    grid = np.linspace(-12, 14, 1301)
    x, y = np.meshgrid(grid, grid, indexing="ij")
    weight = stats.norm.pdf(x) * stats.norm.pdf(y, 1, 2) * ((x > y) + 0.5 * (x == y)) * 0.02**2
    fact, apart = weight.sum(), 1 / math.sqrt(5)
    given_larger = stats.norm.pdf(apart) / stats.norm.sf(apart) * apart  # E[x given x - y > 0]
    along = stats.norm.pdf(grid) * stats.norm.pdf(1.5 - grid, 1, 2) * (grid > 1.5 - grid)
    for engine in ("sample", "rare"):
        near = attack.run(observe=pv.equals(1.5), engine=engine, samples=4000, seed=1)
        mean = near.prior.mean()
        assert mean.value == pytest.approx(given_larger) if mean.exact else given_larger in mean.widened(1.5)
        assert (along * grid).sum() / along.sum() in near.posterior.mean().widened(1.5)
        assert along.sum() * 0.02 / fact in near.diagnostics.evidence.widened(1.5)


def test_normal_quantities_given_a_range_are_exact():
    attack = pv.Attack(
        lambda x, y: x + y, {"x": pv.Normal(0, sd=1), "y": pv.Normal(0, sd=2)}, "x", assume=lambda x: x > 0.5
    )
    result = attack.run(observe=pv.equals(2.0), engine="exact")
    # Given the sum, x is normal with mean 2/5 and variance 4/5, cut off at 0.5.
    scale = math.sqrt(0.8)
    cut = (0.5 - 0.4) / scale
    assert result.posterior.mean().value == pytest.approx(stats.truncnorm.mean(cut, math.inf, 0.4, scale), rel=1e-9)
    density = stats.norm.pdf(2, 0, math.sqrt(5)) * stats.norm.sf(cut) / stats.norm.sf(0.5)
    assert result.diagnostics.evidence.value == pytest.approx(density, rel=1e-9)
    assert result.prior.mean().value == pytest.approx(stats.truncnorm.mean(0.5, math.inf), rel=1e-9)


def test_a_fact_of_small_probability_is_searched_for():
    attack = pv.Attack(
        lambda x, y: x + y, {"x": pv.Normal(0, sd=1), "y": pv.Normal(0, sd=1)}, "x", assume=lambda x, y: x * y > 14
    )
    with pv.limited(exact_seconds=0):
        result = attack.run(observe=pv.between(6, 20), samples=2000, seed=1)
    grid = np.linspace(-9, 9, 1801)
    x, y = np.meshgrid(grid, grid, indexing="ij")
    weight = np.exp(-(x**2 + y**2) / 2) * (x * y > 14)
    assert weight.sum() * 0.01**2 / (2 * math.pi) in attack.question.probability_of_facts.widened(1.5)
    assert 0.5 in result.diagnostics.evidence.widened(1.5)  # x and y have the same sign, and either is as likely
    assert (weight * x * (x + y >= 6)).sum() / (weight * (x + y >= 6)).sum() in result.posterior.mean().widened(1.5)


def mean_of_the_ill(records):
    ages = [row.age for row in records if row.ill]
    return sum(ages) / len(ages)


def formatted_mean_of_the_ill(records):
    return float(str(mean_of_the_ill(records)))


def somebody_is_ill(records):
    return any(row.ill for row in records)


def somebody_is_ill_in_text(records):
    return "True" in str([bool(row.ill) for row in records])


@pytest.mark.parametrize("program", [mean_of_the_ill, formatted_mean_of_the_ill])
@pytest.mark.parametrize("fact", [somebody_is_ill, somebody_is_ill_in_text])
@pytest.mark.parametrize("engine", ["exact", "sample"])
def test_a_program_need_not_make_sense_on_inputs_that_contradict_a_fact(program, fact, engine):
    row = pv.Row(ill=pv.Bernoulli(0.5), age=pv.DiscreteUniform(20, 23))
    attack = pv.Attack(program, {"records": pv.Records(3, row)}, lambda records: records[0].ill, assume=fact)
    result = attack.run(observe=pv.equals(21.0), engine=engine, samples=1000, seed=1)
    states = list(itertools.product(itertools.product((0, 1), range(20, 24)), repeat=3))
    before, after, evidence, _ = enumerated(
        states,
        lambda state: any(ill for ill, _ in state),
        lambda state: np.mean([age for ill, age in state if ill]),
        lambda mean: mean == 21,
        lambda state: state[0][0],
    )
    assert before[1] in result.prior.mean().widened(1.5)
    assert after[1] in result.posterior.mean().widened(1.5)
    assert evidence in result.diagnostics.evidence.widened(1.5)


def test_failures_are_counted_among_inputs_that_the_facts_allow():
    attack = pv.Attack(
        lambda x, y: 6 // x + y,
        {"x": pv.DiscreteUniform(0, 3), "y": pv.DiscreteUniform(0, 3)},
        "x",
        assume=lambda x, y: x != y,
        on_error="exclude",
    )
    states = [(x, y) for x in range(4) for y in range(4) if x != y]
    valid = [state for state in states if state[0]]
    agreeing = [(x, y) for x, y in valid if 6 // x + y == 4]
    for engine in ("exact", "sample"):
        result = attack.run(observe=pv.equals(4), engine=engine, samples=2000, seed=1)
        assert len(agreeing) / len(valid) in result.diagnostics.evidence.widened(1.5)
        assert_covers(result.posterior, {x: n / len(agreeing) for x, n in Counter(x for x, _ in agreeing).items()})


def test_the_report_names_the_facts():
    result = pv.Attack(total, dice(3), lambda pays: pays[0], assume=boss_earns_most).run(observe=pv.equals(12))
    assert "attacker assumes  boss earns most (of probability 0.421 under the prior alone)" in str(result)
    unnamed = pv.Attack(total, dice(3), lambda pays: pays[0], assume=[lambda pays: pays[0] > 1]).run()
    assert "1 fact about the inputs" in str(unnamed)


def test_attackers_that_know_different_facts_are_compared():
    matrix = pv.compare(
        attackers={"knows nothing": dice(3), "knows the boss": dice(3)},
        programs={"total": total},
        secret=lambda pays: pays[0],
        assume={"knows nothing": (), "knows the boss": boss_earns_most},
        measures={"before": lambda result: pv.leakage.entropy(result.prior)},
    )
    assert matrix["knows nothing", "total", "before"].value == pytest.approx(math.log2(6))
    expected = -sum(p * math.log2(p) for p in BEFORE.values())
    assert matrix["knows the boss", "total", "before"].value == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("fact", [lambda pays: False, lambda pays: pays[0] > 6, lambda pays: pays[0] == pays[0] + 1])
def test_an_impossible_fact_is_refused(engine, fact):
    attack = pv.Attack(total, dice(3), lambda pays: pays[0], assume=fact)
    with pytest.raises(QuestionError, match="assume: under the prior, what is assumed never holds"):
        attack.run(observe=pv.equals(12), engine=engine)


@pytest.mark.parametrize(
    "assume", [3, "pays", [3], {"pays": 1}, None, lambda salary, age: True, lambda pays: 5.0, lambda pays: pays[0] / 2]
)
def test_what_is_no_fact_is_refused(assume):
    with pytest.raises(QuestionError, match="assume"):
        pv.Attack(lambda pays, more: 0, {**dice(2), "more": 1}, lambda pays: pays[0], assume=assume).run()


TRUTHS = {
    "a cell": lambda staff: staff[0].woman,
    "a comparison": lambda staff: staff[0].woman == 1,
    "a count": lambda staff: sum(row.woman for row in staff[:1]),
    "a plain call": lambda staff: int(f"{staff[0].woman}"),
    "NumPy's": lambda staff: np.int64(staff[0].woman),
    "always": lambda staff: 1,
    "as often as not": lambda staff: staff[0].woman + 2,
}


@pytest.mark.parametrize("name", TRUTHS)
def test_whole_numbers_are_answers_of_a_fact_as_they_are_of_a_predicate(name):
    def pays(staff):
        return sum(row.pay * row.woman for row in staff)

    fact = TRUTHS[name]
    prior = {"staff": pv.Records(2, pv.Row(woman=pv.Bernoulli(0.3), pay=pv.DiscreteUniform(1, 3)))}
    rows = list(itertools.product([0, 1], [1, 2, 3]))
    weights = Counter()
    for staff in itertools.product([pv.Row(woman=w, pay=p) for w, p in rows], repeat=2):
        if fact(staff) and pays(staff) == 3:
            weights[staff[0].pay] += math.prod(0.3 if row.woman else 0.7 for row in staff)
    expected = {pay: weight / weights.total() for pay, weight in weights.items()}
    for options, observation in (
        ({"assume": fact}, pv.equals(3)),
        ({}, [pv.equals(3), pv.such_that(lambda verdict: verdict)]),
    ):
        program = pays if options else lambda staff: (pays(staff), fact(staff))
        attack = pv.Attack(program, prior, lambda staff: staff[0].pay, **options)
        found = attack.run(observe=observation, engine="exact").posterior.distribution()
        assert {pay: chance.value for pay, chance in found.items()} == pytest.approx(expected)


def test_a_fact_that_contradicts_the_observation_makes_it_impossible():
    attack = pv.Attack(total, dice(2), lambda pays: pays[0], assume=lambda pays: pays[0] > pays[1])
    with pytest.raises(pv.ImpossibleObservation):
        attack.run(observe=pv.equals(12))


@pytest.mark.parametrize("engine", ["exact", "sample", "rare"])
def test_sizes_that_the_observation_rules_out_count_among_what_the_facts_allow(engine):
    table = pv.Records(pv.Choice([1, 3]), pv.Row(ill=pv.Bernoulli(0.5)))
    attack = pv.Attack(
        lambda table: len(table),
        {"table": table},
        lambda table: table[0].ill,
        assume=lambda table: all(row.ill for row in table),
    )
    result = attack.run(observe=pv.equals(1), engine=engine, samples=3000, seed=1)
    assert 0.5 / (0.5 + 0.125) in result.diagnostics.evidence.widened(1.5)


def test_failures_on_sizes_that_the_observation_rules_out_are_counted():
    table = pv.Records(pv.Choice([1, 3]), pv.Row(ill=pv.Bernoulli(0.5)))
    attack = pv.Attack(
        lambda table: len(table) + 0 * (1 // sum(row.ill for row in table)),
        {"table": table},
        lambda table: table[0].ill,
        on_error="exclude",
    )
    result = attack.run(observe=pv.equals(1), engine="sample", samples=3000, seed=1)
    assert 0.5 / (0.5 + 0.875) in result.diagnostics.evidence.widened(1.5)


def test_ranges_of_two_quantities_that_the_observation_makes_one():
    normal = {"x": pv.Normal(0, sd=1), "y": pv.Normal(0, sd=1)}
    facts = [lambda x, y: x > 0.5, lambda x, y: y < 0.2]
    result = pv.Attack(lambda x, y: x + y, normal, "x", assume=facts).run(observe=pv.equals(1.0))
    # Given the sum, x is normal with mean 1/2 and variance 1/2, and above 0.8: y = 1 - x is below 0.2.
    scale = math.sqrt(0.5)
    assert result.posterior.mean().value == pytest.approx(stats.truncnorm.mean(0.3 / scale, math.inf, 0.5, scale))
    density = stats.norm.pdf(1, 0, math.sqrt(2)) * stats.norm.sf(0.3 / scale)
    expected = density / (stats.norm.sf(0.5) * stats.norm.cdf(0.2))
    assert expected in result.diagnostics.evidence.widened(1.5)


@pytest.mark.parametrize("facts", [[lambda x: x > 0.5, lambda x: x < 0.4], [lambda x, y: x == y]])
def test_impossible_facts_about_continuous_quantities_are_refused_without_a_long_search(facts, monkeypatch):
    monkeypatch.setattr(engines, "GRADIENTS", ())  # chains are not asked
    normal = {"x": pv.Normal(0, sd=1), "y": pv.Normal(0, sd=1)}
    with pytest.raises(QuestionError, match="assume: under the prior"):
        pv.Attack(lambda x, y: x + y, normal, "x", assume=facts).run(observe=pv.near(1, within=0.1))


def test_a_fact_that_fails_says_so():
    attack = pv.Attack(total, dice(2), lambda pays: pays[0], assume=lambda pays: 1 / (pays[0] - pays[1]) > 0)
    with pytest.raises(pv.ProgramError, match="A fact must say True or False for every input"):
        attack.run(observe=pv.equals(5), engine="sample")


def test_facts_in_words_stand_in_the_sentence_and_change_no_number():
    def mean(rows):
        return sum(row.pay for row in rows) / len(rows)

    def most(rows):
        return (rows[0].pay >= rows[1].pay) & (rows[0].pay >= rows[2].pay)

    prior = {"rows": pv.Records(3, lambda i: pv.Row(pay=pv.DiscreteUniform(1, 9)))}
    bare = pv.Attack(mean, prior, lambda rows: rows[0].pay, observe=pv.equals(6), assume=most)
    told = bare.replace(assume={"the CEO earns most": most})
    wanted = [pay for pay in itertools.product(range(1, 10), repeat=3) if pay[0] == max(pay)]
    fitting = [pay[0] for pay in wanted if sum(pay) == 18]
    for attack in (bare, told, told.replace(name="again")):
        result = attack.run()
        assert result.posterior.mean().value == pytest.approx(sum(fitting) / len(fitting), rel=1e-12)
        assert result.diagnostics.evidence.value == pytest.approx(len(fitting) / len(wanted), rel=1e-12)
    assert "knows the distribution of rows (3 rows), knows that the CEO earns most and sees" in told.run().summary()
    assert "knows 1 fact about the inputs and sees" in bare.run().summary()
    assert "the CEO earns most (of probability 0.391 under the prior alone)" in str(told.run())


@pytest.mark.parametrize("assume", [{"": bool}, {3: bool}, {"a claim": 3}, 5])
def test_facts_that_are_none_are_refused(assume):
    with pytest.raises(pv.QuestionError, match="assume"):
        pv.Attack(lambda x: x, {"x": pv.Bernoulli(0.5)}, "x", assume=assume)
