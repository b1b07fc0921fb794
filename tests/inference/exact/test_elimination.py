"""Elimination: discrete models gone through root by root equal loops over all states, and closed forms."""

import itertools
import math
import warnings
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import privug as pv
from privug.inference.exact.finite.elimination import EliminationRound, Schedule
from privug.inference.exact.finite.elimination import eliminated as eliminated_states
from privug.inference.exact.finite.solver import prepare_elimination, prepare_finite
from privug.inference.exact.finite.states import States
from privug.inference.exact.request import Refused, Request
from random_programs import PlateWriter, TableWriter, Writer, random_program

P = [0.1 + 0.8 * k / 59 for k in range(60)]


def eliminated(attack, observe=None, query=None):
    run = prepare_elimination(Request(attack.question, observe, query)).run()
    assert run.engine == "exact (elimination)"
    return run


def pairs(joint):
    listed = zip(map(repr, joint.secret.batch.values()), map(repr, joint.output.batch.values()), strict=True)
    return dict(zip(listed, joint.weights, strict=True))


def shares(belief):
    return dict(zip(belief.batch.values(), belief.weights, strict=True))


def poisson_binomial(chances):
    total = np.ones(1)
    for p in chances:
        total = np.convolve(total, [1 - p, p])
    return total


def people(chances):
    return pv.Records(len(chances), lambda i: pv.Row(ill=pv.Bernoulli(chances[i])))


def first_ill(rows):
    return rows[0].ill


def by_count(rows):
    return pv.count(rows, lambda row: row.ill == 1)


def by_loop(rows):
    total = 0
    for row in rows:
        if row.ill == 1:
            total += 1
    return total


def by_comprehension(rows):
    return sum(1 for row in rows if row.ill == 1)


def by_numpy(rows):
    return np.sum([row.ill for row in rows])


def by_column(rows):
    return rows.ill.sum()


@pytest.mark.parametrize("program", [by_count, by_loop, by_comprehension, by_numpy, by_column])
def test_people_with_chances_of_their_own(program):
    attack = pv.Attack(program, {"rows": people(P)}, first_ill)
    result = attack.run(engine="exact", observe=pv.equals(25))
    others = poisson_binomial(P[1:])
    ill, healthy = P[0] * others[24], (1 - P[0]) * others[25]
    assert result.engine == "exact (counts)"
    assert float(result.posterior.mean()) == pytest.approx(ill / (ill + healthy), rel=1e-12)
    assert float(result.diagnostics.evidence) == pytest.approx(ill + healthy, rel=1e-12)
    assert shares(result.prediction) == pytest.approx(dict(enumerate(poisson_binomial(P))), rel=1e-11)


def test_far_tails_keep_their_digits():
    """The probability that all of sixty people are ill, as a fraction."""
    result = pv.Attack(by_count, {"rows": people(P)}, first_ill).run(engine="exact", observe=pv.equals(60))
    truth = math.prod(Fraction(p) for p in P)
    assert float(result.diagnostics.evidence) == pytest.approx(float(truth), rel=1e-12)
    assert float(result.posterior.mean()) == 1.0


def test_suppressed_and_noisy_counts():
    def suppressed(rows):
        total = sum(row.ill for row in rows)
        return total if total >= 5 else 0

    def noisy(rows):
        return sum(row.ill for row in rows) + pv.sample(pv.DiscreteLaplace(2.0))

    chances = P[:12]
    exact = poisson_binomial(chances)
    released = pv.Attack(suppressed, {"rows": people(chances)}, first_ill).run(engine="exact").prediction
    kept = {k: exact[k] for k in range(5, 13)}
    assert shares(released) == pytest.approx({0: exact[:5].sum(), **kept}, rel=1e-11)
    result = pv.Attack(noisy, {"rows": people(P)}, first_ill).run(engine="exact", observe=pv.equals(-3))
    noise, totals = stats.dlaplace(0.5), poisson_binomial(P)
    truth = sum(totals[k] * noise.pmf(-3 - k) for k in range(61))
    assert float(result.diagnostics.evidence) == pytest.approx(truth, rel=1e-9)


