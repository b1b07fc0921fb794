"""Rare observations: evidence that is known, posteriors that are known, and refusals where nothing is."""

import importlib.util
import math
import random
import sys
from functools import cache

import numpy as np
import pytest
from scipy import stats

import privug as pv
from privug.errors import NotConverged
from privug.inference.rare import engine


def total(xs):
    return xs.sum()


def both(a, b):
    return a + b


def itself(a):
    return a


def each(xs):
    return list(xs)


def far_out(output):
    return output > 5.5 or output < -5.2


PROBLEMS = {
    "six deviations": (
        total,
        {"xs": pv.Array(pv.Normal(0, sd=1), 10)},
        pv.between(6 * math.sqrt(10), math.inf),
        stats.norm.sf(6),
    ),
    "many dimensions": (
        total,
        {"xs": pv.Array(pv.Normal(0, sd=1), 100)},
        pv.between(52, math.inf),
        stats.norm.sf(5.2),
    ),
    "poisson tail": (
        both,
        {"a": pv.Poisson(2), "b": pv.Poisson(3)},
        pv.between(24, math.inf),
        stats.poisson.sf(23, 5),
    ),
    "binomial tail": (itself, {"a": pv.Binomial(50, 0.2)}, pv.between(30, 50), stats.binom.sf(29, 50, 0.2)),
    "two modes": (
        itself,
        {"a": pv.Normal(0, sd=1)},
        pv.such_that(far_out),
        stats.norm.sf(5.5) + stats.norm.sf(5.2),
    ),
    "all of six digits": (each, {"xs": pv.Array(pv.DiscreteUniform(0, 9), 6)}, pv.equals([1, 2, 3, 4, 5, 6]), 1e-6),
    "five of eight": (
        total,
        {"xs": pv.Array(pv.Bernoulli(0.02), 8)},
        pv.between(5, 8),
        stats.binom.sf(4, 8, 0.02),
    ),
    "sharp noise": (
        itself,
        {"a": pv.Normal(0, sd=1)},
        pv.noisy(6.0, sd=0.01),
        stats.norm.pdf(6, 0, math.sqrt(1 + 1e-4)),
    ),
}


def first(xs):
    return xs[0]


@cache
def run(name, *, samples=2000, seed=1, **options):
    program, prior, observation, truth = PROBLEMS[name]
    attack = pv.Attack(program, prior=prior, secret=first if "xs" in prior else "a")
    return attack.run(observe=observation, engine="rare", samples=samples, seed=seed, **options), truth


QUICK = ["six deviations", "binomial tail", "two modes", "sharp noise"]


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in PROBLEMS]
)
def test_evidence_lies_in_its_interval_with_a_fraction_of_the_runs(name):
    result, truth = run(name)
    evidence = result.diagnostics.evidence
    assert truth in evidence.widened(2)
    assert evidence.high < 8 * evidence.low
    # Waiting takes 1 / truth runs for one sample; as precise an answer takes 1 / (truth * error^2) of them.
    error = math.log(evidence.high / evidence.low) / 4
    assert result.diagnostics.draws < 0.01 / (truth * error**2)
    if truth < 1e-8:
        assert result.diagnostics.draws < 0.01 / truth


@pytest.mark.slow
@pytest.mark.parametrize("name", PROBLEMS)
def test_intervals_of_the_evidence_cover_the_truth(name):
    covered = refused = 0
    for seed in range(40):
        try:
            result, truth = run(name, seed=seed)
        except NotConverged:
            refused += 1
        else:
            covered += truth in result.diagnostics.evidence
    assert refused <= 4  # it may refuse; what it answers must be right
    assert covered >= 0.9 * (40 - refused) - 2  # two more than nine in ten may miss by chance


def test_posterior_of_a_tail():
    result, _ = run("sharp noise")
    assert 6 / (1 + 1e-4) in result.posterior.mean().widened(2)
    assert 0.01 in result.posterior.std().widened(2)


def test_both_modes_are_found_in_proportion():
    result, truth = run("two modes")
    assert stats.norm.sf(5.5) / truth in result.posterior.probability(lambda a: a > 0).widened(2)


