"""Rounding, limits and small cells; samples of rows and swapped cells."""

import math

import numpy as np
import pytest
import scipy.stats

import privug as pv
from privug import mechanisms as m


def same(x):
    return x


def test_rounding():
    assert m.rounded(same, to=5)(12.4) == 10
    assert m.rounded(same, to=0.1)(0.26) == 0.3
    assert m.rounded(same, to=0.01)([1.005, 2.004]) == [1.0, 2.0]  # 1.005 is a little less in binary
    assert m.rounded(same, to=0.3)(1.0) == pytest.approx(0.9)
    attack = pv.Attack(m.rounded(same, to=10), {"x": pv.DiscreteUniform(0, 99)}, "x", observe=pv.equals(30))
    distribution = attack.run(engine="exact").posterior.distribution()
    assert sorted(distribution) == list(range(26, 35))  # 25 and 35 are halfway, and go to 20 and 40


def test_rounding_a_continuous_output():
    attack = pv.Attack(m.rounded(same, to=0.5), {"x": pv.Normal(0, sd=1)}, "x", observe=pv.equals(1.5))
    result = attack.run(seed=1, samples=4000)
    truth = scipy.stats.truncnorm(1.25, 1.75).mean()
    assert truth in result.posterior.mean().widened(2)


def test_limits_and_small_cells():
    assert m.clamped(same, 0, 10)([-1, 5, 30]) == [0, 5, 10]
    assert m.suppressed(same, fewer_than=5)([0, 3, 5]) == [0, 0, 5]
    assert m.suppressed(same, fewer_than=5, shown_as=-1, zeros=True)([0, 3, 5]) == [0, -1, 5]
    assert m.suppressed(same, fewer_than=5, shown_as=-1, zeros=True)(np.array([0, 3, 5])).tolist() == [0, -1, 5]
    attack = pv.Attack(m.suppressed(same, fewer_than=3), {"x": pv.Binomial(10, 0.2)}, "x", observe=pv.equals(0))
    prior = scipy.stats.binom(10, 0.2)
    for x, probability in attack.run(engine="exact").posterior.distribution().items():
        assert probability.value == pytest.approx(prior.pmf(x) / prior.cdf(2), abs=1e-12)


def test_totals_undo_suppression():
    def table(counts):
        return [*counts, sum(counts)]

    shown = m.suppressed(table, fewer_than=5)
    attack = pv.Attack(shown, {"counts": [pv.Binomial(20, 0.1), pv.Binomial(20, 0.5)]}, lambda counts: counts[0])
    posterior = attack.run(observe=pv.equals([0, 9, 12]), engine="exact").posterior
    assert posterior.distribution()[3].value == 1.0


def test_they_promise_what_is_inside():
    inner = m.laplace(same, sensitivity=1, epsilon=0.5)
    for outer in (m.rounded(inner, to=1), m.clamped(inner, 0, 1), m.suppressed(inner, fewer_than=5)):
        assert outer.guarantee == inner.guarantee
    assert m.rounded(same, to=1).guarantee.is_empty


def test_samples_of_rows_in_every_tier():
    def total(rows):
        return sum(rows)

    def spelled(rows):
        return sum(rows) + 0 * hash(sum(rows))

    prior = {"rows": [pv.DiscreteUniform(1, 2), pv.DiscreteUniform(1, 2)]}
    for program, tier in ((total, "traced"), (spelled, "python")):
        attack = pv.Attack(m.subsample(program, rate=0.5), prior, lambda rows: rows[0], observe=pv.equals(3))
        result = attack.run(samples=500, seed=1)
        assert result.lifting.tier == tier
        # Both are used, and one of them is 1, the other 2.
        assert 0.5 in result.posterior.probability(lambda age: age == 2).widened(2)
        attack = pv.Attack(m.subsample(program, rate=0.5), prior, lambda rows: rows[0], observe=pv.equals(1))
        # One of them is used and is 1: the first with probability one half, else the first is 1 or 2.
        assert 0.25 in attack.run(samples=500, seed=1).posterior.probability(lambda age: age == 2).widened(2)


def test_a_sampled_mechanism_promises_more_and_keeps_it():
    mechanism = m.subsample(m.discrete_laplace(len, sensitivity=1, epsilon=1.0), rate=0.3)
    assert mechanism.guarantee.epsilon == pytest.approx(math.log1p(0.3 * math.expm1(1.0)))
    found = m.audit(mechanism, [([1, 2, 3], [1, 2])])
    assert found.measured.value == pytest.approx(mechanism.guarantee.epsilon, abs=1e-9)
    assert not found.broken
    cheating = m.Mechanism(mechanism.program, mechanism.release, m.Guarantee(epsilon=0.3), "a sample")
    assert m.audit(cheating, [([1, 2, 3], [1, 2])]).broken


def test_swapped_cells():
    def first_is_ill(people):
        return people[0].ill

    prior = {"people": pv.Records(4, pv.Row(age=pv.DiscreteUniform(20, 22), ill=pv.Bernoulli(0.1)))}
    attack = pv.Attack(m.swapped(first_is_ill, column="ill", rate=0.25), prior, lambda people: people[0].ill)
    after = attack.run(observe=pv.equals(1), engine="exact").posterior.mean()
    assert after.value == pytest.approx(0.75 + 0.25 * 0.1, abs=1e-12)
    table = [{"ill": 1}, {"ill": 0}, {"ill": 1}]
    assert m.swapped(same, column="ill", rate=1)(table) == [{"ill": 0}, {"ill": 1}, {"ill": 1}]
    assert m.swapped(same, column="ill", rate=0)(table) == table
    assert m.swapped(first_is_ill, column="ill", rate=1).guarantee.is_empty


def test_bad_arguments():
    for call, words in (
        (lambda: m.rounded(same, to=0), "to must be a finite number above 0"),
        (lambda: m.clamped(same, 1, 0), "low must lie below high"),
        (lambda: m.suppressed(same, fewer_than=5, zeros=True), "shown_as=-1"),
        (lambda: m.subsample(same, rate=2), "rate must be a number from 0 to 1"),
        (lambda: m.subsample(same, rate=0.1, of="rows"), "of='rows' is not a parameter of the program; it has x"),
        (lambda: m.subsample(5, rate=0.1), "subsample: program must be a function, not 5"),
    ):
        with pytest.raises(pv.ArgumentError, match=words):
            call()
    with pytest.raises(pv.ProgramError, match="no column 'age'"):
        m.swapped(same, column="age", rate=1)([{"ill": 1}, {"ill": 0}])
    with pytest.raises(pv.ProgramError, match="rounding needs numbers"):
        m.rounded(same, to=1)("a")