def all_states(program, chances):
    """Go through all combinations of values of named inputs."""
    found = Counter()
    for values in itertools.product(*chances.values()):
        named = dict(zip(chances, values, strict=True))
        p = math.prod(chances[name][value] for name, value in named.items())
        found[repr(named[next(iter(chances))]), repr(program(**named))] += p
    return dict(found)


def six(a, b, c, d, e, f):
    return 3 * a - 2 * b + c + d / 2 + 7 * e - f


def clipped(a, b, c, d, e, f):
    total = a + b + c + e + f
    return min(total, 4) if total > 1 else -1


def two_sums(a, b, c, d, e, f):
    return a + b + c + e + f, a * e + b * c + d + f


def walk(a, b, c, d, e, f):
    place = steps = 0
    for step in (a, b, c, e, f):
        place += 1 if step > 0 else -1
        if place < -1:
            break
        steps += 1
    return place, steps


def biggest(a, b, c, d, e, f):
    return 0.0 + max(a, b, c, d, e) - min(b, d, f), all([a > 0, b < 2, e == 1]), any([c, f])


@pytest.mark.parametrize("program", [six, clipped, two_sums, walk, biggest])
def test_mixed_families_against_loops(program):
    prior = {
        "a": pv.DiscreteUniform(-1, 2),
        "b": pv.Binomial(3, 0.4),
        "c": pv.Bernoulli(0.3),
        "d": pv.Choice([0.5, 1.5, 4.0], p=[0.5, 0.25, 0.25]),
        "e": pv.Mixture([pv.DiscreteUniform(0, 1), pv.Constant(1)], weights=[0.4, 0.6]),
        "f": pv.Empirical([1, 1, 2]),
    }
    chances = {
        "a": dict.fromkeys(range(-1, 3), 0.25),
        "b": {k: stats.binom.pmf(k, 3, 0.4) for k in range(4)},
        "c": {0: 0.7, 1: 0.3},
        "d": {0.5: 0.5, 1.5: 0.25, 4.0: 0.25},
        "e": {0: 0.2, 1: 0.8},
        "f": {1: 2 / 3, 2: 1 / 3},
    }
    found = pairs(eliminated(pv.Attack(program, prior, "a")).joint())
    assert found == pytest.approx(all_states(program, chances), rel=1e-11)


WRITERS = {
    Writer: lambda: {name: pv.DiscreteUniform(-3, 3) for name in "abc"},
    TableWriter: lambda: {
        "rows": pv.Records(
            3,
            lambda i: pv.Row(
                name=pv.Choice(["Ann", "Bob", "Eve"]), age=pv.DiscreteUniform(0, 1 + i), zip=pv.Choice(["2300", "2450"])
            ),
        )
    },
    PlateWriter: lambda: {
        "rows": pv.Records(
            9,
            lambda i: pv.Row(
                name=pv.Choice(["Ann"] if i == 0 else ["Ann", "Eve"]), age=pv.DiscreteUniform(0, 1), zip="2300"
            ),
        )
    },
}


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("seed", range(4))
def test_random_programs_agree_with_enumeration(writer, seed):
    check_random_program(writer, seed)


@pytest.mark.slow
@pytest.mark.parametrize("writer", WRITERS)
def test_many_random_programs_agree_with_enumeration(writer):
    for seed in range(4, 100):
        check_random_program(writer, seed)


def check_random_program(writer, seed):
    source, program = random_program(seed, writer)
    prior = WRITERS[writer]()
    if writer is not Writer:
        prior = {program.__code__.co_varnames[0]: prior["rows"]}
    name = next(iter(prior))
    attack = pv.Attack(program, prior, name if writer is Writer else lambda rows: rows[0].age)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pv.LiftingWarning)
        try:
            prepared = prepare_elimination(Request(attack.question))
        except Refused as refused:
            if refused.obstacle.reason != "the program is called sample by sample":
                raise
            return
    finite = prepare_finite(Request(attack.question)).run()
    assert pairs(prepared.run().joint()) == pytest.approx(pairs(finite.joint()), rel=1e-11), source