def test_same_seed_same_bits_on_any_number_of_workers():
    runs = []
    for workers in (1, 3):
        with pv.limited(workers=workers):
            result = run.__wrapped__("all of six digits", samples=400)[0]
            runs.append((result.posterior.batch.numbers(), result.diagnostics.evidence.value))
    assert np.array_equal(runs[0][0], runs[1][0])
    assert runs[0][1] == runs[1][1]


def test_samples_come_in_groups_of_equal_length():
    """Where draws cannot measure what populations found, as in tables of random size, theirs are the samples."""
    table = pv.Records(1 + pv.Binomial(3, 0.5), lambda i: pv.Row(age=pv.Normal(50, sd=5)))
    attack = pv.Attack(lambda records: max(r.age for r in records), {"records": table}, lambda records: records[0].age)
    result = attack.run(pv.between(65, 90), engine="rare", samples=1234, seed=1)
    assert result.posterior.groups == engine.POPULATIONS
    assert len(result.posterior.batch) == 1240
    assert result.posterior.effective_samples <= 1240


def mean_age(records):
    return sum(r.age for r in records) / len(records)


def person(i):
    return pv.Row(age=pv.Uniform(0, 100) if i == 0 else pv.Normal(55, sd=3))


@pytest.mark.slow
def test_tables_of_random_size_and_a_further_query():
    """Alice and one or two others: the mean is far up only if she is old and the table is small."""
    attack = pv.Attack(
        mean_age,
        prior={"records": pv.Records(2 + pv.Bernoulli(0.5), person)},
        secret=lambda records: records[0].age,
    )
    observation = pv.between(79.0, 80.0)
    exact = attack.run(observe=observation, engine="exact")
    result = attack.run(observe=observation, engine="rare", samples=3000, seed=2)
    assert float(exact.diagnostics.evidence) in result.diagnostics.evidence.widened(2)
    assert float(exact.posterior.mean()) in result.posterior.mean().widened(2)
    sizes = result.belief(lambda records: len(records))
    assert float(sizes.probability(lambda n: n == 2)) > 0.99


@pytest.mark.slow
def test_hierarchical_and_mixed_priors():
    """An unknown mean, a choice between sources, and correlated numbers: against quadrature by the exact engine."""
    mean = pv.Normal(0, sd=1)
    prior = {
        "a": pv.Normal(mean, sd=1),
        "b": pv.given(pv.Bernoulli(0.3), {0: pv.Normal(0, sd=1), 1: pv.Normal(2, sd=1)}),
        "c": pv.MvNormal([0.0, 0.0], [[1.0, 0.5], [0.5, 1.0]]),
        "d": pv.Mixture([pv.Normal(0, sd=1), pv.Normal(3, sd=1)], [0.9, 0.1]),
    }
    attack = pv.Attack(lambda a, b, c, d: a + b + c[0] + c[1] + d, prior=prior, secret="a")
    observation = pv.between(16.0, math.inf)
    shares = {0: 0.7 * 0.9, 2: 0.3 * 0.9, 3: 0.7 * 0.1, 5: 0.3 * 0.1}
    truth = sum(share * stats.norm.sf((16 - shift) / math.sqrt(2 + 1 + 3 + 1)) for shift, share in shares.items())
    result = attack.run(observe=observation, engine="rare", samples=2000, seed=4)
    assert truth in result.diagnostics.evidence.widened(2)


@pytest.mark.slow
def test_several_observations_together():
    prior = {"a": pv.Normal(0, sd=1), "b": pv.Normal(0, sd=1), "c": pv.DiscreteUniform(1, 100)}
    attack = pv.Attack(lambda a, b, c: (a + b, a - b, c), prior=prior, secret="a")
    seen = [pv.between(4, math.inf), pv.noisy(0, sd=0.1), pv.equals(7)]
    truth = stats.norm.sf(4 / math.sqrt(2)) * stats.norm.pdf(0, 0, math.sqrt(2.01)) / 100
    result = attack.run(observe=seen, engine="rare", samples=2000, seed=1)
    assert truth in result.diagnostics.evidence.widened(2)
    assert result.diagnostics.evidence.method.endswith("program runs")


