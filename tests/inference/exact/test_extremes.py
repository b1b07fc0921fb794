"""Minima and maxima of independent quantities, against products of distribution functions."""

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, stats

import privug as pv
from privug.model.node import Kind

OTHERS = stats.norm(55.2, 3.5)


def person(position):
    return pv.Row(age=pv.Uniform(0, 100) if position == 0 else pv.Normal(55.2, sd=3.5))


def first(records):
    return records[0].age


def by_loop(records):
    best = 0
    for r in records:
        if r.age > best:
            best = r.age
    return best


WAYS = {
    "generator": lambda records: max(r.age for r in records),
    "list": lambda records: max([r.age for r in records]),
    "loop": by_loop,
}


def exact(program, prior, secret, observe=None):
    result = pv.Attack(program, prior, secret, observe=observe).run(engine="exact")
    assert result.engine == "exact (sums)"
    return result


@pytest.mark.parametrize("others", [4, 20])
@pytest.mark.parametrize("way", WAYS)
def test_the_oldest_seen_exactly(way, others):
    """The secret is the maximum with a probability of its own, or lies anywhere below."""
    prior = {"records": pv.Records(others + 1, person)}
    result = exact(WAYS[way], prior, first, pv.equals(62.0))
    below = OTHERS.cdf(62) ** others
    density = others * OTHERS.pdf(62) * OTHERS.cdf(62) ** (others - 1)
    evidence = below / 100 + 0.62 * density
    assert float(result.diagnostics.evidence) == pytest.approx(evidence, rel=1e-10)
    assert result.posterior.kind is Kind.MIXED
    itself = result.posterior.probability(lambda age: age == 62)
    assert float(itself) == pytest.approx(below / 100 / evidence, abs=1e-10)
    mean = (62 * below / 100 + 0.62 * density * 31) / evidence
    assert float(result.posterior.mean()) == pytest.approx(mean, abs=1e-8)


def test_a_range_of_the_oldest():
    prior = {"records": pv.Records(20, person)}
    result = exact(WAYS["generator"], prior, first, pv.near(62, within=0.5))
    high, low = OTHERS.cdf(62.5) ** 19, OTHERS.cdf(61.5) ** 19
    evidence = 0.625 * high - 0.615 * low
    assert float(result.diagnostics.evidence) == pytest.approx(evidence, abs=1e-11)
    younger = result.posterior.probability(lambda age: age < 61.5)
    assert float(younger) == pytest.approx(0.615 * (high - low) / evidence, abs=1e-9)


def test_the_youngest_mirrors_the_oldest():
    prior = {"a": pv.Uniform(0, 1), "p": pv.Array(pv.Uniform(0, 1), 9)}
    least = exact(lambda a, p: np.minimum(a, p.min()), prior, "a", pv.between(0.1, 0.2))
    most = exact(lambda a, p: max(a, np.max(p)), prior, "a", pv.between(0.8, 0.9))
    assert float(least.diagnostics.evidence) == pytest.approx(0.9**10 - 0.8**10, abs=1e-12)
    assert float(most.diagnostics.evidence) == pytest.approx(0.9**10 - 0.8**10, abs=1e-12)
    assert float(least.posterior.mean()) == pytest.approx(1 - float(most.posterior.mean()), abs=1e-9)
    assert float(most.prediction.mean()) == pytest.approx(10 / 11, abs=1e-10)


def test_an_entry_of_an_array():
    prior = {"p": pv.Array(pv.Uniform(0, 1), 10)}
    result = exact(lambda p: p.max(), prior, lambda p: p[3], pv.equals(0.5))
    assert float(result.diagnostics.evidence) == pytest.approx(10 * 0.5**9, rel=1e-10)
    assert float(result.posterior.probability(lambda x: x == 0.5)) == pytest.approx(0.1, abs=1e-11)


@pytest.mark.parametrize("entries", [10, 10_000, 1_000_000])
def test_many_entries(entries):
    prior = {"a": pv.Exponential(scale=1.0), "p": pv.Array(pv.Exponential(scale=1.0), entries - 1)}
    result = exact(lambda a, p: np.maximum(a, p.max()), prior, "a")
    expected = float(np.sum(1 / np.arange(entries, 0, -1.0)))  # the harmonic number
    assert float(result.prediction.mean()) == pytest.approx(expected, abs=1e-8)


def test_information_is_infinite_and_says_why():
    prior = {"records": pv.Records(5, person)}
    information = pv.leakage.mutual_information(exact(WAYS["generator"], prior, first).joint)
    assert math.isinf(float(information))
    assert "gives the secret away" in information.method


def test_rounded_extremes():
    prior = {"records": pv.Records(20, person)}
    result = exact(lambda records: round(max(r.age for r in records)), prior, first, pv.equals(62))
    evidence = 0.625 * OTHERS.cdf(62.5) ** 19 - 0.615 * OTHERS.cdf(61.5) ** 19
    assert float(result.prediction.distribution()[62]) == pytest.approx(evidence, abs=1e-11)

    def chances(a):
        edges = np.arange(30.5, 101)
        below = np.append((edges >= a) * OTHERS.cdf(edges) ** 19, 1.0)
        return np.diff(below, prepend=0.0)

    def entropy(p):
        return -float(p[p > 0] @ np.log2(p[p > 0]))

    nodes, weights = np.polynomial.legendre.leggauss(20)
    grid = np.concatenate([[0.0], np.arange(30.5, 100), [100.0]])
    whole, inside = np.zeros(72), 0.0
    for low, high in itertools.pairwise(grid):
        for node, weight in zip(nodes, weights * (high - low) / 200, strict=True):
            given = chances((low + high) / 2 + node * (high - low) / 2)
            whole += weight * given
            inside += weight * entropy(given)
    information = pv.leakage.mutual_information(result.joint)
    assert float(information) == pytest.approx(entropy(whole) - inside, abs=1e-7)