def rows_that_depend(count):
    def row(i):
        zip_code = pv.Choice(["a", "b", "c"], p=[0.5, 0.3, 0.2])
        return pv.Row(zip=zip_code, ill=pv.given(zip_code, {k: pv.Bernoulli(p) for k, p in ILL.items()}))

    return pv.Records(count, row)


ILL = {"a": 0.1, "b": 0.2, "c": 0.3}


@pytest.mark.parametrize("count", [5, 200])
def test_columns_that_depend_on_each_other(count):
    """Below eight rows there is no plate; above, the rows are alike."""

    def ill_in_a(rows):
        return sum(row.ill for row in rows if row.zip == "a")

    def both(rows):
        return rows[0].zip, rows[0].ill

    attack = pv.Attack(ill_in_a, {"rows": rows_that_depend(count)}, both)
    result = attack.run(engine="exact", observe=pv.equals(2))
    prior = {("a", 0): 0.45, ("a", 1): 0.05, ("b", 0): 0.24, ("b", 1): 0.06, ("c", 0): 0.14, ("c", 1): 0.06}
    others = stats.binom(count - 1, 0.05)
    weights = {pair: p * others.pmf(1 if pair == ("a", 1) else 2) for pair, p in prior.items()}
    total = sum(weights.values())
    assert float(result.diagnostics.evidence) == pytest.approx(stats.binom.pmf(2, count, 0.05), rel=1e-11)
    assert shares(result.posterior) == pytest.approx({pair: w / total for pair, w in weights.items()}, rel=1e-11)


@pytest.mark.parametrize("count", [6, 300])
def test_rows_that_share_a_rate(count):
    rate = pv.Choice([0.1, 0.2, 0.5], p=[0.2, 0.3, 0.5])
    prior = {"rows": pv.Records(count, lambda i: pv.Row(ill=pv.Bernoulli(rate))), "rate": rate}

    def total(rows, rate):
        return sum(row.ill for row in rows)

    seen = count // 3
    weights = np.array([p * stats.binom.pmf(seen, count, r) for r, p in [(0.1, 0.2), (0.2, 0.3), (0.5, 0.5)]])
    result = pv.Attack(total, prior, "rate").run(engine="exact", observe=pv.equals(seen))
    truth = dict(zip([0.1, 0.2, 0.5], weights / weights.sum(), strict=True))
    assert shares(result.posterior) == pytest.approx(truth, rel=1e-10)
    assert float(result.diagnostics.evidence) == pytest.approx(weights.sum(), rel=1e-11)
    one = pv.Attack(total, prior, first_ill).run(engine="exact", observe=pv.equals(seen))
    assert float(one.posterior.mean()) == pytest.approx(seen / count, rel=1e-11)  # rows are exchangeable


def test_secrets_of_two_rows():
    def total(rows):
        return sum(row.age for row in rows)

    def older(rows):
        return rows[0].age > rows[1].age

    def table(count):
        return {"rows": pv.Records(count, pv.Row(age=pv.DiscreteUniform(0, 3)))}

    found = Counter()
    for ages in itertools.product(range(4), repeat=5):
        found[repr(ages[0] > ages[1]), repr(sum(ages))] += 4.0**-5
    assert pairs(eliminated(pv.Attack(total, table(5), older)).joint()) == pytest.approx(dict(found), rel=1e-12)
    many = eliminated(pv.Attack(total, table(60), older), pv.equals(90))
    assert float(many.beliefs[0].mean()) < 0.5


def test_sums_of_whole_and_half_numbers():
    weights = [0.5, 1.0, 2.5, -3.0, 10.0, 4.0]

    def score(**answers):
        return sum(w * x for w, x in zip(weights, answers.values(), strict=True)) / len(weights)

    prior = {f"q{k}": pv.Bernoulli(0.2 + 0.1 * k) for k in range(6)}
    chances = {f"q{k}": {0: 0.8 - 0.1 * k, 1: 0.2 + 0.1 * k} for k in range(6)}
    found = pairs(eliminated(pv.Attack(score, prior, "q0")).joint())
    assert found == pytest.approx(all_states(score, chances), rel=1e-11)