def test_inputs_on_which_the_program_fails_are_left_out():
    def fragile(a):
        if a < 0:
            raise ValueError("negative")
        return a

    prior = {"a": pv.Normal(0, sd=1)}
    with pytest.raises(pv.ProgramError, match="on the input a = "):
        pv.Attack(fragile, prior=prior, secret="a").run(observe=pv.between(4, 9), engine="rare", samples=500)
    attack = pv.Attack(fragile, prior=prior, secret="a", on_error="exclude")
    result = attack.run(observe=pv.between(4, 9), engine="rare", samples=2000, seed=1)
    assert 2 * stats.norm.sf(4) in result.diagnostics.evidence.widened(2)
    assert result.diagnostics.excluded > 1000


def test_an_external_program(tmp_path):
    script = tmp_path / "add.py"
    script.write_text(
        "import json, sys\nfor line in sys.stdin:\n    print(json.dumps(sum(json.loads(line).values())), flush=True)\n"
    )
    prior = {"a": pv.DiscreteUniform(0, 99), "b": pv.DiscreteUniform(0, 99)}
    attack = pv.Attack(pv.External([sys.executable, str(script)]), prior=prior, secret="a")
    result = attack.run(observe=pv.equals(197), engine="rare", samples=200, seed=1)
    assert result.lifting.tier == "external"
    assert 2e-4 in result.diagnostics.evidence.widened(2)
    assert 0.5 in result.posterior.probability(lambda a: a == 99).widened(2)


def steps_to_one(n):
    """The number of steps that the Collatz rule takes; how many turns its loop takes is not known beforehand."""
    count = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        count += 1
    return count


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="compiling takes Numba")
def test_a_compiled_program():
    """Of the numbers below a thousand 871 alone takes 178 steps."""
    attack = pv.Attack(steps_to_one, prior={"n": pv.DiscreteUniform(1, 999)}, secret="n")
    with pv.limited(native=True):
        result = attack.run(observe=pv.equals(178), engine="rare", samples=200, seed=1)
    assert result.lifting.tier == "native"
    assert 1 / 999 in result.diagnostics.evidence.widened(2)
    assert result.posterior.distribution().keys() == {871}


@pytest.mark.slow
def test_randomness_of_the_program_itself():
    """Dice that the program throws are thrown anew with every move."""

    def dice(bonus):
        return bonus + sum(random.randint(1, 6) for _ in range(3))

    attack = pv.Attack(dice, prior={"bonus": pv.DiscreteUniform(0, 9)}, secret="bonus")
    result = attack.run(observe=pv.equals(27), engine="rare", samples=500, seed=1)
    assert result.lifting.tier == "python"
    assert 1 / 2160 in result.diagnostics.evidence.widened(2)
    assert result.posterior.distribution().keys() == {9}


def test_impossible_by_structure():
    attack = pv.Attack(both, prior=PROBLEMS["poisson tail"][1], secret="a")
    with pytest.raises(pv.ImpossibleObservation, match="never 'seven'"):
        attack.run(observe=pv.equals("seven"), engine="rare")


def test_impossible_by_searching(monkeypatch):
    monkeypatch.setattr(engine, "POPULATIONS", 2)  # as many as it takes to say so
    prior = {"a": pv.DiscreteUniform(0, 10), "b": pv.DiscreteUniform(0, 10)}
    attack = pv.Attack(both, prior=prior, secret="a")
    with pytest.raises(pv.ImpossibleObservation, match=r"the closest is 1 .*rarer than that if it is possible at all"):
        attack.run(observe=pv.equals(21), engine="rare", samples=500)


def needle(output):
    return str(output).endswith("123456")


@pytest.mark.slow
def test_a_predicate_without_distance_says_so():
    attack = pv.Attack(both, prior={"a": pv.DiscreteUniform(0, 10**6), "b": pv.DiscreteUniform(0, 10**6)}, secret="a")
    with pytest.raises(pv.InferenceError, match="give distance="):
        attack.run(observe=pv.such_that(needle), engine="rare", samples=300)