def test_discrete_extremes_too_many_to_list():
    prior = {"a": pv.DiscreteUniform(0, 9), "p": pv.Array(pv.DiscreteUniform(0, 9), 60)}
    result = pv.Attack(lambda a, p: np.maximum(a, p.max()), prior, "a", observe=pv.equals(8)).run(engine="exact")
    assert result.engine == "exact (elimination)"
    evidence = 0.9**61 - 0.8**61
    assert float(result.diagnostics.evidence) == pytest.approx(evidence, rel=1e-10)
    assert float(result.posterior.distribution()[8]) == pytest.approx(0.1 * 0.9**60 / evidence, rel=1e-9)
    assert result.prediction.batch.numbers().dtype.kind == "i"
    joint = np.zeros((10, 10))
    for a in range(10):
        below = np.array([((k + 1) / 10) ** 60 * (k >= a) for k in range(10)])
        joint[a] = np.diff(below, prepend=0.0) / 10
    there = joint > 0
    told = float(joint[there] @ np.log2((joint / np.outer(joint.sum(1), joint.sum(0)))[there]))
    assert float(pv.leakage.mutual_information(result.joint)) == pytest.approx(told, abs=1e-10)
    assert float(pv.leakage.bayes_risk(result.joint)) == pytest.approx(1 - joint.max(axis=0).sum(), abs=1e-10)


def test_a_discrete_secret_among_continuous_entries():
    prior = {"a": pv.Choice([1.0, 2.0]), "x": pv.Uniform(0, 3)}
    result = exact(lambda a, x: max(a, x), prior, "a")
    # the output is 1 or 2 with probabilities 1/6 and 1/3, or lies between 1 and 3
    assert result.prediction.kind is Kind.MIXED
    assert float(result.prediction.probability(lambda o: o == 2)) == pytest.approx(1 / 3, abs=1e-12)
    parts = {(1, "1"): 1 / 6, (2, "2"): 1 / 3, (1, "1-2"): 1 / 6, (1, "2-3"): 1 / 6, (2, "2-3"): 1 / 6}
    outputs: dict = {}
    for (_, output), p in parts.items():
        outputs[output] = outputs.get(output, 0) + p
    told = sum(p * math.log2(p / (0.5 * outputs[output])) for (_, output), p in parts.items())
    assert float(pv.leakage.mutual_information(result.joint)) == pytest.approx(told, abs=1e-9)
    assert float(pv.leakage.bayes_risk(result.joint)) == pytest.approx(1 / 6, abs=1e-9)
    seen = exact(lambda a, x: max(a, x), prior, "a", pv.equals(2.0))
    assert float(seen.posterior.distribution()[2.0]) == pytest.approx(1, abs=1e-12)


def test_a_class_of_a_secret_among_the_entries():
    prior = {"x": pv.Uniform(0, 1), "y": pv.Uniform(0, 1)}
    secret = lambda x, y: x > 0.5
    result = exact(lambda x, y: max(x, y), prior, secret)

    # given o <= 1/2, the secret is false; else P(true | o) = (2 o - 1/2) / (2 o)
    def entropy(o):
        p = (2 * o - 0.5) / (2 * o)
        return -p * math.log2(p) - (1 - p) * math.log2(1 - p)

    told = 1 - integrate.quad(lambda o: 2 * o * entropy(o), 0.5, 1)[0]
    assert float(pv.leakage.mutual_information(result.joint)) == pytest.approx(told, abs=1e-7)
    assert float(pv.leakage.bayes_risk(result.joint)) == pytest.approx(0.25, abs=1e-9)


def test_tables_of_random_size():
    prior = {"records": pv.Records(1 + pv.Binomial(10, 0.5), person)}
    result = exact(WAYS["generator"], prior, first, pv.between(0, 60))
    chances = stats.binom(10, 0.5).pmf(range(11))
    evidence = 0.6 * float(chances @ OTHERS.cdf(60) ** np.arange(11))
    assert float(result.diagnostics.evidence) == pytest.approx(evidence, abs=1e-11)


def test_sampling_agrees():
    prior = {"records": pv.Records(6, person)}
    attack = pv.Attack(WAYS["list"], prior, first, observe=pv.near(60, within=1))
    exactly, sampled = attack.run(engine="exact"), attack.run(engine="sample", samples=4000, seed=3)
    assert float(exactly.posterior.mean()) in sampled.posterior.mean().widened(2)
    assert float(exactly.diagnostics.evidence) in sampled.diagnostics.evidence.widened(2)


def test_entries_that_depend_on_each_other_are_refused():
    prior = {"x": pv.Uniform(0, 1), "y": pv.Uniform(0, 1)}
    with pytest.raises(pv.UnsuitableEngine):
        pv.Attack(lambda x, y: max(x + y, x - y), prior, "x").run(engine="exact")