def test_many_values_and_a_secret_apart():
    def mean_age(rows):
        return sum(row.age for row in rows) / len(rows)

    rows = pv.Records(100, lambda i: pv.Row(age=pv.DiscreteUniform(18 + i % 7, 90)))
    result = pv.Attack(mean_age, {"rows": rows}, lambda rows: rows[0].age).run(engine="exact", observe=pv.equals(54.0))
    others = np.ones(1)
    for k in range(1, 100):
        others = np.convolve(others, np.full(73 - k % 7, 1 / (73 - k % 7)))
    low = sum(18 + k % 7 for k in range(1, 100))
    weights = np.array([others[5400 - age - low] for age in range(18, 91)])
    assert float(result.posterior.mean()) == pytest.approx(weights @ np.arange(18, 91) / weights.sum(), rel=1e-10)
    assert float(result.diagnostics.evidence) == pytest.approx(weights.sum() / 73, rel=1e-10)


def test_three_counts_at_once():
    chances = [0.1 * k for k in range(1, 6)]

    def counts(rows):
        return (
            sum(row.ill for row in rows),
            sum(row.ill for row in rows if row.age == 1),
            sum(1 for row in rows if row.age == 2),
        )

    rows = pv.Records(5, lambda i: pv.Row(ill=pv.Bernoulli(chances[i]), age=pv.DiscreteUniform(0, 2)))
    result = eliminated(pv.Attack(counts, {"rows": rows}, first_ill))
    found = Counter()
    for states in itertools.product([(i, a) for i in (0, 1) for a in range(3)], repeat=5):
        p = math.prod((q if i else 1 - q) / 3 for (i, _), q in zip(states, chances, strict=True))
        output = sum(i for i, _ in states), sum(i for i, a in states if a == 1), sum(a == 2 for _, a in states)
        found[repr(states[0][0]), repr(output)] += p
    assert pairs(result.joint()) == pytest.approx(dict(found), rel=1e-11)


def test_arrays_step_by_step():
    prior = {"c": pv.Bernoulli(np.array([0.1, 0.5, 0.9, 0.3])), "m": pv.Array(pv.DiscreteUniform(0, 1), (2, 2))}

    def program(c, m):
        running = np.cumsum(c)
        return running[2] + np.dot(c, [1, 2, 3, 4]), m.sum(axis=0).max(), np.concatenate([c, c])[5:].any()

    finite = prepare_finite(Request(pv.Attack(program, prior, lambda c: c[1]).question)).run().joint()
    assert pairs(eliminated(pv.Attack(program, prior, lambda c: c[1])).joint()) == pytest.approx(pairs(finite))


def test_tables_of_random_size():
    rows = pv.Records(pv.DiscreteUniform(9, 11), lambda i: pv.Row(ill=pv.Bernoulli(P[i])))
    run = eliminated(pv.Attack(by_count, {"rows": rows}, len), pv.equals(0))
    weights = np.array([math.prod(1 - p for p in P[:n]) for n in (9, 10, 11)])
    assert shares(run.beliefs[0]) == pytest.approx(
        dict(zip((9, 10, 11), weights / weights.sum(), strict=True)), rel=1e-12
    )


def test_queries_about_other_rows():
    attack = pv.Attack(by_count, {"rows": people(P)}, first_ill)
    belief = attack.run(engine="exact", observe=pv.equals(25)).belief(lambda rows: rows[59].ill)
    others = poisson_binomial(P[:-1])
    ill, healthy = P[59] * others[24], (1 - P[59]) * others[25]
    assert belief.exact
    assert float(belief.mean()) == pytest.approx(ill / (ill + healthy), rel=1e-12)