def test_a_distance_that_the_user_gives():
    prior = {"a": pv.DiscreteUniform(0, 999), "b": pv.DiscreteUniform(0, 999)}
    attack = pv.Attack(lambda a, b: (a, b), prior=prior, secret="a")

    def off(output):
        return abs(output[0] - 123) + abs(output[1] - 456)

    observation = pv.such_that(lambda output: f"{output[0]}-{output[1]}" == "123-456", distance=off)
    result = attack.run(observe=observation, engine="rare", samples=500, seed=1)
    assert 1e-6 in result.diagnostics.evidence.widened(2)
    assert result.posterior.distribution().keys() == {123}
    with pytest.raises(pv.ObservationError, match="distance must be a function"):
        pv.equals(3, distance=2)


def test_the_budget_is_kept():
    with pytest.raises(pv.TooFewSamples, match="raise budget="):
        run("six deviations", budget=20_000)


def test_without_an_observation_the_prior_is_drawn():
    attack = pv.Attack(itself, prior={"a": pv.Normal(3, sd=1)}, secret="a")
    result = attack.run(engine="rare", samples=2000, seed=1)
    assert 3.0 in result.posterior.mean().widened(2)


def test_an_interruption_returns_the_populations_that_are_done(monkeypatch):
    search = engine._outcome

    def interrupted(*arguments):
        if arguments[-1] == 6:
            raise KeyboardInterrupt
        return search(*arguments)

    monkeypatch.setattr(engine, "_outcome", interrupted)
    monkeypatch.setattr(engine, "SCOUTING_POPULATIONS", 8)
    with pv.limited(workers=1):
        result, truth = run("binomial tail", samples=1999)
    assert "interrupted: 6 of 8 populations were kept" in result.diagnostics.remarks[0]
    assert truth in result.diagnostics.evidence.widened(2)


def publish(records):
    """Publish a table sorted, with rounded ages, and health only of groups larger than one."""
    rows = sorted([r.zip[:2] + "*", r.age // 10 * 10, r.ill] for r in records)
    groups = [tuple(row[:2]) for row in rows]
    return [[place, age, ill if groups.count((place, age)) > 1 else "*"] for place, age, ill in rows]


def table_attack(rows):
    row = pv.Row(zip=pv.Choice(["130", "131", "140", "141"]), age=pv.DiscreteUniform(20, 59), ill=pv.Bernoulli(0.2))
    return pv.Attack(publish, prior={"records": pv.Records(rows, row)}, secret=lambda records: records[0].ill)


@pytest.mark.slow
def test_a_published_table_of_a_plain_python_anonymiser():
    """Three people, two of them in one group of which one is ill.

    A cell (place, decade) has probability 1/8. The first two cells of six orders: 6 * (1/8)^3 * 0.16; the secret is
    ill's share: a third of the time each, ill, healthy, or hidden behind the star.
    """
    seen = [["13*", 30, 0], ["13*", 30, 1], ["14*", 40, "*"]]
    attack = table_attack(3)
    result = attack.run(observe=pv.equals(seen), engine="rare", samples=500, seed=1)
    assert result.lifting.tier == "python"
    assert 6 * 0.125**3 * 0.8 * 0.2 in result.diagnostics.evidence.widened(2)
    assert (0 + 1 + 0.2) / 3 in result.posterior.probability(lambda ill: ill == 1).widened(2)


@pytest.mark.slow
def test_a_larger_published_table():
    """Five people: a group of two with one ill, one of two healthy, one alone; 5!/2! orders of unequal rows."""
    seen = [["13*", 30, 0], ["13*", 30, 1], ["14*", 40, 0], ["14*", 40, 0], ["14*", 50, "*"]]
    result = table_attack(5).run(observe=pv.equals(seen), engine="rare", samples=4000, seed=1)
    truth = 60 * 0.125**5 * (0.8 * 0.2) * 0.8**2
    assert truth in result.diagnostics.evidence.widened(2)
    assert (0 + 1 + 0 + 0 + 0.2) / 5 in result.posterior.probability(lambda ill: ill == 1).widened(2)
