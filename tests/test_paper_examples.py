"""The paper's examples, from the programs as a user would write them, against exact values."""

import pytest

import privug as pv
from oracles import paper

# With some twenty comparisons, twice a 95 % interval keeps the chance of a false alarm below 1 in 500.
FACTOR = 2


@pytest.mark.parametrize("name", paper.AGGREGATES)
def test_mean_age_of_a_table(name):
    attack, mean, sd, minor = paper.AGGREGATES[name]
    posterior = attack().run(engine="sample", samples=10_000, seed=11).posterior
    assert mean in posterior.mean().widened(FACTOR)
    assert sd in posterior.std().widened(FACTOR)
    assert minor in posterior.probability(lambda age: age < 18).widened(FACTOR)


@pytest.mark.parametrize("reading", paper.FOUR_AGES)
def test_four_normal_ages_seen_exactly(reading):
    attack, mean, variance = paper.FOUR_AGES[reading]
    result = attack().run(engine="sample", samples=20_000, seed=12)
    assert mean in result.posterior.mean().widened(FACTOR)
    assert variance**0.5 in result.posterior.std().widened(FACTOR)
    assert result.diagnostics.effective_samples > 19_999  # all roots are normal: the draws are exact


def test_four_ages_oracle_is_the_published_one():
    variances, deviations = paper.FOUR_AGES["variances"], paper.FOUR_AGES["deviations"]
    assert (round(variances[1], 4), round(variances[2], 4)) == (40.7273, 2.7273)
    assert (round(deviations[1], 4), round(deviations[2], 4)) == (40.2330, 8.7379)


@pytest.mark.parametrize("spreads", paper.NOISY_MEANS)
def test_mean_of_two_hundred(spreads):
    result = paper.noisy_mean(*spreads).run(engine="sample", samples=20_000, seed=13)
    assert result.attack.lifting.tier == "traced"
    assert paper.NOISY_MEANS[spreads] in result.prediction.probability(lambda o: o < 55).widened(FACTOR)


def anonymise(records):
    return [(row.zip, row.birthday, row.sex, row.diagnosis) for row in records]


PROFILES = [
    ("2300", "15.06.1954", "F"), ("2305", "15.06.1954", "M"), ("2300", "09.10.1925", "F"),
    ("2310", "01.01.2000", "M"), ("2450", "30.09.1977", "M"), ("2870", "24.12.1985", "F"),
]  # fmt: skip
RELEASED = [
    ("2300", "15.06.1954", "F", "ill"), ("2305", "15.06.1954", "M", "healthy"),
    ("2300", "09.10.1925", "F", "healthy"), ("2310", "01.01.2000", "M", "ill"),
]  # fmt: skip


def test_linking_attack_finds_alice():
    """The first figure: names are dropped, but a public table has Alice's zip, birthday and sex."""
    public = {"Alice": PROFILES[0]}
    place = pv.DiscreteUniform(0, 3)  # the attacker does not know which row is Alice's

    def row(position):
        profile = pv.where(place == position, pv.Constant(public["Alice"]), pv.Choice(PROFILES))
        zip_code, birthday, sex = profile
        diagnosis = pv.Choice(["ill", "healthy"], p=[0.2, 0.8])
        return pv.Row(zip=zip_code, birthday=birthday, sex=sex, diagnosis=diagnosis)

    attack = pv.Attack(
        lambda records, place: anonymise(records),
        prior={"records": pv.Records(4, row), "place": place},
        secret=lambda records, place: records[place].diagnosis,
    )
    result = attack.run(observe=pv.equals(RELEASED), samples=300, seed=14)
    assert result.attack.lifting.tier == "traced"
    assert 0.2 in result.prior.probability(lambda diagnosis: diagnosis == "ill").widened(FACTOR)
    assert result.posterior.distribution().keys() == {"ill"}
    assert result.posterior.probability(lambda diagnosis: diagnosis == "ill").low > 0.98
    assert result.belief(lambda place: place).distribution().keys() == {0}