def test_endless_families_say_what_they_lose():
    prior = {f"x{k}": pv.Poisson(0.5 + k) for k in range(8)}

    def total(**counts):
        return sum(counts.values())

    result = pv.Attack(total, prior, "x0").run(engine="exact", observe=pv.equals(30))
    rate = sum(0.5 + k for k in range(8))
    assert float(result.diagnostics.evidence) == pytest.approx(stats.poisson.pmf(30, rate), rel=1e-10)
    assert shares(result.posterior)[2] == pytest.approx(stats.binom.pmf(2, 30, 0.5 / rate), rel=1e-10)
    assert 0 < result.posterior.error < 1e-12


def test_certain_and_impossible_people():
    chances = [0.0, 1.0, 1.0, 0.5, *P]
    attack = pv.Attack(by_count, {"rows": people(chances)}, lambda rows: (rows[0].ill, rows[1].ill))
    assert shares(attack.run(engine="exact").prior) == {(0, 1): 1.0}
    with pytest.raises(pv.ImpossibleObservation):
        attack.run(engine="exact", observe=pv.equals(1))


def test_failing_programs_are_told():
    def ratio(rows):
        return 1 / sum(row.ill for row in rows)

    with pytest.raises(pv.ProgramError, match=r"(?s)ZeroDivisionError.*on_error"):
        pv.Attack(ratio, {"rows": people(P)}, first_ill).run(engine="exact")


def test_a_shared_value_for_which_the_rows_make_no_sense_is_no_matter():
    """Half of the combinations of the two shared quantities never come up, and make a probability above one."""
    first = pv.Bernoulli(0.5)
    second = pv.given(first, {0: pv.Constant(1), 1: pv.Constant(0)})
    chance = 0.2 + 0.4 * first + 0.6 * second
    rows = pv.Records(20, lambda i: pv.Row(ill=pv.Bernoulli(chance)))
    result = pv.Attack(by_count, {"rows": rows}, first_ill).run(engine="exact")
    assert float(result.prior.mean()) == pytest.approx(0.7, rel=1e-12)


def test_huge_weights():
    def total(**answers):
        return sum(10**15 * (k + 1) * x for k, x in enumerate(answers.values()))

    prior = {f"q{k}": pv.Bernoulli(0.5) for k in range(9)}
    result = eliminated(pv.Attack(total, prior, "q0"), pv.equals(45 * 10**15))
    assert shares(result.beliefs[0]) == {1: 1.0}
    assert float(result.diagnostics.evidence) == pytest.approx(2.0**-9)


def test_a_chain_of_states():
    """A two-state chain of sixty steps: the last state, given the first."""

    def last(start, **moves):
        state = start
        for move in moves.values():
            state = 1 - state if move == 1 else state
        return state

    prior = {"start": pv.Bernoulli(0.5), **{f"m{k}": pv.Bernoulli(0.01 * (k + 1)) for k in range(30)}}
    result = pv.Attack(last, prior, "start").run(engine="exact", observe=pv.equals(1))
    stays = (1 + math.prod(1 - 2 * 0.01 * (k + 1) for k in range(30))) / 2
    assert float(result.posterior.mean()) == pytest.approx(stays, rel=1e-12)


@pytest.mark.slow
def test_twenty_thousand_people():
    chances = np.random.default_rng(1).uniform(0.05, 0.95, 20_000).tolist()
    result = pv.Attack(by_count, {"rows": people(chances)}, first_ill).run(engine="exact", observe=pv.equals(10_000))
    others = np.ones(1)
    for k in range(1, 20_000, 100):
        others = np.convolve(others, poisson_binomial(chances[k : k + 100]))
    ill, healthy = chances[0] * others[9_999], (1 - chances[0]) * others[10_000]
    assert float(result.posterior.mean()) == pytest.approx(ill / (ill + healthy), rel=1e-9)


