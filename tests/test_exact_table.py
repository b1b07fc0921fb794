"""The paper's own examples, computed exactly from programs as a user would write them.

The numbers are exact to the digits given; where the paper prints others, it is the paper that is off.
"""

import math

import pytest

import privug as pv
from oracles import paper

ZIPS = [f"{2000 + k}" for k in range(200)]
UNIFORM_ENTROPY = math.log2(100)


def digits(number):
    """To the digits given."""
    return pytest.approx(number, rel=0, abs=0.51 * 10.0 ** -len(repr(number).partition(".")[2]))


def answer(attack, **options):
    result = attack.run(engine="exact", **options)
    assert result.engine.startswith("exact")
    return result


# The mean age of a table is published.
def test_knows_a_lot():
    result = answer(paper.knows_a_lot())
    assert float(result.posterior.mean()) == pytest.approx(55.6, abs=1e-9)
    assert float(result.posterior.std()) == digits(0.011547)
    assert float(result.posterior.quantile(1e-9)) == pytest.approx(55.58, abs=1e-6)
    assert pv.leakage.entropy(result.posterior).value == digits(-4.643856)
    assert pv.leakage.kl_divergence(result.posterior, result.prior).value == digits(11.287712)


def test_knows_a_lot_has_infinite_information_and_says_why():
    information = pv.leakage.mutual_information(answer(paper.knows_a_lot()).joint)
    assert information.value == math.inf
    assert "secret" in information.method


KNOWS_A_BIT = [
    # p, spread of the others, mean, sd, P(a < 18), entropy, KL, mutual information
    (0.3, {"var": 3.5}, 63.307, 16.673, 0.00447, 6.0817, 0.5622, 0.912),
    pytest.param(0.3, {"sd": 3.5}, 57.815, 24.138, 0.0658, 6.523, 0.1207, 0.409, marks=pytest.mark.slow),
    pytest.param(1 / 3, {"var": 3.5}, 63.892, 17.258, 0.00563, None, None, None, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("p", "spread", "mean", "sd", "minor", "entropy", "kl", "information"), KNOWS_A_BIT)
def test_knows_a_bit(p, spread, mean, sd, minor, entropy, kl, information):
    result = answer(paper.knows_a_bit(p, **spread))
    assert float(result.posterior.mean()) == digits(mean)
    assert float(result.posterior.std()) == digits(sd)
    assert float(result.posterior.probability(lambda age: age < 18)) == digits(minor)
    if entropy is not None:
        assert pv.leakage.entropy(result.posterior).value == digits(entropy)
        assert pv.leakage.kl_divergence(result.posterior, result.prior).value == digits(kl)
        assert pv.leakage.mutual_information(result.joint).value == digits(information)


@pytest.mark.parametrize("reading", paper.FOUR_AGES)
def test_four_ages(reading):
    attack, mean, variance = paper.FOUR_AGES[reading]
    posterior = answer(attack()).posterior
    assert float(posterior.mean()) == pytest.approx(mean, abs=1e-9)
    assert float(posterior.std()) ** 2 == pytest.approx(variance, abs=1e-9)


@pytest.mark.parametrize(
    ("spreads", "below", "information"), [((8, 1), 0.788172, 0.200269), ((20, 20), 0.518284, 0.00359775)]
)
def test_mean_of_two_hundred(spreads, below, information):
    result = answer(paper.noisy_mean(*spreads))
    assert float(result.prediction.probability(lambda o: o < 55)) == digits(below)
    assert pv.leakage.mutual_information(result.joint).value == digits(information)


@pytest.mark.parametrize(
    ("n", "information", "risk"), [(100, 0.721168, 0.980296), (500, 0.721339, 0.996012), (1000, 0.721345, 0.998003)]
)
def test_sum_of_two(n, information, risk):
    both = pv.DiscreteUniform(0, n), pv.DiscreteUniform(0, n)
    result = answer(pv.Attack(lambda x, y: x + y, {"x": both[0], "y": both[1]}, "x"))
    assert float(result.prediction.probability(lambda o: o == n)) == pytest.approx(1 / (n + 1), abs=1e-12)
    assert pv.leakage.mutual_information(result.joint).value == digits(information)
    assert pv.leakage.bayes_risk(result.joint).value == digits(risk)


@pytest.mark.slow
def test_sum_of_two_with_a_hundred_million_states():
    both = pv.DiscreteUniform(0, 10_000), pv.DiscreteUniform(0, 10_000)
    result = answer(pv.Attack(lambda x, y: x + y, {"x": both[0], "y": both[1]}, "x"))
    assert pv.leakage.mutual_information(result.joint).value == digits(0.721347)
    assert pv.leakage.bayes_risk(result.joint).value == digits(0.9998)


# Naive anonymisation: the governor is ill; are all rows that match him in some columns ill?
def row(position):
    ill = 1 if position == 0 else pv.Bernoulli(0.2)
    return pv.Row(zip=pv.Choice(ZIPS), day=pv.DiscreteUniform(0, 99), sex=pv.Choice(["f", "m"]), ill=ill)


def matching(records, columns):
    governor = records[0]
    return [r for r in records if all(r[column] == governor[column] for column in columns)]


def table_of(size, program, columns):
    def published(records):
        return program(matching(records, columns))

    return pv.Attack(published, {"records": pv.Records(size, row)}, secret=lambda records: records[0].sex)


def all_ill(rows):
    return all(r.ill for r in rows)


DISCLOSED = [
    (1000, ["zip"], 0.01824), (1000, ["day"], 0.00033), (1000, ["sex"], 0.0), (1000, ["zip", "day"], 0.96083),
    (1000, ["zip", "sex"], 0.13534), (1000, ["day", "sex"], 0.01824), (1000, ["zip", "day", "sex"], 0.98022),
    (14_000, ["zip", "day"], 0.57123), (14_000, ["zip", "day", "sex"], 0.75580),
]  # fmt: skip


@pytest.mark.parametrize(("size", "columns", "expected"), DISCLOSED)
def test_all_matching_rows_are_ill(size, columns, expected):
    result = answer(table_of(size, all_ill, columns))
    assert float(result.prediction.probability(lambda all_are: all_are)) == pytest.approx(expected, abs=0.51e-5)


@pytest.mark.parametrize(("columns", "expected"), [(["zip", "day"], 0.49660), (["zip", "day", "sex"], 0.70470)])
def test_the_governor_is_unique(columns, expected):
    result = answer(table_of(14_000, len, columns))
    assert float(result.prediction.probability(lambda n: n == 1)) == pytest.approx(expected, abs=0.51e-5)


def test_five_rows_share_the_zip():
    result = answer(table_of(1000, len, ["zip"]), observe=pv.equals(5))
    ill = result.belief(lambda records: sum(r.ill for r in matching(records, ["zip"]))).distribution()
    assert [ill[k].value for k in range(1, 6)] == pytest.approx([0.4096, 0.4096, 0.1536, 0.0256, 0.0016], abs=1e-12)
    assert ill[3].exact


def test_appendix():
    both = pv.DiscreteUniform(0, 2), pv.DiscreteUniform(0, 2)
    output = answer(pv.Attack(lambda x, y: (x + y) / 2, {"x": both[0], "y": both[1]}, "x")).prediction
    assert float(output.probability(lambda o: o == 1)) == pytest.approx(3 / 9, abs=1e-12)
    assert float(output.probability(lambda o: o == 2)) == pytest.approx(1 / 9, abs=1e-12)