@pytest.mark.parametrize(("households", "members"), [(6, 3), (12, 10)])
def test_households_that_share_a_risk(households, members):
    """Rows depend on each other within a household, and households on a rate of all."""
    rate = pv.Choice([0.1, 0.4])
    risks = [pv.given(pv.Bernoulli(rate), {0: pv.Constant(0.05), 1: pv.Constant(0.6)}) for _ in range(households)]
    rows = pv.Records(households * members, lambda i: pv.Row(ill=pv.Bernoulli(risks[i // members])))
    result = pv.Attack(by_count, {"rows": rows}, first_ill).run(engine="exact")
    numbers = np.arange(members + 1)
    safe, risky = (stats.binom.pmf(numbers, members, p) for p in (0.05, 0.6))
    total = np.zeros(households * members + 1)
    for chance in (0.1, 0.4):
        law = np.ones(1)
        for _ in range(households):
            law = np.convolve(law, (1 - chance) * safe + chance * risky)
        total += law / 2
    assert shares(result.prediction) == pytest.approx(dict(enumerate(total)), rel=1e-10)
    seen = households * members // 2
    posterior = pv.Attack(by_count, {"rows": rows}, first_ill).run(engine="exact", observe=pv.equals(seen)).posterior
    assert float(posterior.mean()) == pytest.approx(0.5, rel=1e-10)  # rows are exchangeable in the mean


def test_auto_takes_it_and_samples_agree():
    def released(rows):
        total = sum(row.ill for row in rows if row.age > 40) + pv.sample(pv.DiscreteLaplace(1.0))
        return total if total >= 5 else 0

    rows = pv.Records(40, lambda i: pv.Row(ill=pv.Bernoulli(P[i]), age=pv.DiscreteUniform(20 + i, 60)))
    attack = pv.Attack(released, {"rows": rows}, lambda rows: (rows[39].ill, rows[39].age > 55))
    exact = attack.run(observe=pv.between(12, 14))
    assert exact.engine == "exact (counts)"
    sampled = attack.run(engine="sample", observe=pv.between(12, 14), samples=4000, seed=1)
    for value in itertools.product((0, 1), (False, True)):
        truth = exact.posterior.probability(lambda secret, value=value: secret == value)
        estimate = sampled.posterior.probability(lambda secret, value=value: secret == value).widened(2)
        assert estimate.low <= float(truth) <= estimate.high
    evidence = sampled.diagnostics.evidence.widened(2)
    assert evidence.low <= float(exact.diagnostics.evidence) <= evidence.high


@pytest.mark.parametrize("count", [5, 40, 300])
def test_noise_far_from_the_count(count):
    """Beyond all counts, one more ill person makes the noise e times as likely."""

    def noisy(rows):
        return sum(row.ill for row in rows) + pv.sample(pv.DiscreteLaplace(1.0))

    attack = pv.Attack(noisy, {"rows": people([0.3] * count)}, first_ill)
    result = attack.run(engine="exact", observe=pv.equals(count + 45))
    assert float(result.posterior.mean()) == pytest.approx(0.3 * math.e / (0.3 * math.e + 0.7), rel=1e-12)
    assert result.posterior.error < 1e-12


def test_tails_that_sums_lose_are_counted():
    prior = {"rows": pv.Records(40, lambda i: pv.Row(ill=pv.Poisson(0.3 + 0.1 * (i % 3))))}
    result = pv.Attack(by_numpy, prior, first_ill).run(engine="exact", observe=pv.equals(80))
    rate = sum(0.3 + 0.1 * (k % 3) for k in range(40))
    assert float(result.posterior.mean()) == pytest.approx(80 * 0.3 / rate, rel=1e-12)
    assert 0 < pv.Attack(by_numpy, prior, first_ill).run(engine="exact").prior.error < 1e-14


def test_a_refusal_comes_before_the_work():
    """What a round will cost is known when it begins."""
    start = States({}, np.ones(1))
    roots = [pv.DiscreteUniform(0, 2000).node for _ in range(3)]
    rounds = tuple(EliminationRound(root, (), tuple(roots[: k + 1])) for k, root in enumerate(roots))
    with pytest.raises(pv.UnsuitableEngine, match="too many combinations"):
        eliminated_states(start, Schedule(rounds, 1.0, 1.0, 1.0, ()))
